"""Counts the invariants of a swap (Definition 3.2.2), and derives strata, b and the rate of every record from them.

A swap keeps n_mh, the counts by match and held variables, and n_ms, the counts by match and swap variables. Strata
sizes, the largest stratum b and so epsilon are functions of these margins (Remark 3.2.5), which is why epsilon may be
published (Corollary A.2.2), and why a recipient can recompute it from the release.

Where a plan gives rates by rule, a rule looks at a record's match and held values and at how many records share them,
linked rows included; or at the rows of a linked table, and at how many of them share values. A swap keeps all of these,
so every file of the universe gives its records the same rates, and a recipient computes them again from the release.
That is what the theorem needs (docs/guarantee.md); nothing here may look at a swap variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import confidential
from stirred._threads import thread_pool
from stirred.invariants import Margin, fingerprint
from stirred.spec import Specification
from stirred.swap.data.dataset import Dataset, fine_columns, stratum_columns
from stirred.swap.data.records import beside_record, classes_of, kinds_of, whole_fingerprint
from stirred.swap.law.theorem import epsilon, epsilon_of_rates
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN, PublishedTable, RateRule
from stirred.tables import Column, Table
from stirred.tables.columns import Codes
from stirred.tables.groups import Groups, group

_SIDE_BY_SIDE = 1 << 25
"""Records up to which margins are counted at the same time."""


@confidential
class CountedMargin:
    """A margin after counting: only sums are kept, since it may have tens of millions of cells."""

    margin: Margin
    alone: int
    """How many of its cells hold a single row."""
    records: NDArray[np.int64]
    """Per stratum: its rows,"""
    distinct: NDArray[np.int64]
    """its non-empty cells,"""
    pairs: NDArray[np.float64]
    """and the ordered pairs of rows that share a cell."""


@confidential
class Margins:
    """Counted invariants: by match and hold, by match and swap, and per linked table by match and its held columns."""

    counted: tuple[CountedMargin, ...]
    whole: str | None = None
    """Fingerprint of the records with their linked rows, where there are any."""

    @property
    def held(self) -> CountedMargin:
        """The margin by match and held variables."""
        return self.counted[0]

    @property
    def swapped(self) -> CountedMargin:
        """The margin by match and swap variables."""
        return self.counted[1]


def declare(plan: SwapPlan, hold: Sequence[str], linked: Mapping[str, Sequence[str]]) -> tuple[Margin, ...]:
    """The invariants of a swap with these held variables, and those of its linked tables."""
    strata, fine = stratum_columns(plan), fine_columns(plan)
    own = (*strata, *fine)
    return (
        Margin(MAIN, (*own, *hold)),
        Margin(MAIN, (*strata, *plan.swap)),
        *(
            Margin(name, (*own, *(column for column in columns if column not in own)))
            for name, columns in linked.items()
        ),
    )


def stated_margins(plan: SwapPlan, specification: Specification, margins: Margins) -> list[Margin]:
    """The counted invariants as the certificate states them.

    The last says that each record keeps its linked rows, where there are any.
    """
    stated = [counted.margin for counted in margins.counted]
    if margins.whole is not None:
        words = str(specification.multiverse.invariants[0])
        stated.append(Margin(MAIN, (), words, sha256=margins.whole, linked=tuple(one.name for one in plan.linked)))
    return stated


def count_margins(dataset: Dataset, prints: bool = True) -> Margins:
    """Count the invariants of ``dataset``; with ``prints`` also their fingerprints."""
    plan, table = dataset.plan, dataset.counted
    declared = declare(plan, dataset.held, dataset.linked_columns)
    own = (*stratum_columns(plan), *fine_columns(plan))
    tables = [table, table, *(beside_record(table, own, entry.held, entry.record) for entry in dataset.linked)]

    def count(margin: Margin, source: Table) -> CountedMargin:
        return count_margin(margin, source, len(plan.match), prints)

    workers = None if dataset.records <= _SIDE_BY_SIDE else 1  # sorted keys of two margins would fill the memory
    with thread_pool(workers) as pool:  # sorting and hashing do without the interpreter lock
        whole = pool.submit(_fingerprint_of_whole, dataset) if prints and dataset.linked else None
        return Margins(tuple(pool.map(count, declared, tables)), whole.result() if whole else None)


def count_margin(margin: Margin, source: Table, match: int, prints: bool = True) -> CountedMargin:
    """Count one margin whose first ``match`` columns are the match variables, and keep its sums.

    Cells come in the order of their codes, match variables first, so a stratum's cells stand together.
    """
    counted = margin.count(source)
    begins = counted.begins(match)
    strata = int(np.count_nonzero(begins))
    records, distinct, pairs = np.zeros(strata, np.int64), np.zeros(strata, np.int64), np.zeros(strata)
    _sum_cells(begins, counted.counts, records, distinct, pairs)
    alone = int(np.count_nonzero(counted.counts == 1))
    printed = fingerprint(source, counted) if prints else ""
    return CountedMargin(margin.counted_as(len(counted), printed), alone, records, distinct, pairs)


def _fingerprint_of_whole(dataset: Dataset) -> str:
    fixed = group(dataset.table.pick([*dataset.plan.match, *dataset.held]), dataset.records)
    return whole_fingerprint(fixed, [kinds_of(entry, dataset.records) for entry in dataset.linked])


@confidential
class Strata:
    """Sizes of strata, and which of them a swap can change, as the invariants determine them."""

    sizes: NDArray[np.int64]
    held_varies: NDArray[np.bool_]
    """Whether the stratum has two records that differ in what is held, linked rows included."""
    swapped_varies: NDArray[np.bool_]

    @property
    def largest(self) -> int:
        """b of Theorem 3.2.4: the size of the largest stratum with two different records, or 0."""
        return _largest(self.sizes, self.held_varies | self.swapped_varies)

    @property
    def largest_changeable(self) -> int:
        """The tighter b: strata in which some swap changes something. The specification does not use it."""
        return _largest(self.sizes, self.changeable)

    @property
    def changeable(self) -> NDArray[np.bool_]:
        """Which strata a swap can change."""
        return self.held_varies & self.swapped_varies

    @property
    def singletons(self) -> int:
        """The number of strata of one record."""
        return int(np.count_nonzero(self.sizes == 1))


def _largest(sizes: NDArray[np.int64], among: NDArray[np.bool_]) -> int:
    return int(sizes[among].max(initial=0))


def strata_of_dataset(dataset: Dataset, margins: Margins) -> Strata:
    """Strata from the margins by match and held, and by match and swap variables.

    Records that differ only in their linked rows are what the margins do not show: these are looked at where it can
    make a difference.
    """
    sizes, held_varies = margins.held.records, margins.held.distinct > 1
    if np.any(~held_varies & (sizes > 1)):
        for classes in classes_of(dataset):
            held_varies = held_varies | varies(dataset.strata, classes.codes)
    return Strata(sizes, held_varies, margins.swapped.distinct > 1)


@kernel
def _sum_cells(begins, counts, records, distinct, pairs):  # type: ignore[no-untyped-def]
    stratum = -1
    for i in range(len(counts)):
        if begins[i]:
            stratum += 1
        records[stratum] += counts[i]
        distinct[stratum] += 1
        pairs[stratum] += counts[i] * (counts[i] - 1.0)


def varies(groups: Groups, codes: Codes) -> NDArray[np.bool_]:
    """Which groups have two records with different codes."""
    first = np.zeros(groups.count, dtype=codes.dtype)
    first[groups.ids] = codes
    found = np.zeros(groups.count, dtype=np.bool_)
    found[groups.ids[codes != first[groups.ids]]] = True
    return found


@confidential
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


@confidential
class RatesByStratum:
    """How many records of each stratum have which rate: ``counts[stratum, rule]``. A function of the invariants."""

    rates: tuple[Fraction, ...]
    counts: NDArray[np.int64]

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


def rates_of_dataset(dataset: Dataset) -> RecordRates | None:
    """The rates of records by the plan's rules; None for a plan with one rate."""
    plan, held, table = dataset.plan, dataset.held, dataset.table
    if not plan.rates:
        return None
    for one in plan.rates:
        own = dataset.by_name[one.table].held.columns if one.table is not None else ()
        for column in one.columns:
            if column not in (*plan.match, *held, *own):  # with hold = "rest" the plan alone does not tell
                raise errors.rate_by_unknown(column, one.table)
    rule = np.full(table.rows, len(plan.rates) - 1, dtype=np.uint8)
    shared: NDArray[np.int64] | None = None
    for number in reversed(range(len(plan.rates) - 1)):  # earlier rules overwrite later ones
        one = plan.rates[number]
        if one.table is not None:
            rule[_with_such_a_row(one, dataset)] = number
            continue
        fits = _where(one, table.columns, table.rows)
        if one.counts:
            if one.counted is not None:
                sharing = _sharing(group(table.pick(one.counted), table.rows))
            else:
                if shared is None:
                    shared = _sharing(_alike_in_all_kept(dataset))
                sharing = shared
            fits &= sharing <= (one.at_most or 1)
        rule[fits] = number
    return RecordRates(plan.every_rate, rule)


def one_rate(plan: SwapPlan) -> Fraction:
    """The rate of a plan that has one for all records."""
    assert plan.rate is not None
    return plan.rate


def unique_records(dataset: Dataset) -> NDArray[np.bool_]:
    """Which records no other equals in match and held values, linked rows included."""
    return np.asarray(_sharing(_alike_in_all_kept(dataset)) == 1)


def _with_such_a_row(rule: RateRule, dataset: Dataset) -> NDArray[np.bool_]:
    """Which records have a row of the rule's linked table that meets all of its conditions."""
    asked = PublishedTable(by=tuple(dict.fromkeys(rule.columns)), table=rule.table)
    rows = dict(zip(asked.by, dataset.columns_of(asked, asked.by), strict=True))
    fits = _where(rule, rows, dataset.rows_of(asked))
    if rule.counted is not None:
        fits &= _sharing(group([rows[name] for name in rule.counted], dataset.rows_of(asked))) <= (rule.at_most or 1)
    found = np.zeros(dataset.records, dtype=np.bool_)
    found[dataset.record_of(asked)[fits]] = True
    return found


def values_nobody_has(rule: RateRule, dataset: Dataset) -> list[tuple[str, str]]:
    """Columns and values of a rule's ``where`` that are in no row of the data: misspelt, or rightly absent."""
    asked = PublishedTable(by=tuple(rule.where), table=rule.table) if rule.where else None
    found = () if asked is None else zip(rule.where.items(), dataset.columns_of(asked, asked.by), strict=True)
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


def _alike_in_all_kept(dataset: Dataset) -> Groups:
    """Records that agree in all that a swap keeps."""
    kept = dataset.table.pick([*dataset.plan.match, *dataset.held])
    return group([*kept, *classes_of(dataset)], dataset.records)


def _sharing(groups: Groups) -> NDArray[np.int64]:
    """For each record, how many are in its group."""
    return groups.sizes()[groups.ids]


@kernel
def _tally(strata, rule, counts):  # type: ignore[no-untyped-def]
    for row in range(len(strata)):
        counts[strata[row], rule[row]] += 1


# -- cells by packed keys ------------------------------------------------------------------------------------


def pairs(
    strata: int, left: NDArray[np.integer], right: NDArray[np.integer], most: int | None = None
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
    """Every pair of a left and a right cell of one stratum, given the stratum of each, increasing: the stratum and the
    places of both; None for the stratum if there are more than ``most``."""
    many_left, many_right = np.bincount(left, minlength=strata), np.bincount(right, minlength=strata)
    many = many_left * many_right
    if most is not None and int(many.sum()) > most:
        return None, many_left, many_right
    stratum = np.repeat(np.arange(strata), many)
    within = np.arange(len(stratum)) - np.repeat(np.cumsum(many) - many, many)
    first_left, first_right = np.cumsum(many_left) - many_left, np.cumsum(many_right) - many_right
    return (
        stratum,
        first_left[stratum] + within // many_right[stratum],
        first_right[stratum] + within % many_right[stratum],
    )


def key_of(
    outer: NDArray[np.integer], h: NDArray[np.integer], s: NDArray[np.integer], held: int, swapped: int
) -> NDArray[np.int64]:
    """One number for each triple of an outer group, a held and a swapped one."""
    return (outer.astype(np.int64) * held + h.astype(np.int64)) * swapped + s.astype(np.int64)


def look_up(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each of ``wanted`` stands among ``keys``, which are increasing, and whether it does."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.intp), np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted
