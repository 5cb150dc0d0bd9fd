"""Composed losses beside numbers found elsewhere: the 2020 redistricting data, and the answers of other libraries.

Answers of peers are recorded by ``tests/golden/record_peers.py``, with the versions that gave them.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.loss import (
    compose,
    discrete_gaussian,
    finite_loss,
    gaussian,
    geometric,
    laplace,
    randomised_response,
)
from stirred.spec.known_deployments.allocations import allocation

GOLDEN = Path(__file__).parents[1] / "golden"
CENSUS = json.loads((GOLDEN / "accounting.json").read_text(encoding="utf-8"))


# -- the 2020 redistricting data -----------------------------------------------------------------------------


def redistricting(levels=None):
    """The coordinates of the 2020 redistricting data, as variances and counts: a person moves two cells of a query."""
    told = allocation("pl94-2020")
    for level, query in told.cells():
        if levels is None or level in levels:
            yield told.variance(level, query, rounded=True), 2


def test_142_coordinates_of_the_2020_redistricting_data_to_five_digits():
    parts = list(redistricting())
    assert sum(count for _, count in parts) == 142
    assert sum(count / (2 * variance) for variance, count in parts) == Fraction(263, 100)
    composed = compose([(discrete_gaussian(variance), count) for variance, count in parts])
    low, high = composed.epsilon(1e-10)
    assert high - low <= 1e-4
    assert (low, high) == pytest.approx((16.74195, 16.74198), abs=2e-5)
    for level, power in zip(CENSUS["power"]["levels"], CENSUS["power"]["redistricting"], strict=True):
        low, high = composed.power(level)
        assert high - low <= 4e-6
        assert (low, high) == pytest.approx((power, power), abs=2e-5)


def test_moves_within_a_block_group():
    composed = compose([(discrete_gaussian(variance), count) for variance, count in redistricting(["block"])])
    for level, power in zip(CENSUS["power"]["levels"], CENSUS["power"]["block within block group"], strict=True):
        assert composed.power(level) == pytest.approx((power, power), abs=2e-5)


# -- peers ---------------------------------------------------------------------------------------------------


def asked_of_peers(name):
    return json.loads((GOLDEN / "peers" / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def loss_of(part):
    if part["kind"] == "gaussian":
        return gaussian(part["sigma"] ** 2, part["shift"])
    if part["kind"] == "discrete gaussian":
        return discrete_gaussian(Fraction(str(part["sigma"])) ** 2, part["shift"])
    if part["kind"] == "laplace":
        return laplace(part["scale"])
    if part["kind"] == "geometric":
        return geometric(part["epsilon"], part["shift"])
    if part["kind"] == "randomised response":
        return randomised_response(part["epsilon"], part["choices"])
    return finite_loss(part["p"], part["q"])


@pytest.mark.parametrize("fifth", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 5))])
def test_dp_accounting_agrees_and_its_estimates_are_no_tighter(fifth):
    # Its transforms have errors of some 1e-15 that its estimates do not allow for.
    for case in asked_of_peers("dp-accounting")[fifth::5]:
        composed = compose([(loss_of(part), part["count"]) for part in case["parts"]])
        for epsilon, below, above in zip(case["epsilons"], case["lower deltas"], case["upper deltas"], strict=True):
            low, high = composed.delta(epsilon)
            assert low <= above + 1e-13 and below <= high + 1e-13
            assert below <= low + 1e-13 and high <= above * (1 + 1e-5) + 1e-13
        for delta, below, above in zip(case["deltas"], case["lower epsilons"], case["upper epsilons"], strict=True):
            low, high = composed.epsilon(delta)
            assert low <= above * (1 + 1e-6) and below <= high * (1 + 1e-6)
            assert high - low <= 1e-4 * high + 1e-7


def test_riskcal_agrees():
    for case in asked_of_peers("riskcal"):
        composed = compose([(loss_of(part), part["count"]) for part in case["parts"]])
        # Its errors are meant to be too small, coming from upper estimates with a step of 1e-4. They exceed even the
        # closed form of one Gaussian by some 1e-7; and where losses have atoms it does not randomise, and is far off.
        for level, error in zip(case["levels"], case["errors"], strict=True):
            low, high = composed.type_two_error(level)
            assert error <= high + 1e-6
            if any(part["kind"] == "gaussian" for part in case["parts"]):
                assert error == pytest.approx(low, abs=1e-2)
