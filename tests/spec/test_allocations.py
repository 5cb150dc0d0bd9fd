"""The allocation of the 2020 redistricting data: exact shares, the recomputed table, the certificate's epsilons."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest

from stirred.errors import LossError
from stirred.lab.definitions.composition_filters import composed_zcdp
from stirred.lab.reproduce.catalogue import items, published
from stirred.loss import zcdp_to_approximate
from stirred.spec.known_deployments.allocations import allocation, from_allocation_fields
from stirred.spec.known_deployments.deployments import deployment

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "allocations.json").read_text(encoding="utf-8"))
PL94 = allocation("pl94-2020")
PAPER = "semantics-paper"
FIELDS = tomllib.loads((files("stirred") / "deployments" / "allocations-2020.toml").read_text(encoding="utf-8"))


def near(value: Fraction | float, printed: str) -> bool:
    """Within half a unit of the last digit printed."""
    unit = Fraction(1, 10 ** len(printed.partition(".")[2]))
    return abs(Fraction(value) - Fraction(printed)) <= unit / 2


def keyed(query: str) -> str:
    return query.replace("*", "-by-")


def test_the_allocation_is_that_of_tables_3_to_5():
    for part in PL94.parts:
        assert part.rounded == Fraction(published(f"{PAPER}/table-3/{part.name}"))
        for level, share in zip(PL94.levels, part.level_shares, strict=True):
            assert share == Fraction(published(f"{PAPER}/table-4/{part.name}/{level.replace(' ', '-')}"))
    for query in PL94.part("persons").queries:
        for level, share in zip(PL94.levels, query.shares, strict=True):
            printed = published(f"{PAPER}/table-5/{keyed(query.name)}/{level.replace(' ', '-')}")
            assert share == Fraction(printed), (query.name, level)


def test_the_concerns_are_those_of_section_8_2():
    assert [one.id for one in PL94.concerns] == list("ABCDEFGH")
    for one in PL94.concerns:
        assert one.rho == published(f"{PAPER}/scenario-{one.id}/rho")
        group = f"{PAPER}/table-6/gaussian" if one.id == "A" else f"{PAPER}/scenario-{one.id}/power"
        printed = [items()[f"{group}/{level}"].published for level in ("0.01", "0.05", "0.10") if one.id not in "GH"]
        assert list(one.powers) == printed


def test_shares_add_up_to_exactly_one():
    for part in PL94.parts:
        assert sum(part.level_shares) == 1
        for at in range(len(PL94.levels)):
            assert sum(query.shares[at] for query in part.queries) == 1


def test_every_rho_of_the_table_is_reproduced():
    assert list(PL94.levels) == GOLDEN["levels"]
    assert set(PL94.queries) == set(GOLDEN["rho"])
    for query, row in GOLDEN["rho"].items():
        for level, printed in zip(GOLDEN["levels"], row, strict=True):
            assert abs(PL94.rho(level, query, rounded=True) - Fraction(printed)) <= Fraction(1, 10**8), (query, level)


def test_every_variance_of_the_table_is_reproduced():
    for query, row in GOLDEN["variance"].items():
        for level, printed in zip(GOLDEN["levels"], row, strict=True):
            found = PL94.variance(level, query, rounded=True)
            assert found == math.inf if printed == "inf" else near(found, printed), (query, level)


def test_totals_by_level_and_by_query():
    persons = [query.name for query in PL94.part("persons").queries]
    for level, some, everything in zip(
        GOLDEN["levels"], GOLDEN["level_totals"]["persons"], GOLDEN["level_totals"]["all"], strict=True
    ):
        assert near(PL94.total(rounded=True, levels=[level], queries=persons), some)
        assert near(PL94.total(rounded=True, levels=[level]), everything)
    for query, printed in GOLDEN["query_totals"].items():
        assert near(PL94.total(rounded=True, queries=[query]), printed)


def test_the_whole_is_the_budget_of_the_deployment():
    found = deployment(PL94.deployment)
    assert PL94.total(rounded=True) == found.specification.budget.number == Fraction(263, 100)
    assert {part.budget for part in found.parts} == {part.rounded for part in PL94.parts}
    assert composed_zcdp(PL94.rho(*cell, rounded=True) for cell in PL94.cells()) == Fraction(263, 100)


def test_the_unrounded_budget_comes_from_the_scales():
    assert PL94.part("persons").unrounded == Fraction(542, 339) ** 2 == Fraction(293764, 114921)
    assert PL94.part("housing").unrounded == Fraction(3379, 12343) ** 2
    for name in ("persons", "housing"):
        assert near(PL94.part(name).unrounded, GOLDEN["unrounded"][name])
    assert near(PL94.total(rounded=False), GOLDEN["unrounded"]["all"])
    # Rounded to two decimals one is the larger and the other the smaller, and 0.0749 is not 0.07 rounded to nearest.
    assert PL94.part("persons").rounded > PL94.part("persons").unrounded
    assert PL94.part("housing").rounded < PL94.part("housing").unrounded


@pytest.mark.parametrize("certified", PL94.published, ids=lambda certified: certified.what)
def test_the_epsilons_of_the_certificate_are_reproduced_from_the_unrounded_budget(certified):
    queries = [query.name for query in PL94.part(certified.part).queries]
    if certified.attribute:
        queries = [query for query in queries if query in PL94.about(certified.attribute)]
    rho = PL94.total(rounded=False, levels=certified.levels, queries=queries)
    assert certified.conversion == "tight"
    assert near(zcdp_to_approximate(rho, certified.delta, "tight"), certified.epsilon)
    assert not near(zcdp_to_approximate(rho, certified.delta, "classical"), certified.epsilon)


def test_all_ten_epsilons_of_the_certificate_are_there_and_some_miss_with_the_rounded_budget():
    assert len(PL94.published) == 10
    persons = [query.name for query in PL94.part("persons").queries]
    rounded = zcdp_to_approximate(PL94.total(rounded=True, queries=persons), 1e-10, "tight")
    assert round(rounded, 2) == 17.16


def test_worked_numbers_of_the_paper():
    printed = f"{PAPER}/section-8.1/query-rho"
    assert PL94.rho("county", "occupancy", rounded=True) == Fraction("0.07") * Fraction(7, 82)
    assert near(PL94.rho("county", "occupancy", rounded=True), published(f"{printed}/occupancy"))
    assert near(PL94.rho("state", "votingage*cenrace", rounded=True), published(f"{printed}/new-york"))
    fairfax = next(e for e in PL94.errata if e.id == "fairfax-county")
    assert fairfax.printed == published(f"{printed}/fairfax-county")
    assert near(PL94.rho("county", "votingage*cenrace", rounded=True), fairfax.correct)
    assert not near(PL94.rho("county", "votingage*cenrace", rounded=True), fairfax.printed)


def test_there_are_71_measurements_of_a_block():
    assert len(list(PL94.cells())) == 71
    assert sum(level == "block" for level, _ in PL94.cells()) == 12
    assert ("us", "total") not in set(PL94.cells())
    assert PL94.rho("us", "total", rounded=True) == 0
    assert {query.name: query.cells for query in PL94.part("persons").queries}[
        "hhgq*votingage*hispanic*cenrace"
    ] == 2016


def test_cells_are_products_of_the_values_of_their_attributes():
    # Six races of which at least one is named; households and seven kinds of group quarters.
    values = {"cenrace": 2**6 - 1, "hispanic": 2, "votingage": 2, "hhgq": 1 + 7}
    for query in PL94.part("persons").queries:
        expected = 3 if query.name == "hhinstlevels" else math.prod(values[name] for name in query.attributes)
        assert query.cells == expected == int(published(f"{PAPER}/table-5-cells/{keyed(query.name)}").replace(",", ""))


def test_queries_by_attribute():
    assert PL94.about("hhgq") == ("hhinstlevels", "hhgq", "hhgq*votingage*hispanic*cenrace")
    assert PL94.about("occupancy") == ("occupancy",)
    assert "total" not in {query for name in ("hhgq", "cenrace", "hispanic", "votingage") for query in PL94.about(name)}


# -- bad input -----------------------------------------------------------------------------------------------


def test_names_that_do_not_exist_are_refused_with_those_that_do():
    for job, words in (
        (lambda: allocation("pl94"), "There is no allocation 'pl94'. Choose one of 'pl94-2020' and 'dhc-2020'."),
        (lambda: PL94.rho("nation", "total", rounded=True), "There is no level 'nation'. Choose one of 'us'"),
        (lambda: PL94.rho("us", "age", rounded=True), "There is no query 'age'. Choose one of 'total'"),
        (lambda: PL94.about("age"), "There is no attribute 'age'."),
        (lambda: PL94.part("people"), "There is no part 'people'."),
    ):
        with pytest.raises(LossError) as refusal:
            job()
        assert refusal.value.kind == "unknown-choice"
        assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part["level_shares"].__setitem__(0, "105/4099"), "the levels of 'persons'"),
        (lambda part: part["level_shares"].pop(), "the levels of 'persons'"),
        (lambda part: part["query"][0]["shares"].__setitem__(1, "3772/4097"), "'persons' at level 'state'"),
        (lambda part: part["level_shares"].__setitem__(slice(0, 2), ["-1/4099", "1545/4099"]), "the levels"),
    ],
)
def test_shares_that_do_not_add_up_are_refused(change, words):
    fields = copy.deepcopy(FIELDS["allocation"][0])
    change(fields["part"][0])
    with pytest.raises(LossError) as refusal:
        from_allocation_fields(fields)
    assert refusal.value.kind == "shares-do-not-add-up"
    assert words in str(refusal.value)
