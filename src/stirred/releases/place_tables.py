"""Tables of released rows by the places of a file: counts by unit, put together.

Counts of units that lie in no place are left out, and told; those of units in several places count in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from stirred import errors
from stirred.tables.columns import as_text
from stirred.tables.place_files import PlaceFile, read_places


def places_of(
    given: Any, units: Mapping[str, pa.Array | None], column: str | None, taken: Sequence[str] = ()
) -> PlaceFile:
    """The places of a file for a released table whose columns of units are ``units``: by name, all their values where
    these are listed."""
    file = read_places(given, list(units), column, taken)
    known = units[file.unit]
    if known is not None:
        listed = pl.Series(as_text(known))
        codes = pl.concat([file.codes, file.placeless])
        missing = codes.filter(~codes.is_in(listed.implode())).unique(maintain_order=True)
        if len(missing):
            raise errors.places_unknown(file.file, file.unit, len(missing), missing.head(errors.FEW).to_list())
    return file


def put_together(counted: pa.Table, file: PlaceFile, by: Sequence[str]) -> tuple[pa.Table, tuple[str, ...]]:
    """A row for every place and every combination of ``by`` that occurs in the table, and remarks on units that lie in
    no place or in several; ``counted`` has columns for units and ``by``, and last the counts."""
    count = counted.column_names[-1]
    arranged = counted.set_column(0, file.unit, as_text(counted[file.unit].combine_chunks()))
    frame = pl.DataFrame(pl.from_arrow(arranged))
    kept = [name for name in by if name != file.unit]
    rows = pl.DataFrame({file.unit: file.codes, "": file.of_row})
    inside = frame.join(rows, on=file.unit, how="inner")
    sums = inside.group_by(["", *kept]).agg(pl.col(count).sum())
    combinations = frame.select(kept).unique(maintain_order=True) if kept else None
    every = pl.DataFrame({"": range(len(file.names))}, schema={"": pl.Int64})
    if combinations is not None:
        every = every.join(combinations, how="cross")
    table = every.join(sums, on=["", *kept], how="left", nulls_equal=True, maintain_order="left")
    table = table.with_columns(pl.col(count).fill_null(0))
    names = pl.Series(file.column, list(file.names), dtype=pl.String).gather(table[""])
    outside = frame.join(rows, on=file.unit, how="anti")[count].sum()
    said = []
    if outside:
        said.append(f"A count of {round(outside, 1):,} is in no place of '{file.column}', and not in the table.")
    if several := file.several():
        said.append(f"{several:,} units of '{file.unit}' lie in more than one place, and count in each of them.")
    absent = file.codes.unique().len() - file.codes.filter(file.codes.is_in(frame[file.unit].implode())).unique().len()
    if absent:
        said.append(f"{absent:,} units of '{file.unit}' that the file names have no released row.")
    return table.select(names, *kept, count).to_arrow(), tuple(said)
