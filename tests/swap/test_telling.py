"""How well held columns tell the swap variables: against a plain count, and on files that used to pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred import errors
from stirred.swap.checking import prediction
from stirred.swap.checking.plan_check import check
from stirred.swap.data.dataset import load
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan


def plan(**changes) -> SwapPlan:
    fields = {"match": ["size"], "swap": ["county"], "hold": "rest", "rate": 0.2, "chosen_from": "public"}
    return SwapPlan(**(fields | changes))


def by_hand(strata, held, values, halves) -> tuple[int, int]:
    """(gained, lost): the commonest value of a cell in the other half, the smallest of equals; else of the stratum."""

    def commonest(cells, row):
        found = Counter(values[i] for i in range(len(values)) if cells[i] == cells[row] and halves[i] != halves[row])
        return min(found, key=lambda value: (-found[value], value)) if found else None

    gained = lost = 0
    for row in range(len(values)):
        before = commonest(strata, row) == values[row]
        with_held = commonest(held, row)
        after = before if with_held is None else with_held == values[row]
        gained, lost = gained + (after and not before), lost + (before and not after)
    return gained, lost


small = st.lists(st.tuples(*(st.integers(0, many) for many in (1, 2, 2, 3)), st.booleans()), min_size=2, max_size=40)


@given(small)
def test_predictions_are_those_of_a_plain_count(rows):
    strata, one, two, values, halves = (np.array(part) for part in zip(*rows, strict=True))
    held = {"one": one.astype(np.uint32), "two": two.astype(np.uint32)}
    part = prediction._Part("microdata", strata.astype(np.uint32), halves, held, {})
    codes = values.astype(np.uint32)
    for told in prediction._of_variable(part, "county", codes, [("one",), ("two",), ("one", "two")], True):
        cells = [tuple(int(held[name][i]) for name in told.columns) for i in range(len(rows))]
        with_match = [(int(strata[i]), *cells[i]) for i in range(len(rows))]
        wrong = sum(not right for right in prediction._told_by_match(part, codes))
        shares = []
        for kind in (cells, with_match):
            gained, lost = by_hand(list(strata), kind, list(values), list(halves))
            shares.append(max(0.0, (gained - lost) / wrong) if wrong else 0.0)
        assert told.share == pytest.approx(max(shares))


def households(seed: int = 3, number: int = 4_000) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    county = random.integers(0, 12, number)
    return pl.DataFrame(
        {
            "size": random.integers(1, 6, number),
            "county": county,
            "tenure": random.choice(["owned", "rented"], number),
            "rooms": random.integers(1, 9, number),
        }
    )


def test_chance_tells_nothing_and_nothing_stops():
    for seed in range(5):
        found = prediction.measure(load(plan(), households(seed)))
        assert found.columns == 2 and found.pairs == 1
        assert not any(one.believed for one in found.told)
        assert max(one.share for one in found.told) < 0.02
        assert found.above(0.0) == []


def test_a_code_with_ten_wrong_rows_in_four_thousand_stops_a_release():
    frame = households().with_columns(zone=pl.col("county") + 100)
    random = np.random.default_rng(9)
    wrong = random.choice(frame.height, 10, replace=False)
    zone = frame["zone"].to_numpy().copy()
    zone[wrong] = 100 + (zone[wrong] - 99) % 12
    frame = frame.with_columns(zone=pl.Series(zone))
    with pytest.raises(errors.StoppedByCheck, match="tells the swap variable 'county' of 100%") as stop:
        draw(plan(), frame)
    assert stop.value.kind == "tells:zone"
    found = check(plan(), frame)
    assert [one.kind for one in found.open_stops] == ["tells:zone"]  # and not every pair that holds it
    assert "99." in str(found) and "'zone' of table 'microdata'" in str(found)
    assert draw(plan(allow=["tells:zone"]), frame).table.rows == frame.height


def test_two_coordinates_together_stop_a_release_and_neither_alone():
    frame = households()
    grid = [(county % 4, county // 4) for county in frame["county"].to_list()]
    frame = frame.with_columns(east=pl.Series([x for x, _ in grid]), north=pl.Series([y for _, y in grid]))
    assert [one.kind for one in check(plan(), frame).open_stops] == ["tells:east+north"]
    assert check(plan(allow=["tells:east+north"]), frame).open_stops == []


def test_fine_coordinates_that_hardly_repeat_are_found_by_the_tree():
    random = np.random.default_rng(4)
    frame = households()
    county = frame["county"].to_numpy()
    frame = frame.with_columns(
        east=pl.Series((county % 4) * 10_000 + random.integers(0, 10_000, len(county))),
        north=pl.Series((county // 4) * 10_000 + random.integers(0, 10_000, len(county))),
    )
    stops = [one.kind for one in check(plan(allow=["distinct:east", "distinct:north"]), frame).open_stops]
    assert stops == ["tells:all-held-columns"]


def test_the_plan_states_how_much_may_be_told():
    random = np.random.default_rng(5)
    frame = households()
    county = frame["county"].to_numpy()
    same = random.random(len(county)) < 0.3
    frame = frame.with_columns(region=pl.Series(np.where(same, county, random.integers(0, 12, len(county)))))
    (told,) = [one for one in check(plan(), frame).telling.told if one.columns == ("region",)]
    assert 0.2 < told.share < 0.4 and told.believed
    assert check(plan(), frame).open_stops == []
    assert "tells:region" in [one.kind for one in check(plan(most_told="0.1"), frame).open_stops]


def test_columns_of_linked_rows_are_tried_too():
    frame = households().with_columns(id=pl.int_range(pl.len()))
    persons = frame.select("id", school=pl.col("county") * 2).sample(fraction=0.9, seed=1)
    linked = [{"name": "persons", "link": "id", "hold": ["school"]}]
    found = check(plan(id="id", linked=linked), {"microdata": frame, "persons": persons})
    assert "determines:school" in [one.kind for one in found.open_stops]
    assert found.telling.told[0].table == "persons" and found.telling.told[0].share > 0.99


def test_a_sample_keeps_small_strata_whole_and_thins_large_ones():
    random = np.random.default_rng(6)
    ids = np.concatenate([np.zeros(400_000, np.uint32), random.integers(1, 50_000, 400_000).astype(np.uint32)])
    sizes = np.bincount(ids, minlength=50_000)
    rows = prediction._sample(ids, sizes)
    assert len(rows) == pytest.approx(prediction.SAMPLED, rel=0.05)
    taken = np.bincount(ids[rows], minlength=50_000)
    assert 0.4 * len(rows) < taken[0] < 0.6 * len(rows)
    assert set(np.unique(taken[1:] - np.where(taken[1:] > 0, sizes[1:], 0))) == {0}


def test_an_allowance_names_columns_that_are_held():
    with pytest.raises(errors.PlanError):
        load(plan(allow=["tells:tenure+nothing"]), households())
    load(plan(allow=["tells:tenure+rooms", "tells:all-held-columns"]), households())
