"""Thousands of samples of one frame at a time, for tests of unbiasedness and coverage.

Each design draws R surveys with numpy and returns them in one table of numbers (:class:`Draws`): a row for each sampled
unit of each survey, with its design weight, stratum and primary sampling unit. Weights are 1 over the expected number
of times that a unit is drawn, so sums of weight times value are unbiased. The package's own designs draw exactly and
one sample at a time; tests hold these draws against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CHUNK = 4_000_000  # random numbers drawn at a time


@dataclass(frozen=True, eq=False)
class Population:
    """Units in the order of the frame, those of a stratum together, and within it those of a cluster; codes from 0."""

    strata: Integers
    clusters: Integers | None = None
    sizes: Integers | None = None

    @classmethod
    def of(
        cls,
        units: int | None = None,
        *,
        strata: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
        sizes: npt.ArrayLike | None = None,
    ) -> Population:
        """From columns of labels and sizes; refused unless units of a stratum, and of a cluster, stand together."""
        given = next(column for column in (strata, clusters, sizes, np.empty(units or 0)) if column is not None)
        length = len(np.asarray(given))
        stratum = np.zeros(length, np.int64) if strata is None else _runs(np.asarray(strata))
        cluster = None if clusters is None else _runs(np.asarray(clusters))
        if cluster is not None and len(np.unique(stratum * length + cluster)) != cluster[-1] + 1:
            raise ValueError("a cluster is in two strata")
        return cls(stratum, cluster, None if sizes is None else np.asarray(sizes, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.strata)

    @property
    def counts(self) -> Integers:
        """Units of each stratum."""
        return np.bincount(self.strata)

    @property
    def cluster_counts(self) -> Integers:
        """Clusters of each stratum."""
        return np.bincount(self.strata[self.cluster_starts])

    @property
    def cluster_sizes(self) -> Integers:
        """Units of each cluster."""
        return np.bincount(_given(self.clusters, "clusters"))

    @property
    def cluster_starts(self) -> Integers:
        """The first unit of each cluster."""
        return np.cumsum(self.cluster_sizes) - self.cluster_sizes


@dataclass(frozen=True, eq=False)
class Draws:
    """R surveys of one population, one after the other: row i belongs to survey ``survey[i]``, which never decreases.

    ``psu`` is the primary sampling unit: the cluster where clusters are drawn, the number of the draw in its survey
    where units are drawn with replacement, else the unit. ``psus`` is how many of them each stratum has in the
    population, or None where they are drawn with replacement, by size or independently, and no finite population
    correction applies. ``psu_units`` is how many units each of them has, where a second stage draws from these.
    """

    surveys: int
    survey: Integers
    unit: Integers
    weight: Floats
    stratum: Integers
    psu: Integers
    psus: Integers | None
    psu_units: Integers | None = None

    def totals(self, values: npt.ArrayLike) -> Floats:
        """The estimated total of each survey: the sum of weight times value of the population's ``values``."""
        return np.bincount(self.survey, self.weight * np.asarray(values)[self.unit], self.surveys)

    def times_drawn(self, units: int) -> Integers:
        """In how many draws, over all surveys, each unit of the population occurs."""
        return np.bincount(self.unit, minlength=units)

    def one(self, number: int) -> Draws:
        """One of the surveys, as survey 0."""
        first, last = np.searchsorted(self.survey, [number, number + 1])
        some = slice(first, last)
        return Draws(
            1,
            np.zeros(last - first, np.int64),
            self.unit[some],
            self.weight[some],
            self.stratum[some],
            self.psu[some],
            self.psus,
            self.psu_units,
        )

    def __iter__(self) -> Iterator[Draws]:
        return (self.one(number) for number in range(self.surveys))

    def variances(self, values: npt.ArrayLike, *, corrected: bool = True) -> Floats:
        """Design variance of each survey's total, estimated from totals z of primary sampling units.

        The sum over strata of (1 - n/N) n/(n - 1) times the sum of (z - mean of z) squared, plus n/N times the same for
        the units of each primary sampling unit where there is a second stage (Cochran 1977, 11.24): unbiased without
        replacement. Not ``corrected``, or without N, as if primary sampling units were drawn with replacement. Not for
        Poisson samples: theirs is :meth:`poisson_variances`. A stratum with one primary sampling unit gives nan.
        """
        weighted = self.weight * np.asarray(values)[self.unit]
        strata, psus = int(self.stratum.max()) + 1, int(self.psu.max()) + 1
        keys, place = np.unique((self.survey * strata + self.stratum) * psus + self.psu, return_inverse=True)
        group = keys // psus
        squares, n = _squares(group, np.bincount(place, weighted), self.surveys * strata)
        if corrected and self.psus is not None:
            fraction = n / np.tile(self.psus, self.surveys)
            squares = np.where(fraction == 1, 0.0, squares * (1 - fraction))
            if self.psu_units is not None:
                inner, m = _squares(place, weighted, len(keys))
                second = m / self.psu_units[keys % psus]
                inner = np.where(second == 1, 0.0, inner * (1 - second))
                squares += np.bincount(group, inner * fraction[group], len(squares))
        return squares.reshape(self.surveys, strata).sum(axis=1)

    def poisson_variances(self, values: npt.ArrayLike) -> Floats:
        """Design variance of each survey's total where units are drawn independently: the sum of (1 - 1/w) (w y)^2."""
        squares = (1 - 1 / self.weight) * (self.weight * np.asarray(values)[self.unit]) ** 2
        return np.bincount(self.survey, squares, self.surveys)


# -- designs ---------------------------------------------------------------------------------------------------------


def simple_random(population: Population, sample: int, surveys: int, seed: int) -> Draws:
    """``sample`` units without replacement from all; the strata of the population are not looked at."""
    one = Population(np.zeros(len(population), np.int64))
    return stratified(one, [sample], surveys, seed)


def stratified(population: Population, sample: npt.ArrayLike, surveys: int, seed: int) -> Draws:
    """So many units of each stratum without replacement."""
    wanted, counts = np.asarray(sample), population.counts
    unit = _without_replacement(np.random.default_rng(seed), counts, wanted, surveys)
    weight = (counts / wanted)[population.strata]
    survey = np.repeat(np.arange(surveys), unit.shape[1])
    unit = unit.ravel()
    return Draws(surveys, survey, unit, weight[unit], population.strata[unit], unit, counts)


def poisson(population: Population, expected: float, surveys: int, seed: int) -> Draws:
    """Units independently, in proportion to size, ``expected`` of them on average; no unit may be certain."""
    sizes = _given(population.sizes, "sizes")
    probability = expected * sizes / sizes.sum()
    if probability.max() > 1:
        raise ValueError("some probability is above 1")
    generator = np.random.default_rng(seed)
    parts = [
        np.argwhere(generator.random((rows, len(sizes))) < probability) + np.array([first, 0])
        for first, rows in _chunks(surveys, len(sizes))
    ]
    survey, unit = np.concatenate(parts).astype(np.int64).T
    return Draws(surveys, survey, unit, (1 / probability)[unit], np.zeros(len(unit), np.int64), unit, None)


def two_stage(population: Population, clusters: npt.ArrayLike, take: int, surveys: int, seed: int) -> Draws:
    """So many clusters of each stratum without replacement, then ``take`` units of each, or all where it has fewer."""
    wanted, counts = np.asarray(clusters), population.cluster_counts
    generator = np.random.default_rng(seed)
    sizes, starts = population.cluster_sizes, population.cluster_starts
    chosen = _without_replacement(generator, counts, wanted, surveys)
    selected = chosen.shape[1]
    parts = []
    for first, rows in _chunks(surveys, selected * int(sizes.max())):
        own = chosen[first : first + rows].ravel()
        keys = generator.random((len(own), sizes.max()))
        keys[np.arange(sizes.max()) >= sizes[own][:, np.newaxis]] = 2.0  # places that the cluster does not have
        place = np.argsort(keys, axis=1)[:, :take]
        row, column = np.nonzero(np.arange(place.shape[1]) < sizes[own][:, np.newaxis])
        unit = starts[own[row]] + place[row, column]
        parts.append(np.stack([first + row // selected, unit]))
    survey, unit = np.concatenate(parts, axis=1)
    psu = _given(population.clusters, "clusters")[unit]
    stratum = population.strata[unit]
    weight = (counts / wanted)[stratum] * (sizes / np.minimum(take, sizes))[psu]
    return Draws(surveys, survey, unit, weight, stratum, psu, counts, sizes)


def systematic_by_size(
    population: Population, sample: npt.ArrayLike, surveys: int, seed: int, *, random_order: bool = False
) -> Draws:
    """So many units of each stratum at equal distances along the sizes, from a random start; no unit may be certain.

    In ``random_order`` the units of each stratum are shuffled first, for each survey anew.
    """
    generator = np.random.default_rng(seed)
    found = []
    for stratum, wanted in enumerate(np.asarray(sample).tolist()):
        members, sizes = _stratum(population, stratum)
        total = sizes.sum()
        if wanted * sizes.max() > total:
            raise ValueError("some probability is above 1")
        points = (generator.random((surveys, 1)) + np.arange(wanted)) * (total / wanted)
        if random_order:
            order = np.argsort(generator.random((surveys, len(members))), axis=1)
            # One search for all surveys: each has the sizes of its own order, behind those of the surveys before it.
            ends = np.cumsum(sizes[order], axis=1) + np.arange(surveys)[:, np.newaxis] * total
            points += np.arange(surveys)[:, np.newaxis] * total
            place = np.searchsorted(ends.ravel(), points, side="right") % len(members)
            place = np.take_along_axis(order, place, axis=1)
        else:
            place = np.searchsorted(np.cumsum(sizes), points, side="right")
        found.append(members[place])
    unit = np.concatenate(found, axis=1)
    survey = np.repeat(np.arange(surveys), unit.shape[1])
    unit = unit.ravel()
    return Draws(surveys, survey, unit, _by_size(population, sample)[unit], population.strata[unit], unit, None)


def with_replacement_by_size(population: Population, sample: npt.ArrayLike, surveys: int, seed: int) -> Draws:
    """So many draws in each stratum, each in proportion to size and independent of the others.

    A unit drawn twice has two rows, which are two primary sampling units.
    """
    generator = np.random.default_rng(seed)
    found = []
    for stratum, wanted in enumerate(np.asarray(sample).tolist()):
        members, sizes = _stratum(population, stratum)
        points = generator.random((surveys, wanted)) * sizes.sum()
        found.append(members[np.searchsorted(np.cumsum(sizes), points, side="right")])
    unit = np.concatenate(found, axis=1)
    survey, draw = np.divmod(np.arange(unit.size), unit.shape[1])
    unit = unit.ravel()
    return Draws(surveys, survey, unit, _by_size(population, sample)[unit], population.strata[unit], draw, None)


# -- helpers ---------------------------------------------------------------------------------------------------------


def _squares(group: Integers, values: Floats, groups: int) -> tuple[Floats, Integers]:
    """For each group n/(n - 1) times the sum of squares about its mean, and n; 0 for no values, nan for one."""
    n = np.bincount(group, minlength=groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        about_mean = values - (np.bincount(group, values, groups) / n)[group]
        return np.where(n == 0, 0.0, np.bincount(group, about_mean**2, groups) * n / (n - 1)), n


def _without_replacement(
    generator: np.random.Generator, counts: Integers, wanted: npt.NDArray[np.integer], surveys: int
) -> Integers:
    """For each survey (row) so many of each group of consecutive positions: those with the smallest random numbers."""
    if len(counts) != len(wanted) or (wanted > counts).any() or (wanted < 1).any():
        raise ValueError("a stratum must have between one sampled unit and all of them")
    start, found = 0, []
    for count, some in zip(counts.tolist(), wanted.tolist(), strict=True):
        rows = []
        for _, number in _chunks(surveys, count):
            keys = generator.random((number, count))
            rows.append(start + np.argpartition(keys, some - 1, axis=1)[:, :some])
        found.append(np.concatenate(rows))
        start += count
    return np.sort(np.concatenate(found, axis=1), axis=1)


def _by_size(population: Population, sample: npt.ArrayLike) -> Floats:
    """Weights of units that are drawn in proportion to size within strata."""
    sizes = _given(population.sizes, "sizes")
    total = np.bincount(population.strata, sizes)
    return (total / np.asarray(sample))[population.strata] / sizes


def _stratum(population: Population, stratum: int) -> tuple[Integers, Integers]:
    members = np.flatnonzero(population.strata == stratum)
    return members, _given(population.sizes, "sizes")[members]


def _given(column: Integers | None, name: str) -> Integers:
    if column is None:
        raise ValueError(f"the population has no {name}")
    return column


def _runs(labels: npt.NDArray[np.generic]) -> Integers:
    """Codes 0, 1, ... of labels in the order in which they stand; each label must stand in one run."""
    codes = np.cumsum(np.concatenate([[False], labels[1:] != labels[:-1]])).astype(np.int64)
    if len(np.unique(labels)) != codes[-1] + 1:
        raise ValueError("units of one stratum, and of one cluster, must stand together")
    return codes


def _chunks(surveys: int, numbers: int) -> Iterator[tuple[int, int]]:
    """Numbers of surveys, with the first of each, such that not too many random numbers are drawn at a time."""
    rows = max(1, _CHUNK // max(1, numbers))
    for first in range(0, surveys, rows):
        yield first, min(rows, surveys - first)
