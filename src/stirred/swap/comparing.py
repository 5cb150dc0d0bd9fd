"""Published tables beside the true ones, and the information loss of this draw. Confidential."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stirred.swap.counted_tables import counted_table, number_cell, side_by_side
from stirred.swap.expectation import places_of
from stirred.swap.information_loss import LossBy, loss_of
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import table_names
from stirred.swap.sources import Source
from stirred.tables.groups import free_label
from stirred.tables.writing import write_table


def write_comparison(folder: Path, plan: SwapPlan, true: Source, released: Source) -> None:
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
        swapped = [true.of_record(one, column) in plan.swap for column in one.by]
        found = loss_of(both.numbers.floats(), theirs.floats(), places_of(columns, swapped))
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
