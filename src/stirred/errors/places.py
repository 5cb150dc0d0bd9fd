"""Errors about files of places and about joining estimates to a map; names of units and places are public."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import DataError, few

_SEE = "docs/estimates.md says what such a file must be (stirred docs estimates)."


def places_file(file: object, problem: str, remedy: str = _SEE) -> DataError:
    return DataError("places-file", f"The file of places {file} {problem}.", remedy)


def places_unknown(file: object, unit: str, number: int, named: Sequence[str]) -> DataError:
    return DataError(
        "places-unknown",
        f"The file of places {file} lists {number:,} codes in column '{unit}' that the release's list of geounits does "
        f"not have: {few(named, number)}.",
        "Correct them: codes are compared as text, leading zeros included.",
    )


def places_twice(file: object, unit: str, number: int, named: Sequence[str]) -> DataError:
    return DataError(
        "places-twice",
        f"The file of places {file} lists {number:,} pairs of '{unit}' and place more than once: {few(named, number)}.",
        "Leave each pair once. One code may lie in several places, each in a row of its own.",
    )


def map_join(what: str, problem: str, remedy: str) -> DataError:
    return DataError("map-join", f"{what} {problem}.", remedy)
