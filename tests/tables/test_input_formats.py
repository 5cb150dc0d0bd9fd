"""Reading Parquet, Arrow, Stata, SPSS and SAS files and frames in memory, against other readers.

As in ``test_inputs``, every refusal is provoked beside a marker that must not show.
"""

from __future__ import annotations

import datetime as dt
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest
from reading_tools import SECRET, cells, read, refused, write

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


# -- Stata, SPSS and SAS -------------------------------------------------------------------------------------------


def stata(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_dta(frame, str(path))


def spss(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_sav(frame, str(path))


def sas(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_xport(frame, str(path))


STATISTICAL = pytest.mark.parametrize(("suffix", "save"), [("dta", stata), ("sav", spss), ("xpt", sas)])


@STATISTICAL
def test_statistical_files_are_read_as_pandas_reads_them(tmp_path, suffix, save):
    frame = pd.DataFrame({"county": ["001", "003", "010"], "size": [2, 10, 3], "income": [1.5, -2.25, 1e30]})
    save(frame, tmp_path / f"a.{suffix}")
    assert cells(tmp_path / f"a.{suffix}") == frame.to_dict("list")
    if suffix != "xpt":  # pandas reads an older kind only
        oracle = {"dta": pd.read_stata, "sav": pd.read_spss}[suffix](tmp_path / f"a.{suffix}")
        assert cells(tmp_path / f"a.{suffix}") == oracle.to_dict("list")


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


@pytest.mark.parametrize(("suffix", "save"), [("dta", stata), ("sav", spss)])  # SAS files do not say how long they are
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
