"""Variances from replicate weights: equal to R's survey and svy, and to the definition written out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from survey_files import DOMAINS, recorded, same, survey

from stirred.errors import SurveyError
from stirred.survey.checking.comparison import design_estimates
from stirred.survey.data import read_records
from stirred.survey.design.standard_errors import (
    FirstStage,
    ReplicatedSample,
    WeightedSample,
    replicate_coefficients,
)
from stirred.survey.plan.fields import SurveyPlan

OPTIONS = {"fay": {"fay": 0.3}, "jkn": {"scales": [0.5] * 16}}
METHODS = ["brr", "fay", "jk1", "jkn", "bootstrap", "sdr"]


def matrix(method):
    columns = survey("paired_replicates")
    return np.stack([column for name, column in columns.items() if name.startswith(f"{method}_")], axis=1)


def replicated(method):
    file, columns = survey("paired"), matrix(method)
    coefficients = replicate_coefficients(method, columns.shape[1], **OPTIONS.get(method, {}))
    return ReplicatedSample(file["weight"], columns, coefficients, file["domain"], DOMAINS)


def assert_same(sample, theirs):
    file = survey("paired")
    ours = {
        "total": sample.totals(file["y"]),
        "mean": sample.ratios(file["y"]),
        "ratio": sample.ratios(file["y"], file["x"]),
    }
    for name, answer in theirs.items():
        same(ours[name].values, answer["values"])
        same(ours[name].variances, answer["variances"])


@pytest.mark.parametrize("method", METHODS)
def test_replicate_variances_are_those_of_r_survey(method):
    assert_same(replicated(method), recorded()["r"]["replicates about the estimate"][method])


@pytest.mark.parametrize("method", ["brr", "bootstrap", "sdr"])
def test_replicate_variances_are_those_of_svy(method):
    assert_same(replicated(method), recorded()["svy"][method])


def test_the_recorded_replicates_hold_negative_weights():
    assert matrix("sdr").min() < 0


def test_the_definition_written_out():
    file = survey("paired")
    sample = replicated("sdr")
    for domain in range(DOMAINS):
        inside = file["domain"] == domain
        y, x = (file[name] * inside for name in ("y", "x"))
        totals = np.array([[column @ y, column @ x, column @ inside] for column in matrix("sdr").T])
        whole = np.array([file["weight"] @ one for one in (y, x, inside)])
        away = totals - whole
        same(sample.totals(file["y"]).variances[domain], 4 / 8 * (away[:, 0] @ away[:, 0]))
        same(sample.totals().variances[domain], 4 / 8 * (away[:, 2] @ away[:, 2]))
        quotients = totals[:, 0] / totals[:, 2] - whole[0] / whole[2]
        same(sample.ratios(file["y"]).variances[domain], 4 / 8 * (quotients @ quotients))


def test_jackknife_of_a_total_is_its_linearised_variance():
    file = survey("paired")
    first_stage = FirstStage.of(file["stratum"], file["cluster"], [2] * 8, [np.inf] * 8)
    sample = WeightedSample(file["weight"], file["domain"], DOMAINS, first_stage)
    # Weights are written with six decimals, doubled weights too, so that both agree to the last of them.
    same(replicated("jkn").totals(file["y"]).variances, sample.totals(file["y"]).variances)


def test_more_records_than_a_block():
    draw = np.random.default_rng(4)
    records = 70_000
    weights = draw.integers(1, 50, records)
    columns = draw.integers(-5, 100, (records, 3))
    values, domains = draw.normal(0, 1, records), draw.integers(0, 5, records)
    sample = ReplicatedSample(weights, columns, replicate_coefficients("jk1", 3), domains, 5)
    found = sample.totals(values)
    for domain in range(5):
        inside = values * (domains == domain)
        assert found.values[domain] == pytest.approx(weights @ inside, rel=1e-9)
        away = columns.T @ inside - weights @ inside
        assert found.variances[domain] == pytest.approx(2 / 3 * (away @ away), rel=1e-9)


def test_a_replicate_without_weight_in_a_domain_leaves_no_variance():
    columns = np.array([[1, 0], [1, 1], [0, 2]])
    found = ReplicatedSample(np.ones(3), columns, np.full(2, 0.5), np.array([0, 1, 1]), 2).ratios(np.array([5, 6, 7]))
    assert found.values.tolist() == [5, 6.5]
    assert np.isnan(found.variances[0]) and np.isfinite(found.variances[1])


@pytest.mark.parametrize(
    ("method", "options", "replicates_", "coefficient"),
    [("sdr", {}, 80, 0.05), ("brr", {}, 32, 1 / 32), ("fay", {"fay": 0.5}, 32, 4 / 32), ("jk1", {}, 10, 0.9)],
)
def test_coefficients(method, options, replicates_, coefficient):
    same(replicate_coefficients(method, replicates_, **options), np.full(replicates_, coefficient))


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("fay", {"fay": 1.0}, "from 0 to below 1"),
        ("jkn", {}, "go with the methods 'jkn'"),
        ("sdr", {"scales": [0.5, 0.5]}, "go with the methods 'jkn'"),
        ("jkn", {"scales": [0.5]}, "Give 2 numbers from 0 on"),
        ("jkn", {"scales": [0.5, -0.5]}, "Give 2 numbers from 0 on"),
    ],
)
def test_coefficients_that_do_not_fit_are_refused(method, options, words):
    with pytest.raises(SurveyError, match=words) as refused:
        replicate_coefficients(method, 2, **options)
    assert refused.value.kind == "design-choice"


def test_one_column_of_replicate_weights_is_refused():
    plan = SurveyPlan(
        epsilon=1,
        attributes=[{"name": "sex", "values": ["f", "m"]}],
        design={"replicates": {"columns": ["r"], "method": "brr"}},
        queries=[{"by": "sex"}],
        publish=[{"kind": "count", "by": "sex"}],
    )
    records = read_records(plan, pl.DataFrame({"sex": ["f", "m"], "r": [77310.0, 1.5]}))
    with pytest.raises(SurveyError, match="a column for each of at least 2 replicates") as refused:
        design_estimates(records, plan.publish[0])
    assert refused.value.kind == "survey-column" and "77310" not in str(refused.value)
