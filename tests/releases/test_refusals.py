"""What a release refuses because of where it is to be written, or because its input will not hold still."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pytest

from stirred.errors import DataError, OutputError
from stirred.swap.checking.plan_check import check
from stirred.swap.drawing import release
from stirred.swap.plan.fields import SwapPlan

MARKER = "SECRET-7731"
PLAN = """\
stirred = 1
mechanism = "swap"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
tables = [["county", "size"]]
{more}
[input]
path = "households.csv"
"""


def prepare(folder: Path, rows: int = 40, more: str = "") -> Path:
    """A plan and its file in a folder of their own."""
    folder.mkdir()
    lines = [f"{1 + i % 3},{'abcd'[i % 4]},{('owned', 'rented', MARKER)[i // 4 % 3]}" for i in range(rows)]
    (folder / "households.csv").write_text("size,county,tenure\n" + "\n".join(lines) + "\n", encoding="utf-8")
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(more=more), encoding="utf-8")
    return plan


@pytest.fixture
def plan(tmp_path) -> Path:
    return prepare(tmp_path / "confidential data")


@pytest.fixture
def place(tmp_path) -> Path:
    """An empty folder to release into."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


# -- targets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--out", "--confidential"])
@pytest.mark.parametrize(
    "make",
    [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to("..")],
    ids=["a folder", "a file", "a dangling link", "a link"],
)
def test_a_target_that_exists_is_refused_and_left_as_it_is(option, make, plan, place, command):
    taken = place / "taken"
    make(taken)
    options = {"--out": place / "new", "--confidential": place / "newer"} | {option: taken}
    ended = command("release", plan, *(word for pair in options.items() for word in pair))
    assert ended.code == 2
    assert f"{taken} exists already." in ended.err
    assert list(place.iterdir()) == [taken]


@pytest.mark.parametrize("option", ["--out", "--confidential"])
def test_a_target_in_a_folder_that_does_not_exist_is_refused(option, plan, place, command):
    options = {"--out": place / "new", "--confidential": place / "newer"} | {option: place / "missing" / "new"}
    ended = command("release", plan, *(word for pair in options.items() for word in pair))
    assert ended.code == 2
    assert f"The folder {place / 'missing'} does not exist." in ended.err
    assert list(place.iterdir()) == []


def test_one_folder_cannot_be_both_the_release_and_the_confidential_one(plan, place, command):
    ended = command("release", plan, "--out", place / "new", "--confidential", place / "new")
    assert ended.code == 2
    assert list(place.iterdir()) == []


def test_a_refused_target_costs_no_reading_of_the_data(plan, place, command):
    (plan.parent / "households.csv").unlink()
    (place / "taken").mkdir()
    assert "exists already" in command("release", plan, "--out", place / "taken").err


def test_the_library_refuses_with_the_kind(plan, place):
    with pytest.raises(OutputError) as refusal:
        release(SwapPlan.from_toml(plan), out=place)
    assert refusal.value.kind == "output-exists"


# -- a full disk ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond a million bytes meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_full_disk_leaves_nothing_and_is_told_without_a_cell(kind, tmp_path, place, request, command):
    # A million bytes are enough for compiled kernels to be cached, and too few for these rows in any format.
    plan = prepare(tmp_path / "data", more=f'format = "{kind}"\nallow = ["distinct:tenure"]')
    lines = [f"{1 + i % 3},{'abcd'[i % 4]},{MARKER}{os.urandom(60).hex()}" for i in range(20_000)]
    (plan.parent / "households.csv").write_text("size,county,tenure\n" + "\n".join(lines) + "\n", encoding="utf-8")
    request.getfixturevalue("small_files")  # the rows are written
    ended = command("release", plan, "--out", place / "out", "--confidential", place / "own")
    assert ended.code == 2, ended.err
    assert f"{place / 'out'} could not be written" in ended.err
    assert "Nothing was released, and partial files were removed." in ended.err
    assert MARKER not in ended.err + ended.out
    assert list(place.iterdir()) == []


def test_a_disk_that_is_full_when_the_documents_are_written_leaves_nothing(plan, place, monkeypatch, command):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stirred.releases.folder.manifest.HeldBack.of", full)
    ended = command("release", plan, "--out", place / "out")
    assert ended.code == 2
    assert "No space left on device" in ended.err
    assert list(place.iterdir()) == []


# -- input that changes --------------------------------------------------------------------------------------


def grow(file: Path) -> None:
    with file.open("a", encoding="utf-8") as data:
        data.write("1,a,owned\n")


def replace(file: Path) -> None:
    other = file.with_name("other.csv")
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)


@pytest.mark.parametrize("disturb", [grow, replace, Path.touch, Path.unlink], ids=lambda way: way.__name__)
def test_a_file_that_changes_while_it_is_read_is_not_released(disturb, plan, place, monkeypatch, command):
    opened = pyarrow.csv.open_csv

    def open_and_disturb(*given, **named):
        reader = opened(*given, **named)
        disturb(plan.parent / "households.csv")
        return reader

    monkeypatch.setattr(pyarrow.csv, "open_csv", open_and_disturb)
    ended = command("release", plan, "--out", place / "out")
    assert ended.code == 2
    assert "changed while it was being read" in ended.err
    assert list(place.iterdir()) == []


def test_a_file_that_changes_raises_the_kind(plan, monkeypatch):
    opened = pyarrow.csv.open_csv

    def open_and_grow(*given, **named):
        reader = opened(*given, **named)
        grow(plan.parent / "households.csv")
        return reader

    monkeypatch.setattr(pyarrow.csv, "open_csv", open_and_grow)
    with pytest.raises(DataError) as refusal:
        check(SwapPlan.from_toml(plan))
    assert refusal.value.kind == "file-changed"


def test_a_file_at_rest_is_released(plan, place, command):
    assert command("release", plan, "--out", place / "out").code == 0
    assert command("verify", place / "out").code == 0
