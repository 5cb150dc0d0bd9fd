"""Errors about estimates: measurements that cannot be read, and questions that they do not answer."""

from __future__ import annotations

from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, StirredError


def not_measurements(path: Path, reason: str) -> OutputError:
    return OutputError(
        "not-measurements",
        f"{path} does not hold the measurements of a TopDown release: {reason}.",
        "Name the folder of a release, or the measurements folder in it.",
    )


def measurements_do_not_fit(what: str, reason: str) -> OutputError:
    return OutputError(
        "measurements-do-not-fit",
        f"The measurements do not fit {what}: {reason}.",
        "Use the plan and the list of geounits of the same release.",
    )


def estimate_question(what: str, must: str) -> StirredError:
    return StirredError("estimate-question", f"{what} {must}.", "Correct the question.")


def unknown_geounit(level: str, name: str) -> StirredError:
    return StirredError(
        "unknown-geounit",
        f"The level '{level}' has no unit '{name}'.",
        "Use a name from the release's list of geounits, as text, leading zeros included.",
    )


def not_estimable(table: str, what: str) -> StirredError:
    return StirredError(
        "not-estimable",
        f"No measurement of '{table}' determines {what}.",
        "Ask for a margin or a level that the plan's queries determine.",
    )


def estimate_too_wide(table: str, size: int, most: int) -> StirredError:
    return StirredError(
        "estimate-too-wide",
        f"The recodes of '{table}' tie {size:,} numbers together in every geounit; at most {most:,} are solved for.",
        "Ask of a release whose plan has fewer or coarser recodes.",
    )


def invariants_disagree(level: str, units: int) -> DataError:
    return DataError(
        "invariants-disagree",
        f"In {units:,} units of level '{level}' the values given for invariants contradict each other.",
        "Give the values that were published, in the order of the units.",
    )
