"""Errors about figures."""

from __future__ import annotations

from stirred.errors.kinds import StirredError


def option_needs(option: str, other: str) -> StirredError:
    return StirredError("option-needs", f"The option {option} has no effect without {other}.", f"Add {other}.")
