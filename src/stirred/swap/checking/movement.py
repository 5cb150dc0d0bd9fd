"""Computes how many records a swap is expected to change, how many it never can, and what rates by rule do to them.

A small epsilon says nothing about this: with so many match variables that most strata hold one record, epsilon is small
and the release is nearly the confidential file. All shares are exact expectations. Those of :class:`Movement` are
functions of the invariants (strata sizes, counts by match and swap variables, and which strata have two held values),
so that a release may state them (Corollary A.2.2) and a recipient computes them again; what is said of single records,
of uniques and of rules is confidential.

In a stratum of n records of which n_s have the swap values s, a record that moves receives those of a uniformly random
other one: it ends with other values with probability q (n - n_s)/(n - 1), q being the probability of moving. With rates
by rule it receives from each record of rule d with probability w_cd, of whom n_d - n_ds have other values. How many end
with other values then depends on which swap values the records of each rule have, which is protected. What is stated is
its mean over all ways of giving the stratum's swap values to its records. With several rounds the shares are those
after the last one (:mod:`stirred.swap.law.permutation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.swap.data.counting import (
    CountedMargin,
    RatesByStratum,
    RecordRates,
    Strata,
    one_rate,
    unique_records,
    values_nobody_has,
)
from stirred.swap.data.dataset import Dataset
from stirred.swap.law.moments import moved_by_size, moved_probabilities, received_probabilities
from stirred.swap.law.permutation import LaterRounds
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import PublishedTable
from stirred.tables.groups import Groups, anonymous, group

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
        moved = smallest = largest = moved_by_size(sizes, rate)
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


def movement_stops(plan: SwapPlan, strata: Strata, movement: Movement) -> list[errors.StoppedByCheck]:
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


_MOST_PAIRS = 50_000_000
"""Strata times pairs of rules, and cells times rules, that are held in memory."""


@dataclass(frozen=True)
class UniqueRows:
    """Records, or rows of a linked table, that no other equals in some columns."""

    keys: PublishedTable
    rows: int
    unique: int
    records: int
    """Records that are unique, or have a unique row."""
    in_place: float | None
    """Of the unique, the exact expected number whose record keeps all its swap values; None where that is not
    computed: with rates by rule in several rounds, or in too many strata."""


def unique_rows(dataset: Dataset, keys: PublishedTable, stays: NDArray[np.float64] | None) -> UniqueRows:
    """The unique records or rows; ``stays`` is the probability of each record to keep its swap values."""
    rows, record = dataset.rows_of(keys), dataset.record_of(keys)
    groups = group(dataset.columns_of(keys, keys.by), rows)
    owner = record[(groups.sizes() == 1)[groups.ids]]
    in_place = None if stays is None else float(stays[owner].sum())
    return UniqueRows(keys, rows, len(owner), len(np.unique(owner)), in_place)


def stay_probabilities(
    dataset: Dataset, strata: Strata, rates: RecordRates | None, later: LaterRounds | None
) -> NDArray[np.float64] | None:
    """For each record the probability that it keeps its swap values; None where it is not computed.

    Where nothing of a stratum can change, the release shows its records as they are: 1.
    """
    plan, stratum = dataset.plan, dataset.strata.ids
    places = _places(dataset)
    size = strata.sizes.astype(np.float64)
    if later is not None and rates is not None:
        return None
    if rates is not None:
        changed = _changed_by_place(dataset, rates, places)
        if changed is None:
            return None
        stays = 1 - changed[places.ids, rates.rule]
    else:
        moved = moved_by_size(strata.sizes, one_rate(plan))
        if later is not None:  # its cells are the places, in the same order
            kept = (1 - moved * size / np.maximum(size - 1, 1))[later.stratum]
            stays = (kept * later.unchanged() + (1 - kept) * later.counts / size[later.stratum])[places.ids]
        else:
            others = size[stratum] - places.sizes()[places.ids]
            stays = 1 - moved[stratum] * others / np.maximum(size[stratum] - 1, 1)
    return np.asarray(np.where(strata.changeable[stratum], stays, 1.0))


def _changed_by_place(dataset: Dataset, rates: RecordRates, places: Groups) -> NDArray[np.float64] | None:
    """The probability that a record of each rule ends with other swap values, by stratum and swap values: ``[place,
    rule]``; None where there are too many."""
    by_stratum, rules = rates.by_stratum(dataset.strata), len(rates.rates)
    if max(len(by_stratum.counts) * rules, places.count) * rules > _MOST_PAIRS:
        return None
    own = rates.tally(places)
    stratum = places.of_each(dataset.strata.ids)
    received = received_probabilities(by_stratum)
    found = np.empty(own.shape)
    for rule in range(rules):
        found[:, rule] = np.einsum("pd,pd->p", received[stratum, rule], by_stratum.counts[stratum] - own)
    return found


def _places(dataset: Dataset) -> Groups:
    """Records that agree on stratum and swap values; these in the order of :class:`LaterRounds`."""
    strata, rounds = anonymous(dataset.strata.ids, dataset.strata.count), dataset.plan.rounds
    swapped = [name for later in rounds for name in later.match_also]
    swapped += rounds[-1].swap if rounds else dataset.plan.swap
    return group([strata, *dataset.table.pick(swapped)], dataset.records)


@dataclass(frozen=True)
class RuleEffect:
    """One rule: its records, how many of them are unique on match and held values, and what happens to them."""

    rule: str
    rate: str
    records: int
    unique: int
    moved_share: float
    """Exact expected share of the rule's records that receive another record's swap variables."""
    changed_share: float | None
    """Exact expected share that end with other swap values; None where there are too many strata and swap values."""
    epsilon: float
    """The epsilon that this rule gives by itself; the largest over rules is that of the swap."""


@dataclass(frozen=True)
class RuleEffects:
    """The rules one by one, and the unique records and all records against one rate, that of the last rule."""

    rules: tuple[RuleEffect, ...]
    unique: int
    unique_moved_share: float
    last_rate: str
    unique_moved_share_at_last_rate: float
    moved_share_at_last_rate: float
    epsilon_at_last_rate: float
    values_nobody_has: tuple[tuple[str, str], ...] = ()
    """Columns and values that rules name and no row has."""


def rule_effects(dataset: Dataset, strata: Strata, rates: RecordRates, by_stratum: RatesByStratum) -> RuleEffects:
    """How rates by rule change who moves and what epsilon is, rule by rule and beside one rate for all."""
    counts = by_stratum.counts
    moved = moved_probabilities(by_stratum)
    changed = _changed(dataset, strata, rates)
    unique = unique_records(dataset)
    uniques = RecordRates(rates.rates, rates.rule[unique]).tally(dataset.strata.among(unique))
    epsilons, records = by_stratum.epsilons(strata), counts.sum(axis=0)
    rules = tuple(
        RuleEffect(
            rule.condition,
            str(rule.rate),
            int(records[k]),
            int(uniques[:, k].sum()),
            _share((moved[:, k] * counts[:, k]).sum(), records[k]),
            None if changed is None else _share(changed[k], records[k]),
            epsilons[k],
        )
        for k, rule in enumerate(dataset.plan.rates)
    )
    last = rates.rates[-1]
    at_last = moved_by_size(strata.sizes, last)
    return RuleEffects(
        rules,
        int(uniques.sum()),
        _share((moved * uniques).sum(), uniques.sum()),
        str(last),
        _share((at_last * uniques.sum(axis=1)).sum(), uniques.sum()),
        _share((at_last * strata.sizes).sum(), strata.sizes.sum()),
        epsilon(strata.largest_changeable, last),
        tuple(dict.fromkeys(one for rule in dataset.plan.rates for one in values_nobody_has(rule, dataset))),
    )


def _changed(dataset: Dataset, strata: Strata, rates: RecordRates) -> NDArray[np.float64] | None:
    """For each rule the expected number of its records that end with other swap values, where that changes the file."""
    stays = stay_probabilities(dataset, strata, rates, None)
    if stays is None:
        return None
    return np.bincount(rates.rule, weights=1 - stays, minlength=len(rates.rates)).astype(np.float64)


def _share(part: float | np.floating, whole: int | np.integer) -> float:
    return float(part / whole) if whole else 0.0
