"""Beliefs over tables with given margins: against enumeration, closed forms and published values."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import StirredError
from stirred.invariants import TwoMargins, believe, posterior
from stirred.invariants.margin_beliefs import split_agreement

HASH = "0123456789abcdef" * 4


def all_tables(held, swapped):
    """Every table with these margins, by the last rows and columns that fit."""
    ranges = [range(min(h, s) + 1) for h in held for s in swapped]
    for flat in product(*ranges):
        table = np.array(flat).reshape(len(held), len(swapped))
        if (table.sum(axis=1) == held).all() and (table.sum(axis=0) == swapped).all():
            yield table


@st.composite
def margins(draw):
    records = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8))
    return tuple(tuple(Counter(one[side] for one in records).values()) for side in (0, 1))


def averages(tables, weights, held, swapped):
    total = sum(weights)
    mean = sum(w * t for w, t in zip(weights, tables, strict=True)) / total
    empty = sum(w * (t == 0) for w, t in zip(weights, tables, strict=True)) / total
    row = sum(w * (t == np.array(held)[:, None]) for w, t in zip(weights, tables, strict=True)) / total
    column = sum(w * (t == np.array(swapped)[None, :]) for w, t in zip(weights, tables, strict=True)) / total
    return mean, empty, row, column


@settings(max_examples=80, deadline=None, derandomize=True)
@given(margins())
def test_both_laws_equal_enumeration(both):
    held, swapped = both
    tables = list(all_tables(held, swapped))
    uniform, by_chance = posterior(held, swapped, "uniform"), posterior(held, swapped, "hypergeometric")
    assert uniform.tables == len(tables) and uniform.method == "listed"
    assignments = [
        prod(map(factorial, held)) * prod(map(factorial, swapped)) / prod(factorial(x) for x in table.ravel())
        for table in tables
    ]
    for found, weights in ((uniform, [1] * len(tables)), (by_chance, assignments)):
        for part, expected in zip(
            (found.mean, found.empty, found.row_whole, found.column_whole),
            averages(tables, weights, held, swapped),
            strict=True,
        ):
            np.testing.assert_allclose(part, expected, atol=1e-12)


def test_the_hypergeometric_law_is_that_of_all_assignments():
    held, swapped = (3, 2), (2, 2, 1)
    kinds = [i for i, many in enumerate(swapped) for _ in range(many)]
    orders = list(permutations(kinds))
    mean = np.zeros((2, 3))
    for order in orders:
        for place, value in enumerate(order):
            mean[0 if place < 3 else 1, value] += 1 / len(orders)
    np.testing.assert_allclose(posterior(held, swapped, "hypergeometric").mean, mean)


@pytest.mark.parametrize(
    ("held", "swapped", "tables"),
    [((3, 2), (2, 2, 1), 5), ((10, 10), (5,) * 4, 146), ((6,) * 3, (6,) * 3, 406), ((60, 40), (50, 30, 15, 5), 2776)],
)
def test_published_numbers_of_tables(held, swapped, tables):
    assert posterior(held, swapped, "uniform").tables == tables


def test_published_differences_between_the_two_laws():
    """swap-estimation, section 6."""
    uniform, chance = (posterior((60, 40), (50, 30, 15, 5), law) for law in ("uniform", "hypergeometric"))
    assert uniform.column_whole[0, 3] == pytest.approx(0.173271, abs=5e-7)
    assert chance.column_whole[0, 3] == pytest.approx(0.0725421, abs=5e-8)
    assert uniform.empty[0, 3] == pytest.approx(0.158862, abs=5e-7)
    assert chance.empty[0, 3] == pytest.approx(0.00873993, abs=5e-9)
    assert uniform.whole_columns == pytest.approx(0.059348, abs=5e-7)
    assert chance.whole_columns == pytest.approx(0.00409562, abs=5e-9)


@pytest.mark.parametrize("law", ["uniform", "hypergeometric"])
@pytest.mark.parametrize(("held", "swapped"), [((4, 3, 2), (5, 2, 1, 1)), ((60, 40), (50, 30, 15, 5))])
def test_chains_agree_with_the_exact_answer(law, held, swapped):
    exact = posterior(held, swapped, law)
    drawn = posterior(held, swapped, law, HASH, 40_000, listing=False)
    assert drawn.method == "chain" and drawn.converged
    np.testing.assert_allclose(drawn.empty, exact.empty, atol=0.02)
    np.testing.assert_allclose(drawn.row_whole, exact.row_whole, atol=0.02)
    np.testing.assert_allclose(drawn.mean / np.array(swapped), exact.mean / np.array(swapped), atol=0.02)
    assert drawn.guessed == pytest.approx(exact.guessed, abs=0.02)


def test_means_of_chains_have_the_margins_and_repeat():
    held, swapped = np.full(30, 4), np.full(12, 10)
    one, again, other = (posterior(held, swapped, "uniform", seed, 200) for seed in (HASH, HASH, HASH[::-1]))
    assert one.method == "chain"
    np.testing.assert_allclose(one.mean.sum(axis=1), held)
    np.testing.assert_allclose(one.mean.sum(axis=0), swapped)
    assert np.array_equal(one.empty, again.empty) and not np.array_equal(one.empty, other.empty)
    assert one.guessed == pytest.approx(1 / 12)  # all values are alike: nothing is told


@pytest.mark.parametrize(("held", "swapped"), [([2, 1], [2, 2]), ([], []), ([0, 2], [2]), ([3, -1], [2])])
def test_margins_that_no_stratum_has_are_refused(held, swapped):
    for ask in (lambda: posterior(held, swapped, "uniform"), lambda: TwoMargins.of_lists([(held, swapped)])):
        with pytest.raises(StirredError, match="same sum"):
            ask()


def test_one_row_leaves_one_table_and_no_chain():
    found = posterior([5], [3, 2], "uniform", HASH, listing=False)
    assert found.tables == 1 and found.mean.tolist() == [[3, 2]]


def test_chains_that_have_not_met_say_so():
    """So few sweeps over so wide a table leave the chains near their starts."""
    far = posterior(np.full(400, 5), np.full(40, 50), "uniform", HASH, 20)
    assert far.method == "chain" and not far.converged
    # Rows of one record have the same squares, maxima and zeros in every table: the order of records must tell.
    alone = posterior(np.ones(4_000), np.full(2, 2_000), "uniform", HASH, 20)
    assert alone.method == "chain" and not alone.converged
    rising = np.linspace(0, 1, 100) + np.array([[0.0], [5.0]])
    assert split_agreement(rising) > 2


def test_beliefs_are_averages_over_the_strata_of_records_at_equal_distances():
    strata = [([3, 2], [2, 2, 1]), ([60, 40], [50, 30, 15, 5]), ([1], [1]), ([30], [10, 20])]
    found = believe(TwoMargins.of_lists(strata), HASH)
    start = int(HASH[:8], 16) / 2**32
    ends = np.cumsum([sum(held) for held, _ in strata])
    picked = [int(np.searchsorted(ends, int((k + start) / 12 * 136), side="right")) for k in range(12)]
    assert len(set(picked)) > 1 and found.strata == len(set(picked)) == found.listed
    for law, one in zip(("hypergeometric", "uniform"), found.laws, strict=True):
        beliefs = [posterior(*strata[number], law) for number in picked]
        assert one.guessed_share == pytest.approx(np.mean([belief.guessed for belief in beliefs]))
        assert one.whole_share == pytest.approx(np.mean([belief.whole_rows for belief in beliefs]))


def test_strata_too_large_for_chains_are_left_out_and_counted():
    wide = (np.ones(1_200, dtype=np.int64), np.full(600, 2))
    found = believe(TwoMargins.of_lists([wide, ([2, 1], [1, 2])]), HASH)
    assert found.too_large == 1 and found.strata >= 1
