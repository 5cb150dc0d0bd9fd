"""The table of docs/security.md that says what covers each field and file of a release: complete, and true.

Releases of all mechanisms are walked. Each field is changed to another plausible value, hashes, copies and manifest are
made to agree again, and ``verify`` must say what the table says. The releases have no report, which would tell many
fields a second time: a publisher may leave it out.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from test_forgeries import HOUSEHOLDS, PERSONS, forge, survey_release, swap_release, topdown_release

import stirred
from stirred.errors import StirredError
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.verdicts import State

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
CONTRADICTED, FORM = "contradicted", "form only"
MECHANISMS = ("swap", "topdown", "survey", "flat")
Path_ = tuple[str | int, ...]


def flat_release(folder: Path) -> None:
    """A flat swap of a Stata file with labels."""
    data = HOUSEHOLDS.to_pandas().merge(PERSONS.to_pandas(), on="id")
    source = folder.parent / "source.dta"
    labels = {"tenure": "Tenure", "size": "Number of persons"}
    values = {"size": {1: "one", 2: "two", 3: "three"}}
    pyreadstat.write_dta(pd.DataFrame(data), str(source), column_labels=labels, variable_value_labels=values)
    plan = stirred.SwapPlan(
        unit="household", dataset="households of a town", match=["size"], swap=["county"], hold=["tenure"], id="id",
        rate=0.1, chosen_from="public", input={"path": str(source)},
        linked=[{"name": "persons", "flat": True, "link": "id", "id": "person", "hold": ["sex"]}],
        publish=[["county"]],
    )  # fmt: skip
    stirred.release(plan, out=folder, report=False)


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("releases")
    swap_release(folder / "swap", report=False)
    flat_release(folder / "flat")
    topdown_release(folder / "topdown", report=False)
    survey_release(folder / "survey", report=False)
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()}


# -- the table -------------------------------------------------------------------------------------------------


def table() -> list[tuple[re.Pattern[str], str, str]]:
    """For each row of the table which fields or files it is about, as a pattern and as it stands there, and what
    ``verify`` says if one is changed alone."""
    section = PAGE.read_text(encoding="utf-8").split("## What covers each field\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    found = []
    for names, _, answer in ([cell.strip() for cell in row] for row in rows):
        assert answer in (CONTRADICTED, FORM), answer
        found += [
            (re.compile(re.escape(name).replace(r"\*", ".*")), name, answer) for name in re.findall("`(.+?)`", names)
        ]
    return found


def row_of(place: str) -> tuple[str, str]:
    """The first row of the table that is about a field or file."""
    found = [(name, answer) for pattern, name, answer in table() if pattern.fullmatch(place)]
    assert found, f"no row of the table in docs/security.md is about {place}"
    return found[0]


# -- fields and files --------------------------------------------------------------------------------------------


def parts(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every part of a document: objects and lists before what is in them."""
    yield path, value
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from parts(part, (*path, key))


def named(file: str, path: Path_) -> str:
    return f"{file}: " + "".join("[]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def places(folder: Path) -> dict[str, tuple[str, Path_ | None]]:
    """Every field and file of a release, each by the first place where it stands."""
    found: dict[str, tuple[str, Path_ | None]] = {}
    for file in sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()):
        found[file] = (file, None)
        if file.endswith(".json"):
            for path, _ in parts(json.loads((folder / file).read_text(encoding="utf-8"))):
                found.setdefault(named(file, path), (file, path))
    return found


def others(value: Any) -> Iterator[Any]:
    """Other plausible values of the same type."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value * 1.5 + 0.25
    elif value is None:
        yield "x"
    elif isinstance(value, str):
        yield other_text(value)
    elif isinstance(value, list):
        yield [*value, copy.deepcopy(value[-1]) if value else "x"]
        if value:
            yield value[:-1]
        if value[::-1] != value:
            yield value[::-1]
    else:
        yield {**value, "approved": "by everybody"}
        if value:
            yield dict(list(value.items())[:-1])


def other_text(text: str) -> str:
    if re.fullmatch("[0-9a-f]{32,64}", text):
        return text[::-1] if text[::-1] != text else "0" * len(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return "2020-01-01"
    if version := re.fullmatch(r"(\d+\.\d+\.)(\d+)(\.dev\d+)?", text):
        return f"{version[1]}{int(version[2]) + 1}"
    if number := re.fullmatch(r"(\d+)(/\d+)?", text):
        return f"{int(number[1]) + 1}{number[2] or ''}"
    return f"{text}x"


def with_field(folder: Path, file: str, path: Path_, to: Any) -> None:
    """Change a field, and make agree what is computed from bytes, but for the field itself."""
    whole = json.loads((folder / file).read_text(encoding="utf-8"))
    holder = {"": whole}
    *above, last = ("", *path)
    part: Any = holder
    for key in above:
        part = part[key]
    part[last] = to
    (folder / file).write_text(json.dumps(holder[""], indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if file == "manifest.json":
        return
    if (path and path[-1] in ("plan_sha256", "geography_sha256")) or file == "specification.json" or not path:
        write_manifest(folder)
    else:
        forge(folder, lambda _: None)


def changed_files(folder: Path, file: str) -> Iterator[bytes]:
    """Other contents of a file, which hold something else or hold it otherwise."""
    path = folder / file
    before = path.read_bytes()
    yield before + (b"\n" if path.suffix != ".parquet" else b"x")
    if path.suffix == ".parquet":
        for found in (other_number(pq.read_table(path)), pq.read_table(path).replace_schema_metadata({"truth": "1"})):
            made = pa.BufferOutputStream()
            pq.write_table(found, made)
            yield made.getvalue().to_pybytes()
    elif path.suffix == ".csv":
        head, first, *rest = before.decode().splitlines(keepends=True)
        yield "".join([head, '"' + first.replace(",", '","', 1).replace(",", '",', 1), *rest]).encode()
        yield "".join([head, *rest, first]).encode() if rest else before + first.encode()
        yield re.sub(r"(\d)(\D*)$", lambda digit: f"{(int(digit[1]) + 5) % 10}{digit[2]}", before.decode()).encode()
    elif path.suffix in (".json", ".sig"):
        yield before.replace(b"  ", b" ")
    else:
        yield before.replace(b"e", b"a", 1)


def other_number(found: pa.Table) -> pa.Table:
    """The table with another number, or another text, in its first cell of the last column."""
    name = found.column_names[-1]
    values = found[name].to_pylist()
    values[0] = values[0] + 100 if isinstance(values[0], int | float) else values[-1]
    return found.set_column(found.num_columns - 1, name, pa.array(values, found.schema.field(name).type))


def answer(folder: Path) -> State:
    try:
        return stirred.verify(folder).state
    except StirredError:
        return State.CONTRADICTED


def changes(release: Path, place: tuple[str, Path_ | None], to: Path) -> Iterator[Path]:
    """The release with one field or file changed, in each of some ways; each in the same folder."""
    file, path = place
    value: Any = None
    if path is not None:
        value = json.loads((release / file).read_text(encoding="utf-8"))
        for key in path:
            value = value[key]
    for new in changed_files(release, file) if path is None else others(value):
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(release, to)
        if path is None:
            (to / file).write_bytes(new)
            if file != "manifest.json":
                write_manifest(to)
        else:
            with_field(to, file, path, new)
        yield to


# -- what the table says -----------------------------------------------------------------------------------------


def test_every_field_and_file_has_a_row_and_every_row_a_field_or_file(releases):
    met = {row_of(place)[0] for folder in releases.values() for place in places(folder)}
    assert {name for _, name, _ in table()} - met <= BESIDE


BESIDE = {"report.html", "manifest.json.sig", "WITHDRAWN.txt"}
"""Files that the releases here do not have: tests/reports, test_signatures.py, test_withdrawals.py are about them."""


def assert_as_the_table_says(folder: Path, place: str, to: Path) -> None:
    name, said = row_of(place)
    found = [answer(changed) for changed in changes(folder, places(folder)[place], to)]
    if said == CONTRADICTED:
        assert set(found) == {State.CONTRADICTED}, (place, found)
    else:
        assert set(found) != {State.CONTRADICTED}, f"{place} is covered: say so in the row of {name}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_field_of_each_row_is_covered_as_the_table_says(mechanism, releases, tmp_path):
    """Of a row that is about several mechanisms, a field of the first of them."""
    first: dict[str, tuple[str, str]] = {}
    for name in MECHANISMS:
        for place in places(releases[name]):
            first.setdefault(row_of(place)[0], (name, place))
    for name, place in first.values():
        if name == mechanism:
            assert_as_the_table_says(releases[name], place, tmp_path / "changed")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_field_is_covered_as_the_table_says(mechanism, releases, tmp_path):
    wrong = []
    for place in places(releases[mechanism]):
        try:
            assert_as_the_table_says(releases[mechanism], place, tmp_path / "changed")
        except AssertionError as problem:
            wrong.append(str(problem).splitlines()[0])
    assert not wrong, "\n".join(wrong)
