"""Small plans and data of each mechanism, for tests about the report in a release folder and its appendix."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import stirred

ROWS = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
PLACES = pl.DataFrame({"county": ["A", "A", "B"], "town": ["x", "y", "z"]})
PEOPLE = pl.DataFrame({"town": list("xyz") * 20, "race": ["p", "q"] * 30, "adult": ["yes", "no", "yes"] * 20})
NAMES = ("swap", "topdown", "survey")


def plan_of(name: str) -> stirred.SwapPlan | stirred.TopDownPlan | stirred.SurveyPlan:
    """A small plan of a mechanism, all of a dataset with the same name."""
    if name == "swap":
        return stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, most_recovered=1,
                                dataset="rows", publish=[["county", "tenure"], ["county"]])  # fmt: skip
    if name == "topdown":
        domains = {"race": ["p", "q"], "adult": ["yes", "no"]}
        return stirred.topdown.preset("teaching", domains, ["county", "town"], dataset="rows")
    counties = {"name": "county", "values": ["a", "b", "c"]}
    wanted = {"kind": "count", "by": ["county"], "errors": "1/4"}
    return stirred.SurveyPlan(epsilon=1, dataset="rows", design={"selected": 60}, attributes=[counties],
                              queries=[{"by": ["county"]}], publish=[wanted])  # fmt: skip


def data_of(name: str) -> object:
    """The data of a plan, as frames."""
    return {"persons": PEOPLE, "geography": PLACES} if name == "topdown" else ROWS


def release_into(folder: Path, name: str, **options) -> Path:
    """Make a release of a small plan."""
    stirred.release(plan_of(name), data_of(name), out=folder, **options)
    return folder
