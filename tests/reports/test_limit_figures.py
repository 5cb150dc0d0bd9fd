"""Figures 5.1 to 5.4 drawn: the numbers of the data reach the chart, and every figure makes a file."""

from __future__ import annotations

import numpy as np
import pytest

from stirred.lab.limits.chapter_figures import FIGURES, chapter_figure, figures_at
from stirred.limits import posterior_bounds, power_bounds
from stirred.reports.figures import draw, save
from stirred.reports.limits_section import of_epsilon, question_pictures
from stirred.semantics.pictures.readable import NotDrawn


@pytest.mark.parametrize("number", FIGURES)
def test_the_curves_of_a_figure_are_drawn_as_they_are(number):
    for panel in chapter_figure(number):
        fields = draw(panel).to_dict()
        rows = [row for rows in fields["datasets"].values() for row in rows]
        for curve in panel.lines:
            drawn = {(row["x"], row["y"]) for row in rows if row["line"] == curve.name}
            assert set(zip(curve.x, curve.y, strict=True)) <= drawn
        assert "computed again" in fields["description"]


@pytest.mark.slow
def test_files_are_written_for_the_published_figures(tmp_path):
    for number in FIGURES:
        for picture in chapter_figure(number):
            (path,) = save(picture, tmp_path, formats=("svg",))
            assert path.name == f"{picture.name}.svg" and path.stat().st_size > 5000


def test_a_wide_band_gets_a_logarithmic_axis():
    count = next(one for one in figures_at(1, 20) if one.name == "limits-count")
    assert count.y_log and draw(count).to_dict()


# -- the question that was asked -----------------------------------------------------------------------------


def test_what_was_asked_is_marked_on_the_curves_of_its_distances():
    asked = of_epsilon("1/2", 1000, distance=5, levels=[0.05, 0.3], priors=[0.2])
    tests, beliefs = question_pictures(asked)
    assert (tests.name, beliefs.name) == ("limits-tests", "limits-beliefs")
    assert {line.name for line in tests.lines} == {"datasets this far apart (distance 5)"}
    (limit,) = asked.limits
    assert [(one.x, one.y) for one in tests.points] == list(zip([0.05, 0.3], limit.power.upper.tolist(), strict=True))
    assert [(one.x, one.y) for one in beliefs.points] == [(0.2, float(limit.posterior.upper[0]))]
    for x, y in zip(tests.lines[0].x, tests.lines[0].y, strict=True):
        assert y == pytest.approx(float(power_bounds([x], 0.5, 5).upper[0]), abs=1e-12)
    upper, lower = beliefs.lines
    for x, high, low in zip(upper.x, upper.y, lower.y, strict=True):
        band = posterior_bounds([x], 0.5, 5)
        assert (high, low) == pytest.approx((float(band.upper[0]), float(band.lower[0])), abs=1e-12)


def test_records_added_or_removed_have_a_guarantee_and_distances_of_their_own():
    tests, _ = question_pictures(of_epsilon(1, 10, bounded=False))
    assert (
        tests.guarantee == "Guarantee: epsilon = 1 per record added or removed, pure differential privacy; 10 records"
    )
    assert [line.name.rpartition(" (")[2] for line in tests.lines] == ["distance 1)", "distance 2)", "distance 20)"]


def test_a_question_without_limit_is_left_out_in_words():
    tests, beliefs = question_pictures(of_epsilon(1, 1_000_000))
    for picture in (tests, beliefs):
        assert {line.name for line in picture.lines} == {"one record, all others known (distance 1)"}
        assert "nothing practical is ruled out: the whole database" in picture.caption
    for asked in (of_epsilon("inf", 3), of_epsilon(1, 10, distance="infinity"), of_epsilon(0, 3)):
        assert all(isinstance(one, NotDrawn) for one in question_pictures(asked))


def test_small_and_large_questions_keep_their_points_on_their_lines():
    for epsilon in ("0.001", "1", "12"):
        for picture in question_pictures(of_epsilon(epsilon, 1, priors=[1e-5, 0.1], levels=[1e-5, 0.1])):
            assert picture.points
            for point in picture.points:
                near = [float(np.interp(point.x, line.x, line.y)) for line in picture.lines]
                assert min(abs(y - point.y) for y in near) < 0.01
