"""``stirred limits``: the most that anyone can learn under a given epsilon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import Paper


def limits(
    epsilon: Annotated[str, typer.Option(help="Epsilon of pure differential privacy, per record replaced.")],
    records: Annotated[int, typer.Option(help="The number of records of the dataset.")],
    distance: Annotated[
        str | None, typer.Option(help="Compare datasets that differ in this number of records; 'infinity' is allowed.")
    ] = None,
    false_alarm: Annotated[
        list[float] | None, typer.Option(help="False-alarm probability of tests (default 0.01, 0.05, 0.1). Repeatable.")
    ] = None,
    prior: Annotated[
        list[float] | None,
        typer.Option(help="Prior probability of what is to be learnt (default 0.01, 0.1, 0.5). Repeatable."),
    ] = None,
    unbounded: Annotated[
        bool, typer.Option("--unbounded", help="Epsilon is per record added or removed, not per record replaced.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw what was asked, with its answers marked, into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the most that anyone can learn about one record, and about all, whatever model of the data they have."""
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
        from stirred.reports.limit_figures import question_pictures
        from stirred.semantics.readable_pictures import NotDrawn

        found = question_pictures(said)
        drawn = [one for one in found if not isinstance(one, NotDrawn)]
        save_pictures(drawn, figures, paper=paper, not_drawn=[one for one in found if isinstance(one, NotDrawn)])
    sys.stdout.write(said.to_json() if as_json else said.text())
