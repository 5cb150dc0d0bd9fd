"""The measured sums of a release: their files, and the best linear unbiased estimates of any table they determine.

All queries of one variable (or of counts) are one family. Their measured sums overlap, so least squares combines them,
with the variances of their noise that the plan fixes (:mod:`stirred.margins.one_table`). What is estimated is the
weighted sum without noise; the error of sampling comes on top (:mod:`stirred.survey.estimating.intervals`).

The invariant a reader must know: variances and weights follow from the plan; only estimates look at measured values.

The files are a table of noisy sums for each query, and one of noisy standard errors where they were measured. Sums are
written as exact decimal numbers, which are whole multiples of the query's step; standard errors as whole
multiples of a unit that follows from the plan. Every cell of the plan has a row, in the order of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.one_table import FlatTable
from stirred.margins.schema import Schema
from stirred.releases.folder.documents import ReleasedTable
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.spec.exact import near
from stirred.survey.data import Whole, multiples
from stirred.survey.measuring import ErrorTable, query_noise, query_step
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection, QuerySection
from stirred.tables import Column, Table
from stirred.tables.columns import as_text, encoded
from stirred.tables.exact_numbers import largest, whole_array
from stirred.tables.writing import EXTENSIONS, Cell, write_table

Array = NDArray[np.float64]
Where = Mapping[str, Sequence[str]]
Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """The measured sums of one variable, or the weighted counts."""

    plan: SurveyPlan
    of: str | None
    queries: tuple[QuerySection, ...]
    values: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"<Family of {self.of or 'weighted counts'}: {', '.join(one.name for one in self.queries)}>"

    @cached_property
    def schema(self) -> Schema:
        """All attributes that the family's queries are by."""
        return self.plan.schema_of(self.plan.names_of(self.of))

    @cached_property
    def variances(self) -> tuple[Array, ...]:
        """For each query the variance of the noise of every cell."""
        return tuple(query_noise(self.plan, query).variances for query in self.queries)

    @cached_property
    def table(self) -> FlatTable:
        """The least squares of the family."""
        name = self.of or "counts"
        largest = [float(one.max()) for one in self.variances]
        measured = [(query.by, one) for query, one in zip(self.queries, largest, strict=True)]
        factors = self._factors(largest)
        if factors is None:
            return FlatTable.of(self.schema, measured, name=name)
        return FlatTable.of(self.schema, measured, stratum=self.plan.design.strata, factors=factors, name=name)

    def _factors(self, largest: Sequence[float]) -> dict[str, float] | None:
        """By stratum how much smaller the noise of cells in it is than that of the noisiest; None if all are alike.

        Where queries disagree, the largest factor is taken for all: variances are then a little too large.
        """
        strata = self.plan.design.strata
        found: dict[str, float] = {}
        for query, each, most in zip(self.queries, self.variances, largest, strict=True):
            if strata is None or strata not in query.by or float(each.min()) == most:
                continue
            values = self.plan.attribute(strata).values
            sizes = [len(self.schema.values(name)) for name in query.by]
            by_stratum = each.reshape(sizes).swapaxes(0, query.by.index(strata)).reshape(len(values), -1)[:, 0]
            for value, variance in zip(values, by_stratum, strict=True):
                found[value] = max(found.get(value, 0.0), float(np.sqrt(variance / most)))
        return found or None

    def estimates(self, by: Sequence[str], where: Where) -> Array:
        """The estimate of every group; NaN where nothing tells."""
        return np.asarray(self.table.estimates(self.values, by, where))

    def noise_variances(self, by: Sequence[str], where: Where) -> Array:
        """The variance of the noise in every estimate."""
        return np.asarray(self.table.variances(by, where))

    def noise_covariances(
        self, by: Sequence[str], where: Where, pairs: Pairs, other_by: Sequence[str] | None = None
    ) -> Array:
        """The covariance of the noise of pairs of groups, of one table or of two."""
        other = where if other_by is not None else None
        return np.asarray(self.table.covariances(by, where, other_by, other, pairs=pairs))

    def weights_of_form(self, by: Sequence[str], coefficients: Array) -> Array:
        """The weight of every measured value, query after query, in a weighted sum of all groups of a table; or in
        several, a row for each."""
        return np.concatenate(self.table.weights(by, None, coefficients), axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSurvey:
    """The measured sums and standard errors of a release, opened for many questions."""

    plan: SurveyPlan
    sums: Mapping[str, Whole]
    """By query the noisy sum of every cell, in multiples of the query's step."""
    errors: Mapping[str, ErrorTable] = field(default_factory=dict)
    """By table to publish its measured standard errors."""
    _families: dict[str | None, Family] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<MeasuredSurvey: {len(self.sums)} queries of {self.plan.dataset or 'a survey'}; .estimate(...)>"

    def family(self, of: str | None) -> Family:
        """The measured sums of a variable, or the weighted counts."""
        if of not in self._families:
            queries = self.plan.family(of)
            if not queries:
                known = [one or "weighted counts" for one in dict.fromkeys(query.of for query in self.plan.queries)]
                raise errors.unknown_choice("measured variable", of or "weighted counts", known)
            values = tuple(self.sums[one.name].astype(np.float64) * near(query_step(self.plan, one)) for one in queries)
            self._families[of] = Family(self.plan, of, queries, values)
        return self._families[of]


ATTRIBUTE, MEASURED = "attribute", "measured"
"""Roles of columns in the data dictionary."""
VALUE, CENTRE, MULTIPLE = "value", "centre", "multiple"
MOST = 1 << 63
"""Measured numbers are below this, in multiples of their step."""
ORDER = "in the order of the plan's values, the last column fastest"


def error_name(wanted: PublishSection) -> str:
    """The name of the table with the measured standard errors of a table to publish."""
    return f"errors-{wanted.name}"


def tables_of(survey: MeasuredSurvey) -> Iterator[Table]:
    """All tables of noisy sums and of noisy standard errors, as columns ready to be written."""
    plan = survey.plan
    for query in plan.queries:
        step = query_step(plan, query)
        yield _encoded(plan, query.name, query.by, {VALUE: decimals(survey.sums[query.name], step)})
    for wanted in measured_tables(plan):
        found = survey.errors[wanted.name]
        numbers = {CENTRE: pa.array(found.centres), MULTIPLE: pa.array(found.multiples)}
        columns = {name: numbers[name] for name in _error_columns(wanted)}
        yield _encoded(plan, error_name(wanted), wanted.cells, columns)


def measured_tables(plan: SurveyPlan) -> list[PublishSection]:
    """The tables to publish whose standard errors are measured."""
    return [one for one in plan.publish if one.errors]


def _error_columns(wanted: PublishSection) -> list[str]:
    """The numbers in a table of measured standard errors; counts and totals have no centre."""
    return [MULTIPLE] if wanted.kind in ("count", "total") else [CENTRE, MULTIPLE]


def described(plan: SurveyPlan, table: Table) -> ReleasedTable:
    """What the data dictionary says about a table."""
    numbers = (VALUE, CENTRE, MULTIPLE)
    columns = tuple((name, MEASURED if name in numbers else ATTRIBUTE) for name in table.columns)
    file = table.name + EXTENSIONS[plan.format]
    return ReleasedTable(table.name, file, plan.format, table.rows, ORDER, columns, table)


def write(folder: Path, plan: SurveyPlan, table: Table) -> None:
    """Write one table of noisy sums or standard errors into a release folder."""
    cells = [Cell(name, column.codes, column) for name, column in table.columns.items()]
    write_table(folder / f"{table.name}{EXTENSIONS[plan.format]}", plan.format, [cells])


def read_measured(release: ReleaseFolder) -> MeasuredSurvey:
    """The measured sums and standard errors of a release folder, each cell where the plan has it."""
    try:
        return _read_measured(release)
    except (KeyError, IndexError, ValueError, OverflowError):
        reason = "its tables are not what its documents say"
    raise errors.not_a_release(release.path, reason)


def _read_measured(release: ReleaseFolder) -> MeasuredSurvey:
    plan = SurveyPlan.from_published(release.certificate["plan"])
    sums, found = {}, {}
    for query in plan.queries:
        table = _read(release, plan, query.name, query.by, [VALUE])
        sums[query.name] = _multiples(release, table[VALUE], query_step(plan, query))
    for wanted in measured_tables(plan):
        numbers = _error_columns(wanted)
        table = _read(release, plan, error_name(wanted), wanted.cells, numbers)
        columns = {name: _multiples(release, table[name], Fraction(1)) for name in numbers}
        centres = columns.get(CENTRE, np.zeros(table.rows, dtype=np.int64))
        found[wanted.name] = ErrorTable(centres, columns[MULTIPLE])
    return MeasuredSurvey(plan, sums, found)


def decimals(multiples: Whole, step: Fraction) -> pa.Array:
    """Whole multiples of a decimal step as exact decimal numbers; integers where the step is one.

    >>> decimals(np.array([3, -1]), Fraction(1, 4)).to_pylist()
    [Decimal('0.75'), Decimal('-0.25')]
    """
    scale = 0
    while (step * 10**scale).denominator != 1:
        scale += 1
    unit = int(step * 10**scale)
    if not scale:
        return pa.array(multiples * unit)
    if unit * int(np.abs(multiples).max(initial=0)) >= 1 << 62:
        whole = pa.array([int(one) * unit for one in multiples.tolist()], pa.decimal128(38, 0))
        return pa.array([one.scaleb(-scale) for one in whole.to_pylist()], pa.decimal128(38, scale))
    numbers = multiples * unit
    words = np.column_stack([numbers, numbers >> 63])  # two words of 64 bits each, the second one the sign
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(numbers), [None, pa.py_buffer(words.tobytes())])


def _encoded(plan: SurveyPlan, name: str, by: Sequence[str], numbers: dict[str, pa.Array]) -> Table:
    columns = {one: _label_column(plan, by, at) for at, one in enumerate(by)}
    columns |= {one: encoded(one, array) for one, array in numbers.items()}
    return Table(name, plan.number_of_cells(by), columns)


def _label_column(plan: SurveyPlan, by: Sequence[str], at: int) -> Column:
    """The labels of all cells by some names, of one of the names."""
    sizes = [len(plan.schema_of(by).values(one)) for one in by]
    distinct = encoded(by[at], pa.array(plan.schema_of(by).values(by[at]), pa.string()))
    return distinct.with_codes(np.tile(np.repeat(distinct.codes, math.prod(sizes[at + 1 :])), math.prod(sizes[:at])))


def _read(release: ReleaseFolder, plan: SurveyPlan, name: str, by: Sequence[str], numbers: Sequence[str]) -> Table:
    """A measured table of a folder that anybody may have written: all but the plan's cells in order is refused."""
    if name not in release.dictionary:
        raise errors.not_a_release(release.path, f"it has no table {name}, which its plan asks for")
    if list(release.columns(name)) != [*by, *numbers]:
        raise errors.not_a_release(release.path, f"the table {name} has other columns than its plan asks for")
    table = release.read(name).table
    if table.rows != plan.number_of_cells(by):
        raise errors.not_a_release(release.path, f"the table {name} does not have a row for every cell of the plan")
    for at, one in enumerate(by):
        stated, wanted = table[one], _label_column(plan, by, at)
        if not as_text(stated.values).equals(wanted.values) or not np.array_equal(stated.codes, wanted.codes):
            raise errors.not_a_release(release.path, f"the rows of table {name} are not the cells of the plan in order")
    return table


def _multiples(release: ReleaseFolder, column: Column, step: Fraction) -> Whole:
    """The numbers of a column, which must be exact and whole multiples of a step, as such multiples."""
    kind = column.values.type
    if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)) or column.values.null_count:
        raise errors.not_a_release(release.path, "a measured number is empty, or is no exact number")
    numbers, _, digits = whole_array(column)
    found, whole = multiples(numbers, Fraction(1) / (step * 10**digits))
    if not whole.all():
        raise errors.not_a_release(release.path, "a measured number is no whole multiple of its step")
    if largest(found) >= MOST:
        raise errors.not_a_release(release.path, "a measured number is larger than any that is released")
    return found[column.codes]
