"""Draws against the whole law: each integer down to 5 expected draws, one scale or one for each row.

The fast tests make a million draws, those marked slow a hundred million. False alarm below 1e-9 each.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact_laws import counts_fit
from scipy import stats

from stirred.noise import (
    SeededSource,
    discrete_gaussian,
    discrete_gaussian_each,
    discrete_laplace,
    discrete_laplace_each,
)
from stirred.noise.scales import PairRows

PRODUCTION = Fraction(214437516707, 177339451520)
VARIANCES = [
    Fraction(1, 20),
    Fraction(3, 7),
    Fraction(1),
    PRODUCTION,
    Fraction(100),
    Fraction(12345, 7),
    Fraction(10**4),
    Fraction(10**6),
    Fraction(1000003, 1),
    Fraction(10**12 + 1, 3),
    Fraction(2**60),
]
SCALES = [
    Fraction(1, 3),
    Fraction(3, 7),
    Fraction(1),
    Fraction(100),
    Fraction(12345, 7),
    Fraction(10**4),
    Fraction(10**6),
]
MILLION = 1_000_000
BATCH = 10_000_000


def cells(scale, power, draws):
    """(width of a cell, first cell, chances): cells of one integer, or of as many as expect 20 draws in the middle."""
    spread = float(scale) ** (1 / power)
    width = max(1, int(20 * spread / draws))
    reach = int((25 if power == 1 else 7) * spread) // width + 2
    if spread < 20_000:
        values = np.arange(-reach * width, (reach + 1) * width)
        weights = np.exp(-(np.abs(values / spread) ** power) / power).reshape(-1, width).sum(axis=1)
        return width, -reach, weights / weights.sum()
    # Sums over wide cells are integrals between half-integers, up to 1 / (24 spread^2) of themselves.
    ends = (np.arange(-reach, reach + 2) * width - 0.5) / spread
    return width, -reach, np.diff((stats.norm if power == 2 else stats.laplace).cdf(ends))


def law_holds(draw, scale, power, draws):
    """Cells of the whole support, and the low ten bits of wide laws."""
    width, first, chances = cells(scale, power, draws)
    counts = np.zeros(len(chances) + 1, dtype=np.int64)
    low = np.zeros(1024, dtype=np.int64)
    for batch in range(-(-draws // BATCH)):
        drawn = draw(min(BATCH, draws), batch)
        place = drawn // width - first
        place[(place < 0) | (place >= len(chances))] = len(chances)
        counts += np.bincount(place, minlength=len(chances) + 1)
        low += np.bincount(drawn & 1023, minlength=1024)
    assert counts_fit(counts, np.append(chances, 0.0))
    if float(scale) ** (1 / power) > 2000:
        even = np.abs(1024 / float(scale) ** (1 / power))
        if power == 2 or even**2 * draws < 1:  # the Laplace law has a peak, which shows in its low bits
            assert counts_fit(low, np.full(1024, 1 / 1024))


@pytest.mark.parametrize("draws", [MILLION, pytest.param(100 * MILLION, marks=pytest.mark.slow)])
@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_gaussian_draws_follow_their_law(variance, draws):
    law_holds(lambda size, batch: discrete_gaussian(variance, size, SeededSource(1000 + batch)), variance, 2, draws)


@pytest.mark.parametrize("draws", [MILLION, pytest.param(100 * MILLION, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_draws_follow_their_law(scale, draws):
    law_holds(lambda size, batch: discrete_laplace(scale, size, SeededSource(2000 + batch)), scale, 1, draws)


EACH = [(2, variance) for variance in VARIANCES[1:]] + [(1, scale) for scale in SCALES]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("draws", [MILLION, pytest.param(100 * MILLION, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("power", "scale"), EACH, ids=str)
def test_draws_with_a_scale_in_each_row_follow_their_law(power, scale, draws, monkeypatch):
    """The same scale in every row, kept from being grouped."""
    monkeypatch.setattr(PairRows, "grouped", lambda self: None)
    each = discrete_gaussian_each if power == 2 else discrete_laplace_each

    def draw(size, batch):
        return each((np.full(size, scale.numerator), np.full(size, scale.denominator)), SeededSource(3000 + batch))

    law_holds(draw, scale, power, draws)


def test_draws_of_one_call_are_independent_of_each_other():
    """Neighbours, and draws a chunk apart, in pairs. False alarm below 1e-9."""
    drawn = np.clip(discrete_gaussian(2, MILLION, SeededSource(4)), -3, 3) + 3
    alone = np.bincount(drawn, minlength=7) / len(drawn)
    for apart in (1, 2, 3, 1 << 17, 1 << 18):
        pairs = np.bincount(drawn[:-apart] * 7 + drawn[apart:], minlength=49)
        assert counts_fit(pairs, np.outer(alone, alone).ravel())
