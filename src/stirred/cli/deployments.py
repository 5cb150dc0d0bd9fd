"""``stirred deployments``: list or show the guarantees of known deployments."""

from __future__ import annotations

from typing import Annotated

import typer


def deployments(
    name: Annotated[str | None, typer.Argument(help="The deployment to show; without it, all are listed.")] = None,
) -> None:
    """List known deployments, or show one with its sources, published numbers and errata."""
    if name is not None:
        from stirred.cli.common import fitted
        from stirred.cli.compare import say_what_is_taken
        from stirred.spec.deployments import deployment

        found = deployment(name)
        say_what_is_taken(name)
        print(fitted(str(found)))
        return
    from stirred.spec.known import titles

    for known, title in titles().items():
        print(f"{known:38}{title}")
