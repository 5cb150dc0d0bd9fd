"""``stirred lint``: list findings about a guarantee."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import Annotated

import typer

from stirred.cli.compare import WHAT, read_named
from stirred.cli.completing import complete_names


def lint(
    specification: Annotated[str, typer.Argument(help=WHAT, autocompletion=complete_names)],
    before: Annotated[
        str | None,
        typer.Option(
            help="Another guarantee, such as an earlier one: also list in what the first is weaker. Accepts the same "
            "as SPECIFICATION."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """List weaknesses of a guarantee: what it leaves out, and choices that make its number look smaller than it is."""
    from stirred.cli.common import fitted
    from stirred.spec.linting.findings import lint as run

    read = read_named(specification)
    findings = run(read, before=read_named(before) if before else None)
    if as_json:
        print(json.dumps({"stirred_lint": 1, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return
    print(fitted(str(read)))
    for finding in findings:
        print("\n" + textwrap.fill(f"{finding.id}: {finding.words}", 110))
        print(textwrap.indent(textwrap.fill(f"{finding.why} [{finding.source}]", 106), "    "))
    if not findings:
        print("\nNo findings.")
