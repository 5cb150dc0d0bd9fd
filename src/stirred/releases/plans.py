"""What the plan files of all mechanisms share: their head, where a table is, exact numbers, refusals in plain words.

A plan is TOML whose numbers are read as decimals, so that 0.05 is 1/20 and not the nearest binary fraction. Relative
paths in it are taken from the plan's own folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stirred import errors
from stirred.tables import InputOptions
from stirred.tables.inputs import TYPES

ChosenFrom = Literal["public", "earlier data", "this data"]
FileFormat = Literal["csv", "parquet", "arrow", "stata", "sas", "spss"]
Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


class Section(BaseModel):
    """A part of a plan: frozen, and without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class PlanSection(Section):
    """A whole plan: what pydantic finds wrong with it is refused in our words."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise errors.plan_field(
                [
                    f"{'.'.join(str(part) for part in entry['loc']) or 'plan'}: {entry['msg']}"
                    for entry in problem.errors()
                ]
            ) from None


class InputSection(Section):
    """Where a table is and how to read it."""

    path: str | None = None
    format: FileFormat | None = None
    types: Mapping[str, Literal[tuple(TYPES)]] = Field(default_factory=dict)  # type: ignore[valid-type]
    null_values: Names = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    quotes: bool = True

    def options(self) -> InputOptions:
        return InputOptions(self.format, dict(self.types), self.null_values, self.delimiter, self.encoding, self.quotes)


def mechanism_of(path: str | Path) -> str | None:
    """The mechanism that a plan file names."""
    named = _read(Path(path)).get("mechanism")
    return named if isinstance(named, str) else None


def read_plan(path: str | Path, mechanism: str) -> dict[str, Any]:
    """The fields of a plan file for this mechanism, without its head."""
    fields = _read(Path(path))
    if (version := fields.pop("stirred", None)) != 1:
        raise errors.plan_version(version)
    if (named := fields.pop("mechanism", None)) != mechanism:
        raise errors.plan_mechanism(named)
    return fields


def beside(path: str | Path, sections: Iterable[Any]) -> None:
    """Take the relative paths of input sections from the folder of the plan at ``path``."""
    for section in sections:
        if isinstance(section, dict) and isinstance(section.get("path"), str):
            section["path"] = str(Path(path).parent / section["path"])


def dicts(value: Any) -> list[dict[str, Any]]:
    """The tables of an array of tables, whatever else somebody wrote there."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def hash_of(published: Mapping[str, Any]) -> str:
    """SHA-256 of a plan's published form, keys sorted."""
    return hashlib.sha256(json.dumps(published, sort_keys=True).encode()).hexdigest()


def as_toml(fields: Mapping[str, Any]) -> str:
    """Fields of a plan as a file: a section for each table, and what is inside it on lines of their own.

    >>> shares = {"x y": "1/2"}
    >>> print(as_toml({"stirred": 1, "spine": {"levels": ["county"]}, "tables": [{"name": "a", "shares": shares}]}))
    stirred = 1
    <BLANKLINE>
    [spine]
    levels = ["county"]
    <BLANKLINE>
    [[tables]]
    name = "a"
    shares = {"x y" = "1/2"}
    <BLANKLINE>
    """
    plain, sections = [], []
    for key, value in fields.items():
        if isinstance(value, Mapping):
            sections.append((f"[{_key(key)}]", value))
        elif value and isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value):
            sections += [(f"[[{_key(key)}]]", one) for one in value]
        else:
            plain.append(f"{_key(key)} = {_value(value)}")
    texts = ["\n".join(plain)]
    texts += [
        "\n".join([head, *(f"{_key(key)} = {_value(one)}" for key, one in part.items())]) for head, part in sections
    ]
    return "\n\n".join(text for text in texts if text) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        if value and all(isinstance(one, Mapping) for one in value):
            return "[\n" + "".join(f"  {_value(one)},\n" for one in value) + "]"
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, UnicodeError):
        raise errors.plan_unreadable(path) from None
    except tomllib.TOMLDecodeError as problem:
        raise errors.plan_not_toml(path, str(problem)) from None
