"""Estimates from swapped cells: golden values, all releases of small files, how often intervals contain the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri
from simulated_releases import question, simulated, tally_of, true_counts
from swap_oracle import permutation_law, permutations

from stirred.swap.estimating.cell_estimates import Block, Covariances, cell_estimates
from stirred.swap.estimating.question_counts import CountParts, score_interval
from stirred.swap.law.moments import cell_moments, stratum_constants
from stirred.swap.law.stratum_laws import cell_law, exact_interval

# -- numbers of the notes ------------------------------------------------------------------------------------

GOLDEN = [
    (20, "0.05", 8, 5, 3, 3.055555556, 0.114487580, (2, 4)),
    (20, "0.5", 8, 5, 3, 4.111151379, 3.536654049, (0, 5)),
    (100, "0.05", 30, 20, 10, 10.218539594, 0.437856004, (9, 12)),
    (100, "0.5", 30, 20, 8, 10.040816327, 11.470019910, (3, 18)),
    (1000, "0.05", 300, 40, 29, 29.895679663, 1.220939361, (28, 32)),
    (100_000, "0.05", 30_000, 200, 98, 100.000021053, 5.367178528, (95, 105)),
]


def two_by_two(n, n_h, n_s, z, rate):
    held = np.repeat([1, 1, 0, 0], [z, n_h - z, n_s - z, n - n_h - n_s + z])
    swapped = np.repeat([1, 0, 1, 0], [z, n_h - z, n_s - z, n - n_h - n_s + z])
    return tally_of(np.zeros(n, int), np.stack([1 - held, held], axis=1), swapped, rate)


@pytest.mark.parametrize(("n", "rate", "n_h", "n_s", "z", "estimate", "variance", "ends"), GOLDEN)
def test_estimates_variances_and_intervals_match_the_notes(n, rate, n_h, n_s, z, estimate, variance, ends):
    tally = two_by_two(n, n_h, n_s, z, rate)
    found = cell_estimates(tally)
    assert found.values[-1] == pytest.approx(estimate, abs=6e-10)
    assert found.variances[-1] == pytest.approx(variance, abs=6e-10)
    lower, upper = score_interval(found, float(ndtri(0.975)))
    assert (lower[-1], upper[-1]) == ends
    one = Block(np.array([True]), np.array([False, True]), np.array([False, True]))
    assert Covariances(tally).between(one, one) == pytest.approx(variance, abs=6e-10)


def test_exact_intervals_match_the_notes():
    assert exact_interval(20, 8, 5, 3, Fraction(1, 20), 0.05) == (2, 4)
    assert exact_interval(20, 8, 5, 3, Fraction(1, 2), 0.05) == (0, 5)
    parts = CountParts(two_by_two(20, 8, 5, 3, "0.05"), Fraction(1, 20))
    assert set(parts.kinds) == {"exact"}
    found = parts.parts(0.95, whole=True)
    assert (found.lower[-1], found.upper[-1]) == (2, 4)


@pytest.mark.parametrize(("n", "n_h", "n_s"), [(2, 1, 1), (5, 2, 3), (9, 4, 4), (14, 7, 3), (20, 8, 5)])
@pytest.mark.parametrize("rate", ["0.01", "0.3", "0.9"])
def test_the_law_of_a_cell_has_the_exact_moments(n, n_h, n_s, rate):
    law = cell_law(n, n_h, n_s, Fraction(rate))
    counts = np.arange(len(law)) + max(0, n_h + n_s - n)
    mean, variance = cell_moments(stratum_constants([n], Fraction(rate)), n, n_h, n_s, counts)
    assert law.min() > -1e-14
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(law @ counts, mean, atol=1e-12)
    np.testing.assert_allclose(law @ counts**2 - (law @ counts) ** 2, variance, atol=1e-11)


def test_the_law_of_a_cell_by_enumeration():
    held, swapped, rate = np.array([1, 1, 0, 0, 0, 1]), np.array([1, 0, 1, 0, 0, 0]), Fraction(1, 5)
    every, moved = permutations(6)
    chance = np.array([float(part) for part in permutation_law(6, rate)])[moved]
    released = (held * swapped[every]).sum(axis=1)
    found = [chance[released == z].sum() for z in range(3)]
    np.testing.assert_allclose(cell_law(6, 3, 2, rate)[1], found, atol=1e-14)


# -- every release of small files ----------------------------------------------------------------------------

FILES = {
    "two by two": ([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1]),
    "three swap values": ([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], [0, 1, 1, 2, 2]),
    "three held groups": ([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]], [0, 0, 1, 1, 2, 0]),
    "persons": ([[0, 2], [1, 1], [3, 0], [0, 0], [1, 0], [2, 1]], [0, 0, 1, 1, 0, 1]),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("rate", ["0.01", "0.05", "0.3", "0.5", "0.9", "1"])
def test_over_all_releases_estimates_variances_and_covariances_are_unbiased(name, rate):
    scores, swapped = (np.array(part) for part in FILES[name])
    n = len(swapped)
    every, moved = permutations(n)
    chance = np.array([float(part) for part in permutation_law(n, Fraction(rate))])[moved]
    kept = chance > 0
    chance, every = chance[kept], every[kept]
    tally = tally_of(np.zeros(n, int), scores, swapped[every], rate)
    if not tally.law.invertible[0]:
        return  # no unbiased estimate exists near the critical rate
    found, truth = cell_estimates(tally), true_counts(scores, swapped)
    values = found.values.reshape(len(every), *truth.shape)
    np.testing.assert_allclose(np.tensordot(chance, values, 1), truth, atol=1e-9)
    spread = np.tensordot(chance, (values - truth) ** 2, 1)
    scale = 1 / tally.law.shrinkage[0] ** 4
    stated = np.tensordot(chance, found.variances.reshape(values.shape), 1)
    np.testing.assert_allclose(stated, spread, atol=1e-9 * scale)
    _, first = np.unique(swapped[every], axis=0, return_index=True)
    alike = np.unique(swapped[every], axis=0, return_inverse=True)[1].reshape(-1)
    weight = np.bincount(alike, chance)
    between = Covariances(tally)

    def block(run, held, values):
        return Block(
            np.arange(len(every)) == run,
            np.isin(np.arange(truth.shape[0]), held),
            np.isin(np.arange(truth.shape[1]), values),
        )

    for one, other in [(([0], [0]), ([1], [1])), (([0], [0]), ([0], [1])), (([0], [0]), ([0, 1], [0])),
                       (([1], [0]), ([0], [0, 1]))]:  # fmt: skip
        a, b = (values[:, part[0]][:, :, part[1]].sum(axis=(1, 2)) for part in (one, other))
        x, y = (truth[np.ix_(*part)].sum() for part in (one, other))
        stated = sum(
            w * between.between(block(run, *one), block(run, *other)) for w, run in zip(weight, first, strict=True)
        )
        assert stated == pytest.approx(float((chance * (a - x) * (b - y)).sum()), abs=1e-9 * scale)


def test_sums_over_strata_merge_before_they_are_estimated():
    scores, swapped = np.eye(3, dtype=int)[[0, 1, 2, 0, 1, 2, 2, 0]], np.array([0, 1, 2, 2, 1, 0, 0, 1])
    tally = tally_of([0, 0, 0, 0, 1, 1, 1, 1], scores, swapped, "0.1")
    merged = tally.merged(np.arange(1), np.array([0, 0, 1]), np.array([0, 1, 1]))
    found, apart = cell_estimates(merged), cell_estimates(tally)
    groups = apart.answers // 3, apart.answers % 3
    inside = (groups[0] < 2) & (groups[1] > 0)
    assert found.total(found.values)[1] == pytest.approx(apart.total(apart.values)[inside].sum())
    block = Block(np.array([True]), np.array([True, True, False]), np.array([False, True, True]))
    assert found.total(found.variances)[1] == pytest.approx(Covariances(tally).between(block, block))
    assert found.total(found.variances)[1] != pytest.approx(apart.total(apart.variances)[inside].sum())


def test_persons_who_never_change_places_are_known():
    households = np.array([[2], [2], [2], [2]])  # all the same size, so persons by county are kept
    tally = tally_of([0, 0, 0, 0], households, [0, 0, 1, 1], "0.5")
    parts = CountParts(tally, Fraction(1, 2))
    assert list(parts.kinds) == ["known", "known"] and list(parts.values) == [4, 4] and not parts.variances.any()


def test_where_the_margins_say_as_much_the_answer_is_refused_and_bounded():
    refused = CountParts(two_by_two(2, 1, 1, 1, "0.5"), Fraction(1, 2))  # lambda is 0
    assert set(refused.kinds) == {"margins"}
    assert list(refused.parts(0.95).lower) == [0] * 4 and list(refused.parts(0.95).upper) == [1] * 4
    spread = CountParts(two_by_two(5, 2, 3, 2, "0.5"), Fraction(1, 2))  # standard error 1.8 of a count from 0 to 2
    assert set(spread.kinds) == {"margins"}
    assert set(CountParts(two_by_two(20, 8, 5, 3, "0.5"), Fraction(1, 2)).kinds) == {"exact"}
    negative = CountParts(two_by_two(40, 20, 20, 5, "1"), Fraction(1))
    assert negative.tally.law.shrinkage[0] == pytest.approx(-1 / 39) and set(negative.kinds) == {"margins"}


def test_strata_that_cannot_be_inverted_widen_the_interval_by_what_their_margins_allow():
    held = np.array([1, 0] + [1] * 30 + [0] * 70)
    swapped = np.array([1, 0] + [1] * 20 + [0] * 80)
    stratum = np.array([0] * 2 + [1] * 100)
    parts = CountParts(tally_of(stratum, np.stack([1 - held, held], 1), swapped, "0.5"), Fraction(1, 2))
    alone = CountParts(tally_of(stratum[2:] - 1, np.stack([1 - held, held], 1)[2:], swapped[2:], "0.5"), Fraction(1, 2))
    assert set(parts.kinds) == {"bounded"}
    both, one = parts.parts(0.95, whole=True), alone.parts(0.95, whole=True)
    np.testing.assert_array_equal(both.lower, one.lower)
    np.testing.assert_array_equal(both.upper, one.upper + 1)


# -- coverage ------------------------------------------------------------------------------------------------

MIXED = [1] * 5 + [2] * 10 + [3] * 10 + list(range(4, 30)) + [100, 300]
SHAPES = {"one of 20": [20], "one of 100": [100], "one of 2,000": [2000], "many small": [3, 4, 5] * 15, "mixed": MIXED}
RATES = ["0.01", "0.05", "0.1", "0.3", "0.5"]


def file_of(sizes, persons, seed):
    """Records with an association of what is held with swap values: owners and renters, or adults and children."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    swapped = rng.choice(3, len(stratum), p=[0.5, 0.35, 0.15])
    swapped[:3] = [0, 1, 2]
    if persons:
        held = np.stack([rng.poisson(0.5 + 0.9 * (swapped == 0)), rng.poisson(0.3, len(stratum))], axis=1)
    else:
        held = np.eye(2, dtype=int)[(rng.random(len(stratum)) < 0.15 + 0.3 * (swapped == 1)).astype(int)]
    held[0], held[1] = (1, 0), (0, 1)
    return stratum, held, swapped


def least_coverage(times):
    """An interval that contains the truth in exactly 95 of 100 releases falls below this in 3 of 100,000 tests."""
    return 0.95 - 4 * math.sqrt(0.95 * 0.05 / times)


def covered(answers, truth, confidence=0.95):
    """By label without the run, how often intervals contain the truth."""
    lower, upper = answers.interval(confidence)
    inside = {}
    for at, label in enumerate(answers.labels):
        key = label[1:]
        inside.setdefault(key, []).append(lower[at] - 1e-9 <= truth(key) <= upper[at] + 1e-9)
    return {key: (float(np.mean(held)), len(held)) for key, held in inside.items()}


def check_coverage(sizes, persons, rate, times, seed):
    stratum, scores, swapped = file_of(sizes, persons, seed)
    asked = question(simulated(stratum, scores, swapped, rate, seed, times), rate)
    table = true_counts(scores, swapped).astype(float)
    counts = covered(asked.counts(), lambda key: table[int(key[0]), int(key[1])])
    shares = covered(asked.shares("h"), lambda key: table[int(key[0]), int(key[1])] / table[:, int(key[1])].sum())
    apart = covered(
        asked.compared(("s", "0", "1"), None, apart=True), lambda key: table[int(key[0]), 0] - table[int(key[0]), 1]
    )
    share = table / table.sum(axis=0)
    contrast = covered(
        asked.compared(("s", "0", "1"), "h", apart=True), lambda key: share[int(key[0]), 0] - share[int(key[0]), 1]
    )
    for found in (counts, shares, apart, contrast):
        for key, (often, runs) in found.items():
            assert runs == times
            assert often >= least_coverage(times), (key, often)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("shape", ["one of 100", "mixed"])
@pytest.mark.parametrize("rate", ["0.05", "0.5"])
def test_intervals_contain_the_truth_as_often_as_they_say(shape, persons, rate):
    check_coverage(SHAPES[shape], persons, rate, 200, 7)


def test_differences_of_counts_near_their_bounds_contain_the_truth():
    # With ends cut at the margins before they were combined, 69 of 100 did.
    check_coverage([20], False, "0.1", 400, 11)


@pytest.mark.parametrize("rate", ["0.4", "0.6"])
def test_sums_over_strata_of_two_contain_the_truth(rate):
    # The variance of the formula at half a record, where a stratum of two has none, gave 85 of 100.
    rng = np.random.default_rng(1)
    stratum, swapped = np.repeat(np.arange(100), 2), rng.choice(3, 200, p=[0.6, 0.3, 0.1])
    scores = np.eye(2, dtype=int)[(rng.random(200) < 0.1 + 0.5 * (swapped == 1)).astype(int)]
    asked = question(simulated(stratum, scores, swapped, rate, 1, 1000), rate)
    table = true_counts(scores, swapped)
    for key, (often, runs) in covered(asked.counts(), lambda key: table[int(key[0]), int(key[1])]).items():
        assert runs == 1000 and often >= least_coverage(1000), (key, often)


def test_a_count_between_whole_numbers_has_their_mean_variance():
    cells = CountParts(two_by_two(2, 1, 1, 1, "0.3"), Fraction("0.3")).cells
    q = 0.09 / (0.09 + 0.49)
    for value in (0.0, 0.25, 0.5, 1.0):
        np.testing.assert_allclose(cells.variances_at(np.full(4, value)), q * (1 - q) / (1 - 2 * q) ** 2)


@pytest.mark.parametrize("rate", ["0.4", "0.8"])
def test_rows_in_few_large_records_contain_the_truth(rate):
    # With sums of squares in proportion to counts, at most 90 and 70 of 100 did.
    swapped, persons = np.zeros(300, dtype=int), np.ones(300, dtype=int)
    swapped[:5], persons[:5] = 1, [6, 7, 5, 8, 6]
    scores = np.stack([persons, persons > 4], axis=1).astype(int)
    asked = question(simulated(np.zeros(300, dtype=int), scores, swapped, rate, 2, 1000), rate)
    table = true_counts(scores, swapped)
    for key, (often, runs) in covered(asked.counts(), lambda key: table[int(key[0]), int(key[1])]).items():
        assert runs == 1000 and often >= least_coverage(1000), (key, often)


def test_squares_follow_counts_as_among_the_records():
    persons = np.array([1] * 9 + [31])
    swapped = np.array([0] * 5 + [1] * 5)
    cells = CountParts(tally_of(np.zeros(10, dtype=int), persons, swapped, "0.1"), Fraction("0.1")).cells
    np.testing.assert_allclose(cells.square_per_row, (31**2 - 1) / (31 - 1))


@pytest.mark.slow
@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_intervals_contain_the_truth_as_often_as_they_say_over_1000_releases(shape, persons, rate):
    check_coverage(SHAPES[shape], persons, rate, 1000, 11)


def test_naive_shares_miss_and_corrected_ones_do_not():
    stratum, scores, swapped = file_of([2000], False, 3)
    asked = question(simulated(stratum, scores, swapped, "0.5", 3, 300), "0.5")
    found, table = asked.shares("h"), true_counts(scores, swapped).astype(float)
    here = np.array([label[1:] == ("1", "1") for label in found.labels])
    truth = table[1, 1] / table[:, 1].sum()
    assert np.mean(found.naive[here]) < truth - 0.05
    assert np.mean(found.values[here]) == pytest.approx(truth, abs=5 * found.values[here].std() / math.sqrt(300))


@pytest.mark.parametrize("rate", ["0.05", "0.5"])
def test_shares_of_estimated_totals_ratios_and_odds_ratios_contain_the_truth(rate):
    rng = np.random.default_rng(5)
    stratum, swapped = np.repeat([0, 1, 2], [900, 400, 80]), rng.choice(2, 1380, p=[0.6, 0.4])
    first = rng.random(1380) < 0.3 + 0.2 * swapped
    second = rng.random(1380) < 0.5 - 0.25 * swapped
    scores = np.eye(4, dtype=int)[2 * first + second]
    times = 300
    asked = question(simulated(stratum, scores, swapped, rate, 5, times), rate, ("f", "g"))
    table = true_counts(scores, swapped).astype(float).reshape(2, 2, 2)
    share = table / table.sum(axis=1, keepdims=True)
    found = [
        covered(asked.shares("g"), lambda key: share[tuple(map(int, key))]),
        covered(asked.compared(("s", "1", "0"), None, apart=False),
                lambda key: table[(*map(int, key), 1)] / table[(*map(int, key), 0)]),
        covered(asked.odds_ratio(("s", "1", "0"), ("g", "1", "0")),
                lambda key: (t := table[int(key[0])])[1, 1] * t[0, 0] / (t[0, 1] * t[1, 0])),
        covered(asked.compared(("s", "1", "0"), "g", apart=False),
                lambda key: share[(*map(int, key), 1)] / share[(*map(int, key), 0)]),
    ]  # fmt: skip
    for one in found:
        for key, (often, runs) in one.items():
            assert runs == times and least_coverage(times) <= often <= 0.999, (key, often)
