"""Trade-off functions: published tables, exact arithmetic, attainment, another library, and the rules between them."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import LossError
from stirred.lab.reproduce.catalogue import items
from stirred.loss import (
    EpsilonProfile,
    GaussianCurve,
    PowerCurve,
    RenyiCurve,
    ZcdpCurve,
    approximate_power,
    composed_power_curve,
    gaussian_epsilon,
    level_at_power,
    normalised_renyi,
    profile_power_curve,
    pure_power,
    renyi,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "tradeoffs.json").read_text(encoding="utf-8"))
RISKCAL = json.loads(
    (Path(__file__).parents[1] / "golden" / "peers" / "riskcal_tradeoffs.json").read_text(encoding="utf-8")
)
ORDERS = 1 + np.logspace(-4, 5, 4001)
LEVELS = np.linspace(0, 1, 201)

rhos = st.floats(-6, 1).map(lambda power: 10**power)
levels = st.floats(1e-6, 1 - 1e-6)


def printed(values: list[str]) -> list[float]:
    return [float(value) for value in values]


# -- the published tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "leasts"), GOLDEN["table_1_least"]["rows"].items())
def test_table_1_is_reproduced_but_for_its_three_errata(row, leasts):
    wrong = {("0.05", "0.5"), ("0.01", "4"), ("0.05", "2")}
    level = float(row)
    for epsilon, least in zip(GOLDEN["table_1_least"]["epsilons"], leasts, strict=True):
        item, curve = items()[f"semantics-paper/table-1/{row}/{epsilon}"], pure_power(float(epsilon))
        assert float(curve.power(level)) == pytest.approx(float(item.further), abs=5.1e-7)
        assert float(curve.type_two_error(1 - level)) == pytest.approx(float(least), abs=5.1e-7)
        assert (abs(float(item.published) - float(item.further)) > 5.1e-4) == ((row, epsilon) in wrong)
        assert bool(item.erratum) == ((row, epsilon) in wrong)
        assert float(curve.power(level)) == pytest.approx(float(item.corrected or item.published), abs=5.1e-4)


@pytest.mark.parametrize(("table", "rho"), [("table-2", "2.63"), ("table-6", "0.1115")])
def test_tables_2_and_6_are_reproduced(table, rho):
    levels = GOLDEN["zcdp_grid"]["levels"]
    at = printed(levels)
    gaussian, zcdp = GaussianCurve(math.sqrt(2 * float(rho))).power(at), ZcdpCurve(float(rho)).power(at)
    for column, found in (("gaussian", gaussian), ("zcdp", zcdp)):
        cells = [items()[f"semantics-paper/{table}/{column}/{level}"] for level in levels]
        assert found == pytest.approx([float(cell.further) for cell in cells], abs=6e-7)
        assert found == pytest.approx([float(cell.published) for cell in cells], abs=5.1e-3)
    # On the orders of the recomputation it is what that gave, also where order 1 binds and all orders say less.
    grid = RenyiCurve(tuple((order, float(rho) * order) for order in ORDERS)).power(at)
    assert grid == pytest.approx(printed(GOLDEN["zcdp_grid"]["powers"][rho]), abs=1e-6)
    assert np.all(zcdp <= grid)


@pytest.mark.parametrize(("rho", "powers"), GOLDEN["zcdp_other"]["powers"].items())
def test_the_other_scenarios_are_as_tight_as_forty_thousand_orders(rho, powers):
    found = ZcdpCurve(float(rho)).power(printed(GOLDEN["zcdp_other"]["levels"]))
    assert np.all(found <= np.array(printed(powers)) + 6e-7)
    assert found == pytest.approx(printed(powers), abs=1e-5)


def test_one_point_of_the_curve_is_useless_and_the_whole_curve_is_exact():
    mu, at = math.sqrt(2 * 2.63), [0.01, 0.05, 0.1]
    for point in GOLDEN["single_point"]["points"]:
        delta = float(point["delta"])
        single = profile_power_curve(EpsilonProfile(((delta, gaussian_epsilon(mu, delta)),)))
        assert single.power(at) == pytest.approx(printed(point["powers"]), abs=1e-6)
    deltas = np.concatenate([np.logspace(-9, -2, 150), np.linspace(0.0101, 0.75, 1000)])
    whole = profile_power_curve(EpsilonProfile(tuple((d, gaussian_epsilon(mu, d)) for d in deltas)))
    assert whole.power(at) == pytest.approx(GaussianCurve(mu).power(at), abs=1e-6)
    assert np.all(whole.power(LEVELS) >= GaussianCurve(mu).power(LEVELS) - 1e-12)


# -- zCDP ----------------------------------------------------------------------------------------------------


def excess(level: Decimal, power: Decimal, order: float, rho: float) -> Decimal:
    """D_alpha / (alpha rho) - 1 between coins, in the precision of the context."""
    first, second = (power / level).ln(), ((1 - power) / (1 - level)).ln()
    if order == 1:
        return (power * first + (1 - power) * second) / Decimal(rho) - 1
    t = Decimal(order) - 1
    moment = power * (t * first).exp() + (1 - power) * (t * second).exp()
    return moment.ln() / (t * (t + 1) * Decimal(rho)) - 1


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1e-3, 0.1115, 0.926, 2.63, 10, 100])
def test_the_bound_of_zcdp_is_safe_in_exact_arithmetic(rho):
    curve = ZcdpCurve(rho)
    at = [1e-300, 1e-100, 1e-15, 1e-4, *np.linspace(0.004, 0.996, 25), 1 - 1e-6, 1 - 1e-12]
    found = zip(at, curve.power(at), curve.type_two_error(at), curve.order(at), strict=True)
    with localcontext() as context:
        context.prec = 60
        for level, power, error, order in found:
            if level > 1 - power:
                if error < 1e-300:
                    continue
                over = excess(Decimal(float(error)), 1 - Decimal(float(level)), float(order), rho)
                assert 1 - Decimal(float(power)) <= Decimal(float(error))
            else:
                over = excess(Decimal(float(level)), Decimal(float(power)), float(order), rho)
                assert Decimal(float(error)) <= 1 - Decimal(float(power))
            assert over >= 0  # this order forbids the power, so none larger is allowed
            assert over < 1e-10


@given(rhos, levels)
@settings(max_examples=300, deadline=None)
def test_the_bound_of_zcdp_is_attained_by_two_coins(rho, level):
    power, error = float(ZcdpCurve(rho).power(level)), float(ZcdpCurve(rho).type_two_error(level))
    if error < 1e-12:
        return
    # All orders and both directions, by other code.
    assert normalised_renyi([power, error], [level, 1 - level]) ** 2 == pytest.approx(rho, rel=2e-6)


@pytest.mark.parametrize("rho", [1e-4, 0.1115, 0.926, 2.63, 8])
def test_the_curve_of_zcdp_is_concave_symmetric_and_above_that_of_gaussian_noise(rho):
    curve, at = ZcdpCurve(rho), np.linspace(0, 1, 1001)
    powers, errors = curve.power(at), curve.type_two_error(at)
    assert powers[0] == 0
    assert powers[-1] == 1
    assert np.all(np.diff(powers) >= 0)
    assert np.all(np.diff(powers, 2) <= 1e-12)
    assert powers + errors == pytest.approx(np.ones(1001), abs=1e-15)
    # f is its own inverse, where a type II error still names its level.
    inside = errors[1:-1] > 1e-9
    assert curve.type_two_error(errors[1:-1])[inside] == pytest.approx(at[1:-1][inside], rel=1e-6)
    assert np.all(powers[1:-1] >= GaussianCurve(math.sqrt(2 * rho)).power(at[1:-1]))


@given(rhos, st.floats(1, 3), levels)
@settings(deadline=None)
def test_a_larger_rho_allows_more_power(rho, factor, level):
    assert ZcdpCurve(rho * factor).power(level) >= ZcdpCurve(rho).power(level) * (1 - 1e-12)


def test_the_order_that_binds_alone_gives_the_power():
    curve = ZcdpCurve(0.1115)
    for level in (1e-6, 0.01, 0.1, 0.3, 0.6, 0.99):
        order = float(curve.order(level))
        one = RenyiCurve(((order, order * 0.1115),))
        assert float(one.power(level)) == pytest.approx(float(curve.power(level)), rel=1e-9)
        # Of nearby orders none is lower.
        for other in (order * 1.05, 1 + (order - 1) * 0.95):
            assert RenyiCurve(((other, other * 0.1115),)).power(level) > curve.power(level)
    assert curve.order(0.0) == math.inf
    assert ZcdpCurve(2.63).order([0.05, 0.1]).tolist() == [1, 1]


def test_ends_of_the_curve_of_zcdp():
    curve = ZcdpCurve(2.63)
    assert curve.power([0, 1]).tolist() == [0, 1]
    assert curve.type_two_error([0, 1]).tolist() == [1, 0]
    assert curve.power(1e-320) == curve.power(1e-300) > 0
    assert curve.level_at_power([0, 1]).tolist() == [0, 1]
    assert ZcdpCurve(0).power(LEVELS).tolist() == LEVELS.tolist()
    assert ZcdpCurve(math.inf).power([0, 0.5, 1]).tolist() == [1, 1, 1]
    assert ZcdpCurve(math.inf).type_two_error([0, 0.5, 1]).tolist() == [0, 0, 0]
    assert ZcdpCurve(1e4).power(0.5) == 1
    assert curve.power(np.full((2, 3), 0.05)).shape == (2, 3)
    assert curve.power([]).shape == (0,)


# -- Rényi ---------------------------------------------------------------------------------------------------


@given(st.floats(1, 50), st.floats(0.001, 5), levels)
@settings(max_examples=200, deadline=None)
def test_one_rényi_divergence_is_attained_by_two_coins(order, epsilon, level):
    curve = RenyiCurve(((order, epsilon),))
    power, error = float(curve.power(level)), float(curve.type_two_error(level))
    if error < 1e-12:
        return
    larger = max(
        renyi([power, error], [level, 1 - level], order),
        renyi([level, 1 - level], [power, error], order),
    )
    assert larger == pytest.approx(epsilon, rel=1e-7)
    assert power > level


def test_several_orders_are_the_lowest_of_each():
    points = ((1.2, 0.4), (2, 0.5), (8, 1.6), (math.inf, 3))
    found = RenyiCurve(points).power(LEVELS)
    assert found.tolist() == np.min([RenyiCurve((point,)).power(LEVELS) for point in points], axis=0).tolist()
    assert len(set(np.argmin([RenyiCurve((point,)).power(LEVELS) for point in points], axis=0).tolist())) > 2
    errors = RenyiCurve(points).type_two_error(LEVELS)
    assert errors == pytest.approx(1 - found, abs=1e-15)


def test_order_infinity_is_pure_and_no_divergence_is_the_identity():
    assert RenyiCurve(((math.inf, 1.5),)).power(LEVELS) == pytest.approx(pure_power(1.5).power(LEVELS), abs=1e-15)
    assert RenyiCurve(((3, 0),)).power(LEVELS).tolist() == LEVELS.tolist()
    assert RenyiCurve(((3, math.inf),)).power(LEVELS).tolist() == [1] * 201


# -- another library -----------------------------------------------------------------------------------------


def test_riskcal_agrees_on_gaussian_and_approximate():
    at = RISKCAL["levels"]
    for row in RISKCAL["gaussian"]:
        assert GaussianCurve(row["mu"]).type_two_error(at) == pytest.approx(row["errors"], abs=1e-14)
    for row in RISKCAL["approximate"]:
        curve = approximate_power(row["epsilon"], row["delta"])
        assert curve.type_two_error(at) == pytest.approx(row["errors"], abs=1e-14)


def test_riskcal_agrees_on_rényi_to_its_tolerance_of_1e_7():
    for row in RISKCAL["renyi"]:
        ours = RenyiCurve(((row["order"], row["epsilon"]),)).type_two_error(RISKCAL["levels"])
        assert ours == pytest.approx(row["errors"], abs=1.1e-7)
        assert np.all(ours <= row["errors"])  # its search ends on the side that is not allowed


def test_riskcal_agrees_on_zcdp_but_is_looser_and_wrong_where_rho_is_small():
    at = np.array(RISKCAL["levels"])
    for row in RISKCAL["zcdp"]:
        ours, theirs = ZcdpCurve(row["rho"]).type_two_error(at), np.array(row["errors"])
        if row["rho"] > 0.01:
            assert np.all(ours >= theirs - 1e-9)
            assert ours == pytest.approx(theirs, abs=1e-5)
        else:  # it claims that nothing can be gained at some levels, which Gaussian noise of this rho disproves
            gaussian = GaussianCurve(math.sqrt(2 * row["rho"])).type_two_error(at)
            assert np.any(theirs > gaussian + 1e-3)
            assert np.all(ours <= gaussian)


# -- levels at powers ----------------------------------------------------------------------------------------

CURVES = [
    pure_power(1),
    approximate_power(1, 0.1),
    GaussianCurve(1),
    GaussianCurve(0),
    ZcdpCurve(0.5),
    RenyiCurve(((2, 1.0), (8, 1.6))),
    PowerCurve(((0, 0.2), (0.5, 1), (1, 1))),
]


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_level_at_a_power_is_the_smallest_with_that_power(curve):
    powers = np.linspace(0, 1, 101)
    at = level_at_power(curve, powers)
    assert np.all(curve.power(at) >= powers - 1e-9)
    lower = at > 1e-6
    assert np.all(curve.power(at[lower] * (1 - 1e-6)) < powers[lower])


def test_a_tiny_power_keeps_its_digits():
    curve = ZcdpCurve(2.63)
    for power in (1e-10, 1e-100):
        assert float(curve.power(curve.level_at_power(power))) == pytest.approx(power, rel=1e-9)


# -- profiles ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 8)), min_size=1, max_size=6), st.floats(0, 1))
@settings(deadline=None)
def test_the_curve_of_a_profile_is_the_lowest_of_its_points(pairs, level):
    deltas = sorted({delta for delta, _ in pairs})
    epsilons = sorted((epsilon for _, epsilon in pairs[: len(deltas)]), reverse=True)
    profile = EpsilonProfile(tuple(zip(deltas, epsilons, strict=True)))
    lowest = min(float(approximate_power(epsilon, delta).power(level)) for delta, epsilon in profile.points)
    assert float(profile_power_curve(profile).power(level)) == pytest.approx(lowest, abs=1e-12)


def test_points_that_say_nothing_leave_everything_possible():
    assert profile_power_curve(EpsilonProfile(((0.5, math.inf), (1, 0)))).points == ((0, 1), (1, 1))
    assert profile_power_curve(EpsilonProfile(((0, math.inf), (0.25, 0)))) == approximate_power(0, 0.25)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "kind", "words"),
    [
        (lambda: ZcdpCurve(-1), "parameter-out-of-range", "rho is -1."),
        (lambda: ZcdpCurve(math.nan), "parameter-out-of-range", "rho is nan."),
        (lambda: ZcdpCurve(1).power(1.5), "parameter-out-of-range", "level is below 0, above 1 or not a number."),
        (lambda: ZcdpCurve(1).type_two_error([0.5, math.nan]), "parameter-out-of-range", "level is below 0"),
        (lambda: ZcdpCurve(1).level_at_power(-0.1), "parameter-out-of-range", "power is below 0"),
        (lambda: level_at_power(pure_power(1), 2), "parameter-out-of-range", "power is below 0"),
        (lambda: ZcdpCurve(math.inf).order(0.5), "parameter-out-of-range", "rho is inf."),
        (lambda: RenyiCurve(((0.5, 1),)), "parameter-out-of-range", "order is 0.5."),
        (lambda: RenyiCurve(((2, -1),)), "parameter-out-of-range", "epsilon is -1.0."),
        (lambda: RenyiCurve(()), "not-a-curve", "pairs of an order and an epsilon"),
        (lambda: composed_power_curve([]), "nothing-to-compose", "There is no curve to compose."),
        (lambda: composed_power_curve([GaussianCurve(1), pure_power(1)]), "curves-do-not-compose", "kinds differ"),
        (
            lambda: composed_power_curve([RenyiCurve(((2, 1),)), RenyiCurve(((3, 1),))]),
            "curves-do-not-compose",
            "no Rényi order in common",
        ),
    ],
)
def test_bad_input_is_refused(job, kind, words):
    with pytest.raises(LossError) as refusal:
        job()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
