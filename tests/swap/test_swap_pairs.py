"""How exposed the pairs of a released file are: read from its folder, and said by ``explain``."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import stirred
from stirred.errors import StirredError
from stirred.lab.definitions.swap_practices import exact_loss, released_law, tables_of
from stirred.loss import (
    pair_power_curve,
    power_curve,
    pure_power,
    swap_power_curve,
    swap_power_curve_of_rates,
    swap_power_curve_up_to,
)
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.spec import Budget, OutputPremetric
from stirred.spec.order.swap_trade_off import as_trade_off
from stirred.swap.law.exposed_pairs import ReleasedPairs, separation, stratum_loss
from stirred.swap.law.stratum_laws import stratum_law
from stirred.tables.synthetic import massachusetts_1940

LEVELS = [0.01, 0.05, 0.1]


def released(tmp_path, rows, **plan):
    roles = {"match": ["size"], "swap": ["county"], "hold": ["tenure"]} | plan
    tmp_path.mkdir(exist_ok=True)
    out = tmp_path / "release"
    stirred.release(stirred.SwapPlan(**roles), rows, out=out)
    return out


def exposure(out, *named, level=0.05):
    return ReleasedPairs(ReleaseFolder.open(out)).exposure(named, level)


@pytest.fixture
def mixed(tmp_path):
    """A stratum of 40 with two tenures, one of 5 where all tenures differ, one of 3 alike, and one record alone."""
    rows = pl.DataFrame(
        {
            "size": [1] * 40 + [2] * 5 + [3] * 3 + [4],
            "county": [*"abcd" * 10, *"abcab", *"abc", "a"],
            "tenure": [*(["own"] * 25 + ["rent"] * 15), *"vwxyz", *["own"] * 3, "own"],
        }
    )
    tmp_path.mkdir(exist_ok=True)
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.3)
    # Now and then no renter is left in county b, and a pair with one cannot be named: draw until there is one.
    draws = (stirred.swap.draw(plan, rows) for _ in range(100))
    named = {(1, "a", "own"), (1, "b", "rent")}
    return next(one for one in draws if named <= set(one.frame().iter_rows())).write(tmp_path / "release")


def test_strata_that_cannot_change_do_not_count(mixed):
    found = exposure(mixed)
    assert (found.strata, found.smallest, found.largest, found.records, found.uniques) == (2, 5, 40, 49, 5)
    worst = swap_power_curve([5, 40], 0.3)
    assert np.allclose(found.worst.power(LEVELS), worst.power(LEVELS))


def test_the_pairs_that_nobody_equals(mixed):
    found = exposure(mixed)
    assert found.real and found.most.size == found.least.size == 5
    # Counties a, a, b, b, c: the rarest are one and two records, the commonest two and two.
    assert found.most.swapped == (1, 2) and found.least.swapped == (2, 2)
    assert np.allclose(found.most.powers(LEVELS), pair_power_curve(5, 0.3, 1, 2).power(LEVELS))
    assert "size 2" in found.most.words and found.typical.how == "normal"
    assert found.most.belief(0.5) == pytest.approx(found.most.odds / (1 + found.most.odds))
    assert found.most.belief(0.9) > found.most.belief(0.5)


def test_a_pair_that_is_named(mixed):
    one, two = exposure(mixed, "size=1,county=a;county=c", "size=1,county=a,tenure=own;county=b,tenure=rent").named
    assert np.allclose(one.powers(LEVELS), pair_power_curve(40, 0.3, 10, 10).power(LEVELS))
    assert two.how == "normal" and two.held == (25, 15) and two.belief(0.5) is None
    assert 0.05 < two.power(0.05) < one.power(0.05)


@pytest.mark.parametrize(
    "pair",
    [
        "county=a;county=b",  # no stratum
        "size=1,county=a",
        "size=1;county",
        "size=1,county=a;county=a",
        "size=1,county=a;size=2,county=b",
        "size=1,county=a;county=z",
        "size=1,county=a;county=b,colour=red",
        "size=1,county=a,tenure=own;county=b",
        "size=1,county=a,tenure=own;county=b,tenure=own",
        "size=3,county=a;county=b",
    ],
)
def test_pairs_that_cannot_be_looked_at(mixed, pair):
    with pytest.raises(StirredError) as refused:
        stirred.explain(mixed, pairs=[pair])
    assert refused.value.kind == "bad-pair"


def test_pairs_belong_to_a_release(mixed):
    for what in ("epsilon=1", stirred.read(mixed)):
        with pytest.raises(StirredError) as refused:
            stirred.explain(what, pairs=["size=1,county=a;county=b"])
        assert refused.value.kind == "bad-pair"


def test_explain_leads_with_the_swap_s_own_numbers(mixed):
    explained = stirred.explain(mixed)
    first = explained.section("noticed")[0]
    assert first.id == "noticed.worst" and {one.section for one in explained.statements[:3]} == {"summary"}
    power = float(swap_power_curve([5, 40], 0.3).power(0.05))
    assert f"at most {int(np.ceil(100 * power - 1e-7))} would be noticed, at 5 false alarms in 100" in first.words
    assert explained.text().count("would be noticed, at 5") == 1
    fields = json.loads(explained.to_json())
    assert fields["swap"]["worst_file"] == pytest.approx(swap_power_curve([5, 40], 0.3).power(LEVELS).tolist())
    assert [row["noise"] for row in fields["powers"][::3]] == [
        "any mechanism with this guarantee",
        "this swap, in the worst file",
        "this swap, the most exposed two records",
        "this swap, a typical pair (about)",
    ]
    assert {line.name for line in explained.pictures()[0].lines} >= {"this swap, in the worst file"}


def test_at_a_low_rate_with_uniques_it_is_nearly_all(tmp_path):
    rows = pl.DataFrame({"size": [1] * 30, "county": [*"abcdef" * 5], "tenure": [str(i) for i in range(30)]})
    out = released(tmp_path, rows, rate=0.05, allow=["few-change", "distinct:tenure", "determines:tenure"])
    explained = stirred.explain(out)
    assert "nearly all" in explained.statement("noticed.nearly").words
    assert explained.statement("noticed.typical").facts["count"].value > 0.95
    assert explained.statement("noticed.halve").facts["rate"].value > Fraction(1, 2)


def test_from_a_specification_alone_all_sizes_are_bounded(mixed):
    from_folder, alone = stirred.explain(mixed).setting.own, stirred.explain(stirred.read(mixed)).setting.own
    assert alone.strata is None and alone.largest == 40
    assert np.all(alone.worst.power(LEVELS) >= from_folder.worst.power(LEVELS) - 1e-12)
    assert "whichever sizes there are" in stirred.explain(stirred.read(mixed)).statement("noticed.worst").words


def test_a_composed_budget_is_not_explained_as_one_swap(mixed):
    one = stirred.read(mixed)
    doubled = stirred.spec.Specification(
        one.domain, one.multiverse, one.input_premetric, one.output_premetric,
        stirred.spec.Budget(2 * one.budget.number), nearest=2, facts=one.facts,
    )  # fmt: skip
    assert stirred.explain(doubled).setting.own is None
    assert stirred.explain(doubled).section("noticed")[0].id == "noticed.unknown"


def test_rates_by_rule_have_the_curve_of_their_worst_two_records(tmp_path):
    rows = pl.DataFrame({"size": [1] * 12, "county": [*"abc" * 4], "tenure": ["u"] * 2 + ["own"] * 6 + ["rent"] * 4})
    rates = [{"rate": 0.5, "where": {"tenure": ["u"]}}, {"rate": 0.1, "otherwise": True}]
    out = released(tmp_path, rows, rates=rates, allow=["few-change"])
    found = exposure(out)
    assert found.rate is None and found.most is None
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    pairs = [(half, half, {tenth: 10}), (half, tenth, {half: 1, tenth: 9}), (tenth, tenth, {half: 2, tenth: 8})]
    powers = [swap_power_curve_of_rates(*one).power(LEVELS) for one in pairs]
    assert np.all(found.worst.power(LEVELS) >= np.max(powers, axis=0) - 1e-12)
    said = stirred.explain(out)
    assert said.section("noticed")[0].id == "noticed.worst" and said.statement("noticed.rates")


def test_a_folder_without_its_tables_is_still_explained(mixed):
    for file in mixed.glob("microdata.*"):
        file.unlink()
    explained = stirred.explain(mixed)
    assert explained.setting.own.strata is None  # from the specification alone


def test_a_rate_without_an_epsilon_has_no_numbers(tmp_path):
    rows = pl.DataFrame({"size": [1] * 8, "county": [*"abab" * 2], "tenure": [*"ooorrrro"]})
    explained = stirred.explain(released(tmp_path, rows, rate=1, allow=["rate-zero-or-one"]))
    assert explained.setting.own is None and not explained.section("noticed")


def test_linked_rows_are_held(tmp_path):
    rows = pl.DataFrame({"id": range(8), "size": [1] * 8, "county": [*"abab" * 2], "tenure": ["own"] * 8})
    persons = pl.DataFrame({"id": [0, 1, 2, 3, 4, 5, 6, 7], "age": [*"12345555"]})
    plan = stirred.SwapPlan(
        match=["size"], swap=["county"], hold=["tenure"], id="id", rate=0.3,
        linked=[{"name": "persons", "link": "id", "hold": ["age"]}],
    )  # fmt: skip
    stirred.release(plan, {"microdata": rows, "persons": persons}, out=tmp_path / "release")
    found = exposure(tmp_path / "release")
    assert (found.strata, found.uniques, found.largest) == (1, 4, 8)


def test_compare_notes_the_own_curve(mixed):
    said = str(stirred.compare(mixed, "psa-2020-state-county-p50"))
    assert "at most 80 of 100 exchanged pairs" in " ".join(said.split())


def test_the_curve_is_a_specification_that_implies_others(mixed):
    """f-DP between two files of which one has a pair exchanged."""
    told = stirred.read(mixed)
    exchanged = as_trade_off(told)
    curve = exchanged.budget.value
    assert curve == swap_power_curve_up_to(40, "0.3")
    epsilon = 2 * float(told.budget.number)
    assert exchanged.implies(replace(exchanged, budget=Budget(pure_power(epsilon)))).verdict == "yes"
    assert exchanged.implies(replace(exchanged, budget=Budget(pure_power(0.5)))).verdict != "yes"
    apart = max(power - level for level, power in curve.points)
    for delta, verdict in ((apart + 1e-6, "yes"), (apart - 1e-3, "no")):
        point = OutputPremetric("approximate", delta)
        found = exchanged.implies(replace(exchanged, output_premetric=point, budget=Budget("1e-9"))).verdict
        assert (found == "yes") == (verdict == "yes")
    assert as_trade_off(stirred.read("epsilon=1")) is None
    assert as_trade_off(exchanged) is None


def test_the_command_names_pairs(mixed, command):
    ended = command("explain", mixed, "--pair", "size=1,county=a;county=b", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["swap"]["named"][0]["stratum"] == 40


def test_another_mechanism_has_no_pairs():
    from stirred.topdown.mechanism import MECHANISM

    with pytest.raises(StirredError) as refused:
        MECHANISM.exposure(None, ["size=1;size=2"])
    assert refused.value.kind == "not-offered"
    assert MECHANISM.exposure(None) is None


# -- golden values of Massachusetts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two", "rate", "powers"),
    [
        ("Nantucket", "Suffolk", 0.5, (0.5588, 0.7497, 0.7997)),
        ("Nantucket", "Suffolk", 0.05, (0.9979, 1.0000, 1.0000)),
        ("Nantucket", "Suffolk", 0.9, (0.1151, 0.1773, 0.2550)),
        ("Middlesex", "Suffolk", 0.5, (0.3336, 0.5955, 0.7452)),
        ("Middlesex", "Suffolk", 0.9, (0.0234, 0.1058, 0.1835)),
        ("Nantucket", "Dukes", 0.5, (0.7594, 0.7994, 0.8494)),
    ],
)
def test_two_person_households_of_massachusetts(massachusetts, one, two, rate, powers):
    counts = dict(massachusetts.group_by("county").len().iter_rows())
    found = pair_power_curve(massachusetts.height, rate, counts[one], counts[two]).power(LEVELS)
    assert found.tolist() == pytest.approx(powers, abs=5.1e-5)


def test_shared_held_values_hide_a_pair_of_massachusetts(massachusetts):
    counts = dict(massachusetts.group_by("county").len().iter_rows())
    tenures = dict(massachusetts.group_by("tenure").len().iter_rows())
    both = {(c, t): n for c, t, n in massachusetts.group_by("county", "tenure").len().iter_rows()}
    four = np.array([[both[c, t] for c in ("Nantucket", "Dukes")] for t in ("owned", "rented")], dtype=float)
    mu = separation(
        massachusetts.height, Fraction(1, 2), (tenures["owned"], tenures["rented"]),
        (counts["Nantucket"], counts["Dukes"]), four,
    )  # fmt: skip
    assert float(norm.cdf(norm.ppf(0.05) + mu)) == pytest.approx(0.06, abs=5e-3)


@pytest.fixture(scope="module")
def massachusetts():
    rows = massachusetts_1940()
    return rows.filter(pl.col("household_size").cast(pl.Int64) == 2)


# -- oracles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["0.05", "0.5", "0.9"])
def test_separation_is_that_of_the_enumerated_cells(rate):
    """Mean and covariance of the four cells, from the exact law of a small table with a third held and swap value."""
    p = Fraction(rate)
    table = tuple(sorted([(0, 0), (0, 1), (1, 1), (1, 0), (2, 2), (0, 2)]))
    other = tuple(sorted([(0, 1), (0, 1), (1, 0), (1, 0), (2, 2), (0, 2)]))  # (0, 0) and (1, 1) exchanged
    cells = list(itertools.product(range(2), range(2)))

    def moments(start):
        law = released_law(start, p)
        values = np.array([[z.count(cell) for cell in cells] for z in law], dtype=float)
        chances = np.array([float(chance) for chance in law.values()])
        mean = chances @ values
        return mean, (values - mean).T @ np.diag(chances) @ (values - mean)

    mean, covariance = moments(table)
    shift = mean - moments(other)[0]
    listed = float(np.sqrt(shift @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ shift))
    four = np.array([[table.count((h, s)) for s in range(2)] for h in range(2)], dtype=float)
    assert separation(6, p, (3, 2), (2, 2), four) == pytest.approx(listed, rel=1e-8)


def test_the_normal_approximation_is_close_where_many_share():
    """Two by two categories of 40 records: against the exact law of the cell."""
    held, swapped, p = (20, 20), (20, 20), Fraction(1, 2)
    law = stratum_law(held, swapped, p)
    exact = power_curve(*(np.exp(law.logs(x)) for x in (10, 9)))
    mu = separation(40, p, held, swapped, np.array([[10.0, 10.0], [10.0, 10.0]]))
    for level in LEVELS:
        assert np.interp(level, exact[:, 0], exact[:, 1]) == pytest.approx(
            float(norm.cdf(norm.ppf(level) + mu)), abs=0.02
        )


@pytest.mark.parametrize(
    ("held", "swapped", "rate", "loss"),
    [
        ((1, 9), (1, 9), "0.01", 4.576728),
        ((1, 9), (1, 9), "0.5", 1.090723),
        ((1, 19), (1, 19), "0.05", 2.944439),
        ((1, 19), (1, 19), "0.9", 0.373607),
        ((5, 15), (10, 10), "0.9", 0.070272),
    ],
)
def test_golden_losses_of_one_universe(held, swapped, rate, loss):
    assert stratum_loss(held, swapped, Fraction(rate)) == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("rate", ["0.05", "0.5", "0.9"])
@pytest.mark.parametrize(("held", "swapped"), [((2, 2), (2, 2)), ((1, 3), (2, 2)), ((1, 2), (1, 2)), ((2, 3), (2, 3))])
def test_losses_of_two_categories_are_those_of_enumeration(held, swapped, rate):
    listed = float(exact_loss(tables_of(held, swapped), Fraction(rate)).number)
    assert stratum_loss(held, swapped, Fraction(rate)) == pytest.approx(listed, abs=1e-9)


@pytest.mark.parametrize("swapped", [(1, 1, 2), (1, 3), (2, 2), (1, 1, 1, 1)])
def test_one_record_apart_is_that_of_enumeration(swapped):
    from stirred.swap.law.exposed_pairs import _of_one_apart

    for rate in ("0.05", "0.3"):
        listed = float(exact_loss(tables_of((1, 3), swapped), Fraction(rate)).number)
        assert _of_one_apart(4, min(swapped), Fraction(rate)) == pytest.approx(listed, abs=1e-9)


def test_the_exact_loss_is_told_of_small_strata_only(tmp_path, mixed):
    assert exposure(mixed).loss is None
    rows = pl.DataFrame({"size": [1] * 6 + [2] * 4, "county": [*"aaabbb", *"aabb"], "tenure": [*"ororoo", *"oror"]})
    out = released(tmp_path / "small", rows, rate=0.3)
    loss = exposure(out).loss
    expected = max(stratum_loss((2, 4), (3, 3), Fraction("0.3")), stratum_loss((2, 2), (2, 2), Fraction("0.3")))
    assert loss.strata == 2 and loss.epsilon == pytest.approx(expected)
    assert loss.epsilon < float(stirred.read(out).budget.number)
    assert "in no other" in stirred.explain(out).statement("noticed.loss").words
