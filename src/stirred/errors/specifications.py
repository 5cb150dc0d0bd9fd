"""Errors about specifications, deployments, records of the public registry, and guarantees typed by hand.

Impossible blocks, files that are not specifications, steps that no rule covers, and what is not publicly stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stirred.errors.kinds import StirredError, listed


class SpecificationError(StirredError):
    """Something is not a valid specification, or a question about one has no known answer."""


def bad_number(what: str, value: Any) -> SpecificationError:
    return SpecificationError(
        "bad-number",
        f"{what} cannot be {value!r}.",
        "Give a number from 0 on, a quotient such as '1/3', or 'infinity'.",
    )


def decimal_comma(what: str, value: str) -> SpecificationError:
    whole, _, decimals = value.strip().partition(",")
    point = f"{whole}.{decimals}"
    thousands = f", or {whole}{decimals} if thousands were meant" if len(decimals) == 3 and whole != "0" else ""
    return SpecificationError(
        "decimal-comma",
        f"{what} cannot be '{value}', with a comma.",
        f"Decimals follow a point: write {point}{thousands}.",
    )


def bad_block(what: str, must: str) -> SpecificationError:
    return SpecificationError("bad-block", f"{what} {must}.", "Correct this block of the specification.")


def strange_datasets(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "strange-datasets",
        f"The universes or distances speak of {listed(names)}, which the domain does not have.",
        "A mechanism, its domain and its distances must be about the same datasets (Remark 2.4.7).",
    )


def cannot_evaluate(what: str) -> SpecificationError:
    return SpecificationError(
        "cannot-evaluate",
        f"Cannot evaluate {what}: only its name is known.",
        "List the datasets and their distances (InputPremetric.measured, InputPremetric.related).",
    )


def not_a_specification(reason: str, plan: object = None) -> SpecificationError:
    """``plan``: the path of a plan that was given in place of a specification."""
    if plan is not None:
        return SpecificationError(
            "not-a-specification",
            "This is a plan, not a specification.",
            f"stirred report {plan} explains it; or write its specification to a file first: stirred check {plan} "
            "--specification FILE",
        )
    return SpecificationError(
        "not-a-specification",
        f"This is not a specification: {reason}.",
        "docs/specification.schema.json describes the format (stirred docs specification.schema).",
    )


def not_an_allocation(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-an-allocation",
        f"This file does not divide a budget among levels and queries: {reason}.",
        "docs/semantics.md shows the format (stirred docs semantics).",
    )


def allocation_unit(unit: str, units: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "allocation-unit",
        f"The specification protects a {unit}; the allocation divides budgets of {listed(units)}.",
        "Give the specification of one of those, or use the same name of the unit in both.",
    )


def bad_concern(must: str) -> SpecificationError:
    return SpecificationError("bad-concern", f"A concern {must}.", "Write for instance 'cenrace + block within tract'.")


def no_rule(what: str, reason: str, remedy: str) -> SpecificationError:
    return SpecificationError("no-rule", f"No rule is known for {what}: {reason}.", remedy)


def not_listed() -> SpecificationError:
    return SpecificationError(
        "not-listed",
        "The datasets of this flavor, their distances or their universes are not listed.",
        "Name small datasets to evaluate it on (stirred.spec.order.finite_flavors.explicit), or list them in its "
        "blocks.",
    )


def not_a_mechanism(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-a-mechanism",
        f"This is not a mechanism: {reason}.",
        "Give each dataset, once, the probabilities of all outputs: at least 0, with sum 1.",
    )


def different_datasets(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "different-datasets",
        f"Only one of the two is about {listed(names)}.",
        "A mechanism and the flavor that it is compared with must be about the same datasets (Remark 2.4.7).",
    )


def not_a_partition() -> SpecificationError:
    return SpecificationError(
        "not-a-partition",
        "These groups of outputs are not a partition of the mechanism's outputs.",
        "Put every output into one group, and into one only.",
    )


def deployment_without_guarantee(name: str, missing: str, typed: str) -> SpecificationError:
    said = f"'stirred deployments {name}' shows them, with their sources."
    if typed:
        said += f" To see what the stated budget alone would mean, type '{typed}'; the rest is then your assumption."
    return SpecificationError(
        "deployment-without-guarantee",
        f"No specification follows from the facts that were found about '{name}'. Not stated in them: {missing}.",
        said,
    )


def unknown_deployment(name: str, close: Sequence[str]) -> SpecificationError:
    remedy = f"Did you mean {listed(close, 'or')}? " if close else ""
    return SpecificationError(
        "unknown-deployment",
        f"There is no deployment '{name}'.",
        remedy + "'stirred deployments' lists all.",
    )


def not_a_registry_record(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-a-registry-record",
        f"This is not a record of the deployments registry: {reason}.",
        "A record is YAML with url_slug, status, tier and deployment.",
    )


def registry_field(place: str, must: str) -> SpecificationError:
    return SpecificationError(
        "registry-field",
        f"'{place}' of the registry record {must}.",
        "Correct the field; the registry's schema says what each may be.",
    )


def registry_without_guarantee(reason: str) -> SpecificationError:
    return SpecificationError(
        "registry-without-guarantee",
        f"No specification follows from this registry record: {reason}.",
        "Complete its dp_variant and privacy_loss, or write the specification by hand.",
    )


def registry_details_missing(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "registry-details-missing",
        f"A registry record needs {listed(names)}, which the specification does not contain.",
        "Give them: on the command line as " + ", ".join(f"--{name}" for name in names) + ".",
    )


def not_for_registry(what: str, reason: str) -> SpecificationError:
    return SpecificationError(
        "not-for-registry", f"{what} is not for the registry: {reason}.", "The registry lists what was released."
    )


def nothing_to_load(text: str, close: Sequence[str]) -> SpecificationError:
    remedy = f"Did you mean {listed(close, 'or')}? " if close else ""
    return SpecificationError(
        "nothing-to-load",
        f"'{text}' names no specification.",
        remedy
        + "Accepted are the name of a known deployment, a specification.json, a release folder, a registry record "
        "(.yaml), or blocks typed by hand such as 'rho=2.63' or 'epsilon=1,delta=1e-6,unit=household,unbounded'.",
    )


def bad_shorthand(text: str, reason: str) -> SpecificationError:
    return SpecificationError(
        "bad-shorthand",
        f"'{text}' cannot be read as a specification: {reason}.",
        "Write rho=R, epsilon=E, epsilon=E,delta=D, epsilon=E,alpha=A or mu=M, then if wished unit=NAME, bounded or "
        "unbounded, ordered or unordered, separated by commas.",
    )
