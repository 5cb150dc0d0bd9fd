"""Every kind of input through a whole swap: what is held comes out value for value, whatever the formats."""

from __future__ import annotations

import csv
import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
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
from reading_tools import arrow_of

from stirred.errors import DataError
from stirred.noise import SeededSource
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify
from stirred.tables.writing import EXTENSIONS

FORMATS = list(EXTENSIONS)
MOMENTS = [dt.datetime(2020, 2, 29, 23, 59, 58, 678901), dt.datetime(1905, 6, 7, 8, 9, 10, 111)]
ROWS = 240
NOTES = ["", "001", "NA", "null", "é日本", "a,b", 'say "no"', "two\nlines", " x ", "\t"]


def population(seed: int = 3) -> dict[str, list[object]]:
    """Records whose held columns are unrelated to county, with every kind of awkward cell."""
    random = np.random.default_rng(seed)

    def pick(values: Sequence[object]) -> list[object]:
        return [values[i] for i in random.integers(0, len(values), ROWS)]

    return {
        "note": pick(NOTES),
        "county": pick(["001", "003", "010"]),
        "state": pick(["MA", "RI"]),
        "size": pick([1, 2, 10]),
        "income": pick([0.1, -0.0, 1 / 3, 1e300, 12.5]),
        "tenure": pick(["owned", "rented", None]),
    }


POPULATION = population()
EXTRA = {
    "born": [dt.date(1905 + i % 7, 1, 1 + i % 5) for i in range(ROWS)],
    "owner": [i % 3 == 0 for i in range(ROWS)],
    "rent": [Decimal(i % 11) / 100 for i in range(ROWS)],
    "seen": [MOMENTS[i % 2] for i in range(ROWS)],
    "large": [None if i % 4 == 0 else 2**62 + i % 9 for i in range(ROWS)],
}
PLAN = SwapPlan(
    match=["state", "size"],
    swap=["county"],
    hold="rest",
    rate="1/2",
    nulls=["tenure", "note", "large"],
    chosen_from="public",
)


def rows_of(data: dict[str, list[object]], names: Sequence[str]) -> Counter[tuple[object, ...]]:
    """The multiset of rows; floats by their bits, texts as they are."""
    return Counter(
        zip(
            *([value.hex() if isinstance(value, float) else value for value in data[name]] for name in names),
            strict=True,
        )
    )


def assert_swapped(found: dict[str, list[object]], data: dict[str, list[object]]) -> None:
    """Same columns in the same order; held with match, and swap with match, as multisets; rows of their own order."""
    assert list(found) == list(data)
    still = [name for name in data if name != "county"]
    assert rows_of(found, still) == rows_of(data, still)
    assert rows_of(found, ["state", "size", "county"]) == rows_of(data, ["state", "size", "county"])
    assert rows_of(found, list(data)) != rows_of(data, list(data)), "half of all records were selected to move"


def from_csv(data: dict[str, list[object]], folder: Path) -> Path:
    with (folder / "in.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        lines.writerow(data)
        for row in zip(*data.values(), strict=True):
            file.write(",".join("" if cell is None else _quoted(cell) for cell in row) + "\r\n")
    return folder / "in.csv"


def _quoted(cell: object) -> str:
    return '"' + cell.replace('"', '""') + '"' if isinstance(cell, str) else str(cell)


def from_parquet(data: dict[str, list[object]], folder: Path) -> Path:
    pq.write_table(pa.table(data), folder / "in.parquet", row_group_size=50)
    return folder / "in.parquet"


def from_arrow(data: dict[str, list[object]], folder: Path) -> Path:
    pyarrow.feather.write_feather(pa.table(data), folder / "in.arrow", chunksize=50)
    return folder / "in.arrow"


def from_stata(data: dict[str, list[object]], folder: Path) -> Path:
    pyreadstat.write_dta(pd.DataFrame(data).fillna({"tenure": "none"}), str(folder / "in.dta"))
    return folder / "in.dta"


def from_spss(data: dict[str, list[object]], folder: Path) -> Path:
    pyreadstat.write_sav(pd.DataFrame(data).fillna({"tenure": "none"}), str(folder / "in.sav"))
    return folder / "in.sav"


def released(path: Path, kind: str, like: dict[str, list[object]]) -> dict[str, list[object]]:
    """The released microdata by another reader than ours; CSV cells as Python objects of the kinds of ``like``."""
    file = path / f"microdata{EXTENSIONS[kind]}"
    if kind != "csv":
        return arrow_of(file).to_pydict()
    frame = pl.read_csv(file, infer_schema=False).to_dict(as_series=False)
    return {name: [_as(next(v for v in like[name] if v is not None), cell) for cell in frame[name]] for name in frame}


def _as(example: object, text: str | None) -> object:
    if text is None:
        return None
    if isinstance(example, bool):
        return {"true": True, "false": False}[text]
    if isinstance(example, dt.datetime):
        return dt.datetime.fromisoformat(text)
    if isinstance(example, dt.date):
        return dt.date.fromisoformat(text)
    return type(example)(text)


def swap_and_write(data: object, out: Path, kind: str, **changes: Any) -> None:
    plan = SwapPlan(**(PLAN.model_dump() | {"format": kind} | changes))
    draw(plan, data, source=SeededSource(17)).write(out, for_tests=True)
    seeded, *others = verify(out)
    assert not seeded.holds and "repeated" in seeded.words
    assert all(finding.holds for finding in others), [finding.words for finding in others if not finding.holds]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("bring", [from_parquet, from_arrow, lambda data, folder: pa.table(data)])
def test_typed_inputs_come_out_value_for_value(tmp_path, bring, kind):
    data = POPULATION | EXTRA
    swap_and_write(bring(data, tmp_path), tmp_path / "out", kind)
    assert_swapped(released(tmp_path / "out", kind, data), data)


@pytest.mark.parametrize("kind", FORMATS)
def test_csv_comes_out_character_for_character(tmp_path, kind):
    data = POPULATION | EXTRA
    swap_and_write(from_csv(data, tmp_path), tmp_path / "out", kind)
    texts = {name: [None if cell is None else str(cell) for cell in cells] for name, cells in data.items()}
    assert_swapped(released(tmp_path / "out", kind, texts), texts)


@pytest.mark.parametrize("kind", FORMATS)
def test_csv_with_types_comes_out_value_for_value(tmp_path, kind):
    data = POPULATION | {name: EXTRA[name] for name in ("born", "owner", "large")}
    types = {"size": "integer", "income": "number", "born": "date", "owner": "boolean", "large": "integer"}
    allow = [*PLAN.allow, *(["changes-text:owner"] if kind == "csv" else [])]  # True is written as true in text
    swap_and_write(from_csv(data, tmp_path), tmp_path / "out", kind, input={"types": types}, allow=allow)
    assert_swapped(released(tmp_path / "out", kind, data), data)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("bring", [from_stata, from_spss])
def test_statistical_files_come_out_value_for_value(tmp_path, bring, kind):
    data = {
        name: [cell or "none" if name in ("note", "tenure") else cell for cell in POPULATION[name]]
        for name in POPULATION
    }
    data["note"] = [str(cell).strip() or "none" for cell in data["note"]]  # these formats pad text with blanks
    swap_and_write(bring(data, tmp_path), tmp_path / "out", kind, nulls=(), input={"types": {"size": "integer"}})
    assert_swapped(released(tmp_path / "out", kind, data), data)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_partitioned_folder_comes_out_as_one_table(tmp_path, kind):
    frame = pd.DataFrame({name: POPULATION[name] for name in ("income", "state", "size", "county")})
    frame.to_parquet(tmp_path / "in", partition_cols=["county"])
    swap_and_write(tmp_path / "in", tmp_path / "out", kind, nulls=())
    assert_swapped(released(tmp_path / "out", kind, frame.to_dict("list")), frame.to_dict("list"))


@pytest.mark.parametrize(("suffix", "kind"), [("csv", "csv"), ("parquet", "parquet"), ("arrow", "arrow")])
def test_a_release_is_written_in_the_format_of_its_input(tmp_path, suffix, kind):
    bring = {"csv": from_csv, "parquet": from_parquet, "arrow": from_arrow}[suffix]
    plan = SwapPlan(**(PLAN.model_dump() | {"nulls": ["tenure", "note"]}))
    draw(plan, bring(POPULATION, tmp_path), source=SeededSource(17)).write(tmp_path / "out", for_tests=True)
    assert (tmp_path / "out" / f"microdata{EXTENSIONS[kind]}").is_file()


def test_floating_point_numbers_in_categories_do_not_match_records_either():
    data = pa.table(POPULATION).append_column("share", pa.array(POPULATION["income"]).dictionary_encode())
    with pytest.raises(DataError) as refusal:
        draw(SwapPlan(**(PLAN.model_dump() | {"match": ["share"]})), data, source=SeededSource(1))
    assert refusal.value.kind == "float-match"


# -- frames in, frames out --------------------------------------------------------------------------------------


def swapped_frame(frame: object, **changes: Any) -> Any:
    return draw(SwapPlan(**(PLAN.model_dump() | changes)), frame, source=SeededSource(5)).frame()


def test_a_pandas_frame_gives_a_pandas_frame():
    data = POPULATION | EXTRA
    frame = pd.DataFrame(data | {"large": pd.array(data["large"], dtype="Int64")}, index=np.arange(ROWS)[::-1] * 7)
    frame["tenure"] = frame["tenure"].astype("category")
    out = swapped_frame(frame)
    assert type(out) is pd.DataFrame
    assert out.index.equals(pd.RangeIndex(ROWS))
    assert out.attrs == {}
    assert out.dtypes.to_dict() == frame.dtypes.to_dict()
    assert out["large"].dropna().max() == 2**62 + 8, "not rounded to a floating-point number"
    found = {name: [None if pd.isna(cell) else cell for cell in out[name]] for name in out}
    assert_swapped(found, data)


def test_a_pandas_frame_of_nullable_integers_without_nulls_gives_one():
    frame = pd.DataFrame({name: POPULATION[name] for name in ("county", "state", "size", "note")})
    frame["size"] = frame["size"].astype("Int16")
    out = swapped_frame(frame, nulls=())
    assert out["size"].dtype == pd.Int16Dtype()


@pytest.mark.parametrize("lazy", [False, True])
def test_a_polars_frame_gives_a_polars_frame(lazy):
    data = POPULATION | EXTRA
    frame = pl.DataFrame(data).with_columns(
        pl.col("tenure").cast(pl.Categorical), pl.col("state").cast(pl.Enum(["RI", "SECRET", "MA"]))
    )
    out = swapped_frame(frame.lazy() if lazy else frame)
    assert type(out) is pl.DataFrame
    assert out.schema == frame.schema | {"state": pl.Enum(["RI", "MA"])}, "less categories that no row has"
    assert_swapped(out.to_dict(as_series=False), data)


def test_an_arrow_frame_gives_an_arrow_frame():
    data = POPULATION | EXTRA
    frame = pa.table(data).replace_schema_metadata({"marker": "SECRET"})
    out = swapped_frame(frame)
    assert type(out) is pa.Table
    assert out.schema.equals(frame.schema.remove_metadata(), check_metadata=True)
    assert_swapped(out.to_pydict(), data)


def test_a_file_gives_an_arrow_frame(tmp_path):
    out = swapped_frame(from_parquet(POPULATION, tmp_path), nulls=["tenure", "note"])
    assert type(out) is pa.Table
    assert_swapped(out.to_pydict(), POPULATION)


def test_linked_frames_keep_their_kinds():
    households = pd.DataFrame(
        {"id": range(100), "county": ["a", "b"] * 50, "size": [1, 1, 2, 2] * 25, "t": [0, 1, 2] * 33 + [0]}
    )
    persons = pl.DataFrame({"household": [i % 100 for i in range(150)], "age": [i * 7 % 13 for i in range(150)]})
    plan = SwapPlan(
        match=["size"],
        swap=["county"],
        hold="rest",
        id="id",
        rate="1/2",
        linked=[{"name": "persons", "link": "household", "hold": "rest"}],
        chosen_from="public",
    )
    drawn = draw(plan, {"microdata": households, "persons": persons}, source=SeededSource(5))
    assert type(drawn.frame()) is pd.DataFrame
    assert type(drawn.frame("persons")) is pl.DataFrame
    assert sorted(drawn.frame("persons")["age"]) == sorted(persons["age"])
