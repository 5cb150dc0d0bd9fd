"""The commands about guarantees: ``stirred compare``, ``lint``, ``explain``, ``limits`` and ``report``.

No data are read, but by ``report`` for a confidential appendix.
"""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred import errors, mechanisms, verbs
from stirred._progress import OnTerminal
from stirred.cli.options import (
    AsJson,
    Given,
    Paper,
    check_new,
    chosen,
    complete_names,
    fitted,
    save_pictures,
    write_new,
)
from stirred.cli.printing import complain, note, print_json

if TYPE_CHECKING:
    from stirred.spec.specification import Specification

WHAT = (
    "A guarantee: the name of a known deployment (stirred deployments lists them), a release folder, a "
    "specification.json, a YAML record of the public registry, or a budget such as 'rho=2.63' or "
    "'epsilon=1,delta=1e-6,unit=household'."
)

FalseAlarms = Annotated[
    list[float] | None,
    typer.Option(
        help="The false-alarm probability that an attacker's test may have: how often it may report a change "
        "where there is none. Default: 0.01, 0.05 and 0.1. Repeatable."
    ),
]


def read_named(text: str) -> Specification:
    """The specification that a text names; prints to stderr which deployment was taken, if the name was not exact."""
    from stirred.spec.loading import load

    found = load(text)
    if found.name and "=" not in text and not Path(text).exists():
        say_what_is_taken(text)
    return found


def say_what_is_taken(text: str) -> None:
    """Print to stderr which deployment was taken, if only a part or a variant of its name was given."""
    from stirred.spec.known_deployments.names import taken_as

    if words := taken_as(text):
        complain(words)


def compare(
    specifications: Annotated[
        list[str], typer.Argument(help=f"Two or more guarantees. {WHAT}", autocompletion=complete_names)
    ],
    false_alarm: FalseAlarms = None,
    prior: Annotated[
        float,
        typer.Option(
            help="The attacker's probability for a statement before the release, from which the probability after it "
            "is computed."
        ),
    ] = 0.01,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also save a figure into this new folder: how often a change of data would be noticed."),
    ] = None,
    paper: Paper = False,
    html: Annotated[Path | None, typer.Option(help="Also write the comparison to this new HTML file.")] = None,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Also print why each pair can or cannot be ranked.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare guarantees: what each protects and how strictly, what an attacker could learn under each, and whether one
    is stricter than another."""
    from stirred.spec.linting.findings import lint

    check_new(html, figures=figures, paper=paper)
    read = [read_named(text) for text in specifications]
    found = verbs.compare(*read, false_alarms=false_alarm, prior=prior)
    if html is not None:
        from stirred._display import html_page

        write_new(html, html_page("Guarantees side by side", found._repr_html_()))
    if figures is not None:
        save_pictures([found.drawn()], figures, paper=paper)
    if as_json:
        sys.stdout.write(found.to_json())
        return
    print(found)
    if reasons:
        for verdict in found.verdicts:
            print(f"Does {verdict.first} imply {verdict.second}? {verdict.forth}")
            print(f"Does {verdict.second} imply {verdict.first}? {verdict.back}")
    first, *others = read
    for other in others:
        alone = lint(other)
        for finding in lint(other, before=first):
            if finding not in alone:
                print(f"finding {finding.id}: {finding.words}")


def lint(
    specification: Annotated[str, typer.Argument(help=WHAT, autocompletion=complete_names)],
    before: Annotated[
        str | None,
        typer.Option(
            help="Another guarantee, such as an earlier one: also list in what the first is weaker. Accepts the same "
            "as SPECIFICATION."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List weaknesses of a guarantee: what it leaves out, and choices that make its number look smaller than it is."""
    from stirred.spec.linting.findings import lint as run

    read = read_named(specification)
    findings = run(read, before=read_named(before) if before else None)
    if as_json:
        print(json.dumps({"stirred_lint": 1, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return
    print(fitted(str(read)))
    for finding in findings:
        print("\n" + textwrap.fill(f"{finding.id}: {finding.words}", 110))
        print(textwrap.indent(textwrap.fill(f"{finding.why} [{finding.source}]", 106), "    "))
    if not findings:
        print("\nNo findings.")


def explain(
    specification: Annotated[str, typer.Argument(help=WHAT, autocompletion=complete_names)],
    concern: Annotated[
        list[str] | None,
        typer.Option(
            help="Explain what can be learnt about a part of a record, instead of the whole: an attribute "
            "('cenrace'), a place ('block within tract'), or both ('cenrace + within tract'). Repeatable."
        ),
    ] = None,
    allocation: Annotated[
        Path | None,
        typer.Option(
            help="With --concern: a TOML file that says how the budget is divided among levels and queries. Default: "
            "that of the deployment or release."
        ),
    ] = None,
    false_alarm: FalseAlarms = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            help="State at this delta the epsilon that odds exceed with a probability of at most delta, and that of "
            "(epsilon, delta)-differential privacy, whose delta is no such probability. Default: several from 0.05 to "
            "1e-10. Repeatable."
        ),
    ] = None,
    group: Annotated[
        list[int] | None,
        typer.Option(
            help="State what holds for this number of persons (or other units) together. Default: 2 and 5. Repeatable."
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            help="For a release of a swap: say how often an exchange of these two records would be noticed, such as "
            "'size=2,county=A,tenure=own;county=B,tenure=rent'. If held columns are left out, both records are taken "
            "to be unique. Repeatable."
        ),
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Also save figures (PNG and SVG) into this new folder.")] = None,
    paper: Paper = False,
    html: Annotated[Path | None, typer.Option(help="Also write this new HTML file, as stirred report does.")] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Also print the sections that hold for every guarantee of this kind, and the numbered sources.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain a guarantee in plain words: who is protected, what is published exactly, what an attacker could notice or
    come to believe, and what is not protected."""
    from stirred.reports.limits_section import of_explanation
    from stirred.reports.subjects import as_fields, as_text, of_release
    from stirred.spec.known_deployments.allocations import read_allocation

    check_new(html, figures=figures, paper=paper)
    explained = verbs.explain(
        specification,
        allocation=read_allocation(allocation) if allocation is not None else None,
        concerns=concern or (),
        false_alarms=false_alarm,
        deltas=delta,
        groups=group,
        pairs=pair or (),
    )
    limits, context = of_explanation(explained), of_release(specification)
    say_what_is_taken(specification)
    if Path(specification).is_dir():
        note(f"The folder was taken as it is. Whether it is what it says: stirred verify {specification}")
    if html is not None:
        from stirred.reports.page import write_report
        from stirred.reports.subjects import subject

        write_report([subject(specification, explanation=explained, context=context)], html)
    if figures is not None:
        save_pictures(explained.drawn, figures, paper=paper)
    if as_json:
        fields = {**explained.to_fields(), "limits": limits.to_fields(), **as_fields(context)}
        print_json(fields)
    else:
        sys.stdout.write(f"{explained.text(full)}\n{limits.text(full)}{as_text(context)}")


def limits(
    epsilon: Annotated[
        str, typer.Option(help="Epsilon of pure differential privacy (delta = 0), for one record replaced by another.")
    ],
    records: Annotated[int, typer.Option(help="The number of records in the dataset.")],
    distance: Annotated[
        str | None,
        typer.Option(
            help="Print only how well two datasets that differ in this number of records can be distinguished. "
            "'infinity' is allowed. Default: for one record, and for the whole database."
        ),
    ] = None,
    false_alarm: FalseAlarms = None,
    prior: Annotated[
        list[float] | None,
        typer.Option(
            help="The attacker's probability for a statement before the release. Default: 0.01, 0.1 and 0.5. "
            "Repeatable."
        ),
    ] = None,
    unbounded: Annotated[
        bool, typer.Option("--unbounded", help="Epsilon is for one record added or removed, not for one replaced.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw what was asked, with its answers marked, into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: AsJson = False,
) -> None:
    """Print the most that anyone can learn about one record, and about all records, whatever they assume about the
    data."""
    from stirred.limits.bounds import LEVELS, PRIORS
    from stirred.reports.limits_section import of_epsilon, question_pictures

    check_new(figures=figures, paper=paper)
    said = of_epsilon(
        epsilon, records, distance=distance, levels=false_alarm or LEVELS, priors=prior or PRIORS, bounded=not unbounded
    )
    if figures is not None:
        save_pictures(question_pictures(said), figures, paper=paper)
    sys.stdout.write(said.to_json() if as_json else said.text())


REPORTED = (
    "One or more: a release folder, a plan, a specification.json, the name of a known deployment, a YAML record of the "
    "public registry, or a budget such as 'rho=2.63' or 'epsilon=1,delta=1e-6,unit=household'. Several are also "
    "compared."
)


def report(
    what: Annotated[list[str], typer.Argument(help=REPORTED)],
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
                raise errors.PlanError(
                    "appendix-without-file",
                    f"The option {option} is for the confidential appendix, and nothing of it goes into the report.",
                    f"Name the file of the appendix (--confidential-appendix FILE), or leave {option} out. "
                    "docs/reports.md (stirred docs reports) has examples.",
                )
        return
    if len(what) != 1 or not is_file(Path(what[0]) / CERTIFICATE):
        raise errors.PlanError(
            "appendix-of-one-release",
            "A confidential appendix is about one release.",
            "Name one release folder, and nothing beside it. docs/reports.md (stirred docs reports) has examples.",
        )
    if plan is None and ledger is None:
        raise errors.appendix_of_nothing()
    if appendix.absolute() == out.absolute():
        raise errors.OutputError(
            "appendix-is-the-report",
            f"The confidential appendix is another file than the report: both would be {appendix}.",
            "Name two files.",
        )
    check_place(appendix)


def _subject(typed: str, given: Given) -> Any:
    """What was typed, read; options of mechanisms are for plans."""
    from stirred.reports.subjects import is_plan, subject

    if not is_plan(typed):
        return subject(typed)
    _, options = chosen(mechanisms.mechanism_of_plan(typed), "report", given)
    return subject(typed, options=options)
