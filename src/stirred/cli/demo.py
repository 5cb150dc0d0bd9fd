"""``stirred demo``: the main job on data that the package makes itself."""

from __future__ import annotations

from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer


class Demonstration(StrEnum):
    """What can be shown."""

    swap = "swap"
    topdown = "topdown"


def demo(
    what: Annotated[Demonstration, typer.Argument(help="What to show.")] = Demonstration.swap,
    out: Annotated[Path | None, typer.Option(help="Where to leave the folder.")] = None,
) -> None:
    """Do the main job on data made here: swap a Massachusetts of 1940, or release a county by TopDown."""
    if what is Demonstration.topdown:
        from stirred.cli.demo_topdown import run
    else:
        from stirred.cli.demo_swap import run
    run(out or _free_name(f"stirred-demo-{what.value}"))


def _free_name(name: str) -> Path:
    """The name, with a number if it is taken."""
    return next(path for number in count(1) if not (path := Path(name + (f"-{number}" if number > 1 else ""))).exists())
