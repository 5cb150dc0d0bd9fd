"""What analysts of a survey release need to know, for its report.

Keep in mind: every number follows from the plan, as in README.txt; no table is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.survey.plan import SurveyPlan
from stirred.survey.readme import analysts_words, spread_of


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
