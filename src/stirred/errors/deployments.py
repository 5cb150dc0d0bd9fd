"""Errors about deployments of which not everything is publicly stated."""

from __future__ import annotations

from stirred.errors.specifications import SpecificationError


def deployment_without_guarantee(name: str, missing: str, typed: str) -> SpecificationError:
    said = f"'stirred deployments {name}' shows them, with their sources."
    if typed:
        said += f" To see what the stated budget alone would mean, type '{typed}'; the rest is then your assumption."
    return SpecificationError(
        "deployment-without-guarantee",
        f"No specification follows from the facts that were found about '{name}'. Not stated in them: {missing}.",
        said,
    )
