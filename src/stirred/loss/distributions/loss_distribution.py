"""Privacy-loss distributions of a pair (P, Q), and the laws that they are made of: atoms, or a smooth density.

The loss is L = ln P/Q of an output drawn from P, which is also what stands in the numerator (Kifer et al. 2022,
section 4). P may give outputs that Q cannot, which makes mass at +infinity, kept beside the law; Q's mass on outputs
that P cannot give is the other direction's. A distribution tells the two directions apart. Only where the two laws
are the same one, as for every noise that is symmetric about its centre, they are the same object. Distributions of
independent mechanisms are composed by :func:`stirred.loss.distributions.composition.compose`.

What laws are about is X = e^-L, the likelihood ratio Q/P: delta at epsilon is E (1 - e^epsilon X)_+, the expectation
of a convex decreasing function of X, and stays one in each factor of a product of independent ratios. So a law may be
replaced by one that is larger in the convex order of X for an upper bound, by a smaller one for a lower bound, before
composing.

Keep in mind: atoms tell how good they are. ``error`` bounds the relative error of every mass, ``cut`` the mass that
was left out. Losses are rounded to the nearest; composing allows for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._fractions import as_fraction
from stirred.errors import parameter_out_of_range
from stirred.loss.argument_checks import Number, distributions, finite, non_negative, probability
from stirred.loss.divergences import log_ratios

Array = NDArray[np.float64]

UNIT = 2.0**-53
"""The unit of rounding of floats."""

CUT = 1e-40
"""Tails of so little mass are cut. Deltas near it, times the number of compositions, are not resolved."""

REACH = 13.5
"""Standard deviations beyond which a Gaussian has less than half of that mass."""

LONGEST = 1 << 13
MOST_ATOMS = 1 << 17
"""Up to so many atoms laws are convolved exactly: on a common lattice, and in general."""


_MANY = np.polynomial.legendre.leggauss(64)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
"""Nodes and weights of Gauss and Legendre between -1 and 1."""


@brief
@dataclass(frozen=True, eq=False)
class Atoms:
    """A loss with finitely many values, ascending; on a lattice one at every first + step * k, some of mass 0.

    ``greatest`` is the supremum of the finite losses before tails were cut. Losses are known up to rounding, and up to
    ``blur`` where the probabilities they come from are rounded themselves.
    """

    losses: Array
    masses: Array
    step: Fraction | None
    first: Fraction | None
    error: float
    cut: float
    greatest: float
    blur: float = 0.0

    @property
    def mean(self) -> float:
        """The expected loss."""
        return float(np.sum(self.masses * self.losses))

    @property
    def variance(self) -> float:
        """The variance of the loss."""
        return float(np.sum(self.masses * (self.losses - self.mean) ** 2))


@dataclass(frozen=True)
class GaussianLaw:
    """N(mu^2/2, mu^2): the loss between N(0, 1) and N(mu, 1)."""

    mu: float

    @property
    def mean(self) -> float:
        """The expected loss."""
        return self.mu**2 / 2

    @property
    def variance(self) -> float:
        """The variance of the loss."""
        return self.mu**2

    @property
    def greatest(self) -> float:
        """The largest possible loss."""
        return math.inf

    @property
    def smooth(self) -> float:
        """Over a 64th of this distance the density is a polynomial of low degree, to all digits."""
        return self.mu

    def interval(self) -> tuple[float, float]:
        """Where there is a density; outside is less mass than what may be cut."""
        return self.mean - REACH * self.mu, self.mean + REACH * self.mu

    def density(self, losses: Array) -> Array:
        """The density at given losses."""
        z = (losses - self.mean) / self.mu
        return np.asarray(np.exp(-z * z / 2) / (self.mu * math.sqrt(2 * math.pi)))

    def points(self) -> tuple[Array, Array]:
        """Losses that have mass of their own, with it."""
        return np.empty(0), np.empty(0)


@dataclass(frozen=True)
class LaplaceLaw:
    """The loss between Laplace noise on two numbers that are ``epsilon`` scales apart.

    Half of the mass is at epsilon, e^-epsilon / 2 at -epsilon, between them is the density e^((l - epsilon)/2) / 4.
    """

    epsilon: float

    @property
    def mean(self) -> float:
        """The expected loss."""
        return self.epsilon + math.expm1(-self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of the loss."""
        nodes = self.epsilon * _MANY[0]
        inside = np.sum(self.epsilon * _MANY[1] * self.density(nodes) * (nodes - self.mean) ** 2)
        losses, masses = self.points()
        return float(inside + np.sum(masses * (losses - self.mean) ** 2))

    @property
    def greatest(self) -> float:
        """The largest possible loss."""
        return self.epsilon

    @property
    def smooth(self) -> float:
        """Over a 64th of this distance the density is a polynomial of low degree, to all digits."""
        return _SMOOTH

    def interval(self) -> tuple[float, float]:
        """The interval on which there is a density."""
        return -self.epsilon, self.epsilon

    def density(self, losses: Array) -> Array:
        """The density at given losses, inside the interval."""
        return np.asarray(np.exp((losses - self.epsilon) / 2) / 4)

    def points(self) -> tuple[Array, Array]:
        """The losses that have a positive probability, and these probabilities."""
        return np.array([-self.epsilon, self.epsilon]), np.array([math.exp(-self.epsilon) / 2, 0.5])


Smooth = GaussianLaw | LaplaceLaw
Law = Atoms | Smooth

# -- making atoms --------------------------------------------------------------------------------------------


def atoms(losses: Array, masses: Array, error: float, cut: float = 0.0, greatest: float | None = None) -> Atoms:
    """Atoms at any finite losses, equal ones put together. One or two of them are a lattice."""
    values, where = np.unique(losses, return_inverse=True)
    sums: Array = np.bincount(where, weights=masses, minlength=len(values)).astype(np.float64)
    first = Fraction(float(values[0])) if 1 <= len(values) <= 2 else None
    step = Fraction(float(values[1])) - Fraction(float(values[0])) if len(values) == 2 else None
    top = float(values[-1]) if len(values) else -math.inf
    most = int(np.max(np.bincount(where))) if len(values) else 0
    return Atoms(values, sums, step, first, error + most * UNIT, cut, top if greatest is None else greatest)


def lattice_atoms(
    first: Fraction, step: Fraction, masses: Array, error: float, cut: float = 0.0, greatest: float | None = None
) -> Atoms:
    """Atoms at first + step * k, k = 0, 1, ..., without the massless ones at the ends."""
    some = np.flatnonzero(masses)
    low, high = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 0)
    kept = np.ascontiguousarray(masses[low:high])
    start = first + low * step
    losses = float(start) + float(step) * np.arange(len(kept), dtype=np.float64)
    top = float(start + step * (len(kept) - 1)) if len(kept) else -math.inf
    return Atoms(losses, kept, step, start, error, cut, top if greatest is None else greatest)


# -- exact convolution ---------------------------------------------------------------------------------------


def convolved_size(a: Atoms, b: Atoms) -> int:
    """How many atoms the sum of two independent losses has, or more than may be where it is too costly."""
    if len(a.masses) == 1 or len(b.masses) == 1:
        return max(len(a.masses), len(b.masses))
    if a.step is not None and a.step == b.step:
        size = len(a.masses) + len(b.masses) - 1
        return size if size <= LONGEST else MOST_ATOMS + 1
    return len(a.masses) * len(b.masses)


def convolved(a: Atoms, b: Atoms) -> Atoms:
    """The sum of two independent losses. Sums of positive products: every mass keeps its relative accuracy."""
    error = a.error + b.error + a.error * b.error
    cut, greatest = a.cut + b.cut, a.greatest + b.greatest
    if len(b.masses) == 1:
        a, b = b, a
    if len(a.masses) == 1 and a.first is not None and b.first is not None and b.step is not None:
        masses = a.masses[0] * b.masses
        return lattice_atoms(a.first + b.first, b.step, masses, error + UNIT, cut, greatest)
    if a.step is not None and a.step == b.step and a.first is not None and b.first is not None:
        masses = np.convolve(a.masses, b.masses)
        error += (min(len(a.masses), len(b.masses)) + 1) * UNIT
        low, high, more = _kept(masses)
        masses = masses[low:high].copy()
        masses[0] += more
        return lattice_atoms(a.first + b.first + low * a.step, a.step, masses, error, cut + 2 * CUT, greatest)
    losses = np.add.outer(a.losses, b.losses).ravel()
    found = atoms(losses, np.multiply.outer(a.masses, b.masses).ravel(), error + UNIT, cut + 2 * CUT, greatest)
    low, high, more = _kept(found.masses)
    masses = found.masses[low:high].copy()
    masses[0] += more
    return atoms(found.losses[low:high], masses, found.error, found.cut, greatest)


def _kept(masses: Array) -> tuple[int, int, float]:
    """The range that is left when tails are cut at both ends, and the mass below it."""
    low = int(np.searchsorted(np.cumsum(masses), CUT))
    high = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), CUT))
    low = min(low, max(0, high - 1))
    return low, max(high, low + 1), float(np.sum(masses[:low]))


def gathered(parts: list[tuple[Atoms, int]]) -> list[tuple[Atoms, int]]:
    """Fewer parts with the same sum: whatever can be convolved exactly at little cost is.

    It saves transforms, and it fills the gaps between atoms, which is what makes lower bounds on a lattice tight.
    """
    single: list[Atoms] = []
    repeated: list[tuple[Atoms, int]] = []
    for part, count in parts:
        while count:
            if count & 1:
                single.append(part)
            count >>= 1
            if count and convolved_size(part, part) > MOST_ATOMS:
                repeated.append((part, 2 * count))
                break
            if count:
                part = convolved(part, part)
    by_step: dict[Fraction, Atoms] = {}
    waiting: list[Atoms] = []
    for part in single:
        if part.step is None:
            waiting.append(part)
        elif part.step not in by_step:
            by_step[part.step] = part
        elif convolved_size(part, by_step[part.step]) <= MOST_ATOMS:
            by_step[part.step] = convolved(part, by_step[part.step])
        else:
            waiting.append(part)
    waiting = sorted([*waiting, *by_step.values()], key=lambda part: len(part.masses))
    done: list[tuple[Atoms, int]] = []
    while waiting:
        part = waiting.pop(0)
        if waiting and convolved_size(part, waiting[0]) <= MOST_ATOMS:
            waiting[0] = convolved(part, waiting[0])
            waiting.sort(key=lambda other: len(other.masses))
        else:
            done.append((part, 1))
    return done + repeated


# -- atoms in place of a density -----------------------------------------------------------------------------

_CELLS = 64
_FINER = 2
_SMOOTH = 8.0
"""A cell is at most a 64th of the distance over which the density and e^-l are smooth, and half of the step."""


def in_place_of(law: Smooth, step: float, offset: float = 0.0) -> tuple[Atoms, Atoms]:
    """Atoms below and above a smooth law in the convex order of X = e^-L.

    The density is integrated cell by cell with Gauss and Legendre's nodes, which are exact here to all digits. Below:
    the mean of X in each cell (Jensen). Above: the nodes themselves, which have the law's integrals over a cell of
    every polynomial of low degree, so that splitting them over the ends of cells of ``step`` splits the law. For that
    no cell may reach across a point of the lattice of multiples of ``step`` that begins at ``offset``.
    """
    low, high = law.interval()
    pieces = max(_FINER, math.ceil(_CELLS * step / min(law.smooth, _SMOOTH)))
    per_loss = pieces / step
    first, last = math.ceil((low - offset) * per_loss), math.floor((high - offset) * per_loss)
    inside = offset + np.arange(first, last + 1) / per_loss
    edges = np.concatenate([[low], inside[(inside > low) & (inside < high)], [high]])
    halves = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + halves * (1 + _NODES)
    masses = halves * _WEIGHTS * law.density(nodes)
    losses, alone = law.points()
    totals = masses.sum(axis=1)
    middle = edges[:-1] + halves[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = middle - np.log1p((masses * np.expm1(middle[:, None] - nodes)).sum(axis=1) / totals)
    # Masses of their own are at the ends.
    ends = np.split(losses, 2), np.split(alone, 2)

    def together(at: Array, mass: Array) -> Atoms:
        values, sums = np.concatenate([ends[0][0], at, ends[0][1]]), np.concatenate([ends[1][0], mass, ends[1][1]])
        cut = 0.0 if math.isfinite(law.greatest) else 2 * CUT
        return Atoms(values, sums, None, None, 1024 * UNIT, cut, law.greatest)

    return together(means[totals > 0], totals[totals > 0]), together(nodes.ravel(), masses.ravel())


# -- distributions: a law in each direction --------------------------------------------------------------------

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
