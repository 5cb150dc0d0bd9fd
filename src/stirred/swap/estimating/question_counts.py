"""Counts the released cells that a question needs, and finds an interval for each count, from the release folder alone.

Intervals are score intervals: the true counts from which the estimate is not further than chance explains. A sum over
strata has a variance that depends on every stratum's true count. The test of a total x spreads what x differs from the
estimate over the strata in proportion to their variances, within what the margins allow, and takes the variance there:
for one stratum this is the score interval itself. Half a released unit is added as continuity correction, since
released counts are whole numbers.

:func:`tabulate_note` says by how much a swap weakens what a table shows, before the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred._lazy import later
from stirred.errors import listed
from stirred.estimates.answers import Parts
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.data.counting import RatesByStratum, RecordRates, one_rate, rates_of_dataset
from stirred.swap.data.dataset import (
    constant_columns,
    copies_of,
    fine_columns,
    linked_plan,
    strata_groups,
    with_merged,
)
from stirred.swap.data.records import beside_record, linked_kinds, multiset_class
from stirred.swap.data.released_files import read_files, record_of
from stirred.swap.estimating.cell_estimates import CellEstimates, Shape, Tally, cell_estimates, key_parts
from stirred.swap.estimating.simulated_estimates import DRAWS, ReleasedRecords
from stirred.swap.law import stratum_laws
from stirred.swap.law.moments import LawConstants
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, anonymous, cells, group

Floats = NDArray[np.float64]

_SCANNED = 64
"""Whole numbers that are tried one by one, for a count that only one stratum leaves open."""
_STEPS = 48


def continuity(found: CellEstimates) -> Floats:
    """Half a released unit as it is in each estimate; a unit is the mean size of what moves together."""
    weight = np.where(found.estimated, found.spread_if_independent + 1e-12, 0.0)
    shrinkage = np.abs(np.where(found.estimated, found.law.shrinkage, 1.0))
    total = np.maximum(found.total(weight), 1e-300)
    return np.asarray(found.total(weight * 0.5 * np.maximum(found.unit_size, 1.0) / shrinkage) / total)


def score_interval(found: CellEstimates, quantile: float, *, whole: bool = True) -> tuple[Floats, Floats]:
    """Lower and upper ends of the estimated part of each answer, within what the margins allow; as whole numbers, or
    as they are where they become part of other intervals."""
    open_cells = np.flatnonzero(found.estimated)
    if not len(open_cells):
        return np.zeros(len(found.answers)), np.zeros(len(found.answers))
    return _Sums(found.among(open_cells), quantile).ends(whole)


class _Sums:
    """The estimated cells of all answers, moved together from their lowest to their highest counts."""

    def __init__(self, found: CellEstimates, quantile: float) -> None:
        self.found, self.quantile = found, quantile
        here = found.estimated
        self.low, self.high = np.where(here, found.low, 0.0), np.where(here, found.cells.high, 0.0)
        self.start = np.where(here, found.clipped, 0.0)
        own = np.where(here, found.variances_at(found.clipped), 0.0)
        widest = np.zeros(len(found.answers))
        np.maximum.at(widest, found.answer, np.maximum(own, found.spread_if_independent))
        self.weight = np.maximum(own, 1e-3 * widest[found.answer]) + 1e-12
        self.half_step = continuity(found)
        self.value = found.total(np.where(here, found.values, 0.0))
        self.least, self.most = found.total(self.low), found.total(self.high)

    def ends(self, whole: bool) -> tuple[Floats, Floats]:
        found, open_cells = self.found, self.found.total(self.found.estimated)
        reach = np.where(found.estimated, (self.high - self.low) / self.weight, 0.0)
        far = np.zeros(len(found.answers))
        np.maximum.at(far, found.answer, reach)
        middle = self._solve(-far, far, lambda shift: self._at(shift)[0] < np.clip(self.value, self.least, self.most))
        low = self._solve(-far, middle, lambda shift: self._outside(shift, 1.0))
        high = -self._solve(-far, -middle, lambda shift: self._outside(-shift, -1.0))
        lower, upper = self._at(low)[0], self._at(high)[0]
        if not whole:
            return lower, upper
        lower, upper = np.ceil(lower - 1e-6), np.floor(upper + 1e-6)
        single = np.flatnonzero((open_cells == 1) & (self.most - self.least <= _SCANNED))
        if len(single):
            lower[single], upper[single] = self._scan(single)
        nearest = np.clip(np.rint(self.value), self.least, self.most)
        return np.minimum(lower, nearest), np.maximum(upper, nearest)

    def _at(self, shift: Floats) -> tuple[Floats, Floats]:
        """Totals and their standard deviations where every cell has moved by ``shift`` times its variance."""
        found = self.found
        values = np.clip(self.start + shift[found.answer] * self.weight, self.low, self.high)
        variances = found.variances_at(np.where(found.estimated, values, found.clipped))
        return found.total(values), np.sqrt(found.total(variances))

    def _outside(self, shift: Floats, sign: float) -> NDArray[np.bool_]:
        total, spread = self._at(shift)
        return np.asarray(sign * (self.value - total) > self.quantile * spread + self.half_step)

    def _solve(self, low: Floats, high: Floats, below: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
        """By halving: where ``below`` ceases to hold."""
        for _ in range(_STEPS):
            middle = (low + high) / 2
            down = below(middle)
            low, high = np.where(down, middle, low), np.where(down, high, middle)
        return high

    def _scan(self, single: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The hull of all whole numbers that are not rejected, of answers with one open cell each."""
        chosen = np.zeros(len(self.found.answers), dtype=np.bool_)
        chosen[single] = True
        cell = np.flatnonzero(self.found.estimated & chosen[self.found.answer])
        cell = cell[np.argsort(self.found.answer[cell])]
        found, value, half = self.found.some(cell), self.value[single], self.half_step[single]
        low, high = self.low[cell], self.high[cell]
        lower, upper = np.full(len(single), np.inf), np.full(len(single), -np.inf)
        for step in range(int((high - low).max()) + 1):
            x = np.minimum(low + step, high)
            inside = np.abs(value - x) <= self.quantile * np.sqrt(found.variances_at(x)) + half
            lower = np.where(inside, np.minimum(lower, x), lower)
            upper = np.where(inside, np.maximum(upper, x), upper)
        nearest = np.clip(np.rint(value), low, high)
        return np.where(np.isinf(lower), nearest, lower), np.where(np.isinf(upper), nearest, upper)


special = later("scipy.special")

Integers = NDArray[np.int64]

MOST_LAWS = 100
"""Laws of cells that are listed for one question."""

KIND_WORDS = {
    "known": "what the swap keeps tells it, without error",
    "exact": "from the law of the swap itself, in one small stratum",
    "score": "the true counts from which the released one is not further than chance explains, and half a unit more",
    "normal": "from the normal law and the variance at the estimates, and half a unit more: records of one group had "
    "different rates",
    "simulated": "as combined, a count by itself with the normal law and half a unit more; spreads of counts, or their "
    f"correlations are those of {DRAWS} draws of the published law from the released records, and so approximate",
    "combined": "put together from the intervals of the counts, with their correlations",
    "bounded": "no estimate: some of the records are in groups so small for their rates that nothing can be estimated "
    "there. The interval has all that the kept counts allow for these, and is found as otherwise for the others",
    "margins": "no estimate: the swap mixes so much that the kept counts alone say as much. The interval is what they "
    "allow",
}
"""What the kinds of intervals mean."""


@dataclass(frozen=True, eq=False, repr=False)
class CountParts:
    """All counts of a tally by (area, held group, swap group)."""

    tally: Tally
    rate: Fraction | None
    _found: dict[tuple[float, bool], Parts] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<CountParts of {self.tally!r}>"

    @cached_property
    def cells(self) -> CellEstimates:
        """The estimates, stratum by stratum."""
        return cell_estimates(self.tally)

    @property
    def keys(self) -> Integers:
        """Of each count its packed key, increasing."""
        return self.cells.answers

    @property
    def groups(self) -> tuple[Integers, Integers, Integers]:
        """Of each count its area, held group and swap group."""
        return key_parts(self.keys, self.tally.shape)

    def merged(self, areas: Integers, held: Integers, swapped: Integers) -> CountParts:
        """The counts with groups put together: for each group the number of its new one."""
        return CountParts(self.tally.merged(areas, held, swapped), self.rate)

    @cached_property
    def naive(self) -> Floats:
        """The released counts."""
        return self.cells.total(self.cells.cells.released)

    @cached_property
    def values(self) -> Floats:
        """The estimates, unclipped; without a meaning where a part is only bounded."""
        return self.cells.total(self.cells.values)

    @cached_property
    def variances(self) -> Floats:
        """Their variances: the sums over strata are without bias, and only they are cut at 0."""
        return np.maximum(self.cells.total(self.cells.variances), 0.0)

    @cached_property
    def refused(self) -> NDArray[np.bool_]:
        """Where the margins alone say as much as an estimate: its standard error under independence, a function of the
        invariants, is above half of what the margins leave open; or nothing can be estimated."""
        found = self.cells
        leave_open = np.where(found.varies, found.cells.high - found.cells.low, 0.0)
        spread = np.sqrt(found.total(np.where(found.estimated, found.spread_if_independent, 0.0)))
        nothing = (found.total(found.varies) > 0) & (found.total(found.estimated) == 0)
        return np.asarray(nothing | (spread > found.total(leave_open) / 2))

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """How the interval of each count is found."""
        found = self.cells
        kinds = np.full(len(self.keys), "score", dtype="<U8")
        kinds[[answer for answer, _ in self._listed]] = "exact"
        kinds[found.total(found.mixed & found.estimated) > 0] = "normal"
        kinds[found.total(found.bounded) > 0] = "bounded"
        kinds[found.total(found.varies) == 0] = "known"
        kinds[self.refused] = "margins"
        return kinds

    @cached_property
    def _listed(self) -> list[tuple[int, int]]:
        """Counts that only one small stratum leaves open, and the cell of each."""
        found = self.cells
        single = (found.total(found.estimated) == 1) & (found.total(found.bounded) == 0) & ~self.refused
        small = found.estimated & (found.cells.size <= stratum_laws.LARGEST) & (found.cells.largest == 1)
        cells = np.flatnonzero(small & single[found.answer])
        one = found.cells
        laws = {(one.size[at], one.scores[at], one.records[at]) for at in cells}
        if self.rate is None or len(laws) > MOST_LAWS:
            return []
        return [(int(found.answer[at]), int(at)) for at in cells]

    def parts(self, confidence: float, *, whole: bool = False) -> Parts:
        """Estimates with their intervals; ``whole`` for whole numbers as ends, otherwise as parts of other answers."""
        if (confidence, whole) not in self._found:
            self._found[confidence, whole] = self._parts(confidence, whole)
        return self._found[confidence, whole]

    def _parts(self, confidence: float, whole: bool) -> Parts:
        found, one = self.cells, self.cells.cells
        quantile = float(special.ndtri((1 + confidence) / 2))
        lower, upper = score_interval(found, quantile, whole=whole)
        if not whole:
            # What the margins cut off a count's interval would be missing in a difference: estimates stay unclipped.
            value = found.total(np.where(found.estimated, found.values, 0.0))
            spread = np.maximum(self.variances, found.total(found.variances_at(found.clipped)))
            half = np.where(found.total(found.estimated) > 0, quantile * np.sqrt(spread) + continuity(found), 0.0)
            lower, upper = np.minimum(lower, value - half), np.maximum(upper, value + half)
        if whole:
            for answer, at in self._listed:
                law = int(one.size[at]), int(one.scores[at]), int(one.records[at]), int(one.released[at])
                assert self.rate is not None
                lower[answer], upper[answer] = stratum_laws.exact_interval(*law, self.rate, 1 - confidence)
        known = found.total(np.where(found.varies, 0.0, one.released))
        alone = known + found.total(np.where(found.varies & ~found.estimated, one.low, 0.0))
        lower, upper = lower + alone, upper + alone + found.total(found.width)
        least = known + found.total(np.where(found.varies, one.low, 0.0))
        most = known + found.total(np.where(found.varies, one.high, 0.0))
        bounded, refused = found.total(found.bounded) > 0, self.refused
        lower, upper = np.where(refused, least, lower), np.where(refused, most, upper)
        lower, upper = (
            np.where(bounded, np.maximum(lower, least), lower),
            np.where(bounded, np.minimum(upper, most), upper),
        )
        return Parts(self.values, self.variances, lower, upper)


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
    sides: tuple[Side, Side, Side]
    """By match values, by what is held and by swap values."""
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
        grouped = {name: main[name] for name in borrowed}
        kinds = group([*grouped.values(), *rules], main.rows)
        held, label = _side(grouped, kinds, by, where)
        scored = np.flatnonzero(label >= 0)
        class_of, group_of, score = scored, label[scored], np.ones(len(scored), dtype=np.int64)
    else:
        found = release.read(table, [*own, *release.with_role(table, "link")])
        record, rows = record_of(release, table, found), found.table.rows
        joined = beside_record(main, borrowed, found.table, record)
        grouped = {name: joined[name] for name in roles.held}
        held, label = _side(grouped, every := group(list(grouped.values()), rows), by, where)
        kinds, class_of, group_of, score = _profiles(label[every.ids], record, main.rows)
    exchanged = {name: main[source] for name, source in swapped.items()}
    classes = group(list(exchanged.values()), main.rows)
    swap_side, swap_group = _side(exchanged, classes, by, where)
    areas, area = _side({name: main[name] for name in roles.areas}, strata, by, where)
    inner = cells([anonymous(one.ids, one.count) for one in (strata, kinds, classes)], main.rows)
    stratum, k, t = (codes.astype(np.int64) for codes in inner.codes)
    tally = Tally(
        Shape(len(areas), len(held), len(swap_side)),
        law_of(plan, size, by_stratum),
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
        None if rates is None or table != MAIN else kinds.of_each(rates.rule),
    )
    sides = areas, held, swap_side
    if plan.rate is not None and not in_rounds:
        return Counted(tally, sides)
    records = _records(plan, main, strata, kinds, classes, rates, in_rounds=in_rounds)
    return Counted(tally, sides, records, in_rounds)


def _records(
    plan: SwapPlan, main: Table, strata: Groups, kinds: Groups, classes: Groups, rates: RecordRates | None, *,
    in_rounds: bool,
) -> ReleasedRecords:  # fmt: skip
    """The records one by one. Later rounds enter only where the question relates to what they change."""
    later = plan.rounds if in_rounds else ()
    values = group(main.pick(plan.swap), main.rows) if later else classes
    row = values.members()
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
    return rates_of_dataset(read_files(release, plan).data) if plan.rates else None


def law_of(plan: SwapPlan, size: Integers, rates: RatesByStratum | None) -> LawConstants:
    """The constants of the strata, where all records have the plan's rate or have these."""
    return LawConstants.of(size, one_rate(plan)) if rates is None else LawConstants.by_rate(size, rates.one_each())


def _side(columns: Mapping[str, Column], classes: Groups, by: Sequence[str], where: Where) -> tuple[Side, Integers]:
    """The groups of some classes of rows by the columns of ``by``, and the group of each class or -1."""
    row = classes.members()
    chosen = np.ones(classes.count, dtype=np.bool_)
    for name, column in columns.items():
        if name in where:
            chosen &= fitting(name, column, where[name])[column.codes[row]]
    names = [name for name in by if name in columns]
    codes = np.stack([columns[name].codes[row].astype(np.int64) for name in names], axis=1) if names else None
    if codes is None:
        codes = np.zeros((classes.count, 0), dtype=np.int64)
    groups, at = np.unique(codes[chosen], axis=0, return_inverse=True) if names else (codes[:1], 0)
    label = np.full(classes.count, -1, dtype=np.int64)
    label[chosen] = np.reshape(at, -1) if names else 0
    texts = tuple(tuple(text or "" for text in columns[name].texts()) for name in names)
    return Side(tuple(names), groups, texts), label


def fitting(name: str, column: Column, wanted: Sequence[str]) -> NDArray[np.bool_]:
    """Which values of a column a condition asks for; raises where it names one that does not occur."""
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
    kinds = group([multiset_class(linked)], records)
    one = kinds.members()
    many = linked.starts[one + 1] - linked.starts[one]
    first = np.repeat(linked.starts[one], many)
    within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    found = used[linked.kinds[first + within]] if len(used) else np.zeros(0, dtype=np.int64)
    size = int(label.max(initial=0)) + 1
    keys, score = np.unique(np.repeat(np.arange(kinds.count), many) * size + found, return_counts=True)
    return kinds, keys // size, keys % size, score.astype(np.int64)


_SHOWN = 80


def tabulate_note(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str | None:
    """For a table that relates swapped to held variables: that it is weakened, by how much, and what corrects it; None
    for one that the swap cannot change, such as by a held variable that the match variables determine."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    name = release.require_table(table)
    roles = roles_of_question(release, plan, name, by)
    if not roles.swapped or (not roles.held and name == MAIN):
        return None
    counted = count_cells(release, plan, name, list(dict.fromkeys(by)), {}, rates_of_release(release, plan))
    if not counted.tally.changeable.any():
        return None
    of = "" if name == MAIN else f" --table {plain(name, _SHOWN)}"
    asked = plain(",".join(by), 10 * _SHOWN)
    if roles.held:
        weakened = f"Note: the swap weakened how {listed(roles.swapped)} and {listed(roles.held)} go together."
    else:
        weakened = (
            f"Note: rows of {plain(name, _SHOWN)} moved with their records, which do not all have as many. Their "
            f"numbers by {listed(roles.swapped)} are not the true ones."
        )
    if swapped_in_rounds(plan, roles, name):
        how_much = "Differences are shown smaller than they are: these values were exchanged in several rounds."
    else:
        how_much = _how_much(release, plan)
    return (
        f"{weakened} {how_much} Corrected, with intervals: "
        f"stirred estimate {plain(release.path, 10 * _SHOWN)} --by {asked}{of}"
    )


def mean_shrinkage(release: ReleaseFolder, plan: SwapPlan) -> float | None:
    """The part of an association that the first round leaves, averaged over the records; None where the plan has
    several rates."""
    if plan.rate is None:
        return None
    wanted = [column for column in release.columns(MAIN) if column in plan.match]
    if not wanted:
        sizes = np.array([release.dictionary[MAIN]["rows"]])
    else:
        main = release.read(MAIN, wanted).table
        sizes = strata_groups(plan, with_merged(plan, main)).sizes()
    return float(np.average(LawConstants.of(sizes, plan.rate).shrinkage, weights=sizes)) if sizes.sum() else None


def _how_much(release: ReleaseFolder, plan: SwapPlan) -> str:
    left = mean_shrinkage(release, plan)
    if left is None:
        return "Differences are shown smaller than they are, by how much depends on the rates of the records."
    if left <= -0.005:  # above a critical rate most values are exchanged: those of two records nearly always
        return f"Differences are shown reversed on average, at about {-100 * left:.2g}% of their true size."
    if left < 0.005:
        return "Next to nothing is left of it on average."
    return f"Differences are shown at about {100 * left:.2g}% of their true size."
