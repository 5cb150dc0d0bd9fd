"""Audits of draws: bounds against enumeration, our own samplers pass, faulty ones are caught.

Seeds are fixed. Where a number of events is compared, the comment says the false-alarm probability, 1e-9.
"""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from noise_mutants import SAMPLERS, fit_power, in_cells, sampled, sampler, table_of
from scipy import stats

from stirred.errors import StirredError
from stirred.lab.audit.laws import coin, gaussian, integers, laplace, log_normaliser, mean_statistic
from stirred.lab.audit.noise_audit import LEAST_DRAWS, audit_noise, draws_needed, fit_edges, power, stated_effect
from stirred.lab.audit.p_values import (
    count_p_value,
    count_power,
    find_repeat,
    fit_p_value,
    log_spread,
    mean_p_value,
    rate_at_least,
    repeat_bound,
    smallest_factor,
    spread_power,
    telling_length,
    total_rate_at_least,
    unequal_p_values,
)
from stirred.noise import SeededSource

LAWS = [
    *(gaussian(sigma2) for sigma2 in ("1/20", 10, 10**4, 2**60)),
    *(laplace(scale) for scale in ("1/3", 3, 10**6)),
    *(integers(bound) for bound in (2, 10, 2**62 + 5)),
    *(coin(chance) for chance in ("1/20", "1/2")),
]
LONG = 5
"""The first faulty samplers take half a million draws and more."""


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [law for law in LAWS if law.spread < 1000], ids=str)
def test_probabilities_are_those_of_the_formula(law):
    values, chances = table_of(law)
    edges = np.arange(-20, 21)
    assert law.below(edges) == pytest.approx([chances[values < edge].sum() for edge in edges], rel=1e-12, abs=1e-15)
    assert law.log_coincidence == pytest.approx(math.log((chances**2).sum()), rel=1e-12, abs=1e-15)
    if law.kind != "coin":
        for modulus in (2, 16):
            expected = np.bincount(values % modulus, chances, minlength=modulus)
            assert law.residues(modulus) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    if law.family is not None:
        for distance in (0, 1, 2, 7, int(6 * law.spread)):
            assert law.beyond(distance) == pytest.approx(chances[np.abs(values) >= distance].sum(), rel=1e-10)
        statistic = np.abs(values.astype(float)) ** (2 if law.kind == "gaussian" else 1)
        rate = np.array([law.beta])
        assert mean_statistic(law.family, rate)[0] == pytest.approx((chances * statistic).sum(), rel=1e-12)
        total = np.exp(-law.beta * statistic).sum()
        assert log_normaliser(law.family, rate)[0] == pytest.approx(math.log(total), rel=1e-12)


def test_wide_laws_join_the_narrow_ones():
    narrow, wide = gaussian(2**28), gaussian(2**28 + 1)  # the last with a table, and the first without
    edges = fit_edges(narrow)
    assert wide.chances(edges) == pytest.approx(narrow.chances(edges), rel=1e-7)
    assert wide.residues(16) == pytest.approx(narrow.residues(16), rel=1e-12)
    assert wide.beyond(7 * 2**14) == pytest.approx(narrow.beyond(7 * 2**14), rel=1e-6)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cells_of_the_fit_are_a_partition(law):
    chances = law.chances(fit_edges(law))
    assert chances.sum() == pytest.approx(1, abs=1e-12) and np.all(chances > 0) and 2 <= len(chances) <= 37


@pytest.mark.parametrize(
    ("make", "parameter"),
    [(gaussian, 0), (gaussian, "ten"), (laplace, -1), (laplace, 2**41), (integers, 1), (integers, "5/2"), (coin, 0),
     (coin, 1), (coin, "3/2"), (coin, float("nan"))],
)  # fmt: skip
def test_parameters_that_make_no_law_are_refused(make, parameter):
    with pytest.raises(StirredError) as found:
        make(parameter)
    assert found.value.kind == "audit-question"


# -- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5), (0.01, 0.09, 0.9), (0.25,) * 4])
def test_the_fit_never_alarms_more_often_than_its_p_value(chances):
    chances, draws = np.array(chances), 14
    law = stats.multinomial(draws, chances)
    outcomes = [np.array(one) for one in itertools.product(range(draws + 1), repeat=len(chances)) if sum(one) == draws]
    found = sorted((fit_p_value(one, chances), float(law.pmf(one))) for one in outcomes)
    total = 0.0
    for p_value, chance in found:
        total += chance
        assert total <= p_value * (1 + 1e-9)
    assert found[0][0] < 2e-3  # it is not 1 throughout


def test_the_fit_notices_what_cannot_happen():
    assert fit_p_value(np.array([5, 1]), np.array([1.0, 0.0])) == 0


def convolved(values, chances, draws):
    """The law of a sum of draws of whole numbers from 0 on."""
    single = np.bincount(values, chances)
    total = np.ones(1)
    for _ in range(draws):
        total = np.convolve(total, single)
    return total


@pytest.mark.parametrize("law", [gaussian("1/4"), gaussian(2), laplace("1/2"), laplace(1)], ids=str)
def test_spread_and_mean_never_alarm_more_often_than_their_p_value(law):
    draws = 5
    values, chances = table_of(law)
    near = np.abs(values) <= 14
    values, chances = values[near], chances[near]
    sums = convolved(values**2 if law.kind == "gaussian" else np.abs(values), chances, draws)
    upper = np.cumsum(sums[::-1])[::-1]
    for total in range(40):
        smaller, larger, _ = log_spread(
            law.family, np.array([[law.beta]]), np.array([[float(draws)]]), np.array([[float(total)]])
        )
        assert sums[: total + 1].sum() <= math.exp(smaller[0]) * (1 + 1e-9) + 1e-12
        assert upper[total] <= math.exp(larger[0]) * (1 + 1e-9) + 1e-12
    assert log_spread(law.family, np.array([[law.beta]]), np.array([[200.0]]), np.zeros((1, 1)))[0][0] < -20
    shifted = convolved(values + 14, chances, draws)
    for total in range(1, 20):
        outside = shifted[: 70 - total + 1].sum() + shifted[70 + total :].sum()
        assert outside <= mean_p_value(law.family, law.beta, draws, float(total)) + 1e-12
    assert mean_p_value(law.family, law.beta, draws, 60.0) < 1e-6


def test_count_power_is_that_of_the_test():
    for draws, chance, truly in ((50, 0.3, 0.6), (200, 0.05, 0.2), (30, 0.5, 0.1)):
        alarms = [count_p_value(found, draws, chance) < 0.01 for found in range(draws + 1)]
        expected = stats.binom.pmf(np.arange(draws + 1), draws, truly)[alarms].sum()
        assert count_power(draws, chance, truly, 0.01) == pytest.approx(expected, rel=1e-9)


def test_power_is_never_overstated():
    # Fewer are noticed than the stated power allows with probability below 1e-9 each.
    rng, law, wrong, part = np.random.default_rng(1), gaussian(10), gaussian(7), 1e-3
    values, chances = table_of(wrong)
    edges = fit_edges(law)
    stated = spread_power("gaussian", np.array([law.beta]), np.array([500.0]), 10 / 7, part)
    fitted = fit_power(law.chances(edges), in_cells(values, chances, edges), 2000, part)
    assert 0.3 < stated < 0.999 and 0.3 < fitted < 0.999
    drawn = sampled(values, chances, rng, 1000 * 2000).reshape(1000, 2000)
    squares = (drawn[:, :500].astype(float) ** 2).sum(axis=1)[:, None]
    logs = log_spread("gaussian", np.full((1000, 1), law.beta), np.full((1000, 1), 500.0), squares)[:2]
    noticed = int(np.count_nonzero(2 * np.exp(np.minimum(*logs)) < part))
    assert stats.binom.cdf(noticed, 1000, stated) > 1e-9
    fits = [fit_p_value(in_cells(row, None, edges), law.chances(edges)) < part for row in drawn]
    assert stats.binom.cdf(sum(fits), 1000, fitted) > 1e-9


def test_the_smallest_factor_has_the_stated_power():
    rates, counts = np.array([0.05, 0.3]), np.array([300.0, 2000.0])
    factor = smallest_factor("gaussian", rates, counts, 1e-7, tests=5)
    assert spread_power("gaussian", rates, counts, factor, 1e-7, 5) >= 0.999
    assert spread_power("gaussian", rates, counts, factor * 0.999, 1e-7, 5) < 0.999


def test_bounds_of_rates_are_wrong_as_rarely_as_stated():
    # More misses than Binomial(100, .05) has with probability 1e-9 are an error.
    rng, counts = np.random.default_rng(2), np.array([20.0, 60.0, 5.0])
    laws = [gaussian(4), gaussian(10), gaussian("1/2")]
    betas = np.array([law.beta for law in laws])
    missed, totals_missed, bounds = np.zeros(3), 0, []
    for _ in range(100):
        drawn = [sampled(*table_of(law), rng, int(size)) for law, size in zip(laws, counts, strict=True)]
        sums = np.array([float((one**2).sum()) for one in drawn])
        bounds.append(rate_at_least("gaussian", counts, sums, 0.05))
        missed += bounds[-1] > betas
        totals_missed += total_rate_at_least("gaussian", counts, sums, 0.05) > betas.sum()
    limit = stats.binom.isf(1e-9, 100, 0.05)
    assert missed.max() <= limit and totals_missed <= limit
    assert np.mean(bounds, axis=0)[1] > betas[1] / 2


def test_two_groups_of_one_law_are_rarely_called_unequal_and_others_are():
    # More alarms than Binomial(3000, .05) has with probability 1e-9 are an error.
    rng, law = np.random.default_rng(4), gaussian(3)
    drawn = sampled(*table_of(law), rng, 3000 * 50).reshape(3000, 50).astype(float) ** 2
    sums = np.stack([drawn[:, :10].sum(axis=1), drawn[:, 10:].sum(axis=1)], axis=1)
    counts = np.tile([10.0, 40.0], (3000, 1))
    for claimed in (3, 30):  # the rate itself does not matter
        p_values = unequal_p_values("gaussian", np.full((3000, 2), gaussian(claimed).beta), counts, sums)
        assert np.count_nonzero(p_values < 0.05) <= stats.binom.isf(1e-9, 3000, 0.05)
    rate = np.full((2, 2), law.beta)
    unequal = unequal_p_values("gaussian", rate, np.full((2, 2), 200.0), np.array([[0.0, 600.0], [600.0, 1500.0]]))
    assert np.all(unequal < 1e-5)


def test_totals_are_bounded_better_together_than_one_by_one():
    counts, sums = np.full(9, 500.0), np.full(9, 5000.0)
    alone = rate_at_least("gaussian", counts, sums, 1e-7 / 9).sum()
    assert 1.2 * alone < total_rate_at_least("gaussian", counts, sums, 1e-7) < 9 / 20
    assert total_rate_at_least("gaussian", np.zeros(3), np.zeros(3), 0.05) == 0


def test_repeated_segments_are_found_wherever_they_begin():
    draws = np.random.default_rng(3).integers(-5, 6, 5000)
    assert find_repeat(draws, 30) is None
    for first, second in ((0, 4000), (4, 2500), (100, 111)):  # the last overlaps itself
        planted = draws.copy()
        planted[first : second + 30] = np.resize(planted[first:second], second + 30 - first)
        found = find_repeat(planted, 30)
        assert found is not None and found[0] != found[1]
        assert np.array_equal(planted[found[0] : found[0] + 30], planted[found[1] : found[1] + 30])


def test_the_bound_on_repeats_holds_by_enumeration():
    for chance in (0.5, 0.25):
        log = math.log(chance**2 + (1 - chance) ** 2)
        for length in range(3, 7):
            total = sum(
                math.prod(chance if one else 1 - chance for one in coins)
                for coins in itertools.product((0, 1), repeat=8)
                if find_repeat(np.array(coins), length) is not None
            )
            assert 0 < total <= repeat_bound(log, 8, length)
    length = telling_length(log, 1000, 1e-7)
    assert repeat_bound(log, 1000, length) < 1e-7 <= repeat_bound(log, 1000, length - 1)


# -- our own samplers, and faulty ones -----------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_our_samplers_pass(law):
    audit = audit_noise(law.draw(50_000, SeededSource(11)), law)
    assert audit.passed, str(audit)
    assert "proof of the sampler" in str(audit) and "0.999 or more" in str(audit)
    assert json.loads(audit.to_json())["passed"]


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    # Binomial(1000, .05) exceeds the limit with probability below 1e-9.
    laws = [gaussian(10), gaussian("1/3"), laplace(3), integers(10), coin("1/20")]
    alarms = 0
    for number in range(1000):
        law = laws[number % len(laws)]
        alarms += not audit_noise(law.draw(600, SeededSource(20_000 + number)), law, false_alarm=0.05).passed
    assert alarms <= stats.binom.isf(1e-9, 1000, 0.05)


@pytest.mark.parametrize("name", SAMPLERS)
def test_faults_are_noticed_with_power_of_999_or_more(name):
    assert sampler(name).power >= 0.999


def caught(name, seed):
    mutant = sampler(name)
    audit = audit_noise(mutant.draw(np.random.default_rng(seed), mutant.size), mutant.law)
    assert {one.name for one in audit.wrong} & set(mutant.questions), str(audit)


@pytest.mark.parametrize("name", list(SAMPLERS)[LONG:])
def test_faulty_samplers_are_caught(name):
    caught(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_faulty_samplers_are_caught_again_and_again(name):
    """Thirty times; five times where it takes more than a million draws."""
    for seed in range(5 if sampler(name).size > 1_000_000 else 30):
        caught(name, 100 + seed)


def wrong_words(draws, law):
    return {one.name: one.said for one in audit_noise(draws, law).wrong}


def test_too_little_noise_is_called_a_privacy_fault_and_too_much_is_not():
    less = wrong_words(gaussian(5).draw(20_000, SeededSource(1)), gaussian(10))["spread"]
    assert less.startswith("Too little noise, a privacy fault") and "at least 1.8" in less
    # So little more that only the sum of squares shows it, by about 8 standard deviations.
    more = wrong_words(gaussian("10.35").draw(100_000, SeededSource(1)), gaussian(10))
    assert set(more) == {"spread"}
    assert more["spread"].startswith("More noise than stated: stated errors are too small. Privacy does not suffer")


def rare_and_huge():
    """Zeros but for one draw in fifty, which is far out: more noise than stated, and hardly any protection."""
    rng = np.random.default_rng(5)
    return np.where(rng.random(20_000) < 0.02, rng.integers(-200, 201, 20_000), 0)


def test_more_noise_of_another_law_is_not_said_to_be_private():
    said = wrong_words(rare_and_huge(), gaussian(10))
    assert {"spread", "fit", "tails"} <= set(said)
    assert said["spread"].startswith("More noise than stated")
    assert "Privacy does not suffer" not in said["spread"]
    assert "Whether privacy suffers depends on the law" in said["spread"]


def test_independent_draws_of_another_law_are_not_called_dependent():
    said = wrong_words(rare_and_huge(), gaussian(10))
    for name in ("neighbours", "repeats"):
        assert said[name].endswith("If the law itself is wrong (see above), that alone can explain it.")
        assert "are not independent" not in said[name] and "was used again" not in said[name]
    coins = wrong_words(coin("1/4").draw(20_000, SeededSource(1)), coin("1/2"))
    assert coins["blocks"].endswith("that alone can explain it.")
    assert "not tossed independently" not in coins["blocks"]


def test_what_so_few_draws_cannot_show_is_not_called_right():
    audit = audit_noise(coin("1/100").draw(200, SeededSource(1)), coin("1/100"))
    assert [one.name for one in audit.unasked] == ["repeats"]
    assert "there are too few draws" in audit.unasked[0].said
    assert f"in {len(audit.results) - 1} questions; 1 could not be asked." in str(audit)


def test_a_bound_that_no_word_favours_is_not_looked_at_for_it():
    (modulo,) = audit_noise(integers(16).draw(10_000, SeededSource(1)), integers(16)).unasked
    assert modulo.name == "modulo" and "modulo 16 favours none" in modulo.said


def test_values_outside_the_support_end_the_audit():
    audit = audit_noise(np.tile([0, 1, 2, 10], 50), integers(10))
    assert [one.name for one in audit.wrong] == ["support"] and not audit.limits


def test_whole_numbers_given_as_floats_are_whole_numbers():
    assert audit_noise(gaussian(10).draw(1000, SeededSource(4)).astype(float), gaussian(10)).passed


@pytest.mark.parametrize(
    ("draws", "words"),
    [([1, 2, 3], f"{LEAST_DRAWS} or more"), ([[1, 2], [3, 4]], "one list"), (["1"] * 200, "one list"),
     ([float("nan")] * 200, "none missing"), ([2**70] * 200, "64 bits"),
     ([-(2**63)] * 200, "64 bits"), ([2**63] * 200, "64 bits"), ([1e300] * 200, "64 bits")],
)  # fmt: skip
def test_draws_that_cannot_be_audited_are_refused(draws, words):
    with pytest.raises(StirredError) as found:
        audit_noise(draws, gaussian(10))
    assert words in str(found.value)


def test_a_false_alarm_rate_is_a_probability():
    with pytest.raises(StirredError):
        audit_noise([0] * 200, gaussian(10), false_alarm=1.5)


@pytest.mark.parametrize(
    ("law", "least", "most"),
    [(gaussian(10), 400_000, 500_000), (laplace(3), 800_000, 900_000), (integers(10), 600_000, 800_000),
     (coin("1/20"), 5_000_000, 6_000_000)],
    ids=str,
)  # fmt: skip
def test_the_stated_effects_take_so_many_draws(law, least, most):
    needed = draws_needed(law)
    assert least < needed < most
    assert power(law, needed, stated_effect(law)) >= 0.999 > power(law, int(needed * 0.95), stated_effect(law))


def test_a_rate_on_the_grid_cannot_be_rounded_to_it():
    assert draws_needed(coin("1/2")) is None
