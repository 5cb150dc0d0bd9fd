"""Attributes with thousands of values: the same bases as for few values, without a matrix as large as their square.

A value belongs to at most one group of a margin, so a list of groups does for the matrix of a factor
(:class:`Partition`). Functions that are constant on sets of alike values have one basis vector for each set. Functions
that add up to zero on each set are kept as they are, with a number for each value: the projection P on them is
symmetric and P P = P, so products of projected rows are those of any orthonormal basis.

The invariant a reader must know: everything takes time and memory in proportion to the number of values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]

WIDE = 512
"""Attributes with more values than this are treated as here, unless a caller says otherwise."""
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Partition:
    """A matrix with a row for each group and a column for each value, and at most one entry in each column.

    >>> Partition.of(np.array([0, 1, 1, -1]), 2) @ np.eye(4)
    array([[1., 0., 0., 0.],
           [0., 1., 1., 0.]])
    """

    group: Places
    """Of each value; -1 where it is in none."""
    number: int
    scale: Array
    """The entry of each value."""

    @classmethod
    def of(cls, group: Places, number: int) -> Partition:
        """A matrix of zeros and ones."""
        return cls(np.asarray(group, dtype=np.int64), number, np.ones(len(group)))

    def __len__(self) -> int:
        return self.number

    @property
    def shape(self) -> tuple[int, int]:
        """Groups and values."""
        return self.number, len(self.group)

    def __truediv__(self, each: Array) -> Partition:
        """Every column divided by its number."""
        return replace(self, scale=self.scale / each)

    def __getitem__(self, rows: Places) -> Partition:
        """Some groups, each at most once."""
        place = np.full(self.number + 1, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return Partition(place[self.group], len(rows), self.scale)

    def __matmul__(self, other: Array) -> Array:
        found = np.zeros((self.number, other.shape[1]))
        np.add.at(found, self.group[self.inside], other[self.inside] * self.scale[self.inside, None])
        return found

    @property
    def plain(self) -> Partition:
        """The same with entries of zero and one."""
        return replace(self, scale=np.ones(len(self.group)))

    @cached_property
    def inside(self) -> Places:
        """The values that are in a group."""
        return np.flatnonzero(self.group >= 0)

    @cached_property
    def sizes(self) -> Places:
        """The number of values in each group."""
        return np.bincount(self.group[self.inside], minlength=self.number)

    @property
    def lists_all(self) -> bool:
        """Whether every value has a group for itself; others may be empty, as those by an attribute and its recode."""
        return len(self.inside) == len(self.group) and bool(np.all(self.sizes <= 1))

    def only(self, chosen: NDArray[np.bool_]) -> Partition:
        """The groups with some of the values only."""
        return replace(self, group=np.where(chosen, self.group, -1))

    def crossed(self, group: Places, number: int) -> Partition:
        """Each group divided by other groups, which every value has one of."""
        crossed = np.where(self.group < 0, -1, self.group * number + group)
        return replace(self, group=crossed, number=self.number * number)

    def overlaps(self, other: Partition) -> tuple[Places, Array]:
        """Pairs of groups of two matrices that have a value in common, as first times ``len(other)`` plus second; and
        the products of their rows."""
        both = np.flatnonzero((self.group >= 0) & (other.group >= 0))
        keys = self.group[both] * other.number + other.group[both]
        found, at = np.unique(keys, return_inverse=True)
        products = np.bincount(at.ravel(), self.scale[both] * other.scale[both], len(found))
        return found, np.asarray(products, dtype=np.float64)

    def sums_of(self, finer: Partition) -> Array:
        """For each group, how many groups of ``finer`` it is the sum of; 0 where it is not such a sum."""
        keys, common = self.plain.overlaps(finer.plain)
        mine, theirs = keys // finer.number, keys % finer.number
        whole = common == finer.sizes[theirs]
        many = np.bincount(mine, whole, self.number)
        return np.where(np.bincount(mine, ~whole, self.number) == 0, many, 0.0)


@dataclass(frozen=True, eq=False)
class WideAxis:
    """Bases for an attribute with many values: a vector for each set of alike values, and projections of values."""

    alike: Places
    """The set of each value."""
    shared: int
    """The number of sets."""
    inner: bool
    """Whether asked margins tell alike values apart."""

    @classmethod
    def of(cls, asked: list[Partition], known: list[Partition], apart: bool) -> WideAxis:
        """As :func:`~stirred.margins.margin_blocks.axes_for` describes it, for one attribute."""
        values = asked[0].shape[1]
        alike = np.arange(values) if apart else np.zeros(values, dtype=np.int64)
        for one in known:
            if len(np.unique(one.group)) < values:
                alike = np.unique(alike * (one.number + 1) + one.group + 1, return_inverse=True)[1].ravel()
        axis = cls(alike, int(alike.max()) + 1, True)
        inner = any(bool(np.any(axis.split(one)[1] > _TINY)) for one in asked) if axis.shared < values else False
        return replace(axis, inner=inner)

    @property
    def widths(self) -> tuple[int, int]:
        """The numbers of sets, and of numbers that are kept for the functions that add up to zero on each set."""
        return self.shared, len(self.alike) if self.inner else 0

    @cached_property
    def height(self) -> Array:
        """What the basis vector of a value's set is at the value."""
        return 1 / np.sqrt(np.bincount(self.alike, minlength=self.shared)[self.alike])

    def outer(self, factor: Partition) -> Array:
        """For each row of a factor its products with the vectors of the sets."""
        inside = factor.inside
        keys = factor.group[inside] * self.shared + self.alike[inside]
        found = np.bincount(keys, (factor.scale * self.height)[inside], factor.number * self.shared)
        return np.asarray(found, dtype=np.float64).reshape(factor.number, self.shared)

    def split(self, factor: Partition) -> tuple[Array, Array]:
        """For each row of a factor its products with the vectors of the sets, and the square of what is left of it."""
        outer = self.outer(factor)
        whole = np.bincount(factor.group[factor.inside], factor.scale[factor.inside] ** 2, factor.number)
        left = whole - (outer**2).sum(axis=1)
        return outer, np.where(left <= _TINY * whole, 0.0, left)

    def information(self, factor: Partition) -> Array:
        """The number by which A'A of a known margin acts inside sets: 1 if it lists all values, else 0."""
        return np.full((1, 1), float(factor.lists_all))

    def products(self, one: Partition, first: Places, other: Partition, second: Places) -> Array:
        """For pairs of rows of two factors, the product of what is left of them inside sets."""
        keys, common = one.overlaps(other)
        wanted = first * other.number + second
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        both = np.where(keys[at] == wanted, common[at], 0.0) if len(keys) else np.zeros(len(wanted))
        return np.asarray(both - (self.outer(one)[first] * self.outer(other)[second]).sum(axis=1))

    def to_basis(self, factor: Partition) -> Change:
        """Takes numbers by group to the basis."""
        return Change(self, factor, False)

    def to_groups(self, factor: Partition) -> Change:
        """Takes numbers in the basis to sums by group."""
        return Change(self, factor, True)


@dataclass(frozen=True, eq=False)
class Change:
    """A change of numbers along one axis, from groups to the basis or (``back``) from the basis to groups."""

    axis: WideAxis
    factor: Partition
    back: bool

    @property
    def shape(self) -> tuple[int, int]:
        """How many numbers there are before and after."""
        inside, outside = len(self.factor), sum(self.axis.widths)
        return (outside, inside) if self.back else (inside, outside)

    def apply(self, numbers: Array) -> Array:
        """Change the middle axis of three."""
        axis, factor = self.axis, self.factor
        height = axis.height[:, None]
        if not self.back:
            values = np.where(factor.group >= 0, factor.scale, 0.0)[:, None] * numbers[:, factor.group]
            shared = _added(values * height, axis.alike, axis.shared)
            if not axis.inner:
                return shared
            return np.concatenate([shared, values - shared[:, axis.alike] * height], axis=1)
        values = numbers[:, axis.alike] * height
        if axis.inner:
            values = values + numbers[:, axis.shared :]
        return _added((values * factor.scale[:, None])[:, factor.inside], factor.group[factor.inside], factor.number)


def _added(values: Array, group: Places, number: int) -> Array:
    """Sums along the middle axis, by group."""
    if number == values.shape[1] and np.array_equal(group, np.arange(number)):
        return values
    found = np.zeros((values.shape[0], number, values.shape[2]))
    for row, numbers in zip(found, values, strict=True):
        np.add.at(row, group, numbers)
    return found
