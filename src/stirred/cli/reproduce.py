"""``stirred reproduce``: published numbers, computed again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper


def reproduce(
    item: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to compute: a document (thesis), a table or figure (thesis/table-3.2), one number, or a pattern "
            "with *. Default: everything."
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also save the figures (PNG and SVG) into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Compute the numbers and figures of the published papers again, and say of each whether it agrees.

    Everything takes about a minute. Exits with 1 if a number differs from what is published and no known misprint
    explains it.
    """
    from stirred.cli.common import check_new, check_paper, save_pictures
    from stirred.cli.printing import note
    from stirred.releases.progress import OnTerminal
    from stirred.reproduce.running import reproduce as computed

    check_paper(paper, figures)
    check_new(figures)
    with OnTerminal() as progress:
        result = computed(
            item or (), lambda done, total, name: progress.stage(f"{name}: {done + 1} of {total}", done / total)
        )
    sys.stdout.write(result.to_json() if as_json else result.text())
    if figures is not None and result.pictures:
        save_pictures(result.pictures, figures, paper=paper)
    elif figures is not None:
        note("none of these items is a figure, so no folder was made")
    if not result.holds:
        raise typer.Exit(1)
