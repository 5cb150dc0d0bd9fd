"""Looks at the cells of a table to propose types, null values and columns with nulls: only where a user asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from stirred._shown import withheld
from stirred.tables.columns import Column
from stirred.tables.csv_files import typed
from stirred.tables.csv_style import CsvStyle
from stirred.tables.form import Form
from stirred.tables.inputs import TYPES, InputOptions, open_input
from stirred.tables.read import read_table
from stirred.tables.write import csv_cells

MARKERS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "NaN", "nan", ".")
"""How missing cells are written in practice."""
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Looked:
    """What was seen in the cells of a table."""

    null_values: tuple[str, ...]
    types: Mapping[str, str]
    """Types that change no cell's text; columns that stay text are left out."""
    nulls: tuple[str, ...]
    """The columns that have nulls."""
    columns: Mapping[str, Column]

    def options(self, form: Form) -> InputOptions:
        """How to read the file by what was seen."""
        return replace(form.options(), null_values=self.null_values, types=dict(self.types))


def look(table: str, path: Path, form: Form) -> Looked:
    """Read every cell of a table."""
    opened = open_input(table, path, form.options())
    columns = read_table(opened, list(opened.kinds)).table.columns
    if opened.format != "csv":
        empty = tuple(name for name, column in columns.items() if column.values.null_count)
        return Looked((), {}, empty, columns)
    seen = {text for column in columns.values() for text in column.texts()}
    markers = tuple(marker for marker in MARKERS if marker in seen)
    types: dict[str, str] = {}
    missing: list[str] = []
    for name, column in columns.items():
        texts = column.values
        named = pc.is_in(texts, value_set=pa.array([None, *markers], pa.string()))
        if pc.any(named).as_py():
            missing.append(name)
        if (kind := _type_of(texts.filter(pc.invert(named)), form)) is not None:
            types[name] = kind
    return Looked(markers, types, tuple(missing), columns)


def _type_of(texts: pa.Array, form: Form) -> str | None:
    """The type of whole or other numbers whose texts stay as they are; None for text."""
    if not len(texts):
        return None
    if all(_INTEGER.fullmatch(text) for text in texts.to_pylist()):
        return "integer"
    try:
        values = typed(texts, TYPES["number"], form.decimal or ".")
    except ValueError:
        return None
    same = pc.all(pc.equal(csv_cells(values, CsvStyle(decimal=form.decimal or ".")), texts)).as_py()
    return "number" if same and pc.all(pc.is_finite(values)).as_py() else None
