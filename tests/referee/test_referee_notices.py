"""Every room's referee notices when its room is wrong: an answer is spoilt a little, and some case must be violated."""

from __future__ import annotations

from types import SimpleNamespace

import estimates_referee
import invariants_referee
import limits_referee
import loss_referee
import noise_referee
import pytest
import semantics_referee
import spec_referee
import swap_referee
import topdown_referee
from composition_referee import composed_losses
from referee_harness import ROOMS, SEED, judge

from stirred import limits, loss, semantics
from stirred.loss.distributions.composition import Bounds, ComposedLoss
from stirred.noise.fixed_point import exp_bounds
from stirred.spec import Invariant, Specification
from stirred.swap.law import theorem

PURE, POSTERIOR, DISTANCE, EPSILON = (
    loss.pure_to_zcdp,
    semantics.highest_posterior,
    limits.multiplicative_distance,
    theorem.epsilon,
)
DELTA, REACH, SPECIFY = ComposedLoss.delta, estimates_referee.reach, topdown_referee.specify


def shifted(x, bits):
    low, high = exp_bounds(x, bits)
    return low + 3, high + 3


def lowered(self, epsilon):
    low, high = DELTA(self, epsilon)
    return Bounds(low, high * (1 - 1e-6))


def halved(plan):
    return SimpleNamespace(budget=SimpleNamespace(number=SPECIFY(plan).budget.number / 2))


SPOILT = [
    (loss, "pure_to_zcdp", lambda epsilon: PURE(epsilon) * (1 - 1e-12), loss_referee.from_pure),
    (ComposedLoss, "delta", lowered, composed_losses),
    (noise_referee, "exp_bounds", shifted, noise_referee.exponentials),
    (Specification, "implies", lambda self, other: True, spec_referee.implications),
    (Invariant, "implies", lambda self, other, nesting=(): True, invariants_referee.implications),
    (semantics, "highest_posterior", lambda q, e: POSTERIOR(q, 0.9 * e), semantics_referee.bounds_on_beliefs),
    (limits, "multiplicative_distance", lambda p, q: DISTANCE(p, q) * (1 + 1e-9), limits_referee.distances),
    (theorem, "epsilon", lambda b, rate: EPSILON(b, rate) * (1 - 1e-9), swap_referee.epsilons_and_rates),
    (theorem, "epsilon", lambda b, rate: EPSILON(b, rate) * 0.8, swap_referee.guarantees),
    (topdown_referee, "specify", halved, topdown_referee.what_is_spent),
    (estimates_referee, "reach", lambda *given: max(0, REACH(*given) - 1), estimates_referee.exact_intervals),
]


@pytest.mark.parametrize(("where", "name", "wrong", "claim"), SPOILT, ids=[one[3].key for one in SPOILT])
def test_a_wrong_answer_is_noticed(monkeypatch, where, name, wrong, claim):
    monkeypatch.setattr(where, name, wrong)
    outcome = judge(claim, SEED, range(30))
    assert outcome.violations and not any("Error:" in said for said in outcome.violations), outcome.violations


def test_every_room_is_tried():
    assert {one[3].room for one in SPOILT} == set(ROOMS)
