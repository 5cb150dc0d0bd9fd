"""Helpers of several commands: reading lists of names, wrapping text, writing new files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred import errors
from stirred.cli.printing import note

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.semantics.pictures.lines_and_bars import AnyPicture
    from stirred.semantics.pictures.readable import NotDrawn

_WIDTH = 110
MostRows = Annotated[
    int | None,
    typer.Option(
        help="Refuse a released table with more rows than this, since a small file can claim a billion rows. Default: "
        "500 million values (rows times columns), and 64 more for each byte of the file.",
        min=0,
    ),
]


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_new(*targets: Path | None) -> None:
    """Raise, before anything is computed, if an output exists already or its folder does not."""
    from stirred.releases.folder.atomic import check_target

    for target in targets:
        if target is not None:
            check_target(target.absolute())


def fitted(text: str) -> str:
    """Lines such as "name:   words" wrapped to the page width, with the words below one another."""
    indent = " " * 18
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent=indent) for line in text.splitlines())


Paper = Annotated[
    bool,
    typer.Option(
        "--paper",
        help="With --figures: draw for papers, without titles, as PDF and SVG in the widths of one and two columns; "
        "captions that name the guarantee are text files beside them.",
    ),
]
"""The option of every command that draws."""


def check_paper(paper: bool, figures: Path | None) -> None:
    """Raise if figures for papers are asked for, and no folder for figures."""
    if paper and figures is None:
        raise errors.option_needs("--paper", "--figures FOLDER")


def save_pictures(
    pictures: Iterable[AnyPicture], folder: Path, *, paper: bool = False, not_drawn: Iterable[NotDrawn] = ()
) -> None:
    """Save pictures into a new folder, and print their paths, and sentences in place of those that show nothing.

    Without any picture no folder is made.
    """
    from stirred.reports.figures import save, save_for_paper

    for one in not_drawn:
        note(one.words)
    pictures = list(pictures)
    if not pictures:
        note(f"There is nothing to draw, so {folder} was not made.")
        return
    try:
        folder.mkdir()
    except OSError as problem:
        raise errors.cannot_write(folder, problem.strerror or "an input/output error") from None
    for picture in pictures:
        for path in save_for_paper(picture, folder) if paper else save(picture, folder):
            note(f"wrote {path}")


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, problem.strerror or "an input/output error") from None


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a Parquet file that must not exist yet."""
    import pyarrow.parquet as pq

    try:
        with path.open("xb") as file:
            pq.write_table(table, file)
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, problem.strerror or "an input/output error") from None
