"""Statements about processing an output, by enumeration in exact fractions: pbdp in its three definitions, f-DP by
sets, and immunity to randomised processing (Kifer et al. 2022, section 5.2; thesis, Appendix A.5).

A test is a vector of probabilities of answering 1, one for each outcome. What a linear goal can reach among tests under
one linear constraint is reached where all probabilities but one are 0 or 1, so listing these decides a definition
exactly. Epsilon enters as e^epsilon, a fraction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import TypeAlias

Law: TypeAlias = tuple[Fraction, ...]
Divergence: TypeAlias = Callable[[Law, Law], Fraction | float]

FACTORS = (Fraction(3, 2), Fraction(2), Fraction(5))
"""Values of e^epsilon."""
FINE = Fraction(1, 10**6)


@cache
def laws() -> tuple[Law, ...]:
    """Laws on three outcomes with probabilities in sixths."""
    return tuple(tuple(Fraction(k, 6) for k in (one, two, 6 - one - two)) for one in range(7) for two in range(7 - one))


def pairs() -> Iterator[tuple[Law, Law]]:
    """All pairs of two different laws, in both orders."""
    return itertools.permutations(laws(), 2)


def answers(law: Law, test: Law) -> Fraction:
    """How often a test answers 1."""
    return sum((p * a for p, a in zip(law, test, strict=True)), Fraction(0))


def corners(weights: Law, limit: Fraction) -> Iterator[Law]:
    """Tests whose probabilities times weights add up to at most ``limit``; all but one of these are 0 or 1."""
    for sure in itertools.product((Fraction(0), Fraction(1)), repeat=len(weights)):
        if answers(weights, sure) <= limit:
            yield sure
        for at, weight in enumerate(weights):
            rest = (*sure[:at], Fraction(0), *sure[at + 1 :])
            if weight and 0 < (part := (limit - answers(weights, rest)) / weight) < 1:
                yield (*sure[:at], part, *sure[at + 1 :])


# -- pbdp ------------------------------------------------------------------------------------------------------


def tail(first: Law, second: Law, factor: Fraction) -> Fraction:
    """The probability, under the first law, of a privacy loss above epsilon."""
    return sum((p for p, q in zip(first, second, strict=True) if p > factor * q), Fraction(0))


def delta_of_tests(first: Law, second: Law, factor: Fraction) -> Fraction:
    """The smallest delta of Definition 5.3 in one order: the most often that a test answers 1 under the first law, if
    it does so more than e^epsilon times as often as under the second."""
    if not tail(first, second, factor):
        return Fraction(0)  # no test at all; else the supremum is that over tests which do so at least as often
    excess = tuple(factor * q - p for p, q in zip(first, second, strict=True))
    return max(answers(first, test) for test in corners(excess, Fraction(0)))


def a_processing_near(first: Law, second: Law, factor: Fraction) -> tuple[Law, Law]:
    """Laws of an answer that reaches the delta of tests, but for one part in a million."""
    excess = tuple(factor * q - p for p, q in zip(first, second, strict=True))
    best = max(corners(excess, Fraction(0)), key=lambda test: answers(first, test))
    sure = tuple(Fraction(p > factor * q) for p, q in zip(first, second, strict=True))
    test = tuple((1 - FINE) * a + FINE * b for a, b in zip(best, sure, strict=True))
    return tuple((answers(law, test), 1 - answers(law, test)) for law in (first, second))  # type: ignore[return-value]


@cache
def processings() -> tuple[tuple[Law, ...], ...]:
    """Randomised functions from three outcomes to three, with probabilities in halves; one row for each outcome."""
    rows = [tuple(Fraction(k, 2) for k in row) for row in itertools.product(range(3), repeat=3) if sum(row) == 2]
    return tuple(itertools.product(rows, repeat=3))


def processed(law: Law, kernel: Sequence[Law]) -> Law:
    """The law of a processed outcome."""
    return tuple(answers(law, column) for column in zip(*kernel, strict=True))


def satisfies_5_5(first: Law, second: Law, factor: Fraction, delta: Fraction) -> bool:
    """Definition 5.5, in both orders: a test that answers 1 with probability e^-epsilon delta at most under one law
    does so with delta at most under the other."""
    return all(
        answers(other, test) <= delta
        for one, other in ((first, second), (second, first))
        for test in corners(one, delta / factor)
    )


def theorem_5_4() -> bool:
    """Whether Definitions 5.2 and 5.3 have the same smallest delta: no processing on the list has a privacy loss above
    epsilon more often than tests allow, and some processing does so as often, but for one part in a million."""
    for first, second in itertools.islice(pairs(), 0, None, 17):
        for factor in FACTORS:
            delta = delta_of_tests(first, second, factor)
            if any(
                tail(processed(first, kernel), processed(second, kernel), factor) > delta
                for kernel in itertools.islice(processings(), 0, None, 3)
            ):
                return False
            if delta and tail(*a_processing_near(first, second, factor), factor) < (1 - FINE) * delta:
                return False
    return True


def theorem_5_7() -> bool:
    """Whether Definitions 5.3 and 5.5 hold at the same deltas, also at the smallest one and just below it."""
    for first, second in itertools.islice(pairs(), 0, None, 37):
        for factor in FACTORS:
            least = max(delta_of_tests(first, second, factor), delta_of_tests(second, first, factor))
            deltas = {Fraction(k, 12) for k in range(1, 13)} | {
                least,
                least * (1 - FINE),
                min(least + FINE, Fraction(1)),
            }
            if any(satisfies_5_5(first, second, factor, one) != (least <= one) for one in deltas if one > 0):
                return False
    return True


# -- f-DP by sets ----------------------------------------------------------------------------------------------


def allowed(lines: Sequence[tuple[Fraction, Fraction]], level: Fraction, convex: bool = True) -> Fraction:
    """1 - f at a level. A convex f is the largest of some falling lines and 0; another, the smallest of them."""
    heights = [height - slope * level for height, slope in lines]
    return 1 - (max(*heights, Fraction(0)) if convex else max(min(heights), Fraction(0)))


def by_sets(first: Law, second: Law, most: Callable[[Fraction], Fraction]) -> bool:
    """Whether no set of outcomes is more probable under the second law than its probability under the first allows."""
    sets = itertools.product((Fraction(0), Fraction(1)), repeat=len(first))
    return all(answers(second, one) <= most(answers(first, one)) for one in sets)


def by_tests(first: Law, second: Law, most: Callable[[Fraction], Fraction]) -> bool:
    """The same for tests that may throw coins, at levels in twelfths."""
    return all(
        answers(second, test) <= most(answers(first, test))
        for level in (Fraction(k, 12) for k in range(13))
        for test in corners(first, level)
    )


def remark_5_11() -> bool:
    """Whether f-DP for sets is f-DP for tests that throw coins, for functions f of two lines; and whether it is not
    where f is not convex."""
    slopes = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
    functions = [
        ((1 - gap, one), ((1 - gap) / other, 1 / other))
        for one, other in itertools.product(slopes, repeat=2)
        for gap in (Fraction(0), Fraction(1, 6))
        if one >= 1 <= other
    ]

    def agree(convex: bool) -> bool:
        allowances = [partial(allowed, lines, convex=convex) for lines in functions]
        return all(
            by_sets(*pair, most) == by_tests(*pair, most)
            for pair in itertools.islice(pairs(), 0, None, 47)
            for most in allowances
        )

    return agree(True) and not agree(False)


# -- immunity to randomised processing (thesis, Appendix A.5) --------------------------------------------------


def _total_variation(first: Law, second: Law) -> Fraction:
    return sum((abs(p - q) for p, q in zip(first, second, strict=True)), Fraction(0)) / 2


def _largest_ratio(first: Law, second: Law) -> Fraction | float:
    """e to the power of D_Mult."""
    ratios = [max(p / q, q / p) if p and q else float("inf") for p, q in zip(first, second, strict=True) if p or q]
    return max(ratios)


def _by_sets(first: Law, second: Law) -> Fraction:
    """Definition 5.3 with tests that throw no coins, at e^epsilon = 2."""
    sets = itertools.product((Fraction(0), Fraction(1)), repeat=len(first))
    found = [(answers(first, one), answers(second, one)) for one in sets]
    return max((p for p, q in found if p > 2 * q), default=Fraction(0))


DIVERGENCES: dict[str, Divergence] = {
    "D_TV": _total_variation,
    "D_Mult": _largest_ratio,
    "pbdp": lambda first, second: delta_of_tests(first, second, Fraction(2)),
    "the tail of the privacy loss": lambda first, second: tail(first, second, Fraction(2)),
    "pbdp by sets": _by_sets,
}
"""Of these the fourth is not immune to processing, and the last is changed by noise beside the output."""


def _few() -> list[tuple[Law, Law]]:
    return list(itertools.islice(pairs(), 0, None, 61))


def _beside(law: Law, noise: Law) -> Law:
    return tuple(p * q for p in law for q in noise)


def _mapped(law: Law, images: Sequence[int]) -> Law:
    return tuple(sum((p for p, to in zip(law, images, strict=True) if to == at), Fraction(0)) for at in range(3))


_NOISES: tuple[Law, ...] = ((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 6), Fraction(5, 6)))


@cache
def ignores_noise(of: Divergence) -> bool:
    """Definition A.5.2: independent noise beside the output changes nothing."""
    return all(of(_beside(p, noise), _beside(q, noise)) == of(p, q) for p, q in _few() for noise in _NOISES)


@cache
def immune(of: Divergence) -> bool:
    """(2.11): no function of the outcome is further apart."""
    maps = list(itertools.product(range(3), repeat=3))
    return all(of(_mapped(p, images), _mapped(q, images)) <= of(p, q) for p, q in _few() for images in maps)


@cache
def immune_with_noise(of: Divergence) -> bool:
    """(A.5): no function of the outcome and of independent noise is further apart."""
    maps = list(itertools.product(range(2), repeat=6))
    for p, q in _few():
        most = of(p, q)
        for noise in _NOISES:
            first, second = _beside(p, noise), _beside(q, noise)
            if of(first, second) > most or any(of(_mapped(first, one), _mapped(second, one)) > most for one in maps):
                return False
    return True


def proposition_a_5_3() -> bool:
    """Whether divergences that independent noise does not change are immune to randomised processing just where they
    are to functions; and whether one that it changes is immune to functions alone."""
    unchanged = {name for name, of in DIVERGENCES.items() if ignores_noise(of)}
    same = {name for name, of in DIVERGENCES.items() if immune(of) == immune_with_noise(of)}
    return unchanged == same == set(DIVERGENCES) - {"pbdp by sets"}


def corollary_a_5_4() -> bool:
    """Whether (A.5) holds for the divergences that independent noise does not change and functions do not raise, and
    for no other."""
    return all(immune_with_noise(of) == (ignores_noise(of) and immune(of)) for of in DIVERGENCES.values())
