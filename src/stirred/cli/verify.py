"""``stirred verify``: check a release from its own files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a release from its own files: manifest, columns, invariants, budget. Exits with 1 if anything fails."""
    from stirred.verbs import verify as run

    verdicts = run(release)
    if as_json:
        print(json.dumps([asdict(verdict) for verdict in verdicts], indent=2, ensure_ascii=False))
    else:
        for verdict in verdicts:
            print(f"{'note ' if verdict.note else 'holds' if verdict.holds else 'FAILS'}  {verdict.words}")
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)
