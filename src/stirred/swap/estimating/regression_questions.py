"""Answers linear regressions from a swapped release: reads the formula and its columns, and says what was done.

A formula is written ``income ~ county + size``. A term is a column, or ``column=value`` for 1 where a record has this
value and 0 elsewhere. A name with signs in it is written between backticks. What a formula may not ask of a swap is
refused in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred.estimates.answers import Coefficients, Parts
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.data.dataset import constant_columns, strata_groups, with_merged
from stirred.swap.estimating.question_counts import (
    Roles,
    Where,
    fitting,
    law_of,
    rates_of_release,
    roles_of_question,
    swapped_in_rounds,
)
from stirred.swap.estimating.regression import Design, Regression, ReleasedSums
from stirred.swap.law.moments import LawConstants
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, anonymous, cells, group

_CURVED = ("logit", "logistic", "probit", "poisson", "cloglog", "glm", "binomial", "exp", "ologit", "cox", "quantile")
_SHOWN = 80


@dataclass(frozen=True)
class Term:
    """A term of a formula: a column, or 1 where it has a certain value and 0 elsewhere."""

    column: str
    value: str | None = None

    @property
    def label(self) -> str:
        """As it was written."""
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclass(frozen=True)
class Formula:
    """A formula that was read: the outcome and its predictors."""

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


Floats = NDArray[np.float64]

TARGETS = ("population", "file")
MOST = 100
"""Coefficients of one regression."""
_KNOWN = 12

_KIND_WORDS = {
    "known": "the swap keeps all that this coefficient follows from; it is that of the file, without error",
    "swap": "about the coefficient in the file before the swap: the chance of the swap",
    "sampling": "about the population of which the file is a sample: the chance of sampling; the swap adds none",
    "both": "about the population of which the file is a sample: the chance of the swap and that of sampling",
}


@dataclass(frozen=True)
class Choices:
    """What a regression is about, and how columns enter it."""

    target: str = "population"
    robust: bool = False
    reference: Mapping[str, str] | None = None
    categories: Sequence[str] = ()


def regress(
    release: ReleaseFolder,
    plan: SwapPlan,
    formula: str,
    where: Where,
    table: str,
    choices: Choices,
) -> Coefficients:
    """The regression that a formula asks for."""
    _require(table == MAIN, f"The table '{table}'", "has several rows for a record, and its columns are not offered in "
             "regressions: sums over the rows of a record are needed, and these are not columns",
             f"Use columns of '{MAIN}', or estimate counts and shares with --table {table} --by.")  # fmt: skip
    if choices.target not in TARGETS:
        raise errors.unknown_choice("target", choices.target, TARGETS)
    known = [name for name in release.columns(MAIN) if release.columns(MAIN)[name]["role"] in ("match", "swap", "hold")]
    asked = read_formula(formula, _of_main(release, plan, formula, known))
    roles = roles_of_question(release, plan, MAIN, asked.columns)
    if again := swapped_in_rounds(plan, roles, MAIN):
        raise errors.estimates_of_rounds(again)
    _require_match(plan, where)
    wanted = {*plan.match, *asked.columns, *where}
    main = release.read(MAIN, [name for name in release.columns(MAIN) if name in wanted]).table
    kept, strata, law = _strata(release, plan, main, where)
    columns = {name: _kept(main[name], kept) for name in asked.columns}
    for name in asked.columns:
        _require(columns[name].values.null_count == 0, f"'{name}'", "has missing cells among these records, and a "
                 "regression without them would not be corrected rightly", "Use columns without missing cells, or "
                 "write column=value for 1 where a record has a value and 0 elsewhere.")  # fmt: skip
    entering = _entering(asked, columns, choices)
    sums, held, swapped = _classes(strata, law, columns, roles)
    fit = Regression(sums, _design(asked, entering, roles, columns, held, swapped))
    return _answer(asked, fit, entering, where, choices)


def _require(holds: bool, what: str, why: str, instead: str) -> None:
    if not holds:
        raise errors.regression_not_valid(what, why, instead)


def _of_main(release: ReleaseFolder, plan: SwapPlan, formula: str, known: list[str]) -> list[str]:
    """The columns that a formula may name; raises where it names one of a linked table."""
    words = {part.strip(" `").partition("=")[0].strip(" `") for part in formula.replace("~", "+").split("+")}
    for linked in plan.linked:
        for name in words & set(release.columns(linked.name)) - set(known):
            raise errors.regression_not_valid(
                f"'{name}'",
                f"is a column of the linked table '{linked.name}', which has several rows for a record, and is not "
                "offered in regressions",
                f"Use columns of '{MAIN}', or estimate counts and shares with --table {linked.name} --by.",
            )
    return known


def _require_match(plan: SwapPlan, where: Where) -> None:
    allowed = constant_columns(plan)
    for name in where:
        _require(name in allowed, f"The condition on '{name}'", "is not on a match variable. Records chosen by swapped "
                 "or held values are not those that the swap kept together, and need another correction",
                 f"Choose by {errors.listed(allowed)}." if allowed else "Leave the condition out: this release has no "
                 "match variables.")  # fmt: skip


def _strata(
    release: ReleaseFolder, plan: SwapPlan, main: Table, where: Where
) -> tuple[NDArray[np.bool_] | None, Groups, LawConstants]:
    """Which records are asked for, their strata, and the law of each."""
    strata = strata_groups(plan, with_merged(plan, main))
    rates = rates_of_release(release, plan)
    by_stratum = rates.by_stratum(strata) if rates is not None else None
    if by_stratum is not None and not np.logical_or.reduce(list(by_stratum.one_each().values())).all():
        raise errors.StirredError(
            "estimates-of-rates",
            "This release swapped records of the same group with different probabilities, for which no regression is "
            "offered: the formulas for one rate would be biased.",
            "Ask for counts, shares or comparisons by these columns; 'stirred estimate' answers them.",
        )
    law = law_of(plan, strata.sizes(), by_stratum)
    if not where:
        return None, strata, law
    kept = np.ones(main.rows, dtype=np.bool_)
    for name, values in where.items():
        kept &= fitting(name, main[name], values)[main[name].codes]
    _require(bool(kept.any()), "The condition", "leaves no records", "Choose values that occur together.")
    which, ids = np.unique(strata.ids[kept], return_inverse=True)
    return kept, Groups(ids.reshape(-1).astype(np.uint32), len(which)), law.among(which)


def _kept(column: Column, kept: NDArray[np.bool_] | None) -> Column:
    """The column of some records, with the values that occur among them."""
    if kept is None:
        return column
    used, codes = np.unique(column.codes[kept], return_inverse=True)
    return Column(column.name, codes.reshape(-1).astype(column.codes.dtype), column.values.take(pa.array(used)))


def _is_number(column: Column) -> bool:
    kind = column.type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )  # fmt: skip


def _numbers(column: Column) -> Floats:
    values = column.values
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.int8())
    found = np.asarray(pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    _require(bool(np.isfinite(found).all()), f"'{column.name}'", "holds numbers that are not finite",
             "Use a column whose cells are finite numbers.")  # fmt: skip
    return found


@dataclass(frozen=True, eq=False, repr=False)
class _Entering:
    """How one term enters: variables as numbers for each value of its column."""

    term: Term
    labels: tuple[str, ...]
    values: Floats
    """``[code, variable]``"""
    reference: str | None = None


def _entering(asked: Formula, columns: Mapping[str, Column], choices: Choices) -> list[_Entering]:
    """How each term enters the regression: the outcome first, then the predictors."""
    reference = dict(choices.reference or {})
    for name in (*reference, *choices.categories):
        _require(name in asked.columns, f"'{name}'", "does not stand in the formula", "Name a predictor.")
    found = [_enter(term, columns[term.column], reference, choices.categories) for term in asked.predictors]
    total = sum(len(one.labels) for one in found)
    _require(total <= MOST, f"The predictors make {total:,} coefficients", f"and at most {MOST} are estimated together",
             "Use coarser categories, or --by and --share for a table.")  # fmt: skip
    outcome = columns[asked.outcome.column]
    _require(
        asked.outcome.value is not None or (_is_number(outcome) and asked.outcome.column not in choices.categories),
        f"The outcome '{asked.outcome.column}'", "is text, and the outcome of a regression is a number",
        f"Write {asked.outcome.column}=VALUE ~ ... for the share of records with a value.",
    )  # fmt: skip
    return [_enter(asked.outcome, outcome, reference, ()), *found]


def _enter(term: Term, column: Column, reference: Mapping[str, str], categories: Sequence[str]) -> _Entering:
    texts = [text or "" for text in column.texts()]
    if term.value is not None:
        if term.value not in texts:
            raise errors.unknown_choice(f"value of '{term.column}'", term.value, texts[:_KNOWN])
        return _Entering(term, (term.label,), np.array([[float(text == term.value)] for text in texts]))
    if _is_number(column) and term.column not in (*categories, *reference):
        return _Entering(term, (term.label,), _numbers(column)[:, None])
    _require(_is_number(column) or pa.types.is_string(column.type), f"'{term.column}'",
             f"is neither a number nor text, but {column.type}", "Use a column of numbers or text.")  # fmt: skip
    base = reference.get(term.column, texts[0])
    if base not in texts:
        raise errors.unknown_choice(f"value of '{term.column}'", base, texts[:_KNOWN])
    others = [at for at, text in enumerate(texts) if text != base]
    _require(bool(others), f"'{term.column}'", "is the same for all records", "Leave it out.")
    _require(len(others) <= MOST, f"'{term.column}'", f"has {len(texts):,} values, and at most {MOST} coefficients are "
             "estimated together", "Use a coarser column, or --by and --share for a table.")  # fmt: skip
    labels = tuple(f"{term.column}={texts[at]}" for at in others)
    return _Entering(term, labels, np.eye(len(texts))[:, others], base)


def _classes(
    strata: Groups, law: LawConstants, columns: Mapping[str, Column], roles: Roles
) -> tuple[ReleasedSums, NDArray[np.int64], NDArray[np.int64]]:
    """Released cells, and for each held and each swap class a record that has it."""
    rows = len(strata.ids)
    swapped = group([columns[name] for name in roles.swapped], rows)
    held = group([columns[name] for name in (*roles.areas, *roles.held)], rows)
    inner = cells([anonymous(one.ids, one.count) for one in (strata, swapped, held)], rows)
    stratum, t, k = (codes.astype(np.int64) for codes in inner.codes)
    return ReleasedSums.of(law, stratum, t, k, inner.counts.astype(np.int64)), held.members(), swapped.members()


def _design(
    asked: Formula,
    entering: Sequence[_Entering],
    roles: Roles,
    columns: Mapping[str, Column],
    held: NDArray[np.int64],
    swapped: NDArray[np.int64],
) -> Design:
    is_swapped = np.array([one.term.column in roles.swapped for one in entering for _ in one.labels])
    moved = np.array([one.term.column not in roles.areas for one in entering for _ in one.labels])
    sides: tuple[list[Floats], list[Floats]] = ([], [])
    for one in entering:
        swap = one.term.column in roles.swapped
        sides[swap].append(one.values[columns[one.term.column].codes[swapped if swap else held]])
    values = [
        np.hstack(side) if side else np.zeros((len(at), 0)) for side, at in zip(sides, (held, swapped), strict=True)
    ]
    labels = tuple(label for one in entering for label in one.labels)
    return Design(labels, is_swapped, moved, values[0], values[1])


def _answer(
    asked: Formula, fit: Regression, entering: Sequence[_Entering], where: Where, choices: Choices
) -> Coefficients:
    two = entering[0].values[:, 0]
    robust = choices.target == "population" and (choices.robust or len(np.unique(two)) == 2)
    exact = fit.design.exact
    kind = {"file": ("swap", "known"), "population": ("both", "sampling")}[choices.target][exact]
    values, variances = fit.values, np.maximum(fit.variances(choices.target, robust=robust), 0.0)

    def ends(confidence: float) -> Parts:
        reach = fit.reach(confidence, choices.target) * np.sqrt(variances)
        return Parts(values, variances, values - reach, values + reach)

    labels = ("(intercept)", *fit.design.labels[1:])
    return Coefficients(
        table=MAIN,
        by=("term",),
        where={name: tuple(given) for name, given in where.items()},
        measure=f"coefficient for {asked.outcome.label}",
        labels=tuple((label,) for label in labels),
        values=values,
        variances=variances,
        naive=fit.naive,
        kinds=(kind,) * len(labels),
        kind_words=_KIND_WORDS,
        ends=ends,
        whole=False,
        remarks=tuple(_remarks(fit, entering, choices, robust)),
        attenuation=fit.attenuation,
    )


def _remarks(fit: Regression, entering: Sequence[_Entering], choices: Choices, robust: bool) -> list[str]:
    found = []
    outcome, *predictors = entering
    for one in predictors:
        if one.reference is not None:
            found.append(f"'{one.term.column}' enters as categories, each compared with {one.reference}.")
        elif one.term.value is None:
            found.append(f"'{one.term.column}' enters as a number; --category {one.term.column} makes it categories.")
    if len(predictors) == 1 and predictors[0].reference is not None:
        of = "shares" if outcome.term.value is not None else "means"
        found.append(f"Each coefficient is a difference of {of} of {outcome.term.label}: here minus at "
                     f"{predictors[0].reference}.")  # fmt: skip
    if fit.design.exact:
        found.append("The swap keeps all that this regression uses, so nothing is corrected.")
    else:
        found.append(_how_corrected(fit))
        found.append("Attenuation: the part of a predictor's association with the outcome that is left in the released "
                     "rows on average. It is 1 for predictors that the swap does not move against the outcome; their "
                     "coefficients change with the others'.")  # fmt: skip
    if choices.target == "population":
        found.append("The coefficients are about the population of which the file is a sample; --target file is about "
                     "the file before the swap.")  # fmt: skip
        if robust:
            found.append("Standard errors allow for an outcome that spreads differently from record to record"
                         + ("" if choices.robust else ", as one of two values does") + ".")  # fmt: skip
    return found


def _how_corrected(fit: Regression) -> str:
    law = fit.sums.law
    inside = law.shrinkage[fit.varies]
    if not len(inside):
        return "No group has records that the swap could change, so nothing is corrected."
    low, high = float(inside.min()), float(inside.max())
    groups = f"{len(inside):,} group{'s' if len(inside) > 1 else ''} of records that agree on the match variables"
    if not fit.pooled:
        between = f"{low:.4f}" if high - low < 5e-5 else f"{low:.4f} to {high:.4f}"
        return (f"Corrected by group: in {groups}, each association of held with swapped values was divided by the "
                f"part that the swap leaves there on average, {between}.")  # fmt: skip
    why = (
        "in some groups next to nothing is left of it"
        if np.any(fit.varies & ~law.invertible)
        else "small groups would make the error much larger"
    )
    return (f"Corrected with one attenuation for all of {groups}, since {why}. This takes the slopes to be the same in "
            "all groups.")  # fmt: skip
