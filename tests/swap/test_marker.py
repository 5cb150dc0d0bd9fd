"""A marker planted wherever the confidential data could leave a trace never comes out of a release.

Dropped columns, original ids, names of files and folders, Parquet and Arrow metadata, a data frame's index, categories
that no record has, time stamps: a release knows none of them. What a check prints is confidential and is not looked at.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable

MARKER = "SECRET-7731"
ROWS = 60


def households() -> pl.DataFrame:
    """Marked in the id and in a dropped column, nowhere else."""
    return pl.DataFrame(
        {
            "hhid": [f"{MARKER}-h{i}" for i in range(ROWS)],
            "name": [f"{MARKER} family" if i % 7 else f"née {MARKER}" for i in range(ROWS)],
            "size": [1 + i % 2 for i in range(ROWS)],
            "county": ["abc"[i // 2 % 3] for i in range(ROWS)],
            "tenure": ["own" if i // 6 % 2 else "rent" for i in range(ROWS)],
        }
    )


def persons() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "pid": [f"{MARKER}-p{i}" for i in range(2 * ROWS)],
            "hhid": [f"{MARKER}-h{i // 2}" for i in range(2 * ROWS)],
            "county": ["abc"[i // 4 % 3] for i in range(2 * ROWS)],
            "age": [20 + i % 9 for i in range(2 * ROWS)],
            "email": [f"{i}@{MARKER}.org" for i in range(2 * ROWS)],
        }
    )


PLAN = f"""\
stirred = 1
mechanism = "swap"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
drop = ["name"]
id = "hhid"
tables = [["county", "tenure"]]
saturated = true
format = "FORMAT"
[input]
path = "{MARKER} folder/{MARKER} households.KIND"
[[linked]]
name = "persons"
link = "hhid"
id = "pid"
hold = ["age"]
drop = ["email"]
[linked.input]
path = "{MARKER} folder/{MARKER} persons.KIND"
"""


def marked(table: pa.Table) -> pa.Table:
    """With metadata on the schema and on every field."""
    fields = [field.with_metadata({f"{MARKER} key": f"{MARKER} value"}) for field in table.schema]
    return table.cast(pa.schema(fields, metadata={MARKER: MARKER, "pandas": json.dumps({"index_columns": [MARKER]})}))


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    pq.write_table(marked(frame.to_arrow()), path)


def write_arrow(frame: pl.DataFrame, path: Path) -> None:
    table = marked(frame.to_arrow())
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    "csv": lambda frame, path: frame.write_csv(path),
    "parquet": write_parquet,
    "arrow": write_arrow,
}


def prepare(root: Path, kind: str, written: str) -> Path:
    folder = root / f"{MARKER} folder"
    folder.mkdir()
    WRITERS[kind](households(), folder / f"{MARKER} households.{kind}")
    WRITERS[kind](persons(), folder / f"{MARKER} persons.{kind}")
    plan = root / f"{MARKER} plan.toml"
    plan.write_text(PLAN.replace("FORMAT", written).replace("KIND", kind), encoding="utf-8")
    return plan


def traces(folder: Path) -> list[str]:
    """Where in a release the marker shows: in names, in bytes, or in what Parquet and Arrow files hold compressed."""
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if MARKER in name:
            found.append(f"the name {name}")
        if path.is_file():
            content = path.read_bytes() + unpacked(path)
            if MARKER.encode() in content:
                found.append(name)
    return found


def unpacked(path: Path) -> bytes:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    elif path.suffix == ".arrow":
        table = pa.ipc.open_file(str(path)).read_all()
    else:
        return b""
    return (repr(table.schema.metadata) + table.schema.to_string() + repr(table.to_pydict())).encode()


# -- files ---------------------------------------------------------------------------------------------------


FORMATS = ("csv", "parquet", "arrow")
OTHER_FORMAT = dict(zip(FORMATS, ("parquet", "arrow", "csv"), strict=True))


@pytest.mark.parametrize(
    ("kind", "written"),
    [pytest.param(one, other, marks=() if OTHER_FORMAT[one] == other else pytest.mark.slow)
     for one in FORMATS for other in FORMATS],
)  # fmt: skip
def test_no_trace_of_the_marker_leaves_with_a_release(kind, written, tmp_path, command):
    plan = prepare(tmp_path, kind, written)
    out = tmp_path / "out"
    ended = [
        command("release", plan, "--out", out),
        command("verify", out),
        command("verify", out, "--json"),
        command("tabulate", out, "--by", "county,tenure"),
        command("tabulate", out, "--table", "persons", "--by", "age,tenure"),
    ]
    assert [each.code for each in ended] == [0] * 5
    for each in ended:
        assert MARKER not in each.said.replace(str(tmp_path), "")
    assert traces(out) == []
    assert {path.name for path in out.iterdir()} == {
        "README.txt",
        "certificate.json",
        "data_dictionary.json",
        "manifest.json",
        f"microdata.{written}",
        f"persons.{written}",
        "report.html",
        f"saturated.{written}",
        "specification.json",
        "tables",
    }


def test_the_search_for_traces_finds_a_held_marker_in_every_format(tmp_path):
    marked = pl.when(pl.int_range(pl.len()) % 3 > 0).then(pl.lit(MARKER)).otherwise(pl.lit("rented"))
    frame = households().with_columns(tenure=marked)
    for written in WRITERS:
        plan = SwapPlan(
            match=["size"],
            swap=["county"],
            hold=["tenure"],
            drop=["name", "hhid"],
            rate=0.5,
            most_recovered=1,
            format=written,
        )
        draw(plan, frame).write(tmp_path / written)
        assert f"microdata.{written}" in traces(tmp_path / written)


def test_dropped_columns_are_not_even_named(tmp_path, command):
    plan = prepare(tmp_path, "csv", "csv")
    command("release", plan, "--out", tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            assert "email" not in path.read_text(encoding="utf-8")


def test_times_of_the_input_are_not_inherited(tmp_path, command):
    plan = prepare(tmp_path, "parquet", "parquet")
    long_ago = time.time() - 10**8
    for path in (tmp_path / f"{MARKER} folder").iterdir():
        os.utime(path, (long_ago, long_ago))
    command("release", plan, "--out", tmp_path / "out")
    assert all(path.stat().st_mtime > long_ago + 10**7 for path in (tmp_path / "out").rglob("*"))
    year = str(time.gmtime(long_ago).tm_year)
    assert f'"released_on": "{year}' not in (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")


# -- frames in memory ----------------------------------------------------------------------------------------


def in_memory(frame: object, linked: object | None = None, **fields: object):
    tables = (
        [LinkedTable(name="persons", link="hhid", id="pid", hold=["age"], drop=["email"])] if linked is not None else []
    )
    plan = SwapPlan(
        match=["size"], swap=["county"], hold=["tenure"], drop=["name"], id="hhid", rate=0.5, linked=tables, **fields
    )
    return draw(plan, {"microdata": frame, **({"persons": linked} if linked is not None else {})})


def pandas_with_index(frame: pl.DataFrame) -> pd.DataFrame:
    found = frame.to_pandas()
    found.index = pd.Index([f"{MARKER}-{i}" for i in range(len(found))], name=MARKER)
    found.attrs[MARKER] = MARKER
    return found


def pandas_with_categories(frame: pl.DataFrame) -> pd.DataFrame:
    found = frame.to_pandas()
    for name in ("county", "tenure"):
        if name in found:
            found[name] = pd.Categorical(found[name], [MARKER, *sorted(set(found[name]), reverse=True)])
    found.columns.name = MARKER
    return found


def polars_with_categories(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(county=pl.col("county").cast(pl.Enum([MARKER, "c", "b", "a"])))


def arrow_with_dictionary(frame: pl.DataFrame) -> pa.Table:
    table = frame.to_arrow()
    codes = pa.array(["abc".index(value) + 1 for value in frame["county"]], pa.int32())
    county = pa.DictionaryArray.from_arrays(codes, pa.array([MARKER, "a", "b", "c"]))
    return marked(table.set_column(table.schema.names.index("county"), "county", county))


def texts_of(frame: object) -> str:
    """All that a frame shows of itself."""
    if isinstance(frame, pa.Table):
        return frame.schema.to_string(show_field_metadata=True) + repr(frame.schema.metadata) + repr(frame.to_pydict())
    if isinstance(frame, pl.DataFrame):
        return repr(frame.schema) + frame.write_json()
    assert isinstance(frame, pd.DataFrame)
    categories = [repr(getattr(kind, "categories", "")) for kind in frame.dtypes]
    return repr([frame.index, frame.index.name, frame.columns, frame.attrs, categories]) + frame.to_csv()


@pytest.mark.parametrize(
    "make", [pandas_with_index, pandas_with_categories, polars_with_categories, arrow_with_dictionary]
)
@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_no_index_category_or_metadata_of_a_frame_comes_out(make, format, tmp_path):
    drawn = in_memory(make(households()), make(persons()), format=format)
    drawn.write(tmp_path / "out")
    assert traces(tmp_path / "out") == []
    for name in ("microdata", "persons"):
        shown = texts_of(drawn.frame(name))
        assert "county" in shown
        assert MARKER not in shown


def test_metadata_of_a_parquet_file_does_not_come_out_through_the_library(tmp_path):
    write_parquet(households(), tmp_path / "data.parquet")
    assert MARKER not in texts_of(in_memory(tmp_path / "data.parquet").frame())


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("kept", [0.05, 0.5, 0.95])
def test_a_damaged_file_is_refused_without_quoting_it(kind, kept, tmp_path, command):
    plan = prepare(tmp_path, kind, "csv")
    data = tmp_path / f"{MARKER} folder" / f"{MARKER} households.{kind}"
    content = data.read_bytes()
    data.write_bytes(content[: int(kept * len(content))] + b'"' + content[int(kept * len(content)) :][::-1])
    ended = command("release", plan, "--out", tmp_path / "out")
    assert ended.code == 2
    assert MARKER not in ended.said.replace(str(data), "").replace(str(plan), "")
    assert not (tmp_path / "out").exists()
