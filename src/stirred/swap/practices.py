"""What other swappers do and the theorem does not cover: the exact loss of each on a small example, by enumeration.

An example is a few households of one stratum in all files that agree on the published counts, and a practice is the law
of the released table for each of these files. Held values are written as numbers, swap values as letters. Beside every
practice stands the swap of this package on the same households: its exact loss is never above the theorem's epsilon.

>>> print(practice("unique-in-county"))
unique-in-county        5.50   4.31   7.32   1.331 times the bound
  0B 0B 1A 1A is released from 0A 0A 1B 1B with probability 7.69e-08, from 0A 0B 1A 1B with 19/108
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from stirred import errors
from stirred.spec import FiniteMechanism
from stirred.spec.order.finite_mechanisms import Loss
from stirred.swap.enumeration import swap_flavor
from stirred.swap.guarantee import epsilon_of_rates
from stirred.swap.practice_laws import (
    File,
    Law,
    best_of,
    deranged,
    fixed_number,
    lone_dropped,
    lone_kept,
    lone_partnered,
    name_of,
    paired,
    reselected,
    tables,
    with_log,
    with_nearest,
)

LOW, HALF, HIGH = Fraction("0.02"), Fraction("0.5"), Fraction("0.98")


@dataclass(frozen=True)
class Practice:
    """One practice on one example.

    ``practised`` gives the law of what is released from a file. ``rates`` are those of this package's swap on the same
    households, slot by slot; ``scores`` says whether households also have a score that is not released.
    """

    name: str
    title: str
    held: str
    swapped: str
    rates: tuple[Fraction, ...]
    practised: Callable[[File], Law]
    scores: str = ""

    @cached_property
    def files(self) -> tuple[File, ...]:
        """All files with these counts of held and of swap values."""
        orders = itertools.permutations(self.swapped)
        return tuple(sorted({tuple(sorted(zip(self.held, order, strict=True))) for order in orders}))

    @cached_property
    def theorem(self) -> float:
        """Epsilon of this package's swap, by the theorem."""
        return epsilon_of_rates([(rate, len(self.held)) for rate in self.rates])

    @cached_property
    def own(self) -> Loss:
        """The exact loss of this package's swap."""
        return self._loss(lambda file: tables(file, deranged(reselected(self.rates))), with_scores=False)

    @cached_property
    def loss(self) -> Loss:
        """The exact loss of the practice."""
        return self._loss(self.practised, with_scores=bool(self.scores))

    @property
    def times(self) -> float:
        """How many times the theorem's epsilon the practice loses."""
        return self.loss.number / self.theorem

    def chance(self, file: str, released: str) -> Fraction:
        """The probability that the practice releases this table from this file, both written by their names."""
        return self._law(file).get(released, Fraction(0))

    @cached_property
    def witness(self) -> tuple[str, str, str]:
        """A released table, and two files that it tells apart most for their distance."""
        pair = self.loss.worst
        assert pair is not None  # every example has two different files
        laws = [self._law(name) for name in (pair.first, pair.second)]
        outputs = sorted(set(laws[0]) | set(laws[1]))
        return max(outputs, key=lambda output: _apart(*(law.get(output, Fraction(0)) for law in laws))), *(
            pair.first, pair.second,
        )  # fmt: skip

    def __str__(self) -> str:
        lost = self.loss.number
        said = "no bound holds" if math.isinf(lost) else f"{self.times:.3f} times the bound"
        released, *files = self.witness
        first, second = (f"from {file} with {_chance(self.chance(file, released))}" for file in files)
        return (
            f"{self.name:<24}{self.theorem:<7.2f}{self.own.number:<7.2f}{lost:<7.2f}{said}\n"
            f"  {released} is released {first.replace('with', 'with probability')}, {second}"
        )

    def _law(self, file: str) -> Law:
        return self.practised({name_of(one): one for one in self._files(bool(self.scores))}[file])

    def _files(self, with_scores: bool) -> tuple[File, ...]:
        if not with_scores:
            return self.files
        given = list(itertools.product(self.scores, repeat=len(self.held)))
        found = {_scored(file, scores) for file in self.files for scores in given}
        return tuple(sorted(found))

    def _loss(self, law: Callable[[File], Law], *, with_scores: bool) -> Loss:
        files = {name_of(file): file for file in self._files(with_scores)}
        listed = {
            name: [dict(zip(("held", "swapped", "score"), record, strict=False)) for record in file]
            for name, file in files.items()
        }
        return FiniteMechanism.of({name: law(file) for name, file in files.items()}).loss(swap_flavor(), listed)


def practice(name: str) -> Practice:
    """The practice of this name."""
    named = {one.name: one for one in PRACTICES}
    if name not in named:
        raise errors.parameter_out_of_range("name", name, f"one of {', '.join(named)}")
    return named[name]


def _by_count(file: File, *, unique: Fraction, others: Fraction) -> list[Fraction]:
    """Rates by whether a record is the only one of its held value at its place."""
    counts = Counter(file)
    return [unique if counts[one] == 1 else others for one in file]


def _merged_where_places_are_alike(file: File) -> Law:
    """Held values are match values: strata are merged if one has a single swap value, and swapped at 2% then."""
    strata = [{one[1] for one in file if one[0] == value} for value in sorted({one[0] for one in file})]
    if any(len(places) == 1 for places in strata):
        return tables(file, deranged(reselected([LOW] * len(file))))
    return {name_of(file): Fraction(1)}  # records of one stratum share all that is held, so nothing can change


def _by_score(file: File) -> Law:
    """Rates by a score that is not released."""
    rates = [HIGH if one[2] == "+" else LOW for one in file]
    return tables(file, deranged(reselected(rates)))


PRACTICES: tuple[Practice, ...] = (
    Practice(
        "score-from-outside", "rates by a score that is not released",
        "01", "AB", (LOW, LOW), _by_score, scores="-+",
    ),
    Practice(
        "unique-in-county", "higher rates for records that are unique at their place",
        "0011", "AABB", (LOW,) * 4,
        lambda file: tables(file, deranged(reselected(_by_count(file, unique=HALF, others=LOW)))),
    ),
    Practice(
        "k-anonymity", "records that are unique at their place must move",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected(_by_count(file, unique=Fraction(1), others=LOW)))),
    ),
    Practice(
        "forced", "some records must move (rate 1)",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected([LOW, LOW, Fraction(1)]))),
    ),
    Practice(
        "frozen", "some records must stay (rate 0) among others that move",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected([LOW, LOW, Fraction(0)]))),
    ),
    Practice(
        "nearest-donor", "the partner is the nearest household elsewhere",
        "001", "ABC", (LOW,) * 3,
        lambda file: tables(file, with_nearest(file, LOW)),
    ),
    Practice(
        "lone-dropped", "a record that is selected alone stays",
        "0123", "ABCD", (LOW, LOW, HIGH, HIGH),
        lambda file: tables(file, deranged(lone_dropped([LOW, LOW, HIGH, HIGH]))),
    ),
    Practice(
        "lone-kept", "a record that is selected alone waits for another",
        "01", "AB", (Fraction("0.8"),) * 2,
        lambda file: tables(file, deranged(lone_kept([Fraction("0.8")] * 2))),
    ),
    Practice(
        "lone-partnered", "a record that is selected alone gets a partner",
        "0123", "ABCD", (Fraction("0.001"),) * 4,
        lambda file: tables(file, deranged(lone_partnered([Fraction("0.001")] * 4))),
    ),
    Practice(
        "fixed-number", "exactly so many records move",
        "0123", "ABCD", (HALF,) * 4,
        lambda file: tables(file, deranged(fixed_number(4, 2))),
    ),
    Practice(
        "pairs-only", "records exchange two by two",
        "012", "ABC", (LOW,) * 3,
        lambda file: tables(file, paired([LOW] * 3)),
    ),
    Practice(
        "merge-by-place", "matches are made coarser where a stratum has one place",
        "0011", "AABB", (LOW,) * 4, _merged_where_places_are_alike,
    ),
    Practice(
        "best-of-five", "five draws, and the one that changes least is released",
        "01", "AB", (LOW, LOW),
        lambda file: best_of(5, file, deranged(reselected([LOW, LOW]))),
    ),
    Practice(
        "published-log", "which records moved is published",
        "01", "AB", (LOW, LOW),
        lambda file: with_log(file, deranged(reselected([LOW, LOW]))),
    ),
)  # fmt: skip
"""Each with its example. Rates are 2% where nothing else is said."""


# -- helpers -------------------------------------------------------------------------------------------------


def _scored(file: File, scores: Iterable[str]) -> File:
    return tuple(sorted((*record, score) for record, score in zip(file, scores, strict=True)))


def _apart(one: Fraction, other: Fraction) -> float:
    """How far apart two probabilities are, as an absolute log ratio."""
    if not one and not other:
        return 0.0
    return abs(math.log(one / other)) if one and other else math.inf


def _chance(chance: Fraction) -> str:
    """A short fraction as it is, a long one as a decimal number that is not rounded to 1."""
    if chance.denominator < 10_000:
        return str(chance)
    return f"1 - {float(1 - chance):.4g}" if chance > Fraction("0.9999") else f"{float(chance):.4g}"
