"""Numbers about tests and beliefs: Kifer et al. (2022). Figures are in :mod:`.paper_figures`."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np

from stirred import loss
from stirred.lab.definitions.beliefs import Beliefs, GaussianBelief
from stirred.lab.definitions.composition_filters import composed_approximate, composed_zcdp
from stirred.lab.definitions.two_laws import Definition, uncertain_power
from stirred.lab.reproduce.catalogue import Between, Forms, published
from stirred.lab.reproduce.examples import response
from stirred.lab.reproduce.paper_figures import (
    discrete_loss,
    discrete_powers,
    kifer_concerns,
    kifer_figure,
    kifer_scenarios,
)
from stirred.loss import GaussianCurve, PowerCurve, ZcdpCurve
from stirred.semantics.belief_bounds import AnyPriorBelief, PredictiveBelief, PureBelief, TrueRecordBelief
from stirred.semantics.pictures.shapes import Bars, Picture
from stirred.semantics.testing import gaussian_curve
from stirred.spec.known_deployments.allocations import Allocation, allocation
from stirred.spec.order.finite_mechanisms import FiniteMechanism

_LEVELS = np.linspace(0, 1, 101)
_RHO = 2.63
"""Of the redistricting data, at which formulas are evaluated."""

# -- section 4: losses ---------------------------------------------------------------------------------------


def loss_of_randomised_response(epsilon: str) -> bool:
    """Whether the loss, counted out, is epsilon with probability e^epsilon / (1 + e^epsilon), else -epsilon."""
    e = float(epsilon)
    listed = loss.finite_loss(*response(e).rows)
    masses = [1 / (1 + math.exp(e)), math.exp(e) / (1 + math.exp(e))]
    return np.allclose(listed.losses, [-e, e]) and np.allclose(listed.masses, masses)


def loss_of_geometric_noise(epsilon: str) -> bool:
    """Whether geometric noise has the loss of randomised response."""
    one, other = loss.geometric(float(epsilon)), loss.randomised_response(float(epsilon))
    return np.allclose(one.losses, other.losses) and np.allclose(one.masses, other.masses)


def loss_of_gaussian_noise(variance: str) -> bool:
    """Whether mean and variance of the loss are 1/(2 variance) and 1/variance."""
    v, law = Fraction(variance), loss.gaussian(Fraction(variance)).law
    return math.isclose(law.mean, 1 / (2 * v)) and math.isclose(law.variance, 1 / v)


def losses_add_up() -> bool:
    """Whether the loss of two randomised responses is the sum of two independent losses."""
    both = loss.finite_loss(*response(1).and_then(response(2)).rows)
    one, other = loss.randomised_response(1), loss.randomised_response(2)
    losses, masses = np.add.outer(one.losses, other.losses).ravel(), np.outer(one.masses, other.masses).ravel()
    order = np.argsort(losses)
    return np.allclose(both.losses, losses[order]) and np.allclose(both.masses, masses[order])


def second_output_drawn_from_the_other_dataset() -> Forms:
    """The mean loss of two randomised responses, with the second output drawn from either dataset."""
    p, q = response(1).rows
    losses = np.log(p / q)
    first, second = math.fsum(p * losses), math.fsum(q * losses)
    return Forms("mean loss of two randomised responses, epsilon = 1", round(first + second, 12), 2 * first)


def loss_of_a_published_sample(released: int, size: int) -> bool:
    """Whether the loss is 0 with probability (n - m)/n and infinite with probability m/n."""
    sampled = loss.sampling_loss(released, size)
    kept = (size - released) / size
    return sampled.losses.tolist() == [0] and np.allclose(sampled.masses, kept) and sampled.infinity == released / size


@cache
def _two_responses(epsilon: float) -> tuple[FiniteMechanism, FiniteMechanism, FiniteMechanism]:
    """Both of two responses, what is left of them if the second is forgotten, and if all is."""
    both = response(epsilon).and_then(response(epsilon))
    pairs = [(f"({a}, {b})", a) for a in "01" for b in "01"]
    return both, both.then({pair: {a: 1} for pair, a in pairs}), both.then({pair: {"1": 1} for pair, _ in pairs})


def tails_after_processing(epsilon: str) -> bool:
    """Whether P(L > epsilon/2) is 0, e^2epsilon/(1 + e^epsilon)^2 and e^epsilon/(1 + e^epsilon), in this order."""
    e, odds = float(epsilon), math.exp(float(epsilon))
    both, first, nothing = (Definition.probabilistic(e / 2, 1).price(made.rows) for made in _two_responses(e))
    formulas = math.isclose(both, odds**2 / (1 + odds) ** 2) and math.isclose(first, odds / (1 + odds))
    return formulas and nothing == 0 and both < first


def processed_responses_are_pure(epsilon: str) -> bool:
    """Whether all three satisfy 2 epsilon-DP."""
    return all(Definition.pure(2 * float(epsilon)).satisfied(*made.rows) for made in _two_responses(float(epsilon)))


# -- section 5: definitions ----------------------------------------------------------------------------------


def odds_after_two_responses(epsilon: str, output: str) -> float:
    """The logarithm of the factor by which the odds of a one change, in units of epsilon."""
    both = _two_responses(float(epsilon))[0]
    at = both.outputs.index(output)
    return round(math.log(both.rows[1, at] / both.rows[0, at]) / float(epsilon), 12)


def delta_at_epsilon_0_is_total_variation(rho: str) -> bool:
    """Whether delta(0) is the total variation distance: the most by which power exceeds the false-alarm probability."""
    curve, levels = gaussian_curve(float(rho)), np.linspace(0, 1, 100_001)
    furthest = float(np.max(curve.power(levels) - levels))
    return math.isclose(loss.gaussian_to_approximate(curve.mu, 0), furthest, abs_tol=1e-9)


def delta_bounds_the_tail(rho: str, epsilon: str) -> bool:
    """Whether delta of approximate DP is a bound on the probability of a loss above epsilon."""
    mu = math.sqrt(2 * float(rho))
    return loss.gaussian_to_tail(mu, float(epsilon)) <= loss.gaussian_to_approximate(mu, float(epsilon))


def one_record_published(size: int) -> bool:
    """Whether publishing one record of n satisfies (0, 1/n)-DP and loses everything with probability 1/n."""
    composed = loss.compose([(loss.sampling_loss(1, size), 1)])
    return all(np.allclose(composed.delta(epsilon), 1 / size) for epsilon in (0, math.inf))


def epsilons_and_deltas_add_up() -> bool:
    """Whether two (epsilon, delta)-DP mechanisms satisfy the sums of both, at the worst mechanisms."""
    points = [(Fraction(1), Fraction(1, 100)), (Fraction(1, 2), Fraction(1, 1000))]
    epsilon, delta = composed_approximate(points)
    worst = loss.compose([(loss.approximate_loss(*point), 1) for point in points])
    return (epsilon, delta) == (Fraction(3, 2), Fraction(11, 1000)) and worst.delta(epsilon).upper <= delta


@cache
def _example_5_8() -> tuple[FiniteMechanism, FiniteMechanism, FiniteMechanism, FiniteMechanism]:
    """M1, M2, their even mixture, and the test of it."""
    most, least = math.e / (1 + math.e), 1 / (1 + math.e)
    first = FiniteMechanism.of({"D1": {"2": most, "-2": least}, "D2": {"2": least, "-2": most}})
    second = FiniteMechanism.of({"D1": {"0": 1}, "D2": {"1": 0.01, "0": 0.99}})
    halves = np.hstack([first.rows / 2, second.rows / 2])
    mixture = FiniteMechanism(first.datasets, first.outputs + second.outputs, halves)
    test = mixture.then({"1": {"1": 1}, "-2": {"1": 0.05, "0": 0.95}, "2": {"0": 1}, "0": {"0": 1}})
    return first, second, mixture, test


def example_5_8_satisfies(mechanism: int, epsilon: str, delta: str) -> bool:
    """Whether M1, M2 or their mixture satisfies pbdp at one point."""
    return Definition.pbdp(float(epsilon), float(delta)).satisfied(*_example_5_8()[mechanism - 1].rows)


def example_5_8_test(dataset: str) -> float:
    """The probability that the test of the mixture says 1."""
    return _example_5_8()[3].law(dataset)["1"]


def gaussian_mu_is_the_root_of_twice_rho(rho: str) -> bool:
    """Whether the Renyi divergence of N(mu, 1) from N(0, 1), integrated, is rho times its order, mu = sqrt(2 rho)."""
    mu = math.sqrt(2 * float(rho))
    for order in (1.1, 2, 3.5, 6):
        # The integrand p^a q^(1-a) is a normal density about (1 - a) mu, times a constant.
        x, step = np.linspace(-12, 12, 24_001, retstep=True)
        x = x + (1 - order) * mu
        density = np.exp(-order * x**2 / 2 - (1 - order) * (x - mu) ** 2 / 2) / math.sqrt(2 * math.pi)
        divergence = math.log(float(density.sum() * step)) / (order - 1)
        if not math.isclose(divergence, float(rho) * order, rel_tol=1e-9):
            return False
    return True


def discrete_noise_has_the_pbdp_curve_of_continuous_noise(scenario: str) -> bool:
    """Whether the deltas of pbdp differ by less than 1e-4 at every epsilon that is asked, for sure."""
    mu = gaussian_curve(kifer_scenarios()[scenario].exposure.rho).mu
    for epsilon in (1, 2, 3, 5, 8):
        exact = loss.gaussian_to_pbdp_delta(mu, epsilon)
        if any(abs(loss.tradeoff_to_pbdp_delta(curve, epsilon) - exact) > 1e-4 for curve in discrete_powers(scenario)):
            return False
    return True


def zcdp_overstates_pbdp_of_gaussian_noise(rho: str) -> bool:
    """Whether delta of pbdp is below the bound from zCDP at every epsilon above rho that is asked."""
    r = float(rho)
    mu = math.sqrt(2 * r)
    return all(loss.gaussian_to_pbdp_delta(mu, r * t) < loss.zcdp_to_pbdp_delta(r, r * t) for t in (1.1, 2, 4, 8))


def variance_in_the_caption_of_figure_1() -> Forms:
    """rho of Gaussian noise of either variance on a count that changes by one."""
    printed, correct = (loss.gaussian_to_zcdp(1 / math.sqrt(v)) for v in (1 / _RHO, 1 / (2 * _RHO)))
    return Forms("rho of this noise", printed, correct)


def loss_compared_with_an_exponential() -> Forms:
    """P(L > e^epsilon) and P(L > epsilon) with Gaussian noise."""
    mu = math.sqrt(2 * _RHO)
    forms = (loss.gaussian_to_tail(mu, limit) for limit in (math.exp(3), 3))
    return Forms("probability at rho = 2.63 and epsilon = 3", *forms)


def inverse_of_a_trade_off_function_above_its_start() -> Forms:
    """Whether f(f^-1(z)) >= z where z is above f(0): one record of ten is published."""
    curve = PowerCurve(((0, 0.1), (0.9, 1), (1, 1)))
    inverse = float(loss.level_at_power(curve, 0.05))  # f^-1(0.95)
    return Forms("f(x) = 0.9 - x, z = 0.95", True, float(curve.type_two_error(inverse)) >= 0.95)


# -- section 6: tests ----------------------------------------------------------------------------------------


def pure_dp_power(epsilon: str, level: str) -> float:
    """The largest power under pure DP, Theorem 6.1."""
    return float(loss.pure_power(float(epsilon)).power(float(level)))


def gaussian_noise_power(rho: str, level: str) -> float:
    """The largest power with continuous noise, by the formula of section 8.3."""
    return float(GaussianCurve(math.sqrt(2 * float(rho))).power(float(level)))


def zcdp_power(rho: str, level: str) -> float:
    """The largest power that zCDP allows, over all orders and the limit at order 1."""
    return float(ZcdpCurve(float(rho)).power(float(level)))


def discrete_noise_power(scenario: str, level: str) -> Between:
    """The largest power with the discrete noise of the redistricting data."""
    return Between(*discrete_loss(scenario).power(float(level)))


def nothing_is_learnt_at_epsilon_0() -> bool:
    """Whether the power equals the false-alarm probability at epsilon 0."""
    return bool(np.all(loss.pure_power(0).power(_LEVELS) == _LEVELS))


def whole_curve_bounds_the_power(rho: str) -> bool:
    """Whether the lowest of the bounds of Theorem 6.2 over the curve of Gaussian noise is its exact power, and one
    point of the curve is not."""
    curve = gaussian_curve(float(rho))
    deltas = np.concatenate([np.logspace(-9, -2, 150), np.linspace(0.0101, 0.75, 1000)])
    points = tuple((float(delta), loss.gaussian_epsilon(curve.mu, float(delta))) for delta in deltas)
    levels = (0.01, 0.05, 0.1)
    whole, one = (loss.profile_power_curve(loss.EpsilonProfile(some)) for some in (points, points[:1]))
    exact = curve.power(levels)
    return bool(np.all(np.abs(whole.power(levels) - exact) < 1e-6) and np.all(one.power(levels) > 0.999))


def gaussian_power_is_below_that_of_zcdp(rho: str) -> bool:
    """Whether the power with Gaussian noise is below what zCDP allows."""
    inside = _LEVELS[1:-1]
    return bool(np.all(gaussian_curve(float(rho)).power(inside) < ZcdpCurve(float(rho)).power(inside)))


def largest_powers_are_concave() -> bool:
    """Whether the largest powers under pure DP, zCDP and Gaussian noise are concave."""
    curves = (loss.pure_power(1), ZcdpCurve(_RHO), gaussian_curve(_RHO))
    return all(bool(np.all(np.diff(curve.power(_LEVELS), 2) <= 1e-9)) for curve in curves)


def uncertainty_about_others_gains_nothing() -> bool:
    """Whether, of three who respond, an attacker sure of two has the power that pure DP allows, and no belief more."""
    answers = response(1, respondents=3)
    rests = [a + b for a in "01" for b in "01"]
    worlds = [{rest: record + rest for rest in rests} for record in "01"]
    allowed = loss.pure_power(1).power(_LEVELS)
    beliefs = ({"00": 1.0}, {"00": 0.5, "11": 0.5}, {"00": 0.1, "01": 0.2, "10": 0.3, "11": 0.4})
    powers = [uncertain_power(answers, belief, *worlds).power(_LEVELS) for belief in beliefs]
    return np.allclose(powers[0], allowed) and all(bool(np.all(power <= allowed + 1e-9)) for power in powers)


def curves_in_the_caption_of_figure_2() -> Forms:
    """How many curves Figure 2 shows by its caption, and by the text of section 6.3."""
    return Forms("number of curves", 2, len(kifer_figure(2).lines))


# -- section 7: beliefs --------------------------------------------------------------------------------------


def _alike(share: float, flip: float) -> dict[tuple[str, str], float]:
    """The first is 1 with probability ``share``, the second is the same, or with probability ``flip`` not."""
    return {(a, b): (share if a == "1" else 1 - share) * (1 - flip if a == b else flip) for a in "01" for b in "01"}


def pure_dp_bounds_the_ratio_of_posteriors(epsilon: str) -> bool:
    """Whether the ratio keeps within e^(+-epsilon) at every output, for dependent priors."""
    e = float(epsilon)
    found = [Beliefs(_alike(*prior), response(e, 2), 0) for prior in ((0.1, 0.1), (0.01, 0.05), (0.3, 0.5))]
    return all(bool(np.all(np.abs(np.log(seen.ratio)) <= PureBelief(e).limit * (1 + 1e-9))) for seen in found)


def default_record_doubles_epsilon(epsilon: str) -> bool:
    """Whether no ratio against a default record is above e^(2 epsilon), and one is above e^(1.99 epsilon).

    The target's record is 1 if the other one is a, and 2 if it is b; 0 is put in its place. One answer is likelier by
    e^epsilon than with the 0 beside an a, and rarer by it beside a b.
    """
    e, rare = float(epsilon), 0.01
    factors = {("1", "a"): math.exp(e), ("2", "b"): math.exp(-e)}
    yes = {(r, rest): rare * factors.get((r, rest), 1.0) for r in "012" for rest in "ab"}
    for one, other in itertools.permutations(yes, 2):
        laws = np.array([[yes[pair], 1 - yes[pair]] for pair in (one, other)])
        neighbours = sum(x != y for x, y in zip(one, other, strict=True)) == 1
        if neighbours and not Definition.pure(e * (1 + 1e-9)).satisfied(*laws):
            return False
    ratios = []
    for share in (0.5, 0.1, 1e-3):
        prior = {("1", "a"): share, ("2", "b"): 1 - share}
        for law in (yes, {pair: 1 - chance for pair, chance in yes.items()}):
            actual = {pair: chance * law[pair] for pair, chance in prior.items()}
            default = {pair: chance * law["0", pair[1]] for pair, chance in prior.items()}
            totals = sum(default.values()) / sum(actual.values())
            ratios += [abs(math.log(actual[pair] / default[pair] * totals)) for pair in prior]
    limit = PureBelief(e).default_record().limit
    return 1.99 * e < max(ratios) <= limit <= 2 * e


def perceived_breach(what: str) -> float:
    """Example 7.2: the posterior at 101.3, the counterfactual one, and their ratio."""
    belief = GaussianBelief(1, 0.01)
    ratio = float(belief.ratio(101.3))
    posterior = float(belief.posterior(101.3))
    return {"actual": posterior, "counterfactual": posterior / ratio, "ratio": ratio}[what]


def output_has_one_law_in_both_worlds() -> bool:
    """Whether P(M(X) = w) is the same with the target's record resampled."""
    seen = Beliefs(_alike(0.1, 0.1), response(1, 2), 0)
    return np.allclose(seen.predictive, seen.predictive_counterfactual)


def theorem_7_4_is_the_pbdp_curve(rho: str) -> bool:
    """Whether the bound on beliefs is delta of pbdp, at every epsilon that is asked."""
    curve = gaussian_curve(float(rho))
    bound = TrueRecordBelief(curve)
    return all(math.isclose(bound.delta(e), loss.gaussian_to_pbdp_delta(curve.mu, e)) for e in (1, 3, 5, 10))


def theorem_7_5_is_above_theorem_7_3(rho: str) -> bool:
    """Whether delta of Theorem 7.5 is the larger one, at every epsilon above rho that is asked."""
    first, second = PredictiveBelief(float(rho)), AnyPriorBelief(float(rho))
    return all(second.delta(float(rho) * t) > first.delta(float(rho) * t) for t in (1.01, 2, 4, 8))


def theorem_7_5_is_the_bound_of_section_5_3(rho: str) -> bool:
    """Whether the lowest delta of Theorem 7.5 over many orders, each with divergence rho times the order, is that from
    zCDP to pbdp."""
    orders = np.arange(1.0005, 4, 0.0005)
    bound = AnyPriorBelief(points=tuple((float(order), float(rho) * float(order)) for order in orders))
    return all(math.isclose(bound.delta(e), loss.zcdp_to_pbdp_delta(float(rho), e), rel_tol=1e-6) for e in (3, 5, 10))


def exponent_after_theorem_7_5() -> Forms:
    """Delta by the printed exponent and by that of the theorem."""
    printed = math.exp(-(5 - _RHO**2) / (4 * _RHO))
    return Forms("delta at rho = 2.63 and epsilon = 5", printed, AnyPriorBelief(_RHO).delta(5))


def last_display_of_the_proof_of_theorem_7_5() -> Forms:
    """Delta by the printed difference and by the product."""
    printed = math.exp((5 - _RHO) / (2 * _RHO) - (5 + _RHO) / 2)
    return Forms("delta at rho = 2.63 and epsilon = 5", printed, AnyPriorBelief(_RHO).delta(5))


def bounds_grow_with_rho() -> Forms:
    """Whether the bound of Theorem 7.3 falls or rises as rho grows."""
    grows = PredictiveBelief(2).delta(3) > PredictiveBelief(1).delta(3)
    return Forms("epsilon = 3, rho from 1 to 2", "falls", "rises" if grows else "falls")


def the_true_record_is_another_event() -> Forms:
    """Delta of Theorem 7.3, which 7.4 is said to sharpen, and of 7.4."""
    true = TrueRecordBelief(gaussian_curve(_RHO))
    return Forms("delta at rho = 2.63 and epsilon = 3", f"below {PredictiveBelief(_RHO).delta(3):.4f}", true.delta(3))


def bound_up_to_rho() -> Forms:
    """The formula of Theorem 7.3 below rho, where it is not promised, and what holds there."""
    return Forms("7.3 at rho = 2 and epsilon = 0.5", math.exp(-((0.5 + 2) ** 2) / 8), PredictiveBelief(2).delta(0.5))


# -- section 8: the redistricting data -----------------------------------------------------------------------


def _pl94() -> Allocation:
    return allocation("pl94-2020")


def share_of_level(part: str, level: str) -> Fraction:
    """The share of a part's rho that a geographic level has: what it costs, divided by what the part costs."""
    whole = _pl94().part(part)
    queries = [one.name for one in whole.queries]
    return _pl94().total(rounded=True, levels=[level], queries=queries) / whole.rounded


def share_of_query(query: str, level: str) -> Fraction:
    """The share of a level's rho that a query has: what it costs, divided by what the level costs."""
    persons = [one.name for one in _pl94().part("persons").queries]
    whole = _pl94().total(rounded=True, levels=[level], queries=persons)
    return _pl94().rho(level, query, rounded=True) / whole


def cells_of_query(query: str) -> int:
    """How many numbers a query asks for: the product of the numbers of categories of what it counts by."""
    cells = {one.name: one.cells for part in _pl94().parts for one in part.queries}
    return math.prod(cells[name] or 0 for name in query.split("*") if name != "total")


def rho_of_query(query: str, level: str) -> Fraction:
    """rho of a query at a geographic level."""
    return _pl94().rho(level, query, rounded=True)


def whole_rho() -> Fraction | float:
    """rho of all queries on the way from a block up to the nation."""
    return composed_zcdp(_pl94().rho(*cell, rounded=True) for cell in _pl94().cells())


def rounded_base_rho() -> Forms:
    """The sum of both base rhos, as printed and as noise was drawn."""
    return Forms("their sum", float(_pl94().total(rounded=True)), float(_pl94().total(rounded=False)))


def scenario_rho(scenario: str) -> Fraction:
    """rho of the queries of a scenario, from Tables 3 to 5."""
    return kifer_scenarios()[scenario].exposure.rho


def scenario_power(scenario: str, level: str) -> float:
    """The power in a scenario with continuous noise, at the rho of Tables 3 to 5."""
    return float(kifer_scenarios()[scenario].exposure.gaussian.power(float(level)))


def power_at_the_printed_rho(scenario: str, level: str) -> float:
    """The power in a scenario with continuous noise, at the rho that is printed for it."""
    return gaussian_noise_power(published(f"semantics-paper/scenario-{scenario}/rho"), level)


def semantics_figure(number: int) -> list[Picture]:
    """A figure of the paper."""
    return [kifer_figure(number)]


def scenario_bars() -> list[Bars]:
    """rho of every scenario as bars."""
    return [kifer_concerns()]


# -- appendix A ----------------------------------------------------------------------------------------------


def pure_dp_is_pbdp_at_every_delta(epsilon: str) -> bool:
    """Whether randomised response satisfies pbdp at its epsilon for all deltas asked, and not at a smaller one."""
    laws = response(float(epsilon)).rows
    deltas = (1e-6, 1e-3, 0.1, 0.5, 0.9, 1)
    passes = all(Definition.pbdp(float(epsilon), delta).satisfied(*laws) for delta in deltas)
    return passes and not Definition.pbdp(0.9 * float(epsilon), 1e-6).satisfied(*laws)
