"""Choose the sentences of an explanation: for each section, those that are true of the guarantee.

Each function reads a :class:`Setting` and says what applies; a sentence whose condition fails is left out, never
weakened. Shown numbers are rounded up where they bound what an attacker gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from stirred.errors import listed, listed_plainly
from stirred.errors.kinds import capital
from stirred.loss import (
    GaussianCurve,
    RenyiCurve,
    TradeOff,
    ZcdpCurve,
    approximate_power,
    swap_group_power_curve,
    zcdp_to_approximate,
)
from stirred.semantics.belief_bounds import AnyPriorBelief, PredictiveBelief, PureBelief, TrueRecordBelief
from stirred.semantics.concern_changes import broken_invariants
from stirred.semantics.concerns import published_exposures
from stirred.semantics.explained_numbers import Concerned, Setting
from stirred.semantics.sentences import formatting
from stirred.semantics.sentences.templates import Fact, Number, Numbers, Statement, say
from stirred.semantics.swap_exposure import TWO_RECORDS, PutBackShare, SwapExposure, SwapPair, halving
from stirred.semantics.testing import held_fixed
from stirred.spec import facts
from stirred.spec.exact import display
from stirred.spec.invariant import Invariant, plural
from stirred.spec.specification import held, taken_as_known

NEARLY_ALL = 0.95
"""Of exchanged pairs, when more than this part would be noticed that is said."""

VAST = math.log(10**6)
"""An epsilon beyond this, a factor of a million, is told as no practical limit."""

NEARLY_CERTAIN = 1 - 1e-6
"""Powers beyond this are told by the probability of missing the change."""


def noticed(given: Setting) -> Iterator[Statement]:
    """How many exchanged pairs of a swapped file would be noticed: the swap's own numbers, before its epsilon."""
    specification, own, level = given.specification, given.own, given.level
    if specification.fact.get(facts.MECHANISM) != facts.PERMUTATION_SWAPPING or not given.protects:
        return
    if own is None:
        yield say("noticed.unknown")
        return
    alarms, power = formatting.typed(100 * level), float(own.worst.power(level))
    count, unit = formatting.of_hundred(power), specification.input_premetric.unit
    yield say("noticed.worst", count=count, alarms=alarms, where=_where(own), units=plural(unit))
    if power > NEARLY_ALL:
        yield say("noticed.nearly")
    if (back := own.put_back) is not None:
        yield from _put_back(back)
    if own.rate is not None:
        yield say("noticed.both", both=formatting.small(float(own.rate**2)), units=plural(unit))
    elif specification.fact.get(facts.ROUNDS):
        yield say("noticed.rounds")
    else:
        yield say("noticed.rates")
    yield from _unique_pairs(given, own, alarms)
    if own.typical is not None:
        yield _typical(own.typical, level, alarms)
    yield from (_named(one, level, alarms) for one in own.named)
    yield from _halving(own, level, power, unit)
    epsilon = specification.budget_at(given.change.distance)
    yield say(
        "noticed.epsilon",
        unit=unit,
        budget=formatting.up(specification.budget.number),
        bound=formatting.up(epsilon),
        count=formatting.of_hundred(float(given.curve.power(level)) if given.curve is not None else 1.0),
    )
    if own.loss is not None:
        yield say(
            "noticed.loss",
            loss=formatting.up(own.loss.epsilon),
            budget=formatting.up(specification.budget.number),
            unit=unit,
            strata=formatting.whole(own.loss.strata),
        )


def _put_back(back: PutBackShare) -> Iterator[Statement]:
    if not back.columns:
        yield say("noticed.put_back_not_found")
        return
    share = formatting.plain(100 * back.at_least)  # rounded down where it was stated
    yield say("noticed.put_back", share=share, columns=listed(back.columns), variables=listed(back.variables))
    if back.limit is not None:
        yield say("noticed.put_back_limit", limit=formatting.plain(100 * back.limit))


def compares(given: Setting) -> Iterator[Statement]:
    """What is compared: the two datasets, and how far apart they are."""
    specification, change = given.specification, given.change
    letter, budget = specification.output_premetric.kind.budget, specification.budget
    for mark in specification.marks:
        yield say("compares.mark", mark=mark)
    if not change.exists:
        yield say("compares.nothing", budget=f"{letter} = {budget.shown()}")
        return
    distance = formatting.plain(change.distance)
    if change.status == "assumed":
        yield say("compares.assumed", distance=distance)
    yield say("compares.worlds", change=change.words, distance=distance)
    if budget.by_universe:
        yield say("compares.universes", budget=formatting.up(budget.number))
    if budget.varies:
        yield say("compares.varies", varies=budget.varies)
    if given.unbounded:
        yield say("compares.unbounded")
        return
    premetric = specification.input_premetric
    reaches = premetric.sharpened or premetric.kind in ("metric", "table")
    if change.distance > premetric.scale and not budget.is_curve and reaches:
        yield say(
            "compares.further",
            letter=letter,
            unit=premetric.unit,
            budget=formatting.up(budget.number),
            bound=formatting.up(specification.budget_at(change.distance)),
        )
    if given.of_records:
        yield say("compares.causal")


def protects(given: Setting) -> Iterator[Statement]:
    """Who is protected, and from where on."""
    specification = given.specification
    premetric = specification.input_premetric
    said = str(premetric).rstrip(".")
    unit = f"{premetric.unit}, {specification.condition}" if specification.condition else premetric.unit
    yield say("protects.who", unit=unit, premetric=said[:1].lower() + said[1:])
    if specification.domain.starts:
        yield say("protects.starts", starts=specification.domain.starts)
    if specification.covers:
        yield say("protects.covers", covers="; ".join(specification.covers))
    yield say("protects.inferences")
    yield say("protects.confidentiality")


def exposed(given: Setting) -> Iterator[Statement]:
    """What is not protected: invariants, products and inferences outside the guarantee."""
    specification = given.specification
    premetric, multiverse = specification.input_premetric, specification.multiverse
    both = held(specification)
    if both.published:
        yield say("exposed.invariants", invariants=_numbered(both.published))
        yield say("exposed.conditioned")
    if assumed := [one for one in both.assumed if one not in premetric.fixes()[:1]]:  # that one is said below
        yield say("exposed.assumed", assumed=_numbered(assumed))
    if taken := taken_as_known(specification):
        yield say("exposed.taken", taken=_numbered(taken))
    if multiverse.universes:
        yield say("exposed.listed")
    if premetric.kind == "records" and premetric.bounded:
        yield say("exposed.size", units=plural(premetric.unit))
    if given.change.exists and given.of_records and given.replaced is None:
        yield say("exposed.determined", unit=premetric.unit)
    output = specification.output_premetric
    if given.partial:
        yield say("exposed.events", events=output.events or "listed groups of outputs")
    if alone := specification.number(facts.ALONE):
        named = (specification.fact.get(name) for name in (facts.MATCH, facts.SWAP))
        columns = ", ".join(str(names) for names in named if names)
        counts = Number(alone, "1 is" if alone == 1 else f"{int(alone):,} are")
        yield say("exposed.alone", columns=columns, counts=counts, unit=premetric.unit)
    if products := specification.fact.get(facts.PRODUCTS_NOT_COVERED):
        yield say("exposed.products", products=str(products))
    if whole := specification.fact.get(facts.PART_OF):
        yield say("exposed.whole", whole=str(whole))
    if given.of_datasets:
        yield say("exposed.generalisable")
    else:
        yield say("exposed.models", domain=specification.domain.name)
    if specification.fact.get(facts.MECHANISM) == facts.PERMUTATION_SWAPPING:
        yield say("exposed.legacy", error=Number(0.15, "15%"))


def tests(given: Setting) -> Iterator[Statement]:
    """What a test can find out: its power at each false-alarm probability."""
    if given.curve is None:
        if given.known and given.protects:
            yield say("tests.none")
        return
    levels = formatting.all_typed(given.levels)
    powers = formatting.powers(given.curve.power(given.levels), given.levels)
    if max(given.missed) == 0:
        yield say("tests.certain", levels=levels)
    elif min(powers.values) > NEARLY_CERTAIN:
        yield say("tests.vacuous", levels=levels, misses=formatting.misses(given.missed))
    else:
        only = " that looks at these events alone" if given.partial else ""
        yield say("tests.bound", levels=levels, powers=powers, only=only)
    yield say("tests.ideal")
    yield say("tests.worst", unit=given.specification.input_premetric.unit)
    if given.gaussian is not None:
        yield say("tests.gaussian", powers=formatting.powers(given.gaussian.power(given.levels), given.levels))
    if given.exact is not None and given.allocation is not None:
        bounds = given.exact_powers(given.exact)
        yield say(
            "tests.exact",
            cells=formatting.plain(len(list(given.allocation.cells()))),
            levels=levels,
            powers=formatting.powers((bound.upper for bound in bounds), given.levels),
            gap=formatting.small(max(bound.upper - bound.lower for bound in bounds)),
        )
    if given.of_records:
        yield say("tests.rest")
    yield say("tests.meaning")


def beliefs(given: Setting) -> Iterator[Statement]:
    """How much the release can change what an attacker believes."""
    specification = given.specification
    if not given.protects or not given.known:
        return
    unit, fixed = specification.input_premetric.unit, held_fixed(specification)
    pure = specification.output_premetric.kind.pure
    knowing = ", of somebody who knows what is held fixed" if fixed else ""
    if pure and not given.partial:
        epsilon = specification.budget_at(given.change.distance)
        whom = ", whatever else they know" if given.of_datasets else " of the domain"
        yield say("beliefs.odds", factor=formatting.factor(epsilon), epsilon=formatting.up(epsilon), whom=whom)
    if not given.beliefs:
        yield say("beliefs.outside", why=_outside(given))
    at = given.read_deltas[0]
    for bound in given.beliefs:
        if isinstance(bound, PureBelief):
            factor, lowest = formatting.factor(bound.limit), formatting.lowest_factor(bound.limit)
            yield say("beliefs.every", unit=unit, factor=factor, lowest=lowest, knowing=knowing)
            yield say("beliefs.perceived", factor=factor)
            if specification.input_premetric.bounded and not fixed:
                yield say("beliefs.default", factor=formatting.factor(bound.default_record().limit))
            continue
        epsilon = given.bounded(bound.curve, at) if isinstance(bound, TrueRecordBelief) else bound.epsilon(at)
        if epsilon == math.inf or (isinstance(bound, PredictiveBelief) and epsilon >= -math.log(at) * (1 - 1e-12)):
            continue  # nothing is known, or nothing but what holds for every mechanism
        told: dict[str, Fact] = {"factor": formatting.factor(epsilon), "delta": formatting.small(at)}
        if isinstance(bound, TrueRecordBelief):
            name = "beliefs.true" if epsilon <= VAST else "beliefs.vast"
            yield say(name, unit=unit, knowing=knowing, assuming=_assuming(bound.curve, given), **told)
        elif epsilon > VAST:
            continue  # no more than what was just said
        elif isinstance(bound, AnyPriorBelief):
            yield say("beliefs.any", **told)
        else:
            yield say("beliefs.predictive", knowing=knowing, **told)
    if given.exact_beliefs is not None:
        least, most = given.exactly_bounded(at)
        if most < math.inf:
            told = {"factor": formatting.factor(most), "delta": formatting.small(at)}
            yield say("beliefs.exact", gap=formatting.small(most - least), **told)
    if any(isinstance(bound, PredictiveBelief) for bound in given.beliefs):
        yield say("beliefs.markov")
    if given.beliefs and not isinstance(given.beliefs[0], PureBelief):
        yield say("beliefs.correct")
    if given.of_datasets:
        yield say("beliefs.before")
        if pure and given.beliefs:
            yield say("beliefs.related")


def delta(given: Setting) -> Iterator[Statement]:
    """How to read epsilon and delta."""
    curve, pure = given.readable, given.specification.output_premetric.kind.pure
    if curve is None or pure:
        return
    units, certain = plural(given.specification.input_premetric.unit), given.certainty
    for one in (given.gaussian, curve):
        for at in given.read_deltas[:1] if one is not None else ():
            epsilon = given.bounded(one, at)  # type: ignore[arg-type]
            if epsilon < math.inf:
                told = {
                    "factor": formatting.factor(epsilon),
                    "epsilon": formatting.up(epsilon),
                    "delta": formatting.small(at),
                }
                name = "delta.bounded" if epsilon <= VAST else "delta.vast"
                yield say(name, **told, assuming=_assuming(one, given))
    yield from _conversions(given)
    yield say("delta.reading")
    if certain > 0:
        records = given.specification.fact.get(facts.RECORDS)
        said = f", here 1/{int(records):,}" if isinstance(records, int) and records else ""
        yield say("delta.catastrophe", delta=formatting.small(certain), units=units, records=said)
    else:
        yield say("delta.gradual", units=units)
    yield from _one_point(given, given.gaussian or curve)


def groups(given: Setting) -> Iterator[Statement]:
    """What the guarantee is worth to households and other groups of units."""
    specification = given.specification
    premetric = specification.input_premetric
    if not given.protects or not given.known or premetric.kind != "records":
        return
    letter, level = specification.output_premetric.kind.budget, formatting.typed(given.level)
    linear = specification.output_premetric.kind.metric and premetric.sharpened
    how = "change" if premetric.bounded else "are added or removed"
    for count in given.groups:
        distance = count * premetric.scale
        curve = given.curve_at(distance) if distance > given.change.distance else None
        if curve is None:
            continue
        told: dict[str, Fact] = {
            "count": formatting.plain(count),
            "units": plural(premetric.unit),
            "how": how,
            "level": level,
        }
        power = formatting.power(float(curve.power(given.level)), given.level)
        if linear:
            bound, some = formatting.up(specification.budget_at(distance)), power.value <= NEARLY_CERTAIN
            name = "groups.units" if some else "groups.vast"
            yield say(name, **told, letter=letter, bound=bound, **({"power": power} if some else {}))
        else:
            yield say("groups.power", **told, power=power)
        if given.own is not None and given.own.rate is not None and distance == int(distance):
            further = swap_group_power_curve(given.own.worst, int(distance), given.own.rate)
            yield say("groups.swap", **told, power=formatting.power(float(further.power(given.level)), given.level))
    for coarse, most in premetric.within:
        size = f"of up to {most:,} counts as that many" if most else "counts as all the units in it, without a limit"
        yield say("groups.within", unit=premetric.unit, coarse=coarse, size=size)
    records = specification.fact.get(facts.RECORDS_PER_RESPONDENT)
    if isinstance(records, int) and records > 1:
        distance = records * (premetric.scale if premetric.bounded else 2 * premetric.scale)
        if linear:
            yield say(
                "groups.respondent",
                count=formatting.plain(records),
                letter=letter,
                bound=formatting.up(specification.budget_at(distance)),
            )
        elif (curve := given.curve_at(distance)) is not None:
            power = formatting.power(float(curve.power(given.level)), given.level)
            yield say("groups.answers", count=formatting.plain(records), level=level, power=power)


def concerns(given: Setting) -> Iterator[Statement]:
    """What the guarantee is worth to someone concerned about one attribute or place."""
    if given.allocation is None or not (given.concerned or given.unprotected):
        return
    level = given.level
    total = given.allocation.total(rounded=given.rounded)
    for one in given.unprotected:
        yield say("concerns.fixed", concern=_title(one), invariants=_broken(given, one))
    for one in given.concerned:
        title = _title(one)
        if one.worst.joint and (broken := _broken(given, one)):
            yield say(
                "concerns.barred",
                concern=title,
                unit=given.specification.input_premetric.unit,
                invariants=broken,
                distance=formatting.plain(one.worst.change.distance),
                change=one.worst.change.words,
                assumed=_assumed(one),
                units=plural(given.specification.input_premetric.unit),
                rho=formatting.up(one.worst.rho, 4),
                any=formatting.up(one.worst.any_rho, 4),
            )
        if not one.asked:
            continue
        power, worst = (float(curve.power(level)) for curve in (one.gaussian, one.bound))
        yield say(
            "concerns.one",
            concern=title,
            change=one.worst.change.words,
            assumed=_assumed(one),
            queries=one.exposure.queries() or "none",
            rho=formatting.up(one.exposure.rho, 4),
            total=formatting.up(total, 4),
            bound=formatting.up(one.worst.rho, 4),
            any=formatting.up(one.worst.any_rho, 4),
            level=formatting.typed(level),
            power=formatting.power(power),
            worst=formatting.power(worst),
        )
        if one.exact is not None:
            yield _exactly(given, one, title)
    yield say("concerns.choice")
    published = published_exposures(given.allocation)
    if wrong := [one for one in published if not one.agrees]:
        yield say(
            "concerns.printed",
            count=formatting.plain(len(wrong)),
            all=formatting.plain(len(published)),
            printed=formatting.listed_numbers(
                [Fraction(one.published.rho) for one in wrong], [one.published.rho for one in wrong]
            ),
            rhos=formatting.listed_numbers(
                [one.exposure.rho for one in wrong], [display(one.exposure.rho, 4) for one in wrong]
            ),
        )


def careful(given: Setting) -> Iterator[Statement]:
    """What to keep in mind when reading the rest, with the findings of the guarantee."""
    output = given.specification.output_premetric
    for finding in given.specification.findings:
        yield say("careful.finding", doubt=finding.words, id=finding.id)
    if not given.known:
        yield say("careful.checklist", definition=output.name)
        return
    if not given.protects:
        return
    if output.kind.finite_for_gaussians:
        yield say("careful.rho", letter=output.kind.budget)
    yield say("careful.tails")
    yield say("careful.processing")
    yield say("careful.choosing")
    yield say("careful.several")
    yield say("careful.assumed")


IN_ORDER = (noticed, compares, protects, exposed, tests, beliefs, delta, groups, concerns, careful)
"""The sections in the order in which they are read."""


# -- helpers -------------------------------------------------------------------------------------------------


def _where(own: SwapExposure) -> str:
    if own.strata is None:
        return f"with strata of up to {own.largest:,} records, whichever sizes there are"
    one = own.strata == 1
    sizes = f"{own.largest:,}" if own.smallest == own.largest else f"{own.smallest:,} to {own.largest:,}"
    which = "stratum" if one else f"{own.strata:,} strata"
    return f"with the {which} of {sizes} records that a swap of this release can change"


def _unique_pairs(given: Setting, own: SwapExposure, alarms: Number) -> Iterator[Statement]:
    if own.most is None or own.least is None or own.uniques is None or own.records is None:
        return
    yield say(
        "noticed.unique" if own.real else "noticed.would",
        units=plural(given.specification.input_premetric.unit),
        most=formatting.of_hundred(own.most.power(given.level)),
        least=formatting.of_hundred(own.least.power(given.level)),
        alarms=alarms,
        pair=own.most.words,
        uniques=formatting.whole(own.uniques),
        records=formatting.whole(own.records),
    )
    yield _believed(own.most)


def _believed(pair: SwapPair) -> Statement:
    belief = pair.belief(0.5)
    assert belief is not None
    return say("noticed.belief", pair=pair.words, belief=formatting.power(belief))


def _typical(pair: SwapPair, level: float, alarms: Number) -> Statement:
    told: dict[str, Fact] = {"alarms": alarms, "pair": pair.words}
    if pair.how == TWO_RECORDS:
        return say("noticed.typical", count=formatting.of_hundred(pair.power(level)), **told)
    return say("noticed.hidden", count=formatting.about_of_hundred(pair.power(level)), held=_hidden(pair), **told)


def _named(pair: SwapPair, level: float, alarms: Number) -> Statement:
    told: dict[str, Fact] = {"alarms": alarms, "pair": pair.words}
    if pair.how == TWO_RECORDS:
        belief = pair.belief(0.5)
        assert belief is not None
        count = formatting.of_hundred(pair.power(level))
        return say("noticed.named", count=count, **told, belief=formatting.power(belief))
    return say("noticed.standing", count=formatting.about_of_hundred(pair.power(level)), **told, held=_hidden(pair))


def _hidden(pair: SwapPair) -> Numbers:
    """Among how many records that share their held values the two are hidden."""
    return formatting.listed_numbers(pair.held, map("{:,}".format, pair.held))


def _halving(own: SwapExposure, level: float, power: float, unit: str) -> Iterator[Statement]:
    """What it would take to halve the numbers: the rate, the match."""
    if own.rate is not None and power / 2 > level:
        count, half = formatting.of_hundred(power), formatting.of_hundred(power / 2)
        found = halving(power / 2, level)
        if found is None:
            yield say("noticed.unhalved", count=count)
        else:
            rate, least = found
            enough = own.smallest is not None and own.smallest >= least
            yield say(
                "noticed.halve",
                count=count,
                half=half,
                rate=Number(rate, f"{float(rate):.0%}"),
                now=Number(own.rate, f"{100 * float(own.rate):g}%"),
                least=formatting.whole(least),
                match=", which all strata here have" if enough else ": a coarser match where strata are smaller",
            )
    if own.typical is not None and (times := own.typical.more_sharing(level, own.typical.power(level) / 2)) is not None:
        yield say("noticed.share", times=formatting.plain(math.ceil(times)), units=plural(unit))


def _conversions(given: Setting) -> Iterator[Statement]:
    """Epsilon of (epsilon, delta)-DP at the smallest delta asked for, by each conversion."""
    at = min(given.deltas)
    found: list[tuple[float | None, str]] = []
    if given.gaussian is not None:
        found.append((given.approximate(given.gaussian, at), "exact for Gaussian noise"))
    ways = {ZcdpCurve: "tight conversion, any noise", GaussianCurve: "exact", RenyiCurve: "tight conversion"}
    if given.stated_delta is None:
        found.append((given.approximate(given.curve, at), ways.get(type(given.curve), "from the trade-off function")))
    if isinstance(given.curve, ZcdpCurve):
        found.append((zcdp_to_approximate(given.curve.rho, at, "classical"), "classical conversion"))
    for epsilon, conversion in found:
        if epsilon is not None and epsilon < math.inf:
            yield say(
                "delta.approximate", delta=formatting.small(at), epsilon=formatting.up(epsilon), conversion=conversion
            )


def _one_point(given: Setting, curve: TradeOff) -> Iterator[Statement]:
    """What one pair of epsilon and delta hides, where the whole curve is known to promise more."""
    at, level = min(given.deltas), given.level
    epsilon = given.approximate(curve, at)
    if given.stated_delta is not None or epsilon is None or epsilon == math.inf:
        return
    point, whole = float(approximate_power(epsilon, at).power(level)), float(curve.power(level))
    told = {"point": formatting.power(point, level), "curve": formatting.power(whole, level)}
    if told["point"].shown != told["curve"].shown:
        yield say("delta.curve", delta=formatting.small(at), level=formatting.typed(level), **told)


def _numbered(invariants: Iterable[Invariant]) -> str:
    return "; ".join(f"({number}) {one}" for number, one in enumerate(invariants, 1))


def _title(one: Concerned) -> str:
    return capital(str(one.exposure.concern))


def _broken(given: Setting, one: Concerned) -> str:
    """What one record that changes alone would break."""
    broken = broken_invariants(given.specification, one.exposure.concern.columns(one.exposure.allocation))
    return listed_plainly(map(str, broken)) if broken else ""


def _assumed(one: Concerned) -> str:
    return " (if there are such datasets)" if one.worst.change.status == "assumed" else ""


def _exactly(given: Setting, one: Concerned, concern: str) -> Statement:
    assert one.exact is not None
    powers = given.exact_powers(one.exact)
    return say(
        "concerns.exact",
        concern=concern,
        levels=formatting.all_typed(given.levels),
        powers=formatting.powers(bound.upper for bound in powers),
        gap=formatting.small(max(bound.upper - bound.lower for bound in powers)),
    )


def _assuming(curve: object, given: Setting) -> str:
    if given.gaussian is None:
        return ""
    return ", if the noise is Gaussian" if isinstance(curve, GaussianCurve) else ", whatever the noise"


def _outside(given: Setting) -> str:
    """Why no theorem about a redrawn record is told."""
    if not given.of_records:
        return "Here distances are not counted in records."
    if given.partial:
        return "Here only some events of the output are looked at, and beliefs look at all."
    if given.replaced is None:
        return "Here that world would break what is held fixed, or the rest already determines the record."
    return "Here no rule is known at the distance of a replaced record."
