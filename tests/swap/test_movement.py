"""What a swap changes and cannot change, in the check, the certificate, README and the confidential folder."""

from __future__ import annotations

import json
from fractions import Fraction

import polars as pl
import pytest

from stirred import errors
from stirred.swap.checking.plan_check import check
from stirred.swap.drawing import draw, release
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify
from stirred.tables.synthetic import households_and_persons


def plan(**changes) -> SwapPlan:
    fields = {
        "match": ["region"],
        "swap": ["county"],
        "hold": ["tenure"],
        "rate": "1/20",
        "chosen_from": "public",
    }
    return SwapPlan(**(fields | changes))


@pytest.fixture(scope="module")
def households() -> pl.DataFrame:
    return households_and_persons(3_000)[0].select("region", "size", "county", "tenure")


def test_more_match_variables_make_epsilon_smaller_and_stop_the_release(households):
    numbered = households.with_columns(street=(pl.int_range(pl.len()) // 3).cast(pl.String))
    few, many = plan(drop=["street", "size"]), plan(match=["region", "street"], drop=["size"])
    loose, tight = check(few, numbered), check(many, numbered)
    assert tight.epsilon < loose.epsilon  # which is why a small epsilon alone must not release the file
    assert loose.open_stops == []
    assert {"few-change", "many-unchangeable"} <= {stop.kind for stop in tight.open_stops}
    with pytest.raises(errors.StoppedByCheck, match="nearly the confidential file"):
        draw(many, numbered)


def test_the_share_is_stated_beside_epsilon_and_recomputed_by_the_recipient(households, tmp_path):
    frame = households.drop("size")
    made = release(plan(), frame, out=tmp_path / "out")
    expected = 0.0
    for _, stratum in frame.group_by("region"):
        n = stratum.height
        p = 0.05
        moved = p * (1 - (1 - p) ** (n - 1)) / (1 - n * p * (1 - p) ** (n - 1))
        same = sum(many * (many - 1) for many in stratum["county"].value_counts()["count"])
        expected += moved * (n - same / (n - 1))
    share = f"{expected / frame.height:.3g}"
    percent = f"{100 * float(share):.3g}%"
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())["specification"]
    assert dict(stated["facts"])["changed_share"] == share
    assert f"{percent} of all records are expected to end with other swap values" in stated["budget"]["conversion"]
    readme = " ".join((tmp_path / "out" / "README.txt").read_text().split())
    assert f"{percent} of the records are expected" in readme
    assert any(percent in line for line in made.summary)
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))
    assert float(made.specification.budget.number) == epsilon(made.strata.largest, Fraction(1, 20))


def test_strata_of_one_never_move_and_small_ones_hardly(households):
    found = check(plan(match=["region", "size"], allow=["few-change", "many-unchangeable"]), households.head(120))
    by_size = {one.size: one for one in found.movement.by_size}
    assert by_size["1"].moved_share == by_size["1"].changed_share == 0
    assert 0 < by_size["2 to 4"].moved_share < 0.02
    text = " ".join(str(found).split())
    assert "end with other swap values" in text and "Records that can never change, by 'county'" in text


def test_records_that_cannot_change_are_listed_by_place_in_the_confidential_folder(tmp_path):
    frame = pl.DataFrame(
        {
            "region": ["a"] * 12 + ["b", "c", "c"],
            "county": ["x", "y", "z"] * 4 + ["y", "x", "y"],
            "tenure": ["o", "o", "r", "r"] * 3 + ["o", "r", "r"],
        }
    )
    release(plan(rate="1/2"), frame, out=tmp_path / "out", confidential=tmp_path / "private")
    listed = pl.read_csv(tmp_path / "private" / "records_that_cannot_change.csv")
    assert listed.rows() == [("x", "c", 14), ("y", "b", 13), ("y", "c", 15)]
    found = check(plan(rate="1/2"), frame)
    assert [(one.variable, one.places) for one in found.unchangeable] == [("county", (("y", 6, 2), ("x", 5, 1)))]
    assert found.movement.unchangeable_share == pytest.approx(3 / 15)


def test_a_rate_at_which_nobody_is_selected_is_blamed_and_not_the_groups(households):
    numbered = households.with_columns(street=(pl.int_range(pl.len()) // 3).cast(pl.String))
    tiny = [
        stop for stop in check(plan(rate="1e-9", drop=["size"]), households).open_stops if stop.kind == "few-change"
    ]
    assert "moves only if another one" in str(tiny[0]) and "Raise the rate" in str(tiny[0])
    alone = plan(match=["region", "size", "street"])
    small = [stop for stop in check(alone, numbered).open_stops if stop.kind == "few-change"]
    assert "are too small, or have one swap value" in str(small[0]) and "Raise the rate" not in str(small[0])
