"""Recodes over several attributes, and recodes whose groups overlap.

A joint recode puts *combinations* of values into groups ("Hispanic", "white alone, not Hispanic"). An overlapping one
lets a combination be in several groups, or in none ("white, alone or in combination"). A group is a union of
conditions, each a list of values for some of the recode's attributes; an attribute that a condition does not name may
have any value.

The invariant a reader must know: how far one record moves a query by such recodes follows from the groups alone. A
record that changes leaves the groups of its old cell and enters those of its new one, each by one. Between two places
it moves at most twice the largest number of groups that a cell is in; in one place what the two cells' groups do not
have in common (:func:`most_moved`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
