"""From numbers to sentences: for each section of an explanation, which of its sentences are true here.

Each function reads a :class:`Setting` and says what applies; a sentence whose condition fails is left out, never
weakened. Shown numbers are rounded up where they bound what an attacker gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from stirred.loss import (
    GaussianCurve,
    TradeOff,
    ZcdpCurve,
    approximate_power,
    tradeoff_to_pbdp_epsilon,
    zcdp_to_approximate,
)
from stirred.semantics.belief_bounds import AnyPriorBelief, PredictiveBelief, PureBelief, TrueRecordBelief
from stirred.semantics.concerns import broken_invariants, published_exposures
from stirred.semantics.setting import Concerned, Setting
from stirred.semantics.templates import Fact, Number, Numbers, Statement, say
from stirred.spec import facts
from stirred.spec.exact import display, written
from stirred.spec.invariant import plural


def compares(given: Setting) -> Iterator[Statement]:
    specification, change = given.specification, given.change
    letter = specification.output_premetric.kind.budget
    for mark in specification.marks:
        yield say("compares.mark", mark=mark)
    if not change.exists:
        yield say("compares.nothing", budget=f"{letter} = {specification.budget.shown()}")
        return
    distance = _plain(change.distance)
    if change.status == "assumed":
        yield say("compares.assumed", distance=distance)
    yield say("compares.worlds", change=change.words, distance=distance)
    if not specification.budget.is_curve and specification.budget.number == math.inf:
        yield say("compares.unbounded")
        return
    if change.distance > specification.input_premetric.scale and not specification.budget.is_curve:
        yield say(
            "compares.further",
            letter=letter,
            unit=specification.input_premetric.unit,
            budget=_stated(specification.budget.number),
            bound=_up(specification.budget_at(change.distance)),
        )
    yield say("compares.causal")


def protects(given: Setting) -> Iterator[Statement]:
    specification = given.specification
    premetric = specification.input_premetric
    said = str(premetric).rstrip(".")
    yield say("protects.who", unit=premetric.unit, premetric=said[:1].lower() + said[1:])
    if specification.domain.starts:
        yield say("protects.starts", starts=specification.domain.starts)
    if specification.covers:
        yield say("protects.covers", covers="; ".join(specification.covers))
    yield say("protects.inferences")
    yield say("protects.confidentiality")


def exposed(given: Setting) -> Iterator[Statement]:
    specification = given.specification
    premetric, multiverse = specification.input_premetric, specification.multiverse
    if multiverse.invariants:
        kept = "; ".join(f"({number}) {one}" for number, one in enumerate(multiverse.invariants, 1))
        yield say("exposed.invariants", invariants=kept)
        yield say("exposed.conditioned")
    if multiverse.universes:
        yield say("exposed.listed")
    if premetric.kind == "records" and premetric.bounded:
        yield say("exposed.size", units=plural(premetric.unit))
    if given.change.exists and premetric.kind == "records" and given.change.distance > premetric.scale:
        yield say("exposed.determined", unit=premetric.unit)
    if events := specification.output_premetric.events or (
        specification.output_premetric.partition and "listed groups"
    ):
        yield say("exposed.events", events=str(events))
    if products := specification.fact.get(facts.PRODUCTS_NOT_COVERED):
        yield say("exposed.products", products=str(products))
    yield say("exposed.generalisable")
    if specification.fact.get(facts.MECHANISM) == facts.PERMUTATION_SWAPPING:
        yield say("exposed.legacy", error=Number(0.15, "15%"))


def tests(given: Setting) -> Iterator[Statement]:
    if given.curve is None:
        return
    levels = _levels(given)
    powers = _powers(given.curve.power(given.levels))
    vacuous = all(display(power, 3) == "1.000" for power in powers.values)
    yield say("tests.vacuous" if vacuous else "tests.bound", levels=levels, powers=powers)
    yield say("tests.ideal")
    yield say("tests.worst", unit=given.specification.input_premetric.unit)
    if given.gaussian is not None:
        yield say("tests.gaussian", powers=_powers(given.gaussian.power(given.levels)))
    if given.exact is not None and given.allocation is not None:
        bounds = given.exact_powers(given.exact)
        yield say(
            "tests.exact",
            cells=Number(len(list(given.allocation.cells())), str(len(list(given.allocation.cells())))),
            levels=levels,
            powers=_powers(bound.upper for bound in bounds),
            gap=_small(max(bound.upper - bound.lower for bound in bounds)),
        )
    yield say("tests.rest")
    yield say("tests.meaning")


def beliefs(given: Setting) -> Iterator[Statement]:
    specification = given.specification
    if not given.protects or not given.known:
        return
    unit = specification.input_premetric.unit
    if specification.output_premetric.name == "multiplicative":
        epsilon = specification.budget_at(given.change.distance)
        yield say("beliefs.odds", factor=_factor(epsilon), epsilon=_up(epsilon))
    if given.replaced is None:
        yield say("beliefs.outside", why=_outside(given))
    for bound in given.beliefs:
        delta = given.deltas[0]
        if isinstance(bound, PureBelief):
            factor = _factor(bound.limit)
            yield say("beliefs.every", unit=unit, factor=factor, lowest=_lowest_factor(bound.limit))
            yield say("beliefs.perceived")
            if specification.input_premetric.bounded:
                yield say("beliefs.default", factor=_factor(bound.default_record().limit))
            continue
        name = {TrueRecordBelief: "true", AnyPriorBelief: "any", PredictiveBelief: "predictive"}[type(bound)]
        told: dict[str, Fact] = {"factor": _factor(bound.epsilon(delta)), "delta": _small(delta)}
        if isinstance(bound, TrueRecordBelief):
            told |= {"unit": unit, "assuming": _assuming(bound.curve, given)}
        yield say(f"beliefs.{name}", **told)
    if any(isinstance(bound, PredictiveBelief) for bound in given.beliefs):
        yield say("beliefs.markov")
    if given.beliefs and not isinstance(given.beliefs[0], PureBelief):
        yield say("beliefs.correct")
    yield say("beliefs.before")


def delta(given: Setting) -> Iterator[Statement]:
    curve, pure = given.readable, given.specification.output_premetric.name == "multiplicative"
    if curve is None or pure:
        return
    units, stated = plural(given.specification.input_premetric.unit), given.stated_delta
    for one in (given.gaussian, curve):
        for at in given.read_deltas[:1] if one is not None else ():
            epsilon = tradeoff_to_pbdp_epsilon(one, at)  # type: ignore[arg-type]
            if epsilon < math.inf:
                told = {"factor": _factor(epsilon), "epsilon": _up(epsilon), "delta": _small(at)}
                yield say("delta.bounded", **told, assuming=_assuming(one, given))
    yield from _conversions(given)
    yield say("delta.reading")
    if stated:
        records = given.specification.fact.get(facts.RECORDS)
        said = f", here 1/{int(records):,}" if isinstance(records, int) and records else ""
        yield say("delta.catastrophe", delta=_small(stated), units=units, records=said)
    elif float(curve.power(0.0)) == 0:
        yield say("delta.gradual", units=units)
    yield from _one_point(given, given.gaussian or curve)


def groups(given: Setting) -> Iterator[Statement]:
    specification = given.specification
    premetric = specification.input_premetric
    if not given.protects or not given.known or premetric.kind != "records":
        return
    letter, level = specification.output_premetric.kind.budget, given.level
    for count in given.groups:
        distance = count * premetric.scale
        curve = given.curve_at(distance) if distance > given.change.distance else None
        if curve is None:
            continue
        power = Number(float(curve.power(level)), display(float(curve.power(level)), 3))
        told: dict[str, Fact] = {
            "count": Number(count, str(count)),
            "units": plural(premetric.unit),
            "level": _small(level),
        }
        bound = given.bound_at(distance)
        if bound is not None and specification.output_premetric.kind.metric and premetric.sharpened:
            yield say("groups.units", **told, letter=letter, bound=_up(bound), power=power)
        else:
            yield say("groups.power", **told, power=power)
    for coarse, most in premetric.within:
        size = f"of up to {most:,} counts as that many" if most else "counts as all the units in it, without a limit"
        yield say("groups.within", unit=premetric.unit, coarse=coarse, size=size)
    records = specification.fact.get(facts.RECORDS_PER_RESPONDENT)
    if isinstance(records, int) and records > 1 and (bound := given.bound_at(records * premetric.scale)) is not None:
        yield say("groups.respondent", count=Number(records, str(records)), letter=letter, bound=_up(bound))


def concerns(given: Setting) -> Iterator[Statement]:
    if given.allocation is None or not given.concerned:
        return
    level = given.level
    total = given.allocation.total(rounded=given.rounded)
    for one in given.concerned:
        concern = str(one.exposure.concern)
        shown = concern[:1].upper() + concern[1:]
        broken = broken_invariants(given.specification, one.exposure.concern.columns(given.allocation))
        if broken and one.change.distance > given.change.distance:
            yield say(
                "concerns.barred",
                concern=shown,
                unit=given.specification.input_premetric.unit,
                invariants=listed_plainly(str(invariant) for invariant in broken),
                distance=_plain(one.change.distance),
            )
        if not one.asked:
            continue
        power, worst = (float(curve.power(level)) for curve in (one.gaussian, one.bound))
        yield say(
            "concerns.one",
            concern=shown,
            change=one.change.words,
            queries=one.exposure.queries() or "none",
            rho=_up(one.exposure.rho, 4),
            total=_up(total, 4),
            bound=_up(one.rho, 4),
            level=_small(level),
            power=Number(power, display(power, 3)),
            worst=Number(worst, display(worst, 3)),
        )
        if one.exact is not None:
            yield _exactly(given, one, shown)
    yield say("concerns.choice")
    published = published_exposures(given.allocation)
    if wrong := [one for one in published if not one.agrees]:
        yield say(
            "concerns.printed",
            count=_plain(len(wrong)),
            all=_plain(len(published)),
            printed=_listed([Fraction(one.published.rho) for one in wrong], [one.published.rho for one in wrong]),
            rhos=_listed([one.exposure.rho for one in wrong], [display(one.exposure.rho, 4) for one in wrong]),
        )


def careful(given: Setting) -> Iterator[Statement]:
    output = given.specification.output_premetric
    for finding in given.specification.findings:
        yield say("careful.finding", doubt=finding.words, id=finding.id)
    if not given.known:
        yield say("careful.checklist", definition=output.name)
        return
    if not given.protects:
        return
    if output.name in ("normalised-renyi", "renyi"):
        yield say("careful.rho", letter=output.kind.budget)
    yield say("careful.tails")
    yield say("careful.processing")
    yield say("careful.choosing")
    yield say("careful.several")
    yield say("careful.assumed")


IN_ORDER = (compares, protects, exposed, tests, beliefs, delta, groups, concerns, careful)
"""The sections in the order in which they are read."""


# -- helpers -------------------------------------------------------------------------------------------------


def _conversions(given: Setting) -> Iterator[Statement]:
    """Epsilon of (epsilon, delta)-DP at the smallest delta asked for, by each conversion."""
    at = min(given.deltas)
    found: list[tuple[float | None, str]] = []
    if given.gaussian is not None:
        found.append((given.approximate(given.gaussian, at), "exact for Gaussian noise"))
    ways = {ZcdpCurve: "tight conversion, any noise", GaussianCurve: "exact"}
    if given.stated_delta is None:
        found.append((given.approximate(given.curve, at), ways.get(type(given.curve), "from the trade-off function")))
    if isinstance(given.curve, ZcdpCurve):
        found.append((zcdp_to_approximate(given.curve.rho, at, "classical"), "classical conversion"))
    for epsilon, conversion in found:
        if epsilon is not None and epsilon < math.inf:
            yield say("delta.approximate", delta=_small(at), epsilon=_up(epsilon), conversion=conversion)


def _one_point(given: Setting, curve: TradeOff) -> Iterator[Statement]:
    """What one pair of epsilon and delta hides, where the whole curve is known to promise more."""
    at, level = min(given.deltas), given.level
    epsilon = given.approximate(curve, at)
    if given.stated_delta is not None or epsilon is None or epsilon == math.inf:
        return
    point, whole = float(approximate_power(epsilon, at).power(level)), float(curve.power(level))
    if display(point, 3) != display(whole, 3):
        shown = {"point": Number(point, display(point, 3)), "curve": Number(whole, display(whole, 3))}
        yield say("delta.curve", delta=_small(at), level=_small(level), **shown)


def _exactly(given: Setting, one: Concerned, concern: str) -> Statement:
    assert one.exact is not None
    powers = given.exact_powers(one.exact)
    return say(
        "concerns.exact",
        concern=concern,
        levels=_levels(given),
        powers=_powers(bound.upper for bound in powers),
        gap=_small(max(bound.upper - bound.lower for bound in powers)),
    )


def _assuming(curve: object, given: Setting) -> str:
    if given.gaussian is None:
        return ""
    return ", if the noise is Gaussian" if isinstance(curve, GaussianCurve) else ", whatever the noise"


def _outside(given: Setting) -> str:
    """Why no single record can be redrawn."""
    if given.specification.input_premetric.kind != "records":
        return "Here distances are not counted in records."
    return "Here that world would break what is held fixed, or the rest already determines the record."


def _listed(values: Iterable[Fraction], shown: Iterable[str]) -> Numbers:
    return Numbers(tuple(map(float, values)), listed_plainly(shown))


def _levels(given: Setting) -> Numbers:
    return Numbers(given.levels, listed_plainly(f"{level:g}" for level in given.levels))


def _powers(values: Iterable[float]) -> Numbers:
    powers = tuple(map(float, values))
    return Numbers(powers, listed_plainly(display(power, 3) for power in powers))


def listed_plainly(items: Iterable[str]) -> str:
    """
    >>> listed_plainly(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = list(items)
    return f"{', '.join(first)} and {last}" if first else last


def _up(value: Fraction | float, decimals: int = 2) -> Number:
    return Number(value, display(value, decimals))


def _stated(value: Fraction | float) -> Number:
    text = written(value)
    return Number(value, text if len(text) <= 8 else display(value))


def _plain(value: Fraction | float) -> Number:
    return Number(value, f"{float(value):g}")


def _small(value: float) -> Number:
    """A probability, as it is typed; rounded up to two digits where it is none that people type."""
    text = f"{value:g}"
    if len(text) <= 6 or value == 0:
        return Number(value, text)
    return Number(value, f"{float(Context(2, ROUND_CEILING).create_decimal(Decimal(repr(value)))):g}")


def _factor(epsilon: Fraction | float) -> Number:
    """e^epsilon, three digits, rounded up; as a power where it is very large."""
    if epsilon > 100:
        return Number(math.inf, f"e^{display(epsilon)}")
    value = math.exp(epsilon)
    return Number(value, f"{float(Context(3, ROUND_CEILING).create_decimal(Decimal(repr(value)))):,.6g}")


def _lowest_factor(epsilon: Fraction | float) -> Number:
    value = math.exp(-epsilon)
    return Number(value, f"{float(Context(3, ROUND_FLOOR).create_decimal(Decimal(repr(value)))):.3g}")
