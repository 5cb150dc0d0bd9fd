"""What swapping does to two records of a stratum: the law that all curves of the Permutation Swapping Algorithm share.

A stratum has two records with rates p and q, and others. Each is selected independently; if exactly one was selected
the stratum is selected afresh, and the selected are deranged uniformly. Two files are compared in which the two records
have their swap values exchanged. With M the number of others that are selected, d(k) the derangements of k records and
D = P(not exactly one selected), everything that tells the files apart is, in one file and in the other,

    both keep their own value               (1-p)(1-q) P(M = m) / D       p q P(M = m) d(m) / (d(m+2) D)       m != 1
    the first keeps, the second moves       (1-p) q P(M = m) / D          p q P(M = m) d(m+1) / (d(m+2) D)     m >= 1
    the second keeps, the first moves       p (1-q) P(M = m) / D          the same                             m >= 1

and the same three with the files exchanged, where the two records have each other's value, or one of them has. All else
is equally likely in both. The number of permutations of each kind, such as C(n-2, m) d(m) where both keep their own
value and all have one rate, cancels against the probability of one of them. M is binomial, or a sum of binomials where
rates differ. docs/semantics.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.errors import parameter_out_of_range
from stirred.loss.argument_checks import whole

signal = later("scipy.signal")

Array = NDArray[np.float64]

REMAINDER = 1e-12
"""Probability that stands for what a window leaves out, which is much less, and for what floats round."""

OMITTED = 1e-20
"""Probability of the numbers of selected records that are left out on each side of a window, at most."""

_WHOLE = 400
"""Up to so many records none is left out."""
_UNDERFLOW = 1e-290
_FEW = 30
"""From so many moved records on, d(k-1)/d(k) is 1/k and d(k-2)/d(k) is 1/(k(k-1)) to all digits of a float."""

Rates = tuple[tuple[Fraction, int], ...]
"""How many records have which rate."""


@dataclass(frozen=True, eq=False)
class Selected:
    """The number of records that are selected: P(M = first + i) = chances[i], and hardly anything elsewhere."""

    first: int
    chances: Array
    remainder: float = 0.0
    """What is to be added for what is left out or rounded; 0 where every number is there, in full precision."""

    @property
    def numbers(self) -> Array:
        """The numbers of selected records, as floats."""
        return self.first + np.arange(len(self.chances), dtype=np.float64)

    def at(self, number: int) -> float:
        """P(M = number); 0 outside the window."""
        inside = 0 <= number - self.first < len(self.chances)
        return float(self.chances[number - self.first]) if inside else 0.0


@dataclass(frozen=True, eq=False)
class PairLaw:
    """The law of two records of one stratum, in the words of the module."""

    first: Fraction
    second: Fraction
    others: int
    selected: Selected

    @cached_property
    def kept(self) -> float:
        """D: the probability that not exactly one record is selected."""
        p, q = float(self.first), float(self.second)
        none, one = self.selected.at(0), self.selected.at(1)
        return 1 - (1 - p) * (1 - q) * one - (p * (1 - q) + q * (1 - p)) * none

    def families(self) -> Iterator[tuple[Array, Array]]:
        """The three kinds of outcomes of the module: probabilities by m in one file, and in the other."""
        p, q, kept = float(self.first), float(self.second), self.kept
        numbers, chances = self.selected.numbers, self.selected.chances
        stay = numbers != 1
        yield (
            (float((1 - self.first) * (1 - self.second)) / kept) * chances[stay],
            (p * q / kept) * chances[stay] * two_fewer(numbers[stay]),
        )
        some = numbers >= 1
        moved = (p * q / kept) * chances[some] * one_fewer(numbers[some])
        yield (float((1 - self.first) * self.second) / kept) * chances[some], moved
        yield (float((1 - self.second) * self.first) / kept) * chances[some], moved

    @cached_property
    def largest_log_ratio(self) -> float:
        """The largest logarithm of a likelihood ratio between the two files; infinite at rates 0 and 1."""
        if {self.first, self.second} & {0, 1}:
            return math.inf
        odds, other = (math.log(rate / (1 - rate)) for rate in (self.first, self.second))
        found = []
        for number in {0, 2, 3, self.others} if self.others != 1 else {0}:
            if number <= self.others:
                found.append(odds + other + math.log(float(two_fewer(np.array([float(number)]))[0])))
        for number in {1, self.others} if self.others else set():
            shared = math.log(float(one_fewer(np.array([float(number)]))[0]))
            found += [odds + shared, other + shared]
        return max(map(abs, found))

    # -- what happens to the two records, whatever the others do ---------------------------------------------

    @cached_property
    def both_stay(self) -> float:
        """A: the probability that both keep their own value."""
        return float((1 - self.first) * (1 - self.second)) * (1 - self.selected.at(1)) / self.kept

    @cached_property
    def one_stays(self) -> float:
        """B: the probability that the first keeps its own value and the second does not."""
        return float((1 - self.first) * self.second) * (1 - self.selected.at(0)) / self.kept

    @cached_property
    def both_move(self) -> float:
        """S2: the probability that both move."""
        return float(self.first * self.second) / self.kept

    @cached_property
    def exchanged(self) -> float:
        """T: the probability that each receives the other's value."""
        shares = two_fewer(self.selected.numbers)
        return self.both_move * float(math.fsum(self.selected.chances * shares))

    @cached_property
    def chained(self) -> float:
        """C: the probability that the first receives from the second, and not the other way round."""
        shares = one_fewer(self.selected.numbers)
        return self.both_move * float(math.fsum(self.selected.chances * shares))


@lru_cache(maxsize=1024)
def pair_law(first: Fraction, second: Fraction, others: Rates) -> PairLaw:
    """The law of two records with these rates, among others."""
    return PairLaw(first, second, sum(many for _, many in others), _selected(others))


def equal_rates(size: int, rate: Fraction) -> PairLaw:
    """The law of two records of a stratum of ``size`` records that all have one rate."""
    return pair_law(rate, rate, ((rate, size - 2),) if size > 2 else ())


def checked_rate(rate: Fraction | float | str) -> Fraction:
    """A swap rate as a fraction, between 0 and 1."""
    try:
        found = Fraction(str(rate)) if isinstance(rate, float) else Fraction(rate)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise parameter_out_of_range("rate", "not a number", "between 0 and 1") from None
    if not 0 <= found <= 1:
        raise parameter_out_of_range("rate", float(found), "between 0 and 1")
    return found


def checked_size(size: int) -> int:
    """The number of records of a stratum that a swap can change."""
    return whole("size", size, "a whole number from 2 on", 2, 10**15)


# -- derangements --------------------------------------------------------------------------------------------


def derangements(k: int) -> int:
    """d(k), the number of permutations of k records that leave none in place: d(k) = k d(k-1) + (-1)^k (B.4).

    >>> [derangements(k) for k in range(8)]
    [1, 0, 1, 2, 9, 44, 265, 1854]
    """
    if k < 0:
        raise ValueError(f"there is no derangement of {k} records")
    count = 1
    for size in range(1, k + 1):
        count = size * count + (-1 if size % 2 else 1)
    return count


_COUNTS = [derangements(k) for k in range(_FEW + 2)]
_ONE_FEWER = np.array([float(Fraction(_COUNTS[m + 1], _COUNTS[m + 2])) for m in range(_FEW)])
_TWO_FEWER = np.array([float(Fraction(_COUNTS[m], _COUNTS[m + 2])) for m in range(_FEW)])


def one_fewer(numbers: Array) -> Array:
    """d(m+1)/d(m+2) for each m."""
    few = numbers < _FEW
    return np.where(few, _ONE_FEWER[np.where(few, numbers, 0).astype(np.int64)], 1 / (numbers + 2))


def two_fewer(numbers: Array) -> Array:
    """d(m)/d(m+2) for each m."""
    few = numbers < _FEW
    return np.where(few, _TWO_FEWER[np.where(few, numbers, 0).astype(np.int64)], 1 / ((numbers + 1) * (numbers + 2)))


# -- how many are selected -----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _selected(others: Rates) -> Selected:
    parts = [_binomial(many, rate) for rate, many in others if many] or [Selected(0, np.ones(1))]
    found, *rest = parts
    for part in rest:
        chances = np.maximum(signal.convolve(found.chances, part.chances), 0.0)
        found = Selected(found.first + part.first, chances / chances.sum(), REMAINDER)
    return found


def _binomial(many: int, rate: Fraction) -> Selected:
    """Binomial probabilities near the mean. What is left out is at most ``OMITTED`` on each side, by the inequality of
    Bernstein; the rest follows from the quotients of neighbours, which are exact, and sums to one."""
    if rate in (0, 1):
        return Selected(many * int(rate), np.ones(1))
    p, log_odds = float(rate), math.log(rate / (1 - rate))
    least, most = 0, many
    if many > _WHOLE:
        share = -math.log(OMITTED)
        reach = share / 3 + math.sqrt(share**2 / 9 + 2 * share * many * p * (1 - p))
        least, most = max(0, math.floor(many * p - reach)), min(many, math.ceil(many * p + reach))
    numbers = np.arange(least + 1, most + 1, dtype=np.float64)
    logs = np.append(0.0, np.cumsum(np.log((many + 1 - numbers) / numbers) + log_odds))
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    rest = 0.0 if bool(np.all(chances > 0)) else _UNDERFLOW
    return Selected(least, chances, rest if least == 0 and most == many else REMAINDER)
