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
from stirred._sentences import sentences_of
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
from stirred.releases.mechanism import AnalystNote, Data
from stirred.releases.steps import Writable
from stirred.spec import Specification
from stirred.spec.exact import display, written
from stirred.survey.checking.comparison import write_comparison
from stirred.survey.data import Records, read_records
from stirred.survey.estimating.intervals import DesignBound
from stirred.survey.estimating.measured import MeasuredSurvey, described, tables_of, write
from stirred.survey.estimating.questions import answer, answered_only
from stirred.survey.measuring import query_noise, query_step
from stirred.survey.mechanism import MECHANISM
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection, QuerySection

say = sentences_of("survey")


def readme(
    specification: Specification, plan: SurveyPlan, tables: Sequence[ReleasedTable], estimates: Mapping[str, str]
) -> str:
    """The text of README.txt; ``estimates`` are the texts of the tables of estimates, by their names."""
    more = [
        say(
            "table",
            file=estimates_file(one),
            confidence=float(100 * one.confidence),
            of="" if _covers_sampling(plan, one) else say("for_noise"),
            without=_without(estimates[one.name]),
        )
        for one in plan.publish
    ]
    parts = [
        titled(plan.dataset or say("title"), specification),
        origin_section(plan),
        files_section(tables, more),
        _protected(plan, specification),
        _measured(plan),
        f"{say('analysts')}\n{fill(analysts_words(plan), '  ')}\n",
        guarantee_section(specification),
        context_section(plan.context),
        findings_section(specification),
    ]
    return "\n".join(part for part in parts if part)


def _without(text: str) -> str:
    """How many rows of a table have no estimate, and why."""
    why = list(csv.DictReader(io.StringIO(text)))
    gone = Counter(row["interval"] for row in why if row["interval"].startswith(NO_ESTIMATE))
    return "".join(say("without", number=many, rows=len(why), reason=reason) for reason, many in gone.items())


def _protected(plan: SurveyPlan, specification: Specification) -> str:
    fixed = ", ".join(stage.name for stage in plan.pipeline.held_fixed)
    condition = f", {specification.condition}" if specification.condition else ""
    lines = [
        f"{say('protected_units', whom=plan.pipeline.protects, condition=condition)} "
        + say(f"change_of_{plan.change}", unit=plan.unit),
        _rows(plan, specification),
        say("held_fixed", fixed=fixed) if fixed else say("nothing_fixed"),
        *plan.pipeline.cautions,
    ]
    return "\n".join([say("protected"), *(fill(line, "  ") for line in lines)]) + "\n"


def _rows(plan: SurveyPlan, specification: Specification) -> str:
    """What is known about rows and units, and what was looked at."""
    if specification.condition:
        times = say("times_rho" if plan.noise == "gaussian" else "times_epsilon")
        return say("condition_unknown", unit=plan.unit, times=times)
    return say("condition_stated", unit=plan.unit)


def spread_of(plan: SurveyPlan, query: QuerySection) -> tuple[str, str]:
    """What a query measures, and the standard deviation of its noise, from the smallest to the largest."""
    noise = query_noise(plan, query)
    spread = (noise.variances.min() ** 0.5, noise.variances.max() ** 0.5)
    of = say("weighted_counts") if query.of is None else say("weighted_sums", variable=query.of)
    by = f" by {', '.join(query.by)}" if query.by else ""
    shown = f"{spread[1]:,.4g}" if spread[0] == spread[1] else f"{spread[0]:,.4g} to {spread[1]:,.4g}"
    return f"{of}{by}", shown


def _measured(plan: SurveyPlan) -> str:
    lines = []
    for query in plan.queries:
        measured, shown = spread_of(plan, query)
        step = written(query_step(plan, query))
        lines.append(say("query", query=query.name, measured=measured, step=step, spread=shown))
    if plan.weights is not None:
        lines.append(str(plan.weight_rule))
    for one in plan.variables:
        others = say("others_cut" if one.outside == "cut" else "others_refused")
        bounds = {"lower": written(one.lower), "upper": written(one.upper)}
        lines.append(say("bounds", variable=one.name, others=others, **bounds))
    for section in plan.imputation:
        given = say("imputed_given", columns=", ".join(section.given)) if section.given else ""
        lines.append(say("imputed", variable=section.of, given=given))
    head = say("measured", law=say(plan.noise))
    return "\n".join([head, *(fill(f"- {line.rstrip('.')}.", "  ") for line in lines)]) + "\n"


def analysts_words(plan: SurveyPlan) -> str:
    """What the numbers of a release are and how to use them; from the plan alone."""
    parts = (say("sums"), answered_only(plan), _cut(plan), say("estimates", sources=_intervals(plan)))
    return " ".join(part for part in parts if part)


def _covers_sampling(plan: SurveyPlan, one: PublishSection) -> bool:
    """Whether intervals of a table can cover the error of sampling: it is measured, or the plan bounds it."""
    return bool(one.errors) or DesignBound.of(plan) is not None


def _intervals(plan: SurveyPlan) -> str:
    tables = f" {say('tables')}" if plan.publish else ""
    if DesignBound.of(plan) is not None:
        return say("sampling_and_noise") + tables
    measured = ", ".join(one.name for one in plan.publish if one.errors)
    rest = say("measures_some", tables=measured) if measured else say("measures_none")
    return say("noise_only", rest=rest) + tables


def _cut(plan: SurveyPlan) -> str:
    """What the plan cuts; whether anything was is not public."""
    names = [say("cut_weights")] if plan.weights is not None and plan.weights.outside == "cut" else []
    names += [say("cut_values", variable=one.name) for one in plan.variables if one.outside == "cut"]
    if not names:
        return ""
    listed = ", ".join(names)
    return say("cut", what=f"{listed[:1].upper()}{listed[1:]}")


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, the noise of each query, and what to type."""
    plan = SurveyPlan.from_published(release.certificate["plan"])
    public = ", ".join(f"{one.name} (by {'; '.join(', '.join(each.by) for each in one.margins)})"
                       for one in plan.calibrations)  # fmt: skip
    yield AnalystNote("exact", say("exact", but=say("exact_but", public=public) if public else ""))
    yield AnalystNote("corrected", analysts_words(plan))
    yield AnalystNote("unusable", say("unusable"))
    rows = ((query.name, *spread_of(plan, query)) for query in plan.queries)
    yield AnalystNote("accuracy", say("noise"), (tuple(say("noise_head").split("|")), *rows))
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
class SurveyRelease(Writable):
    """A finished draw of a survey, ready to be written or used in memory."""

    mechanism = MECHANISM

    survey: MeasuredSurvey
    """The measured sums and standard errors."""
    models: Mapping[str, Any]
    """By imputed attribute or variable its noisy model, as it is published."""
    specification: Specification
    """The guarantee."""
    for_release: bool
    """False if the randomness came from a seed."""
    nonce: str
    """The identity of the draw."""
    records: Records | None = None
    """Confidential; only where the comparison was asked for."""

    def __repr__(self) -> str:
        return f"<SurveyRelease of {len(self.plan.queries)} queries; .specification, .estimates(name), .write(out)>"

    @property
    def draw(self) -> SurveyRelease:
        """Itself: finishing has nothing to do."""
        return self

    @property
    def plan(self) -> SurveyPlan:
        """The plan."""
        return self.survey.plan

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
        return estimates_frame(self.survey, self.plan.table_of(name))

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
        return certificate(plan, self.specification, self.for_release, self.nonce, self.models)

    def write_confidential(self, folder: Path, data: Data | None) -> None:
        """Write the comparison of released with true sums. Confidential."""
        records = self.records if self.records is not None else read_records(self.plan, data)
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
