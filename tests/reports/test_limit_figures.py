"""Figures 5.1 to 5.4 drawn: the numbers of the data reach the chart, and every figure makes a file."""

from __future__ import annotations

import pytest

from stirred.limits import FIGURES, chapter_figure
from stirred.reports.figures import draw, save
from stirred.reports.limit_figures import chapter_pictures, pictures_at


@pytest.mark.parametrize("number", FIGURES)
def test_the_curves_of_a_figure_are_drawn_as_they_are(number):
    for panel, picture in zip(chapter_figure(number), chapter_pictures(number), strict=True):
        fields = draw(picture).to_dict()
        rows = [row for rows in fields["datasets"].values() for row in rows]
        for curve in panel.curves:
            drawn = {(row["x"], row["y"]) for row in rows if row["line"] == curve.name}
            assert set(zip(curve.x, curve.y, strict=True)) <= drawn
        assert picture.caption == panel.caption and "computed again" in fields["description"]


@pytest.mark.slow
def test_files_are_written_for_the_published_figures(tmp_path):
    for number in FIGURES:
        for picture in chapter_pictures(number):
            (path,) = save(picture, tmp_path, formats=("svg",))
            assert path.name == f"{picture.name}.svg" and path.stat().st_size > 5000


def test_a_wide_band_gets_a_logarithmic_axis():
    count = next(one for one in pictures_at(1, 20) if one.name == "limits-count")
    assert count.y_log and draw(count).to_dict()
