"""Statements of appendix A of the thesis, by enumeration over listed datasets."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from stirred.errors import StirredError
from stirred.lab.definitions.multiverses import (
    along_components,
    as_pairs,
    as_premetric,
    sharpened,
    with_declared_invariants,
)
from stirred.reproduce.computations import Forms, computation
from stirred.reproduce.examples import NAMES, flavor_of, one_apart, pairs_of_laws, power_of_tests, spread_laws, worlds
from stirred.spec import (
    Budget,
    Domain,
    FiniteMechanism,
    Flavor,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    Specification,
    flavors,
    may_publish_budget,
)
from stirred.spec.order.finite_mechanisms import comparability, divergence, randomised_response, realised_budgets
from stirred.spec.order.implication import implies_by_table, witness


@computation
def trivial_events() -> float:
    """The loss of a mechanism that publishes the data, if no event but the sure one is looked at."""
    told = FiniteMechanism.releases({name: name for name in NAMES}, str)
    return told.loss(flavor_of(one_apart(), OutputPremetric()), partition=[told.outputs]).number


@computation
def proposition_a_2_1() -> bool:
    """Whether a deterministic release is free if it is a function of [x], and has no finite budget otherwise."""
    parts = flavor_of({("a", "b"): 1, ("c", "d"): 1}, OutputPremetric())
    for values in itertools.product("01", repeat=4):
        told = FiniteMechanism.releases(dict(zip(NAMES, values, strict=True)), str)
        by_part = all(
            len({values[NAMES.index(name)] for name in members}) == 1 for members in comparability(parts).components
        )
        if told.loss(parts).number != (0 if by_part else math.inf):
            return False
    return True


@computation
def corollary_a_2_2(overlapping: bool) -> bool:
    """Whether the realised budgets of a dataset's universes may be published."""
    universes = (("a", "b"), ("b", "c", "d")) if overlapping else (("a", "b"), ("c", "d"))
    flavor = replace(flavor_of(one_apart(), OutputPremetric()), multiverse=Multiverse((), universes))
    specification = flavor.at(Budget(2, by_universe=(1, 2)))
    told = FiniteMechanism.releases(realised_budgets(specification).of_universes, sorted).loss(flavor).number
    assert (told == 0) == (may_publish_budget(specification).verdict == "yes")
    return told == 0


@computation
def budgets_of_the_component_are_free() -> bool:
    """Whether b(x), the budgets of all universes around [x], costs nothing to publish even where they overlap."""
    flavor = replace(
        flavor_of(one_apart(), OutputPremetric()), multiverse=Multiverse((), (("a", "b"), ("b", "c", "d")))
    )
    specification = flavor.at(Budget(2, by_universe=(1, 2)))
    return FiniteMechanism.releases(realised_budgets(specification).of_components, sorted).loss(flavor).number == 0


@computation
def translation_keeps_the_mechanisms(which: str) -> bool:
    """Whether a specification rewritten by a proposition of appendix A has the same mechanisms."""
    translate = {
        "A.3.1": as_premetric,
        "A.3.2": as_pairs,
        "A.3.3": with_declared_invariants,
        "A.4.2": along_components,
    }[which]
    for flavor, _ in worlds():
        divided = replace(flavor, multiverse=Multiverse((), (("a", "b", "c"), ("b", "c", "d"))))
        one = divided.at(1) if which == "A.3.1" else divided.at(Budget(2, by_universe=(1, 2)))
        other = translate(one)
        if implies_by_table(one, other).verdict != "yes" or implies_by_table(other, one).verdict != "yes":
            return False
    return True


@computation
def implicit_constraint() -> bool:
    """Whether two universes with a common dataset bound datasets that share none (inequality A.1)."""
    pairs = replace(
        flavor_of({("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 2}, OutputPremetric(), ("a", "b", "c"), symmetric=True),
        multiverse=Multiverse((), (("a", "b"), ("b", "c"))),
    )
    together = replace(pairs, multiverse=Multiverse((), (("a", "c"),)))
    return implies_by_table(pairs.at(Budget(2, by_universe=(1, 2))), together.at(2)).verdict == "yes"


@computation
def unordered_is_stronger() -> bool:
    """Whether a guarantee for files without order implies the one for ordered files, and not conversely."""
    forth = flavors.pure().at(1).implies(flavors.pure(ordered=True).at(1)).verdict
    answers = randomised_response("1/4", respondents=2)
    files = {name: name for name in answers.datasets}
    ordered, unordered = (answers.loss(one, files).number for one in (flavors.local(), flavors.pure()))
    return forth == "yes" and math.isclose(ordered, math.log(3)) and math.isinf(unordered)


@computation
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


@computation
def neighbours_say_as_much_as_paths(output: str, delta: str = "") -> bool:
    """Whether d_r and its sharpening have the same mechanisms."""
    premetric = OutputPremetric(output, Fraction(delta)) if delta else OutputPremetric(output)
    chain = flavor_of({("a", "b"): 1, ("b", "c"): 1}, premetric, ("a", "b", "c"), symmetric=True).at(1)
    try:
        paths = sharpened(chain)
    except StirredError:
        far = replace(chain, input_premetric=chain.input_premetric.sharpen())
        return implies_by_table(chain, far).verdict == "yes"
    return implies_by_table(chain, paths).verdict == implies_by_table(paths, chain).verdict == "yes"


@computation
def bounded_fixes_the_size() -> bool:
    """Whether bounded distances have the number of records as an invariant."""
    return any(one.counts == "record" and not one.by for one in InputPremetric(unit="record").fixes())


@computation
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


@computation
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


@computation
def condition_ii_forms() -> Forms:
    """Whether realised budgets are free to publish where no comparable pair lies in two universes."""
    chain = replace(
        flavor_of({("a", "b"): 1, ("b", "c"): 1}, OutputPremetric(), ("a", "b", "c"), symmetric=True),
        multiverse=Multiverse((), (("a", "b"), ("b", "c"))),
    )
    free = may_publish_budget(chain.at(Budget(2, by_universe=(1, 2)))).verdict
    return Forms("universes {a, b} and {b, c} with budgets 1 and 2: b' costs nothing", "yes", free)


@computation
def pairs_of_components_forms() -> Forms:
    """Whether a specification implies the one on all pairs {x, x'} with x' in [x]."""
    chain = _chain()
    pairs = tuple(pair for part in comparability(chain).components for pair in itertools.combinations(part, 2))
    listed = replace(chain, multiverse=Multiverse((), pairs))
    assert witness(chain, listed) is not None
    return Forms("universes {1, 2} and {2, 3}: the pairs {1, 3} too", "yes", implies_by_table(chain, listed).verdict)


@computation
def pair_universes_forms() -> Forms:
    """The universes of Proposition A.3.2 as printed, and as its proof has them."""
    one = replace(
        flavor_of({("a", "b"): 1, ("b", "c"): 1}, OutputPremetric(), ("a", "b", "c")),
        multiverse=Multiverse((), (("a", "b"), ("b", "c"))),
    ).at(1)
    universes = [set(universe) for universe in one.multiverse.universes]
    printed = {tuple(sorted(x & y)) for x in universes for y in universes if x & y}
    correct = set(as_pairs(one).multiverse.universes)
    return Forms("universes {a, b} and {b, c}", _listed(printed), _listed(correct))


# -- helpers -------------------------------------------------------------------------------------------------


def _chain() -> Specification:
    return Flavor(
        Domain("three", datasets=("1", "2", "3")),
        Multiverse((), (("1", "2"), ("2", "3"))),
        InputPremetric.table({("1", "2"): 1, ("2", "3"): 1, ("1", "3"): "1/2"}),
        OutputPremetric(),
    ).at(1)


def _listed(universes: set[tuple[str, ...]]) -> str:
    return " ".join("{" + ", ".join(one) + "}" for one in sorted(universes))
