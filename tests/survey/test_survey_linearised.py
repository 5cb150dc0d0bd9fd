"""Estimates and linearised variances by domain: equal to R's survey and svy, and to the definition written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from survey_files import DOMAINS, by_stratum, recorded, same, stage, survey

from stirred.survey.design import linearised
from stirred.survey.design.linearised import FirstStage, WeightedSample


def estimates(file, first_stage, keep=slice(None)):
    sample = WeightedSample.of(
        file["weight"][keep], first_stage, domains=file["domain"][keep], number_of_domains=DOMAINS
    )
    y, x = file["y"][keep], file["x"][keep]
    shares = linearised.proportions(sample, file["category"][keep], 3)
    return {
        "total": linearised.totals(sample, y),
        "count": linearised.totals(sample),
        "mean": linearised.means(sample, y),
        "ratio": linearised.ratios(sample, y, x),
        "share": linearised.Estimates(shares.values[:, 1], shares.variances[:, 1]),
        "covariance": linearised.covariances(sample, y, x),
    }


def assert_same(ours, theirs):
    for name, answer in theirs.items():
        if name == "covariance":
            same(ours[name], answer)
        else:
            same(ours[name].values, answer["values"])
            same(ours[name].variances, answer["variances"])


def cases():
    elements, clusters, lonely = survey("elements"), survey("clusters"), survey("lonely")
    responded = clusters["responded"] == 1
    yield "elements", estimates(elements, stage(elements, fpc=True, clusters=False))
    yield "clusters", estimates(clusters, stage(clusters))
    yield "clusters with fpc", estimates(clusters, stage(clusters, fpc=True))
    yield "unstratified", estimates(clusters, FirstStage.of(clusters=clusters["cluster"]))
    yield "respondents", estimates(clusters, stage(clusters, fpc=True, keep=responded), responded)
    yield "lonely certainty", estimates(lonely, stage(lonely, lonely="certainty"))
    yield "lonely centred", estimates(lonely, stage(lonely, lonely="centred"))


@pytest.mark.parametrize(("case", "ours"), [pytest.param(*one, id=one[0]) for one in cases()])
def test_estimates_and_variances_are_those_of_r_survey(case, ours):
    assert_same(ours, recorded()["r"][case])


SVY = {
    "elements": ("elements", {"fpc": True, "clusters": False}),
    "clusters": ("clusters", {"fpc": True}),
    "lonely certainty": ("lonely", {"lonely": "certainty"}),
    "lonely centred": ("lonely", {"lonely": "centred"}),
}


@pytest.mark.parametrize("case", SVY)
def test_estimates_and_variances_are_those_of_svy(case):
    name, options = SVY[case]
    file = survey(name)
    ours, theirs = estimates(file, stage(file, **options)), recorded()["svy"][case]
    if case != "lonely centred":
        assert_same(ours, theirs)
        return
    assert_same(ours, {name: answer for name, answer in theirs.items() if name != "total"})
    # A centred stratum without a record in the domain: svy leaves it out, here its cluster counts with the total 0.
    alone = np.flatnonzero(by_stratum(file, "selected") == 1)
    there = [all(((file["stratum"] == one) & (file["domain"] == own)).any() for one in alone) for own in range(DOMAINS)]
    assert there == [True, False, False, True]
    same(ours["total"].values, theirs["total"]["values"])
    same(ours["total"].variances[there], np.array(theirs["total"]["variances"])[there])


def test_respondents_come_from_fewer_clusters_than_were_selected():
    file = survey("clusters")
    responded = file["responded"] == 1
    assert len(np.unique(file["cluster"][responded])) < len(np.unique(file["cluster"]))


# -- the definition ----------------------------------------------------------------------------------------------


def plain_covariance(z, v, lonely):
    """Sum over strata of (1 - f) n / (n - 1) sum of (z - mean)(v - mean), with clusters that have nothing as zeros."""
    found = 0.0
    for stratum, (n, size) in enumerate(zip(SELECTED, POPULATION, strict=True)):
        inside = {cluster for cluster, own in zip(CLUSTERS, STRATA, strict=True) if own == stratum}
        zs, vs = ([sum(u[np.array(CLUSTERS) == one]) for one in inside] + [0.0] * (n - len(inside)) for u in (z, v))
        if n > 1:
            around = zip(zs - np.mean(zs), vs - np.mean(vs), strict=True)
            found += (1 - n / size) * n / (n - 1) * sum(p * q for p, q in around)
        elif lonely == "centred":
            found += (1 - n / size) * (zs[0] - sum(z) / sum(SELECTED)) * (vs[0] - sum(v) / sum(SELECTED))
    return found


STRATA = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 4]
CLUSTERS = [5, 5, 9, 9, 2, 1, 1, 3, 4, 4, 7]
SELECTED = [4, 2, 1, 3, 1]
POPULATION = [10, np.inf, 8, 5, 1]


@pytest.mark.parametrize("lonely", ["certainty", "centred"])
def test_every_covariance_is_the_definition_written_out(lonely):
    draw = np.random.default_rng(3)
    first_stage = FirstStage.of(
        strata=STRATA, clusters=CLUSTERS, selected=SELECTED, population=POPULATION, lonely=lonely
    )
    for _ in range(20):
        weights, y, x = draw.uniform(1, 9, 11), draw.normal(5, 3, 11), draw.normal(2, 3, 11)
        domains = draw.integers(-1, 3, 11)
        sample = WeightedSample.of(weights, first_stage, domains=domains, number_of_domains=4)
        ours = linearised.covariances(sample, y, x)
        quotients = linearised.ratios(sample, y, x)
        for domain in range(4):
            inside = weights * (domains == domain)
            plain = plain_covariance(inside * y, inside * x, lonely)
            np.testing.assert_allclose(ours[domain], plain, rtol=1e-9, atol=1e-9)
            if not inside.any():
                assert np.isnan(quotients.values[domain]) and np.isnan(quotients.variances[domain])
                continue
            quotient = (inside @ y) / (inside @ x)
            score = inside * (y - quotient * x) / (inside @ x)
            plain = plain_covariance(score, score, lonely)
            same(quotients.values[domain], quotient)
            np.testing.assert_allclose(quotients.variances[domain], plain, rtol=1e-9, atol=1e-12)


def test_the_variance_of_a_total_is_unbiased_over_all_samples_of_clusters():
    totals = [np.array([3.0, 7, 1, 4]), np.array([10.0, 2, 5])]  # clusters of two strata; 2 are drawn in each
    estimates, variances = [], []
    for first, second in itertools.product(itertools.combinations(range(4), 2), itertools.combinations(range(3), 2)):
        values = np.concatenate([totals[0][list(first)], totals[1][list(second)]])
        first_stage = FirstStage.of(strata=[0, 0, 1, 1], selected=[2, 2], population=[4, 3])
        found = linearised.totals(WeightedSample.of([2, 2, 1.5, 1.5], first_stage), values)
        estimates.append(found.values[0])
        variances.append(found.variances[0])
    assert np.mean(estimates) == pytest.approx(32)
    assert np.mean(variances) == pytest.approx(np.var(estimates))


# -- claims ------------------------------------------------------------------------------------------------------


def test_domains_add_up_to_the_whole():
    file = survey("clusters")
    found = estimates(file, stage(file))
    whole = linearised.totals(WeightedSample.of(file["weight"], stage(file)), file["y"])
    same(found["total"].values.sum(), whole.values[0])


def test_a_domain_without_records_has_the_total_zero_and_no_mean():
    sample = WeightedSample.of([1, 2], domains=[1, 1], number_of_domains=3)
    assert linearised.totals(sample, [4, 5]).values.tolist() == [0, 14, 0]
    assert linearised.totals(sample).variances.tolist()[::2] == [0, 0]
    assert np.isnan(linearised.means(sample, [4, 5]).values).tolist() == [True, False, True]
    assert np.isnan(linearised.means(sample, [4, 5]).variances).tolist() == [True, False, True]


def test_records_in_no_domain_still_tell_of_their_clusters():
    file = survey("clusters")
    domains = np.where(file["domain"] == 2, 0, -1)
    sample = WeightedSample.of(file["weight"], stage(file), domains=domains, number_of_domains=1)
    same(linearised.totals(sample, file["y"]).variances[0], recorded()["r"]["clusters"]["total"]["variances"][2])


def test_the_standard_error_is_a_norm_of_cluster_totals():
    file = survey("clusters")
    first_stage = stage(file)
    sample = WeightedSample.of(file["weight"], first_stage, domains=file["domain"])
    totals = linearised.cluster_totals(sample, file["y"]).toarray()
    for domain, row in enumerate(totals):
        squares = 0.0
        for stratum, n in enumerate(first_stage.selected):
            inside = row[first_stage.cluster_strata == stratum]
            squares += n / (n - 1) * ((inside - inside.mean()) ** 2).sum()
        same(linearised.totals(sample, file["y"]).variances[domain], squares)


@pytest.mark.parametrize("lonely", ["certainty", "centred"])
def test_one_record_moves_a_standard_error_by_no_more_than_its_weighted_value(lonely):
    # A total of 1 in one cluster has the norm sqrt(1 - f), since n / (n - 1) (1 - 1 / n) = 1. Each of L centred strata
    # adds at most 1 / M^2, where M is the number of all selected clusters.
    first_stage = FirstStage.of(
        strata=STRATA, clusters=CLUSTERS, selected=SELECTED, population=POPULATION, lonely=lonely
    )
    draw = np.random.default_rng(9)
    centred, clusters = np.count_nonzero(first_stage.centred), sum(SELECTED)
    most = np.sqrt(1 + centred / clusters**2)
    largest = 0.0
    for record, _ in itertools.product(range(11), range(30)):
        weights, y = draw.uniform(1, 9, 11), draw.normal(0, 1, 11) * draw.choice([0.01, 1, 100])
        changed = y.copy()
        changed[record] = draw.normal(0, 100)
        errors = [
            linearised.totals(WeightedSample.of(weights, first_stage), one).standard_errors[0] for one in (y, changed)
        ]
        moved = abs(errors[0] - errors[1]) / abs(weights[record] * (y[record] - changed[record]))
        assert moved <= most * (1 + 1e-9)
        largest = max(largest, moved)
    assert largest > 0.95


def test_a_census_has_no_variance():
    first_stage = FirstStage.of(strata=[0, 0, 1], selected=[2, 1], population=[2, 1])
    assert linearised.totals(WeightedSample.of([1, 1, 1], first_stage), [3, 4, 9]).variances.tolist() == [0]


def test_nested_codes_of_clusters_start_anew_in_each_stratum():
    file = survey("clusters")
    first = {own: file["cluster"][file["stratum"] == own].min() for own in np.unique(file["stratum"])}
    anew = file["cluster"] - np.array([first[own] for own in file["stratum"]])
    nested = FirstStage.of(strata=file["stratum"], clusters=anew, nested=True)
    plain = stage(file)
    assert nested.degrees_of_freedom == plain.degrees_of_freedom == 22 - 6
    totals = [linearised.totals(WeightedSample.of(file["weight"], one), file["y"]) for one in (nested, plain)]
    same(totals[0].variances, totals[1].variances)


def test_neither_samples_nor_estimates_show_what_they_hold():
    sample = WeightedSample.of([77310.0, 1])
    for held in (sample, sample.first_stage, linearised.totals(sample)):
        assert "77310" not in repr(held) and "confidential" in repr(held)
