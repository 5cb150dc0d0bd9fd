"""Sizes, colours and dashes of pictures: one style for screens, one for each column width of papers; and captions.

Colours are those of Okabe and Ito (2008). In papers lines are told apart by their dashes and bars by how dark they are,
so that they can be printed in black and white. Captions stand here, apart from the drawing, so that a page without
drawings does not load what draws.

Keep in mind: lengths of a paper style are points, 72 to the inch, which is what a PDF counts in.
"""

from __future__ import annotations

from dataclasses import dataclass

from stirred.semantics.pictures.shapes import AnyPicture, Picture

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
GREY, LIGHT = "#555555", "#E4E4E4"

COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, without yellow, which is too light for a line."""

BAR_COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7")
"""The same in another order: neighbours differ most where an area is filled."""

DARK_TO_LIGHT = ("#1A1A1A", "#B8B8B8", "#6A6A6A", "#E6E6E6", "#444444", "#929292", "#D0D0D0")
"""Greys of bars in papers; neighbours differ by nearly a quarter of the way from black to white, or more."""

LONG_DASHES = ((1, 0), (12, 4), (9, 3, 2, 3), (16, 3, 2, 3, 2, 3), (26, 5), (9, 2))
SHORT_DASHES = ((5, 3), (2, 2), (5, 2, 1, 2), (1, 3), (3, 5), (4, 1))


@dataclass(frozen=True)
class Style:
    """How a picture is drawn. Lengths are pixels on a screen and points in a paper."""

    name: str
    width: int
    """Of the drawing without its axes; in a paper it is corrected until the whole has the width of the column."""
    total: float | None = None
    """Of the whole, where it is fixed."""
    text: float = 12
    """Numbers on axes, and words within the drawing."""
    heading: float = 13
    """Titles of axes, entries of the legend, names of bars."""
    small: float = 11
    stroke: float = 2.2
    dashes: float = 1.0
    """Factor of the lengths of dashes."""
    step: float = 1.0
    """Factor of the heights of rows."""
    flat: float = 1.0
    """Factor of the heights of lines over two axes."""
    colours: tuple[str, ...] = COLOURS
    bar_colours: tuple[str, ...] = BAR_COLOURS
    outlined: bool = False
    """Whether bars have a black outline."""
    padding: int = 14
    characters: int | None = None
    """Of an entry of the legend or a name beside a row, before it is wrapped; None where there is room."""

    @property
    def letter(self) -> float:
        """About how wide a letter of :attr:`text` is."""
        return 0.56 * self.text


SCREEN = Style("screen", 520)

INCH = 72.0
ONE_COLUMN = Style(
    "one-column", 190, 3.5 * INCH, text=8, heading=8.5, small=8, stroke=1.3, dashes=0.55, step=0.72,
    colours=("#000000",) * len(COLOURS), bar_colours=DARK_TO_LIGHT, outlined=True, padding=2, characters=36,
)  # fmt: skip
"""One column of a journal of two: 3.5 inches, 88.9 mm."""

TWO_COLUMNS = Style(
    "two-columns", 420, 7.16 * INCH, text=8, heading=9, small=8, stroke=1.4, dashes=0.6, step=0.75, flat=0.6,
    colours=("#000000",) * len(COLOURS), bar_colours=DARK_TO_LIGHT, outlined=True, padding=2, characters=84,
)  # fmt: skip
"""Across both columns: 7.16 inches, 181.9 mm."""


def caption_of(picture: AnyPicture) -> list[str]:
    """What the lines of a picture are, then its caption."""
    lines = picture.lines if isinstance(picture, Picture) else ()
    return [*dict.fromkeys(f"{line.name}: {line.words}." for line in lines if line.words), picture.caption]
