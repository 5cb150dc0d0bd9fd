"""Estimates and linearised variances by domain: equal to R's survey and svy, and to the definition written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from survey_files import DOMAINS, recorded, same, stage, survey

from stirred.survey.design.standard_errors import FirstStage, WeightedSample


def estimates(file, first_stage, keep=slice(None)):
    sample = WeightedSample(file["weight"][keep], file["domain"][keep], DOMAINS, first_stage)
    y, x = file["y"][keep], file["x"][keep]
    return {
        "total": sample.totals(y),
        "count": sample.totals(),
        "mean": sample.ratios(y),
        "ratio": sample.ratios(y, x),
        "share": sample.ratios((file["category"][keep] == 1).astype(float)),
    }


def whole(weights, first_stage=None):
    """A sample with one domain."""
    weights = np.array(weights, dtype=float)
    return WeightedSample(weights, np.zeros(len(weights), dtype=int), 1, first_stage)


def assert_same(ours, theirs):
    for name in ours.keys() & theirs.keys():
        same(ours[name].values, theirs[name]["values"])
        same(ours[name].variances, theirs[name]["variances"])


def cases():
    elements, clusters, lonely = survey("elements"), survey("clusters"), survey("lonely")
    responded = clusters["responded"] == 1
    yield "elements", estimates(elements, stage(elements, fpc=True, clusters=False))
    yield "clusters", estimates(clusters, stage(clusters))
    yield "clusters with fpc", estimates(clusters, stage(clusters, fpc=True))
    one_stratum = np.zeros(len(clusters["cluster"]), dtype=int)
    number = len(np.unique(clusters["cluster"]))
    yield "unstratified", estimates(clusters, FirstStage.of(one_stratum, clusters["cluster"], [number], [np.inf]))
    yield "respondents", estimates(clusters, stage(clusters, fpc=True, keep=responded), responded)
    yield "lonely certainty", estimates(lonely, stage(lonely))


@pytest.mark.parametrize(("case", "ours"), [pytest.param(*one, id=one[0]) for one in cases()])
def test_estimates_and_variances_are_those_of_r_survey(case, ours):
    assert_same(ours, recorded()["r"][case])


SVY = {
    "elements": ("elements", {"fpc": True, "clusters": False}),
    "clusters": ("clusters", {"fpc": True}),
    "lonely certainty": ("lonely", {}),
}


@pytest.mark.parametrize("case", SVY)
def test_estimates_and_variances_are_those_of_svy(case):
    name, options = SVY[case]
    file = survey(name)
    assert_same(estimates(file, stage(file, **options)), recorded()["svy"][case])


def test_respondents_come_from_fewer_clusters_than_were_selected():
    file = survey("clusters")
    responded = file["responded"] == 1
    assert len(np.unique(file["cluster"][responded])) < len(np.unique(file["cluster"]))


# -- the definition ----------------------------------------------------------------------------------------------


def plain_variance(z):
    """Sum over strata of (1 - f) n / (n - 1) sum of (z - mean)^2, with clusters that have nothing as zeros."""
    found = 0.0
    for stratum, (n, size) in enumerate(zip(SELECTED, POPULATION, strict=True)):
        inside = {cluster for cluster, own in zip(CLUSTERS, STRATA, strict=True) if own == stratum}
        zs = [sum(z[np.array(CLUSTERS) == one]) for one in inside] + [0.0] * (n - len(inside))
        if n > 1:
            found += (1 - n / size) * n / (n - 1) * sum((zs - np.mean(zs)) ** 2)
    return found


STRATA = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 4]
CLUSTERS = [5, 5, 9, 9, 2, 1, 1, 3, 4, 4, 7]
SELECTED = [4, 2, 1, 3, 1]
POPULATION = [10, np.inf, 8, 5, 1]


STAGE = FirstStage.of(np.array(STRATA), np.array(CLUSTERS), SELECTED, POPULATION)


def test_every_variance_is_the_definition_written_out():
    draw = np.random.default_rng(3)
    for _ in range(20):
        weights, y, x = draw.uniform(1, 9, 11), draw.normal(5, 3, 11), draw.normal(2, 3, 11)
        domains = draw.integers(0, 4, 11)
        sample = WeightedSample(weights, domains, 4, STAGE)
        totals, quotients = sample.totals(y), sample.ratios(y, x)
        for domain in range(4):
            inside = weights * (domains == domain)
            np.testing.assert_allclose(totals.variances[domain], plain_variance(inside * y), rtol=1e-9, atol=1e-9)
            if not inside.any():
                assert np.isnan(quotients.values[domain]) and np.isnan(quotients.variances[domain])
                continue
            quotient = (inside @ y) / (inside @ x)
            score = inside * (y - quotient * x) / (inside @ x)
            same(quotients.values[domain], quotient)
            np.testing.assert_allclose(quotients.variances[domain], plain_variance(score), rtol=1e-9, atol=1e-12)


def test_the_variance_of_a_total_is_unbiased_over_all_samples_of_clusters():
    totals = [np.array([3.0, 7, 1, 4]), np.array([10.0, 2, 5])]  # clusters of two strata; 2 are drawn in each
    estimates, variances = [], []
    for first, second in itertools.product(itertools.combinations(range(4), 2), itertools.combinations(range(3), 2)):
        values = np.concatenate([totals[0][list(first)], totals[1][list(second)]])
        first_stage = FirstStage.of(np.array([0, 0, 1, 1]), None, [2, 2], [4, 3])
        found = whole([2, 2, 1.5, 1.5], first_stage).totals(values)
        estimates.append(found.values[0])
        variances.append(found.variances[0])
    assert np.mean(estimates) == pytest.approx(32)
    assert np.mean(variances) == pytest.approx(np.var(estimates))


# -- claims ------------------------------------------------------------------------------------------------------


def test_domains_add_up_to_the_whole():
    file = survey("clusters")
    found = estimates(file, stage(file))
    same(found["total"].values.sum(), whole(file["weight"]).totals(file["y"]).values[0])


def test_a_domain_without_records_has_the_total_zero_and_no_mean():
    domains = np.array([1, 1])
    sample = WeightedSample(np.array([1.0, 2]), domains, 3, FirstStage.of(np.zeros(2, dtype=int), None, [2], [np.inf]))
    assert sample.totals(np.array([4, 5])).values.tolist() == [0, 14, 0]
    assert sample.totals().variances.tolist()[::2] == [0, 0]
    means = sample.ratios(np.array([4, 5]))
    assert np.isnan(means.values).tolist() == np.isnan(means.variances).tolist() == [True, False, True]


def test_without_a_first_stage_there_are_no_variances():
    assert (
        np.isnan(whole([1, 2]).totals().variances).all() and np.isnan(whole([1, 2]).ratios(np.ones(2)).variances).all()
    )


def test_one_record_moves_a_standard_error_by_no_more_than_its_weighted_value():
    # A total of 1 in one cluster has the norm sqrt(1 - f), since n / (n - 1) (1 - 1 / n) = 1.
    draw = np.random.default_rng(9)
    largest = 0.0
    for record, _ in itertools.product(range(11), range(30)):
        weights, y = draw.uniform(1, 9, 11), draw.normal(0, 1, 11) * draw.choice([0.01, 1, 100])
        changed = y.copy()
        changed[record] = draw.normal(0, 100)
        errors = [whole(weights, STAGE).totals(one).standard_errors[0] for one in (y, changed)]
        moved = abs(errors[0] - errors[1]) / abs(weights[record] * (y[record] - changed[record]))
        assert moved <= 1 + 1e-9
        largest = max(largest, moved)
    assert largest > 0.95


def test_a_census_has_no_variance():
    first_stage = FirstStage.of(np.array([0, 0, 1]), None, [2, 1], [2, 1])
    assert whole([1, 1, 1], first_stage).totals(np.array([3, 4, 9])).variances.tolist() == [0]


def test_records_that_are_clusters_of_their_own_need_no_numbers():
    strata = np.random.default_rng(1).integers(0, 4, 50)
    given, plain = (FirstStage.of(strata, clusters, [50] * 4, [np.inf] * 4) for clusters in (np.arange(50), None))
    assert np.array_equal(given.clusters, plain.clusters)
    assert np.array_equal(given.cluster_strata, plain.cluster_strata)


def test_neither_samples_nor_estimates_show_what_they_hold():
    sample = whole([77310.0, 1], FirstStage.of(np.array([0, 0]), None, [2], [77310]))
    for held in (sample, sample.stage, sample.totals()):
        assert "77310" not in repr(held) and "confidential" in repr(held)
