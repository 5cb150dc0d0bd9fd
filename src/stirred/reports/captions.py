"""The texts below a picture; apart from the drawing, so that a page without drawings does not load what draws."""

from __future__ import annotations

from stirred.semantics.pictures.lines_and_bars import AnyPicture, Picture


def caption_of(picture: AnyPicture) -> list[str]:
    """What the lines of a picture are, then its caption."""
    lines = picture.lines if isinstance(picture, Picture) else ()
    return [*dict.fromkeys(f"{line.name}: {line.words}." for line in lines if line.words), picture.caption]
