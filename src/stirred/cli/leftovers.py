"""``stirred leftovers``: find and remove what killed runs left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def leftovers(
    folder: Annotated[Path, typer.Argument(help="The folder in which releases are written.")] = Path(),
    ledger: Annotated[
        Path | None, typer.Option(help="The dataset's ledger, which tells what of it was paid for.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete those that no ledger entry paid for.")] = False,
) -> None:
    """List unfinished folders whose run is no longer alive: they may hold confidential rows. Exits with 1 if any is
    left."""
    import shutil

    from stirred import mechanisms
    from stirred.releases.folder import leftovers as find
    from stirred.releases.ledger import Ledger

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
                f"{path}: paid for by entry {number} of the ledger, and never published. It is not removed here, since "
                "it is the only copy of what was drawn. Delete it by hand if you do not want it."
            )
        elif remove:
            shutil.rmtree(path)
            print(f"{path}: removed. No ledger entry had paid for it.")
        else:
            left += 1
            print(f"{path}: nothing was spent on it. Remove it with --remove.")
    if not found:
        print(f"No unfinished folder of a killed run is in {folder}.")
    if left:
        raise typer.Exit(1)
