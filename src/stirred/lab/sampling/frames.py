"""Frames that samples are drawn from, and what every sampling design answers about one.

A frame lists units 0, ..., N - 1 in a fixed order, each perhaps with a stratum, a cluster and a size (section 6.2.3 of
the thesis). Sizes matter up to a factor only, so they are kept as whole numbers in their exact proportions. Keep in
mind: a frame may be confidential, so it is never shown, and errors about it hold counts, never a label or a size.

A design is a probability on sets of units of a frame (section 6.2.3 of the thesis). Unit i is sampled with the
inclusion probability pi_i, units i and j together with pi_ij, and a sampled unit has the design weight 1/pi_i (Horvitz
and Thompson 1952); with replacement the weight is 1 over the expected number of times that it is drawn. All of these
are exact fractions, and a draw takes its randomness from :mod:`stirred.noise`, where whole numbers decide. Keep in
mind: for fixed-size designs alone does the Sen-Yates-Grundy form of the variance hold, and where some pair is never
sampled together (:meth:`Design.never_together`) no unbiased estimate of the variance exists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.noise import RandomSource, SystemSource

Units = NDArray[np.int64]
"""Positions of units in the frame."""

MOST_UNITS = 1 << 31
MOST_EXACT = 1 << 62
"""Sums of sizes stay below this, so that 64-bit whole numbers hold them."""


_MOST_BITS = 1 << 10
"""Bits of a common denominator of sizes, beyond which it is not looked for."""


@withheld
@dataclass(frozen=True, eq=False)
class Groups:
    """Strata or clusters: different labels, in order, and which of them each unit has."""

    labels: tuple[Hashable, ...]
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many units have each label."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    def members(self, group: int) -> Units:
        """The units with one label, in the order of the frame."""
        order, ends = self._order
        return order[ends[group] - self.counts[group] : ends[group]]

    @cached_property
    def _order(self) -> tuple[Units, NDArray[np.int64]]:
        return np.argsort(self.codes, kind="stable"), np.cumsum(self.counts)

    def of(self, units: Units) -> Groups:
        """The groups of some units alone; labels that none of them has are gone."""
        present, codes = np.unique(self.codes[units], return_inverse=True)
        return Groups(tuple(self.labels[code] for code in present), codes.astype(np.int64))


@withheld
@dataclass(frozen=True, eq=False)
class Frame:
    """N units in a fixed order, with strata, clusters and sizes where a design needs them; made by :meth:`of`."""

    units: int
    strata: Groups | None = None
    clusters: Groups | None = None
    sizes: NDArray[np.int64] | None = None
    """Whole numbers in the proportions of the sizes that were given."""

    @classmethod
    def of(
        cls,
        units: int | None = None,
        *,
        strata: Iterable[Hashable] | None = None,
        clusters: Iterable[Hashable] | None = None,
        sizes: Iterable[Any] | None = None,
    ) -> Frame:
        """A frame from columns with one value for each unit; without a column, from the number of units.

        Sizes are numbers or their texts, taken exactly: 0.1 is a tenth.

        >>> frame = Frame.of(strata=["north", "north", "south"], sizes=["0.5", 1, 2.5])
        >>> frame.units, frame.strata.labels, frame.sizes.tolist()
        (3, ('north', 'south'), [1, 2, 5])
        """
        columns = {
            "strata": None if strata is None else _groups("strata", strata),
            "clusters": None if clusters is None else _groups("clusters", clusters),
        }
        exact = None if sizes is None else _whole(sizes)
        lengths = {name: len(groups.codes) for name, groups in columns.items() if groups is not None}
        if exact is not None:
            lengths["sizes"] = len(exact)
        number = _number_of_units(units, lengths)
        return cls(number, columns["strata"], columns["clusters"], exact)

    def part(self, units: Units, *, strata: bool = False, clusters: bool = False) -> Frame:
        """Some of the units as a frame of their own, with strata or clusters where they are asked for."""
        return Frame(
            len(units),
            self.strata.of(units) if strata and self.strata is not None else None,
            self.clusters.of(units) if clusters and self.clusters is not None else None,
            None if self.sizes is None else self.sizes[units],
        )

    def chosen(self, units: Sequence[int] | Units | None) -> Units:
        """Positions of units that were asked for, or of all; refused if one is not in the frame or listed twice."""
        if units is None:
            return np.arange(self.units)
        positions = np.asarray(units)
        if positions.ndim != 1 or (len(positions) and positions.dtype.kind not in "iu"):
            raise errors.frame_units("What is not a whole number")
        positions = positions.astype(np.int64)
        outside = positions[(positions < 0) | (positions >= self.units)]
        if len(outside):
            raise errors.frame_units(int(outside[0]))
        if len(np.unique(positions)) < len(positions):
            raise errors.frame_units("A unit that is listed twice")
        return positions


def _number_of_units(units: int | None, lengths: dict[str, int]) -> int:
    if units is not None and (isinstance(units, bool) or not isinstance(units, int | np.integer)):
        raise errors.design_number("The number of units", errors.kind_of(units), "a whole number from 1 on")
    told = ({} if units is None else {"number": int(units)}) | lengths
    if len(set(told.values())) > 1:
        first = next(iter(told))
        other = next(name for name in told if told[name] != told[first])
        raise errors.frame_column(
            other, f"tells of {told[other]:,} units, the {first} of {told[first]:,}", "Give one value for each unit"
        )
    number = next(iter(told.values()), 0)
    if not 1 <= number <= MOST_UNITS:
        raise errors.design_number("The number of units", f"{number:,}", f"a whole number from 1 to {MOST_UNITS:,}")
    return number


def _groups(column: str, values: Iterable[Hashable]) -> Groups:
    if isinstance(values, str):
        raise errors.frame_column(column, "are one text", "Give one label for each unit, as a list or an array")
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    seen: dict[Hashable, int] = {}
    try:
        codes = np.array([seen.setdefault(value, len(seen)) for value in given], dtype=np.int64)
    except TypeError:
        raise errors.frame_column(column, "are not labels", "Give a text or a whole number for each unit") from None
    if any(label is None or label != label for label in seen):
        raise errors.frame_column(column, "are missing for some units", "Give each unit a label") from None
    # The order of labels settles ties of an allocation, so it must not depend on the order of the units.
    order = sorted(seen, key=lambda label: (str(type(label)), label if isinstance(label, int) else 0, str(label)))
    places = np.empty(len(seen), dtype=np.int64)
    places[[seen[label] for label in order]] = np.arange(len(seen))
    return Groups(tuple(order), places[codes])


def _whole(sizes: Iterable[Any]) -> NDArray[np.int64]:
    """Whole numbers in the same exact proportions."""
    given = sizes if isinstance(sizes, np.ndarray) else np.array(list(sizes), dtype=object)
    if given.ndim != 1:
        raise errors.frame_column("sizes", "are not one number for each unit", "Give a list or a one-dimensional array")
    if given.dtype.kind in "iu":
        different, codes = np.unique(given, return_inverse=True)
    else:
        seen: dict[Any, int] = {}
        try:
            codes = np.array([seen.setdefault(value, len(seen)) for value in given.tolist()], dtype=np.int64)
        except TypeError:
            raise _not_numbers() from None
        different = np.array([*seen, None], dtype=object)[:-1]
    try:
        exact = [as_fraction(value) for value in different.tolist()]
    except NOT_A_NUMBER:
        raise _not_numbers() from None
    scale = 1
    for number in exact:
        scale = math.lcm(scale, number.denominator)
        if scale.bit_length() > _MOST_BITS:
            raise _too_fine()
    whole = [int(number * scale) for number in exact]
    if any(number <= 0 for number in whole):
        bad = np.array([number <= 0 for number in whole])
        units = int(np.count_nonzero(bad[codes]))
        raise errors.SurveyError(
            "size-not-positive",
            f"{units:,} units of the frame have a size of 0 or less: they could never be sampled, and what is "
            "estimated would leave them out.",
            "Give each a positive size, or leave them out of the frame and say so.",
        )
    common = math.gcd(*whole)
    whole = [number // common for number in whole]
    times = np.bincount(codes, minlength=len(whole)).tolist()
    if sum(number * count for number, count in zip(whole, times, strict=True)) >= MOST_EXACT:
        raise _too_fine()
    return np.array(whole, dtype=np.int64)[codes]


def _too_fine() -> errors.StirredError:
    return errors.sizes_too_fine("The sum of the sizes, as whole numbers in their exact proportions,", "2^62")


def _not_numbers() -> errors.StirredError:
    return errors.frame_column("sizes", "are not all numbers", "Give each unit a positive number as its size")


MOST_SAMPLES = 20_000
"""Samples that are listed at most."""

MOST_IN_PAIRS = 1_000
"""Units whose pairs are computed at most, being fractions in a square."""

Pairs = NDArray[np.object_]
"""A fraction for each pair of units, and in the diagonal for each unit."""

Listed = Iterable[tuple[tuple[int, ...], Fraction]]
"""Samples, as increasing positions of their units (repeated where drawn repeatedly), with probabilities."""


@withheld
@dataclass(frozen=True, eq=False)
class UnitFractions:
    """One exact fraction for each unit, kept as the different fractions and a code for each unit."""

    distinct: tuple[Fraction, ...]
    codes: NDArray[np.int64]

    @classmethod
    def same(cls, value: Fraction, units: int) -> UnitFractions:
        """The same fraction for all units."""
        return cls((value,), np.zeros(units, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, position: int) -> Fraction:
        return self.distinct[int(self.codes[position])]

    def __iter__(self) -> Iterator[Fraction]:
        return (self.distinct[code] for code in self.codes.tolist())

    def total(self) -> Fraction:
        """The sum over all units; of inclusion probabilities it is the expected number of different units."""
        counts = np.bincount(self.codes, minlength=len(self.distinct)).tolist()
        return sum((value * count for value, count in zip(self.distinct, counts, strict=True)), start=Fraction(0))

    def inverses(self) -> UnitFractions:
        """One over each fraction."""
        return UnitFractions(tuple(1 / value for value in self.distinct), self.codes)

    def floats(self) -> NDArray[np.float64]:
        """The nearest floating-point numbers: each is off by at most half a unit in its last place."""
        return np.array([float(value) for value in self.distinct], dtype=np.float64)[self.codes]


@withheld
@dataclass(frozen=True, eq=False)
class Sample:
    """Which units were drawn, how often each, and their design weights; as confidential as who is in the sample."""

    units: Units
    """Different units, increasing."""
    times: NDArray[np.int64]
    """How often each was drawn: 1, except with replacement."""
    weights: UnitFractions
    """For each unit; it counts once for each time that the unit was drawn."""
    for_release: bool
    """Whether the source of randomness may be used for a release; false for repeatable ones."""

    def __len__(self) -> int:
        return int(self.times.sum())


@dataclass(frozen=True)
class Design(ABC):
    """A way of sampling units of a frame. Designs are frozen and public; frames and samples may be confidential."""

    with_replacement: ClassVar[bool] = False

    # -- public questions ------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def depends_on(self) -> tuple[str, ...]:
        """What of the frame, beside the number of units, decides who is sampled: order, strata, clusters, sizes."""

    @property
    def data_dependent(self) -> str:
        """Why sampling depends on confidential data, in a sentence; empty where it does not.

        Such sampling can lose privacy instead of gaining it.
        """
        return ""

    def check(self, frame: Frame) -> None:
        """Raise an error if the design cannot be carried out on this frame."""
        for column in self._columns:
            if getattr(frame, column) is None:
                raise errors.SurveyError(
                    "frame-lacks",
                    f"The frame has no {column}, which {type(self).__name__} needs.",
                    f"Give the {column} of all units to the frame, or choose a design without them.",
                )
        self._check(frame)

    @abstractmethod
    def sample_size(self, frame: Frame) -> int | None:
        """How many units every sample has; None where that is not the same for all samples, or not known to be."""

    def inclusion(self, frame: Frame, units: Sequence[int] | Units | None = None) -> UnitFractions:
        """The probability that each unit is sampled (at least once), for all units or those asked for."""
        self.check(frame)
        return self._inclusion(frame, frame.chosen(units))

    def expected_times(self, frame: Frame, units: Sequence[int] | Units | None = None) -> UnitFractions:
        """How often each unit is drawn on average: its inclusion probability, except with replacement."""
        self.check(frame)
        return self._expected_times(frame, frame.chosen(units))

    def weights(self, frame: Frame, units: Sequence[int] | Units | None = None) -> UnitFractions:
        """Design weights: 1 over the expected number of times that a unit is drawn.

        The sum of weight times value over all draws estimates the total of the frame without bias.
        """
        return self.expected_times(frame, units).inverses()

    def joint(self, frame: Frame, units: Sequence[int] | Units | None = None) -> Pairs:
        """The probability that two units are sampled together, for all pairs of the units; a unit's own in the
        diagonal.
        """
        self.check(frame)
        chosen = frame.chosen(units)
        if len(chosen) > MOST_IN_PAIRS:
            raise errors.too_many_pairs(len(chosen), MOST_IN_PAIRS, type(self).__name__)
        return self._joint(frame, chosen)

    def never_together(self, frame: Frame) -> str:
        """What follows if some two units are never sampled together, in a sentence; empty if all pairs can be."""
        self.check(frame)
        if not self._separates(frame):
            return ""
        return (
            "Some pairs of units are never sampled together, so that no unbiased estimate of the design variance "
            "exists; an approximation has to be named, such as that of a simple random sample in a random order."
        )

    def samples(self, frame: Frame, most: int = MOST_SAMPLES) -> dict[tuple[int, ...], Fraction]:
        """All samples that can be drawn, with their exact probabilities; for small frames, as an oracle."""
        self.check(frame)
        found: dict[tuple[int, ...], Fraction] = {}
        for sample, chance in self._listed(frame, most):
            if chance:
                found[sample] = found.get(sample, Fraction(0)) + chance
        return found

    def draw(self, frame: Frame, source: RandomSource | None = None) -> Sample:
        """Draw a sample, by default with the operating system's generator."""
        self.check(frame)
        source = source or SystemSource()
        units, times = np.unique(self._drawn(frame, source).astype(np.int64), return_counts=True)
        return Sample(units, times.astype(np.int64), self._expected_times(frame, units).inverses(), source.for_release)

    # -- what each design answers, on frames that were checked ----------------------------------------------------

    @property
    def _columns(self) -> tuple[str, ...]:
        """Columns that a frame must have."""
        return tuple(name for name in self.depends_on if name != "order")

    @abstractmethod
    def _check(self, frame: Frame) -> None: ...

    @abstractmethod
    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions: ...

    def _expected_times(self, frame: Frame, units: Units) -> UnitFractions:
        return self._inclusion(frame, units)

    @abstractmethod
    def _joint(self, frame: Frame, units: Units) -> Pairs: ...

    @abstractmethod
    def _separates(self, frame: Frame) -> bool: ...

    @abstractmethod
    def _listed(self, frame: Frame, most: int) -> Listed: ...

    @abstractmethod
    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]: ...


@dataclass(frozen=True)
class OfFixedSize(Design):
    """A design that draws ``sample`` units."""

    sample: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", whole("The sample size", self.sample))

    def sample_size(self, frame: Frame) -> int | None:
        return self.sample

    def _check(self, frame: Frame) -> None:
        enough(self.sample, frame.units)


# -- for the modules of designs ----------------------------------------------------------------------------------


def whole(what: str, value: Any, least: int = 1) -> int:
    """A parameter of a design that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise errors.design_number(what, errors.kind_of(value), f"a whole number from {least} on")
    if value < least:
        raise errors.design_number(what, f"{value:,}", f"a whole number from {least} on")
    return int(value)


def exact(what: str, value: Any, wanted: str) -> Fraction:
    """A parameter of a design that is a number, or the text of one."""
    try:
        return as_fraction(value)
    except NOT_A_NUMBER:
        raise errors.design_number(what, errors.kind_of(value), wanted) from None


def enough(sample: int, population: int) -> None:
    """Refuse a sample that is larger than what it is drawn from."""
    if sample > population:
        raise errors.sample_too_large(sample, population, "units")


def listable(number: int, most: int) -> None:
    """Refuse to list more than ``most`` samples."""
    if number > most:
        # Numbers of samples can have more digits than Python prints.
        samples = f"{number:,}" if number < 10**15 else "more than 10^15"
        raise errors.SurveyError(
            "samples-not-listed",
            f"The design has {samples} possible samples on this frame; at most {most:,} are listed.",
            "List the samples of a smaller frame; probabilities of units and pairs need no list.",
        )


def subsets(population: int, size: int) -> int:
    """How many sets of ``size`` there are; where there are more than 2^64 a smaller number, which is soon computed."""
    smaller = min(size, population - size)
    return math.comb(population, smaller) if smaller <= 64 else 1 << 64


def pairs_of_equals(each: Fraction, both: Fraction, units: int) -> Pairs:
    """Pairs of units that are all alike."""
    pairs = np.full((units, units), both, dtype=object)
    np.fill_diagonal(pairs, each)
    return pairs


def independent_pairs(inclusion: UnitFractions) -> Pairs:
    """Pairs of units that are sampled independently of each other."""
    each = np.array([*inclusion, None], dtype=object)[:-1]
    pairs: Pairs = np.multiply.outer(each, each)
    np.fill_diagonal(pairs, each)
    return pairs
