"""Draw and save pictures: one style for all, legible in print and without colour, no network needed.

Lines differ by dashes as well as by colour, colours are those of Okabe and Ito (2008), and each file contains title and
caption, so that it can be understood alone.

Keep in mind: nothing is computed here. What is drawn are the numbers of the picture, and a file is
never replaced unless told to.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from stirred import errors
from stirred.reports.captions import caption_of
from stirred.reports.panel_figures import panels
from stirred.semantics.panels import Panels
from stirred.semantics.pictures import AnyPicture, Bars, GroupedIntervals, Intervals, Line, Picture

FORMATS = ("png", "svg", "html", "json")

COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, without yellow, which is too light for a line."""

LONG_DASHES = ([1, 0], [12, 4], [9, 3, 2, 3], [16, 3, 2, 3, 2, 3], [26, 5], [9, 2])
SHORT_DASHES = ([5, 3], [2, 2], [5, 2, 1, 2], [1, 3], [3, 5], [4, 1])

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH = 520
GREY, LIGHT = "#555555", "#E4E4E4"

_ROOM = 0.03
"""Above the highest point, as a share of the axis, so that a peak is not drawn beyond the frame."""

# Characters that fit beside each other at the sizes of the fonts, axis included.
_TITLE, _SUBTITLE, _CAPTION, _WORDS = 62, 88, 112, 80


def draw(picture: AnyPicture) -> alt.VConcatChart:
    """The picture as a chart, for a notebook or for :func:`save`.

    >>> from stirred.semantics.pictures import belief_picture
    >>> draw(belief_picture([1])).to_dict()["config"]["background"]
    'white'
    """
    chart = _chart(picture)
    top = alt.TitleParams(
        text=_even(picture.title, _TITLE),
        subtitle=_even(picture.subtitle, _SUBTITLE),
        anchor="start",
        frame="bounds",
        fontSize=17,
        subtitleFontSize=13,
        subtitleColor=GREY,
        subtitlePadding=4,
        offset=12,
    )
    words = _caption(picture)
    below = alt.TitleParams(
        text=words, orient="bottom", anchor="start", fontSize=11, fontWeight="normal", color=GREY, offset=14, limit=0
    )
    whole = alt.vconcat(chart.properties(title=top)).properties(
        description=" ".join(part for part in (picture.title, picture.subtitle, *words) if part)
    )
    if words:
        whole = whole.properties(title=below)
    return _configured(whole, padding=14)


def bare(picture: AnyPicture, width: int = WIDTH) -> str:
    """The picture as SVG without title and caption, for pages that print these themselves."""
    chart = _chart(picture)
    if isinstance(chart, alt.LayerChart):
        chart = chart.properties(width=width)
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    fields = _configured(alt.vconcat(chart), padding=4).to_dict()
    return str(vl_convert.vegalite_to_svg(fields, vl_version=version))


def _configured(whole: alt.VConcatChart, padding: int) -> alt.VConcatChart:
    chart_as_configured: alt.VConcatChart = (
        whole.configure(background="white", font=FONT, padding=padding)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="normal",
            titlePadding=10,
            gridColor=LIGHT,
            domainColor=GREY,
            tickColor=GREY,
            labelFlush=False,
        )
        .configure_view(stroke=None)
    )
    return chart_as_configured


def save(
    picture: AnyPicture,
    to: str | Path,
    formats: Sequence[str] = ("png", "svg"),
    *,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write files named after the picture into the folder ``to``, or the one file ``to`` where its ending is a format.

    *png* has twice the resolution of a screen; *html* is a page that needs no network; *json* holds the numbers and the
    words. The folder is made if the one above it exists.
    """
    target = Path(to)
    one = target.suffix[1:].isalpha() and not target.is_dir()
    endings = [target.suffix[1:]] if one else list(dict.fromkeys([formats] if isinstance(formats, str) else formats))
    for ending in endings:
        if ending not in FORMATS:
            raise errors.unknown_choice("format", ending, FORMATS)
    paths = [target] if one else [target / f"{picture.name}.{ending}" for ending in endings]
    if not target.is_dir() and not target.parent.is_dir():
        raise errors.output_parent_missing(target)
    for path in paths:
        if path.exists() and not overwrite:
            raise errors.output_exists(path)
    _write({path: _file(picture, ending) for path, ending in zip(paths, endings, strict=True)}, target)
    return tuple(paths)


def _write(files: Mapping[Path, bytes], target: Path) -> None:
    """All files or none: they are written beside their places, then renamed."""
    partial = {path: path.with_name(f".{path.name}.unfinished") for path in files}
    try:
        for path, content in files.items():
            path.parent.mkdir(exist_ok=True)
            partial[path].write_bytes(content)
        for path in files:
            partial[path].replace(path)
    except OSError as problem:
        raise errors.cannot_write(target, problem.strerror or type(problem).__name__) from None
    finally:
        for path in partial.values():
            path.unlink(missing_ok=True)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><div id="picture"></div>
<script type="text/javascript">{libraries}</script>
<script type="text/javascript">vegaEmbed("#picture", {data}, {{"actions": false}})</script>
</body></html>
"""


def _file(picture: AnyPicture, ending: str) -> bytes:
    if ending == "json":
        return (json.dumps(picture.to_fields(), ensure_ascii=False, indent=1) + "\n").encode()
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    fields = draw(picture).to_dict()
    if ending == "html":
        data = json.dumps(fields).replace("<", "\\u003c")  # no word of the picture can end the script
        return _PAGE.format(title=escape(picture.title), libraries=_libraries(version), data=data).encode()
    if ending == "svg":
        return vl_convert.vegalite_to_svg(fields, vl_version=version).encode()
    return vl_convert.vegalite_to_png(fields, vl_version=version, scale=2)


@cache
def _libraries(version: str) -> str:
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)


# -- lines ---------------------------------------------------------------------------------------------------


def _lines(picture: Picture) -> alt.LayerChart | alt.FacetChart:
    rows = [
        {"x": x, "y": y, "line": line.name, "part": part}
        for part, line in enumerate(picture.lines)
        for x, y in zip(line.x, line.y, strict=True)
    ]
    names = list(dict.fromkeys(line.name for line in picture.lines))
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="vertical",
        columns=1,
        labelLimit=0,
        labelFontSize=13,
        symbolType="M-2.4,0L2.4,0",  # longer than high, so that dashes show
        symbolSize=300,
        symbolStrokeWidth=2.2,
        symbolOffset=14,
        labelOffset=18,
        offset=10,
    )
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    shown = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2.2, strokeJoin="round")
        .encode(
            x=alt.X("x:Q", title=picture.x_title, scale=_scale(picture, "x"), axis=_axis(picture, "x")),
            y=alt.Y("y:Q", title=picture.y_title, scale=_scale(picture, "y"), axis=_axis(picture, "y")),
            color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=_dashes(picture.lines)), legend=legend
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
        diagonal = alt.Chart(ends).mark_line(color="#999999", strokeWidth=1.2, strokeDash=[1, 2])
        layers.insert(0, diagonal.encode(x="x:Q", y="y:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=WIDTH - 100 if picture.diagonal else 340)


def _dashes(lines: Sequence[Line]) -> list[list[int]]:
    """A pattern for each name: no two alike, short dashes where the line is to be dashed."""
    long, short = iter(LONG_DASHES * len(lines)), iter(SHORT_DASHES * len(lines))
    first = {line.name: line for line in reversed(lines)}
    return [next(short if first[name].dashed else long) for name in dict.fromkeys(line.name for line in lines)]


def _ends(picture: Picture, axis: str) -> tuple[float, float]:
    """The smallest and largest number on an axis; on a logarithmic one powers of ten."""
    numbers = [number for line in picture.lines for number in (line.x if axis == "x" else line.y)]
    if picture.x_log if axis == "x" else picture.y_log:
        return 10.0 ** math.floor(math.log10(min(numbers)) + 1e-9), 10.0 ** math.ceil(math.log10(max(numbers)) - 1e-9)
    return (0.0, 1.0) if picture.diagonal else (min(0.0, *numbers), max(numbers))


def _scale(picture: Picture, axis: str) -> alt.Scale:
    log = picture.x_log if axis == "x" else picture.y_log
    low, high = _ends(picture, axis)
    if axis == "y" and not log and not picture.diagonal:
        high += _ROOM * (high - low)
    return alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False)


def _axis(picture: Picture, axis: str) -> alt.Axis:
    if not (picture.x_log if axis == "x" else picture.y_log):
        return alt.Axis(tickCount=10 if picture.diagonal else 8)
    low, high = (round(math.log10(end)) for end in _ends(picture, axis))
    step = max(1, math.ceil((high - low) / 10))
    label = "datum.value < 0.001 ? format(datum.value, '.0e') : format(datum.value, ',~g')"
    return alt.Axis(values=[10.0**power for power in range(low, high + 1, step)], labelExpr=label)


# -- bars ----------------------------------------------------------------------------------------------------


def _bars(picture: Bars) -> alt.LayerChart | alt.FacetChart:
    """Bars with their values, to the nearest, and their words below, or beside where bars of several groups meet."""
    groups = list(dict.fromkeys(bar.group for bar in picture.bars))
    names = list(dict.fromkeys(bar.name for bar in picture.bars))
    together = len(groups) > 1
    rows: list[dict[str, Any]] = [
        {
            "bar": bar.name,
            "value": bar.value,
            "group": bar.group,
            "about": bar.words,
            "words": "\n".join(textwrap.wrap(bar.words, _WORDS, max_lines=2, placeholder=" …")),
            "label": f"{bar.value:.4g}" + (f"  {bar.words}" if together and bar.words else ""),
        }
        for bar in picture.bars
    ]
    below = 0 if together else max(row["words"].count("\n") + 1 if row["words"] else 0 for row in rows)
    up = -round(6.5 * below)  # half of what the words below a bar need
    highest = max(*(bar.value for bar in picture.bars), picture.mark or 0.0)
    axis = alt.Axis(labelLimit=0, labelFontSize=13, labelOffset=up, ticks=False, domain=False, labelPadding=8)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("value:Q", title=picture.x_title, scale=_across(highest), axis=alt.Axis(tickCount=6, grid=False)),
        y=alt.Y("bar:N", title=None, sort=names, axis=axis, scale=alt.Scale(paddingInner=0.2, paddingOuter=0.1)),
        tooltip=["bar:N", "group:N", alt.Tooltip("value:Q", format=".6~g"), "about:N"],
    )
    if together:
        base = base.encode(yOffset=alt.YOffset("group:N", sort=groups, scale=alt.Scale(paddingInner=0.1)))
    legend = alt.Legend(title=None, orient="bottom", labelLimit=0, labelFontSize=13, symbolType="square", offset=10)
    colours = alt.Scale(domain=groups, range=[COLOURS[at % len(COLOURS)] for at in range(0, 5 * len(groups), 5)])
    bars = base.mark_bar() if together else base.mark_bar(yOffset=up, height=20)
    coloured = alt.Color("group:N", scale=colours, legend=legend if together else None)
    layers = [bars.encode(color=coloured)]
    if picture.mark is not None:
        mark = alt.Chart(alt.InlineData(values=[{"value": picture.mark, "words": picture.mark_words}]))
        layers.append(mark.mark_rule(color="black", strokeDash=[4, 3]).encode(x="value:Q"))
        label = mark.mark_text(align="left", baseline="bottom", dx=3, fontSize=12)
        layers.append(label.encode(x="value:Q", y=alt.value(-3), text="words:N"))
    layers.append(base.mark_text(align="left", dx=5, dy=up, fontSize=12, color="black").encode(text="label:N"))
    if below:
        for look in ({"stroke": "white", "strokeWidth": 3}, {"color": GREY}):  # white around it, where lines cross
            said = base.mark_text(align="left", baseline="top", dy=up + 13, fontSize=11, lineBreak="\n", **look)
            layers.append(said.encode(x=alt.value(0), text="words:N"))
    return alt.layer(*layers).properties(width=WIDTH - 100, height=alt.Step(24 if together else 32 + 13 * below))


def _chart(picture: AnyPicture) -> alt.LayerChart | alt.FacetChart | alt.HConcatChart:
    if isinstance(picture, Panels):
        return panels(picture, colour=COLOURS[0], marked=COLOURS[1], grey=GREY)
    if isinstance(picture, Intervals):
        return _intervals(picture)
    if isinstance(picture, GroupedIntervals):
        return _grouped(picture)
    return _lines(picture) if isinstance(picture, Picture) else _bars(picture)


def _intervals(picture: Intervals) -> alt.LayerChart | alt.FacetChart:
    """A rule from end to end with the estimate on it, and a cross for the other value."""
    names = [one.name for one in picture.intervals]
    rows = [
        {"name": one.name, "lower": one.lower, "upper": one.upper, "value": value, "what": what}
        for one in picture.intervals
        for what, value in ((picture.value_words, one.value), (picture.beside_words, one.beside))
    ]
    what = [picture.value_words, picture.beside_words]
    axis = alt.Axis(labelLimit=0, labelFontSize=12, ticks=False, domain=False, labelPadding=8, grid=True)
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.Y("name:N", title=None, sort=names, axis=axis))
    across = alt.Scale(zero=False, nice=True)
    rules = base.mark_rule(strokeWidth=3, color=COLOURS[0], opacity=0.5).encode(
        x=alt.X("lower:Q", title=picture.x_title, scale=across, axis=alt.Axis(tickCount=6)), x2="upper:Q"
    )
    legend = alt.Legend(title=None, orient="bottom", labelLimit=0, labelFontSize=13, offset=10)
    points = base.mark_point(size=60, filled=False, strokeWidth=2).encode(
        x=alt.X("value:Q", scale=across),
        color=alt.Color("what:N", scale=alt.Scale(domain=what, range=[COLOURS[0], COLOURS[1]]), legend=legend),
        shape=alt.Shape("what:N", scale=alt.Scale(domain=what, range=["circle", "cross"]), legend=legend),
        tooltip=["name:N", "what:N", alt.Tooltip("value:Q", format=".6~g"), "lower:Q", "upper:Q"],
    )
    return alt.layer(rules, points).properties(width=WIDTH - 100, height=alt.Step(22))


def _grouped(picture: GroupedIntervals) -> alt.LayerChart | alt.FacetChart:
    """For each name a block of thin rules, one for each group, with the thick inner part and the estimate on it."""
    names = list(dict.fromkeys(one.name for one in picture.intervals))
    groups = list(dict.fromkeys(one.group for one in picture.intervals))
    low, high = picture.x_from, picture.x_to

    def within(number: float) -> float:
        return min(max(number, low), high)

    rows = [
        {
            "name": one.name,
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
    axis = alt.Axis(labelLimit=0, labelFontSize=13, ticks=False, domain=False, labelPadding=8, grid=False)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2)),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=alt.Color(
            "group:N",
            scale=alt.Scale(domain=groups, range=[COLOURS[at % len(COLOURS)] for at in range(len(groups))]),
            legend=alt.Legend(
                title=None,
                orient="bottom",
                direction="vertical",
                columns=1,
                labelLimit=0,
                labelFontSize=13,
                offset=10,
                symbolOpacity=1,
            ),
        ),
        tooltip=["name:N", "group:N", "said:N"],
    )
    across = alt.Scale(domain=[low, high], nice=False)
    x_axis = alt.Axis(tickCount=6)
    outer = base.mark_rule(strokeWidth=1.6).encode(
        x=alt.X("lower:Q", title=picture.x_title, scale=across, axis=x_axis), x2="upper:Q"
    )
    inner = base.mark_rule(strokeWidth=6, opacity=0.45).encode(
        x=alt.X("inner_lower:Q", scale=across), x2="inner_upper:Q"
    )
    shapes = alt.Scale(domain=groups, range=["circle", "square", "diamond", "triangle-up", "cross"][: len(groups)])
    points = base.mark_point(size=70, filled=True, opacity=1).encode(
        x=alt.X("value:Q", scale=across), shape=alt.Shape("group:N", scale=shapes)
    )
    return alt.layer(outer, inner, points).properties(width=WIDTH - 60, height=alt.Step(17))


def _across(highest: float) -> alt.Scale:
    """From 0 to a little beyond the longest bar, for its label."""
    return alt.Scale(domain=[0, highest * 1.12 or 1.0], nice=False)


# -- words ---------------------------------------------------------------------------------------------------


def _even(text: str, most: int) -> list[str]:
    """As few lines as fit, of about one length."""
    tries = [textwrap.wrap(text, width, break_long_words=False) for width in range(1, most + 1)]
    return next(rows for rows in tries if len(rows) <= len(tries[-1]))


def _caption(picture: AnyPicture) -> list[str]:
    return [row for text in caption_of(picture) for row in textwrap.wrap(text, _CAPTION)]
