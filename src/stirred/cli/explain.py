"""``stirred explain``: explain what a guarantee means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper
from stirred.cli.compare import WHAT, say_what_is_taken
from stirred.cli.completing import complete_names
from stirred.cli.printing import note


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
    false_alarm: Annotated[
        list[float] | None,
        typer.Option(
            help="The false-alarm probability that an attacker's test may have: how often it may report a change "
            "where there is none. Default: 0.01, 0.05 and 0.1. Repeatable."
        ),
    ] = None,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Explain a guarantee in plain words: who is protected, what is published exactly, what an attacker could notice or
    come to believe, and what is not protected."""
    import json

    from stirred.cli.common import check_new, check_paper
    from stirred.reports.limits_section import of_explanation
    from stirred.reports.subjects import as_fields, as_text, of_release
    from stirred.spec.known_deployments.allocations import read_allocation
    from stirred.verbs import explain as run

    check_paper(paper, figures)
    check_new(html, figures)
    explained = run(
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
        from stirred.cli.common import save_pictures

        save_pictures(explained.pictures(), figures, paper=paper, not_drawn=explained.not_drawn())
    if as_json:
        fields = {**explained.to_fields(), "limits": limits.to_fields(), **as_fields(context)}
        sys.stdout.write(json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(f"{explained.text(full)}\n{limits.text(full)}{as_text(context)}")
