"""Opens a release folder as its recipient does, and reads its tables with the types that its dictionary states.

The folder may come from somebody who wants to deceive: nothing outside it is opened, and no table is read that has
more rows than its file makes likely.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred._bounded_reading import Unacceptable, inside, is_file, plain
from stirred._progress import stage
from stirred.releases.folder import documents
from stirred.releases.folder.atomic import is_unfinished
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import WITHDRAWN, read_manifest, readable
from stirred.spec import Specification
from stirred.spec.specification import from_fields
from stirred.tables import Input, InputOptions, Table, open_input
from stirred.tables.columns import recast, type_named
from stirred.tables.groups import cells
from stirred.tables.labelled_files import Labels
from stirred.tables.reading.table_reader import ReadTable, read_table
from stirred.tables.writing import EXTENSIONS, USUAL, CsvStyle

MOST_VALUES = 500_000_000
"""Values (rows times columns) that are read of any table,"""
VALUES_PER_BYTE = 64
"""and in addition of each byte of its file, unless the recipient allows more rows."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseFolder:
    """An opened release: its documents, and its tables read on demand."""

    path: Path
    certificate: dict[str, Any]
    dictionary: dict[str, dict[str, Any]]
    most_rows: int | None = None
    """How many rows a table may have; by default a number that follows from the size of its file."""

    def __repr__(self) -> str:
        return f"<ReleaseFolder {self.path}: {self.mechanism}, tables {', '.join(self.dictionary)}>"

    @classmethod
    def open(cls, path: str | Path, most_rows: int | None = None) -> ReleaseFolder:
        """Open a release folder and read its documents; raises if it is not a complete release."""
        path = Path(path)
        if path.is_file():
            raise errors.not_a_release(path, "it is a file", "Name the folder of the release, not a file in it.")
        if not path.is_dir():
            raise errors.not_a_release(path, "there is no such folder")
        if is_unfinished(path):
            raise errors.not_a_release(path, "the run that was writing it did not finish")
        if is_file(path / WITHDRAWN) and not os.path.lexists(path / MANIFEST):
            reason = f"its release was withdrawn, and {WITHDRAWN} was left in its place"
            raise errors.not_a_release(path, reason, f"Read {WITHDRAWN}: it says when and why.")
        read_manifest(path)
        certificate = documents.read_json(path, documents.CERTIFICATE, "stirred_certificate")
        if not all(isinstance(certificate.get(name), dict) for name in ("plan", "specification", "versions")):
            raise errors.not_a_release(path, f"it has no readable {documents.CERTIFICATE}")
        return cls(path, certificate, described_tables(path), most_rows)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, from the certificate."""
        plan = self.certificate.get("plan")
        return str(plan.get("mechanism")) if isinstance(plan, dict) else ""

    @property
    def specification(self) -> Specification:
        """The guarantee that the certificate states."""
        return from_fields(self.certificate["specification"])

    @property
    def by_this_version(self) -> bool:
        """Whether this version of the software wrote the release, so that its texts can be compared too."""
        return bool(self.certificate["versions"].get("stirred") == version("stirred"))

    def is_by_version_before(self, *numbers: int) -> bool:
        """Whether the release says that a version before this one wrote it."""
        stated = re.match(r"([0-9]+)\.([0-9]+)", str(self.certificate["versions"].get("stirred")))
        return stated is not None and tuple(map(int, stated.groups())) < numbers

    @property
    def by_these_programs(self) -> bool:
        """Whether the very programs wrote the release that run now, so that its files can be compared byte for byte."""
        stated = self.certificate["versions"]
        return self.by_this_version and all(stated.get(name) == version(name) for name in ("pyarrow", "polars"))

    @property
    def for_release(self) -> bool:
        """False if the release is marked as drawn from a repeatable source."""
        return not self.specification.marks

    def states(self, rebuilt: Specification) -> bool:
        """Whether the certificate states this specification.

        A certificate of this version of the software must state it word for word. One of another version must agree in
        everything but wording: the five blocks, nearest distance, facts, marks, and which findings there are.
        """
        if self.by_this_version:
            return bool(json.loads(rebuilt.to_json()) == self.certificate["specification"])
        return _meaning(rebuilt) == _meaning(self.specification)

    def require_table(self, name: str | None) -> str:
        """The name of a released table, by default the first; raises if there is no such table."""
        known = list(self.dictionary)
        if name is not None and name not in known:
            raise errors.unknown_table(name, known)
        return known[0] if name is None else name

    def with_role(self, table: str, *roles: str) -> list[str]:
        """The columns of a table that have one of these roles."""
        return [name for name, fields in self.columns(table).items() if fields["role"] in roles]

    def columns(self, table: str) -> dict[str, dict[str, Any]]:
        """The columns of a table with their fields in the data dictionary."""
        return {column["name"]: column for column in self.dictionary[table]["columns"]}

    def read(self, name: str, wanted: Sequence[str] | None = None) -> ReadTable:
        """Read all or some columns of a released table, with the types in the data dictionary."""
        entry, described = self.dictionary[name], self.columns(name)
        opened = self.open_table(name)
        columns = list(described) if wanted is None else list(wanted)
        missing = [column for column in columns if column not in opened.kinds]
        if missing:
            raise errors.missing_columns(name, missing)
        numbered = [column for column in columns if described[column]["role"] in ("id", "link")]
        if any(not pa.types.is_integer(opened.kinds[column]) for column in numbered):
            raise errors.not_a_release(self.path, f"the ids of table {plain(name, 60)} are not whole numbers")
        found = read_table(
            opened, [column for column in columns if column not in numbered], numbered,
            told=partial(stage, f"reading {plain(name, 60)}"),
        )  # fmt: skip
        if entry["format"] != "csv":
            return found
        decimal = self.style(name).decimal
        typed = {
            column: recast(encoded, type_named(described[column]["type"]), decimal)
            for column, encoded in found.table.columns.items()
        }
        return replace(found, table=Table(name, found.table.rows, typed))

    def style(self, name: str) -> CsvStyle:
        """How the CSV file of a table is written, as the data dictionary states it."""
        if self.dictionary[name]["format"] != "csv":
            return USUAL
        with readable(self.path, documents.DICTIONARY):
            return CsvStyle.from_fields(self.dictionary[name].get("csv"))

    def labels(self, name: str) -> Labels | None:
        """The labels that the data dictionary states for a second file of a table; None if there is none."""
        stated = self.dictionary[name].get("labelled")
        with readable(self.path, documents.DICTIONARY):
            return None if stated is None else Labels.from_fields(stated)

    def open_table(self, name: str) -> Input:
        """Open the file of a released table, without reading its rows."""
        entry = self.dictionary[name]
        types = {column: "integer" for column, fields in self.columns(name).items() if fields["role"] in ("id", "link")}
        options = InputOptions(format=entry["format"])
        if entry["format"] == "csv":
            style = self.style(name)
            options = InputOptions(
                format="csv",
                types=types,
                null_values=(style.null,) if style.null else (),
                delimiter=style.delimiter,
                decimal=style.decimal,
                header=True,
            )
        if entry["file"] != name + EXTENSIONS[entry["format"]]:
            raise errors.not_a_release(self.path, "its data dictionary names a file that is not its own")
        try:
            path = inside(self.path, entry["file"])
        except Unacceptable as problem:
            raise errors.not_a_release(
                self.path, f"its file {plain(entry['file'])} cannot be read: {problem}"
            ) from None
        self._require_bounded(name, path)
        return open_input(name, path, options, most_rows=entry["rows"])

    def _require_bounded(self, name: str, path: Path) -> None:
        """Raise, before any row is read, if a table states more rows than may be read.

        A few megabytes can hold a billion equal rows.
        """
        rows, columns = self.dictionary[name]["rows"], max(1, len(self.dictionary[name]["columns"]))
        most = self.most_rows
        if most is None:
            most = (MOST_VALUES + VALUES_PER_BYTE * path.stat().st_size) // columns
        if rows > most:
            raise errors.OutputError(
                "too-many-rows-stated",
                f"Table '{name}' of the release has {rows:,} rows, and at most {most:,} are read of a file of its "
                "size.",
                f"If you trust its publisher and have the memory, allow them with --most-rows {rows}.",
            )


def described_tables(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a release by name, as its data dictionary describes them."""
    tables = documents.read_json(path, documents.DICTIONARY, "stirred_data_dictionary").get("tables")
    if not isinstance(tables, list) or not tables or not all(_describes_a_table(table) for table in tables):
        raise errors.not_a_release(path, f"it has no readable {documents.DICTIONARY}")
    by_name = {table["name"]: table for table in tables}
    if len(by_name) < len(tables):
        raise errors.not_a_release(path, f"its {documents.DICTIONARY} names a table twice")
    return by_name


def _describes_a_table(table: Any) -> bool:
    """Whether an entry of a data dictionary has the fields that reading the table needs."""
    return (
        isinstance(table, dict)
        and all(isinstance(table.get(key), str) for key in ("name", "file", "format"))
        and table["format"] in EXTENSIONS
        and isinstance(table.get("rows"), int)
        and table["rows"] >= 0
        and isinstance(table.get("columns"), list)
        and all(
            isinstance(column, dict) and all(isinstance(column.get(key), str) for key in ("name", "role", "type"))
            for column in table["columns"]
        )
    )


def _meaning(stated: Specification) -> tuple[object, ...]:
    findings = [finding.id for finding in stated.findings]
    named = (stated.name, stated.covers)
    return (stated, stated.nearest, stated.facts, stated.marks, findings, named)


def tabulate_rows(
    release: ReleaseFolder,
    by: Sequence[str],
    table: str,
    columns: Sequence[str],
    joined: Callable[[Sequence[str]], Table] | None = None,
    more: Sequence[str] = (),
) -> pa.Table:
    """Counts of a released table's rows by some of ``columns``.

    ``more`` are columns that rows have only through another table; ``joined`` reads wanted columns of both kinds.
    """
    if unknown := [name for name in by if name not in (*columns, *more)]:
        raise errors.unknown_table_column(unknown, [*columns, *more])
    source = joined(by) if joined is not None and not set(by) <= set(columns) else release.read(table, by).table
    counted = cells(source.pick(by), source.rows)
    decoded = [source[name].decode(codes) for name, codes in zip(by, counted.codes, strict=True)]
    return pa.table([*decoded, pa.array(counted.counts.astype(np.int64))], names=[*by, counted.label])
