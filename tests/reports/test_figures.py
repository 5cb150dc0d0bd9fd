"""Drawing and saving: the numbers of a picture reach the file, and no file is replaced by accident."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from stirred.errors import LossError, OutputError
from stirred.loss import GaussianCurve, pure_power
from stirred.reports import figures
from stirred.reports.figure_style import COLOURS
from stirred.reports.figures import FORMATS, draw, save
from stirred.semantics.pictures.curves import (
    belief_picture,
    epsilon_delta_picture,
    gaussian_deltas,
    level_power_picture,
)
from stirred.semantics.pictures.shapes import Bar, Bars, Line, Picture

POWER = level_power_picture(
    {"Gaussian": GaussianCurve(1), "pure": pure_power(1), "pure, twice": pure_power(2)}, dashed=["pure"]
)
DELTA = epsilon_delta_picture(gaussian_deltas(rho=1), smallest=1e-6)
TRICKY = replace(POWER, name="tricky", title="Is 1 < 2 & 3 > 2? </script> in a title")
BARS = Bars(
    "bars",
    "Some bars",
    "",
    "rho",
    (Bar("one", 0.25, words="what it is about " * 20), Bar("two", 1.5)),
    mark=0.5,
    mark_words="a mark",
)
GROUPS = Bars("groups", "Groups", "", "rho", tuple(Bar(n, v, g) for n in "ab" for v, g in ((1, "x"), (2, "y"))))


@cache
def spec(picture: Picture | Bars) -> dict:
    return draw(picture).to_dict()


def layers(picture: Picture | Bars) -> list[dict]:
    return spec(picture)["vconcat"][0]["layer"]


def values(picture: Picture | Bars, layer: dict) -> list[dict]:
    """The rows of a layer, which may be those of the chart around it."""
    data = layer.get("data") or spec(picture)["vconcat"][0].get("data") or spec(picture)["data"]
    return spec(picture)["datasets"][data["name"]]


def line_layer(picture: Picture) -> dict:
    return next(layer for layer in layers(picture) if "color" in layer["encoding"])


# -- what is drawn -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", [POWER, DELTA, belief_picture([1, 2])], ids=lambda picture: picture.name)
def test_every_point_of_every_line_is_drawn(picture):
    rows = values(picture, line_layer(picture))
    for part, line in enumerate(picture.lines):
        drawn = [(row["x"], row["y"], row["line"]) for row in rows if row["part"] == part]
        assert drawn == [(x, y, line.name) for x, y in zip(line.x, line.y, strict=True)]


def test_a_line_of_many_points_is_drawn_whole():
    many = replace(POWER, lines=(Line("many", tuple(k / 5000 for k in range(5001)), (0.5,) * 5001),))
    assert len(values(many, line_layer(many))) == 5001


def test_titles_and_axes_say_what_the_picture_says():
    encoding = line_layer(POWER)["encoding"]
    assert encoding["x"]["title"] == POWER.x_title
    assert encoding["y"]["title"] == POWER.y_title
    title = spec(POWER)["vconcat"][0]["title"]
    assert " ".join(title["text"]) == POWER.title
    assert " ".join(title["subtitle"]) == POWER.subtitle
    below = spec(POWER)["title"]
    assert below["orient"] == "bottom"
    assert " ".join(below["text"]) == POWER.caption
    assert POWER.title in spec(POWER)["description"]
    assert "title" not in spec(replace(POWER, caption=""))


def test_words_of_lines_stand_below_the_picture():
    said = " ".join(spec(DELTA)["title"]["text"])
    assert all(f"{line.name}: {line.words}." in said for line in DELTA.lines)


def test_lines_differ_without_colour():
    scale = line_layer(POWER)["encoding"]["strokeDash"]["scale"]
    assert scale["domain"] == ["Gaussian", "pure", "pure, twice"]
    assert scale["range"] == [[1, 0], [5, 3], [12, 4]]
    many = replace(POWER, lines=tuple(Line(str(k), (0, 1), (0, 1), dashed=k % 2 == 0) for k in range(12)))
    encoding = line_layer(many)["encoding"]
    assert len({tuple(dash) for dash in encoding["strokeDash"]["scale"]["range"]}) == 12
    assert len(set(encoding["color"]["scale"]["range"])) == len(COLOURS)


def test_lines_of_one_name_are_drawn_alike_with_one_entry_in_the_legend():
    encoding = line_layer(belief_picture([1, 2]))["encoding"]
    assert encoding["color"]["scale"]["domain"] == ["epsilon = 1", "epsilon = 2"]
    assert len(encoding["strokeDash"]["scale"]["range"]) == 2
    assert encoding["detail"]["field"] == "part"


def test_only_pictures_of_probabilities_have_the_diagonal():
    assert values(POWER, layers(POWER)[0]) == [{"x": 0, "y": 0}, {"x": 1, "y": 1}]
    assert len(layers(DELTA)) == 1
    assert line_layer(POWER)["encoding"]["x"]["scale"]["domain"] == [0, 1]


def test_a_logarithmic_axis_has_whole_powers_of_ten():
    y = line_layer(DELTA)["encoding"]["y"]
    assert y["scale"]["type"] == "log"
    assert y["scale"]["domain"] == pytest.approx([1e-6, 1])
    assert y["axis"]["values"] == pytest.approx([10.0**power for power in range(-6, 1)])
    far = replace(DELTA, lines=(Line("far", (0, 1), (1, 1e-45)),))
    assert len(line_layer(far)["encoding"]["y"]["axis"]["values"]) <= 11
    wide = Picture("wide", "Wide", "", "x", "y", (Line("a", (0.02, 300), (1, 2)),), x_log=True)
    assert line_layer(wide)["encoding"]["x"]["scale"]["domain"] == pytest.approx([0.01, 1000])


def test_long_titles_are_wrapped_into_lines_of_about_one_length():
    long = replace(POWER, title="word " * 30 + "end", subtitle="")
    rows = spec(long)["vconcat"][0]["title"]["text"]
    assert " ".join(rows) == long.title
    assert all(40 < len(row) <= 62 for row in rows)
    unbroken = replace(POWER, title="a" * 70)
    assert spec(unbroken)["vconcat"][0]["title"]["text"] == ["a" * 70]


def test_bars_carry_their_values_words_and_mark():
    rows = next(values(BARS, layer) for layer in layers(BARS) if layer["mark"]["type"] == "bar")
    assert [(row["bar"], row["value"], row["label"]) for row in rows] == [("one", 0.25, "0.25"), ("two", 1.5, "1.5")]
    assert rows[0]["about"] == BARS.bars[0].words
    assert len(rows[0]["words"].splitlines()) == 2
    assert rows[0]["words"].endswith("…")
    rule = next(layer for layer in layers(BARS) if layer["mark"]["type"] == "rule")
    assert values(BARS, rule) == [{"value": 0.5, "words": "a mark"}]
    assert not any(layer["mark"]["type"] == "rule" for layer in layers(GROUPS))


def test_bars_of_several_groups_lie_together_with_a_legend():
    bar = next(layer for layer in layers(GROUPS) if layer["mark"]["type"] == "bar")["encoding"]
    assert bar["yOffset"]["field"] == "group"
    assert bar["color"]["scale"]["domain"] == ["x", "y"]
    assert len(set(bar["color"]["scale"]["range"])) == 2
    alone = next(layer for layer in layers(BARS) if layer["mark"]["type"] == "bar")["encoding"]
    assert alone["color"]["legend"] is None


def test_a_bar_of_nothing_is_drawn():
    nothing = replace(BARS, bars=(Bar("nothing", 0),), mark=None)
    bar = next(layer for layer in layers(nothing) if layer["mark"]["type"] == "bar")
    assert bar["encoding"]["x"]["scale"]["domain"] == [0, 1]


# -- what is saved -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pictures") / "new"
    paths = save(TRICKY, folder, FORMATS)
    assert sorted(folder.iterdir()) == sorted(paths)
    return {path.suffix[1:]: path for path in paths}


def test_files_are_named_after_the_picture(saved):
    assert {path.name for path in saved.values()} == {f"tricky.{ending}" for ending in FORMATS}


def test_the_png_is_one_and_has_twice_the_size_of_a_screen(saved):
    content = saved["png"].read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 1000 < width < 1600
    assert 1000 < height < 1800
    assert len(content) > 20_000


def test_the_svg_holds_the_title_the_legend_and_the_caption(saved):
    text = saved["svg"].read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "Is 1 &lt; 2 &amp; 3 &gt; 2?" in text
    assert all(line.name in text for line in TRICKY.lines)
    assert "blind guess" in text
    assert "Liberation Sans" in text


def test_the_page_needs_no_network_and_no_title_can_end_its_script(saved):
    text = saved["html"].read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", text) == ['<script type="text/javascript">'] * 2
    assert text.count("</script>") == 2
    assert "<link" not in text
    assert "window.vegaEmbed" in text
    data = re.search(r'vegaEmbed\("#picture", (.*), \{"actions": false\}\)</script>', text)
    assert data is not None
    assert json.loads(data[1]) == json.loads(json.dumps(spec(TRICKY)))


def test_the_json_is_the_picture(saved):
    assert json.loads(saved["json"].read_text(encoding="utf-8")) == json.loads(json.dumps(TRICKY.to_fields()))


def test_a_file_is_not_replaced_unless_told(tmp_path):
    (path,) = save(POWER, tmp_path, ["json"])
    before = path.read_bytes()
    with pytest.raises(OutputError) as refusal:
        save(replace(POWER, caption="another"), tmp_path, ["svg", "json"])
    assert refusal.value.kind == "output-exists"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    save(replace(POWER, caption="another"), tmp_path, "json", overwrite=True)
    assert json.loads(path.read_bytes())["caption"] == "another"


def test_one_file_by_its_own_name(tmp_path):
    assert save(BARS, tmp_path / "mine.json") == (tmp_path / "mine.json",)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert save(BARS, str(tmp_path / "version-1.2"), ["json"]) == (tmp_path / "version-1.2" / "bars.json",)


@pytest.mark.parametrize(("to", "formats"), [("", ("png", "jpg")), ("picture.jpg", ()), ("", ("PNG",))])
def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path, to, formats):
    with pytest.raises(LossError, match="no format") as refusal:
        save(POWER, tmp_path / to, formats)
    assert "'png', 'svg', 'html' and 'json'" in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["missing/deeper", "missing/picture.json"])
def test_a_missing_folder_is_named(tmp_path, to):
    with pytest.raises(OutputError, match=r"missing does not exist") as refusal:
        save(POWER, tmp_path / to, ["json"])
    assert refusal.value.kind == "output-parent-missing"


def test_files_appear_together_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "level-and-power.svg").mkdir()  # a folder where the second file would go
    monkeypatch.setattr(figures, "_file", lambda picture, ending: b"content")
    (tmp_path / "level-and-power.svg" / "kept").write_text("kept")
    with pytest.raises(OutputError) as refusal:
        save(POWER, tmp_path, ["svg", "json"], overwrite=True)
    assert refusal.value.kind == "cannot-write"
    assert [path.name for path in tmp_path.iterdir()] == ["level-and-power.svg"]


def test_bars_are_drawn_to_files_too(tmp_path):
    (path,) = save(replace(GROUPS, mark=1.5, mark_words="mark"), tmp_path, ["svg"])
    text = path.read_text(encoding="utf-8")
    assert "Groups" in text
    assert ">mark<" in text


def test_a_peak_stays_within_the_frame():
    peak = Picture("peak", "A peak", "", "x", "y", (Line("one", (0, 1, 2), (0, 5, 0)),))
    assert line_layer(peak)["encoding"]["y"]["scale"]["domain"][1] > 5
    assert line_layer(peak)["encoding"]["x"]["scale"]["domain"] == [0, 2]
