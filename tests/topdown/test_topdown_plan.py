"""Plans of a TopDown release: shares that add up, queries that exist, constraints that are covered by invariants."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pytest
from census import SPENT, fields, plan

from stirred.errors import StirredError
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.semantics import exposure
from stirred.spec.known_deployments.allocations import allocation
from stirred.topdown.plan.fields import TopDownPlan

TOML = """
stirred = 1
mechanism = "topdown"
dataset = "towns 2030"

[spine]
levels = ["county", "town"]
absent = ["nation"]
input.path = "towns.csv"

[[tables]]
name = "persons"
unit = "person"
rho = 2.5
level_shares = {nation = 0.2, county = "2/5", town = "2/5"}
input.path = "persons.csv"

[[tables.attributes]]
name = "sex"
values = ["f", "m"]

[[tables.queries]]
by = []
shares = {nation = "1/2", county = "1/2", town = "1/2"}

[[tables.queries]]
by = ["sex"]
shares = "1/2"
"""


def test_a_plan_spends_what_it_divides():
    whole = plan()
    assert whole.rho == SPENT
    assert [table.name for table in whole.released] == ["persons", "dwellings"]
    mine = whole.allocation()
    assert mine.total(rounded=True) == SPENT
    # Semantics look concerns up in it: colour is told by the detailed query alone.
    assert exposure(mine, "colour", rounded=True).rho == 2 * (Fraction(1, 4) * Fraction(1, 4) * 2 + Fraction(3, 8))


def test_a_plan_file_with_exact_numbers_and_its_own_folder(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TOML)
    read = TopDownPlan.from_toml(path)
    assert read.tables[0].rho == Fraction(5, 2)
    assert read.rho == Fraction(5, 2) * Fraction(4, 5)  # the nation is not on this spine, and its share is not spent
    assert read.spine.input.path == str(tmp_path / "towns.csv")
    assert "path" not in str(read.published()) and read.hash() == TopDownPlan.from_toml(path).hash()


def test_one_state_of_the_2020_census_spends_less():
    # The share of the nation is unspent: 2.49137 of 2.55623.
    part = allocation("pl94-2020").part("persons")
    assert round(float(part.unrounded * (1 - part.level_shares[0])), 5) == 2.49137


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["tables"][0]["level_shares"].update(town="1/4"), "add up to 3/4"),
        (lambda f: f["tables"][0]["queries"][0]["shares"].update(town="1/4"), "add up to 19/16"),
        (lambda f: f["tables"][0]["level_shares"].update(moon="0"), "no level 'moon'"),
        (lambda f: f["tables"][0]["queries"][0]["shares"].update(moon="0"), "no level 'moon'"),
        (lambda f: f["tables"][0].update(rho="-1"), "cannot be negative"),
        (lambda f: f["tables"][0].update(rho="much"), "must be a number"),
        (lambda f: f["tables"][0].update(rho=0), "above 0"),
        (lambda f: f["tables"][0]["queries"].append({"by": [], "shares": 0}), "once"),
        (lambda f: f["tables"][0]["queries"][1].update(by=["age"]), "no attribute or recode 'age'"),
        (lambda f: f["tables"][0]["recodes"][0]["groups"].update(minors=[]), "exactly one group"),
        (lambda f: f["tables"][0]["attributes"][0].update(values=["a", "a"]), "once"),
        (lambda f: f["tables"][0].update(zeros=[{"kind": ["prison"]}]), "'prison'"),
        (lambda f: f["tables"][1].update(name="persons"), "name of its own"),
        (lambda f: f["invariants"][0].update(level="moon"), "no level 'moon'"),
        (lambda f: f["invariants"][0].update(table="cats"), "no table 'cats'"),
        (lambda f: f.update(unit="cat"), "protected unit"),
        (lambda f: f["invariants"].pop(), "must be an invariant"),
        (lambda f: f["constraints"][0].update(where={"kind": ["college"]}), "either 'each' or 'where'"),
        (lambda f: f["constraints"][0].update(at_least=-1), "cannot be negative"),
        (lambda f: f["constraints"][0].update(each={"kind": "sort"}), "'sort'"),
        (lambda f: f.update(anything=1), "anything"),
        (lambda f: f["tables"][0]["queries"].append({"by": ["colour"], "shares": 0}), "share at some level"),
        (lambda f: f["constraints"][0].update(table="homes"), "has no rho"),
        (lambda f: f.update(publish=[{"table": "homes", "level": "town"}]), "has no rho"),
        (lambda f: f.update(publish=[{"table": "persons", "level": "moon"}]), "no level 'moon'"),
        (lambda f: f.update(publish=[{"table": "persons", "level": "town"}] * 2), "under publish only once"),
        (lambda f: f["tables"][0]["attributes"][1].update(column="town"), "with the name of a level"),
    ],
)
def test_a_plan_that_does_not_hold_together_is_refused(change, words):
    broken = copy.deepcopy(fields())
    change(broken)
    with pytest.raises(StirredError, match=words):
        TopDownPlan(**broken)


def test_cells_and_groups_by_counting():
    schema = Schema(
        (Attribute("a", ("x", "y", "z")), Attribute("b", ("0", "1"))),
        (Recode("c", "a", (("first", ("x", "z")), ("other", ("y",)))),),
    )
    cells = schema.labels(["a", "b"])
    assert schema.cells == len(cells) == 6
    for names in ([], ["a"], ["b"], ["c"], ["b", "a"], ["c", "b"]):
        labels = schema.labels(names)
        for cell, group in zip(cells, schema.groups(names), strict=True):
            told = {"a": cell[0], "b": cell[1], "c": "first" if cell[0] in "xz" else "other"}
            assert labels[group] == tuple(told[name] for name in names)
    assert schema.base("c") == "a" and schema.number_of_groups(["c", "b"]) == 4
    chosen = schema.where({"c": ["first"], "b": ["1"]})
    assert [cells[n] for n in np.flatnonzero(chosen)] == [("x", "1"), ("z", "1")]


def test_a_plan_written_as_a_file_is_read_back(tmp_path):
    earlier = [{"path": "first", "table": "persons", "by": ["kind"]}]
    publish = [{"table": "persons", "level": "county", "by": ["minor"]}]
    before = TopDownPlan(**fields("1/3", earlier=earlier, publish=publish, passes="two", dataset='a "town"'))
    (tmp_path / "plan.toml").write_text(before.reading({"geography": "g.csv", "persons": "p.csv"}).to_toml())
    after = TopDownPlan.from_toml(tmp_path / "plan.toml")
    assert after.published() == before.published() and after.rho == before.rho
    assert after.spine.input.path == str(tmp_path / "g.csv") and after.earlier[0].path == str(tmp_path / "first")
    again = TopDownPlan.from_published(after.published())
    assert again.hash() == before.hash()


def test_what_the_fit_alone_uses_is_not_part_of_a_draw():
    plain = TopDownPlan(**fields())
    other = TopDownPlan(**fields(passes="one", fit="level by level", publish=[{"table": "persons", "level": "town"}]))
    assert plain.hash() != other.hash() and plain.drawn_hash() == other.drawn_hash()
    assert plain.drawn_hash() != TopDownPlan(**fields("3")).drawn_hash()
    assert (
        plain.drawn_hash() != TopDownPlan(**fields(invariants=fields()["invariants"][:-1], constraints=[])).drawn_hash()
    )
