"""Attributes with many values are treated without large matrices, and everything comes out as with them.

The tests of few values are repeated with every attribute treated as one of many.
"""

from __future__ import annotations

import numpy as np
import pytest
import test_one_table
import test_table_shares
from dense_table import random_margin, random_schema, random_where

from repeats import some_or
from stirred.margins import one_table
from stirred.margins.margin_blocks import Margin
from stirred.margins.one_table import FlatTable
from stirred.margins.schema import Attribute, Recode, Schema


@pytest.fixture
def every_attribute_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_table, "WIDE", 0)


FLAT = [
    test_one_table.test_estimates_variances_and_weights_are_those_of_dense_least_squares,
    test_one_table.test_covariances_of_groups_of_two_margins,
    test_one_table.test_two_margins_have_the_closed_form_of_weighted_means,
    test_one_table.test_factors_of_strata_are_weighted_within_each_stratum,
    test_one_table.test_several_rows_of_values_are_answered_at_once,
    test_one_table.test_exact_counts_are_returned_unchanged,
    test_table_shares.test_a_table_of_thousands_of_cells_with_strata,
]


@pytest.mark.repeats
@pytest.mark.parametrize("claim", FLAT, ids=lambda one: one.__name__.removeprefix("test_"))
def test_what_holds_for_few_values_holds_for_many(every_attribute_is_wide, claim):
    claim()


@pytest.mark.repeats
def test_sums_of_groups_are_counted_as_with_matrices():
    for seed in range(some_or(50, 300)):
        rng = np.random.default_rng(seed)
        schema = random_schema(rng)
        mine, finer = (random_margin(schema, rng) for _ in range(2))
        where = random_where(schema, rng)
        numbers = []
        for wide in (0, 1000):
            one, other = Margin.of(schema, mine, where, wide), Margin.of(schema, finer, wide=wide)
            numbers.append(one.sums_of(other))
        np.testing.assert_array_equal(*numbers)


def test_five_thousand_areas_have_the_closed_form_of_weighted_means():
    """Each area is measured by sex and as a whole: its best estimate weighs the two, and so does that of all areas."""
    areas = tuple(f"{number:04}" for number in range(5_000))
    regions = tuple((f"r{k}", areas[k::8]) for k in range(8))
    schema = Schema((Attribute("area", areas), Attribute("sex", ("f", "m"))), (Recode("region", "area", regions),))
    table = FlatTable.of(schema, [(["area", "sex"], 3.0), (["area"], 2.0)])
    rng = np.random.default_rng(1)
    fine, whole = rng.integers(0, 100, 10_000).astype(float), rng.integers(0, 200, 5_000).astype(float)
    added = fine.reshape(5_000, 2).sum(axis=1)
    best = (added / 6 + whole / 2) / (1 / 6 + 1 / 2)
    np.testing.assert_allclose(table.estimates([fine, whole], ["area"]), best, rtol=1e-12)
    np.testing.assert_allclose(table.variances(["area"]), 1 / (1 / 6 + 1 / 2), rtol=1e-12)
    some = table.estimates([fine, whole], ["region"], {"area": areas[:100]})
    np.testing.assert_allclose(some, [best[:100][k::8].sum() for k in range(8)], rtol=1e-12)
    np.testing.assert_allclose(table.estimates([fine, whole]), [best.sum()], rtol=1e-12)
    pairs = np.array([[0, 0], [1, 0], [0, 7]])  # of areas and regions: an area is related to its own region only
    found = table.covariances(["area"], None, ["region"], None, pairs=pairs)
    np.testing.assert_allclose(found, [1.5, 0, 0], atol=1e-9)
    fourth = (np.arange(5_000) == 3).astype(float)
    np.testing.assert_allclose(table.weights(["area"], None, fourth)[1], 0.75 * fourth, atol=1e-12)


@pytest.mark.parametrize("wide", [0, 1000])
def test_several_rows_of_coefficients_have_rows_of_weights(monkeypatch, wide):
    monkeypatch.setattr(one_table, "WIDE", wide)
    table = FlatTable.of(test_one_table.SCHEMA, [(["sex", "age"], 3.0), (["adult"], 2.0), ([], 1.0)])
    rows = np.random.default_rng(2).normal(size=(5, 4))
    together = table.weights(["sex", "adult"], None, rows)
    for number, row in enumerate(rows):
        for many, one in zip(together, table.weights(["sex", "adult"], None, row), strict=True):
            np.testing.assert_allclose(many[number], one, rtol=1e-12, atol=1e-14)
