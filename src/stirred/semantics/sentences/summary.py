"""The summary of an explanation: at most five sentences, in numbers of cases out of a hundred, for people in a hurry.

Who is protected; what is published exactly, and what is assumed known or held fixed; what the strongest attacker could
notice, with the mechanism in use and with any mechanism of this guarantee; how many records together; what is not
covered. Each sentence comes with its facts like all others, and its numbers are those of the sections below it.

Keep in mind: a number that rules nothing out is told in words ("nearly all"), and a sentence that does not apply is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stirred.errors import listed_plainly
from stirred.loss import swap_group_power_curve
from stirred.semantics.explained_numbers import Setting
from stirred.semantics.sentences import formatting
from stirred.semantics.sentences.templates import Fact, Number, Numbers, Statement, say
from stirred.spec import facts
from stirred.spec.invariant import Invariant, Nesting, determined, plural
from stirred.spec.specification import held

TOGETHER = (2, 4, 10)
"""Numbers of units that change together: a couple, a family, a large household."""

PRACTICALLY_ALL = 0.99
"""A power beyond this is told as nearly all."""

LISTED = 3
"""Of each class of what is held fixed, so much is named; the rest is counted."""


def summary(given: Setting) -> Iterator[Statement]:
    """The five sentences that an explanation begins with."""
    if not given.change.exists or given.unbounded:
        yield say("summary.nobody" if not given.change.exists else "summary.unlimited")
        return
    yield _whom(given)
    yield from _held_fixed(given)
    yield from _attacker(given)
    if given.own is not None and (back := given.own.put_back) is not None and back.columns:
        yield say("summary.put_back", share=formatting.plain(100 * back.at_least))
    else:
        yield from _together(given)
    yield from _outside(given)


def everyday(invariant: Invariant, nesting: Nesting = ()) -> str:
    """An invariant in everyday words; columns that others of it determine are left out.

    >>> everyday(Invariant("housing unit", by=("block",)))
    'how many housing units each block has'
    >>> everyday(Invariant("household", by=("county", "size"), at_least=1))
    'for each county and size, whether there is any household'
    """
    if invariant.name or invariant.words:
        return str(invariant)
    units = plural(invariant.counts)
    if invariant.where:
        units += " with " + " and ".join(f"{column} = {value}" for column, value in invariant.where)
    finest = [one for one in invariant.by if one not in determined({*invariant.by} - {one}, nesting)]
    every = listed_plainly(finest) if finest else ""
    if invariant.at_least is not None:
        least = invariant.at_least
        some = (
            f"whether there is any {invariant.counts}" if least == 1 else f"whether there are at least {least} {units}"
        )
        return f"for each {every}, {some}" if every else some
    if len(finest) == 1:
        return f"how many {units} each {every} has"
    return f"for each {every}, how many {units} there are" if every else f"how many {units} there are"


def _whom(given: Setting) -> Statement:
    stated, change = given.specification, given.change.words
    unit, condition = stated.input_premetric.unit, stated.condition
    if given.curve is None or alone(given) > PRACTICALLY_ALL:
        whom = f"one {unit} {condition}".rstrip() if given.of_records else "this"
        return say("summary.about", whom=whom, change=change)
    if given.of_records and condition:
        return say("summary.unit_if", unit=unit, condition=condition, change=change)
    one = stated.input_premetric.scale * (1 if stated.input_premetric.bounded else 2)
    if given.of_records and given.change.distance <= one:
        return say("summary.unit", unit=unit, change=change)
    return say("summary.change", change=change)  # as of a swap: nothing is promised about one record alone


def in_classes(given: Setting) -> dict[str, list[str]]:
    """The three classes in everyday words: ``published`` exactly; ``assumed`` known, or held fixed in the comparison;
    and ``protected``, which is the change that is hidden within the budget (nothing, where nothing is)."""
    stated = given.specification
    both, nesting = held(stated), stated.domain.nested
    found = {
        "published": [everyday(one, nesting) for one in both.published],
        "assumed": [everyday(one, nesting) for one in both.assumed],
    }
    if stated.multiverse.universes:
        found["assumed"].append(f"to which listed group of {stated.domain.objects} the data belong")
    return found | {"protected": [f"{whose(given)}{given.change.words}"] if given.protects else []}


def whose(given: Setting) -> str:
    """Whose record a change is of, before its words; nothing where no records are counted."""
    premetric, condition = given.specification.input_premetric, given.specification.condition
    return f"one {premetric.unit}{condition and f' {condition}'}: " if premetric.kind == "records" else ""


def _held_fixed(given: Setting) -> Iterator[Statement]:
    if given.specification.multiverse.universes:
        yield say("summary.listed")
        return
    told = in_classes(given)
    fixed, taken = (_some(told[name]) for name in ("published", "assumed"))
    if fixed and taken:
        yield say("summary.both", fixed=fixed, taken=taken)
    elif fixed:
        yield say("summary.fixed", fixed=fixed)
    elif taken:
        yield say("summary.taken", taken=taken)
    elif given.of_records:
        yield say("summary.free")


def _some(fixed: Sequence[str]) -> str:
    rest = len(fixed) - LISTED
    more = f"; and {rest} more {'table' if rest == 1 else 'tables'} of counts" if rest > 0 else ""
    return "; ".join(fixed[:LISTED]) + more


def _attacker(given: Setting) -> Iterator[Statement]:
    if given.curve is None:
        yield say("summary.unknown")
        return
    level, premetric = given.level, given.specification.input_premetric
    alarms, allowed = formatting.typed(100 * level), float(given.curve.power(level))
    told: dict[str, Fact] = {"alarms": alarms, "allowed": told_of_hundred(allowed)}
    own = given.own
    in_use = float(own.worst.power(level)) if own else given.exact.power(level).upper if given.exact else 1.0
    in_use = min(allowed, in_use)
    gaussian = float(given.gaussian.power(level)) if given.gaussian is not None else 1.0
    if own is not None:
        name = "summary.swap" if in_use <= PRACTICALLY_ALL else "summary.swap_vast"
        rest = {"allowed": told["allowed"], "count": told_of_hundred(in_use)} if in_use <= PRACTICALLY_ALL else {}
        yield say(name, alarms=alarms, units=plural(premetric.unit), **rest)
    elif not given.of_records:
        yield say("summary.tell", **told) if allowed <= PRACTICALLY_ALL else say("summary.tell_vast", alarms=alarms)
    elif given.exact is not None and in_use <= PRACTICALLY_ALL:
        yield say("summary.noise", count=told_of_hundred(in_use), **told)
    elif gaussian <= PRACTICALLY_ALL:
        yield say("summary.gaussian", count=told_of_hundred(gaussian), **told)
    elif allowed <= PRACTICALLY_ALL:
        yield say("summary.any", **told)
    else:
        yield say("summary.vast", alarms=alarms)


def _together(given: Setting) -> Iterator[Statement]:
    premetric, level = given.specification.input_premetric, given.level
    if given.curve is None or not given.of_records:
        return
    powers = {count: power for count in TOGETHER if (power := power_together(given, count)) is not None}
    if not powers:
        return
    units, told = plural(premetric.unit), {count: power for count, power in powers.items() if power <= PRACTICALLY_ALL}
    if not told and alone(given) <= PRACTICALLY_ALL:
        yield say("summary.groups_all", units=units, count=formatting.plain(min(powers)))
    if not told or max(powers.values()) <= level:
        return
    parts = [f"{formatting.of_hundred(power).shown} for {count}" for count, power in told.items()]
    parts += [f"nearly all for {count} or more" for count in list(powers)[len(told) : len(told) + 1]]
    shown = Numbers(tuple(told.values()), listed_plainly(parts))
    yield say("summary.groups", units=units, noticed=shown, alarms=formatting.typed(100 * level))


def power_together(given: Setting, count: int) -> float | None:
    """The greatest power between datasets so many units apart; None where no rule is known."""
    distance = count * given.specification.input_premetric.scale
    if distance <= given.change.distance:
        return None
    curve = given.curve_at(distance)
    if curve is None:
        return None
    power = float(curve.power(given.level))
    if given.own is not None and given.own.rate is not None and distance == int(distance):
        own = swap_group_power_curve(given.own.worst, int(distance), given.own.rate)
        power = min(power, float(own.power(given.level)))
    return power


def alone(given: Setting) -> float:
    """The power for a single change: of the swap itself or Gaussian noise where these are told, else of any method."""
    assert given.curve is not None
    curves = [given.curve, given.gaussian, given.own.worst if given.own is not None else None]
    return min(float(curve.power(given.level)) for curve in curves if curve is not None)


def _outside(given: Setting) -> Iterator[Statement]:
    specification = given.specification
    missing = []
    if given.of_records:
        missing.append(f"what follows about one {specification.input_premetric.unit} from everybody else's records")
    if specification.domain.starts:
        missing.append(f"what was done to the data before the guarantee starts ({specification.domain.starts})")
    if specification.fact.get(facts.PRODUCTS_NOT_COVERED):
        whole = specification.fact.get(facts.PART_OF)
        missing.append("other products made from the same data" + (f" ({whole})" if whole else ""))
    if given.partial:
        missing.append("outputs other than those it speaks of")
    if missing:
        yield say("summary.outside", missing="; ".join(missing))


def told_of_hundred(power: float) -> Number:
    """A power as a number of cases in a hundred, or in words where it rules next to nothing out."""
    return Number(power, "nearly all") if power > PRACTICALLY_ALL else formatting.of_hundred(power)
