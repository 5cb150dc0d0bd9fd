"""Powers, epsilons and factors from the formulas that sentences name, by other means than those of the package.

Bernoulli laws in logarithms, bisection and closed forms in place of curves and compiled searches. What is taken from a
specification is what its author stated: kind, parameter, budget, distances.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from statistics import NormalDist

import numpy as np
from scipy.special import log_ndtr

NORMAL = NormalDist()
Wide = np.longdouble


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


class Pairs:
    """All pairs (epsilon, delta) of one definition; pure and total variation are such pairs too."""

    def __init__(self, *pairs):
        self.pairs = [(float(epsilon), float(delta)) for epsilon, delta in pairs]

    def missed(self, level):
        found = []
        for epsilon, delta in self.pairs:
            rest = max(0.0, 1 - level - delta)
            low = 1 - delta - level * math.exp(epsilon) if epsilon < 700 else -1.0
            found.append(max(0.0, low, math.exp(-epsilon) * rest))
        return max(found)

    def power(self, level):
        if level == 0:
            return min(delta for _, delta in self.pairs)
        low = min((level * math.exp(e) + d for e, d in self.pairs if e < 700), default=1.0)
        return min(1.0, low, 1 - self.missed(level))

    def log_level(self, power):
        found = []
        for epsilon, delta in self.pairs:
            if power > delta:
                found.append(math.log(power - delta) - epsilon)
            other = 1 - delta - (1 - power) * math.exp(min(epsilon, 700))
            if other > 0:
                found.append(math.log(other))
        return max(found, default=-math.inf)

    def epsilon(self, delta):
        """By the lines above the curve: its steepest chord from (0, delta), over its corners."""
        if self.power(0) > delta:
            return math.inf
        corners = [(1 - d) / (1 + math.exp(min(e, 700))) for e, d in self.pairs]
        corners += [1 - d for _, d in self.pairs] + list(np.geomspace(1e-9, 1, 200))
        return max([0.0] + [math.log((self.power(a) - delta) / a) for a in corners if a > 0 and self.power(a) > delta])


class Vertices:
    """A curve that is straight between its vertices."""

    def __init__(self, points):
        self.points = points

    def power(self, level):
        for (a, p), (b, q) in zip(self.points, self.points[1:], strict=False):
            if a <= level <= b:
                return p + (q - p) * (level - a) / (b - a)
        raise AssertionError(level)

    def missed(self, level):
        return 1 - self.power(level)

    def log_level(self, power):
        if power <= self.points[0][1]:
            return -math.inf
        for (a, p), (b, q) in zip(self.points, self.points[1:], strict=False):
            if p < power <= q:
                return math.log(a + (b - a) * (power - p) / (q - p))
        raise AssertionError(power)

    def epsilon(self, delta):
        if self.points[0][1] > delta:
            return math.inf
        return max([0.0] + [math.log((p - delta) / a) for a, p in self.points if a > 0 and p > delta])


class Gaussian:
    def __init__(self, mu):
        self.mu = float(mu)

    def power(self, level):
        return 0.0 if level == 0 else phi(NORMAL.inv_cdf(level) + self.mu)

    def missed(self, level):
        return phi(-NORMAL.inv_cdf(level) - self.mu)

    def log_level(self, power):
        return float(log_ndtr(NORMAL.inv_cdf(power) - self.mu))

    def epsilon(self, delta):
        """The smallest one of Balle and Wang (2018), Theorem 8."""
        if self.mu == 0:
            return 0.0

        def exceeds(epsilon):
            second = log_ndtr(-epsilon / self.mu - self.mu / 2) + epsilon
            first = log_ndtr(-epsilon / self.mu + self.mu / 2)
            return (
                first + math.log1p(-min(1.0, math.exp(second - first))) > math.log(delta) if second < first else False
            )

        return bisected(exceeds, 0.0, self.mu**2 + 60 * self.mu + 1) if exceeds(0.0) else 0.0


def bisected(below: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return high


def reached(within: Callable[[float], bool]) -> float:
    """How far from 0 a condition holds: by doubling, then by bisection."""
    high = 1e-9
    while within(high):
        high *= 4
    low = high / 4 if high > 1e-9 else 0.0
    for _ in range(44):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return high


@cache
def _rise(law, start):
    return reached(lambda x: not law.exceeds(start + x, start))


@dataclass(frozen=True)
class Divergence:
    """Bounds on Renyi divergences in both directions: ``rho`` at all orders, or ``bound`` at one."""

    rho: float | None = None
    order: float | None = None
    bound: float | None = None

    def exceeds(self, logit, level_logit):
        """Whether coins with these log odds break the bound."""
        p, q = _coin(logit), _coin(level_logit)
        if self.order is not None:
            order = np.array([self.order], dtype=Wide)
            return max(_renyi(p, q, order)[0], _renyi(q, p, order)[0]) > self.bound
        steps = np.geomspace(Wide(1e-4), Wide(1e7), 300)
        worst = max(_kl(p, q), _kl(q, p))
        for first, second in ((p, q), (q, p)):
            values = _renyi(first, second, 1 + steps) / (1 + steps)
            at = int(np.argmax(values))
            fine = np.geomspace(steps[max(at - 1, 0)], steps[min(at + 1, len(steps) - 1)], 100)
            worst = max(worst, np.max(_renyi(first, second, 1 + fine) / (1 + fine)))
        return worst > self.rho

    def _logit(self, level):
        if (self.rho if self.order is None else self.bound) == 0:
            return _logit(level)
        start = _logit(level)
        return start + _rise(self, start)

    def power(self, level):
        return 0.0 if level == 0 else float(np.exp(_coin(self._logit(level))[0]))

    def missed(self, level):
        return float(np.exp(_coin(self._logit(level))[1]))

    def log_level(self, power):
        if (self.rho if self.order is None else self.bound) == 0:
            return math.log(power)
        end = _logit(power)
        return float(_coin(end - reached(lambda x: not self.exceeds(end, end - x)))[0])

    def epsilon(self, delta):
        """Canonne, Kamath and Steinke (2020), Proposition 12, at every order or at one."""
        if self.order is not None:
            a = self.order
            return max(0.0, self.bound + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1))
        steps = np.geomspace(1e-6, 1e9, 20_000)
        found = (1 + steps) * self.rho + np.log(steps / (1 + steps)) - (math.log(delta) + np.log1p(steps)) / steps
        return max(0.0, float(np.min(found))) if self.rho else 0.0


def _logit(chance):
    return math.log(chance) - math.log1p(-chance)


def _coin(logit):
    x = Wide(logit)
    return -np.logaddexp(Wide(0), -x), -np.logaddexp(Wide(0), x)


def _renyi(p, q, orders):
    return np.logaddexp(orders * p[0] + (1 - orders) * q[0], orders * p[1] + (1 - orders) * q[1]) / (orders - 1)


def _kl(p, q):
    return np.exp(p[0]) * (p[0] - q[0]) + np.exp(p[1]) * (p[1] - q[1])


class After:
    """A curve after itself."""

    def __init__(self, law, steps):
        self.law, self.steps = law, steps

    def power(self, level):
        for _ in range(self.steps):
            further = self.law.power(level)
            if further - level <= 1e-15 or further > 1 - 1e-14:
                return min(1.0, further)
            level = further
        return min(1.0, level)

    def missed(self, level):
        return 1 - self.power(level)


def law(specification, distance):
    """The greatest power between datasets this far apart, by the rule of the definition; None where there is none."""
    output, budget = specification.output_premetric, specification.budget.value
    kind, scale = output.kind.name, specification.input_premetric.scale
    steps = Fraction(distance) / scale
    if kind == "multiplicative":
        return Pairs((budget * distance, 0))
    if kind == "total-variation":
        return Pairs((0, min(Fraction(1), budget * distance)))
    if kind == "normalised-renyi":
        return Divergence(rho=float(budget * distance * distance))
    if steps.denominator != 1:
        return None
    k = int(steps)
    if kind == "approximate":
        return Pairs(grouped(float(budget * scale), float(output.parameter), k))
    if kind == "approximate-profile":
        return Pairs(*(grouped(e * float(scale), d, k) for d, e in budget.points))
    if kind == "trade-off":
        if hasattr(budget, "mu"):
            return Gaussian(budget.mu * k)
        return Vertices(budget.points) if k == 1 else After(Vertices(budget.points), k)
    if kind == "renyi":
        one = Divergence(order=float(output.parameter), bound=float(budget * scale))
        return one if k == 1 else After(one, k)
    raise AssertionError(kind)


def grouped(epsilon, delta, k):
    """Vadhan (2017), Lemma 2.2: delta (e^(k epsilon) - 1) / (e^epsilon - 1)."""
    if k == 1:
        return epsilon, delta
    if epsilon == 0:
        return 0.0, min(1.0, k * delta)
    if k * epsilon > 600:
        return k * epsilon, 1.0 if delta else 0.0
    return k * epsilon, min(1.0, delta * math.expm1(k * epsilon) / math.expm1(epsilon))


def bounded_epsilon(found, delta):
    """Of pbdp: ln(delta / f^-1(1 - delta))."""
    return max(0.0, math.log(delta) - found.log_level(delta))


def discrete_power(variances, level):
    """The power of the likelihood-ratio test on discrete Gaussian noise."""
    levels, powers = _discrete_curve(tuple(variances))
    return float(np.interp(level, levels, powers))


def discrete_epsilon(variances, delta):
    """Epsilon of pbdp for the same noise: ln(delta / level), at the level whose power is delta."""
    levels, powers = _discrete_curve(tuple(variances))
    return math.log(delta / float(np.interp(delta, powers, levels)))


@cache
def _discrete_curve(variances, grid=5e-4):
    """Levels and powers: two cells of each variance that move by one, the law of the summed loss on a grid, each loss
    split between its two neighbours."""
    reach = 40.0
    size = int(2 * reach / grid)
    transform = np.ones(size // 2 + 1, dtype=complex)
    for variance in variances:
        numbers = np.arange(-int(12 * math.sqrt(variance)) - 3, int(12 * math.sqrt(variance)) + 4)
        weights = np.exp(-(numbers**2) / (2 * variance))
        weights /= weights.sum()
        at = (1 - 2 * numbers) / (2 * variance) / grid  # of the law that the data have, against the one moved by one
        low = np.floor(at).astype(int)
        part = np.zeros(size)
        np.add.at(part, low % size, weights * (1 - (at - low)))
        np.add.at(part, (low + 1) % size, weights * (at - low))
        transform *= np.fft.rfft(part) ** 2
    law = np.fft.irfft(transform, size)
    law[law < 1e-13] = 0  # what the transform leaves behind would weigh much under the other law
    losses = np.arange(size) * grid
    losses[size // 2 :] -= 2 * reach
    order = np.argsort(-losses)
    law, losses = law[order] / law.sum(), losses[order]
    other = law * np.exp(-losses)
    return np.cumsum(other) / other.sum(), np.cumsum(law)


def shares():
    """The shares of the 2020 redistricting data from the file itself: rho by level and query, as printed."""
    fields = tomllib.loads((files("stirred") / "deployments/allocations-2020.toml").read_text(encoding="utf-8"))
    found = {}
    for part in fields["allocation"][0]["part"]:
        for query in part["query"]:
            for level, of_level, share in zip(
                fields["allocation"][0]["levels"], part["level_shares"], query["shares"], strict=True
            ):
                if rho := Fraction(part["rho"]) * Fraction(of_level) * Fraction(share):
                    found[level, query["name"]] = rho
    return found
