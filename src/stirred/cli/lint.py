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
        str | None, typer.Option(help="An earlier or rival guarantee; also lists what is weaker than in it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List findings about a guarantee: what its parts leave out, and what may make its number look small."""
    from stirred.cli.common import fitted
    from stirred.spec.linting import lint as run

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
