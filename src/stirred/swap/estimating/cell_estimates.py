"""Estimates true counts from the released cells of a swap, with their variances and covariances.

A *held class* is a kind of record by what it holds: a combination of held values, or the multiset of its linked rows.
Its *score* in a group h is how many rows of the asked table it has there: 0 or 1 for the records themselves, any number
for persons of households. A *swap class* is a combination of swap values, and is in one group s or in none. A count is
then, summed over strata, the sum of score times indicator over the records, which is what
:mod:`stirred.swap.law.moments` gives the moments of. Everything is grouped: nothing here is as long as the file.

With scores u of what is held and indicators v of swap values, centred in a stratum of n records, the released sum W =
sum u_i v_sigma(i) has the mean lambda [uv] and the covariances of :func:`stirred.swap.law.moments.score_covariance`. So
[uv] is estimated by W/lambda. For the covariance of two such sums, with brackets for sums over the true records:

    Q = [u v u' v'] is estimated by [uu'][vv']/n + (Q_released - [uu'][vv']/n) / lambda,
    P1 = [uv][u'v'] and P2 = [uv'][u'v] by the solution of
        (W W' + W* W*') = (lambda^2 + a1 + a2)(P1 + P2) + 2 (a4 Q + a3 [uu'][vv']),
        (W W' - W* W*') = (lambda^2 + a1 - a2)(P1 - P2),      W* = sum u_i v'_sigma(i), W*' = sum u'_i v_sigma(i),

all without bias, hence so is the covariance. Strata are independent; their estimates and covariances add, unclipped.
Strata whose lambda is near 0 cannot be inverted: their part of a count is only bounded by the margins, and the bounds
are added to every interval. A count with a part that is only bounded has no estimate, only an interval.

*Strata whose records have different rates.* The rate class c of a record is a function of what is held, so released
counts by class are known. With q_c the probability that a record of class c moves and R_cd that it receives from a
given other record of class d (:mod:`stirred.swap.law.moments`), g_c = 1 - q_c - R_cc, s_d the true number of records of
class d with the swap values s, z_c their released number, and of the n_c records of class c U_c in h, X_c of these with
s, Z_c of them released so,

    E z_c = g_c s_c + n_c sum_d R_cd s_d,           so s = M^-1 E z with M = diag(g) + n R;
    E (Z_c - U_c z_c / n_c) = g_c (X_c - U_c s_c / n_c).

So X = sum_c X_c has a part between classes, which needs M alone, and for each class with records both in h and not a
part within it, which needs g_c. What is solved is linear in the release and unbiased. A class of few records and a high
rate has g_c near 0: its X_c is *open*, however well other classes are known. It is in [0, U_c], or s_c less something
in [0, n_c - U_c], whichever is narrower; the margins of the stratum may say more. Where M cannot be inverted, only what
has the same share U_c / n_c in all classes is not open. Variances follow from those of cells by class, taken at the
estimates: a plug-in, not unbiased. Counts only, not scores of linked rows; and no covariances between different swap
values.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.swap.data.counting import RatesByStratum, look_up, pairs
from stirred.swap.law.moments import (
    WEAKEST,
    LawConstants,
    moved_probabilities,
    received_probabilities,
    unequal_cell_moments,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Shape(NamedTuple):
    """How many groups there are by match values, by what is held and by swap values."""

    areas: int
    held: int
    swapped: int


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """The released cells that a question counts, by stratum, held class and swap class."""

    shape: Shape
    law: LawConstants
    """Of each stratum."""
    area: Integers
    """Of each stratum its group by match values; -1 where its records are not asked for."""
    stratum: Integers
    """Of each released cell its stratum,"""
    held: Integers
    """held class,"""
    swapped: Integers
    """swap class"""
    count: Integers
    """and number of records."""
    class_of: Integers
    """For each positive score its held class,"""
    group_of: Integers
    """its group,"""
    score: Integers
    """and the score."""
    swap_group: Integers
    """Of each swap class its group; -1 where it is not asked for."""
    rates: RatesByStratum | None = None
    """Which rates the records of each stratum have, where a plan gives several,"""
    rule: Integers | None = None
    """and the rule of each held class."""

    def __repr__(self) -> str:
        return f"<Tally: {len(self.count):,} cells in {len(self.area):,} strata>"

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Which strata that are asked for have records of different rates."""
        if self.rates is None:
            return np.zeros(len(self.area), dtype=np.bool_)
        return np.asarray(~np.logical_or.reduce(list(self.rates.one_each().values())) & (self.area >= 0))

    @property
    def changeable(self) -> NDArray[np.bool_]:
        """Which strata have records that differ both in what is counted and in their swap values: a swap changes no
        count of the others."""
        kind = np.arange(self.classes)
        if self.rule is not None:  # classes of records that differ in their rates alone are one
            kind = np.full(self.classes, -1)
            kind[self.class_of] = self.group_of
        several = [
            _differ(self.stratum, part, len(self.area)) for part in (kind[self.held], self.swap_group[self.swapped])
        ]
        return np.asarray(several[0] & several[1] & (self.area >= 0))

    @property
    def classes(self) -> int:
        """The number of held classes."""
        return int(self.held.max(initial=-1)) + 1

    def merged(self, areas: Integers, held: Integers, swapped: Integers) -> Tally:
        """The same cells with groups put together: for each group the number of its new one.

        Merging before estimating is what keeps covariances within a stratum right.
        """
        groups = Shape(*(int(part.max(initial=-1)) + 1 for part in (areas, held, swapped)))
        keys, at = np.unique(self.class_of * groups.held + held[self.group_of], return_inverse=True)
        return replace(
            self,
            shape=groups,
            area=np.append(areas, -1)[self.area],
            class_of=keys // max(groups.held, 1),
            group_of=keys % max(groups.held, 1),
            score=np.bincount(at.reshape(-1), self.score).astype(np.int64),
            swap_group=np.append(swapped, -1)[self.swap_group],
        )


@dataclass(frozen=True, eq=False, repr=False)
class StratumCells:
    """Cells (stratum, h, s) that the margins allow, with what is public about them: a row for each."""

    stratum: Integers
    held: Integers
    swapped: Integers
    size: Floats
    """n, the records of the stratum"""
    scores: Floats
    """sum of u over its records"""
    squares: Floats
    """sum of u^2"""
    cubes: Floats
    """sum of u^3"""
    largest: Floats
    """the largest u"""
    records: Floats
    """records with the swap values s"""
    released: Floats
    """z: sum of u over released records with s"""
    released_squares: Floats
    """sum of u^2 over them"""

    def __repr__(self) -> str:
        return f"<StratumCells: {len(self.stratum):,}>"

    @property
    def low(self) -> Floats:
        """The least that the margins allow."""
        return np.maximum(0.0, self.scores - (self.size - self.records) * self.largest)

    @property
    def high(self) -> Floats:
        """The most that the margins allow."""
        return np.minimum(self.scores, self.records * self.largest)


def stratum_cells(tally: Tally) -> StratumCells:
    """All cells of strata that are asked for, those released empty included."""
    shape, asked = tally.shape, tally.area >= 0
    inside = asked[tally.stratum]
    m, k, t, many = (part[inside] for part in (tally.stratum, tally.held, tally.swapped, tally.count))
    row, at = scores_of(tally, k)
    u, h, weight = tally.score[at].astype(np.float64), tally.group_of[at], many[row].astype(np.float64)
    s = tally.swap_group[t]
    held_keys, held_at = np.unique(m[row] * shape.held + h, return_inverse=True)
    sums = [np.bincount(held_at, weight * u**power) for power in (1, 2, 3)]
    largest = np.zeros(len(held_keys))
    np.maximum.at(largest, held_at, u)
    chosen = s >= 0
    swap_keys, swap_at = np.unique(m[chosen] * shape.swapped + s[chosen], return_inverse=True)
    records = np.bincount(swap_at, many[chosen])
    both = chosen[row]
    keys, cell_at = np.unique((m[row[both]] * shape.held + h[both]) * shape.swapped + s[row[both]], return_inverse=True)
    z1, z2 = np.bincount(cell_at, weight[both] * u[both]), np.bincount(cell_at, weight[both] * u[both] ** 2)
    _, a, b = pairs(len(tally.area), held_keys // shape.held, swap_keys // shape.swapped)
    wanted = held_keys[a] * shape.swapped + swap_keys[b] % shape.swapped
    place, found = look_up(keys, wanted)
    stratum = held_keys[a] // shape.held
    return StratumCells(
        stratum=stratum,
        held=held_keys[a] % shape.held,
        swapped=swap_keys[b] % shape.swapped,
        size=tally.law.size[stratum].astype(np.float64),
        scores=sums[0][a].astype(np.float64),
        squares=sums[1][a].astype(np.float64),
        cubes=sums[2][a].astype(np.float64),
        largest=largest[a],
        records=records[b].astype(np.float64),
        released=np.where(found, z1[place], 0.0) if len(keys) else np.zeros(len(wanted)),
        released_squares=np.where(found, z2[place], 0.0) if len(keys) else np.zeros(len(wanted)),
    )


def scores_of(tally: Tally, held: Integers) -> tuple[Integers, Integers]:
    """Each row beside each positive score of its class: positions of rows, and of scores."""
    order = np.argsort(tally.class_of, kind="stable")
    many = np.bincount(tally.class_of, minlength=tally.classes)
    first = np.cumsum(many) - many
    row = np.repeat(np.arange(len(held)), many[held])
    ends = np.cumsum(many[held])
    within = np.arange(len(row)) - np.repeat(ends - many[held], many[held])
    return row, order[first[held[row]] + within]


def _differ(stratum: Integers, part: Integers, strata: int) -> NDArray[np.bool_]:
    """In which strata the entries are not all the same."""
    least, most = np.full(strata, np.iinfo(np.int64).max), np.full(strata, np.iinfo(np.int64).min)
    np.minimum.at(least, stratum, part)
    np.maximum.at(most, stratum, part)
    return np.asarray(least < most)


MOST = 300_000
"""Variances of cells that are computed for one question; each takes about a hundred microseconds."""


def _solved_strata(rates: RatesByStratum, strata: list[Floats]) -> list[tuple[_Solved, Floats]]:
    """Estimates for strata with records of different rates, and their variances; ``rates`` has a row for each.

    Of each stratum the released counts are given as ``[rule, held group, swap group]``; the last held group is all
    others, and the last swap group all other values.
    """
    moved, received = moved_probabilities(rates), received_probabilities(rates)
    solved = [_Solved.of(one, moved[at], received[at]) for at, one in enumerate(strata)]
    parts = [one.requests() for one in solved]
    many = [len(part[0]) for part in parts]
    held, swapped, both = (np.concatenate([part[number] for part in parts]) for number in range(3))
    _, found = unequal_cell_moments(rates, np.repeat(np.arange(len(strata)), many), held, swapped, both)
    return [(one, one.combine(part)) for one, part in zip(solved, np.split(found, np.cumsum(many)[:-1]), strict=True)]


def _evaluations(counts: Floats) -> int:
    """How many variances of cells a stratum takes."""
    groups = 2 * int(np.count_nonzero(counts.sum(axis=(1, 2))))
    return groups * (groups + 1) // 2 * int(np.prod(np.array(counts.shape[1:]) - 1))


@dataclass(frozen=True, eq=False)
class _Solved:
    """A stratum whose records have different rates, for the groups that are asked for."""

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
    """``[held group, swap group]``: the estimate of what is not open, with the least that the rest can be"""
    width: Floats
    """How much more than its least the rest can be; 0 where nothing is open."""
    left: Floats
    """How much of an association is left on average, by held group; 0 where everything is open."""

    @classmethod
    def of(cls, counts: Floats, moved: Floats, received: Floats) -> _Solved:
        classes = np.asarray(counts.sum(axis=(1, 2)))
        used = np.flatnonzero(classes)
        n, counts = classes[used], counts[used]
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


Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class CellEstimates:
    """Cells by stratum with their estimates. ``answer`` numbers the sums over strata that are asked for."""

    cells: StratumCells
    answer: Integers
    answers: Integers
    """For each answer its key: (area, h, s) packed by the shape of the tally."""
    law: LawConstants
    """Of the stratum of each cell."""
    mixed: Flags
    """Which cells are in strata with different rates,"""
    mixed_values: Floats
    """their estimates"""
    mixed_variances: Floats
    """and variances,"""
    mixed_width: Floats
    """and how much more the part of each can be that is not estimated."""

    def __repr__(self) -> str:
        return f"<CellEstimates: {len(self.answers):,} counts>"

    @cached_property
    def held_spread(self) -> Floats:
        """[uu]"""
        one = self.cells
        return np.maximum(one.squares - one.scores**2 / one.size, 0.0)

    @cached_property
    def swap_spread(self) -> Floats:
        """[vv]"""
        one = self.cells
        return np.asarray(one.records * (one.size - one.records) / one.size)

    @cached_property
    def varies(self) -> Flags:
        """Which cells a swap can change; the others are known."""
        one = self.cells
        alike = one.squares * one.size - one.scores**2 < 0.5  # whole numbers, exact below 2^53
        return np.asarray(~alike & (one.records < one.size) & (one.size > 1))

    @cached_property
    def estimated(self) -> Flags:
        """Which cells are estimated, at least in part: they vary, and lambda is not near 0."""
        return self.varies & self.law.invertible

    @cached_property
    def bounded(self) -> Flags:
        """Which cells the margins alone bound, or a part of them."""
        return self.varies & (~self.law.invertible | (self.mixed_width > 0))

    @cached_property
    def low(self) -> Floats:
        """The least that the estimated part of a cell can be; of one that is not estimated, all of it."""
        return np.asarray(self.cells.low - np.where(self.estimated, self.mixed_width, 0.0))

    @cached_property
    def width(self) -> Floats:
        """How much more than that what is not estimated can be."""
        alone = self.varies & ~self.estimated
        return np.where(alone, self.cells.high - self.cells.low, np.where(self.estimated, self.mixed_width, 0.0))

    @cached_property
    def independent(self) -> Floats:
        """The counts if held and swap values had nothing to do with each other."""
        return np.asarray(self.cells.scores * self.cells.records / self.cells.size)

    @cached_property
    def values(self) -> Floats:
        """The estimate of each cell: exact where nothing can change; as under independence where it is only bounded,
        and with the least of a part that is, where a part is. Neither of the last two is shown."""
        shift = np.divide(
            self.cells.released - self.independent, self.law.shrinkage, out=np.zeros(len(self.answer)),
            where=self.estimated,
        )  # fmt: skip
        shift = np.where(self.mixed & self.estimated, self.mixed_values - self.independent, shift)
        return np.where(self.varies, self.independent + shift, self.cells.released)

    @cached_property
    def squares(self) -> Floats:
        """The estimate of the sum of u^2 over true records with s."""
        one = self.cells
        mean = one.squares * one.records / one.size
        shift = np.divide(
            one.released_squares - mean, self.law.shrinkage, out=np.zeros(len(mean)), where=self.estimated
        )
        return np.where(self.varies, mean + shift, one.released_squares)

    @cached_property
    def variances(self) -> Floats:
        """The unbiased estimate of the variance of each estimated cell; may be negative in tiny strata."""
        law, known = self.law, self.law.a3 * self.held_spread * self.swap_spread
        four = self.fourth(self.values, self.squares)
        own = self.cells.released - self.independent
        total = law.shrinkage**2 + law.a1 + law.a2
        safe = np.where(np.abs(total) > 1e-6, total, law.shrinkage**2)
        safe = np.where(self.estimated, safe, 1.0)
        product = (own**2 - law.a4 * four - known) / safe
        found = law.a4 * four + (law.a1 + law.a2) * product + known
        return self._scaled(found)

    def _scaled(self, variances: Floats) -> Floats:
        """Variances of estimates from those of released cells."""
        found = np.divide(variances, self.law.shrinkage**2, out=np.zeros(len(variances)), where=self.estimated)
        return np.where(self.mixed & self.estimated, self.mixed_variances, found)

    def fourth(self, values: Floats, squares: Floats) -> Floats:
        """[u^2 v^2] where the true count and the true sum of u^2 with s are these."""
        one = self.cells
        a, b = one.scores / one.size, one.records / one.size
        return np.asarray((1 - 2 * b) * (squares - 2 * a * values + a**2 * one.records) + b**2 * self.held_spread)

    def variances_at(self, values: Floats) -> Floats:
        """The variance of each estimate if the true counts were these; sums of u^2 follow as they do among records.

        True counts are whole numbers. One between two of them stands for strata of which some have the one and some the
        other, so their variances are averaged: the formula at the mean would give 0 in strata of two records.
        """
        one, law = self.cells, self.law
        squares = np.clip(self.squares, values, one.squares) + self.square_per_row * (values - self.clipped)
        # Rows in few records have large squares, with s and elsewhere: sums of u^2 are at least those of equal numbers.
        least = np.maximum(values, values**2 / np.maximum(one.records, 1.0))
        others = (one.scores - values) ** 2 / np.maximum(one.size - one.records, 1.0)
        most = np.minimum(values * one.largest, one.squares - np.maximum(one.scores - values, others))
        squares = np.clip(squares, least, np.maximum(most, least))
        delta = values - self.independent
        steps = (values - self.low) / np.maximum(self.unit_size, 1.0)
        between = (steps - np.floor(steps)) * (np.ceil(steps) - steps) * np.maximum(self.unit_size, 1.0) ** 2
        found = (
            law.a4 * self.fourth(values, squares)
            + (law.a1 + law.a2) * (delta**2 + between)
            + law.a3 * self.held_spread * self.swap_spread
        )
        return self._scaled(np.maximum(found, 0.0))

    @cached_property
    def clipped(self) -> Floats:
        """Estimates within what the margins allow; for variances and displays, never for sums."""
        return np.clip(self.values, self.low, self.cells.high)

    @cached_property
    def spread_if_independent(self) -> Floats:
        """The variance of each estimate under independence: a function of the invariants alone."""
        one = self.cells
        squares = one.squares * one.records / one.size
        found = self.law.a4 * self.fourth(self.independent, squares) + self.law.a3 * self.held_spread * self.swap_spread
        return self._scaled(np.maximum(found, 0.0))

    def some(self, which: Integers) -> CellEstimates:
        """Some of the cells, each an answer of its own."""
        answers = self.answers[self.answer[which]]
        return replace(self.among(which), answer=np.arange(len(which)), answers=answers)

    def among(self, which: Integers) -> CellEstimates:
        """Some of the cells, for the same answers."""
        return CellEstimates(
            StratumCells(*(getattr(self.cells, one.name)[which] for one in fields(StratumCells))),
            self.answer[which],
            self.answers,
            self.law.among(which),
            self.mixed[which],
            self.mixed_values[which],
            self.mixed_variances[which],
            self.mixed_width[which],
        )

    @cached_property
    def unit_size(self) -> Floats:
        """The mean score of a row's record: how many rows move together."""
        one = self.cells
        return np.divide(one.squares, one.scores, out=np.ones(len(one.scores)), where=one.scores > 0)

    @cached_property
    def square_per_row(self) -> Floats:
        """The slope of u^2 on u among the records of the stratum: what a row more or less does to the sum of u^2. Where
        few records have many rows an estimate is off because these moved, with the squares of their numbers."""
        one = self.cells
        product = one.cubes - one.squares * one.scores / one.size
        return np.divide(product, self.held_spread, out=np.ones(len(product)), where=self.varies)

    def total(self, part: Floats | Flags) -> Floats:
        """A number of each cell, added up for each answer."""
        return np.asarray(np.bincount(self.answer, part, minlength=len(self.answers)), dtype=np.float64)


def cell_estimates(tally: Tally) -> CellEstimates:
    """Estimates of all counts by area, held group and swap group, stratum by stratum."""
    cells, shape = stratum_cells(tally), tally.shape
    keys = (tally.area[cells.stratum] * shape.held + cells.held) * shape.swapped + cells.swapped
    answers, answer = np.unique(keys, return_inverse=True)
    mixed, values, variances, width, left = _mixed_cells(tally, cells)
    law = tally.law.among(cells.stratum)
    law = replace(law, shrinkage=np.where(mixed, left, law.shrinkage))
    return CellEstimates(cells, answer.reshape(-1), answers, law, mixed, values, variances, width)


def _mixed_cells(tally: Tally, cells: StratumCells) -> tuple[Flags, Floats, Floats, Floats, Floats]:
    """Cells of strata with different rates: which they are, their estimates, variances, the width of what is open, and
    how much is left of an association; 0 where nothing can be estimated."""
    mixed = tally.mixed[cells.stratum]
    found = np.zeros((4, len(mixed)))
    if not mixed.any():
        return mixed, *found
    assert tally.rates is not None and tally.rule is not None
    group = np.full(tally.classes, -1, dtype=np.int64)
    group[tally.class_of] = tally.group_of
    strata, rows, places = np.unique(cells.stratum[mixed]), [], []
    by_row, by_cell = np.argsort(tally.stratum, kind="stable"), np.argsort(cells.stratum, kind="stable")
    for stratum in strata:
        own = by_row[slice(*np.searchsorted(tally.stratum[by_row], [stratum, stratum + 1]))]
        asked = by_cell[slice(*np.searchsorted(cells.stratum[by_cell], [stratum, stratum + 1]))]
        k = tally.held[own]
        held, swapped = np.unique(cells.held[asked]), np.unique(cells.swapped[asked])
        counts = np.zeros((len(tally.rates.rates), len(held) + 1, len(swapped) + 1))
        at = _place(held, group[k]), _place(swapped, tally.swap_group[tally.swapped[own]])
        np.add.at(counts, (tally.rule[k], *at), tally.count[own])
        rows.append(counts)
        places.append((asked, np.searchsorted(held, cells.held[asked]), np.searchsorted(swapped, cells.swapped[asked])))
    if sum(map(_evaluations, rows)) > MOST:
        raise errors.estimate_question("A question about records with different rates", "must have fewer groups")
    rates = RatesByStratum(tally.rates.rates, tally.rates.counts[strata])
    for (one, spread), (asked, h, s) in zip(_solved_strata(rates, rows), places, strict=True):
        found[:, asked] = one.values[h, s], spread[h, s], one.width[h, s], one.left[h]
    return mixed, *found


def _place(known: Integers, wanted: Integers) -> Integers:
    """The place of each among the known, or the one after the last."""
    at, found = look_up(known, wanted)
    return np.where(found, at, len(known))


@dataclass(frozen=True, eq=False)
class Block:
    """A count as a block of groups: all areas, held groups and swap groups among some."""

    areas: Flags
    held: Flags
    swapped: Flags


class Covariances:
    """Unbiased covariances between blocks; strata that cannot be inverted do not enter."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._usable = tally, tally.law.invertible & (tally.law.size > 1)
        self._rows: dict[bytes, tuple[Integers, Integers, Integers, Floats]] = {}

    def __repr__(self) -> str:
        return f"<Covariances of {self._tally!r}>"

    def between(self, one: Block, other: Block) -> float:
        """The covariance of the estimates of two blocks; of a block with itself, its variance."""
        both = one.areas & other.areas
        if not both.any():
            return 0.0
        tally, law = self._tally, self._tally.law
        m, k, t, many = self._within(both)
        if not len(m):
            return 0.0
        strata, at = np.unique(m, return_inverse=True)
        at = at.reshape(-1)
        n = law.size[strata].astype(np.float64)

        def total(part: Floats) -> Floats:
            return np.asarray(np.bincount(at, part * many), dtype=np.float64)

        def centred(part: Floats) -> Floats:
            return np.asarray(part - (total(part) / n)[at])

        f, e = (centred(self._scores(block.held)[k]) for block in (one, other))
        g, d = (centred(_chosen(block.swapped, tally.swap_group)[t]) for block in (one, other))
        uu, vv = total(f * e), total(g * d)
        straight, crossed = total(f * g) * total(e * d), total(f * d) * total(e * g)
        shrunk, a1, a2, a3, a4 = (part[strata] for part in (law.shrinkage, law.a1, law.a2, law.a3, law.a4))
        four = uu * vv / n + (total(f * e * g * d) - uu * vv / n) / shrunk
        known = a4 * four + a3 * uu * vv
        plus = (straight + crossed - 2 * known) / _away(shrunk**2 + a1 + a2, shrunk)
        minus = (straight - crossed) / _away(shrunk**2 + a1 - a2, shrunk)
        found = known + a1 * (plus + minus) / 2 + a2 * (plus - minus) / 2
        return float(np.sum(found / shrunk**2))

    def _within(self, areas: Flags) -> tuple[Integers, Integers, Integers, Floats]:
        key = areas.tobytes()
        if key not in self._rows:
            tally = self._tally
            wanted = (tally.area >= 0) & np.append(areas, False)[tally.area] & self._usable
            rows = wanted[tally.stratum]
            self._rows[key] = (
                tally.stratum[rows], tally.held[rows], tally.swapped[rows], tally.count[rows].astype(np.float64),
            )  # fmt: skip
        return self._rows[key]

    def _scores(self, held: Flags) -> Floats:
        tally = self._tally
        chosen = held[tally.group_of]
        found = np.bincount(tally.class_of[chosen], tally.score[chosen], minlength=tally.classes)
        return found.astype(np.float64)


def _chosen(groups: Flags, group_of: Integers) -> Floats:
    return np.append(groups, False)[group_of].astype(np.float64)


def _away(number: Floats, shrinkage: Floats) -> Floats:
    """A divisor that is not near 0: there the products of released sums are used as they are."""
    return np.where(np.abs(number) > 1e-6, number, shrinkage**2)


def key_parts(keys: Integers, shape: Shape) -> tuple[Integers, Integers, Integers]:
    """Area, held group and swap group of answers."""
    return keys // (shape.swapped * shape.held), keys // shape.swapped % shape.held, keys % shape.swapped
