"""Numbers in sentences about swaps, from all permutations of a small stratum."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import sentence_oracle as oracle
from sentence_grid import GROUPS, is_epsilon, is_power, parsed


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
    assert least == 2 or least > 7 or joined(range(least - 1, 7), Fraction(rate, 100), level) > target - 0.01
    stated = given.case.own.rate if given.case.own else Fraction(dict(given.specification.facts)["rate"])
    assert float(facts["now"].shown.removesuffix("%")) == pytest.approx(100 * float(stated))


def joined(sizes, rate, level):
    """The highest chord at a level between points of the curves of these sizes, and of one that is very large."""
    steps = [step / 40 for step in range(41)]
    high = {at: max(min(1, at + 1 - rate**2), *(of_stratum(size, rate, at) for size in sizes)) for at in steps}
    return max(
        high[low] + (high[up] - high[low]) * (level - low) / (up - low)
        for low in steps
        for up in steps
        if low <= level <= up and low < up
    )


def noticed_unhalved(given, one):
    power = float(one.facts["count"].value)
    of_hundred(one.facts["count"].shown, worst_power(given))
    assert given.level + 1 - 0.99**2 > power / 2 > given.level


def noticed_share(given, one):
    normal = oracle.NORMAL
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


def put_back(given, one):
    """Rounded down when it was stated, and told as it is: 37 of 100."""
    assert one.facts["share"].shown == "37"


SWAPS = {
    "noticed.put_back": put_back,
    "summary.put_back": put_back,
    "noticed.put_back_limit": lambda given, one: one.facts["limit"].shown == "10" or pytest.fail(one.words),
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
}
