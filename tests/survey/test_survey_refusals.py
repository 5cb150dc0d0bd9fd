"""Designs, frames and weights that cannot be used are refused by name, without a label or a size of the frame."""

from __future__ import annotations

import numpy as np
import pytest

from stirred.errors import StirredError, SurveyError
from stirred.lab.sampling import (
    Bernoulli,
    Census,
    Equal,
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
from stirred.survey import design_effect, effective_sample_size

LABELS = ["zqx1", "zqx1", "zqx2"]
STRATA, CLUSTERS = Frame.of(strata=LABELS), Frame.of(clusters=LABELS)
SIZES = Frame.of(sizes=[77310, 1, 1])

DO_NOT_FIT = [
    (SimpleRandom(4), Frame.of(3), "sample-too-large", "4 units are to be sampled, and there are 3"),
    (Systematic(4), Frame.of(3), "sample-too-large", "there are 3"),
    (Poisson("3.5"), SIZES, "sample-too-large", "4 units"),
    (Sampford(4), SIZES, "sample-too-large", "there are 3"),
    (EveryKth(4), Frame.of(3), "design-number", "4 in a frame of 3 units"),
    (Poisson(2), SIZES, "size-too-large", "1 units are so large"),
    (Sampford(2), SIZES, "size-too-large", "probability above 1"),
    (SystematicBySize(2), SIZES, "size-too-large", "stratum of their own"),
    (Poisson("1.0000000000000000001"), SIZES, "sizes-too-fine", "exceeds 2\\^62"),
    (Sampford(2), Frame.of(sizes=[2**60, 2**60 - 1, 2**59]), "sizes-too-fine", "exceeds 2\\^62"),
    (Poisson(1), Frame.of(3), "frame-lacks", "no sizes, which Poisson needs"),
    (Stratified(Equal(2)), Frame.of(3), "frame-lacks", "no strata"),
    (cluster_sample(1), Frame.of(3), "frame-lacks", "no clusters"),
    (TwoStage(SimpleRandom(1), Sampford(1)), CLUSTERS, "frame-lacks", "no sizes, which TwoStage needs"),
    (Stratified(Equal(3)), STRATA, "single-unit-strata", "1 strata of the frame hold one unit only"),
    (Stratified(Given({"zqx1": 1, "b": 1}), singles="certain"), STRATA, "unknown-strata", "no stratum 'b'"),
    (cluster_sample(3), CLUSTERS, "sample-too-large", "3 units are to be sampled, and there are 2"),
    (TwoStage(SimpleRandom(1), SimpleRandom(2)), CLUSTERS, "parts-do-not-fit", "does not fit 1 of 2 clusters; in the"),
    (
        TwoStage(Stratified(Given({"a": 1, "b": 1}))),
        Frame.of(clusters=LABELS, strata=[*"aba"]),
        "clusters-cross-strata",
        "1 clusters have units in more than one stratum",
    ),
    (
        Stratified(Given({"zqx1": 2, "zqx2": 2}), within=Sampford),
        Frame.of(strata=["zqx1", "zqx1", "zqx1", "zqx2", "zqx2", "zqx2"], sizes=[1, 1, 9, 2, 2, 2]),
        "parts-do-not-fit",
        "does not fit 1 of 2 strata; in the first of them: 1 units are so large",
    ),
]


@pytest.mark.parametrize("design, frame, kind, words", DO_NOT_FIT, ids=lambda one: one if isinstance(one, str) else "")
def test_a_design_that_does_not_fit_the_frame_is_refused_whatever_is_asked(design, frame, kind, words):
    for ask in (design.check, design.inclusion, design.joint, design.weights, design.samples, design.draw):
        with pytest.raises(SurveyError, match=words) as refusal:
            ask(frame)
        assert refusal.value.kind == kind
        assert "zqx" not in str(refusal.value) and "7731" not in str(refusal.value)


CANNOT_BE_MADE = [
    (lambda: SimpleRandom(0), "design-number", "sample size is 0"),
    (lambda: SimpleRandom(2.0), "design-number", "sample size is a number. Give a whole number"),
    (lambda: SimpleRandom(True), "design-number", "True or False"),
    (lambda: WithReplacement(-1), "design-number", "-1"),
    (lambda: EveryKth("2"), "design-number", "interval is a text"),
    (lambda: Bernoulli(0), "design-number", "rate is 0"),
    (lambda: Bernoulli("1.1"), "design-number", "rate is 11/10"),
    (lambda: Bernoulli("often"), "design-number", "rate is a text"),
    (lambda: Bernoulli(float("nan")), "design-number", "rate is a number. Give"),
    (lambda: Poisson(0), "design-number", "expected sample size is 0"),
    (lambda: Stratified(10), "design-choice", "allocation is a whole number"),
    (lambda: Stratified(Equal(4), within=3), "design-choice", "within is not a design"),
    (lambda: Stratified(Equal(4), within=int), "design-choice", "within strata is a whole number"),
    (lambda: Stratified(Equal(4), within=WithReplacement), "design-choice", "with replacement"),
    (lambda: Stratified(Equal(4), singles="drop"), "design-choice", "singles"),
    (lambda: TwoStage(WithReplacement(2)), "design-choice", "The first stage draws with replacement"),
    (lambda: TwoStage(2), "design-choice", "The first stage is a whole number"),
    (lambda: TwoStage(SimpleRandom(2), cluster_sample(2)), "design-choice", "one kind of clusters"),
    (lambda: Equal(4, minimum=0), "design-number", "minimum in each stratum is 0"),
    (lambda: Given({}), "design-number", "an empty dict"),
    (lambda: Given([1, 2]), "design-number", "sizes is a list"),
    (lambda: Given({"a": 0}), "design-number", "A sample size is 0"),
    (lambda: Neyman(4, {"a": -1}, public=True), "design-number", "deviation is negative"),
    (lambda: Neyman(4, {"a": "x"}, public=True), "design-number", "deviation is a text"),
    (lambda: Neyman(4, {"a": 1}, public="yes"), "design-number", "public is a text"),
    (lambda: Frame.of(), "design-number", "number of units is 0"),
    (lambda: Frame.of(0), "design-number", "number of units is 0"),
    (lambda: Frame.of("12"), "design-number", "number of units is a text"),
    (lambda: Frame.of(2, strata=LABELS), "frame-column", "strata tells of 3 units, the number of 2"),
    (lambda: Frame.of(sizes=[1, 2], strata=LABELS), "frame-column", "sizes tells of 2 units, the strata of 3"),
    (lambda: Frame.of(strata="zqx"), "frame-column", "one text"),
    (lambda: Frame.of(strata=["zqx", None]), "frame-column", "strata are missing for some units"),
    (lambda: Frame.of(clusters=np.array([1.0, np.nan])), "frame-column", "clusters are missing for some units"),
    (lambda: Frame.of(strata=[["zqx"], ["zqx"]]), "frame-column", "not labels"),
    (lambda: Frame.of(sizes=[1, "zqx"]), "frame-column", "sizes are not all numbers"),
    (lambda: Frame.of(sizes=[1, None]), "frame-column", "not all numbers"),
    (lambda: Frame.of(sizes=[1, float("inf")]), "frame-column", "not all numbers"),
    (lambda: Frame.of(sizes=[1, [2]]), "frame-column", "not all numbers"),
    (lambda: Frame.of(sizes=np.ones((2, 2))), "frame-column", "one number for each unit"),
    (lambda: Frame.of(sizes=[1, 0, -2, 0]), "size-not-positive", "3 units of the frame have a size of 0 or less"),
    (lambda: Frame.of(sizes=[2**62, 1]), "sizes-too-fine", "exceeds 2\\^62"),
    (lambda: Frame.of(sizes=[f"1/{k}" for k in range(1, 2_000)]), "sizes-too-fine", "Round the sizes"),
    (lambda: SimpleRandom(1).inclusion(Frame.of(3), [3]), "frame-units", "3 is no unit"),
    (lambda: SimpleRandom(1).inclusion(Frame.of(3), [1, 1]), "frame-units", "listed twice"),
    (lambda: SimpleRandom(1).joint(Frame.of(3), ["a"]), "frame-units", "not a whole number"),
    (lambda: SimpleRandom(2).joint(Frame.of(1_001)), "too-many-pairs", "1,001 units; 1,000 are the most"),
    (lambda: Sampford(2).joint(Frame.of(sizes=range(1, 202)), [0, 1]), "too-many-pairs", "Sampford in a frame"),
    (lambda: SimpleRandom(10).samples(Frame.of(20)), "samples-not-listed", "184,756 possible samples"),
    (lambda: SimpleRandom(500_000).samples(Frame.of(1_000_000)), "samples-not-listed", "more than 10\\^15"),
    (lambda: Bernoulli("1/2").samples(Frame.of(1_000_000)), "samples-not-listed", "at most 20,000"),
    (lambda: WithReplacement(30).samples(Frame.of(30)), "samples-not-listed", "at most 20,000"),
    (lambda: Systematic(10).samples(Frame.of(101), most=50), "samples-not-listed", "at most 50"),
    (lambda: TwoStage(SimpleRandom(1)).samples(Frame.of(clusters=range(9)), most=8), "samples-not-listed", "at most 8"),
    (
        lambda: Stratified(Given({0: 5, 1: 5, 2: 5})).samples(Frame.of(strata=[*range(3)] * 10)),
        "samples-not-listed",
        "63,504 possible samples",
    ),
    (lambda: effective_sample_size([]), "weights-do-not-fit", "no weights"),
    (lambda: effective_sample_size([1, 0]), "weights-do-not-fit", "0 or negative"),
    (lambda: design_effect([1, -1]), "weights-do-not-fit", "0 or negative"),
    (lambda: design_effect([1, None]), "weights-do-not-fit", "missing or not a number"),
    (lambda: design_effect([1, [2]]), "weights-do-not-fit", "missing or not a number"),
    (lambda: design_effect([f"1/{k}" for k in range(1, 9_000)]), "weights-do-not-fit", "Round them"),
]


@pytest.mark.parametrize(
    "make, kind, words", CANNOT_BE_MADE, ids=[f"{kind}: {words}" for _, kind, words in CANNOT_BE_MADE]
)
def test_what_cannot_be_used_is_refused_by_name(make, kind, words):
    with pytest.raises(StirredError, match=words) as refusal:
        make()
    assert refusal.value.kind == kind
    assert "zqx" not in str(refusal.value)


def test_what_just_fits_is_taken():
    for design, frame in (
        (SimpleRandom(3), Frame.of(3)),
        (Sampford(3), Frame.of(sizes=[5, 5, 5])),
        (SystematicBySize(2), Frame.of(sizes=[2, 1, 1])),
        (Poisson(3), Frame.of(sizes=[5, 5, 5])),
        (EveryKth(3), Frame.of(3)),
        (Bernoulli(1), Frame.of(3)),
        (Stratified(Proportional(3), singles="certain"), STRATA),
        (TwoStage(Census(), SimpleRandom(1)), CLUSTERS),
    ):
        assert design.inclusion(frame).total() == sum(len(s) * p for s, p in design.samples(frame).items())
        assert len(design.draw(frame)) >= 1
