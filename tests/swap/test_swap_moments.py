"""Mean and variance of swapped cells against brute force, exact fractions and long decimals."""

from __future__ import annotations

import math
from dataclasses import fields
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from swap_oracle import PUBLISHED, cell_moments_by_enumeration, permutation_law, permutations, rounds_to

from stirred.errors import PlanError
from stirred.swap.law.moments import (
    LawConstants,
    cell_moments,
    constants_of,
    expected_absolute_error,
    score_covariance,
    stratum_constants,
)
from stirred.swap.law.theorem import moved_probability

NAMES = [field.name for field in fields(LawConstants) if field.name != "size"]

TABLES = {
    "two records": ((0, 0), (1, 1)),
    "three records": ((0, 0), (0, 1), (1, 1)),
    "four in a square": ((0, 0), (0, 0), (1, 1), (1, 1)),
    "five, two by two": ((0, 0), (0, 0), (0, 1), (1, 0), (1, 1)),
    "six, three by three": ((0, 0), (0, 0), (1, 1), (1, 2), (2, 0), (2, 2)),
    "seven, two by three": ((0, 0), (0, 0), (0, 0), (0, 1), (1, 1), (1, 2), (1, 2)),
    "seven, one row": ((0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (0, 2)),
}


def moments(size, rate, held_total, swapped_total, count):
    mean, variance = cell_moments(stratum_constants([size], rate), size, held_total, swapped_total, count)
    return float(mean), float(variance)


# -- numbers of the notes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", PUBLISHED["constants"]["rows"], ids=lambda row: f"n={row['size']},p={row['rate']}")
def test_constants_match_the_notes(row):
    found = constants_of(row["size"], Fraction(row["rate"]))
    for name in ("moved", "shrinkage", "exchanged", "a1", "a2", "a3", "a4"):
        assert rounds_to(getattr(found, name), row[name]), (name, getattr(found, name))


@pytest.mark.parametrize(
    "row",
    PUBLISHED["cell_moments"]["rows"],
    ids=lambda row: f"n={row['size']},p={row['rate']},x={row['count']}",
)
def test_cell_moments_match_the_notes(row):
    mean, variance = moments(row["size"], Fraction(row["rate"]), row["held_total"], row["swapped_total"], row["count"])
    assert row["mean"] is None or rounds_to(mean, row["mean"])
    assert rounds_to(variance, row["variance"])


# -- brute force ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [Fraction(text) for text in ("0.01", "0.05", "1/3", "0.5", "0.9", "1")], ids=str)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_cell_moments_match_enumeration_of_all_permutations(table, rate):
    held, swapped = zip(*table, strict=True)
    for h in set(held):
        for s in set(swapped):
            exact_mean, exact_variance = cell_moments_by_enumeration(table, (h, s), rate)
            mean, variance = moments(len(table), rate, held.count(h), swapped.count(s), table.count((h, s)))
            assert mean == pytest.approx(float(exact_mean), rel=1e-14, abs=1e-15)
            assert variance == pytest.approx(float(exact_variance), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("rate", [Fraction(text) for text in ("0.01", "0.05", "0.5", "0.9", "1")], ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_covariances_of_sums_of_scores_match_enumeration_of_all_permutations(n, rate):
    rng = np.random.default_rng(n)
    held, swapped = rng.integers(0, 4, (2, n)).astype(float), rng.normal(size=(2, n))
    u, v = held - held.mean(axis=1)[:, None], swapped - swapped.mean(axis=1)[:, None]
    orders, moved = permutations(n)
    law = np.array([float(probability) for probability in permutation_law(n, rate)])[moved]
    first, second = ((u[k] * v[k][orders]).sum(axis=1) for k in (0, 1))
    table = stratum_constants([n], rate)
    assert (law * first).sum() == pytest.approx(float(table.shrinkage[0]) * (u[0] * v[0]).sum(), abs=1e-12)
    expected = (law * first * second).sum() - (law * first).sum() * (law * second).sum()
    found = score_covariance(
        table,
        n,
        uvuv=(u[0] * v[0] * u[1] * v[1]).sum(),
        u1v1=u[0] @ v[0],
        u2v2=u[1] @ v[1],
        u1v2=u[0] @ v[1],
        u2v1=u[1] @ v[0],
        uu=u[0] @ u[1],
        vv=v[0] @ v[1],
    )
    assert float(found) == pytest.approx(expected, rel=1e-11, abs=1e-12)


# -- exact constants -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [Fraction(text) for text in ("1e-6", "0.05", "0.5", "0.9", "1")], ids=str)
def test_constants_match_exact_fractions_up_to_sixty_records(rate):
    sizes = [2, 3, 4, 5, 10, 29, 30, 31, 32, 60]
    table = stratum_constants(sizes, rate)
    for index, n in enumerate(sizes):
        for name, exact in exact_constants(n, rate).items():
            found = float(getattr(table, name)[index])
            # The weights a1 and a2 lose digits where they are far smaller than their parts, of order 1/n.
            assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-16), (n, name)


def exact_constants(n: int, rate: Fraction) -> dict[str, Fraction]:
    """The definitions, as expectations over the number K of moved records."""
    weights = {k: math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1) if k != 1}
    total = sum(weights.values())

    def mean(of):
        return sum((weight * of(k) for k, weight in weights.items() if k), start=Fraction(0)) / total

    pairs = n * (n - 1)
    moved = mean(lambda k: Fraction(k, n))
    both = mean(lambda k: Fraction(k * (k - 1), pairs))
    exchanged = mean(lambda k: Fraction(k * (k - 1) * subfactorial(k - 2), pairs * subfactorial(k)))
    chained = mean(lambda k: Fraction(k * (k - 1) * subfactorial(k - 1), pairs * subfactorial(k)))
    return assembled(n, moved, both, exchanged, chained)


def assembled(n, moved, both, exchanged, chained):
    """The four weights of the covariance from the law of a pair of records, in any exact arithmetic."""
    fixed, one = 1 - 2 * moved + both, moved - both
    one_share = one / (n - 2) if n > 2 else one * 0
    chained_share = chained / (n - 2) if n > 2 else one * 0
    apart = (both - exchanged - 2 * chained) / ((n - 2) * (n - 3)) if n > 3 else one * 0
    shrinkage = 1 - moved * n / (n - 1)
    return {
        "moved": moved,
        "exchanged": exchanged,
        "shrinkage": shrinkage,
        "a1": fixed - 2 * one_share + apart - shrinkage**2,
        "a2": exchanged - 2 * chained_share + apart,
        "a3": moved / (n - 1) + apart,
        "a4": one - moved / (n - 1) + 4 * one_share - exchanged + 4 * chained_share - 6 * apart,
    }


@cache
def subfactorial(k: int) -> int:
    return sum((-1) ** j * (math.factorial(k) // math.factorial(j)) for j in range(k + 1))


@pytest.mark.parametrize("n", [61, 1000, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("text", ["1e-15", "1e-9", "1e-6", "0.01", "0.05", "0.5", "0.99"])
def test_variance_of_large_strata_is_right_to_eleven_digits(n, text):
    cells = [
        (n // 2, n // 2, n // 4),
        (n // 3, n // 5, n // 6),
        (n // 2, n // 2, n // 2),
        (1, 1, 1),
        (1, 1, 0),
        (n // 2, 1, 1),
        (n - 1, n - 1, n - 1),
    ]
    with localcontext() as context:
        context.prec = 100
        exact = long_constants(n, Decimal(text))
        for held, swapped, count in cells:
            mean, variance = moments(n, Fraction(text), held, swapped, count)
            a, b = Decimal(held) / n, Decimal(swapped) / n
            delta = count - n * a * b
            exact_mean = n * a * b + exact["shrinkage"] * delta
            exact_variance = (
                (exact["a4"] + n * exact["a3"]) * n * a * (1 - a) * b * (1 - b)
                + exact["a4"] * (1 - 2 * a) * (1 - 2 * b) * delta
                + (exact["a1"] + exact["a2"]) * delta**2
            )
            assert abs(Decimal(mean) / exact_mean - 1) < Decimal("2e-14")
            assert abs(Decimal(variance) / exact_variance - 1) < Decimal("1e-11"), (held, swapped, count)


def long_constants(n: int, p: Decimal) -> dict[str, Decimal]:
    """The same definitions in a hundred digits, where sums over K have closed forms but for thirty terms."""
    stay = (1 - p) ** (n - 1)
    kept = 1 - n * p * stay
    moved, both = p * (1 - stay) / kept, p**2 / kept
    selected = n * p * stay
    exchanges = 1 - (1 - p) * stay - selected
    for k in range(2, 61):
        selected *= p / (1 - p) * (n - k + 1) / k
        exchanges += selected * (-1) ** k * (k - 1) / subfactorial(k)
    exchanged = exchanges / (n * (n - 1) * kept)
    return assembled(n, moved, both, exchanged, moved / (n - 1) - exchanged)


# -- shape ---------------------------------------------------------------------------------------------------


def test_strata_of_one_record_or_none_are_never_touched():
    table = stratum_constants([0, 1, 2], Fraction(9, 10))
    mean, variance = cell_moments(table, [0, 1, 1, 2], [0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1])
    assert mean[:3].tolist() == [0.0, 1.0, 0.0]
    assert variance[:3].tolist() == [0.0, 0.0, 0.0]
    assert variance[3] > 0
    assert table.shrinkage[:2].tolist() == [1.0, 1.0]


def test_nothing_moves_at_rate_zero():
    mean, variance = moments(50, Fraction(0), 20, 10, 7)
    assert (mean, variance) == (7.0, 0.0)


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(9, 10), Fraction(1)], ids=str)
def test_cells_that_the_margins_determine_have_no_variance(rate):
    sizes = np.arange(2, 200)
    table = stratum_constants(sizes, rate)
    for held, swapped, count in ((sizes, sizes // 2, sizes // 2), (0 * sizes, sizes // 2, 0 * sizes)):
        mean, variance = cell_moments(table, sizes, held, swapped, count)
        assert np.array_equal(mean, count)
        assert not variance.any()


def test_rounding_never_makes_a_variance_negative():
    # At rate 1 a record that shares no value with another leaves its cell for certain; sums round to -1e-17.
    sizes = np.arange(2, 200)
    mean, variance = cell_moments(stratum_constants(sizes, Fraction(1)), sizes, 1, 1, 1)
    assert abs(mean).max() < 1e-15
    assert variance.min() == 0.0
    assert variance.max() < 1e-15


def test_expected_tables_keep_their_margins():
    true = np.array([[80, 30, 10], [40, 100, 60], [20, 60, 100]])
    table = stratum_constants([500], Fraction(1, 2))
    mean, _ = cell_moments(table, 500, true.sum(axis=1, keepdims=True), true.sum(axis=0, keepdims=True), true)
    assert mean.sum(axis=0) == pytest.approx(true.sum(axis=0), rel=1e-14)
    assert mean.sum(axis=1) == pytest.approx(true.sum(axis=1), rel=1e-14)
    assert abs(mean - true).max() > 10


def test_many_sizes_at_once_give_what_one_at_a_time_gives():
    sizes = [7, 2, 100, 7, 31, 10**6]
    table = stratum_constants(sizes, Fraction(1, 20))
    assert table.size.tolist() == sorted(set(sizes))
    for index, size in enumerate(table.size.tolist()):
        alone = constants_of(size, Fraction(1, 20))
        assert alone.size == size
        assert [getattr(table, name)[index] for name in NAMES] == [getattr(alone, name) for name in NAMES]
        assert alone.moved == pytest.approx(moved_probability(size, Fraction(1, 20)), rel=1e-15)


def test_sizes_without_constants_are_refused():
    table = stratum_constants([2, 100], Fraction(1, 20))
    for size in (3, 101):
        with pytest.raises(ValueError, match="no constants"):
            cell_moments(table, [2, size], [1, 1], [1, 1], [1, 1])
    with pytest.raises(ValueError, match="no constants"):
        stratum_constants([], Fraction(1, 20)).rows([2])


def test_impossible_sizes_and_rates_are_refused():
    with pytest.raises(ValueError, match="fewer than 0"):
        stratum_constants([-1, 5], Fraction(1, 20))
    with pytest.raises(PlanError, match="lies outside 0 to 1"):
        stratum_constants([5], Fraction(3, 2))


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 4.0), (1.5, 2.0), (-1.5, 2.0), (30.0, 0.25), (0.01, 9.0)])
def test_expected_absolute_error_is_the_mean_of_a_folded_normal(mean, variance):
    spread = math.sqrt(variance)

    def integrand(x: float) -> float:
        return abs(mean + spread * x) * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    corner = min(max(-mean / spread, -12.0), 12.0)
    exact = quad(integrand, -12, corner)[0] + quad(integrand, corner, 12)[0]
    assert float(expected_absolute_error(mean, variance)) == pytest.approx(exact, rel=1e-9)


def test_expected_absolute_error_without_variance_is_the_error_itself():
    errors = expected_absolute_error([0.0, -2.5, 2.5, -2.5], [0.0, 0.0, 0.0, 1e-320])
    assert errors.tolist() == [0.0, 2.5, 2.5, 2.5]
