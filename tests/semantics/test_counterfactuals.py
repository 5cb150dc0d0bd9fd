"""Which two datasets are compared, and that they never leave their universe."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.semantics import change_of_record, changed_group, replaced_record, smallest_change
from stirred.semantics.testing import allowed_power
from stirred.spec import FiniteMechanism, InputPremetric, Invariant, Multiverse, OutputPremetric, flavors
from stirred.spec.blocks import Domain
from stirred.spec.loading import load
from stirred.spec.specification import Flavor


def test_one_replaced_record_is_the_smallest_change_of_a_free_domain():
    change = smallest_change(flavors.zcdp("person").at(1))
    assert (change.distance, change.status) == (1, "inside")
    assert "one person" in change.words and "replaced" in change.words


def test_swapping_changes_two_records_at_least():
    change = smallest_change(load("psa-2010"))
    assert (change.distance, change.status) == (2, "inside")
    assert change.words.startswith("two households of one stratum") and "exchanged" in change.words


def test_a_universe_of_one_dataset_has_no_counterfactual():
    alone = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("all",))], nearest=math.inf).at(1)
    change = smallest_change(alone)
    assert (change.exists, change.distance) == (False, math.inf)
    assert allowed_power(alone).power(0.0) == 1  # nothing is promised


def test_an_unknown_distance_is_said_to_be_assumed():
    unknown = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("block",))]).at(1)
    assert (smallest_change(unknown).distance, smallest_change(unknown).status) == (1, "assumed")


def test_adding_and_replacing_are_different_distances():
    # Where records are added and removed, putting another record in one's place is a removal and an addition.
    unbounded = flavors.pure("person", bounded=False).at(1)
    assert smallest_change(unbounded).distance == 1
    assert replaced_record(unbounded).distance == 2
    bounded = flavors.pure("person").at(1)
    assert replaced_record(bounded).distance == 1


def test_no_record_is_redrawn_where_none_can_change_alone():
    assert replaced_record(load("psa-2010")) is None
    assert replaced_record(flavors.metric("kilometres").at(1)) is None
    assert replaced_record(load("topdown-2020-pl")).distance == 1


def test_groups_are_as_far_apart_as_their_units_and_never_nearer_than_the_nearest():
    person = flavors.zcdp("person").at(1)
    assert [changed_group(person, size).distance for size in (1, 2, 5)] == [1, 2, 5]
    swap = load("psa-2010")
    assert [changed_group(swap, size).distance for size in (1, 2, 5)] == [2, 2, 5]
    with pytest.raises(StirredError, match="whole number"):
        changed_group(person, 0)


def test_listed_distances_are_looked_up_inside_the_universes():
    distances = {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 3, ("c", "b"): 3}
    blocks = {"input_premetric": InputPremetric.table(distances), "output_premetric": OutputPremetric()}
    domain = Domain("three", datasets=("a", "b", "c"))
    whole = Flavor(domain, Multiverse(), **blocks).at(1)
    apart = Flavor(domain, Multiverse(universes=(("a",), ("b", "c"))), **blocks).at(1)
    alone = Flavor(domain, Multiverse(universes=(("a",), ("b",))), **blocks).at(1)
    assert [smallest_change(one).distance for one in (whole, apart, alone)] == [1, 3, math.inf]
    # The bound is that of the distance: epsilon 1 times 3.
    assert allowed_power(apart).power(0.001) == pytest.approx(0.001 * math.exp(3))


# -- a stratum of two records, swapped at 5% -----------------------------------------------------------------

RATE = Fraction(1, 20)
STRATUM = Flavor(
    Domain("two records", free=True),
    Multiverse((Invariant("person", by=("held",)), Invariant("person", by=("swapped",)))),
    InputPremetric(unit="person"),
    OutputPremetric(),
    nearest=2,
)
HERE = ({"held": "h1", "swapped": "s1"}, {"held": "h2", "swapped": "s2"})
THERE = ({"held": "h1", "swapped": "s2"}, {"held": "h2", "swapped": "s1"})


def swap_law():
    """The exact law of permutation swapping on two records: both or neither move."""
    stay, move = (1 - RATE) ** 2, RATE**2
    stays = stay / (stay + move)
    return FiniteMechanism.of(
        {"here": {"here": stays, "there": 1 - stays}, "there": {"there": stays, "here": 1 - stays}}
    )


def test_two_records_swapped_at_five_percent_have_a_likelihood_ratio_of_361_and_not_57():
    # Theorem 3.2.4 with b = 2: ln(b + 1) - ln(p / (1 - p)) = 4.04 per record, and the two files are two records apart.
    epsilon = math.log(3) - math.log(RATE / (1 - RATE))
    specification = STRATUM.at(epsilon)
    assert specification.counterfactual(HERE, THERE).distance == 2
    change = smallest_change(specification)
    ratio = swap_law().law("here")["here"] / swap_law().law("there")["here"]
    assert (round(epsilon, 2), round(ratio)) == (4.04, 361)
    assert math.exp(epsilon) == pytest.approx(57)
    # A bound at distance one would be broken; the one at the distance of the two files holds.
    assert ratio > math.exp(epsilon)
    assert ratio <= math.exp(specification.budget_at(change.distance))
    # So is the power of the best test.
    level = 0.001
    power = min(1, ratio * level)
    assert power <= float(allowed_power(specification).power(level))
    assert power > math.exp(epsilon) * level


def test_a_distance_below_the_nearest_is_refused():
    with pytest.raises(StirredError, match="2 apart"):
        allowed_power(STRATUM.at(1), 1)


def test_a_record_fixed_by_the_invariants_has_no_counterfactual():
    specification = STRATUM.at(1)
    values = [{"held": h, "swapped": s} for h in ("h1", "h2", "h3") for s in ("s1", "s2", "s3")]
    candidates = list(itertools.combinations_with_replacement(values, 2))
    assert change_of_record(specification, HERE, 0, candidates).distance == 2
    # Two records with the same swapped value: exchanging changes nothing, and nothing else keeps both margins.
    same = ({"held": "h1", "swapped": "s1"}, {"held": "h2", "swapped": "s1"})
    fixed = change_of_record(specification, same, 0, candidates)
    assert (fixed.status, fixed.distance) == ("none", math.inf)
