"""Allocations add up, are the best whole numbers, and keep to what strata have."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from stirred.errors import SurveyError
from stirred.lab.sampling import Equal, Frame, Given, Neyman, Proportional, Stratified


def best(sample, minimum, shares, units):
    """The smallest sum of share^2 / n over all allocations."""
    ranges = [range(min(minimum, count), count + 1) for count in units]
    return min(
        sum(share * share / Fraction(n) for share, n in zip(shares, sizes, strict=True))
        for sizes in itertools.product(*ranges)
        if sum(sizes) == sample
    )


def test_rules_find_the_best_whole_numbers():
    generator = np.random.default_rng(1)
    for _ in range(60):
        units = generator.integers(1, 9, 3).tolist()
        minimum = int(generator.integers(1, 3))
        least = sum(min(minimum, count) for count in units)
        sample = int(generator.integers(least, sum(units) + 1))
        deviations = {name: Fraction(int(generator.integers(0, 9)), 3) for name in "abc"} | {"a": Fraction(1, 2)}
        for rule, shares in (
            (Equal(sample, minimum), [Fraction(1)] * 3),
            (Proportional(sample, minimum), [Fraction(count) for count in units]),
            (
                Neyman(sample, deviations, public=True, minimum=minimum),
                [count * deviations[name] for count, name in zip(units, "abc", strict=True)],
            ),
        ):
            sizes = rule.sizes("abc", units)
            assert sum(sizes) == sample
            assert all(min(minimum, count) <= size <= count for size, count in zip(sizes, units, strict=True))
            reached = sum(share * share / Fraction(n) for share, n in zip(shares, sizes, strict=True))
            assert reached == best(sample, minimum, shares, units)


def test_large_samples_are_shared_as_one_unit_at_a_time_would():
    # The steps that are skipped must not change anything.
    generator = np.random.default_rng(2)
    for _ in range(10):
        units = generator.integers(5, 400, 12).tolist()
        sample = int(generator.integers(24, sum(units)))
        sizes = [2] * 12
        while sum(sizes) < sample:
            open_ = [h for h in range(12) if sizes[h] < units[h]]
            sizes[max(open_, key=lambda h: (Fraction(units[h] ** 2, sizes[h] * (sizes[h] + 1)), -h))] += 1
        assert Proportional(sample).sizes(range(12), units) == tuple(sizes)


def test_exact_proportions_are_kept():
    assert Proportional(100).sizes("abc", [500, 300, 200]) == (50, 30, 20)
    assert Neyman(80, {"a": 1, "b": 3}, public=True).sizes("ab", [500, 500]) == (20, 60)
    assert Equal(9).sizes("abc", [500, 30, 200]) == (3, 3, 3)


def test_ties_do_not_depend_on_the_order_of_units():
    design = Stratified(Proportional(5))
    for labels in ("aaabbb", "bbbaaa", "ababab"):
        assert design.allocated(Frame.of(strata=[*labels])) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    "allocation, kind, words",
    [
        (Given({"a": 1, "c": 1, "b": 1}), "unknown-strata", "no stratum 'c'"),
        (Neyman(4, {"a": 1, "b": 1, "7": 1}, public=True), "unknown-strata", "no stratum '7'"),
        (Given({"a": 1}), "strata-without-number", "1 strata of the frame have no sample size"),
        (Neyman(4, {"a": 1}, public=True), "strata-without-number", "no standard deviation"),
        (Given({"a": 4, "b": 1}), "stratum-too-small", "4 units are to be sampled in the stratum 'a', which has 3"),
        (Proportional(7), "sample-too-large", "7 units are to be sampled, and there are 6"),
        (Proportional(3), "sample-too-small", "A sample of 3 cannot have 2 units"),
        (Neyman(4, {"a": 0, "b": 0}, public=True), "design-number", "Every standard deviation is 0"),
    ],
)
def test_allocations_that_do_not_fit_are_refused(allocation, kind, words):
    with pytest.raises(SurveyError, match=words) as refusal:
        Stratified(allocation).check(Frame.of(strata=[*"aaabbb"]))
    assert refusal.value.kind == kind
