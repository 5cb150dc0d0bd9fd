"""Measure: every query of every level, counted on its full domain, with exact discrete Gaussian noise.

One changed record moves two cells of a query by one each, so noise of variance 1/rho on each cell costs rho. Values
are written as they are drawn, in the order of units and cells, and read back by ranges of units; neither needs memory
for more than a part.

The invariant a reader must know: measurements cover all units and all cells, also those that no fit will look at, so
that which ones are there says nothing about the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.noise import RandomSource, discrete_gaussian
from stirred.release.progress import Progress
from stirred.topdown.counting import Counted, marginal
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.schema import Schema
from stirred.topdown.spine import Spine

INDEX = "measurements.json"
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
    """Everything that is measured, in order."""
    found = []
    for table in plan.released:
        for number, level in enumerate(plan.spine.all_levels):
            for query in table.queries:
                rho = table.rho_of(level, query)
                if rho:
                    cells = table.schema_of.number_of_groups(query.by)
                    name = "-".join(_slug(part) for part in (table.name, level, query.name))
                    found.append(
                        Entry(table.name, level, query.name, query.by, spine.units(number), cells, str(rho),
                              str(1 / rho), f"{name}.parquet")
                    )  # fmt: skip
    return found


def measure(counted: Counted, folder: Path, source: RandomSource, progress: Progress) -> list[Entry]:
    """Draw and write all measurements into ``folder``."""
    plan, spine = counted.plan, counted.spine
    found = entries(plan, spine)
    for table in plan.released:
        for number, level in enumerate(plan.spine.all_levels):
            histograms = counted.histograms(table.name, number)
            progress.stage(f"measuring {table.name} at level '{level}'")
            for entry in found:
                if (entry.table, entry.level) != (table.name, level):
                    continue
                groups = table.schema_of.groups(entry.by)
                with _Writer(folder / entry.file, entry, spine.names[number], table.schema_of) as writer:
                    for units in parts(entry.units, entry.cells):
                        truth = marginal(histograms.of_units(np.arange(units.start, units.stop)), groups, entry.cells)
                        noise = discrete_gaussian(Fraction(entry.variance), truth.size, source)
                        writer.add(units, truth.ravel() + noise)
    (folder / INDEX).write_text(json.dumps([asdict(entry) for entry in found], indent=1) + "\n", encoding="utf-8")
    return found


def parts(units: int, cells: int) -> Iterator[slice]:
    """Ranges of units with a bounded number of values."""
    step = max(1, PART // cells)
    for start in range(0, units, step):
        yield slice(start, min(units, start + step))


class _Writer:
    """One Parquet file: level, geounit, query, cell, value; a row group for each part."""

    def __init__(self, path: Path, entry: Entry, names: pa.Array, schema: Schema) -> None:
        self._names, self._entry = names.cast(pa.string()), entry
        self._labels = pa.array(["*".join(label) or "all" for label in schema.labels(entry.by)])
        kind = pa.dictionary(pa.int32(), pa.string())
        fields = [("level", kind), ("geounit", kind), ("query", kind), ("cell", kind), ("value", pa.int64())]
        self._schema = pa.schema(fields, metadata={"rho": entry.rho, "variance": entry.variance})
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd", use_dictionary=_DICTIONARIES)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, units: slice, values: NDArray[np.int64]) -> None:
        cells, number = self._entry.cells, units.stop - units.start
        constant = np.zeros(len(values), dtype=np.int32)
        columns = [
            pa.DictionaryArray.from_arrays(constant, pa.array([self._entry.level])),
            pa.DictionaryArray.from_arrays(np.repeat(np.arange(number, dtype=np.int32), cells), self._names[units]),
            pa.DictionaryArray.from_arrays(constant, pa.array([self._entry.query])),
            pa.DictionaryArray.from_arrays(np.tile(np.arange(cells, dtype=np.int32), number), self._labels),
            pa.array(values),
        ]
        self._file.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=len(values))


_DICTIONARIES = ["level", "geounit", "query", "cell"]


class Measurements:
    """Measurement files, read back by ranges of units."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        self.entries = [Entry(**{**one, "by": tuple(one["by"])}) for one in listed]

    def of(self, table: str, level: str) -> list[Entry]:
        return [entry for entry in self.entries if (entry.table, entry.level) == (table, level)]

    def values(self, entry: Entry, units: slice) -> NDArray[np.int64]:
        """The values of some units, a row for each."""
        file = pq.ParquetFile(self.folder / entry.file)
        groups = list(parts(entry.units, entry.cells))
        wanted = [n for n, part in enumerate(groups) if part.start < units.stop and units.start < part.stop]
        read = file.read_row_groups(wanted, columns=["value"])["value"].to_numpy()
        first = groups[wanted[0]].start
        return np.asarray(read.reshape(-1, entry.cells)[units.start - first : units.stop - first])


def _slug(text: Any) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", str(text))
