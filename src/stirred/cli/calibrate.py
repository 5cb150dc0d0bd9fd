"""``stirred calibrate``: which parameters keep stated limits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stirred.cli.options import Given, chosen


def calibrate(
    what: Annotated[
        str,
        typer.Argument(
            help="A plan (a TOML file); or, without a plan, rho or epsilon; or the value in use, such as rho=2.63."
        ),
    ],
    given: Given,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A limit that must be kept: 'error of race at tract <= 5', 'relative error of total at county <= 1% "
            "for 10000', 'power at 5% <= 20%', 'belief from 1% <= 5%', 'epsilon <= 2', 'rho <= 1'. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the plan with the parameters that were found to this new file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Find the parameters that keep stated limits: rho and its shares for TopDown, the swap rate for a swap, or rho or
    epsilon alone.

    Prints which limit decides, and what else changes. Nothing is released or spent. Exits with 1 if a given budget does
    not keep all limits.
    """
    from stirred import errors
    from stirred.cli.common import check_new, write_new
    from stirred.releases.plans import text_beside
    from stirred.releases.progress import OnTerminal
    from stirred.semantics.budgets_for_targets import is_number
    from stirred.verbs import calibrate as run
    from stirred.verbs import mechanism_of_plan

    check_new(out)
    options: dict[str, Any] = {}
    plan: object = what
    if is_number(what):
        if given:
            raise errors.option_not_for(next(iter(given)), what)
    else:
        mechanism = mechanism_of_plan(what)
        _, options = chosen(mechanism, "calibrate", given)
        plan = mechanism.read_plan(what)
    with OnTerminal() as progress:
        found = run(plan, target or [], progress=progress, **options)  # type: ignore[arg-type]
    if out is not None:
        if found.plan is None:
            raise errors.calibration_option("--out", "writes a plan, and here is none to write")
        write_new(out, text_beside(found.plan, out))
    sys.stdout.write(found.to_json() if as_json else str(found))
    if not all(one.met for one in found.targets):
        raise typer.Exit(1)
