"""Uniques that stay in place, against every permutation of a stratum; rules that look at rows of linked tables."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from rates_oracle import permutation_chances, reselecting
from swap_oracle import permutations

from stirred import errors, estimate, explain, swap
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.checking.movement import movement_of, stay_probabilities
from stirred.swap.data.counting import count_margins, rates_of_dataset, strata_of_dataset
from stirred.swap.data.dataset import load
from stirred.swap.data.released_files import read_files
from stirred.swap.law.permutation import later_rounds
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify
from stirred.tables.synthetic import households_and_persons

KEYS = ["tenure", "age", "sex"]
RULES = [
    {"table": "persons", "unique_on": KEYS, "at_most": 2, "rate": "1/2"},
    {"table": "persons", "where": {"education": ["tertiary"], "size": ["2"]}, "rate": "1/5"},
    {"table": "persons", "where": {"sex": ["female"]}, "unique_on": ["age", "relation"], "at_most": 6, "rate": "1/4"},
    {"otherwise": True, "rate": "1/20"},
]


def plan(**changes) -> SwapPlan:
    fields = {
        "unit": "household", "match": ["size"], "swap": ["county"], "hold": ["tenure", "tag"], "rates": RULES,
        "drop": ["region", "tract"], "id": "household_id", "chosen_from": "public", "allow": ["distinct:tag"],
        "linked": [{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest", "drop": ["type"]}],
    }  # fmt: skip
    return SwapPlan(**fields | changes)


@pytest.fixture(scope="module")
def tables():
    households, persons = households_and_persons(500)
    # tag tells households apart, so that those of the release are found again; persons have a type of their own
    households = households.with_columns(tag=pl.format("t{}", "household_id")).drop("type")
    return {"microdata": households, "persons": persons.with_columns(type=pl.lit("x"))}


@pytest.fixture(scope="module")
def released(tables, tmp_path_factory):
    return swap.draw(plan(), tables).write(tmp_path_factory.mktemp("rules") / "out")


def rules_by_hand(households: pl.DataFrame, persons: pl.DataFrame, id: str) -> dict[str, Fraction]:
    """The rate of every household by its tag, by loops over persons."""
    of_household = {row[id]: row for row in households.to_dicts()}
    rows = [{**of_household[row[id]], **row} for row in persons.to_dicts()]
    alike = Counter(tuple(str(row[name]) for name in KEYS) for row in rows)
    related = Counter((row["age"], row["relation"]) for row in rows)
    found = {}
    for key, household in of_household.items():
        own = [row for row in rows if row[id] == key]
        if any(alike[tuple(str(row[name]) for name in KEYS)] <= 2 for row in own):
            rate = Fraction(1, 2)
        elif any(row["education"] == "tertiary" and str(row["size"]) == "2" for row in own):
            rate = Fraction(1, 5)
        elif any(row["sex"] == "female" and related[row["age"], row["relation"]] <= 6 for row in own):
            rate = Fraction(1, 4)
        else:
            rate = Fraction(1, 20)
        found[household["tag"]] = rate
    return found


def rates_by_tag(table, rates) -> dict[str, Fraction]:
    texts = table["tag"].texts()
    return {texts[code]: rates.rates[rule] for code, rule in zip(table["tag"].codes, rates.rule, strict=True)}


def test_a_rule_fits_a_household_that_has_such_a_person(tables):
    dataset = load(plan(), tables)
    found = rates_by_tag(dataset.table, rates_of_dataset(dataset))
    assert found == rules_by_hand(tables["microdata"], tables["persons"], "household_id")
    assert len(Counter(found.values())) == len(RULES)


def test_the_rate_of_every_household_computed_from_the_release_is_that_of_the_input(tables, released):
    files = read_files(ReleaseFolder.open(released), plan())
    found = rates_by_tag(files.data.table, rates_of_dataset(files.data))
    assert found == rules_by_hand(tables["microdata"], tables["persons"], "household_id")
    before = {row["tag"]: row["county"] for row in tables["microdata"].to_dicts()}
    texts, tags = files.data.table["county"].texts(), files.data.table["tag"].texts()
    moved = sum(
        before[tags[tag]] != texts[county]
        for tag, county in zip(files.data.table["tag"].codes, files.data.table["county"].codes, strict=True)
    )
    assert moved > 20  # so that rates that looked at places would have changed


def test_a_release_with_rules_about_persons_is_verified_estimated_and_explained(released):
    assert all(verdict.holds for verdict in verify(released))
    assert len(estimate(released, ["county", "tenure"]))
    assert str(explain(released))
    words = " ".join((released / "README.txt").read_text(encoding="utf-8").split())
    assert (
        "1/2 for records with a row of persons whose 'tenure', 'age' and 'sex' at most 2 rows of persons share" in words
    )
    assert "1/5 for records with a row of persons in which 'education' is tertiary and in which 'size' is 2" in words


def test_a_flat_file_has_the_same_rates_as_two(tables):
    flat = tables["persons"].drop("county").join(tables["microdata"], on="household_id")
    linked = [{"name": "persons", "link": "household_id", "id": "person_id", "flat": True, "drop": ["type"],
               "hold": ["age", "sex", "relation", "education"]}]  # fmt: skip
    one = load(plan(linked=linked), flat)
    two = load(plan(), tables)
    assert rates_by_tag(one.table, rates_of_dataset(one)) == rates_by_tag(two.table, rates_of_dataset(two))


# -- in place ------------------------------------------------------------------------------------------------


SIZES, PLACES, HELD = [1] * 5 + [2] * 3 + [3], list("aabbcddde"), list("xyxyzxyzx")


def small(**changes) -> SwapPlan:
    fields = {"match": ["size"], "swap": ["place"], "hold": ["held"], "chosen_from": "public"}
    return SwapPlan(**fields | {"allow": ["few-change", "many-unchangeable"]} | changes)


def stays_by_enumeration(rates: list[Fraction], places: list[str]) -> list[Fraction]:
    chances = permutation_chances(reselecting(rates), len(rates))
    every = permutations(len(rates))[0]
    return [
        sum(
            (chance for sigma, chance in zip(every, chances, strict=True) if places[sigma[i]] == places[i]), Fraction(0)
        )
        for i in range(len(rates))
    ]


@pytest.mark.parametrize("by_rule", [False, True])
def test_staying_in_place_is_that_of_all_permutations(by_rule):
    frame = pl.DataFrame({"size": SIZES, "place": PLACES, "held": HELD})
    rates = (
        {"x": Fraction(1, 2), "y": Fraction(1, 10), "z": Fraction(1, 10)}
        if by_rule
        else dict.fromkeys("xyz", Fraction(1, 5))
    )
    rules = {"rates": [{"where": {"held": ["x"]}, "rate": "1/2"}, {"otherwise": True, "rate": "1/10"}]}
    dataset = load(small(**rules if by_rule else {"rate": "1/5"}), frame)
    strata = strata_of_dataset(dataset, count_margins(dataset))
    found = stay_probabilities(dataset, strata, rates_of_dataset(dataset), None)
    wanted = stays_by_enumeration([rates[one] for one in HELD[:5]], PLACES[:5])
    assert found == pytest.approx([*map(float, wanted), *[1.0] * 4], abs=1e-12)  # one place, and one household
    asked = swap.check(dataset.plan, frame, uniques=[["place"], ["size", "held"], {"by": ["size"]}])
    by_place, by_held, by_size = asked.uniques_on
    assert (by_place.unique, by_held.unique, by_size.unique) == (2, 5, 1)
    assert by_place.in_place == pytest.approx(float(wanted[4]) + 1)
    assert by_held.in_place == pytest.approx(float(wanted[4]) + 4)
    assert "Uniques on the keys asked for" in str(asked)
    assert json.loads(asked.to_json())["uniques_on"][0]["keys"] == {"by": ["place"]}


def test_what_does_not_stay_is_what_is_expected_to_change(tables):
    households = tables["microdata"]
    fields = {
        "match": ["size"],
        "swap": ["region", "county", "tract"],
        "hold": ["tenure"],
        "drop": ["tag", "household_id"],
    }
    fields |= {"rate": "1/5", "rounds": [{"swap": ["county", "tract"], "match_also": ["region"], "rate": "1/10"}]}
    for changes in ({}, {"rounds": []}):
        dataset = load(small(**fields | changes), households)
        margins = count_margins(dataset)
        strata, later = strata_of_dataset(dataset, margins), later_rounds(dataset.plan, dataset.counted)
        stays = stay_probabilities(dataset, strata, None, later)
        movement = movement_of(strata, margins.swapped, Fraction(1, 5), later)
        assert np.mean(1 - stays) == pytest.approx(movement.expected_changed_share)
    rules = {
        "rate": None,
        "rates": [{"where": {"tenure": ["owned"]}, "rate": "1/2"}, {"otherwise": True, "rate": "1/5"}],
    }
    found = swap.check(small(**fields | rules), households, uniques=[["tenure"]])
    assert found.uniques_on[0].in_place is None and "not computed" in str(found)


def test_unique_persons_are_counted_with_the_columns_of_their_household(tables):
    found = swap.check(plan(), tables, uniques=[{"by": ["tenure", "age", "sex"], "table": "persons"}]).uniques_on[0]
    rows = tables["persons"].join(tables["microdata"].select("household_id", "tenure"), on="household_id")
    alone = rows.filter(pl.len().over("tenure", "age", "sex") == 1)
    assert (found.rows, found.unique) == (rows.height, alone.height)
    assert found.records == alone["household_id"].n_unique()
    dataset = load(plan(), tables)
    strata = strata_of_dataset(dataset, count_margins(dataset))
    stays = stay_probabilities(dataset, strata, rates_of_dataset(dataset), None)
    ids = {key: row for row, key in enumerate(tables["microdata"]["household_id"])}
    assert found.in_place == pytest.approx(sum(stays[ids[key]] for key in alone["household_id"]))


def test_uniques_are_asked_for_on_the_command_line(tables, tmp_path, command):
    for name, frame in tables.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "plan.toml").write_text(
        'stirred = 1\nmechanism = "swap"\nunit = "household"\nrate = 0.05\nmatch = ["size"]\nswap = ["county"]\n'
        'hold = ["tenure"]\ndrop = ["region", "tract", "tag"]\nid = "household_id"\n[input]\npath = "microdata.csv"\n'
        '[[linked]]\nname = "persons"\nlink = "household_id"\nid = "person_id"\nhold = "rest"\n'
        '[linked.input]\npath = "persons.csv"\n'
    )
    ended = command("check", tmp_path / "plan.toml", "--uniques", "age,sex,tenure;table=persons", "--uniques", "tenure")
    assert ended.code == 0 and "age, sex, tenure" in ended.out and "expected to stay in place" in ended.out
    wrong = command("check", tmp_path / "plan.toml", "--uniques", "age;table=persons;sum=age")
    assert wrong.code == 2 and "with a sum or a weight" in wrong.err
    with pytest.raises(errors.StirredError):
        swap.check(plan(), tables, uniques=[["no such column"]])
