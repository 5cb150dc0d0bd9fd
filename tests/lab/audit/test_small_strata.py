"""Rates by rule, merged values and rounds: faults are found in small strata, or where these are idle, and nothing in
programs without one."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import swap_mutants as mutants
from scipy import stats

from stirred.errors import StirredError
from stirred.lab.audit.small_strata import make_idle, make_listed, merged_values, rule_of_records
from stirred.lab.audit.small_strata_laws import Laws, power_of_laws, smallest_off
from stirred.lab.audit.swap_audit import audit_swap, plan_program
from stirred.lab.audit.swap_runs import RECORDS
from stirred.noise import SeededSource
from stirred.swap import LinkedTable, RateRule, Round, SwapPlan
from stirred.swap.data.counting import rates_of_dataset
from stirred.swap.data.dataset import load, strata_groups, with_merged
from stirred.swap.plan.sections import MAIN, Coarsening

ROLES = {
    "unit": "household", "match": ["region", "size"], "swap": ["county", "town"], "hold": ["tenure", "age"],
}  # fmt: skip
OTHERWISE = RateRule(rate=0.1, otherwise=True)
RENTED = RateRule(rate=0.5, where={"tenure": ["rented", "free"]})
PERSONS = LinkedTable(name="persons", link="h", hold=["sex"])
COPIED = LinkedTable(name="persons", link="h", id="person", hold=["sex"], copies={"lives": "county", "here": "town"})
TOWNS = Round(swap=["town"], match_also=["county"], rate=0.4)
MERGED = {"column": "size", "merge": [["9", "10"], ["8", "9", "10"]], "at_least": 3}

PLANS = {
    "rules": SwapPlan(
        **ROLES,
        rates=[RENTED, RateRule(rate=0.3, where={"size": [8]}), RateRule(rate=0.2, unique_on=["age"]), OTHERWISE],
    ),
    "unique": SwapPlan(**ROLES, rates=[RateRule(rate=0.5, unique_on="held", at_most=2), OTHERWISE]),
    "rows of persons": SwapPlan(
        **ROLES,
        id="h",
        rates=[RateRule(rate=0.5, table="persons", unique_on=["sex", "tenure"]), OTHERWISE],
        linked=[PERSONS],
    ),
    "rounds": SwapPlan(**ROLES, rate=0.25, rounds=[TOWNS]),
    "merged": SwapPlan(**ROLES, rate=0.3, coarsen=MERGED),
    "all": SwapPlan(**ROLES, rates=[RENTED, OTHERWISE], rounds=[TOWNS], coarsen={**MERGED, "at_least": 12}),
    "three rounds": SwapPlan(
        **ROLES | {"swap": ["county", "town", "street"]},
        rate=0.25,
        rounds=[
            Round(swap=["town", "street"], match_also=["county"], rate=0.4),
            Round(swap=["street"], match_also=["town"], rate=0.3),
        ],
    ),
    "one column each": SwapPlan(
        **ROLES | {"match": ["size"], "swap": ["county"], "hold": ["tenure"]},
        rates=[RateRule(rate=0.5, where={"size": [8, 9]}), OTHERWISE],
    ),
    "persons": SwapPlan(**ROLES, id="h", rates=[RENTED, OTHERWISE], linked=[COPIED]),
    "persons and rounds": SwapPlan(**ROLES, id="h", rate=0.25, rounds=[TOWNS], linked=[COPIED]),
}


def audited(plan, program, records=2_000, runs=2, seed=1, **given):
    return audit_swap(plan, program, records=records, runs=runs, source=SeededSource(seed), **given)


def found(audit):
    return {one.name for one in audit.wrong}


# -- the made file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_rules_and_strata_are_those_of_a_release(plan):
    made = make_listed(plan, 2_000, SeededSource(1))
    dataset = as_released(plan, made)
    if plan.rates:
        own = rule_of_records(plan, made.tables)
        assert np.array_equal(rates_of_dataset(dataset).rule, own)
        assert set(own.tolist()) == set(range(len(plan.rates))), "every rule has records"
    sizes = strata_groups(plan, with_merged(plan, dataset.table)).sizes()
    assert sorted(sizes.tolist()) == sorted(made.sizes.tolist())


def as_released(plan, made):
    """A made file as releases read it."""
    return load(plan, {MAIN if name == RECORDS else name: frame for name, frame in made.tables.items()})


COUNTED = RateRule(rate=0.5, unique_on=["region", "size", "age"], at_most=3)
IDLE = PLANS | {"all counted": SwapPlan(**ROLES, rates=[COUNTED, OTHERWISE])}


@pytest.mark.parametrize("plan", IDLE.values(), ids=IDLE.keys())
def test_rules_merged_values_and_rounds_are_idle_in_the_second_file(plan):
    made = make_idle(plan, 2_000, SeededSource(1))
    dataset = as_released(plan, made)
    sizes = strata_groups(plan, with_merged(plan, dataset.table)).sizes()
    assert sorted(sizes.tolist()) == sorted(made.sizes.tolist())
    assert sizes.max() > 20
    if plan.rates:
        several = made.row[made.sizes[made.stratum] > 1]
        (rule,) = set(rates_of_dataset(dataset).rule[several].tolist())
        assert float(plan.rates[rule].rate) == made.rate
    for later in plan.rounds[:1]:
        assert not made.tables[RECORDS].select(*plan.match, *later.match_also).is_duplicated().any()
    assert made.tables[RECORDS].select(*plan.match, *plan.hold).is_duplicated().sum() == 0


def test_what_is_not_tried_without_a_second_file_is_said():
    plan = SwapPlan(**ROLES, rate=0.25, rounds=[Round(swap=["county", "town"], rate=0.4)])
    assert make_idle(plan, 2_000, SeededSource(1)) is None
    audit = audited(plan, plan_program(plan, SeededSource(7)), false_alarm=1e-9)
    assert audit.passed
    assert audit.runs == 2
    assert "the order of rows and ids, and whether strata and runs are independent: no file" in audit.limits[-1]


def test_places_of_a_third_round_are_not_always_those_of_the_second():
    types = make_listed(PLANS["three rounds"], 2_000, SeededSource(1)).types
    assert {len(set(one.places[1])) - len(set(one.places[0])) for one in types} >= {0, 1}


def test_values_are_merged_as_the_plan_says():
    coarsen = Coarsening(**MERGED)
    assert len(set(merged_values(coarsen, {"8": 1, "9": 1, "10": 1}).values())) == 1
    assert len(set(merged_values(coarsen, {"8": 3, "9": 3, "10": 3}).values())) == 3
    assert merged_values(coarsen, {"8": 3, "9": 2, "10": 1}) == {"8": "8", "9": "list 0", "10": "list 0"}
    assert merged_values(coarsen, {"7": 1}) == {"7": "7"}


def test_every_listed_law_adds_up_and_scores_have_mean_zero():
    laws = Laws(make_listed(PLANS["all"], 2_000, SeededSource(1)), 1)
    for law in laws.stated:
        assert law.sum() == pytest.approx(1, abs=1e-12)
    for scores in laws.scores:
        for law, score in zip(laws.stated, scores, strict=True):
            assert np.sum(law * score) == pytest.approx(0, abs=1e-9)


# -- programs with and without a fault -----------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_nothing_is_found_in_our_own_program_and_what_was_not_tried_is_said(plan):
    # The audit's own false-alarm rate, with fixed seeds.
    audit = audited(plan, plan_program(plan, SeededSource(7)), false_alarm=1e-9)
    assert audit.passed, audit
    assert audit.runs == 4
    assert audit.limits[-1].startswith("Not tried: strata of more than 5 records in which rules, merged values or")
    assert sum(one.allotted for one in audit.results) == pytest.approx(1e-9)
    asked = [one.name for one in audit.results]
    assert len(set(asked)) == len(asked)
    assert {"row-order", "repeated-run", "between-strata"} <= set(asked)
    assert ("linked-rows" in asked) == ("linked-in-small-strata" in asked) == bool(plan.linked)


def rules_with(number, **changes):
    rules = list(PLANS["rules"].rates)
    rules[number] = rules[number].model_copy(update=changes)
    return {"rates": tuple(rules)}


TURNED = (*PLANS["rules"].rates[1::-1], *PLANS["rules"].rates[2:])
ALONE = (PLANS["unique"].rates[0].model_copy(update={"at_most": 1}), OTHERWISE)
TWICE = (TOWNS, TOWNS.model_copy(update={"match_also": ()}))
THREE = PLANS["three rounds"].rounds
STREETS = THREE[1].model_copy(update={"match_also": ()})
SOONER, LATER = (Coarsening(**{**MERGED, "at_least": number}) for number in (4, 2))
FAULTS = {
    "another rate in one class": ("rules", rules_with(0, rate=Fraction(2, 5)), "rate-of-rule-1"),
    "one value of a rule ignored": ("rules", rules_with(0, where={"tenure": ("rented",)}), "rate-of-rule-1"),
    "a rule of match values ignored": ("rules", rules_with(1, where={"size": ("7",)}), "rate-of-rule-2"),
    "rules in another order": ("rules", {"rates": TURNED}, "listed-outcomes"),
    "a limit of sharing off by one": ("unique", {"rates": ALONE}, "listed-outcomes"),
    "a round left out": ("rounds", {"rounds": ()}, "rate-of-round-2"),
    "a round drawn twice": ("rounds", {"rounds": TWICE}, "rate-of-round-2"),
    "nothing merged": ("merged", {"coarsen": None}, "across-merged"),
    "merged where it is forbidden": ("merged", {"coarsen": SOONER}, "kept"),
    "not merged just below the limit": ("merged", {"coarsen": LATER}, "listed-outcomes"),
    "the last of three rounds left out": ("three rounds", {"rounds": THREE[:1]}, "rate-of-round-3"),
    "the last of three rounds drawn twice": ("three rounds", {"rounds": (*THREE, STREETS)}, "rate-of-round-3"),
}
EFFORT = dict.fromkeys(
    ("another rate in one class", "rules in another order", "the last of three rounds drawn twice"), (8_000, 4)
)
"""Records and runs of faults that need more than a few."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault):
    name, changes, question = FAULTS[fault]
    audit = audited(PLANS[name], mutants.of_another_plan(PLANS[name], 5, **changes), *EFFORT.get(fault, (5_000, 2)))
    assert question in found(audit), audit


LARGE_ONLY = partial(partial, mutants.in_large_strata_only)
OTHER_FAULTS = {
    "persons left behind": ("persons", mutants.persons_left_behind, "linked-in-small-strata"),
    "persons left behind in large strata": ("persons", LARGE_ONLY(mutants.persons_left_behind), "linked-rows"),
    "copies not rewritten": ("persons", mutants.copies_not_rewritten, "linked-in-small-strata"),
    "copies not rewritten in large strata": ("persons", LARGE_ONLY(mutants.copies_not_rewritten), "linked-rows"),
    "copies of the first round": ("persons and rounds", mutants.copies_of_the_first_round, "linked-in-small-strata"),
    "rows as in the input": ("rules", mutants.rows_as_in_the_input, "row-order"),
    "one draw for all runs": ("merged", mutants.the_same_in_every_run, "repeated-run"),
    "one draw for all strata": ("rounds", mutants.the_same_in_every_stratum, "between-strata"),
}


@pytest.mark.parametrize("fault", OTHER_FAULTS)
def test_a_fault_beyond_rates_is_found(fault):
    name, program, question = OTHER_FAULTS[fault]
    audit = audited(PLANS[name], program(PLANS[name], 5))
    assert question in found(audit), audit


def test_a_second_file_that_comes_back_broken_ends_the_audit_there():
    plan = PLANS["rules"]

    def one_lost(plan, seed):
        own = plan_program(plan, SeededSource(seed))
        return lambda tables: {RECORDS: own(tables)[RECORDS][1:]}

    audit = audited(plan, mutants.in_large_strata_only(one_lost, plan, 5))
    assert found(audit) == {"rows", "kept-values", "kept-counts"}
    assert audit.runs == 3
    assert "Nothing else was asked of the second file" in audit.limits[-1]


@pytest.mark.parametrize("name", ["rounds", "merged"])
def test_drawing_again_where_nothing_moved_is_found(name):
    audit = audited(PLANS[name], mutants.drawn_again_where_nothing_moved(PLANS[name], 5), 5_000)
    assert "listed-outcomes" in found(audit), audit


def test_the_power_is_that_of_the_known_laws():
    laws = Laws(make_listed(PLANS["rounds"], 20_000, SeededSource(1)), 6)
    off = smallest_off(laws, 1, 1e-7)
    shifted = laws.at([laws.rates[0], laws.rates[1] + off])
    assert power_of_laws(laws, 1, shifted, 1e-7) > 0.99
    assert power_of_laws(laws, 1, laws.stated, 1e-7) < 1e-7
    assert power_of_laws(laws, 1, laws.at([laws.rates[0], 0.0]), 1e-7) > 0.999


@pytest.mark.slow
def test_a_rate_of_48_for_50_is_found_at_default_effort():
    plan = SwapPlan(**ROLES, rates=[RENTED, OTHERWISE])
    wrong = (RENTED.model_copy(update={"rate": Fraction(12, 25)}), OTHERWISE)
    audit = audit_swap(plan, mutants.of_another_plan(plan, 5, rates=wrong), source=SeededSource(1))
    assert "rate-of-rule-1" in found(audit), audit


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rules", "rounds", "merged"])
def test_false_alarms_are_no_more_than_stated(name):
    plan = PLANS[name]
    alarms = sum(
        not audited(plan, plan_program(plan, SeededSource(seed)), 2_000, 3, 500 + seed, false_alarm=0.05).passed
        for seed in range(60)
    )
    # As many as a program with exactly this rate of false alarms would have with probability 1e-9.
    assert alarms <= stats.binom.isf(1e-9, 60, 0.05)


def test_a_plan_without_small_strata_is_refused():
    plan = SwapPlan(**ROLES | {"match": []}, rates=[RENTED, OTHERWISE])
    with pytest.raises(StirredError, match="no small strata") as refused:
        audited(plan, lambda tables: tables)
    assert refused.value.kind == "audit-of-plan"
