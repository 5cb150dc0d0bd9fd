"""Counts the invariants of a swap (Definition 3.2.2), and derives the strata and b from them.

A swap keeps n_mh, the counts by match and held variables, and n_ms, the counts by match and swap variables. Strata
sizes, the largest stratum b and so epsilon are functions of these margins (Remark 3.2.5), which is why epsilon may be
published (Corollary A.2.2), and why a recipient can recompute it from the release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.invariants import Margin, fingerprint
from stirred.spec import Specification
from stirred.swap.coarsening import fine_columns, stratum_columns
from stirred.swap.dataset import Dataset
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import MAIN
from stirred.swap.records import beside_record, kinds_of, multiset_class, whole_fingerprint
from stirred.tables import Table
from stirred.tables.groups import Groups, group

_SIDE_BY_SIDE = 1 << 25
"""Records up to which margins are counted at the same time."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"<CountedMargin: {self.margin}; counts are confidential and not shown>"


@dataclass(frozen=True, eq=False, repr=False)
class Margins:
    """Counted invariants: by match and hold, by match and swap, and per linked table by match and its held columns."""

    counted: tuple[CountedMargin, ...]
    whole: str | None = None
    """Fingerprint of the records with their linked rows, where there are any."""

    def __repr__(self) -> str:
        return f"<Margins: {len(self.counted)} counted margins; counts are confidential and not shown>"

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
    columns = {entry.plan.name: tuple(entry.held.columns) for entry in dataset.linked}
    declared = declare(plan, dataset.held, columns)
    own = (*stratum_columns(plan), *fine_columns(plan))
    tables = [table, table, *(beside_record(table, own, entry.held, entry.record) for entry in dataset.linked)]

    def count(margin: Margin, source: Table) -> CountedMargin:
        return count_margin(margin, source, len(plan.match), prints)

    workers = None if dataset.records <= _SIDE_BY_SIDE else 1  # sorted keys of two margins would fill the memory
    with ThreadPoolExecutor(workers) as pool:  # sorting and hashing do without the interpreter lock
        whole = pool.submit(_whole, dataset) if prints and dataset.linked else None
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


def _whole(dataset: Dataset) -> str:
    fixed = group(dataset.table.pick([*dataset.plan.match, *dataset.held]), dataset.records)
    return whole_fingerprint(fixed, [kinds_of(entry, dataset.records) for entry in dataset.linked])


@dataclass(frozen=True, eq=False, repr=False)
class Strata:
    """Sizes of strata, and which of them a swap can change, as the invariants determine them."""

    sizes: NDArray[np.int64]
    held_varies: NDArray[np.bool_]
    """Whether the stratum has two records that differ in what is held, linked rows included."""
    swapped_varies: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"<Strata: {len(self.sizes):,} strata; their sizes are confidential and not shown>"

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


LinkedClasses = Callable[[], tuple[Groups, Sequence[NDArray[np.uint32]]]]
"""Strata, and per linked table a class per record that two records share when their linked rows are alike."""


def strata_of(held: CountedMargin, swapped: CountedMargin, linked: LinkedClasses | None = None) -> Strata:
    """Strata from the margins by match and held, and by match and swap variables.

    ``linked`` adds what the margins do not show: records that differ only in their linked rows. It is called only
    where it can make a difference.
    """
    sizes, held_varies = held.records, held.distinct > 1
    if linked is not None and bool(np.any(~held_varies & (sizes > 1))):
        strata, classes = linked()
        for labels in classes:
            held_varies = held_varies | _varies(strata, labels)
    return Strata(sizes, held_varies, swapped.distinct > 1)


def strata_of_dataset(dataset: Dataset, margins: Margins) -> Strata:
    """Strata of the data themselves."""

    def classes() -> tuple[Groups, list[NDArray[np.uint32]]]:
        return dataset.strata, [multiset_class(kinds_of(entry, dataset.records)) for entry in dataset.linked]

    return strata_of(margins.held, margins.swapped, classes if dataset.linked else None)


@kernel
def _sum_cells(begins, counts, records, distinct, pairs):  # type: ignore[no-untyped-def]
    stratum = -1
    for i in range(len(counts)):
        if begins[i]:
            stratum += 1
        records[stratum] += counts[i]
        distinct[stratum] += 1
        pairs[stratum] += counts[i] * (counts[i] - 1.0)


def _varies(strata: Groups, classes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    first = np.full(strata.count, -1, dtype=np.int64)
    varies = np.zeros(strata.count, dtype=np.bool_)
    _compare_with_first(strata.ids, classes, first, varies)
    return varies


@kernel
def _compare_with_first(ids, classes, first, varies):  # type: ignore[no-untyped-def]
    for row in range(len(ids)):
        stratum = ids[row]
        if first[stratum] < 0:
            first[stratum] = classes[row]
        elif first[stratum] != np.int64(classes[row]):
            varies[stratum] = True
