"""What the custodian of a survey release can know and must keep: the noise that was drawn, and what rules changed.

Noisy sums are read from the folder, true ones are computed from the confidential file. Keep in mind: a survey release
keeps no counts exactly; what it holds fixed is stated in its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import CustodianNote, Data
from stirred.releases.progress import Progress
from stirred.spec.exact import near
from stirred.survey.measuring import true_sums
from stirred.survey.plan import SurveyPlan
from stirred.survey.query_noise import query_noise, query_step
from stirred.survey.records import Records, read_records
from stirred.survey.released import read_measured


def for_custodian(
    release: ReleaseFolder, plan: SurveyPlan, data: Data | None, progress: Progress
) -> Iterator[CustodianNote]:
    """Errors of every query, values that were cut, and what is held fixed."""
    progress.stage("reading the survey")
    records = read_records(plan, data)
    progress.stage("comparing with the true values")
    if any(missing.any() for missing in records.empty.values()):
        words = "The true sums are not compared: the plan fills empty cells at random, and what was filled is not kept."
        yield CustodianNote("errors", words)
    else:
        yield _errors(release, plan, records)
    cut = [(name, f"{many:,}") for name, many in records.changed.items() if many]
    words = f"Of {records.rows:,} records, values outside the bounds of the plan were cut: this is a bias of every sum."
    if cut and records.weights_in_file is not None:
        weighted = near(plan.weight_step) * float(records.weights.sum())
        words += (
            f" Weights add up to {weighted:,.0f} after the plan's rule, {records.weights_in_file:,.0f} in the file."
        )
    if cut:
        yield CustodianNote("errors", words, (("column", "values cut at the bounds"), *cut))
    fixed = ", ".join(stage.name for stage in plan.pipeline.held_fixed)
    held = f"Held fixed, and not protected: {fixed}. " if fixed else "Nothing is held fixed. "
    yield CustodianNote("revealed", f"{held}No count of the file is published without noise.")


def _errors(release: ReleaseFolder, plan: SurveyPlan, records: Records) -> CustodianNote:
    survey = read_measured(release)
    rows = []
    for query in plan.queries:
        step, true = near(query_step(plan, query)), true_sums(records, query)
        error = np.abs((survey.sums[query.name] - true).astype(np.float64)) * step
        noise = float(query_noise(plan, query).variances.max()) ** 0.5
        median = float(np.median(np.abs(true.astype(np.float64)))) * step
        rows.append((query.name, f"{len(true):,}", f"{error.mean():,.4g}", f"{error.max():,.4g}", f"{noise:,.4g}",
                     f"{median:,.4g}"))  # fmt: skip
    words = (
        "The noise that was drawn: released sums against those of the confidential file. The standard deviation is "
        "public. Errors of sampling come on top, and nobody knows them."
    )
    if records.cut:
        words += " Sums of the file are those after cutting at the plan's bounds."
    size = "median sum after cutting at the plan's bounds" if records.cut else "median true sum"
    head = ("query", "sums", "mean absolute error", "largest error", "standard deviation", size)
    return CustodianNote("errors", words, (head, *rows))
