"""Verifies a survey release and tabulates it, from the release folder alone.

Every cell of the plan must be there and lie on its lattice, the guarantee must be that of the plan, the tables of
estimates must follow from the measured sums. Whether the noise was what it says cannot be seen from one release.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from stirred import errors
from stirred._received import inside, read_text
from stirred.releases.release_folder import (
    Expected,
    ReleaseFolder,
    Verdict,
    contents_verdicts,
    shape_verdicts,
    stored_verdict,
)
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.design_errors import centres_of
from stirred.survey.estimating import answer
from stirred.survey.linear_imputing import model_from_fields
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection
from stirred.survey.readme import readme
from stirred.survey.released import described, measured_tables, read_measured, tables_of, write
from stirred.survey.releasing import certificate, estimates_file, estimates_text
from stirred.survey.specifying import specify

CLOSE = 1e-6
"""How far, relative to their size, published estimates may be from those that are computed again: sums of
floating-point numbers differ in their last digits between machines."""

LONGEST = 30
"""Signs that a published number may have."""


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a survey release in particular."""
    stated = {table["format"] for table in release.dictionary.values()}
    plan = SurveyPlan.from_published(release.certificate["plan"]).model_copy(update={"format": sorted(stated)[0]})
    expected = [*(one.name for one in plan.queries), *(f"errors-{one.name}" for one in measured_tables(plan))]
    listed = list(release.dictionary) == expected and len(stated) == 1
    verdicts = [Verdict(listed, "the released tables are those of the plan")]
    if not listed:
        return verdicts
    survey = MeasuredSurvey(plan, (found := read_measured(release)).sums, found.errors)
    verdicts.append(Verdict(True, "every query has a whole multiple of its step in every cell of the plan, in order"))
    tables = list(tables_of(survey))
    for table in tables:
        verdicts += shape_verdicts(release, table.name, table.rows)
    verdicts += [_centres(survey, wanted) for wanted in measured_tables(plan)]
    verdicts += [_estimates(release, survey, wanted) for wanted in plan.publish]
    verdicts.append(_models(release, plan))
    rebuilt = specify(plan, release.for_release)
    verdicts.append(Verdict(release.states(rebuilt), "the guarantee is that of the plan, with all shares added up"))

    def write_again(folder: Path) -> None:
        for table in tables:
            write(folder, plan, table)

    files = [described(plan, table).file for table in tables]
    verdicts.append(stored_verdict(release, files, write_again))
    stated_tables = [described(plan, table) for table in tables]
    models = release.certificate["imputation"]
    made = certificate(plan, rebuilt, release.for_release, None, models)
    more = [estimates_file(one) for one in plan.publish]
    contents = Expected(made, stated_tables, readme(rebuilt, plan, stated_tables), more)
    return [*verdicts, *contents_verdicts(release, contents)]


def _centres(survey: MeasuredSurvey, wanted: PublishSection) -> Verdict:
    """Whether standard errors were measured around the released values."""
    stated = survey.errors[wanted.name].centres
    found = centres_of(survey.plan, wanted, answer(survey, wanted).values)
    near = bool(np.all(np.abs(stated - found) <= 1))
    return Verdict(near, f"the standard errors of {wanted.name} were measured around its released values")


def _estimates(release: ReleaseFolder, survey: MeasuredSurvey, wanted: PublishSection) -> Verdict:
    """Whether a table of estimates follows from the measured sums."""
    name = estimates_file(wanted)
    text, made = read_text(inside(release.path, name)), estimates_text(survey, wanted)
    words = f"{name} follows from the measured sums"
    if not release.by_this_version:
        return Verdict(True, f"{name} is not computed again: another version wrote it", note=True)
    return Verdict(text == made or _alike(text, made), words)


def _alike(text: str, made: str) -> bool:
    """Whether two tables have the same texts and, nearly, the same numbers."""
    one, other = (pl.read_csv(io.StringIO(part), infer_schema=False) for part in (text, made))
    if one.columns != other.columns or one.shape != other.shape or len(text) > 2 * len(made) + 1000:
        return False
    for name in one.columns:
        first, second = one[name], other[name]
        if first.equals(second):
            continue
        numbers = [column.cast(pl.Float64, strict=False).to_numpy() for column in (first, second)]
        if np.isnan(numbers[1]).any() or not np.allclose(numbers[0], numbers[1], rtol=CLOSE, atol=0.0):
            return False
        if max(map(len, first.to_list())) > LONGEST:
            return False
    return True


def _models(release: ReleaseFolder, plan: SurveyPlan) -> Verdict:
    """Whether the certificate states a model for every imputation of the plan, at its share of the budget."""
    stated = release.certificate["imputation"]
    words = "the certificate states the imputation models of the plan, each at its share of the budget"
    if not isinstance(stated, dict) or list(stated) != [one.of for one in plan.imputation]:
        return Verdict(False, words)
    for section in plan.imputation:
        model = model_from_fields(stated[section.of])
        same = model.to_fields() == stated[section.of]
        law = "laplace" if plan.noise == "laplace" else "gaussian"
        if not same or (model.share.law, model.share.budget) != (law, plan.budget * section.share):
            return Verdict(False, words)
    return Verdict(True, words)


def tabulate_release(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
    """The best unbiased estimates of weighted counts, or of a variable's sums, by some attributes or recodes."""
    survey = read_measured(release)
    of = None
    if table is not None:
        query = next((one for one in survey.plan.queries if one.name == table), None)
        if query is None:
            raise errors.unknown_table(table, [one.name for one in survey.plan.queries])
        of = query.of
    for name in by:
        survey.plan.attribute(name)
    family = survey.family(of)
    labels = survey.plan.schema_of(by).labels(by)
    columns = [pa.array([label[at] for label in labels], pa.string()) for at in range(len(by))]
    return pa.table([*columns, pa.array(family.estimates(by, {}))], names=[*by, "count" if of is None else of])
