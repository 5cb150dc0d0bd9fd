"""Estimates from noisy margins of one table are those of dense generalised least squares, whatever the recodes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dense_table import DenseTable, random_margin, random_schema, random_where, rows

from repeats import some_or
from stirred.errors import StirredError
from stirred.estimates.error_laws import ErrorLaw
from stirred.margins.one_table import FlatTable
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.topdown.estimating.ratios import noise_terms

SCHEMA = Schema(
    (Attribute("sex", ("f", "m")), Attribute("age", ("0", "1", "18", "19", "20"))),
    (Recode("adult", "age", (("no", ("0", "1")), ("yes", ("18", "19", "20")))),),
)


def random_case(seed):
    """A table, perhaps with factors of strata, and the same table dense."""
    rng = np.random.default_rng(seed)
    schema = random_schema(rng)
    spread = rng.choice([0.5, 1.5, 3.0])
    measured = [(random_margin(schema, rng), 10 ** rng.uniform(-spread, spread)) for _ in range(rng.integers(1, 5))]
    if rng.random() < 0.5:
        measured.append(([one.name for one in schema.attributes], 10 ** rng.uniform(0, spread)))
    stratum, factors = None, None
    if rng.random() < 0.5:
        stratum = schema.attributes[rng.integers(len(schema.attributes))].name
        scale = rng.choice([0.0, 0.3, 1.0])  # equal factors, and different ones
        factors = {value: 2.0 * 10 ** rng.uniform(-scale, scale) for value in schema.values(stratum)}
    table = FlatTable.of(schema, measured, stratum=stratum, factors=factors)
    return rng, schema, table, DenseTable(schema, measured, stratum, factors)


@pytest.mark.repeats
def test_estimates_variances_and_weights_are_those_of_dense_least_squares():
    refused = partly = answered = 0
    for seed in range(some_or(100, 900)):
        rng, schema, table, dense = random_case(seed)
        by, where = random_margin(schema, rng), random_where(schema, rng)
        forms = rows(schema, by, where)
        known = dense.estimable(forms)
        if not known.any():
            refused += 1
            for ask in (table.variances, table.weights if len(forms) == 1 else table.covariances):
                with pytest.raises(StirredError, match="No measurement of 'table' determines this"):
                    ask(by, where)
            continue
        partly, answered = partly + (not known.all()), answered + 1
        expected = np.where(known, np.diagonal(dense.covariances(forms, forms)), np.inf)
        np.testing.assert_allclose(table.variances(by, where), expected, rtol=1e-7, atol=1e-12 * dense.noise.max())
        values = rng.integers(-50, 50, len(dense.matrix)).astype(float)
        parts = np.split(values, np.cumsum(dense.sizes)[:-1])
        found = table.estimates(parts, by, where)
        # Errors of rounding grow with the values, measured in the precision of each.
        scale = 1e-7 * (1 + np.abs(dense.weights(forms)).sum(axis=1) * 50)
        wanted = np.where(known, dense.weights(forms) @ values, np.nan)
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.all(np.abs(found - wanted)[known] <= scale[known])
        coefficients = np.where(known, rng.integers(-2, 3, len(forms)), 0)
        weights = np.concatenate(table.weights(by, where, coefficients))
        np.testing.assert_allclose(weights, dense.weights(coefficients @ forms), rtol=0, atol=1e-7)
        assert np.isclose(weights @ values, np.where(known, coefficients * wanted, 0).sum(), rtol=1e-5, atol=1e-4)
    assert refused > answered / 20 and partly > answered / 50 and answered > some_or(50, 150)


@pytest.mark.repeats
def test_covariances_of_groups_of_two_margins():
    checked = 0
    for seed in range(some_or(50, 450)):
        rng, schema, table, dense = random_case(5_000 + seed)
        questions = [(random_margin(schema, rng), random_where(schema, rng)) for _ in range(2)]
        one, other = (rows(schema, *question) for question in questions)
        known = dense.estimable(one), dense.estimable(other)
        if not (known[0].any() and known[1].any()):
            continue
        checked += 1
        expected = np.where(known[0][:, None] & known[1], dense.covariances(one, other), np.nan)
        found = table.covariances(*questions[0], *questions[1])
        atol = 1e-8 * np.sqrt(dense.covariances(one, one).max() * dense.covariances(other, other).max())
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=atol + 1e-12)
        pairs = np.stack([rng.integers(0, len(one), 7), rng.integers(0, len(other), 7)], axis=1)
        some = table.covariances(*questions[0], *questions[1], pairs=pairs)
        np.testing.assert_array_equal(some, found[pairs[:, 0], pairs[:, 1]])
        own = table.covariances(*questions[0])
        np.testing.assert_allclose(
            np.diagonal(own)[known[0]], table.variances(*questions[0])[known[0]], rtol=1e-6, atol=atol + 1e-12
        )
    assert checked > some_or(20, 60)


def test_two_margins_have_the_closed_form_of_weighted_means():
    # The total is known from its own measurement, variance 2, and as a sum of ten cells, variance 10 * 3.
    table = FlatTable.of(SCHEMA, [(["sex", "age"], Fraction(3)), ([], 2)])
    assert np.isclose(table.variances()[0], 1 / (1 / 30 + 1 / 2))
    cells, total = table.weights()
    np.testing.assert_allclose(cells, 2 / 32)
    np.testing.assert_allclose(total, 30 / 32)


def test_a_margin_that_is_measured_alone_is_a_plain_sum():
    table = FlatTable.of(SCHEMA, [(["age"], 4)])
    np.testing.assert_allclose(table.variances(["adult"]), [8, 12])
    np.testing.assert_allclose(table.estimates([[1, 2, 3, 4, 5]], ["adult"]), [3, 12])
    terms = noise_terms([(2.0, table.weights((), {"adult": ["no"]})[0])], "geometric")
    assert [(one.weight, one.times, one.noise) for one in terms] == [(1.0, 2, "geometric")]
    assert ErrorLaw.of(terms).within(100) > 0.999


def test_factors_of_strata_are_weighted_within_each_stratum():
    # In each stratum the count is known directly, and as the sum of two cells of the finer margin.
    table = FlatTable.of(
        SCHEMA, [(["sex", "adult"], 1), (["sex"], 6)], stratum="sex", factors={"f": 1, "m": Fraction(3)}
    )
    np.testing.assert_allclose(table.variances(["sex"]), np.array([1, 9]) / (1 / 2 + 1 / 6))
    np.testing.assert_allclose(table.measured[1].variances, [6, 54])
    np.testing.assert_allclose(table.variances(), 10 / (1 / 2 + 1 / 6))


def test_several_rows_of_values_are_answered_at_once():
    table = FlatTable.of(SCHEMA, [(["sex", "age"], 3), (["adult"], 2)])
    rng = np.random.default_rng(3)
    values = [rng.integers(0, 9, (4, 10)), rng.integers(0, 9, (4, 2))]
    found = table.estimates(values, ["adult", "sex"])
    assert found.shape == (4, 4)
    for row in range(4):
        np.testing.assert_allclose(found[row], table.estimates([one[row] for one in values], ["adult", "sex"]))


def test_exact_counts_are_returned_unchanged():
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 1000, SCHEMA.cells)
    asked = [["sex", "age"], ["adult"], ["age"], []]
    values = [rows(SCHEMA, by) @ counts for by in asked]
    table = FlatTable.of(SCHEMA, [(by, 1 + at) for at, by in enumerate(asked)])
    for by in (*asked, ["adult", "sex"]):
        np.testing.assert_allclose(table.estimates(values, by), rows(SCHEMA, by) @ counts)


def test_a_hundred_thousand_cells_with_recodes():
    # The blocks are small, so nothing here has the size of a matrix over the cells.
    ages = tuple(str(age) for age in range(100))
    decades = tuple((f"{at}0s", ages[10 * at : 10 * at + 10]) for at in range(10))
    schema = Schema(
        (
            Attribute("age", ages),
            Attribute("region", tuple(f"r{at}" for at in range(50))),
            Attribute("work", tuple(f"w{at}" for at in range(20))),
        ),
        (Recode("decade", "age", decades),),
    )
    factors = {f"r{at}": 1 + at / 7 for at in range(50)}
    measured = [(["age", "region", "work"], 40), (["decade", "region"], 3), (["work"], 2), (["age"], 5)]
    for more in ({}, {"stratum": "region", "factors": factors}):
        table = FlatTable.of(schema, measured, **more)
        every = table.variances(["age", "region", "work"])
        alone = table.measured[0].variances
        assert every.shape == (100_000,) and np.all(every < alone) and np.all(every > 0.5 * alone)
        weights = table.weights(["decade"], None, np.eye(10)[4])
        implied = sum((one**2 * some.variances).sum() for one, some in zip(weights, table.measured, strict=True))
        assert np.isclose(implied, table.variances(["decade"])[4])
        values = [np.zeros(one.margin.groups) for one in table.measured]
        values[1][:] = 1
        assert table.estimates(values, ["age", "region", "work"]).shape == (100_000,)


def test_what_does_not_fit_is_refused(monkeypatch):
    def refused(kind, words, ask):
        with pytest.raises(StirredError, match=words) as refusal:
            ask()
        assert refusal.value.kind == kind

    table = FlatTable.of(SCHEMA, [(["sex", "age"], 3), (["adult"], 2)])
    refused("margin-plan", "In a plan this must hold: The attribute 'a' must list", lambda: Attribute("a", ("x", "x")))
    refused("measured-margin", "at least one", lambda: FlatTable.of(SCHEMA, []))
    for variance in (0, -1, float("inf"), float("nan")):
        refused("measured-margin", "The total must have a positive", lambda v=variance: FlatTable.of(SCHEMA, [([], v)]))
    refused("measured-margin", "within a factor of 1e.10", lambda: FlatTable.of(SCHEMA, [([], 1), ([], 1e11)]))
    refused("unknown-choice", "'colour'", lambda: FlatTable.of(SCHEMA, [(["colour"], 1)]))
    refused("unknown-choice", "'colour'", lambda: table.variances(["colour"]))
    refused("estimate-question", "once", lambda: table.variances(["sex", "sex"]))
    refused("measured-margin", "all 2 margins", lambda: table.estimates([[1] * 10]))
    refused("measured-margin", "'adult' must have 2 values", lambda: table.estimates([[1] * 10, [1]]))
    refused("measured-margin", "same number of rows", lambda: table.estimates([[[1] * 10] * 2, [[1, 2]]]))
    refused("estimate-question", "must be 2 numbers", lambda: table.weights(["sex"]))
    only = FlatTable.of(SCHEMA, [(["sex"], 1)])
    refused("not-estimable", "determines this margin", lambda: only.estimates([[1, 2]], ["age"]))
    refused("not-estimable", "determines this sum", lambda: only.weights((), {"age": ["0"]}))
    strata = {"stratum": "sex", "factors": {"f": 1, "m": 2}}
    for wrong, words in (
        ({"factors": None}, "need both"),
        ({"factors": {"f": 1}}, "each value of 'sex'"),
        ({"factors": {"f": 1, "m": 0}}, "positive"),
        ({"stratum": "adult"}, "not a recode"),
    ):
        refused("measured-margin", words, lambda w=wrong: FlatTable.of(SCHEMA, [(["sex"], 1)], **{**strata, **w}))
    monkeypatch.setattr("stirred.margins.one_table.MOST_PAIRS", 3)
    refused("estimate-question", "at most 3 pairs", lambda: table.covariances(["sex"]))
    monkeypatch.setattr("stirred.margins.one_table.LARGEST", 1)
    refused("estimate-too-wide", "make 2 numbers depend", lambda: FlatTable.of(SCHEMA, [(["adult"], 1)]))
