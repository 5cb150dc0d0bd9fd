"""Numbers in the five sentences that an explanation begins with."""

from __future__ import annotations

from fractions import Fraction

import sentence_oracle as oracle
from sentence_grid import split
from swap_formulas import alarms, of_hundred, of_stratum, worst_power

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
    power = oracle.discrete_power([float(1 / rho) for rho in oracle.shares().values()], given.level)
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


SUMMARIES = {
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
}
