"""Intervals of survey estimates hold the truth of the frame as often as they say, over samples and over noise.

Each study draws surveys from one frame by one design, measures each with exact noise, and asks the package for tables
with intervals (tests/survey/simulated_survey_releases.py). All seeds are fixed. Coverage may be above the nominal one,
since bounds of sampling errors are bounds; it may not be below by more than 3.5 standard errors of the simulation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace, norm
from simulated_survey_releases import CALIBRATED, QUANTILES, TABLES, Frame, Study, Tally, tallies

from stirred.noise import SeededSource
from stirred.survey.estimating.intervals import with_noise
from stirred.survey.estimating.measured import MeasuredSurvey
from stirred.survey.estimating.questions import answer
from stirred.survey.measuring import true_sums

FRAME = Frame.of()
STUDIES: dict[str, dict[str, Any]] = {
    "simple random": {"rho": 20},
    "stratified": {"rho": 20},
    "Poisson": {"epsilon": 30},
    "two-stage": {"rho": 2000},
    "by size": {"epsilon": 4},
}
"""Noise that is small, comparable or large beside the error of sampling, by design."""


def short_of_nominal(found: dict[tuple[str, str], Tally]) -> list[tuple[Any, ...]]:
    """Rows whose intervals hold the truth too rarely; a row of which nobody is in the frame has no mean."""
    rows = []
    for key, tally in found.items():
        for level, shares in zip(tally.levels, tally.coverage, strict=True):
            least = level - 3.5 * np.sqrt(level * (1 - level) / tally.surveys)
            known = ~np.isnan(tally.truth)
            rows += [(*key, level, row, share) for row, share in enumerate(shares) if known[row] and share < least]
    return rows


def biased(found: dict[tuple[str, str], Tally]) -> list[tuple[Any, ...]]:
    """Counts and totals whose mean over all surveys is not the truth: a false alarm has a chance of 1e-9 for each."""
    rows = []
    for key, tally in found.items():
        if key[0].startswith(("count", "total")) and not key[0].endswith(("post", "raked", "linear")):
            values = np.array(tally.values)
            errors = values.std(axis=0) / np.sqrt(tally.surveys)
            scores = (values.mean(axis=0) - tally.truth) / np.where(errors > 0, errors, 1.0)
            rows += [(*key, row, score) for row, score in enumerate(scores) if abs(score) > 6.2]
    return rows


@pytest.mark.parametrize(
    ("design", "budget", "tables"),
    [
        ("simple random", {"rho": 20}, TABLES),
        ("Poisson", {"epsilon": 300}, (*TABLES[:2], *CALIBRATED[::4], QUANTILES)),
        ("two-stage", {"epsilon": 300}, TABLES[:4]),
    ],
)
def test_intervals_hold_the_truth_in_some_surveys(design: str, budget: Any, tables: Any) -> None:
    found = tallies(Study.of(FRAME, design, 40, 21, **budget), 22, tables=tables)
    assert not short_of_nominal(found)
    assert not biased(found)


@pytest.mark.slow
@pytest.mark.parametrize("design", STUDIES)
def test_intervals_hold_the_truth_in_two_thousand_surveys_of_each_design(design: str) -> None:
    found = tallies(Study.of(FRAME, design, 2_000, 11, **STUDIES[design]), 5)
    assert not short_of_nominal(found)
    assert not biased(found)
    if design == "two-stage":  # noise is small: standard errors are those of the design
        for (table, source), tally in found.items():
            if source == "measured" and "apart" not in table:
                rows = 4 if table.startswith("proportion") else 2  # the two large groups
                spread = np.array(tally.values)[:, :rows].std(axis=0)
                reported = np.sqrt(np.array(tally.variances)[:, :rows].mean(axis=0))
                np.testing.assert_allclose(reported / spread, 1, atol=0.12, err_msg=table)
                assert tally.coverage[1][:rows].max() < 0.985, table


@pytest.mark.parametrize("budget", [{"epsilon": 5}, {"rho": 1}])
def test_reported_noise_variances_and_those_of_differences_are_the_empirical_ones(budget: dict[str, int]) -> None:
    """One survey, measured 1,000 times. The variance of a sample variance is at most 5 / 1,000 of its square (Laplace
    noise has an excess kurtosis of 3), so that 6.2 standard errors are 0.44."""
    study = Study.of(FRAME, "stratified", 1, 4, **budget)
    records, source = study.records(0), SeededSource(9)
    sums = {query.name: true_sums(records, query) for query in study.plan.queries}
    values: dict[str, list[Any]] = {}
    for _ in range(1_000):
        drawn = {name: true + study.noises[name].draw(source) for name, true in sums.items()}
        survey = study.opened(drawn)
        for of in (None, "income", "balance"):
            values.setdefault(str(of), []).append(survey.family(of).estimates(("group",), {}))
    for of, fields in ((None, TABLES[0]), ("income", TABLES[1]), ("balance", TABLES[2])):
        wanted = study.wanted(fields)
        found = np.array(values[str(of)])
        errors = answer(survey, wanted).parts["noise_error"]
        np.testing.assert_allclose(found.var(axis=0) / errors**2, 1, atol=0.44)
        apart = answer(survey, wanted, difference=("group", "many", "some")).parts["noise_error"]
        np.testing.assert_allclose((found[:, 0] - found[:, 1]).var() / apart**2, 1, atol=0.44)


def test_known_least_squares_answer_as_the_package_does() -> None:
    """What simulations work out once for a plan changes no answer."""
    study = Study.of(FRAME, "by size", 1, 3, rho=50)
    quick = study.measured(0, SeededSource(2))
    plain = MeasuredSurvey(study.plan, quick.sums, quick.errors)
    for fields in (*TABLES, *CALIBRATED, QUANTILES):
        one, other = answer(quick, study.wanted(fields)), answer(plain, study.wanted(fields))
        for left, right in zip(one.interval(0.95), other.interval(0.95), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("law", [norm, laplace])
def test_noise_of_measured_standard_errors_never_takes_intervals_below_nominal(confidence: float, law: Any) -> None:
    """By integration over the noise h of a standard error 1 + h, for all sizes of the noise."""
    noise = law.ppf((np.arange(4_000) + 0.5) / 4_000)
    noise = noise / noise.std()
    quantile = norm.ppf((1 + confidence) / 2)
    for size in np.exp(np.linspace(np.log(0.01), np.log(10), 80)):
        squares = np.maximum(1 + size * noise, 0.0) ** 2
        half = quantile * np.sqrt(with_noise(squares, np.full(len(noise), size**2), np.full(len(noise), quantile)))
        covered = (2 * norm.cdf(half) - 1).mean()
        assert covered > confidence - 5e-4
        if size < 0.5 and confidence < 0.99:
            assert covered < confidence + 0.012
