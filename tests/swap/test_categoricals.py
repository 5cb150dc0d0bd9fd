"""Categoricals come back as categoricals, and their categories tell nothing that is not released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.drawing import SwapRelease, draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify

ROWS = 240
_random = np.random.default_rng(4)


def picked(*values: object) -> list[Any]:
    return [values[i] for i in _random.integers(0, len(values), ROWS)]


SIZE, COUNTY = picked(10, 9), picked("x", "w", "v")
LEVEL, SHARE = picked("mid", "lo", "hi", None), picked(0.5, 2.0)
DAY = picked(*pd.to_datetime(["2021-05-06", "1999-01-02"]))
LEVELS = ["lo", "SECRET", "mid", "hi"]


def office_frame(counties: tuple[str, ...] = ("x", "SECRET", "v", "w")) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": pd.Categorical(SIZE),
            "county": pd.Categorical(COUNTY, categories=counties),
            "level": pd.Categorical(LEVEL, categories=LEVELS, ordered=True),
            "share": pd.Categorical(SHARE, categories=[2.0, 1.0, 0.5], ordered=True),
            "day": pd.Categorical(DAY),
            "count": pd.Categorical(pd.array(picked(3, 1), dtype="Int32")),
        }
    )


FRAME = office_frame()


def swapped(data: object, **more: Any) -> SwapRelease:
    fields = {"match": ["size"], "swap": ["county"], "hold": "rest", "rate": 0.5, "nulls": ["level"], "most_told": 1}
    return draw(SwapPlan(**(fields | {"most_recovered": 1} | more)), data, source=SeededSource(3))


def written(data: object, folder: Path, **more: Any) -> Path:
    """A release that a recipient verifies, but for its seeded source."""
    out = swapped(data, **more).write(folder, for_tests=True)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert [words for words in failed if not words.startswith("this is for release")] == []
    return out


def columns_of(out: Path, table: int = 0) -> dict[str, dict[str, Any]]:
    fields = json.loads((out / "data_dictionary.json").read_text(encoding="utf-8"))
    return {column["name"]: column for column in fields["tables"][table]["columns"]}


def order_of(kind: Any) -> tuple[list[object], bool]:
    return list(kind.categories), kind.ordered


def test_a_pandas_frame_keeps_its_categoricals_without_categories_that_no_row_has():
    out = swapped(FRAME).frame()
    assert {name: order_of(kind) for name, kind in out.dtypes.items()} == {
        "size": ([9, 10], False),
        "county": (["v", "w", "x"], False),
        "level": (["lo", "mid", "hi"], True),
        "share": ([2.0, 0.5], True),
        "day": ([pd.Timestamp("1999-01-02"), pd.Timestamp("2021-05-06")], False),
        "count": ([1, 3], False),
    }
    before = [FRAME[name].cat.categories.dtype for name in FRAME]
    assert [out[name].cat.categories.dtype for name in FRAME] == before
    assert out["level"].isna().sum() == FRAME["level"].isna().sum() > 0
    assert (
        out["level"].value_counts().to_dict() == FRAME["level"].cat.remove_unused_categories().value_counts().to_dict()
    )


def test_a_polars_frame_keeps_its_categoricals():
    frame = pl.DataFrame({"size": SIZE, "county": COUNTY, "level": LEVEL}).with_columns(
        pl.col("county").cast(pl.Categorical), pl.col("level").cast(pl.Enum(LEVELS))
    )
    out = swapped(frame).frame()
    assert out.schema == frame.schema | {"level": pl.Enum(["lo", "mid", "hi"])}


def as_file(path: Path, frame: pd.DataFrame) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(str(path), table.schema) as writer:
            for batch in table.to_batches(max_chunksize=100):
                writer.write_batch(batch)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_keep_their_categoricals_and_are_verified(tmp_path, kind):
    out = written(as_file(tmp_path / f"a.{kind}", FRAME), tmp_path / "out", saturated=True)
    path = out / f"microdata.{kind}"
    schema = pq.read_schema(path) if kind == "parquet" else pa.ipc.open_file(path).schema
    assert schema.field("county").type == pa.dictionary(pa.int32(), pa.string())
    assert schema.field("level").type == pa.dictionary(pa.int32(), pa.string(), ordered=True)
    assert pa.types.is_dictionary(schema.field("share").type) == (kind == "arrow"), (
        "Parquet has categories of text alone"
    )
    found = pq.read_table(path) if kind == "parquet" else pa.ipc.open_file(path).read_all()
    assert found["level"].chunk(0).dictionary.to_pylist() == ["lo", "mid", "hi"]
    assert found["county"].chunk(0).dictionary.to_pylist() == ["v", "w", "x"]
    stated = columns_of(out)
    assert (stated["county"]["categories"], stated["level"]["categories"]) == ("unordered", ["lo", "mid", "hi"])
    assert stated["share"].get("categories") == (["2", "0.5"] if kind == "arrow" else None)
    assert all(b"SECRET" not in file.read_bytes() for file in out.rglob("*") if file.is_file())


def test_a_csv_release_has_no_categoricals(tmp_path):
    out = written(FRAME, tmp_path / "out", format="csv")
    assert not any("categories" in column for column in columns_of(out).values())


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_unordered_categories_in_another_order_give_the_same_bytes(tmp_path, kind):
    _random.bit_generator.state = np.random.default_rng(9).bit_generator.state
    one = office_frame()
    two = one.assign(county=one["county"].cat.reorder_categories(["w", "v", "SECRET", "x"]))
    files = [swapped(frame, format=kind).write(tmp_path / name, for_tests=True) / f"microdata.{kind}"
             for frame, name in ((one, "one"), (two, "two"))]  # fmt: skip
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_order_of_rows_does_not_show_in_the_dictionary(tmp_path, kind):
    dictionaries = []
    for name, frame in (("one", FRAME), ("two", FRAME.iloc[::-1])):
        out = swapped(as_file(tmp_path / f"{name}.{kind}", frame)).frame()
        dictionaries.append([out[column].chunk(0).dictionary.to_pylist() for column in ("county", "level")])
    assert dictionaries[0] == dictionaries[1] == [["v", "w", "x"], ["lo", "mid", "hi"]]


def test_parquet_that_lists_values_as_they_are_met_has_no_order(tmp_path):
    table = pa.Table.from_pandas(FRAME)
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    assert pq.read_schema(tmp_path / "a.parquet").field("level").type.ordered
    out = swapped(tmp_path / "a.parquet").frame()
    assert out.schema.field("level").type == pa.dictionary(pa.int32(), pa.string())
    assert out["level"].chunk(0).dictionary.to_pylist() == ["hi", "lo", "mid"]


def test_copies_of_an_ordered_column_have_the_categories_of_the_record(tmp_path):
    counties = pd.Categorical(["c", "a"] * 40 + ["b", "d"] * 10, categories=["c", "d", "a", "b"], ordered=True)
    households = pd.DataFrame(
        {"id": range(100), "size": [1] * 80 + [0] * 20, "county": counties, "t": [0, 0, 1, 1] * 25}
    )
    persons = households.loc[households["size"] == 1, ["id", "county"]]
    persons["sex"] = pd.Categorical(["m", "m", "m", "f", "f"] * 16)
    out = written(
        {"microdata": households, "persons": persons}, tmp_path / "out", id="id", nulls=[],
        linked=[{"name": "persons", "link": "id", "hold": ["sex"]}],
    )  # fmt: skip
    stated = columns_of(out, 1)
    assert (stated["county"]["categories"], stated["sex"]["categories"]) == (["c", "d", "a", "b"], "unordered")


@pytest.mark.parametrize("damage", ["order", "value", "twice", "none", "plain file", "file"])
def test_categories_that_are_not_those_of_the_file_are_contradicted(tmp_path, damage):
    out = written(FRAME, tmp_path / "out")
    path, file = out / "data_dictionary.json", out / "microdata.parquet"
    fields = json.loads(path.read_text(encoding="utf-8"))
    column = fields["tables"][0]["columns"][2]
    if damage.endswith("file"):
        table = pq.read_table(file)
        kind = pa.string() if damage == "plain file" else pa.dictionary(pa.int32(), pa.string())
        pq.write_table(table.set_column(1, "county", table["county"].cast(kind)), file)
    else:
        column["categories"] = {
            "order": ["mid", "lo", "hi"], "value": ["lo", "mid", "high"], "twice": ["lo", "mid", "hi", "hi"],
            "none": "unordered",
        }[damage]  # fmt: skip
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(out)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert len(failed) > 1, "more than that its source was seeded"
