"""A drawn survey as a release: measured tables, tables of estimates, documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stirred.errors import unknown_choice
from stirred.releases.folder.documents import Certificate, write_documents
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.progress import Progress
from stirred.releases.steps import DocumentWriter, publish
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.comparing import write_comparison
from stirred.survey.drawing import Drawn
from stirred.survey.estimating import answer
from stirred.survey.mechanism import MECHANISM
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection
from stirred.survey.readme import readme
from stirred.survey.records import read_records
from stirred.survey.released import described, tables_of, write

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
        documents: DocumentWriter | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder; ``confidential`` also receives the comparison with the true sums.
        ``documents`` writes the report of the release; without it there is none."""
        return publish(
            MECHANISM, self, out, confidential=confidential, data=data, ledger=ledger, documents=documents,
            for_tests=for_tests, progress=progress,
        )  # fmt: skip

    def write_files(self, folder: Path, progress: Progress) -> Certificate:
        """Write everything that a recipient gets into an empty folder, but the certificate, which is returned."""
        plan = self.plan
        progress.stage("writing measured sums")
        tables = []
        for table in tables_of(self.survey):
            write(folder, plan, table)
            tables.append(described(plan, table))
        progress.stage("writing estimates and documents")
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
