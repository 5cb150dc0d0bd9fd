"""The record of the public registry that goes with a guarantee: of a known deployment, or of a release.

Keep in mind: a record states who published what and for which use; where nobody has said it, the record says "not
stated", and is a draft.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stirred import errors
from stirred.spec.known_deployments.deployments import Deployment
from stirred.spec.known_deployments.registry import details, mechanism_words, to_registry
from stirred.spec.specification import Specification

NOT_STATED = "not stated"


def of_deployment(known: Deployment) -> dict[str, Any]:
    """The part of a record that a known deployment brings; raises where nothing was released this way."""
    if known.kind != "deployment":
        raise errors.not_for_registry(f"'{known.name}'", "it is hypothetical, and nothing was released this way")
    sources = {"sources": "\n".join(f"- {source}" for source in known.sources)}
    notes = [f"- {erratum.id}: {erratum.explanation}" for erratum in known.errata] + [f"- {n}" for n in known.notes]
    record: dict[str, Any] = json.loads(json.dumps(known.registry))
    record["deployment"]["administrative"] = sources | ({"notes": "\n".join(notes)} if notes else {})
    return record


def of_certificate(certificate: Mapping[str, Any], specification: Specification) -> dict[str, Any]:
    """What a release's certificate adds: where its randomness came from, and the program that made it."""
    versions = certificate.get("versions", {})
    more = [f"randomness: {certificate.get('randomness', NOT_STATED)}"]
    more += [f"made with stirred {versions['stirred']}"] if "stirred" in versions else []
    mechanisms = mechanism_words(specification, more)
    return {"deployment": {"implementation": {"mechanisms": mechanisms}}} if mechanisms else {}


def together(known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Both records, section by section; what was given wins."""
    sections = known.get("deployment", {}), given["deployment"]
    names = {**sections[0], **sections[1]}
    return {
        **known,
        "deployment": {name: {**sections[0].get(name, {}), **sections[1].get(name, {})} for name in names},
    }


def draft(
    specification: Specification, known: Deployment | None = None, certificate: Mapping[str, Any] | None = None
) -> str:
    """The record as YAML; empty where there is none. What a release does not state is "not stated"."""
    stated = certificate or {}
    plan = stated.get("plan", {})
    try:
        if known is not None:
            return to_registry(specification, together(of_deployment(known), details(authors=[NOT_STATED])))
        if certificate is None:
            return ""
        given = details(
            name=str(plan.get("dataset") or NOT_STATED),
            curators=[str(plan.get("released_by") or NOT_STATED)],
            use=NOT_STATED,
            region=NOT_STATED,
            date=str(stated.get("released_on") or NOT_STATED),
            type="Dataset",
            authors=[NOT_STATED],
        )
        return to_registry(specification, together(of_certificate(stated, specification), given))
    except errors.StirredError:
        return ""
