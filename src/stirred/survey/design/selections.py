"""What a sampling design means for one unit: how likely it is taken, and how much else of the sample changes with it.

Amplification by sampling needs two facts about every unit of the frame and nothing else of a design. The first is the
probability that the unit is in the sample. The second is how many records differ, in a best coupling, between a sample
with the unit and one without it: 1 for simple random samples, the size of a cluster for clusters (Balle, Barthe and
Gaboardi 2018, section 3, call the couplings distance-compatible). The invariant: **a design whose probabilities can
change with the data of one unit has no Selection that amplifies**; :func:`data_dependent` says why.

A coupling of the two conditional laws of a design moves probability from samples with the unit to samples
without it. The number wanted is the least k for which all probability can be moved between samples that differ in at
most k records: a flow problem, solved in exact fractions for designs whose samples can be listed.

Samples are sets: theorems are about mechanisms that do not look at the order of the records in a sample.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._fractions import NOT_A_NUMBER, as_fraction

Sample = tuple[int, ...]
"""The numbers of the units of a sample, from 0 on."""


_Node = tuple[str, int]
_Several = TypeVar("_Several", list[Any], Mapping[Any, Any])


def records_changed(design: Mapping[Sample, Fraction], unit: int) -> int:
    """The least number of records, in a coupling, by which samples with the unit and without it differ."""
    taken = {frozenset(s): p for s, p in design.items() if unit in s}
    left = {frozenset(s): p for s, p in design.items() if unit not in s}
    if not taken or not left:
        return 1
    with_unit, without = sum(taken.values(), Fraction(0)), sum(left.values(), Fraction(0))
    supply = [p / with_unit for p in taken.values()]
    demand = [p / without for p in left.values()]
    apart = [[len(s - t) for t in left] for s in taken]
    for most in sorted({distance for row in apart for distance in row}):
        if _can_be_moved(supply, demand, [[distance <= most for distance in row] for row in apart]):
            return most
    raise AssertionError("the largest distance allows every pair")


def _can_be_moved(supply: list[Fraction], demand: list[Fraction], allowed: list[list[bool]]) -> bool:
    """Whether all supply can go to demand along allowed pairs: augmenting paths with exact amounts."""
    start, end = ("start", 0), ("end", 0)
    room: dict[_Node, dict[_Node, Fraction]] = {start: {("s", i): amount for i, amount in enumerate(supply)}, end: {}}
    for i, row in enumerate(allowed):
        room["s", i] = {("t", j): supply[i] for j, may in enumerate(row) if may}
    for j, amount in enumerate(demand):
        room["t", j] = {end: amount}
    while any(room[start].values()):
        came_from, queue = {start: start}, [start]
        for place in queue:
            for step, left in room[place].items():
                if left and step not in came_from:
                    came_from[step] = place
                    queue.append(step)
        if end not in came_from:
            return False
        path = [end]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        edges = [(one, other) for other, one in itertools.pairwise(path)]
        amount = min(room[one][other] for one, other in edges)
        for one, other in edges:
            room[one][other] -= amount
            room[other][one] = room[other].get(one, Fraction(0)) + amount
    return True


Neighbours = Literal["replace", "add or remove"]
"""Frames that are compared: one record has another value, or one is there or not."""

Scheme = Literal["conditional poisson", "sampford"]
SCHEMES = ("conditional poisson", "sampford")

Samples = Mapping[Sample, Any]
"""Every possible sample, as the numbers of its units from 0 on, with its probability."""

MOST_PAIRS = 250_000
"""Pairs of samples among which :func:`listed` looks for a coupling."""

BALLE = "Balle, Barthe and Gaboardi 2018"
BUN = "Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022"
DERIVED = "proved in the docstring of stirred.survey.design.amplification"


@dataclass(frozen=True)
class UnitClass:
    """Units that a design treats alike.

    ``probability`` that such a unit is in the sample (with replacement: that one draw takes it), and ``changed``, the
    number of records in which samples with it and without it differ.
    """

    probability: Fraction
    changed: int = 1


@dataclass(frozen=True)
class Selection:
    """A sampling design as amplification sees it, with the theorem that applies and what it takes for granted.

    ``neighbours`` is the relation between frames that the result is about, and between samples that the guarantee of
    the mechanism on the sample must be about. ``draws`` is the number of draws with replacement, else 0. ``tight``
    says that some mechanism attains the bound for pure differential privacy, ``reason`` why nothing is amplified.
    """

    design: str
    neighbours: Neighbours
    classes: tuple[UnitClass, ...]
    source: str
    conditions: tuple[str, ...]
    tight: bool = True
    draws: int = 0
    reason: str = ""

    @property
    def largest(self) -> Fraction:
        """The largest probability of any unit."""
        return max(one.probability for one in self.classes)

    @property
    def changes_one(self) -> bool:
        """Whether samples with a unit and without it can be paired so that they differ in one record only."""
        return all(one.changed == 1 for one in self.classes)

    def __str__(self) -> str:
        if self.reason:
            return f"{self.design}: no amplification, since {self.reason}"
        return f"{self.design}, neighbours: {self.neighbours} one record ({self.source})"


FIXED_SIZE = "the number of records in the frame and in the sample is public and the same for all frames compared"
INSIDE = "the sample is drawn by the mechanism, and nobody who is to be kept from learning knows who is in it"
UNORDERED = "the mechanism on the sample does not look at the order of its records"
FIXED_PROBABILITIES = "the probabilities are public and do not change when one record of the frame changes"


# -- designs with a theorem ----------------------------------------------------------------------------------


@refuses_wrong_arguments
def simple_random(sampled: int, frame: int) -> Selection:
    """``sampled`` of ``frame`` records, every set of that size equally likely, without replacement.

    Theorem 6.4.1. The sentence before it says *with* replacement; the theorem and its proof are about sampling without.
    """
    return Selection(
        "simple random sampling without replacement",
        "replace",
        (UnitClass(_share(sampled, frame)),),
        f"Theorem 6.4.1; {BALLE}, Theorem 9",
        (FIXED_SIZE, UNORDERED, INSIDE),
    )


@refuses_wrong_arguments
def poisson(probabilities: Iterable[Any]) -> Selection:
    """Every record is taken by a coin of its own; one probability for all of them is Bernoulli sampling.

    With unequal probabilities the worst record is the one most likely taken: given the other coins the proof is the
    same as for equal ones.
    """
    chances = tuple(dict.fromkeys(_probability(one) for one in _some("probabilities", list(probabilities))))
    return Selection(
        "Bernoulli sampling" if len(chances) == 1 else "Poisson sampling",
        "add or remove",
        tuple(UnitClass(one) for one in chances),
        f"{BALLE}, Theorem 8",
        (
            "the mechanism's guarantee on the sample is for one record added or removed: one that holds only where a "
            "record is replaced is not amplified, as it may publish the size of the sample",
            FIXED_PROBABILITIES,
            UNORDERED,
            INSIDE,
            "a replaced record is one removed and one added, and costs twice the result",
        ),
    )


@refuses_wrong_arguments
def with_replacement(draws: int, frame: int, largest: Any = None) -> Selection:
    """``draws`` independent draws of one record from ``frame``; a record drawn twice counts twice.

    ``largest`` is the largest probability of a record at one draw, if draws are by size. The loss can exceed that of
    the mechanism on the sample, as one record of the frame may be several of the sample.
    """
    times, records = _count("The number of draws", draws), _count("The number of records in the frame", frame)
    chance = Fraction(1, records) if largest is None else _probability(largest)
    if chance * records < 1:
        raise errors.parameter_out_of_range("The largest probability of a draw", chance, f"at least 1/{records}")
    return Selection(
        "sampling with replacement",
        "replace",
        (UnitClass(chance),),
        f"{DERIVED}; {BALLE}, Theorem 10 trades a smaller epsilon for a larger delta",
        (FIXED_SIZE, FIXED_PROBABILITIES, UNORDERED, INSIDE),
        draws=times,
    )


@refuses_wrong_arguments
def stratified(strata: Mapping[Any, Sequence[int]]) -> Selection:
    """By stratum, how many records are sampled and how many there are: simple random sampling within each.

    Theorem 6.4.1 applied to the stratum of the record that changes, given the samples of the others. It needs sizes and
    allocation that are public and fixed, and a record that cannot change its stratum.
    """
    shares = tuple(
        dict.fromkeys(_share(*_pair(f"Stratum {name!r}", pair)) for name, pair in _some("strata", strata).items())
    )
    return Selection(
        "stratified simple random sampling",
        "replace",
        tuple(UnitClass(one) for one in shares),
        f"Theorem 6.4.1 within the stratum; {BUN}",
        (
            "the sizes of the strata and of the samples from them are public and do not depend on the data",
            "a record that changes stays in its stratum; if it may move, proportional allocation changes the sample "
            f"sizes, and only adjusted allocations are known to amplify ({BUN}): not built here",
            UNORDERED,
            INSIDE,
        ),
    )


@refuses_wrong_arguments
def clusters(sampled: int, frame: int, size: int) -> Selection:
    """``sampled`` of ``frame`` clusters of ``size`` records each, drawn without replacement and taken as a whole.

    Little is amplified: the whole cluster comes and goes with the record. Section 6.4.1 calls it negligible but for an
    epsilon below 0.5 and clusters of fewer than 15 records; the formula here says how much it is.
    """
    return Selection(
        "cluster sampling",
        "replace",
        (UnitClass(_share(sampled, frame), _count("The size of a cluster", size)),),
        f"{DERIVED}; {BUN} find it negligible in practice",
        (
            "all clusters have the same public size, and a record that changes stays in its cluster",
            FIXED_SIZE,
            UNORDERED,
            INSIDE,
        ),
    )


@refuses_wrong_arguments
def two_stage(within: Mapping[Any, Sequence[int]]) -> Selection:
    """Clusters drawn first, in any way that does not look at the data; then, by cluster, how many of how many records.

    Only the stage at which single records are drawn amplifies (section 6.4.1): given the clusters, it is stratified
    sampling, and mixing over clusters that are drawn alike from both frames adds no loss.
    """
    second = stratified(within)
    return Selection(
        "two-stage sampling",
        "replace",
        second.classes,
        f"Theorem 6.4.1 within the cluster, given the clusters; {BUN}",
        (
            "clusters are drawn with public probabilities that do not depend on the data, and the number of records "
            "taken from each is public",
            "a record that changes stays in its cluster",
            UNORDERED,
            INSIDE,
        ),
        tight=False,
    )


@refuses_wrong_arguments
def by_size(probabilities: Iterable[Any], scheme: Scheme) -> Selection:
    """Fixed-size sampling without replacement with these inclusion probabilities, by conditional Poisson or Sampford.

    Both are strongly Rayleigh (Borcea, Branden and Liggett 2009; Branden and Jonasson 2012), so that samples with a
    record and without it can be paired to differ in one record: the stochastic covering property (Pemantle and Peres
    2014).
    """
    if scheme not in SCHEMES:
        raise errors.unknown_choice("scheme", scheme, SCHEMES)
    chances = [_probability(one) for one in _some("probabilities", list(probabilities))]
    total = sum(chances, Fraction(0))
    if abs(total - round(total)) > Fraction(1, 10**9):
        raise errors.parameter_out_of_range("The sum of the probabilities", float(total), "a whole number")
    return Selection(
        f"sampling proportional to size ({scheme})",
        "replace",
        tuple(UnitClass(one) for one in dict.fromkeys(chances)),
        f"{DERIVED}; Branden and Jonasson 2012 and Pemantle and Peres 2014 for the coupling",
        (
            "sizes are public and not part of the record that is protected: where they are, one record changes all "
            "probabilities, and nothing is amplified",
            FIXED_SIZE,
            UNORDERED,
            INSIDE,
        ),
    )


@refuses_wrong_arguments
def listed(samples: Samples) -> Selection:
    """Any fixed-size design whose samples can be listed; how much changes with a unit is found by pairing samples.

    >>> systematic_sample = listed({(0, 2): "1/2", (1, 3): "1/2"})
    >>> systematic_sample.classes
    (UnitClass(probability=Fraction(1, 2), changed=2),)
    """
    design = checked_samples(samples)
    if len({len(sample) for sample in design}) > 1:
        raise errors.not_a_listed_design("samples differ in size, and neither 'replace' nor a pairing fits them")
    if any(len(set(sample)) < len(sample) for sample in design):
        raise errors.not_a_listed_design(
            "a sample holds a unit twice; draws with replacement have a bound of their own"
        )
    if len(design) ** 2 > MOST_PAIRS:
        raise errors.too_many_samples(len(design) ** 2, MOST_PAIRS)
    classes = dict.fromkeys(
        UnitClass(sum((p for s, p in design.items() if unit in s), Fraction(0)), records_changed(design, unit))
        for unit in sorted({unit for sample in design for unit in sample})
    )
    return Selection(
        "a listed design",
        "replace",
        tuple(classes),
        DERIVED,
        (FIXED_SIZE, FIXED_PROBABILITIES, UNORDERED, INSIDE),
        tight=all(one.changed == 1 for one in classes),
    )


# -- designs without one -------------------------------------------------------------------------------------


def systematic() -> Selection:
    """Every k-th record of an order that others may know, from a random start."""
    return _none(
        "systematic sampling",
        "the possible samples have no record in common, so that the whole sample changes with one record and each "
        "sample is a cluster as large as the sample (section 6.4.1). Only where the mechanism itself puts the frame "
        "into a secret random order is it simple random sampling",
    )


@refuses_wrong_arguments
def data_dependent(what: str = "the allocation") -> Selection:
    """A design that looks at the data it protects, such as Neyman allocation from confidential values."""
    return _none(
        "data-dependent sampling",
        f"{what} depends on the data, so that one record changes how many others are sampled; the loss can be larger "
        f"than without sampling (section 6.4.1; {BUN})",
    )


def _none(design: str, reason: str) -> Selection:
    return Selection(design, "replace", (UnitClass(Fraction(1)),), "section 6.4.1", (), tight=False, reason=reason)


# -- checks --------------------------------------------------------------------------------------------------


def checked_samples(samples: Samples) -> dict[Sample, Fraction]:
    """The samples of positive probability; refused unless the probabilities are exact and sum to one."""
    design: dict[Sample, Fraction] = {}
    for sample, chance in _some("samples", samples).items():
        try:
            units, probability = tuple(operator.index(unit) for unit in sample), as_fraction(chance)
        except NOT_A_NUMBER:
            raise errors.not_a_listed_design("a sample is not a tuple of whole numbers with a probability") from None
        if probability < 0 or any(unit < 0 for unit in units):
            raise errors.not_a_listed_design("a probability or the number of a unit is negative")
        if probability:
            design[units] = probability
    if sum(design.values()) != 1:
        raise errors.not_a_listed_design("the probabilities do not sum to exactly 1; give them as fractions")
    return design


def _share(sampled: int, frame: int) -> Fraction:
    """The share of a frame that is sampled, n/N, checked."""
    records, taken = _count("The size of the frame", frame), _count("The size of the sample", sampled)
    if taken > records:
        raise errors.parameter_out_of_range(
            "The size of the sample", taken, f"at most {records}, the size of the frame"
        )
    return Fraction(taken, records)


def _count(what: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise errors.parameter_out_of_range(what, value, "a whole number of at least 1")
    return number


def _probability(value: Any) -> Fraction:
    try:
        number = as_fraction(value)
    except NOT_A_NUMBER:
        number = Fraction(-1)
    if not 0 < number <= 1:
        raise errors.parameter_out_of_range("A probability of being sampled", value, "above 0 and at most 1")
    return number


def _pair(what: str, pair: Sequence[int]) -> tuple[int, int]:
    if len(pair) != 2:
        raise errors.parameter_out_of_range(what, "not two numbers", "(records sampled, records in the frame)")
    return pair[0], pair[1]


def _some(what: str, values: _Several) -> _Several:
    if not values:
        raise errors.parameter_out_of_range(f"The list of {what}", "empty", "one or more")
    return values
