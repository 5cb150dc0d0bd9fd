"""The form of every ``--help``: placeholders in capitals, options in groups, commands by what they are for.

The groups of options are those that :mod:`stirred.cli.options` names for each option (``rich_help_panel``). Versions of
typer differ in how they show arguments and types; what is written here is the same with all of them.

The example at the end of each command's ``--help``, and the line about it in the list of commands, in one form.

A command of the package has its lines in :data:`EXAMPLES` and :data:`SUMMARIES`; a command that one mechanism adds
brings its own example (``Verb.example``). Tests run the examples, so that each one works as it is printed on a folder
with such files. A summary has at most 52 characters: the list of commands would wrap a longer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Plan and release": (
        "init", "plan", "check", "calibrate", "release", "sign", "ledger", "context", "leftovers", "spine", "advise",
    ),
    "Use a release": ("verify", "tabulate", "estimate", "noisy-measurements"),
    "Understand guarantees": (
        "explain", "compare", "report", "lint", "limits", "responses", "deployments", "registry",
    ),
    "Test programs and methods": ("audit", "study", "reproduce"),
    "Learn and try": ("docs", "demo", "population", "generate-survey"),
}  # fmt: skip
"""Headings of the list of commands, and the commands below each; others stand last, under "Commands"."""
PLACEHOLDERS: Mapping[str, str] = {
    "--against": "LEVEL=NAME",
    "--allow": "NAME",
    "--by": "COLUMNS",
    "--candidate": "VARIABLES",
    "--column": "COLUMN",
    "--command": "COMMAND",
    "--confidential": "FOLDER",
    "--count": "COLUMN",
    "--dataset": "NAME",
    "--difference": "COLUMN=VALUES",
    "--down-to": "LEVEL",
    "--figures": "FOLDER",
    "--flat-id": "COLUMN",
    "--html": "FILE",
    "--join": "FILE",
    "--ledger": "LEDGER",
    "--level": "LEVEL",
    "--limit": "GUARANTEE",
    "--linked": "FILE",
    "--measurements": "FOLDER",
    "--mechanism": "NAME",
    "--odds-ratio": "COLUMNS",
    "--place": "LEVEL=NAME",
    "--place-column": "COLUMN",
    "--places": "FILE",
    "--python": "FUNCTION",
    "--quantiles": "NUMBERS",
    "--rate": "NUMBER",
    "--rates": "NUMBERS",
    "--ratio": "COLUMN=VALUES",
    "--reference": "COLUMN=VALUE",
    "--regress": "FORMULA",
    "--repeated": "COLUMNS",
    "--rho": "NUMBER",
    "--share": "COLUMN",
    "--sizes": "NUMBERS",
    "--specification": "FILE",
    "--superseded-by": "FOLDER",
    "--table": "NAME",
    "--target": "LIMIT",
    "--time": "TIME",
    "--timeout": "TIME",
    "--where": "COLUMN=VALUES",
    "--work": "FOLDER",
}
"""By option, the word that stands for its value; for other options it follows from the type of the value."""


class HelpOfCommand(TyperCommand):
    """A command whose help shows arguments and values in capitals, and options in groups."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if parameter.metavar is None:
                parameter.metavar = _placeholder(parameter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS] PLAN [FILE]...``: what is not required stands in brackets."""
        arguments = [one for one in self.params if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(_usage(one) for one in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options, then each group of options under its heading."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                groups["Arguments"].append((str(parameter.metavar), record[1]))
            else:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class HelpOfGroup(TyperGroup):
    """A group whose help lists commands under headings that say what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, by :data:`SECTIONS`; those of a group below another stand under one heading."""
        names = self.list_commands(ctx)
        sections = SECTIONS if ctx.parent is None else {}
        listed = {name for section in sections.values() for name in section}
        rest = tuple(name for name in names if name not in listed)
        width = max(len(name) for name in names)
        for heading, members in {**sections, "Commands": rest}.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(100)) for name in members if name in names
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _usage(argument: Any) -> str:
    shown = str(argument.metavar)
    shown = shown if argument.required else f"[{shown}]"
    return shown if argument.nargs == 1 else f"{shown}..."


def _placeholder(parameter: Any) -> str | None:
    """The word for the value of an argument or option; None for a flag, and where typer lists the choices."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if getattr(parameter, "is_flag", False):
        return None
    described = getattr(parameter, "type_descriptor", None)  # of typer that has its own types
    if described is not None:
        choices, kind = described.is_choice, str(described.annotation)
    else:
        choices, kind = hasattr(parameter.type, "choices"), str(parameter.type.name)
    if choices:
        return None
    named = next((PLACEHOLDERS[name] for name in parameter.opts if name in PLACEHOLDERS), None)
    if named is not None:
        return named
    kind = kind.lower()
    return "PATH" if "path" in kind else "NUMBER" if "int" in kind or "float" in kind else "TEXT"


EXAMPLES: Mapping[str, str] = {
    "init": "stirred init households.csv --out plan.toml",
    "plan": "stirred plan upgrade plan.toml --out upgraded.toml",
    "plan upgrade": "stirred plan upgrade plan.toml --out upgraded.toml",
    "check": "stirred check plan.toml --by county,tenure --rates 0.01,0.05",
    "calibrate": "stirred calibrate plan.toml --target 'epsilon <= 3' --out stricter.toml",
    "release": "stirred release plan.toml --out release --ledger census.ledger",
    "sign": "stirred sign release --key release-key",
    "verify": "stirred verify release",
    "tabulate": "stirred tabulate release --by county,tenure --out counts.csv",
    "estimate": "stirred estimate release --by county,tenure",
    "compare": "stirred compare release das-2020-overall",
    "explain": "stirred explain release --figures figures",
    "report": "stirred report release --out report.html",
    "limits": "stirred limits --epsilon 1 --records 10",
    "responses": "stirred responses --yes 45 --answers 100 --keep 0.6",
    "lint": "stirred lint das-2020",
    "deployments": "stirred deployments google-mobility-2020",
    "context": "stirred context open-data",
    "ledger": "stirred ledger total census.ledger",
    "ledger init": "stirred ledger init census.ledger --dataset 'census 2030'",
    "ledger add": "stirred ledger add census.ledger earlier --what 'households by county' --past",
    "ledger withdraw": "stirred ledger withdraw census.ledger release --reason 'Two counties were exchanged.'",
    "ledger withdrawn": "stirred ledger withdrawn census.ledger --out withdrawn.json",
    "ledger list": "stirred ledger list census.ledger",
    "ledger total": "stirred ledger total census.ledger",
    "ledger verify": "stirred ledger verify census.ledger",
    "registry": "stirred registry import record.yaml",
    "registry export": "stirred registry export das-2020-overall --author 'A. Author'",
    "registry import": "stirred registry import record.yaml",
    "leftovers": "stirred leftovers .",
    "demo": "stirred demo topdown --out demo",
    "docs": "stirred docs tutorial",
}
"""By command, a line that can be typed; the files in it are those of docs/tutorial.md or speak for themselves."""

SUMMARIES: Mapping[str, str] = {
    "init": "Draft a plan from the columns of your file.",
    "plan": "Bring an earlier plan to the present form.",
    "plan upgrade": "Write a plan in the present form; say what changed.",
    "check": "Say what a release by a plan would mean and cost.",
    "calibrate": "Find the budget or swap rate that keeps limits.",
    "release": "Protect the data and write a release folder.",
    "sign": "Sign a release, so that recipients know whose it is.",
    "verify": "Check a release from its own files.",
    "tabulate": "Count the rows of a release by some columns.",
    "estimate": "Estimate true numbers from a release, with intervals.",
    "compare": "Compare guarantees, and say if they can be ranked.",
    "explain": "Say what a guarantee means, in words and pictures.",
    "report": "Write an HTML page about guarantees, to hand over.",
    "limits": "Say what anyone can at most learn at an epsilon.",
    "responses": "Estimate a share from randomised responses.",
    "lint": "List weaknesses of a guarantee.",
    "study": "Compare plans and swapping methods on your data.",
    "reproduce": "Compute published numbers and figures again.",
    "deployments": "List known uses of differential privacy.",
    "context": "Print questions about access, to answer in a plan.",
    "leftovers": "Find files that interrupted releases left behind.",
    "demo": "Make a whole release from generated data.",
    "docs": "List the pages of the documentation, or print one.",
    "population": "Generate a census, with a TopDown plan for it.",
    "spine": "Propose nested areas that make districts accurate.",
    "noisy-measurements": "Write measurements in the Census Bureau's format.",
    "advise": "Say where a survey's guarantee should start.",
    "generate-survey": "Generate a survey, with a survey plan for it.",
    "audit": "Test whether programs keep what they promise.",
    "ledger": "Record all releases of a dataset, and their total.",
    "ledger init": "Start the ledger of a dataset.",
    "ledger add": "Record a release that was made without the ledger.",
    "ledger withdraw": "Record that a release should no longer be used.",
    "ledger withdrawn": "List the withdrawn releases, for the public.",
    "ledger list": "List all recorded releases, oldest first.",
    "ledger total": "Print the guarantee of all releases together.",
    "ledger verify": "Check the ledger and the releases in it.",
    "registry": "Write and read records of the public registry.",
    "registry export": "Print a registry record in YAML.",
    "registry import": "Print the guarantee that a record describes.",
}
"""By command, what it does, in the list of commands."""


def as_epilog(example: str) -> str:
    r"""The last lines of a help text. The first character tells typer to leave the line breaks as they are.

    >>> as_epilog("stirred lint das-2020")
    '\x08\nExample:\n  stirred lint das-2020'
    """
    return f"\b\nExample:\n  {example}"


def add_examples(app: typer.Typer, examples: Mapping[str, str], before: str = "") -> None:
    """Give every command of ``app`` and of the groups below it its example, as the last lines of its help, its line in
    the list of commands, and the form of its help."""
    below: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for one in below:
        one.cls = HelpOfCommand if isinstance(one, CommandInfo) else HelpOfGroup
        name = f"{before}{one.name}"
        one.short_help = SUMMARIES.get(name, one.short_help)
        if name in examples:
            one.epilog = as_epilog(examples[name])
        if isinstance(one, TyperInfo) and one.typer_instance is not None:
            add_examples(one.typer_instance, examples, f"{name} ")
