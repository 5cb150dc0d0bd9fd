"""Each tutorial, copied into an empty folder block by block, gives what the page shows.

A ``text`` block shows what the block before it prints: its lines must follow each other there. A line of three dots
stands for lines left out.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import polars as pl
import pytest

from stirred.cli import app

ROOT = Path(__file__).parent.parent
PAGES = {
    "coming-from-opendp": [],
    "coming-from-the-bureau": ["release"],
    "five-blocks": [],
    "index": ["release/microdata.parquet", "pictures/level-and-power.svg"],
    "tutorial-minister": ["briefing.md", "briefing.html"],
    "tutorial-analyse": ["methods.md"],
    "figures": ["explained", "limits", "paper", "census", "one/level-and-power-one-column.pdf"],
    "tutorial-research": [
        "figures/several-definitions-one-column.pdf",
        "figures/several-definitions.json",
        "compared/level-and-power-two-columns.svg",
        "limits/limits-tests-caption.txt",
        "table.csv",
    ],
    "tutorial-survey": ["release", "income.csv"],
    "tutorial-protect": ["comparison.csv", "swapped", "topdown"],
}
"""The pages, and what is there in the end to be handed over."""


def blocks(page: str) -> list[tuple[str, str]]:
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), flags=re.S)


def run(page: str, language: str, text: str, names: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    if language == "python":
        exec(compile(text, f"docs/{page}.md", "exec"), names)
        return
    for line in text.splitlines():
        assert line.startswith("stirred "), f"{line}: tutorials give commands of stirred only"
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        with pytest.raises(SystemExit) as ended:
            app.main()
        assert ended.value.code in (0, None), line


def shown(text: str, printed: str) -> bool:
    """Whether the lines follow each other in what was printed; three dots stand for lines left out."""
    parts = re.split(r"^ *\.\.\.\n", text, flags=re.M)
    pattern = r"(?:^|\n)" + r"(?:.*\n)*?".join(re.escape(part) for part in parts)
    return re.search(pattern, printed) is not None


def test_what_is_shown_must_have_been_printed():
    assert shown("a\nb\n", "x\na\nb\nc\n") and shown("a\n...\nc\n", "a\nb\nd\nc\n") and shown("...\nb\n", "a\nb\n")
    assert not shown("a\nc\n", "a\nb\nc\n") and not shown("c\n...\na\n", "a\nb\nc\n") and not shown("b\n", "ab\n")


TAKES_LONG = {"figures", "coming-from-the-bureau", "tutorial-research"}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if page in TAKES_LONG else page for page in PAGES]
)
def test_a_tutorial_gives_what_it_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed, compared = "", 0
    for language, text in blocks(page):
        if language == "text":
            assert shown(text, printed), f"{text}\nis not in\n{printed}"
            compared += 1
        elif language in ("python", "sh"):
            run(page, language, text, names, monkeypatch)
            printed = capsys.readouterr().out
            assert "FAILS" not in printed
        elif language == "toml":
            name = re.match(r"# (\S+\.toml)\n", text)
            assert name, "a plan shown in a tutorial begins with the name of its file"
            Path(name.group(1)).write_text(text, encoding="utf-8")
    assert compared > 0
    assert [name for name in PAGES[page] if not Path(name).exists()] == []
    CHECKS.get(page, lambda: None)()


def the_answers_are_near_the_truth() -> None:
    """Within seven standard errors, as all but one of 10^11 normal numbers are, and half a unit for rounding."""
    for row in pl.read_csv("comparison.csv").iter_rows(named=True):
        for name in ("swap", "topdown"):
            assert abs(row[name] - row["true"]) <= 7 * row[f"{name} standard error"] + 0.5, (row["question"], name)


CHECKS = {"tutorial-protect": the_answers_are_near_the_truth}
