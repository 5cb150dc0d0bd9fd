"""What a table counts: attributes with their full domains, recodes of them, and the cells and queries that follow.

A *cell* is a combination of values, one of each attribute, numbered with the last attribute fastest. A *query* is a
marginal: it puts cells into groups, one for each combination of the values of some attributes or recodes, and asks for
the number of records in each group.

The invariant a reader must know: cells and groups come from the plan alone. A value that does not occur has its cells
all the same, and is measured like the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors

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
    recodes: tuple[Recode, ...] = ()

    def __post_init__(self) -> None:
        if self.cells > MOST_CELLS:
            raise errors.margin_plan("A table", f"can have at most {MOST_CELLS:,} cells, not {self.cells:,}")
        names = self.names
        if len(set(names)) < len(names):
            raise errors.margin_plan("A table", "cannot have two attributes or recodes of the same name")
        for recode in self.recodes:
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
        """The attribute that a name is, or recodes."""
        recoded = [recode.of for recode in self.recodes if recode.name == name]
        return recoded[0] if recoded else self._attribute(name).name

    def groups(self, names: Sequence[str]) -> Groups:
        """The group of each cell in the marginal by ``names``, numbered with the last name fastest."""
        result = np.zeros(self.cells, dtype=np.int32)
        for name in names:
            result = result * len(self.values(name)) + self._codes(name)
        return result

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
            codes = np.array([value in wanted for value in known])
            chosen &= codes[self._codes(name)]
        return chosen

    def _codes(self, name: str) -> Groups:
        """The code of one attribute or recode in each cell."""
        at = [attribute.name for attribute in self.attributes].index(self.base(name))
        inner = math.prod(self.shape[at + 1 :])
        codes = (np.arange(self.cells) // inner) % self.shape[at]
        for recode in self.recodes:
            if recode.name == name:
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
