"""Weights of generated surveys: multiples of a decimal step, final weights, and multipliers for replicate weights.

Final weights make up for nonresponse and are raked (Deming and Stephan 1940); replicates are those of the bootstrap of
Rao, Wu and Yue (1992). The invariant a reader must know: limits of weights follow from the table of strata by a stated
rule, never from the sample.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stirred.tables.synthetic.survey_population import (
    AGE_GROUP,
    KIND,
    SEX,
    age_and_sex,
    categories,
    codes,
    parts_of_regions,
    population_totals,
)
from stirred.tables.synthetic.survey_selection import DesignName, Selection

FINAL_CUTS = (0.5, 4.0)
"""Final weights are cut at these multiples of the smallest and largest design weight of their stratum."""

_RAKING_STEPS = 200

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def decimal(steps: Integers | Floats, decimals: int) -> pl.Series:
    """Multiples of the step: whole numbers, or the floating-point numbers nearest to the decimals."""
    return pl.Series(steps.astype(np.int64)) if decimals == 0 else pl.Series(steps / 10**decimals)


def steps_of(weights: Floats | pl.Series, decimals: int) -> Integers:
    """How many times the step each weight is, rounded, at least once."""
    steps: Integers = np.maximum(1, np.rint(np.asarray(weights, dtype=np.float64) * 10**decimals)).astype(np.int64)
    return steps


def with_limits(strata: pl.DataFrame, decimals: int, final_weights: bool) -> pl.DataFrame:
    """The limits of design weights as multiples of the step, and those of final weights that follow from them."""
    smallest, largest = steps_of(strata["smallest_weight"], decimals), steps_of(strata["largest_weight"], decimals)
    limits = {"smallest_weight": smallest, "largest_weight": largest}
    if final_weights:
        limits["smallest_final_weight"] = np.maximum(1, np.floor(FINAL_CUTS[0] * smallest)).astype(np.int64)
        limits["largest_final_weight"] = np.floor(FINAL_CUTS[1] * largest).astype(np.int64)
    return strata.with_columns(decimal(limit, decimals).alias(name) for name, limit in limits.items())


class Weighting:
    """Makes final weights of those who answered out of the design weights of everybody in the target sample.

    First those who answered in each part of a region get the weight of those who did not, then raking (iterative
    proportional fitting) to the totals by age group and sex and by region. Raking multiplies all weights of a region,
    age group and sex by the same factor, so only the table of their sums is iterated on.
    """

    def __init__(self, frame: pl.DataFrame, sample: pl.DataFrame, answering: Integers) -> None:
        self._answering = answering
        self._part = parts_of_regions(sample)
        self._shape = (len(categories(frame, "region")), len(AGE_GROUP) * len(SEX))
        self._cell = (codes(sample, "region") * self._shape[1] + age_and_sex(sample))[answering]
        persons = population_totals(frame)["persons"].to_numpy().astype(np.float64)
        self._by_age_and_sex, self._by_region = persons[: self._shape[1]], persons[self._shape[1] :]

    def __repr__(self) -> str:
        return f"<Weighting of {len(self._answering):,} who answered>"

    def final(self, weights: Floats) -> Floats:
        """Final weights of those who answered, not rounded, from weights of the target sample."""
        own, part = weights[self._answering], self._part[self._answering]
        parts = self._shape[0] * len(KIND)
        adjusted = own * _quotient(_sums(self._part, weights, parts), _sums(part, own, parts))[part]
        table = _sums(self._cell, adjusted, self._shape[0] * self._shape[1]).reshape(self._shape)
        raked: Floats = adjusted * _quotient(self._raked(table), table).ravel()[self._cell]
        return raked

    def _raked(self, table: Floats) -> Floats:
        for _ in range(_RAKING_STEPS):
            before = table
            table = table * _quotient(self._by_age_and_sex, table.sum(axis=0))
            table = table * _quotient(self._by_region, table.sum(axis=1))[:, np.newaxis]
            if np.allclose(table, before, rtol=1e-12, atol=0):
                break
        return table


def _sums(codes: Integers, weights: Floats, length: int) -> Floats:
    return np.bincount(codes, weights, length).astype(np.float64, copy=False)


def _quotient(wanted: Floats, found: Floats) -> Floats:
    """What to multiply by; 1 where there is nothing to multiply."""
    return np.divide(wanted, found, out=np.ones_like(found), where=found > 0)


def multipliers(generator: np.random.Generator, selection: Selection, design: DesignName) -> Floats:
    """How much a replicate counts each primary sampling unit.

    In a stratum with n of them, n - 1 are drawn with replacement and count n / (n - 1) for each time (Rao, Wu and Yue
    1992), as if the sample had been drawn with replacement. In a Poisson sample each counts by a Poisson number with
    mean 1 of its own.
    """
    psus = len(selection.psu_stratum)
    if design == "poisson":
        return generator.poisson(1.0, size=psus).astype(np.float64)
    selected = np.bincount(selection.psu_stratum)
    stratum = np.repeat(np.arange(len(selected)), np.maximum(selected - 1, 0))
    drawn = np.floor(generator.random(len(stratum)) * selected[stratum]).astype(np.int64)
    times = np.bincount((np.cumsum(selected) - selected)[stratum] + drawn, minlength=psus)
    alone = selected == 1
    multiplier = np.where(alone, 0.0, selected / np.maximum(selected - 1, 1))
    counted: Floats = times * multiplier[selection.psu_stratum] + alone[selection.psu_stratum]
    return counted
