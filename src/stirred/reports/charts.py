"""Pictures as charts of Altair, in a style: lines with marked points, bars, intervals, panels of dots.

Lines differ by dashes as well as by colour, bars by group, and every bar carries its number. Panels are columns of
small charts, each with an axis of its own, and a list of texts below. All row labels are given the same room, so that
panels of a column stand exactly below one another. In a paper there are three columns, so that they fit on a page.

Keep in mind: nothing is computed here. What is drawn are the numbers of the picture.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

from stirred.reports.figure_style import GREY, LONG_DASHES, SCREEN, SHORT_DASHES, Style
from stirred.semantics.pictures.shapes import (
    AnyPicture,
    Bars,
    GroupedIntervals,
    Intervals,
    Line,
    Panel,
    Panels,
    Picture,
)

_LABELS, _WIDTH, _STEP = 175, 190, 19
_LINE = 15
"""Height of a line of the list."""

_COLUMNS = 3
"""Columns of panels across two columns of a paper; one column is too narrow for any."""


def panels(picture: Panels, style: Style) -> alt.HConcatChart:
    """The columns side by side; dots are circles in the first colour, marked ones diamonds in the second."""
    columns = [list(column) for column in picture.columns]
    labels, width = _LABELS, _WIDTH
    if style.total is not None:
        columns = _even_columns([panel for column in columns for panel in column], len(picture.listed))
        labels = round(23 * style.letter)
        width = max(40, round(style.width / len(columns)) - labels)
    shown = []
    for number, column in enumerate(columns):
        charts: list[alt.LayerChart | alt.FacetChart | alt.Chart] = [
            _panel(panel, style, labels, width) for panel in column
        ]
        if number == (0 if style.total is None else len(columns) - 1) and picture.listed:
            charts.append(_list(picture, style, labels, width))
        shown.append(alt.vconcat(*charts, spacing=round(16 * style.step)))
    return alt.hconcat(*shown, spacing=36 if style.total is None else 10)


def _even_columns(every: list[Panel], listed: int) -> list[list[Panel]]:
    """The panels in their order in columns of about one height, with room for the list below the last."""
    rows = [len(panel.dots) + 3 for panel in every]
    most = (sum(rows) + 1.5 * listed) / _COLUMNS
    columns: list[list[Panel]] = [[]]
    filled = 0.0
    for panel, high in zip(every, rows, strict=True):
        if filled + high / 2 > most and len(columns) < _COLUMNS:
            columns.append([])
            filled = 0.0
        columns[-1].append(panel)
        filled += high
    return columns


def _panel(panel: Panel, style: Style, room: int, width: int) -> alt.LayerChart | alt.FacetChart:
    rows = [
        {"name": dot.name, "value": dot.value, "label": f"{dot.value:.6g}", "about": dot.words, "marked": dot.marked}
        for dot in panel.dots
    ]
    highest = max(dot.value for dot in panel.dots) or 1.0
    names = [dot.name for dot in panel.dots]
    labels = alt.Axis(
        labelLimit=room,
        minExtent=room,
        maxExtent=room,
        labelFontSize=style.text,
        ticks=False,
        domain=False,
        labelPadding=6 * style.step,
        grid=True,
    )
    room_right = min(0.6, max(0.26, 6.5 * style.letter / width))  # for the number beside the last dot
    across = alt.Scale(domain=[0, highest / (1 - room_right)], nice=False)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=labels),
        x=alt.X("value:Q", title=None, scale=across, axis=_panel_axis(style)),
        tooltip=["name:N", "about:N"],
    )
    shown = alt.condition("datum.marked", alt.value(style.colours[1]), alt.value(style.colours[0]))
    points = base.mark_point(size=60 * style.step**2, filled=True, opacity=1).encode(
        color=shown, shape=alt.condition("datum.marked", alt.value("diamond"), alt.value("circle"))
    )
    texts = base.mark_text(align="left", dx=8 * style.step, fontSize=style.small, color="black").encode(text="label:N")
    title = alt.TitleParams(
        text=_fitted(panel.title, room + width, style), anchor="start", frame="bounds", fontSize=style.text,
        fontWeight="bold", offset=4,
    )  # fmt: skip
    return alt.layer(points, texts).properties(width=width, height=alt.Step(_STEP * style.step), title=title)


def _panel_axis(style: Style) -> alt.Axis:
    return alt.Axis(tickCount=4 if style.total is None else 2, grid=False, labelFontSize=style.small)


def _list(picture: Panels, style: Style, room: int, width: int) -> alt.Chart:
    lines = picture.listed
    if style.total is not None:
        most = round((room + width) / style.letter)
        lines = tuple(line for text in picture.listed for line in textwrap.wrap(text, most, subsequent_indent="   "))
    rows = [{"at": number, "text": text} for number, text in enumerate(lines)]
    title = alt.TitleParams(
        text=picture.listed_title, anchor="start", frame="bounds", fontSize=style.text, fontWeight="bold", offset=6
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(align="left", baseline="top", fontSize=style.small, color=GREY, limit=0)
        .encode(
            x=alt.value(-room),
            y=alt.Y("at:Q", axis=None, scale=alt.Scale(domain=[0, len(rows)], reverse=True, nice=False)),
            text="text:N",
        )
        .properties(width=width, height=_LINE * style.step * len(rows), title=title)
    )
    return chart


def _fitted(title: str, width: int, style: Style) -> str | list[str]:
    """On a screen the title as it is; in a paper wrapped to the width of its column."""
    return title if style.total is None else textwrap.wrap(title, max(20, round(width / (1.06 * style.letter))))


_ROOM = 0.03
"""Above the highest point, as a share of the axis, so that a peak is not drawn beyond the frame."""

_LOW = 0.06
"""Below this share of the height words stand above their point, so that they do not lie on the axis."""

_WORDS = 80
"""Characters of the words below a bar that fit beside each other."""

_LINES = "split(datum.label, '\\n')"
"""Labels of several lines."""

Chart = alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


def chart(picture: AnyPicture, style: Style = SCREEN) -> Chart:
    """The drawing alone, without title and caption."""
    if isinstance(picture, Panels):
        return panels(picture, style)
    if isinstance(picture, Intervals):
        return _intervals(picture, style)
    if isinstance(picture, GroupedIntervals):
        return _grouped(picture, style)
    return _lines(picture, style) if isinstance(picture, Picture) else _bars(picture, style)


def wrapped(text: str, style: Style) -> str:
    """Words in lines that fit beside a row or in a legend."""
    if style.characters is None:
        return text
    return "\n".join(textwrap.wrap(text, style.characters, break_long_words=False)) or text


# -- lines ---------------------------------------------------------------------------------------------------


def _lines(picture: Picture, style: Style) -> alt.LayerChart | alt.FacetChart:
    rows = [
        {"x": x, "y": y, "line": wrapped(line.name, style), "part": part}
        for part, line in enumerate(picture.lines)
        for x, y in zip(line.x, line.y, strict=True)
    ]
    names = list(dict.fromkeys(wrapped(line.name, style) for line in picture.lines))
    legend = _legend(
        style,
        symbolType="M-2.4,0L2.4,0",  # longer than high, so that dashes show
        symbolSize=300 if style.total is None else 150,
        symbolStrokeWidth=style.stroke,
        symbolOffset=14 if style.total is None else 10,
        labelOffset=18 if style.total is None else 12,
    )
    colours = [style.colours[at % len(style.colours)] for at in range(len(names))]
    shown = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=style.stroke, strokeJoin="round")
        .encode(
            x=alt.X(
                "x:Q",
                title=_titled(picture.x_title, style.width, style),
                scale=_scale(picture, "x"),
                axis=_axis(picture, "x", style),
            ),
            y=alt.Y(
                "y:Q",
                title=_titled(picture.y_title, _height(picture, style), style),
                scale=_scale(picture, "y"),
                axis=_axis(picture, "y", style),
            ),
            color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=_dashes(picture.lines, style)), legend=legend
            ),
            detail="part:N",
            tooltip=[
                alt.Tooltip("line:N", title="line"),
                alt.Tooltip("x:Q", title=picture.x_title, format=".4~g"),
                alt.Tooltip("y:Q", title=picture.y_title, format=".4~g"),
            ],
        )
    )
    layers: list[alt.Chart] = [shown]
    if picture.diagonal:
        ends = alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
        diagonal = alt.Chart(ends).mark_line(color="#999999", strokeWidth=1.2 * style.step, strokeDash=[1, 2])
        layers.insert(0, diagonal.encode(x="x:Q", y="y:Q"))
    if picture.points:
        layers += _points(picture, style)
    return alt.layer(*layers).properties(width=style.width, height=_height(picture, style))


def _points(picture: Picture, style: Style) -> list[alt.Chart]:
    """Marked points with their words, left of those in the right half and right of the others.

    Words that would lie on those of another point are left out.
    """
    high = _height(picture, style)
    rows: list[dict[str, Any]] = []
    taken: list[tuple[float, float, float]] = []
    for point in picture.points:
        across, up = style.width * _place(picture, "x", point.x), high * _place(picture, "y", point.y)
        left = across > style.width / 2
        long = len(point.words) * style.letter + 9
        start = across - long if left else across
        above = up < _LOW * high
        middle = up + (0.6 if above else -0.9) * style.text  # of the words
        free = all(abs(middle - other) > 1.2 * style.text or start > to or start + long < of for other, of, to in taken)
        if free:
            taken.append((middle, start, start + long))
        side = ("left" if left else "right") + (" above" if above else "")
        rows.append({"x": point.x, "y": point.y, "about": point.words, "words": point.words * free, "side": side})
    marked = alt.Chart(alt.InlineData(values=rows)).encode(x="x:Q", y="y:Q", tooltip=["about:N"])
    layers = [marked.mark_point(filled=True, opacity=1, color="black", size=34 * style.step)]
    for look in ({"stroke": "white", "strokeWidth": 3}, {"color": "black"}):  # white around it, where lines cross
        for side in dict.fromkeys(row["side"] for row in rows):
            left, above = side.startswith("left"), side.endswith("above")
            said = marked.transform_filter(alt.datum.side == side).mark_text(
                align="right" if left else "left", baseline="bottom" if above else "top", dx=-7 if left else 7,
                dy=-1 if above else 3, fontSize=style.text, **look,
            )  # fmt: skip
            layers.append(said.encode(text="words:N"))
    return layers


def _place(picture: Picture, axis: str, number: float) -> float:
    """Where a number lies on an axis, from 0 to 1."""
    low, high = _ends(picture, axis)
    if picture.x_log if axis == "x" else picture.y_log:
        low, high, number = math.log(low), math.log(high), math.log(number)
    return (number - low) / (high - low) if high > low else 0.0


def _height(picture: Picture, style: Style) -> int:
    return round((0.81 if picture.diagonal else 0.65) * style.flat * style.width)


def _titled(title: str, length: float, style: Style) -> str | list[str]:
    """The title of an axis: on a screen as it is, in a paper in lines that are not longer than the axis."""
    if style.characters is None:
        return title
    return textwrap.wrap(title, max(20, round(1.05 * length / (0.5 * style.heading))))


def _dashes(lines: Sequence[Line], style: Style) -> list[list[float]]:
    """A pattern for each name: no two alike, short dashes where the line is to be dashed."""
    long, short = iter(LONG_DASHES * len(lines)), iter(SHORT_DASHES * len(lines))
    first = {line.name: line for line in reversed(lines)}
    chosen = [next(short if first[name].dashed else long) for name in dict.fromkeys(line.name for line in lines)]
    return [[length if style.dashes == 1 else round(length * style.dashes, 2) for length in one] for one in chosen]


def _ends(picture: Picture, axis: str) -> tuple[float, float]:
    """The smallest and largest number on an axis; on a logarithmic one powers of ten."""
    numbers = [number for line in picture.lines for number in (line.x if axis == "x" else line.y)]
    numbers += [point.x if axis == "x" else point.y for point in picture.points]
    if picture.x_log if axis == "x" else picture.y_log:
        return 10.0 ** math.floor(math.log10(min(numbers)) + 1e-9), 10.0 ** math.ceil(math.log10(max(numbers)) - 1e-9)
    return (0.0, 1.0) if picture.diagonal else (min(0.0, *numbers), max(numbers))


def _scale(picture: Picture, axis: str) -> alt.Scale:
    log = picture.x_log if axis == "x" else picture.y_log
    low, high = _ends(picture, axis)
    if axis == "y" and not log and not picture.diagonal:
        high += _ROOM * (high - low)
    return alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False)


def _axis(picture: Picture, axis: str, style: Style) -> alt.Axis:
    if not (picture.x_log if axis == "x" else picture.y_log):
        return alt.Axis(tickCount=(10 if picture.diagonal else 8) if style.width > 250 else 5)
    low, high = (round(math.log10(end)) for end in _ends(picture, axis))
    step = max(1, math.ceil((high - low) / (10 if style.width > 250 else 6)))
    label = "datum.value < 0.001 ? format(datum.value, '.0e') : format(datum.value, ',~g')"
    powers = range(high, low - 1, -step)  # from the high end, which is then labelled
    return alt.Axis(values=[10.0**power for power in reversed(powers)], labelExpr=label)


def _legend(style: Style, **more: Any) -> alt.Legend:
    return alt.Legend(
        title=None,
        orient="bottom",
        direction="vertical",
        columns=1,
        labelLimit=0,
        labelFontSize=style.heading,
        labelExpr=_LINES if style.characters is not None else alt.Undefined,
        offset=round(10 * style.step),
        **more,
    )


# -- bars ----------------------------------------------------------------------------------------------------


def _bars(picture: Bars, style: Style) -> alt.LayerChart | alt.FacetChart:
    """Bars with their values, to the nearest, and their words below, or beside where bars of several groups meet."""
    groups = list(dict.fromkeys(bar.group for bar in picture.bars))
    names = list(dict.fromkeys(wrapped(bar.name, _half(style)) for bar in picture.bars))
    together = len(groups) > 1
    rows: list[dict[str, Any]] = [
        {
            "bar": wrapped(bar.name, _half(style)),
            "value": bar.value,
            "group": bar.group,
            "about": bar.about or bar.words,
            "words": "\n".join(textwrap.wrap(bar.words, _WORDS, max_lines=2, placeholder=" …")),
            "label": f"{bar.value:.4g}" + (f" ({bar.words})" if together and bar.words else ""),
        }
        for bar in picture.bars
    ]
    below = 0 if together else max(row["words"].count("\n") + 1 if row["words"] else 0 for row in rows)
    up = -round(6.5 * below * style.step)  # half of what the words below a bar need
    axis = _names(style, names, style.heading, up)
    across, ticks = _across(picture, [row["label"] for row in rows], style)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("value:Q", title=picture.x_title, scale=across, axis=alt.Axis(values=ticks, grid=False)),
        y=alt.Y("bar:N", title=None, sort=names, axis=axis, scale=alt.Scale(paddingInner=0.2, paddingOuter=0.1)),
        tooltip=["bar:N", "group:N", alt.Tooltip("value:Q", format=".6~g"), "about:N"],
    )
    if together:
        base = base.encode(yOffset=alt.YOffset("group:N", sort=groups, scale=alt.Scale(paddingInner=0.1)))
    fills = [style.bar_colours[at % len(style.bar_colours)] for at in range(len(groups))]
    outline: dict[str, Any] = {"stroke": "black", "strokeWidth": 0.6} if style.outlined else {}
    bars = base.mark_bar(**outline) if together else base.mark_bar(yOffset=up, height=20 * style.step, **outline)
    legend = _legend(style, symbolType="square") if together else None
    layers = [bars.encode(color=alt.Color("group:N", scale=alt.Scale(domain=groups, range=fills), legend=legend))]
    if picture.mark is not None:
        mark = alt.Chart(alt.InlineData(values=[{"value": picture.mark, "words": picture.mark_words}]))
        layers.append(mark.mark_rule(color="black", strokeDash=[4, 3]).encode(x="value:Q"))
        label = mark.mark_text(align="left", baseline="bottom", dx=3, fontSize=style.text)
        layers.append(label.encode(x="value:Q", y=alt.value(-3), text="words:N"))
    for look in ({"stroke": "white", "strokeWidth": 3}, {"color": "black"}):  # white around it, where the mark crosses
        said = base.mark_text(align="left", dx=5, dy=up, fontSize=style.text, **look)
        layers.append(said.encode(text="label:N"))
    if below:
        for look in ({"stroke": "white", "strokeWidth": 3}, {"color": GREY}):
            said = base.mark_text(
                align="left", baseline="top", dy=up + 13 * style.step, fontSize=style.small, lineBreak="\n", **look
            )
            layers.append(said.encode(x=alt.value(0), text="words:N"))
    height = (24 if together else 32 + 13 * below) * style.step
    width = style.width - 100 if style.total is None else style.width
    return alt.layer(*layers).properties(width=width, height=alt.Step(height))


def _across(picture: Bars, labels: Sequence[str], style: Style) -> tuple[alt.Scale, list[float]]:
    """From 0 to so far beyond the bars that their labels fit beside them, and the ticks up to the longest bar."""
    values = [bar.value for bar in picture.bars]
    highest = max(*values, picture.mark or 0.0) or 1.0
    width = style.width - 100 if style.total is None else style.width
    rooms = [min(0.6, (len(label) * style.letter + 8) / width) for label in labels]
    end = max([highest, *(value / (1 - room) for value, room in zip(values, rooms, strict=True))])
    step = 10.0 ** math.floor(math.log10(highest / 2))
    step = next(one for one in (step, 2 * step, 5 * step, 10 * step) if highest / one <= 6)
    ticks = [round(number * step, 12) for number in range(math.floor(highest / step + 0.02) + 1)]
    return alt.Scale(domain=[0, end], nice=False), ticks


def _names(style: Style, names: Sequence[str], size: float, up: float = 0, grid: bool = False) -> alt.Axis:
    """An axis with the names of rows; names of several lines are moved up by half of their height."""
    most = max(name.count("\n") for name in names)
    lines = "length(split(datum.value, '\\n'))"
    moved: Any = up
    if most:
        cases = [{"test": f"{lines} == {n + 1}", "value": up - n * (size + 2) / 2} for n in range(1, most + 1)]
        moved = {"condition": cases, "value": up}
    return alt.Axis(
        labelLimit=0, labelFontSize=size, labelOffset=moved, ticks=False, domain=False, grid=grid,
        labelPadding=8 * style.step, labelExpr=_LINES if style.characters is not None else alt.Undefined,
    )  # fmt: skip


def _half(style: Style) -> Style:
    """Names beside rows have about half of the room that entries of a legend have."""
    from dataclasses import replace

    return style if style.characters is None else replace(style, characters=max(18, style.characters // 2))


# -- intervals -----------------------------------------------------------------------------------------------


def _intervals(picture: Intervals, style: Style) -> alt.LayerChart | alt.FacetChart:
    """A rule from end to end with the estimate on it, and a cross for the other value."""
    short = _half(style)
    names = [wrapped(one.name, short) for one in picture.intervals]
    rows = [
        {"name": wrapped(one.name, short), "lower": one.lower, "upper": one.upper, "value": value, "what": what}
        for one in picture.intervals
        for what, value in ((picture.value_words, one.value), (picture.beside_words, one.beside))
    ]
    what = [picture.value_words, picture.beside_words]
    axis = _names(style, names, style.text, grid=True)
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.Y("name:N", title=None, sort=names, axis=axis))
    across = alt.Scale(zero=False, nice=True)
    first, second = (style.colours[at] for at in (0, 1))
    rules = base.mark_rule(strokeWidth=3 * style.step, color=first, opacity=0.5).encode(
        x=alt.X("lower:Q", title=picture.x_title, scale=across, axis=alt.Axis(tickCount=6 if style.width > 250 else 4)),
        x2="upper:Q",
    )
    legend = _legend(style)
    points = base.mark_point(size=60 * style.step**2, filled=False, strokeWidth=2 * style.step).encode(
        x=alt.X("value:Q", scale=across),
        color=alt.Color("what:N", scale=alt.Scale(domain=what, range=[first, second]), legend=legend),
        shape=alt.Shape("what:N", scale=alt.Scale(domain=what, range=["circle", "cross"]), legend=legend),
        tooltip=["name:N", "what:N", alt.Tooltip("value:Q", format=".6~g"), "lower:Q", "upper:Q"],
    )
    width = style.width - 100 if style.total is None else style.width
    return alt.layer(rules, points).properties(width=width, height=alt.Step(22 * style.step))


def _grouped(picture: GroupedIntervals, style: Style) -> alt.LayerChart | alt.FacetChart:
    """For each name a block of thin rules, one for each group, with the thick inner part and the estimate on it."""
    short = _half(style)
    names = list(dict.fromkeys(wrapped(one.name, short) for one in picture.intervals))
    groups = list(dict.fromkeys(one.group for one in picture.intervals))
    low, high = picture.x_from, picture.x_to

    def within(number: float) -> float:
        return min(max(number, low), high)

    rows = [
        {
            "name": wrapped(one.name, short),
            "group": one.group,
            "lower": within(one.lower),
            "upper": within(one.upper),
            "inner_lower": within(one.inner_lower),
            "inner_upper": within(one.inner_upper),
            "value": one.value if one.value is not None and low <= one.value <= high else None,
            "said": f"{'-' if one.value is None else f'{one.value:.6g}'} ({one.lower:.6g} to {one.upper:.6g})",
        }
        for one in picture.intervals
    ]
    axis = _names(style, names, style.heading)
    colours = [style.colours[at % len(style.colours)] for at in range(len(groups))]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2)),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=alt.Color(
            "group:N",
            scale=alt.Scale(domain=groups, range=colours),
            legend=_legend(style, symbolOpacity=1),
        ),
        tooltip=["name:N", "group:N", "said:N"],
    )
    across = alt.Scale(domain=[low, high], nice=False)
    x_axis = alt.Axis(tickCount=6 if style.width > 250 else 4)
    outer = base.mark_rule(strokeWidth=1.6 * style.step).encode(
        x=alt.X("lower:Q", title=picture.x_title, scale=across, axis=x_axis), x2="upper:Q"
    )
    inner = base.mark_rule(strokeWidth=6 * style.step, opacity=0.45).encode(
        x=alt.X("inner_lower:Q", scale=across), x2="inner_upper:Q"
    )
    shapes = alt.Scale(domain=groups, range=["circle", "square", "diamond", "triangle-up", "cross"][: len(groups)])
    points = base.mark_point(size=70 * style.step**2, filled=True, opacity=1).encode(
        x=alt.X("value:Q", scale=across), shape=alt.Shape("group:N", scale=shapes)
    )
    width = style.width - 60 if style.total is None else style.width
    return alt.layer(outer, inner, points).properties(width=width, height=alt.Step(17 * style.step))
