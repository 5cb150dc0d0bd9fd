"""What the plans of all mechanisms share: common fields, inputs, reading and writing TOML, errors in plain words.

A plan file is TOML whose numbers are read as decimals, so that 0.05 is 1/20 and not the nearest binary fraction.
Relative paths in it are taken from the plan's own folder. A plan is public but for where the data lie;
:meth:`Plan.published` is the part that a release states.

A plan file of an earlier version is brought to the present form without a change of what it means: fields that have
another name now are renamed, and fields that somebody decides (``Plan.decided``) are written out with the value that
the plan had by leaving them out. The rest of the file stays as it is, comments included. The invariant a reader must
know: the text that is returned is read again, and is the same plan.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import tomli_w
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stirred import _bounded_reading, errors
from stirred._bounded_reading import where_controls
from stirred.releases.context import Context
from stirred.spec import facts
from stirred.tables import InputOptions
from stirred.tables.reading.inputs import TYPES

FORM = 1
"""The version of the plan format that this version writes."""
STUDY_FORM = 1
"""The version of the format of study files, which name plans; the laboratory reads them."""
HEAD = ("stirred", "mechanism")
"""The two lines with which every plan file begins."""
PROSE = ("licence", "released_by")
"""Fields that may have several lines; all others are names, and are printed beside verdicts."""
MOST_NAMES = 10_000
"""How many columns, values or texts a list of names in a plan may have."""
MOST_SECTIONS = 1_000
"""How many tables, attributes, queries, invariants and the like a plan may have of each."""
ChosenFrom = Literal["public", "earlier data", "this data"]
LookedAt = Literal["nothing", "types and formats", "values"]
FileFormat = Literal["csv", "parquet", "arrow", "stata", "sas", "spss"]
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    Field(max_length=MOST_NAMES),
]


def _said(given: str) -> str:
    if not given.strip():
        raise ValueError("it is empty; say what one record is: household, person, business ...")
    return given


Unit = Annotated[str, AfterValidator(_said)]
"""What one protected record is, in words."""


class Section(BaseModel):
    """A part of a plan: frozen; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def field_problems(section: type[BaseModel], problem: ValidationError) -> list[str]:
    """What is wrong with which field, in words; of a field that does not exist the name that may have been meant."""
    found = []
    for entry in problem.errors():
        place = ".".join(str(part) for part in entry["loc"]) or "plan"
        words = entry["msg"].removeprefix("Value error, ")
        if entry["type"] == "extra_forbidden":
            *path, name = entry["loc"]
            close = difflib.get_close_matches(str(name), _fields_at(section, path), 1)
            words = "there is no such field" + (f" (did you mean {close[0]}?)" if close else "")
        found.append(f"{place}: {words}")
    return found


def _fields_at(section: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The fields of the part of a plan that a path leads to; of all its forms where it may have several."""
    here = [section]
    for part in path:
        inside = [
            one.model_fields[part].annotation for one in here if isinstance(part, str) and part in one.model_fields
        ]
        here = [model for annotation in inside for model in _sections_in(annotation)] or here
    return sorted({name for one in here for name in one.model_fields})


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for one in get_args(annotation) for model in _sections_in(one)]


class Plan(Section):
    """The fields that every mechanism's plan has, and what can be done with every plan."""

    mechanism: ClassVar[str]
    """The name of the mechanism in plan files and certificates."""
    page: ClassVar[str] = "plans"
    """The page of the documentation that explains the fields."""
    earlier_names: ClassVar[Mapping[str, str]] = {}
    """Field names of earlier versions that are still read, with today's names."""
    decided: ClassVar[Mapping[str, str]] = {
        "dataset": "a name that may be published, the same in all plans of these data and in their ledger",
        "unit": "what one row is: household, person, business ...",
        "chosen_from": '"public", "earlier data" or "this data": where the choices came from',
    }
    """Fields that somebody decides and an earlier plan may leave out, with what they mean."""
    private: ClassVar[frozenset[str]] = frozenset({"input", "format"})
    """Fields that a release does not state: where the input is and how it is stored."""

    dataset: str | None = None
    """The name of the confidential dataset, as its ledger has it."""
    unit: Unit = "record"
    """What one protected record is: a household, a person, a business."""
    chosen_from: ChosenFrom | None = None
    """Where the choices in the plan came from; choosing by this data voids the guarantee."""
    looked_at: LookedAt | None = None
    """What of this data was looked at to make them. With types and formats the guarantee holds given these; values void
    it, and ``chosen_from = "this data"`` means values."""
    format: Literal["csv", "parquet", "arrow"] | None = None
    """The file format of the released microdata; by default that of the input."""
    licence: str | None = None
    """The licence under which the released data may be used."""
    released_by: str | None = None
    """Who releases the data: an office, a person, an address."""
    context: Context | None = None
    """Answers about the five safes and contextual integrity; printed beside the guarantee, never scored."""

    def __init__(self, **fields: Any) -> None:
        for old, new in self.earlier_names.items():
            if old in fields and new in fields:
                raise errors.plan_field([f"{old}: is an earlier name of {new}; write {new} only"])
            if old in fields:
                fields[new] = fields.pop(old)
        if (place := where_controls({key: value for key, value in fields.items() if key not in PROSE})) is not None:
            raise errors.plan_field([f"{place}: has line breaks or control characters"])
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise errors.plan_field(field_problems(type(self), problem), self.page) from None

        if (self.chosen_from, self.looked_at) == (facts.THIS_DATA, "nothing"):
            raise errors.plan_field(['looked_at: is "nothing", but chosen_from says that choices came from this data'])

    def origin(self) -> dict[str, str]:
        """Where the plan's choices came from, as facts of its guarantee; what is not stated is left out."""
        stated = {facts.PARAMETERS_FROM: self.chosen_from, facts.LOOKED_AT: self.looked_at}
        return {name: value for name, value in stated.items() if value is not None}

    @classmethod
    def input_sections(cls, fields: Mapping[str, Any]) -> list[Any]:
        """The parts of a plan file's fields whose ``path`` is relative to the plan's folder."""
        return [fields.get("input")]

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a plan file; relative paths in it are taken from the plan's own folder."""
        return cls(**cls.fields_of(path))

    @classmethod
    def fields_of(cls, path: str | Path) -> dict[str, Any]:
        """The fields of a plan file, with absolute paths."""
        return cls.placed(read_plan(path, cls.mechanism), Path(path).parent)

    @classmethod
    def placed(cls, fields: dict[str, Any], folder: Path) -> dict[str, Any]:
        """The fields of a plan file in ``folder``, with absolute paths."""
        for section in cls.input_sections(fields):
            if isinstance(section, dict) and isinstance(section.get("path"), str):
                section["path"] = str(folder / section["path"])
        return fields

    def to_toml(self) -> str:
        """The plan as a file that :meth:`from_toml` reads."""
        return tomli_w.dumps(self._with_head(self.model_dump(mode="json", exclude_defaults=True)))

    def published(self) -> dict[str, Any]:
        """The plan as a release states it: without where the input is or how it is stored."""
        return self._with_head(self.model_dump(mode="json", exclude=set(self.private), exclude_defaults=True))

    @classmethod
    def from_published(cls, fields: Mapping[str, Any]) -> Self:
        """The plan that a release states."""
        return cls(**{key: value for key, value in fields.items() if key not in HEAD})

    def hash(self) -> str:
        """SHA-256 of the published plan, keys sorted."""
        return hash_of(self.published())

    def _with_head(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"stirred": FORM, "mechanism": self.mechanism, **fields}


class InputSection(Section):
    """Where a table is and how to read it."""

    path: str | None = None
    format: FileFormat | None = None
    types: Mapping[str, Literal[tuple(TYPES)]] = Field(default_factory=dict)  # type: ignore[valid-type]
    null_values: Names = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    quotes: bool = True
    decimal: Literal[".", ","] = "."
    header: bool | None = None
    names: Names = ()

    def options(self) -> InputOptions:
        """How to read the file."""
        return InputOptions(**{one.name: getattr(self, one.name) for one in dataclass_fields(InputOptions)})


def text_beside(plan: Plan, path: str | Path) -> str:
    """A plan as a file to be written at ``path``: paths in it are relative to its folder where that is possible."""
    fields = tomllib.loads(plan.to_toml())
    for section in plan.input_sections(fields):
        if isinstance(section, dict) and isinstance(section.get("path"), str):
            with contextlib.suppress(ValueError):  # another drive
                section["path"] = os.path.relpath(section["path"], Path(path).absolute().parent)
    return tomli_w.dumps(fields)


def mechanism_of(path: str | Path) -> object:
    """The mechanism that a plan file names; it may be unknown, or not even a text."""
    fields = _read(Path(path))
    if (version := fields.get("stirred")) != FORM:
        raise errors.PlanError(
            "plan-version",
            f"The plan says stirred = {version!r}; this version reads plans of format version 1.",
            "Write stirred = 1 at the top of the plan.",
        )
    return fields.get("mechanism")


def read_plan(path: str | Path, mechanism: str) -> dict[str, Any]:
    """The fields of a plan file for this mechanism, without ``stirred`` and ``mechanism``."""
    if (named := mechanism_of(path)) != mechanism:
        raise errors.plan_mechanism(named, [mechanism])
    return {key: value for key, value in _read(Path(path)).items() if key not in HEAD}


def by_table(data: object, main: str, others: Sequence[str]) -> dict[str, Any]:
    """Data as a mapping from the names of tables; a single path or frame is that of the ``main`` table."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        return {main: data}
    known = [main, *others]
    for name in data:
        if name not in known:
            raise errors.unknown_choice("table", str(name), known)
    return dict(data)


def slug(text: object) -> str:
    """A name made safe for file names."""
    return re.sub(r"\W+", "_", str(text))


def dicts(value: Any) -> list[dict[str, Any]]:
    """The entries of a TOML array that are tables; others are left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def hash_of(published: Mapping[str, Any]) -> str:
    """SHA-256 of a published plan, keys sorted."""
    return hashlib.sha256(json.dumps(published, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        text = _bounded_reading.read_typed(path)
        return _bounded_reading.parse_toml(text)
    except tomllib.TOMLDecodeError as problem:
        if text.lstrip().startswith("{"):  # no TOML begins like this
            raise errors.PlanError(
                "plan-in-json",
                f"{path} is JSON, and a plan is written in TOML.",
                'Write each field on a line of its own, such as rate = 0.05 or swap = ["county"], without braces '
                "around them; stirred init FILE drafts a plan, and stirred docs plans shows one.",
            ) from None
        raise errors.PlanError(
            "plan-not-toml", f"{path} is not valid TOML ({problem}).", "Correct the file and try again."
        ) from None
    except _bounded_reading.Unacceptable as problem:
        raise errors.PlanError(
            "plan-unacceptable",
            f"{path} cannot be read as a plan: {problem}.",
            "Correct the file. stirred docs bounds lists how large a plan may be.",
        ) from None
    except (OSError, ValueError):
        raise errors.PlanError(
            "plan-unreadable",
            f"There is no plan at {path}, or it cannot be read.",
            "Correct the path, or draft a plan with: stirred init FILE --out PLAN",
        ) from None


@dataclass(frozen=True)
class Upgraded:
    """A plan in the present form."""

    text: str
    changes: tuple[str, ...]
    """What is written otherwise than before, a line each."""


def upgrade(kind: type[Plan], path: Path, folder: Path) -> Upgraded:
    """The plan file at ``path``, a plan of this kind, as it is to be written into ``folder``."""
    before = kind.from_toml(path)
    text = _bounded_reading.read_typed(path)
    written = _bounded_reading.parse_toml(text)
    changes = []
    for old, new in kind.earlier_names.items():
        if old in written:
            text = _renamed(text, old, new)
            changes.append(f"{old} is called {new} now")
    lines = []
    for field, words in kind.decided.items():
        if field in written or re.search(rf"(?m)^[ \t]*#[ \t]*{field}[ \t]*=", text):
            continue
        value = kind.model_fields[field].default
        if value is None:
            lines.append(f"# {field} = ...".ljust(27) + f"# not stated: {words}")
            changes.append(f"{field} is not stated; a comment says what it would be")
        else:
            shown = json.dumps(str(value)) if isinstance(value, Fraction | str) else json.dumps(value)
            lines.append(f"{field} = {shown}".ljust(27) + f"# {words}")
            changes.append(f"{field} = {shown} is written out: what the plan meant without it")
    text = _inserted(text, lines) if lines else text
    fields = {key: value for key, value in _bounded_reading.parse_toml(text).items() if key not in HEAD}
    if set(kind.earlier_names) & set(fields) or kind(**kind.placed(fields, folder)) != before:
        raise errors.PlanError(
            "plan-not-upgraded",
            f"{path} cannot be brought to the present form without a change of what it means.",
            "Write the new plan into the same folder, since paths in a plan are relative to it. If it is there, "
            "rename by hand what has another name now: publish was called tables in swapping plans, and asked in "
            "TopDown plans.",
        )
    return Upgraded(text, tuple(changes))


def _renamed(text: str, old: str, new: str) -> str:
    """The text with a field of the plan, or its sections, under another name."""
    bare, end = _bare(text), _end_of_fields(text)
    for found in reversed(list(re.finditer(rf"(?m)^[ \t]*(\[\[?[ \t]*)?({old})(?=[ \t]*[].=])", bare))):
        if found[1] or found.start() < end:
            text = text[: found.start(2)] + new + text[found.end(2) :]
    return text


def _inserted(text: str, lines: list[str]) -> str:
    """The text with lines after the last field that stands before all sections."""
    kept = _bare(text)[: _end_of_fields(text)].rstrip()
    at = text.find("\n", len(kept))
    first, rest = (text, "") if at < 0 else (text[:at], text[at:])
    return "\n".join([first, "", "# Left to what is usual by the plan so far; decide on them.", *lines]) + (
        rest or "\n"
    )


def _end_of_fields(text: str) -> int:
    """Where the first section begins: a header at the start of a line, outside of any list."""
    depth = at = 0
    for line in _bare(text).splitlines(keepends=True):
        if depth == 0 and line.lstrip().startswith("["):
            return at
        depth += sum(line.count(sign) for sign in "[{") - sum(line.count(sign) for sign in "]}")
        at += len(line)
    return len(text)


def _bare(text: str) -> str:
    """The text with blanks for what is in quotes or a comment, so that places in it are the same."""
    return _bounded_reading.TOML_QUOTED.sub(
        lambda found: re.sub(r"[^\n]", "_" if found[0][0] != "#" else " ", found[0]), text
    )
