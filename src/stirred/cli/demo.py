"""``stirred demo``: a whole release from generated data."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.completing import mechanism_names


def demo(
    mechanism: Annotated[
        str, typer.Argument(help="Which mechanism: swap, topdown or survey.", autocompletion=mechanism_names)
    ] = "swap",
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; it must not exist. Default: stirred-demo-MECHANISM.")
    ] = None,
) -> None:
    """Make a release from generated data: swap a Massachusetts of 1940, release a county by TopDown, or a survey with
    its weights."""
    from stirred.mechanisms import named
    from stirred.reports.releasing import REPORT

    named(mechanism).demo(out or _free_name(f"stirred-demo-{mechanism}"), REPORT)


def _free_name(name: str) -> Path:
    """The name, with a number added if it exists."""
    return next(path for number in count(1) if not (path := Path(name + (f"-{number}" if number > 1 else ""))).exists())
