"""What rates by rule do to the records at risk and to all others. Confidential: it counts swap values by rule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.swap.dataset import Dataset
from stirred.swap.guarantee import epsilon
from stirred.swap.margins import Strata
from stirred.swap.moments import stratum_constants
from stirred.swap.rates import RatesByStratum, RecordRates, unique_records
from stirred.swap.unequal import moved_probabilities, received_probabilities
from stirred.tables.groups import anonymous, cells, group

_MOST_PAIRS = 50_000_000


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


def rule_effects(dataset: Dataset, strata: Strata, rates: RecordRates, by_stratum: RatesByStratum) -> RuleEffects:
    """What the rules of a plan do."""
    counts = by_stratum.counts
    moved = moved_probabilities(by_stratum)
    changed = _changed(dataset, strata, rates, by_stratum)
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
    at_last = _moved_at(last, strata.sizes)
    return RuleEffects(
        rules,
        int(uniques.sum()),
        _share((moved * uniques).sum(), uniques.sum()),
        str(last),
        _share((at_last * uniques.sum(axis=1)).sum(), uniques.sum()),
        _share((at_last * strata.sizes).sum(), strata.sizes.sum()),
        epsilon(strata.largest_changeable, last),
    )


def _moved_at(rate: Fraction, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    constants = stratum_constants(sizes, rate)
    return constants.moved[constants.rows(sizes)]


def _changed(
    dataset: Dataset, strata: Strata, rates: RecordRates, by_stratum: RatesByStratum
) -> NDArray[np.float64] | None:
    """For each rule the expected number of its records that end with other swap values, where that changes the file.

    A record of rule c receives from each record of rule d with probability w_cd; of the pairs in a stratum, those
    differ that do not share their swap values: n_c n_d less the sum over values s of n_cs n_ds.
    """
    rules = len(by_stratum.rates)
    if len(by_stratum.counts) * rules**2 > _MOST_PAIRS:
        return None
    swapped = group(dataset.table.pick(dataset.plan.swap), dataset.records)
    found = cells(
        [
            anonymous(dataset.strata.ids, dataset.strata.count),
            anonymous(swapped.ids, swapped.count),
            anonymous(rates.rule, rules),
        ],
        dataset.records,
    )
    codes = found.codes
    begins = np.ones(len(found), dtype=np.bool_)
    begins[1:] = (codes[0][1:] != codes[0][:-1]) | (codes[1][1:] != codes[1][:-1])
    cell = np.cumsum(begins) - 1
    by_cell = np.zeros((int(begins.sum()), rules))
    by_cell[cell, codes[2]] = found.counts
    pairs = np.einsum("sc,sd->scd", by_stratum.counts, by_stratum.counts).astype(np.float64)
    np.subtract.at(pairs, codes[0][begins], np.einsum("ic,id->icd", by_cell, by_cell))
    pairs[~strata.changeable] = 0
    return np.asarray(np.einsum("scd,scd->c", received_probabilities(by_stratum), pairs))


def _share(part: float | np.floating, whole: int | np.integer) -> float:
    return float(part / whole) if whole else 0.0
