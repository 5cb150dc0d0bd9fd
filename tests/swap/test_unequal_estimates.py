"""Estimates from strata with different rates: all releases of a small file, and many of larger ones."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from rates_oracle import permutation_chances, reselecting
from simulated_releases import tally_of
from swap_oracle import permutations

from stirred.noise import SeededSource
from stirred.swap.counted_parts import CountParts
from stirred.swap.kernel import draw
from stirred.swap.law_constants import LawConstants
from stirred.swap.rates import RatesByStratum, RecordRates
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


@pytest.mark.parametrize("rates", [("3/10", "1/10"), ("1/4", "1/50"), ("1/100", "1/5")])
@pytest.mark.parametrize(
    ("held", "rule", "swapped"),
    [([1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0]),
     ([1, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1], [2, 0, 1, 0, 1, 0])],
)  # fmt: skip
def test_over_all_releases_estimates_are_unbiased_and_variances_near(held, rule, swapped, rates):
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


@pytest.mark.parametrize("rates", [("1/2", "1/20"), ("3/10", "1/10", "1/50")])
def test_intervals_contain_the_truth_where_rates_differ(rates):
    rng, times = np.random.default_rng(8), 500
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
