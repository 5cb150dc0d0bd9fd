"""``stirred check``: check a plan against its data, before anything is drawn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper
from stirred.cli.options import Given, chosen


def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    given: Given,
    specification: Annotated[
        Path | None,
        typer.Option(
            help="Write the guarantee that a release by this plan would have to this new JSON file. explain, report "
            "and ledger init --limit read it."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Also save figures into this new folder: what each choice of --candidate or --rates would reveal."
        ),
    ] = None,
    paper: Paper = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Check a plan against its data: the guarantee, risks, expected errors and cost. Nothing is released or spent.

    What it prints is confidential, the code for release --as-checked too: it has a hash of the data, by which guesses
    about them can be tested, and is written into no file. Exits with 2 if a release by this plan would be refused.
    """
    from stirred import errors
    from stirred.cli.common import check_new, check_paper, save_pictures, write_new
    from stirred.releases.check_code import checked
    from stirred.releases.mechanism import Drawable
    from stirred.releases.progress import OnTerminal
    from stirred.verbs import mechanism_of_plan

    check_paper(paper, figures)
    check_new(specification, figures)
    mechanism = mechanism_of_plan(plan)
    of_plan, options = chosen(mechanism, "check", given)
    read = mechanism.read_plan(plan, **of_plan)
    with OnTerminal() as progress:
        found = checked(mechanism, read, progress=progress, **options)
    if figures is not None:
        pictures = found.pictures() if isinstance(found, Drawable) else ()
        if not pictures:
            raise errors.nothing_to_draw()
        save_pictures(pictures, figures, paper=paper)
    if specification is not None:
        write_new(specification, found.specification.to_json())
    sys.stdout.write(found.to_json() if as_json else str(found))
    if found.open_stops:
        raise typer.Exit(2)
