"""Every option and argument has a help text in one style, in words that a newcomer knows."""

from __future__ import annotations

import re

import pytest
import typer

from stirred.cli import app
from stirred.cli.help_texts import PLACEHOLDERS, SECTIONS

OWN = {"--help", "--install-completion", "--show-completion"}
"""Options whose text is typer's."""
JARGON = (
    r"\btold\b", r"\btells?\b", r"\bstops?\b", r"\bmade (files|inputs)\b", r"\bswappers?\b", r"\bgeounits?\b",
    r"\blattice\b", r"\bverdict", r"\bbetray", r"\bkilled\b", r"\bfinest\b", r"\bcoarse", r"\bso many\b",
    r"\bthe law\b", r"\bpremetric", r"\bmultiverse", r"\brival\b", r"\bsort of\b", r"\be\.g\.", r"\bi\.e\.",
    r"\bvia\b", r"\bglob\b", r"\bnonce\b",
)  # fmt: skip
"""Words of ours, metaphors and abbreviations that a newcomer would have to guess."""


def commands(group, before: str = ""):
    """Every command and group, by its name."""
    found = {before.strip() or "stirred": group}
    for name, one in getattr(group, "commands", {}).items():
        found |= commands(one, f"{before}{name} ")
    return found


COMMANDS = commands(typer.main.get_command(app.build()))
PARAMETERS = {
    (name, parameter.opts[0]): parameter
    for name, one in COMMANDS.items()
    for parameter in one.params
    if parameter.opts[0] not in OWN
}
CASES = sorted(PARAMETERS)


def test_there_are_options_of_every_kind():
    assert {("check", "plan"), ("check", "--by"), ("spine", "--fan-out"), ("ledger init", "--limit")} <= set(CASES)
    assert len(CASES) > 150


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_option_has_a_text_that_is_a_sentence(case):
    text = PARAMETERS[case].help
    assert text, "no help text"
    assert text[0].isupper() or text.startswith("'"), text
    assert text.endswith(".") and not text.endswith(".."), text
    assert "  " not in text and " ," not in text


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_no_option_uses_words_of_our_own(case):
    found = [word for word in JARGON if re.search(word, PARAMETERS[case].help, flags=re.I)]
    assert not found, PARAMETERS[case].help


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_is_described_in_words_of_our_own(name):
    text = COMMANDS[name].help
    assert text and text[0].isupper() and text.rstrip().endswith(".")
    assert not [word for word in JARGON if re.search(word, text, flags=re.I)], text


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_defaults_are_told_in_one_way(case):
    parameter = PARAMETERS[case]
    text = parameter.help
    assert not re.search(r"\(default|; default|[Bb]y default|[Ww]ithout it", text), text
    if "Default" in text:
        assert "Default: " in text
        assert parameter.default in (None, "", False), "typer adds the default to the text"
    repeated = getattr(parameter, "multiple", False)
    assert repeated == ("Repeatable" in text), text


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_its_width_and_shows_values_in_capitals(name, width, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    ended = command(*([] if name == "stirred" else name.split()), "--help")
    assert ended.code == 0
    shown = ended.out.partition("Example:")[0]
    assert max(map(len, shown.splitlines())) <= width
    assert not re.search(r"<(str|path|int|float|list)", shown)
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert f"\n  {parameter.metavar} " in shown and parameter.metavar.isupper()


def test_options_of_one_mechanism_stand_below_its_name(command):
    shown = command("estimate", "--help").out
    heads = re.findall(r"^(\w[^\n]*):$", shown, flags=re.M)
    assert heads == [
        "Arguments",
        "Options",
        "Options for swap and topdown",
        "Options for swap",
        "Options for topdown",
        "Options for noisy measurement files (topdown)",
        "Options for survey",
    ]
    assert shown.index("Options for survey") < shown.index("--calibration")


def test_every_command_stands_once_in_the_list(command):
    shown = command("--help").out
    names = COMMANDS["stirred"].commands
    for name in names:
        assert len(re.findall(rf"^  {re.escape(name)} ", shown, flags=re.M)) == 1
    listed = [name for section in SECTIONS.values() for name in section]
    assert set(listed) == set(names) and len(listed) == len(set(listed))


def test_placeholders_are_of_options_that_exist():
    assert set(PLACEHOLDERS) <= {option for parameter in PARAMETERS.values() for option in parameter.opts}
