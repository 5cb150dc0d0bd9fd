"""Quantiles on a grid: equal to R's survey where values are the edges, and to the definition by search elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from survey_files import recorded, same, stage, survey

from stirred.survey.design import linearised
from stirred.survey.design.linearised import WeightedSample
from stirred.survey.estimating import intervals


def weighted_counts():
    file = survey("clusters")
    return np.bincount(file["step"] - 1, file["weight"], minlength=30)


def test_quantiles_and_woodruff_intervals_are_those_of_r_survey():
    theirs = recorded()["r"]["quantiles"]
    file = survey("clusters")
    sample = WeightedSample.of(file["weight"], stage(file, fpc=True))

    def standard_error(value):
        return linearised.means(sample, file["step"] <= value).standard_errors[0]

    edges, counts = np.arange(31), weighted_counts()
    values = intervals.grid_quantiles(edges, counts, theirs["probabilities"], rule="step")
    assert values.tolist() == theirs["values"]
    # R goes out from the share at the quantile, which a step makes larger than the probability that was asked for.
    shares = intervals.cumulated_shares(counts)[values.astype(int) - 1]
    found = intervals.woodruff_intervals(
        edges,
        counts,
        shares,
        standard_error,
        degrees_of_freedom=sample.first_stage.degrees_of_freedom,
        rule="step",
    )
    assert sample.first_stage.degrees_of_freedom == theirs["degrees_of_freedom"]
    assert found.values.tolist() == theirs["values"]
    assert found.lower.tolist() == theirs["lower"] and found.upper.tolist() == theirs["upper"]
    same([standard_error(value) for value in theirs["values"]], theirs["standard_errors"])
    assert (found.lower < found.upper).all() and found.cut_off == 0


def test_linear_quantiles_are_the_smallest_values_that_reach_the_share():
    draw = np.random.default_rng(6)
    for _ in range(50):
        edges = np.cumsum(draw.uniform(0.1, 3, 8))
        counts = draw.integers(0, 4, 7) * draw.uniform(1, 5, 7)
        if not counts.any():
            continue
        shares = np.concatenate([[0], np.cumsum(counts) / counts.sum()])
        values = np.linspace(edges[0], edges[-1], 20_001)
        reached = np.interp(values, edges, shares)
        for p in (0.0, 0.1, 0.37, 0.5, 0.9, 1.0):
            searched = values[np.argmax(reached >= p - 1e-9)]
            found = intervals.grid_quantiles(edges, counts, [p])[0]
            assert found == pytest.approx(searched, abs=2 * (edges[-1] - edges[0]) / 20_000)


def test_a_gap_in_the_distribution_belongs_to_its_lower_end():
    assert intervals.grid_quantiles([0, 1, 5, 6], [2, 0, 2], [0.5, 0.75]).tolist() == [1, 5.5]
    assert intervals.grid_quantiles([0, 1, 5, 6], [0, 2, 2], [0, 0.5], rule="step").tolist() == [5, 5]


def test_domains_by_row():
    rows = [[1, 2, 1], [4, 0, 0]]
    both = intervals.grid_quantiles([0, 10, 20, 30], rows, [0.5, 1])
    assert both.tolist() == [intervals.grid_quantiles([0, 10, 20, 30], row, [0.5, 1]).tolist() for row in rows]


def test_noisy_shares_never_fall_and_are_the_nearest_such():
    draw = np.random.default_rng(7)
    counts = np.array([3, 0, 0, 0, 5, 0, 8, 0, 0]) + draw.normal(0, 1, 9)
    shares = intervals.cumulated_shares(counts)
    raw = np.cumsum(counts) / counts.sum()
    assert (np.diff(raw) < 0).any()
    assert (np.diff(shares) >= 0).all() and shares[-1] == 1 and shares.min() >= 0 and shares.max() <= 1
    distance = ((shares - raw) ** 2).sum()
    for _ in range(2000):
        other = np.sort(np.clip(shares[:-1] + draw.normal(0, 0.05, 8), 0, 1))
        assert ((other - raw[:-1]) ** 2).sum() >= distance - 1e-12


def test_an_interval_is_cut_off_at_the_ends_of_the_grid_and_says_so():
    found = intervals.woodruff_intervals([0, 1, 2], [1, 1], [0.05, 0.5], lambda value: 0.1)
    assert found.lower[0] == 0 and found.cut_off == 1
    assert found.upper[1] == pytest.approx(1 + 2 * 0.195996398454)


def test_wider_with_few_degrees_of_freedom():
    ends = [
        intervals.woodruff_intervals([0, 1], [1], [0.5], lambda value: 0.05, degrees_of_freedom=degrees).upper[0]
        for degrees in (3, 30, None)
    ]
    assert ends[0] > ends[1] > ends[2]
