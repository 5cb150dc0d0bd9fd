"""The published samplers in plain Python: they follow the laws too, and agree with the fast ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import counts_fit, fits

from stirred.lab.definitions.reference_sampler import (
    coin,
    coin_exp,
    one_discrete_gaussian,
    one_discrete_laplace,
    uniform,
)
from stirred.noise import SeededSource, discrete_gaussian, discrete_laplace

PRODUCTION = Fraction(214437516707, 177339451520)
DRAWS = 6000


def law(scale, power):
    values = np.arange(-3000, 3001)
    weights = np.exp(-(np.abs(values) ** power) / (power * float(scale)))
    return values, weights / weights.sum()


def same(first, second):
    """Whether two samples of equal size have one law: cells by joint rank, conditional on their sums."""
    cuts = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 12)[1:-1]))
    one, other = (np.bincount(np.searchsorted(cuts, sample), minlength=len(cuts) + 1) for sample in (first, second))
    return all(counts_fit(np.array(pair), [0.5, 0.5]) for pair in zip(one, other, strict=True) if sum(pair))


@pytest.mark.parametrize(
    "variance", [Fraction(3, 7), Fraction(1), PRODUCTION, Fraction(100), Fraction(12345, 7)], ids=str
)
def test_the_reference_gaussian_has_the_law_of_the_fast_one(variance):
    """6,000 draws. False alarm below 1e-9."""
    source = SeededSource(81)
    drawn = np.array([one_discrete_gaussian(variance, source) for _ in range(DRAWS)])
    assert fits(drawn, *law(variance, 2))
    assert same(drawn, discrete_gaussian(variance, DRAWS, SeededSource(82)))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 7), Fraction(1), Fraction(50)], ids=str)
def test_the_reference_laplace_has_the_law_of_the_fast_one(scale):
    """6,000 draws. False alarm below 1e-9."""
    source = SeededSource(83)
    drawn = np.array([one_discrete_laplace(scale, source) for _ in range(DRAWS)])
    assert fits(drawn, *law(scale, 1))
    assert same(drawn, discrete_laplace(scale, DRAWS, SeededSource(84)))


def test_the_reference_has_no_limit():
    scale = Fraction(2**100)
    assert abs(one_discrete_gaussian(scale**2, SeededSource(85))) < 2**105
    assert abs(one_discrete_laplace(scale, SeededSource(85))) < 2**107


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)], ids=str)
def test_reference_coins_have_their_probability(x):
    """6,000 draws. False alarm below 1e-9."""
    source = SeededSource(86)
    of_exp = [coin_exp(x, source) for _ in range(DRAWS)]
    plain = [coin(x / 3, source) for _ in range(DRAWS)]
    assert counts_fit(np.bincount(of_exp, minlength=2), [1 - math.exp(-x), math.exp(-x)])
    assert counts_fit(np.bincount(plain, minlength=2), [float(1 - x / 3), float(x / 3)])


def test_reference_integers_are_uniform():
    """False alarm below 1e-9."""
    source = SeededSource(87)
    for bound in (1, 2, 3, 7, 256, 257):
        drawn = [uniform(bound, source) for _ in range(DRAWS)]
        assert counts_fit(np.bincount(drawn, minlength=bound), np.full(bound, 1 / bound))
