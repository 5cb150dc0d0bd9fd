"""Kish's effective sample size and design effect."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from stirred.lab.sampling import Frame, Poisson, SimpleRandom
from stirred.survey import design_effect, effective_sample_size


def test_equal_weights_lose_nothing():
    weights = SimpleRandom(4).weights(Frame.of(10), [0, 1, 2, 3])
    assert effective_sample_size(weights) == 4 and design_effect(weights) == 1


def test_both_are_those_of_the_formula():
    generator = np.random.default_rng(1)
    for _ in range(20):
        weights = (generator.integers(1, 500, 30) / 100).tolist()
        exact = [Fraction(str(weight)) for weight in weights]
        assert effective_sample_size(weights) == sum(exact) ** 2 / sum(weight * weight for weight in exact)
        assert design_effect(weights) * effective_sample_size(weights) == 30
        # 1 plus the squared coefficient of variation
        assert float(design_effect(weights)) == pytest.approx(1 + np.var(weights) / np.mean(weights) ** 2, rel=1e-12)


def test_scaling_all_weights_changes_nothing():
    weights = list(Poisson(2).weights(Frame.of(sizes=[1, 2, 3, 3])))
    assert effective_sample_size(weights) == effective_sample_size([7 * weight for weight in weights])


def test_weights_count_once_for_each_unit_however_they_are_written():
    assert effective_sample_size(["1", 1, 1.0, Fraction(1)]) == 4
    assert effective_sample_size(np.repeat([1.5, 2.5], 50_000)) == Fraction(4 * 200_000**2, 50_000 * (9 + 25))
