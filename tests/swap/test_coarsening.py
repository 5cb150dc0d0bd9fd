"""Coarser matches for small strata: who is merged, what is kept, and the guarantee of the merged strata."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rates_oracle import permutation_chances, released, reselecting, worst_ratio
from swap_oracle import cell_moments_by_enumeration

from stirred import swap
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.data.dataset import load
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons

MERGE = [["6", "7"], ["5", "6", "7"], ["1", "2"]]


def plan(at_least=4, merge=MERGE, linked=False, **others):
    persons = [{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}] if linked else []
    fields = {"match": ["region", "size"], "swap": ["county", "tract"], "hold": ["tenure", "type"], "rate": 0.2}
    fields |= {"unit": "household", "id": "household_id", "chosen_from": "public", "linked": persons}
    fields |= {"coarsen": {"column": "size", "merge": merge, "at_least": at_least}}
    return SwapPlan(**fields | others)


def merged_by_hand(pairs, merge, at_least):
    """The set of values that each (area, value) belongs to, by loops."""
    counts = Counter(pairs)
    found = {pair: frozenset([pair[1]]) for pair in counts}
    for area in {area for area, _ in counts}:
        for values in map(frozenset, merge):
            inside = [pair for pair in counts if pair[0] == area and found[pair] <= values]
            groups = {found[pair] for pair in inside}
            sizes = [sum(counts[pair] for pair in inside if found[pair] == one) for one in groups]
            if any(size < at_least for size in sizes):
                for pair in inside:
                    found[pair] = values
    return found


@settings(max_examples=150, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("123456")), min_size=1, max_size=25),
    st.sampled_from([[["5", "6"], ["4", "5", "6"]], [["1", "2"], ["5", "6"], ["1", "2", "5", "6"]], [["2", "9"]]]),
    st.integers(2, 6),
)
def test_strata_are_merged_as_the_rule_says(pairs, merge, at_least):
    rows = [(i, area, size, "s", "h") for i, (area, size) in enumerate(pairs)]
    data = pl.DataFrame(rows, schema=["household_id", "region", "size", "county", "tenure"], orient="row")
    own = plan(at_least, merge, swap=["county"], hold=["tenure"])
    expected = merged_by_hand(pairs, merge, at_least)
    stratum = load(own, data).strata.ids
    for i, first in enumerate(pairs):
        for j, second in enumerate(pairs):
            together = first[0] == second[0] and expected[first] == expected[second]
            assert (stratum[i] == stratum[j]) == together


def test_the_rule_does_not_look_at_held_or_swap_values():
    households, _ = households_and_persons(500)
    other = households.with_columns(pl.col(name).shuffle(3) for name in ("county", "tract", "tenure", "type"))
    assert np.array_equal(load(plan(), households).strata.ids, load(plan(), other).strata.ids)


# -- from plan to verify -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["one rate", "with persons", "rates by rule"])
def drawn(request):
    households, persons = households_and_persons(500)
    linked = request.param == "with persons"
    others = {}
    if request.param == "rates by rule":
        rules = [{"where": {"size": ["6", "7"]}, "rate": 0.5}, {"otherwise": True, "rate": 0.1}]
        others = {"rate": None, "rates": rules}
    data = {"microdata": households, "persons": persons} if linked else households
    return swap.draw(plan(linked=linked, **others), data), households


@pytest.fixture(scope="module")
def written(drawn, tmp_path_factory):
    return drawn[0].write(tmp_path_factory.mktemp("made") / "release")


def failing(release):
    return [finding.words for finding in swap.verify(release) if not finding.holds]


def test_a_release_holds_and_says_what_is_merged(written, tmp_path):
    release = shutil.copytree(written, tmp_path / "release")
    assert failing(release) == []
    stated = json.loads((release / "specification.json").read_text())
    assert "'size (merged)' follows from the plan and from counts of match values" in stated["multiverse"]["words"]
    assert dict(stated["facts"])["match"] == "region, size (merged)"
    path = release / "certificate.json"
    fields = json.loads(path.read_text())
    fields["plan"]["coarsen"]["at_least"] = 2
    path.write_text(json.dumps(fields, indent=2))
    write_manifest(release)
    assert any("the specification follows" in words or "recounted" in words for words in failing(release))


def test_sizes_stay_and_counts_of_merged_sizes_by_swap_variables_are_kept(drawn):
    release, households = drawn
    after = pl.DataFrame(release.frame())
    held = ["region", "size", "tenure", "type"]
    assert Counter(households.select(held).iter_rows()) == Counter(after.select(held).iter_rows())
    fine = ["region", "size", "county", "tract"]
    pairs = [(area, str(size)) for area, size in households.select("region", "size").iter_rows()]
    group = merged_by_hand(pairs, MERGE, 4)

    def counts(frame):
        return Counter((a, group[a, str(s)], c, t) for a, s, c, t in frame.select(fine).iter_rows())

    assert counts(households) == counts(after)


def test_counts_of_sizes_by_swap_variables_are_not_kept_where_sizes_are_merged():
    households, _ = households_and_persons(500)
    after = pl.DataFrame(swap.draw(plan(), households, source=SeededSource(1)).frame())
    fine = ["region", "size", "county", "tract"]
    assert Counter(households.select(fine).iter_rows()) != Counter(after.select(fine).iter_rows())


def test_fewer_records_can_never_change():
    households, _ = households_and_persons(500)
    before = swap.check(plan(coarsen=None), households)
    after = swap.check(plan(), households)
    assert after.movement.unchangeable_share < before.movement.unchangeable_share
    assert after.fine_strata == len(before.strata.sizes) > len(after.strata.sizes)
    assert "are not kept any more" in " ".join(str(after).split())
    assert after.epsilon == epsilon(after.strata.largest, Fraction(1, 5))


def test_a_table_by_the_merged_column_is_forecast_as_a_held_one():
    """All records in one merged stratum, against enumeration."""
    rows = [(0, "1", "a", "x"), (1, "2", "b", "x"), (2, "1", "b", "y"), (3, "2", "a", "y"), (4, "1", "a", "y")]
    data = pl.DataFrame(rows, schema=["id", "m", "s", "h"], orient="row")
    own = SwapPlan(
        match=["m"], swap=["s"], hold=["h"], id="id", rate="3/10",
        coarsen={"column": "m", "merge": [["1", "2"]], "at_least": 9},
    )  # fmt: skip
    (table,) = swap.check(own, data, tables=[["m", "s"]]).tables
    file = tuple((int(m), "ab".index(s)) for _, m, s, _ in rows)
    for label, mean, variance in zip(table.labels, table.mean, table.variance, strict=True):
        exact = cell_moments_by_enumeration(file, (int(label[0]), "ab".index(label[1])), Fraction(3, 10))
        assert mean == pytest.approx(float(exact[0]), rel=1e-12)
        assert variance == pytest.approx(float(exact[1]), rel=1e-9)


# -- the guarantee -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("fine", [(1, 1), (2, 1), (2, 2), (1, 1, 1), (2, 2, 1)])
def test_no_universe_of_a_merged_stratum_loses_more_than_the_theorem_says(fine, rate):
    """The values that are merged are held: a record's slot is its match value, here without a further held one."""
    n = sum(fine)
    for swapped in [(1, n - 1), (1,) * n]:
        assert worst_ratio(fine, swapped, lambda file: [rate] * len(file)) <= epsilon(n, rate) * (1 + 1e-12)


def test_merging_strata_that_have_one_swap_value_would_have_no_finite_epsilon():
    """m1 (a, a), m2 (b, b) is merged by such a rule; m1 (a, b), m2 (a, b) is not, and is a possible output of it."""
    half = Fraction(1, 2)
    merged = released((1, 1, 2, 2), (0, 0, 1, 1), permutation_chances(reselecting([half] * 4), 4))
    apart = released((1, 1), (0, 1), permutation_chances(reselecting([half] * 2), 2))
    uniform = ((1, 0), (1, 0), (2, 1), (2, 1))
    assert merged[uniform] > 0
    assert all(sorted(s for _, s in table) == [0, 1] for table in apart), "each stratum of the other keeps a and b"
