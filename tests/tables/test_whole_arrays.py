"""Numbers of columns as arrays of whole numbers are those that are read one by one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from stirred.errors import StirredError
from stirred.tables import Column
from stirred.tables.exact_numbers import whole_array

RANDOM = np.random.default_rng(1)
ARRAYS = {
    "integers": pa.array([1, None, -(2**63), 2**63 - 1]),
    "small integers": pa.array([1, None, 255], pa.uint8()),
    "unsigned": pa.array([1, 2**64 - 1], pa.uint64()),
    "hundredths": pa.array(RANDOM.integers(-(10**6), 10**6, 2_000) / 100),
    "with nulls and NaN": pa.array([0.1, None, float("nan"), 12.5, -0.0]),
    "many digits": pa.array(RANDOM.random(500)),
    "large and small": pa.array([1e14 + 0.5, 0.1, 3.0]),
    "beyond fifteen digits": pa.array([123456789012345.6, 0.25]),
    "nine digits after the point": pa.array([1e-9, 0.123456789, 1.0]),
    "ten digits after the point": pa.array([1e-10, 2.0]),
    "single precision": pa.array([0.1, 2.5], pa.float32()),
    "decimals": pa.array([Decimal("1.25"), None, Decimal("-3.10")], pa.decimal128(38, 2)),
    "decimals, sliced": pa.array([Decimal("1.25"), Decimal("7.00"), None], pa.decimal128(10, 2))[1:],
    "large decimals": pa.array([Decimal(2) ** 70, Decimal(-5)], pa.decimal128(38, 0)),
    "decimals at the edge": pa.array([Decimal(-(2**63)), Decimal(1)], pa.decimal128(38, 0)),
    "none": pa.array([], pa.float64()),
}  # fmt: skip


@pytest.mark.parametrize("which", ARRAYS)
def test_arrays_hold_the_numbers_that_the_shortest_texts_of_values_say(which):
    array = ARRAYS[which]
    each = array.to_numpy(zero_copy_only=False) if pa.types.is_floating(array.type) else array.to_pylist()
    read = [None if one is None or one != one else Fraction(str(one)) for one in each]
    numbers, empty, scale = whole_array(Column("x", np.zeros(1, np.uint8), array))
    assert [Fraction(int(one), 10**scale) for one in numbers] == [one or 0 for one in read]
    assert empty.tolist() == [one is None for one in read]


def test_text_is_no_number():
    with pytest.raises(StirredError, match="its type is text"):
        whole_array(Column("x", np.zeros(1, np.uint8), pa.array(["1"])))
