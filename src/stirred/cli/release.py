"""``stirred release``: draw, finish, and write the folder."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stirred.spec import Specification

GRAVE = ("allowed-", "nothing-", "parameters-", "rate-")
"""Findings that the custodian could still act on, or that leave no guarantee: said in full."""
_SHOWN_FALLBACKS = 5


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
    work: Annotated[
        Path | None,
        typer.Option(
            help="TopDown: the private folder of measurements. If it is there the release is made from it, and nothing "
            "is spent; otherwise it is drawn, and kept. Default: OUT-work, removed when the release is there."
        ),
    ] = None,
) -> None:
    """Draw once and write a release folder, which appears whole or not at all."""
    from stirred import errors
    from stirred.cli.common import is_topdown
    from stirred.releases.progress import OnTerminal
    from stirred.spec.exact import display
    from stirred.swap.plan import SwapPlan
    from stirred.swap.releasing import release as run

    _name_leftovers([out, confidential, work])
    if is_topdown(plan, {"--allow": allow}):
        _topdown(plan, out, work, confidential, ledger)
        return
    if work is not None:
        raise errors.option_not_for("--work", "swap")
    read = SwapPlan.from_toml(plan, allow or ())
    with OnTerminal() as progress:
        drawn = run(read, out=out, confidential=confidential, progress=progress, ledger=ledger)
    specification = drawn.specification
    nearest = specification.nearest if specification.nearest != math.inf else "no"
    print(f"Released to {out}")
    print(
        f"  epsilon {display(specification.budget.number)} per record ({read.unit}), given the invariants; "
        f"the nearest files that share them differ in {nearest} records"
    )
    _print_findings(specification, out)
    if confidential and not read.tables:
        print(f"The plan asks for no tables, so {confidential} compares none.")
    elif confidential:
        print(
            f"True against released tables are in {confidential}: confidential. Rerunning and "
            "choosing the best run voids "
            "the guarantee."
        )
    _print_end(ledger, out)


def _topdown(plan: Path, out: Path, work: Path | None, confidential: Path | None, ledger: Path | None) -> None:
    from stirred.releases.progress import OnTerminal
    from stirred.spec.exact import display
    from stirred.topdown.finishing import default_work, is_work, release
    from stirred.topdown.plan import TopDownPlan

    read = TopDownPlan.from_toml(plan)
    place = work or default_work(out)
    resumed = is_work(place)
    if resumed:
        print(f"Going on from the measurements in {place}: nothing is spent again.")
    try:
        with OnTerminal() as progress:
            made = release(read, out=out, work=work, confidential=confidential, ledger=ledger, progress=progress)
    except BaseException:
        if out.exists():
            print(f"stirred: the release in {out} is there and whole; {place} can be deleted.", file=sys.stderr)
        elif is_work(place) and not resumed:
            print(
                f"stirred: the measurements are drawn and kept in {place}. The same command goes on from them without "
                "spending again.",
                file=sys.stderr,
            )
        raise
    print(f"Released to {out}: " + ", ".join(f"{int(one.counts.sum()):,} {name}" for name, one in made.leaves.items()))
    print(f"  rho {display(made.specification.budget.number)} per {read.unit}, given the invariants")
    fallbacks = [(report, words) for report in made.reports for words in report.fallbacks]
    for report, (unit, words) in fallbacks[:_SHOWN_FALLBACKS]:
        print(f"  {report.table} below {unit} (level {report.level}): {words}")
    if len(fallbacks) > _SHOWN_FALLBACKS:
        print(f"  ... and {len(fallbacks) - _SHOWN_FALLBACKS} more; certificate.json lists all")
    _print_findings(made.specification, out)
    if confidential:
        print(
            f"Errors against the truth are in {confidential}: confidential. Drawing again and choosing the best draw "
            "voids the guarantee."
        )
    if work is not None:
        print(f"The measurements stay in {work}: finishing again, with other tables asked for, spends nothing.")
    _print_end(ledger, out)


def _name_leftovers(targets: list[Path | None]) -> None:
    from stirred.releases.folder import leftovers

    for folder in {target.absolute().parent for target in targets if target is not None}:
        for left in leftovers(folder):
            print(
                f"stirred: {left} was left by a run that was killed. It may hold confidential rows: delete it.",
                file=sys.stderr,
            )


def _print_findings(specification: Specification, out: Path) -> None:
    for finding in specification.findings:
        if finding.id.startswith(GRAVE):
            print(f"  finding {finding.id}: {finding.words}")
    if others := [finding.id for finding in specification.findings if not finding.id.startswith(GRAVE)]:
        print(f"  findings: {', '.join(others)}; stirred lint {out} explains them")


def _print_end(ledger: Path | None, out: Path) -> None:
    if ledger is None:
        print("Nothing is counted: no ledger was named. stirred ledger init FILE --dataset NAME starts one.")
    else:
        from stirred.cli.ledger import counted

        print(counted(ledger))
    print(f"Next: stirred verify {out}")
