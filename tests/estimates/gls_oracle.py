"""Small releases at random, and generalised least squares on all cells of all leaves at once: dense and slow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from stirred.noise import SeededSource
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.data.histograms import marginal_by
from stirred.topdown.estimating.precision import LEAST
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.measuring import measure
from stirred.topdown.plan.fields import TopDownPlan

LEVELS = ("state", "county", "town")


def geography(sizes):
    """``sizes`` has for each state, for each county its number of towns."""
    rows = [
        (f"s{s}", f"s{s}c{c}", f"s{s}c{c}t{t}")
        for s, counties in enumerate(sizes)
        for c, towns in enumerate(counties)
        for t in range(towns)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(LEVELS, pl.String), orient="row")


def people(places, attributes, number, rng):
    columns = {"town": rng.choice(places["town"].to_numpy(), number)}
    columns |= {name: rng.choice(np.array(values, dtype=object), number) for name, values in attributes.items()}
    return pl.DataFrame({name: pl.Series(name, list(values), dtype=pl.String) for name, values in columns.items()})


def plan_of(attributes, recodes, queries, shares, invariants=(), rho="1/2", level_shares=None, **more):
    """``queries`` are lists of names; ``shares`` a list of whole numbers for each level, one for each query."""
    levels = level_shares or dict.fromkeys(LEVELS, "1/3")
    divided = {level: [Fraction(n, sum(row)) for n in row] for level, row in zip(LEVELS, shares, strict=True)}
    table = {
        "name": "persons", "unit": "person", "rho": rho, "level_shares": levels,
        "attributes": [{"name": name, "values": values} for name, values in attributes.items()],
        "recodes": [{"name": name, "of": of, "groups": groups} for name, (of, groups) in recodes.items()],
        "queries": [
            {"by": by, "shares": {level: divided[level][n] for level in LEVELS}}
            for n, by in enumerate(queries)
            if any(divided[level][n] for level in LEVELS)
        ],
    }  # fmt: skip
    kept = [{"table": "persons", "level": level, "by": by} for level, by in invariants]
    return TopDownPlan(spine={"levels": LEVELS}, tables=[table], invariants=kept, **more)


def released(folder, plan, places, persons, seed=1, known=True):
    """The counts, and the measurements opened with the values of invariants or without."""
    counted = count_tables(plan, {"geography": places, "persons": persons})
    measure(counted, folder, SeededSource(seed))
    exact = Known.of(counted).exact if known else None
    return counted, MeasuredRelease.open(folder, plan, counted.spine, exact)


@dataclass
class Dense:
    """Unknowns are the cells of all leaves, leaf by leaf."""

    counted: Counted
    release: MeasuredRelease

    def __post_init__(self):
        self.schema = self.counted.plan.table("persons").schema_of
        rows, values, variances = [], [], []
        for entry in self.release.measurements.entries:
            if entry.table != "persons":
                continue
            level = self.counted.spine.levels.index(entry.level)
            rows.append(self.rows(level, entry.by))
            values.append(self.release.measurements.values(entry, slice(0, entry.units)).ravel())
            variances.append(np.full(entry.units * entry.cells, max(LEAST, float(Fraction(entry.variance)))))
        self.matrix, self.values = np.vstack(rows), np.concatenate(values).astype(float)
        self.variances = np.concatenate(variances)
        size = self.matrix.shape[1]
        plan, exact = self.counted.plan, self.release.exact
        pairs = [(one, value) for one, value in zip(plan.invariants, exact, strict=True) if value is not None]
        given = [(one, value) for one, value in pairs if one.table == "persons"]
        fixed = [self.rows(self.counted.spine.levels.index(one.level), one.by) for one, _ in given]
        equations = np.vstack([np.zeros((0, size)), *fixed])
        right = np.concatenate([np.zeros(0), *(value.ravel() for _, value in given)])
        self.empty = (equations[right == 0] != 0).any(axis=0)  # cells in a count that is kept and is 0
        start = np.linalg.pinv(equations, rcond=1e-10) @ right
        self.free = np.eye(size)
        if len(equations):
            _, singular, vectors = np.linalg.svd(equations)
            self.free = vectors[int((singular > 1e-9).sum()) :].T
        scaled = self.matrix @ self.free / np.sqrt(self.variances)[:, None]
        left, singular, vectors = np.linalg.svd(scaled, full_matrices=False)
        seen = singular > 1e-10 * singular.max(initial=1)
        self.seen = vectors[seen].T
        pseudo = self.seen / singular[seen] @ left[:, seen].T / np.sqrt(self.variances)
        self.gain = self.free @ pseudo
        self.mean = start + self.gain @ (self.values - self.matrix @ start)

    def rows(self, level, by):
        """A row for each unit of a level and group of a margin."""
        spine = self.counted.spine
        bounds = spine.first_leaf(level)
        leaves = np.zeros((spine.units(level), spine.leaves))
        for unit in range(len(leaves)):
            leaves[unit, bounds[unit] : bounds[unit + 1]] = 1
        groups = np.ones((1, self.schema.cells))
        for name in by:  # a cell may be in several groups of a recode
            members = self.schema.members(name)
            groups = (groups[:, None, :] * members[None]).reshape(-1, groups.shape[1])
        return np.kron(leaves, groups)

    def forms(self, level, by, where):
        chosen = self.schema.where(where)
        return self.rows(level, by) * np.tile(chosen, self.counted.spine.leaves)

    def ruled_out(self, forms):
        """Which counts are 0 for certain: all their cells are in counts that are kept and are 0."""
        return ~(forms != 0)[:, ~self.empty].any(axis=1)

    def answer(self, forms):
        """Estimates, variances (infinite where they do not exist) and weights of the measurements."""
        loads = forms @ self.free
        unseen = np.abs(loads - loads @ self.seen @ self.seen.T).max(axis=1, initial=0) > 1e-7
        weights = forms @ self.gain
        variances = np.where(unseen, np.inf, (weights**2 * self.variances).sum(axis=1))
        return forms @ self.mean, variances, weights

    def truth(self, level, by):
        histograms = self.counted.histograms("persons", level)
        return marginal_by(histograms, self.schema, by)
