"""Whole laws of a stratum and their losses: against all permutations, the published tables, and each other.

Nothing here is drawn at random but which cases are looked at, so there are no false alarms.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from swap_oracle import exact_loss, exact_loss_all_distinct, outcome_counts, partitions, permutation_law

from stirred.errors import StirredError
from stirred.swap.law.exposed_pairs import computable, stratum_loss
from stirred.swap.law.stratum_laws import (
    Counting,
    Universe,
    affordable,
    shares_of_two_by_two,
    stratum_law,
    tables_with,
)

RATES = [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "stratum_losses.json").read_text(encoding="utf-8"))
SMALL = [one for one in GOLDEN["losses"] if sum(one["held"]) <= 12 or sum(one["held"]) == 20]
LARGE = [one for one in GOLDEN["losses"] if one not in SMALL]


def margins(n):
    """All pairs of margins of n records, up to the names of values and of the two sides."""
    return list(itertools.combinations_with_replacement(partitions(n), 2))


def records(table):
    return tuple((h, s) for h, row in enumerate(table) for s, count in enumerate(row) for _ in range(count))


def listed(law, x):
    """N_0, ..., N_n from a table to each, by going through all permutations."""
    reached = outcome_counts(records(law.tables[x]))
    return [reached.get(records(z), (0,) * (sum(law.held) + 1))[::-1] for z in law.tables]


def all_pairs(law, starts):
    """The loss over all pairs of one of these tables and any other, however far apart."""
    worst, logs = 0.0, np.array([law.logs(x) for x in range(len(law.tables))])
    for x in starts:
        apart = law.universe.distances(x)
        with np.errstate(invalid="ignore"):
            ratios = np.nan_to_num(np.abs(logs - logs[x]), nan=0.0, posinf=math.inf).max(axis=1)
        worst = max(worst, *(ratios[apart > 0] / apart[apart > 0]), 0.0)
    return worst


def agrees_with_all_permutations(held, swapped, rate, starts):
    law, weights = stratum_law(held, swapped, rate), permutation_law(sum(held), rate)[::-1]
    for x in sorted({int(at) for at in starts(law)}):
        expected = [sum(n * w for n, w in zip(counts, weights, strict=True)) for counts in listed(law, x)]
        assert [Fraction(share, law.total) for share in law.row(x)] == expected
    return law


# -- against all permutations --------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", range(2, 6))
def test_laws_and_losses_of_all_margins_are_those_of_all_permutations(n):
    for (held, swapped), rate in itertools.product(margins(n), [Fraction(1, 20), Fraction(9, 10)]):
        law = agrees_with_all_permutations(held, swapped, rate, lambda law: range(len(law.tables)))
        loss = law.worst.loss if law.worst else 0.0
        assert loss == pytest.approx(exact_loss(held, swapped, rate), rel=1e-10, abs=1e-12)
        assert stratum_loss(held[::-1], swapped[::-1], rate) == pytest.approx(loss, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 7])
def test_laws_and_losses_of_all_margins_of_six_and_seven_records(n):
    """Laws from every representative and some other tables; losses over all pairs, one of them a representative where
    there are many."""
    rng = np.random.default_rng(17)
    for held, swapped in margins(n):
        law = agrees_with_all_permutations(
            held,
            swapped,
            Fraction(3, 10),
            lambda law: [*law.universe.representatives, *rng.integers(len(law.tables), size=3)],
        )
        loss = law.worst.loss if law.worst else 0.0
        if max(held) == max(swapped) == 1:
            assert loss == pytest.approx(exact_loss_all_distinct(n, Fraction(3, 10)), rel=1e-10)
        elif len(law.tables) <= 150:
            assert loss == pytest.approx(exact_loss(held, swapped, Fraction(3, 10)), rel=1e-10, abs=1e-12)
        else:
            assert loss == pytest.approx(all_pairs(law, law.universe.representatives), rel=1e-10)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1)])
def test_rates_at_the_ends_are_those_of_all_permutations(rate):
    for held, swapped in [((1, 1), (1, 1)), ((2, 1), (2, 1)), ((2, 1, 1), (2, 2)), ((1, 1, 1), (1, 1, 1))]:
        law = agrees_with_all_permutations(held, swapped, rate, lambda law: range(len(law.tables)))
        assert law.worst.loss == pytest.approx(exact_loss(held, swapped, rate), rel=1e-12)


# -- counts of permutations ----------------------------------------------------------------------------------


def permutation_counts(table, released):
    """N_0, ..., N_n for two tables with the same margins."""
    pair = np.array([table, released], dtype=np.int64)
    return Counting.of(pair).counts(pair[0], pair[1:])[0].tolist()


@pytest.mark.parametrize("case", GOLDEN["counts"], ids=lambda case: f"{case['from']}-{case['to']}")
def test_golden_counts(case):
    tables = list(tables_with((2, 2), (2, 2)))
    assert list(permutation_counts(tables[case["from"]], tables[case["to"]])) == case["counts"]


@pytest.mark.parametrize(
    ("held", "swapped"), [((3, 2, 1), (2, 2, 2)), ((7, 7), (4, 5, 5)), ((1, 20), (7, 7, 7)), ((12, 13), (24, 1))]
)
def test_counts_sum_to_all_permutations(held, swapped):
    tables = list(tables_with(held, swapped))
    for x in tables[:: 1 + len(tables) // 4]:
        counted = [permutation_counts(x, z) for z in tables]
        assert min(map(min, counted)) >= 0
        assert sum(map(sum, counted)) == math.factorial(sum(held))
        assert sum(counts[-1] for counts in counted) == 1  # the permutation that moves nobody
        assert sum(counts[-2] for counts in counted) == 0  # nobody moves alone


def test_counts_of_two_tables_that_change_places():
    tables = list(tables_with((3, 2, 4), (4, 4, 1)))
    for x, z in itertools.combinations(tables[::3], 2):
        there, back = permutation_counts(x, z), permutation_counts(z, x)
        first, second = (math.prod(math.factorial(n) for row in one for n in row) for one in (x, z))
        assert [n * second for n in there] == [n * first for n in back]


def test_counts_need_no_compiler():
    from stirred.swap.law import stratum_laws as counting

    pair = np.array([((2, 1), (0, 2), (1, 1)), ((1, 2), (1, 1), (1, 1))])
    setting = counting.Counting.of(pair)
    x, z = setting._turned(pair[0], pair[1:])
    found = [np.empty((1, 8), dtype=np.uint64) for _ in range(2)]
    prime = counting._primes(7)[0]
    for run, into in zip((counting._left_in_place, counting._left_in_place.py_func), found, strict=True):
        run(x[0], z, setting.held, setting.swapped, 100, np.uint64(prime), *counting._modulo(prime, 7), into)
    assert found[0].tolist() == found[1].tolist()


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "swapped"),
    [((4, 4, 4), (4, 4, 4)), ((5, 1, 5, 1), (5, 1, 1, 5)), ((9, 11), (3, 9, 8)), ((30, 12), (20, 22))],
)
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(95, 100)])
def test_laws_sum_to_one_exactly_and_keep_the_hypergeometric_law(held, swapped, rate):
    law = stratum_law(held, swapped, rate)
    rows = [law.row(x) for x in range(len(law.tables))]
    assert {sum(row) for row in rows} == {law.total}
    arranged = [math.prod(math.factorial(n) for row in x for n in row) for x in law.tables]
    for x, z in itertools.product(range(0, len(rows), 7), range(0, len(rows), 5)):
        assert rows[x][z] * arranged[z] == rows[z][x] * arranged[x]  # it is reversible


@pytest.mark.parametrize(("held", "swapped"), [((5, 4), (6, 3)), ((2, 9), (8, 3)), ((8, 8), (8, 8)), ((1, 9), (5, 5))])
def test_eigenvalues_and_counts_give_the_same_law(held, swapped):
    size, tables = sum(held), list(tables_with(held, swapped))
    weights = [k * k + 3 for k in range(size + 1)]
    counted = [
        [sum(n * w for n, w in zip(permutation_counts(x, z), weights[::-1], strict=True)) for z in tables]
        for x in tables
    ]
    assert list(shares_of_two_by_two(size, held[0], swapped[0], weights)) == counted


def test_golden_law():
    law = stratum_law((2, 2), (2, 2), Fraction(1, 10))
    assert [round(float(law.chance(0, z)), 9) for z in range(3)] == [0.949055775, 0.050881486, 6.2739e-5]
    assert [round(float(law.chance(1, z)), 9) for z in range(3)] == [0.012720371, 0.974559257, 0.012720371]


# -- losses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case['held']}x{case['swapped']}")
def test_golden_losses(case):
    for rate, loss in zip(RATES, case["losses"], strict=True):
        assert stratum_law(case["held"], case["swapped"], rate).worst.loss == pytest.approx(loss, abs=6e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=lambda case: f"{case['held']}x{case['swapped']}")
def test_golden_losses_of_large_strata(case):
    for rate, loss in zip(RATES, case["losses"], strict=True):
        assert stratum_law(case["held"], case["swapped"], rate).worst.loss == pytest.approx(loss, abs=6e-7)


@pytest.mark.slow
def test_the_loss_of_balanced_two_by_two_tables_approaches_its_limit():
    loss = stratum_law((100, 100), (100, 100), Fraction(1, 20)).worst.loss
    assert 3.6582 < loss < math.log(1 + 2 * 19) < loss + 0.01


@pytest.mark.parametrize(
    ("held", "swapped", "rate"),
    [
        ((3, 3, 3), (3, 3, 3), "0.05"),
        ((2, 3, 4), (4, 1, 4), "0.5"),
        ((2, 2, 2, 1), (2, 2, 2, 1), "0.9"),
        ((6, 5), (4, 4, 3), "0.1"),
        ((12, 13), (9, 16), "0.05"),
    ],
)
def test_pairs_that_differ_in_one_record_of_a_value_at_most_are_enough(held, swapped, rate):
    law = stratum_law(held, swapped, Fraction(rate))
    assert law.worst.loss == pytest.approx(all_pairs(law, range(len(law.tables))), rel=1e-12)


def test_nearest_pairs_are_not_always_the_worst():
    """Three records that pass their values around are three apart, and no sum of two exchanges."""
    law = stratum_law((1, 1, 1), (1, 1, 1), Fraction(1, 20))
    assert law.worst.distance == 3


# -- universes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["tables"], ids=lambda case: f"{case['held']}x{case['swapped']}")
def test_golden_numbers_of_tables(case):
    tables = list(tables_with(case["held"], case["swapped"]))
    assert len(set(tables)) == len(tables) == case["tables"]
    array = np.array(tables)
    assert np.all(array.sum(axis=2) == case["held"]) and np.all(array.sum(axis=1) == case["swapped"])


@pytest.mark.parametrize(("held", "swapped"), [((3, 1, 3, 1), (4, 4)), ((4, 4), (3, 1, 3, 1)), ((2, 2, 2), (3, 2, 1))])
def test_turned_tables_are_their_representatives(held, swapped):
    universe = Universe.of(tuple(tables_with(held, swapped)))
    assert len(universe.representatives) < len(universe)
    for at, table in enumerate(universe.tables):
        turned = np.take(table, universe.turns[at], axis=universe.axis - 1)
        assert turned.sum(axis=1).tolist() == list(held) and turned.sum(axis=0).tolist() == list(swapped)
        representative = universe.representatives[universe.representative[at]]
        assert np.array_equal(turned, universe.tables[representative])
        assert np.arange(len(universe))[universe.turned(at)][at] == representative


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "swapped", "says"),
    [
        ((101, 100), (100, 101), "201 records; at most 200 can"),
        ((700, 300), (400, 300, 200, 60, 40), "1,000 records"),
        ((1,) * 2_000, (1_999, 1), "2,000 records"),
        ((70, 30), (40, 30, 20, 6, 4), "more than 6,000 tables"),
        ((60, 40), (50, 30, 20), "terms to add; at most 3e"),
        ((5, 4, 3, 2), (5, 4, 3, 2), "probabilities; at most 5,000,000"),
    ],
)
def test_strata_that_take_too_long_are_refused_with_what_they_would_take(held, swapped, says):
    with pytest.raises(StirredError, match="takes too long to compute") as refused:
        stratum_law(held, swapped, Fraction(1, 2))
    assert refused.value.kind == "stratum-too-large" and says in str(refused.value)


@pytest.mark.parametrize(
    ("held", "swapped"),
    [((2, 2), (3, 2)), ((2, 0), (1, 1)), ((), ()), ((3, -1), (1, 1)), ((2.5, 1.5), (2, 2)), ((10**30, 1), (10**30, 1))],
)
def test_margins_of_no_stratum_are_refused(held, swapped):
    with pytest.raises(StirredError, match="positive counts"):
        stratum_law(held, swapped, Fraction(1, 2))


def test_one_value_on_a_side_changes_nothing_whatever_the_size_and_the_rate():
    for rate in (Fraction(0), Fraction(1, 20), Fraction(1)):
        law = stratum_law((100_000,), (60_000, 40_000), rate)
        assert law.worst is None and law.chance(0, 0) == 1
        assert stratum_law((1,) * 5_000, (5_000,), rate).tables == (((1,),) * 5_000,)


def test_an_explanation_takes_no_more_than_a_moment():
    for small in [((50, 50), (50, 50)), ((3, 3, 3), (3, 3, 3)), ((1, 10**6), (5, 10**6 - 4))]:
        assert computable(*small)
    for large in [((50, 51), (50, 51)), ((6, 6, 6), (6, 6, 6)), ((500, 1000, 1000), (700, 800, 1000))]:
        assert not computable(*large)
    assert not affordable((2, 2, 2), (2, 2, 2), records=100, tables=150, terms=10)
