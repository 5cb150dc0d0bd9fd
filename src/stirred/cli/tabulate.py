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
    import polars as pl

    from stirred import errors
    from stirred.cli.common import names
    from stirred.releases.opened import ReleaseFolder

    wanted = list(dict.fromkeys(names(by)))
    if ReleaseFolder.open(release).mechanism == "topdown":
        from stirred.topdown.recipient import tabulate as of_topdown

        found = of_topdown(release, wanted, table)
    else:
        from stirred.swap.plan import MAIN
        from stirred.swap.recipient import tabulate as of_swap

        found = of_swap(release, wanted, table or MAIN)
    frame = pl.from_arrow(found)
    assert isinstance(frame, pl.DataFrame)
    if out is None:
        sys.stdout.write(frame.write_csv())
        return
    try:
        with out.open("xb") as file:
            frame.write_csv(file)
    except FileExistsError:
        raise errors.output_exists(out) from None
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
