"""``stirred verify``: check a release from its own files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import MostRows


def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    signers: Annotated[
        Path | None,
        typer.Option(help="A file of trusted keys (OpenSSH's allowed_signers): one of them must have signed."),
    ] = None,
    most_rows: MostRows = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a release from its own files: manifest, contents, invariants, budget, signature.

    Exits with 1 if anything fails.
    """
    from stirred.reports.releasing import verify as run

    verdicts = run(release, signers=signers, most_rows=most_rows)
    if as_json:
        print(json.dumps([asdict(verdict) for verdict in verdicts], indent=2, ensure_ascii=False))
    else:
        print(verdicts)
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)
