"""Samplers and measuring programs with one fault each, and the power with which an audit must notice it.

The power is computed from the law that the faulty sampler has, by the functions that audits state their limits with,
or is 1 where the fault is plainly seen. ``test_noise_battery.py`` and ``test_topdown_battery.py`` run them all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from scipy import optimize, stats

from stirred.lab.audit.laws import coin, gaussian, integers, laplace, log_normaliser
from stirred.lab.audit.noise_audit import allotted_to_each, draws_needed, fit_edges, power, stated_effect
from stirred.lab.audit.p_values import _log_fit, count_power, spread_power, telling_length
from stirred.lab.audit.topdown_audit import powers
from stirred.lab.audit.topdown_runs import MadeData
from stirred.topdown.data.counting import count_tables
from stirred.topdown.measuring import entries
from stirred.topdown.plan.fields import TopDownPlan


@cache
def table_of(law):
    """Values and probabilities of a law, as far out as a float can say."""
    if law.kind == "coin":
        return np.arange(2), np.array([float(1 - law.parameter), float(law.parameter)])
    if law.kind == "integers":
        return np.arange(law.highest + 1), np.full(law.highest + 1, 1 / (law.highest + 1))
    values = np.arange(-int(40 * law.spread) - 3, int(40 * law.spread) + 4)
    weights = np.exp(-law.beta * np.abs(values.astype(float)) ** (2 if law.kind == "gaussian" else 1))
    return values, weights / weights.sum()


def fit_power(chances, truly, draws, allotted):
    """At least the probability that :func:`fit_p_value` is below ``allotted`` where the true law is another one.

    Relative entropy to ``chances`` is at least the mean of log(truly / chances) (Donsker and Varadhan), a mean over
    independent draws, whose lower tail Chernoff bounds.
    """
    if np.any(truly[chances <= 0] > 0):
        return 1.0
    used = truly > 0
    gains, weights = np.log(truly[used] / chances[used]), truly[used]
    needed = entropy_needed(int((chances > 0).sum()), allotted)

    def log_missed(t: float) -> float:
        return t * needed + draws * math.log(float(np.sum(weights * np.exp(-t * gains))))

    missed = optimize.minimize_scalar(log_missed, bounds=(0.0, 1.0), method="bounded")
    return max(0.0, 1 - math.exp(min(0.0, float(missed.fun))))


def entropy_needed(cells, allotted):
    """From which n times the relative entropy on the bound is below ``allotted``."""
    low, high = float(cells - 1), 10.0 * (cells + math.log(1 / allotted))
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_fit(middle, cells) >= math.log(allotted) else (low, middle)
    return high


def sampled(values, chances, rng, size):
    return values[np.searchsorted(np.cumsum(chances)[:-1], rng.random(size), side="right")]


def in_cells(values, chances, edges):
    return np.bincount(np.searchsorted(edges, values, side="right"), chances, minlength=len(edges) + 1)


# -- samplers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sampler:
    """A faulty sampler: the law it claims, how many draws, how to draw them, the power it is noticed with."""

    law: Any
    size: int
    draw: Any
    power: float
    questions: tuple[str, ...]
    """The questions of which at least one must say what is wrong."""


def of_law(claimed, size, values, chances, *questions):
    """Draws of another law than the claimed one; its power is that of the fit."""
    edges = fit_edges(claimed)
    noticed = fit_power(claimed.chances(edges), in_cells(values, chances, edges), size, allotted_to_each(claimed))
    return Sampler(claimed, size, lambda rng, n: sampled(values, chances, rng, n), noticed, questions or ("fit",))


def stated(claimed, values, chances, question):
    """The effect that audits state, with as many draws as they say it takes."""
    size = draws_needed(claimed)
    noticed = power(claimed, size, stated_effect(claimed))
    return Sampler(claimed, size, lambda rng, n: sampled(values, chances, rng, n), noticed, (question,))


def cut_tails():
    """Values beyond four sigma are drawn again."""
    law, size = gaussian(10), 1_000_000
    most = int(4 * law.spread)
    values, chances = table_of(law)
    kept = np.where(np.abs(values) <= most, chances, 0.0)
    noticed = float(2 * (1 - law.beyond(most + 1)) ** size < allotted_to_each(law))
    return Sampler(law, size, lambda rng, n: sampled(values, kept / kept.sum(), rng, n), noticed, ("tails",))


def always_even():
    law, size = gaussian(10), 10_000
    noticed = count_power(size, float(law.residues(2)[1]), 0.0, allotted_to_each(law))

    def draw(rng, n):
        return 2 * np.rint(rng.normal(0, law.spread / 2, n)).astype(int)

    return Sampler(law, size, draw, noticed, ("low-bits",))


def repeated_seed(law, size):
    """The second half repeats the first."""

    def draw(rng, n):
        return np.tile(sampled(*table_of(law), rng, n // 2), 2)

    noticed = float(telling_length(law.log_coincidence, size, allotted_to_each(law)) <= size // 2)
    return Sampler(law, size, draw, noticed, ("repeats",))


def each_twice():
    law, size = laplace(3), 10_000
    chances = law.chances(law.edges(np.array([0.25, 0.5, 0.75])))
    pairs = np.outer(chances, chances).ravel()
    noticed = fit_power(pairs, np.diag(chances).ravel(), size // 2, allotted_to_each(law) / 8)

    def draw(rng, n):
        return np.repeat(sampled(*table_of(law), rng, n // 2), 2)

    return Sampler(law, size, draw, noticed, ("neighbours",))


def fixed_numbers():
    """Four ones in every 64 coins of probability 1/16, in random places."""
    law, size = coin("1/16"), 64_000

    def draw(rng, n):
        return rng.permuted(np.tile(np.arange(64) < 4, (n // 64, 1)), axis=1).ravel().astype(int)

    edges = np.unique(stats.binom.ppf(np.arange(1, 16) / 16, 64, 1 / 16).astype(int) + 1)
    chances = np.diff(stats.binom.cdf(edges - 1, 64, 1 / 16), prepend=0.0, append=1.0)
    always = (np.arange(len(chances)) == np.searchsorted(edges, 4, side="right")).astype(float)
    return Sampler(law, size, draw, fit_power(chances, always, size // 64, allotted_to_each(law)), ("blocks",))


LOWER = np.where(np.arange(10) < 5, 0.101, 0.099)
GRID = np.array([243, 13]) / 256
MODULO = np.bincount(np.arange(256) % 10) / 256
ROUNDED = np.diff(stats.norm.cdf(np.arange(-12, 14) - 0.5))
SAMPLERS = {
    "sigma 1% too small": lambda: stated(gaussian(10), *table_of(gaussian("9.801")), "spread"),
    "scale 1% too small": lambda: stated(laplace(3), *table_of(laplace("2.97")), "spread"),
    "integers 1% too low": lambda: stated(integers(10), np.arange(10), LOWER, "lower-half"),
    "rate on a grid of 1/256": lambda: stated(coin("1/20"), np.arange(2), GRID, "rate"),
    "tails cut at four sigma": cut_tails,
    "bytes modulo 10": lambda: of_law(integers(10), 500_000, np.arange(10), MODULO, "fit", "modulo"),
    "floats, not rounded": lambda: Sampler(
        gaussian(10), 1000, lambda rng, n: rng.normal(0, 10**0.5, n), 1.0, ("whole-numbers",)
    ),
    "multiples of 1/16": lambda: Sampler(
        laplace(3), 1000, lambda rng, n: np.rint(16 * rng.laplace(0, 3, n)) / 16, 1.0, ("grid",)
    ),
    "float Gaussian, rounded": lambda: of_law(gaussian(1), 100_000, np.arange(-12, 13), ROUNDED, "fit", "spread"),
    "Laplace instead of Gaussian": lambda: of_law(gaussian(18), 10_000, *table_of(laplace(3))),
    "even numbers only": always_even,
    "a seed used twice": lambda: repeated_seed(gaussian(10), 4000),
    "a seed used twice, coins": lambda: repeated_seed(coin("1/20"), 4000),
    "every draw used twice": each_twice,
    "a fixed number of ones": fixed_numbers,
}


@cache
def sampler(name):
    return SAMPLERS[name]()


# -- measuring programs --------------------------------------------------------------------------------------

PLAN = TopDownPlan(
    spine={"levels": ["county", "town"]},
    tables=[
        {
            "name": "persons",
            "unit": "person",
            "rho": "1/2",
            "level_shares": {"county": "1/3", "town": "2/3"},
            "attributes": [{"name": "sex", "values": ["f", "m"]}, {"name": "age", "values": ["0-17", "18-64", "65+"]}],
            "queries": [{"by": [], "shares": "1/4"}, {"by": ["sex", "age"], "shares": "3/4"}],
        }
    ],
)
"""Two levels, two queries at each."""


class Measurer:
    """A program for a plan that can be made faulty: numpy draws, and methods to override.

    It knows the true counts from the first run on, since an audit always gives the same tables.
    """

    def __init__(self, rng, plan=PLAN):
        self.rng, self.plan, self.parts = rng, plan, None

    def __call__(self, tables):
        if self.parts is None:
            counted = count_tables(self.plan, dict(tables))
            made = MadeData(self.plan, tables, counted)
            self.parts = [
                (one, counted.counts(one.table, one.level, one.by), made.keys(one))
                for one in entries(self.plan, counted.spine)
            ]
        self.start_run()
        return {"measurements": pl.concat([one for part in self.parts for one in self.measured(*part)])}

    def start_run(self):
        """Called before each run."""

    def measured(self, entry, truth, keys):
        return [keys.with_columns(pl.Series("value", (truth + self.noise(entry, truth)).ravel()))]

    def noise(self, entry, truth):
        return self.gaussian(self.variance(entry), truth.shape)

    def variance(self, entry):
        return Fraction(entry.variance)

    def gaussian(self, variance, shape):
        return sampled(*table_of(gaussian(variance)), self.rng, int(np.prod(shape))).reshape(shape)


class ForgottenLevel(Measurer):
    """The budget is divided among the towns only, and counties are measured with their share all the same."""

    def variance(self, entry):
        return Fraction(entry.variance) * (Fraction(2, 3) if entry.level == "town" else 1)


class Averaged(Measurer):
    """One query at one level is measured twice and what is released has half the variance, as a mean has."""

    def variance(self, entry):
        return Fraction(entry.variance) / (2 if (entry.level, entry.query) == ("county", "total") else 1)


class HalfEverywhere(Measurer):
    """One changed record is taken to move one cell, not two: variance 1/(2 rho)."""

    def variance(self, entry):
        return Fraction(entry.variance) / 2


class AskedTwice(Measurer):
    """A query counted once is asked twice, and both answers are released."""

    def measured(self, entry, truth, keys):
        once = super().measured(entry, truth, keys)
        return once + (super().measured(entry, truth, keys) if entry.query == "total" else [])


class UncountedQuery(Measurer):
    """Sex is measured in every town, which the plan does not count."""

    def measured(self, entry, truth, keys):
        found = super().measured(entry, truth, keys)
        if (entry.level, entry.query) == ("town", "sex*age"):
            more = keys.filter(pl.col("cell").str.ends_with("65+")).with_columns(
                pl.lit("sex").alias("query"), pl.col("cell").str.head(1).alias("cell")
            )
            sums = truth.reshape(len(truth), 2, 3).sum(axis=2)
            found.append(more.with_columns(pl.Series("value", (sums + self.gaussian(4, sums.shape)).ravel())))
        return found


class UncountedLevel(Measurer):
    """The nation is measured, a level that the plan does not have."""

    def measured(self, entry, truth, keys):
        found = super().measured(entry, truth, keys)
        if (entry.level, entry.query) == ("county", "total"):
            nation = pl.lit("nation")
            value = pl.lit(int(truth.sum()) + int(self.gaussian(4, (1,))[0]), dtype=pl.Int64)
            found.append(keys.head(1).with_columns(level=nation, geounit=nation, value=value))
        return found


class MissingPlaces(Measurer):
    """Places where nobody lives are left out."""

    def measured(self, entry, truth, keys):
        there = np.repeat(truth.sum(axis=1) > 0, truth.shape[1])
        return [one.filter(there) for one in super().measured(entry, truth, keys)]


class RepeatedSeed(Measurer):
    """Every run begins with the same seed."""

    def start_run(self):
        self.rng = np.random.default_rng(5)


class SeedEveryFewRuns(Measurer):
    """The seed is the time, in steps during which three runs are made."""

    def __init__(self, rng, plan=PLAN):
        super().__init__(rng, plan)
        self.base, self.runs = int(rng.integers(1 << 40)), 0

    def start_run(self):
        self.rng = np.random.default_rng(self.base + self.runs // 3)
        self.runs += 1


class SeedForEachLevel(Measurer):
    """Every level begins with the seed of the run."""

    def __init__(self, rng, plan=PLAN):
        super().__init__(rng, plan)
        self.seeds = rng

    def start_run(self):
        self.seed = int(self.seeds.integers(1 << 40))

    def noise(self, entry, truth):
        if entry.query == "total":  # the first query of a level
            self.rng = np.random.default_rng(self.seed)
        return super().noise(entry, truth)


class OneNoiseForAllPlaces(Measurer):
    """The noise of the first place is added in every place."""

    def noise(self, entry, truth):
        return np.repeat(super().noise(entry, truth)[:1], len(truth), axis=0)


class FloatNoise(Measurer):
    """Gaussian noise in floating-point numbers, not rounded."""

    def noise(self, entry, truth):
        return self.rng.normal(0, float(Fraction(entry.variance)) ** 0.5, truth.shape)


class LaplaceNoise(Measurer):
    """Discrete Laplace noise of about the same variance."""

    def noise(self, entry, truth):
        return sampled(*table_of(laplace_like(entry.variance)), self.rng, truth.size).reshape(truth.shape)


def laplace_like(variance):
    return laplace((float(Fraction(variance)) / 2) ** 0.5)


class QuietZeros(Measurer):
    """Cells that hold nothing get no noise."""

    def noise(self, entry, truth):
        return super().noise(entry, truth) * (truth > 0)


class CutAtZero(Measurer):
    """Values below zero are set to zero."""

    def noise(self, entry, truth):
        return np.maximum(super().noise(entry, truth), -truth)


@dataclass(frozen=True)
class Faulty:
    """A faulty program, the questions of which one must notice, and how often it is run (None: the default)."""

    program: Any
    questions: tuple[str, ...]
    runs: int | None = 12


PROGRAMS = {
    "a forgotten level": Faulty(ForgottenLevel, ("spread",), None),
    "a query averaged": Faulty(Averaged, ("spread",), None),
    "half the variance": Faulty(HalfEverywhere, ("spread",), None),
    "Laplace noise": Faulty(LaplaceNoise, ("fit",), None),
    "a query asked twice": Faulty(AskedTwice, ("there-once",)),
    "a query not counted": Faulty(UncountedQuery, ("there-once",)),
    "a level not counted": Faulty(UncountedLevel, ("there-once",)),
    "empty places left out": Faulty(MissingPlaces, ("there-once",)),
    "a repeated seed": Faulty(RepeatedSeed, ("whole-runs", "runs")),
    "a seed for some runs": Faulty(SeedEveryFewRuns, ("whole-runs",)),
    "a seed for each level": Faulty(SeedForEachLevel, ("queries",), 30),
    "one noise for all places": Faulty(OneNoiseForAllPlaces, ("places",)),
    "float noise": Faulty(FloatNoise, ("whole-numbers",)),
    "no noise on zeros": Faulty(QuietZeros, ("by-count",), 24),
    "cut at zero": Faulty(CutAtZero, ("by-count",)),
}


def power_of_program(name, runs, part, groups):
    """At least the probability that a fault is noticed, from the known laws; ``part`` is what a question may spend."""
    noticed = powers(PLAN, runs)
    averaged = {words: chance for words, chance in noticed.items() if words.endswith("averaged over two measurements")}
    sizes = [group.truth.size for group in groups]
    laws = [gaussian(group.entry.variance) for group in groups]
    nonzero = [1 - law.chances(np.array([0, 1]))[1] for law in laws]
    if name == "a forgotten level":
        return noticed["level 'county' of persons forgotten"]
    if name == "a query averaged":
        return averaged["'total' of persons at level 'county' averaged over two measurements"]
    if name == "half the variance":
        return max(averaged.values())
    if name == "Laplace noise":
        return max(
            fit_power(
                law.chances(fit_edges(law)),
                in_cells(*table_of(laplace_like(law.parameter)), fit_edges(law)),
                size * runs,
                part / len(laws),
            )
            for law, size in zip(laws, sizes, strict=True)
        )
    if name == "a seed for each level":  # 'total' in 6 counties and in the first 6 towns, by the same uniform numbers
        return signs_alike(6 * runs, min(nonzero[0], nonzero[2]), part / 7)
    if name == "one noise for all places":  # half of the places are compared with the other half
        return max(
            signs_alike(size * runs // 2, chance, part / 10) for size, chance in zip(sizes, nonzero, strict=True)
        )
    if name == "cut at zero":
        empty = [int(np.count_nonzero(group.truth == 0)) for group in groups]
        return max(signs_alike(size * runs, chance / 2, part / 6) for size, chance in zip(empty, nonzero, strict=True))
    if name == "no noise on zeros":  # no common rate will do: twice the stated one is too small for zeros, or too large
        return max(silence_notices(group, runs, part / 6 / 200) for group in groups)
    return 1.0  # plainly seen, or certain whatever is drawn


def silence_notices(group, runs, part):
    """The power for cells without noise beside others with it. The bound of two tests is within 200 of that of one."""
    empty, full = (runs * float(np.count_nonzero(one)) for one in (group.truth == 0, group.truth > 0))
    twice = np.array([1 / float(Fraction(group.entry.variance))])
    certain = empty * log_normaliser("gaussian", twice)[0] > -np.log(part)
    return certain * spread_power("gaussian", twice, np.array([full]), 0.5, part)


def signs_alike(trials, chance, part):
    """The power of a test of signs that are all alike, where each is there with this chance."""
    needed = int(np.ceil(np.log2(2 / part))) + 1
    return float(stats.binom.sf(needed - 1, trials, chance))
