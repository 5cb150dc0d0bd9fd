"""The privacy loss of a whole survey release by enumeration: imputation, two queries, and standard errors around them.

A tiny plan and all pairs of files of two records that differ in one. Outputs are noisy counts of the imputation model,
noisy sums, and noisy standard errors of shares whose centres follow from the sums; the imputed values in between are
summed out. Probabilities of exact discrete Laplace noise are taken at every place where the ratio of two such laws can
be largest: between two neighbouring places of their centres it is monotone, and beyond the last one constant.
"""

from __future__ import annotations

import itertools
import math
import random
from functools import cache

import numpy as np
import pytest

from stirred.survey.data import Records
from stirred.survey.estimating.measured import MeasuredSurvey
from stirred.survey.estimating.questions import answer
from stirred.survey.imputing import ConditionalFrequencies, ParameterShare, frequency_weights
from stirred.survey.measuring import centres_of, error_noise, query_noise, true_errors, true_sums
from stirred.survey.plan.fields import SurveyPlan

PLAN = SurveyPlan(
    starts="responding sample",
    epsilon=4,
    weights={"column": "w", "lower": 1, "upper": 2},
    design={"selected": 2},
    attributes=[{"name": "sex", "values": ["f", "m"]}],
    variables=[{"name": "x", "lower": 0, "upper": 1}],
    imputation=[{"of": "sex", "kind": "frequencies", "share": "1/4"}],
    queries=[{"by": ["sex"], "share": "1/4"}, {"of": "x", "share": "1/4"}],
    publish=[{"kind": "proportion", "of": "sex", "errors": "1/4"}],
)
PARTS = ("imputation", "counts", "sum", "errors")
COUNTS, SUM = PLAN.queries
SHARES = PLAN.publish[0]
MISSING = -1
States = tuple[tuple[int, int, int], ...]
STATES = list(itertools.product((1, 2), (0, 1, MISSING), (0, 1)))
"""Weight, sex, x."""
MODEL_OUTPUTS = np.array(list(itertools.product((-20, -1, 0, 1, 2, 3, 20), repeat=2)))
COUNT_OUTPUTS = np.array(list(itertools.product((-60, -1, 0, 1, 2, 3, 4, 60), repeat=2)))
SUM_OUTPUTS = np.array([-30, 0, 1, 2, 3, 4, 30])


def scales() -> dict[str, float]:
    share = ParameterShare.of(PLAN.budget * PLAN.imputation[0].share)
    model = ConditionalFrequencies(((0, 0),), share)
    parameters = [model.noise, query_noise(PLAN, COUNTS).parameters, query_noise(PLAN, SUM).parameters,
                  error_noise(PLAN, SHARES).parameters]  # fmt: skip
    return {part: float(one[0] if isinstance(one, tuple) else one)
            for part, one in zip(PARTS, parameters, strict=True)}  # fmt: skip


def law(outputs: np.ndarray, true: np.ndarray, scale: float) -> np.ndarray:
    """The probability of each output (last axis: cells, independent) of discrete Laplace noise around ``true``."""
    ratio = math.exp(-1 / scale)
    cells = (1 - ratio) / (1 + ratio) * ratio ** np.abs(outputs - true)
    return cells.prod(axis=-1)


def records(file: States) -> Records:
    weight, sex, value = (np.array(column, dtype=np.int64) for column in zip(*file, strict=True))
    return Records(PLAN, len(file), weight, {"x": value}, {"sex": sex.astype(np.int32)}, {}, None, (), {})


@cache
def centres() -> tuple[tuple[int, ...], ...]:
    """By output of the counts the centres of the shares, which the standard errors are then measured around."""
    found = []
    for counts in COUNT_OUTPUTS:
        measured = MeasuredSurvey(PLAN, {COUNTS.name: counts, SUM.name: np.zeros(1, dtype=np.int64)})
        found.append(tuple(centres_of(PLAN, SHARES, answer(measured, SHARES).values).tolist()))
    return tuple(found)


@cache
def errors_of(file: States, around: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(true_errors(records(file), SHARES, np.array(around)))


def completed(file: States) -> list[States]:
    """All files that imputing may give."""
    choices = [[sex] if sex != MISSING else [0, 1] for _, sex, _ in file]
    return [
        tuple((weight, sex, value) for (weight, _, value), sex in zip(file, chosen, strict=True))
        for chosen in itertools.product(*choices)
    ]


def joint(file: States, scale: dict[str, float], places: np.ndarray) -> np.ndarray:
    """The law of model counts, noisy counts, noisy sum and noisy errors, the errors at the given ``places``."""
    observed = np.array([sum(sex == value for _, sex, _ in file) for value in (0, 1)])
    model = law(MODEL_OUTPUTS, observed, scale["imputation"])
    weights = frequency_weights(MODEL_OUTPUTS[:, None, :])[:, 0, :].astype(float)
    chance = weights / weights.sum(axis=1, keepdims=True)
    total = np.zeros((len(MODEL_OUTPUTS), len(COUNT_OUTPUTS), len(SUM_OUTPUTS), places.shape[1]))
    for full in completed(file):
        imputed = np.ones(len(MODEL_OUTPUTS))
        for (_, before, _), (_, after, _) in zip(file, full, strict=True):
            if before == MISSING:
                imputed = imputed * chance[:, after]
        counts = law(COUNT_OUTPUTS, true_sums(records(full), COUNTS), scale["counts"])
        sums = law(SUM_OUTPUTS[:, None], true_sums(records(full), SUM), scale["sum"])
        true = np.array([errors_of(full, around) for around in centres()])
        noisy = law(places, true[:, None, :], scale["errors"])
        total += np.einsum("m,c,s,ce->mcse", imputed, counts, sums, noisy)
    return model[:, None, None, None] * total


def loss(one: States, other: States, scale: dict[str, float]) -> float:
    """The largest log ratio of the probabilities of an output, over outputs at all places that matter."""
    places = []
    for around in centres():
        values = [errors_of(full, around) for file in (one, other) for full in completed(file)]
        cells = [sorted({value[at] for value in values}) for at in (0, 1)]
        places.append(list(itertools.product(*([min(cell), *cell, max(cell)] for cell in cells))))
    longest = max(map(len, places))
    table = np.array([row + row[:1] * (longest - len(row)) for row in places], dtype=float)
    first, second = joint(one, scale, table), joint(other, scale, table)
    return float(np.abs(np.log(first) - np.log(second)).max())


def pairs() -> list[tuple[States, States]]:
    chance = random.Random(3)
    found = [
        ((own, rest), (changed, rest)) for own, changed, rest in itertools.product(STATES, repeat=3) if own < changed
    ]
    return chance.sample(found, 25)


WORST = ((2, 0, 0), (2, 1, 1)), ((2, 1, 1), (2, 1, 1))
"""All four parts change as much as they can, or nearly."""


def test_the_loss_of_a_whole_release_is_at_most_epsilon():
    found = [loss(*pair, scales()) for pair in [WORST, *pairs()]]
    assert max(found) <= float(PLAN.budget) * (1 + 1e-9)
    assert max(found) > 0.7 * float(PLAN.budget)


@pytest.mark.slow
@pytest.mark.parametrize("rest", STATES)
def test_the_loss_of_a_whole_release_is_at_most_epsilon_for_all_pairs(rest):
    for own, changed in itertools.combinations(sorted(STATES), 2):
        assert loss((own, rest), (changed, rest), scales()) <= float(PLAN.budget) * (1 + 1e-9)


@pytest.mark.parametrize("part", PARTS)
def test_half_the_noise_of_one_part_is_noticed(part):
    scale = scales()
    halved = loss(*WORST, scale | {part: scale[part] / 2})
    assert halved > (float(PLAN.budget) * 1.1 if part != "errors" else loss(*WORST, scale) + 0.4)
    assert loss(*WORST, {name: one / 2 for name, one in scale.items()}) > float(PLAN.budget) * 1.4
