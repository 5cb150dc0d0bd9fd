"""Counts the confidential tables in the finest geounits, and adds the counts up along the spine.

The invariant a reader must know: everything a release reads of the data is a :class:`Counted`. Places and values are
looked up in the public list and in the plan's domains; a value that is not there raises an error with a number of
rows, and is not quoted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.margins.areas import Areas
from stirred.margins.spine import Index, Spine, build_spine
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import Data
from stirred.releases.plans import InputSection, by_table
from stirred.tables import Input, open_input
from stirred.tables.columns import Column, as_text, encoded
from stirred.tables.reading.inputs import Told, shares
from stirred.tables.reading.table_reader import read_parts, read_table
from stirred.topdown.data.histograms import Histograms, added_up, marginal_by
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TableSection

GEOGRAPHY = "geography"
"""What the public list of geounits is called among the inputs."""
MOST = 1 << 31
"""Records that one row may stand for; with as many rows as a file can have, sums stay far below 2^63."""
HELD = 1 << 22
"""Keys that may wait to be put together."""
_RANGES = 16
"""Ranges of keys that are put together one after another: few, so that in large tables each is a piece of memory that
goes back to the system when it is freed."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Counted:
    """Tables on a public spine, by the histograms of its leaves: the confidential data, or what was fitted to them."""

    plan: TopDownPlan
    spine: Spine
    leaves: Mapping[str, Histograms]
    areas: tuple[Areas, ...] = ()
    """The target areas of the plan, where they were read."""

    def histograms(self, table: str, level: int) -> Histograms:
        """The histograms of all units of a level."""
        return added_up(self.leaves[table], self.spine.first_leaf(level))

    def counts(self, table: str, level: str, by: tuple[str, ...] = ()) -> NDArray[np.int64]:
        """A row for each unit of a level, a column for each group of the marginal ``by``."""
        schema = self.plan.table(table).schema_of
        histograms = self.histograms(table, self.spine.levels.index(level))
        return marginal_by(histograms, schema, by)


def inputs(plan: TopDownPlan, data: Data | None = None) -> dict[str, Data]:
    """By table, and for the list of places, the path or frame that is read."""
    names = [table.name for table in plan.tables]
    given = by_table(data, names[0], [*names[1:], GEOGRAPHY])
    sections = {GEOGRAPHY: plan.spine.input} | {table.name: table.input for table in plan.tables}
    return {name: _source(name, given.get(name), section) for name, section in sections.items()}


def count_tables(
    plan: TopDownPlan, data: Data | None = None, *, with_areas: bool = False, told: Told | None = None
) -> Counted:
    """Read and count everything a plan names; target areas only if they are asked for.

    ``data`` replaces the plan's paths: a mapping of paths or frames by the name of the table, the list of places under
    ``"geography"``; a path or frame alone is the first table's. ``told`` is told the share of the tables that is read.
    """
    names = [table.name for table in plan.tables]
    given = by_table(data, names[0], [*names[1:], GEOGRAPHY])
    # All files are opened before the first is read and compared after the last: so they are of one moment.
    more = [one.column for one in plan.targets] if with_areas else []
    places = _open(GEOGRAPHY, given.get(GEOGRAPHY), plan.spine.input, (*_listed_columns(plan), *more))
    opened = {table.name: _open_table(plan, table, given.get(table.name)) for table in plan.tables}
    spine, areas = _spine_of(plan, places, with_areas)
    each = shares(list(opened.values()), told or (lambda done: None))
    leaves = {
        table.name: _count_table(plan, table, spine, opened[table.name], one)
        for table, one in zip(plan.tables, each, strict=True)
    }
    for one in (places, *opened.values()):
        one.require_unchanged()
    return Counted(plan, spine, leaves, areas)


def read_spine(plan: TopDownPlan, data: Any = None) -> Spine:
    """The spine of the public list of geounits."""
    return _spine_of(plan, _open(GEOGRAPHY, data, plan.spine.input, _listed_columns(plan)))[0]


def _spine_of(plan: TopDownPlan, opened: Input, with_areas: bool = False) -> tuple[Spine, tuple[Areas, ...]]:
    names = _listed_columns(plan)
    targets = plan.targets if with_areas else ()
    read = read_table(opened, list(dict.fromkeys([*names, *(one.column for one in targets)]))).table
    columns = read.pick(names)
    for name, column in zip(names, columns, strict=True):
        if column.values.null_count:
            missing = np.flatnonzero(column.codes == column.cardinality - 1)
            finest = columns[-1].decode(columns[-1].codes[missing[:1]])[0].as_py()
            which = "" if finest is None else f", the first at {names[-1]} {finest}"
            raise errors.nested_levels(name, f"has nulls in {len(missing):,} rows of the list{which}")
    if plan.spine.input.prefixes:
        columns = [*prefix_columns(columns[0], plan.spine.input.prefixes), columns[0]]
    spine, leaf = build_spine(plan.spine.levels, columns, plan.spine.root)
    return spine, tuple(Areas.of_rows(one.words, read[one.column], spine, leaf) for one in targets)


def _listed_columns(plan: TopDownPlan) -> tuple[str, ...]:
    """The columns of the list of geounits that are read: one for each level, or the code that has them as prefixes."""
    places = plan.spine.input
    return (places.code or plan.spine.levels[-1],) if places.prefixes else plan.spine.levels


def prefix_columns(codes: Column, lengths: Mapping[str, int]) -> list[Column]:
    """For each level above the finest the column of its codes: the first characters of the finest code."""
    texts, found = as_text(codes.values), []
    for level, length in lengths.items():
        short = pc.less_equal(pc.utf8_length(texts), length)
        if pc.any(short).as_py():
            raise errors.topdown_code(texts.filter(short)[0].as_py(), level, length)
        above = encoded(level, pc.utf8_slice_codeunits(texts, 0, length), GEOGRAPHY)
        found.append(Column(level, above.codes[codes.codes], above.values))
    return found


def _summed(keys: Index, counts: NDArray[np.int64] | None) -> tuple[Index, NDArray[np.int64]]:
    """The distinct keys in ascending order with the sum of their counts (one each where none are given), if positive.

    >>> [one.tolist() for one in _summed(np.array([3, 1, 3]), None)]
    [[1, 3], [1, 2]]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate([[len(keys) > 0], ordered[1:] != ordered[:-1]]))
    if counts is None:
        return ordered[first], np.diff(np.append(first, len(keys)))
    sums = np.add.reduceat(counts[order], first) if len(first) else counts
    return ordered[first][sums > 0], sums[sums > 0]


# -- reading -------------------------------------------------------------------------------------------------


def _source(name: str, data: Any, section: InputSection) -> Any:
    source = data if data is not None else section.path
    if source is None:
        raise errors.topdown_plan(f"The input of '{name}'", "must have a path, or be given in Python")
    return source


def _open(name: str, data: Any, section: InputSection, columns: tuple[str, ...]) -> Input:
    opened = open_input(name, _source(name, data, section), section.options())
    missing = [column for column in columns if column not in opened.kinds]
    if missing:
        raise errors.missing_columns(name, missing, opened.kinds)
    return opened


def _domains(table: TableSection) -> dict[str, Sequence[str]]:
    return {one.column or one.name: one.values for one in table.attributes}


def _open_table(plan: TopDownPlan, table: TableSection, data: Any) -> Input:
    place = table.place or plan.spine.levels[-1]
    return _open(table.name, data, table.input, (place, *_domains(table), *([table.count] if table.count else [])))


def _count_table(plan: TopDownPlan, table: TableSection, spine: Spine, opened: Input, told: Told) -> Histograms:
    place = table.place or plan.spine.levels[-1]
    histograms = count_rows(opened, table.name, spine, place, _domains(table), table.count, told)
    for zero in table.zeros:
        impossible = table.schema_of.where(zero)[histograms.cells]
        if impossible.any():
            words = " and ".join(f"{name} {errors.listed(values, 'or')}" for name, values in zero.items())
            raise errors.topdown_zero(table.name, int(histograms.counts[impossible].sum()), words)
    return histograms


def count_rows(
    opened: Input,
    name: str,
    spine: Spine,
    place: str,
    domains: Mapping[str, Sequence[str]],
    count: str | None = None,
    told: Told | None = None,
) -> Histograms:
    """Count rows by leaf and by the values of some columns, part by part: only positive cells are held together."""
    strange = dict.fromkeys((place, *domains), 0)
    cells = math.prod(len(values) for values in domains.values())
    tally, leaves = _Tally(spine.leaves * cells), Places(spine.names[-1])
    for part in read_parts(opened, (place, *domains, *([count] if count else [])), told):
        key = leaves.of(part[place])
        strange[place] += int((key < 0).sum())
        for column, values in domains.items():
            codes = _looked_up(part[column], pa.array(values))
            strange[column] += int((codes < 0).sum())
            key = key * len(values) + codes
        if not any(strange.values()):
            tally.add(key, _counts(name, part[count]) if count else None)
    if strange[place]:
        raise errors.topdown_place(name, place, strange[place])
    for column, rows in strange.items():
        if rows:
            raise errors.DataError(
                "topdown-category",
                f"In table '{name}' {rows:,} rows have no value in column '{column}', or one that the plan does not "
                "list.",
                "List every value that can occur, from the code book, and give rows without a value one of them.",
            )
    return tally.histograms(spine.leaves, cells)


def count_release(release: ReleaseFolder, plan: TopDownPlan, spine: Spine, table: TableSection) -> Histograms:
    """The microdata of a release, counted in the leaves."""
    return count_rows(release.open_table(table.name), table.name, spine, plan.spine.levels[-1], _domains(table))


class _Tally:
    """Counts by key, put together whenever the parts have outgrown an eighth of what is known.

    Keys below ``most`` are known in ranges, and put together range by range: a second copy of what is known, which is
    nearly all the memory that counting takes, is never there.
    """

    def __init__(self, most: int) -> None:
        self._edges = np.linspace(0, most, _RANGES + 1).astype(np.int64)
        nothing = np.empty(0, dtype=np.int64)
        self._known = [(nothing, nothing) for _ in range(_RANGES)]
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._waiting = 0

    def add(self, keys: NDArray[np.int64], counts: NDArray[np.int64] | None) -> None:
        self._parts.append(_summed(keys, counts))
        self._waiting += len(self._parts[-1][0])
        if self._waiting > max(HELD, sum(len(keys) for keys, _ in self._known) // 8):
            self._settle()

    def _settle(self) -> None:
        if not self._parts:
            return
        keys, counts = _summed(*(np.concatenate(one) for one in zip(*self._parts, strict=True)))
        self._parts, self._waiting = [], 0
        places = np.searchsorted(keys, self._edges).tolist()
        for number, (begin, end) in enumerate(pairwise(places)):
            if end > begin:
                both = zip(self._known[number], (keys[begin:end], counts[begin:end]), strict=True)
                self._known[number] = _summed(*(np.concatenate(one) for one in both))

    def histograms(self, units: int, cells: int) -> Histograms:
        self._settle()
        length = sum(len(keys) for keys, _ in self._known)
        each = np.empty(length, dtype=np.int32)
        counts = np.empty(length, dtype=np.int64)
        many = np.zeros(units + 1, dtype=np.int64)
        at = 0
        while self._known:
            keys, numbers = self._known.pop(0)
            here = slice(at, at + len(keys))
            unit, each[here] = np.divmod(keys, cells)
            counts[here] = numbers
            if len(unit):
                many[unit[0] + 1 : unit[-1] + 2] += np.bincount(unit - unit[0])
            at += len(keys)
        return Histograms(np.cumsum(many), each, counts)


class Places:
    """Where names stand in a long list, looked up many times: the list is sorted once."""

    def __init__(self, names: pa.Array) -> None:
        texts = _bytes(names)
        self._order = np.argsort(texts, kind="stable")
        self._sorted = texts[self._order]

    def of(self, column: Column) -> NDArray[np.int64]:
        """The place of each row's value; -1 where it is not in the list."""
        wanted = _bytes(column.values)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        found = (self._sorted[at] == wanted) & column.values.is_valid().to_numpy(zero_copy_only=False)
        # numpy leaves zero bytes at the end of a text out, and a name with them is another name.
        found &= ~pc.match_substring(as_text(column.values), "\0").fill_null(False).to_numpy(zero_copy_only=False)
        return np.asarray(np.where(found, self._order[at], -1)[column.codes], dtype=np.int64)


def _bytes(values: pa.Array) -> NDArray[np.bytes_]:
    """Texts as numpy has them, all of one width; made in parts, and without an object for each."""
    texts = as_text(values).fill_null("")
    width = max(1, pc.max(pc.binary_length(texts)).as_py() or 0)
    found = np.empty(len(texts), dtype=f"S{width}")
    step = max(1, HELD // width)
    for start in range(0, len(texts), step):
        padded = pc.ascii_rpad(texts[start : start + step], width, padding="\0")
        # No text is longer than the width, so what is padded has its texts one after another, each of that width.
        found[start : start + step] = np.frombuffer(padded.buffers()[2], dtype=found.dtype, count=len(padded))
    return found


def _looked_up(column: Column, known: pa.Array) -> NDArray[np.int64]:
    """For each row the place of its value among ``known``, both as text; -1 where it is not there."""
    found = pc.index_in(as_text(column.values), value_set=as_text(known), skip_nulls=True)
    places = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return places[column.codes]


def _counts(table: str, column: Column) -> NDArray[np.int64]:
    if column.values.null_count:
        raise errors.topdown_count(table, column.name, "have nulls")
    try:
        values = column.values.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise errors.topdown_count(table, column.name, "are not whole numbers") from None
    if bool(np.any(values < 0)):
        raise errors.topdown_count(table, column.name, "are negative somewhere")
    if bool(np.any(values > MOST)):
        raise errors.topdown_count(table, column.name, f"are above {MOST:,} somewhere")
    return np.asarray(values[column.codes], dtype=np.int64)
