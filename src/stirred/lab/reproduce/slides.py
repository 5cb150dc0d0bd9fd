"""Numbers of the slides: randomised response, dependent records, swapping and the censuses."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np

from stirred.lab.definitions.beliefs import (
    Beliefs,
    covariance,
    dependency_component,
    markov_boundary,
    pair_likelihood_ratio,
    posterior_factor,
    posterior_factor_bounds,
    prior_to_posterior_bounds,
)
from stirred.lab.definitions.swap_practices import (
    as_files,
    exact_loss,
    name_of,
    selected,
    swap_flavor,
    tables,
    tables_of,
)
from stirred.lab.reproduce.catalogue import Forms
from stirred.lab.reproduce.examples import response
from stirred.loss import multiplicative
from stirred.noise import SeededSource
from stirred.semantics import randomised_response as responses
from stirred.spec import Invariant, flavors
from stirred.spec.blocks import lipschitz
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.order.conversions import as_approximate
from stirred.spec.order.finite_mechanisms import FiniteMechanism, randomised_response
from stirred.swap.law import permutation, theorem
from stirred.tables.groups import Groups

# -- randomised response -------------------------------------------------------------------------------------


def share_from_answers(mean: str, keep: str) -> float:
    """The estimated share, Warner's estimator."""
    return responses.estimated_share(mean, keep)


def variance_has_its_bound(keep: str, respondents: int) -> bool:
    """Whether the variance is at most 1 / (16 n (p - 1/2)^2) for every share, and reaches it."""
    shares = [Fraction(k, 20) for k in range(21)]
    largest = max(responses.variance(share, keep, respondents) for share in shares)
    bound = 1 / (16 * respondents * (Fraction(keep) - Fraction(1, 2)) ** 2)
    return math.isclose(largest, bound) and math.isclose(responses.variance_bound(keep, respondents), bound)


def likelihood_ratio_of_an_answer(keep: str) -> bool:
    """Whether the likelihood ratio is p/(1 - p) = e^epsilon after a one and e^-epsilon after a zero."""
    no, yes = randomised_response(1 - Fraction(keep)).rows
    odds = float(Fraction(keep) / (1 - Fraction(keep)))
    epsilon = responses.epsilon(keep)
    return np.allclose(yes / no, [1 / odds, odds]) and np.allclose(yes / no, [math.exp(-epsilon), math.exp(epsilon)])


def answers_are_pure_dp(keep: str, respondents: int) -> bool:
    """Whether logit(p) is the Lipschitz constant of all answers in the number of answers that differ."""
    answers = randomised_response(1 - Fraction(keep), respondents=respondents)
    found = max(
        multiplicative(answers.rows[i], answers.rows[j]) / sum(a != b for a, b in zip(one, other, strict=True))
        for (i, one), (j, other) in itertools.combinations(enumerate(answers.datasets), 2)
    )
    return math.isclose(found, responses.epsilon(keep))


def relative_risk_is_the_likelihood_ratio(keep: str, share: str) -> bool:
    """Whether the relative change of belief in both records is the likelihood ratio."""
    answers = randomised_response(1 - Fraction(keep))
    seen = Beliefs({("0",): 1 - Fraction(share), ("1",): Fraction(share)}, answers, 0)
    return np.allclose(seen.prior_to_posterior[1] / seen.prior_to_posterior[0], answers.rows[1] / answers.rows[0])


# -- from prior to posterior ---------------------------------------------------------------------------------


def factor_lies_between_1_and_the_likelihood_ratio() -> bool:
    """Whether C lies between 1 and LR for every share, and both are reached at the ends."""
    shares = np.linspace(0, 1, 101)
    for ratio in (0.2, 1.0, 3.0):
        factors, ends = posterior_factor(ratio, shares), posterior_factor_bounds(ratio)
        if not np.allclose((factors.min(), factors.max()), ends) or sorted((1.0, ratio)) != list(ends):
            return False
    return True


def _chain(share: float, flip: float, people: int) -> dict[tuple[str, ...], float]:
    """The first is 1 with probability ``share``; each next is as the one before, or with probability ``flip`` not."""
    prior = {}
    for bits in itertools.product((0, 1), repeat=people):
        chances = [flip if before != after else 1 - flip for before, after in itertools.pairwise(bits)]
        prior[tuple(map(str, bits))] = (share if bits[0] else 1 - share) * math.prod(chances)
    return prior


def _learnt(prior: dict[tuple[str, ...], float]) -> float:
    """The factor from prior to posterior of the first record being 1 if all answer 1."""
    seen = Beliefs(prior, response(1, len(next(iter(prior)))), 0)
    return float(seen.prior_to_posterior[seen.records.index("1"), seen.outputs.index(max(seen.outputs))])


def two_copies() -> float:
    """ln LR(1, 1) of two records that are copies, in units of epsilon."""
    return round(math.log(pair_likelihood_ratio(1, [[0.5, 0], [0, 0.5]])), 12)


def positive_covariance_tells_more() -> bool:
    """Whether LR(1, 1) > e^epsilon exactly if the covariance is positive."""
    cases = [(0.8, 0.3), (0.5, 0.5), (0.3, 0.8), (1.0, 0.0)]
    for yes, no in cases:  # P(X2 = 1) given X1 = 1 and X1 = 0
        joint = [[0.7 * (1 - no), 0.7 * no], [0.3 * (1 - yes), 0.3 * yes]]
        more = pair_likelihood_ratio(1, joint) > math.e * (1 + 1e-12)
        if more != (covariance(joint) > 1e-12) or more != (yes > no):
            return False
    return True


def copies_reach_n_epsilon(people: int) -> bool:
    """Whether the factor stays below e^(n epsilon) and comes near as records become copies."""
    bound = prior_to_posterior_bounds(people, 1)[1]
    weak, strong = (_learnt(_chain(1e-9, flip, people)) for flip in (0.1, 1e-12))
    return weak < strong < bound and math.isclose(strong, bound, rel_tol=1e-6)


def marginal_factor_is_bounded() -> bool:
    """Whether pure DP keeps posterior to prior within e^epsilon where records are dependent."""
    return _learnt(_chain(0.01, 0.05, 2)) <= math.e


def conditional_factor_is_bounded() -> bool:
    """Whether it does so given all other records, for each of their values."""
    prior = _chain(0.01, 0.05, 2)
    for other in "01":
        known = {record: chance for record, chance in prior.items() if record[1] == other}
        seen = Beliefs({record: chance / sum(known.values()) for record, chance in known.items()}, response(1, 2), 0)
        if not np.all(np.abs(np.log(seen.prior_to_posterior)) <= 1 + 1e-9):
            return False
    return True


def markov_boundary_as_a_bound() -> Forms:
    """The bound by the Markov boundary, which the exact factor exceeds, and that by the component."""
    chain = _chain(1e-4, 0.01, 3)
    boundary, component = len(markov_boundary(chain, 0)) + 1, len(dependency_component(chain, 0))
    example = f"three answers of a chain at epsilon 1, exact factor {_learnt(chain):.4f}; bound"
    return Forms(example, *(prior_to_posterior_bounds(records, 1)[1] for records in (boundary, component)))


# -- swapping ------------------------------------------------------------------------------------------------

_HOUSEHOLDS = (
    {"state": "MA", "location": "Cambridge", "adults": 2, "children": 2, "race": "White"},
    {"state": "TX", "location": "Houston", "adults": 1, "children": 0, "race": "Hispanic"},
    {"state": "WA", "location": "Tacoma", "adults": 5, "children": 0, "race": "Asian"},
    {"state": "MA", "location": "Somerville", "adults": 2, "children": 2, "race": "Black"},
)
_STRATIFY = ("state", "adults", "children")


@cache
def _swapped() -> tuple[dict[str, object], ...]:
    """The four households after a swap of locations at rate 1, which has one outcome."""
    keys = [tuple(one[name] for name in _STRATIFY) for one in _HOUSEHOLDS]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    strata = Groups(np.array([numbers[key] for key in keys], dtype=np.uint32), len(numbers))
    moves = permutation.draw(strata, strata.sizes(), Fraction(1), SeededSource(0))
    giver = moves.apply(np.arange(len(_HOUSEHOLDS), dtype=np.uint32))
    return tuple({**one, "location": _HOUSEHOLDS[at]["location"]} for one, at in zip(_HOUSEHOLDS, giver, strict=True))


def swapped_cell(location: str, race: str) -> int:
    """By how much the swap changes a cell of location by race."""
    before, after = (
        sum(one["location"] == location and one["race"] == race for one in file) for file in (_HOUSEHOLDS, _swapped())
    )
    return after - before


def swap_keeps_its_margins() -> bool:
    """Whether both margins of a swap are kept, and the cells of rest by swap are not."""
    kept = [Invariant("household", by=(*_STRATIFY, other)) for other in ("race", "location")]
    moved = Invariant("household", by=("race", "location"))
    before, after = list(_HOUSEHOLDS), list(_swapped())
    margins = all(margin.value(before) == margin.value(after) for margin in kept)
    return margins and moved.value(before) != moved.value(after)


def _loss_if_permuted(size: int, rate: Fraction) -> float:
    """The exact loss of one stratum of different records if those selected are permuted, some perhaps to their own."""
    moves: dict[tuple[int, ...], Fraction] = {}
    for chosen, chance in selected((rate,) * size).items():
        for order in itertools.permutations(chosen):
            to = dict(zip(chosen, order, strict=True))
            moved = tuple(to.get(slot, slot) for slot in range(size))
            moves[moved] = moves.get(moved, Fraction(0)) + chance / math.factorial(len(chosen))
    universe = tables_of((1,) * size, (1,) * size)
    laws = {name_of(one): tables(one, moves) for one in universe}  # type: ignore[arg-type]
    return FiniteMechanism.of(laws).loss(swap_flavor(), as_files(universe)).number


def permuted_or_deranged() -> Forms:
    """Whether the formula bounds the exact loss of four different records, permuted and deranged."""
    rate = Fraction(7, 10)
    bound = theorem.epsilon(4, rate)
    losses = [_loss_if_permuted(4, rate), exact_loss(tables_of((1,) * 4, (1,) * 4), rate).number]
    said = [f"{exact:.4f} {'at most' if exact <= bound else 'above'} {bound:.4f}" for exact in losses]
    return Forms("exact loss and formula, 4 records, rate 0.7", *said)


# -- censuses ------------------------------------------------------------------------------------------------


def census_epsilon(name: str, delta: str) -> Fraction | float:
    """Epsilon at delta, by the classical conversion."""
    return as_approximate(deployment(name).specification, Fraction(delta), "classical").budget.number


def normalised_renyi_budget(name: str) -> float:
    """The budget of a deployment as a Lipschitz constant in the normalised Renyi metric: the root of rho."""
    found = deployment(name).specification
    return lipschitz(found.output_premetric, found.budget.number)


def topdown_has_a_finite_budget(declared: bool) -> bool:
    """Whether noise between two blocks, with the state's total kept, has a finite rho, the total declared or not."""
    files = {
        f"{a}+{b}": [{"state": "S", "block": 1}] * a + [{"state": "S", "block": 2}] * b
        for a in range(3)
        for b in range(3)
    }
    laws = {}
    for name, records in files.items():
        first, total = sum(record["block"] == 1 for record in records), len(records)
        weights = {f"{k}+{total - k}": Fraction(1, 2 ** abs(k - first)) for k in range(total + 1)}
        laws[name] = {output: weight / sum(weights.values()) for output, weight in weights.items()}
    invariants = [Invariant("person", by=("state",))] if declared else []
    flavor = flavors.zcdp("person", bounded=False, invariants=invariants)
    return math.isfinite(FiniteMechanism.of(laws).loss(flavor, files).number)
