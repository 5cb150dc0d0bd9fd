"""The text that ``print`` shows of the check of a TopDown plan."""

from __future__ import annotations

import math

from stirred.errors import listed
from stirred.invariants import Beliefs
from stirred.releases.folder.documents import code_line, fill, findings_and_stops
from stirred.semantics.sentences.formatting import columns
from stirred.spec.exact import bound
from stirred.topdown.checking import LEVEL, TopDownCheck
from stirred.topdown.revealing import KeptTogether


def describe(check: TopDownCheck) -> str:
    """A check as a page of text."""
    parts = [
        "CONFIDENTIAL: computed from the data. Do not publish it.",
        _first_to_hear(check),
        _revealing(check),
        _guarantee(check),
        _sizes(check),
        _errors(check),
        _targets(check),
        _biases(check),
        _fit(check),
        _concerns(check),
        _forecast(check),
        *findings_and_stops(check.specification, check.open_stops),
        "No stops: the data keep every constraint of the plan and no two margins to be kept cross, so "
        "a release would not be refused."
        + (" They keep every relation between tables, and every fit can." if check.plan.relations else "")
        if not check.open_stops
        else "A release of this plan would be refused because of what the lines with STOP say.",
        *code_line(check.code),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_to_hear(check: TopDownCheck) -> str:
    kept = [str(one.margin) for one in check.plan.invariants]
    if not kept:
        return "The plan has no invariants: nothing is published exactly."
    lines = [fill("Not protected at all, since it is published exactly as it is:")]
    lines += [fill(f"- {words}", "  ") for words in kept]
    return "\n".join(lines)


def _revealing(check: TopDownCheck) -> str:
    found = check.revealing
    if not found.margins:
        return ""
    numbers = [str(number) for number in range(1, len(found.margins[0].counts.cells) + 1)]
    rows = [["published counts of", "0", *numbers, "more"]]
    rows += [
        [one.margin, f"{one.empty:,}", *(f"{many:,}" for many in one.counts.cells), f"{one.counts.more:,}"]
        for one in found.margins
    ]
    lines = [
        fill(
            "What the published counts alone reveal (anyone can compute it from a release; no noise hides it and it is "
            "no part of rho)"
        ),
        columns(rows, numbers_right=True),
    ]
    lines += [
        fill(f"- {one.margin} fixes all attributes of {one.determined_records:,} of {one.records:,} records.", "  ")
        for one in found.margins
        if one.determined_records
    ]
    lines += [_pair(one) for one in found.pairs]
    return "\n".join(lines)


def _pair(found: KeptTogether) -> str:
    both = found.revealed
    return fill(
        f"- {found.coarse}, together with {found.fine}: the finer table is determined for {both.determined_records:,} "
        f"of {both.records:,} records, {both.pinned_records:,} must lie in a certain one of its cells, and a cell is "
        f"known to within {both.mean_width:.2f} on average (Frechet bounds)." + _believed(found.beliefs),
        "  ",
    )


def _believed(found: Beliefs) -> str:
    if not found.laws:
        return ""
    shares = {one.law: f"{100 * one.guessed_share:.1f}%" for one in found.laws}
    rough = f" (rough: Markov chains of {found.disagreeing:,} units do not agree)" if found.disagreeing else ""
    return (
        " Who knows these counts alone, and where a record is counted, guesses its group rightly for "
        f"{shares['hypergeometric']} of the records if every assignment is equally likely (hypergeometric law), and "
        f"for {shares['uniform']} if every table is (uniform law){rough}."
    )


def _guarantee(check: TopDownCheck) -> str:
    rho = bound(check.specification.budget.number)
    return fill(
        f"Guarantee: zero-concentrated differential privacy with rho = {rho}, per {check.plan.unit}, between datasets "
        f"that agree on all of the above. {check.specification.budget.conversion}."
    )


def _sizes(check: TopDownCheck) -> str:
    rows = [(level, f"{units:,}") for level, units in check.geounits.items()]
    rows.append(("all levels", f"{sum(check.geounits.values()):,}"))
    tables = [
        f"{name}: {check.records[name]:,} records, {cells:,} cells in each geounit"
        for name, cells in check.cells.items()
    ]
    others = [
        f"{name}: {records:,} records, counted but not released"
        for name, records in check.records.items()
        if name not in check.cells
    ]
    measured = f"{check.measurements:,} noisy measurements in all"
    return "Geounits\n" + columns(rows, numbers_right=True) + "\n" + "\n".join([*tables, *others, measured])


def _errors(check: TopDownCheck) -> str:
    rows = [("table", "level", "query", "cells", "measured", "combined")]
    for one in check.expected:
        together = "-" if one.combined is None else _number(one.combined)
        rows.append((one.table, one.level, one.query, f"{one.cells:,}", _number(one.measured), together))
    return (
        "Expected standard error of a cell: as measured, and of the best unbiased estimate from all measurements\n"
        + columns(rows, numbers_right=True)
        + "\n"
        + fill(
            "The last column is the median over the units of a level; stirred estimate gives such estimates. Released "
            "counts are also kept nonnegative, so small counts have smaller errors than this, and are biased upwards."
        )
    )


def _targets(check: TopDownCheck) -> str:
    if not check.targets:
        return ""
    rows = [
        ("target", "table", "query", "areas", "on spine", "error", "off spine", "units", "most", "error", "largest")
    ]
    for one in check.targets:
        off = one.areas - one.on_spine
        rows.append(
            (
                one.target,
                one.table,
                one.query,
                f"{one.areas:,}",
                f"{one.on_spine:,}",
                _or_none(one.on_median),
                f"{off:,}",
                f"{one.units_median:,.0f}" if off else "-",
                f"{one.units_largest:,}" if off else "-",
                _or_none(one.off_median),
                _or_none(one.off_largest),
            )
        )
    return (
        "Expected standard error of a cell in target areas, of the best unbiased estimate from all measurements\n"
        + columns(rows, numbers_right=True)
        + "\n"
        + fill(
            "Errors are medians over areas, and the largest; every area is worked out. An area is on the spine if it "
            "is one unit of it. Else it takes several: the median and the most units that are added or subtracted. "
            "stirred spine proposes a spine for such areas (stirred docs spines)."
        )
    )


def _biases(check: TopDownCheck) -> str:
    """The forecast of bias; empty where no table has one."""
    if not check.biases:
        return ""
    rows = [("table", "records in the place", "bias", "give or take")]
    for bias in check.biases:
        rows += [(bias.table, one.words, f"{one.bias:+.1f}", f"{one.standard_error:.1f}") for one in bias.classes]
    level = check.biases[0].level
    return (
        f"Forecast of the bias of released totals of a {level}, by its true size\n"
        + columns(rows, numbers_right=True)
        + "\n"
        + fill(
            f"A forecast that reads no record: {' and '.join(sorted({one.sizes for one in check.biases}))}, with the "
            "plan's noise and fitted as a release is (--sizes 0,5,40,150 gives typical sizes). It is usually right "
            "within a factor of two. Values of stirred estimate have no bias, but for a small place a larger error."
        )
    )


_WAYS = {
    "least squares first": "least squares first; every level is fitted to the best unbiased values from its own "
    "measurements and all below it",
    "level by level": 'level by level; the plan says fit = "level by level", and each level is fitted to its own '
    "measurements only, which makes the levels above the finest less accurate",
}


def _fit(check: TopDownCheck) -> str:
    rows = [("table", "level", "passes", "kappa")]
    rows += [(one.table, one.level, str(one.passes), _number(one.kappa)) for one in check.levels]
    text = "Fit\n" + columns(rows, numbers_right=True)
    for table, way in {one.table: one.way for one in check.levels}.items():
        text += "\n" + fill(f"{table}: {_WAYS.get(way, way)}.", "  ")
    hard = [one for one in check.levels if one.kappa > 1000]
    if hard:
        text += "\n" + fill(
            f"At {listed([f'{one.level} ({one.table})' for one in hard])} the detailed query has so little of the "
            "budget that the fit is slow and single cells are hardly known: give it a larger share."
        )
    if check.plan.passes != "auto":
        text += "\n" + fill(
            f'The plan asks for passes = "{check.plan.passes}". One pass, where the total is measured well, biases '
            "the totals of small units upwards; two passes, where it is not, make totals less accurate."
        )
    return text


def _concerns(check: TopDownCheck) -> str:
    rows = [("what an attacker asks", "between", "rho", f"power at {LEVEL:g}")]
    rows += [
        (one.concern, one.between, "-" if one.rho is None else _number(one.rho), f"{one.power:.3f}")
        for one in check.concerns
    ]
    alone = f"one {check.plan.unit} changed"
    joint = [f"- {one.concern}: {one.change}." for one in check.concerns if one.between != alone]
    return (
        f"What the measurements reveal about one {check.plan.unit} if all else is known: power of the best test with "
        f"false-alarm\nprobability {LEVEL:g} (a power of {LEVEL:g} is blind guessing)\n"
        + columns(rows, numbers_right=True)
        + "\n"
        + "\n".join([*_joint(joint), fill("stirred explain says more.")])
    )


def _joint(changes: list[str]) -> list[str]:
    if not changes:
        return []
    why = (
        "Where changing one record alone would break an invariant, several change together. Of all changes that keep "
        "the invariants and that no record could make alone, these are told apart best:"
    )
    return [fill(why), *(fill(one, "  ") for one in changes)]


def _forecast(check: TopDownCheck) -> str:
    cost = check.forecast
    return (
        f"Forecast of the release: about {cost.seconds:.0f} s on two cores, {cost.memory_bytes / 1e9:.1f} GB of "
        f"memory, {cost.disk_bytes / 1e6:,.0f} MB of disk."
    )


def _or_none(value: float | None) -> str:
    return "-" if value is None else _number(value)


def _number(value: float) -> str:
    if math.isinf(value):
        return "unknown"
    return f"{value:,.3f}" if value < 1000 else f"{value:,.0f}"
