"""``stirred estimate``: unbiased answers from the noisy measurements of a release, at no cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stirred.estimates import Estimates

SHOWN = 40


def estimate(
    release: Annotated[Path, typer.Argument(help="A TopDown release folder, or its measurements.")],
    level: Annotated[str | None, typer.Option(help="Every unit of this level.")] = None,
    place: Annotated[
        list[str] | None, typer.Option(help="A unit, as level=name, e.g. tract=44007000101. Several are one place.")
    ] = None,
    by: Annotated[str, typer.Option(help="Attributes or recodes, e.g. race,adult. Without it the total.")] = "",
    where: Annotated[
        list[str] | None, typer.Option(help="Only records with these values, e.g. race=a,b. Repeatable.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Which measured table; by default the first.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    sources: Annotated[bool, typer.Option(help="With --place: the measurements that the answer rests on.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write CSV here instead of a table to the terminal.")] = None,
) -> None:
    """Estimate counts from noisy measurements: the best linear unbiased estimate, its standard error and a confidence
    interval. Not biased by nonnegativity as the fitted rows are; an estimate may be below zero."""
    from stirred import errors
    from stirred.cli.common import names, write_new
    from stirred.estimates import MeasuredRelease, source_rows
    from stirred.semantics.shown import columns

    if (level is None) == (place is None):
        raise errors.estimate_question("A question", "has either --level or --place")
    if sources and place is None:
        raise errors.estimate_question("--sources", "goes with --place")
    opened = MeasuredRelease.open(release)
    name = table or opened.plan.released[0].name
    chosen = {key: names(values) for key, values in (_pair(text, "--where") for text in where or [])}
    if level is not None:
        found = opened.estimate(name, names(by), chosen, level=level)
    else:
        places = [_pair(text, "--place") for text in place or []]
        found = opened.union(name, names(by), chosen, places=places, name=" + ".join(unit for _, unit in places))
    if out is not None:
        write_new(out, found.to_frame(confidence).write_csv())
        return
    _print(found, confidence)
    if sources and place is not None:
        print("\nWhat it rests on (the total of the chosen records)")
        print(columns(source_rows(opened.explain(name, chosen, places=places))))


def _print(found: Estimates, confidence: float) -> None:
    from stirred.estimates import estimate_rows
    from stirred.semantics.shown import columns

    rows = estimate_rows(found, confidence, SHOWN)
    print(columns(rows))
    left = len(found.places) * len(found.labels) - (len(rows) - 1)
    if left > 0:
        print(f"... and {left:,} more: --out FILE writes all")
    if found.exact:
        print(f"Known exactly and used: {'; '.join(found.exact)}.")
    if found.unused:
        print(f"Not used: {'; '.join(found.unused)}.", file=sys.stderr)


def _pair(text: str, option: str) -> tuple[str, str]:
    from stirred import errors

    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise errors.estimate_question(f"The {option} {text!r}", "is written as name=value")
    return name.strip(), value.strip()
