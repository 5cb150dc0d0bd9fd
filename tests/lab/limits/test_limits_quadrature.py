"""Integrals with their errors: known ones on many scales, poles at ends, and integrals that do not exist."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from stirred.lab.limits.posteriors import GAUSS, KRONROD, NODES, integrals

INF = math.inf


@pytest.mark.parametrize(
    ("law", "breaks"),
    [
        (stats.expon(), (0, INF)),
        (stats.expon(scale=1e-9), (0, INF)),
        (stats.expon(scale=1e9), (0, INF)),
        (stats.norm(), (-INF, INF)),
        (stats.norm(1000, 1e-3), (-INF, 1000, INF)),
        (stats.gamma(0.2), (0, INF)),
        (stats.beta(0.3, 0.4), (0, 1)),
        (stats.cauchy(), (-INF, INF)),
        (stats.pareto(0.3), (1, INF)),
        (stats.uniform(0, 1 / 3), (0, 1)),
    ],
)
def test_densities_integrate_to_one_within_the_stated_error(law, breaks):
    found = integrals(lambda x: law.pdf(x)[None], breaks)
    assert found.errors[0] < 1e-6
    assert abs(found.values[0] - 1) <= found.errors[0]
    assert np.all(found.edges[1:, 0] == found.edges[:-1, 1])
    assert found.parts.sum() == pytest.approx(found.values[0])


def test_an_integral_that_does_not_exist_has_an_infinite_error():
    found = integrals(lambda x: np.stack([stats.cauchy.pdf(x), np.abs(x) * stats.cauchy.pdf(x)]), (-INF, INF))
    assert found.errors[0] < 1e-9
    assert math.isinf(found.errors[1])


def test_the_rules_of_gauss_and_kronrod_integrate_polynomials_exactly():
    for degree in range(24):
        exact = 2 / (degree + 1) if degree % 2 == 0 else 0.0
        assert KRONROD @ NODES**degree == pytest.approx(exact, abs=1e-14)
        assert (GAUSS @ NODES**degree == pytest.approx(exact, abs=1e-14)) == (degree < 14 or degree % 2 == 1)
