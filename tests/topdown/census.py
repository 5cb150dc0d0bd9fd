"""A small census for tests: two counties, four towns, persons, dwellings and homes, all of it in frames."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.errors import StirredError
from stirred.topdown.plan.fields import TopDownPlan
from strategies import Draws

HOMES = ("nursing", "college")
KINDS = ("household", *HOMES)


def geography() -> pl.DataFrame:
    towns = ["a1", "a2", "b1", "b2", "b3"]
    return pl.DataFrame({"state": ["s"] * 5, "county": [town[0] for town in towns], "town": towns})


def tables(persons: int = 200, seed: int = 1, rng: Draws | None = None) -> dict[str, pl.DataFrame]:
    """Nobody lives in b3; a2 has a college and no dwelling."""
    rng = rng or np.random.default_rng(seed)
    place = rng.choice(["a1", "a2", "b1", "b2"], persons, p=[0.4, 0.1, 0.3, 0.2])
    kind = np.where(
        place == "a2", "college", np.where((place == "b1") & (rng.random(persons) < 0.2), "nursing", "household")
    )
    adult = np.where((kind == "nursing") | (rng.random(persons) < 0.7), "yes", "no")
    colour = rng.choice(["red", "green", "blue"], persons, p=[0.7, 0.2, 0.1])
    homes = [(town, one) for town in ("a2", "b1") for one in sorted(set(kind[place == town]) & set(HOMES))]
    return {
        "geography": geography(),
        "persons": pl.DataFrame({"town": place, "kind": kind, "adult": adult, "colour": colour}),
        "dwellings": pl.DataFrame({"town": ["a1"] * 30 + ["b1"] * 20 + ["b2"] * 10, "occupied": ["yes", "no"] * 30}),
        "homes": pl.DataFrame(homes, schema={"town": pl.String, "type": pl.String}, orient="row"),
    }


def fields(rho: Any = "2", **more: Any) -> dict[str, Any]:
    """The fields of a plan that fits the tables."""
    levels = {"state": "1/4", "county": "1/4", "town": "1/2"}
    queries = [
        {"by": [], "shares": {"state": "1/2", "county": "1/2", "town": "1/16"}},
        {"by": ["minor"], "shares": {"state": "1/4", "county": "1/4", "town": "3/16"}},
        {"by": ["kind", "adult", "colour"], "shares": {"state": "1/4", "county": "1/4", "town": "3/4"}},
    ]
    persons = {
        "name": "persons", "unit": "person", "rho": rho, "level_shares": levels, "queries": queries,
        "attributes": [
            {"name": "kind", "values": KINDS}, {"name": "adult", "values": ("no", "yes")},
            {"name": "colour", "values": ("red", "green", "blue", "black")},
        ],
        "recodes": [{"name": "minor", "of": "adult", "groups": {"minors": ["no"], "adults": ["yes"]}}],
        "zeros": [{"kind": ["nursing"], "adult": ["no"]}],
    }  # fmt: skip
    dwellings = {
        "name": "dwellings", "unit": "dwelling", "rho": "1/2", "level_shares": levels,
        "attributes": [{"name": "occupied", "values": ("yes", "no")}], "queries": [{"by": ["occupied"], "shares": 1}],
    }  # fmt: skip
    homes = {"name": "homes", "unit": "home", "attributes": [{"name": "type", "values": HOMES}]}
    return {
        "spine": {"levels": ["state", "county", "town"]},
        "tables": [persons, dwellings, homes],
        "invariants": [
            {"table": "persons", "level": "county"},
            {"table": "dwellings", "level": "town"},
            {"table": "homes", "level": "town", "by": ["type"]},
        ],
        "constraints": [
            {"table": "persons", "counted": "homes", "each": {"kind": "type"}, "at_least": 1},
            {"table": "persons", "counted": "dwellings", "where": {"kind": ["household"]}},
        ],
        **more,
    }


def plan(rho: Any = "2", **more: Any) -> TopDownPlan:
    return TopDownPlan(**fields(rho, **more))


SPENT = Fraction(5, 2)


@contextlib.contextmanager
def refused(kind: str):
    with pytest.raises(StirredError) as found:
        yield found
    assert found.value.kind == kind, found.value
