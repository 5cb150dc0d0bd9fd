"""What a translator would take is in one folder, and nothing in it is said by nobody."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

from stirred._sentences import read_sentences

SOURCE = Path(__file__).parents[1] / "src" / "stirred"
SPEAKERS = {
    "shared": ["releases/folder/documents.py"],
    "swap": ["swap/documents.py", "swap/checking/putting_back.py", "swap/drawing.py"],
    "topdown": ["topdown/documents.py", "topdown/mechanism.py"],
    "survey": ["survey/documents.py"],
}
"""Which modules say the sentences of a section of ``releases.toml``."""
CHOSEN_BY_PLAN = {"survey": {"laplace", "gaussian", "change_of_unit", "change_of_value"}}
"""Sentences whose name is made of a field of the plan."""


def said(path: str) -> dict[str, list[set[str]]]:
    """The sentences that a module says by name, each with the facts that calls give."""
    calls: dict[str, list[set[str]]] = {}
    for node in ast.walk(ast.parse((SOURCE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "_say"):
            facts = {one.arg for one in node.keywords}
            asked = node.args[0]
            for name in [asked.body, asked.orelse] if isinstance(asked, ast.IfExp) else [asked]:
                if not isinstance(name, ast.Constant):
                    continue
                calls.setdefault(str(name.value), []).append({"**"} if None in facts else {str(one) for one in facts})
    return calls


@pytest.mark.parametrize("section", SPEAKERS)
def test_every_sentence_of_a_release_is_said_with_its_facts(section):
    sentences = read_sentences("releases")[section]
    calls = [(name, facts) for path in SPEAKERS[section] for name, each in said(path).items() for facts in each]
    by_name = {name for name, _ in calls if name in sentences}
    assert set(sentences) - by_name - CHOSEN_BY_PLAN.get(section, set()) == set()
    for name, facts in calls:
        if name in sentences and "**" not in facts:
            assert facts == {field for _, field, _, _ in string.Formatter().parse(sentences[name]) if field}, name


def test_all_sections_of_a_release_have_their_speakers():
    assert list(read_sentences("releases")) == list(SPEAKERS)


def test_sentences_stand_in_one_folder():
    elsewhere = [path for path in SOURCE.rglob("*.toml") if path.parent.name not in ("sentences", "deployments")]
    assert [path.name for path in elsewhere if "published" not in path.parts] == [
        "demo_plan.toml"
    ]  # a plan to go on with
