"""What an attacker believes who knows two published margins of a file and nothing else, in a sample of its strata.

Beliefs about one stratum are worked out by :mod:`stirred.invariants.margin_posterior`. Which strata are looked at
follows from the hash of a plan and the margins, so whoever holds a release finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from stirred.invariants.margin_posterior import FEWEST_SWEEPS, SWEEPS, Law, Posterior, posterior
from stirred.invariants.revealing import TwoMargins

POINTS = 12
"""Records at equal distances whose strata an attacker's beliefs are worked out for."""
_MOVES = 1 << 24
"""Moves that each chain may make in one stratum."""
_MOST_RECORDS = 1 << 22
"""Larger strata are left out: a chain starts by shuffling their records."""
_WORKERS = 4
"""Strata looked at side by side: dense tables of large ones take memory."""
LAWS: tuple[Law, ...] = ("hypergeometric", "uniform")


@dataclass(frozen=True)
class Belief:
    """What an attacker believes who knows the published counts alone, under one law over the tables they allow.

    Shares are of records, estimated from the strata of records at equal distances.
    """

    law: str
    guessed_share: float
    """Expected to be guessed rightly, by the likeliest swapped value for what is held."""
    whole_share: float
    """Expected to share what is held with others, all of whom have the same swapped value."""


@dataclass(frozen=True)
class Beliefs:
    """An attacker's beliefs under both laws, in a sample of the strata."""

    strata: int
    """Strata that were looked at,"""
    listed: int
    """of these with all tables listed (uniform law),"""
    drawn: int
    """with tables drawn by Markov chains,"""
    disagreeing: int
    """of which the chains do not agree, so that their numbers are rough,"""
    too_large: int
    """and strata that are too large for this, and left out."""
    laws: tuple[Belief, ...]


def believe(margins: TwoMargins, plan_hash: str) -> Beliefs:
    """An attacker's beliefs in the strata of some records, chosen at equal distances with a start from the plan's hash.

    The strata are a function of the plan and the published counts, and so are the beliefs.
    """
    ends = np.cumsum(margins.sizes)
    start = int(plan_hash[:8], 16) / 2**32
    at = np.minimum(((np.arange(POINTS) + start) / POINTS * ends[-1]).astype(np.int64), ends[-1] - 1)
    chosen, times = np.unique(np.searchsorted(ends, at, side="right"), return_counts=True)

    def of(number: int) -> dict[Law, Posterior] | None:
        held, swapped = margins.stratum(number)
        sweeps = min(SWEEPS, _MOVES // (len(held) * len(swapped)))
        if sweeps < FEWEST_SWEEPS or int(held.sum()) > _MOST_RECORDS:
            return None
        return {law: posterior(held, swapped, law, plan_hash, sweeps) for law in LAWS}

    with ThreadPoolExecutor(_WORKERS) as pool:  # kernels do without the interpreter lock
        believed = list(pool.map(of, chosen.tolist()))
    found = [(many, by_law) for many, by_law in zip(times.tolist(), believed, strict=True) if by_law is not None]
    uniform = [by_law["uniform"] for _, by_law in found]
    return Beliefs(
        len(chosen),
        sum(one.method == "listed" for one in uniform),
        sum(one.method == "chain" for one in uniform),
        sum(not one.converged for one in uniform),
        len(chosen) - len(found),
        tuple(_belief(law, [(many, by_law[law]) for many, by_law in found]) for law in LAWS if found),
    )


def _belief(law: Law, found: Sequence[tuple[int, Posterior]]) -> Belief:
    weight = sum(many for many, _ in found)
    guessed = sum(many * one.guessed for many, one in found)
    whole = sum(many * one.whole_rows for many, one in found)
    return Belief(law, guessed / weight, whole / weight)
