"""Variances from replicate weights: equal to R's survey and svy, and to the definition written out."""

from __future__ import annotations

import numpy as np
import pytest
from survey_files import DOMAINS, recorded, same, survey

from stirred.survey.design import linearised, replicates
from stirred.survey.design.linearised import FirstStage, WeightedSample
from stirred.survey.design.replicates import ReplicatedSample

OPTIONS = {"fay": {"fay": 0.3}, "jkn": {"coefficients": np.full(16, 0.5)}}
METHODS = ["brr", "fay", "jk1", "jkn", "bootstrap", "sdr"]


def matrix(method):
    columns = survey("paired_replicates")
    return np.stack([column for name, column in columns.items() if name.startswith(f"{method}_")], axis=1)


def replicated(method, centre="estimate"):
    file = survey("paired")
    return ReplicatedSample.of(
        file["weight"],
        matrix(method),
        method,
        centre=centre,
        domains=file["domain"],
        number_of_domains=DOMAINS,
        **OPTIONS.get(method, {}),
    )


def assert_same(sample, theirs):
    file = survey("paired")
    ours = {
        "total": replicates.totals(sample, file["y"]),
        "mean": replicates.means(sample, file["y"]),
        "ratio": replicates.ratios(sample, file["y"], file["x"]),
    }
    for name, answer in theirs.items():
        same(ours[name].values, answer["values"])
        same(ours[name].variances, answer["variances"])


@pytest.mark.parametrize("centre", ["estimate", "mean"])
@pytest.mark.parametrize("method", METHODS)
def test_replicate_variances_are_those_of_r_survey(method, centre):
    about = "about the estimate" if centre == "estimate" else "about the mean"
    assert_same(replicated(method, centre), recorded()["r"][f"replicates {about}"][method])


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
        same(replicates.covariances(sample, file["y"], file["x"])[domain], 4 / 8 * (away[:, 0] @ away[:, 1]))
        same(replicates.totals(sample).variances[domain], 4 / 8 * (away[:, 2] @ away[:, 2]))
        quotients = totals[:, 0] / totals[:, 2] - whole[0] / whole[2]
        same(replicates.means(sample, file["y"]).variances[domain], 4 / 8 * (quotients @ quotients))


def test_jackknife_of_a_total_is_its_linearised_variance():
    file = survey("paired")
    first_stage = FirstStage.of(strata=file["stratum"], clusters=file["cluster"])
    sample = WeightedSample.of(file["weight"], first_stage, domains=file["domain"])
    # Weights are written with six decimals, doubled weights too, so that both agree to the last of them.
    ours = replicates.totals(replicated("jkn"), file["y"]).variances
    np.testing.assert_allclose(ours, linearised.totals(sample, file["y"]).variances, rtol=1e-9)


def test_more_records_than_a_block_and_whole_numbers_as_weights():
    draw = np.random.default_rng(4)
    records = 70_000
    weights = draw.integers(1, 50, records)
    columns = draw.integers(-5, 100, (records, 3))
    values, domains = draw.normal(0, 1, records), draw.integers(-1, 5, records)
    sample = ReplicatedSample.of(weights, columns.astype(np.int16), "jk1", domains=domains)
    found = replicates.totals(sample, values)
    for domain in range(5):
        inside = values * (domains == domain)
        assert found.values[domain] == pytest.approx(weights @ inside, rel=1e-9)
        away = columns.T @ inside - weights @ inside
        assert found.variances[domain] == pytest.approx(2 / 3 * (away @ away), rel=1e-9)


def test_shares_of_categories_add_up_to_one():
    file = survey("paired")
    found = replicates.proportions(replicated("brr"), file["category"], 3)
    same(found.values.sum(axis=1), np.ones(DOMAINS))
    same(found.variances[:, 1], replicates.means(replicated("brr"), file["category"] == 1).variances)


def test_a_replicate_without_weight_in_a_domain_leaves_no_variance():
    sample = ReplicatedSample.of([1, 1, 1], [[1, 0], [1, 1], [0, 2]], "bootstrap", domains=[0, 1, 1])
    found = replicates.means(sample, [5, 6, 7])
    assert found.values.tolist() == [5, 6.5]
    assert np.isnan(found.variances[0]) and np.isfinite(found.variances[1])


@pytest.mark.parametrize(
    ("method", "options", "replicates_", "coefficient"),
    [("sdr", {}, 80, 0.05), ("brr", {}, 32, 1 / 32), ("fay", {"fay": 0.5}, 32, 4 / 32), ("jk1", {}, 10, 0.9)],
)
def test_coefficients(method, options, replicates_, coefficient):
    same(replicates.replicate_coefficients(method, replicates_, **options), np.full(replicates_, coefficient))
