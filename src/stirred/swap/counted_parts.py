"""Counts of a question with their estimates, variances and intervals, for single answers and as parts of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.estimates.answers import Parts
from stirred.swap import cell_law
from stirred.swap.estimation import CellEstimates, cell_estimates, key_parts
from stirred.swap.score_intervals import continuity, score_interval
from stirred.swap.simulated_estimation import DRAWS
from stirred.swap.tally import Tally

special = later("scipy.special")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LAWS = 100
"""Laws of cells that are listed for one question."""

KIND_WORDS = {
    "known": "what the swap keeps tells it, without error",
    "exact": "from the law of the swap itself, in one small stratum",
    "score": "the true counts from which the released one is not further than chance explains, and half a unit more",
    "normal": "from the normal law and the variance at the estimates, and half a unit more: records of one group had "
    "different rates",
    "simulated": "as combined, a count by itself with the normal law and half a unit more; spreads of counts, or their "
    f"correlations are those of {DRAWS} draws of the published law from the released records, and so approximate",
    "combined": "put together from the intervals of the counts, with their correlations",
    "bounded": "no estimate: some of the records are in groups so small for their rates that nothing can be estimated "
    "there. The interval has all that the kept counts allow for these, and is found as otherwise for the others",
    "margins": "no estimate: the swap mixes so much that the kept counts alone say as much. The interval is what they "
    "allow",
}
"""What the kinds of intervals mean."""


@dataclass(frozen=True, eq=False, repr=False)
class CountParts:
    """All counts of a tally by (area, held group, swap group)."""

    tally: Tally
    rate: Fraction | None
    _found: dict[tuple[float, bool], Parts] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<CountParts of {self.tally!r}>"

    @cached_property
    def cells(self) -> CellEstimates:
        """The estimates, stratum by stratum."""
        return cell_estimates(self.tally)

    @property
    def keys(self) -> Integers:
        """Of each count its packed key, increasing."""
        return self.cells.answers

    @property
    def groups(self) -> tuple[Integers, Integers, Integers]:
        """Of each count its area, held group and swap group."""
        return key_parts(self.keys, self.tally.shape)

    def merged(self, areas: Integers, held: Integers, swapped: Integers) -> CountParts:
        """The counts with groups put together: for each group the number of its new one."""
        return CountParts(self.tally.merged(areas, held, swapped), self.rate)

    @cached_property
    def naive(self) -> Floats:
        """The released counts."""
        return self.cells.total(self.cells.cells.released)

    @cached_property
    def values(self) -> Floats:
        """The estimates, unclipped; without a meaning where a part is only bounded."""
        return self.cells.total(self.cells.values)

    @cached_property
    def variances(self) -> Floats:
        """Their variances: the sums over strata are without bias, and only they are cut at 0."""
        return np.maximum(self.cells.total(self.cells.variances), 0.0)

    @cached_property
    def refused(self) -> NDArray[np.bool_]:
        """Where the margins alone say as much as an estimate: its standard error under independence, a function of the
        invariants, is above half of what the margins leave open; or nothing can be estimated."""
        found = self.cells
        leave_open = np.where(found.varies, found.cells.high - found.cells.low, 0.0)
        spread = np.sqrt(found.total(np.where(found.estimated, found.spread_if_independent, 0.0)))
        nothing = (found.total(found.varies) > 0) & (found.total(found.estimated) == 0)
        return np.asarray(nothing | (spread > found.total(leave_open) / 2))

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """How the interval of each count is found."""
        found = self.cells
        kinds = np.full(len(self.keys), "score", dtype="<U8")
        kinds[[answer for answer, _ in self._listed]] = "exact"
        kinds[found.total(found.mixed & found.estimated) > 0] = "normal"
        kinds[found.total(found.bounded) > 0] = "bounded"
        kinds[found.total(found.varies) == 0] = "known"
        kinds[self.refused] = "margins"
        return kinds

    @cached_property
    def _listed(self) -> list[tuple[int, int]]:
        """Counts that only one small stratum leaves open, and the cell of each."""
        found = self.cells
        single = (found.total(found.estimated) == 1) & (found.total(found.bounded) == 0) & ~self.refused
        small = found.estimated & (found.cells.size <= cell_law.LARGEST) & (found.cells.largest == 1)
        cells = np.flatnonzero(small & single[found.answer])
        one = found.cells
        laws = {(one.size[at], one.scores[at], one.records[at]) for at in cells}
        if self.rate is None or len(laws) > MOST_LAWS:
            return []
        return [(int(found.answer[at]), int(at)) for at in cells]

    def parts(self, confidence: float, *, whole: bool = False) -> Parts:
        """Estimates with their intervals; ``whole`` for whole numbers as ends, otherwise as parts of other answers."""
        if (confidence, whole) not in self._found:
            self._found[confidence, whole] = self._parts(confidence, whole)
        return self._found[confidence, whole]

    def _parts(self, confidence: float, whole: bool) -> Parts:
        found, one = self.cells, self.cells.cells
        quantile = float(special.ndtri((1 + confidence) / 2))
        lower, upper = score_interval(found, quantile, whole=whole)
        if not whole:
            # What the margins cut off a count's interval would be missing in a difference: estimates stay unclipped.
            value = found.total(np.where(found.estimated, found.values, 0.0))
            spread = np.maximum(self.variances, found.total(found.variances_at(found.clipped)))
            half = np.where(found.total(found.estimated) > 0, quantile * np.sqrt(spread) + continuity(found), 0.0)
            lower, upper = np.minimum(lower, value - half), np.maximum(upper, value + half)
        if whole:
            for answer, at in self._listed:
                law = int(one.size[at]), int(one.scores[at]), int(one.records[at]), int(one.released[at])
                assert self.rate is not None
                lower[answer], upper[answer] = cell_law.exact_interval(*law, self.rate, 1 - confidence)
        known = found.total(np.where(found.varies, 0.0, one.released))
        alone = known + found.total(np.where(found.varies & ~found.estimated, one.low, 0.0))
        lower, upper = lower + alone, upper + alone + found.total(found.width)
        least = known + found.total(np.where(found.varies, one.low, 0.0))
        most = known + found.total(np.where(found.varies, one.high, 0.0))
        bounded, refused = found.total(found.bounded) > 0, self.refused
        lower, upper = np.where(refused, least, lower), np.where(refused, most, upper)
        lower, upper = (
            np.where(bounded, np.maximum(lower, least), lower),
            np.where(bounded, np.minimum(upper, most), upper),
        )
        return Parts(self.values, self.variances, lower, upper)
