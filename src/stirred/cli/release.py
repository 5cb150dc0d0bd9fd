"""``stirred release``: swap and write the folder."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

GRAVE = ("allowed-", "nothing-", "parameters-", "rate-")
"""Findings that the custodian could still act on, or that leave no guarantee: said in full."""


def release(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    out: Annotated[Path, typer.Option(help="The release folder; it must not exist.")],
    confidential: Annotated[
        Path | None, typer.Option(help="A folder for true against released tables. Keep it to yourself.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The dataset's ledger: count this release in it, or be refused.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option(help="Overrule a stop by its name. Repeatable.")] = None,
) -> None:
    """Draw once and write a release folder, which appears whole or not at all."""
    from stirred.release.folder import leftovers
    from stirred.release.progress import OnTerminal
    from stirred.spec.exact import display
    from stirred.swap.plan import SwapPlan
    from stirred.swap.releasing import release as run

    read = SwapPlan.from_toml(plan, allow or ())
    for folder in {out.absolute().parent, *([confidential.absolute().parent] if confidential else [])}:
        for left in leftovers(folder):
            print(
                f"stirred: {left} was left by a run that was killed. It may hold confidential rows: delete it.",
                file=sys.stderr,
            )
    with OnTerminal() as progress:
        drawn = run(read, out=out, confidential=confidential, progress=progress, ledger=ledger)
    specification = drawn.specification
    nearest = specification.nearest if specification.nearest != math.inf else "no"
    print(f"Released to {out}")
    print(
        f"  epsilon {display(specification.budget.number)} per record ({read.unit}), given the invariants; "
        f"the nearest files that share them differ in {nearest} records"
    )
    for finding in specification.findings:
        if finding.id.startswith(GRAVE):
            print(f"  finding {finding.id}: {finding.words}")
    if others := [finding.id for finding in specification.findings if not finding.id.startswith(GRAVE)]:
        print(f"  findings: {', '.join(others)}; stirred lint {out} explains them")
    if confidential and not read.tables:
        print(f"The plan asks for no tables, so {confidential} compares none.")
    elif confidential:
        print(
            f"True against released tables are in {confidential}: confidential. Rerunning and "
            "choosing the best run voids "
            "the guarantee."
        )
    if ledger is None:
        print("Nothing is counted: no ledger was named. stirred ledger init FILE --dataset NAME starts one.")
    else:
        from stirred.cli.ledger import counted

        print(counted(ledger))
    print(f"Next: stirred verify {out}")
