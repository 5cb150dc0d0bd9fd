"""Answers about the five safes reach plan, certificate, README and explanation, unscored, and change nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

import stirred
from stirred import errors, mechanisms
from stirred.releases.context import FLOWS, NOT_ANSWERED, Context, modes, parameters, safes, template
from stirred.releases.folder.documents import context_section
from stirred.releases.folder.manifest import write_manifest

FIXTURES = Path(__file__).parents[1] / "fixtures"
ROWS = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
PLACES = pl.DataFrame({"county": ["A", "A", "B"], "town": ["x", "y", "z"]})
PEOPLE = pl.DataFrame({"town": list("xyz") * 20, "race": ["p", "q"] * 30, "adult": ["yes", "no", "yes"] * 20})
ANSWERS = {"flow": "outputs to the public", "people": "anyone at all", "sender": "The <Office>"}


def swap_plan(**fields):
    return stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, dataset="rows", **fields)


def topdown_plan(**fields):
    domains = {"race": ["p", "q"], "adult": ["yes", "no"]}
    return stirred.topdown.preset("teaching", domains, ["county", "town"], dataset="rows", **fields)


def data_of(plan):
    return ROWS if plan.mechanism == "swap" else {"persons": PEOPLE, "geography": PLACES}


@pytest.fixture
def released(tmp_path) -> Path:
    stirred.release(swap_plan(context=ANSWERS), ROWS, out=tmp_path / "release")
    return tmp_path / "release"


@pytest.mark.parametrize(
    "folder", sorted(FIXTURES.glob("v0_[234]/*/certificate.json")), ids=lambda path: "-".join(path.parts[-3:-1])
)
def test_a_plan_without_context_is_published_as_by_earlier_versions(folder):
    stated = json.loads(folder.read_text(encoding="utf-8"))
    plan = mechanisms.named(stated["plan"]["mechanism"]).plan_type.from_published(stated["plan"])
    assert plan.context is None
    assert plan.published() == stated["plan"] and plan.hash() == stated["plan_sha256"]


@pytest.mark.parametrize("make", [swap_plan, topdown_plan])
def test_answers_reach_certificate_and_readme_of_every_mechanism_and_are_verified(make, tmp_path):
    plan = make(context=ANSWERS)
    out = tmp_path / "out"
    release = stirred.release(plan, data_of(plan), out=out)
    stated = json.loads((out / "certificate.json").read_text(encoding="utf-8"))["plan"]["context"]
    assert stated == {**ANSWERS, "flow": ["outputs to the public"]}
    assert context_section(plan.context) in (out / "README.txt").read_text(encoding="utf-8")
    assert all(verdict.holds for verdict in stirred.verify(out))
    without = stirred.release(make(), data_of(plan), out=tmp_path / "without")
    assert release.specification == without.specification  # answers change nothing in the guarantee
    assert "five safes" not in (tmp_path / "without" / "README.txt").read_text(encoding="utf-8")


def test_every_question_is_printed_with_its_answer_or_as_not_answered():
    text = " ".join(context_section(Context(**ANSWERS)).split())
    assert "Flow of information: outputs to the public (8.2)" in text
    assert 'people "anyone at all" The guarantee does not speak about this' in text
    for name in ("projects", "settings"):
        assert f"{name} {NOT_ANSWERED} The guarantee does not speak about this" in text
    for name in ("data", "outputs"):
        assert f"{name} {NOT_ANSWERED} The guarantee speaks about a part of this" in text
    assert 'sender "The <Office>" (statistical agencies' in text
    assert text.count(NOT_ANSWERED) == len(safes()) + len(parameters()) - 2
    assert "Flow of information: not answered" in context_section(Context())
    assert "(Remark 8.4.2)" in text and "(Remark 8.4.3)" in text and "not scored" in text


def test_an_answer_of_the_words_not_answered_is_told_from_none():
    text = context_section(Context(people=NOT_ANSWERED))
    assert f'"{NOT_ANSWERED}"' in text


def test_differential_privacy_speaks_about_data_and_outputs_only():
    """Claim 2 and Remark 8.4.3."""
    assert {safe.name for safe in safes() if safe.spoken_of} == {"data", "outputs"}
    assert [safe.name for safe in safes()] == ["people", "projects", "settings", "data", "outputs"]


def test_the_parameters_are_those_of_table_8_1():
    assert {one.title: one.safes for one in parameters()} == {
        "sender": (),
        "recipient": ("people",),
        "subject": ("data",),
        "information type": ("data", "outputs"),
        "transmission principles": ("projects", "settings"),
    }
    assert FLOWS == {"data to researchers": "8.1", "outputs to the public": "8.2"}


def test_every_question_is_a_field_of_the_section_and_every_field_a_question():
    assert {"flow", *(one.name for one in (*parameters(), *safes()))} == set(Context.model_fields)


@pytest.mark.parametrize("mode", modes())
def test_a_template_is_the_section_of_a_plan_file(mode, tmp_path, command):
    printed = command("context", mode)
    assert printed.code == 0 and printed.out == template(mode)
    plan = tmp_path / "plan.toml"
    plan.write_text(swap_plan().to_toml() + "\n" + printed.out, encoding="utf-8")
    read = stirred.SwapPlan.from_toml(plan)
    assert read.context == modes()[mode].context
    asked = tomllib.loads(printed.out)["context"]
    assert set(asked) == set(Context.model_fields)  # also what a template leaves open
    again = tmp_path / "again.toml"
    again.write_text(read.to_toml(), encoding="utf-8")
    assert stirred.SwapPlan.from_toml(again) == read


def test_modes_are_listed_and_others_refused(command):
    listed = command("context")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["open-data", "data-enclave", "synthetic-data"]
    refused = command("context", "open")
    assert refused.code == 2 and "'data-enclave'" in refused.err and not refused.out


def test_templates_of_open_data_vet_nobody_and_enclaves_everything():
    """Examples 8.2.1 and 8.2.2."""
    opened, enclave = modes()["open-data"].context, modes()["data-enclave"].context
    for name in ("people", "projects", "settings"):
        assert getattr(opened, name).startswith("not ") and not getattr(enclave, name).startswith("not ")
    assert enclave.flow == modes()["synthetic-data"].context.flow == tuple(FLOWS)


def test_an_empty_answer_is_no_answer_and_is_not_published():
    plan = swap_plan(context={"people": "  ", "projects": "", "flow": "", "data": " tables "})
    assert plan.published()["context"] == {"data": "tables"}
    assert swap_plan(context={}).published()["context"] == {}


def test_control_characters_are_refused_also_in_a_section_made_in_python():
    with pytest.raises(ValueError, match="line breaks or control characters"):
        Context(people="vetted\nThe guarantee speaks about this")
    with pytest.raises(errors.PlanError, match=re.escape("context.people")):
        swap_plan(context={"people": "a\x1b[2K"})


def test_an_answer_that_was_changed_after_the_release_is_noticed(released):
    path = released / "certificate.json"
    stated = json.loads(path.read_text(encoding="utf-8"))
    stated["plan"]["context"]["people"] = "vetted"
    stated["plan_sha256"] = stirred.SwapPlan.from_published(stated["plan"]).hash()
    path.write_text(json.dumps(stated, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (released / "manifest.json").unlink()
    write_manifest(released)
    failed = [verdict.words for verdict in stirred.verify(released) if not verdict.holds]
    assert len(failed) == 1 and "every document is the text that goes with the plan" in failed[0]


def test_an_explanation_of_the_release_shows_the_answers(released, tmp_path, command):
    shown = command("explain", released, "--html", tmp_path / "page.html")
    assert shown.code == 0 and 'people "anyone at all"' in shown.said and "FIVE SAFES" in shown.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The &lt;Office&gt;" in page and "The <Office>" not in page
    stirred.report(released, tmp_path / "same.html")
    assert "anyone at all" in (tmp_path / "same.html").read_text(encoding="utf-8")
    fields = json.loads(command("explain", released, "--json").out)["context"]
    assert fields["flow"] == ["outputs to the public"]
    assert [one["answer"] for one in fields["safes"]] == ["anyone at all", None, None, None, None]
    assert "context" not in json.loads(command("explain", FIXTURES / "v0_4" / "swap", "--json").out)


@pytest.mark.parametrize("stated", ["vetted", ["people"], {"people": 5}, {"score": "10"}])
def test_an_explanation_of_a_strange_context_is_refused(stated, released, command):
    path = released / "certificate.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["plan"]["context"] = stated
    path.write_text(json.dumps(fields), encoding="utf-8")
    ended = command("explain", released)
    assert ended.code == 2 and "context" in ended.err


def test_answers_may_be_written_after_a_topdown_draw():
    assert topdown_plan(context=ANSWERS).drawn_hash() == topdown_plan().drawn_hash()
    assert topdown_plan(context=ANSWERS).hash() != topdown_plan().hash()
