"""Figures for papers: the width of a column, text of 8 to 9 points, embedded fonts, and no need for colour."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from itertools import pairwise

import pytest

import stirred
from stirred.errors import LossError, OutputError
from stirred.reports.figure_style import DARK_TO_LIGHT, INCH, ONE_COLUMN, TWO_COLUMNS
from stirred.reports.figures import NOT_STATED, WIDTHS, caption, for_paper, save_for_paper
from stirred.reports.limits_section import of_epsilon, question_pictures
from stirred.semantics.pictures.deployments import deployment_picture
from stirred.semantics.pictures.shapes import Bar, Bars, GroupedInterval, GroupedIntervals, Interval, Intervals

LONG = "a name that is far too long for one line beside a row of a narrow column"
CENSUS = stirred.explain("topdown-2020-pl").pictures()
BARS = Bars("bars", "Bars", "", "rho", tuple(Bar(f"{n} {LONG}", n, g) for n in (1, 2) for g in ("x", "y")))
INTERVALS = Intervals(
    "intervals", "Some", "", "count", tuple(Interval(f"{n}, {LONG}", n, n + 1, n + 2, n) for n in (1, 2))
)
GROUPED = GroupedIntervals(
    "grouped", "Some", "", "count", tuple(GroupedInterval(LONG, g, 1, 2, 3, 1.5, 2.5) for g in "ab"), 0, 4
)
PICTURES = {one.name: one for one in (*CENSUS, BARS, INTERVALS, GROUPED, *question_pictures(of_epsilon(1, 10)))}


def sizes(drawing: str) -> tuple[float, float, float, float]:
    found = re.search(r'width="([\d.]+)" height="([\d.]+)" viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
    assert found is not None
    return tuple(map(float, found.groups()))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("style", WIDTHS.values(), ids=list(WIDTHS))
@pytest.mark.parametrize("name", PICTURES)
def test_a_drawing_has_the_width_of_its_column_and_is_not_shrunk(name, style):
    drawing = for_paper(PICTURES[name], style)
    width, height, inside, _ = sizes(drawing)
    assert width == style.total == inside and height < 9 * INCH
    found = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', drawing)}
    assert found and all(8 <= size <= 9 for size in found), found
    assert PICTURES[name].title not in drawing


@pytest.mark.slow
def test_panels_fit_on_a_page_across_both_columns():
    picture = deployment_picture()
    drawing = for_paper(picture, TWO_COLUMNS)
    width, height, inside, _ = sizes(drawing)
    assert width == inside and height < 9.25 * INCH
    assert all(f">{dot.name}<" in drawing for column in picture.columns for panel in column for dot in panel.dots)


def test_files_have_the_size_of_the_column_embedded_fonts_and_a_caption(tmp_path):
    paths = save_for_paper(CENSUS[0], tmp_path / "new")
    assert {path.name for path in paths} == {path.name for path in (tmp_path / "new").iterdir()}
    for style in WIDTHS.values():
        content = (tmp_path / "new" / f"level-and-power-{style.name}.pdf").read_bytes()
        plain = content + b"".join(_streams(content))
        box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", plain)
        assert box is not None and float(box[1]) == pytest.approx(style.total, abs=0.01)
        assert b"/FontFile" in plain and b"LiberationSans" in plain
        text = (tmp_path / "new" / f"level-and-power-{style.name}.svg").read_text(encoding="utf-8")
        assert f'width="{style.total / 72:.4f}in"' in text.partition(">")[0]
    assert CENSUS[0].guarantee in " ".join((tmp_path / "new" / "level-and-power-caption.txt").read_text().split())


def _streams(content: bytes) -> list[bytes]:
    found = []
    for part in re.findall(rb"stream\r?\n(.*?)endstream", content, flags=re.S):
        try:
            found.append(zlib.decompressobj().decompress(part))
        except zlib.error:
            continue
    return found


def test_the_caption_says_everything_and_never_leaves_the_guarantee_out():
    said = " ".join(caption(CENSUS[0]).split())
    for part in (CENSUS[0].title, CENSUS[0].subtitle, CENSUS[0].guarantee, CENSUS[0].caption):
        assert part in said
    assert all(f"{line.name}: {line.words}." in said for line in CENSUS[0].lines if line.words)
    assert NOT_STATED in caption(replace(CENSUS[0], guarantee=""))


# -- black and white -----------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [one.name for one in CENSUS if one.name != "concerns"])
def test_lines_are_black_and_differ_by_dashes(name):
    drawing = for_paper(PICTURES[name], ONE_COLUMN)
    assert not re.search(r"#(?:0072B2|D55E00|009E73|CC79A7|E69F00|56B4E9)", drawing, flags=re.I)
    symbols = drawing[drawing.index("role-legend") :]
    dashes = re.findall(r'stroke="#000000"[^>]*?stroke-dasharray="([^"]+)"', symbols)
    names = list(dict.fromkeys(line.name for line in PICTURES[name].lines))
    assert len(dashes) == len(set(dashes)) == len(names)


def test_bars_are_greys_that_can_be_told_apart():
    drawing = for_paper(PICTURES["concerns"], ONE_COLUMN)
    assert DARK_TO_LIGHT[0].lower() in drawing.lower() and DARK_TO_LIGHT[1].lower() in drawing.lower()
    greys = [int(colour[1:3], 16) for colour in DARK_TO_LIGHT]
    assert all(abs(one - other) >= 60 for one, other in pairwise(greys))
    assert len(set(greys)) == len(greys)


# -- refused -------------------------------------------------------------------------------------------------


def test_files_are_not_replaced_and_widths_are_known(tmp_path):
    save_for_paper(BARS, tmp_path, ("one-column",))
    assert {path.name for path in tmp_path.iterdir()} == {
        "bars-one-column.pdf", "bars-one-column.svg", "bars-caption.txt"
    }  # fmt: skip
    with pytest.raises(OutputError):
        save_for_paper(BARS, tmp_path, ("one-column",))
    save_for_paper(BARS, tmp_path, ("one-column",), overwrite=True)
    with pytest.raises(LossError, match="no width"):
        save_for_paper(BARS, tmp_path, ("three-columns",))
    with pytest.raises(OutputError):
        save_for_paper(BARS, tmp_path / "missing" / "deeper")
