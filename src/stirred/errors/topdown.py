"""Errors about TopDown: its plans, its geography and its tables."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import DataError, PlanError, few, listed, one_line


def topdown_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "topdown-plan",
        f"In a TopDown plan this must hold: {what} {must}.",
        "docs/topdown.md explains its fields (stirred docs topdown).",
    )


def topdown_dictionary(path: object) -> DataError:
    return DataError(
        "topdown-dictionary",
        f"{path} is no data dictionary that can be read.",
        "Give a JSON file with an object for each variable, whose field values lists them, or a CSV file with the "
        "columns name, value and label: docs/topdown.md (stirred docs topdown).",
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


def topdown_category(table: str, column: str, rows: int) -> DataError:
    return DataError(
        "topdown-category",
        f"In table '{table}' {rows:,} rows have no value in column '{column}', or one that the plan does not list.",
        "List every value that can occur, from the code book, and give rows without a value one of them.",
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


def topdown_earlier(folder: object, problem: str) -> PlanError:
    return PlanError(
        "topdown-earlier",
        f"The plan cannot agree with the earlier release {folder}: {problem}.",
        "docs/topdown.md says what an earlier release must be (stirred docs topdown).",
    )


def topdown_memory(needed: str, available: str) -> DataError:
    return DataError(
        "topdown-memory",
        f"A release would need about {needed} of memory, and this machine has {available} free.",
        "Use a machine with more memory, or a plan with fewer cells or finest geounits.",
    )
