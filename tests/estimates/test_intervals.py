"""Intervals contain the truth at least as often as they say: decided by listing the noise, not by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.estimates.intervals import half_widths, reach

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def law(parameter):
    """Values and probabilities of a discrete Gaussian; what is left out weighs less than 1e-30."""
    furthest = 1 + math.ceil(12 * math.sqrt(parameter))
    values = np.arange(-furthest, furthest + 1)
    weights = np.exp(-(values**2) / (2 * parameter))
    return values, weights / weights.sum()


def within(parameters, weights, half):
    """The probability that a weighted sum of discrete Gaussians is at most ``half`` from zero."""
    errors, chances = np.zeros(1), np.ones(1)
    for parameter, weight in zip(parameters, weights, strict=True):
        values, single = law(parameter)
        errors = np.add.outer(errors, weight * values).ravel()
        chances = np.multiply.outer(chances, single).ravel()
    return float(chances[np.abs(errors) <= half + 1e-9].sum())


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("parameter", "terms"), list(itertools.product((0.001, 0.1, 0.5, 1.0, 3.7), (1, 2, 3))))
def test_the_exact_interval_is_the_shortest_that_contains_enough(parameter, terms, confidence):
    found = reach(parameter, terms, confidence)
    assert within([parameter] * terms, [1] * terms, found) >= confidence
    assert found == 0 or within([parameter] * terms, [1] * terms, found - 1) < confidence


def test_many_terms_are_nearly_normal_and_very_many_are():
    assert abs(reach(20.0, 500, 0.9) - 1.6448536 * 100) < 1
    assert reach(20.0, 10**6, 0.9) is None


@settings(max_examples=150, deadline=None)
@given(
    parameters=st.lists(st.floats(0.01, 12), min_size=1, max_size=3),
    confidence=st.sampled_from(CONFIDENCES),
)
def test_normal_intervals_contain_enough_however_small_the_noise(parameters, confidence):
    # Several measurements of one number, weighted by precision: the lattice is at its coarsest when they are few.
    precision = 1 / np.array(parameters)
    weights = precision / precision.sum()
    error = math.sqrt(1 / precision.sum())
    nothing = np.zeros(1)
    half = half_widths(np.array([error]), nothing, nothing, confidence)[0]
    assert within(parameters, weights, half) >= confidence


def test_the_law_is_chosen_estimate_by_estimate():
    found = half_widths(np.ones((1, 3)), np.array([[0.0, 1.0, 1.0]]), np.array([[0.0, 1.0, 3.0]]), 0.9)
    assert found[0, 0] == pytest.approx(1.6448536 + 0.5)
    assert found[0, 1:].tolist() == [2, 3]
