"""Which shares of a budget to give to queries by level, so that stated variances over a tree of places are kept.

A query that gets rho at a level has noise of variance 1/rho, so the precision matrix of a level is linear in what its
queries get, and the variance of a best linear unbiased estimate is a convex function of all of it, of degree -1
(:class:`TreePrecision`). The recursions are those of :mod:`stirred.margins.tree`, for every kind of unit once; slopes
are taken backwards through them, so that all slopes together cost about as much as the variances.

Each asked margin has a limit for its variance. With shares s of a budget of one, the largest quotient of a variance and
its limit is F(s); variances are of degree -1 in the budget, so F(s) is also the smallest budget with which the shares s
keep all limits, and the shares with the smallest F are best for every budget. F is convex. Steps are those of
:mod:`stirred.margins.table_shares`: each multiplies a share by a power of the slope, on norms of all quotients that
come ever nearer to the largest.

A lower bound for all shares comes with it. For weights w of the quotients that add up to one let G be the weighted mean
and g its slopes downwards. G is convex of degree -1 and below F, so no shares have F below G^2 / m, where m is the
largest value of g's over all shares (weak duality). The weights also divide the budget among the targets: at the best
shares w_j times the budget is what target j costs, and what one percent more of its limit saves, in percent.

The invariant a reader must know: every candidate keeps at least ``least`` of the budget, so that nothing that the plan
measures is given up because no target asks for it. What can be told at all, and what is known exactly, then never
depends on how much each gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog, minimize

from stirred.margins.margin_blocks import Array, Margin, Split, representatives
from stirred.margins.spine import Index, Shapes, Spine
from stirred.margins.tree import Known

LARGEST = 512
"""Numbers that recodes may tie together in a unit."""

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class AskedPlace:
    """A margin that is asked for in the units of a level."""

    level: int
    margin: Margin
    typical: bool = False
    """Whether the mean variance over the units counts; otherwise that of every unit does."""


@dataclass(frozen=True, eq=False)
class _Family:
    """The blocks of one size, one after another: arrays have the axes kind, block, row, column."""

    size: int
    pieces: Array
    """Candidates, blocks, size, size: A'A of each."""
    proper: tuple[Array, ...]
    """By level and block, the projection on what is neither known exactly nor unknown."""
    squares: tuple[Array, ...]
    """For each asked margin a column for each class of its groups: coefficients on covariances."""


@dataclass(frozen=True, eq=False)
class _Pass:
    """What going up and down the tree once gives for one family of blocks."""

    covariance: list[Array]
    below: list[Array]
    everywhere: list[Array]


@dataclass(frozen=True, eq=False, repr=False)
class TreePrecision:
    """Candidates to be measured at levels of a tree, and margins asked for."""

    families: tuple[_Family, ...]
    levels: int
    candidate_levels: tuple[int, ...]
    asked: tuple[AskedPlace, ...]
    undetermined: tuple[bool, ...]
    """Of each asked margin, whether the candidates and what is known exactly leave it open."""
    counts: tuple[Array, ...]
    """By level the number of units of each kind."""
    children: tuple[Any, ...]
    """By level but the last, how many children of each kind a unit of each kind has: sparse."""
    links: tuple[_Link, ...]

    def __repr__(self) -> str:
        return f"<TreePrecision: {len(self.candidate_levels)} candidates on {self.levels} levels>"

    @classmethod
    def of(
        cls,
        name: str,
        spine: Spine,
        candidates: Sequence[tuple[int, Margin]],
        asked: Sequence[AskedPlace],
        fixed: Sequence[tuple[int, Margin]] = (),
        shapes: Shapes | None = None,
    ) -> TreePrecision:
        """``candidates`` are margins with the number of the level at which they are measured, ``fixed`` those that are
        known exactly; ``name`` is the table's, for messages."""
        shapes = shapes or Shapes.of(spine)
        levels = len(spine.levels)
        known = list({one.names: one for _, one in (*candidates, *fixed)}.values())
        split = Split.of(name, [one.margin for one in asked], known, LARGEST)
        few = [representatives(one.margin, split.axes)[0] for one in asked]
        structure = []
        for block in split.blocks:
            told = {margin.names: block.information(margin) for margin in known}
            below: Known | None = None
            found: list[Known] = []
            for level in range(levels - 1, -1, -1):
                measured = [(told[margin.names], 1.0) for at, margin in candidates if at == level]
                below = Known.of(
                    block.size, measured, [told[margin.names] for at, margin in fixed if at == level], below
                )
                found.insert(0, below)
            structure.append((block, told, found))
        undetermined = tuple(
            bool(split.unseen(few[number], [found[one.level].unknown for _, _, found in structure]).any())
            for number, one in enumerate(asked)
        )
        families = []
        for size in sorted({block.size for block in split.blocks}):
            members = [one for one in structure if one[0].size == size]
            squares = []
            for margin in few:
                parts = []
                for block, _, _ in members:
                    rows, copies = block.loadings(margin)
                    parts.append((rows[:, :, None] * rows[:, None, :] * copies[:, None, None]).reshape(len(rows), -1))
                squares.append(np.ascontiguousarray(np.hstack(parts).T))
            families.append(
                _Family(
                    size,
                    np.stack([[told[margin.names] for _, told, _ in members] for _, margin in candidates]),
                    tuple(
                        np.stack([found[level].proper @ found[level].proper.T for _, _, found in members])
                        for level in range(levels)
                    ),
                    tuple(squares),
                )
            )
        deepest = max(one.level for one in asked)
        return cls(
            tuple(families),
            levels,
            tuple(level for level, _ in candidates),
            tuple(asked),
            undetermined,
            tuple(np.bincount(kinds.of_unit, minlength=len(kinds)).astype(np.float64) for kinds in shapes.everywhere),
            tuple(_children(spine, shapes, level) for level in range(levels - 1)),
            tuple(_Link.of(spine, shapes, level) for level in range(1, deepest + 1)),
        )

    def variances(self, spent: Array) -> list[Array]:
        """The variances of each asked margin: a row for each kind of unit of its level (one row, of means, where the
        typical unit is asked for), a column for each class of groups that have the same variance."""
        return self._solved(spent)[0]

    def variances_and_slopes(self, spent: Array, weigh: Any) -> tuple[list[Array], Any, Array]:
        """Variances; what ``weigh`` says of them besides weights of the same shapes; and for each candidate by how much
        the sum of variances times weights falls when more is spent on it."""
        found, passes = self._solved(spent)
        said, weights = weigh(found)
        slopes = np.zeros(len(self.candidate_levels))
        for family, done in zip(self.families, passes, strict=True):
            slopes += self._slopes(family, done, weights)
        return found, said, np.maximum(slopes, 0.0)

    # -- up and down ---------------------------------------------------------------------------------------------

    def _solved(self, spent: Array) -> tuple[list[Array], list[_Pass]]:
        found = [np.zeros((1, family.shape[1])) for family in self.families[0].squares]
        passes = []
        for family in self.families:
            done = self._pass(family, spent)
            passes.append(done)
            for number, one in enumerate(self.asked):
                held = done.everywhere[one.level]
                flat = held.reshape(len(held), -1)
                if one.typical:
                    flat = (self.counts[one.level] @ flat / self.counts[one.level].sum())[None]
                found[number] = found[number] + flat @ family.squares[number]
        return [np.maximum(one, 0.0) for one in found], passes

    def _pass(self, family: _Family, spent: Array) -> _Pass:
        precision = [np.zeros_like(family.pieces[0]) for _ in range(self.levels)]
        for level, amount, piece in zip(self.candidate_levels, spent, family.pieces, strict=True):
            precision[level] = precision[level] + amount * piece
        covariance = [_inverse(precision[-1][None], family.proper[-1])]
        below: list[Array] = []
        for level in range(self.levels - 2, -1, -1):
            below.insert(0, _inverse(_added(self.children[level], covariance[0]), family.proper[level + 1]))
            covariance.insert(0, _inverse(precision[level] + below[0], family.proper[level]))
        everywhere = [covariance[0]]
        for level, link in enumerate(self.links, 1):
            own, above, told = covariance[level][link.own], below[level - 1][link.above], everywhere[-1][link.parent]
            gap = above - _times(_times(above, told), above)
            under = own - _times(_times(own, gap), own)
            everywhere.append(np.where(link.only[:, None, None, None], told, under))
        return _Pass(covariance, below, everywhere)

    def _slopes(self, family: _Family, done: _Pass, weights: Sequence[Array]) -> Array:
        """The derivative of the weighted variances by what each candidate gets, its sign turned."""
        towards = [np.zeros_like(one) for one in done.everywhere]
        for number, one in enumerate(self.asked):
            flat = weights[number] @ family.squares[number].T
            if one.typical:
                flat = (self.counts[one.level] / self.counts[one.level].sum())[:, None] * flat
            towards[one.level] += flat.reshape(towards[one.level].shape)
        of_covariance = [np.zeros_like(one) for one in done.covariance]
        of_below = [np.zeros_like(one) for one in done.below]
        for level in range(len(self.links), 0, -1):
            link, here = self.links[level - 1], towards[level]
            only = link.only[:, None, None, None]
            own, above = done.covariance[level][link.own], done.below[level - 1][link.above]
            told = done.everywhere[level - 1][link.parent]
            gap = above - _times(_times(above, told), above)
            free = np.where(only, 0.0, here)
            once = _times(_times(free, own), gap)
            of_gap = -_times(_times(own, free), own)
            twice = _times(_times(of_gap, above), told)
            of_covariance[level] += _added(link.from_own, free - once - _turned(once))
            of_below[level - 1] += _added(link.from_above, of_gap - twice - _turned(twice))
            up = np.where(only, here, -_times(_times(above, of_gap), above))
            towards[level - 1] += _added(link.from_parent, up)
        of_covariance[0] += towards[0]
        slopes = np.zeros(len(self.candidate_levels))
        for level in range(self.levels):
            own = done.covariance[level]
            of_sum = -_times(_times(own, of_covariance[level]), own)
            total = of_sum.sum(axis=0)
            for number, at in enumerate(self.candidate_levels):
                if at == level:
                    slopes[number] = -float((total * family.pieces[number]).sum())
            if level < self.levels - 1:
                above = done.below[level]
                back = -_times(_times(above, of_below[level] + of_sum), above)
                of_covariance[level + 1] += _added(self.children[level].T, back)
        return slopes


@dataclass(frozen=True, eq=False)
class _Link:
    """Of each kind of unit of a level: its kind from below, that of its parent from below, that of its parent from
    everywhere; whether it is an only child; and sparse matrices that add up over kinds."""

    own: Index
    above: Index
    parent: Index
    only: Any
    from_own: Any
    from_above: Any
    from_parent: Any

    @classmethod
    def of(cls, spine: Spine, shapes: Shapes, level: int) -> _Link:
        sample = shapes.everywhere[level].sample
        parents = spine.parents_of(level, sample)
        starts = spine.first_child[level - 1]
        own = shapes.below[level].of_unit[sample]
        above = shapes.below[level - 1].of_unit[parents]
        parent = shapes.everywhere[level - 1].of_unit[parents]
        sizes = len(shapes.below[level]), len(shapes.below[level - 1]), len(shapes.everywhere[level - 1])
        gather = [_selection(places, many) for places, many in zip((own, above, parent), sizes, strict=True)]
        return cls(own, above, parent, starts[parents + 1] - starts[parents] == 1, *gather)


def _selection(places: Index, many: int) -> Any:
    """A sparse matrix that adds up rows which belong to the same place."""
    ones = np.ones(len(places))
    return sparse.csr_array((ones, (places, np.arange(len(places)))), shape=(many, len(places)))


def _children(spine: Spine, shapes: Shapes, level: int) -> Any:
    starts, kinds = spine.first_child[level], shapes.below[level + 1].of_unit
    rows, columns, many = [], [], []
    for row, unit in enumerate(shapes.below[level].sample):
        found, times = np.unique(kinds[starts[unit] : starts[unit + 1]], return_counts=True)
        rows.append(np.full(len(found), row))
        columns.append(found)
        many.append(times.astype(np.float64))
    shape = (len(shapes.below[level]), len(shapes.below[level + 1]))
    return sparse.csr_array((np.concatenate(many), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _added(matrix: Any, arrays: Array) -> Array:
    return np.asarray(matrix @ arrays.reshape(len(arrays), -1)).reshape(-1, *arrays.shape[1:])


def _times(one: Array, other: Array) -> Array:
    return one * other if one.shape[-1] == 1 else one @ other


def _turned(arrays: Array) -> Array:
    return arrays.swapaxes(-1, -2)


def _inverse(matrices: Array, proper: Array) -> Array:
    """Inverses on the proper part of each block, zero elsewhere."""
    if matrices.shape[-1] == 1:
        there = proper > 0.5
        return np.where(there, 1 / np.where(there, np.maximum(matrices, _TINY), 1.0), 0.0)
    rest = np.eye(matrices.shape[-1]) - proper
    inner = proper @ matrices @ proper + rest
    found = np.linalg.inv((inner + _turned(inner)) / 2) - rest
    return np.asarray((found + _turned(found)) / 2)


Goal = Literal["worst", "sum"]

_POWERS = (2, 16, 128)
_STEPS = 60
_STILL = 1e-6
_ROUNDS = 4
_CLOSE = 1e-6
"""Once less than this part of the value is gained, nothing more is tried."""
_ITEMS = 3
"""Quotients of each target that are looked at one by one: the largest."""
_APART = (1e-6, 1e-4, 1e-2)
_EXACT = 1e-10
"""A variance below this part of its limit is that of something known exactly."""


@dataclass(frozen=True, eq=False)
class BestShares:
    """Shares that were found, what they give, and what nothing can do better than."""

    shares: Array
    """Of each candidate; they add up to one but for the last digits."""
    value: float
    """The largest quotient of importance times variance and limit at a budget of one, or the sum of them."""
    bound: float
    """No shares have a smaller value."""
    portions: Array
    """For each target the part of the budget that it costs; they add up to one."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeShares:
    """A tree with candidates and asked margins, and the limit of each asked margin's variance."""

    tree: TreePrecision
    limits: Array
    importance: Array
    least: float
    goal: Goal = "worst"

    def __repr__(self) -> str:
        return f"<TreeShares: {len(self.tree.candidate_levels)} candidates, {len(self.limits)} targets>"

    def quotients(self, spent: Array) -> Array:
        """For each target the largest variance divided by its limit, with these budgets of the candidates."""
        largest = [float(found.max()) for found in self.tree.variances(spent)]
        found = np.array(largest) / self.limits
        return np.where(found < _EXACT, 0.0, found)

    def value(self, shares: Array) -> float:
        """What is to be made small."""
        found = self.importance * self.quotients(shares)
        return float(found.max() if self.goal == "worst" else found.sum())

    def best(self, start: Array | None = None) -> BestShares:
        """The best shares that were found, from steps on norms and then from sequential quadratic programming; equal
        ones where every target is known exactly. Good shares to ``start`` with spare the first part."""
        many = len(self.tree.candidate_levels)
        part = np.full(many, 1 / many)
        best, value = self._spread(part), self.value(self._spread(part))
        if value == 0:
            return BestShares(part, 0.0, 0.0, np.zeros(len(self.limits)))
        if start is not None and (after := self.value(start)) < value:
            best, value = start, after
        for power in _POWERS if start is None else ():
            for moved, after in self._descending(part, power):
                part = moved
                if after < value:
                    best, value = self._spread(moved), after
            part = 0.99 * part + 0.01 / many  # a share that is nearly zero would take long to grow again
        for _ in range(_ROUNDS):
            moved = self._polished(best)
            after = self.value(moved)
            gained = value - after
            if gained > 0:
                best, value = moved, after
            if gained <= _CLOSE * value:
                break
        bound, portions = self._bound(best)
        return BestShares(best, value, min(bound, value), portions)

    def _spread(self, part: Array) -> Array:
        return self.least + (1 - len(part) * self.least) * part

    def _descending(self, part: Array, power: int) -> Iterator[tuple[Array, float]]:
        step = 0.5
        norm, _, slopes = self._smooth(part, power)
        for _ in range(_STEPS):
            moved = part * (slopes / slopes.max()) ** step
            moved = moved / moved.sum()
            after = self._smooth(moved, power)
            if after[0] > norm * (1 + 1e-13):
                step /= 2
                if step < 1e-3:
                    return
                continue
            still = float(np.abs(moved - part).sum()) < _STILL
            part, (norm, value, slopes) = moved, after
            yield part, value
            if still:
                return
            step = min(1.3 * step, 4.0)

    def _smooth(self, part: Array, power: int) -> tuple[float, float, Array]:
        """A norm of all quotients, their largest or sum, and slopes of the norm."""

        def weigh(found: Sequence[Array]) -> tuple[tuple[float, float], list[Array]]:
            quotients = self._quotients(found)
            tops = np.array([float(one.max()) for one in quotients])
            tops = np.where(tops > 0, tops, 1.0) if self.goal == "sum" else np.full(len(tops), tops.max())
            sums = np.array([float(((one / at) ** power).sum()) for one, at in zip(quotients, tops, strict=True)])
            if self.goal == "worst":
                norms = tops * float(sums.sum()) ** (1 / power)
                norm = float(norms[0])
            else:
                norms = tops * np.where(sums > 0, sums, 1.0) ** (1 / power)
                norm = float(norms[sums > 0].sum())
            scales = self.importance / self.limits
            weights = [
                scale * (one / at) ** (power - 1) for one, at, scale in zip(quotients, norms, scales, strict=True)
            ]
            largest = [float(one.max()) for one in quotients]
            return (norm, max(largest) if self.goal == "worst" else sum(largest)), weights

        _, (norm, value), slopes = self.tree.variances_and_slopes(self._spread(part), weigh)
        return norm, value, slopes

    # -- the last digits, and what nothing can do better than ------------------------------------------------------

    def _quotients(self, found: Sequence[Array]) -> list[Array]:
        """Importance times variance divided by limit; zero for what is known exactly."""
        scales = self.importance / self.limits
        quotients = [one * scale for one, scale in zip(found, scales, strict=True)]
        return [np.where(one < _EXACT * self.importance[at], 0.0, one) for at, one in enumerate(quotients)]

    def _items(self, shares: Array) -> list[tuple[int, int]]:
        """The places of the largest quotients: target, and place among its quotients."""
        found = []
        for target, one in enumerate(self._quotients(self.tree.variances(shares))):
            flat = one.ravel()
            found += [(target, int(at)) for at in np.argsort(flat)[-_ITEMS:] if flat[at] > 0]
        return found

    def _at(self, shares: Array, items: Sequence[tuple[int, int]]) -> Array:
        quotients = self._quotients(self.tree.variances(shares))
        return np.array([quotients[target].ravel()[at] for target, at in items])

    def _falls(self, shares: Array, items: Sequence[tuple[int, int]]) -> Array:
        """For each item, by how much its quotient falls with each share."""

        def one(target: int, at: int) -> Array:
            def weigh(found: Sequence[Array]) -> tuple[None, list[Array]]:
                weights = [np.zeros_like(some) for some in found]
                weights[target].reshape(-1)[at] = self.importance[target] / self.limits[target]
                return None, weights

            return self.tree.variances_and_slopes(shares, weigh)[2]

        return np.array([one(target, at) for target, at in items])

    def _groups(self, items: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        """Of each item, which number it must stay below: the same for all, or one for each target."""
        named = [0 if self.goal == "worst" else target for target, _ in items]
        return np.unique(named, return_inverse=True)[1].ravel().astype(np.int64)

    def _polished(self, shares: Array) -> Array:
        """Make numbers above all large quotients small, by sequential quadratic programming; the result is looked at
        before it is believed."""
        items, many = self._items(shares), len(shares)
        groups, scale = self._groups(items), self.value(shares)
        above = groups.max() + 1
        begin = np.zeros(above)
        np.maximum.at(begin, groups, self._at(shares, items) / scale)
        picks = np.eye(above)[groups]

        def inside(point: Array) -> Array:
            return np.maximum(point[:many], self.least / 2)

        limits = {
            "type": "ineq",
            "fun": lambda point: picks @ point[many:] - self._at(inside(point), items) / scale,
            "jac": lambda point: np.hstack([self._falls(inside(point), items) / scale, picks]),
        }
        whole = {
            "type": "eq",
            "fun": lambda point: point[:many].sum() - 1,
            "jac": lambda point: np.concatenate([np.ones(many), np.zeros(above)]),
        }
        slope = np.concatenate([np.zeros(many), np.ones(above)])
        found = minimize(
            lambda point: float(point[many:].sum()),
            np.concatenate([shares, begin]),
            jac=lambda point: slope,
            method="SLSQP",
            bounds=[(self.least, 1.0)] * many + [(0.0, None)] * above,
            constraints=[limits, whole],
            options={"maxiter": _STEPS, "ftol": 1e-9},
        ).x[:many]
        if not np.isfinite(found).all():
            return shares
        part = np.maximum(found - self.least, 0.0)
        return self._spread(part / part.sum()) if part.sum() > 0 else shares

    def _bound(self, shares: Array) -> tuple[float, Array]:
        """The best lower bound from weights of the largest quotients at these shares, and what each target costs."""
        items = self._items(shares)
        values, groups, falls = self._at(shares, items), self._groups(items), self._falls(shares, items)
        tops = np.zeros(groups.max() + 1)
        np.maximum.at(tops, groups, values)
        best, chosen = 0.0, np.zeros(len(items))
        for apart in _APART:  # weights belong to quotients that are largest, but for the last digits
            near = values >= (1 - apart) * tops[groups]
            weights = self._weights(falls[near], values[near], groups[near], tops)
            if weights is not None and (bound := self._below(weights, falls[near], values[near], groups[near])) > best:
                best, chosen = bound, np.zeros(len(items))
                chosen[near] = weights
        portions = np.zeros(len(self.limits))
        if best:
            np.add.at(portions, [target for target, _ in items], chosen * values / float(chosen @ values))
        return best, portions

    def _weights(self, falls: Array, values: Array, groups: NDArray[np.int64], tops: Array) -> Array | None:
        """Weights of quotients whose weighted sum gains least from any shares: a linear program."""
        many, scale = falls.shape[1], float(values.max())
        found = linprog(
            np.append(self.least * falls.sum(axis=1), 1 - many * self.least) / scale,
            A_ub=np.hstack([falls.T / scale, -np.ones((many, 1))]),
            b_ub=np.zeros(many),
            A_eq=np.hstack([np.eye(len(tops))[groups].T * (values / scale), np.zeros((len(tops), 1))]),
            b_eq=tops / scale,
            bounds=[(0, None)] * (len(values) + 1),
        )
        return None if found.x is None else np.maximum(found.x[:-1], 0.0)

    def _below(self, weights: Array, falls: Array, values: Array, groups: NDArray[np.int64]) -> float:
        """The lower bound G^2 / m of these weights, made to add up to at most one."""
        share = max(float(weights[groups == group].sum()) for group in set(groups.tolist()))
        slopes = weights @ falls
        room = 1 - len(slopes) * self.least
        most = self.least * float(slopes.sum()) + room * float(slopes.max())
        return float(weights @ values) ** 2 / (most * share) if most * share > 0 else 0.0


def as_parts(shares: Array, parts: int) -> tuple[Fraction, ...]:
    """Fractions with the denominator ``parts`` that add up to exactly one, none of them zero, near the given shares.

    >>> [str(one) for one in as_parts(np.array([0.6666, 0.33335, 0.00005]), 1000)]
    ['333/500', '333/1000', '1/1000']
    """
    scaled = np.maximum(shares / shares.sum() * parts, 1.0)
    whole = np.maximum(np.floor(scaled), 1.0).astype(np.int64)
    missing = parts - int(whole.sum())
    if missing >= 0:
        order = np.argsort(whole - scaled, kind="stable")
        for at in range(missing):
            whole[order[at % len(order)]] += 1
    while missing < 0:  # many small shares were raised to one part: the largest give
        whole[int(np.argmax(whole))] -= 1
        missing += 1
    return tuple(Fraction(int(one), parts) for one in whole)
