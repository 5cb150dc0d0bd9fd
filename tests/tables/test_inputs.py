"""Reading what users bring: cells arrive as other readers and the csv module see them; faults are named, not quoted.

Every refusal is provoked beside a marker value, and the marker must show nowhere: not in the message, not in the
printed traceback.
"""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import io
import os
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from stirred.errors import StirredError
from stirred.tables import InputOptions, inputs, open_input
from stirred.tables.read import ReadTable, read_table

SECRET = "SECRET-7731"


def read(data: object, columns: Sequence[str] | None = None, **options: Any) -> ReadTable:
    opened = open_input("people", data, InputOptions(**options))
    return read_table(opened, list(opened.kinds) if columns is None else columns)


def cells(data: object, **options: Any) -> dict[str, list[object]]:
    """All columns, decoded."""
    table = read(data, **options).table
    return {name: column.decode(column.codes).to_pylist() for name, column in table.columns.items()}


def refused(kind: str, data: object, columns: Sequence[str] | None = None, **options: Any) -> StirredError:
    """The refusal, once it is seen to be of the right kind and to keep the marker to itself."""
    with pytest.raises(StirredError) as caught:
        read(data, columns, **options)
    refusal = caught.value
    shown = str(refusal) + "".join(traceback.format_exception(refusal))
    assert refusal.kind == kind, str(refusal)
    assert SECRET not in shown
    assert refusal.__cause__ is None
    assert refusal.__context__ is None or refusal.__suppress_context__
    return refusal


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# -- CSV ------------------------------------------------------------------------------------------------------

PLAIN = "county,size\n001,2\n003,10\n"
AS_READ = {"county": ["001", "003"], "size": ["2", "10"]}


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".csv", bytes), (".txt", bytes), (".csv.gz", gzip.compress), (".csv.zst", zstd), (".CSV.BZ2", bz2.compress)],
)
def test_csv_is_read_plain_and_compressed(tmp_path, suffix, compress):
    assert cells(write(tmp_path / f"a{suffix}", compress(PLAIN.encode()))) == AS_READ


@pytest.mark.parametrize("name", ["a.tsv", "a.TSV", "a.b.tsv.gz"])
def test_tsv_is_separated_by_tabs(tmp_path, name):
    content = PLAIN.replace(",", "\t").encode()
    assert cells(write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)) == AS_READ


def test_a_name_without_suffix_is_read_when_the_format_is_named(tmp_path):
    path = write(tmp_path / "extract", PLAIN)
    assert cells(path, format="csv") == AS_READ
    refused("unknown-format", path)


def test_the_delimiter_can_be_named(tmp_path):
    path = write(tmp_path / "a.csv", "county;income\n001;1,5\n")
    assert cells(path, delimiter=";") == {"county": ["001"], "income": ["1,5"]}


@pytest.mark.parametrize("delimiter", ["||", '"', "\n", "€"])
def test_a_delimiter_that_cannot_separate_is_refused(tmp_path, delimiter):
    refused("plan-field", write(tmp_path / "a.csv", PLAIN), delimiter=delimiter)


@pytest.mark.parametrize("content", ["\ufeff" + PLAIN, PLAIN.replace("\n", "\r\n"), "\n\n" + PLAIN, PLAIN[:-1]])
def test_byte_order_mark_line_ends_and_blank_lines_change_nothing(tmp_path, content):
    assert cells(write(tmp_path / "a.csv", content)) == AS_READ


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8-sig"])
def test_an_encoding_can_be_named(tmp_path, encoding):
    path = write(tmp_path / "a.csv", "town,größe\nFürth,2\n".encode(encoding))
    assert cells(path, encoding=encoding) == {"town": ["Fürth"], "größe": ["2"]}


def test_an_unknown_encoding_is_refused(tmp_path):
    refused("plan-field", write(tmp_path / "a.csv", PLAIN), encoding="klingon")


def test_cells_are_text_unless_a_type_is_given(tmp_path):
    path = write(tmp_path / "a.csv", "a,b,c,d\n001,1.50,true,2020-01-01\n")
    assert cells(path) == {"a": ["001"], "b": ["1.50"], "c": ["true"], "d": ["2020-01-01"]}
    assert {column.type for column in read(path).table.columns.values()} == {pa.string()}


def test_types_are_read_as_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", "a,b,c,d,e\n001,1.50,true,2020-02-29,x\n-7,-0.0,0,1905-01-02,y\n,,,,\n")
    types = {"a": "integer", "b": "number", "c": "boolean", "d": "date", "e": "text"}
    found = read(path, types=types)
    assert {name: column.type for name, column in found.table.columns.items()} == {
        "a": pa.int64(),
        "b": pa.float64(),
        "c": pa.bool_(),
        "d": pa.date32(),
        "e": pa.string(),
    }
    assert cells(path, types=types) == {
        "a": [1, -7, None],
        "b": [1.5, -0.0, None],
        "c": [True, False, None],
        "d": [dt.date(2020, 2, 29), dt.date(1905, 1, 2), None],
        "e": ["x", "y", None],
    }
    assert found.nulls == dict.fromkeys("abcde", 1)


def test_only_the_empty_field_is_null(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\nNA,1\nnull,2\nN,3\n,4\n"",5\nNaN,6\n-,7\n')
    assert cells(path)["a"] == ["NA", "null", "N", None, "", "NaN", "-"]
    assert read(path).nulls == {"a": 1}


def test_further_nulls_can_be_named_and_quoted_ones_are_text(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\nNA,1\n"NA",2\n.,3\n,4\n"",5\n')
    assert cells(path, null_values=["NA", "."])["a"] == [None, "NA", None, None, ""]


tables_of_text = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(st.text(max_size=6), min_size=width, max_size=width), min_size=1, max_size=8)
)


@given(tables_of_text, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_csv_module_writes_is_read_cell_for_cell(tmp_path, rows, delimiter, line_end, quote_all):
    assume(quote_all or not any("\r" in value for row in rows for value in row))  # which the module forgets to quote
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    names = [f"column, {i}" for i in range(len(rows[0]))]
    writer.writerows([names, *rows])
    path = write(tmp_path / "a.csv", text.getvalue())
    expected = [[value if value or quote_all else None for value in row] for row in rows]
    found = cells(path, delimiter=delimiter)
    assert list(found) == names
    assert [list(row) for row in zip(*found.values(), strict=True)] == expected


def test_lines_may_break_at_any_block_boundary(tmp_path, monkeypatch):
    rows = [(f"{i:03}", f'say "{i}",\nthen {i * i}', "" if i % 7 else "x") for i in range(300)]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("a", "b", "c"), *rows])
    path = write(tmp_path / "a.csv", text.getvalue())
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 256)
    assert len(list(open_input("people", path).batches(["a"]))) > 20
    assert list(zip(*cells(path).values(), strict=True)) == rows


# -- several files --------------------------------------------------------------------------------------------


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    write(tmp_path / "parts/1.csv", "a,b\n1,x\n")
    write(tmp_path / "parts/2.csv.gz", gzip.compress(b"a,b\n2,y\n"))
    write(tmp_path / "parts/deeper/3.csv", "a,b\n3,z\n")
    return tmp_path / "parts"


def test_a_folder_of_csv_files_is_one_table(parts):
    assert sorted(zip(*cells(parts).values(), strict=True)) == [("1", "x"), ("2", "y"), ("3", "z")]


def test_a_glob_of_csv_files_is_one_table(parts):
    assert sorted(zip(*cells(parts / "*.csv*").values(), strict=True)) == [("1", "x"), ("2", "y")]
    assert sorted(zip(*cells(parts / "**/*.csv").values(), strict=True)) == [("1", "x"), ("3", "z")]


def test_a_part_with_a_header_alone_adds_nothing(parts):
    write(parts / "4.csv", "a,b\n")
    assert len(cells(parts)["a"]) == 3


def test_hidden_files_and_folders_are_left_out(parts):
    before = cells(parts)
    write(parts / "_SUCCESS", "")
    write(parts / ".1.csv.crc", b"\x00")
    write(parts / "_temporary/0/9.csv", "a,b\n9,copy\n")
    write(parts / ".ipynb_checkpoints/1-checkpoint.csv", "a,b\n1,copy\n")
    assert cells(parts) == before


def test_a_hidden_folder_above_the_named_one_does_not_matter(tmp_path):
    path = write(tmp_path / ".cache/_private/a.csv", PLAIN)
    assert cells(path) == cells(path.parent) == cells(path.parent / "*.csv") == AS_READ


def test_paths_may_be_relative(parts, monkeypatch):
    whole = cells(parts)
    monkeypatch.chdir(parts.parent)
    assert cells("parts") == cells(Path("parts")) == whole
    monkeypatch.chdir(parts)
    assert cells("*.csv") == {"a": ["1"], "b": ["x"]}


@pytest.mark.parametrize("header", ["a,c", "b,a", "a", "a,b,c"])
def test_csv_files_whose_headers_differ_are_refused(parts, header):
    write(parts / "4.csv", f"{header}\n" + ",".join([SECRET] * len(header.split(","))) + "\n")
    refused("mixed-formats", parts)


@pytest.mark.parametrize("name", ["4.parquet", "4.dta", "notes.pdf"])
def test_a_folder_of_several_formats_is_refused(parts, name):
    write(parts / name, SECRET)
    refused("mixed-formats", parts)


def test_an_empty_folder_and_a_missing_file_cannot_be_read(tmp_path):
    (tmp_path / "empty").mkdir()
    refused("no-such-input", tmp_path / "empty")
    refused("no-such-input", tmp_path / "nowhere.csv")
    refused("no-such-input", tmp_path / "*.csv")


# -- faults in CSV --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [f"{SECRET},2", f"{SECRET},2,3,4", SECRET, f"x,utf-8 {SECRET}"])
@pytest.mark.parametrize("before", ["", f"{SECRET},1,1\n" * 3])
def test_a_line_that_is_too_short_or_too_long_is_refused(tmp_path, line, before):
    path = write(tmp_path / "a.csv", f"a,b,c\n{before}{line}\n")
    assert str(path) in str(refused("ragged-csv", path))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_bytes_that_are_not_of_the_encoding_are_refused(tmp_path, encoding):
    refused("not-utf8", write(tmp_path / "a.csv", f"a,b\n{SECRET},x".encode() + b"\x81\n"), encoding=encoding)
    refused("not-utf8", write(tmp_path / "b.csv", b"a\x81,b\n" + SECRET.encode() + b",x\n"), encoding=encoding)


@pytest.mark.parametrize("kind", ["integer", "number", "boolean", "date"])
@pytest.mark.parametrize("value", [SECRET, f"{SECRET} utf-8", f"Expected 2 columns, got 3: {SECRET}"])
def test_a_value_of_another_type_is_refused_by_the_name_of_its_column(tmp_path, kind, value):
    path = write(tmp_path / "a.csv", f'first,second,third\n{SECRET},,{SECRET}\nx,"{value}",y\n')
    for columns in (["first", "second", "third"], ["third", "second"], ["second"]):
        refusal = refused("wrong-type", path, columns, types={"second": kind})
        assert "'second'" in str(refusal)
        assert kind in str(refusal)


def test_a_column_that_is_not_read_may_hold_anything(tmp_path):
    path = write(tmp_path / "a.csv", f"a,b\nx,{SECRET}\n")
    assert read(path, ["a"], types={"b": "integer"}).table.rows == 1


@pytest.mark.parametrize("value", ["9223372036854775808", "1.5", "1e3"])
def test_a_number_that_is_no_64_bit_integer_is_refused(tmp_path, value):
    refused("wrong-type", write(tmp_path / "a.csv", f"a,b\n{value},{SECRET}\n"), types={"a": "integer"})


def test_a_type_for_an_unknown_column_is_refused(tmp_path):
    refused("missing-column", write(tmp_path / "a.csv", PLAIN), types={"County": "integer"})


@pytest.mark.parametrize("content", ["", "\n", "county,size\n", "county,size", "\ufeffcounty,size\r\n"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_file_without_records_is_refused(tmp_path, content, suffix):
    packed = gzip.compress(content.encode()) if suffix == ".csv.gz" else content
    refused("empty-file", write(tmp_path / f"a{suffix}", packed))


def test_a_repeated_column_name_is_refused(tmp_path):
    assert "'a'" in str(refused("duplicate-column", write(tmp_path / "a.csv", f"a,b,a\n1,2,{SECRET}\n")))


@pytest.mark.parametrize("cut", [slice(0, -20), slice(0, 30), slice(1, None)])
def test_a_damaged_compressed_file_is_refused(tmp_path, cut):
    content = "a,b\n" + "".join(f"{SECRET} {i * i * i},2\n" for i in range(20_000))
    refused("unreadable-file", write(tmp_path / "a.csv.gz", gzip.compress(content.encode())[cut]))


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.csv.7z", "a.json"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    refused("unknown-format", write(tmp_path / name, SECRET))


# -- Parquet and Arrow ------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "county": ["001", "003", "003"],
        "size": np.array([2, 10, 3], dtype=np.int16),
        "income": [1.5, -0.0, 1e300],
        "born": [dt.date(1905, 1, 2), dt.date(2020, 2, 29), dt.date(1969, 12, 31)],
        "owner": [True, False, True],
    }
)


def test_parquet_is_read_as_pandas_reads_it(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert cells(tmp_path / "a.parquet") == pd.read_parquet(tmp_path / "a.parquet").to_dict("list")
    assert read(tmp_path / "a.parquet").table["size"].type == pa.int16()


@pytest.mark.parametrize("name", ["a.arrow", "a.feather", "a.ipc"])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_arrow_is_read_as_pandas_reads_it(tmp_path, name, compression):
    pyarrow.feather.write_feather(FRAME, tmp_path / name, compression=compression)
    assert cells(tmp_path / name) == pd.read_feather(tmp_path / name).to_dict("list")


def test_polars_files_are_read(tmp_path):
    frame = pl.DataFrame({"a": ["x", "y"], "b": pl.Series(["u", "v"], dtype=pl.Categorical), "c": [1, None]})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow")
    assert cells(tmp_path / "a.parquet") == cells(tmp_path / "a.arrow") == frame.to_dict(as_series=False)


def test_parquet_files_are_one_table_by_glob_and_by_folder(tmp_path):
    for part in range(3):
        FRAME.iloc[[part]].to_parquet(tmp_path / f"{part}.parquet", index=False)
    assert cells(tmp_path) == cells(tmp_path / "*.parquet") == FRAME.to_dict("list")


@pytest.mark.parametrize("writer", ["pandas", "polars"])
def test_a_partitioned_folder_has_its_partition_as_a_column(tmp_path, writer, monkeypatch):
    if writer == "pandas":
        FRAME.to_parquet(tmp_path / "whole", partition_cols=["county", "owner"])
    else:
        pl.from_pandas(FRAME).write_parquet(tmp_path / "whole/", partition_by=["county", "owner"], mkdir=True)
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {"county=001", "county=003"}
    expected = sorted(FRAME["county"].tolist())
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "whole", tmp_path / "whole/*/*/*.parquet", Path("whole")):
        found = cells(place)
        assert sorted(found["county"]) == expected, "leading zeros are kept"
        assert {*found} == {*FRAME.columns}
        assert sorted(zip(found["county"], found["size"], strict=True)) == [("001", 2), ("003", 3), ("003", 10)]


def test_partitions_that_are_whole_numbers_are_integers(tmp_path):
    for year in (2020, -1, 0):
        path = tmp_path / f"year={year}/a.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"a": ["x"]}), path)
    assert sorted(cells(tmp_path)["year"]) == [-1, 0, 2020]


def test_folders_above_the_named_one_are_no_columns(tmp_path):
    path = tmp_path / f"agency={SECRET}/year=2020/a.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"a": ["x"]}), path)
    assert cells(path) == cells(path.parent) == cells(path.parent / "*.parquet") == {"a": ["x"]}
    assert cells(path.parent.parent) == {"a": ["x"], "year": [2020]}


@pytest.mark.parametrize("columns", [["a", "c"], ["a"], ["a", "b", "c"]])
def test_parquet_files_whose_columns_differ_are_refused(tmp_path, columns):
    pq.write_table(pa.table({"a": [SECRET], "b": [SECRET]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({name: [SECRET] for name in columns}), tmp_path / "2.parquet")
    refused("mixed-formats", tmp_path)


def test_parquet_files_whose_types_differ_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [SECRET]}), tmp_path / "2.parquet")
    refused("unreadable-file", tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("keep", [0, 3, 200, -1, -8, -30])
def test_a_file_cut_short_is_refused(tmp_path, suffix, keep):
    table = pa.table({"a": [SECRET] * 500, "b": np.arange(500)})
    if suffix == "parquet":
        pq.write_table(table, tmp_path / "whole", compression="none")
    else:
        pyarrow.feather.write_feather(table, tmp_path / "whole", compression="uncompressed")
    content = (tmp_path / "whole").read_bytes()
    refused("unreadable-file", write(tmp_path / f"a.{suffix}", content[:keep]))


def test_a_file_damaged_inside_is_refused(tmp_path):
    table = pa.table({"a": [f"{SECRET} {i}" for i in range(5000)]})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[200:400] = bytes(200)
    refused("unreadable-file", write(tmp_path / "b.parquet", bytes(content)))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "dta", "sav", "sas7bdat", "xpt"])
def test_a_file_of_another_format_than_its_name_says_is_refused(tmp_path, suffix):
    refused("unreadable-file", write(tmp_path / f"a.{suffix}", f"a,b\n{SECRET},1\n"))


def test_files_that_carry_their_types_take_none_from_the_plan(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    refused("plan-field", tmp_path / "a.parquet", types={"county": "integer"})


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    FRAME.iloc[:0].to_parquet(tmp_path / "a.parquet")
    refused("empty-file", tmp_path / "a.parquet")


def test_a_parquet_file_with_a_repeated_column_is_refused(tmp_path):
    pq.write_table(pa.table([pa.array([SECRET])] * 2, names=["a", "a"]), tmp_path / "a.parquet")
    refused("duplicate-column", tmp_path / "a.parquet")


@pytest.mark.parametrize("array", [pa.array([[SECRET]]), pa.array([{"x": SECRET}]), pa.array([SECRET.encode()])])
def test_a_column_that_is_not_one_cell_per_row_is_refused_only_if_it_is_used(tmp_path, array):
    pq.write_table(pa.table({"a": ["x"], "b": array}), tmp_path / "a.parquet")
    assert "'b'" in str(refused("unsupported-type", tmp_path / "a.parquet"))
    assert read(tmp_path / "a.parquet", ["a"]).table.rows == 1


# -- Stata and SPSS -------------------------------------------------------------------------------------------


def stata(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_dta(frame, str(path))


def spss(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_sav(frame, str(path))


STATISTICAL = pytest.mark.parametrize(("suffix", "save"), [("dta", stata), ("sav", spss)])


@STATISTICAL
def test_statistical_files_are_read_as_pandas_reads_them(tmp_path, suffix, save):
    frame = pd.DataFrame({"county": ["001", "003", "010"], "size": [2, 10, 3], "income": [1.5, -2.25, 1e300]})
    save(frame, tmp_path / f"a.{suffix}")
    oracle = {"dta": pd.read_stata, "sav": pd.read_spss}[suffix](tmp_path / f"a.{suffix}")
    assert cells(tmp_path / f"a.{suffix}") == oracle.to_dict("list") == frame.to_dict("list")


@STATISTICAL
def test_statistical_files_may_be_given_types(tmp_path, suffix, save):
    save(pd.DataFrame({"size": [2.0, 10.0], "half": [0.5, float(SECRET[-4:])]}), tmp_path / f"a.{suffix}")
    found = read(tmp_path / f"a.{suffix}", types={"size": "integer"}).table["size"]
    assert (found.type, found.values.to_pylist()) == (pa.int64(), [2, 10])
    assert "'half'" in str(refused("wrong-type", tmp_path / f"a.{suffix}", types={"half": "integer"}))
    refused("missing-column", tmp_path / f"a.{suffix}", types={"other": "integer"})


@STATISTICAL
def test_missing_numbers_of_statistical_files_are_null(tmp_path, suffix, save):
    save(pd.DataFrame({"a": [1.0, None]}), tmp_path / f"a.{suffix}")
    assert cells(tmp_path / f"a.{suffix}") == {"a": [1.0, None]}


@STATISTICAL
def test_a_statistical_file_cut_short_is_refused(tmp_path, suffix, save):
    save(pd.DataFrame({"a": [SECRET] * 500}), tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    refused("unreadable-file", write(tmp_path / f"a.{suffix}", content[: len(content) // 2]))


# -- frames ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        None,
        [SECRET, "b", "c"],
        pd.Index([7, 7, 9], name="size"),
        pd.MultiIndex.from_tuples([(1, 2), (3, 4), (5, 6)], names=["county", SECRET]),
        pd.RangeIndex(30, 0, -10),
    ],
    ids=["default", "text", "name of a column", "several levels", "backwards"],
)
def test_a_pandas_frame_leaves_its_index_behind(index):
    frame = FRAME if index is None else FRAME.set_axis(index, axis=0)
    assert cells(frame) == FRAME.to_dict("list")


def test_a_pandas_frame_with_names_that_are_no_text_has_their_text():
    assert cells(pd.DataFrame({1: ["x"], 2: ["y"]})) == {"1": ["x"], "2": ["y"]}


@pytest.mark.parametrize("names", [["a", "a", "b"], [1, "1", "b"]])
def test_a_pandas_frame_with_a_repeated_column_is_refused(names):
    refused("duplicate-column", pd.DataFrame([[SECRET, SECRET, SECRET]], columns=names))


def test_categories_are_read_as_the_values_that_occur():
    values = ["u", "v", None, "u"]
    levels = ["v", SECRET, "u"]
    frames: list[object] = [
        pd.DataFrame({"a": pd.Categorical(values, categories=levels, ordered=True)}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(levels))}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)}),
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2]), pa.array(levels))}),
    ]
    for frame in frames:
        column = read(frame).table["a"]
        assert column.decode(column.codes).to_pylist() == values
        assert column.values.to_pylist() == ["u", "v", None]


@pytest.mark.parametrize("make", [pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), pa.Table.from_pandas])
def test_polars_lazy_polars_and_arrow_frames_are_read(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cells(make(FRAME)) == FRAME.to_dict("list")


def test_batches_of_an_arrow_frame_may_have_dictionaries_of_their_own():
    chunks = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()]
    assert cells(pa.table({"a": pa.chunked_array(chunks)})) == {"a": ["b", "a", "c", "b"]}


def test_a_pandas_frame_with_mixed_objects_is_refused_by_the_name_of_the_column():
    for mixed in ([1, SECRET], [SECRET, 1], [SECRET, b"x"], [object(), SECRET]):
        refusal = refused("unsupported-type", pd.DataFrame({"fine": ["x", "y"], "mixed": mixed}, dtype=object))
        assert "'mixed'" in str(refusal)


def test_a_polars_column_that_arrow_does_not_know_is_refused():
    refused("unsupported-type", pl.DataFrame({"a": [SECRET], "b": pl.Series([1], dtype=pl.Int128)}))


def test_a_lazy_query_that_fails_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", f"a,b\n1,2\n{SECRET},3\n")
    refused("unreadable-file", pl.scan_csv(path, schema={"a": pl.Int64, "b": pl.Int64}))


def test_an_arrow_frame_with_a_repeated_column_is_refused():
    refused("duplicate-column", pa.table([pa.array([SECRET])] * 2, names=["a", "a"]))


@pytest.mark.parametrize(
    "thing", [None, 7, [SECRET], {"a": [SECRET]}, pd.Series([SECRET]), np.array([SECRET]), io.StringIO(SECRET)]
)
def test_what_is_no_table_is_refused(thing):
    refused("not-a-table", thing)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_without_rows_is_refused(make):
    refused("empty-file", make({"a": pa.array([], pa.string()) if make is pa.table else []}))


# -- files that change ----------------------------------------------------------------------------------------


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(f"{SECRET},9\n".encode())


def replace(path: Path) -> None:
    """Another file of the same name, size and time."""
    stat = path.stat()
    other = write(path.with_name("other"), path.read_bytes())
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.rename(path)


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


CHANGES = pytest.mark.parametrize("change", [lengthen, replace, touch, Path.unlink])


@CHANGES
def test_a_csv_file_that_changes_between_batches_is_refused(tmp_path, monkeypatch, change: Callable[[Path], None]):
    path = write(tmp_path / "a.csv", "a,b\n" + f"{SECRET},1\n" * 1000)
    monkeypatch.setattr(inputs, "_CSV_BLOCK", 1024)
    batches = open_input("people", path).batches(["a", "b"])
    next(batches)
    change(path)
    with pytest.raises(StirredError) as caught:
        list(batches)
    assert caught.value.kind == "file-changed"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@CHANGES
def test_a_part_of_a_parquet_folder_that_changes_between_batches_is_refused(tmp_path, change):
    for name in "12":
        pq.write_table(pa.table({"a": [SECRET] * 10}), tmp_path / f"{name}.parquet")
    batches = open_input("people", tmp_path).batches(["a"])
    next(batches)
    change(tmp_path / "1.parquet")
    with pytest.raises(StirredError) as caught:
        list(batches)
    assert caught.value.kind == "file-changed"


def test_a_statistical_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    stata(pd.DataFrame({"a": [SECRET]}), tmp_path / "a.dta")
    reader = pyreadstat.read_dta

    def slow(path: str) -> object:
        found = reader(path)
        touch(Path(path))
        return found

    monkeypatch.setattr(pyreadstat, "read_dta", slow)
    refused("file-changed", tmp_path / "a.dta")


def test_a_file_at_rest_can_be_read_twice(tmp_path):
    opened = open_input("people", write(tmp_path / "a.csv", PLAIN))
    first, second = (pa.Table.from_batches(opened.batches(["county"], ["size"])) for _ in range(2))
    assert first.equals(second)
    assert first.column("size").type == pa.string(), "identifiers come without a dictionary"
