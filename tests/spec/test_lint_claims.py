"""The perverse guide of section 4.3, told by the lint: its numbers, known deployments, and the page of rules."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_lint import BLOCKS, PLAIN, RAW, STATES, TIDY, found, held, premetric, swap, with_facts

from stirred import errors
from stirred.spec import Budget, OutputPremetric, Specification, facts, flavors
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names
from stirred.spec.linting.findings import lint, rules, table

ROOT = Path(__file__).parents[2]


GUIDE = {
    "L1": ("domain-restricted", "late-start"),
    "L2": ("more-invariants", "finer-strata"),
    "L3": ("finer-unit", "household-not-covered"),
    "L4": ("weaker-standard",),
    "L5": ("fewer-events",),
    "L6": ("parameters-from-this-data", "parameters-unexplained", "zero-budget-no-noise"),
    "L7": ("different-flavors",),
    "L8": ("rate-zero-or-one", "rate-above-best"),
    "L9": ("unattainable-epsilon",),
    "L10": ("nothing-can-change", "strata-of-duplicates", "uniques"),
    "L11": ("later-releases-not-covered",),
    "L12": ("units-after-imputation",),
    "L13": ("capped-or-pairwise-swaps",),
    "L14": ("row-order-published",),
    "L15": ("budget-of-overlapping-universes",),
}
"""The ways of the perverse guide and the errors of section 3, and the rules that watch for them."""


def test_no_way_of_the_perverse_guide_is_without_a_rule():
    assert {rule for watching in GUIDE.values() for rule in watching} <= {rule.id for rule in rules()}
    assert list(GUIDE) == [f"L{number}" for number in range(1, 16)]


def test_every_rule_that_is_written_down_has_a_function_that_says_when_it_speaks():
    assert [rule.id for rule in rules() if not rule.when] == []


# -- what is said ----------------------------------------------------------------------------------------------------


def test_a_swap_at_epsilon_4_04_is_read_at_8_08():
    words = found(swap(10, "1/6"))["nearest-not-one"]
    assert "2 apart" in words and "epsilon = 8.02" in words and "not epsilon = 4.01" in words
    assert "8.08" in found(swap(10, "1/6", 4.04))["nearest-not-one"]


def test_rho_of_a_respondent_who_enters_two_records_is_four_times_rho():
    overall = with_facts(flavors.zcdp("person", domain=RAW).at("55.371"), records_per_respondent=2)
    assert "rho = 221.484, not rho = 55.371" in found(overall)["units-after-imputation"]


def test_an_epsilon_of_events_is_read_for_the_user_where_their_number_is_declared():
    words = found(premetric(unit="event", within=(("user", 20),)))["finer-unit"]
    assert words == (
        "The unit is one event and not one user, which has up to 20 events; together 2 events have the bound "
        "epsilon = 2.00, 4 have 4.00, 10 have 10.00 and 20 have 20.00, not epsilon = 1.00."
    )


def test_a_household_of_any_size_is_read_for_the_usual_sizes_first():
    given = flavors.zcdp("person", domain=RAW, within=(("household", 99_999),)).at("55.371")
    assert found(given)["household-not-covered"] == (
        "The unit is one person and not one household, which has up to 99,999 persons; together 2 persons have the "
        "bound rho = 221.484, 4 have 885.936 and 10 have 5,537.1, not rho = 55.371; for 99,999 it is beyond 1,000,000, "
        "which promises next to nothing."
    )
    small = flavors.pure("person", domain=RAW, within=(("household", 3),)).at("0.1")
    assert (
        "together 2 persons have the bound epsilon = 0.2 and 3 have 0.3, not epsilon = 0.1."
        in (found(small)["household-not-covered"])
    )
    pair = flavors.pure("person", domain=RAW, within=(("family", 2),)).at(1)
    assert (
        "; together 2 persons have the bound epsilon = 2.00, not epsilon = 1.00."
        in (found(pair)["household-not-covered"])
    )


def test_delta_is_spoken_of_only_where_a_standard_has_one():
    total = flavors.flavor(OutputPremetric("total-variation"), domain=RAW).at("0.3")
    pairs = [(total, None), (flavors.zcdp().at("0.1"), flavors.pure().at(1)), (total, flavors.pure().at(1))]
    pairs += [(flavors.renyi(2).at("0.1"), flavors.renyi(4).at(1))]
    for given, before in pairs:
        findings = lint(given, before=before)
        assert "weaker-standard" in {one.id for one in findings}
        assert not [one for one in findings if "delta" in one.words or "delta" in one.why]
    assert "delta = 0.01 is not limited at all" in found(flavors.approximate("0.01").at(1))["weaker-standard"]


def test_delta_is_read_as_records_published_whole():
    words = found(with_facts(flavors.approximate("1e-4", domain=RAW).at(1), records=50_000))["weaker-standard"]
    assert "publishes 5.00 of them on average" in words


def test_the_rate_above_the_best_is_told_its_lower_twin():
    words = found(swap(10, "0.952574"))["rate-above-best"]
    assert "above 0.7683" in words and "a rate of 0.3539 gives the same epsilon" in words


def test_the_smallest_epsilon_of_any_rate_is_named():
    assert "no rate gives less than 1.19" in found(swap(10, "1/2", 1))["unattainable-epsilon"]


def test_a_huge_epsilon_is_said_on_its_logarithmic_scale():
    assert "e^38.73, about 10^16.8" in found(swap(13_475_623, "1/20"))["vacuous-budget"]


@pytest.mark.parametrize(
    ("silent", "said"),
    [(held().at("7.6"), held().at("7.601")), (flavors.zcdp().at("21.65"), flavors.zcdp().at("21.66"))],
)
def test_a_budget_is_vacuous_where_the_best_test_errs_less_than_once_in_a_thousand(silent, said):
    assert "vacuous-budget" in found(said) and "vacuous-budget" not in found(silent)


def test_what_leaves_no_guarantee_is_said_first():
    bad = replace(swap(0, "1/20", parameters_from="this data"), marks=("a test",))
    assert [finding.id for finding in lint(bad)][:3] == ["nothing-can-change", "parameters-from-this-data", "marks"]


def test_a_fact_that_is_no_number_is_refused_by_name():
    with pytest.raises(errors.SpecificationError, match="The fact 'rate'"):
        lint(with_facts(TIDY, mechanism="permutation-swapping", rate="often", largest_stratum=10))


def test_facts_of_other_names_are_not_looked_at():
    assert not found(with_facts(TIDY, weather="fair"))


def meanings():
    """What the text below each name of a fact says, by fact."""
    lines = itertools.pairwise(ast.parse(Path(facts.__file__).read_text(encoding="utf-8")).body)
    below = [(a.value, b.value) for a, b in lines if isinstance(a, ast.Assign) and isinstance(b, ast.Expr)]
    return {ast.literal_eval(name): " ".join(ast.literal_eval(text).split()) for name, text in below}


def test_every_fact_is_explained():
    constants = {value for name, value in vars(facts).items() if name.isupper() and isinstance(value, str)}
    assert constants == set(meanings())


def test_findings_survive_being_carried_by_the_specification():
    carried = PLAIN.with_findings(*lint(PLAIN))
    assert Specification.from_json(carried.to_json()) == carried
    assert [finding.id for finding in carried.findings] == [finding.id for finding in lint(carried)]


# -- smaller is not better -------------------------------------------------------------------------------------------


def test_a_smaller_epsilon_from_more_invariants_is_never_called_better():
    coarse = deployment("psa-2020-state-county-p50").specification
    fine = deployment("psa-2020-blockgroup-size-block-p05").specification
    assert fine.budget.number < coarse.budget.number
    said = {finding.id: finding for finding in lint(fine, before=coarse)}
    assert said["more-invariants"].words.startswith("Epsilon falls from 16.42 to 11.37, and more is held fixed: ")
    assert "is not better privacy" in said["more-invariants"].why
    assert "16.42" in said["more-invariants"].why and "11.37" in said["more-invariants"].why
    assert "4,549 records and not 13,475,623" in said["finer-strata"].words
    assert "although fewer records move" in said["finer-strata"].words
    assert "multiverse" in said["different-flavors"].words


def test_the_two_numbers_of_that_rule_are_those_of_table_3_5():
    assert deployment("psa-2020-state-county-p50").specification.budget.shown() == "16.42"
    assert deployment("psa-2020-blockgroup-size-block-p05").specification.budget.shown() == "11.37"


def test_less_noise_alone_is_not_mistaken_for_a_manoeuvre():
    """Two budgets of one flavor are comparable: the smaller one is the stronger promise, and nothing is said."""
    assert not found((replace(TIDY, budget=Budget("0.5")), TIDY))


def test_invariants_that_replace_others_are_told_on_both_sides():
    words = found((held(BLOCKS).at("0.5"), held(STATES).at(1)))["more-invariants"]
    assert (
        "more is held fixed: the number of persons by block. No longer held fixed: the number of persons by state."
        in words
    )


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ((replace(TIDY, domain=replace(RAW, restricted_by=("top-coding",))), TIDY), "domain-restricted"),
        ((held(BLOCKS).at("0.5"), TIDY), "more-invariants"),
        ((premetric(replace(TIDY, budget=Budget("0.5"))), premetric(unit="household")), "finer-unit"),
        ((flavors.approximate("1e-9", bounded=False, domain=RAW).at("0.5"), TIDY), "weaker-standard"),
        ((flavors.subspace("sums", bounded=False, domain=RAW).at("0.5"), TIDY), "fewer-events"),
    ],
)
def test_every_way_to_a_smaller_number_is_found_and_the_numbers_are_not_compared(way, expected):
    assert {expected, "different-flavors"} <= set(found(way))


# -- known deployments -----------------------------------------------------------------------------------------------


def test_what_is_said_of_the_2020_redistricting_file():
    said = found(deployment("topdown-2020-pl").specification)
    assert set(said) == {
        "late-start",
        "invariants-many",
        "hidden-invariant",
        "household-not-covered",
        "units-after-imputation",
        "later-releases-not-covered",
    }
    assert "the number of persons by household is held fixed" in said["hidden-invariant"]
    assert "Census Edited File" in said["late-start"]
    assert said["invariants-many"].startswith("3 invariants")
    assert "PL 94-171" in said["later-releases-not-covered"]


def test_what_is_said_of_a_swap_of_the_2020_households():
    said = found(deployment("psa-2020-state-county-p05").specification)
    assert {"late-start", "invariants-many", "nearest-not-one", "vacuous-budget", "realised-not-policy"} <= set(said)
    assert not {"hidden-invariant", "household-not-covered", "rate-above-best", "unattainable-epsilon"} & set(said)
    assert "epsilon = 38.73, not epsilon = 19.37" in said["nearest-not-one"]


def test_swapping_and_topdown_are_not_comparable_as_numbers():
    swapping, topdown = (deployment(name).specification for name in ("psa-2020-state-county-p05", "das-2020-overall"))
    said = found((topdown, swapping))
    assert "differ in multiverse and input premetric and output premetric" in said["different-flavors"]
    assert "D_Mult and is D_NoR" in said["weaker-standard"]
    assert "more-invariants" not in said, "epsilon and rho have no order"


@pytest.mark.parametrize("name", names())
def test_every_known_deployment_can_be_questioned(name):
    assert "late-start" in found(deployment(name).specification)


# -- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    return (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")


def test_the_page_of_rules_is_up_to_date():
    rows = "".join(line + "\n" for line in page().splitlines() if line.startswith("| "))
    values = {facts.PERMUTATION_SWAPPING, facts.SURVEY, facts.THIS_DATA, facts.AS_IN_THE_INPUT, facts.NOT_STATED}
    values |= {facts.TYPES_AND_FORMATS, facts.VALUES}
    told = {name: meaning for name, meaning in meanings().items() if name not in values}
    expected = table() + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in told.items())
    assert rows.replace("| fact | meaning |\n| --- | --- |\n", "") == expected


def test_the_example_of_the_page_runs_and_prints_what_it_shows(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", page(), flags=re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", page(), flags=re.S)
    exec(compile(code, "docs/lint.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_rules_say_when_they_speak():
    for rule in rules():
        assert rule.when.endswith(".") and re.fullmatch("[a-z-]+", rule.id), rule.id
