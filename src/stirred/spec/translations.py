"""The same specification written with other blocks, over listed datasets (Appendix A.3, Proposition A.4.2).

Each function returns a specification that exactly the same mechanisms satisfy. Universes can be written into the
premetric and distances into universes; what a premetric never compares is an invariant, declared or not.

The second half of Proposition A.4.2, universes of all pairs {x, x'} with x' in [x], is not here: it constrains pairs
that no universe held together, and is false as printed. :func:`as_pairs` has the pairs that may be taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred._lazy import later
from stirred.spec.blocks import Multiverse
from stirred.spec.finite_flavor import FiniteFlavor, comparability, universes_of
from stirred.spec.premetrics import Budget
from stirred.spec.specification import Specification

csgraph = later("scipy.sparse.csgraph")

Universe = tuple[str, ...]


def as_premetric(specification: Specification) -> Specification:
    """All datasets in one universe, and infinite distances between those that shared none (Proposition A.3.1).

    The budget must be the same in every universe.
    """
    budget = specification.budget
    if len(set(budget.by_universe)) > 1:
        remedy = "Keep the universes, or divide them into pairs (as_pairs)."
        raise errors.no_rule("one universe in place of many", "their budgets differ", remedy)
    held = [set(universe) for universe in universes_of(specification)]
    premetric = specification.input_premetric
    kept = tuple(
        (first, second, distance)
        for first, second, distance in premetric.distances
        if any({first, second} <= universe for universe in held)
    )
    return replace(
        specification,
        multiverse=Multiverse(),
        input_premetric=replace(premetric, distances=kept, words=""),
        budget=replace(budget, by_universe=()),
    )


def as_pairs(specification: Specification) -> Specification:
    """Universes of at most two datasets, at a finite distance from each other (Proposition A.3.2).

    Each has the smallest budget of the universes that hold it.
    """
    near = [{first, second} for first, second, _ in specification.input_premetric.distances]
    near += [{name} for name in specification.domain.datasets]
    parts = (tuple(sorted(pair & set(universe))) for universe in universes_of(specification) for pair in near)
    return divided(specification, parts)


def with_declared_invariants(specification: Specification) -> Specification:
    """Universes cut along what the premetric never compares, the invariants that it hides (Proposition A.3.3).

    The classes are those of datasets joined by finite distances, in whatever universe.
    """
    finite = FiniteFlavor.of(specification)
    _, labels = csgraph.connected_components(finite.distances < math.inf, directed=False)
    classes = [set(np.array(finite.names)[labels == label].tolist()) for label in np.unique(labels)]
    return _intersected(specification, classes)


def along_components(specification: Specification) -> Specification:
    """Universes cut along the classes [x] of comparable datasets (Proposition A.4.2, its first half)."""
    return _intersected(specification, [set(members) for members in comparability(specification).components])


def sharpened(specification: Specification) -> Specification:
    """Distances replaced by the lengths of shortest paths (Definition A.4.1).

    The same mechanisms satisfy it if all datasets share one universe and the output premetric is a metric; refused
    otherwise.
    """
    if not specification.output_premetric.kind.metric:
        reason = f"{specification.output_premetric.symbol} does not add up along paths"
        raise errors.no_rule("shortest paths in place of neighbours", reason, "Keep the distances as they are.")
    whole = any(set(universe) >= set(specification.domain.datasets) for universe in universes_of(specification))
    if not whole or len(set(specification.budget.by_universe)) > 1:
        remedy = "Write the universes into the distances first (as_premetric)."
        raise errors.no_rule("shortest paths in place of neighbours", "paths leave the universes", remedy)
    premetric = replace(specification.input_premetric.sharpen(), words="")
    return replace(specification, input_premetric=premetric)


def _intersected(specification: Specification, classes: Iterable[set[str]]) -> Specification:
    classes = list(classes)
    parts = (tuple(sorted(part & set(universe))) for universe in universes_of(specification) for part in classes)
    return divided(specification, parts)


def divided(specification: Specification, parts: Iterable[Universe]) -> Specification:
    """The specification with these universes, each with the smallest budget of the old ones that hold it."""
    smaller = [part for part in dict.fromkeys(parts) if part]
    old = [set(universe) for universe in universes_of(specification)]
    budget = specification.budget
    if budget.by_universe:
        listed: list[Fraction | float] = [
            min(one for one, universe in zip(budget.by_universe, old, strict=True) if set(part) <= universe)
            for part in smaller
        ]
        budget = replace(budget, value=max(listed), by_universe=tuple(listed)) if listed else Budget(budget.value)
    return replace(specification, multiverse=Multiverse(universes=tuple(smaller)), budget=budget)
