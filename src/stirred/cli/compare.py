"""``stirred compare``: guarantees side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred.cli.common import Paper
from stirred.cli.completing import complete_names
from stirred.cli.printing import complain

if TYPE_CHECKING:
    from stirred.spec.specification import Specification

WHAT = (
    "A guarantee: the name of a known deployment (stirred deployments lists them), a release folder, a "
    "specification.json, a YAML record of the public registry, or a budget such as 'rho=2.63' or "
    "'epsilon=1,delta=1e-6,unit=household'."
)


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
    false_alarm: Annotated[
        list[float] | None,
        typer.Option(
            help="The false-alarm probability that an attacker's test may have: how often it may report a change "
            "where there is none. Default: 0.01, 0.05 and 0.1. Repeatable."
        ),
    ] = None,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Compare guarantees: what each protects and how strictly, what an attacker could learn under each, and whether one
    is stricter than another."""
    from stirred.cli.common import check_new, check_paper
    from stirred.spec.linting.findings import lint
    from stirred.verbs import compare as run

    check_paper(paper, figures)
    check_new(html, figures)
    read = [read_named(text) for text in specifications]
    found = run(*read, false_alarms=false_alarm, prior=prior)
    if html is not None:
        from stirred.cli.common import write_new
        from stirred.spec.html import page

        write_new(html, page("Guarantees side by side", found._repr_html_()))
    if figures is not None:
        from stirred.cli.common import save_pictures

        picture, instead = found.picture(), found.not_drawn()
        drawn = [] if picture is None else [picture]
        save_pictures(drawn, figures, paper=paper, not_drawn=[] if instead is None else [instead])
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
