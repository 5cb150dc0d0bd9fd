"""Figures 5.1 to 5.4, as published or at any epsilon, as pictures that can be drawn.

Keep in mind: nothing is computed here. The curves are those of :mod:`stirred.limits.figures`.
"""

from __future__ import annotations

from stirred.limits.figures import LimitFigure, chapter_figure, figures_at
from stirred.loss.argument_checks import Number
from stirred.semantics.pictures import Line, Picture


def as_picture(figure: LimitFigure) -> Picture:
    """The figure as the picture that :func:`stirred.reports.figures.draw` takes."""
    lines = tuple(Line(one.name, one.x, one.y, one.dashed, one.words) for one in figure.curves)
    return Picture(
        figure.name,
        figure.title,
        figure.subtitle,
        figure.x_title,
        figure.y_title,
        lines,
        y_log=figure.y_log,
        caption=figure.caption,
    )


def chapter_pictures(number: str) -> tuple[Picture, ...]:
    """Figure 5.1, 5.2 (two panels), 5.3 or 5.4 as published.

    >>> [picture.name for picture in chapter_pictures("5.2")]
    ['figure-5-2-a', 'figure-5-2-b']
    """
    return tuple(as_picture(panel) for panel in chapter_figure(number))


def pictures_at(epsilon: Number, records: int) -> tuple[Picture, ...]:
    """The same kinds of figure at an epsilon and a number of records of one's own."""
    return tuple(as_picture(figure) for figure in figures_at(epsilon, records))
