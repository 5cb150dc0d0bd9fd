"""Mechanisms whose two laws are known exactly, with what they reveal: the truth that audits are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from stirred.lab.definitions.swap_practices import name_of, released_law, tables_of
from stirred.noise import SeededSource, discrete_gaussian, discrete_laplace, randomised_response


@dataclass(frozen=True)
class KnownPair:
    """The laws of the outputs on two inputs, and a way to run the mechanism ``runs`` times on either."""

    name: str
    first: np.ndarray
    second: np.ndarray
    run: Callable[[int, int, int], Any]
    """``run(which, runs, seed)``: outputs on the first (0) or the second input (1)."""

    def epsilon(self, delta: float = 0.0) -> float:
        low, high = 0.0, 50.0
        for _ in range(80):
            middle = (low + high) / 2
            missing = max(
                np.maximum(0, a - np.exp(middle) * b).sum()
                for a, b in ((self.first, self.second), (self.second, self.first))
            )
            low, high = (middle, high) if missing > delta + 1e-15 else (low, middle)
        return high

    def rho(self) -> float:
        best = 0.0
        for a, b in ((self.first, self.second), (self.second, self.first)):
            for t in np.geomspace(1e-3, 50, 1_500):
                terms = np.log(a) + t * np.log(a / b)
                divergence = (terms.max() + np.log(np.exp(terms - terms.max()).sum())) / t
                best = max(best, divergence / (1 + t))
        return best

    def power(self, level: float) -> float:
        powers = []
        for a, b in ((self.first, self.second), (self.second, self.first)):
            order = np.argsort(-a / np.maximum(b, 1e-300))
            powers.append(np.interp(level, [0, *np.cumsum(b[order])], [0, *np.cumsum(a[order])]))
        return max(powers)


def _noise(name: str, weight: Callable[[np.ndarray], np.ndarray], draw: Callable[[int, int], np.ndarray]) -> KnownPair:
    """Noise on counts that differ by one. Outputs beyond 50 have less than 1e-10 of the mass."""
    z = np.arange(-50, 51)
    laws = weight(z) / weight(z).sum(), weight(z - 1) / weight(z).sum()
    return KnownPair(name, *laws, lambda which, runs, seed: draw(runs, seed) + which)


def geometric(epsilon: Fraction) -> KnownPair:
    """Discrete Laplace noise of scale 1 / epsilon on counts that differ by one: epsilon is exact."""
    return _noise(
        "geometric noise",
        lambda z: np.exp(-float(epsilon) * abs(z)),
        lambda runs, seed: discrete_laplace(1 / epsilon, runs, SeededSource(seed)),
    )


def gaussian(variance: int) -> KnownPair:
    """Discrete Gaussian noise on counts that differ by one: rho is 1 / (2 variance)."""
    return _noise(
        "discrete Gaussian noise",
        lambda z: np.exp(-(z**2) / (2 * variance)),
        lambda runs, seed: discrete_gaussian(variance, runs, SeededSource(seed)),
    )


def response(flip: Fraction) -> KnownPair:
    """Randomised response about one bit."""
    p = float(flip)
    return KnownPair(
        "randomised response",
        np.array([1 - p, p]),
        np.array([p, 1 - p]),
        lambda which, runs, seed: randomised_response(np.full(runs, which), flip, SeededSource(seed)),
    )


def small_swap(rate: Fraction) -> KnownPair:
    """The swap of a stratum of four records, on two files that differ in one exchange; outputs are texts."""
    tables = tables_of((2, 1, 1), (2, 2))
    one, other = tables[0], tables[1]
    laws = [released_law(table, rate) for table in (one, other)]
    outputs = sorted(set(laws[0]) | set(laws[1]))
    chances = np.array([[float(law.get(output, 0)) for output in outputs] for law in laws])
    names = np.array([name_of(output) for output in outputs])

    def run(which: int, runs: int, seed: int) -> list[str]:
        rng = np.random.default_rng([seed, which])
        return rng.choice(names, size=runs, p=chances[which] / chances[which].sum()).tolist()

    return KnownPair("swap of four records", chances[0], chances[1], run)


def constant() -> KnownPair:
    """A coin that does not look at the input: nothing is revealed."""
    law = np.array([0.7, 0.3])
    return KnownPair(
        "a coin that ignores the input",
        law,
        law,
        lambda which, runs, seed: (np.random.default_rng([seed, which]).random(runs) < 0.3).astype(int),
    )


PAIRS = {
    "response": response(Fraction(1, 4)),
    "geometric": geometric(Fraction(1, 2)),
    "gaussian": gaussian(2),
    "swap": small_swap(Fraction(1, 4)),
    "constant": constant(),
}
