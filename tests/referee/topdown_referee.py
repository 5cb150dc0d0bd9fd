"""The referee of ``topdown``: what is spent beside brute-force sensitivity, estimates beside dense linear algebra, and
fits beside everything that the plan declares, counted again from the rows.

Random plans and censuses are those of ``tests/topdown/random_census.py`` and ``tests/estimates/gls_oracle.py``.
"""

from __future__ import annotations

import itertools
import math
import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from referee_harness import Case, claim

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "topdown"), str(TESTS / "estimates")]

import gls_oracle  # noqa: E402
from random_census import random_census  # noqa: E402
from related_census import broken_by_hand, related_census  # noqa: E402

from stirred.errors import StirredError  # noqa: E402
from stirred.noise import SeededSource  # noqa: E402
from stirred.semantics import Concern, exposure  # noqa: E402
from stirred.topdown.data.constraints import Known  # noqa: E402
from stirred.topdown.data.counting import count_tables, read_spine  # noqa: E402
from stirred.topdown.drawing import fit_tables  # noqa: E402
from stirred.topdown.estimating.questions import MeasuredRelease  # noqa: E402
from stirred.topdown.fitting.table_fit import fit_table  # noqa: E402
from stirred.topdown.measuring import Measurements, entries, measure  # noqa: E402
from stirred.topdown.plan.guarantee import specify  # noqa: E402

Row = tuple[str, ...]


class Census:
    """A plan with its rows, counted by hand: a person is (home, values of attributes)."""

    def __init__(self, plan: Any, data: dict[str, Any]) -> None:
        self.plan, self.levels = plan, list(plan.spine.levels)
        self.above = {row[-1]: dict(zip(self.levels, row, strict=True)) for row in data["geography"].rows()}
        self.persons: list[Row] = data["persons"].rows()
        table = plan.table("persons")
        self.names = [one.name for one in table.attributes]
        self.recodes = {
            one.name: (one.of, {value: group for group, values in one.groups.items() for value in values})
            for one in table.recodes
        }

    def unit(self, home: str, level: str) -> str:
        return self.above[home][level] if level in self.levels else "all"

    def value(self, person: Row, name: str) -> str:
        if name in self.recodes:
            base, groups = self.recodes[name]
            return str(groups[person[1 + self.names.index(base)]])
        return person[1 + self.names.index(name)]

    def cell(self, person: Row, level: str, by: tuple[str, ...]) -> Row:
        """Where a person is counted by a query."""
        return (self.unit(person[0], level), *(self.value(person, name) for name in by))

    def counts(self, persons: list[Row], level: str, by: tuple[str, ...]) -> Counter[Row]:
        return Counter(self.cell(person, level, by) for person in persons)


def census(case: Case) -> tuple[Any, dict[str, Any], Census]:
    plan, data = random_census(case.random)
    case.say(plan=plan.model_dump(mode="json", exclude_defaults=True) if hasattr(plan, "model_dump") else str(plan))
    return plan, data, Census(plan, data)


# -- accounting ----------------------------------------------------------------------------------------------


@claim("topdown", cases=1200)
def what_is_spent(case: Case) -> None:
    """One person replaced by any other: the squared change of all measured cells over twice their variances."""
    plan, data, counted = census(case)
    spine = read_spine(plan, data["geography"])
    found = [one for one in entries(plan, spine) if one.table == "persons"]
    stated = specify(plan).budget.number
    homes = list(counted.above)
    values = [one.values for one in plan.table("persons").attributes]
    people = [(home, *cell) for home in homes for cell in itertools.product(*values)]
    picked = [people[int(at)] for at in case.random.integers(0, len(people), 6)]
    for before, after in itertools.combinations(picked, 2):
        cost = Fraction(0)
        for entry in found:
            # A person who leaves one cell and enters another changes both by one.
            moved = counted.cell(before, entry.level, entry.by) != counted.cell(after, entry.level, entry.by)
            cost += Fraction(2 if moved else 0) / (2 * Fraction(entry.variance))
        case.holds(cost <= stated, f"{before} replaced by {after} costs {cost}, more than {stated}")
    whole = sum((1 / Fraction(entry.variance) for entry in found), Fraction(0))
    case.holds(whole == stated, f"all queries together cost {whole}, stated are {stated}")
    sizes = {name: len(some) for name, some in zip(counted.names, values, strict=True)}
    sizes |= {name: len(set(groups.values())) for name, (_, groups) in counted.recodes.items()}
    for entry in found:
        cells = math.prod(sizes[name] for name in entry.by)
        case.holds(entry.cells == cells, f"{entry.by} has {cells} cells, not {entry.cells}")


@claim("topdown", cases=400)
def counts_on_the_spine(case: Case) -> None:
    plan, data, counted = census(case)
    found = count_tables(plan, data)
    schema = plan.table("persons").schema_of
    for number, level in enumerate(found.spine.levels):
        by = tuple(name for name in (*counted.names, *counted.recodes) if case.random.random() < 0.4)
        truth = counted.counts(counted.persons, level, by)
        table = found.counts("persons", level, by)
        units = found.spine.names[number].to_pylist()
        labels = schema.labels(by)
        read = {
            (str(unit), *label): int(table[i, j])
            for (i, unit), (j, label) in itertools.product(enumerate(units), enumerate(labels))
            if table[i, j]
        }
        if level not in counted.levels:
            read = {("all", *key[1:]): count for key, count in read.items()}
        case.holds(read == dict(truth), f"{level} by {by}: {read} instead of {dict(truth)}")


# -- concerns ------------------------------------------------------------------------------------------------


@claim("semantics", cases=250)
def concerns(case: Case) -> None:
    """What is spent on one attribute, or on the place within a unit: the most that changing it alone can cost."""
    plan, data, counted = census(case)
    found = [one for one in entries(plan, read_spine(plan, data["geography"])) if one.table == "persons"]
    values = [one.values for one in plan.table("persons").attributes]
    homes = list(counted.above)

    def cost(before: Row, after: Row) -> Fraction:
        moved = [e for e in found if counted.cell(before, e.level, e.by) != counted.cell(after, e.level, e.by)]
        return sum((1 / Fraction(entry.variance) for entry in moved), Fraction(0))

    someone = (homes[0], *(some[0] for some in values))
    for at, name in enumerate(counted.names):
        others = [(*someone[: at + 1], value, *someone[at + 2 :]) for value in values[at]]
        worst = max((cost(x, y) for x, y in itertools.combinations(others, 2)), default=Fraction(0))
        stated = exposure(plan.allocation(), Concern((name,)), rounded=False).rho
        case.holds(worst <= stated, f"a change of {name} costs {worst}, stated are {stated}")
        if len(values[at]) > 1:
            case.holds(worst == stated, f"no change of {name} costs {stated}, the most is {worst}")
    for level in plan.allocation().levels[:-1]:
        worst = Fraction(0)
        for x, y in itertools.combinations(homes[:12], 2):
            if counted.unit(x, level) == counted.unit(y, level):
                worst = max(worst, cost((x, *someone[1:]), (y, *someone[1:])))
        stated = exposure(plan.allocation(), Concern(within=level), rounded=False).rho
        case.holds(worst <= stated, f"a move within {level} costs {worst}, stated are {stated}")


# -- fits ----------------------------------------------------------------------------------------------------


@claim("topdown", cases=250)
def fits(case: Case) -> None:
    """Whole numbers, none negative; invariants, impossible cells and constraints as they are in the rows."""
    plan, data, counted = census(case)
    found = count_tables(plan, data)
    table = plan.table("persons")
    with tempfile.TemporaryDirectory() as folder:
        measure(found, Path(folder), SeededSource(case.whole("key", 0, 2**20)))
        leaves, _ = fit_table(Known.of(found), Measurements(Path(folder)), table)
    case.holds(
        leaves.counts.dtype == np.int64 and bool(np.all(leaves.counts > 0)), "whole numbers above 0, where listed"
    )
    shape = [len(one.values) for one in table.attributes]
    places = found.spine.names[-1].to_pylist()
    persons: list[Row] = []
    for at, home in enumerate(places):
        for k in range(int(leaves.starts[at]), int(leaves.starts[at + 1])):
            codes = np.unravel_index(int(leaves.cells[k]), shape)
            cell = tuple(one.values[int(code)] for one, code in zip(table.attributes, codes, strict=True))
            persons += [(str(home), *cell)] * int(leaves.counts[k])
    for one in plan.invariants:
        if one.table == "persons":
            kept, truth = (counted.counts(some, one.level, one.by) for some in (persons, counted.persons))
            case.holds(kept == truth, f"persons at {one.level} by {one.by}: {dict(kept)} instead of {dict(truth)}")
    for zero in table.zeros:
        wrong = [p for p in persons if all(counted.value(p, name) in values for name, values in zero.items())]
        case.holds(not wrong, f"impossible persons {wrong[:3]}")
    if plan.constraints:
        living = Counter((person[0], person[1]) for person in persons)
        empty = [pair for pair in data["facilities"].rows() if not living[pair]]
        case.holds(not empty, f"facilities without persons: {empty[:3]}")


@claim("topdown", cases=250, counted=0.4)
def related_fits(case: Case) -> None:
    """Relations between tables, counted from the rows; plans that are refused are not counted."""
    plan, data = related_census(case.random)
    case.say(plan=plan.model_dump(mode="json", exclude_defaults=True))
    found = count_tables(plan, data)
    with tempfile.TemporaryDirectory() as folder:
        measure(found, Path(folder), SeededSource(case.whole("key", 0, 2**20)))
        try:
            fitted = fit_tables(Known.of(found), Measurements(Path(folder)))
        except StirredError as refusal:
            if refusal.kind == "relation-unsure":
                return
            raise
    rows = {}
    for table in plan.released:
        names, leaves = [one.name for one in table.attributes], fitted[table.name][0]
        labels = table.schema_of.labels(names)
        homes = np.repeat(found.spine.names[-1].to_pylist(), np.diff(leaves.starts))
        listed = [
            (str(home), *labels[cell])
            for home, cell, count in zip(homes, leaves.cells, leaves.counts, strict=True)
            for _ in range(count)
        ]
        columns = [plan.spine.levels[-1], *names]
        rows[table.name] = pl.DataFrame(listed, schema=dict.fromkeys(columns, pl.String), orient="row")
    broken = broken_by_hand(plan, rows)
    case.holds(not broken, f"relations that are not kept: {broken[:3]}")


# -- estimates -----------------------------------------------------------------------------------------------

VALUES = {"age": ("a", "b", "c", "d"), "sex": ("f", "m"), "colour": ("x", "y", "z")}
RECODES = {
    "adult": ("age", {"no": ("a",), "yes": ("b", "c", "d")}),
    "even": ("age", {"even": ("b", "d"), "odd": ("a", "c")}),
    "warm": ("colour", {"warm": ("x", "y"), "cold": ("z",)}),
}


@claim("topdown", cases=220)
def estimates(case: Case) -> None:
    """Generalised least squares on all cells of all leaves at once, by dense matrices."""
    random = case.random
    sizes = [[int(n) for n in random.integers(1, 3, random.integers(1, 3))] for _ in range(random.integers(1, 3))]
    names = [str(one) for one in random.choice(list(VALUES), random.integers(1, 3), replace=False)]
    recodes = {name: body for name, body in RECODES.items() if body[0] in names and random.random() < 0.5}

    def some() -> list[str]:
        return [name for name in (*names, *recodes) if random.random() < 0.4]

    queries = [list(one) for one in {tuple(some()) for _ in range(random.integers(1, 5))}]
    if random.random() < 0.7 and names not in queries:
        queries.append(names)
    shares = []
    for _ in gls_oracle.LEVELS:
        row = random.choice([0, 0, 1, 3], len(queries))
        row[int(random.integers(len(queries)))] = 1
        shares.append([int(one) for one in row])
    kept = [(str(random.choice(gls_oracle.LEVELS)), some()) for _ in range(random.integers(0, 3))]
    kept = [one for number, one in enumerate(kept) if one not in kept[:number]]
    rho = case.pick("rho", ("1/7", "3", "50"))
    case.say(sizes=sizes, names=names, recodes=list(recodes), queries=queries, shares=shares, kept=kept)
    plan = gls_oracle.plan_of({name: VALUES[name] for name in names}, recodes, queries, shares, kept, rho=rho)
    places = gls_oracle.geography(sizes)
    persons = gls_oracle.people(places, {name: VALUES[name] for name in names}, 40, random)
    by, where = some(), {}
    if random.random() < 0.5:
        where = {names[0]: [VALUES[names[0]][0]]}
    case.say(by=by, where=where)
    with tempfile.TemporaryDirectory() as folder:
        known = bool(random.integers(2))
        counted, release = gls_oracle.released(Path(folder), plan, places, persons, case.whole("key", 0, 999), known)
        case.holds(isinstance(release, MeasuredRelease), "a release")
        dense = gls_oracle.Dense(counted, release)
        for number, level in enumerate(gls_oracle.LEVELS):
            means, variances, _ = dense.answer(dense.forms(number, by, where))
            try:
                found = release.estimate("persons", by, where, level=level)
            except StirredError:
                case.holds(bool(np.isinf(variances).all()), f"stirred has no estimate at {level}, dense algebra has")
                continue
            # Pseudo-inverses in floats: condition numbers of some thousands leave nine digits.
            values, spreads = found.values.ravel(), found.variances.ravel()
            truth = (
                dense.forms(number, by, where)
                @ dense.counted.histograms("persons", 2).dense(dense.schema.cells).ravel()
            )
            for k in range(len(means)):
                if spreads[k] == 0 and variances[k] > 1e-9:  # ruled out by published counts
                    case.holds(values[k] == 0 == truth[k], f"estimate {k} at {level} is taken to be 0")
                    continue
                case.same(spreads[k], variances[k], f"variance {k} at {level}", relative=1e-8, absolute=1e-10)
                if math.isfinite(variances[k]):
                    case.same(values[k], means[k], f"estimate {k} at {level}", relative=1e-8, absolute=1e-7)


CLAIMS = (what_is_spent, counts_on_the_spine, concerns, fits, related_fits, estimates)
