"""The simulated surveys that coverage is tested with: held against the package's exact designs on small frames.

Draws have fixed seeds. A comparison of frequencies fails by chance with probability 1e-9, all its cells together, by
the exact binomial law; comparisons of means of thousands of estimates do so by the normal law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import simulated_surveys as simulated
from scipy import stats

from stirred.lab.sampling import Design, Frame, Given, Poisson, SimpleRandom, Stratified, SystematicBySize, TwoStage

FALSE_ALARM = 1e-9
SURVEYS = 20_000

STRATA = ["a"] * 7 + ["b"] * 5
CLUSTERS = [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6]
SIZES = [3, 1, 2, 4, 2, 1, 3, 5, 2, 4, 3, 6]
VALUES = np.array([2.0, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5])

POPULATION = simulated.Population.of(strata=STRATA, clusters=CLUSTERS, sizes=SIZES)
FRAME = Frame.of(strata=STRATA, clusters=CLUSTERS, sizes=SIZES)
# The exact design needs as many units in every cluster as are taken; here every cluster has two or more.
PAIRED_CLUSTERS = [1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5]
PAIRED = simulated.Population.of(strata=STRATA, clusters=PAIRED_CLUSTERS)


@dataclass(frozen=True)
class Case:
    draws: simulated.Draws
    design: Design
    frame: Frame


def cases() -> dict[str, Case]:
    by_stratum = Given({"a": 3, "b": 2})
    return {
        "simple": Case(simulated.simple_random(POPULATION, 5, SURVEYS, 1), SimpleRandom(5), FRAME),
        "stratified": Case(simulated.stratified(POPULATION, [3, 2], SURVEYS, 2), Stratified(by_stratum), FRAME),
        "poisson": Case(simulated.poisson(POPULATION, 4, SURVEYS, 3), Poisson(4), FRAME),
        "two-stage": Case(
            simulated.two_stage(PAIRED, [2, 1], 2, SURVEYS, 4),
            TwoStage(Stratified(Given({"a": 2, "b": 1})), SimpleRandom(2)),
            Frame.of(strata=STRATA, clusters=PAIRED_CLUSTERS),
        ),
        "systematic by size": Case(
            simulated.systematic_by_size(POPULATION, [3, 2], SURVEYS, 5),
            Stratified(by_stratum, SystematicBySize),
            FRAME,
        ),
    }


CASES = cases()


@pytest.fixture(params=list(CASES))
def case(request) -> Case:
    return CASES[request.param]


def assert_frequencies(found: np.ndarray, chances: np.ndarray) -> None:
    """Each count is binomial; the smaller tail is at least half of an equal share of the false alarm."""
    law = stats.binom(SURVEYS, chances.ravel())
    tail = np.minimum(law.cdf(found.ravel()), law.sf(found.ravel() - 1))
    assert tail.min() > FALSE_ALARM / (2 * found.size)


def assert_mean(found: np.ndarray, true: float) -> None:
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - true) < stats.norm.isf(FALSE_ALARM / 2) * error


def exact_variance(design: Design, frame: Frame, values: np.ndarray) -> float:
    """The sum over all pairs of (pi_ij - pi_i pi_j) times both weighted values."""
    joint = design.joint(frame).astype(np.float64)
    inclusion = np.diag(joint)
    weighted = values / inclusion
    return float(weighted @ (joint - np.outer(inclusion, inclusion)) @ weighted)


def test_weights_are_those_of_the_exact_design(case):
    exact = case.design.weights(case.frame).floats()
    np.testing.assert_allclose(case.draws.weight, exact[case.draws.unit], rtol=1e-13)


def test_units_and_pairs_are_sampled_as_often_as_the_exact_design_says(case):
    drawn = np.zeros((SURVEYS, len(VALUES)))
    drawn[case.draws.survey, case.draws.unit] += 1
    assert drawn.sum() == len(case.draws.unit)  # nobody twice
    assert_frequencies(drawn.T @ drawn, case.design.joint(case.frame).astype(np.float64))


def test_estimated_totals_have_the_mean_and_the_variance_of_the_exact_design(case):
    totals = case.draws.totals(VALUES)
    true = VALUES.sum()
    assert_mean(totals, true)
    assert_mean((totals - true) ** 2, exact_variance(case.design, case.frame, VALUES))


def test_estimated_variances_are_unbiased_where_an_unbiased_estimate_exists():
    for name in ("simple", "stratified"):
        assert_mean(CASES[name].draws.variances(VALUES), exact_variance(CASES[name].design, FRAME, VALUES))
    poisson = CASES["poisson"]
    assert_mean(poisson.draws.poisson_variances(VALUES), exact_variance(poisson.design, FRAME, VALUES))
    draws = simulated.two_stage(PAIRED, [2, 2], 2, SURVEYS, 6)
    two_stage = TwoStage(Stratified(Given({"a": 2, "b": 2})), SimpleRandom(2))
    frame = Frame.of(strata=STRATA, clusters=PAIRED_CLUSTERS)
    assert_mean(draws.variances(VALUES), exact_variance(two_stage, frame, VALUES))


def test_without_the_correction_variances_are_those_of_draws_with_replacement():
    draws = CASES["simple"].draws
    uncorrected = draws.variances(VALUES, corrected=False)
    np.testing.assert_allclose(draws.variances(VALUES), (1 - 5 / 12) * uncorrected, rtol=1e-12)
    one = VALUES[draws.one(3).unit]
    assert uncorrected[3] == pytest.approx(12**2 * one.var(ddof=1) / 5, rel=1e-12)


def test_draws_with_replacement_have_their_own_law():
    draws = simulated.with_replacement_by_size(POPULATION, [3, 2], SURVEYS, 7)
    share = np.array(SIZES) / np.bincount(POPULATION.strata, SIZES)[POPULATION.strata]
    number = np.array([3, 2])[POPULATION.strata]
    np.testing.assert_allclose(draws.weight, (1 / (number * share))[draws.unit], rtol=1e-13)
    times = np.zeros((SURVEYS, len(VALUES)), dtype=np.int64)
    np.add.at(times, (draws.survey, draws.unit), 1)
    assert (times.sum(axis=1) == 5).all() and times.max() > 1
    assert_frequencies((times > 0).sum(axis=0), 1 - (1 - share) ** number)
    assert_mean(draws.totals(VALUES), VALUES.sum())
    # Hansen and Hurwitz: with z = y / share, each of n draws in a stratum has the variance of z under the shares.
    z = VALUES / share
    mean = np.bincount(POPULATION.strata, share * z)[POPULATION.strata]
    assert_mean(draws.variances(VALUES), float((share * (z - mean) ** 2 / number).sum()))


def test_systematic_draws_in_a_random_order_keep_the_probabilities():
    draws = simulated.systematic_by_size(POPULATION, [3, 2], SURVEYS, 8, random_order=True)
    inclusion = Stratified(Given({"a": 3, "b": 2}), SystematicBySize).inclusion(FRAME).floats()
    assert_frequencies(draws.times_drawn(len(VALUES)), inclusion)
    drawn = np.zeros((SURVEYS, len(VALUES)))
    drawn[draws.survey, draws.unit] += 1
    together = (drawn.T @ drawn > 0)[:7, :7]
    assert together.all()  # in the order of the frame some neighbours never are


def test_small_clusters_are_taken_whole():
    draws = simulated.two_stage(POPULATION, [2, 2], 2, 50, 9)
    alone = draws.psu == 4  # one unit
    assert alone.any()
    clusters, units = np.array([3, 3]), np.array([3, 2, 2, 2, 1, 2])
    expected = (clusters / 2)[draws.stratum] * (units / np.minimum(2, units))[draws.psu]
    np.testing.assert_allclose(draws.weight, expected)
    for one in draws:
        assert np.bincount(one.stratum).sum() == len(one.unit) and len(np.unique(one.psu)) == 4


def test_one_survey_is_the_part_that_belongs_to_it():
    draws = CASES["stratified"].draws
    for number in (0, 17, SURVEYS - 1):
        one = draws.one(number)
        assert one.unit.tolist() == draws.unit[draws.survey == number].tolist()
        assert one.totals(VALUES)[0] == pytest.approx(draws.totals(VALUES)[number], rel=1e-12)
        assert one.variances(VALUES)[0] == pytest.approx(draws.variances(VALUES)[number], rel=1e-12)


def test_the_same_seed_draws_the_same_surveys():
    again = simulated.poisson(POPULATION, 4, SURVEYS, 3)
    assert np.array_equal(again.unit, CASES["poisson"].draws.unit)
    assert not np.array_equal(simulated.poisson(POPULATION, 4, SURVEYS, 30).unit[:50], again.unit[:50])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="must stand together"):
        simulated.Population.of(strata=["a", "b", "a"])
    with pytest.raises(ValueError, match="in two strata"):
        simulated.Population.of(strata=["a", "b"], clusters=[1, 1])
    with pytest.raises(ValueError, match="between one sampled unit and all"):
        simulated.stratified(POPULATION, [8, 2], 10, 0)
    with pytest.raises(ValueError, match="above 1"):
        simulated.poisson(POPULATION, 12, 10, 0)
    with pytest.raises(ValueError, match="has no sizes"):
        simulated.with_replacement_by_size(PAIRED, [1, 1], 10, 0)
