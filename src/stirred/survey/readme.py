"""The README.txt of a survey release, in plain words."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence

from stirred.estimates.answers import NO_ESTIMATE
from stirred.releases.folder.documents import (
    ReleasedTable,
    context_section,
    files_section,
    fill,
    findings_section,
    guarantee_section,
    origin_section,
    titled,
)
from stirred.spec import Specification
from stirred.spec.exact import written
from stirred.survey.nonresponse import answered_only
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection, QuerySection
from stirred.survey.query_noise import query_noise, query_step
from stirred.survey.sampling_errors import DesignBound
from stirred.survey.settings import Change

_CHANGES: dict[Change, str] = {
    "unit": "Two datasets are compared if one {unit} is replaced by another, with a weight and answers of its own.",
    "value": "Two datasets are compared if one {unit} gives other answers; which units there are, their weights and "
    "what the frame says about them stay as they are.",
}


def readme(
    specification: Specification, plan: SurveyPlan, tables: Sequence[ReleasedTable], estimates: Mapping[str, str]
) -> str:
    """The text of README.txt; ``estimates`` are the texts of the tables of estimates, by their names."""
    more = [
        f"tables/{one.name}.csv: estimates, their standard errors and {float(100 * one.confidence):.6g}% intervals "
        "(lower, upper)" + ("" if _covers_sampling(plan, one) else " for noise only") + _without(estimates[one.name])
        for one in plan.publish
    ]
    parts = [
        titled(plan.dataset or "A survey, released with noise", specification),
        origin_section(plan),
        files_section(tables, more),
        _protected(plan, specification),
        _measured(plan),
        _analysts(plan),
        guarantee_section(specification),
        context_section(plan.context),
        findings_section(specification),
    ]
    return "\n".join(part for part in parts if part)


def _without(text: str) -> str:
    """How many rows of a table have no estimate, and why."""
    why = list(csv.DictReader(io.StringIO(text)))
    gone = Counter(row["interval"] for row in why if row["interval"].startswith(NO_ESTIMATE))
    return "".join(f"; {many:,} of {len(why):,} rows have {reason}" for reason, many in gone.items())


def _protected(plan: SurveyPlan, specification: Specification) -> str:
    fixed = ", ".join(stage.name for stage in plan.pipeline.held_fixed)
    condition = f", {specification.condition}" if specification.condition else ""
    lines = [
        f"Protected is {plan.pipeline.protects}{condition}. " + _CHANGES[plan.change].format(unit=plan.unit),
        _rows(plan, specification),
        f"Held fixed, and not protected: {fixed}." if fixed else "Nothing is held fixed.",
        *plan.pipeline.cautions,
    ]
    return "What is protected\n" + "\n".join(fill(line, "  ") for line in lines) + "\n"


def _rows(plan: SurveyPlan, specification: Specification) -> str:
    """What is known about rows and units, and what was looked at."""
    if specification.condition:
        times = "their number times the stated epsilon"
        if plan.noise == "gaussian":
            times = "the square of their number times the stated rho"
        return (
            f"Whether each row of the file is one whole {plan.unit} is not known here; one {plan.unit} of several rows "
            f"would lose {times}."
        )
    return (
        f"Each row of the file is one whole {plan.unit}: the plan states it, and no column with a name like that of an "
        f"id of one {plan.unit} showed otherwise. Nothing else was looked at to confirm it."
    )


def spread_of(plan: SurveyPlan, query: QuerySection) -> tuple[str, str]:
    """What a query measures, and the standard deviation of its noise, from the smallest to the largest."""
    noise = query_noise(plan, query)
    spread = (noise.variances.min() ** 0.5, noise.variances.max() ** 0.5)
    of = "weighted counts" if query.of is None else f"weighted sums of {query.of}"
    by = f" by {', '.join(query.by)}" if query.by else ""
    shown = f"{spread[1]:,.4g}" if spread[0] == spread[1] else f"{spread[0]:,.4g} to {spread[1]:,.4g}"
    return f"{of}{by}", shown


def _measured(plan: SurveyPlan) -> str:
    law = "discrete Laplace noise" if plan.noise == "laplace" else "discrete Gaussian noise"
    lines = []
    for query in plan.queries:
        measured, shown = spread_of(plan, query)
        lines.append(
            f"{query.name}: {measured}, whole multiples of {written(query_step(plan, query))}; the noise has a "
            f"standard deviation of {shown}"
        )
    if plan.weights is not None:
        lines.append(str(plan.weight_rule))
    for one in plan.variables:
        cut = "others are cut to these bounds" if one.outside == "cut" else "others are refused"
        lines.append(f"{one.name}: between {written(one.lower)} and {written(one.upper)}, {cut}")
    for section in plan.imputation:
        given = f" given {', '.join(section.given)}" if section.given else ""
        lines.append(
            f"Empty cells of {section.of} are filled in row by row from a model{given} whose parameters were estimated "
            "with noise; certificate.json states them"
        )
    head = f"What was measured: every cell of every query, with {law}"
    return head + "\n" + "\n".join(fill(f"- {line.rstrip('.')}.", "  ") for line in lines) + "\n"


_SUMS = (
    "The noise has a mean of 0: sums are unbiased for the weighted sums of the file that was given, over the records "
    "in it. They may be negative; do not cut them at 0 before adding them up."
)
_ESTIMATES = (
    "Means, shares, ratios and quantiles are computed from the sums. stirred estimate gives any of these for any table "
    "that the queries determine, with intervals that cover "
)
_SOURCES = (
    "sampling and noise. Standard errors of the design were measured with noise, or are upper bounds from public facts "
    "(column interval: measured, bounded; unknown means that an interval covers noise only)."
)
_NOISE_ONLY = (
    "noise only, and not the error of sampling: the plan does not state enough about the design to bound it, and "
)


def analysts_words(plan: SurveyPlan) -> str:
    """What the numbers of a release are and how to use them; from the plan alone."""
    return " ".join(part for part in (_SUMS, answered_only(plan), _cut(plan), _ESTIMATES + _intervals(plan)) if part)


def _covers_sampling(plan: SurveyPlan, one: PublishSection) -> bool:
    """Whether intervals of a table can cover the error of sampling: it is measured, or the plan bounds it."""
    return bool(one.errors) or DesignBound.of(plan) is not None


def _intervals(plan: SurveyPlan) -> str:
    tables = " tables/ has the tables that the plan asks for." if plan.publish else ""
    if DesignBound.of(plan) is not None:
        return _SOURCES + tables
    measured = ", ".join(one.name for one in plan.publish if one.errors)
    rest = f"measures it for {measured} alone, whose intervals cover both" if measured else "does not measure it"
    return f"{_NOISE_ONLY}{rest}.{tables}"


def _cut(plan: SurveyPlan) -> str:
    """What the plan cuts; whether anything was is not public."""
    names = ["weights"] if plan.weights is not None and plan.weights.outside == "cut" else []
    names += [f"values of {one.name}" for one in plan.variables if one.outside == "cut"]
    if not names:
        return ""
    listed = ", ".join(names)
    return f"{listed[:1].upper()}{listed[1:]}: those beyond the plan's bounds are cut at them, which biases sums."


def _analysts(plan: SurveyPlan) -> str:
    return "For analysts\n" + fill(analysts_words(plan), "  ") + "\n"
