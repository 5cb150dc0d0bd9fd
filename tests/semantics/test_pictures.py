"""Pictures as data: what may be one, and whether builders put the right curves into them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from repeats import some_or
from stirred import loss
from stirred.errors import LossError
from stirred.semantics.pictures.curves import (
    LEVELS,
    PRIORS,
    belief_picture,
    epsilon_delta_picture,
    gaussian_deltas,
    level_power_picture,
    likely_belief_picture,
    rounded_up,
)
from stirred.semantics.pictures.shapes import Bar, Bars, Line, Picture

GOLDEN_FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((GOLDEN_FOLDER / "semantics.json").read_text(encoding="utf-8"))
TRADEOFFS = json.loads((GOLDEN_FOLDER / "tradeoffs.json").read_text(encoding="utf-8"))
NORMAL = NormalDist()

PURE = loss.pure_power(1)
LINE = Line("a line", (0, 1), (0.5, 1))
PICTURE = Picture("a-picture", "A title", "", "x", "y", (LINE,))
BARS = Bars("some-bars", "A title", "", "x", (Bar("a bar", 1),))

rhos = st.floats(-4, 1.2).map(lambda power: 10**power)


def at(line: Line, x: float) -> float:
    return line.y[line.x.index(x)]


def named(picture: Picture) -> dict[str, Line]:
    return {line.name: line for line in picture.lines}


def pairs(lines: tuple[Line, ...]):
    return zip(lines[::2], lines[1::2], strict=True)


# -- what a picture is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Line("a", (0, 1), (0,)), "not-a-curve", "as many y as x"),
        (lambda: Line("a", (0,), (0,)), "not-a-curve", "at least two"),
        (lambda: Line("a", (0, 1), (0, math.inf)), "not-a-curve", "finite"),
        (lambda: Line("a", (1, 0), (0, 1)), "not-a-curve", "must not decrease"),
        (lambda: Line("", (0, 1), (0, 1)), "parameter-out-of-range", "name of a line is empty"),
        (lambda: replace(PICTURE, lines=()), "parameter-out-of-range", "lines is empty"),
        (lambda: replace(PICTURE, title=""), "parameter-out-of-range", "title of a picture is empty"),
        (lambda: replace(PICTURE, name="../up"), "parameter-out-of-range", "joined by hyphens"),
        (lambda: replace(PICTURE, x_log=True), "not-a-curve", "line 'a line'"),
        (lambda: replace(PICTURE, y_log=True, lines=(Line("b", (1, 2), (0, 1)),)), "not-a-curve", "must be above 0"),
        (lambda: replace(PICTURE, diagonal=True, y_log=True), "parameter-out-of-range", "logarithmic"),
        (lambda: replace(PICTURE, diagonal=True, lines=(Line("b", (0, 2), (0, 1)),)), "not-a-curve", "between 0 and 1"),
        (lambda: replace(BARS, bars=()), "parameter-out-of-range", "bars is empty"),
        (lambda: replace(BARS, bars=(Bar("a", 1), Bar("a", 2))), "parameter-out-of-range", "used twice"),
        (lambda: Bar("a", -1), "parameter-out-of-range", "at least 0"),
        (lambda: replace(BARS, mark=math.nan), "parameter-out-of-range", "mark"),
    ],
)
def test_what_is_no_picture_is_refused(make, kind, said):
    with pytest.raises(LossError, match=said) as refusal:
        make()
    assert refusal.value.kind == kind


def test_a_picture_never_changes_and_is_equal_to_its_like():
    assert PICTURE == replace(PICTURE) != replace(PICTURE, caption="another")
    assert Line("a", [0, 1], [0, 1]) == Line("a", (0.0, 1.0), (0.0, 1.0))
    assert len(replace(BARS, bars=(Bar("a", 1, "one"), Bar("a", 2, "other"))).bars) == 2
    with pytest.raises(FrozenInstanceError):
        PICTURE.title = "another"


@pytest.mark.parametrize("picture", [PICTURE, BARS, level_power_picture({"pure": PURE}), belief_picture([1, 2])])
def test_fields_hold_all_of_it_and_are_json(picture):
    fields = json.loads(json.dumps(picture.to_fields(), allow_nan=False))
    assert fields.pop("kind") == ("lines" if isinstance(picture, Picture) else "bars")
    if isinstance(picture, Picture):
        assert Picture(**{**fields, "lines": tuple(Line(**line) for line in fields["lines"])}) == picture
    else:
        assert Bars(**{**fields, "bars": tuple(Bar(**bar) for bar in fields["bars"])}) == picture


@pytest.mark.repeats
@settings(max_examples=some_or(25, 100))
@given(st.floats(1e-12, 1e6), st.integers(1, 6))
def test_bounds_are_shown_rounded_up_by_less_than_a_unit_of_the_last_digit(number, digits):
    shown = Fraction(rounded_up(number, digits))
    exact = Fraction(repr(number))
    unit = Fraction(10) ** (math.floor(math.log10(shown)) - digits + 1)
    assert exact <= shown <= exact + unit * (1 + Fraction(1, 10**6))


# -- tests ---------------------------------------------------------------------------------------------------


def test_levels_run_from_0_to_1_and_hold_those_of_the_tables():
    assert (LEVELS[0], LEVELS[-1]) == (0, 1)
    assert all(low < high for low, high in itertools.pairwise(LEVELS))
    assert {0.01, 0.05, 0.1} <= set(LEVELS)


@given(st.integers(2, 50))
@settings(max_examples=20, deadline=None)
def test_theorem_6_1_is_drawn_exactly_with_its_corner(odds):
    """Powers under pure DP with e^epsilon = odds, in exact fractions."""
    line = level_power_picture({"pure": loss.pure_power(math.log(odds))}).lines[0]
    assert any(abs(level - 1 / (1 + odds)) < 1e-12 for level in line.x)
    for level, power in zip(line.x, line.y, strict=True):
        exact = min(odds * Fraction(level), 1 - (1 - Fraction(level)) / odds)
        assert power == pytest.approx(float(exact), abs=1e-12)


@given(rhos)
@settings(max_examples=30, deadline=None)
def test_gaussian_powers_by_another_route(rho):
    """Section 8.3: 1 - Phi(Phi^-1(1 - level) - mu)."""
    mu = math.sqrt(2 * rho)
    line = level_power_picture({"Gaussian": loss.GaussianCurve(mu)}).lines[0]
    for level, power in zip(line.x, line.y, strict=True):
        if 0 < level < 1:
            assert power == pytest.approx(1 - NORMAL.cdf(NORMAL.inv_cdf(1 - level) - mu), abs=1e-9)
    assert (line.y[0], line.y[-1]) == (0, 1)


@given(rhos, st.floats(0.01, 6), st.floats(0, 0.4))
@settings(max_examples=40, deadline=None)
def test_every_line_rises_is_concave_and_nowhere_below_the_diagonal(rho, epsilon, delta):
    curves = {"Gaussian": loss.GaussianCurve(math.sqrt(2 * rho)), "zCDP": loss.ZcdpCurve(rho)}
    curves |= {"Rényi": loss.RenyiCurve(((2, 2 * rho),)), "pure": loss.pure_power(epsilon)}
    lines = named(level_power_picture({**curves, "approximate": loss.approximate_power(epsilon, delta)}))
    for line in lines.values():
        x, y = np.array(line.x), np.array(line.y)
        assert np.all(y >= x - 1e-12)
        assert np.all(np.diff(y) >= -1e-12)
        slopes = np.diff(y) / np.diff(x)
        assert np.all(np.diff(slopes) <= 1e-9 * slopes[:-1] + 1e-9 / np.diff(x)[1:])
    # Each definition that implies another is drawn below it (Theorem 6.3 at all orders, then at one).
    for lower, upper in (("Gaussian", "zCDP"), ("zCDP", "Rényi")):
        assert all(low <= high + 1e-12 for low, high in zip(lines[lower].y, lines[upper].y, strict=True))


@pytest.mark.parametrize("curve", [loss.GaussianCurve(1.3), loss.ZcdpCurve(0.7), PURE, loss.approximate_power(1, 0.05)])
def test_definitions_that_bind_both_ways_are_their_own_mirror_image(curve):
    line = level_power_picture({"a curve": curve}).lines[0]
    for level, power in zip(line.x, line.y, strict=True):
        if 1e-3 < power < 1 - 1e-3:
            assert float(curve.power(1 - power)) == pytest.approx(1 - level, abs=1e-9)


def test_of_two_bounds_the_upper_one_is_drawn_and_the_lower_one_told():
    lower, upper = loss.compose([(loss.randomised_response(0.3), 7)], grid=0.05).power_curve()
    line = level_power_picture({"seven answers": (lower, upper)}).lines[0]
    assert line.y == tuple(upper.power(line.x).tolist())
    gap = float(np.max(upper.power(LEVELS) - lower.power(LEVELS)))
    told = float(line.words.rpartition(" at most ")[2].removesuffix(" below"))
    assert 0 < gap <= told < gap * 2
    assert level_power_picture({"known": (upper, upper)}).lines[0].words.endswith("at most 0 below")


@pytest.mark.parametrize("point", TRADEOFFS["single_point"]["points"], ids=lambda point: point["delta"])
def test_one_point_of_a_curve_says_next_to_nothing_beside_the_whole(point):
    """Theorem 6.2 at one point of the Gaussian's curve at rho = 2.63, and all of it."""
    mu, delta = math.sqrt(5.26), float(point["delta"])
    one = loss.approximate_power(loss.gaussian_epsilon(mu, delta), delta)
    lines = named(level_power_picture({"one point": one, "all points": loss.GaussianCurve(mu)}))
    for level, power in zip(TRADEOFFS["single_point"]["levels"], point["powers"], strict=True):
        assert at(lines["one point"], float(level)) == pytest.approx(float(power), abs=6e-7)
        assert at(lines["all points"], float(level)) < 0.85


def test_the_worlds_told_apart_are_in_the_caption():
    usual = level_power_picture({"pure": PURE}, caption="And more.")
    assert "one person's record as it was collected, or any other record in its place" in usual.caption
    assert usual.caption.endswith("blind guess. And more.")
    assert "Told apart are Ann and Bob." in level_power_picture({"pure": PURE}, worlds="Ann and Bob").caption


def test_dashed_lines_are_those_named():
    picture = level_power_picture({"one": PURE, "two": loss.pure_power(2)}, dashed=["two"])
    assert [line.dashed for line in picture.lines] == [False, True]
    with pytest.raises(LossError, match="no line 'three'"):
        level_power_picture({"one": PURE}, dashed=["three"])
    with pytest.raises(LossError, match="curves is empty"):
        level_power_picture({})


# -- epsilon and delta ---------------------------------------------------------------------------------------


@given(rhos)
@settings(max_examples=30, deadline=None)
def test_deltas_fall_and_keep_their_order(rho):
    """approximate <= tail <= pbdp <= the bound from zCDP, at every epsilon where all are drawn."""
    picture = epsilon_delta_picture(gaussian_deltas(rho=rho), kinks=(rho,))
    drawn = [dict(zip(line.x, line.y, strict=True)) for line in picture.lines]
    for line in picture.lines:
        assert all(high >= low for high, low in itertools.pairwise(line.y))
        assert min(line.y) >= 1e-10
        assert max(line.y) <= 1
    for lower, upper in itertools.pairwise(drawn):
        assert lower.keys() <= upper.keys()
        assert all(lower[epsilon] <= upper[epsilon] for epsilon in lower)
        assert any(lower[epsilon] < 0.99 * upper[epsilon] for epsilon in lower)
    assert rho in drawn[-1]


@given(rhos)
@settings(max_examples=20, deadline=None)
def test_epsilons_are_round_and_reach_down_to_the_smallest_delta(rho):
    picture = epsilon_delta_picture(gaussian_deltas(rho=rho), smallest=1e-6)
    x = picture.lines[-1].x
    assert x[0] == 0
    assert 140 <= len(x) <= 376
    step = Decimal(repr(x[1]))
    assert step.normalize().as_tuple().digits in {(1,), (2, 5), (5,)}
    assert all(Decimal(repr(epsilon)) == k * step for k, epsilon in enumerate(x))
    # The last one drawn is the last step before the bound is below 1e-6.
    end = rho + 2 * math.sqrt(rho * math.log(1e6))
    assert end * 0.98 <= x[-1] <= end * (1 + 1e-12)


def test_mu_is_the_root_of_twice_rho():
    one, other = gaussian_deltas(rho=2.63), gaussian_deltas(mu=math.sqrt(5.26))
    assert [one[name](2) for name in one] == pytest.approx([other[name](2) for name in other], rel=1e-12)
    row = next(row for row in TRADEOFFS["curves"][0]["deltas"] if row["epsilon"] == "5")
    told = [float(row[key]) for key in ("approximate", "tail", "pbdp", "zcdp")]
    assert [delta(5) for delta in one.values()] == pytest.approx(told, abs=6e-9)


def test_a_delta_that_never_falls_is_drawn_as_far_as_the_others():
    picture = epsilon_delta_picture({"catastrophe": lambda epsilon: 0.1, "pbdp": gaussian_deltas(rho=1)["pbdp"]})
    assert max(picture.lines[0].x) == pytest.approx(max(picture.lines[1].x), rel=0.05)
    alone = epsilon_delta_picture({"catastrophe": lambda epsilon: 0.1}).lines[0]
    assert (alone.x[-1], set(alone.y)) == (20, {0.1})


def test_what_each_delta_is_stands_beside_it():
    lines = named(epsilon_delta_picture(gaussian_deltas(rho=1)))
    assert "not the probability" in lines["approximate DP"].words
    assert epsilon_delta_picture({"mine": gaussian_deltas(rho=1)["pbdp"]}).lines[0].words == ""


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gaussian_deltas(), "number of rho and mu is 0"),
        (lambda: gaussian_deltas(rho=1, mu=1), "number of rho and mu is 2"),
        (lambda: gaussian_deltas(rho=-1), "rho is -1"),
        (lambda: gaussian_deltas(mu=-1), "mu is -1"),
        (lambda: epsilon_delta_picture(gaussian_deltas(rho=1), smallest=0), "smallest is 0"),
        (lambda: epsilon_delta_picture(gaussian_deltas(rho=0)), "too small to show"),
        (lambda: epsilon_delta_picture({}), "curves is empty"),
        (lambda: epsilon_delta_picture(gaussian_deltas(rho=1), dashed=["f"]), "no line 'f'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, said):
    with pytest.raises(LossError, match=said):
        make()


# -- beliefs -------------------------------------------------------------------------------------------------


@given(st.integers(2, 40))
@settings(max_examples=20, deadline=None)
def test_theorem_7_1_is_attained_by_randomised_response(odds):
    """The posteriors of one bit after one answer that tells the truth with odds e^epsilon, in exact fractions."""
    high, low = belief_picture([math.log(odds)]).lines
    for k in range(51):
        q = Fraction(k, 50)
        truth, lie = Fraction(odds, odds + 1), Fraction(1, odds + 1)
        after_yes = q * truth / (q * truth + (1 - q) * lie)
        after_no = q * lie / (q * lie + (1 - q) * truth)
        assert at(high, k / 50) == pytest.approx(float(after_yes), abs=1e-12)
        assert at(low, k / 50) == pytest.approx(float(after_no), abs=1e-12)


@given(st.lists(st.floats(0, 30), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_beliefs_lie_around_the_diagonal_and_mirror_each_other(epsilons):
    picture = belief_picture(epsilons)
    for high, low in pairs(picture.lines):
        assert high.name == low.name
        assert all(down <= q + 1e-15 <= up + 2e-15 for q, down, up in zip(PRIORS, low.y, high.y, strict=True))
        # What is least for a record is one minus what is most for all others.
        assert low.y == pytest.approx([1 - up for up in np.interp(1 - np.array(PRIORS), high.x, high.y)], abs=1e-6)
    assert (PRIORS[0], PRIORS[-1]) == (0, 1)


def hull(points: list[list[float]]) -> loss.PowerCurve:
    """The lowest concave curve above all points, of which (0, 0) and (1, 1) are two."""
    corners = np.array([*points, [1.0, 0.0]])
    above = corners[ConvexHull(corners).vertices]
    return loss.PowerCurve(tuple(sorted((x, y) for x, y in above.tolist() if (x, y) != (1, 0))))


@given(
    st.lists(st.lists(st.integers(1, 20), min_size=4, max_size=4), min_size=3, max_size=3),
    st.lists(st.integers(1, 20), min_size=3, max_size=3),
    st.sampled_from([0.4, 0.2, 0.1]),
)
@pytest.mark.repeats
@settings(max_examples=some_or(40, 150), deadline=None)
def test_theorem_7_4_lines_are_crossed_with_at_most_the_probability_named(weights, prior, delta):
    """Three records, four outputs: the odds of the true record against any mixture of the others, by enumeration."""
    laws = np.array(weights, dtype=float)
    laws /= laws.sum(axis=1, keepdims=True)
    curves = [loss.power_curve(laws[i], laws[j]).tolist() for i, j in itertools.permutations(range(3), 2)]
    epsilon = loss.tradeoff_to_pbdp_epsilon(hull([point for curve in curves for point in curve]), delta)
    for true in range(3):
        others = [k for k in range(3) if k != true]
        share = np.array([prior[k] for k in others]) / sum(prior[k] for k in others)
        rest = share @ laws[others]
        ratio = np.log(laws[true] / rest)
        assert laws[true][ratio > epsilon + 1e-9].sum() <= delta + 1e-12
        assert laws[true][ratio < -epsilon - 1e-9].sum() <= math.exp(-epsilon) * delta + 1e-12


@pytest.mark.parametrize("rho", [0.1115, 0.926, 2.63])
def test_likely_beliefs_of_gaussian_noise(rho):
    mu = math.sqrt(2 * rho)
    picture = likely_belief_picture(loss.GaussianCurve(mu), [0.05, 0.01])
    epsilons = []
    for high, low in pairs(picture.lines):
        half = at(high, 0.5)
        epsilons.append(math.log(half / (1 - half)))
        assert at(low, 0.5) == pytest.approx(1 - half)
    for delta, epsilon in zip((0.05, 0.01), epsilons, strict=True):
        # Section 1.9's formula, solved here, and the exact probability of passing it between two records.
        assert epsilon == pytest.approx(math.log(delta / NORMAL.cdf(NORMAL.inv_cdf(delta) - mu)), rel=1e-6)
        assert loss.gaussian_to_tail(mu, epsilon) <= delta
    assert [line.name for line in picture.lines[::2]] == [
        f"epsilon = {rounded_up(epsilon, 4)}, but for a probability of {delta}"
        for delta, epsilon in zip((0.05, 0.01), epsilons, strict=True)
    ]
    assert "each line is crossed with at most the probability named" in picture.caption


def test_a_guarantee_that_may_fail_for_certain_draws_no_belief():
    with pytest.raises(LossError, match="epsilon is inf"):
        likely_belief_picture(loss.PowerCurve(((0, 0.1), (0.9, 1), (1, 1))), [0.05])
    with pytest.raises(LossError, match="epsilon is -1"):
        belief_picture([-1])
    with pytest.raises(LossError, match="lines is empty"):
        belief_picture([])
