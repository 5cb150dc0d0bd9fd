"""Specifications as JSON: a version, the five blocks, and a published schema that says what each field may be."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stirred import errors
from stirred.spec.blocks import Domain, InputPremetric, Multiverse
from stirred.spec.invariant import Invariant
from stirred.spec.premetrics import Budget, OutputPremetric
from stirred.spec.specification import Finding, Specification

KEY = "stirred_specification"
FORMAT_VERSION = 2
"""Version of the JSON format. Version 1 had words only and was never released."""

for _class in (Domain, Invariant, Multiverse, InputPremetric, OutputPremetric, Budget, Finding, Specification):
    _class.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[union-attr]


@cache
def _adapter() -> TypeAdapter[Specification]:
    return TypeAdapter(Specification)


def to_json(specification: Specification) -> str:
    """The text of a specification; :func:`from_json` gives it back."""
    fields = {KEY: FORMAT_VERSION} | _adapter().dump_python(specification, mode="json")
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str | bytes) -> Specification:
    """Read a specification, or say what is wrong with it."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise errors.not_a_specification("it is not JSON") from None
    if not isinstance(fields, dict) or KEY not in fields:
        raise errors.not_a_specification(f"the field '{KEY}' with the format version is missing")
    return from_fields(fields)


def from_fields(fields: dict[str, Any]) -> Specification:
    """Read a specification from JSON that has been parsed."""
    version = fields.get(KEY)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise errors.specification_version(version, FORMAT_VERSION)
    try:
        return _adapter().validate_python({name: value for name, value in fields.items() if name != KEY})
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise errors.not_a_specification(f"'{place}': {first['msg']}") from None


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
