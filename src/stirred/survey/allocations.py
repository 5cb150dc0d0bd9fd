"""How a sample is divided among strata: equally, in proportion to their size, by Neyman's rule, or as given.

Rules give stratum h a share a_h of the sample: 1, N_h, or N_h S_h with the standard deviation S_h in the stratum
(Neyman 1934). Whole numbers that minimise the sum of a_h^2 / n_h, the part of the variance of an estimated total that
an allocation can change, are found exactly: units are given one at a time to the stratum with the largest
a_h^2 / (n (n + 1)), n being what it has (Wright 2012). Keep in mind: standard deviations that were computed from
confidential data make the sampling depend on them, which can lose privacy instead of gaining it (section 6.4.1 of the
thesis; Bun et al. 2022).
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred._shown import brief
from stirred.survey.designs import enough, exact, whole


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
                raise errors.stratum_too_small(str(name), size, count)
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
        raise errors.unknown_strata(unknown)
    missing = sum(name not in numbers for name in strata)
    if missing:
        raise errors.strata_without_number(missing, what)
    return [numbers[name] for name in strata]


def _shared(sample: int, minimum: int, shares: Sequence[Fraction], units: Sequence[int]) -> tuple[int, ...]:
    """The whole numbers of sum ``sample``, from ``minimum`` (or all) to all, with the smallest sum of share^2 / n.

    What a unit more saves in stratum h, a_h^2 / (n (n + 1)), falls as n grows, so that taking the largest saving first
    is best. Savings above any cut are all taken if there are not too many, which spares most of the steps.
    """
    enough(sample, sum(units))
    sizes = [min(minimum, count) for count in units]
    if sum(sizes) > sample:
        raise errors.sample_too_small(sample, len(units), minimum)
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
