"""Random censuses with a second and sometimes a third released table, and relations between them that they keep."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from random_census import RHOS, Rng, level_shares, random_census

from stirred.topdown.plan.fields import TopDownPlan


def related_census(rng: Rng, rho: str | None = None) -> tuple[TopDownPlan, dict[str, Any]]:
    """Persons of :func:`random_census` and the dwellings that some of them live in; perhaps owners of dwellings too."""
    base, data = random_census(rng, rho)
    whole = base.model_dump(mode="json", exclude_defaults=True)
    levels, leaf = list(base.spine.all_levels), base.spine.levels[-1]
    kinds = base.table("persons").attributes[0].values
    each = rng.random() < 0.3 and len(kinds) > 1
    where = {} if each or rng.random() < 0.4 else {"a": list(kinds[:1])}
    at_least, at_most = int(rng.integers(0, 3)), [None, 3, 20][int(rng.integers(0, 3))]
    if at_least == 2:
        at_most = None
    zero_without = at_least < 2 and bool(at_least == 0 or rng.random() < 0.5)
    relation = {"table": "persons", "counted": "dwellings", "counted_where": {"occupied": ["yes"]}, "where": where,
                "at_least": at_least, "at_most": at_most, "zero_without": zero_without}  # fmt: skip
    if each:
        relation |= {"each": {"a": "kind"}}
    living = Counter(
        (person[leaf], person["a"] if each else kinds[0])
        for person in data["persons"].iter_rows(named=True)
        if not where or person["a"] == kinds[0]
    )
    rows = []
    for place in data["geography"][leaf].to_list():
        for kind in kinds if each else kinds[:1]:
            lived = living[place, kind]
            least = -(-lived // at_most) if at_most else int(zero_without and lived > 0)
            most = lived // at_least if at_least else lived + 2
            occupied = int(rng.integers(least, most + 1))
            rows += [(place, kind, "yes")] * occupied + [(place, kind, "no")] * int(rng.integers(0, 3))
    shares = {"rho": rho or str(rng.choice(RHOS)), "level_shares": level_shares(rng, levels)}
    dwellings = {
        "name": "dwellings", "unit": "dwelling", **shares,
        "attributes": [{"name": "kind", "values": kinds}, {"name": "occupied", "values": ["yes", "no"]}],
        "queries": [{"by": [], "shares": "1/4"}, {"by": ["kind", "occupied"], "shares": "3/4"}],
    }  # fmt: skip
    whole["tables"].append(dwellings)
    whole["relations"] = [relation]
    if rng.random() < 0.5:
        by = ["kind"] if rng.random() < 0.3 else []
        whole["invariants"].append({"table": "dwellings", "level": str(rng.choice(levels)), "by": by})
    schema = {leaf: pl.String, "kind": pl.String, "occupied": pl.String}
    data["dwellings"] = pl.DataFrame(rows, schema=schema, orient="row")
    if rng.random() < 0.3:
        _add_owners(rng, whole, data, shares, leaf)
    fit = "least squares first" if rng.random() < 0.5 else "level by level"
    return TopDownPlan(**whole | {"fit": fit}), data


def _add_owners(rng: Rng, whole: dict[str, Any], data: dict[str, Any], shares: dict[str, Any], leaf: str) -> None:
    """Owners have one occupied dwelling or more each, so that relations make a chain."""
    owners = []
    for place, _, occupied in data["dwellings"].iter_rows():
        if occupied == "yes" and rng.random() < 0.6:
            owners.append((place, "here" if rng.random() < 0.5 else "abroad"))
    lives = {"name": "lives", "values": ["here", "abroad"]}
    whole["tables"].append(
        {
            "name": "owners",
            "unit": "owner",
            **shares,
            "attributes": [lives],
            "queries": [{"by": ["lives"], "shares": 1}],
        }
    )
    chain = {"table": "dwellings", "counted": "owners", "where": {"occupied": ["yes"]}}
    whole["relations"].append(chain | {"at_least": 1, "zero_without": False})
    data["owners"] = pl.DataFrame(owners, schema={leaf: pl.String, "lives": pl.String}, orient="row")


def broken_by_hand(plan: TopDownPlan, rows: dict[str, pl.DataFrame]) -> list[str]:
    """Where rows break a relation, counted one by one; the columns of places and attributes are text."""
    leaf, broken = plan.spine.levels[-1], []
    for one in plan.relations:
        counts = []
        both = (one.table, one.where, one.each.keys()), (one.counted, one.counted_where, one.each.values())
        for table, where, names in both:
            found: Counter[tuple[str, ...]] = Counter()
            for row in rows[table].iter_rows(named=True):
                if all(row[name] in values for name, values in where.items()):
                    found[(row[leaf], *(row[name] for name in names))] += 1
            counts.append(found)
        for key in {*counts[0], *counts[1]}:
            have, counted = counts[0][key], counts[1][key]
            most = have if one.at_most is None else one.at_most * counted
            if not one.at_least * counted <= have <= most or (have and not counted and one.zero_without):
                broken.append(f"{one}: {have} for {counted} in {key}")
    return broken
