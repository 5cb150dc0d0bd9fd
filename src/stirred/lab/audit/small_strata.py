"""Makes a file of small strata whose exact laws are listed: for plans with rates by rule, merged values or rounds.

A recipe says which records one small area has: which conditions of the plan's rules they meet, how many have which of
the values that are merged, and how their swap values lie in the places of later rounds. The file holds many copies of
each. Which rule decides for a record, and which values are merged, is found here from the words of the plan
(docs/plans.md) and not by the code that releases use; so a fault there shows.

What a release shows of a stratum is how often each held value stands with each swap value, and that has a law that
:func:`stirred.lab.definitions.swap_practices.in_rounds` enumerates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.lab.audit.swap_runs import (
    RECORDS,
    Integers,
    MadeFile,
    first_number,
    held_names,
    linked_names,
    make_file,
    named_by_rules,
    telling_match,
    whole_numbers,
)
from stirred.lab.definitions.swap_practices import in_rounds
from stirred.noise import RandomSource, shuffle_groups
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import Coarsening, LinkedTable, RateRule

MOST_LISTED = 5
"""Records of the largest strata whose laws are listed."""
_BASE = 64
_VALUES_TRIED = 3
"""Values of a rule's column that are tried."""
_ALONE, _SHARED = "alone", "shared"
"""Values that no other record has, and that only the records of the same area have."""

Column = tuple[str | None, str]
"""A linked table, or None for the records, and a column."""
Profile = Mapping[Column, str]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slot:
    """One record of a recipe: the conditions that it meets, its own number, and its value of the merged column."""

    profile: tuple[tuple[Column, str], ...] = ()
    number: int = 0
    fine: str | None = None


@dataclass(frozen=True)
class StratumType:
    """Strata with one law: by slot its rule and what is seen of it, and by later round the place of its values."""

    rules: tuple[int, ...]
    labels: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    fine: tuple[int, ...]
    """By slot, the number of its value of the merged column."""

    @property
    def size(self) -> int:
        """How many records each of these strata has."""
        return len(self.rules)

    def law(self, rates: Sequence[float], later: Sequence[float], twice: int | None = None) -> dict[int, float]:
        """The probability of everything that a release can show, at the rates of the rules and of later rounds.

        ``twice`` is the number of a later round that a faulty program draws twice.
        """
        rounds: list[Any] = [([0] * self.size, [rates[rule] for rule in self.rules])]
        for number, one in enumerate(zip(self.places, later, strict=True)):
            rounds += [one] * (2 if number == twice else 1)
        found: dict[int, float] = {}
        for (values, _), chance in in_rounds(range(self.size), rounds).items():
            code = self.code(values)
            found[code] = found.get(code, 0.0) + float(chance)
        return found

    def code(self, values: Sequence[int]) -> int:
        """What is seen where the slots have these values, as one number."""
        seen = sorted(8 * label + value for label, value in zip(self.labels, values, strict=True))
        return reduce(lambda number, digit: number * _BASE + digit, seen, 0)

    def crosses(self, code: int) -> bool:
        """Whether somebody has the swap values of one with another value of the merged column."""
        fine_of_label = dict(zip(self.labels, self.fine, strict=True))
        digits = [code // _BASE**place % _BASE for place in range(self.size)]
        return any(fine_of_label[digit // 8] != self.fine[digit % 8] for digit in digits)


@dataclass(frozen=True, eq=False, repr=False)
class ListedFile:
    """The tables that a program is given, and the strata in them."""

    plan: SwapPlan
    tables: dict[str, pl.DataFrame]
    types: tuple[StratumType, ...]
    type_of: Integers
    """By stratum; -1 for those that are too large to be listed."""
    sizes: Integers
    key: pl.DataFrame
    """By record: its match and held columns as text, ``_stratum`` and ``_label``; and ``_value``, its own."""
    released_columns: frozenset[str]

    @property
    def strata_of_type(self) -> Integers:
        """How many strata each type has."""
        return np.bincount(self.type_of[self.type_of >= 0], minlength=len(self.types))

    @cached_property
    def links(self) -> dict[str, pl.DataFrame]:
        """By linked table, all pairs of what is kept of a record and of a row of it."""
        return {one.name: self._pairs(one, self.tables)[0] for one in self.plan.linked}

    def wrong_links(self, released: Mapping[str, pl.DataFrame]) -> str:
        """What is plainly wrong with linked rows, in words: rows must be with a record like theirs, and copies its."""
        for entry in self.plan.linked:
            needed = {entry.link, *linked_names(self.plan, entry), *entry.copies}
            if not needed <= set(released[entry.name].columns):
                return f"columns of '{entry.name}' are missing"
            pairs, follow = self._pairs(entry, released)
            if not pairs.equals(self.links[entry.name]):
                return f"rows of '{entry.name}' are with another record, or not there"
            if not follow:
                return f"copies in '{entry.name}' are not the swap values of their record"
        return ""

    def _pairs(self, entry: LinkedTable, tables: Mapping[str, pl.DataFrame]) -> tuple[pl.DataFrame, bool]:
        """What is kept of records and of their linked rows, sorted; and whether copies are the records' values."""
        kept = [*self.plan.match, *held_names(self.plan)]
        held = linked_names(self.plan, entry)
        main = as_texts(tables[RECORDS], [self.plan.id or "", *kept, *self.plan.swap])
        rows = as_texts(tables[entry.name], [entry.link, *held, *entry.copies])
        main = main.rename({name: f"record:{name}" for name in main.columns})
        rows = rows.rename({name: f"row:{name}" for name in rows.columns})
        both = rows.join(main, left_on=f"row:{entry.link}", right_on=f"record:{self.plan.id}", how="left")
        wanted = [pl.col(f"row:{copy}").eq_missing(pl.col(f"record:{of}")) for copy, of in entry.copies.items()]
        follow = both.select(pl.all_horizontal(pl.lit(value=True), *wanted).all()).item()
        names = [*(f"record:{name}" for name in kept), *(f"row:{name}" for name in held)]
        return both.select(names).sort(names), bool(follow)

    def read(self, released: pl.DataFrame) -> tuple[str, list[tuple[Integers, Integers]]]:
        """What is plainly wrong with a released main table, in words; and of each type what was seen, how often."""
        if set(released.columns) != self.released_columns:
            return "other columns are released", []
        kept = [name for name in self.key.columns if not name.startswith("_") and name not in self.plan.swap]
        texts = as_texts(released, [*kept, *self.plan.swap])
        rows = texts.join(self.key.select(*kept, "_stratum", "_label").unique(), on=kept, how="left")
        values = self.key.select("_stratum", *self.plan.swap, "_value")
        rows = rows.join(values, on=["_stratum", *self.plan.swap], how="left").select("_stratum", "_label", "_value")
        same = rows.height == self.key.height and rows.null_count().sum_horizontal().item() == 0
        order = ["_stratum", "_label", "_value"]
        if not same or not rows.select(order[:2]).sort(order[:2]).equals(self.key.select(order[:2]).sort(order[:2])):
            return "records, swap values or both are of no stratum, or of another one", []
        if rows.select("_stratum", "_value").is_duplicated().any():
            return "swap values of a stratum are there more often than before", []
        rows = rows.sort(order)
        digit = rows.select(8 * pl.col("_label") + pl.col("_value")).to_series().to_numpy()
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        found = []
        for number, one in enumerate(self.types):
            first = starts[self.type_of == number]
            codes = digit[first[:, None] + np.arange(one.size)] @ (_BASE ** np.arange(one.size - 1, -1, -1))
            seen, often = np.unique(codes, return_counts=True)
            found.append((seen, often))
        return "", found


def make_listed(plan: SwapPlan, records: int, source: RandomSource) -> ListedFile:
    """Make a file of about so many records, as many of each recipe."""
    carrier = telling_match(plan)[0]
    recipes = list(_apart(_recipes(plan), carrier))
    copies = max(2, records // max(1, sum(map(len, recipes))))
    areas = [(one, 1 if _named(one, carrier) else copies) for one in recipes]
    main, linked = _written(plan, carrier, areas)
    order = shuffle_groups(np.array([0, main.height]), source).astype(np.int64)
    main = main[order]
    hidden = [name for name in main.columns if name.startswith("_")]
    tables = {RECORDS: main.drop(hidden)}
    for name, frame in linked.items():
        tables[name] = frame[shuffle_groups(np.array([0, frame.height]), source).astype(np.int64)]
    main = main.with_columns(pl.Series("_rule", rule_of_records(plan, tables))).sort("_slot")
    return _with_types(plan, tables, main)


def make_idle(plan: SwapPlan, records: int, source: RandomSource) -> MadeFile | None:
    """Make a file in which all records that can move have one rate, nothing is merged and later rounds move nobody.

    None where a plan has no such file: a round swaps again among all records of a stratum, or rules that count who
    shares values give several rates in every file that is tried.
    """
    if plan.rounds and not plan.rounds[0].match_also:
        return None
    for everywhere in (False, True):
        rate = plan.every_rate[-1]
        for _ in range(2):  # the sizes of the strata follow the rate
            made = make_file(plan, records, source, float(rate), everywhere)
            rules = np.unique(rule_of_records(plan, made.tables)[made.row[made.sizes[made.stratum] > 1]])
            if len(rules) > 1:
                break
            if plan.every_rate[rules[0]] == rate:
                return made
            rate = plan.every_rate[rules[0]]
    return None


def rule_of_records(plan: SwapPlan, tables: Mapping[str, pl.DataFrame]) -> Integers:
    """By row of the main table, the number of the first rule that fits it: plainly, as docs/plans.md says it."""
    main = tables[RECORDS].with_row_index("_row").with_columns(pl.all().exclude("_row").cast(pl.String))
    held = _held_columns(plan, tables[RECORDS])
    found = np.full(main.height, max(0, len(plan.rates) - 1), dtype=np.int64)
    for number in reversed(range(len(plan.rates) - 1)):
        rule = plan.rates[number]
        rows, whole = main, [*plan.match, *held]
        if rule.table is not None:
            entry = next(one for one in plan.linked if one.name == rule.table)
            own = tables[rule.table].with_columns(pl.all().cast(pl.String))
            rows = own.join(
                main.select("_row", pl.col(plan.id or "").alias("_id"), *(n for n in whole if n not in own.columns)),
                left_on=entry.link,
                right_on="_id",
            )
        elif rule.counts and rule.counted is None:
            rows, whole = _with_linked_texts(plan, tables, main), [*whole, *(f"_of_{one.name}" for one in plan.linked)]
        fits = pl.lit(value=True)
        for name, values in rule.where.items():
            fits &= pl.col(name).is_in(list(values))
        if rule.counts:
            fits &= pl.len().over(list(rule.counted or whole)) <= (rule.at_most or 1)
        found[rows.filter(fits)["_row"].unique().to_numpy()] = number
    return found


def merged_values(coarsen: Coarsening, counts: Mapping[str, int]) -> dict[str, str]:
    """What each value of the merged column becomes in an area with so many records of each (docs/plans.md)."""
    found = {value: value for value in counts}
    for number, values in enumerate(coarsen.merge):
        inside = [value for value in counts if value in values]
        sizes: dict[str, int] = {}
        for value in inside:
            sizes[found[value]] = sizes.get(found[value], 0) + counts[value]
        if any(size < coarsen.at_least for size in sizes.values()):
            found |= dict.fromkeys(inside, f"list {number}")
    return found


def as_texts(released: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Released columns as the made file writes them, however a program writes whole numbers."""
    found = {}
    for name in names:
        numbers = whole_numbers(released[name]).cast(pl.String)
        found[name] = pl.select(pl.coalesce(numbers, released[name].cast(pl.String))).to_series()
    return pl.DataFrame(found)


# -- recipes ---------------------------------------------------------------------------------------------------


def _recipes(plan: SwapPlan) -> Iterator[tuple[Slot, ...]]:
    """The areas that show what rules and merged values do."""
    for size in (2, 3, 4):
        yield _numbered([Slot()] * size)
    profiles = [_sorted(one) for rule in plan.rates[:-1] for one in _profiles(plan, rule)]
    both = [_sorted(dict(one) | dict(other)) for one, other in pairwise(profiles)]
    for profile in dict.fromkeys([*profiles, *both]):
        for many, others in ((1, 1), (2, 0), (1, 2), (2, 2)):
            yield _numbered([Slot(profile)] * many + [Slot(_of_match(plan, profile))] * others)
    for one, other in pairwise(profiles):
        common = dict(_of_match(plan, one)) | dict(_of_match(plan, other))
        yield _numbered([Slot(_sorted({**dict(own), **common})) for own in (one, other, ())])
    for rule in plan.rates[:-1]:
        most = rule.at_most or 1
        if rule.counts and most < MOST_LISTED:
            together = [Slot()] * (most + 1)  # alike in everything: one more than the rule allows
            yield tuple(together)
            yield (*together, Slot(number=1))
            if most > 1:
                yield (*together[:-1], Slot(number=1))
    if plan.coarsen is not None:
        yield from _merging(plan.coarsen)


def _merging(coarsen: Coarsening) -> Iterator[tuple[Slot, ...]]:
    """Areas in which values are merged, and some where they just are not."""
    for number, values in enumerate(coarsen.merge):
        inner = {value for earlier in coarsen.merge[:number] for value in earlier if value in values}
        outer = [value for value in values if value not in inner]
        one, other = (next(iter(inner)), outer[0]) if inner and outer else (values[0], values[1])
        for many, others in ((1, 1), (1, 2), (2, 2), (3, 2)):
            yield _numbered([Slot(fine=one)] * many + [Slot(fine=other)] * others)
        if inner:
            third = next(value for value in values if value in inner and value != one)
            yield _numbered([Slot(fine=one), Slot(fine=third), Slot(fine=other)])
        enough = coarsen.at_least
        yield _numbered([Slot(fine=one)] * enough + [Slot(fine=other)] * enough)
        if enough > 2:
            yield _numbered([Slot(fine=one)] * (enough - 1) + [Slot(fine=other)] * enough)


def _profiles(plan: SwapPlan, rule: RateRule) -> Iterator[Profile]:
    """Ways of meeting the conditions of a rule: several of its values, and values that nobody shares."""
    own = next((one for one in plan.linked if one.name == rule.table), None)

    def column(name: str) -> Column:
        of_linked = own is not None and name not in (*plan.match, *(plan.hold if plan.hold != "rest" else ()))
        return (own.name if own is not None and of_linked else None), name

    fixed = {column(name): values[0] for name, values in rule.where.items()}
    counted = [column(name) for name in rule.counted or () if name not in rule.where]
    if counted:
        fixed[min(counted, key=lambda one: one[1] in plan.match)] = _ALONE
    yield fixed
    for name, values in rule.where.items():
        for value in values[1:_VALUES_TRIED]:
            yield fixed | {column(name): value}
    if _ALONE in fixed.values():
        yield {one: _SHARED if value == _ALONE else value for one, value in fixed.items()}


def _sorted(profile: Profile) -> tuple[tuple[Column, str], ...]:
    return tuple(sorted(profile.items(), key=lambda item: (item[0][0] or "", item[0][1])))


def _of_match(plan: SwapPlan, profile: tuple[tuple[Column, str], ...]) -> tuple[tuple[Column, str], ...]:
    """What the other records of the stratum have in common with one: values of match columns."""
    return tuple((column, value) for column, value in profile if column[0] is None and column[1] in plan.match)


def _numbered(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    return tuple(replace(slot, number=number) for number, slot in enumerate(slots))


def _named(recipe: Sequence[Slot], carrier: str) -> str | None:
    """What a recipe writes into the column that tells areas apart, if anything: then there can be one copy only."""
    return next((value for slot in recipe for column, value in slot.profile if column == (None, carrier)), None)


def _apart(recipes: Iterable[tuple[Slot, ...]], carrier: str) -> Iterator[tuple[Slot, ...]]:
    """Recipes whose areas are different strata: of those that write one value of a rule there, the first."""
    taken = set()
    for recipe in recipes:
        value = _named(recipe, carrier)
        if value in taken:
            continue
        if value not in (None, _ALONE, _SHARED):
            taken.add(value)
        yield recipe


# -- the file --------------------------------------------------------------------------------------------------


def _written(
    plan: SwapPlan, carrier: str, areas: Iterable[tuple[tuple[Slot, ...], int]]
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """So many copies of each recipe: the main table, with hidden columns of where records are from, and linked ones."""
    first = max(1, first_number(plan))  # numbers from here on are no values of the plan, and none is 0
    held, named = held_names(plan), named_by_rules(plan)
    identity = next((name for name in held if name not in named), held[0])
    frames: list[pl.DataFrame] = []
    area = begin = 0
    for recipe, copies in areas:
        number = np.repeat(np.arange(area, area + copies), len(recipe))
        slot, pattern = np.tile(np.arange(len(recipe)), copies), number % (1 + len(plan.rounds))
        here = np.arange(begin, begin + len(number))
        area, begin = area + copies, begin + len(number)

        def column(own: Column, default: Integers, recipe=recipe, number=number, slot=slot, here=here) -> list[str]:  # type: ignore[no-untyped-def]
            values: list[str] = [str(first + one) for one in default]
            set_to = [dict(one.profile).get(own) for one in recipe]
            if any(one is not None for one in set_to):
                for at, place in enumerate(slot):
                    if (one := set_to[place]) is not None:
                        own_number = {_ALONE: 10_000_000 + here[at], _SHARED: 5_000_000 + number[at]}.get(one)
                        values[at] = one if own_number is None else str(first + own_number)
            return values

        zero = np.zeros(len(number), dtype=np.int64)
        data: dict[str, Any] = {"_area": number, "_slot": here, "_place": slot, "_pattern": pattern}
        for name in plan.match:
            data[name] = column((None, name), number if name == carrier else zero)
        if plan.coarsen is not None and any(one.fine for one in recipe):
            data[plan.coarsen.column] = [recipe[place].fine or str(first) for place in slot]
        numbers = np.array([one.number for one in recipe])
        for name in held:
            data[name] = column((None, name), numbers[slot] if name == identity else zero)
        data |= _swap_values(plan, len(recipe), slot, pattern)
        if plan.id:
            data[plan.id] = 1 + here
        data |= dict.fromkeys(plan.drop, here)
        for entry in plan.linked:
            whose = next((n for n in linked_names(plan, entry) if n not in named_by_rules(plan, entry.name)), None)
            for name in linked_names(plan, entry):
                data[f"_{entry.name}:{name}"] = column((entry.name, name), numbers[slot] if name == whose else zero)
        frames.append(pl.DataFrame(data))
    main = _in_numbers(pl.concat(frames))
    linked = {}
    for entry in plan.linked:
        own = {entry.link: main[plan.id or ""], **({entry.id: 1 + main["_slot"]} if entry.id else {})}
        own |= {name: main[f"_{entry.name}:{name}"] for name in linked_names(plan, entry)}
        own |= {copy: main[target] for copy, target in entry.copies.items()}
        linked[entry.name] = _in_numbers(pl.DataFrame(own | dict.fromkeys(entry.drop, main["_slot"])))
    return main, linked


def _swap_values(plan: SwapPlan, size: int, slot: Integers, pattern: Integers) -> dict[str, Integers]:
    """Swap values that differ within an area; where there are rounds, in one place, or in two of one of them."""
    found: dict[str, Integers] = {}
    for level, later in enumerate(plan.rounds, 1):
        half = (slot >= (size + 1) // 2).astype(np.int64)
        for name in later.match_also:
            found[name] = np.where(pattern == level, half, 0)
    return {name: found.get(name, slot) for name in plan.swap}


def _in_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns as whole numbers where all values are some."""
    numbers = {name: whole_numbers(frame[name]) for name in frame.columns}
    return frame.with_columns(**{name: one for name, one in numbers.items() if not one.null_count()})


def _with_types(plan: SwapPlan, tables: dict[str, pl.DataFrame], main: pl.DataFrame) -> ListedFile:
    held = _held_columns(plan, tables[RECORDS])
    kept = [*plan.match, *held]
    fine = main[plan.coarsen.column].cast(pl.String).to_list() if plan.coarsen is not None else [""] * main.height
    area, rule = main["_area"].to_numpy(), main["_rule"].to_numpy()
    shown_as = main.select(_joined(kept)).to_series().to_list()
    levels = []
    matched: list[str] = []
    for later in plan.rounds:
        matched += later.match_also
        levels.append(main.select(_joined(matched)).to_series().to_list())
    stratum, label, value = (np.zeros(main.height, dtype=np.int64) for _ in range(3))
    numbers: dict[StratumType, int] = {}
    type_of: list[int] = []
    sizes: list[int] = []
    begins = np.flatnonzero(np.diff(area, prepend=-1))
    others = [name for name in plan.match if plan.coarsen is None or name != plan.coarsen.column]
    matched_as = main.select(_joined(others)).to_series().to_list()
    areas: dict[tuple[tuple[str, ...], tuple[int, ...]], list[list[int]]] = {}
    for begin, end in zip(begins, [*begins[1:], main.height], strict=True):
        values = tuple(fine[begin:end]), tuple(_codes(matched_as[begin:end]))
        if values not in areas:
            areas[values] = _strata_of_area(plan, values[0], [str(one) for one in values[1]])
        for inside in areas[values]:
            at = [begin + one for one in inside]
            labels = _codes([shown_as[one] for one in at])
            stratum[at], label[at], value[at] = len(sizes), labels, range(len(at))
            own = StratumType(
                tuple(int(rule[one]) for one in at),
                tuple(labels),
                tuple(tuple(_codes([level[one] for one in at])) for level in levels),
                tuple(_codes([fine[one] for one in at])),
            )
            small = 2 <= len(at) <= MOST_LISTED
            type_of.append(numbers.setdefault(own, len(numbers)) if small else -1)
            sizes.append(len(at))
    texts = main.select(pl.col(name).cast(pl.String) for name in [*kept, *plan.swap])
    key = texts.with_columns(pl.Series("_stratum", stratum), pl.Series("_label", label), pl.Series("_value", value))
    released = frozenset([*kept, *plan.swap, *([plan.id] if plan.id else [])])
    return ListedFile(plan, tables, tuple(numbers), np.array(type_of), np.array(sizes), key, released)


def _strata_of_area(plan: SwapPlan, fine: Sequence[str], matched: Sequence[str]) -> list[list[int]]:
    """The records of each stratum: those that agree on all match columns, the merged one as it is merged."""
    merged = {one: {value: value for value in fine} for one in matched}
    if plan.coarsen is not None:
        for one in merged:
            here = [value for value, other in zip(fine, matched, strict=True) if other == one]
            merged[one] = merged_values(plan.coarsen, {value: here.count(value) for value in here})
    groups: dict[tuple[str, str], list[int]] = {}
    for at, (value, one) in enumerate(zip(fine, matched, strict=True)):
        groups.setdefault((one, merged[one][value]), []).append(at)
    return list(groups.values())


def _codes(several: Sequence[str]) -> list[int]:
    """Numbers from 0 on, in the order of the first occurrence."""
    seen = {one: number for number, one in enumerate(dict.fromkeys(several))}
    return [seen[one] for one in several]


def _joined(names: Sequence[str]) -> pl.Expr:
    """Columns as one text."""
    return pl.concat_str([pl.repeat("", pl.len()), *(pl.col(name).cast(pl.String) for name in names)], separator="\x1f")


def _held_columns(plan: SwapPlan, main: pl.DataFrame) -> tuple[str, ...]:
    if plan.hold != "rest":
        return plan.hold
    other = {*plan.match, *plan.swap, *plan.drop, plan.id}
    return tuple(name for name in main.columns if name not in other)


def _with_linked_texts(plan: SwapPlan, tables: Mapping[str, pl.DataFrame], main: pl.DataFrame) -> pl.DataFrame:
    """The records with what their linked rows hold, as one text for each linked table."""
    for entry in plan.linked:
        own = tables[entry.name].with_columns(pl.all().cast(pl.String))
        left_out = {entry.link, entry.id, *entry.drop, *entry.copies, *plan.swap}
        held = [name for name in own.columns if name not in left_out] if entry.hold == "rest" else list(entry.hold)
        text = pl.concat_str([pl.lit(""), *held], separator="\x1f", ignore_nulls=True)
        rows = own.group_by(entry.link).agg(text.sort().str.join("\x1e").alias(f"_of_{entry.name}"))
        main = main.join(rows, left_on=plan.id, right_on=entry.link, how="left", maintain_order="left")
        main = main.with_columns(pl.col(f"_of_{entry.name}").fill_null(""))
    return main
