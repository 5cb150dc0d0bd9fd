"""Several ways of protecting one dataset side by side: what each promises, moves, reveals and gets wrong.

:func:`study` draws every contender several times on the same data and compares all released tables with the true
ones. The result is confidential, since it tells true counts from false ones, and choosing a plan by it voids the
guarantee; use earlier or generated data for choosing. Numbers that come from draws have their Monte Carlo error.

Errors of tables over several draws come each with the error that comes from the number of draws. For a cell c with
the true count x_c and the released count z_cd of draw d, e_cd = z_cd - x_c. Over the cells of a table, or of a part
of it: the mean of |e|, the root of the mean of e^2, the mean of |e| / x where x > 0, the mean of e. The *systematic*
error is what remains when many draws are averaged: the root of the mean over cells of (E e_c)^2, whose square is
estimated without bias by [(sum_d e_cd)^2 - sum_d e_cd^2] / (D (D - 1)). Monte Carlo errors are standard errors over
the draws, that of the systematic error by leaving out one draw at a time.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred._progress import Progress, Silent
from stirred.errors import StirredError
from stirred.lab.study.contenders import Contender, Known, contender
from stirred.lab.study.study_data import PLACES, StudyData
from stirred.lab.study.swappers.simulated import Flags, Swapper
from stirred.noise import RandomSource, SeededSource, SystemSource
from stirred.releases.folder.atomic import CONFIDENTIAL, appearing
from stirred.releases.plans import Plan
from stirred.semantics.pictures.shapes import Bar, Bars
from stirred.semantics.sentences.formatting import guarantees_line
from stirred.swap.plan.fields import SwapPlan

MOST_NUMBERS = 50_000_000
"""Cells times draws of one table that are kept in memory."""
COUNT = "_count"
BY_SIZE = "true count"
"""How the names of parts by the size of the true count begin."""
SIZES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, None))
"""Ranges of true counts for which errors are told apart."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated by simulation, and its standard error; nan where one draw tells neither."""

    value: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        shown = f"{self.value:.4g}"
        return shown if math.isnan(self.error) or self.error == 0 else f"{shown} ± {self.error:.1g}"


@dataclass(frozen=True)
class Errors:
    """The errors of some cells of a table."""

    cells: int
    mean_absolute: Estimate
    root_mean_square: Estimate
    relative: Estimate
    """Mean of |e| / x over cells that are not empty in truth."""
    mean: Estimate
    """Mean of e: above zero where released counts are too large."""
    systematic: Estimate
    """The part of the root mean square error that more draws would not average out."""

    @classmethod
    def measures(cls) -> list[str]:
        """The names of the measures, in order."""
        return [one.name for one in fields(cls) if one.name != "cells"]


@dataclass(frozen=True)
class Part:
    """Errors of a table as a whole, by the size of the true count, or by a place."""

    name: str
    errors: Errors


def errors_of(error: Floats, truth: Floats) -> Errors:
    """The errors of some cells: a row of ``error`` for each draw, a column for each cell."""
    draws, cells = error.shape
    absolute = np.abs(error)
    filled = truth > 0
    relative = absolute[:, filled] / truth[filled]
    squares = (error**2).mean(axis=1)
    root = math.sqrt(squares.mean())
    of_squares = over_draws(squares)
    return Errors(
        cells,
        over_draws(absolute.mean(axis=1)),
        Estimate(root, of_squares.error / (2 * root) if root else of_squares.error),
        over_draws(relative.mean(axis=1)) if filled.any() else Estimate(math.nan, math.nan),
        over_draws(error.mean(axis=1)),
        _systematic(error) if draws > 1 else Estimate(math.nan, math.nan),
    )


def parts_of(error: Floats, truth: Floats, place: NDArray[np.integer], places: Sequence[str]) -> Iterator[Part]:
    """A table as a whole, by ranges of true counts, and by place; ``place`` says where each cell is."""
    yield Part("all cells", errors_of(error, truth))
    for low, high in SIZES:
        inside = (truth >= low) & (truth <= (math.inf if high is None else high))
        if inside.any():
            yield Part(f"{BY_SIZE} {_range(low, high)}", errors_of(error[:, inside], truth[inside]))
    for number, name in enumerate(places):
        inside = place == number
        yield Part(name, errors_of(error[:, inside], truth[inside]))


def over_draws(by_draw: Floats) -> Estimate:
    """A mean over draws, and its standard error."""
    if np.ptp(by_draw) == 0:  # a mean of equal floats may differ from them in its last digit
        return Estimate(float(by_draw[0]), 0.0 if len(by_draw) > 1 else math.nan)
    return Estimate(float(by_draw.mean()), float(by_draw.std(ddof=1) / math.sqrt(len(by_draw))))


# -- counting ------------------------------------------------------------------------------------------------


def counted(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Counts of the rows of a frame by some columns, whose values are texts."""
    return frame.select(pl.col(*by).cast(pl.String)).group_by(list(by)).agg(pl.len().cast(pl.Int64).alias(COUNT))


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table: every place with every combination of the other columns that occurs anywhere."""

    index: pl.DataFrame
    truth: Floats
    place: NDArray[np.uint32]
    places: tuple[str, ...]
    """By the first column of the geography that the table has; empty where it has none."""

    @classmethod
    def of(
        cls,
        truth: pl.DataFrame,
        released: Sequence[pl.DataFrame],
        by: Sequence[str],
        geography: Sequence[str],
        listed: pl.DataFrame | None,
    ) -> Cells:
        """From the true counts, all released ones, and the list of places where there is one."""
        where = [name for name in geography if name in by]
        others = [name for name in by if name not in where]
        seen = [frame.select(by) for frame in (truth, *released)]
        places = [frame.select(where) for frame in seen]
        if listed is not None and where and set(where) <= set(listed.columns):
            places.append(listed.select(pl.col(*where).cast(pl.String)))
        index = pl.concat(places).unique() if where else None
        if others:
            kinds = pl.concat([frame.select(others) for frame in seen]).unique()
            index = kinds if index is None else index.join(kinds, how="cross")
        assert index is not None
        index = index.select(by).sort(by)
        if len(index) * max(1, len(released)) > MOST_NUMBERS:
            raise errors.study_too_large(", ".join(by), len(index) * len(released), MOST_NUMBERS)
        first = index[where[0]] if where else pl.Series(["all"] * len(index))
        names = first.unique().sort()
        place = first.replace_strict(names, np.arange(len(names)), return_dtype=pl.UInt32)
        return cls(index, _aligned(index, truth), place.to_numpy(), tuple(map(str, names)) if where else ())

    def error(self, released: pl.DataFrame) -> Floats:
        """Released minus true counts, cell by cell."""
        return _aligned(self.index, released) - self.truth


def _aligned(index: pl.DataFrame, counts: pl.DataFrame) -> Floats:
    joined = index.join(counts, on=index.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined[COUNT].fill_null(0).to_numpy().astype(np.float64)


# -- helpers -------------------------------------------------------------------------------------------------


def _systematic(error: Floats) -> Estimate:
    draws = len(error)
    sums, squares = error.sum(axis=0), (error**2).sum(axis=0)
    square = float(np.mean(sums**2 - squares)) / (draws * (draws - 1))
    root = math.sqrt(max(square, 0.0))
    if draws < 3:
        return Estimate(root, math.nan)
    without = np.array([np.mean((sums - one) ** 2 - (squares - one**2)) for one in error])
    without /= (draws - 1) * (draws - 2)
    spread = math.sqrt((draws - 1) / draws * float(np.sum((without - without.mean()) ** 2)))
    return Estimate(root, spread / (2 * root) if root else math.sqrt(spread))


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} and more"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def to_fields(one: Errors) -> Mapping[str, float | None]:
    """Errors for JSON, each measure with its Monte Carlo error."""
    found: dict[str, float | None] = {"cells": one.cells}
    for name in Errors.measures():
        estimate: Estimate = getattr(one, name)
        found[name] = None if math.isnan(estimate.value) else estimate.value
        found[f"{name}_monte_carlo_error"] = None if math.isnan(estimate.error) else estimate.error
    return found


DRAWS = 20
"""Draws of each contender, unless another number is asked for."""
NOTE = (
    "CONFIDENTIAL. These numbers compare releases with the true data and are covered by no guarantee: do not publish "
    "them. A plan that is chosen by them on the data it protects has no guarantee either."
)
GENERATED_NOTE = (
    "Everybody in these data is invented, so nothing here is confidential. With real data all of it would be."
)
_PERSONS = "What published counts reveal of a TopDown plan are shares of the records of its own tables."
_WIDTH, _FIRST, _ABREAST, _PAGE = 20, 38, 5, 118


@dataclass(frozen=True)
class Asked:
    """A table to compare: its columns, and of which table of the data."""

    by: tuple[str, ...]
    of: str

    def __str__(self) -> str:
        return f"{self.of} by {', '.join(self.by)}"


@withheld
@dataclass(frozen=True, repr=False)
class Measured:
    """One contender: what is known of it, and what its draws did. Confidential."""

    name: str
    known: Known
    changed: Estimate | None
    """Records that have another value than before in a column that moves, per draw; None where nothing is swapped."""
    uniques_in_place: Estimate | None
    """Of the records that are unique on the columns asked for, the share that kept :attr:`Study.unique_places`."""
    tables: Mapping[str, tuple[Part, ...]]
    """By table, the errors: of all cells first, then by size of the true count and by place. Tables that it does not
    release are not there."""

    def whole(self, table: str) -> Errors | None:
        """The errors of a table as a whole; None if it is not released."""
        return self.tables[table][0].errors if table in self.tables else None


@dataclass(frozen=True, repr=False)
class Study:
    """Contenders side by side. Confidential unless the data were generated; ``print`` shows it as a page of text."""

    words: str
    generated: bool
    records: int
    unique: int
    """Records that are unique on the columns asked for."""
    unique_on: tuple[str, ...]
    moving: tuple[str, ...]
    """The columns that some contender moves."""
    draws: int
    asked: tuple[Asked, ...]
    contenders: tuple[Measured, ...]

    @property
    def note(self) -> str:
        """The note that says who may see the study."""
        return GENERATED_NOTE if self.generated else NOTE

    @property
    def unique_places(self) -> tuple[str, ...]:
        """Where uniques are followed: the columns of ``unique_on`` that move; all that move if none of these does."""
        return _followed(self.unique_on, self.moving)

    def __repr__(self) -> str:
        """A summary; ``print`` shows the whole page."""
        return f"<Study of {len(self.contenders)} contenders, {self.draws} draws each; print it to read it all>"

    def __getitem__(self, name: str) -> Measured:
        for one in self.contenders:
            if one.name == name:
                return one
        raise errors.unknown_choice("contender", name, [one.name for one in self.contenders])

    def __str__(self) -> str:
        lines = [self.note, "", f"Side by side on {self.words}: {self.draws} draws each."]
        lines += [
            f"Shares are of the {self.records:,} records that are swapped; after ± stands the standard error from the "
            "number of draws.",
            *([_PERSONS] if any(one.changed is None for one in self.contenders) else []),
            "Systematic errors stay when many draws are averaged; bias is the mean error of cells of one size.",
        ]
        for start in range(0, len(self.contenders), _ABREAST):
            lines += ["", *self._block(self.contenders[start : start + _ABREAST])]
        lines += ["", "What each promises, and what it publishes exactly:"]
        for one in self.contenders:
            stated = one.known.specification
            kept = "; ".join(str(invariant) for invariant in stated.multiverse.invariants) or "nothing"
            unit = stated.input_premetric.unit
            lines += [one.name, *_wrapped(str(stated.budget)), *_wrapped(f"unit: {unit}; kept exactly: {kept}")]
        return "\n".join(lines) + "\n"

    def _block(self, shown: Sequence[Measured]) -> list[str]:
        width = max(_WIDTH, *(len(one.name) + 2 for one in shown))
        lines = [("", [one.name for one in shown]), *self.rows(shown)]
        found = []
        for label, texts in lines:
            *above, last = textwrap.wrap(label, _FIRST - 1, subsequent_indent="  ") or [""]
            found += [line.rstrip() for line in above]
            found.append(f"{last:<{_FIRST}}{''.join(f'{text:>{width}}' for text in texts)}".rstrip())
        return found

    def rows(self, shown: Sequence[Measured]) -> list[tuple[str, list[str]]]:
        """The table: a label, and a text for each contender."""
        found = [
            ("privacy loss bound", [one.known.losses[0].shown for one in shown]),
            ("where it comes from", [one.known.losses[0].kind for one in shown]),
        ]
        if any(len(one.known.losses) > 1 for one in shown):
            exact = [one.known.losses[1].shown if len(one.known.losses) > 1 else "-" for one in shown]
            found.append(("exact loss of this universe", exact))
        found += [
            ("test: detects at 5% false alarms", [_power(one.known) for one in shown]),
        ]
        if self.moving:
            label = f"records with another {_listed(self.moving, 'or')}"
            found.append((label, [_share(one.changed, self.records) for one in shown]))
        if self.unique_on and self.moving:
            label = f"uniques still in their {_listed(self.unique_places, 'and')} ({self.unique:,})"
            found.append((label, [_share(one.uniques_in_place, 1) for one in shown]))
        for name, words in _LEAKAGE.items():
            found.append((words, [_percent(one.known, name) for one in shown]))
        for table in map(str, self.asked):
            found.append((table, [""] * len(shown)))
            whole = [one.whole(table) for one in shown]
            for name, words in _WORDS.items():
                cells = ["not released" if each is None else _shown(name, getattr(each, name)) for each in whole]
                found.append((f"  {words}", cells))
            for size in _sizes(self.contenders, table):
                found.append((f"  bias, {size}", [_bias(one, table, size) for one in shown]))
        return found

    def to_json(self) -> str:
        """All numbers as JSON. Confidential unless the data were generated."""
        fields = {
            "stirred_study": 1,
            "note": self.note,
            "data": self.words,
            "records": self.records,
            "unique_on": list(self.unique_on),
            "unique_records": self.unique,
            "columns_that_move": list(self.moving),
            "uniques_are_followed_in": list(self.unique_places),
            "draws": self.draws,
            "contenders": [self._fields(one) for one in self.contenders],
        }
        return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def _fields(self, one: Measured) -> dict[str, Any]:
        known = one.known
        return {
            "name": one.name,
            "losses": [
                {"kind": loss.kind, "budget": loss.budget, "value": None if math.isinf(loss.value) else loss.value}
                for loss in known.losses
            ],
            "power_at_5_percent": known.power,
            "records_with_another_place": _estimate(one.changed),
            "uniques_in_place_share": _estimate(one.uniques_in_place),
            "published_counts_reveal": None if known.leakage is None else asdict(known.leakage),
            "unit": known.specification.input_premetric.unit,
            "kept_exactly": [str(invariant) for invariant in known.specification.multiverse.invariants],
            "why": known.specification.budget.conversion,
            "tables": {
                table: [{"part": part.name, **to_fields(part.errors)} for part in parts]
                for table, parts in one.tables.items()
            },
        }

    def to_csv(self) -> str:
        """The errors of all tables as CSV: a row for each contender, table, part and measure. Confidential."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["contender", "table", "part", "cells", "measure", "value", "monte_carlo_error"])
        for one in self.contenders:
            for table, parts in one.tables.items():
                for part in parts:
                    for name in Errors.measures():
                        found: Estimate = getattr(part.errors, name)
                        numbers = ["" if math.isnan(x) else f"{x:.6g}" for x in (found.value, found.error)]
                        lines.writerow([one.name, table, part.name, part.errors.cells, name, *numbers])
        return text.getvalue()

    def write(self, out: str | Path) -> None:
        """Write text, JSON and CSV into a new folder, with a note of who may see them. This is no release."""
        with appearing(Path(out), private=not self.generated) as folder:
            (folder / ("README.txt" if self.generated else CONFIDENTIAL)).write_text(self.note + "\n", encoding="utf-8")
            for name, text in (("txt", str(self)), ("json", self.to_json()), ("csv", self.to_csv())):
                (folder / f"study.{name}").write_text(text, encoding="utf-8")

    def pictures(self) -> tuple[Bars, ...]:
        """One picture: the mean absolute error of each table by contender, with what each promises."""
        bars = [
            Bar(f"{one.name}: {one.known.losses[0].shown}", whole.mean_absolute.value, table)
            for one in self.contenders
            for table in map(str, self.asked)
            if (whole := one.whole(table)) is not None
        ]
        if not bars:
            raise errors.nothing_to_draw(
                "no plan or swapper releases a table of this study", "Name tables that they release."
            )
        caption = (
            "After each name stands the bound on its privacy loss. Losses of different kinds, units or invariants "
        )
        caption += f"cannot be compared. {self.note}"
        picture = Bars(
            "study",
            "How far released tables are from the true ones",
            f"{self.words}; mean of {self.draws} draws",
            "mean absolute error of a cell",
            tuple(bars),
            caption,
            guarantee=guarantees_line(
                [one.name for one in self.contenders], [one.known.specification for one in self.contenders]
            ),
        )
        return (picture,)


def study(
    contenders: Mapping[str, Plan | Swapper],
    data: StudyData,
    *,
    tables: Sequence[Asked | Sequence[str]],
    draws: int = DRAWS,
    unique_on: Sequence[str] = (),
    seed: int | None = None,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> Study:
    """Draw every contender several times on the same data, and compare all tables with the true ones. Confidential.

    ``contenders`` are plans and simulated swappers by name. ``tables`` are lists of columns, of the main table unless
    an :class:`Asked` says otherwise. ``unique_on`` are columns of the main table: the records that are unique on them
    are followed. With a ``seed`` the study can be repeated, number by number, and each contender's numbers do not
    depend on the others; else randomness comes from ``source``, by default the operating system's.

    >>> from stirred.lab.study import generated, study
    >>> from stirred.lab.study.swappers import RecordSwap
    >>> data = generated("massachusetts-1940", scale=0.002)
    >>> swapper = RecordSwap(hierarchy=("county",), similar=(("household_size",),), k_anonymity=0)
    >>> found = study({"record swap": swapper}, data, tables=[["county", "tenure"]], draws=3, seed=1)
    >>> found["record swap"].whole("dwellings by county, tenure").cells
    28
    """
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise errors.study_parameter("draws", f"is {draws!r}", "give a whole number from 1 on")
    asked = tuple(one if isinstance(one, Asked) else Asked(tuple(one), data.main) for one in tables)
    for one in asked:
        if not one.by:
            raise errors.study_parameter("tables", "has a table without columns", "name the columns of each table")
        data.require(one.of, one.by)
    data.require(data.main, unique_on)
    if not contenders:
        raise errors.nothing_to_study()
    progress = progress or Silent()
    data = data.with_ids(_ids_of_linked(contenders))
    unique = _unique(data, unique_on)
    parts = [contender(name, one) for name, one in contenders.items()]
    named = {name for part in parts for name in part.moves}
    moving = (*(name for name in data.geography if name in named), *sorted(named - set(data.geography)))
    followed = _followed(unique_on, moving)
    known, drawn = {}, {}
    for number, part in enumerate(parts):

        def tell(done: int, name: str = part.name, before: int = number) -> None:
            share = (before + done / draws) / len(parts)
            progress.stage(f"drawing {name}: draw {min(done + 1, draws)} of {draws}", share)

        tell(0)
        try:
            known[part.name] = part.known(data)
            drawn[part.name] = _drawn(
                part, data, asked, draws, unique, followed, _source(seed, part.name, source), tell
            )
        except StirredError as problem:
            raise errors.study_part(part.name, problem) from None
    progress.stage("comparing tables")
    found = {one: _compared(data, one, drawn) for one in asked}
    return Study(
        words=data.words,
        generated=data.generated,
        records=data.records.height,
        unique=int(np.count_nonzero(unique)),
        unique_on=tuple(unique_on),
        moving=moving,
        draws=draws,
        asked=asked,
        contenders=tuple(
            Measured(
                name,
                known[name],
                drawn[name].changed,
                drawn[name].in_place if unique_on else None,
                {str(one): found[one][name] for one in asked if name in found[one]},
            )
            for name in contenders
        ),
    )


# -- helpers -------------------------------------------------------------------------------------------------

_LEAKAGE = {
    "determined": "determined by published counts",
    "unique": "alone in a published count",
    "guessed": "guessed by published counts",
}
_WORDS = {
    "mean_absolute": "mean absolute error",
    "root_mean_square": "root mean square error",
    "relative": "mean relative error",
    "systematic": "systematic error",
}


@dataclass(frozen=True, eq=False)
class _Draws:
    """The draws of one contender: counts of the tables asked for, and what moved."""

    counts: Mapping[Asked, list[pl.DataFrame]]
    changed: Estimate | None
    in_place: Estimate | None


def _source(seed: int | None, name: str, source: RandomSource | None) -> RandomSource:
    """The randomness of one contender: its own stream of the seed, whatever stands beside it."""
    if seed is None:
        return source or SystemSource()
    mixed = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return SeededSource(int.from_bytes(mixed[:15], "big"))


def _followed(unique_on: Sequence[str], moving: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in moving if name in unique_on) or tuple(moving)


def _listed(names: Sequence[str], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def _ids_of_linked(contenders: Mapping[str, Plan | Swapper]) -> Iterator[tuple[str, str]]:
    """What plans name as ids of their linked tables: the table, and the column."""
    for one in contenders.values():
        if isinstance(one, SwapPlan):
            for linked in one.linked:
                if linked.id is not None:
                    yield linked.name, linked.id


def _unique(data: StudyData, columns: Sequence[str]) -> Flags:
    if not columns:
        return np.zeros(data.records.height, dtype=np.bool_)
    return data.records.select(pl.struct(list(columns)).is_unique()).to_series().to_numpy()


def _drawn(
    one: Contender,
    data: StudyData,
    asked: Sequence[Asked],
    draws: int,
    unique: Flags,
    followed: Sequence[str],
    source: RandomSource,
    tell: Callable[[int], None],
) -> _Draws:
    counts: dict[Asked, list[pl.DataFrame]] = {table: [] for table in asked}
    changed: list[float] = []
    stayed: list[float] = []
    for number, made in enumerate(one.draws(data, draws, source)):
        tell(number)
        for table in asked:
            frame = made.tables.get(table.of)
            if frame is not None and set(table.by) <= set(frame.columns):
                counts[table].append(counted(frame, table.by))
        if made.changed:
            left = np.zeros(len(unique), dtype=np.bool_)
            for name in followed:
                left |= made.changed.get(name, False)
            changed.append(float(np.count_nonzero(np.logical_or.reduce(list(made.changed.values())))))
            stayed.append(float(np.count_nonzero(unique & ~left)) / max(1, int(np.count_nonzero(unique))))
    return _Draws(counts, *(over_draws(np.array(numbers)) if numbers else None for numbers in (changed, stayed)))


def _compared(data: StudyData, asked: Asked, drawn: Mapping[str, _Draws]) -> dict[str, tuple[Part, ...]]:
    """The errors of one table, by contender; who does not release it is left out."""
    truth = counted(data.tables[asked.of], asked.by)
    released = [frame for one in drawn.values() for frame in one.counts[asked]]
    cells = Cells.of(truth, released, asked.by, data.geography, data.tables.get(PLACES))
    found = {}
    for name, one in drawn.items():
        if frames := one.counts[asked]:
            error = np.stack([cells.error(frame) for frame in frames])
            found[name] = tuple(parts_of(error, cells.truth, cells.place, cells.places))
    return found


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _PAGE, initial_indent="  ", subsequent_indent="    ")


def _power(known: Known) -> str:
    return "no bound" if math.isinf(known.losses[0].value) else f"at most {100 * known.power:.1f}%"


def _shown(name: str, found: Estimate) -> str:
    return _share(found, 1) if name == "relative" else str(found)


def _share(found: Estimate | None, of: int) -> str:
    if found is None or math.isnan(found.value):
        return "-"
    return f"{Estimate(100 * found.value / of, 100 * found.error / of)}%"


def _sizes(contenders: Sequence[Measured], table: str) -> list[str]:
    """The ranges of true counts that a table has."""
    parts = next((one.tables[table] for one in contenders if table in one.tables), ())
    return [part.name for part in parts if part.name.startswith(BY_SIZE)]


def _bias(one: Measured, table: str, size: str) -> str:
    found = [part.errors.mean for part in one.tables.get(table, ()) if part.name == size]
    return str(found[0]) if found else "not released"


def _percent(known: Known, name: str) -> str:
    value = None if known.leakage is None else getattr(known.leakage, name)
    return "-" if value is None else f"{100 * value:.3g}%"


def _estimate(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {"value": found.value, "monte_carlo_error": None if math.isnan(found.error) else found.error}
