"""What the published counts of a swap reveal, in its check: against counting by hand and against the release."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred import errors, explain
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.checking.plan_check import check
from stirred.swap.checking.revealing import reveal_swap
from stirred.swap.data.dataset import load
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable
from stirred.swap.verifying import verify
from stirred.tables.synthetic import households_and_persons

ALLOW = ["few-change", "many-unchangeable"]
COLUMNS = ("size", "county", "tract", "tenure")
row = st.tuples(st.sampled_from("12"), st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("or"))
persons = st.lists(st.sampled_from("cm"), max_size=2)
households = st.lists(st.tuples(row, persons), min_size=1, max_size=12).filter(lambda found: any(p for _, p in found))


def plan(**changes) -> SwapPlan:
    fields = {"match": ["size"], "swap": ["county", "tract"], "hold": ["tenure"], "rate": "1/20"}
    return SwapPlan(**(fields | {"chosen_from": "public", "allow": ALLOW} | changes))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(households)
def test_counts_equal_counting_by_hand_with_persons_as_part_of_the_household(rows):
    main = pl.DataFrame([(n, *cells) for n, (cells, _) in enumerate(rows)], schema=["id", *COLUMNS], orient="row")
    others = [(n, age) for n, (_, ages) in enumerate(rows) for age in ages]
    linked = pl.DataFrame(others, schema={"id": pl.Int64, "age": pl.String}, orient="row")
    tied = plan(id="id", linked=[LinkedTable(name="persons", link="id", hold=["age"])])
    found = reveal_swap(load(tied, {"microdata": main, "persons": linked}))

    strata = defaultdict(list)
    for (size, county, tract, tenure), ages in rows:
        strata[size].append(((tenure, *sorted(ages)), (county, tract)))
    held = Counter((size, h) for size, ones in strata.items() for h, _ in ones)
    by_tract = Counter((size, s) for size, ones in strata.items() for _, s in ones)
    by_county = Counter((size, s[0]) for size, ones in strata.items() for _, s in ones)
    wanted = [held, Counter({size: len(ones) for size, ones in strata.items()}), by_county, by_tract]
    for level, counts in zip(found.levels, wanted, strict=True):
        assert level.cells == tuple(sum(many == k for many in counts.values()) for k in range(1, 6))
        assert level.more == sum(many > 5 for many in counts.values())
    fixed = [ones for ones in strata.values() if len({h for h, _ in ones}) == 1 or len({s for _, s in ones}) == 1]
    assert found.counts.determined_records == sum(map(len, fixed))
    assert found.unique_share == sum(many == 1 for many in held.values()) / len(rows)
    assert found.counts.guessed == sum(max(Counter(s for _, s in ones).values()) for ones in strata.values())


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return households_and_persons(600)[0].select(*COLUMNS)


def test_a_recipient_computes_the_same_from_the_release(frame, tmp_path):
    """Which is why it may be marked as coming from published counts, at any rate."""
    before = check(plan(), frame).revealing
    for rate in ("1/20", "1/2"):
        drawn = draw(plan(rate=rate), frame, source=SeededSource(1))  # now and then a draw at 1/20 changes no row
        out = drawn.write(tmp_path / rate.replace("/", "-"), for_tests=True)
        after = pl.read_parquet(out / "microdata.parquet")
        assert not after.sort(COLUMNS).equals(frame.sort(COLUMNS))
        assert check(plan(), after).revealing == before


def test_determined_records_are_those_that_can_never_change(frame):
    found = check(plan(match=["size", "county"], swap=["tract"]), frame)
    assert found.revealing.counts.determined_records == int(found.strata.sizes[~found.strata.changeable].sum()) > 0
    assert sum(fixed for _, _, fixed in found.unchangeable[0].places) == found.revealing.counts.determined_records
    fields = json.loads(found.to_json())["published_counts_reveal"]
    assert fields["from_published_counts"] is True
    assert fields["determined_records"] == found.revealing.counts.determined_records
    assert [one["by"] for one in fields["cells_of_few_records"]] == [
        "match and held values", "match values (strata)", "match values and tract",
    ]  # fmt: skip
    assert {one["law"] for one in fields["attacker"]["laws"]} == {"hypergeometric", "uniform"}
    text = " ".join(str(found).split())
    assert "What the published counts alone reveal" in text
    assert f"determined {fields['determined_records']:,} of 600" in text


def test_more_match_variables_make_epsilon_smaller_and_reveal_more(frame):
    candidates = [(("size", "county"), ("tract",)), (("size", "county", "tenure"), ("tract",))]
    found = check(
        plan(match=[], swap=["tract"], hold="rest"), frame, candidates=candidates, tables=[["tract", "tenure"]]
    )
    epsilons = [entry.epsilons[0][1] for entry in found.what_if]
    determined = [entry.determined_share for entry in found.what_if]
    changed = [entry.changed_shares[0][1] for entry in found.what_if]
    guessed = [entry.guessed_share for entry in found.what_if]
    assert epsilons == sorted(epsilons, reverse=True) and determined == sorted(determined) and determined[-1] > 0.9
    assert guessed == sorted(guessed) and changed == sorted(changed, reverse=True) and changed[-1] < changed[0] / 5
    by_epsilon, by_error = found.pictures()
    assert by_epsilon.lines[0].x == tuple(epsilons[::-1]) and by_epsilon.lines[0].y == tuple(determined[::-1])
    assert by_error.lines[0].x == tuple(sorted(entry.errors[0][1] for entry in found.what_if))
    assert "CONFIDENTIAL" in by_epsilon.caption
    text = " ".join(str(found).split())
    assert "determined by the published counts at any rate" in text and "is not better privacy" in text


def test_errors_of_candidates_are_those_of_a_check_of_the_candidate(frame):
    asked = {"tables": [["tract", "tenure"]], "rates": ["1/20", "1/2"]}
    (_, tried) = check(plan(), frame, candidates=[((), ("tract",))], **asked).what_if
    for (rate, error), (_, changed) in zip(tried.errors, tried.changed_shares, strict=True):
        alone = check(plan(match=[], swap=["tract"], hold="rest", rate=rate), frame, tables=asked["tables"])
        assert error == alone.tables[0].expected_mape
        assert changed == alone.movement.expected_changed_share
    assert check(plan(), frame, rates=["1/2"]).what_if[0].errors == (("1/2", None),)


def test_one_choice_is_drawn_over_rates_and_a_single_point_is_not(frame):
    (drawn,) = check(plan(), frame, rates=["1/20", "1/2", "9/10"]).pictures()
    assert drawn.name == "revealed-by-epsilon" and len(drawn.lines[0].x) == 3
    assert check(plan(), frame).pictures() == () == check(plan(), frame, rates=["1/20"]).pictures()


def test_too_many_counts_of_one_household_are_a_stop_that_says_what_would_remain(frame, tmp_path):
    fine = frame.with_columns(cell=pl.int_range(pl.len()) // 2)
    fields = {"swap": ["county", "cell"], "hold": ["tenure"], "match": ["size"], "most_alone": "1/20"}
    fine = fine.select("size", "county", "cell", "tenure")
    counts = Counter(fine.select("size", "county", "cell").iter_rows())
    alone = sum(many == 1 for many in counts.values())
    assert alone > fine.height / 2
    by_county = Counter(fine.select("size", "county").iter_rows())
    remain = 100 * sum(many == 1 for many in by_county.values()) / fine.height
    found = check(plan(**fields), fine)
    (stop,) = [one for one in found.open_stops if one.kind == "many-alone"]
    assert f"{alone:,} of {fine.height:,} records" in stop.problem
    assert f"without 'cell' {remain:.3g}%" in stop.remedy
    assert json.loads(found.to_json())["published_counts_reveal"]["alone_by_match_and_swap"] == alone
    with pytest.raises(errors.StoppedByCheck) as caught:
        draw(plan(**fields), fine)
    assert caught.value.kind == "many-alone"
    for accepted in ({"most_alone": None}, {"most_alone": 1}, {"allow": [*ALLOW, "many-alone"]}):
        assert "many-alone" not in {one.kind for one in check(plan(**fields | accepted), fine).open_stops}
    drawn = draw(plan(**fields | {"most_alone": 1}), fine)
    assert drawn.specification.fact["alone_by_match_and_swap"] == alone
    out = drawn.write(tmp_path / "out")
    assert all(verdict.holds for verdict in verify(out))
    assert f"{alone:,} records stand alone in the counts by size, county, cell" in plain_text(out / "README.txt")
    assert f"those by size, county, cell, {alone:,} are of one record" in plain_text(str(explain(out)))


def test_a_release_that_understates_its_counts_of_one_is_not_verified(frame, tmp_path):
    out = draw(plan(), frame.select("size", "county", "tract", "tenure")).write(tmp_path / "out")
    document = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    (fact,) = [one for one in document["specification"]["facts"] if one[0] == "alone_by_match_and_swap"]
    assert fact[1] > 0
    fact[1] = 0
    (out / "certificate.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / MANIFEST).unlink()
    write_manifest(out)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert "the specification follows from the plan and the released tables" in failed


def plain_text(given) -> str:
    """A text without its line breaks."""
    return " ".join((given if isinstance(given, str) else given.read_text(encoding="utf-8")).split())
