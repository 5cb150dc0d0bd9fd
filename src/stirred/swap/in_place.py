"""How likely records are to keep their swap values, one by one, and how many uniques do. Confidential.

In a stratum of n records of which n_s have the swap values s, a record that moves receives those of a uniformly random
other one: it ends with other values with probability q (n - n_s)/(n - 1), q being the probability of moving. With rates
by rule it receives from each record of rule d with probability w_cd, of whom n_d - n_ds have other values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.swap.dataset import Dataset
from stirred.swap.margins import Strata
from stirred.swap.moments import stratum_constants
from stirred.swap.plan_sections import PublishedTable
from stirred.swap.rates import RecordRates, one_rate
from stirred.swap.rounds import LaterRounds
from stirred.swap.sources import source_of
from stirred.swap.unequal import received_probabilities
from stirred.tables.groups import Groups, anonymous, group

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
    source = source_of(dataset)
    rows, record = source.rows(keys), source.record(keys)
    groups = group(source.columns(keys, keys.by), rows)
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
        constants = stratum_constants(strata.sizes, one_rate(plan))
        moved = constants.moved[constants.rows(strata.sizes)]
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
    stratum = np.zeros(places.count, dtype=np.int64)
    stratum[places.ids] = dataset.strata.ids
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
