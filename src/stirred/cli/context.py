"""``stirred context``: a questionnaire about the five safes and contextual integrity, to be pasted into a plan."""

from __future__ import annotations

import sys
import tomllib
from typing import Annotated

import typer

from stirred.cli.completing import mode_names
from stirred.cli.printing import print_json


def context(
    mode: Annotated[
        str | None,
        typer.Argument(
            help="The form of access, such as open-data, whose typical answers are printed. Default: all forms are "
            "listed.",
            autocompletion=mode_names,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """List forms of access to data, or print typical answers for one of them about who gets the data, why and how: the
    section [context] of a plan, to be corrected."""
    from stirred.releases.context import MODES, template

    if mode is not None:
        text = template(mode)
        if as_json:
            answers = tomllib.loads(text)["context"]
            print_json({"stirred_context": 1, "mode": mode, "title": MODES[mode].title, "answers": answers})
        else:
            sys.stdout.write(text)
        return
    if as_json:
        print_json({"stirred_context": 1, "modes": [{"mode": key, "title": one.title} for key, one in MODES.items()]})
        return
    for name, one in MODES.items():
        print(f"{name:20}{one.title}")
