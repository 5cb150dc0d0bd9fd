"""Every command's help ends with an example, and the examples work."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
import typer

from stirred.cli import app
from stirred.cli.help_texts import EXAMPLES, SUMMARIES


def commands() -> dict[str, object]:
    """Every command and group by its name, such as "ledger init"."""

    def below(group, before: str) -> dict[str, object]:
        found = {}
        for name, one in group.commands.items():
            found[f"{before}{name}"] = one
            if hasattr(one, "commands"):
                found |= below(one, f"{before}{name} ")
        return found

    return below(typer.main.get_command(app.build()), "")


COMMANDS = commands()
LINES = {name: one.epilog.rpartition("\n")[2].strip() for name, one in COMMANDS.items() if one.epilog}
LONG = {"audit plan", "audit program", "demo", "population"}
"""Examples that take long: only what they consist of is looked at."""
SETTINGS = {  # by example: the folder it is typed in, and what must not be there yet
    "init": ("swap", ["plan.toml"]),
    "release": ("swap", ["release"]),
    "ledger init": ("swap", ["census.ledger"]),
    "spine": ("topdown", []),
    "noisy-measurements": ("topdown", []),
    "advise": ("survey", []),
    "generate-survey": ("survey", []),
}


def test_there_are_commands_and_groups():
    assert {"check", "ledger", "ledger init", "audit noise", "registry export", "advise"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_of_the_command(name, command):
    ended = command(*name.split(), "--help")
    *_, head, line = ended.out.rstrip().splitlines()
    assert head.strip() == "Example:"
    assert shlex.split(line)[: 1 + len(name.split())] == ["stirred", *name.split()]
    assert ended.out.count("xample:") == 1 and "E.g.:" not in ended.out  # one style
    assert len(line) <= 100


@pytest.mark.parametrize("name", [name for name, one in COMMANDS.items() if not hasattr(one, "commands")])
def test_the_options_of_an_example_exist(name):
    words = shlex.split(LINES[name])[1:]
    found = COMMANDS[name].make_context(name, words[len(name.split()) :])
    assert found.params


@pytest.mark.parametrize("name", [name for name in LINES if name not in LONG])
def test_an_example_runs_as_it_is_printed(name, files, command):
    place, absent = SETTINGS.get(name, ("swap", []))
    here = files(place)
    for one in absent:
        shutil.rmtree(here / one) if (here / one).is_dir() else (here / one).unlink()
    if name == "sign" and not Path("release-key").exists():
        pytest.skip("ssh-keygen is not installed")
    ended = command(*shlex.split(LINES[name])[1:])
    assert ended.code == 0, ended.said
    assert ended.said


def test_tables_of_examples_and_summaries_name_commands_only():
    assert set(EXAMPLES) <= set(COMMANDS) and set(SUMMARIES) <= set(COMMANDS)


def test_the_list_of_commands_says_of_each_what_it_does_in_whole_words(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for group in ("", *(name for name, one in COMMANDS.items() if hasattr(one, "commands"))):
        lines = command(*group.split(), "--help").out.partition("\n  --help ")[2].partition("Example:")[0].splitlines()
        shown = "\n".join(line for line in lines[1:] if line.strip() and not line.endswith(":"))
        assert shown and "..." not in shown
        assert all(len(line) <= 80 and not line.startswith("      ") for line in shown.splitlines())
