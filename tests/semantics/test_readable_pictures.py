"""No picture of an explanation is an empty frame: over a grid of guarantees, something can be read off each, or a
sentence says why not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stirred.loss import GaussianCurve, pure_power
from stirred.semantics import explain
from stirred.semantics.pictures.curves import belief_picture, epsilon_delta_picture
from stirred.semantics.pictures.readable import (
    CLEAR,
    LEAST,
    NotDrawn,
    above_diagonal,
    clearance,
    readable_beliefs,
    readable_deltas,
    readable_powers,
)
from stirred.semantics.pictures.shapes import Line, Picture, Point
from stirred.semantics.side_by_side import side_by_side
from stirred.spec.loading import load
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import specify_typed

TYPED = (
    [f"rho={rho}" for rho in ("1e-12", "1e-6", "0.01", "1", "2.63", "8", "20", "30", "100", "1e5", "1e9")]
    + [f"epsilon={epsilon}" for epsilon in ("0", "1e-6", "0.01", "1", "4", "8", "19", "27", "28", "600", "1e9", "inf")]
    + [f"epsilon={e},delta={d}" for e in ("0.001", "1", "12", "60") for d in ("1e-12", "1e-6", "0.01", "0.5")]
    + [f"mu={mu}" for mu in ("1e-6", "0.1", "1", "5", "40")]
    + ["epsilon=1,unbounded", "epsilon=1,unit=household"]
)


def swapped(rate: str, largest: int):
    plan = SwapPlan(
        unit="household", match=("size",), swap=("county",), hold=("tenure",), rate=Fraction(rate), chosen_from="public"
    )
    return specify_typed(plan, largest)


def marks_can_be_read(picture: Picture) -> bool:
    """Some line stays away from the frame that the chart will have, and from the diagonal where that is drawn."""
    xs, ys = (np.array([n for line in picture.lines for n in getattr(line, axis)]) for axis in "xy")
    if picture.x_log:
        xs = np.log10(xs)
    if picture.y_log:
        ys = np.log10(ys)
    low, high = (0.0, 1.0) if picture.diagonal else (min(0.0, ys.min()) if not picture.y_log else ys.min(), ys.max())
    left, right = (0.0, 1.0) if picture.diagonal else (xs.min(), xs.max())
    if high - low <= 0 or right - left <= 0:
        return False
    found, start = 0.0, 0
    for line in picture.lines:
        stop = start + len(line.x)
        x, y = (xs[start:stop] - left) / (right - left), (ys[start:stop] - low) / (high - low)
        start = stop
        places = np.linspace(0, len(x) - 1, 20 * len(x))
        x, y = np.interp(places, range(len(x)), x), np.interp(places, range(len(y)), y)
        inside = np.minimum.reduce([x, 1 - x, y, 1 - y])
        if picture.diagonal:
            inside = np.minimum(inside, np.abs(y - x) / math.sqrt(2))
        found = max(found, float(inside.max()))
    return found >= CLEAR


SPECIFICATIONS = {text: load(text) for text in TYPED}
SPECIFICATIONS |= {
    f"swap {rate} of {b}": swapped(rate, b) for rate in ("0.001", "0.05", "0.5", "0.99") for b in (2, 100, 1_000_000)
}


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_no_picture_of_an_explanation_is_an_empty_frame(name):
    explained = explain(SPECIFICATIONS[name])
    drawn, instead = explained.pictures(), explained.not_drawn()
    assert drawn or instead
    for picture in drawn:
        assert not isinstance(picture, Picture) or marks_can_be_read(picture), (picture.name, picture.subtitle)
    for one in instead:
        assert one.words.startswith("No picture") and one.words.endswith(".")
    names = [one.name for one in (*drawn, *instead)]
    assert len(set(names)) == len(names) and "level-and-power" in names


def test_the_measure_sees_an_empty_frame():
    frame = Line("frame", (0, 1e-9, 1), (0, 1, 1))
    nearly = Line("nearly", (0, 0.01, 1), (0, 0.99, 1))
    picture = Picture("p", "t", "", "x", "y", (frame, nearly), diagonal=True)
    assert clearance([frame, nearly]) == pytest.approx(0.01, abs=1e-9) and not marks_can_be_read(picture)
    blind = Line("blind", (0, 1), (0, 1))
    assert clearance([blind]) == 0 and above_diagonal([blind]) == 0


# -- the numbers are the same on every axis ------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-5, 0.01])
def test_gains_are_powers_less_their_levels(epsilon):
    half = float(pure_power(epsilon).power(0.5))
    picture = readable_powers({"pure": pure_power(epsilon)}, points=[Point(0.5, half, "half")])
    (line,) = picture.lines
    for x, y in zip(line.x, line.y, strict=True):
        assert y == pytest.approx(float(pure_power(epsilon).power(x)) - x, abs=1e-12)
    assert max(line.y) == pytest.approx(math.tanh(epsilon / 2), rel=1e-3)
    assert picture.points[0].y == half - 0.5 and not picture.diagonal


@pytest.mark.parametrize("epsilon", [8, 15, 25])
def test_a_logarithmic_axis_shows_the_rise_of_the_power(epsilon):
    picture = readable_powers({"pure": pure_power(epsilon)})
    (line,) = picture.lines
    assert picture.x_log and line.x[0] >= LEAST and line.y[0] < 0.5 < line.y[-1]
    for x, y in zip(line.x, line.y, strict=True):
        assert y == pytest.approx(min(x * math.exp(epsilon), 1 - math.exp(-epsilon) * (1 - x)), abs=1e-9)


def test_a_logarithmic_axis_shows_the_highest_beliefs():
    picture = readable_beliefs(belief_picture([20]), [20])
    (line,) = picture.lines
    for prior, after in zip(line.x, line.y, strict=True):
        assert after == pytest.approx(prior / (prior + (1 - prior) * math.exp(-20)), abs=1e-12)
    assert "lowest" not in picture.caption


def test_what_is_left_out_of_a_picture_is_said():
    picture = readable_powers({"near": GaussianCurve(6.5), "far": GaussianCurve(60)})
    assert (
        [line.name for line in picture.lines] == ["near"]
        and "Not drawn" in picture.caption
        and "far" in picture.caption
    )
    beliefs = readable_beliefs(belief_picture([20, 100]), [20, 100])
    assert len(beliefs.lines) == 1 and "epsilon = 100" in beliefs.caption


def test_a_line_along_the_frame_beside_others_gets_words():
    lines = {line.name: line.words for line in readable_powers({"one": pure_power(1), "much": pure_power(99)}).lines}
    assert lines["one"] == "" and lines["much"].startswith("along the frame")
    lines = {line.name: line.words for line in readable_powers({"one": pure_power(1), "no": pure_power(1e-6)}).lines}
    assert lines["no"].startswith("along the diagonal")


def test_lines_that_cover_each_other_are_told():
    lines = readable_powers({"first": pure_power(1), "second": pure_power(1.0001)}).lines
    assert lines[0].words == "" and "'first'" in lines[1].words


def test_no_budget_and_no_limit_are_sentences():
    assert readable_powers({"nothing": pure_power(0)}).words.endswith("no test is better than a blind guess.")
    assert isinstance(readable_beliefs(belief_picture([0]), [0]), NotDrawn)
    flat = epsilon_delta_picture({"flat": lambda epsilon: 0.1})
    assert readable_deltas(flat).words == (
        "No picture of delta: up to epsilon = 20 the probability of a larger loss may be 0.1."
    )


def test_delta_is_drawn_as_far_as_it_falls():
    """A guarantee of epsilon = 60 was once a straight line, since the axis ended at 20."""
    explained = explain(load("epsilon=60,delta=1e-6"))
    picture = next(one for one in explained.pictures() if one.name == "epsilon-and-delta")
    assert picture.lines[0].x[-1] > 60 and min(picture.lines[0].y) < 1e-5


def test_a_comparison_of_what_has_no_limit_says_so():
    found = side_by_side(load("epsilon=inf"), load("epsilon=inf,unit=household"))
    assert found.picture() is None and found.drawn().words.startswith("No picture")
    some = side_by_side(load("epsilon=1"), load("epsilon=inf"))
    assert some.drawn() == some.picture() and len(some.picture().lines) == 1
