"""Flavors over finitely many named datasets, as numbers: distances, universes, and which datasets are comparable.

On such a domain every question about a flavor is decided by enumeration. Two datasets are *explicitly comparable*
(Definition A.1.1) if some universe holds both and one of their two distances is finite; the connected components of
that graph, [x], are what a deterministic release may depend on (Proposition A.2.1).

The universes, distances and budgets of a specification over listed datasets come to one number for each ordered pair:
the smallest budget times distance over the universes that hold both (Propositions A.3.1 and A.3.2). For rho the number
is rho d^2, the square of what D_NoR may be, so that it stays exact. A pair that is missing is not constrained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief
from stirred._lazy import later
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve
from stirred.spec.blocks import InputPremetric, Multiverse, OutputPremetric, shortest_paths
from stirred.spec.specification import Flavor, Specification

csgraph = later("scipy.sparse.csgraph")

Datasets = Mapping[str, Sequence[Any]]
"""Small datasets by name, each a sequence of records (mappings where invariants look at columns)."""


def explicit(flavor: Flavor, datasets: Datasets) -> Flavor:
    """The same flavor with everything listed: its datasets, their distances, and the universes of its invariants.

    >>> from stirred.spec import flavors
    >>> listed = explicit(flavors.pure("person"), {"none": "00", "one": "01", "both": "11"})
    >>> listed.input_premetric.distance("none", "both"), listed.multiverse.universes
    (Fraction(2, 1), ())
    """
    domain = replace(flavor.domain, datasets=tuple(datasets), free=False, words="")
    premetric = flavor.input_premetric
    if premetric.kind != "table":
        premetric = InputPremetric.measured(datasets, premetric.distance, premetric.unit)
    universes = () if not flavor.multiverse.invariants else _agreeing(flavor, datasets)
    multiverse = Multiverse(universes=universes) if universes else replace(flavor.multiverse, words="")
    listed = Flavor(domain, multiverse, premetric, flavor.output_premetric)
    return replace(listed, nearest=nearest(listed))


def _agreeing(flavor: Flavor, datasets: Datasets) -> tuple[tuple[str, ...], ...]:
    """The universes of the invariants: classes of datasets that agree on all of them."""
    unit = flavor.input_premetric.unit
    classes: list[tuple[list[Any], list[str]]] = []
    for name, records in datasets.items():
        values = []
        for invariant in flavor.multiverse.invariants:
            value = invariant.value(records) if invariant.counts == unit else None
            if value is None:
                raise errors.cannot_evaluate(f"'{invariant}' on records of one {unit} each")
            values.append(value)
        for known, members in classes:
            if known == values:
                members.append(name)
                break
        else:
            classes.append((values, [name]))
    return tuple(tuple(members) for _, members in classes)


@brief
@dataclass(frozen=True, eq=False)
class FiniteFlavor:
    """A flavor on named datasets: distances (infinite where there is none) and universes as masks over the names."""

    names: tuple[str, ...]
    distances: NDArray[np.float64]
    universes: tuple[NDArray[np.bool_], ...]
    output: OutputPremetric

    @classmethod
    def of(cls, flavor: Flavor | Specification, datasets: Datasets | None = None) -> FiniteFlavor:
        """From a flavor that lists its datasets, or from any other and ``datasets`` to evaluate it on."""
        if isinstance(flavor, Specification):
            flavor = flavor.flavor
        if datasets is not None:
            flavor = explicit(flavor, datasets)
        names = require_listed(flavor)
        place = {name: index for index, name in enumerate(names)}
        distances = np.full((len(names), len(names)), math.inf)
        np.fill_diagonal(distances, 0.0)
        scale = flavor.input_premetric.scale
        for first, second, distance in flavor.input_premetric.distances:
            distances[place[first], place[second]] = float(distance * scale)
        masks = tuple(np.isin(names, universe) for universe in universes_of(flavor))
        return cls(names, distances, masks, flavor.output_premetric)

    @property
    def together(self) -> NDArray[np.bool_]:
        """Which pairs of datasets share a universe."""
        shared = np.zeros(self.distances.shape, dtype=np.bool_)
        for mask in self.universes:
            shared |= np.outer(mask, mask)
        return shared

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which ordered pairs of different datasets the flavor says something about."""
        different = ~np.eye(len(self.names), dtype=np.bool_)
        return self.together & different & (self.distances < math.inf)

    def members(self, universe: int) -> tuple[str, ...]:
        """The names of the datasets in a universe."""
        return tuple(name for name, inside in zip(self.names, self.universes[universe], strict=True) if inside)


def require_listed(flavor: Flavor | Specification) -> tuple[str, ...]:
    """The names of a flavor's datasets, if its distances and universes are given by name too."""
    if not flavor.domain.datasets or flavor.multiverse.invariants or flavor.input_premetric.kind != "table":
        raise errors.not_listed()
    return flavor.domain.datasets


def universes_of(flavor: Flavor | Specification) -> tuple[tuple[str, ...], ...]:
    """The universes of a listed flavor; where none is listed, one of all datasets."""
    return flavor.multiverse.universes or (tuple(sorted(require_listed(flavor))),)


def budgets_of(specification: Specification) -> tuple[Fraction | float, ...]:
    """The budget of each universe, in the order of :func:`universes_of`."""
    budget = specification.budget
    return budget.by_universe or (budget.number,) * len(universes_of(specification))


def nearest(flavor: Flavor | Specification) -> Fraction | float:
    """The smallest positive distance inside the universes; infinite if there is none."""
    require_listed(flavor)
    held = [set(universe) for universe in universes_of(flavor)]
    scale = flavor.input_premetric.scale
    inside = [
        distance * scale
        for first, second, distance in flavor.input_premetric.distances
        if distance > 0 and any({first, second} <= universe for universe in held)
    ]
    return min(inside, default=math.inf)


# -- comparability -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparability:
    """The comparability graph (Definition A.1.1): an undirected edge for each explicitly comparable pair."""

    names: tuple[str, ...]
    edges: NDArray[np.bool_]
    component: tuple[int, ...]
    """For each dataset the number of its connected component."""

    @property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The classes [x] of datasets that are comparable through others."""
        found: dict[int, list[str]] = {}
        for name, number in zip(self.names, self.component, strict=True):
            found.setdefault(number, []).append(name)
        return tuple(tuple(members) for members in found.values())

    def of(self, name: str) -> tuple[str, ...]:
        """[x], the component of one dataset."""
        return next(members for members in self.components if name in members)


def comparability(flavor: Flavor | Specification | FiniteFlavor, datasets: Datasets | None = None) -> Comparability:
    """Which datasets are comparable, directly or through others.

    >>> from stirred.spec import flavors
    >>> comparability(flavors.pure("person"), {"a": "0", "b": "1", "c": "00"}).components
    (('a', 'b'), ('c',))
    """
    finite = flavor if isinstance(flavor, FiniteFlavor) else FiniteFlavor.of(flavor, datasets)
    edges = finite.compared | finite.compared.T
    _, labels = csgraph.connected_components(edges, directed=False)
    return Comparability(finite.names, edges, tuple(int(label) for label in labels))


@dataclass(frozen=True)
class RealisedBudgets:
    """The budgets that a dataset has (Corollary A.2.2).

    ``of_universes`` is b'(x), the budgets of the universes that hold x; ``of_components`` is b(x), those of the
    universes that hold some dataset of [x]. b is free to publish; b' only where the two are equal.
    """

    of_universes: Mapping[str, frozenset[Fraction | float]]
    of_components: Mapping[str, frozenset[Fraction | float]]

    @property
    def differ_at(self) -> tuple[str, ...]:
        """The datasets whose own budgets are fewer than those of their component."""
        return tuple(name for name, own in self.of_universes.items() if own != self.of_components[name])


def realised_budgets(specification: Specification) -> RealisedBudgets:
    """b and b' of Corollary A.2.2, by enumeration of a listed domain."""
    universes = list(zip(universes_of(specification), budgets_of(specification), strict=True))
    own = {
        name: frozenset(budget for universe, budget in universes if name in universe)
        for name in require_listed(specification)
    }
    shared = {
        name: frozenset().union(*(own[other] for other in component))
        for component in comparability(specification).components
        for name in component
    }
    return RealisedBudgets(own, {name: shared[name] for name in own})


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
        return Closure(shortest_paths(bounds), True)
    unit = next((bound for bound in bounds.values() if bound > 0), Fraction(1))
    roots = {pair: rational_root(Fraction(bound) / Fraction(unit)) for pair, bound in bounds.items()}
    known = {pair: root for pair, root in roots.items() if root is not None}
    if len(known) == len(roots):
        return Closure({pair: unit * length**2 for pair, length in shortest_paths(known).items()}, True)
    lengths = shortest_paths({pair: math.sqrt(bound) for pair, bound in bounds.items()})
    return Closure({pair: length**2 for pair, length in lengths.items()}, False)


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
