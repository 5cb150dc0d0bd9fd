"""What a file's column names, its form and, where a user asks for it, its cells suggest to the draft of a plan.

Names tell who or where a record is. The form of a CSV file is its encoding, what separates its fields, whether it has
decimal commas: it is that of the whole file, and nothing is kept of a cell or said about a single column. Types, null
values and columns with nulls are proposed from cells, and only :func:`look` reads them.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred._display import withheld
from stirred.tables.columns import Column
from stirred.tables.reading.csv_files import typed, usual_delimiter
from stirred.tables.reading.inputs import COMPRESSED, TYPES, InputOptions, find_files, format_of, open_input
from stirred.tables.reading.table_reader import read_table
from stirred.tables.writing import DELIMITERS, TAB, CsvStyle, csv_cells

_IDENTIFYING = (
    (r"(^|_)(name|surname|address|street|phone|email|ssn|passport)(_|$)", "names a person or a dwelling"),
    (r"(^|_)(dob|date_of_birth|birth_?dat(e|um))(_|$)", "a date of birth nearly names a person; an age may do"),
    (
        r"(^|_)(lat|lon|lng|latitude|longitude|coords?|coordinates?|[xy]_?coord|easting|northing|gps)(_|$|\d)",
        "coordinates tell the place",
    ),
)
_IDENTIFIER = r"(^id$|_id$|^id_|serial|^hhid$|^hid$|^pid$|^(db|hb|rb|pb|rx|px)030$|^household$|^hh$|^hh_?n(o|r|um)$)"
"""030 is what ids are called in the files of EU-SILC."""
_UNITS = {
    "household": r"hou?sehold|(^|_)hh|^hid$|dwelling",
    "person": r"person|people|individual|^pid$",
    "business": r"business|firm|compan",
}


def identifying(column: str) -> str:
    """Why a column that is called so should not be released; empty for others.

    >>> identifying("home_address"), identifying("GPS_lat"), identifying("latest")
    ('names a person or a dwelling', 'coordinates tell the place', '')
    """
    return next((why for pattern, why in _IDENTIFYING if re.search(pattern, column.lower())), "")


def called_id(column: str) -> bool:
    """Whether a column is called like the id of records or rows.

    >>> called_id("household_id"), called_id("SERIALNO"), called_id("idle")
    (True, True, False)
    """
    return re.search(_IDENTIFIER, column.lower()) is not None


def dataset_called(path: Path) -> str:
    """A name for a dataset from that of a file, a folder or a pattern of files.

    >>> dataset_called(Path("in/households-2030.csv.gz")), dataset_called(Path("part-*.csv"))
    ('households-2030', 'part-')
    """
    return re.sub(r"[^\w-]+", " ", path.name.split(".")[0]).strip() or "data"


def unit_called(name: str) -> str:
    """What one row is, by what the file or its id is called; empty if that does not tell.

    >>> unit_called("persons_2030"), unit_called("hhid"), unit_called("nist_ma2019")
    ('person', 'household', '')
    """
    return next((unit for unit, pattern in _UNITS.items() if re.search(pattern, name.lower())), "")


def toml(value: object) -> str:
    """A text, a number or a list as it stands in a plan."""
    return json.dumps(value, ensure_ascii=False)


def written_path(path: Path, folder: Path) -> str:
    """A path as a plan in ``folder`` names it."""
    return str(path if path.is_absolute() else os.path.relpath(path, folder))


_BYTES = 1 << 26
"""How much of a file is read for its encoding."""
_LINES = 1000
"""How many lines are split for their separators."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
"""Bytes that are no character in cp1252."""


@dataclass(frozen=True)
class Form:
    """How to read a CSV file; None stands for what is usual, and needs no line in a plan."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None
    names: tuple[str, ...] = ()

    def options(self) -> InputOptions:
        """How to read the file."""
        return InputOptions(
            delimiter=self.delimiter,
            encoding=self.encoding or "utf-8",
            decimal=self.decimal or ".",
            header=self.header,
            names=self.names,
        )

    def lines(self) -> list[str]:
        """Lines for the ``[input]`` of a plan."""
        found = []
        if self.delimiter is not None:
            written = TAB if self.delimiter in ("\t", TAB) else self.delimiter
            found.append(f"delimiter = {json.dumps(written)}")
        if self.encoding is not None:
            unsure = "   # a guess: other encodings of one byte for each sign look the same" * (
                self.encoding in ("cp1252", "latin-1")
            )
            found.append(f"encoding = {json.dumps(self.encoding)}{unsure}")
        if self.decimal is not None:
            found.append(f'decimal = "{self.decimal}"              # numbers are written as 1,5')
        if self.header is not None:
            found.append(f"header = {json.dumps(self.header)}")
        if self.names:
            found.append(f"names = {toml(self.names)}")
        return found


def form_of(
    path: Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    *,
    header: bool | None = None,
    names: Sequence[str] = (),
) -> Form:
    """The form of the file or files at ``path``; what is given is not looked for. Other formats than CSV have none.

    ``names`` are those of the columns of a file without a header line.
    """
    files = find_files(path)
    found = format_of(files[0])
    if found is None or found[0] != "csv":
        return Form(delimiter, encoding)
    start = _start_of(files[0])
    encoding = encoding or _encoding(start)
    try:
        text = (
            codecs.getincrementaldecoder(encoding or "utf-8")("strict")
            .decode(start, final=False)
            .removeprefix("\ufeff")
        )
    except LookupError:
        raise errors.plan_field([f"encoding: {encoding!r} is not known"]) from None
    except UnicodeError:
        raise errors.not_utf8(files[0], encoding or "utf-8") from None
    whole = len(start) < _BYTES
    usual = usual_delimiter(files[0])
    told = delimiter or _delimiter(text, usual, whole)
    sign = "\t" if told == TAB else told or usual
    comma = sign != "," and _has_decimal_commas(text, sign, whole)
    return Form(told, encoding, "," if comma else None, False if names else header, tuple(names))


def _start_of(file: Path) -> bytes:
    try:
        with pa.input_stream(str(file), compression=COMPRESSED.get(file.suffix.lower())) as stream:
            return bytes(stream.read(_BYTES))
    except FileNotFoundError:
        raise errors.no_such_input(file) from None
    except (OSError, pa.ArrowException):
        raise errors.unreadable_format(file, "csv") from None


def _encoding(start: bytes) -> str | None:
    """The encoding that the bytes tell; None for UTF-8 without a mark."""
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    zeros = start[:4096]
    if len(zeros) >= 4 and zeros.count(0) > len(zeros) // 4:  # every other byte of a western text in UTF-16
        return "utf-16-le" if zeros[1::2].count(0) > zeros[::2].count(0) else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(start, final=len(start) < _BYTES)
    except UnicodeError:
        return "latin-1" if any(byte in start for byte in _UNDEFINED) else "cp1252"
    return None


def _rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    """The first lines, split; the last one is left out where it may be cut."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > _LINES:
                return rows[:-1]
    except csv.Error:
        return rows
    return rows if whole else rows[:-1]


def _delimiter(text: str, usual: str, whole: bool) -> str | None:
    """The sign that splits the header into most names and every line into as many fields; None for the usual one.

    A sign that does not split all lines alike is taken only if no other does.
    """
    best, found = (False, 1, True), usual
    for sign in DELIMITERS:
        rows = _rows(text, sign, whole)
        if not rows or len(rows[0]) < 2:
            continue
        alike = all(len(row) == len(rows[0]) for row in rows)
        score = (alike, len(rows[0]), sign == usual)
        if score > best:
            best, found = score, sign
    return None if found == usual else found


def _has_decimal_commas(text: str, delimiter: str, whole: bool) -> bool:
    """Whether fields are written as 1,5 and none as 1.5; thousands as in 1,000 alone do not count."""
    fields = (field for row in _rows(text, delimiter, whole)[1:] for field in row)
    counts = Counter(match.lastgroup for field in fields if (match := _NUMBER.fullmatch(field)))
    return counts["comma"] > 0 and counts["point"] == 0


_NUMBER = re.compile(r"\s*[+-]?(?:(?P<thousands>[1-9]\d{0,2}(?:,\d{3})+)|(?P<comma>\d+,\d+)|(?P<point>\d+\.\d+))\s*")


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
    """Read every cell of a table, for its null values, types and columns with nulls."""
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
