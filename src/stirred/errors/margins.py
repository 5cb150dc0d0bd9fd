"""Errors about tables and their margins in any plan: attributes, recodes, levels of a geography, shares of a budget."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import DataError, PlanError, StirredError, one_line


def margin_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "margin-plan",
        f"In a plan this must hold: {what} {must}.",
        "Correct the plan's attributes, recodes or margins.",
    )


def nested_levels(level: str, problem: str) -> DataError:
    return DataError("topdown-geography", f"The level '{level}' {problem}.", "Correct the list of geounits.")


def not_nested(level: str, unit: str, above: str, both: Sequence[str]) -> DataError:
    unit, first, second = (one_line(name, 60) for name in (unit, *both))
    return DataError(
        "topdown-geography",
        f"The levels '{above}' and '{level}' are not nested: {level} {unit} lies in two units of level '{above}', "
        f"{first} and {second}.",
        "Correct the list of geounits.",
    )


def measured_margin(what: str, must: str) -> StirredError:
    return StirredError("measured-margin", f"{what} {must}.", "Correct the list of measured margins.")


def shares_question(what: str, must: str) -> StirredError:
    return StirredError(
        "shares-question", f"{what} {must}.", "Change the shares or the queries that they are asked for."
    )
