"""The frame that a sample is drawn from: how many units, and what a design looks at of them.

A frame lists units 0, ..., N - 1 in a fixed order, each perhaps with a stratum, a cluster and a size (section 6.2.3 of
the thesis). Sizes matter up to a factor only, so they are kept as whole numbers in their exact proportions. Keep in
mind: a frame may be confidential, so it is never shown, and errors about it hold counts, never a label or a size.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred._shown import withheld

Units = NDArray[np.int64]
"""Positions of units in the frame."""

MOST_UNITS = 1 << 31
MOST_EXACT = 1 << 62
"""Sums of sizes stay below this, so that 64-bit whole numbers hold them."""


_MOST_BITS = 1 << 10
"""Bits of a common denominator of sizes, beyond which it is not looked for."""


@withheld
@dataclass(frozen=True, eq=False)
class Groups:
    """Strata or clusters: different labels, in order, and which of them each unit has."""

    labels: tuple[Hashable, ...]
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many units have each label."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    def members(self, group: int) -> Units:
        """The units with one label, in the order of the frame."""
        order, ends = self._order
        return order[ends[group] - self.counts[group] : ends[group]]

    @cached_property
    def _order(self) -> tuple[Units, NDArray[np.int64]]:
        return np.argsort(self.codes, kind="stable"), np.cumsum(self.counts)

    def of(self, units: Units) -> Groups:
        """The groups of some units alone; labels that none of them has are gone."""
        present, codes = np.unique(self.codes[units], return_inverse=True)
        return Groups(tuple(self.labels[code] for code in present), codes.astype(np.int64))


@withheld
@dataclass(frozen=True, eq=False)
class Frame:
    """N units in a fixed order, with strata, clusters and sizes where a design needs them; made by :meth:`of`."""

    units: int
    strata: Groups | None = None
    clusters: Groups | None = None
    sizes: NDArray[np.int64] | None = None
    """Whole numbers in the proportions of the sizes that were given."""

    @classmethod
    def of(
        cls,
        units: int | None = None,
        *,
        strata: Iterable[Hashable] | None = None,
        clusters: Iterable[Hashable] | None = None,
        sizes: Iterable[Any] | None = None,
    ) -> Frame:
        """A frame from columns with one value for each unit; without a column, from the number of units.

        Sizes are numbers or their texts, taken exactly: 0.1 is a tenth.

        >>> frame = Frame.of(strata=["north", "north", "south"], sizes=["0.5", 1, 2.5])
        >>> frame.units, frame.strata.labels, frame.sizes.tolist()
        (3, ('north', 'south'), [1, 2, 5])
        """
        columns = {
            "strata": None if strata is None else _groups("strata", strata),
            "clusters": None if clusters is None else _groups("clusters", clusters),
        }
        exact = None if sizes is None else _whole(sizes)
        lengths = {name: len(groups.codes) for name, groups in columns.items() if groups is not None}
        if exact is not None:
            lengths["sizes"] = len(exact)
        number = _number_of_units(units, lengths)
        return cls(number, columns["strata"], columns["clusters"], exact)

    def part(self, units: Units, *, strata: bool = False, clusters: bool = False) -> Frame:
        """Some of the units as a frame of their own, with strata or clusters where they are asked for."""
        return Frame(
            len(units),
            self.strata.of(units) if strata and self.strata is not None else None,
            self.clusters.of(units) if clusters and self.clusters is not None else None,
            None if self.sizes is None else self.sizes[units],
        )

    def chosen(self, units: Sequence[int] | Units | None) -> Units:
        """Positions of units that were asked for, or of all; refused if one is not in the frame or listed twice."""
        if units is None:
            return np.arange(self.units)
        positions = np.asarray(units)
        if positions.ndim != 1 or (len(positions) and positions.dtype.kind not in "iu"):
            raise errors.frame_units("What is not a whole number")
        positions = positions.astype(np.int64)
        outside = positions[(positions < 0) | (positions >= self.units)]
        if len(outside):
            raise errors.frame_units(int(outside[0]))
        if len(np.unique(positions)) < len(positions):
            raise errors.frame_units("A unit that is listed twice")
        return positions


def _number_of_units(units: int | None, lengths: dict[str, int]) -> int:
    if units is not None and (isinstance(units, bool) or not isinstance(units, int | np.integer)):
        raise errors.design_number("The number of units", errors.kind_of(units), "a whole number from 1 on")
    told = ({} if units is None else {"number": int(units)}) | lengths
    if len(set(told.values())) > 1:
        first = next(iter(told))
        other = next(name for name in told if told[name] != told[first])
        raise errors.frame_column(
            other, f"tells of {told[other]:,} units, the {first} of {told[first]:,}", "Give one value for each unit"
        )
    number = next(iter(told.values()), 0)
    if not 1 <= number <= MOST_UNITS:
        raise errors.design_number("The number of units", f"{number:,}", f"a whole number from 1 to {MOST_UNITS:,}")
    return number


def _groups(column: str, values: Iterable[Hashable]) -> Groups:
    if isinstance(values, str):
        raise errors.frame_column(column, "are one text", "Give one label for each unit, as a list or an array")
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    seen: dict[Hashable, int] = {}
    try:
        codes = np.array([seen.setdefault(value, len(seen)) for value in given], dtype=np.int64)
    except TypeError:
        raise errors.frame_column(column, "are not labels", "Give a text or a whole number for each unit") from None
    if any(label is None or label != label for label in seen):
        raise errors.frame_column(column, "are missing for some units", "Give each unit a label") from None
    # The order of labels settles ties of an allocation, so it must not depend on the order of the units.
    order = sorted(seen, key=lambda label: (str(type(label)), label if isinstance(label, int) else 0, str(label)))
    places = np.empty(len(seen), dtype=np.int64)
    places[[seen[label] for label in order]] = np.arange(len(seen))
    return Groups(tuple(order), places[codes])


def _whole(sizes: Iterable[Any]) -> NDArray[np.int64]:
    """Whole numbers in the same exact proportions."""
    given = sizes if isinstance(sizes, np.ndarray) else np.array(list(sizes), dtype=object)
    if given.ndim != 1:
        raise errors.frame_column("sizes", "are not one number for each unit", "Give a list or a one-dimensional array")
    if given.dtype.kind in "iu":
        different, codes = np.unique(given, return_inverse=True)
    else:
        seen: dict[Any, int] = {}
        try:
            codes = np.array([seen.setdefault(value, len(seen)) for value in given.tolist()], dtype=np.int64)
        except TypeError:
            raise _not_numbers() from None
        different = np.array([*seen, None], dtype=object)[:-1]
    try:
        exact = [as_fraction(value) for value in different.tolist()]
    except NOT_A_NUMBER:
        raise _not_numbers() from None
    scale = 1
    for number in exact:
        scale = math.lcm(scale, number.denominator)
        if scale.bit_length() > _MOST_BITS:
            raise _too_fine()
    whole = [int(number * scale) for number in exact]
    if any(number <= 0 for number in whole):
        bad = np.array([number <= 0 for number in whole])
        raise errors.size_not_positive(int(np.count_nonzero(bad[codes])))
    common = math.gcd(*whole)
    whole = [number // common for number in whole]
    times = np.bincount(codes, minlength=len(whole)).tolist()
    if sum(number * count for number, count in zip(whole, times, strict=True)) >= MOST_EXACT:
        raise _too_fine()
    return np.array(whole, dtype=np.int64)[codes]


def _too_fine() -> errors.StirredError:
    return errors.sizes_too_fine("The sum of the sizes, as whole numbers in their exact proportions,", "2^62")


def _not_numbers() -> errors.StirredError:
    return errors.frame_column("sizes", "are not all numbers", "Give each unit a positive number as its size")
