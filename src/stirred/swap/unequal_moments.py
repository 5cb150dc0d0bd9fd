"""Exact mean and variance of swapped cells where the records of a stratum have different rates.

A released cell z is the number of records that are in h and receive a value in s. Over the stratum let G(t) = prod (1 -
p_l + p_l t), and let f_i = p_i / (1 - p_i + p_i t) and u_i = (1 - p_i) / (1 - p_i + p_i t). The probability that given
records move in a given pattern, and given others stay, is a product of their f and u times G, summed over the number k
of all that are selected with the share of derangements of k that have the pattern, over D = P(not exactly one
selected):

    i to j                     1/(k-1)
    i to j and j to i          1/(k(k-1)) + r_k                                   r_k = (-1)^k / (k d(k))
    i to j to l                1/(k(k-2)) - r_k/(k-2)
    i to l, j to m             1/(k(k-3)) - 1/(k(k-1)(k-2)(k-3)) + r_k/((k-2)(k-3))

Each rational term is an integral of t^K over weights (1/(K+1) = int t^K, K those selected beside the pattern), so it is
taken at Gauss-Legendre nodes; r_k vanishes faster than exponentially, so its terms need the first coefficients of a
polynomial, taken on a circle. Sums over *different* records are sums over all less those where records coincide, and
need only how many records of each rate are in h, in s and in both. No simulation: the variance of a count of hundreds
of thousands keeps eight digits, of smaller ones more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.swap.guarantee import derangements
from stirred.swap.rates import RatesByStratum
from stirred.swap.unequal import NODES, WEIGHTS, kept_shares, moved_probabilities, rate_floats, reach

Floats = NDArray[np.float64]
Numbers = NDArray[Any]

_STRATA_AT_ONCE = 1 << 12
"""Cells that are computed together."""
_ON_CIRCLE, _RADIUS, _COEFFICIENTS = 64, 0.5, 24


def _remainders() -> tuple[Floats, Floats, Floats]:
    """r_k as it enters exchanges, chains and moves apart, for K = 0, 1, ... selected beside the pattern."""
    r = {k: (-1) ** k / (k * derangements(k)) for k in range(2, _COEFFICIENTS + 5)}
    many = range(_COEFFICIENTS)
    return (
        np.array([r[K + 2] for K in many]),
        np.array([-r[K + 3] / (K + 1) for K in many]),
        np.array([r[K + 4] / ((K + 2) * (K + 1)) for K in many]),
    )


_CIRCLE = _RADIUS * np.exp(2j * np.pi * np.arange(_ON_CIRCLE) / _ON_CIRCLE)
_EXTRACT = (_CIRCLE[:, None] ** -np.arange(_COEFFICIENTS)) / _ON_CIRCLE
_AT_CIRCLE = [(_EXTRACT @ remainder) for remainder in _remainders()]
"""Weights on the circle that add up r_k times the coefficients of t^K, for the three patterns."""


@dataclass(frozen=True)
class _Sums:
    """Sums over different records at each node: ``[cell, node]``."""

    stays_and_receives: Numbers
    receives: Numbers
    exchange: Numbers
    chain: Numbers
    apart: Numbers


def unequal_cell_moments(
    strata: RatesByStratum,
    stratum: NDArray[np.int64],
    held: NDArray[np.int64],
    swapped: NDArray[np.int64],
    both: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Mean and variance of cells: the stratum of each, and its records in h, in s and in both, by rule."""
    mean, variance = np.empty(len(stratum)), np.empty(len(stratum))
    moved, kept = moved_probabilities(strata), kept_shares(strata)
    for start in range(0, len(stratum), _STRATA_AT_ONCE):
        part = slice(start, start + _STRATA_AT_ONCE)
        where = stratum[part]
        mean[part], variance[part] = _moments(
            RatesByStratum(strata.rates, strata.counts[where]),
            moved[where],
            kept[where],
            held[part].astype(np.float64),
            swapped[part].astype(np.float64),
            both[part].astype(np.float64),
        )
    return mean, variance


def _moments(
    cells: RatesByStratum, moved: Floats, kept: Floats, held: Floats, swapped: Floats, both: Floats
) -> tuple[Floats, Floats]:
    chance = rate_floats(cells)
    counts = cells.counts.astype(np.float64)
    width = reach(cells)
    t = 1 - width[:, None] * (NODES + 1) / 2
    weight = _generating(chance, counts, t) * WEIGHTS * width[:, None] / 2
    sums = _sums(chance, t, held, swapped, both)
    received = (weight * sums.receives).sum(axis=1) / kept
    pairs = weight * (
        2 * sums.stays_and_receives
        + sums.exchange * (1 - t)
        + sums.chain * (1 - t**2) / 2
        + sums.apart * ((1 - t**3) / 3 - (1 - t) ** 3 / 6)
    )
    circle = np.broadcast_to(_CIRCLE, (len(counts), _ON_CIRCLE))
    small = _sums(chance, circle, held, swapped, both)
    rest = _generating(chance, counts, circle) * (
        small.exchange * _AT_CIRCLE[0] + small.chain * _AT_CIRCLE[1] + small.apart * _AT_CIRCLE[2]
    )
    both_stay = _both_stay(chance, counts, both)
    mean = (both * (1 - moved)).sum(axis=1) + received
    second = (pairs.sum(axis=1) + rest.sum(axis=1).real + both_stay) / kept + mean
    return mean, np.maximum(second - mean**2, 0.0)


def _both_stay(chance: Floats, counts: Floats, both: Floats) -> Floats:
    """The sum over two different records of the cell of D P(both stay): what else is selected is not exactly one."""
    odds, stays, many = chance / (1 - chance), both @ (1 - chance), both.sum(axis=1)
    none = np.exp(counts @ np.log1p(-chance))
    alone = many * (many - 1) * (counts @ odds) - 2 * (many - 1) * (both @ odds)
    return np.asarray(stays**2 - both @ (1 - chance) ** 2 - none * alone)


def _generating(chance: Floats, counts: Floats, t: Numbers) -> Numbers:
    return np.asarray(np.exp(sum(counts[:, c, None] * np.log1p(p * (t - 1)) for c, p in enumerate(chance))))


def _sums(chance: Floats, t: Numbers, held: Floats, swapped: Floats, both: Floats) -> _Sums:
    factors = [p / (1 - p + p * t) for p in chance]
    stays = [(1 - p) / (1 - p + p * t) for p in chance]

    def total(many: Floats, power: int, stay: int = 0) -> Numbers:
        return np.asarray(sum(many[:, c, None] * f**power * stays[c] ** stay for c, f in enumerate(factors)))

    h1, h2, s1, s2 = total(held, 1), total(held, 2), total(swapped, 1), total(swapped, 2)
    x1, x2, x3, x4 = (total(both, power) for power in (1, 2, 3, 4))
    u0, u1, u2 = (total(both, power, 1) for power in (0, 1, 2))
    return _Sums(
        stays_and_receives=u0 * h1 * s1 - u1 * (s1 + h1) - u0 * x2 + 2 * u2,
        receives=h1 * s1 - x2,
        exchange=x1**2 - x2,
        chain=2 * (h1 * x1 * s1 - x2 * (s1 + h1 + x1) + 2 * x3),
        apart=(s1**2 - s2) * (h1**2 - h2) - 4 * s1 * (x2 * h1 - x3) + 4 * (x3 * h1 - x4) + 2 * (x2**2 - x4),
    )
