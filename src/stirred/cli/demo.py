"""``stirred demo``: the main job on data that the package makes itself."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Demonstration(StrEnum):
    """What can be shown."""

    swap = "swap"


def demo(
    what: Annotated[Demonstration, typer.Argument(help="What to show.")] = Demonstration.swap,
    out: Annotated[Path | None, typer.Option(help="Where to leave the folder.")] = None,
) -> None:
    """Swap a generated Massachusetts of 1940 and print the published table beside this run's."""
    from stirred.cli.demo_swap import run

    run(out)
