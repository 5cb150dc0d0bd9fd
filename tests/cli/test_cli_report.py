"""``stirred report`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

from stirred.spec import flavors

SWAP = Path(__file__).parents[1] / "fixtures" / "v0_5" / "swap"
PLAN = """
stirred = 1
mechanism = "swap"
unit = "household"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
rate = 0.6
[input]
path = "not-there.csv"
"""


def test_a_page_is_written_and_its_name_said(command, tmp_path):
    ended = command("report", "rho=1/2", "--out", tmp_path / "report.html")
    assert ended.code == 0 and "wrote" in ended.err and not ended.out
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = command("report", "rho=1/2", "--out", tmp_path / "report.html")
    assert (again.code, again.out) == (2, "") and "exists already" in again.err


def test_several_and_json(command, tmp_path):
    out = tmp_path / "report.html"
    ended = command("report", SWAP, "epsilon=1", "--out", out, "--json")
    fields = json.loads(ended.out)
    assert fields["stirred_report"] == 1 and fields["bytes"] == out.stat().st_size
    assert [one["name"] for one in fields["guarantees"]] == ["swap", "epsilon=1"]
    assert fields["guarantees"][1]["summary"][0].startswith("Each person is protected")
    assert "Can these be ranked?" in out.read_text(encoding="utf-8")


def test_a_plan_without_data(command, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "report.html"
    plan.write_text(PLAN, encoding="utf-8")
    refused = command("report", plan, "--out", out)
    assert refused.code == 2 and "--largest-stratum" in refused.said and not out.exists()
    assert command("report", plan, "--largest-stratum", "40", "--out", out).code == 0
    wrong = command("report", "rho=1", "--largest-stratum", "40", "--out", tmp_path / "other.html")
    assert wrong.code == 2 and "is for plans" in wrong.err


def test_a_specification_from_check(command, tmp_path):
    path = tmp_path / "guarantee.json"
    path.write_text(flavors.pure("household").at(1).to_json(), encoding="utf-8")
    assert command("report", path, "--out", tmp_path / "report.html").code == 0
    assert "guarantee.json" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_cannot_be_reported_is_refused(command, tmp_path):
    ended = command("report", "nothing-of-the-kind", "--out", tmp_path / "report.html")
    assert ended.code == 2 and "names no specification" in ended.err and not (tmp_path / "report.html").exists()


def test_explain_writes_the_same_page(command, tmp_path):
    assert command("explain", SWAP, "--html", tmp_path / "one.html").code == 0
    assert command("report", SWAP, "--out", tmp_path / "two.html").code == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
