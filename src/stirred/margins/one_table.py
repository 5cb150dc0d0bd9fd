"""Best linear unbiased estimates of one table without geography, from noisy margins of it.

Margins A_q x of the cells x are measured with independent noise of variance v_q. Generalised least squares puts all of
them together: with the precision matrix L = sum of A_q'A_q / v_q, a sum c'x of cells has the estimate
c' L^-1 (sum of A_q'y_q / v_q) and the variance c' L^-1 c, where c lies in the range of L; elsewhere no measurement
tells it. L is inverted block by block (:mod:`stirred.margins.margin_blocks`), never over the cells.

One attribute, the *stratum*, may have a factor for each of its values: margins by it are then measured with variance
v_q factor_h^2 in stratum h. Dividing these measurements by their factors makes their noise uniform; values of the
stratum are no longer alike, so its blocks are as large as there are strata.

The invariant a reader must know: everything but :meth:`FlatTable.estimates` follows from the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred.margins.margin_blocks import Array, Block, Margin, Split, plain, representatives
from stirred.margins.schema import Schema
from stirred.margins.tree import range_and_null, scaled

LARGEST = 2048
"""Numbers that recodes and strata may tie together: strata times the product, over the other attributes, of the
numbers of sets of alike values."""

MOST_PAIRS = 1 << 22
"""Pairs of groups whose covariances are given at a time."""

WIDE = 24
"""Attributes with more values have lists of groups in place of matrices (:mod:`stirred.margins.margin_blocks`)."""

WIDEST = 1e10
"""Variances may differ by this factor; beyond it too few digits of the more precise ones would be left."""

Where = Mapping[str, Sequence[str]]
Variance = float | Fraction
Pairs = NDArray[np.integer[Any]]

_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class MeasuredMargin:
    """A margin that is measured, with the variance of its noise."""

    by: tuple[str, ...]
    variance: float
    margin: Margin
    factors: Array
    """For each group the factor of its stratum, by which the noise is larger than the variance says; else 1."""

    @property
    def variances(self) -> Array:
        """The variance of the noise in each group."""
        return self.variance * self.factors**2

    @property
    def words(self) -> str:
        """What the margin is called in a message."""
        return "The total" if not self.by else "The margin by " + " and ".join(f"'{name}'" for name in self.by)


@dataclass(frozen=True, eq=False)
class Solution:
    """What the measurements tell about the numbers of one block."""

    covariance: Array
    """Of the numbers of a copy; zero in the directions that are not known."""
    unknown: Array
    """Columns: an orthonormal basis of the directions that no measurement is about."""


@dataclass(frozen=True, eq=False, repr=False)
class FlatTable:
    """A table of which some margins are measured, and what follows for every other margin.

    >>> from stirred.margins.schema import Attribute
    >>> schema = Schema((Attribute("sex", ("f", "m")), Attribute("age", ("0", "1", "2"))))
    >>> table = FlatTable.of(schema, [(["sex", "age"], 6), ([], 6)])
    >>> table.variances(["sex"]).round(3).tolist(), table.variances().round(3).tolist()
    ([10.286, 10.286], [5.143])
    >>> table.estimates([[5, 1, 2, 3, 4, 5], [27]], ["sex"]).round(6).tolist()
    [11.0, 15.0]
    """

    schema: Schema
    measured: tuple[MeasuredMargin, ...]
    name: str
    apart: tuple[int, ...]
    """The places of attributes whose values have different factors."""
    _solutions: dict[tuple[bool, ...], Solution] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<FlatTable {self.name!r}: {len(self.measured)} measured margins of {self.schema.cells:,} cells>"

    @classmethod
    def of(
        cls,
        schema: Schema,
        measured: Sequence[tuple[Sequence[str], Variance]],
        *,
        stratum: str | None = None,
        factors: Mapping[str, Variance] | None = None,
        name: str = "table",
    ) -> FlatTable:
        """From the margins that are measured, each with the variance of the noise on every group.

        Of margins by ``stratum``, an attribute, the noise has a standard deviation that is larger by the factor of the
        stratum, one for each of its values; margins by a recode of it are like the others.
        """
        if not measured:
            raise errors.measured_margin("A table", "must have at least one measured margin")
        of_stratum = _factors(schema, stratum, factors)
        found = tuple(_measured(schema, by, variance, stratum, of_stratum) for by, variance in measured)
        every = np.concatenate([one.variances for one in found])
        if every.max() > WIDEST * every.min():
            raise errors.measured_margin("Measured margins", f"must have variances within a factor of {WIDEST:g}")
        bases = [attribute.name for attribute in schema.attributes]
        table = cls(schema, found, name, (bases.index(str(stratum)),) if _uneven(of_stratum) else ())
        table.split([margin_of(schema, ())])  # refuses what is too wide
        return table

    def variances(self, by: Sequence[str] = (), where: Where | None = None) -> Array:
        """The variance of the estimate of each group; infinite for groups that nothing determines.

        ``where`` counts only records that have, for every name, one of the listed values. Margins of which no group is
        determined are refused.
        """
        asked = margin_of(self.schema, by, where)
        return self._variances(asked, self.split([asked]))

    def estimates(self, values: Sequence[ArrayLike], by: Sequence[str] = (), where: Where | None = None) -> Array:
        """The estimate of each group from the measured values; NaN for groups that nothing determines.

        ``values`` has for each measured margin its noisy values, in the order of its groups; or several rows of them,
        and then the result has a row for each.
        """
        asked = margin_of(self.schema, by, where)
        split = self.split([asked])
        lost = np.isinf(self._variances(asked, split))
        if len(values) != len(self.measured):
            raise errors.measured_margin("Measured values", f"must be given for all {len(self.measured)} margins")
        read = [_read(one, some) for one, some in zip(self.measured, values, strict=True)]
        if len({len(rows) for rows in read}) > 1:
            raise errors.measured_margin("Measured values", "must have the same number of rows for every margin")
        tensor = np.zeros((len(read[0]), *split.shape))
        for one, rows in zip(self.measured, read, strict=True):
            tensor += split.projected(one.margin, rows / one.factors) / one.variance
        found = split.told(asked, self._solved(split, tensor))
        found[:, lost] = np.nan
        return found if any(np.ndim(some) == 2 for some in values) else found[0]

    def covariances(
        self,
        by: Sequence[str] = (),
        where: Where | None = None,
        other_by: Sequence[str] | None = None,
        other_where: Where | None = None,
        *,
        pairs: Pairs | None = None,
    ) -> Array:
        """The covariance of the estimates of every group with every group of the same margin, or of another one.

        ``pairs`` has two columns, a group of the margin and a group of the other: then only their covariances are
        given. Groups that nothing determines have NaN.
        """
        one = margin_of(self.schema, by, where)
        same = other_by is None and other_where is None
        other = one if same else margin_of(self.schema, by if other_by is None else other_by, other_where)
        number = one.groups * other.groups if pairs is None else len(pairs)
        if number > MOST_PAIRS:
            raise errors.estimate_question("Covariances", f"can be asked for at most {MOST_PAIRS:,} pairs at a time")
        split = self.split([one, other])
        lost = [np.isinf(self._variances(margin, split)) for margin in (one, other)]
        if pairs is None:
            first, second = (at.ravel() for at in np.indices((one.groups, other.groups)))
        else:
            first, second = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        left, right = one.in_tensor[first], other.in_tensor[second]
        total = np.zeros(number)
        for block in split.blocks:
            rows, at = block.distinct(one)
            columns, across = block.distinct(other)
            between = rows @ self._solution(block).covariance @ columns.T
            total += between[at[left], across[right]] * block.products(one, left, other, right)
        total[lost[0][first] | lost[1][second]] = np.nan
        return total if pairs is not None else total.reshape(one.groups, other.groups)

    def weights(
        self, by: Sequence[str] = (), where: Where | None = None, coefficients: ArrayLike | None = None
    ) -> tuple[Array, ...]:
        """For each measured margin, the weight of every value of it in the estimate of a sum of asked groups.

        The sum has a coefficient for each group (1 where only one group is asked). The estimate is the sum of all
        weights times values, its error the same sum of the noise. Several rows of coefficients have rows of weights.
        """
        asked = margin_of(self.schema, by, where)
        given = np.ones(1) if coefficients is None else np.asarray(coefficients, dtype=np.float64)
        if given.ndim not in (1, 2) or given.shape[-1] != asked.groups:
            raise errors.estimate_question(
                "The coefficients of a sum", f"must be {asked.groups:,} numbers, one for each group"
            )
        split = self.split([asked])
        form = split.projected(asked, np.atleast_2d(given))
        for block in split.blocks:
            missing = np.abs(self._solution(block).unknown.T @ block.take(form)).max(initial=0)
            if missing > _TINY * max(1.0, float(np.abs(given).max(initial=0))):
                raise errors.not_estimable(self.name, "this sum")
        tensor = self._solved(split, form)
        found = tuple(split.told(one.margin, tensor) / (one.variance * one.factors) for one in self.measured)
        return found if given.ndim == 2 else tuple(one[0] for one in found)

    def split(self, asked: Sequence[Margin], largest: int | None = None) -> Split:
        """Bases and blocks for some margins together; refused where a block has more than ``largest`` numbers."""
        known = [one.margin for one in self.measured]
        return Split.of(self.name, asked, known, LARGEST if largest is None else largest, self.apart)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _variances(self, asked: Margin, split: Split) -> Array:
        """Refuses a margin of which nothing is determined."""
        few, places = representatives(asked, split.axes)
        solutions = [self._solution(block) for block in split.blocks]
        found = split.variances(few, [one.covariance[None] for one in solutions])[0]
        found[split.unseen(few, [one.unknown for one in solutions])] = np.inf
        if np.isinf(found).all():
            raise errors.not_estimable(self.name, "this margin")
        return np.asarray(asked.spread(found[places][None])[0])

    def _solved(self, split: Split, tensor: Array) -> Array:
        """L^-1 times numbers in the basis of the blocks."""
        found = np.zeros_like(tensor)
        for block in split.blocks:
            block.put(found, self._solution(block).covariance @ block.take(tensor))
        return found

    def _solution(self, block: Block) -> Solution:
        """The same for every asked margin: what is shared by alike values does not depend on it."""
        if block.within not in self._solutions:
            self._solutions[block.within] = solve(block, self.measured)
        return self._solutions[block.within]


def margin_of(schema: Schema, by: Sequence[str], where: Where | None = None) -> Margin:
    """A margin of a table without geography, as all its margins are written."""
    return Margin.of(schema, by, where, WIDE)


def solve(block: Block, measured: Sequence[MeasuredMargin]) -> Solution:
    """Invert the precision matrix of a block where it can be inverted."""
    pieces = [block.information(one.margin) for one in measured]
    seen = sum((scaled(plain_information(block, one)) for one in measured), np.zeros((block.size, block.size)))
    known, unknown = range_and_null(seen)
    precision = sum((piece / one.variance for piece, one in zip(pieces, measured, strict=True)), np.zeros(seen.shape))
    return Solution(inverted(precision, known, unknown), unknown)


def inverted(precision: Array, known: Array, unknown: Array) -> Array:
    """The inverse of a precision matrix on the directions that are known, zero elsewhere.

    Rows and columns are first scaled to a diagonal of ones: queries of very different precision lose fewer digits so.
    """
    inner = known.T @ precision @ known if unknown.shape[1] else precision
    if not len(inner):
        return np.zeros_like(precision)
    scale = 1 / np.sqrt(np.diagonal(inner))
    found = np.linalg.inv(inner * scale[:, None] * scale) * scale[:, None] * scale
    found = (found + found.T) / 2
    return np.asarray(known @ found @ known.T if unknown.shape[1] else found)


def plain_information(block: Block, one: MeasuredMargin) -> Array:
    """A'A where A has entries of zero and one: how noisy a stratum is does not decide what is measured of it."""
    return block.information(replace(one.margin, factors=tuple(map(plain, one.margin.factors))))


def _measured(
    schema: Schema, by: Sequence[str], variance: Variance, stratum: str | None, of_stratum: Array
) -> MeasuredMargin:
    margin = margin_of(schema, by)
    number = float(variance)
    found = MeasuredMargin(tuple(by), number, margin, np.ones(margin.groups))
    if not 0 < number < math.inf:
        raise errors.measured_margin(found.words, "must have a positive variance")
    if stratum not in found.by:
        return found
    if not _uneven(of_stratum):
        return replace(found, variance=number * float(of_stratum[0]) ** 2)
    at = found.by.index(stratum)
    place = [attribute.name for attribute in schema.attributes].index(stratum)
    divided = tuple(factor / of_stratum if number == place else factor for number, factor in enumerate(margin.factors))
    after = math.prod(margin.sizes[at + 1 :])
    of_group = of_stratum[np.arange(margin.groups) // after % margin.sizes[at]]
    return replace(found, margin=replace(margin, factors=divided), factors=of_group)


def _uneven(of_stratum: Array) -> bool:
    return bool(of_stratum.min() < of_stratum.max())


def _factors(schema: Schema, stratum: str | None, factors: Mapping[str, Variance] | None) -> Array:
    if (stratum is None) != (factors is None):
        raise errors.measured_margin("Factors of strata", "need both the attribute and a factor for each of its values")
    if stratum is None or factors is None:
        return np.ones(1)
    if schema.base(stratum) != stratum:
        raise errors.measured_margin(f"The stratum '{stratum}'", "must be an attribute, not a recode")
    if set(factors) != set(schema.values(stratum)):
        raise errors.measured_margin("Factors of strata", f"must be given for each value of '{stratum}', and no other")
    found = np.array([float(factors[value]) for value in schema.values(stratum)])
    if not (np.all(found > 0) and np.all(np.isfinite(found))):
        raise errors.measured_margin("Factors of strata", "must be positive")
    return found


def _read(one: MeasuredMargin, values: ArrayLike) -> Array:
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != one.margin.groups:
        raise errors.measured_margin(one.words, f"must have {one.margin.groups:,} values, one for each group")
    return rows
