"""``stirred estimate`` and ``stirred responses``: numbers corrected for what a mechanism did; they spend no budget."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred import errors, mechanisms, verbs
from stirred._progress import OnTerminal
from stirred.cli.options import (
    AsJson,
    Given,
    Paper,
    RowsAsJson,
    check_new,
    chosen,
    names,
    save_pictures,
    write_new,
    write_parquet,
)
from stirred.cli.printing import note

if TYPE_CHECKING:
    from stirred.estimates import Answers, Estimates
    from stirred.semantics.pictures.shapes import Intervals

SHOWN = 40


def estimate(
    release: Annotated[
        Path,
        typer.Argument(
            help="A release folder, the folder of its measurements, or a folder of noisy measurement files."
        ),
    ],
    given: Given,
    by: Annotated[
        str,
        typer.Option(help="What to count by: columns, attributes or recodes, such as race,adult. Default: one total."),
    ] = "",
    where: Annotated[
        list[str] | None, typer.Option(help="Only records with these values, such as race=a,b. Repeatable.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The name of a table. Default: the first.")] = None,
    confidence: Annotated[float, typer.Option(help="The confidence level of the intervals, between 0 and 1.")] = 0.95,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Also save a figure of the estimates with their intervals (PNG and SVG) into this new folder."
        ),
    ] = None,
    paper: Paper = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the estimates to this file instead of the terminal: CSV, or Parquet (FILE.parquet)."),
    ] = None,
    join: Annotated[
        Path | None,
        typer.Option(
            help="With --out: read this GeoJSON map, and write it to --out with the estimates of each place added as "
            "properties."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="With --join: the property of the map's features that holds the place's code. Default: the name of "
            "the first column of the estimates."
        ),
    ] = None,
    as_json: RowsAsJson = False,
) -> None:
    """Estimate the true numbers from a release, corrected for what the mechanism did, with standard errors and
    confidence intervals. What a release only bounds has an interval alone.

    Reads only the release, and spends no budget. Estimates may be negative: raising them to 0 would bias them.
    """

    check_new(out, figures=figures, paper=paper)
    if (join is not None and out is None) or (key is not None and join is None):
        raise errors.estimate_question("A map with estimates", "is asked for with --join and --out; --key needs both")
    mechanism = mechanisms.mechanism_of_release(release)
    _, options = chosen(mechanism, "estimate", given)
    conditions = {key: names(values) for key, values in (_pair(text) for text in where or [])}
    with OnTerminal() as progress:
        progress.stage(f"estimating from {release}")
        found = verbs.estimate(release, names(by), where=conditions, table=table, **options)
    if figures is not None:
        of_others = mechanism.reads_measurements(release)
        save_pictures([interval_picture(found, confidence, _guarantee(release, of_others))], figures, paper=paper)
    if out is not None:
        remarks = tuple(getattr(found, "remarks", ()))
        if join is not None:
            from stirred.estimates import join_map

            text, said = join_map(found, join, key, confidence)
            write_new(out, text)
            remarks = (*remarks, *said)
        elif out.suffix == ".parquet":
            write_parquet(out, found.to_frame(confidence).to_arrow())
        else:
            write_new(out, found.to_frame(confidence).write_csv())
        for remark in remarks:
            note(remark)
        return
    if as_json:
        sys.stdout.write(found.to_json(confidence))
        return
    _print(found, confidence)
    if mechanism.reads_measurements(release):
        note("These are measurements that others published, taken as they are: stirred docs noisy-measurements")
    else:
        note(f"The folder was taken as it is. Whether it is what it says: stirred verify {release}")
    if "--sources" in given:
        _print_sources(found)


def _guarantee(release: Path, of_others: bool) -> str:
    """The line about the guarantee of a release; measurements that others published have that of their publisher."""
    from stirred.semantics.sentences.formatting import guarantee_line
    from stirred.spec.loading import load

    if of_others:
        return "Guarantee: that under which others published these noisy measurements; the files do not state it"
    return guarantee_line(load(str(release)))


def _print(found: Estimates | Answers, confidence: float) -> None:
    from stirred.semantics.sentences.formatting import columns

    rows = found.rows(confidence, SHOWN)
    print(columns(rows))
    left = len(found) - (len(rows) - 1)
    if left > 0:
        print(f"... and {left:,} more; --out FILE writes all of them")
    print("Intervals: " + "; ".join(found.kind_lines(confidence)) + ".")
    for remark in getattr(found, "remarks", ()):
        print(remark)
    if found.exact:
        print(f"Known exactly and used: {'; '.join(found.exact)}.")
    if found.unused:
        note(f"Not used: {'; '.join(found.unused)}.")


def _print_sources(found: Estimates | Answers) -> None:
    from stirred.estimates import source_rows
    from stirred.semantics.sentences.formatting import columns

    if not found.sources:
        print("\nThe total of the chosen records is known exactly; no measurement is used.")
        return
    print("\nMeasurements from which the total of the chosen records is estimated")
    print(columns(source_rows(found.sources)))


def _pair(text: str) -> tuple[str, str]:

    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise errors.estimate_question(f"The --where {text!r}", "must be written as name=value")
    return name.strip(), value.strip()


MOST_INTERVALS = 60
"""Estimates that one picture shows."""


def interval_picture(found: Answers | Estimates, confidence: float = 0.95, guarantee: str = "") -> Intervals:
    """The first estimates with their intervals; those without an estimate are left out. ``guarantee`` is that of the
    release that they are made from."""
    from stirred.estimates import Answers
    from stirred.semantics.pictures.shapes import Interval, Intervals

    frame = found.to_frame(confidence)
    names = frame.columns[: frame.columns.index("estimate")]
    shown = []
    for row in frame.rows(named=True):
        beside = row.get("naive", row["estimate"])
        numbers = row["lower"], row["estimate"], row["upper"], beside
        if all(number is not None and math.isfinite(number) for number in numbers):
            shown.append(Interval(", ".join(str(row[name]) for name in names) or "all", *numbers))
    if not shown:
        raise errors.nothing_to_draw("no estimate here has a finite interval", "Leave --figures out.")
    measure = found.measure if isinstance(found, Answers) else "count"
    left = len(frame) - min(len(shown), MOST_INTERVALS)
    return Intervals(
        "estimates",
        f"Estimates with {100 * confidence:g}% intervals",
        f"{measure}, table {found.table}",
        measure,
        tuple(shown[:MOST_INTERVALS]),
        "estimate",
        "released rows, uncorrected" if "naive" in frame.columns else "estimate again",
        "Each interval by itself contains the true number about as often as it says, or more often."
        + (f" {left:,} more are not shown." if left else "")
        + "".join(f" {remark}" for remark in (found.remarks if isinstance(found, Answers) else ())),
        guarantee,
    )


def responses(
    yes: Annotated[int, typer.Option(help="The number of answers that are yes.")],
    answers: Annotated[int, typer.Option(help="The number of all answers, yes and no.")],
    keep: Annotated[
        str,
        typer.Option(
            help="The probability with which a person gives the true answer, rather than the opposite: 0.6 or 3/5."
        ),
    ],
    prior: Annotated[
        list[str] | None,
        typer.Option(
            help="The probability, before the answer is seen, that the person's true answer is yes. Default: 0.01, 0.1 "
            "and 0.5. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate a share from randomised responses, and print what one answer reveals about the person who gave it."""
    from stirred.semantics.randomised_response import PRIORS, summarise_responses

    found = summarise_responses(yes, answers, keep, prior or PRIORS)
    sys.stdout.write(found.to_json() if as_json else found.text())
