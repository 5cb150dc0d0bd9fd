"""Units within units, by enumeration: what a guarantee for households is worth for their persons.

A file is a list of persons, each with the household it is in; a household's record is all its persons.
"""

import itertools
import json
import math
from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.spec import InputPremetric, Invariant, Specification, change_unit, compose, flavors, lint
from stirred.spec.order.conversions import KNOWN_UNITS, Stop, bring

HERE = [("h1", "m"), ("h1", "f"), ("h2", "f")]
MOVED = [("h1", "m"), ("h2", "f"), ("h2", "f")]


def persons(file):
    return [{"household": home, "sex": sex} for home, sex in file]


def households(file, named=True):
    homes = sorted({home for home, _ in file})
    records = [(home if named else "", tuple(sorted(sex for h, sex in file if h == home))) for home in homes]
    return records if named else sorted(records)


def all_files(most=3, homes=("h1", "h2", "h3"), values="mf"):
    records = list(itertools.product(homes, values))
    return [list(file) for size in range(most + 1) for file in itertools.combinations_with_replacement(records, size)]


def worst(coarse: InputPremetric, fine: InputPremetric, named: bool) -> float:
    """The largest d^household / d^person between any two small files."""
    files = [(persons(file), households(file, named)) for file in all_files()]
    found = 0.0
    for (one, first), (other, second) in itertools.combinations(files, 2):
        apart = fine.distance(one, other)
        if 0 < apart < math.inf:
            found = max(found, float(coarse.distance(first, second)) / float(apart))
    return found


def factor(coarse: InputPremetric, fine: InputPremetric) -> Fraction | None:
    """By how much the constant grows from the one to the other, as the library says; None where it does not know."""
    flavor = flavors.pure("household")
    start = Specification(flavor.domain, flavor.multiverse, coarse, flavor.output_premetric, flavor.at(1).budget)
    try:
        return bring(start, fine, fine.fixes()).specification.budget.number
    except Stop:
        return None


PERSONS = {
    "replaced": InputPremetric(unit="person"),
    "replaced in their household": InputPremetric(unit="person", stays_in=("household",)),
    "added or removed": InputPremetric(unit="person", bounded=False),
    "neighbours, replaced": InputPremetric.neighbours("person"),
    "neighbours, replaced in their household": InputPremetric.neighbours("person", stays_in=("household",)),
    "neighbours, added or removed": InputPremetric.neighbours("person", bounded=False),
}
HOUSEHOLDS = {
    "replaced": InputPremetric(unit="household"),
    "added or removed": InputPremetric(unit="household", bounded=False),
}


@pytest.mark.parametrize("named", [True, False], ids=["households have names", "households have no names"])
@pytest.mark.parametrize("coarse", HOUSEHOLDS)
@pytest.mark.parametrize("fine", PERSONS)
def test_no_two_small_files_are_further_apart_in_households_than_the_library_says(coarse, fine, named):
    said, found = factor(HOUSEHOLDS[coarse], PERSONS[fine]), worst(HOUSEHOLDS[coarse], PERSONS[fine], named)
    if said is None:
        assert found > 1
    else:
        assert found == said if named else found <= said


def test_which_steps_between_households_and_persons_are_known():
    known = {(coarse, fine): factor(HOUSEHOLDS[coarse], PERSONS[fine]) for coarse in HOUSEHOLDS for fine in PERSONS}
    assert known == {
        ("replaced", "replaced"): None,
        ("replaced", "replaced in their household"): 1,
        ("replaced", "added or removed"): None,
        ("replaced", "neighbours, replaced"): None,
        ("replaced", "neighbours, replaced in their household"): 1,
        ("replaced", "neighbours, added or removed"): None,
        ("added or removed", "replaced"): 4,
        ("added or removed", "replaced in their household"): 2,
        ("added or removed", "added or removed"): 2,
        ("added or removed", "neighbours, replaced"): 4,
        ("added or removed", "neighbours, replaced in their household"): 2,
        ("added or removed", "neighbours, added or removed"): 2,
    }


def test_one_person_who_moves_changes_two_households():
    person, household = flavors.pure("person").at(1), flavors.pure("household").at(1)
    assert person.counterfactual(persons(HERE), persons(MOVED)).bound == 1
    assert household.counterfactual(households(HERE), households(MOVED)).bound == 2
    answer = household.implies(person)
    assert answer.verdict == "unknown"
    assert "one person that moves changes two households" in str(answer)
    assert "{m, f} and {f} to {m} and {f, f}" in str(answer)
    staying = flavors.pure("person", stays_in=("household",)).at(1)
    assert not staying.counterfactual(persons(HERE), persons(MOVED)).inside


def test_a_household_that_empties_is_infinitely_far_from_itself():
    alone, gone = [("h1", "m"), ("h2", "f")], [("h2", "f"), ("h2", "m")]
    assert InputPremetric(unit="person").distance(persons(alone), persons(gone)) == 1
    assert InputPremetric(unit="household").distance(households(alone), households(gone)) == math.inf


@pytest.mark.parametrize(("fine", "coarse"), KNOWN_UNITS)
def test_a_yes_names_its_condition_for_every_known_pair_of_units(fine, coarse):
    strong = flavors.pure(coarse).at(1)
    assert strong.implies(flavors.pure(fine).at(1)).verdict == "unknown"
    assert strong.implies(flavors.pure(fine, within=((coarse, 10),)).at(1)).verdict == "unknown"
    staying = strong.implies(flavors.pure(fine, stays_in=(coarse,)).at(1))
    counted = strong.implies(flavors.pure(fine, invariants=[Invariant(fine, by=(coarse,))]).at(1))
    if fine == "edge":  # it belongs to two nodes
        assert staying.verdict == counted.verdict == "unknown"
    else:
        for answer in (staying, counted):
            assert answer.verdict == "yes"
            assert f"the number of {fine}s by {coarse} is held fixed" in str(answer)
    free = flavors.pure(coarse, bounded=False).at(1)
    assert free.implies(flavors.pure(fine, bounded=False).at("1.999")).verdict == "unknown"
    assert free.implies(flavors.pure(fine, bounded=False).at(2))


def test_an_order_of_persons_is_not_known_to_carry_over_to_households():
    ordered = flavors.pure("person", ordered=True, stays_in=("household",)).at(1)
    assert flavors.pure("household", ordered=True).at(1).implies(ordered).verdict == "unknown"


def test_persons_who_stay_are_protected_against_less_than_those_who_may_move():
    free, staying = flavors.pure("person").at(1), flavors.pure("person", stays_in=("household",)).at(1)
    assert free.implies(staying)
    assert staying.implies(free).verdict == "unknown"
    held = flavors.pure("person", invariants=[Invariant("person", by=("household",))]).at(1)
    assert staying.implies(held) and held.implies(staying)
    finding = {finding.id: finding.words for finding in lint(staying)}["hidden-invariant"]
    assert "the number of persons by household is held fixed" in finding
    weaker = flavors.pure("person", stays_in=("household",)).at("1/2")
    said = {finding.id: finding.words for finding in lint(weaker, before=free)}["weaker-distance"]
    assert "a person changes its household" in said


def test_releases_for_households_and_persons_add_up_for_persons_who_stay():
    household, person = flavors.zcdp("household").at(1), flavors.zcdp("person").at(2)
    both = compose(household, person)
    assert both.specification.budget.number == 3
    assert both.specification.input_premetric == InputPremetric(unit="person", stays_in=("household",))
    assert "the number of persons by household is held fixed" in str(both)
    assert "infinite if the number of persons in a household differs" in str(both.specification)
    assert not both.specification.implies(flavors.zcdp("person").at(3))
    # Where a rule without the condition is known, it is taken.
    added = compose(flavors.pure("household", bounded=False).at(1), flavors.pure("person").at(1)).specification
    assert (added.budget.number, added.input_premetric.stays_in) == (5, ())


def test_a_change_of_unit_says_what_to_declare():
    with pytest.raises(StirredError, match=r"stays_in=\('household',\)"):
        change_unit(flavors.pure("household").at(1), InputPremetric(unit="person"))


def test_staying_is_written_only_where_it_is_declared_and_earlier_files_are_read():
    plain, staying = flavors.pure("person").at(1), flavors.pure("person", stays_in=("household",)).at(1)
    assert "stays_in" not in plain.to_json()
    for one in (plain, staying):
        assert Specification.from_json(one.to_json()) == one
    assert json.loads(staying.to_json())["input_premetric"]["stays_in"] == ["household"]
    with pytest.raises(StirredError, match="equal size"):
        InputPremetric(unit="person", bounded=False, stays_in=("household",))
    with pytest.raises(StirredError, match="without that column"):
        InputPremetric(unit="person", stays_in=("household",)).distance(["m"], ["f"])
