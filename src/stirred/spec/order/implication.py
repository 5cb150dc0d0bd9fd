"""Which specification is stronger: A implies B if every mechanism that satisfies A satisfies B.

The answer is *yes* with a chain of steps, each weakening A towards B by a proposition; *no* with a mechanism that
satisfies A and not B; or *unknown*. Blocks are taken in the order domain, multiverse, then input and output premetric
in both orders, then budget. A step that no proposition licenses ends the chain: nothing is guessed.

Over the same listed datasets it is decided pair by pair. Each specification comes to a bound for every pair
(:mod:`stirred.spec.order.finite_flavors`). If the output premetric is a metric, bounds add up along paths, and A
implies B exactly if A's shortest paths are at most B's bounds: the law of the output can be made to move along f(x) =
min(distance from x0, cap) at the full speed that A allows. For other output premetrics a direct comparison says yes,
and a mechanism with two laws, one on each side of a cut, says no; between them the answer is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

from stirred.loss.conversions import narrowed
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, GaussianCurve, at_most
from stirred.spec.blocks import Budget, Domain, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.exact import display, display_down, significant
from stirred.spec.invariant import Invariant, missing
from stirred.spec.kinds import Kind
from stirred.spec.order.conversions import Brought, Stop, bring, convert
from stirred.spec.order.finite_flavors import Closure, Pair, closed, cut, is_trivial, pair_bounds
from stirred.spec.order.finite_mechanisms import FiniteMechanism, bernoulli
from stirred.spec.specification import Answer, Specification, Step

TIE = 1e-9
"""Sums of roots that differ from a bound by a smaller part are not told from it."""

TABLE = "Propositions A.3.1 and A.3.2"


@dataclass(frozen=True)
class Refutation:
    """A mechanism that satisfies the first specification and not the second, in words and, where finite, to build."""

    words: str
    source: str
    build: Callable[[], FiniteMechanism] | None


@dataclass(frozen=True)
class _Case:
    """Two specifications as bounds. ``given`` are those of the first in its own output premetric, with paths if it is
    a metric; ``reached`` those that follow in the output premetric of the second."""

    a: Specification
    b: Specification
    names: tuple[str, ...]
    direct: dict[Pair, Any]
    given: Closure
    reached: Closure
    wanted: dict[Pair, Any]
    conversion: Step | None


def implies_by_table(a: Specification, b: Specification) -> Answer:
    """Whether every mechanism on the listed datasets that satisfies ``a`` satisfies ``b``."""
    case = _prepare(a, b)
    if isinstance(case, str):
        return Answer.by("unknown", "table", TABLE, case)
    open_pairs = [pair for pair, bound in case.wanted.items() if not _kept(case, pair, bound)]
    if not open_pairs:
        return Answer("yes", tuple(_steps(case)))
    refutation = next(_refutations(case, open_pairs), None)
    if refutation is not None:
        return Answer.by("no", "witness", refutation.source, refutation.words)
    first, second = open_pairs[0]
    words = f"that the first allows '{first}' and '{second}' no more than the second is not known, nor the contrary"
    return Answer.by("unknown", "table", TABLE, words)


def witness(a: Specification, b: Specification) -> FiniteMechanism | None:
    """A finite mechanism that satisfies ``a`` and not ``b``, both checked; None if there is none or none is known.

    >>> from stirred.spec import flavors
    >>> from stirred.spec.order.finite_flavors import explicit
    >>> pair = explicit(flavors.pure("person"), {"x": "0", "y": "1"})
    >>> witness(pair.at(2), pair.at(1)).law("x")["yes"]
    0.5
    """
    case = _prepare(a, b)
    if isinstance(case, str):
        return None
    open_pairs = [pair for pair, bound in case.wanted.items() if not _kept(case, pair, bound)]
    for refutation in _refutations(case, open_pairs):
        mechanism = refutation.build() if refutation.build else None
        if mechanism and mechanism.satisfies(a) and mechanism.satisfies(b).verdict == "no":
            return mechanism
    return None


def _prepare(a: Specification, b: Specification) -> _Case | str:
    """The bounds of both, or why there are none."""
    for one in (a, b):
        if not one.domain.datasets or one.multiverse.invariants or one.input_premetric.kind != "table":
            return "datasets, universes and distances are not all listed by name"
        if one.budget.varies:
            return "a budget varies between universes by a formula"
    mine, theirs = (replace(one.domain, datasets=tuple(sorted(one.domain.datasets))) for one in (a, b))
    if not mine.is_part_of(theirs):
        return "the domains differ (Remark 2.4.7)"
    a, b = _simplified(a), _simplified(b)
    direct, wanted = pair_bounds(a), pair_bounds(b)
    if direct is None or wanted is None:
        return "a trade-off function says nothing beyond neighbours"
    given = _along_paths(direct, a.output_premetric)
    reached, conversion = _converted(a, b, given)
    return _Case(a, b, a.domain.datasets, direct, given, reached, wanted, conversion)


def _simplified(one: Specification) -> Specification:
    """The same with D_Mult in place of D_Mult^0: they are equal, and the first is known to be a metric."""
    return replace(one, output_premetric=one.output_premetric.simplified)


def _along_paths(bounds: dict[Pair, Any], output: OutputPremetric) -> Closure:
    return closed(bounds, output) if output.kind.metric else Closure(bounds, True)


def _converted(a: Specification, b: Specification, given: Closure) -> tuple[Closure, Step | None]:
    """The bounds in the output premetric of ``b``: each pair's on its own, at distance one."""
    start, end = a.output_premetric, b.output_premetric
    if start == end:
        return given, None
    found: dict[Pair, Any] = {}
    step: Step | None = None
    for (first, second), bound in given.bounds.items():
        if not start.kind.symmetric and start.name != end.name:
            # A conversion from a divergence of one direction needs it in both.
            other = given.bounds.get((second, first))
            if other is None:
                continue
            bound = bound if isinstance(bound, Curve) else max(bound, other)
        domain, near = Domain("pair", datasets=("x", "y")), InputPremetric.table({("x", "y"): 1, ("y", "x"): 1})
        one = Specification(domain, Multiverse(), near, start, Budget(bound))
        if converted := convert(one, end):
            value = converted.specification.budget.value
            if not is_trivial(end, value):
                found[first, second] = value
                step = converted.steps[-1]
    reached = _along_paths(found, end)
    return replace(reached, exact=reached.exact and given.exact), step


def _kept(case: _Case, pair: Pair, bound: Any) -> bool:
    """Whether the first specification is known to bound a pair by at most ``bound``."""
    same = case.a.output_premetric == case.b.output_premetric
    if same and pair in case.direct and _at_most(case.direct[pair], bound):
        return True
    reached = case.reached.bounds.get(pair)
    if reached is None:
        return False
    if not case.reached.exact and not isinstance(reached, Curve):
        return bool(reached <= bound * (1 - TIE))
    return _at_most(reached, bound)


def _at_most(first: Any, second: Any) -> bool:
    if isinstance(first, Curve):
        return isinstance(second, EpsilonProfile) == isinstance(first, EpsilonProfile) and at_most(first, second)
    return bool(first <= second)


def _steps(case: _Case) -> Iterator[Step]:
    """The argument for a yes."""
    a, b = case.a, case.b
    if a.multiverse.universes or b.multiverse.universes:
        words = "a pair is bound by the smallest budget times distance over the universes that hold both"
        yield Step("universes", TABLE, words)
        if a.multiverse != b.multiverse:
            words = "whatever pair the second compares the first compares too, directly or along a path"
            yield Step("refinement", "Proposition 2.4.13", words)
    if case.conversion:
        yield case.conversion
    direct = {pair: case.direct.get(pair) for pair in case.wanted}
    closed_up = any(case.given.bounds.get(pair) != bound for pair, bound in direct.items())
    if a.output_premetric.kind.metric and closed_up:
        words = f"{a.output_premetric.symbol} is a metric, so its bounds add up along paths"
        yield Step("sharpening", "Appendix A.4", words)
    if a.input_premetric != b.input_premetric:
        yield Step("granularity", "Proposition 2.4.15", "distances differ, and are compared pair by pair")
    words = f"none of the {len(case.wanted)} ordered pairs that the second constrains may be further apart by the first"
    yield Step("budget", "Definition 2.4.5", words)


# -- witnesses -----------------------------------------------------------------------------------------------


def _refutations(case: _Case, open_pairs: list[Pair]) -> Iterator[Refutation]:
    """Mechanisms that satisfy the first and break the second at one of the pairs."""
    outputs = case.a.output_premetric, case.b.output_premetric
    if any(output.events or output.partition for output in outputs):
        return
    for pair in open_pairs:
        bound = case.wanted[pair]
        if outputs[0] == outputs[1] and outputs[0].kind.metric:
            yield from _by_distance(case, pair, bound)
        yield from _by_certainty(case, pair)
        if all(output.kind.mirrored for output in outputs):
            yield from _by_two_laws(case, pair, bound)
        if outputs[0] != outputs[1]:
            yield from _by_chance(case, pair, bound)
            yield from _by_gaussians(case, pair)


def _by_distance(case: _Case, pair: Pair, bound: Any) -> Iterator[Refutation]:
    """Move the law along the distance from one dataset, as fast as the first allows."""
    output = case.a.output_premetric
    allowed = min(case.given.bounds.get(pair, math.inf), output.kind.largest)
    sure = allowed > bound if case.given.exact else allowed >= bound * (1 + TIE)
    if not output.kind.moved_laws or not sure:
        return
    words = (
        f"'{pair[0]}' and '{pair[1]}' may be {_said(allowed, output)} apart by the first and "
        f"{_said(bound, output, display_down)} by the second: {output.kind.moved_laws} moved by the distance from "
        f"'{pair[0]}' under the first, up to a cap, satisfies the first"
    )
    cap = bound + 1 if allowed == math.inf else (bound + allowed) / 2
    far = {name: min(case.given.bounds.get((pair[0], name), cap), cap) for name in case.names} | {pair[0]: 0}
    yield Refutation(words, "Appendix A.4", _coins(output.kind, far))


def _coins(kind: Kind, far: dict[str, Any]) -> Callable[[], FiniteMechanism] | None:
    """A coin for each dataset, moved by its distance; None where the laws that are moved are no coins."""
    chances = {name: kind.coin(distance) for name, distance in far.items()}
    known = {name: chance for name, chance in chances.items() if chance is not None}
    return (lambda: bernoulli(known)) if len(known) == len(chances) else None


def _by_two_laws(case: _Case, pair: Pair, bound: Any) -> Iterator[Refutation]:
    """Randomised response about the side of a cut: one law on each, as far apart as the first allows."""
    start, end = case.a.output_premetric, case.b.output_premetric
    allowed, side = cut(case.direct, case.names, *pair)
    if allowed is None:
        return
    if start == end and not isinstance(bound, Curve):
        if allowed <= bound:
            return
        chance = _furthest(start, (allowed + bound) / 2)
    else:
        chance = _furthest(start, allowed)
        if chance < 0.5 + TIE or _keeps(end, bound, chance, 1 + TIE):
            return
    words = (
        f"randomised response about whether the dataset is on the side of '{pair[0]}' ({_side(side)}), right with "
        f"probability {chance:.4g}, satisfies the first, and the second bounds '{pair[0]}' and '{pair[1]}' more closely"
    )
    build = bernoulli({name: chance if name in side else 1 - chance for name in case.names})
    yield Refutation(words, "Proposition 2.4.12", lambda: build)


@cache
def _furthest(output: OutputPremetric, bound: Any) -> float:
    """The largest chance with which two mirrored laws keep to a bound, found by bisection."""
    return narrowed(0.5, 1.0, partial(_keeps, output, bound))[0]


@cache
def _keeps(output: OutputPremetric, bound: Any, chance: float, slack: float = 1.0) -> bool:
    """Whether the laws (p, 1 - p) and (1 - p, p) keep to a bound."""
    return output.kind.keeps_mirrored(chance, bound, output.parameter, slack)


def _by_certainty(case: _Case, pair: Pair) -> Iterator[Refutation]:
    """Say outright on which side the dataset is, where no bound of the first crosses."""
    allowed, side = cut(case.direct, case.names, *pair)
    output = case.b.output_premetric
    if allowed is not None or not output.kind.largest_if_disjoint:
        return
    words = (
        f"the first never compares '{pair[0]}' or what is comparable with it ({_side(side)}) with the other datasets, "
        f"so it allows to say which it is; the second bounds '{pair[0]}' and '{pair[1]}'"
    )
    build = FiniteMechanism.of({name: {"in" if name in side else "out": 1} for name in case.names})
    yield Refutation(words, "Proposition 2.4.11", lambda: build)


def _by_chance(case: _Case, pair: Pair, bound: Any) -> Iterator[Refutation]:
    """Say which dataset it is with a small probability, and else nothing."""
    start, end = case.a.output_premetric, case.b.output_premetric
    far = {name: case.given.bounds.get((pair[0], name), math.inf) for name in case.names} | {pair[0]: 0}
    chance = start.kind.told(far[pair[1]], start.parameter)
    if chance is not None and end.kind.forbids_telling(chance, bound, end.parameter):
        words = (
            f"telling '{pair[0]}' and '{pair[1]}' apart with probability {float(chance):g}, and else saying nothing, "
            f"satisfies the first; the second bounds the two by {_said(bound, end)}"
        )
        moved = _coins(start.kind, {name: min(allowed, start.kind.largest) for name, allowed in far.items()})
        yield Refutation(words, "section 2.4.5", moved or partial(_telling, case.names, float(chance)))


def _telling(names: tuple[str, ...], chance: float) -> FiniteMechanism:
    return FiniteMechanism.of({name: {name: chance, "nothing": 1 - chance} for name in names})


def _by_gaussians(case: _Case, pair: Pair) -> Iterator[Refutation]:
    """Gaussian noise has a finite Renyi divergence at every order and no finite D_Mult."""
    start, end = case.a.output_premetric, case.b.output_premetric
    if not start.kind.finite_for_gaussians or not end.kind.pure:
        return
    if start.kind.metric:
        allowed = case.given.bounds.get(pair, math.inf)
    else:
        across, _ = cut(case.direct, case.names, *pair)
        allowed = math.inf if across is None else across
    if allowed > 0:
        words = (
            f"Gaussian noise may tell '{pair[0]}' from '{pair[1]}' by the first, and has an infinite {end.symbol}, "
            "which the second bounds"
        )
        yield Refutation(words, "section 3.5.2", None)


def _said(bound: Any, output: OutputPremetric, shown: Callable[[Any], str] = display) -> str:
    return "a curve" if isinstance(bound, Curve) else f"{output.kind.budget} = {shown(bound)}"


def _side(side: frozenset[str]) -> str:
    names = sorted(side)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def implies(a: Specification, b: Specification) -> Answer:
    """Whether ``a`` is at least as strong as ``b``, with reasons.

    >>> from stirred.spec import flavors
    >>> print(flavors.pure("person").at("1/2").implies(flavors.zcdp("person").at("1/8")))
    yes
      1. epsilon = 0.5 gives rho = 0.13: epsilon tanh(epsilon / 2), of randomised response, the worst case [Kairouz...
      2. the budget 0.123 is at most 0.125 [Definition 2.4.5]
    """
    if a.marks:
        return Answer.by("unknown", "mark", "marks of the specification", f"the first is marked '{a.marks[0]}'")
    if a == b:
        return Answer.by("yes", "same", "Definition 2.4.5", "the two are the same specification")
    if a.domain.datasets or b.domain.datasets:
        return implies_by_table(a, b)
    answers = [_chain(a, b, order) for order in ((_input, _output), (_output, _input))]
    return min(answers, key=lambda answer: ("yes", "no", "unknown").index(answer.verdict))


def _chain(a: Specification, b: Specification, middle: tuple[_Move, ...]) -> Answer:
    steps: list[Step] = []
    reached = a
    try:
        # A group's delta grows on the way to another input premetric, so the output premetric is looked at again.
        for move in (_domain, _multiverse, *middle, _output):
            reached, found = move(reached, b)
            steps += found
        steps.append(_budget(a, reached, b))
    except Stop as stop:
        # The witness against an output premetric must satisfy the first as it was, before any step.
        lost = stop.step.rule == "output premetric" and not _tells_apart(a, b)
        return Answer("unknown" if lost else stop.verdict, (*steps, stop.step))
    return Answer("yes", tuple(steps))


_Move = Callable[[Specification, Specification], Brought]


def _domain(a: Specification, b: Specification) -> Brought:
    if not a.domain.is_part_of(b.domain):
        words = f"the domains differ ('{a.domain.name}' and '{b.domain.name}')"
        if a.domain.name == b.domain.name:
            words = "the domains differ: not the same variables, start, or restrictions"
        raise Stop("unknown", Step("domain", "Remark 2.4.7", words))
    reached = replace(a, domain=b.domain)
    if a.domain.variables == b.domain.variables:
        return Brought(reached, ())
    words = "the first reads some of the variables: dropping others brings no two datasets further apart"
    return Brought(reached, (Step("projection", "Proposition 2.4.15", words),))


def _multiverse(a: Specification, b: Specification) -> Brought:
    if a.multiverse == b.multiverse:
        return Brought(replace(a, multiverse=b.multiverse, nearest=b.nearest), ())
    if not (a.multiverse.invariants or a.multiverse.universes):
        words = "the second compares fewer datasets: its universes lie within those of the first"
        return _refined(a, b.multiverse, b, words)
    if a.multiverse.universes or b.multiverse.universes:
        raise Stop("unknown", Step("multiverse", "Proposition 2.4.13", "listed universes need a finite domain"))
    nesting = {*a.domain.nested, *b.domain.nested}
    lacking = missing(b.flavor.invariants(), a.multiverse.invariants, nesting)
    if not lacking:
        words = "every invariant of the first is one of the second or follows from it"
        # What only the premetric of the second holds fixed is written down, for it is not the premetric of the first.
        declared = not missing(b.multiverse.invariants, a.multiverse.invariants, nesting)
        common = b.multiverse if declared else Multiverse(b.flavor.invariants())
        return _refined(a, common, b, words)
    if witness := _published(a, b, lacking):
        words = (
            f"publishing {witness} costs nothing under the first, whose universes hold it fixed, and no finite budget "
            "of the second allows it"
        )
        raise Stop("no", Step("invariant", "Proposition 2.4.11", words))
    words = f"the second is not known to hold fixed: {'; '.join(map(str, lacking))}"
    raise Stop("unknown", Step("invariant", "Proposition 2.4.13", words))


def _refined(a: Specification, multiverse: Multiverse, b: Specification, words: str) -> Brought:
    step = Step("refinement", "Proposition 2.4.13", words)
    return Brought(replace(a, multiverse=multiverse, nearest=b.nearest), (step,))


def _published(a: Specification, b: Specification, lacking: tuple[Invariant, ...]) -> Invariant | None:
    """An invariant of ``a`` that differs between two datasets at a finite distance in a universe of ``b``."""
    if not (a.domain.free and b.domain.free and separates(b)) or b.input_premetric.kind != "records":
        return None
    # Where only neighbours are compared and something is held fixed, they might never differ in it.
    if not b.input_premetric.sharpened and b.multiverse.invariants:
        return None
    return next((invariant for invariant in lacking if invariant.counts and invariant.at_least is None), None)


def separates(b: Specification) -> bool:
    """Whether two laws without a common output break the specification at every finite distance."""
    return b.output_premetric.kind.separates_at(b.output_premetric.parameter) and b.budget.number < math.inf


def _input(a: Specification, b: Specification) -> Brought:
    if a.input_premetric == b.input_premetric:
        return Brought(a, ())
    try:
        return bring(a, b.input_premetric, b.flavor.invariants())
    except Stop as stop:
        if not (separates(b) and _allows_noise(a) and _has_such_files(a, b)):
            stop.verdict = "unknown"
        raise


def _allows_noise(a: Specification) -> bool:
    """Whether neighbours may have different laws at all."""
    value = a.budget.value
    if isinstance(value, EpsilonProfile):
        return value.points[0] != (0, 0)
    if a.budget.is_curve:
        return not at_most(value, GaussianCurve(0))
    return a.budget.number > 0


def _has_such_files(a: Specification, b: Specification) -> bool:
    """Whether some universe of ``b`` is sure to hold files that differ in their order, or their size, alone."""
    counted = all(invariant.counts for invariant in b.multiverse.invariants)
    neighbours = b.input_premetric.sharpened or a.input_premetric.ordered > b.input_premetric.ordered
    return a.domain.free and b.domain.free and counted and (neighbours or not b.multiverse.invariants)


def _output(a: Specification, b: Specification) -> Brought:
    if a.output_premetric == b.output_premetric:
        return Brought(a, ())
    converted = convert(a, b.output_premetric)
    if converted is not None:
        return converted
    if b.output_premetric.kind.pure and b.budget.number < math.inf and _has_neighbours(b) and _spends(a):
        words = (
            f"a mechanism that tells one dataset from all others by Gaussian noise, or with probability delta, has "
            f"a finite {a.output_premetric.symbol} and an infinite {b.output_premetric.symbol}"
        )
        raise Stop("no", Step("output premetric", "section 3.5.2", words))
    words = f"no conversion from {a.output_premetric.symbol} to {b.output_premetric.symbol} is known at these distances"
    raise Stop("unknown", Step("output premetric", "section 2.4.5", words))


def convertible(a: Specification, b: Specification) -> bool:
    """Whether the standard of ``a`` bounds that of ``b`` at all, so that some budget of the first implies one of the
    second."""
    return a.output_premetric == b.output_premetric or convert(a, b.output_premetric) is not None


def _spends(a: Specification) -> bool:
    """Whether two different laws are allowed at all, other than laws of finite D_Mult."""
    if a.budget.is_curve:
        return False
    kind = a.output_premetric.kind
    told = kind.told(a.budget.number, a.output_premetric.parameter)
    return told > 0 if told is not None else kind.finite_for_gaussians and a.budget.number > 0


def _tells_apart(a: Specification, b: Specification) -> bool:
    """Whether the nearest datasets of a universe of ``b`` are apart in ``a`` too, not the same in another order."""
    here, there = a.input_premetric, b.input_premetric
    records = here.kind == there.kind == "records" and (here.ordered >= there.ordered or not b.multiverse.invariants)
    return here == there or records


def _has_neighbours(a: Specification) -> bool:
    """Whether some universe holds two datasets at a finite distance, and distances do not shrink to zero."""
    return a.nearest is not None and a.nearest < math.inf and a.input_premetric.kind in ("records", "relation")


def _budget(start: Specification, a: Specification, b: Specification) -> Step:
    if a.budget.is_curve or b.budget.is_curve:
        below = a.output_premetric.kind.curve_at_most(a.budget.value, b.budget.value)
        if below:
            return Step("budget", "section 2.4.6", "the first curve lies nowhere above the second")
        above = "the first curve lies above the second somewhere"
        words = "the curves are of different kinds" if below is None else above
        raise Stop("unknown", Step("budget", "section 2.4.6", words))
    mine, theirs = a.budget.number, b.budget.number
    shown, limit = texts_in_order(a.budget, b.budget)
    said = f"the budget {shown}"
    if start.budget.varies or b.budget.varies:
        said += " of the realised universe"
    if mine <= theirs:
        return Step("budget", "Definition 2.4.5", f"{said} is at most {limit}")
    same = _same_but_for_scope(start, b)
    if same and _has_neighbours(b) and _attainable(b):
        words = (
            f"{said} is above {limit}: telling one dataset from its nearest as well as the first allows is "
            "more than the second allows"
        )
        raise Stop("no", Step("budget", "Proposition 2.4.12", words))
    reason = "" if same else ", and the steps before may have lost something"
    raise Stop("unknown", Step("budget", "Definition 2.4.5", f"{said} is above {limit}{reason}"))


def texts_in_order(mine: Budget, theirs: Budget) -> tuple[str, str]:
    """Two numbers as text, in so many digits that the texts are in the order of the numbers."""
    above = mine.number > theirs.number
    texts = mine.shown(), theirs.shown()
    for digits in range(3, 18):
        if math.inf in (mine.number, theirs.number) or (Fraction(texts[0]) > Fraction(texts[1])) == above:
            return texts
        texts = significant(mine.number, digits, down=above), significant(theirs.number, digits, down=not above)
    return texts


def _same_but_for_scope(a: Specification, b: Specification) -> bool:
    """Whether nothing was lost on the way from ``a``: some mechanism of ``a`` spends all of its budget between the
    nearest datasets of ``b``. With the same universes it tells one dataset from all others; with larger ones it shows
    the distance from one dataset up to that of its nearest, which along paths is Lipschitz.
    """
    blocks = (a.domain, a.input_premetric, a.output_premetric) == (b.domain, b.input_premetric, b.output_premetric)
    along_paths = a.input_premetric.sharpened and a.output_premetric.kind.metric
    return blocks and (a.multiverse == b.multiverse or along_paths)


def _attainable(b: Specification) -> bool:
    """Whether some two laws are known to be further apart than ``b`` allows at the nearest distance."""
    output = b.output_premetric
    return b.nearest is not None and output.kind.attainable(b.budget_at(b.nearest), output.parameter)
