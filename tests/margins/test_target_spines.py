"""Spines for target areas: nested, the same for any order of blocks, serving the areas; distances are exact minima."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from repeats import some_or
from stirred.errors import StirredError
from stirred.margins.areas import Overlap, fewest_units
from stirred.margins.spine import Spine
from stirred.tables.columns import ColumnEncoder
from stirred.topdown.data.spine_file import propose_spine

LEVELS = ("state", "county", "tract", "group", "block")


def column(name, values):
    encoder = ColumnEncoder("blocks", name, pa.string())
    encoder.add(pa.array(values, pa.string()))
    return encoder.finish()


def random_spine(rng, depth, most=3):
    """A forest of one or two trees in which every unit has one to ``most`` children."""
    units = int(rng.integers(1, 3))
    names, first_child = [pa.array([str(n) for n in range(units)])], []
    for _ in range(depth - 1):
        first_child.append(np.concatenate([[0], np.cumsum(rng.integers(1, most + 1, units))]))
        units = int(first_child[-1][-1])
        names.append(pa.array([str(n) for n in range(units)]))
    return Spine(LEVELS[:depth], tuple(names), tuple(first_child))


def indicators(spine):
    """A row for each unit of each level, a column for each leaf."""
    rows = []
    for level in range(len(spine.levels)):
        bounds, leaf = spine.first_leaf(level), np.arange(spine.leaves)
        rows += [((leaf >= bounds[u]) & (leaf < bounds[u + 1])).astype(int) for u in range(spine.units(level))]
    return np.array(rows)


def signed_sum(spine, fewest):
    total = np.zeros(spine.leaves, dtype=int)
    for level, units in fewest.units.items():
        bounds = spine.first_leaf(level)
        for unit, added in zip(units, fewest.added[level], strict=True):
            total[bounds[unit] : bounds[unit + 1]] += 1 if added else -1
    return total


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(some_or(12, 40)))
def test_the_distance_is_the_minimum_over_all_signed_combinations(seed):
    rng = np.random.default_rng(seed)
    spine = random_spine(rng, int(rng.integers(1, 5)))
    while sum(map(len, spine.names)) > 10:
        spine = random_spine(rng, int(rng.integers(1, 5)))
    rows, least = indicators(spine), {}
    for signs in itertools.product((-1, 0, 1), repeat=len(rows)):
        total = tuple(np.array(signs) @ rows)
        if set(total) <= {0, 1}:
            least[total] = min(least.get(total, 99), sum(map(abs, signs)))
    assert len(least) == 2**spine.leaves
    for total, expected in least.items():
        covered = np.array(total) == 1
        fewest = fewest_units(spine, covered)
        assert len(fewest) == expected
        assert signed_sum(spine, fewest).tolist() == list(total)
        assert Overlap.of(spine, np.where(covered, 0, -1), 1).distances().tolist() == [expected]


def test_coefficients_other_than_one_do_not_help():
    """All whole coefficients from -2 to 2 on one small tree; their absolute values are counted."""
    spine = Spine(
        LEVELS[:3], tuple(pa.array(list("abcd")[:n]) for n in (1, 2, 4)), (np.array([0, 2]), np.array([0, 2, 4]))
    )
    rows = indicators(spine)
    least = {}
    for signs in itertools.product(range(-2, 3), repeat=len(rows)):
        total = tuple(np.array(signs) @ rows)
        if set(total) <= {0, 1}:
            least[total] = min(least.get(total, 99), sum(map(abs, signs)))
    assert all(len(fewest_units(spine, np.array(total) == 1)) == many for total, many in least.items())


def test_distances_of_many_areas_are_those_of_each_alone():
    rng = np.random.default_rng(3)
    for _ in range(20):
        spine = random_spine(rng, 4, 5)
        of_leaf = rng.integers(-1, 4, spine.leaves)
        found = Overlap.of(spine, of_leaf, 5).distances()
        assert found.tolist() == [len(fewest_units(spine, of_leaf == area)) for area in range(5)]


def blocks_at_random(rng):
    """Columns of a list of blocks with areas that cut across; some blocks lie in none."""
    rows = []
    for state in range(int(rng.integers(1, 3))):
        for county in range(int(rng.integers(1, 4))):
            for tract in range(int(rng.integers(1, 4))):
                for group in range(int(rng.integers(1, 4))):
                    for block in range(int(rng.integers(1, 12))):
                        code = f"{state}{county}{tract}{group}{block:02}"
                        rows.append((code[:1], code[:2], code[:3], code[:4], code))
    places = [None if rng.random() < 0.2 else f"0{int(number)}" for number in rng.integers(0, 4, len(rows))]
    districts = [f"d{at * 3 // len(rows)}" for at in range(len(rows))]
    return rows, places, districts


def proposed(rows, places, districts, targets, **choices):
    levels = [column(name, [row[at] for row in rows]) for at, name in enumerate(LEVELS)]
    known = {"place": column("place", places), "district": column("district", districts)}
    return propose_spine(levels, [[known[name] for name in group] for group in targets], **choices)


CHOICES = [
    {},
    {"inside": "state"},
    {"inside": "tract"},
    {"inside": "group"},
    {"groups": "even", "fan_out": 0},
    {"inside": "tract", "groups": "even", "fan_out": 0},
]


@pytest.mark.repeats
@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("targets", [[["place"]], [["place", "district"]], [["district"], ["place"]]], ids=str)
def test_a_proposed_spine_is_nested_and_serves_its_areas(choices, targets):
    for seed in range(some_or(6, 20)):
        rng = np.random.default_rng(seed)
        rows, places, districts = blocks_at_random(rng)
        found = proposed(rows, places, districts, targets, **choices)
        spine = found.after
        assert spine.leaves == len(rows)
        assert sorted(spine.names[-1].to_pylist()) == sorted(row[-1] for row in rows)
        for level, names in enumerate(spine.names):  # build_spine refused anything that is not nested
            assert len(set(names.to_pylist())) == spine.units(level)
        inside = choices.get("inside", "county")
        assert spine.levels[: LEVELS.index(inside) + 1] == LEVELS[: LEVELS.index(inside) + 1]
        # Below the divided level every unit above the blocks lies in one target area of each sort, or in none.
        first = LEVELS.index(inside) + len(targets)
        block = {row[-1]: at for at, row in enumerate(rows)}
        order = [block[name] for name in spine.names[-1].to_pylist()]
        asked = [name for group in targets for name in group]
        for values in (places, districts)[: len(asked)]:
            of_block = np.array([str(values[at]) for at in order])
            for level in range(first, len(spine.levels) - 1):
                bounds = spine.first_leaf(level)
                assert all(len(set(of_block[a:b])) == 1 for a, b in itertools.pairwise(bounds)), spine.levels[level]
        # The parts of an area in units of the divided level are units of the first new level, if areas are alone there.
        if len(asked) == 1 and "groups" not in choices:
            (areas,) = [one for one in found.targets if one.name == "place"]
            (_, after) = found.distances(areas)
            at = LEVELS.index(inside)
            for number, name in enumerate(areas.names.to_pylist()):
                touched = {row[at] for row, place in zip(rows, places, strict=True) if place == name}
                assert after[number] <= len(touched)


def test_the_order_of_blocks_does_not_matter():
    rng = np.random.default_rng(8)
    rows, places, districts = blocks_at_random(rng)
    order = rng.permutation(len(rows))
    for choices in CHOICES:
        one = proposed(rows, places, districts, [["place"], ["district"]], **choices)
        other = proposed(*([part[at] for at in order] for part in (rows, places, districts)), [["place"], ["district"]],
                         **choices)  # fmt: skip
        assert one.after.levels == other.after.levels
        assert all(a.equals(b) for a, b in zip(one.after.names, other.after.names, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(one.after.first_child, other.after.first_child, strict=True))


def test_even_groups_keep_to_the_limit_of_the_2020_census():
    rows = [("s", "c", "t", "g" if at < 90 else "h", f"{at:03}") for at in range(100)]
    places = ["a" if at % 10 else "b" for at in range(100)]
    found = proposed(rows, places, ["d"] * 100, [["place"]], inside="tract", groups="even", fan_out=2)
    assert found.after.levels == ("state", "county", "tract", "group_optimised", "block")
    sizes = np.diff(found.after.first_child[3])
    # 90 blocks in one area and 10 in the other, at most int(sqrt(100) + 2 + 1) = 13 in a group, as even as can be
    assert sorted(sizes.tolist()) == [10, *[12] * 1, *[13] * 6]


def test_units_keep_their_codes_where_they_are_whole_and_by_passed_ones_share_a_name():
    rows = [("1", "11", "111", "1111", "b1"), ("1", "11", "111", "1112", "b2"), ("1", "12", "121", "1211", "b3")]
    found = proposed(rows, ["x", "y", "x"], ["d"] * 3, [["place"]])
    by_level = dict(zip(found.after.levels, (names.to_pylist() for names in found.after.names), strict=True))
    assert by_level["area"] == ["11-1", "11-2", "12"]
    assert by_level["tract_part"] == ["11-1", "11-2", "121"]
    assert by_level["group_part"] == ["1111", "1112", "1211"]


def test_names_that_would_clash_become_numbers():
    rows = [("1", "1", "1", "1", "a"), ("1", "1", "1", "1", "b"), ("1", "1-1", "2", "2", "c")]
    found = proposed(rows, ["x", "y", "x"], ["d"] * 3, [["place"]])
    assert found.after.names[2].to_pylist() == ["unit-1", "unit-2", "unit-3"]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"inside": "block"}, "'block', must be one of"),
        ({"inside": "moon"}, "'moon', must be one of"),
        ({"groups": "odd"}, "must be 'parts' or 'even'"),
        ({"fan_out": -1}, "cannot be negative"),
    ],
)
def test_choices_that_do_not_fit_are_errors(choices, words):
    with pytest.raises(StirredError, match=words) as caught:
        proposed([("1", "1", "1", "1", "a")], ["x"], ["d"], [["place"]], **choices)
    assert caught.value.kind == "spine-question"


def test_lists_that_do_not_fit_are_errors():
    rows = [("1", "1", "1", "1", "a"), ("1", "1", "1", "1", "a")]
    with pytest.raises(StirredError, match="1 block codes more than once; the first is a") as caught:
        proposed(rows, ["x", "y"], ["d", "d"], [["place"]])
    assert caught.value.kind == "block-twice"
    with pytest.raises(StirredError, match="can be a level or a target area"):
        proposed(rows[:1], ["x"], ["d"], [["place"], ["place"]])
    with pytest.raises(StirredError, match="at least one column"):
        proposed(rows[:1], ["x"], ["d"], [])
    with pytest.raises(StirredError, match="at least two levels"):
        propose_spine([column("block", ["a"])], [[column("place", ["x"])]])
    with pytest.raises(StirredError, match="lies in two units"):
        proposed([("1", "1", "1", "1", "a"), ("1", "2", "1", "1", "b")], ["x", "y"], ["d", "d"], [["place"]])


def test_a_list_without_any_area_is_still_a_spine():
    found = proposed([("1", "1", "1", "1", "a"), ("1", "1", "1", "2", "b")], [None, None], ["d", "d"], [["place"]])
    (areas,) = [one for one in found.targets if one.name == "place"]
    assert len(areas) == 0 and [len(one) for one in found.distances(areas)] == [0, 0]
