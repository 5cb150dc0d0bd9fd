"""Draw panels of dots: columns of small charts, each with an axis of its own, and a list of texts below.

All row labels are given the same room, so that panels of a column stand exactly below one another. In a paper there
are three columns, so that they fit on a page.
"""

from __future__ import annotations

import textwrap

import altair as alt

from stirred.reports.figure_style import GREY, Style
from stirred.semantics.pictures.panels import Panel, Panels

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
