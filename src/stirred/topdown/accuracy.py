"""Computes the errors of a release against the true counts. All of it is confidential."""

from __future__ import annotations

import csv
import math
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from stirred.releases.folder.atomic import CONFIDENTIAL
from stirred.topdown.counting import Counted, marginal_by
from stirred.topdown.measuring import parts

NOTE = """\
CONFIDENTIAL. These errors compare the release with the data themselves. They are not covered by the guarantee: do not
publish them, and do not choose among several draws by them.
"""


@dataclass(frozen=True)
class Accuracy:
    """The errors of one query at one level, over all units and cells."""

    table: str
    level: str
    query: str
    cells: int
    mean_absolute_error: float
    root_mean_square_error: float
    largest_error: int
    noise_of_the_measurement: float
    """Standard error of each cell as measured, before the fit."""


def compare(released: Counted, truth: Counted) -> list[Accuracy]:
    """Errors of every measured query at every level."""
    plan, spine = released.plan, released.spine
    found = []
    for table in plan.released:
        schema = table.schema_of
        for number, level in enumerate(spine.levels):
            true = truth.histograms(table.name, number)
            fitted = released.histograms(table.name, number)
            for query in table.queries:
                cells = schema.number_of_groups(query.by)
                absolute, squared, largest = 0, 0, 0
                for units in parts(spine.units(number), cells):
                    chosen = np.arange(units.start, units.stop)
                    error = np.abs(
                        marginal_by(fitted.of_units(chosen), schema, query.by)
                        - marginal_by(true.of_units(chosen), schema, query.by)
                    )
                    absolute += int(error.sum())
                    squared += int((error * error).sum())
                    largest = max(largest, int(error.max(initial=0)))
                many = spine.units(number) * cells
                variance = table.variance_of(level, query, plan.one_place(level))
                found.append(
                    Accuracy(
                        table.name, level, query.name, many, absolute / many, math.sqrt(squared / many), largest,
                        math.inf if variance is None else math.sqrt(variance),
                    )
                )  # fmt: skip
    return found


def write_accuracy(folder: Path, errors: list[Accuracy]) -> None:
    """Write ``errors.csv``, and a note that it is confidential."""
    (folder / CONFIDENTIAL).write_text(NOTE, encoding="utf-8")
    with (folder / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(field.name for field in fields(Accuracy))
        for row in errors:
            lines.writerow(f"{one:.6g}" if isinstance(one, float) else one for one in astuple(row))
