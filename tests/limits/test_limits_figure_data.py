"""Figures 5.1 to 5.4 as data: golden values, formulas written out again, and what must not be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from limit_cases import printed_number
from stirred.errors import LossError
from stirred.lab.limits.chapter_figures import FIGURES, chapter_figure, figures_at, laplace_count_figure
from stirred.limits import ClampedCount


def at(curve, x):
    return curve.y[int(np.argmin(np.abs(np.array(curve.x) - x)))]


def test_every_figure_has_its_panels_names_and_captions():
    assert [len(chapter_figure(number)) for number in FIGURES] == [1, 2, 1, 1]
    names = [panel.name for number in FIGURES for panel in chapter_figure(number)]
    assert names == ["figure-5-1", "figure-5-2-a", "figure-5-2-b", "figure-5-3", "figure-5-4"]
    for number in FIGURES:
        for panel in chapter_figure(number):
            assert f"Figure {number} of Bailie (2025)" in panel.caption
            for curve in panel.lines:
                assert list(curve.x) == sorted(curve.x) and np.isfinite(curve.y).all()


def test_figure_5_1_has_the_densities_of_g1():
    (panel,) = chapter_figure("5.1")
    first, second, factor = panel.lines
    assert (at(first, 0), at(second, 0)) == (pytest.approx(1), pytest.approx(math.exp(-2)))
    assert round(at(second, -0.5), 2) == printed_number("thesis/figure-5.1/annotation") == 0.05
    assert (at(first, -0.5), at(second, -0.5)) == (pytest.approx(0.367879, abs=5e-7), pytest.approx(0.049787, abs=5e-7))
    assert factor.x == (-0.5, -0.5) and factor.y == (pytest.approx(math.exp(-3)), pytest.approx(math.exp(-1)))
    assert (first.x[0], first.x[-1]) == (-2, 3)
    assert "the first is 0.368 and the second 0.0498" in panel.caption
    assert np.array(first.y) == pytest.approx(np.exp(-2 * np.abs(first.x)))


@pytest.mark.parametrize(
    ("panel", "epsilon", "golden"),
    [
        (0, 0.1, {-20: (0.002489, 0.006767), 0: (0.018394, 0.05), 5: (0.018394, 0.082436), 30: (0.002489, 0.006767)}),
        (1, 0.25, {-10: (0.000842, 0.010261), 2.5: (0.010261, 0.233531), 5: (0.010261, 0.436293)}),
    ],
)
def test_figure_5_2_has_the_bands_of_g2(panel, epsilon, golden):
    figure = chapter_figure("5.2")[panel]
    upper, lower, most, least = figure.lines
    for t, (low, high) in golden.items():
        assert (at(lower, t), at(upper, t)) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    t = np.array(upper.x)
    assert (t[0], t[-1]) == (-20, 30)
    # The band of the whole mechanism, from the densities at the sums 0 to 10.
    assert np.array(least.y) == pytest.approx(epsilon / 2 * np.exp(-epsilon * np.maximum(abs(t), abs(t - 10))))
    assert np.all(np.array(lower.y) <= np.array(least.y) + 1e-15)
    assert np.all(np.array(most.y) <= np.array(upper.y) + 1e-15)
    assert not figure.y_log


def test_figure_5_3_has_the_bands_of_g3():
    (panel,) = chapter_figure("5.3")
    upper, lower = panel.lines
    flip = 1 / (1 + math.e)
    assert upper.x == tuple(range(1, 11))
    assert lower.y == pytest.approx([flip**n for n in range(1, 11)])
    assert upper.y == pytest.approx([(1 - flip) ** n for n in range(1, 11)])
    assert (lower.y[9], upper.y[9]) == (pytest.approx(0.00000198, abs=5e-9), pytest.approx(0.04360354, abs=5e-9))
    gaps = np.subtract(upper.y, lower.y)
    assert gaps[0] == pytest.approx(gaps[1]) and np.all(np.diff(gaps[1:]) < 0)


def test_figure_5_4_has_the_densities_of_g5():
    (panel,) = chapter_figure("5.4")
    prior, upper, lower = panel.lines[-3:]
    assert [one.name for one in (prior, upper, lower)] == [
        "prior", "at most, from epsilon alone", "at least, from epsilon alone",
    ]  # fmt: skip
    golden = {0.5: 0.075816, 1: 0.183940, 2: 0.270671, 3: 0.224042, 5: 0.084224, 8: 0.010735}
    for theta, density in golden.items():
        assert at(prior, theta) == pytest.approx(density, abs=5e-7)
        assert at(upper, theta) == pytest.approx(density * math.e, abs=2e-6)
        assert at(lower, theta) == pytest.approx(density / math.e, abs=5e-7)
    posteriors = [curve for curve in panel.lines if curve.name == "posterior, at ten outputs"]
    assert len(posteriors) == 10
    theta = np.array(prior.x)
    for curve in posteriors:
        assert np.all(np.array(lower.y) <= np.array(curve.y) + 1e-15)
        assert np.all(np.array(curve.y) <= np.array(upper.y) + 1e-15)
        assert np.trapezoid(curve.y, theta) == pytest.approx(1, abs=0.02)
    # The outputs are middles of ten equally probable parts.
    chances = [
        float(ClampedCount().counts @ stats.laplace.cdf(ClampedCount().quantile(p), loc=np.arange(7), scale=6))
        for p in (0.05, 0.45, 0.95)
    ]
    assert chances == pytest.approx([0.05, 0.45, 0.95])


def test_figures_at_an_epsilon_of_ones_own():
    assert [one.name for one in figures_at(0.1, 10)] == [
        "limits-laplace", "limits-count", "limits-response", "limits-posterior",
    ]  # fmt: skip
    published, own = chapter_figure("5.2")[0], figures_at(0.1, 10)[1]
    assert own.lines == published.lines
    assert figures_at(1, 10)[1].y_log
    assert [one.name for one in figures_at(7, 1)] == ["limits-laplace", "limits-count", "limits-response"]
    assert [one.name for one in figures_at(1, 10**6)] == ["limits-laplace", "limits-response", "limits-posterior"]
    for one in (*figures_at(0.001, 1), *figures_at(5, 40)):
        assert all(np.isfinite(curve.y).all() for curve in one.lines)
        assert not one.y_log or min(min(curve.y) for curve in one.lines) > 0


def test_respondents_are_as_many_as_a_line_can_show():
    for records, drawn in ((1, 2), (2, 2), (50, 50), (51, 50)):
        (shown,) = [one for one in figures_at(0.1, records) if one.name == "limits-response"]
        assert len(shown.lines[0].x) == drawn


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("There is no figure '5.9'", lambda: chapter_figure("5.9")),
        ("above 0 to be drawn", lambda: figures_at(0, 10)),
        ("finite", lambda: figures_at(math.inf, 10)),
        ("at most 200", lambda: laplace_count_figure(10.0, 1000)),
    ],
)
def test_figures_that_cannot_be_are_refused(words, refused):
    with pytest.raises(LossError, match=words):
        refused()
