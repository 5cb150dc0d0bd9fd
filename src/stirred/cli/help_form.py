"""The form of every ``--help``: placeholders in capitals, options in groups, commands by what they are for.

The groups of options are those that :mod:`stirred.cli.options` names for each option (``rich_help_panel``). Versions of
typer differ in how they show arguments and types; what is written here is the same with all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

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
