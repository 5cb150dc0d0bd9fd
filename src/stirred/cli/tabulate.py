"""``stirred tabulate``: count the rows of a release by some columns; spends no budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import MostRows
from stirred.cli.printing import note, show


def tabulate(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    by: Annotated[str, typer.Option(help="Columns to count by, e.g. county,tenure.")],
    table: Annotated[str | None, typer.Option(help="The name of a released table; default: the first.")] = None,
    most_rows: MostRows = None,
    out: Annotated[Path | None, typer.Option(help="Write the table to this CSV file instead of the terminal.")] = None,
) -> None:
    """Count released rows by some columns. This is post-processing, and spends no budget."""
    from stirred.cli.common import check_new, names, write_new
    from stirred.tables.write import csv_text
    from stirred.verbs import tabulate as run
    from stirred.verbs import tabulate_note

    check_new(out)
    columns = list(dict.fromkeys(names(by)))
    found = run(release, columns, table, most_rows=most_rows)
    if (said := tabulate_note(release, columns, table, most_rows=most_rows)) is not None:
        note(said)
    if out is None:
        show(found)
    else:
        write_new(out, csv_text(found))
