"""``stirred deployments``: the table, one deployment in plain words, JSON, and refusals of what is not stated."""

from __future__ import annotations

import json

import pytest

from stirred.semantics.pictures import deployments
from stirred.semantics.pictures.curves import belief_picture
from stirred.spec.known_deployments.accounts import accounts
from stirred.spec.known_deployments.names import titles
from stirred.spec.specification import from_fields


def test_all_deployments_are_in_one_table_that_fits_the_page(command):
    ended = command("deployments")
    table, _, rest = ended.out.partition("Not stated can be")
    rows = table.splitlines()
    assert ended.code == 0 and max(map(len, rows)) <= 110
    assert all(sum(row.startswith(f"{name} ") for row in rows) == 1 for name in accounts())
    (row,) = [row for row in rows if row.startswith("google-vaccination-2021")]
    assert "user-day" in row and "epsilon-delta" in row and "epsilon = 2.19" in row and "fixed" in row
    assert all(name in rest for name in titles() if name not in accounts())
    assert "different scales" in rest


def test_one_is_shown_in_plain_words_with_sources_and_what_is_not_stated(command):
    ended = command("deployments", "uber-flex-2018")
    said = " ".join(ended.out.split())
    assert ended.code == 0 and max(map(len, ended.out.splitlines())) <= 110
    assert "How much? not stated" in said and "Not stated: the budget; what the budget covers." in said
    assert "one row of one table is replaced (as the registry's record tells [3])" in said
    assert "[3] source: Deployments registry, record 'flex-uber-2018'" in said


def test_a_complete_one_is_shown_with_its_specification_and_every_fact_once(command):
    said = " ".join(command("deployments", "google-symptoms-2020").out.split())
    assert "How much? epsilon = 1.68 (checked in source [1])" in said and "multiverse:" in said
    assert said.count("0.021") == 2 and "Not stated:" not in said  # the erratum, printed once: its value and its reason
    record = " ".join(command("deployments", "recurve-ohmconnect-2020").out.split())
    assert "its own source could not be reached" in record and "0.843 and 4.72 / 6.8." in record


def test_json_holds_what_is_printed(command):
    fields = json.loads(command("deployments", "--json").out)
    assert [one["name"] for one in fields["deployments"]] == list(accounts())
    assert {one["name"] for one in fields["what_if"]} == set(titles()) - set(accounts())
    one = json.loads(command("deployments", "google-mobility-2020", "--json").out)
    assert one["not_stated"] == ["fixed"] and "specification" not in one
    assert one["facts"]["budget"] == {"says": "epsilon = 2.64", "checked": "record", "source": 2}
    whole = json.loads(command("deployments", "microsoft-broadband-2020", "--json").out)
    assert from_fields(whole["specification"]).budget.number * 5 == 1
    assert json.loads(command("deployments", "psa-2010-p02", "--json").out)["specification"]["name"] == "psa-2010-p02"


@pytest.mark.parametrize("verb", [("explain",), ("lint",), ("compare", "rho=1"), ("registry", "export")])
def test_what_is_not_stated_is_refused_by_name(verb, command):
    ended = command(*verb, "israel-births-2024")
    said = " ".join(ended.err.split())
    assert ended.code == 2 and ended.out == ""
    assert "what was published or used as it is; whether a record is replaced, or added and removed." in said
    assert "type 'epsilon=9.98,unit=birth'" in said


def test_those_with_a_specification_are_explained_questioned_and_compared(command):
    assert "one event" in command("explain", "apple-emoji-2017").out
    assert "finer-unit" in command("lint", "apple-emoji-2017").out
    said = " ".join(command("compare", "apple-emoji-2017", "microsoft-broadband-2020").out.split())
    assert "Can these be ranked? Not known for apple-emoji-2017 and microsoft-broadband-2020" in said


def test_the_beginning_of_several_names_is_answered_with_them(command):
    ended = command("explain", "wikimedia")
    assert ended.code == 2 and "wikimedia-pageviews-2023" in ended.err
    ended = command("explain", "google mobility")
    assert ended.code == 2 and "google-mobility-2020" in ended.err


def test_the_picture_that_marks_the_named_one_is_saved_into_a_new_folder(command, tmp_path, monkeypatch):
    asked = []

    def small(marked):
        asked.append(marked)
        return belief_picture([1])

    monkeypatch.setattr(deployments, "deployment_picture", small)
    ended = command("deployments", "meta-urls-2020", "--figures", tmp_path / "pictures")
    assert ended.code == 0 and asked == ["meta-urls-2020"]
    assert {path.suffix for path in (tmp_path / "pictures").iterdir()} == {".png", ".svg"}
    again = command("deployments", "--figures", tmp_path / "pictures")
    assert again.code == 2 and again.out == ""


@pytest.mark.slow
def test_the_picture_of_all_deployments_can_be_drawn(command, tmp_path):
    folder = tmp_path / "pictures"
    ended = command("deployments", "meta-urls-2020", "--figures", folder)
    assert ended.code == 0 and sorted(path.name for path in folder.iterdir()) == [
        "known-deployments.png",
        "known-deployments.svg",
    ]
