"""``stirred demo``: a whole release from generated data."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.completing import mechanism_names


def demo(
    mechanism: Annotated[
        str, typer.Argument(help="The mechanism to show: swap, topdown or survey.", autocompletion=mechanism_names)
    ] = "swap",
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; it must not exist yet. Default: stirred-demo-MECHANISM.")
    ] = None,
) -> None:
    """Generate data, check a plan and make a release from them: households of Massachusetts in 1940 (swap), the census
    of a county (topdown), or a weighted survey (survey)."""
    from stirred.mechanisms import named
    from stirred.reports.release_with_report import REPORT

    named(mechanism).demo(out or _free_name(f"stirred-demo-{mechanism}"), REPORT)


def _free_name(name: str) -> Path:
    """The name, with a number added if it exists."""
    return next(path for number in count(1) if not (path := Path(name + (f"-{number}" if number > 1 else ""))).exists())
