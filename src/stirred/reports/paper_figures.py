"""Pictures for papers: no title, PDF and SVG, as wide as one column or two, and the caption in a text file beside them.

Text is 8 to 9 points, fonts are embedded in the PDF, lines differ by their dashes and bars by how dark they are. The
title, the guarantee and everything else that is said about a picture stand in ``NAME-caption.txt``, to be pasted below
it.

Keep in mind: the caption is written with every picture, so that no number goes to print without its guarantee.
"""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import replace
from pathlib import Path

import altair as alt
import vl_convert

from stirred import errors
from stirred.reports.captions import caption_of
from stirred.reports.charts import chart
from stirred.reports.figure_style import INCH, ONE_COLUMN, TWO_COLUMNS, Style
from stirred.reports.figures import as_svg, configured, write_together
from stirred.semantics.pictures.lines_and_bars import AnyPicture
from stirred.semantics.pictures.panels import Panels

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
    if not target.is_dir() and not target.parent.is_dir():
        raise errors.output_parent_missing(target)
    files: dict[Path, bytes] = {}
    for width in (TWO_COLUMNS.name,) if isinstance(picture, Panels) else widths:
        drawing = for_paper(picture, WIDTHS[width])
        files[target / f"{picture.name}-{width}.pdf"] = vl_convert.svg_to_pdf(drawing)
        files[target / f"{picture.name}-{width}.svg"] = in_inches(drawing).encode()
    files[target / f"{picture.name}-caption.txt"] = caption(picture).encode()
    for path in files:
        if path.exists() and not overwrite:
            raise errors.output_exists(path)
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

    >>> from stirred.semantics.pictures.lines_and_bars import belief_picture
    >>> print(caption(belief_picture([1])).splitlines()[0])
    How far can the release move a belief about one person? Highest and lowest probability after the release, for each
    """
    said = [picture.title, picture.subtitle, picture.guarantee or NOT_STATED, *caption_of(picture)]
    whole = " ".join(one if one.endswith((".", "?", "!")) else f"{one}." for one in said if one)
    return textwrap.fill(whole, 120, break_long_words=False) + "\n"
