"""What is publicly known about the weights of a sample, and the worst weights that it allows.

Known are either the weights themselves, with the number of records that have each (a published design), or bounds of a
weight, of the number of records, and of the sum of all weights, which is the size of the population up to rounding.

With n weights in [lower, upper] and the sum N, a sum of one convex function of each weight is largest where all but one
stand at the ends: k = floor((N - n lower) / (upper - lower)) at the upper one, one in between, the others at the lower
one. These weights majorise all others, so that they are the worst for all such functions at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from stirred import errors
from stirred.spec.exact import written
from stirred.survey.facts import number

Classes = tuple[tuple[Fraction, int], ...]
"""Weights, and the number of records that have each, from the largest weight to the smallest."""


@dataclass(frozen=True)
class PublicWeights:
    """Bounds of the weights of a sample and of their sum, all of them public.

    ``fewest`` and ``most`` are the numbers of records that the sample may have. The sum of the weights differs from
    ``population`` by at most ``slack``.

    >>> PublicWeights(1, 10, population=100, fewest=40, most=40).worst
    (((Fraction(10, 1), 6), (Fraction(7, 1), 1), (Fraction(1, 1), 33)),)
    """

    lower: Fraction
    upper: Fraction
    population: Fraction
    fewest: int
    most: int
    slack: Fraction = Fraction(0)
    classes: Classes = ()
    """Where the weights themselves are public; see :meth:`listed`."""

    def __post_init__(self) -> None:
        for name, what in (
            ("lower", "The lower bound of weights"),
            ("upper", "The upper bound of weights"),
            ("population", "The size of the population"),
            ("slack", "The slack of the sum of weights"),
        ):
            if getattr(self, name) is None:
                raise errors.survey_bounds_missing(f"{what[0].lower()}{what[1:]}")
            object.__setattr__(self, name, number(getattr(self, name), what))
        for name in ("fewest", "most"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise errors.survey_fact("The number of records in a sample", "is a whole number, at least 1")
        if not 0 < self.lower <= self.upper:
            raise errors.weight_facts("bounds of weights are positive, the lower one first")
        if self.population <= 0 or self.slack < 0:
            raise errors.weight_facts("the population is positive, and the slack is not negative")
        if self.fewest > self.most:
            raise errors.weight_facts("the fewest records are more than the most")
        low, high = self.records
        if low > high:
            raise errors.weight_facts(
                f"{self.fewest:,} to {self.most:,} weights from {written(self.lower)} to {written(self.upper)} do not "
                f"add up to {written(self.population)}"
            )

    @classmethod
    def listed(cls, weights: Iterable[tuple[Any, int]]) -> PublicWeights:
        """Public weights themselves: pairs of a weight and the number of records that have it.

        In a stratified sample they are N/n and n of each stratum. Published classes of weights may be given by their
        upper ends: what is said of cuts is then an upper bound.

        >>> known = PublicWeights.listed([(12, 4000), (60, 800), ("900.5", 3)])
        >>> known.most, known.population, known.upper
        (4803, Fraction(197403, 2), Fraction(1801, 2))
        """
        found: dict[Fraction, int] = {}
        for weight, records in weights:
            if type(records) is not int or records < 0:
                raise errors.survey_fact("The number of records with a weight", "is a whole number, at least 0")
            given = number(weight, "A weight")
            if records:
                found[given] = found.get(given, 0) + records
        if not found:
            raise errors.weight_facts("no weight is listed")
        classes = tuple(sorted(found.items(), reverse=True))
        records, total = sum(found.values()), sum((weight * count for weight, count in classes), Fraction(0))
        return cls(min(found), max(found), total, records, records, classes=classes)

    @property
    def records(self) -> tuple[int, int]:
        """The fewest and the most records whose weights can add up to the population within their bounds."""
        return (
            max(self.fewest, math.ceil((self.population - self.slack) / self.upper)),
            min(self.most, math.floor((self.population + self.slack) / self.lower)),
        )

    @cached_property
    def worst(self) -> tuple[Classes, ...]:
        """The weights that are the worst for any cut or shrinking: the listed ones, or those at the ends.

        Where the number of records or the sum of the weights is not exactly known, there are several. More weight in
        fewer records is the worst for what is above a level; less weight in more records for what is below it.
        """
        if self.classes:
            return (self.classes,)
        low, high = self.records
        smallest, largest = self.population - self.slack, self.population + self.slack
        full = min(max(math.ceil(largest / self.upper), low), high)
        found = [
            _at_ends(full, min(largest, full * self.upper), self.lower, self.upper),
            _at_ends(high, max(smallest, high * self.lower), self.lower, self.upper),
        ]
        if full > low:  # one record less, all at the upper bound
            found.append(_at_ends(full - 1, (full - 1) * self.upper, self.lower, self.upper))
        return tuple(dict.fromkeys(found))

    @cached_property
    def unit(self) -> int:
        """How many parts of 1 all worst weights are whole multiples of."""
        return math.lcm(*{weight.denominator for classes in self.worst for weight, _ in classes})

    def most_above(self, level: Any, records: int | None = None) -> Fraction:
        """The largest possible sum of (weight - level) over weights above a level, of at most so many records.

        >>> PublicWeights(1, 10, population=100, fewest=40, most=40).most_above(8)
        Fraction(12, 1)
        """
        return self._most(level, 1, records)

    def most_below(self, level: Any, records: int | None = None) -> Fraction:
        """The largest possible sum of (level - weight) over weights below a level, of at most so many records."""
        return self._most(level, -1, records)

    def _most(self, level: Any, sign: int, records: int | None) -> Fraction:
        given = number(level, "A level of weights")
        unit = math.lcm(self.unit, given.denominator)
        at = int(given * unit)
        return Fraction(self.largest_sum(lambda weight: max(sign * (weight - at), 0), unit, records), unit)

    def largest_sum(self, change: Callable[[int], int], unit: int, records: int | None = None) -> int:
        """The largest sum of a function of the weights, over all records or the at most so many where it is largest.

        The function gets weights times ``unit``, a multiple of :attr:`unit`. It is convex, and either never falls, is
        not above 0 at 0 and not below 0 at the upper bound, or never rises and is not below 0 at the lower bound. With
        listed weights it may be any function.
        """
        return max(_largest(classes, change, unit, records) for classes in self.worst)


def _at_ends(records: int, total: Fraction, lower: Fraction, upper: Fraction) -> Classes:
    """Weights with this sum of which all but one stand at the ends."""
    if lower == upper:
        return ((upper, records),)
    at_upper, rest = divmod(total - records * lower, upper - lower)
    between = 1 if rest else 0
    found = ((upper, int(at_upper)), (lower + rest, between), (lower, records - int(at_upper) - between))
    return tuple((weight, count) for weight, count in found if count)


def _largest(classes: Classes, change: Callable[[int], int], unit: int, records: int | None) -> int:
    changes = [(change(weight.numerator * (unit // weight.denominator)), count) for weight, count in classes]
    if records is None:
        return sum(by * count for by, count in changes)
    total, left = 0, records
    for by, count in sorted(changes, reverse=True):
        if by <= 0 or not left:
            break
        total, left = total + by * min(count, left), left - min(count, left)
    return total
