"""Faults that an audit of a swapping program must find: their power, computed from the laws, and that it is true.

Every fault is tried thirty times in the slow suite, and the audit is not told which it is. Blatant ones are tried on a
small file, for which their power is computed too; a rate that is rounded to 1/256 and integers that are biased by 1%
need the default effort, and are tried once each: their power is in the computation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest
import swap_mutants as mutants
from scipy import stats

from stirred.lab.audit import p_values as tails
from stirred.lab.audit.laws import chance_of_the_same, number_of_exchanges, number_selected
from stirred.lab.audit.swap_audit import DEFAULT_RECORDS, DEFAULT_RUNS, audit_swap, plan_program
from stirred.lab.audit.swap_questions import (
    EXCHANGES,
    EXCHANGING,
    ORDERS,
    Effort,
    power_of_bias,
    power_of_rate,
    repeated_run,
    smallest_bias,
    smallest_rate,
    spread_over_runs,
    variance_of_integers,
)
from stirred.lab.audit.swap_runs import RECORDS, contrasts, correlated, stratum_sizes
from stirred.lab.definitions.swap_practices import lone_dropped, lone_kept, lone_partnered
from stirred.noise import SeededSource, derange_groups, shuffle_groups
from stirred.swap import SwapPlan
from stirred.swap.law import permutation
from stirred.tables.groups import Groups

RATE = 0.05
PLAN = SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=RATE)
WITH_ID = SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=RATE, id="household")
SMALL = (10_000, 24)
SURE = 0.999

DEFAULT_EFFORT = Effort(stratum_sizes(DEFAULT_RECORDS, RATE), RATE, DEFAULT_RUNS)
SMALL_EFFORT = Effort(stratum_sizes(SMALL[0], RATE), RATE, SMALL[1])

FAULTS = {
    "a fixed number in each stratum": ({"select": mutants.fixed_in_stratum}, "selected-by-stratum"),
    "a fixed number in the file": ({"select": mutants.fixed_in_file}, "spread-over-runs"),
    "pairs": ({"select": mutants.even_number, "arrange": mutants.in_pairs}, "exchanges"),
    "one permutation for strata of a size": ({"whole": mutants.alike_in_equal_strata}, "between-strata"),
    "one seed for all strata": ({"whole": partial(mutants.alike_in_equal_strata, one_seed=True)}, "between-strata"),
    "cycles": ({"arrange": mutants.in_a_circle}, "exchanges"),
    "a lone record dropped": ({"select": mutants.lone_dropped}, "selected-by-stratum"),
    "a lone record kept": ({"select": mutants.lone_kept}, "selected-by-stratum"),
    "a lone record given a partner": ({"select": mutants.lone_partnered}, "selected-by-stratum"),
    "rows as in the input": ({"order": mutants.as_in_the_input}, "row-order"),
    "rows sorted by stratum only": ({"order": mutants.sorted_by_stratum}, "row-order"),
    "rows sorted before swapping": ({"order": mutants.sorted_before_swapping}, "moved-in-row-order"),
    "moved rows at the end": ({"order": mutants.moved_last}, "moved-in-row-order"),
    "ids that survive": ({"ids": mutants.old_ids}, "ids"),
    "ids in the order of the input": ({"ids": mutants.ids_in_input_order}, "id-order"),
    "a repeated seed": ({"repeat": True}, "repeated-run"),
}


def audited(seed, records=SMALL[0], runs=SMALL[1], rate=RATE, **fault):
    plan = WITH_ID if "ids" in fault else PLAN
    program = mutants.swapper(rate, seed, **fault)
    return audit_swap(plan, program, records=records, runs=runs, source=SeededSource(seed))


@pytest.fixture(scope="module")
def allotted():
    """What each question is judged at; it does not depend on the effort."""
    return {one.name: one.allotted for one in audited(1, 500, 2).results}


# -- power, computed -----------------------------------------------------------------------------------------


def power_of_selection(effort, law, allotted):
    """The power of the question ``selected-by-stratum`` if P(K = k) in a stratum of n records is ``law(n)[k]``."""
    tables = []
    for size, times in effort.by_size:
        tables.append((times * law(size), times * number_selected(size, effort.rate)))
    return power_of_counts(tables, allotted)


def power_of_exchanges(effort, law, allotted):
    """The power of the question ``exchanges`` if k selected records have 0, 1, 2, 3 or more cycles of two with the
    probabilities ``law(k)``, and are selected as they should be."""
    under_fault = without = np.zeros(EXCHANGES + 1)
    for size, times in effort.by_size:
        number = number_selected(size, effort.rate)
        for k in np.flatnonzero(times * number > 1e-6):
            if k >= EXCHANGING:
                without = without + times * number[k] * np.array(number_of_exchanges(int(k), EXCHANGES))
                under_fault = under_fault + times * number[k] * np.array(law(int(k)))
    return power_of_counts([(under_fault, without)], allotted)


def power_of_reuse(effort, allotted):
    """The power of the question ``between-strata`` if in each run all strata of a size move alike.

    All pairs of a size then coincide in every run in which such a stratum moves some; one size is enough.
    """
    pairs = {size: times // effort.runs // 2 for size, times in effort.by_size}
    expected = sum(many * effort.runs * chance_of_the_same(size, effort.rate) for size, many in pairs.items())
    needed = math.ceil(expected) + 1
    while tails.of_rare_coincidences(needed, expected) >= allotted / (2 + len(ORDERS)):
        needed += 1
    return max(
        float(stats.binom.sf(math.ceil(needed / many) - 1, effort.runs, 1 - number_selected(size, effort.rate)[0]))
        for size, many in pairs.items()
        if many
    )


def power_of_counts(tables, allotted):
    """The power of a chi-square test, from the numbers that are to be expected under a fault and without it."""
    noncentrality, degrees, impossible = 0.0, 0, 0.0
    for under_fault, without in tables:
        impossible += float(np.sum(under_fault[without == 0]))
        starts = tails.cells(without)
        if len(starts) > 1:
            found, wanted = np.add.reduceat(under_fault, starts), np.add.reduceat(without, starts)
            noncentrality += float(np.sum((found - wanted) ** 2 / wanted))
            degrees += len(starts) - 1
    if degrees == 0:
        return -math.expm1(-impossible)
    low, high = 0.0, 1e9  # the statistic from which on the p-value is below the allotted one
    for _ in range(200):
        middle = (low + high) / 2
        p_value = tails.skewed(float(stats.chi2.sf(middle, degrees)), tails.FEWEST_EXPECTED)
        low, high = (middle, high) if p_value >= allotted else (low, middle)
    mean, variance = degrees + noncentrality, 2 * (degrees + 2 * noncentrality)
    missed = float(stats.norm.cdf((high - mean) / math.sqrt(variance)))
    return 1 - missed * math.exp(-impossible)  # something that cannot happen is found as soon as it is seen


def moved_from_one(size, to):
    """The binomial law with the probability of a lone record given to other numbers."""
    law = stats.binom.pmf(np.arange(size + 1), size, RATE)
    lone, law[1] = law[1], 0.0
    return law + lone * to


def dropped(size):
    return moved_from_one(size, np.arange(size + 1) == 0)


def partnered(size):
    return moved_from_one(size, np.arange(size + 1) == 2)


def kept(size):
    others = stats.binom.pmf(np.arange(size), size - 1, RATE)
    others[0] = 0.0
    return moved_from_one(size, np.concatenate([[0.0], others / others.sum()]))


def fixed(size):
    number = round(size * RATE)
    return (np.arange(size + 1) == (number if number > 1 else 0)).astype(float)


@pytest.mark.parametrize(("law", "practice"), [(dropped, lone_dropped), (kept, lone_kept), (partnered, lone_partnered)])
def test_laws_of_the_faults_are_the_enumerated_ones(law, practice):
    expected = np.zeros(6)
    for chosen, chance in practice([Fraction(1, 20)] * 5).items():
        expected[len(chosen)] += float(chance)
    assert law(5) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("effort", [DEFAULT_EFFORT, SMALL_EFFORT], ids=["default", "small"])
@pytest.mark.parametrize("law", [fixed, dropped, kept, partnered])
def test_wrong_numbers_of_selected_records_are_found(law, effort, allotted):
    assert power_of_selection(effort, law, allotted["selected-by-stratum"]) > SURE


@pytest.mark.parametrize("effort", [DEFAULT_EFFORT, SMALL_EFFORT], ids=["default", "small"])
def test_values_that_go_in_circles_or_in_pairs_are_found(effort, allotted):
    in_circles = (1.0, 0.0, 0.0, 0.0)
    assert power_of_exchanges(effort, lambda k: in_circles, allotted["exchanges"]) > SURE
    assert power_of_exchanges(effort, lambda k: np.arange(4) == min(3, k // 2), allotted["exchanges"]) > SURE


@pytest.mark.parametrize("effort", [DEFAULT_EFFORT, SMALL_EFFORT], ids=["default", "small"])
def test_a_permutation_that_is_used_again_is_found(effort, allotted):
    assert power_of_reuse(effort, allotted["between-strata"]) > SURE


@pytest.mark.parametrize("effort", [DEFAULT_EFFORT, SMALL_EFFORT], ids=["default", "small"])
def test_what_leaves_nothing_to_chance_is_found_for_certain(effort, allotted):
    runs = np.full(effort.runs, 500)
    assert spread_over_runs(runs, effort.moved(RATE)[1] / effort.runs) < allotted["spread-over-runs"]
    assert repeated_run(effort.sizes, RATE, effort.runs) < allotted["repeated-run"]
    assert 4 * effort.runs * correlated(np.arange(effort.sizes.sum())) < allotted["row-order"]


def test_a_rate_on_a_grid_and_biased_integers_are_found_at_default_effort(allotted):
    assert power_of_rate(DEFAULT_EFFORT, 13 / 256, allotted["rate"]) > SURE
    assert power_of_rate(DEFAULT_EFFORT, 1.01 * RATE, allotted["rate"]) > SURE  # selecting by such integers
    assert power_of_bias(DEFAULT_EFFORT, 0.01, allotted["integers"]) > SURE
    assert smallest_rate(DEFAULT_EFFORT, allotted["rate"]) < 1 / 256 / 8
    assert smallest_bias(DEFAULT_EFFORT, allotted["integers"]) < 0.01


def test_what_is_too_small_is_said_not_to_be_found(allotted):
    assert power_of_rate(SMALL_EFFORT, 13 / 256, allotted["rate"]) < 0.01
    assert power_of_bias(SMALL_EFFORT, 0.01, allotted["integers"]) < 0.01
    off = smallest_rate(SMALL_EFFORT, allotted["rate"])
    assert power_of_rate(SMALL_EFFORT, RATE + off, allotted["rate"]) == pytest.approx(SURE, abs=1e-6)
    assert power_of_rate(SMALL_EFFORT, RATE, allotted["rate"]) < allotted["rate"]


@pytest.mark.parametrize("k", [8, 20, 100, 300])
def test_variances_of_integers_are_those_of_drawn_derangements(k):
    groups = 600_000 // k
    starts = np.arange(groups + 1) * k
    integers, _ = contrasts(derange_groups(starts, SeededSource(k)).astype(np.int64), starts)
    squares = integers[0] ** 2
    # 2% of the variance for what the formula leaves out, and 6.5 standard errors: 1e-10.
    room = 0.02 * variance_of_integers(k) + 6.5 * squares.std() / np.sqrt(groups)
    assert abs(squares.mean() - variance_of_integers(k)) < room


# -- power, tried --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault):
    how, question = FAULTS[fault]
    audit = audited(100, **how)
    assert question in {one.name for one in audit.wrong}, audit


def test_bytes_modulo_a_number_are_found():
    # In the largest strata about 200 are selected: of integers below 200, those below 56 come twice as often.
    audit = audited(100, 200_000, 12, arrange=mutants.with_bytes_modulo)
    assert "integers" in {one.name for one in audit.wrong}, audit


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_thirty_times_out_of_thirty(fault):
    how, question = FAULTS[fault]
    missed = [seed for seed in range(30) if question not in {one.name for one in audited(seed, **how).wrong}]
    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "fault"),
    [("rate", {"rate": 13 / 256}), ("integers", {"arrange": mutants.with_biased_integers(0.01)})],
    ids=["rate of 13/256", "integers biased by 1%"],
)
def test_a_small_fault_is_found_at_default_effort(question, fault):
    assert question in {one.name for one in audited(1, None, None, **fault).wrong}


@pytest.mark.slow
def test_what_an_audit_says_it_would_find_is_found(allotted):
    off, bias = smallest_rate(SMALL_EFFORT, allotted["rate"]), smallest_bias(SMALL_EFFORT, allotted["integers"])
    assert off < 0.01
    assert bias < 0.3
    faults = {"rate": {"rate": RATE + off}, "integers": {"arrange": mutants.with_biased_integers(bias)}}
    for question, fault in faults.items():
        missed = sum(question not in {one.name for one in audited(seed, **fault).wrong} for seed in range(30))
        # One in a thousand may be missed; five or more of thirty would be with probability 1e-10.
        assert missed < 5


# -- no false alarms -----------------------------------------------------------------------------------------


def drawn_by_our_kernel(plan, source):
    """The part of our own program that draws, without reading and checking a file."""

    def program(tables):
        frame = tables[RECORDS]
        strata, county = (frame[name].to_numpy().astype(np.uint32) for name in ("size", "county"))
        sizes = np.bincount(strata)
        moves = permutation.draw(Groups(strata, len(sizes)), sizes, plan.rate, source)
        order = shuffle_groups(np.array([0, len(strata)]), source)
        return {RECORDS: frame.with_columns(pl.Series("county", moves.apply(county)))[order]}

    return program


def audits_of_ours(program, plan, count, records):
    for seed in range(count):
        own = program(plan, source=SeededSource(seed))
        made_from = SeededSource(10_000 + seed)
        yield audit_swap(plan, own, records=records, runs=6, false_alarm=0.05, source=made_from)


@pytest.mark.slow
def test_false_alarms_are_no_more_than_stated():
    # At a rate of one half a small file has enough moved records for every question but repeated-run to say something.
    half = PLAN.model_copy(update={"rate": Fraction(1, 2)})
    audits = list(audits_of_ours(drawn_by_our_kernel, half, 1000, 2400))
    # As many as a program with exactly this rate of false alarms would have with probability 1e-9, or 1e-10 for each of
    # the thirteen questions.
    assert sum(not audit.passed for audit in audits) <= stats.binom.isf(1e-9, 1000, 0.05)
    for number, result in enumerate(audits[0].results):
        p_values = np.array([audit.results[number].p_value or 1.0 for audit in audits])
        assert np.count_nonzero(p_values < 0.05) <= stats.binom.isf(1e-10, 1000, 0.05), result.name
        assert result.name == "repeated-run" or result.p_value is None or p_values.min() < 0.9, result.name


@pytest.mark.slow
def test_false_alarms_are_no_more_than_stated_for_the_whole_of_our_program():
    alarms = sum(not audit.passed for audit in audits_of_ours(plan_program, PLAN, 60, 1500))
    assert alarms <= stats.binom.isf(1e-9, 60, 0.05)


@pytest.mark.slow
def test_nothing_is_found_in_our_own_program_at_default_effort():
    audit = audit_swap(PLAN, plan_program(PLAN, SeededSource(5)), source=SeededSource(9))
    assert audit.passed, audit
