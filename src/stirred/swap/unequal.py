"""How records of different rates move: exact probabilities by classes of equal rates.

One stratum has n_c records of rate p_c. With the others' selection independent and D = P(not exactly one selected),

    D   = 1 - sum_i p_i prod_{j != i} (1 - p_j),
    q_i = P(i moves) = p_i (1 - prod_{j != i} (1 - p_j)) / D,
    P(i receives from j) = p_i p_j E[1/(1 + K)] / D,      K the number selected among the others than i and j,

since a uniform derangement of k records sends each of them to a uniformly random other one. E[1/(1 + K)] is the
integral from 0 to 1 of the generating function prod (1 - p_l + p_l t), here by Gauss-Legendre nodes; with x = 1 - t the
integrand lies below exp(-x sum p_l), so beyond 40/sum p_l nothing is left to a float.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stirred.swap.guarantee import log_complement
from stirred.swap.rates import RatesByStratum

Floats = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
"""Of Gauss and Legendre, on [-1, 1]."""
_REACH = 40.0
_AT_ONCE = 1 << 14
"""Strata whose integrals are computed together."""


def moved_probabilities(rates: RatesByStratum) -> Floats:
    """q of a record of each rule in each stratum; 0 where the stratum has no such record, or no other."""
    log_stays = np.array([log_complement(p) for p in rates.rates])
    none = rates.counts @ log_stays
    found = -rate_floats(rates) * np.expm1(none[:, None] - log_stays) / kept_shares(rates)[:, None]
    return np.where(rates.counts > 0, found, 0.0)


def received_probabilities(rates: RatesByStratum) -> Floats:
    """P(a record of rule c receives from a given other record of rule d), by stratum: ``[stratum, c, d]``."""
    chance = rate_floats(rates)
    distinct, which = _distinct(rates)
    found = np.empty((len(distinct.counts), len(chance), len(chance)))
    for start in range(0, len(found), _AT_ONCE):
        part = RatesByStratum(rates.rates, distinct.counts[start : start + _AT_ONCE])
        width = reach(part)
        x = width[:, None] * (NODES + 1) / 2  # [stratum, node]
        logs = np.log1p(-chance * x[:, :, None])  # [stratum, node, rule]
        weight = WEIGHTS * width[:, None] / 2 * np.exp(np.einsum("sc,sxc->sx", part.counts, logs))
        share = chance * np.exp(-logs)  # p / (1 - p x): the factor of a record that is taken out
        found[start : start + _AT_ONCE] = np.matmul((weight[:, :, None] * share).transpose(0, 2, 1), share)
    return np.asarray((found / kept_shares(distinct)[:, None, None])[which])


def rate_floats(rates: RatesByStratum) -> Floats:
    """The rates of the rules as floats."""
    return np.array([float(p) for p in rates.rates])


def reach(rates: RatesByStratum) -> Floats:
    """How far from t = 1 the generating function of each stratum is more than nothing to a float."""
    return np.minimum(1.0, _REACH / np.maximum(rates.counts @ rate_floats(rates), 1e-300))


def kept_shares(rates: RatesByStratum) -> Floats:
    """D of each stratum."""
    odds = np.array([float(p / (1 - p)) for p in rates.rates])
    log_stays = np.array([log_complement(p) for p in rates.rates])
    # Plans whose D may fall below 1/1000 are refused, so the difference keeps its digits.
    return np.asarray(1 - np.exp(rates.counts @ log_stays) * (rates.counts @ odds))


def _distinct(rates: RatesByStratum) -> tuple[RatesByStratum, NDArray[np.intp]]:
    """Strata that differ in their counts, and which of them each stratum is: there are few, even of a million."""
    found, which = np.unique(rates.counts, axis=0, return_inverse=True)
    return RatesByStratum(rates.rates, found), which.reshape(-1)
