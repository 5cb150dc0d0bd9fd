"""The parts of a check's page that say what the published counts reveal by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stirred.invariants import Beliefs
from stirred.releases.folder.documents import fill, named_rows
from stirred.semantics.sentences.formatting import columns
from stirred.swap.revealing import WIDTHS, Revealing

if TYPE_CHECKING:
    from stirred.swap.checking import WhatIf


def revealing_text(found: Revealing, records: str) -> str:
    """What the published counts alone reveal."""
    counts = found.counts
    rows = [
        (
            "determined",
            f"{_share(counts.determined_records, counts.records)} {records}: those in strata with one held or one swap "
            "value. Only one table has these counts, so the release shows these records as they are, at any rate",
        ),
        (
            "of these",
            f"{counts.singletons:,} strata of one record; {counts.duplicates:,} strata of two or more records that are "
            "all alike",
        ),
        (
            "pinned",
            f"{_share(counts.pinned_records, counts.records)} must lie in a certain combination of held and swap "
            "values (the sum of the lower Frechet bounds)",
        ),
        (
            "bounds",
            f"the count of a held and a swap value of a stratum ({counts.cells:,} pairs) is known to within "
            f"{counts.mean_width:.2f} on average; by width of the bounds: "
            + ", ".join(
                f"{width}: {many:,}" for width, many in zip(WIDTHS, counts.widths, strict=True) if many or width == "0"
            ),
        ),
        (
            "guessed",
            f"{_share(counts.guessed, counts.records)} by naming the commonest swap values of each stratum; the chance "
            "to be right is at least " + ", ".join(f"{percent}% for {many:,}" for percent, many in counts.told),
        ),
        (
            "alone",
            f"{_share(found.levels[-1].alone, counts.records)} are the only one with their match and swap values: a "
            "published count of one shows such a record where it is",
        ),
    ]
    text = (
        fill(
            "What the published counts alone reveal (anyone can compute it from a release; it is the same at every "
            "rate and no part of epsilon)"
        )
        + "\n"
        + named_rows(rows)
        + "\n"
        + _few(found)
    )
    return text + (f"\n{_beliefs(found.beliefs)}" if found.beliefs is not None and found.beliefs.laws else "")


def _few(found: Revealing) -> str:
    numbers = range(1, len(found.levels[0].cells) + 1)
    rows = [["published counts of", *map(str, numbers), "more"]]
    rows += [[one.level, *(f"{many:,}" for many in one.cells), f"{one.more:,}"] for one in found.levels]
    return columns(rows, numbers_right=True)


def _beliefs(found: Beliefs) -> str:
    by_law = {one.law: one for one in found.laws}
    chance, even = by_law["hypergeometric"], by_law["uniform"]
    text = (
        f"An attacker who knows these counts and nothing else (in {found.strata:,} strata, those of records at equal "
        "distances): if every assignment of swap values to records is equally likely (hypergeometric law), "
        f"{100 * chance.guessed_share:.1f}% of swap values are expected to be guessed rightly, and "
        f"{100 * chance.whole_share:.2f}% of records to share all held values with others who all have the same swap "
        f"values; if every table is equally likely (uniform law), {100 * even.guessed_share:.1f}% and "
        f"{100 * even.whole_share:.2f}%."
    )
    if found.drawn:
        agree = f"of {found.disagreeing:,} do not agree: their numbers are rough" if found.disagreeing else "agree"
        text += (
            f" The tables of the uniform law were listed in {found.listed:,} strata and drawn by Markov chains in "
            f"{found.drawn:,}, where the chains {agree}."
        )
    if found.too_large:
        text += f" {found.too_large:,} strata are too large for this and left out."
    return fill(text)


def revealed_by(entries: Sequence[WhatIf]) -> str:
    """What each choice of variables reveals and changes."""
    rates = [rate for rate, _ in entries[0].epsilons]
    with_errors = any(error is not None for entry in entries for _, error in entry.errors)
    rows = [
        ["match", "swap", "determined", "unique", "guessed", *(f"changed at {rate}" for rate in rates)]
        + ([f"error at {rate}" for rate in rates] if with_errors else [])
    ]
    for entry in entries:
        shares = [entry.determined_share, entry.unique_share, entry.guessed_share]
        shares += [share for _, share in entry.changed_shares]
        row = [" x ".join(entry.match) or "(none)", " x ".join(entry.swap), *(f"{100 * one:.1f}%" for one in shares)]
        if with_errors:
            row += ["-" if error is None else f"{error:.4f}" for _, error in entry.errors]
        rows.append(row)
    return (
        columns(rows)
        + "\n"
        + fill(
            "Shares of records: determined by the published counts at any rate; unique on match and held values; swap "
            "values guessed rightly from the published counts alone; expected to end with other swap values."
            + (" Error is the expected MAPE, the mean over the tables asked for." if with_errors else "")
        )
    )


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f}%)"
