"""Files of places for released folders: estimates, tables of rows, zeros in shares and comparisons."""

from __future__ import annotations

import polars as pl
import pytest
from census import plan, refused, tables

import stirred
from stirred.topdown.releasing import release


def test_the_verb_answers_for_a_file_of_places(tmp_path):
    release(plan("2"), tables(), out=tmp_path / "out")
    places = pl.DataFrame({"town": ["a1", "b1", "a2", "b3"], "district": ["east", "east", "west", "empty"]})
    found = stirred.estimate(tmp_path / "out", ["kind"], place_file=places)
    assert found.places == ("east", "west", "empty") and found.level == "district"
    known = found.variances == 0
    # a2 has a college only, b3 nothing; a1 and b1 have dwellings and a nursing home, and no college
    assert known.tolist() == [[False, False, True], [True, True, False], [True, True, True]]
    one = stirred.estimate(tmp_path / "out", place_file=places, places=[("district", "east"), ("town", "b2")])
    assert one.places == ("east + b2",)
    sources = stirred.estimate(tmp_path / "out", place_file=places, places=[("district", "east")], sources=True)
    assert sum(source.share for source in sources.sources) == pytest.approx(1)
    assert stirred.estimate(tmp_path / "out", place_file=places, nonnegative=True).interval()[0].min() >= 0
    with refused("estimate-question") as found:
        stirred.estimate(tmp_path / "out", place_column="x")
    assert "give --places too" in str(found.value)
    with refused("estimate-question") as found:
        stirred.estimate(tmp_path / "out", level="town", place_file=places)
    assert "either a level or a file" in str(found.value)
