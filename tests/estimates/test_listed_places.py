"""Files of places: estimates, shares and comparisons are those of dense least squares; bad files are refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from gls_oracle import LEVELS, Dense
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from test_least_squares import agree, build, questions
from test_ratios import MEASURES, delta, small, value_of

from repeats import some_or
from stirred.errors import StirredError
from stirred.margins.areas import Unions, fewest_units
from stirred.topdown.estimating.places import place_list
from stirred.topdown.estimating.questions import MeasuredRelease


def refusal(kind, words, ask):
    with pytest.raises(StirredError) as found:
        ask()
    assert found.value.kind == kind and words in str(found.value), found.value


def listed_as(release, sets):
    """Places from sets of the numbers of leaves."""
    names = release.spine.names[-1].to_pylist()
    rows = [(names[leaf], f"p{at}") for at, leaves in enumerate(sets) for leaf in sorted(leaves)]
    return release.listed(pl.DataFrame(rows, schema=["town", "district"], orient="row"))


def forms_of(dense, sets, by, where):
    """The cells of every group in each place."""
    leaves = dense.forms(2, by, where)
    leaves = leaves.reshape(dense.counted.spine.leaves, -1, leaves.shape[1])
    return np.stack([leaves[sorted(one)].sum(axis=0) for one in sets])


def ruled_out(release, leaves, by, where):
    """Which groups cannot have anybody in all units of a place."""
    units = release._whole_units([("town", release.spine.names[2][leaf].as_py()) for leaf in leaves])
    asked = "persons", tuple(by), {name: tuple(values) for name, values in where.items()}
    return np.logical_and.reduce(
        [release._impossible(*asked, level)[some].all(axis=0) for level, some in units.items()]
    )


# -- against dense least squares -----------------------------------------------------------------------------


@pytest.mark.repeats
@settings(max_examples=some_or(8, 100), deadline=None)
@given(question=questions(), data=st.data())
def test_counts_in_listed_places_are_the_dense_solution(tmp_path_factory, question, data):
    dense, release, by, where = build(tmp_path_factory, question)
    leaves = release.spine.leaves
    sets = data.draw(st.lists(st.sets(st.integers(0, leaves - 1), min_size=1), min_size=1, max_size=4))
    forms = forms_of(dense, sets, by, where)
    expected, variances, _ = dense.answer(forms.reshape(-1, forms.shape[2]))
    listed = listed_as(release, sets)
    never = np.concatenate([ruled_out(release, one, by, where) for one in sets])
    expected, variances = np.where(never, 0.0, expected), np.where(never, 0.0, variances)
    if np.isinf(variances).all():
        refusal("not-estimable", "persons", lambda: release.in_places("persons", by, where, listed=listed))
        return
    found = release.in_places("persons", by, where, listed=listed)
    agree(found, expected, variances)
    assert found.places == tuple(f"p{at}" for at in range(len(sets))) and found.level == "district"
    for at, one in enumerate(sets):
        if np.isinf(found.variances[at]).all():
            continue
        towns = [("town", release.spine.names[2][leaf].as_py()) for leaf in one]
        alone = release.union("persons", by, where, places=towns)
        np.testing.assert_allclose(alone.variances[0], found.variances[at], rtol=1e-9, atol=1e-9)
        for mine, theirs in zip(found.interval(0.9), alone.interval(0.9), strict=True):
            assert np.array_equal(mine[at], theirs[0])


SETS = [{0, 1, 2}, {0, 3}, {1, 2, 3, 4}, {5}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}]
"""Towns s0c0t0, s0c0t1 | s0c1t0 | s1c0t0 to s1c0t2: a state, parts of two states, places that overlap, everything."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("invariants", [(), (("county", ("sex",)),)])
def test_measures_in_listed_places_are_those_of_dense_least_squares(tmp_path, name, invariants):
    counted, release = small(tmp_path, invariants=invariants)
    dense = Dense(counted, release)
    found = release.compare("persons", listed=listed_as(release, SETS), **MEASURES[name])
    assert found.by[0] == "district"
    for at, leaves in enumerate(SETS):
        form = lambda where, one=leaves: forms_of(dense, [one], (), where)[0, 0]  # noqa: E731
        expected, spread = delta(dense, form, lambda count: value_of(name, count))
        np.testing.assert_allclose(found.values.reshape(len(SETS), -1)[at], expected, rtol=1e-8)
        np.testing.assert_allclose(found.variances.reshape(len(SETS), -1)[at], spread, rtol=1e-4, atol=1e-9)


AGAINST = {
    "town": [("town", "s1c0t1")],
    "listed": [("district", "p1")],
    "several": [("state", "s0"), ("town", "s1c0t0")],
}
WHAT = {
    "difference": ({"by": ("sex",), "difference": "places"}, lambda n: [n(0, sex=s) - n(1, sex=s) for s in "fm"]),
    "share difference": (
        {"share": "sex", "difference": "places"},
        lambda n: [n(0, sex=s) / n(0) - n(1, sex=s) / n(1) for s in "fm"],
    ),
    "ratio": ({"ratio": "places"}, lambda n: [n(0) / n(1)]),
    "odds ratio": (
        {"odds_ratio": ("places", ("sex", "f", "m"))},
        lambda n: [n(0, sex="f") * n(1, sex="m") / n(0, sex="m") / n(1, sex="f")],
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("against", AGAINST)
@pytest.mark.parametrize("what", WHAT)
def test_every_listed_place_against_another_is_that_of_dense_least_squares(tmp_path, against, what):
    counted, release = small(tmp_path)
    dense, listed = Dense(counted, release), listed_as(release, SETS)
    other = {"town": {4}, "listed": SETS[1], "several": {0, 1, 2, 3}}[against]
    asked, measure = WHAT[what]
    found = release.compare("persons", listed=listed, against=AGAINST[against], **asked)
    for at, leaves in enumerate(SETS):
        form = lambda which, where, one=leaves: forms_of(dense, [one, other], (), where)[which, 0]  # noqa: E731
        expected, spread = delta(dense, form, measure)
        np.testing.assert_allclose(found.values.reshape(len(SETS), -1)[at], expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.variances.reshape(len(SETS), -1)[at], spread, rtol=1e-4, atol=1e-9)


def test_two_listed_places_are_compared_by_name_and_shares_of_everybody_are_ratios(tmp_path):
    counted, release = small(tmp_path)
    listed, dense = listed_as(release, SETS), Dense(counted, release)
    found = release.compare("persons", share="sex", difference=("district", "p0", "p4"), listed=listed)
    form = lambda which, where: forms_of(dense, [SETS[0], SETS[4]], (), where)[which, 0]  # noqa: E731
    expected, spread = delta(dense, form, WHAT["share difference"][1])
    np.testing.assert_allclose(found.values, expected, rtol=1e-8)
    np.testing.assert_allclose(found.variances, spread, rtol=1e-4)
    assert found.by == ("sex",) and found.measure == "p0 minus p4 in the share of sex"
    shares = release.compare("persons", ["sex"], share="district", listed=listed)
    everybody = [("state", "s0"), ("state", "s1")]
    for at in range(len(SETS)):
        one = release.compare("persons", ["sex"], places=[("district", f"p{at}")], against=everybody, ratio="places",
                              listed=listed)  # fmt: skip
        np.testing.assert_allclose(shares.values[2 * at : 2 * at + 2], one.values, rtol=1e-9)
        np.testing.assert_allclose(shares.variances[2 * at : 2 * at + 2], one.variances, rtol=1e-7, atol=1e-15)
    assert shares.values[-2:] == pytest.approx(1) and (shares.variances[-2:] == 0).all()  # p5 is everything


SHAPES = [((2, 1), (3,)), ((6,),), ((1, 2), (1, 1, 1))]


@pytest.fixture(scope="module")
def by_shape(tmp_path_factory):
    return {sizes: small(tmp_path_factory.mktemp("m"), number=50, sizes=sizes)[1] for sizes in SHAPES}


@settings(max_examples=40, deadline=None)
@given(sets=st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=5), sizes=st.sampled_from(SHAPES))
def test_places_are_kept_as_the_fewest_units(by_shape, sets, sizes):
    release = by_shape[sizes]
    spine = release.spine
    pairs = np.array([(at, one) for at, some in enumerate(sets) for one in some])
    place, leaf = pairs[:, 0], pairs[:, 1]
    order = np.argsort(-leaf, kind="stable")
    unions = Unions.of_leaves(spine, place[order], leaf[order], len(sets))
    for at, some in enumerate(sets):
        towns = [("town", spine.names[2][one].as_py()) for one in some]
        expected = release._whole_units(towns)
        found = unions.of(at)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[level], expected[level]) for level in expected)
        assert unions.has().sum(axis=1)[at] == sum(len(one) for one in expected.values())
        assert unions.overlap.distances()[at] == len(fewest_units(spine, np.isin(np.arange(6), list(some))))


@pytest.mark.parametrize(
    ("rho", "number"),
    [("2", 10), *(pytest.param(rho, 400, marks=pytest.mark.slow) for rho in ("2", "1/50"))],
)
def test_intervals_contain_the_truth_as_often_as_they_say(tmp_path, rho, number):
    """Releases of four districts that do not overlap, at 90%: districts share the measurements of their states, so each
    is tested for itself. False alarms: below 1e-9 for each, 12 in all."""
    inside = np.zeros((4, 3), dtype=int)
    districts = [{0, 3}, {1}, {2, 4}, {5}]
    for seed in range(number):
        (tmp_path / str(seed)).mkdir()
        counted, release = small(tmp_path / str(seed), rho=rho, seed=seed)
        listed = listed_as(release, districts)
        truth = counted.histograms("persons", 2).dense(6)
        total = np.array([truth[sorted(one)].sum() for one in districts])
        women = np.array([truth[sorted(one), :3].sum() for one in districts])
        asked = [
            (release.in_places("persons", listed=listed), total),
            (release.compare("persons", listed=listed, difference=("sex", "f", "m")), 2 * women - total),
            (release.compare("persons", listed=listed, share="district"), total / total.sum()),
        ]
        for at, (found, expected) in enumerate(asked):
            lower, upper = (end.ravel() for end in found.interval(0.9))
            inside[:, at] += (lower <= expected + 1e-9) & (expected <= upper + 1e-9)
    assert (inside >= binom.ppf(1e-9, number, 0.9)).all(), inside


# -- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path) -> MeasuredRelease:
    (tmp_path / "measured").mkdir()
    return small(tmp_path / "measured")[1]


def test_files_and_frames_say_the_same_and_codes_of_any_level_may_be_listed(release, tmp_path):
    rows = pl.DataFrame({"town": ["s0c0t0", "s0c0t1", "s1c0t2"], "district": ["north", "north", "07"]})
    rows.write_csv(tmp_path / "places.csv")
    rows.write_parquet(tmp_path / "places.parquet")
    answers = [release.in_places("persons", listed=release.listed(one)) for one in
               (rows, tmp_path / "places.csv", str(tmp_path / "places.parquet"), rows.to_dict(as_series=False),
                rows.to_arrow())]  # fmt: skip
    assert all(one.places == ("north", "07") for one in answers)
    assert all(np.array_equal(one.values, answers[0].values) for one in answers)
    counties = release.listed({"county": ["s0c0", "s1c0"], "district": ["x", "y"]})
    assert counties.unions.of(0).keys() == {1} and counties.unions.of(1).keys() == {0}  # all of s1
    both = pl.DataFrame({"county": ["s0c0"], "town": ["s0c0t0"], "district": ["x"]})
    assert release.listed(both).unions.has().sum(axis=1).tolist() == [1]  # the finest level speaks


def test_units_in_no_place_or_in_several_are_told(release):
    rows = {"town": ["s0c0t0", "s0c0t0", "s0c0t1", "s0c1t0"], "district": ["a", "b", None, " "]}
    listed = release.listed(rows)
    assert listed.names == ("a", "b") and len(listed.remarks) == 3
    assert "A place takes 1 to 1 units of the geography" in listed.remarks[2]
    assert "5 of 6 units of 'town' lie in no place of 'district'" in listed.remarks[0]
    assert "1 of 6 units of 'town' lies in more than one place" in listed.remarks[1]
    found = release.in_places("persons", listed=listed)
    assert found.remarks == listed.remarks and found.values[0] == found.values[1]
    assert "more than one place" in found.to_json()
    assert release.compare("persons", listed=listed, share="sex").remarks == listed.remarks


def test_bad_files_of_places_are_refused(release, tmp_path):
    good = {"town": ["s0c0t0", "s0c0t1"], "district": ["a", "a"]}
    ask = lambda rows, column=None: lambda: release.listed(rows, column)  # noqa: E731
    refusal("places-unknown", "lists 4 codes in column 'town' that the release's list of geounits does not have: 1, 2, "
            "3 and 1 more", ask({"town": ["1", "2", "3", "4", "s0c0t0"], "district": ["a"] * 5}))  # fmt: skip
    refusal("places-unknown", "nowhere", ask({"town": ["nowhere", "s0c0t0"], "district": [None, "a"]}))
    twice = {"town": ["s0c0t0", "s0c0t1", "s0c0t0"], "district": ["a", "a", "a"]}
    refusal("places-twice", "lists 1 pairs of 'town' and place more than once: s0c0t0 in a", ask(twice))
    refusal("places-file", "no column of codes: one of its columns must be named 'town', 'county' or 'state'",
            ask({"block": ["s0c0t0"], "district": ["a"]}))  # fmt: skip
    refusal("places-file", "has 2 columns beside 'town'", ask({**good, "other": ["x", "y"]}))
    assert release.listed({**good, "other": ["x", "y"]}, "other").names == ("x", "y")
    refusal("unknown-choice", "column of places", ask(good, "precinct"))
    refusal("places-file", "a column named 'sex', which means something else", ask({"town": ["s0c0t0"], "sex": ["a"]}))
    refusal("places-file", "a column named 'county'", ask({"town": ["s0c0t0"], "county": ["a"]}, "county"))
    refusal("places-file", "2 rows without a code", ask({"town": ["s0c0t0", None, ""], "district": ["a", "b", "c"]}))
    refusal("places-file", "names no place", ask({"town": ["s0c0t0"], "district": [""]}))
    refusal("places-file", "neither text nor whole numbers", ask({"town": [1.5], "district": ["a"]}))
    refusal("places-file", "cannot be read", ask(tmp_path / "absent.csv"))
    (tmp_path / "bad.parquet").write_text("town,district\n")
    refusal("places-file", "cannot be read", ask(tmp_path / "bad.parquet"))
    (tmp_path / "latin.csv").write_bytes(b"town,district\ns0c0t0,\xe9\n")
    refusal("places-file", "cannot be read", ask(tmp_path / "latin.csv"))
    (tmp_path / "empty.csv").write_text("town,district\n")
    refusal("places-file", "names no place", ask(tmp_path / "empty.csv"))


def test_a_code_keeps_its_leading_zeros(tmp_path):
    places = pl.DataFrame({"state": ["s", "s"], "county": ["c", "c"], "town": ["007", "7"]})
    import pyarrow as pa

    from stirred.margins.spine import build_spine
    from stirred.tables.columns import Column

    columns = [Column(name, places[name].rank("dense").to_numpy().astype(np.uint32) - 1,
                      pa.array(sorted(set(places[name])))) for name in LEVELS]  # fmt: skip
    spine, _ = build_spine(LEVELS, columns)
    (tmp_path / "places.csv").write_text("town,district\n007,a\n7,b\n")
    listed = place_list(spine, tmp_path / "places.csv")
    assert [spine.names[2][int(listed.leaves_of(name)[0])].as_py() for name in ("a", "b")] == ["007", "7"]


def test_questions_that_do_not_fit_a_list_are_refused(release):
    listed = listed_as(release, SETS)
    ask = lambda **more: lambda: release.compare("persons", listed=listed, **more)  # noqa: E731
    refusal("estimate-question", "either a level or a file of places", ask(level="town", share="sex"))
    refusal("estimate-question", "A comparison of places", ask(difference="places"))
    refusal("estimate-question", "--places FILE alone", ask(share="district", places=[("district", "p0")]))
    refusal("unknown-geounit", "'district' has no unit 'p9'", ask(difference=("district", "p0", "p9")))
    refusal(
        "estimate-question", "has no other places", ask(difference=("district", "p0", "p1"), places=[("town", "x")])
    )
