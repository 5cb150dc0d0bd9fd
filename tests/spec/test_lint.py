"""Every rule speaks where it should, names what it saw, and is silent beside it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from repeats import ALL_CASES
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve, pure_power
from stirred.spec import (
    Budget,
    Domain,
    Flavor,
    InputPremetric,
    Invariant,
    Kind,
    Multiverse,
    OutputPremetric,
    Specification,
    flavors,
    per_respondent,
)
from stirred.spec.kinds import KINDS, register
from stirred.spec.linting.findings import lint, rules
from stirred.spec.specification import NOT_FOR_RELEASE
from stirred.swap.law import theorem

Case = Specification | tuple[Specification, Specification]
"""A specification, or one and an earlier one."""

RAW = Domain("files of persons", starts="the answers as given", free=True)
TIDY = flavors.pure("person", bounded=False, domain=RAW).at(1)
"""Nothing to say about it."""
PLAIN = flavors.pure("person").at(1)
BLOCKS = Invariant("person", by=("block",))
STATES = Invariant("person", by=("state",))


def with_facts(specification: Specification, **facts: Any) -> Specification:
    return replace(specification, facts=tuple(facts.items()))


def domain(**fields: Any) -> Specification:
    return replace(TIDY, domain=replace(RAW, **fields))


def premetric(specification: Specification = TIDY, **fields: Any) -> Specification:
    return replace(specification, input_premetric=replace(specification.input_premetric, **fields), nearest=None)


def swap(largest: int, rate: str, claimed: float | None = None, by: tuple[str, ...] = ("state",), **more: Any) -> Any:
    """A swap of households by county, as its engine states it."""
    counted = [Invariant("household", by=(*by, column)) for column in ("county", "tenure")]
    blocks = flavors.pure("household", domain=replace(RAW, nested=(("block", "state"),)), invariants=counted)
    epsilon = theorem.epsilon(largest, Fraction(rate)) if claimed is None else claimed
    stated = {"mechanism": "permutation-swapping", "rate": rate, "largest_stratum": largest, "match": ", ".join(by)}
    stated |= {"parameters_from": "public", "row_order": "sorted", "nothing_can_change": not largest} | more
    return with_facts(replace(blocks, nearest=2 if largest else None).at(epsilon), **stated)


def finite(universes: Any, distances: Any, budget: Any = 1) -> Specification:
    named = Domain("a few files", datasets=("a", "b", "c", "d"))
    blocks = Flavor(named, Multiverse(universes=universes), InputPremetric.table(distances), OutputPremetric())
    return blocks.at(budget)


def pairs(*names: str) -> dict[tuple[str, str], int]:
    return {pair: 1 for one, other in names for pair in ((one, other), (other, one))}


def kind(name: str, **fields: Any) -> Specification:
    known = {"composition": "sum"} | fields
    if name not in KINDS:
        register(Kind(name, f"W_{name}", "w", "How far mass must be moved.", **known))
    return Flavor(RAW, Multiverse(), TIDY.input_premetric, OutputPremetric(name)).at(1)


@pytest.fixture(autouse=True, scope="module")
def forget_kinds_of_these_tests():
    yield
    for name in [name for name in KINDS if name.startswith("lint-")]:
        del KINDS[name]


def held(*invariants: Invariant, **more: Any) -> Flavor:
    return flavors.pure("person", bounded=False, domain=RAW, invariants=invariants, **more)


def cases() -> dict[str, tuple[list[Case], list[Case]]]:
    """For each rule: where it speaks, and where it does not."""
    loose = flavors.approximate("1e-4", bounded=False, domain=RAW)
    apart = pairs("ab", "cd")
    neighbours = replace(TIDY, input_premetric=InputPremetric.neighbours("person", bounded=False), nearest=None)
    uneven = Budget(3, by_universe=(1, 3))
    gaussian = Flavor(
        RAW, Multiverse(), InputPremetric.neighbours("person", bounded=False), OutputPremetric("trade-off")
    )
    return {
        "domain-restricted": ([domain(restricted_by=("clipping of incomes at 500,000",))], [domain()]),
        "late-start": (
            [
                PLAIN,
                domain(starts="the Census Edited File, after editing and imputation"),
                (replace(domain(starts="the scans"), budget=Budget("0.5")), domain(starts="the questionnaires")),
            ],
            [
                domain(starts="the answers, before editing"),
                domain(starts="the unedited answers"),
                (replace(domain(starts="the scans"), budget=Budget(2)), domain(starts="the questionnaires")),
                finite((), pairs("ab")),
            ],
        ),
        "nothing-can-change": (
            [
                swap(0, "1/20"),
                with_facts(TIDY, nothing_can_change=True),
                replace(TIDY, nearest=math.inf),
                finite((("a",), ("b",)), pairs("ab")),
            ],
            [swap(10, "1/20"), TIDY, finite((("a", "b"),), pairs("ab"))],
        ),
        "invariants-many": ([held(BLOCKS).at(1), held(BLOCKS, STATES).at(1)], [TIDY]),
        "hidden-invariant": (
            [PLAIN, finite((), apart), finite((("a", "b", "c"),), apart)],
            [TIDY, swap(10, "1/20"), finite((("a", "b"), ("c", "d")), apart), finite((), pairs("ab", "bc", "cd"))],
        ),
        "neighbours-in-empty-universes": (
            [
                replace(neighbours, multiverse=Multiverse((BLOCKS,)), nearest=None),
                replace(neighbours, multiverse=Multiverse((BLOCKS,)), nearest=2),
                flavors.blowfish("streets", (BLOCKS,), domain=RAW).at(1),
                finite((("a", "c"),), apart),
            ],
            [
                neighbours,
                replace(neighbours, multiverse=Multiverse((BLOCKS,)), nearest=1),
                held(BLOCKS).at(1),
                finite((("a", "b"),), apart),
            ],
        ),
        "uniques": (
            [with_facts(TIDY, uniques=3, records=1000), with_facts(TIDY, uniques=1)],
            [with_facts(TIDY, uniques=0)],
        ),
        "more-invariants": (
            [
                (held(BLOCKS).at("0.5"), TIDY),
                (held(BLOCKS).at("0.5"), held(STATES).at(1)),
                (finite((("a", "b"),), pairs("ab", "bc")), finite((("a", "b", "c"),), pairs("ab", "bc"), 2)),
                (PLAIN.flavor.at("0.5"), replace(TIDY, domain=PLAIN.domain)),
            ],
            [
                (held(BLOCKS).at(2), TIDY),
                (held().at("0.5"), held(STATES).at(1)),
                (held(BLOCKS).at("0.5"), held(BLOCKS).at(1)),
                (finite((("a", "b"),), pairs("ab"), 1), finite((("a", "b"),), pairs("ab"), 2)),
            ],
        ),
        "finer-strata": (
            [(swap(4549, "1/20", by=("block", "size")), swap(13_475_623, "1/2"))],
            [
                (swap(4549, "1/20"), swap(13_475_623, "1/2")),
                (swap(13_475_623, "1/2"), swap(4549, "1/20", by=("block",))),
            ],
        ),
        "finer-unit": (
            [
                flavors.event_level().at(1),
                flavors.edge_level().at(1),
                premetric(unit="transaction"),
                premetric(unit="user-day", within=(("user", 20),)),
                premetric(unit="device", within=(("user", 3),)),
                (premetric(replace(TIDY, budget=Budget("0.5"))), premetric(unit="household")),
            ],
            [
                TIDY,
                flavors.user_level().at(1),
                flavors.node_level().at(1),
                premetric(within=(("household", 10),)),
                (premetric(replace(TIDY, budget=Budget(2))), premetric(unit="household")),
            ],
        ),
        "household-not-covered": (
            [
                premetric(within=(("household", 99_999),)),
                with_facts(TIDY, households=True),
                held(Invariant("housing unit", by=("block",))).at(1),
            ],
            [TIDY, premetric(unit="household"), with_facts(TIDY, households=False)],
        ),
        "units-after-imputation": (
            [with_facts(TIDY, imputed=True), with_facts(TIDY, records_per_respondent=2)],
            [
                TIDY,
                with_facts(TIDY, imputed=False, records_per_respondent=1),
                per_respondent(with_facts(TIDY, records_per_respondent=2), 2).specification,
            ],
        ),
        "nearest-not-one": ([replace(TIDY, nearest=2)], [TIDY, replace(TIDY, nearest=math.inf)]),
        "row-order-published": (
            [with_facts(TIDY, row_order="as in the input"), premetric(ordered=True)],
            [
                with_facts(TIDY, row_order="sorted"),
                with_facts(premetric(ordered=True), order_means="the day of the interview"),
                flavors.local().at(1),
                flavors.metric("metres on the map", domain=RAW).at(1),
            ],
        ),
        "weaker-distance": (
            [
                (premetric(replace(TIDY, budget=Budget("0.5")), **weaker), TIDY)
                for weaker in ({"ordered": True}, {"bounded": True}, {"scale": Fraction(2)})
            ]
            + [
                (replace(held(BLOCKS).at("0.5"), input_premetric=neighbours.input_premetric), held(BLOCKS).at(1)),
            ],
            [
                (premetric(replace(TIDY, budget=Budget(2)), bounded=True), TIDY),
                (replace(neighbours, budget=Budget("0.5")), TIDY),
                (replace(TIDY, budget=Budget("0.5")), premetric(ordered=True)),
            ],
        ),
        "weaker-standard": (
            [
                loose.at(1),
                with_facts(flavors.approximate("1e-6", domain=RAW).at(1), records=1_000_000),
                Flavor(RAW, Multiverse(), TIDY.input_premetric, OutputPremetric("total-variation")).at("0.1"),
                (flavors.zcdp("person", bounded=False, domain=RAW).at("0.5"), TIDY),
                (flavors.approximate("1e-9", domain=RAW).at("0.5"), TIDY),
                (flavors.approximate("1e-7", domain=RAW).at(1), flavors.approximate("1e-9", domain=RAW).at(2)),
                (flavors.renyi(2, domain=RAW).at(1), flavors.renyi(8, domain=RAW).at(2)),
            ],
            [
                TIDY,
                flavors.approximate("1e-6", domain=RAW).at(1),
                with_facts(flavors.approximate("1e-10", domain=RAW).at(1), records=330_000_000),
                (TIDY, flavors.zcdp("person", domain=RAW).at("0.5")),
                (flavors.approximate("1e-9", domain=RAW).at("0.5"), flavors.approximate("1e-7", domain=RAW).at(1)),
                (flavors.approximate(0, domain=RAW).at("0.5"), TIDY),
            ],
        ),
        "no-events": (
            [replace(TIDY, output_premetric=OutputPremetric(partition=(("yes", "no"),)))],
            [TIDY, replace(TIDY, output_premetric=OutputPremetric(partition=(("yes",), ("no",))))],
        ),
        "fewer-events": (
            [
                flavors.subspace("sums over counties", domain=RAW).at(1),
                replace(TIDY, output_premetric=OutputPremetric(partition=(("0", "1"), ("2",)))),
            ],
            [TIDY],
        ),
        "not-likelihood-based": ([kind("lint-wasserstein", likelihood=False)], [kind("lint-fine"), TIDY]),
        "standard-does-not-compose": (
            [kind("lint-alone", composition=None), gaussian.at(pure_power(1))],
            [TIDY, gaussian.at(GaussianCurve(1))],
        ),
        "not-post-processing-immune": ([kind("lint-raw", immune=False)], [kind("lint-fine"), TIDY]),
        "vacuous-budget": (
            [
                held().at("infinity"),
                held().at(8),
                replace(held().at(4), nearest=2),
                flavors.zcdp("person", domain=RAW).at("55.371"),
                flavors.approximate("1e-9", domain=RAW).at(10, "exact"),
                gaussian.at(GaussianCurve(8)),
                gaussian.at(PowerCurve(((0, 0.9999), (1, 1)))),
                Flavor(RAW, Multiverse(), TIDY.input_premetric, OutputPremetric("total-variation")).at(1),
                Flavor(RAW, Multiverse(), TIDY.input_premetric, OutputPremetric("approximate-profile")).at(
                    EpsilonProfile(((1e-9, 20.0), (1e-6, 12.0)))
                ),
            ],
            [
                TIDY,
                held().at(4),
                flavors.zcdp("person", domain=RAW).at("2.63"),
                gaussian.at(GaussianCurve(1)),
                flavors.renyi(8, domain=RAW).at(2),
                replace(held().at(8), nearest=math.inf),
            ],
        ),
        "zero-budget-no-noise": (
            [held().at(0), gaussian.at(GaussianCurve(0))],
            [TIDY, flavors.approximate("1e-9", domain=RAW).at(0), swap(0, "1/20")],
        ),
        "realised-not-policy": ([held(BLOCKS).at(Budget(1, varies="ln of the largest block"))], [held(BLOCKS).at(1)]),
        "universe-dependent-budget": (
            [finite((("a", "b"), ("c", "d")), apart, uneven)],
            [finite((("a", "b"), ("c", "d")), apart, Budget(3, by_universe=(3, 3)))],
        ),
        "budget-of-overlapping-universes": (
            [
                finite((("a", "b"), ("b", "c")), apart, uneven),
                finite((("a", "b"), ("b", "c")), apart, Budget(1, varies="the size of the file")),
            ],
            [
                finite((("a", "b"), ("c", "d")), apart, uneven),
                finite((("a", "b"), ("b", "c")), apart, Budget(3, by_universe=(3, 3))),
                finite((("a", "b"), ("c", "d")), apart, Budget(1, varies="the size of the file")),
                held(BLOCKS).at(Budget(1, varies="ln of the largest block")),
            ],
        ),
        "conversion-unnamed": (
            [flavors.approximate("1e-9", domain=RAW).at(1)],
            [flavors.approximate("1e-9", domain=RAW).at(1, "exact Gaussian"), flavors.approximate(0).at(1), TIDY],
        ),
        "rate-zero-or-one": ([swap(10, "0"), swap(10, "1")], [swap(10, "1/20"), swap(0, "1")]),
        "rate-above-best": ([swap(10, "19/20"), swap(3, "201/300")], [swap(10, "1/2"), swap(3, "2/3"), swap(10, "1")]),
        "unattainable-epsilon": (
            [swap(10, "1/2", 1), swap(4549, "1/20", 4)],
            [swap(10, "1/2"), swap(3, "2/3"), premetric(swap(10, "1/2", 1), bounded=False), held().at("0.1")],
        ),
        "capped-or-pairwise-swaps": (
            [swap(10, "1/2", cap_on_swaps=5), swap(10, "1/2", pairwise=True)],
            [swap(10, "1/2", pairwise=False), swap(10, "1/2", math.inf, cap_on_swaps=5)],
        ),
        "few-change": (
            [
                swap(10, "1/20", changed_share="0.01", unchangeable_share="0.1"),
                swap(10, "1/20", changed_share="0.04", unchangeable_share="0.3"),
            ],
            [swap(10, "1/20", changed_share="0.0125", unchangeable_share="0.25"), swap(10, "1/20")],
        ),
        "alone-by-match-and-swap": (
            [swap(10, "1/2", alone_by_match_and_swap=12), swap(10, "1/2", alone_by_match_and_swap=1)],
            [swap(10, "1/2", alone_by_match_and_swap=0)],
        ),
        "strata-of-duplicates": (
            [swap(10, "1/2", strata_of_duplicates=12), swap(10, "1/2", strata_of_duplicates=1)],
            [swap(10, "1/2", strata_of_duplicates=0)],
        ),
        "parameters-from-this-data": (
            [
                with_facts(TIDY, mechanism="topdown", parameters_from="this data"),
                swap(10, "1/2", parameters_from="this data"),
                swap(10, "1/2", parameters_from="this data", looked_at="types and formats"),
                swap(10, "1/2", looked_at="values"),
            ],
            [
                with_facts(TIDY, mechanism="topdown", parameters_from="earlier data"),
                swap(10, "1/2", looked_at="types and formats"),
                swap(10, "1/2", looked_at="nothing"),
                TIDY,
            ],
        ),
        "formats-from-this-data": (
            [swap(10, "1/2", looked_at="types and formats")],
            [
                swap(10, "1/2", looked_at="nothing"),
                swap(10, "1/2", looked_at="values"),
                swap(10, "1/2", parameters_from="this data", looked_at="types and formats"),
                TIDY,
            ],
        ),
        "parameters-unexplained": (
            [with_facts(TIDY, mechanism="topdown"), with_facts(TIDY, mechanism="permutation-swapping", rate="1/20")],
            [TIDY, with_facts(TIDY, mechanism="topdown", parameters_from="this data")],
        ),
        "later-releases-not-covered": (
            [
                with_facts(replace(TIDY, covers=("the first file",)), end_to_end=False),
                with_facts(TIDY, products_not_covered="the surname file"),
            ],
            [TIDY, with_facts(replace(TIDY, covers=("the first file",)), end_to_end=True)],
        ),
        "marks": ([replace(TIDY, marks=(NOT_FOR_RELEASE,))], [TIDY]),
        "different-flavors": (
            [
                (held(BLOCKS).at(1), TIDY),
                (flavors.zcdp("person", domain=RAW).at(1), TIDY),
                (swap(10, "1/2", by=("state", "size")), swap(10, "1/2")),
            ],
            [(TIDY, held().at(2)), (swap(10, "1/2"), swap(20, "1/2"))],
        ),
    }


CASES = cases()


def found(case: Case) -> dict[str, str]:
    specification, before = case if isinstance(case, tuple) else (case, None)
    return {finding.id: finding.words for finding in lint(specification, before=before)}


def test_every_rule_has_a_case():
    assert set(CASES) == {rule.id for rule in rules()}
    assert all(speaks and silent for speaks, silent in CASES.values())


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_speaks_and_says_what_why_and_whence(rule):
    for case in CASES[rule][0]:
        specification, before = case if isinstance(case, tuple) else (case, None)
        (finding,) = [finding for finding in lint(specification, before=before) if finding.id == rule]
        assert finding.words[0].isupper() or finding.words[0] in "'0123456789"
        assert finding.words.endswith(".") and ".." not in finding.words and "  " not in finding.words
        assert finding.why.endswith(".") and finding.source


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_silent_where_there_is_nothing_to_say(rule):
    for case in CASES[rule][1]:
        assert rule not in found(case)


def test_a_specification_can_have_nothing_to_be_said_about():
    assert not found(TIDY)


def test_the_textbook_specification_hides_one_invariant_and_does_not_say_where_it_starts():
    assert set(found(PLAIN)) == {"late-start", "hidden-invariant"}
    assert set(found(flavors.zcdp("person").at("0.5"))) == {"late-start", "hidden-invariant"}


@pytest.mark.repeats
def test_any_two_specifications_can_be_set_side_by_side_and_no_rule_speaks_twice():
    given = dict.fromkeys(one for both in CASES.values() for case in (*both[0], *both[1]) for one in _each(case))
    pairs = list(itertools.product(given, repeat=2))
    for specification, before in pairs if ALL_CASES else pairs[::7]:
        ids = [finding.id for finding in lint(specification, before=before)]
        assert len(ids) == len(set(ids))


def _each(case: Case) -> tuple[Specification, ...]:
    return case if isinstance(case, tuple) else (case,)
