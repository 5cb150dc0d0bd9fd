"""What imputing and editing do to a guarantee: for each kind, what one record can change and whose record is meant.

Section 7.6 (Das et al. 2022): where a file is completed from parameters that were estimated without noise, one record
may change all m imputed values, and the sensitivity of what follows grows with m. Where the imputed values of a row
depend on that row and on parameters alone, and the parameters cost epsilon1, an analysis under epsilon2 of the
completed file costs epsilon1 + epsilon2 together. Hot deck copies other rows and has no such parameters: it is refused.

The proof of the sum: given the parameters, complete both files of a pair with the same random numbers in all rows that
are equal. The completed files then differ in one row, so that the law of the analysis changes by a factor of at most
exp(epsilon2), whatever the parameters are; these cost epsilon1 by themselves. The same holds for rho of zCDP, since a
mixture of pairs diverges no more than the worst of them. The invariant of this module: **what nobody has proved is
refused**, and numbers of records are public bounds, never counted in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred._sentences import read_sentences

Growth = Literal["none", "by share", "by number", "unknown"]
"""How the sensitivity of an analysis that starts before imputation grows: not at all, by m / n observed, by m."""


@dataclass(frozen=True)
class ImputationKind:
    """One kind of imputation or editing, in plain words."""

    name: str
    does: str
    """What stands in the place of a missing or wrong value."""
    row_wise: bool
    """Given its parameters, what is written into a row depends on that row and on no other."""
    growth: Growth
    before: str
    """What one record can change if the guarantee starts before imputation."""
    after: str
    """Whose record a guarantee speaks of that starts after imputation."""
    proved: str
    """What is known, and from where."""
    open: str = ""
    """What nobody has proved, or what is not offered here."""

    def __str__(self) -> str:
        said = [f"{self.name}: {self.does}", f"  starting before: {self.before}", f"  starting after:  {self.after}"]
        return "\n".join(
            [*said, f"  known:           {self.proved}", *([f"  open:            {self.open}"] * bool(self.open))]
        )


KINDS = tuple(ImputationKind(**fields) for fields in read_sentences("imputation")["kind"])
"""Every kind that is told of, the safe ones first."""

_BY_NAME = {kind.name: kind for kind in KINDS}


@refuses_wrong_arguments
def imputation_kind(name: str) -> ImputationKind:
    """What is known about one kind of imputation or editing.

    >>> print(imputation_kind("mean").before)
    the mean moves by at most 1/n of the range, n being the number of observed values, and m imputed values move with \
it: the sensitivity of a total is 1 + m/n times as large
    """
    if name not in _BY_NAME:
        raise errors.SurveyError(
            "imputation-kind", "There is no such kind of imputation.", f"Choose one of {errors.listed(_BY_NAME)}."
        )
    return _BY_NAME[name]


@refuses_wrong_arguments
def sensitivity_before_imputation(name: str, missing: int, observed: int | None = None, width: Any = 1) -> Fraction:
    """How much one record can change an unweighted total of the completed file, if the guarantee starts before.

    A record may change its values, and may turn from observed to missing or back. For a weighted total give the largest
    weight times the range as ``width``.

    Parameters
    ----------
    missing
        The most records with a missing value, in any file that is compared: a public bound.
    observed
        The fewest records with an observed value, a public bound; needed for mean imputation only.
    width
        How far apart two values of the variable can be.

    >>> str(sensitivity_before_imputation("mean", missing=50, observed=10))
    '6'
    >>> str(sensitivity_before_imputation("hot deck", missing=50))
    '51'
    """
    kind = imputation_kind(name)
    at_least(missing, "The number of missing values", 0)
    by = _number(width, "The range of the variable", zero=True)
    if kind.growth == "none":
        return by
    if kind.growth == "by number":
        return by * (1 + missing)
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "how many records one record changes is not known")
    if observed is None:
        raise errors.survey_bounds_missing("the fewest observed values that there can be")
    at_least(observed, "The number of observed values", 1)
    return by * (1 + Fraction(missing, observed))


@refuses_wrong_arguments
def records_touched(name: str, missing: int, copies: int | None = None) -> int:
    """In how many records of the completed file one respondent may have a part, their own included.

    A guarantee that starts after imputation holds for one such record. For a respondent, multiply epsilon by this
    number and rho by its square (:func:`stirred.spec.per_respondent`; Proposition 2.4.15). Private parameters are not
    counted here: their share is added.

    Parameters
    ----------
    missing
        The most records with an imputed value: a public bound.
    copies
        For hot deck: at most so many records are filled from one respondent, and who gives to whom is held fixed.

    >>> records_touched("hot deck", missing=50), records_touched("hot deck", missing=50, copies=1)
    (51, 2)
    """
    kind = imputation_kind(name)
    at_least(missing, "The number of missing values", 0)
    if copies is not None:
        at_least(copies, "The number of copies of one respondent", 0)
        if kind.name != "hot deck":
            raise errors.imputation_number("The number of copies", "left out, except for hot deck")
    if kind.growth == "none":
        return 1
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "how many records one respondent has a part in is not known")
    return 1 + (missing if copies is None else min(copies, missing))


@refuses_wrong_arguments
def loss_with_imputation(name: str, analysis: Any, parameters: Any = 0) -> Fraction:
    """The total loss of imputing and analysing, for a guarantee that starts before imputation.

    Both are epsilon of pure differential privacy, or both are rho of zero-concentrated differential privacy. The total
    covers publishing the parameters as well as the analysis. Hot deck is refused, and so is every kind whose parameters
    were estimated from the file without noise.

    >>> str(loss_with_imputation("private parameters", analysis="0.75", parameters="0.25"))
    '1'
    """
    kind = imputation_kind(name)
    if kind.name == "hot deck":
        raise errors.SurveyError(
            "hot-deck",
            "Hot-deck imputation copies answers of one respondent into records of others, so that an imputed value "
            "depends on another record and not only on parameters of a model: one respondent may decide every imputed "
            "value, and no bound that does not grow with their number is known (thesis, section 7.6).",
            "Impute row by row from parameters that are estimated under a share of the budget "
            "(stirred.survey.imputing), or leave the values missing and make 'missing' one of the values that are "
            "counted.",
        )
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "what is written into a row depends on other rows")
    if kind.growth != "none":
        raise errors.imputation_depends(
            kind.name, "its parameters are estimated from the file without noise, so that one record may change them"
        )
    first = _number(parameters, "The loss of the parameters", zero=True)
    second = _number(analysis, "The loss of the analysis")
    private = kind.name in ("private parameters", "multiple")
    if private != (first > 0):
        wanted = "above 0: they are estimated from the file" if private else "0: nothing is estimated from the file"
        raise errors.imputation_number("The loss of the parameters", wanted)
    return first + second


def at_least(value: Any, what: str, least: int) -> None:
    """Raise unless a number is whole and not below the least."""
    if type(value) is not int or value < least:
        raise errors.imputation_number(what, f"a whole number, at least {least}")


def _number(value: Any, what: str, zero: bool = False) -> Fraction:
    try:
        found = as_fraction(value)
    except NOT_A_NUMBER:
        found = Fraction(-1)
    if found < 0 or (found == 0 and not zero):
        raise errors.imputation_number(what, "a number, at least 0" if zero else "a number above 0")
    return found
