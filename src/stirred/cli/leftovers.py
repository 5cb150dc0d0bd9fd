"""``stirred leftovers``: find and remove unfinished folders of runs that were killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def leftovers(
    folder: Annotated[Path, typer.Argument(help="The folder in which releases are written.")] = Path(),
    ledger: Annotated[
        str | None, typer.Option(help="The dataset's ledger, which says for which of them budget was spent.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete those for which no budget was spent.")] = False,
) -> None:
    """List unfinished folders of killed runs. They may hold confidential rows. Exits with 1 if any is left."""
    import shutil

    from stirred import mechanisms
    from stirred.releases.folder import leftovers as find
    from stirred.releases.ledger import Ledger
    from stirred.releases.manifest import NAME as MANIFEST

    opened = Ledger.open(ledger) if ledger is not None else None
    left = 0
    found = find(folder)
    for path in found:
        counted = opened.entry_of(path) if opened is not None else None
        stated = [entry for mechanism in mechanisms.every() if (entry := mechanism.paid_entry(path)) is not None]
        if counted is not None or stated:
            left += 1
            number = counted.id if counted else stated[0]
            print(
                f"{path}: never published, but entry {number} of the ledger spent budget for it. Not removed, since it "
                "is the only copy of that draw. Delete it by hand if you do not need it."
            )
        elif opened is None and (path / MANIFEST).is_file():
            left += 1
            print(
                f"{path}: its files are complete, so budget may have been spent for it. Pass --ledger FILE to find out."
            )
        elif remove:
            shutil.rmtree(path)
            print(f"{path}: removed. No budget was spent for it.")
        else:
            left += 1
            print(f"{path}: no budget was spent for it. Remove it with --remove.")
    if not found:
        print(f"No unfinished folders of killed runs in {folder}.")
    if left:
        raise typer.Exit(1)
