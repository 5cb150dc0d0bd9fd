"""Every command ends with an exit code of docs/exit-codes.md: 0 done, 1 the answer is no, 2 refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from stirred.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text(encoding="utf-8")
NO = [  # a file that is changed first, and a command that then answers no; others are tried where they are tested
    ("release/microdata.csv", "verify release"),
    (None, "audit noise draws.txt --law integers --below 2"),
]
REFUSED = [
    "init nothere.csv", "plan upgrade nothere.toml",
    "check nothere.toml", "calibrate rho", "release nothere.toml --out new",
    "sign nothere --key key",
    "verify nothere", "tabulate nothere --by county", "estimate nothere", "compare rho=1", "explain nothere",
    "report nothere --out page.html", "limits --epsilon x --records 10", "responses --yes 5 --answers 1 --keep 0.6",
    "lint nothere", "study nothere.toml", "reproduce nothere", "deployments nothere", "context nothere",
    "demo nothere", "docs nothere", "population .", "spine", "noisy-measurements nothere new", "advise nothere.toml",
    "generate-survey .", "audit plan nothere.toml", "audit program nothere.toml", "audit release nothere --input x",
    "audit noise", "audit exact --held x --swapped 1,2 --rate 0.5", "ledger init", "ledger add nothere.ledger rho=1",
    "ledger list nothere.ledger", "ledger total nothere.ledger", "ledger verify nothere.ledger",
    "ledger withdraw nothere.ledger release", "ledger withdrawn nothere.ledger",
    "registry export nothere", "registry import nothere.yaml", "leftovers nothere",
]  # fmt: skip


def test_the_page_lists_every_code():
    assert re.findall(r"^\| (\d+) \|", PAGE, flags=re.M) == ["0", "1", "2", "3", "4", "5", "6", "130"]


@pytest.mark.parametrize(("changed", "typed"), NO, ids=[typed for _, typed in NO])
def test_an_answer_of_no_is_1_and_the_page_names_the_command(changed, typed, files, command):
    here = files("swap")
    if changed is not None:
        (here / changed).write_bytes((here / changed).read_bytes() + b"\n")
    ended = command(*shlex.split(typed))
    assert ended.code == 1, ended.said
    row = next(line for line in PAGE.splitlines() if line.startswith("| 1 |"))
    assert f"`{typed.split()[0]}`" in row


@pytest.mark.parametrize("typed", REFUSED)
def test_a_refusal_is_2_and_ends_with_what_to_do(typed, files, command):
    files("swap")
    ended = command(*shlex.split(typed))
    assert ended.code == 2, ended.said
    said = ended.err.strip()
    assert said and "Traceback" not in said
    assert said.startswith("stirred: ") or "Usage: " in said


def test_every_command_is_refused_somewhere():
    def names(group, before=""):
        for name, one in group.commands.items():
            yield from names(one, f"{before}{name} ") if hasattr(one, "commands") else [f"{before}{name}"]

    for name in names(typer.main.get_command(app.build())):
        assert any(typed == name or typed.startswith(f"{name} ") for typed in REFUSED), name


@pytest.mark.parametrize(
    ("place", "typed", "stage"),
    [
        ("swap", "verify release", "verifying release"),
        ("swap", "estimate release --by county,tenure", "estimating from release"),
        ("swap", "report rho=1 --out page.html", "drawing figures and writing page.html"),
        ("topdown", "spine --blocks blocks.csv --targets places", "running stirred spine"),
    ],
)
def test_long_work_names_what_is_being_done(place, typed, stage, files, command, monkeypatch):
    stages = []
    monkeypatch.setattr("stirred._progress.OnTerminal.stage", lambda self, words, done=None: stages.append(words))
    files(place)
    assert command(*shlex.split(typed)).code == 0
    assert stage in stages
