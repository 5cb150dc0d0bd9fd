"""Composition, post-processing, units: the right rule for each standard, and a refusal where none is known."""

import math
from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.lab.definitions.multiverses import completed
from stirred.lab.reproduce.catalogue import items, published
from stirred.loss.curves.power_curves import GaussianCurve, PowerCurve, pure_power
from stirred.spec import (
    Budget,
    Domain,
    InputPremetric,
    Invariant,
    Kind,
    Multiverse,
    OutputPremetric,
    Specification,
    as_approximate,
    change_unit,
    compose,
    flavors,
    may_publish_budget,
    may_publish_invariants,
    per_respondent,
    post_process,
    register,
    retabulate,
)
from stirred.spec.specification import Held, held

PEOPLE = Domain("census", free=True, nested=(("block", "county"), ("county", "state")))
STATES = Invariant("person", by=("state",))
BLOCKS = Invariant("housing unit", by=("block",))
IN_HOUSEHOLDS = (("household", 10),)


def zcdp(rho, unit="person", invariants=(), **blocks):
    return flavors.zcdp(unit, domain=PEOPLE, invariants=invariants, **blocks).at(rho)


def pure(epsilon, unit="person", invariants=(), **blocks):
    return flavors.pure(unit, domain=PEOPLE, invariants=invariants, **blocks).at(epsilon)


def total(*specifications) -> Specification:
    return compose(*specifications).specification


def refusal(kind, action, *arguments, **named) -> str:
    with pytest.raises(StirredError) as refused:
        action(*arguments, **named)
    assert refused.value.kind == kind
    return str(refused.value)


@pytest.mark.parametrize(
    "budgets", [["1", 0.5, "0.125"], ["1", "0.1281234", "0.125"], ["0.1001001"] * 10, ["1/3", "1/3"], [0.3, 0.7, 1.1]]
)
def test_printed_parts_of_a_sum_add_up_and_understate_nothing(budgets):
    """Floats are epsilons of pure differential privacy, whose rho has no short text."""
    parts = [(flavors.pure if isinstance(one, float) else flavors.zcdp)("person").at(one) for one in budgets]
    both = compose(*parts, flavors.zcdp("person").at("0.01"))
    total, words = both.specification.budget, both.steps[-1].words
    printed, _, rounded = words.partition(": ")[2].partition(" = ")
    shown = [Fraction(one) for one in printed.split(" + ")]
    assert sum(shown) == Fraction(rounded.partition(",")[0] or total.shown()) <= Fraction(total.shown())
    assert sum(shown) >= total.number
    assert all(one >= Fraction(text) for one, text in zip(shown, budgets, strict=False) if isinstance(text, str))


def test_each_standard_composes_by_its_own_rule():
    assert total(pure("0.1"), pure("0.2"), pure("1/3")).budget.value == Fraction(19, 30)
    assert total(zcdp("2.56"), zcdp("0.07")).budget.value == Fraction("2.63")
    both = total(flavors.approximate("1e-6").at(1), flavors.approximate("2e-6").at("0.5"))
    assert (both.budget.value, both.output_premetric.parameter) == (Fraction(3, 2), Fraction(3, 10**6))
    orders = total(flavors.renyi(2).at("0.1"), flavors.renyi(4).at("0.2"))
    assert (orders.budget.value, orders.output_premetric.parameter) == (Fraction(3, 10), 2)
    curves = total(flavors.trade_off().at(GaussianCurve(3.0)), flavors.trade_off().at(GaussianCurve(4.0)))
    assert curves.budget.value == GaussianCurve(5.0)


def test_trade_off_functions_compose_to_that_of_the_pairs_that_attain_them():
    """Two randomised responses with odds of 3: the test that asks for two yeses has level 1/16 and power 9/16."""
    once = flavors.trade_off().at(pure_power(math.log(3)))
    points = dict(total(once, once).budget.value.points)
    assert points[min(points, key=lambda level: abs(level - 1 / 16))] == pytest.approx(9 / 16, abs=1e-12)
    assert total(once, once).budget.value.power(7 / 16) == pytest.approx(15 / 16, abs=1e-12)


def test_an_infinite_budget_stays_infinite():
    assert total(pure(1), pure("infinity")).budget.value == float("inf")


def test_pure_releases_are_counted_among_concentrated_ones():
    both = compose(zcdp(2), pure(1))
    assert float(both.specification.budget.value) == pytest.approx(2 + math.tanh(0.5), rel=1e-12)
    assert any("Kairouz" in step.source for step in both.steps)


def test_a_pure_release_adds_nothing_to_delta():
    both = total(flavors.approximate("1e-6").at(1), flavors.pure().at(1), flavors.approximate("1e-6").at(1))
    assert (both.budget.value, both.output_premetric.parameter) == (3, Fraction(2, 10**6))


def test_the_union_of_invariants_is_conditioned_on_and_what_others_imply_is_dropped():
    some = Invariant("housing unit", by=("county",), at_least=1)
    both = compose(zcdp(1, invariants=[STATES, BLOCKS]), zcdp(2, invariants=[some]))
    assert both.specification.multiverse == Multiverse((STATES, BLOCKS))
    assert both.specification.nearest is None
    assert both.steps[0].source == "Proposition 2.4.13"


def test_a_household_guarantee_counts_as_one_for_persons_who_stay_in_their_household_at_the_same_number():
    both = total(zcdp("17.79", "household"), zcdp("15.29", within=IN_HOUSEHOLDS, invariants=[STATES]))
    assert (both.input_premetric.unit, both.input_premetric.stays_in) == ("person", ("household",))
    assert both.budget.value == Fraction("33.08")
    assert not both.implies(zcdp("33.08", within=IN_HOUSEHOLDS, invariants=[STATES]))


def test_unbounded_releases_are_read_among_files_of_one_size_at_twice_the_constant():
    assert total(pure(1, bounded=False), pure(1)).budget.value == 3
    assert total(zcdp(1, bounded=False), zcdp(1)).budget.value == 5
    assert total(pure(1, bounded=False), pure(1)).input_premetric.bounded


def test_releases_of_some_variables_compose_to_one_of_all_of_them():
    one = flavors.pure(domain=Domain("file", variables=("a", "b"))).at(1)
    two = flavors.pure(domain=Domain("file", variables=("b", "c"))).at(1)
    assert total(one, two).domain.variables == ("a", "b", "c")
    assert total(one, flavors.pure(domain=Domain("file")).at(1)).domain.variables is None


def test_what_has_no_rule_is_refused_with_the_reason():
    assert "different domains" in refusal("different-domains", compose, pure(1), flavors.pure().at(1))
    varied = flavors.flavor(OutputPremetric("total-variation")).at("0.1")
    assert "D_alpha" in refusal("no-rule", compose, flavors.renyi(2).at(1), varied)
    curve = flavors.trade_off().at(PowerCurve(((0.0, 0.1), (1.0, 1.0))))
    gauss = flavors.trade_off().at(GaussianCurve(1.0))
    assert "no rule for its budgets" in refusal("no-rule", compose, curve, gauss)
    assert "share randomness" in refusal("no-rule", compose, pure(1), pure(1), fresh=False)
    refusal("no-rule", compose)
    users, orders = pure(1, "user"), pure(1, "order")
    assert "is not declared" in refusal("no-rule", compose, users, orders)
    listed = flavors.Flavor(
        Domain("toy", datasets=("a", "b")), Multiverse((), (("a", "b"),)), InputPremetric.table({}), OutputPremetric()
    )
    whole = flavors.Flavor(listed.domain, Multiverse(), listed.input_premetric, listed.output_premetric)
    assert "universes" in refusal("no-rule", compose, listed.at(1), whole.at(1))


def test_budgets_of_listed_universes_add_up_universe_by_universe():
    toy = flavors.Flavor(
        Domain("toy", datasets=("a", "b", "c", "d")),
        Multiverse((), (("a", "b"), ("c", "d"))),
        InputPremetric.table({("a", "b"): 1, ("c", "d"): 1}),
        OutputPremetric(),
    )
    both = total(toy.at(Budget(2, by_universe=(2, 0))), toy.at(Budget(3, by_universe=(1, 3))), toy.at(1))
    assert both.budget.by_universe == (4, 4)
    uneven = total(toy.at(Budget(2, by_universe=(2, 0))), toy.at(1))
    assert (uneven.budget.by_universe, uneven.budget.value) == ((3, 1), 3)


def test_a_retabulation_costs_nothing_and_is_covered():
    profile = retabulate(zcdp("2.63"), "Demographic Profile")
    assert profile == zcdp("2.63")
    assert profile.covers == ("Demographic Profile",)


def test_a_step_that_reads_invariants_is_post_processing_only_under_them():
    """TopDown's second step (section 2.5): free given its invariants, and not otherwise."""
    given = zcdp("2.63", invariants=[STATES, BLOCKS])
    assert post_process(given, [STATES, BLOCKS]) == given
    assert post_process(given, [Invariant("housing unit", by=("state",))]) == given
    assert post_process(given, [Invariant("person")]) == given
    assert "the number of housing units by block" in refusal("not-post-processing", post_process, zcdp(1), [BLOCKS])
    refusal("not-post-processing", post_process, given, [Invariant("person", by=("county",))])
    refusal("not-post-processing", post_process, zcdp(1, bounded=False), [Invariant("person")])


def test_a_standard_that_processing_can_raise_is_not_post_processed():
    register(Kind("test-raisable", "D_test", "e", "For a test.", immune=False))
    refusal("no-rule", post_process, flavors.flavor(OutputPremetric("test-raisable")).at(1))


def test_a_registered_standard_is_only_used_as_it_was_declared():
    register(Kind("test-silent", "D_s", "e", "For a test."))
    register(Kind("test-adding", "D_a", "e", "For a test.", composition="sum", metric=True))
    silent, adding = (flavors.flavor(OutputPremetric(name)).at(1) for name in ("test-silent", "test-adding"))
    refusal("no-rule", compose, silent, silent)
    assert total(adding, adding).budget.value == 2
    refusal("bad-block", register, Kind("test-adding", "D_a", "e", "Other."))


def test_units_change_as_proposition_2_4_15_says():
    household = InputPremetric(unit="household")
    wanted = change_unit(zcdp(1, within=IN_HOUSEHOLDS, invariants=[STATES]), household)
    assert wanted.specification.budget.value == 100
    assert change_unit(pure(1, within=IN_HOUSEHOLDS, invariants=[STATES]), household).specification.budget.value == 10
    back = change_unit(zcdp(1, "household"), InputPremetric(unit="person", stays_in=("household",)))
    assert back.specification.budget.value == 1
    assert "one person that moves" in refusal(
        "no-rule", change_unit, zcdp(1, "household"), InputPremetric(unit="person")
    )
    said = refusal("no-rule", change_unit, zcdp(1), household)
    assert "at most how many persons one household holds" in said
    free = refusal("no-rule", change_unit, flavors.zcdp("person", within=IN_HOUSEHOLDS).at(1), household)
    assert "a household can change its number of persons" in free


def test_a_respondent_behind_several_records_is_protected_less():
    overall = zcdp(published("thesis/table-3.4/overall/rho"))
    twice = per_respondent(overall, 2).specification
    rho, epsilon = (items()[f"thesis/section-3.4.4/{name}"].further for name in ("rho", "epsilon"))
    assert twice.budget.value == Fraction(rho)
    assert as_approximate(twice, "1e-10", "classical").budget.number == pytest.approx(float(epsilon), abs=5e-5)
    assert per_respondent(pure(1), 3).specification.budget.value == 3
    assert per_respondent(pure(1), 1).specification.budget.value == 1
    refusal("bad-block", per_respondent, pure(1), 0)
    refusal("no-rule", per_respondent, flavors.approximate("0.1").at(1), 2)


def test_invariants_may_be_published_where_they_are_constant():
    given = zcdp(1, invariants=[BLOCKS])
    assert may_publish_invariants(given, [Invariant("housing unit", by=("state",))])
    assert may_publish_invariants(given, [STATES]).verdict == "unknown"


def test_the_realised_budget_may_be_published_where_universes_are_disjoint():
    assert may_publish_budget(pure(1))
    assert may_publish_budget(flavors.pure(invariants=[STATES]).at(Budget(1, varies="by the invariants")))
    toy = Domain("toy", datasets=("a", "b", "c"))
    apart = flavors.Flavor(toy, Multiverse((), (("a", "b"), ("c",))), InputPremetric.table({}), OutputPremetric())
    assert may_publish_budget(apart.at(Budget(2, by_universe=(2, 1))))


def test_the_classical_conversion_is_the_one_of_the_tables_and_the_tight_one_is_smaller():
    overall = items()["thesis/table-3.4/overall/epsilon"]
    classical = as_approximate(zcdp("55.371"), "1e-10", "classical")
    assert classical.budget.number == pytest.approx(float(overall.further), abs=5e-5)
    assert "classical" in classical.budget.conversion
    tight = as_approximate(zcdp("55.371"), "1e-10")
    assert tight.budget.number < classical.budget.number
    assert "Canonne" in tight.budget.conversion
    refusal("no-rule", as_approximate, pure(1), "1e-10", "classical")


# -- what is published, and what is only assumed -----------------------------------------------------------------


def test_several_releases_together_publish_what_one_of_them_publishes_and_no_more():
    frame, margin = Invariant(name="the frame"), Invariant("person", by=("state",))
    survey = flavors.given_invariants(flavors.pure("person"), [frame], nearest=1).at(
        1, covers=("estimates",), facts=(("held_not_released", True),)
    )
    counts = flavors.given_invariants(flavors.pure("person"), [margin], nearest=1).at(1, covers=("counts",))
    assert held(compose(survey, survey).specification) == held(survey) == Held((), (frame, Invariant("person")))
    both = compose(survey, counts).specification
    assert held(both) == Held((margin,), (frame,))
    assert held(Specification.from_json(both.to_json())) == held(both)


def test_what_units_stay_in_is_not_published_when_it_becomes_an_invariant():
    stays = flavors.pure("person", stays_in=("household",)).at(1, covers=("counts",))
    staying = Invariant("person", by=("household",))
    assert held(stays) == Held((), (staying,))
    assert held(completed(stays)) == Held((), (staying,))
    assert held(per_respondent(stays, 2).specification).published == ()
