"""Errors about what audits of noise read: draws of somebody's sampler, and measurements of somebody's program."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import StirredError, listed


def draws_line(where: str, line: int) -> StirredError:
    return StirredError(
        "draws-line",
        f"Line {line:,} of {where} is not a number.",
        "Give one number on each line; for a table with named columns, say which one with --column.",
    )


def draws_column(names: Sequence[str]) -> StirredError:
    return StirredError(
        "draws-column",
        f"The file is a table with the columns {listed(names)}, and which of them has the random numbers is not said.",
        "Name it with --column.",
    )


def draws_not_numbers(column: str) -> StirredError:
    return StirredError(
        "draws-not-numbers", f"The column '{column}' is not all numbers.", "Give a column of numbers, none missing."
    )


def draws_command(command: str, problem: str) -> StirredError:
    return StirredError(
        "draws-command",
        f"The program '{command}' gave no draws: {problem}.",
        "It must print one number on each line, and end with exit code 0.",
    )


def audit_measurements(problem: str) -> StirredError:
    return StirredError(
        "audit-measurements",
        f"What the program wrote are no measurements: {problem}.",
        "It must give a table 'measurements' with the columns table, level, geounit, query, cell and value.",
    )
