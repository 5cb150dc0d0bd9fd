"""Sensitivities are never below what a search over all small datasets finds, and are the published ones."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from all_small_surveys import Surveys, largest_change

from repeats import times
from stirred import errors
from stirred.survey.plan.sensitivity import (
    Bounds,
    Estimator,
    PostStratum,
    SurveyFacts,
    Units,
    _largest_difference,
    sensitivity,
    weights_fixed,
)
from stirred.survey.plan.settings import CHANGES, SETTINGS, setting

FRAME_FIXED = setting("target sample", "frame")
RATIO = Estimator("ratio", "ratio")
KINDS = {
    "horvitz-thompson": Estimator(),
    "hajek": Estimator("hajek", "mean"),
    "ratio": RATIO,
}


def box(weight, value, n, **more) -> SurveyFacts:
    units = Units(Bounds(*weight), Bounds(*value), more.pop("size", None))
    return SurveyFacts((units,), fewest=n, most=n, **({"everybody_responds": True} | more))


def found(estimator, facts, at=FRAME_FIXED, change="unit") -> Fraction:
    return sensitivity(estimator, facts, at, change).value


def facts_of(surveys: Surveys, number: int, **more) -> SurveyFacts:
    def bounds(table, k):
        return Bounds(*(int(end) for end in table[number, k]))

    strata = more.pop("strata", [""] * surveys.weight.shape[1])
    units = tuple(
        Units(bounds(surveys.weight, k), bounds(surveys.value, k), bounds(surveys.size, k), stratum=stratum)
        for k, stratum in enumerate(strata)
    )
    return SurveyFacts(units, **more)


def require_no_less(estimator, surveys, searched, at, change, attained=False, **more):
    for number, brute in enumerate(searched):
        one = sensitivity(estimator, facts_of(surveys, number, **more), at, change)
        assert float(one.value) >= brute - 1e-9, (estimator.kind, at, change, number)
        if attained:
            assert one.attained
        if one.attained:
            assert math.isclose(float(one.value), brute, rel_tol=1e-9, abs_tol=1e-9), (estimator.kind, at, number)


# -- never below a search ------------------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("at", SETTINGS, ids=lambda at: f"setting-{at.number}")
@pytest.mark.parametrize("kind", KINDS)
def test_no_small_survey_changes_by_more_in_any_setting(kind, at):
    # 10 settings, 3 estimates, 2 readings, 3 cases, 20 random surveys each: 3,600 surveys, all datasets of each.
    rng = np.random.default_rng([18, at.number, list(KINDS).index(kind)])
    for change, (depends, responds, classes) in itertools.product(
        CHANGES, [(True, True, 1), (True, False, 2), (False, False, 2)]
    ):
        if at.level in ("population", "frame"):
            depends = False
        surveys = Surveys.random(rng, times(20), classes)
        fewest = 2 if responds else 1
        facts = {
            "design_depends_on_frame": depends,
            "population_changes_one": True,
            "everybody_responds": responds,
            "fewest": fewest,
            "most": 2,
        }
        free = (depends and not at.frame_invariant) or at.level == "population"
        vanish = at.level == "population" or (at.level != "responding sample" and not responds)
        if at.level == "responding sample":  # the number of respondents is fixed there
            facts["fewest"] = fewest = 2
        searched = largest_change(surveys, kind, change, slots=2, fewest=fewest, vanish=vanish, free_weights=free)
        require_no_less(KINDS[kind], surveys, searched, at, change, **facts)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_three_records_with_final_weights_change_as_where_all_weights_may(kind, change):
    surveys = Surveys.random(np.random.default_rng(5), 25, 1)
    facts = {"weights": "final", "weights_cut_by_rule": True, "everybody_responds": True, "fewest": 3, "most": 3}
    searched = largest_change(surveys, kind, change, slots=3, fewest=3, free_weights=True)
    require_no_less(KINDS[kind], surveys, searched, FRAME_FIXED, change, kind != "ratio", **facts)


@pytest.mark.repeats
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_units_are_exchanged_within_strata_only(kind, change):
    surveys = Surveys.random(np.random.default_rng(6), times(60), 3)
    facts = {"strata": ["a", "a", "b"], "stratum_sizes_fixed": True, "everybody_responds": True}
    searched = largest_change(surveys, kind, change, slots=2, fewest=2, slot_classes=[[0, 1], [2]])
    for at in (FRAME_FIXED, setting("responding sample", "frame")):
        require_no_less(KINDS[kind], surveys, searched, at, change, fewest=2, most=2, **facts)


def test_strata_hold_nobody_in_the_responding_sample_where_some_do_not_answer():
    # One of each stratum is selected, and one of the two answers: a respondent of a may be replaced by one of b.
    surveys = Surveys.random(np.random.default_rng(7), 60, 2)
    facts = {"strata": ["a", "b"], "stratum_sizes_fixed": True, "fewest": 1, "most": 1}
    searched = largest_change(surveys, "horvitz-thompson", "unit", slots=1, fewest=1)
    within = largest_change(surveys, "horvitz-thompson", "unit", slots=1, fewest=1, slot_classes=[[0]])
    assert (searched > within).any()
    for fixed in ("frame", "target sample"):
        require_no_less(Estimator(), surveys, searched, setting("responding sample", fixed), "unit", **facts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_survey_of_three_records_changes_by_more(kind):
    rng = np.random.default_rng([19, list(KINDS).index(kind)])
    for classes, vanish, change in itertools.product((1, 2), (False, True), CHANGES):
        surveys = Surveys.random(rng, 100, classes)
        fewest = 2 if vanish else 3
        searched = np.concatenate(
            [
                largest_change(
                    Surveys(*(part[at : at + 10] for part in (surveys.weight, surveys.value, surveys.size))),
                    kind,
                    change,
                    slots=3,
                    fewest=fewest,
                    vanish=vanish,
                )
                for at in range(0, 100, 10)
            ]
        )
        facts = {"everybody_responds": not vanish, "fewest": fewest, "most": 3}
        require_no_less(KINDS[kind], surveys, searched, FRAME_FIXED, change, **facts)


def test_the_difference_of_two_shares_is_largest_at_an_end_or_where_it_turns():
    rng = np.random.default_rng(15)
    inside = 0
    for _ in range(400):
        a, b = (Fraction(int(one)) for one in rng.integers(-9, 10, size=2))
        z, y = (Fraction(int(one)) for one in rng.integers(1, 9, size=2))
        rest = tuple(sorted(Fraction(int(one), 4) for one in rng.integers(0, 80, size=2)))
        t = np.linspace(float(rest[0]), float(rest[1]), 4001)
        tried = float(a) / (t + float(z)) - float(b) / (t + float(y))
        bound = float(_largest_difference((a, z), (b, y), rest))
        assert bound >= tried.max() - 1e-12
        assert bound == pytest.approx(tried.max(), abs=1e-5)
        inside += 0 < tried.argmax() < 4000
    assert inside > 10


@pytest.mark.parametrize("most", range(1, 9))
def test_all_weights_changing_is_worst_with_half_of_the_records_high(most):
    rng = np.random.default_rng(most)
    for fewest in range(1, most + 1):
        low, high = sorted(int(one) for one in rng.integers(1, 30, size=2))
        r = Fraction(high, low)
        brute = max(
            (k + 1) * r / ((k + 1) * r + n - 1 - k) - k / (k + (n - k) * r)
            for n in range(fewest, most + 1)
            for k in range(n)
        )
        units = (Units(Bounds(low, high), Bounds(0, 1)),)
        facts = SurveyFacts(units, fewest=fewest, most=most)
        assert found(Estimator("hajek", "mean"), facts, setting("target sample")) == brute


@pytest.mark.repeats
def test_a_unit_that_leaves_the_frame_has_another_one_sampled_in_its_place():
    # Four units in random order; those on the frame are sampled in that order until two are. Weights are N / 2.
    rng = np.random.default_rng(9)
    states = [s for s in itertools.product((None, 0, 1), repeat=4) if sum(v is not None for v in s) >= 2]
    for _ in range(times(150)):
        ends = sorted(int(one) for one in rng.integers(-5, 6, size=2))
        totals = {}
        for state in states:
            there = [ends[one] for one in state if one is not None]
            totals[state] = Fraction(len(there), 2) * sum(there[:2])
        brute = max(
            abs(totals[s] - totals[t])
            for s, t in itertools.combinations(states, 2)
            if sum(a != b for a, b in zip(s, t, strict=True)) == 1
        )
        facts = box((1, 2), ends, 2, population_changes_one=True)
        for change in CHANGES:
            assert found(Estimator(), facts, setting("population"), change) >= brute


def test_whoever_is_sampled_in_its_place_may_be_of_another_kind():
    # Units 1 and 2 have values -5 or -4, unit 3 has 10 or 11. The first two on the frame are sampled, with weight 1.
    kinds = ((-5, -4), (-5, -4), (10, 11))
    states = [s for s in itertools.product((None, 0, 1), repeat=3) if sum(v is not None for v in s) >= 2]
    totals = {s: sum([kind[one] for kind, one in zip(kinds, s, strict=True) if one is not None][:2]) for s in states}
    brute = max(
        abs(totals[s] - totals[t])
        for s, t in itertools.combinations(states, 2)
        if sum(a != b for a, b in zip(s, t, strict=True)) == 1
    )
    units = tuple(Units(Bounds(1, 1), Bounds(*kind)) for kind in kinds)
    facts = SurveyFacts(units, fewest=2, most=2, population_changes_one=True, everybody_responds=True)
    assert brute == 16
    for change in CHANGES:
        assert found(Estimator(), facts, setting("population"), change) == brute


@pytest.mark.repeats
def test_a_record_that_is_no_longer_there_counts_within_strata_too():
    surveys = Surveys.random(np.random.default_rng(14), times(60), 2)
    facts = {"strata": ["a", "b"], "stratum_sizes_fixed": True, "fewest": 2, "most": 3}
    for kind, change in itertools.product(KINDS, CHANGES):
        ties = [[0], [1], [1]]
        searched = largest_change(surveys, kind, change, slots=3, fewest=2, vanish=True, slot_classes=ties)
        require_no_less(KINDS[kind], surveys, searched, FRAME_FIXED, change, **facts)


@pytest.mark.repeats
def test_sampling_proportional_to_size_stays_below_the_bound_for_all_weights():
    # w = T / (2 size): frames with other totals T of the sizes, and a sample of which one record changes.
    rng = np.random.default_rng(10)
    for _ in range(times(60)):
        sizes = sorted({int(one) for one in rng.integers(1, 6, size=3)})
        values = sorted(int(one) for one in rng.integers(-5, 6, size=2))
        totals = sorted(int(one) for one in rng.integers(12, 30, size=2))
        weights = [Fraction(t, 2 * s) for t in totals for s in sizes]
        records = list(itertools.product(sizes, values))
        brute = 0
        for kept, one, other in itertools.product(records, repeat=3):
            for t, u in itertools.product(totals, repeat=2):
                before = sum(Fraction(t, 2 * s) * v for s, v in (kept, one))
                brute = max(brute, abs(before - sum(Fraction(u, 2 * s) * v for s, v in (kept, other))))
        facts = box((min(weights), max(weights)), values, 2)
        for number in (4, 5, 7, 8):
            assert found(Estimator(), facts, SETTINGS[number - 1]) >= brute


# -- post-strata ---------------------------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize(("change", "stay"), [("unit", False), ("value", False), ("value", True)])
@pytest.mark.parametrize("free", [False, True])
def test_no_post_stratified_total_changes_by_more(change, stay, free):
    rng = np.random.default_rng([11, free, stay, len(change)])
    slots = 3
    records = list(itertools.product((0, 1), (0, 1), (0,) if free else (0, 1)))  # post-stratum, value, weight
    for _ in range(times(40)):
        ends = np.sort(rng.integers(-5, 6, size=(2, 2)), axis=1)
        weight = np.sort(rng.integers(1, 9, size=2))
        sizes = rng.integers(1, 50, size=2)
        grids = list(itertools.product(weight, repeat=slots)) if free else [None]
        tops, bottoms = np.full((8 if not free else 4,) * slots, np.nan), None
        bottoms = tops.copy()
        for index in itertools.product(range(len(records)), repeat=slots):
            held = [records[at] for at in index]
            if {g for g, _, _ in held} != {0, 1}:
                continue
            made = []
            for grid in grids:
                w = [weight[h[2]] for h in held] if grid is None else grid
                total = 0.0
                for g in (0, 1):
                    of = [(w[at], ends[g][h[1]]) for at, h in enumerate(held) if h[0] == g]
                    total += sizes[g] * sum(a * b for a, b in of) / sum(a for a, _ in of)
                made.append(total)
            tops[index], bottoms[index] = max(made), min(made)
        brute = 0.0
        units = [(g, w) if stay else w for g, _, w in records]
        groups = [list(range(len(records)))]
        if change == "value" and not free:
            groups = [[at for at, one in enumerate(units) if one == unit] for unit in set(units)]
        for axis, group in itertools.product(range(slots), groups):
            top = np.fmax.reduce(np.take(tops, group, axis), axis)
            bottom = np.fmin.reduce(np.take(bottoms, group, axis), axis)
            brute = max(brute, np.nanmax(top - bottom))
        facts = box([int(one) for one in weight], (int(ends.min()), int(ends.max())), slots)
        at = setting("target sample") if free else FRAME_FIXED
        strata = tuple(PostStratum(int(sizes[g]), 1, Bounds(*(int(one) for one in ends[g]))) for g in (0, 1))
        asked = Estimator("post-stratified", post_strata=strata, units_stay=stay)
        assert float(found(asked, facts, at, change)) >= brute - 1e-9


def test_one_post_stratum_is_a_hajek_total():
    facts = box((2, 10), (0, 5), 4)
    asked = Estimator("post-stratified", post_strata=(PostStratum(100, 4, Bounds(0, 5)),))
    for at in (FRAME_FIXED, setting("target sample")):
        assert found(asked, facts, at) == found(Estimator("hajek", "total", population=100), facts, at)
    mean = Estimator("post-stratified", "mean", post_strata=asked.post_strata)
    assert found(mean, facts) == found(asked, facts) / 100


# -- published numbers ---------------------------------------------------------------------------------------------


def test_a_replaced_unit_brings_its_weight_and_a_value_does_not():
    frame = SurveyFacts(Units.listed([1, 10], [1, 1]), fewest=1, most=1, everybody_responds=True)
    assert [found(Estimator(), frame, change=change) for change in ("unit", "value")] == [9, 0]


def test_listed_frame_of_section_6_4_5():
    frame = SurveyFacts(Units.listed([2, 4, 5, 10], [1, 3, 2, 1]), fewest=2, most=2, everybody_responds=True)
    assert found(Estimator(), frame) == 10
    assert found(Estimator(), frame, setting("target sample")) == 10 + 1 * 8 * 3
    # Values as they are in the frame, or any from 1 to 3 (the source leaves open which): 10 or 28; with the value
    # alone changing, the largest weight times the range.
    free = replace(frame, units=tuple(replace(one, value=Bounds(1, 3)) for one in frame.units))
    assert found(Estimator(), free) == 28
    assert found(Estimator(), free, change="value") == 20


def test_printed_over_all_pairs_of_samples_the_bound_does_not_hold():
    # w x = (0, 0, 10, 10), two of four: samples that differ in both records are 20 apart, in one record 10.
    frame = SurveyFacts(Units.listed([1, 1, 1, 1], [0, 0, 10, 10]), fewest=2, most=2, everybody_responds=True)
    samples = list(itertools.combinations((0, 1, 2, 3), 2))
    total = {s: sum((0, 0, 10, 10)[one] for one in s) for s in samples}
    apart = dict.fromkeys((0, 1), 0)
    for s, t in itertools.combinations(samples, 2):
        shared = len(set(s) & set(t))
        apart[shared] = max(apart[shared], abs(total[s] - total[t]))
    assert (apart[0], apart[1], found(Estimator(), frame)) == (20, 10, 10)


def test_stratification_lowers_the_sensitivity_where_the_frame_is_fixed():
    frame = SurveyFacts(
        Units.listed([2] * 4, [0, 1, 10, 12], ["A", "A", "B", "B"]), fewest=2, most=2, everybody_responds=True
    )
    assert found(Estimator(), frame) == 24
    stratified = replace(frame, stratum_sizes_fixed=True)
    assert found(Estimator(), stratified) == 4
    assert found(Estimator(), stratified, setting("target sample")) == 24


def test_weighted_count_is_as_sensitive_as_its_largest_weight():
    facts = box((1, 7), (0, 1), 50)
    for at in (FRAME_FIXED, setting("responding sample", "target sample")):
        assert [found(Estimator(), facts, at, change) for change in CHANGES] == [7, 7]


def test_mean_of_section_7_4():
    population, n, spread = 1000, 50, 12
    mean = Estimator("horvitz-thompson", "mean", population=population)
    assert found(mean, box((5, 40), (0, spread), n), change="value") == Fraction(40 * spread, population)
    equal = box((Fraction(population, n),) * 2, (0, spread), n)
    hajek = Estimator("hajek", "mean")
    assert found(mean, equal, change="value") == found(hajek, equal, change="value") == Fraction(spread, n)
    assert found(hajek, equal, setting("responding sample")) == Fraction(spread, n)
    proportion = Estimator("hajek", "proportion")
    assert found(proportion, box((1, 1), (0, 1), n)) == Fraction(1, n)


def test_a_ratio_with_equal_sizes_is_a_mean():
    facts = box((2, 9), (-3, 4), 6, size=Bounds(1, 1))
    for change in CHANGES:
        assert found(RATIO, facts, change=change) == found(Estimator("hajek", "mean"), facts, change=change)
    total = Estimator("ratio", "total", size_total=500)
    assert found(total, facts) == 500 * found(RATIO, facts)
    assert found(Estimator("ratio", "mean", size_total=500, population=50), facts) == 10 * found(RATIO, facts)


@pytest.mark.repeats
def test_the_reading_that_promises_more_needs_at_least_as_much_noise():
    surveys = Surveys.random(np.random.default_rng(12), times(20), 2)
    for number, at, kind in itertools.product(range(times(20)), SETTINGS[3:], KINDS):
        facts = facts_of(surveys, number, fewest=2, most=3)
        assert found(KINDS[kind], facts, at, "unit") >= found(KINDS[kind], facts, at, "value")


def test_holding_more_fixed_never_needs_more_noise():
    surveys = Surveys.random(np.random.default_rng(13), 20, 2)
    for number, change in itertools.product(range(20), CHANGES):
        facts = facts_of(surveys, number, fewest=2, most=3, strata=["a", "b"], stratum_sizes_fixed=True)
        for numbers in ((4, 5, 6), (7, 8, 9, 10)):
            noise = [found(Estimator(), facts, SETTINGS[one - 1], change) for one in numbers]
            assert noise == sorted(noise, reverse=True)


def test_what_is_taken_for_granted_is_said():
    facts = box((1, 7), (0, 1), 50, everybody_responds=False, design_depends_on_frame=False)
    said = {one.number: " ".join(sensitivity(Estimator(), facts, one, "unit").assumes) for one in SETTINGS[1:]}
    assert [number for number, words in said.items() if "of the realised frame" in words] == [2, 3, 4, 5, 7, 8]
    assert [number for number, words in said.items() if "Whether a unit answers" in words] == [2, 3, 4, 5, 6]
    assert [number for number, words in said.items() if "however the dice fall" in words] == [2, 3]
    assert all("Editing and imputation" in words for words in said.values())


def test_noise_follows_from_the_sensitivity():
    one = sensitivity(Estimator(), box((1, 7), (0, 1), 50), FRAME_FIXED, "unit")
    assert one.laplace_scale("0.5") == 14
    assert one.noise_sd("0.5") == pytest.approx(14 * math.sqrt(2))


# -- what is not known, or not said --------------------------------------------------------------------------------


def test_design_weights_are_fixed_as_in_table_6_2():
    facts = box((1, 2), (0, 1), 3)
    assert [weights_fixed(facts, at)[0] for at in SETTINGS] == [False] * 5 + [True] + [False] * 2 + [True] * 2
    final = replace(facts, weights="final", weights_cut_by_rule=True)
    assert not any(weights_fixed(final, at)[0] for at in SETTINGS)


def refused(kind, call, *given, **named):
    with pytest.raises(errors.SurveyError) as caught:
        call(*given, **named)
    assert caught.value.kind == kind
    return str(caught.value)


def test_final_weights_without_limits_are_refused_in_every_setting():
    facts = box((1, 2), (0, 1), 3, weights="final")
    for at in SETTINGS:
        said = refused("survey-weights", found, Estimator(), facts, at)
    assert "Cut the weights at published limits" in said


def test_sampling_that_depends_on_the_frame_is_refused_before_the_sample():
    for level in ("population", "frame"):
        said = refused("survey-sampling-depends", found, Estimator(), box((1, 2), (0, 1), 3), setting(level))
        assert level in said and "target sample" in said
    # An independent design is not enough for the population, whose records decide who is on the frame.
    independent = box((1, 2), (0, 1), 3, design_depends_on_frame=False)
    refused("survey-sampling-depends", found, Estimator(), independent, setting("population"))
    assert found(Estimator(), independent, setting("frame")) == 2


def test_denominators_that_may_be_zero_are_refused():
    said = refused("survey-denominator", found, RATIO, box((1, 2), (0, 1), 3, size=Bounds(0, 1)))
    assert "noise of its own" in said
    refused("survey-denominator", PostStratum, 100, 0, Bounds(0, 1))


def test_bounds_are_never_looked_for_in_the_data():
    said = refused("survey-bounds", SurveyFacts, (), fewest=1, most=1)
    assert "read from the confidential data it would itself reveal something" in said
    refused("survey-bounds", Units, Bounds(1, 2), None)
    refused("survey-bounds", found, RATIO, box((1, 2), (0, 1), 3))
    refused("survey-bounds", Estimator, "horvitz-thompson", "mean")
    refused("survey-bounds", Estimator, "hajek", "total")
    refused("survey-bounds", Estimator, "ratio", "total")


def test_units_that_may_be_sampled_twice_are_refused():
    refused("survey-unit-twice", found, Estimator(), box((1, 2), (0, 1), 3, once=False))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Bounds(2, 1),
        lambda: Bounds("1,5", 2),
        lambda: Bounds(0, math.inf),
        lambda: box((0, 1), (0, 1), 3),
        lambda: box((-1, 1), (0, 1), 3),
        lambda: box((1, 1), (0, 1), 0),
        lambda: box((1, 1), (0, 1), 2.5),
        lambda: SurveyFacts((Units(Bounds(1, 1), Bounds(0, 1)),), fewest=3, most=2),
        lambda: box((1, 1), (0, 1), 3, weights="raked"),
        lambda: Units.listed([1, 2], [1]),
        lambda: Estimator("median"),
        lambda: Estimator("hajek", "ratio"),
        lambda: Estimator("horvitz-thompson", "mean", population=0),
        lambda: Estimator("post-stratified"),
        lambda: found(Estimator("hajek", "proportion"), box((1, 1), (0, 2), 3)),
        lambda: found(Estimator(), box((1, 1), (0, 1), 3), change="both"),
        lambda: sensitivity(Estimator(), box((1, 1), (0, 1), 3), FRAME_FIXED, "unit").laplace_scale(0),
    ],
)
def test_facts_that_cannot_be_are_refused(wrong):
    refused("survey-fact", wrong)
