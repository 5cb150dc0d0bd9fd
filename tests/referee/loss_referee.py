"""The referee of ``loss``: divergences, conversions between definitions, curves of tests."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from referee_harness import Case, claim
from referee_numbers import (
    excess,
    floats,
    gaussian_delta,
    multiplicative,
    normal,
    number,
    power,
    product,
    random_laws,
    random_pair,
    renyi,
    renyi_of_coins,
    rho,
    smallest_epsilon,
    variation,
)

from stirred import loss

ORDERS = (1, 1.0001, 1.05, 1.5, 2, 3, 7.5, 40, 1000, math.inf)


def pair(case: Case, most: int = 6, zeros: bool = True):
    p, q = random_pair(case.random, case.whole("outputs", 2, most), zeros)
    case.say(p=floats(p), q=floats(q))
    return p, q


def above(a: Fraction, b: Fraction, epsilon: float) -> bool:
    """Whether the loss of an output is above epsilon."""
    return a > 0 and (b == 0 or mp.log(number(a / b)) > epsilon)


# -- divergences ---------------------------------------------------------------------------------------------


@claim("loss", cases=1500)
def divergences(case: Case) -> None:
    p, q = pair(case)
    a, b = floats(p), floats(q)
    # A logarithm of a rounded quotient: three roundings.
    case.same(loss.multiplicative(a, b), multiplicative(p, q), "D_Mult", relative=1e-15)
    case.same(loss.total_variation(a, b), number(variation(p, q)), "total variation", absolute=1e-15)
    epsilon = case.share("epsilon", 0, 8)
    # e^epsilon q and the sums are rounded in proportion to terms of at most 1.
    case.same(loss.hockey_stick(a, b, epsilon), excess(p, q, epsilon), "hockey stick", absolute=4e-15)


@claim("loss", cases=800)
def approximate_divergence(case: Case) -> None:
    p, q = pair(case, 5)
    delta = Fraction(case.whole("delta * 2^20", 0, 2**18), 2**20)
    found, truth = loss.approximate(floats(p), floats(q), float(delta)), smallest_epsilon(p, q, delta)
    # P(S) above delta by a part of 1e-12 counts as delta (loss.divergences.ROUNDING), so a difference that small is
    # not told; on this grid of probabilities differences are larger.
    case.same(found, truth, "epsilon at delta", relative=1e-9, absolute=2e-12)


@claim("loss", cases=1500)
def renyi_divergence(case: Case) -> None:
    p, q = pair(case)
    order = case.pick("order", ORDERS)
    truth = renyi(p, q, order)
    # Sums of terms of one sign, divided by order - 1; logarithms of ratios are rounded, and multiplied by the order.
    slack = 4e-15 * (1 + (0 if math.isinf(order) else order * float(min(multiplicative(p, q), 100)) / max(order, 2)))
    case.same(loss.renyi(floats(p), floats(q), order), truth, "Rényi divergence", relative=1e-11, absolute=slack)


@claim("loss", cases=500)
def normalised_renyi(case: Case) -> None:
    p, q = pair(case)
    low, high = rho(p, q)
    found = loss.normalised_renyi(floats(p), floats(q)) ** 2
    # Below: no order that was looked at may give more than what stirred says; above: the search here is to 1e-4.
    case.within(low, found, high, "rho", relative=1e-9, absolute=1e-18)


# -- tests of hypotheses -------------------------------------------------------------------------------------


@claim("loss", cases=500)
def power_curves(case: Case) -> None:
    p, q = pair(case)
    forth = loss.PowerCurve(loss.power_curve(floats(p), floats(q)))
    back, symmetric = loss.inverted_power_curve(forth), loss.symmetric_power_curve(forth)
    r, s = loss.attaining_pair(forth)
    again = loss.PowerCurve(loss.power_curve(r / r.sum(), s / s.sum()))
    for level in [Fraction(0), Fraction(1), *(Fraction(float(at)) for at in case.random.random(6) ** 3)]:
        truth, other = power(p, q, level), power(q, p, level)
        at = float(level)
        # Vertices are sums of probabilities; between them a straight line is rounded.
        case.same(float(forth.power(at)), truth, f"power at {at}", absolute=1e-14)
        case.same(float(forth.type_two_error(at)), 1 - truth, f"type II error at {at}", absolute=1e-14)
        case.same(float(again.power(at)), truth, f"power of the pair that attains the curve at {at}", absolute=1e-13)
        if level > 0:  # exchanged hypotheses: at level 0 a corner lost in rounding moves the power by its slope
            steepest = max((float(b / a) for a, b in zip(q, p, strict=True) if a > 0), default=1.0)
            slack = 1e-14 + 4e-16 * steepest
            case.same(float(back.power(at)), other, f"power at {at}, hypotheses exchanged", absolute=slack)
            case.same(float(symmetric.power(at)), min(truth, other), f"power of both ways at {at}", absolute=2 * slack)
    epsilon = case.share("epsilon", 0, 5)
    # What the curve gives at epsilon is the hockey stick from Q to P: the curve is that of P against Q.
    found = loss.power_to_approximate(forth, epsilon)
    case.same(found, excess(q, p, epsilon), "delta of the curve", absolute=1e-14 * math.exp(epsilon))


@claim("loss", cases=500)
def level_at_power(case: Case) -> None:
    p, q = pair(case)
    curve = loss.PowerCurve(loss.power_curve(floats(p), floats(q)))
    for wanted in (Fraction(float(at)) for at in case.random.random(5)):
        level = Fraction(float(loss.level_at_power(curve, float(wanted))))
        # At the level power is reached, at a slightly lower one it is not.
        case.at_most(
            wanted, power(p, q, min(Fraction(1), level + Fraction(1, 10**13))), "power at the level", absolute=1e-13
        )
        if level > Fraction(1, 10**12):
            lower = power(p, q, level - Fraction(1, 10**12))
            case.at_most(lower, wanted, "power below the level", absolute=1e-14)


@claim("loss", cases=300)
def composed_curves(case: Case) -> None:
    p, q = pair(case, 4)
    r, s = random_pair(case.random, case.whole("other outputs", 2, 4))
    case.say(r=floats(r), s=floats(s))
    parts = [loss.PowerCurve(loss.power_curve(floats(a), floats(b))) for a, b in ((p, q), (r, s))]
    both = loss.composed_power_curve(parts)
    for level in (Fraction(float(at)) for at in case.random.random(4) ** 3):
        truth = power(*product(p, q, r, s), level)
        case.same(float(both.power(float(level))), truth, f"composed power at {float(level)}", absolute=1e-12)


# -- from pure and approximate differential privacy ----------------------------------------------------------


@claim("loss", cases=1500)
def from_pure(case: Case) -> None:
    epsilon = case.size("epsilon", 1e-6, 60)
    order = case.pick("order", ORDERS[1:])
    e = mpf(epsilon)
    with mp.workdps(120):
        response = (
            e if math.isinf(order) else mp.log(mp.cosh((order - mpf(1) / 2) * e) / mp.cosh(e / 2)) / (mpf(order) - 1)
        )
    # The laws of randomised response attain each of them: no smaller number is right, and stirred rounds up by 1e-14.
    for name, found, truth in (
        ("rho", loss.pure_to_zcdp(epsilon), e * mp.tanh(e / 2)),
        ("Rényi", loss.pure_to_renyi(epsilon, order), response),
        ("Rényi at 1", loss.pure_to_renyi(epsilon, 1), e * mp.tanh(e / 2)),
        ("total variation", loss.pure_to_total_variation(epsilon), mp.tanh(e / 2)),
    ):
        case.at_most(truth, found, f"{name} of randomised response", relative=1e-16 if found in (epsilon, 1.0) else 0)
        case.at_most(found, truth, f"{name}, not more than needed", relative=1e-12)


@claim("loss", cases=600)
def from_pure_on_random_pairs(case: Case) -> None:
    p, q = pair(case, 6, zeros=False)
    exact = multiplicative(p, q)
    epsilon = float(exact) * (1 + 1e-15)
    order = case.pick("order", ORDERS)
    case.at_most(max(renyi(p, q, order), renyi(q, p, order)), loss.pure_to_renyi(epsilon, order), "Rényi")
    case.at_most(rho(p, q)[0], loss.pure_to_zcdp(epsilon), "rho", relative=1e-15)
    case.at_most(number(variation(p, q)), loss.pure_to_total_variation(epsilon), "total variation")
    level = Fraction(float(case.random.random()))
    # Corners of a curve are floats: their rounding moves a power by a unit or two.
    case.at_most(power(p, q, level), float(loss.pure_power(epsilon).power(float(level))), "power", absolute=1e-15)
    at = case.share("at", 0, 1) * epsilon
    tail = sum((a for a, b in zip(p, q, strict=True) if above(a, b, at * (1 + 1e-15))), Fraction(0))
    case.at_most(tail, loss.pure_to_pbdp_delta(epsilon, at), "tail of the loss", relative=1e-12)


@claim("loss", cases=700)
def from_approximate(case: Case) -> None:
    p, q = pair(case)
    epsilon = case.share("epsilon", 0, 5)
    exact = max(excess(p, q, epsilon), excess(q, p, epsilon))
    delta = min(1.0, float(exact) * (1 + 1e-15))
    found = loss.approximate_to_total_variation(epsilon, delta)
    case.at_most(number(variation(p, q)), found, "total variation", absolute=1e-15)  # two roundings, to the nearest
    d, odds = mpf(delta), mp.exp(mpf(epsilon))
    case.same(found, (odds - 1 + 2 * d) / (odds + 1), "its formula", relative=1e-14)
    curve = loss.approximate_power(epsilon, delta)
    for level in (Fraction(float(at)) for at in case.random.random(4) ** 3):
        truth = min(mpf(1), odds * number(level) + d, 1 - (1 - number(level) - d) / odds)
        at = float(level)
        case.at_most(power(p, q, level), float(curve.power(at)), f"power at {at}", absolute=2e-15)
        case.same(float(curve.power(at)), truth, f"its formula at {at}", absolute=2e-15)
    at = case.share("at", 0, 8)
    tail = sum((a for a, b in zip(p, q, strict=True) if above(a, b, at)), Fraction(0))
    # pbdp bounds the tail of every post-processing, of the identity too.
    case.at_most(tail, loss.approximate_to_pbdp_delta(epsilon, delta, at), "tail of the loss", relative=1e-11)
    share = loss.approximate_to_pbdp_delta(epsilon, delta, at)
    if share < 1 - 1e-9:  # beyond, a rounded delta tells nothing about epsilon
        back = loss.approximate_to_pbdp_epsilon(epsilon, delta, share)
        case.at_most(back, at, "pbdp epsilon of the pbdp delta", relative=1e-6, absolute=1e-6)


@claim("loss", cases=600)
def groups_of_approximate(case: Case) -> None:
    size = case.whole("size", 1, 5)
    laws = random_laws(case.random, size + 1, case.whole("outputs", 2, 5))
    case.say(laws=[floats(one) for one in laws])
    epsilon = case.share("epsilon", 0, 2)
    steps = [(laws[k], laws[k + 1]) for k in range(size)]
    exact = max(max(excess(a, b, epsilon), excess(b, a, epsilon)) for a, b in steps)
    delta = min(1.0, float(exact) * (1 + 1e-15))
    e, d = loss.group_approximate(epsilon, delta, size)
    case.same(e, size * epsilon, "epsilon of the group", relative=1e-15)
    case.at_most(excess(laws[0], laws[-1], size * mpf(epsilon)), d, "delta of the group", relative=1e-13)
    with mp.workdps(60):
        truth = mpf(delta) * mp.fsum(mp.exp(k * mpf(epsilon)) for k in range(size))
    case.same(d, min(mpf(1), truth), "its formula", relative=1e-12)


# -- from zCDP and Rényi divergences -------------------------------------------------------------------------


@claim("loss", cases=400)
def from_zcdp_on_random_pairs(case: Case) -> None:
    p, q = pair(case, 6, zeros=False)
    bound = rho(p, q)[0] * (1 + 1e-9)  # of the search over orders
    case.say(rho=bound)
    case.at_most(number(variation(p, q)), loss.zcdp_to_total_variation(bound), "total variation")
    delta = case.size("delta", 1e-12, 0.9)
    for method in ("classical", "tight"):
        epsilon = loss.zcdp_to_approximate(bound, delta, method)
        worst = max(excess(p, q, epsilon), excess(q, p, epsilon))
        case.at_most(worst, delta, f"delta at the {method} epsilon", relative=1e-12)
    curve = loss.ZcdpCurve(bound)
    for level in (Fraction(float(at)) for at in case.random.random(3) ** 4):
        case.at_most(power(p, q, level), float(curve.power(float(level))), f"power at {float(level)}")
    at = case.share("at", 0, 8)
    tail = sum((a for a, b in zip(p, q, strict=True) if above(a, b, at)), Fraction(0))
    for method in ("classical", "exact"):
        case.at_most(tail, loss.zcdp_to_pbdp_delta(bound, at, method), f"{method} tail", relative=1e-13)


@claim("loss", cases=600)
def zcdp_formulas(case: Case) -> None:
    r, delta = case.size("rho", 1e-4, 50), case.size("delta", 1e-15, 0.5)
    x = mpf(r)
    classical = x + 2 * mp.sqrt(-x * mp.log(mpf(delta)))
    case.same(loss.zcdp_to_approximate(r, delta), classical, "classical epsilon", relative=1e-14)
    tight = loss.zcdp_to_approximate(r, delta, "tight")

    def bound(log_x: float) -> float:
        y = math.exp(log_x)
        return r * (1 + y) - math.log1p(1 / y) - (math.log(delta) + math.log1p(y)) / y

    coarse = np.linspace(-12, 12, 2000)
    best = float(coarse[np.argmin([bound(float(at)) for at in coarse])])
    finer = min(bound(float(at)) for at in np.linspace(best - 0.02, best + 0.02, 2000))
    case.same(tight, max(0.0, finer), "tight epsilon", relative=1e-7, absolute=1e-9)  # the search here is that fine
    # Gaussian noise of this rho: no bound may be below what it attains.
    mu = mp.sqrt(2 * x)
    case.at_most(gaussian_delta(mu, tight), delta, "delta of Gaussian noise at the tight epsilon", relative=1e-12)
    if r < 30:
        epsilon = mp.findroot(lambda e: e * mp.tanh(e / 2) - x, x + mp.sqrt(2 * x))
        found = loss.zcdp_to_total_variation(r)
        case.within(mp.tanh(epsilon / 2), found, mp.tanh(epsilon / 2) * (1 + mpf(10) ** -12), "total variation")
    back = loss.approximate_to_zcdp(float(classical), delta)
    case.same(back, r, "rho back from the classical epsilon", relative=1e-10)


@claim("loss", cases=250)
def zcdp_curves(case: Case) -> None:
    r, level = case.size("rho", 1e-3, 20), case.size("level", 1e-9, 0.999)
    curve = loss.ZcdpCurve(r)
    found = float(curve.power(level))
    # Attained by two coins: coins a little closer satisfy every order, coins a little farther do not.
    a, b = mpf(found), mpf(level)
    if found >= 1 - 1e-9:
        a = 1 - mpf(float(curve.type_two_error(level)))
    closer = b + (a - b) * (1 - mpf(10) ** -9)
    orders = [1.0, *(1 + np.geomspace(1e-3, 1e3, 20))]
    for order in orders:
        for first, second in ((closer, b), (b, closer)):
            case.at_most(renyi_of_coins(first, second, order), mpf(order) * r, f"D of order {order}", relative=1e-10)
    with mp.workdps(60):
        farther = 1 - (1 - a) * (1 - mpf(10) ** -6)
        binding = float(curve.order(level))
        worst = max(
            renyi_of_coins(*two, order) / order
            for order in (binding, *orders)
            if not math.isinf(order)
            for two in ((farther, b), (b, farther))
        )
    case.at_most(r, worst, "coins farther apart exceed rho")
    if 1 - found > 1e-6:  # nearer to 1 the rounding of the power moves the level
        low = float(curve.level_at_power(found))
        case.same(low, level, "level at that power", relative=1e-6)


@claim("loss", cases=800)
def from_renyi_on_random_pairs(case: Case) -> None:
    p, q = pair(case, 6, zeros=False)
    orders = sorted({case.pick(f"order {k}", ORDERS[1:-1]) for k in range(3)})
    points = [(order, float(max(renyi(p, q, order), renyi(q, p, order))) * (1 + 1e-13)) for order in orders]
    case.say(points=points)
    delta = case.size("delta", 1e-9, 0.9)
    order, divergence = points[0]
    if divergence > 0:
        epsilon = loss.renyi_to_approximate(order, divergence, delta)
        if epsilon < 1e4:
            worst = max(excess(p, q, epsilon), excess(q, p, epsilon))
            case.at_most(worst, delta, "delta at epsilon", relative=1e-11)
    curve = loss.RenyiCurve(tuple(points))
    for level in (Fraction(float(at)) for at in case.random.random(3) ** 4):
        case.at_most(power(p, q, level), float(curve.power(float(level))), f"power at {float(level)}", absolute=1e-15)
    at = case.share("at", 0, 8)
    tail = sum((a for a, b in zip(p, q, strict=True) if above(a, b, at)), Fraction(0))
    case.at_most(tail, loss.renyi_orders_to_pbdp_delta(points, at), "tail of the loss", relative=1e-11)


# -- Gaussian differential privacy ---------------------------------------------------------------------------


@claim("loss", cases=900)
def gaussian_formulas(case: Case) -> None:
    mu = case.size("mu", 1e-3, 12)
    epsilon = case.share("epsilon over mu", 0, 9) * mu
    m, e = mpf(mu), mpf(epsilon)
    truth = gaussian_delta(mu, epsilon)
    # A difference of two numbers of about phi(t): their roundings, against a result that may be smaller by mu.
    case.same(
        loss.gaussian_to_approximate(mu, epsilon), truth, "delta", relative=2e-14 / min(1, mu) + 1e-13 * (1 + epsilon)
    )
    delta = case.size("delta", 1e-12, 0.4)
    found = loss.gaussian_epsilon(mu, delta)
    at = gaussian_delta(mu, found)
    case.at_most(at, delta, "delta at epsilon", relative=1e-11 / min(1, mu))
    if found > 1e-9:
        case.at_most(delta, gaussian_delta(mu, found * (1 - 1e-9)), "delta just below epsilon", relative=1e-10)
    case.same(loss.gaussian_to_tail(mu, epsilon), normal(m / 2 - e / m), "tail", relative=1e-12)
    level = case.size("level", 1e-12, 0.999)
    with mp.workdps(30):
        z = mp.findroot(lambda x: mp.log(normal(x)) - mp.log(mpf(level)), float(loss_quantile(level)))
        beyond = normal(z + m)
        case.same(float(loss.GaussianCurve(mu).power(level)), beyond, "power", relative=1e-12)
        back = mp.log(mpf(level)) - mp.log(normal(z - m))
        case.same(loss.gaussian_to_pbdp_epsilon(mu, level), back, "pbdp epsilon", relative=1e-10, absolute=1e-12)
    case.same(loss.gaussian_to_zcdp(mu), m * m / 2, "rho", relative=1e-15)


def loss_quantile(level: float) -> float:
    """Where the search for a normal quantile starts."""
    t = math.sqrt(-2 * math.log(min(level, 1 - level)))
    z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3)
    return -z if level < 0.5 else z


CLAIMS = (
    divergences,
    approximate_divergence,
    renyi_divergence,
    normalised_renyi,
    power_curves,
    level_at_power,
    composed_curves,
    from_pure,
    from_pure_on_random_pairs,
    from_approximate,
    groups_of_approximate,
    from_zcdp_on_random_pairs,
    zcdp_formulas,
    zcdp_curves,
    from_renyi_on_random_pairs,
    gaussian_formulas,
)
