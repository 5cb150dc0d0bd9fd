"""Draw and save pictures: one style for all, legible in print and without colour, no network needed.

Lines differ by dashes as well as by colour, colours are those of Okabe and Ito (2008), and each file contains title and
caption, so that it can be understood alone. Pictures for papers have no title: they are PDF and SVG, as wide as one
column or two, text 8 to 9 points, fonts embedded. The title, the guarantee and everything else that is said about a
picture stand in ``NAME-caption.txt``, to be pasted below it; it is written with every picture, so that no number goes
to print without its guarantee.

Keep in mind: nothing is computed here. What is drawn are the numbers of the picture, and a file is
never replaced unless told to.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path

import altair as alt
import vl_convert

from stirred import errors
from stirred.reports.charts import chart
from stirred.reports.figure_style import (
    FONT,
    GREY,
    INCH,
    LIGHT,
    ONE_COLUMN,
    SCREEN,
    TWO_COLUMNS,
    Style,
    caption_of,
)
from stirred.semantics.pictures.shapes import AnyPicture, Panels

FORMATS = ("png", "svg", "html", "json")
WIDTH = SCREEN.width

# Characters that fit beside each other at the sizes of the fonts, axis included.
_TITLE, _SUBTITLE, _CAPTION = 62, 88, 112


def draw(picture: AnyPicture) -> alt.VConcatChart:
    """The picture as a chart, for a notebook or for :func:`save`.

    >>> from stirred.semantics.pictures.curves import belief_picture
    >>> draw(belief_picture([1])).to_dict()["config"]["background"]
    'white'
    """
    top = alt.TitleParams(
        text=_even(picture.title, _TITLE),
        subtitle=[*_even(picture.subtitle, _SUBTITLE), *_even(picture.guarantee, _SUBTITLE)],
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
    whole = alt.vconcat(chart(picture).properties(title=top)).properties(
        description=" ".join(part for part in (picture.title, picture.subtitle, picture.guarantee, *words) if part)
    )
    if words:
        whole = whole.properties(title=below)
    return configured(whole)


def bare(picture: AnyPicture, width: int = WIDTH) -> str:
    """The picture as SVG without title and caption, for pages that print these themselves."""
    drawn = chart(picture)
    if isinstance(drawn, alt.LayerChart):
        drawn = drawn.properties(width=width)
    return as_svg(configured(alt.vconcat(drawn), padding=4))


def as_svg(whole: alt.VConcatChart) -> str:
    """A chart as the text of an SVG file."""
    return str(vl_convert.vegalite_to_svg(whole.to_dict(), vl_version=_vega_lite()))


def _vega_lite() -> str:
    """The version of Vega-Lite that the charts are written in."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def configured(whole: alt.VConcatChart, style: Style = SCREEN, padding: int | None = None) -> alt.VConcatChart:
    """A chart with the fonts, the axes and the background of a style."""
    fixed: alt.VConcatChart = (
        whole.configure(
            background="white" if style.total is None else alt.Undefined,
            font=FONT,
            padding=style.padding if padding is None else padding,
        )
        .configure_axis(
            labelFontSize=style.text,
            titleFontSize=style.heading,
            titleFontWeight="normal",
            titlePadding=round(10 * style.step),
            gridColor=LIGHT,
            domainColor=GREY,
            tickColor=GREY,
            labelFlush=False,
        )
        .configure_view(stroke=None)
    )
    return fixed


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
    _require_free(paths, target, overwrite)
    write_together({path: _file(picture, ending) for path, ending in zip(paths, endings, strict=True)}, target)
    return tuple(paths)


def _require_free(paths: Iterable[Path], target: Path, overwrite: bool) -> None:
    if not target.is_dir() and not target.parent.is_dir():
        raise errors.output_parent_missing(target)
    for path in paths:
        if path.exists() and not overwrite:
            raise errors.output_exists(path)


def write_together(files: Mapping[Path, bytes], target: Path) -> None:
    """Write all files or none: they are written beside their places, then renamed."""
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
    version = _vega_lite()
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


# -- words ---------------------------------------------------------------------------------------------------


def _even(text: str, most: int) -> list[str]:
    """As few lines as fit, of about one length."""
    tries = [textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) for width in range(1, most + 1)]
    return next(rows for rows in tries if len(rows) <= len(tries[-1]))


def _caption(picture: AnyPicture) -> list[str]:
    return [row for text in caption_of(picture) for row in textwrap.wrap(text, _CAPTION)]


WIDTHS = {style.name: style for style in (ONE_COLUMN, TWO_COLUMNS)}
"""The widths by name."""

NOT_STATED = "The guarantee that these numbers are of is not stated."

_TRIES = 6
_SPARE = 3.0
"""Points that may be left at the right, a millimetre."""
_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)" viewBox="0 0 [0-9.]+ [0-9.]+"')


def save_for_paper(
    picture: AnyPicture, to: str | Path, widths: tuple[str, ...] = tuple(WIDTHS), *, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write ``NAME-WIDTH.pdf`` and ``.svg`` for each width, and ``NAME-caption.txt``, into the folder ``to``.

    ``widths`` are ``"one-column"`` (3.5 inches) and ``"two-columns"`` (7.16 inches); panels of dots are drawn in the
    second only. The folder is made if the one above it exists.
    """
    for width in widths:
        if width not in WIDTHS:
            raise errors.unknown_choice("width", width, list(WIDTHS))
    target = Path(to)
    files: dict[Path, bytes] = {}
    for width in (TWO_COLUMNS.name,) if isinstance(picture, Panels) else widths:
        drawing = for_paper(picture, WIDTHS[width])
        files[target / f"{picture.name}-{width}.pdf"] = vl_convert.svg_to_pdf(drawing)
        files[target / f"{picture.name}-{width}.svg"] = in_inches(drawing).encode()
    files[target / f"{picture.name}-caption.txt"] = caption(picture).encode()
    _require_free(files, target, overwrite)
    write_together(files, target)
    return tuple(files)


def for_paper(picture: AnyPicture, style: Style = ONE_COLUMN) -> str:
    """The picture as SVG of just the width of the style, in points, without title and caption."""
    assert style.total is not None
    narrowed = style
    for _ in range(_TRIES):
        drawing = as_svg(configured(alt.vconcat(chart(picture, narrowed)), narrowed))
        size = _SIZE.search(drawing)
        assert size is not None
        width, height = float(size[1]), float(size[2])
        spare = style.total - width
        if 0 <= spare < _SPARE:
            break
        narrowed = replace(narrowed, width=max(40, narrowed.width + math.floor(spare) - (spare < 0)))
    if width > style.total:  # labels that cannot be broken: the whole is made smaller
        shrunk = f'width="{style.total:g}" height="{height * style.total / width:g}" viewBox="0 0 {width:g} {height:g}"'
        return _SIZE.sub(shrunk, drawing, count=1)
    exact = f'width="{style.total:g}" height="{height:g}" viewBox="0 0 {style.total:g} {height:g}"'
    return _SIZE.sub(exact, drawing, count=1)


def in_inches(drawing: str) -> str:
    """An SVG whose points became inches, so that programs which take a unit for a pixel print it at its size."""
    head, mark, rest = drawing.partition(">")
    sized = re.sub(r'\b(width|height)="([0-9.]+)"', lambda one: f'{one[1]}="{float(one[2]) / INCH:.4f}in"', head)
    return f"{sized}{mark}{rest}"


def caption(picture: AnyPicture) -> str:
    """What stands below the picture in a paper: title, what is drawn, the guarantee, and all notes.

    >>> from stirred.semantics.pictures.curves import belief_picture
    >>> print(caption(belief_picture([1])).splitlines()[0])
    How far can the release move a belief about one person? Highest and lowest probability after the release, for each
    """
    said = [picture.title, picture.subtitle, picture.guarantee or NOT_STATED, *caption_of(picture)]
    whole = " ".join(one if one.endswith((".", "?", "!")) else f"{one}." for one in said if one)
    return textwrap.fill(whole, 120, break_long_words=False) + "\n"
