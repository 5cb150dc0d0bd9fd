"""Made data for an audit of TopDown measurements with the true answer to every query, and the noise that runs show.

Places and records are invented from the plan alone; no confidential data are read. Some places are empty and some
cells hold nothing, others hold a few records or a dozen, so that noise which depends on the count shows. The data
keep the plan's zeros and constraints, as every program that follows the plan demands.

Noise is the measured value minus the true count of the made data. Only sums, counts and signs are kept, so memory
does not grow with the number of runs. Each value enters with its own place, that of its table, level, geounit, query
and cell; rows without a place, rows that repeat one and places without a row are counted apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred.errors import StirredError
from stirred.lab.audit.laws import gaussian
from stirred.lab.audit.noise_audit import fit_edges
from stirred.lab.audit.programs import Tables, measurements_of
from stirred.topdown.audit_pairs import MEASUREMENTS
from stirred.topdown.data.constraints import Known, require_kept
from stirred.topdown.data.counting import GEOGRAPHY, Counted, count_tables
from stirred.topdown.fitting.relations import relation_groups, require_related
from stirred.topdown.measuring import Entry, cell_labels, entries
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TOTAL, ConstraintSection, RelationSection, TableSection

KEYS = ("table", "level", "geounit", "query", "cell")
"""Columns of measurements that say what was measured; a column ``value`` has the noisy count."""

_UNITS = 6
"""Units of the coarsest level that has several; each finer level has two more."""
_EMPTY = 3
"""Every third leaf is empty."""
_PATTERN = (3, 0, 1, 0, 12)
_OCCUPIED = 200
"""Cells of a leaf that may hold records, where no constraint asks for more."""


@dataclass(frozen=True, eq=False)
class Group:
    """One query at one level: what it is called, its noise by the plan, and the true counts, a row for each unit."""

    entry: Entry
    truth: NDArray[np.int64]
    planned: bool = True
    """Whether the plan has this query at this level."""

    @property
    def words(self) -> str:
        """What is measured, in words."""
        return f"'{self.entry.query}' of {self.entry.table} at level '{self.entry.level}'"


@dataclass(frozen=True, eq=False)
class MadeData:
    """Tables for a program, by name, and their true counts."""

    plan: TopDownPlan
    tables: Mapping[str, pl.DataFrame]
    counted: Counted

    def groups(self) -> list[Group]:
        """All queries of the plan at all levels, in its order."""
        found = entries(self.plan, self.counted.spine)
        return [Group(one, self.counted.counts(one.table, one.level, one.by)) for one in found]

    def unplanned(self, table: str, level: str, query: str) -> Group | None:
        """A query that the plan does not have at this level; None if its true counts are not known."""
        names = () if query == TOTAL else tuple(query.split("*"))
        listed = [one for one in self.plan.tables if one.name == table]
        spine = self.counted.spine
        if not listed or level not in spine.levels or not set(names) <= set(listed[0].schema_of.names):
            return None
        units, cells = spine.units(spine.levels.index(level)), listed[0].schema_of.number_of_groups(names)
        entry = Entry(table, level, query, names, units, cells, "0", "0", "")
        return Group(entry, self.counted.counts(table, level, names), planned=False)

    def keys(self, entry: Entry) -> pl.DataFrame:
        """The rows that measurements of a query must have, in the order of its units and cells."""
        spine = self.counted.spine
        names = spine.names[spine.levels.index(entry.level)].to_pylist()
        labels = cell_labels(self.plan.table(entry.table).schema_of, entry.by).to_pylist()
        return pl.DataFrame(
            {
                "table": [entry.table] * (entry.units * entry.cells),
                "level": [entry.level] * (entry.units * entry.cells),
                "geounit": [name for name in names for _ in labels],
                "query": [entry.query] * (entry.units * entry.cells),
                "cell": labels * entry.units,
            }
        )


def make_data(plan: TopDownPlan) -> MadeData:
    """Small data that fit a plan; raises if its zeros and constraints leave none that this module can make."""
    plan = plan.model_copy(update={"earlier": ()})  # earlier releases matter to the fit only
    leaves = _UNITS + 2 * (len(plan.spine.levels) - 1)
    tables = {GEOGRAPHY: _geography(plan, leaves)}
    counts = _counts(plan)
    for table in plan.tables:
        tables[table.name] = _rows(plan, table, counts[table.name], tables[GEOGRAPHY][plan.spine.levels[-1]].to_list())
    try:
        counted = count_tables(plan, tables)
        require_kept(counted, Known.of(counted))
        require_related(counted)
    except StirredError:
        raise errors.audit_question(
            "The zeros and constraints of this plan", "must leave room for data that the audit can make"
        ) from None
    return MadeData(plan, tables, counted)


def _geography(plan: TopDownPlan, leaves: int) -> pl.DataFrame:
    columns = {}
    for number, level in enumerate(plan.spine.levels):
        last = _UNITS + 2 * number - 1
        columns[level] = [f"{level} {min(leaf, last) + 1:02d}" for leaf in range(leaves)]
    return pl.DataFrame(columns)


def _counts(plan: TopDownPlan) -> dict[str, NDArray[np.int64]]:
    """How many records each cell of an occupied leaf has, by table."""
    found, possible = {}, {}
    for table in plan.tables:
        allowed = np.ones(table.schema_of.cells, dtype=np.bool_)
        for zero in table.zeros:
            allowed &= ~table.schema_of.where(zero)
        cells = np.flatnonzero(allowed)
        counts = np.zeros(len(allowed), dtype=np.int64)
        if table.name in {one.counted for one in plan.constraints} | {one.counted for one in plan.relations}:
            counts[cells] = 1  # nothing is ruled out elsewhere because nothing is counted here
        else:
            counts[cells[:_OCCUPIED]] = np.resize(_PATTERN, min(len(cells), _OCCUPIED))
        found[table.name], possible[table.name] = counts, allowed
    for _ in plan.constraints:  # a table that is raised may be counted in another constraint
        for one in plan.constraints:
            _raise_to(plan, one, found, possible[one.table])
    for _ in plan.relations:
        for relation in plan.relations:
            _relate(plan, relation, found, possible)
    return found


def _relate(
    plan: TopDownPlan,
    relation: RelationSection,
    found: dict[str, NDArray[np.int64]],
    possible: Mapping[str, NDArray[np.bool_]],
) -> None:
    """Add records to the first possible cell of each group of either table that has fewer than a relation demands."""
    mine, theirs, number = relation_groups(plan, relation)
    for group in range(number):
        inside, there = mine == group, theirs == group
        some, others = int(found[relation.table][inside].sum()), int(found[relation.counted][there].sum())
        most = relation.at_most or (some if relation.zero_without else 0)
        lacking = (
            (relation.table, inside, relation.at_least * others - some),
            (relation.counted, there, -(-some // most) - others if most else 0),
        )
        for name, cells, missing in lacking:
            if missing > 0 and (cells & possible[name]).any():
                found[name][np.flatnonzero(cells & possible[name])[0]] += missing


def _raise_to(
    plan: TopDownPlan, one: ConstraintSection, found: dict[str, NDArray[np.int64]], allowed: NDArray[np.bool_]
) -> None:
    """Add records to the first possible cell of each group that has fewer than a constraint demands."""
    mine, theirs = plan.table(one.table).schema_of, plan.table(one.counted).schema_of
    for label in theirs.labels(tuple(one.each.values())):
        values = dict(zip(one.each, label, strict=True))
        if any(value not in mine.values(name) for name, value in values.items()):
            continue
        inside = mine.where({name: [value] for name, value in values.items()} or one.where)
        there = theirs.where({one.each[name]: [value] for name, value in values.items()})
        missing = one.at_least * int(found[one.counted][there].sum()) - int(found[one.table][inside].sum())
        if missing > 0 and (inside & allowed).any():
            found[one.table][np.flatnonzero(inside & allowed)[0]] += missing


def _rows(plan: TopDownPlan, table: TableSection, counts: NDArray[np.int64], leaves: list[str]) -> pl.DataFrame:
    """A row for each record of the occupied leaves, or with a count column one for each cell that holds any."""
    cells = np.flatnonzero(counts)
    number = counts[cells] if table.count is None else np.ones(len(cells), dtype=np.int64)
    each = np.repeat(cells, number)
    occupied = [leaf for place, leaf in enumerate(leaves) if place % _EMPTY != _EMPTY - 1]
    labels = table.schema_of.labels(tuple(one.name for one in table.attributes))
    columns: dict[str, pl.Series] = {
        table.place or plan.spine.levels[-1]: pl.Series([leaf for leaf in occupied for _ in each], dtype=pl.String)
    }
    for at, attribute in enumerate(table.attributes):
        values = [labels[cell][at] for cell in each] * len(occupied)
        columns[attribute.column or attribute.name] = pl.Series(values, dtype=pl.String)
    if table.count is not None:
        columns[table.count] = pl.Series(np.tile(counts[each], len(occupied)))
    return pl.DataFrame(columns)


_ALIGNED = 512
"""Positions of each query that are compared with those of every other."""


class Agreement:
    """How often noise has the same sign as other noise: fair coins if the two are independent, whatever their scale."""

    def __init__(self, groups: int) -> None:
        self.same, self.both = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)

    def add(self, product: NDArray[np.int8], group: NDArray[np.int64]) -> None:
        """Products of two signs each, and the group that they belong to."""
        self.same += np.bincount(group, product > 0, minlength=len(self.same)).astype(np.int64)
        self.both += np.bincount(group, product != 0, minlength=len(self.both)).astype(np.int64)


class Seen:
    """What all questions need of the runs, added up run by run."""

    def __init__(self, made: MadeData) -> None:
        self.made, self.planned = made, made.groups()
        self.groups: list[Group] = []
        self.runs = self.whole_runs = self.rows_missing = self.rows_twice = self.fractional = 0
        self.unknown: Counter[tuple[str, ...]] = Counter()
        self.first_missing = ""
        self.repeated: tuple[int, int] | None = None
        self._keys: pl.DataFrame | None = None
        self._hashes: dict[bytes, int] = {}
        self._before = np.empty(0, dtype=np.int8)

    def _begin(self, keys: pl.DataFrame) -> None:
        """Know all groups, also those that the first run shows and the plan does not have, and where they stand."""
        listed = {(one.entry.table, one.entry.level, one.entry.query) for one in self.planned}
        others = [row for row in keys.select("table", "level", "query").unique().sort("table", "level", "query").rows()
                  if row not in listed and None not in row]  # fmt: skip
        self.groups = [*self.planned, *filter(None, (self.made.unplanned(*row) for row in others))]
        index = pl.concat([self.made.keys(group.entry) for group in self.groups])
        if index.is_duplicated().any():
            raise errors.audit_question("The cells of each query", "must have different names")
        self._index = index.with_row_index("place")
        sizes = np.array([group.truth.size for group in self.groups])
        self._group = np.repeat(np.arange(len(sizes)), sizes)
        self._planned = self._group < len(self.planned)
        self._truth = np.concatenate([group.truth.ravel() for group in self.groups])
        self._class = 2 * self._group + (self._truth > 0)
        shape = 2 * len(sizes)
        self.counts, self.squares, self.sums = (np.zeros(shape) for _ in range(3))
        self.positive, self.nonzero = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.again_counts, self.again_squares = np.zeros(len(sizes)), np.zeros(len(sizes))
        self.runs_agree, self.units_agree, self.cells_agree = (Agreement(len(sizes)) for _ in range(3))
        number = len(self.planned)
        self.difference, self.both = np.zeros((number, number)), np.zeros((number, number))
        self._starts = np.concatenate([[0], np.cumsum(sizes)])[:number]
        self._unit_pairs, self._cell_pairs = _pairs(self.groups, by_unit=True), _pairs(self.groups, by_unit=False)
        variances = sorted({Fraction(group.entry.variance) for group in self.planned})
        self.laws = [gaussian(variance) for variance in variances]
        self.edges = [fit_edges(law) for law in self.laws]
        place = {variance: at for at, variance in enumerate(variances)}
        of_group = np.array([place[Fraction(group.entry.variance)] for group in self.planned])
        of_position = np.where(self._planned, of_group[np.minimum(self._group, number - 1)], -1)
        self._of_law = [np.flatnonzero(of_position == at) for at in range(len(variances))]
        self.cells = [np.zeros(len(edges) + 1, dtype=np.int64) for edges in self.edges]

    def add(self, made: Tables) -> None:
        """Add what one run of the program measured."""
        frame = measurements_of(self._with_table(made), KEYS)
        keys = frame.select(KEYS)
        if self._keys is None or not keys.equals(self._keys):
            if self._keys is None:
                self._begin(keys)
            self._keys = keys
            places = keys.join(self._index, on=list(KEYS), how="left", maintain_order="left", nulls_equal=True)["place"]
            self._places = places.fill_null(len(self._truth)).to_numpy().astype(np.int64)
        noise, there = self._noise(frame)
        self._statistics(noise, there)
        self._signs(np.sign(noise).astype(np.int8))
        if there[self._planned].all():
            self.whole_runs += 1
            digest = hashlib.blake2b(noise[self._planned].tobytes(), digest_size=16).digest()
            if (before := self._hashes.setdefault(digest, self.runs)) != self.runs:
                self.repeated = self.repeated or (before, self.runs)
        self.runs += 1

    def _with_table(self, made: Tables) -> Tables:
        """The measurements with the name of their table, which may be left out where the plan releases one."""
        frame, released = made.get(MEASUREMENTS), self.made.plan.released
        if frame is None or "table" in frame.columns or len(released) != 1:
            return made
        return {MEASUREMENTS: frame.with_columns(pl.lit(released[0].name).alias("table"))}

    def _noise(self, frame: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The noise of each value, 0 where it is missing, and whether it is there."""
        values, places, size = frame["value"].to_numpy(), self._places, len(self._truth)
        if values.dtype.kind == "f":
            self.fractional += int(np.count_nonzero(values != np.floor(values)))
            values = np.rint(np.clip(values, -(2.0**62), 2.0**62))
        known = places < size
        if not known.all():
            strange = frame.select("table", "level", "query").filter(~known)
            self.unknown.update(tuple(map(str, row)) for row in strange.rows())
            places, values = places[known], values[known]
        there, noise = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.int64)
        there[places] = True
        if self._planned.sum() > np.count_nonzero(there & self._planned):
            gone = np.flatnonzero(~there & self._planned)
            self.rows_missing += len(gone)
            self.first_missing = self.first_missing or self.groups[self._group[gone[0]]].words
        first = np.unique(places, return_index=True)[1]
        noise[places[first]] = values[first].astype(np.int64) - self._truth[places[first]]
        if len(first) < len(places):
            other = np.delete(np.arange(len(places)), first)
            self.rows_twice += len(other)
            again = values[other].astype(np.int64) - self._truth[places[other]]
            groups = self._group[places[other]]
            fresh = np.isin(groups, groups[again != noise[places[other]]])  # rows that are merely copied cost nothing
            self.again_counts += np.bincount(groups[fresh], minlength=len(self.groups))
            self.again_squares += np.bincount(
                groups[fresh], again[fresh].astype(float) ** 2, minlength=len(self.groups)
            )
        return noise, there

    def _statistics(self, noise: NDArray[np.int64], there: NDArray[np.bool_]) -> None:
        as_float, shape = noise.astype(np.float64), len(self.counts)
        self.counts += np.bincount(self._class, there, minlength=shape)
        self.squares += np.bincount(self._class, as_float**2, minlength=shape)
        self.sums += np.bincount(self._class, as_float, minlength=shape)
        self.positive += np.bincount(self._class, noise > 0, minlength=shape).astype(np.int64)
        self.nonzero += np.bincount(self._class, noise != 0, minlength=shape).astype(np.int64)
        for cells, edges, places in zip(self.cells, self.edges, self._of_law, strict=True):
            drawn_here = noise[places][there[places]]
            cells += np.bincount(np.searchsorted(edges, drawn_here, side="right"), minlength=len(cells))

    def _signs(self, signs: NDArray[np.int8]) -> None:
        if self.runs % 2:
            self.runs_agree.add(signs * self._before, self._group)
        self._before = signs
        for agreement, (one, other) in ((self.units_agree, self._unit_pairs), (self.cells_agree, self._cell_pairs)):
            agreement.add(signs[one] * signs[other], self._group[one])
        aligned = np.zeros((len(self.planned), _ALIGNED))
        for row, start, group in zip(aligned, self._starts, self.planned, strict=True):
            length = min(_ALIGNED, group.truth.size)
            row[:length] = signs[start : start + length]
        self.difference += aligned @ aligned.T
        self.both += np.abs(aligned) @ np.abs(aligned).T


def _pairs(groups: Sequence[Group], by_unit: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of neighbouring units of the same cell, or neighbouring cells of the same unit; each in one pair."""
    one, other, start = [], [], 0
    for group in groups:
        places = start + np.arange(group.truth.size).reshape(group.truth.shape)
        start += group.truth.size
        lines = places if by_unit else places.T
        even = len(lines) // 2 * 2
        one.append(lines[0:even:2].ravel())
        other.append(lines[1:even:2].ravel())
    return np.concatenate(one), np.concatenate(other)
