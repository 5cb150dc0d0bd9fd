"""``stirred limits``: what anyone can at most learn from an epsilon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def limits(
    epsilon: Annotated[str, typer.Option(help="The privacy loss of pure differential privacy, per record replaced.")],
    records: Annotated[int, typer.Option(help="How many records the database has.")],
    distance: Annotated[
        str | None, typer.Option(help="Ask about datasets this far apart instead, in records; 'infinity' is allowed.")
    ] = None,
    false_alarm: Annotated[
        list[float] | None, typer.Option(help="False-alarm probability of tests (default 0.01, 0.05, 0.1).")
    ] = None,
    prior: Annotated[
        list[float] | None, typer.Option(help="What was believed before, as a probability (default 0.01, 0.1, 0.5).")
    ] = None,
    unbounded: Annotated[
        bool, typer.Option("--unbounded", help="Epsilon is for a record added or removed, not for one replaced.")
    ] = False,
    figures: Annotated[Path | None, typer.Option(help="Also draw figures into this new folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what anyone can at most learn, whatever their model of the data: about one record, and about all of them."""
    from stirred.limits.bounds import LEVELS, PRIORS
    from stirred.reports.limits_section import of_epsilon

    if figures is not None:
        from stirred.releases.folder import check_target

        check_target(figures)
    said = of_epsilon(
        epsilon, records, distance=distance, levels=false_alarm or LEVELS, priors=prior or PRIORS, bounded=not unbounded
    )
    if figures is not None:
        from stirred.cli.common import save_pictures
        from stirred.limits.figures import left_out
        from stirred.reports.limit_figures import pictures_at
        from stirred.reports.limits_section import as_float
        from stirred.spec.exact import exact

        drawn = as_float(exact(epsilon, "Epsilon"))
        pictures = pictures_at(drawn, records)
        save_pictures(pictures, figures)
        for words in left_out(drawn, records):
            print(words, file=sys.stderr)
    sys.stdout.write(said.to_json() if as_json else said.text())
