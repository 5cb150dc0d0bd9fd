"""Draws follow the probabilities of the listed samples, and come from the given source alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from design_cases import KINDS, cases

from chi_square import FALSE_ALARM, p_value
from stirred.lab.sampling import (
    Bernoulli,
    Frame,
    Given,
    Poisson,
    Sampford,
    SimpleRandom,
    Stratified,
    SystematicBySize,
    TwoStage,
    WithReplacement,
)
from stirred.noise import SeededSource, SystemSource

# Frames on which every listed sample is expected often; sampled proportions are compared with exact probabilities.
CHOSEN = {
    "simple": (SimpleRandom(2), Frame.of(4)),
    "with replacement": (WithReplacement(2), Frame.of(3)),
    "bernoulli": (Bernoulli("0.3"), Frame.of(3)),
    "poisson": (Poisson("1.5"), Frame.of(sizes=[1, 2, 3])),
    "systematic by size": (SystematicBySize(2), Frame.of(sizes=[3, 1, 2, 4, 1])),
    "sampford": (Sampford(2), Frame.of(sizes=[1, 2, 3, 3])),
    "sampford, one certain": (Sampford(3), Frame.of(sizes=[6, 4, 3, 3, 2])),
    "two stages": (TwoStage(Sampford(2), SimpleRandom(1)), Frame.of(clusters=[*"abbac"])),
}


def p_value_of_draws(design, frame, draws, source):
    samples = design.samples(frame)
    seen = Counter()
    for _ in range(draws):
        drawn = design.draw(frame, source)
        seen[tuple(np.repeat(drawn.units, drawn.times).tolist())] += 1
    assert set(seen) <= set(samples)
    return p_value([seen[sample] for sample in samples], samples.values())


@pytest.mark.parametrize("name", CHOSEN)
def test_draws_have_the_listed_probabilities(name):
    assert p_value_of_draws(*CHOSEN[name], 2_000, SeededSource(1)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_random_designs_have_the_listed_probabilities(kind):
    # Cells that expect fewer than 200 are pooled; a frame with one sample has nothing to compare.
    several = [(design, frame) for design, frame in cases(kind, 12) if 1 < len(design.samples(frame)) <= 30][:2]
    for number, (design, frame) in enumerate(several):
        assert p_value_of_draws(design, frame, 4_000, SeededSource(number)) > FALSE_ALARM
    assert several or kind == "census"


def test_a_wrong_law_would_be_noticed():
    # Poisson samples given their size are not Sampford's: the same draws must fail against the other probabilities.
    design, frame = Sampford(2), Frame.of(sizes=[1, 2, 3, 3])
    chances = list(design.inclusion(frame))
    masses = {
        s: np.prod([float(chances[k] if k in s else 1 - chances[k]) for k in range(4)]) for s in design.samples(frame)
    }
    source, seen = SeededSource(1), Counter()
    for _ in range(2_000):
        seen[tuple(design.draw(frame, source).units.tolist())] += 1
    assert p_value([seen[s] for s in masses], [mass / sum(masses.values()) for mass in masses.values()]) < FALSE_ALARM


def test_a_draw_holds_units_weights_and_whether_it_may_be_released():
    frame = Frame.of(strata=[*"aaabb"])
    drawn = Stratified(Given({"a": 2, "b": 1})).draw(frame, SeededSource(2))
    assert len(drawn) == 3 and drawn.times.tolist() == [1, 1, 1] and np.all(np.diff(drawn.units) > 0)
    assert list(drawn.weights) == [Fraction(3, 2), Fraction(3, 2), Fraction(2)]
    assert not drawn.for_release and SimpleRandom(1).draw(frame, SystemSource()).for_release
    assert SimpleRandom(1).draw(frame).for_release


def test_the_same_key_draws_the_same_sample():
    for kind in KINDS:
        for design, frame in cases(kind, 2):
            first, second = (design.draw(frame, SeededSource(5)) for _ in range(2))
            assert np.array_equal(first.units, second.units) and np.array_equal(first.times, second.times)


def test_draws_with_replacement_count_each_time():
    drawn = WithReplacement(50).draw(Frame.of(3), SeededSource(1))
    assert len(drawn) == 50 == drawn.times.sum() and set(drawn.weights) == {Fraction(3, 50)}
    assert sum(w * t for w, t in zip(drawn.weights, drawn.times.tolist(), strict=True)) == 3


def test_a_sample_can_be_empty_and_nothing_breaks():
    for design in (Bernoulli("1/1000000000000"), TwoStage(Bernoulli("1/1000000000000"))):
        # Something is sampled with a probability below 1e-11.
        drawn = design.draw(Frame.of(clusters=[1, 1, 2]), SeededSource(1))
        assert len(drawn) == len(drawn.weights) == 0


def test_sampford_ends_where_nearly_everything_is_certain():
    # The small unit is sampled with probability 1e-9; drawing a first unit by size alone would take 1e9 attempts.
    drawn = Sampford(5).draw(Frame.of(sizes=[10**9] * 5 + [1]), SeededSource(1))
    assert drawn.units.tolist() == [0, 1, 2, 3, 4]


def test_large_frames_are_drawn_from():
    generator = np.random.default_rng(3)
    frame = Frame.of(sizes=generator.integers(100, 1_000, 200_000), strata=generator.integers(0, 40, 200_000))
    strata = Stratified(Given(dict.fromkeys(range(40), 125)))
    for design in (SimpleRandom(5_000), SystematicBySize(5_000), Sampford(5_000), strata):
        drawn = design.draw(frame, SeededSource(4))
        assert len(drawn.units) == 5_000 == len(drawn.weights)
        # The estimated number of units has a standard deviation of about 1,800 by size and 0 else, and weights are
        # below 230: 20,000 is exceeded with a probability below 1e-15 (Bernstein), the order being random.
        assert abs(float(drawn.weights.total()) - 200_000) < 20_000
