"""Privacy-loss distributions of a pair (P, Q): the law of L = ln P/Q under P, and of ln Q/P under Q.

P is both what outputs are drawn from and what stands in the numerator (Kifer et al. 2022, section 4). P may give
outputs that Q cannot, which makes mass at +infinity; Q's mass on outputs that P cannot give is the other direction's.
Distributions of independent mechanisms are composed by :func:`stirred.loss.distributions.composition.compose`.

Keep in mind: a distribution of a loss tells the two directions apart. Only where the two laws are
the same one, as for every noise that is symmetric about its centre, they are the same object.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._fractions import as_fraction
from stirred.errors import parameter_out_of_range
from stirred.loss.argument_checks import Number, distributions, finite, non_negative, probability
from stirred.loss.distributions.laws import (
    CUT,
    UNIT,
    Array,
    Atoms,
    GaussianLaw,
    LaplaceLaw,
    Law,
    atoms,
    lattice_atoms,
)
from stirred.loss.divergences import log_ratios

TAIL = math.sqrt(2 * math.log(4 / CUT))
"""Standard deviations beyond which both tails of a discrete Gaussian have less mass than what may be cut."""


@brief
@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The loss between P and Q: its law under P and the probability of outputs that Q cannot give; the same for Q.

    >>> loss = randomised_response(math.log(3))
    >>> loss.losses.round(4).tolist(), loss.masses.round(4).tolist(), loss.infinity
    ([-1.0986, 1.0986], [0.25, 0.75], 0.0)
    """

    law: Law
    infinity: float
    reverse_law: Law
    reverse_infinity: float

    @property
    def losses(self) -> Array:
        """The finite losses that have mass, ascending; of a smooth law those at its ends."""
        return self._atoms[0]

    @property
    def masses(self) -> Array:
        """The mass under P at each of :attr:`losses`."""
        return self._atoms[1]

    @property
    def symmetric(self) -> bool:
        """Whether both directions are one law."""
        return self.law is self.reverse_law and self.infinity == self.reverse_infinity

    def reversed(self) -> LossDistribution:
        """The loss between Q and P."""
        return LossDistribution(self.reverse_law, self.reverse_infinity, self.law, self.infinity)

    @property
    def _atoms(self) -> tuple[Array, Array]:
        if isinstance(self.law, Atoms):
            some = self.law.masses > 0
            return self.law.losses[some], self.law.masses[some]
        return self.law.points()


# -- any mechanism -------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def finite_loss(p: ArrayLike, q: ArrayLike) -> LossDistribution:
    """The loss between two distributions on the same finite set of outputs.

    >>> finite_loss([0.5, 0.5, 0], [0.5, 0.25, 0.25]).infinity, finite_loss([1, 0], [0.5, 0.5]).reverse_infinity
    (0.0, 0.5)
    """
    first, second = distributions(p, q)
    both = (first > 0) & (second > 0)
    losses = log_ratios(first[both], second[both])
    # Probabilities are taken for rounded numbers whose sum is one.
    error = abs(math.fsum(first) - 1) + abs(math.fsum(second) - 1) + 8 * UNIT
    forward = replace(atoms(losses, first[both], error), blur=error)
    backward = replace(atoms(-losses, second[both], error), blur=error)
    alone = [min(1.0, math.fsum(p[~both])) for p in (first, second)]
    return LossDistribution(forward, alone[0], backward, alone[1])


@refuses_wrong_arguments
def approximate_loss(epsilon: Number, delta: Number) -> LossDistribution:
    """The worst loss under (epsilon, delta)-DP: everything is revealed with probability delta, else randomised
    response (Kairouz, Oh and Viswanath 2015). Composing it composes any mechanisms with these guarantees.

    >>> approximate_loss(1, 0.25).infinity
    0.25
    """
    exact, d = _exact("epsilon", epsilon), probability("delta", delta)
    odds = math.exp(-float(exact))
    return _symmetric(_two_sided(exact, np.array([odds, 0.0, 1.0]) * ((1 - d) / (1 + odds))), d)


@refuses_wrong_arguments
def sampling_loss(released: int, size: int) -> LossDistribution:
    """``released`` of ``size`` records are drawn without replacement and published: the loss is 0 or infinite."""
    if not 0 <= released <= size or size < 1:
        raise parameter_out_of_range("the number of records released", released, f"between 0 and {size}")
    share = Fraction(released, size)
    law = lattice_atoms(Fraction(0), Fraction(1), np.array([float(1 - share)]), UNIT)
    return _symmetric(law, float(share))


# -- noise on the answers ------------------------------------------------------------------------------------


@refuses_wrong_arguments
def randomised_response(epsilon: Number, choices: int = 2) -> LossDistribution:
    """Randomised response: the truth with odds e^epsilon against each of the other ``choices``.

    >>> randomised_response(math.log(2), choices=4).masses.round(4).tolist()
    [0.2, 0.4, 0.4]
    """
    if choices < 2:
        raise parameter_out_of_range("choices", choices, "at least 2")
    exact = _exact("epsilon", epsilon)
    e = float(exact)
    # Divided by e^epsilon, which may be too large for a float.
    all_others = (choices - 1) * math.exp(-e)
    masses = np.array([math.exp(-e), (choices - 2) * math.exp(-e), 1.0]) / (1 + all_others)
    return _symmetric(_two_sided(exact, masses))


@refuses_wrong_arguments
def geometric(epsilon: Number, shift: int = 1) -> LossDistribution:
    """Two-sided geometric noise, P(k) proportional to e^(-epsilon |k|), on counts that differ by ``shift``.

    For a shift of 1 it is the loss of randomised response.

    >>> geometric(math.log(3)).masses.round(4).tolist(), geometric(math.log(3), 2).losses.round(4).tolist()
    ([0.25, 0.75], [-2.1972, 0.0, 2.1972])
    """
    exact, s = _exact("epsilon", epsilon), _shift(shift)
    a = math.exp(-float(exact))
    k = np.arange(s, -1, -1, dtype=np.float64)
    masses = np.exp(-float(exact) * k) * ((1 - a) / (1 + a))
    masses[0], masses[-1] = a**s / (1 + a), 1 / (1 + a)
    if s == 0 or exact == 0:
        return _symmetric(_no_loss())
    return _symmetric(lattice_atoms(-s * exact, 2 * exact, masses, (8 + 2 * s * float(exact)) * UNIT))


@refuses_wrong_arguments
def laplace(scale: Number, shift: Number = 1) -> LossDistribution:
    """Laplace noise on numbers that differ by ``shift``.

    >>> laplace(2).losses.tolist(), laplace(2).masses.round(4).tolist()
    ([-0.5, 0.5], [0.3033, 0.5])
    """
    b, s = finite("scale", scale), abs(float(shift))
    finite("shift", s)
    if b == 0:
        raise parameter_out_of_range("scale", scale, "above 0")
    return _symmetric(LaplaceLaw(s / b) if s > 0 else _no_loss())


@refuses_wrong_arguments
def gaussian(variance: Number, shift: Number = 1) -> LossDistribution:
    """Gaussian noise on numbers that differ by ``shift``: mu-Gaussian DP with mu = shift / sqrt(variance)."""
    v, s = finite("variance", variance), abs(float(shift))
    finite("shift", s)
    if v == 0:
        raise parameter_out_of_range("variance", variance, "above 0")
    return _symmetric(GaussianLaw(s / math.sqrt(v)) if s > 0 else _no_loss())


@refuses_wrong_arguments
def discrete_gaussian(variance: Number, shift: int = 1) -> LossDistribution:
    """Discrete Gaussian noise, P(k) proportional to e^(-k^2 / (2 variance)), on counts that differ by ``shift``.

    The output k of P has the loss (shift^2 - 2 shift k) / (2 variance), linear in k: a lattice of step shift /
    variance. ``variance`` is the parameter, of which the variance falls short a little.

    >>> loss = discrete_gaussian(Fraction(1, 4))
    >>> loss.losses[7:12].tolist(), loss.masses[7:12].round(6).tolist()
    ([-6.0, -2.0, 2.0, 6.0, 10.0], [0.000264, 0.106451, 0.786571, 0.106451, 0.000264])
    """
    exact, s = _exact("variance", variance), _shift(shift)
    if exact == 0:
        raise parameter_out_of_range("variance", variance, "above 0")
    if s == 0:
        return _symmetric(_no_loss())
    v = float(exact)
    most = math.ceil(TAIL * math.sqrt(v)) + 2
    k = np.arange(most, -most - 1, -1, dtype=np.float64)
    weights = np.exp(-k * k / (2 * v))
    masses = weights / math.fsum(weights)
    first, step = Fraction(s * s - 2 * s * most) / (2 * exact), s / exact
    # The exponent is at most TAIL^2 / 2 where it matters, and rounded three times.
    error = (16 + 2 * TAIL**2) * UNIT
    return _symmetric(lattice_atoms(first, step, masses, error, CUT, math.inf))


# -- helpers -------------------------------------------------------------------------------------------------


def _symmetric(law: Law, infinity: float = 0.0) -> LossDistribution:
    return LossDistribution(law, infinity, law, infinity)


def _no_loss() -> Atoms:
    return lattice_atoms(Fraction(0), Fraction(1), np.ones(1), 0.0)


def _two_sided(epsilon: Fraction, masses: Array) -> Atoms:
    """Masses at -epsilon, 0 and epsilon, on as coarse a lattice as they allow."""
    if epsilon == 0:
        return lattice_atoms(Fraction(0), Fraction(1), masses.sum(keepdims=True), 8 * UNIT)
    error = (16 + 4 * float(epsilon)) * UNIT
    if masses[1] == 0:
        return lattice_atoms(-epsilon, 2 * epsilon, masses[[0, 2]], error)
    return lattice_atoms(-epsilon, epsilon, masses, error)


def _exact(name: str, value: Number) -> Fraction:
    """The number meant: of a float the shortest decimal that it prints as."""
    finite(name, value)
    return as_fraction(value)


def _shift(shift: int) -> int:
    if isinstance(shift, bool) or not isinstance(shift, int | np.integer):
        raise parameter_out_of_range("shift", shift, "a whole number")
    return abs(int(non_negative("shift", abs(shift))))
