"""Errors about names of deployments, records of the public registry, and specifications typed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import listed
from stirred.errors.specifications import SpecificationError


def unknown_deployment(name: str, close: Sequence[str]) -> SpecificationError:
    remedy = f"Did you mean {listed(close, 'or')}? " if close else ""
    return SpecificationError(
        "unknown-deployment",
        f"There is no deployment '{name}'.",
        remedy + "'stirred deployments' lists all.",
    )


def several_deployments(text: str, names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "several-deployments",
        f"'{text}' is the beginning of {len(names)} names of deployments.",
        f"Choose one: {listed(names, 'or')}; 'stirred deployments' says what each is.",
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


def registry_contradicts(field: str, record: str, specification: str) -> SpecificationError:
    return SpecificationError(
        "registry-contradicts",
        f"The registry record has {field} {record}, the specification {specification}.",
        "Export the specification that the record describes, or correct one of the two.",
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


def number_alone(text: str) -> SpecificationError:
    return SpecificationError(
        "number-alone",
        f"'{text}' is a number, and does not say of which budget.",
        f"Say which budget it is: 'rho={text}', 'epsilon={text}' or 'epsilon={text},delta=1e-6'.",
    )


def bad_shorthand(text: str, reason: str) -> SpecificationError:
    return SpecificationError(
        "bad-shorthand",
        f"'{text}' cannot be read as a specification: {reason}.",
        "Write rho=R, epsilon=E, epsilon=E,delta=D, epsilon=E,alpha=A or mu=M, then if wished unit=NAME, bounded or "
        "unbounded, ordered or unordered, separated by commas.",
    )
