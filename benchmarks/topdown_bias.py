"""The bias that nonnegativity makes in the smallest units, and what some remedies do about it, on the same draws.

Remedies change what the finest level is fitted to, by patching the step of the fit; none of them is part of a release.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from stirred.noise import SeededSource
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.fitting import table_fit
from stirred.topdown.fitting.level_problem import Measured
from stirred.topdown.fitting.table_fit import fit_table
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.plan.fields import TopDownPlan

AS_IT_IS, UNROUNDED, HEAVY = "as it is", "before rounding", "block totals weighted 100 times"
SIZES = {
    "drawn to housing units, variance 1 a person": 1.0,
    "drawn to housing units, variance 4 a person": 4.0,
    "drawn to housing units, variance 16 a person": 16.0,
}


def remedies(name: str, plan: TopDownPlan, data: dict[str, Path], draws: int) -> list[str]:
    """Rows of a table: the mean absolute error of block totals, and the bias by the true size of the block."""
    counted = count_tables(plan, data)
    truth = counted.histograms("persons", len(counted.spine.levels) - 1).totals()
    classes = [truth == 0, (truth > 0) & (truth < 10), (truth >= 10) & (truth < 100), truth >= 100]
    ways = [AS_IT_IS, UNROUNDED, HEAVY, *(SIZES if "units" in counted.leaves else {})]
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for draw in range(draws):
        with tempfile.TemporaryDirectory() as work:
            measure(counted, Path(work), SeededSource(draw))
            for way in ways:
                error = _totals(plan, counted, Measurements(Path(work)), way) - truth
                found[way].append([np.abs(error).mean(), *(error[one].mean() for one in classes)])
    rows = []
    for way, each in found.items():
        far, *biases = np.mean(each, axis=0)
        rows.append(f"| {name}, {way} | {far:.2f} | {' | '.join(f'{one:+.2f}' for one in biases)} |")
    return rows


def _totals(plan: TopDownPlan, counted: Counted, measurements: Measurements, way: str) -> Any:
    """The totals of the leaves."""
    spine, leaf = counted.spine, len(counted.spine.levels) - 1
    with _patched(counted, way) as unrounded:
        table = plan.table("persons")
        leaves = fit_table(Known.of(counted), measurements, table)[0]
    return np.concatenate(unrounded)[-spine.units(leaf) :] if way == UNROUNDED else leaves.totals()


@contextmanager
def _patched(counted: Counted, way: str) -> Iterator[list[Any]]:
    spine, leaf = counted.spine, len(counted.spine.levels) - 1
    told, fit, round_level = table_fit._Step._told, table_fit._Step.fit, table_fit.round_level
    above: list[Any] = []
    unrounded: list[Any] = []

    def new_fit(step: Any, parents: Any, first: int, last: int, values: Any) -> Any:
        above[:] = [] if parents is None else [parents.totals()]
        return fit(step, parents, first, last, values)

    def new_told(step: Any, units: slice, values: Any) -> Any:
        whole, few = told(step, units, values)
        if step.level < leaf or way in (AS_IT_IS, UNROUNDED):
            return whole, few
        total = whole[()]
        if way == HEAVY:
            return {**whole, (): Measured(total.groups, 100 * total.weight, total.values)}, few
        # Persons of the parent spread over its children like housing units, where there is no facility.
        homes = counted.histograms("units", leaf).totals()
        others = counted.histograms("facilities", leaf).totals()[units]
        parents = spine.parents(leaf)[units]
        share = homes[units] / np.maximum(np.add.reduceat(homes, spine.first_child[leaf - 1][:-1])[parents], 1)
        aim = above[0][parents - parents[0]] * share
        weight = np.where((others == 0) & (aim > 0), 1 / (SIZES[way] * np.maximum(aim, 1)), 0.0)
        both = total.weight + weight
        values = ((total.weight * total.values[:, 0] + weight * aim) / both)[:, None]
        return {**whole, (): Measured(total.groups, both, values)}, few

    def new_round(problem: Any, fitted: Any, chain: Any) -> Any:
        edges = problem.first_child
        for parent in range(len(edges) - 1) if way == UNROUNDED else ():
            values = fitted.values[fitted.starts[parent] : fitted.starts[parent + 1]]
            unrounded.append(values.reshape(-1, edges[parent + 1] - edges[parent]).sum(axis=0))
        return round_level(problem, fitted, chain)

    with (
        mock.patch.object(table_fit._Step, "fit", new_fit),
        mock.patch.object(table_fit._Step, "_told", new_told),
        mock.patch("stirred.topdown.fitting.table_fit.round_level", new_round),
    ):
        yield unrounded
