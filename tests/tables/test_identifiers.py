"""Identifiers and references to them, against Python dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.tables.reading import table_reader
from stirred.tables.reading.table_reader import IdentifierCollector, count_repeated, locate

LEAST, MOST = -(2**63), 2**63 - 1


def chunked(values: list[object], kind: pa.DataType, cut: int = 0) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values[:cut], kind), pa.array(values[cut:], kind)], type=kind)


def located_by_dictionary(identifiers: list[object], references: list[object]) -> list[int]:
    known = {value: place for place, value in enumerate(identifiers)}
    return [known.get(value, -1) for value in references]


def dense(low: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, low + 300), min_size=1, max_size=60, unique=True)


integers = st.one_of(
    dense(0),
    dense(-150),
    dense(LEAST),
    dense(MOST - 300),
    st.lists(st.integers(LEAST, MOST), min_size=1, max_size=60, unique=True),
    st.lists(st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST]), min_size=1, max_size=7, unique=True),
)
other_integers = st.integers(LEAST, MOST) | st.integers(-400, 400) | st.sampled_from([LEAST, -1, 0, 1, MOST])


@given(integers, st.lists(other_integers, max_size=40), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_integer_references_find_the_record_that_a_dictionary_finds(identifiers, others, random):
    references = [*random.choices(identifiers, k=30), *others]
    random.shuffle(references)
    found = locate(chunked(identifiers, pa.int64(), len(identifiers) // 2), chunked(references, pa.int64(), 3))
    assert found.tolist() == located_by_dictionary(identifiers, references)


@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=40, unique=True),
    st.lists(st.text(max_size=4), max_size=40),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_text_references_find_the_record_that_a_dictionary_finds(identifiers, others, random):
    references = [*random.choices(identifiers, k=20), *others]
    found = locate(chunked(identifiers, pa.string(), len(identifiers) // 2), chunked(references, pa.string(), 5))
    assert found.tolist() == located_by_dictionary(identifiers, references)


@pytest.mark.parametrize("step", [1, 3, 1_000_003])
def test_many_integers_are_located_whether_dense_or_sparse(step):
    random = np.random.default_rng(11)
    identifiers = random.permutation(5000) * step - 2500
    references = random.integers(-3000 * step, 5000 * step, 20_000)
    references[:10_000] = random.choice(identifiers, 10_000)
    found = locate(pa.chunked_array([identifiers]), pa.chunked_array([references]))
    assert found.tolist() == located_by_dictionary(identifiers.tolist(), references.tolist())


@pytest.mark.parametrize("narrow", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64()], ids=str)
def test_integers_of_different_widths_refer_to_each_other(narrow):
    identifiers, references = [100, 7, 0, 42], [42, 0, 99, 100, 7]
    expected = located_by_dictionary(identifiers, references)
    assert locate(chunked(identifiers, narrow), chunked(references, pa.int64())).tolist() == expected
    assert locate(chunked(identifiers, pa.int64()), chunked(references, narrow)).tolist() == expected


@pytest.mark.parametrize("identifiers", [[2**64 - 1, 2**64 - 2], [2**64 - 1, 0], [2**63, 5, 2**63 + 1]])
def test_large_unsigned_integers_are_found_and_are_not_negative_ones(identifiers):
    unsigned = chunked(identifiers, pa.uint64())
    assert locate(unsigned, chunked([*identifiers, 1], pa.uint64())).tolist() == [*range(len(identifiers)), -1]
    wrapped = [value - 2**64 if value >= 2**63 else value for value in identifiers]
    expected = located_by_dictionary(identifiers, wrapped)
    assert locate(unsigned, chunked(wrapped, pa.int64())).tolist() == expected
    assert locate(chunked(wrapped, pa.int64()), unsigned).tolist() == located_by_dictionary(wrapped, identifiers)


@given(st.lists(st.integers(LEAST, MOST) | st.integers(-20, 20), min_size=1, max_size=80))
@settings(deadline=None)
def test_repeated_integers_are_counted(values):
    array = chunked(values, pa.int64(), len(values) // 3)
    assert count_repeated(array) == len(values) - len(set(values))
    assert array.to_pylist() == values, "the identifiers themselves are left as they were"


@given(st.lists(st.text(max_size=2), min_size=1, max_size=80))
@settings(deadline=None)
def test_repeated_texts_are_counted(values):
    array = chunked(values, pa.string(), len(values) // 3)
    assert count_repeated(array) == len(values) - len(set(values))


def test_a_single_unsorted_chunk_is_not_sorted_in_place():
    values = np.array([3, 1, 2, 1])
    assert count_repeated(pa.chunked_array([pa.array(values)])) == 1
    assert values.tolist() == [3, 1, 2, 1]


def test_increasing_integers_repeat_nothing():
    assert count_repeated(pa.chunked_array([np.arange(1000)])) == 0


def gather(arrays, kind, rows=None):
    collector = IdentifierCollector("t", "id", kind, rows)
    for array in arrays:
        collector.add(array)
    return collector.finish()


@pytest.mark.parametrize("rows", [None, 0, 3, 5, 9])
def test_integers_are_collected_whatever_was_said_about_their_number(rows):
    batches = [pa.array([3, 1]), pa.array([2]), pa.array([5, 4])]
    assert gather(batches, pa.int64(), rows).to_pylist() == [3, 1, 2, 5, 4]
    with_null = [*batches, pa.array([None, 7])]
    assert gather(with_null, pa.int64(), 7).to_pylist() == [3, 1, 2, 5, 4, None, 7]


def test_repeated_integers_are_counted_bucket_by_bucket(monkeypatch):
    monkeypatch.setattr(table_reader, "_BUCKET", 64)
    values = np.random.default_rng(4).integers(-500, 500, 3000)
    expected = len(values) - len(set(values.tolist()))
    assert count_repeated(pa.chunked_array([pa.array(values)])) == expected
    assert count_repeated(pa.chunked_array([pa.array(np.full(1000, 7))])) == 999  # all in one bucket, which grows


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_of_all_layouts_are_gathered_alike(kind):
    plain = gather([pa.array(["b", "a"], kind), pa.array([], kind)], kind)
    coded = gather([pa.array(["b", "a"], pa.string()).dictionary_encode()], pa.dictionary(pa.int32(), pa.string()))
    assert plain.type == coded.type == pa.string()
    assert plain.to_pylist() == coded.to_pylist() == ["b", "a"]
    assert locate(plain, coded).tolist() == [0, 1]
