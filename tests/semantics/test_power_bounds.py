"""The greatest power of a test under each definition: printed tables, closed forms, and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import strategies
from repeats import some_or
from stirred import loss
from stirred.errors import StirredError
from stirred.lab.reproduce.catalogue import published
from stirred.loss import EpsilonProfile, GaussianCurve, PowerCurve, RenyiCurve, ZcdpCurve, approximate_power, pure_power
from stirred.semantics import GroupCurve, allowed_power, gaussian_curve, loss_power, power, power_bounds
from stirred.spec import (
    FiniteMechanism,
    InputPremetric,
    Kind,
    Multiverse,
    OutputPremetric,
    flavors,
    register,
)
from stirred.spec.blocks import Domain
from stirred.spec.kinds import KINDS
from stirred.spec.order.finite_mechanisms import randomised_response
from stirred.spec.specification import Flavor

LEVELS = np.array([0.0, 1e-6, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0])
LAWS = st.tuples(st.integers(3, 5), st.integers(2, 5)).flatmap(lambda shape: strategies.laws(*shape))
TABLE_1 = {  # section 3.1 of the reference: recomputed upper and lower powers at levels 0.01, 0.05, 0.10
    0.1: ((0.011052, 0.055259, 0.110517), (0.009048, 0.045242, 0.090484)),
    0.5: ((0.016487, 0.082436, 0.164872), (0.006065, 0.030327, 0.060653)),
    1: ((0.027183, 0.135914, 0.271828), (0.003679, 0.018394, 0.036788)),
    2: ((0.073891, 0.369453, 0.738906), (0.001353, 0.006767, 0.013534)),
    4: ((0.545982, 0.982600, 0.983516), (0.000183, 0.000916, 0.001832)),
}


@pytest.mark.parametrize("epsilon", TABLE_1)
def test_table_1_from_a_specification_with_both_sides_of_theorem_6_1(epsilon):
    lower, upper = power(flavors.pure().at(epsilon), (0.01, 0.05, 0.10))
    assert upper == pytest.approx(TABLE_1[epsilon][0], abs=6e-7)
    assert lower == pytest.approx(TABLE_1[epsilon][1], abs=6e-7)


@pytest.mark.parametrize(("rho", "table"), [("2.63", "table-2"), ("0.1115", "table-6")])
def test_the_zcdp_columns_of_tables_2_and_6(rho, table):
    found = allowed_power(flavors.zcdp().at(rho)).power((0.01, 0.05, 0.10))
    printed = [published(f"semantics-paper/{table}/zcdp/{level}") for level in ("0.01", "0.05", "0.10")]
    assert [f"{float(one):.2f}" for one in found] == printed


def test_theorem_6_2_both_sides():
    epsilon, delta = 0.7, 0.02
    lower, upper = power(flavors.approximate(delta).at(epsilon), LEVELS)
    e = math.exp(epsilon)
    assert upper == pytest.approx(np.minimum(1, np.minimum(e * LEVELS + delta, 1 - (1 - LEVELS - delta) / e)))
    expected = np.maximum((LEVELS - delta) / e, 1 - e * (1 - LEVELS) - delta)
    assert lower == pytest.approx(np.maximum(0, expected))


def test_theorem_6_3_is_what_renyi_and_zcdp_allow():
    assert allowed_power(flavors.renyi(3).at(2)) == RenyiCurve(((3, 2),))
    assert allowed_power(flavors.zcdp().at("2.63")) == ZcdpCurve(2.63)


def test_a_trade_off_function_is_its_own_bound():
    curve = GaussianCurve(1.5)
    assert allowed_power(flavors.trade_off().at(curve)) == curve


def test_total_variation_moves_the_power_by_its_amount():
    flavor = flavors.flavor(OutputPremetric("total-variation"))
    lower, upper = power(flavor.at("0.2"), LEVELS)
    assert upper == pytest.approx(np.minimum(1, LEVELS + 0.2))
    assert lower == pytest.approx(np.maximum(0, LEVELS - 0.2))


def test_a_whole_curve_promises_more_than_each_of_its_points():
    # Section 6.12 of the reference: single points of the Gaussian curve at rho = 2.63 are useless, the curve is not.
    mu = math.sqrt(5.26)
    deltas = np.geomspace(1e-12, 0.748, 4000)
    points = tuple((float(d), loss.gaussian_epsilon(mu, float(d))) for d in deltas)
    flavor = flavors.flavor(OutputPremetric("approximate-profile"))
    whole = allowed_power(flavor.at(EpsilonProfile(points))).power((0.01, 0.05, 0.10))
    assert whole == pytest.approx((0.486886, 0.741706, 0.844211), abs=2e-5)
    single = {1e-3: (0.999888, 0.999893, 0.999899), 0.01: (0.999327, 0.999354, 0.999389)}
    for delta, powers in single.items():
        at = flavors.approximate(delta).at(loss.gaussian_epsilon(mu, delta))
        assert allowed_power(at).power((0.01, 0.05, 0.10)) == pytest.approx(powers, abs=2e-6)


# -- distances -----------------------------------------------------------------------------------------------


def test_budgets_grow_with_the_distance_as_their_kind_does():
    assert allowed_power(flavors.pure().at(1), 3) == pure_power(3)
    assert allowed_power(flavors.zcdp().at(1), 3) == ZcdpCurve(9)
    assert allowed_power(flavors.trade_off().at(GaussianCurve(1)), 3) == GaussianCurve(3)
    delta = 0.01 * (1 + math.e + math.e**2)
    assert allowed_power(flavors.approximate("0.01").at(1), 3).power(LEVELS) == pytest.approx(
        approximate_power(3, delta).power(LEVELS)
    )


def test_groups_of_renyi_and_of_any_curve_put_the_curve_after_itself():
    curve = RenyiCurve(((2, 0.5),))
    two = allowed_power(flavors.renyi(2).at("0.5"), 2)
    assert isinstance(two, GroupCurve)
    assert two.power(LEVELS) == pytest.approx(curve.power(curve.power(LEVELS)))
    vertices = PowerCurve(((0, 0), (0.25, 0.75), (1, 1)))
    assert allowed_power(flavors.trade_off().at(vertices), 2).power(0.125) == pytest.approx(vertices.power(0.375))


@pytest.mark.repeats
@settings(max_examples=some_or(25, 80), deadline=None)
@given(LAWS, st.sampled_from([0.0, 0.01, 0.2]))
def test_curves_of_groups_bound_every_chain_of_laws(laws, delta):
    steps = len(laws) - 1
    epsilon = max(loss.approximate(laws[k], laws[k + 1], delta) for k in range(steps))
    renyi = max(loss.renyi(*pair, 2) for k in range(steps) for pair in ((laws[k], laws[k + 1]), (laws[k + 1], laws[k])))
    ends = PowerCurve(tuple(map(tuple, loss.power_curve(laws[0], laws[-1])))).power(LEVELS)
    for specification in (flavors.approximate(delta).at(epsilon + 1e-12), flavors.renyi(2).at(renyi + 1e-12)):
        assert bool(np.all(ends <= np.asarray(allowed_power(specification, steps).power(LEVELS)) + 1e-9))


def test_a_profile_of_a_group_is_not_above_that_of_any_of_its_points():
    profile = EpsilonProfile(((1e-6, 1.0), (1e-3, 0.5), (0.05, 0.1)))
    curve = allowed_power(flavors.flavor(OutputPremetric("approximate-profile")).at(profile), 3)
    points = [approximate_power(*loss.group_approximate(e, d, 3)).power(LEVELS) for d, e in profile.points]
    assert curve.power(LEVELS) == pytest.approx(np.min(points, axis=0))


def test_neighbours_are_not_chained_where_invariants_bar_the_way():
    barred = flavors.given_invariants(flavors.approximate("0.01"), [flavors.Invariant("person", by=("block",))], 1).at(
        1
    )
    assert allowed_power(barred, 1) == approximate_power(1, 0.01)
    with pytest.raises(StirredError, match="path of neighbours"):
        allowed_power(barred, 2)


def test_one_way_distances_and_unknown_kinds_are_refused():
    domain = Domain("two", datasets=("a", "b"))
    one_way = Flavor(domain, Multiverse(), InputPremetric.table({("a", "b"): 1}), OutputPremetric("renyi", 2)).at(1)
    with pytest.raises(StirredError, match="one direction"):
        allowed_power(one_way)
    kind = register(Kind("own-distance", "D_own", "t", "a distance of one's own", divergence=lambda p, q: 0.0))
    try:
        own = flavors.flavor(OutputPremetric("own-distance")).at(1)
        with pytest.raises(StirredError, match="own-distance"):
            allowed_power(own)
    finally:
        KINDS.pop(kind.name)


# -- against mechanisms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
def test_randomised_response_attains_theorem_6_1_at_every_level(epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    law = loss.randomised_response(epsilon)
    for level in (0.001, 0.05, 1 - keep, 0.5, 0.99):
        found = loss_power(law, level)
        bound = float(pure_power(epsilon).power(level))
        assert found.lower <= bound <= found.upper + 1e-12
        assert found.upper - found.lower < 1e-9


@pytest.mark.repeats
@settings(max_examples=some_or(25, 80), deadline=None)
@given(st.integers(2, 6).flatmap(lambda outputs: strategies.laws(2, outputs)))
def test_no_mechanism_has_more_power_than_its_own_loss_allows(laws):
    mechanism = FiniteMechanism(("0", "1"), tuple(map(str, range(laws.shape[1]))), laws)
    premetric = InputPremetric(unit="person")
    actual = PowerCurve(tuple(map(tuple, loss.power_curve(laws[0], laws[1]))))
    for output in (
        OutputPremetric(),
        OutputPremetric("approximate", "0.05"),
        OutputPremetric("normalised-renyi"),
        OutputPremetric("renyi", 2),
        OutputPremetric("total-variation"),
    ):
        flavor = Flavor(Domain("one", free=True), Multiverse(), premetric, output)
        found = mechanism.loss(flavor, {"0": "0", "1": "1"})
        lower, upper = power(flavor.at(found.number * (1 + 1e-12)), LEVELS)
        assert bool(np.all(actual.power(LEVELS) <= upper + 1e-9)), output
        # The worst test of a level is the best one of the other side turned round.
        assert bool(np.all(1 - actual.power(1 - LEVELS) >= lower - 1e-9)), output


def test_loss_distributions_have_powers_known_between_two_numbers():
    composed = loss.compose([(loss.gaussian(1), 4)])
    lower, upper = power_bounds(composed, [0.01, 0.05])
    expected = norm.cdf(2 + norm.ppf([0.01, 0.05]))
    assert upper == pytest.approx(expected, abs=1e-6)
    assert bool(np.all(upper >= expected - 1e-12))
    assert lower == pytest.approx(1 - norm.cdf(2 + norm.ppf([0.99, 0.95])), abs=1e-6)
    alone = power_bounds(loss.gaussian(0.25), [0.01, 0.05])
    assert alone[1] == pytest.approx(expected, abs=1e-6)


def test_gaussian_power_is_that_of_one_sample_of_variance_one_over_two_rho():
    # Section 8.3: telling N(0, 1/(2 rho)) from N(1, 1/(2 rho)).
    rho, deviation = Fraction("2.63"), (2 * 2.63) ** -0.5
    cut = norm.isf((0.01, 0.05, 0.10), scale=deviation)
    assert gaussian_curve(rho).power((0.01, 0.05, 0.10)) == pytest.approx(norm.sf(cut, loc=1, scale=deviation))


# -- shapes --------------------------------------------------------------------------------------------------

BUDGETS = {
    "pure": lambda b: flavors.pure().at(b),
    "approximate": lambda b: flavors.approximate("0.001").at(b),
    "zcdp": lambda b: flavors.zcdp().at(b),
    "renyi": lambda b: flavors.renyi(4).at(b),
    "gaussian": lambda b: flavors.trade_off().at(GaussianCurve(float(b))),
}


@pytest.mark.parametrize("name", BUDGETS)
@settings(max_examples=25, deadline=None)
@given(budget=st.floats(0.01, 6), more=st.floats(0.01, 2), distance=st.integers(1, 3))
def test_curves_are_monotone_ordered_concave_and_symmetric(name, budget, more, distance):
    grid = np.linspace(0, 1, 41)
    curve = allowed_power(BUDGETS[name](round(budget, 6)), distance)
    values = np.asarray(curve.power(grid))
    assert bool(np.all(np.diff(values) >= -1e-12)) and bool(np.all(values >= grid - 1e-12))  # Theorem 6.4
    assert bool(np.all(np.diff(values, 2) <= 1e-9))
    larger = np.asarray(allowed_power(BUDGETS[name](round(budget + more, 6)), distance).power(grid))
    further = np.asarray(allowed_power(BUDGETS[name](round(budget, 6)), distance + 1).power(grid))
    assert bool(np.all(values <= larger + 1e-9)) and bool(np.all(values <= further + 1e-9))
    # Both directions are bound alike: the type II error is its own inverse.
    inside = grid[(values < 1 - 1e-9) & (grid > 0)]
    back = 1 - np.asarray(curve.power(1 - np.asarray(curve.power(inside))))
    assert back == pytest.approx(inside, abs=1e-6)


def test_randomised_response_twice_is_bounded_by_its_own_composition():
    both = randomised_response("1/4", respondents=2)
    actual = PowerCurve(tuple(map(tuple, loss.power_curve(both.rows[0], both.rows[3]))))
    allowed = allowed_power(flavors.local().at(math.log(3)), 2)
    assert bool(np.all(actual.power(LEVELS) <= allowed.power(LEVELS) + 1e-12))
    assert actual.power(1 / 16) == pytest.approx(float(allowed.power(1 / 16)))
