"""The noise variances of calibrated estimates and quantiles against derivatives of the estimates themselves.

As far as first derivatives go, the noise variance of any estimate is the sum over measured values of the squared
derivative times the variance of the value's noise. Derivatives are taken by moving each measured value up and down and
asking again, so nothing of the formulas is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from simulated_survey_releases import Known, KnownFamily

from repeats import ALL_CASES
from stirred.noise import SeededSource
from stirred.survey.estimating.measured import MeasuredSurvey
from stirred.survey.estimating.questions import answer
from stirred.survey.measuring import query_noise, query_step
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection

MARGINS = [{"by": "sex", "totals": [5200, 4600]}, {"by": "region", "totals": [3000, 3300, 3500]}]


def plan(**changes: Any) -> SurveyPlan:
    fields: dict[str, Any] = {
        "rho": 2,
        "weights": {"column": "w", "lower": 1, "upper": 20},
        "attributes": [
            {"name": "region", "values": ["n", "s", "w"]},
            {"name": "sex", "values": ["f", "m"]},
            {"name": "age", "values": ["young", "old"]},
            {"name": "band", "variable": "income", "cuts": [0, 10, 25, 50, 100]},
        ],
        "variables": [{"name": "income", "lower": -10, "upper": 100}],
        "queries": [
            {"by": ["region", "sex", "age"]},
            {"of": "income", "by": ["region", "sex", "age"]},
            {"by": ["sex"]},
            {"of": "income", "by": "age"},
        ],
        "calibrations": [
            {"name": "post", "method": "post-stratified", "margins": MARGINS[:1]},
            {"name": "raked", "method": "raked", "margins": MARGINS},
            {"name": "linear", "method": "linear", "margins": MARGINS},
        ],
    }
    fields["attributes"][3]["cuts"] = [-10, 10, 25, 50, 100]
    return SurveyPlan(**{**fields, **changes})


CHOSEN = plan()


def sums(chosen: SurveyPlan, *, negative: bool = False) -> dict[str, Any]:
    """Counts between 500 and 900 in each cell, totals of about 30 each, and noise: nothing fits exactly."""
    generator, source = np.random.default_rng(5), SeededSource(8)
    counts = generator.integers(500, 900, (3, 2, 2))
    if negative:
        counts[1, 0] = [-60, 40]  # together below 0: a cell of the calibration that noise made negative
    totals = counts * generator.integers(20, 45, (3, 2, 2)) + 300
    found = {
        "count-region-sex-age": counts.ravel(),
        "income-region-sex-age": totals.ravel(),
        "count-sex": counts.sum(axis=(0, 2)),
        "income-age": totals.sum(axis=(0, 1)),
    }
    return {query.name: found[query.name] + query_noise(chosen, query).draw(source) for query in chosen.queries}


_KNOWN: dict[Any, Known] = {}


def opened(chosen: SurveyPlan, measured: Mapping[str, Any]) -> MeasuredSurvey:
    """Measured sums; the least squares, which follow from the plan, are solved once (and keep the plan alive)."""
    survey = MeasuredSurvey(chosen, measured)
    for of in dict.fromkeys(query.of for query in chosen.queries):
        family = survey.family(of)
        known = _KNOWN.setdefault((id(chosen), of), Known(family))
        survey._families[of] = KnownFamily(chosen, of, family.queries, family.values, known)
    return survey


def derivatives(chosen: SurveyPlan, measured: Mapping[str, Any], wanted: PublishSection, step: int = 2) -> Any:
    """By query the derivative of every estimate (column) by every measured value (row)."""
    found = {}
    for query in chosen.queries:
        rows = []
        for at in range(len(measured[query.name])):
            moved = []
            for sign in (1, -1):
                values = measured[query.name].copy()
                values[at] += sign * step
                moved.append(answer(opened(chosen, {**measured, query.name: values}), wanted).values)
            rows.append((moved[0] - moved[1]) / (2 * step * float(query_step(chosen, query))))
        found[query.name] = np.array(rows)
    return found


def by_derivatives(chosen: SurveyPlan, measured: Mapping[str, Any], wanted: PublishSection) -> Any:
    slopes = derivatives(chosen, measured, wanted)
    return sum(query_noise(chosen, query).variances @ slopes[query.name] ** 2 for query in chosen.queries)


CALIBRATED = list(
    itertools.product(
        [
            {"kind": "count", "by": ["age"]},
            {"kind": "count", "by": ["region", "age"]},
            {"kind": "total", "of": "income", "by": ["age"]},
            {"kind": "total", "of": "income", "by": ["sex"]},
            {"kind": "mean", "of": "income", "by": ["age"]},
            {"kind": "mean", "of": "income", "by": ["region", "age"]},
            {"kind": "proportion", "of": "age", "by": ["region"]},
        ],
        ["post", "raked", "linear"],
        [False, True],
    )
)
"""Tables, adjustments, and whether noise made some cells negative."""


@pytest.mark.repeats
@pytest.mark.parametrize(("fields", "method", "negative"), CALIBRATED if ALL_CASES else CALIBRATED[::5])
def test_noise_of_calibrated_estimates_is_that_of_their_derivatives(
    fields: dict[str, Any], method: str, negative: bool
) -> None:
    chosen, wanted = CHOSEN, PublishSection(**fields, calibration=method)
    measured = sums(chosen, negative=negative)
    found = answer(MeasuredSurvey(chosen, measured), wanted)
    assert np.isfinite(found.values).any()
    usable = np.isfinite(found.values)
    expected = by_derivatives(chosen, measured, wanted)
    np.testing.assert_allclose(found.parts["noise_error"][usable] ** 2, expected[usable], rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("method", ["post", "raked", "linear"])
def test_calibrated_counts_of_the_calibration_variable_are_public_and_have_no_noise(method: str) -> None:
    chosen = plan()
    found = answer(MeasuredSurvey(chosen, sums(chosen)), PublishSection(kind="count", by=["sex"], calibration=method))
    np.testing.assert_allclose(found.values, [5200, 4600])
    np.testing.assert_allclose(found.parts["noise_error"], 0, atol=1e-6)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "mean", "of": "income", "by": ["age"]},
        {"kind": "proportion", "of": "age", "by": ["sex"]},
        {"kind": "proportion", "of": "sex", "by": ["region"]},
    ],
)
def test_noise_of_quotients_and_of_their_differences_is_that_of_their_derivatives(fields: dict[str, Any]) -> None:
    chosen, wanted = CHOSEN, PublishSection(**fields)
    measured = sums(chosen)
    found = answer(MeasuredSurvey(chosen, measured), wanted)
    slopes = derivatives(chosen, measured, wanted)
    noises = {query.name: query_noise(chosen, query).variances for query in chosen.queries}
    expected = sum(noises[name] @ slopes[name] ** 2 for name in slopes)
    np.testing.assert_allclose(found.parts["noise_error"] ** 2, expected, rtol=1e-4)
    for name in found.by:
        values = chosen.attribute(name).values[:2]
        apart = answer(MeasuredSurvey(chosen, measured), wanted, difference=(name, *values))
        at = found.by.index(name)
        first, second = ([i for i, label in enumerate(found.labels) if label[at] == value] for value in values)
        expected = sum(noises[one] @ (slopes[one][:, first] - slopes[one][:, second]) ** 2 for one in slopes)
        np.testing.assert_allclose(apart.parts["noise_error"] ** 2, expected, rtol=1e-4)


def test_standard_errors_of_quantiles_are_those_of_derivatives_and_a_little_more() -> None:
    """Where an interval of the quantile stays between two cuts, its half width is the delta method's standard error.

    Between two edges variances of shares are interpolated, which is more than the variance of what is interpolated.
    """
    chosen = plan(queries=[{"by": ["sex", "band"]}], calibrations=[], rho=200)
    wanted = PublishSection(kind="quantiles", of="band", by=["sex"], probabilities=["0.3", "0.45", "0.8"])
    measured = {"count-sex-band": np.array([2000, 3000, 3100, 1500, 1900, 3500, 2800, 1900])}
    found = answer(MeasuredSurvey(chosen, measured), wanted)
    expected = np.sqrt(by_derivatives(chosen, measured, wanted))
    ratio = found.standard_errors / expected
    assert ratio.min() > 0.98 and ratio.max() < 1.25
