"""Kinds of output premetric answer for themselves: a new one is one class, and nothing else knows names of kinds."""

from __future__ import annotations

import ast
import math
from graphlib import TopologicalSorter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from stirred.errors import SpecificationError
from stirred.loss.curves.power_curves import PowerCurve, approximate_power
from stirred.loss.worst_pairs import Plain
from stirred.reports.limits_section import of_explanation
from stirred.semantics import allowed_power, explain
from stirred.spec import (
    Domain,
    Flavor,
    InputPremetric,
    Kind,
    Multiverse,
    OutputPremetric,
    compare,
    compose,
    flavors,
    lint,
    register,
)
from stirred.spec.kinds import KINDS, Rule
from stirred.spec.order.finite_mechanisms import bernoulli, divergence

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stirred"
NAMES = frozenset(KINDS)


# -- a kind of one's own, whole ------------------------------------------------------------------------------


class Hellinger(Kind):
    """The Hellinger distance, times a factor that is its parameter; everything about it is said here."""

    explained: ClassVar[bool] = True
    disjoint_is_largest: ClassVar[bool] = True
    called: ClassVar[str] = "a bound on the Hellinger distance"
    stronger: ClassVar[frozenset[str]] = frozenset({"multiplicative"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("test-hellinger", "total-variation", lambda h, factor, _: min(1, math.sqrt(2) * float(h / factor)),
             "Le Cam", "the root of 2 times it", neighbours=True),
        Rule("multiplicative", "test-hellinger", lambda e, _, factor: factor * e / 2, "for a test", "half of epsilon"),
    )  # fmt: skip

    def check_parameter(self, parameter):
        if parameter <= 0:
            raise SpecificationError("bad-block", "A factor is above 0.", "Give one.")

    def measure(self, parameter):
        return Plain(lambda p, q: float(parameter) * math.sqrt(np.sum((np.sqrt(p) - np.sqrt(q)) ** 2) / 2))

    def attainable(self, bound, parameter):
        return bound < parameter

    def tests(self, bound, parameter):
        return approximate_power(0, min(1.0, math.sqrt(2) * float(bound / parameter)))

    def least_errors(self, bound, parameter):
        return 1 - min(1.0, math.sqrt(2) * float(bound / parameter))


@pytest.fixture
def hellinger():
    kind = Hellinger("test-hellinger", "H", "h", "The Hellinger distance.", "factor", metric=True, separates=False,
                     composition="sum")  # fmt: skip
    register(kind)
    yield OutputPremetric("test-hellinger", 2)
    KINDS.pop(kind.name)


@pytest.fixture
def silent():
    register(Kind("test-nothing-said", "N", "n", "Nothing is known."))
    yield OutputPremetric("test-nothing-said")
    KINDS.pop("test-nothing-said")


def pair(output):
    near = InputPremetric.table({("x", "y"): 1, ("y", "x"): 1})
    return Flavor(Domain("pair", datasets=("x", "y")), Multiverse(), near, output)


def test_a_kind_of_ones_own_is_ordered_and_converted_by_its_own_rules(hellinger):
    one = flavors.flavor(hellinger)
    assert one.at("0.1").implies(one.at("0.2"))
    assert one.at("0.2").implies(one.at("0.1")).verdict == "no"  # it says which bounds are attained
    assert one.at("2.5").implies(one.at("2.2")).verdict == "unknown"
    reached = flavors.pure().at("0.1").implies(one.at("0.1"))
    assert reached
    assert "half of epsilon" in str(reached)
    neighbours = Flavor(one.domain, one.multiverse, InputPremetric(sharpened=False), hellinger)
    variation = Flavor(one.domain, one.multiverse, InputPremetric(sharpened=False), OutputPremetric("total-variation"))
    assert neighbours.at("0.2").implies(variation.at("0.15"))
    assert neighbours.at("0.2").implies(variation.at("0.14")).verdict == "unknown"
    assert neighbours.at("0.2").implies(Flavor(*_blocks(variation), OutputPremetric("renyi", 2)).at(9)).verdict != "yes"


def _blocks(flavor):
    return flavor.domain, flavor.multiverse, flavor.input_premetric


def test_a_kind_of_ones_own_composes_measures_and_is_compared(hellinger):
    one = flavors.flavor(hellinger)
    together = compose(one.at("0.1"), one.at("0.2")).specification
    assert (together.output_premetric, together.budget.value) == (hellinger, one.at("0.3").budget.value)
    other = flavors.flavor(OutputPremetric("test-hellinger", 3))
    with pytest.raises(SpecificationError):  # another factor is another standard
        compose(one.at("0.1"), other.at("0.1"))
    coin = bernoulli({"x": 1, "y": 0})
    assert coin.loss(pair(hellinger)).value == pytest.approx(2)
    assert coin.satisfies(pair(hellinger).at(2))
    assert coin.satisfies(pair(hellinger).at("1.9")).verdict == "no"
    assert divergence(hellinger, [1, 0], [0, 1]) == pytest.approx(2)
    assert pair(hellinger).at(1).implies(pair(hellinger).at(2))
    assert pair(hellinger).at(2).implies(pair(hellinger).at(1)).verdict == "unknown"
    assert "test-hellinger" in one.at(1).to_json()
    assert type(one.at(1)).from_json(one.at(1).to_json()) == one.at(1)
    assert "Hellinger" in str(compare(one.at(1), flavors.pure().at(1)))
    with pytest.raises(SpecificationError):
        OutputPremetric("test-hellinger", -1)


def test_a_kind_of_ones_own_is_criticised_and_explained(hellinger):
    one = flavors.flavor(hellinger)
    found = {finding.id: finding.words for finding in lint(one.at("1.42"))}
    assert "errs less than once in 1,000" in found["vacuous-budget"]
    assert "vacuous-budget" not in {finding.id for finding in lint(one.at("0.1"))}
    before = {finding.id for finding in lint(one.at("0.1"), before=flavors.pure().at(1))}
    assert "weaker-standard" in before
    assert isinstance(allowed_power(one.at("0.1")), PowerCurve)
    text = str(explain(one.at("0.1")))
    assert "h = 0.1" in text
    assert "a bound on the Hellinger distance" in " ".join(of_explanation(explain(one.at("0.1"))).text().split())


def test_a_kind_that_declares_nothing_is_refused_in_plain_words(silent):
    one, listed = flavors.flavor(silent), pair(silent)
    assert one.at(1).implies(one.at(2))
    assert one.at(2).implies(one.at(1)).verdict == "unknown"
    assert one.at(1).implies(flavors.pure().at(1)).verdict == "unknown"
    assert listed.at(2).implies(listed.at(1)).verdict == "unknown"
    assert [finding.id for finding in lint(one.at(1))].count("standard-does-not-compose") == 1
    assert "test-nothing-said" in str(explain(one.at(1)))
    assert compare(one.at(1), one.at(2))
    for refused, said in (
        (lambda: compose(one.at(1), one.at(1)), "no rule for its budgets"),
        (lambda: bernoulli({"x": 1, "y": 0}).loss(listed), "test-nothing-said"),
        (lambda: allowed_power(one.at(1)), "no power curve"),
    ):
        with pytest.raises(SpecificationError, match=said):
            refused()


def test_composition_of_approximate_standards_looks_at_the_events_of_both():
    """A guarantee about some events of the output is none about all of them, whatever is added to it."""
    coarse = OutputPremetric("approximate", "0.01", partition=(("1", "2"), ("3",)))
    whole, part = (flavors.flavor(output) for output in (OutputPremetric("approximate", "0.02"), coarse))
    for given in ((whole.at(1), part.at(1)), (part.at(1), whole.at(1))):
        together = compose(*given).specification
        assert together.output_premetric.partition == coarse.partition
        assert float(together.output_premetric.at) == pytest.approx(0.03)


# -- how the source is laid out ------------------------------------------------------------------------------


def compared(tree):
    """Names of kinds that a module compares with something, or lists as a table does."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        else:
            parts = []
        found |= {leaf.value for part in parts for leaf in ast.walk(part) if isinstance(leaf, ast.Constant)} & NAMES
        held = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        listed = {leaf.value for leaf in held if isinstance(leaf, ast.Constant)} & NAMES
        found |= listed if len(listed) > 1 and not isinstance(node, ast.List) else set()
    return found


OWN = {"spec/kinds", "loss/worst_pairs.py"}
"""The kinds themselves, and the names by which people ask for a worst pair of plain numbers."""


def test_no_module_but_those_of_the_kinds_compares_their_names():
    assert compared(ast.parse("output.name in ('renyi', 'x')")) == {"renyi"}
    assert compared(ast.parse("TABLE = {'renyi': 1, 'approximate': 2}")) == {"renyi", "approximate"}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text()
        if any(f'"{kind}"' in text for kind in NAMES) and not any(name.startswith(own) for own in OWN):
            assert not compared(ast.parse(text)), f"{name} compares names of output premetrics"


def parts_of_spec(node):
    """Files and folders of ``spec`` that a statement imports from."""
    if isinstance(node, ast.ImportFrom) and node.module == "stirred.spec":
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stirred.spec."):
        return [node.module.split(".")[2]]
    return []


def test_the_parts_of_spec_have_an_order_and_none_imports_from_one_that_imports_from_it():
    folder, imported = SOURCE / "spec", {}
    for path in folder.rglob("*.py"):
        part = path.relative_to(folder).parts[0].removesuffix(".py")
        # Also imports inside functions, which save time: none of them hides a circle.
        names = {name for node in ast.walk(ast.parse(path.read_text())) for name in parts_of_spec(node)}
        imported.setdefault(part, set()).update(names - {part})
    assert imported["specification"] >= {"blocks", "facts", "invariant"}
    del imported["__init__"]
    tuple(TopologicalSorter(imported).static_order())  # raises CycleError at a circle
