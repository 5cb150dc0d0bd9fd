"""Writes Stata, SPSS and SAS transport files with the labels of their input, and compares a stranger's with them.

The times that these formats keep in their headers are replaced by a fixed one, so that the same rows and labels give
the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess  # nosec B404 # runs this Python on a fixed program, see below
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from stirred import errors
from stirred.tables import labelled_reader

SUFFIXES = {"stata": ".dta", "spss": ".sav", "sas": ".xpt"}
TITLES = {"stata": "Stata", "spss": "SPSS", "sas": "SAS transport"}
_TIMES: Mapping[str, tuple[tuple[int, ...], bytes, bytes]] = {
    "spss": ((92,), rb"\d\d \w{3} \d\d\d\d:\d\d:\d\d", b"01 Jan 7000:00:00"),
    "sas": ((144, 160, 464, 480), rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN70:00:00:00"),
}
"""Where the header has times, what they look like, and what is written in their place."""
_STATA_TIME = (rb"<timestamp>\x11\d\d \w{3} \d{4} \d\d:\d\d", b"<timestamp>\x1101 Jan 1970 00:00")
_SECONDS, _SECONDS_PER_BYTE = 60, 1e-6
_MEMORY, _MEMORY_PER_BYTE = 1 << 30, 200
"""What reading a file again may take: so much, and so much for each byte of the file that was written here."""
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,3}([a-z.+-]{1,5}[0-9]{0,4})?")


def writer_version() -> str | None:
    """The version of pyreadstat, or None if it is not installed."""
    try:
        return version("pyreadstat")
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Labels:
    """Labels of columns and of values, and display formats, as pairs; ``kind`` is stata, spss or sas."""

    kind: str
    columns: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, tuple[tuple[float | str, str], ...]], ...] = ()
    formats: tuple[tuple[str, str], ...] = ()
    writer: str = field(default_factory=lambda: writer_version() or "0")
    """The version of pyreadstat that writes the file; another may store the same rows otherwise."""

    def file(self, table: str) -> str:
        """The name of a table's file."""
        return table + SUFFIXES[self.kind]

    def of(self, names: Sequence[str], renumbered: Sequence[str] = ()) -> Labels:
        """The labels of some columns; those that get new numbers keep the label of the column only."""
        kept = [name for name in names if name not in renumbered]
        return Labels(
            self.kind,
            tuple(pair for pair in self.columns if pair[0] in names),
            tuple(pair for pair in self.values if pair[0] in kept),
            tuple(pair for pair in self.formats if pair[0] in kept),
            self.writer,
        )

    def beside(self, other: Labels, names: Sequence[str]) -> Labels:
        """These labels and those of ``other``, in the order of ``names``; where both have a column, these."""

        def joined(own: Iterable[tuple[str, Any]], others: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
            found = dict(others) | dict(own)
            return tuple((name, found[name]) for name in names if name in found)

        return Labels(
            self.kind,
            joined(self.columns, other.columns),
            joined(self.values, other.values),
            joined(self.formats, other.formats),
            self.writer,
        )

    @property
    def repeated(self) -> bool:
        """Whether a value of some column has two labels, of which a file can have one."""
        return any(len({value for value, _ in pairs}) < len(pairs) for _, pairs in self.values)

    def to_fields(self) -> dict[str, Any]:
        """The labels as a data dictionary states them."""
        return {
            "kind": self.kind,
            "columns": dict(self.columns),
            "values": {name: [list(pair) for pair in pairs] for name, pairs in self.values},
            "formats": dict(self.formats),
            "pyreadstat": self.writer,
        }

    @classmethod
    def from_fields(cls, fields: Any) -> Labels:
        """The labels that a data dictionary states; ``ValueError`` if they are none."""
        if not isinstance(fields, Mapping) or set(fields) != {"kind", "columns", "values", "formats", "pyreadstat"}:
            raise ValueError("labels have a kind, columns, values, formats and the version of pyreadstat")
        if fields["kind"] not in SUFFIXES or not _VERSION.fullmatch(fields["pyreadstat"]):
            raise ValueError("these are no labels of a known kind")
        if not all(isinstance(fields[name], Mapping) for name in ("columns", "values", "formats")):
            raise ValueError("these are no labels")
        pairs = [pair for listed in fields["values"].values() for pair in listed]
        texts = [*fields["columns"].values(), *fields["formats"].values(), *(label for _, label in pairs)]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("labels are texts")
        if not all(isinstance(value, str | int | float) for value, _ in pairs):
            raise ValueError("labelled values are numbers or texts")
        return cls(
            fields["kind"],
            tuple(fields["columns"].items()),
            tuple((name, tuple((value, label) for value, label in some)) for name, some in fields["values"].items()),
            tuple(fields["formats"].items()),
            fields["pyreadstat"],
        )


def labels_of(kind: str, meta: Any) -> Labels:
    """The labels in what pyreadstat says about a file."""

    def texts(pairs: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
        return tuple((name, text) for name, text in pairs if isinstance(text, str) and text)

    values = {
        name: tuple((value, label) for value, label in listed.items() if isinstance(value, str | int | float))
        for name, listed in (meta.variable_value_labels or {}).items()
    }
    return Labels(
        kind,
        texts((meta.column_names_to_labels or {}).items()),
        tuple(values.items()),
        texts((meta.original_variable_types or {}).items()),
    )


def write_labelled(path: Path, table: pa.Table, labels: Labels) -> None:
    """Write a table with its labels."""
    import pyreadstat

    kinds = {item.name: item.type for item in table.schema}
    values = {name: _typed(kinds[name], pairs) for name, pairs in labels.values if name in kinds}
    more: dict[str, Any] = {"column_labels": dict(labels.columns), "variable_format": dict(labels.formats)}
    if labels.kind != "sas":  # transport files have no place for them
        more["variable_value_labels"] = values
    writers: dict[str, Any] = {
        "stata": pyreadstat.write_dta,
        "spss": pyreadstat.write_sav,
        "sas": pyreadstat.write_xport,
    }
    try:
        writers[labels.kind](table.to_pandas(), str(path), **more)
        path.write_bytes(_without_times(path.read_bytes(), labels.kind))
    except Exception:  # what the library says may quote cells
        path.unlink(missing_ok=True)
        kind = TITLES[labels.kind]
        raise errors.DataError(
            "cannot-label",
            f"{path.name} cannot be written: the tables or their labels do not fit into a {kind} file.",
            'Write format = "parquet" (or "csv", "arrow") into the plan to release the tables without labels.',
        ) from None


class CannotCompare(Exception):
    """Files could not be compared here, for a reason that is not the file's; the text is the reason."""


def differs_from(written: Path, received: Path, labels: Labels) -> str:
    """What a received file says otherwise than one that was written here for the same rows, in words; empty if nothing.

    How the two store their values is not compared. They are read by another process, which may crash, with a bound on
    its memory and time; the one that was written here first, so that what the machine does not allow is noticed there.
    Raises :class:`CannotCompare`.
    """
    size = written.stat().st_size
    search = [str(Path(path).absolute()) for path in sys.path if path]  # "" is where the user happens to be
    most = str(_MEMORY + _MEMORY_PER_BYTE * size)
    program = [sys.executable, "-I", labelled_reader.__file__, json.dumps(search), labels.kind, most]
    try:
        ended = subprocess.run(  # nosec B603 # a list of arguments, no shell
            [*program, str(written.absolute()), str(received.absolute())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS + _SECONDS_PER_BYTE * size,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotCompare("reading it took too long") from None
    except (OSError, ValueError):
        raise CannotCompare("another process of Python cannot be started here") from None
    lines = ended.stdout.splitlines()
    if not lines or ended.returncode == -9:  # killed, as a system without memory does
        raise CannotCompare("pyreadstat cannot read here what it writes")
    if ended.returncode or len(lines) != 2:
        return f"it cannot be read as a {TITLES[labels.kind]} file"
    ours, theirs = (json.loads(line) for line in lines)
    stated = [name for name, _ in labels.formats]
    for one in (ours, theirs):
        one["formats"] = [one["formats"].get(name) for name in stated]
    return ", ".join(f"other {_SAID[part]}" for part in ours if ours[part] != theirs[part])


_SAID = {
    "rows": "numbers of rows",
    "columns": "columns",
    "cells": "cells",
    "labels": "labels of columns",
    "values": "labels of values",
    "formats": "display formats",
    "notes": "notes",
    "missing": "missing values",
    "times": "times",
}


def _without_times(content: bytes, kind: str) -> bytes:
    """The file with a fixed time in its header; ``ValueError`` if the time is not where it should be."""
    if kind == "stata":
        content, found = re.subn(*_STATA_TIME, content, count=1)
        if not found:
            raise ValueError("no time")
        return content
    places, pattern, fixed = _TIMES[kind]
    for place in places:
        if not re.fullmatch(pattern, content[place : place + len(fixed)]):
            raise ValueError("no time")
        content = content[:place] + fixed + content[place + len(fixed) :]
    return content


def _typed(kind: pa.DataType, pairs: Sequence[tuple[float | str, str]]) -> dict[float | str, str]:
    """Labels of values of the column's type; others cannot occur in it."""
    if pa.types.is_string(kind):
        return {value: label for value, label in pairs if isinstance(value, str)}
    numbers = [(value, label) for value, label in pairs if isinstance(value, int | float)]
    if pa.types.is_integer(kind):
        return {int(value): label for value, label in numbers if value == int(value)}
    return {float(value): label for value, label in numbers}
