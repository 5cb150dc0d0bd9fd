"""``stirred plan upgrade``: bring a plan of an earlier version to the present form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.printing import note

app = typer.Typer(
    help="Bring a plan of an earlier version to the present form.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Keeps ``upgrade`` a command of its own."""


@app.command("upgrade")
def upgrade(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the plan to this new file, beside the old one, not to the terminal.")
    ] = None,
) -> None:
    """Write a plan in the present form: fields under their present names, and every choice that the plan left to what
    is usual written out, for somebody to decide.

    What the plan means stays the same, and so does the guarantee. Comments are kept. What changed is printed.
    """
    from stirred.cli.common import check_new, write_new
    from stirred.releases.plans import upgrade as run
    from stirred.verbs import mechanism_of_plan

    check_new(out)
    found = run(mechanism_of_plan(plan).plan_type, plan, plan.parent if out is None else out.parent)
    if out is None:
        sys.stdout.write(found.text)
    else:
        write_new(out, found.text)
        note(f"Wrote {out}. Read it and decide. Next: stirred check {out}")
    for change in found.changes or ("nothing: the plan has the present form already",):
        note(f"Changed: {change}." if found.changes else f"Changed {change}.")
