"""How many records a swap is expected to change, and how many it can never change.

A small epsilon says nothing about this: with so many match variables that most strata hold one record, epsilon is
small and the release is nearly the confidential file. All numbers here are exact expectations and functions of the
invariants (strata sizes, counts by match and swap variables, and which strata have two held values), so that a release
may state them (Corollary A.2.2) and a recipient computes them again.

With several rounds the shares are those after the last one (:mod:`stirred.swap.rounds`).

With rates by rule the share that ends with other values depends on which swap values the records of each rule have,
which is protected. What is stated then is its mean over all ways of giving the stratum's swap values to its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.swap.dataset import Dataset
from stirred.swap.margins import CountedMargin, Strata
from stirred.swap.moments import stratum_constants
from stirred.swap.plan import SwapPlan
from stirred.swap.rates import RatesByStratum
from stirred.swap.rounds import LaterRounds
from stirred.swap.unequal import moved_probabilities

FEWEST = Fraction(1, 4)
"""A release stops where fewer than this part of the rate is expected to change."""

_SIZE_BOUNDS = (1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class MovementBySize:
    """Strata of a range of sizes: how many, their records, and the shares of these that move and that change."""

    size: str
    strata: int
    records: int
    moved_share: float
    changed_share: float


@dataclass(frozen=True)
class Movement:
    """How many records move, and how many end with other swap values."""

    expected_share: float
    """Exact expected share of records that receive another record's swap variables."""
    expected_changed_share: float
    """Exact expected share of records whose swap values then differ from what they were, counting only strata in which
    that can change the file."""
    unchangeable_share: float
    """Share of records in strata where nothing can change: one record, one held value or one swap value."""
    smallest: float
    largest: float
    """Smallest and largest probability of moving among records in strata of two or more."""
    by_size: tuple[MovementBySize, ...]
    rate: Fraction
    """The swap rate; with rates by rule its mean over the records, with several rounds the probability that a record is
    selected in at least one."""
    by_rule: bool = False
    """Whether rates are by rule: then shares that change are means over the ways of dealing out swap values."""

    @property
    def changed_text(self) -> str:
        """The share of records that are expected to change, as a release states it."""
        return f"{self.expected_changed_share:.3g}"

    @property
    def unchangeable_text(self) -> str:
        """The share of records that can never change, as a release states it."""
        return f"{self.unchangeable_share:.3g}"


def movement_of(
    strata: Strata, swapped: CountedMargin, rate: Fraction | RatesByStratum, later: LaterRounds | None = None
) -> Movement:
    """The movement that a swap at this rate, or these, has; ``swapped`` is the margin by match and swap variables.

    A moved record receives the values of a uniformly random other record of its stratum. In a stratum of n records of
    which n_s have the swap values s, it ends with other values with probability q (n - n_s)/(n - 1), where q is the
    probability of moving. Where records have different q, their mean takes its place, for swap values dealt out at
    random. With ``later`` rounds a record that moves in any of them has moved, and what counts is whether its values
    after the last one differ.
    """
    sizes = strata.sizes
    size = sizes.astype(np.float64)
    if isinstance(rate, Fraction):
        constants = stratum_constants(sizes, rate)
        moved = smallest = largest = constants.moved[constants.rows(sizes)]
    else:
        each = moved_probabilities(rate)
        moved = (each * rate.counts).sum(axis=1) / size
        smallest, largest = np.where(rate.counts > 0, each, 1.0).min(axis=1), each.max(axis=1)
    differs = np.where(strata.changeable, 1 - swapped.pairs / np.maximum(size * (size - 1), 1), 0.0)
    changed = moved * size * differs
    selected = rate if isinstance(rate, Fraction) else rate.mean
    if later is not None:
        changed = _changed_after(strata, later, moved)
        moved, smallest, largest = _moved_in_any(later, len(sizes), moved, smallest, largest)
        selected = 1 - (1 - selected) * later.not_selected
    total, plural = float(size.sum()), sizes > 1
    return Movement(
        float(np.sum(moved * size) / total),
        float(np.sum(changed) / total),
        float(size[~strata.changeable].sum() / total),
        float(smallest[plural].min(initial=1.0)) if plural.any() else 0.0,
        float(largest[plural].max(initial=0.0)),
        tuple(_by_size(sizes, moved * size, changed)),
        selected,
        not isinstance(rate, Fraction),
    )


def _changed_after(strata: Strata, later: LaterRounds, moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per stratum the expected number of records whose values after the last round differ; ``moved`` is that of the
    first."""
    size = strata.sizes.astype(np.float64)
    kept = (1 - moved * size / np.maximum(size - 1, 1))[later.stratum]
    same = kept * later.unchanged() + (1 - kept) * later.counts / size[later.stratum]
    found = np.bincount(later.stratum, weights=later.counts * (1 - same), minlength=len(size))
    return np.where(strata.changeable, found, 0.0)


def _moved_in_any(later: LaterRounds, strata: int, *first: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Per stratum the mean, smallest and largest probability that a round moves a record; ``first`` of the first."""
    mean, smallest, largest = (1 - (1 - one[later.stratum]) * later.unmoved() for one in first)
    records = np.bincount(later.stratum, weights=later.counts, minlength=strata)
    moved = np.bincount(later.stratum, weights=later.counts * mean, minlength=strata) / records
    low, high = np.ones(strata), np.zeros(strata)
    np.minimum.at(low, later.stratum, smallest)
    np.maximum.at(high, later.stratum, largest)
    return moved, low, high


@dataclass(frozen=True)
class Unchangeable:
    """How many records of each value of a swap variable can never change, values with the most of them first."""

    variable: str
    places: tuple[tuple[str | None, int, int], ...]
    """(value, its records, those that can never change), where there are any."""


def unchangeable_rows(dataset: Dataset, strata: Strata) -> NDArray[np.bool_]:
    """Which records lie in strata where nothing can change. Confidential."""
    fixed: NDArray[np.bool_] = ~strata.changeable[dataset.strata.ids]
    return fixed


def unchangeable_places(dataset: Dataset, strata: Strata) -> tuple[Unchangeable, ...]:
    """By each swap variable, how many records can never change. Confidential."""
    fixed = unchangeable_rows(dataset, strata)
    found = []
    for column in dataset.table.pick(dataset.plan.swap):
        records = np.bincount(column.codes, minlength=column.cardinality)
        stuck = np.bincount(column.codes[fixed], minlength=column.cardinality)
        texts = column.texts()
        order = np.argsort(-stuck, kind="stable")[: int(np.count_nonzero(stuck))]
        found.append(
            Unchangeable(column.name, tuple((texts[code], int(records[code]), int(stuck[code])) for code in order))
        )
    return tuple(found)


def stops_of(plan: SwapPlan, strata: Strata, movement: Movement) -> list[errors.StoppedByCheck]:
    """Reasons not to release because next to nothing would be swapped."""
    if not strata.changeable.any():
        return [errors.nothing_can_change()]
    found = []
    if movement.expected_changed_share < FEWEST * movement.rate:
        together = strata.sizes[strata.sizes > 1].sum() / strata.sizes.sum()  # would move if all were selected
        alone = movement.expected_share < FEWEST * movement.rate and together >= FEWEST
        found.append(
            errors.few_change(
                movement.expected_changed_share, movement.rate, len(plan.rounds) + 1, selected_alone=bool(alone)
            )
        )
    if movement.unchangeable_share > plan.most_unchangeable:
        found.append(errors.many_unchangeable(movement.unchangeable_share, plan.most_unchangeable))
    return found


def words(movement: Movement) -> str:
    """What a reader must know beside every epsilon."""
    return (
        f"{_percent(movement.changed_text)} of all records are expected to end with other swap values"
        + (", averaged over all ways of giving each stratum's swap values to its records" if movement.by_rule else "")
        + f", and {_percent(movement.unchangeable_text)} never can"
    )


def _percent(share: str) -> str:
    return f"{100 * float(share):.3g}%"


def _by_size(
    sizes: NDArray[np.int64], moved: NDArray[np.float64], changed: NDArray[np.float64]
) -> Sequence[MovementBySize]:
    bounds = np.array(_SIZE_BOUNDS)
    among = np.searchsorted(bounds, sizes, side="right") - 1
    strata, records, moves, changes = (
        np.bincount(among, weights=weights, minlength=len(bounds)) for weights in (None, sizes, moved, changed)
    )
    return [
        MovementBySize(
            _size_label(number),
            int(strata[number]),
            int(records[number]),
            float(moves[number] / records[number]),
            float(changes[number] / records[number]),
        )
        for number in np.flatnonzero(strata).tolist()
    ]


def _size_label(number: int) -> str:
    low = _SIZE_BOUNDS[number]
    if number + 1 == len(_SIZE_BOUNDS):
        return f"{low:,} and more"
    high = _SIZE_BOUNDS[number + 1] - 1
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
