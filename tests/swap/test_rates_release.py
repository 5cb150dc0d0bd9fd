"""Rates by rule from plan to verify: who gets which rate, what is stated, and what a recipient computes again."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from rates_oracle import permutation_chances, reselecting
from swap_oracle import permutations

import stirred
from stirred import errors, swap
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.spec import lint
from stirred.swap.checking.movement import movement_of, rule_effects
from stirred.swap.data.counting import RatesByStratum, count_margins, rates_of_dataset, strata_of_dataset
from stirred.swap.data.dataset import load
from stirred.swap.law.moments import (
    cell_moments,
    moved_probabilities,
    received_probabilities,
    stratum_constants,
    unequal_cell_moments,
)
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons

HALF, TENTH, LOW = Fraction(1, 2), Fraction(1, 10), Fraction(1, 50)
RULES = [
    {"where": {"size": [4, "5"], "tenure": ["owned"]}, "rate": "3/10"},
    {"unique_on": "held", "rate": 0.5},
    {"unique_on": ["tenure", "type"], "at_most": 60, "rate": 0.1},
    {"otherwise": True, "rate": 0.02},
]


def plan(rules=RULES, linked=False, **others):
    persons = [{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}] if linked else []
    fields = {"match": ["region", "size"], "swap": ["county", "tract"], "hold": ["tenure", "type"]}
    fields |= {"unit": "household", "id": "household_id", "chosen_from": "public", "rates": rules, "linked": persons}
    return SwapPlan(**fields | others)


@pytest.fixture(scope="module")
def tables():
    households, persons = households_and_persons(600)
    return {"microdata": households, "persons": persons}


def rates_by_hand(households, persons=None):
    """The rate of every record, by loops."""
    rows = households.to_dicts()
    own = {row["household_id"]: [] for row in rows}
    for person in persons.to_dicts() if persons is not None else ():
        key = person.pop("household_id")
        person.pop("person_id"), person.pop("county", None), person.pop("tract", None)
        own[key].append(tuple(map(str, person.values())))
    kept = [
        (row["region"], row["size"], row["tenure"], row["type"], tuple(sorted(own[row["household_id"]])))
        for row in rows
    ]
    sharing = Counter(kept)
    two = Counter((row["tenure"], row["type"]) for row in rows)
    found = []
    for row, record in zip(rows, kept, strict=True):
        if str(row["size"]) in ("4", "5") and row["tenure"] == "owned":
            found.append(Fraction(3, 10))
        elif sharing[record] == 1:
            found.append(HALF)
        else:
            found.append(TENTH if two[row["tenure"], row["type"]] <= 60 else LOW)
    return found


@pytest.mark.parametrize("linked", [False, True])
def test_every_record_has_the_rate_of_the_first_rule_that_fits(tables, linked):
    dataset = load(plan(linked=linked), tables if linked else tables["microdata"])
    rates = rates_of_dataset(dataset)
    expected = rates_by_hand(tables["microdata"], tables["persons"] if linked else None)
    assert [rates.rates[rule] for rule in rates.rule] == expected
    assert len(set(expected)) > 1


def test_epsilon_is_the_theorems_over_all_strata(tables):
    found = swap.check(plan(), tables["microdata"])
    rates = rates_by_hand(tables["microdata"])
    rows = tables["microdata"].to_dicts()
    worst = 0.0
    for stratum in {(row["region"], row["size"]) for row in rows}:
        inside = [i for i, row in enumerate(rows) if (row["region"], row["size"]) == stratum]
        held = {(rows[i]["tenure"], rows[i]["type"]) for i in inside}
        if len(held) > 1 and len({(rows[i]["county"], rows[i]["tract"]) for i in inside}) > 1:
            odds = [float(rates[i] / (1 - rates[i])) for i in inside]
            worst = max(worst, math.log(len(inside) + 1) - math.log(min(odds)), math.log(max(odds)))
    assert found.epsilon == pytest.approx(worst, rel=1e-14)
    assert found.epsilon == max(one.epsilon for one in found.rules.rules)


def test_rates_do_not_depend_on_the_swap_variables(tables):
    """A recipient computes them from a file whose swap variables have moved."""
    moved = tables["microdata"].with_columns(pl.col("county").shuffle(1), pl.col("tract").shuffle(2))
    first, second = (rates_of_dataset(load(plan(), data)) for data in (tables["microdata"], moved))
    assert np.array_equal(first.rule, second.rule)


# -- from plan to verify -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["households", "with persons"])
def written(request, tables, tmp_path_factory):
    drawn = swap.draw(
        plan(linked=request.param, allow=["few-change"]), tables if request.param else tables["microdata"]
    )
    return drawn.write(tmp_path_factory.mktemp("made") / "release")


@pytest.fixture
def release(written, tmp_path):
    return shutil.copytree(written, tmp_path / "release")


def failing(release):
    return [finding.words for finding in swap.verify(release) if not finding.holds]


def test_a_release_holds_and_states_its_rules(release):
    assert failing(release) == []
    stated = dict(json.loads((release / "specification.json").read_text())["facts"])
    assert "3/10 where 'size' is 4 or 5 and where 'tenure' is owned" in stated["rates"]
    assert "rate" not in stated
    assert "unique on match and held values" in (release / "README.txt").read_text().replace("\n", " ")


def test_a_rule_that_is_not_the_one_used_is_noticed(release):
    """The certificate's plan says 60% for all records; the epsilon that is stated does not follow from it."""
    path = release / "certificate.json"
    fields = json.loads(path.read_text())
    for rule in fields["plan"]["rates"]:
        rule["rate"] = "3/5"
    path.write_text(json.dumps(fields, indent=2))
    write_manifest(release)
    said = failing(release)
    assert any("epsilon recomputed" in words or "states an epsilon of" in words for words in said)
    assert any("the specification follows" in words for words in said)


def test_facts_of_rules_are_understood_by_the_lint(tables):
    def named(rules):
        found = swap.check(plan(rules), tables["microdata"]).specification
        return {finding.id for finding in lint(found)}

    assert "rate-above-best" not in named(RULES)
    assert "rate-above-best" in named([{"unique_on": "held", "rate": 0.99}, {"otherwise": True, "rate": 0.97}])


def test_a_plan_with_rules_is_the_same_after_writing_and_reading(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(plan().to_toml())
    assert SwapPlan.from_toml(path) == plan() == SwapPlan.from_published(plan().published())
    assert plan().hash() != plan(RULES[1:]).hash()


def test_a_stop_compares_with_the_mean_rate():
    """Strata of two at 2%: next to nothing changes."""
    rows = [(i, i // 2, "ab"[i % 2], "xy"[i % 2]) for i in range(40)]
    data = pl.DataFrame(rows, schema=["id", "m", "s", "h"], orient="row")
    rules = [{"otherwise": True, "rate": 0.02}]
    own = SwapPlan(match=["m"], swap=["s"], hold=["h"], id="id", rates=rules, allow=["determines:h", "tells:h"])
    with pytest.raises(errors.StoppedByCheck, match="at a rate of 2%"):
        swap.draw(own, data, source=SeededSource(1))


# -- how records move ----------------------------------------------------------------------------------------


MIXES = [(0, 1), (0, 0, 1), (0, 1, 2), (1, 1, 2, 2), (0, 0, 0, 1, 2)]
RATES = (LOW, HALF, Fraction(9, 10))


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_moving_and_receiving_match_enumeration(mix):
    n = len(mix)
    chances = permutation_chances(reselecting([RATES[k] for k in mix]), n)
    every, _ = permutations(n)
    strata = RatesByStratum(RATES, np.array([np.bincount(mix, minlength=3)]))
    moved, received = moved_probabilities(strata)[0], received_probabilities(strata)[0]
    for i in range(n):
        exact = sum(chance for sigma, chance in zip(every, chances, strict=True) if sigma[i] != i)
        assert moved[mix[i]] == pytest.approx(float(exact), rel=1e-13)
        for j in range(n):
            if i != j:
                exact = sum(chance for sigma, chance in zip(every, chances, strict=True) if sigma[i] == j)
                assert received[mix[i], mix[j]] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("counts", [(10**6, 1000, 3), (5, 1, 0), (10**7, 0, 1), (0, 2, 10**5), (1, 1, 0)])
def test_a_record_receives_from_someone_exactly_when_it_moves(counts):
    strata = RatesByStratum(RATES, np.array([counts]))
    received = received_probabilities(strata)[0]
    total = received @ counts - np.diag(received)
    present = np.array(counts) > 0
    assert total[present] == pytest.approx(moved_probabilities(strata)[0][present], rel=1e-12)


@pytest.mark.parametrize("sizes", [[1, 2, 5, 100, 10**6]])
def test_equal_rates_move_as_one_rate_does(sizes):
    from stirred.swap.law.theorem import moved_probability

    counts = np.array([[size - size // 2, size // 2] for size in sizes])
    moved = moved_probabilities(RatesByStratum((TENTH, TENTH), counts))
    for row, size in zip(moved, sizes, strict=True):
        assert row[0] == pytest.approx(moved_probability(size, TENTH), rel=1e-13)


def small(swapped, held):
    data = pl.DataFrame({"id": range(len(held)), "m": "a", "s": swapped, "h": held})
    return load(small_plan(), data)


def small_plan():
    rules = [{"where": {"h": ["x"]}, "rate": "1/2"}, {"where": {"h": ["y"]}, "rate": "9/10"}]
    return SwapPlan(match=["m"], swap=["s"], hold=["h"], id="id", rates=[*rules, {"otherwise": True, "rate": "1/50"}])


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("swapped", "held"), [("ab", "xy"), ("aabbc", "xxyzz"), ("abcab", "xyyzx"), ("aaabbc", "xzzyzx"), ("aab", "zzz")]
)
def test_expected_shares_match_enumeration(swapped, held):
    """By rule exactly; for a release on average over all ways of giving the swap values to the records."""
    dataset = small(list(swapped), list(held))
    margins = count_margins(dataset, prints=False)
    strata, rates = strata_of_dataset(dataset, margins), rates_of_dataset(dataset)
    by_stratum = rates.by_stratum(dataset.strata)
    n = len(held)
    each = [{"x": HALF, "y": Fraction(9, 10), "z": LOW}[h] for h in held]
    law = list(zip(permutations(n)[0], permutation_chances(reselecting(each), n), strict=True))

    def changed(values, rows):
        return float(sum(chance * sum(values[sigma[i]] != values[i] for i in rows) for sigma, chance in law))

    effects = rule_effects(dataset, strata, rates, by_stratum)
    for kind, effect in zip("xyz", effects.rules, strict=True):
        rows = [i for i in range(n) if held[i] == kind]
        expected = changed(swapped, rows) / len(rows) if rows and len(set(held)) > 1 else 0.0
        assert effect.changed_share == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert effect.records == len(rows)
        assert effect.unique == (len(rows) == 1)
    movement = movement_of(strata, margins.swapped, by_stratum)
    if len(set(held)) > 1:
        dealt = [[swapped[i] for i in order] for order in permutations(n)[0]]
        mean = sum(changed(values, range(n)) for values in dealt) / len(dealt) / n
        assert movement.expected_changed_share == pytest.approx(mean, rel=1e-12)
    moves = float(sum(chance * sum(sigma != range(n)) for sigma, chance in law)) / n
    assert movement.expected_share == pytest.approx(moves, rel=1e-12)


# -- tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 7))
def test_moments_of_cells_match_enumeration(n):
    generator = np.random.default_rng(n)
    every = permutations(n)[0]
    for _ in range(12):
        rules, held, swapped = (generator.integers(0, high, n) for high in (3, 2, 2))
        chances = permutation_chances(reselecting([RATES[k] for k in rules]), n) if n > 1 else [Fraction(1)]
        cell = (held * swapped[every]).sum(axis=1)
        mean = sum(chance * int(z) for chance, z in zip(chances, cell, strict=True))
        variance = sum(chance * int(z) ** 2 for chance, z in zip(chances, cell, strict=True)) - mean**2
        whole, h, s, both = (
            np.bincount(rules, weights=weights, minlength=3).astype(np.int64)[None, :]
            for weights in (np.ones(n), held, swapped, held * swapped)
        )
        found = unequal_cell_moments(RatesByStratum(RATES, whole), np.zeros(1, dtype=np.int64), h, s, both)
        assert float(found[0][0]) == pytest.approx(float(mean), abs=1e-13)
        assert float(found[1][0]) == pytest.approx(float(variance), abs=1e-13)


@pytest.mark.parametrize(("n", "h", "s", "x"), [(60, 20, 30, 15), (1000, 300, 40, 29), (10**6, 300_000, 2000, 1000)])
def test_two_classes_of_one_rate_have_the_moments_of_one_rate(n, h, s, x):
    parts = [np.array([[count - count // 4, count // 4]]) for count in (n, h, s, x)]
    strata = RatesByStratum((TENTH, TENTH), parts[0])
    mean, variance = unequal_cell_moments(strata, np.zeros(1, dtype=np.int64), *parts[1:])
    expected = cell_moments(stratum_constants([n], TENTH), n, h, s, x)
    assert mean[0] == pytest.approx(float(expected[0]), rel=1e-12)
    assert variance[0] == pytest.approx(float(expected[1]), rel=1e-6)


def test_a_table_of_strata_with_different_rates_is_forecast_as_enumeration_says():
    """Two strata: one whose records have different rates, one with a single rate, which add."""
    held, swapped = "xxyzzxx", "aabbcab"
    rows = [(i, "12"[i > 4], s, h) for i, (h, s) in enumerate(zip(held, swapped, strict=True))]
    data = pl.DataFrame(rows, schema=["id", "m", "s", "h"], orient="row")
    (table,) = swap.check(small_plan(), data, tables=[["h", "s"]]).tables
    of_rate = {"x": HALF, "y": Fraction(9, 10), "z": LOW}
    for label, mean, variance in zip(table.labels, table.mean, table.variance, strict=True):
        moments = []
        for part in (slice(0, 5), slice(5, 7)):
            h, s = held[part], swapped[part]
            chances = permutation_chances(reselecting([of_rate[one] for one in h]), len(h))
            law = Counter()
            for sigma, chance in zip(permutations(len(h))[0], chances, strict=True):
                law[sum((one, s[j]) == label for one, j in zip(h, sigma, strict=True))] += chance
            first = sum(chance * z for z, chance in law.items())
            moments.append((first, sum(chance * z * z for z, chance in law.items()) - first**2))
        assert mean == pytest.approx(float(sum(one for one, _ in moments)), rel=1e-12)
        assert variance == pytest.approx(float(sum(two for _, two in moments)), abs=1e-12)


def test_rates_by_stratum_have_the_forecasts_of_each_rate(tables):
    by_match = [{"where": {"size": ["1", "2"]}, "rate": 0.5}, {"otherwise": True, "rate": 0.1}]
    found = swap.check(plan(by_match), tables["microdata"], tables=[["county", "tenure"]])
    small_sizes = pl.col("size").cast(pl.String).is_in(["1", "2"])
    sums = Counter()
    for rate, part in ((HALF, small_sizes), (TENTH, ~small_sizes)):
        own = plan((), rate=rate)
        (table,) = swap.check(own, tables["microdata"].filter(part), tables=[["county", "tenure"]]).tables
        for label, mean, variance in zip(table.labels, table.mean, table.variance, strict=True):
            sums[label, "mean"] += mean
            sums[label, "variance"] += variance
    (table,) = found.tables
    for label, mean, variance in zip(table.labels, table.mean, table.variance, strict=True):
        assert mean == pytest.approx(sums[label, "mean"], rel=1e-12)
        assert variance == pytest.approx(sums[label, "variance"], rel=1e-9)


def test_check_shows_the_rules_and_what_they_do_to_unique_records(tables):
    found = swap.check(plan(), tables["microdata"], tables=[["county", "tenure"], ["region", "tenure"]])
    (low,) = swap.check(plan((), rate=LOW), tables["microdata"], tables=[["county", "tenure"]]).tables
    assert found.mape_at_last_rate == (low.expected_mape, 0.0)
    assert found.tables[1].is_invariant
    assert found.tables[0].expected_mape > low.expected_mape
    said = " ".join(str(found).split())
    assert f"At one rate of 1/50 for all it would be {low.expected_mape:.4f}" in said
    assert f"Of the {found.uniques.on_held:,} unique records" in said
    assert "At one rate of 1/50 for all" in said
    assert found.rules.unique_moved_share > 5 * found.rules.unique_moved_share_at_last_rate
    assert json.loads(found.to_json())["rules"]["rules"][1]["rate"] == "1/2"


# -- estimates ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_small_strata(tmp_path_factory):
    """A release with rates by rule: a large stratum, and small ones of which some have nobody who rents."""
    rows = [(f"m{m}", "ab"[i % 2], tenure, kind) for m in range(6) for i, (tenure, kind) in enumerate(
        [("owned", "x"), ("owned", "y"), ("rented" if m % 2 else "owned", "x"), ("owned", "y")])]  # fmt: skip
    rows += [("large", "abc"[i % 3], "rented" if i % 5 < 2 else "owned", "xy"[i % 7 < 3]) for i in range(120)]
    data = pl.DataFrame(rows, schema=["area", "county", "tenure", "kind"], orient="row")
    rules = [{"where": {"kind": ["x"]}, "rate": "1/2"}, {"otherwise": True, "rate": "1/20"}]
    made = SwapPlan(match=["area"], swap=["county"], hold=["tenure", "kind"], rates=rules, chosen_from="public")
    folder = tmp_path_factory.mktemp("small") / "release"
    return swap.draw(made, data, source=SeededSource(2)).write(folder, for_tests=True), data


@pytest.mark.parametrize("options", [{}, {"share": "county"}, {"difference": ("county", "a", "b")}])
def test_a_condition_that_nobody_of_a_stratum_meets_is_answered(with_small_strata, options):
    folder, _ = with_small_strata
    found = stirred.estimate(folder, ["county"], where={"tenure": ["rented"]}, **options)
    assert len(found) == (1 if "difference" in options else 3)
    if not options:
        two = {"tenure": ["rented"], "area": ["m0", "m1"]}  # one renter in all
        assert (stirred.estimate(folder, where=two, places=[("county", "a")]).interval()[1] <= 1).all()


def test_what_is_only_bounded_has_an_interval_and_no_number(with_small_strata):
    folder, data = with_small_strata
    found = stirred.estimate(folder, ["county", "tenure"])
    truth = data.group_by("county", "tenure").len().sort("county", "tenure")["len"].to_numpy()
    lower, upper = found.interval(0.9999)
    bounded = np.array(found.kinds) == "bounded"
    assert bounded.any() and np.isnan(found.values[bounded]).all()
    assert np.all((lower <= truth) & (truth <= upper))
    frame, entries = found.to_frame(), json.loads(found.to_json())["estimates"]
    for at in np.flatnonzero(bounded).tolist():
        row, entry, shown = frame.row(at, named=True), entries[at], found.rows()[at + 1]
        assert row["estimate"] is None and row["standard_error"] is None and math.isfinite(row["lower"])
        assert entry["estimate"] is None and entry["standard_error"] is None and entry["lower"] == row["lower"]
        assert shown[2:4] == ("-", "-") and "to" in shown[4]
    assert not any("unbiased" in line for line in found.kind_lines())


def test_numbers_put_together_from_bounded_counts_have_the_interval_that_their_bounds_allow(with_small_strata):
    folder, _ = with_small_strata
    counts = stirred.estimate(folder, ["county", "tenure"])
    lower, upper = (dict(zip(counts.labels, ends, strict=True)) for ends in counts.interval())
    apart = stirred.estimate(folder, ["tenure"], difference=("county", "a", "b"))
    assert apart.kinds == ("bounded", "bounded") and np.isnan(apart.values).all()
    for at, (tenure,) in enumerate(apart.labels):
        assert apart.interval()[0][at] <= lower["a", tenure] - upper["b", tenure] + 1
        assert apart.interval()[1][at] >= upper["a", tenure] - lower["b", tenure] - 1
    odds = stirred.estimate(folder, odds_ratio=(("county", "a", "b"), ("tenure", "owned", "rented")))
    low, high = odds.interval()
    assert odds.kinds == ("bounded",) and 0 < low[0] < high[0] < np.inf


def test_what_the_rule_looks_at_is_estimated_in_small_strata_too(with_small_strata):
    found = stirred.estimate(with_small_strata[0], ["county", "kind"])
    assert set(found.kinds) == {"normal"} and np.isfinite(found.standard_errors).all()


def test_check_warns_of_values_in_rules_that_no_row_has(tables):
    rules = [
        {"where": {"tenure": ["ownd", "owned"]}, "rate": 0.5},
        {"table": "persons", "where": {"sex": ["woman"], "tenure": ["owned"]}, "rate": 0.2},
        {"otherwise": True, "rate": 0.1},
    ]
    found = swap.check(plan(rules, linked=True), tables)
    assert found.rules.values_nobody_has == (("tenure", "ownd"), ("sex", "woman"))
    said = " ".join(str(found).split())
    assert "rules name values that no row of the data has: 'ownd' of 'tenure', 'woman' of 'sex'." in said
    assert "no row of the data has" not in str(swap.check(plan(), tables["microdata"]))


def test_check_says_that_columns_in_a_row_are_tables_of_their_own(tables):
    said = " ".join(str(swap.check(plan(publish=["county", "tenure"]), tables["microdata"])).split())
    assert "publish has 2 tables, each by one column: county, tenure." in said
    assert 'For one table by all of them write publish = [["county", "tenure"]].' in said
    for meant in ([["county", "tenure"]], ["county"], ["county", ["county", "tenure"]]):
        assert "publish has" not in str(swap.check(plan(publish=meant), tables["microdata"]))
