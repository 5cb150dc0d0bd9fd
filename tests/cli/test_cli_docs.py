"""The documentation is part of the package, and messages that name a page say how to print it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import stirred

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stirred"


def test_every_page_is_listed_with_its_title(command):
    ended = command("docs")
    assert ended.code == 0
    listed = {line.split()[0] for line in ended.out.splitlines()}
    assert listed == {path.stem for path in (ROOT / "docs").iterdir() if path.suffix != ".svg"}
    assert re.search(r"^plans +Plans for swapping$", ended.out, flags=re.M)


@pytest.mark.parametrize("name", ["plans", "plans.md", "docs/plans.md"])
def test_a_page_is_printed_as_it_stands(name, command):
    assert command("docs", name).out == (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")


def test_the_published_schema_is_a_page(command):
    assert '"$schema"' in command("docs", "specification.schema").out


def test_a_page_that_is_not_there_is_refused_with_those_that_look_like_it(command):
    ended = command("docs", "plan")
    assert ended.code == 2
    assert "no page 'plan'" in ended.err and "Did you mean 'plans'" in ended.err


def test_pages_are_data_of_the_package():
    assert (files(stirred) / "docs" / "topdown.md").is_file()


def test_messages_that_name_a_page_say_how_to_print_it():
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE / "errors").glob("*.py")]
    named = [page for text in texts for page in re.findall(r"docs/([\w.]+)\.(?:md|json)\b", text)]
    told = [page for text in texts for page in re.findall(r"\(stirred docs ([\w.]+)\)", text)]
    assert len(named) >= 6 and sorted(named) == sorted(told)
    assert {*told} <= {path.stem for path in (ROOT / "docs").iterdir()}
