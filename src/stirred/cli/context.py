"""``stirred context``: a questionnaire about the five safes and contextual integrity, to be pasted into a plan."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def context(
    mode: Annotated[
        str | None, typer.Argument(help="The mode of access whose answers to print; without it, all are listed.")
    ] = None,
) -> None:
    """List modes of access, or print the section [context] of a plan with answers typical of one, to be corrected."""
    from stirred.releases.context import MODES, template

    if mode is not None:
        sys.stdout.write(template(mode))
        return
    for name, one in MODES.items():
        print(f"{name:20}{one.title}")
