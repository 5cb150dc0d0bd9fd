"""Counts the cells of a swapped release that a question needs, from the release folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.coarsening import constant_columns, fine_columns, strata_groups, with_merged
from stirred.swap.law_constants import LawConstants
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import MAIN
from stirred.swap.rates import RatesByStratum, RecordRates, one_rate
from stirred.swap.records import beside_record, linked_kinds, multiset_class
from stirred.swap.released_tables import copies_of, linked_plan
from stirred.swap.simulated_estimation import ReleasedRecords
from stirred.swap.tally import Shape, Tally
from stirred.swap.verifying import read_files, record_of
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, anonymous, cells, group

Integers = NDArray[np.int64]
Where = Mapping[str, Sequence[str]]

_KNOWN = 12
"""Values that an error lists."""


@dataclass(frozen=True, eq=False, repr=False)
class Side:
    """The groups of one sort: by match values, by what is held, or by swap values."""

    names: tuple[str, ...]
    codes: Integers
    """``[group, column]``, in the order of the columns' values"""
    texts: tuple[tuple[str, ...], ...]
    """For each column its values as text"""

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<Side by {', '.join(self.names) or 'nothing'}: {len(self):,} groups>"


@dataclass(frozen=True, eq=False, repr=False)
class Counted:
    """The cells of a question, and what their groups are called."""

    tally: Tally
    areas: Side
    held: Side
    swapped: Side
    records: ReleasedRecords | None = None
    """The records one by one, where the plan has several rates or rounds."""
    in_rounds: bool = False
    """Whether what is held is related to columns that were swapped in more than one round."""

    def __repr__(self) -> str:
        return f"<Counted: {self.tally!r}>"


@dataclass(frozen=True)
class Roles:
    """Which columns of a question are constant in a stratum, which stay and which are exchanged."""

    areas: tuple[str, ...]
    held: tuple[str, ...]
    swapped: tuple[str, ...]
    copies: Mapping[str, str]
    """Columns of a linked table that repeat a swap variable, and which one."""


def roles_of_question(release: ReleaseFolder, plan: SwapPlan, table: str, asked: Sequence[str]) -> Roles:
    """The roles of the asked columns; raises for one that was not released."""
    own = [] if table == MAIN else release.with_role(table, "hold")
    copies = {} if table == MAIN else copies_of(plan, linked_plan(plan, table), list(release.columns(table)))
    constant = constant_columns(plan)
    held = [*fine_columns(plan), *release.with_role(MAIN, "hold")]
    known = list(dict.fromkeys([*own, *constant, *held, *plan.swap, *copies]))
    if unknown := [name for name in asked if name not in known]:
        raise errors.unknown_table_column(unknown, known)
    return Roles(
        tuple(name for name in asked if name in constant and name not in own),
        tuple(name for name in asked if name in own or name in held),
        tuple(name for name in asked if name not in own and (name in plan.swap or name in copies)),
        {name: target for name, target in copies.items() if name not in own},
    )


def swapped_in_rounds(plan: SwapPlan, roles: Roles, table: str) -> list[str]:
    """The columns that were swapped in more than one round and that the question relates to what is held.

    Later rounds exchange values among records that share all other swap values: other tables are those of round one.
    Records hold their linked rows, so counts of these relate swapped to held values even without a held column.
    """
    again = [name for name in roles.swapped if roles.copies.get(name, name) in plan.swapped_again]
    return again if roles.held or table != MAIN else []


def count_cells(
    release: ReleaseFolder, plan: SwapPlan, table: str, by: Sequence[str], where: Where, rates: RecordRates | None
) -> Counted:
    """Count the released cells by stratum and by the asked columns."""
    roles = roles_of_question(release, plan, table, list(dict.fromkeys([*by, *where])))
    of_record = [name for name in release.columns(MAIN) if name != plan.id]
    own = [] if table == MAIN else [name for name in roles.held if name in release.with_role(table, "hold")]
    borrowed = [name for name in roles.held if name not in own]
    swapped = {name: roles.copies.get(name, name) for name in roles.swapped}
    in_rounds = bool(swapped_in_rounds(plan, roles, table))
    needed = {*plan.match, *borrowed, *swapped.values(), *(plan.swap if in_rounds else ())} or {plan.swap[0]}
    main = release.read(MAIN, [name for name in of_record if name in needed]).table
    counted = with_merged(plan, main)
    strata = strata_groups(plan, counted)
    size = strata.sizes()
    by_stratum = rates.by_stratum(strata) if rates is not None else None
    rules = [] if rates is None else [anonymous(rates.rule, len(rates.rates))]
    if table == MAIN:
        grouped = _columns(main, {name: name for name in borrowed})
        kinds = group([*grouped.values(), *rules], main.rows)
        held, label = _side(grouped, kinds, by, where)
        scored = np.flatnonzero(label >= 0)
        class_of, group_of, score = scored, label[scored], np.ones(len(scored), dtype=np.int64)
    else:
        found = release.read(table, [*own, *release.with_role(table, "link")])
        record, rows = record_of(release, table, found), found.table.rows
        joined = beside_record(main, borrowed, found.table, record)
        grouped = _columns(joined, {name: name for name in roles.held})
        held, label = _side(grouped, every := group(list(grouped.values()), rows), by, where)
        kinds, class_of, group_of, score = _profiles(label[every.ids], record, main.rows)
    exchanged = _columns(main, swapped)
    classes = group(list(exchanged.values()), main.rows)
    swap_side, swap_group = _side(exchanged, classes, by, where)
    areas, area = _side(_columns(main, {name: name for name in roles.areas}), strata, by, where)
    inner = cells([anonymous(one.ids, one.count) for one in (strata, kinds, classes)], main.rows)
    stratum, k, t = (codes.astype(np.int64) for codes in inner.codes)
    tally = Tally(
        Shape(len(areas), len(held), len(swap_side)),
        LawConstants.of(size, plan.rate) if plan.rate is not None else _by_rate(size, by_stratum),
        area,
        stratum,
        k,
        t,
        inner.counts.astype(np.int64),
        class_of.astype(np.int64),
        group_of.astype(np.int64),
        score,
        swap_group,
        by_stratum,
        None if rates is None or table != MAIN else _rule_of(kinds, rates),
    )
    if plan.rate is not None and not in_rounds:
        return Counted(tally, areas, held, swap_side)
    records = _records(plan, main, strata, kinds, classes, rates, in_rounds=in_rounds)
    return Counted(tally, areas, held, swap_side, records, in_rounds)


def _records(
    plan: SwapPlan, main: Table, strata: Groups, kinds: Groups, classes: Groups, rates: RecordRates | None, *,
    in_rounds: bool,
) -> ReleasedRecords:  # fmt: skip
    """The records one by one. Later rounds enter only where the question relates to what they change."""
    later = plan.rounds if in_rounds else ()
    values = group(main.pick(plan.swap), main.rows) if later else classes
    row = np.zeros(values.count, dtype=np.int64)
    row[values.ids] = np.arange(main.rows)
    matched: tuple[str, ...] = ()
    coarse = []
    for one in later:
        matched = (*matched, *one.match_also)
        coarse.append(group(main.pick(matched), main.rows).ids[row].astype(np.int64))
    first = rates if rates is not None else one_rate(plan)
    return ReleasedRecords(
        strata, kinds.ids.astype(np.int64), values.ids.astype(np.int64), classes.ids[row].astype(np.int64),
        tuple(coarse), first, tuple(one.rate for one in later),
    )  # fmt: skip


def rates_of_release(release: ReleaseFolder, plan: SwapPlan) -> RecordRates | None:
    """The rates of the records by the plan's rules, computed again from the release; None for a plan with one rate."""
    return read_files(release, plan).record_rates() if plan.rates else None


def _rule_of(kinds: Groups, rates: RecordRates) -> Integers:
    found = np.zeros(kinds.count, dtype=np.int64)
    found[kinds.ids] = rates.rule
    return found


def _by_rate(size: Integers, rates: RatesByStratum | None) -> LawConstants:
    assert rates is not None
    return LawConstants.by_rate(size, rates.one_each())


def _columns(table: Table, names: Mapping[str, str]) -> dict[str, Column]:
    return {name: table[source] for name, source in names.items()}


def _side(columns: Mapping[str, Column], classes: Groups, by: Sequence[str], where: Where) -> tuple[Side, Integers]:
    """The groups of some classes of rows by the columns of ``by``, and the group of each class or -1."""
    row = np.zeros(classes.count, dtype=np.int64)
    row[classes.ids] = np.arange(len(classes.ids))
    chosen = np.ones(classes.count, dtype=np.bool_)
    for name, column in columns.items():
        if name in where:
            chosen &= _fitting(name, column, where[name])[column.codes[row]]
    names = [name for name in by if name in columns]
    codes = np.stack([columns[name].codes[row].astype(np.int64) for name in names], axis=1) if names else None
    if codes is None:
        codes = np.zeros((classes.count, 0), dtype=np.int64)
    groups, at = np.unique(codes[chosen], axis=0, return_inverse=True) if names else (codes[:1], 0)
    label = np.full(classes.count, -1, dtype=np.int64)
    label[chosen] = np.reshape(at, -1) if names else 0
    texts = tuple(tuple(text or "" for text in columns[name].texts()) for name in names)
    return Side(tuple(names), groups, texts), label


def _fitting(name: str, column: Column, wanted: Sequence[str]) -> NDArray[np.bool_]:
    texts = [text or "" for text in column.texts()]
    for value in wanted:
        if value not in texts:
            raise errors.unknown_choice(f"value of '{name}'", value, texts[:_KNOWN])
    return np.array([text in wanted for text in texts], dtype=np.bool_)


def _profiles(label: Integers, record: NDArray[np.uint32], records: int) -> tuple[Groups, Integers, Integers, Integers]:
    """Records by how many linked rows they have in which groups: their classes, and the positive scores of these."""
    chosen = label >= 0
    groups = anonymous(label[chosen].astype(np.uint32), int(label.max(initial=0)) + 1)
    used = np.unique(label[chosen])
    linked = linked_kinds([groups], record[chosen], records)
    nodes = multiset_class(linked)
    kinds = group([anonymous(nodes, int(nodes.max(initial=0)) + 1)], records)
    one = np.zeros(kinds.count, dtype=np.int64)
    one[kinds.ids] = np.arange(records)
    many = linked.starts[one + 1] - linked.starts[one]
    first = np.repeat(linked.starts[one], many)
    within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    found = used[linked.kinds[first + within]] if len(used) else np.zeros(0, dtype=np.int64)
    size = int(label.max(initial=0)) + 1
    keys, score = np.unique(np.repeat(np.arange(kinds.count), many) * size + found, return_counts=True)
    return kinds, keys // size, keys % size, score.astype(np.int64)
