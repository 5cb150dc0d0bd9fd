"""The picture of all deployments: each once, unlike budgets on axes of their own, and what has no axis listed."""

from __future__ import annotations

import json

import pytest

from stirred.errors import StirredError
from stirred.reports.figures import draw, save
from stirred.semantics.pictures.deployments import deployment_picture
from stirred.semantics.pictures.shapes import Dot, Panel, Panels
from stirred.spec.known_deployments.accounts import account, accounts


def panels_of(picture: Panels) -> list[Panel]:
    return [panel for column in picture.columns for panel in column]


def test_every_deployment_is_in_the_picture_once():
    picture = deployment_picture()
    on_axes = [dot.name for panel in panels_of(picture) for dot in panel.dots]
    listed = [line.partition(":")[0] for line in picture.listed]
    assert sorted([*on_axes, *listed]) == sorted(accounts())
    assert all(accounts()[name].panel is None for name in listed)
    assert all("not stated" in line for line in picture.listed)


def test_a_panel_holds_one_standard_unit_and_period_only_and_its_title_says_which():
    picture = deployment_picture()
    for panel in panels_of(picture):
        ((standard, unit, period),) = {accounts()[dot.name].panel for dot in panel.dots}
        assert unit in panel.title and panel.title.endswith(period)
        assert ("rho" in panel.title) == ("zcdp" in standard) and ("delta" in panel.title) == ("delta" in standard)
        for dot in panel.dots:
            numbers = accounts()[dot.name].numbers
            assert dot.value == float(numbers.get("epsilon") or numbers["rho"])
    assert "says nothing" in picture.caption


def test_every_panel_is_drawn_with_an_axis_of_its_own_from_zero():
    picture = deployment_picture()
    (columns,) = draw(picture).to_dict()["vconcat"]
    drawn = [chart for column in columns["hconcat"] for chart in column["vconcat"] if "layer" in chart]
    assert len(drawn) == len(panels_of(picture))
    for chart, panel in zip(drawn, panels_of(picture), strict=True):
        low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
        assert low == 0 and high > max(dot.value for dot in panel.dots)
        assert chart["title"]["text"] == panel.title


def test_the_one_that_is_named_stands_out_and_some_can_be_chosen():
    picture = deployment_picture(marked="meta-movement-2020")
    assert [dot.name for panel in panels_of(picture) for dot in panel.dots if dot.marked] == ["meta-movement-2020"]
    few = deployment_picture([account("topdown-2020-pl"), account("uber-flex-2018")])
    assert len(panels_of(few)) == 1 and few.listed == ("uber-flex-2018: budget and period not stated",)
    assert few.subtitle.startswith("2 deployments, 1 kind")


@pytest.mark.slow
def test_it_is_saved_with_its_numbers(tmp_path):
    written = save(deployment_picture(), tmp_path, ("png", "json"))
    fields = json.loads(written[1].read_text(encoding="utf-8"))
    assert written[0].read_bytes().startswith(b"\x89PNG") and fields["kind"] == "panels"
    assert len(fields["columns"]) == 2 and fields["columns"][0][0]["dots"][0]["words"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dot("", 1),
        lambda: Dot("a", -1),
        lambda: Dot("a", float("inf")),
        lambda: Panel("", (Dot("a", 1),)),
        lambda: Panel("epsilon", ()),
        lambda: Panel("epsilon", (Dot("a", 1), Dot("a", 2))),
        lambda: Panels("Some", "Some", "", ((Panel("epsilon", (Dot("a", 1),)),),)),
        lambda: Panels("some", "", "", ((Panel("epsilon", (Dot("a", 1),)),),)),
        lambda: Panels("some", "Some", "", ()),
        lambda: Panels("some", "Some", "", ((),)),
        lambda: Panels("some", "Some", "", ((Panel("epsilon", (Dot("a", 1),)), Panel("epsilon", (Dot("b", 1),))),)),
    ],
)
def test_an_empty_or_ambiguous_picture_is_refused(make):
    with pytest.raises(StirredError):
        make()
