"""Margins as products of small matrices, and the independent blocks that least squares about them fall into.

A cell is a combination of values, so a sum over cells that asks about each attribute separately is a product of forms,
one on the values of each attribute. A marginal query is a product of matrices, A = A_1 x ... x A_k, where A_a puts the
values of attribute a into groups.

Call two values of an attribute *alike* when no query or invariant tells them apart but those that list every value.
Functions that are constant on sets of alike values, and functions that add up to zero on each of these sets, are two
orthogonal spaces. Every A_a'A_a maps each of them to itself: the first by a matrix as large as there are sets, the
second by the number 1 if the query lists every value and by 0 if not. Choosing one of the two for each attribute gives
the *blocks* of the table: spaces that the precision matrices of all levels keep, so that each block is a problem of its
own. Without recodes all values are alike, the first space is a mean, the second its contrasts, and blocks are the terms
of an analysis of variance. Groups of unequal size make matrices that do not commute, so sets of alike values stay
together; this also covers recodes that cross.

Attributes that a recode over several of them ties together count as one attribute here, whose values are their
combinations (:attr:`Schema.axes`). Groups that overlap have rows with common entries; nothing above needs them to be
apart.

An attribute with thousands of values has the same bases, without a matrix as large as their square. A value belongs to
at most one group of a margin, so a list of groups does for the matrix of a factor (:class:`Partition`). Functions that
are constant on sets of alike values have one basis vector for each set. Functions that add up to zero on each set are
kept as they are, with a number for each value: the projection P on them is symmetric and P P = P, so products of
projected rows are those of any orthonormal basis.

The invariant a reader must know: everything takes time and memory in proportion to the number of values.

The invariant a reader must know: a block holds ``size`` numbers for each of its ``copies``, and the same matrices apply
to every copy. Only what the asked margin needs of a block is ever projected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.schema import Schema

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


Factor = Array | Partition
"""A row of zeros and ones for each group of an attribute's values; many values have a list of groups instead."""


@dataclass(frozen=True, eq=False)
class Margin:
    """The groups of a marginal, perhaps of some values only: for each attribute a row of zeros and ones per group.

    >>> from stirred.margins.schema import Attribute
    >>> schema = Schema((Attribute("sex", ("f", "m")), Attribute("age", ("0", "1", "2"))))
    >>> Margin.of(schema, ["sex"], {"age": ["1", "2"]}).factors[1].tolist()
    [[0.0, 1.0, 1.0]]
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    """The names sorted by attribute, as places among ``names``."""
    factors: tuple[Factor, ...]

    @classmethod
    def of(
        cls, schema: Schema, names: Sequence[str], where: Mapping[str, Sequence[str]] | None = None, wide: int = WIDE
    ) -> Margin:
        """The marginal by ``names`` of the records that have, for every name of ``where``, one of its values.

        Factors of attributes with more than ``wide`` values are lists of groups, the same for margins that meet.
        """
        for name in where or {}:
            schema.bases(name)
        if len(set(names)) < len(names):
            raise errors.estimate_question("A margin", "must name each attribute or recode once")
        places = [schema.axis_of(name) for name in names]
        order = tuple(sorted(range(len(names)), key=lambda at: places[at]))
        factors: list[Factor] = []
        for place, values in enumerate(schema.axis_shape):
            if values > wide:
                own = [names[at] for at in order if places[at] == place]
                factors.append(_partition(schema, place, own, where or {}))
                continue
            factor = np.ones((1, values))
            for at in order:
                if places[at] == place:
                    one = schema.members_on_axis(names[at]).astype(np.float64)
                    factor = (factor[:, None, :] * one[None, :, :]).reshape(-1, factor.shape[1])
            for name, wanted in (where or {}).items():
                if schema.axis_of(name) == place:
                    factor = factor * _chosen(schema, name, wanted)
            factors.append(factor)
        return cls(tuple(names), tuple(len(schema.values(name)) for name in names), order, tuple(factors))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return math.prod(self.sizes)

    def arranged(self, values: NDArray[np.generic]) -> Array:
        """Values with a column for each group, as a tensor with an axis for each attribute."""
        tensor = values.reshape(-1, *self.sizes).transpose(0, *(1 + at for at in self.order))
        return np.ascontiguousarray(tensor, dtype=np.float64).reshape(-1, *(len(factor) for factor in self.factors))

    def spread(self, tensor: Array) -> Array:
        """The inverse of :meth:`arranged`."""
        back = np.argsort(np.array(self.order, dtype=np.int64))
        split = tensor.reshape(-1, *(self.sizes[at] for at in self.order)).transpose(0, *(1 + int(at) for at in back))
        return np.ascontiguousarray(split).reshape(len(tensor), -1)

    @property
    def in_tensor(self) -> Places:
        """The place of each group in a tensor."""
        return np.asarray(self.spread(np.arange(self.groups, dtype=np.float64)[None])[0].astype(np.int64))

    def places(self, groups: Places, attribute: int) -> Places:
        """Of groups in the order of a tensor, the row of one attribute's factor."""
        after = math.prod(len(factor) for factor in self.factors[attribute + 1 :])
        return groups // after % len(self.factors[attribute])

    def sums_of(self, finer: Margin) -> Array:
        """For each of this margin's groups, in the order of a tensor, how many groups of ``finer`` it is the sum of;
        0 where it is not such a sum."""
        numbers = np.ones(1)
        for mine, theirs in zip(self.factors, finer.factors, strict=True):
            if isinstance(mine, Partition):
                assert isinstance(theirs, Partition)
                numbers = np.outer(numbers, mine.sums_of(theirs)).ravel()
                continue
            assert isinstance(theirs, np.ndarray)
            sizes = theirs.sum(axis=1)
            inside = mine @ theirs.T
            whole = (inside == sizes) & (sizes > 0)
            fits = np.all(whole | (inside == 0), axis=1) & np.all(whole @ theirs == mine, axis=1)
            numbers = np.outer(numbers, whole.sum(axis=1) * fits).ravel()
        return numbers


def plain(factor: Factor) -> Factor:
    """A factor with entries of zero and one."""
    return factor.plain if isinstance(factor, Partition) else (factor != 0).astype(np.float64)


def _partition(schema: Schema, axis: int, names: Sequence[str], where: Mapping[str, Sequence[str]]) -> Partition:
    """The groups of an axis with many values, by the names about it, with wanted values only."""
    found = Partition.of(np.zeros(schema.axis_shape[axis], dtype=np.int64), 1)
    for name in names:
        found = found.crossed(schema.codes_on_axis(name).astype(np.int64), len(schema.values(name)))
    for name, wanted in where.items():
        if schema.axis_of(name) == axis:
            _require_known(schema, name, wanted)
            chosen = np.array([value in wanted for value in schema.values(name)])
            found = found.only(chosen[schema.codes_on_axis(name)])
    return found


def _chosen(schema: Schema, name: str, wanted: Sequence[str]) -> Array:
    """Which values of a name's axis are in one of the wanted groups."""
    _require_known(schema, name, wanted)
    rows = [at for at, value in enumerate(schema.values(name)) if value in wanted]
    return np.asarray(schema.members_on_axis(name)[rows].any(axis=0, keepdims=True), dtype=np.float64)


def _require_known(schema: Schema, name: str, wanted: Sequence[str]) -> None:
    known = schema.values(name)
    strange = [value for value in wanted if value not in known]
    if strange:
        raise errors.unknown_choice(f"value of '{name}'", strange[0], known)


def contracted(tensor: Array, matrices: Sequence[Array | Change]) -> Array:
    """Every axis but the first multiplied by its matrix (a row for each old entry, a column for each new one)."""
    shape = list(tensor.shape)
    # Axes that shrink most come first, so that the others have less to do.
    for axis in sorted(range(1, len(shape)), key=lambda at: matrices[at - 1].shape[1] / matrices[at - 1].shape[0]):
        matrix = matrices[axis - 1]
        after = math.prod(shape[axis + 1 :])
        if isinstance(matrix, Change):
            tensor = matrix.apply(tensor.reshape(-1, shape[axis], after))
        elif matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix))):
            continue
        elif after == 1:
            tensor = tensor.reshape(-1, shape[axis]) @ matrix
        else:
            tensor = np.matmul(matrix.T, tensor.reshape(-1, shape[axis], after))
        shape[axis] = matrix.shape[1]
    return tensor.reshape(shape)


# -- bases and blocks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """An orthonormal basis for one attribute, a column for each of its vectors.

    The first ``shared`` are constant on sets of alike values; the others add up to zero on them, and there are as many
    as the asked margin needs.
    """

    basis: Array
    shared: int

    @property
    def widths(self) -> tuple[int, int]:
        """The numbers of vectors that are constant on sets of alike values, and of the others."""
        return self.shared, self.basis.shape[1] - self.shared

    def outer(self, factor: Array) -> Array:
        """For each row of a factor its products with the shared vectors."""
        return np.asarray(factor @ self.basis[:, : self.shared])

    def split(self, factor: Array) -> tuple[Array, Array]:
        """For each row of a factor its products with the shared vectors, and the square of what is left of it."""
        part = factor @ self.basis
        return part[:, : self.shared], (part[:, self.shared :] ** 2).sum(axis=1)

    def information(self, factor: Array) -> Array:
        """The number by which A'A of a known margin acts inside sets of alike values."""
        seen = factor @ self.basis[:, self.shared :]
        square = seen.T @ seen
        assert np.allclose(square, square[0, 0] * np.eye(len(square)))
        return np.asarray(np.round(square[:1, :1]))

    def products(self, one: Array, first: Places, other: Array, second: Places) -> Array:
        """For pairs of rows of two factors, the product of what is left of them inside sets."""
        part = self.basis[:, self.shared :]
        both = (one @ part) @ (other @ part).T
        return np.asarray(both[first, second])

    def to_basis(self, factor: Array) -> Array:
        """Takes numbers by group to the basis."""
        return np.asarray(factor @ self.basis)

    def to_groups(self, factor: Array) -> Array:
        """Takes numbers in the basis to sums by group."""
        return np.asarray((factor @ self.basis).T)


AnyAxis = Any
"""An :class:`Axis`, or for an attribute with many values a :class:`WideAxis`, which takes factors of its own kind."""


def axes_for(asked: Sequence[Margin], known: Sequence[Margin], apart: Sequence[int] = ()) -> tuple[AnyAxis, ...]:
    """Bases for asked margins, given all the margins that measurements and invariants are about.

    Of the attributes at the places ``apart`` no two values are taken to be alike.
    """
    found: list[AnyAxis] = []
    for place in range(len(asked[0].factors)):
        if isinstance(asked[0].factors[place], Partition):
            every = [[one for margin in some if isinstance(one := margin.factors[place], Partition)]
                     for some in (asked, known)]  # fmt: skip
            found.append(WideAxis.of(every[0], every[1], place in apart))
            continue
        factor = np.vstack([np.asarray(margin.factors[place]) for margin in asked])
        values = factor.shape[1]
        alike = np.arange(values) if place in apart else np.zeros(values, dtype=np.int64)
        for margin in known:
            groups = np.unique(np.asarray(margin.factors[place]).T, axis=0, return_inverse=True)[1].ravel()
            if not _lists_every_value(np.asarray(margin.factors[place])):
                alike = np.unique(alike * values + groups, return_inverse=True)[1].ravel()
        sets = np.eye(int(alike.max()) + 1)[alike]
        shared = sets / np.sqrt(sets.sum(axis=0))
        rest = factor - factor @ shared @ shared.T
        _, singular, rows = np.linalg.svd(rest, full_matrices=False)
        found.append(Axis(np.hstack([shared, rows[singular > _TINY].T]), shared.shape[1]))
    return tuple(found)


def _lists_every_value(factor: Array) -> bool:
    """Whether every value has a row of its own, and is in no other."""
    rows = factor != 0
    return bool(np.all(rows.sum(axis=0) == 1) and np.all(rows.sum(axis=1) <= 1))


def representatives(asked: Margin, axes: Sequence[AnyAxis]) -> tuple[Margin, Places]:
    """Some groups of a margin, such that every group has the variance of one of them; and for each group, in the order
    of a tensor, which one that is, in the order of a tensor too.

    For each attribute, groups that have the same part on sets of alike values, and contrasts of the same size, are one.
    """
    factors, places = [], np.zeros(1, dtype=np.int64)
    for axis, factor in zip(axes, asked.factors, strict=True):
        outer, inner = axis.split(factor)
        first, same = _same_rows(np.hstack([outer, inner[:, None]]))
        factors.append(factor[first])
        places = (places[:, None] * len(first) + same).ravel()
    sizes = tuple(len(factor) for factor in factors)
    return Margin(asked.names, sizes, tuple(range(len(sizes))), tuple(factors)), places


def _same_rows(matrix: Array) -> tuple[Places, Places]:
    """The first of each set of rows that are equal to twelve digits, and for each row the number of its set."""
    _, first, same = np.unique(np.round(matrix, 12), axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), same.ravel().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """One block: for each attribute either the shared functions, or (``within``) the contrasts inside alike values."""

    axes: tuple[AnyAxis, ...]
    within: tuple[bool, ...]

    @property
    def size(self) -> int:
        """How many numbers a copy holds."""
        return math.prod(axis.widths[0] for axis, inner in zip(self.axes, self.within, strict=True) if not inner)

    @property
    def copies(self) -> int:
        """How many copies there are."""
        return math.prod(axis.widths[1] for axis, inner in zip(self.axes, self.within, strict=True) if inner)

    def information(self, margin: Margin) -> Array:
        """A'A of a query in this block, where A has a row for each group; the noise is still to be divided by."""
        matrix: Array = np.ones((1, 1))
        for axis, inner, factor in zip(self.axes, self.within, margin.factors, strict=True):
            if inner:  # the same number for every contrast: 1 if all values are listed, else 0
                square = axis.information(factor)
            else:
                seen = axis.outer(factor)
                square = seen.T @ seen
            matrix = np.asarray(np.kron(matrix, square), dtype=np.float64)
        return matrix

    def loadings(self, asked: Margin) -> tuple[Array, Array]:
        """For each asked group its coefficients on the numbers of a copy, and the sum over copies of their squares."""
        inner_squares, shared = np.ones(1), np.ones((1, 1))
        for axis, inner, factor in zip(self.axes, self.within, asked.factors, strict=True):
            if inner:
                inner_squares = np.outer(inner_squares, axis.split(factor)[1]).ravel()
                shared = np.repeat(shared, len(factor), axis=0)
            else:
                part = axis.outer(factor)
                inner_squares = np.repeat(inner_squares, len(part))
                shared = (shared[:, None, :, None] * part[None, :, None, :]).reshape(len(shared) * len(part), -1)
        return shared, inner_squares

    def distinct(self, asked: Margin) -> tuple[Array, Places]:
        """The different rows of coefficients on the numbers of a copy, and which of them each asked group has; groups
        are in the order of a tensor."""
        rows, places = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
        for axis, inner, factor in zip(self.axes, self.within, asked.factors, strict=True):
            part = np.ones((len(factor), 1)) if inner else axis.outer(factor)
            first, same = _same_rows(part)
            rows = (rows[:, None, :, None] * part[first][None, :, None, :]).reshape(len(rows) * len(first), -1)
            places = (places[:, None] * len(first) + same).ravel()
        return rows, places

    def products(self, one: Margin, first: Places, other: Margin, second: Places) -> Array:
        """For pairs of a group of one margin and a group of another, the sum over copies of the products of their
        coefficients; groups are in the order of a tensor."""
        found = np.ones(len(first))
        for place, (axis, inner) in enumerate(zip(self.axes, self.within, strict=True)):
            if inner:
                found *= axis.products(
                    one.factors[place], one.places(first, place), other.factors[place], other.places(second, place)
                )
        return found

    def take(self, tensor: Array) -> Array:
        """This block's numbers out of a tensor: units, size, copies."""
        part = tensor[self._slices()]
        outer = [1 + at for at, inner in enumerate(self.within) if not inner]
        return part.transpose(0, *outer, *self._inside()).reshape(len(tensor), self.size, self.copies)

    def put(self, tensor: Array, numbers: Array) -> None:
        """The inverse of :meth:`take`, into a tensor."""
        outer = [1 + at for at, inner in enumerate(self.within) if not inner]
        order = [0, *outer, *self._inside()]
        part = tensor[self._slices()]
        part[...] = numbers.reshape([part.shape[at] for at in order]).transpose(np.argsort(order))

    def _inside(self) -> list[int]:
        return [1 + at for at, inner in enumerate(self.within) if inner]

    def _slices(self) -> tuple[slice, ...]:
        parts = (self._part(axis, inner) for axis, inner in zip(self.axes, self.within, strict=True))
        return (slice(None), *parts)

    @staticmethod
    def _part(axis: AnyAxis, inner: bool) -> slice:
        return slice(axis.shared, None) if inner else slice(axis.shared)


def blocks_of(axes: Sequence[AnyAxis]) -> list[Block]:
    """The independent blocks of a table: of each axis the mean, or what is within, where there is any."""
    choices = [(False, True) if axis.widths[1] else (False,) for axis in axes]
    return [Block(tuple(axes), within) for within in product(*choices)]


MarginGroups = tuple[Margin, Places]
"""Some groups of a margin, in the order of a tensor."""


@dataclass(frozen=True, eq=False)
class Split:
    """Bases and blocks for asked margins, given what is measured, over one table or over units of a geography.

    Blocks are uncorrelated, so variances of a form add up over blocks, and within a block over its copies.
    """

    axes: tuple[AnyAxis, ...]
    blocks: tuple[Block, ...]

    @classmethod
    def of(
        cls, table: str, asked: Sequence[Margin], known: Sequence[Margin], largest: int, apart: Sequence[int] = ()
    ) -> Split:
        """Refuse blocks of more than ``largest`` numbers; ``apart`` as in :func:`axes_for`."""
        axes = axes_for(asked, known, apart)
        blocks = blocks_of(axes)
        if (size := max(block.size for block in blocks)) > largest:
            raise errors.estimate_too_wide(table, size, largest)
        return cls(axes, tuple(blocks))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of basis vectors of each attribute."""
        return tuple(sum(axis.widths) for axis in self.axes)

    @property
    def numbers(self) -> int:
        """How many numbers all blocks have together."""
        return math.prod(self.shape)

    def projected(self, margin: Margin, values: NDArray[np.generic]) -> Array:
        """A'y in the basis of the blocks, as a tensor; values have a row for each unit."""
        return contracted(margin.arranged(values), [axis.to_basis(factor) for factor, axis in self._pairs(margin)])

    def told(self, margin: Margin, tensor: Array) -> Array:
        """A x for numbers x in the basis of the blocks: a row for each unit, a column for each group of a margin."""
        return margin.spread(contracted(tensor, [axis.to_groups(factor) for factor, axis in self._pairs(margin)]))

    def variances(self, asked: Margin, covariances: Sequence[Array]) -> Array:
        """From one covariance matrix per block and kind, a row for each kind; groups in the order of a tensor."""
        total: Array | None = None
        scale: Array | None = None
        for block, matrices in zip(self.blocks, covariances, strict=True):
            shared, squares = block.loadings(asked)
            rows, same = np.unique(np.round(shared, 12), axis=0, return_inverse=True)
            part = np.einsum("fi,kij,fj->kf", rows, matrices, rows, optimize=True)[:, same.ravel()] * squares
            bound = (np.abs(matrices).max(axis=(1, 2))[:, None] * (rows**2).sum(axis=1))[:, same.ravel()] * squares
            total = part if total is None else total + part
            scale = bound if scale is None else scale + bound
        assert total is not None and scale is not None
        return np.where(total <= 1e-13 * scale, 0.0, total)

    def covariances(self, matrices: Sequence[Array], one: MarginGroups, other: MarginGroups) -> Array:
        """The covariance of pairs of groups, given for each block the covariance of the vectors of pairs of places:
        a row for each pair of places, a column for each pair of groups.

        The groups may be of any margins that are sums of the asked one's groups.
        """
        total = np.zeros((len(matrices[0]), len(one[1])))
        for block, between in zip(self.blocks, matrices, strict=True):
            factor = block.products(*one, *other)
            both = [block.loadings(margin)[0][groups] for margin, groups in (one, other)]
            pairs, same = np.unique(np.round(np.hstack(both), 12), axis=0, return_inverse=True)
            left, right = pairs[:, : block.size], pairs[:, block.size :]
            total += np.einsum("fi,kij,fj->kf", left, between, right, optimize=True)[:, same.ravel()] * factor
        return total

    def unseen(self, margin: Margin, unknown: Sequence[Array]) -> NDArray[np.bool_]:
        """Which groups of a margin, in the order of a tensor, need a direction that is not known in some block."""
        found = np.zeros(math.prod(len(factor) for factor in margin.factors), dtype=np.bool_)
        for block, directions in zip(self.blocks, unknown, strict=True):
            shared, squares = block.loadings(margin)
            size = np.abs(shared @ directions).max(axis=1, initial=0)
            found |= size * np.sqrt(squares) > _TINY
        return found

    def _pairs(self, margin: Margin) -> Iterator[tuple[Factor, AnyAxis]]:
        return zip(margin.factors, self.axes, strict=True)
