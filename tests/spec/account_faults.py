"""What may be wrong with the table of a deployment that has an account: how files are kept as they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stirred.errors import listed
from stirred.spec.known_deployments.accounts import BLOCKS, QUESTIONS, STANDARDS, record_of


def faults(fields: Mapping[str, Any]) -> list[str]:
    """What is wrong with the table of a deployment that has an account; nothing if it is as it should be."""
    given = fields["account"]
    found = []
    known = {"year", "not_stated", "checked", "reached", *QUESTIONS}
    if strange := sorted(set(given) - known):
        found.append(f"there is no field {listed(strange)}")
    stated = [name for name in QUESTIONS if name in given]
    open_ones = given.get("not_stated", [])
    found += [f"'{name}' is stated and not stated" for name in stated if name in open_ones]
    silent = [name for name in QUESTIONS if name not in given and name not in open_ones]
    found += [f"'{name}' is neither stated nor said to be not stated" for name in silent]
    if not isinstance(given.get("year"), int):
        found.append("'year' is a whole number")
    if strange := [name for name in open_ones if name not in QUESTIONS or name == "organisation"]:
        found.append(f"{listed(strange)} cannot be not stated")
    numbered = len(fields.get("sources", ()))
    for name, source in given.get("checked", {}).items():
        if name not in stated:
            found.append(f"'{name}' is checked and not stated")
        if not 1 <= source <= numbered:
            found.append(f"'{name}' is checked in source {source}, which is not listed")
        elif record_of(fields["sources"][source - 1 : source]):
            found.append(f"'{name}' is checked in the registry's record, which is no check")
    if any(name not in given.get("checked", {}) for name in stated) and not record_of(fields.get("sources", ())):
        found.append("the registry's record is not among the sources")
    found += faults_of_numbers(given)
    complete = not any(name in open_ones for name in BLOCKS)
    if complete != ("specification" in fields):
        found.append("there is a specification exactly if every building block is stated")
    return found


def faults_of_numbers(given: Mapping[str, Any]) -> list[str]:
    standard, budget = given.get("standard"), given.get("budget")
    if standard is not None and standard not in STANDARDS:
        return [f"there is no standard '{standard}'"]
    if budget is None:
        return []
    if standard is None:
        return ["a budget needs its standard"]
    wanted = STANDARDS[standard][1]
    if not isinstance(budget, dict) or tuple(budget) != wanted:
        return [f"the budget of '{standard}' is {listed(wanted)}"]
    return [f"'{name}' is text, so that it stays exact" for name, value in budget.items() if not isinstance(value, str)]
