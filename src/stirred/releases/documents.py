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
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stirred import _received as received
from stirred import errors
from stirred.invariants import Margin
from stirred.noise import RandomSource
from stirred.releases.plans import Plan
from stirred.spec import Specification
from stirred.tables import Table
from stirred.tables.csv_style import USUAL, CsvStyle
from stirred.tables.labelled_files import Labels

CERTIFICATE = "certificate.json"
DICTIONARY = "data_dictionary.json"
SPECIFICATION = "specification.json"
README = "README.txt"
REPORT = "report.html"
"""The page for people, where the release was made with a writer of it (``document_writer.py``)."""
FORM = 1
SYSTEM_RANDOMNESS = "the operating system's generator"
SEEDED_RANDOMNESS = "a seeded source: not for release"
PROGRAMS = ("stirred", "numpy", "numba", "pyarrow", "polars")
"""Programs whose versions a certificate states, beside Python's."""
_LISTED_VALUES = 200
_LISTED_CHARACTERS = 20_000


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
    style: CsvStyle = USUAL
    """How a CSV file is written."""
    labels: Labels | None = None
    """The labels in a second file of the same rows, for Stata, SPSS or SAS."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate states: what was done, under which guarantee, from which draw.

    ``margins`` are the counted invariants; ``more`` are further fields of one mechanism.
    """

    plan: Plan
    specification: Specification
    margins: Sequence[Margin]
    for_release: bool
    nonce: str | None
    """The identity of the draw: random, the same in every release made from it. Earlier versions had none."""
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_fields(self) -> dict[str, Any]:
        """Everything but the day and the versions of the programs."""
        return {
            "stirred_certificate": FORM,
            **({} if self.nonce is None else {"nonce": self.nonce}),
            "plan": self.plan.published(),
            "plan_sha256": self.plan.hash(),
            "specification": json.loads(self.specification.to_json()),
            "conversions": [self.specification.budget.conversion],
            "randomness": SYSTEM_RANDOMNESS if self.for_release else SEEDED_RANDOMNESS,
            "invariants": [margin.to_fields() for margin in self.margins if not margin.linked],
            "whole_records": next((margin.to_fields() for margin in self.margins if margin.linked), None),
            **self.more,
        }

    def text(self, made: Mapping[str, Any] | None = None) -> str:
        """The text of ``certificate.json``; ``made`` states when and by which programs, by default now and these."""
        if made is None:
            made = {
                "released_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "versions": {"python": platform.python_version()} | {name: version(name) for name in PROGRAMS},
            }
        return _json({**self.to_fields(), **made})


def draw_nonce(source: RandomSource) -> str:
    """A new identity for a draw: 32 hexadecimal digits."""
    return source.take(16).hex()


def write_documents(folder: Path, specification: Specification, tables: Sequence[ReleasedTable], readme: str) -> None:
    """Write the specification, the data dictionary and the README of a release."""
    (folder / SPECIFICATION).write_text(specification.to_json(), encoding="utf-8")
    (folder / DICTIONARY).write_text(dictionary_text(tables), encoding="utf-8")
    (folder / README).write_text(readme, encoding="utf-8")


def require_readable(folder: Path, certificate: str) -> None:
    """Raise if a recipient could not read the documents of a release that is about to be published."""
    try:
        read_json(folder, DICTIONARY, "stirred_data_dictionary")
        read_specification(folder)
        received.parse_json(certificate)
        large = len(certificate.encode()) > received.MOST_BYTES
    except (errors.StirredError, ValueError) as problem:
        raise errors.unreadable_release(str(problem)) from None
    if large:
        raise errors.unreadable_release(f"its certificate would have more than {received.MOST_BYTES:,} bytes")


def dictionary_text(tables: Sequence[ReleasedTable]) -> str:
    """The text of ``data_dictionary.json``."""
    return _json(dictionary_fields(tables))


def dictionary_fields(tables: Sequence[ReleasedTable]) -> dict[str, Any]:
    """The data dictionary: each column of each table, with its role, its type and (where few) its values."""
    return {"stirred_data_dictionary": FORM, "tables": [_table_fields(table) for table in tables]}


def as_read(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they come back from a document that was written with them."""
    return dict(json.loads(_json(fields)))


def read_json(folder: Path, name: str, form: str) -> dict[str, Any]:
    """The fields of a JSON document of a release; ``form`` is the key that holds its format version."""
    try:
        fields = received.read_json(received.inside(folder, name))
        known = fields[form] == FORM and not isinstance(fields[form], bool)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        if received.is_of_machine(problem):
            raise
        raise errors.not_a_release(folder, f"it has no readable {name}") from None
    if not known:
        raise errors.not_a_release(folder, f"this version does not know the format of its {name}")
    return dict(fields)


def read_specification(folder: Path) -> Specification:
    """The guarantee that a release states."""
    try:
        text = received.read_text(received.inside(folder, SPECIFICATION))
    except (OSError, ValueError) as problem:
        if received.is_of_machine(problem):
            raise
        raise errors.not_a_release(folder, f"it has no readable {SPECIFICATION}") from None
    return Specification.from_json(text)


def _table_fields(table: ReleasedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "file": table.file,
        "format": table.format,
        **({} if table.style == USUAL else {"csv": table.style.to_fields()}),
        **({} if table.labels is None else {"labelled": table.labels.to_fields()}),
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
        texts = column.texts()
        if sum(len(text or "") for text in texts) <= _LISTED_CHARACTERS:
            fields["listed"] = texts
    if column.is_categorical_in(table.format):
        fields["categories"] = column.stated_categories()
    return fields


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False, default=_plain, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} has no place in a document")
