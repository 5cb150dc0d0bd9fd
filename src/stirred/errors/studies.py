"""Errors about studies and simulated swappers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import StirredError, listed


class StudyError(StirredError):
    """A study, or a simulated swapper in it, cannot be run as it is written."""


def study_parameter(name: str, problem: str, remedy: str) -> StudyError:
    """``name`` may be several names, with commas between them; the verb of the problem is then a plural."""
    *first, last = name.split(", ")
    named = f"The parameters {', '.join(first)} and {last}" if first else f"The parameter {last}"
    return StudyError("study-parameter", f"{named} {problem}.", f"{remedy[0].upper()}{remedy[1:]}.")


def study_file(path: Path, problems: Sequence[str]) -> StudyError:
    return StudyError(
        "study-file",
        f"{path} is not a study that can be run: {'; '.join(problems).removesuffix('.')}.",
        "See docs/studies.md (stirred docs studies) for the fields of a study.",
    )


def plan_not_study(path: Path) -> StudyError:
    return StudyError(
        "study-file",
        f"{path} is a plan, not a study; name it under [[plan]] or after the study.",
        "For example: stirred study study.toml plan.toml. docs/studies.md (stirred docs studies) has a study to copy.",
    )


def nothing_to_study() -> StudyError:
    return StudyError(
        "study-parameter",
        "The study names no plan and no swapper.",
        "Name at least one under [[plan]] or [[swapper]], or a plan after the study.",
    )


def study_column(table: str, column: str, known: Sequence[str]) -> StudyError:
    return StudyError(
        "study-column",
        f"The study names the column '{column}', which the table '{table}' does not have.",
        f"Name some of {listed(known)}.",
    )


def study_part(name: str, problem: StirredError) -> StudyError:
    return StudyError("study-part", f"'{name}' cannot be studied: {problem.problem}", problem.remedy)


def study_too_large(table: str, cells: int, most: int) -> StudyError:
    return StudyError(
        "study-too-large",
        f"The table by {table} has {cells:,} cells in all draws together; {most:,} are the most.",
        "Ask for a coarser table, or for fewer draws.",
    )
