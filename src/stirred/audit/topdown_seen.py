"""What the runs of a program for TopDown show: every value's noise, added up into what the questions of an audit need.

Noise is the measured value minus the true count of the made data. Only sums, counts and signs are kept, so memory does
not grow with the number of runs. The invariant a reader must know: each value enters with its own place, that of its
table, level, geounit, query and cell; rows without a place, rows that repeat one and places without a row are counted
apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.audit.noise_battery import fit_edges
from stirred.audit.noise_laws import gaussian
from stirred.audit.topdown_inputs import KEYS, Group, MadeData
from stirred.topdown.plan.fields import TopDownPlan

if TYPE_CHECKING:
    import polars as pl

MEASUREMENTS = "measurements"
"""What the table that a program gives is called."""
_ALIGNED = 512
"""Positions of each query that are compared with those of every other."""


def measurements_of(plan: TopDownPlan, wrote: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The measurements that a program gave, their names as text; raises if they cannot be read."""
    import polars as pl

    frame = wrote.get(MEASUREMENTS)
    if frame is None:
        raise errors.audit_measurements(f"there is no table '{MEASUREMENTS}'")
    if "table" not in frame.columns and len(plan.released) == 1:
        frame = frame.with_columns(pl.lit(plan.released[0].name).alias("table"))
    missing = [name for name in (*KEYS, "value") if name not in frame.columns]
    if missing:
        raise errors.audit_measurements(f"there is no column '{missing[0]}'")
    kind = frame["value"].dtype
    values = frame["value"].cast(pl.Int64 if kind.is_integer() else pl.Float64, strict=False)
    if not kind.is_numeric() or values.null_count() or not bool(values.is_finite().all()):
        raise errors.audit_measurements("the column 'value' is not all numbers")
    return frame.select(pl.col(name).cast(pl.String) for name in KEYS).with_columns(values)


class Agreement:
    """How often noise has the same sign as other noise: fair coins if the two are independent, whatever their scale."""

    def __init__(self, groups: int) -> None:
        self.same, self.both = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)

    def add(self, product: NDArray[np.int8], group: NDArray[np.int64]) -> None:
        """Products of two signs each, and the group that they belong to."""
        self.same += np.bincount(group, product > 0, minlength=len(self.same)).astype(np.int64)
        self.both += np.bincount(group, product != 0, minlength=len(self.both)).astype(np.int64)


class Seen:
    """What all questions need of the runs, added up run by run."""

    def __init__(self, made: MadeData) -> None:
        self.made, self.planned = made, made.groups()
        self.groups: list[Group] = []
        self.runs = self.whole_runs = self.rows_missing = self.rows_twice = self.fractional = 0
        self.unknown: Counter[tuple[str, ...]] = Counter()
        self.first_missing = ""
        self.repeated: tuple[int, int] | None = None
        self._keys: pl.DataFrame | None = None
        self._hashes: dict[bytes, int] = {}
        self._before = np.empty(0, dtype=np.int8)

    def _begin(self, keys: pl.DataFrame) -> None:
        """Know all groups, also those that the first run shows and the plan does not have, and where they stand."""
        import polars as pl

        listed = {(one.entry.table, one.entry.level, one.entry.query) for one in self.planned}
        others = [row for row in keys.select("table", "level", "query").unique().sort("table", "level", "query").rows()
                  if row not in listed and None not in row]  # fmt: skip
        self.groups = [*self.planned, *filter(None, (self.made.unplanned(*row) for row in others))]
        index = pl.concat([self.made.keys(group.entry) for group in self.groups])
        if index.is_duplicated().any():
            raise errors.audit_question("The cells of each query", "must have different names")
        self._index = index.with_row_index("place")
        sizes = np.array([group.truth.size for group in self.groups])
        self._group = np.repeat(np.arange(len(sizes)), sizes)
        self._planned = self._group < len(self.planned)
        self._truth = np.concatenate([group.truth.ravel() for group in self.groups])
        self._class = 2 * self._group + (self._truth > 0)
        shape = 2 * len(sizes)
        self.counts, self.squares, self.sums = (np.zeros(shape) for _ in range(3))
        self.positive, self.nonzero = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.again_counts, self.again_squares = np.zeros(len(sizes)), np.zeros(len(sizes))
        self.runs_agree, self.units_agree, self.cells_agree = (Agreement(len(sizes)) for _ in range(3))
        number = len(self.planned)
        self.difference, self.both = np.zeros((number, number)), np.zeros((number, number))
        self._starts = np.concatenate([[0], np.cumsum(sizes)])[:number]
        self._unit_pairs, self._cell_pairs = _pairs(self.groups, by_unit=True), _pairs(self.groups, by_unit=False)
        variances = sorted({Fraction(group.entry.variance) for group in self.planned})
        self.laws = [gaussian(variance) for variance in variances]
        self.edges = [fit_edges(law) for law in self.laws]
        place = {variance: at for at, variance in enumerate(variances)}
        of_group = np.array([place[Fraction(group.entry.variance)] for group in self.planned])
        of_position = np.where(self._planned, of_group[np.minimum(self._group, number - 1)], -1)
        self._of_law = [np.flatnonzero(of_position == at) for at in range(len(variances))]
        self.cells = [np.zeros(len(edges) + 1, dtype=np.int64) for edges in self.edges]

    def add(self, frame: pl.DataFrame) -> None:
        """One run."""
        keys = frame.select(KEYS)
        if self._keys is None or not keys.equals(self._keys):
            if self._keys is None:
                self._begin(keys)
            self._keys = keys
            places = keys.join(self._index, on=list(KEYS), how="left", maintain_order="left", nulls_equal=True)["place"]
            self._places = places.fill_null(len(self._truth)).to_numpy().astype(np.int64)
        noise, there = self._noise(frame)
        self._statistics(noise, there)
        self._signs(np.sign(noise).astype(np.int8))
        if there[self._planned].all():
            self.whole_runs += 1
            digest = hashlib.blake2b(noise[self._planned].tobytes(), digest_size=16).digest()
            if (before := self._hashes.setdefault(digest, self.runs)) != self.runs:
                self.repeated = self.repeated or (before, self.runs)
        self.runs += 1

    def _noise(self, frame: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The noise of each value, 0 where it is missing, and whether it is there."""
        values, places, size = frame["value"].to_numpy(), self._places, len(self._truth)
        if values.dtype.kind == "f":
            self.fractional += int(np.count_nonzero(values != np.floor(values)))
            values = np.rint(np.clip(values, -(2.0**62), 2.0**62))
        known = places < size
        if not known.all():
            strange = frame.select("table", "level", "query").filter(~known)
            self.unknown.update(map(_shown, strange.rows()))
            places, values = places[known], values[known]
        there, noise = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.int64)
        there[places] = True
        if self._planned.sum() > np.count_nonzero(there & self._planned):
            gone = np.flatnonzero(~there & self._planned)
            self.rows_missing += len(gone)
            self.first_missing = self.first_missing or self.groups[self._group[gone[0]]].words
        first = np.unique(places, return_index=True)[1]
        noise[places[first]] = values[first].astype(np.int64) - self._truth[places[first]]
        if len(first) < len(places):
            other = np.delete(np.arange(len(places)), first)
            self.rows_twice += len(other)
            again = values[other].astype(np.int64) - self._truth[places[other]]
            groups = self._group[places[other]]
            fresh = np.isin(groups, groups[again != noise[places[other]]])  # rows that are merely copied cost nothing
            self.again_counts += np.bincount(groups[fresh], minlength=len(self.groups))
            self.again_squares += np.bincount(
                groups[fresh], again[fresh].astype(float) ** 2, minlength=len(self.groups)
            )
        return noise, there

    def _statistics(self, noise: NDArray[np.int64], there: NDArray[np.bool_]) -> None:
        as_float, shape = noise.astype(np.float64), len(self.counts)
        self.counts += np.bincount(self._class, there, minlength=shape)
        self.squares += np.bincount(self._class, as_float**2, minlength=shape)
        self.sums += np.bincount(self._class, as_float, minlength=shape)
        self.positive += np.bincount(self._class, noise > 0, minlength=shape).astype(np.int64)
        self.nonzero += np.bincount(self._class, noise != 0, minlength=shape).astype(np.int64)
        for cells, edges, places in zip(self.cells, self.edges, self._of_law, strict=True):
            drawn_here = noise[places][there[places]]
            cells += np.bincount(np.searchsorted(edges, drawn_here, side="right"), minlength=len(cells))

    def _signs(self, signs: NDArray[np.int8]) -> None:
        if self.runs % 2:
            self.runs_agree.add(signs * self._before, self._group)
        self._before = signs
        for agreement, (one, other) in ((self.units_agree, self._unit_pairs), (self.cells_agree, self._cell_pairs)):
            agreement.add(signs[one] * signs[other], self._group[one])
        aligned = np.zeros((len(self.planned), _ALIGNED))
        for row, start, group in zip(aligned, self._starts, self.planned, strict=True):
            length = min(_ALIGNED, group.truth.size)
            row[:length] = signs[start : start + length]
        self.difference += aligned @ aligned.T
        self.both += np.abs(aligned) @ np.abs(aligned).T


def _pairs(groups: Sequence[Group], by_unit: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of neighbouring units of the same cell, or neighbouring cells of the same unit; each in one pair."""
    one, other, start = [], [], 0
    for group in groups:
        places = start + np.arange(group.truth.size).reshape(group.truth.shape)
        start += group.truth.size
        lines = places if by_unit else places.T
        even = len(lines) // 2 * 2
        one.append(lines[0:even:2].ravel())
        other.append(lines[1:even:2].ravel())
    return np.concatenate(one), np.concatenate(other)


def _shown(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(str(part) for part in row)
