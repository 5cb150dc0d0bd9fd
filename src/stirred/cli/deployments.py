"""``stirred deployments``: the guarantees of known deployments."""

from __future__ import annotations

from typing import Annotated

import typer


def deployments(
    name: Annotated[str | None, typer.Argument(help="One of them; without it, all are listed.")] = None,
) -> None:
    """List known deployments, or show one with its sources, published numbers and errata."""
    from stirred.cli.common import fitted
    from stirred.spec.deployments import deployment, names

    if name is not None:
        print(fitted(str(deployment(name))))
        return
    for known in names():
        print(f"{known:38}{deployment(known).title}")
