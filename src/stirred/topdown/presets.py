"""Built-in plans: the 2020 redistricting data and DHC with their production shares, and a small one for teaching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.spec.known_deployments.allocations import AllocationPart, allocation
from stirred.topdown.dhc_presets import DHC_LEVELS, dhc_plan
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TOTAL

CENSUS_LEVELS = ("us", "state", "county", "tract", "block group", "block")
NATION = CENSUS_LEVELS[0]
LEVELS = ("state", "county", "tract", "block_group", "block")
"""What the columns of the list of places are called, unless they are named."""

HHGQ = (
    "household", "correctional", "juvenile", "nursing", "other institutional", "college", "military",
    "other non-institutional",
)  # fmt: skip
FACILITIES = HHGQ[1:]
INSTITUTIONS = {"household": HHGQ[:1], "institutional": HHGQ[1:5], "non-institutional": HHGQ[5:]}

NEEDED = {
    "pl94-2020": ("votingage", "hispanic", "cenrace"),
    "pl94-units": (),
    "teaching": ("race", "adult"),
    "dhc-persons": ("cenrace",),
    "dhc-units": (),
}
"""The attributes whose values each preset must be given."""


def preset(
    name: str,
    domains: Mapping[str, Sequence[str]],
    levels: Sequence[str] | None = None,
    *,
    nation: bool = False,
    rounded: bool = False,
    **more: Any,
) -> TopDownPlan:
    """A built-in plan for geography columns called ``levels``, from state to block.

    ``domains`` has the values of attributes: votingage, hispanic and cenrace for ``pl94-2020``, race and adult for
    ``teaching``, cenrace for ``dhc-persons``. The DHC plans have seven levels below the nation, the others five. With
    ``nation`` the spine has a root above the states; without it the nation's share is not spent. ``rounded`` takes the
    budgets as printed in place of those of production. ``more`` are other fields of the plan.
    """
    if name not in NEEDED:
        raise errors.unknown_choice("preset", name, list(NEEDED))
    if lacking := [one for one in NEEDED[name] if one not in domains]:
        raise errors.topdown_plan(f"The preset '{name}'", f"needs the values of {errors.listed(lacking)} in domains")
    expected = DHC_LEVELS if name.startswith("dhc-") else LEVELS
    levels = expected if levels is None else tuple(levels)
    if name != "teaching" and len(levels) != len(expected):
        raise errors.topdown_plan(
            f"The preset '{name}'", f"needs {len(expected)} levels, as {errors.listed(expected)}, not {len(levels)}"
        )
    if name.startswith("dhc-"):
        return TopDownPlan(**{**dhc_plan(name, domains, levels, nation), **more})
    spine = {"levels": tuple(levels), **({"root": NATION} if nation else {"absent": (NATION,)})}
    if name == "teaching":
        return TopDownPlan(**{"spine": spine, **_teaching(domains, (NATION, *levels)), **more})
    named = dict(zip(CENSUS_LEVELS, (NATION, *levels), strict=True))
    shares = allocation("pl94-2020")
    units = _table(shares.parts[1], "units", "housing unit", named, rounded)
    units |= {"attributes": [{"name": "occupancy", "values": ("occupied", "vacant")}]}
    block, state = levels[-1], levels[0]
    kept: list[dict[str, Any]] = [{"table": "units", "level": block}]
    if name == "pl94-units":
        return TopDownPlan(**{"spine": spine, "unit": "housing unit", "tables": [units], "invariants": kept, **more})
    persons = _table(shares.parts[0], "persons", "person", named, rounded)
    attributes = {"hhgq": HHGQ, **{one: domains[one] for one in ("votingage", "hispanic", "cenrace")}}
    persons |= {
        "attributes": [{"name": one, "values": tuple(values)} for one, values in attributes.items()],
        "recodes": [{"name": "hhinstlevels", "of": "hhgq", "groups": INSTITUTIONS}],
        "zeros": [{"hhgq": ("nursing",), "votingage": (domains["votingage"][0],)}],
    }
    facilities = {
        "name": "facilities",
        "unit": "group-quarters facility",
        "attributes": [{"name": "type", "values": FACILITIES}],
    }
    kept += [{"table": "persons", "level": state}, {"table": "facilities", "level": block, "by": ("type",)}]
    constraints = [
        {"table": "persons", "counted": "facilities", "each": {"hhgq": "type"}, "at_least": 1},
        {"table": "persons", "counted": "units", "where": {"hhgq": ("household",)}},
    ]
    tables = [persons, units, facilities]
    return TopDownPlan(**{"spine": spine, "tables": tables, "invariants": kept, "constraints": constraints, **more})


def _table(part: AllocationPart, name: str, unit: str, named: Mapping[str, str], rounded: bool) -> dict[str, Any]:
    """A table with the shares of a part of an allocation."""
    levels = list(named.values())
    return {
        "name": name,
        "unit": unit,
        "rho": part.budget(rounded=rounded),
        "level_shares": dict(zip(levels, part.level_shares, strict=True)),
        "queries": [
            {
                "by": () if query.name == TOTAL else tuple(query.name.split("*")),
                "shares": dict(zip(levels, query.shares, strict=True)),
            }
            for query in part.queries
        ],
    }


def _teaching(domains: Mapping[str, Sequence[str]], levels: Sequence[str]) -> dict[str, Any]:
    """Race by adult: four queries, a budget of 1 divided evenly among levels."""
    share = Fraction(1, len(levels))
    queries = [
        {"by": (), "shares": "1/2"},
        {"by": ("race",), "shares": "1/8"},
        {"by": ("adult",), "shares": "1/8"},
        {"by": ("race", "adult"), "shares": "1/4"},
    ]
    persons = {
        "name": "persons",
        "unit": "person",
        "rho": 1,
        "level_shares": dict.fromkeys(levels, share),
        "attributes": [{"name": one, "values": tuple(domains[one])} for one in ("race", "adult")],
        "queries": queries,
    }
    return {"tables": [persons], "invariants": [{"table": "persons", "level": levels[1]}]}
