"""Do rates by rule, merged match values and later rounds have their law? Small strata, every outcome listed.

For each rate of the plan there is a score: the derivative of the log-probability of what a stratum shows. Its mean is 0
and its variance is known for a program that keeps its promise, so the sum over all strata has a p-value by Bernstein's
inequality, and no other sum finds a rate that is a little off with fewer runs. All outcomes together are compared by
chi-square, which finds what is no matter of rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.lab.audit import p_values
from stirred.lab.audit.p_values import POWER
from stirred.lab.audit.results import Answer
from stirred.lab.audit.small_strata import MOST_LISTED, ListedFile
from stirred.lab.audit.swap_runs import Integers
from stirred.swap.plan.fields import SwapPlan

stats = later("scipy.stats")

Floats = NDArray[np.float64]
_STEP = 1e-4
"""Of a rate, for derivatives: relative to the distance to 0 and 1."""


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of all types of strata of a file, each drawn so many times."""

    made: ListedFile
    runs: int

    @property
    def rates(self) -> list[float]:
        """Those of the rules, or the one rate; then those of later rounds."""
        plan = self.made.plan
        return [float(one) for one in (*plan.every_rate, *(later.rate for later in plan.rounds))]

    @cached_property
    def codes(self) -> list[Integers]:
        """By type, everything that a release can show."""
        return [np.array(sorted(law), dtype=np.int64) for law in self._laws(self.rates)]

    def at(self, rates: Sequence[float], twice: int | None = None) -> list[Floats]:
        """By type, the probabilities of :attr:`codes` at some rates; with one of the later rounds drawn twice."""
        found = self._laws(rates, twice)
        return [np.array([law.get(int(c), 0.0) for c in own]) for law, own in zip(found, self.codes, strict=True)]

    @cached_property
    def stated(self) -> list[Floats]:
        """By type, the probabilities of :attr:`codes` at the rates of the plan."""
        return self.at(self.rates)

    @cached_property
    def expected(self) -> list[Floats]:
        """By type, how often each outcome is to be expected in all runs."""
        times = self.made.strata_of_type * self.runs
        return [many * law for many, law in zip(times, self.stated, strict=True)]

    @cached_property
    def scores(self) -> list[list[Floats]]:
        """By rate and type, the derivative of log-probabilities by that rate."""
        return [self._score(number) for number in range(len(self.rates))]

    def _score(self, number: int) -> list[Floats]:
        rate = self.rates[number]
        step = _STEP * min(rate, 1 - rate)
        up, down = (self.at(_with(self.rates, number, rate + sign * step)) for sign in (1, -1))
        found = []
        for above, below, law in zip(up, down, self.stated, strict=True):
            slope = (above - below) / (2 * step) / np.maximum(law, 1e-300)
            found.append(slope - float(np.sum(law * slope)))  # what a difference leaves of a mean of 0
        return found

    def sums(self, weights: Sequence[Floats]) -> tuple[float, float]:
        """The variance of a sum of weights with mean 0 over all strata and runs, and the largest weight."""
        variance = sum(float(np.sum(many * one**2)) for many, one in zip(self.expected, weights, strict=True))
        return variance, max(float(np.max(np.abs(one), initial=0.0)) for one in weights)

    def _laws(self, rates: Sequence[float], twice: int | None = None) -> list[dict[int, float]]:
        rules = len(self.made.plan.every_rate)
        return [one.law(rates[:rules], rates[rules:], twice) for one in self.made.types]


def listed_answers(laws: Laws, seen: Sequence[Sequence[tuple[Integers, Integers]]]) -> Iterator[Answer]:
    """The questions about what all runs showed: by run and type, outcomes and how often they were seen."""
    counts = [np.zeros(len(codes)) for codes in laws.codes]
    strange = 0
    for run in seen:
        for number, (codes, often) in enumerate(run):
            known = np.isin(codes, laws.codes[number])
            np.add.at(counts[number], np.searchsorted(laws.codes[number], codes[known]), often[known])
            strange += int(np.sum(often[~known]))
    for number, words in enumerate(rate_words(laws.made.plan)):
        score = laws.scores[number]
        variance, largest = laws.sums(score)
        surplus = sum(float(np.sum(many * one)) for many, one in zip(counts, score, strict=True))
        way = "higher" if surplus > 0 else "lower"
        unasked = "" if variance else "no stratum of the made file depends on it"
        yield Answer(
            rate_name(laws.made.plan, number),
            f"Are records selected at {words}?",
            p_values.of_bounded_sum(surplus, variance, largest),
            "Small strata show nothing else.",
            f"They are not: small strata look as if the rate were {way}, for all or some of them.",
            2.0,
            {} if unasked else {"off_by_about": surplus / variance},
            unasked,
        )
    p_value, degrees = p_values.of_counts(list(zip(counts, laws.expected, strict=True)))
    yield Answer(
        "listed-outcomes",
        f"Is every outcome of strata of up to {MOST_LISTED} records as likely as it should be?",
        0.0 if strange else p_value,
        f"They agree, in {len(laws.codes)} kinds of strata ({degrees} degrees of freedom).",
        "Some are likelier than they should be: a rule, a merged value or a round is not treated as stated.",
        unasked="" if degrees or strange else "the runs draw too few strata of each kind",
    )
    if laws.made.plan.coarsen is not None:
        crossing = crossings(laws)
        found = sum(float(np.sum(many * one)) for many, one in zip(counts, crossing, strict=True))
        expected, variance = crossed(laws)
        yield Answer(
            "across-merged",
            "Do values of merged groups go from one to the other as often as they should?",
            p_values.of_bounded_sum(found - expected, variance),
            f"In {found:,.0f} strata they did; {expected:,.0f} were to be expected.",
            f"They do not: in {found:,.0f} strata they did, and {expected:,.0f} were to be expected.",
            unasked="" if variance else "no merged stratum is small enough to be listed",
        )


def listed_limits(laws: Laws, allotted: dict[str, float]) -> Iterator[str]:
    """What was tried of rules, merged values and rounds, with which power, and what was not."""
    plan = laws.made.plan
    found = []
    for number, words in enumerate(rate_words(plan)):
        off = smallest_off(laws, number, allotted[rate_name(plan, number)])
        if off < min(laws.rates[number], 1 - laws.rates[number]):
            found.append(f"{words} off by about {off:.2g}")
        else:
            yield f"Not tried: {words}. The made file has too few records of it, or none, in so many runs."
    if found:
        yield f"With probability {POWER} this audit finds {', and '.join(found)}."
    base = len(plan.every_rate)
    for number in range(base, base + len(plan.rounds)):
        part = allotted[rate_name(plan, number)]
        left_out = power_of_laws(laws, number, laws.at(_with(laws.rates, number, 0.0)), part)
        twice = power_of_laws(laws, number, laws.at(laws.rates, twice=number - base), part)
        name = f"round {number - base + 2}"
        yield f"It finds {name} left out with probability {left_out:.3g}, and drawn twice with probability {twice:.3g}."
    if plan.coarsen is not None:
        expected, variance = crossed(laws)
        sure = variance > 0 and p_values.of_bounded_sum(expected, variance) < allotted["across-merged"]
        yield "Values that are not merged at all are found " + ("for certain." if sure else "by luck only.")
        if plan.coarsen.at_least > MOST_LISTED:
            yield (
                f"Not tried: whether groups of just under {plan.coarsen.at_least} records are merged. Their strata are "
                f"too large to be listed; that groups of {plan.coarsen.at_least} are not merged was looked at."
            )


def smallest_off(laws: Laws, number: int, allotted: float) -> float:
    """By how much one of the rates must be off, about, to be found with the power wanted: in first order, where the
    score then has the mean of its variance times that."""
    variance, largest = laws.sums(laws.scores[number])
    if not variance:
        return math.inf
    return (_needed(variance, largest, allotted) + float(stats.norm.isf(1 - POWER)) * math.sqrt(variance)) / variance


def power_of_laws(laws: Laws, number: int, others: Sequence[Floats], allotted: float) -> float:
    """The power of the question about one of the rates, if outcomes have other probabilities: by type, of all codes."""
    score, times = laws.scores[number], laws.made.strata_of_type * laws.runs
    variance, largest = laws.sums(score)
    if not variance:
        return 0.0
    means = np.array([float(np.sum(law * one)) for law, one in zip(others, score, strict=True)])
    squares = np.array([float(np.sum(law * one**2)) for law, one in zip(others, score, strict=True)])
    spread = math.sqrt(max(float(np.dot(times, squares - means**2)), 1e-12))
    return float(stats.norm.sf((_needed(variance, largest, allotted) - abs(float(np.dot(times, means)))) / spread))


def crossings(laws: Laws) -> list[Floats]:
    """By type, the outcomes in which values go from one of the merged values to another."""
    return [
        np.array([float(one.crosses(int(code))) for code in codes])
        for one, codes in zip(laws.made.types, laws.codes, strict=True)
    ]


def crossed(laws: Laws) -> tuple[float, float]:
    """Mean and variance of the number of strata in which values go from one of the merged values to another."""
    each = [float(np.sum(many * one)) for many, one in zip(laws.expected, crossings(laws), strict=True)]
    times = laws.made.strata_of_type * laws.runs
    return sum(each), sum(one * (1 - one / many) for one, many in zip(each, times, strict=True) if many)


def rate_words(plan: SwapPlan) -> list[str]:
    """Each rate of a plan in words."""
    rules = [f"the rate of {rule.words}" for rule in plan.rates] or [f"the rate of {plan.rate} (first round)"]
    return [*rules, *(f"the rate of {one.rate} in round {number}" for number, one in enumerate(plan.rounds, 2))]


def rate_name(plan: SwapPlan, number: int) -> str:
    """The name of the question about one of the rates."""
    rules = len(plan.every_rate)
    if number >= rules:
        return f"rate-of-round-{number - rules + 2}"
    return f"rate-of-rule-{number + 1}" if plan.rates else "rate-in-small-strata"


def _needed(variance: float, largest: float, allotted: float) -> float:
    """The deviation from which on :func:`tails.of_bounded_sum` is below the allotted probability."""
    log = math.log(2 / allotted)
    return largest * log / 3 + math.sqrt((largest * log / 3) ** 2 + 2 * variance * log)


def _with(rates: Sequence[float], number: int, rate: float) -> list[float]:
    return [*rates[:number], rate, *rates[number + 1 :]]
