"""Losses of single mechanisms: their atoms, their directions, and laws on a lattice below and above them."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from stirred.errors import LossError
from stirred.loss import hockey_stick
from stirred.loss.distributions.composition import compose
from stirred.loss.distributions.lattice_sums import contracted, split
from stirred.loss.distributions.loss_distribution import (
    approximate_loss,
    atoms,
    convolved,
    discrete_gaussian,
    finite_loss,
    gaussian,
    geometric,
    in_place_of,
    laplace,
    randomised_response,
    sampling_loss,
)

decimal.getcontext().prec = 60


def expectation(losses, masses, threshold):
    """E (1 - e^(threshold - L))_+, the finite part of delta, for any threshold."""
    some = losses > threshold
    return math.fsum(masses[some] * -np.expm1(threshold - losses[some]))


def on_lattice(part, step):
    return (part.first + np.arange(len(part.masses))) * step, part.masses


# -- closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3])
def test_randomised_response_and_geometric_noise_have_one_loss(epsilon):
    one, other = randomised_response(epsilon), geometric(epsilon)
    assert one.losses == pytest.approx([-epsilon, epsilon])
    assert one.masses == pytest.approx([1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))])
    assert other.losses == pytest.approx(one.losses) and other.masses == pytest.approx(one.masses)


@pytest.mark.parametrize("choices", [2, 3, 10])
def test_randomised_response_is_that_of_its_matrix(choices):
    row = np.ones(choices)
    row[0] = math.e
    p, q = row / row.sum(), np.roll(row, 1) / row.sum()
    closed, listed = randomised_response(1, choices), finite_loss(p, q)
    assert closed.losses == pytest.approx(listed.losses, abs=1e-15)
    assert closed.masses == pytest.approx(listed.masses)


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_geometric_noise_is_that_of_its_probabilities(shift):
    k = np.arange(-400, 401)
    p, q = (np.exp(-0.3 * np.abs(k - centre)) for centre in (0, shift))
    closed = compose([(geometric(0.3, shift), 1)])
    for epsilon in (0, 0.1, 0.3, 0.5, 1, 2):
        expected = hockey_stick(p / p.sum(), q / q.sum(), epsilon)
        assert closed.delta(epsilon).upper == pytest.approx(expected, abs=1e-14)


def test_example_4_6_both_outputs_are_drawn_from_the_first_dataset():
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    one, both = finite_loss(p, q), finite_loss(np.outer(p, p).ravel(), np.outer(q, q).ravel())
    sums = atoms(np.add.outer(one.losses, one.losses).ravel(), np.outer(one.masses, one.masses).ravel(), 0.0)
    assert both.losses == pytest.approx(sums.losses) and both.masses == pytest.approx(sums.masses)
    # As printed, with the second output from the second dataset, its logarithm takes back what the first one tells.
    printed = math.fsum(p * np.log(p / q)) + math.fsum(q * np.log(p / q))
    assert printed == pytest.approx(0, abs=1e-15)
    assert math.fsum(both.losses * both.masses) == pytest.approx(math.log(3))


def test_example_4_7_sampling_loses_nothing_or_everything():
    loss = sampling_loss(3, 10)
    assert loss.losses.tolist() == [0] and loss.masses == pytest.approx([0.7]) and loss.infinity == 0.3
    composed = compose([(loss, 1)])
    assert composed.delta(0) == pytest.approx((0.3, 0.3)) and composed.delta(math.inf) == pytest.approx((0.3, 0.3))
    assert composed.epsilon(0.2) == (math.inf, math.inf) and composed.epsilon(0.31) == (0, 0)
    assert composed.power(0) == pytest.approx((0.3, 0.3))


def test_example_4_9_two_randomised_responses():
    product = np.outer([0.7310586, 0.2689414], [0.7310586, 0.2689414]).ravel()
    loss = finite_loss(product / product.sum(), product[::-1] / product.sum())
    assert loss.losses == pytest.approx([-2, 0, 2], abs=1e-6)
    assert loss.masses == pytest.approx([0.0723295, 0.3932239, 0.5344466], abs=1e-7)


def test_approximate_loss_attains_its_epsilon_and_delta_and_no_more():
    composed = compose([(approximate_loss(1, 1e-3), 1)])
    assert composed.delta(1) == pytest.approx((1e-3, 1e-3))
    assert composed.epsilon(1e-3).upper == pytest.approx(1, abs=1e-12)
    assert composed.epsilon(5e-4).lower == math.inf
    assert composed.delta(0).upper == pytest.approx(1e-3 + 0.999 * math.tanh(0.5))


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction("1.2074"), Fraction(33, 7)])
@pytest.mark.parametrize("shift", [1, 2])
def test_discrete_gaussian_is_a_sum_in_many_digits(variance, shift):
    v = Decimal(variance.numerator) / variance.denominator
    k = range(-80, 81)
    weights = [(-(Decimal(j) ** 2) / (2 * v)).exp() for j in k]
    total = sum(weights)
    composed = compose([(discrete_gaussian(variance, shift), 1)])
    for epsilon in ("0", "0.1", "1", "2.5", "7", "20"):
        excess = (
            (1 - (Decimal(epsilon) - (shift * shift - 2 * shift * Decimal(j)) / (2 * v)).exp()) * w / total
            for j, w in zip(k, weights, strict=True)
        )
        expected = float(sum(part for part in excess if part > 0))
        low, high = composed.delta(float(epsilon))
        assert low <= expected <= high
        assert high - low <= 1e-8 * expected + 1e-38


def test_discrete_gaussian_atoms_are_an_exact_lattice():
    law = discrete_gaussian(Fraction(1000, 7), 3).law
    assert law.step == Fraction(21, 1000)
    assert law.first % law.step == Fraction(63, 2000) % Fraction(21, 1000)
    assert law.mean == pytest.approx(9 * 7 / 2000)
    assert law.variance == pytest.approx(9 * 7 / 1000)


@pytest.mark.parametrize("loss", [gaussian(3), laplace(2), laplace(0.1), discrete_gaussian(5), randomised_response(2)])
def test_likelihood_ratios_have_mean_one(loss):
    laws = [loss.law] if hasattr(loss.law, "masses") else in_place_of(loss.law, 1e-3)
    for law in laws:
        assert math.fsum(law.masses) == pytest.approx(1, abs=1e-13)
        assert math.fsum(law.masses * np.exp(-law.losses)) == pytest.approx(1, abs=1e-10)
        assert (law.mean, law.variance) == pytest.approx((loss.law.mean, loss.law.variance), rel=1e-4)


def test_noise_that_is_not_needed_loses_nothing():
    for loss in (gaussian(1, 0), laplace(1, 0), discrete_gaussian(1, 0), geometric(1, 0), randomised_response(0)):
        assert compose([(loss, 5)]).delta(0).upper <= 1e-14


# -- directions ----------------------------------------------------------------------------------------------


def test_the_reversed_loss_is_that_of_the_exchanged_pair():
    p, q = [0.5, 0.3, 0.2, 0], [0.1, 0.4, 0, 0.5]
    one, other = finite_loss(p, q).reversed(), finite_loss(q, p)
    assert one.losses == pytest.approx(other.losses) and one.masses == pytest.approx(other.masses)
    assert (one.infinity, one.reverse_infinity) == (other.infinity, other.reverse_infinity) == (0.5, 0.2)
    assert not one.symmetric and geometric(1, 3).symmetric


def test_disjoint_distributions_lose_everything():
    composed = compose([(finite_loss([1, 0], [0, 1]), 1)])
    assert composed.delta(100) == pytest.approx((1, 1))
    assert composed.power(0).lower == pytest.approx(1)


# -- laws on a lattice ---------------------------------------------------------------------------------------


def test_lattice_laws_are_below_and_above_in_the_convex_order():
    generator = np.random.default_rng(1)
    for _ in range(200):
        size = int(generator.integers(1, 40))
        scale = generator.choice([1e-3, 0.3, 10])
        part = atoms(generator.normal(0, scale, size), generator.dirichlet(np.full(size, 0.3)), 0.0)
        step = float(scale * 10 ** generator.uniform(-3, 1))
        below, above = on_lattice(contracted(part, 1, step), step), on_lattice(split(part, 1, step), step)
        for threshold in np.concatenate([part.losses, below[0][:50], generator.normal(0, scale, 20)]):
            truth = expectation(part.losses, part.masses, threshold)
            assert expectation(*below, threshold) <= truth + 1e-15
            assert truth <= expectation(*above, threshold) + 1e-15


def test_splitting_keeps_mass_and_mean_and_contracting_nearly_does():
    part = discrete_gaussian(2).law
    for step in (0.3, 0.01):
        losses, masses = on_lattice(split(part, 1, step), step)
        assert math.fsum(masses) == pytest.approx(1) and math.fsum(masses * np.exp(-losses)) == pytest.approx(1)
        losses, masses = on_lattice(contracted(part, 1, step), step)
        assert math.fsum(masses) == pytest.approx(1)
        assert math.fsum(masses * np.exp(-losses)) == pytest.approx(1, abs=1e-3 * step)


def test_lower_laws_of_dense_atoms_lose_the_square_of_the_step():
    widths = []
    for step in (0.1, 0.01):
        below, above = in_place_of(gaussian(1).law, step)
        found = [on_lattice(contracted(below, 1, step), step), on_lattice(split(above, 1, step), step)]
        assert expectation(*found[0], 1) <= expectation(*found[1], 1)
        widths.append(expectation(*found[1], 1) - expectation(*found[0], 1))
    assert widths[1] < widths[0] / 50


def test_convolved_atoms_are_products():
    one, other = finite_loss([0.5, 0.5], [0.25, 0.75]).law, discrete_gaussian(3).law
    listed = convolved(one, other)
    assert listed.mean == pytest.approx(one.mean + other.mean)
    assert listed.variance == pytest.approx(one.variance + other.variance)
    assert len(listed.masses) <= 2 * len(other.masses)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: randomised_response(-1),
        lambda: randomised_response(1, 1),
        lambda: randomised_response(math.inf),
        lambda: geometric(math.nan),
        lambda: geometric(1, 1.5),
        lambda: gaussian(0),
        lambda: gaussian(1, math.inf),
        lambda: laplace(0),
        lambda: discrete_gaussian(0),
        lambda: discrete_gaussian(1, 0.5),
        lambda: discrete_gaussian(-2),
        lambda: approximate_loss(1, 2),
        lambda: sampling_loss(3, 2),
        lambda: sampling_loss(-1, 2),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(LossError) as refusal:
        make()
    assert refusal.value.kind == "parameter-out-of-range"


def test_rows_that_are_no_distributions_are_refused():
    with pytest.raises(LossError, match="sum to 1"):
        finite_loss([0.5, 0.6], [0.5, 0.5])
    with pytest.raises(LossError, match="same outputs"):
        finite_loss([1], [0.5, 0.5])
