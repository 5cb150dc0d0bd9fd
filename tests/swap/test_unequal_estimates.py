"""Estimates from strata with different rates: all releases of a small file, and many of larger ones."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from rates_oracle import permutation_chances, reselecting
from simulated_releases import tally_of
from swap_oracle import permutations

from stirred.noise import SeededSource
from stirred.swap.data.counting import RatesByStratum, RecordRates
from stirred.swap.estimating.question_counts import CountParts
from stirred.swap.law.moments import LawConstants
from stirred.swap.law.permutation import draw
from stirred.tables.groups import Groups


def tally_by_rule(stratum, held, rule, released, rates):
    """A tally of given releases, in which held classes are told apart by rule too."""
    rates, times = tuple(map(Fraction, rates)), len(np.atleast_2d(released))
    classes = np.eye(2 * len(rates), dtype=int)[2 * np.asarray(rule) + np.asarray(held)]
    tally = tally_of(stratum, classes, released, "0.5")
    strata = int(np.max(stratum)) + 1
    counts = np.zeros((strata, len(rates)), dtype=np.int64)
    np.add.at(counts, (stratum, rule), 1)
    by_stratum = RatesByStratum(rates, np.tile(counts, (times, 1)))
    rule_of = np.zeros(tally.classes, dtype=np.int64)
    rule_of[tally.class_of] = tally.group_of // 2
    law = LawConstants.by_rate(np.tile(counts.sum(axis=1), times), by_stratum.one_each())
    tally = replace(tally, rates=by_stratum, rule=rule_of, law=law)
    return tally.merged(np.arange(times), np.tile([0, 1], len(rates)), np.arange(tally.shape.swapped))


FILES = [
    ([1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0]),
    ([1, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1], [2, 0, 1, 0, 1, 0]),
]


@pytest.mark.parametrize(
    ("file", "rates"),
    [(0, ("3/10", "1/10")),
     *(pytest.param(*one, marks=pytest.mark.slow) for one in
       [(1, ("3/10", "1/10")), *product((0, 1), [("1/4", "1/50"), ("1/100", "1/5")])])],
)  # fmt: skip
def test_over_all_releases_estimates_are_unbiased_and_variances_near(file, rates):
    held, rule, swapped = FILES[file]
    held, rule, swapped = np.array(held), np.array(rule), np.array(swapped)
    law = reselecting([Fraction(rates[one]) for one in rule])
    chance = np.array([float(part) for part in permutation_chances(law, 6)])
    every, _ = permutations(6)
    tally = tally_by_rule(np.zeros(6, int), held, rule, swapped[every], rates)
    parts = CountParts(tally, None)
    truth = np.array([[np.sum((held == h) & (swapped == s)) for s in range(swapped.max() + 1)] for h in (0, 1)])
    values = parts.values.reshape(len(every), *truth.shape)
    assert parts.cells.estimated.all()
    np.testing.assert_allclose(np.tensordot(chance, values, 1), truth, atol=1e-9)
    spread = np.tensordot(chance, (values - truth) ** 2, 1)
    stated = np.tensordot(chance, parts.variances.reshape(values.shape), 1)
    np.testing.assert_allclose(stated, spread, rtol=0.25)  # a plug-in, in a stratum of six


@pytest.mark.parametrize(
    ("rates", "times"),
    [(("1/2", "1/20"), 150),
     pytest.param(("1/2", "1/20"), 500, marks=pytest.mark.slow),
     pytest.param(("3/10", "1/10", "1/50"), 500, marks=pytest.mark.slow)],
)  # fmt: skip
def test_intervals_contain_the_truth_where_rates_differ(rates, times):
    rng = np.random.default_rng(8)
    stratum = np.repeat([0, 1, 2], [300, 80, 25])
    n = len(stratum)
    rule = np.where(stratum == 1, 0, rng.choice(len(rates), n)).astype(np.uint8)  # one stratum has one rate
    swapped = rng.integers(0, 2, n)
    held = (rng.random(n) < 0.2 + 0.3 * swapped + 0.2 * (rule == 0)).astype(int)
    ids = (stratum + 3 * np.arange(times)[:, None]).ravel().astype(np.uint32)
    records = RecordRates(tuple(map(Fraction, rates)), np.tile(rule, times))
    moves = draw(Groups(ids, 3 * times), np.tile(np.bincount(stratum), times), records, SeededSource(8))
    released = moves.apply(np.tile(swapped, times).astype(np.uint32)).astype(np.int64).reshape(times, n)
    parts = CountParts(tally_by_rule(stratum, held, rule, released, rates), None)
    assert set(parts.kinds) == {"normal"}
    found = parts.parts(0.95, whole=True)
    truth = np.array([[np.sum((held == h) & (swapped == s)) for s in (0, 1)] for h in (0, 1)]).ravel()
    shape = (times, 4)
    inside = (found.lower.reshape(shape) <= truth) & (truth <= found.upper.reshape(shape))
    assert inside.mean(axis=0).min() >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / times)
    error = found.values.reshape(shape) - truth
    assert np.all(np.abs(error.mean(axis=0)) < 4 * error.std(axis=0) / math.sqrt(times))
    naive = parts.naive.reshape(shape) - truth
    assert np.all(np.abs(naive.mean(axis=0)) > 8 * naive.std(axis=0) / math.sqrt(times))


def every_release(held, rule, swapped, rates):
    """The counts of every release of one small stratum, the chance of each release, and the true counts."""
    held, rule, swapped = np.array(held), np.array(rule), np.array(swapped)
    n = len(held)
    law = reselecting([Fraction(rates[one]) for one in rule])
    chance = np.array([float(part) for part in permutation_chances(law, n)])
    every, _ = permutations(n)
    parts = CountParts(tally_by_rule(np.zeros(n, int), held, rule, swapped[every], rates), None)
    truth = np.array(
        [[np.sum((held == h) & (swapped == s)) for s in range(swapped.max() + 1)] for h in np.unique(held)]
    )
    return parts, chance, truth.ravel()


@pytest.mark.parametrize(
    ("held", "rule", "swapped"),
    [([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 0]),  # classes are held groups: what moves within them changes no count
     ([0, 1, 0, 1], [0, 1, 1, 1], [1, 1, 0, 0]),  # a class of one record
     ([1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 1])],
)  # fmt: skip
def test_small_strata_of_two_classes_are_estimated_where_only_moves_within_a_class_are_lost(held, rule, swapped):
    """At rates 1/2 and 1/20 two records of the first exchange values half the time: g is 0.02."""
    parts, chance, truth = every_release(held, rule, swapped, ("1/2", "1/20"))
    assert not parts.cells.bounded.any()
    values = parts.values.reshape(len(chance), -1)
    np.testing.assert_allclose(chance @ values, truth, atol=1e-9)
    spread, stated = chance @ (values - truth) ** 2, chance @ parts.variances.reshape(values.shape)
    np.testing.assert_allclose(stated, spread, rtol=0.4)  # a plug-in, in a stratum of four or five


@pytest.mark.parametrize(
    ("held", "rule", "swapped", "width"),
    [([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0], 1),
     ([0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], 1),
     ([0, 1, 0, 1, 1], [0, 0, 1, 1, 1], [1, 0, 0, 0, 1], 1),
     pytest.param([0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1], [1, 1, 0, 0, 1, 0], 1, marks=pytest.mark.slow)],
)  # fmt: skip
def test_only_the_class_that_mixes_is_open(held, rule, swapped, width):
    """One of two records with rate 1/2 is in h: its part is open by one record, the others' is estimated without bias.

    Over all releases the mean of the estimate with the least of what is open is at most the truth, and with the most of
    it at least."""
    parts, chance, truth = every_release(held, rule, swapped, ("1/2", "1/20"))
    found = parts.cells
    assert found.estimated.all() and found.bounded.all() and (found.mixed_width == width).all()
    least = chance @ parts.values.reshape(len(chance), -1)
    assert np.all(least <= truth + 1e-9) and np.all(truth <= least + width + 1e-9)
    np.testing.assert_allclose(least, np.rint(least), atol=1e-9)  # the true number of the records that are estimated
    ends = parts.parts(0.95, whole=True)
    inside = ((ends.lower <= np.tile(truth, len(chance))) & (np.tile(truth, len(chance)) <= ends.upper)).reshape(-1, 4)
    assert np.all(chance @ inside >= 0.95)


def test_where_classes_mix_with_each_other_the_margins_alone_are_given():
    """Rates near 1/2 of two records: none of the two is told from the other."""
    parts, _, _ = every_release([0, 1], [0, 1], [0, 1], ("1/2", "49/100"))
    assert set(parts.kinds) == {"margins"} and not parts.cells.estimated.any()


def releases_of_small_strata(rule_of, times, seed):
    """Values and intervals, naive counts and truth of ``times`` releases of 60 strata of 4 at rates 1/2 and 1/20."""
    rng, strata, rates = np.random.default_rng(seed), 60, ("1/2", "1/20")
    stratum, swapped = np.repeat(np.arange(strata), 4), rng.integers(0, 2, 4 * strata)
    held = (rng.random(len(swapped)) < 0.25 + 0.5 * swapped).astype(int)
    rule = rule_of(held, rng).astype(np.uint8)
    records = RecordRates(tuple(map(Fraction, rates)), rule)
    source, found = SeededSource(seed), []
    truth = np.array([[np.sum((held == h) & (swapped == s)) for s in (0, 1)] for h in (0, 1)]).ravel()
    for _ in range(times):
        moves = draw(Groups(stratum.astype(np.uint32), strata), np.full(strata, 4), records, source)
        released = moves.apply(swapped.astype(np.uint32)).astype(np.int64)
        parts = CountParts(tally_by_rule(stratum, held, rule, released, rates), None)
        ends = parts.parts(0.95, whole=True)
        found.append((parts.values, parts.naive, ends.lower, ends.upper, parts.kinds == "bounded"))
    values, naive, lower, upper, bounded = (np.array(part) for part in zip(*found, strict=True))
    return values - truth, naive - truth, (lower <= truth) & (truth <= upper), upper - lower, bounded


@pytest.mark.slow
def test_in_many_strata_of_four_the_estimate_is_nearer_than_the_naive_count():
    """The rule is what is held. 157 releases; each mean is 6 of its standard errors from 0 by chance once in 5e8."""
    error, naive, inside, _, bounded = releases_of_small_strata(lambda held, rng: held, 157, 3)
    assert not bounded.any()
    assert np.all(np.abs(error.mean(axis=0)) < 6 * error.std(axis=0) / math.sqrt(157))
    assert np.all(np.sqrt((error**2).mean(axis=0)) < 0.7 * np.sqrt((naive**2).mean(axis=0)))
    assert inside.mean() > 0.95 - 6 * math.sqrt(0.95 * 0.05 / 157)


@pytest.mark.slow
def test_in_many_strata_of_four_with_rates_by_something_else_only_bounds_are_given():
    """The rule has nothing to do with what is asked. 40 releases: intervals are wide, and at 95% all but a few cover
    (a false alarm, twelve or more of 40 that miss, has a probability below 1e-6)."""
    _, _, inside, width, bounded = releases_of_small_strata(lambda held, rng: rng.random(len(held)) < 0.5, 40, 4)
    assert bounded.all() and inside.mean(axis=0).min() > 0.7 and width.max() < 60
