"""Verifies a survey release and tabulates it, from the release folder alone.

Every cell of the plan must be there and lie on its lattice, the guarantee must be that of the plan, the tables of
estimates must follow from the measured sums. Whether the noise was what it says cannot be seen from one release.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred._received import inside, read_text
from stirred.releases.release_folder import (
    Expected,
    ReleaseFolder,
    contents_verdicts,
    shape_verdicts,
    stored_verdict,
)
from stirred.releases.verdicts import Verdict, not_compared
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.design_errors import centres_of
from stirred.survey.estimating import answer
from stirred.survey.filling import lattice_of
from stirred.survey.imputing import ConditionalFrequencies
from stirred.survey.linear_imputing import model_from_fields
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import ImputationSection, PublishSection
from stirred.survey.readme import readme
from stirred.survey.released import described, measured_tables, read_measured, tables_of, write
from stirred.survey.releasing import certificate, estimates_file, estimates_text
from stirred.survey.specifying import specify

CLOSE = 1e-6
"""How far, relative to their size, published estimates may be from those that are computed again: sums of
floating-point numbers differ in their last digits between machines."""

ESTIMATE = "estimate"
"""The column of estimates in a published table."""

NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")
"""How a published number may be written."""


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
    estimates = {wanted.name: estimates_text(survey, wanted) for wanted in plan.publish}
    verdicts += [one for wanted in plan.publish for one in _estimates(release, wanted, estimates[wanted.name])]
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
    contents = Expected(made, stated_tables, readme(rebuilt, plan, stated_tables, estimates), more)
    return [*verdicts, *contents_verdicts(release, contents)]


def _centres(survey: MeasuredSurvey, wanted: PublishSection) -> Verdict:
    """Whether standard errors were measured around the released values."""
    stated = survey.errors[wanted.name].centres
    found = centres_of(survey.plan, wanted, answer(survey, wanted).values)
    near = bool(np.all(np.abs(stated - found) <= 1))
    return Verdict(near, f"the standard errors of {wanted.name} were measured around its released values")


def _estimates(release: ReleaseFolder, wanted: PublishSection, made: str) -> list[Verdict]:
    """Whether a table of estimates is the one that follows from the measured sums; of another version the estimates
    themselves."""
    name = estimates_file(wanted)
    text = read_text(inside(release.path, name))
    if release.by_this_version:
        return [Verdict(text == made or _alike(text, made), f"{name} follows from the measured sums")]
    return [
        Verdict(_alike(text, made, ESTIMATE), f"the estimates of {name} follow from the measured sums"),
        not_compared(f"standard errors and intervals of {name}", "another version wrote them"),
    ]


def _alike(text: str, made: str, until: str | None = None) -> bool:
    """Whether two tables have the same texts and, nearly, the same numbers; in the columns ``until`` one of them."""
    if len(text) > 2 * len(made) + 1000:
        return False
    one, other = (_cells(part) for part in (text, made))
    if [len(row) for row in one] != [len(row) for row in other]:
        return False
    last = None if until is None else other[0].index(until) + 1
    if until is not None:  # until version 0.6 a missing estimate was written as NaN
        one = [["" if cell == "NaN" else cell for cell in row] for row in one]
    rows = zip(one, other, strict=True)
    return all(_near(*pair) for first, second in rows for pair in zip(first[:last], second[:last], strict=True))


def _cells(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return []


def _near(cell: str, made: str) -> bool:
    if cell == made:
        return True
    if not (NUMBER.fullmatch(cell) and NUMBER.fullmatch(made)):
        return False
    return math.isclose(float(cell), float(made), rel_tol=CLOSE)


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
        groups = plan.schema_of(section.given).number_of_groups(section.given)
        fits = (model.target, model.by) == (section.of, tuple(section.given)) and section.kind == "frequencies"
        fits = fits and (model.groups, model.values) == (groups, len(plan.attribute(section.of).labels))
    else:
        lattices = [lattice_of(plan.variable(name)) for name in (section.of, *section.given)]
        fits = section.kind == "linear" and [model.target, model.predictor] == lattices
        fits = fits and [model.target_name, model.predictor_name] == [section.of, *section.given]
    return fits and json.dumps(model.to_fields()) == json.dumps(stated)


def place_units(release: ReleaseFolder) -> dict[str, pa.Array | None]:
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
    labels = survey.plan.schema_of(by).labels(by)
    columns = [pa.array([label[at] for label in labels], pa.string()) for at in range(len(by))]
    return pa.table([*columns, pa.array(family.estimates(by, {}))], names=[*by, "count" if of is None else of])
