"""Weights and tables adjusted to public totals: equal to R's survey, and the totals are what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from survey_files import DOMAINS, recorded, same, stage, survey

from stirred.errors import SurveyError
from stirred.survey.design import linearised
from stirred.survey.design.linearised import FirstStage, WeightedSample
from stirred.survey.weights import adjustment

TIGHT = 1e-13


def public():
    totals = recorded()["r"]["totals"]
    return np.array(totals["a"]), np.array(totals["b"]), totals["x"]


def linear():
    file = survey("clusters")
    a, _, x = public()
    variables = np.stack([np.ones(len(file["x"])), file["a"] == 1, file["a"] == 2, file["x"]], axis=1)
    return variables, np.array([a.sum(), a[1], a[2], x])


def adjusted(case):
    file = survey("clusters")
    a, b, _ = public()
    weights = file["weight"]
    if case == "post-stratified":
        return adjustment.post_stratify(weights, file["a"], a)
    if case == "raked":
        return adjustment.rake(weights, [(file["a"], a), (file["b"], b)], tolerance=TIGHT)
    bounds = (0.92, 1.12) if case == "calibrated within bounds" else None
    return adjustment.calibrate(weights, *linear(), bounds=bounds, tolerance=TIGHT)


CASES = ["post-stratified", "raked", "calibrated", "calibrated within bounds"]


@pytest.mark.parametrize("case", CASES)
def test_adjusted_weights_are_those_of_r_survey(case):
    found = adjusted(case)
    assert found.converged
    same(found.weights, recorded()["r"][case]["weights"])
    same(found.weights, found.base_weights * found.factors)


def test_raked_weights_are_those_of_r_surveys_own_rounds():
    same(adjusted("raked").weights, recorded()["r"]["raked by margins"]["weights"])


@pytest.mark.parametrize("case", CASES)
def test_variances_of_adjusted_estimates_are_those_of_r_survey(case):
    file, found, theirs = survey("clusters"), adjusted(case), recorded()["r"][case]
    sample = WeightedSample.of(
        found.weights, stage(file, fpc=True), domains=file["domain"], number_of_domains=DOMAINS, calibration=found
    )
    ours = {
        "total": linearised.totals(sample, file["y"]),
        "count": linearised.totals(sample),
        "mean": linearised.means(sample, file["y"]),
        "ratio": linearised.ratios(sample, file["y"], file["x"]),
        "share": linearised.means(sample, file["category"] == 1),
    }
    for name, estimates in ours.items():
        same(estimates.values, theirs[name]["values"])
        same(estimates.variances, theirs[name]["variances"])
    same(linearised.covariances(sample, file["y"], file["x"]), theirs["covariance"])


@pytest.mark.parametrize("lonely", ["certainty", "centred"])
def test_the_variance_is_that_of_the_residuals_written_out(lonely):
    file = survey("lonely")
    weights, x, y = file["weight"], file["x"], file["y"]
    variables = np.stack([np.ones(len(x)), x], axis=1)
    first_stage = FirstStage.of(strata=file["stratum"], clusters=file["cluster"], lonely=lonely)
    found = adjustment.calibrate(weights, variables, [1.1 * weights.sum(), 1.08 * (weights @ x)])
    sample = WeightedSample.of(found.weights, first_stage, domains=file["domain"], calibration=found)
    for domain in range(DOMAINS):
        inside = y * (file["domain"] == domain)
        slopes = np.linalg.solve(variables.T @ (weights[:, None] * variables), variables.T @ (weights * inside))
        residuals = inside - variables @ slopes
        plain = linearised.totals(WeightedSample.of(found.weights, first_stage), residuals).variances[0]
        same(linearised.totals(sample, y).variances[domain], plain)


@pytest.mark.parametrize("case", CASES)
def test_calibrated_totals_have_no_variance(case):
    file, found = survey("clusters"), adjusted(case)
    sample = WeightedSample.of(found.weights, stage(file), domains=file["a"], calibration=found)
    counts = linearised.totals(sample)
    same(counts.values, public()[0])
    assert counts.variances.tolist() == [0, 0, 0]


# -- tables ------------------------------------------------------------------------------------------------------


def table():
    file = survey("clusters")
    counts = np.zeros((3, 4, 3))
    np.add.at(counts, (file["a"], file["b"], file["category"]), file["weight"])
    return counts


def test_factors_of_a_table_are_those_of_its_records():
    file = survey("clusters")
    a, b, _ = public()
    found = adjustment.rake_table(table(), [([0], a), ([1], b)], tolerance=TIGHT)
    same(found.factors[file["a"], file["b"], file["category"]], adjusted("raked").factors)
    same(found.counts, table() * found.factors)
    assert found.remark == "" and found.negative_cells == 0


def test_calibrated_factors_of_a_table_are_those_of_its_records():
    file = survey("clusters")
    a, _, _ = public()
    cells = np.indices((3, 4, 3))
    variables = np.stack([np.ones((3, 4, 3)), cells[0] == 1, cells[0] == 2, cells[1] == 2], axis=-1)
    totals = [a.sum(), a[1], a[2], 1.1 * table()[:, 2].sum()]
    found = adjustment.calibrate_table(table(), variables, totals)
    own = variables[file["a"], file["b"], file["category"]]
    theirs = adjustment.calibrate(file["weight"], own, totals)
    same(found.factors[file["a"], file["b"], file["category"]], theirs.factors)
    within = adjustment.calibrate_table(table(), variables, totals, bounds=(0.8, 1.2))
    assert within.converged and within.factors.min() >= 0.8 and within.factors.max() <= 1.2


def test_margins_over_two_axes():
    wanted = table().sum(axis=2).T * 1.5  # axes 1 and 0, in this order
    found = adjustment.post_stratify_table(table(), [1, 0], wanted)
    same(found.counts.sum(axis=2).T, wanted)
    assert found.rounds == 1


def test_noisy_cells_below_zero_are_set_to_zero_and_said():
    draw = np.random.default_rng(5)
    noisy = np.array([[50.0, 3, 0], [2, -4, 30], [20, 10, -1]]) + draw.laplace(0, 0.1, (3, 3))
    noisy[0, 2] = 0.0
    rows, columns = [60.0, 40, 30], [75.0, 20, 35]
    found = adjustment.rake_table(noisy, [([0], rows), ([1], columns)])
    same(found.counts.sum(axis=1), rows)
    same(found.counts.sum(axis=0), columns)
    assert found.counts[1, 1] == found.counts[2, 2] == found.counts[0, 2] == 0
    assert found.negative_cells == 2
    assert found.remark == (
        "2 of 9 cells were negative and were set to 0 before adjustment, which raises sums of small cells."
    )
    # Also these cells have a factor, a product of that of the row and that of the column.
    same(found.factors[1, 1] * found.factors[0, 0], found.factors[0, 1] * found.factors[1, 0])
    with pytest.raises(SurveyError, match="2 cells of the table are negative"):
        adjustment.rake_table(noisy, [([0], rows)], negative="refuse")


def test_negative_cells_can_be_kept_where_sums_stay_positive():
    found = adjustment.post_stratify_table([[9, -1], [4, 4]], [0], [16, 4], negative="keep")
    assert found.counts.tolist() == [[18, -2], [2, 2]]
    assert found.remark == "1 of 4 cells were negative and were kept."
    with pytest.raises(SurveyError, match="1 categories with a public total above 0 have no weight"):
        adjustment.post_stratify_table([[1, -2], [4, 4]], [0], [16, 4], negative="keep")


def test_a_category_of_which_nothing_is_wanted_gets_the_factor_zero():
    found = adjustment.post_stratify_table([[2, 2], [0, 0], [1, 0]], [0], [8, 0, 0])
    assert found.factors.tolist() == [[2, 2], [0, 0], [0, 0]]


# -- convergence -------------------------------------------------------------------------------------------------


def test_raking_that_cannot_agree_is_refused_or_said():
    # The only cell of the first row is in the first column, and more is wanted in the row than in the column.
    cells, margins = [[1, 0], [1, 1]], [([0], [5, 5]), ([1], [4, 6])]
    with pytest.raises(SurveyError) as refused:
        adjustment.rake_table(cells, margins, most_rounds=50)
    assert refused.value.kind == "calibration-not-reached"
    assert "After 50 rounds the weights still miss a total by" in str(refused.value)
    found = adjustment.rake_table(cells, margins, most_rounds=50, must_converge=False)
    assert not found.converged and found.rounds == 50 and found.largest_gap > 0.01


def test_bounds_that_are_too_narrow_are_refused():
    with pytest.raises(SurveyError) as refused:
        adjustment.calibrate([1, 1, 1], [[1], [1], [1]], [9], bounds=(0.5, 2), most_rounds=30)
    assert refused.value.kind == "calibration-not-reached"


def test_variables_that_repeat_each_other_are_allowed_and_contradictions_are_not():
    x = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [1, 0, 1]])
    found = adjustment.calibrate([1, 1, 2, 1], x, [10, 6, 4])
    np.testing.assert_allclose(x.T @ found.weights, [10, 6, 4], rtol=1e-12)
    same(found.factors, [2, 2, 2, 2])
    with pytest.raises(SurveyError, match="No factors give these totals"):
        adjustment.calibrate([1, 1, 2, 1], x, [10, 6, 5])


def test_linear_factors_may_be_negative_without_bounds():
    found = adjustment.calibrate([1, 1], [[1, 0], [1, 4]], [2, -4])
    assert found.factors.tolist() == pytest.approx([3, -1])
    sample = WeightedSample.of(found.weights, calibration=found, negative_weights=True)
    assert linearised.totals(sample).values[0] == pytest.approx(2)
