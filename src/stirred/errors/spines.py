"""Errors about spines that are made for target areas. Lists of blocks are public, so codes of them may be named."""

from __future__ import annotations

from stirred.errors.kinds import DataError, PlanError, one_line


def spine_question(what: str, must: str) -> PlanError:
    return PlanError(
        "spine-question",
        f"For a spine this must hold: {what} {must}.",
        "docs/spines.md explains the choices (stirred docs spines).",
    )


def block_twice(level: str, code: str, blocks: int) -> DataError:
    return DataError(
        "block-twice",
        f"The list has {blocks:,} {level} codes more than once; the first is {one_line(code, 60)}.",
        "List every block once: one that lies in two areas of a sort must be given to one of them, or the sort must be "
        "divided into two columns.",
    )
