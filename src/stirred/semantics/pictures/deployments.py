"""All known deployments in one picture, each budget on an axis with its like only.

Panels are the standard with its delta, the unit and the period
(:attr:`stirred.spec.known_deployments.accounts.Account.panel`); deployments of which one of these is not stated are
listed without an axis.
"""

from __future__ import annotations

from collections.abc import Iterable

from stirred.errors import listed_plainly
from stirred.semantics.pictures.shapes import Dot, Panel, Panels
from stirred.spec.known_deployments.accounts import STANDARDS, Account, accounts

FIRST_COLUMN = ("pure",)
"""Standards of the panels on the left; the others are on the right."""


def deployment_picture(shown: Iterable[Account] | None = None, marked: str = "") -> Panels:
    """The budgets of deployments, by default all known ones; the one named in ``marked`` stands out.

    >>> picture = deployment_picture()
    >>> sum(len(panel.dots) for column in picture.columns for panel in column) + len(picture.listed)
    42
    """
    chosen = list(accounts().values() if shown is None else shown)
    groups: dict[tuple[str, str, str], list[Account]] = {}
    without = []
    for one in chosen:
        if one.panel is None:
            without.append(one)
        else:
            groups.setdefault(one.panel, []).append(one)
    order = sorted(groups, key=lambda panel: (list(STANDARDS).index(_standard(panel)), -len(groups[panel]), panel))
    columns: tuple[list[Panel], list[Panel]] = ([], [])
    for key in order:
        dots = sorted((_dot(one, marked) for one in groups[key]), key=lambda dot: (dot.value, dot.name))
        columns[_standard(key) not in FIRST_COLUMN].append(Panel(_title(key), tuple(dots)))
    lines = [f"{one.name}: {_said(one)}" for one in without]
    kinds = "1 kind" if len(groups) == 1 else f"{len(groups)} kinds"
    return Panels(
        "known-deployments",
        "Budgets of known deployments, each with its own kind only",
        f"{len(chosen)} deployments, {kinds} of budget: standard, unit and period as they are stated",
        tuple(tuple(column) for column in columns if column),
        "On no axis, since a part is not stated",
        tuple(lines),
        "Every panel has an axis of its own: budgets of different panels are on different scales, and a dot further "
        "right in another panel says nothing. Within a panel too the data differ, and what is held fixed.",
        "Guarantees: as each deployment states its own; standard, unit and period are the title of its panel",
    )


def _standard(panel: tuple[str, str, str]) -> str:
    return panel[0].partition(",")[0]


def _title(panel: tuple[str, str, str]) -> str:
    standard, _, delta = panel[0].partition(", ")
    said = STANDARDS[standard][1][0] + (f" at {delta}" if delta else "")
    said = f"per-record {said}" if standard.startswith("per-record") else said
    return f"{said} per {panel[1]}, {panel[2]}"


def _dot(one: Account, marked: str) -> Dot:
    number = one.numbers.get("epsilon") or one.numbers["rho"]
    return Dot(one.name, float(number), one.budget, one.name == marked)


def _said(one: Account) -> str:
    missing = listed_plainly(name for name in ("standard", "unit", "budget", "period") if name in one.not_stated)
    return f"{one.budget}; {missing} not stated" if one.budget else f"{missing} not stated"
