"""Worst pairs of survey files: a few made records, of which one changes as far as the plan's guarantee covers.

What is measured are weighted sums with noise of a stated law, so the number that tells two files apart best is known:
the log-likelihood ratio of all measured sums. For Laplace noise of scale b it is the sum of (|y - s| - |y - t|) / b
over cells whose true sum is s in the first file and t in the second, for Gaussian noise of variance v the sum of
(t - s)(2 y - s - t) / (2 v). That number is what is looked at.

The invariant a reader must know: both files of a pair are possible under the plan, and neither holds anybody's data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.mechanism import AuditPair
from stirred.spec.exact import near
from stirred.survey.checking.against_plan import require_design
from stirred.survey.data import TABLE, Records, read_records
from stirred.survey.estimating.measured import measured_tables
from stirred.survey.measuring import may_vanish, query_noise, query_step, stays, true_sums, weights_may_move
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.sections import QuerySection

MEASUREMENTS = "measurements"
"""What the output of a program is called: a row for each measured sum."""
KEYS = ("query", "cell")
"""Its columns beside ``value``."""
MOST_ROWS = 5_000
"""Records of a made file, unless a plan demands more; where all weights may change, more would tell more."""

_FEW = 3
"""Records that are in each of the two cells, beside the one that changes."""

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Record:
    """One record of a made file: its values by column, its weight and whether its unit answers."""

    labels: Mapping[str, str]
    numbers: Mapping[str, Fraction]
    weight: Fraction
    answers: bool = True


@dataclass(frozen=True)
class Change:
    """What differs between the two files of a pair."""

    name: str
    words: str
    forms: tuple[Record, Record]
    company: tuple[bool, bool] = (True, True)
    """Whether there are other records in the first cell, and in the second."""
    all_weights: bool = False
    """Whether the weights of all other records change as well, from the lowest to the highest."""


def audit_pairs(plan: SurveyPlan) -> list[AuditPair]:
    """Pairs of files for a plan; those of which no measured sum differs are left out."""
    made = [Made(plan, change) for change in _changes(plan)]
    found = [one.pair() for one in made if one.is_possible() and one.told > 0]
    if not found:
        raise errors.not_audited("This plan", "it lets no record change by itself in a made file")
    return found


def cell_labels(plan: SurveyPlan, query: QuerySection) -> list[str]:
    """What cells of a query are called in the output of a program: values joined by ``*``, ``all`` for the total."""
    return ["*".join(label) or "all" for label in plan.labels_of(query.by)]


# -- what changes --------------------------------------------------------------------------------------------------


def _changes(plan: SurveyPlan) -> list[Change]:
    """Changes that a plan's guarantee is about, each as large as it can be."""
    far = {one.name: max(one.bounds.ends, key=abs) for one in plan.variables}
    low = {one.name: one.lower for one in plan.variables}
    high = {one.name: one.upper for one in plan.variables}
    first, second = _places(plan)
    top = min(_weights(plan, first)[1], _weights(plan, second)[1]) if plan.change == "value" else None

    def record(at: Mapping[str, str], numbers: Mapping[str, Fraction], weight: Fraction | None = None) -> Record:
        return Record(at, numbers, weight if weight is not None else top or _weights(plan, at)[1])

    here, there = record(first, far), record(second, far)
    found = [
        Change("largest-weight-moves", "a record of the largest weight moves to another cell", (here, there)),
        Change("empty-cell", "a record of the largest weight moves to a cell that was empty", (here, there),
               (True, False)),
        Change("lowest-to-highest", "a record of the largest weight has the highest values in place of the lowest",
               (record(first, low), record(first, high))),
        Change("moves-and-turns", "a record of the largest weight moves to another cell, its values to the other end",
               (record(first, low), record(second, high))),
    ]  # fmt: skip
    if plan.change == "unit":
        lightest = record(first, far, _weights(plan, first)[0])
        found.append(Change("smallest-to-largest-weight", "another unit stands in a record's place, with the largest "
                            "weight instead of the smallest", (lightest, here)))  # fmt: skip
    if may_vanish(plan):
        silent = Record(first, far, here.weight, answers=False)
        found.append(Change("does-not-answer", "a unit of the largest weight answers or does not", (silent, here)))
    if weights_may_move(plan):
        found.append(Change("all-weights-change", "a record moves, and with it all weights go from the smallest to the "
                            "largest", (here, there), (False, True), all_weights=True))  # fmt: skip
    return found


def _places(plan: SurveyPlan) -> tuple[dict[str, str], dict[str, str]]:
    """The values of two records that differ wherever a record can: the first and the last of every attribute, and the
    two strata with the largest weights."""
    first, second = {}, {}
    for one in plan.attributes:
        if one.variable is not None:
            continue
        values = list(one.values)
        if one.name == plan.design.strata:
            values.sort(key=lambda value: -plan.stratum_weights(value)[1])
            values = [values[0], *values[2:], *values[1:2]]  # the second largest comes last
        first[one.name] = values[0]
        second[one.name] = values[0] if stays(plan, one.name) else values[-1]
    return first, second


def _weights(plan: SurveyPlan, at: Mapping[str, str]) -> tuple[Fraction, Fraction]:
    """The smallest and the largest weight, before the rule, of a record with these values."""
    if plan.weights is None:
        return Fraction(1), Fraction(1)
    section = plan.design.sizes.get(at[plan.design.strata]) if plan.design.strata else None
    low, high = (None, None) if section is None else (section.lower, section.upper)
    return low or plan.weights.lower, high or plan.weights.upper


# -- made files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Made:
    """Made files for a plan, in which one record has one of two forms."""

    plan: SurveyPlan
    change: Change
    _read: dict[bool, Records] = field(default_factory=dict)
    _files: dict[bool, pl.DataFrame] = field(default_factory=dict)

    def pair(self) -> AuditPair:
        """The pair of files."""
        return AuditPair(
            self.change.name,
            self.change.words,
            "the log-likelihood ratio of all measured sums, by the law of their noise",
            1,
            1,
            specify(self.plan),
            self.tables,
            self.outcomes,
        )

    def is_possible(self) -> bool:
        """Whether both files fit the plan."""
        try:
            for form in (False, True):
                records = self.records(form)
                if measured_tables(self.plan):
                    require_design(records)
        except errors.StirredError:
            return False
        return True

    def records(self, form: bool) -> Records:
        """One of the two files, as the plan reads it."""
        if form not in self._read:
            self._read[form] = read_records(self.plan, self.tables([form]))
        return self._read[form]

    @cached_property
    def told(self) -> Fraction:
        """The loss between the two files: epsilon for Laplace noise, rho for Gaussian. At most the plan's budget."""
        total = Fraction(0)
        for query in self.plan.queries:
            change, noise = self._sums(query), query_noise(self.plan, query)
            for cell in np.flatnonzero(change[0] != change[1]).tolist():
                by = abs(int(change[1][cell]) - int(change[0][cell]))
                parameter = noise.parameters[int(noise.class_of[cell])]
                total += by / parameter if noise.law == "laplace" else by**2 / (2 * parameter)
        return total

    def tables(self, coins: Sequence[bool]) -> dict[str, pl.DataFrame]:
        """The file; in the second form the record is changed."""
        second = bool(coins[0])
        if second not in self._files:
            own = self.change.forms[second]
            rows = [*self._others(second), *([own] if own.answers else [])]
            self._files[second] = _frame(self.plan, rows)
        return {TABLE: self._files[second]}

    def _others(self, second: bool) -> list[Record]:
        """Records beside the changed one: a few in each of the two cells, and as many as a file must have."""
        plan, sample = self.plan, self.plan.sample
        first, last = self.change.forms
        least = sample.fewest  # without the changed record, whose unit may not answer
        most = max(least, MOST_ROWS) if sample.most is None else max(0, min(sample.most - 1, max(least, MOST_ROWS)))
        few = [one for _ in range(_FEW) for one, there in zip((first, last), self.change.company, strict=True) if there]
        wanted = most if self.change.all_weights else min(most, max(least, len(few)))
        room = _room(plan)
        found: list[Record] = []
        for one in (*few, *_elsewhere(plan, last if self.change.all_weights else first, wanted)):
            place = one.labels[plan.design.strata] if plan.design.strata else ""
            if len(found) < wanted and room.get(place, wanted) > 0:
                room[place] = room.get(place, wanted) - 1
                found.append(one)
        if not self.change.all_weights:
            return found
        return [Record(one.labels, one.numbers, _weights(plan, one.labels)[second]) for one in found]

    # -- what is seen ----------------------------------------------------------------------------------------------

    def outcomes(self, made: Tables) -> Sequence[Hashable]:
        """The log-likelihood ratio of the measured sums; cells that are missing tell nothing."""
        frame = made[MEASUREMENTS]
        found = frame.with_columns(pl.col(KEYS).cast(pl.String)).join(self._expected, on=list(KEYS))
        seen = found["value"].cast(pl.Float64, strict=False).to_numpy() / found["step"].to_numpy()
        first, second, parameter = (found[name].to_numpy() for name in ("first", "second", "parameter"))
        if self.plan.noise == "laplace":
            each = (np.abs(seen - first) - np.abs(seen - second)) / parameter
        else:
            each = (second - first) * (2 * seen - first - second) / (2 * parameter)
        return [float(np.nansum(each))]

    def _sums(self, query: QuerySection) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return true_sums(self.records(False), query), true_sums(self.records(True), query)

    @cached_property
    def _expected(self) -> pl.DataFrame:
        """The cells in which the two files differ: their true sums, in steps, and the parameter of their noise."""
        parts = []
        for query in self.plan.queries:
            first, second = self._sums(query)
            noise, labels = query_noise(self.plan, query), cell_labels(self.plan, query)
            differ = np.flatnonzero(first != second)
            parameters = np.array([near(one) for one in noise.parameters])
            columns = {
                "query": [query.name] * len(differ),
                "cell": [labels[cell] for cell in differ.tolist()],
                "first": first[differ].astype(np.float64),
                "second": second[differ].astype(np.float64),
                "parameter": parameters[noise.class_of[differ]],
                "step": [near(query_step(self.plan, query))] * len(differ),
            }
            kinds = dict.fromkeys(KEYS, pl.String) | dict.fromkeys(list(columns)[2:], pl.Float64)
            parts.append(pl.DataFrame(columns, schema=kinds))
        return pl.concat(parts)


def _room(plan: SurveyPlan) -> dict[str, int]:
    """How many records there may be in each stratum beside the changed one, where the design says it."""
    if not measured_tables(plan) or plan.design.clusters is not None:
        return {}
    if plan.design.strata is None:
        return {"": (plan.design.selected or 1) - 1}
    return {name: one.selected - 1 for name, one in plan.design.sizes.items()}


def _elsewhere(plan: SurveyPlan, like: Record, number: int) -> Iterator[Record]:
    """So many records for each stratum, all else like one of them."""
    strata = plan.design.strata
    for name in ("",) if strata is None else plan.attribute(strata).values:
        labels = like.labels if strata is None else {**like.labels, strata: name}
        low, high = _weights(plan, labels)
        weight = min(max(like.weight, low), high)
        yield from [Record(labels, like.numbers, weight)] * number


def _frame(plan: SurveyPlan, rows: Sequence[Record]) -> pl.DataFrame:
    """Records as the file that a plan reads."""
    columns: dict[str, pl.Series] = {}
    for attribute in plan.attributes:
        if attribute.variable is None:
            values = [one.labels[attribute.name] for one in rows]
            columns[attribute.column or attribute.name] = pl.Series(values, dtype=pl.String)
    for variable in plan.variables:
        columns[variable.column or variable.name] = _decimals([one.numbers[variable.name] for one in rows])
    if plan.weights is not None:
        columns[plan.weights.column] = _decimals([one.weight for one in rows])
    if plan.design.clusters is not None:
        names = [one.labels[plan.design.strata] if plan.design.strata else "all" for one in rows]
        columns[plan.design.clusters] = pl.Series([f"cluster {name}" for name in names], dtype=pl.String)
    for name in plan.design.replicates.columns if plan.design.replicates is not None else ():
        columns[name] = pl.Series([1] * len(rows), dtype=pl.Int64)
    return pl.DataFrame(columns) if columns else pl.DataFrame({"record": [1] * len(rows)})


def _decimals(numbers: Sequence[Fraction]) -> pl.Series:
    """Numbers of a lattice with a decimal step, exactly."""
    scale = 0
    while any((one * 10**scale).denominator != 1 for one in set(numbers)):
        scale += 1
    if not scale:
        return pl.Series([int(one) for one in numbers], dtype=pl.Int64)
    texts = {one: Decimal(int(one * 10**scale)).scaleb(-scale) for one in set(numbers)}
    return pl.Series([texts[one] for one in numbers], dtype=pl.Decimal(38, scale))
