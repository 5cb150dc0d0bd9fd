"""Estimates after several rounds and at several rates: unbiased by every permutation, and intervals by draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from rates_oracle import permutation_chances, reselecting
from rounds_oracle import rounds_law
from scipy import stats
from swap_oracle import permutations

from stirred import errors
from stirred.noise import SeededSource
from stirred.swap.data.counting import RecordRates
from stirred.swap.estimating import simulated_estimates
from stirred.swap.estimating.cell_estimates import Block, Shape, Tally
from stirred.swap.estimating.question_counts import CountParts
from stirred.swap.estimating.simulated_estimates import LinearEstimates, ReleasedRecords, SimulatedParts
from stirred.swap.law.moments import LawConstants
from stirred.tables.groups import Groups

RATE = Fraction(3, 10)


def asked(stratum, held, swapped, *, first=RATE, later=(), scores=None, groups=None):
    """Tally and records of a question by (held, swap value), all strata together.

    ``later`` are pairs of a rate and the place of every swap value; ``scores[held class, group]`` default to one group
    for each held value; ``groups[value]`` puts swap values together.
    """
    stratum, held, swapped = (np.asarray(part, dtype=np.int64) for part in (stratum, held, swapped))
    scores = np.eye(int(held.max()) + 1, dtype=np.int64) if scores is None else np.asarray(scores)
    many = int(swapped.max()) + 1
    at, group = np.nonzero(scores)
    size = np.bincount(stratum)
    keys, count = np.unique((stratum * (held.max() + 1) + held) * many + swapped, return_counts=True)
    by_stratum, rule = None, None
    law = LawConstants.of(size, first) if isinstance(first, Fraction) else None
    strata = Groups(stratum.astype(np.uint32), len(size))
    if law is None:
        by_stratum = first.by_stratum(strata)
        law = LawConstants.by_rate(size, by_stratum.one_each())
        rule = np.zeros(int(held.max()) + 1, dtype=np.int64)
        rule[held] = first.rule
    groups = np.arange(many) if groups is None else np.asarray(groups)
    tally = Tally(
        Shape(1, scores.shape[1], int(groups.max()) + 1), law, np.zeros(len(size), dtype=np.int64),
        keys // many // (held.max() + 1), keys // many % (held.max() + 1), keys % many, count,
        at, group, scores[at, group], groups, by_stratum, rule,
    )  # fmt: skip
    coarse = tuple(np.asarray(places, dtype=np.int64) for _, places in later)
    return tally, ReleasedRecords(strata, held, swapped, np.arange(many), coarse, first, tuple(p for p, _ in later))


def true_counts(records, scores, groups, answers):
    found = np.zeros((scores.shape[1], groups.max() + 1))
    for held, value in zip(records.held, records.values, strict=True):
        found[:, groups[value]] += scores[held]
    return found.reshape(-1)[answers]


TABLES = [
    [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3)],
    [(0, 0), (0, 0), (1, 1), (1, 2), (0, 3), (1, 3)],
    [(0, 2), (1, 2), (1, 3), (0, 0)],
]


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("merged", [False, True], ids=["values", "merged"])
def test_after_two_and_three_rounds_the_mean_of_the_estimates_is_the_truth(table, merged):
    """By all permutations: the mean over the exact law, whatever the groups of the later rounds."""
    held, swapped = zip(*table, strict=True)
    groups = np.array([0, 0, 1, 1]) if merged else np.arange(4)
    scores = np.array([[1, 0], [0, 2], [3, 1]])  # linked rows: several of a record
    for later in ([(Fraction(1, 5), [0, 0, 1, 1])], [(Fraction(1, 5), [0, 0, 0, 1]), (Fraction(2, 5), [0, 0, 1, 2])]):
        tally, records = asked(np.zeros(len(table)), held, swapped, later=later, scores=scores[: max(held) + 1],
                               groups=groups[: max(swapped) + 1])  # fmt: skip
        linear = LinearEstimates(tally, records)
        truth = true_counts(records, scores, groups, linear.keys)
        rounds = [([0] * 4, RATE), *((places, rate) for rate, places in later)]
        mean, moved = np.zeros(len(truth)), 0.0
        for released, chance in rounds_law(tuple(sorted(table)), rounds).items():
            values = released_values(held, released)
            mean += float(chance) * linear.estimates(values)
            moved += float(chance) * np.abs(linear.released(values) - truth).sum()
        usable = linear.left_open == 0
        assert usable.any() and moved > 0.1
        assert mean[usable] == pytest.approx(truth[usable], abs=1e-9)


def released_values(held, released):
    """Swap values by slot: records of the same held value are alike, so any order of theirs will do."""
    left = {}
    for h, s in released:
        left.setdefault(h, []).append(s)
    return np.array([left[h].pop() for h in held])


def test_with_different_rates_the_mean_of_the_estimates_is_the_truth():
    """Rates by held value, linked rows, by all permutations."""
    held, swapped = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 0])
    rates = (Fraction(1, 10), Fraction(2, 5))
    rule = np.array([0, 1, 1])[held].astype(np.uint8)
    scores = np.array([[1, 0], [0, 2], [3, 1]])
    tally, records = asked(np.zeros(5), held, swapped, first=RecordRates(rates, rule), scores=scores)
    linear = LinearEstimates(tally, records)
    truth = true_counts(records, scores, np.arange(3), linear.keys)
    mean = np.zeros(len(truth))
    chances = permutation_chances(reselecting([rates[one] for one in rule]), 5)
    for order, chance in zip(permutations(5)[0], chances, strict=True):
        mean += float(chance) * linear.estimates(swapped[order])
    assert (linear.left_open == 0).all()
    assert mean == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(
    ("held", "scores", "some_open"),
    [([0, 0, 1, 1, 1], [[2, 0], [0, 1]], False),  # all records of a rate have as many rows
     ([0, 1, 2, 2, 3], [[2, 0], [0, 1], [1, 1], [0, 3]], True)],
)  # fmt: skip
def test_linked_rows_of_a_rate_that_mixes_are_open_only_where_its_records_differ(held, scores, some_open):
    """Two records of rate 1/2, three of 1/20, by all permutations: g of the first is near 0."""
    held, swapped, scores = np.array(held), np.array([0, 1, 1, 0, 0]), np.array(scores)
    rates, rule = (Fraction(1, 2), Fraction(1, 20)), np.array([0, 0, 1, 1, 1], dtype=np.uint8)
    tally, records = asked(np.zeros(5), held, swapped, first=RecordRates(rates, rule), scores=scores)
    linear = LinearEstimates(tally, records)
    truth = true_counts(records, scores, np.arange(2), linear.keys)
    mean = np.zeros(len(truth))
    chances = permutation_chances(reselecting([rates[one] for one in rule]), 5)
    for order, chance in zip(permutations(5)[0], chances, strict=True):
        mean += float(chance) * linear.estimates(swapped[order])
    assert (linear.left_open > 0).all() == some_open == (linear.left_open > 0).any()
    assert np.all(np.abs(mean - truth) <= linear.left_open + 1e-9)
    kinds = SimulatedParts(tally, records, 1).kinds
    assert "simulated" not in kinds if some_open else "simulated" in kinds


def random_file(seed, *, strata=4, records=240, values=6):
    random = np.random.default_rng(seed)
    stratum = np.sort(random.integers(0, strata, records))
    held = random.integers(0, 3, records)
    swapped = (held + random.integers(0, 4, records)) % values  # related to what is held
    return stratum, held, swapped


def test_one_round_at_one_rate_gives_the_closed_form():
    tally, records = asked(*random_file(1))
    linear, closed = LinearEstimates(tally, records), CountParts(tally, RATE)
    assert linear.keys.tolist() == closed.keys.tolist()
    assert linear.estimates(records.values) == pytest.approx(closed.values, abs=1e-9)
    assert linear.released(records.values) == pytest.approx(closed.naive)
    assert (linear.varies == (closed.kinds != "known")).all()


def test_different_rates_give_the_closed_form_of_counts():
    stratum, held, swapped = random_file(2)
    rates = RecordRates((Fraction(1, 10), Fraction(2, 5)), np.array([0, 1, 1])[held].astype(np.uint8))
    tally, records = asked(stratum, held, swapped, first=rates)
    parts, closed = SimulatedParts(tally, records, 1), CountParts(tally, None)
    assert parts.values == pytest.approx(closed.values, abs=1e-9)
    # Draws start from the released file: its variances are near those of the plug-in formula.
    assert np.sqrt(parts.variances) == pytest.approx(np.sqrt(closed.variances), rel=0.35)
    assert np.mean(parts.variances / closed.variances) == pytest.approx(1, abs=0.1)


def test_merged_counts_add_up_their_draws_and_know_what_is_kept():
    later = [(Fraction(1, 5), [0, 0, 0, 1, 1, 1])]
    tally, records = asked(*random_file(3), later=later)
    parts = SimulatedParts(tally, records, 1)
    every = np.zeros(3, dtype=np.int64)
    by_value = parts.merged(np.zeros(1, dtype=np.int64), every, np.arange(6))
    assert set(by_value.kinds) == {"known"}, "how many records have a swap value is kept"
    assert by_value.values == pytest.approx(np.bincount(records.values))
    places = parts.merged(np.zeros(1, dtype=np.int64), np.arange(3), np.array([0, 0, 0, 1, 1, 1]))
    own = parts.values.reshape(3, 6)
    assert places.values == pytest.approx(own.reshape(3, 2, 3).sum(axis=2).reshape(-1))
    assert places.replicates == pytest.approx(parts.replicates.reshape(-1, 3, 2, 3).sum(axis=3).reshape(-1, 6))


def test_correlations_are_those_of_the_draws():
    stratum, held, swapped = random_file(4)
    tally, records = asked(stratum, held, swapped, later=[(Fraction(1, 5), [0, 0, 0, 1, 1, 1])])
    simulation = SimulatedParts(tally, records, 1)
    one = Block(np.array([True]), np.array([True, False, False]), np.eye(6, dtype=bool)[0])
    other = Block(np.array([True]), np.array([False, True, True]), np.eye(6, dtype=bool)[0])
    assert simulation.correlation(one, one) == pytest.approx(1)
    assert simulation.correlation(one, other) == pytest.approx(-1), "together they are kept"


def test_groups_too_small_for_their_rate_leave_their_records_open():
    """Two records of a group at rate 1/2 say nothing about which had which value."""
    held, swapped = [0, 1, 0, 1, 0, 1, 0, 1] * 3, [0, 1, 2, 3, 2, 3, 2, 3] * 3
    later = [(Fraction(1, 2), [0, 1, 2, 2])]
    stratum = np.repeat([0, 1, 2], 8)
    tally, records = asked(stratum, held, swapped, first=Fraction(1, 10), later=later)
    assert (LinearEstimates(tally, records).left_open == 0).all()
    pairs = [(Fraction(1, 2), [0, 0, 1, 1])]
    tally, records = asked(stratum, held, swapped, first=Fraction(1, 10), later=pairs)
    open_records = LinearEstimates(tally, records).left_open.reshape(2, 4)
    assert open_records.tolist() == [[3, 3, 0, 0], [3, 3, 0, 0]]


def test_a_file_that_is_too_large_is_not_simulated(monkeypatch):
    tally, records = asked(*random_file(5))
    monkeypatch.setattr(simulated_estimates, "_MOST_DRAWN", 4_000)
    with pytest.raises(errors.StirredError, match=r"at most 100 records; the release has 240") as refused:
        _ = SimulatedParts(tally, records, 1).replicates
    assert refused.value.kind == "too-large-to-simulate"


def coverage(first, later, releases, seed, *, scores=None):
    """How often intervals at 95% contain the truth, over counts that vary, and the number of releases."""
    stratum, held, swapped = random_file(seed)
    source, inside, tried = SeededSource(seed), [], 0
    for key in range(releases):
        tally, records = asked(stratum, held, swapped, first=first, later=later, scores=scores)
        given = scores if scores is not None else np.eye(3, dtype=np.int64)
        drawn = records.draw(source)
        tally, released = asked(stratum, held, drawn, first=first, later=later, scores=scores)
        parts = SimulatedParts(tally, released, key)
        truth = true_counts(records, given, np.arange(6), parts.keys)
        found = parts.parts(0.95, whole=True)
        asked_for = parts.kinds == "simulated"
        inside.append(((found.lower <= truth) & (truth <= found.upper))[asked_for].mean())
        tried += asked_for.sum()
    assert tried > releases * 6
    return np.array(inside)


RULES = RecordRates((Fraction(1, 20), Fraction(3, 10)), np.array([0, 1, 1])[random_file(11)[1]].astype(np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "later", "scores"),
    [
        (Fraction(1, 20), [(Fraction(1, 10), [0, 0, 0, 1, 1, 1])], None),
        (Fraction(3, 10), [(Fraction(1, 5), [0, 0, 0, 1, 1, 1]), (Fraction(1, 10), [0, 0, 1, 2, 2, 3])], None),
        (Fraction(1, 10), [(Fraction(1, 4), [0, 0, 0, 1, 1, 1])], [[1, 0], [0, 2], [3, 1]]),
        (RULES, [], [[1, 0], [0, 2], [3, 1]]),
    ],
    ids=["two rounds", "three rounds", "linked rows in rounds", "linked rows at two rates"],
)
def test_intervals_by_draws_cover_as_they_say(first, later, scores):
    """Coverage of 95% intervals over 120 releases, at least .93 but for an error of the simulation (6 of its own
    standard errors: a false alarm in less than 1e-9 of runs if it is .93)."""
    found = coverage(first, later, 120, 11, scores=None if scores is None else np.array(scores))
    assert found.mean() > 0.93 - 6 * stats.sem(found)
