"""Swapping at different rates by brute force: one stratum, every permutation, exact fractions.

An oracle that shares no code with the package. Slots are records with what is held, each with its rate; swap values
move between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from swap_oracle import derangements_by_counting, distance, permutations, universe, worst_difference

Law = dict[int, Fraction]
"""The probability of each set of moved slots, as a bit mask."""


def _subset(rates: Sequence[Fraction], mask: int) -> Fraction:
    return math.prod((p if mask >> i & 1 else 1 - p for i, p in enumerate(rates)), start=Fraction(1))


def reselecting(rates: Sequence[Fraction]) -> Law:
    """The algorithm: all are selected afresh while exactly one is."""
    masks = [mask for mask in range(1 << len(rates)) if mask.bit_count() != 1]
    kept = sum(_subset(rates, mask) for mask in masks)
    return {mask: _subset(rates, mask) / kept for mask in masks}


def dropping(rates: Sequence[Fraction]) -> Law:
    """A mutant: a lone record stays, and nobody moves."""
    law = {mask: _subset(rates, mask) for mask in range(1 << len(rates)) if mask.bit_count() != 1}
    law[0] += sum(_subset(rates, 1 << i) for i in range(len(rates)))
    return law


def keeping(rates: Sequence[Fraction]) -> Law:
    """A mutant: a lone record stays selected, and the others are selected afresh until there is a second."""
    law = {mask: _subset(rates, mask) for mask in range(1 << len(rates)) if mask.bit_count() != 1}
    for i in range(len(rates)):
        with_i = [mask for mask in range(1 << len(rates)) if mask >> i & 1 and mask.bit_count() > 1]
        total = sum(_subset(rates, mask) for mask in with_i)
        for mask in with_i:
            law[mask] += _subset(rates, 1 << i) * _subset(rates, mask) / total
    return law


def adding(rates: Sequence[Fraction]) -> Law:
    """A mutant: a lone record gets a partner, uniformly."""
    law = {mask: _subset(rates, mask) for mask in range(1 << len(rates)) if mask.bit_count() != 1}
    for i in range(len(rates)):
        for j in range(len(rates)):
            if i != j:
                law[1 << i | 1 << j] += _subset(rates, 1 << i) / (len(rates) - 1)
    return law


def permutation_chances(law: Law, n: int) -> list[Fraction]:
    """P(sigma) for each of ``permutations(n)``."""
    every, moved = permutations(n)
    masks = (every != range(n)) @ [1 << i for i in range(n)]
    return [
        law[int(mask)] / derangements_by_counting(int(k)) if k != 1 else Fraction(0)
        for mask, k in zip(masks, moved, strict=True)
    ]


def released(held: Sequence[int], swapped: Sequence[int], chances: Sequence[Fraction]) -> Counter:
    """P(table) for every table of records (h, s) that can be released."""
    found: Counter = Counter()
    for sigma, chance in zip(permutations(len(held))[0], chances, strict=True):
        found[tuple(sorted((h, swapped[j]) for h, j in zip(held, sigma, strict=True)))] += chance
    return found


def worst_ratio(
    held_totals: Sequence[int],
    swapped_totals: Sequence[int],
    rates_of: Callable[[Sequence[tuple[int, int]]], Sequence[Fraction]],
    law: Callable[[Sequence[Fraction]], Law] = reselecting,
) -> float:
    """The largest |ln P_x(z)/P_x'(z)| / d_HamS(x, x') of a universe; ``rates_of`` gives a file's records rates."""
    files = universe(held_totals, swapped_totals)
    laws = []
    for file in files:
        chances = permutation_chances(law(rates_of(file)), len(file))
        laws.append(released([h for h, _ in file], [s for _, s in file], chances))
    logs = np.array([[math.log(one[z]) if one[z] else -math.inf for z in files] for one in laws])
    between = np.array([[distance(x, other) for other in files] for x in files])
    return worst_difference(logs, between)


def bound(n: int, rates: Sequence[Fraction]) -> float:
    """The theorem's epsilon of one stratum of n records with these rates."""
    odds = [float(p / (1 - p)) for p in rates]
    return max(math.log(n + 1) - math.log(min(odds)), math.log(max(odds)))
