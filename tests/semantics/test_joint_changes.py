"""The worst change of two records that keeps what is held fixed, against every change there is on a tiny spine."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import pytest

from repeats import times
from stirred.semantics import Concern, explain, exposure, joint_changes, worst_change
from stirred.spec import Invariant, flavors
from stirred.spec.known_deployments.allocations import Allocation, AllocationPart, Query

LEVELS = ("us", "state", "block")
ATTRIBUTES = ("a", "b")
BY = {"total": (), "a": ("a",), "b": ("b",), "a*b": ("a", "b")}
EVEN = {(level, name): Fraction(1, 12) for level in LEVELS for name in BY}


def places():
    """Two states of two blocks."""
    return [{"us": 0, "state": block // 2, "block": block} for block in range(4)]


def records_of(**values):
    """All records on the spine with attributes of so many values."""
    domains = product(*(range(number) for number in values.values()))
    return [place | dict(zip(values, chosen, strict=True)) for chosen in domains for place in places()]


def divided(weights, by=BY):
    """An allocation in which each query has its rho at each level."""
    total = sum(weights.values())
    spent = {level: sum(weights[level, name] for name in by) for level in LEVELS}
    queries = tuple(
        Query(name, told, None, tuple(weights[level, name] / spent[level] for level in LEVELS))
        for name, told in by.items()
    )
    part = AllocationPart("persons", "person", None, total, tuple(spent[level] / total for level in LEVELS), queries)
    return Allocation("mine", "mine", LEVELS, (part,), single_root=True)


def given(invariants, alloc, nearest=1):
    flavor = flavors.given_invariants(flavors.zcdp("person"), invariants, nearest=nearest)
    return flavor.at(alloc.total(rounded=True))


def found_for(alloc, concern, invariants):
    return worst_change(given(invariants, alloc), exposure(alloc, concern, rounded=True))


def margin(invariant, file):
    """The counts that an invariant holds fixed."""
    counted = [one for one in file if all(str(one[column]) == value for column, value in invariant.where)]
    return Counter(tuple(one[column] for column in invariant.by) for one in counted)


def enumerated(alloc, concern, invariants, records, carried=()):
    """The largest losses of Gaussian and of any noise over all files of two records and all others that keep the
    invariants, differ from them in two records and only in what the concern names, and that no one of the two records
    makes alone. Columns in ``carried`` belong to records of another unit that go with the two."""
    exposed = exposure(alloc, concern, rounded=True)
    free = {*concern.columns(alloc)}
    told = {query.name: query.columns for part in alloc.parts for query in part.queries}
    others = {query.name for part in alloc.parts if part.unit != "person" for query in part.queries}
    variants = [
        [other for other in records if all(other[name] == one[name] for name in one if name not in free)]
        for one in records
    ]
    found = []
    for first, second in combinations_with_replacement(range(len(records)), 2):
        file = records[first], records[second]
        held = [margin(one, file) for one in invariants]
        for changed in product(variants[first], variants[second]):
            if any(margin(one, changed) != value for one, value in zip(invariants, held, strict=True)):
                continue
            alone = changed[0], file[1]
            if all(margin(one, alone) == value for one, value in zip(invariants, held, strict=True)):
                continue
            own = [[tuple(v for k, v in one.items() if k not in carried) for one in each] for each in (file, changed)]
            if sum((Counter(own[0]) - Counter(own[1])).values()) < 2:
                continue
            for along in (changed, alone) if carried else (changed,):  # the other unit's records of both, or of one
                losses = [Fraction(0), Fraction(0)]
                for level, name in exposed.cells:
                    columns = (level, *told[name])
                    after = along if name in others else changed
                    moved = Counter(tuple(one[column] for column in columns) for one in after)
                    moved.subtract(tuple(one[column] for column in columns) for one in file)
                    rho = exposed.rho_of(level, name)
                    losses[0] += rho * Fraction(sum(value**2 for value in moved.values()), 2)
                    losses[1] += rho * (sum(map(abs, moved.values())) // 2) ** 2
                found.append(losses)
    return tuple(map(max, zip(*found, strict=True))) if found else None


CASES = {
    "places, persons by state": (Concern(within="us"), [Invariant("person", by=("state",))]),
    "places, persons by block": (Concern(within="us"), [Invariant("person", by=("block",))]),
    "places in a state, persons by block": (Concern(within="state"), [Invariant("person", by=("block",))]),
    "places, persons by state and a": (Concern(within="us"), [Invariant("person", by=("state", "a"))]),
    "places, two margins": (
        Concern(within="us"), [Invariant("person", by=("state", "a")), Invariant("person", by=("block",))],
    ),
    "an attribute, by itself": (Concern(("a",)), [Invariant("person", by=("a",))]),
    "an attribute, by state": (Concern(("a",)), [Invariant("person", by=("state", "a"))]),
    "an attribute, by block": (Concern(("a",)), [Invariant("person", by=("block", "a"))]),
    "an attribute, with the other": (Concern(("a",)), [Invariant("person", by=("a", "b"))]),
    "an attribute, two crossing margins": (
        Concern(("a",)), [Invariant("person", by=("a", "b")), Invariant("person", by=("state", "a"))],
    ),
    "attribute and place, persons by state": (Concern(("a",), "us"), [Invariant("person", by=("state",))]),
    "attribute and place, the attribute held": (Concern(("a",), "us"), [Invariant("person", by=("a",))]),
    "attribute and place, both held": (
        Concern(("a",), "us"), [Invariant("person", by=("a",)), Invariant("person", by=("state",))],
    ),
    "attribute and place, held together": (Concern(("a",), "us"), [Invariant("person", by=("state", "a"))]),
    "everything that there is, persons by state": (Concern(("a", "b"), "us"), [Invariant("person", by=("state",))]),
    "both attributes, one held": (Concern(("a", "b")), [Invariant("person", by=("a",))]),
    "both attributes, both held by state": (
        Concern(("a", "b")), [Invariant("person", by=("state", "a")), Invariant("person", by=("state", "b"))],
    ),
    "places, of those with a = 1 by state": (
        Concern(within="us"), [Invariant("person", by=("state",), where=(("a", "1"),))],
    ),
    "an attribute, of those with a = 1 by state": (
        Concern(("a",)), [Invariant("person", by=("state",), where=(("a", "1"),))],
    ),
    "chosen queries": (
        Concern(cells=(("state", "total"), ("state", "a"), ("block", "total"))), [Invariant("person", by=("state",))],
    ),
}  # fmt: skip


def enough_values(invariants):
    """Two values of an attribute make every pattern, but for margins under a condition: three, of which one is asked
    for."""
    asked = {name for one in invariants if one.where for name in (*one.by, *(column for column, _ in one.where))}
    return records_of(**{name: 3 if name in asked else 2 for name in ATTRIBUTES})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_the_worst_change_is_the_worst_of_all_there_are(name):
    concern, invariants = CASES[name]
    found = found_for(divided(EVEN), concern, invariants)
    assert (found.rho, found.any_rho) == enumerated(divided(EVEN), concern, invariants, enough_values(invariants))
    assert found.change.distance == found.records == 2


def random_case(rng, conditions):
    columns = [*LEVELS[1:], *ATTRIBUTES]
    while True:
        weights = {cell: Fraction(rng.choice([1, 1, 2, 5, 20]), 100) for cell in EVEN}
        invariants = []
        for _ in range(rng.choice([1, 1, 2])):
            by = tuple(rng.sample(columns, rng.choice([1, 1, 2, 2, 3])))
            where = tuple((one, "1") for one in rng.sample(ATTRIBUTES, 1) if conditions and rng.random() < 0.5)
            invariants.append(Invariant("person", by=by, where=where))
        attributes = tuple(one for one in ATTRIBUTES if rng.random() < 0.5)
        concern = Concern(attributes, rng.choice([None, "us", "state"]))
        minded = set() if concern.whole else {*concern.columns(divided(EVEN))}
        if any({*one.by, *(column for column, _ in one.where)} & minded for one in invariants):
            return weights, invariants, concern


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(times(30)))
def test_the_worst_change_for_random_margins_and_shares(seed):
    weights, invariants, concern = random_case(random.Random(seed), conditions=False)
    alloc = divided(weights)
    found = found_for(alloc, concern, invariants)
    worst = enumerated(alloc, concern, invariants, records_of(a=2, b=2))
    assert worst == ((found.rho, found.any_rho) if found.records == 2 else None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_the_worst_change_for_random_conditions_too(seed):
    weights, invariants, concern = random_case(random.Random(1000 + seed), conditions=True)
    alloc = divided(weights)
    found = found_for(alloc, concern, invariants)
    worst = enumerated(alloc, concern, invariants, enough_values(invariants))
    assert worst == ((found.rho, found.any_rho) if found.records == 2 else None)
    # In smaller domains it is an upper bound.
    binary = enumerated(alloc, concern, invariants, records_of(a=2, b=2))
    assert binary is None or worst is None or (binary[0] <= worst[0] and binary[1] <= worst[1])


@pytest.mark.parametrize("by", [("state", "r"), ("r",), ("block", "r"), ("c",)])
@pytest.mark.parametrize(
    "concern",
    [Concern(("c",)), *(pytest.param(Concern((one,), "us"), marks=pytest.mark.slow) for one in "ac")],
    ids=str,
)
def test_recodes_are_kept_and_asked_for_as_such(by, concern):
    # c has four values, its recode r two groups of two; queries count by both.
    columns = {"total": (), "c": ("c",), "r": ("r",), "a*r": ("a", "r"), "a*c": ("a", "c")}
    base = {name: tuple("c" if one == "r" else one for one in told) for name, told in columns.items()}
    shares = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    queries = tuple(Query(name, base[name], None, (Fraction(1, 5),) * 3, told) for name, told in columns.items())
    part = AllocationPart("persons", "person", None, Fraction(1), shares, queries)
    alloc = Allocation("mine", "mine", LEVELS, (part,), recodes=(("r", "c"),), single_root=True)
    invariants = [Invariant("person", by=by), Invariant("person", by=("state",))]
    found = found_for(alloc, concern, invariants)
    records = [one | {"r": one["c"] // 2} for one in records_of(a=2, c=4)]
    assert (found.rho, found.any_rho) == enumerated(alloc, concern, invariants, records)


@pytest.mark.parametrize("within", ["us", "state"])
@pytest.mark.parametrize("by", [("state",), ("block",), ("block", "a")])
@pytest.mark.parametrize("share", ["1/10", "9/10"])
def test_at_most_one_record_of_another_unit_goes_with_each_person(share, by, within):
    # Two homes that go along keep the number of homes of a state, and one that does changes it.
    third = (Fraction(1, 3),) * 3
    persons = (Query("total", (), None, (Fraction(1, 2),) * 3), Query("a", ("a",), None, (Fraction(1, 2),) * 3))
    homes = (
        Query("homes", (), None, (Fraction(share),) * 3),
        Query("full", ("full",), None, (1 - Fraction(share),) * 3),
    )
    parts = (
        AllocationPart("persons", "person", None, Fraction(1), third, persons),
        AllocationPart("homes", "home", None, Fraction(1, 4), third, homes),
    )
    alloc = Allocation("mine", "mine", LEVELS, parts, single_root=True)
    concern, invariants = Concern(within=within), [Invariant("person", by=by)]
    found = found_for(alloc, concern, invariants)
    records = records_of(a=2, full=2)
    if by == ("state",) and within == "state":
        assert found.records == 1 and found.rho == exposure(alloc, concern, rounded=True).rho
        return
    worst = enumerated(alloc, concern, invariants, records, carried=("full",))
    assert worst == ((found.rho, found.any_rho) if found.change.exists else None)
    assert found.change.exists == (by != ("block", "a"))  # then everything about a person is held fixed


def test_a_root_of_several_places_lets_the_two_live_apart():
    concern, invariants = Concern(("a",)), [Invariant("person", by=("a",))]
    one = divided(EVEN)
    several = replace(one, single_root=False)
    known, unknown = (found_for(alloc, concern, invariants).rho for alloc in (one, several))
    # The counts by 'a' of the one place at the root are those that are held fixed.
    assert unknown - known == 2 * Fraction(1, 12)


# -- where no two records can change so ----------------------------------------------------------------------


def test_margins_by_every_pair_of_columns_are_kept_by_four_records_and_no_fewer():
    # Columns a, b, c and one place: files that agree on every pair of columns.
    names = ("a", "b", "c")
    part = AllocationPart("p", "person", None, Fraction(1), (Fraction(1),), (Query("all", names, 8, (Fraction(1),)),))
    alloc = Allocation("mine", "mine", ("us",), (part,), single_root=True)
    pairs = [Invariant("person", by=pair) for pair in combinations(names, 2)]
    records = [dict(zip(names, values, strict=True)) for values in product(range(2), repeat=3)]
    seen = {}
    for size in range(1, 5):
        for file in combinations_with_replacement(range(8), size):
            held = tuple(tuple(sorted(margin(one, [records[at] for at in file]).items())) for one in pairs)
            seen.setdefault((size, held), []).append(file)
    nearest = min(size for (size, _), files in seen.items() if len(files) > 1)
    found = found_for(alloc, Concern(names), pairs)
    assert found.records == found.change.distance == nearest == 4
    assert found.change.status == "assumed" and "four persons or more" in found.change.words
    # One record more in four cells and one fewer in four others: half of 8 at most what is said.
    assert 4 <= found.rho == 16


def test_whoever_satisfies_no_condition_can_change_alone():
    # All about those with b = 1 is held fixed; somebody else may change from one value to another.
    held = [Invariant("person", by=("a", "block"), where=(("b", "1"),))]
    found = found_for(divided(EVEN), Concern(("b",)), held)
    assert enumerated(divided(EVEN), Concern(("b",)), held, records_of(a=2, b=3)) is None
    assert (found.records, found.rho) == (1, exposure(divided(EVEN), "b", rounded=True).rho)
    assert found.change.words == (
        "one person to whom no condition of what is held fixed applies has another b, all else as it is"
    )


def test_what_is_wholly_held_fixed_has_no_counterfactual():
    held = [Invariant("person", by=("block", "a", "b"))]
    found = found_for(divided(EVEN), Concern(("a",)), held)
    assert not found.change.exists and found.records == 0
    explained = explain(given(held, divided(EVEN)), allocation=divided(EVEN), concerns=["a", "within us"])
    said = [one.words for one in explained.statements if one.id == "concerns.fixed"]
    assert said[0].startswith("A: no other dataset that differs in this alone keeps what is held fixed")
    assert explained.exposures == [] and "Nothing about it is protected" in explained.to_json()


# -- bounds in place of a search -----------------------------------------------------------------------------


def test_beyond_a_limit_the_search_is_an_upper_bound(monkeypatch):
    for seed in range(12):
        weights, invariants, concern = random_case(random.Random(seed), conditions=False)
        alloc = divided(weights)
        exact = found_for(alloc, concern, invariants)
        for limit in (1, 2, 3, 9):
            monkeypatch.setattr(joint_changes, "MOST_COMBINATIONS", limit)
            bound = found_for(alloc, concern, invariants)
            assert bound.rho >= exact.rho and bound.any_rho >= exact.any_rho
            monkeypatch.undo()


def test_whether_counts_reach_a_threshold_stops_nobody():
    at_least = [Invariant("person", by=("state",), at_least=1)]
    found = found_for(divided(EVEN), Concern(within="us"), at_least)
    assert found.records == 1 and found.rho == exposure(divided(EVEN), "within us", rounded=True).rho
    # A file in which it holds before and after one person moved.
    before = [{"state": 0}, {"state": 0}, {"state": 1}]
    after = [{"state": 1}, {"state": 0}, {"state": 1}]
    assert at_least[0].value(before) == at_least[0].value(after)


def test_where_the_nearest_are_further_and_nobody_says_why_records_may_change_alike():
    alloc = divided(EVEN)
    exposed = exposure(alloc, "a", rounded=True)
    found = worst_change(given([Invariant(name="edit rules")], alloc, nearest=2), exposed)
    assert (found.records, found.change.distance) == (2, 2)
    assert found.rho == found.any_rho == 4 * exposed.rho
