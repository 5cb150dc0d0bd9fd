"""Stratified and two-stage designs, and how a sample is divided among strata.

Allocation rules (equal, proportional, Neyman's, as given) give stratum h a share a_h of the sample: 1, N_h, or N_h S_h
with the standard deviation S_h in the stratum (Neyman 1934). Whole numbers that minimise the sum of a_h^2 / n_h, the
part of the variance of an estimated total that an allocation can change, are found exactly: units are given one at a
time to the stratum with the largest a_h^2 / (n (n + 1)), n being what it has (Wright 2012). Keep in mind: standard
deviations that were computed from confidential data make the sampling depend on them, which can lose privacy instead of
gaining it (section 6.4.1 of the thesis; Bun et al. 2022).

Strata are sampled independently, so that the probability of a pair is pi_i pi_j across strata, and the stratum's own
within. In two stages a unit of cluster c has pi_c pi_i|c, two units of one cluster pi_c pi_ij|c, and of two clusters
pi_cd pi_i|c pi_j|d. Keep in mind: sampling amplifies privacy only by the stages that select single units (section 6.4.1
of the thesis).
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief
from stirred.lab.sampling.frames import (
    Design,
    Frame,
    Groups,
    Listed,
    Pairs,
    UnitFractions,
    Units,
    enough,
    exact,
    independent_pairs,
    listable,
    whole,
)
from stirred.lab.sampling.unit_designs import Census, SimpleRandom
from stirred.noise import RandomSource


@dataclass(frozen=True)
class Allocation(ABC):
    """How many units to sample in each stratum."""

    @abstractmethod
    def sizes(self, strata: Sequence[Hashable], units: Sequence[int]) -> tuple[int, ...]:
        """Sample sizes of strata that have so many units; each from 1 to the number of units."""

    @property
    def data_dependent(self) -> str:
        """Why the allocation depends on confidential data, in a sentence; empty where it does not."""
        return ""


@dataclass(frozen=True)
class Equal(Allocation):
    """The same number in each stratum; what a small stratum cannot give is taken from the others.

    >>> Equal(10).sizes("abc", [100, 100, 2])
    (4, 4, 2)
    """

    sample: int
    minimum: int = 2

    def __post_init__(self) -> None:
        _require_numbers(self)

    def sizes(self, strata: Sequence[Hashable], units: Sequence[int]) -> tuple[int, ...]:
        return _shared(self.sample, self.minimum, [Fraction(1)] * len(units), units)


@dataclass(frozen=True)
class Proportional(Allocation):
    """In proportion to the number of units, rounded so that the sum of N_h^2 / n_h is smallest.

    At least ``minimum`` units are sampled in each stratum, or all where it has fewer.

    >>> Proportional(10).sizes("abc", [600, 300, 100])
    (5, 3, 2)
    """

    sample: int
    minimum: int = 2

    def __post_init__(self) -> None:
        _require_numbers(self)

    def sizes(self, strata: Sequence[Hashable], units: Sequence[int]) -> tuple[int, ...]:
        return _shared(self.sample, self.minimum, [Fraction(count) for count in units], units)


@brief
@dataclass(frozen=True)
class Neyman(Allocation):
    """In proportion to N_h S_h, with a standard deviation S_h stated for each stratum: the smallest variance.

    Say whether the standard deviations are ``public`` (from an earlier survey that was published, or assumed). Where
    they come from the confidential data, :attr:`data_dependent` says what that does to privacy.

    >>> Neyman(12, {"small": 1, "large": 10}, public=True).sizes(["large", "small"], [50, 100])
    (10, 2)
    """

    sample: int
    deviations: Mapping[Hashable, Any]
    public: bool
    minimum: int = 2

    def __post_init__(self) -> None:
        _require_numbers(self)
        wanted = "numbers that are at least 0, and one of them positive"
        given = _mapping("The standard deviations", self.deviations)
        numbers = {name: exact("A standard deviation", value, wanted) for name, value in given.items()}
        if any(number < 0 for number in numbers.values()):
            raise errors.design_number("A standard deviation", "negative", wanted)
        if not isinstance(self.public, bool):
            raise errors.design_number("public", errors.kind_of(self.public), "True or False")
        object.__setattr__(self, "deviations", numbers)

    @property
    def data_dependent(self) -> str:
        if self.public:
            return ""
        return (
            "The allocation uses standard deviations from confidential data: one record can change how many units are "
            "sampled in every stratum, so that sampling can lose privacy instead of gaining it, and the sample sizes "
            "themselves tell about the data (section 6.4.1; Bun et al. 2022)."
        )

    def sizes(self, strata: Sequence[Hashable], units: Sequence[int]) -> tuple[int, ...]:
        deviations = _for_each(self.deviations, strata, "standard deviation")
        if not any(deviations):
            raise errors.design_number("Every standard deviation", "0", "a positive one for some stratum")
        shares = [Fraction(count) * deviation for count, deviation in zip(units, deviations, strict=True)]
        return _shared(self.sample, self.minimum, shares, units)


@brief
@dataclass(frozen=True)
class Given(Allocation):
    """A stated number in each stratum.

    >>> Given({"a": 1, "b": 5}).sizes(["a", "b"], [10, 10])
    (1, 5)
    """

    samples: Mapping[Hashable, int]

    def __post_init__(self) -> None:
        given = _mapping("The sample sizes", self.samples)
        object.__setattr__(self, "samples", {name: whole("A sample size", size) for name, size in given.items()})

    def sizes(self, strata: Sequence[Hashable], units: Sequence[int]) -> tuple[int, ...]:
        sizes = _for_each(self.samples, strata, "sample size")
        for name, size, count in zip(strata, sizes, units, strict=True):
            if size > count:
                # The name is one of the design's, which is public, and the size too.
                raise errors.SurveyError(
                    "stratum-too-small",
                    f"{size:,} units are to be sampled in the stratum '{name}', which has {count:,}.",
                    "Sample at most as many as there are.",
                )
        return tuple(sizes)


# -- helpers -----------------------------------------------------------------------------------------------------


def _require_numbers(allocation: Equal | Proportional | Neyman) -> None:
    object.__setattr__(allocation, "sample", whole("The sample size", allocation.sample))
    object.__setattr__(allocation, "minimum", whole("The minimum in each stratum", allocation.minimum))


def _mapping(what: str, given: Any) -> dict[Hashable, Any]:
    if not isinstance(given, Mapping) or not given:
        problem = "an empty dict" if isinstance(given, Mapping) else errors.kind_of(given)
        raise errors.design_number(what, problem, "a dict with a number for each stratum")
    return dict(given)


def _for_each(numbers: Mapping[Hashable, Any], strata: Sequence[Hashable], what: str) -> list[Any]:
    """The stated number of each stratum of the frame, which must be the strata that are stated."""
    unknown = [str(name) for name in numbers if name not in set(strata)]
    if unknown:
        raise errors.SurveyError(
            "unknown-strata",
            f"The frame has no stratum {errors.listed(unknown, 'or')}.",
            "Name strata as the frame does (a number is not the text of it), and only those that it has.",
        )
    missing = sum(name not in numbers for name in strata)
    if missing:
        raise errors.SurveyError(
            "strata-without-number",
            f"{missing:,} strata of the frame have no {what}.",
            "Give one for every stratum of the frame; leave out of the frame what is not to be sampled.",
        )
    return [numbers[name] for name in strata]


def _shared(sample: int, minimum: int, shares: Sequence[Fraction], units: Sequence[int]) -> tuple[int, ...]:
    """The whole numbers of sum ``sample``, from ``minimum`` (or all) to all, with the smallest sum of share^2 / n.

    What a unit more saves in stratum h, a_h^2 / (n (n + 1)), falls as n grows, so that taking the largest saving first
    is best. Savings above any cut are all taken if there are not too many, which spares most of the steps.
    """
    enough(sample, sum(units))
    sizes = [min(minimum, count) for count in units]
    if sum(sizes) > sample:
        raise errors.SurveyError(
            "sample-too-small",
            f"A sample of {sample:,} cannot have {minimum} units (or all, where there are fewer) in each of "
            f"{len(units):,} strata.",
            "Sample more, join strata, or lower the minimum; a stratum with nothing sampled could not be estimated.",
        )
    squares = [share * share for share in shares]
    mean = sum(shares, start=Fraction(0)) / sample
    for halved in range(8):  # cuts ever less above where the savings would end if shares were never rounded
        cut = (mean * (1 + Fraction(1, 1 << halved))) ** 2
        ahead = [
            max(size, min(count, _savings(square / cut)))
            for size, count, square in zip(sizes, units, squares, strict=True)
        ]
        if sum(ahead) <= sample:
            sizes = ahead
    queue = [(-squares[h] / (size * (size + 1)), h) for h, size in enumerate(sizes) if size < units[h]]
    heapq.heapify(queue)
    for _ in range(sample - sum(sizes)):
        _, h = heapq.heappop(queue)
        sizes[h] += 1
        if sizes[h] < units[h]:
            heapq.heappush(queue, (-squares[h] / (sizes[h] * (sizes[h] + 1)), h))
    return tuple(sizes)


def _savings(ratio: Fraction) -> int:
    """The largest n with (n - 1) n <= ratio: how many units a stratum has when all savings above a cut are taken."""
    return (1 + math.isqrt(1 + 4 * math.floor(ratio))) // 2


@dataclass(frozen=True)
class _Part:
    """A stratum or a cluster: its units, what they are as a frame, and the design within."""

    units: Units
    frame: Frame
    design: Design


@dataclass(frozen=True)
class Stratified(Design):
    """An independent sample in each stratum, its size by an allocation; simple random within, or as said.

    ``within`` makes a design from a sample size: SimpleRandom, Systematic, SystematicBySize or Sampford. Strata of one
    unit are refused, unless ``singles`` is "certain": then that unit is always sampled.

    >>> from stirred.lab.sampling.composed_designs import Given
    >>> design = Stratified(Given({"north": 2, "south": 1}))
    >>> frame = Frame.of(strata=["north", "north", "north", "south", "south"])
    >>> [str(weight) for weight in design.weights(frame)]
    ['3/2', '3/2', '3/2', '2', '2']
    """

    allocation: Allocation
    within: Callable[[int], Design] = SimpleRandom
    singles: Literal["refuse", "certain"] = "refuse"

    def __post_init__(self) -> None:
        if not isinstance(self.allocation, Allocation):
            raise errors.design_choice(
                "The allocation", f"is {errors.kind_of(self.allocation)}", "Give Equal, Proportional, Neyman or Given"
            )
        if self.singles not in ("refuse", "certain"):
            raise errors.design_choice("singles", "is neither of its two choices", 'Give "refuse" or "certain"')
        if not callable(self.within):
            raise errors.design_choice("within", "is not a design by its sample size", "Give SimpleRandom, for example")
        _require_part("The design within strata", self.within(1))

    def __repr__(self) -> str:
        within = getattr(self.within, "__name__", "a function")
        return f"Stratified({self.allocation!r}, within={within}, singles={self.singles!r})"

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("strata", *self.within(1).depends_on)))

    @property
    def data_dependent(self) -> str:
        return self.allocation.data_dependent or self.within(1).data_dependent

    def sample_size(self, frame: Frame) -> int | None:
        self.check(frame)
        sizes = [part.design.sample_size(part.frame) for part in self._parts(frame)]
        fixed = [size for size in sizes if size is not None]
        return sum(fixed) if len(fixed) == len(sizes) else None

    def allocated(self, frame: Frame) -> dict[object, int]:
        """How many units are sampled in each stratum."""
        self.check(frame)
        strata = _groups(frame.strata)
        return dict(zip(strata.labels, self._sizes(strata), strict=True))

    def _check(self, frame: Frame) -> None:
        strata = _groups(frame.strata)
        single = int(np.count_nonzero(strata.counts == 1))
        if single and self.singles == "refuse":
            raise errors.SurveyError(
                "single-unit-strata",
                f"{single:,} strata of the frame hold one unit only: it would be in every sample, and be known to be.",
                'Join these strata to others, or take their units with certainty on purpose (singles="certain").',
            )
        _require_fit(self._parts(frame), len(strata), "strata")

    def _sizes(self, strata: Groups) -> tuple[int, ...]:
        return self.allocation.sizes(strata.labels, strata.counts.tolist())

    def _parts(self, frame: Frame) -> Iterator[_Part]:
        strata = _groups(frame.strata)
        for stratum, size in enumerate(self._sizes(strata)):
            units = strata.members(stratum)
            yield _Part(units, frame.part(units, clusters="clusters" in self.depends_on), self.within(size))

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return _collected(_asked(self._parts(frame), frame.units, units), len(units))

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        pairs = independent_pairs(self._inclusion(frame, units))
        for part, places, inside in _asked(self._parts(frame), frame.units, units):
            pairs[np.ix_(places, places)] = part.design._joint(part.frame, inside)
        return pairs

    def _separates(self, frame: Frame) -> bool:
        return any(part.design._separates(part.frame) for part in self._parts(frame))

    def _listed(self, frame: Frame, most: int) -> Listed:
        return _products(list(self._parts(frame)), most)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return _drawn_in(self._parts(frame), source)


@dataclass(frozen=True)
class TwoStage(Design):
    """Clusters are sampled by the first design, and units in each sampled cluster by the second.

    For the first stage a cluster is one unit: its size is the sum of its units' sizes (their number, where the frame
    has none), its stratum that of its units. Without a second design all units of a sampled cluster are taken.

    >>> frame = Frame.of(clusters=["a", "a", "b", "b", "b", "c"])
    >>> [str(weight) for weight in cluster_sample(2).weights(frame, [0, 5])]
    ['3/2', '3/2']
    """

    first: Design
    second: Design = field(default_factory=Census)

    def __post_init__(self) -> None:
        _require_part("The first stage", self.first)
        _require_part("The second stage", self.second)
        if "clusters" in (*self.first.depends_on, *self.second.depends_on):
            raise errors.design_choice(
                "A stage", "samples clusters itself, and frames have one kind of clusters", "Give designs of units"
            )

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("clusters", *self.first.depends_on, *self.second.depends_on)))

    @property
    def _columns(self) -> tuple[str, ...]:
        # Sizes of clusters are their numbers of units where the frame has no sizes.
        first = (name for name in self.first._columns if name != "sizes")
        return "clusters", *first, *self.second._columns

    @property
    def data_dependent(self) -> str:
        return self.first.data_dependent or self.second.data_dependent

    def sample_size(self, frame: Frame) -> int | None:
        """None also where it happens to be fixed although clusters give different numbers of units."""
        self.check(frame)
        clusters = self.first.sample_size(self._clusters(frame))
        sizes = {part.design.sample_size(part.frame) for part in self._parts(frame)}
        size = sizes.pop()
        return None if clusters is None or size is None or sizes else clusters * size

    def _check(self, frame: Frame) -> None:
        self.first.check(self._clusters(frame))
        if self.second != Census():
            _require_fit(self._parts(frame), len(_groups(frame.clusters)), "clusters")

    def _clusters(self, frame: Frame) -> Frame:
        """The clusters as a frame."""
        groups = _groups(frame.clusters)
        sizes = groups.counts
        if frame.sizes is not None:
            sizes = np.zeros(len(groups), dtype=np.int64)
            np.add.at(sizes, groups.codes, frame.sizes)
        strata = None
        if frame.strata is not None and "strata" in self.first.depends_on:
            ones = np.empty(len(groups), dtype=np.int64)
            ones[groups.codes] = frame.strata.codes
            crossing = np.unique(groups.codes[ones[groups.codes] != frame.strata.codes])
            if len(crossing):
                raise errors.SurveyError(
                    "clusters-cross-strata",
                    f"{len(crossing):,} clusters have units in more than one stratum, so that a stratum of clusters "
                    "is not defined.",
                    "Form clusters within strata.",
                )
            strata = Groups(frame.strata.labels, ones)
        return Frame(len(groups), strata, None, sizes)

    def _parts(self, frame: Frame, clusters: Sequence[int] | None = None) -> Iterator[_Part]:
        groups = _groups(frame.clusters)
        for cluster in range(len(groups)) if clusters is None else clusters:
            units = groups.members(cluster)
            yield _Part(units, frame.part(units, strata="strata" in self.second.depends_on), self.second)

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        met, codes = np.unique(_groups(frame.clusters).codes[units], return_inverse=True)
        first = self.first._inclusion(self._clusters(frame), met)
        within = _collected(_asked(self._parts(frame, met.tolist()), frame.units, units), len(units))
        # Products are as few as there are different pairs of factors.
        both, places = np.unique(first.codes[codes] * len(within.distinct) + within.codes, return_inverse=True)
        factors = (divmod(pair, len(within.distinct)) for pair in both.tolist())
        return UnitFractions(tuple(first.distinct[a] * within.distinct[b] for a, b in factors), places.astype(np.int64))

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        met, codes = np.unique(_groups(frame.clusters).codes[units], return_inverse=True)
        clusters = self.first._joint(self._clusters(frame), met)
        parts = list(_asked(self._parts(frame, met.tolist()), frame.units, units))
        within = independent_pairs(_collected(parts, len(units)))
        for part, places, inside in parts:
            within[np.ix_(places, places)] = part.design._joint(part.frame, inside)
        return np.asarray(clusters[np.ix_(codes, codes)] * within)

    def _separates(self, frame: Frame) -> bool:
        return self.first._separates(self._clusters(frame)) or any(
            part.design._separates(part.frame) for part in self._parts(frame)
        )

    def _listed(self, frame: Frame, most: int) -> Listed:
        total = 0
        for clusters, chance in self.first._listed(self._clusters(frame), most):
            listed = list(_products(list(self._parts(frame, clusters)), most))
            total += len(listed)
            listable(total, most)
            yield from ((sample, chance * within) for sample, within in listed)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        clusters = np.sort(self.first._drawn(self._clusters(frame), source))
        return _drawn_in(self._parts(frame, clusters.tolist()), source)


def cluster_sample(sample: int) -> TwoStage:
    """A simple random sample of clusters, all units of which are taken."""
    return TwoStage(SimpleRandom(sample))


# -- helpers -----------------------------------------------------------------------------------------------------


def _groups(groups: Groups | None) -> Groups:
    assert groups is not None  # the check looked
    return groups


def _require_part(what: str, design: object) -> None:
    if not isinstance(design, Design):
        raise errors.design_choice(what, f"is {errors.kind_of(design)}", "Give a design, such as SimpleRandom(2)")
    if design.with_replacement:
        raise errors.design_choice(
            what, "draws with replacement, which is offered for whole frames only", "Give a design without replacement"
        )


def _require_fit(parts: Iterator[_Part], number: int, noun: str) -> None:
    failing, first = 0, None
    for part in parts:
        try:
            part.design.check(part.frame)
        except errors.SurveyError as problem:
            failing, first = failing + 1, first or problem
    if first is not None:
        raise errors.parts_do_not_fit(failing, number, noun, first)


def _asked(parts: Iterator[_Part], population: int, units: Units) -> Iterator[tuple[_Part, Units, Units]]:
    """For each part that has some of the ``units``: their places among these, and among the units of the part."""
    place = np.full(population, -1, dtype=np.int64)
    place[units] = np.arange(len(units))
    for part in parts:
        places = place[part.units]
        inside = np.flatnonzero(places >= 0)
        if len(inside):
            yield part, places[inside], inside


def _collected(
    asked: Iterator[tuple[_Part, Units, Units]] | list[tuple[_Part, Units, Units]], units: int
) -> UnitFractions:
    """The inclusion probabilities within parts, put together."""
    codes = np.empty(units, dtype=np.int64)
    seen: dict[Fraction, int] = {}
    for part, places, inside in asked:
        within = part.design._inclusion(part.frame, inside)
        known = np.array([seen.setdefault(value, len(seen)) for value in within.distinct], dtype=np.int64)
        codes[places] = known[within.codes]
    return UnitFractions(tuple(seen), codes)


def _products(parts: list[_Part], most: int) -> Listed:
    """Samples of all parts put together, each part being sampled independently."""
    lists: list[list[tuple[tuple[int, ...], Fraction]]] = []
    for part in parts:
        lists.append(list(part.design._listed(part.frame, most)))
        listable(math.prod(map(len, lists)), most)
    for chosen in itertools.product(*lists):
        units = (int(part.units[i]) for part, (sample, _) in zip(parts, chosen, strict=True) for i in sample)
        yield tuple(sorted(units)), math.prod((p for _, p in chosen), start=Fraction(1))


def _drawn_in(parts: Iterator[_Part], source: RandomSource) -> NDArray[np.integer]:
    drawn = [part.units[part.design._drawn(part.frame, source)] for part in parts]
    return np.concatenate([np.empty(0, dtype=np.int64), *drawn])
