"""Tables adjusted to public totals: equal to R's survey, and the totals are what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from survey_files import recorded, same, survey

from stirred.errors import SurveyError
from stirred.survey.estimating.adjusted import calibrate_linearly, categories, post_stratify, rake


def public():
    totals = recorded()["r"]["totals"]
    return np.array(totals["a"]), np.array(totals["b"])


def table():
    file = survey("clusters")
    counts = np.zeros((3, 4, 3))
    np.add.at(counts, (file["a"], file["b"], file["category"]), file["weight"])
    return counts


def array(*numbers):
    return np.array(numbers, dtype=float)


@pytest.mark.parametrize("case", ["post-stratified", "raked", "raked by margins"])
def test_adjusted_weights_are_those_of_r_survey(case):
    file = survey("clusters")
    a, b = public()
    found = post_stratify(table(), ((0,), a)) if case == "post-stratified" else rake(table(), [((0,), a), ((1,), b)])
    same(file["weight"] * found.factors[file["a"], file["b"], file["category"]], recorded()["r"][case]["weights"])
    same(found.counts, table() * found.factors)
    assert found.remark == ""


def test_linear_factors_are_those_of_the_normal_equations():
    a, _ = public()
    margins = [((0,), a), ((2, 1), 1.1 * table().sum(axis=0).T)]
    margins[1] = (margins[1][0], margins[1][1] * a.sum() / margins[1][1].sum())
    x, counts = categories((3, 4, 3), margins), table().ravel()
    wanted = np.concatenate([totals.ravel() for _, totals in margins])
    solution = np.linalg.lstsq(x.T @ (counts[:, None] * x), wanted - x.T @ counts, rcond=None)[0]
    found = calibrate_linearly(table(), margins)
    np.testing.assert_allclose(found.factors.ravel(), 1 + x @ solution, rtol=1e-9)
    np.testing.assert_allclose(x.T @ found.counts.ravel(), wanted, rtol=1e-10)


def test_linear_factors_may_be_negative():
    found = calibrate_linearly(array([10, 1], [1, 10]), [((0,), array(2, 20)), ((1,), array(20, 2))])
    assert found.factors.min() < 0
    same(found.counts.sum(axis=0), [20, 2])


def test_margins_over_two_axes():
    wanted = table().sum(axis=2).T * 1.5  # axes 1 and 0, in this order
    same(post_stratify(table(), ((1, 0), wanted)).counts.sum(axis=2).T, wanted)


def test_noisy_cells_below_zero_are_set_to_zero_and_said():
    draw = np.random.default_rng(5)
    noisy = np.array([[50.0, 3, 0], [2, -4, 30], [20, 10, -1]]) + draw.laplace(0, 0.1, (3, 3))
    noisy[0, 2] = 0.0
    rows, columns = array(60, 40, 30), array(75, 20, 35)
    found = rake(noisy, [((0,), rows), ((1,), columns)])
    same(found.counts.sum(axis=1), rows)
    same(found.counts.sum(axis=0), columns)
    assert found.counts[1, 1] == found.counts[2, 2] == found.counts[0, 2] == 0
    assert found.remark == (
        "2 of 9 cells were negative and were set to 0 before adjustment, which raises sums of small cells."
    )
    # Also these cells have a factor, a product of that of the row and that of the column.
    same(found.factors[1, 1] * found.factors[0, 0], found.factors[0, 1] * found.factors[1, 0])


def test_post_strata_keep_negative_cells_where_sums_stay_positive():
    found = post_stratify(array([9, -1], [4, 4]), ((0,), array(16, 4)))
    assert found.counts.tolist() == [[18, -2], [2, 2]]
    assert found.remark == "1 of 4 cells were negative and were kept."
    with pytest.raises(SurveyError, match="1 categories with a public total above 0 have no weight") as refused:
        post_stratify(array([1, -2], [4, 4]), ((0,), array(16, 4)))
    assert refused.value.kind == "calibration-totals"


def test_raking_that_cannot_agree_is_refused():
    # The only cell of the first row is in the first column, and more is wanted in the row than in the column.
    with pytest.raises(SurveyError) as refused:
        rake(array([1, 0], [1, 1]), [((0,), array(5, 5)), ((1,), array(4, 6))])
    assert refused.value.kind == "calibration-not-reached"
    assert "After 1,000 rounds the weights still miss a total by" in str(refused.value)


def test_totals_that_contradict_each_other_are_refused():
    with pytest.raises(SurveyError, match="No factors give these totals") as refused:
        calibrate_linearly(array([1, 0], [0, 1]), [((0,), array(5, 5)), ((1,), array(4, 6))])
    assert refused.value.kind == "calibration-totals"
