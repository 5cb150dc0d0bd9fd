"""Samples of very small frames by listing, and mechanisms on them: what bounds about sampling are held against.

Written from the definitions of the designs; nothing of stirred.survey is used.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from stirred.spec.order.finite_mechanisms import FiniteMechanism


def alike(samples):
    """Equal probabilities; samples that occur several times have them added."""
    listed = list(samples)
    design = {}
    for sample in listed:
        design[sample] = design.get(sample, 0) + Fraction(1, len(listed))
    return design


def simple(frame, size):
    return alike(itertools.combinations(range(frame), size))


def replaced(frame, draws, chances=None):
    """Draws with replacement, in their order."""
    chances = chances or [Fraction(1, frame)] * frame
    return {s: math.prod(chances[unit] for unit in s) for s in itertools.product(range(frame), repeat=draws)}


def coins(chances):
    """Poisson sampling, as a function of the frame: units that are not in it have no coin."""

    def design(frame):
        here = [unit for unit, record in enumerate(frame) if record is not None]
        return {
            sample: math.prod(chances[u] if u in sample else 1 - chances[u] for u in here)
            for size in range(len(here) + 1)
            for sample in itertools.combinations(here, size)
        }

    return design


def strata(*sizes):
    """(sampled, records) of each stratum, units numbered through."""
    start, parts = 0, []
    for sampled, records in sizes:
        parts.append(list(itertools.combinations(range(start, start + records), sampled)))
        start += records
    return alike(sum(parts, ()) for parts in itertools.product(*parts))


def clusters(sampled, frame, size):
    whole = [tuple(range(c * size, (c + 1) * size)) for c in range(frame)]
    return alike(sum(chosen, ()) for chosen in itertools.combinations(whole, sampled))


def two_stages(sampled, frame, size, taken):
    parts = [list(itertools.combinations(range(c * size, (c + 1) * size), taken)) for c in range(frame)]
    return alike(
        sum(chosen, ())
        for some in itertools.combinations(parts, sampled)
        for chosen in itertools.product(*some)
    )  # fmt: skip


def every(step, frame):
    """Systematic sampling from a random start."""
    return alike(tuple(range(start, frame, step)) for start in range(step))


def normalised(design):
    total = sum(design.values())
    return {sample: chance / total for sample, chance in design.items()}


def conditional_poisson(odds, size):
    return normalised({s: math.prod(odds[u] for u in s) for s in itertools.combinations(range(len(odds)), size)})


def sampford(chances):
    """Sampford's design: P(s) is proportional to the sum over s of 1 - p, times the product over s of p/(1 - p)."""
    size = int(sum(chances))
    assert sum(chances) == size
    return normalised(
        {
            s: sum(1 - chances[u] for u in s) * math.prod(chances[u] / (1 - chances[u]) for u in s)
            for s in itertools.combinations(range(len(chances)), size)
        }
    )


def inclusion(design, unit):
    return sum(p for s, p in design.items() if unit in s)


# -- mechanisms on samples -----------------------------------------------------------------------------------


def names(values, sizes):
    """Samples by their records, sorted."""
    return ["".join(s) for size in sizes for s in itertools.combinations_with_replacement(sorted(values), size)]


def any_mechanism(rng, values, sizes, outputs=3, scale=1.0):
    """Random laws, with losses of about ``scale``; sometimes one output is much rarer than the others."""
    logits = rng.normal(0, scale, (len(names(values, sizes)), outputs))
    logits[:, 0] -= rng.choice([0, 4])
    rows = np.exp(logits)
    rows /= rows.sum(axis=1, keepdims=True)
    return FiniteMechanism(tuple(names(values, sizes)), tuple(map(str, range(outputs))), rows)


def counted(sizes, epsilon, most=None):
    """The number of ones with geometric noise, what falls outside 0 to ``most`` put on the ends: loss epsilon."""
    most = max(sizes) if most is None else most
    a = math.exp(-epsilon)
    laws = {}
    for name in names("01", sizes):
        k = name.count("1")
        law = {str(t): (1 - a) / (1 + a) * a ** abs(t - k) for t in range(most + 1)}
        law["0"], law[str(most)] = a**k / (1 + a), a ** (most - k) / (1 + a)
        laws[name] = law
    return FiniteMechanism.of(laws)


def answered(epsilon):
    """Randomised response of a sample of one bit."""
    keep = 1 / (1 + math.exp(-epsilon))
    return FiniteMechanism.of({"0": {"0": keep, "1": 1 - keep}, "1": {"0": 1 - keep, "1": keep}})
