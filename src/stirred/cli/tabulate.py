"""``stirred tabulate``: further tables of a release, at no cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def tabulate(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    by: Annotated[str, typer.Option(help="Columns, e.g. county,tenure.")],
    table: Annotated[str | None, typer.Option(help="Which released table; by default the first.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write CSV here instead of to the terminal.")] = None,
) -> None:
    """Count released rows by some columns. Post-processing: it costs nothing."""
    from stirred.cli.common import check_new, names, write_new
    from stirred.verbs import tabulate as run

    check_new(out)
    found = run(release, list(dict.fromkeys(names(by))), table)

    import polars as pl

    frame = pl.from_arrow(found)
    assert isinstance(frame, pl.DataFrame)
    if out is None:
        sys.stdout.write(frame.write_csv())
    else:
        write_new(out, frame.write_csv())
