"""Systematic sampling: one random start, then equal steps through a fixed order.

Lay the sizes x_i end to end, X in all, and mark them at a start that is uniform below X/n and from there in steps of
X/n. Times n everything is whole: unit i holds n x_i points, marks are X apart, and a whole start uniform on 0, ...,
X - 1 gives the same law. Seen from the start, a unit is an arc of n x_i points on a circle of X points, and two units
are sampled together if their arcs share the start. Keep in mind: only the start is random. In an order that an attacker
knows this is a sample of one cluster, and sampling amplifies nothing (section 6.4.1 of the thesis).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import withheld
from stirred.noise import RandomSource, uniform_integers
from stirred.survey.designs import Design, Listed, Pairs, UnitFractions, enough, listable, whole
from stirred.survey.frames import MOST_EXACT, Frame, Units


@withheld
@dataclass(frozen=True, eq=False)
class Arcs:
    """Of each unit: where its points end on the line of n X points; and the length X of the circle."""

    ends: NDArray[np.int64]
    lengths: NDArray[np.int64]
    circle: int
    sample: int

    @classmethod
    def of(cls, sizes: NDArray[np.int64], sample: int) -> Arcs:
        """Of units with these sizes; their sum times the sample size was checked to be below 2^62."""
        lengths = sample * sizes
        return cls(np.cumsum(lengths), lengths, int(sizes.sum()), sample)

    def sampled(self, start: int) -> NDArray[np.int64]:
        """The units at the marks that begin at ``start``."""
        marks = start + self.circle * np.arange(self.sample, dtype=np.int64)
        return np.searchsorted(self.ends, marks, side="right")

    def drawn(self, source: RandomSource) -> NDArray[np.int64]:
        return self.sampled(int(uniform_integers(self.circle, 1, source)[0]))

    def joint(self, units: Units) -> Pairs:
        first, last = self._on_circle(units)
        together = np.zeros((len(units), len(units)), dtype=np.int64)
        for turn in (-self.circle, 0, self.circle):
            shared = np.minimum.outer(last, last + turn) - np.maximum.outer(first, first + turn)
            together += np.maximum(shared, 0)
        shares = {count: Fraction(count, self.circle) for count in np.unique(together).tolist()}
        pairs = np.empty(together.shape, dtype=object)
        pairs.ravel()[:] = [shares[count] for count in together.ravel().tolist()]
        return pairs

    def some_do_not_meet(self) -> bool:
        """Whether the arcs of some two units have no point in common, so that they are never sampled together."""
        first, last = self._on_circle(np.arange(len(self.ends)))
        order = np.argsort(first, kind="stable")
        starts = np.concatenate([first[order], first[order] + self.circle])
        ends = np.concatenate([last[order], last[order] + self.circle])
        earliest = np.minimum.accumulate(ends[::-1])[::-1]  # of the arcs that start here or later
        return bool(np.any(earliest[np.searchsorted(starts, last)] <= first + self.circle))

    def listed(self, most: int) -> Listed:
        """Samples change only where an arc begins."""
        starts = np.unique((self.ends - self.lengths) % self.circle)
        listable(len(starts), most)
        widths = np.diff(np.append(starts, self.circle))
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            yield tuple(self.sampled(start).tolist()), Fraction(width, self.circle)

    def _on_circle(self, units: Units) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = (self.ends - self.lengths)[units] % self.circle
        return first, first + self.lengths[units]


class OnCircle(Design):
    """A design whose samples are the units whose arcs hold one random start."""

    @abstractmethod
    def _arcs(self, frame: Frame) -> Arcs: ...

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        return self._arcs(frame).joint(units)

    def _separates(self, frame: Frame) -> bool:
        return self._arcs(frame).some_do_not_meet()

    def _listed(self, frame: Frame, most: int) -> Listed:
        return self._arcs(frame).listed(most)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return self._arcs(frame).drawn(source)


@dataclass(frozen=True)
class Systematic(OnCircle):
    """Systematic sampling of ``sample`` units with equal probabilities, in the order of the frame.

    The step N/n need not be whole: marks at a random start and steps of exactly N/n always hit ``sample`` units.

    >>> {sample: str(chance) for sample, chance in Systematic(2).samples(Frame.of(5)).items()}
    {(0, 2): '1/5', (0, 3): '1/5', (1, 3): '1/5', (1, 4): '1/5', (2, 4): '1/5'}
    """

    sample: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", whole("The sample size", self.sample))

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("order",)

    def sample_size(self, frame: Frame) -> int:
        return self.sample

    def _check(self, frame: Frame) -> None:
        enough(self.sample, frame.units)
        if self.sample * frame.units >= MOST_EXACT:
            raise errors.sizes_too_fine("The number of units times the sample size", "2^62")

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(Fraction(self.sample, frame.units), len(units))

    def _arcs(self, frame: Frame) -> Arcs:
        return Arcs.of(np.ones(frame.units, dtype=np.int64), self.sample)


@dataclass(frozen=True)
class EveryKth(Design):
    """One of the first ``interval`` units at random, and every ``interval``-th after it.

    Every unit has the probability 1/interval; sample sizes differ by one where the interval does not divide N.

    >>> EveryKth(2).samples(Frame.of(5))
    {(0, 2, 4): Fraction(1, 2), (1, 3): Fraction(1, 2)}
    """

    interval: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", whole("The interval", self.interval))

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("order",)

    def sample_size(self, frame: Frame) -> int | None:
        size, over = divmod(frame.units, self.interval)
        return None if over else size

    def _check(self, frame: Frame) -> None:
        # A longer interval would leave the sample empty for some starts.
        if self.interval > frame.units:
            raise errors.design_number(
                "The interval", f"{self.interval:,} in a frame of {frame.units:,} units", "an interval within the frame"
            )

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(Fraction(1, self.interval), len(units))

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        remainders = units % self.interval
        choices = np.array([Fraction(0), Fraction(1, self.interval)], dtype=object)
        return np.asarray(choices[np.equal.outer(remainders, remainders).astype(np.int64)])

    def _separates(self, frame: Frame) -> bool:
        return self.interval > 1

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(self.interval, most)
        for start in range(self.interval):
            yield tuple(range(start, frame.units, self.interval)), Fraction(1, self.interval)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return np.arange(int(uniform_integers(self.interval, 1, source)[0]), frame.units, self.interval)
