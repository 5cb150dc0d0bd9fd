"""``stirred check``: look before you draw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    table: Annotated[
        list[str] | None, typer.Option(help="Forecast this table, e.g. county,tenure. Repeatable.")
    ] = None,
    rates: Annotated[str | None, typer.Option(help="What if: swap rates, e.g. 0.01,0.05,0.5.")] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(help="What if: other variables, e.g. 'match=state,size;swap=county'. Repeatable."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Print the two rates that reach this epsilon.")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="Overrule a stop by its name. Repeatable.")] = None,
    specification: Annotated[
        Path | None, typer.Option(help="Write the guarantee that a release would state, for a ledger's limit.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a plan against its data. Draws nothing; what it prints is confidential. Exits with 2 if a release would
    stop."""
    from stirred.cli.common import is_topdown, names, write_new
    from stirred.releases.progress import OnTerminal
    from stirred.swap.checking import check as run
    from stirred.swap.plan import SwapPlan, exact_rate

    swapping = {"--table": table, "--rates": rates, "--candidate": candidate, "--epsilon": epsilon, "--allow": allow}
    if is_topdown(plan, swapping):
        _topdown(plan, specification, as_json)
        return
    read = SwapPlan.from_toml(plan, allow or ())
    with OnTerminal() as progress:
        found = run(
            read,
            tables=[names(by) for by in table or []],
            rates=[exact_rate(rate) for rate in names(rates or "")],
            candidates=[_candidate(text) for text in candidate or []],
            wanted_epsilon=epsilon,
            progress=progress,
        )
    if specification is not None:
        write_new(specification, found.specification.to_json())
    sys.stdout.write(found.to_json() if as_json else str(found))
    if found.blocking:
        raise typer.Exit(2)


def _topdown(plan: Path, specification: Path | None, as_json: bool) -> None:
    from stirred.cli.common import write_new
    from stirred.releases.progress import OnTerminal
    from stirred.topdown.checking import check as run
    from stirred.topdown.plan import TopDownPlan

    with OnTerminal() as progress:
        found = run(TopDownPlan.from_toml(plan), progress=progress)
    if specification is not None:
        write_new(specification, found.specification.to_json())
    sys.stdout.write(found.to_json() if as_json else str(found))
    if found.blocking:
        raise typer.Exit(2)


def _candidate(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from stirred import errors
    from stirred.cli.common import names

    written = [part.partition("=") for part in text.split(";")]
    parts = {role.strip(): names(columns) for role, _, columns in written}
    used = [name for columns in parts.values() for name in columns]
    unclear = len(parts) < len(written) or bool(set(parts) - {"match", "swap"}) or len(set(used)) < len(used)
    if unclear or not parts.get("swap"):
        raise errors.bad_candidate(text)
    return parts.get("match", ()), parts["swap"]
