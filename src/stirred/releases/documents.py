"""Writes certificate, specification and data dictionary of a release, and reads them again.

They repeat the published plan, the guarantee and facts about the released tables. They contain nothing of the input
except what the mechanism releases and the declared invariants: no paths, no file times, no timings, no number of
moved records.
"""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stirred import errors
from stirred.invariants import Margin
from stirred.releases.plans import Plan
from stirred.spec import Specification
from stirred.tables import Table

CERTIFICATE = "certificate.json"
DICTIONARY = "data_dictionary.json"
SPECIFICATION = "specification.json"
README = "README.txt"
FORM = 1
SYSTEM_RANDOMNESS = "the operating system's generator"
SEEDED_RANDOMNESS = "a seeded source: not for release"
_LISTED_VALUES = 200


@dataclass(frozen=True)
class ReleasedTable:
    """What the data dictionary says about one table."""

    name: str
    file: str
    format: str
    rows: int
    order: str
    columns: tuple[tuple[str, str], ...]
    """(name, role) in the order of the file."""
    encoded: Table
    """The released columns, for their types and values; new ids are not among them."""


def write_certificate(
    folder: Path,
    plan: Plan,
    specification: Specification,
    margins: Sequence[Margin],
    for_release: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write ``certificate.json`` and ``specification.json``: what was done, under which guarantee, by which programs.

    ``margins`` are the counted invariants; ``more`` are further fields of one mechanism.
    """
    _write_json(
        folder / CERTIFICATE,
        {
            "stirred_certificate": FORM,
            "released_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("stirred", "numpy", "numba", "pyarrow", "polars")},
            "plan": plan.published(),
            "plan_sha256": plan.hash(),
            "specification": json.loads(specification.to_json()),
            "conversions": [specification.budget.conversion],
            "randomness": SYSTEM_RANDOMNESS if for_release else SEEDED_RANDOMNESS,
            "invariants": [margin.to_fields() for margin in margins if not margin.linked],
            "whole_records": next((margin.to_fields() for margin in margins if margin.linked), None),
            **(more or {}),
        },
    )
    (folder / SPECIFICATION).write_text(specification.to_json(), encoding="utf-8")


def write_dictionary(folder: Path, tables: Sequence[ReleasedTable]) -> None:
    """Write ``data_dictionary.json``: each column of each table, with its role, its type and (where few) its values."""
    _write_json(
        folder / DICTIONARY,
        {"stirred_data_dictionary": FORM, "tables": [_table_fields(table) for table in tables]},
    )


def read_json(folder: Path, name: str, form: str) -> dict[str, Any]:
    """The fields of a JSON document of a release; ``form`` is the key that holds its format version."""
    try:
        fields = json.loads((folder / name).read_text(encoding="utf-8"))
        known = fields[form] == FORM
    except (OSError, ValueError, KeyError, TypeError):
        raise errors.not_a_release(folder, f"it has no readable {name}") from None
    if not known:
        raise errors.not_a_release(folder, f"this version does not know the format of its {name}")
    return dict(fields)


def read_specification(folder: Path) -> Specification:
    """The guarantee that a release states."""
    try:
        text = (folder / SPECIFICATION).read_bytes()
    except OSError:
        raise errors.not_a_release(folder, f"it has no readable {SPECIFICATION}") from None
    return Specification.from_json(text)


def _table_fields(table: ReleasedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "file": table.file,
        "format": table.format,
        "rows": table.rows,
        "order": table.order,
        "columns": [_column_fields(table, name, role) for name, role in table.columns],
    }


def _column_fields(table: ReleasedTable, name: str, role: str) -> dict[str, Any]:
    if role == "id":
        return {
            "name": name,
            "role": role,
            "type": "int64",
            "note": "new: the number of the row, from 1 on",
        }
    if role == "link":
        return {
            "name": name,
            "role": role,
            "type": "int64",
            "note": "new: the id of the record a row belongs to",
        }
    column = table.encoded[name]
    fields: dict[str, Any] = {
        "name": name,
        "role": role,
        "type": str(column.type),
        "values": column.cardinality,
    }
    if column.cardinality <= _LISTED_VALUES:
        fields["listed"] = column.texts()
    return fields


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    path.write_text(
        json.dumps(fields, indent=2, ensure_ascii=False, default=_plain, allow_nan=False) + "\n", encoding="utf-8"
    )


def _plain(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} has no place in a document")
