"""Relations between released tables: what every level keeps, by enumeration; what plans may say and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from census import fields, refused, tables

from stirred.errors import StirredError
from stirred.margins.spine import Spine
from stirred.releases.ledger.ledger import Ledger
from stirred.topdown.checking.plan_check import check
from stirred.topdown.data.constraints import Agreement, Known, allowed_by, require_kept
from stirred.topdown.data.counting import count_tables
from stirred.topdown.drawing import draw
from stirred.topdown.fitting.relations import (
    MOST,
    Derivation,
    Limit,
    Related,
    RelatedTables,
    TableRules,
    relation_groups,
)
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.sections import RelationSection, TableSection

# -- by enumeration ------------------------------------------------------------------------------------------------

SYSTEMS = 250
IN_A_LEAF = 2
"""The most of a part in a leaf, where no total says it: the enumeration needs an end."""


def small_spine(rng):
    """A root with two counties of one or two towns each."""
    sizes = rng.integers(1, 3, 2)
    names = [pa.array(["all"]), pa.array(["a", "b"]), pa.array([str(at) for at in range(int(sizes.sum()))])]
    edges = (np.array([0, 2]), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    return Spine(("all", "county", "town"), tuple(names), edges)


def added(places, counts, level):
    for at in range(2, level, -1):
        counts = np.add.reduceat(counts, places.first_child[at - 1][:-1], axis=0)
    return counts


def section(parts):
    values = [f"v{at}" for at in range(parts)]
    return TableSection(name="table", unit="person", attributes=[{"name": "kind", "values": values}])


def random_limits(rng, places, truth):
    """Rules that a table keeps: nested totals at random levels, bounds of parts in the leaves."""
    parts = truth.shape[1]
    nested = [np.zeros(parts, dtype=np.int32), (np.arange(parts) > 0).astype(np.int32)]
    limits, ended = [], np.zeros(parts, dtype=np.bool_)
    for groups in nested[: int(rng.integers(0, 3))]:
        level = int(rng.integers(0, 3))
        sums = added(places, truth, level)
        values = np.stack([sums[:, groups == one].sum(axis=1) for one in range(int(groups.max()) + 1)], axis=1)
        limits.append(Limit("a total", level, groups, values, values, exact=True))
        ended |= level > 0
    for part in range(parts):
        lower, upper = np.zeros((len(truth), 1), dtype=np.int64), np.full((len(truth), 1), MOST)
        if rng.random() < 0.4:
            lower = np.maximum(0, truth[:, [part]] - rng.integers(0, 2, lower.shape))
        if rng.random() < 0.4:
            upper = np.minimum(truth[:, [part]] + rng.integers(0, 2, lower.shape), IN_A_LEAF)
        elif rng.random() < 0.4:
            upper = np.where(truth[:, [part]] > 0, MOST, 0)
        if not ended[part]:
            upper = np.minimum(upper, IN_A_LEAF)
        if (lower > 0).any() or (upper < MOST).any():
            about = np.where(np.arange(parts) == part, 0, -1).astype(np.int32)
            limits.append(Limit("a bound", 2, about, lower, upper, exact=False))
    return tuple(limits)


def random_system(seed):
    """A spine and the rules of a table that keeps a relation; refused ones are None."""
    rng = np.random.default_rng(seed)
    places, parts = small_spine(rng), int(rng.integers(1, 4))
    truth = rng.integers(0, 2, (places.leaves, parts))
    least, most = int(rng.integers(0, 3)), [None, 2, 3][int(rng.integers(0, 3))]
    zero = bool(most is not None or not least or rng.random() < 0.5)
    truth[:, 0] *= max(1, least)
    relation = RelationSection(table="table", counted="other", at_least=least, at_most=most, zero_without=zero)
    about = np.where(np.arange(parts) == 0, 0, -1).astype(np.int32)
    rules = TableRules(places, section(parts), random_limits(rng, places, truth), (Related(relation, about),), "words")
    try:
        rules.require_sure()
        derived = Derivation(rules, relation, np.zeros(1, dtype=np.int32), TableRules(places, section(1), (), (), ""))
        return places, rules, relation, derived.limits(), truth
    except StirredError as error:
        assert error.kind == "relation-unsure"
        return None


@cache
def systems():
    return [one for one in map(random_system, range(SYSTEMS)) if one is not None]


def keeps(rules, limit, vector, unit):
    """Whether a vector of parts keeps a rule of its level."""
    groups = limit.groups[np.unique(rules.parts, return_index=True)[1]]
    sums = np.bincount(groups[groups >= 0], np.array(vector)[groups >= 0], limit.lower.shape[1])
    return bool(np.all(limit.lower[unit] <= sums) and np.all(sums <= limit.upper[unit]))


def possible(places, rules, known, most):
    """By level and unit, every vector of parts that leaves add up to which keep all rules of that level and below."""
    found, parts = {}, int(rules.parts.max()) + 1
    for level in (2, 1, 0):
        edges = places.first_child[level] if level < 2 else None
        for unit in range(places.units(level)):
            if edges is None:
                ranges = [range(most + 1)] * parts
                for part, (low, high) in known.items():
                    ranges[part] = range(int(low[unit]), min(int(high[unit]), most) + 1)
                vectors = set(itertools.product(*ranges))
            else:
                vectors = {(0,) * parts}
                for child in range(int(edges[unit]), int(edges[unit + 1])):
                    pairs = itertools.product(vectors, found[level + 1, child])
                    vectors = {tuple(map(sum, zip(*pair, strict=True))) for pair in pairs}
            here = [limit for limit in rules.limits if limit.level == level]
            found[level, unit] = {vector for vector in vectors if all(keeps(rules, one, vector, unit) for one in here)}
    return found


def described(places, rules, known, level, unit, most):
    """Every vector of parts within the intervals and the totals that are kept at a level."""
    lower, upper = (one[unit] for one in rules.interval(level, known))
    ranges = [range(int(low), min(int(high), most) + 1) for low, high in zip(lower, upper, strict=True)]
    totals = []
    for limit in rules.limits:
        if limit.exact and limit.level >= level:
            values = limit.lower
            for at in range(limit.level, level, -1):
                values = np.add.reduceat(values, places.first_child[at - 1][:-1], axis=0)
            totals.append(Limit("", level, limit.groups, values, values, exact=True))
    return {vector for vector in itertools.product(*ranges) if all(keeps(rules, one, vector, unit) for one in totals)}


def test_what_a_level_keeps_is_what_its_leaves_can_have():
    compared, in_blocks = 0, 0
    for places, rules, relation, _, truth in systems():
        counts = np.minimum(truth[:, 0], 1)
        if relation.at_most is None and not relation.zero_without:
            counts = truth[:, 0] // max(1, relation.at_least)
        lower, upper = allowed_by(relation, counts)
        known = {rules.parts_of(rules.related[0])[0]: (lower, np.minimum(upper, MOST))}
        most = max(int(truth.sum()), IN_A_LEAF)
        if most > 7:
            continue
        every = possible(places, rules, known, most)
        assert every[0, 0]  # the truth is there
        for level, unit in [key for key in every if key[0] < 2]:
            assert described(places, rules, known, level, unit, most * 5) == every[level, unit]
            compared += 1
        in_blocks += any(len(block.parts) > 1 and block.level > 0 for block in rules.blocks)
    assert compared > 100 and in_blocks > 10


def test_what_follows_for_the_counted_table_is_what_leaves_room_for_the_other():
    compared, ruled_out = 0, 0
    for places, rules, relation, derived, truth in systems()[:60]:
        most = max(int(truth.sum()), IN_A_LEAF)
        if most > 6 or places.leaves > 3:
            continue
        for counts in itertools.product(range(3), repeat=places.leaves):
            lower, upper = allowed_by(relation, np.array(counts))
            known = {rules.parts_of(rules.related[0])[0]: (lower, np.minimum(upper, MOST))}
            room = bool(possible(places, rules, known, max(most, 2 * max(1, relation.at_least)))[0, 0])
            sums = {level: added(places, np.array(counts), level) for level in range(3)}
            told = all(
                bool(np.all(one.lower[:, 0] <= sums[one.level]) and np.all(sums[one.level] <= one.upper[:, 0]))
                for one in derived
            )
            assert told == room, (relation, counts)
            compared += 1
            ruled_out += not told
    assert compared > 100 and ruled_out > 10


# -- plans -----------------------------------------------------------------------------------------------------------

HOUSED = {
    "table": "persons", "counted": "dwellings", "where": {"kind": ["household"]},
    "counted_where": {"occupied": ["yes"]}, "at_least": 1, "at_most": 20,
}  # fmt: skip
WORDS = (
    "the relation of 'persons' (kind in household) to 'dwellings' (occupied in yes): at least 1 for each, at most 20 "
    "for each"
)


def related(level="state", **more):
    """The small census, with persons of households at least as many as occupied dwellings and at most twenty times."""
    whole = fields(relations=[HOUSED | more])
    whole["invariants"][0]["level"] = level
    return TopDownPlan(**whole)


def test_a_relation_is_in_the_published_plan_and_in_the_domain():
    chosen = related()
    assert TopDownPlan.from_published(chosen.published()) == chosen
    assert f"{WORDS}, without which a release is refused" in specify(chosen).domain.restricted_by
    assert "relations" not in TopDownPlan(**fields()).published()
    assert [table.name for table in chosen.order_of_fit] == ["dwellings", "persons"]
    assert [table.name for table in chosen.released] == ["persons", "dwellings"]


@pytest.mark.parametrize(
    "change", [{"at_least": -1}, {"at_most": 0}, {"at_least": 3, "at_most": 2}, {"counted": "persons"},
               {"counted": "homes", "counted_where": {}}, {"each": {"kind": "occupied"}},
               {"at_least": 0, "at_most": None, "zero_without": False}],
)  # fmt: skip
def test_relations_that_make_no_sense_are_refused(change):
    with refused("topdown-plan"):
        related(**change)
    with refused("margin-plan"):
        related(counted_where={"occupied": ["perhaps"]})


def test_relations_in_a_circle_are_refused():
    round_about = {"table": "dwellings", "counted": "persons", "at_most": 3}
    with refused("relations-circle") as found:
        TopDownPlan(**fields(relations=[HOUSED, round_about]))
    assert "'dwellings' and 'persons'" in str(found.value)


def test_groups_are_those_that_both_tables_have():
    chosen = related()
    mine, theirs, number = relation_groups(chosen, chosen.relations[0])
    assert number == 1 and theirs.tolist() == [0, -1]
    kind = chosen.table("persons").schema_of.groups(["kind"])
    assert mine.tolist() == np.where(kind == 0, 0, -1).tolist()


def test_at_most_may_be_said_of_invariant_counts_too():
    whole = fields()
    whole["constraints"][1] |= {"at_most": 2}
    chosen, data = TopDownPlan(**whole), tables()
    counted = count_tables(chosen, data)
    known = Known.of(counted)
    with refused("topdown-contradiction") as found:  # a1 has 30 dwellings, and some 80 persons in households
        require_kept(counted, known)
    assert "at most 2 for each" in str(found.value)
    many = data | {"dwellings": pl.concat([data["dwellings"]] * 3)}
    counted = count_tables(chosen, many)
    known = Known.of(counted)
    require_kept(counted, known)
    upper = known.kept(chosen.table("persons"), 2).bounds[-1].upper
    assert upper[:, 0].tolist() == [180, 0, 120, 60, 0]


# -- data and plans that are refused before anything is spent ----------------------------------------------------------


def test_data_outside_of_the_domain_are_refused_by_place(tmp_path):
    data = tables()
    vacant = pl.when(pl.col("town") == "b2").then(pl.lit("no")).otherwise("occupied").alias("occupied")
    empty = data["dwellings"].with_columns(vacant)
    with refused("topdown-contradiction") as found:
        draw(related(), data | {"dwellings": empty}, work=tmp_path / "work")
    assert "in 1 of its units (b2)" in str(found.value) and WORDS in str(found.value)
    assert not (tmp_path / "work").exists()
    with refused("topdown-contradiction"):
        check(related(at_most=1), data)


def not_sure():
    """Changes to the plan after which a fit may be unable to keep its relation, and what the message says of each."""
    whole = related().model_dump(mode="json", exclude_defaults=True)
    by_kind = {"table": "persons", "level": "county", "by": ["kind"]}
    divided = [{"table": "persons", "level": "state", "by": ["kind", "adult"]}]
    coarser = [{"table": "persons", "level": "town"}, by_kind]
    housed = {"table": "persons", "counted": "dwellings", "where": {"kind": ["household"]}}
    without_home = {"table": "persons", "counted": "homes", "where": {"kind": ["household"]}}
    twice = HOUSED | {"counted_where": {}, "at_least": 0}

    def more(**added):
        return {name: [*whole[name], *some] for name, some in added.items()}

    return [
        ({"invariants": [{"table": "persons", "level": "county"}, *whole["invariants"][1:]]},
         "the number of 'persons' in each county is kept below the root, and 3 groups"),
        (more(invariants=divided), "other rules tell apart records of 'persons' that it counts together"),
        (more(invariants=coarser), "is kept at a coarser level than the number of 'persons' in each town"),
        (more(relations=[twice]), "two relations are about the same records of 'persons'"),
        (more(constraints=[housed | {"at_least": 1}]),
         "a constraint also says how many records of that group there are at least"),
        (more(constraints=[housed | {"at_most": 30}]),
         "a constraint also says how many records of that group there are at most"),
        (more(constraints=[without_home]) | {"relations": [twice]},
         "some places may have 'dwellings' but, by a constraint, no record of that group"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_plans_without_a_guarantee_are_refused_before_anything_is_spent(number, tmp_path):
    change, words = not_sure()[number]
    chosen = TopDownPlan(**related().model_dump(mode="json", exclude_defaults=True) | change)
    data = tables()
    if number in (4, 5, 6):  # the data keep these constraints
        data = data | {"persons": pl.concat([data["persons"]] * 2)}
    with refused("relation-unsure") as found:
        counted = count_tables(chosen, data)
        RelatedTables.of(Known.of(counted))
    assert words in str(found.value)
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    with pytest.raises(StirredError):
        draw(chosen.model_copy(update={"dataset": "town"}), data, work=tmp_path / "work", ledger=ledger)
    assert not (tmp_path / "work").exists() and not ledger.entries()


def test_what_is_refused_could_fail():
    # County totals with three kinds that dwellings and homes allow in some towns only: sums of ranges allow counties
    # that no towns have, as enumeration shows.
    places = small_spine(np.random.default_rng(1))
    units = places.leaves
    total = np.ones((units, 1), dtype=np.int64)
    limits = [Limit("a total", 2, np.zeros(4, dtype=np.int32), total, total, exact=True)]
    for part in range(4):
        upper = np.where((np.arange(units) % 2 == part // 2)[:, None], MOST, 0)
        about = np.where(np.arange(4) == part, 0, -1).astype(np.int32)
        limits.append(Limit("a bound", 2, about, np.zeros_like(total), upper, exact=False))
    rules = TableRules(places, section(4), tuple(limits), (), "words")
    with refused("relation-unsure"):
        rules.require_sure()
    every = possible(places, rules, {}, 1)
    assert any(described(places, rules, {}, level, unit, 4) > every[level, unit] for level, unit in every if level < 2)


def test_an_earlier_release_and_a_relation_of_one_table_are_refused():
    counted = count_tables(related(), tables())
    leaf = len(counted.spine.levels) - 1
    earlier = Agreement(
        Path("before"), "persons", (), leaf, counted.spine.levels[leaf], counted.leaves["persons"], "0" * 64
    )
    with refused("relation-unsure") as found:
        RelatedTables.of(replace(Known.of(counted), agreements=(earlier,)))
    assert "'persons' must also agree with an earlier release" in str(found.value)
