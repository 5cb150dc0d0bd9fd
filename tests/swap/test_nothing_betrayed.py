"""A release does not betray what its rows were called or how the input was stored.

Sorted releases are compared byte for byte between inputs that differ only in what must not show.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from telling_data import DOCUMENTS, contents, household_plan, households, main_plan, microdata, reordered

from stirred.noise import SeededSource
from stirred.releases.folder import documents
from stirred.swap.drawing import draw, release
from stirred.swap.law.permutation import SortedRows
from stirred.swap.verifying import verify
from stirred.tables import writing


class Today(dt.datetime):
    """A day that does not end between two releases that are to be compared."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Today:
        return cls(2026, 1, 2, tzinfo=tz)


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "datetime", SimpleNamespace(datetime=Today, UTC=dt.UTC))


# -- sorted releases are a function of the released rows -----------------------------------------------------------


def renumbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(id=pl.lit("SECRET-") + (pl.col("id") * 17).cast(pl.String))


def as_csv(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_csv(folder / "in.csv")
    return folder / "in.csv"


def as_parquet(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_parquet(folder / "in.parquet")
    return folder / "in.parquet"


def as_parquet_parts(frame: pl.DataFrame, folder: Path) -> Path:
    """Several files and row groups, dictionaries in the order of first appearance."""
    for part in range(3):
        rows = frame[part::3].to_arrow()
        coded = [
            rows[name].dictionary_encode() if name in ("county", "tenure") else rows[name] for name in rows.schema.names
        ]
        pq.write_table(pa.table(coded, names=rows.schema.names), folder / f"{part}.parquet", row_group_size=70)
    return folder


def as_frame(frame: pl.DataFrame, folder: Path) -> pl.DataFrame:
    return frame


def one_each(cases):
    """Every case with every format of a release; fast for one format each, in turn."""
    return [
        pytest.param(*case, kind, marks=() if kind == KINDS[number % 3] else pytest.mark.slow)
        for number, case in enumerate(cases)
        for kind in KINDS
    ]


KINDS = ("csv", "parquet", "arrow")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("change", "store", "kind"),
    one_each(itertools.product([reordered, renumbered], [as_csv, as_parquet, as_parquet_parts, as_frame])),
)
def test_inputs_that_differ_in_order_or_ids_give_the_same_bytes(tmp_path, store, change, kind):
    releases = []
    for name, frame in {"as it is": microdata(), "changed": change(microdata())}.items():
        (tmp_path / name).mkdir()
        drawn = release(main_plan(format=kind), store(frame, tmp_path / name), out=tmp_path / f"out {name}")
        assert isinstance(drawn.rows, SortedRows)
        releases.append(contents(tmp_path / f"out {name}"))
    assert releases[0] == releases[1]


def in_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    return frame.to_pandas().set_index("rooms", drop=False).rename_axis("SECRET")


def stored_ways(types: str, folder: Path) -> dict[str, object]:
    """The same cells with the same types, as an office may have them: plain, categorical, or in a declared order.

    Whole numbers as text in CSV are another type, so only typed inputs can be compared.
    """
    plain, coded = microdata(), ["county", "tenure"]
    if types == "plain":
        return {"parquet": as_parquet(plain, folder), "frame": plain, "pandas": in_pandas(plain)}
    if types == "categorical":
        return {
            "parts": as_parquet_parts(plain, folder),
            "frame": plain.with_columns(pl.col(coded).cast(pl.Categorical)),
            "pandas": in_pandas(plain).astype(dict.fromkeys(coded, "category")),
        }
    enum = plain.with_columns(pl.col("county").cast(pl.Enum(["SECRET", "c", "b", "a"])))
    order = pd.CategoricalDtype(["c", "b", "SECRET", "a"], ordered=True)
    return {
        "parquet": as_parquet(enum, folder),
        "frame": enum,
        "pandas": in_pandas(plain).astype({"county": order}),
    }


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("types", ["plain", "categorical", "ordered"])
def test_the_way_a_table_was_stored_does_not_show(tmp_path, types, kind):
    (tmp_path / "in").mkdir()
    releases = []
    for name, data in stored_ways(types, tmp_path / "in").items():
        release(main_plan(format=kind), data, out=tmp_path / f"out {name}")
        releases.append(contents(tmp_path / f"out {name}"))
    assert all(other == releases[0] for other in releases[1:])
    assert not any(b"SECRET" in content for content in releases[0].values())


def test_a_record_more_does_show(tmp_path):
    """The comparison of bytes is not blind."""
    release(main_plan(format="csv"), microdata(), out=tmp_path / "one")
    release(main_plan(format="csv"), microdata()[:-1], out=tmp_path / "other")
    assert contents(tmp_path / "one")["microdata.csv"] != contents(tmp_path / "other")["microdata.csv"]


def test_rows_are_sorted_by_all_columns_and_numbered(tmp_path):
    release(main_plan(format="csv", rate="1/2"), microdata(), out=tmp_path / "out")
    found = pl.read_csv(tmp_path / "out" / "microdata.csv")
    assert found["id"].to_list() == list(range(1, found.height + 1))
    assert found.drop("id").equals(found.drop("id").sort(pl.all()))


def test_the_documents_do_not_depend_on_what_was_drawn(tmp_path):
    """Nor, then, on which records moved or how many."""
    released = []
    for seed in range(4):
        drawn = draw(main_plan(rate="1/2", format="parquet"), microdata(), source=SeededSource(seed))
        released.append(contents(drawn.write(tmp_path / str(seed), for_tests=True)))
    assert len({found["microdata.parquet"] for found in released}) == 4, "four swaps"
    for name in DOCUMENTS - {"manifest.json"}:
        assert len({found[name] for found in released}) == 1, name


# -- bytes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written without compression, so that a search of their bytes sees dictionaries and statistics too."""
    writer, new_file = pq.ParquetWriter, pa.ipc.new_file

    def plain_writer(*given: Any, **named: Any) -> Any:
        return writer(*given, **(named | {"compression": "none", "compression_level": None}))

    monkeypatch.setattr(writing.pq, "ParquetWriter", plain_writer)
    monkeypatch.setattr(writing.pa.ipc, "new_file", lambda path, schema, options: new_file(path, schema))


def marked_parquet(frame: pl.DataFrame, path: Path) -> Path:
    """A Parquet file that tells its origin wherever such a file can."""
    table = pa.Table.from_pandas(frame.to_pandas().rename_axis("SECRET-index"))
    fields = [field.with_metadata({"SECRET-field": "SECRET"}) for field in table.schema]
    coded = table.cast(pa.schema(fields, metadata=table.schema.metadata | {b"SECRET": b"SECRET"}))
    levels = pa.array(["west", "SECRET-unused", "south", "north"])
    county = pa.DictionaryArray.from_arrays(
        pa.array([levels.to_pylist().index(value) for value in frame["county"]], pa.int8()), levels
    )
    coded = coded.set_column(coded.schema.names.index("county"), "county", county)
    pq.write_table(coded, path)
    return path


def marked_csv(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_csv(path)
    return path


def marked_pandas(frame: pl.DataFrame, path: Path) -> pd.DataFrame:
    found = frame.to_pandas().set_axis([f"SECRET {i}" for i in range(frame.height)], axis=0)
    found["county"] = pd.Categorical(found["county"], categories=["west", "SECRET", "south", "north"])
    found.attrs["SECRET"] = "SECRET"
    found.columns.name = "SECRET"
    return found


def marked_arrow(frame: pl.DataFrame, path: Path) -> pa.Table:
    return pq.read_table(marked_parquet(frame, path))


def assert_footer_has_types_only(path: Path, categorical: bool) -> None:
    """The footer has names, types and sizes: as Parquet states them, and for a categorical county as Arrow does."""
    metadata, schema = pq.read_metadata(path), pq.read_schema(path)
    assert {*(metadata.metadata or {})} == ({b"ARROW:schema"} if categorical else set())
    assert metadata.created_by.startswith("parquet-cpp-arrow version")
    assert not schema.metadata
    assert {kind for field in schema for kind in (field.metadata or {})} <= {b"PARQUET:field_id"}
    assert {field.name for field in schema if pa.types.is_dictionary(field.type)} == (
        {"county"} if categorical else set()
    )
    if categorical:
        stated = base64.b64decode(metadata.metadata[b"ARROW:schema"])
        assert stated == plain_schema(schema).serialize().to_pybytes(), "nothing but names and types"


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize(
    ("store", "suffix", "kind"),
    one_each([(marked_parquet, "parquet"), (marked_csv, "csv"), (marked_pandas, ""), (marked_arrow, "parquet")]),
)
def test_no_byte_of_a_release_tells_the_origin_of_its_rows(tmp_path, store, suffix, kind):
    folder = tmp_path / "SECRET-dir"
    folder.mkdir()
    main, persons = households()
    data = store(main, folder / f"SECRET-main.{suffix}")
    linked = {"persons": store(persons, folder / f"SECRET-persons.{suffix}")}
    plan = household_plan(format=kind, tables=[["county", "tenure"]], saturated=True, hold=["tenure"])
    release(plan, {"microdata": data, **linked}, out=tmp_path / "out")
    found = contents(tmp_path / "out")
    assert {*found} == DOCUMENTS | {
        f"microdata.{kind}",
        f"persons.{kind}",
        f"saturated.{kind}",
        "tables/county-by-tenure.csv",
    }
    for name, content in found.items():
        assert b"secret" not in content.lower(), name
        assert b"pandas" not in content, name
        assert b"address" not in content, name
        if kind == "parquet" and name.endswith(".parquet"):
            assert_footer_has_types_only(tmp_path / "out" / name, store is not marked_csv)
    assert all(finding.holds for finding in verify(tmp_path / "out"))


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_the_search_of_bytes_sees_what_is_released(tmp_path, kind):
    main, persons = households()
    plan = household_plan(format=kind, hold=["tenure", "address"], drop=[], allow=["distinct:address"])
    release(plan, {"microdata": main, "persons": persons}, out=tmp_path / "out")
    assert b"SECRET street 299" in contents(tmp_path / "out")[f"microdata.{kind}"]


def test_a_parquet_footer_says_names_types_and_sizes_only(tmp_path):
    main, persons = households()
    plan = household_plan(format="parquet")
    for categorical, data in ((False, main), (True, marked_arrow(main, tmp_path / "m.parquet"))):
        out = tmp_path / f"out {categorical}"
        release(plan, {"microdata": data, "persons": persons}, out=out)
        for name in ("microdata", "persons"):
            assert_footer_has_types_only(out / f"{name}.parquet", categorical and name == "microdata")


def test_a_release_has_times_of_its_own(tmp_path):
    main, _ = households()
    path = as_parquet(main, tmp_path)
    os.utime(path, (946_684_799, 946_684_799))
    began = time.time() - 2
    release(household_plan(linked=[]), path, out=tmp_path / "out")
    for name, content in contents(tmp_path / "out").items():
        assert (tmp_path / "out" / name).stat().st_mtime >= began
        assert b"1999-12-31" not in content
        assert b"946684799" not in content
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["released_on"] == "2026-01-02", "a date, without the time of day"


# -- documents beside shuffled rows ---------------------------------------------------------------------------------

Change = Callable[[pl.DataFrame, pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame]]


def other_ids(main: pl.DataFrame, persons: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = dict(zip(main["household"], range(10**6, 10**6 + main.height), strict=True))
    return (
        main.with_columns(pl.col("household").replace_strict(names)),
        persons.with_columns(pl.col("household").replace_strict(names), person=pl.int_range(pl.len()) * 3),
    )


def other_order(main: pl.DataFrame, persons: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return reordered(main), reordered(persons)


@pytest.mark.parametrize("change", [other_ids, other_order])
def test_documents_of_a_linked_release_do_not_depend_on_ids_or_order(tmp_path, change: Change):
    main, persons = households()
    released = []
    for name, (one, other) in {"as it is": (main, persons), "changed": change(main, persons)}.items():
        release(household_plan(), {"microdata": one, "persons": other}, out=tmp_path / name)
        released.append(contents(tmp_path / name))
    for name in DOCUMENTS - {"manifest.json"}:
        assert released[0][name] == released[1][name], name
