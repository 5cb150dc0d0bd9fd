"""Bounds of random compositions do not contradict each other: monotone, inverse to each other, sharp up to the largest
loss."""

import math

import numpy as np
import pytest

from repeats import times
from stirred.loss import compose, discrete_gaussian, gaussian, laplace, randomised_response
from stirred.loss.distributions.composition import ComposedLoss

pytestmark = pytest.mark.repeats

DELTAS = (0.3, 0.05, 1e-3, 1e-5, 1e-9, 1e-14, 1e-40)


def drawn(random: np.random.Generator) -> list:
    """A few mechanisms, strong and weak ones together."""
    kinds = (
        lambda: gaussian(float(random.choice([0.02, 0.3, 1, 2.5, 77.7]))),
        lambda: laplace(float(random.choice([0.5, 1, 3.3, 20]))),
        lambda: randomised_response(float(random.choice([0.1, 1.5, 4])), int(random.integers(2, 12))),
        lambda: discrete_gaussian(float(random.choice([0.5, 2, 9.7]))),
    )
    size = int(random.integers(1, 4))
    return [(kinds[random.integers(len(kinds))](), int(random.choice([1, 2, 5, 15]))) for _ in range(size)]


def greatest(composed: ComposedLoss) -> float:
    return composed.epsilon(0).upper


def epsilons(random: np.random.Generator, composed: ComposedLoss) -> list[float]:
    """From 0 to the largest loss, denser at both ends and around the deltas that are asked for."""
    around = [bound for delta in DELTAS for bound in composed.epsilon(delta) if bound < math.inf]
    top = greatest(composed)
    far = top if top < math.inf else 1.2 * max(around) + 1
    near_top = [far * (1 - away) for away in np.geomspace(1e-9, 0.3, 25)]
    return sorted([0.0, far, *around, *near_top, *(far * random.random(40))])


def check(composed: ComposedLoss, random: np.random.Generator) -> None:
    at = epsilons(random, composed)
    found = [composed.delta(epsilon) for epsilon in at]
    assert all(low <= high for low, high in found)
    for side in (0, 1):
        values = [bounds[side] for bounds in found]
        assert values == sorted(values, reverse=True)
    for delta in DELTAS:
        low, high = composed.epsilon(delta)
        assert low <= high
        assert composed.delta(high).upper <= delta
        assert low == 0 or composed.delta(low).lower >= delta
        if 0 < high < math.inf:  # and not further than needed
            assert composed.delta(high * (1 - 1e-9)).upper > delta
        if 0 < low < greatest(composed):
            assert composed.delta(low * (1 + 1e-9)).lower <= delta


def test_bounds_of_random_compositions_fall_and_are_inverse_to_each_other():
    random = np.random.default_rng(14)
    for _ in range(times(25)):
        check(compose(drawn(random)), random)


def test_the_bounds_of_many_laplace_and_one_weak_gaussian_agree():
    composed = compose([(gaussian(77.7), 1), (laplace(0.5), 15), (laplace(1), 15)])
    assert composed.epsilon(1e-9).upper < 44.8
    assert composed.delta(44.8).upper < 1e-9
    assert composed.delta(45.1).upper < composed.delta(45).upper
    for epsilon in np.linspace(40, 46, 61):
        low, high = composed.delta(float(epsilon))
        assert high <= low * 1.01
    check(composed, np.random.default_rng(1))


def test_delta_keeps_its_digits_up_to_the_largest_loss():
    composed = compose([(laplace(0.5), 2), (randomised_response(1.5, 10), 1)])
    # Near the largest loss, 5.5, little else counts than the largest losses of all parts together.
    mass = 0.5 * 0.5 * math.exp(1.5) / (math.exp(1.5) + 9)
    for away in (0.002, 1e-3, 5e-4, 1e-5):
        low, high = composed.delta(5.5 - away)
        assert mass * -math.expm1(-away) <= high <= mass * -math.expm1(-away) * (1.001 + 2 * away)
        assert high <= low * 1.001
    check(composed, np.random.default_rng(2))
