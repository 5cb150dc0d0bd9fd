"""Errors about relations between two released tables of a TopDown plan."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import PlanError, listed


def relations_in_a_circle(tables: Sequence[str]) -> PlanError:
    return PlanError(
        "relations-circle",
        f"The relations of a TopDown plan go round in a circle among {listed(list(tables))}: a table "
        "is fitted after those that its relations count, and none of these could be the first.",
        "Leave out one of the relations, or turn it round: docs/relations.md (stirred docs relations).",
    )


def relation_unsure(relation: str, problem: str) -> PlanError:
    return PlanError(
        "relation-unsure",
        f"It cannot be guaranteed that every fit can keep {relation}: {problem}.",
        "Nothing was drawn or spent. Leave out one of the two, or relate other groups: docs/relations.md says which "
        "plans are sure (stirred docs relations).",
    )
