"""Events that tell two inputs of a mechanism apart, found on some runs so that they can be tested on others.

By the lemma of Neyman and Pearson the best events collect the outputs whose likelihood ratio is largest. Outputs are
put into cells, and cells are taken in the order of the ratio that the runs suggest; numbers also in their own order,
which needs no estimate. Whatever is chosen here, a bound from other runs is valid: a poor choice only makes it small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.audit.joint_bounds import Counts, Floats, Measure
from stirred.errors.kinds import one_line

Outputs = NDArray[Any] | list[Hashable]
"""One output for each run: numbers as an array, anything else as a list."""
Input = Literal["first", "second"]

_MOST_BREAKS = 127
_MOST_SIZES = 256
_PARTS = 2
"""Into which the runs are divided to judge an order by other runs than it was made from."""
_CAUTION = 0.5
"""Standard deviations by which limits are moved further out: the best of many events looks better than it is."""
_NAMED = 3
"""Outputs or ranges that the words for an event name one by one."""
_SHOWN = 40
"""Characters of an output that are shown."""


class Cells(Protocol):
    """A division of all outputs into finitely many cells."""

    def of(self, outputs: Outputs) -> NDArray[np.intp]:
        """The cell of each output."""
        ...

    def words(self, taken: NDArray[np.bool_]) -> str:
        """Which outputs lie in the cells that are taken, in words that continue "the output"."""
        ...

    @property
    def count(self) -> int:
        """How many cells there are."""
        ...


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs that seem likelier from one of the two inputs."""

    likelier_from: Input
    cells: Cells
    taken: NDArray[np.bool_]

    @property
    def words(self) -> str:
        """Which outputs, in words that continue "the output": ``is at least 3``."""
        return self.cells.words(self.taken)

    def count(self, first: Outputs, second: Outputs) -> Counts:
        """How often it occurs in runs on both inputs, the one that makes it likelier first."""
        pair = (first, second) if self.likelier_from == "first" else (second, first)
        hits, other = (int(self.taken[self.cells.of(outputs)].sum()) for outputs in pair)
        return Counts(hits, len(pair[0]), other, len(pair[1]))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Events that may be chosen: the first cells, of each of the ``sizes``, of some orders of all cells."""

    cells: Cells
    sizes: NDArray[np.intp]
    orders: tuple[_Order, ...]

    @classmethod
    def of(cls, first: Outputs, second: Outputs) -> Candidates:
        """From the runs on which events are found."""
        cells = _cells(first, second)
        sizes, counts, other = _sizes(cells.count), _counts(cells, first), _counts(cells, second)
        own = [np.arange(cells.count), np.arange(cells.count)[::-1]] if isinstance(cells, _Ranges) else []
        orders = _orders("first", counts, other, own, sizes) + _orders("second", other, counts, own, sizes)
        return cls(cells, sizes, tuple(orders))

    def best(self, measures: Sequence[Measure], false_alarm: float) -> tuple[Event, Measure]:
        """The event and the measure for which other runs like these promise the largest lower bound.

        Where they promise none, the event whose frequencies differ most: one that nearly always occurs would come
        nearest to a bound of nothing, and never show more.
        """
        from scipy import special

        hits = np.array([one.hits for one in self.orders])
        other_hits = np.array([one.other_hits for one in self.orders])
        runs = np.array([[one.runs] for one in self.orders])
        other_runs = np.array([[one.other_runs] for one in self.orders])
        z = _CAUTION - float(special.ndtri(false_alarm / 2))
        low, high = 1 - _about_upper_limit(runs - hits, runs, z), _about_upper_limit(other_hits, other_runs, z)
        values = np.array([measure.at_each(low.ravel(), high.ravel()).reshape(low.shape) for measure in measures])
        if values.max() <= measures[0].nothing:
            mean = (hits + other_hits) / (runs + other_runs)
            deviation = np.sqrt(np.maximum(mean * (1 - mean), 1e-12) * (1 / runs + 1 / other_runs))
            values = ((hits / runs - other_hits / other_runs) / deviation)[None]
        which, row, column = (int(i) for i in np.unravel_index(np.argmax(values), values.shape))
        taken = np.zeros(self.cells.count, dtype=np.bool_)
        taken[self.orders[row].order[: self.sizes[column]]] = True
        return Event(self.orders[row].likelier_from, self.cells, taken), measures[which]


def as_outputs(name: Input, outputs: Any) -> Outputs:
    """The outputs of the runs on one input, checked."""
    sized = hasattr(outputs, "__len__") and hasattr(outputs, "__iter__")
    if not sized or isinstance(outputs, str | bytes | Mapping):
        raise errors.audit_runs(name, "are not a list with one output for each run")
    listed = outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)
    if len(listed) < 2:
        raise errors.audit_runs(name, f"are {len(listed)}: events are found on one half and tested on the other")
    try:
        different = set(listed)
    except TypeError:
        raise errors.audit_runs(name, "have lists or tables as outputs, which must be made tuples") from None
    if any(one != one for one in different):
        raise errors.audit_runs(name, "have outputs that are not a number (NaN)")
    if all(isinstance(one, int | float | np.number) and not isinstance(one, bool) for one in different):
        numbers = np.asarray(listed)
        return numbers if numbers.dtype.kind in "iuf" else listed
    return listed


# -- helpers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Order:
    """All cells in some order, and how often the first of them occur, for each of the sizes."""

    likelier_from: Input
    order: NDArray[np.intp]
    hits: Floats
    runs: float
    other_hits: Floats
    other_runs: float


def _orders(
    likelier_from: Input, counts: Floats, other: Floats, own: Sequence[NDArray[np.intp]], sizes: NDArray[np.intp]
) -> list[_Order]:
    """By the likelihood ratio, and in the own order of numbers from both ends.

    ``counts`` have one row for each part of the runs. An order that is judged by the runs it was made from would look
    better than it is, so each part is counted in the order that the other parts suggest.
    """
    all_counts, all_other = counts.sum(axis=0), other.sum(axis=0)
    crossed = [
        _ranked(all_counts - part, all_other - part_of_other) for part, part_of_other in zip(counts, other, strict=True)
    ]
    pairs = [(_ranked(all_counts, all_other), crossed), *((order, [order] * _PARTS) for order in own)]
    return [
        _Order(
            likelier_from,
            order,
            _firsts(counts, by_part, sizes),
            all_counts.sum(),
            _firsts(other, by_part, sizes),
            all_other.sum(),
        )
        for order, by_part in pairs
    ]


def _ranked(counts: Floats, other: Floats) -> NDArray[np.intp]:
    """Cells in the order of the likelihood ratio, which is drawn towards one where counts are small."""
    return np.argsort((other + 1) / (counts + 1), kind="stable")


def _firsts(counts: Floats, orders: Sequence[NDArray[np.intp]], sizes: NDArray[np.intp]) -> Floats:
    """How often the first cells occur in all parts, for each of the sizes."""
    sums = [part[order].cumsum()[sizes - 1] for part, order in zip(counts, orders, strict=True)]
    return np.asarray(np.sum(sums, axis=0))


def _counts(cells: Cells, outputs: Outputs) -> Floats:
    """How often each cell occurs in each part of the runs."""
    part = np.arange(len(outputs)) % _PARTS
    counts = np.bincount(part * cells.count + cells.of(outputs), minlength=_PARTS * cells.count)
    return counts.reshape(_PARTS, cells.count).astype(np.float64)


def _cells(first: Outputs, second: Outputs) -> Cells:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        values = np.unique(np.concatenate([first, second]))
        if len(values) > _MOST_BREAKS:
            values = np.unique(np.quantile(np.concatenate([first, second]), _ranks(), method="closest_observation"))
        return _Ranges(values)
    seen = Counter(one for outputs in (first, second) for one in _listed(outputs))
    return _Values({value: code for code, value in enumerate(one for one, times in seen.items() if times > 1)})


def _ranks() -> Floats:
    """Ranks of numbers between which cells lie, from 0 to 1, closer together at both ends: telling outputs are rare."""
    return np.sin(np.linspace(0, np.pi / 2, _MOST_BREAKS)) ** 2


def _sizes(cells: int) -> NDArray[np.intp]:
    """How many cells an event may have; of many cells, only some numbers."""
    most = max(1, cells - 1)
    if most <= _MOST_SIZES:
        return np.arange(1, most + 1)
    return np.unique(np.geomspace(1, most, _MOST_SIZES).astype(np.intp))


def _listed(outputs: Outputs) -> list[Hashable]:
    return outputs.tolist() if isinstance(outputs, np.ndarray) else outputs


@dataclass(frozen=True, eq=False)
class _Ranges:
    """Numbers from one break to below the next."""

    breaks: NDArray[Any]

    @property
    def count(self) -> int:
        return len(self.breaks) + 1

    def of(self, outputs: Outputs) -> NDArray[np.intp]:
        return np.searchsorted(self.breaks, np.asarray(outputs), side="right")

    def words(self, taken: NDArray[np.bool_]) -> str:
        change = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(int)))
        ranges = [self._range(int(start), int(end)) for start, end in zip(change[::2], change[1::2], strict=True)]
        more = [f"lies in {len(ranges) - _NAMED} more ranges"] if len(ranges) > _NAMED else []
        return ", or ".join(ranges[:_NAMED] + more) or "is none at all"

    def _range(self, start: int, end: int) -> str:
        if start == 0:
            return "is any number" if end == self.count else f"is below {self.breaks[end - 1]:.6g}"
        if end == self.count:
            return f"is at least {self.breaks[start - 1]:.6g}"
        return f"is from {self.breaks[start - 1]:.6g} to below {self.breaks[end - 1]:.6g}"


@dataclass(frozen=True, eq=False)
class _Values:
    """Outputs that were seen at least twice, each by itself, and all others together."""

    codes: Mapping[Hashable, int]

    @property
    def count(self) -> int:
        return len(self.codes) + 1

    def of(self, outputs: Outputs) -> NDArray[np.intp]:
        other = len(self.codes)
        return np.fromiter((self.codes.get(one, other) for one in _listed(outputs)), dtype=np.intp, count=len(outputs))

    def words(self, taken: NDArray[np.bool_]) -> str:
        values = [value for value, code in self.codes.items() if taken[code]]
        named = [one_line(repr(value), _SHOWN) for value in values[:_NAMED]]
        if len(values) > _NAMED:
            named.append(f"one of {len(values) - _NAMED} more outputs")
        if taken[-1]:
            named.append("one that was seen at most once where events were looked for")
        return "is " + (", or ".join(named) or "none at all")


def _about_upper_limit(hits: Floats, runs: Floats, z: float) -> Floats:
    """About the Clopper-Pearson limit for the chance of a normal quantile z: enough to choose by, and quicker.

    The limit is (k + 1) F / (n - k + (k + 1) F) with F a quantile of an F law of 2 (k + 1) and 2 (n - k) degrees, whose
    cube root is nearly normal (Wilson and Hilferty).
    """
    misses = np.maximum(runs - hits, 1.0)
    a, b = 1 - 1 / (9 * (hits + 1)), 1 - 1 / (9 * misses)
    square = b * b - z * z * (1 - b)
    inside = np.maximum(0.0, a * a * b * b - square * (a * a - z * z * (1 - a)))
    root = (a * b + np.sqrt(inside)) / np.where(square > 0, square, 1.0)
    odds = (hits + 1) / misses * root**3
    return np.where((square > 0) & (hits < runs), odds / (1 + odds), 1.0)
