"""The inputs of a TopDown plan as they come: the form is told by init, and all files are of one moment."""

from __future__ import annotations

import os

import pytest

from stirred.errors import DataError
from stirred.topdown.data import counting
from stirred.topdown.data.counting import count_tables
from stirred.topdown.plan.fields import TopDownPlan


def files(folder):
    (folder / "places.csv").write_bytes("land;gemeinde\r\nA;a1\r\nA;a2\r\nB;b1\r\n".encode("cp1252"))
    (folder / "personen.csv").write_bytes("gemeinde|größe\na1|1\na2|2\nb1|1\n".encode("utf-8-sig"))


def test_init_writes_the_form_of_both_files_into_the_plan(tmp_path, command):
    files(tmp_path)
    plan = tmp_path / "plan.toml"
    words = ["init", tmp_path / "personen.csv", "--mechanism", "topdown", "--geography", tmp_path / "places.csv"]
    assert command(*words, "--out", plan).code == 0
    plan.write_text(plan.read_text(encoding="utf-8").replace("values = []", 'values = ["1", "2"]'), encoding="utf-8")
    drafted = TopDownPlan.from_toml(plan)
    assert drafted.spine.input.delimiter == ";"
    assert (drafted.tables[0].input.delimiter, drafted.tables[0].input.encoding) == ("|", "utf-8-sig")
    assert count_tables(drafted).counts("personen", "land").tolist() == [[2], [1]]
    assert 'delimiter = "|"' in command(*words, "--delimiter", "|").out


@pytest.mark.parametrize("name", ["places.csv", "personen.csv"])
def test_a_list_of_places_and_a_table_are_of_one_moment(tmp_path, command, monkeypatch, name):
    files(tmp_path)
    plan = tmp_path / "plan.toml"
    words = ["init", tmp_path / "personen.csv", "--mechanism", "topdown", "--geography", tmp_path / "places.csv"]
    command(*words, "--out", plan)
    plan.write_text(plan.read_text(encoding="utf-8").replace("values = []", 'values = ["1", "2"]'), encoding="utf-8")
    built = counting.build_spine

    def build_and_change(*given):
        os.utime(tmp_path / name, ns=(1, 1))
        return built(*given)

    monkeypatch.setattr(counting, "build_spine", build_and_change)
    with pytest.raises(DataError) as caught:
        count_tables(TopDownPlan.from_toml(plan))
    assert caught.value.kind == "file-changed"
