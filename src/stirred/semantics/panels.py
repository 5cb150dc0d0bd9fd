"""Pictures of several panels: dots on axes that are not shared, and a list of what has no place on any axis.

For numbers that look alike and are not: each panel has a title that says what its numbers are, and an axis of its own
from 0. Nothing is drawn here; :mod:`stirred.reports.panel_figures` does that.

Keep in mind: panels never share an axis, so a dot further right in another panel means nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any

from stirred import errors
from stirred._shown import brief


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
