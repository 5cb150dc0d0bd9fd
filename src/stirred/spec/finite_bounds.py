"""What a specification over listed datasets allows each pair of them: its bounds, their closure, and its cuts.

The universes, distances and budgets of such a specification come to one number for each ordered pair: the smallest
budget times distance over the universes that hold both (Propositions A.3.1 and A.3.2). For rho the number is rho d^2,
the square of what D_NoR may be, so that it stays exact. A pair that is missing is not constrained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve
from stirred.spec.finite_flavor import budgets_of, require_listed, universes_of
from stirred.spec.premetrics import OutputPremetric
from stirred.spec.specification import Specification

Number = Fraction | float
Pair = tuple[str, str]
Bounds = Mapping[Pair, Any]
"""For each ordered pair of different datasets that is constrained: a number, or a curve."""

NO_TEST = GaussianCurve(0)
"""The curve of tests between equal laws."""


def pair_bounds(specification: Specification) -> dict[Pair, Any] | None:
    """The bounds of a listed specification; None where a trade-off function is asked for other than neighbours."""
    require_listed(specification)
    distances: dict[Pair, Number] = {}
    scale = specification.input_premetric.scale
    for first, second, distance in specification.input_premetric.distances:
        distances[first, second] = distance * scale
    output = specification.output_premetric
    if output.kind.symmetric:
        for first, second in list(distances):
            smaller = min(distances[first, second], distances.get((second, first), math.inf))
            distances[first, second] = distances[second, first] = smaller
    universes = [set(universe) for universe in universes_of(specification)]
    if specification.budget.is_curve:
        held = {pair: d for pair, d in distances.items() if any(set(pair) <= universe for universe in universes)}
        curves = _curves(specification.budget.value, held)
        return None if curves is None else {pair: one for pair, one in curves.items() if not is_trivial(output, one)}
    found: dict[Pair, Any] = {}
    for universe, budget in zip(universes, budgets_of(specification), strict=True):
        if budget == math.inf:
            continue
        for pair, distance in distances.items():
            if set(pair) <= universe:
                bound = budget * distance**output.kind.power
                found[pair] = min(bound, found.get(pair, math.inf))
    return {pair: bound for pair, bound in found.items() if not is_trivial(output, bound)}


def _curves(curve: Any, distances: Mapping[Pair, Number]) -> dict[Pair, Any] | None:
    if not isinstance(curve, EpsilonProfile):
        if any(distance not in (0, 1) for distance in distances.values()):
            return None
        return {pair: curve if distance else NO_TEST for pair, distance in distances.items()}
    return {
        pair: EpsilonProfile(tuple((delta, epsilon * float(d) if d else 0.0) for delta, epsilon in curve.points))
        for pair, d in distances.items()
    }


def is_trivial(output: OutputPremetric, bound: Any) -> bool:
    """Whether every two laws satisfy a bound."""
    return output.kind.is_trivial(bound, output.parameter)


# -- closure -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Closure:
    """The largest distances that a metric can have under the bounds: lengths of shortest paths (Definition A.4.1).

    Numbers are squares where the bounds are. ``exact`` is false where roots of different numbers had to be added.
    """

    bounds: Mapping[Pair, Number]
    exact: bool


def closed(bounds: Mapping[Pair, Number], output: OutputPremetric) -> Closure:
    """The bounds tightened along paths, for an output premetric that is a metric."""
    if output.kind.power == 1:
        return Closure(_shortest(bounds), True)
    unit = next((bound for bound in bounds.values() if bound > 0), Fraction(1))
    roots = {pair: rational_root(Fraction(bound) / Fraction(unit)) for pair, bound in bounds.items()}
    known = {pair: root for pair, root in roots.items() if root is not None}
    if len(known) == len(roots):
        return Closure({pair: unit * length**2 for pair, length in _shortest(known).items()}, True)
    lengths = _shortest({pair: math.sqrt(bound) for pair, bound in bounds.items()})
    return Closure({pair: length**2 for pair, length in lengths.items()}, False)


def _shortest(bounds: Mapping[Pair, Number]) -> dict[Pair, Number]:
    shortest = dict(bounds)
    names = sorted({name for pair in bounds for name in pair})
    for middle in names:
        arriving = [name for name in names if (name, middle) in shortest]
        leaving = [name for name in names if (middle, name) in shortest]
        for first in arriving:
            for second in leaving:
                through = shortest[first, middle] + shortest[middle, second]
                if first != second and through < shortest.get((first, second), math.inf):
                    shortest[first, second] = through
    return shortest


def rational_root(number: Fraction) -> Fraction | None:
    """The square root of a fraction, if it is one.

    >>> rational_root(Fraction(4, 9)), rational_root(Fraction(2))
    (Fraction(2, 3), None)
    """
    top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
    return Fraction(top, bottom) if top**2 == number.numerator and bottom**2 == number.denominator else None


# -- cuts ----------------------------------------------------------------------------------------------------


def cut(bounds: Mapping[Pair, Any], names: tuple[str, ...], first: str, second: str) -> tuple[Any, frozenset[str]]:
    """The best division of the datasets into two sides that separates two of them, and the first one's side.

    Best is where the smallest bound across, in either direction, is largest; it is None where no bound crosses. A
    mechanism with one law on each side may have them that far apart.
    """
    side = {name: {name} for name in names}
    for (a, b), bound in sorted(bounds.items(), key=lambda item: _size(item[1])):
        if side[a] is side[b]:
            continue
        if {first, second} <= side[a] | side[b]:
            return bound, frozenset(side[first])
        joined = side[a] | side[b]
        for name in joined:
            side[name] = joined
    return None, frozenset(side[first])


def _size(bound: Any) -> Number:
    """A number that orders the bounds of one specification, its curves too: they are one curve at several distances."""
    if isinstance(bound, GaussianCurve):
        return bound.mu
    if isinstance(bound, PowerCurve):
        return max(power - level for level, power in bound.points)
    if isinstance(bound, EpsilonProfile):
        return sum(epsilon for _, epsilon in bound.points if epsilon < math.inf)
    return Fraction(bound)
