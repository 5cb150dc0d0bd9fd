"""Unbiased estimates from strata whose records have different rates.

The rate class c of a record is a function of what is held, so released counts by class are known. With q_c the
probability that a record of class c moves and R_cd that it receives from a given other record of class d
(:mod:`stirred.swap.unequal`), g_c = 1 - q_c - R_cc, s_d the true number of records of class d with the swap values s,
and z_c their released number,

    E z_c = g_c s_c + n_c sum_d R_cd s_d,        so s = M^-1 E z with M = diag(g) + n R;
    E Z_c = g_c X_c + U_c sum_d R_cd s_d,        for the records of class c that are in h: U_c in all, X_c with s.

Both are solved for what is true, so the estimate of X = sum X_c is linear in the release and unbiased. Its variance
follows from the variances of cells by class (:mod:`stirred.swap.unequal_moments`), taken at the estimates: a plug-in,
not unbiased. Counts only, not scores of linked rows; and no covariances between different swap values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.swap.law_constants import WEAKEST
from stirred.swap.rates import RatesByStratum
from stirred.swap.unequal import moved_probabilities, received_probabilities
from stirred.swap.unequal_moments import unequal_cell_moments

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 300_000
"""Variances of cells that are computed for one question; each takes about a hundred microseconds."""


@dataclass(frozen=True, eq=False)
class MixedStratum:
    """The released counts of one stratum: ``[rule, held group, swap group]``; the last held group is all others, and
    the last swap group all other values."""

    counts: Floats

    @property
    def classes(self) -> Floats:
        """n_c"""
        return np.asarray(self.counts.sum(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class MixedEstimates:
    """Estimates and variances ``[held group, swap group]``; None where the rates mix too much."""

    values: Floats
    variances: Floats
    shrinkage: float
    """The mean of g: how much of an association is left."""


def estimate_mixed(rates: RatesByStratum, strata: list[MixedStratum]) -> list[MixedEstimates | None]:
    """Estimates for strata with records of different rates; ``rates`` has a row for each."""
    moved, received = moved_probabilities(rates), received_probabilities(rates)
    solved = [_Solved.of(one, moved[at], received[at]) for at, one in enumerate(strata)]
    asked = [(at, one) for at, one in enumerate(solved) if one is not None]
    if not asked:
        return [None] * len(strata)
    parts = [one.requests() for _, one in asked]
    stratum = np.repeat([at for at, _ in asked], [len(part[0]) for part in parts])
    held, swapped, both = (np.concatenate([part[number] for part in parts]) for number in range(3))
    _, found = unequal_cell_moments(rates, stratum, held, swapped, both)
    ends = np.cumsum([len(part[0]) for part in parts])
    result: list[MixedEstimates | None] = [None] * len(strata)
    for (at, one), end, part in zip(asked, ends, parts, strict=True):
        variances = one.combine(found[end - len(part[0]) : end])
        result[at] = MixedEstimates(one.total, variances, one.left)
    return result


def evaluations(strata: list[MixedStratum]) -> int:
    """How many variances of cells the strata take."""
    total = 0
    for one in strata:
        groups = 2 * int(np.count_nonzero(one.classes))
        total += groups * (groups + 1) // 2 * (one.counts.shape[1] - 1) * (one.counts.shape[2] - 1)
    return total


@dataclass(frozen=True, eq=False)
class _Solved:
    used: Integers
    rules: int
    classes: Floats
    held: Floats
    """U_c by held group"""
    swapped: Floats
    """s_c by swap group, estimated"""
    parts: Floats
    """X_c by held and swap group, estimated"""
    weights: Floats
    """For each held group, class and 1 or 0 for in it or not, the weight of a record in the estimate"""
    left: float

    @classmethod
    def of(cls, one: MixedStratum, moved: Floats, received: Floats) -> _Solved | None:
        used = np.flatnonzero(one.classes)
        n, counts = one.classes[used], one.counts[used]
        r = received[np.ix_(used, used)]
        g = 1 - moved[used] - np.diag(r)
        system = np.diag(g) + n[:, None] * r
        if np.abs(g).min() <= WEAKEST or np.linalg.svd(system, compute_uv=False)[-1] <= WEAKEST:
            return None
        inverse = np.linalg.inv(system)
        swapped = inverse @ counts.sum(axis=1)
        held = counts.sum(axis=2)
        parts = (counts - held[:, :, None] * (r @ swapped)[:, None, :]) / g[:, None, None]
        lost = np.einsum("eh,ed,dc->hc", held / g[:, None], r, inverse)
        weights = np.stack([1 / g - lost, -lost], axis=2)
        return cls(used, len(moved), n, held, swapped, parts, weights, float(np.average(g, weights=n)))

    @property
    def total(self) -> Floats:
        """The estimates by held and swap group."""
        return np.asarray(self.parts.sum(axis=0))

    def _groups(self) -> tuple[Floats, Floats]:
        """Of each class those in a held group and the others: their number, and how many have s."""
        inside = np.clip(self.parts, 0, np.minimum(self.held[:, :, None], np.maximum(self.swapped, 0)[:, None, :]))
        outside = np.clip(self.swapped[:, None, :] - inside, 0, (self.classes[:, None] - self.held)[:, :, None])
        held = np.stack([self.held, self.classes[:, None] - self.held], axis=1)
        both = np.stack([inside, outside], axis=1)
        return held.reshape(-1, held.shape[2]), both.reshape(-1, *both.shape[2:])

    def _pairs(self) -> list[tuple[int, int]]:
        groups = 2 * len(self.used)
        return [(a, b) for a in range(groups) for b in range(a, groups)]

    def requests(self) -> tuple[Floats, Floats, Floats]:
        """Cells whose variances are needed: groups, and groups two at a time; by rule those in them, those with s, and
        those with both."""
        held, both = self._groups()
        many_h, many_s = self.held.shape[1] - 1, self.swapped.shape[1] - 1
        pairs, shape = self._pairs(), (len(self._pairs()), many_h, many_s, self.rules)
        h, s, x = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for at, (a, b) in enumerate(pairs):
            for one in {a, b}:
                rule = self.used[one // 2]
                h[at, :, :, rule] += held[one][:-1, None]
                x[at, :, :, rule] += both[one][:-1, :-1]
        # Swap values by class as the groups add up to, so that cells are possible.
        for place, rule in enumerate(self.used):
            s[..., rule] = (both[2 * place] + both[2 * place + 1])[None, :-1, :-1]
        return tuple(part.reshape(-1, self.rules) for part in (h, s, x))  # type: ignore[return-value]

    def combine(self, variances: Floats) -> Floats:
        """The variance of each estimate, from those of groups and of two groups together."""
        many_h, many_s = self.held.shape[1] - 1, self.swapped.shape[1] - 1
        found = variances.reshape(-1, many_h, many_s)
        pairs = {pair: at for at, pair in enumerate(self._pairs())}
        total = np.zeros((many_h, many_s))
        for (a, b), at in pairs.items():
            weight = self.weights[:-1, a // 2, a % 2] * self.weights[:-1, b // 2, b % 2]
            if a == b:
                total += weight[:, None] * found[at]
            else:
                total += weight[:, None] * (found[at] - found[pairs[a, a]] - found[pairs[b, b]])
        return np.maximum(total, 0.0)
