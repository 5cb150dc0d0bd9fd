"""Read what somebody else wrote: files, JSON and text, each within bounds that are checked before it is used.

A release folder, a plan or a specification may come from a stranger. Nothing outside the folder is opened, no file
that is not a regular one (a link, a pipe, a device), no document beyond :data:`MOST_BYTES`, no nesting beyond
:data:`MOST_DEPTH`, no number beyond :data:`MOST_DIGITS`. Text of theirs that is printed goes through :func:`plain`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

MOST_BYTES = 64 * 1024 * 1024
"""The largest document (certificate, manifest, plan, specification) that is read; tables have no such bound."""
MOST_DEPTH = 64
"""How deep lists and objects of a document may be nested."""
MOST_DIGITS = 1_000
"""How long a number in a document may be, in characters."""

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LONG = re.compile(rf"[0-9.eE+-]{{{MOST_DIGITS + 1},}}")


class Unacceptable(ValueError):
    """What arrived is beyond a bound or points outside; the text says which, and callers add what it was."""


def inside(folder: Path, name: str) -> Path:
    """The path of a regular file inside ``folder``; raises for names that lead outside and for anything but a file.

    No part of the name may be a link: what a link points to is not part of the folder.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith(("/", "\\")) or ".." in parts or "\0" in name or "\\" in name or len(name) > 1000:
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
    stirred._received.Unacceptable: it is nested deeper than 64 levels
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


def require_shallow(text: str, opening: str = "[{", closing: str = "]}") -> None:
    """Raise if brackets are nested deeper than :data:`MOST_DEPTH`; texts in quotes must have been taken out."""
    depth = 0
    for sign in re.findall(f"[{re.escape(opening + closing)}]", text):
        depth += 1 if sign in opening else -1
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


def plain(text: object, most: int = 300) -> str:
    r"""Text of somebody else for a message: control characters shown as escapes, and cut.

    >>> plain("a\nholds  the budget\x1b[2K")
    'a\\nholds  the budget\\x1b[2K'
    """
    said = "".join(sign if sign.isprintable() else _escaped(sign) for sign in str(text)[: most + 1])
    return said if len(said) <= most else said[: most - 1] + "…"


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape", "backslashreplace").decode("ascii")
