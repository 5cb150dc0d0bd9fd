"""``stirred report``: one page about one or several guarantees, to hand over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stirred import errors, mechanisms
from stirred._progress import OnTerminal
from stirred.cli.guarantees import say_what_is_taken
from stirred.cli.options import Given, check_new, chosen
from stirred.cli.printing import note, print_json

WHAT = (
    "One or more: a release folder, a plan, a specification.json, the name of a known deployment, a YAML record of the "
    "public registry, or a budget such as 'rho=2.63' or 'epsilon=1,delta=1e-6,unit=household'. Several are also "
    "compared."
)


def report(
    what: Annotated[list[str], typer.Argument(help=WHAT)],
    given: Given,
    out: Annotated[Path, typer.Option(help="The HTML file to write; it must not exist yet.")] = Path("report.html"),
    confidential_appendix: Annotated[
        Path | None,
        typer.Option(
            help="Also write the custodian's appendix of one release to this new HTML file: ledger total, true errors, "
            "what the invariants reveal. It is confidential, and refused inside a release."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="With --confidential-appendix: the plan of the release. Its confidential data are read."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="With --confidential-appendix: the ledger of the dataset, a file or postgresql://USER@HOST/DATABASE."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Write one HTML page about guarantees: a summary in plain words, what they mean and do not mean, pictures, what
    analysts need, glossary and sources. The page can be read without a network. A plan's data are not read."""
    from stirred.reports.appendix import appendix
    from stirred.reports.page import write_report
    from stirred.reports.subjects import is_plan
    from stirred.semantics.sentences.summary import in_classes

    check_new(out, confidential_appendix)
    _check_appendix(what, out, confidential_appendix, plan, ledger)
    if given and not any(is_plan(one) for one in what):
        raise errors.report_option(next(iter(given)), "is for plans whose data are not read")
    with OnTerminal() as progress:
        progress.stage("reading the guarantees")
        subjects = [_subject(one, given) for one in what]
        if confidential_appendix is not None:
            progress.stage(f"computing the confidential appendix {confidential_appendix}")
            appendix(what[0], confidential_appendix, plan=plan, ledger=ledger)
        progress.stage(f"drawing figures and writing {out}")
        write_report(subjects, out)
    for one in what:
        say_what_is_taken(one)
    if as_json:
        fields = {
            "stirred_report": 1,
            "file": str(out),
            "bytes": out.stat().st_size,
            "confidential_appendix": None if confidential_appendix is None else str(confidential_appendix),
            "guarantees": [
                {
                    "name": one.name,
                    "summary": [said.words for said in one.explanation.section("summary")],
                    "classes": in_classes(one.explanation.setting),
                }
                for one in subjects
            ],
        }
        print_json(fields)
        return
    note(f"wrote {out}")
    if confidential_appendix is not None:
        note(f"wrote {confidential_appendix}. It is confidential: do not publish it.")


def _check_appendix(what: list[str], out: Path, appendix: Path | None, plan: Path | None, ledger: str | None) -> None:
    """Raise, before anything is read or written, if an appendix is asked for in a way that cannot be answered."""
    from stirred._bounded_reading import is_file
    from stirred.releases.folder.documents import CERTIFICATE
    from stirred.reports.appendix import check_place

    if appendix is None:
        for option, value in (("--plan", plan), ("--ledger", ledger)):
            if value is not None:
                raise errors.appendix_without_file(option)
        return
    if len(what) != 1 or not is_file(Path(what[0]) / CERTIFICATE):
        raise errors.appendix_of_one_release()
    if plan is None and ledger is None:
        raise errors.appendix_of_nothing()
    if appendix.absolute() == out.absolute():
        raise errors.appendix_is_the_report(appendix)
    check_place(appendix)


def _subject(typed: str, given: Given) -> Any:
    """What was typed, read; options of mechanisms are for plans."""
    from stirred.reports.subjects import is_plan, subject

    if not is_plan(typed):
        return subject(typed)
    _, options = chosen(mechanisms.mechanism_of_plan(typed), "report", given)
    return subject(typed, options=options)
