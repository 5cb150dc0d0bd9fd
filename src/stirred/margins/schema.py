"""What a table counts: attributes with their full domains, recodes of them, and the cells and queries that follow.

A *cell* is a combination of values, one of each attribute, numbered with the last attribute fastest. A *query* is a
marginal: it puts cells into groups, one for each combination of the values of some attributes or recodes, and asks for
the number of records in each group. Where a recode's groups overlap (:mod:`stirred.margins.joint_recodes`) a cell may
be in several groups of a query; such a query is several *families* of groups, none of which overlaps in itself.

The invariant a reader must know: cells and groups come from the plan alone. A value that does not occur has its cells
all the same, and is measured like the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.joint_recodes import MOST_VALUES, Family, JointRecode, coloured, most_groups, most_moved

Groups = NDArray[np.int32]

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
        axis = self.axes[self.axis_of(name)]
        attributes = tuple(self.attributes[at] for at in axis)
        return Schema(attributes, tuple(one for one in self.recodes if one.name == name)).members(name)

    def codes_on_axis(self, name: str) -> Groups:
        """The group of each combination of values of a name's axis; its groups do not overlap."""
        axis = self.axes[self.axis_of(name)]
        attributes = tuple(self.attributes[at] for at in axis)
        return Schema(attributes, tuple(one for one in self.recodes if one.name == name)).groups([name])

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
    """Whether every group of ``fine`` lies in one group of ``coarse``.

    >>> refines(np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1])), refines(np.array([0, 1]), np.array([-1, -1]))
    (True, True)
    """
    number = int(fine.max(initial=-1)) + 1
    low, high = np.full(number, np.iinfo(np.int32).max), np.full(number, -2)
    np.minimum.at(low, fine, coarse)
    np.maximum.at(high, fine, coarse)
    return bool(np.all(low >= high))
