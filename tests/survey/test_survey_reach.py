"""One record never moves the sums of a query further than their noise covers, in any plan, by trying all pairs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_survey_plans import all_records, distinct_rows, file_of, may_become, may_vanish, others_move, random_plan

from repeats import times
from stirred.errors import StirredError
from stirred.survey.data import read_records
from stirred.survey.measuring import contributions, query_noise


def spent(plan, query, change: np.ndarray) -> np.ndarray:
    """What noise on changed sums costs, for every row of ``change``: of epsilon or of rho."""
    noise = query_noise(plan, query)
    parameters = np.array([float(one) for one in noise.parameters])[noise.class_of]
    if noise.law == "laplace":
        return (np.abs(change) / parameters).sum(axis=1)
    return (change**2 / (2 * parameters)).sum(axis=1)


def changes(plan, query) -> np.ndarray:
    """All vectors by which the sums of a query can change, each once."""
    states = all_records(plan)
    together = read_records(plan.model_copy(update={"sample": plan.sample.model_copy(update={"most": None})}),
                            file_of(states))  # fmt: skip
    each = np.zeros((len(states), plan.number_of_cells(query.by)), dtype=np.int64)
    each[np.arange(len(states)), together.cells(query.by)] = contributions(together, query.of)
    pairs = [(i, j) for i, one in enumerate(states) for j, other in enumerate(states) if may_become(plan, one, other)]
    own = each[[j for _, j in pairs]] - each[[i for i, _ in pairs]]
    if may_vanish(plan):
        own = np.concatenate([own, each, -each])
    found = distinct_rows(own)
    if others_move(plan):
        same = {}
        for at, one in enumerate(states):
            same.setdefault((one.stratum, one.sex, one.place, one.value, one.unit), []).append(at)
        moved = distinct_rows(
            np.array([each[j] - each[i] for group in same.values() for i in group for j in group], dtype=np.int64)
        )
        for _ in range(plan.sample.most - 1):
            found = distinct_rows((found[:, None, :] + moved[None, :, :]).reshape(-1, found.shape[1]))
    return found


def largest_share(plan, query) -> float | None:
    """The largest part of a query's budget that a change of one record uses up; None where nothing can change."""
    found = changes(plan, query)
    try:
        query_noise(plan, query)
    except StirredError:
        assert not found.any(), "something can change, and the plan is refused as if nothing could"
        return None
    return float(spent(plan, query, found).max()) / float(plan.budget * plan.share(query))


def ratios(seeds) -> list[tuple[float, object, object]]:
    found = []
    for seed in seeds:
        plan = random_plan(random.Random(seed))
        for query in plan.queries:
            ratio = largest_share(plan, query)
            if ratio is not None:
                found.append((ratio, plan, query))
    return found


def check(found) -> None:
    worst, plan, query = max(found, key=lambda one: one[0])
    assert worst <= 1 + 1e-12, (worst, plan, query)
    # Where no weight of others moves and the noise of all cells is alike, it is as small as it can be.
    tight = [
        one[0]
        for one in found
        if not others_move(one[1]) and one[1].noise == "laplace" and len(query_noise(one[1], one[2]).parameters) == 1
    ]
    assert min(tight) > 1 - 1e-12
    assert len(tight) > len(found) / 10


@pytest.mark.repeats
def test_noise_covers_every_change_of_a_record():
    check(ratios(range(times(120))))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_noise_covers_every_change_of_a_record_in_thousands_of_plans(part):
    check(ratios(range(1000 + 500 * part, 1500 + 500 * part)))
