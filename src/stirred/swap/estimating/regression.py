"""Linear regression between swapped and held variables, from the released records of a swap.

Means, and cross products among swapped or among held variables, are kept by a swap; so are all cross products of the
means of strata. Only the cross products within strata of held with swap variables shrink, by the public lambda of their
stratum. Divided by it they are right on average, and the coefficients follow from the corrected cross products M:

    beta = M_xx^-1 M_xy.

An error dM moves coefficient j by a' dM r, with a the row of M_xx^-1 and r = (1, -beta) the weights of the residual. So
its error is a sum of two released sums, W(held part of a x, swap part of the residual) and W(held part of the residual,
swap part of a x), whose covariances are known (:func:`stirred.swap.law.moments.score_covariance`) and are estimated
without bias. For one predictor this is the variance of S_xy / (lambda S_xx), exactly.

About the population, the chance of sampling adds s^2 M_xx^-1, or, where the spread of the outcome may differ from
record to record, the sum of (a x)^2 e^2 over the true records, estimated in the same way. What the error of beta adds
to the squared residuals is taken off.

Released cells (:class:`ReleasedSums`) are in the order of stratum, swap class, held class, so that every sum is over
neighbours and nothing is sorted or hashed again. Their estimates of products of true sums are those of
:mod:`stirred.swap.estimating.cell_estimates`, for any scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._lazy import later
from stirred.swap.law.moments import WEAKEST, LawConstants

special = later("scipy.special")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

POOLED_FROM = 2.0
"""One lambda for all strata is used where lambdas by stratum would make the variance more than so many times larger."""
CLEAR = 3.0
"""Standard errors by which the corrected cross products must differ from ones that determine no coefficients."""
_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedSums:
    """Released cells by stratum, swap class and held class."""

    law: LawConstants
    """Of each stratum; every stratum has records."""
    held: Integers
    """Of each cell its held class"""
    count: Floats
    """and number of records."""
    begin: Integers
    """Of each group of cells that share stratum and swap class its first cell,"""
    stratum: Integers
    """its stratum"""
    swapped: Integers
    """and its swap class."""

    def __repr__(self) -> str:
        return f"<ReleasedSums: {len(self.count):,} cells in {len(self.law.size):,} strata>"

    @classmethod
    def of(
        cls, law: LawConstants, stratum: Integers, swapped: Integers, held: Integers, count: Integers
    ) -> ReleasedSums:
        """From cells in the order of stratum and swap class."""
        new = np.ones(len(stratum), dtype=np.bool_)
        new[1:] = (stratum[1:] != stratum[:-1]) | (swapped[1:] != swapped[:-1])
        begin = np.flatnonzero(new)
        return cls(law, held, count.astype(np.float64), begin, stratum[begin], swapped[begin])

    @cached_property
    def size(self) -> Floats:
        """The records of each stratum."""
        return self.law.size.astype(np.float64)

    @cached_property
    def _first(self) -> Integers:
        return np.searchsorted(self.stratum, np.arange(len(self.law.size)))

    @cached_property
    def records(self) -> Floats:
        """The records of each group."""
        return np.asarray(np.add.reduceat(self.count, self.begin))

    @cached_property
    def cell_stratum(self) -> Integers:
        """Of each cell its stratum."""
        return np.repeat(self.stratum, np.diff(np.append(self.begin, len(self.count))))

    def by_group(self, part: Floats) -> Floats:
        """A number of each cell, added up over the records of each group."""
        return np.asarray(np.add.reduceat(part * self.count, self.begin))

    def by_stratum(self, part: Floats) -> Floats:
        """A number of each group, added up for each stratum."""
        return np.asarray(np.add.reduceat(part, self._first))

    @cached_property
    def held_records(self) -> Floats:
        """The records of each held class."""
        return np.asarray(np.bincount(self.held, self.count), dtype=np.float64)

    def swap_means(self, score: Floats) -> Floats:
        """The mean in each stratum of a score of swap classes."""
        return self.by_stratum(self.records * score[self.swapped]) / self.size

    def held_products(self, scores: Floats, weight: Floats | None = None) -> Floats:
        """Sums of products of held scores ``[class, score]`` over all records, strata weighted."""
        many = self.held_records
        if weight is not None:
            weighted = self.count * weight[self.cell_stratum]
            many = np.asarray(np.bincount(self.held, weighted, minlength=len(scores)), dtype=np.float64)
        return np.asarray(scores.T @ (many[:, None] * scores))

    def swap_products(self, scores: Floats, weight: Floats | None = None) -> Floats:
        """Sums of products of swap scores over all records, strata weighted."""
        records = self.records if weight is None else self.records * weight[self.stratum]
        many = np.bincount(self.swapped, records, minlength=len(scores))
        return np.asarray(scores.T @ (many[:, None] * scores))

    def product_of_parts(self, held: Floats, swapped: Floats) -> float:
        """The sum over the true records of a score of each cell's held class times one of the swap class, estimated.

        Where a stratum cannot be inverted, held and swap values are taken as unrelated.
        """
        f, g = self.by_group(held), swapped[self.swapped]
        independent = self.by_stratum(f) * self.by_stratum(self.records * g) / self.size
        apart = self.by_stratum(f * g) - independent
        usable = self.law.invertible
        shift = np.divide(apart, self.law.shrinkage, out=np.zeros(len(apart)), where=usable)
        return float(np.sum(independent + shift))


class HeldColumns:
    """Held variables, centred in strata, and their products, added up for each group: the only passes over cells."""

    def __init__(self, sums: ReleasedSums, columns: Floats) -> None:
        self._sums, self._columns = sums, columns
        self._products: dict[tuple[int, int], Floats] = {}
        self.sums = np.zeros((len(sums.begin), columns.shape[1]))
        """``[group, variable]``, of centred variables"""
        self.means = np.zeros((len(sums.size), columns.shape[1]))
        """``[stratum, variable]``"""
        for at, column in enumerate(columns.T):
            found = sums.by_group(column[sums.held])
            self.means[:, at] = sums.by_stratum(found) / sums.size
            self.sums[:, at] = found - self.means[sums.stratum, at] * sums.records

    def __repr__(self) -> str:
        return f"<HeldColumns: {self._columns.shape[1]} variables>"

    def products(self, one: int, other: int) -> Floats:
        """Sums of products of two variables, for each group."""
        key = (min(one, other), max(one, other))
        if key not in self._products:
            self._products[key] = self._sums.by_group(self._apart(key[0]) * self._apart(key[1]))
        return self._products[key]

    def spread(self, at: int) -> Floats:
        """The sum of squares of a variable within each stratum."""
        return self._sums.by_stratum(self.products(at, at))

    def _apart(self, at: int) -> Floats:
        return np.asarray(self._columns[self._sums.held, at] - self.means[self._sums.cell_stratum, at])


class ScoreCovariances:
    """Covariances of released sums W = sum u_i v_sigma(i), estimated without bias, strata weighted.

    ``held`` are weights ``[variable, score]`` of the held variables, ``swapped`` scores ``[class, score]``; ``factor``
    multiplies the sums of each stratum.
    """

    def __init__(self, sums: ReleasedSums, columns: HeldColumns, held: Floats, swapped: Floats, factor: Floats) -> None:
        self._sums, self._columns, self._factor = sums, columns, factor
        self._weights, self._scores = held, swapped
        self._swap: dict[int, Floats] = {}
        self._spread: dict[tuple[int, int], Floats] = {}
        self._product: dict[tuple[int, int], Floats] = {}

    def __repr__(self) -> str:
        return f"<ScoreCovariances of {self._weights.shape[1]} scores>"

    def has(self, held: int, swapped: int) -> bool:
        """Whether a sum can vary at all."""
        return bool(np.any(self._weights[:, held]) and np.any(self._scores[:, swapped]))

    def between(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
        """The covariance of two sums, each a held and a swap score; and what it were if both sides were unrelated."""
        (a, b), (c, d) = one, other
        sums, law, n = self._sums, self._sums.law, self._sums.size
        f, g = self._v(b), self._v(d)
        pairs = self._uu(a, c)
        known = sums.by_stratum(pairs) * sums.by_stratum(sums.records * f * g)
        straight = self._w(a, b) * self._w(c, d)
        crossed = self._w(a, d) * self._w(c, b)
        usable = law.invertible
        lam = np.where(usable, law.shrinkage, 1.0)
        four = known / n + np.where(usable, (sums.by_stratum(pairs * f * g) - known / n) / lam, 0.0)
        base = law.a4 * four + law.a3 * known
        plus = (straight + crossed - 2 * base) / _away(law.shrinkage**2 + law.a1 + law.a2)
        minus = (straight - crossed) / _away(law.shrinkage**2 + law.a1 - law.a2)
        found = base + law.a1 * (plus + minus) / 2 + law.a2 * (plus - minus) / 2
        unrelated = (law.a4 / n + law.a3) * known
        weight = self._factor**2
        return float(np.sum(found * weight)), float(np.sum(unrelated * weight))

    def _v(self, at: int) -> Floats:
        if at not in self._swap:
            score = self._scores[:, at]
            self._swap[at] = score[self._sums.swapped] - self._sums.swap_means(score)[self._sums.stratum]
        return self._swap[at]

    def _uu(self, a: int, b: int) -> Floats:
        key = (min(a, b), max(a, b))
        if key not in self._spread:
            found = np.zeros(len(self._sums.begin))
            f, g = self._weights[:, a], self._weights[:, b]
            for i, j in combinations_with_replacement(np.flatnonzero((f != 0) | (g != 0)).tolist(), 2):
                weight = f[i] * g[j] + (f[j] * g[i] if i != j else 0.0)
                if weight:
                    found += weight * self._columns.products(i, j)
            self._spread[key] = found
        return self._spread[key]

    def _w(self, a: int, b: int) -> Floats:
        if (a, b) not in self._product:
            own = self._columns.sums @ self._weights[:, a]
            self._product[a, b] = self._sums.by_stratum(own * self._v(b))
        return self._product[a, b]


def _away(number: Floats) -> Floats:
    """Divisors, with those near 0 replaced by infinity."""
    return np.where(np.abs(number) > 1e-6, number, np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The variables of a regression, the outcome first: as scores of held classes or of swap classes."""

    labels: tuple[str, ...]
    swapped: Flags
    """Which variables are swapped; the others are held or constant in strata."""
    moved_against: Flags
    """Which variables a swap moves against those of the other sort: all but those constant in strata."""
    held_values: Floats
    """``[class, variable]``, for the variables that are not swapped"""
    swap_values: Floats

    def __repr__(self) -> str:
        return f"<Design: {len(self.labels)} variables>"

    @property
    def exact(self) -> bool:
        """Whether the swap keeps all cross products."""
        held = ~self.swapped & self.moved_against
        return not (held.any() and self.swapped.any())


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """A regression, naive and corrected. Rows are the intercept, then the predictors."""

    sums: ReleasedSums
    design: Design

    def __repr__(self) -> str:
        return f"<Regression of {len(self.design.labels) - 1} predictors>"

    # -- what was released -----------------------------------------------------------------------------------

    @cached_property
    def records(self) -> float:
        """n"""
        return float(self.sums.size.sum())

    @property
    def predictors(self) -> int:
        """How many predictors there are."""
        return len(self.design.labels) - 1

    @property
    def degrees(self) -> float:
        """Records less coefficients."""
        return self.records - self.predictors - 1

    @cached_property
    def _ones(self) -> Floats:
        return np.ones(len(self.sums.size))

    @cached_property
    def means(self) -> Floats:
        """The mean of each variable."""
        found = np.zeros(len(self.design.labels))
        sums, swapped = self.sums, self.design.swapped
        found[~swapped] = sums.held_records @ self.design.held_values / self.records
        many = np.bincount(sums.swapped, sums.records, minlength=len(self.design.swap_values))
        found[swapped] = many @ self.design.swap_values / self.records
        return found

    @cached_property
    def _centred(self) -> tuple[Floats, Floats, Floats]:
        """Values of held and swap classes, centred and scaled; and the scales."""
        design, sums = self.design, self.sums
        held = design.held_values - self.means[~design.swapped]
        swapped = design.swap_values - self.means[design.swapped]
        spread = np.zeros(len(design.labels))
        spread[~design.swapped] = np.diag(sums.held_products(held))
        spread[design.swapped] = np.diag(sums.swap_products(swapped))
        scale = np.sqrt(spread)
        least = 1e-9 * np.sqrt(self.records) * np.maximum(np.abs(self.means), 1e-300)
        for label, flat in zip(design.labels, scale <= least, strict=True):
            if flat:
                raise errors.regression_not_valid(
                    f"'{label}'", "is the same for all records", "Leave it out, or choose other records."
                )
        return held / scale[~design.swapped], swapped / scale[design.swapped], scale

    @property
    def _held(self) -> Floats:
        return self._centred[0]

    @property
    def _swap(self) -> Floats:
        return self._centred[1]

    @cached_property
    def _held_columns(self) -> HeldColumns:
        return HeldColumns(self.sums, self._held)

    @cached_property
    def _stratum_means(self) -> tuple[Floats, Floats]:
        """``[stratum, variable]``, of held and of swap variables"""
        swapped = [self.sums.swap_means(one) for one in self._swap.T]
        return self._held_columns.means, np.array(swapped).reshape(-1, len(self.sums.size)).T

    def _within_cross(self, factor: Floats) -> Floats:
        """Released cross products of held with swap variables within strata, added up with a factor for each."""
        many = factor[self.sums.stratum]
        rows = [
            np.bincount(self.sums.swapped, column * many, minlength=len(self._swap)) @ self._swap
            for column in self._held_columns.sums.T
        ]
        return np.array(rows).reshape(self._held.shape[1], self._swap.shape[1])

    def _within_own(self, factor: Floats) -> Floats:
        """Cross products within strata of the variables that are not of the outcome's sort."""
        means = self._stratum_means[int(self._against)]
        between = means.T @ ((factor * self.sums.size)[:, None] * means)
        if self._against:
            return self.sums.swap_products(self._swap, factor) - between
        return self.sums.held_products(self._held, factor) - between

    def _spread(self, of_swapped: bool, at: int) -> Floats:
        """The sum of squares of a variable within each stratum."""
        if not of_swapped:
            return self._held_columns.spread(at)
        column = self._swap[:, at]
        apart = column[self.sums.swapped] - self._stratum_means[1][self.sums.stratum, at]
        return self.sums.by_stratum(self.sums.records * apart**2)

    # -- the correction --------------------------------------------------------------------------------------

    @property
    def _against(self) -> bool:
        """Whether the variables that are not of the outcome's sort are the swapped ones."""
        return not bool(self.design.swapped[0])

    @cached_property
    def varies(self) -> Flags:
        """In which strata the swap changes a cross product."""
        least = _SINGULAR * self.sums.size / self.records
        sorts = []
        for swapped, many in ((False, self._held.shape[1]), (True, self._swap.shape[1])):
            spreads = [self._spread(swapped, at) > least for at in range(many)]
            sorts.append(np.logical_or.reduce(spreads) if spreads else np.zeros(len(least), dtype=np.bool_))
        return np.asarray(sorts[0] & sorts[1])

    @cached_property
    def pooled(self) -> bool:
        """Whether one lambda is used for all strata: where some cannot be inverted, or are so small for the rate that
        the variance would suffer. Looks at what the swap keeps only."""
        law = self.sums.law
        if self.design.exact:
            return False
        if np.any(self.varies & ~law.invertible):
            return True
        weight = self._spread(bool(self.design.swapped[0]), 0)
        others = (self._swap if self._against else self._held).shape[1]
        spread = np.sum([self._spread(self._against, at) for at in range(others)], axis=0)
        known = (law.a4 / self.sums.size + law.a3) * weight * spread
        total = np.sum(spread)
        mean = np.sum(law.shrinkage * spread) / total if total else 1.0
        usable = np.where(self.varies, law.shrinkage, 1.0)
        by_stratum, as_one = np.sum(known / usable**2), np.sum(known) / mean**2 if mean else np.inf
        return bool(by_stratum > POOLED_FROM * as_one)

    @cached_property
    def factor(self) -> Floats:
        """By what the sums of each stratum are multiplied."""
        law = self.sums.law
        return self._ones if self.pooled else np.divide(1.0, law.shrinkage, out=self._ones.copy(), where=self.varies)

    @cached_property
    def _pooling(self) -> Floats:
        """What undoes the weakening of all strata together, on the variables that are not of the outcome's sort."""
        size = int(np.sum(self.design.swapped if self._against else ~self.design.swapped))
        if not self.pooled:
            return np.eye(size)
        whole = self._within_own(self._ones)
        left = self._within_own(self.sums.law.shrinkage)
        values, vectors = np.linalg.eigh(whole)
        kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
        root = vectors[:, kept] / np.sqrt(values[kept])
        if np.any(np.abs(np.linalg.eigvalsh(root.T @ left @ root)) <= WEAKEST):
            raise errors.swap_mixes_too_much()
        return np.asarray(np.linalg.pinv(left, rcond=1e-9, hermitian=True) @ whole)

    def _matrix(self, *, corrected: bool) -> Floats:
        """The cross products of all variables, centred and scaled."""
        design = self.design
        found = np.zeros((len(design.labels),) * 2)
        h, s = np.flatnonzero(~design.swapped), np.flatnonzero(design.swapped)
        found[np.ix_(h, h)] = self.sums.held_products(self._held)
        found[np.ix_(s, s)] = self.sums.swap_products(self._swap)
        means = self._stratum_means
        between = means[0].T @ (self.sums.size[:, None] * means[1])
        within = self._within_cross(self.factor if corrected else self._ones)
        if corrected and self.pooled:
            within = within @ self._pooling if self._against else self._pooling.T @ within
        found[np.ix_(h, s)] = between + within
        found[np.ix_(s, h)] = found[np.ix_(h, s)].T
        return found

    @cached_property
    def _naive_matrix(self) -> Floats:
        found = self._matrix(corrected=False)
        if self.degrees < 1:
            raise errors.regression_not_valid(
                "The regression", "needs more records than coefficients", "Leave predictors out."
            )
        if np.linalg.eigvalsh(found[1:, 1:]).min() < _SINGULAR:
            raise errors.regression_not_valid(
                "A predictor", "follows from the other predictors", "Leave it out."
            )  # fmt: skip
        return found

    @cached_property
    def matrix(self) -> Floats:
        """The corrected cross products; raises where they do not determine the coefficients."""
        if self.design.exact:
            return self._naive_matrix
        assert self._naive_matrix is not None
        found = self._matrix(corrected=True)
        values, vectors = np.linalg.eigh(found[1:, 1:])
        if values[0] <= max(_SINGULAR, CLEAR * self._square_error(np.append(0.0, vectors[:, 0]))):
            raise errors.regression_not_determined()
        return found

    def _parts(self, weights: Floats) -> tuple[Floats, Floats]:
        """For rows of weights of all variables, as the corrected sums use them: weights of held variables, and scores
        of swap classes."""
        swapped = self.design.swapped
        of_held, of_swap = weights[:, ~swapped].T, weights[:, swapped].T
        if self._against:
            of_swap = self._pooling @ of_swap
        else:
            of_held = self._pooling @ of_held
        return of_held, self._swap @ of_swap

    # -- coefficients ----------------------------------------------------------------------------------------

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self.matrix[1:, 1:]))

    @cached_property
    def _slopes(self) -> Floats:
        return np.asarray(np.linalg.solve(self.matrix[1:, 1:], self.matrix[1:, 0]), dtype=np.float64)

    @cached_property
    def _units(self) -> Floats:
        """From scaled slopes to rows: ``[row, slope]``."""
        scale = self._centred[2]
        own = scale[0] / scale[1:]
        return np.vstack([-own * self.means[1:], np.diag(own)])

    def _rows(self, slopes: Floats) -> Floats:
        found = self._units @ slopes
        found[0] += self.means[0]
        return np.asarray(found)

    @cached_property
    def naive(self) -> Floats:
        """The coefficients that the released records give."""
        found = self._naive_matrix
        return self._rows(np.asarray(np.linalg.solve(found[1:, 1:], found[1:, 0]), dtype=np.float64))

    @cached_property
    def values(self) -> Floats:
        """The corrected coefficients."""
        return self._rows(self._slopes)

    @cached_property
    def attenuation(self) -> Floats:
        """The part of each predictor's association with the outcome that the swap leaves on average; a function of
        what it keeps. Not told for the intercept."""
        design, law = self.design, self.sums.law
        found = np.ones(len(design.labels))
        found[0] = np.nan
        if not design.exact:
            other = np.flatnonzero(design.swapped == self._against)
            whole = np.diag(self._within_own(self._ones))
            left = np.diag(self._within_own(law.shrinkage))
            found[other] = 1 - (whole - left)
        return found

    @cached_property
    def _residual(self) -> Floats:
        return np.append(1.0, -self._slopes)

    @cached_property
    def _swap_covariance(self) -> tuple[Floats, Floats]:
        """Of the scaled slopes, from the swap alone; and what it were if held and swapped were unrelated."""
        found, unrelated = np.zeros((2, self.predictors, self.predictors))
        if self.design.exact:
            return found, unrelated
        own = np.hstack([np.zeros((self.predictors, 1)), self._inverse])
        held, swapped = self._parts(np.vstack([self._residual, own]))
        parts = ScoreCovariances(self.sums, self._held_columns, held, swapped, self.factor)
        terms = [[one for one in ((j, 0), (0, j)) if parts.has(*one)] for j in range(1, self.predictors + 1)]
        for j in range(self.predictors):
            for k in range(j + 1):
                pairs = [parts.between(one, other) for one in terms[j] for other in terms[k]]
                found[j, k] = found[k, j] = sum(pair[0] for pair in pairs)
                unrelated[j, k] = unrelated[k, j] = sum(pair[1] for pair in pairs)
        return found, unrelated

    @cached_property
    def swap_variances(self) -> Floats:
        """Variances of the rows from the swap alone. Where a small file makes the unbiased one negative, the variance
        under independence is taken."""
        found, unrelated = (np.diag(self._units @ part @ self._units.T) for part in self._swap_covariance)
        return np.where(found > 0, found, np.maximum(unrelated, 0.0))

    @cached_property
    def _residual_variance(self) -> float:
        """s^2, without bias unless it is below its own standard error, which is then taken."""
        matrix, covariance = self.matrix, self._swap_covariance[0]
        left = self._residual @ matrix @ self._residual + np.sum(matrix[1:, 1:] * covariance)
        return max(float(left), self._square_error(self._residual), 0.0) / self.degrees

    def _square_error(self, weights: Floats) -> float:
        """The standard error, from the swap, of the corrected sum of squares of some weights of the variables."""
        if self.design.exact:
            return 0.0
        parts = ScoreCovariances(self.sums, self._held_columns, *self._parts(weights[None, :]), self.factor)
        variance, unrelated = parts.between((0, 0), (0, 0)) if parts.has(0, 0) else (0.0, 0.0)
        return float(2 * np.sqrt(variance if variance > 0 else max(unrelated, 0.0)))

    @cached_property
    def _meat(self) -> Floats:
        """Cross products of the predictors as the errors of the outcome meet them: more than the cross products
        themselves where one lambda serves strata that have different ones."""
        found = self.matrix[1:, 1:].copy()
        if self.pooled:
            other = np.flatnonzero(self.design.swapped == self._against) - 1
            found[np.ix_(other, other)] += self._spill - self._within_own(self._ones)
        return found

    @property
    def _spill(self) -> Floats:
        """The sum over strata of lambda^2 A' S A."""
        inner = self._within_own(self.sums.law.shrinkage**2)
        return np.asarray(self._pooling.T @ inner @ self._pooling)

    @cached_property
    def file_variances(self) -> Floats:
        """Variances of the rows about the coefficients in the file before the swap."""
        if not self.pooled:
            return self.swap_variances
        other = np.flatnonzero(self.design.swapped == self._against) - 1
        mixed = self._within_own(self.sums.law.shrinkage) @ self._pooling
        whole = self._within_own(self._ones)
        apart = np.zeros((self.predictors,) * 2)
        apart[np.ix_(other, other)] = self._spill - mixed - mixed.T + whole
        outer = self._units @ self._inverse
        return self.swap_variances + self._residual_variance * np.diag(outer @ apart @ outer.T)

    @cached_property
    def sampling_variances(self) -> Floats:
        """What sampling adds about the population, where the outcome spreads alike for all records."""
        outer = self._units @ self._inverse
        found = np.diag(outer @ self._meat @ outer.T).copy()
        found[0] += self._centred[2][0] ** 2 / self.records
        return self._residual_variance * found

    @cached_property
    def robust_variances(self) -> Floats:
        """What sampling adds about the population, where the outcome may spread differently from record to record."""
        outer = self._units @ self._inverse
        constant = np.zeros(len(outer))
        constant[0] = self._centred[2][0] / self.records
        weights = np.hstack([np.zeros((len(outer), 1)), outer])
        signs, vectors = np.linalg.eigh(self._swap_covariance[0])
        roots = [(sign, np.append(0.0, vector)) for sign, vector in zip(signs, vectors.T, strict=True) if sign]
        found = []
        for own, at in zip(weights, constant, strict=True):
            meat = self._fourth(own, at, self._residual)
            meat -= sum(sign * self._fourth(own, at, vector) for sign, vector in roots)
            found.append(meat)
        plain = np.diag(outer @ self.matrix[1:, 1:] @ outer.T).copy()
        wider = np.diag(outer @ self._meat @ outer.T) / np.where(plain > 0, plain, 1.0)
        robust = np.array(found) * self.records / self.degrees * wider
        return np.where(robust > 0, robust, self.sampling_variances)

    def _fourth(self, one: Floats, constant: float, other: Floats) -> float:
        """The sum of (constant + one x)^2 (other x)^2 over the true records."""
        swapped = self.design.swapped
        a, e = (self._held @ part[~swapped] for part in (one, other))
        b, d = (self._swap @ part[swapped] for part in (one, other))
        a = a + constant
        cells = self.sums.held
        total = 0.0
        for p in range(3):
            for q in range(3):
                f, g = a**p * e**q, b ** (2 - p) * d ** (2 - q)
                if f.any() and g.any():
                    total += comb(2, p) * comb(2, q) * self.sums.product_of_parts(f[cells], g)
        return total

    def variances(self, target: str, *, robust: bool) -> Floats:
        """Variances of the rows about ``file`` or ``population``."""
        if target == "file":
            return self.file_variances
        return self.swap_variances + (self.robust_variances if robust else self.sampling_variances)

    def reach(self, confidence: float, target: str) -> float:
        """How many standard errors an interval reaches to each side."""
        tail = (1 + confidence) / 2
        return float(special.ndtri(tail) if target == "file" else special.stdtrit(self.degrees, tail))
