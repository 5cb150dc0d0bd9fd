"""Measures every query at every level: counts on the full domain plus exact discrete Gaussian noise.

One changed record moves two cells of a query by one each, so noise of variance 1/rho on each cell costs rho. Where the
groups of a query overlap it moves d of them at most, and noise of variance d / (2 rho) costs rho. Values are written as
they are drawn, in the order of units and cells, and read back by ranges of units; neither needs memory for more than a
part or two: one is written while the next is counted and drawn.

The invariant a reader must know: measurements cover all units and all cells, also those that no fit will look at, so
that which ones are there says nothing about the data.

A *work folder* has ``draw.json`` (the plan, and the ledger's entry), ``measurements/`` with the public list of leaves,
``invariants/`` and a manifest: all that a fit needs. A release has copies of the two folders. Until a release is
written, the work folder also has levels that are fitted (:mod:`stirred.topdown.fitting.table_fit`), which are no part
of the draw.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import inside, is_of_machine, plain, read_json
from stirred._progress import stage
from stirred._threads import ahead
from stirred.margins.schema import Schema
from stirred.margins.spine import Index, Spine
from stirred.noise import RandomSource, discrete_gaussian
from stirred.releases.folder.atomic import KEPT, PARTS, is_unfinished
from stirred.releases.folder.manifest import NAME, differences, digest_of, read_manifest, write_manifest
from stirred.releases.plans import slug
from stirred.tables.groups import free_label
from stirred.topdown.data.counting import Counted, read_spine
from stirred.topdown.data.histograms import Counts, marginal_by
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import InvariantSection, PlacesInput

MEASUREMENTS, INVARIANTS = "measurements", "invariants"
"""Folders of a work folder and of a release."""
INDEX, GEOGRAPHY_FILE = "measurements.json", "geography.parquet"
"""In the folder of measurements: what each of its files has, and the public list of leaves."""
DRAWN = "draw.json"
FORM = 1
PART = 1 << 21
"""Values that are counted, drawn and written at a time."""


@dataclass(frozen=True)
class Entry:
    """One query at one level: where its values are, and what its noise was."""

    table: str
    level: str
    query: str
    by: tuple[str, ...]
    units: int
    cells: int
    rho: str
    variance: str
    file: str


def entries(plan: TopDownPlan, spine: Spine) -> list[Entry]:
    """All queries of all tables and levels, in the order in which they are measured."""
    found: list[Entry] = []
    for table in plan.released:
        for number, level in enumerate(plan.spine.all_levels):
            for query in table.queries:
                rho = table.rho_of(level, query)
                variance = table.variance_of(level, query, plan.one_place(level))
                if variance is not None:
                    cells = table.schema_of.number_of_groups(query.by)
                    words = "-".join(slug(part) for part in (table.name, level, query.name))
                    name = f"{len(found) + 1:03d}-{words}"  # words alone may be the same for two queries
                    found.append(
                        Entry(table.name, level, query.name, query.by, spine.units(number), cells, str(rho),
                              str(variance), f"{name}.parquet")
                    )  # fmt: skip
    return found


def measure(counted: Counted, folder: Path, source: RandomSource) -> list[Entry]:
    """Draw and write all measurements into ``folder``."""
    found = entries(counted.plan, counted.spine)
    every, written = sum(entry.units * entry.cells for entry in found), 0

    def told(drawn: Iterable[tuple[Entry, slice, NDArray[np.int64]]]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        nonlocal written
        for entry, units, values in drawn:
            stage(f"measuring {entry.table} at level '{entry.level}'", written / every)
            written += len(values)
            yield units, values

    for entry, drawn in groupby(ahead(draw_parts(counted, found, source)), key=itemgetter(0)):
        names = counted.spine.names[counted.spine.levels.index(entry.level)]
        _write(folder / entry.file, entry, names, counted.plan.table(entry.table).schema_of, told(drawn))
    _write_index(folder, found)
    return found


class BatchedMeasurements(Protocol):
    """Measurements whose values are read in batches of units, in whatever order they have."""

    @property
    def entries(self) -> list[Entry]:
        """All queries of all tables and levels, in the order in which they were measured."""
        ...

    @property
    def repeated(self) -> bool:
        """Whether some values stand for two units, so that not all noise is independent."""
        ...

    def batches(self, wanted: Sequence[Entry]) -> Iterator[tuple[Entry, slice | Index, NDArray[np.integer]]]:
        """The values of some entries: the entry, the units, and their values, a row for each unit."""
        ...


def write_again(
    found: list[Entry],
    values: Callable[[Entry, slice], NDArray[np.int64]],
    folder: Path,
    plan: TopDownPlan,
    spine: Spine,
) -> None:
    """Write measurements that were read as they were written first; ``values`` has those of some units."""
    for entry in found:
        names = spine.names[spine.levels.index(entry.level)]
        read = ((units, values(entry, units).ravel()) for units in parts(entry.units, entry.cells))
        _write(folder / entry.file, entry, names, plan.table(entry.table).schema_of, read)
    _write_index(folder, found)


def _write_index(folder: Path, found: list[Entry]) -> None:
    (folder / INDEX).write_text(json.dumps([asdict(entry) for entry in found], indent=1) + "\n", encoding="utf-8")


def draw_parts(
    counted: Counted, found: list[Entry], source: RandomSource
) -> Iterator[tuple[Entry, slice, NDArray[np.int64]]]:
    """The noisy values of every entry in order, part by part."""
    for (table, level), here in groupby(found, key=lambda entry: (entry.table, entry.level)):
        schema = counted.plan.table(table).schema_of
        histograms = counted.histograms(table, counted.spine.levels.index(level))
        for entry in here:
            for units in parts(entry.units, entry.cells):
                truth = marginal_by(histograms.of_units(np.arange(units.start, units.stop)), schema, entry.by)
                values = discrete_gaussian(Fraction(entry.variance), truth.size, source)
                yield entry, units, values + truth.ravel()


def parts(units: int, cells: int) -> Iterator[slice]:
    """Ranges of units with a bounded number of values."""
    step = max(1, PART // cells)
    for start in range(0, units, step):
        yield slice(start, min(units, start + step))


def _write(
    path: Path, entry: Entry, names: pa.Array, schema: Schema, parts_of: Iterable[tuple[slice, NDArray[np.int64]]]
) -> None:
    """Write one Parquet file: level, geounit, query, cell, value; a row group for each part."""
    names, labels = names.cast(pa.string()), cell_labels(schema, entry.by)
    largest = next(parts(entry.units, entry.cells)).stop
    # Where units and cells stand is the same in all parts; the last is a shorter one.
    unit = np.repeat(np.arange(largest, dtype=np.int32), entry.cells)
    cell = np.tile(np.arange(entry.cells, dtype=np.int32), largest)
    constant = np.zeros(largest * entry.cells, dtype=np.int32)
    kind = pa.dictionary(pa.int32(), pa.string())
    fields = [("level", kind), ("geounit", kind), ("query", kind), ("cell", kind), ("value", pa.int64())]
    columns = pa.schema(fields, metadata={"rho": entry.rho, "variance": entry.variance})
    # Statistics only where a reader can skip row groups by them: those of other texts cost more than all the rest.
    with pq.ParquetWriter(path, columns, compression="zstd", write_statistics=["geounit"]) as file:
        for units, values in parts_of:
            texts = [
                (constant, pa.array([entry.level])),
                (unit, names[units]),
                (constant, pa.array([entry.query])),
                (cell, labels),
            ]
            coded = [pa.DictionaryArray.from_arrays(place[: len(values)], known, safe=False) for place, known in texts]
            file.write_table(
                pa.Table.from_arrays([*coded, pa.array(values)], schema=columns), row_group_size=len(values)
            )


def cell_labels(schema: Schema, by: tuple[str, ...]) -> pa.Array:
    """What the cells of a query are called in a file."""
    return pa.array(["*".join(label) or "all" for label in schema.labels(by)])


class Measurements:
    """Measurement files, read back by ranges of units."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = read_json(inside(folder, INDEX))
        self.entries: list[Entry] = [Entry(**{**one, "by": tuple(one["by"])}) for one in listed]
        self._metadata: dict[str, Any] = {}

    def path(self, entry: Entry) -> Path:
        """The file of an entry, which must be a regular one in the folder and have a value for every unit and cell."""
        try:
            path = inside(self.folder, entry.file)
            if entry.file not in self._metadata:  # that of a large file takes longer to parse than a part to read
                self._metadata[entry.file] = pq.read_metadata(path)
            metadata = self._metadata[entry.file]
            groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            value = metadata.schema.to_arrow_schema().field("value").type
        except (OSError, ValueError, KeyError, pa.ArrowException) as problem:
            if is_of_machine(problem):
                raise
            raise errors.not_measurements(self.folder, f"{plain(entry.file)} cannot be read") from None
        step = groups[0] if groups else 0
        even = all(rows == step for rows in groups[:-1]) and step > 0 and step % entry.cells == 0
        if metadata.num_rows != entry.units * entry.cells or not even or value != pa.int64():
            raise errors.not_measurements(self.folder, f"{plain(entry.file)} has other rows than its index says")
        return path

    def of(self, table: str, level: str) -> list[Entry]:
        """The entries of a table at a level, one for each query."""
        return [entry for entry in self.entries if (entry.table, entry.level) == (table, level)]

    def values(self, entry: Entry, units: slice) -> NDArray[np.int64]:
        """The values of some units, a row for each."""
        path = self.path(entry)
        step = self._metadata[entry.file].row_group(0).num_rows // entry.cells  # units in each row group but the last
        groups = range(units.start // step, (units.stop - 1) // step + 1)
        found = np.empty((units.stop - units.start, entry.cells), dtype=np.int64)
        for group, read in zip(groups, self._read(path, entry, groups), strict=True):
            first = group * step
            wanted = read[max(units.start - first, 0) : units.stop - first]
            at = max(first, units.start) - units.start
            found[at : at + len(wanted)] = wanted
        return found

    @property
    def repeated(self) -> bool:
        """Whether some values stand for two units: never in measurements that were drawn here."""
        return False

    def batches(self, wanted: Sequence[Entry]) -> Iterator[tuple[Entry, slice | Index, NDArray[np.integer]]]:
        """The values of some entries, in ranges of units: the entry, the units, and their values, a row for each."""
        every, done = sum(entry.units * entry.cells for entry in wanted), 0
        for entry in wanted:
            stage(f"reading what was measured at level '{entry.level}'", done / every)
            done += entry.units * entry.cells
            for units in parts(entry.units, entry.cells):
                yield entry, units, self.values(entry, units)

    def stored_parts(self, entry: Entry) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """The values of all units, in the ranges of units in which they are stored."""
        path, first = self.path(entry), 0
        for read in self._read(path, entry, range(self._metadata[entry.file].num_row_groups)):
            yield slice(first, first + len(read)), read
            first += len(read)

    def _read(self, path: Path, entry: Entry, groups: Iterable[int]) -> Iterator[NDArray[np.int64]]:
        """The values of some row groups, a row for each unit."""
        try:
            with pq.ParquetFile(path, metadata=self._metadata[entry.file]) as file:
                for group in groups:
                    yield file.read_row_group(group, columns=["value"])["value"].to_numpy().reshape(-1, entry.cells)
        except (OSError, ValueError, pa.ArrowException) as problem:  # pages damaged below a footer that is not
            if is_of_machine(problem):
                raise
            raise errors.not_measurements(self.folder, f"{plain(entry.file)} cannot be read") from None

    def labelled(self, entry: Entry, names: pa.Array, labels: pa.Array) -> bool:
        """Whether every row of a file is of the unit, the cell, the level and the query that its place says.

        The file has nothing else: no further column or text, and a whole number in every row.
        """
        try:
            path = self.path(entry)  # sees to the number of rows before they are read
        except errors.StirredError:
            return False
        file = pq.ParquetFile(path)
        if file.schema_arrow.names != ["level", "geounit", "query", "cell", "value"]:
            return False
        if any(set(field.metadata or {}) - {b"PARQUET:field_id"} for field in file.schema_arrow):
            return False
        if not all(_is_text(field.type) for field in list(file.schema_arrow)[:-1]):
            return False
        stated = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
        stated.pop("ARROW:schema", None)
        if stated != {"rho": entry.rho, "variance": entry.variance}:
            return False
        first = 0
        for group in range(file.num_row_groups):
            read = file.read_row_group(group)
            number = read.num_rows // entry.cells
            texts = {
                "level": pa.repeat(entry.level, read.num_rows),
                "geounit": names[first : first + number].take(pa.array(np.repeat(np.arange(number), entry.cells))),
                "query": pa.repeat(entry.query, read.num_rows),
                "cell": labels.take(pa.array(np.tile(np.arange(entry.cells), number))),
            }
            stated = pa.table({name: text.cast(pa.string()) for name, text in texts.items()})
            if read["value"].null_count or not read.select(list(texts)).cast(stated.schema).equals(stated):
                return False
            first += number
        return first == entry.units


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


@dataclass(frozen=True)
class DrawRecord:
    """What ``draw.json`` says about a draw, beside its plan."""

    for_release: bool
    entry: tuple[int, str] | None
    """The ledger's entry that paid for it: its number and its seal."""
    nonce: str
    """The identity of the draw. For draws of earlier versions, which had none, it is made from the manifest."""


def is_work(folder: Path) -> bool:
    """Whether a folder is a work folder of TopDown."""
    return (folder / DRAWN).is_file()


def write_record(folder: Path, plan: TopDownPlan, record: DrawRecord) -> None:
    """Write ``draw.json`` and then the manifest, which completes the folder."""
    fields = {
        "stirred_draw": FORM,
        "plan": plan.published(),
        "drawn_sha256": plan.drawn_hash(),
        "for_release": record.for_release,
        "nonce": record.nonce,
        "ledger_entry": record.entry,
    }
    (folder / DRAWN).write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
    write_manifest(folder)


def read_record(work: Path, plan: TopDownPlan) -> DrawRecord:
    """Read ``draw.json``; raises if the folder is damaged, or was drawn for another plan."""
    try:
        fields = read_json(inside(work, DRAWN))
        known = fields["stirred_draw"] == FORM and not is_unfinished(work)
        entry, nonce = fields["ledger_entry"], fields.get("nonce")
        paid = None if entry is None else (int(entry[0]), str(entry[1]))
        identity = digest_of(work / NAME)[:32] if nonce is None else str(nonce)
        record = DrawRecord(bool(fields["for_release"]), paid, identity)
        drawn = fields["drawn_sha256"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        known = False
    if not known:
        raise errors.work_folder(work, "it is not a work folder of this version")
    if drawn != plan.drawn_hash():
        raise errors.work_folder(work, "its measurements were drawn for another plan")
    if found := differences(work, read_manifest(work), frozenset({KEPT, PARTS})):
        raise errors.work_folder(work, found[0])
    return record


def paid_entry(folder: Path) -> int | None:
    """The ledger's entry that ``draw.json`` names, also in a folder that a killed run left unfinished."""
    try:
        entry = read_json(inside(folder, DRAWN))["ledger_entry"]
        return None if entry is None else int(entry[0])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def write_invariants(folder: Path, plan: TopDownPlan, spine: Spine, values: tuple[Counts, ...]) -> None:
    """Write the values of all invariants, a file for each."""
    if plan.invariants:
        folder.mkdir()
    for number, (invariant, counts) in enumerate(zip(plan.invariants, values, strict=True)):
        table = counts_table(plan, spine, invariant.table, invariant.level, invariant.by, counts)
        pq.write_table(table, folder / invariant_file(number, invariant))


def write_geography(path: Path, plan: TopDownPlan, spine: Spine) -> None:
    """Write the public list of leaves, in the order of the spine."""
    pq.write_table(geography_table(plan, spine), path, compression="zstd")


def geography_table(plan: TopDownPlan, spine: Spine) -> pa.Table:
    """The public list of leaves, in the order of the spine."""
    leaf, first = len(spine.levels) - 1, len(spine.levels) - len(plan.spine.levels)
    columns = [spine.names[at].take(pa.array(spine.ancestors(at, leaf))) for at in range(first, leaf)]
    return pa.table([*columns, spine.names[leaf]], names=list(plan.spine.levels))


def read_geography(path: Path, plan: TopDownPlan) -> Spine:
    """Read the spine that :func:`write_geography` wrote."""
    section = plan.spine.model_copy(update={"input": PlacesInput(format="parquet")})
    return read_spine(plan.model_copy(update={"spine": section}), path)


def measurement_files(plan: TopDownPlan, spine: Spine) -> list[str]:
    """The files with the measurements that a draw writes and a release repeats, relative to the folder."""
    return [
        f"{MEASUREMENTS}/{name}" for name in (INDEX, GEOGRAPHY_FILE, *(entry.file for entry in entries(plan, spine)))
    ]


def invariant_files(plan: TopDownPlan) -> list[str]:
    """The files with the values of invariants, relative to the folder."""
    return [f"{INVARIANTS}/{invariant_file(number, one)}" for number, one in enumerate(plan.invariants)]


def invariant_file(number: int, invariant: InvariantSection) -> str:
    """The name of the file with the values of an invariant."""
    return (
        "-".join([str(number + 1), slug(invariant.table), slug(invariant.level), *map(slug, invariant.by)]) + ".parquet"
    )


def counts_table(
    plan: TopDownPlan, spine: Spine, table: str, level: str, by: tuple[str, ...], values: Counts
) -> pa.Table:
    """Counts of every unit and group as rows: the unit, the values it is by, the count."""
    units, groups = values.shape
    names = spine.names[spine.levels.index(level)]
    labels = plan.table(table).schema_of.labels(by)
    columns = [names.take(pa.array(np.repeat(np.arange(units), groups)))]
    for at in range(len(by)):
        texts = pa.array([label[at] for label in labels], type=pa.string())
        columns.append(texts.take(pa.array(np.tile(np.arange(groups), units))))
    return pa.table([*columns, pa.array(values.ravel())], names=[level, *by, free_label("count", [level, *by])])


def read_invariants(folder: Path, plan: TopDownPlan, spine: Spine) -> tuple[Counts, ...]:
    """Read the values of all invariants; raises if they do not fit the plan."""
    found = []
    for number, invariant in enumerate(plan.invariants):
        groups = plan.table(invariant.table).schema_of.number_of_groups(invariant.by)
        path = inside(folder, invariant_file(number, invariant))
        length = spine.units(spine.levels.index(invariant.level)) * groups
        if pq.read_metadata(path).num_rows == length:  # seen before the rows are read
            read = pq.read_table(path)
            values = read.columns[-1].to_numpy().astype(np.int64)
            found.append(values.reshape(-1, groups))
            stated = counts_table(plan, spine, invariant.table, invariant.level, invariant.by, found[-1])
            if stated.equals(read, check_metadata=True):
                continue
        raise errors.not_a_release(folder.parent, f"{invariant_file(number, invariant)} is not about the plan's places")
    return tuple(found)


def fingerprint(values: Counts) -> str:
    """SHA-256 of counts in the order of units and groups."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()
