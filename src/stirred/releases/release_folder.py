"""Reads a release folder as its recipient does, and verifies what all mechanisms have in common.

Verification uses nothing but the folder: the manifest's checksums, the plan and the specification against the
certificate, and then whatever the mechanism recounts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred.releases import documents
from stirred.releases.folder import is_unfinished
from stirred.releases.manifest import differences, read_manifest
from stirred.spec import Specification
from stirred.spec.json_format import from_fields
from stirred.tables import Input, InputOptions, Table, open_input
from stirred.tables.columns import recast, type_named
from stirred.tables.groups import cells
from stirred.tables.read import ReadTable, read_table
from stirred.tables.write import EXTENSIONS


@dataclass(frozen=True)
class Verdict:
    """One thing that was verified, and whether it holds."""

    holds: bool
    words: str


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseFolder:
    """An opened release: its documents, and its tables read on demand."""

    path: Path
    certificate: dict[str, Any]
    dictionary: dict[str, dict[str, Any]]

    def __repr__(self) -> str:
        return f"<ReleaseFolder {self.path}: {self.mechanism}, tables {', '.join(self.dictionary)}>"

    @classmethod
    def open(cls, path: str | Path) -> ReleaseFolder:
        """Open a release folder and read its documents; raises if it is not a complete release."""
        path = Path(path)
        if not path.is_dir():
            raise errors.not_a_release(path, "there is no such folder")
        if is_unfinished(path):
            raise errors.not_a_release(path, "the run that was writing it did not finish")
        read_manifest(path)
        certificate = documents.read_json(path, documents.CERTIFICATE, "stirred_certificate")
        described = documents.read_json(path, documents.DICTIONARY, "stirred_data_dictionary")
        return cls(path, certificate, {table["name"]: table for table in described["tables"]})

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, from the certificate."""
        plan = self.certificate.get("plan")
        return str(plan.get("mechanism")) if isinstance(plan, dict) else ""

    @property
    def specification(self) -> Specification:
        """The guarantee that the certificate states."""
        return from_fields(self.certificate["specification"])

    def states(self, rebuilt: Specification) -> bool:
        """Whether the certificate states this specification.

        A certificate of this version of the software must state it word for word. One of another version must agree in
        everything but wording: the five blocks, nearest distance, facts, marks, and which findings there are.
        """
        if self.certificate["versions"]["stirred"] == version("stirred"):
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
        found = read_table(opened, [column for column in columns if column not in numbered], numbered)
        if entry["format"] != "csv":
            return found
        typed = {
            column: recast(encoded, type_named(described[column]["type"]))
            for column, encoded in found.table.columns.items()
        }
        return replace(found, table=Table(name, found.table.rows, typed))

    def open_table(self, name: str) -> Input:
        """Open the file of a released table, without reading its rows."""
        entry = self.dictionary[name]
        types = {column: "integer" for column, fields in self.columns(name).items() if fields["role"] in ("id", "link")}
        options = InputOptions(format=entry["format"], types=types if entry["format"] == "csv" else {})
        if entry["file"] != name + EXTENSIONS[entry["format"]]:
            raise errors.not_a_release(self.path, "its data dictionary names a file that is not its own")
        return open_input(name, self.path / entry["file"], options)


def _meaning(stated: Specification) -> tuple[object, ...]:
    return (stated, stated.nearest, stated.facts, [finding.id for finding in stated.findings])


def verify_with(release: ReleaseFolder, recount: Callable[[ReleaseFolder], list[Verdict]]) -> list[Verdict]:
    """Check manifest and documents, then run ``recount``. Contradictions are verdicts that fail, not exceptions."""
    found = differences(release.path, read_manifest(release.path))
    verdicts = [Verdict(not found, "the files are those of the manifest" if not found else "; ".join(found))]
    if found:
        return verdicts
    try:
        return verdicts + _documents_agree(release) + recount(release)
    except errors.StirredError as problem:
        reason = str(problem)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OSError):
        reason = "its documents contradict its tables, or each other"
    return [*verdicts, Verdict(False, f"the tables can be read and recounted: {reason}")]


def _documents_agree(release: ReleaseFolder) -> list[Verdict]:
    plan = release.certificate["plan"]
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    stated = documents.read_specification(release.path)
    same = json.loads(stated.to_json()) == release.certificate["specification"]
    return [
        Verdict(digest == release.certificate["plan_sha256"], "the plan has the hash in the certificate"),
        Verdict(same, "the specification is that of the certificate"),
    ]


def shape_verdicts(release: ReleaseFolder, name: str, rows: int) -> list[Verdict]:
    """Whether a table has the columns and the number of rows that the data dictionary states."""
    entry = release.dictionary[name]
    expected = [column["name"] for column in entry["columns"]]
    return [
        Verdict(list(release.open_table(name).kinds) == expected, f"{name} has the columns of the data dictionary"),
        Verdict(rows == entry["rows"], f"{name} has {entry['rows']:,} rows"),
    ]


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
