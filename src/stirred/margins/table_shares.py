"""Which shares of a budget to give to the margins that are measured, from the plan alone.

A margin that gets the share s of the budget has noise of variance v / s (Gaussian) or v / s^2 (Laplace), where v is its
variance if it got the whole budget. With them the best estimates of the asked margins have variances that can be
computed beforehand (:mod:`stirred.margins.one_table`); the shares are to make the sum of these variances small,
weighted by importance, or the largest of them.

For Gaussian noise precisions are linear in the shares and both goals are convex, so the smallest value is found, and a
lower bound for all shares comes with it: with slopes -g_q = -dF/ds_q and F of degree -1, no shares have a value below
2 F - max(-g_q). For Laplace noise the problem is not convex; the best of several local optima is given.

Each step multiplies the share of margin q by a power of -g_q, as algorithms for optimal designs do (Yu, Annals of
Statistics 38, 2010). This goes down wherever the power is small enough, since the covariance of -g and its logarithm is
not negative. For the largest variance a p-norm of all variances is made small, with p growing.

The invariant a reader must know: shares are fractions that add up to exactly one, and are never worse than equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.margin_blocks import Array, representatives
from stirred.margins.one_table import FlatTable, Variance, Where, inverted, margin_of, plain_information
from stirred.margins.schema import Schema
from stirred.margins.tree import range_and_null, scaled

Noise = Literal["gaussian", "laplace"]
Goal = Literal["sum", "largest"]

LARGEST = 512
"""Numbers that recodes and strata may tie together (see :mod:`stirred.margins.one_table`): matrices of this size are
inverted hundreds of times."""

MOST_CANDIDATES = 40

_STEPS = 300
_POWERS = (1, 4, 16, 64, 256)
_STILL = 1e-5
"""Shares that change by less than this part of themselves do not move any more."""
_TINY = 1e-9


@dataclass(frozen=True)
class AskedMargin:
    """A margin that people will ask for, and how much the variance of each of its groups counts."""

    by: tuple[str, ...]
    importance: float = 1.0
    where: Where | None = None


@dataclass(frozen=True)
class DividedBudget:
    """Shares of a budget, one for each candidate, and what they give."""

    shares: tuple[Fraction, ...]
    """They add up to one; a margin with share 0 is not to be measured."""
    value: float
    """The sum of importance times variance over all asked groups, or the largest of these products."""
    equal: float
    """The same for equal shares."""
    bound: float | None
    """No shares have a smaller value; None for Laplace noise, where only local optima are known."""


@dataclass(frozen=True, eq=False)
class _BlockPart:
    """One block: the information of each candidate at the whole budget, and the asked groups in it."""

    pieces: Array
    """Candidates, size, size: A'A divided by the variance."""
    about: Array
    """The same with entries of order one: what each candidate tells at all."""
    rows: Array
    """For each class of asked groups its coefficients on the numbers of a copy."""
    squares: Array
    """For each class, the sum over copies of squared coefficients."""
    _known: dict[bytes, tuple[Array, Array]] = field(default_factory=dict)

    def known(self, used: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Directions that the used candidates tell, and the others."""
        key = used.tobytes()
        if key not in self._known:
            self._known[key] = range_and_null(self.about[used].sum(axis=0))
        return self._known[key]


@dataclass(frozen=True, eq=False, repr=False)
class ShareProblem:
    """Candidates to be measured, and what is asked of them.

    >>> from stirred.margins.schema import Attribute
    >>> schema = Schema((Attribute("age", ("0", "1", "2")),))
    >>> problem = ShareProblem.of(schema, [(["age"], 1), ([], 1)], [AskedMargin(("age",)), AskedMargin((), 5)])
    >>> found = problem.best()
    >>> [str(share) for share in found.shares], round(found.value, 4), round(found.equal, 4)
    (['1/2', '1/2'], 12.0, 12.0)
    """

    blocks: tuple[_BlockPart, ...]
    candidates: int
    importance: Array
    """Of each class of asked groups."""
    times: Array
    """How many groups each class has."""
    noise: Noise
    goal: Goal

    def __repr__(self) -> str:
        return f"<ShareProblem: {self.candidates} candidates, {self.noise} noise, goal {self.goal!r}>"

    @classmethod
    def of(
        cls,
        schema: Schema,
        candidates: Sequence[tuple[Sequence[str], Variance]],
        asked: Sequence[AskedMargin],
        *,
        noise: Noise = "gaussian",
        goal: Goal = "sum",
        stratum: str | None = None,
        factors: Mapping[str, Variance] | None = None,
        name: str = "table",
    ) -> ShareProblem:
        """``candidates`` have the variance that their noise would have with the whole budget; ``stratum`` and
        ``factors`` are those of :meth:`FlatTable.of`."""
        for what, given, known in (("noise", noise, ("gaussian", "laplace")), ("goal", goal, ("sum", "largest"))):
            if given not in known:
                raise errors.unknown_choice(what, str(given), known)
        if not asked:
            raise errors.shares_question("A division of a budget", "must have an asked margin")
        if not 0 < len(candidates) <= MOST_CANDIDATES:
            raise errors.shares_question("A division of a budget", f"must have 1 to {MOST_CANDIDATES} candidates")
        if not all(0 < one.importance < np.inf for one in asked):
            raise errors.shares_question("The importance of an asked margin", "must be positive")
        table = FlatTable.of(schema, candidates, stratum=stratum, factors=factors, name=name)
        margins = [margin_of(schema, one.by, one.where) for one in asked]
        split = table.split(margins, LARGEST)
        classes = [representatives(margin, split.axes) for margin in margins]
        times = [np.bincount(places).astype(np.float64) for _, places in classes]
        blocks = []
        for block in split.blocks:
            loads = [block.loadings(few) for few, _ in classes]
            blocks.append(
                _BlockPart(
                    np.stack([block.information(one.margin) / one.variance for one in table.measured]),
                    np.stack([scaled(plain_information(block, one)) for one in table.measured]),
                    np.vstack([rows for rows, _ in loads]),
                    np.concatenate([squares for _, squares in loads]),
                )
            )
        importance = np.repeat([float(one.importance) for one in asked], [len(some) for some in times])
        found = cls(tuple(blocks), len(candidates), importance, np.concatenate(times), noise, goal)
        if not np.isfinite(found.value(found.equal)):
            raise errors.not_estimable(name, "all asked margins, with all candidates measured")
        return found

    @property
    def equal(self) -> tuple[Fraction, ...]:
        """The same share for every candidate."""
        return (Fraction(1, self.candidates),) * self.candidates

    def value(self, shares: Sequence[Fraction] | Array) -> float:
        """What is to be made small; infinite where margins with a positive share do not determine what is asked."""
        variances = self._solved(np.array([float(share) for share in shares]))[0]
        if np.isinf(variances).any():
            return float("inf")
        weighted = self.importance * variances
        return float(weighted @ self.times if self.goal == "sum" else weighted.max())

    def best(self, parts: int = 1000) -> DividedBudget:
        """The best shares found that are multiples of 1/``parts``, or equal ones where these are better."""
        if not parts >= self.candidates:
            raise errors.shares_question("The number of parts", f"must be at least {self.candidates}")
        least = 1 / (20 * parts)
        equal = self.value(self.equal)
        if equal == 0:  # only groups without a cell are asked for
            return DividedBudget(self.equal, 0.0, 0.0, 0.0 if self.noise == "gaussian" else None)
        ends, bound = [], None
        for start, powers in product(self._starts(least), self._powers):
            shares = start
            for power in powers:
                if self.noise == "gaussian":  # a share that is nearly zero would take long to grow again
                    shares = 0.9 * shares + 0.1 / self.candidates
                shares, below = self._descended(shares, power, least)
                if self.noise == "gaussian":
                    bound = below if bound is None else max(bound, below)
            ends.append(shares)
        rounded = {tuple(_rounded(shares, parts).tolist()) for shares in ends}
        most_promising = sorted((self._whole(one, parts), one) for one in rounded)[:3]
        value, whole = min(self._exchanged(value, one, parts) for value, one in most_promising)
        if equal <= value * (1 + 1e-12):  # equal shares may be no multiples of 1/parts
            return DividedBudget(self.equal, equal, equal, bound)
        return DividedBudget(tuple(Fraction(one, parts) for one in whole), value, equal, bound)

    # -- variances and slopes --------------------------------------------------------------------------------

    def _solved(self, shares: Array) -> tuple[Array, list[Array]]:
        """The variance of every class of asked groups, and the covariance matrix of every block."""
        used = shares > 0
        precision = shares if self.noise == "gaussian" else shares**2
        variances, matrices = np.zeros(len(self.times)), []
        for block in self.blocks:
            known, unknown = block.known(used)
            covariance = inverted(np.tensordot(precision, block.pieces, axes=1), known, unknown)
            matrices.append(covariance)
            variances += ((block.rows @ covariance) * block.rows).sum(axis=1) * block.squares
            unseen = np.abs(block.rows @ unknown).max(axis=1, initial=0) * np.sqrt(block.squares)
            variances[unseen > _TINY] = np.inf
        return variances, matrices

    def _smooth(self, shares: Array, power: int) -> tuple[float, Array, float]:
        """The weighted sum of variances, or a norm of all variances; its slopes downwards; and a lower bound of the
        goal for all shares, which holds for Gaussian noise."""
        variances, matrices = self._solved(shares)
        weighted = self.importance * variances
        if self.goal == "sum":
            value, slopes = float(weighted @ self.times), self._slopes(shares, matrices, self.importance * self.times)
            return value, slopes, 2 * value - float(slopes.max())
        largest = float(weighted.max())
        norm = largest * float(((weighted / largest) ** power).sum() ** (1 / power))
        weights = (weighted / norm) ** (power - 1)
        slopes = self._slopes(shares, matrices, self.importance * weights)
        # The largest is at least every mean, and the slopes of the mean with these weights are known.
        mean, total = float(weighted @ weights) / float(weights.sum()), float(weights.sum())
        return norm, slopes, 2 * mean - float(slopes.max()) / total

    def _slopes(self, shares: Array, matrices: Sequence[Array], weights: Array) -> Array:
        """By how much a weighted sum of the variances falls with each share."""
        found = np.zeros(self.candidates)
        for block, covariance in zip(self.blocks, matrices, strict=True):
            moved = block.rows @ covariance
            found += np.tensordot(block.pieces, (moved.T * (weights * block.squares)) @ moved, axes=2)
        return np.maximum(found if self.noise == "gaussian" else 2 * shares * found, 0.0)

    # -- search ----------------------------------------------------------------------------------------------

    def _starts(self, least: float) -> Iterator[Array]:
        """Equal shares; for Laplace noise also what is best for Gaussian noise, and equal shares of some candidates
        with next to nothing for the others."""
        everyone = range(self.candidates)
        chosen = [tuple(everyone)]
        if self.noise == "laplace" and self.candidates > 1:
            few = self.candidates <= 5
            sizes = range(1, self.candidates) if few else (1, self.candidates - 1)
            chosen += [some for size in sizes for some in combinations(everyone, size)]
        for some in chosen:
            yield _raised(np.bincount(some, minlength=self.candidates) / len(some), least)
        if len(chosen) > 1:
            yield replace(self, noise="gaussian")._descended(np.full(self.candidates, 1 / self.candidates), 1, least)[0]

    @property
    def _powers(self) -> tuple[tuple[int, ...], ...]:
        """Which norms are made small one after the other. Small powers may leave the start for an optimum of their own,
        so for Laplace noise there is also a way without them."""
        if self.goal == "sum":
            return ((1,),)
        return (_POWERS,) if self.noise == "gaussian" else (_POWERS, _POWERS[2:])

    def _descended(self, shares: Array, power: int, least: float) -> tuple[Array, float]:
        """Shares with a smaller value, and the best lower bound met."""
        step = 1 / 2 if self.noise == "gaussian" else 1 / 3
        value, slopes, bound = self._smooth(shares, power)
        for _ in range(_STEPS):
            moved = shares * (slopes / slopes.max()) ** step
            moved = _raised(moved / moved.sum(), least)
            after, steeper, below = self._smooth(moved, power)
            if after > value:
                step /= 2
                if step < 1e-4:
                    break
                continue
            still = bool(np.abs(np.log(moved / shares)).max() < _STILL)
            shares, value, slopes, bound = moved, after, steeper, max(bound, below)
            if still:
                break
            step = min(1.2 * step, 2.0)
        return shares, bound

    def _whole(self, whole: Sequence[int], parts: int) -> float:
        return self.value(np.array(whole) / parts)

    def _exchanged(self, value: float, whole: tuple[int, ...], parts: int) -> tuple[float, tuple[int, ...]]:
        """Move parts from one candidate to another as long as that helps."""
        moves = list(permutations(range(self.candidates), 2))
        for many in (16, 4, 1):
            better = True
            while better:
                better = False
                for giver, taker in moves:
                    if whole[giver] < many:
                        continue
                    moved = list(whole)
                    moved[giver] -= many
                    moved[taker] += many
                    after = self._whole(moved, parts)
                    if after < value * (1 - 1e-12):
                        value, whole, better = after, tuple(moved), True
        return value, whole


def _raised(shares: Array, least: float) -> Array:
    """Shares that add up to one, none of them below ``least`` (but for the last digits)."""
    raised = np.maximum(shares, least)
    return np.asarray(raised / raised.sum())


def _rounded(shares: Array, parts: int) -> NDArray[np.int64]:
    """Whole numbers of parts that add up, by largest remainders."""
    whole = np.floor(shares * parts).astype(np.int64)
    missing = parts - int(whole.sum())
    order = np.argsort(whole - shares * parts, kind="stable")
    whole[order[:missing]] += 1
    return whole
