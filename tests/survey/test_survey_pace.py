"""Ways of computing that are quick for a million records give what the plain ones give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stirred.errors import StirredError
from stirred.survey.measuring import _Places, units
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.weights.rules import effective_sample_size, effective_size_of_multiples


@pytest.mark.parametrize("weights", [[1], [3, 3, 5], [2**31, 1, 2**31], [2**61, 2**61 - 1, 7]])
def test_effective_sizes_of_arrays_are_those_of_lists(weights):
    assert effective_size_of_multiples(np.array(weights)) == effective_sample_size(weights)


@pytest.mark.parametrize("weights", [[], [1, 0]])
def test_arrays_without_positive_weights_are_refused(weights):
    with pytest.raises(StirredError):
        effective_size_of_multiples(np.array(weights, dtype=np.int64))


@pytest.mark.parametrize("strata", [1, 3, 40_000])
@pytest.mark.parametrize("clustered", [False, True])
def test_lengths_are_roots_of_exact_sums_over_strata(strata, clustered):
    """The formula of the module, group by group in fractions; 40,000 strata take no more memory than records do."""
    rng = np.random.default_rng(strata)
    rows, number = 300, 7
    stratum = rng.integers(0, strata, rows)
    cluster = stratum * 5 + rng.integers(0, 5, rows) if clustered else np.arange(rows)
    selected = rng.integers(1, 9, strata) + (5 if clustered else 300)
    population = selected + rng.integers(1, 90, strata)
    corrections = [1 - Fraction(n, each) for n, each in zip(selected.tolist(), population.tolist(), strict=True)]
    residuals, groups = rng.integers(-1024, 1025, rows), rng.integers(0, number - 1, rows)
    places = _Places(stratum, cluster if clustered else None, selected.tolist(), corrections)
    found = places.lengths(residuals, groups, number)
    for group in range(number):
        total = Fraction(0)
        for one in np.unique(stratum[groups == group]).tolist():
            inside = (groups == group) & (stratum == one)
            totals = [int(residuals[inside & (cluster == each)].sum()) for each in np.unique(cluster[inside])]
            n = int(selected[one])
            spread = n * sum(part * part for part in totals) - sum(totals) ** 2
            total += corrections[one] * spread / (n - 1)
        assert found[group] == math.isqrt(math.floor(total))


def test_units_are_rounded_once():
    variable = {"name": "x", "lower": "-0.3", "upper": "12.7", "step": "0.1"}
    plan = SurveyPlan(
        rho=1, weights={"column": "w", "lower": "0.03", "upper": "9.99", "step": "0.03"}, variables=[variable],
        attributes=[{"name": "a", "values": ["1", "2", "3"]}], queries=[{"by": "a"}, {"of": "x", "by": "a"}],
        design={"selected": 10}, publish=[{"kind": "mean", "of": "x", "by": "a", "errors": "1/2"}],
    )  # fmt: skip
    centres = np.array([-3_000, 17_211, 127_000])
    found = units(plan, plan.publish[0], centres)
    ends = (-3_000, 127_000)
    largest = [333 * max(abs(end - int(one)) for end in ends) for one in centres]
    assert found.tolist() == [float(Fraction(size) * Fraction("0.003") / 1000 / 1024) for size in largest]
