"""The order of released rows says nothing about the order in which they came, and linked rows stay where they belong.

Orders are tested against the uniform law with fixed seeds; each statistical test raises a false alarm with
probability 1e-9.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray
from scipy import stats
from telling_data import household_plan, households, main_plan, microdata

from stirred.noise import SeededSource
from stirred.swap.data.dataset import load
from stirred.swap.drawing import SwapRelease, draw
from stirred.swap.law.permutation import ShuffledRows, put_in_order
from stirred.swap.plan.fields import SwapPlan

FALSE_ALARM = 1e-9

# -- the order of shuffled rows -----------------------------------------------------------------------------------

TAGGED = 4000


def correlation_is_chance(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether the order of ``other`` is unrelated to that of ``one``: under shuffling, z is nearly normal."""
    z = np.corrcoef(stats.rankdata(one), stats.rankdata(other))[0, 1] * np.sqrt(len(one) - 1)
    return bool(2 * stats.norm.sf(abs(z)) > FALSE_ALARM)


def neighbours_are_chance(places: NDArray[Any]) -> bool:
    """Whether rows that stood side by side are no more often side by side: their number is nearly Poisson(2)."""
    kept = np.count_nonzero(np.abs(np.diff(places)) == 1)
    return bool(stats.poisson.sf(kept - 1, 2) > FALSE_ALARM)


def tagged(frame: pl.DataFrame) -> pl.DataFrame:
    """Held columns that number the input's rows, so many that no 64-bit key holds them all and rows are shuffled."""
    return frame.with_columns(pl.int_range(pl.len()).alias(f"tag{i}") for i in range(18))


def tagged_plan() -> SwapPlan:
    return main_plan(
        rate="1/2",
        tables=[],
        saturated=False,
        allow=[*(f"distinct:tag{i}" for i in range(18)), "tells:all-held-columns"],
    )


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_rows_stand_in_no_relation_to_the_rows_that_came_in(seed):
    frame = tagged(microdata(TAGGED))
    drawn = draw(tagged_plan(), frame, source=SeededSource(seed))
    assert isinstance(drawn.rows, ShuffledRows)
    found = drawn.frame()
    places = found["tag0"].to_numpy()
    assert sorted(places) == list(range(TAGGED))
    assert correlation_is_chance(np.arange(TAGGED), places)
    assert neighbours_are_chance(places)
    came_from = frame["county"].to_numpy()[places]
    assert correlation_is_chance(np.arange(TAGGED), np.unique(came_from, return_inverse=True)[1])
    assert found["id"].to_list() == list(range(1, TAGGED + 1))


def test_the_tests_of_order_see_an_order():
    near = np.argsort(np.arange(TAGGED) + np.random.default_rng(0).normal(0, TAGGED, TAGGED))
    assert not correlation_is_chance(np.arange(TAGGED), near)
    in_blocks = np.random.default_rng(0).permutation(np.arange(TAGGED).reshape(-1, 20)).reshape(-1)
    assert not neighbours_are_chance(in_blocks)


def test_every_row_goes_everywhere_alike():
    """Where each of twelve records ends, over many draws, is uniform."""
    dataset = load(tagged_plan(), tagged(microdata(12)))
    ends = np.zeros((12, 12), dtype=np.int64)
    for seed in range(6000):
        rows = put_in_order(dataset.columns, "id", dataset.table, False, SeededSource(seed))
        ends[np.arange(12), rows.permutation] += 1
    assert all(stats.chisquare(row).pvalue > FALSE_ALARM / 12 for row in ends)


# -- linked rows --------------------------------------------------------------------------------------------------

MANY = 6000


@pytest.fixture(scope="module")
def linked_release() -> tuple[pl.DataFrame, pl.DataFrame, SwapRelease]:
    main, persons = households(MANY, seed=8)
    return main, persons, draw(household_plan(), {"microdata": main, "persons": persons}, source=SeededSource(21))


def test_ids_are_new_and_count_the_rows_of_both_tables(linked_release):
    main, persons, drawn = linked_release
    assert drawn.frame()["household"].to_list() == list(range(1, main.height + 1))
    assert drawn.frame("persons")["person"].to_list() == list(range(1, persons.height + 1))
    links = drawn.frame("persons")["household"].to_numpy()
    assert np.all(np.diff(links) >= 0), "persons follow their households"
    assert links.min() == 1 and links.max() <= main.height


def composition(main: pl.DataFrame, persons: pl.DataFrame) -> Counter[object]:
    """The multiset of households, each with what is held and the multiset of its persons."""
    members: dict[object, list[object]] = defaultdict(list)
    for household, role, age in persons.select("household", "role", "age").iter_rows():
        members[household].append((role, age))
    return Counter(
        (size, tenure, tuple(sorted(members[household])))
        for household, size, tenure in main.select("household", "class", "tenure").iter_rows()
    )


def test_persons_stay_with_their_household(linked_release):
    main, persons, drawn = linked_release
    assert composition(drawn.frame(), drawn.frame("persons")) == composition(main, persons)


def test_copies_of_the_swap_variable_follow_the_household(linked_release):
    main, _, drawn = linked_release
    joined = drawn.frame("persons").join(drawn.frame(), on="household", suffix="_of_record")
    assert joined.height == drawn.frame("persons").height
    assert joined["county"].equals(joined["county_of_record"], check_names=False)
    assert joined["home"].equals(joined["county_of_record"], check_names=False)
    before = Counter(main.select("class", "county").iter_rows())
    assert Counter(drawn.frame().select("class", "county").iter_rows()) == before


ODD = {
    "not a number": pa.array([1.5, float("nan")]),
    "nanoseconds": pa.array([1, 2], pa.time64("ns")),
    "the last days of the calendar": pa.array([2_932_895, 2_932_896], pa.int32()).cast(pa.date32()),
}


@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
def test_copies_that_agree_are_taken_and_follow_the_household_whatever_their_type(values):
    main, persons = (frame.to_arrow().drop_columns("county") for frame in households())
    own = pa.array(np.random.default_rng(1).integers(0, 2, main.num_rows))
    of_person = own.take(pc.index_in(persons["household"], value_set=main["household"]).combine_chunks())
    main = main.append_column("county", values.take(own))
    persons = persons.append_column("county", values.take(of_person)).drop_columns("home")
    plan = household_plan(linked=[{"name": "persons", "link": "household", "id": "person", "hold": ["role", "age"]}])
    drawn = draw(plan, {"microdata": main, "persons": persons}, source=SeededSource(2))
    of_household, of_persons = (drawn.frame(name)["county"].combine_chunks() for name in ("microdata", "persons"))
    followed = of_household.take(pc.subtract(drawn.frame("persons")["household"].combine_chunks(), 1))
    width = f"int{values.type.bit_width}"
    assert of_persons.view(width).equals(followed.view(width))


def test_households_were_moved_at_all(linked_release):
    main, persons, drawn = linked_release
    ages = persons.group_by("household").agg(pl.col("age").sort(), pl.col("role").sort())
    before = main.join(ages, on="household").drop("household", "address")
    ages = drawn.frame("persons").group_by("household").agg(pl.col("age").sort(), pl.col("role").sort())
    after = drawn.frame().join(ages, on="household").drop("household")

    def multiset(frame: pl.DataFrame) -> Counter[str]:
        return Counter(map(repr, frame.select("county", "class", "tenure", "age", "role").iter_rows()))

    moved = (multiset(after) - multiset(before)).total()
    assert 0.2 < moved / MANY < 0.5, "half are selected, and a third of those meet their own county again"


@pytest.mark.parametrize("persons_first_by", [["household"], ["role"], ["age"]])
def test_the_head_of_a_household_may_stand_anywhere(persons_first_by):
    """Its place among the persons of a household is uniform, whether persons came by household or by role."""
    main, persons = households(MANY, seed=9)
    persons = persons.sort(persons_first_by, maintain_order=True)
    found = draw(household_plan(), {"microdata": main, "persons": persons}, source=SeededSource(4)).frame("persons")
    placed = found.with_columns(place=pl.int_range(pl.len()).over("household"), size=pl.len().over("household"))
    heads = placed.filter(pl.col("role") == "1 head")
    assert heads.height == MANY
    for size in (2, 3, 4, 5):
        counts = np.bincount(heads.filter(pl.col("size") == size)["place"].to_numpy(), minlength=size)
        assert counts.sum() > 500
        assert stats.chisquare(counts).pvalue > FALSE_ALARM, counts


def test_three_persons_come_in_all_six_orders():
    number = 6000
    county = np.random.default_rng(3).choice(["a", "b"], number)
    main = pl.DataFrame({"household": range(number), "county": county, "class": 1, "tenure": county[::-1]})
    persons = pl.DataFrame({"household": np.repeat(np.arange(number), 3), "role": ["x", "y", "z"] * number})
    plan = household_plan(drop=[], linked=[{"name": "persons", "link": "household", "hold": "rest"}])
    found = draw(plan, {"microdata": main, "persons": persons}, source=SeededSource(6)).frame("persons")
    orders = Counter("".join(part) for part in found["role"].to_numpy().reshape(-1, 3))
    assert len(orders) == 6
    assert stats.chisquare(list(orders.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize("seed", range(3))
def test_households_stand_in_no_relation_to_the_order_they_came_in(seed):
    main, persons = households(TAGGED, seed=10)
    main = main.with_columns(tag=pl.int_range(pl.len()))
    plan = household_plan(hold=["tenure", "tag"], allow=["distinct:tag", "tells:all-held-columns"])
    drawn = draw(plan, {"microdata": main, "persons": persons}, source=SeededSource(seed))
    places = drawn.frame()["tag"].to_numpy()
    assert sorted(places) == list(range(TAGGED))
    assert correlation_is_chance(np.arange(TAGGED), places)
    assert neighbours_are_chance(places)
    came_from = main["county"].to_numpy()[places]
    assert correlation_is_chance(np.arange(TAGGED), np.unique(came_from, return_inverse=True)[1])
