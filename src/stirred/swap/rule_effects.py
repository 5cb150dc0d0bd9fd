"""What rates by rule do to the records at risk and to all others. Confidential: it counts swap values by rule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.swap.dataset import Dataset
from stirred.swap.guarantee import epsilon
from stirred.swap.in_place import stay_probabilities
from stirred.swap.margins import Strata
from stirred.swap.moments import stratum_constants
from stirred.swap.rates import RatesByStratum, RecordRates, unique_records, values_nobody_has
from stirred.swap.sources import source_of
from stirred.swap.unequal import moved_probabilities


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
    """What the rules of a plan do."""
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
    last, source = rates.rates[-1], source_of(dataset)
    at_last = _moved_at(last, strata.sizes)
    return RuleEffects(
        rules,
        int(uniques.sum()),
        _share((moved * uniques).sum(), uniques.sum()),
        str(last),
        _share((at_last * uniques.sum(axis=1)).sum(), uniques.sum()),
        _share((at_last * strata.sizes).sum(), strata.sizes.sum()),
        epsilon(strata.largest_changeable, last),
        tuple(dict.fromkeys(one for rule in dataset.plan.rates for one in values_nobody_has(rule, source))),
    )


def _moved_at(rate: Fraction, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    constants = stratum_constants(sizes, rate)
    return constants.moved[constants.rows(sizes)]


def _changed(dataset: Dataset, strata: Strata, rates: RecordRates) -> NDArray[np.float64] | None:
    """For each rule the expected number of its records that end with other swap values, where that changes the file."""
    stays = stay_probabilities(dataset, strata, rates, None)
    if stays is None:
        return None
    return np.bincount(rates.rule, weights=1 - stays, minlength=len(rates.rates)).astype(np.float64)


def _share(part: float | np.floating, whole: int | np.integer) -> float:
    return float(part / whole) if whole else 0.0
