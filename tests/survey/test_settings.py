"""The ten settings: Tables 6.1 to 6.3, the order of their guarantees, and the same on listed surveys."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from stirred import errors
from stirred.lab.definitions.multiverses import coarsens, is_complete, laplace_scales
from stirred.lab.sampling.enumerated import ListedSurvey
from stirred.spec import Specification
from stirred.survey.design.amplification import claimable
from stirred.survey.plan.sensitivity import Estimator, SurveyFacts, Units, sensitivity
from stirred.survey.plan.settings import LEVELS, SETTINGS, STAGES, TABLE_6_2, Pipeline, printed_amplification, setting

SAME_LEVEL = [
    (a, b) for a, b in itertools.combinations(SETTINGS, 2) if a.level == b.level
]  # the first holds less fixed


def numbers(pairs):
    return [f"{a.number}-{b.number}" for a, b in pairs]


# -- tables --------------------------------------------------------------------------------------------------------


def test_there_are_ten_settings():
    assert [sum(one.level == level for one in SETTINGS) for level in LEVELS] == [1, 2, 3, 4]
    assert [one.number for one in SETTINGS] == list(range(1, 11))


def test_settings_are_those_of_table_6_1():
    a, i = "agnostic", "invariant"
    expected = [
        f"population-{a}",
        f"population-{a}",
        f"population-{i}",
        f"population-{a}, frame-{a}",
        f"population-{i}, frame-{a}",
        f"population-{i}, frame-{i}",
        f"population-{a}, frame-{a}, sample-{a}",
        f"population-{i}, frame-{a}, sample-{a}",
        f"population-{i}, frame-{i}, sample-{a}",
        f"population-{i}, frame-{i}, sample-{i}",
    ]
    assert [one.invariance for one in SETTINGS] == expected


def test_weights_are_those_of_table_6_2():
    assert [one.number for one in SETTINGS if one.frame_invariant] == [6, 9, 10]
    assert dict(TABLE_6_2) == {
        "target sample": "Can be treated as fixed",
        "frame": "Can be treated as fixed",
        "population": "Sensitivity needs to be considered",
        "": "Sensitivity needs to be considered",
    }


def test_amplification_is_that_of_table_6_3():
    printed = {one.level: printed_amplification(one) for one in SETTINGS}
    assert printed == {
        "population": "FR&S&NR",
        "frame": "NR&S",
        "target sample": "NR",
        "responding sample": "–",
    }


def test_amplification_is_claimable_only_where_sampling_is_part_of_the_mechanism():
    said = {one.number: claimable(one) for one in SETTINGS}
    assert [number for number, (yes, _) in said.items() if yes] == [1, 2, 3]
    assert all("never from nonresponse" in said[number][1] for number in (1, 2, 3))
    assert all("not known" in said[number][1] for number in (4, 5, 6))
    for one in SETTINGS:
        assert claimable(one)[0] == any(stage.name == "target sample" for stage in one.pipeline.steps)


def test_the_authors_recommend_one_setting():
    verdicts = [one.recommendation.verdict for one in SETTINGS]
    assert verdicts.index("recommended") + 1 == setting("target sample", "frame").number
    assert verdicts.count("recommended") == verdicts.count("second choice") == 1
    assert SETTINGS[verdicts.index("second choice")] == setting("responding sample", "frame")
    assert {SETTINGS[at].number for at, one in enumerate(verdicts) if one == "advised against"} == {1, 2, 3, 10}


def test_a_frame_level_guarantee_cannot_hold_the_frame_fixed():
    # Section 6.5.1 speaks of one; Definition 6.3.3 has none, and nothing would be protected.
    with pytest.raises(errors.SurveyError) as caught:
        setting("frame", "frame")
    assert caught.value.kind == "survey-setting"
    assert "starts at the frame and holds the frame fixed" in str(caught.value)


# -- order ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("less", "more"), SAME_LEVEL, ids=numbers(SAME_LEVEL))
def test_holding_more_fixed_is_the_weaker_guarantee(less, more):
    strong, weak = less.specification(1), more.specification(1)
    assert strong.implies(weak).verdict == coarsens(strong, weak).verdict == "yes"
    assert strong.implies(more.specification(2))
    assert not weak.implies(strong)
    assert not less.specification(2).implies(weak)


def test_guarantees_of_different_levels_imply_nothing_of_one_another():
    for a, b in itertools.permutations(SETTINGS, 2):
        if a.level != b.level:
            assert a.specification("0.1").implies(b.specification(10)).verdict == "unknown"


def test_a_promise_about_another_unit_covers_other_answers():
    for one in SETTINGS:
        assert one.specification(1, change="unit").implies(one.specification(1, change="value"))
        assert not one.specification(1, change="value").implies(one.specification(1, change="unit"))


def test_specifications_say_which_record_they_protect_and_what_is_held_fixed():
    for one in SETTINGS:
        specification = one.specification("1/2", "household", survey="the labour force survey")
        assert specification.input_premetric.unit == "household"
        assert one.protects in specification.domain.record
        assert "the labour force survey" in specification.domain.name
        assert len(specification.multiverse.invariants) == len(one.pipeline.held_fixed)
        assert Specification.from_json(specification.to_json()) == specification


# -- listed surveys ------------------------------------------------------------------------------------------------


def random_survey(rng: np.random.Generator) -> ListedSurvey:
    def made(of: list[str], letter: str) -> dict[str, tuple[str, ...]]:
        few = max(2, int(rng.integers(2, 5)))
        names = [f"{letter}{at}" for at in range(few)]
        found = {one: set(rng.choice(names, size=int(rng.integers(1, few)), replace=False)) for one in of}
        for name in names:  # each comes from somewhere
            found[of[int(rng.integers(len(of)))]].add(name)
        return {one: tuple(sorted(found[one])) for one in of}

    frames = made(["p0", "p1"], "f")
    samples = made(sorted({one for names in frames.values() for one in names}), "s")
    responding = made(sorted({one for names in samples.values() for one in names}), "r")
    return ListedSurvey(frames, samples, responding)


def some_distances(rng: np.random.Generator, names: tuple[str, ...]) -> dict[tuple[str, str], int]:
    """Distances along a line, cut in two: a metric that is infinite between the parts."""
    parts = {name: (int(rng.integers(2)), int(rng.integers(4))) for name in names}
    return {
        (a, b): max(1, abs(parts[a][1] - parts[b][1]))
        for a, b in itertools.permutations(names, 2)
        if parts[a][0] == parts[b][0]
    }


def test_listed_surveys_order_the_settings_as_the_lemmas_say():
    rng = np.random.default_rng(20)
    for _ in range(25):
        survey = random_survey(rng)
        for level in LEVELS:
            chain = [one for one in SETTINGS if one.level == level]
            distances = some_distances(rng, survey.datasets(level))
            listed = [survey.specification(one, distances) for one in chain]
            for (a, strong), (b, weak) in itertools.combinations(zip(chain, listed, strict=True), 2):
                assert coarsens(strong, weak).verdict == "yes"
                assert strong.implies(weak).verdict == "yes"
                assert a.specification(1).implies(b.specification(1)).verdict == "yes"


def test_invariance_at_one_stage_implies_it_at_all_earlier_ones():
    rng = np.random.default_rng(21)
    agnostic = 0
    for _ in range(25):
        survey = random_survey(rng)
        for one in SETTINGS:
            distances = some_distances(rng, survey.datasets(one.level))
            specification = survey.specification(one, distances)
            for other in SETTINGS:
                if other.level == one.level and other.fixed_through:
                    answer = survey.is_invariant(specification, other).verdict
                    if len(other.pipeline.held_fixed) <= len(one.pipeline.held_fixed):
                        assert answer == "yes"
                    agnostic += answer == "no"
    assert agnostic > 20  # both answers occur


def samples_of(weights, values, size) -> tuple[dict[str, Fraction], dict[tuple[str, str], int]]:
    """The Horvitz-Thompson totals of all samples, and how many records any two of them differ in."""
    samples = list(itertools.combinations(range(len(weights)), size))
    totals = {str(s): Fraction(sum(weights[one] * values[one] for one in s)) for s in samples}
    apart = {(str(s), str(t)): size - len(set(s) & set(t)) for s, t in itertools.permutations(samples, 2)}
    return totals, apart


def test_noise_by_sensitivity_is_that_of_definition_6_4_2_on_a_listed_frame():
    rng = np.random.default_rng(22)
    at = setting("target sample", "frame")
    cases = [((2, 4, 5, 10), (1, 3, 2, 1))]
    cases += [tuple(tuple(int(x) for x in rng.integers(1, 9, size=5)) for _ in range(2)) for _ in range(40)]
    for weights, values in cases:
        totals, apart = samples_of(weights, values, 2)
        survey = ListedSurvey({"p": ("f",)}, {"f": tuple(totals)}, {name: (name,) for name in totals})
        specification = survey.specification(at, apart, "1/2")
        assert is_complete(specification)
        scales = set(laplace_scales(specification, {name: float(total) for name, total in totals.items()}).values())
        facts = SurveyFacts(Units.listed(list(weights), list(values)), fewest=2, most=2, everybody_responds=True)
        assert scales == {sensitivity(Estimator(), facts, at, "unit").laplace_scale("1/2")}


# -- the pipeline --------------------------------------------------------------------------------------------------


def test_the_three_examples_of_figure_7_2():
    a, b, c = (
        Pipeline("edited and imputed data"),
        Pipeline("frame", "population"),
        Pipeline("responding sample", "frame"),
    )
    assert a.held_fixed == () and [stage.name for stage in a.steps] == ["weights", "estimate", "noise"]
    assert [stage.name for stage in b.held_fixed] == ["population"] and b.steps[0].name == "target sample"
    assert [stage.name for stage in c.held_fixed] == ["population", "frame"]
    assert [stage.name for stage in c.free] == ["target sample"]
    assert any("hot deck" in one for one in a.cautions) and not any("hot deck" in one for one in c.cautions)
    assert any("share randomness" in one for one in b.cautions) and not any("share" in one for one in c.cautions)


def test_every_stage_is_fixed_free_the_start_or_made_by_the_mechanism():
    for starts, fixed in itertools.product(STAGES[:6], ("", *[stage.name for stage in STAGES])):
        try:
            pipeline = Pipeline(starts.name, fixed)
        except errors.SurveyError:
            continue
        assert (*pipeline.held_fixed, *pipeline.free, starts, *pipeline.steps) == STAGES


@pytest.mark.parametrize(
    ("starts", "fixed"),
    [("census", ""), ("frame", "frame"), ("frame", "target sample"), ("estimate", ""), ("noise", ""), ("frame", "x")],
)
def test_pipelines_that_protect_nothing_are_refused(starts, fixed):
    with pytest.raises(errors.SurveyError) as caught:
        Pipeline(starts, fixed)
    assert caught.value.kind == "survey-fact"


def test_other_wrong_questions_are_refused():
    with pytest.raises(errors.SurveyError):
        SETTINGS[0].specification(1, change="both")
    with pytest.raises(errors.SurveyError):
        ListedSurvey({"p": ("f",)}, {"g": ("s",)}, {"s": ("s",)})
