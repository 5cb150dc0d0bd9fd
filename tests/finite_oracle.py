"""Random small worlds, and Definition 2.4.5 written out: what the propositions are checked against.

The oracle loops over universes and ordered pairs and shares no code with :mod:`stirred.spec.order.finite_mechanisms`
but the divergences between two distributions, which have oracles of their own in ``tests/loss``.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from stirred.loss import divergences
from stirred.spec import Budget, Domain, Flavor, InputPremetric, Multiverse, OutputPremetric, Specification
from stirred.spec.order.finite_mechanisms import FiniteMechanism

MULTIPLICATIVE = OutputPremetric("multiplicative")
RHO = OutputPremetric("normalised-renyi")
VARIATION = OutputPremetric("total-variation")
RENYI = OutputPremetric("renyi", 3)
APPROXIMATE = OutputPremetric("approximate", "0.1")
NUMBERS = (MULTIPLICATIVE, VARIATION, APPROXIMATE, RENYI, RHO)
METRICS = (MULTIPLICATIVE, VARIATION, RHO)
SEPARATING = (MULTIPLICATIVE, RENYI, RHO)


def apart(output: OutputPremetric, p, q) -> float:
    """D_Pr(P, Q)."""
    if output.name in ("approximate", "renyi"):
        return getattr(divergences, output.name)(p, q, float(output.parameter))
    return getattr(divergences, output.name.replace("-", "_"))(p, q)


def universes(flavor) -> list[tuple[str, ...]]:
    return list(flavor.multiverse.universes) or [flavor.domain.datasets]


def losses(mechanism: FiniteMechanism, flavor) -> list[float]:
    """The loss in each universe, in the budget's sense."""
    law = dict(zip(mechanism.datasets, mechanism.rows, strict=True))
    power = flavor.output_premetric.kind.power
    distances = {(x, y): d * flavor.input_premetric.scale for x, y, d in flavor.input_premetric.distances}
    between = {}
    found = []
    for universe in universes(flavor):
        worst = 0.0
        for x, y in itertools.permutations(universe, 2):
            if (x, y) not in distances:
                continue
            if (x, y) not in between:
                between[x, y] = apart(flavor.output_premetric, law[x], law[y])
            if between[x, y] > 1e-12:
                distance = float(distances[x, y])
                worst = max(worst, math.inf if distance == 0 else (between[x, y] / distance) ** power)
        found.append(worst)
    return found


def satisfied(mechanism: FiniteMechanism, specification: Specification, slack: float = 1e-9) -> bool:
    """Definition 2.4.5, up to rounding."""
    budgets = specification.budget.by_universe or itertools.repeat(specification.budget.number)
    return all(
        loss <= float(budget) * (1 + slack) + 1e-12
        for loss, budget in zip(losses(mechanism, specification), budgets, strict=False)
    )


# -- random worlds -------------------------------------------------------------------------------------------


def random_rows(random: np.random.Generator, datasets: int, outputs: int) -> np.ndarray:
    """Laws of several characters: spread, concentrated, alike, with zeros, all the same but one."""
    character = random.integers(6)
    if character == 0:
        rows = random.dirichlet(np.ones(outputs), datasets)
    elif character == 1:
        rows = random.dirichlet(np.full(outputs, 0.3), datasets)
    elif character == 2:
        rows = random.dirichlet(np.ones(outputs)) * np.exp(random.normal(0, 0.1, (datasets, outputs)))
    elif character == 3:
        rows = random.dirichlet(np.ones(outputs), datasets) * random.integers(0, 2, (datasets, outputs))
        rows[rows.sum(axis=1) == 0] = 1
    elif character == 4:
        rows = np.tile(random.dirichlet(np.ones(outputs)), (datasets, 1))
        rows[random.integers(datasets)] = random.dirichlet(np.ones(outputs))
    else:
        walk = np.cumsum(random.normal(0, 0.5, (datasets, outputs)), axis=0)
        rows = np.exp(walk)
    return rows / rows.sum(axis=1, keepdims=True)


def random_mechanism(random: np.random.Generator, names, outputs: int | None = None) -> FiniteMechanism:
    count = int(outputs or random.integers(2, 5))
    return FiniteMechanism(tuple(names), tuple(f"t{i}" for i in range(count)), random_rows(random, len(names), count))


def random_premetric(random: np.random.Generator, names, choices=(0, "1/2", 1, 1, 2, 3, math.inf)) -> InputPremetric:
    """Any premetric: not symmetric, without the triangle inequality, with zeros and infinities."""
    table = {pair: choices[random.integers(len(choices))] for pair in itertools.permutations(names, 2)}
    if random.random() < 0.5:
        table = {(x, y): table[min(x, y), max(x, y)] for x, y in table}
    return InputPremetric.table(table)


def random_universes(random: np.random.Generator, names) -> tuple[tuple[str, ...], ...]:
    """A list of subsets, sometimes none (one universe of all)."""
    if random.random() < 0.2:
        return ()
    masks = random.random((random.integers(1, 5), len(names))) < 0.6
    return Multiverse((), tuple(tuple(np.array(names)[mask].tolist()) for mask in masks if mask.any())).universes


def random_flavor(random: np.random.Generator, output: OutputPremetric, size: int = 4, **choices) -> Flavor:
    names = tuple("abcdefg"[:size])
    domain = Domain("toy", datasets=names)
    multiverse = Multiverse((), random_universes(random, names))
    return Flavor(domain, multiverse, random_premetric(random, names, **choices), output)


def near_budgets(random: np.random.Generator, flavor: Flavor, mechanism: FiniteMechanism) -> Specification:
    """A specification that the mechanism satisfies narrowly, comfortably, or not; budgets by universe now and then."""
    factors = (Fraction(1, 2), Fraction(9, 10), Fraction(1), Fraction(1), Fraction(2))
    found = []
    for loss in losses(mechanism, flavor):
        factor = factors[random.integers(len(factors))]
        found.append(math.inf if loss == math.inf else Fraction(loss) * factor)
    found = [budget if budget < math.inf or random.random() < 0.5 else Fraction(1) for budget in found]
    if flavor.multiverse.universes and random.random() < 0.5:
        return flavor.at(Budget(max(found), by_universe=tuple(found)))
    return flavor.at(max(found))
