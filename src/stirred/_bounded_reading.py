"""Read what somebody else wrote: files, JSON, TOML and text, each within bounds that are checked before it is used.

A release folder, a plan or a specification may come from a stranger. Nothing outside the folder is opened, no file
that is not a regular one (a link, a pipe, a device), no document beyond :data:`MOST_BYTES`, no nesting beyond
:data:`MOST_DEPTH`, no number beyond :data:`MOST_DIGITS`. Text of theirs that is printed goes through :func:`plain`.
docs/bounds.md lists all bounds, also those that other modules check.
"""

from __future__ import annotations

import datetime
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

from stirred.errors.kinds import one_line

MOST_BYTES = 16 * 1024 * 1024
"""The largest document (certificate, manifest, data dictionary) that is read; tables have no such bound."""
MOST_TYPED_BYTES = 4 * 1024 * 1024
"""The largest document of those that people write: plans, allocations, specifications, records of the registry."""
MOST_DEPTH = 64
"""How deep lists and objects of a document may be nested."""
MOST_DIGITS = 1_000
"""How long a number in a document may be, in characters."""

MOST_NAME = 1_000
"""How long the name of a file may be, and a word of TOML that is not in quotes."""

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""How a day is written."""

_OF_MACHINE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT}
)

# Quotes that are never closed reach to the end: a pattern that failed there would be tried at every quote once more.
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_LONG = re.compile(rf"(?<![0-9.eE+-])[0-9.eE+-]{{{MOST_DIGITS + 1}}}")
TOML_QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5})?'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\[^\n])*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*",
    re.DOTALL,
)
_TOML_LONG = re.compile(rf"(?<![\w+-])[\w+-]{{{MOST_NAME + 1}}}")
_TOML_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DEPTH}}}")


class Unacceptable(ValueError):
    """What arrived is beyond a bound or points outside; the text says which, and callers add what it was."""


def is_of_machine(problem: Exception) -> bool:
    """Whether an error says that this machine cannot read, whatever is in the file: no permission, no memory, a disk
    that fails. Whoever catches OSError to say that a file is not what it should be raises such an error again."""
    return isinstance(problem, MemoryError) or (isinstance(problem, OSError) and problem.errno in _OF_MACHINE)


def is_of_content(problem: Exception) -> bool:
    """Whether an error while reading comes from what was read, not from the machine or from a fault of ours.

    Arrow gives an OSError without a number for files that are damaged; the operating system always has a number. A name
    that no file can have was read, or typed.
    """
    if isinstance(problem, OSError):
        return problem.errno in (None, errno.ENAMETOOLONG)
    arrow = type(problem).__module__.startswith("pyarrow.") and not isinstance(problem, MemoryError)
    return arrow or isinstance(problem, ValueError | LookupError | ArithmeticError)


def inside(folder: Path, name: str) -> Path:
    """The path of a regular file inside ``folder``; raises for names that lead outside and for anything but a file.

    No part of the name may be a link: what a link points to is not part of the folder.
    """
    parts = PurePosixPath(name).parts
    if (
        not parts
        or name.startswith(("/", "\\"))
        or ".." in parts
        or "\0" in name
        or "\\" in name
        or len(name) > MOST_NAME
    ):
        raise Unacceptable("its name leads outside the folder")
    path = folder
    for part in parts:
        path = path / part
        try:
            mode = path.lstat().st_mode
        except (OSError, ValueError):
            raise Unacceptable("there is no such file") from None
        if stat.S_ISLNK(mode):
            raise Unacceptable("it is a link")
    if not stat.S_ISREG(mode):
        raise Unacceptable("it is not a regular file")
    return path


def is_file(path: Path) -> bool:
    """Whether there is a regular file, or a link to one; False also for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file that is not too large. OSError passes through.

    A pipe or a device is not waited for: the file is opened without blocking and looked at before it is read.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Unacceptable("it is not a regular file")
        if found.st_size > most:
            raise Unacceptable(f"it has {found.st_size:,} bytes, and at most {most:,} are read")
        return file.read(most)


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a regular file in UTF-8 that is not too large."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise Unacceptable("it is not text in UTF-8") from None


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """A JSON document from a file, within all bounds."""
    return parse_json(read_text(path, most))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON whose nesting and numbers are within bounds; a key that is there twice is refused.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ...
    stirred._bounded_reading.Unacceptable: it is nested deeper than 64 levels
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError:
            raise Unacceptable("it is not text in UTF-8") from None
    bare = _STRINGS.sub('""', text)
    require_shallow(bare)
    if _LONG.search(bare):
        raise Unacceptable(f"it has a number of more than {MOST_DIGITS:,} digits")
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once)
    except Unacceptable:
        raise
    except (ValueError, RecursionError):
        raise Unacceptable("it is not JSON") from None


def read_toml(path: Path, number: Callable[[str], Any] = Decimal) -> dict[str, Any]:
    """A TOML document from a file, within all bounds; numbers with a point are read by ``number``."""
    return parse_toml(read_typed(path), number)


def read_typed(path: Path) -> str:
    """The text of a document that people write, without the byte-order mark that some editors put before it."""
    return read_text(path, MOST_TYPED_BYTES).removeprefix("\ufeff")


def parse_toml(text: str, number: Callable[[str], Any] = Decimal) -> dict[str, Any]:
    """Parse TOML whose nesting, names and numbers are within bounds. ``tomllib.TOMLDecodeError`` passes through.

    >>> parse_toml("a.b = 0.5")
    {'a': {'b': Decimal('0.5')}}
    >>> parse_toml("a." * 100 + "a = 1")
    Traceback (most recent call last):
    ...
    stirred._bounded_reading.Unacceptable: it is nested deeper than 64 levels
    """
    bare = TOML_QUOTED.sub("_", text)
    require_shallow(bare)
    if _TOML_LONG.search(bare):
        raise Unacceptable(f"it has a number or name of more than {MOST_NAME:,} characters")
    if _TOML_DOTTED.search(bare):
        raise Unacceptable(f"it is nested deeper than {MOST_DEPTH} levels")
    try:
        return tomllib.loads(text, parse_float=lambda written: number(_modest(written)))
    except (tomllib.TOMLDecodeError, Unacceptable):
        raise
    except (ValueError, ArithmeticError, RecursionError):
        raise Unacceptable("it has a number or a date that is none") from None


def _modest(written: str) -> str:
    """The text of a number whose exponent is within bounds."""
    value = Decimal(written)
    if value.is_finite() and abs(value.adjusted()) > MOST_DIGITS:
        raise Unacceptable(f"it has a number of more than {MOST_DIGITS:,} digits")
    return written


def require_shallow(text: str) -> None:
    """Raise if brackets are nested deeper than :data:`MOST_DEPTH`; texts in quotes must have been taken out."""
    depth = 0
    for sign in re.finditer(r"[\[\]{}]", text):
        depth += 1 if sign[0] in "[{" else -1
        if depth > MOST_DEPTH:
            raise Unacceptable(f"it is nested deeper than {MOST_DEPTH} levels")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Unacceptable("it has a number that is too large")
    if value == 0 and Decimal(text) != 0:
        raise Unacceptable("it has a number that is too small")
    return value


def _no_constant(text: str) -> float:
    raise Unacceptable(f"it has the number {text}, which JSON does not know")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Unacceptable("it has a field twice")
    return fields


_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_REFUSED = re.compile(f"[{_CONTROLS}]")
UNPRINTED = re.compile(f"[{_CONTROLS}\u061c\u200e\u200f]")
"""Control characters, halves of characters, and marks that change the direction of text: never printed as they are."""


def has_controls(text: str) -> bool:
    """Whether a text has line breaks, other control characters, or marks that reverse the direction of text."""
    return _REFUSED.search(text) is not None


def where_controls(value: Any, place: str = "") -> str | None:
    """Where in the fields of a document a text has control characters, or None.

    >>> where_controls({"unit": "person", "tables": [{"name": "a\\nb"}]})
    'tables.0.name'
    """
    if isinstance(value, str):
        return place if has_controls(value) else None
    if isinstance(value, dict):
        inside = [(str(key), inner) for key, inner in value.items()]
        if any(has_controls(key) for key, _ in inside):
            return place or "a name"
    elif isinstance(value, list | tuple):
        inside = [(str(number), inner) for number, inner in enumerate(value)]
    else:
        return None
    found = (where_controls(inner, f"{place}.{name}" if place else name) for name, inner in inside)
    return next((one for one in found if one is not None), None)


def is_day(text: object) -> bool:
    """Whether something is the text of a day, such as ``2030-04-01``."""
    try:
        return isinstance(text, str) and bool(re.fullmatch(DAY, text)) and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def plain(text: object, most: int = 300) -> str:
    r"""Text of somebody else for a message: control characters shown as escapes, and cut.

    >>> plain("a\nholds  the budget\x1b[2K")
    'a\\nholds  the budget\\x1b[2K'
    """
    return one_line(str(text), most)
