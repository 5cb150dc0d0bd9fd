"""Opens noisy measurement files as the measurements of a release, or takes them into a work folder to be fitted.

The geography follows from the codes of the finest geounits, whose prefixes are the codes of the units above. The plan
states what was measured: of each query at each level rho, which is one over the published variance. A unit with one
child may have no measurements of its own, its budget being added to the child's; the child's values y with precision
a + b are then used for both, with precision a above and b below. The two have the same least squares estimates and
variances as y by itself, so that every unit of a level has the same variances.

The invariant a reader must know: opening reads what rows are about and no value; :meth:`NoisyFiles.batches` then reads
values once, in batches. Nothing is spent, and nothing is written.

Into a work folder values are written in the order of the geography, through files of plain numbers, as draws are
written. Nothing is drawn and nothing is spent: the measurements are public, and the guarantee is that of those who drew
them. A work folder remembers the files and options that it was made from, and is gone on with for these only.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import inside, plain, read_json
from stirred._progress import stage
from stirred._threads import ahead
from stirred.margins.spine import Index, Spine
from stirred.noise import SystemSource
from stirred.releases.folder.documents import draw_nonce
from stirred.topdown.data.constraints import Known, require_nested
from stirred.topdown.drawing import TopDownDraw, reopen
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.measuring import (
    DRAWN,
    MEASUREMENTS,
    Entry,
    entries,
    write_again,
)
from stirred.topdown.noisy_files.contents import (
    ExactCounts,
    FileRows,
    Kind,
    dimensions,
    noisy_plan,
    read_exact_counts,
    read_rows,
    read_totals,
    read_values,
)
from stirred.topdown.noisy_files.form import (
    GEOCODE,
    NATION,
    PRODUCTS,
    QUERY,
    SHAPE,
    VARIANCE,
    LevelFiles,
    Product,
    ProductFiles,
    list_files,
    product_folders,
)
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify

_SAME = 1e-6
"""Relative difference of variances that rounding to single precision explains."""

Key = tuple[str, str, tuple[str, ...]]
"""A table, a level, and what a query is by."""


@dataclass(frozen=True, eq=False, repr=False)
class OpenedFile:
    """A file of measurements, and the number in the geography of each code in it."""

    rows: FileRows
    to_unit: Index

    def __repr__(self) -> str:
        return f"<OpenedFile {self.rows.path}>"


@dataclass(frozen=True, eq=False, repr=False)
class Passed:
    """Units without measurements of their own, and the units further down whose values are theirs too."""

    level: int
    units: Index
    below: int
    children: Index
    """Sorted; the units of the level ``below``."""

    def __repr__(self) -> str:
        return f"<Passed: {len(self.units):,} units without measurements of their own>"


@dataclass(eq=False, repr=False)
class NoisyFiles:
    """Noisy measurement files, read by batches of rows in whatever order they have."""

    folder: Path
    entries: list[Entry]
    files: Mapping[tuple[str, str], tuple[OpenedFile, ...]]
    """By table and level."""
    passed: Mapping[str, tuple[Passed, ...]]
    """By table."""
    levels: tuple[str, ...]
    cells: Mapping[str, dict[tuple[str, ...], int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<NoisyFiles in {self.folder}: {len(self.entries)} queries at {len(self.levels)} levels>"

    @property
    def repeated(self) -> bool:
        """Whether some values stand for two units, so that not all noise is independent."""
        return any(self.passed.values())

    def batches(self, wanted: Sequence[Entry]) -> Iterator[tuple[Entry, slice | Index, NDArray[np.integer]]]:
        """The values of some entries: the entry, the units, and their values, a row for each unit. One batch is read
        while the last is used."""
        stage("reading the noisy measurements")
        return ahead(self._batches(wanted))

    def _batches(self, wanted: Sequence[Entry]) -> Iterator[tuple[Entry, slice | Index, NDArray[np.integer]]]:
        asked: dict[Key, Entry] = {(one.table, one.level, one.by): one for one in wanted}
        for (table, level), files in self.files.items():
            shared = [one for one in self.passed[table] if self.levels[one.below] == level]
            at = {level, *(self.levels[one.level] for one in shared)}
            by = {key[2] for key in asked if key[0] == table and key[1] in at}
            for file in files if by else ():
                for kind, places, values in read_values(file.rows, self.cells[table], by):
                    units = file.to_unit[places]
                    if (entry := asked.get((table, level, kind.by))) is not None:
                        yield entry, units, values
                    for one in shared:
                        above = asked.get((table, self.levels[one.level], kind.by))
                        place = np.searchsorted(one.children, units)
                        place[place == len(one.children)] = 0
                        mask = one.children[place] == units
                        if above is not None and mask.any():
                            yield above, one.units[place[mask]], values[mask]


def open_noisy_measurements(
    folder: str | Path,
    *,
    states: Sequence[str] = (),
    down_to: str | None = None,
    nation: bool | None = None,
    totals: str | Path | None = None,
    products: Sequence[Product] = PRODUCTS,
) -> MeasuredRelease:
    """Open a folder of noisy measurement files for estimates.

    Parameters
    ----------
    folder
        The folder with the levels of one published table, or a folder with one such folder for each table.
    states
        Codes of states to read, of two digits (both parts) or three; by default all that are there.
    down_to
        The finest level to read, such as ``"tract"``: less to read, and estimates that use less.
    nation
        Whether every state is there, so that the nation's own measurements can be used; by default, if the states are
        those of a published run.
    totals
        A CSV file with the columns ``state`` (two digits) and ``total``, the published number of persons.
    """
    path = Path(folder)
    folders = product_folders(path)
    if not folders:
        raise errors.noisy_folder(path, "there is no folder US.parquet, State.parquet, ... in it")
    read = [_read_product(list_files(one, states=states, down_to=down_to, nation=nation), products) for one in folders]
    tables = [one.product.table for one in read]
    if len(set(tables)) < len(tables):
        raise errors.noisy_folder(path, "it has two folders of the same table", "Name one of them.")
    read.sort(key=lambda one: products.index(one.product))
    spine = _spine(read[0])
    for one in read[1:]:
        other = _spine(one)
        if other.levels != spine.levels or not other.names[-1].equals(spine.names[-1]):
            raise errors.noisy_folder(path, "its tables are about different geounits", "Name the folder of one table.")
    return _opened(path, read, spine, totals)


# -- files and geography -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Read:
    """The rows of all files of a table, by level."""

    product: Product
    files: ProductFiles
    rows: Mapping[str, tuple[FileRows, ...]]

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels with measurements."""
        return tuple(level for level, some in self.rows.items() if any(len(one.unit) for one in some))


def _read_product(files: ProductFiles, products: Sequence[Product]) -> _Read:
    product = _product(files, products)
    rows = {level.level: tuple(read_rows(path, product) for _, path in level.queries) for level in files.levels}
    if not any(len(one.unit) for one in rows[files.levels[-1].level]):
        raise errors.noisy_folder(files.folder, f"the files of level '{files.levels[-1].level}' have no rows")
    return _Read(product, files, rows)


def _product(files: ProductFiles, products: Sequence[Product]) -> Product:
    """Which table a folder has, by the number of attributes of its queries."""
    path = files.levels[-1].queries[0][1]
    found = dimensions(path)
    for product in products:
        if len(product.attributes) == found:
            return product
    listed = [f"{len(one.attributes)} for {one.table}" for one in products]
    raise errors.noisy_column(path, SHAPE, f"has {found} numbers in a row", errors.listed(listed))


def _spine(read: _Read) -> Spine:
    """The geography: the units of every level are the prefixes of the codes of the finest units."""
    levels = read.levels
    lengths = [_length(read, level) for level in levels]
    own = [level for level in levels if level != NATION]
    if sorted(set(lengths[len(levels) - len(own) :])) != lengths[len(levels) - len(own) :]:
        told = ", ".join(f"{level} {length}" for level, length in zip(levels, lengths, strict=True))
        raise errors.noisy_column(
            read.rows[levels[-1]][0].path, GEOCODE, f"has codes of these lengths: {told}",
            "longer codes at every finer level, which begin with the code of the unit above",
        )  # fmt: skip
    leaves = pa.chunked_array([one.codes for one in read.rows[levels[-1]]]).combine_chunks()
    leaves = pc.unique(leaves)
    names = [leaves.take(pc.array_sort_indices(leaves))]
    first_child: list[Index] = []
    for level, length in reversed(list(zip(levels[:-1], lengths[:-1], strict=True))):
        above = pa.array([NATION] * len(names[0])) if level == NATION else pc.utf8_slice_codeunits(names[0], 0, length)
        encoded = pc.dictionary_encode(above)  # sorted codes have sorted prefixes
        number = encoded.indices.to_numpy()
        first_child.insert(0, np.searchsorted(number, np.arange(len(encoded.dictionary) + 1)).astype(np.int64))
        names.insert(0, encoded.dictionary)
    return Spine(levels, tuple(names), tuple(first_child))


def _length(read: _Read, level: str) -> int:
    """The length of the codes of a level, which is the same for all of them."""
    length = -1
    for rows in read.rows[level]:
        found = pc.unique(pc.utf8_length(rows.codes)).to_pylist()
        length = found[0] if length < 0 and found else length
        if strange := [one for one in found if one != length]:
            raise errors.noisy_column(
                rows.path, GEOCODE, f"has codes of {strange[0]} characters at level '{level}'",
                f"{length} characters, as in the other rows of the level",
            )  # fmt: skip
    return length


# -- variances -----------------------------------------------------------------------------------------------


def _opened(path: Path, read: Sequence[_Read], spine: Spine, totals: str | Path | None) -> MeasuredRelease:
    files: dict[tuple[str, str], tuple[OpenedFile, ...]] = {}
    passed: dict[str, tuple[Passed, ...]] = {}
    variances: dict[str, list[dict[tuple[str, ...], Kind]]] = {}
    for one in read:
        table = one.product.table
        seen = []
        for at, level in enumerate(spine.levels):
            found = tuple(OpenedFile(rows, _numbers(rows, spine, at)) for rows in one.rows[level])
            files[table, level] = found
            seen.append(_seen(found, spine, at))
        depth = _passed_over(seen, spine, one)
        variances[table] = _level_variances(one, spine, depth, files)
        passed[table] = _passed(spine, seen, depth)
    exact = {one.product.table: read_exact_counts(one.product, _finest(one, spine), spine) for one in read}
    known = None if totals is None else read_totals(Path(totals), spine)
    plan, values = noisy_plan(path, [one.product for one in read], spine, variances, exact, known)
    listed = entries(plan, spine)
    cells = {one.product.table: _cells(plan, one.product.table) for one in read}
    noisy = NoisyFiles(path, listed, files, passed, spine.levels, cells)
    return MeasuredRelease(plan, spine, noisy, values, _not_known(read, exact, known is None))


def _not_known(read: Sequence[_Read], exact: Mapping[str, ExactCounts], no_totals: bool) -> tuple[str, ...]:
    """What the files could tell and do not, in words."""
    said = []
    if any(one.files.nation_left_out for one in read):
        said.append("the nation's own measurements, since not all states are known to be there (--nation)")
    for one in read:
        known = exact[one.product.table]
        if one.product.bounds and no_totals:
            said.append("totals of states, which are not in the files (--totals)")
        if one.product.bounds and known.facilities is None:
            said.append("facilities by kind, which no file of constraints states for every finest geounit")
        if one.product.bounds and known.homes is None:
            said.append("where households can live, which no file of constraints states for every finest geounit")
        if one.product.total and known.total is None:
            said.append(f"the number of {one.product.table}, which no file of constraints states for every geounit")
    return tuple(said)


def _finest(read: _Read, spine: Spine) -> LevelFiles:
    return next(level for level in read.files.levels if level.level == spine.levels[-1])


def _cells(plan: TopDownPlan, table: str) -> dict[tuple[str, ...], int]:
    section = plan.table(table)
    return {query.by: section.schema_of.number_of_groups(query.by) for query in section.queries}


def _numbers(rows: FileRows, spine: Spine, level: int) -> Index:
    """The number in the geography of each code of a file."""
    if spine.levels[level] == NATION:
        if len(rows.codes) > 1:
            raise errors.noisy_column(rows.path, GEOCODE, f"has {len(rows.codes)} codes", "one, that of the nation")
        return np.zeros(len(rows.codes), dtype=np.int64)
    found = pc.index_in(rows.codes, spine.names[level])
    if found.null_count:
        strange = rows.codes.filter(pc.is_null(found))[0].as_py()
        raise errors.noisy_column(
            rows.path, GEOCODE, f"has '{plain(strange)}', with which no code of level '{spine.levels[-1]}' begins",
            "codes that are prefixes of codes of the finest level",
        )  # fmt: skip
    return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.int64)


def _seen(files: Sequence[OpenedFile], spine: Spine, level: int) -> NDArray[np.bool_]:
    """Which units of a level have measurements: each of them every query of the level once."""
    queries = sorted({kind.by for file in files for kind in file.rows.kinds})
    times = np.zeros((spine.units(level), len(queries)), dtype=np.uint8)
    for file in files:
        place = np.array([queries.index(kind.by) for kind in file.rows.kinds], dtype=np.int64)
        number = len(file.rows.codes) * len(queries)
        keys = file.rows.unit.astype(np.int64) * len(queries) + place[file.rows.kind]
        here = np.bincount(keys, minlength=number).reshape(-1, len(queries))
        times[file.to_unit] += np.minimum(here, 2).astype(np.uint8)
        if (twice := times[file.to_unit] > 1).any():
            unit, query = np.argwhere(twice)[0]
            raise errors.noisy_column(
                file.rows.path, QUERY,
                f"has {_named(file, queries[query])} twice for '{plain(file.rows.codes[int(unit)].as_py())}'",
                "each query once in each geounit, in all files of a level together",
            )  # fmt: skip
    measured: NDArray[np.bool_] = np.asarray(times.any(axis=1))
    if (lacking := measured & ~times.all(axis=1)).any():
        unit = int(np.flatnonzero(lacking)[0])
        query = queries[int(np.flatnonzero(times[unit] == 0)[0])]
        raise errors.noisy_column(
            files[0].rows.path, QUERY,
            f"has no row of {_named(files[0], query)} for the geounit "
            f"'{plain(spine.names[level][unit].as_py())}'",
            f"every query of level '{spine.levels[level]}' in each of its geounits",
        )  # fmt: skip
    return measured


def _named(file: OpenedFile, by: tuple[str, ...]) -> str:
    return next((plain(kind.name) for kind in file.rows.kinds if kind.by == by), "a query")


def _passed_over(seen: Sequence[NDArray[np.bool_]], spine: Spine, read: _Read) -> list[Index]:
    """By level and unit, how many units directly above it have no measurements: each may have but this one child."""
    depth = [np.zeros(spine.units(0), dtype=np.int64)]
    for level in range(len(seen)):
        several = np.diff(spine.first_child[level]) > 1 if level < len(seen) - 1 else np.True_
        bad = ~seen[level] & several
        if bad.any():
            unit = spine.names[level][int(np.flatnonzero(bad)[0])].as_py()
            raise errors.noisy_column(
                read.rows[spine.levels[level]][0].path, GEOCODE, f"does not have the geounit '{plain(unit)}'",
                "every unit above the finest ones, but for those with one child",
            )  # fmt: skip
        if level:
            parents = spine.parents(level)
            depth.append(np.where(seen[level - 1][parents], 0, depth[level - 1][parents] + 1))
    return depth


def _level_variances(
    read: _Read, spine: Spine, depth: Sequence[Index], files: Mapping[tuple[str, str], tuple[OpenedFile, ...]]
) -> list[dict[tuple[str, ...], Kind]]:
    """The variance of each query of each level in units below which nothing was passed over; others must follow."""
    table = read.product.table
    found: list[dict[tuple[str, ...], Kind]] = []
    for at, level in enumerate(spine.levels):
        times: dict[Kind, int] = {}
        for file in files[table, level]:
            plainly = depth[at][file.to_unit[file.rows.unit]] == 0
            for number, count in enumerate(np.bincount(file.rows.kind[plainly], minlength=len(file.rows.kinds))):
                times[file.rows.kinds[number]] = times.get(file.rows.kinds[number], 0) + int(count)
        # In the order in which queries first occur; of each the variance that most geounits have.
        nominal: dict[tuple[str, ...], Kind] = {}
        for kind, count in times.items():
            if count > times.get(nominal.get(kind.by, kind), 0) or (count and kind.by not in nominal):
                nominal[kind.by] = kind
        found.append(nominal)
        for file in files[table, level]:
            _require_variances(file, found, depth[at], level)
    return found


def _require_variances(
    file: OpenedFile, levels: Sequence[Mapping[tuple[str, ...], Kind]], depth: Index, level: str
) -> None:
    """Raise if the variance of a row is not that of its level, with the budgets of units passed over added."""
    over = depth[file.to_unit[file.rows.unit]]
    for number, kind in enumerate(file.rows.kinds):
        for above in np.unique(over[file.rows.kind == number]).tolist():
            # A level that does not have the query has no budget for it to pass on.
            used = [one[kind.by].variance for one in levels[len(levels) - 1 - above :] if kind.by in one]
            lacking = kind.by not in levels[-1]
            expected = 0.0 if lacking else 1 / sum(1 / one for one in used)
            if lacking or abs(kind.variance - expected) > _SAME * expected:
                row = int(np.flatnonzero((file.rows.kind == number) & (over == above))[0])
                code = file.rows.codes[int(file.rows.unit[row])].as_py()
                more = (
                    f": as in most geounits of level '{level}', with the budget of {above} above that have no rows (if "
                    "these should have rows, files are missing)"
                    if above
                    else f", as in most geounits of level '{level}'"
                )
                raise errors.noisy_column(
                    file.rows.path, VARIANCE,
                    f"is {kind.variance:g} for {plain(kind.name)} in the geounit '{plain(code)}'",
                    "no such query, as in most geounits of the level" if lacking
                    else f"{expected:g}{more}",
                )  # fmt: skip


def _passed(spine: Spine, seen: Sequence[NDArray[np.bool_]], depth: Sequence[Index]) -> tuple[Passed, ...]:
    """For each number of levels that are passed over, the units and those whose values stand for them."""
    found = []
    for below in range(1, len(spine.levels)):
        measured = np.flatnonzero(seen[below])
        for steps in range(1, int(depth[below][measured].max(initial=0)) + 1):
            children = measured[depth[below][measured] >= steps]
            units = children
            for level in range(below, below - steps, -1):
                units = spine.parents_of(level, units)
            found.append(Passed(below - steps, units, below, children))
    return tuple(found)


ADOPTED = "adopted.json"
_SCATTERED = "scattered"


def adopt(measurements: str | Path, folder: Path, **options: Any) -> TopDownDraw:
    """Write published measurements into a folder as a draw that has no manifest yet."""
    stage("reading what was measured")
    opened = open_noisy_measurements(measurements, **options)
    plan, spine = opened.plan, opened.spine
    known = Known(plan, spine, tuple(values for values in opened.exact if values is not None))
    require_nested(plan)
    assert isinstance(opened.measurements, NoisyFiles)
    (folder / MEASUREMENTS).mkdir()
    with _Scattered(folder / _SCATTERED, opened.measurements) as scattered:
        stage("writing measurements in the order of the geography")
        write_again(opened.measurements.entries, scattered.values, folder / MEASUREMENTS, plan, spine)
    known.write(folder)
    made_from = {"files_sha256": _identity(Path(measurements), options)}
    (folder / ADOPTED).write_text(json.dumps(made_from) + "\n", encoding="utf-8")
    return TopDownDraw(
        folder=folder,
        known=known,
        specification=specify(plan),
        for_release=True,
        nonce=draw_nonce(SystemSource()),
    )


def readopt(measurements: str | Path, work: Path, **options: Any) -> TopDownDraw:
    """The draw in a work folder that was made from these files with these options."""
    try:
        fields = read_json(inside(work, DRAWN))["plan"]
        same = read_json(inside(work, ADOPTED))["files_sha256"] == _identity(Path(measurements), options)
    except (OSError, ValueError, KeyError, TypeError):
        raise errors.work_folder(work, "it was not made from noisy measurement files") from None
    if not same:
        raise errors.work_folder(work, "it was made from other noisy measurement files, or with other options")
    return reopen(TopDownPlan.from_published(fields), work)


def _identity(folder: Path, options: dict[str, Any]) -> str:
    """The names and sizes of all files, and what was asked for. Files are too large for checksums of their contents."""
    listed = [
        (str(path.relative_to(folder)), path.stat().st_size)
        for one in product_folders(folder)
        for path in sorted(one.rglob("*"))
        if path.is_file()
    ]
    asked = {name: str(value) for name, value in sorted(options.items()) if value}
    if totals := options.get("totals"):
        asked["totals"] = hashlib.sha256(Path(totals).read_bytes()).hexdigest() if Path(totals).is_file() else ""
    return hashlib.sha256(json.dumps([listed, asked]).encode()).hexdigest()


class _Scattered:
    """Values in the order of the geography, in files of plain numbers that go away with it."""

    def __init__(self, folder: Path, files: NoisyFiles) -> None:
        self.folder, self._files = folder, files
        self._arrays: dict[Entry, NDArray[np.int32]] = {}

    def __enter__(self) -> _Scattered:
        self.folder.mkdir()
        entries = self._files.entries
        every, done = sum(one.units * one.cells for one in entries), 0
        for number, entry in enumerate(entries):
            shape = entry.units, entry.cells
            self._arrays[entry] = np.memmap(self.folder / f"{number}", dtype=np.int32, mode="w+", shape=shape)
        for entry, units, values in self._files.batches(entries):
            self._put(entry, units, values)
            done += values.size
            stage(f"reading {entry.table} at level '{entry.level}'", min(1.0, done / every))
        return self

    def _put(self, entry: Entry, units: slice | Index, values: NDArray[np.integer]) -> None:
        small = values.astype(np.int32)
        if not np.array_equal(small, values):
            raise errors.noisy_folder(self._files.folder, "a value does not fit into 32 bits")
        self._arrays[entry][units] = small

    def __exit__(self, *_: object) -> None:
        self._arrays.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def values(self, entry: Entry, units: slice) -> NDArray[np.int64]:
        """The values of some units, a row for each."""
        return self._arrays[entry][units].astype(np.int64)
