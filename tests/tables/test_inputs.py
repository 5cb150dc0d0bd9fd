"""Reading CSV, several files at once, and files that change: cells arrive as the csv module sees them.

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
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from reading_tools import SECRET, cells, read, refused, write

from stirred.errors import StirredError
from stirred.tables import open_input
from stirred.tables.reading import csv_files

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


def test_further_nulls_can_be_named_and_count_when_they_are_quoted(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\nNA,1\n"NA",2\n.,3\n,4\n"",5\n')
    assert cells(path, null_values=["NA", "."])["a"] == [None, None, None, None, ""]


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
    monkeypatch.setattr(csv_files, "_CSV_BLOCK", 256)
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
    refused("empty-folder", tmp_path / "empty")
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
    assert "Columns 1 and 3" in str(refused("duplicate-column", write(tmp_path / "a.csv", f"a,b,a\n1,2,{SECRET}\n")))


@pytest.mark.parametrize("cut", [slice(0, -20), slice(0, 30), slice(1, None)])
def test_a_damaged_compressed_file_is_refused(tmp_path, cut):
    content = "a,b\n" + "".join(f"{SECRET} {i * i * i},2\n" for i in range(20_000))
    refused("unreadable-file", write(tmp_path / "a.csv.gz", gzip.compress(content.encode())[cut]))


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.csv.7z", "a.json"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    refused("unknown-format", write(tmp_path / name, SECRET))


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
    monkeypatch.setattr(csv_files, "_CSV_BLOCK", 1024)
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
    pyreadstat.write_dta(pd.DataFrame({"a": [SECRET]}), str(tmp_path / "a.dta"))
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
