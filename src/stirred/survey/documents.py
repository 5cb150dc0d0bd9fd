"""What a survey release writes beside its measured sums: tables of estimates, README.txt, notes for analysts.

The invariant a reader must know: what README.txt and the notes say follows from the plan; no table is read for it.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stirred._progress import Progress, stage
from stirred.errors import unknown_choice
from stirred.estimates.answers import NO_ESTIMATE
from stirred.releases.folder.documents import (
    Certificate,
    ReleasedTable,
    context_section,
    files_section,
    fill,
    findings_section,
    guarantee_section,
    origin_section,
    titled,
    write_documents,
)
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import AnalystNote, Data
from stirred.releases.steps import Request, publishing
from stirred.spec import Specification
from stirred.spec.exact import display, written
from stirred.survey.checking.comparison import write_comparison
from stirred.survey.data import read_records
from stirred.survey.drawing import Drawn
from stirred.survey.estimating.intervals import DesignBound
from stirred.survey.estimating.measured import MeasuredSurvey, described, tables_of, write
from stirred.survey.estimating.questions import answer, answered_only
from stirred.survey.measuring import query_noise, query_step
from stirred.survey.mechanism import MECHANISM
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection, QuerySection
from stirred.survey.plan.settings import Change

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


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, the noise of each query, and what to type."""
    plan = SurveyPlan.from_published(release.certificate["plan"])
    public = ", ".join(f"{one.name} (by {'; '.join(', '.join(each.by) for each in one.margins)})"
                       for one in plan.calibrations)  # fmt: skip
    but = f", but for the public totals that estimates may be adjusted to: {public}" if public else ""
    yield AnalystNote("exact", f"nothing: every number has noise{but}.")
    yield AnalystNote("corrected", analysts_words(plan))
    yield AnalystNote(
        "unusable", "tables by columns that no query has together, and any statement about a single record."
    )
    rows = tuple((query.name, *spread_of(plan, query)) for query in plan.queries)
    words = "The noise of each measured sum; sampling adds its own error."
    yield AnalystNote("accuracy", words, (("query", "what was measured", "standard deviation of the noise"), *rows))
    yield AnalystNote("command", f"stirred estimate FOLDER{_asked(plan)}")


def _asked(plan: SurveyPlan) -> str:
    """Options of a first question that the release answers: counts adjusted to public totals, where there are any."""
    for one in plan.publish:
        if one.kind == "count" and one.calibration is not None:
            return f"{_by(one.by)} --calibration {shlex.quote(one.calibration)}"
    for section in plan.calibrations:
        names = {name for margin in section.margins for name in margin.by}
        for query in plan.family(None):
            if names <= set(query.by):
                return f"{_by(query.by)} --calibration {shlex.quote(section.name)}"
    query = next((one for one in plan.queries if one.by), plan.queries[0])
    return _by(query.by) + (f" --kind total --of {shlex.quote(query.of)}" if query.of is not None else "")


def _by(names: Sequence[str]) -> str:
    return f" --by {shlex.quote(','.join(names))}" if names else ""


TABLES = "tables"
"""The folder of published estimates inside a release."""
DIGITS = 9
"""Digits of published estimates."""


@dataclass(frozen=True, eq=False, repr=False)
class SurveyRelease:
    """A finished draw of a survey, ready to be written or used in memory."""

    drawn: Drawn

    def __repr__(self) -> str:
        return f"<SurveyRelease of {len(self.plan.queries)} queries; .specification, .estimates(name), .write(out)>"

    @property
    def draw(self) -> SurveyRelease:
        """Itself: finishing has nothing to do."""
        return self

    @property
    def plan(self) -> SurveyPlan:
        """The plan."""
        return self.drawn.survey.plan

    @property
    def survey(self) -> MeasuredSurvey:
        """The measured sums and standard errors."""
        return self.drawn.survey

    @property
    def specification(self) -> Specification:
        """The guarantee."""
        return self.drawn.specification

    @property
    def for_release(self) -> bool:
        """False if the randomness came from a seed."""
        return self.drawn.for_release

    @property
    def nonce(self) -> str:
        """The identity of the draw."""
        return self.drawn.nonce

    def finish(self, progress: Progress | None = None) -> SurveyRelease:
        """Itself: everything is computed from the measured sums when it is written."""
        return self

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines for the terminal that say what was released."""
        cells = sum(len(one) for one in self.survey.sums.values())
        budget = "epsilon" if self.plan.noise == "laplace" else "rho"
        return (
            f"{cells:,} noisy sums in {len(self.plan.queries)} queries, {len(self.plan.publish)} tables of estimates",
            f"{budget} {display(self.specification.budget.number)} per {self.plan.unit} of the {self.plan.starts}"
            + (f", {self.specification.condition}" if self.specification.condition else ""),
        )

    def estimates(self, name: str) -> pl.DataFrame:
        """A table of estimates that the plan publishes, by its name."""
        for wanted in self.plan.publish:
            if wanted.name == name:
                return estimates_frame(self.survey, wanted)
        raise unknown_choice("table of estimates", name, [one.name for one in self.plan.publish])

    def write(
        self,
        out: str | Path,
        *,
        confidential: str | Path | None = None,
        data: Data | None = None,
        ledger: Ledger | str | Path | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder; ``confidential`` also receives the comparison with the true sums.
        :func:`stirred.verbs.write` writes a report too."""
        asked = Request.of(out, confidential=confidential, ledger=ledger, for_tests=for_tests, progress=progress)
        with publishing(MECHANISM, self, data, asked):
            return asked.out

    def write_files(self, folder: Path) -> Certificate:
        """Write everything that a recipient gets into an empty folder, but the certificate, which is returned."""
        plan = self.plan
        stage("writing measured sums")
        tables = []
        for table in tables_of(self.survey):
            write(folder, plan, table)
            tables.append(described(plan, table))
        stage("writing estimates and documents")
        if plan.publish:
            (folder / TABLES).mkdir()
        texts = {one.name: rounded(estimates_frame(self.survey, one)).write_csv() for one in plan.publish}
        for wanted in plan.publish:
            (folder / estimates_file(wanted)).write_text(texts[wanted.name], encoding="utf-8")
        write_documents(folder, self.specification, tables, readme(self.specification, plan, tables, texts))
        return certificate(plan, self.specification, self.for_release, self.nonce, self.drawn.models)

    def write_confidential(self, folder: Path, data: Data | None) -> None:
        """Write the comparison of released with true sums. Confidential."""
        records = self.drawn.records if self.drawn.records is not None else read_records(self.plan, data)
        write_comparison(folder, self.survey, records)


def certificate(
    plan: SurveyPlan, stated: Specification, for_release: bool, nonce: str | None, models: Mapping[str, Any]
) -> Certificate:
    """The certificate of a release; it states the parameters of imputation models too."""
    return Certificate(plan, stated, [], for_release, nonce, {"imputation": dict(models)})


def estimates_file(wanted: PublishSection) -> str:
    """Where a table of estimates stands in a release."""
    return f"{TABLES}/{wanted.name}.csv"


def estimates_frame(survey: MeasuredSurvey, wanted: PublishSection) -> pl.DataFrame:
    """A table of estimates with standard errors and intervals."""
    return answer(survey, wanted).to_frame(float(wanted.confidence))


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """A table of estimates as it is written, numbers to nine digits."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_float()]
    return frame.with_columns(pl.col(numbers).round_sig_figs(DIGITS))
