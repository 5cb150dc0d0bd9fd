"""What a release keeps, carried up the spine, and data that contradict it."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from census import KINDS, fields, plan, tables

from stirred.errors import StirredError
from stirred.topdown.data.constraints import Known, constrained_names, require_kept
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import marginal
from stirred.topdown.plan.fields import TopDownPlan

PLAN = plan()


def test_true_tables_keep_their_own_constraints_at_every_level():
    counted = count_tables(PLAN, tables())
    known = Known.of(counted)
    require_kept(counted, known)
    for table in PLAN.released:
        for level in range(3):
            here = known.kept(table, level)
            histograms = counted.histograms(table.name, level)
            for bound in here.bounds:
                sums = marginal(histograms, bound.groups, bound.lower.shape[1])
                assert bool(np.all(bound.lower <= sums)) and bool(np.all(sums <= bound.upper))
            dense = histograms.dense(table.schema_of.cells)
            for mask in here.allowed:
                assert bool(np.all(mask.allowed[:, mask.groups] | (dense == 0)))


def test_bounds_and_zeros_are_those_of_the_leaves_added_up():
    data = tables()
    counted = count_tables(PLAN, data)
    known = Known.of(counted)
    persons = PLAN.table("persons")
    homes = data["homes"].group_by("town", "type").len()
    for level, places in ((2, ["a1", "a2", "b1", "b2", "b3"]), (1, ["a", "b"]), (0, [""])):
        by_kind = known.kept(persons, level).bounds[-1]
        for unit, place in enumerate(places):
            for kind in ("nursing", "college"):
                inside = homes.filter(pl.col("town").str.starts_with(place) & (pl.col("type") == kind))["len"].sum()
                group = KINDS.index(kind)
                assert (by_kind.upper[unit, group] == 0) == (inside == 0)
                # Where totals are fixed the others may leave no less.
                assert by_kind.lower[unit, group] == inside if level == 2 else by_kind.lower[unit, group] >= inside
    # No dwelling, no household: a2 and b3 have none.
    (mask,) = known.kept(persons, 2).allowed
    assert mask.groups.tolist() == persons.schema_of.groups(["kind"]).tolist()
    assert mask.allowed[:, 0].tolist() == [True, False, True, True, False]


def test_ranges_of_a_group_are_exact():
    # All ways to fill two towns of a county with three kinds of people, by enumeration.
    counted = count_tables(PLAN, tables(12, seed=3))
    known = Known.of(counted)
    persons = PLAN.table("persons")
    leaves, county = (known.kept(persons, level).bounds[-1] for level in (2, 1))
    total = int(known.exact[0][0, 0])  # persons in county a: towns a1 and a2

    def ways(unit):
        ranges = [
            range(int(low), min(int(high), total) + 1)
            for low, high in zip(leaves.lower[unit], leaves.upper[unit], strict=True)
        ]
        return [way for way in itertools.product(*ranges) if sum(way) <= total]

    both = [tuple(map(sum, zip(*pair, strict=True))) for pair in itertools.product(ways(0), ways(1))]
    feasible = [way for way in both if sum(way) == total]
    assert county.lower[0].tolist() == [min(way[kind] for way in feasible) for kind in range(3)]
    assert county.upper[0].tolist() == [max(way[kind] for way in feasible) for kind in range(3)]


def test_invariants_bind_at_their_level_and_above_it_alone():
    counted = count_tables(PLAN, tables())
    known = Known.of(counted)
    persons = PLAN.table("persons")
    totals = [[bound for bound in known.kept(persons, level).bounds if bound.lower.shape[1] == 1] for level in range(3)]
    assert [len(found) for found in totals] == [1, 1, 0]  # persons by county
    assert totals[0][0].lower.tolist() == totals[0][0].upper.tolist() == [[200]]


def test_the_attributes_that_constraints_speak_of():
    assert constrained_names(PLAN, PLAN.table("persons")) == ("kind",)
    assert constrained_names(PLAN, PLAN.table("dwellings")) == ()
    assert KINDS[0] == "household"


def test_data_that_contradict_a_constraint_are_refused_by_name():
    def look_at(frames):
        counted = count_tables(PLAN, frames)
        require_kept(counted, Known.of(counted))

    data = tables()
    with pytest.raises(StirredError, match=r"'persons' by 'homes' \(kind as type\)") as refused:
        look_at(data | {"homes": data["homes"].filter(pl.col("type") == "nursing")})
    assert "At level 'town', in 1 of its units (a2), the data" in str(refused.value)
    crowded = pl.concat([data["homes"]] * 200)
    with pytest.raises(StirredError, match="'persons' by 'homes'"):
        look_at(data | {"homes": crowded})
    with pytest.raises(StirredError, match="'persons' by 'dwellings'"):
        look_at(data | {"dwellings": data["dwellings"].filter(pl.col("town") != "b1")})


def test_a_lower_bound_on_several_kinds_together_is_kept_as_one():
    both = fields()
    both["constraints"] = [{"table": "persons", "counted": "dwellings", "where": {"kind": ["household", "nursing"]},
                            "at_least": 1, "zero_without": False}]  # fmt: skip
    chosen = TopDownPlan(**both)
    counted = count_tables(chosen, tables(2000))
    here = Known.of(counted).kept(chosen.table("persons"), 2)
    bound = here.bounds[-1]
    assert bound.lower[:, 0].tolist() == [30, 0, 20, 10, 0]
    assert sorted(set(bound.groups.tolist())) == [-1, 0]
