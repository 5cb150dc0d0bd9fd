"""Draw panels of dots: columns of small charts, each with an axis of its own, and a list of texts below.

All row labels are given the same room, so that panels of a column stand exactly below one another. In one column of a
paper the columns of panels stand below one another too.
"""

from __future__ import annotations

import textwrap

import altair as alt

from stirred.reports.figure_style import GREY, Style
from stirred.semantics.panels import Panel, Panels

_LABELS, _WIDTH, _STEP = 175, 190, 19
_LINE = 15
"""Height of a line of the list."""

_NARROW = 300
"""A paper style of less total width has one column of panels."""


def panels(picture: Panels, style: Style) -> alt.HConcatChart:
    """The columns side by side; dots are circles in the first colour, marked ones diamonds in the second."""
    many = len(picture.columns)
    if style.total is not None and style.total < _NARROW:
        many, columns = 1, [[panel for column in picture.columns for panel in column]]
    else:
        columns = [list(column) for column in picture.columns]
    labels, width = _LABELS, _WIDTH
    if style.total is not None:
        labels = round(21 * style.letter)
        width = max(40, round(style.width / many) - labels)
    shown = []
    for number, column in enumerate(columns):
        charts: list[alt.LayerChart | alt.FacetChart | alt.Chart] = [
            _panel(panel, style, labels, width) for panel in column
        ]
        if number == 0 and picture.listed:
            charts.append(_list(picture, style, labels, width))
        shown.append(alt.vconcat(*charts, spacing=round(16 * style.step)))
    return alt.hconcat(*shown, spacing=round(36 * style.step))


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
    across = alt.Scale(domain=[0, highest * 1.35], nice=False)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=labels),
        x=alt.X("value:Q", title=None, scale=across, axis=alt.Axis(tickCount=4, grid=False, labelFontSize=style.small)),
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
