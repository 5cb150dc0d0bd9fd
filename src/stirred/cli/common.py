"""What several commands share: reading options that are lists, fitting text to the page, writing one new file."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stirred import errors

if TYPE_CHECKING:
    from stirred.semantics.pictures import Bars, Picture

_WIDTH = 110


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def is_topdown(plan: Path, of_swaps: Mapping[str, object]) -> bool:
    """Whether a plan is one of TopDown; options that belong to swapping are then refused."""
    from stirred.releases.plans import mechanism_of

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


def save_pictures(pictures: Iterable[Picture | Bars], folder: Path) -> None:
    """Draw pictures into a new folder, and say where."""
    from stirred.reports.figures import save

    folder.mkdir()
    for picture in pictures:
        for path in save(picture, folder):
            print(f"wrote {path}", file=sys.stderr)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, problem.strerror or "an input/output error") from None
