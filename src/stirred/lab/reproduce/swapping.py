"""Numbers about swapping: chapters 3 and 4 and appendix B of the thesis, the working paper, the slides.

The proof and the optimality of Theorem 3.2.4 are tried on all swaps of few records, by enumeration.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from stirred.lab.definitions.swap_practices import (
    Table,
    as_files,
    as_mechanism,
    exact_loss,
    name_of,
    released_law,
    swap_flavor,
    tables_of,
)
from stirred.lab.reproduce import paper_figures
from stirred.lab.reproduce.catalogue import Forms
from stirred.lab.reproduce.examples import spread_laws
from stirred.loss.curves.swap_laws import derangements
from stirred.loss.divergences import multiplicative
from stirred.spec import FiniteMechanism, InputPremetric, Invariant, compare, flavors, may_publish_budget
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.order.finite_mechanisms import randomised_response
from stirred.swap.law import theorem

_HOUSEHOLDS = InputPremetric(unit="household")


@cache
def small_universes(most: int = 4) -> tuple[tuple[Table, ...], ...]:
    """All universes of two to four records, up to the names of categories."""
    sizes = range(2, most + 1)
    return tuple(tables_of(h, s) for size in sizes for h in partitions(size) for s in partitions(size))


def partitions(total: int, largest: int | None = None) -> list[tuple[int, ...]]:
    """The ways of writing a number as a sum that does not increase."""
    if total == 0:
        return [()]
    first_most = total if largest is None else min(total, largest)
    return [(first, *rest) for first in range(first_most, 0, -1) for rest in partitions(total - first, first)]


def b_of(tables: Sequence[Table]) -> int:
    """The size of the stratum if it holds two different records, else 0."""
    return len(tables[0]) if any(len(set(table)) > 1 for table in tables) else 0


def tables_apart(x: Table, z: Table) -> int:
    """d_HamS of two tables."""
    return int(_HOUSEHOLDS.distance(list(x), list(z)))


def single_swaps() -> list[tuple[bool, int, bool]]:
    """For two records of a stratum: whether margins are kept, how many cells change, whether both values differ."""
    rows = [dict(zip("mhs", values, strict=True)) for values in itertools.product("01", "ab", "xyz")]
    margins = [Invariant("household", by=by) for by in (("m", "h"), ("m", "s"))]
    inside = Invariant("household", by=("m", "h", "s"))
    found = []
    for one, other in itertools.combinations(rows, 2):
        if one["m"] != other["m"]:
            continue
        before, after = [one, other], [one | {"s": other["s"]}, other | {"s": one["s"]}]
        cells = Counter(inside.value(before))
        cells.subtract(Counter(inside.value(after)))
        kept = all(margin.value(before) == margin.value(after) for margin in margins)
        differs = one["h"] != other["h"] and one["s"] != other["s"]
        found.append((kept, sum(count != 0 for count in cells.values()), differs))
    return found


HALF = Fraction(1, 2)
_RATES = tuple(Fraction(text) for text in ("0.01", "0.05", "0.5", "0.75", "0.9"))

# -- Theorem 3.2.4 and what follows from it ------------------------------------------------------------------


def swap_epsilon(largest_stratum: int, rate: str) -> float:
    """Epsilon of Theorem 3.2.4."""
    return theorem.epsilon(largest_stratum, Fraction(rate))


def swap_epsilon_of(match: str, swap: str, largest_stratum: int, rate: str) -> float:
    """Epsilon of a hypothetical swap, which depends on its matching through the largest stratum only."""
    del match, swap
    return theorem.epsilon(largest_stratum, Fraction(rate))


def swap_smallest_epsilon(largest_stratum: int) -> float:
    """The smallest epsilon of any rate."""
    return theorem.smallest_epsilon(largest_stratum)


def swap_best_rate(largest_stratum: int) -> float:
    """The rate of the smallest epsilon."""
    return theorem.best_rate(largest_stratum)


def swap_rate_for(epsilon: str, largest_stratum: int, which: str) -> float:
    """The lower or the higher of the two rates that have an epsilon."""
    rates = theorem.rates_for(float(epsilon), largest_stratum)
    assert rates is not None
    return rates[("lower", "higher").index(which)]


def swap_epsilon_of_table(table: str, which: str) -> float:
    """The smallest or largest epsilon of the hypothetical swaps on data of a year, at one rate or at both."""
    return {"smallest": min, "largest": max}[which](float(one.budget.number) for one in _hypothetical(table))


def swap_strata_of_table(table: str, which: str, unit: int) -> Fraction:
    """The smallest or largest b of the hypothetical swaps on data of a year, in thousands or millions."""
    sizes = [int(str(one.fact["largest_stratum"])) for one in _hypothetical(table)]
    return Fraction({"smallest": min, "largest": max}[which](sizes), unit)


def swap_stratum_of(table: str, match: str, swap: str) -> int:
    """b of one of the hypothetical swaps on data of a year, as the list of deployments has it."""
    area = match.removesuffix(" by household size")
    scheme = f"{area.replace(' ', '')}{'-size' if area != match else ''}-{swap}"
    return int(str(deployment(f"psa-{table}-{scheme}-p05").specification.fact["largest_stratum"]))


def swap_stratum_of_2010(unit: int) -> Fraction:
    """The largest stratum of state by household size in 2010, in millions."""
    return Fraction(int(str(deployment("psa-2010-p02").specification.fact["largest_stratum"])), unit)


def swap_kink_above_half() -> bool:
    """Whether the rate of the smallest epsilon is above 50% whatever b is."""
    return all(theorem.best_rate(size) > 0.5 for size in (2, 3, 10, 10**3, 10**6, 10**9))


def swap_epsilon_grows_with_b() -> bool:
    """Whether at a fixed rate a larger b has a larger epsilon, below the rate of the smallest one."""
    epsilons = [theorem.epsilon(size, Fraction("0.05")) for size in (2, 10, 10**3, 10**6)]
    return epsilons == sorted(set(epsilons))


def swap_two_rates_for_every_epsilon() -> bool:
    """Whether two different rates have each epsilon above the smallest, and none has one below it."""
    for size in (2, 10, 1000):
        least = theorem.smallest_epsilon(size)
        rates = theorem.rates_for(least + 1, size)
        if rates is None or not rates[0] < rates[1] or theorem.rates_for(least - 0.001, size) is not None:
            return False
    return True


@cache
def swap_theorem_holds() -> bool:
    """Whether no universe of up to four records loses more than Theorem 3.2.4 says, by enumeration."""
    return all(
        exact_loss(tables, rate).number <= theorem.epsilon(b_of(tables), rate) + 1e-12
        for tables in small_universes()
        for rate in _RATES
    )


def swap_rate_in_large_strata(rate: str) -> bool:
    """Whether in a stratum of a million records the probability of moving is the swap rate."""
    return math.isclose(theorem.moved_probability(10**6, Fraction(rate)), float(Fraction(rate)), rel_tol=1e-9)


def swap_budget_may_be_published() -> bool:
    """Whether epsilon, as realised by each file of two to four records, has loss 0 under the invariants (Remark 3.2.5).

    Without the invariants it must have none that is finite, and the rule for specifications must say the same.
    """
    tables = {name_of(table): table for universe in small_universes() for table in universe}
    sizes = {name: len(table) if len(set(table)) > 1 else 0 for name, table in tables.items()}
    told = FiniteMechanism.releases(sizes, lambda b: theorem.epsilon(b, HALF))
    files = as_files(list(tables.values()))
    inside, outside = (told.loss(flavor, files).number for flavor in (swap_flavor(), flavors.pure("household")))
    ruled = may_publish_budget(deployment("psa-1940-ma-p50").specification).verdict == "yes"
    return ruled and inside == 0 and math.isinf(outside)


def swap_granularity_outweighs_rate() -> bool:
    """Whether epsilon differs more between the matchings of Table 3.5 than between its swap rates."""
    by_name = {one.name: float(one.budget.number) for one in _hypothetical("2020")}
    rates = [by_name[name] - by_name[name[:-2] + "50"] for name in by_name if name.endswith("05")]
    matchings = [number for name, number in by_name.items() if name.endswith("05")]
    return max(matchings) - min(matchings) > max(rates)


def randomised_response_is_symmetric(rate: str) -> bool:
    """Whether randomised response that flips with probability p has the epsilon of 1 - p."""
    losses = [
        randomised_response(flip).loss(flavors.local(), {"0": "0", "1": "1"}).number
        for flip in (Fraction(rate), 1 - Fraction(rate))
    ]
    odds = float(Fraction(rate) / (1 - Fraction(rate)))
    return math.isclose(losses[0], losses[1]) and math.isclose(losses[0], abs(math.log(odds)))


# -- what swapping keeps -------------------------------------------------------------------------------------


def swap_keeps_both_margins() -> bool:
    """Whether one swap within a stratum keeps both margins, and changes four cells where both variables differ."""
    return all(kept and changed == (4 if differs else 0) for kept, changed, differs in single_swaps())


def swap_does_not_keep_table_across_strata() -> bool:
    """Whether some swap changes the counts of held by swapped values summed over strata."""
    rows = [dict(zip("mhs", values, strict=True)) for values in (("0", "a", "x"), ("0", "b", "y"))]
    after = [rows[0] | {"s": "y"}, rows[1] | {"s": "x"}]
    both = Invariant("household", by=("h", "s"))
    return bool(both.value(rows) != both.value(after))


def swap_cannot_have_topdown_invariants(table: str) -> bool:
    """Whether neither the hypothetical swaps of a year nor TopDown have the other's invariants."""
    topdown = deployment("topdown-2020-pl").specification
    return all(_block(one, topdown, "multiverse") == "incomparable" for one in _hypothetical(table))


def swap_with_fixed_number_of_swaps() -> float:
    """The loss of a mechanism that makes at most one swap of two records."""
    tables = tables_of((1, 1, 1), (1, 1, 1))
    laws = {}
    for x in tables:
        near = [z for z in tables if tables_apart(x, z) == 2]
        laws[name_of(x)] = {name_of(x): HALF} | {name_of(z): Fraction(1, 2 * len(near)) for z in near}
    return FiniteMechanism.of(laws).loss(swap_flavor(), as_files(tables)).number


def swap_without_one_invariant(without: str) -> float:
    """The loss of a swap if one of its two margins is not conditioned on."""
    tables = [table for one in small_universes(2) for table in one]
    kept = [Invariant("household", by=(name,)) for name in ("held", "swapped") if name != without]
    flavor = flavors.pure("household", invariants=kept)
    return as_mechanism(tables, Fraction("0.3")).loss(flavor, as_files(tables)).number


def swap_comparison(block: str, other: str) -> str:
    """How a block of the hypothetical swaps of 2020 compares with that of another deployment; one word for all."""
    words = {_block(one, deployment(other).specification, block) for one in _hypothetical("2020")}
    return words.pop() if len(words) == 1 else "differs"


def swap_group_bound(rate: str) -> bool:
    """Whether tables at a distance n have laws at most n epsilon apart, by enumeration of two to four records."""
    for tables in small_universes():
        bound = theorem.epsilon(b_of(tables), Fraction(rate))
        law = as_mechanism(tables, Fraction(rate))
        rows = dict(zip(law.datasets, law.rows, strict=True))
        for x, z in itertools.combinations(tables, 2):
            if multiplicative(rows[name_of(x)], rows[name_of(z)]) > bound * tables_apart(x, z) * (1 + 1e-9):
                return False
    return True


def swap_of_identical_records() -> float:
    """Epsilon where all records of each stratum are the same: exactly reconstructed, and nothing is lost."""
    return max(exact_loss([((0, 0),) * size], Fraction("0.3")).number for size in (2, 3, 4))


# -- Massachusetts, 1940 -------------------------------------------------------------------------------------


def massachusetts_total(row: str, of: str, half: str) -> int:
    """A total of Table 3.1: of the published counts, or after a swap of the file that has them."""
    table = _counted() if half == "true" else _swapped()
    counts = table.sum(axis=0) if row == "total" else table[_counties().index(row)]
    return int(counts.sum() if of == "total" else counts[("owned", "rented").index(of)])


def figure_rate_against_epsilon(name: str, figure: str, theorem: str, remark: str = "") -> tuple[Any, ...]:
    """Swap rate against epsilon, one line for each b."""
    picture = paper_figures.rate_against_epsilon(name)
    caption = " ".join(filter(None, (picture.caption.replace("Theorem 3.2.4", theorem), remark)))
    return (replace(picture, caption=f"{figure}, computed again. {caption}"),)


def figure_error_by_rate(name: str, figure: str) -> tuple[Any, ...]:
    """Error of county by tenure, by swap rate."""
    picture = paper_figures.error_by_rate(name)
    return (replace(picture, caption=f"{figure}, computed again. {picture.caption}"),)


# -- errata --------------------------------------------------------------------------------------------------


def moved_probability_as_printed(stratum_size: int, rate: Fraction) -> float:
    """Section 3.2.3's formula p [1 - (1-p)^(n-1)], an erratum: a lone selection is drawn again.

    >>> moved_probability_as_printed(2, Fraction(1, 2)), theorem.moved_probability(2, Fraction(1, 2))
    (0.25, 0.5)
    """
    if stratum_size <= 1 or rate == 0:
        return 0.0
    if rate == 1:
        return 1.0
    return -float(rate) * math.expm1((stratum_size - 1) * theorem.log_complement(rate))


def moved_probability_forms() -> Forms:
    """Section 3.2.3's probability that a record is swapped."""
    return Forms("two records, p = 50%", moved_probability_as_printed(2, HALF), theorem.moved_probability(2, HALF))


def derangement_ratio_forms() -> Forms:
    """Section 3.5.1's bound of the ratio of derangement numbers, as a bound of d(6)/d(2) = 265."""
    ratio = derangements(6) // derangements(2)
    return Forms(f"b = 6, four records apart: the ratio is {ratio}, the bound", (6 + 1) * 4, (6 + 1) ** 4)


def at_least_forms() -> Forms:
    """Section 3.5.1's "must be at least": the epsilon of the theorem beside an exact loss below it."""
    loss = exact_loss(tables_of((1,) * 4, (1,) * 4), HALF).number
    return Forms("four different records, p = 50%", theorem.epsilon(4, HALF), loss)


def proposition_1_forms() -> Forms:
    """Cells that change when two records of one stratum exchange their swap values, both values being different."""
    # As printed, nothing changes if m = m'; and m = m' holds for every swap.
    changed = max(cells for _, cells, differs in single_swaps() if differs)
    return Forms("two records of one stratum that differ in both values: cells that change", 0, changed)


def matching_of_2010_forms() -> Forms:
    """The matching variables of the swap of section 3.2.5."""
    return Forms("match", "state, adults, children", str(deployment("psa-2010-p02").specification.fact["match"]))


def swapping_of_2010_forms() -> Forms:
    """The swapping variables of the swap of 2010, so that household sizes by block are invariant."""
    return Forms("swap", "county", str(deployment("psa-2010-p02").specification.fact["swap"]))


def other_stratum_forms() -> Forms:
    """The chance of a partner in the same stratum if that of another stratum is alpha per cent."""
    alpha = 5
    return Forms("alpha = 5", f"{1 - alpha}%", f"{100 - alpha}%")


# -- helpers -------------------------------------------------------------------------------------------------


def _hypothetical(table: str) -> list[Any]:
    """The swaps of Table 3.5 (``2020``) or of the working paper's Table 6.3 (``2010``), at a rate if one is named."""
    year, _, rate = table.partition(" ")
    schemes = [f"{area}{size}-{moved}" for area, moved in _LEVELS for size in ("", "-size")]
    rates = [rate] if rate else ["p05", "p50"]
    return [deployment(f"psa-{year}-{one}-{p}").specification for one in schemes for p in rates]


_LEVELS = (("state", "county"), ("county", "tract"), ("blockgroup", "block"))


def _block(first: Any, second: Any, block: str) -> str:
    return str(next(row.verdicts[0] for row in compare(first, second).rows if row.block == block))


@cache
def _counted() -> np.ndarray[Any, np.dtype[np.int64]]:
    return paper_figures.county_by_tenure(paper_figures.dwellings())


@cache
def _swapped() -> np.ndarray[Any, np.dtype[np.int64]]:
    return paper_figures.swapped_once(paper_figures.dwellings(), HALF, 1940)


@cache
def _counties() -> list[str]:
    return sorted(str(text) for text in paper_figures.dwellings().table["county"].texts())


def lemma_b_3_1() -> bool:
    """Whether counts of tables of one size differ by twice their distance."""
    return all(_cells_apart(x, z) == 2 * tables_apart(x, z) for one in small_universes() for x in one for z in one)


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


def lemma_b_3_3() -> bool:
    """Whether files that differ in the order of their rows have the same law of the output."""
    one = ((0, 0), (0, 1), (1, 1))
    rate = Fraction("0.3")
    return all(released_law(order, rate) == released_law(one, rate) for order in itertools.permutations(one))


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


def equation_b_5() -> bool:
    """Whether laws of tables of four different records are in the ratio of equation B.5, for every output."""
    tables = tables_of((1,) * 4, (1,) * 4)
    rate = Fraction("0.3")
    odds, laws = rate / (1 - rate), {table: released_law(table, rate) for table in tables}
    x = tables[0]
    for other, z in itertools.product(tables, repeat=2):
        moved, delta = tables_apart(x, z), tables_apart(x, z) - tables_apart(other, z)
        ratio = odds**delta * Fraction(derangements(moved - delta), derangements(moved))
        if laws[x][z] / laws[other][z] != ratio or abs(delta) > tables_apart(x, other):
            return False
    return True


def lemma_b_3_5() -> bool:
    """Whether d(k)/d(k-a) is at most (k+1)^a for all k up to 40."""
    number = [derangements(k) for k in range(41)]
    return all(number[k] <= (k + 1) ** a * number[k - a] for k in range(41) for a in range(k + 1) if a != k - 1)


def lemma_b_4_3() -> bool:
    """Whether tables are at most as far apart as records were moved."""
    for tables in small_universes():
        for order in itertools.permutations(range(len(tables[0]))):
            moved = sum(place != record for place, record in enumerate(order))
            x = tables[0]
            if tables_apart(x, tuple((x[i][0], x[j][1]) for i, j in enumerate(order))) > moved:
                return False
    return True


def swap_lower_bound_is_attained(held: Sequence[int], swapped: Sequence[int], rate: str) -> bool:
    """Whether the exact loss of a universe is the lower bound of Theorem B.4.1."""
    bound = theorem.lower_bound(sum(held), Fraction(rate))
    found = exact_loss(tables_of(held, swapped), Fraction(rate)).number
    return found == bound if math.isinf(bound) else math.isclose(found, bound, rel_tol=1e-9)


def swap_loss_at_least_log_odds() -> bool:
    """Whether strata without repeated values lose at least ln o (Proposition 4)."""
    return all(
        exact_loss(tables_of((1,) * size, (1,) * size), rate).number >= math.log(rate / (1 - rate)) - 1e-12
        for size in (2, 3, 4)
        for rate in _RATES
    )


def swap_largest_gap_from(largest_stratum: int) -> float:
    """The largest f(b) over all b from one on; it falls with b."""
    return max(theorem.gap(b, Fraction("0.05")) for b in range(largest_stratum, largest_stratum + 200))


def swap_gap_falls_to_zero() -> bool:
    """Whether f(b) is positive, falls with b, and converges to zero."""
    gaps = [theorem.gap(b, Fraction("0.05")) for b in (2, *range(4, 60), 10**4, 10**8)]
    return all(one > 0 for one in gaps) and gaps == sorted(set(gaps), reverse=True) and gaps[-1] < 1e-7


def swap_largest_stratum_is_never_one() -> bool:
    """Whether no file of up to three records in two strata has b = 1, while some have 0, 2 and 3."""
    cells = list(itertools.product("01", "01", "01"))  # stratum, held and swapped value
    files = (file for size in (1, 2, 3) for file in itertools.combinations_with_replacement(cells, size))
    strata = ([[row for row in file if row[0] == stratum] for stratum in "01"] for file in files)
    found = {max(len(rows) if len(set(rows)) > 1 else 0 for rows in of_file) for of_file in strata}
    return found == {0, 2, 3}


# -- errata --------------------------------------------------------------------------------------------------


def floor_forms() -> Forms:
    """d(k) as floor(k!/e + 1/2), at k = 0."""
    return Forms("d(0)", math.floor(math.factorial(0) / math.e + 0.5), derangements(0))


def recursion_forms() -> Forms:
    """d(k) = k d(k-1) + (-1)^k, said to hold from k = 0 on."""
    try:
        before: str = str(derangements(-1))
    except ValueError:
        before = "needs d(-1), which does not exist"
    return Forms("d(0)", before, str(derangements(0)))


def lemma_b_4_4_forms() -> Forms:
    """Whether two tables of a universe are b apart, where (B.9) fails."""
    held = swapped = (1, 1)
    b = sum(held)
    b_9 = max(*held, *swapped) <= b / 2 - 1
    tables = tables_of(held, swapped)
    return Forms("two records that share no value", b_9, any(tables_apart(x, z) == b for x in tables for z in tables))


def gap_at_three_forms() -> Forms:
    """Theorem B.4.2 at b = 3: f(3), and how far the theorem is from the worst universe of three records."""
    rate = Fraction("0.05")
    worst = max(exact_loss(tables, rate).number for tables in small_universes(3) if len(tables[0]) == 3)
    ratio = (3 + 1) ** 2 / (3 * 2) * (1 + math.e / 2) / (1 - math.e / 12)
    return Forms("b = 3, p = 5%", math.log(ratio) / 2, theorem.epsilon(3, rate) - worst)


def lower_bound_at_three_forms() -> Forms:
    """(C) of Theorem B.4.1 at b = 3, which divides by d(1) = 0."""
    rate = Fraction("0.05")
    return Forms("b = 3, p = 5%", "divides by d(1) = 0", theorem.lower_bound(3, rate))


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
