"""Queries by recodes over several attributes and by overlapping ones: estimates as dense least squares has them, fits
that keep everything, and the noise that their sensitivity asks for."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from gls_oracle import Dense, geography, people, released

import stirred
from stirred.errors import StirredError
from stirred.margins.margin_blocks import Margin
from stirred.topdown.audit_pairs import audit_pairs
from stirred.topdown.checking.plan_check import check, concern_powers
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import read_spine
from stirred.topdown.data.histograms import marginal_by
from stirred.topdown.drawing import release
from stirred.topdown.estimating.precision import Design
from stirred.topdown.fitting import subtrees
from stirred.topdown.fitting.subtrees import Subtrees, whole_design
from stirred.topdown.fitting.table_fit import BY_LEVEL, LEAST_SQUARES, fit_table, way_of_fit
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TableSection
from stirred.topdown.verifying import tabulate, verify

ATTRIBUTES = {"hispanic": ["no", "yes"], "sex": ["f", "m"], "race": ["w", "b", "o", "wb", "wbo"]}
ORIGIN = {
    "name": "origin", "of": ["race", "hispanic"],
    "groups": {
        "Hispanic": [{"hispanic": ["yes"]}],
        "white alone": [{"race": ["w"], "hispanic": ["no"]}],
        "other": [{"race": ["b", "o"], "hispanic": ["no"]}, {"race": ["wb", "wbo"], "hispanic": ["no"]}],
    },
}  # fmt: skip
ANY = {
    "name": "any", "of": "race", "overlapping": True,
    "groups": {"W": ["w", "wb", "wbo"], "B": ["b", "wb", "wbo"], "O": ["o", "wbo"]},
}  # fmt: skip
EACH = ["hispanic", "sex", "race"]
QUERIES = [[], ["origin"], ["any", "sex"], EACH]


def plan_with(queries=QUERIES, recodes=(ORIGIN, ANY), rho="1/2", root=None, **more):
    levels = (*((root,) if root else ()), "state", "county", "town")
    share = Fraction(1, len(queries))
    table = {
        "name": "persons", "unit": "person", "rho": rho,
        "level_shares": dict.fromkeys(levels, Fraction(1, len(levels))),
        "attributes": [{"name": name, "values": values} for name, values in ATTRIBUTES.items()],
        "recodes": list(recodes), "queries": [{"by": by, "shares": share} for by in queries],
    }  # fmt: skip
    spine = {"levels": ["state", "county", "town"], **({"root": root} if root else {})}
    return TopDownPlan(spine=spine, tables=[table], **more)


PLACES = geography([[2, 1, 3], [2]])
PERSONS = people(PLACES, ATTRIBUTES, 900, np.random.default_rng(3))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    chosen = plan_with(invariants=[{"table": "persons", "level": "state", "by": ["sex"]}])
    counted, opened = released(tmp_path_factory.mktemp("recodes"), chosen, PLACES, PERSONS, seed=7)
    return counted, opened, Dense(counted, opened)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("by", "where"),
    [
        (("origin",), {}),
        (("any",), {}),
        (("any", "sex"), {}),
        (("sex", "any", "hispanic"), {}),
        (("any", "origin"), {}),
        (("race",), {"origin": ["other"]}),
        (("sex",), {"any": ["W", "O"]}),
        (("any",), {"race": ["wb", "w"]}),
        ((), {}),
    ],
)
def test_estimates_and_variances_are_those_of_dense_least_squares(small, by, where):
    counted, opened, dense = small
    for level, name in enumerate(counted.spine.levels):
        found = opened.estimate("persons", by, where, level=name)
        values, variances, _ = dense.answer(dense.forms(level, by, where))
        known = found.variances.ravel() > 0  # no other is known but by being impossible or fixed
        np.testing.assert_allclose(found.variances.ravel()[known], variances[known], rtol=1e-7)
        np.testing.assert_allclose(found.values.ravel()[known], values[known], rtol=1e-7, atol=1e-7)
        assert known.any() or not by


def test_unions_and_shares_by_overlapping_groups_are_those_of_dense_least_squares(small):
    counted, opened, dense = small
    town, other = counted.spine.names[2][0].as_py(), counted.spine.names[2][4].as_py()
    found = opened.union("persons", ("any",), places=[("town", town), ("town", other)])
    forms = dense.forms(2, ("any",), {}).reshape(counted.spine.units(2), 3, -1)[[0, 4]].sum(axis=0)
    values, variances, _ = dense.answer(forms)
    np.testing.assert_allclose(found.values.ravel(), values, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.variances.ravel(), variances, rtol=1e-7)
    # The share of those who are in a group among all, though groups do not add up to all; also of some races only.
    for where in ({}, {"race": ["w", "wb"]}):
        answers = opened.compare("persons", (), where, level="state", share="any")
        whole = dense.forms(0, (), where)
        parts = dense.forms(0, ("any",), where).reshape(2, 3, -1)
        values = np.array([[(part @ dense.mean) / (one @ dense.mean) for part in some] for one, some in
                           zip(whole, parts, strict=True)])  # fmt: skip
        shown = np.asarray(answers.values).reshape(2, 3)
        known = ~np.isnan(shown)
        np.testing.assert_allclose(shown[known], values[known], rtol=1e-6)
        errors = []
        for one, some in zip(whole, parts, strict=True):
            for part in some:
                ratio = (part @ dense.mean) / (one @ dense.mean)
                weights = ((part - ratio * one) / (one @ dense.mean)) @ dense.gain
                errors.append(float(np.sqrt((weights**2 * dense.variances).sum())))
        np.testing.assert_allclose(
            np.asarray(answers.standard_errors).ravel()[known.ravel()], np.array(errors)[known.ravel()], rtol=1e-6
        )


def test_subtrees_at_the_root_are_dense_least_squares(small, monkeypatch):
    monkeypatch.setattr(subtrees, "WORTH_READING", 0.0)
    counted, opened, dense = small
    table = counted.plan.table("persons")
    design = whole_design(counted.plan, counted.spine, table)
    up = Subtrees.of(table, design, opened.exact, opened.measurements)
    expected = (dense.rows(0, EACH) @ dense.mean).reshape(2, -1)
    np.testing.assert_allclose(up.values[0], expected, atol=1e-6)
    whole, _ = up.measured(0, slice(0, 2), ())
    overlapping = [one for names, one in whole.items() if names[:2] == ("any", "sex")]
    assert len(overlapping) == 3  # the three groups overlap two by two
    assert all(one.groups.min() == -1 for one in overlapping)
    assert way_of_fit(counted.plan, counted.spine, table) == LEAST_SQUARES


@pytest.mark.parametrize("fit", [LEAST_SQUARES, BY_LEVEL])
@pytest.mark.parametrize("queries", [QUERIES, [["any"]], [[], ["any", "origin"]]])
def test_without_noise_all_that_was_asked_comes_back(tmp_path, fit, queries):
    chosen = plan_with(queries, rho=10**9, fit=fit)
    counted, opened = released(tmp_path, chosen, PLACES, PERSONS)
    table = chosen.table("persons")
    leaves, _ = fit_table(Known(chosen, counted.spine, ()), opened.measurements, table)
    for by in queries:
        truth = marginal_by(counted.leaves["persons"], table.schema_of, by)
        # Where no query separates all cells, each cell is rounded by itself, and a group of several is off by a few.
        assert np.abs(marginal_by(leaves, table.schema_of, by) - truth).max() <= (0 if EACH in queries else 6)


def test_the_noise_of_overlapping_groups_has_the_variance_of_their_sensitivity(tmp_path):
    chosen = plan_with(root="nation")
    _, opened = released(tmp_path, chosen, PLACES, PERSONS)
    variances = {
        (one.level, one.query): Fraction(one.variance) * Fraction(one.rho) for one in opened.measurements.entries
    }
    # A record of race wbo is in three groups: it leaves three and enters three in another place. In the nation the
    # cells that differ most are wbo and none but one of its groups, of the other sex: all four groups.
    assert variances["town", "any*sex"] == variances["state", "any*sex"] == 3
    assert variances["nation", "any*sex"] == Fraction(6, 2)
    assert variances["town", "origin"] == 1
    assert chosen.rho == Fraction(1, 2)
    allocation = chosen.allocation()
    assert allocation.moved("town", "any*sex") == 6 and allocation.moved("town", "origin") == 2
    assert allocation.variance("town", "any*sex", rounded=True) == 3 * 32
    assert allocation.about("race") == ("origin", "any*sex", "hispanic*sex*race")


def test_in_one_place_only_what_two_cells_do_not_share_is_paid_for(tmp_path):
    chosen = plan_with([["any"], EACH], root="nation")
    _, opened = released(tmp_path, chosen, PLACES, PERSONS)
    found = {
        one.level: Fraction(one.variance) * Fraction(one.rho)
        for one in opened.measurements.entries
        if one.query == "any"
    }
    assert found == {"nation": Fraction(3, 2), "state": 3, "county": 3, "town": 3}  # o and wb share no group


def test_a_release_with_such_recodes_is_checked_written_verified_and_tabulated(tmp_path):
    publish = [{"table": "persons", "level": "county", "by": ["any"]}]
    chosen = plan_with(publish=publish)
    data = {"geography": PLACES, "persons": PERSONS}
    text = str(check(chosen, data))
    assert "any*sex" in text
    folder = tmp_path / "out"
    release(chosen, data, out=folder)
    assert all(verdict.holds for verdict in verify(folder))
    rows = pl.from_arrow(tabulate(folder, ["county", "any"]))
    records = pl.read_parquet(folder / "persons.parquet")
    expected = records.filter(pl.col("race").cast(pl.String).str.contains("b")).group_by("county").len()
    found = rows.filter(pl.col("any") == "B").select("county", pl.col(rows.columns[-1]).alias("len"))
    assert dict(found.cast({"county": pl.String}).iter_rows()) == dict(expected.cast({"county": pl.String}).iter_rows())
    both = pl.from_arrow(tabulate(folder, ["origin", "sex"]))
    assert both[both.columns[-1]].sum() == len(records)
    assert audit_pairs(chosen)


def test_two_persons_who_exchange_a_value_may_move_the_groups_of_a_recode_alike():
    """Two who are unlike in everything else can leave and enter the same groups of a coarse query, which then moves by
    two in each: four times the loss of one. What is said of the query must not be below that."""
    invariants = [{"table": "persons", "level": "state", "by": ["race"]}]
    chosen = plan_with([["origin"], ["any"], EACH], invariants=invariants)
    race = next(one for one in concern_powers(chosen) if one.concern == "race")
    assert race.between == "two persons changed"
    each = Fraction(1, 2) / 9  # three queries at three levels
    # Origin and any race in county and town can move alike; cells of persons who are unlike in sex cannot.
    assert race.rho >= float(2 * 2 * 4 * each + 2 * 2 * each) * (1 - 1e-12)


@pytest.mark.parametrize("root", [None, "nation"])
def test_shares_for_an_aim_count_the_larger_noise_of_overlapping_groups(root):
    chosen = plan_with([["any"], EACH], root=root)
    found = stirred.calibrate(chosen, ["error of any at county <= 4"], {"geography": PLACES})
    spine = read_spine(found.plan, PLACES)
    design = Design.of(found.plan, spine, "persons", ("any",))
    error = design.variances(spine.levels.index("county")).max() ** 0.5
    assert 3.9 < error <= 4 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"invariants": [{"table": "persons", "level": "state", "by": ["origin"]}]}, "An invariant by 'origin'"),
        ({"invariants": [{"table": "persons", "level": "state", "by": ["any"]}]}, "An invariant by 'any'"),
        ({"recodes": [{"name": "r", "of": ["race", "sex"], "groups": {"g": ["w"]}}], "queries": [EACH]}, "conditions"),
        ({"recodes": [{**ANY, "overlapping": False}], "queries": [EACH]}, "exactly one group"),
        ({"recodes": [{**ORIGIN, "groups": {"g": [{"hispanic": ["maybe"]}]}}], "queries": [EACH]}, "maybe"),
    ],
)
def test_plans_that_cannot_be_are_refused_in_plain_words(changed, words):
    with pytest.raises(StirredError) as found:
        plan_with(**changed)
    assert words in str(found.value)


def test_the_recodes_of_the_documentation_are_read():
    text = (Path(__file__).parents[2] / "docs" / "topdown.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(recodes = .*?)```", text, re.S).group(1)
    races = ("white", "black", "white and black")
    table = TableSection(
        name="persons", unit="person",
        attributes=[{"name": "race", "values": races}, {"name": "hispanic", "values": ("no", "yes")}],
        **tomllib.loads(block),
    )  # fmt: skip
    assert table.schema_of.most_moved(("any_race",)) == 4 and table.schema_of.most_moved(("any_race",), True) == 2
    assert table.schema_of.groups(("origin",)).tolist() == [1, 0, 2, 0, 2, 0]


def test_an_asked_group_is_a_plain_sum_only_of_groups_that_do_not_overlap():
    schema = plan_with().table("persons").schema_of
    whole, groups = Margin.of(schema, ()), Margin.of(schema, ("any",))
    assert whole.sums_of(groups).tolist() == [0]
    assert Margin.of(schema, ("origin",)).sums_of(Margin.of(schema, EACH)).sum() == 20
