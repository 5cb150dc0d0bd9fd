"""Small random frames with a design of each kind on them, and statistics by listing all samples."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from stirred.lab.sampling import (
    Bernoulli,
    Census,
    Equal,
    EveryKth,
    Frame,
    Given,
    Neyman,
    Poisson,
    Proportional,
    Sampford,
    SimpleRandom,
    Stratified,
    Systematic,
    SystematicBySize,
    TwoStage,
    WithReplacement,
    cluster_sample,
)


def sizes_for(generator, units):
    """Sizes, and a number of units that can be sampled in proportion to them; sometimes one unit is certain."""
    sizes = generator.integers(1, 7, units).tolist()
    return sizes, int(generator.integers(1, sum(sizes) // max(sizes) + 1))


def grouped(generator, groups, least, most):
    """A label for each unit, the units of a group not beside each other."""
    labels = [f"g{k}" for k in range(groups) for _ in range(generator.integers(least, most + 1))]
    return generator.permutation(labels).tolist()


def _simple(generator):
    units = int(generator.integers(1, 7))
    return SimpleRandom(int(generator.integers(1, units + 1))), Frame.of(units)


def _with_replacement(generator):
    return WithReplacement(int(generator.integers(1, 5))), Frame.of(int(generator.integers(1, 5)))


def _bernoulli(generator):
    return Bernoulli(Fraction(int(generator.integers(1, 9)), 8)), Frame.of(int(generator.integers(1, 6)))


def _poisson(generator):
    sizes, n = sizes_for(generator, int(generator.integers(1, 6)))
    return Poisson(n - Fraction(1, 3)), Frame.of(sizes=sizes)


def _systematic(generator):
    units = int(generator.integers(1, 12))
    return Systematic(int(generator.integers(1, units + 1))), Frame.of(units)


def _every_kth(generator):
    units = int(generator.integers(1, 12))
    return EveryKth(int(generator.integers(1, units + 1))), Frame.of(units)


def _systematic_by_size(generator):
    sizes, n = sizes_for(generator, int(generator.integers(1, 9)))
    return SystematicBySize(n), Frame.of(sizes=sizes)


def _sampford(generator):
    sizes, n = sizes_for(generator, int(generator.integers(1, 8)))
    return Sampford(n), Frame.of(sizes=sizes)


def _stratified(generator):
    strata = grouped(generator, int(generator.integers(1, 4)), 2, 3)
    present = sorted(set(strata))
    n = int(generator.integers(2 * len(present), len(strata) + 1))
    given = {name: int(generator.integers(1, strata.count(name) + 1)) for name in present}
    deviations = {name: Fraction(int(generator.integers(1, 9)), 4) for name in present}
    rules = [Equal(n), Proportional(n), Neyman(n, deviations, public=True), Given(given)]
    return Stratified(rules[generator.integers(len(rules))]), Frame.of(strata=strata)


def _stratified_by_size(generator):
    strata = grouped(generator, 2, 2, 4)
    within = [SystematicBySize, Sampford][generator.integers(2)]
    frame = Frame.of(strata=strata, sizes=generator.integers(3, 5, len(strata)))
    return Stratified(Given({"g0": 1, "g1": int(generator.integers(1, 2))}), within), frame


def _stratified_single(generator):
    frame = Frame.of(strata=["alone", *grouped(generator, 2, 2, 3)])
    return Stratified(Proportional(int(generator.integers(5, frame.units + 1))), singles="certain"), frame


def _clusters(generator):
    labels = grouped(generator, int(generator.integers(1, 5)), 1, 3)
    return cluster_sample(int(generator.integers(1, len(set(labels)) + 1))), Frame.of(clusters=labels)


def _two_stage(generator):
    labels = grouped(generator, int(generator.integers(1, 4)), 2, 3)
    first = SimpleRandom(int(generator.integers(1, len(set(labels)) + 1)))
    second = [SimpleRandom(2), SimpleRandom(1), Systematic(2), Bernoulli("1/3")][generator.integers(4)]
    return TwoStage(first, second), Frame.of(clusters=labels)


def _two_stage_by_size(generator):
    labels = [*"aaabbbcc"]
    sizes = None if generator.integers(2) else generator.integers(4, 7, len(labels))
    first = [Sampford(2), SystematicBySize(2), Poisson(2)][generator.integers(3)]
    return TwoStage(first, SimpleRandom(2)), Frame.of(clusters=labels, sizes=sizes)


def _strata_of_clusters(generator):
    clusters = grouped(generator, 4, 1, 2)
    strata = [{"g0": "x", "g1": "x", "g2": "y", "g3": "y"}[name] for name in clusters]
    return TwoStage(Stratified(Given({"x": 1, "y": 2}))), Frame.of(clusters=clusters, strata=strata)


def _clusters_in_strata(generator):
    clusters = grouped(generator, 4, 1, 2)
    strata = [{"g0": "x", "g1": "x", "g2": "y", "g3": "y"}[name] for name in clusters]
    design = Stratified(Given({"x": 1, "y": 2}), within=cluster_sample, singles="certain")
    return design, Frame.of(clusters=clusters, strata=strata)


def _strata_in_clusters(generator):
    frame = Frame.of(clusters=[*"aaaabbbb"], strata=[*"xxyyxxyy"])
    return TwoStage(SimpleRandom(1), Stratified(Given({"x": 1, "y": 2}))), frame


def _census(generator):
    return Census(), Frame.of(int(generator.integers(1, 5)))


KINDS = {
    one.__name__[1:]: one
    for one in (
        _census, _simple, _with_replacement, _bernoulli, _poisson, _systematic, _every_kth, _systematic_by_size,
        _sampford, _stratified, _stratified_by_size, _stratified_single, _clusters, _two_stage, _two_stage_by_size,
        _strata_of_clusters, _clusters_in_strata, _strata_in_clusters,
    )
}  # fmt: skip


def cases(kind, number):
    """So many designs of a kind, each with a frame, the same in every run."""
    generator = np.random.default_rng([sum(map(ord, kind)), number])
    return [KINDS[kind](generator) for _ in range(number)]


def counted_chances(samples, units):
    """Probabilities of units and pairs, and expected numbers of draws, by adding up samples."""
    pairs = [[Fraction(0)] * units for _ in range(units)]
    times = [Fraction(0)] * units
    for sample, chance in samples.items():
        for i, often in Counter(sample).items():
            times[i] += often * chance
            for j in set(sample):
                pairs[i][j] += chance
    return pairs, times


def total_moments(samples, weights, values):
    """Mean and variance of the estimated total over all samples."""
    estimates = {sample: sum(weights[i] * values[i] for i in sample) for sample in samples}
    mean = sum(chance * estimates[sample] for sample, chance in samples.items())
    return mean, sum(chance * (estimates[sample] - mean) ** 2 for sample, chance in samples.items())
