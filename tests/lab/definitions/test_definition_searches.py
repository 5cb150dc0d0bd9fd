"""The auditor of definitions: what it must find by itself, what it must not claim, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import times
from stirred.errors import LossError, SpecificationError
from stirred.lab.definitions.searches import Audit, Mixed, Processed, PropertyVerdict, Sagging, audit, audit_kind
from stirred.lab.definitions.two_laws import Definition, coin, level_power, short, told
from stirred.loss import GaussianCurve, ZcdpCurve, approximate_power
from stirred.spec import Kind, OutputPremetric, register
from stirred.spec.kinds import KINDS

TESTED = ("processing", "convexity", "concavity")
FEW = 400


of_pbdp = cache(lambda epsilon, delta: audit(Definition.pbdp(epsilon, delta), tries=FEW))


def exactly(part):
    """A matrix of simple fractions, which must be what the floats stand for."""
    rows = [[Fraction(float(value)).limit_denominator(1000) for value in row] for row in part]
    assert np.array(rows, dtype=float) == pytest.approx(part, abs=1e-15)
    assert all(sum(row) == 1 for row in rows)
    return rows


def product(laws, kernel):
    columns = list(zip(*kernel, strict=True))
    return [[sum(a * b for a, b in zip(law, column, strict=True)) for column in columns] for law in laws]


def tail(p, q, epsilon):
    """The chance of a loss above epsilon, in exact numbers but for e^epsilon itself."""
    return sum(a for a, b in zip(p, q, strict=True) if a > math.exp(epsilon) * b)


def power(p, q, level):
    """The greatest power of a test at a level: outputs by likelihood ratio, the last one in part."""
    order = sorted(range(len(p)), key=lambda i: p[i] / q[i] if q[i] else math.inf)
    found, left = 0, level
    for i in order:
        part = min(1, left / p[i]) if p[i] else 1
        found, left = found + part * q[i], left - part * p[i]
    return found


# -- what it must find by itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_example_4_9_is_found_again(epsilon):
    # Delta is what two responses have, as in the paper; the counterexample need not be the paper's.
    odds = math.exp(epsilon)
    delta = odds**2 / (1 + odds) ** 2
    verdict = audit(Definition.probabilistic(epsilon / 2, delta))["processing"]
    assert verdict.status == "violated"
    found = verdict.counterexample
    assert isinstance(found, Processed)
    assert found.check()
    laws, kernel = map(exactly, found.parts)
    # Two outputs of three become one, and nothing smaller will do: a coin has nothing to join.
    assert len(kernel) == 3
    assert {max(row) for row in kernel} == {1}
    assert all(fraction.denominator <= 10 for law in laws for fraction in law)
    after = product(laws, kernel)
    assert max(tail(*laws, epsilon / 2), tail(*laws[::-1], epsilon / 2)) <= delta
    assert max(tail(*after, epsilon / 2), tail(*after[::-1], epsilon / 2)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.05), (1, 1e-6), (0.1, 0.3), (3, 0.01), (5, 1e-10)])
def test_tails_are_refuted_whatever_the_parameters(epsilon, delta):
    found = audit(Definition.probabilistic(epsilon, delta))
    assert found.violated == TESTED
    processed = found["processing"].counterexample
    before, after = (max(tail(*p, epsilon), tail(*p[::-1], epsilon)) for p in (processed.parts[0], processed.after))
    assert before <= delta < after
    # Seeing which mechanism ran, tails are averaged: only without that is convexity lost.
    assert not found["convexity"].counterexample.apart


def test_example_5_8_is_found_again():
    # Reference, section 6.5: one point of pbdp survives processing, but not mixing.
    epsilon, delta = 1.01, 0.02
    found = of_pbdp(epsilon, delta)
    assert found.violated == ("convexity", "concavity")
    mixed = found["convexity"].counterexample
    assert isinstance(mixed, Mixed)
    assert mixed.apart
    assert mixed.check()
    first, second, ((chance, _),) = map(exactly, mixed.parts)
    level = math.exp(-epsilon) * delta
    for laws in (first, second):
        assert max(power(*laws, level), power(*laws[::-1], level)) <= delta
    mixture = [[*(chance * a for a in p), *((1 - chance) * b for b in q)] for p, q in zip(first, second, strict=True)]
    assert max(power(*mixture, level), power(*mixture[::-1], level)) > delta


def test_theorem_6_4_tells_lost_convexity_by_levels_and_powers():
    definition, sag = Definition.pbdp(1.01, 0.02), of_pbdp(1.01, 0.02)["concavity"].counterexample
    assert isinstance(sag, Sagging)
    low, high, ((chance, _),) = sag.parts
    assert definition.passes(low)
    assert definition.passes(high)
    level, chord = chance * low[:, 0] + (1 - chance) * high[:, 0]
    assert low[0, 0] < level < high[0, 0]
    assert float(level_power(definition, level)) < 0.99 * chord
    assert definition.breaks(coin(level, chord))
    for parameters in ((1, 1e-6), (0.1, 0.5), (5, 0.01)):
        assert of_pbdp(*parameters).violated == ("convexity", "concavity")


# -- what it must not claim ----------------------------------------------------------------------------------

GOOD = [Definition.pure(1), Definition.approximate(1, 0.01), Definition.renyi(2, 1), Definition.zcdp(0.5)]
GOOD += [Definition.tradeoff(GaussianCurve(1)), Definition.total_variation(0.1)]


@pytest.mark.repeats
@pytest.mark.parametrize("definition", GOOD, ids=[definition.name for definition in GOOD])
def test_definitions_that_are_sound_are_not_refuted(definition):
    found = audit(definition, tries=times(1000))
    assert all(found[name].status == "not refuted" and found[name].cases > times(100) for name in TESTED)


def naive_pure(epsilon):
    return lambda p, q: bool(np.all(p <= math.exp(epsilon) * q))


def test_sound_definitions_computed_without_care_are_not_refuted_by_rounding():
    for holds in (naive_pure(0.1), naive_pure(3), lambda p, q: bool(np.maximum(p - math.e * q, 0).sum() <= 0.1)):
        assert audit(Definition("as typed", holds), tries=FEW).violated == ()


sound = st.one_of(
    st.builds(Definition.pure, st.floats(1e-3, 10)),
    st.builds(Definition.approximate, st.floats(1e-3, 10), st.floats(1e-9, 1)),
    st.builds(Definition.renyi, st.floats(1, 50), st.floats(1e-3, 10)),
    st.builds(Definition.zcdp, st.floats(1e-3, 10)),
    st.builds(Definition.total_variation, st.floats(1e-3, 1)),
    st.builds(lambda e, d: Definition.tradeoff(approximate_power(e, d)), st.floats(1e-3, 5), st.floats(1e-3, 1)),
    st.builds(lambda rho: Definition.tradeoff(ZcdpCurve(rho)), st.floats(1e-3, 3)),
)


@settings(max_examples=7, deadline=None, derandomize=True)
@given(sound)
def test_sound_definitions_are_not_refuted_at_any_parameters(definition):
    assert audit(definition, tries=100).violated == ()


# -- other people's definitions ------------------------------------------------------------------------------


def each_output(p, q):
    return bool(np.all(np.abs(p - q) <= 0.1))


def one_in_ten(p, q):
    """Like k-anonymity: whatever occurs is not rare, under either law."""
    return bool(np.all((p >= 0.1) & (q >= 0.1)))


def either(p, q):
    """What holds under one of two sound definitions."""
    return (naive_pure(0.5)(p, q) and naive_pure(0.5)(q, p)) or bool(np.abs(p - q).sum() <= 0.1)


@pytest.mark.parametrize(
    ("holds", "violated"),
    [
        (each_output, ("processing",)),
        (one_in_ten, ("processing", "convexity", "concavity")),
        (lambda p, q: bool(np.max(np.abs(np.cumsum(p - q))) <= 0.1), ("processing",)),  # looks at the outputs' order
        (either, ("convexity", "concavity")),
        (lambda p, q: naive_pure(0.5)(p, q) and bool(np.abs(p - q).sum() <= 0.1), ()),
        (lambda p, q: kl(p, q) <= 0.3, ()),  # the expected loss: sound, if hard to interpret
        (lambda p, q: bool(np.all((p > 0) == (q > 0))), ()),  # the same outputs are possible: sound and worthless
        (lambda p, q: True, ()),
    ],
)
def test_verdicts_on_definitions_that_people_might_propose(holds, violated):
    found = audit(Definition("proposal", holds), tries=2000)
    assert found.violated == violated
    assert all(found[name].counterexample.check() for name in violated)


def test_counterexamples_are_as_small_as_they_can_be():
    # With three outputs a difference of 0.1 on each is one of 0.1 on any event; four are needed.
    found = audit(Definition("each output", each_output), tries=2000)["processing"].counterexample
    laws, kernel = found.parts
    assert [laws.shape, kernel.shape] == [(2, 4), (4, 2)]
    assert set(np.unique(kernel)) == {0, 1}
    assert all(fraction.denominator <= 10 for row in exactly(laws) for fraction in row)
    # An output that was told in two ways is told in one again.
    wide = np.hstack([laws[:, :1] / 2, laws[:, :1] / 2, laws[:, 1:]]), np.vstack([kernel[:1], kernel])
    assert replace(found, parts=wide).check()
    assert replace(found, parts=wide).simplified().parts[0].shape == (2, 4)
    # Splitting needs a chance, and one output to be split.
    split = audit(Definition("one in ten", one_in_ten), tries=2000)["processing"].counterexample
    assert split.parts[0].shape == (2, 2)
    assert "output 1 becomes 1 (1/2) or 2 (1/2); output 2 becomes 2\n" in str(split)
    assert all(fraction.denominator <= 10 for part in split.parts for row in exactly(part) for fraction in row)


def test_rounding_and_gaps_make_no_counterexample():
    tenth = Definition("a tenth", lambda p, q: bool(np.abs(p - q).sum() <= 0.2))
    laws, kernel = np.array([[0.02, 0.28, 0.7], [0.12, 0.18, 0.7]]), np.eye(3, 4)
    kernel[0, [0, 3]] = 0.9, 0.1
    assert [tenth.passes(laws), tenth.passes(laws @ kernel)] == [True, False]
    assert not Processed(tenth, (laws, kernel)).check()
    # The power of the chord does not hold, but a greater one does.
    gap = Definition("gap", lambda p, q: not 0.4 < q[0] < 0.6, symmetric=False)
    parts = (coin(0, 0.3), coin(0.2, 0.7), np.array([[0.5, 0.5]]))
    assert [Mixed(gap, parts, False).check(), Sagging(gap, parts, False).check()] == [True, False]


def test_a_definition_that_nothing_satisfies_is_not_refuted_and_one_sees_why():
    found = audit(Definition("never", lambda p, q: False), tries=FEW)
    assert [found[name].cases for name in TESTED] == [0, 0, 0]
    assert "in 0 cases" in str(found)


def test_one_sided_definitions_are_audited_in_their_order():
    one_sided = Definition("one-sided", naive_pure(1), symmetric=False)
    assert audit(one_sided, tries=FEW).violated == ()
    assert float(level_power(one_sided, 0.1)) == pytest.approx(1 - 0.9 / math.e)  # only saying no is bounded


def test_a_cost_without_a_budget_is_audited_at_all_budgets():
    found = audit(Definition("largest", cost=largest), tries=2000)
    assert found.violated == ("processing",)
    processed = found["processing"].counterexample
    assert largest(*processed.after) > largest(*processed.parts[0])
    assert [found["concavity"].cases, found["frequentist"].status] == [0, "no budget"]


def test_audits_are_the_same_every_time_and_a_changed_counterexample_no_longer_stands():
    found, again = (audit(Definition.probabilistic(1, 0.05), tries=FEW) for _ in range(2))
    assert str(found) == str(again)
    processed, mixed, sag = (found[name].counterexample for name in TESTED)
    laws, kernel = processed.parts
    assert not replace(processed, parts=(laws, np.eye(len(kernel)))).check()
    # What comes out does not hold to begin with.
    assert not replace(processed, parts=(processed.after, np.eye(kernel.shape[1]))).check()
    assert not replace(mixed, parts=(*mixed.parts[:2], np.array([[1.0, 0.0]]))).check()
    assert not replace(sag, parts=(sag.parts[0], sag.parts[0], sag.parts[2])).check()
    assert not replace(processed, definition=Definition.pure(9)).check()


# -- kinds of output premetric -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "undeclared"),
    [
        (OutputPremetric(), set()),
        (OutputPremetric("approximate", 0.05), {"metric", "separates"}),
        (OutputPremetric("approximate", 0.7), {"metric", "separates"}),
        (OutputPremetric("renyi", 1.5), {"metric"}),
        (OutputPremetric("normalised-renyi"), set()),
        (OutputPremetric("total-variation"), {"separates"}),
    ],
    ids=lambda value: getattr(value, "symbol", None),
)
def test_the_kinds_that_are_built_in_are_what_they_declare(output, undeclared):
    found = audit_kind(output, tries=1000)
    assert found.violated == ()
    assert {one.property for one in found.verdicts if one.status == "not declared"} == undeclared
    assert all(one.cases > 10 for one in found.verdicts if one.status == "not refuted")


def kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(np.where(p > 0, p * np.log(p / q), 0)))


def chi_square(p, q):
    return float(np.sum((p - q) ** 2 / q))


def largest(p, q):
    return float(np.max(np.abs(p - q)))


def variation(p, q):
    return float(np.abs(p - q).sum() / 2)


def jeffreys(p, q):
    return kl(p, q) + kl(q, p)


@pytest.fixture
def kind():
    def make(divergence, **declared):
        return OutputPremetric(register(Kind("mine", "D", "x", "My own.", divergence=divergence, **declared)).name)

    yield make
    KINDS.pop("mine", None)


@pytest.mark.parametrize(
    ("divergence", "declared", "violated"),
    [
        (kl, {"composition": "sum"}, ()),
        (kl, {"metric": True}, ("metric",)),  # not symmetric
        (jeffreys, {"metric": True, "composition": "sum"}, ("metric",)),  # symmetric, without triangle inequality
        (chi_square, {"composition": "sum"}, ("composition",)),  # one plus it multiplies
        (largest, {"separates": False}, ("processing",)),
        (lambda p, q: float(np.max(p - q)), {"metric": True, "immune": False, "separates": False}, ("metric",)),
        (largest, {"immune": False, "separates": False, "metric": True}, ()),
        (variation, {"metric": True, "composition": "sum"}, ("separates",)),
        (lambda p, q: variation(p, q) ** 0.5, {"metric": True, "separates": False, "power": 2}, ()),
        (lambda p, q: variation(p, q) ** 2, {"separates": False, "composition": "sum"}, ("composition",)),
        (lambda p, q: variation(p, q) ** 2, {"separates": False, "metric": True}, ("metric",)),
    ],
)
def test_declarations_of_registered_kinds_are_held_against_them(kind, divergence, declared, violated):
    found = audit_kind(kind(divergence, **declared), tries=1000)
    assert found.violated == violated
    assert all(found[name].counterexample.check() for name in violated)
    if violated == ("metric",):
        p, *between, q = found["metric"].counterexample.parts[0]
        detour = sum(divergence(p, r) + divergence(r, q) for r in between)
        assert divergence(p, q) != pytest.approx(divergence(q, p)) or divergence(p, q) > detour


def test_kinds_that_add_up_their_parameters_are_tested_with_the_sum(monkeypatch):
    # (epsilon, delta) twice is (2 epsilon, 2 delta) and not (2 epsilon, delta).
    output = OutputPremetric("approximate", 0.1)
    assert audit_kind(output, tries=400)["composition"].status == "not refuted"
    monkeypatch.setitem(KINDS, "approximate", replace(output.kind, composition="sum"))
    assert audit_kind(output, tries=400)["composition"].status == "violated"


# -- words ---------------------------------------------------------------------------------------------------


def test_an_audit_prints_the_checklist():
    lines = str(of_pbdp(1.01, 0.02)).splitlines()
    assert lines[0] == "Audit of pbdp (1.01, 0.02)"
    rows = "transparency processing composition convexity concavity interpretation frequentist bayesian"
    assert [line.split()[0] for line in lines[1:9]] == rows.split()
    assert "power at most 0.02746 at false-alarm probability 0.01, 0.1373 at false-alarm probability 0.05" in lines[7]
    at = lines.index("Against convexity:")
    assert lines[at + 1].startswith("  laws (")
    assert lines[at + 3].endswith("else the second, seeing which")
    assert "do not hold: 0.02" in lines[at + 4]
    assert not any("Against processing" in line or "proved" in line for line in lines)


def test_numbers_and_laws_are_told_as_simple_fractions_where_they_are():
    assert [short(one) for one in (0.5, 1 / 3, 1, 0, 0.999)] == ["1/2", "1/3", "1", "0", "999/1000"]
    assert [short(one) for one in (1e-6, 1e-13, math.pi, math.inf)] == ["1e-06", "1e-13", "3.141593", "inf"]
    assert told(coin(0.25, 0.5)) == "(1/4, 3/4) and (1/2, 1/2)"
    assert (
        Definition.pure(math.log(2)).judged(coin(0.5, 0.5))
        == "laws (1/2, 1/2) and (1/2, 1/2) hold: 0, allowed 0.6931472"
    )
    assert Definition("no", lambda p, q: False).judged(coin(0, 1)) == "laws (0, 1) and (1, 0) do not hold"


def test_an_audit_is_read_by_property():
    found = Audit("mine", (PropertyVerdict("processing", "not refuted", 3, words="in 3 cases"),))
    assert str(found) == f"Audit of mine\n  {found['processing']}"
    with pytest.raises(LossError, match=r"no verdict on 'luck'.*processing"):
        found["luck"]


@pytest.mark.parametrize("tries", [0, -1, 1.5, True, "many", None])
def test_tries_are_a_positive_whole_number(tries):
    with pytest.raises(LossError, match=r"tries is .*at least 1"):
        audit(Definition.pure(1), tries=tries)
    with pytest.raises(LossError, match=r"tries is .*at least 1"):
        audit_kind(OutputPremetric(), tries=tries)


def test_kinds_that_give_no_number_are_refused(kind):
    with pytest.raises(SpecificationError, match="Cannot evaluate the output premetric 'trade-off'"):
        audit_kind(OutputPremetric("trade-off"))
    with pytest.raises(SpecificationError, match=r"^Cannot evaluate the output premetric 'mine'"):
        audit_kind(kind(None))


def test_a_definition_that_fails_to_answer_stops_the_audit():
    with pytest.raises(SpecificationError, match="'mine' must answer for any two laws, and raised ZeroDivisionError"):
        audit(Definition("mine", lambda p, q: bool(1 / float(q[0]) > 0)))
    with pytest.raises(SpecificationError, match="'mine' must cost a number, and cost nan"):
        audit(Definition("mine", cost=lambda p, q: float(np.sum(p * np.log(p / q))), budget=1))
