"""Messages about a CSV file name the line that cannot be read, and never what is in it."""

from __future__ import annotations

import gc
import weakref

import pytest

from stirred import errors
from stirred.tables.reading import csv_files
from stirred.tables.reading.inputs import InputOptions, open_input

SECRET = "SECRET-7731"


def read(path, **options):
    found = open_input("rows", path, InputOptions(**options))
    return list(found.read(list(found.kinds), []))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize(("row", "fields"), [(f"1,{SECRET},3", 3), (SECRET, 1)])
def test_a_ragged_line_is_named(tmp_path, row, fields, encoding):
    path = tmp_path / "rows.csv"
    lines = ["a,é", *["1,x"] * 40, "", '2,"two\nlines"', row, "3,y"]
    path.write_text("\n".join(lines), encoding=encoding)
    with pytest.raises(errors.DataError) as caught:
        read(path, encoding=encoding)
    assert caught.value.kind == "ragged-csv"
    assert f"Line 45 of {path} has more or fewer fields than its header: {fields}, not 2." in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("kind", "good"), [("integer", "1"), ("number", "1.5"), ("boolean", "true")])
def test_the_line_of_a_cell_of_another_type_is_named(tmp_path, kind, good):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b", *[f"{good},x"] * 12_345, "NA,x", f"{SECRET},x", f"{SECRET},x", f"{good},x"]))
    with pytest.raises(errors.DataError) as caught:
        read(path, types={"a": kind}, null_values=["NA"])
    assert caught.value.kind == "wrong-type"
    assert f"The first is in line 12,348 of {path}." in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_quote_without_an_end_is_told_as_such(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n"1,2\n' + "3,4\n" * 60_000)
    with pytest.raises(errors.DataError) as caught:
        read(path)
    assert caught.value.kind == "unclosed-quote"


def test_after_a_line_that_cannot_be_read_no_thread_holds_the_file(tmp_path, monkeypatch):
    streams = []

    class Followed(csv_files._CountingQuotes):
        def __init__(self, stream):
            super().__init__(stream)
            streams.append(weakref.ref(self))

    monkeypatch.setattr(csv_files, "_CountingQuotes", Followed)
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 1_000 + "1\n")
    with pytest.raises(errors.DataError):
        read(path)
    gc.collect()
    assert len(streams) == 1 and streams[0]() is None
