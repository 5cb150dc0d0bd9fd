"""What a TopDown check and release say to people, in plain text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from stirred.errors import listed
from stirred.releases.documents import ReleasedTable
from stirred.semantics.shown import columns
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.spec.invariant import plural
from stirred.topdown.checking import LEVEL, TopDownCheck
from stirred.topdown.constraints import constraint_words, invariant_words
from stirred.topdown.plan import TopDownPlan

_WIDTH = 100


def describe(check: TopDownCheck) -> str:
    """A check as a page of text."""
    parts = [
        "CONFIDENTIAL: computed from the data themselves. Do not publish it.",
        _first_to_hear(check),
        _guarantee(check),
        _sizes(check),
        _errors(check),
        _fit(check),
        _concerns(check),
        _forecast(check),
        *(_fill(f"FINDING {finding.id}: {finding.words}") for finding in check.specification.findings),
        *(_fill(f"STOP {stop.kind}: {stop}") for stop in check.blocking),
        "The data keep every constraint of the plan, and no two margins to be kept cross."
        if not check.blocking
        else "Mend this before a release.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_to_hear(check: TopDownCheck) -> str:
    kept = [invariant_words(one) for one in check.plan.invariants]
    if not kept:
        return "Nothing is published exactly: the plan has no invariants."
    lines = [_fill("What this does not protect at all, since it is published exactly as it is:")]
    lines += [_fill(f"- {words}", "  ") for words in kept]
    return "\n".join(lines)


def _guarantee(check: TopDownCheck) -> str:
    rho = display(check.specification.budget.number)
    return _fill(
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
        f"{name}: {records:,} records, counted only"
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
        + _fill(
            "The second number is the median over the units of a level (stirred estimate gives such estimates). The "
            "fit also stays nonnegative: small counts are known better than this, and pulled up from zero."
        )
    )


def _fit(check: TopDownCheck) -> str:
    rows = [("table", "level", "passes", "kappa")]
    rows += [(one.table, one.level, str(one.passes), _number(one.kappa)) for one in check.levels]
    text = "Fit\n" + columns(rows, numbers_right=True)
    hard = [one for one in check.levels if one.kappa > 1000]
    if hard:
        text += "\n" + _fill(
            f"At {listed([f'{one.level} ({one.table})' for one in hard])} the detailed query has so little of the "
            "budget that cells are hardly known by themselves and the fit is slow: give it more."
        )
    if check.plan.passes != "auto":
        text += "\n" + _fill(
            f'The plan asks for passes = "{check.plan.passes}". One pass where the total is measured well biases the '
            "totals of small units up; two passes where it is not make totals worse than the other queries know them."
        )
    return text


def _concerns(check: TopDownCheck) -> str:
    rows = [("what an attacker asks", "between", "rho", f"power at level {LEVEL:g}")]
    rows += [(one.concern, one.between, _number(one.rho), f"{one.power:.3f}") for one in check.concerns]
    return (
        f"What the measurements tell about one {check.plan.unit}, all else known (power 0.05 is blind guessing)\n"
        + columns(rows, numbers_right=True)
        + "\n"
        + _fill(
            "Where one who changes alone would break an invariant, the nearest files of the universe are those in "
            "which two exchange. stirred explain says more."
        )
    )


def _forecast(check: TopDownCheck) -> str:
    cost = check.forecast
    return (
        f"Forecast of the release: about {cost.seconds:.0f} s on two cores, {cost.memory_bytes / 1e9:.1f} GB of "
        f"memory, {cost.disk_bytes / 1e6:,.0f} MB of disk."
    )


def readme(specification: Specification, plan: TopDownPlan, tables: Sequence[ReleasedTable]) -> str:
    """``README.txt`` of a release."""
    rho = display(specification.budget.number)
    files = "\n".join(f"  {table.file}: {table.rows:,} rows, {table.order}" for table in tables)
    asked = "".join(f"\n  tables/{one.name}.csv" for one in plan.asked)
    marks = "".join(f"*** {mark} ***\n\n" for mark in specification.marks)
    kept = "\n".join(_fill(f"- {invariant_words(one)}", "  ") for one in plan.invariants) or "  nothing"
    bound = "\n".join(_fill(f"- {constraint_words(one)}", "  ") for one in plan.constraints)
    findings = "\n".join(_fill(f"- {finding.words}") for finding in specification.findings)
    blocks = [
        ("1 domain", str(specification.domain)),
        ("2 multiverse", str(specification.multiverse)),
        ("3 input premetric", str(specification.input_premetric)),
        ("4 output premetric", str(specification.output_premetric)),
        ("5 budget", f"rho = {rho} per {plan.unit} of distance. {specification.budget.conversion}."),
    ]
    title = f"A release of {' and '.join(plural(table.unit) for table in plan.released)} by the TopDown Algorithm"
    return (
        f"{marks}{title}\n"
        + "=" * len(title)
        + "\n\n"
        + _fill(
            f"Counts of every query were measured with exact discrete Gaussian noise at the levels "
            f"{listed(plan.spine.all_levels)}. From the top down, nonnegative integer tables were fitted to these "
            "measurements; the rows below are what was fitted. They are not the records of anybody."
        )
        + f"\n\nFiles\n{files}{asked}\n"
        "  measurements/: every noisy measurement, with its exact variance in measurements.json\n"
        "  invariants/: what is kept exactly\n"
        "  data_dictionary.json, specification.json, certificate.json, manifest.json\n\n"
        f"Kept exactly, and so not protected at all\n{kept}\n"
        + (f"\nAlso kept; data that break them are outside the domain, and refused\n{bound}\n" if bound else "")
        + _earlier(plan)
        + "\nThe guarantee, in its five parts\n"
        + "\n".join(_fill(f"{name}: {words}", "  ") for name, words in blocks)
        + "\n\n"
        + _fill(
            "How to read it: it holds for the whole procedure, measurements and fit together, between datasets that "
            "agree on what is kept exactly. The fit reads those values as they are, so without this condition no "
            "finite budget would do: whoever sees the release knows them. Within it, what somebody learns by a test or "
            f"a change of belief about one {plan.unit} is bounded by rho; stirred explain gives the numbers."
        )
        + "\n\n"
        + _fill(
            "For conclusions about places and groups: the rows add up and have no negative counts, and that makes "
            "small counts too large on average and large ones too small. The measurements are unbiased; stirred "
            "estimate gives estimates from them with confidence intervals."
        )
        + "\n"
        + (f"\nFindings\n{findings}\n" if findings else "")
    )


def _earlier(plan: TopDownPlan) -> str:
    if not plan.earlier:
        return ""
    return (
        "\nAgrees with an earlier release\n"
        + _fill(
            "The rows have exactly the counts of an earlier release (its checksum is in certificate.json, under "
            "agrees_with). The guarantee below is that of what is new here, given that release. Both together satisfy "
            "the composition of their guarantees; the earlier one's budget comes on top."
        )
        + "\n"
    )


def _number(value: float) -> str:
    if math.isinf(value):
        return "unknown"
    return f"{value:,.3f}" if value < 1000 else f"{value:,.0f}"


def _fill(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent * 2)
