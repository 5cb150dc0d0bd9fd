"""Errors about TopDown: plans, geography, tables and their relations, spines, and noisy measurement files.

Lists of blocks are public, so codes of them may be named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, PlanError, few, listed, one_line


def topdown_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "topdown-plan",
        f"In a TopDown plan this must hold: {what} {must}.",
        "docs/topdown.md explains its fields (stirred docs topdown).",
    )


def topdown_code(code: str, level: str, length: int) -> DataError:
    return DataError(
        "topdown-geography",
        f"The code {one_line(code, 60)} in the list of geounits has no prefix of {length} characters for the level "
        f"'{level}'.",
        "Correct the list of geounits, or the prefixes in the plan's [spine.input].",
    )


def topdown_place(table: str, column: str, rows: int) -> DataError:
    return DataError(
        "topdown-place",
        f"In table '{table}' {rows:,} rows name a place in column '{column}' that the list of geounits does not have.",
        "Correct the list or the rows: every place must be in the list, also where nobody lives.",
    )


def topdown_count(table: str, column: str, problem: str) -> DataError:
    return DataError(
        "topdown-count",
        f"In table '{table}' the counts in column '{column}' {problem}.",
        "Correct them: counts are whole numbers from 0 on.",
    )


def topdown_zero(table: str, rows: int, zero: str) -> DataError:
    return DataError(
        "topdown-zero",
        f"In table '{table}' {rows:,} records have a combination of values that the plan says cannot occur: {zero}.",
        "Correct the records, or the zeros of the plan.",
    )


def topdown_contradiction(first: str, second: str, level: str, units: int, named: Sequence[str]) -> DataError:
    together = f" together with {second}" if second else ""
    return DataError(
        "topdown-contradiction",
        f"At level '{level}', in {units:,} of its units ({few(named, units)}), the data contradict {first}{together}.",
        "No release could keep both. Correct the data, or leave one out of the plan.",
    )


def topdown_infeasible(level: str, parents: int, named: Sequence[str], reasons: Sequence[str]) -> DataError:
    return DataError(
        "topdown-infeasible",
        f"At level '{level}' no table satisfies all invariants and constraints below {parents:,} units "
        f"({few(named, parents)}): {listed(list(reasons))}.",
        "Leave out an invariant or a constraint that binds there.",
    )


def topdown_crossing(table: str, first: str, second: str) -> PlanError:
    return PlanError(
        "topdown-crossing",
        f"In table '{table}' {first} and {second} cross: some of their groups overlap and neither lies "
        "inside the other, so integers that keep both may not exist.",
        "Keep one of them only, or a finer margin that contains both.",
    )


def topdown_earlier(
    folder: object,
    problem: str,
    remedy: str = "docs/topdown.md says what an earlier release must be (stirred docs topdown).",
) -> PlanError:
    return PlanError("topdown-earlier", f"The plan cannot agree with the earlier release {folder}: {problem}.", remedy)


def earlier_levels(folder: object, theirs: Sequence[str], mine: Sequence[str]) -> PlanError:
    return topdown_earlier(
        folder,
        f"its levels ({listed(theirs)}) and those of this plan ({listed(mine)}) have none in common, by name",
        "Call a level that both geographies have by the same name in both plans.",
    )


def earlier_places(folder: object, level: str, units: int, named: Sequence[str], *, earlier: bool) -> PlanError:
    whose, other = ("the earlier release", "this plan") if earlier else ("this plan", "the earlier release")
    return topdown_earlier(
        folder,
        f"at level '{level}', the finest that both have, {whose} lists {units:,} units ({few(named, units)}) that "
        f"{other} does not",
        "Both lists must have the same units at that level; give the level another name where they are not the same.",
    )


def topdown_memory(needed: str, available: str) -> DataError:
    return DataError(
        "topdown-memory",
        f"A release would need about {needed} of memory, and this machine has {available} free.",
        "Use a machine with more memory, or a plan with fewer cells or finest geounits.",
    )


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


def relation_unsure(relation: str, problem: str) -> PlanError:
    return PlanError(
        "relation-unsure",
        f"It cannot be guaranteed that every fit can keep {relation}: {problem}.",
        "Nothing was drawn or spent. Leave out one of the two, or relate other groups: docs/relations.md says which "
        "plans are sure (stirred docs relations).",
    )


_PAGE = "docs/noisy-measurements.md describes the form that is read (stirred docs noisy-measurements)."


def noisy_folder(path: object, problem: str, remedy: str = "") -> DataError:
    """A folder of noisy measurement files is not laid out as described."""
    return DataError(
        "noisy-folder",
        f"The noisy measurement files in {path} are not laid out as described: {problem}.",
        f"{remedy} {_PAGE}".strip(),
    )


def noisy_column(file: Path, column: str, found: str, expected: str) -> DataError:
    """A column of a noisy measurement file is missing, or of another type or content than described."""
    return DataError(
        "noisy-column",
        f"{file}: the column '{column}' {one_line(found, 200)}; expected {expected}.",
        f"If the files were published in this form, the description that stirred follows is wrong there. {_PAGE}",
    )


def noisy_file(file: Path) -> DataError:
    """A noisy measurement file cannot be read."""
    return DataError(
        "noisy-file",
        f"{file} cannot be read as Parquet: it is damaged or was not copied whole.",
        f"Get the file again. {_PAGE}",
    )


def noisy_question(what: str, must: str) -> DataError:
    """A question about noisy measurement files that these files cannot answer."""
    return DataError("noisy-question", f"{what} {must}.", _PAGE)


def not_exportable(path: object, problem: str) -> OutputError:
    """Measurements that cannot be written as noisy measurement files."""
    return OutputError(
        "not-exportable",
        f"The measurements of {path} cannot be written as noisy measurement files: {problem}.",
        _PAGE,
    )
