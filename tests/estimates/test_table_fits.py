"""Weighted least squares on estimates: formulas, classical special cases, coverage, and tables of a release."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from gls_oracle import Dense
from scipy.stats import binom, linregress, t
from test_ratios import MEASURES, delta, small, value_of

from stirred.errors import StirredError
from stirred.estimates import fit_table
from stirred.topdown.estimating.questions import covariance_of
from stirred.topdown.estimating.ratios import ask


def noisy(rng, rows=12, rank=None):
    root = rng.normal(size=(rows, rank or rows))
    return root @ root.T / rows


def test_without_noise_it_is_ordinary_least_squares():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=15), rng.normal(size=15)
    fit, plain = fit_table(y, np.zeros((15, 15)), {"x": x}), linregress(x, y)
    assert fit.values == pytest.approx([plain.intercept, plain.slope])
    assert fit.standard_errors == pytest.approx([plain.intercept_stderr, plain.stderr])
    lower, upper = fit.interval(0.95)
    assert upper[1] - lower[1] == pytest.approx(2 * t.ppf(0.975, 13) * plain.stderr)
    assert fit.noise_errors.tolist() == [0, 0] and fit.kinds == ("t", "t")


@pytest.mark.parametrize(("rank", "scatter"), [(None, 0.0), (None, 2.0), (5, 0.0), (5, 2.0)])
def test_coefficients_are_those_of_the_scatter_that_the_residuals_show(rank, scatter):
    rng = np.random.default_rng(8)
    noise, x = noisy(rng, rank=rank), rng.normal(size=(12, 2)) * [1, 1e6]
    y = 3 + x[:, 0] + rng.multivariate_normal(np.zeros(12), noise) + scatter * rng.normal(size=12)
    fit = fit_table(y, noise, {"x": x[:, 0], "z": x[:, 1]})
    matrix = np.column_stack([np.ones(12), x])
    v, w = noise + fit.scatter**2 * np.eye(12), np.diag(1 / (np.diag(noise) + fit.scatter**2))
    gain = np.linalg.inv(matrix.T @ w @ matrix) @ matrix.T @ w
    np.testing.assert_allclose(fit.values, gain @ y, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, gain @ v @ gain.T, rtol=1e-5, atol=1e-15)
    np.testing.assert_allclose(fit.noise_errors, np.sqrt(np.diag(gain @ noise @ gain.T)), rtol=1e-6)
    left = y - matrix @ gain @ y
    mean = np.trace((w - w @ matrix @ gain) @ v)
    assert left @ w @ left == pytest.approx(mean, rel=1e-6) if fit.scatter > 0 else left @ w @ left <= mean
    assert (fit.noise_errors <= fit.standard_errors * (1 + 1e-9)).all()


def test_with_independent_noise_and_no_scatter_it_is_the_textbook_fit():
    rng = np.random.default_rng(4)
    spread, x, y = rng.uniform(0.5, 3, size=12), rng.normal(size=12), rng.normal(size=12)
    fit = fit_table(y, np.diag(spread), {"x": x}, scatter=False)
    slope, intercept = np.polyfit(x, y, 1, w=1 / np.sqrt(spread))
    assert fit.values == pytest.approx([intercept, slope])
    _, unscaled = np.polyfit(x, y, 1, w=1 / np.sqrt(spread), cov="unscaled")
    np.testing.assert_allclose(fit.covariance, unscaled[::-1, ::-1])
    np.testing.assert_allclose(fit.noise_errors, fit.standard_errors)
    assert fit.kinds == ("normal", "normal") and fit.scatter == 0


def covered(runs, scatter, seed):
    rng = np.random.default_rng(seed)
    noise, x = noisy(rng, 20), rng.normal(size=20)
    root, inside = np.linalg.cholesky(noise), 0
    for _ in range(runs):
        y = 1 + 2 * x + root @ rng.normal(size=20) + scatter * rng.normal(size=20)
        lower, upper = fit_table(y, noise, {"x": x}).interval(0.9)
        inside += lower[1] <= 2 <= upper[1]
    return inside


def test_intervals_of_coefficients_contain_the_truth_as_often_as_they_say():
    # The scatter is estimated, so that coverage is approximate: 3 points to spare, a false alarm in a million runs.
    assert covered(200, 1.0, 5) >= binom.ppf(1e-6, 200, 0.87)


@pytest.mark.slow
@pytest.mark.parametrize("scatter", [0.0, 0.3, 1.0, 5.0])
def test_intervals_of_coefficients_contain_the_truth_as_often_as_they_say_over_2000_draws(scatter):
    inside = covered(2000, scatter, 6)
    print(scatter, inside / 2000)
    assert binom.ppf(1e-6, 2000, 0.88) <= inside


@pytest.mark.parametrize(
    ("values", "columns", "words"),
    [
        ([1, 2, 3], {"x": [1, 2, 3], "z": [0, 1, 0]}, "at least 4 rows"),
        ([1, 2, 3, 4], {"x": [1, 1, 1, 1]}, "must differ"),
        ([1, 2, 3, 4], {"x": [1, 2, 3, 4], "z": [2, 4, 6, 8]}, "must differ"),
        ([1, 2, 3, 4], {"x": [0, 0, 0, 0]}, "must differ"),
        ([1, 2, 3, float("nan")], {"x": [1, 2, 3, 4]}, "finite"),
        ([1, 2, 3, 4], {"x": [1, 2, 3, None]}, "finite"),
        ([1, 2, 3, 4], {"x": ["a", "b", "c", "d"]}, "must hold numbers"),
        ([1, 2, 3, 4], {"x": [1, 2, 3]}, "for each estimate"),
        ([1, 2, 3, 4], {}, "needs a column"),
        ([1, 2, 3, 4], {"intercept": [1, 2, 3, 4]}, "cannot be named"),
    ],
)
def test_what_cannot_be_fitted_says_why(values, columns, words):
    with pytest.raises(StirredError, match=words):
        fit_table(values, np.eye(len(values)), columns)
    with pytest.raises(StirredError, match="some are known exactly"):
        fit_table([1, 2, 4, 4], np.diag([0, 1, 1, 1]), {"x": [1, 2, 3, 4]}, scatter=False)


# -- tables of a release -------------------------------------------------------------------------------------

SIZES = ((2, 1, 3), (3,), (1, 2))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("invariants", [(), (("state", ("sex",)),)])
def test_the_covariance_of_a_table_is_that_of_dense_least_squares(tmp_path, name, invariants):
    counted, release = small(tmp_path, invariants=invariants, sizes=SIZES)
    dense = Dense(counted, release)
    asked = dict(MEASURES[name])
    question = ask(release, "persons", asked.pop("by", ()), level="county", **asked)
    units = np.array([0, 2, 3, 5])

    def form(unit, where):
        return dense.forms(1, (), where)[unit]

    def added(row, i, j):
        return lambda n: [sum(value_of(name, lambda **where: n(units[at], **where))[row] for at in (i, j))]  # noqa: B023

    for row in {0, len(question.rows) - 1}:
        found = covariance_of(question, row, units)
        spread = question.answer().variances.reshape(6, -1)[units, row]
        np.testing.assert_allclose(np.diag(found), spread, rtol=1e-6, atol=1e-12)
        for i, j in [(0, 1), (0, 3), (1, 2)]:  # the variance of a sum of two has their covariance in it
            _, total = delta(dense, form, added(row, i, j))
            assert found[i, i] + found[j, j] + 2 * found[i, j] == pytest.approx(total[0], rel=1e-4, abs=1e-10)


def test_a_table_is_regressed_on_columns_of_places(tmp_path):
    _, release = small(tmp_path, sizes=SIZES)
    names = release.spine.names[2].to_pylist()
    frame = pl.DataFrame({"town": names[::-1], "income": np.arange(len(names)) ** 2.0, "rural": [True, False] * 6})
    frame.write_csv(tmp_path / "places.csv")
    fit = release.regress("persons", "sex=f ~ income + rural", tmp_path / "places.csv", level="town", share="sex")
    question = ask(release, "persons", level="town", share="sex")
    columns = {"income": frame["income"].to_numpy()[::-1], "rural": frame["rural"].to_numpy()[::-1]}
    shares = question.answer().values.reshape(-1, 2)[:, 0]
    expected = fit_table(shares, covariance_of(question, 0, np.arange(12)), columns)
    np.testing.assert_allclose(fit.values, expected.values)
    np.testing.assert_allclose(fit.covariance, expected.covariance)
    assert fit.labels == (("intercept",), ("income",), ("rural",)) and fit.places == 12
    assert fit.to_frame(0.95).columns == [
        "term", "estimate", "standard_error", "lower", "upper", "interval", "noise_error",
    ]  # fmt: skip
    assert "independent scatter" in fit.to_json() and fit.rows()[0][0] == "term"
    some = release.regress("persons", "estimate ~ income", frame[:5].to_pandas(), level="town")
    assert some.places == 5 and any("7 units of 'town' are left out" in line for line in some.remarks)
    assert release.regress("persons", "estimate ~ income", frame, level="town", scatter=False).scatter == 0


@pytest.mark.parametrize(
    ("formula", "change", "words"),
    [
        ("sex=f", {}, "must be written as OUTCOME"),
        ("sex=f ~ income + income", {}, "each column once"),
        ("sex=x ~ income", {}, "for example sex=f"),
        ("estimate ~ income", {}, "for example sex=f"),
        ("sex=f ~ wealth", {}, "wealth"),
        ("sex=f ~ name", {"name": "a"}, "must hold numbers"),
        ("sex=f ~ income", {"income": None}, "none missing"),
        ("sex=f ~ income", {"town": "nowhere"}, "nowhere"),
    ],
)
def test_a_regression_that_does_not_fit_says_why(tmp_path, formula, change, words):
    _, release = small(tmp_path)
    names = release.spine.names[2].to_pylist()
    columns = {"town": names, "income": list(range(len(names)))}
    frame = pl.DataFrame({**columns, **{key: [value, *columns.get(key, names)[1:]] for key, value in change.items()}})
    with pytest.raises(StirredError, match=words):
        release.regress("persons", formula, frame, level="town", share="sex")


def test_a_regression_needs_units_of_a_level_each_once(tmp_path):
    _, release = small(tmp_path)
    twice = pl.DataFrame({"town": ["s0c0t0"] * 4, "x": [1, 2, 3, 4]})
    with pytest.raises(StirredError, match="one row for each 'town'"):
        release.regress("persons", "estimate ~ x", twice, level="town")
    with pytest.raises(StirredError, match="units of a level"):
        release.regress("persons", "estimate ~ x", twice, level=None, places=[("town", "s0c0t0")])
    with pytest.raises(StirredError, match="readable CSV"):
        release.regress("persons", "estimate ~ x", tmp_path / "missing.csv", level="town")
