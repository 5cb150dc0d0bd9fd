"""Sets of measures: expectations by sorting against linear programmes, extreme points and random members."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from limit_cases import random_pairs, subsets
from stirred.errors import LossError
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval, ProbabilityInterval
from stirred.limits import density_ratio_distance, multiplicative_distance, posterior_bounds, power_bounds


def random_interval(rng, size=5, zeros=0.2):
    """Bounds with a probability between them, and with outcomes that have no room or no mass."""
    p = rng.dirichlet(np.ones(size))
    p[rng.random(size) < zeros] = 0
    p = p / p.sum() if p.sum() else np.full(size, 1 / size)
    lower = p * rng.random(size) * (rng.random(size) < 0.8)
    upper = p * (1 + rng.gamma(1, size=size)) + (rng.random(size) < 0.3) * rng.random(size)
    fixed = rng.random(size) < 0.15
    return np.where(fixed, p, lower), np.where(fixed, p, upper)


def fractional(f, g, lower, upper, total=None):
    """The largest (f mu)/(g mu) over lower <= mu <= upper by a linear programme (Charnes and Cooper): y = s mu with
    g y = 1 and s >= 0; ``total`` fixes the sum of mu."""
    n = len(f)
    rows = [np.append(np.eye(n)[i], -upper[i]) for i in range(n) if np.isfinite(upper[i])]
    rows += [np.append(-np.eye(n)[i], lower[i]) for i in range(n)]
    equal, right = [np.append(g, 0.0)], [1.0]
    if total is not None:
        equal.append(np.append(np.ones(n), -total))
        right.append(0.0)
    found = linprog(np.append(-np.asarray(f), 0.0), np.array(rows), np.zeros(len(rows)), np.array(equal), right)
    assert found.status == 0
    return -found.fun


# -- theorems ------------------------------------------------------------------------------------------------


def test_lemma_5_3_4_the_interval_is_the_ball_of_the_multiplicative_distance(rng):
    mu, nu = rng.gamma(1, size=(2, 400, 4)) + 0.01
    epsilon = rng.uniform(0.05, 4, 400)
    apart = multiplicative_distance(mu, nu)
    for one, other, e, d in zip(mu, nu, epsilon, apart, strict=True):
        assert bool(MeasureInterval.around(one, e).contains(other)) == (d <= e)
        assert MeasureInterval.around(one, d).contains(other)
        assert not MeasureInterval.around(one, d * (1 - 1e-9)).contains(other)
    for one, other, d in zip(mu, nu, apart, strict=True):
        a, b = math.exp(-rng.uniform(0, 4)), math.exp(rng.uniform(0, 4))
        inside = MeasureInterval(a * one, b * one).contains(other)
        assert not inside or d <= max(-math.log(a), math.log(b)) + 1e-12
        assert inside or d > min(-math.log(a), math.log(b)) - 1e-12


def test_the_radius_of_a_symmetric_interval_is_that_of_the_ball():
    assert MeasureInterval.around([0.2, 0.8], 0.7).radius == pytest.approx((0.7, 0.7))
    assert MeasureInterval([0.1, 0], [0.4, 1]).radius == pytest.approx((math.log(2), math.inf))


def test_proposition_14_a_density_bounded_class_is_the_interval_of_its_measures(rng):
    base = rng.gamma(1, size=5)
    low, high = np.sort(rng.gamma(1, size=(2, 5)), axis=0)
    bounded = MeasureInterval.of_densities(low, high, base)
    f = rng.uniform(low * 0.9, high * 1.1, (500, 5))
    inside = np.all((low <= f) & (f <= high), axis=1)
    assert np.array_equal(bounded.contains(f * base), inside)
    assert 0 < inside.sum() < 500
    # L = a tau and U = b tau have the densities a g and b g.
    tau = rng.gamma(1, size=5)
    same = MeasureInterval.of_densities(0.5 * tau / base, 2 * tau / base, base)
    assert same.lower == pytest.approx(0.5 * tau)
    assert same.upper == pytest.approx(2 * tau)


def test_members_lie_in_the_interval_event_by_event(rng):
    lower, upper = random_interval(rng, 4)
    interval, events = MeasureInterval(lower, upper), subsets(4)
    for mu in rng.uniform(lower * 0.9, upper * 1.1 + 1e-3, (300, 4)):
        by_event = np.all((events @ lower <= events @ mu) & (events @ mu <= events @ upper))
        assert bool(interval.contains(mu)) == by_event


def test_odds_are_bounded_and_the_bounds_are_attained(rng):
    lower, upper = rng.uniform(0.1, 1, 4), rng.uniform(1, 2, 4)
    bounds = MeasureInterval(lower, upper).odds([1, 1, 0, 0], [0, 0, 1, 0])
    assert bounds == pytest.approx(((lower[0] + lower[1]) / upper[2], (upper[0] + upper[1]) / lower[2]))
    members = rng.uniform(lower, upper, (500, 4))
    odds = members[:, :2].sum(axis=1) / members[:, 2]
    assert np.all((odds >= bounds.lower) & (odds <= bounds.upper))


# -- expectations --------------------------------------------------------------------------------------------


def test_expectations_of_measure_intervals_solve_the_linear_fractional_programme(rng):
    for _ in range(60):
        lower, upper = random_interval(rng)
        if not lower.any():
            continue
        f = np.where(rng.random(5) < 0.3, 1.0, rng.normal(size=5))
        interval = MeasureInterval(lower, upper)
        assert interval.upper_expectation(f) == pytest.approx(fractional(f, np.ones(5), lower, upper), abs=1e-7)
        assert interval.lower_expectation(f) == pytest.approx(-fractional(-f, np.ones(5), lower, upper), abs=1e-7)
        corners = np.where(subsets(5), upper, lower)
        means = (corners @ f)[corners.sum(axis=1) > 0] / corners.sum(axis=1)[corners.sum(axis=1) > 0]
        assert interval.upper_expectation(f) == pytest.approx(means.max(), abs=1e-12)


def test_an_infinite_upper_mass_outweighs_the_rest_or_is_left_alone(rng):
    lower, upper = np.array([1.0, 1, 1]), np.array([2.0, math.inf, 3])
    interval = MeasureInterval(lower, upper)
    for f in rng.normal(size=(50, 3)):
        finite = [fractional(f, np.ones(3), lower, np.array([2.0, large, 3])) for large in (1e3, 1e5)]
        assert interval.upper_expectation(f) == pytest.approx(finite[1], abs=1e-3)
    assert interval.upper_expectation([0, 1, 0]) == 1
    assert MeasureInterval.around([0.5, 0.5], math.inf).lower_probability([1, 0]) == 0


def test_expectations_of_probability_intervals_solve_the_linear_programme(rng):
    for _ in range(60):
        lower, upper = random_interval(rng)
        credal = ProbabilityInterval(lower, upper)
        f = rng.normal(size=(4, 5)).round(1)
        points = credal.extreme_points()
        assert np.all(credal.contains(points))
        assert credal.upper_expectation(f) == pytest.approx(np.max(f @ points.T, axis=1), abs=1e-9)
        assert credal.lower_expectation(f) == pytest.approx(np.min(f @ points.T, axis=1), abs=1e-9)
        assert np.all(credal.contains(credal.attaining(f)))
        solved = linprog(-f[0], A_eq=np.ones((1, 5)), b_eq=[1], bounds=list(zip(lower, upper, strict=True)))
        assert credal.upper_expectation(f[0]) == pytest.approx(-solved.fun, abs=1e-7)


def test_lower_probabilities_are_expectations_of_events(rng):
    events = subsets(5)
    for _ in range(50):
        credal = ProbabilityInterval(*random_interval(rng))
        assert credal.lower_probability(events) == pytest.approx(credal.lower_expectation(events), abs=1e-9)
        assert credal.upper_probability(events) == pytest.approx(credal.upper_expectation(events), abs=1e-9)


def test_conditional_expectations_solve_the_linear_fractional_programme(rng):
    done = 0
    while done < 60:
        lower, upper = random_interval(rng)
        credal, event = ProbabilityInterval(lower, upper), rng.random(5) < 0.6
        if credal.lower_probability(event) < 1e-3:
            continue
        done += 1
        f = rng.normal(size=(3, 5)).round(1)
        upper_given, lower_given = credal.upper_expectation_given(f, event), credal.lower_expectation_given(f, event)
        points = credal.extreme_points()
        means = (points @ (f * event).T) / (points @ event)[:, None]
        assert upper_given == pytest.approx(means.max(axis=0), abs=1e-8)
        assert lower_given == pytest.approx(means.min(axis=0), abs=1e-8)
        by_programme = fractional(f[0] * event, event * 1.0, lower, upper, total=1.0)
        assert upper_given[0] == pytest.approx(by_programme, abs=1e-6)


def test_the_interval_around_a_probability_gives_the_bounds_of_corollary_5_5_2(rng):
    for r in (0.0, 0.3, 1.0, 5.0, math.inf):
        p = rng.dirichlet(np.ones(6))
        credal = MeasureInterval.around(p, r).probabilities()
        # At an infinite radius the interval keeps the support, which the promise does not: no power is ruled out.
        events = subsets(6)[1:-1] if math.isinf(r) else subsets(6)
        band = power_bounds(np.clip(events @ p, 0, 1), r)
        assert credal.lower_probability(events) == pytest.approx(band.lower, abs=1e-12)
        assert credal.upper_probability(events) == pytest.approx(band.upper, abs=1e-12)


def test_updating_a_measure_interval_updates_its_members(rng):
    lower, upper = random_interval(rng)
    likelihood = rng.random(5)
    updated = MeasureInterval(lower, upper).updated(likelihood)
    members = rng.uniform(lower, upper, (200, 5))
    assert np.all(updated.contains(members * likelihood))
    assert np.all(MeasureInterval(lower, upper).given([1, 1, 0, 0, 0]).contains(members * [1, 1, 0, 0, 0]))


def test_extreme_points_of_a_measure_interval_are_its_corners(rng):
    for _ in range(20):
        lower, upper = random_interval(rng, 4)
        interval = MeasureInterval(lower, upper)
        points = interval.extreme_points()
        assert np.all(interval.contains(points))
        assert len(points) == len(np.unique(points, axis=0)) == 2 ** int((lower < upper).sum())
        f = rng.normal(size=4)
        # A linear function is largest at one of them, as a linear programme finds it.
        solved = linprog(-f, bounds=list(zip(lower, upper, strict=True)))
        assert np.max(points @ f) == pytest.approx(-solved.fun, abs=1e-9)
        if lower.sum() > 0:
            means = points @ f / points.sum(axis=1)
            assert interval.upper_expectation(f) == pytest.approx(means.max(), abs=1e-12)
    assert MeasureInterval.around([1, 1], math.inf).extreme_points().tolist() == [[0, 0]]


def test_conditional_probabilities_are_attained_by_the_points_of_the_conditional_set(rng):
    done = 0
    while done < 40:
        credal, condition = ProbabilityInterval(*random_interval(rng)), rng.random(5) < 0.6
        if credal.lower_probability(condition) < 1e-3:
            continue
        done += 1
        points, events = credal.given(condition), subsets(5)
        assert points.sum(axis=1) == pytest.approx(np.ones(len(points)))
        assert np.all(points[:, ~condition] == 0)
        chances = points @ events.T
        assert credal.upper_probability_given(events, condition) == pytest.approx(chances.max(axis=0), abs=1e-8)
        assert credal.lower_probability_given(events, condition) == pytest.approx(chances.min(axis=0), abs=1e-8)
        # Members conditioned lie in the hull of the points: no function separates them.
        mixed = rng.dirichlet(np.ones(len(credal.extreme_points())), 20) @ credal.extreme_points() * condition
        mixed /= mixed.sum(axis=1, keepdims=True)
        f = rng.normal(size=(5, 6))
        assert np.all(mixed @ f <= (points @ f).max(axis=0) + 1e-9)


def test_conditional_expectations_stay_within_the_values(rng):
    for _ in range(300):
        credal = ProbabilityInterval(*random_interval(rng, zeros=0))
        condition, f = np.array([1, 1, 0, 0, 1]), rng.normal(size=5)
        if credal.lower_probability(condition) > 1e-6:
            held = f[condition > 0]
            assert held.min() <= credal.lower_expectation_given(f, condition)
            assert credal.upper_expectation_given(f, condition) <= held.max()


def test_odds_and_radius_of_what_has_no_mass():
    assert MeasureInterval([0, 0], [0, 1]).odds([1, 0], [0, 1]) == (0, 0)
    assert MeasureInterval([0, 0], [0, 0]).radius == (0, 0)


# -- density-ratio neighbourhoods ----------------------------------------------------------------------------


def test_a_neighbourhood_holds_what_is_within_its_radius(rng):
    p, q = random_pairs(rng, 500, 4, zeros=0.2)
    for one, other in zip(p, q, strict=True):
        apart = density_ratio_distance(one, other)
        assert DensityRatioNeighbourhood(one, apart).contains(other)
        assert apart == 0 or not DensityRatioNeighbourhood(one, apart * 0.999).contains(other)


def test_expectations_over_a_neighbourhood_are_attained_by_its_extreme_points(rng):
    for r in (0.0, 0.4, 2.0, 6.0):
        p, _ = random_pairs(rng, 20, 5, zeros=0.2)
        for centre in p:
            near = DensityRatioNeighbourhood(centre, r)
            points = near.extreme_points()
            assert np.all(near.contains(points))
            held = int((centre > 0).sum())
            assert len(points) == (2**held - 2 if r > 0 and held > 1 else 1)
            f, events = rng.normal(size=(4, 5)), subsets(5)
            assert near.upper_expectation(f) == pytest.approx(np.max(f @ points.T, axis=1), abs=1e-9)
            assert near.lower_expectation(f) == pytest.approx(np.min(f @ points.T, axis=1), abs=1e-9)
            assert near.lower_probability(events) == pytest.approx(np.min(events @ points.T, axis=1), abs=1e-12)
            assert near.lower_probability(events) == pytest.approx(near.lower_expectation(events), abs=1e-9)
            band = posterior_bounds(np.clip(events @ centre, 0, 1), r)
            assert near.lower_probability(events) == pytest.approx(band.lower, abs=1e-12)
            assert near.upper_probability(events) == pytest.approx(band.upper, abs=1e-12)


def test_conditional_members_form_the_neighbourhood_of_the_conditional_centre(rng):
    for centre in rng.dirichlet(np.ones(5), 30):
        near, event = DensityRatioNeighbourhood(centre, 0.8), np.array([1, 0, 1, 1, 0])
        points = near.extreme_points() * event
        points /= points.sum(axis=1, keepdims=True)
        given = near.given(event)
        assert np.all(given.contains(points))
        f = rng.normal(size=(3, 5))
        assert given.upper_expectation(f) == pytest.approx(np.max(f @ points.T, axis=1), abs=1e-9)


def test_an_infinite_radius_leaves_only_the_support():
    near = DensityRatioNeighbourhood([0.2, 0.8, 0], math.inf)
    assert near.lower_probability([1, 0, 0]) == 0
    assert near.upper_probability([1, 0, 0]) == 1
    assert near.upper_probability([0, 0, 1]) == 0
    assert near.upper_expectation([3, 1, 9]) == 3
    assert near.contains([0.999, 0.001, 0])
    assert not near.contains([0.9, 0, 0.1])
    assert near.extreme_points().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert near.contains(near.extreme_points()).all()


@pytest.mark.parametrize("r", [100, 600])
def test_extreme_points_at_large_radii_are_members(r):
    near = DensityRatioNeighbourhood([0.2, 0.3, 0.5], r)
    assert near.contains(near.extreme_points()).all()
    with pytest.raises(LossError, match="infinite or at most 600"):
        DensityRatioNeighbourhood([0.2, 0.8], r + 600).extreme_points()
