"""Published noisy measurement files: read back to the same estimates, right against dense least squares, refused
where they differ from their description."""

from __future__ import annotations

import functools
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from noisy_files import (
    QUERIES,
    SCHEMA,
    SMALL,
    block_names,
    dense,
    dense_answer,
    groups,
    level_names,
    publish,
    rows_of,
    write_rows,
)
from scipy import stats

import stirred
from stirred.errors import StirredError
from stirred.noise import SeededSource, discrete_gaussian
from stirred.topdown.estimating.places import _listed, block_codes, listed_areas, tabulated_areas
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.noisy_files import contents
from stirred.topdown.noisy_files.contents import simplest_rho
from stirred.topdown.noisy_files.form import PERSONS, WHOLE, is_noisy_measurements
from stirred.topdown.noisy_files.reading import open_noisy_measurements
from stirred.topdown.noisy_files.writing import write_noisy_measurements

LEVELS = ("state", "county", "tract", "block_group", "block")
BLOCKS = block_names()
VARIANCES = {
    level: {by: Fraction(7 * (at + 1) * (number + 2), 3) for number, by in enumerate(QUERIES)}
    for at, level in enumerate(LEVELS)
}


def seeded(seed: int):
    source = SeededSource(seed)
    return lambda variance, number: discrete_gaussian(variance, number, source)


def counts(blocks=BLOCKS, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {block: rng.integers(0, 30, 6) for block in blocks}


def opened(folder: Path, **options) -> MeasuredRelease:
    return open_noisy_measurements(folder, products=(SMALL,), **options)


@pytest.fixture
def rows():
    return rows_of(counts(), VARIANCES, seeded(3))


@pytest.fixture(scope="module")
def census(tmp_path_factory) -> Path:
    """A generated release with the 2020 plan, and its measurements as noisy measurement files."""
    folder = tmp_path_factory.mktemp("noisy")
    publish(folder, persons=3_000, seed=4)
    return folder


# -- the same estimates ----------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("table", "by", "level"),
    [("persons", ("cenrace",), "county"), ("persons", ("hhinstlevels", "votingage"), "tract"), ("persons", (), "block"),
     ("units", (), "block_group")],
)  # fmt: skip
def test_files_that_were_written_give_the_same_estimates_and_variances(census, table, by, level):
    own = MeasuredRelease.open(census / "release")
    read = open_noisy_measurements(census / "files", totals=census / "files" / "totals.csv")
    expected, found = own.estimate(table, by, level=level), read.estimate(table, by, level=level)
    # Up to last digits: libraries of linear algebra add up in an order that depends on how busy the machine is.
    same = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-9)
    same(found.values, expected.values)
    same(found.variances, expected.variances)
    same(found.interval(0.9), expected.interval(0.9))
    assert found.labels == expected.labels


def test_values_that_stand_in_another_order_are_told_apart(census):
    own = MeasuredRelease.open(census / "release")  # occupied, vacant; the files have vacant, occupied
    read = open_noisy_measurements(census / "files")
    expected = own.estimate("units", ("occupancy",), level="county").values[:, ::-1]
    assert np.allclose(read.estimate("units", ("h1",), level="county").values, expected)


def test_what_is_exact_is_read_and_what_is_not_there_is_said(census, tmp_path):
    read = open_noisy_measurements(census / "files")
    own = MeasuredRelease.open(census / "release")
    kept = {(one.table, one.level, one.by): values for one, values in zip(own.plan.invariants, own.exact, strict=True)}
    found = {
        (one.table, one.level, one.by): values for one, values in zip(read.plan.invariants, read.exact, strict=True)
    }
    for key in (("units", "block", ()), ("facilities", "block", ("type",))):
        assert np.array_equal(kept[key], found[key])
    assert ("persons", "state", ()) not in found
    assert any("totals of states" in one for one in read.estimate("persons", level="state").unused)
    assert read.plan.table("persons").zeros
    shutil.copytree(census / "files", tmp_path / "bare", ignore=shutil.ignore_patterns("Constraint"))
    bare = open_noisy_measurements(tmp_path / "bare")
    assert bare.exact == () and not bare.plan.table("persons").zeros
    unused = bare.estimate("persons", level="state").unused
    assert any("facilities by kind" in one for one in unused) and any("number of units" in one for one in unused)


def test_rows_in_any_order_and_small_batches_give_the_same_estimates(rows, tmp_path, monkeypatch):
    write_rows(tmp_path / "a", rows)
    rng = np.random.default_rng(1)
    mixed = {level: [some[at] for at in rng.permutation(len(some))] for level, some in rows.items()}
    write_rows(tmp_path / "b", mixed)
    expected = opened(tmp_path / "a").estimate("persons", ("votingage",), level="county")
    largest = []
    honest = contents._matrix

    def watched(path, name, column, cells):
        largest.append(len(column))
        return honest(path, name, column, cells)

    monkeypatch.setattr(contents, "_VALUES", 3)
    monkeypatch.setattr(contents, "_ROWS", 5)
    monkeypatch.setattr(contents, "_matrix", watched)
    found = opened(tmp_path / "b").estimate("persons", ("votingage",), level="county")
    assert np.allclose(found.values, expected.values, rtol=1e-12) and max(largest) <= 3
    assert np.array_equal(found.variances, expected.variances)


def test_a_state_is_read_alone_or_with_the_others(rows, tmp_path):
    write_rows(tmp_path, rows)
    both, one = opened(tmp_path), opened(tmp_path, states=["25"])
    assert one.spine.names[0].to_pylist() == ["125"] and both.spine.names[0].to_pylist() == ["044", "125"]
    whole = both.estimate("persons", ("hhgq",), level="tract")
    found = one.estimate("persons", ("hhgq",), level="tract")
    assert np.allclose(whole.values[-1], found.values[0]) and np.allclose(whole.variances[-1], found.variances[0])


def test_less_is_read_where_less_is_asked_for(rows, tmp_path):
    write_rows(tmp_path, rows)
    few = opened(tmp_path, down_to="county")
    assert few.spine.levels == ("state", "county")
    all_of_it = opened(tmp_path)
    short, long = (one.estimate("persons", level="county") for one in (few, all_of_it))
    assert (long.variances < short.variances).all()
    kept = {level: rows[level] for level in ("state", "county")}
    names = level_names(BLOCKS, ["county"])["county"]
    expected = dense(kept, names)
    for at, name in enumerate(names):
        values, variances = dense_answer(expected, names, [one == name for one in names], ())
        assert np.allclose(short.values[at], values) and np.allclose(short.variances[at], variances)


# -- dense least squares -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [(), ("votingage",), ("hhinstlevels",), ("hhgq", "votingage")])
def test_estimates_of_every_level_are_those_of_dense_least_squares(rows, tmp_path, by):
    found, expected = opened(write_rows(tmp_path, rows)), dense(rows, BLOCKS)
    for level in LEVELS:
        told = found.estimate("persons", by, level=level)
        for at, name in enumerate(told.places):
            values, variances = dense_answer(expected, BLOCKS, [block.startswith(name) for block in BLOCKS], by)
            assert np.allclose(told.values[at], values) and np.allclose(told.variances[at], variances)


def passed_over(rows, units):
    """The same rows where some units with one child have none of their own, and the child has their budget."""
    found = {level: [dict(row) for row in some] for level, some in rows.items()}
    for level, name in units:
        at = LEVELS.index(level)
        own = {row["query_name"]: row for row in found[level] if row["geocode"] == name}
        found[level] = [row for row in found[level] if row["geocode"] != name]
        for below in LEVELS[at + 1 :]:
            children = [row for row in found[below] if row["geocode"].startswith(name)]
            if children:
                assert len({row["geocode"] for row in children}) == 1
                for row in (one for one in children if one["query_name"] in own):
                    row["variance"] = 1 / (1 / row["variance"] + 1 / own[row["query_name"]]["variance"])
                break
    return found


@pytest.mark.parametrize(
    "units",
    [[("tract", "04410030")], [("county", "0441003"), ("tract", "04410030")],
     [("block_group", "0441001001"), ("county", "1251001"), ("tract", "12510010")]],
)  # fmt: skip
def test_units_that_were_passed_over_have_the_values_of_their_only_child(rows, tmp_path, units):
    given = passed_over(rows, units)
    found, expected = opened(write_rows(tmp_path, given)), dense(given, BLOCKS)
    for level in LEVELS:
        told = found.estimate("persons", ("votingage",), level=level)
        for at, name in enumerate(told.places):
            inside = [block.startswith(name) for block in BLOCKS]
            values, variances = dense_answer(expected, BLOCKS, inside, ("votingage",))
            assert np.allclose(told.values[at], values) and np.allclose(told.variances[at], variances)


def test_a_level_without_a_query_passes_no_budget_for_it_on(rows, tmp_path):
    few = {**rows, "county": [row for row in rows["county"] if row["query_name"] != "votingage_dpq"]}
    given = passed_over(few, [("county", "0441003"), ("tract", "04410030")])
    found, expected = opened(write_rows(tmp_path, given)), dense(given, BLOCKS)
    told = found.estimate("persons", ("votingage",), level="county")
    for at, name in enumerate(told.places):
        inside = [block.startswith(name) for block in BLOCKS]
        values, variances = dense_answer(expected, BLOCKS, inside, ("votingage",))
        assert np.allclose(told.values[at], values) and np.allclose(told.variances[at], variances)


def test_areas_by_blocks_are_those_of_dense_least_squares(rows, tmp_path):
    found, expected = opened(write_rows(tmp_path, rows)), dense(rows, BLOCKS)
    rng = np.random.default_rng(2)
    ordered = found.spine.names[-1].to_pylist()
    for _ in range(20):
        of_leaf = rng.integers(-1, 3, len(ordered))
        names = tuple(f"area {number}" for number in range(3) if (of_leaf == number).any())
        kept = [number for number in range(3) if (of_leaf == number).any()]
        of_leaf = np.array([kept.index(one) if one in kept else -1 for one in of_leaf])
        told = found.in_places("persons", ("votingage",), listed=_listed(found.spine, "area", names, of_leaf))
        for number in range(len(names)):
            inside = [bool(of_leaf[ordered.index(block)] == number) for block in BLOCKS]
            values, variances = dense_answer(expected, BLOCKS, inside, ("votingage",))
            assert np.allclose(told.values[number], values) and np.allclose(told.variances[number], variances)


def test_published_codes_of_blocks_tell_tabulated_areas_and_lists(rows, tmp_path):
    spine = opened(write_rows(tmp_path / "files", rows)).spine
    codes = block_codes(spine).to_pylist()
    assert all(len(code) == 15 for code in codes) and codes[0].startswith("440010001001")
    assert tabulated_areas(spine, "county").names == ("44001", "44003", "25001")
    (tmp_path / "list.csv").write_text(f"block,area\n{codes[0]},one\n44003,two\n25,two\n")
    found = listed_areas(spine, tmp_path / "list.csv")
    assert found.names == ("one", "two")
    assert [codes[at] for at in found.leaves_of("one")] == [codes[0]]
    assert len(found.leaves_of("two")) == sum(code.startswith(("44003", "25")) for code in codes)


@pytest.mark.parametrize(
    ("text", "words"),
    [("block\n99\n", "no block here begins"), ("block,area\n44,x\n44001,y\n", "in two areas"),
     ("code\n44\n", "with the column block"), ("block\nabc\n", "up to 15 digits"), ("block\n", "up to 15 digits")],
)  # fmt: skip
def test_lists_of_blocks_that_cannot_be_answered_are_refused(rows, tmp_path, text, words):
    spine = opened(write_rows(tmp_path / "files", rows)).spine
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(StirredError, match=words) as found:
        listed_areas(spine, tmp_path / "list.csv")
    assert found.value.kind == "noisy-question"
    with pytest.raises(StirredError, match="need blocks"):
        block_codes(opened(tmp_path / "files", down_to="tract").spine)


# -- intervals -----------------------------------------------------------------------------------------------------


def test_intervals_contain_the_truth_as_often_as_they_say(tmp_path):
    """500 counties, each by itself since no level above is there. False alarm at most 2e-9."""
    tree = {"001": {f"0011{at:03}": {f"0011{at:03}0": {f"0011{at:03}000": 1 + at % 2}} for at in range(500)}}
    blocks = block_names(tree)
    truth = counts(blocks, 5)
    below = {level: {(): 5 * VARIANCES[level][()], SMALL_DETAIL: 3 * VARIANCES[level][()]} for level in LEVELS[1:]}
    folder = write_rows(tmp_path, rows_of(truth, below, seeded(7)))
    for by in ((), ("votingage",)):
        told = opened(folder).estimate("persons", by, level="county")
        lower, upper = told.interval(0.9)
        inside = 0
        for at, name in enumerate(told.places):
            exact = groups(by) @ sum(some for block, some in truth.items() if block.startswith(name))
            inside += int(lower[at][0] <= exact[0] <= upper[at][0])
        assert stats.binom.cdf(inside, 500, 0.9) > 1e-9
        assert inside < 500 or told.variances.max() < 1


SMALL_DETAIL = ("hhgq", "votingage")


# -- variances and budgets -----------------------------------------------------------------------------------------


def test_variances_in_single_precision_are_read_and_add_up(rows, tmp_path):
    single = SCHEMA.set(4, pa.field("variance", pa.float32()))
    found = opened(write_rows(tmp_path, rows, single))
    told = found.plan.table("persons")
    for level in LEVELS:
        for query in told.queries:
            assert 1 / told.rho_of(level, query) == VARIANCES[level][query.by]  # the simplest fraction is the true one
    assert simplest_rho(float(Fraction(14, 3))) == Fraction(3, 14)


def test_the_plan_states_the_budget_that_the_variances_imply(rows, tmp_path):
    plan = opened(write_rows(tmp_path, rows)).plan
    assert plan.rho == sum(1 / one for level in VARIANCES.values() for one in level.values())
    assert plan.measured_by is not None and "publish" in plan.measured_by


# -- the nation ----------------------------------------------------------------------------------------------------


def test_the_nation_is_used_only_where_every_state_is_there(rows, tmp_path):
    write_rows(tmp_path, rows)
    place = tmp_path / "US.parquet" / "DPQuery"
    place.mkdir(parents=True)
    top = []
    for by in QUERIES:
        cells = sum(counts().values())
        top.append({"geocode": "1", "query_name": SMALL.query(by), "query_shape": list(SMALL.shape(by)),
                    "value": (groups(by) @ cells).astype(int).tolist(), "variance": 0.5})  # fmt: skip
    pq.write_table(pa.Table.from_pylist(top, schema=SCHEMA), place / "part.parquet")
    without = opened(tmp_path)
    assert without.spine.levels == LEVELS
    assert any("nation's own" in one for one in without.estimate("persons", level="state").unused)
    found = opened(tmp_path, nation=True)
    assert found.spine.levels == ("us", *LEVELS) and found.spine.names[0].to_pylist() == ["us"]
    given = {**rows, "us": [{**row, "geocode": ""} for row in top]}
    told, expected = found.estimate("persons", ("votingage",), level="us"), dense(given, BLOCKS)
    values, variances = dense_answer(expected, BLOCKS, [True] * len(BLOCKS), ("votingage",))
    assert np.allclose(told.values[0], values) and np.allclose(told.variances[0], variances)
    assert all(len(codes) in (87, 88) for codes in WHOLE)


# -- what differs from the description -----------------------------------------------------------------------------


def damaged(rows, **change):
    """Rows of which one is changed, in the level of tracts."""
    found = {level: [dict(row) for row in some] for level, some in rows.items()}
    found["tract"][1].update(change)
    return found


CHANGES = {
    "unknown query": ({"query_name": "sex_dpq"}, "query_name", "which is not known"),
    "constraint among measurements": ({"query_name": "total_con"}, "query_name", "which is not known"),
    "other shape": ({"query_shape": [8, 1]}, "query_shape", "as the name says"),
    "too many dimensions": ({"query_shape": [1, 1, 1]}, "query_shape", "3 numbers in a row"),
    "short values": ({"value": [1, 2, 3]}, "value", "3 numbers in a row"),
    "no values": ({"value": None}, "value", "nothing in a row"),
    "a gap": ({"value": [None]}, "value", "a gap"),
    "variance zero": ({"variance": 0.0}, "variance", "a number above 0"),
    "variance not a number": ({"variance": float("nan")}, "variance", "a number above 0"),
    "variance missing": ({"variance": None}, "variance", "without a value"),
    "another variance": ({"variance": 5.25}, "variance", "as in most geounits"),
    "code length": ({"geocode": "044100101"}, "geocode", "characters at level 'tract'"),
    "unknown code": ({"geocode": "04410099"}, "geocode", "with which no code of level 'block' begins"),
    "code missing": ({"geocode": None}, "geocode", "without a value"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_row_that_differs_is_refused_with_the_column_and_what_was_expected(rows, tmp_path, case):
    change, column, words = CHANGES[case]
    write_rows(tmp_path, rows)
    given = damaged(rows, **change)["tract"]
    place = tmp_path / "Tract.parquet" / "DPQuery" / "State=044" / "part-0.parquet"
    here = [row for row in given if row["geocode"] is None or row["geocode"].startswith("044")]
    pq.write_table(pa.Table.from_pylist(here, schema=SCHEMA), place)
    with pytest.raises(StirredError) as found:
        opened(tmp_path).estimate("persons", level="county")
    said = str(found.value)
    assert found.value.kind == "noisy-column"
    assert f"'{column}'" in said and words in said and "expected" in said and "part-0.parquet" in said, said


@pytest.mark.parametrize(
    ("column", "kind"),
    [("geocode", pa.int64()), ("query_name", pa.int32()), ("query_shape", pa.string()),
     ("value", pa.list_(pa.float64())), ("variance", pa.string())],
)  # fmt: skip
def test_a_column_that_is_missing_or_of_another_type_is_refused(rows, tmp_path, column, kind):
    write_rows(tmp_path, rows)
    place = tmp_path / "County.parquet" / "DPQuery" / "State=125" / "part-0.parquet"
    whole = pq.read_table(place)
    without = whole.drop_columns([column])
    pq.write_table(without, place)
    with pytest.raises(StirredError, match=f"'{column}' is missing; expected") as found:
        opened(tmp_path)
    assert found.value.kind == "noisy-column"
    pq.write_table(without.append_column(column, pa.nulls(len(whole), kind)), place)
    with pytest.raises(StirredError, match=f"'{column}' is of type"):
        opened(tmp_path)


def test_a_query_that_is_there_twice_or_not_at_all_is_refused(rows, tmp_path):
    write_rows(tmp_path, rows)
    place = tmp_path / "Tract.parquet" / "DPQuery" / "State=044"
    shutil.copy(place / "part-0.parquet", place / "part-1.parquet")
    with pytest.raises(StirredError, match="'query_name' has total_dpq twice for '04410010'"):
        opened(tmp_path)
    (place / "part-1.parquet").unlink()
    few = [row for row in rows["tract"] if row["geocode"].startswith("044")][1:]
    pq.write_table(pa.Table.from_pylist(few, schema=SCHEMA), place / "part-0.parquet")
    with pytest.raises(StirredError, match="has no row of total_dpq for the geounit"):
        opened(tmp_path)
    write_rows(tmp_path, rows)
    place = tmp_path / "Block_Group.parquet" / "DPQuery" / "State=044" / "part-0.parquet"
    none = [row for row in rows["block_group"] if row["geocode"][:3] == "044" and row["geocode"] != "0441003000"]
    pq.write_table(pa.Table.from_pylist(none, schema=SCHEMA), place)
    with pytest.raises(StirredError, match="'geocode' does not have the geounit '0441003000'"):
        opened(tmp_path)


def test_a_file_that_was_not_copied_whole_is_refused_by_name(rows, tmp_path):
    write_rows(tmp_path, rows)
    place = tmp_path / "Block.parquet" / "DPQuery" / "State=044" / "part-0.parquet"
    whole = place.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"PAR1" + bytes(100) + whole[-60:]):
        place.write_bytes(content)
        with pytest.raises(StirredError) as found:
            opened(tmp_path)
        assert found.value.kind == "noisy-file" and str(place) in str(found.value)


def test_folders_that_are_laid_out_otherwise_are_refused(rows, tmp_path):
    def refused(folder: Path, words: str, **options) -> None:
        with pytest.raises(StirredError, match=words) as found:
            opened(folder, **options)
        assert found.value.kind == "noisy-folder"

    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "there is no folder")
    assert not is_noisy_measurements(tmp_path / "empty") and not is_noisy_measurements(tmp_path / "nowhere")
    folder = write_rows(tmp_path / "files", rows)
    assert is_noisy_measurements(folder) and is_noisy_measurements(tmp_path)
    refused(folder, "there are no files of the state '36'", states=["36"])
    refused(write_rows(tmp_path / "few", {"state": rows["state"]}), "there is no County.parquet", down_to="county")
    gap = {level: some for level, some in rows.items() if level != "tract"}
    refused(write_rows(tmp_path / "gap", gap), "there is no Tract.parquet")
    (folder / "Block.parquet" / "DPQuery" / "Region=1").mkdir()
    refused(folder, "Region=1 is not a folder named State=")
    shutil.rmtree(folder / "Block.parquet" / "DPQuery" / "Region=1")
    shutil.move(folder / "County.parquet" / "DPQuery" / "State=125", tmp_path / "away")
    with pytest.raises(
        StirredError, match="files are missing"
    ):  # one county in its state: it may have been passed over
        opened(folder)
    shutil.move(tmp_path / "away", folder / "County.parquet" / "DPQuery" / "State=125")
    shutil.rmtree(folder / "Block.parquet" / "DPQuery" / "State=125")
    refused(folder, "level 'block' has no files of State=125, and 'state' has")
    shutil.rmtree(folder / "County.parquet" / "DPQuery")
    refused(folder, "no Parquet file below County.parquet/DPQuery")
    twice = tmp_path / "twice"
    write_rows(twice / "one", rows)
    write_rows(twice / "two", rows)
    refused(twice, "two folders of the same table")


def test_totals_of_states_are_used_where_a_state_is_one_unit(rows, tmp_path):
    folder = write_rows(tmp_path / "files", rows)
    truth = counts()
    totals = {
        state: int(sum(some.sum() for block, some in truth.items() if block[1:3] == state)) for state in ("44", "25")
    }
    path = tmp_path / "totals.csv"
    path.write_text("state,total\n" + "\n".join(f"{state},{total}" for state, total in totals.items()) + "\n")
    found = opened(folder, totals=path).estimate("persons", level="state")
    assert np.allclose(found.values[:, 0], [totals["44"], totals["25"]]) and not found.variances.any()
    path.write_text("state,total\n44,1\n")
    with pytest.raises(StirredError, match="must have a row for the state '25'"):
        opened(folder, totals=path)
    path.write_text("state;total\n")
    with pytest.raises(StirredError, match="with the columns state"):
        opened(folder, totals=path)
    path.write_text("state,total\n44,1\n")
    below = write_rows(tmp_path / "below", {level: rows[level] for level in LEVELS[1:]})
    with pytest.raises(StirredError, match="level of states"):
        opened(below, totals=path)


def test_names_of_queries_are_known_in_any_order():
    assert PERSONS.by("cenrace * hispanic * votingage_dpq") == ("votingage", "hispanic", "cenrace")
    assert PERSONS.by("hhgq * hhinstlevels_dpq") is None and PERSONS.by("detailed") is None
    assert PERSONS.schema.cells == 2016 and PERSONS.shape(()) == (1, 1, 1, 1)


def test_measurements_that_are_no_census_cannot_be_written(tmp_path):
    from census import plan, tables

    stirred.release(plan(), tables(), out=tmp_path / "release")
    with pytest.raises(StirredError) as found:
        write_noisy_measurements(tmp_path / "release", tmp_path / "files")
    assert found.value.kind == "not-exportable" and not (tmp_path / "files").exists()
