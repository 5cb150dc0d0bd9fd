"""Written columns hold what was encoded, value for value, in every format; other programs' readers are the judges."""

from __future__ import annotations

import csv
import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_series_equal
from reading_tools import arrow_of

from stirred.tables import Column, open_input
from stirred.tables.columns import ColumnEncoder, as_text, recast
from stirred.tables.reading.table_reader import read_table
from stirred.tables.writing import EXTENSIONS, Cell, as_arrow, write_table

FORMATS = list(EXTENSIONS)


def encoded(array: pa.Array, name: str = "cell") -> Column:
    encoder = ColumnEncoder("t", name, array.type)
    encoder.add(array)
    return encoder.finish()


def numbered(column: Column) -> list[Cell]:
    """A chunk of two columns, so that a null is not an empty line."""
    return [Cell("row", np.arange(1, len(column.codes) + 1)), Cell(column.name, column.codes, column)]


def bits(array: Any) -> list[object]:
    if pa.types.is_floating(array.type):
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        array = array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    return array.to_pylist()


# -- one column of every type -----------------------------------------------------------------------------------

TEXTS = [
    "",
    "001",
    "NA",
    "null",
    "é",
    "日本",
    "a,b",
    'say "no"',
    '"',
    "two\nlines",
    "two\r\nlines",
    "\r",
    " x ",
    "'",
    "#",
]
MOMENTS = [dt.datetime(2020, 2, 29, 23, 59, 58, 678901), dt.datetime(1905, 6, 7, 8, 9, 10, 111)]
ARRAYS = {
    "text": pa.array(TEXTS),
    "integers": pa.array([-(2**63), 2**63 - 1, 0]),
    "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
    "small": pa.array([-128, 127], pa.int8()),
    "bool": pa.array([True, False]),
    "dates": pa.array([dt.date(1, 1, 1), dt.date(1905, 1, 2), dt.date(9999, 12, 31)]),
    "moments": pa.array(MOMENTS, pa.timestamp("us")),
    "moments to the nanosecond": pa.array([1, -1, 10**18 + 1]).cast(pa.timestamp("ns")),
    "moments in UTC": pa.array(MOMENTS, pa.timestamp("ms", "UTC"), safe=False),
    "moments in Berlin": pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")),
    "moments at an offset": pa.array(MOMENTS, pa.timestamp("us", "+05:30")),
    "times": pa.array([dt.time(0), dt.time(23, 59, 59, 999999)], pa.time64("us")),
    "times to the millisecond": pa.array([0, 86_399_999], pa.time32("ms")),
    "times to the nanosecond": pa.array([0, 86_399_999_999_000], pa.time64("ns")),
    "durations": pa.array([dt.timedelta(days=-3, microseconds=5), dt.timedelta(0)], pa.duration("us")),
    "decimals": pa.array([Decimal("1.20"), Decimal("-999.99")], pa.decimal128(5, 2)),
    "long decimals": pa.array([Decimal("9" * 48 + ".99")], pa.decimal256(50, 2)),
    "float16": pa.array(np.array([1.5, -0.0, 0.0, np.inf, 6e-8], dtype=np.float16)),
    "float32": pa.array(np.array([1.1, -0.0, 1e-45, -np.inf, 3.4028235e38], dtype=np.float32)),
    "float64": pa.array([0.1, -0.0, 0.0, float("inf"), 5e-324, 1.7976931348623157e308, 1 / 3, 1e16, 123456789.125]),
    "nan": pa.array([float("nan"), 1.0]),
    "nothing": pa.nulls(2),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("kind", FORMATS)
def test_a_recipient_reads_back_what_was_written(tmp_path, kind, array):
    array = pa.concat_arrays([array, pa.nulls(1, array.type), array])
    column, path = encoded(array), tmp_path / f"t{EXTENSIONS[kind]}"
    write_table(path, kind, [numbered(column)])
    found = read_table(open_input("t", path), ["cell"]).table["cell"]
    back = recast(found, array.type) if kind == "csv" else found
    assert back.type == array.type
    assert bits(back.decode(back.codes)) == bits(array)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_arrow_and_polars_read_the_cells_and_types_that_were_written(tmp_path, kind, array):
    column, path = encoded(array), tmp_path / f"t{EXTENSIONS[kind]}"
    write_table(path, kind, [numbered(column)])
    found = arrow_of(path)["cell"]
    assert found.type == array.type
    assert bits(found) == bits(array)
    if not (pa.types.is_decimal256(array.type) or str(array.type).endswith("tz=+05:30]")):  # beyond Polars
        frame = (pl.read_parquet if kind == "parquet" else pl.read_ipc)(path)
        assert frame["row"].to_list() == list(range(1, len(array) + 1))
        expected = pl.Series("cell", pl.from_arrow(array))
        assert_series_equal(frame["cell"], expected, check_exact=True, check_dtypes=not pa.types.is_null(array.type))


def test_csv_tells_the_empty_text_from_null(tmp_path):
    column = encoded(pa.array(["", None, "x"]))
    write_table(tmp_path / "t.csv", "csv", [numbered(column)])
    assert (tmp_path / "t.csv").read_text() == 'row,cell\n1,""\n2,\n3,x\n'


@given(st.lists(st.text(max_size=8), min_size=1, max_size=20))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_csv_module_reads_every_text_that_was_written(tmp_path, texts):
    write_table(tmp_path / "t.csv", "csv", [numbered(encoded(pa.array(texts)))])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [["row", "cell"], *([str(row), text] for row, text in enumerate(texts, 1))]


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_in_csv_are_the_same_floating_point_numbers(tmp_path, numbers):
    write_table(tmp_path / "t.csv", "csv", [numbered(encoded(pa.array(numbers)))])
    with (tmp_path / "t.csv").open(newline="") as file:
        found = [float(row[1]) for row in list(csv.reader(file))[1:]]
    assert [number.hex() for number in found] == [number.hex() for number in numbers]


def test_temporal_cells_of_csv_follow_the_standard(tmp_path):
    arrays = ["dates", "moments", "moments in Berlin", "times", "durations", "decimals"]
    chunk = [Cell(name, encoded(ARRAYS[name][:2]).codes, encoded(ARRAYS[name][:2], name)) for name in arrays]
    write_table(tmp_path / "t.csv", "csv", [chunk])
    with (tmp_path / "t.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert dt.date.fromisoformat(first["dates"]) == dt.date(1, 1, 1)
    assert dt.datetime.fromisoformat(first["moments"]) == MOMENTS[0]
    assert dt.datetime.fromisoformat(first["moments in Berlin"]) == MOMENTS[0].replace(tzinfo=dt.UTC)
    assert dt.time.fromisoformat(first["times"]) == dt.time(0)
    assert dt.timedelta(microseconds=int(first["durations"])) == dt.timedelta(days=-3, microseconds=5)
    assert Decimal(first["decimals"]) == Decimal("1.20")


@pytest.mark.parametrize("kind", FORMATS)
def test_many_chunks_are_one_table(tmp_path, kind):
    column = encoded(pa.array(["b", "a", None, "c,d", "b"]))
    parts = [slice(0, 2), slice(2, 3), slice(3, 5)]
    chunks = [
        [Cell("row", np.arange(part.start + 1, part.stop + 1)), Cell("cell", column.codes[part], column)]
        for part in parts
    ]
    path = tmp_path / f"t{EXTENSIONS[kind]}"
    write_table(path, kind, iter(chunks))
    found = pl.read_csv(path).to_arrow() if kind == "csv" else arrow_of(path)
    expected = {"row": [1, 2, 3, 4, 5], "cell": ["b", "a", None, "c,d", "b"]}
    assert found.to_pydict() == as_arrow(chunks).to_pydict() == expected


@pytest.mark.parametrize("name", ["text", "moments in Berlin", "durations"])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_carry_no_metadata_beyond_the_schema(tmp_path, kind, name):
    path = tmp_path / f"t{EXTENSIONS[kind]}"
    write_table(path, kind, [numbered(encoded(ARRAYS[name]))])
    schema = pq.read_schema(path) if kind == "parquet" else pa.ipc.open_file(path).schema
    assert schema.metadata is None
    assert all(field.metadata is None or set(field.metadata) <= {b"PARQUET:field_id"} for field in schema)
    if kind == "parquet":
        kept = set(pq.read_metadata(path).metadata or {})
        assert kept <= ({b"ARROW:schema"} if name != "text" else set())


def test_as_text_is_what_csv_shows(tmp_path):
    for name in ("moments", "times", "durations", "decimals", "long decimals", "moments at an offset"):
        column = encoded(ARRAYS[name])
        write_table(tmp_path / "t.csv", "csv", [numbered(column)])
        shown = pl.read_csv(tmp_path / "t.csv", infer_schema=False)["cell"].to_list()
        assert shown == as_text(column.decode(column.codes)).to_pylist()
