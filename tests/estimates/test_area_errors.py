"""Expected errors of areas off the spine are those of dense least squares, and what repeated draws show."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from gls_oracle import LEVELS, Dense, geography, people, plan_of, released

from repeats import some_or
from stirred.errors import StirredError
from stirred.margins import areas as areas_module
from stirred.margins.areas import Areas, Overlap
from stirred.noise import SeededSource, discrete_gaussian
from stirred.topdown.data import counting
from stirred.topdown.data.counting import read_spine
from stirred.topdown.estimating.precision import (
    Design,
    Target,
    area_variances,
    errors_with_targets,
    expected_errors,
)
from stirred.topdown.plan.fields import TopDownPlan

VALUES = {"age": ("a", "b", "c", "d"), "sex": ("f", "m")}
RECODES = {
    "adult": ("age", {"no": ("a",), "yes": ("b", "c", "d")}),
    "even": ("age", {"e": ("b", "d"), "o": ("a", "c")}),
}
MARGINS = [[], ["age"], ["sex"], ["adult"], ["even"], ["age", "sex"], ["adult", "sex"]]


def read_targets(plan, data):
    """The spine of a plan and its target areas, from the list of places alone."""
    columns = (*counting._listed_columns(plan), *(one.column for one in plan.targets))
    opened = counting._open("geography", data, plan.spine.input, columns)
    spine, areas = counting._spine_of(plan, opened, with_areas=True)
    return spine, tuple(Target.of(spine, one) for one in areas)


def random_question(rng):
    """A spine, what is measured and kept on it, and areas of its towns."""
    sizes = [[int(rng.integers(1, 4)) for _ in range(rng.integers(1, 4))] for _ in range(rng.integers(1, 3))]
    queries = [MARGINS[at] for at in rng.choice(len(MARGINS), int(rng.integers(1, 4)), replace=False)]
    shares = [[int(n) for n in rng.integers(0, 4, len(queries))] for _ in LEVELS]
    for row in shares:
        row[int(rng.integers(len(row)))] += 1
    kept = [(LEVELS[int(rng.integers(3))], MARGINS[int(rng.integers(len(MARGINS)))])] if rng.random() < 0.5 else []
    plan = plan_of(VALUES, RECODES, queries, shares, kept, rho=str(rng.choice(["1/7", "3", "50"])))
    places = geography(sizes)
    of_leaf = rng.integers(-1, 3, len(places))
    if rng.random() < 0.3:  # areas of whole counties
        of_leaf = np.array([letters(name) % 4 - 1 for name in places["county"]])
    return plan, places, of_leaf, MARGINS[int(rng.integers(len(MARGINS)))]


def letters(name: str) -> int:
    return sum(ord(sign) for sign in name)


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(some_or(15, 120)))
def test_the_error_of_an_area_is_that_of_dense_least_squares(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    plan, places, of_leaf, by = random_question(rng)
    counted, release = released(tmp_path, plan, places, people(places, VALUES, 50, rng))
    dense = Dense(counted, release)
    spine = counted.spine
    number = dict(zip(places["town"], of_leaf, strict=True))
    of_leaf = np.array([number[name] for name in spine.names[2].to_pylist()])
    design = Design.of(plan, spine, "persons", by, None, range(len(plan.invariants)))
    overlap = Overlap.of(spine, of_leaf, 3)
    found = area_variances(design, overlap)
    monkeypatch.setattr(areas_module, "_HELD", 1)
    np.testing.assert_allclose(area_variances(design, overlap), found, rtol=1e-9, atol=1e-12)  # an area at a time
    every = dense.forms(2, by, {}).reshape(spine.leaves, dense.schema.number_of_groups(by), -1)
    for area in range(3):
        _, variances, _ = dense.answer(every[of_leaf == area].sum(axis=0))
        assert found[area] == pytest.approx(variances.max(), rel=1e-8, abs=1e-9)


def one_total(levels, shares, units) -> tuple[TopDownPlan, pl.DataFrame]:
    """A plan that measures totals only, with these shares of a rho of one."""
    table = {
        "name": "persons", "unit": "person", "rho": "1", "level_shares": dict(zip(levels, shares, strict=True)),
        "attributes": [{"name": "kind", "values": ["a"]}], "queries": [{"by": [], "shares": "1"}],
    }  # fmt: skip
    plan = TopDownPlan(spine={"levels": levels}, tables=[table], targets=[{"column": "area"}])
    return plan, pl.DataFrame(units, schema=[*levels, "area"], orient="row")


def test_a_by_passed_level_is_as_precise_as_both_budgets_in_one_measurement():
    levels, shares = ("state", "county", "town"), ("1/8", "3/8", "1/2")
    plan, places = one_total(levels, shares, [("s", "c", "t", "x")])
    chain = expected_errors(plan, read_spine(plan, places))
    assert [one.combined for one in chain] == pytest.approx([1.0, 1.0, 1.0], rel=1e-12)  # rho 1/8 + 3/8 + 1/2 = 1
    # One town is a county by itself; its county and town are one place with the budget of both.
    plan, places = one_total(levels, shares, [("s", "c", "t", "x"), ("s", "d", "u", "y"), ("s", "d", "v", "y")])
    _, target = errors_with_targets(plan, *read_targets(plan, places))
    # What is known of the state by itself, and of each of its counties from their own subtrees.
    state, joined, apart = Fraction(1, 8), Fraction(7, 8), Fraction(3, 8) + 1 / (2 / Fraction(1, 2))
    # A county from itself, and from the state less the other.
    exact = [1 / (own + 1 / (1 / state + 1 / other)) for own, other in ((joined, apart), (apart, joined))]
    assert target[0].on_spine == 2 and target[0].areas == 2
    assert target[0].on_median == pytest.approx(math.sqrt(min(exact)), rel=1e-12)
    assert max(exact) < Fraction(8, 3)


def test_errors_of_areas_are_what_draws_show(tmp_path):
    """2,000 draws of exact noise. An error is a weighted sum of many of them, whose square has a mean with a standard
    error of sqrt(2 / 2,000) of it: 6.5 of these are exceeded in less than 1e-9 of cases."""
    spine_rows = [("s", f"c{c}", f"c{c}t{t}", str((c + t) % 2)) for c in range(4) for t in range(3 + c)]
    plan, places = one_total(("state", "county", "town"), ("1/4", "1/4", "1/2"), spine_rows)
    spine, (target,) = read_targets(plan, places)
    design = Design.of(plan, spine, "persons")
    expected = area_variances(design, target.overlap)
    leaves = spine.leaves
    rows, variances = [], []
    for level, variance in ((0, 4), (1, 4), (2, 2)):
        bounds = spine.first_leaf(level)
        for unit in range(spine.units(level)):
            rows.append((np.arange(leaves) >= bounds[unit]) & (np.arange(leaves) < bounds[unit + 1]))
            variances.append(variance)
    matrix, weights = np.array(rows, dtype=float), 1 / np.array(variances)
    gain = np.linalg.solve(matrix.T * weights @ matrix, matrix.T * weights)
    draws = 2_000
    source = SeededSource(5)
    noise = np.stack([discrete_gaussian(Fraction(one), draws, source) for one in variances], axis=1)
    estimates = noise @ gain.T
    for area in range(2):
        errors = estimates[:, target.areas.of_leaf == area].sum(axis=1)
        assert abs((errors**2).mean() / expected[area] - 1) < 6.5 * math.sqrt(2 / draws)


def test_a_target_without_a_column_or_with_two_areas_for_a_block_is_an_error():
    plan, places = one_total(("state", "town"), ("1/2", "1/2"), [("s", "t", "x"), ("s", "u", None)])
    _, (target,) = read_targets(plan, places)
    assert target.areas.of_leaf.tolist() == [0, -1] and target.distances.tolist() == [1]
    with pytest.raises(StirredError, match="no column 'area'"):
        read_targets(plan, places.drop("area"))
    twice = pl.concat([places, pl.DataFrame([("s", "t", "y")], schema=places.schema, orient="row")])
    with pytest.raises(StirredError, match="1 town codes more than once; the first is t"):
        read_targets(plan, twice)


def test_an_area_without_blocks_has_no_error_and_takes_no_unit():
    plan, places = one_total(("state", "town"), ("1/2", "1/2"), [("s", "t", "x"), ("s", "u", None)])
    spine = read_spine(plan, places)
    empty = Target.of(spine, Areas("none", pa.array(["a", "b"]), np.array([1, -1])))
    assert empty.distances.tolist() == [0, 1]
    assert area_variances(Design.of(plan, spine, "persons"), empty.overlap)[0] == 0
    nothing = places.with_columns(area=pl.lit(None, pl.String))
    _, (found,) = errors_with_targets(plan, *read_targets(plan, nothing))
    assert found.areas == 0 and found.on_median is None and found.off_median is None and found.worst == ""
