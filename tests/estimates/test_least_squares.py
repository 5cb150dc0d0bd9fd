"""Estimates, variances and weights are those of dense generalised least squares, whatever the spine and the queries."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from gls_oracle import LEVELS, Dense, geography, people, plan_of, released
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import some_or
from stirred.errors import StirredError
from stirred.noise import SeededSource
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.measuring import measure
from stirred.topdown.plan.presets import HHGQ, preset
from strategies import Draws

VALUES = {"age": ("a", "b", "c", "d"), "sex": ("f", "m"), "colour": ("x", "y", "z")}
RECODES = {
    "adult": ("age", {"no": ("a",), "yes": ("b", "c", "d")}),
    "even": ("age", {"even": ("b", "d"), "odd": ("a", "c")}),  # crosses adult
    "same": ("sex", {"F": ("f",), "M": ("m",)}),
    "warm": ("colour", {"warm": ("x", "y"), "cold": ("z",)}),
}


@st.composite
def questions(draw):
    """A spine, what is measured and kept on it, and what is asked."""
    sizes = draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=2), min_size=1, max_size=2))
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2, unique=True))
    recodes = {name: body for name, body in RECODES.items() if body[0] in names and draw(st.booleans())}
    by = st.lists(st.sampled_from([*names, *recodes]), max_size=3, unique=True)
    queries = draw(st.lists(by, min_size=1, max_size=4, unique_by=lambda one: tuple(one)))
    if draw(st.booleans()) and names not in queries:
        queries.append(names)
    weight = st.sampled_from([0, 0, 1, 3])  # a level often leaves a query out
    shares = [draw(st.lists(weight, min_size=len(queries), max_size=len(queries)).filter(any)) for _ in LEVELS]
    kept = draw(st.lists(st.tuples(st.sampled_from(LEVELS), by), max_size=2))
    attributes = {name: VALUES[name] for name in names}
    plan = plan_of(attributes, recodes, queries, shares, kept, rho=draw(st.sampled_from(["1/7", "3", "50"])))
    where = {}
    for name in draw(st.lists(st.sampled_from([*names, *recodes]), max_size=2, unique=True)):
        known = plan.table("persons").schema_of.values(name)
        where[name] = draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
    persons = people(geography(sizes), attributes, 60, Draws(draw(st.data())))
    return sizes, plan, draw(by), where, persons, draw(st.integers(0, 2**20)), draw(st.booleans())


def build(tmp_path_factory, question):
    sizes, plan, by, where, persons, key, known = question
    counted, release = released(tmp_path_factory.mktemp("m"), plan, geography(sizes), persons, key, known)
    return Dense(counted, release), release, by, where


def agree(found, expected, variances, ruled_out=False):
    """Values and variances are those expected, but for counts that are 0 for certain and told so."""
    told = ruled_out & (found.values.ravel() == 0) & (found.variances.ravel() == 0)
    expected = np.where(np.isinf(variances), np.nan, expected)
    np.testing.assert_allclose(found.values.ravel()[~told], expected[~told], rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(found.variances.ravel()[~told], variances[~told], rtol=1e-9, atol=1e-11)


@contextlib.contextmanager
def suppress_unknown(variances):
    """Where nothing is measured of any count, a question may be refused even if some counts are 0 for certain."""
    try:
        yield
    except StirredError as problem:
        assert np.isinf(variances).all() and "No measurement of" in str(problem)


@pytest.mark.repeats
@settings(max_examples=some_or(10, 60), deadline=None)
@given(question=questions())
def test_every_level_is_the_dense_solution(tmp_path_factory, question):
    dense, release, by, where = build(tmp_path_factory, question)
    for number, level in enumerate(LEVELS):
        forms = dense.forms(number, by, where)
        expected, variances, _ = dense.answer(forms)
        ruled_out = dense.ruled_out(forms)
        if np.isinf(variances).all() and not ruled_out.any():
            with pytest.raises(StirredError, match="No measurement of 'persons' determines"):
                release.estimate("persons", by, where, level=level)
            continue
        with suppress_unknown(variances):
            agree(release.estimate("persons", by, where, level=level), expected, variances, ruled_out)


@pytest.mark.repeats
@settings(max_examples=some_or(8, 40), deadline=None)
@given(question=questions())
def test_the_noise_of_an_estimate_has_the_weights_of_the_dense_solution(tmp_path_factory, question):
    # From these weights the law of the error is listed, and from the law the interval.
    dense, release, by, where = build(tmp_path_factory, question)
    parameters = np.concatenate([
        np.full(entry.units * entry.cells, float(Fraction(entry.variance)))
        for entry in release.measurements.entries if entry.table == "persons"
    ])  # fmt: skip
    for number, level in enumerate(LEVELS):
        _, variances, weights = dense.answer(dense.forms(number, by, where))
        if np.isinf(variances).all():
            continue
        found = release.estimate("persons", by, where, level=level)
        for at, terms in enumerate(found.sums):
            for row in np.flatnonzero(found.sum_of.ravel() == at):
                expected = sorted((s, w) for w, s in zip(np.abs(weights[row]), parameters, strict=True) if w > 1e-8)
                listed = sorted((one.parameter, one.weight) for one in terms for _ in range(one.times))
                np.testing.assert_allclose([one for one in listed if one[1] > 1e-8], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.repeats
@settings(max_examples=some_or(8, 40), deadline=None)
@given(question=questions(), data=st.data())
def test_every_union_is_the_dense_solution(tmp_path_factory, question, data):
    dense, release, by, where = build(tmp_path_factory, question)
    spine = dense.counted.spine
    units = [(level, name) for level, names in zip(LEVELS, spine.names, strict=True) for name in names.to_pylist()]
    places = data.draw(st.lists(st.sampled_from(units), min_size=1, max_size=4))
    leaves = np.zeros(spine.leaves, dtype=bool)
    for level, name in places:
        at = LEVELS.index(level)
        unit, bounds = spine.names[at].to_pylist().index(name), spine.first_leaf(at)
        leaves[bounds[unit] : bounds[unit + 1]] = True
    groups = dense.schema.number_of_groups(by)
    forms = dense.forms(2, by, where).reshape(spine.leaves, groups, -1)[leaves].sum(axis=0)
    expected, variances, weights = dense.answer(forms)
    ruled_out = dense.ruled_out(forms)
    if np.isinf(variances).all() and not ruled_out.any():
        with pytest.raises(StirredError, match="No measurement of"):
            release.union("persons", by, where, places=places)
        return
    with suppress_unknown(variances):
        agree(release.union("persons", by, where, places=places), expected, variances, ruled_out)
    if not by and variances[0] > 1e-9:
        sources = release.explain("persons", where, places=places)
        assert sum(one.share for one in sources) == pytest.approx(1, abs=1e-9)
        assert max(one.weight for one in sources) == pytest.approx(np.abs(weights).max(), rel=1e-8)


@pytest.mark.repeats
@settings(max_examples=some_or(6, 25), deadline=None)
@given(question=questions())
def test_weights_are_those_of_the_dense_solution(tmp_path_factory, question):
    dense, release, _, where = build(tmp_path_factory, question)
    for number in range(len(LEVELS)):
        forms = dense.forms(number, (), where)
        _, variances, weights = dense.answer(forms)
        unit = len(forms) - 1
        if np.isinf(variances[unit]):
            continue
        place = release.spine.names[number].to_pylist()[unit]
        design = release._design("persons", (), where)
        found = design.weights(release._whole_units([(LEVELS[number], place)]))
        together = np.concatenate([part.ravel() for _, _, part in found])
        np.testing.assert_allclose(together, weights[unit], rtol=1e-8, atol=1e-9)


def test_estimates_are_consistent_along_the_spine_and_over_margins(tmp_path):
    places = geography([[2, 3], [1, 2]])
    plan = plan_of(
        VALUES, RECODES, [[], ["adult", "colour"], ["age", "sex", "colour"]], [[1, 2, 3], [4, 1, 1], [1, 1, 8]]
    )
    persons = people(places, VALUES, 300, np.random.default_rng(1))
    counted, release = released(tmp_path, plan, places, persons)
    towns = release.estimate("persons", ["sex", "even"], level="town")
    counties = release.estimate("persons", ["sex", "even"], level="county")
    added = np.add.reduceat(towns.values, counted.spine.first_child[1][:-1], axis=0)
    np.testing.assert_allclose(added, counties.values, atol=1e-8)
    total = release.estimate("persons", level="county")
    np.testing.assert_allclose(counties.values.sum(axis=1), total.values[:, 0], atol=1e-8)
    some = release.estimate("persons", where={"even": ["odd"], "sex": ["m"]}, level="county")
    at = counties.labels.index(("m", "odd"))
    np.testing.assert_allclose(some.values[:, 0], counties.values[:, at], atol=1e-8)
    np.testing.assert_allclose(some.variances[:, 0], counties.variances[:, at], rtol=1e-9)


@pytest.mark.parametrize("shares", [[[1, 0], [1, 0], [0, 1]], [[1, 0], [0, 1], [1, 0]], [[0, 1], [1, 0], [1, 0]]])
def test_what_one_level_measures_is_known_above_it_and_in_only_children(tmp_path, shares):
    places = geography([[2, 1], [1]])
    attributes = {"sex": VALUES["sex"]}
    plan = plan_of(attributes, {}, [[], ["sex"]], shares)
    counted, release = released(tmp_path, plan, places, people(places, attributes, 80, np.random.default_rng(1)))
    dense = Dense(counted, release)
    told = [release.estimate("persons", "sex", level=level) for level in LEVELS]
    for number, found in enumerate(told):
        expected, variances, _ = dense.answer(dense.forms(number, ("sex",), {}))
        agree(found, expected, variances)
    finest = next(number for number, row in enumerate(shares) if row[1])
    assert all(np.isfinite(found.variances).all() for found in told[: finest + 1])
    assert np.isfinite(told[2].variances[3]).all()  # alone in its county and state


def test_the_census_preset_is_solved_exactly(tmp_path):
    # All eleven queries with their production shares and the recode of group quarters; two races only.
    domains = {"votingage": ("no", "yes"), "hispanic": ("no", "yes"), "cenrace": ("1", "2")}
    plan = preset("pl94-2020", domains)
    # Without what the dense equations do not know: combinations that cannot occur, and constraints.
    tables = tuple(table.model_copy(update={"zeros": ()}) for table in plan.tables)
    plan = plan.model_copy(update={"tables": tables, "constraints": ()})
    levels = plan.spine.levels
    blocks = pl.DataFrame([("1", "11", "111", *pair) for pair in (("a", "a1"), ("a", "a2"), ("b", "b1"))],
                          schema=dict.fromkeys(levels, pl.String), orient="row")  # fmt: skip
    rng = np.random.default_rng(3)
    cells = {"hhgq": HHGQ[:1] + HHGQ[4:], **domains}
    persons = pl.DataFrame({"block": rng.choice(["a1", "a2", "b1"], 500)}).with_columns(
        *(pl.Series(name, rng.choice(values, 500).astype(str)) for name, values in cells.items())
    )
    none = {"units": ("block", "occupancy"), "facilities": ("block", "type")}
    data = {name: pl.DataFrame(schema=dict.fromkeys(columns, pl.String)) for name, columns in none.items()}
    counted = count_tables(plan, {"geography": blocks, "persons": persons, **data})
    measure(counted, tmp_path, SeededSource(1))
    release = MeasuredRelease.open(tmp_path, plan, counted.spine, Known.of(counted).exact)
    dense = Dense(counted, release)
    for by in ((), ("cenrace", "hispanic"), ("hhinstlevels",), ("votingage", "hhgq")):
        for number, level in enumerate(levels):
            expected, variances, _ = dense.answer(dense.forms(number, by, {}))
            agree(release.estimate("persons", by, level=level), expected, variances)


def test_a_kept_margin_is_returned_exactly_and_improves_what_it_does_not_tell(tmp_path):
    places = geography([[2, 3], [1, 2]])
    queries, shares = [[], ["age", "sex"]], [[1, 1], [1, 1], [1, 1]]
    attributes = {"age": VALUES["age"], "sex": VALUES["sex"]}
    plan = plan_of(attributes, {}, queries, shares, [("state", ()), ("county", ("sex",))])
    persons = people(places, attributes, 300, np.random.default_rng(2))
    counted, release = released(tmp_path, plan, places, persons)
    dense = Dense(counted, release)
    counties = release.estimate("persons", ["sex"], level="county")
    np.testing.assert_allclose(counties.values, dense.truth(1, ("sex",)), atol=1e-8)
    assert (counties.variances == 0).all() and (counties.interval_kinds == "known").all()
    assert np.array_equal(counties.interval(0.99)[0], dense.truth(1, ("sex",)))
    assert counties.exact == ("the number of 'persons' in each state", "the number of 'persons' by sex in each county")
    blind = type(release).open(tmp_path, plan, counted.spine)
    towns, fewer = release.estimate("persons", level="town"), blind.estimate("persons", level="town")
    assert (towns.variances < 0.95 * fewer.variances).all()
    assert fewer.exact == () and len(fewer.unused) == 2 and towns.unused == ()


def test_values_of_invariants_that_contradict_each_other_are_refused(tmp_path):
    places = geography([[2, 3], [1, 2]])
    attributes = {"sex": VALUES["sex"]}
    plan = plan_of(attributes, {}, [["sex"]], [[1], [1], [1]], [("state", ()), ("county", ("sex",))])
    persons = people(places, attributes, 300, np.random.default_rng(2))
    counted, release = released(tmp_path, plan, places, persons)
    wrong = (release.exact[0] + np.array([[1], [0]]), release.exact[1])
    other = type(release).open(tmp_path, plan, counted.spine, wrong)
    with pytest.raises(StirredError, match=r"In 1 units of level 'state' \(\w+\) the values given for invariants"):
        other.estimate("persons", level="town")
