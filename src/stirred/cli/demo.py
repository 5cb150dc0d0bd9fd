"""``stirred demo``: the main job on data that the package makes itself."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer


def demo(
    mechanism: Annotated[str, typer.Argument(help="Which mechanism to show.")] = "swap",
    out: Annotated[Path | None, typer.Option(help="Where to leave the folder.")] = None,
) -> None:
    """Do the main job on generated data: swap a Massachusetts of 1940, or release a county by TopDown."""
    from stirred.mechanisms import named

    named(mechanism).demo(out or _free_name(f"stirred-demo-{mechanism}"))


def _free_name(name: str) -> Path:
    """The name, with a number if it is taken."""
    return next(path for number in count(1) if not (path := Path(name + (f"-{number}" if number > 1 else ""))).exists())
