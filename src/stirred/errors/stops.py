"""Stops: reasons in the data for which a release ends, unless the plan allows them by name."""

from __future__ import annotations

from stirred.errors.kinds import StoppedByCheck


def held_determines_swap(table: str, column: str, swapped: str, with_match: bool) -> StoppedByCheck:
    given = "together with the match variables " if with_match else ""
    return StoppedByCheck(
        f"determines:{column}",
        f"The held column '{column}' of table '{table}' {given}determines the swap variable '{swapped}' in this "
        "file: publishing it unchanged shows where every moved record came from.",
        f"Swap '{column}' too, drop it, or add \"determines:{column}\" to allow.",
    )


def nearly_distinct(table: str, column: str, percent: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"distinct:{column}",
        f"The held column '{column}' of table '{table}' takes a different value in {percent}% of the rows: it is "
        "published unchanged and may identify them.",
        f'Drop it, list it as the id if that is what it is, group it, or add "distinct:{column}" to allow.',
    )
