"""What a relation between two released tables says: its groups of cells, its words, and where counts break it.

In every finest geounit u and for every group g of a relation, with a = the records of ``counted`` and b = those of
``table``: at_least * a <= b <= at_most * a, and b = 0 where a = 0. Both sides add up, so the two inequalities hold in
every unit above as well.

The invariant a reader must know: a relation is between what is *released*. The data must keep it too, since they are
in no domain of the guarantee otherwise, but its fit reads the fitted counts of the other table and nothing of the data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.schema import Groups, Schema
from stirred.margins.spine import Index
from stirred.topdown.constraints import Counts, names_of, outside
from stirred.topdown.counting import Counted, marginal
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import RelationSection
from stirred.topdown.problems import UNBOUNDED, Histograms

Where = Mapping[str, tuple[str, ...]]

_LOOKED_AT = 1 << 18
"""Leaves that are looked at together."""


def relation_groups(plan: TopDownPlan, relation: RelationSection) -> tuple[Groups, Groups, int]:
    """The group of each cell of ``table`` and of ``counted`` (-1: none), and how many groups there are."""
    table, counted = plan.table(relation.table).schema_of, plan.table(relation.counted).schema_of
    mine, theirs = tuple(relation.each), tuple(relation.each.values())
    both = (table, mine, relation.where), (counted, theirs, relation.counted_where)
    labels = [set(_groups_by_label(*one)) for one in both]
    number = {label: place for place, label in enumerate(sorted(labels[0] & labels[1]))}
    first, second = (_numbered(*one, number) for one in both)
    return first, second, len(number)


def _groups_by_label(schema: Schema, names: tuple[str, ...], where: Where) -> dict[tuple[str, ...], int]:
    """The combinations of values that picked cells have, with their groups."""
    labels = schema.labels(names)
    return {labels[group]: int(group) for group in np.unique(schema.groups(names)[schema.where(where)])}


def _numbered(schema: Schema, names: tuple[str, ...], where: Where, number: Mapping[tuple[str, ...], int]) -> Groups:
    place = np.array([number.get(label, -1) for label in schema.labels(names)], dtype=np.int32)
    return np.where(schema.where(where), place[schema.groups(names)], -1).astype(np.int32)


def allowed_by(relation: RelationSection, counts: Counts) -> tuple[Counts, Counts]:
    """How many records of ``table`` there may be, at least and at most, where ``counted`` has these counts."""
    upper = np.full_like(counts, UNBOUNDED) if relation.at_most is None else relation.at_most * counts
    if relation.zero_without:
        upper = np.where(counts == 0, 0, upper)
    return relation.at_least * counts, upper


def is_capped(relation: RelationSection) -> bool:
    """Whether a relation says how many records of ``table`` there may be at most."""
    return relation.at_most is not None or relation.zero_without


def relation_words(relation: RelationSection) -> str:
    """
    >>> relation_words(RelationSection(table="persons", counted="units", where={"kind": ["household"]}, at_least=1))
    "the relation of 'persons' (kind in household) to 'units': at least 1 for each, none without one"
    """
    mine = [f"{name} in {', '.join(values)}" for name, values in relation.where.items()]
    theirs = [f"{name} in {', '.join(values)}" for name, values in relation.counted_where.items()]
    pairs = [f"{one} as {other}" for one, other in relation.each.items()]
    said = [f"at least {relation.at_least:,} for each"] if relation.at_least else []
    said += [f"at most {relation.at_most:,} for each"] if relation.at_most is not None else []
    said += ["none without one"] if relation.zero_without and relation.at_most is None else []

    def picked(parts: list[str]) -> str:
        return f" ({', '.join(parts)})" if parts else ""

    return (
        f"the relation of '{relation.table}'{picked([*pairs, *mine])} to '{relation.counted}'{picked(theirs)}: "
        f"{', '.join(said)}"
    )


def counted_in(histograms: Histograms, groups: Groups, number: int) -> Counts:
    """How many records of each group every unit has."""
    return marginal(histograms, groups, number)


def leaves_breaking_relation(counted: Counted, relation: RelationSection) -> Index:
    """The leaves in which the counts of two tables do not keep a relation."""
    mine, theirs, number = relation_groups(counted.plan, relation)
    table, other, broken = counted.leaves[relation.table], counted.leaves[relation.counted], []
    for start in range(0, table.units, _LOOKED_AT):
        units = np.arange(start, min(start + _LOOKED_AT, table.units))
        found, counts = (
            counted_in(one.of_units(units), groups, number) for one, groups in ((table, mine), (other, theirs))
        )
        wrong: NDArray[np.bool_] = outside(relation, found, counts)
        broken.append(start + np.flatnonzero(wrong.any(axis=1)))
    return np.concatenate(broken)


def require_related(counted: Counted) -> None:
    """Raise if the data contradict a relation of the plan; called before any noise is drawn."""
    for relation in counted.plan.relations:
        if len(units := leaves_breaking_relation(counted, relation)):
            leaf, spine = counted.plan.spine.levels[-1], counted.spine
            named = names_of(spine, len(spine.levels) - 1, units)
            raise errors.topdown_contradiction(relation_words(relation), "", leaf, len(units), named)
