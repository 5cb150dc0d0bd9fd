"""Known plans and the specification of a plan."""

from __future__ import annotations

from fractions import Fraction

import pytest
from census import fields, plan

from stirred.errors import StirredError
from stirred.semantics import concerned_change, explain, exposure
from stirred.spec import Invariant, compose
from stirred.spec.known_deployments.allocations import allocation
from stirred.spec.loading import load
from stirred.tables.synthetic.population import DOMAINS
from stirred.topdown.checking.plan_check import concern_powers
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.presets import preset

PL94 = allocation("pl94-2020")


def test_the_2020_plan_has_the_2020_shares():
    whole = preset("pl94-2020", DOMAINS, nation=True, rounded=True)
    assert whole.rho == Fraction(263, 100)
    persons = whole.table("persons")
    assert persons.schema_of.cells == 2016
    groups = {query.name: persons.schema_of.number_of_groups(query.by) for query in persons.queries}
    assert groups == {query.name: query.cells for query in PL94.part("persons").queries}
    for level, census in zip(whole.spine.all_levels, PL94.levels, strict=True):
        for query in persons.queries:
            assert persons.rho_of(level, query) == PL94.rho(census, query.name, rounded=True)
    assert whole.table("units").rho_of("block", whole.table("units").queries[0]) == PL94.rho(
        "block", "occupancy", rounded=True
    )


def test_one_state_does_not_spend_the_nations_share():
    state = preset("pl94-2020", DOMAINS)
    persons = state.table("persons")
    spent = sum(persons.rho_of(level, query) for level in state.spine.all_levels for query in persons.queries)
    assert round(float(spent), 5) == 2.49137  # of 2.55623
    assert preset("pl94-units", DOMAINS).rho < Fraction("0.075")
    assert preset("teaching", DOMAINS).rho == Fraction(5, 6)


def test_the_specification_of_the_2020_plan_is_that_of_the_2020_census():
    mine = specify(preset("pl94-2020", DOMAINS, nation=True, rounded=True))
    census = load("topdown-2020-pl")
    assert mine.budget.number == census.budget.number
    assert mine.output_premetric == census.output_premetric
    assert mine.nearest == census.nearest == 1
    # Persons by state, housing units by block, facilities by type and block; those of 2020 that are occupied.
    assert {(one.counts, one.by) for one in mine.multiverse.invariants} == {
        ("person", ("state",)), ("housing unit", ("block",)), ("group-quarters facility", ("block", "type")),
    }  # fmt: skip
    assert Invariant("person", by=("state",)) in census.multiverse.invariants


def test_a_plans_budget_is_the_sum_of_its_queries_and_composes():
    stated = specify(plan())
    assert stated.budget.number == Fraction(5, 2)
    assert compose(stated, stated).specification.budget.number == 5
    assert "files that differ in one person are taken to differ in at most one dwelling" in str(stated.input_premetric)


def test_the_nearest_dataset_is_one_record_away_only_where_an_attribute_is_free():
    assert specify(plan()).nearest == 1  # colour
    held = fields()
    held["invariants"].append({"table": "persons", "level": "county", "by": ["colour"]})
    held["invariants"].append({"table": "persons", "level": "state", "by": ["adult"]})
    assert specify(TopDownPlan(**held)).nearest is None


def test_a_plan_is_explained_per_attribute():
    chosen = plan()
    explained = explain(specify(chosen), allocation=chosen.allocation(), concerns=["colour", "town within county"])
    colour, town = [one for one in explained.setting.concerned if one.asked]
    assert not colour.worst.joint and not town.worst.joint  # persons by county are kept by both
    between = explain(specify(chosen), allocation=chosen.allocation(), concerns=["county within state"])
    (county,) = [one for one in between.setting.concerned if one.asked]
    assert county.worst.joint
    # All but the totals of counties change for both: four cells of each query by one.
    table = {cell: chosen.allocation().rho(*cell, rounded=False) for cell in chosen.allocation().cells()}
    below = sum(rho for cell, rho in table.items() if cell[0] != "state" and cell != ("county", "total of persons"))
    assert county.worst.rho == 2 * below
    powers = {one.concern: one for one in concern_powers(chosen)}
    assert powers["location within state"].rho == float(county.worst.rho)
    assert powers["location within state"].change == county.worst.change.words
    assert powers["location within state"].power == float(county.gaussian.power(0.05))
    assert powers["colour"].rho == float(colour.worst.rho) and powers["colour"].between == "one person changed"


def test_a_check_of_wholly_held_counts_says_so():
    held = fields()
    held["invariants"].append({"table": "persons", "level": "town", "by": ["kind", "adult", "colour"]})
    assert {one.between for one in concern_powers(TopDownPlan(**held))} == {"none: it is held fixed"}


def test_dwellings_with_a_guarantee_of_their_own_move_only_in_pairs():
    own = TopDownPlan(**fields(unit="dwelling"))
    powers = {one.concern: one for one in concern_powers(own)}
    assert powers["occupied"].between == "one dwelling changed"
    assert powers["location within county"].between == "two dwellings changed"  # dwellings by town are kept
    assert "each move to the other's town" in powers["location within county"].change


def test_unknown_presets_are_refused():
    with pytest.raises(StirredError, match="no preset"):
        preset("pl94-2030", DOMAINS)


def test_an_invariant_by_a_recode_binds_the_attribute_it_is_of():
    """One person who becomes an adult changes the number of minors: two must exchange that."""
    kept = [{"table": "persons", "level": "state", "by": ["minor"]}, *fields()["invariants"][1:]]
    chosen = plan(invariants=kept)
    exposed = exposure(chosen.allocation(), "adult", rounded=False)
    assert concerned_change(specify(chosen), exposed).distance == 2
    assert concerned_change(specify(plan()), exposure(plan().allocation(), "adult", rounded=False)).distance == 1


def test_the_domain_says_which_data_are_refused():
    [*_, zeros, homes, dwellings] = specify(plan()).domain.restricted_by
    assert "cannot occur" in zeros and "(kind as type)" in homes and "kind in household" in dwellings


# -- DHC -----------------------------------------------------------------------------------------------------------


def test_the_dhc_plans_have_the_rho_of_production_for_every_query():
    dhc = allocation("dhc-2020")
    assert dhc.part("persons").rounded == Fraction("4.9622") and dhc.part("units").rounded == Fraction("7.7005")
    assert round(float(dhc.total(rounded=True)), 2) == 12.66  # as printed: 4.96 + 7.70
    whole = preset("dhc-persons", DOMAINS, nation=True)
    persons = whole.table("persons")
    assert persons.schema_of.cells == 42 * 2 * 116 * 2 * 63 == 1_227_744
    assert whole.rho == Fraction("4.9622")
    for level, census in zip(whole.spine.all_levels, dhc.levels, strict=True):
        for query in persons.queries:
            assert persons.rho_of(level, query) == dhc.rho(census, query.name, rounded=True)
    cells = {query.name: persons.schema_of.number_of_groups(query.by) for query in persons.queries}
    assert cells == {query.name: query.cells for query in dhc.part("persons").queries}
    units = preset("dhc-units", {}, nation=True)
    table = units.table("units")
    for level, census in zip(units.spine.all_levels, dhc.levels, strict=True):
        assert table.rho_of(level, table.queries[0]) == dhc.rho(census, "tenvacgq", rounded=True)
    assert table.schema_of.cells == 35


def test_the_zeros_of_the_dhc_are_those_of_the_public_code():
    persons = preset("dhc-persons", DOMAINS).table("persons")
    possible = ~sum(persons.schema_of.where(zero) for zero in persons.zeros).astype(bool)
    table = possible.reshape(42, 2, 116, 2, 63)[:, 0, :, 0, 0]
    youngest, oldest = table.argmax(axis=1), 115 - table[:, ::-1].argmax(axis=1)
    assert youngest[:6].tolist() == [15] * 6 and oldest[6:9].tolist() == [89] * 3  # householders; children
    assert (youngest[13], oldest[13]) == (15, 89) and oldest[16] == 20  # children-in-law; foster children
    assert (youngest[27], youngest[32], oldest[32], youngest[33], oldest[33]) == (20, 3, 30, 16, 65)
    assert (youngest[36], oldest[36], youngest[40], oldest[41]) == (0, 115, 0, 115)
    assert table.sum() == sum(o - y + 1 for y, o in zip(youngest, oldest, strict=True))  # no holes


def test_a_preset_says_how_many_levels_it_needs():
    with pytest.raises(StirredError, match="needs 7 levels"):
        preset("dhc-persons", DOMAINS, ["state", "county", "block"])
    with pytest.raises(StirredError, match="needs 5 levels"):
        preset("pl94-2020", DOMAINS, ["state", "block"])
