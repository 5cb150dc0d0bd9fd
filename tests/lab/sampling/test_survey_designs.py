"""Probabilities of designs are those that listing all samples gives, as exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from design_cases import KINDS, cases, counted_chances, total_moments

from stirred.lab.sampling import (
    Bernoulli,
    EveryKth,
    Frame,
    Given,
    Neyman,
    Poisson,
    Proportional,
    Sampford,
    SimpleRandom,
    Stratified,
    Systematic,
    SystematicBySize,
    TwoStage,
    WithReplacement,
    cluster_sample,
)
from stirred.survey.design import selections

EACH = 25


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_units_and_pairs_are_those_of_all_samples(kind):
    for design, frame in cases(kind, EACH):
        samples = design.samples(frame)
        assert sum(samples.values()) == 1 and min(samples.values()) > 0
        pairs, times = counted_chances(samples, frame.units)
        assert design.joint(frame).tolist() == pairs
        assert list(design.inclusion(frame)) == [pairs[i][i] for i in range(frame.units)]
        assert list(design.expected_times(frame)) == times
        assert design.inclusion(frame).total() == sum(len(set(s)) * chance for s, chance in samples.items())
        zero = any(pairs[i][j] == 0 for i in range(frame.units) for j in range(i))
        assert bool(design.never_together(frame)) == zero


@pytest.mark.parametrize("kind", KINDS)
def test_some_units_have_the_probabilities_that_they_have_among_all(kind):
    for design, frame in cases(kind, EACH):
        some = np.random.default_rng(frame.units).permutation(frame.units)[: max(1, frame.units // 2)]
        assert list(design.inclusion(frame, some)) == [design.inclusion(frame)[i] for i in some]
        assert list(design.weights(frame, some)) == [design.weights(frame)[i] for i in some]
        assert design.joint(frame, some).tolist() == design.joint(frame)[np.ix_(some, some)].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stated_sample_size_is_that_of_every_sample(kind):
    stated = 0
    for design, frame in cases(kind, EACH):
        sizes = {len(set(sample)) for sample in design.samples(frame)}
        size = design.sample_size(frame)
        assert size is None or sizes == {size}
        # Not stated though fixed: where clusters of different sizes are all taken, and in a design that can vary.
        stated += size is not None
        if isinstance(design, SimpleRandom | Systematic | Sampford | SystematicBySize | EveryKth):
            assert (size is not None) == (len(sizes) == 1)
    assert stated or kind == "poisson"


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_totals_are_unbiased(kind):
    for design, frame in cases(kind, EACH):
        values = np.random.default_rng(frame.units).integers(-9, 10, frame.units).tolist()
        mean, _ = total_moments(design.samples(frame), list(design.weights(frame)), values)
        assert mean == sum(values)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"with_replacement", "bernoulli", "poisson"}))
def test_the_sen_yates_grundy_variance_is_the_variance_over_all_samples(kind):
    compared = 0
    for design, frame in cases(kind, EACH):
        if design.sample_size(frame) is None:
            continue
        values = np.random.default_rng(frame.units).integers(-9, 10, frame.units).tolist()
        weights, pairs = list(design.weights(frame)), design.joint(frame)
        expanded = [weight * value for weight, value in zip(weights, values, strict=True)]
        by_pairs = sum(
            (pairs[i, i] * pairs[j, j] - pairs[i, j]) * (expanded[i] - expanded[j]) ** 2
            for i, j in itertools.combinations(range(frame.units), 2)
        )
        _, variance = total_moments(design.samples(frame), weights, values)
        assert by_pairs == variance
        compared += variance > 0
    assert compared or kind in ("census", "two_stage_by_size")


def test_the_horvitz_thompson_variance_holds_where_sizes_vary():
    # Sum over all i, j of (pi_ij - pi_i pi_j) w_i x_i w_j x_j, for designs that Sen-Yates-Grundy leaves out.
    for design, frame in cases("poisson", EACH) + cases("bernoulli", EACH) + cases("clusters", EACH):
        values = np.random.default_rng(frame.units).integers(-9, 10, frame.units).tolist()
        weights, pairs = list(design.weights(frame)), design.joint(frame)
        expanded = [weight * value for weight, value in zip(weights, values, strict=True)]
        both = itertools.product(range(frame.units), repeat=2)
        by_pairs = sum((pairs[i, j] - pairs[i, i] * pairs[j, j]) * expanded[i] * expanded[j] for i, j in both)
        assert by_pairs == total_moments(design.samples(frame), weights, values)[1]


def test_sampford_samples_have_sampfords_probabilities():
    # The definition in fractions, beside the whole numbers of the source.
    for design, frame in cases("sampford", 30):
        chances = list(design.inclusion(frame))
        if max(chances) == 1:
            continue
        masses = {
            s: sum(1 - chances[k] for k in s) * math.prod(chances[k] / (1 - chances[k]) for k in s)
            for s in itertools.combinations(range(frame.units), design.sample)
        }
        assert design.samples(frame) == {s: mass / sum(masses.values()) for s, mass in masses.items()}


def test_systematic_samples_by_trying_every_start():
    # Sizes 2, 3, 4 and 3 of 12, n = 3: marks 4 apart, at starts between the multiples of 1/3, which do not matter.
    bounds = np.cumsum([2, 3, 4, 3])
    counted: dict[tuple[int, ...], Fraction] = {}
    for start in range(400):
        marks = [start / 100 + 0.001 + 4 * k for k in range(3)]
        sample = tuple(int(np.searchsorted(bounds, mark)) for mark in marks)
        counted[sample] = counted.get(sample, Fraction(0)) + Fraction(1, 400)
    assert SystematicBySize(3).samples(Frame.of(sizes=[2, 3, 4, 3])) == counted


def test_equal_sizes_make_systematic_by_size_the_plain_one_and_sampford_simple_random():
    for units, n in itertools.product(range(2, 7), range(1, 4)):
        if n <= units:
            alike, plain = Frame.of(sizes=[2.5] * units), Frame.of(units)
            assert SystematicBySize(n).samples(alike) == Systematic(n).samples(plain)
            assert Sampford(n).samples(alike) == SimpleRandom(n).samples(plain)
            assert np.array_equal(Sampford(n).joint(alike), SimpleRandom(n).joint(plain))


def test_a_whole_step_takes_every_kth_unit():
    assert Systematic(4).samples(Frame.of(12)) == EveryKth(3).samples(Frame.of(12))


def test_the_example_of_section_7_4_and_that_one_size_changes_every_weight():
    # Golden numbers: sizes 10, 20, 30, 40 and two sampled; printed as n x / N times the mean, which needs brackets.
    before, after = Frame.of(sizes=[10, 20, 30, 40]), Frame.of(sizes=[20, 20, 30, 40])
    for design in (Poisson(2), SystematicBySize(2), Sampford(2)):
        assert [float(p) for p in design.inclusion(before)] == [0.2, 0.4, 0.6, 0.8]
        assert [round(float(w), 4) for w in design.weights(before)] == [5, 2.5, 1.6667, 1.25]
        assert [round(float(p), 4) for p in design.inclusion(after)] == [0.3636, 0.3636, 0.5455, 0.7273]
        assert [round(float(w), 4) for w in design.weights(after)] == [2.75, 2.75, 1.8333, 1.375]


def test_sampford_pairs_of_a_larger_frame_add_up():
    # Sum over j of pi_ij is n pi_i for every design of a fixed size.
    frame = Frame.of(sizes=[*range(1, 61)])
    pairs = Sampford(12).joint(frame)
    assert list(np.diag(pairs)) == list(Sampford(12).inclusion(frame))
    assert [sum(row) for row in pairs] == [12 * pairs[i, i] for i in range(60)]
    assert all(pairs[i, j] < pairs[i, i] * pairs[j, j] for i, j in itertools.combinations(range(60), 2))


def test_pairs_of_a_large_frame_are_those_of_the_units_asked_for():
    frame = Frame.of(100_000)
    assert SimpleRandom(10).joint(frame, [3, 99_999])[0, 1] == Fraction(90, 100_000 * 99_999)
    assert Systematic(10).joint(frame, [3, 10_003]).tolist() == [[Fraction(1, 10_000)] * 2] * 2


def test_probabilities_as_floats_are_the_nearest_ones():
    frame = Frame.of(sizes=[1, 2, 3, 3])
    assert Poisson(2).inclusion(frame).floats().tolist() == [2 / 9, 4 / 9, 2 / 3, 2 / 3]


# -- what a design says of itself ----------------------------------------------------------------------------------


def test_designs_say_what_of_the_frame_they_depend_on():
    assert SimpleRandom(2).depends_on == Bernoulli("0.1").depends_on == WithReplacement(2).depends_on == ()
    assert Systematic(2).depends_on == EveryKth(2).depends_on == ("order",)
    assert SystematicBySize(2).depends_on == ("order", "sizes")
    assert Stratified(Proportional(5), within=Sampford).depends_on == ("strata", "sizes")
    assert TwoStage(Poisson(2), Systematic(2)).depends_on == ("clusters", "sizes", "order")


def test_neyman_from_confidential_data_is_flagged_wherever_it_stands():
    public, confidential = (Neyman(4, {"a": 1, "b": 2}, public=public) for public in (True, False))
    assert Stratified(public).data_dependent == ""
    for design in (
        Stratified(confidential),
        TwoStage(Stratified(confidential)),
        TwoStage(SimpleRandom(2), Stratified(confidential)),
    ):
        assert "can lose privacy instead of gaining it" in design.data_dependent
    assert all(not design.data_dependent for kind in KINDS for design, _ in cases(kind, 1))


def test_designs_with_pairs_that_are_never_together_say_what_follows():
    said = Systematic(3).never_together(Frame.of(10))
    assert "no unbiased estimate of the design variance" in said
    assert SimpleRandom(1).never_together(Frame.of(2)) == said
    assert SimpleRandom(2).never_together(Frame.of(1_000_000)) == ""


def test_a_cluster_has_the_sum_of_its_sizes_or_else_its_number_of_units():
    design = TwoStage(Poisson(1))
    assert list(design.inclusion(Frame.of(clusters=[*"aab"]))) == [Fraction(2, 3), Fraction(2, 3), Fraction(1, 3)]
    assert list(design.inclusion(Frame.of(clusters=[*"aab"], sizes=[1, 1, 6]))) == [Fraction(1, 4)] * 2 + [
        Fraction(3, 4)
    ]


def test_proportional_to_size_and_then_equally_many_gives_equal_weights():
    # The self-weighting design: clusters by their number of units, then the same number in each.
    frame = Frame.of(clusters=[*"aaaabbbcccccdd"])
    assert set(TwoStage(Sampford(2), SimpleRandom(2)).weights(frame)) == {Fraction(14, 4)}


def test_listed_samples_are_what_amplification_takes():
    # One other record changes with a unit of a simple random sample; in a systematic one the whole sample does.
    simple = selections.listed(SimpleRandom(2).samples(Frame.of(4)))
    assert simple.classes == selections.simple_random(2, 4).classes
    assert {one.changed for one in selections.listed(Systematic(3).samples(Frame.of(9))).classes} == {3}


def test_frames_samples_and_weights_do_not_show_what_they_hold():
    frame = Frame.of(strata=["zqx"] * 3, sizes=[7731, 1, 1])
    drawn = SimpleRandom(2).draw(frame)
    shown = " ".join(map(repr, (frame, frame.strata, drawn, drawn.weights, SimpleRandom(2).inclusion(frame))))
    assert "zqx" not in shown and "7731" not in shown and "array" not in shown


def test_designs_are_shown_briefly():
    assert repr(SimpleRandom(2)) == "SimpleRandom(sample=2)"
    assert repr(Stratified(Given({"a": 2}))) == (
        "Stratified(Given(samples={'a': 2}), within=SimpleRandom, singles='refuse')"
    )
    many = Stratified(Given(dict.fromkeys(range(5000), 2)), within=lambda n: TwoStage(SimpleRandom(n)))
    assert repr(many) == "Stratified(Given(samples=<dict of 5,000>), within=<lambda>, singles='refuse')"


def test_labels_keep_their_type_and_sizes_their_proportions():
    frame = Frame.of(strata=np.array([10, 9, 10]), sizes=np.array([0.1, 0.2, 0.4]))
    assert frame.strata.labels == (9, 10) and frame.strata.codes.tolist() == [1, 0, 1]
    assert frame.sizes.tolist() == [1, 2, 4]
    assert cluster_sample(1).sample_size(Frame.of(clusters=[1, 1, 2, 2])) == 2
