"""Estimates of counts that the plan and the published counts rule out, and intervals that end at zero."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from census import KINDS, plan, tables

import stirred
from stirred.errors import StirredError
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import marginal
from stirred.topdown.drawing import release
from stirred.topdown.estimating.questions import MeasuredRelease

TOWNS = ["a1", "a2", "b1", "b2", "b3"]


@pytest.fixture
def made(tmp_path):
    release(plan("1/20"), tables(), out=tmp_path / "out")
    return tmp_path / "out"


def possible(town: str, kind: str, adult: str) -> bool:
    """By hand: dwellings are in a1, b1 and b2, a college in a2, a nursing home in b1; nobody in the latter is young."""
    where = {"household": ("a1", "b1", "b2"), "college": ("a2",), "nursing": ("b1",)}[kind]
    return town in where and (kind, adult) != ("nursing", "no")


def test_a_place_without_living_quarters_has_nobody_in_it_for_certain(made):
    found = stirred.estimate(made, level="town")
    assert found.places == tuple(TOWNS)
    lower, upper = found.interval(0.9)
    assert (found.values[4, 0], lower[4, 0], upper[4, 0], found.variances[4, 0]) == (0, 0, 0, 0)
    assert (found.interval_kinds[:, 0] == "known").tolist() == [False] * 4 + [True]
    assert (found.variances[:4] > 0).all() and found.coverage()[4, 0] == 1
    assert "counts that the plan and the published counts rule out are 0" in found.exact
    whole = stirred.estimate(made, places=[("town", "b3")])
    assert whole.values.tolist() == [[0.0]] and whole.variances.tolist() == [[0.0]]
    both = stirred.estimate(made, places=[("town", "b3"), ("town", "b2")])
    assert both.variances[0, 0] > 0


@pytest.mark.parametrize("by", [("kind",), ("kind", "adult"), ("adult", "kind"), ("minor",), ("colour",)])
def test_counts_are_zero_where_no_cell_of_theirs_can_occur_and_nowhere_else(made, by):
    found = stirred.estimate(made, by=by, level="town")
    for place, town in enumerate(TOWNS):
        for group, label in enumerate(found.labels):
            given = dict(zip(by, label, strict=True))
            adults = [given["adult"]] if "adult" in given else ["no", "yes"]
            if "minor" in given:
                adults = ["no" if given["minor"] == "minors" else "yes"]
            kinds = [given["kind"]] if "kind" in given else KINDS
            open_there = any(possible(town, kind, adult) for kind, adult in itertools.product(kinds, adults))
            assert (found.variances[place, group] > 0) == open_there, (town, label)
            assert open_there or found.values[place, group] == 0


def test_above_the_finest_level_and_with_conditions(made):
    counties = stirred.estimate(made, by=["kind"], level="county")
    assert (counties.variances == 0).tolist() == [[False, True, False], [False, False, True]]
    young = stirred.estimate(made, where={"kind": ["nursing"], "adult": ["no"]}, level="state")
    assert young.values.tolist() == [[0.0]] and young.variances.tolist() == [[0.0]]


def test_without_the_values_of_invariants_only_the_plans_own_zeros_are_known(made):
    opened = MeasuredRelease.open(made, exact=[])
    assert (opened.estimate("persons", level="town").variances > 0).all()
    found = opened.estimate("persons", ["kind", "adult"], level="town")
    never = [label == ("nursing", "no") for label in found.labels]
    assert np.array_equal(found.variances == 0, np.tile(never, (5, 1)))


@pytest.mark.parametrize("seed", range(4))
def test_true_counts_are_never_ruled_out(seed):
    counted = count_tables(plan(), tables(seed=seed))
    known = Known.as_far_as_told(counted.plan, counted.spine, Known.of(counted).exact)
    table = plan().table("persons")
    schema = table.schema_of
    for level, by in itertools.product(range(3), [(), ("kind",), ("kind", "adult", "colour")]):
        groups, number = schema.groups(by), schema.number_of_groups(by)
        empty = known.impossible_groups(table, level, groups, number)
        truth = marginal(counted.histograms("persons", level), groups, number)
        assert empty.any() or (level < 2 and len(by) < 3)
        assert not truth[empty].any()


def test_intervals_that_end_at_zero_contain_every_count_that_they_contained(made):
    found = stirred.estimate(made, by=["kind", "adult", "colour"], level="town", nonnegative=True)
    moved = replace(found, values=np.linspace(-60, 60, found.values.size).reshape(found.values.shape))
    plain = replace(moved, nonnegative=False)
    (low, high), (from_zero, to) = plain.interval(0.9), moved.interval(0.9)
    assert (low < 0).any() and (high < 0).any() and from_zero.min() == 0 and to.min() == 0
    for count in range(60):
        assert not ((low <= count) & (count <= high) & ~((from_zero <= count) & (count <= to))).any()
    assert np.array_equal(from_zero[low >= 0], low[low >= 0]) and np.array_equal(to[high >= 0], high[high >= 0])
    assert np.array_equal(plain.coverage(), moved.coverage())  # stated as before: it is a lower bound
    assert any("loses no coverage" in line for line in moved.kind_lines())
    assert '"intervals_moved_to_0": true' in moved.to_json() and "moved" not in plain.to_json()
    with pytest.raises(StirredError, match="of counts only"):
        stirred.estimate(made, by=["kind"], level="town", share="kind", nonnegative=True)
