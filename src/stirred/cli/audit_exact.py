"""``stirred audit exact``: the true loss of a swap of one stratum, computed from all tables with its margins."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stirred import errors


def exact(
    held: Annotated[
        str, typer.Option(help="The number of records with each value of the held variables, such as 10,10.")
    ],
    swapped: Annotated[
        str, typer.Option(help="The number of records with each value of the swapped variables, such as 5,5,10.")
    ],
    rate: Annotated[str, typer.Option(help="The swap rate, such as 0.05 or 1/20.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Compute the exact privacy loss of a swap of one stratum (records with equal match variables), and compare it with
    the epsilon of the theorem. Needs counts only; no data are read."""
    from stirred.audit.exact import exact_audit

    audit = exact_audit(_totals("--held", held), _totals("--swapped", swapped), rate)
    sys.stdout.write(audit.to_json() if as_json else f"{audit}\n")


def _totals(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.audit_question(option, "must be whole numbers with commas between them, such as 10,10") from None
