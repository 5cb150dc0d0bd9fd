"""Numbers of chapters 1 and 2, section 4.3 and appendix A of the thesis: prices of privacy, the five building blocks.

Propositions are checked by enumeration: on an example of their own, or on a dozen mechanisms over four listed
datasets. The tests check thousands.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from stirred.errors import StirredError
from stirred.lab.definitions import prices
from stirred.lab.definitions.multiverses import (
    along_components,
    as_pairs,
    as_premetric,
    sharpened,
    with_declared_invariants,
)
from stirred.lab.reproduce.catalogue import Forms
from stirred.lab.reproduce.examples import (
    NAMES,
    chain,
    divided,
    flavor_of,
    laws_a_delta_apart,
    pairs_of_laws,
    power_of_tests,
    spread_laws,
    worlds,
)
from stirred.loss.divergences import approximate, multiplicative, normalised_renyi, power_curve, total_variation
from stirred.spec import (
    Budget,
    FiniteMechanism,
    InputPremetric,
    Invariant,
    Multiverse,
    OutputPremetric,
    compose,
    flavors,
    may_publish_budget,
)
from stirred.spec.order.finite_flavors import comparability, realised_budgets
from stirred.spec.order.finite_mechanisms import divergence, randomised_response
from stirred.spec.order.implication import implies_by_table, witness

_SLACK = 1 + 1e-9
_HALVES = ("a", "b"), ("c", "d")
_OVERLAPPING = ("a", "b"), ("b", "c", "d")
_KEPT = math.log(100 / 99)
"""Epsilon of the example of section 1.2.2: e^-epsilon is 99/100."""


def linear_scale(epsilon: str) -> float:
    """e^epsilon, the budget on a linear scale."""
    return prices.linear_budget(Fraction(epsilon))


def budget_in_base(epsilon: str, base: str) -> float:
    """epsilon to another base than e."""
    return prices.in_base(Fraction(epsilon), Fraction(base))


def utility_is_bounded() -> bool:
    """Whether expected utilities with and without a person are within a factor e^epsilon (inequality 1.1)."""
    for p, q in pairs_of_laws():
        utility = np.arange(4.0)
        low, high = prices.expected_utility_bounds(float(q @ utility), multiplicative(p, q))
        if not low / _SLACK <= p @ utility <= high * _SLACK:
            return False
    return True


def linear_price_is_close(epsilon: str) -> bool:
    """Whether epsilon v is within a twentieth of (e^epsilon - 1) v."""
    linear, exact = (prices.price(100, Fraction(epsilon), form) for form in ("linear", "exact"))
    return math.isclose(linear, exact, rel_tol=0.05)


def gain_of_silence() -> float:
    """What somebody gains by not responding, at least."""
    game = _dilemma()
    return min(game.gain_of_silence(silent) for silent in range(game.people))


def payoff_if_all(respond: bool) -> float:
    """What each gets if all respond, or if nobody does."""
    game = _dilemma()
    return game.payoff(True, 0) if respond else game.payoff(False, game.people - 1)


def silence_is_best() -> bool:
    """Whether not responding is better whatever others do."""
    return _dilemma().silence_dominates


def gain_of_silence_with_privacy(burden: str) -> float:
    """The gain of silence where the cost in privacy shrinks with epsilon, and responding takes an effort."""
    return prices.gain_of_silence_under_privacy(100, 50, _KEPT, Fraction(burden))


# -- errata --------------------------------------------------------------------------------------------------


def silence_forms() -> Forms:
    """The gain of silence if all others respond."""
    return Forms("utility 100, cost 50, e^-epsilon = 0.99", 50 - 100 * math.exp(-_KEPT), _dilemma().gain_of_silence(0))


def silence_under_privacy_forms() -> Forms:
    """The gain of silence where the cost in privacy shrinks with epsilon."""
    return Forms(
        "utility 100, privacy 50, e^-epsilon = 0.99",
        (50 - 100) * math.exp(-_KEPT),
        prices.gain_of_silence_under_privacy(100, 50, _KEPT),
    )


def burden_forms() -> Forms:
    """The burden above which the dilemma holds: what silence loses without one."""
    return Forms(
        "utility 100, privacy 50, e^-epsilon = 0.99",
        math.exp(-_KEPT) * (100 - 50),
        -prices.gain_of_silence_under_privacy(100, 50, _KEPT),
    )


def few_people_forms() -> Forms:
    """Whether silence is best whatever others do, among 69 people."""
    return Forms("69 people", True, _dilemma(69).silence_dominates)


# -- helpers -------------------------------------------------------------------------------------------------


def _dilemma(people: int = 1000) -> prices.ResponseGame:
    return prices.ResponseGame(people, _KEPT, 100, 50)


# -- chapter 2, the blocks -----------------------------------------------------------------------------------


def group_factor(records: int) -> Fraction:
    """By what epsilon is multiplied if several records change."""
    return Fraction(flavors.pure("person").at(1).budget_at(records))


def infinite_distances_are_not_compared() -> bool:
    """Whether, at budget 0, datasets at a finite distance may not be told apart, and at an infinite one they may."""
    apart = flavor_of({("a", "b"): 1, ("c", "d"): 1})  # all others are infinitely far
    pairs, each = dict(zip(NAMES, "1122", strict=True)), dict(zip(NAMES, NAMES, strict=True))
    told = [FiniteMechanism.releases(groups, str).satisfies(apart.at(0)).verdict for groups in (pairs, each)]
    return told == ["yes", "no"]


def proposition_2_4_11() -> bool:
    """Whether margins cost nothing to publish in their universes, and have no finite budget in larger ones."""
    files = _tables_of_two()
    margins = [Invariant("record", by=(name,)) for name in ("row", "column")]
    told = FiniteMechanism.releases(files, lambda file: [sorted(margin.value(file).items()) for margin in margins])
    inside = told.loss(flavors.pure("record", invariants=margins), files).number
    return inside == 0 and math.isinf(told.loss(flavors.pure("record"), files).number)


def proposition_2_4_12() -> bool:
    """Whether under a metric a mechanism that varies in a universe has a loss above 0 there."""
    return all(mechanism.loss(flavor).number > 0 for flavor, mechanism in worlds())


def proposition_2_4_13() -> bool:
    """Whether finer universes have a specification that is implied, and no larger loss."""
    for flavor, mechanism in worlds():
        coarse, fine = divided(flavor, NAMES), divided(flavor, *_HALVES)
        if implies_by_table(coarse.at(1), fine.at(1)).verdict != "yes":
            return False
        if mechanism.loss(fine).number > mechanism.loss(coarse).number * _SLACK:
            return False
    return True


def single_datasets_are_promised_nothing() -> bool:
    """Whether any mechanism satisfies any budget if every universe holds one dataset."""
    alone = flavor_of(None, *((name,) for name in NAMES))
    told = FiniteMechanism.releases({name: name for name in NAMES}, str)
    return told.satisfies(alone.at(0)).verdict == "yes"


def proposition_2_4_15() -> bool:
    """Whether l d <= d' <= u d gives budgets epsilon / l and u epsilon."""
    lower, upper = Fraction(1, 2), Fraction(3)
    for flavor, _ in worlds():
        table = {(x, y): d for x, y, d in flavor.input_premetric.distances}
        scaled = {pair: d * (lower if number % 2 else upper) for number, (pair, d) in enumerate(table.items())}
        other = replace(flavor, input_premetric=InputPremetric.table(scaled))
        power = flavor.output_premetric.kind.power
        forth = implies_by_table(flavor.at(1), other.at(1 / lower**power))
        back = implies_by_table(other.at(1), flavor.at(upper**power))
        if forth.verdict != "yes" or back.verdict != "yes":
            return False
    return True


def smaller_distances_are_stronger() -> bool:
    """Whether a specification with smaller distances implies one with larger distances at the same budget."""
    for flavor, _ in worlds():
        larger = {(x, y): 2 * d for x, y, d in flavor.input_premetric.distances}
        other = replace(flavor, input_premetric=InputPremetric.table(larger))
        if implies_by_table(flavor.at(1), other.at(1)).verdict != "yes":
            return False
    return True


def delta_zero_is_pure() -> bool:
    """Whether D_Mult^delta at delta = 0 is D_Mult."""
    return all(math.isclose(approximate(p, q, 0), multiplicative(p, q)) for p, q in pairs_of_laws())


def approximate_is_no_metric() -> bool:
    """Whether D_Mult^delta can break the triangle inequality."""
    first, second, third = laws_a_delta_apart()
    return approximate(first, second, 0.1) == approximate(second, third, 0.1) == 0 < approximate(first, third, 0.1)


def concentrated_is_a_metric() -> bool:
    """Whether D_NoR is symmetric and keeps the triangle inequality."""
    laws = spread_laws(6, 4)
    return all(
        math.isclose(normalised_renyi(p, q), normalised_renyi(q, p), rel_tol=1e-6)
        and normalised_renyi(p, r) <= (normalised_renyi(p, q) + normalised_renyi(q, r)) * (1 + 1e-6)
        for p, q, r in itertools.permutations(laws, 3)
    )


def concentrated_below_pure() -> bool:
    """Whether D_NoR is at most D_Mult divided by the root of two."""
    return all(normalised_renyi(p, q) <= multiplicative(p, q) / math.sqrt(2) * _SLACK for p, q in pairs_of_laws())


def disjoint_supports_are_infinitely_far() -> bool:
    """Whether laws of total variation 1 are infinitely far apart in D_Mult and D_NoR."""
    p, q = [1.0, 0.0], [0.0, 1.0]
    return total_variation(p, q) == 1 and math.isinf(multiplicative(p, q)) and math.isinf(normalised_renyi(p, q))


# -- section 2.5 ---------------------------------------------------------------------------------------------


def composition_rule(output: str) -> bool:
    """Whether losses of independent releases add up, squared for D_NoR, and specifications compose so."""
    premetric = OutputPremetric(output)
    total = compose(*(replace(flavors.pure(), output_premetric=premetric).at(one) for one in (1, 2))).specification
    if total.budget.number != 3:  # epsilon in the one case, rho in the other
        return False
    for p, q in pairs_of_laws():
        for other in pairs_of_laws(2):
            both = divergence(premetric, *(np.outer(x, y).ravel() for x, y in zip((p, q), other, strict=True)))
            parts = divergence(premetric, p, q), divergence(premetric, *other)
            together = sum(parts) if premetric.kind.pure else math.hypot(*parts)
            if both > together * (1 + 1e-7):
                return False
    return True


def processing_does_not_add(output: str) -> bool:
    """Whether no kernel applied to the output raises the loss."""
    premetric = OutputPremetric(output)
    kernels = spread_laws(40, 3, start=7).reshape(10, 4, 3)
    return all(
        divergence(premetric, p @ kernel, q @ kernel) <= divergence(premetric, p, q) * (1 + 1e-7)
        for p, q in pairs_of_laws()
        for kernel in kernels
    )


def theorem_2_5_5(rising: bool) -> bool:
    """Whether a functional of Tr that rises never gains by processing; and whether one that falls somewhere does."""
    functional = _area if rising else _falling
    kernels = spread_laws(160, 3, start=7).reshape(40, 4, 3)
    gained = [
        functional(p @ kernel, q @ kernel) > functional(p, q) + 1e-9 for p, q in pairs_of_laws() for kernel in kernels
    ]
    return any(gained) != rising


# -- section 4.3 ---------------------------------------------------------------------------------------------


def loss_of_a_constant() -> float:
    """The loss of a mechanism that publishes the same whatever the data."""
    return FiniteMechanism.releases(dict.fromkeys(NAMES, "the data"), str).loss(flavor_of()).number


def delta_lowers_the_distance() -> bool:
    """Whether delta never raises D_Mult and lowers it somewhere."""
    changes = [approximate(p, q, 0.05) - multiplicative(p, q) for p, q in pairs_of_laws()]
    return max(changes) <= 1e-12 and min(changes) < -0.01


def invariants_lower_the_loss() -> bool:
    """Whether finer universes never raise a loss and lower it somewhere."""
    changes = [
        mechanism.loss(divided(flavor, *_HALVES)).number - mechanism.loss(flavor).number
        for flavor, mechanism in worlds()
    ]
    return max(changes) <= 1e-9 and min(changes) < -0.01


def coarser_events_lower_the_loss() -> bool:
    """Whether seeing fewer events never raises a loss and lowers it somewhere."""
    changes = []
    for flavor, mechanism in worlds():
        first, second, *rest = mechanism.outputs
        seen = mechanism.loss(flavor, partition=[(first, second), *((one,) for one in rest)]).number
        changes.append(seen - mechanism.loss(flavor).number)
    return max(changes) <= 1e-9 and min(changes) < -0.01


# -- errata --------------------------------------------------------------------------------------------------


def trade_off_forms() -> Forms:
    """Tr(P, Q) at one level: the smallest type II error, and the largest power."""
    power = float(power_of_tests([0.75, 0.25], [0.25, 0.75]).power(0.25))
    return Forms("randomised response 3/4 against 1/4, level 0.25", 1 - power, power)


def composition_map_forms() -> Forms:
    """The loss of (T1, T2), and of (T, T) as the map is printed."""
    first, second = randomised_response("1/4"), FiniteMechanism.of({"0": {"x": 1}, "1": {"x": 1}})
    files, flavor = {"0": "0", "1": "1"}, flavors.local()
    return Forms(
        "T1 randomised response with epsilon ln 3, T2 constant",
        first.and_then(first).loss(flavor, files).number,
        first.and_then(second).loss(flavor, files).number,
    )


def approximate_composition_forms() -> Forms:
    """D_Mult^delta of two releases of loss 0 each, at the same delta."""
    first, second, _ = laws_a_delta_apart()
    both = approximate(np.outer(first, first).ravel(), np.outer(second, second).ravel(), 0.1)
    return Forms("two releases at distance 0, delta = 0.1: distance of both", 0.0, both)


def delta_strictly_forms() -> Forms:
    """Whether delta = 0.1 lowers the distance of two laws that are infinitely far apart."""
    first, _, third = laws_a_delta_apart()
    return Forms(
        "(1, 0) and (0.8, 0.2), delta = 0.1: smaller than D_Mult",
        True,
        approximate(first, third, 0.1) < multiplicative(first, third),
    )


def shattering_forms() -> Forms:
    """Whether one universe {a, b, c} is a refinement of {a, b} and {c}, by the printed and the correct definition."""
    mine, other = [{"a", "b", "c"}], [{"a", "b"}, {"c"}]
    printed, correct = (all(any(one <= two for two in within) for one in mine) for within in (mine, other))
    return Forms("{a, b, c} refines {a, b} and {c}", printed, correct)


# -- helpers -------------------------------------------------------------------------------------------------


def _area(p: Any, q: Any) -> float:
    """The area under Tr(P, Q): it rises with Tr."""
    levels, powers = power_curve(p, q).T
    return float(np.sum(np.diff(levels) * (powers[1:] + powers[:-1]) / 2))


def _falling(p: Any, q: Any) -> float:
    """The power at level 0.1 less that at level 0.5: it falls where only the second rises."""
    curve = power_of_tests(p, q)
    return float(curve.power(0.1)) - float(curve.power(0.5))


def _tables_of_two() -> dict[str, list[dict[str, str]]]:
    """All two-by-two contingency tables of two records (Example 2.4.10)."""
    cells = [{"row": row, "column": column} for row in "01" for column in "01"]
    return {str(n): list(file) for n, file in enumerate(itertools.combinations_with_replacement(cells, 2))}


def trivial_events() -> float:
    """The loss of a mechanism that publishes the data, if no event but the sure one is looked at."""
    told = FiniteMechanism.releases({name: name for name in NAMES}, str)
    return told.loss(flavor_of(), partition=[told.outputs]).number


def proposition_a_2_1() -> bool:
    """Whether a deterministic release is free if it is a function of [x], and has no finite budget otherwise."""
    parts = flavor_of({("a", "b"): 1, ("c", "d"): 1})
    for values in itertools.product("01", repeat=4):
        told = FiniteMechanism.releases(dict(zip(NAMES, values, strict=True)), str)
        by_part = all(
            len({values[NAMES.index(name)] for name in members}) == 1 for members in comparability(parts).components
        )
        if told.loss(parts).number != (0 if by_part else math.inf):
            return False
    return True


def corollary_a_2_2(overlapping: bool) -> bool:
    """Whether the realised budgets of a dataset's universes may be published."""
    flavor = flavor_of(None, *(_OVERLAPPING if overlapping else _HALVES))
    specification = flavor.at(Budget(2, by_universe=(1, 2)))
    told = FiniteMechanism.releases(realised_budgets(specification).of_universes, sorted).loss(flavor).number
    assert (told == 0) == (may_publish_budget(specification).verdict == "yes")
    return told == 0


def budgets_of_the_component_are_free() -> bool:
    """Whether b(x), the budgets of all universes around [x], costs nothing to publish even where they overlap."""
    flavor = flavor_of(None, *_OVERLAPPING)
    specification = flavor.at(Budget(2, by_universe=(1, 2)))
    return FiniteMechanism.releases(realised_budgets(specification).of_components, sorted).loss(flavor).number == 0


def translation_keeps_the_mechanisms(which: str) -> bool:
    """Whether a specification rewritten by a proposition of appendix A has the same mechanisms."""
    translate = {
        "A.3.1": as_premetric,
        "A.3.2": as_pairs,
        "A.3.3": with_declared_invariants,
        "A.4.2": along_components,
    }[which]
    for flavor, _ in worlds():
        halves = divided(flavor, ("a", "b", "c"), ("b", "c", "d"))
        one = halves.at(1) if which == "A.3.1" else halves.at(Budget(2, by_universe=(1, 2)))
        other = translate(one)
        if implies_by_table(one, other).verdict != "yes" or implies_by_table(other, one).verdict != "yes":
            return False
    return True


def implicit_constraint() -> bool:
    """Whether two universes with a common dataset bound datasets that share none (inequality A.1)."""
    pairs = flavor_of({("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 2}, "ab", "bc", names="abc")
    together = divided(pairs, "ac")
    return implies_by_table(pairs.at(Budget(2, by_universe=(1, 2))), together.at(2)).verdict == "yes"


def unordered_is_stronger() -> bool:
    """Whether a guarantee for files without order implies the one for ordered files, and not conversely."""
    forth = flavors.pure().at(1).implies(flavors.pure(ordered=True).at(1)).verdict
    answers = randomised_response("1/4", respondents=2)
    files = {name: name for name in answers.datasets}
    ordered, unordered = (answers.loss(one, files).number for one in (flavors.local(), flavors.pure()))
    return forth == "yes" and math.isclose(ordered, math.log(3)) and math.isinf(unordered)


def paths_of_neighbours(bounded: bool, ordered: bool) -> bool:
    """Whether sharpened distances are shortest paths between neighbours, for all files of up to three answers."""
    files = ["".join(file) for size in range(4) for file in itertools.product("01", repeat=size)]
    near = InputPremetric.neighbours("record", bounded=bounded, ordered=ordered)
    paths = InputPremetric.related({file: file for file in files}, lambda x, y: near.distance(x, y) in (0, 1)).sharpen()
    direct = near.sharpen()
    return all(
        direct.distance(x, y) == paths.distance(x, y)
        for x, y in itertools.permutations(files, 2)
        # Files that are the same up to their order are at distance 0 and joined by the relation.
        if direct.distance(x, y) != 0
    )


def neighbours_say_as_much_as_paths(output: str, delta: str = "") -> bool:
    """Whether d_r and its sharpening have the same mechanisms."""
    one = chain(output=OutputPremetric(output, Fraction(delta)) if delta else OutputPremetric(output)).at(1)
    try:
        paths = sharpened(one)
    except StirredError:
        far = replace(one, input_premetric=one.input_premetric.sharpen())
        return implies_by_table(one, far).verdict == "yes"
    return implies_by_table(one, paths).verdict == implies_by_table(paths, one).verdict == "yes"


def bounded_fixes_the_size() -> bool:
    """Whether bounded distances have the number of records as an invariant."""
    return any(one.counts == "record" and not one.by for one in InputPremetric(unit="record").fixes())


def extraneous_noise(output: str) -> bool:
    """Whether independent noise beside the output changes no divergence."""
    premetric, noise = OutputPremetric(output), np.array([0.2, 0.3, 0.5])
    return all(
        math.isclose(
            divergence(premetric, np.outer(p, noise).ravel(), np.outer(q, noise).ravel()),
            divergence(premetric, p, q),
            rel_tol=1e-6,
        )
        for p, q in pairs_of_laws()
    )


def blackwell() -> bool:
    """Whether processing lowers the largest power of tests at every level (the direction that kernels give)."""
    kernels = spread_laws(40, 3, start=7).reshape(10, 4, 3)
    levels = np.linspace(0, 1, 21)
    return all(
        np.all(
            power_of_tests(p @ kernel, q @ kernel).power(levels)
            <= np.asarray(power_of_tests(p, q).power(levels)) + 1e-12
        )
        for p, q in pairs_of_laws()
        for kernel in kernels
    )


# -- errata --------------------------------------------------------------------------------------------------


def condition_ii_forms() -> Forms:
    """Whether realised budgets are free to publish where no comparable pair lies in two universes."""
    free = may_publish_budget(chain("ab", "bc").at(Budget(2, by_universe=(1, 2)))).verdict
    return Forms("universes {a, b} and {b, c} with budgets 1 and 2: b' costs nothing", "yes", free)


def pairs_of_components_forms() -> Forms:
    """Whether a specification implies the one on all pairs {x, x'} with x' in [x]."""
    one = flavor_of({("1", "2"): 1, ("2", "3"): 1, ("1", "3"): "1/2"}, "12", "23", names="123", symmetric=False).at(1)
    pairs = [pair for part in comparability(one).components for pair in itertools.combinations(part, 2)]
    listed = replace(one, multiverse=Multiverse((), tuple(pairs)))
    assert witness(one, listed) is not None
    return Forms("universes {1, 2} and {2, 3}: the pairs {1, 3} too", "yes", implies_by_table(one, listed).verdict)


def pair_universes_forms() -> Forms:
    """The universes of Proposition A.3.2 as printed, and as its proof has them."""
    one = chain("ab", "bc").at(1)
    universes = [set(universe) for universe in one.multiverse.universes]
    printed = {tuple(sorted(x & y)) for x in universes for y in universes if x & y}
    correct = set(as_pairs(one).multiverse.universes)
    return Forms("universes {a, b} and {b, c}", _listed(printed), _listed(correct))


# -- helpers -------------------------------------------------------------------------------------------------


def _listed(universes: set[tuple[str, ...]]) -> str:
    return " ".join("{" + ", ".join(one) + "}" for one in sorted(universes))
