"""Every number in findings and comparisons, recomputed from the specification that they are about."""

from __future__ import annotations

import math
import re

from sentence_grid import ABSURD, FIXED, TINY, USUAL, Case, Given, is_epsilon, parsed

from stirred.spec import OutputPremetric, compare, flavors, lint


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
