"""Composed losses: whatever can be computed another way lies between the bounds, and the bounds are close."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.fft import rfft

from repeats import times
from stirred.errors import LossError
from stirred.loss import (
    GaussianCurve,
    approximate_power,
    at_most,
    gaussian_epsilon,
    gaussian_to_approximate,
    power_curve,
    zcdp_to_approximate,
)
from stirred.loss.distributions import composition
from stirred.loss.distributions import loss_distribution as lawful
from stirred.loss.distributions.composition import compose
from stirred.loss.distributions.lattice_sums import transform_error
from stirred.loss.distributions.loss_distribution import (
    approximate_loss,
    discrete_gaussian,
    finite_loss,
    gaussian,
    geometric,
    laplace,
    randomised_response,
    sampling_loss,
)

decimal.getcontext().prec = 60


@pytest.fixture
def nothing_listed(monkeypatch):
    """Even small compositions go through transforms."""
    monkeypatch.setattr(lawful, "MOST_ATOMS", 1)
    monkeypatch.setattr(lawful, "LONGEST", 1)


# -- enumeration ---------------------------------------------------------------------------------------------


class Product:
    """A composed pair of distributions with rational probabilities, every output of it: whole numbers over a total."""

    def __init__(self, generator, most):
        self.parts, self.outputs, self.total = [], [(1, 1)], 1
        while len(self.parts) < 4 and (not self.parts or generator.random() < 0.6):
            size, count = int(generator.integers(2, 5)), int(generator.integers(1, 5))
            if len(self.outputs) * size**count > most:
                break
            high = int(generator.choice([3, 12, 1000]))
            p, q = (generator.integers(0 if generator.random() < 0.3 else 1, high + 1, size) for _ in range(2))
            if generator.random() < 0.3:
                q = p[::-1].copy()
            p[0] += 1
            q[-1] += 1
            whole = int(p.sum()) * int(q.sum())
            p, q = [int(a) * int(q.sum()) for a in p], [int(b) * (whole // int(q.sum())) for b in q]
            self.parts.append((finite_loss(np.array(p) / whole, np.array(q) / whole), count))
            for _ in range(count):
                self.outputs = [(a * c, b * d) for a, b in self.outputs for c, d in zip(p, q, strict=True)]
            self.total *= whole**count

    def delta(self, odds, forward=True):
        pairs = self.outputs if forward else [(b, a) for a, b in self.outputs]
        y = Fraction(odds)
        excess = sum(max(0, a * y.denominator - y.numerator * b) for a, b in pairs)
        return float(Fraction(excess, self.total * y.denominator))

    def rows(self):
        return [np.array([float(Fraction(pair[k], self.total)) for pair in self.outputs]) for k in (0, 1)]


def composed_in_some_way(case, generator):
    """Listed, on a chosen grid, or on a given one that may be much too coarse."""
    way = generator.random()
    if way < 0.3:
        return compose(case.parts)
    if way < 0.5:
        return compose(case.parts, exact=False)
    return compose(case.parts, grid=float(10 ** generator.uniform(-2.5, 0.5)))


def check_enumeration(seed, cases, most):
    generator = np.random.default_rng(seed)
    for _ in range(cases):
        case = Product(generator, most)
        composed = composed_in_some_way(case, generator)
        for odds in [1, *(Fraction(int(a), 16) for a in (2 ** generator.uniform(4, 14, 6)))]:
            truth = max(case.delta(odds), case.delta(odds, False))
            low, high = composed.delta(math.log(odds))
            assert low <= truth <= high
            low, high = composed.epsilon(truth)
            assert low <= math.log(odds) + 1e-12
            if high < math.inf:
                assert max(case.delta(math.exp(high)), case.delta(math.exp(high), False)) <= truth + 1e-12


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(8))
def test_enumerated_deltas_lie_between_the_bounds(seed):
    check_enumeration(seed, times(60), 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_enumerated_deltas_lie_between_the_bounds(seed):
    check_enumeration(seed, 500, 1000)


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(2))
def test_enumerated_deltas_lie_between_bounds_from_transforms_alone(seed, nothing_listed):
    check_enumeration(1000 + seed, times(40), 200)


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(4))
def test_enumerated_powers_lie_between_the_bounds(seed):
    generator = np.random.default_rng(seed)
    for _ in range(times(60)):
        case = Product(generator, 300)
        composed = composed_in_some_way(case, generator)
        p, q = case.rows()
        one, other = power_curve(p, q), power_curve(q, p)
        lower, upper = composed.power_curve()
        for level in [0, 1, *generator.random(4), *10 ** generator.uniform(-9, 0, 4)]:
            truth = np.interp(level, *one.T)
            low, high = composed.power(level)
            assert low - 1e-13 <= truth <= high + 1e-13
            assert lower.power(level) <= low + 1e-14 and high - 1e-14 <= upper.power(level)
            mirrored = max(truth, np.interp(level, *other.T))
            assert mirrored <= composed.power(level, symmetric=True).upper + 1e-13
            assert low <= composed.power(level, symmetric=True).lower + 1e-13


def test_the_symmetric_curve_is_the_smallest_that_is_symmetric_and_above_both():
    generator = np.random.default_rng(5)
    levels = np.linspace(0, 1, 2001)
    for _ in range(30):
        case = Product(generator, 100)
        odds = {Fraction(max(a, b), min(a, b)) for a, b in case.outputs if a and b} | {Fraction(1)}
        deltas = {y: max(case.delta(y), case.delta(y, False)) for y in odds}
        expected = np.min([approximate_power(math.log(y), d).power(levels) for y, d in deltas.items()], axis=0)
        lower, upper = compose(case.parts).power_curve(symmetric=True)
        assert np.all(upper.power(levels) <= expected + 1e-12)
        assert upper.power(levels) == pytest.approx(lower.power(levels), abs=1e-10)
        assert at_most(lower, upper)


# -- closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 1, 2.293469, 12, 40])
def test_one_gaussian_is_that_of_balle_and_wang(mu):
    composed = compose([(gaussian(1 / mu**2), 1)])
    for delta in (0.3, 1e-2, 1e-5, 1e-10, 1e-20, 1e-30):
        low, high = composed.epsilon(delta)
        truth = gaussian_epsilon(mu, delta)
        assert low <= truth * (1 + 1e-12) and truth <= high * (1 + 1e-12)
        assert high - low <= 1e-6 * max(mu, truth)
        if truth > 0:
            low, high = composed.delta(truth)
            assert low <= delta * (1 + 1e-9) and delta <= high * (1 + 1e-9)


@pytest.mark.parametrize(("count", "width"), [(2, 1e-5), (30, 1e-5), (1000, 1e-5)])
def test_gaussians_composed_by_transforms_are_the_gaussian(count, width, monkeypatch):
    monkeypatch.setattr(composition, "_grouped", lambda parts: parts)
    composed = compose([(gaussian(Fraction(7)), count)])
    mu = math.sqrt(count / 7)
    for delta in (1e-2, 1e-10, 1e-25):
        low, high = composed.epsilon(delta)
        assert low <= gaussian_epsilon(mu, delta) <= high
        assert high - low <= width * mu
    for epsilon in np.linspace(0, mu * mu / 2 + 8 * mu, 9):
        low, high = composed.delta(epsilon)
        assert low <= gaussian_to_approximate(mu, epsilon) * (1 + 1e-12)
        assert gaussian_to_approximate(mu, epsilon) <= high * (1 + 1e-12)


def test_gaussian_powers_lie_between_the_bounds():
    composed, curve = compose([(gaussian(1), 2), (gaussian(Fraction(1, 3)), 1)]), GaussianCurve(math.sqrt(5))
    lower, upper = composed.power_curve()
    assert at_most(curve, upper)
    for level in (0, 1e-12, 1e-6, 0.01, 0.05, 0.5, 0.99, 1):
        low, high = composed.power(level)
        assert low <= curve.power(level) + 1e-15 and curve.power(level) <= high + 1e-15
        assert high - low <= 2e-7
        assert lower.power(level) <= curve.power(level) + 1e-15
        low, high = composed.type_two_error(level)
        assert low <= curve.type_two_error(level) + 1e-15 and curve.type_two_error(level) <= high + 1e-15


def binomial_delta(epsilon, count, at):
    """Delta of composed randomised responses, a binomial sum in 60 digits."""
    e = Decimal(epsilon)
    p = 1 / (1 + (-e).exp())
    found = Decimal(0)
    for k in range(count + 1):
        loss = (2 * k - count) * e
        if loss > at:
            found += math.comb(count, k) * p**k * (1 - p) ** (count - k) * (1 - (at - loss).exp())
    return float(found)


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 100), ("1", 30), ("0.01", 1000), ("0.2", 1000)])
@pytest.mark.parametrize("listed", [True, False])
def test_randomised_response_is_a_binomial_sum(epsilon, count, listed, request):
    if not listed:
        request.getfixturevalue("nothing_listed")
    composed = compose([(randomised_response(Fraction(epsilon)), count)])
    assert composed.exact and (composed.step == 0) is listed
    spread = Decimal(epsilon) * Decimal(count).sqrt()
    for multiple in ("0", "0.5", "2", "5", "8"):
        at = spread * Decimal(multiple)
        expected = binomial_delta(epsilon, count, at)
        low, high = composed.delta(float(at))
        assert low <= expected * (1 + 1e-14) and expected * (1 - 1e-14) <= high
        assert high - low <= 1e-7 * expected + 1e-25
    assert composed.epsilon(0) == pytest.approx((count * float(epsilon),) * 2)


def test_discrete_gaussians_of_one_kind_are_composed_without_rounding():
    composed = compose([(discrete_gaussian(Fraction(100)), 1000)])
    low, high = composed.epsilon(1e-10)
    assert composed.exact and high - low <= 1e-8
    assert high < gaussian_epsilon(math.sqrt(10), 1e-10) < zcdp_to_approximate(5, 1e-10)


def test_commensurate_parts_share_a_lattice(nothing_listed):
    parts = [(randomised_response(0.1), 5), (randomised_response(Fraction(3, 10), 3), 4), (geometric(0.05, 3), 7)]
    exact, grid = compose(parts), compose(parts, exact=False)
    assert exact.exact and exact.step == pytest.approx(0.1) and not grid.exact
    for epsilon in (0, 0.3, 1, 2):
        assert grid.delta(epsilon).lower <= exact.delta(epsilon).lower
        assert exact.delta(epsilon).upper <= grid.delta(epsilon).upper
        assert exact.delta(epsilon).upper - exact.delta(epsilon).lower <= 1e-11


# -- properties ----------------------------------------------------------------------------------------------

MIXED = [
    (discrete_gaussian(Fraction(19, 7)), 2),
    (laplace(3), 3),
    (gaussian(10), 4),
    (finite_loss([0.5, 0.3, 0.2 - 1e-9, 1e-9], [0.45, 0.35, 0.2, 0]), 2),
    (approximate_loss(0.3, 1e-6), 2),
    (sampling_loss(1, 10**7), 1),
]


def test_bounds_tighten_with_the_grid():
    found = [compose(MIXED, grid=step) for step in (0.3, 0.1, 0.03, 0.01, 0.001)]
    for epsilon in (0, 0.5, 2, 5):
        bounds = [composed.delta(epsilon) for composed in found]
        assert all(low <= high for low, high in bounds)
        widths = [high - low for low, high in bounds]
        assert all(fine < coarse for coarse, fine in pairwise(widths))
        assert max(low for low, _ in bounds) <= min(high for _, high in bounds)
    widths = [high - low for low, high in (composed.epsilon(1e-4) for composed in found)]
    assert widths[-1] < widths[0] / 100


def test_delta_falls_with_epsilon_and_grows_with_parts():
    composed, larger = compose(MIXED), compose([*MIXED, (laplace(5), 1)])
    epsilons = np.linspace(0, 12, 241)
    bounds = [composed.delta(epsilon) for epsilon in epsilons]
    for before, after in pairwise(bounds):
        assert after.lower <= before.lower * (1 + 1e-9) and after.upper <= before.upper * (1 + 1e-9)
    assert all(larger.delta(epsilon).upper >= composed.delta(epsilon).lower for epsilon in epsilons[::20])
    for delta in (1e-5, 1e-3, 0.1):
        low, high = composed.epsilon(delta)
        assert composed.delta(high).lower <= delta and composed.delta(low).upper >= delta * (1 - 1e-9)


def test_the_order_of_parts_does_not_matter():
    one, other = compose(MIXED), compose(MIXED[::-1])
    for epsilon in (0, 1, 4):
        assert one.delta(epsilon) == pytest.approx(other.delta(epsilon), rel=1e-5)


def test_exchanging_the_pairs_exchanges_the_curves():
    p, q = [0.6, 0.3, 0.1], [0.1, 0.2, 0.7]
    one, other = compose([(finite_loss(p, q), 5)]), compose([(finite_loss(q, p), 5)])
    for epsilon in (0, 0.5, 3):
        assert one.delta(epsilon) == pytest.approx(other.delta(epsilon))
    for level in (0.01, 0.1, 0.4):
        # The inverse of a trade-off function is that of the exchanged pair.
        error = one.type_two_error(level).upper
        assert other.type_two_error(error).upper == pytest.approx(level, abs=1e-9)
        assert one.power(level, symmetric=True) == pytest.approx(other.power(level, symmetric=True))


def test_a_count_is_as_many_parts():
    loss = finite_loss([0.6, 0.3, 0.1], [0.1, 0.2, 0.7])
    assert compose([(loss, 3)]).delta(1) == pytest.approx(compose([(loss, 1)] * 3).delta(1))
    assert compose([(loss, 0)]).delta(0) == (0, 0)


def test_nothing_composed_loses_nothing():
    empty = compose([])
    assert empty.delta(0) == (0, 0) and empty.epsilon(0) == (0, 0) and empty.exact
    assert empty.power(0.3) == pytest.approx((0.3, 0.3)) and empty.type_two_error(0.3) == pytest.approx((0.7, 0.7))
    assert [curve.points for curve in empty.power_curve()] == [((0.0, 0.0), (1.0, 1.0))] * 2


def test_infinite_losses_stay():
    composed = compose([(sampling_loss(1, 100), 3), (gaussian(1), 1)])
    mass = 1 - 0.99**3
    assert composed.delta(math.inf) == pytest.approx((mass, mass))
    assert composed.epsilon(mass * 0.999) == (math.inf, math.inf)
    assert composed.epsilon(mass * 1.001).upper < 10
    assert composed.power(0) == pytest.approx((mass, mass), abs=1e-12)
    low, high = composed.delta(1)
    expected = mass + 0.99**3 * gaussian_to_approximate(1, 1)
    assert low <= expected <= high and high - low < 1e-6


def test_an_unbounded_loss_has_no_epsilon_at_delta_0():
    assert compose([(gaussian(1), 1)]).epsilon(0) == (math.inf, math.inf)
    assert compose([(discrete_gaussian(1), 1)]).epsilon(0) == (math.inf, math.inf)
    assert compose([(laplace(4), 8)]).epsilon(0) == (2, 2)
    assert compose([(laplace(4), 8)]).delta(2) == (0, 0)


def test_heterogeneous_scales():
    parts = [(gaussian(10.0**k), 3) for k in range(-1, 6)] + [(laplace(10.0**k), 10) for k in range(5)]
    low, high = compose(parts).epsilon(1e-9)
    assert low < high < low * (1 + 1e-4)


def test_losses_larger_than_floats_can_tell():
    composed = compose([(randomised_response(800), 2), (gaussian(1), 1)])
    assert composed.epsilon(1e-3).lower > 1500 and composed.delta(10).upper == pytest.approx(1)
    assert compose([(randomised_response(900), 1)]).epsilon(0) == (900, 900)


def test_the_error_of_transforms_is_far_below_its_bound():
    generator = np.random.default_rng(3)
    for size in (1024, 1000, 14580, 131072, 2 * 3 * 5 * 7 * 11 * 13):
        for values in (generator.dirichlet(np.ones(size)), np.exp(-np.arange(size) / 3.0)):
            truth = rfft(values.astype(np.longdouble))
            error = np.linalg.norm((rfft(values) - truth).astype(complex)) / np.linalg.norm(truth.astype(complex))
            assert error < transform_error(size) / 10


# -- what is refused -----------------------------------------------------------------------------------------


def test_numbers_out_of_range_are_refused():
    composed = compose([(randomised_response(1), 1)])
    for ask in (
        lambda: composed.delta(-0.1),
        lambda: composed.delta(math.nan),
        lambda: composed.epsilon(-1e-9),
        lambda: composed.epsilon(1.5),
        lambda: composed.power(2),
        lambda: compose([(randomised_response(1), -1)]),
        lambda: compose([(randomised_response(1), 1.5)]),
        lambda: compose([(randomised_response(1), 1)], grid=0),
        lambda: compose([(randomised_response(1), 1)], grid=-1),
    ):
        with pytest.raises(LossError) as refusal:
            ask()
        assert refusal.value.kind == "parameter-out-of-range"


def test_a_grid_that_is_too_fine_is_refused():
    with pytest.raises(LossError, match="larger step") as refusal:
        compose([(gaussian(1), 1)], grid=1e-9)
    assert refusal.value.kind == "grid-too-fine"
