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


_OWN_RECORD = "the respondent's own record, and nothing else of this respondent stands in the file"
_LINEAR = "the respondent's own value and every imputed value may change: the sensitivity is 1 + m times as large"
_PARTS = (
    "one completed record. A respondent whose answers the parameters were estimated from has a part in up to m imputed "
    "records besides, and is protected less than that"
)
_LARGE = "the worst case is linear in the number of imputed values (section 7.6; Das et al. 2022)"

KINDS = (
    ImputationKind(
        "given parameters",
        "a value drawn or computed from the row itself and from parameters that were public before the survey",
        True,
        "none",
        "one record, as without imputation: the sensitivity does not change",
        _OWN_RECORD,
        "section 7.6 with epsilon1 = 0: the total is epsilon2",
    ),
    ImputationKind(
        "private parameters",
        "a value drawn from the row itself and from parameters that were estimated with noise, under epsilon1",
        True,
        "none",
        "one record, given the parameters: the sensitivity of the analysis does not change, and the total is "
        "epsilon1 + epsilon2",
        "the respondent's own record for the analysis; for the parameters the share epsilon1 counts besides",
        "the total is epsilon1 + epsilon2 (section 7.6; Das et al. 2022); also for rho of zCDP",
        "how much the noise of the parameters biases an estimate: it depends on the data",
    ),
    ImputationKind(
        "multiple",
        "several independent draws for every missing value, all from the same private parameters; the analysis "
        "averages the completed files",
        True,
        "none",
        "one record, given the parameters: the average of its contributions lies between the same bounds as one of "
        "them, so that the sensitivity does not change with the number of draws",
        "the respondent's own record for the analysis; for the parameters the share epsilon1 counts besides",
        "the total is epsilon1 + epsilon2, as for one draw: a row with several draws is still one row",
        "the variance between the completed files is a number about the data. It is not published: it would need a "
        "share of its own. It would also miss the noise of the parameters, which all draws share, and no rule for "
        "adding that is known here. Draws from parameters without noise count as the kind that estimated them",
    ),
    ImputationKind(
        "mean",
        "the mean of the observed values",
        True,
        "by share",
        "the mean moves by at most 1/n of the range, n being the number of observed values, and m imputed values move "
        "with it: the sensitivity of a total is 1 + m/n times as large",
        _PARTS,
        "1 + m/n for a total is computed here and attained; other analyses may be as bad as 1 + m. " + _LARGE,
    ),
    ImputationKind(
        "conditional frequencies",
        "a value drawn from the frequencies among observed records of the same group, which have no noise",
        True,
        "by number",
        _LINEAR + ", since with the same random numbers all draws of a group may change together",
        _PARTS,
        _LARGE,
        "a smaller loss for large groups; add noise to the frequencies instead ('private parameters')",
    ),
    ImputationKind(
        "linear regression",
        "the prediction of a regression on the observed records, with or without a drawn residual; its coefficients "
        "have no noise",
        True,
        "by number",
        _LINEAR + ": one record far from all others decides the slope",
        _PARTS,
        _LARGE,
        "a smaller sensitivity from public bounds on leverage; add noise to the sums that the coefficients are "
        "computed from instead ('private parameters')",
    ),
    ImputationKind(
        "hot deck",
        "the answer of a donor, another respondent who is alike",
        False,
        "by number",
        _LINEAR + ", since one donor may serve all of them, and may change who the donors of others are",
        "one completed record, a 'post-imputation person': a donor whose answers were copied m times stands in m + 1 "
        "records, and has the protection of m + 1 records at once",
        _LARGE + "; the sum epsilon1 + epsilon2 does not hold",
        "any total that does not grow with m: refused here",
    ),
    ImputationKind(
        "editing by record",
        "another value by a published rule that looks at this record only, such as an age that does not fit a date of "
        "birth",
        True,
        "none",
        "one record, as without editing: the sensitivity does not change",
        _OWN_RECORD,
        "a function of one record changes one record; the same proof as for given parameters",
        "editing by hand: a mechanism is a program that can be written down (section 7.2.2)",
    ),
    ImputationKind(
        "editing across records",
        "another value because of other records: outliers among all answers, duplicates, totals that must agree",
        False,
        "unknown",
        "one record may decide which others are edited; how many is not known",
        "one edited record; how many of them a respondent has a part in is not known",
        "nothing: the source says only that steps before the start matter (section 7.2.2)",
        "any bound: refused here",
    ),
)
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
        raise errors.unknown_imputation(tuple(_BY_NAME))
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
    _whole(missing, "The number of missing values", 0)
    by = _number(width, "The range of the variable", zero=True)
    if kind.growth == "none":
        return by
    if kind.growth == "by number":
        return by * (1 + missing)
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "how many records one record changes is not known")
    if observed is None:
        raise errors.survey_bounds_missing("the fewest observed values that there can be")
    _whole(observed, "The number of observed values", 1)
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
    _whole(missing, "The number of missing values", 0)
    if copies is not None:
        _whole(copies, "The number of copies of one respondent", 0)
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
        raise errors.hot_deck_refused()
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


def _whole(value: Any, what: str, least: int) -> None:
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
