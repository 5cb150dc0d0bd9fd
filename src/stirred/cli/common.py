"""What several commands share: reading options that are lists, fitting text to the page, writing one new file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from stirred import errors

_WIDTH = 110


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def is_topdown(plan: Path, of_swaps: Mapping[str, object]) -> bool:
    """Whether a plan is one of TopDown; options that belong to swapping are then refused."""
    from stirred.release.plans import mechanism_of

    if mechanism_of(plan) != "topdown":
        return False
    for option, given in of_swaps.items():
        if given is not None:
            raise errors.option_not_for(option, "topdown")
    return True


def fitted(text: str) -> str:
    """Lines of the shape "name:   words" wrapped to the page, the words under one another."""
    indent = " " * 18
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent=indent) for line in text.splitlines())


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words under one another."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, problem.strerror or "an input/output error") from None
