"""Compares released with true tables, before a draw and after it: expected and true errors, information loss.

Information loss is what statistical offices state: distances between cells before and after a swap. For a true cell x
and a released cell z: the absolute distance |z - x|, the relative one |z - x| / |x|, and that of square roots |sqrt z -
sqrt x|. Means and quantiles are over the cells that are not zero in the true table; cells that become zero are *false
zeros*, and cells that are zero and become something else *false non-zeros*, counted apart with what is in them. All are
given for a whole table and for every value of each swapped column that it has.

After drawing, distances are those of the cells. Before it, they are expected distances:

* absolute: the normal approximation, times sqrt(pi v/2) e^-v (I0(v) + I1(v)), which makes it right for cells that
  seldom change (v is the variance in steps: what one exchange changes). The factor is that of a difference of two
  Poisson counts, which is the law of a rarely changed cell. Exact where the cell can only grow, or only shrink;
* square roots: the *three-point approximation*: the cell stays, or goes up or down by s, such that E(z - x),
  E|z - x| and E(z - x)^2 are as above. Exact if one record at most comes or goes and the others are right;
* zeros: the approximation by independent moves (:mod:`stirred.swap.law.moments`).

Quantiles before drawing are quantiles over cells of their expected distance, and thus closer together than those after.

Keep in mind: rows of a release are sorted anew, so nothing here says which records moved, nor how many; nobody can know
that from the confidential file and the release.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import confidential
from stirred._lazy import later
from stirred._progress import stage
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import CustodianNote, Data
from stirred.swap.checking.forecast import ExpectedTable, Places, places_of
from stirred.swap.checking.revealing import Revealing, alone_in_a_margin, reveal_swap
from stirred.swap.data.counting import count_margins
from stirred.swap.data.dataset import Dataset, load
from stirred.swap.data.records import CountedTable, counted_table, number_cell, side_by_side
from stirred.swap.data.released_files import read_files
from stirred.swap.law.moments import expected_absolute_error
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import PublishedTable, table_names
from stirred.tables.groups import free_label
from stirred.tables.writing import write_table

special = later("scipy.special")

Floats = NDArray[np.float64]

PERCENTS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
"""The quantiles that are given; 50 is the median, 100 the largest."""
DISTANCES = ("absolute", "relative", "root")


@confidential
class LossBy:
    """Measures of a table for each value of a swapped column; ``variable`` is "" for the whole table. Confidential."""

    variable: str
    values: tuple[str | None, ...]
    measures: Mapping[str, Floats]
    """By name of the measure, a number for each value; nan where it is not defined or not forecast."""

    def fields(self, row: int) -> dict[str, float | None]:
        """The measures of one value, None for those that are not known."""
        return {name: None if np.isnan(part[row]) else float(part[row]) for name, part in self.measures.items()}


def expected_loss(table: ExpectedTable) -> tuple[LossBy, ...]:
    """The measures that are expected of a table before anything is drawn: as a whole, then by swapped columns."""
    bias = table.mean - table.true
    absolute = absolute_distance(bias, table.variance, table.step, table.one_way)
    # A sum of numbers of both signs may have a square root before and none after.
    root = np.full(len(bias), np.nan)
    if not table.signed:
        root = root_distance(table.true.astype(np.float64), bias, absolute, bias**2 + table.variance)
    empty = np.full(len(bias), np.nan) if table.empty is None else table.empty
    return _by_places(table.true.astype(np.float64), absolute, root, empty, table.places)


def loss_of(true: Floats, released: Floats, places: Sequence[Places]) -> tuple[LossBy, ...]:
    """The measures of a table after drawing: as a whole, then by swapped columns."""
    negative = bool(np.any(true < 0) or np.any(released < 0))
    root = np.full(len(true), np.nan) if negative else np.abs(np.sqrt(released) - np.sqrt(true))
    empty = (released == 0).astype(np.float64)
    return _by_places(true, np.abs(released - true), root, empty, places)


def absolute_distance(bias: Floats, variance: Floats, step: Floats, one_way: NDArray[np.bool_]) -> Floats:
    """The expected absolute distance of cells, from the mean error and the variance (an approximation).

    >>> seldom = absolute_distance(np.zeros(1), np.array([0.01]), np.ones(1), np.array([False]))
    >>> float(seldom[0].round(4))  # a hundredth of the cells changes, by one; plainly normal would be 0.0798
    0.01
    """
    v = variance / step**2
    seldom = np.sqrt(np.pi * v / 2) * (special.ive(0, v) + special.ive(1, v))
    size = np.abs(bias)
    found = np.maximum(expected_absolute_error(bias, variance) * np.minimum(seldom, 1.0), size)
    return np.where(one_way, size, np.minimum(found, np.sqrt(bias**2 + variance)))


def root_distance(true: Floats, bias: Floats, absolute: Floats, squared: Floats) -> Floats:
    """The expected distance of square roots by the three-point approximation.

    ``absolute`` and ``squared`` are the expected absolute and squared distances. With s their quotient, the cell goes
    up by s with probability (absolute + bias) / 2s and down by s with (absolute - bias) / 2s.
    """
    step = _quotient(squared, absolute, 0.0)
    up, down = (_quotient(absolute + sign * bias, 2 * step, 0.0) for sign in (1, -1))
    before = np.sqrt(true)
    found: Floats = up * (np.sqrt(true + step) - before) + down * (before - np.sqrt(np.maximum(true - step, 0.0)))
    return found


def _by_places(
    true: Floats, absolute: Floats, root: Floats, empty: Floats, places: Sequence[Places]
) -> tuple[LossBy, ...]:
    whole = Places("", ("",), np.zeros(len(true), dtype=np.uint8))
    return tuple(
        LossBy(one.variable, one.values, _measures(true, absolute, root, empty, one.codes, len(one.values)))
        for one in (whole, *places)
    )


def _measures(
    true: Floats, absolute: Floats, root: Floats, empty: Floats, ids: NDArray[np.unsignedinteger], count: int
) -> dict[str, Floats]:
    filled = true != 0

    def added(part: Floats, among: NDArray[np.bool_]) -> Floats:
        return np.bincount(ids[among], weights=part[among], minlength=count).astype(np.float64)

    cells = added(np.ones(len(true)), filled)
    wrong = added(1 - empty, ~filled)
    found = {
        "cells": cells,
        "false_zeros": added(empty, filled),
        "false_nonzeros": wrong,
        "in_false_nonzeros": added(absolute, ~filled),
    }
    inside = np.flatnonzero(filled)
    relative = absolute[inside] / np.abs(true[inside])
    for name, distance in zip(DISTANCES, (absolute[inside], relative, root[inside]), strict=True):
        total = np.bincount(ids[inside], weights=distance, minlength=count)
        found[f"{name}_mean"] = _quotient(total.astype(np.float64), cells)
        found |= {
            f"{name}_{percent}%": part
            for percent, part in zip(PERCENTS, _quantiles(distance, ids[inside], cells), strict=True)
        }
    for name, distance in (("absolute", absolute), ("root", root)):
        everywhere = added(distance, filled) + added(distance, ~filled)
        found[f"{name}_mean_with_false_nonzeros"] = _quotient(everywhere, cells + wrong)
    return found


def _quotient(total: Floats, many: Floats, otherwise: float = np.nan) -> Floats:
    found: Floats = np.divide(total, many, out=np.full(len(many), otherwise), where=many != 0)
    return found


def _quantiles(distance: Floats, ids: NDArray[np.unsignedinteger], cells: Floats) -> list[Floats]:
    """By group: the smallest distance that so many percent of its cells do not exceed."""
    ordered = distance[np.lexsort([distance, ids])]
    many = cells.astype(np.int64)
    start = np.cumsum(many) - many
    found = []
    for percent in PERCENTS:
        rank = np.maximum(-(-many * percent // 100), 1) - 1
        at = np.minimum(start + rank, max(len(ordered) - 1, 0))
        found.append(np.where(many > 0, ordered[at], np.nan) if len(ordered) else np.full(len(many), np.nan))
    return found


def write_comparison(folder: Path, plan: SwapPlan, true: Dataset, released: Dataset) -> None:
    """Write true and released numbers of every published table, their errors and the information loss.

    ``errors.csv`` has the mean absolute percentage error of each table, ``information_loss.csv`` all distances for
    each table as a whole and for every value of each swapped column that it has.
    """
    errors, asked = ["table,cells,mape"], plan.published_tables
    lines: list[list[object]] = []
    for one, name in zip(asked, table_names(asked), strict=True):
        both, theirs = side_by_side(counted_table(true, one), counted_table(released, one))
        labels = [free_label(f"{which}_{one.label}", one.by) for which in ("true", "released")]
        numbers = [number_cell(label, part) for label, part in zip(labels, (both.numbers, theirs), strict=True)]
        write_table(folder / "tables" / f"{name}.csv", "csv", [[*both.named(), *numbers]])
        columns = [column.with_codes(codes) for column, codes in zip(both.columns, both.codes, strict=True)]
        roles = ["swap" if true.of_record(one, column) in plan.swap else "" for column in one.by]
        found = loss_of(both.numbers.floats(), theirs.floats(), places_of(columns, roles))
        lines += [] if lines else [["table", "variable", "value", *found[0].measures]]
        lines += _rows(name, found)
        errors.append(f"{name},{len(both.codes[0])},{found[0].measures['relative_mean'][0]:.6f}")
    (folder / "errors.csv").write_text("\n".join(errors) + "\n", encoding="utf-8")
    if lines:
        with (folder / "information_loss.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)


def _rows(table: str, found: Sequence[LossBy]) -> list[list[object]]:
    return [
        [table, one.variable, "" if value is None else value, *(_shown(part[row]) for part in one.measures.values())]
        for one in found
        for row, value in enumerate(one.values)
    ]


def _shown(number: np.float64) -> str:
    return "" if np.isnan(number) else f"{number:.9g}"


_MOST_TABLES = 5
"""Tables that are compared where the plan publishes none."""


def for_custodian(release: ReleaseFolder, plan: SwapPlan, data: Data | None) -> Iterator[CustodianNote]:
    """Errors of the published tables, or of swapped by held columns where there are none; then what is revealed."""
    stage("reading")
    dataset = load(plan, data)
    stage("comparing with the true values")
    stated = [entry.get("sha256") for entry in release.certificate["invariants"]]
    for counted in count_margins(dataset).counted:
        if counted.margin.sha256 not in stated:
            raise errors.appendix_other_data(str(counted.margin))
    yield _errors(release, plan, dataset)
    stage("counting what the invariants reveal")
    yield from _revealed(reveal_swap(dataset), alone_in_a_margin(dataset))


def _errors(release: ReleaseFolder, plan: SwapPlan, dataset: Dataset) -> CustodianNote:
    released = read_files(release, plan).data
    asked = plan.published_tables or tuple(
        PublishedTable(by=(plan.swap[0], name)) for name in dataset.held[:_MOST_TABLES]
    )
    rows = [_row(one, counted_table(dataset, one), counted_table(released, one)) for one in asked]
    words = (
        "Counted from the released rows as they stand, against the confidential file. The relative error is a mean "
        "over cells that are not 0 in truth. The corrected estimates of stirred estimate are not compared here."
    )
    head = ("table", "cells", "cells that differ", "mean absolute error", "largest error", "mean relative error")
    return CustodianNote("errors", words, (head, *rows))


def _row(asked: PublishedTable, true: CountedTable, released: CountedTable) -> tuple[str, ...]:
    mine, theirs = _by_cell(true), _by_cell(released)
    cells = list(dict.fromkeys([*mine, *theirs]))
    before = np.array([mine.get(cell, 0.0) for cell in cells])
    error = np.abs(np.array([theirs.get(cell, 0.0) for cell in cells]) - before)
    some = before != 0
    relative = float((error[some] / np.abs(before[some])).mean()) if some.any() else 0.0
    return (
        asked.words, f"{len(cells):,}", f"{int(np.count_nonzero(error)):,}",
        f"{error.sum() / max(len(error), 1):,.4g}", f"{error.max(initial=0.0):,.6g}", f"{100 * relative:.3g}%",
    )  # fmt: skip


def _by_cell(table: CountedTable) -> dict[tuple[str | None, ...], float]:
    """The numbers of a table by the texts of its values: two files number their values each in their own way."""
    texts = [column.texts() for column in table.columns]
    labels = zip(*([text[code] for code in codes] for text, codes in zip(texts, table.codes, strict=True)), strict=True)
    return dict(zip(labels, table.numbers.floats().tolist(), strict=True))


def _revealed(found: Revealing, alone: int) -> Iterator[CustodianNote]:
    counts = found.counts
    words = (
        "What the published counts show by themselves, at any rate of swapping. It is no part of epsilon, and whoever "
        "has the release can compute it too."
    )
    rows = [
        ("shown as they are: only one table has these counts", counts.determined_records),
        ("must lie in a certain combination of held and swapped values", counts.pinned_records),
        ("swapped values guessed rightly by naming the commonest of the stratum", counts.guessed),
        ("only record of some published count", alone),
        ("unique on match and held values", found.levels[0].alone),
    ]
    table = tuple((name, f"{many:,}", f"{100 * many / counts.records:.1f}%") for name, many in rows)
    yield CustodianNote("revealed", words, (("records", "number", "of all records"), *table))
    if found.beliefs is None:
        return
    laws = {
        "hypergeometric": "every assignment of swapped values is equally likely",
        "uniform": "every table is equally likely",
    }
    believed = tuple(
        (laws.get(one.law, one.law), f"{100 * one.guessed_share:.1f}%", f"{100 * one.whole_share:.2f}%")
        for one in found.beliefs.laws
    )
    if believed:
        head = ("if", "swapped values guessed rightly", "records whose whole group has one swapped value")
        yield CustodianNote("revealed", "An attacker who knows these counts and nothing else.", (head, *believed))
