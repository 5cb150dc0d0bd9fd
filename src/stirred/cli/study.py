"""``stirred study``: plans and simulated swappers side by side on one dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper


def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="The study, a TOML file (stirred docs studies).")],
    plans: Annotated[list[Path] | None, typer.Argument(help="Further plans to compare in the study.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(help="How often each plan and swapping method is drawn. Default: as the study file says.", min=1),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the study as text, JSON and CSV into this new folder.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also save a figure of the comparison (PNG and SVG) into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Compare plans and other swapping methods on one dataset, from several draws of each: the guarantee, how many
    records move, what published counts reveal, and errors of tables.

    What it prints is confidential. Nothing is released.
    """
    from stirred.cli.common import check_new, check_paper, save_pictures
    from stirred.releases.progress import OnTerminal
    from stirred.study import read_study, run_study

    check_paper(paper, figures)
    check_new(out, figures)
    read = read_study(file, plans or ())
    with OnTerminal() as progress:
        found = run_study(read, draws=draws, progress=progress)
    if out is not None:
        found.write(out)
    if figures is not None:
        save_pictures(found.pictures(), figures, paper=paper)
    sys.stdout.write(found.to_json() if as_json else str(found))
