"""Expected errors of a plan: the median over units of the largest cell, whatever part of the tree is held at a time."""

from __future__ import annotations

import math

import census
import numpy as np
import polars as pl
import pytest
from random_census import random_census

from stirred.margins.spine import Shapes, Spine
from stirred.topdown.data.counting import read_spine
from stirred.topdown.estimating import precision
from stirred.topdown.estimating.precision import Design, expected_errors
from stirred.topdown.plan.fields import TopDownPlan


def by_unit(plan: TopDownPlan, spine: Spine) -> list[float]:
    """From the variances of every cell of every unit, by level and query."""
    found = []
    for table in plan.released:
        fixed = [number for number, one in enumerate(plan.invariants) if one.table == table.name]
        designs = {query.name: Design.of(plan, spine, table.name, query.by, None, fixed) for query in table.queries}
        for level in range(len(spine.levels)):
            for query in table.queries:
                largest = np.sort(designs[query.name].variances(level).max(axis=1))
                found.append(math.sqrt(largest[(len(largest) - 1) // 2]))
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("held", [1, 60, 1 << 22], ids=["one kind at a time", "a few kinds", "all"])
@pytest.mark.parametrize("seed", range(12))
def test_expected_errors_are_medians_over_units(seed, held, monkeypatch):
    monkeypatch.setattr(precision, "_HELD", held)
    plan, data = random_census(np.random.default_rng(seed))
    spine = read_spine(plan, data["geography"])
    expected = expected_errors(plan, spine)
    assert [one.combined for one in expected] == pytest.approx(by_unit(plan, spine), rel=1e-9)


def test_kinds_are_numbered_in_the_order_of_their_parents():
    leaves = [
        (f"{a}", f"{a}{b}", f"{a}{b}{c}") for a in range(4) for b in range(1 + a % 3) for c in range(1 + a * b % 4)
    ]
    geography = pl.DataFrame(leaves, schema=["state", "county", "town"], orient="row")
    spine = read_spine(census.plan(), geography)
    shapes = Shapes.of(spine)
    for level in (1, 2):
        kinds, above = shapes.everywhere[level], shapes.everywhere[level - 1]
        of_parents = above.of_unit[spine.parents(level)[kinds.sample]]
        first = shapes.first_kind(spine, level)
        assert first.tolist() == [int((of_parents < kind).sum()) for kind in range(len(above) + 1)]
        assert all((of_parents[first[kind] : first[kind + 1]] == kind).all() for kind in range(len(above)))
        units = np.arange(spine.units(level))
        assert spine.parents_of(level, units).tolist() == spine.parents(level).tolist()
