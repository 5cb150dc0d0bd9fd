"""Reads a file of places, and counts released rows by them: codes of small units such as blocks, beside places' names.

Codes are text, so that leading zeros stay. A unit may lie in no place (an empty name) or in several (a row for each).

The invariant a reader must know: every pair of a unit and a place occurs once, so that no unit counts twice in a place.

Counts of units that lie in no place are left out, and told; those of units in several places count in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.errors import listed
from stirred.tables.columns import as_text

MOST_ROWS = 200_000_000
"""Rows that a file of places may have."""


@dataclass(frozen=True, eq=False, repr=False)
class PlaceFile:
    """Units and the places that they lie in, as text."""

    file: str
    unit: str
    """The column with the codes of units."""
    column: str
    """The column with the names of places."""
    codes: pl.Series
    """The code of the unit of each row that has a place."""
    names: tuple[str, ...]
    """The places, in the order of the file."""
    of_row: NDArray[np.int64]
    """For each row that has a place, its number among ``names``."""
    placeless: pl.Series
    """The codes of rows without a place."""

    def __repr__(self) -> str:
        return f"<PlaceFile: {len(self.names):,} places of column '{self.column}' by '{self.unit}'>"

    def several(self) -> int:
        """How many units lie in more than one place."""
        return int((self.codes.value_counts(name="times")["times"] > 1).sum()) if len(self.codes) else 0


def read_places(given: Any, units: Sequence[str], column: str | None = None, taken: Sequence[str] = ()) -> PlaceFile:
    """Read a CSV or Parquet file, or a frame.

    ``units`` are the columns that may hold codes: the first of them that the file has does. ``column`` holds the names
    of places; by default it is the only other one. ``taken`` are names that it may not have, since they mean something
    else in the same question.
    """
    file, frame = _opened(given)
    unit = next((name for name in units if name in frame.columns and name != column), None)
    if unit is None:
        known = listed(list(units), "or")
        raise errors.places_file(file, f"has no column of codes: one of its columns must be named {known}")
    others = [name for name in frame.columns if name not in units]
    if column is None:
        if len(others) != 1:
            found = f"has {len(others)} columns beside '{unit}'"
            raise errors.places_file(file, found, "Name the one with the places: --place-column NAME.")
        column = others[0]
    if column not in frame.columns or column == unit:
        raise errors.unknown_choice("column of places", column, others or list(frame.columns))
    if column in taken or column in units:
        raise errors.places_file(
            file, f"has its places in a column named '{column}', which means something else in the release",
            "Rename the column.",
        )  # fmt: skip
    chosen = _as_text(file, frame.select(unit, column))
    return _places(file, unit, column, chosen.rename({unit: "code", column: "place"}))


def _places(file: str, unit: str, column: str, pairs: pl.DataFrame) -> PlaceFile:
    empty = int((pairs["code"].is_null() | (pairs["code"] == "")).sum())
    if empty:
        raise errors.places_file(file, f"has {empty:,} rows without a code in column '{unit}'")
    without = pairs["place"].is_null() | (pairs["place"].str.strip_chars() == "")
    inside = pairs.filter(~without)
    if not inside.height:
        raise errors.places_file(file, f"names no place in column '{column}'")
    again = inside.filter(inside.is_duplicated()).unique(maintain_order=True)
    if again.height:
        shown = [f"{code} in {place}" for code, place in again.head(errors.FEW).iter_rows()]
        raise errors.places_twice(file, unit, again.height, shown)
    names = inside["place"].unique(maintain_order=True)
    numbers = pl.DataFrame({"place": names, "number": np.arange(len(names))})
    of_row = inside.select("place").join(numbers, on="place", how="left", maintain_order="left")["number"]
    return PlaceFile(
        file, unit, column, inside["code"], tuple(names.to_list()), of_row.to_numpy().astype(np.int64),
        pairs.filter(without)["code"],
    )  # fmt: skip


def _opened(given: Any) -> tuple[str, pl.DataFrame]:
    """The words for the file, and its columns; those of a CSV file as text."""
    if isinstance(given, pl.DataFrame | Mapping):
        return "(a frame)", pl.DataFrame(given)
    if not isinstance(given, str | Path):
        from stirred.tables.reading.frames import as_polars

        return "(a frame)", as_polars("places", given)
    path = Path(given)
    try:
        if path.suffix == ".parquet":
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            _require_bounded(path, rows)
            return str(path), pl.read_parquet(path)
        frame = pl.read_csv(path, infer_schema=False, n_rows=MOST_ROWS + 1)
    except (OSError, pl.exceptions.PolarsError):
        raise errors.places_file(path, "cannot be read: it must be a CSV file in UTF-8, or a Parquet file") from None
    _require_bounded(path, frame.height)
    return str(path), frame


def _as_text(file: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers as text, unless they are fractions: 1.0 is no code."""
    strange = [name for name, kind in frame.schema.items() if kind.is_float() or kind.is_nested()]
    if strange:
        raise errors.places_file(file, f"has the column '{strange[0]}', which holds neither text nor whole numbers")
    return frame.select(pl.all().cast(pl.String))


def _require_bounded(path: Path, rows: int) -> None:
    if rows > MOST_ROWS:
        raise errors.places_file(path, f"has more than {MOST_ROWS:,} rows")


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
