"""Stata, SPSS and SAS files come back as such, with labels; pyreadstat and pandas are the judges."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from stirred.errors import DataError
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.verdicts import State, contradicted
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify
from stirred.tables import labelled_files
from stirred.tables.labelled_files import Labels, write_labelled

FRAME = pd.DataFrame(
    {
        "hhid": list(range(1000, 1120)),
        "size": [1 + i % 2 for i in range(120)],
        "county": [("001", "003")[i // 2 % 2] for i in range(120)],
        "tenure": [(1, 2, 9)[i // 5 % 3] for i in range(120)],
        "rent": [i * 7 // 3 % 4 + 0.5 for i in range(120)],
    }
)
COLUMNS = {"county": "County of residence", "tenure": "Tenure", "hhid": "Household"}
VALUES = {"tenure": {1: "owned", 2: "rented", 9: "unknown"}, "size": {1: "alone", 2: "two", 3: "three"}}
WRITERS: dict[str, Any] = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}
READERS: dict[str, Any] = {"dta": pyreadstat.read_dta, "sav": pyreadstat.read_sav, "xpt": pyreadstat.read_xport}
FORMATS = {"dta": {"rent": "%8.1f"}, "sav": {"rent": "F8.1"}, "xpt": {}}


def plan_of(path: Path, **more: Any) -> SwapPlan:
    return SwapPlan(
        id="hhid",
        match=["size"],
        swap=["county"],
        hold=["tenure", "rent"],
        rate=0.5,
        most_recovered=1,
        input={"path": str(path)},
        **more,
    )


def office_file(folder: Path, suffix: str) -> Path:
    path = folder / f"a.{suffix}"
    more = {} if suffix == "xpt" else {"variable_value_labels": VALUES}
    WRITERS[suffix](FRAME, str(path), column_labels=COLUMNS, variable_format=FORMATS[suffix], **more)
    return path


@pytest.mark.parametrize("suffix", ["dta", "sav", "xpt"])
def test_files_with_labels_come_back_with_them(tmp_path, suffix):
    out = draw(plan_of(office_file(tmp_path, suffix))).write(tmp_path / "out")
    verdicts = verify(out)
    assert all(verdict.holds for verdict in verdicts), [one.words for one in verdicts if not one.holds]
    assert any(f"microdata.{suffix} has the rows of its table" in verdict.words for verdict in verdicts)
    frame, meta = READERS[suffix](str(out / f"microdata.{suffix}"))
    assert list(frame.columns) == list(FRAME.columns)
    beside = pd.read_parquet(out / "microdata.parquet")
    assert frame.astype(str).values.tolist() == beside.astype(frame.dtypes.to_dict()).astype(str).values.tolist()
    held = ["size", "tenure", "rent"]
    assert Counter(map(tuple, frame[held].values.tolist())) == Counter(map(tuple, FRAME[held].values.tolist()))
    assert {name: text for name, text in meta.column_names_to_labels.items() if text} == COLUMNS
    if suffix != "xpt":
        assert meta.variable_value_labels == VALUES
        assert meta.original_variable_types["rent"] == FORMATS[suffix]["rent"]
    assert f"microdata.{suffix}: the rows of microdata.parquet" in (out / "README.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["stata", "spss", "sas"])
def test_the_same_rows_give_the_same_bytes_at_any_time(tmp_path, kind):
    labels = Labels(kind, (("county", "County"),))
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    write_labelled(tmp_path / "one", table, labels)
    content = (tmp_path / "one").read_bytes()
    assert any(fixed in content for fixed in (b"01 Jan 1970 00:00", b"01 Jan 7000:00:00", b"01JAN70:00:00:00"))
    times = re.findall(rb"\d\d ?[A-Za-z]{3} ?\d\d[\d :]+\d\d:\d\d", content[:1000])
    assert times and all(time.upper().startswith((b"01 JAN", b"01JAN70")) for time in times)
    write_labelled(tmp_path / "two", table, labels)
    assert (tmp_path / "two").read_bytes() == content


def test_cells_that_look_like_times_stay_as_they_are(tmp_path):
    table = pa.table({"a": ["17NOV26:06:31:51", "17 Nov 2606:31:49"] * 3, "b": [1, 2, 3, 4, 5, 6]})
    for kind, suffix in (("stata", "dta"), ("spss", "sav"), ("sas", "xpt")):
        write_labelled(tmp_path / f"a.{suffix}", table, Labels(kind))
        frame, _ = READERS[suffix](str(tmp_path / f"a.{suffix}"))
        assert frame["a"].tolist() == table["a"].to_pylist()


def test_another_format_has_no_labels(tmp_path):
    out = draw(plan_of(office_file(tmp_path, "dta"), format="csv")).write(tmp_path / "out")
    assert not (out / "microdata.dta").exists()
    assert "labelled" not in json.loads((out / "data_dictionary.json").read_text(encoding="utf-8"))["tables"][0]


@pytest.mark.parametrize("damage", ["cell", "label"])
def test_a_file_with_other_rows_or_labels_than_stated_is_not_verified(tmp_path, damage):
    out = draw(plan_of(office_file(tmp_path, "dta"))).write(tmp_path / "out")
    frame, _ = pyreadstat.read_dta(str(out / "microdata.dta"))
    if damage == "cell":
        frame.loc[0, "rent"] += 1
    labels = dict(COLUMNS) | ({"rent": "a note"} if damage == "label" else {})
    fields = json.loads((out / "data_dictionary.json").read_text(encoding="utf-8"))["tables"][0]["labelled"]
    stated = Labels.from_fields(fields)
    whole = frame.astype({"hhid": "int64", "size": "int64", "tenure": "int64"})
    forged = Labels("stata", tuple(labels.items()), stated.values, stated.formats)
    write_labelled(out / "microdata.dta", pa.Table.from_pandas(whole, preserve_index=False), forged)
    (out / MANIFEST).unlink()
    write_manifest(out)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert failed == ["microdata.dta has the rows of its table and the labels of the data dictionary"]


# -- flat files -----------------------------------------------------------------------------------------------------

PERSONS = FRAME.loc[FRAME.index.repeat(FRAME["size"])].reset_index(drop=True)
PERSONS.insert(1, "sex", [1 + i * i // 3 % 2 for i in range(len(PERSONS))])
SEX = {1: "male", 2: "female"}


@pytest.fixture(scope="module")
def flat(tmp_path_factory) -> dict[str, Path]:
    """The release of a flat file of each kind."""
    folders = {}
    for suffix in ("dta", "sav", "xpt"):
        folder = tmp_path_factory.mktemp(f"flat-{suffix}")
        more = {} if suffix == "xpt" else {"variable_value_labels": VALUES | {"sex": SEX}}
        labels = COLUMNS | {"sex": "Sex"}
        path = str(folder / f"a.{suffix}")
        WRITERS[suffix](PERSONS, path, column_labels=labels, variable_format=FORMATS[suffix], **more)
        linked = [{"name": "persons", "flat": True, "link": "hhid", "hold": ["sex"]}]
        folders[suffix] = draw(plan_of(folder / f"a.{suffix}", linked=linked)).write(folder / "out")
    return folders


@pytest.mark.parametrize("suffix", ["dta", "sav", "xpt"])
def test_a_flat_file_with_labels_comes_back_flat_with_them(flat, suffix):
    out = flat[suffix]
    verdicts = verify(out)
    assert all(verdict.holds for verdict in verdicts), [one.words for one in verdicts if not one.holds]
    assert any(f"flat.{suffix} has the rows of its table and the labels" in verdict.words for verdict in verdicts)
    frame, meta = READERS[suffix](str(out / f"flat.{suffix}"))
    assert list(frame.columns) == list(PERSONS.columns)
    beside = pd.read_parquet(out / "flat.parquet")
    assert frame.astype(str).values.tolist() == beside.astype(frame.dtypes.to_dict()).astype(str).values.tolist()
    held = ["size", "tenure", "rent", "sex"]
    assert Counter(map(tuple, frame[held].values.tolist())) == Counter(map(tuple, PERSONS[held].values.tolist()))
    assert {name: text for name, text in meta.column_names_to_labels.items() if text} == COLUMNS | {"sex": "Sex"}
    if suffix != "xpt":
        assert meta.variable_value_labels == VALUES | {"sex": SEX}
        assert meta.original_variable_types["rent"] == FORMATS[suffix]["rent"]
    assert f"flat.{suffix}: the rows of flat.parquet in a" in (out / "README.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("damage", ["cell", "label"])
def test_a_flat_file_with_other_rows_or_labels_is_not_verified(flat, tmp_path, damage):
    out = Path(shutil.copytree(flat["dta"], tmp_path / "out"))
    frame, meta = pyreadstat.read_dta(str(out / "flat.dta"))
    if damage == "cell":
        frame.loc[0, "sex"] = 3 - frame.loc[0, "sex"]
    labels = meta.column_names_to_labels | ({"sex": "a note"} if damage == "label" else {})
    pyreadstat.write_dta(frame, str(out / "flat.dta"), column_labels=labels)
    write_manifest(out)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert failed == ["flat.dta has the rows of its table and the labels of the data dictionary"]


@pytest.mark.parametrize(("version", "wrong"), [("0.7.0", False), (None, True)])
def test_only_earlier_versions_wrote_no_flat_file_with_labels(flat, tmp_path, version, wrong):
    out = Path(shutil.copytree(flat["dta"], tmp_path / "out"))
    (out / "flat.dta").unlink()
    path = out / "certificate.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["versions"]["stirred"] = version or fields["versions"]["stirred"]
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(out)
    assert contradicted(verify(out)) is wrong


# -- a file that says that another version of pyreadstat wrote it -----------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> dict[str, Path]:
    """A release with each kind of file, whose dictionary names a version of pyreadstat that is not installed."""
    folders = {}
    for suffix in ("dta", "sav", "xpt"):
        folder = tmp_path_factory.mktemp(suffix)
        folders[suffix] = draw(plan_of(office_file(folder, suffix))).write(folder / "out")
        path = folders[suffix] / "data_dictionary.json"
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields["tables"][0]["labelled"]["pyreadstat"] = "1.2.9"
        path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        write_manifest(folders[suffix])
    return folders


def changed(released: dict[str, Path], to: Path, suffix: str, content: bytes) -> Path:
    folder = Path(shutil.copytree(released[suffix], to / "changed"))
    (folder / f"microdata.{suffix}").write_bytes(content)
    write_manifest(folder)
    return folder


def opened(folder: Path, suffix: str) -> list[tuple[State, str]]:
    return [(one.state, one.words) for one in verify(folder) if f"microdata.{suffix}" in one.words]


def written_by(released: dict[str, Path], to: Path, suffix: str, **more: Any) -> bytes:
    """The rows of a release in a file that pyreadstat writes, which has the time of writing and other settings."""
    frame, meta = READERS[suffix](str(released[suffix] / f"microdata.{suffix}"))
    frame = more.pop("frame", lambda found: found)(frame)
    if suffix != "xpt":
        more.setdefault("variable_value_labels", meta.variable_value_labels)
    path = to / f"again.{suffix}"
    WRITERS[suffix](frame, str(path), **{"column_labels": meta.column_labels, **more})
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["dta", "sav", "xpt"])
def test_a_file_of_another_version_is_read_and_its_storage_alone_is_not_compared(released, tmp_path, suffix):
    content = (released[suffix] / f"microdata.{suffix}").read_bytes()
    assert opened(released[suffix], suffix) == [(State.HOLDS, HAS_ROWS.format(suffix))]
    other = content + b"\0" * 80 if suffix == "xpt" else padded(content, suffix)
    found = opened(changed(released, tmp_path, suffix, other), suffix)
    assert found[0] == (State.HOLDS, HAS_ROWS.format(suffix))
    assert [state for state, _ in found] == [State.HOLDS, State.NOT_COMPARED] and "how microdata" in found[1][1]


HAS_ROWS = "microdata.{} has the rows of its table and the labels of the data dictionary"


def padded(content: bytes, suffix: str) -> bytes:
    """The same file with another name of the program that wrote it, or with bytes behind its end."""
    return content.replace(b"ReadStat", b"readstat") if suffix == "sav" else content + b"\0" * 8


def other_cell(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(rent=[frame["rent"][0] + 1, *frame["rent"][1:]])


def other_order(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[::-1].reset_index(drop=True)


def other_counties(frame: pd.DataFrame) -> pd.DataFrame:
    """The county that each record had before it was swapped."""
    return frame.assign(county=list(FRAME["county"]))


def one_each(cases):
    """Every case with every kind of file; fast for one kind each, in turn."""
    return [
        pytest.param(*case, suffix, marks=() if suffix == SUFFIXES[number % 3] else pytest.mark.slow)
        for number, case in enumerate(cases)
        for suffix in SUFFIXES
    ]


SUFFIXES = ("dta", "sav", "xpt")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("more", "said", "suffix"),
    one_each([
        ({"frame": other_cell}, "other cells"),
        ({"frame": other_order}, "other cells"),
        ({"frame": other_counties}, "other cells"),
        ({"frame": lambda frame: frame.head(119)}, "other numbers of rows, other cells"),
        ({"frame": lambda frame: frame.rename(columns={"rent": "cost"})}, "other columns"),
        ({"column_labels": ["the true county"] * 5}, "other labels of columns"),
        ({"file_label": "counted twice"}, "other notes"),
    ]),
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_a_file_with_other_rows_or_labels_is_noticed_whatever_version_is_claimed(
    released, tmp_path, suffix, more, said
):
    folder = changed(released, tmp_path, suffix, written_by(released, tmp_path, suffix, **more))
    [(state, words)] = opened(folder, suffix)
    assert state is State.CONTRADICTED and "(not so: " in words and said in words


@pytest.mark.parametrize("suffix", ["dta", "sav"])
def test_other_labels_of_values_are_noticed_whatever_version_is_claimed(released, tmp_path, suffix):
    more = {"variable_value_labels": {"tenure": {1: "rented", 2: "owned"}}}
    folder = changed(released, tmp_path, suffix, written_by(released, tmp_path, suffix, **more))
    [(state, words)] = opened(folder, suffix)
    assert state is State.CONTRADICTED and "other labels of values" in words


@pytest.mark.parametrize(("content", "suffix"), one_each([(b"",), (b"no such file\n" * 100,), (None,)]))
def test_a_file_that_is_none_is_noticed_whatever_version_is_claimed(released, tmp_path, suffix, content):
    whole = (released[suffix] / f"microdata.{suffix}").read_bytes()
    content = whole[: len(whole) // 2] if content is None else content
    [(state, words)] = opened(changed(released, tmp_path, suffix, content), suffix)
    assert state is State.CONTRADICTED and "(not so: " in words


@pytest.mark.parametrize(
    ("program", "state", "said"),
    [
        ("print('{}', flush=True); os.abort()", State.CONTRADICTED, "it cannot be read as a Stata file"),
        ("os.abort()", State.NOT_CHECKED, "pyreadstat cannot read here what it writes"),
        ("print('{}', flush=True); os.kill(os.getpid(), 9)", State.NOT_CHECKED, "cannot read here"),
        ("print('{}', flush=True); time.sleep(60)", State.NOT_CHECKED, "took too long"),
    ],
)
def test_a_crash_of_the_library_ends_another_process_only(released, tmp_path, monkeypatch, program, state, said):
    (tmp_path / "reader.py").write_text(f"import os, time\n{program}\n", encoding="utf-8")
    monkeypatch.setattr(labelled_files.labelled_reader, "__file__", str(tmp_path / "reader.py"))
    monkeypatch.setattr(labelled_files, "_SECONDS", 0.5 if "sleep" in program else 10)
    [found] = opened(changed(released, tmp_path, "dta", b"x"), "dta")
    assert found[0] is state and said in found[1]


def test_a_program_beside_the_release_is_not_run(released, tmp_path, monkeypatch):
    folder = changed(released, tmp_path, "dta", padded((released["dta"] / "microdata.dta").read_bytes(), "dta"))
    (tmp_path / "pyreadstat.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert opened(folder, "dta")[0][0] is State.HOLDS and not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how much a process has")
def test_memory_of_the_reader_is_bounded():
    program = "from stirred.tables.labelled_reader import _bound; _bound(1 << 26); bytearray({}); print('has it')"
    for size, said in ((1 << 20, b"has it\n"), (1 << 28, b"")):
        ended = subprocess.run([sys.executable, "-c", program.format(size)], capture_output=True, check=False)
        assert ended.stdout == said and (b"MemoryError" in ended.stderr) == (not said)


def test_without_pyreadstat_the_file_is_not_compared(released, monkeypatch):
    monkeypatch.setattr("stirred.swap.verifying.writer_version", lambda: None)
    [(state, words)] = opened(released["dta"], "dta")
    assert state is State.NOT_COMPARED and "pyreadstat is not installed" in words


def test_what_does_not_fit_is_an_error_that_names_a_way_out(tmp_path):
    table = pa.table({"a name with spaces": [1]})
    with pytest.raises(DataError) as caught:
        write_labelled(tmp_path / "a.dta", table, Labels("stata"))
    assert caught.value.kind == "cannot-label"
    assert not (tmp_path / "a.dta").exists()


NO_LABELS = {"columns": {}, "values": {}, "formats": {}, "pyreadstat": "1"}


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {"kind": "stata"},
        {"kind": "x", **NO_LABELS},
        {"kind": "stata", **NO_LABELS, "columns": {"a": 1}},
        {"kind": "stata", **NO_LABELS, "values": {"a": [[None, "b"]]}},
        {"kind": "stata", **NO_LABELS, "pyreadstat": "any text"},
    ],
)
def test_labels_that_are_none_are_refused(fields):
    with pytest.raises(ValueError):
        Labels.from_fields(fields)
