"""Formulas of linear regressions: ``income ~ county + size``, and in words what a formula may not ask of a swap.

A term is a column, or ``column=value`` for 1 where a record has this value and 0 elsewhere. A name with signs in it is
written between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stirred import errors
from stirred._received import plain

_CURVED = ("logit", "logistic", "probit", "poisson", "cloglog", "glm", "binomial", "exp", "ologit", "cox", "quantile")
_SHOWN = 80


@dataclass(frozen=True)
class Term:
    """A column, or one of its values."""

    column: str
    value: str | None = None

    @property
    def label(self) -> str:
        """As it was written."""
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclass(frozen=True)
class Formula:
    """An outcome and its predictors."""

    outcome: Term
    predictors: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys(one.column for one in (self.outcome, *self.predictors)))


def read_formula(text: str, known: Sequence[str]) -> Formula:
    """A formula over these columns.

    >>> read_formula("income ~ county + size", ["income", "county", "size"]).columns
    ('income', 'county', 'size')
    """
    sides = _split(text, "~")
    if len(sides) != 2 or not all(side.strip() for side in sides):
        raise errors.regression_not_valid(
            f"The formula {plain(text, _SHOWN)!r}",
            "is not of the form OUTCOME ~ PREDICTOR + PREDICTOR",
            "Write for example --regress 'income ~ county', or 'tenure=rented ~ county' for a share.",
        )
    outcome = _term(sides[0], known)
    terms = [_term(part, known) for part in _split(sides[1], "+")]
    labels = [one.label for one in terms]
    twice = [one for number, one in enumerate(labels) if one in labels[:number]]
    if twice or outcome.column in [one.column for one in terms]:
        raise errors.regression_not_valid(
            f"'{twice[0] if twice else outcome.column}'", "stands twice in the formula", "Name every column once."
        )
    return Formula(outcome, tuple(terms))


def _split(text: str, sign: str) -> list[str]:
    """Parts between signs that do not stand between backticks."""
    return [part.replace("\0", sign) for part in re.sub(
        r"`[^`]*`", lambda found: found.group().replace(sign, "\0"), text.replace("\0", " ")
    ).split(sign)]  # fmt: skip


def _term(text: str, known: Sequence[str]) -> Term:
    written = text.strip()
    if (quoted := re.fullmatch(r"`([^`]+)`(?:\s*=(.*))?", written)) is not None:
        column, value = quoted.group(1), quoted.group(2)
        if column not in known:
            raise errors.unknown_table_column([column], known)
        return Term(column, None if value is None else value.strip())
    if written in known:
        return Term(written)
    column, sign, value = (part.strip() for part in written.partition("="))
    if sign and column in known and value and "weights=" not in written.replace(" ", ""):
        return Term(column, value)
    _refuse(written)
    raise errors.unknown_table_column([column if sign else written], known)


def _refuse(term: str) -> None:
    """Raise for what is no column, where it is known what was meant."""
    shown = f"'{plain(term, _SHOWN)}'"
    called = re.match(r"\s*([A-Za-z_.]+)\s*\(", term)
    if called and called.group(1).lower() in _CURVED:
        raise errors.regression_not_valid(
            shown,
            "asks for a model that is not linear. How a swap weakens such a model has no formula, so it cannot be "
            "corrected",
            "Ask for differences of shares, as in --regress 'tenure=rented ~ county', or for --odds-ratio.",
        )
    if re.search(r"weights\s*=|\bweights\b|[,|]", term):
        raise errors.regression_not_valid(
            shown,
            "asks for weights or conditions, which are not offered: a weight that is swapped or held changes what the "
            "swap keeps",
            "Leave them out. Records can be chosen by match variables with --where.",
        )
    if called or re.search(r"\^|\*\*|/|\(|\)", term):
        raise errors.regression_not_valid(
            shown,
            "is a transformation, and formulas take columns as they were released",
            "Name columns of the release, or column=value for a column of 0 and 1.",
        )
    if re.search(r"[*:]", term):
        raise errors.regression_not_valid(
            shown,
            "is an interaction. A swap changes the spread of a product of swapped and held variables too, so dividing "
            "by the attenuation would not correct it",
            "Leave it out. To compare groups with each other, run the regression for each with --where on a match "
            "variable, or estimate the table with --by and --share.",
        )
    if re.fullmatch(r"[01]|.*-\s*1", term) or term in ("", "."):
        raise errors.regression_not_valid(
            shown if term else "An empty term",
            "is not a column; every regression has an intercept, and predictors are named one by one",
            "Write for example --regress 'income ~ county + size'.",
        )
