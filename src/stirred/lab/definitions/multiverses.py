"""Other blocks for the same guarantee, and coarser or complete multiverses, over listed datasets.

*Translations* (Appendix A.3, Proposition A.4.2). Each returns a specification that exactly the same mechanisms satisfy.
Universes can be written into the premetric and distances into universes; what a premetric never compares is an
invariant, declared or not.

The second half of Proposition A.4.2, universes of all pairs {x, x'} with x' in [x], is not here: it constrains pairs
that no universe held together, and is false as printed. :func:`as_pairs` has the pairs that may be taken.

*Coarser and complete multiverses*, and how a budget carries over between them (Definitions 6.2.6 to 6.2.10). A
multiverse *coarsens* another if each universe of the other lies in one of its own: it compares more, and is the
stronger condition (Lemma 6.2.7). It is *complete* if all datasets of a universe are at finite distances. Datasets that
are infinitely far apart are never compared, so that every universe D may be cut into the parts D n [x], where [x] are
the datasets at a finite distance from x: the *completion*, which the same mechanisms satisfy (Lemma 6.2.11). It says
openly what the distance holds fixed, as the number of records where files of different sizes are infinitely far apart.

Distances have values in [0, infinity], as everywhere here; the source writes the nonnegative numbers in Definition
6.2.4 and needs infinity a line later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._lazy import later
from stirred.spec.blocks import Budget, Multiverse
from stirred.spec.exact import exact
from stirred.spec.invariant import merged, missing
from stirred.spec.order.finite_flavors import (
    Datasets,
    FiniteFlavor,
    budgets_of,
    closed,
    comparability,
    pair_bounds,
    require_listed,
    universes_of,
)
from stirred.spec.specification import Answer, Flavor, Specification, Step, held, taken_fact

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


COARSENING, COMPLETE, COMPLETION = "Definition 6.2.6", "Definition 6.2.8", "Lemma 6.2.11"

Number = Fraction | float


@refuses_wrong_arguments
def coarsens(coarser: Flavor | Specification, finer: Flavor | Specification) -> Answer:
    """Whether each universe of ``finer`` lies in a universe of ``coarser`` (Definition 6.2.6).

    Both have the same domain. Listed universes are looked through; universes of invariants are compared by what
    implies what, so that a *no* needs a domain whose counts vary freely.

    >>> from stirred.spec import Invariant, flavors
    >>> person = flavors.pure("person")
    >>> states = flavors.given_invariants(person, [Invariant("person", by=("state",))])
    >>> coarsens(person, states).verdict, coarsens(states, person).verdict
    ('yes', 'no')
    """
    if replace(coarser.domain, nested=(), free=False) != replace(finer.domain, nested=(), free=False):
        return _said("unknown", COARSENING, "the multiverses belong to different domains")
    if _listed(coarser) and _listed(finer):
        mine = [set(universe) for universe in universes_of(coarser)]
        for universe in universes_of(finer):
            if not any(set(universe) <= one for one in mine):
                return _said("no", COARSENING, f"no universe of the first holds all of {{{', '.join(universe)}}}")
        return _said("yes", COARSENING, "each universe of the second lies in one of the first")
    if coarser.multiverse == finer.multiverse or not (coarser.multiverse.invariants or coarser.multiverse.universes):
        return _said("yes", COARSENING, "each universe of the second lies in one of the first")
    if coarser.multiverse.universes or finer.multiverse.universes:
        return _said("unknown", COARSENING, "listed universes need a finite domain")
    nesting = {*coarser.domain.nested, *finer.domain.nested}
    lacking = missing(finer.multiverse.invariants, coarser.multiverse.invariants, nesting)
    if not lacking:
        return _said("yes", COARSENING, "whatever the first holds fixed follows from what the second holds fixed")
    words = f"the second does not hold fixed: {'; '.join(map(str, lacking))}"
    free = coarser.domain.free and finer.domain.free and any(one.counts and one.at_least is None for one in lacking)
    return _said("no" if free else "unknown", COARSENING, words)


@refuses_wrong_arguments
def is_complete(flavor: Flavor | Specification, datasets: Datasets | None = None) -> Answer:
    """Whether all datasets of every universe are at finite distances from one another (Definition 6.2.8).

    >>> from stirred.spec import flavors
    >>> is_complete(flavors.pure("person")).verdict, is_complete(completed(flavors.pure("person").at(1))).verdict
    ('unknown', 'yes')
    """
    if datasets is not None or _listed(flavor):
        finite = FiniteFlavor.of(flavor, datasets)
        for first, row in enumerate(finite.distances):
            for second, distance in enumerate(row):
                if finite.together[first, second] and distance == math.inf:
                    words = (
                        f"'{finite.names[first]}' and '{finite.names[second]}' share a universe, infinitely far apart"
                    )
                    return _said("no", COMPLETE, words)
        return _said("yes", COMPLETE, "all distances in the universes are finite")
    premetric = flavor.input_premetric
    if premetric.kind != "records" or not premetric.sharpened:
        return _said("unknown", COMPLETE, f"which distances are finite is not known: {premetric}")
    lacking = missing(flavor.multiverse.invariants, premetric.fixes(), flavor.domain.nested)
    if not lacking:
        return _said("yes", COMPLETE, "datasets of a universe are joined by paths of single changes")
    words = f"the universes are not known to hold fixed what the distance does: {'; '.join(map(str, lacking))}"
    return _said("unknown", COMPLETE, words)


@refuses_wrong_arguments
def comparable(
    flavor: Flavor | Specification | FiniteFlavor, first: str, second: str, datasets: Datasets | None = None
) -> bool:
    """Whether two named datasets differ, share a universe, and are at a finite distance in one direction at least
    (Definition 6.2.9, which is Definition A.1.1)."""
    found = comparability(flavor, datasets)
    return bool(found.edges[found.names.index(first), found.names.index(second)])


@refuses_wrong_arguments
def completed(specification: Specification) -> Specification:
    """The same specification on the completion of its multiverse (Definition 6.2.10, Lemma 6.2.11).

    Each part of a universe has the smallest budget of the universes that hold it, and the same mechanisms satisfy both.
    With a distance that is a metric the result is complete. Without listed datasets the distance must count records
    along paths: then what it holds fixed becomes invariants.

    >>> from stirred.spec import flavors
    >>> str(completed(flavors.pure("person").at(1)).multiverse)
    'Datasets are compared only if they agree on (1) the number of persons.'
    """
    if _listed(specification):
        return divided(specification, _cut(specification))
    premetric = specification.input_premetric
    if premetric.kind != "records" or not premetric.sharpened:
        reason = f"which datasets are at a finite distance is not known from '{premetric}'"
        raise errors.no_rule("a completion", reason, "List the datasets, or use a distance that counts records.")
    if specification.multiverse.universes:
        raise errors.not_listed()
    kept = merged((*specification.multiverse.invariants, *premetric.fixes()), specification.domain.nested)
    if not kept:
        return specification
    known = taken_fact(kept, missing(held(specification).published, kept, specification.domain.nested))
    return replace(specification, multiverse=Multiverse(kept), facts=tuple({**specification.fact, **known}.items()))


@refuses_wrong_arguments
def transferred(specification: Specification, multiverse: Multiverse) -> Specification:
    """The guarantee on a multiverse that this one coarsens (Lemma 6.2.7).

    Each universe has the smallest budget of those that hold it, so that every mechanism of the first specification
    satisfies the result. That budget need not be the smallest one with this property (:func:`least_budgets`): pairs of
    datasets may be bound better by universes that hold them and not the whole universe.
    """
    target = replace(specification, multiverse=multiverse, budget=replace(specification.budget, by_universe=()))
    found = coarsens(specification, target)
    if not found:
        raise errors.no_rule(
            "the budget of these universes",
            found.steps[0].words,
            "Take universes that lie in those of the specification.",
        )
    if not _listed(specification):
        return replace(target, nearest=None)
    if not specification.budget.by_universe:
        return target
    return divided(specification, universes_of(target))


@refuses_wrong_arguments
def least_budgets(specification: Specification, multiverse: Multiverse) -> tuple[Number, ...]:
    """The smallest budget of each listed universe that every mechanism of the specification satisfies.

    A pair is bound by the smallest budget times distance over the universes that hold it, and along paths. These
    bounds are attained where the output premetric is a metric; others are refused. Never above the budget of Lemma
    6.2.7, and equal to it where universes are disjoint, distances are a metric and the part has a comparable pair.
    Exact, but for floating-point numbers where roots of rho that are no fractions are added up.
    """
    output = specification.output_premetric
    if not output.kind.metric or specification.budget.is_curve:
        reason = f"{output.symbol} does not add up along paths"
        raise errors.no_rule("the smallest budget of a universe", reason, "Use the budget of 'transferred'.")
    target = replace(specification, multiverse=multiverse, budget=Budget(0))
    direct = pair_bounds(specification) or {}
    along = closed(direct, output).bounds
    distances = {(a, b): d * target.input_premetric.scale for a, b, d in target.input_premetric.distances}
    found: list[Number] = []
    for universe in universes_of(target):
        worst: Number = Fraction(0)
        for (first, second), distance in distances.items():
            if first in universe and second in universe:
                pair = first, second
                bound = min(direct.get(pair, math.inf), along.get(pair, math.inf), output.kind.largest)
                if bound > 0:
                    worst = max(worst, math.inf if distance == 0 else bound / distance**output.kind.power)
        found.append(worst)
    return tuple(found)


@refuses_wrong_arguments
def laplace_scales(specification: Specification, values: Mapping[str, float | Sequence[float]]) -> dict[str, Number]:
    """The scale of Laplace noise with which the query ``values`` satisfies a listed pure specification, by dataset
    (Definition 6.4.2, corrected).

    The scale is one number for all datasets that are comparable through others, since noise of different scales is
    told apart without bound. The source takes the datasets that share a universe with x, which is not a class where
    universes overlap, and leaves out universes with infinite distances: here universes are completed first. Infinite
    where the budget is 0 and the query differs: nothing can be released.
    """
    if not specification.output_premetric.kind.pure:
        reason = f"the budget is in {specification.output_premetric.symbol}"
        raise errors.no_rule("the scale of Laplace noise", reason, "Use a pure specification.")
    names = require_listed(specification)
    vectors = {name: _vector(values[name]) for name in names}
    bounds: dict[tuple[str, str], Number] = {}
    scale = specification.input_premetric.scale
    for universe, budget in zip(universes_of(specification), budgets_of(specification), strict=True):
        for first, second, distance in specification.input_premetric.distances:
            if first in universe and second in universe and budget < math.inf:
                allowed = budget * distance * scale
                bounds[first, second] = min(allowed, bounds.get((first, second), math.inf))
    found: dict[str, Number] = {}
    for members in comparability(specification).components:
        needed: Number = Fraction(0)
        for (first, second), allowed in bounds.items():
            if first in members:
                apart = sum(
                    (abs(a - b) for a, b in zip(vectors[first], vectors[second], strict=True)), start=Fraction(0)
                )
                if apart:
                    needed = max(needed, apart / allowed if allowed else math.inf)
        found.update(dict.fromkeys(members, needed))
    return {name: found[name] for name in names}


def _listed(flavor: Flavor | Specification) -> bool:
    listed = bool(flavor.domain.datasets) and flavor.input_premetric.kind == "table"
    return listed and not flavor.multiverse.invariants


def _cut(flavor: Specification) -> list[tuple[str, ...]]:
    """D n [x] for every universe D and each of its datasets x."""
    near: dict[str, set[str]] = {name: {name} for name in require_listed(flavor)}
    for first, second, _ in flavor.input_premetric.distances:
        near[first].add(second)
    return [tuple(sorted(near[name] & set(universe))) for universe in universes_of(flavor) for name in universe]


def _vector(value: float | Sequence[float]) -> tuple[Fraction, ...]:
    parts = value if isinstance(value, Sequence) else (value,)
    return tuple(Fraction(exact(abs(one), "A value of a query")) * (-1 if one < 0 else 1) for one in parts)


def _said(verdict: str, source: str, words: str) -> Answer:
    return Answer(verdict, (Step("multiverse", source, words),))
