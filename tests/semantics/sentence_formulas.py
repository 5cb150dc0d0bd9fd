"""The numbers of each sentence of an explanation, recomputed from the sentence's own formula; by the sentence's id."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from fractions import Fraction
from importlib.resources import files
from statistics import NormalDist

import pytest
import sentence_oracle as oracle
from sentence_grid import GROUPS, is_epsilon, is_factor, is_power, is_upper, parsed, split

from stirred.reports.limit_sentences import TEMPLATES as LIMITS
from stirred.semantics.templates import Number, Numbers, templates


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


# -- swaps -------------------------------------------------------------------------------------------------------


def permuted(size, rate, moved=()):
    """All permutations of a stratum with their probabilities; in the other file two records are exchanged."""
    p, deranged = float(Fraction(rate)), [1, 0, 1, 2, 9, 44, 265]
    kept = 1 - size * p * (1 - p) ** (size - 1)
    start = list(range(size))
    if moved:
        start[moved[0]], start[moved[1]] = moved[1], moved[0]
    for order in itertools.permutations(range(size)):
        k = sum(one != other for one, other in zip(order, start, strict=True))
        yield order, p**k * (1 - p) ** (size - k) / (kept * deranged[k]) if k != 1 else 0.0


def best_power(first, second, level):
    """Neyman and Pearson, by hand: outcomes of largest ratio first."""
    left, power = level, 0.0
    ranked = sorted(first, key=lambda one: -(second[one] / first[one] if first[one] else math.inf))
    for one in ranked:
        share = 1.0 if first[one] <= left else left / first[one]
        left, power = left - share * first[one], power + share * second[one]
        if share < 1:
            break
    return power


def worst_power(given):
    if given.case.swap is None:  # from facts: a stratum of up to six records, or a large one
        stated = dict(given.specification.facts)
        rate = Fraction(stated["rate"])
        sizes = range(2, 7) if stated["largest_stratum"] == 6 else ()
        large = [min(1.0, 1 - float(rate) ** 2 + given.level)] if not sizes else []
        return max([*large, *(of_stratum(n, rate, given.level) for n in sizes)])
    return of_stratum(*given.case.swap, given.level)


def of_stratum(size, rate, level):
    return best_power(dict(permuted(size, rate)), dict(permuted(size, rate, (0, 1))), level)


def two_records(own, other):
    """What two of six records show, a and b being the values of own and other records, by all permutations."""
    values = ["a", "b", *"a" * (own - 1), *"b" * (other - 1)]
    values += ["c"] * (6 - len(values))
    laws = []
    for had in (values, ["b", "a", *values[2:]]):
        law = dict.fromkeys(itertools.product("abc", repeat=2), 0.0)
        for order, chance in permuted(6, "0.3"):
            law[had[order[0]], had[order[1]]] += chance
        laws.append({shown: chance for shown, chance in law.items() if chance})
    return laws


def of_hundred(text, power, above=0.0):
    assert math.ceil(100 * power - 1e-6) <= int(text) <= math.ceil(100 * power - 1e-6 + above), (text, power)


def alarms(given, one):
    assert float(one.facts["alarms"].shown) == pytest.approx(100 * given.level)


def noticed_worst(given, one):
    alarms(given, one)
    # Over several sizes the bound is concave, so it may lie above each of them.
    of_hundred(one.facts["count"].shown, worst_power(given), above=1.0 if given.case.swap is None else 0.0)
    stated = dict(given.specification.facts)["largest_stratum"]
    assert one.facts["where"].count(f"{(given.case.swap and 6) or stated:,}") == 1


def noticed_both(given, one):
    rate = given.case.swap[1] if given.case.swap else dict(given.specification.facts)["rate"]
    assert float(one.facts["both"].shown) == pytest.approx(float(Fraction(rate)) ** 2, rel=1e-2)


def noticed_unique(given, one):
    alarms(given, one)
    of_hundred(one.facts["most"].shown, best_power(*two_records(1, 2), given.level))
    of_hundred(one.facts["least"].shown, best_power(*two_records(2, 3), given.level))
    assert (one.facts["uniques"].shown, one.facts["records"].shown) == ("4", "50")


def believed(one, own, other):
    first, second = two_records(own, other)
    true = first["a", "b"] / (first["a", "b"] + second["a", "b"])
    is_power(one.facts["belief"].shown, true)


def noticed_named(given, one):
    alarms(given, one)
    of_hundred(one.facts["count"].shown, best_power(*two_records(1, 2), given.level))
    believed(one, 1, 2)


def noticed_typical(given, one):
    alarms(given, one)
    of_hundred(one.facts["count"].shown, best_power(*two_records(1, 3), given.level))


def noticed_hidden(given, one):
    alarms(given, one)
    true = min(oracle.Gaussian(0.9).power(given.level), worst_power(given))
    assert one.facts["count"].shown == ("fewer than 1" if true < 0.005 else str(round(100 * true)))
    assert one.facts["held"].shown == "2 and 4"


def noticed_halve(given, one):
    facts, level = one.facts, given.level
    power = parsed(facts["count"].shown) / 100
    of_hundred(facts["half"].shown, float(facts["half"].value))
    target = float(facts["half"].value)
    assert target == pytest.approx(float(facts["count"].value) / 2) and power <= 1
    rate = int(facts["rate"].shown.removesuffix("%"))
    assert level + 1 - (rate / 100) ** 2 <= target + 1e-9 < level + 1 - ((rate - 1) / 100) ** 2 + 1e-2
    least = int(facts["least"].shown)
    for size in range(max(2, least), 7):
        assert of_stratum(size, Fraction(rate, 100), level) <= target + 1e-9
    assert least == 2 or least > 7 or of_stratum(least - 1, Fraction(rate, 100), level) > target - 1e-9
    stated = given.case.own.rate if given.case.own else Fraction(dict(given.specification.facts)["rate"])
    assert float(facts["now"].shown.removesuffix("%")) == pytest.approx(100 * float(stated))


def noticed_unhalved(given, one):
    power = float(one.facts["count"].value)
    of_hundred(one.facts["count"].shown, worst_power(given))
    assert given.level + 1 - 0.99**2 > power / 2 > given.level


def noticed_share(given, one):
    normal = NormalDist()
    power = oracle.Gaussian(0.9).power(given.level)
    wanted = normal.inv_cdf(power / 2) - normal.inv_cdf(given.level)
    assert int(one.facts["times"].shown) == math.ceil((0.9 / wanted) ** 2)


def noticed_epsilon(given, one):
    is_epsilon(one.facts["budget"].shown, given.budget.value)
    is_epsilon(one.facts["bound"].shown, given.bound(2))
    of_hundred(one.facts["count"].shown, oracle.Pairs((given.bound(2), 0)).power(given.level))


def group_of_swap(given, one):
    count = int(float(one.facts["count"].shown))
    assert count in GROUPS and float(one.facts["level"].shown) == given.level
    if count > 10 or given.case.swap is None:
        assert float(one.facts["power"].shown) == 1  # so many exchanges are always noticed
        return
    power = given.level
    for _ in range(count - 1):
        power = of_stratum(*given.case.swap, power)
    overlap = float(Fraction(given.case.swap[1])) ** count
    is_power(one.facts["power"].shown, min(1.0, power, given.level + 1 - overlap), given.level)


def noticed_loss(given, one):
    is_epsilon(one.facts["loss"].shown, abs(math.log(3 / 7)))
    is_epsilon(one.facts["budget"].shown, given.budget.value)
    assert one.facts["strata"].shown == "1"


NEARLY_ALL = 0.99


def cases_in_hundred(text, power, above=0.0):
    """A number of cases, rounded up, or in words beyond 99 of 100."""
    if text == "nearly all":
        assert power > NEARLY_ALL - 1e-6
    else:
        assert power <= NEARLY_ALL + 1e-6
        of_hundred(text, power, above)


def summary_of_swap(given, one):
    alarms(given, one)
    allowed = given.law.power(given.level)
    worst = min(worst_power(given), allowed)
    if "count" not in one.facts:
        assert worst > NEARLY_ALL - 0.01
        return
    cases_in_hundred(one.facts["count"].shown, worst, above=1.0 if given.case.swap is None else 0.0)
    cases_in_hundred(one.facts["allowed"].shown, allowed)


def summary_of_noise(given, one):
    alarms(given, one)
    power = oracle.discrete_power([float(1 / rho) for rho in shares().values()], given.level)
    of_hundred(one.facts["count"].shown, power, above=0.1)
    cases_in_hundred(one.facts["allowed"].shown, given.law.power(given.level))


def summary_of_gaussian(given, one):
    alarms(given, one)
    of_hundred(one.facts["count"].shown, given.gaussian.power(given.level))
    cases_in_hundred(one.facts["allowed"].shown, given.law.power(given.level))


def summary_of_any(given, one):
    alarms(given, one)
    of_hundred(one.facts["allowed"].shown, given.law.power(given.level), above=2e-6)


def summary_vast(given, one):
    alarms(given, one)
    assert given.law.power(given.level) > NEARLY_ALL - 1e-9


def together(given, count):
    distance = count * given.premetric.scale
    power = oracle.law(given.specification, distance).power(given.level)
    stated = dict(given.specification.facts)
    if given.case.swap is None and stated.get("mechanism") == "permutation-swapping" and "rate" in stated:
        sizes = range(2, 7) if stated["largest_stratum"] == 6 else ()
        own = 1.0 if not sizes else given.level
        for _ in range(count - 1 if sizes else 0):
            own = max(of_stratum(size, Fraction(stated["rate"]), own) for size in sizes)
        return min(power, own, given.level + 1 - float(Fraction(stated["rate"])) ** count)
    if given.case.swap is None or not given.case.own or given.case.own.rate is None:
        return power
    own = given.level
    for _ in range(count - 1):
        own = of_stratum(*given.case.swap, own)
    return min(power, own, given.level + 1 - float(Fraction(given.case.swap[1])) ** count)


def summary_of_groups(given, one):
    alarms(given, one)
    for text in split(one.facts["noticed"].shown):
        shown, count = text.removesuffix(" or more").split(" for ")
        cases_in_hundred(shown, together(given, int(count)), above=1e-6)


def summary_of_all_groups(given, one):
    assert together(given, int(one.facts["count"].shown)) > NEARLY_ALL - 1e-9


RECOMPUTED = {
    "summary.swap": summary_of_swap,
    "summary.swap_vast": summary_of_swap,
    "summary.noise": summary_of_noise,
    "summary.gaussian": summary_of_gaussian,
    "summary.any": summary_of_any,
    "summary.tell": summary_of_any,
    "summary.vast": summary_vast,
    "summary.tell_vast": summary_vast,
    "summary.groups": summary_of_groups,
    "summary.groups_all": summary_of_all_groups,
    "noticed.worst": noticed_worst,
    "noticed.both": noticed_both,
    "noticed.unique": noticed_unique,
    "noticed.would": noticed_unique,
    "noticed.belief": lambda given, one: believed(one, 1, 2),
    "noticed.typical": noticed_typical,
    "noticed.hidden": noticed_hidden,
    "noticed.named": noticed_named,
    "noticed.standing": noticed_hidden,
    "noticed.halve": noticed_halve,
    "noticed.unhalved": noticed_unhalved,
    "noticed.share": noticed_share,
    "noticed.epsilon": noticed_epsilon,
    "noticed.loss": noticed_loss,
    "groups.swap": group_of_swap,
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
