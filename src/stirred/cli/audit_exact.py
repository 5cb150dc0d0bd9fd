"""``stirred audit exact``: the true loss of a swap of one stratum, computed from all tables with its margins."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stirred import errors


def exact(
    held: Annotated[str, typer.Option(help="Numbers of records by held value, such as 10,10.")],
    swapped: Annotated[str, typer.Option(help="Numbers of records by swap value, such as 5,5,10.")],
    rate: Annotated[str, typer.Option(help="The swap rate, such as 0.05 or 1/20.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the true loss of a swap of one stratum beside the theorem's epsilon. Reads no data: margins are enough."""
    from stirred.audit.exact import exact_audit

    audit = exact_audit(_totals("--held", held), _totals("--swapped", swapped), rate)
    sys.stdout.write(audit.to_json() if as_json else f"{audit}\n")


def _totals(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.audit_question(option, "must be whole numbers with commas between them, such as 10,10") from None
