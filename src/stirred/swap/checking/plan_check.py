"""Checks a plan against the data before a release: guarantee, risks, forecasts and stops; draws no randomness.

What a check says is computed from the confidential file and is itself confidential. Choosing the rate or the variables
by it is a choice made on this data, which voids the guarantee; the check says so. Its pictures set what other variables
and rates would reveal against epsilon and against the error that they cost, so that nobody takes "more match variables,
smaller epsilon" for better: the published counts then reveal more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._progress import Progress, shown_by, stage
from stirred.releases.folder.documents import check_json
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.semantics.pictures.shapes import Line, Picture
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.swap.checking.comparison import LossBy, expected_loss
from stirred.swap.checking.forecast import ExpectedTable, expected_scores, expected_table
from stirred.swap.checking.movement import (
    Movement,
    RuleEffects,
    Unchangeable,
    UniqueRows,
    movement_of,
    movement_stops,
    rule_effects,
    stay_probabilities,
    unchangeable_places,
    unique_rows,
)
from stirred.swap.checking.prediction import Telling, measure, telling_stops
from stirred.swap.checking.revealing import Revealing, Uniques, alone_stops, count_uniques, find_stops, reveal_swap
from stirred.swap.checking.undoing import (
    Together,
    Undoing,
    releases_stops,
    swapped_data,
    together,
    undoing_of,
    undoing_stops,
    with_remedies,
)
from stirred.swap.data.counting import (
    Margins,
    RecordRates,
    Strata,
    count_margins,
    one_rate,
    rates_of_dataset,
    strata_of_dataset,
)
from stirred.swap.data.dataset import Dataset, InputDataset, constant_columns, kept_with_dropped_ids, load
from stirred.swap.law import theorem
from stirred.swap.law.permutation import later_rounds
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import specify
from stirred.swap.plan.sections import PublishedTable, exact_rate
from stirred.tables import Input, Table
from stirred.tables.columns import plain_type
from stirred.tables.groups import group

Candidate = tuple[tuple[str, ...], tuple[str, ...]]
"""Match and swap variables to be tried in place of the plan's."""

Rate = Fraction | float | str
Rates = Rate | Iterable[Rate]
Asked = Sequence[str] | Mapping[str, object] | PublishedTable
"""A table that is asked for."""


_READING, _WORKING, _CSV_FILE = 250_000_000, 490_000_000, 50_000_000
"""Bytes of memory, whatever the rows: while reading; later, with the report; for each CSV file that is read ahead."""
_TEXT_ID, _LINKED_TEXT_ID = 220, 100
"""Bytes for an id that is text, while repeated ones are looked for; and for one of a linked row."""
_ROW, _CSV_ROW, _LINKED_ROW = 10, 36, 60
"""Bytes for a row beside its codes, while it is put in order and written."""


@dataclass(frozen=True)
class Forecast:
    """Rough cost of the release on this machine."""

    seconds: float
    memory_bytes: int
    """Peak resident memory."""
    disk_bytes: int


@dataclass(frozen=True)
class WhatIf:
    """The guarantee at several rates for one choice of match and swap variables, as in the papers' Table 3.5."""

    match: tuple[str, ...]
    swap: tuple[str, ...]
    strata: int
    largest: int
    largest_changeable: int
    epsilons: tuple[tuple[str, float], ...]
    determined_share: float
    """Share of records that the published counts determine, whatever the rate."""
    unique_share: float
    """Share of records that are unique on match and held values."""
    guessed_share: float
    """Share of records whose swap values the published counts alone let anyone guess rightly."""
    changed_shares: tuple[tuple[str, float], ...]
    """By rate, the expected share of records that end with other swap values."""
    errors: tuple[tuple[str, float | None], ...]
    """By rate, the expected MAPE of the tables asked for (their mean); None where none is forecast."""


@dataclass(frozen=True, eq=False, repr=False)
class SwapCheck:
    """The result of checking a plan against its data. Confidential."""

    plan: SwapPlan
    specification: Specification
    records: int
    linked_rows: Mapping[str, int]
    strata: Strata
    fine_strata: int
    """The number of groups that agree on all match variables, before any are merged."""
    margins: Margins
    uniques: Uniques
    movement: Movement
    unchangeable: tuple[Unchangeable, ...]
    telling: Telling
    undoing: Undoing
    together: Together | None
    """What this release and earlier ones of the ledger allow together."""
    rules: RuleEffects | None
    """What the rules do, in a plan with rates by rule."""
    revealing: Revealing
    uniques_on: tuple[UniqueRows, ...]
    """For the keys that were asked for, how many are unique, and how many of these stay in place."""
    tables: tuple[ExpectedTable, ...]
    losses: tuple[tuple[LossBy, ...], ...]
    """For each of these tables the information loss that is expected."""
    mape_at_last_rate: tuple[float, ...]
    """With rates by rule: the expected MAPE of each table if all records had the last rule's rate."""
    too_large: tuple[PublishedTable, ...]
    not_forecast: tuple[PublishedTable, ...]
    """Tables for which there are no formulas: linked rows, sums or weights with rates by rule or several rounds, and
    with both of these every table that is not kept exactly."""
    stops: tuple[errors.StoppedByCheck, ...]
    what_if: tuple[WhatIf, ...]
    forecast: Forecast
    code: str | None = None
    """Ties a release to this check; as confidential as the data."""

    def __repr__(self) -> str:
        """A summary; ``print`` shows the whole page."""
        stops = f"{len(self.open_stops)} of {len(self.stops)} stops not allowed" if self.stops else "no stops"
        return (
            f"<SwapCheck, confidential: {self.records:,} records, {_rates(self.plan)}, "
            f"epsilon {display(self.epsilon)}, {stops}; print it to read it all>"
        )

    @property
    def largest(self) -> int:
        """b: the size of the largest stratum with two different records; by rule, two held and two swap values."""
        return self.strata.largest if self.rules is None else self.strata.largest_changeable

    @property
    def epsilon(self) -> float:
        """The epsilon that a release would have."""
        return float(self.specification.budget.number)

    @property
    def open_stops(self) -> list[errors.StoppedByCheck]:
        """Stops that the plan does not allow: a release ends with the first of them."""
        return [stop for stop in self.stops if stop.kind not in self.plan.allow]

    def to_json(self) -> str:
        """The check as JSON. Confidential."""
        strata, largest = self.strata, self.largest
        fields = {
            "records": self.records,
            "linked_rows": dict(self.linked_rows),
            "strata": {
                "count": len(strata.sizes),
                "singletons": strata.singletons,
                "unchangeable": int(np.count_nonzero(~strata.changeable)),
                "records_in_unchangeable": int(strata.sizes[~strata.changeable].sum()),
                "largest": largest,
                "largest_changeable": strata.largest_changeable,
                "sizes": [asdict(one) for one in self.movement.by_size],
            },
            "strata_before_merging": self.fine_strata,
            "guarantee": {
                "epsilon": self.epsilon,
                "best_rate": theorem.best_rate(largest) if largest else None,
                "smallest_epsilon": theorem.smallest_epsilon(largest) if largest else 0.0,
            }
            | ({} if self.plan.rate is None else self._one_rate_fields(self.plan.rate)),
            "invariants": [
                {"words": str(counted.margin), "cells": counted.margin.cells} for counted in self.margins.counted
            ],
            "unique_records": asdict(self.uniques),
            "records_that_cannot_change": {
                one.variable: [{"value": value, "records": many, "fixed": fixed} for value, many, fixed in one.places]
                for one in self.unchangeable
            },
            "published_counts_reveal": self.revealing.to_fields(),
            "could_be_put_back": {
                "found": [asdict(one) | {"columns": list(one.columns)} for one in self.undoing.found],
                "remedies": [asdict(one) for one in self.undoing.remedies],
                "with_earlier_releases": None if self.together is None else asdict(self.together),
            },
            "held_columns_tell": [asdict(one) for one in self.telling.told],
            "movement": {
                name: value
                for name, value in asdict(self.movement).items()
                if name not in ("by_size", "rate", "by_rule")
            },
            "rules": None if self.rules is None else asdict(self.rules),
            "uniques_on": [asdict(one) | {"keys": one.keys.to_fields()} for one in self.uniques_on],
            "tables": [_table_fields(table, loss) for table, loss in zip(self.tables, self.losses, strict=True)],
            "expected_mape_at_last_rate": list(self.mape_at_last_rate),
            "tables_too_large_to_forecast": [list(one.by) for one in self.too_large],
            "tables_not_forecast": [one.to_fields() for one in self.not_forecast],
            "what_if": [asdict(entry) for entry in self.what_if],
            "forecast": asdict(self.forecast),
        }
        return check_json(self.plan, self.specification, self.stops, self.open_stops, fields, self.code)

    def _one_rate_fields(self, rate: Fraction) -> dict[str, float]:
        """What is known of the guarantee at one rate only."""
        largest = self.largest
        return {
            "epsilon_if_tighter_b": theorem.epsilon(self.strata.largest_changeable, rate),
            "worst_universe_lower_bound": theorem.lower_bound(largest, rate) if largest else 0.0,
            "worst_universe_gap": theorem.gap(largest, rate) if largest else 0.0,
        }

    def pictures(self) -> tuple[Picture, ...]:
        """What other rates and variables reveal, against epsilon and against the error they cost. Confidential."""
        return candidate_pictures(self.what_if, self.plan.unit)

    def __str__(self) -> str:
        from stirred.swap.checking.check_text import describe

        return describe(self)


@refuses_wrong_arguments
def check(
    plan: SwapPlan,
    data: Data | None = None,
    *,
    tables: Sequence[Asked] = (),
    uniques: Sequence[Asked] = (),
    rates: Rates = (),
    candidates: Sequence[Candidate] = (),
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> SwapCheck:
    """Check a plan against its data: the guarantee of a release, its risks, forecasts and cost. Draws nothing.

    ``tables`` are forecast beside those that the plan publishes: lists of columns, :class:`PublishedTable` or its
    fields as a mapping. ``uniques`` are keys in the same form: how many records or linked rows are unique on them is
    told, and how many of these are expected to stay in place. ``rates`` is a swap rate to be tried in place of the
    plan's, or several; 0.05 and "1/20" are the same. ``ledger`` is that of the dataset: what its earlier swaps and this
    one allow together is told too.
    """
    tried_rates = _each_rate(rates)
    with shown_by(progress):
        began = time.perf_counter()
        stage("reading")
        dataset = load(plan, data)
        reading = time.perf_counter() - began
        stage("counting the invariants")
        margins = count_margins(dataset, prints=False)
        strata = strata_of_dataset(dataset, margins)
        stage("looking for stops")
        by_record = rates_of_dataset(dataset)
        by_stratum = by_record.by_stratum(dataset.strata) if by_record else None
        later = later_rounds(plan, dataset.counted)
        movement = movement_of(strata, margins.swapped, by_stratum or one_rate(plan), later)
        telling = measure(dataset)
        stage("looking for records that could be put back")
        data_of_swap = swapped_data(dataset, by_record or one_rate(plan))
        undoing = undoing_of(data_of_swap, kept_with_dropped_ids(dataset))
        if undoing_stops(plan, undoing):
            undoing = with_remedies(data_of_swap, undoing)
        opened = Ledger.open(ledger) if isinstance(ledger, str | Path) else ledger
        earlier = [] if opened is None else [entry.specification for entry in opened.entries() if entry.counted]
        changes = movement.expected_changed_share
        several = together(dataset, earlier, changes)
        stops = find_stops(dataset)
        stops = undoing_stops(plan, undoing, [*stops, *telling_stops(dataset, telling, stops)])
        stops += [*releases_stops(plan, several, changes * dataset.records), *movement_stops(plan, strata, movement)]
        stops += alone_stops(dataset, margins.swapped)
        stage("counting what the invariants reveal")
        revealing = reveal_swap(dataset)
        stage("forecasting tables")
        asked = list(dict.fromkeys([*plan.published_tables, *(PublishedTable.of(one) for one in tables)]))
        keys = [PublishedTable.of(one) for one in uniques]
        if any(one.adds_up for one in keys):
            raise errors.PlanError(
                "unique-on-sums",
                "How many are unique is asked for with a sum or a weight.",
                "Name columns alone, and table for rows of a linked table: 'age,sex;table=persons'.",
            )
        plan.require_tables([*asked, *keys])
        for one in (*asked, *keys):
            dataset.require(one)
        stays = stay_probabilities(dataset, strata, by_record, later) if keys else None
        possible = [one for one in asked if has_formulas(dataset, one)]
        forecasts = [(one, expected_forecast(dataset, one, by_record)) for one in possible]
        forecast = [table for _, table in forecasts if table is not None]
        stage("computing other rates and variables")
        tried = [(plan.match, plan.swap), *candidates] if tried_rates or candidates else []
        return SwapCheck(
            plan=plan,
            specification=specify(
                plan,
                dataset.held,
                dataset.linked_columns,
                strata,
                movement,
                rates=by_stratum,
                alone=margins.swapped.alone,
            ),
            records=dataset.records,
            linked_rows={entry.plan.name: entry.held.rows for entry in dataset.linked},
            strata=strata,
            fine_strata=group(dataset.table.pick(plan.match), dataset.records).count
            if plan.coarsen
            else len(strata.sizes),
            margins=margins,
            uniques=count_uniques(dataset, margins.held.alone),
            movement=movement,
            unchangeable=unchangeable_places(dataset, strata),
            telling=telling,
            undoing=undoing,
            together=several,
            rules=rule_effects(dataset, strata, by_record, by_stratum) if by_record and by_stratum else None,
            revealing=revealing,
            uniques_on=tuple(unique_rows(dataset, one, stays) for one in keys),
            tables=tuple(forecast),
            losses=tuple(expected_loss(table) for table in forecast),
            mape_at_last_rate=_at_last_rate(dataset, forecast),
            too_large=tuple(one for one, table in forecasts if table is None),
            not_forecast=tuple(one for one in asked if one not in possible),
            stops=tuple(stops),
            what_if=tuple(_what_if(dataset, entry, tried_rates or plan.every_rate, asked) for entry in tried),
            forecast=_forecast(dataset, reading),
        )


def _rates(plan: SwapPlan) -> str:
    rounds = f" and {len(plan.rounds)} later rounds" if plan.rounds else ""
    return (f"rate {plan.rate}" if plan.rate is not None else "rates by rule") + rounds


def has_formulas(dataset: Dataset, asked: PublishedTable) -> bool:
    """Whether a table can be forecast."""
    plan = dataset.plan
    if asked.of_records:
        return not (plan.rounds and plan.rates) or _is_kept(dataset, asked.by)
    moving = any(dataset.of_record(asked, name) in plan.swap for name in asked.by)
    return not moving or not (plan.rounds or plan.rates)


def _is_kept(dataset: Dataset, by: Sequence[str]) -> bool:
    """Whether a table is a margin of the invariants."""
    plan = dataset.plan
    return set(by) <= {*plan.match, *dataset.held} or set(by) <= {*constant_columns(plan), *plan.swap}


def _at_last_rate(dataset: Dataset, tables: Sequence[ExpectedTable]) -> tuple[float, ...]:
    """Expected MAPEs at the last rule's rate for all records; none for a plan with one rate."""
    if not dataset.plan.rates:
        return ()
    tried = at_rate(dataset, dataset.plan.rates[-1].rate)
    found = [expected_forecast(tried, table.asked) for table in tables]
    return tuple(table.expected_mape for table in found if table is not None)


def at_rate(dataset: Dataset, rate: Fraction) -> Dataset:
    """The same data with a plan of one rate."""
    return replace(dataset, plan=dataset.plan.model_copy(update={"rate": rate, "rates": ()}))


def _each_rate(rates: Rates) -> tuple[Fraction, ...]:
    """Rates as exact fractions, from one or several, numbers or their texts."""
    several = rates if isinstance(rates, Iterable) and not isinstance(rates, str | bytes) else [rates]
    return tuple(exact_rate(rate) for rate in several)


def expected_forecast(
    dataset: Dataset, asked: PublishedTable, rates: RecordRates | None = None
) -> ExpectedTable | None:
    """The forecast of any table; None where it would take too many cells."""
    return expected_table(dataset, asked.by, rates) if asked.of_records else expected_scores(dataset, asked)


def _what_if(
    dataset: Dataset, candidate: Candidate, rates: Sequence[Fraction], asked: Sequence[PublishedTable]
) -> WhatIf:
    """Guarantee, what is revealed and what it costs if these variables matched and swapped and all others were held."""
    match, swap = candidate
    unknown = [name for name in (*match, *swap) if name not in dataset.table.columns]
    if unknown:
        raise errors.table_columns(unknown, list(dataset.table.columns))
    plan = dataset.plan.model_copy(update={"match": tuple(match), "swap": tuple(swap), "coarsen": None, "rounds": ()})
    held = tuple(name for name in dataset.table.columns if name not in (*match, *swap))
    other = replace(
        dataset,
        plan=plan,
        held=held,
        counted=dataset.table,
        strata=group(dataset.table.pick(match), dataset.records),
    )
    margins = count_margins(other, prints=False)
    strata = strata_of_dataset(other, margins)
    revealed = reveal_swap(other, beliefs=False)
    return WhatIf(
        tuple(match),
        tuple(swap),
        len(strata.sizes),
        strata.largest,
        strata.largest_changeable,
        tuple((str(rate), theorem.epsilon(strata.largest, rate)) for rate in rates),
        revealed.counts.determined_share,
        revealed.unique_share,
        revealed.counts.guessed_share,
        tuple((str(rate), movement_of(strata, margins.swapped, rate).expected_changed_share) for rate in rates),
        tuple((str(rate), _expected_error(other, rate, asked)) for rate in rates),
    )


def _expected_error(dataset: Dataset, rate: Fraction, asked: Sequence[PublishedTable]) -> float | None:
    """The mean over tables of their expected MAPE at a rate; None if there is none, or one is too large to forecast."""
    tried = at_rate(dataset, rate)
    if any(set(one.added) & set(tried.plan.swap) for one in asked):
        return None  # these variables would be swapped
    tables = [expected_forecast(tried, one) for one in asked]
    found = [table.expected_mape for table in tables if table is not None]
    return sum(found) / len(found) if found and len(found) == len(tables) else None


def _forecast(dataset: InputDataset, reading: float) -> Forecast:
    """Time from the reading just done and the benchmark's cost of a row; memory and disk from the sizes."""
    rows, columns = dataset.records, len(dataset.columns)
    linked_rows = sum(entry.held.rows for entry in dataset.linked)
    linked_bytes = sum(entry.held.nbytes() + entry.record.nbytes for entry in dataset.linked)
    seconds = reading + rows * (8e-9 * columns + 40e-9) + linked_rows * 150e-9
    disk = _written_bytes(dataset.plan.format or dataset.input.format, dataset.table)
    disk += sum(_written_bytes(dataset.plan.format or entry.input.format, entry.held) for entry in dataset.linked)
    return Forecast(seconds, memory_of(dataset, linked_bytes), disk)


def memory_of(dataset: InputDataset, linked_bytes: int) -> int:
    """Peak resident memory of a release: of its reading, where ids that are text weigh most, or of what follows.

    Measured at 1 and 5 million records of :mod:`stirred.tables.synthetic`, and at 0.3 and 1.5 million households with
    their persons: within a fifth of what was used.
    """
    rows, inputs = dataset.records, [dataset.input, *(entry.input for entry in dataset.linked)]
    files = sum(one.format == "csv" for one in inputs)
    linked_rows = sum(entry.held.rows for entry in dataset.linked)
    codes = 2 * dataset.table.nbytes() + linked_bytes
    reading = _READING + codes + rows * _TEXT_ID * _text_ids(dataset.input, [dataset.plan.id])
    reading += sum(
        entry.held.rows * _LINKED_TEXT_ID * _text_ids(entry.input, [entry.plan.link, entry.plan.id])
        for entry in dataset.linked
    )
    per_row = _CSV_ROW if dataset.input.format == "csv" else _ROW
    return max(reading, _WORKING + files * _CSV_FILE + codes + rows * per_row + linked_rows * _LINKED_ROW)


def _text_ids(opened: Input, names: Sequence[str | None]) -> int:
    """How many of these columns are text."""
    return sum(name in opened.kinds and pa.types.is_string(plain_type(opened.kinds[name])) for name in names if name)


def _written_bytes(kind: str, table: Table) -> int:
    """About what a table takes on disk: its text as CSV, its codes and ids otherwise (Parquet mostly takes less)."""
    if kind != "csv":
        return table.nbytes() + 8 * table.rows
    lengths = [np.mean([len(text or "") for text in column.texts()]) + 1 for column in table.columns.values()]
    return int(table.rows * (sum(lengths) + 8))


def _table_fields(table: ExpectedTable, loss: Sequence[LossBy]) -> dict[str, object]:
    return {
        **table.asked.to_fields(),
        "cells": [
            {"values": list(label), "true": true, "expected": mean, "variance": variance}
            for label, true, mean, variance in zip(
                table.labels, table.true.tolist(), table.mean.tolist(), table.variance.tolist(), strict=True
            )
        ],
        "mape_of_expectation_lower_bound": table.mape_of_expectation,
        "expected_mape_normal_approximation": table.expected_mape,
        "expected_information_loss": {
            "whole_table": loss[0].fields(0),
            **{
                one.variable: [{"value": value, **one.fields(row)} for row, value in enumerate(one.values)]
                for one in loss[1:]
            },
        },
    }


# -- pictures of a check -------------------------------------------------------------------------------------


_CAPTION = (
    "CONFIDENTIAL: computed from the data. A choice made by looking at it voids the guarantee. Each point is one "
    "choice of variables and rate: "
)
_SHARES = (
    "determined by the published counts",
    "unique on match and held values",
    "guessed rightly from the counts",
    "expected to change",
)
_SUBTITLE = "Shares of records; only the last depends on the swap rate"


@dataclass(frozen=True)
class _Point:
    """One choice of variables and rate; ``shares`` are those of ``_SHARES``."""

    epsilon: float
    error: float
    words: str
    shares: tuple[float, ...]


def candidate_pictures(entries: Sequence[WhatIf], unit: str = "record") -> tuple[Picture, ...]:
    """Shares of records against epsilon, and against the expected error of the tables asked for.

    Where several choices of variables were tried, each is one point, at the first rate; else each rate is. Nothing is
    drawn where fewer than two points have a finite epsilon, or an error.
    """
    points = _points(entries)
    asked = [
        ("revealed-by-epsilon", "A smaller epsilon does not mean that less is revealed", "epsilon", "epsilon"),
        ("revealed-by-error", "What is revealed, and what it costs", "expected MAPE of the tables asked for", "error"),
    ]
    found = []
    for name, title, x_title, axis in asked:
        drawn = sorted((one for one in points if isfinite(getattr(one, axis))), key=lambda one: getattr(one, axis))
        if len(drawn) > 1:
            x = tuple(getattr(one, axis) for one in drawn)
            shares = zip(*(one.shares for one in drawn), strict=True)
            lines = tuple(Line(words, x, share) for words, share in zip(_SHARES, shares, strict=True))
            caption = _CAPTION + "; ".join(one.words for one in drawn) + " (from left to right)."
            found.append(
                Picture(
                    name,
                    title,
                    _SUBTITLE,
                    x_title,
                    "share of records",
                    lines,
                    caption=caption,
                    guarantee=_guarantee(drawn, unit),
                )
            )
    return tuple(found)


def _guarantee(drawn: Sequence[_Point], unit: str) -> str:
    finite = [one.epsilon for one in drawn if isfinite(one.epsilon)]
    budgets = f"epsilon from {min(finite):.4g} to {max(finite):.4g}" if finite else "no finite epsilon"
    return f"Guarantees: {budgets} per {unit} that differs, pure differential privacy; each choice holds others fixed"


def _points(entries: Sequence[WhatIf]) -> list[_Point]:
    found = []
    for entry in entries:
        for at in range(len(entry.epsilons)) if len(entries) == 1 else (0,):
            rate, epsilon = entry.epsilons[at]
            error = entry.errors[at][1]
            words = f"match {', '.join(entry.match) or 'nothing'}, swap {', '.join(entry.swap)}, rate {rate}"
            shares = (entry.determined_share, entry.unique_share, entry.guessed_share, entry.changed_shares[at][1])
            found.append(_Point(epsilon, inf if error is None else error, words, shares))
    return found
