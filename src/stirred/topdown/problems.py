"""What one step down the spine has to fit: parents' histograms, measurements of their children, and constraints.

Cells of the table are numbered from 0 on. A query, a mask or a bound is a map of cells to groups, an ``int32`` array
with one entry for each cell; values belong to pairs of a unit and a group. The children of a parent are consecutive.

The invariant a reader must know: a cell that is zero in a parent is zero in its children, so a problem's variables are
the pairs of a cell *positive in the parent* and a child. A parent's variables lie together, one row for each positive
cell and one column for each child.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._shown import withheld

UNBOUNDED = 1 << 50
"""An upper bound that binds nowhere; finite, so that sums and differences of bounds stay exact."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Histograms:
    """The positive cells of many units: those of unit u are ``cells[starts[u]:starts[u + 1]]``, in ascending order."""

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.starts) - 1

    @classmethod
    def from_dense(cls, table: NDArray[Any]) -> Histograms:
        """From a table with a row for each unit and a column for each cell.

        >>> Histograms.from_dense(np.array([[0, 3], [2, 1]])).cells.tolist()
        [1, 0, 1]
        """
        units, cells = np.nonzero(table)
        starts = np.zeros(len(table) + 1, dtype=np.int64)
        np.cumsum(np.bincount(units, minlength=len(table)), out=starts[1:])
        return cls(starts, cells.astype(np.int32), table[units, cells].astype(np.int64))

    def dense(self, cells: int) -> NDArray[np.int64]:
        """The table with a row for each unit and a column for each cell."""
        table = np.zeros((self.units, cells), dtype=np.int64)
        table[np.repeat(np.arange(self.units), np.diff(self.starts)), self.cells] = self.counts
        return table

    def totals(self) -> NDArray[np.int64]:
        """The sum of every unit's counts."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], dtype=np.int64)

    def of_units(self, units: NDArray[np.int64]) -> Histograms:
        """The histograms of some units, in the order given."""
        lengths = np.diff(self.starts)[units]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.starts[units] - starts[:-1], lengths) + np.arange(starts[-1])
        return Histograms(starts, self.cells[taken], self.counts[taken])

    def with_units(self, units: NDArray[np.int64], others: Histograms) -> Histograms:
        """These histograms, with those of ``units`` replaced by ``others`` in order."""
        both = Histograms(
            np.concatenate([self.starts, self.starts[-1] + others.starts[1:]]),
            np.concatenate([self.cells, others.cells]),
            np.concatenate([self.counts, others.counts]),
        )
        source = np.arange(self.units, dtype=np.int64)
        source[units] = self.units + np.arange(len(units))
        return both.of_units(source)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """Noisy sums over the groups of a query in every child; ``weight`` is one over their variance, in all children or a
    number for each of them. Cells of group -1 are in none."""

    groups: NDArray[np.int32]
    weight: float | NDArray[np.float64]
    values: NDArray[Any]

    @property
    def typical_weight(self) -> float:
        """The mean weight of all children."""
        return float(np.mean(self.weight))

    def of_units(self, units: NDArray[np.int64]) -> Measured:
        """The same query in some children."""
        weight = self.weight[units] if isinstance(self.weight, np.ndarray) else self.weight
        return Measured(self.groups, weight, self.values[units])


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Allowed:
    """Cells of a group may be positive in a child only where ``allowed[child, group]``."""

    groups: NDArray[np.int32]
    allowed: NDArray[np.bool_]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Integer bounds on a child's sum over each group, fixed where both are equal. Cells of group -1 are in none."""

    groups: NDArray[np.int32]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LevelProblem:
    """All parents of a level and their children; with ``parents`` None every unit is a root, fitted by itself.

    Children of parent p are the units ``first_child[p]`` up to ``first_child[p + 1]``.
    """

    parents: Histograms | None
    first_child: NDArray[np.int64]
    cells: int
    measured: tuple[Measured, ...]
    allowed: tuple[Allowed, ...] = ()
    bounds: tuple[Bounds, ...] = ()

    def __post_init__(self) -> None:
        units = int(self.first_child[-1])
        assert self.first_child[0] == 0 and bool(np.all(np.diff(self.first_child) > 0)), "a parent without a child"
        assert self.parents is None or self.parents.units == len(self.first_child) - 1
        assert self.measured and all(query.typical_weight > 0 for query in self.measured), "a query without weight"
        for query in self.measured:
            assert np.shape(query.weight) in ((), (units,)) and bool(np.all(query.weight >= 0)), (
                "weights of other units"
            )
            assert query.values.shape == (units, _groups(query.groups, self.cells)), query.values.shape
        for mask in self.allowed:
            assert mask.allowed.shape == (units, _groups(mask.groups, self.cells)), mask.allowed.shape
        for bound in self.bounds:
            assert bound.lower.shape == bound.upper.shape == (units, _groups(bound.groups, self.cells))
            assert bool(np.all(bound.lower <= bound.upper)), "a lower bound above the upper one"

    @property
    def support(self) -> Histograms:
        """The parents, or for roots every cell of every unit (their counts are then all 1, and mean nothing)."""
        if self.parents is not None:
            return self.parents
        units = len(self.first_child) - 1
        return Histograms(
            np.arange(units + 1, dtype=np.int64) * self.cells,
            np.tile(np.arange(self.cells, dtype=np.int32), units),
            np.ones(units * self.cells, dtype=np.int64),
        )

    def of_parents(self, parents: NDArray[np.int64]) -> LevelProblem:
        """The same problem for some parents, in the order given."""
        sizes = np.diff(self.first_child)[parents]
        first_child = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        units = self.children_of(parents)
        return replace(
            self,
            parents=None if self.parents is None else self.parents.of_units(parents),
            first_child=first_child,
            measured=tuple(query.of_units(units) for query in self.measured),
            allowed=tuple(replace(mask, allowed=mask.allowed[units]) for mask in self.allowed),
            bounds=tuple(replace(bound, lower=bound.lower[units], upper=bound.upper[units]) for bound in self.bounds),
        )

    def children_of(self, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The children of some parents, as numbers of units."""
        sizes = np.diff(self.first_child)[parents]
        ends = np.cumsum(sizes)
        return np.repeat(self.first_child[parents] - (ends - sizes), sizes) + np.arange(int(sizes.sum()))


def roots(
    cells: int,
    units: int,
    measured: tuple[Measured, ...],
    allowed: tuple[Allowed, ...] = (),
    bounds: tuple[Bounds, ...] = (),
) -> LevelProblem:
    """The problem of ``units`` roots: nothing above them to add up to."""
    return LevelProblem(None, np.arange(units + 1, dtype=np.int64), cells, measured, allowed, bounds)


def separates(groups: NDArray[np.int32]) -> bool:
    """Whether every cell has a group of its own."""
    return bool(groups.min(initial=0) >= 0) and len(np.unique(groups)) == len(groups)


def kappa(measured: tuple[Measured, ...]) -> float:
    """How hard the fit is: the sum of all weights over that of the queries which separate all cells.

    Sweeps grow about linearly with it; infinite where no query separates all cells.

    >>> two = np.arange(2, dtype=np.int32)
    >>> values = np.zeros((1, 2))
    >>> kappa((Measured(two, 0.5, values), Measured(two * 0, 2.0, values[:, :1])))
    5.0
    """
    detailed = sum(query.typical_weight for query in measured if separates(query.groups))
    return sum(query.typical_weight for query in measured) / detailed if detailed else float("inf")


def _groups(groups: NDArray[np.int32], cells: int) -> int:
    """How many groups there are."""
    assert groups.dtype == np.int32 and len(groups) == cells, (groups.dtype, len(groups), cells)
    return int(groups.max(initial=-1)) + 1
