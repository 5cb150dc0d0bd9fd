"""``stirred verify``: check a release from its own files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stirred._received import plain


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
            print(f"{'holds ' if verdict.holds else 'FAILS '} {plain(verdict.words, 2_000)}")
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)
