"""The swap rate of every record, where a plan gives rates by rule.

A rule looks at a record's match and held values and at how many records share them, linked rows included; or at the
rows of a linked table, and at how many of them share values. A swap keeps all of these, so every file of the universe
gives its records the same rates, and a recipient computes them again from the release. That is what the theorem needs
(docs/guarantee.md); nothing here may look at a swap variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._shown import withheld
from stirred.swap.dataset import Dataset
from stirred.swap.guarantee import epsilon, epsilon_of_rates
from stirred.swap.margins import Strata
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import PublishedTable, RateRule
from stirred.swap.records import kinds_of, multiset_class
from stirred.swap.sources import Source, source_of
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, anonymous, group

LinkedLabels = Callable[[], Sequence[NDArray[np.uint32]]]
"""Per linked table, a number per record that two records share when their linked rows are alike."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class RecordRates:
    """A rule for every record: record i has the rate ``rates[rule[i]]``."""

    rates: tuple[Fraction, ...]
    rule: NDArray[np.uint8]

    def by_stratum(self, strata: Groups) -> RatesByStratum:
        """How many records of each stratum every rule decides."""
        return RatesByStratum(self.rates, self.tally(strata))

    def tally(self, groups: Groups) -> NDArray[np.int64]:
        """How many records of each group every rule decides: ``[group, rule]``."""
        counts = np.zeros((groups.count, len(self.rates)), dtype=np.int64)
        _tally(groups.ids, self.rule, counts)
        return counts


@dataclass(frozen=True, eq=False, repr=False)
class RatesByStratum:
    """How many records of each stratum have which rate: ``counts[stratum, rule]``. A function of the invariants."""

    rates: tuple[Fraction, ...]
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<RatesByStratum: {len(self.rates)} rules; counts are confidential and not shown>"

    def largest(self, among: NDArray[np.bool_]) -> tuple[int, ...]:
        """For each rule the size of the largest of some strata that has a record of it; 0 if none has."""
        counts = self.counts[among]
        sizes = counts.sum(axis=1)
        return tuple(int(sizes[counts[:, rule] > 0].max(initial=0)) for rule in range(len(self.rates)))

    def epsilons(self, strata: Strata) -> tuple[float, ...]:
        """The epsilon that each rule gives by itself; the largest of them is that of the swap."""
        largest = self.largest(strata.changeable)
        return tuple(epsilon(size, rate) for rate, size in zip(self.rates, largest, strict=True))

    def epsilon(self, strata: Strata) -> float:
        """The epsilon of the swap."""
        return epsilon_of_rates(zip(self.rates, self.largest(strata.changeable), strict=True))

    def one_each(self) -> dict[Fraction, NDArray[np.bool_]]:
        """For each rate the strata whose records all have it; strata with records of different rates are in none."""
        found, sizes = {}, self.counts.sum(axis=1)
        for rate in dict.fromkeys(self.rates):
            rules = [number for number, other in enumerate(self.rates) if other == rate]
            found[rate] = self.counts[:, rules].sum(axis=1) == sizes
        return found

    @property
    def mean(self) -> Fraction:
        """The mean rate over all records."""
        records = self.counts.sum(axis=0)
        total = sum((int(many) * rate for many, rate in zip(records, self.rates, strict=True)), start=Fraction(0))
        return total / int(records.sum())


def record_rates(
    plan: SwapPlan, held: Sequence[str], source: Source, linked: LinkedLabels | None
) -> RecordRates | None:
    """The rates of records by the plan's rules; None for a plan with one rate."""
    if not plan.rates:
        return None
    for one in plan.rates:
        own = source.linked[one.table].held.columns if one.table is not None else ()
        for column in one.columns:
            if column not in (*plan.match, *held, *own):  # with hold = "rest" the plan alone does not tell
                raise errors.rate_by_unknown(column, one.table)
    table = source.main
    rule = np.full(table.rows, len(plan.rates) - 1, dtype=np.uint8)
    shared: NDArray[np.int64] | None = None
    for number in reversed(range(len(plan.rates) - 1)):  # earlier rules overwrite later ones
        one = plan.rates[number]
        if one.table is not None:
            rule[_with_such_a_row(one, source)] = number
            continue
        fits = _where(one, table.columns, table.rows)
        if one.counts:
            if one.counted is not None:
                sharing = _sharing(group(table.pick(one.counted), table.rows))
            else:
                if shared is None:
                    shared = _sharing(_whole_rate(plan, held, table, linked))
                sharing = shared
            fits &= sharing <= (one.at_most or 1)
        rule[fits] = number
    return RecordRates(plan.every_rate, rule)


def one_rate(plan: SwapPlan) -> Fraction:
    """The rate of a plan that has one for all records."""
    assert plan.rate is not None
    return plan.rate


def rates_of_dataset(dataset: Dataset) -> RecordRates | None:
    """The rates of the data's records; None for a plan with one rate."""

    return record_rates(dataset.plan, dataset.held, source_of(dataset), _linked_labels(dataset))


def unique_records(dataset: Dataset) -> NDArray[np.bool_]:
    """Which records no other equals in match and held values, linked rows included."""
    whole = _whole_rate(dataset.plan, dataset.held, dataset.table, _linked_labels(dataset))
    return np.asarray(_sharing(whole) == 1)


def _linked_labels(dataset: Dataset) -> LinkedLabels | None:
    def classes() -> list[NDArray[np.uint32]]:
        return [multiset_class(kinds_of(entry, dataset.records)) for entry in dataset.linked]

    return classes if dataset.linked else None


def _with_such_a_row(rule: RateRule, source: Source) -> NDArray[np.bool_]:
    """Which records have a row of the rule's linked table that meets all of its conditions."""
    asked = PublishedTable(by=tuple(dict.fromkeys(rule.columns)), table=rule.table)
    rows = dict(zip(asked.by, source.columns(asked, asked.by), strict=True))
    fits = _where(rule, rows, source.rows(asked))
    if rule.counted is not None:
        fits &= _sharing(group([rows[name] for name in rule.counted], source.rows(asked))) <= (rule.at_most or 1)
    found = np.zeros(source.main.rows, dtype=np.bool_)
    found[source.record(asked)[fits]] = True
    return found


def values_nobody_has(rule: RateRule, source: Source) -> list[tuple[str, str]]:
    """Columns and values of a rule's ``where`` that are in no row of the data: misspelt, or rightly absent."""
    asked = PublishedTable(by=tuple(rule.where), table=rule.table) if rule.where else None
    found = () if asked is None else zip(rule.where.items(), source.columns(asked, asked.by), strict=True)
    return [
        (name, value)
        for (name, values), column in found
        for there in [set(column.texts())]
        for value in values
        if value not in there
    ]


def _where(rule: RateRule, columns: Mapping[str, Column], rows: int) -> NDArray[np.bool_]:
    fits = np.ones(rows, dtype=np.bool_)
    for name, values in rule.where.items():
        wanted = np.array([text in values for text in columns[name].texts()], dtype=np.bool_)
        fits &= wanted[columns[name].codes]
    return fits


def _whole_rate(plan: SwapPlan, held: Sequence[str], table: Table, linked: LinkedLabels | None) -> Groups:
    """Records that agree in all that a swap keeps."""
    parts = table.pick([*plan.match, *held])
    for labels in linked() if linked else ():
        parts.append(anonymous(labels, int(labels.max(initial=0)) + 1))
    return group(parts, table.rows)


def _sharing(groups: Groups) -> NDArray[np.int64]:
    """For each record, how many are in its group."""
    return groups.sizes()[groups.ids]


@kernel
def _tally(strata, rule, counts):  # type: ignore[no-untyped-def]
    for row in range(len(strata)):
        counts[strata[row], rule[row]] += 1
