"""Mechanisms with continuous outputs (Appendix A.1): their loss against closed forms and against quadrature."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from stirred.errors import StirredError
from stirred.lab.definitions.continuous_mechanisms import ContinuousMechanism, NoiseLaw, divergence_bounds
from stirred.lab.definitions.multiverses import laplace_scales
from stirred.lab.limits.distances_of_densities import density_distances
from stirred.limits import Density
from stirred.spec import Budget, Domain, FiniteMechanism, Flavor, InputPremetric, Multiverse, OutputPremetric, lint
from stirred.spec.order.finite_flavors import comparability
from stirred.spec.order.finite_mechanisms import divergence

PURE = OutputPremetric("multiplicative")
VARIATION = OutputPremetric("total-variation")
APPROXIMATE = OutputPremetric("approximate", "0.05")
RENYI = OutputPremetric("renyi", 3)
RHO = OutputPremetric("normalised-renyi")
OUTPUTS = (PURE, VARIATION, APPROXIMATE, RENYI, RHO)


def flavor(output=PURE, names=("a", "b"), distances=None, universes=()):
    table = distances or {(x, y): 1 for x in names for y in names if x != y}
    return Flavor(Domain("toy", datasets=tuple(names)), Multiverse((), universes), InputPremetric.table(table), output)


def frozen(law):
    """The law as scipy has it."""
    kind = {"laplace": stats.laplace, "normal": stats.norm}[law.name]
    return kind(law.location, law.scale)


def by_quadrature(output, f, g):
    """D_Pr by adaptive quadrature of densities of scipy, in both directions where the standard looks at both."""
    p, q = frozen(f), frozen(g)
    low, high = (sign * 60 * max(f.scale, g.scale) for sign in (-1, 1))
    middle = sorted((f.location, g.location))

    def integral(function):
        return sum(
            integrate.quad(function, a, b, limit=400, epsabs=1e-13, epsrel=1e-12)[0]
            for a, b in zip([low, *middle], [*middle, high], strict=True)
        )

    def renyi(order, one=p, other=q):
        value = integral(lambda t: math.exp(order * one.logpdf(t) + (1 - order) * other.logpdf(t)))
        return math.log(value) / (order - 1)

    def excess(epsilon):
        # The kinks are found first, so that quadrature meets none.
        points = np.linspace(low, high, 20001)
        signs = np.sign(p.logpdf(points) - q.logpdf(points) - epsilon)
        ends = points[:-1][np.diff(signs) != 0]
        roots = [
            optimize.brentq(lambda t: p.logpdf(t) - q.logpdf(t) - epsilon, a, a + points[1] - points[0]) for a in ends
        ]
        cuts = [-math.inf, *roots, math.inf]
        total = 0.0
        for a, b in itertools.pairwise(cuts):
            total += max(0.0, (p.cdf(b) - p.cdf(a)) - math.exp(epsilon) * (q.cdf(b) - q.cdf(a)))
        return total

    if output is VARIATION:
        return excess(0.0)
    if output is RENYI:
        return renyi(3)
    if output is RHO:
        found = [
            optimize.minimize_scalar(lambda a, pair=pair: -renyi(a, *pair) / a, bounds=(1.0001, 12), method="bounded")
            for pair in ((p, q), (q, p))
        ]
        at_one = integral(lambda t: p.pdf(t) * (p.logpdf(t) - q.logpdf(t)))  # the order may go to 1, and laws mirror
        return math.sqrt(max(at_one, *(-one.fun for one in found)))
    assert output is APPROXIMATE
    return optimize.brentq(lambda e: excess(e) - 0.05, 0, 20) if excess(0) > 0.05 else 0.0


PAIRS = [
    (NoiseLaw("laplace", 0, 2), NoiseLaw("laplace", 1, 2)),
    (NoiseLaw("laplace", -3, 0.5), NoiseLaw("laplace", -2.6, 0.5)),
    (NoiseLaw("normal", 0, 2), NoiseLaw("normal", 1, 2)),
    (NoiseLaw("normal", 5, 1), NoiseLaw("normal", 6.5, 1)),
]


@pytest.mark.parametrize("output", OUTPUTS[1:], ids=lambda one: one.name)
@pytest.mark.parametrize(("f", "g"), PAIRS, ids=str)
def test_definition_a_1_3_noise_of_one_scale_is_as_far_apart_as_quadrature_says(output, f, g):
    lower, upper = divergence_bounds(output, f, g)
    assert lower - 1e-7 <= by_quadrature(output, f, g) <= upper + 1e-7
    assert upper - lower <= 2e-5


@pytest.mark.parametrize("output", OUTPUTS[1:], ids=lambda one: one.name)
@pytest.mark.parametrize(("f", "g"), PAIRS, ids=str)
def test_closed_forms_lie_between_the_bounds_of_cells(output, f, g):
    # The same laws without their family: no formula is known, and only cells and monotone pieces are used.
    class Own:
        family = None

        def __init__(self, law):
            self.breaks, self.on, self.between = law.breaks, law.on, law.between

    low, high = divergence_bounds(output, Own(f), Own(g))
    closed = divergence_bounds(output, f, g)
    assert low <= closed[1] * (1 + 1e-9) and closed[0] <= high * (1 + 1e-9)
    if output in (VARIATION, APPROXIMATE):
        assert high - low < 1e-2
    else:
        assert high == math.inf  # endless tails of laws of one's own: no finite number is known to be enough


def test_pure_loss_is_exact_within_a_family():
    assert divergence_bounds(PURE, *PAIRS[0]) == (0.5, 0.5)
    assert divergence_bounds(PURE, *PAIRS[2]) == (math.inf, math.inf)
    wider = NoiseLaw("laplace", 0, 2), NoiseLaw("laplace", 0, 1)
    assert divergence_bounds(PURE, *wider) == (math.inf, math.inf)
    assert divergence_bounds(PURE, wider[0], wider[0]) == (0.0, 0.0)


@pytest.mark.parametrize("output", [VARIATION, APPROXIMATE], ids=lambda one: one.name)
def test_noise_of_two_scales_is_enclosed(output):
    for name in ("laplace", "normal"):
        f, g = NoiseLaw(name, 0, 1), NoiseLaw(name, 0.7, 1.6)
        lower, upper = divergence_bounds(output, f, g)
        truth = max(by_quadrature(output, f, g), by_quadrature(output, g, f))
        assert lower - 1e-9 <= truth <= upper + 1e-9 and upper - lower < 1e-3


def test_densities_of_ones_own_are_enclosed_too():
    triangle = Density.linear((0, 1, 2), ((0.1, 0.9), (0.9, 0.1)))
    flat = Density.linear((0, 2), ((0.5, 0.5),))
    mechanism = ContinuousMechanism.of({"a": triangle, "b": flat})
    for output in OUTPUTS:
        found = mechanism.loss(flavor(output))
        assert found.error <= 1e-4 * max(1, found.upper) and str(found)
    pure = mechanism.loss(flavor())
    assert pure.lower <= math.log(5) <= pure.upper and pure.upper == pytest.approx(math.log(5), rel=1e-3)
    exact = density_distances(triangle, flat)
    variation = mechanism.loss(flavor(VARIATION))
    assert (
        variation.lower - 1e-9 <= exact.total_variation.lower <= exact.total_variation.upper <= variation.upper + 1e-9
    )
    order = 3  # the integral of (t f)^3 / 0.5^2 over both sides
    value = 2 * integrate.quad(lambda t: (0.1 + 0.8 * t) ** order * 0.5 ** (1 - order), 0, 1)[0]
    back = 2 * integrate.quad(lambda t: (0.1 + 0.8 * t) ** (1 - order) * 0.5**order, 0, 1)[0]
    renyi = mechanism.loss(flavor(RENYI))
    assert renyi.lower - 1e-9 <= math.log(max(value, back)) / 2 <= renyi.upper + 1e-9


def test_definition_a_1_2_the_loss_is_the_largest_over_pairs_and_universes():
    values = {"a": 0, "b": 1, "c": 3}
    distances = {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 2, ("c", "b"): 2, ("a", "c"): 2, ("c", "a"): 2}
    noisy = ContinuousMechanism.laplace(values, 2)
    whole = noisy.loss(flavor(names="abc", distances=distances))
    assert whole.upper == 0.75 and whole.worst.distance == 2 and {whole.worst.first, whole.worst.second} == {"a", "c"}
    split = flavor(names="abc", distances=distances, universes=(("a", "b"), ("b", "c")))
    assert noisy.loss(split).by_universe == ((0.5, 0.5), (0.5, 0.5))
    assert noisy.satisfies(split.at("0.5")).verdict == "yes" and noisy.satisfies(split.at("0.49")).verdict == "no"
    assert noisy.satisfies(split.at(Budget(1, by_universe=(1, "1/4")))).verdict == "no"
    assert noisy.loss(replace(split, output_premetric=RHO)).upper < whole.upper**2 / 2  # below what pure DP gives
    gaussian = ContinuousMechanism.gaussian(values, 2)
    assert gaussian.loss(replace(split, output_premetric=RHO)).upper == pytest.approx(1 / 8)
    assert gaussian.loss(split).upper == math.inf and gaussian.satisfies(split.at(5)).verdict == "no"


def test_what_lies_between_the_bounds_is_not_decided():
    mechanism = ContinuousMechanism.laplace({"a": 0, "b": 1}, 2)
    found = mechanism.loss(flavor(RHO))
    middle = flavor(RHO).at((found.lower + found.upper) / 2)
    assert found.lower < found.upper and mechanism.satisfies(middle).verdict == "unknown"
    assert mechanism.satisfies(flavor(RHO).at(found.upper * 1.0001)).verdict == "yes"
    assert mechanism.satisfies(flavor(RHO).at(found.lower * 0.9999)).verdict == "no"


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda one: one.name)
def test_definition_a_1_4_fewer_events_never_raise_the_loss_and_all_of_them_reach_it(output):
    mechanism = ContinuousMechanism.laplace({"a": 0, "b": 1, "c": 1.5}, 2)
    place = flavor(output, "abc")
    full = mechanism.loss(place)
    random, reached = np.random.default_rng(14), 0.0
    cuts = sorted(random.normal(0, 2, size=3).tolist())
    for _ in range(6):
        coarse = mechanism.coarsen(cuts)
        finer = sorted({*cuts, *random.normal(0.5, 2.5, size=len(cuts) + 20).tolist()})
        fine = mechanism.coarsen(finer)
        assert coarse.loss(place).number <= fine.loss(place).number + 1e-12
        assert fine.loss(place).number <= full.upper * (1 + 1e-9)
        reached, cuts = fine.loss(place).number, finer
    assert reached >= 0.95 * full.lower


def test_definition_a_1_4_masses_of_cells_are_those_of_scipy():
    cuts = [-300, -1.0, 0.0, 0.25, 4, 300]
    for name in ("laplace", "normal"):
        law = NoiseLaw(name, 0.25, 1.5)
        row = ContinuousMechanism.of({"a": law}).coarsen(cuts).rows[0]
        expected = np.diff([0, *frozen(law).cdf(cuts), 1])
        np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-16)
        tails = law.between(np.array([-np.inf, 60.25]), np.array([-59.75, np.inf]))
        assert tails == pytest.approx([frozen(law).cdf(-59.75)] * 2, rel=1e-9)


def test_definition_a_1_2_each_class_of_comparable_datasets_may_have_its_own_events():
    values = {"a": 0, "b": 1, "c": 0, "d": 1}
    near = {("a", "b"): 1, ("b", "a"): 1, ("c", "d"): 1, ("d", "c"): 1}
    place = flavor(names="abcd", distances=near)
    assert comparability(place).components == (("a", "b"), ("c", "d"))
    mechanism = ContinuousMechanism.laplace(values, 2)
    own = {"a": [0.5], "b": [0.5], "c": [-1.0, 2.0], "d": [-1.0, 2.0]}
    parts = [mechanism.coarsen(cuts).loss(place).by_universe for cuts in ([0.5], [-1.0, 2.0])]
    found = mechanism.coarsen(own).loss(place).number
    assert 0 < found <= 0.5 and found <= max(max(one) for one in parts) + 1e-12
    mixed = mechanism.coarsen(own | {"b": [0.75]})
    assert mixed.loss(place).number == math.inf  # laws on different events are not compared by any common one


def test_appendix_a_1_without_events_everything_is_private_and_lint_finds_it():
    told = ContinuousMechanism.laplace({"a": 0, "b": 1000}, 1e-3)  # as good as the data itself
    nothing = told.specified(flavor(), cuts=[], name="no events")
    assert nothing.budget.number == 0 and told.coarsen([]).satisfies(nothing)
    findings = {one.id: one.words for one in lint(nothing)}
    assert "No two outputs are told apart" in findings["no-events"] and "fewer-events" not in findings
    some = ContinuousMechanism.laplace({"a": 0, "b": 1}, 1).specified(flavor(), cuts=[0.5])
    assert some.budget.number > 0 and "fewer-events" in {one.id for one in lint(some)}
    plain = told.specified(flavor())
    assert plain.budget.number == 10**6 and not {"no-events", "fewer-events"} & {one.id for one in lint(plain)}
    exact = FiniteMechanism.of({"a": {"a": 1}, "b": {"b": 1}})
    assert exact.coarsen([("a", "b")]).loss(flavor()).number == 0 and exact.loss(flavor()).number == math.inf


def test_definition_6_4_2_corrected_scales_satisfy_the_specification_and_printed_ones_do_not():
    values, near = {"a": 0, "b": 1, "c": 10}, {(x, y): 1 for x in "abc" for y in "abc" if x != y}
    chain = flavor(names="abc", distances=near, universes=(("a", "b"), ("b", "c"))).at(1)
    scales = {name: float(scale) for name, scale in laplace_scales(chain, values).items()}
    assert ContinuousMechanism.laplace(values, scales).satisfies(chain).verdict == "yes"
    assert ContinuousMechanism.laplace(values, {"a": 1, "b": 9, "c": 9}).satisfies(chain).verdict == "no"


def test_the_split_of_a_cell_tells_at_least_as_much_as_the_cell():
    # The upper bound's argument, on finite laws: many outcomes in a cell against the two at the ends of their ratios.
    random = np.random.default_rng(3)
    for _ in range(200):
        g = random.dirichlet(np.ones(6))
        ratios = random.uniform(0.3, 3, size=6)
        f = g * ratios
        mass, rest = f.sum(), random.uniform(0.5, 2)
        least, most = ratios.min(), ratios.max()
        up = (mass - least * g.sum()) / (most - least)
        p, q = np.append(f, rest), np.append(g, rest * 0.8)
        split_p = np.array([least * (1 - up), most * up, rest])
        split_q = np.array([1 - up, up, rest * 0.8])
        for output in OUTPUTS:
            inside = divergence(output, p / p.sum(), q / q.sum())
            assert inside <= divergence(output, split_p / split_p.sum(), split_q / split_q.sum()) + 1e-9


def test_what_is_no_mechanism_is_refused():
    law = NoiseLaw("normal", 0, 1)
    half = Density.linear((0, 1), ((0.5, 0.5),))
    untold = Density((lambda t: 0 * t + 1,), (0, 1))
    for laws in ({}, {"a": half}, {"a": untold}):
        with pytest.raises(StirredError, match="mechanism"):
            ContinuousMechanism.of(laws)
    with pytest.raises(StirredError):
        ContinuousMechanism(("a", "a"), (law, law))
    for wrong in (("uniform", 0, 1), ("normal", 0, 0), ("laplace", math.inf, 1)):
        with pytest.raises(StirredError):
            NoiseLaw(*wrong)
    mechanism = ContinuousMechanism.of({"a": law, "b": law})
    with pytest.raises(StirredError):
        mechanism.loss(flavor(names="abc"))
    with pytest.raises(StirredError, match="coarsen the mechanism first"):
        mechanism.loss(flavor(OutputPremetric(partition=(("x", "y"),))))
    with pytest.raises(StirredError):
        mechanism.loss(flavor(OutputPremetric("trade-off")))
