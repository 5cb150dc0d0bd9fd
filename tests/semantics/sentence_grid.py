"""A grid of guarantees whose sentences are recomputed, what each is computed from, and how its numbers are rounded.

Upper bounds must be rounded up and lower ones down, and by no more than their last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import sentence_oracle as oracle

from stirred.loss import (
    EpsilonProfile,
    GaussianCurve,
    PowerCurve,
    pair_outcomes,
    pair_power_curve,
    swap_power_curve,
)
from stirred.semantics.swap_exposure import NORMAL, TWO_RECORDS, ExactLoss, PutBackShare, SwapExposure, SwapPair
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
    flavors,
)
from stirred.spec.known_deployments.names import names
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
    own: SwapExposure | None = None
    swap: tuple[int, str] | None = None
    """Size of the one stratum and rate of a swap whose own numbers are explained."""


SWAPPED = (("mechanism", "permutation-swapping"), ("rate", "3/10"), ("largest_stratum", 6))
PAIR = "county A and B"


def swaps():
    """Swaps with numbers of their own: a stratum of six records with three swap values, held by 2, 1 and 3 of them."""
    two_apart = flavors.given_invariants(flavors.pure("household"), FIXED, nearest=2)
    rate, most = Fraction("0.3"), swap_power_curve(6, "0.3")

    def pair(own, other):
        first, second = pair_outcomes(6, rate, own, other)
        odds = float(first[0, 1] / second[0, 1])
        return SwapPair(PAIR, pair_power_curve(6, rate, own, other), TWO_RECORDS, most, 6, (1, 1), (own, other), odds)

    hidden = SwapPair(PAIR, GaussianCurve(0.9), NORMAL, most, 6, (2, 4), (1, 2))
    full = SwapExposure(
        most, rate, 6, strata=1, smallest=6, records=50, uniques=4, most=pair(1, 2), least=pair(2, 3), real=True,
        typical=pair(1, 3), named=(pair(1, 2), hidden), loss=ExactLoss(abs(math.log(3 / 7)), 1),
    )  # fmt: skip
    specification = two_apart.at(repr(math.log(7) - math.log(3 / 7)), facts=SWAPPED)
    yield Case("swap, unique pairs", specification, own=full, swap=(6, "0.3"))
    yield Case("swap, hidden pairs", specification, own=replace(full, real=False, typical=hidden), swap=(6, "0.3"))
    for name, back in (
        ("", PutBackShare(0.37, ("plot", "built"), ("district",), 0.1)),
        (" not", PutBackShare(0.0, (), ())),
    ):
        yield Case(f"swap,{name} put back", specification, own=replace(full, put_back=back), swap=(6, "0.3"))
    yield Case("swap, rates by rule", specification, own=SwapExposure(most, None, 6, strata=1, smallest=6),
               swap=(6, "0.3"))  # fmt: skip
    in_rounds = two_apart.at(specification.budget.number, facts=(*SWAPPED, ("rounds", 2)))
    yield Case("swap, rounds", in_rounds, own=SwapExposure(most, None, 6, strata=1, smallest=6), swap=(6, "0.3"))
    yield Case("swap, small false alarms", specification, (0.001,),
               own=replace(full, worst=swap_power_curve(5, "0.5"), rate=Fraction(1, 2)), swap=(5, "0.5"))  # fmt: skip
    yield Case("swap, not known", two_apart.at(3, facts=(("mechanism", "permutation-swapping"), ("rates", "some"))))
    yield Case("swap, from facts", specification)
    yield Case("swap, two percent", load("psa-2010"))


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
    not_released = (("held_not_released", True),)
    yield "taken as known", flavors.given_invariants(flavors.pure(), FIXED, nearest=1).at(1, facts=not_released)
    released = {"covers": ("a table",), "facts": (("part_of", "rho = 3 for all of it"),)}
    yield "published", flavors.given_invariants(flavors.pure(), FIXED, nearest=1).at(1, **released)
    counted = [Invariant("person", by=("state",)), *FIXED]
    stays = flavors.given_invariants(flavors.pure("person", stays_in=("household",)), counted, nearest=1)
    yield "published and assumed", stays.at(1, **released)
    alone = (("match", "size"), ("swap", "county"), ("alone_by_match_and_swap", 1234))
    yield "counts of one", flavors.given_invariants(flavors.pure(), FIXED, nearest=2).at(1, facts=alone)
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
    yield from swaps()
    for name in ("psa-2010", "psa-2020-state-county-p50", "das-2020-overall", "safetab-p-2020"):
        if name in names():
            yield Case(name, load(name))
    census = load("topdown-2020-pl")
    yield Case("a survey without its row", flavors.pure("household").at(1, facts=(("mechanism", "survey"),)))
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
