"""Figures 3.1 and 3.2, computed again: their points against the theorem and the published table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from stirred.lab.reproduce.paper_figures import (
    RATES,
    RUNS,
    STRATA,
    county_by_tenure,
    dwellings,
    error_by_rate,
    rate_against_epsilon,
    swapped_once,
)
from stirred.reports.figures import draw
from stirred.swap.law.theorem import best_rate, epsilon, smallest_epsilon
from stirred.tables.synthetic import PUBLISHED_MAPE, TABLE_3_1


def test_every_point_of_figure_3_2_is_a_rate_with_its_epsilon():
    picture = rate_against_epsilon()
    for size in STRATA:
        *branches, top, bottom = [line for line in picture.lines if line.name == f"b = {size:,}"]
        assert len(branches) == 2
        for diamond, sign in ((top, 1), (bottom, -1)):
            assert diamond.x[1] == smallest_epsilon(size) and sign * (diamond.y[1] - best_rate(size)) > 0
        for line in branches:
            assert (line.x[0], line.y[0]) == pytest.approx((smallest_epsilon(size), best_rate(size)))
            for x, y in zip(line.x[:60], line.y[:60], strict=True):
                # Close to 1 a float knows the odds to a few digits only.
                assert epsilon(size, Fraction(y)) == pytest.approx(x, abs=1e-6)
    assert [line.y[0] for line in picture.lines if line.name.startswith("swap rates")] == [0.05, 0.5]
    assert (picture.x_title, picture.y_title) == ("epsilon", "swap rate p")
    draw(picture)


def test_the_swapped_file_has_the_published_counts_and_keeps_their_margins():
    true = county_by_tenure(dwellings())
    assert true.tolist() == [[row.owned, row.rented] for row in TABLE_3_1]
    swapped = swapped_once(dwellings(), Fraction(1, 2), 7)
    assert (swapped != true).all()
    assert swapped.sum(axis=0).tolist() == true.sum(axis=0).tolist()
    assert swapped.sum(axis=1).tolist() == true.sum(axis=1).tolist()


@pytest.mark.slow
def test_the_error_of_figure_3_1_grows_with_the_rate_and_varies_little():
    picture = error_by_rate()
    forecast, *lines = picture.lines
    assert {line.name for line in lines} == {f"box plots of {RUNS} runs each"} and len(lines) == 5 * len(RATES)
    medians, ends = [], []
    for rate, expected, at in zip(RATES, forecast.y, range(0, len(lines), 5), strict=True):
        box, lower, middle, down, up = lines[at : at + 5]
        heights = [down.y[0], box.y[0], middle.y[0], box.y[1], up.y[1]]
        assert heights == sorted(heights) and lower.y[0] == box.y[0] == down.y[1] and up.y[0] == box.y[1]
        assert np.mean(box.x) == pytest.approx(float(rate))
        assert middle.y[0] == pytest.approx(expected, rel=0.1)
        medians.append(middle.y[0])
        ends = [heights[0], heights[-1]]
    assert medians == sorted(medians)
    # At the larger rates the runs lie within a tenth of each other, and so does the published run.
    assert ends[0] <= PUBLISHED_MAPE <= ends[1] * 1.1
    assert np.ptp(ends) < 0.1 * medians[-1]
