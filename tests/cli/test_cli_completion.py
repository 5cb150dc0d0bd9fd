"""Completion in shells: the scripts, and what is offered at Tab."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


@pytest.fixture
def offered_at(command, monkeypatch):
    """``offered_at("ledger", "in")``: what bash offers after ``stirred ledger in``."""

    def run(*words: str) -> list[str]:
        with monkeypatch.context() as during:
            during.setenv("_STIRRED_COMPLETE", "complete_bash")
            during.setenv("COMP_WORDS", " ".join(["stirred", *words]))
            during.setenv("COMP_CWORD", str(len(words)))
            ended = command()
        assert ended.code == 0 and not ended.err
        return ended.out.split()

    return run


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["led"], ["ledger"]),
        (["ledger", "i"], ["init"]),
        (["tabulate", "--pla"], ["--places", "--place-column"]),
        (["deployments", "google-mob"], ["google-mobility-2020"]),
        (["docs", "exit"], ["exit-codes"]),
        (["context", "open"], ["open-data"]),
        (["demo", "to"], ["topdown"]),
        (["init", "file.csv", "--mechanism", "su"], ["survey"]),
        (["explain", "households.c"], []),  # a file: left to the shell
    ],
)
def test_what_is_offered(words, offered, offered_at):
    assert offered_at(*words) == offered


@pytest.mark.parametrize("verb", ["explain", "compare", "lint"])
def test_names_of_guarantees_are_offered(verb, offered_at):
    found = offered_at(verb, "das-2020")
    assert "das-2020-overall" in found and all(name.startswith("das-2020") for name in found)


ASKED = {
    "bash": [
        "bash", "-c",
        "source ./script; complete -p stirred; COMP_WORDS=(stirred led); COMP_CWORD=1; _stirred_completion stirred; "
        "echo ${COMPREPLY[@]}",
    ],
    "zsh": [  # what is offered goes to a function of the shell, which prints it here
        "zsh", "-f", "-c",
        "compdef() { print -r -- $@ }; source ./script; words=(stirred led); CURRENT=2; "
        "_arguments() { print -r -- $@ }; _stirred_completion",
    ],
    "fish": ["fish", "--no-config", "-c", "source ./script; complete; complete --do-complete 'stirred led'"],
}  # fmt: skip
BOUND = {
    "bash": "-F _stirred_completion stirred",
    "zsh": "_stirred_completion stirred",
    "fish": "complete --no-files stirred",
}


@pytest.mark.parametrize("shell", ASKED)
def test_the_script_of_a_shell_is_taken_by_it_and_completes_a_word(shell, command, monkeypatch, tmp_path):
    program = Path(sys.executable).with_name("stirred")
    if shutil.which(shell) is None or not program.exists():
        pytest.skip(f"{shell} is not installed" if program.exists() else "the command stirred is not installed")
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # then the shell is named
    script = command("--show-completion", shell).out
    assert f"_STIRRED_COMPLETE=complete_{shell}" in script
    (tmp_path / "script").write_text(script, encoding="utf-8")
    search = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ASKED[shell], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": search, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert BOUND[shell] in ran.stdout and "ledger" in ran.stdout.splitlines()[-1] and not ran.stderr


def test_the_help_and_the_page_name_both_options(command):
    for option in ("--install-completion", "--show-completion"):
        assert option in command("--help").out and f"stirred {option}" in PAGE


def test_the_other_commands_of_the_page_run(command):
    lines = [line for text in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.S) for line in text.splitlines()]
    for line in (one for one in lines if "completion" not in one):
        assert command(*line.split()[1:]).code == 0, line


def test_the_line_of_a_log_on_the_page_is_what_is_written(monkeypatch):
    from stirred import _progress as progress

    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    shown = progress.OnTerminal()
    shown.stage("measuring persons at level 'tract'", 0.0)
    clock[0] = 200.0
    shown.stage("measuring persons at level 'tract'", 0.37)
    assert shown.line() in PAGE
