"""Worst pairs of inputs: they keep what the guarantee keeps, differ as stated, and show what a program does.

Outcomes are compared with laws that are known exactly. Each statistical test has a fixed seed, and a false-alarm
probability of 1e-9 under another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stirred import errors, mechanisms
from stirred.noise import SeededSource
from stirred.releases.mechanism import AuditPair
from stirred.swap import audit_pairs as swap_pairs
from stirred.swap.audit_pairs import RECORDS, audit_pairs
from stirred.swap.drawing import draw
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.topdown import preset
from stirred.topdown.audit_pairs import MEASUREMENTS
from stirred.topdown.audit_pairs import audit_pairs as topdown_pairs
from stirred.topdown.data.constraints import Known, require_kept
from stirred.topdown.data.counting import count_tables
from stirred.topdown.measuring import cell_labels
from stirred.topdown.plan.fields import TopDownPlan

PERSONS = {"name": "persons", "link": "hid", "hold": ["age"], "id": "pid", "copies": {"place": "county"}}
PLANS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no match": {"match": []},
    "several columns": {"match": ["size", "kind"], "swap": ["county", "tract"], "hold": ["tenure", "rent"]},
    "the rest": {"hold": "rest", "drop": ["note"]},
    "the rest, its name taken": {"hold": "rest", "drop": ["held"]},
    "linked": {"id": "hid", "linked": [PERSONS]},
    "linked rows only": {"id": "hid", "hold": [], "linked": [PERSONS]},
    "linked, the rest": {"id": "hid", "linked": [{"name": "persons", "link": "hid", "hold": "rest"}]},
    "rates by rule": {"rate": None, "rates": [{"unique_on": "held", "rate": 0.5}, {"otherwise": True, "rate": 0.02}]},
    "merged": {"coarsen": {"column": "size", "merge": [["2", "3"]], "at_least": 5}},
    "rounds": {"swap": ["county", "tract"], "rounds": [{"swap": ["tract"], "match_also": ["county"], "rate": 0.1}]},
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller files than an audit's, for the time they take."""
    monkeypatch.setattr(swap_pairs, "ROWS", 2_000)


def plan(**more: Any) -> SwapPlan:
    fields: dict[str, Any] = {"unit": "household", "match": ["size"], "swap": ["county"], "hold": ["tenure"]}
    fields |= {"rate": "1/20"} | more
    return SwapPlan(**{name: value for name, value in fields.items() if value is not None})


def named(pairs: list[AuditPair], name: str) -> AuditPair:
    return next(pair for pair in pairs if pair.name == name)


def drawn(chosen: SwapPlan, tables: Mapping[str, pl.DataFrame], seed: int) -> dict[str, pl.DataFrame]:
    """A swap of ours, which no stop of a check keeps from made files."""
    never = {
        "most_told": Fraction(1),
        "most_recovered": Fraction(1),
        "most_unchangeable": Fraction(1),
        "allow": ("few-change",),
    }
    data = {"microdata" if name == RECORDS else name: frame for name, frame in tables.items()}
    made = draw(chosen.model_copy(update=never), data, source=SeededSource(seed))
    return {RECORDS: made.frame(), **{entry.name: made.frame(entry.name) for entry in chosen.linked}}


def kept_counts(chosen: SwapPlan, tables: Mapping[str, pl.DataFrame], columns: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tables[RECORDS].select(columns).rows())


@pytest.mark.parametrize("which", PLANS)
def test_both_files_share_the_invariants_and_differ_in_two_records_of_a_stratum(which):
    chosen = plan(**PLANS[which])
    for pair in audit_pairs(chosen):
        one = pair.tables([False] * pair.parts)
        other = pair.tables([True] + [False] * (pair.parts - 1))
        held = [name for name in one[RECORDS].columns if name not in chosen.swap]
        for columns in ([*chosen.match, *chosen.swap], held):
            assert kept_counts(chosen, one, columns) == kept_counts(chosen, other, columns)
        for entry in chosen.linked:
            copies = list(entry.copies)
            assert one[entry.name].drop(copies).equals(other[entry.name].drop(copies))
        differing = [
            i for i, (a, b) in enumerate(zip(one[RECORDS].rows(), other[RECORDS].rows(), strict=True)) if a != b
        ]
        assert differing == [0, 1]
        assert pair.distance == 2


@pytest.mark.parametrize("which", PLANS)
def test_our_own_swap_reads_the_files_and_its_outcomes_are_read_back(which):
    chosen = plan(**PLANS[which])
    for seed, pair in enumerate(audit_pairs(chosen)):
        still = pair.outcomes(pair.first)
        assert len(still) == pair.parts
        assert len(set(still)) == 1, "all strata are alike"
        assert set(pair.outcomes(pair.second)) != set(still), "the exchange shows"
        coins = [bool(number % 2) for number in range(pair.parts)]
        seen = pair.outcomes(drawn(chosen, pair.tables(coins), seed))
        assert len(seen) == pair.parts
        assert {sum(outcome) for outcome in seen} == {sum(still[0])}, "the records are all there"


def test_the_guarantee_of_a_pair_is_that_of_its_largest_stratum():
    pairs = audit_pairs(plan())
    for name, size in (
        ("smallest-stratum", 2),
        ("typical-stratum", 20),
        ("large-stratum", 200),
        ("unique-records", 24),
    ):
        assert float(named(pairs, name).specification.budget.number) == epsilon(size, Fraction(1, 20))


def test_the_guarantee_of_rates_by_rule_is_that_of_the_rates_in_the_file():
    pair = named(audit_pairs(plan(**PLANS["rates by rule"])), "smallest-stratum")
    assert float(pair.specification.budget.number) == epsilon(2, Fraction(1, 2)), "both records are unique"


def test_a_plan_without_match_columns_has_one_stratum_and_one_part():
    assert {pair.parts for pair in audit_pairs(plan(match=[]))} == {1}


def test_linked_rows_are_a_pair_of_their_own():
    pairs = audit_pairs(plan(**PLANS["linked"]))
    pair = named(pairs, "linked-rows")
    assert pair.first[RECORDS]["tenure"].n_unique() == 1, "nothing else tells the records apart"
    assert set(pair.first) == {RECORDS, "persons"}
    assert "linked-rows" not in {pair.name for pair in audit_pairs(plan())}


def test_a_flat_file_is_refused():
    linked = [{"name": "persons", "link": "hid", "hold": ["age"], "flat": True}]
    with pytest.raises(errors.StirredError) as refused:
        audit_pairs(plan(id="hid", linked=linked))
    assert refused.value.kind == "not-audited"


def test_two_records_are_exchanged_as_often_as_the_law_says():
    """p^2 / (p^2 + (1-p)^2), since a lone selection is drawn again. False alarm: 1e-9."""
    pair = named(audit_pairs(plan(rate="1/5")), "smallest-stratum")
    seen = Counter(pair.outcomes(drawn(plan(rate="1/5"), pair.first, 3)))
    exchanged = seen[pair.outcomes(pair.second)[0]]
    assert sum(seen.values()) == pair.parts == exchanged + seen[pair.outcomes(pair.first)[0]]
    assert stats.binomtest(exchanged, pair.parts, 1 / 17).pvalue > 1e-9


def test_rows_that_are_missing_or_strange_do_not_stop_the_reading():
    pair = named(audit_pairs(plan()), "smallest-stratum")
    frame = pair.first[RECORDS]
    damaged = pl.concat([frame[3:], frame[:1].with_columns(size=pl.lit(7, pl.Int64))])
    seen = pair.outcomes({RECORDS: damaged})
    assert seen[0] == (0,) * 6
    assert sum(seen[1]) == 1
    assert set(seen[2:]) == {pair.outcomes(pair.first)[2]}


# -- TopDown ---------------------------------------------------------------------------------------------------------


def census(**more: Any) -> TopDownPlan:
    """Persons by kind of home, whose homes are counted exactly, and dwellings."""
    levels = {"state": "1/4", "county": "1/4", "town": "1/2"}
    fields: dict[str, Any] = {
        "spine": {"levels": ["state", "county", "town"]},
        "tables": [
            {
                "name": "persons", "unit": "person", "rho": 2, "level_shares": levels,
                "attributes": [
                    {"name": "kind", "values": ("household", "nursing", "college")},
                    {"name": "adult", "values": ("no", "yes"), "column": "is_adult"},
                ],
                "zeros": [{"kind": ["nursing"], "adult": ["no"]}],
                "queries": [{"by": [], "shares": "1/4"}, {"by": ["kind", "adult"], "shares": "3/4"}],
            },
            {
                "name": "dwellings", "unit": "dwelling", "rho": "1/2", "level_shares": levels, "count": "number",
                "attributes": [{"name": "occupied", "values": ("yes", "no")}],
                "queries": [{"by": ["occupied"], "shares": 1}],
            },
            {"name": "homes", "unit": "home", "attributes": [{"name": "type", "values": ("nursing", "college")}]},
        ],
        "invariants": [
            {"table": "persons", "level": "county"},
            {"table": "dwellings", "level": "town"},
            {"table": "homes", "level": "town", "by": ["type"]},
        ],
        "constraints": [
            {"table": "persons", "counted": "homes", "each": {"kind": "type"}, "at_least": 1},
            {"table": "persons", "counted": "dwellings", "where": {"kind": ["household"]}},
        ],
    }  # fmt: skip
    return TopDownPlan(**fields | more)


DOMAINS = {"votingage": ["no", "yes"], "hispanic": ["no", "yes"], "cenrace": ["a", "b", "c"]}
SMALL = {"race": ["a", "b"], "adult": ["yes", "no"]}
TOPDOWN = {
    "census": census(),
    "teaching": preset("teaching", SMALL, ["county", "town"]),
    "one level": preset("teaching", SMALL, ["town"]),
    "with a root": preset("teaching", SMALL, ["county", "town"], nation=True),
    "persons of 2020": preset("pl94-2020", DOMAINS),
    "units of 2020": preset("pl94-units", DOMAINS),
}


def true_answers(chosen: TopDownPlan, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """What a program measures that adds no noise."""
    counted = count_tables(chosen, dict(tables))
    rows = []
    for table in chosen.released:
        for at, level in enumerate(counted.spine.levels):
            for query in table.queries:
                values = counted.counts(table.name, level, query.by)
                labels = cell_labels(table.schema_of, query.by).to_pylist()
                for unit, counts in zip(counted.spine.names[at].to_pylist(), values.tolist(), strict=True):
                    rows += [
                        (table.name, level, unit, query.name, label, float(count))
                        for label, count in zip(labels, counts, strict=True)
                    ]
    names = ["table", "level", "geounit", "query", "cell", "value"]
    return {MEASUREMENTS: pl.DataFrame(rows, schema=names, orient="row")}


def told_apart(chosen: TopDownPlan, pair: AuditPair) -> Fraction:
    """The rho of all measured cells in which the two files differ, each pair of cells counted once."""
    one, other = (count_tables(chosen, dict(tables)) for tables in (pair.first, pair.second))
    total = Fraction(0)
    for table in chosen.released:
        for level in one.spine.levels:
            for query in table.queries:
                change = one.counts(table.name, level, query.by) - other.counts(table.name, level, query.by)
                assert int(np.abs(change).sum()) in (0, 2)
                total += table.rho_of(level, query) * (int(np.abs(change).sum()) // 2)
    return total


@pytest.mark.parametrize("which", TOPDOWN)
def test_one_record_changes_and_everything_that_is_kept_stays(which):
    chosen = TOPDOWN[which]
    pairs = topdown_pairs(chosen)
    assert [pair.name for pair in pairs] == ["one-record", "empty-cell", "edge-of-domain", "alone-in-its-place"]
    for pair in pairs:
        counted = [count_tables(chosen, dict(tables)) for tables in (pair.first, pair.second)]
        known = [Known.of(one) for one in counted]
        for one, here in zip(counted, known, strict=True):
            require_kept(one, here)
        assert all(np.array_equal(one, other) for one, other in zip(*(here.exact for here in known), strict=True))
        for name in pair.first:
            one, other = (Counter(tables[name].rows()) for tables in (pair.first, pair.second))
            assert sum((one - other).values()) <= 1
        assert pair.distance == pair.parts == 1


@pytest.mark.parametrize("which", TOPDOWN)
def test_what_is_looked_at_is_the_log_likelihood_ratio_of_all_measurements(which):
    """Without noise it differs between the two files by twice the rho that tells them apart."""
    chosen = TOPDOWN[which]
    for pair in topdown_pairs(chosen):
        seen = [float(pair.outcomes(true_answers(chosen, tables))[0]) for tables in (pair.first, pair.second)]  # type: ignore[arg-type]
        told = told_apart(chosen, pair)
        assert told > 0
        assert told <= chosen.rho
        assert seen[1] - seen[0] == pytest.approx(float(2 * told))


def test_a_record_of_every_released_table_changes_at_once():
    chosen = census()
    pair = topdown_pairs(chosen)[0]
    changed = [name for name in pair.first if not pair.first[name].equals(pair.second[name])]
    assert changed == ["persons", "dwellings"]


def test_the_empty_cell_is_empty_and_the_only_record_is_alone():
    chosen = TOPDOWN["teaching"]
    pairs = {pair.name: pair for pair in topdown_pairs(chosen)}
    first, second = pairs["empty-cell"].first["persons"], pairs["empty-cell"].second["persons"]
    new = set(second.rows()) - set(first.rows())
    assert len(new) == 1
    alone = pairs["alone-in-its-place"].first["persons"]
    assert 1 in alone["town"].value_counts()["count"].to_list()


def test_the_edge_of_the_domain_is_its_first_and_last_cell_in_the_last_place():
    pair = next(one for one in topdown_pairs(TOPDOWN["teaching"]) if one.name == "edge-of-domain")
    one, other = (Counter(tables["persons"].rows()) for tables in (pair.first, pair.second))
    last = pair.first["geography"]["town"].max()
    assert set(one - other) == {(last, "a", "yes")}
    assert set(other - one) == {(last, "b", "no")}


def test_a_query_that_is_asked_twice_counts_twice():
    chosen = TOPDOWN["teaching"]
    pair = topdown_pairs(chosen)[0]
    once = true_answers(chosen, pair.second)[MEASUREMENTS]
    assert pair.outcomes({MEASUREMENTS: pl.concat([once, once])})[0] == pytest.approx(
        2 * float(pair.outcomes({MEASUREMENTS: once})[0])  # type: ignore[arg-type]
    )


def test_a_plan_that_lets_no_record_change_alone_is_refused():
    fixed = [{"table": "persons", "level": "town", "by": ["race", "adult"]}]
    chosen = preset("teaching", SMALL, ["county", "town"], invariants=fixed)
    with pytest.raises(errors.StirredError) as refused:
        topdown_pairs(chosen)
    assert refused.value.kind == "not-audited"


def test_a_plan_that_agrees_with_earlier_releases_is_refused():
    chosen = preset("teaching", SMALL, ["county", "town"], earlier=[{"path": "x", "table": "persons"}])
    with pytest.raises(errors.StirredError) as refused:
        topdown_pairs(chosen)
    assert refused.value.kind == "not-audited"


def test_mechanisms_give_their_pairs():
    assert mechanisms.named("swap").audit_pairs(plan())[0].name == "smallest-stratum"
    assert mechanisms.named("topdown").audit_pairs(TOPDOWN["teaching"])[0].name == "one-record"
