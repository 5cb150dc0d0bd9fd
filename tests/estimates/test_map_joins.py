"""Estimates joined to a map: what is written, what is told, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stirred.errors import StirredError
from stirred.estimates import Answers, Estimates, Parts, join_map, place_estimates

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}


def estimates(by=(), labels=((),), places=("01", "02", "03")):
    values = np.arange(len(places) * len(labels), dtype=float).reshape(len(places), -1)
    variances = np.full(values.shape, 4.0)
    values[-1, -1], variances[-1, -1] = np.nan, np.inf
    return Estimates(
        table="persons", by=by, where={}, level="district", places=places, labels=labels, values=values,
        variances=variances, parameter=np.zeros_like(values), terms=np.zeros_like(values),
    )  # fmt: skip


def written(folder, features, **more):
    path = folder / "map.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "name": "é", "features": features, **more}))
    return path


def feature(**properties):
    return {"type": "Feature", "geometry": SQUARE, "properties": properties}


def refusal(words, ask):
    with pytest.raises(StirredError) as found:
        ask()
    assert found.value.kind == "map-join" and words in str(found.value), found.value


def test_features_get_the_numbers_of_their_place_and_nothing_else_changes(tmp_path):
    features = [feature(district="02", colour="red"), feature(district="01"), feature(district="03")]
    path = written(tmp_path, features, bbox=[0, 0, 1, 1])
    text, remarks = join_map(estimates(), path, confidence=0.95)
    made = json.loads(text)
    lower, upper = estimates().interval(0.95)
    assert remarks == () and made["bbox"] == [0, 0, 1, 1] and made["name"] == "é"
    first = made["features"][0]
    assert first["geometry"] == SQUARE and first["properties"]["colour"] == "red"
    assert first["properties"]["estimate"] == 1.0 and first["properties"]["standard_error"] == 2.0
    assert (first["properties"]["lower"], first["properties"]["upper"]) == (lower[1, 0], upper[1, 0])
    assert made["features"][2]["properties"]["estimate"] is None  # JSON has no infinite numbers


def test_groups_are_told_apart_by_their_values(tmp_path):
    found = estimates(("race", "adult"), (("a", "yes"), ("a", "no")))
    text, _ = join_map(found, written(tmp_path, [feature(code="01")]), "code")
    properties = json.loads(text)["features"][0]["properties"]
    assert properties["estimate:race=a,adult=yes"] == 0.0 and properties["estimate:race=a,adult=no"] == 1.0
    answers = Answers(
        table="persons", by=("district", "sex"), where={}, measure="share of sex", labels=(("01", "f"), ("01", "m")),
        values=np.array([0.25, 0.75]), variances=np.zeros(2), naive=None, kinds=("known", "known"), kind_words={},
        ends=lambda _: Parts([0.25, 0.75], [0, 0], [0.25, 0.75], [0.25, 0.75]), whole=False,
    )  # fmt: skip
    text, _ = join_map(answers, written(tmp_path, [feature(district="01"), feature(district="01")]))
    made = json.loads(text)["features"]  # a place of two parts
    assert [one["properties"]["upper:sex=m"] for one in made] == [0.75, 0.75]


def test_places_and_features_without_a_match_are_told(tmp_path):
    path = written(tmp_path, [feature(district="01"), feature(district="99"), feature(district=7)])
    text, remarks = join_map(estimates(), path)
    assert remarks == (
        "2 places have no feature in the map: 02, 03.",
        "2 features have no estimate: 99, 7.",
    )
    assert json.loads(text)["features"][1]["properties"] == {"district": "99"}


def test_maps_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    ask = lambda *features, key=None: lambda: join_map(estimates(), written(tmp_path, list(features)), key)  # noqa: E731
    refusal(
        "2 of 3 features have no property 'code'", ask(feature(code="01"), feature(), feature(code=None), key="code")
    )
    refusal("no feature has the name of a place of 'district'", ask(feature(district="1"), feature(district="2")))
    refusal("a property 'estimate' of their own", ask(feature(district="01", estimate=3)))
    refusal("has no list of features", ask())
    path = tmp_path / "other.json"
    for text in ("[]", '{"features": 3}', '{"features": [3]}'):
        path.write_text(text)
        refusal("has no list of features", lambda: join_map(estimates(), path))
    path.write_text("{")
    refusal("cannot be read as JSON", lambda: join_map(estimates(), path))
    path.write_text("[" * 100_000)
    refusal("cannot be read as JSON", lambda: join_map(estimates(), path))
    refusal("cannot be read as JSON", lambda: join_map(estimates(), tmp_path / "absent"))
    monkeypatch.setattr(place_estimates, "LARGEST_MAP", 10)
    refusal("more than 10 bytes", ask(feature(district="01")))
    alone = Answers(
        table="persons", by=(), where={}, measure="a minus b", labels=((),), values=np.zeros(1),
        variances=np.zeros(1), naive=None, kinds=("known",), kind_words={}, ends=lambda _: Parts([0], [0], [0], [0]),
    )  # fmt: skip
    refusal("are of one place alone", lambda: join_map(alone, path))
