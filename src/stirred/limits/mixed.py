"""Measures with atoms and a density, such as a clamped output, whose ends hold all that would lie beyond them.

Atoms and densities do not mix: a point has length 0, and where only one of two measures has an atom no density of the
other makes up for it. So a log ratio ranges over both parts, and masses of events are sums.

Keep in mind: atoms are compared point by point, as equal floats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from stirred import errors
from stirred._calls import says_what_it_is_made_of, says_what_it_takes
from stirred._shown import brief
from stirred.limits.densities import Density
from stirred.limits.distances import log_ratio_range
from stirred.limits.distances_of_densities import DensityDistances, density_distances
from stirred.loss import Bounds


@says_what_it_is_made_of
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


@says_what_it_takes
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
