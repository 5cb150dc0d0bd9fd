"""Intervals of differences and ratios: Fieller's where parts are normal, and what remains where a part is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stirred.estimates.answers import Parts, difference, odds_ratio, ratio

KNOWN = Parts([0.8], [0.001], [0.7], [0.9])
UNKNOWN = Parts([math.nan], [math.inf], [0.0], [1.0])


def test_a_ratio_of_normal_estimates_has_fiellers_interval():
    x, y, vx, vy, c = 30.0, 80.0, 9.0, 16.0, 5.0
    parts = [Parts([v], [s], [v - 1.96 * math.sqrt(s)], [v + 1.96 * math.sqrt(s)]) for v, s in ((x, vx), (y, vy))]
    found = ratio(*parts, np.array([c]))
    for end in (found.lower[0], found.upper[0]):
        assert (x - end * y) ** 2 == pytest.approx(1.96**2 * (vx - 2 * end * c + end**2 * vy), rel=1e-6)


def test_without_an_estimate_the_interval_is_what_both_intervals_allow():
    apart = difference(KNOWN, UNKNOWN, np.array([0.0]))
    assert np.isnan(apart.values[0]) and np.isinf(apart.variances[0])
    assert (apart.lower[0], apart.upper[0]) == pytest.approx((-0.3, 0.9))
    back = difference(UNKNOWN, KNOWN, np.array([0.0]))
    assert (back.lower[0], back.upper[0]) == pytest.approx((-0.9, 0.3))
    divided = ratio(KNOWN, UNKNOWN, np.array([0.0]))
    assert (divided.lower[0], divided.upper[0]) == (pytest.approx(0.7), math.inf)
    other = ratio(UNKNOWN, KNOWN, np.array([0.0]))
    assert (other.lower[0], other.upper[0]) == pytest.approx((0.0, 1 / 0.7))


def test_odds_of_which_a_part_is_only_bounded_are_what_all_intervals_allow():
    parts = [Parts([np.nan], [1.0], [2.0], [4.0]), *(Parts([4.0], [1.0], [2.0], [8.0]) for _ in range(3))]
    found = odds_ratio(parts, np.eye(4)[None])
    assert np.isnan(found.values[0]) and np.isinf(found.variances[0])
    assert (found.lower[0], found.upper[0]) == (2 * 2 / (8 * 8), 4 * 8 / (2 * 2))
    none = odds_ratio([parts[0], Parts([4.0], [1.0], [0.0], [8.0]), *parts[2:]], np.eye(4)[None])
    assert none.upper[0] == np.inf
