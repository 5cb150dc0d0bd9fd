"""Random censuses with random plans that they keep: spines, tables, queries, shares, invariants, zeros, constraints."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from stirred.topdown.plan.fields import TopDownPlan
from strategies import Draws

Rng = np.random.Generator | Draws
RHOS = ("1/1000", "1/10", "1", "20")


def shares(rng: Rng, names: list[str]) -> dict[str, str]:
    """Fractions that add up to one, some of them perhaps zero, but not the last, which is of the detailed query."""
    weights = rng.integers(0, 8, len(names))
    weights[-1] += 1
    return {name: str(Fraction(int(weight), int(weights.sum()))) for name, weight in zip(names, weights, strict=True)}


def level_shares(rng: Rng, levels: list[str]) -> dict[str, str]:
    weights = rng.integers(1, 8, len(levels))
    return {name: str(Fraction(int(weight), int(weights.sum()))) for name, weight in zip(levels, weights, strict=True)}


def geography(rng: Rng) -> tuple[list[str], list[tuple[str, ...]]]:
    """One to four levels, each unit with one to four children."""
    levels = [f"level{number}" for number in range(int(rng.integers(1, 5)))]
    units: list[tuple[str, ...]] = [(f"{root}",) for root in range(int(rng.integers(1, 4)))]
    for _ in levels[1:]:
        units = [(*unit, f"{unit[-1]}.{child}") for unit in units for child in range(int(rng.integers(1, 5)))]
    return levels, units


def random_census(rng: Rng, rho: str | None = None) -> tuple[TopDownPlan, dict[str, Any]]:
    levels, leaves = geography(rng)
    root = "all" if rng.random() < 0.5 else None
    every = [root, *levels] if root else levels
    attributes = [
        {"name": name, "values": [f"{name}{value}" for value in range(int(rng.integers(1, 5)))]}
        for name in "abc"[: int(rng.integers(1, 4))]
    ]
    names = [one["name"] for one in attributes]
    values = attributes[0]["values"]
    recodes = [{"name": "r", "of": "a", "groups": {"first": values[:1], "rest": values[1:]}}] if len(values) > 1 else []
    zeros = [{name: one["values"][-1:] for name, one in zip(names, attributes, strict=True)}]
    if rng.random() < 0.5 or any(len(one["values"]) == 1 for one in attributes):
        zeros = []
    possible = [
        cell
        for cell in product(*(one["values"] for one in attributes))
        if not zeros or any(value not in zeros[0][name] for name, value in zip(names, cell, strict=True))
    ]
    people = [possible[int(at)] for at in rng.integers(0, len(possible), int(rng.integers(0, 300)))]
    homes = rng.choice(len(leaves), len(people), p=rng.dirichlet(np.full(len(leaves), 0.5)))
    queries = [[], *([["r"]] if recodes else []), *([["a"], names[-1:]] if len(names) > 1 else []), names]
    asked = [by for number, by in enumerate(queries) if by not in queries[:number]]
    divided = [shares(rng, ["*".join(by) for by in asked]) for _ in every]
    persons = {
        "name": "persons", "unit": "person", "rho": rho or str(rng.choice(RHOS)), "attributes": attributes,
        "recodes": recodes, "zeros": zeros, "level_shares": level_shares(rng, every),
        "queries": [
            {"by": by, "shares": {level: part["*".join(by)] for level, part in zip(every, divided, strict=True)}}
            for by in asked
            if any(part["*".join(by)] != "0" for part in divided)
        ],
    }  # fmt: skip
    # Facilities stand where some of a kind live, so the data keep the constraint.
    kinds = {(leaves[int(home)][-1], person[0]) for home, person in zip(homes, people, strict=True)}
    facilities = [pair for pair in sorted(kinds) if pair[1] != values[0]]
    tables = [persons, {"name": "facilities", "unit": "facility", "attributes": [{"name": "type", "values": values}]}]
    invariants = [{"table": "facilities", "level": levels[-1], "by": ["type"]}]
    chain = [[], ["r"] if recodes else [], ["a"]]
    for by in chain[: int(rng.integers(0, 4))]:
        invariant = {"table": "persons", "level": str(rng.choice(every)), "by": by}
        if invariant not in invariants:
            invariants.append(invariant)
    constraints = []
    if len(values) > 1 and rng.random() < 0.7:
        constraints.append({"table": "persons", "counted": "facilities", "each": {"a": "type"}, "at_least": 1})
        constraints[-1]["zero_without"] = False  # those of the first kind live anywhere
    plan = TopDownPlan(
        spine={"levels": levels, "root": root},
        tables=tables,
        invariants=invariants,
        constraints=constraints,
        passes=str(rng.choice(["auto", "one", "two"])),
    )
    columns = {level: [leaf[at] for leaf in leaves] for at, level in enumerate(levels)}
    text = pl.String
    data = {
        "geography": pl.DataFrame(columns, schema=dict.fromkeys(levels, text)),
        "persons": pl.DataFrame(
            [(leaves[int(home)][-1], *person) for home, person in zip(homes, people, strict=True)],
            schema={levels[-1]: text, **dict.fromkeys(names, text)}, orient="row",
        ),
        "facilities": pl.DataFrame(facilities, schema={levels[-1]: text, "type": text}, orient="row"),
    }  # fmt: skip
    return plan, data
