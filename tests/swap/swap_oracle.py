"""Swapping by brute force: one stratum, every permutation, exact fractions.

An oracle for the closed forms of ``stirred.swap``. It follows Algorithm 3.2.1 literally and shares no code
with the package; even derangements are counted, not computed. A dataset is a tuple of records ``(h, s)``; a
table C(x) is the same tuple sorted, since the order of the rows is never released.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = tuple[int, int]
Table = tuple[Record, ...]
Counts = tuple[int, ...]
"""How many permutations with 0, 1, ..., n moved records lead from one table to another."""

PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "swapping.json").read_text(encoding="utf-8")
)


def rounds_to(value: float, printed: str) -> bool:
    """Whether ``value`` is within half a unit of the last digit that was printed."""
    if math.isinf(value) or printed == "inf":
        return value == float(printed)
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return abs(Decimal(value) - Decimal(printed)) <= Decimal((0, (5,), exponent - 1))


@cache
def permutations(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All n! permutations as rows, and the number of records that each one moves."""
    every = np.array(list(itertools.permutations(range(n))), dtype=np.int64).reshape(math.factorial(n), n)
    return every, np.count_nonzero(every != np.arange(n), axis=1)


@cache
def derangements_by_counting(k: int) -> int:
    return int(np.count_nonzero(permutations(k)[1] == k))


@cache
def permutation_law(n: int, rate: Fraction) -> tuple[Fraction, ...]:
    """P(sigma = g) for one g that moves k records, k = 0..n: select, re-select if one alone, then derange."""
    selected = [math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]
    kept = 1 - selected[1]
    # A set of k selected records has one of C(n, k) positions and one of d(k) derangements.
    return tuple(
        Fraction(0) if k == 1 else share / math.comb(n, k) / derangements_by_counting(k) / kept
        for k, share in enumerate(selected)
    )


def moved_probability_by_enumeration(n: int, rate: Fraction) -> Fraction:
    """P(sigma(0) != 0), summed over all permutations."""
    every, moved = permutations(n)
    law = permutation_law(n, rate)
    return sum((law[k] for k in moved[every[:, 0] != 0]), start=Fraction(0))


def outcome_counts(table: Table) -> dict[Table, Counts]:
    """For every reachable table, by how many permutations with k moved records it is reached."""
    n = len(table)
    every, moved = permutations(n)
    held, swapped = np.array(table, dtype=np.int64).T
    base = int(swapped.max()) + 1
    # Row i keeps its h and receives the s of row sigma(i); sorting the rows forgets their order.
    codes = np.sort(held * base + swapped[every], axis=1)
    keys = codes @ (int(codes.max()) + 1) ** np.arange(n)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    counts = np.zeros((len(first), n + 1), dtype=np.int64)
    np.add.at(counts, (which, moved), 1)
    return {
        tuple((int(code) // base, int(code) % base) for code in codes[row]): tuple(map(int, counts[index]))
        for index, row in enumerate(first)
    }


def released_law(table: Table, rate: Fraction) -> dict[Table, Fraction]:
    """P(C(Z) = z) for every z that can be released from this dataset."""
    law = permutation_law(len(table), rate)
    return {z: _probability(counts, law) for z, counts in outcome_counts(tuple(sorted(table))).items()}


def cell_moments_by_enumeration(table: Table, cell: Record, rate: Fraction) -> tuple[Fraction, Fraction]:
    """Exact mean and variance of one released cell."""
    law = released_law(table, rate)
    mean = sum((chance * z.count(cell) for z, chance in law.items()), start=Fraction(0))
    square = sum((chance * z.count(cell) ** 2 for z, chance in law.items()), start=Fraction(0))
    return mean, square - mean**2


def universe(held_totals: Sequence[int], swapped_totals: Sequence[int]) -> list[Table]:
    """Every table with these margins, found without permuting anything."""
    return sorted(tuple(sorted(table)) for table in _fill(tuple(held_totals), tuple(swapped_totals)))


def distance(x: Table, other: Table) -> int:
    """d_HamS: how many records of ``x`` must change to give ``other``, in whatever order (equation A.3)."""
    return len(x) - (Counter(x) & Counter(other)).total()


def exact_loss(held_totals: Sequence[int], swapped_totals: Sequence[int], rate: Fraction) -> float:
    """The smallest epsilon of this universe: max |ln P_x(z)/P_x'(z)| / d_HamS(x, x'), or 0."""
    counts, distances = _universe_counts(tuple(held_totals), tuple(swapped_totals))
    law = permutation_law(sum(held_totals), rate)
    logs = np.array([[_log(_probability(c, law)) for c in row] for row in counts])
    worst = 0.0
    for x in range(len(logs)):
        with np.errstate(invalid="ignore"):
            # Outputs impossible from both sides compare -inf with -inf: the convention 0/0 = 1.
            ratios = np.nan_to_num(np.abs(logs[x] - logs), nan=0.0, posinf=math.inf).max(axis=1)
        others = distances[x] > 0
        if others.any():
            worst = max(worst, float((ratios[others] / distances[x][others]).max()))
    return worst


def worst_difference(logs: NDArray[np.float64], between: NDArray[np.integer]) -> float:
    """The largest difference of two files' log probabilities of an outcome, per unit of their distance; infinite where
    only one of the two can lead to it. ``logs`` are by file and outcome."""
    worst = 0.0
    for x in range(len(logs)):
        others = between[x] > 0
        if others.any():
            with np.errstate(invalid="ignore"):
                ratios = np.nan_to_num(np.abs(logs[x] - logs[others]), nan=0.0, posinf=math.inf).max(axis=1)
            worst = max(worst, float((ratios / between[x][others]).max()))
    return worst


def exact_loss_all_distinct(n: int, rate: Fraction) -> float:
    """``exact_loss`` when no two records share an h or an s: then tables are permutations of each other.

    Only the numbers of records moved matter, so the triples (from x, from x', distance) are collected once.
    """
    law = permutation_law(n, rate)
    return max(abs(math.log(law[k] / law[other])) / between for k, other, between in _moved_triples(n) if between > 0)


def partitions(n: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways of writing n as a non-increasing sum: every margin up to the names of its categories."""
    if n == 0:
        yield ()
    for first in range(min(n, n if largest is None else largest), 0, -1):
        for rest in partitions(n - first, first):
            yield (first, *rest)


@cache
def _universe_counts(
    held_totals: tuple[int, ...], swapped_totals: tuple[int, ...]
) -> tuple[list[list[Counts]], NDArray[np.int64]]:
    tables = universe(held_totals, swapped_totals)
    none: Counts = (0,) * (sum(held_totals) + 1)
    counts = []
    for table in tables:
        reached = outcome_counts(table)
        counts.append([reached.get(z, none) for z in tables])
    distances = np.array([[distance(x, other) for other in tables] for x in tables], dtype=np.int64)
    return counts, distances


@cache
def _moved_triples(n: int) -> frozenset[tuple[int, int, int]]:
    every, moved = permutations(n)
    triples: set[tuple[int, int, int]] = set()
    for g, between in zip(every, moved, strict=True):
        other = np.count_nonzero(g[every] != np.arange(n), axis=1)
        for code in np.unique(moved * (n + 1) + other):
            triples.add((int(code) // (n + 1), int(code) % (n + 1), int(between)))
    return frozenset(triples)


def _fill(held_totals: tuple[int, ...], swapped_totals: tuple[int, ...], h: int = 0) -> Iterator[Table]:
    if not held_totals:
        yield ()
        return
    for row in _rows(held_totals[0], swapped_totals):
        left = tuple(total - count for total, count in zip(swapped_totals, row, strict=True))
        records = tuple((h, s) for s, count in enumerate(row) for _ in range(count))
        for rest in _fill(held_totals[1:], left, h + 1):
            yield records + rest


def _rows(total: int, caps: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not caps:
        if total == 0:
            yield ()
        return
    for count in range(min(total, caps[0]) + 1):
        for rest in _rows(total - count, caps[1:]):
            yield (count, *rest)


@cache
def _probability(counts: Counts, law: tuple[Fraction, ...]) -> Fraction:
    return sum((count * chance for count, chance in zip(counts, law, strict=True)), start=Fraction(0))


@cache
def _log(probability: Fraction) -> float:
    return math.log(probability) if probability else -math.inf


def to_other_places(file: Sequence[Sequence[Any]], rates: Sequence[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """The selected exchange so that all of them change places; selections that do not allow it are made afresh."""
    slots = range(len(file))
    moved = {
        order: tuple(i for i in slots if order[i] != i)
        for order in itertools.permutations(slots)
        if all(order[i] == i or file[order[i]][1] != file[i][1] for i in slots)
    }
    chances = {
        chosen: math.prod((rates[i] if i in chosen else 1 - rates[i] for i in slots), start=Fraction(1))
        for chosen in set(moved.values())
    }
    ways, kept = Counter(moved.values()), sum(chances.values())
    return {order: chances[chosen] / ways[chosen] / kept for order, chosen in moved.items()}
