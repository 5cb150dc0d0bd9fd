"""Studies as files: which data, which plans and swappers, which tables, how many draws.

A study file is TOML. Relative paths are taken from the file's own folder. Unknown fields, kinds and columns are errors
with the name of what is wrong; the fields of a swapper are the parameters of its class.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stirred import _bounded_reading, errors
from stirred._fractions import as_fraction
from stirred._progress import Progress
from stirred.errors import StirredError
from stirred.lab.study.side_by_side import DRAWS, Asked, Study, study
from stirred.lab.study.study_data import GENERATED, RECORDS, StudyData, from_files, generated
from stirred.lab.study.swappers.permutation_variants import (
    AcrossStrata,
    FrozenImputed,
    NoVacuousSwaps,
    PerturbedSwap,
    RatesByRisk,
)
from stirred.lab.study.swappers.simulated import Swapper
from stirred.lab.study.swappers.targeted import RecordSwap, Targeted2010
from stirred.mechanisms import named
from stirred.releases.plans import STUDY_FORM, InputSection, Plan, field_problems, mechanism_of
from stirred.tables import InputOptions

KINDS: Mapping[str, type] = {
    "targeted-2010": Targeted2010,
    "record-swap": RecordSwap,
    "permutation-by-risk": RatesByRisk,
    "permutation-frozen": FrozenImputed,
    "permutation-no-vacuous": NoVacuousSwaps,
    "permutation-across": AcrossStrata,
    "permutation-perturbed": PerturbedSwap,
}
"""Kinds of swappers, by the name that a study file uses."""
_FIELDS = {"stirred_study", "draws", "seed", "tables", "unique_on", "data", "plan", "swapper"}
_DATA = {
    "generated",
    "scale",
    "persons",
    "states",
    "seed",
    "files",
    "main",
    "geography",
    "id",
    "links",
    "ids",
    "repeated",
    "input",
}


@dataclass(frozen=True)
class StudyPlan:
    """A study as its file says it; data are read when it runs."""

    path: Path
    contenders: Mapping[str, Plan | Swapper]
    data: Mapping[str, Any]
    tables: tuple[Asked | tuple[str, ...], ...]
    draws: int
    unique_on: tuple[str, ...]
    seed: int | None


def read_study(path: str | Path, plans: Sequence[str | Path] = ()) -> StudyPlan:
    """Read a study file; ``plans`` are further plan files that join it."""
    path = Path(path)
    given = _read(path)
    if "stirred" in given and "stirred_study" not in given:
        raise errors.StudyError(
            "study-file",
            f"{path} is a plan, not a study; name it under [[plan]] or after the study.",
            "For example: stirred study study.toml plan.toml. docs/studies.md (stirred docs studies) has a study to "
            "copy.",
        )
    _known(path, given, _FIELDS, "")
    if given.get("stirred_study") != STUDY_FORM:
        raise errors.study_file(path, [f"it must begin with stirred_study = {STUDY_FORM}"])
    contenders: dict[str, Plan | Swapper] = {}

    def add(name: str, one: Plan | Swapper) -> None:
        if name in contenders:
            raise errors.study_file(path, [f"the name '{name}' is used twice"])
        contenders[name] = one

    for number, entry in enumerate(_sections(path, given, "plan"), 1):
        _known(path, entry, {"file", "name"}, f"plan {number}: ")
        if not isinstance(entry.get("file"), str):
            raise errors.study_file(path, [f"plan {number} names no file"])
        file = path.parent / entry["file"]
        add(str(entry.get("name", file.stem)), _plan(file))
    for number, entry in enumerate(_sections(path, given, "swapper"), 1):
        kind = str(entry.get("kind"))
        if kind not in KINDS:
            raise errors.study_file(
                path, [f"swapper {number} has the unknown kind {kind!r}; known are {errors.listed(KINDS)}"]
            )
        name = str(entry.get("name", kind))
        try:
            add(name, swapper(kind, {key: value for key, value in entry.items() if key not in ("kind", "name")}))
        except StirredError as problem:
            raise errors.study_file(path, [f"swapper '{name}': {problem.problem} {problem.remedy}"]) from None
    for extra in plans:
        add(Path(extra).stem, _plan(Path(extra)))
    data = given.get("data")
    if not isinstance(data, dict):
        raise errors.study_file(path, ["it has no section [data]"])
    _known(path, data, _DATA, "data: ")
    return StudyPlan(
        path,
        contenders,
        data,
        tuple(_table(path, one) for one in _list(path, given, "tables")),
        _whole(path, "draws", given.get("draws", DRAWS)),
        _names(path, "unique_on", given.get("unique_on", [])),
        None if given.get("seed") is None else _whole(path, "seed", given["seed"]),
    )


def run_study(plan: StudyPlan, *, draws: int | None = None, progress: Progress | None = None) -> Study:
    """Read or generate the data of a study, and run it. Confidential."""
    return study(
        plan.contenders,
        read_data(plan),
        tables=plan.tables,
        draws=plan.draws if draws is None else draws,
        unique_on=plan.unique_on,
        seed=plan.seed,
        progress=progress,
    )


def read_data(plan: StudyPlan) -> StudyData:
    """The data of a study: generated, or from the files that it names."""
    path, data = plan.path, dict(plan.data)
    if "generated" in data:
        name = data.pop("generated")
        if name not in GENERATED:
            raise errors.study_file(
                path, [f"there is no generated dataset {name!r}; known are {errors.listed(GENERATED)}"]
            )
        _known(path, data, set(signature(GENERATED[name]).parameters), f"data, for '{name}': ")
        numbers = {key: float(value) if key == "scale" else _whole(path, key, value) for key, value in data.items()}
        return generated(name, **numbers)
    files = data.get("files")
    if not isinstance(files, dict) or not files or not all(isinstance(one, str) for one in files.values()):
        raise errors.study_file(path, ["data: it needs generated = ..., or files with a path for each table"])
    links, ids = (data.get(name, {}) for name in ("links", "ids"))
    if not _columns_by_table(links):
        raise errors.study_file(path, ["data: links has the column with the record's id for each linked table"])
    if not _columns_by_table(ids):
        raise errors.study_file(path, ["data: ids has the column that identifies a row for each linked table"])
    repeated = _names(path, "data.repeated", data.get("repeated", []))
    if repeated and (links or data.get("id") is None or data.get("main") in files):
        raise errors.study_file(
            path, ["data: with repeated, name the id of the records, no links, and main is no file"]
        )
    return from_files(
        {name: path.parent / one for name, one in files.items()},
        str(data.get("main", RECORDS if repeated else next(iter(files)))),
        _names(path, "data.geography", data.get("geography", [])),
        data.get("id"),
        links,
        ids,
        repeated,
        _options(path, data.get("input", {}), files),
    )


def _options(path: Path, sections: Any, files: Mapping[str, str]) -> dict[str, InputOptions]:
    """How files are read, by table: the fields of a plan's ``[input]``, but for the path."""
    if not isinstance(sections, dict) or not all(
        name in files and isinstance(one, dict) and "path" not in one for name, one in sections.items()
    ):
        raise errors.study_file(path, ["data.input has a section for a table of files, which says how it is read"])
    found = {}
    for name, one in sections.items():
        try:
            found[name] = InputSection(**one).options()
        except ValidationError as problem:
            words = [f"data.input.{name}.{words}" for words in field_problems(InputSection, problem)]
            raise errors.study_file(path, words) from None
    return found


def swapper(kind: str, parameters: Mapping[str, Any]) -> Swapper:
    """A simulated swapper of this kind; lists become tuples, and every parameter must be known.

    >>> swapper("record-swap", {"hierarchy": ["county"], "similar": [["size"]]}).swaprate
    0.05
    """
    if kind not in KINDS:
        raise errors.unknown_choice("kind of swapper", kind, list(KINDS))
    made = KINDS[kind]
    known = {one.name: one for one in fields(made)}
    for name in parameters:
        if name not in known:
            raise errors.study_parameter(f"'{name}'", "is not known", f"use some of {errors.listed(known)}")
    for name, one in known.items():
        if one.default is MISSING and name not in parameters:
            raise errors.study_parameter(f"'{name}'", "is missing", f"give it. Its parameters: {errors.listed(known)}")
    values = {name: _value(name, str(known[name].type), value) for name, value in parameters.items()}
    found: Swapper = made(**values)
    return found


# -- helpers -------------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    try:
        return _bounded_reading.read_toml(path)
    except tomllib.TOMLDecodeError as problem:
        raise errors.study_file(path, [f"it is not TOML ({problem})"]) from None
    except (OSError, ValueError):
        raise errors.study_file(path, ["it cannot be read"]) from None


def _plan(path: Path) -> Plan:
    return named(mechanism_of(path)).read_plan(path)


def _known(path: Path, given: Mapping[str, Any], known: set[str], where: str) -> None:
    if strange := sorted(set(given) - known):
        raise errors.study_file(path, [f"{where}the field {errors.listed(strange)} is not known"])


def _sections(path: Path, given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = _list(path, given, name)
    if not all(isinstance(one, dict) for one in found):
        raise errors.study_file(path, [f"each {name} is a section [[{name}]]"])
    return found


def _list(path: Path, given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name, [])
    if not isinstance(found, list):
        raise errors.study_file(path, [f"{name} is a list"])
    return found


def _table(path: Path, given: Any) -> Asked | tuple[str, ...]:
    if not isinstance(given, dict):
        return _names(path, "tables", given)
    _known(path, given, {"by", "of"}, "tables: ")
    by = _names(path, "tables", given.get("by", []))
    return Asked(by, str(given["of"])) if "of" in given else by


def _names(path: Path, what: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise errors.study_file(path, [f"{what} is a list of column names"])
    return tuple(given)


def _columns_by_table(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(one, str) for one in given.values())


def _whole(path: Path, what: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise errors.study_file(path, [f"{what} is a whole number that is not negative"])
    return given


def _value(name: str, kind: str, given: Any) -> Any:
    """A parameter as its class takes it, by the type that is written there."""
    read, wanted = next((read, wanted) for start, read, wanted in _READ if kind.startswith(start))
    try:
        return read(given)
    except (TypeError, ValueError, ArithmeticError):
        raise errors.study_parameter(f"'{name}'", "has a value of another type", f"give {wanted}") from None


def _texts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise TypeError
    return tuple(given)


def _only(kind: type) -> Callable[[Any], Any]:
    """What takes values of this type as they are, and no others."""

    def read(given: Any) -> Any:
        if not isinstance(given, kind) or (isinstance(given, bool) and kind is int):
            raise TypeError
        return given

    return read


_READ: tuple[tuple[str, Callable[[Any], Any], str], ...] = (
    ("tuple[tuple", lambda given: tuple(map(_texts, given)), "a list of lists of names"),
    ("tuple", _texts, "a list of names"),
    ("float", float, "a number"),
    ("Fraction", as_fraction, "a number"),
    ("int", _only(int), "a whole number"),
    ("bool", _only(bool), "true or false"),
    ("str", _only(str), "a name"),
)
"""By how the name of a type begins: how its values are read, and what is wanted."""
