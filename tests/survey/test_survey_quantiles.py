"""Quantiles on a grid: equal to the definition by search."""

from __future__ import annotations

import numpy as np
import pytest

from stirred.survey.estimating.intervals import cumulated_shares, grid_quantiles


def quantiles(edges, counts, probabilities):
    shares = cumulated_shares(np.array([counts], dtype=float))[0]
    return grid_quantiles(np.array(edges, dtype=float), shares, np.array(probabilities))


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
            found = quantiles(edges, counts, [p])[0]
            assert found == pytest.approx(searched, abs=2 * (edges[-1] - edges[0]) / 20_000)


def test_a_gap_in_the_distribution_belongs_to_its_lower_end():
    assert quantiles([0, 1, 5, 6], [2, 0, 2], [0.5, 0.75]).tolist() == [1, 5.5]


def test_noisy_shares_never_fall_and_are_the_nearest_such():
    draw = np.random.default_rng(7)
    counts = np.array([3, 0, 0, 0, 5, 0, 8, 0, 0]) + draw.normal(0, 1, 9)
    shares = cumulated_shares(np.array([counts, np.ones(9)]))[0]
    raw = np.cumsum(counts) / counts.sum()
    assert (np.diff(raw) < 0).any()
    assert (np.diff(shares) >= 0).all() and shares[-1] == 1 and shares.min() >= 0 and shares.max() <= 1
    distance = ((shares - raw) ** 2).sum()
    for _ in range(2000):
        other = np.sort(np.clip(shares[:-1] + draw.normal(0, 0.05, 8), 0, 1))
        assert ((other - raw[:-1]) ** 2).sum() >= distance - 1e-12
