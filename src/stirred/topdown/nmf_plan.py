"""The TopDown plan that noisy measurement files follow, from their variances and exact statements.

A query with variance v was measured with rho = 1/v. Files have v rounded, so rho is a simple fraction whose inverse
rounds to it, or a decimal number; budgets and shares follow by adding up.

The invariant a reader must know: the guarantee that such a plan states is that of those who drew the measurements, and
``measured_by`` says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from stirred._received import plain
from stirred.margins.spine import Spine
from stirred.topdown.constraints import Counts
from stirred.topdown.nmf_exact import ExactCounts
from stirred.topdown.nmf_form import NATION, Product
from stirred.topdown.nmf_rows import Kind
from stirred.topdown.plan import TopDownPlan

_SIMPLE = 10**12
"""Common denominators above this are replaced by a power of ten."""

Variances = Mapping[str, Sequence[Mapping[tuple[str, ...], Kind]]]
"""By table and level, the queries with their variances."""


def noisy_plan(
    folder: Path,
    products: Sequence[Product],
    spine: Spine,
    variances: Variances,
    exact: Mapping[str, ExactCounts],
    totals: Counts | None,
) -> tuple[TopDownPlan, tuple[Counts | None, ...]]:
    """The plan of some tables, and the values of its invariants."""
    tables: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    bound: list[dict[str, Any]] = []
    values: list[Counts] = []
    leaf = spine.levels[-1]
    for product in products:
        known = exact[product.table]
        tables.append(_table(product, spine.levels, variances[product.table], known))
        if known.total is not None:
            kept.append({"table": product.table, "level": leaf})
            values.append(known.total)
        if totals is not None and product.bounds:
            kept.append({"table": product.table, "level": "state"})
            values.append(totals)
        if product.bounds and known.facilities is not None:
            attribute, household = product.bounds
            kinds = tuple(one for one in product.schema.values(attribute) if one != household)
            tables.append(_counted("facilities", "group-quarters facility", "type", kinds))
            kept.append({"table": "facilities", "level": leaf, "by": ("type",)})
            values.append(known.facilities)
            bound.append({"table": product.table, "counted": "facilities", "each": {attribute: "type"}, "at_least": 1})
        if product.bounds and known.homes is not None:
            attribute, household = product.bounds
            counted = _same_places(known.homes, exact)
            if counted is None:
                counted = "homes"
                tables.append(_counted(counted, "household place", "home", ("home",)))
                kept.append({"table": counted, "level": leaf})
                values.append(known.homes)
            bound.append({"table": product.table, "counted": counted, "where": {attribute: (household,)}})
    root = spine.levels[0] == NATION
    files = f"the noisy measurement files of {' and '.join(one.table for one in products)}"
    fields: dict[str, Any] = {
        "spine": {"levels": spine.levels[1:] if root else spine.levels, **({"root": NATION} if root else {})},
        "unit": products[0].unit,
        "tables": tables,
        "invariants": kept,
        "constraints": bound,
        "measured_by": f"whoever published {files}, found in a folder called '{plain(folder.name, 100)}'",
    }
    return TopDownPlan(**fields), tuple(values)


def _same_places(homes: Counts, exact: Mapping[str, ExactCounts]) -> str | None:
    """The table whose known totals are positive just where households can live, if there is one."""
    for table, known in exact.items():
        if known.total is not None and np.array_equal(known.total > 0, homes > 0):
            return table
    return None


def _counted(name: str, unit: str, attribute: str, values: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "unit": unit, "attributes": [{"name": attribute, "values": tuple(values)}]}


def _table(
    product: Product,
    levels: Sequence[str],
    variances: Sequence[Mapping[tuple[str, ...], Kind]],
    known: ExactCounts,
) -> dict[str, Any]:
    spent = _budgets(variances)
    each = [sum(here.values(), Fraction(0)) for here in spent]
    rho = sum(each, Fraction(0))
    queries = dict.fromkeys(by for here in spent for by in here)
    return {
        "name": product.table,
        "unit": product.unit,
        "rho": rho,
        "level_shares": {level: one / rho for level, one in zip(levels, each, strict=True)},
        "attributes": [{"name": name, "values": values} for name, values in product.attributes],
        "recodes": [{"name": name, "of": of, "groups": dict(groups)} for name, of, groups in product.recodes],
        "zeros": [dict(one) for one in known.zeros],
        "queries": [
            {
                "by": by,
                "shares": {
                    level: here.get(by, Fraction(0)) / one for level, here, one in zip(levels, spent, each, strict=True)
                },
            }
            for by in queries
        ],
    }


def _budgets(variances: Sequence[Mapping[tuple[str, ...], Kind]]) -> list[dict[tuple[str, ...], Fraction]]:
    """rho of every query of every level."""
    found = [{by: simplest_rho(kind.variance, kind.single) for by, kind in here.items()} for here in variances]
    if math.lcm(*(rho.denominator for here in found for rho in here.values())) <= _SIMPLE:
        return found
    for digits in range(12, 60):
        grid = 10**digits
        found = [
            {by: Fraction(round(grid / Fraction(kind.variance)), grid) for by, kind in here.items()}
            for here in variances
        ]
        if all(
            _states(here[by], kind) for here, kinds in zip(found, variances, strict=True) for by, kind in kinds.items()
        ):
            break
    return found


def _states(rho: Fraction, kind: Kind) -> bool:
    """Whether a variance is one over rho, as a number in double or single precision."""
    if not rho:
        return False
    if kind.single:
        return bool(np.float32(float(1 / rho)) == np.float32(kind.variance))
    return float(1 / rho) == kind.variance


def simplest_rho(variance: float, single: bool = False) -> Fraction:
    """The simplest fraction whose inverse is the variance as stated, a number in double or single precision.

    >>> simplest_rho(4097 / 3), simplest_rho(float(np.float32(4097 / 3)), single=True)
    (Fraction(3, 4097), Fraction(3, 4097))
    """
    aim, stated = 1 / Fraction(variance), Kind("", (), variance, single)
    for digits in range(1, 40):
        rho = aim.limit_denominator(10**digits)
        if _states(rho, stated):
            return rho
    return aim
