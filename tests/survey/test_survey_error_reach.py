"""One record never moves measured standard errors further than their noise covers, whatever the centres are.

Pairs of tiny files are drawn at random with extreme values, thousands of them, for every kind of table: the changed
record may go to another cell, stratum or primary unit, vanish, and change the weights of all others.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from small_survey_plans import PLACES, SEXES, STARTS, STRATA, may_become, may_vanish, others_move, weights_in

from repeats import times
from stirred.errors import StirredError
from stirred.survey.data import Records
from stirred.survey.measuring import CENTRES, centres_of, error_noise, true_errors, units
from stirred.survey.plan.fields import SurveyPlan

KINDS = ("count", "total", "mean", "proportion", "ratio")
COLOURS = ("p", "q", "r", "s", "t")


@dataclass(frozen=True)
class Record:
    weight: int
    stratum: str
    unit: int
    sex: str
    place: str
    colour: str
    value: int
    size: int


def plan_of(chance: random.Random, kind: str) -> SurveyPlan:
    """A random plan with one table of measured standard errors."""
    clusters, stratified, final = (chance.random() < part for part in (0.6, 0.6, 0.3))
    upper = chance.choice((1, 3, 7))
    low, high = chance.choice(((0, 2), (-1, 1), (-2, 1), (1, 2), (0, 7), (-2, -1)))
    selected = chance.choice((2, 2, 3, 4))
    size = {"selected": selected, "population": chance.choice((None, selected, selected + 1, 50))}
    sizes = {name: dict(size) for name in STRATA}
    if chance.random() < 0.2:
        sizes["a"] = {"selected": 1}
    design = {"strata": "stratum", "sizes": sizes, "single": "certain"} if stratified else size
    if clusters:
        design["clusters"] = "unit"
    of = {"count": None, "proportion": "colour"}.get(kind, "value")
    by = chance.choice(([], ["sex"], ["place"], ["sex", "place"]))
    return SurveyPlan(
        starts=chance.choice(STARTS),
        holds_fixed=chance.choice(("", "frame")),
        change=chance.choice(("unit", "value")),
        **{chance.choice(("epsilon", "rho")): 1},
        weights={"column": "weight", "lower": chance.randint(1, upper), "upper": upper, "outside": "cut",
                 "kind": "final" if final else "design"},
        sample={"most": 4, "everybody_responds": chance.random() < 0.4, "stratum_sizes_fixed": chance.random() < 0.3},
        design=design,
        attributes=[{"name": "sex", "values": SEXES}, {"name": "place", "values": PLACES, "in_frame": True},
                    {"name": "stratum", "values": STRATA},
                    {"name": "colour", "values": COLOURS[: chance.randint(1, 5)]}],
        variables=[{"name": "value", "lower": low, "upper": high}, {"name": "size", "lower": -1, "upper": 2}],
        queries=[{"by": ["sex", "place", "colour"]}, {"of": "value", "by": ["sex", "place"]},
                 {"of": "size", "by": ["sex", "place"]}],
        publish=[{"kind": kind, "by": by, "errors": "1/2", "of": of, "over": "size" if kind == "ratio" else None}],
    )  # fmt: skip


def selected(plan: SurveyPlan, stratum: str) -> int:
    return plan.design.sizes[stratum].selected if plan.design.strata else plan.design.selected


def random_record(chance: random.Random, plan: SurveyPlan) -> Record:
    """A record, mostly with extreme values and in the first cell."""
    stratum = chance.choice(STRATA) if plan.design.strata else STRATA[0]
    value, size = plan.variable("value"), plan.variable("size")
    mostly = 0.7
    return Record(
        chance.choice(weights_in(plan, stratum)[:: max(1, len(weights_in(plan, stratum)) - 1)]),
        stratum,
        chance.randrange(selected(plan, stratum)),
        SEXES[chance.random() > mostly],
        PLACES[chance.random() > mostly],
        chance.choice(plan.attribute("colour").values[:2 if chance.random() < mostly else None]),
        int(chance.choice((value.lower, value.upper))),
        int(chance.choice((size.lower, size.upper))),
    )  # fmt: skip


def records_of(plan: SurveyPlan, rows: list[Record]) -> Records:
    codes = {one.name: np.array([one.values.index(getattr(row, one.name)) for row in rows], dtype=np.int32)
             for one in plan.attributes}  # fmt: skip
    values = {name: np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in ("value", "size")}
    places = {key: at for at, key in enumerate(dict.fromkeys((row.stratum, row.unit) for row in rows))}
    clusters = np.array([places[row.stratum, row.unit] for row in rows], dtype=np.int64)
    weights = np.array([row.weight for row in rows], dtype=np.int64)
    return Records(plan, len(rows), weights, values, codes, {}, clusters if plan.design.clusters else None, (), {})


def random_pair(chance: random.Random, plan: SurveyPlan) -> tuple[list[Record], list[Record]]:
    """Two files that the plan compares."""
    others = [random_record(chance, plan) for _ in range(chance.randint(0, 3))]
    own = random_record(chance, plan)
    changed = random_record(chance, plan)
    while not may_become(plan, own, changed):
        changed = random_record(chance, plan)
    after = others
    if others_move(plan):
        after = [
            Record(chance.choice(weights_in(plan, one.stratum)), *list(vars(one).values())[1:])
            if chance.random() < 0.8 else one
            for one in others
        ]  # fmt: skip
    if may_vanish(plan) and chance.random() < 0.2:
        return [own, *others], after
    return [own, *others], [changed, *after]


def random_centres(chance: random.Random, plan: SurveyPlan, cells: int) -> np.ndarray:
    wide = chance.choice((0.5, 1.0, 4.0))
    values = np.array([chance.choice((-wide, 0.0, wide, chance.uniform(-wide, wide), np.nan)) for _ in range(cells)])
    return centres_of(plan, plan.publish[0], values)


def largest_share(seed: int, kind: str, pairs: int) -> float:
    chance = random.Random(seed)
    plan = plan_of(chance, kind)
    wanted = plan.publish[0]
    noise = error_noise(plan, wanted)
    parameter, cells = float(noise.parameters[0]), len(noise.class_of)
    worst = 0.0
    for _ in range(pairs):
        centres = random_centres(chance, plan, cells)
        try:
            before, after = (
                np.array(true_errors(records_of(plan, rows), wanted, centres), dtype=np.float64)
                for rows in random_pair(chance, plan)
            )
        except StirredError:  # more records in a stratum than it selects
            continue
        change = np.abs(before - after)
        cost = change.sum() / parameter if plan.noise == "laplace" else (change**2).sum() / (2 * parameter)
        worst = max(worst, cost * 2)  # the share of the budget is one half
    return worst


@pytest.mark.repeats
@pytest.mark.parametrize("kind", KINDS)
def test_noise_covers_what_one_record_does_to_standard_errors(kind):
    found = [largest_share(seed, kind, 40) for seed in range(times(40))]
    assert max(found) <= 1 + 1e-12
    assert max(found) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_noise_covers_what_one_record_does_to_standard_errors_in_many_plans(kind):
    assert max(largest_share(seed, kind, 150) for seed in range(1000, 1200)) <= 1 + 1e-12


# -- pairs that use up all of it -----------------------------------------------------------------------------------


def cost(plan: SurveyPlan, centres: list[int], *files: list[Record]) -> float:
    wanted = plan.publish[0]
    found = [np.array(true_errors(records_of(plan, rows), wanted, np.array(centres)), float) for rows in files]
    change, parameter = np.abs(found[0] - found[1]), float(error_noise(plan, wanted).parameters[0])
    spent = change.sum() / parameter if plan.noise == "laplace" else (change**2).sum() / (2 * parameter)
    return spent / float(plan.budget * wanted.errors)


def record(**changes) -> Record:
    fields = {"weight": 3, "stratum": "a", "unit": 0, "sex": "f", "place": "x", "colour": "p", "value": 1, "size": 1}
    return Record(**(fields | changes))


def small_plan(kind: str, clusters: bool = True, budget: str = "epsilon", **more) -> SurveyPlan:
    chance = random.Random(1)
    plan = plan_of(chance, kind)
    design = {"selected": 2} | ({"clusters": "unit"} if clusters else {})
    fields = plan.model_dump() | {"epsilon": None, "rho": None, budget: 1, "starts": "responding sample",
                                  "holds_fixed": "frame", "change": "unit", "design": design,
                                  "weights": {"column": "weight", "lower": 1, "upper": 3}}  # fmt: skip
    fields["attributes"][3]["values"] = COLOURS[:3]
    fields["publish"][0]["by"] = []
    return SurveyPlan(**(fields | more))


@pytest.mark.parametrize("budget", ["epsilon", "rho"])
def test_a_record_that_goes_to_the_other_of_two_primary_units_uses_up_all(budget):
    """Totals (1, 1) become (0, 2): the standard error goes from 0 to twice the residual."""
    plan = small_plan("count", budget=budget)
    assert cost(plan, [0], [record(), record(unit=1)], [record(unit=1), record(unit=1)]) == 1


@pytest.mark.parametrize("budget", ["epsilon", "rho"])
def test_a_residual_that_changes_its_sign_uses_up_all(budget):
    plan = small_plan("mean", False, budget, variables=[{"name": "value", "lower": -1, "upper": 1},
                                                        {"name": "size", "lower": 0, "upper": 1}])  # fmt: skip
    assert cost(plan, [0], [record(), record()], [record(), record(value=-1)]) == 1


def test_shares_use_up_nearly_all_where_one_centre_is_one():
    """The record's value has the share 0 and another one the share 1: both standard errors move by two weights."""
    plan = small_plan("proportion")
    pair = [record(), record(unit=1)], [record(unit=1), record(unit=1)]
    assert 0.99 < cost(plan, [0, CENTRES, 0], *pair) <= 1


def test_centres_of_shares_add_up_to_at_most_one():
    """Without that, a record of one value would move the standard errors of all values by its whole weight."""
    plan = small_plan("proportion")
    pair = [record(), record(unit=1)], [record(unit=1), record(unit=1)]
    assert cost(plan, [CENTRES] * 3, *pair) <= 1
    assert cost(plan, [0, CENTRES, CENTRES], *pair) > 1.4
    for values in (
        [5.0, 5.0, -9.0],
        [1.0, 1.0, 1.0],
        [np.nan, np.inf, -np.inf],
        [0.3, 0.3, 0.4],
        [0.999, 0.0007, 0.0005],
    ):
        centres = centres_of(plan, plan.publish[0], np.array(values))
        assert centres.min() >= 0 and centres.sum() <= CENTRES


# -- the standard errors themselves ----------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_follow_from_the_definition(kind):
    """Within rounding: half a step for each record, and one for the root."""
    chance = random.Random(7)
    for _ in range(times(60)):
        plan = plan_of(chance, kind)
        rows, wanted = random_pair(chance, plan)[0], plan.publish[0]
        centres = random_centres(chance, plan, len(error_noise(plan, wanted).class_of))
        try:
            found = true_errors(records_of(plan, rows), wanted, centres)
        except StirredError:
            continue
        by = [plan.attribute(name).values for name in wanted.by]
        values = plan.attribute("colour").values if kind == "proportion" else [None]
        steps = {"proportion": Fraction(1, CENTRES), "mean": Fraction(1, CENTRES), "ratio": Fraction(1, CENTRES)}
        labels = [(*group, value) for group in _product(by) for value in values]
        for label, multiple, unit, centre in zip(labels, found, units(plan, wanted, centres), centres, strict=True):
            *group, value = label
            totals: dict[tuple[str, int], Fraction] = {}
            for at, row in enumerate(rows):
                if [getattr(row, name) for name in wanted.by] == group:
                    key = (row.stratum, row.unit if plan.design.clusters else at)
                    middle = int(centre) * steps.get(kind, 0)
                    residual = {"count": Fraction(1), "total": Fraction(row.value), "mean": row.value - middle,
                                "ratio": row.value - middle * row.size,
                                "proportion": (row.colour == value) - middle}[kind]  # fmt: skip
                    totals[key] = totals.get(key, Fraction(0)) + row.weight * residual
            variance = 0.0
            for stratum in STRATA if plan.design.strata else STRATA[:1]:
                part = plan.design.sizes[stratum] if plan.design.strata else plan.design
                n, here = part.selected, [float(one) for key, one in totals.items() if key[0] == stratum]
                if n > 1:
                    here += [0.0] * (n - len(here))
                    kept = 1 - n / part.population if part.population else 1.0
                    variance += kept * n / (n - 1) * sum((one - sum(here) / n) ** 2 for one in here)
            assert abs(math.sqrt(variance) - multiple * float(unit)) <= float(unit) * (1 + len(rows)) + 1e-9


def _product(values):
    return [[]] if not values else [[one, *rest] for one in values[0] for rest in _product(values[1:])]


def test_residuals_of_long_numbers_do_not_wrap_around():
    """A ratio of two numbers with 10^13 steps has residuals of about 90 bits."""
    plan = small_plan("ratio", False, variables=[{"name": "value", "lower": 0, "upper": 10**13},
                                                 {"name": "size", "lower": 0, "upper": 10**13}])  # fmt: skip
    centres = np.array([10**13 * CENTRES])
    rows = [record(value=0, size=10**13), record(value=0, size=0)]
    (found,) = true_errors(records_of(plan, rows), plan.publish[0], centres)
    exact = 3 * 10**13 * 10**13
    assert found == 1024
    assert float(units(plan, plan.publish[0], centres)[0]) * found == pytest.approx(exact)
