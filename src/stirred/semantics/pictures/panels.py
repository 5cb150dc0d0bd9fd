"""Pictures of several panels: dots on axes that are not shared, and a list of what has no place on any axis.

For numbers that look alike and are not: each panel has a title that says what its numbers are, and an axis of its own
from 0. Nothing is drawn here; :mod:`stirred.reports.charts` does that.

Keep in mind: panels never share an axis, so a dot further right in another panel means nothing.

All known deployments in one picture, each budget on an axis with its like only.

Panels are the standard with its delta, the unit and the period
(:attr:`stirred.spec.known_deployments.accounts.Account.panel`); deployments of which one of these is not stated are
listed without an axis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from stirred import errors
from stirred._display import brief
from stirred.spec.known_deployments.accounts import STANDARDS, Account, accounts


@dataclass(frozen=True)
class Dot:
    """One number, above or equal to 0; a marked one is drawn in another colour and shape."""

    name: str
    value: float
    words: str = ""
    marked: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if not self.name:
            raise errors.parameter_out_of_range("the name of a dot", "''", "not empty")
        if not (math.isfinite(self.value) and self.value >= 0):
            raise errors.parameter_out_of_range(f"the dot '{self.name}'", self.value, "finite and not negative")


@brief
@dataclass(frozen=True)
class Panel:
    """Dots on one axis from 0, one below the other, and what their numbers are."""

    title: str
    dots: tuple[Dot, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dots", tuple(self.dots))
        if not self.title or not self.dots:
            raise errors.parameter_out_of_range("a panel", "empty", "given a title and dots")
        if len({dot.name for dot in self.dots}) < len(self.dots):
            raise errors.parameter_out_of_range("the name of a dot", "used twice", "of one dot of a panel")


@brief
@dataclass(frozen=True)
class Panels:
    """Columns of panels, and rows of text below the first column for what has no place on an axis."""

    name: str
    title: str
    subtitle: str
    columns: tuple[tuple[Panel, ...], ...]
    listed_title: str = ""
    listed: tuple[str, ...] = ()
    caption: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        columns = tuple(tuple(column) for column in self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "listed", tuple(self.listed))
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise errors.parameter_out_of_range(
                "the name of a picture", repr(self.name), "lower-case words joined by hyphens"
            )
        if not self.title or not columns or not all(columns):
            raise errors.parameter_out_of_range("a picture of panels", "empty", "given a title and panels")
        titles = [panel.title for column in columns for panel in column]
        if len(set(titles)) < len(titles):
            raise errors.parameter_out_of_range("the title of a panel", "used twice", "of one panel only")

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"kind": "panels", **asdict(self)}


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
    *most, last = [name for name in ("standard", "unit", "budget", "period") if name in one.not_stated]
    missing = f"{', '.join(most)} and {last}" if most else last
    return f"{one.budget}; {missing} not stated" if one.budget else f"{missing} not stated"
