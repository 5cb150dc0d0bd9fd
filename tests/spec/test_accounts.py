"""Accounts of known deployments: every fact has a source, nothing is pretended, and unlike budgets are kept apart."""

from __future__ import annotations

import copy
import itertools
import math
import re
import tomllib
from collections import Counter
from fractions import Fraction
from importlib.resources import files

import pytest
from account_faults import faults

from account_findings import counts, is_taken_in
from stirred.errors import SpecificationError
from stirred.spec import compare
from stirred.spec.known_deployments.accounts import (
    BLOCKS,
    MARKS,
    QUESTIONS,
    STANDARDS,
    account,
    accounts,
    find_account,
    one_axis,
)
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names, tables
from stirred.spec.loading import load

TABLES = {name: fields for name, fields in tables().deployments.items() if "account" in fields}
KNOWN = list(accounts().values())
INCOMPLETE = [one for one in KNOWN if not one.complete]
COMPLETE = [one for one in KNOWN if one.complete]
PREMETRICS = {"pure": "multiplicative", "epsilon-delta": "approximate", "zcdp": "normalised-renyi"}


# -- the data files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_table_of_the_data_files_is_valid(name):
    assert faults(TABLES[name]) == []


def test_every_deployment_has_an_account_and_no_hypothetical_one_has():
    real = {name for name, fields in tables().deployments.items() if fields["kind"] == "deployment"}
    assert set(TABLES) == real == set(accounts())
    assert find_account("psa-2010-p02") is None and find_account("nothing of this name") is None


def test_all_records_of_the_registry_are_there_once():
    """36 of its 41 records are taken in; the other five are products of the 2020 Census, which has its sum besides."""
    records = [source for one in KNOWN for source in one.sources if source.startswith("Deployments registry, record ")]
    assert len(records) == len(set(records)) == 36
    assert {one.name for one in KNOWN if not is_taken_in(one)} == {
        "topdown-2020-pl",
        "topdown-2020-pl-dhc",
        "safetab-p-2020",
        "safetab-h-2020",
        "phsafe-2020",
        "das-2020-overall",
    }


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.name)
def test_every_question_is_answered_from_a_source_or_said_to_be_not_stated(one):
    assert set(one.facts) | set(one.not_stated) == set(QUESTIONS) and not set(one.facts) & set(one.not_stated)
    for fact in one.facts.values():
        source = one.sources[fact.source - 1]
        assert fact.source >= 1 and fact.says and fact.mark in MARKS
        assert ("deployments registry" in source.lower()) == (fact.mark != "checked")
        assert str(fact.source) in fact.how
        assert "not reached" not in source or fact.mark != "checked"


@pytest.mark.parametrize("one", [one for one in KNOWN if is_taken_in(one)], ids=lambda one: one.name)
def test_what_was_read_of_each_source_is_said(one):
    for source in one.sources:
        assert source.startswith("Deployments registry, record ") or re.search(
            r"\([^()]*(read|reached)[^()]*\)$", source
        )
    used = {fact.source for fact in one.facts.values() if fact.mark == "checked"}
    assert all("was read" in one.sources[at - 1] or "read" in one.sources[at - 1].rpartition("(")[2] for at in used)


def broken(**changes):
    fields = copy.deepcopy(TABLES["google-mobility-2020"])
    for name, value in changes.items():
        if value is None:
            fields["account"].pop(name)
        else:
            fields["account"][name] = value
    return fields


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (broken(size="large"), "there is no field 'size'"),
        (broken(unit=None), "'unit' is neither stated nor said to be not stated"),
        (broken(not_stated=["fixed", "unit"]), "'unit' is stated and not stated"),
        (broken(not_stated=["fixed", "organisation"]), "'organisation' cannot be not stated"),
        (broken(year="2020"), "'year' is a whole number"),
        (broken(checked={"fixed": 1}), "'fixed' is checked and not stated"),
        (broken(checked={"unit": 7}), "'unit' is checked in source 7, which is not listed"),
        (broken(checked={"unit": 2}), "'unit' is checked in the registry's record, which is no check"),
        (broken(standard="strict"), "there is no standard 'strict'"),
        (broken(budget={"rho": "1"}), "the budget of 'pure' is 'epsilon'"),
        (broken(budget={"epsilon": 2.64}), "'epsilon' is text, so that it stays exact"),
        (broken(fixed="nothing", not_stated=[]), "there is a specification exactly if every building block is stated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_faulty_table_is_told_what_is_wrong(fields, says):
    assert says in faults(fields)


def test_a_fact_without_a_source_is_a_fault():
    fields = copy.deepcopy(TABLES["google-mobility-2020"])
    fields["sources"] = fields["sources"][:1]
    assert faults(fields) == ["the registry's record is not among the sources"]


# -- what is stated in full, and what is not -----------------------------------------------------------------


@pytest.mark.parametrize("one", COMPLETE, ids=lambda one: one.name)
def test_an_account_says_what_the_specification_says(one):
    found = deployment(one.name).specification
    assert one.name in names() and not one.missing
    assert found.input_premetric.unit == one.facts["unit"].says
    assert found.output_premetric.name == PREMETRICS[one.facts["standard"].says]
    assert found.budget.number == Fraction(one.numbers.get("epsilon") or one.numbers["rho"])
    assert ("replaced" in one.facts["neighbours"].says) == found.input_premetric.bounded
    assert bool(found.multiverse.invariants) == (
        not one.facts["fixed"].says.startswith(("nothing", "the number of rep"))
    )


@pytest.mark.parametrize("one", INCOMPLETE, ids=lambda one: one.name)
def test_what_is_not_stated_is_not_pretended(one):
    assert one.name not in names()
    for ask in (load, deployment):
        with pytest.raises(SpecificationError) as refusal:
            ask(one.name)
        assert refusal.value.kind == "deployment-without-guarantee"
        said = str(refusal.value)
        assert all((words in said) == (name in one.not_stated) for name, words in BLOCKS.items() if name != "budget")
        assert f"stirred deployments {one.name}" in said
    shown = str(one)
    assert "not stated" in shown and all(source in shown for source in one.sources)


@pytest.mark.parametrize("one", [one for one in INCOMPLETE if one.typed], ids=lambda one: one.name)
def test_the_number_that_is_stated_can_be_typed(one):
    with pytest.raises(SpecificationError, match=re.escape(one.typed)):
        load(one.name)
    found = load(one.typed)
    assert found.budget.number == Fraction(one.numbers.get("epsilon") or one.numbers["rho"])
    assert found.output_premetric.name == PREMETRICS[one.facts["standard"].says]


@pytest.mark.parametrize("one", [one for one in KNOWN if one.parts], ids=lambda one: one.name)
def test_the_parts_of_a_budget_add_up_exactly(one):
    total = one.numbers.get("epsilon") or one.numbers["rho"]
    assert sum(Fraction(budget) for _, budget in one.parts) == Fraction(total)


def test_numbers_in_the_explanations_follow():
    (recurve,) = account("recurve-ohmconnect-2020").errata
    assert "0.843" in recurve.printed and round(0.124 * 6.8, 3) == 0.843
    assert "4.72" in recurve.printed and round(math.log(1 + 0.124 * math.expm1(6.8)), 2) == 4.72
    assert account("israel-births-2024").numbers == {
        "epsilon": str(2 * (Fraction(4) + Fraction("0.99")) * 100 / 100)
    } or (Fraction(account("israel-births-2024").numbers["epsilon"]) == 2 * (4 + Fraction("0.99")))
    symptoms = account("google-symptoms-2020")
    assert Fraction("0.0023") + Fraction("0.0047") + Fraction("0.014") == Fraction(symptoms.errata[0].correct)
    of_symptoms = Fraction("0.168") + Fraction("0.37") + Fraction("1.1")
    assert of_symptoms + Fraction("0.042") == Fraction(symptoms.numbers["epsilon"])
    hiring = account("linkedin-hiring-2020").numbers
    assert (4 * Fraction("1.2"), 4 * Fraction("1e-10")) == (Fraction(hiring["epsilon"]), Fraction(hiring["delta"]))
    assert 4 * (Fraction("0.11") * 2 + Fraction("0.22")) == Fraction(account("google-mobility-2020").parts[0][1])


# -- unlike budgets ------------------------------------------------------------------------------------------


def test_budgets_share_an_axis_only_if_standard_unit_and_period_are_the_same():
    alike = 0
    for first, second in itertools.permutations(KNOWN, 2):
        said = one_axis(first, second)
        same = first.panel is not None and first.panel == second.panel
        assert (said == "") == same
        alike += same
        if same:
            facts = ("standard", "unit", "period")
            assert [first.facts[name].says for name in facts] == [second.facts[name].says for name in facts]
            assert first.numbers.get("delta") == second.numbers.get("delta")
    assert alike > 0


def test_why_two_budgets_share_no_axis_is_said():
    symptoms, vaccination = account("google-symptoms-2020"), account("google-vaccination-2021")
    assert "'pure' and 'epsilon-delta, delta = 1e-5'" in one_axis(symptoms, vaccination)
    assert one_axis(symptoms, account("uber-flex-2018")) == "Of 'uber-flex-2018' 'budget' and 'period' are not stated."
    assert "periods differ" in one_axis(account("topdown-2020-pl"), account("das-2020-overall"))


def test_no_guarantee_of_one_deployment_is_ranked_against_that_of_other_data():
    specifications = {one.name: deployment(one.name).specification for one in COMPLETE}
    others = [(a, b) for a, b in itertools.combinations(specifications.values(), 2) if a.domain != b.domain]
    assert len(others) > 40
    for first, second in others:
        assert first.implies(second).verdict != "yes" and second.implies(first).verdict != "yes"
    said = str(compare(specifications["google-symptoms-2020"], specifications["microsoft-broadband-2020"]))
    assert "not known to be ordered" in said and "a smaller number is not a better protection" in " ".join(said.split())


# -- what all of them show -----------------------------------------------------------------------------------


def test_the_findings_are_counted_again_from_the_files_themselves():
    read = [
        tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in (files("stirred") / "deployments").iterdir()
        if entry.name.startswith("registry-")
    ]
    given = [one for file in read for one in file["deployment"]]
    found = counts()
    assert found["taken in"] == len(given) == 36 and found["deployments"] == len(given) + 6
    open_ones = Counter(name for one in given for name in one["account"].get("not_stated", []))
    assert {name: found[f"not stated: {name}"] for name in BLOCKS} == {name: open_ones[name] for name in BLOCKS}
    assert found["complete"] == 6 + sum("specification" in one for one in given)
    facts = sum(name in one["account"] for one in given for name in QUESTIONS)
    checked = sum(len(one["account"].get("checked", {})) for one in given)
    unreached = sum(
        sum(name in one["account"] for name in QUESTIONS) - len(one["account"].get("checked", {}))
        for one in given
        if not one["account"].get("reached", True)
    )
    assert (found["facts"], found["checked"], found["unreached"]) == (facts, checked, unreached)
    assert found["record"] == facts - checked - unreached
    assert found["budgets taken in"] == sum("budget" in one["account"] for one in given)
    assert found["with differences"] == sum("errata" in one for one in given)


def test_accounts_are_ready_for_json_and_hold_every_fact():
    fields = account("wikimedia-pageviews-2023").to_fields()
    assert fields["facts"]["budget"] == {"says": "rho = 0.015", "checked": "checked", "source": 1}
    assert fields["budget"] == {"rho": "0.015"} and fields["complete"] and fields["not_stated"] == []
    assert set(STANDARDS) >= {one.facts["standard"].says for one in KNOWN if "standard" in one.facts}


def test_an_unknown_name_has_no_account():
    with pytest.raises(SpecificationError, match="Did you mean 'google-mobility-2020'"):
        account("google-mobilty-2020")
