"""Several rounds from plan to verify: what is kept, what is stated, and what a recipient finds out."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import stirred
from stirred import errors, swap
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.spec import lint
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons

LATER = {"swap": ["tract"], "match_also": ["county"], "rate": "1/2"}
RULES = [{"where": {"size": ["6", "7"]}, "rate": 0.5}, {"otherwise": True, "rate": 0.1}]
MERGED = {"column": "size", "merge": [["6", "7"], ["5", "6", "7"]], "at_least": 4}


def plan(linked=False, **others):
    persons = [{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}] if linked else []
    fields = {"match": ["region", "size"], "swap": ["county", "tract"], "hold": ["tenure", "type"], "rate": "1/10"}
    fields |= {"unit": "household", "id": "household_id", "chosen_from": "public", "linked": persons, "rounds": [LATER]}
    return SwapPlan(**fields | others)


KINDS = {
    "one rate": {},
    "with persons": {"linked": True},
    "rates by rule": {"rate": None, "rates": RULES},
    "merged strata": {"coarsen": MERGED},
    "merged strata and rates by rule": {"coarsen": MERGED, "rate": None, "rates": RULES},
    "three rounds": {"rounds": [{"swap": ["county", "tract"], "rate": "1/20"}, LATER]},
}


@pytest.fixture(scope="module")
def tables():
    households, persons = households_and_persons(600)
    return {"microdata": households, "persons": persons}


ALSO = ("one rate", "rates by rule", "merged strata")
"""Kinds that others have in them."""


@pytest.fixture(
    scope="module", params=[pytest.param(one, marks=pytest.mark.slow if one in ALSO else ()) for one in KINDS]
)
def drawn(request, tables):
    own = plan(**KINDS[request.param])
    return swap.draw(own, tables if own.linked else tables["microdata"])


@pytest.fixture(scope="module")
def written(drawn, tmp_path_factory):
    return drawn.write(tmp_path_factory.mktemp("made") / "release")


def failing(release):
    return [finding.words for finding in swap.verify(release) if not finding.holds]


def test_a_release_in_rounds_holds_and_says_whose_guarantee_it_has(drawn, written):
    assert failing(written) == []
    stated = json.loads((written / "specification.json").read_text())
    facts = dict(stated["facts"])
    rounds = len(drawn.plan.rounds) + 1
    assert facts["rounds"] == rounds and "'tract' at rate 1/2 among records that also agree on" in facts["later_rounds"]
    assert "The guarantee is that of the first round alone" in stated["budget"]["conversion"]
    readme = " ".join((written / "README.txt").read_text().split())
    assert f"In round {rounds} this was repeated with what round {rounds - 1} had given" in readme
    assert "The guarantee below is that of the first round" in readme


def test_epsilon_invariants_and_universe_are_those_of_the_first_round_alone(drawn, tables):
    alone = swap.draw(drawn.plan.model_copy(update={"rounds": ()}), tables if drawn.linked else tables["microdata"])
    assert drawn.specification.budget.number == alone.specification.budget.number
    assert drawn.specification.multiverse == alone.specification.multiverse
    assert [one.margin for one in drawn.margins.counted] == [one.margin for one in alone.margins.counted]
    changed = [float(one.specification.fact["changed_share"]) for one in (drawn, alone)]
    assert changed[0] > changed[1]
    fixed = {one.specification.fact["unchangeable_share"] for one in (drawn, alone)}
    assert len(fixed) == 1


def test_counts_are_kept_and_linked_rows_follow_their_record(tables):
    tract = tables["microdata"].select("household_id", "tract")
    copied = {**tables, "persons": tables["persons"].join(tract, on="household_id")}
    drawn = swap.draw(plan(linked=True), copied)
    before, after = tables["microdata"], pl.DataFrame(drawn.frame())
    for by in (["region", "size", "tenure", "type"], ["region", "size", "county", "tract"]):
        assert Counter(before.select(by).iter_rows()) == Counter(after.select(by).iter_rows())
    joined = ["region", "size", "county", "tract", "tenure", "type"]
    assert Counter(before.select(joined).iter_rows()) != Counter(after.select(joined).iter_rows())
    places = after.select("household_id", "county", "tract")
    both = pl.DataFrame(drawn.frame("persons")).join(places, on="household_id")
    assert both["county"].to_list() == both["county_right"].to_list()
    assert both["tract"].to_list() == both["tract_right"].to_list()


ALTERED = {
    "no later rounds": lambda own: own.pop("rounds"),
    "a higher rate": lambda own: own["rounds"][-1].update(rate="3/4"),
    "a rate that changes little": lambda own: own["rounds"][-1].update(rate="50000000001/100000000000"),
    "one round more": lambda own: own["rounds"].append({"swap": ["tract"], "rate": "1/10"}),
    "fewer columns matched": lambda own: own.update(rounds=[{"swap": ["county", "tract"], "rate": "1/2"}]),
    "another first rate": lambda own: own.update(rate="1/5", rates=[]),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("forgery", ALTERED)
def test_a_plan_whose_rounds_were_altered_is_noticed(written, forgery, tmp_path):
    release = shutil.copytree(written, tmp_path / "release")
    path = release / "certificate.json"
    fields = json.loads(path.read_text())
    ALTERED[forgery](fields["plan"])
    path.write_text(json.dumps(fields, indent=2))
    write_manifest(release)
    assert any("the specification follows" in words for words in failing(release))


def test_facts_that_hide_the_later_rounds_are_noticed(written, tmp_path):
    release = shutil.copytree(written, tmp_path / "release")
    for name in ("specification.json", "certificate.json"):
        fields = json.loads((release / name).read_text())
        own = fields["specification"] if name == "certificate.json" else fields
        own["facts"] = [one for one in own["facts"] if one[0] not in ("rounds", "later_rounds")]
        (release / name).write_text(json.dumps(fields, indent=2))
    write_manifest(release)
    assert any("the specification follows" in words for words in failing(release))


def test_the_plan_goes_through_a_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(plan().to_toml())
    again = SwapPlan.from_toml(path)
    assert again == plan() and again.rounds[0].rate == Fraction(1, 2)
    assert again.hash() != plan(rounds=[]).hash()


ASKED = [["county", "tenure"], ["region", "county"], ["size", "tenure"]]


def test_the_check_says_whose_epsilon_it_is_and_what_is_kept(tables):
    found = swap.check(plan(), tables["microdata"], tables=ASKED, rates=["1/20"])
    text = " ".join(str(found).split())
    assert "Table by 'county' and 'tenure': true count, expected count" in text
    assert "Table by 'region' and 'county': kept exactly." in text
    assert "Table by 'size' and 'tenure': kept exactly." in text
    assert "rounds 2; epsilon and invariants are those of the first" in text
    assert "one round alone" in text
    assert found.epsilon == epsilon(found.strata.largest, Fraction(1, 10))


def test_tables_are_not_forecast_with_several_rounds_and_rates_by_rule_unless_they_are_kept(tables):
    found = swap.check(plan(rate=None, rates=RULES), tables["microdata"], tables=ASKED)
    text = " ".join(str(found).split())
    assert "Table by 'county' and 'tenure': not forecast. With rates by rule" in text
    assert "Table by 'region' and 'county': kept exactly." in text
    assert [table.by for table in found.tables] == [("region", "county"), ("size", "tenure")]
    fields = json.loads(found.to_json())
    assert fields["tables_not_forecast"] == [{"by": ["county", "tenure"]}]


def test_persons_sums_and_weights_are_not_forecast_with_several_rounds(tables):
    asked = {"by": ["county"], "sum": "size"}
    found = swap.check(plan(), tables["microdata"], tables=[asked])
    assert found.tables == () and [one.sum for one in found.not_forecast] == ["size"]


@pytest.mark.parametrize("others", [{}, {"rate": None, "rates": RULES}], ids=["rounds", "rounds and rates by rule"])
def test_sums_of_persons_and_records_by_held_columns_are_kept_whatever_the_rounds(tables, others):
    asked = [{"by": ["region", "tenure"], "sum": "size"}, {"table": "persons", "by": ["tenure", "sex"]}]
    found = swap.check(plan(linked=True, **others), tables, tables=asked)
    assert found.not_forecast == () and [table.is_invariant for table in found.tables] == [True, True]
    assert "Table by 'region' and 'tenure', sum of 'size': kept exactly." in " ".join(str(found).split())


def test_numbers_of_linked_rows_by_place_are_not_shown_as_true(tables, tmp_path, command):
    publish = [{"table": "persons", "by": ["county"]}]
    own = plan(linked=True, match=["region"], hold=["tenure", "type", "size"], rounds=[], publish=publish)
    stirred.release(own, tables, out=tmp_path / "release")
    said = command("tabulate", tmp_path / "release", "--table", "persons", "--by", "county").err
    assert "not the true ones" in said and "--by county --table persons" in said
    assert not command("tabulate", tmp_path / "release", "--table", "persons", "--by", "sex").err
    text = " ".join((tmp_path / "release" / "README.txt").read_text().split())
    assert "counts of linked rows by 'county' and 'tract' are among them" in text


@pytest.mark.parametrize(
    ("rounds", "again"),
    [([LATER], "'tract'"), ([{"swap": ["county", "tract"], "rate": "1/20"}, LATER], "'county' and 'tract'")],
    ids=["tracts again", "all again"],
)
def test_readme_and_tables_name_what_corrects_them(tables, tmp_path, command, rounds, again):
    stirred.release(plan(rounds=rounds, swap=["county", "tract"]), tables["microdata"], out=tmp_path / "release")
    text = " ".join((tmp_path / "release" / "README.txt").read_text().split())
    assert f"Those by {again} are weakened further" in text
    assert "stirred estimate FOLDER --by county,tenure gives counts with intervals" in text
    assert f"Linear regressions (--regress) are not offered for {again}" in text
    for asked in ("county,tenure", "tract,tenure"):
        said = command("tabulate", tmp_path / "release", "--by", asked).err
        assert f"stirred estimate {tmp_path / 'release'} --by {asked}" in said
        answer = command("estimate", tmp_path / "release", "--by", asked)
        assert not answer.code
        assert ("draws of the published law" in answer.out) == (asked.startswith("tract") or len(rounds) > 1)


def test_linked_rows_by_what_is_swapped_again_are_estimated_and_not_called_exact(tables, tmp_path):
    own = plan(linked=True, match=["region"], hold=["tenure", "type", "size"])
    stirred.release(own, tables, out=tmp_path / "release")
    by_tract = stirred.estimate(tmp_path / "release", by=["tract"], table="persons")
    assert "simulated" in by_tract.kinds and np.isfinite(by_tract.values).any()
    assert "simulated" not in stirred.estimate(tmp_path / "release", by=["county"], table="persons").kinds
    assert set(stirred.estimate(tmp_path / "release", by=["tract"]).kinds) == {"known"}  # records by tract are kept


def test_lint_compares_what_changes_with_what_all_rounds_select(tables):
    """Nine of ten records are selected in round 2, where next to nothing can change."""
    single = tables["microdata"].with_columns(pl.col("county").alias("tract"))
    later = [{"swap": ["tract"], "match_also": ["county"], "rate": "9/10"}]
    drawn = swap.draw(plan(rate="1/20", rounds=later, allow=["few-change"]), single, source=SeededSource(3))
    assert drawn.specification.fact["selected_share"] == "0.905"
    assert "few-change" in {finding.id for finding in lint(drawn.specification)}


def test_explained_by_the_first_round_and_pairs_are_not_computed(written):
    said = stirred.explain(written)
    assert said.statement("noticed.rounds") and said.section("noticed")[0].id == "noticed.worst"
    assert not [one for one in said.statements if one.id in ("noticed.both", "noticed.unique", "noticed.typical")]
    with pytest.raises(errors.StirredError, match="one rate, in one round"):
        stirred.explain(written, pairs=["county=A;county=B"])
