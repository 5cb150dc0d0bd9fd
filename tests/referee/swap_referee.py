"""The referee of ``swap``: Algorithm 3.2.1 gone through literally, over every selection and every permutation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
from mpmath import mp, mpf
from referee_harness import Case, claim
from referee_numbers import normal, number

from stirred.loss.curves.swap_laws import derangements
from stirred.swap.law import theorem
from stirred.swap.law.moments import cell_moments, expected_absolute_error, stratum_constants

Record = tuple[int, int]
Table = tuple[Record, ...]


@cache
def deranged(size: int) -> tuple[tuple[int, ...], ...]:
    """The derangements of so many records, found among all their orders."""
    return tuple(one for one in itertools.permutations(range(size)) if all(at != to for at, to in enumerate(one)))


@cache
def permutations(size: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Every permutation that the algorithm can draw, and how many records it moves: selections, then derangements."""
    found = []
    for selected in itertools.chain.from_iterable(itertools.combinations(range(size), k) for k in range(size + 1)):
        for order in deranged(len(selected)):
            moved = list(range(size))
            for at, to in enumerate(order):
                moved[selected[at]] = selected[to]
            found.append((tuple(moved), len(selected)))
    return tuple(found)


def chances(size: int, rate: Fraction) -> list[Fraction]:
    """The probability of one permutation that moves k records: selections of one record are drawn again."""
    selected = [rate**k * (1 - rate) ** (size - k) for k in range(size + 1)]
    kept = 1 - size * selected[1]
    return [Fraction(0) if k == 1 else selected[k] / len(deranged(k)) / kept for k in range(size + 1)]


def law(table: Table, rate: Fraction) -> dict[Table, Fraction]:
    """What can be released, and how likely each is."""
    chance = chances(len(table), rate)
    counts: Counter[tuple[Table, int]] = Counter()
    for order, moved in permutations(len(table)):
        released = tuple(sorted((h, table[to][1]) for (h, _), to in zip(table, order, strict=True)))
        counts[released, moved] += 1
    found: dict[Table, Fraction] = {}
    for (released, moved), count in counts.items():
        found[released] = found.get(released, Fraction(0)) + count * chance[moved]
    return found


def table(case: Case, least: int, most: int) -> Table:
    size = case.whole("size", least, most)
    held, swapped = case.whole("held values", 1, size), case.whole("swapped values", 1, size)
    found = tuple(sorted((int(case.random.integers(held)), int(case.random.integers(swapped))) for _ in range(size)))
    case.say(table=found)
    return found


def rate(case: Case) -> Fraction:
    found = Fraction(case.whole("rate * 200", 1, 199), 200)
    case.say(rate=str(found))
    return found


@claim("swap", cases=350)
def guarantees(case: Case) -> None:
    """No dataset of the universe can be told from another better than epsilon times their distance says."""
    first, p = table(case, 2, 4 if case.number % 4 else 5), rate(case)
    laws = {first: law(first, p)}
    universe = list(laws[first])
    if len(universe) > 30:
        universe = [first, *(universe[int(k)] for k in case.random.choice(len(universe), 29, replace=False))]
    for other in universe:
        laws[other] = law(other, p)
    alike = len({h for h, _ in first}) == 1 or len({s for _, s in first}) == 1
    stated = theorem.epsilon(len(first), p)
    case.holds(sum(laws[first].values()) == 1, "probabilities of this law sum to one")
    # Rounded up as the decimal that it prints as, so that nothing may be above it.
    bound = mp.exp(number(Fraction(repr(stated))))
    for x, y in itertools.permutations(universe, 2):
        if x == y:
            continue
        apart = len(x) - (Counter(x) & Counter(y)).total()
        case.holds(apart >= 2, "two datasets of a universe differ in two records at least")
        for z, chance in laws[x].items():
            case.holds(z in laws[y], "what one can give the other can")
            if not chance <= bound**apart * number(laws[y][z]):
                case.at_most(number(chance), bound**apart * number(laws[y][z]), f"{x} and {y} at {z}")
    if alike:
        case.holds(len(laws[first]) == 1, "records that agree in one column are released as they are")
    elif len(first) >= 4:
        # The lower bound of any guarantee for such strata is not above what is stated.
        case.at_most(theorem.lower_bound(len(first), p), stated, "the lower bound and epsilon")


@claim("swap", cases=900)
def moments_of_cells(case: Case) -> None:
    records, p = table(case, 2, 5), rate(case)
    released = law(records, p)
    constants = stratum_constants([len(records)], p)
    for h, s in {(h, s) for h, _ in records for _, s in records}:
        mean = sum((chance * z.count((h, s)) for z, chance in released.items()), Fraction(0))
        square = sum((chance * z.count((h, s)) ** 2 for z, chance in released.items()), Fraction(0))
        held, swapped = sum(a == h for a, _ in records), sum(b == s for _, b in records)
        found = cell_moments(constants, len(records), held, swapped, records.count((h, s)))
        # Sums of a dozen products of constants of order one, each to a unit or two.
        case.same(float(found[0]), mean, f"mean of {(h, s)}", relative=1e-13, absolute=1e-14)
        case.same(float(found[1]), square - mean**2, f"variance of {(h, s)}", relative=1e-12, absolute=1e-14)


@claim("swap", cases=600)
def records_that_move(case: Case) -> None:
    size, p = case.whole("size", 2, 6), rate(case)
    chance = chances(size, p)
    truth = sum((chance[moved] for order, moved in permutations(size) if order[0] != 0), Fraction(0))
    case.same(theorem.moved_probability(size, p), truth, "the probability that a record moves", relative=1e-13)
    some = sum((chance[moved] for _, moved in permutations(size)), Fraction(0))
    case.holds(some == 1, "all permutations together")
    case.holds(derangements(size) == len(deranged(size)), "the number of derangements")


@claim("swap", cases=800)
def epsilons_and_rates(case: Case) -> None:
    size, p = case.whole("largest stratum", 2, 400), rate(case)
    odds = p / (1 - p)
    exact = mp.log(number(max((size + 1) / odds, odds)))
    stated = theorem.epsilon(size, p)
    # A budget is the decimal that its float prints as; that decimal is not below the truth.
    case.within(exact, number(Fraction(repr(stated))), exact * (1 + mpf(2) ** -50), "Theorem 3.2.4, rounded up")
    smallest = theorem.smallest_epsilon(size)
    case.same(smallest, mp.log(size + 1) / 2, "the smallest epsilon", relative=1e-15)
    case.at_most(smallest, stated, "the smallest epsilon and this one", relative=1e-15)
    best = theorem.best_rate(size)
    at_best = theorem.epsilon(size, Fraction(best))
    case.same(at_best, smallest, "epsilon at the best rate", relative=1e-12)
    wanted = smallest + case.size("above", 1e-3, 10)
    rates = theorem.rates_for(wanted, size)
    case.holds(rates is not None, "rates for an epsilon that can be had")
    low, high = rates or (0.0, 1.0)
    for at in (low, high):
        case.same(theorem.epsilon(size, Fraction(at)), wanted, f"epsilon at {at}", relative=1e-9)
    between = low + (high - low) * case.share("between")
    case.at_most(theorem.epsilon(size, Fraction(between)), wanted, "epsilon between", relative=1e-9)
    case.holds(theorem.rates_for(smallest * 0.999, size) is None or smallest == 0, "no rate for less")


@claim("swap", cases=400)
def absolute_errors(case: Case) -> None:
    mean, variance = case.size("mean", 1e-3, 50), case.size("variance", 1e-3, 1e4)
    sigma = mp.sqrt(mpf(variance))
    z = mpf(mean) / sigma
    truth = sigma * mp.sqrt(2 / mp.pi) * mp.exp(-z * z / 2) + mean * (1 - 2 * normal(-z))
    found = float(np.asarray(expected_absolute_error([mean], [variance]))[0])
    case.same(found, truth, "the mean of the absolute error", relative=1e-12)
    case.at_most(mean, found, "at least the error of the mean", relative=1e-15)
    case.at_most(found, math.hypot(mean, math.sqrt(variance)), "at most its root mean square", relative=1e-15)


CLAIMS = (guarantees, moments_of_cells, records_that_move, epsilons_and_rates, absolute_errors)
