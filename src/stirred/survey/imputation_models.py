"""What the imputation models share: their share of the budget, checks of what is given, and how they are written.

A model is published: it holds noisy integers and public facts, and JSON is read back within the bounds of
:mod:`stirred._received`. No error here tells a code of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred import _received, errors
from stirred._fractions import NOT_A_NUMBER, as_fraction

MISSING = -1
"""The code of a missing answer in a target; predictors are never missing."""

NoiseLaw = Literal["laplace", "gaussian"]
Codes = NDArray[np.integer[Any]]

VERSION = 1
LARGEST = 1 << 62
LARGEST_SCALE = 1 << 40
"""What the exact samplers draw: a scale of 2^40, a variance of 2^80."""


@dataclass(frozen=True)
class ParameterShare:
    """The share of the budget that the parameters of a model cost: epsilon with Laplace noise, rho with Gaussian."""

    law: NoiseLaw
    budget: Fraction

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "budget", as_fraction(self.budget))
        except NOT_A_NUMBER:
            raise errors.imputation_share() from None
        if self.law not in ("laplace", "gaussian") or self.budget <= 0:
            raise errors.imputation_share()

    @classmethod
    def of(cls, epsilon: Any = None, rho: Any = None) -> ParameterShare:
        """Either epsilon or rho."""
        if (epsilon is None) == (rho is None):
            raise errors.imputation_share()
        return cls("laplace", epsilon) if rho is None else cls("gaussian", rho)

    @property
    def word(self) -> str:
        """The name of the budget."""
        return "epsilon" if self.law == "laplace" else "rho"

    def noise(self, sum_changed: int, squares_changed: int, reach: int = 1) -> Fraction:
        """The scale of Laplace or variance of Gaussian noise on a statistic that reaches up to ``reach``.

        One record changes the statistics, each divided by its reach, by at most ``sum_changed`` (added up) or
        ``squares_changed`` (squares added up). Canonne, Kamath and Steinke (2020) for the Gaussian.
        """
        if self.law == "laplace":
            return reach * sum_changed / self.budget
        return reach * reach * squares_changed / (2 * self.budget)


# -- reading and writing -----------------------------------------------------------------------------------------


def written(kind: str, share: ParameterShare) -> dict[str, Any]:
    return {"stirred_imputation": VERSION, "kind": kind, "noise": share.law, share.word: str(share.budget)}


def read(kind: str, fields: Any, own: set[str]) -> ParameterShare:
    if not isinstance(fields, dict):
        raise errors.not_an_imputation_model("it is not an object")
    word = "epsilon" if fields.get("noise") == "laplace" else "rho"
    wanted = {"stirred_imputation", "kind", "noise", word} | own
    if set(fields) != wanted:
        raise errors.not_an_imputation_model(f"its fields are not {', '.join(sorted(wanted))}")
    if (
        type(fields["stirred_imputation"]) is not int
        or fields["stirred_imputation"] != VERSION
        or fields["kind"] != kind
    ):
        raise errors.not_an_imputation_model(f"it is of another version or kind than {VERSION} and '{kind}'")
    if not isinstance(fields[word], str):
        raise errors.not_an_imputation_model(f"{word} is not a text such as '1/2'")
    return ParameterShare(fields["noise"], fields[word])


def parsed(text: str | bytes) -> Any:
    try:
        return _received.parse_json(text)
    except _received.Unacceptable as found:
        raise errors.not_an_imputation_model(str(found)) from None


# -- what is given -----------------------------------------------------------------------------------------------


def require_codes(codes: Any, column: str, least: int, below: int, rows: int | None = None) -> None:
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise errors.imputation_codes(column, "are not a one-dimensional array of whole numbers")
    if rows is not None and len(codes) != rows:
        raise errors.imputation_codes(column, "are not as many as those of the other column")
    if len(codes) and not (least <= int(codes.min()) and int(codes.max()) < below):
        raise errors.imputation_codes(column, "are not all among those that the plan lists")


def require_drawable(share: ParameterShare, noise: Fraction, remedy: str) -> None:
    if noise > (LARGEST_SCALE if share.law == "laplace" else LARGEST_SCALE**2):
        raise errors.imputation_too_large("The noise of the imputation model exceeds a scale of 2^40", remedy)


def at_least(value: Any, what: str, least: int) -> None:
    if type(value) is not int or value < least:
        raise errors.imputation_number(what, f"a whole number, at least {least}")


def integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise errors.not_an_imputation_model("a noisy number is not a whole number")
    return int(value)
