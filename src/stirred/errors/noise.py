"""Errors about the parameters of noise. Messages show scales and probabilities, which are public, and no values."""

from __future__ import annotations

from typing import Any

from stirred.errors.kinds import StirredError


class NoiseError(StirredError):
    """The parameters of the noise define no distribution, or one that the samplers cannot draw exactly."""


def noise_not_a_number(what: str, found: Any) -> NoiseError:
    return NoiseError(
        "noise-not-a-number",
        f"{what} cannot be {_shown(found)}.",
        "Give a finite number: a fraction, an integer, a decimal, a text such as '1/3', or a float, "
        "which means its shortest decimal.",
    )


def noise_out_of_range(what: str, found: Any, wanted: str) -> NoiseError:
    return NoiseError("noise-out-of-range", f"{what} is {_shown(found)}.", f"It must be {wanted}.")


def noise_too_wide(what: str, found: Any, limit: str) -> NoiseError:
    return NoiseError(
        "noise-too-wide",
        f"{what} is {_shown(found)}, and the exact samplers go up to {limit}.",
        "Use larger units, or draw one value at a time from stirred.noise.reference, which has no limit.",
    )


def noise_rows(what: str, problem: str) -> NoiseError:
    return NoiseError(
        "noise-rows",
        f"{what} {problem}.",
        "Give one number for each row: a sequence of fractions, or a pair of integer arrays "
        "(numerators, denominators) of equal length.",
    )


def noise_size(found: Any) -> NoiseError:
    return NoiseError("noise-size", f"The number of draws cannot be {_shown(found)}.", "Give a whole number from 0 on.")


def response_values(categories: int) -> NoiseError:
    return NoiseError(
        "response-values",
        f"The values to randomise are not all whole numbers from 0 to {categories - 1}.",
        "Give one-dimensional integers or booleans; number the categories from 0, and say how many there are "
        "with categories=.",
    )


def _shown(found: Any) -> str:
    """Short enough for a sentence; a fraction as a quotient."""
    text = str(found) if type(found).__name__ == "Fraction" else repr(found)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"
