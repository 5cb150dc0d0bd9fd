"""Verifies a survey release and tabulates it, from the release folder alone.

Every cell of the plan must be there and lie on its lattice, the guarantee must be that of the plan, the tables of
estimates must follow from the measured sums. Whether the noise was what it says cannot be seen from one release.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from stirred import errors
from stirred._bounded_reading import inside, read_text
from stirred._progress import stage
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.folder.verifying import Expected, contents_verdicts, shape_verdicts, stored_verdict
from stirred.releases.verdicts import LAST_DIGITS, Verdict, not_compared
from stirred.survey.documents import DIGITS, certificate, estimates_file, estimates_frame, readme, rounded
from stirred.survey.drawing import lattice_of
from stirred.survey.estimating.measured import (
    MeasuredSurvey,
    described,
    measured_tables,
    read_measured,
    tables_of,
    write,
)
from stirred.survey.estimating.questions import answer
from stirred.survey.imputing import ConditionalFrequencies, model_from_fields
from stirred.survey.measuring import centres_of
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.sections import ImputationSection, PublishSection

DUST = 1e-12
"""How far, relative to the largest number of a column, numbers that are nothing but rounding may be apart."""

ESTIMATE = "estimate"
"""The column of estimates in a published table."""


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
    stage("estimating from the measured sums")
    estimates = {wanted.name: rounded(estimates_frame(survey, wanted)) for wanted in plan.publish}
    verdicts += [_estimates(release, wanted, estimates[wanted.name]) for wanted in plan.publish]
    verdicts.append(_models(release, plan))
    rebuilt = specify(plan, release.for_release)
    verdicts.append(Verdict(release.states(rebuilt), "the guarantee is that of the plan, with all shares added up"))

    def write_again(folder: Path) -> None:
        for table in tables:
            write(folder, plan, table)

    files = [described(plan, table).file for table in tables]
    verdicts.append(stored_verdict(release, files, write_again))
    stated_tables = [described(plan, table) for table in tables]
    models = release.certificate.get("imputation")
    models = models if isinstance(models, dict) else {}
    made = certificate(plan, rebuilt, release.for_release, None, models)
    more = [estimates_file(one) for one in plan.publish]
    texts = {name: frame.write_csv() for name, frame in estimates.items()}
    contents = Expected(made, stated_tables, readme(rebuilt, plan, stated_tables, texts), more)
    return [*verdicts, *contents_verdicts(release, contents)]


def _centres(survey: MeasuredSurvey, wanted: PublishSection) -> Verdict:
    """Whether standard errors were measured around the released values."""
    stated = survey.errors[wanted.name].centres
    apart = np.abs(stated - centres_of(survey.plan, wanted, answer(survey, wanted).values))
    words = f"the standard errors of {wanted.name} were measured around its released values"
    if apart.max(initial=0) != 1:
        return Verdict(not apart.any(), words)
    return not_compared(
        f"the last digits of what the standard errors of {wanted.name} were measured around", LAST_DIGITS
    )


def _estimates(release: ReleaseFolder, wanted: PublishSection, made: pl.DataFrame) -> Verdict:
    """Whether a table of estimates is, byte for byte, the one that follows from the measured sums.

    Sums of floating-point numbers differ in their last digits between machines, so that a number may differ by one in
    its last written digit. That is not called equal, and no contradiction either.
    """
    name = estimates_file(wanted)
    text = read_text(inside(release.path, name))
    words = f"{name} follows from the measured sums"
    if text == made.write_csv():
        return Verdict(True, words)
    if len(text) > 2 * len(made.write_csv()) + 1000:
        return Verdict(False, words)
    if release.by_this_version:
        stated = _read(text, made)
        if stated is None or stated.write_csv() != text or not _near(stated, made):
            return Verdict(False, words)
        if not stated.select(pl.all().is_null()).equals(made.select(pl.all().is_null())):
            return Verdict(False, words)
        return not_compared(f"the last digits of {name}", LAST_DIGITS)
    until = made.columns[: made.columns.index(ESTIMATE) + 1]
    stated = _read(text, made, until)
    if stated is None or not _near(stated, made.select(until)):
        return Verdict(False, f"the estimates of {words}")
    return not_compared(
        f"standard errors, intervals and how numbers are written in {name}", "another version wrote them"
    )


def _read(text: str, like: pl.DataFrame, wanted: Sequence[str] | None = None) -> pl.DataFrame | None:
    """A table of estimates, or some columns of it, with the columns and types of another; None if it has others."""
    kinds = {name: kind for name, kind in like.schema.items() if wanted is None or name in wanted}
    try:
        found = pl.read_csv(text.encode(), schema_overrides=kinds, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    return found.select(list(kinds)) if (found.columns, found.height) == (like.columns, like.height) else None


def _near(stated: pl.DataFrame, made: pl.DataFrame) -> bool:
    """Whether two tables have the same texts, and numbers that differ by one in their last digit at most.

    No estimate is an empty cell; until version 0.6 it was NaN.
    """
    for name, kind in made.schema.items():
        one, other = stated[name], made[name]
        if not kind.is_float():
            if not one.equals(other, null_equal=True):
                return False
            continue
        first, second = one.to_numpy(), other.to_numpy()
        finite = np.isfinite(first) & np.isfinite(second)
        if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
            return False
        first, second = first[finite], second[finite]
        size = np.maximum(np.abs(first), np.abs(second))
        last = 10.0 ** (np.floor(np.log10(np.maximum(size, 1e-300))) + 1 - DIGITS)
        if np.any(np.abs(first - second) > np.maximum(1.5 * last, DUST * size.max(initial=0))):
            return False
    return True


def _models(release: ReleaseFolder, plan: SurveyPlan) -> Verdict:
    """Whether the certificate states a model for every imputation of the plan, at its share of the budget."""
    stated = release.certificate.get("imputation")
    words = "the certificate states the imputation models of the plan, each at its share of the budget"
    if not isinstance(stated, dict) or list(stated) != [one.of for one in plan.imputation]:
        return Verdict(False, words)
    return Verdict(all(_is_model(plan, section, stated[section.of]) for section in plan.imputation), words)


def _is_model(plan: SurveyPlan, section: ImputationSection, stated: Any) -> bool:
    """Whether a stated model is one of this imputation: its names, groups, lattices and share, in the usual words."""
    model = model_from_fields(stated)
    if (model.share.law, model.share.budget) != (plan.noise, plan.budget * section.share):
        return False
    if isinstance(model, ConditionalFrequencies):
        groups = plan.number_of_cells(section.given)
        fits = (model.target, model.by) == (section.of, tuple(section.given)) and section.kind == "frequencies"
        fits = fits and (model.groups, model.values) == (groups, len(plan.attribute(section.of).labels))
    else:
        lattices = [lattice_of(plan.variable(name)) for name in (section.of, *section.given)]
        fits = section.kind == "linear" and [model.target, model.predictor] == lattices
        fits = fits and [model.target_name, model.predictor_name] == [section.of, *section.given]
    return fits and json.dumps(model.to_fields()) == json.dumps(stated)


def place_units(release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
    """The attributes of the plan with their values; sums over some of these are unbiased too."""
    return {one.name: pa.array(one.values, pa.string()) for one in read_measured(release).plan.attributes}


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
    labels = survey.plan.labels_of(by)
    columns = [pa.array([label[at] for label in labels], pa.string()) for at in range(len(by))]
    return pa.table([*columns, pa.array(family.estimates(by, {}))], names=[*by, "count" if of is None else of])
