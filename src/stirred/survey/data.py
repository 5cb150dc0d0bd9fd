"""Reads the file of a survey: every weight and value as a whole multiple of its step, every category as a number.

The invariant a reader must know: each record is treated by itself, with the plan's public rules alone, so that one
changed record changes one row here. What does not fit a rule raises an error with a number of rows, and is not quoted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.releases.mechanism import Data
from stirred.releases.plans import by_table
from stirred.spec.exact import written
from stirred.survey.checking.against_plan import Repeats, id_columns, repeated_ids
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import AttributeSection, VariableSection
from stirred.survey.weights.rules import nearest
from stirred.tables import Column, Input, Table, open_input
from stirred.tables.columns import as_text
from stirred.tables.exact_numbers import largest, whole_array
from stirred.tables.reading.inputs import Told
from stirred.tables.reading.table_reader import read_table

Whole = NDArray[np.int64]
Codes = NDArray[np.int32]

TABLE = "survey"
"""What the file is called among the inputs and in messages."""
LARGEST = 1 << 62
"""Sums stay below this, so that 64 bits hold them."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """The records of a survey, as the plan's rules make them. Confidential."""

    plan: SurveyPlan
    rows: int
    weights: Whole
    """In multiples of the weights' step."""
    values: Mapping[str, Whole]
    """By variable, in multiples of its step; 0 where the cell is empty and to be imputed."""
    codes: Mapping[str, Codes]
    """By attribute the place of its value among those of the plan; -1 where the cell is empty and to be imputed."""
    empty: Mapping[str, NDArray[np.bool_]]
    """By imputed attribute or variable, which records have no value."""
    clusters: Whole | None
    """The number of each record's primary unit, from 0 on."""
    replicates: tuple[NDArray[np.float64], ...]
    """Replicate weights, for the confidential comparison."""
    changed: Mapping[str, int]
    """By column, how many cells were cut at the bounds."""
    weights_in_file: float | None = None
    """The sum of the weights before the plan's rule; None where there are no weights."""
    ids: Mapping[str, Repeats] = field(default_factory=dict)
    """By column that looks like an id of the unit, how its values repeat."""
    without_values: tuple[str, ...] = ()
    """Columns of variables and attributes in which every cell is empty."""

    @property
    def strata(self) -> Whole:
        """The number of each record's stratum; 0 where there are none."""
        strata = self.plan.design.strata
        return np.zeros(self.rows, dtype=np.int64) if strata is None else self.codes[strata].astype(np.int64)

    @property
    def primary_units(self) -> Whole:
        """By stratum how many primary units have a record in the file."""
        strata, sizes = self.strata, self.plan.selected_units or (None,)
        if self.clusters is not None:
            strata = strata[np.unique(self.clusters, return_index=True)[1]]
        return np.bincount(strata, minlength=len(sizes))

    @property
    def cut(self) -> bool:
        """Whether anything was cut at the plan's bounds."""
        return any(self.changed.values())

    def cells(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The number of each record's cell by some attributes or recodes, the last one fastest."""
        found = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            places, number = _recoded(self.plan, name)
            found = found * number + places[self.codes[self.plan.attribute(name).name]]
        return found

    def with_values(self, values: Mapping[str, Whole], codes: Mapping[str, Codes]) -> Records:
        """The same records with some columns filled in."""
        return replace(self, values={**self.values, **values}, codes={**self.codes, **codes})


def inputs(plan: SurveyPlan, data: Data | None = None) -> dict[str, Data]:
    """The path or frame that is read, by the name of the table."""
    given = by_table(data, TABLE, ()).get(TABLE, plan.input.path)
    if given is None:
        raise errors.survey_plan("The input", "must have a path, or be given in Python")
    return {TABLE: given}


def read_records(plan: SurveyPlan, data: Data | None = None, told: Told | None = None) -> Records:
    """Read the file of a plan, or a path or frame in its place; ``told`` is told the share that is read."""
    opened = _opened(plan, inputs(plan, data)[TABLE])
    ids = id_columns(plan, opened.kinds)
    table = _read(opened, plan, [name for one, within in ids.items() for name in (one, *within)], told)
    opened.require_unchanged()
    _require_number(plan, table.rows)
    changed: dict[str, int] = {}
    imputed = {one.of for one in plan.imputation}
    values, empty = {}, {}
    for variable in plan.variables:
        numbers, gone = _values(variable, table[variable.column or variable.name], variable.name in imputed, changed)
        values[variable.name] = numbers
        if variable.name in imputed:
            empty[variable.name] = gone
    codes = {}
    for attribute in plan.attributes:
        if attribute.variable is None:
            column = table[attribute.column or attribute.name]
            codes[attribute.name] = _codes(attribute, column, attribute.name in imputed)
            if attribute.name in imputed:
                empty[attribute.name] = codes[attribute.name] < 0
    clusters = _clusters(plan, table, codes)
    records = Records(
        plan,
        table.rows,
        _weights(plan, table, changed, codes),
        values,
        codes,
        empty,
        clusters,
        _replicates(plan, table),
        changed,
        None if plan.weights is None else _total(table[plan.weights.column]),
        repeated_ids(plan, table, ids, clusters),
        tuple(name for name in _told(plan) if table[name].values.null_count == table[name].cardinality),
    )
    _require_room(records)
    return with_intervals(records)


def with_intervals(records: Records) -> Records:
    """Adds the attributes that cut a variable into intervals; again after the variable was imputed."""
    plan, found = records.plan, {}
    for attribute in plan.attributes:
        if attribute.variable is not None:
            step = plan.variable(attribute.variable).step
            inner = np.array([int(cut / step) if (cut / step).denominator == 1 else -(-cut // step) for cut in
                              attribute.cuts[1:-1]], dtype=np.int64)  # fmt: skip
            found[attribute.name] = np.searchsorted(inner, records.values[attribute.variable], side="right").astype(
                np.int32
            )
    return records.with_values({}, found)


def columns_of(plan: SurveyPlan) -> list[str]:
    """The columns of the file that a plan reads, each once."""
    found = _told(plan)
    found += [plan.weights.column] if plan.weights is not None else []
    found += [plan.design.clusters] if plan.design.clusters is not None else []
    found += plan.design.replicates.columns if plan.design.replicates is not None else ()
    return list(dict.fromkeys(found))


def _told(plan: SurveyPlan) -> list[str]:
    """The columns of the file that hold variables and attributes."""
    found = [one.column or one.name for one in plan.variables]
    return found + [one.column or one.name for one in plan.attributes if one.variable is None]


# -- one column at a time ----------------------------------------------------------------------------------------


def _opened(plan: SurveyPlan, given: object) -> Input:
    """The file; columns that the plan adds up or weighs with are numbers also in CSV files, where cells are text."""
    options = plan.input.options()
    opened = open_input(TABLE, given, options)
    texts = [name for name in _numeric(plan) if pa.types.is_string(opened.kinds.get(name, pa.null()))]
    untyped = {name: "number" for name in texts if name not in options.types}
    if untyped and opened.format == "csv" and isinstance(given, str | os.PathLike):
        return open_input(TABLE, given, replace(options, types={**untyped, **options.types}))
    return opened


def _numeric(plan: SurveyPlan) -> list[str]:
    """The columns of weights, replicate weights and variables."""
    found = [one.column or one.name for one in plan.variables]
    found += [plan.weights.column] if plan.weights is not None else []
    return [*found, *(plan.design.replicates.columns if plan.design.replicates is not None else ())]


def _read(opened: Input, plan: SurveyPlan, more: Sequence[str], told: Told | None) -> Table:
    wanted = columns_of(plan)
    missing = [name for name in wanted if name not in opened.kinds]
    if missing:
        raise errors.missing_columns(TABLE, missing, opened.kinds)
    # A file of records that are only counted has no column to read; any one tells how many there are.
    return read_table(opened, list(dict.fromkeys([*wanted, *more])) or list(opened.kinds)[:1], told=told).table


def _require_number(plan: SurveyPlan, rows: int) -> None:
    most = plan.sample.most
    if rows < plan.sample.fewest or (most is not None and rows > most):
        raise errors.survey_rows(rows, plan.sample.fewest, most)


def _numbers(column: Column) -> tuple[NDArray[Any], NDArray[np.bool_], int]:
    """The distinct values of a column in whole numbers of 1 / scale, which of them are empty, and the scale."""
    numbers, empty, digits = whole_array(column)
    if numbers.dtype != object and largest(numbers) >= LARGEST:
        numbers = numbers.astype(object)
    return numbers, empty, 10**digits


def _values(
    variable: VariableSection, column: Column, imputed: bool, changed: dict[str, int]
) -> tuple[Whole, NDArray[np.bool_]]:
    """The values of a variable in multiples of its step, and which records have none."""
    numbers, empty, scale = _numbers(column)
    many = np.bincount(column.codes, minlength=column.cardinality)
    if empty.any() and variable.missing is None and not imputed:
        raise errors.survey_empty(column.name, int(many[empty].sum()))
    low, high = variable.lower * scale, variable.upper * scale
    below, above = ~empty & (numbers < -(-low // 1)), ~empty & (numbers > high // 1)
    if (rows := int(many[below | above].sum())) and variable.outside == "refuse":
        raise errors.survey_outside(column.name, rows, written(variable.lower), written(variable.upper))
    changed[column.name] = rows
    ratio = Fraction(1) / (scale * variable.step)
    found, exact = multiples(numbers, ratio)
    between = ~exact & ~empty & ~below & ~above
    if (rows := int(many[between].sum())) and variable.rounding == "refuse":
        raise errors.survey_off_lattice(column.name, rows, written(variable.step))
    found[below], found[above] = int(variable.lower / variable.step), int(variable.upper / variable.step)
    found[empty] = int((variable.missing or 0) / variable.step)
    return found[column.codes], empty[column.codes]


def multiples(numbers: NDArray[Any], ratio: Fraction) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Whole numbers times a ratio, rounded to the nearest, and which of them were whole; exact for any size."""
    if numbers.dtype != object and max(largest(numbers) * ratio.numerator, 2 * ratio.denominator) >= LARGEST:
        numbers = numbers.astype(object)
    return nearest(numbers * ratio.numerator, ratio.denominator)


def _codes(attribute: AttributeSection, column: Column, imputed: bool) -> Codes:
    """The place of each record's value among those that the plan lists."""
    found = pc.index_in(as_text(column.values), value_set=pa.array(attribute.values, pa.string()), skip_nulls=True)
    places = np.array(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)  # a copy, to be changed
    empty = np.asarray(column.values.is_null().to_numpy(zero_copy_only=False))
    if attribute.missing is not None:
        places[empty] = attribute.values.index(attribute.missing)
    strange = (places < 0) & ~(empty & imputed)
    if strange.any():
        rows = int(np.bincount(column.codes, minlength=column.cardinality)[strange].sum())
        raise errors.DataError(
            "survey-category",
            f"{rows:,} records have no value in column '{column.name}', or one that the plan does not list.",
            "List every value that can occur, from the code book; for empty cells say what they count as (missing = "
            "...).",
        )
    return places[column.codes]


def _weights(plan: SurveyPlan, table: Table, changed: dict[str, int], codes: Mapping[str, Codes]) -> Whole:
    if plan.weights is None:
        return np.ones(table.rows, dtype=np.int64)
    column, rule = table[plan.weights.column], plan.weight_rule
    assert rule is not None
    numbers, empty, scale = _numbers(column)
    if numbers.dtype == object:
        raise errors.survey_digits(column.name)
    given, gone = numbers[column.codes], empty[column.codes]
    weights, effects = rule.applied(given, scale, gone)
    changed[column.name] = effects.below + effects.above
    strata = plan.design.strata
    if strata is not None:
        limits = [plan.stratum_weights(value) for value in plan.attribute(strata).values]
        low, high = (np.array([int(end / rule.step) for end in ends]) for ends in zip(*limits, strict=True))
        places = codes[strata]
        outside = (weights < low[places]) | (weights > high[places])
        if outside.any() and plan.weights.outside == "refuse":
            raise errors.survey_outside(column.name, int(outside.sum()), "the lower", "the upper bound of its stratum")
        changed[column.name] += int(outside.sum())
        weights = np.clip(weights, low[places], high[places])
    return weights


def _total(column: Column) -> float:
    """The sum of a column as it stands in the file."""
    numbers, _, scale = _numbers(column)
    many = np.bincount(column.codes, minlength=column.cardinality)
    return float(numbers.astype(np.float64) @ many) / scale


def _clusters(plan: SurveyPlan, table: Table, codes: Mapping[str, Codes]) -> Whole | None:
    """The number of each record's primary unit; clusters of one name in two strata are two clusters."""
    if plan.design.clusters is None:
        return None
    column = table[plan.design.clusters]
    if column.values.null_count:
        many = np.bincount(column.codes, minlength=column.cardinality)
        raise errors.survey_empty(column.name, int(many[column.values.is_null().to_numpy(zero_copy_only=False)].sum()))
    numbers = column.codes.astype(np.int64)
    if plan.design.strata is not None:
        numbers = numbers + codes[plan.design.strata].astype(np.int64) * column.cardinality
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _replicates(plan: SurveyPlan, table: Table) -> tuple[NDArray[np.float64], ...]:
    if plan.design.replicates is None:
        return ()
    found = []
    for name in plan.design.replicates.columns:
        numbers, empty, scale = _numbers(table[name])
        if empty.any():
            raise errors.survey_empty(name, int(empty[table[name].codes].sum()))
        found.append((numbers.astype(np.float64) / scale)[table[name].codes])
    return tuple(found)


def _require_room(records: Records) -> None:
    """Raise if a sum of the plan could be too large for whole numbers of 64 bits."""
    plan = records.plan
    weight = int(records.weights.max(initial=0))
    if weight * records.rows >= LARGEST and plan.weights is not None:
        raise errors.survey_digits(plan.weights.column)
    for query in plan.queries:
        if query.of is not None:
            variable = plan.variable(query.of)
            value = max(abs(variable.lower), abs(variable.upper)) / variable.step
            if weight * value * records.rows >= LARGEST:
                raise errors.survey_digits(variable.column or variable.name)


def _recoded(plan: SurveyPlan, name: str) -> tuple[Whole, int]:
    """For each value of the attribute behind a name its place among the values of the name, and their number."""
    schema = plan.schema_of([name])
    values = schema.values(name)
    recode = next((one for one in plan.recodes if one.name == name), None)
    if recode is None:
        return np.arange(len(values), dtype=np.int64), len(values)
    place = {value: at for at, group in enumerate(recode.groups.values()) for value in group}
    labels = plan.attribute(name).labels
    return np.array([place[label] for label in labels], dtype=np.int64), len(values)
