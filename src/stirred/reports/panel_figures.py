"""Draw panels of dots: columns of small charts, each with an axis of its own, and a list of texts below.

All row labels are given the same room, so that panels of a column stand exactly below one another.
"""

from __future__ import annotations

import altair as alt

from stirred.semantics.panels import Panel, Panels

_LABELS, _WIDTH, _STEP = 175, 190, 19
_LINE = 15
"""Height of a line of the list."""


def panels(picture: Panels, *, colour: str, marked: str, grey: str) -> alt.HConcatChart:
    """The columns side by side; dots are circles in ``colour``, marked ones diamonds in ``marked``."""
    columns = []
    for number, column in enumerate(picture.columns):
        charts: list[alt.LayerChart | alt.FacetChart | alt.Chart] = [_panel(panel, colour, marked) for panel in column]
        if number == 0 and picture.listed:
            charts.append(_list(picture, grey))
        columns.append(alt.vconcat(*charts, spacing=16))
    return alt.hconcat(*columns, spacing=36)


def _panel(panel: Panel, colour: str, marked: str) -> alt.LayerChart | alt.FacetChart:
    rows = [
        {"name": dot.name, "value": dot.value, "label": f"{dot.value:.6g}", "about": dot.words, "marked": dot.marked}
        for dot in panel.dots
    ]
    highest = max(dot.value for dot in panel.dots) or 1.0
    names = [dot.name for dot in panel.dots]
    labels = alt.Axis(
        labelLimit=_LABELS,
        minExtent=_LABELS,
        maxExtent=_LABELS,
        labelFontSize=12,
        ticks=False,
        domain=False,
        labelPadding=6,
        grid=True,
    )
    across = alt.Scale(domain=[0, highest * 1.35], nice=False)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=labels),
        x=alt.X("value:Q", title=None, scale=across, axis=alt.Axis(tickCount=4, grid=False, labelFontSize=11)),
        tooltip=["name:N", "about:N"],
    )
    shown = alt.condition("datum.marked", alt.value(marked), alt.value(colour))
    points = base.mark_point(size=60, filled=True, opacity=1).encode(
        color=shown, shape=alt.condition("datum.marked", alt.value("diamond"), alt.value("circle"))
    )
    texts = base.mark_text(align="left", dx=8, fontSize=11, color="black").encode(text="label:N")
    title = alt.TitleParams(text=panel.title, anchor="start", frame="bounds", fontSize=12, fontWeight="bold", offset=4)
    return alt.layer(points, texts).properties(width=_WIDTH, height=alt.Step(_STEP), title=title)


def _list(picture: Panels, grey: str) -> alt.Chart:
    rows = [{"at": number, "text": text} for number, text in enumerate(picture.listed)]
    title = alt.TitleParams(
        text=picture.listed_title, anchor="start", frame="bounds", fontSize=12, fontWeight="bold", offset=6
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(align="left", baseline="top", fontSize=11, color=grey, limit=0)
        .encode(
            x=alt.value(-_LABELS),
            y=alt.Y("at:Q", axis=None, scale=alt.Scale(domain=[0, len(rows)], reverse=True, nice=False)),
            text="text:N",
        )
        .properties(width=_WIDTH, height=_LINE * len(rows), title=title)
    )
    return chart
