"""Writes the measurements of a release in the form of published noisy measurement files.

Each released table that has the attributes of a published one becomes a folder of its own, with a file for each level
and state, and beside the measurements what is known exactly. Internal codes are made from the codes of blocks, as far
as public readers tell how they are built: the last 16 digits of a block's are its published code.

The invariant a reader must know: values and variances are those of the release. Reading the files back gives the same
estimates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.spine import Index, Spine
from stirred.releases.folder.atomic import appearing
from stirred.topdown.data.histograms import Counts
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.measuring import Measurements, parts
from stirred.topdown.noisy_files.form import (
    BLOCK_CODE,
    CONSTRAINTS,
    EXACT,
    GEOCODE,
    LEVELS,
    NATION,
    PRODUCTS,
    QUERIES,
    QUERY,
    SHAPE,
    VALUE,
    VARIANCE,
    Product,
)
from stirred.topdown.plan.sections import TableSection

TOTALS = "totals.csv"
MOST_IN_FACILITY = 99_999
"""The upper bound on persons that files state for each facility and each housing unit."""
_ALIKE = {"occupancy": "h1"}
"""Attributes that published tables call otherwise."""
_PART = "part-00000.parquet"


def write_noisy_measurements(release: str | Path, out: str | Path, products: Sequence[Product] = PRODUCTS) -> list[str]:
    """Write the measurements of a TopDown release as noisy measurement files; returns lines that say what was written.

    The folder appears whole or not at all.
    """
    opened = MeasuredRelease.open(release)
    spine, measured = opened.spine, opened.measurements
    assert isinstance(measured, Measurements)
    if spine.levels != tuple(LEVELS.values())[-len(spine.levels) :]:
        raise errors.not_exportable(release, f"its levels must be the last of {', '.join(LEVELS.values())}")
    codes = _codes(spine, release)
    states = _states(spine, codes)
    pairs = [(table, _like(table, products)) for table in opened.plan.released]
    found = [(table, product) for table, product in pairs if product is not None]
    if not found:
        raise errors.not_exportable(release, "no table has the attributes and values of a published one")
    lines = []
    with appearing(Path(out)) as folder:
        for table, product in found:
            writer = _Writer(opened, measured, table, product, codes, states, folder / product.folder)
            rows = writer.write()
            lines.append(f"{table.name}: {rows:,} rows in {Path(out) / product.folder}")
        for table, _ in found:
            total = _invariant(opened, table.name, "state")
            if total is not None and len(set(codes["state"].to_pylist())) == len(total):
                names = [code[1:] for code in codes["state"].to_pylist()]
                rows_of = [f"{name},{count}" for name, count in zip(names, total[:, 0].tolist(), strict=True)]
                (folder / TOTALS).write_text("\n".join(["state,total", *rows_of]) + "\n", encoding="utf-8")
                lines.append(f"totals of states: {Path(out) / TOTALS}")
    return lines


def _like(table: TableSection, products: Sequence[Product]) -> Product | None:
    """The published table with the same attributes and values as this one, in whatever order."""
    own = {_ALIKE.get(one.name, one.name): set(one.values) for one in table.attributes}
    for product in products:
        if {name: set(values) for name, values in product.attributes} == own:
            recodes = {(one.name, tuple((name, frozenset(some)) for name, some in one.groups.items()))
                       for one in table.recodes}  # fmt: skip
            known = {(name, tuple((label, frozenset(some)) for label, some in groups))
                     for name, _, groups in product.recodes}  # fmt: skip
            if recodes <= known:
                return product
    return None


def _codes(spine: Spine, release: str | Path) -> dict[str, pa.Array]:
    """By level, the internal code of each unit."""
    leaves = spine.names[-1]
    lengths = pc.unique(pc.utf8_length(leaves)).to_pylist()
    if len(lengths) == 1 and lengths[0] > BLOCK_CODE:  # read from such files
        return dict(zip(spine.levels, spine.names, strict=True))
    digits = pc.all(pc.match_substring_regex(leaves, "^[0-9]{15}$")).as_py()
    if not digits:
        raise errors.not_exportable(release, "its finest geounits must be named by census blocks' codes of 15 digits")
    blocks = leaves.to_pylist()
    found: dict[str, pa.Array] = {}
    above = [""]
    for at, level in enumerate(spine.levels):
        first = spine.first_leaf(at)[:-1]
        parents = spine.parents(at) if at else np.zeros(spine.units(at), dtype=np.int64)
        if level == NATION:
            found[level] = pa.array(["1"])
            continue
        own = _own(level, [blocks[leaf] for leaf in first], parents)
        above = [above[parent] + code for parent, code in zip(parents.tolist(), own, strict=True)]
        if len(set(above)) < len(above):
            raise errors.not_exportable(release, f"two units of level '{level}' would have the same code")
        found[level] = pa.array(above)
    return found


def _own(level: str, blocks: Sequence[str], parents: Index) -> list[str]:
    """What each unit of a level adds to the code of its parent, from the code of its first block."""
    if level == "state":
        return [f"0{block[:2]}" for block in blocks]
    if level == "county":
        return [f"10{block[2:5]}" for block in blocks]
    if level == "block":
        return [block[:11] + block[11] + block[11:] for block in blocks]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    number = np.arange(len(parents)) - np.repeat(starts, np.diff(starts, append=len(parents)))
    width = max(2, len(str(int(number.max(initial=0)))))
    return [f"{one:0{width}}" for one in number.tolist()]


def _states(spine: Spine, codes: Mapping[str, pa.Array]) -> list[tuple[str, list[slice]]]:
    """The parts of states, each with its range of units at every level; the nation's is empty."""
    if "state" not in spine.levels:
        return [("000", [slice(0, spine.units(at)) for at in range(len(spine.levels))])]
    top = spine.levels.index("state")
    found = []
    for unit, code in enumerate(codes["state"].to_pylist()):
        bounds = np.array([unit, unit + 1])
        ranges = [slice(0, 0)] * top
        for at in range(top, len(spine.levels)):
            ranges.append(slice(int(bounds[0]), int(bounds[1])))
            if at < len(spine.levels) - 1:
                bounds = spine.first_child[at][bounds]
        found.append((code, ranges))
    return found


def _invariant(opened: MeasuredRelease, table: str, level: str, by: tuple[str, ...] = ()) -> Counts | None:
    for one, values in zip(opened.plan.invariants, opened.exact, strict=True):
        if (one.table, one.level, one.by) == (table, level, by):
            return values
    return None


@dataclass(frozen=True, eq=False, repr=False)
class _Writer:
    """Writes the files of one published table, level by level."""

    opened: MeasuredRelease
    measured: Measurements
    table: TableSection
    product: Product
    codes: Mapping[str, pa.Array]
    states: Sequence[tuple[str, list[slice]]]
    folder: Path

    def write(self) -> int:
        """Write the files of all levels; returns the number of rows of measurements."""
        spine, rows = self.opened.spine, 0
        names = {ours: theirs for theirs, ours in LEVELS.items()}
        for at, level in enumerate(spine.levels):
            exact = self._exact(at)
            for kind in (QUERIES, CONSTRAINTS):
                base = self.folder / f"{names[level]}.parquet" / kind
                places = [(base, slice(0, 1))] if level == NATION else [
                    (base / f"State={code}", ranges[at]) for code, ranges in self.states
                ]  # fmt: skip
                for place, units in places if kind == QUERIES or exact else ():
                    place.mkdir(parents=True)
                    if kind == QUERIES:
                        rows += self._write_queries(place / _PART, level, units)
                    else:
                        self._write_exact(place / _PART, level, units, exact)
        return rows

    def _schema(self, sign: bool) -> pa.Schema:
        middle = [("sign", pa.string())] if sign else []
        axes = [(name, pa.string()) for name, _ in self.product.attributes]
        return pa.schema([
            (GEOCODE, pa.string()), (QUERY, pa.string()), *middle, *axes, (SHAPE, pa.list_(pa.int32())),
            (VALUE, pa.list_(pa.int32())), (VARIANCE, pa.float64()),
        ])  # fmt: skip

    def _write_queries(self, path: Path, level: str, units: slice) -> int:
        rows = 0
        with pq.ParquetWriter(path, self._schema(False), compression="zstd") as file:
            for entry in self.measured.of(self.table.name, level):
                by = self._by(entry.by)
                order = self._order(entry.by, by)
                query, variance = self.product.query(by), float(Fraction(entry.variance))
                for part in _ranges(units, entry.cells):
                    values = self.measured.values(entry, part)[:, order]
                    file.write_table(self._rows(level, part, query, by, values, variance, None))
                    rows += len(values)
        return rows

    def _by(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What a query is by in the words of the published table, and in its order."""
        schema = self.product.schema
        said = [_ALIKE.get(name, name) for name in names]
        bases = [name for name, _ in self.product.attributes]
        return tuple(sorted(said, key=lambda name: bases.index(schema.base(name))))

    def _order(self, names: tuple[str, ...], by: tuple[str, ...]) -> Index:
        """Of each published value the place among our own."""
        said = [_ALIKE.get(name, name) for name in names]
        place = {
            tuple(label[said.index(name)] for name in by): at
            for at, label in enumerate(self.table.schema_of.labels(names))
        }
        return np.array([place[label] for label in self.product.schema.labels(by)], dtype=np.int64)

    def _rows(
        self, level: str, units: slice, query: str, by: tuple[str, ...], values: Counts, variance: float,
        sign: str | None, axes: Mapping[str, str] | None = None,
    ) -> pa.Table:  # fmt: skip
        number = len(values)
        small = values.astype(np.int32)
        if not np.array_equal(small, values):
            raise errors.not_exportable(self.folder, "a value does not fit into 32 bits")
        whole = by == tuple(name for name, _ in self.product.attributes)
        said = {self.product.schema.base(name): "detailed" if whole else name for name in by}
        said = dict(axes) if axes is not None else said
        columns: list[pa.Array] = [self.codes[level][units], pa.repeat(query, number)]
        columns += [] if sign is None else [pa.repeat(sign, number)]
        columns += [pa.repeat(said.get(name, "*"), number) for name, _ in self.product.attributes]
        shape = self.product.shape(by) if axes is None else (1,) * len(self.product.attributes)
        columns.append(_lists(np.tile(np.array(shape, dtype=np.int32), (number, 1))))
        columns += [_lists(small), pa.array(np.full(number, variance))]
        return pa.Table.from_arrays(columns, schema=self._schema(sign is not None))

    # -- what is known exactly -------------------------------------------------------------------------------

    def _exact(self, level: int) -> list[tuple[str, str, tuple[str, ...], Counts, Mapping[str, str] | None]]:
        """Statements about the units of a level: name, sign, what it is by, values, and columns of attributes."""
        opened, spine, leaf = self.opened, self.opened.spine, self.opened.spine.levels[-1]
        starts = spine.first_leaf(level)[:-1]
        found: list[tuple[str, str, tuple[str, ...], Counts, Mapping[str, str] | None]] = []
        if self.product.total and (total := _invariant(opened, self.table.name, leaf)) is not None:
            found.append((f"total{EXACT}", "=", (), np.add.reduceat(total, starts), None))
        if self.product.bounds:
            attribute, household = self.product.bounds
            facilities, homes = self._facilities(attribute, household)
            if facilities is not None and homes is not None:
                at = self.product.schema.values(attribute).index(household)
                lower = np.insert(facilities, at, 0, axis=1)
                upper = np.insert(facilities, at, homes, axis=1) * MOST_IN_FACILITY
                for end, sign, bound in (("lb", ">=", lower), ("ub", "<=", upper)):
                    summed = np.minimum(np.add.reduceat(bound, starts), np.iinfo(np.int32).max)
                    found.append((f"{attribute}_total_{end}{EXACT}", sign, (attribute,), summed, None))
        zeros = [{name: set(values) for name, values in zero.items()} for zero in self.table.zeros]
        for name, together in self.product.zeros:
            if {attribute: {value} for attribute, value in together} in zeros:
                none = np.zeros((spine.units(level), 1), dtype=np.int64)
                found.append((name, "=", (), none, dict(together)))
        return found

    def _facilities(self, attribute: str, household: str) -> tuple[Counts | None, NDArray[np.int64] | None]:
        """Facilities by kind, and places where households can live, from the plan's constraints."""
        opened, leaf = self.opened, self.opened.spine.levels[-1]
        facilities = homes = None
        for one in opened.plan.constraints:
            if one.table != self.table.name or not one.zero_without:
                continue
            if attribute in one.each and one.at_least == 1:
                facilities = _invariant(opened, one.counted, leaf, (one.each[attribute],))
            elif one.where == {attribute: (household,)}:
                counted = _invariant(opened, one.counted, leaf)
                homes = None if counted is None else counted[:, 0]
        return facilities, homes

    def _write_exact(
        self, path: Path, level: str, units: slice,
        exact: Sequence[tuple[str, str, tuple[str, ...], Counts, Mapping[str, str] | None]],
    ) -> None:  # fmt: skip
        with pq.ParquetWriter(path, self._schema(True), compression="zstd") as file:
            for name, sign, by, values, axes in exact:
                file.write_table(self._rows(level, units, name, by, values[units], 0.0, sign, axes))


def _ranges(units: slice, cells: int) -> Iterator[slice]:
    for part in parts(units.stop - units.start, cells):
        yield slice(units.start + part.start, units.start + part.stop)


def _lists(values: NDArray[np.int32]) -> pa.Array:
    """The rows of a table of numbers as an Arrow array of lists."""
    rows, length = values.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(length)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(values).ravel()))
