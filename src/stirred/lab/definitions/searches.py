"""Audit definitions of privacy: search for small mechanisms that break what every definition should have.

*Processing* the output must not break a definition, nor must running one of two mechanisms at random (*convexity*);
then the largest power is *concave* in the false-alarm probability (Theorem 6.4 of Kifer et al. 2022). Kinds of output
premetric are compared with what they declare. Cases are tried in a fixed order: coins and three outputs with simple
probabilities, those that the parameters suggest, the edge where mechanisms just hold, then evenly spread ones; what
breaks is made simple.

Keep in mind: a counterexample carries all that is needed to check it by hand, and an audit without one is no proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any, Self

import numpy as np

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.lab.definitions.two_laws import Array, Definition, coin, edge, level_power, short, told
from stirred.spec.blocks import OutputPremetric

TRIES = 4000  # about how many cases are tried for each property, unless told otherwise
CLEARLY = 1e-9  # numbers that differ by a smaller part are not told apart
UNITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 25, 50, 100, 200, 500, 1000, 10_000, 1_000_000)  # simplest first
PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71])

# -- counterexamples -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Found:
    """A counterexample: matrices of probabilities, one law in each row, that can be checked again and made simpler."""

    definition: Definition
    parts: tuple[Array, ...]

    def check(self) -> bool:
        """Whether the counterexample stands when its numbers are computed again."""
        raise NotImplementedError

    def smaller(self) -> Iterator[tuple[Array, ...]]:
        """The parts with one output less somewhere, which may or may not stand."""
        for place, part in enumerate(self.parts):
            outputs = range(part.shape[1] if part.shape[1] > 2 else 0)
            yield from (self._with(place, _joined(part, *pair)) for pair in combinations(outputs, 2))

    def simplified(self) -> Self:
        """With fewer outputs while it stands, then with the simplest fractions with which it stands."""
        found = self
        while (one := found._first(found.smaller())) is not None:
            found = one
        found = found._first(tuple(_rounded(part, unit) for part in found.parts) for unit in UNITS) or found
        for place in reversed(range(len(found.parts))):
            found = found._first(found._with(place, _rounded(found.parts[place], unit)) for unit in UNITS) or found
        return found

    def _first(self, tried: Iterable[tuple[Array, ...]]) -> Self | None:
        candidates = (replace(self, parts=parts) for parts in tried)
        return next((one for one in candidates if one.check()), None)

    def _lost(self, before: tuple[Array, ...], after: Array) -> bool:
        """Whether mechanisms hold and what was made of them does not."""
        if self.definition.bounded and self.definition.passes(after):  # mostly so, and then all is said
            return False
        definition = self.definition.at(*before)
        return definition is not None and definition.breaks(after)

    def _with(self, place: int, part: Array) -> tuple[Array, ...]:
        return (*self.parts[:place], part, *self.parts[place + 1 :])


class Processed(Found):
    """A mechanism that satisfies the definition, and a kernel after which it does not. Parts: its laws; the kernel."""

    @property
    def after(self) -> Array:
        """The laws of the processed output."""
        return np.asarray(self.parts[0] @ self.parts[1])

    def check(self) -> bool:
        """Whether the mechanism satisfies the definition and the processed one does not."""
        return self._lost(self.parts[:1], self.after)

    def smaller(self) -> Iterator[tuple[Array, ...]]:
        """Smaller counterexamples, with one output less before or after processing."""
        laws, kernel = self.parts
        for one, two in permutations(range(len(kernel)), 2):
            yield _joined(laws, one, two), np.delete(kernel, two, axis=0)
        yield from ((laws, _joined(kernel, *pair)) for pair in combinations(range(kernel.shape[1]), 2))

    def __str__(self) -> str:
        laws, kernel = self.parts
        definition = self.definition.at(laws) or self.definition
        steps = "; ".join(f"output {number} becomes {_becomes(row)}" for number, row in enumerate(kernel, 1))
        return f"{definition.judged(laws)}\nprocessed: {steps}\n{definition.judged(self.after)}"


@dataclass(frozen=True, eq=False)
class Mixed(Found):
    """Two mechanisms that satisfy the definition, and a coin that chooses which to run; the mixture does not.

    Parts: the laws of both; the chances of the coin. ``apart``: one sees which mechanism ran, which is the harder case
    wherever processing does no harm. Else the outputs of both have the same names.
    """

    apart: bool = True

    @property
    def mixture(self) -> Array:
        """The laws of the mechanism that tosses the coin."""
        first, second, ((chance, rest),) = self.parts
        if self.apart:
            return np.hstack([chance * first, rest * second])
        wide = max(first.shape[1], second.shape[1])
        first, second = (np.pad(one, ((0, 0), (0, wide - one.shape[1]))) for one in (first, second))
        return np.asarray(chance * first + rest * second)

    def check(self) -> bool:
        """Whether both mechanisms satisfy the definition and their mixture does not."""
        return self._lost(self.parts[:2], self.mixture)

    def __str__(self) -> str:
        definition = self.definition.at(*self.parts[:2]) or self.definition
        first, second, mixture = (definition.judged(laws) for laws in (*self.parts[:2], self.mixture))
        chance, seen = short(self.parts[2][0, 0]), "seeing" if self.apart else "not seeing"
        return f"{first}\n{second}\nthe first with probability {chance}, else the second, {seen} which\n{mixture}"


class Sagging(Mixed):
    """Three false-alarm probabilities where the greatest power is not concave, and coins that attain the outer two.

    Tossing one of the two coins, not seeing which, makes a test of the middle false-alarm probability with the power of
    the chord. Where mixing and processing do no harm that test holds, so that the greatest power is on or above the
    chord (Theorem 6.4). If it sags below, one of the two is lost; of definitions that survive processing it is
    convexity.
    """

    def check(self) -> bool:
        """Whether the power curve lies below its chord, computed again."""
        level, chord = map(float, self.mixture[:, 0])
        return super().check() and not level_power(self.definition, level) >= chord * (1 - CLEARLY)

    def __str__(self) -> str:
        (low, first), (high, second), (level, chord) = (
            map(short, one[:, 0]) for one in (*self.parts[:2], self.mixture)
        )
        most = short(level_power(self.definition, self.mixture[0, 0]))
        held = f"power {first} at false-alarm probability {low} and power {second} at {high} hold"
        return f"{held}\nat {level} no power above {most} does, and the chord has {chord}"


@dataclass(frozen=True, eq=False)
class Undeclared(Found):
    """Laws for which a kind of output premetric is not what it declares: ``compared`` gives two numbers of which the
    first must not be the larger, and ``words`` says what they are."""

    compared: Callable[[tuple[Array, ...]], tuple[float, float]]
    words: str

    def check(self) -> bool:
        """Whether the first number exceeds the second, by more than rounding."""
        larger, smaller = self.compared(self.parts)
        return larger > smaller * (1 + CLEARLY) + CLEARLY

    def __str__(self) -> str:
        numbers = self.words.format(*map(short, self.compared(self.parts)))
        return "\n".join([*(f"laws {told(part)}" for part in self.parts), numbers])


# -- what an audit says --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PropertyVerdict:
    """What is known about one property: *violated*, *not refuted* in so many cases (never proved), or as declared."""

    property: str
    status: str
    cases: int = 0
    counterexample: Found | None = field(default=None, compare=False)
    words: str = ""

    def __str__(self) -> str:
        return f"{self.property:<15}{self.status:<13}{self.words}".rstrip()


@brief
@dataclass(frozen=True)
class Audit:
    """One verdict for each question of a checklist for new definitions (Kifer et al. 2022, section 4.2)."""

    name: str
    verdicts: tuple[PropertyVerdict, ...]

    def __getitem__(self, property: str) -> PropertyVerdict:
        known = {verdict.property: verdict for verdict in self.verdicts}
        if property not in known:
            raise errors.unknown_choice("verdict on", property, list(known))
        return known[property]

    @property
    def violated(self) -> tuple[str, ...]:
        """The properties that a counterexample was found to."""
        return tuple(verdict.property for verdict in self.verdicts if verdict.counterexample is not None)

    def __str__(self) -> str:
        lines = [f"Audit of {self.name}", *(f"  {verdict}" for verdict in self.verdicts)]
        for property in self.violated:
            lines += ["", f"Against {property}:"]
            lines += [f"  {line}" for line in str(self[property].counterexample).splitlines()]
        return "\n".join(lines)


# -- the audits ----------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def audit(definition: Definition, *, tries: int = TRIES) -> Audit:
    """Look for counterexamples to what a definition should have, in about ``tries`` cases for each property.

    Symmetry (section 6.4) needs no search: a definition that sees laws only treats all recodings of records alike.

    >>> print(audit(Definition.probabilistic(1, 0.05))["processing"].counterexample)
    laws (1/20, 1/10, 17/20) and (0, 1/20, 19/20) hold: 0.05, allowed 0.05
    processed: output 1 becomes 1; output 2 becomes 1; output 3 becomes 2
    laws (3/20, 17/20) and (1/20, 19/20) do not hold: 0.15, allowed 0.05
    """
    held, coins = _mechanisms(definition, tries)
    verdicts = (
        _declared(definition, "transparency"),
        _searched("processing", _processings(definition, held, tries)),
        _declared(definition, "composition"),
        _searched("convexity", _mixtures(definition, coins, held, tries)),
        _searched("concavity", _sags(definition, coins, tries)),
        _declared(definition, "interpretation"),
        _frequentist(definition),
        _declared(definition, "bayesian"),
    )
    return Audit(definition.name, verdicts)


@refuses_wrong_arguments
def audit_kind(output: OutputPremetric, *, tries: int = TRIES) -> Audit:
    """Search for counterexamples to what a kind of output premetric declares about itself, at all budgets.

    Registered kinds are believed as declared everywhere else; this is what tests them.

    >>> audit_kind(OutputPremetric("total-variation"), tries=100)["metric"].status
    'not refuted'
    """
    kind, measure = output.kind, replace(Definition.by_premetric(output), symmetric=False)
    held, coins = _mechanisms(measure, tries)
    tested: list[tuple[str, bool, Iterable[Found]]] = [
        ("processing", kind.immune, _processings(measure, held, tries)),
        ("convexity", True, _mixtures(measure, coins, held, tries)),
        ("metric", kind.metric, _detours(output, measure, held, tries)),
        ("separates", kind.separates, _separate(measure)),
        ("composition", kind.composition is not None, _together(output, measure, held, tries)),
    ]
    verdicts = [
        _searched(name, cases) if says else PropertyVerdict(name, "not declared") for name, says, cases in tested
    ]
    return Audit(output.symbol, tuple(verdicts))


def _searched(name: str, cases: Iterable[Found]) -> PropertyVerdict:
    number = 0
    for number, case in enumerate(cases, 1):
        if case.check():
            return PropertyVerdict(name, "violated", number, case.simplified(), f"in case {number}, see below")
    return PropertyVerdict(name, "not refuted", number, words=f"in {number} cases")


def _declared(definition: Definition, question: str) -> PropertyVerdict:
    words = definition.declared.get(question, "")
    return PropertyVerdict(question, "declared" if words else "not stated", words=words)


def _frequentist(definition: Definition) -> PropertyVerdict:
    levels = (0.01, 0.05, 0.1) if definition.bounded else ()
    words = ", ".join(
        f"{float(level_power(definition, level)):.4g} at false-alarm probability {level:g}" for level in levels
    )
    return PropertyVerdict(
        "frequentist",
        "searched" if words else "no budget",
        words=words and f"if processing does no harm, power at most {words}",
    )


# -- cases ---------------------------------------------------------------------------------------------------


def _processings(definition: Definition, held: Sequence[Array], tries: int) -> Iterator[Found]:
    """Each sort of kernel in turn, joining two outputs first, over all mechanisms."""
    kernels = {n: _kernels(n) for n in {laws.shape[1] for laws in held}}
    for sort, share in enumerate((2, 6, 6, 6)):
        cases = [(laws, kernel) for laws in held for kernel in kernels[laws.shape[1]][sort]]
        yield from (Processed(definition, case) for case in _thinned(cases, tries // share))


def _kernels(n: int) -> tuple[list[Array], ...]:
    """Two outputs become one; two change names; one becomes another or a new one, by chance; and anything."""
    stay, pairs = np.arange(n), list(combinations(range(n), 2))
    joins = [_joined(np.eye(n), *pair) for pair in pairs]
    swaps = [np.eye(n)[np.where(stay == one, two, np.where(stay == two, one, stay))] for one, two in pairs]
    moves = [
        (1 - chance) * np.eye(n + 1)[stay] + chance * np.eye(n + 1)[np.where(stay == start, end, stay)]
        for chance, start, end in product((0.5, 0.1), range(n), range(n + 1))
        if start != end
    ]
    return joins, swaps, moves, [_spread_laws(n, 2 + number % n, number) for number in range(3 * n)]


def _mixtures(definition: Definition, coins: Sequence[Array], held: Sequence[Array], tries: int) -> Iterator[Found]:
    """Coins with coins, seeing which was tossed and not; then any with any, at any chance."""
    half, turns = np.array([[0.5, 0.5]]), (1, -1) if definition.symmetric else (1,)
    pairs = [(one, two[::turn]) for one, two in combinations_with_replacement(coins, 2) for turn in turns]
    for apart in (True, False):
        yield from (Mixed(definition, (*pair, half), apart) for pair in _thinned(pairs, tries // 3))
    for number in range(tries // 3 if held else 0):
        chance, turn, apart, *places = _spread(number, 5)
        one, two = (held[int(place * len(held))] for place in places)
        parts = (one, two[:: turns[int(turn * len(turns))]], np.array([[chance, 1 - chance]]))
        yield Mixed(definition, parts, bool(apart < 0.8))


def _sags(definition: Definition, coins: Sequence[Array], tries: int) -> Iterator[Found]:
    """Three false-alarm probabilities and the greatest powers there; those furthest below the chord first."""
    cases = []
    for low, middle, high in combinations(coins if definition.bounded else (), 3):
        chance = (high - middle)[0, 0] / (high - low)[0, 0]
        case = Sagging(definition, (low, high, np.array([[chance, 1 - chance]])), apart=False)
        cases.append((middle[1, 0] / max(case.mixture[1, 0], 1e-300), case))
    yield from (case for _, case in sorted(cases, key=lambda one: float(one[0]))[: 1 + tries // 4])


def _detours(output: OutputPremetric, measure: Definition, held: Sequence[Array], tries: int) -> Iterator[Found]:
    def apart(laws: Array) -> float:
        return math.sqrt(measure.price(laws)) if output.kind.power == 2 else measure.price(laws)

    def both_ways(parts: tuple[Array, ...]) -> tuple[float, float]:
        there, back = apart(parts[0]), apart(parts[0][::-1])
        return max(there, back), min(there, back)

    def detour(parts: tuple[Array, ...]) -> tuple[float, float]:
        return apart(parts[0][[0, 2]]), apart(parts[0][[0, 1]]) + apart(parts[0][[1, 2]])

    for laws in _thinned(held, tries // 3):
        yield Undeclared(measure, (laws,), both_ways, "{} in one order, {} in the other")
    coins = [np.array([[a, 1 - a], [b, 1 - b], [c, 1 - c]]) for a, b, c in combinations(_levels(measure), 3)]
    spread = [_spread_laws(3, 2 + number % 2, number) for number in range(tries // 3)]
    for laws in (*_thinned(coins, tries // 3), *spread):
        yield Undeclared(measure, (laws,), detour, "{} from the first to the last, {} by way of the one between")


def _separate(measure: Definition) -> Iterator[Found]:
    def declared(parts: tuple[Array, ...]) -> tuple[float, float]:
        return 0.0 if np.any(parts[0].all(axis=0)) else math.inf, measure.price(parts[0])

    for p, q in product(([1.0], [0.5, 0.5], [0.25, 0.75], [0.2, 0.3, 0.5]), repeat=2):
        laws = np.array([[*p, *[0.0] * len(q)], [*[0.0] * len(p), *q]])
        yield Undeclared(measure, (laws,), declared, "no common output, so {} was declared, and it is {}")


def _together(output: OutputPremetric, measure: Definition, held: Sequence[Array], tries: int) -> Iterator[Found]:
    doubled = output if output.kind.composition == "sum" else replace(output, parameter=min(1, 2 * output.at))
    joint = replace(Definition.by_premetric(doubled), symmetric=False)

    def costs(parts: tuple[Array, ...]) -> tuple[float, float]:
        return joint.price(_both(*parts)), measure.price(parts[0]) + measure.price(parts[1])

    for number in range(1 + tries // 2 if held else 0):
        one, two = (held[int(place * len(held))] for place in _spread(number, 2))
        yield Undeclared(measure, (one, two), costs, "both, drawn independently, cost {}; their costs add up to {}")


# -- mechanisms ----------------------------------------------------------------------------------------------


def _mechanisms(definition: Definition, tries: int) -> tuple[list[Array], list[Array]]:
    """Mechanisms that hold, those with few outputs first, with the edge in their direction; and the coins on it."""
    if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
        raise errors.parameter_out_of_range("tries", tries, "a whole number, at least 1")
    coins = _coins(definition)
    hints = [hint for hint in definition.hints if 0 < hint < 0.5]
    steep = 1 / max([4.0, *(2 * hint for hint in definition.hints)])
    suggested = [
        np.array([[x, y, 1 - x - y], [part * x, steep * y, 1 - part * x - steep * y]])
        for x, y, part in product((0.1, *hints), (0.1, 0.25, 0.5, *hints), (0.0, steep))
    ]
    suggested.append(np.array([[2, 2, 1, 1], [1, 1, 2, 2]]) / 6)
    quarters = [(a / 4, b / 4, 1 - (a + b) / 4) for a in range(5) for b in range(5 - a)]
    small = {tuple(sorted(zip(p, q, strict=True))) for p, q in product(quarters, repeat=2) if p != q}
    twice = [_both(one, one) for one in _thinned(coins, 12)]
    spread = [_spread_laws(2, 3 + number % 2, number) for number in range(10 + tries // 20)]
    held = list(coins)
    for laws in (*suggested, *(np.array(one).T for one in sorted(small)), *twice, *spread):
        held += [one for one in (edge(definition, laws), laws) if one is not None and definition.at(one) is not None]
    return sorted(held, key=lambda laws: laws.shape[1]), coins


def _coins(definition: Definition) -> list[Array]:
    """Coins of the greatest power at each false-alarm probability; without a budget, all that cost something."""
    levels = _levels(definition)
    if not definition.bounded:
        return [one for a in levels for b in levels if definition.at(one := coin(a, b)) is not None]
    powers = level_power(definition, levels).tolist()
    return [coin(level, power) for level, power in zip(levels, powers, strict=True) if not math.isnan(power)]


def _levels(definition: Definition) -> list[float]:
    """Simple probabilities, and those that the parameters suggest; with each also one minus it."""
    hints = [hint if hint < 1 else 1 / hint for hint in definition.hints if 0 < hint < math.inf and hint != 1]
    made = [one * two for one, two in combinations(hints, 2)]
    low = {0.0, 0.01, 0.05, 0.1, 0.25, 1 / 3, 0.5, *hints, *made, *(hint / (1 + hint) for hint in hints)}
    return sorted({*low, *(1 - level for level in low)})


def _spread(number: int, dimension: int) -> Array:
    """Points that fill a cube evenly: multiples of the roots of the primes, less their whole parts."""
    return np.asarray((number + 1) * np.sqrt(PRIMES[:dimension]) % 1)


def _spread_laws(rows: int, wide: int, number: int) -> Array:
    """Rows of probabilities, some of them 0."""
    parts = np.maximum(0, -np.log(_spread(number, rows * wide).reshape(rows, wide)) - 0.15)
    parts[~parts.any(axis=1)] = 1
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _both(first: Array, second: Array) -> Array:
    return np.stack([np.kron(p, q) for p, q in zip(first, second, strict=True)])


def _joined(laws: Array, one: int, two: int) -> Array:
    """Output ``two`` becomes output ``one``."""
    result = laws.copy()
    result[:, one] += laws[:, two]
    return np.delete(result, two, axis=1)


def _rounded(laws: Array, unit: int) -> Array:
    """Probabilities that are multiples of 1/unit, with the same sum: those that lose most by rounding down go up."""
    down = np.floor(laws * unit)
    places = np.argsort(np.argsort(down - laws * unit, axis=1, kind="stable"), axis=1)
    return np.asarray((down + (places < unit - down.sum(axis=1, keepdims=True))) / unit)


def _thinned(cases: Sequence[Any], most: int) -> Sequence[Any]:
    """About so many of them, evenly chosen."""
    return cases[:: math.ceil(len(cases) / max(1, most)) or 1]


def _becomes(row: Array) -> str:
    places = [(place, chance) for place, chance in enumerate(row, 1) if chance]
    return " or ".join(f"{place}" if chance == 1 else f"{place} ({short(chance)})" for place, chance in places)
