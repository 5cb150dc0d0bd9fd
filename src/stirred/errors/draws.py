"""Errors about draws that somebody's sampler made: files and programs that give no numbers."""

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
        "draws-column", f"The table has the columns {listed(names)}.", "Say which one has the draws with --column."
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
