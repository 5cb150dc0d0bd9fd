"""The referee of composed privacy losses: bounds beside exact sums over all outcomes, closed forms, and peers.

What may be composed here is any number of mechanisms with finitely many losses (enumerated in extended precision), one
Gaussian beside them (a mixture of closed forms), and Laplace noise of one scale beside them (its loss, weighted with
e^(-L/2), is two equal atoms and a uniform piece between them, so that sums are mixtures of sums of uniforms).
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf
from numpy.polynomial.legendre import leggauss
from referee_harness import Case, claim
from referee_numbers import floats, gaussian_delta, random_pair

from stirred import loss

Real = np.longdouble
ROUNDING = 4e-16
"""Relative: the sums here are known to some 1e-17, and the last addition of a bound is rounded to the nearest float."""

TAILS = 1e-45
"""The mass of discrete Gaussians that enumerations leave out."""


class Losses:
    """Losses and their probabilities under P, merged where they are equal, and the mass at infinity."""

    def __init__(self, losses: Any, masses: Any, infinite: float = 0.0) -> None:
        self.losses, self.masses, self.infinite = np.asarray(losses, Real), np.asarray(masses, Real), Real(infinite)

    def and_then(self, other: Losses) -> Losses:
        losses = np.add.outer(self.losses, other.losses).ravel()
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        if not len(losses):
            return Losses([], [], infinite)
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        order = np.argsort(losses, kind="stable")
        losses, masses = losses[order], masses[order]
        apart = np.append(True, np.diff(losses) > 1e-16 * (1 + np.abs(losses[1:])))
        starts = np.flatnonzero(apart)
        return Losses(losses[starts], np.add.reduceat(masses, starts), infinite)

    def times(self, count: int) -> Losses:
        found = self
        for _ in range(count - 1):
            found = found.and_then(self)
        return found

    def delta(self, epsilon: float) -> Real:
        above = self.losses > epsilon
        return self.infinite + np.sum(self.masses[above] * -np.expm1(Real(epsilon) - self.losses[above]))

    def power(self, level: float, other: Losses) -> Real:
        """The greatest power of tests of P against Q: the least over k of k level + sum (q - k p)_+, by losses of Q.

        ``other`` has the losses ln q/p and their masses under Q.
        """
        order = np.argsort(-other.losses)
        losses, masses = other.losses[order], other.masses[order]
        # At the slope k = q/p of each output, those of larger ratios are rejected; its own adds nothing.
        rejected = np.cumsum(masses) - np.exp(losses) * np.cumsum(masses * np.exp(-losses))
        least = np.min(np.exp(losses) * Real(level) + np.maximum(rejected, 0), initial=Real(1) - other.infinite)
        return min(Real(1), least + other.infinite)


def part(case: Case, k: int, kinds: str) -> tuple[loss.LossDistribution, Losses, Losses]:
    """One mechanism as stirred has it, and its losses both ways."""
    kind = case.pick(f"kind {k}", kinds.split())
    if kind == "response":
        epsilon, choices = case.size(f"epsilon {k}", 0.01, 5), case.whole(f"choices {k}", 2, 9)
        e = Real(str(epsilon))
        masses = np.array([np.exp(-e), (choices - 2) * np.exp(-e), Real(1)]) / (1 + (choices - 1) * np.exp(-e))
        one = Losses([-e, 0, e], masses)
        return loss.randomised_response(epsilon, choices), one, one
    if kind == "geometric":
        epsilon, shift = case.size(f"epsilon {k}", 0.01, 3), case.whole(f"shift {k}", 1, 4)
        e = Real(str(epsilon))
        a = np.exp(-e)
        k_inside = np.arange(1, shift)  # outputs between the two counts; those beyond have the losses at the ends
        masses = [a**shift / (1 + a), *(a**k_inside * (1 - a) / (1 + a)), Real(1) / (1 + a)]
        losses = [-shift * e, *(shift * e - 2 * k_inside * e), shift * e]
        one = Losses(losses, masses)
        return loss.geometric(epsilon, shift), one, one
    if kind == "approximate":
        epsilon, delta = case.size(f"epsilon {k}", 0.01, 3), case.size(f"delta {k}", 1e-9, 0.1)
        e, d = Real(str(epsilon)), Real(delta)
        one = Losses([-e, e], [(1 - d) / (1 + np.exp(e)), (1 - d) / (1 + np.exp(-e))], d)
        return loss.approximate_loss(epsilon, delta), one, one
    if kind == "discrete":
        variance, shift = case.size(f"variance {k}", 0.2, 6), case.whole(f"shift {k}", 1, 3)
        v = Real(str(variance))
        reach = math.ceil(math.sqrt(2 * 105 * variance)) + shift
        outputs = np.arange(-reach, reach + 1).astype(Real)
        weights = np.exp(-outputs * outputs / (2 * v))
        one = Losses((shift * shift - 2 * shift * outputs) / (2 * v), weights / np.sum(weights))
        return loss.discrete_gaussian(variance, shift), one, one
    p, q = random_pair(case.random, case.whole(f"outputs {k}", 2, 4), zeros=bool(case.random.integers(2)))
    case.say(**{f"p {k}": floats(p), f"q {k}": floats(q)})
    return loss.finite_loss(floats(p), floats(q)), listed(p, q), listed(q, p)


def listed(p: list[Fraction], q: list[Fraction]) -> Losses:
    both = [(Real(float(a)), Real(float(b))) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]
    alone = sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0))
    return Losses([np.log1p((a - b) / b) for a, b in both], [a for a, _ in both], float(alone))


def drawn(case: Case, kinds: str, parts: int, most: int) -> tuple[list[Any], Losses, Losses]:
    """Parts with counts, and the losses of all of them together both ways; as many outcomes as ``most``."""
    found: list[Any] = []
    forth = back = Losses([0], [1])
    for k in range(case.whole("parts", 1, parts)):
        one, first, second = part(case, k, kinds)
        count = case.pick(f"count {k}", (1, 1, 2, 3, 5, 8))
        ahead, behind = first.times(count), second.times(count)
        if len(forth.losses) * len(ahead.losses) > most:
            continue
        found.append((one, count))
        forth, back = forth.and_then(ahead), back.and_then(behind)
    if not found:
        one, forth, back = part(case, 99, "response")
        found = [(one, 1)]
    return found, forth, back


def places(case: Case, losses: np.ndarray) -> list[float]:
    """Epsilons to ask at: anywhere, at losses, and next to the largest."""
    top = float(np.max(losses)) if len(losses) else 1.0
    top = max(top, 0.01)
    atoms = [float(abs(one)) for one in case.random.choice(losses, 3)] if len(losses) else []
    return [
        0.0,
        *(float(one) * top for one in case.random.random(4)),
        *atoms,
        top * (1 - 1e-6),
        top * 0.999,
        top * 1.001,
    ]


def about(epsilon: float) -> tuple[float, float]:
    """Epsilons next to one: it is a float, as the losses it is compared with are, each off by half a unit or so."""
    return epsilon * (1 + 1e-15), epsilon * (1 - 1e-15)


# -- enumerated ----------------------------------------------------------------------------------------------


@claim("loss", cases=400)
def composed_losses(case: Case) -> None:
    parts, forth, back = drawn(case, "response geometric approximate finite finite discrete", 3, 40_000)
    grid = case.pick("grid", (None, None, None, 0.01, 0.1))
    found = loss.compose(parts, grid=grid) if grid else loss.compose(parts)
    for epsilon in places(case, forth.losses):
        low, high = found.delta(epsilon)
        after, before = (max(forth.delta(at), back.delta(at)) for at in about(epsilon))
        case.at_most(low, before, f"lower delta at {epsilon}", relative=ROUNDING, absolute=TAILS)
        case.at_most(after, high, f"upper delta at {epsilon}", relative=ROUNDING, absolute=TAILS)
    for delta in (1e-12, 1e-6, 1e-3, *case.random.random(3) ** 2):
        low, high = found.epsilon(float(delta))
        # At the upper epsilon the true delta is small enough; below the lower one it is not.
        if high < math.inf:
            after, _ = about(high)
            truth = max(forth.delta(after), back.delta(after))
            case.at_most(truth, delta, f"delta at the upper epsilon of {delta}", relative=ROUNDING)
        if 0 < low < math.inf:
            before = low * (1 - 1e-12)
            truth = max(forth.delta(before), back.delta(before))
            case.at_most(delta, truth, f"delta below the lower epsilon of {delta}", relative=ROUNDING)
        if low == math.inf:
            case.at_most(delta, max(forth.infinite, back.infinite), "infinite losses", relative=ROUNDING)
    for level in case.random.random(2) ** 3:
        low, high = found.power(float(level))
        truth = forth.power(float(level), back)
        case.within(low, truth, high, f"power at {level}", relative=4e-15)  # bounds between vertices are rounded


@claim("loss", cases=120)
def composed_bounds_agree_with_each_other(case: Case) -> None:
    kinds = {
        "gaussian": lambda: loss.gaussian(case.size("variance", 0.05, 90)),
        "laplace": lambda: loss.laplace(case.size("scale", 0.3, 20)),
        "response": lambda: loss.randomised_response(case.size("epsilon", 0.05, 4), case.whole("choices", 2, 11)),
        "discrete": lambda: loss.discrete_gaussian(case.size("discrete variance", 0.3, 10)),
        "finite": lambda: loss.finite_loss(*map(floats, random_pair(case.random, 4))),
    }
    parts = []
    for k in range(case.whole("parts", 1, 3)):
        parts.append((kinds[case.pick(f"kind {k}", kinds)](), case.pick(f"count {k}", (1, 2, 5, 15))))
    found = loss.compose(parts)
    deltas = sorted(float(10.0**one) for one in case.random.uniform(-14, -0.1, 6))
    epsilons = [found.epsilon(delta) for delta in deltas]
    for side in (0, 1):
        told = [one[side] for one in epsilons]
        case.holds(told == sorted(told, reverse=True), f"epsilons fall with delta: {told}")
    finite = sorted({one for two in epsilons for one in two if one < math.inf} | {0.0})
    deltas_there = [found.delta(one) for one in finite]
    for side in (0, 1):
        told = [one[side] for one in deltas_there]
        case.holds(told == sorted(told, reverse=True), f"deltas fall with epsilon: {told}")
    for delta, (low, high) in zip(deltas, epsilons, strict=True):
        if high < math.inf:
            case.at_most(found.delta(high).upper, delta, "delta of the upper epsilon")
        if 0 < low < math.inf:
            case.at_most(delta, found.delta(low).lower, "delta of the lower epsilon")
    levels = sorted(case.random.random(5) ** 3)
    powers = [found.power(float(one)) for one in levels]
    for side in (0, 1):
        told = [one[side] for one in powers]
        case.holds(told == sorted(told), f"powers rise with the level: {told}")


# -- with a Gaussian or with Laplace noise -------------------------------------------------------------------


@claim("loss", cases=100)
def composed_with_a_gaussian(case: Case) -> None:
    parts, forth, back = drawn(case, "response geometric approximate finite", 2, 8)
    mu, count = case.size("mu", 0.02, 5), case.pick("gaussians", (1, 2, 7))
    found = loss.compose([*parts, (loss.gaussian(1 / mu**2), count)])
    together = mp.sqrt(count) / mp.sqrt(mpf(1 / mu**2))

    def delta(one: Losses, epsilon: float) -> mpf:
        total = mpf(float(one.infinite))
        for at, mass in zip(one.losses, one.masses, strict=True):
            e = mpf(epsilon) - exact(at)
            # Below 0 as well: 1 - e^e + delta at -e, of the same symmetric law.
            value = gaussian_delta(together, e) if e >= 0 else 1 - mp.exp(e) + mp.exp(e) * gaussian_delta(together, -e)
            total += exact(mass) * value
        return total

    for epsilon in (float(one) * (float(max(forth.losses, default=0)) + 4 * mu) for one in (0, *case.random.random(4))):
        at = max(epsilon, 0.0)
        truth = delta(forth, at) if forth is back else max(delta(forth, at), delta(back, at))
        # Atoms and the Gaussian's mu here are rounded in their 16th or 19th digit, which moves delta by as much.
        case.within(
            found.delta(at).lower, truth, found.delta(at).upper, f"delta at {at}", relative=1e-14, absolute=1e-30
        )


def exact(value: Any) -> mpf:
    """An extended float as it is."""
    high = float(value)
    return mpf(high) + mpf(float(value - Real(high)))


@cache
def nodes(count: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre in extended precision: those of numpy, refined by Newton's method."""
    x = leggauss(count)[0].astype(Real)
    for _ in range(3):
        before, now = np.ones_like(x), x
        for k in range(2, count + 1):
            before, now = now, ((2 * k - 1) * x * now - (k - 1) * before) / k
        slope = count * (x * now - before) / (x * x - 1)
        x = x - now / slope
    return x, 2 / ((1 - x * x) * slope * slope)


def uniforms(count: int, s: Real, x: np.ndarray) -> np.ndarray:
    """The density at x of a sum of ``count`` uniform numbers between -s and s."""
    powers = [
        (-1) ** i * math.comb(count, i) * np.maximum(x + count * s - 2 * s * i, 0) ** (count - 1) for i in range(count)
    ]
    return np.asarray(np.sum(powers, axis=0) / ((2 * s) ** count * math.factorial(count - 1)))


def laplace_delta(count: int, s: Real, epsilon: Real) -> Real:
    """E (1 - e^(epsilon - L))_+ of ``count`` Laplace mechanisms, L the sum of their losses, each at most s."""
    total = Real(0)
    for smooth in range(count + 1):
        for plus in range(count - smooth + 1):
            minus = count - smooth - plus
            ways = math.factorial(count) // (math.factorial(smooth) * math.factorial(plus) * math.factorial(minus))
            weight = ways * Real(0.5) ** (plus + minus) * (s / 2) ** smooth * np.exp(-count * s / 2)
            start = (plus - minus) * s
            if smooth == 0:
                if start > epsilon:
                    total += weight * np.exp(start / 2) * -np.expm1(epsilon - start)
                continue
            knots = sorted({max(start + (2 * i - smooth) * s, epsilon) for i in range(smooth + 1)})
            for left, right in itertools.pairwise(knots):
                x, w = nodes()
                at = (left + right) / 2 + (right - left) / 2 * x
                gain = np.exp(at / 2) * -np.expm1(epsilon - at)
                total += weight * (right - left) / 2 * np.sum(w * uniforms(smooth, s, at - start) * gain)
    return total


@claim("loss", cases=120)
def composed_laplace(case: Case) -> None:
    count, scale = case.whole("count", 1, 3), case.size("scale", 0.3, 8)
    s = 1 / Real(scale)
    response = case.pick("response", (None, 0.3, 1.7))
    parts = [(loss.laplace(scale), count)]
    beside = [(Real(0), Real(1))]
    if response:
        parts.append((loss.randomised_response(response, 3), 1))
        e = Real(str(response))
        beside = [(-e, 1 / (np.exp(e) + 2)), (Real(0), 1 / (np.exp(e) + 2)), (e, 1 / (1 + 2 * np.exp(-e)))]
    found = loss.compose(parts)
    top = count / scale + (response or 0)
    for epsilon in (0.0, top * 0.9995, top * (1 - 1e-7), *(float(one) * top for one in case.random.random(3))):
        truths = [sum(mass * laplace_delta(count, s, Real(e) - at) for at, mass in beside) for e in about(epsilon)]
        low, high = found.delta(epsilon)
        case.at_most(low, truths[1], f"lower delta at {epsilon}", relative=ROUNDING, absolute=1e-19)
        case.at_most(truths[0], high, f"upper delta at {epsilon}", relative=ROUNDING, absolute=1e-19)


# -- peers ---------------------------------------------------------------------------------------------------

PEERS = Path(__file__).parents[1] / "golden" / "peers"


@cache
def recorded(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((PEERS / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return found


def asked_of_a_peer(told: dict[str, Any]) -> Any:
    kind = told["kind"]
    if kind == "gaussian":
        return loss.gaussian(told["sigma"] ** 2, told["shift"])
    if kind == "discrete gaussian":
        return loss.discrete_gaussian(Fraction(str(told["sigma"])) ** 2, told["shift"])
    if kind == "laplace":
        return loss.laplace(told["scale"])
    if kind == "geometric":
        return loss.geometric(told["epsilon"], told["shift"])
    if kind == "randomised response":
        return loss.randomised_response(told["epsilon"], told["choices"])
    return loss.finite_loss(told["p"], told["q"])


@claim("loss", cases=80)
def what_dp_accounting_answered(case: Case) -> None:
    told = recorded("dp-accounting")[case.number % len(recorded("dp-accounting"))]
    case.say(parts=told["parts"])
    found = loss.compose([(asked_of_a_peer(one), one["count"]) for one in told["parts"]])
    # The peer's transforms have errors of some 1e-15 that its two estimates do not allow for.
    for epsilon, below, above in zip(told["epsilons"], told["lower deltas"], told["upper deltas"], strict=True):
        low, high = found.delta(epsilon)
        case.at_most(low, above, f"delta at {epsilon} and the peer's upper one", absolute=1e-13)
        case.at_most(below, high, f"the peer's lower delta at {epsilon}", absolute=1e-13)
    for delta, below, above in zip(told["deltas"], told["lower epsilons"], told["upper epsilons"], strict=True):
        low, high = found.epsilon(delta)
        case.at_most(low, above, f"epsilon at {delta} and the peer's upper one", relative=1e-6)
        case.at_most(below, high, f"the peer's lower epsilon at {delta}", relative=1e-6)


@claim("loss", cases=20)
def what_riskcal_answered(case: Case) -> None:
    told = recorded("riskcal")[case.number % len(recorded("riskcal"))]
    case.say(parts=told["parts"])
    found = loss.compose([(asked_of_a_peer(one), one["count"]) for one in told["parts"]])
    for level, error in zip(told["levels"], told["errors"], strict=True):
        # Its errors come from upper estimates and are too small, but for some 1e-7 of its own rounding.
        case.at_most(error, found.type_two_error(level).upper, f"type II error at {level}", absolute=1e-6)


CLAIMS = (
    composed_losses,
    composed_bounds_agree_with_each_other,
    composed_with_a_gaussian,
    composed_laplace,
    what_dp_accounting_answered,
    what_riskcal_answered,
)
