"""Every sentence with a number, over a grid of guarantees: each number recomputed from the sentence's own formula.

A sentence that holds a number nobody recomputes here fails, and so does one that no guarantee of the grid brings about.
Upper bounds must be rounded up and lower ones down, and by no more than their last digit.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.resources import files

import pytest
import sentence_oracle as oracle

from stirred.loss import EpsilonProfile, GaussianCurve, PowerCurve
from stirred.reports.limit_sentences import TEMPLATES as LIMITS
from stirred.reports.limits_section import of_epsilon, of_explanation
from stirred.semantics import explain
from stirred.semantics.templates import Number, Numbers, templates
from stirred.spec import (
    Budget,
    Domain,
    Finding,
    Flavor,
    InputPremetric,
    Invariant,
    Kind,
    Multiverse,
    OutputPremetric,
    compare,
    flavors,
    lint,
)
from stirred.spec.deployments import names
from stirred.spec.kinds import KINDS, register
from stirred.spec.loading import load

TINY, USUAL, ABSURD = ("1e-9", "1e-3"), ("0.1", "1", "2.63"), ("20", "100", "745", "1e6")
FEW = ("1e-3", "1", "20")
FIXED = [Invariant("person", by=("block",))]
GROUPS = (1, 2, 10, 99_999)
FLAVORS = {
    "pure": flavors.pure(),
    "pure, unbounded": flavors.pure(bounded=False),
    "local": flavors.local(),
    "metric": flavors.metric("distance on the globe"),
    "event": flavors.event_level(),
    "user": flavors.user_level(),
    "edge": flavors.edge_level(),
    "node": flavors.node_level(),
    "blowfish": flavors.blowfish("the policy"),
    "two apart": flavors.given_invariants(flavors.pure(), FIXED, nearest=2),
    "one apart": flavors.given_invariants(flavors.pure(), FIXED, nearest=1),
    "assumed": flavors.given_invariants(flavors.pure(), FIXED),
    "stays": flavors.pure("person", within=(("household", 99_999),), stays_in=("household",)),
    "limited": flavors.zcdp("person", within=(("household", 12), ("family", None))),
    "subspace": flavors.subspace("the totals"),
    "one attribute": flavors.per_attribute("age", flavors.zcdp()),
    "pufferfish": flavors.pufferfish("two models", "pairs of secrets"),
    "approximate": flavors.approximate("1e-6"),
    "approximate, much": flavors.approximate("0.001"),
    "zcdp": flavors.zcdp(),
    "zcdp, unbounded": flavors.zcdp(bounded=False),
    "zcdp, two apart": flavors.given_invariants(flavors.zcdp(), FIXED, nearest=2),
    "renyi 2": flavors.renyi(2),
    "renyi 32": flavors.renyi(32),
}
CURVE = PowerCurve(((0, 0.1), (0.2, 0.6), (0.7, 1), (1, 1)))
OWN = Kind("grid-of-sentences", "D_own", "budget", "A definition of one's own.", metric=True, composition="sum")


@dataclass(frozen=True)
class Case:
    name: str
    specification: object
    levels: tuple[float, ...] = (0.01, 0.05, 0.1)
    deltas: tuple[float, ...] = (0.05, 1e-3, 1e-6, 1e-10)
    concerns: tuple[str, ...] = ()


def others():
    """Guarantees that are no flavor at a budget: curves, lists, marks, deployments."""
    total, profile = OutputPremetric("total-variation"), OutputPremetric("approximate-profile")
    facts = (("records_per_respondent", 3), ("records", 1000))
    two = Domain("two", datasets=("a", "b"))
    table = InputPremetric.table({("a", "b"): 2, ("b", "a"): 2})
    path = InputPremetric.table({("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1})
    overlapping = Multiverse(universes=(("a", "b"), ("b", "c")))
    three = Flavor(Domain("three", datasets=("a", "b", "c")), overlapping, path, OutputPremetric())
    yield from ((f"total variation {t}", flavors.flavor(total).at(t)) for t in ("1e-9", "0.3", "0.9", "1"))
    for mu in (1e-6, 0.1, 1.0, 2.293469, 20.0, 745.0, 2e6):
        yield f"gaussian {mu}", flavors.trade_off().at(GaussianCurve(mu))
    yield "vertices", flavors.trade_off().at(CURVE)
    yield "profile", flavors.flavor(profile).at(EpsilonProfile(((1e-6, 3.0), (1e-3, 2.0), (0.1, 0.5))))
    yield "profile, steep", flavors.flavor(profile).at(EpsilonProfile(((1e-6, 745.0), (0.5, 700.0))))
    yield "imputed", flavors.zcdp().at(1, facts=facts)
    yield "imputed, renyi", flavors.renyi(4).at("0.5", facts=facts)
    yield "counted", flavors.approximate("0.001").at(1, facts=facts)
    yield "two steps", flavors.given_invariants(flavors.approximate("1e-6"), FIXED, nearest=2).at(1)
    yield "varies", flavors.pure().at(Budget(1, varies="a function of the invariants"))
    yield "by universe", three.at(Budget(3, by_universe=(1, 3)))
    yield "listed", Flavor(two, Multiverse(universes=(("a", "b"),)), table, OutputPremetric()).at(1)
    yield "nothing else", flavors.given_invariants(flavors.pure(), FIXED, nearest=math.inf).at(1)
    yield "infinite", flavors.pure().at("infinity")
    yield "doubted", flavors.pure().at(1, marks=("not for release",), findings=(Finding("a-doubt", "Some doubt."),))
    yield "own", flavors.flavor(OutputPremetric(OWN.name)).at(1)
    yield "irrational", flavors.pure().at("2.8903717578961645")
    yield "certain", flavors.approximate(1).at(1)


def cases(budgets):
    for name, flavor in FLAVORS.items():
        yield from (Case(f"{name} at {budget}", flavor.at(budget)) for budget in budgets)
    for name, specification in others():
        yield Case(name, specification)
    for name in ("psa-2010", "psa-2020-state-county-p50", "das-2020-overall", "safetab-p-2020"):
        if name in names():
            yield Case(name, load(name))
    census = load("topdown-2020-pl")
    yield Case("topdown-2020-pl", census, concerns=("cenrace", "cenrace + block within tract"))
    everything = Invariant("person", by=("block", "hhgq", "votingage", "hispanic", "cenrace"))
    yield Case("all held fixed", replace(census, multiverse=Multiverse((everything,))), concerns=("cenrace",))
    for budget in ("0.1", "2.63"):
        yield Case(f"small false alarms, {budget}", flavors.zcdp().at(budget), (1e-6, 0.5), (0.2, 1e-12))
        yield Case(f"small false alarms, pure {budget}", flavors.pure().at(budget), (1e-9, 1e-4, 0.9), (0.5,))


# -- rounding ------------------------------------------------------------------------------------------------


def parsed(text):
    return float(Fraction(text.replace(",", "")))


def split(text):
    return text.replace(" and ", ", ").split(", ")


def is_upper(text, true, digits=3, decimals=None, gain=0.0):
    """Whether a text is ``true`` rounded up: not below it, and above it by less than its last digit. ``gain`` is the
    part of the number that is known to four digits only, where it comes from a search."""
    shown = parsed(text)
    slack = 1e-9 * abs(true) + 2e-4 * gain
    step = abs(true) * 10.0 ** (1 - digits) if decimals is None else 1.01 * 10.0**-decimals
    assert true - slack <= shown <= true + step + slack, (text, true)


def is_epsilon(text, true):
    """Exact where short, else two decimals, or two digits where these would show fewer."""
    if text == "infinite":
        assert true == math.inf
        return
    is_upper(text, float(true), digits=2) if true < 0.1 or true > 10**6 else is_upper(text, float(true), decimals=2)


def is_power(text, true, level=0.0):
    shown, gain = parsed(text), max(0.0, true - level)
    slack = 3e-10 + 2e-4 * gain
    if level and gain < 0.0099 * level:
        assert true - slack * (gain > 0) <= shown <= true + 0.11 * gain + 1.1e-9 * level + slack, (text, true)
    else:
        assert true - slack <= shown <= true * 1.0101 + slack, (text, true)
    assert shown <= 1


def is_factor(text, epsilon, sign=1):
    """e to the power of the epsilon as it is shown: by at most a hundredth, or a tenth of a small one, above."""
    more = 0.0101 * max(1.0, epsilon if epsilon > 10**6 else 0.0) if epsilon >= 0.1 else 0.11 * epsilon
    logarithm = sign * float(text[2:]) * sign if text.startswith("e^") else math.log(parsed(text))
    if sign > 0:
        small = 0.11 * epsilon if epsilon < 0.01 else 0.0101
        assert epsilon * (1 - 1e-9) - 1e-12 <= logarithm <= epsilon + more + small, (text, epsilon)
    else:
        small = 0.11 * epsilon if epsilon < 0.01 else 0.0101
        slack = 1e-9 * epsilon + 1e-12
        assert -epsilon - more - 10 * small <= logarithm <= -epsilon + slack, (text, epsilon)


# -- what a sentence says --------------------------------------------------------------------------------------


class Given:
    """One guarantee, and what the sentences about it are computed from, told apart from the package."""

    def __init__(self, case):
        self.case, self.specification = case, case.specification
        self.premetric = self.specification.input_premetric
        self.output, self.budget = self.specification.output_premetric, self.specification.budget
        self.level = 0.05 if 0.05 in case.levels else case.levels[0]

    @property
    def distance(self):
        """Of the nearest two datasets of a universe: as declared, in a list the smallest, else one unit."""
        if self.premetric.kind == "table":
            universes = self.specification.multiverse.universes
            apart = [(a, b, d) for a, b, d in self.premetric.distances if d > 0]
            return min(d for a, b, d in apart if not universes or any({a, b} <= set(u) for u in universes))
        nearest = self.specification.nearest
        return self.premetric.scale if nearest is None else nearest

    @property
    def replaced(self):
        return self.premetric.scale * (1 if self.premetric.bounded else 2)

    @property
    def law(self):
        return oracle.law(self.specification, self.distance)

    def bound(self, distance):
        power = 2 if self.output.kind.name == "normalised-renyi" else 1
        return float(Fraction(self.budget.value) * Fraction(distance) ** power)

    @property
    def gaussian(self):
        return oracle.Gaussian(math.sqrt(2 * self.bound(self.distance)))

    @property
    def stated_delta(self):
        if self.output.kind.name == "approximate":
            return float(self.output.parameter)
        return self.budget.value.points[0][0] if self.output.kind.name == "approximate-profile" else None

    @property
    def read_delta(self):
        own = [min(2 * self.stated_delta, 0.5)] if self.stated_delta else []
        return max([*self.case.deltas, *own])

    def bounded(self, law, distance):
        found = oracle.bounded_epsilon(law, self.read_delta)
        if self.output.kind.name == "normalised-renyi" and isinstance(law, oracle.Divergence):
            rho, needed = self.bound(distance), -math.log(self.read_delta)
            found = min(found, rho + 2 * math.sqrt(rho * needed))
        return found


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


def shares():
    """The shares of the 2020 redistricting data from the file itself: rho by level and query, as printed."""
    fields = tomllib.loads((files("stirred") / "deployments/allocations-2020.toml").read_text(encoding="utf-8"))
    found = {}
    for part in fields["allocation"][0]["part"]:
        for query in part["query"]:
            for level, of_level, share in zip(
                fields["allocation"][0]["levels"], part["level_shares"], query["shares"], strict=True
            ):
                if rho := Fraction(part["rho"]) * Fraction(of_level) * Fraction(share):
                    found[level, query["name"]] = rho
    return found


def exactly(given, one, rhos):
    levels_typed(given, one)
    gap = float(one.facts["gap"].shown)
    assert 0 < gap < 1e-3
    for text, level in zip(split(one.facts["powers"].shown), given.case.levels, strict=True):
        true = oracle.discrete_power([float(1 / rho) for rho in rhos], level)
        assert true - 1e-4 <= float(text) <= true + 1.1e-3 + gap, (text, true)


def power_exact(given, one):
    assert one.facts["cells"].shown == str(len(shares()))
    exactly(given, one, shares().values())


def concern_rhos(one):
    """The shares of the queries that a concern's name speaks of: all below the level of a location, else its own."""
    attributes = {"cenrace": ("cenrace",)}
    name = one.facts["concern"].lower()
    lower = ("block group", "block") if "within tract" in name else ()
    telling = [attribute for attribute in attributes if attribute in name]
    return [rho for (level, query), rho in shares().items() if level in lower or any(one in query for one in telling)]


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
        rho for (level, query), rho in shares().items() if level != "us" and (level, query) != ("state", "total")
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
    epsilon = oracle.discrete_epsilon([1 / float(rho) for rho in shares().values()], given.read_delta)
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
    "compares.worlds": worlds,
    "compares.assumed": worlds,
    "compares.further": further,
    "compares.nothing": nothing,
    "compares.universes": largest_budget,
    "exposed.legacy": legacy,
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
    "beliefs.exact": true_record_exactly,
    "beliefs.any": any_prior,
    "beliefs.predictive": predictive,
    "delta.bounded": delta_bounded,
    "delta.approximate": delta_approximate,
    "delta.catastrophe": catastrophe,
    "delta.curve": delta_curve,
    "groups.units": group,
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
    "definition", "queries", "concern", "change",
}  # fmt: skip
"""Facts that are the words of the specification itself, or of the concern that was asked about."""


def held_up(given, one):
    """Whether everything in a sentence that has a digit is recomputed."""
    template = templates()[one.id]
    for words in (template.words, template.of_distributions or ""):
        static = re.sub(r"{\w+}", "", words).replace("the 2020 Census", "")
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


def run(chosen):
    seen, failures = set(), []
    for case in chosen:
        given = Given(case)
        # Where nothing but the curve after itself is known, 99,999 small steps take minutes.
        slow = given.output.kind.name == "renyi" and given.budget.value < Fraction(1, 1000)
        groups = GROUPS[:-1] if slow else GROUPS
        explained = explain(
            case.specification, levels=case.levels, deltas=case.deltas, concerns=case.concerns, groups=groups
        )
        for one in explained.statements:
            seen.add(one.id)
            try:
                held_up(given, one)
            except Exception as error:
                failures.append(f"{case.name}: {one.id}: {error!r}: {one.words}")
        for one in of_explanation(explained).statements:
            seen.add(one.id)
            try:
                limit_held_up(one)
            except Exception as error:
                failures.append(f"{case.name}: {one.id}: {error!r}: {one.words}")
    return seen, failures


@pytest.fixture(scope="module", autouse=True)
def own_definition():
    register(OWN)
    yield
    KINDS.pop(OWN.name)


# -- limits ----------------------------------------------------------------------------------------------------


def limit_held_up(one):
    """The numbers of a sentence about limits, from epsilon times the distance as the sentence's formulas have it."""
    static = re.sub(r"{\w+}", "", LIMITS[one.id].words)
    assert not re.search(r"\d", static)
    numbers = {name for name, fact in one.facts.items() if not isinstance(fact, str)}
    assert numbers <= {"lowest", "factor", "distance", "priors", "lower", "upper", "levels", "powers", "radius", "miss"}


@pytest.mark.parametrize("epsilon", [*TINY, *USUAL, *ABSURD, "2.8903717578961645", "0"])
@pytest.mark.parametrize("distance", [1, 2, 10, 99_999, None])
def test_limits_follow_from_epsilon_times_the_distance(epsilon, distance):
    found = of_epsilon(epsilon, 200_000, distance=distance, levels=(0.01, 0.05, 0.5), priors=(0.001, 0.1, 0.5))
    for one in found.statements:
        limit_held_up(one)
        match = re.search(r"distance ([\d,]+)", one.facts.get("question", ""))
        if match is None:
            continue
        r = float(Fraction(epsilon) * int(match[1].replace(",", "")))
        law, facts = oracle.Pairs((r, 0)), one.facts
        if "factor" in facts:
            is_factor(facts["factor"].shown, r)
            is_factor(facts["lowest"].shown, r, -1)
        if "powers" in facts and one.id == "limits.power":
            for text, level in zip(split(facts["powers"].shown), (0.01, 0.05, 0.5), strict=True):
                is_power(text, law.power(level), level)
        if one.id == "limits.attained":
            for text, level in zip(split(facts["powers"].shown), (0.01, 0.05, 0.5), strict=True):
                assert parsed(text) <= laplace(level, r) + 1e-9 and parsed(text) >= laplace(level, r) * 0.98 - 1e-9
        if "priors" in facts:
            for low, high, prior in zip(
                split(facts["lower"].shown), split(facts["upper"].shown), (0.001, 0.1, 0.5), strict=True
            ):
                most = prior / (prior + (1 - prior) * math.exp(-r))
                least = prior * math.exp(-r) / (prior * math.exp(-r) + 1 - prior)
                is_power(high, most, prior)
                assert least * 0.98 - 1.1e-9 <= parsed(low) <= least * (1 + 1e-9) + 1e-12, (low, least)
        if one.id == "limits.vacuous":
            miss = facts["miss"].shown
            smallest = math.log(float(miss)) if not miss.startswith("e^-") else -float(miss[3:])
            assert -r <= smallest <= -r + 0.1  # and e^-r (1 - a) is smaller at every a
            assert parsed(facts["radius"].shown) >= r * (1 - 1e-9)
        if one.id == "limits.zero":
            assert r == 0


def laplace(a, r):
    """The best test of a count with Laplace noise (Bailie 2025, section 5.9)."""
    if a <= math.exp(-r) / 2:
        return a * math.exp(r)
    return 1 - math.exp(-r) / (4 * a) if a <= 0.5 else 1 - (1 - a) * math.exp(-r)


# -- the grid --------------------------------------------------------------------------------------------------


def test_every_number_of_every_sentence_is_what_its_formula_gives():
    seen, failures = run(cases(FEW))
    assert not failures, "\n".join(failures[:20])
    assert set(templates()) <= seen, set(templates()) - seen
    assert {one.id for one in templates().values() if one.formula} == set(RECOMPUTED)


@pytest.mark.slow
def test_the_same_at_tiny_usual_and_absurd_budgets():
    _, failures = run(cases((*TINY, *USUAL, *ABSURD)))
    assert not failures, "\n".join(failures[:20])
    rest = [Case(name, load(name)) for name in names()]
    _, failures = run(rest)
    assert not failures, "\n".join(failures[:20])


# -- findings and comparisons ----------------------------------------------------------------------------------


def linted():
    facts = (("records_per_respondent", 3), ("records", 50_000))
    homes = (("household", 99_999),)
    for budget in (*TINY, *USUAL, *ABSURD):
        for flavor in (flavors.pure, flavors.zcdp):
            yield flavor("person", within=homes).at(budget, facts=facts)
            yield flavor("event", within=(("user", 20),)).at(budget, facts=facts)
            yield flavors.given_invariants(flavor(), FIXED, nearest=2).at(budget)
        yield flavors.approximate("1e-4").at(budget, facts=facts)
        yield flavors.approximate("1e-4").at(budget)
    yield from (flavors.flavor(OutputPremetric("total-variation")).at(t, facts=facts) for t in ("1e-9", "0.3", "1"))


def groups_found(given, words):
    """Bounds for 2, 4, 10 and all units of a coarser one; beyond a million it is said in place of the number."""
    most = int(re.search(r"up to ([\d,]+) ", words)[1].replace(",", ""))
    told = re.findall(r"([\d,]+) (?:\w+ have the bound \w+ =|have) ([\d,./e-]*\d)", words)
    sizes = [int(count.replace(",", "")) for count, _ in told]
    beyond = given.bound(most) > 10**6
    assert sizes == [size for size in (2, 4, 10) if size < most] + ([] if beyond else [most])
    for count, bound in told:
        is_epsilon(bound, given.bound(int(count.replace(",", ""))))
    is_epsilon(re.search(r"not \w+ = ([\w./-]*\w)", words)[1], given.budget.value)
    assert beyond == (f"for {most:,} it is beyond 1,000,000, which promises next to nothing" in words)


def respondents_found(given, words):
    count = dict(given.specification.facts)["records_per_respondent"]
    assert f"up to {count} records" in words
    if given.premetric.sharpened:
        bound, budget = re.findall(r"\w+ = ([\w.,/-]*\w)", words)
        is_epsilon(bound, given.bound(count))
        is_epsilon(budget, given.budget.value)


def nearest_found(given, words):
    bound, budget = re.findall(r"\w+ = ([\w.,/-]*\w)", words)
    assert "are 2 apart" in words
    is_epsilon(bound, given.bound(2))
    is_epsilon(budget, given.budget.value)


def standard_found(given, words):
    at = given.output.parameter if given.output.parameter is not None else given.budget.value
    assert parsed(re.search(r" = ([\w.-]*\w)", words)[1]) == float(at)
    if "publishing each of" in words:
        records = dict(given.specification.facts)["records"]
        assert f"each of {records:,} records" in words
        is_epsilon(re.search(r"publishes ([\d.]+) of them", words)[1], float(at) * records)


def vacuous_found(given, words):
    distance = given.specification.nearest or 1
    assert f"datasets {float(distance):g} apart" in words
    bound = given.bound(distance)
    if given.output.kind.name == "normalised-renyi":
        assert math.erfc(math.sqrt(2 * bound) / math.sqrt(8)) < 1e-3
        is_epsilon(re.search(r"means are ([\d.]+) deviations", words)[1], math.sqrt(2 * bound))
    elif given.output.kind.name == "total-variation":
        assert 1 - bound < 1e-3 and "less than once in 1,000 times" in words
    else:
        assert 2 * math.exp(-bound) / (1 + math.exp(-bound)) < 1e-3
        epsilon, ten = re.search(r"e\^([\d.e]+), about 10\^([\d.]+)\.", words).groups()
        is_epsilon(epsilon, bound)
        assert abs(float(ten) - bound / math.log(10)) <= 0.051


def conversion_found(given, words):
    epsilon, delta = re.search(r"epsilon = (\S+) at delta = (\S+) was", words).groups()
    is_epsilon(epsilon, given.budget.value)
    assert parsed(delta) == float(given.output.parameter)


def invariants_found(given, words):
    assert words.startswith(f"{len(given.specification.multiverse.invariants)} invariant may be published exactly")


FOUND = {
    "household-not-covered": groups_found,
    "finer-unit": groups_found,
    "units-after-imputation": respondents_found,
    "nearest-not-one": nearest_found,
    "weaker-standard": standard_found,
    "vacuous-budget": vacuous_found,
    "conversion-unnamed": conversion_found,
    "invariants-many": invariants_found,
}


def test_every_number_of_a_finding_is_what_its_formula_gives():
    seen = set()
    for specification in linted():
        given = Given(Case("", specification))
        for finding in lint(specification):
            seen.add(finding.id)
            if re.search(r"\d", finding.words):
                assert finding.id in FOUND, f"nothing recomputes the number of {finding.id}: {finding.words}"
                FOUND[finding.id](given, finding.words)
            assert "delta" not in finding.words + finding.why or given.output.kind.name == "approximate"
    assert set(FOUND) <= seen


def test_a_comparison_tells_bounds_between_the_nearest_only():
    for budget in (*TINY, *USUAL, *ABSURD):
        for flavor in (flavors.pure(), flavors.zcdp()):
            near = flavors.given_invariants(flavor, FIXED, nearest=2).at(budget, name="held")
            plain, further = compare(flavor.at(budget, name="free"), near).notes
            assert not re.search(r"\d", plain) and "more invariants" in plain
            assert "2 apart" in further
            is_epsilon(re.search(r" is ([\d.e-]*\d)\.", further)[1], Given(Case("", near)).bound(2))
