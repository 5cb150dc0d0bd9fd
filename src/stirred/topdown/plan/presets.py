"""Built-in TopDown plans: the 2020 redistricting data, the 2020 Demographic and Housing Characteristics, one to teach.

The redistricting plans (``pl94-``) have the shares of production. The others (``dhc-``) have persons whole, and housing
units as far as tenure, with the shares of the allocation ``dhc-2020``
(:mod:`stirred.spec.known_deployments.allocations`). Groupings of ages and of relations are those of the public code,
and so are the zeros: combinations of age and relation or type of group quarters that cannot occur. Of housing units
there is the query of tenure, vacancy and group quarters; the other nine are by recodes of 522 household types, whose
groupings are not part of this package.

The invariant a reader must know: shares of queries that a plan leaves out are not spent, so that each query that is
there has the rho of production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.spec.known_deployments.allocations import Allocation, allocation
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TOTAL

DHC_LEVELS = ("state", "county", "prim", "tract_subset_group", "tract_subset", "block_group", "block")
"""What the columns of the list of places are called, unless they are named."""
DHC_NATION = "us"

GROUP_QUARTERS = (
    "101 federal detention centers", "102 federal prisons", "103 state prisons", "104 local jails",
    "105 correctional residential facilities", "106 military disciplinary barracks", "201 group homes for juveniles",
    "202 residential treatment centers for juveniles", "203 correctional facilities for juveniles",
    "301 nursing facilities", "401 mental hospitals", "402 hospitals, no usual home elsewhere",
    "403 in-patient hospice facilities", "404 military treatment facilities", "405 residential schools",
    "501 college housing", "601 military quarters", "602 military ships", "701 shelters",
    "801 group homes for adults", "802 residential treatment centers for adults", "900 maritime vessels",
    "901 workers' quarters", "997 other non-institutional",
)  # fmt: skip
RELATIONS = (
    "householder living alone", "householder not living alone", "opposite-sex spouse", "opposite-sex partner",
    "same-sex spouse", "same-sex partner", "biological child", "adopted child", "stepchild", "sibling", "parent",
    "grandchild", "parent-in-law", "child-in-law", "other relative", "roommate", "foster child", "other nonrelative",
)  # fmt: skip
RELGQ = (*RELATIONS, *GROUP_QUARTERS)
AGES = tuple(str(age) for age in range(116))
HOUSING = (
    "mortgage", "owned", "rented", "no pay", "vacant, for rent", "vacant, rented", "vacant, for sale", "vacant, sold",
    "vacant, seasonal", "vacant, for migrant workers", "vacant, other",
)  # fmt: skip

_MAJOR = {
    "correctional": (18, 24), "juvenile": (24, 27), "nursing": (27, 28), "other institutional": (28, 33),
    "college": (33, 34), "military": (34, 36), "other non-institutional": (36, 42),
}  # fmt: skip
_FROM_18 = (18, 20, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85, 90, 95, 100, 105, 110)

_YOUNGER: Mapping[int, Sequence[int]] = {
    15: (0, 1, 2, 3, 4, 5, 13, 18, 19, 20, 21, 22), 30: (10, 12), 17: (23, 31, 34, 35), 20: (27,), 3: (32,),
    16: (33, 37, 38, 39),
}  # fmt: skip
"""Ages below which nobody has one of these relations or is in one of these group quarters."""
_OLDER: Mapping[int, Sequence[int]] = {
    89: (6, 7, 8, 13), 74: (11,), 20: (16,), 65: (23, 31, 33, 34, 35), 25: (24, 25, 26), 30: (32,), 75: (39,),
}  # fmt: skip
"""Ages above which nobody has."""


def dhc_plan(name: str, domains: Mapping[str, Sequence[str]], levels: Sequence[str], nation: bool) -> dict[str, Any]:
    """The fields of a plan: ``dhc-persons`` or ``dhc-units``."""
    shares = allocation("dhc-2020")
    named = (DHC_NATION, *levels)
    spine = {"levels": tuple(levels), **({"root": DHC_NATION} if nation else {"absent": (DHC_NATION,)})}
    state, block = levels[0], levels[-1]
    if name == "dhc-units":
        units = {
            **_table(shares, "units", "units", named, rounded=True, wanted=["tenvacgq"]),
            "attributes": [{"name": "tenvacgq", "values": (*HOUSING, *GROUP_QUARTERS)}],
            "recodes": [_recode("unit_type", "tenvacgq", (*HOUSING, *GROUP_QUARTERS), _unit_types())],
        }
        kept = [{"table": "units", "level": block, "by": ("unit_type",)}]
        return {"spine": spine, "unit": "housing unit", "tables": [units], "invariants": kept}
    values = {"relgq": RELGQ, "sex": domains.get("sex", ("male", "female")), "age": AGES}
    values |= {"hispanic": domains.get("hispanic", ("no", "yes")), "cenrace": domains["cenrace"]}
    persons = {
        **_table(shares, "persons", "persons", named, rounded=True),
        "attributes": [{"name": one, "values": tuple(listed)} for one, listed in values.items()],
        "recodes": [*_age_recodes(), *_relation_recodes()],
        "zeros": _zeros(),
    }
    facilities = {
        "name": "facilities", "unit": "group-quarters facility",
        "attributes": [{"name": "type", "values": GROUP_QUARTERS}],
    }  # fmt: skip
    kept = [{"table": "persons", "level": state}, {"table": "facilities", "level": block, "by": ("type",)}]
    constraints = [{"table": "persons", "counted": "facilities", "each": {"relgq": "type"}, "at_least": 1}]
    return {"spine": spine, "tables": [persons, facilities], "invariants": kept, "constraints": constraints}


def _recode(name: str, of: str, values: Sequence[str], groups: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    return {"name": name, "of": of, "groups": {label: [values[at] for at in some] for label, some in groups.items()}}


def _age_recodes() -> list[dict[str, Any]]:
    starts = {
        "age_18_64_116": (0, 18, 65),
        "age_38_groups": (*range(16), *_FROM_18),
        "age_10_groups": (0, 3, 15, 16, 17, 18, 20, 25, 30, 35),
        "age_40_groups": (*range(18), *_FROM_18),
    }
    found = []
    for name, begin in starts.items():
        ends = (*begin[1:], len(AGES))
        groups = {str(a) if b == a + 1 else f"{a}-{b - 1}": range(a, b) for a, b in zip(begin, ends, strict=True)}
        found.append(_recode(name, "age", AGES, groups))
    return found


def _relation_recodes() -> list[dict[str, Any]]:
    each = {label: [at] for at, label in enumerate(RELATIONS)}
    groups: dict[str, dict[str, Sequence[int]]] = {
        "relgq_4_groups": {
            "householder": range(2), "not householder": range(2, 18), "institutional": range(18, 33),
            "non-institutional": range(33, 42),
        },
        "gq_constr_groups": {
            "household": range(18), "none below 3": (32,), "none below 15": range(18, 23),
            "none below 16": (33, *range(37, 42)), "none below 17": (23, 31, 34, 35),
            "any age below 18": (*range(24, 31), 36),
        },
        "popSehsdTargetsRelship": {**each, "group quarters": range(18, 42)},
        "relship_and_eight_level_GQ": {**each, **{label: range(*ends) for label, ends in _MAJOR.items()}},
    }  # fmt: skip
    return [_recode(name, "relgq", RELGQ, found) for name, found in groups.items()]


def _zeros() -> list[dict[str, Any]]:
    younger = [{"relgq": [RELGQ[at] for at in some], "age": AGES[:age]} for age, some in _YOUNGER.items()]
    return younger + [{"relgq": [RELGQ[at] for at in some], "age": AGES[age + 1 :]} for age, some in _OLDER.items()]


def _unit_types() -> dict[str, Sequence[int]]:
    """Housing units together, and each type of group quarters."""
    quarters = {label: (len(HOUSING) + at,) for at, label in enumerate(GROUP_QUARTERS)}
    return {"housing unit": range(len(HOUSING)), **quarters}


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
    named = (NATION, *levels)
    shares = allocation("pl94-2020")
    units = _table(shares, "housing", "units", named, rounded=rounded)
    units |= {"attributes": [{"name": "occupancy", "values": ("occupied", "vacant")}]}
    block, state = levels[-1], levels[0]
    kept: list[dict[str, Any]] = [{"table": "units", "level": block}]
    if name == "pl94-units":
        return TopDownPlan(**{"spine": spine, "unit": "housing unit", "tables": [units], "invariants": kept, **more})
    persons = _table(shares, "persons", "persons", named, rounded=rounded)
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


def _table(
    shares: Allocation, part: str, name: str, named: Sequence[str], *, rounded: bool, wanted: Sequence[str] = ()
) -> dict[str, Any]:
    """A table with the queries of a part, or with the wanted ones of them, each with the rho that it had, and shares
    that add up to one; ``named`` are the levels."""
    wanted = wanted or [query.name for query in shares.part(part).queries]
    rho = {(at, one): shares.rho(lv, one, rounded=rounded) for at, lv in enumerate(shares.levels) for one in wanted}
    of_level = [sum((rho[at, one] for one in wanted), Fraction(0)) for at in range(len(shares.levels))]
    total = sum(of_level, Fraction(0))
    return {
        "name": name,
        "unit": shares.part(part).unit,
        "rho": total,
        "level_shares": {level: share / total for level, share in zip(named, of_level, strict=True)},
        "queries": [
            {
                "by": () if one == TOTAL else tuple(one.split("*")),
                "shares": {level: rho[at, one] / of_level[at] for at, level in enumerate(named)},
            }
            for one in wanted
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
