"""``stirred limits``: the most that anyone can learn under a given epsilon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper


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
    false_alarm: Annotated[
        list[float] | None,
        typer.Option(
            help="The false-alarm probability that an attacker's test may have: how often it may report a change "
            "where there is none. Default: 0.01, 0.05 and 0.1. Repeatable."
        ),
    ] = None,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Print the most that anyone can learn about one record, and about all records, whatever they assume about the
    data."""
    from stirred.cli.common import check_new, check_paper
    from stirred.limits.bounds import LEVELS, PRIORS
    from stirred.reports.limits_section import of_epsilon

    check_paper(paper, figures)
    check_new(figures)
    said = of_epsilon(
        epsilon, records, distance=distance, levels=false_alarm or LEVELS, priors=prior or PRIORS, bounded=not unbounded
    )
    if figures is not None:
        from stirred.cli.common import save_pictures
        from stirred.reports.answer_figures import question_pictures
        from stirred.semantics.pictures.readable import NotDrawn

        found = question_pictures(said)
        drawn = [one for one in found if not isinstance(one, NotDrawn)]
        save_pictures(drawn, figures, paper=paper, not_drawn=[one for one in found if isinstance(one, NotDrawn)])
    sys.stdout.write(said.to_json() if as_json else said.text())
