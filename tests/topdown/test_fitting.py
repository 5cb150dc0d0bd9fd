"""The whole fit: exact without noise, and with any noise integers that keep everything (property-based)."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from census import fields, plan, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import some_or
from stirred.errors import StirredError
from stirred.noise import SeededSource
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import added_up, marginal
from stirred.topdown.fitting.one_level import round_level
from stirred.topdown.fitting.rounding_kernel import IMPOSSIBLE
from stirred.topdown.fitting.table_fit import fit_table, two_passes
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.plan.fields import TopDownPlan
from strategies import Draws


def run(folder, chosen, data, seed=1):
    counted = count_tables(chosen, data)
    measure(counted, folder, SeededSource(seed))
    measurements, known = Measurements(folder), Known.of(counted)
    return counted, {table.name: fit_table(known, measurements, table) for table in chosen.released}


def require_sound(counted, fitted):
    """Integers, nonnegative, additive, invariants and zeros exact: everything the plan declares."""
    chosen, known = counted.plan, Known.of(counted)
    for name, (leaves, reports) in fitted.items():
        table = chosen.table(name)
        assert leaves.counts.dtype == np.int64 and bool(np.all(leaves.counts > 0))
        for level in range(len(counted.spine.levels)):
            found = added_up(leaves, counted.spine.first_leaf(level))
            here = known.kept(table, level)
            for bound in here.bounds:
                sums = marginal(found, bound.groups, bound.lower.shape[1])
                assert bool(np.all(bound.lower <= sums)) and bool(np.all(sums <= bound.upper))
            dense = found.dense(table.schema_of.cells)
            for mask in here.allowed:
                assert bool(np.all(mask.allowed[:, mask.groups] | (dense == 0)))
        for zero in table.zeros:
            assert not table.schema_of.where(zero)[leaves.cells].any()
        assert [report.level for report in reports] == list(counted.spine.levels)


@pytest.mark.parametrize("passes", ["auto", "one", "two"])
def test_without_noise_the_input_comes_back_exactly(tmp_path, passes):
    # A variance of 10^-6 rounds to no noise at all.
    counted, fitted = run(tmp_path, plan(10**9, passes=passes), tables())
    truth, found = counted.leaves["persons"], fitted["persons"][0]
    assert np.array_equal(truth.starts, found.starts)
    assert np.array_equal(truth.cells, found.cells) and np.array_equal(truth.counts, found.counts)


@pytest.mark.repeats
@settings(max_examples=some_or(25, 40), deadline=None)
@given(
    data=st.data(),
    persons=st.integers(1, 100),
    rho=st.sampled_from(["1/1000", "1/10", "1", "20"]),
    passes=st.sampled_from(["auto", "one", "two"]),
)
def test_with_any_noise_everything_declared_is_kept(tmp_path_factory, data, persons, rho, passes):
    census = tables(persons, rng=Draws(data))
    counted, fitted = run(tmp_path_factory.mktemp("work"), plan(rho, passes=passes), census, persons)
    require_sound(counted, fitted)


def test_a_fit_can_be_repeated(tmp_path):
    chosen, data = plan("1/2"), tables()
    counted = count_tables(chosen, data)
    measure(counted, tmp_path, SeededSource(3))
    known, persons = Known.of(counted), chosen.table("persons")
    first, second = (fit_table(known, Measurements(tmp_path), persons)[0] for _ in range(2))
    assert np.array_equal(first.cells, second.cells) and np.array_equal(first.counts, second.counts)


def test_parts_of_any_size_give_the_same_fit(tmp_path, monkeypatch):
    chosen, data = plan("1/2"), tables()
    whole = run(tmp_path, chosen, data)[1]["persons"][0]
    counted = count_tables(chosen, data)
    monkeypatch.setattr("stirred.topdown.fitting.subtrees.CHUNK", 1)
    known = Known.of(counted)
    parted = fit_table(known, Measurements(tmp_path), chosen.table("persons"))[0]
    assert np.array_equal(whole.cells, parted.cells) and np.array_equal(whole.counts, parted.counts)


def test_totals_come_first_where_they_are_measured_well():
    persons = plan().table("persons")
    assert [two_passes(plan(), persons, level) for level in ("state", "county", "town")] == [True, True, False]
    assert not two_passes(plan(passes="one"), persons, "state") and two_passes(plan(passes="two"), persons, "town")
    dwellings = plan().table("dwellings")
    assert not two_passes(plan(passes="two"), dwellings, "state")  # its total is not measured


# -- what it costs, and what happens when it does not work out ---------------------------------------------------


def test_one_changed_record_costs_what_the_plan_says():
    # Two neighbours: the squared distance of all answers, each weighted by rho, over two, is at most the budget.
    chosen = plan()
    data = tables()
    other = copy.deepcopy(data)
    row = data["persons"].row(0, named=True)
    changed = {"town": "b2" if row["town"] != "b2" else "a1", "kind": "household", "adult": "no", "colour": "black"}
    other["persons"] = data["persons"].with_row_index().with_columns(
        **{name: _at_first(name, value) for name, value in changed.items()}
    ).drop("index")  # fmt: skip
    first, second = (count_tables(chosen, one) for one in (data, other))
    persons, cost, expected = chosen.table("persons"), Fraction(0), Fraction(0)
    for level, name in enumerate(first.spine.levels):
        for query in persons.queries:
            groups, number = persons.schema_of.groups(query.by), persons.schema_of.number_of_groups(query.by)
            before, after = (marginal(one.histograms("persons", level), groups, number) for one in (first, second))
            cost += persons.rho_of(name, query) * Fraction(int(((before - after) ** 2).sum()), 2)
            told = [
                ({"state": "s", "county": one["town"][0], "town": one["town"]}[name],
                 *(one["adult" if attribute == "minor" else attribute] for attribute in query.by))
                for one in (row, changed)
            ]  # fmt: skip
            expected += persons.rho_of(name, query) * (told[0] != told[1])
    assert cost == expected <= persons.rho


def _at_first(name, value):
    import polars as pl

    return pl.when(pl.col("index") == 0).then(pl.lit(value)).otherwise(pl.col(name))


def test_crossing_margins_are_refused(tmp_path):
    broken = fields()
    broken["invariants"].append({"table": "persons", "level": "town", "by": ["colour"]})
    broken["invariants"].append({"table": "persons", "level": "town", "by": ["adult"]})
    with pytest.raises(StirredError, match="nested"):
        run(tmp_path, TopDownPlan(**broken), tables())


def test_totals_that_no_table_keeps_are_given_up_and_reported_and_nothing_else_is(tmp_path, monkeypatch):
    # Rounding is told to fail wherever the totals of a first pass are fixed.
    def failing(problem, fit, chain):
        children, report = round_level(problem, fit, chain)
        fixed = problem.cells == 24 and len(problem.bounds) and (problem.bounds[0].groups == 0).all()
        known = fixed and len(problem.measured) == 2  # the total is not among the measured
        return children, replace(report, stages=np.full_like(report.stages, IMPOSSIBLE)) if known else report

    monkeypatch.setattr("stirred.topdown.fitting.table_fit.round_level", failing)
    counted, fitted = run(tmp_path, plan("1/10"), tables())
    require_sound(counted, fitted)
    fallbacks = [one for report in fitted["persons"][1] for one in report.fallbacks]
    assert ("s", "no table keeps the totals of the first pass; fitted in one pass") in fallbacks

    def hopeless(problem, fit, chain):
        children, report = round_level(problem, fit, chain)
        return children, replace(report, stages=np.full_like(report.stages, IMPOSSIBLE))

    monkeypatch.setattr("stirred.topdown.fitting.table_fit.round_level", hopeless)
    with pytest.raises(StirredError, match=r"At level 'state' no table .* below 1 units \(s\)"):
        run(tmp_path, plan("1/10"), tables())
