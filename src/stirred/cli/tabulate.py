"""``stirred tabulate``: count the rows of a release by some columns; spends no budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import MostRows
from stirred.cli.printing import note, print_json, show
from stirred.releases.mechanism import PLACE_COLUMN_HELP, PLACES_HELP


def tabulate(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    by: Annotated[
        str | None, typer.Option(help="Columns to count by, such as county,tenure. Required unless --places is given.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The name of a released table. Default: the first.")] = None,
    places: Annotated[Path | None, typer.Option(help=PLACES_HELP)] = None,
    place_column: Annotated[str | None, typer.Option(help=PLACE_COLUMN_HELP)] = None,
    most_rows: MostRows = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the table to this file instead of the terminal: CSV, or Parquet (FILE.parquet)."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the result as JSON, with all rows; stirred docs json lists its fields."),
    ] = False,
) -> None:
    """Count the rows of a release by some columns. Reads only the release, and spends no budget."""
    from stirred import errors
    from stirred.cli.common import check_new, names, write_new, write_parquet
    from stirred.tables.writing import csv_text
    from stirred.verbs import tabulate as run
    from stirred.verbs import tabulate_note, tabulate_places

    check_new(out)
    columns = list(dict.fromkeys(names(by or "")))
    if places is None:
        if by is None or place_column is not None:
            raise errors.estimate_question("A table", "needs columns (--by) or a file of places (--places)")
        found = run(release, columns, table, most_rows=most_rows)
        remarks: tuple[str, ...] = ()
        if (said := tabulate_note(release, columns, table, most_rows=most_rows)) is not None:
            remarks = (said,)
    else:
        found, remarks = tabulate_places(release, columns, table, places, place_column, most_rows=most_rows)
    if as_json and out is None:
        rows = found.to_pylist()
        print_json({"stirred_table": 1, "columns": found.column_names, "rows": rows, "remarks": list(remarks)})
        return
    for remark in remarks:
        note(remark)
    if out is None:
        show(found, by=columns)
    elif out.suffix == ".parquet":
        write_parquet(out, found)
    else:
        write_new(out, csv_text(found))
