"""What the invariants of a TopDown plan reveal, against counting by hand."""

from __future__ import annotations

import json
from collections import Counter

import polars as pl
import pytest
from census import fields, plan, tables

from stirred.topdown.checking.plan_check import check


def persons_by(data: dict[str, pl.DataFrame], *columns: str) -> Counter[tuple[str, ...]]:
    rows = data["persons"].with_columns(county=pl.col("town").str.slice(0, 1)).select(columns).rows()
    return Counter(rows)


def test_each_invariant_is_counted_by_how_many_records_it_holds():
    data = tables()
    persons, dwellings, homes = check(plan(), data).revealing.margins
    counties = persons_by(data, "county")
    assert persons.empty == 0 and persons.records == 200 == sum(counties.values())
    assert persons.counts.more == 2 and persons.determined_records == 0
    assert dwellings.empty == 2 and dwellings.counts.more == 3  # nobody lives in b3, and a2 has no dwelling
    found = Counter(data["homes"].rows())
    assert homes.counts.cells[0] == sum(many == 1 for many in found.values()) > 0
    assert homes.empty == 5 * 2 - len(found)
    assert homes.determined_records == homes.records == data["homes"].height  # they have no other attribute


@pytest.mark.parametrize("by", [["adult"], ["kind"]])
def test_a_coarse_and_a_finer_margin_bound_the_table_by_both(by):
    data = tables(persons=40)
    invariants = [{"table": "persons", "level": "county", "by": by}, {"table": "persons", "level": "town"}]
    checked = check(plan(invariants=invariants, constraints=[]), data)
    (pair,) = checked.revealing.pairs
    total, groups, towns = persons_by(data, "county"), persons_by(data, "county", *by), persons_by(data, "town")
    lower = upper = cells = determined = 0
    for (county,), n in total.items():
        rows = [many for (town,), many in towns.items() if town[0] == county]
        columns = [many for (other, _), many in groups.items() if other == county]
        determined += n * (len(rows) == 1 or len(columns) == 1)
        for a in rows:
            for b in columns:
                cells += 1
                lower += max(0, a + b - n)
                upper += min(a, b)
    found = pair.revealed
    assert (found.records, found.cells, found.determined_records) == (40, cells, determined)
    assert (found.pinned_records, found.total_width) == (lower, upper - lower)
    told = json.loads(checked.to_json())["published_counts_reveal"]
    assert told["from_published_counts"] is True and told["pairs"][0]["pinned_records"] == lower
    text = " ".join(str(checked).split())
    assert "What the published counts alone reveal" in text and f"{lower} must lie in a certain one" in text


def test_margins_that_follow_from_each_other_are_no_pair():
    """The same margin at two levels: the finer one adds up to the coarse one, and nothing more is learnt."""
    invariants = [{"table": "persons", "level": level} for level in ("county", "town")]
    finer = {"table": "persons", "level": "town", "by": ["kind"]}
    for kept in (invariants, [invariants[0], finer]):
        assert check(plan(invariants=[*kept, *fields()["invariants"][1:]]), tables()).revealing.pairs == ()


def test_a_plan_without_invariants_reveals_nothing_exactly():
    found = check(plan(invariants=[], constraints=[]), tables())
    assert found.revealing.margins == () and "published counts alone" not in str(found)
