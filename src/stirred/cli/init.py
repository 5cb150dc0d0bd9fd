"""``stirred init``: draft a plan from the columns of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.completing import mechanism_names
from stirred.cli.options import Given, chosen
from stirred.cli.printing import note


def init(
    file: Annotated[
        Path,
        typer.Argument(
            help="The confidential microdata: a file, a folder of files, or a pattern such as 'part-*.csv'."
        ),
    ],
    given: Given,
    mechanism: Annotated[
        str,
        typer.Option(
            help="The mechanism that will protect the data: swap, topdown or survey.", autocompletion=mechanism_names
        ),
    ] = "swap",
    out: Annotated[Path | None, typer.Option(help="Write the plan to this new file instead of the terminal.")] = None,
) -> None:
    """Draft a plan, a TOML file that says which columns are protected and how, to be read and corrected.

    It is drafted from the file format and the names of columns. Cells are looked at only with --look, which proposes
    types and where cells may be missing; columns that are called like ids are read to see whether they repeat.
    """
    from stirred.cli.common import check_new, write_new
    from stirred.mechanisms import named

    check_new(out)
    found = named(mechanism)
    _, options = chosen(found, "init", given)
    text = found.draft(file, out.parent if out else Path(), **options)
    if out is None:
        sys.stdout.write(text)
        return
    write_new(out, text)
    note(f"Wrote {out}. Read and correct it. Next: stirred check {out}")
