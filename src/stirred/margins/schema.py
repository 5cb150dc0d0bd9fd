"""What a table counts: attributes with their full domains, recodes of them, and the cells and queries that follow.

A *cell* is a combination of values, one of each attribute, numbered with the last attribute fastest. A *query* is a
marginal: it puts cells into groups, one for each combination of the values of some attributes or recodes, and asks for
the number of records in each group. Where a recode's groups overlap a cell may be in several groups of a query; such a
query is several *families* of groups, none of which overlaps in itself.

A joint recode puts *combinations* of values into groups ("Hispanic", "white alone, not Hispanic"). An overlapping one
lets a combination be in several groups, or in none ("white, alone or in combination"). A group is a union of
conditions, each a list of values for some of the recode's attributes; an attribute that a condition does not name may
have any value.

The invariant a reader must know: how far one record moves a query by such recodes follows from the groups alone. A
record that changes leaves the groups of its old cell and enters those of its new one, each by one. Between two places
it moves at most twice the largest number of groups that a cell is in; in one place what the two cells' groups do not
have in common (:func:`most_moved`).

The invariant a reader must know: cells and groups come from the plan alone. A value that does not occur has its cells
all the same, and is measured like the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from stirred import errors

Groups = NDArray[np.int32]

MOST_KINDS = 4096
"""Kinds of cells that are compared pair by pair; beyond, moves within one place are bounded by those between places."""

MOST_VALUES = 512
"""Combinations that the attributes of an overlapping recode may have, so that least squares can take it in."""

Condition = tuple[tuple[str, tuple[str, ...]], ...]
"""For some attributes the values they may have."""


@dataclass(frozen=True)
class JointRecode:
    """Groups of combinations of values of some attributes.

    >>> either = JointRecode("any", ("race",), (("a", ((("race", ("a", "ab")),),)), ("b", ((("race", ("b", "ab")),),))),
    ...                      overlapping=True)
    >>> either.members({"race": ("a", "b", "ab")}).astype(int).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """

    name: str
    of: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Condition, ...]], ...]
    overlapping: bool = False

    def members(self, values: Mapping[str, Sequence[str]]) -> NDArray[np.bool_]:
        """Which combinations of the attributes' values are in each group: an axis for groups, one for each attribute.

        Raises unless the groups are as they must be: each combination in exactly one, unless the recode is overlapping.
        """
        shape = [len(values[one]) for one in self.of]
        found = np.zeros((len(self.groups), *shape), dtype=np.bool_)
        for number, (_, conditions) in enumerate(self.groups):
            for condition in conditions:
                inside = np.ones(shape, dtype=np.bool_)
                for attribute, wanted in condition:
                    at = self._place(attribute)
                    strange = [value for value in wanted if value not in values[attribute]]
                    if strange:
                        raise errors.unknown_choice(f"value of '{attribute}'", strange[0], values[attribute])
                    chosen = np.array([value in wanted for value in values[attribute]])
                    inside &= chosen.reshape([-1 if place == at else 1 for place in range(len(shape))])
                found[number] |= inside
        empty = [label for (label, _), inside in zip(self.groups, found, strict=True) if not inside.any()]
        if empty or not self.groups:
            which = f"group '{empty[0]}'" if empty else "list of groups"
            raise errors.margin_plan(f"The recode '{self.name}'", f"must not have an empty {which}")
        if not self.overlapping and not bool(np.all(found.sum(axis=0) == 1)):
            raise errors.margin_plan(
                f"The recode '{self.name}'",
                f"must put each combination of {errors.listed(self.of)} into exactly one group, or say overlapping = "
                "true",
            )
        return found

    def _place(self, attribute: str) -> int:
        if attribute not in self.of:
            raise errors.unknown_choice(f"attribute of the recode '{self.name}'", attribute, self.of)
        return self.of.index(attribute)


@dataclass(frozen=True, eq=False)
class Family:
    """Some groups of a query that do not overlap: their numbers in the query, and for each cell its place among them,
    -1 where it is in none."""

    columns: NDArray[np.int64]
    groups: Groups


def coloured(members: NDArray[np.bool_]) -> list[list[int]]:
    """Sets of groups that do not overlap, the first that fits for each group in turn.

    >>> coloured(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=bool))
    [[0, 2], [1]]
    """
    flat = members.reshape(len(members), -1)
    sets: list[list[int]] = []
    covered: list[NDArray[np.bool_]] = []
    for number, inside in enumerate(flat):
        for at, already in enumerate(covered):
            if not bool((already & inside).any()):
                sets[at].append(number)
                covered[at] = already | inside
                break
        else:
            sets.append([number])
            covered.append(inside.copy())
    return sets


def most_groups(codes: Sequence[NDArray[np.bool_]]) -> int:
    """The largest number of a query's groups that one cell is in; ``codes`` has for each name of the query the groups
    of every cell, a row for each group."""
    number: NDArray[np.int64] = np.ones(codes[0].shape[1] if codes else 1, dtype=np.int64)
    for members in codes:
        number = number * members.sum(axis=0, dtype=np.int64)
    return int(number.max())


def most_moved(codes: Sequence[NDArray[np.bool_]]) -> int:
    """The largest number of groups in which two cells differ, as an exact integer.

    Groups of a query by several names are combinations, so the number that two cells share is the product over the
    names of the numbers of groups they share. Cells with the same groups are compared once.

    >>> most_moved([np.array([[1, 0, 1], [0, 1, 1]], dtype=bool)])
    2
    """
    kinds = np.unique(np.vstack(codes), axis=1) if codes else np.ones((1, 1), dtype=np.bool_)
    if kinds.shape[1] > MOST_KINDS:
        return 2 * most_groups(codes)
    edges = np.cumsum([0, *(len(one) for one in codes)]).tolist()
    parts = [kinds[begin:end].astype(np.int64) for begin, end in pairwise(edges)]
    most = 0
    for first in range(0, kinds.shape[1], 256):
        some = slice(first, first + 256)
        shared: NDArray[np.int64] = np.ones((len(range(kinds.shape[1])[some]), kinds.shape[1]), dtype=np.int64)
        own: NDArray[np.int64] = np.ones(kinds.shape[1], dtype=np.int64)
        for part in parts:
            shared *= part[:, some].T @ part
            own *= part.sum(axis=0)
        most = max(most, int((own[some, None] + own[None, :] - 2 * shared).max()))
    return most


MOST_CELLS = 1 << 24
"""A cell's number, and the number of a cell in a group, are written out for every query."""


@dataclass(frozen=True)
class Attribute:
    """A categorical variable and all the values it can have."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) < len(self.values):
            raise errors.margin_plan(f"The attribute '{self.name}'", "must list each of its values once")


@dataclass(frozen=True)
class Recode:
    """A coarser attribute: each value of ``of`` belongs to one of its groups, by name."""

    name: str
    of: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Schema:
    """Attributes and recodes of one table.

    >>> ages = Attribute("age", ("0", "1", "18", "19"))
    >>> adult = Recode("adult", "age", (("no", ("0", "1")), ("yes", ("18", "19"))))
    >>> schema = Schema((Attribute("sex", ("f", "m")), ages), (adult,))
    >>> schema.cells, schema.groups(["adult"]).tolist(), schema.labels(["sex", "adult"])
    (8, [0, 0, 1, 1, 0, 0, 1, 1], [('f', 'no'), ('f', 'yes'), ('m', 'no'), ('m', 'yes')])
    """

    attributes: tuple[Attribute, ...]
    recodes: tuple[Recode | JointRecode, ...] = ()

    def __post_init__(self) -> None:
        if self.cells > MOST_CELLS:
            raise errors.margin_plan("A table", f"can have at most {MOST_CELLS:,} cells, not {self.cells:,}")
        names = self.names
        if len(set(names)) < len(names):
            raise errors.margin_plan("A table", "cannot have two attributes or recodes of the same name")
        _ = self._members  # each is checked as it is worked out
        for recode in self.recodes:
            if isinstance(recode, JointRecode):
                self._check_joint(recode)
                continue
            base = self._attribute(recode.of)
            listed = [value for _, values in recode.groups for value in values]
            if sorted(listed) != sorted(base.values):
                raise errors.margin_plan(
                    f"The recode '{recode.name}'", f"must put each value of '{recode.of}' into exactly one group"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(len(attribute.values) for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Attributes and recodes: what queries are made of."""
        return (*(one.name for one in self.attributes), *(one.name for one in self.recodes))

    def values(self, name: str) -> tuple[str, ...]:
        """The values of an attribute, or the names of a recode's groups."""
        for recode in self.recodes:
            if recode.name == name:
                return tuple(label for label, _ in recode.groups)
        return self._attribute(name).values

    def base(self, name: str) -> str:
        """The attribute that a name is, or recodes; raises for a recode of several attributes."""
        bases = self.bases(name)
        if len(bases) > 1:
            raise errors.margin_plan(f"The name '{name}'", "must be an attribute here, or a recode of one attribute")
        return bases[0]

    def bases(self, name: str) -> tuple[str, ...]:
        """The attributes that a name is about."""
        for recode in self.recodes:
            if recode.name == name:
                return recode.of if isinstance(recode, JointRecode) else (recode.of,)
        return (self._attribute(name).name,)

    def joint(self, name: str) -> bool:
        """Whether a name is a recode of several attributes, or one whose groups overlap."""
        return name in self._members

    def overlapping(self, names: Sequence[str]) -> bool:
        """Whether a cell may be in several groups, or in none, of the marginal by ``names``."""
        return any(isinstance(one, JointRecode) and one.overlapping and one.name in names for one in self.recodes)

    def groups(self, names: Sequence[str]) -> Groups:
        """The group of each cell in the marginal by ``names``, numbered with the last name fastest; raises where
        groups overlap."""
        result = np.zeros(self.cells, dtype=np.int32)
        for name in names:
            if self.overlapping((name,)):
                raise errors.margin_plan(
                    f"The recode '{name}'", "has groups that overlap, so it can stand in queries and tables only"
                )
            result = result * len(self.values(name)) + self._codes(name)
        return result

    def families(self, names: Sequence[str]) -> tuple[Family, ...]:
        """The groups of the marginal by ``names`` as sets of groups that do not overlap: one, unless recodes do."""
        if not self.overlapping(names):
            return (Family(np.arange(self.number_of_groups(names)), self.groups(names)),)
        choices: list[list[Groups]] = []
        for name in names:
            if not self.overlapping((name,)):
                choices.append([self._codes(name)])
                continue
            members = self.members(name)
            sets = coloured(members)
            choices.append(
                [
                    np.max([np.where(members[group], group, -1) for group in some], axis=0).astype(np.int32)
                    for some in sets
                ]
            )
        found = []
        for chosen in product(*choices):
            numbers, inside = np.zeros(self.cells, dtype=np.int64), np.ones(self.cells, dtype=np.bool_)
            for name, codes in zip(names, chosen, strict=True):
                numbers = numbers * len(self.values(name)) + codes
                inside &= codes >= 0
            columns, place = np.unique(numbers[inside], return_inverse=True)
            groups = np.full(self.cells, -1, dtype=np.int32)
            groups[inside] = place.ravel()
            found.append(Family(columns, groups))
        return tuple(found)

    def members(self, name: str) -> NDArray[np.bool_]:
        """Which cells are in each group of an attribute or recode: a row for each group."""
        if name not in self._members:
            return np.asarray(self._codes(name)[None, :] == np.arange(len(self.values(name)))[:, None])
        return np.asarray(self._spread(self._members[name], self.bases(name)).reshape(len(self.values(name)), -1))

    def most_moved(self, names: Sequence[str], one_place: bool = False) -> int:
        """By how much a changed record moves the marginal by ``names`` in all places together, as the squared length of
        the change: at most twice the number of groups that a cell is in, and where there is one place only no more than
        two cells can differ by.

        >>> Schema((Attribute("sex", ("f", "m")),)).most_moved(["sex"])
        2
        """
        if not self.overlapping(names):
            return 2
        codes = [self.members(name) for name in names]
        return (most_moved(codes) if one_place else 0) or 2 * most_groups(codes)

    def number_of_groups(self, names: Sequence[str]) -> int:
        """The number of groups of the marginal by ``names``."""
        return math.prod(len(self.values(name)) for name in names)

    def labels(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """The values of each group, in their order."""
        result: list[tuple[str, ...]] = [()]
        for name in names:
            result = [(*before, value) for before in result for value in self.values(name)]
        return result

    def where(self, conditions: Mapping[str, Sequence[str]]) -> NDArray[np.bool_]:
        """Which cells have, for every name, one of the values listed for it."""
        chosen = np.ones(self.cells, dtype=np.bool_)
        for name, wanted in conditions.items():
            known = self.values(name)
            strange = [value for value in wanted if value not in known]
            if strange:
                raise errors.margin_plan(f"The value '{strange[0]}'", f"is not one of the values of '{name}'")
            if name in self._members:
                chosen &= self.members(name)[[known.index(value) for value in wanted]].any(axis=0)
                continue
            codes = np.array([value in wanted for value in known])
            chosen &= codes[self._codes(name)]
        return chosen

    # -- axes ------------------------------------------------------------------------------------------------

    @cached_property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """The attributes that stand together in least squares: each alone, or those that joint recodes tie together."""
        names = [attribute.name for attribute in self.attributes]
        sets = [{at} for at in range(len(names))]
        for recode in self.recodes:
            if isinstance(recode, JointRecode):
                tied = {names.index(one) for one in recode.of}
                joined = tied.union(*(one for one in sets if one & tied))
                sets = [*(one for one in sets if not one & tied), joined]
        return tuple(sorted(tuple(sorted(one)) for one in sets))

    @cached_property
    def axis_shape(self) -> tuple[int, ...]:
        """The number of combinations of values on each axis."""
        return tuple(math.prod(self.shape[at] for at in axis) for axis in self.axes)

    def axis_of(self, name: str) -> int:
        """The axis that a name is on."""
        at = [attribute.name for attribute in self.attributes].index(self.bases(name)[0])
        return next(number for number, axis in enumerate(self.axes) if at in axis)

    def members_on_axis(self, name: str) -> NDArray[np.bool_]:
        """Which combinations of values of a name's axis are in each of its groups: a row for each group."""
        return self._on_axis(name).members(name)

    def codes_on_axis(self, name: str) -> Groups:
        """The group of each combination of values of a name's axis; its groups do not overlap."""
        return self._on_axis(name).groups([name])

    def _on_axis(self, name: str) -> Schema:
        """The attributes of a name's axis, and the name itself."""
        attributes = tuple(self.attributes[at] for at in self.axes[self.axis_of(name)])
        return Schema(attributes, tuple(one for one in self.recodes if one.name == name))

    def by_axes(self, cells: NDArray[np.generic]) -> NDArray[np.generic]:
        """Numbers with a column for each cell as a tensor with an axis for each of :attr:`axes`."""
        tensor = cells.reshape(-1, *self.shape)
        if len(self.axes) == len(self.shape):
            return tensor
        order = [1 + at for axis in self.axes for at in axis]
        return np.ascontiguousarray(tensor.transpose(0, *order)).reshape(-1, *self.axis_shape)

    def by_cells(self, tensor: NDArray[np.generic]) -> NDArray[np.generic]:
        """The inverse of :meth:`by_axes`: a row for each unit, an axis for each attribute."""
        if len(self.axes) == len(self.shape):
            return tensor
        order = [at for axis in self.axes for at in axis]
        split = tensor.reshape(-1, *(self.shape[at] for at in order))
        return split.transpose(0, *(1 + order.index(at) for at in range(len(order))))

    # -- helpers ---------------------------------------------------------------------------------------------

    @cached_property
    def _members(self) -> dict[str, NDArray[np.bool_]]:
        """Of each joint recode, which combinations of its attributes' values are in each group."""
        joint = [one for one in self.recodes if isinstance(one, JointRecode)]
        values = {name: self._attribute(name).values for one in joint for name in one.of}
        return {one.name: one.members(values) for one in joint}

    def _check_joint(self, recode: JointRecode) -> None:
        if not recode.of or len(set(recode.of)) < len(recode.of):
            raise errors.margin_plan(f"The recode '{recode.name}'", "must name each of its attributes once")
        number = self.axis_shape[self.axis_of(recode.name)]
        if recode.overlapping and number > MOST_VALUES:
            raise errors.margin_plan(
                f"The overlapping recode '{recode.name}'",
                f"must be of attributes that have, with those that other recodes tie to them, at most {MOST_VALUES:,} "
                f"combinations of values, not {number:,}",
            )

    def _spread(self, members: NDArray[np.bool_], of: Sequence[str]) -> NDArray[np.bool_]:
        """Groups of combinations of some attributes as groups of combinations of all."""
        names = [attribute.name for attribute in self.attributes]
        places = [names.index(one) for one in of]
        ordered = members.transpose(0, *(1 + at for at in np.argsort(places)))
        shape = [self.shape[at] if at in places else 1 for at in range(len(names))]
        return np.broadcast_to(ordered.reshape(len(members), *shape), (len(members), *self.shape))

    def _codes(self, name: str) -> Groups:
        """The code of one attribute or recode in each cell; its groups do not overlap."""
        if name in self._members:
            return np.asarray(np.argmax(self.members(name), axis=0), dtype=np.int32)
        at = [attribute.name for attribute in self.attributes].index(self.base(name))
        inner = math.prod(self.shape[at + 1 :])
        codes = (np.arange(self.cells) // inner) % self.shape[at]
        for recode in self.recodes:
            if recode.name == name and isinstance(recode, Recode):
                place = {value: number for number, (_, values) in enumerate(recode.groups) for value in values}
                return np.array([place[value] for value in self.attributes[at].values], dtype=np.int32)[codes]
        return codes.astype(np.int32)

    def _attribute(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise errors.unknown_choice("attribute or recode", name, self.names)


def refines(fine: Groups, coarse: Groups) -> bool:
    """Whether every group of ``fine`` lies in one group of ``coarse``, or outside all of them; not if ``fine`` leaves
    cells out (-1).

    >>> refines(np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1])), refines(np.array([0, 1]), np.array([-1, -1]))
    (True, True)
    """
    if fine.min() < 0:
        return False
    of_group = np.empty(int(fine.max()) + 1, dtype=coarse.dtype)
    of_group[fine] = coarse
    return bool(np.array_equal(of_group[fine], coarse))
