"""The laws that audits compare programs with: of a swap (Algorithm 3.2.1), of noise, of integers and of coins.

*Swaps.* In a stratum of n records each is selected with probability p, afresh while exactly one is, and the k
selected are permuted by a uniform derangement. So K is binomial given that it is not 1; given K, every set of so many
records and every derangement of them is equally likely.

*Noise.* Discrete Gaussian, discrete Laplace, uniform integers, coins: each has its exact parameter as a fraction, and
probabilities from the formula to about twelve digits: far more than draws can tell, since n draws notice a relative
error of about 1/sqrt(n). The Gaussian and Laplace laws are P(x) proportional to exp(-beta T(x)) with T(x) = x^2, beta
= 1/(2 sigma^2), or T(x) = |x|, beta = 1/scale; the sum of T over draws says all there is to know about the scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred._lazy import later
from stirred.loss.curves.swap_laws import derangements
from stirred.noise import RandomSource, SystemSource, discrete_gaussian, discrete_laplace, uniform_integers
from stirred.noise.coins import bernoulli

special = later("scipy.special")
stats = later("scipy.stats")

Array = NDArray[np.float64]


@lru_cache(maxsize=256)
def number_selected(size: int, rate: float) -> Array:
    """P(K = k) for k = 0 to n; n is at least 2."""
    chances: Array = stats.binom.pmf(np.arange(size + 1), size, rate)
    chances[1] = 0.0
    found: Array = chances / chances.sum()
    return found


def mean_and_variance_selected(sizes: NDArray[np.int64], rate: float) -> tuple[Array, Array]:
    """Mean and variance of K for strata of these sizes; a stratum of one has none.

    E K = np(1 - r)/D and E K^2 = (np(1-p) + n^2 p^2 - npr)/D with r = (1-p)^(n-1) and D = 1 - npr.
    """
    size = sizes.astype(np.float64)
    lone = np.exp((size - 1) * math.log1p(-rate))
    kept = np.where(size > 1, 1 - size * rate * lone, 1.0)
    mean = np.where(size > 1, size * rate * (1 - lone) / kept, 0.0)
    square = np.where(size > 1, (size * rate * (1 - rate) + (size * rate) ** 2 - size * rate * lone) / kept, 0.0)
    return mean, square - mean**2


@lru_cache(maxsize=256)
def chance_of_the_same(size: int, rate: float) -> float:
    """The probability that two strata of n records have the same outcome, and that it moves some."""
    number = number_selected(size, rate)
    k = np.arange(2, size + 1)
    log_ways = _log_factorial(size) - _log_factorial(size - k)  # C(n, k) d(k), where d(k) is at least k!/3
    return float(np.sum(number[2:] ** 2 * np.exp(np.log(3) - log_ways)))


def log_most_likely(size: int, rate: float) -> float:
    """Log of the probability of the likeliest outcome of a stratum: none moves, or all of a number that moves."""
    if size < 2:
        return 0.0
    number = number_selected(size, rate)
    k = np.arange(2, size + 1)
    with np.errstate(divide="ignore"):
        some = np.log(number[2:]) + np.log(3) - _log_factorial(size) + _log_factorial(size - k)
        return float(min(0.0, max(np.log(number[0]), some.max())))


@lru_cache(maxsize=16)
def all_derangements(k: int) -> tuple[tuple[int, ...], ...]:
    """All derangements of k records, in the order of their digits."""
    return tuple(one for one in permutations(range(k)) if all(one[i] != i for i in range(k)))


@lru_cache(maxsize=4096)
def number_of_exchanges(k: int, most: int = 3) -> tuple[float, ...]:
    """P(a uniform derangement of k records has 0, 1, ..., ``most`` or more cycles of two).

    C(k; 2, ..., 2) derangements of the others without cycles of two, by inclusion and exclusion.
    """
    if k > _MANY:  # the number is Poisson with mean 1/2 to all digits of a float
        law = [math.exp(-0.5) * 0.5**j / math.factorial(j) for j in range(most)]
        return (*law, 1 - sum(law))
    total = derangements(k)
    ways = []
    for j in range(most):
        without = sum((-1) ** i * _pairs(k - 2 * j, i) * derangements(k - 2 * j - 2 * i) for i in range(k // 2 - j + 1))
        ways.append(_pairs(k, j) * without / total if 2 * j <= k else 0.0)
    return (*ways, max(0.0, 1 - sum(ways)))


_MANY = 60


def _pairs(k: int, j: int) -> int:
    """In how many ways j disjoint pairs can be chosen among k records."""
    return math.factorial(k) // (2**j * math.factorial(j) * math.factorial(k - 2 * j)) if 2 * j <= k else 0


def _log_factorial(n: int | NDArray[np.int64]) -> Array:
    return np.asarray(special.gammaln(np.asarray(n, dtype=np.float64) + 1.0))


Integers = NDArray[np.int64]
Family = Literal["gaussian", "laplace"]
Kind = Literal["gaussian", "laplace", "integers", "coin"]

_LISTED = 1 << 28
"""Variances up to here have a table of all probabilities. Above it sums over ranges of integers are integrals between
half-integers, up to 1 / (24 variance) of themselves: below 1e-9."""
_REACH = 13.5
"""Standard deviations beyond which a discrete Gaussian has less than 1e-40."""
_LARGEST = 1 << 80
_LARGEST_SCALE = 1 << 40
_LARGEST_BOUND = 1 << 63


@dataclass(frozen=True)
class NoiseLaw:
    """A law on the integers; make one with :func:`gaussian`, :func:`laplace`, :func:`integers` or :func:`coin`."""

    kind: Kind
    parameter: Fraction

    def __str__(self) -> str:
        if self.kind == "gaussian":
            return f"the discrete Gaussian with sigma^2 = {self.parameter}"
        if self.kind == "laplace":
            return f"the discrete Laplace with scale {self.parameter}"
        if self.kind == "integers":
            return f"uniform integers from 0 to {self.parameter - 1}"
        return f"coins with probability {self.parameter}"

    @property
    def highest(self) -> int | None:
        """The largest possible value where the smallest is 0; None where every integer is possible."""
        if self.kind == "integers":
            return int(self.parameter) - 1
        return 1 if self.kind == "coin" else None

    @property
    def family(self) -> Family | None:
        """The name by which :func:`log_normaliser` knows the law; None without a scale."""
        return self.kind if self.kind in ("gaussian", "laplace") else None

    @property
    def beta(self) -> float:
        """The rate of a law with a scale: 1/(2 sigma^2), or 1/scale."""
        return float(1 / (2 * self.parameter) if self.kind == "gaussian" else 1 / self.parameter)

    @property
    def spread(self) -> float:
        """About one standard deviation."""
        if self.kind == "gaussian":
            return math.sqrt(self.parameter)
        if self.kind == "laplace":
            return float(self.parameter) * math.sqrt(2)
        return float(self.parameter) / math.sqrt(12) if self.kind == "integers" else 0.5

    def below(self, edges: Integers) -> Array:
        """P(X < edge) for each edge."""
        if self.kind == "gaussian":
            beyond = _gaussian_beyond(self.parameter, np.where(edges > 0, edges, 1 - edges))
            return np.where(edges > 0, 1 - beyond, beyond)
        if self.kind == "laplace":
            rate = self.beta
            tail = np.exp(-rate * np.where(edges > 0, edges, 1 - edges)) / (1 + math.exp(-rate))
            return np.where(edges > 0, 1 - tail, tail)
        if self.kind == "integers":
            return np.clip(edges / float(self.parameter), 0.0, 1.0)
        return np.where(edges <= 0, 0.0, np.where(edges == 1, float(1 - self.parameter), 1.0))

    def beyond(self, distance: int) -> float:
        """P(|X| >= distance) for a law that is symmetric about 0, with all digits also where it is tiny."""
        if distance <= 0:
            return 1.0
        if self.kind == "gaussian":
            return min(1.0, 2 * float(_gaussian_beyond(self.parameter, np.array([distance], dtype=np.int64))[0]))
        return min(1.0, 2 * math.exp(-self.beta * distance) / (1 + math.exp(-self.beta)))

    def chances(self, edges: Integers) -> Array:
        """Probabilities of the cells that edges make: below the first, between neighbours, from the last on."""
        return np.diff(self.below(edges), prepend=0.0, append=1.0)

    def edges(self, probabilities: Array) -> Integers:
        """Whole numbers near these quantiles, each once; their own probabilities are for :meth:`chances` to say."""
        at = np.asarray(probabilities)
        if self.kind == "gaussian":
            places = math.sqrt(self.parameter) * special.ndtri(at)
        elif self.kind == "laplace":
            places = float(self.parameter) * np.where(at < 0.5, np.log(2 * at), -np.log(2 * (1 - at)))
        else:
            places = float(self.highest or 1) * at
        found = np.unique(np.floor(places).astype(np.int64) + 1)
        if self.highest is None:
            return found
        return found[(found > 0) & (found <= self.highest)]

    def residues(self, modulus: int) -> Array:
        """P(X mod modulus = r) for r = 0, 1, ..."""
        r = np.arange(modulus)
        if self.kind == "gaussian":
            if self.parameter > _LISTED:  # Poisson summation: uniform up to exp(-2 pi^2 sigma^2 / modulus^2)
                return np.full(modulus, 1 / modulus)
            chances = _gaussian_table(self.parameter)
            values = np.arange(len(chances)) - len(chances) // 2
            return np.bincount(values % modulus, chances, minlength=modulus).astype(np.float64)
        if self.kind == "laplace":
            q = math.exp(-self.beta)
            ends = math.expm1(-self.beta) / math.expm1(-self.beta * modulus)
            return np.asarray((q**r + q ** (modulus - r)) * ends / (1 + q))
        bound = int(self.parameter)
        return np.array([float(Fraction((bound - int(one) + modulus - 1) // modulus, bound)) for one in r])

    @property
    def log_coincidence(self) -> float:
        """The logarithm of the probability that two draws are equal."""
        if self.kind in ("gaussian", "laplace"):
            twice, once = log_normaliser(self.family, np.array([2 * self.beta, self.beta]))  # type: ignore[arg-type]
            return float(twice - 2 * once)
        p = float(self.parameter)
        return -math.log(p) if self.kind == "integers" else math.log(p * p + (1 - p) * (1 - p))

    def draw(self, size: int, source: RandomSource | None = None) -> Integers:
        """Draws of our own sampler of this law."""
        source = source or SystemSource()
        if self.kind == "gaussian":
            return discrete_gaussian(self.parameter, size, source)
        if self.kind == "laplace":
            return discrete_laplace(self.parameter, size, source)
        if self.kind == "integers":
            return uniform_integers(int(self.parameter), size, source)
        return bernoulli(self.parameter, size, source).astype(np.int64)


def gaussian(sigma2: Any) -> NoiseLaw:
    """The discrete Gaussian: P(x) proportional to exp(-x^2 / (2 sigma2)) on all integers."""
    return NoiseLaw("gaussian", _within(sigma2, "sigma^2 of a discrete Gaussian", _LARGEST))


def laplace(scale: Any) -> NoiseLaw:
    """The discrete Laplace: P(x) proportional to exp(-|x| / scale) on all integers."""
    return NoiseLaw("laplace", _within(scale, "The scale of a discrete Laplace", _LARGEST_SCALE))


def integers(below: Any) -> NoiseLaw:
    """Uniform integers 0, 1, ..., below - 1."""
    bound = _within(below, "The bound of uniform integers", _LARGEST_BOUND)
    if bound.denominator != 1 or bound < 2:
        raise errors.audit_question("The bound of uniform integers", "must be a whole number from 2 on")
    return NoiseLaw("integers", bound)


def coin(probability: Any) -> NoiseLaw:
    """Coins: 1 with this probability, else 0."""
    chance = _within(probability, "The probability of a coin", 1)
    if chance == 1:
        raise errors.audit_question("The probability of a coin", "must be strictly between 0 and 1")
    return NoiseLaw("coin", chance)


def log_normaliser(family: Family, beta: Array) -> Array:
    """log Z(beta), Z the sum of exp(-beta T(x)) over all integers; see the module for T."""
    if family == "laplace":
        return np.asarray(np.log1p(np.exp(-beta)) - np.log(-np.expm1(-beta)))
    return _theta(beta)[0]


def mean_statistic(family: Family, beta: Array) -> Array:
    """E T(X): the second moment of a discrete Gaussian, the mean distance from 0 of a discrete Laplace."""
    if family == "laplace":
        return np.asarray(1 / np.sinh(np.minimum(beta, 700.0)))
    return _theta(beta)[1]


_TERMS = np.arange(1.0, 5.0) ** 2


def _theta(beta: Array) -> tuple[Array, Array]:
    """(log Z, E X^2) of a discrete Gaussian: by its own sum where it is narrow, else by that of Poisson.

    With b = beta: Z = 1 + 2 sum exp(-b k^2) = sqrt(pi/b) (1 + 2 sum exp(-pi^2 k^2 / b)). Four terms of either leave
    out less than exp(-78) of the sum where b is on its side of pi.
    """
    narrow = np.asarray(beta) >= np.pi
    rate = np.where(narrow, beta, np.pi**2 / beta)
    terms = np.exp(-rate[..., None] * _TERMS)
    total, weighted = 1 + 2 * terms.sum(axis=-1), 2 * (_TERMS * terms).sum(axis=-1)
    log = np.log(total) + np.where(narrow, 0.0, 0.5 * np.log(np.pi / beta))
    moment = np.where(narrow, weighted / total, 0.5 / beta - (np.pi / beta) ** 2 * weighted / total)
    return log, moment


@lru_cache(maxsize=32)
def _gaussian_table(variance: Fraction) -> Array:
    """Probabilities of -reach, ..., reach."""
    reach = int(_REACH * math.sqrt(variance)) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * float(variance)))
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=32)
def _gaussian_tails(variance: Fraction) -> Array:
    """P(X >= k) for k = -reach, ..., reach + 1, added up from the far end."""
    return np.append(np.cumsum(_gaussian_table(variance)[::-1])[::-1], 0.0)


def _gaussian_beyond(variance: Fraction, edges: Integers) -> Array:
    """P(X >= edge)."""
    if variance > _LISTED:
        return np.asarray(special.ndtr(-(edges - 0.5) / math.sqrt(variance)))
    tails = _gaussian_tails(variance)
    reach = len(tails) // 2 - 1
    return tails[np.clip(edges + reach, 0, len(tails) - 1)]


def _within(value: Any, what: str, most: int) -> Fraction:
    try:
        number = as_fraction(value)
    except NOT_A_NUMBER:
        raise errors.audit_question(what, "must be a number, such as 10 or 1/20") from None
    if not 0 < number <= most:
        shown = "1" if most == 1 else f"2^{most.bit_length() - 1}"
        raise errors.audit_question(what, f"must be above 0 and at most {shown}")
    return number
