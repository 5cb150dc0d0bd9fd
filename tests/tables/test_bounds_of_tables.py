"""Tables that somebody else wrote: more rows than expected, row groups of any length, unusual and damaged types."""

from __future__ import annotations

import decimal
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_tools import refused

from stirred.errors import StirredError
from stirred.tables import open_input
from stirred.tables.reading.inputs import MOST_COLUMNS
from stirred.tables.reading.table_reader import read_parts, read_table

D = decimal.Decimal


def as_csv(path: Path, table: pa.Table) -> Path:
    lines = [",".join(table.column_names), *(",".join(map(str, row.values())) for row in table.to_pylist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def as_gzip(path: Path, table: pa.Table) -> Path:
    path.write_bytes(gzip.compress(as_csv(path.with_suffix(""), table).read_bytes()))
    return path


def as_parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def as_arrow(path: Path, table: pa.Table) -> Path:
    with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return path


def in_memory(path: Path, table: pa.Table) -> pa.Table:
    return table


FORMS: dict[str, Callable[[Path, pa.Table], Path | pa.Table]] = {
    "t.csv": as_csv,
    "t.csv.gz": as_gzip,
    "t.parquet": as_parquet,
    "t.arrow": as_arrow,
    "frame": in_memory,
}

# -- numbers of rows and columns -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_rows_beyond_those_expected_are_refused_and_exactly_those_are_read(tmp_path, form):
    data = FORMS[form](tmp_path / form, pa.table({"a": ["x", "y", "x"], "n": [1, 2, 3]}))
    assert read_table(open_input("t", data, most_rows=3), ["a"], ["n"]).table.rows == 3
    for most in (2, 0):
        with pytest.raises(StirredError) as refusal:
            read_table(open_input("t", data, most_rows=most), ["a"], ["n"])
        assert refusal.value.kind == "more-rows-than-expected"
        with pytest.raises(StirredError) as refusal:
            list(read_parts(open_input("t", data, most_rows=most), ["a"]))
        assert refusal.value.kind == "more-rows-than-expected"


def test_a_file_that_is_small_because_it_repeats_itself_is_refused_before_its_rows_are_held(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a\n" + b"x\n" * (1 << 25))
    before = pa.total_allocated_bytes()
    with pytest.raises(StirredError) as refusal:
        list(read_parts(open_input("t", path, most_rows=1000), ["a"]))
    assert refusal.value.kind == "more-rows-than-expected"
    assert pa.total_allocated_bytes() - before < 1 << 26


def test_a_row_group_of_any_length_is_decoded_part_by_part(tmp_path):
    rows = 1 << 24
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x"]))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": texts}), path, row_group_size=rows)
    del texts
    assert path.stat().st_size < 1 << 20
    before = pa.total_allocated_bytes()
    for batch in open_input("t", path).batches(["a"]):
        assert batch.num_rows <= 1 << 19
        assert pa.total_allocated_bytes() - before < 1 << 25
        break


def test_a_table_of_very_many_columns_is_refused(tmp_path):
    names = [f"c{number}" for number in range(MOST_COLUMNS + 1)]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n", encoding="utf-8")
    assert refused("too-many-columns", path, names[:1])


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "*" * 300 + "/x" * 5_000])
def test_a_name_that_no_file_can_have_is_refused(name):
    assert refused("no-such-input", Path(name), [])


# -- types -----------------------------------------------------------------------------------------------------


def repeated(values: list[object], kind: pa.DataType) -> pa.Array:
    return pa.array(values * 12, kind)


def coded(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1] * 12, pa.int8()), values)


KEPT = {
    "null": pa.nulls(24),
    "string-view": repeated(["a", "b"], pa.string_view()),
    "large-string": repeated(["a", "b"], pa.large_string()),
    "dictionary-of-string-views": coded(pa.array(["a", "b"], pa.string_view())),
    "dictionary-of-decimals": coded(pa.array([D(1), D(2)], pa.decimal256(40, 0))),
    "dictionary-of-durations": coded(pa.array([1, 2], pa.duration("s"))),
    "dictionary-with-a-value-twice": coded(pa.array(["a", "a"])),
    "decimal32": repeated([D("1.5"), D("2.5")], pa.decimal32(5, 2)),
    "decimal256": repeated([D("1.5"), D("2.5")], pa.decimal256(50, 2)),
    "duration": repeated([1, -2], pa.duration("ns")),
    "half-float": repeated([1.5, 2.5], pa.float16()),
    "unsigned": repeated([1, 2**64 - 1], pa.uint64()),
    "time-of-day": repeated([0, 86_399], pa.time32("s")),
    "zoned": repeated([1, 2], pa.timestamp("us", "Europe/Berlin")),
}
REFUSED = {
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 24),
    "binary": repeated([b"a", b"b"], pa.binary()),
    "binary-view": repeated([b"a", b"b"], pa.binary_view()),
    "fixed-size-binary": repeated([b"a", b"b"], pa.binary(1)),
    "list": repeated([["a"], []], pa.list_(pa.string())),
    "list-view": repeated([[1], []], pa.list_view(pa.int64())),
    "struct": repeated([{"a": 1}], pa.struct({"a": pa.int64()})),
    "map": repeated([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
    "run-ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])),
    "dictionary-of-binary": coded(pa.array([b"a", b"b"])),
    "dictionary-of-lists": coded(pa.array([[1], [2]])),
    "extension": pa.array([b"a" * 16] * 2, pa.uuid()),
    "negative-scale": repeated([D(100), D(200)], pa.decimal256(50, -2)),
    "zone-of-two-lines": repeated([1, 2], pa.timestamp("us", "Nowhere\nholds")),
}
BEYOND = {
    "year-million": repeated([2**31 - 1, 0], pa.date32()),
    "before-year-one": repeated([-719_163, 0], pa.date32()),
    "after-year-9999": repeated([2_932_897 * 86_400_000, 0], pa.timestamp("ms")),
    "far-and-zoned": repeated([2**62, 0], pa.timestamp("us", "UTC")),
    "no-time-of-day": pa.array([86_400, 0] * 12, pa.int32()).view(pa.time32("s")),
}


def beside(array: pa.Array) -> pa.Table:
    texts = [["x", "y"][row % 2] for row in range(len(array))]
    places = [["u", "u", "v", "v"][row % 4] for row in range(len(array))]
    held = [["p", "q", "q"][row % 3] for row in range(len(array))]  # else nothing could be swapped
    return pa.table({"c": array, "m": texts, "s": places, "h": held})


@pytest.mark.parametrize("kind", [*REFUSED, *BEYOND])
@pytest.mark.parametrize("form", ["t.parquet", "t.arrow", "frame"])
def test_types_and_dates_that_cannot_be_released_are_refused_in_plain_words(tmp_path, kind, form):
    array = (REFUSED | BEYOND)[kind]
    try:
        data = FORMS[form](tmp_path / form, beside(array))
    except (pa.ArrowException, OSError):
        pytest.skip("this format cannot hold it")
    expected = "unsupported-type" if kind in REFUSED else "time-out-of-range"
    if form == "t.arrow" and kind == "no-time-of-day":
        expected = "unreadable-file"  # Arrow's own check of the file finds it first
    assert "Column 'c'" in str(refused(expected, data, ["c"])) or expected == "unreadable-file"


ROLES, WRITTEN = ("match", "swap", "hold"), ("csv", "parquet", "arrow")


@pytest.mark.parametrize(
    ("kind", "role", "written"),
    [
        # Every kind once outside the slow suite, its role and the format changing with it.
        pytest.param(kind, role, written, marks=[] if (n % 3, n // 3 % 3) == (i, j) else pytest.mark.slow)
        for n, kind in enumerate(KEPT)
        for i, role in enumerate(ROLES)
        for j, written in enumerate(WRITTEN)
    ],
)
def test_unusual_types_are_released_and_verified_or_refused(tmp_path, command, kind, role, written):
    as_arrow(tmp_path / "t.arrow", beside(KEPT[kind]))
    roles = {"match": ["m"], "swap": ["s"], "hold": ["h"]}
    roles[role].append("c")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'stirred = 1\nmechanism = "swap"\nrate = 0.5\nformat = "{written}"\n'
        + "".join(f"{name} = {columns}\n".replace("'", '"') for name, columns in roles.items())
        + 'nulls = ["c"]\n[input]\npath = "t.arrow"\n',
        encoding="utf-8",
    )
    if command("release", plan, "--out", tmp_path / "out", "--no-report").code == 2:
        assert (role, kind) == ("match", "half-float")
        return
    assert command("verify", tmp_path / "out").code == 0
    counted = command("tabulate", tmp_path / "out", "--by", "c,h")
    assert counted.code == 0 and counted.out.startswith("c,h,count\n")


def test_a_damaged_dictionary_in_an_arrow_file_is_refused_and_does_not_end_the_process(tmp_path):
    path = tmp_path / "t.arrow"
    inner = pa.array(["a", "b"]).dictionary_encode()
    nested = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), inner)})
    as_arrow(path, nested)  # the file says "dictionary of texts", and holds something else
    code = (
        "import sys; from stirred.tables import open_input\n"
        "from stirred.tables.reading.table_reader import read_table\n"
        "from stirred.errors import StirredError\n"
        "try: read_table(open_input('t', sys.argv[1]), ['c'])\n"
        "except StirredError as refusal: print(refusal.kind)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert ended.stdout == "unreadable-file\n"


def test_codes_beyond_the_dictionary_of_a_damaged_parquet_file_are_refused(tmp_path, monkeypatch):
    path = as_parquet(tmp_path / "t.parquet", pa.table({"c": ["a", "b"]}))
    for code in (5, -1):
        damaged = pa.DictionaryArray.from_arrays(pa.array([0, code], pa.int32()), pa.array(["a", "b"]), safe=False)
        made = pa.record_batch([damaged], names=["c"])
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, made=made, **__: iter([made]))
        assert refused("unreadable-file", path, ["c"])
