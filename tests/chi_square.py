"""Chi-square tests with a stated false-alarm probability, for all statistical tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

FALSE_ALARM = 1e-12
"""Nominal, for every statistical test here. Cells expect 200 or more, whose skewness at seven standard deviations
multiplies a tail by exp(7^3 / (6 sqrt(200))), less than 100: the true false-alarm probability stays below 1e-9."""


def p_value(observed, chances):
    """Of a chi-square test against exact ``chances``; cells that expect fewer than 200 are pooled."""
    observed = np.asarray(observed)
    expected = np.array([float(chance) for chance in chances]) * observed.sum()
    assert expected.sum() == pytest.approx(observed.sum(), rel=1e-12)
    if observed[expected == 0].any():
        return 0.0
    order = np.argsort(expected)
    pooled = max(np.searchsorted(expected[order], 200), np.searchsorted(np.cumsum(expected[order]), 200) + 1)
    starts = [0, *range(pooled, len(order))]
    assert len(starts) > 1, "too few draws to compare anything"
    found, wanted = np.add.reduceat(observed[order], starts), np.add.reduceat(expected[order], starts)
    return stats.chi2.sf(np.sum((found - wanted) ** 2 / wanted), len(starts) - 1)
