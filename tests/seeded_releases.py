"""A small release of every mechanism, from a seed: for claims about what all of them do."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import stirred
from stirred.noise import SeededSource
from stirred.survey import mechanism as survey_mechanism

ROWS = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
PLACES = pl.DataFrame({"county": ["A", "A", "B"], "town": ["x", "y", "z"]})
PEOPLE = pl.DataFrame({"town": list("xyz") * 20, "race": ["p", "q"] * 30, "adult": ["yes", "no", "yes"] * 20})
COUNTIES = {"name": "county", "values": ["a", "b", "c"]}


def finished(mechanism: str, work: Path):
    """A release of the mechanism from a seed, not yet written."""
    source = SeededSource(29)
    if mechanism == "swap":
        plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, dataset="rows")
        return stirred.swap.draw(plan, ROWS, source=source).finish()
    if mechanism == "survey":
        plan = stirred.SurveyPlan(
            epsilon=1, dataset="rows", design={"selected": 60}, attributes=[COUNTIES], queries=[{"by": ["county"]}]
        )
        return survey_mechanism.MECHANISM.draw(plan, ROWS, source=source).finish()
    domains = {"race": ["p", "q"], "adult": ["yes", "no"]}
    plan = stirred.topdown.preset("teaching", domains, ["county", "town"], dataset="rows")
    return stirred.topdown.draw(plan, {"persons": PEOPLE, "geography": PLACES}, work=work, source=source).finish()
