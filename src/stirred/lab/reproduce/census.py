"""Numbers about the census of 2020 and its TopDown Algorithm: chapters 3 and 4 of the thesis, the working paper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from stirred.lab.reproduce.catalogue import Forms
from stirred.loss.conversions import zcdp_to_approximate
from stirred.spec import (
    FiniteMechanism,
    Invariant,
    Specification,
    as_approximate,
    compose,
    flavors,
    may_publish_invariants,
    per_respondent,
)
from stirred.spec.known_deployments.allocations import allocation
from stirred.spec.known_deployments.deployments import deployment
from stirred.swap.law.theorem import epsilon

DELTA = Fraction(1, 10**10)
_RELEASES = ("topdown-2020-pl-dhc", "safetab-p-2020", "safetab-h-2020", "phsafe-2020")


def zcdp_epsilon(rho: str, delta: str) -> float:
    """Epsilon from rho and delta by the classical conversion, rho being the square of the thesis's parameter."""
    return zcdp_to_approximate(Fraction(rho), Fraction(delta), "classical")


def allocated_rho(part: str) -> Fraction:
    """rho of a part of the redistricting data before it was rounded: one over the squared scale of its noise."""
    return allocation("pl94-2020").part(part).unrounded


def allocated_epsilon(part: str, delta: str) -> float:
    """Epsilon of a part of the redistricting data, from its rho before rounding, by the classical conversion."""
    return zcdp_to_approximate(allocated_rho(part), Fraction(delta), "classical")


def topdown_rho(products: str) -> Fraction:
    """rho of the person and household tables of one or more products of TopDown, composed."""
    parts = [
        part for part in deployment("topdown-2020-pl-dhc").parts if part.what.startswith(tuple(products.split(", ")))
    ]
    return _number(compose(*(flavors.zcdp("person").at(part.budget) for part in parts)).specification)


def deployed_rho(name: str) -> Fraction:
    """rho of a deployment, as the list of deployments has it."""
    return _number(_specification(name))


def das_rho(records: int = 1) -> Fraction:
    """rho of all primary products of 2020, composed; of a respondent who is behind several records."""
    return _number(_overall(records))


def das_epsilon(records: int = 1) -> float:
    """Epsilon of all primary products of 2020, composed, by the classical conversion."""
    return float(as_approximate(_overall(records), DELTA, "classical").budget.number)


def das_has_topdown_invariants() -> bool:
    """Whether all products of 2020 together are protected under the invariants of TopDown, per person."""
    overall, topdown = _overall(), _specification("topdown-2020-pl")
    return overall.multiverse == topdown.multiverse and overall.input_premetric.unit == "person"


def epsilons_do_not_add_up() -> bool:
    """Whether epsilon of a total rho is below the sum of the epsilons of its parts."""
    parts = [part.budget for part in deployment("topdown-2020-pl-dhc").parts]
    each = sum(zcdp_to_approximate(one, DELTA, "classical") for one in parts)
    return zcdp_to_approximate(sum(parts, start=Fraction(0)), DELTA, "classical") < each


@cache
def every_invariant_is_needed() -> bool:
    """Whether a mechanism that keeps three margins has no finite rho if any one of them is not conditioned on.

    All files of two persons with three attributes; the mechanism publishes the three margins.
    """
    files, margins, told = _three_margins()
    losses = [
        told.loss(flavors.zcdp("person", invariants=[one for one in margins if one != dropped]), files).number
        for dropped in (None, *margins)
    ]
    return losses == [0.0, *[math.inf] * 3]


def invariants_cost_nothing() -> bool:
    """Whether publishing three margins has loss 0 under the invariants, and the rule for specifications says so."""
    files, margins, told = _three_margins()
    known = _specification("topdown-2020-pl")
    ruled = may_publish_invariants(known, known.multiverse.invariants).verdict == "yes"
    return ruled and told.loss(flavors.zcdp("person", invariants=margins), files).number == 0


def fitting_is_post_processing(conditioned: bool) -> bool:
    """Whether a step that reads three margins beside a noisy count adds no loss to that of the count."""
    files, margins, told = _three_margins()
    twos = {name: sum(person["state"] == person["housing"] for person in file) for name, file in files.items()}
    noisy = FiniteMechanism.of(
        {name: {str(n): Fraction(2 if n == count else 1, 4) for n in range(3)} for name, count in twos.items()}
    )
    flavor = flavors.zcdp("person", invariants=margins if conditioned else [])
    alone, fitted = (made.loss(flavor, files).number for made in (noisy, noisy.and_then(told)))
    assert 0 < alone < math.inf
    return math.isclose(fitted, alone, rel_tol=1e-9)


def concentrated_does_not_bound_ratios() -> bool:
    """Whether laws may be as close as one likes in D_NoR and infinitely far in D_Mult."""
    return all(flavors.zcdp().at(rho).implies(flavors.pure().at(10**6)).verdict == "no" for rho in ("1e-2", "1e-9"))


def topdown_to_swap_ratio(rates: Sequence[str]) -> float:
    """By what factor epsilon of PL and DHC exceeds that of the swap of 2010, at least."""
    topdown = zcdp_to_approximate(Fraction("15.29"), DELTA, "classical")
    return min(topdown / epsilon(3_653_802, Fraction(rate)) for rate in rates)


def swap_and_das_specifications_are_incomparable() -> bool:
    """Whether neither a swap of the 2020 Census nor the 2020 system implies the other."""
    swap, overall = _specification("psa-2020-state-county-p05"), _specification("das-2020-overall")
    return swap.implies(overall).verdict == "no" and overall.implies(swap).verdict == "no"


# -- errata --------------------------------------------------------------------------------------------------


def duplication_forms() -> Forms:
    """rho of a donor with one recipient: by the number of recipients, and by the number of records."""
    return Forms("a donor with one recipient: rho", float(das_rho(1)), float(das_rho(2)))


def households_and_persons_forms() -> Forms:
    """Whether a guarantee for households is one for persons at the same epsilon."""
    free, staying = flavors.pure("person").at(1), flavors.pure("person", stays_in=("household",)).at(1)
    household = flavors.pure("household").at(1)
    return Forms(
        "epsilon 1 for households implies epsilon 1 for persons",
        "yes, always",
        f"{household.implies(free).verdict} if persons may move, {household.implies(staying).verdict} if they stay",
    )


# -- helpers -------------------------------------------------------------------------------------------------


@cache
def _three_margins() -> tuple[dict[str, list[dict[str, str]]], list[Invariant], FiniteMechanism]:
    """All files of two persons with three attributes, their three margins, and the mechanism that publishes these."""
    names = ("state", "housing", "quarters")
    persons = [dict(zip(names, values, strict=True)) for values in itertools.product("01", repeat=3)]
    files = {str(n): list(pair) for n, pair in enumerate(itertools.combinations_with_replacement(persons, 2))}
    margins = [Invariant("person", by=(name,)) for name in names]
    told = FiniteMechanism.releases(files, lambda file: [sorted(margin.value(file).items()) for margin in margins])
    return files, margins, told


def _specification(name: str) -> Specification:
    return deployment(name).specification


def _overall(records: int = 1) -> Specification:
    whole = compose(*(_specification(name) for name in _RELEASES)).specification
    return per_respondent(whole, records).specification if records > 1 else whole


def _number(specification: Specification) -> Fraction:
    return Fraction(specification.budget.number)
