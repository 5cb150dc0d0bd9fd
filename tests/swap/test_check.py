"""What a check says about small random tables, against counting by hand and enumeration of all permutations."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swap_oracle import (
    cell_moments_by_enumeration,
    moved_probability_by_enumeration,
    permutation_law,
    permutations,
)

from repeats import some_or
from stirred import explain
from stirred.errors import PlanError
from stirred.swap.checking.plan_check import check, memory_of
from stirred.swap.data.dataset import load
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable
from stirred.swap.verifying import verify

COLUMNS = ("region", "size", "county", "tract", "tenure", "fuel")
MATCH, SWAP, HOLD = COLUMNS[:2], COLUMNS[2:4], COLUMNS[4:]
RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]

EXAMPLES = settings(
    max_examples=some_or(27, 80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def bounded(test):
    return pytest.mark.repeats(EXAMPLES(test))


@dataclass(frozen=True)
class Household:
    """One record: six cells, and its persons, whose order means nothing."""

    cells: tuple[str, ...]
    persons: tuple[tuple[str, str], ...] = ()

    def of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.cells[COLUMNS.index(name)] for name in names)

    @property
    def kept(self) -> tuple[object, ...]:
        """What no swap touches beside the match variables."""
        return (self.of(HOLD), tuple(sorted(self.persons)))


letters = st.sampled_from("ab")
match_values = st.tuples(letters, st.sampled_from("11112"))
ages = st.tuples(st.sampled_from(["20", "30"]), st.sampled_from("fm"))
alone = st.builds(
    lambda match, others: Household((*match, *others, "gas")), match_values, st.tuples(letters, letters, letters)
)
together = st.builds(
    lambda match, others, fuel, persons: Household((*match, *others, "own", fuel), tuple(persons)),
    match_values,
    st.tuples(letters, letters),
    letters,
    st.lists(ages, max_size=2),
)
tables = st.lists(alone, min_size=1, max_size=6)
"""No stratum beyond six records: all 720 permutations can be gone through."""
linked_tables = st.lists(together, min_size=1, max_size=12).filter(lambda found: any(one.persons for one in found))


def frames(households: list[Household]) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    rows = [(number, *one.cells) for number, one in enumerate(households)]
    persons = [(number, *person) for number, one in enumerate(households) for person in one.persons]
    main = pl.DataFrame(rows, schema=["id", *COLUMNS], orient="row")
    return main, {"persons": pl.DataFrame(persons, schema=["id", "age", "sex"], orient="row")}


def plan(rate: Fraction = RATES[0], linked: bool = False, **others: object) -> SwapPlan:
    persons = (LinkedTable(name="persons", link="id", hold=["age", "sex"]),) if linked else ()
    fields = {"match": MATCH, "swap": SWAP, "hold": HOLD, "id": "id", "chosen_from": "public"} | others
    return SwapPlan(rate=rate, linked=persons, **fields)


def checked(households: list[Household], rate: Fraction = RATES[0], linked: bool = False, **options: object):
    main, persons = frames(households)
    return check(plan(rate, linked), {"microdata": main, **(persons if linked else {})}, **options)


# -- counting by hand ----------------------------------------------------------------------------------------


def strata_by_hand(households, match=MATCH) -> list[list[Household]]:
    values = sorted({one.of(match) for one in households})
    return [[one for one in households if one.of(match) == value] for value in values]


def differs(one: Household, other: Household) -> bool:
    return (one.of(COLUMNS), sorted(one.persons)) != (other.of(COLUMNS), sorted(other.persons))


def can_change(stratum: list[Household]) -> bool:
    """Whether exchanging the swap variables of some two records gives another multiset of records."""
    whole = Counter((one.of(SWAP), one.kept) for one in stratum)
    for one, other in combinations(stratum, 2):
        exchanged = whole - Counter([(one.of(SWAP), one.kept), (other.of(SWAP), other.kept)])
        if exchanged + Counter([(other.of(SWAP), one.kept), (one.of(SWAP), other.kept)]) != whole:
            return True
    return False


def largest(strata: list[list[Household]], of_those) -> int:
    return max((len(stratum) for stratum in strata if of_those(stratum)), default=0)


def has_two(stratum: list[Household]) -> bool:
    return any(differs(one, other) for one, other in combinations(stratum, 2))


def epsilon_by_hand(b: int, rate: Fraction) -> float:
    odds = float(rate / (1 - rate))
    return max(math.log(b + 1) - math.log(odds), math.log(odds)) if b else 0.0


def assert_strata_are_as_counted(found, households):
    strata = strata_by_hand(households)
    fixed = [stratum for stratum in strata if not can_change(stratum)]
    assert found.largest == largest(strata, has_two)
    assert found.strata.largest_changeable == largest(strata, can_change)
    assert found.strata.singletons == sum(len(stratum) == 1 for stratum in strata)
    assert found.epsilon == pytest.approx(epsilon_by_hand(largest(strata, has_two), found.plan.rate), rel=1e-12)
    fields = json.loads(found.to_json())
    assert fields["strata"]["count"] == len(strata)
    assert fields["strata"]["singletons"] == found.strata.singletons
    assert fields["strata"]["largest"] == found.largest
    assert fields["strata"]["largest_changeable"] == found.strata.largest_changeable
    assert fields["strata"]["unchangeable"] == len(fixed)
    assert fields["strata"]["records_in_unchangeable"] == sum(map(len, fixed))
    assert sum(entry["records"] for entry in fields["strata"]["sizes"]) == len(households)
    nearest = fields["specification"]["nearest"]
    assert nearest == ("2" if len(fixed) < len(strata) else "infinity")


@bounded
@given(tables)
def test_strata_and_epsilon_are_those_of_the_definition(households):
    assert_strata_are_as_counted(checked(households), households)


@bounded
@given(linked_tables)
def test_persons_are_part_of_their_household_when_strata_are_judged(households):
    assert_strata_are_as_counted(checked(households, linked=True), households)


@bounded
@given(linked_tables)
def test_unique_records_are_counted_with_and_without_their_persons(households):
    def lonely(keys: list[object]) -> int:
        return sum(many == 1 for many in Counter(keys).values())

    found = checked(households, linked=True).uniques
    assert found.on_held == lonely([one.of(MATCH + HOLD) for one in households])
    assert found.with_linked == lonely([(one.of(MATCH), one.kept) for one in households])
    assert checked(households).uniques.with_linked is None


@bounded
@given(linked_tables)
def test_invariants_have_as_many_cells_as_there_are_combinations(households):
    margins = checked(households, linked=True).margins
    assert [counted.margin.cells for counted in margins.counted] == [
        len({one.of(MATCH + HOLD) for one in households}),
        len({one.of(MATCH + SWAP) for one in households}),
        len({one.of(MATCH) + person for one in households for person in one.persons}),
    ]


@bounded
@given(tables, st.permutations(range(len(COLUMNS))))
def test_other_choices_of_variables_have_the_epsilon_of_the_definition(households, order):
    names = [COLUMNS[at] for at in order]
    match, swap = tuple(names[:2]), tuple(names[2:3])
    found = checked(households, rates=RATES, candidates=[(match, swap), ((), swap)]).what_if
    assert [(entry.match, entry.swap) for entry in found] == [(MATCH, SWAP), (match, swap), ((), swap)]
    for entry in found:
        strata = strata_by_hand(households, entry.match)
        assert entry.strata == len(strata)
        assert entry.largest == largest(strata, has_two)
        assert [name for name, _ in entry.epsilons] == [str(rate) for rate in RATES]
        for (_, value), rate in zip(entry.epsilons, RATES, strict=True):
            assert value == pytest.approx(epsilon_by_hand(entry.largest, rate), rel=1e-12)


# -- enumeration ---------------------------------------------------------------------------------------------


@bounded
@given(tables, st.sampled_from(RATES))
def test_as_many_records_are_expected_to_move_as_all_permutations_say(households, rate):
    movement = checked(households, rate).movement
    strata = strata_by_hand(households)
    chances = [moved_probability_by_enumeration(len(stratum), rate) for stratum in strata]
    expected = sum(chance * len(stratum) for chance, stratum in zip(chances, strata, strict=True))
    assert movement.expected_share == pytest.approx(float(expected) / len(households), rel=1e-12)
    plural = [float(chance) for chance, stratum in zip(chances, strata, strict=True) if len(stratum) > 1]
    assert movement.smallest == pytest.approx(min(plural, default=0.0), rel=1e-12)
    assert movement.largest == pytest.approx(max(plural, default=0.0), rel=1e-12)
    # Only where that changes the file: among records that are alike but for the swap variables it does not.
    changeable = [stratum for stratum in strata if can_change(stratum)]
    changed = sum((changed_by_enumeration(stratum, rate) for stratum in changeable), start=Fraction(0))
    assert movement.expected_changed_share == pytest.approx(float(changed) / len(households), rel=1e-12, abs=1e-15)


def changed_by_enumeration(stratum: list[Household], rate: Fraction) -> Fraction:
    """Expected number of records whose swap variables differ afterwards."""
    every, moved = permutations(len(stratum))
    law = permutation_law(len(stratum), rate)
    values = [one.of(SWAP) for one in stratum]
    return sum(
        (
            law[many] * sum(values[to] != values[at] for at, to in enumerate(order))
            for order, many in zip(every, moved, strict=True)
        ),
        start=Fraction(0),
    )


@bounded
@given(
    tables,
    st.sampled_from(RATES),
    st.sampled_from(
        [
            ("county", "tenure"),
            ("tenure", "region", "county"),
            ("county", "tract", "tenure"),
            ("tract",),
            ("tenure", "size"),
            ("county", "tract", "region", "size", "tenure", "fuel"),
        ]
    ),
)
def test_expected_tables_have_the_mean_and_variance_of_all_permutations(households, rate, by):
    (found,) = checked(households, rate, tables=[by]).tables
    assert found.by == by
    exact = moments_by_enumeration(households, rate, by)
    labels = list(found.labels)
    assert len(set(labels)) == len(labels)
    assert {label for label, (_, mean, _) in exact.items() if mean} <= set(labels)
    for label, true, mean, variance in zip(labels, found.true, found.mean, found.variance, strict=True):
        expected = exact[label]
        assert true == expected[0]
        assert mean == pytest.approx(float(expected[1]), rel=1e-12, abs=1e-14)
        assert variance == pytest.approx(float(expected[2]), rel=1e-11, abs=1e-13)


def moments_by_enumeration(households, rate, by):
    """(true, mean, variance) of every cell; strata are independent, so they add."""
    held, swapped = tuple(n for n in by if n in HOLD), tuple(n for n in by if n in SWAP)
    found: dict[tuple[str, ...], list[Fraction]] = {}
    for stratum in strata_by_hand(households):
        kept = sorted({one.of(held) for one in stratum})
        moving = sorted({one.of(swapped) for one in stratum})
        table = tuple((kept.index(one.of(held)), moving.index(one.of(swapped))) for one in stratum)
        for h, s in product(range(len(kept)), range(len(moving))):
            values = dict(zip(held, kept[h], strict=True)) | dict(zip(swapped, moving[s], strict=True))
            values |= dict(zip(MATCH, stratum[0].of(MATCH), strict=True))
            cell = found.setdefault(tuple(values[name] for name in by), [Fraction(0)] * 3)
            mean, variance = cell_moments_by_enumeration(table, (h, s), rate)
            cell[:] = [cell[0] + table.count((h, s)), cell[1] + mean, cell[2] + variance]
    return found


# -- examples ------------------------------------------------------------------------------------------------


def alike(county: str, *persons: tuple[str, str]) -> Household:
    return Household(("a", "1", county, "t", "own", "gas"), persons)


def test_households_that_differ_only_in_their_persons_are_different_records():
    same = [alike("x", ("20", "f")), alike("x", ("20", "f")), alike("x", ("20", "f"))]
    assert checked(same, linked=True).largest == 0
    other = [*same[:2], alike("x", ("20", "m"))]
    assert checked(other).largest == 0
    assert checked(other, linked=True).largest == 3
    assert checked(other, linked=True).strata.largest_changeable == 0  # they all have one county


def test_one_person_more_of_the_same_kind_makes_another_record():
    assert checked([alike("x", ("20", "f")), alike("x", ("20", "f"), ("20", "f"))], linked=True).largest == 2


def test_the_order_of_persons_makes_no_other_record():
    pair = [alike("x", ("20", "f"), ("30", "m")), alike("x", ("30", "m"), ("20", "f"))]
    assert checked(pair, linked=True).largest == 0


def test_households_without_persons_differ_from_those_with():
    found = checked([alike("x"), alike("y", ("20", "f"))], linked=True)
    assert (found.largest, found.strata.largest_changeable) == (2, 2)


def test_nothing_can_change_where_every_stratum_has_one_held_value():
    found = checked([alike("x"), alike("y")])
    assert (found.largest, found.strata.largest_changeable) == (2, 0)
    assert "nothing-can-change" in [finding.id for finding in found.specification.findings]
    assert "no other file has the same invariants" in " ".join(str(found).split())


@pytest.mark.parametrize(
    ("chosen_from", "finding"),
    [
        (None, "parameters-unexplained"),
        ("this data", "parameters-from-this-data"),
        ("earlier data", None),
        ("public", None),
    ],
)
def test_a_plan_that_cannot_say_where_it_came_from_draws_a_finding(chosen_from, finding):
    main, _ = frames([Household(tuple(cells)) for cells in ("aacdeg", "aaddfg")])
    found = check(plan(chosen_from=chosen_from), main)
    about = [entry.id for entry in found.specification.findings if entry.id.startswith("parameters-")]
    assert about == ([finding] if finding else [])
    assert ("guarantee is void" in " ".join(str(found).split())) == (finding is not None)


@pytest.mark.parametrize(
    ("chosen_from", "looked_at", "finding"),
    [
        ("public", "nothing", None),
        ("public", "types and formats", "formats-from-this-data"),
        ("earlier data", "values", "parameters-from-this-data"),
        ("this data", "types and formats", "parameters-from-this-data"),  # the worse of the two
    ],
)
def test_the_finding_follows_what_was_looked_at(tmp_path, chosen_from, looked_at, finding):
    main, _ = frames([Household(tuple(cells)) for cells in ("aacdeg", "aaddfg")])
    stated = plan(RATES[1], chosen_from=chosen_from, looked_at=looked_at)
    released = draw(stated, main).write(tmp_path / "out")
    certificate, readme = ((released / name).read_text(encoding="utf-8") for name in ("certificate.json", "README.txt"))
    fields = json.loads(certificate)
    assert fields["plan"]["looked_at"] == looked_at
    texts = [str(check(stated, main)), readme, explain(released).text(True)]
    for text in (" ".join(one.split()) for one in texts):
        assert ("guarantee is void" in text) == (finding == "parameters-from-this-data")
        assert ("The guarantee holds given these choices" in text) == (finding == "formats-from-this-data")
    assert all(verdict.holds for verdict in verify(released))


def test_a_plan_cannot_look_at_nothing_and_choose_by_this_data():
    with pytest.raises(PlanError, match='looked_at: is "nothing"'):
        plan(chosen_from="this data", looked_at="nothing")


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1)])
def test_json_stays_json_where_epsilon_is_infinite(rate):
    def refuse(constant: str):
        pytest.fail(f"{constant} is not JSON")

    found = checked([Household(tuple(cells)) for cells in ("aacdeg", "aaddfg")], rates=[rate])
    fields = json.loads(found.to_json(), parse_constant=refuse)
    assert fields["what_if"][0]["epsilons"] == [[str(rate), "infinity"]]


def test_a_check_of_the_same_data_in_another_order_says_the_same():
    households = [Household(tuple(cells)) for cells in ("aacdeg", "abddfg", "aaddfg", "aacdfg")]
    first, second = (
        json.loads(checked(order, tables=[("county", "tenure")]).to_json()) for order in (households, households[::-1])
    )
    del first["forecast"], second["forecast"]
    assert first == second


def test_the_forecast_of_memory_grows_with_rows_and_more_with_ids_that_are_text():
    def forecast(rows: int, kind: pl.DataType) -> int:
        homes = pl.DataFrame({"id": range(rows), "size": [1, 2] * (rows // 2), "county": ["a", "b"] * (rows // 2)})
        plan = SwapPlan(match=["size"], swap=["county"], hold=["tenure"], id="id", rate="1/20")
        return memory_of(load(plan, homes.with_columns(pl.col("id").cast(kind), tenure=pl.lit("own"))), 0)

    few, numbers, texts = forecast(1_000, pl.Int64()), forecast(1_500_000, pl.Int64()), forecast(1_500_000, pl.String())
    assert few > 400_000_000  # the programs alone
    assert few < numbers < texts
