"""``stirred report``: one page about one or several guarantees, to hand over."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stirred.cli.options import Given
from stirred.cli.printing import note

WHAT = (
    "One or more: a release folder, a plan, a specification.json, the name of a known deployment, a YAML record of the "
    "public registry, or a budget such as 'rho=2.63' or 'epsilon=1,delta=1e-6,unit=household'. Several are also "
    "compared."
)


def report(
    what: Annotated[list[str], typer.Argument(help=WHAT)],
    given: Given,
    out: Annotated[Path, typer.Option(help="The HTML file to write; it must not exist yet.")] = Path("report.html"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Write one HTML page about guarantees: a summary in plain words, what they mean and do not mean, pictures, what
    analysts need, glossary and sources. The page can be read without a network. A plan's data are not read."""
    from stirred import errors
    from stirred.cli.common import check_new
    from stirred.cli.compare import say_what_is_taken
    from stirred.releases.progress import OnTerminal
    from stirred.reports.page import write_report
    from stirred.reports.subjects import is_plan

    check_new(out)
    if given and not any(is_plan(one) for one in what):
        raise errors.report_option(next(iter(given)), "is for plans whose data are not read")
    with OnTerminal() as progress:
        progress.stage("reading the guarantees")
        subjects = [_subject(one, given) for one in what]
        progress.stage(f"drawing figures and writing {out}")
        write_report(subjects, out)
    for one in what:
        say_what_is_taken(one)
    if as_json:
        fields = {
            "stirred_report": 1,
            "file": str(out),
            "bytes": out.stat().st_size,
            "guarantees": [
                {"name": one.name, "summary": [said.words for said in one.explanation.section("summary")]}
                for one in subjects
            ],
        }
        sys.stdout.write(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")
        return
    note(f"wrote {out}")


def _subject(typed: str, given: Given) -> Any:
    """What was typed, read; options of mechanisms are for plans."""
    from stirred.cli.options import chosen
    from stirred.reports.subjects import is_plan, subject
    from stirred.verbs import mechanism_of_plan

    if not is_plan(typed):
        return subject(typed)
    _, options = chosen(mechanism_of_plan(typed), "report", given)
    return subject(typed, options=options)
