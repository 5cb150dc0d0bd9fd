"""Side by side: block by block, together only by implication, and never a ranking of numbers of different flavors."""

import json

import pytest

from stirred.errors import StirredError
from stirred.spec import Domain, Invariant, compare, flavors
from stirred.spec.order.block_by_block import EQUAL, FIRST, NEITHER, SECOND, UNKNOWN

FILE = Domain("file", free=True, nested=(("block", "county"),))


def pure(epsilon, unit="person", **blocks):
    return flavors.pure(unit, domain=FILE, **blocks).at(epsilon, name=f"epsilon {epsilon}")


def judged(a, b):
    found = compare(a, b)
    return {row.block: row.verdicts[0] for row in found.rows}, found.verdicts[0].stronger


def test_the_same_flavor_is_ordered_by_its_budget():
    blocks, together = judged(pure(1), pure(2))
    assert blocks == dict.fromkeys(blocks, EQUAL) | {"budget": FIRST}
    assert together == FIRST
    assert judged(pure(2), pure(1))[1] == SECOND
    assert judged(pure(1), pure(1))[1] == EQUAL


def test_more_invariants_are_weaker_whatever_the_number():
    county, block = Invariant("person", by=("county",)), Invariant("person", by=("block",))
    few = pure("0.2", invariants=[county])
    many = flavors.given_invariants(flavors.pure("person", domain=FILE), [block], nearest=1).at("0.1")
    blocks, together = judged(many, few)
    assert blocks["multiverse"] == SECOND
    assert blocks["budget"] == NEITHER
    assert together == NEITHER
    found = compare(many, few)
    assert any("more invariants make for a smaller number and protect less" in note for note in found.notes)


def test_invariants_are_spoken_of_only_where_they_differ():
    county = Invariant("person", by=("county",))
    for held in ([], [county]):
        found = compare(pure(1, invariants=held), pure(1, "household", invariants=held))
        assert "The flavors differ" in found.notes[0] and "invariants" not in found.notes[0]
    assert "more invariants" in compare(pure(1), pure(1, "household", invariants=[county])).notes[0]


def test_households_are_a_stronger_unit_than_persons_who_stay_in_them():
    blocks, together = judged(pure(1, "household"), pure(1, "person", stays_in=("household",)))
    assert blocks["input premetric"] == FIRST
    assert together == FIRST
    blocks, together = judged(pure(1, "household"), pure(1, "person"))
    assert blocks["input premetric"] == together == UNKNOWN


def test_a_pure_standard_is_stronger_than_a_concentrated_one():
    concentrated = flavors.zcdp(domain=FILE).at("0.1", name="concentrated")
    blocks, together = judged(pure(1), concentrated)
    assert blocks["output premetric"] == FIRST
    assert together not in (FIRST, SECOND)
    assert judged(pure("0.1"), concentrated)[1] == FIRST


def test_incomparable_guarantees_say_why_in_both_directions():
    a = pure(1, invariants=[Invariant("person", by=("county",))])
    b = pure(1, invariants=[Invariant("person", by=("tenure",))])
    (verdict,) = compare(a, b).verdicts
    assert verdict.stronger == NEITHER
    assert "publishing the number of persons by county" in verdict.words
    assert "publishing the number of persons by tenure" in verdict.words


def test_different_domains_are_not_known_to_be_ordered():
    blocks, together = judged(pure(1), flavors.pure(domain=Domain("another")).at(1))
    assert blocks["domain"] == together == UNKNOWN


def test_the_page_shows_every_block_and_stars_what_differs():
    text = str(compare(pure(1), pure(1, "household")))
    lines = text.splitlines()
    assert "epsilon 1 (1)" in lines[0]
    assert any(line.startswith("* input premetric") for line in lines)
    assert any(line.startswith("  domain") for line in lines)
    assert max(map(len, lines)) <= 112


def test_three_at_once_are_compared_in_pairs():
    found = compare(pure(1), pure(2), pure(3))
    assert [(verdict.first, verdict.second) for verdict in found.verdicts] == [
        ("epsilon 1", "epsilon 2"),
        ("epsilon 1", "epsilon 3"),
        ("epsilon 2", "epsilon 3"),
    ]
    assert "epsilon 3" in str(found)


def test_a_comparison_is_also_data_and_html():
    found = compare(pure(1), pure(2))
    fields = json.loads(found.to_json())
    assert fields["verdicts"][0]["stronger"] == FIRST
    assert fields["rows"][4]["differs"]
    assert found._repr_html_().count("<table>") == 2


def test_one_alone_is_not_compared():
    with pytest.raises(StirredError, match="nothing to compare it with"):
        compare(pure(1))
