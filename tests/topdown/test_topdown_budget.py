"""Shares and budgets of TopDown plans that keep stated errors, looked at again with the variances of every unit."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import census
import numpy as np
import polars as pl
import pytest
from random_census import random_census

import stirred
from stirred.errors import StirredError
from stirred.margins.margin_blocks import Margin
from stirred.margins.tree_shares import AskedPlace, TreePrecision, TreeShares
from stirred.semantics.targets import Calibration, ErrorTarget, read_targets
from stirred.topdown import preset
from stirred.topdown.data.counting import read_spine
from stirred.topdown.estimating.precision import Design
from stirred.topdown.plan.fields import TopDownPlan


def calibrated(plan: TopDownPlan, *targets: str, geography: Any = None, **options: Any) -> Calibration:
    """With nothing but the geography to read."""
    places = census.geography() if geography is None else geography
    return stirred.calibrate(plan, list(targets), {"geography": places}, **options)


def true_error(plan: TopDownPlan, geography: Any, target: ErrorTarget) -> float:
    """From the variance of every group in every unit."""
    spine = read_spine(plan, geography)
    table = target.table or plan.released[0].name
    fixed = [number for number, one in enumerate(plan.invariants) if one.table == table]
    design = Design.of(plan, spine, table, target.by, None, fixed)
    found = design.variances(spine.levels.index(target.level))
    return math.sqrt(found.mean(axis=0).max() if target.typical else found.max())


def shares_add_up(plan: TopDownPlan) -> bool:
    sums = [sum(table.level_shares.values(), Fraction(0)) for table in plan.released]
    sums += [
        sum((query.share(level) for query in table.queries), Fraction(0))
        for table in plan.released
        for level in plan.spine.all_levels
    ]
    return all(one == 1 for one in sums)


TARGETS = ("error of total at town <= 2", "typical error of colour at county <= 3")


def test_the_smallest_budget_keeps_every_target_exactly_as_written():
    plan = census.plan()
    found = calibrated(plan, *TARGETS)
    assert shares_add_up(found.plan) and found.plan.rho < plan.rho
    for one, read in zip(found.targets, read_targets(TARGETS), strict=True):
        reached = true_error(found.plan, census.geography(), read)
        assert one.met and one.after == pytest.approx(reached, rel=1e-9) and reached <= read.standard_error
        assert one.before == pytest.approx(true_error(plan, census.geography(), read), rel=1e-9)
    spent = float(found.plan.table("persons").rho)
    (table,) = found.fields["tables"]
    assert table["no_shares_need_less_than"] <= table["needed"] <= spent <= 1.01 * table["no_shares_need_less_than"]
    assert sum(one.costs["costs rho"] for one in found.targets) == pytest.approx(spent)
    assert found.plan.table("dwellings") == plan.table("dwellings")
    text = str(found)
    assert text.startswith("All targets are kept with rho of") and "no shares can do with less than" in text
    assert not found.confidential and "CONFIDENTIAL" not in text


def test_the_lines_to_paste_are_those_of_the_plan_found():
    import tomllib

    found = calibrated(census.plan(), *TARGETS)
    table = found.plan.table("persons")
    blocks = found.paste.split("# query ")
    first = tomllib.loads(blocks[0])
    assert Fraction(first["rho"]) == table.rho
    assert {level: Fraction(share) for level, share in first["level_shares"].items()} == dict(table.level_shares)
    for block, query in zip(blocks[1:], table.queries, strict=True):
        name, lines = block.split("\n", 1)
        assert name == query.name
        assert {key: Fraction(share) for key, share in tomllib.loads(lines)["shares"].items()} == dict(query.shares)


def test_what_is_saved_without_a_target_is_what_a_calibration_without_it_needs():
    both, one = calibrated(census.plan(), *TARGETS), calibrated(census.plan(), TARGETS[1])
    spent, alone = (float(found.plan.table("persons").rho) for found in (both, one))
    assert both.targets[0].costs["saved without it"] == pytest.approx(spent - alone, rel=0.02)


def test_a_given_budget_is_divided_and_said_to_be_enough_or_not():
    plan = census.plan()
    found = calibrated(plan, *TARGETS, rho="plan")
    assert found.plan.rho == plan.rho and shares_add_up(found.plan) and all(one.met for one in found.targets)
    assert all(one.after < one.before or one.before <= one.limit for one in found.targets)
    short = calibrated(plan, *TARGETS, rho="0.7")
    assert short.plan.rho == Fraction(7, 10) and not all(one.met for one in short.targets)
    assert "However it is divided it is not enough" in " ".join(str(short).split())
    assert json.loads(short.to_json())["all_met"] is False
    quotients = [one.after**2 / one.limit**2 for one in short.targets]
    assert quotients[0] == pytest.approx(quotients[1], rel=0.02)  # the worst is as small as it can be


def test_weights_and_sums_divide_a_given_budget_otherwise():
    plain, heavy = (calibrated(census.plan(), TARGETS[0] + weight, TARGETS[1], rho=1) for weight in ("", " weight 4"))
    assert heavy.targets[0].after < plain.targets[0].after and heavy.targets[1].after > plain.targets[1].after
    summed = calibrated(census.plan(), *TARGETS, rho=1, goal="sum")
    total = [sum(one.after**2 / one.limit**2 for one in found.targets) for found in (summed, plain)]
    assert total[0] <= total[1] * 1.001
    smallest = [calibrated(census.plan(), TARGETS[0] + weight, TARGETS[1]).plan.rho for weight in ("", " weight 4")]
    assert smallest[0] == smallest[1]


def test_two_tables_share_a_given_budget_so_that_the_worst_is_as_small_as_it_can_be():
    found = calibrated(census.plan(), TARGETS[0], "error of occupied at state <= 1", rho="1/2")
    assert found.plan.rho == Fraction(1, 2) and shares_add_up(found.plan)
    quotients = [one.after / one.limit for one in found.targets]
    assert quotients[0] == pytest.approx(quotients[1], rel=0.02)


def test_limits_on_the_guarantee_alone_scale_the_budget():
    plan = census.plan()
    found = calibrated(plan, "power at 5% <= 20%")
    assert found.targets[0].met and found.targets[0].after > 0.19
    for before, after in zip(plan.released, found.plan.released, strict=True):
        assert after.level_shares == before.level_shares and after.queries == before.queries and after.rho < before.rho
    assert "own Gaussian noise may have rho of" in " ".join(str(found).split())


def test_errors_and_limits_on_the_guarantee_are_kept_together_or_said_to_disagree():
    found = calibrated(census.plan(), TARGETS[0], "rho <= 5")
    assert all(one.met for one in found.targets) and "allows rho of at most 5" in str(found)
    with census.refused("targets-disagree") as refused:
        calibrated(census.plan(), TARGETS[0], "rho <= 0.6")
    assert "the errors need rho of 0.6" in str(refused.value)
    assert not calibrated(census.plan(), TARGETS[0], "rho <= 0.6", rho=1).targets[1].met


def test_what_is_published_exactly_needs_no_budget():
    found = calibrated(census.plan(), "error of total at county <= 1")
    assert found.plan == census.plan() and "needs no budget" in str(found)


def test_levels_that_the_spine_does_not_have_keep_their_share():
    levels = ["state", "county", "town"]
    plan = preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, levels)
    found = calibrated(plan, "error of race at town <= 3", "error of total at town <= 1")
    table = found.plan.table("persons")
    assert table.level_shares["us"] == plan.table("persons").level_shares["us"] == Fraction(1, 4)
    assert all(one.met for one in found.targets) and shares_add_up(found.plan)
    assert [query.share("us") for query in table.queries] == [query.share("us") for query in plan.released[0].queries]


def test_every_measured_query_keeps_the_least_share():
    found = calibrated(census.plan(), *TARGETS, least="1/50")
    table = found.plan.table("persons")
    shares = [
        table.rho_of(level, query) / table.rho for level in found.plan.spine.all_levels for query in table.queries
    ]
    assert min(shares) >= Fraction(1, 51)
    assert found.plan.rho > calibrated(census.plan(), *TARGETS, least="1/5000").plan.rho


@pytest.mark.parametrize("seed", range(6))
def test_random_plans_keep_their_targets(seed):
    rng = np.random.default_rng(seed)
    plan, data = random_census(rng)
    table = plan.released[0]
    level = str(rng.choice(plan.spine.all_levels))
    query = table.queries[int(rng.integers(len(table.queries)))]
    texts = [f"error of {query.name} at {level} in {table.name} <= 2", f"typical error of total at {level} <= 3"]
    try:
        found = calibrated(plan, *texts, geography=data["geography"])
    except StirredError as refused:
        assert refused.kind == "target-not-measured"
        return
    assert shares_add_up(found.plan)
    for read in read_targets(texts):
        assert true_error(found.plan, data["geography"], read) <= read.standard_error


@pytest.mark.parametrize(
    ("targets", "options", "kind", "words"),
    [
        (["error of colour <= 2"], {}, "bad-target", "must name a level"),
        (["error of colour at moon <= 2"], {}, "unknown-choice", "moon"),
        (["error of shape at town <= 2"], {}, "unknown-choice", "shape"),
        (["error of colour at town in homes <= 2"], {}, "unknown-choice", "homes"),
        (["error of colour at town <= 2"], {"rho": "much"}, "calibration-option", "--rho"),
        (["error of colour at town <= 2"], {"rho": "-1"}, "calibration-option", "--rho"),
        (["error of colour at town <= 2"], {"rho": "1/4"}, "calibration-option", "must be above 0.5"),
        (["error of colour at town <= 2"], {"least": "1/3"}, "calibration-option", "must be below 1/9"),
        (["error of colour at town <= 2"], {"least": "none"}, "calibration-option", "between 0 and 1"),
        (["error of colour at town <= 2"], {"goal": "best"}, "unknown-choice", "goal"),
        (["power at 5% <= 20%"], {"rho": "1"}, "calibration-option", "needs a target for an error"),
    ],
)
def test_what_cannot_be_asked_is_refused(targets, options, kind, words):
    with census.refused(kind) as refused:
        calibrated(census.plan(), *targets, **options)
    assert words in str(refused.value)


def test_a_target_that_no_measurement_tells_is_refused():
    fields = census.fields()
    persons = fields["tables"][0]
    persons["queries"] = [{"by": ["minor"], "shares": 1}]
    with census.refused("target-not-measured"):
        calibrated(TopDownPlan(**fields), "error of colour at town <= 2")


def test_a_total_of_several_tables_is_of_the_first_and_shared_names_ask_for_a_table():
    fields = census.fields()
    fields["tables"][1]["attributes"].append({"name": "colour", "values": ("red", "blue")})
    fields["tables"][1]["queries"] = [{"by": ["occupied", "colour"], "shares": 1}]
    with census.refused("bad-target"):
        calibrated(TopDownPlan(**fields), "error of colour at town <= 2")
    found = calibrated(TopDownPlan(**fields), "error of colour at town in dwellings <= 2")
    assert [one["table"] for one in found.fields["tables"]] == ["dwellings"]


# -- the 2020 redistricting data ---------------------------------------------------------------------------------

DETAIL, GROUPS = ("hhgq", "votingage", "hispanic", "cenrace"), ("hispanic", "cenrace")
AIMS = [
    ("county", ()), ("tract", ()), ("block_group", ()), ("tract", GROUPS), ("block_group", GROUPS), ("us", DETAIL),
    ("state", DETAIL), ("county", DETAIL), ("tract", DETAIL), ("block_group", DETAIL), ("block", DETAIL),
]  # fmt: skip


def production() -> tuple[TopDownPlan, pl.DataFrame]:
    """The plan with the shares of production on a regular geography of three states."""
    levels = ["state", "county", "tract", "block_group", "block"]
    sizes = (3, 10, 10, 3, 20)
    rows: list[tuple[str, ...]] = [()]
    for size in sizes:
        rows = [(*row, f"{row[-1] if row else ''}.{number}") for row in rows for number in range(size)]
    domains = {"votingage": ["17", "18"], "hispanic": ["no", "yes"], "cenrace": [f"r{one}" for one in range(63)]}
    return preset("pl94-2020", domains, levels, nation=True), pl.DataFrame(rows, schema=levels, orient="row")


def test_the_shares_of_production_are_found_again_from_its_errors():
    """With the errors that production has for totals, for race by ethnicity and for the detailed query as limits, no
    share is more than a factor of two from that of production, but one: state totals, which had 32% of rho and are
    kept exactly here (the production's states were split into parts whose totals were not)."""
    plan, geography = production()
    spine, table = read_spine(plan, geography), plan.table("persons")
    schema = table.schema_of
    measured = [(level, query) for level in spine.levels for query in table.queries if table.rho_of(level, query)]
    used = np.array([float(table.rho_of(level, query)) for level, query in measured])
    tree = TreePrecision.of(
        "persons",
        spine,
        [(spine.levels.index(level), Margin.of(schema, query.by)) for level, query in measured],
        [AskedPlace(spine.levels.index(level), Margin.of(schema, by)) for level, by in AIMS],
        [(spine.levels.index("state"), Margin.of(schema, ()))],
    )
    limits = np.array([one.max() for one in tree.variances(used)])
    found = TreeShares(tree, limits, np.ones(len(AIMS)), 1e-4).best()
    assert found.value <= found.bound * 1.001
    assert 0.6 < found.value / used.sum() < 0.7  # production spends the rest on state totals, for the most part
    shares = {(level, query.by): share for (level, query), share in zip(measured, found.shares, strict=True)}
    own = {(level, query.by): share / used.sum() for (level, query), share in zip(measured, used, strict=True)}
    large = [key for key in own if own[key] > 0.01]
    assert len(large) == 12 and ("state", ()) in large
    for key in large:
        if key != ("state", ()):
            assert 0.5 <= shares[key] / own[key] <= 2, key
    assert own["state", ()] > 0.3 and shares["state", ()] < 0.001
    without = [one for one in large if one != ("state", ())]
    quotients = [shares[one] / own[one] for one in without]
    assert max(quotients) / min(quotients) < 1.15  # among the others the proportions are those of production


def test_the_published_aim_alone_needs_far_less_than_production_spent():
    """The largest group of a block group of 500 within five percentage points in 95 of 100 cases: 25/1.96 persons."""
    plan, geography = production()
    found = calibrated(plan, "error of hispanic*cenrace at block_group <= 12.75", geography=geography)
    table = found.plan.table("persons")
    assert table.rho < Fraction(1, 100)
    query = next(one for one in table.queries if one.by == GROUPS)
    assert table.rho_of("block_group", query) / table.rho > Fraction(9, 10)
