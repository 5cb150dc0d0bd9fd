"""What analysts of a survey release need to know, for its report.

Keep in mind: every number follows from the plan, as in README.txt; no table is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from stirred.releases.mechanism import AnalystNote
from stirred.releases.release_folder import ReleaseFolder
from stirred.survey.plan import SurveyPlan
from stirred.survey.readme import ANALYSTS, spread_of


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, the noise of each query, and what to type."""
    plan = SurveyPlan.from_published(release.certificate["plan"])
    fixed = ", ".join(stage.name for stage in plan.pipeline.held_fixed)
    yield AnalystNote("exact", f"what is held fixed: {fixed}." if fixed else "no table: every number has noise.")
    yield AnalystNote("corrected", ANALYSTS)
    yield AnalystNote("unusable", "tables by columns that no query has, and any statement about a single record.")
    rows = tuple((query.name, *spread_of(plan, query)) for query in plan.queries)
    words = "The noise of each measured sum; sampling adds its own error."
    yield AnalystNote("accuracy", words, (("query", "what was measured", "standard deviation of the noise"), *rows))
    by = next((f" --by {','.join(query.by)}" for query in plan.queries if query.by), "")
    yield AnalystNote("command", f"stirred estimate FOLDER{by}")
