"""A generated survey of any size: a frame, a sample drawn from it, who answered, weights and public tables.

Persons are drawn from :func:`~stirred.tables.synthetic.survey_frame.make_frame` by one of :data:`DESIGNS`. Design
weights are 1 over the inclusion probability, rounded to ``decimals``; final weights make up for nonresponse within the
urban and rural parts of regions and are raked to the public totals; replicate weights are those of the bootstrap of
Rao, Wu and Yue (1992). The invariants a reader must know: the public tables (``strata``, ``totals``) are computed from
the frame and the design alone, **never from who was sampled or answered**, so a plan may state what they say; and the
same arguments give the same rows (for one version of numpy).

Limits of weights follow from the table of strata by a stated rule, never from the sample. Raking is that of Deming and
Stephan (1940).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from stirred import errors
from stirred.tables.synthetic.survey_frame import (
    AGE_GROUP,
    BOUNDS,
    DESIGNS,
    EMPLOYMENT,
    KIND,
    SEX,
    VERSION,
    WHOLE,
    DesignName,
    Selection,
    age_and_sex,
    categories,
    codes,
    labelled,
    parts_of_regions,
    population_totals,
    select,
)

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


ITEM_NONRESPONSE: dict[str, dict[str, float]] = {
    "employment": dict.fromkeys(EMPLOYMENT, 0.03),
    "income": {"employed": 0.12, "unemployed": 0.08, "inactive": 0.05},
}
"""Chance that an answer is missing, by employment. Hours are missing where employment is."""

TRUE_VALUES = ("persons", *EMPLOYMENT, "income", "hours")
"""Columns of the table of true values: numbers of persons, and totals of income and hours."""

_MOST_DECIMALS = 6
_MOST_REPLICATES = 999
_MOST_TAKEN = 1_000
_RESPONSE, _RESPONSE_STEP, _RURAL_RESPONSE = 0.62, 0.04, 0.08
_ANSWER_COLUMNS = ("age_group", "sex", "employment", "income", "hours")
_PLACES = ("region", "kind", "area", "stratum", "psu")
_SAMPLE, _ANSWERS, _REPLICATES = 1, 2, 3  # streams of random numbers beside that of the frame, which is 0


@dataclass(frozen=True, eq=False)
class Survey:
    """A frame and one survey of it. ``strata`` and ``totals`` are public; ``truth`` is what a real survey never knows.

    Where persons are sampled directly, each is a primary sampling unit (``psu``) of its own, named by its number.
    """

    frame: pl.DataFrame
    """Everybody, with all answers."""
    design: DesignName
    target: pl.DataFrame
    """The target sample: inclusion probability, design weight, and whether the person answered."""
    records: pl.DataFrame
    """Those who answered, with missing items, design weights and, if asked for, final and replicate weights."""
    strata: pl.DataFrame
    """For each stratum: persons and primary sampling units of the frame, how many of them are selected (empty where the
    design leaves that to chance), and limits of weights."""

    @cached_property
    def totals(self) -> pl.DataFrame:
        """Public numbers of persons by age group and sex and by region, as :func:`population_totals` gives them."""
        return population_totals(self.frame)

    @cached_property
    def truth(self) -> pl.DataFrame:
        """True values of the population, as :func:`population_truth` gives them."""
        return population_truth(self.frame)

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """All values that each categorical column of the records can have, also those that do not occur."""
        names = ("region", "kind", "area", "stratum", "age_group", "sex", "employment")
        return {name: tuple(categories(self.records, name)) for name in names}

    def write(self, folder: str | Path) -> dict[str, Path]:
        """Write the records as ``survey.csv``, and ``strata.csv``, ``totals.csv`` and ``truth.csv``; returns the paths.

        What is missing is empty.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tables = {"survey": self.records, "strata": self.strata, "totals": self.totals, "truth": self.truth}
        for name, table in tables.items():
            table.write_csv(folder / f"{name}.csv")
        return {name: folder / f"{name}.csv" for name in tables}


# -- public functions ------------------------------------------------------------------------------------------------


def draw_survey(
    frame: pl.DataFrame,
    *,
    seed: int = 0,
    design: DesignName = "two-stage",
    sampled: int | None = None,
    take: int = 15,
    nonresponse: bool = True,
    final_weights: bool = True,
    replicates: int = 40,
    decimals: int = 2,
) -> Survey:
    """One survey of a frame from :func:`make_frame`; another ``seed`` draws another sample of the same persons.

    ``sampled`` persons are selected, about one in twenty by default; a two-stage design selects as many blocks as come
    nearest to it with ``take`` persons in each (smaller blocks are taken whole), and Poisson sampling has it as the
    expected number. Without ``nonresponse`` everybody answers everything. ``replicates`` is the number of replicate
    weights, which go with the final weights if there are any, else with the design weights. All weights are multiples
    of 10 to the power of minus ``decimals``.

    >>> from stirred.tables.synthetic.survey_frame import make_frame
    >>> survey = draw_survey(make_frame(5_000, seed=1), seed=1, replicates=2)
    >>> survey.records.columns  # doctest: +NORMALIZE_WHITESPACE
    ['person', 'region', 'kind', 'area', 'stratum', 'psu', 'age_group', 'sex', 'employment', 'income', 'hours',
     'weight', 'final_weight', 'replicate_1', 'replicate_2']
    >>> survey.strata.columns[3:]  # doctest: +NORMALIZE_WHITESPACE
    ['population_units', 'population_psus', 'selected_psus', 'sampled_units', 'smallest_weight', 'largest_weight',
     'smallest_final_weight', 'largest_final_weight']
    """
    wanted = max(1, frame.height // 20) if sampled is None else sampled
    _check_options(frame.height, seed, design, wanted, take, replicates, decimals)
    generator = np.random.default_rng([VERSION, seed, _SAMPLE])
    selection = select(generator, frame, design, wanted, take, decimals)
    strata = with_limits(selection.strata, decimals, final_weights)
    weight_steps = steps_of(selection.weight, decimals)
    stratum = selection.psu_stratum[selection.psu]
    sample = frame[pl.Series(selection.units.astype(np.uint32))]
    sample = sample.with_columns(
        stratum=labelled(strata["stratum"].to_list(), stratum),
        psu=sample["block" if design == "two-stage" else "person"].cast(pl.String),
        weight=decimal(weight_steps, decimals),
    )

    generator = np.random.default_rng([VERSION, seed, _ANSWERS])
    responded = np.ones(sample.height, dtype=np.bool_)
    if nonresponse:
        rates = _rates(len(categories(frame, "region"))).ravel()
        responded = generator.random(sample.height) < rates[parts_of_regions(sample)]
    target = sample.select(
        "person", *_PLACES, "weight", probability=1 / pl.Series(selection.weight), responded=pl.Series(responded)
    )
    answering = np.flatnonzero(responded)
    records = sample[pl.Series(answering.astype(np.uint32))].select("person", *_PLACES, *_ANSWER_COLUMNS, "weight")
    if nonresponse:
        records = _with_missing_items(generator, records)

    columns: dict[str, pl.Series] = {}
    weighting = Weighting(frame, sample, answering) if final_weights else None
    weight = weight_steps / 10**decimals
    if weighting is not None:
        smallest = steps_of(strata["smallest_final_weight"], decimals)[stratum[answering]]
        largest = steps_of(strata["largest_final_weight"], decimals)[stratum[answering]]
        final = np.rint(weighting.final(weight) * 10**decimals)
        columns["final_weight"] = decimal(np.clip(final, smallest, largest), decimals)
    generator = np.random.default_rng([VERSION, seed, _REPLICATES])
    for number in range(1, replicates + 1):
        changed = weight * multipliers(generator, selection, design)[selection.psu]
        changed = changed[answering] if weighting is None else weighting.final(changed)
        name = f"replicate_{number:0{len(str(replicates))}}"
        columns[name] = decimal(np.rint(changed * 10**decimals), decimals)
    return Survey(frame, design, target, records.with_columns(**columns), strata)


def population_truth(frame: pl.DataFrame) -> pl.DataFrame:
    """True values, for everybody and for each region, kind, area, age group and sex (``by`` and ``value``).

    ``persons``, ``employed``, ``unemployed`` and ``inactive`` are numbers of persons, ``income`` and ``hours`` totals.
    """
    sums = [
        pl.len().cast(pl.Int64).alias("persons"),
        *((pl.col("employment") == name).sum().cast(pl.Int64).alias(name) for name in EMPLOYMENT),
        *(pl.col(name).cast(pl.Int64).sum() for name in BOUNDS),
    ]
    tables = [frame.select(sums).select(pl.lit(WHOLE).alias("by"), pl.lit(WHOLE).alias("value"), *TRUE_VALUES)]
    for name in ("region", "kind", "area", "age_group", "sex"):
        table = frame.group_by(name).agg(sums).sort(name)
        tables.append(table.select(pl.lit(name).alias("by"), pl.col(name).cast(pl.String).alias("value"), *TRUE_VALUES))
    return pl.concat(tables)


# -- options and columns ---------------------------------------------------------------------------------------------


def _check_options(
    persons: int, seed: int, design: str, sampled: int, take: int, replicates: int, decimals: int
) -> None:
    if design not in DESIGNS:
        raise errors.unknown_choice("sampling design", design, DESIGNS)
    ranges = (
        ("The number of sampled persons", sampled, 1, persons),
        ("The number of persons taken from each selected block", take, 1, _MOST_TAKEN),
        ("The number of replicate weights", replicates, 0, _MOST_REPLICATES),
        ("The number of decimals", decimals, 0, _MOST_DECIMALS),
    )
    for what, value, least, most in ranges:
        if not least <= value <= most:
            raise errors.parameter_out_of_range(what, value, f"a whole number from {least:,} to {most:,}")
    if seed < 0:
        raise errors.parameter_out_of_range("The seed", seed, "zero or a positive whole number")


# -- who answers what ------------------------------------------------------------------------------------------------


def _rates(regions: int) -> Floats:
    """The chance of an answer, by region and kind."""
    rates: Floats = np.add.outer(_RESPONSE + _RESPONSE_STEP * (np.arange(regions) % 5), [0.0, _RURAL_RESPONSE])
    return np.round(rates, 2)


def _with_missing_items(generator: np.random.Generator, records: pl.DataFrame) -> pl.DataFrame:
    employment = codes(records, "employment")
    missing = {
        name: generator.random(records.height) < np.array([chances[value] for value in EMPLOYMENT])[employment]
        for name, chances in ITEM_NONRESPONSE.items()
    }
    missing["hours"] = missing["employment"]
    return records.with_columns(
        pl.when(pl.Series(~gone)).then(pl.col(name)).otherwise(None).alias(name) for name, gone in missing.items()
    )
