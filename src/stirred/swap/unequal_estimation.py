"""Estimates from strata whose records have different rates: unbiased for what the release tells, bounds for the rest.

The rate class c of a record is a function of what is held, so released counts by class are known. With q_c the
probability that a record of class c moves and R_cd that it receives from a given other record of class d
(:mod:`stirred.swap.unequal`), g_c = 1 - q_c - R_cc, s_d the true number of records of class d with the swap values s,
z_c their released number, and of the n_c records of class c U_c in h, X_c of these with s, Z_c of them released so,

    E z_c = g_c s_c + n_c sum_d R_cd s_d,           so s = M^-1 E z with M = diag(g) + n R;
    E (Z_c - U_c z_c / n_c) = g_c (X_c - U_c s_c / n_c).

So X = sum_c X_c has a part between classes, which needs M alone, and for each class with records both in h and not a
part within it, which needs g_c. What is solved is linear in the release and unbiased. A class of few records and a high
rate has g_c near 0: its X_c is *open*, however well other classes are known. It is in [0, U_c], or s_c less something
in [0, n_c - U_c], whichever is narrower; the margins of the stratum may say more. Where M cannot be inverted, only what
has the same share U_c / n_c in all classes is not open.

Variances follow from those of cells by class (:mod:`stirred.swap.unequal_moments`), taken at the estimates: a plug-in,
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
    """Of a stratum with different rates, for the groups that are asked for: ``[held group, swap group]``."""

    values: Floats
    """The estimate of what is not open, with the least that the rest can be"""
    variances: Floats
    width: Floats
    """How much more than its least the rest can be; 0 where nothing is open."""
    left: Floats
    """How much of an association is left on average, by held group; 0 where everything is open."""


def estimate_mixed(rates: RatesByStratum, strata: list[MixedStratum]) -> list[MixedEstimates]:
    """Estimates for strata with records of different rates; ``rates`` has a row for each."""
    if not strata:
        return []
    moved, received = moved_probabilities(rates), received_probabilities(rates)
    solved = [_Solved.of(one, moved[at], received[at]) for at, one in enumerate(strata)]
    parts = [one.requests() for one in solved]
    many = [len(part[0]) for part in parts]
    held, swapped, both = (np.concatenate([part[number] for part in parts]) for number in range(3))
    _, found = unequal_cell_moments(rates, np.repeat(np.arange(len(strata)), many), held, swapped, both)
    variances = [one.combine(part) for one, part in zip(solved, np.split(found, np.cumsum(many)[:-1]), strict=True)]
    return [
        MixedEstimates(one.values, variance, one.width, one.left)
        for one, variance in zip(solved, variances, strict=True)
    ]


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
    """X_c by held and swap group, estimated; as if unrelated where it is open"""
    weights: Floats
    """For each held group, class and 1 or 0 for in it or not, the weight of a record in the estimate"""
    values: Floats
    width: Floats
    left: Floats

    @classmethod
    def of(cls, one: MixedStratum, moved: Floats, received: Floats) -> _Solved:
        used = np.flatnonzero(one.classes)
        n, counts = one.classes[used], one.counts[used]
        held, released = counts.sum(axis=2), counts.sum(axis=1)
        r = received[np.ix_(used, used)]
        g = 1 - moved[used] - np.diag(r)
        system = np.diag(g) + n[:, None] * r
        singular = float(np.linalg.svd(system, compute_uv=False)[-1])
        share, undone = held / n[:, None], np.abs(g) > WEAKEST
        inner = (held > 0) & (held < n[:, None])
        slope = np.where(inner & undone[:, None], 1 / np.where(undone, g, 1.0)[:, None], 0.0)
        loading, least, width = _open_classes(inner & ~undone[:, None], n, held, released.sum(axis=0))
        loading = np.where(np.isnan(loading), share, loading)
        differ = np.ptp(loading, axis=0) > 1e-12  # else the part between classes is known: all s_c add up to n_s
        if singular > WEAKEST:
            inverse = np.linalg.inv(system)
            swapped, of_class, known = inverse @ released, loading.T @ inverse, np.ones(len(differ), dtype=np.bool_)
        else:
            swapped = n[:, None] * released.sum(axis=0) / n.sum()
            of_class, known = np.tile(loading.max(axis=0)[:, None], len(n)), ~differ
        apart = slope[:, :, None] * (counts - share[:, :, None] * released[:, None, :])
        inside, outside = of_class + (slope * (1 - share)).T, of_class - (slope * share).T
        left = np.where(slope != 0, np.abs(g)[:, None], np.where(differ, min(singular, 1.0), 1.0))
        return cls(
            used,
            len(moved),
            n,
            held,
            swapped,
            share[:, :, None] * swapped[:, None, :] + apart,
            np.stack([inside, outside], axis=2) * known[:, None, None],
            (of_class @ released + apart.sum(axis=0) + least)[:-1, :-1],
            width[:-1, :-1],
            np.where(known, np.average(left, axis=0, weights=n), 0.0),
        )

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


def _open_classes(is_open: NDArray[np.bool_], n: Floats, held: Floats, with_s: Floats) -> tuple[Floats, Floats, Floats]:
    """What is said of X_c where it is open: it is s_c times a loading (0 or 1, by class and held group; nan where it is
    not open) and something between two whole numbers. Their least and width, added over the classes."""
    others = held > n[:, None] / 2  # fewer are not in h: s_c less those of them that have s
    unknown = np.where(others, n[:, None] - held, held)[:, :, None]
    fewest, most_s = np.maximum(0.0, with_s - (n.sum() - n)[:, None]), np.minimum(n[:, None], with_s)  # s_c
    low = np.maximum(0.0, unknown + fewest[:, None, :] - n[:, None, None])
    high = np.minimum(unknown, most_s[:, None, :])
    least = np.where(others[:, :, None], -high, low)
    here = is_open[:, :, None]
    return (
        np.where(is_open, others.astype(np.float64), np.nan),
        np.where(here, least, 0.0).sum(axis=0),
        np.where(here, high - low, 0.0).sum(axis=0),
    )
