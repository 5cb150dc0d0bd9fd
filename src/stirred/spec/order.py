"""Which specification is stronger: A implies B if every mechanism that satisfies A satisfies B.

The answer is *yes* with a chain of steps, each weakening A towards B by a proposition; *no* with a mechanism that
satisfies A and not B; or *unknown*. Blocks are taken in the order domain, multiverse, then input and output premetric
in both orders, then budget. A step that no proposition licenses ends the chain: nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, at_most
from stirred.spec.blocks import Multiverse
from stirred.spec.conversions import convert
from stirred.spec.distances import Change, bring
from stirred.spec.exact import significant
from stirred.spec.finite_order import implies_by_table
from stirred.spec.invariant import Invariant, missing
from stirred.spec.premetrics import Budget
from stirred.spec.specification import Answer, Specification, Step


class Stop(Exception):
    """Raised where a chain of steps ends: no further step is known, or a mechanism shows that there is none."""

    def __init__(self, verdict: str, step: Step) -> None:
        super().__init__(verdict)
        self.verdict = verdict
        self.step = step


def implies(a: Specification, b: Specification) -> Answer:
    """Whether ``a`` is at least as strong as ``b``, with reasons.

    >>> from stirred.spec import flavors
    >>> print(flavors.pure("person").at("1/2").implies(flavors.zcdp("person").at("1/8")))
    yes
      1. epsilon = 0.5 gives rho = 0.13: epsilon tanh(epsilon / 2), of randomised response, the worst case [Kairouz...
      2. the budget 0.123 is at most 0.125 [Definition 2.4.5]
    """
    if a.marks:
        return Answer("unknown", (Step("mark", "marks of the specification", f"the first is marked '{a.marks[0]}'"),))
    if a == b:
        return Answer("yes", (Step("same", "Definition 2.4.5", "the two are the same specification"),))
    if a.domain.datasets or b.domain.datasets:
        return implies_by_table(a, b)
    answers = [_chain(a, b, order) for order in ((_input, _output), (_output, _input))]
    for verdict in ("yes", "no"):
        for answer in answers:
            if answer.verdict == verdict:
                return answer
    return answers[0]


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


_Move = Callable[[Specification, Specification], tuple[Specification, list[Step]]]


def _domain(a: Specification, b: Specification) -> tuple[Specification, list[Step]]:
    if not a.domain.is_part_of(b.domain):
        words = f"the domains differ ('{a.domain.name}' and '{b.domain.name}')"
        if a.domain.name == b.domain.name:
            words = "the domains differ: not the same variables, start, or restrictions"
        raise Stop("unknown", Step("domain", "Remark 2.4.7", words))
    found = []
    if a.domain.variables != b.domain.variables:
        words = "the first reads some of the variables: dropping others brings no two datasets further apart"
        found.append(Step("projection", "Proposition 2.4.15", words))
    return replace(a, domain=b.domain), found


def _multiverse(a: Specification, b: Specification) -> tuple[Specification, list[Step]]:
    if a.multiverse == b.multiverse or not (a.multiverse.invariants or a.multiverse.universes):
        found = []
        if b.multiverse != a.multiverse:
            words = "the second compares fewer datasets: its universes lie within those of the first"
            found.append(Step("refinement", "Proposition 2.4.13", words))
        return replace(a, multiverse=b.multiverse, nearest=b.nearest), found
    if a.multiverse.universes or b.multiverse.universes:
        raise Stop("unknown", Step("multiverse", "Proposition 2.4.13", "listed universes need a finite domain"))
    nesting = {*a.domain.nested, *b.domain.nested}
    lacking = missing(b.flavor.invariants(), a.multiverse.invariants, nesting)
    if not lacking:
        words = "every invariant of the first is one of the second or follows from it"
        # What only the premetric of the second holds fixed is written down, for it is not the premetric of the first.
        declared = not missing(b.multiverse.invariants, a.multiverse.invariants, nesting)
        common = b.multiverse if declared else Multiverse(b.flavor.invariants())
        return replace(a, multiverse=common, nearest=b.nearest), [Step("refinement", "Proposition 2.4.13", words)]
    if witness := _published(a, b, lacking):
        words = (
            f"publishing {witness} costs nothing under the first, whose universes hold it fixed, and no finite budget "
            "of the second allows it"
        )
        raise Stop("no", Step("invariant", "Proposition 2.4.11", words))
    words = f"the second is not known to hold fixed: {'; '.join(map(str, lacking))}"
    raise Stop("unknown", Step("invariant", "Proposition 2.4.13", words))


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


def _input(a: Specification, b: Specification) -> tuple[Specification, list[Step]]:
    if a.input_premetric == b.input_premetric:
        return a, []
    change = bring(a, b.input_premetric, b.flavor.invariants())
    if isinstance(change, Change):
        return change.specification, list(change.steps)
    verdict, words, source = change
    if verdict == "no" and not (separates(b) and _allows_noise(a) and _has_such_files(a, b)):
        verdict = "unknown"
    raise Stop(verdict, Step("input premetric", source, words))


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


def _output(a: Specification, b: Specification) -> tuple[Specification, list[Step]]:
    if a.output_premetric == b.output_premetric:
        return a, []
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
