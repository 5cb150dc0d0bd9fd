"""Tables counted on a spine: against counting by hand, and refusals that quote no cell."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from census import plan, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stirred.errors import StirredError
from stirred.topdown.data import counting
from stirred.topdown.data.counting import count_tables, read_spine
from stirred.topdown.data.histograms import Histograms, added_up, marginal

PLAN = plan()


def test_every_level_is_counted_as_by_hand():
    data = tables()
    counted = count_tables(PLAN, data)
    schema = PLAN.table("persons").schema_of
    places = dict(zip(*(data["geography"][name] for name in ("town", "county")), strict=True))
    for level, name in enumerate(counted.spine.levels):
        found = counted.histograms("persons", level).dense(schema.cells)
        units = counted.spine.names[level].to_pylist()
        by_hand = Counter(
            (
                {"state": "s", "county": places[row["town"]], "town": row["town"]}[name],
                row["kind"],
                row["adult"],
                row["colour"],
            )
            for row in data["persons"].iter_rows(named=True)
        )
        for unit, row in zip(units, found, strict=True):
            for label, count in zip(schema.labels(["kind", "adult", "colour"]), row, strict=True):
                assert by_hand[unit, *label] == count


def test_the_spine_is_nested_and_keeps_empty_places():
    spine = read_spine(PLAN, tables()["geography"])
    assert [spine.units(level) for level in range(3)] == [1, 2, 5]
    assert spine.names[2].to_pylist() == ["a1", "a2", "b1", "b2", "b3"]
    assert spine.first_child[1].tolist() == [0, 2, 5] and spine.first_leaf(0).tolist() == [0, 5]
    assert spine.parents(2).tolist() == [0, 0, 1, 1, 1]


def test_a_root_above_the_columns():
    fields = PLAN.model_dump() | {"spine": {"levels": ["county", "town"], "root": "state"}}
    spine = read_spine(PLAN.__class__(**fields), tables()["geography"])
    assert spine.levels == ("state", "county", "town") and spine.first_child[0].tolist() == [0, 2]


def test_rows_that_stand_for_several_records():
    data = tables()
    grouped = data["persons"].group_by("town", "kind", "adult", "colour").len("number")
    persons = PLAN.table("persons").model_copy(update={"count": "number"})
    counting = PLAN.model_copy(update={"tables": (persons, *PLAN.tables[1:])})
    by_rows = count_tables(PLAN, data).leaves["persons"]
    by_counts = count_tables(counting, data | {"persons": grouped}).leaves["persons"]
    assert np.array_equal(by_rows.cells, by_counts.cells) and np.array_equal(by_rows.counts, by_counts.counts)
    for wrong, words in ((-1, "negative"), (0.5, "whole")):
        with pytest.raises(StirredError, match=words):
            count_tables(counting, data | {"persons": grouped.with_columns(number=pl.lit(wrong))})


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("persons", "town", "zz", "does not have"),
        ("persons", "town", None, "does not have"),
        ("persons", "colour", "SECRET", "does not list"),
        ("persons", "colour", None, "does not list"),
        ("geography", "county", None, "nulls"),
    ],
)
def test_strange_places_and_values_are_counted_and_not_quoted(table, column, value, words):
    data = tables()
    row = pl.arange(pl.len()) == 3
    data[table] = data[table].with_columns(pl.when(row).then(pl.lit(value)).otherwise(pl.col(column)).alias(column))
    with pytest.raises(StirredError, match=words) as refused:
        count_tables(PLAN, data)
    assert "SECRET" not in str(refused.value) and "zz" not in str(refused.value)


def test_other_refusals():
    data = tables()
    moved = data["geography"].with_columns(
        county=pl.Series(["a", "b", "b", "b", "b"]), town=pl.Series(["a1", "a1", "b1", "b2", "b3"])
    )
    with pytest.raises(StirredError, match="town a1 lies in two units of level 'county', a and b"):
        count_tables(PLAN, data | {"geography": moved})
    missing = data["geography"].with_columns(county=pl.Series(["a", None, "b", None, "b"]))
    with pytest.raises(StirredError, match="'county' has nulls in 2 rows of the list, the first at town a2"):
        count_tables(PLAN, data | {"geography": missing})
    unnamed = data["geography"].with_columns(town=pl.Series(["a1", None, "b1", "b2", "b3"]))
    with pytest.raises(StirredError, match=r"'town' has nulls in 1 rows of the list\."):
        count_tables(PLAN, data | {"geography": unnamed})
    with pytest.raises(StirredError, match="no column 'colour'"):
        count_tables(PLAN, data | {"persons": data["persons"].drop("colour")})
    minors = data["persons"].with_columns(kind=pl.lit("nursing"), adult=pl.lit("no"))
    with pytest.raises(StirredError, match=r"200 records have a combination .*: kind 'nursing' and adult 'no'"):
        count_tables(PLAN, data | {"persons": minors})
    with pytest.raises(StirredError, match="no table 'cats'"):
        count_tables(PLAN, data | {"cats": data["persons"]})
    with pytest.raises(StirredError, match="must have a path"):
        count_tables(PLAN, {})


def test_marginals_leave_out_what_belongs_to_no_group():
    counted = count_tables(PLAN, tables())
    leaves = counted.leaves["persons"]
    groups = np.where(np.arange(24) < 8, 0, -1).astype(np.int32)
    assert marginal(leaves, groups, 1)[:, 0].tolist() == leaves.dense(24)[:, :8].sum(axis=1).tolist()
    assert added_up(leaves, np.arange(6)) is leaves


@settings(max_examples=60, deadline=None)
@given(
    table=arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.sampled_from([0, 0, 1, 2, 50])),
    data=st.data(),
)
def test_sums_over_leaves_and_over_groups_are_those_of_the_dense_table(table, data):
    leaves = Histograms.from_dense(table)
    inner = data.draw(st.sets(st.integers(1, max(1, len(table) - 1))))
    first_leaf = np.array(sorted({0, *inner, len(table)}), dtype=np.int64)
    first_leaf = first_leaf[first_leaf <= len(table)]
    above = added_up(leaves, first_leaf)
    assert np.array_equal(above.dense(table.shape[1]), np.add.reduceat(table, first_leaf[:-1], axis=0))
    assert bool(np.all(above.counts > 0))
    for unit in range(above.units):
        assert bool(np.all(np.diff(above.cells[above.starts[unit] : above.starts[unit + 1]]) > 0))
    groups = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=table.shape[1], max_size=table.shape[1])))
    belongs = groups[:, None] == np.arange(3)
    assert np.array_equal(marginal(leaves, groups.astype(np.int32), 3), table @ belongs)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 3)), max_size=40), max_size=8),
    st.booleans(),
    st.sampled_from([1, 5, 1 << 22]),
)
@settings(deadline=None)
def test_counts_by_key_are_those_of_all_parts_together(parts, each_one, held):
    expected: Counter[int] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "HELD", held)
        tally = counting._Tally(60)
        for part in parts:
            keys = np.array([key for key, _ in part], dtype=np.int64)
            numbers = np.array([1 if each_one else number for _, number in part], dtype=np.int64)
            tally.add(keys, None if each_one else numbers)
            for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
                expected[key] += number
        found = tally.histograms(10, 6)
    dense = np.array([expected[key] for key in range(60)]).reshape(10, 6)
    assert found.dense(6).tolist() == dense.tolist()
    assert found.starts.tolist() == Histograms.from_dense(dense).starts.tolist()
    assert found.cells.tolist() == Histograms.from_dense(dense).cells.tolist()


@given(st.lists(st.text(max_size=5) | st.none(), max_size=20), st.sampled_from([1, 9, 1 << 22]))
@settings(deadline=None)
def test_texts_of_one_width_are_the_texts(texts, held):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "HELD", held)
        found = counting._bytes(pa.array(texts, pa.string()))
    assert found.tolist() == np.array([(text or "").encode() for text in texts], dtype=np.bytes_).tolist()
