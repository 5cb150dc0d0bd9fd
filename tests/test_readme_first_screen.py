"""The first screen of README.md shows what the programs print, and leads on."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.spec.exact import display
from stirred.swap.law import theorem
from stirred.tables.synthetic.examples import TABLE_3_1

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
FIRST = README.partition("\n## ")[0]


def test_it_is_one_screen_with_two_sentences_output_install_commands_and_links():
    lines = FIRST.splitlines()
    assert len(lines) <= 42 and all(len(line) <= 130 for line in lines)
    opening = FIRST.split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", opening)) == 2
    parts = [FIRST.index(words) for words in ("| true |", "pip install .", "make demo  ", "make test", "Where to go:")]
    assert parts == sorted(parts)
    assert len(re.findall(r"\]\(docs/[\w-]+\.md\)", FIRST)) >= 5


def test_the_table_has_the_true_counts_and_keeps_the_total():
    rented = {row.county: row.rented for row in TABLE_3_1}
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \| ([\d,]+) \| (.+) \|$", FIRST, flags=re.M)
    assert [name for name, *_ in rows] == ["Barnstable", "Essex", "Massachusetts"]
    numbers = {name: [int(one.replace(",", "")) for one in texts] for name, *texts, _ in rows}
    assert numbers.pop("Massachusetts") == [sum(rented.values())] * 2
    for name, (true, released) in numbers.items():
        assert true == rented[name] != released
    for *_, corrected in rows[:2]:
        estimate, lower, upper = (int(one.replace(",", "")) for one in re.findall(r"[\d,]+", corrected))
        assert lower < estimate < upper
    assert f"{sum(row.owned + row.rented for row in TABLE_3_1):,} dwellings" in FIRST


def test_the_budget_beside_the_table_is_that_of_the_demonstration():
    assert f"ε = {display(theorem.epsilon(264_331, Fraction(1, 2)))} per dwelling" in FIRST


def test_the_explanation_is_what_the_command_prints(command):
    (shown,) = re.findall(r"```text\n(.*?)\n```", FIRST, flags=re.S)
    (typed,) = re.findall(r"`stirred (explain [^`]+)`", FIRST)
    assert f"\n{shown}\n\n" in command(*typed.split()).out


@pytest.mark.parametrize("page", re.findall(r"\]\((docs/[\w.-]+)\)", FIRST))
def test_links_lead_to_pages(page):
    assert (Path(__file__).parents[1] / page).is_file()
