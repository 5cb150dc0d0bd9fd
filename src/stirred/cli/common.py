"""What several commands share: reading options that are lists, fitting text to the page, writing one new file."""

from __future__ import annotations

import textwrap
from pathlib import Path

from stirred import errors

_WIDTH = 110


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def fitted(text: str) -> str:
    """Lines of the shape "name:   words" wrapped to the page, the words under one another."""
    indent = " " * 18
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent=indent) for line in text.splitlines())


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, problem.strerror or "an input/output error") from None
