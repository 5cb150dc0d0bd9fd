"""Pictures as data: lines over an axis, bars, intervals, or dots in panels, with titles, labels and captions.

Nothing is drawn here; :mod:`stirred.reports.figures` does that. ``dataclasses.replace`` changes names and titles.

Keep in mind: a picture is checked when made and never changes. Its numbers are finite, and each line runs from left to
right. Panels never share an axis: they are for numbers that look alike and are not, and a dot further right in another
panel means nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from stirred import errors
from stirred._display import brief
from stirred.loss.argument_checks import finite


class _AsData:
    """What every picture can do: be checked, and be written as JSON."""

    kind: ClassVar[str]
    name: str
    title: str

    def _settle(self, parts: str) -> None:
        """Keep the parts as a tuple; refuse a picture without parts, without title, or with a name for no file."""
        object.__setattr__(self, parts, tuple(getattr(self, parts)))
        _require_file_name(self.name)
        _not_empty("the title of a picture", self.title)
        _not_empty(parts, getattr(self, parts))

    def to_fields(self) -> dict[str, Any]:
        """The picture as a dictionary that JSON can hold."""
        return {"kind": self.kind, **json.loads(json.dumps(asdict(self)))}  # type: ignore[call-overload]


@brief
@dataclass(frozen=True)
class Line:
    """Points from left to right. ``words`` say what the line is, where its name is not enough."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    words: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(map(float, self.x)))
        object.__setattr__(self, "y", tuple(map(float, self.y)))
        _not_empty("the name of a line", self.name)
        if len(self.x) != len(self.y) or len(self.x) < 2:
            raise errors.not_a_curve("line", "give as many y as x, and at least two")
        if not all(map(math.isfinite, (*self.x, *self.y))):
            raise errors.not_a_curve("line", "every number must be finite")
        if any(left > right for left, right in zip(self.x, self.x[1:], strict=False)):
            raise errors.not_a_curve("line", "x must not decrease")


@dataclass(frozen=True)
class Point:
    """One point of a picture that is marked, and the words beside it."""

    x: float
    y: float
    words: str

    def __post_init__(self) -> None:
        for one in ("x", "y"):
            object.__setattr__(self, one, finite(f"{one} of a point", getattr(self, one)))
        _not_empty("the words of a point", self.words)


@brief
@dataclass(frozen=True)
class Picture(_AsData):
    """Lines over two axes. Lines of one name belong together: they are drawn alike, with one entry in the legend.

    ``name`` is that of the files it is saved to. With ``diagonal`` y = x is shown, and both axes go from 0 to 1.
    ``guarantee`` says which guarantee the numbers are of (:mod:`stirred.semantics.sentences.formatting`); it is drawn
    below the subtitle. ``points`` are answers that somebody asked for, drawn on the lines with their numbers.

    >>> Picture("a-guess", "A guess", "", "level", "power", (Line("blind", (0, 1), (0, 1)),)).to_fields()["lines"]
    [{'name': 'blind', 'x': [0.0, 1.0], 'y': [0.0, 1.0], 'dashed': False, 'words': ''}]
    """

    kind: ClassVar[str] = "lines"

    name: str
    title: str
    subtitle: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_log: bool = False
    y_log: bool = False
    diagonal: bool = False
    caption: str = ""
    guarantee: str = ""
    points: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        self._settle("lines")
        object.__setattr__(self, "points", tuple(self.points))
        if self.diagonal and (self.x_log or self.y_log):
            raise errors.parameter_out_of_range("diagonal", True, "left out on a logarithmic axis")
        for line in self.lines:
            if (self.x_log and min(line.x) <= 0) or (self.y_log and min(line.y) <= 0):
                raise errors.not_a_curve(f"line '{line.name}'", "numbers on a logarithmic axis must be above 0")
            if self.diagonal and not all(0 <= number <= 1 for number in (*line.x, *line.y)):
                raise errors.not_a_curve(f"line '{line.name}'", "beside the diagonal numbers are between 0 and 1")
        for point in self.points:
            if (self.x_log and point.x <= 0) or (self.y_log and point.y <= 0):
                raise errors.not_a_curve(f"point '{point.words}'", "numbers on a logarithmic axis must be above 0")


@dataclass(frozen=True)
class Bar:
    """One bar; bars of one group share a colour. ``words`` are shown beside it; ``about`` is in the JSON only."""

    name: str
    value: float
    group: str = ""
    words: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        _not_empty("the name of a bar", self.name)
        object.__setattr__(self, "value", finite(f"the bar '{self.name}'", self.value))


@brief
@dataclass(frozen=True)
class Bars(_AsData):
    """Bars one below the other, in the order given; ``mark`` is a value to compare them with, and its name."""

    kind: ClassVar[str] = "bars"

    name: str
    title: str
    subtitle: str
    x_title: str
    bars: tuple[Bar, ...]
    caption: str = ""
    mark: float | None = None
    mark_words: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        self._settle("bars")
        _once([(bar.name, bar.group) for bar in self.bars], "the name of a bar", "of one bar only")
        if self.mark is not None:
            object.__setattr__(self, "mark", finite("mark", self.mark))


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its interval, and the value that is shown beside it."""

    name: str
    lower: float
    value: float
    upper: float
    beside: float

    def __post_init__(self) -> None:
        _not_empty("the name of an interval", self.name)
        _floats(self, "lower", "value", "upper", "beside")


@brief
@dataclass(frozen=True)
class Intervals(_AsData):
    """Estimates with intervals, one below the other, each beside another value for the same number."""

    kind: ClassVar[str] = "intervals"

    name: str
    title: str
    subtitle: str
    x_title: str
    intervals: tuple[Interval, ...]
    value_words: str = "estimate"
    beside_words: str = "naive"
    caption: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        self._settle("intervals")
        _once([one.name for one in self.intervals], "the name of an interval", "of one interval only")


@dataclass(frozen=True)
class GroupedInterval:
    """An estimate with its interval, and within it the part that one source of error alone would give.

    Without an estimate (None) the interval alone is drawn.
    """

    name: str
    group: str
    lower: float
    value: float | None
    upper: float
    inner_lower: float
    inner_upper: float

    def __post_init__(self) -> None:
        _not_empty("the name of an interval", self.name)
        _not_empty("the group of an interval", self.group)
        _floats(self, *(() if self.value is None else ("value",)), "lower", "upper", "inner_lower", "inner_upper")


@brief
@dataclass(frozen=True)
class GroupedIntervals(_AsData):
    """Estimates of several groups side by side, a row for each name; each interval thin, its inner part thick.

    ``x_from`` and ``x_to`` are the ends of the axis: what lies beyond is cut off, and drawn up to the edge.
    """

    kind: ClassVar[str] = "grouped intervals"

    name: str
    title: str
    subtitle: str
    x_title: str
    intervals: tuple[GroupedInterval, ...]
    x_from: float
    x_to: float
    caption: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        self._settle("intervals")
        _once(
            [(one.name, one.group) for one in self.intervals], "the name of an interval", "of one interval of a group"
        )
        if not self.x_from < self.x_to:
            raise errors.parameter_out_of_range("x_from", self.x_from, "below x_to")


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
        _once([dot.name for dot in self.dots], "the name of a dot", "of one dot of a panel")


@brief
@dataclass(frozen=True)
class Panels(_AsData):
    """Columns of panels, and rows of text below the first column for what has no place on an axis."""

    kind: ClassVar[str] = "panels"

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
        _require_file_name(self.name)
        if not self.title or not columns or not all(columns):
            raise errors.parameter_out_of_range("a picture of panels", "empty", "given a title and panels")
        titles = [panel.title for column in columns for panel in column]
        _once(titles, "the title of a panel", "of one panel only")


AnyPicture = Picture | Bars | Intervals | GroupedIntervals | Panels
"""What :mod:`stirred.reports` draws."""


def _once(keys: Sequence[object], what: str, whose: str) -> None:
    if len(set(keys)) < len(keys):
        raise errors.parameter_out_of_range(what, "used twice", whose)


def _floats(interval: Interval | GroupedInterval, *names: str) -> None:
    for one in names:
        object.__setattr__(interval, one, float(getattr(interval, one)))
        if not math.isfinite(getattr(interval, one)):
            raise errors.not_a_curve(f"interval '{interval.name}'", "every number must be finite")


def _require_file_name(name: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise errors.parameter_out_of_range("the name of a picture", repr(name), "lower-case words joined by hyphens")


def _not_empty(what: str, value: Sized) -> None:
    if not len(value):
        raise errors.parameter_out_of_range(what, "empty", "something to show")
