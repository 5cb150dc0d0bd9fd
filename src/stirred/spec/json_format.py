"""Specifications as JSON: a version, the five blocks, and a published schema that says what each field may be."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stirred import _received, errors
from stirred.spec.blocks import Domain, InputPremetric, Multiverse
from stirred.spec.invariant import Invariant
from stirred.spec.premetrics import Budget, OutputPremetric
from stirred.spec.specification import Finding, Specification

KEY = "stirred_specification"
FORMAT_VERSION = 2
"""Version of the JSON format. Version 1 had words only and was never released."""

MOST_ENTRIES = 1_000
"""How many entries a list of a specification may have: invariants, findings, variables."""
MOST_LISTED = {"datasets": 200, "distances": 200 * 199, "variables": 100_000, "by": 100_000}
"""The same for the datasets of a finite domain, among which shortest paths are looked for, and their distances; and for
names of variables, of which a wide file has thousands."""
MOST_TEXT = 20_000
"""How many characters a text of a specification may have,"""
MOST_WORDS = 2_000_000
"""and how many a sentence or a fact, which may name all variables of a wide file."""

for _class in (Domain, Invariant, Multiverse, InputPremetric, OutputPremetric, Budget, Finding, Specification):
    _class.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[union-attr]


@cache
def _adapter() -> TypeAdapter[Specification]:
    return TypeAdapter(Specification)


def to_json(specification: Specification) -> str:
    """The text of a specification; :func:`from_json` gives it back."""
    fields = {KEY: FORMAT_VERSION} | _adapter().dump_python(specification, mode="json")
    if not specification.input_premetric.stays_in:
        del fields["input_premetric"]["stays_in"]  # version 0.1 does not know the field
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str | bytes) -> Specification:
    """Read a specification, or say what is wrong with it."""
    try:
        fields = _received.parse_json(text)
    except _received.Unacceptable as problem:
        raise errors.not_a_specification(str(problem)) from None
    if not isinstance(fields, dict) or KEY not in fields:
        raise errors.not_a_specification(f"the field '{KEY}' with the format version is missing")
    return from_fields(fields)


def from_fields(fields: dict[str, Any]) -> Specification:
    """Read a specification from JSON that has been parsed."""
    version = fields.get(KEY)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise errors.specification_version(version, FORMAT_VERSION)
    _require_modest(fields, "")
    if (place := _received.where_controls(fields)) is not None:
        raise errors.not_a_specification(f"'{place}' has line breaks or control characters")
    try:
        return _adapter().validate_python({name: value for name, value in fields.items() if name != KEY})
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise errors.not_a_specification(f"'{place}': {first['msg']}") from None


def _require_modest(value: Any, name: str) -> None:
    """Raise if a list or a text is longer than any that is meant: work on some grows with the square of their length.

    How deep ``value`` is nested was bounded when it was parsed.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            _require_modest(inner, str(key))
    elif isinstance(value, list | tuple):
        most = MOST_LISTED.get(name, MOST_ENTRIES)
        if len(value) > most:
            raise errors.not_a_specification(f"'{name}' has {len(value):,} entries, and at most {most:,} are read")
        for inner in value:
            _require_modest(inner, "")
    elif isinstance(value, str):
        most = MOST_WORDS if name in ("words", "conversion", "") else MOST_TEXT
        if len(value) > most:
            raise errors.not_a_specification(f"'{name}' has a text of more than {most:,} characters")


def schema() -> dict[str, Any]:
    """The JSON schema of this format, as published in ``docs/specification.schema.json``."""
    described = _adapter().json_schema(mode="serialization")
    properties = {KEY: {"const": FORMAT_VERSION, "description": "Version of this format."}} | described["properties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "A specification of a privacy guarantee",
        "description": described["description"].splitlines()[0],
        "properties": properties,
        "required": [KEY, *described["required"]],
    }
