"""Grouping and counting by several columns, against Polars and against sorting with NumPy."""

from __future__ import annotations

from math import prod

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.tables import Column, groups
from stirred.tables.columns import smallest_type
from stirred.tables.groups import Cells, anonymous, cells, fits_one_key, group, pack, unpack

FEW = [2, 3, 5]
SORTED_KEYS = [5000, 4000, 3000]
"""More possible keys than a table is made for, few enough for one 64-bit key."""
FOLDED = [60_000] * 5
"""Too many possible keys for 64 bits: the groups of the leading columns become one column."""
PATHS = {"direct table": FEW, "sorted keys": SORTED_KEYS, "folding": FOLDED, "folding twice": [60_000] * 11}


def column(name: str, codes: object, cardinality: int) -> Column:
    """A column of which only codes and cardinality matter."""
    values = pa.nulls(cardinality, pa.int8())
    return Column(name, np.asarray(codes, dtype=smallest_type(cardinality)), values)


def columns_of(cardinalities: list[int], rows: int, seed: int = 7) -> list[Column]:
    """Columns whose combinations repeat: whole rows are drawn from a small pool that reaches every extreme code."""
    random = np.random.default_rng(seed)
    pool = np.stack([random.integers(0, size, max(rows // 3, 2)) for size in cardinalities], axis=1)
    pool[0], pool[-1] = 0, np.array(cardinalities) - 1
    drawn = pool[random.integers(0, len(pool), rows)]
    drawn[:2] = pool[[0, -1]]
    return [column(f"c{i}", drawn[:, i], size) for i, size in enumerate(cardinalities)]


def counted_by_polars(columns: list[Column]) -> tuple[list[tuple[int, ...]], list[int]]:
    frame = pl.DataFrame({item.name: item.codes for item in columns})
    counted = frame.group_by(pl.all()).len().sort([item.name for item in columns])
    return counted.drop("len").rows(), counted["len"].to_list()


def numbered_by_sorting(columns: list[Column]) -> list[int]:
    """Each row's place among the distinct rows in the order of their codes."""
    rows = np.stack([item.codes.astype(np.int64) for item in columns], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).tolist()


def as_rows(found: Cells) -> list[tuple[int, ...]]:
    return [tuple(int(code) for code in cell) for cell in zip(*found.codes, strict=True)]


def test_the_chosen_sizes_reach_every_path():
    rows = 4000
    assert groups._direct(prod(FEW), rows)
    assert not groups._direct(prod(SORTED_KEYS), rows) and prod(SORTED_KEYS) <= 2**63
    assert not fits_one_key(columns_of(FOLDED, 10))
    first, rest = groups._fitting(columns_of(PATHS["folding twice"], 10))
    assert len(groups._fitting([groups.anonymous(first[0].codes, 4000), *rest])[1]) > 0


@pytest.mark.parametrize("cardinalities", PATHS.values(), ids=PATHS.keys())
def test_cells_are_those_that_polars_counts(cardinalities):
    columns = columns_of(cardinalities, 4000)
    found = cells(columns, 4000)
    assert (as_rows(found), found.counts.tolist()) == counted_by_polars(columns)
    assert found.names == tuple(item.name for item in columns)
    assert [codes.dtype for codes in found.codes] == [item.codes.dtype for item in columns]


@pytest.mark.parametrize("cardinalities", PATHS.values(), ids=PATHS.keys())
def test_groups_are_numbered_in_the_order_of_their_codes(cardinalities):
    columns = columns_of(cardinalities, 4000)
    found = group(columns, 4000)
    assert found.ids.tolist() == numbered_by_sorting(columns)
    assert found.sizes().tolist() == counted_by_polars(columns)[1]
    assert found.count == len(found.sizes())


@st.composite
def any_columns(draw: st.DrawFn) -> list[Column]:
    sizes = st.sampled_from([1, 2, 3, 255, 256, 257, 65_536, 65_537, 1 << 31])
    cardinalities = draw(st.lists(sizes, min_size=1, max_size=9))
    rows = draw(st.integers(1, 40))
    picked = [
        draw(st.lists(st.integers(0, size - 1) | st.just(size - 1), min_size=rows, max_size=rows))
        for size in cardinalities
    ]
    repeats = draw(st.lists(st.integers(0, rows - 1), max_size=20))
    return [
        Column(
            f"c{i}",
            np.array([*codes, *(codes[row] for row in repeats)], dtype=smallest_type(size)),
            groups._Anonymous(size),
        )
        for i, (codes, size) in enumerate(zip(picked, cardinalities, strict=True))
    ]


@given(any_columns(), st.sampled_from([0, 16, 1 << 24]))
@settings(max_examples=150, deadline=None)
def test_any_columns_group_and_count_as_by_sorting_whole_rows(columns, largest_table):
    rows = len(columns[0].codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_DIRECT", largest_table)
        found, numbered = cells(columns, rows), group(columns, rows)
    assert (as_rows(found), found.counts.tolist()) == counted_by_polars(columns)
    assert numbered.ids.tolist() == numbered_by_sorting(columns)


@pytest.mark.parametrize("cardinalities", PATHS.values(), ids=PATHS.keys())
def test_chunks_make_no_difference(cardinalities, monkeypatch):
    columns = columns_of(cardinalities, 1000)
    whole, ids = cells(columns, 1000), group(columns, 1000).ids
    chunked = groups.chunks
    monkeypatch.setattr(groups, "chunks", lambda rows: chunked(rows, 7))
    assert cells(columns, 1000).equals(whole)
    assert group(columns, 1000).ids.tolist() == ids.tolist()


def test_no_columns_are_one_group_and_one_cell():
    assert group([], 5).ids.tolist() == [0] * 5
    assert group([], 5).count == 1
    assert cells([], 5).counts.tolist() == [5]
    assert cells([], 5).codes == ()


def test_no_rows_are_no_groups():
    assert group([], 0).count == 0
    assert group([column("a", [], 3)], 0).count == 0
    assert len(cells([column("a", [], 3)], 0)) == 0


@given(any_columns())
@settings(max_examples=100, deadline=None)
def test_unpack_undoes_pack(columns):
    while not fits_one_key(columns):
        columns = columns[1:]
    rows = len(columns[0].codes)
    keys = pack(columns, slice(0, rows))
    back = unpack(keys.copy(), [item.cardinality for item in columns], [item.codes.dtype.type for item in columns])
    assert [codes.tolist() for codes in back] == [item.codes.tolist() for item in columns]
    assert [codes.dtype for codes in back] == [item.codes.dtype for item in columns]


@given(any_columns())
@settings(max_examples=100, deadline=None)
def test_keys_order_records_as_their_codes_do(columns):
    while not fits_one_key(columns):
        columns = columns[1:]
    rows = len(columns[0].codes)
    by_key = np.argsort(pack(columns, slice(0, rows)), kind="stable")
    by_codes = np.lexsort([item.codes for item in reversed(columns)])
    assert by_key.tolist() == by_codes.tolist()


def test_the_largest_product_that_fits_does_not_overflow():
    columns = [column("a", [0, 127, 127], 128), *(column(f"b{i}", [0, 255, 254], 256) for i in range(7))]
    assert prod(item.cardinality for item in columns) == 2**63
    assert fits_one_key(columns)
    assert pack(columns, slice(0, 3)).tolist() == [0, 2**63 - 1, 2**63 - 1 - sum(256**i for i in range(7))]
    assert not fits_one_key([*columns, column("c", [0, 1, 0], 2)])


def test_cells_are_equal_only_if_names_codes_and_counts_are():
    columns = columns_of(FEW, 100)
    found = cells(columns, 100)
    assert found.equals(cells(columns, 100))
    fewer = [column(item.name, item.codes[:-1], item.cardinality) for item in columns]
    assert not found.equals(cells(fewer, 99))
    renamed = [column(f"other {item.name}", item.codes, item.cardinality) for item in columns]
    assert not found.equals(cells(renamed, 100))
    moved = [column(item.name, (item.codes + 1) % item.cardinality, item.cardinality) for item in columns[:1]]
    assert not found.equals(cells([*moved, *columns[1:]], 100))


@pytest.mark.parametrize("wide", [False, True])
def test_cells_begin_where_their_leading_columns_change(wide):
    rng = np.random.default_rng(8)
    sizes = [3, 4, 5] + ([2**22, 2**22, 2**22] if wide else [6])  # too wide for one key, or not
    columns = [anonymous(rng.integers(0, min(size, 7), 500).astype(np.uint32), size) for size in sizes]
    counted = cells(columns, 500)
    assert (counted.keys is None) == wide
    for leading in range(len(sizes) + 1):
        rows = list(zip(*(codes.tolist() for codes in counted.codes[:leading]), strict=True)) or [()] * len(counted)
        expected = [at == 0 or rows[at] != rows[at - 1] for at in range(len(rows))]
        assert counted.begins(leading).tolist() == expected


@pytest.mark.parametrize("cardinalities", [SORTED_KEYS, FOLDED], ids=["sorted keys", "folding"])
def test_files_too_long_to_be_ordered_at_once_are_numbered_alike(cardinalities, monkeypatch):
    rng = np.random.default_rng(7)
    columns = [column(str(k), rng.integers(0, 40, 3000), many) for k, many in enumerate(cardinalities)]
    at_once = group(columns, 3000)
    monkeypatch.setattr(groups, "_SORTED_AT_ONCE", 100)
    by_looking_up = group(columns, 3000)
    assert at_once.count == by_looking_up.count
    np.testing.assert_array_equal(at_once.ids, by_looking_up.ids)
