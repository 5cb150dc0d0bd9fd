"""Distances between densities on the line: closed forms where they are known, certified bounds elsewhere.

A :class:`stirred.limits.Density` is monotone between its breaks. That alone encloses it on every cell of a grid,
between its values at the ends of the cell, and so encloses suprema of log ratios and integrals, with no assumption
about derivatives. Cells are halved where the enclosure is widest. Log ratios within the Laplace, normal or gamma
family have closed forms.

Keep in mind: results are :class:`stirred.loss.Bounds`, and the number asked for lies between them
(up to the rounding of single evaluations, and if pieces are as monotone as they were said to be). A supremum that no
finite grid can bound has an infinite upper bound.

*Within one family* (Laplace, normal, gamma) the range of log ratios has a closed form. Only members with the same
tails have a finite range, which is why Laplace noise of one scale gives differential privacy and normal noise does
not.

*Measures with atoms and a density*, such as a clamped output, whose ends hold all that would lie beyond them. Atoms
and densities do not mix: a point has length 0, and where only one of two measures has an atom no density of the other
makes up for it. So a log ratio ranges over both parts, and masses of events are sums.

Keep in mind: atoms are compared point by point, as equal floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.limits.densities import Density
from stirred.limits.distances import log_ratio_range
from stirred.loss import Bounds
from stirred.loss.argument_checks import Number, non_negative, probability

Member = tuple[str, float, float]
"""The name of the family and the two parameters: location and scale, or shape and rate."""


def log_ratios_in_family(f: Member, g: Member) -> tuple[float, float]:
    """inf and sup of ln f/g over the line, for two members of one family.

    >>> log_ratios_in_family(("laplace", 0, 2), ("laplace", 1, 2))
    (-0.5, 0.5)
    """
    assert f[0] == g[0]
    if f == g:
        return 0.0, 0.0
    highest = {"laplace": _laplace, "normal": _normal, "gamma": _gamma}[f[0]]
    return -highest(g[1], g[2], f[1], f[2]), highest(f[1], f[2], g[1], g[2])


def _laplace(a: float, b: float, a_other: float, b_other: float) -> float:
    """Infinite where the first has the wider tail; else the ratio is largest at the first one's own peak."""
    if b > b_other:
        return math.inf
    return abs(a - a_other) / b_other + math.log(b_other / b)


def _normal(a: float, b: float, a_other: float, b_other: float) -> float:
    """A quadratic in t: bounded above where it opens downwards."""
    if b >= b_other:
        return math.inf
    return math.log(b_other / b) + (a - a_other) ** 2 / (2 * (b_other**2 - b**2))


def _gamma(k: float, r: float, k_other: float, r_other: float) -> float:
    """(k - k') ln t - (r - r') t and a constant."""
    constant = k * math.log(r) - k_other * math.log(r_other) - math.lgamma(k) + math.lgamma(k_other)
    more, faster = k - k_other, r - r_other
    if more < 0 or faster < 0 or (faster == 0 and more > 0):
        return math.inf
    if more == 0:
        return constant
    return constant + more * math.log(more / faster) - more


Array = NDArray[np.float64]
NOTHING = np.zeros(0)

PRECISE = 1e-12
MOST_CELLS = 60_000
"""Cells are halved until the bounds are this near to each other, or there are so many."""

NO_TAIL = 1e-17
"""Grids reach out on the line to where less than this mass is left."""

ROUNDED = 1e-13
"""Sums of masses of cells are rounded by a smaller part."""

LARGEST = 700.0
"""Of a larger epsilon e^epsilon is too large for a float."""


@dataclass(frozen=True, eq=False)
class DensityDistances:
    """Distances between two densities, each as two bounds. ``lowest`` and ``highest`` are the essential infimum and
    supremum of ln f/g, of which the first four distances are made as in :mod:`stirred.limits.distances`."""

    first: Density
    second: Density
    lowest: Bounds
    highest: Bounds
    atoms: tuple[Array, Array] = (NOTHING, NOTHING)
    """Masses of single points beside the densities, of both measures in the same order."""

    @property
    def multiplicative(self) -> Bounds:
        """D_MULT: the largest absolute log ratio of masses of any event."""
        ends = [(-self.lowest.upper, self.highest.lower), (-self.lowest.lower, self.highest.upper)]
        return Bounds(*(max(0.0, *pair) for pair in ends))

    @property
    def density_ratio(self) -> Bounds:
        """d_DR: the largest minus the smallest log density ratio."""
        lower, upper = self.highest.lower - self.lowest.upper, self.highest.upper - self.lowest.lower
        return Bounds(max(0.0, lower), max(0.0, upper))

    @property
    def odds_ratio(self) -> Bounds:
        """d_COR = 1 - e^(-d_DR), the constant-odds-ratio distance."""
        return Bounds(*(-math.expm1(-value) + 0.0 for value in self.density_ratio))

    @property
    def linear_vacuous(self) -> Bounds:
        """d_LV, the linear-vacuous distance; it is meant for probabilities."""
        return Bounds(*(max(0.0, -math.expm1(min(value, 0.0))) for value in (self.lowest.upper, self.lowest.lower)))

    @property
    def total_variation(self) -> Bounds:
        """The largest difference of the masses of an event, in either direction."""
        return self._excess(0.0)

    def approximate(self, delta: Number) -> Bounds:
        """D_MULT^delta, the smallest epsilon at which both hockey-stick divergences are at most ``delta``."""
        d = probability("delta", delta)
        if d == 0:
            return self.multiplicative
        low, high = 0.0, min(self.multiplicative.upper, LARGEST)
        if self._excess(low).lower > d and self._excess(high).lower > d:
            return Bounds(high, self.multiplicative.upper)
        if self._excess(low).lower <= d:
            high = low
        while high - low > PRECISE * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self._excess(middle).lower <= d else (middle, high)
        # The upper bound is a little further on; it need not be found precisely.
        step, upper = PRECISE, high
        while upper < self.multiplicative.upper and self._excess(upper).upper > d:
            upper, step = high + step, 4 * step
        return Bounds(low, min(upper, self.multiplicative.upper))

    def _excess(self, epsilon: float) -> Bounds:
        """The larger of the two hockey-stick divergences."""
        one = _hockey_stick(self.first, self.second, epsilon, self.highest.upper)
        other = _hockey_stick(self.second, self.first, epsilon, -self.lowest.lower)
        a, b = self.atoms
        factor = math.exp(min(epsilon, LARGEST))
        more, less = math.fsum(np.maximum(a - factor * b, 0.0)), math.fsum(np.maximum(b - factor * a, 0.0))
        return Bounds(max(one.lower + more, other.lower + less), max(one.upper + more, other.upper + less))


@refuses_wrong_arguments
def density_distances(f: Density, g: Density) -> DensityDistances:
    """All distances between two densities.

    >>> far = density_distances(Density.laplace(0, 1), Density.laplace(1, 1))
    >>> far.multiplicative, far.density_ratio.upper, round(far.total_variation.upper, 6)
    (Bounds(lower=1.0, upper=1.0), 2.0, 0.393469)
    >>> density_distances(Density.normal(0, 1), Density.normal(1, 1)).multiplicative.lower
    inf
    """
    if f is g:
        return DensityDistances(f, g, Bounds(0.0, 0.0), Bounds(0.0, 0.0))
    if f.family is not None and g.family is not None and f.family[0] == g.family[0]:
        low, high = log_ratios_in_family(f.family, g.family)
        return DensityDistances(f, g, Bounds(low, low), Bounds(high, high))
    back = _highest(g, f)
    return DensityDistances(f, g, Bounds(-back.upper, -back.lower), _highest(f, g))


@refuses_wrong_arguments
def hockey_stick_of_densities(f: Density, g: Density, epsilon: Number) -> Bounds:
    """The integral of max(f - e^epsilon g, 0): the largest excess of an event's mass. One direction.

    >>> bounds = hockey_stick_of_densities(Density.laplace(0, 1), Density.laplace(1, 1), 0.5)
    >>> round(bounds.lower, 9), round(bounds.upper, 9)  # 1 - e^((0.5 - 1) / 2)
    (0.221199217, 0.221199217)
    """
    return _hockey_stick(f, g, non_negative("epsilon", epsilon), density_distances(f, g).highest.upper)


def _hockey_stick(f: Density, g: Density, epsilon: float, highest: float) -> Bounds:
    """The same, where ln f/g is known to be at most ``highest``, so that the excess is at most the part
    1 - e^(epsilon - highest) of f: without it a ratio that is constant on a cell would never be decided."""
    part = -math.expm1(min(0.0, epsilon - highest))
    if part == 0:
        return Bounds(0.0, 0.0)
    factor = math.exp(min(epsilon, LARGEST))

    def contributions(left: Array, right: Array) -> tuple[Array, Array]:
        (f_low, f_high, f_least, f_most), (g_low, g_high, g_least, g_most) = (
            _enclosed(one, left, right) for one in (f, g)
        )
        above, below = f_low >= factor * g_high, f_high <= factor * g_low
        least = np.where(above, np.maximum(f_least - factor * g_most, 0.0), 0.0)
        most = np.where(above, f_most - factor * g_least, np.where(below, 0.0, f_most))
        # Where f and g are nearly the same, neither above nor below for certain, values bound the excess better than
        # masses do. On endless cells this is not a number, and left aside.
        with np.errstate(invalid="ignore"):
            level = np.maximum(f_high - factor * g_low, 0.0) * (right - left)
        return least, np.maximum(np.fmin(np.minimum(most, part * f_most), level), least)

    least, most = _refined(_cells(f, g), contributions, total=True)
    slack = ROUNDED * math.fsum(most)
    return Bounds(max(0.0, math.fsum(least) - slack), math.fsum(most) + slack)


# -- grids ---------------------------------------------------------------------------------------------------


def _highest(f: Density, g: Density) -> Bounds:
    """The essential supremum of ln f/g."""

    def contributions(left: Array, right: Array) -> tuple[Array, Array]:
        f_high, g_low = _enclosed(f, left, right)[1], _enclosed(g, left, right)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [np.log(a) - np.log(b) for a, b in zip(f.on(left, right), g.on(left, right), strict=True)]
            found = np.fmax(*ends)
            # A ratio of zeros tells nothing; where f vanishes on the whole cell there is nothing to compare.
            found = np.where(np.isnan(found), -math.inf, found)
            bound = np.where(f_high == 0, -math.inf, np.log(f_high) - np.log(g_low))
        return found, np.maximum(bound, found)

    found, bound = _refined(_cells(f, g), contributions, total=False)
    if not bool(np.any(bound > -math.inf)):
        return Bounds(-math.inf, -math.inf)
    return Bounds(float(np.max(found)), float(np.max(bound)))


def _cells(f: Density, g: Density) -> Array:
    """Edges: all breaks, and far points where there is no end."""
    edges = {at for one in (f, g) for at in one.breaks}
    inner = sorted(at for at in edges if math.isfinite(at)) or [0.0]
    for end, start in ((-math.inf, inner[0]), (math.inf, inner[-1])):
        step = 1.0
        while end in edges and step < 1e300:
            edges.add(start + math.copysign(step, end))
            if all(_mass_beyond(one, start + math.copysign(step, end), end) < NO_TAIL for one in (f, g)):
                break
            step *= 2
    return np.array(sorted(edges))


def _mass_beyond(one: Density, at: float, end: float) -> float:
    left, right = (-math.inf, at) if end < 0 else (at, math.inf)
    if one.between is None:
        return 0.0 if one.breaks[0] >= right or one.breaks[-1] <= left else math.inf
    return float(one.between(np.array([left]), np.array([right]))[0])


def _enclosed(one: Density, left: Array, right: Array) -> tuple[Array, Array, Array, Array]:
    """On each cell the least and greatest value, and the least and greatest mass."""
    ends = one.on(left, right)
    low, high = np.minimum(*ends), np.maximum(*ends)
    if one.between is not None:
        inside = np.maximum(one.between(left, right), 0.0)
        return low, high, inside, inside
    return low, high, low * (right - left), high * (right - left)


def _refined(
    edges: Array, contributions: Callable[[Array, Array], tuple[Array, Array]], total: bool
) -> tuple[Array, Array]:
    """Lower and upper contributions of cells, halved where they matter: to a total, or to a largest one."""
    left, right = edges[:-1], edges[1:]
    least, most = contributions(left, right)
    while len(left) < MOST_CELLS:
        with np.errstate(invalid="ignore"):
            gap = np.where(most > least, most - least, 0.0)
        if total:
            if math.fsum(gap) <= PRECISE:
                break
            split = gap > PRECISE / len(gap)
        else:
            best = np.max(least)
            if best == math.inf:
                break
            split = most > best + PRECISE
        with np.errstate(invalid="ignore"):
            middle = left + (right - left) / 2
        split &= np.isfinite(middle) & (middle > left) & (middle < right)
        if not bool(np.any(split)):
            break
        kept = ~split
        news = (np.append(left[split], middle[split]), np.append(middle[split], right[split]))
        new_least, new_most = contributions(*news)
        left, right = np.append(left[kept], news[0]), np.append(right[kept], news[1])
        least, most = np.append(least[kept], new_least), np.append(most[kept], new_most)
    return least, most


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class MixedMeasure:
    """A density with respect to length, and masses of single points beside it; the total need not be one.

    >>> clamped = MixedMeasure.clamped(Density.laplace(0, 1), -1, 1)
    >>> {point: round(mass, 6) for point, mass in clamped.atoms.items()}
    {-1.0: 0.18394, 1.0: 0.18394}
    """

    density: Density
    atoms: Mapping[float, float]

    def __post_init__(self) -> None:
        read = {float(point): float(mass) for point, mass in self.atoms.items()}
        if not all(math.isfinite(point) and 0 <= mass < math.inf for point, mass in read.items()):
            raise errors.not_a_measure("The list of atoms", "a point is not finite, or a mass is negative or infinite")
        object.__setattr__(self, "atoms", read)

    @classmethod
    def clamped(cls, density: Density, low: float, high: float) -> MixedMeasure:
        """The law of what has this density, clamped: mass below ``low`` is put on it, mass above ``high`` on that."""
        if density.between is None:
            raise errors.not_a_density("This function", "to be clamped it must tell its mass between two points")
        ends = np.array([-math.inf, float(high)]), np.array([float(low), math.inf])
        below, above = np.maximum(density.between(*ends), 0.0).tolist()
        return cls(density.restricted(low, high), {low: below, high: above})


@refuses_wrong_arguments
def mixed_distances(mu: MixedMeasure, nu: MixedMeasure) -> DensityDistances:
    """All distances between two such measures.

    >>> one, other = (MixedMeasure.clamped(Density.laplace(at, 1), 0, 1) for at in (0, 1))
    >>> far = mixed_distances(one, other)
    >>> round(far.multiplicative.upper, 3), round(far.total_variation.upper, 6)  # clamping loses nothing here
    (1.0, 0.393469)
    """
    points = sorted({*mu.atoms, *nu.atoms})
    a, b = (np.array([one.atoms.get(point, 0.0) for point in points]) for one in (mu, nu))
    found = density_distances(mu.density, nu.density)
    if not bool(np.any((a > 0) | (b > 0))):
        return found
    low, high = map(float, log_ratio_range(a, b))
    return replace(
        found,
        lowest=Bounds(min(found.lowest.lower, low), min(found.lowest.upper, low)),
        highest=Bounds(max(found.highest.lower, high), max(found.highest.upper, high)),
        atoms=(a, b),
    )
