"""Statements of appendix B of the thesis: the proof and the optimality of Theorem 3.2.4, by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from stirred.lab.definitions.swap_enumeration import Table, exact_loss, released_law, tables_of
from stirred.loss.divergences import multiplicative
from stirred.reproduce.computations import Forms, computation
from stirred.reproduce.examples import spread_laws
from stirred.reproduce.small_swaps import partitions, small_universes, tables_apart
from stirred.swap.law import theorem

_RATES = tuple(Fraction(text) for text in ("0.01", "0.05", "0.5", "0.75", "0.9"))


@computation
def lemma_b_3_1() -> bool:
    """Whether counts of tables of one size differ by twice their distance."""
    return all(_cells_apart(x, z) == 2 * tables_apart(x, z) for one in small_universes() for x in one for z in one)


@computation
def lemma_b_3_2() -> bool:
    """Whether D_Mult is a metric: symmetric, zero for equal laws only, the triangle inequality."""
    laws = spread_laws(6, 4)
    for p, q, r in itertools.permutations(laws, 3):
        if not math.isclose(multiplicative(p, q), multiplicative(q, p)):
            return False
        if multiplicative(p, q) <= 0 or multiplicative(p, p) != 0:
            return False
        if multiplicative(p, r) > multiplicative(p, q) + multiplicative(q, r) + 1e-12:
            return False
    return True


@computation
def lemma_b_3_3() -> bool:
    """Whether files that differ in the order of their rows have the same law of the output."""
    one = ((0, 0), (0, 1), (1, 1))
    rate = Fraction("0.3")
    return all(released_law(order, rate) == released_law(one, rate) for order in itertools.permutations(one))


@computation
def lemma_b_3_4() -> bool:
    """Whether as many records must move as differ, and no two tables of a universe differ in one record."""
    for tables in small_universes():
        for x, z in itertools.permutations(tables, 2):
            fewest = min(
                sum(place != record for place, record in enumerate(order))
                for order in itertools.permutations(range(len(x)))
                if tuple(sorted((x[i][0], x[j][1]) for i, j in enumerate(order))) == z
            )
            if fewest != tables_apart(x, z) or fewest == 1:
                return False
    return True


@computation
def equation_b_5() -> bool:
    """Whether laws of tables of four different records are in the ratio of equation B.5, for every output."""
    tables = tables_of((1,) * 4, (1,) * 4)
    rate = Fraction("0.3")
    odds, laws = rate / (1 - rate), {table: released_law(table, rate) for table in tables}
    x = tables[0]
    for other, z in itertools.product(tables, repeat=2):
        moved, delta = tables_apart(x, z), tables_apart(x, z) - tables_apart(other, z)
        ratio = odds**delta * Fraction(theorem.derangements(moved - delta), theorem.derangements(moved))
        if laws[x][z] / laws[other][z] != ratio or abs(delta) > tables_apart(x, other):
            return False
    return True


@computation
def lemma_b_3_5() -> bool:
    """Whether d(k)/d(k-a) is at most (k+1)^a for all k up to 40."""
    number = [theorem.derangements(k) for k in range(41)]
    return all(number[k] <= (k + 1) ** a * number[k - a] for k in range(41) for a in range(k + 1) if a != k - 1)


@computation
def lemma_b_4_3() -> bool:
    """Whether tables are at most as far apart as records were moved."""
    for tables in small_universes():
        for order in itertools.permutations(range(len(tables[0]))):
            moved = sum(place != record for place, record in enumerate(order))
            x = tables[0]
            if tables_apart(x, tuple((x[i][0], x[j][1]) for i, j in enumerate(order))) > moved:
                return False
    return True


@computation
def swap_lower_bound_is_attained(held: Sequence[int], swapped: Sequence[int], rate: str) -> bool:
    """Whether the exact loss of a universe is the lower bound of Theorem B.4.1."""
    bound = theorem.lower_bound(sum(held), Fraction(rate))
    found = exact_loss(tables_of(held, swapped), Fraction(rate)).number
    return found == bound if math.isinf(bound) else math.isclose(found, bound, rel_tol=1e-9)


@computation
def swap_loss_at_least_log_odds() -> bool:
    """Whether strata without repeated values lose at least ln o (Proposition 4)."""
    return all(
        exact_loss(tables_of((1,) * size, (1,) * size), rate).number >= math.log(rate / (1 - rate)) - 1e-12
        for size in (2, 3, 4)
        for rate in _RATES
    )


@computation
def swap_largest_gap_from(largest_stratum: int) -> float:
    """The largest f(b) over all b from one on; it falls with b."""
    return max(theorem.gap(b, Fraction("0.05")) for b in range(largest_stratum, largest_stratum + 200))


@computation
def swap_gap_falls_to_zero() -> bool:
    """Whether f(b) is positive, falls with b, and converges to zero."""
    gaps = [theorem.gap(b, Fraction("0.05")) for b in (2, *range(4, 60), 10**4, 10**8)]
    return all(one > 0 for one in gaps) and gaps == sorted(set(gaps), reverse=True) and gaps[-1] < 1e-7


@computation
def swap_largest_stratum_is_never_one() -> bool:
    """Whether no file of up to three records in two strata has b = 1, while some have 0, 2 and 3."""
    cells = list(itertools.product("01", "01", "01"))  # stratum, held and swapped value
    files = (file for size in (1, 2, 3) for file in itertools.combinations_with_replacement(cells, size))
    strata = ([[row for row in file if row[0] == stratum] for stratum in "01"] for file in files)
    found = {max(len(rows) if len(set(rows)) > 1 else 0 for rows in of_file) for of_file in strata}
    return found == {0, 2, 3}


# -- errata --------------------------------------------------------------------------------------------------


@computation
def floor_forms() -> Forms:
    """d(k) as floor(k!/e + 1/2), at k = 0."""
    return Forms("d(0)", math.floor(math.factorial(0) / math.e + 0.5), theorem.derangements(0))


@computation
def recursion_forms() -> Forms:
    """d(k) = k d(k-1) + (-1)^k, said to hold from k = 0 on."""
    try:
        before: str = str(theorem.derangements(-1))
    except ValueError:
        before = "needs d(-1), which does not exist"
    return Forms("d(0)", before, str(theorem.derangements(0)))


@computation
def lemma_b_4_4_forms() -> Forms:
    """Whether two tables of a universe are b apart, where (B.9) fails."""
    held = swapped = (1, 1)
    b = sum(held)
    b_9 = max(*held, *swapped) <= b / 2 - 1
    tables = tables_of(held, swapped)
    return Forms("two records that share no value", b_9, any(tables_apart(x, z) == b for x in tables for z in tables))


@computation
def gap_at_three_forms() -> Forms:
    """Theorem B.4.2 at b = 3: f(3), and how far the theorem is from the worst universe of three records."""
    rate = Fraction("0.05")
    worst = max(exact_loss(tables, rate).number for tables in small_universes(3) if len(tables[0]) == 3)
    ratio = (3 + 1) ** 2 / (3 * 2) * (1 + math.e / 2) / (1 - math.e / 12)
    return Forms("b = 3, p = 5%", math.log(ratio) / 2, theorem.epsilon(3, rate) - worst)


@computation
def lower_bound_at_three_forms() -> Forms:
    """(C) of Theorem B.4.1 at b = 3, which divides by d(1) = 0."""
    rate = Fraction("0.05")
    return Forms("b = 3, p = 5%", "divides by d(1) = 0", theorem.lower_bound(3, rate))


@computation
def four_categories_forms() -> Forms:
    """Theorem B.4.2 at b = 5 with four categories on each side: f(5), and the distance from the worst universe."""
    rate = Fraction("0.05")
    margins = [one for one in partitions(5) if len(one) <= 4]
    universes = (tables_of(held, swapped) for held in margins for swapped in margins)
    worst = max(exact_loss(tables, rate).number for tables in universes)
    return Forms("b = 5, p = 5%", theorem.gap(5, rate), theorem.epsilon(5, rate) - worst)


# -- helpers -------------------------------------------------------------------------------------------------


def _cells_apart(x: Table, z: Table) -> int:
    return sum(abs(x.count(cell) - z.count(cell)) for cell in {*x, *z})
