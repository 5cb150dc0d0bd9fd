"""Random small survey plans, and all pairs of tiny files that such a plan compares, found without the mechanism's code.

What may change is written down here once more, from the words of the plan: the reading of a change, Table 6.2 for the
weights, and what stands in a frame that is held fixed. A record is (weight, stratum, sex, place, value, primary unit).
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.survey.plan.fields import SurveyPlan

STARTS = ("target sample", "responding sample", "edited and imputed data", "weights")
STAGES = ("", "population", "frame", "target sample")
STRATA, SEXES, PLACES, UNITS = ("a", "b"), ("f", "m"), ("x", "y"), ("1", "2")


@dataclass(frozen=True)
class Record:
    weight: int
    stratum: str
    sex: str
    place: str
    value: int
    unit: str


def random_plan(chance: random.Random, publish=(), *, clusters: bool | None = None) -> SurveyPlan:
    """A plan with two attributes beside the strata, one of which may stand in the frame, and one variable."""
    starts = chance.choice(STARTS)
    fits = STAGES[:3] if starts == "target sample" else STAGES
    final = chance.random() < 0.4
    upper = chance.choice((1, 2, 3))
    lower = chance.randint(1, upper)
    stratified = chance.random() < 0.6
    sizes = {name: {"selected": 4} for name in STRATA}
    if stratified and chance.random() < 0.5:
        low = chance.randint(lower, upper)
        sizes[chance.choice(STRATA)] |= {"lower": low, "upper": chance.randint(low, upper)}
    design = {"strata": "stratum", "sizes": sizes} if stratified else {"selected": 4}
    if chance.random() < 0.5 if clusters is None else clusters:
        design["clusters"] = "unit"
    bounds = chance.choice(((0, 2), (-1, 1), (-2, 1), (1, 2), (0, 1), (-2, -1)))
    by = [[], ["sex"], ["place"], ["sex", "place"]]
    if stratified:
        by += [["stratum"], ["stratum", "sex"], ["place", "stratum"]]
    queries = [{"of": of, "by": one} for of in (None, "value") for one in chance.sample(by, 2)]
    return SurveyPlan(
        starts=starts,
        holds_fixed=chance.choice(fits),
        change=chance.choice(("unit", "value")),
        **{chance.choice(("epsilon", "rho")): 1},
        weights={"column": "weight", "lower": lower, "upper": upper, "kind": "final" if final else "design",
                 "outside": "cut" if final or chance.random() < 0.5 else "refuse"},
        sample={"most": chance.choice((1, 2, 3)), "everybody_responds": chance.random() < 0.4,
                "design_depends_on_frame": chance.random() < 0.5, "stratum_sizes_fixed": chance.random() < 0.5},
        design=design,
        attributes=[{"name": "sex", "values": SEXES}, {"name": "place", "values": PLACES, "in_frame": True},
                    {"name": "stratum", "values": STRATA, "in_frame": chance.random() < 0.5}],
        variables=[{"name": "value", "lower": bounds[0], "upper": bounds[1]}],
        queries=queries,
        publish=publish,
    )  # fmt: skip


# -- what may change ----------------------------------------------------------------------------------------------


def frame_fixed(plan: SurveyPlan) -> bool:
    return plan.holds_fixed in ("frame", "target sample")


def weights_depend(plan: SurveyPlan) -> bool:
    """Table 6.2: design weights are fixed with the frame, or where the design does not look at it; final ones never."""
    if plan.weights.kind == "final":
        return True
    return not frame_fixed(plan) and plan.sample.design_depends_on_frame


def others_move(plan: SurveyPlan) -> bool:
    """Whether weights of other records may change: not where the weights are part of the record that is protected."""
    return weights_depend(plan) and plan.starts != "weights"


def may_vanish(plan: SurveyPlan) -> bool:
    return plan.starts == "target sample" and not plan.sample.everybody_responds


def weights_in(plan: SurveyPlan, stratum: str) -> list[int]:
    low, high = plan.weights.lower, plan.weights.upper
    section = plan.design.sizes.get(stratum)
    if section is not None and section.lower is not None:
        low, high = section.lower, section.upper
    return list(range(int(low), int(high) + 1))


def all_records(plan: SurveyPlan) -> list[Record]:
    variable = plan.variable("value")
    values = range(int(variable.lower), int(variable.upper) + 1)
    strata = STRATA if plan.design.strata else STRATA[:1]
    units = UNITS if plan.design.clusters else UNITS[:1]
    return [
        Record(weight, stratum, sex, place, value, unit)
        for stratum in strata
        for weight in weights_in(plan, stratum)
        for sex, place, value, unit in itertools.product(SEXES, PLACES, values, units)
    ]


def may_become(plan: SurveyPlan, one: Record, other: Record) -> bool:
    """Whether the file with ``other`` in the place of ``one`` is compared."""
    if plan.change == "unit":
        sizes = plan.sample.stratum_sizes_fixed and frame_fixed(plan) and plan.design.strata is not None
        same = sizes and (plan.starts == "target sample" or plan.sample.everybody_responds)
        return not same or one.stratum == other.stratum
    if not weights_depend(plan) and one.weight != other.weight:
        return False
    if not frame_fixed(plan):
        return True
    return (one.place, one.unit) == (other.place, other.unit) and (
        plan.design.strata is None or one.stratum == other.stratum
    )


def file_of(records: list[Record]) -> pl.DataFrame:
    columns = {name: [getattr(one, name) for one in records] for name in Record.__dataclass_fields__}
    return pl.DataFrame(columns)


def distinct_rows(rows: np.ndarray) -> np.ndarray:
    return np.unique(rows, axis=0)
