"""The numbers of each sentence of an explanation, recomputed from the sentence's own formula; by the sentence's id."""

from __future__ import annotations

import math
import re
import tomllib
from importlib.resources import files

import pytest
import sentence_oracle as oracle
from sentence_grid import GROUPS, is_epsilon, is_factor, is_power, is_upper, parsed, split
from summary_formulas import SUMMARIES
from swap_formulas import SWAPS

from stirred.reports.limits_section import TEMPLATES as LIMITS
from stirred.semantics.sentences.templates import Number, Numbers, templates


def assumed_law(given, one, distance):
    """The curve that a sentence is about: that of Gaussian noise where it says so."""
    if one.facts.get("assuming") == ", if the noise is Gaussian":
        return oracle.Gaussian(math.sqrt(2 * given.bound(distance)))
    return oracle.law(given.specification, distance)


def levels_typed(given, one):
    assert [float(text) for text in split(one.facts["levels"].shown)] == list(given.case.levels)


def powers_of(given, one, law):
    for text, level in zip(split(one.facts["powers"].shown), given.case.levels, strict=True):
        is_power(text, law.power(level), level)


def power_bound(given, one):
    levels_typed(given, one)
    powers_of(given, one, given.law)
    assert max(given.law.missed(level) for level in given.case.levels) > 0


def power_vacuous(given, one):
    levels_typed(given, one)
    misses = split(one.facts["misses"].shown)
    for text, level in zip(misses, given.case.levels, strict=True):
        true = given.law.missed(level)
        assert true < 1.1e-6
        if text.startswith("less than "):
            assert true + (not true) > 0 and true < float(text.removeprefix("less than ")) * 1.1
        elif text == "0":
            assert true == 0
        else:
            assert true * 0.88 <= float(text) <= true * (1 + 1e-3), (text, true)


def power_certain(given, one):
    levels_typed(given, one)
    assert all(given.law.missed(level) == 0 for level in given.case.levels)


def power_gaussian(given, one):
    powers_of(given, one, given.gaussian)


def exactly(given, one, rhos):
    levels_typed(given, one)
    gap = float(one.facts["gap"].shown)
    assert 0 < gap < 1e-3
    for text, level in zip(split(one.facts["powers"].shown), given.case.levels, strict=True):
        true = oracle.discrete_power([float(1 / rho) for rho in rhos], level)
        assert true - 1e-4 <= float(text) <= true + 1.1e-3 + gap, (text, true)


def power_exact(given, one):
    assert one.facts["cells"].shown == str(len(oracle.shares()))
    exactly(given, one, oracle.shares().values())


def concern_rhos(one):
    """The shares of the queries that a concern's name speaks of: all below the level of a location, else its own."""
    attributes = {"cenrace": ("cenrace",)}
    name = one.facts["concern"].lower()
    lower = ("block group", "block") if "within tract" in name else ()
    telling = [attribute for attribute in attributes if attribute in name]
    return [
        rho for (level, query), rho in oracle.shares().items() if level in lower or any(one in query for one in telling)
    ]


def concerns_one(given, one):
    facts = one.facts
    is_upper(facts["rho"].shown, float(sum(concern_rhos(one))), decimals=4)
    is_upper(facts["total"].shown, 2.63, decimals=4)
    assert float(facts["level"].shown) == given.level
    rho = float(facts["bound"].value)
    is_upper(facts["bound"].shown, rho, decimals=4)
    is_power(facts["power"].shown, oracle.Gaussian(math.sqrt(2 * rho)).power(given.level), given.level)
    worst = oracle.Divergence(rho=rho).power(given.level)
    assert float(facts["worst"].shown) >= worst - 1e-9  # at the squared distance, which is no less


def concerns_exact(given, one):
    exactly(given, one, concern_rhos(one))


def concerns_barred(given, one):
    assert one.facts["distance"].shown == "2"
    # Two persons move to other blocks of each other's state: all queries but the state's total change for both.
    changed = [
        rho for (level, query), rho in oracle.shares().items() if level != "us" and (level, query) != ("state", "total")
    ]
    if one.facts["concern"].lower() == "location within us":
        is_upper(one.facts["rho"].shown, float(2 * sum(changed)), decimals=4)
        is_upper(one.facts["any"].shown, float(4 * sum(changed)), decimals=4)


def concerns_printed(given, one):
    facts = one.facts
    printed, rhos = split(facts["printed"].shown), split(facts["rhos"].shown)
    assert len(printed) == len(rhos) == int(facts["count"].shown) < int(facts["all"].shown)
    concerns = tomllib.loads((files("stirred") / "deployments/allocations-2020.toml").read_text(encoding="utf-8"))
    stated = [row["rho"] for row in concerns["allocation"][0]["concern"]]
    assert set(printed) <= set(stated) and int(facts["all"].shown) == len(stated)
    assert all(float(right) > float(wrong) for wrong, right in zip(printed, rhos, strict=True))  # understated, each


def worlds(given, one):
    assert one.facts["distance"].shown == f"{float(given.distance):g}"
    count = given.distance / given.premetric.scale
    for number in re.findall(r"(?<![\w.])\d[\d.e+-]*", one.facts.get("change", "")):
        assert float(number) in (float(given.distance), float(count))


def further(given, one):
    is_epsilon(one.facts["budget"].shown, given.budget.value)
    is_epsilon(one.facts["bound"].shown, given.bound(given.distance))
    assert one.facts["bound"].shown != one.facts["budget"].shown


def largest_budget(given, one):
    is_epsilon(one.facts["budget"].shown, max(given.budget.by_universe))


def nothing(given, one):
    is_epsilon(one.facts["budget"].removeprefix("epsilon = "), given.budget.value)


def legacy(given, one):
    assert one.facts["error"] == Number(0.15, "15%")


def alone(given, one):
    stated = dict(given.specification.facts)
    assert one.facts["counts"] == Number(stated["alone_by_match_and_swap"], "1,234 are")
    assert one.facts["columns"] == f"{stated['match']}, {stated['swap']}"


def odds(given, one):
    epsilon = given.bound(given.distance)
    is_epsilon(one.facts["epsilon"].shown, epsilon)
    is_factor(one.facts["factor"].shown, epsilon)
    follows(one)


def follows(one):
    """Whether the factor follows from the epsilon beside it, rounded up once."""
    shown, factor = one.facts["epsilon"].shown, one.facts["factor"].shown
    if factor.startswith("e^"):
        assert factor == f"e^{shown}"
    elif parsed(shown) >= 0.01:
        assert math.exp(parsed(shown)) * (1 - 1e-12) <= parsed(factor) <= math.exp(parsed(shown)) * 1.0101


def every(given, one):
    epsilon = given.bound(given.replaced)
    is_factor(one.facts["factor"].shown, epsilon)
    if "lowest" in one.facts:
        is_factor(one.facts["lowest"].shown, epsilon, -1)


def default(given, one):
    is_factor(one.facts["factor"].shown, 2 * given.bound(given.replaced))


def true_record(given, one):
    assert float(one.facts["delta"].shown) == pytest.approx(given.read_delta, rel=1e-5)
    is_factor(one.facts["factor"].shown, given.bounded(assumed_law(given, one, given.replaced), given.replaced))


def true_record_exactly(given, one):
    assert float(one.facts["delta"].shown) == pytest.approx(given.read_delta, rel=1e-5)
    epsilon = oracle.discrete_epsilon([1 / float(rho) for rho in oracle.shares().values()], given.read_delta)
    gap = float(one.facts["gap"].shown)
    assert 0 < gap < 0.01  # and the oracle itself is good to about 1e-4
    assert epsilon - 1e-4 <= math.log(float(one.facts["factor"].shown.replace(",", ""))) <= epsilon + gap + 0.012


def any_prior(given, one):
    needed, bound = -math.log(given.read_delta), given.bound(given.replaced)
    if given.output.kind.name == "renyi":
        epsilon = bound + needed / (float(given.output.parameter) - 1)
    else:
        epsilon = bound + 2 * math.sqrt(bound * needed)
    is_factor(one.facts["factor"].shown, epsilon)


def predictive(given, one):
    needed, bound = -math.log(given.read_delta), given.bound(given.replaced)
    if given.output.kind.name == "renyi":
        order = float(given.output.parameter)
        epsilon = (bound * (order - 1) + needed) / order
    else:
        assert needed > bound
        epsilon = 2 * math.sqrt(bound * needed) - bound
    assert epsilon < needed
    is_factor(one.facts["factor"].shown, epsilon)


def delta_bounded(given, one):
    epsilon = given.bounded(assumed_law(given, one, given.distance), given.distance)
    is_epsilon(one.facts["epsilon"].shown, epsilon)
    is_factor(one.facts["factor"].shown, epsilon)
    follows(one)
    assert float(one.facts["delta"].shown) == pytest.approx(given.read_delta, rel=1e-5)


def converted(given, how, at):
    rho = given.bound(given.distance) if given.output.kind.name == "normalised-renyi" else None
    if how == "classical conversion":
        return rho + 2 * math.sqrt(rho * -math.log(at))
    return (given.gaussian if how == "exact for Gaussian noise" else given.law).epsilon(at)


def delta_approximate(given, one):
    at = min(given.case.deltas)
    assert float(one.facts["delta"].shown) == at
    is_epsilon(one.facts["epsilon"].shown, converted(given, one.facts["conversion"], at))


def catastrophe(given, one):
    power = given.law.power(0)
    assert float(one.facts["delta"].shown) == pytest.approx(power, rel=1e-5) and power > 0
    if records := one.facts["records"]:
        assert records == f", here 1/{dict(given.specification.facts)['records']:,}"


def delta_curve(given, one):
    at, level = min(given.case.deltas), given.level
    assert float(one.facts["delta"].shown) == at and float(one.facts["level"].shown) == level
    law = given.gaussian if given.output.kind.name == "normalised-renyi" else given.law
    point = oracle.Pairs((law.epsilon(at), at)).power(level)
    is_power(one.facts["point"].shown, point, level)
    is_power(one.facts["curve"].shown, law.power(level), level)
    assert point > law.power(level)


def group(given, one):
    count = int(float(one.facts["count"].shown))
    assert count in GROUPS
    grouped(given, one, count * given.premetric.scale)


def grouped(given, one, distance):
    if "bound" in one.facts:
        is_epsilon(one.facts["bound"].shown, given.bound(distance))
    if "power" in one.facts:
        assert float(one.facts["level"].shown) == given.level
        is_power(one.facts["power"].shown, oracle.law(given.specification, distance).power(given.level), given.level)


def respondent(given, one):
    count = dict(given.specification.facts)["records_per_respondent"]
    assert one.facts["count"].shown == str(count)
    grouped(given, one, count * given.replaced)


def within(given, one):
    most = dict(given.premetric.within)[one.facts["coarse"]]
    assert one.facts["size"].startswith(f"of up to {most:,} counts" if most else "counts as all")


RECOMPUTED = {
    **SUMMARIES,
    **SWAPS,
    "compares.worlds": worlds,
    "compares.assumed": worlds,
    "compares.further": further,
    "compares.nothing": nothing,
    "compares.universes": largest_budget,
    "exposed.legacy": legacy,
    "exposed.alone": alone,
    "tests.bound": power_bound,
    "tests.vacuous": power_vacuous,
    "tests.certain": power_certain,
    "tests.gaussian": power_gaussian,
    "tests.exact": power_exact,
    "beliefs.odds": odds,
    "beliefs.every": every,
    "beliefs.perceived": every,
    "beliefs.default": default,
    "beliefs.true": true_record,
    "beliefs.vast": true_record,
    "beliefs.exact": true_record_exactly,
    "beliefs.any": any_prior,
    "beliefs.predictive": predictive,
    "delta.bounded": delta_bounded,
    "delta.vast": delta_bounded,
    "delta.approximate": delta_approximate,
    "delta.catastrophe": catastrophe,
    "delta.curve": delta_curve,
    "groups.units": group,
    "groups.vast": group,
    "groups.power": group,
    "groups.within": within,
    "groups.respondent": respondent,
    "groups.answers": respondent,
    "concerns.one": concerns_one,
    "concerns.exact": concerns_exact,
    "concerns.barred": concerns_barred,
    "concerns.printed": concerns_printed,
}
QUOTED = {
    "mark", "varies", "premetric", "starts", "covers", "invariants", "domain", "products", "events", "doubt", "id",
    "definition", "queries", "concern", "change", "pair", "fixed", "missing",
    "assumed", "taken", "whole",
}  # fmt: skip
"""Facts that are the words of the specification itself, or of the concern that was asked about."""


def held_up(given, one):
    """Whether everything in a sentence that has a digit is recomputed."""
    template = templates()[one.id]
    for words in (template.words, template.of_distributions or ""):
        static = re.sub(r"{\w+}", "", words).replace("the 2020 Census", "")
        static = re.sub(r"\b([oO]f|in) 100\b", "", static)  # what numbers of cases are counted in
        assert not re.search(r"\d", static), f"{one.id} has a number of its own"
    told = {
        name: fact
        for name, fact in one.facts.items()
        if not isinstance(fact, str) or (re.search(r"\d", fact) and name not in QUOTED)
    }
    for fact in told.values():
        assert (fact if isinstance(fact, str) else fact.shown) in one.words
    assert not told or one.id in RECOMPUTED, f"nothing recomputes {sorted(told)} of {one.id}"
    if one.id in RECOMPUTED:
        RECOMPUTED[one.id](given, one)
    for fact in told.values():
        assert isinstance(fact, str | Number | Numbers) and (isinstance(fact, str) or one.formula)


def limit_held_up(one):
    """The numbers of a sentence about limits, from epsilon times the distance as the sentence's formulas have it."""
    static = re.sub(r"{\w+}", "", LIMITS[one.id].words)
    assert not re.search(r"\d", static)
    numbers = {name for name, fact in one.facts.items() if not isinstance(fact, str)}
    assert numbers <= {"lowest", "factor", "distance", "priors", "lower", "upper", "levels", "powers", "radius", "miss"}
