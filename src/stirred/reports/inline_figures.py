"""Pictures of a report as SVG inside the page, with a title and a description that can be read aloud.

Keep in mind: the drawing is one image to who cannot see it (``role="img"``), so all parts of it lose roles and labels
of their own; ids are made unique, and nothing in it refers to another file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from stirred.reports.captions import caption_of
from stirred.reports.elements import Markup, element, paragraphs, shown
from stirred.semantics.pictures.lines_and_bars import AnyPicture

WIDTH = 400
"""Of the drawing without its axes: narrow, so that its letters can be read on a phone."""

_drawing_process = 0
"""The process that drew first. What draws has threads of its own and would wait for ever in a fork of that process, so
pages that are made there have their pictures in words."""
_TAG = re.compile(r"<[^<>]*>")
_LABELS = re.compile(r'\s(?:role|aria-[a-z]+)="[^"]*"')
_ID = re.compile(r'(\sid="|url\(#|href="#)')


@dataclass
class Figures:
    """The figures of one page, numbered in their order; without ``drawing`` they have no drawing, only words."""

    drawing: bool = True
    drawn: int = 0

    def figure(self, picture: AnyPicture, about: str) -> Markup:
        """A figure with its caption; ``about`` names the guarantee, where the picture does not itself."""
        about = picture.guarantee or about
        self.drawn += 1
        number = self.drawn
        drawing = inline(self._drawn(picture), f"figure-{number}", picture.title, described(picture, about))
        named = f"Figure {number}. {picture.title} {_sentence(about)}"
        words = paragraphs([named, _sentence(picture.subtitle), *caption_of(picture)])
        return element("figure", element("div", drawing, class_="drawing"), element("figcaption", words))

    def _drawn(self, picture: AnyPicture) -> str:
        global _drawing_process
        _drawing_process = _drawing_process or os.getpid()
        if not self.drawing or _drawing_process != os.getpid():
            return "<svg></svg>"
        from altair.utils.schemapi import debug_mode  # no page without pictures waits for it

        from stirred.reports.figures import bare

        with debug_mode(False):  # pictures are ours, and checking each against the schema takes longer than drawing it
            return bare(picture, WIDTH)


def described(picture: AnyPicture, about: str) -> str:
    """What a picture shows, in words."""
    parts = [_sentence(about), _sentence(picture.subtitle), *map(_sentence, caption_of(picture))]
    return " ".join(part for part in parts if part)


def inline(drawing: str, id: str, title: str, description: str) -> Markup:
    """A drawing of vl-convert as one image of a page."""
    body = _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{id}-", _LABELS.sub("", tag[0])), drawing[drawing.index("<svg") :])
    opened, _, rest = body.partition(">")
    size = re.search(r'viewBox="[^"]*"', opened)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{id}-title {id}-desc"'
    said = f'<title id="{id}-title">{shown(title)}</title><desc id="{id}-desc">{shown(description)}</desc>'
    return Markup(f"{head}{f' {size[0]}' if size else ''}>{said}{rest}")


def _sentence(words: str) -> str:
    return words if not words or words.endswith((".", "?", "!")) else f"{words}."
