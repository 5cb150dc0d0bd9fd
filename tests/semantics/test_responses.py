"""Randomised response: the slides' numbers, and unbiasedness and variances by enumeration of all answers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.lab.reproduce.catalogue import items
from stirred.loss import multiplicative
from stirred.semantics.randomised_response import (
    epsilon,
    estimated_share,
    estimated_variance,
    expected_mean,
    variance,
    variance_bound,
    variance_of_coins,
)
from stirred.spec.order.finite_mechanisms import randomised_response

KEEPS = [Fraction(3, 5), Fraction(9, 10), Fraction(1, 5), Fraction(1), Fraction(0)]


def answers(bits, keep):
    """All answers of respondents with these bits, and their probabilities."""
    for told in itertools.product((0, 1), repeat=len(bits)):
        chance = Fraction(1)
        for bit, answer in zip(bits, told, strict=True):
            chance *= keep if bit == answer else 1 - keep
        yield told, chance


def moments(law):
    """Mean and variance of pairs (value, probability)."""
    listed = list(law)
    mean = sum(value * chance for value, chance in listed)
    return mean, sum((value - mean) ** 2 * chance for value, chance in listed)


def estimates(bits, keep):
    for told, chance in answers(bits, keep):
        yield Fraction(estimated_share(Fraction(sum(told), len(told)), keep)).limit_denominator(10**9), chance


def test_the_example_of_the_slides():
    # Reference, section 7.5.
    example = items()["slides/randomised-response/estimate"]
    assert example.inputs == {"mean": "0.45", "keep": "0.6"}
    assert estimated_share(0.45, 0.6) == float(example.published) == 0.25
    assert expected_mean(0.25, 0.6) == 0.45
    assert variance(0.25, 0.6, 100) == 0.061875
    assert variance_bound(0.6, 100) == 0.0625
    assert epsilon(0.6) == pytest.approx(0.4054651, abs=6e-8)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("respondents", [1, 2, 3, 5])
def test_the_estimate_is_unbiased_for_these_respondents_and_varies_with_the_coins_alone(keep, respondents):
    for ones in range(respondents + 1):
        bits = (1,) * ones + (0,) * (respondents - ones)
        mean, spread = moments(estimates(bits, keep))
        assert mean == Fraction(ones, respondents)
        assert float(spread) == pytest.approx(variance_of_coins(keep, respondents), rel=1e-12)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)])
def test_the_variance_is_that_of_all_samples_and_all_coins(keep, share):
    respondents = 3
    law, spreads = [], []
    for bits in itertools.product((0, 1), repeat=respondents):
        drawn = share ** sum(bits) * (1 - share) ** (respondents - sum(bits))
        law += [(estimate, drawn * chance) for estimate, chance in estimates(bits, keep)]
        for told, chance in answers(bits, keep):
            spreads.append((estimated_variance(Fraction(sum(told), respondents), keep, respondents), drawn * chance))
    mean, spread = moments(law)
    assert mean == share
    assert variance(share, keep, respondents) == pytest.approx(float(spread), rel=1e-12)
    assert float(moments(spreads)[0]) == pytest.approx(float(spread), rel=1e-12)  # estimated without bias too
    sampling = float(share * (1 - share) / respondents)
    assert variance(share, keep, respondents) == pytest.approx(sampling + variance_of_coins(keep, respondents))


@pytest.mark.parametrize("keep", [0.51, 0.6, 0.99, 0.2])
def test_the_bound_is_the_one_of_the_slides_and_attained_at_a_half(keep):
    for n in (1, 7, 1000):
        assert variance_bound(keep, n) == pytest.approx(1 / (16 * n * (keep - 0.5) ** 2))
        assert variance(0.5, keep, n) == variance_bound(keep, n)
        assert all(variance(share / 10, keep, n) <= variance_bound(keep, n) for share in range(11))


@pytest.mark.parametrize("keep", ["1/10", "2/5", "3/5", "3/4", "99/100"])
def test_epsilon_is_the_loss_of_the_mechanism_and_the_same_for_its_mirror(keep):
    p = Fraction(keep)
    rows = randomised_response(1 - p).rows
    assert epsilon(keep) == pytest.approx(multiplicative(rows[0], rows[1]), rel=1e-12)
    assert epsilon(keep) == pytest.approx(abs(math.log(p / (1 - p))), rel=1e-12)
    assert epsilon(1 - p) == pytest.approx(epsilon(p))
    # Below one half the answers are turned around, and all else is as above it.
    assert estimated_share("0.3", p) == pytest.approx(estimated_share("0.7", 1 - p))
    assert variance(0.2, p, 10) == pytest.approx(variance(0.2, 1 - p, 10))
    assert expected_mean(0.2, p) == pytest.approx(1 - expected_mean(0.2, 1 - p))


def test_relative_risks_are_likelihood_ratios():
    # Reference, section 7.5: [P(1 | T) / P(1)] / [P(0 | T) / P(0)] = P(T | 1) / P(T | 0), here e^epsilon.
    share, keep = Fraction(1, 7), Fraction(3, 4)
    told = keep * share / (keep * share + (1 - keep) * (1 - share))
    assert (told / share) / ((1 - told) / (1 - share)) == keep / (1 - keep)
    assert math.exp(epsilon(keep)) == pytest.approx(3)


def test_estimates_are_not_cut_off_and_true_answers_are_taken_as_they_are():
    assert estimated_share(0, 0.75) == -0.5
    assert estimated_share(1, 0.75) == 1.5
    assert estimated_share(0.37, 1) == 0.37
    assert estimated_share(0.25, 0) == 0.75
    assert (epsilon(1), epsilon(0), epsilon(0.5)) == (math.inf, math.inf, 0)
    assert variance_of_coins(1, 10) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: estimated_share(0.4, 0.5), "answers tell nothing"),
        (lambda: estimated_share(0.4, "1/2"), "answers tell nothing"),
        (lambda: variance(0.4, 0.5, 10), "answers tell nothing"),
        (lambda: variance_bound(0.5, 10), "answers tell nothing"),
        (lambda: estimated_share(1.4, 0.6), "mean is 1.4"),
        (lambda: estimated_share(0.4, 1.6), "keep is 1.6"),
        (lambda: estimated_share(math.nan, 0.6), "mean is nan"),
        (lambda: expected_mean("some", 0.6), "share is some"),
        (lambda: epsilon(-0.1), "keep is -0.1"),
        (lambda: variance(0.4, 0.6, 0), "from 1 on"),
        (lambda: variance(0.4, 0.6, 2.0), "from 1 on"),
        (lambda: variance(0.4, 0.6, True), "from 1 on"),
        (lambda: estimated_variance(0.4, 0.6, 1), "at least 2"),
    ],
)
def test_numbers_out_of_range_are_refused(call, words):
    with pytest.raises(StirredError, match=words):
        call()
