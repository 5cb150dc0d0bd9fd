"""``stirred init``: draft a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def init(
    file: Annotated[Path, typer.Argument(help="The microdata file, folder or glob.")],
    linked: Annotated[Path | None, typer.Option(help="A table whose rows belong to records of FILE.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan here instead of to the terminal.")] = None,
) -> None:
    """Draft a plan from column names and types; no value is looked at."""
    from stirred import errors
    from stirred.swap.draft import draft_plan

    text = draft_plan(file, linked, out.parent if out else Path())
    if out is None:
        sys.stdout.write(text)
        return
    try:
        with out.open("x", encoding="utf-8") as plan:
            plan.write(text)
    except FileExistsError:
        raise errors.output_exists(out) from None
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
    print(f"Wrote {out}. Read it, correct it, then: stirred check {out}", file=sys.stderr)
