"""``stirred leftovers``: find and remove unfinished folders of runs that were killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.printing import print_json


def leftovers(
    folder: Annotated[Path, typer.Argument(help="The folder to search: where releases are written.")] = Path(),
    ledger: Annotated[
        str | None,
        typer.Option(
            help="The ledger of the dataset, to find out for which folders budget was spent. Default: that is not "
            "known."
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the folders that cannot be finished.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """List folders of releases that were interrupted. They may contain confidential rows.

    Exits with 1 if any is left.
    """
    import shutil

    from stirred import errors, mechanisms
    from stirred.releases.folder.atomic import leftovers as find
    from stirred.releases.ledger.ledger import Ledger

    if not folder.is_dir():
        raise errors.no_such_input(folder)
    opened = Ledger.open(ledger) if ledger is not None else None
    rows: list[dict[str, object]] = []
    for path in find(folder):
        counted = opened.entry_of(path) if opened is not None else None
        stated = [entry for mechanism in mechanisms.every() if (entry := mechanism.paid_entry(path)) is not None]
        if counted is not None or stated:
            number = counted.id if counted else stated[0]
            state = "paid"
            words = (
                f"never published, but entry {number} of the ledger spent budget for it. Not removed, since it is the "
                "only copy of that draw. Delete it by hand if you do not need it."
            )
        elif opened is None and _is_complete(path):
            state = "complete"
            words = "its files are complete, so budget may have been spent for it. Pass --ledger FILE to find out."
        elif remove:
            shutil.rmtree(path)
            state, words = "removed", "removed. It was not complete and could not be made a release."
        else:
            state = "incomplete"
            words = (
                "not complete, and it cannot be made a release. Remove it with --remove. stirred ledger verify says "
                "whether budget was spent for it in vain."
            )
        rows.append({"folder": str(path), "state": state, "words": words})
        if not as_json:
            print(f"{path}: {words}")
    if as_json:
        print_json({"stirred_leftovers": 1, "folders": rows})
    elif not rows:
        print(f"No unfinished folders of interrupted releases in {folder}.")
    if any(row["state"] != "removed" for row in rows):
        raise typer.Exit(1)


def _is_complete(folder: Path) -> bool:
    """Whether a folder has its manifest, which is written last and only once it is paid for."""
    from stirred.errors import OutputError
    from stirred.releases.folder.manifest import read_manifest

    try:
        read_manifest(folder)
    except OutputError:
        return False
    return True
