"""Encoded columns: every value comes back as it went in, and the dictionary tells nothing of the order of rows."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import DataError
from stirred.tables import Column, columns
from stirred.tables.columns import ColumnEncoder, as_text, is_supported, plain_type, recast, smallest_type, type_named

MOMENT = dt.datetime(2020, 2, 29, 23, 59, 58, 678901)
BEFORE = dt.datetime(1905, 6, 7, 8, 9, 10, 111)
DECIMALS = [Decimal("0.00"), Decimal("-1.20"), Decimal("99999.99"), Decimal("-99999.99")]
INTEGERS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 2**8 - 1),
    pa.uint16(): (0, 2**16 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}
FLOATS = [1.1, -0.0, 0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 1 / 3, 1e16, -2.5]
TEXTS = ["", " ", "001", "NA", "null", "é", "e\u0301", "日本", "a,b", 'say "no"', "a\nb", "\r", "\u0000", "\ufeff"]


def of(kind: pa.DataType, values: list[object]) -> pa.Array:
    return pa.array(values, kind)


ARRAYS = {
    **{f"extremes of {kind}": of(kind, [*ends, 0, 1]) for kind, ends in INTEGERS.items()},
    **{f"bottom of {kind}": of(kind, [low, low + 1, low + 3]) for kind, (low, _) in INTEGERS.items()},
    **{f"top of {kind}": of(kind, [high, high - 2, high - 3]) for kind, (_, high) in INTEGERS.items()},
    "bool": of(pa.bool_(), [True, False, True]),
    "only true": of(pa.bool_(), [True, True]),
    "string": of(pa.string(), TEXTS),
    "date32": of(pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    **{
        f"timestamp[{unit}{zone and ', ' + zone}]": of(pa.int64(), [ticks, -ticks, 0, -1]).cast(
            pa.timestamp(unit, zone or None)
        )
        for unit, ticks in [("ms", 1_600_000_000_123), ("us", 1_600_000_000_123_456), ("ns", 1_600_000_000_123_456_789)]
        for zone in ["", "UTC", "Europe/Berlin", "America/New_York", "+05:30"]
    },
    "time32[ms]": of(pa.time32("ms"), [0, 3, 86_399_999]),
    "time64[us]": of(pa.time64("us"), [0, 3, 86_399_999_999]),
    "time64[ns]": of(pa.time64("ns"), [0, 3, 86_399_999_999_999]),
    **{f"duration[{unit}]": of(pa.duration(unit), [0, 5, -5, 2**62]) for unit in ["s", "ms", "us", "ns"]},
    "decimal128": of(pa.decimal128(7, 2), DECIMALS),
    "longest decimal128": of(pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38)]),
    "decimal256": of(pa.decimal256(50, 2), [*DECIMALS, Decimal("9" * 48 + ".99")]),
    "float16": pa.array(np.array([1.5, -0.0, 0.0, np.nan, np.inf, 6e-8], dtype=np.float16)),
    "float32": pa.array(np.array([1.1, -0.0, 0.0, np.nan, -np.inf, 1e-45, 3.4028235e38, 16777216.0], dtype=np.float32)),
    "float64": pa.array(np.array(FLOATS)),
    "nothing but nulls": pa.nulls(3),
}
"""Arrays of the types that a release carries as they are."""

REWRITTEN = {
    "large_string": (of(pa.large_string(), TEXTS), pa.string()),
    "string_view": (of(pa.string_view(), TEXTS), pa.string()),
    "date64": (of(pa.date64(), [dt.date(1905, 1, 2), dt.date(2001, 1, 1)]), pa.date32()),
    "timestamp[s]": (of(pa.timestamp("s"), [MOMENT.replace(microsecond=0)]), pa.timestamp("ms")),
    "timestamp[s, UTC]": (of(pa.timestamp("s", "UTC"), [MOMENT.replace(microsecond=0)]), pa.timestamp("ms", "UTC")),
    "time32[s]": (of(pa.time32("s"), [0, 86_399]), pa.time32("ms")),
    "decimal32": (of(pa.decimal32(7, 2), DECIMALS), pa.decimal128(7, 2)),
    "decimal64": (of(pa.decimal64(7, 2), DECIMALS), pa.decimal128(7, 2)),
    "dictionary of text": (of(pa.string(), ["b", "a", "b"]).dictionary_encode(), pa.string()),
    "dictionary of integers": (of(pa.int16(), [7, -3, 7]).dictionary_encode(), pa.int16()),
    "dictionary of floats": (pa.array(np.array([2.5, -0.0, 0.0, np.inf])).dictionary_encode(), pa.float64()),
    "dictionary of large text": (of(pa.large_string(), ["b", "a"]).dictionary_encode(), pa.string()),
}
"""Arrays that come out with a plainer type, and that type."""


def encoded(*batches: pa.Array, kind: pa.DataType | None = None) -> Column:
    encoder = ColumnEncoder("t", "c", kind or batches[0].type)
    for batch in batches:
        encoder.add(batch)
    return encoder.finish()


def bits(array: pa.Array) -> list[object]:
    """Values to compare one by one; floats by their bits, so that -0.0 is not 0.0 and a NaN equals itself."""
    if pa.types.is_floating(array.type):
        array = array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    elif pa.types.is_temporal(array.type):  # Python's own have no nanoseconds and end with the year 9999
        array = array.view(f"int{array.type.bit_width}")
    return array.to_pylist()


# -- there and back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_values_come_back_as_they_went_in(array):
    column = encoded(array)
    assert column.type == array.type
    assert bits(column.decode(column.codes)) == bits(array)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_values_beside_nulls_come_back_as_they_went_in(array):
    with_nulls = pa.concat_arrays([array[:1], pa.nulls(2, array.type), array[1:]])
    encoder = ColumnEncoder("t", "c", array.type)
    encoder.add(with_nulls)
    assert encoder.nulls == with_nulls.null_count
    column = encoder.finish()
    assert bits(column.decode(column.codes)) == bits(with_nulls)
    assert column.values[-1].as_py() is None
    assert column.values.null_count == 1


@pytest.mark.parametrize(("array", "plain"), REWRITTEN.values(), ids=REWRITTEN.keys())
def test_layouts_that_not_every_format_has_become_plain(array, plain):
    assert plain_type(array.type) == plain
    column = encoded(array)
    assert column.type == plain
    assert bits(column.decode(column.codes)) == bits(array.cast(plain))


def test_every_payload_of_a_nan_survives():
    patterns = [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001, 0x8000000000000000, 0]
    array = pa.array(np.array(patterns, dtype=np.uint64).view(np.float64))
    column = encoded(array, array)
    assert column.cardinality == len(patterns)
    assert column.decode(column.codes).to_numpy().view(np.uint64).tolist() == patterns * 2


def test_all_values_are_distinguished_though_their_python_objects_are_equal():
    assert encoded(pa.array([0.0, -0.0])).cardinality == 2
    assert encoded(of(pa.string(), ["é", "e\u0301"])).cardinality == 2


UNSUPPORTED = [
    pa.list_(pa.int8()),
    pa.struct([("a", pa.int8())]),
    pa.map_(pa.string(), pa.int8()),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(4),
    pa.month_day_nano_interval(),
    pa.uuid(),
    pa.bool8(),
    pa.json_(),
    pa.decimal128(10, -2),
    pa.dictionary(pa.int8(), pa.binary()),
]


@pytest.mark.parametrize("kind", UNSUPPORTED, ids=str)
def test_types_that_no_cell_of_a_file_holds_are_known(kind):
    assert not is_supported(kind)


@pytest.mark.parametrize(
    "kind", [*(array.type for array in ARRAYS.values()), *(array.type for array, _ in REWRITTEN.values())], ids=str
)
def test_all_types_tried_here_are_supported(kind):
    assert is_supported(kind)


def test_a_moment_too_far_for_milliseconds_is_refused_without_being_quoted():
    encoder = ColumnEncoder("t", "c", pa.timestamp("s"))
    with pytest.raises(DataError) as refusal:
        encoder.add(of(pa.int64(), [7731773177317731773]).cast(pa.timestamp("s")))
    assert refusal.value.kind == "unsupported-type"
    assert "7731" not in str(refusal.value)
    assert refusal.value.__suppress_context__


# -- many batches ---------------------------------------------------------------------------------------------

LETTERS = st.sampled_from(["", "a", "b", "ab", "é", "zz"])


@st.composite
def text_batches(draw: st.DrawFn) -> list[pa.Array]:
    """Batches of text in different layouts, some with dictionaries of their own that list what does not occur."""
    batches = []
    for values in draw(st.lists(st.lists(LETTERS | st.none(), max_size=12), min_size=1, max_size=5)):
        layout = draw(st.sampled_from(["plain", "large", "own dictionary", "null in dictionary"]))
        array = pa.array(values, pa.string())
        if layout == "large":
            array = array.cast(pa.large_string())
        elif layout != "plain":
            known: list[str | None] = draw(st.permutations(["", "a", "b", "ab", "é", "zz", "unused"]))
            if layout == "null in dictionary":
                known = [*known, None]
            absent = None in known and draw(st.booleans())  # whether a null may be a code of the dictionary's null
            places = [
                None if value is None and not (absent and row % 2) else known.index(value)
                for row, value in enumerate(values)
            ]
            array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(known, pa.string()))
        batches.append(array)
    return batches


def cells_of(batches: list[pa.Array]) -> list[object]:
    return [value for batch in batches for value in batch.to_pylist()]


@given(text_batches())
@settings(deadline=None)
def test_batches_with_dictionaries_of_their_own_make_one_column(batches):
    encoder = ColumnEncoder("t", "c", pa.string())
    for batch in batches:
        encoder.add(batch)
    column, cells = encoder.finish(), cells_of(batches)
    assert column.decode(column.codes).to_pylist() == cells
    assert encoder.nulls == cells.count(None)
    present = sorted({value for value in cells if value is not None}, key=str.encode)
    assert column.values.to_pylist() == present + [None] * (None in cells)


@st.composite
def integer_batches(draw: st.DrawFn) -> tuple[pa.DataType, list[pa.Array]]:
    """Batches of integers, narrow, wide, with nulls or as dictionaries, so that tables and hashing meet."""
    kind = draw(st.sampled_from(list(INTEGERS)))
    low, high = INTEGERS[kind]
    near = [st.integers(start, start + 9) for start in (low, high - 9, max(low, 0))]
    anywhere = st.one_of(*near, st.integers(low, high))
    batches = []
    for _ in range(draw(st.integers(1, 5))):
        drawn = draw(st.sampled_from([*near, anywhere, anywhere | st.none()]))
        array = pa.array(draw(st.lists(drawn, max_size=12)), kind)
        batches.append(array.dictionary_encode() if draw(st.integers(0, 4)) == 0 else array)
    return kind, batches


@given(integer_batches(), st.sampled_from([0, 16, 300, columns._NARROW]))
@settings(max_examples=300, deadline=None)
def test_wide_and_narrow_batches_of_integers_make_one_column(drawn, narrow):
    kind, batches = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_NARROW", narrow)
        column = encoded(*batches, kind=kind)
    cells = cells_of(batches)
    assert column.decode(column.codes).to_pylist() == cells
    assert column.values.to_pylist() == sorted(set(cells) - {None}) + [None] * (None in cells)
    assert column.type == kind


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=8), min_size=1, max_size=4))
@settings(deadline=None)
def test_floats_of_any_bits_come_back_from_many_batches(patterns):
    batches = [pa.array(np.array(part, dtype=np.uint64).view(np.float64)) for part in patterns]
    column = encoded(*batches)
    assert [pattern for part in patterns for pattern in part] == (
        column.decode(column.codes).to_numpy(zero_copy_only=False).view(np.uint64).tolist()
    )


def looked_up_batch_by_batch(batches: list[pa.Array], kind: pa.DataType) -> tuple[list[int], pa.Array]:
    """Codes and values by a search for every batch among all values: quadratic, and plainly right."""
    plain = [batch.cast(kind) for batch in batches]
    values = pc.unique(pa.concat_arrays(plain)).drop_null()
    values = values.take(pc.array_sort_indices(values))
    codes = [pc.index_in(batch, value_set=values).fill_null(len(values)).to_pylist() for batch in plain]
    if any(batch.null_count for batch in plain):
        values = pa.concat_arrays([values, pa.nulls(1, kind)])
    return [code for batch in codes for code in batch], values


@given(text_batches().map(lambda batches: (pa.string(), batches)) | integer_batches(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_codes_are_those_of_a_search_for_every_batch(drawn, known_rows):
    kind, batches = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_NARROW", 16)
        encoder = ColumnEncoder("t", "c", kind, sum(map(len, batches)) if known_rows else None)
        for batch in batches:
            encoder.add(batch)
        column = encoder.finish()
    codes, values = looked_up_batch_by_batch(batches, kind)
    assert column.codes.tolist() == codes
    assert column.values.equals(values)
    assert column.codes.dtype == smallest_type(len(values))


def test_a_thousand_batches_of_a_list_of_places_make_one_column():
    places = [f"{number:06d}" for number in np.random.default_rng(3).permutation(20_000)]
    batches = [pa.array(places[start : start + 20]) for start in range(0, len(places), 20)]
    column = encoded(*batches)
    assert column.values.to_pylist() == sorted(places)
    assert column.codes.tolist() == [int(place) for place in places]


# -- the dictionary -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_the_dictionary_does_not_depend_on_the_order_of_rows(array):
    twice = pa.concat_arrays([array, array, pa.nulls(1, array.type)])
    order = np.random.default_rng(5).permutation(len(twice))
    column, shuffled = encoded(twice), encoded(twice.take(order)[:3], twice.take(order)[3:])
    assert bits(shuffled.values) == bits(column.values)
    assert shuffled.codes.tolist() == column.codes[order].tolist()


@given(st.lists(st.text(max_size=3) | st.none(), min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_dictionary_of_text_does_not_depend_on_rows_or_batches(values, random):
    shuffled, cut = random.sample(values, len(values)), random.randint(0, len(values))
    column = encoded(pa.array(values, pa.string()))
    again = encoded(pa.array(shuffled[:cut], pa.string()).dictionary_encode(), pa.array(shuffled[cut:], pa.string()))
    assert again.values.equals(column.values)


ORDERED = {
    name: array
    for name, array in ARRAYS.items()
    if not pa.types.is_floating(array.type) and not pa.types.is_null(array.type)
}


@pytest.mark.parametrize("array", ORDERED.values(), ids=ORDERED.keys())
def test_values_are_sorted_and_each_of_them_occurs(array):
    column = encoded(array)
    values = bits(column.values)
    assert values == sorted(set(bits(array)), key=lambda value: value.encode() if isinstance(value, str) else value)
    assert set(column.codes.tolist()) == set(range(column.cardinality))


def test_floats_are_sorted_by_their_bits_and_each_of_them_occurs():
    column = encoded(pa.array(np.array(FLOATS * 2)))
    assert bits(column.values) == sorted(struct.unpack("<q", struct.pack("<d", value))[0] for value in FLOATS)
    assert set(column.codes.tolist()) == set(range(len(FLOATS)))


@pytest.mark.parametrize(
    ("values", "null", "narrowest"),
    [
        (256, False, np.uint8),
        (255, True, np.uint8),
        (256, True, np.uint16),
        (257, False, np.uint16),
        (65_536, False, np.uint16),
        (65_536, True, np.uint32),
        (65_537, False, np.uint32),
    ],
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_codes_take_the_narrowest_type(kind, values, null, narrowest):
    array = pa.array(np.arange(values)[::-1] * 5).cast(kind)
    column = encoded(array, pa.nulls(int(null), kind))
    assert column.codes.dtype == narrowest == smallest_type(column.cardinality)
    assert column.decode(column.codes[:-1] if null else column.codes).equals(array)


# -- text and back --------------------------------------------------------------------------------------------

TEXTUAL = ARRAYS | {name: array.cast(plain) for name, (array, plain) in REWRITTEN.items()}


@pytest.mark.parametrize("array", TEXTUAL.values(), ids=TEXTUAL.keys())
def test_a_type_is_found_again_by_its_name(array):
    assert type_named(str(array.type)) == array.type


@pytest.mark.parametrize("array", TEXTUAL.values(), ids=TEXTUAL.keys())
def test_a_column_of_text_becomes_the_column_it_was_written_from(array):
    with_null = pa.concat_arrays([array, pa.nulls(1, array.type)])
    column = encoded(with_null)
    back = recast(encoded(as_text(with_null)), array.type)
    assert back.type == array.type
    assert bits(back.values) == bits(column.values)
    assert back.codes.tolist() == column.codes.tolist()


def test_recasting_joins_texts_that_are_the_same_number():
    back = recast(encoded(pa.array(["2", "1.0", "1", "1e0"])), pa.float64())
    assert back.decode(back.codes).to_pylist() == [2.0, 1.0, 1.0, 1.0]
    assert back.cardinality == 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.float64(), pa.date32(), pa.bool_(), pa.time64("us"), pa.duration("s")])
def test_text_that_does_not_fit_its_type_is_a_value_error(kind):
    with pytest.raises(ValueError):
        recast(encoded(pa.array(["1", "no such thing"])), kind)


def test_texts_are_those_of_the_values_in_their_order():
    assert encoded(of(pa.int8(), [3, None, -1])).texts() == ["-1", "3", None]
    assert encoded(of(pa.date32(), [MOMENT.date(), BEFORE.date()])).texts() == ["1905-06-07", "2020-02-29"]
    assert encoded(of(pa.decimal128(5, 2), [Decimal("1.20")])).texts() == ["1.20"]
    zoned = of(pa.timestamp("us", "Europe/Berlin"), [MOMENT])
    assert encoded(zoned).texts() == ["2020-02-29 23:59:58.678901Z"], "in UTC, whatever zone tables a computer has"


@pytest.mark.parametrize("rows", [None, 2, 7, 50])
def test_codes_are_right_whether_or_not_their_number_was_known(rows):
    """Wider and narrower batches, integers and then nulls: codes change their place without losing a value."""
    batches = [[5, 6, 5], [900, 5], [70_000, -3], [None, 6]]
    encoder = ColumnEncoder("t", "c", pa.int64(), rows)
    for batch in batches:
        encoder.add(pa.array(batch, pa.int64()))
    column = encoder.finish()
    assert column.decode(column.codes).to_pylist() == [value for batch in batches for value in batch]
    assert column.values.to_pylist() == [-3, 5, 6, 900, 70_000, None]


def test_texts_that_cannot_be_of_a_type_are_no_fault():
    column = ColumnEncoder("", "c", pa.string())
    column.add(pa.array(["a", "b"]))
    with pytest.raises(ValueError, match="text cannot be read as null"):
        recast(column.finish(), pa.null())
