"""Errors about the geographies of two releases that must agree."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import PlanError, few, listed


def earlier_levels(folder: object, theirs: Sequence[str], mine: Sequence[str]) -> PlanError:
    return PlanError(
        "topdown-earlier",
        f"The plan cannot agree with the earlier release {folder}: its levels ({listed(theirs)}) and those of this "
        f"plan ({listed(mine)}) have none in common, by name.",
        "Call a level that both geographies have by the same name in both plans.",
    )


def earlier_places(folder: object, level: str, units: int, named: Sequence[str], *, earlier: bool) -> PlanError:
    whose = "the earlier release lists" if earlier else "this plan lists"
    other = "this plan" if earlier else "the earlier release"
    return PlanError(
        "topdown-earlier",
        f"The plan cannot agree with the earlier release {folder}: at level '{level}', the finest that both have, "
        f"{whose} {units:,} units ({few(named, units)}) that {other} does not.",
        "Both lists must have the same units at that level; give the level another name where they are not the same.",
    )
