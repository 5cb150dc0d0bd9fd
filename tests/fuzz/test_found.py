"""What damaged inputs have led to, each reduced to the smallest input that shows it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from harness import ALLOCATION, FIXTURES, prepared

from stirred.releases.folder.manifest import write_manifest


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    prepared(folder)
    return folder


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rho: ", f"rho: 1{'0' * 400} #"),
        ("are 1 apart", "are " + "9" * 400 + " apart"),
        ("n\n", "*x\n"),
        ("n\n", "&x [" * 90),
    ],
    ids=["a number beyond floats", "a distance beyond floats", "an alias", "deep nesting"],
)
def test_a_registry_record_beyond_bounds_is_refused(before, after, inputs, tmp_path, command):
    text = (inputs / "texts" / "record.yaml").read_text(encoding="utf-8")
    (tmp_path / "record.yaml").write_text(text.replace(before, after, 1), encoding="utf-8")
    for words in (["registry", "import"], ["lint"]):
        assert command(*words, tmp_path / "record.yaml").code in (0, 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('rho = "1"', f'rho = "1{"0" * 400}"'),
        ('["race"]', "[[1]]"),
        ('"total"', "3"),
        ('"person"', "[]"),
        ('"1/2"', '"1/0"'),
    ],
    ids=["a budget beyond floats", "attributes that are no texts", "a name that is none", "a unit that is none", "1/0"],
)
def test_an_allocation_that_is_none_is_refused(before, after, tmp_path, command):
    path = tmp_path / "allocation.toml"
    path.write_text(ALLOCATION.replace(before, after, 1), encoding="utf-8")
    assert command("explain", "rho=1", "--allocation", path).code == 2


def test_a_cell_of_a_million_letters_does_not_keep_a_check_busy(inputs, tmp_path, command):
    for name in ("swap.toml", "households.csv", "persons.csv"):
        (tmp_path / name).write_bytes((FIXTURES / name).read_bytes())
    path = tmp_path / "households.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",A,", f",{'x' * 1_000_000},", 1), encoding="utf-8")
    assert command("check", tmp_path / "swap.toml").code in (0, 2)


@pytest.mark.parametrize("name", ["measurements/00*", "invariants/*"])
def test_an_estimate_from_a_damaged_file_is_refused(name, inputs, tmp_path, command):
    folder = Path(shutil.copytree(inputs / "topdown", tmp_path / "topdown"))
    for path in folder.glob(name):
        data = path.read_bytes()
        path.write_bytes(data[:4] + b"\xff" * 200 + data[204:])
    assert command("estimate", folder, "--level", "county").code == 2


@pytest.mark.parametrize("length", [109, 300])
def test_a_value_wider_than_the_page_does_not_keep_a_check_busy(length, tmp_path, command):
    for name in ("swap.toml", "households.csv", "persons.csv"):
        (tmp_path / name).write_bytes((FIXTURES / name).read_bytes())
    path = tmp_path / "households.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",owned", "," + "x" * length), encoding="utf-8")
    ended = command("check", tmp_path / "swap.toml")
    assert ended.code == 0 and "x" * 40 in ended.out and "…" in ended.out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"format": "csv"', '"format": ["csv"]'),
        ('"role": "hold"', '"rule": "hold"'),
        ('"string"', '"decimal128(999, 3)"'),
    ],
    ids=["a format that is a list", "a column without a role", "a type that is none"],
)
@pytest.mark.parametrize("words", [["verify"], ["tabulate", "--by", "county"]])
def test_a_data_dictionary_that_contradicts_itself_is_refused(before, after, words, inputs, tmp_path, command):
    folder = Path(shutil.copytree(inputs / "swap", tmp_path / "swap"))
    path = folder / "data_dictionary.json"
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    (folder / "manifest.json").unlink()
    write_manifest(folder)
    assert command(words[0], folder, *words[1:]).code in (1, 2)
