"""How persons of a generated frame are selected, and what is public about it: strata, numbers, limits of weights.

Every design gives each person a known inclusion probability; the design weight is 1 over it (Horvitz and Thompson
1952). The invariant a reader must know: the table of strata follows from the frame and the design alone, so that it
would be the same whoever was selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from stirred.tables.synthetic.inhabitants import shared_out
from stirred.tables.synthetic.survey_population import KIND, SIZES, categories, codes, parts_of_regions

DesignName = Literal["simple", "stratified", "two-stage", "poisson"]

DESIGNS: tuple[DesignName, ...] = ("simple", "stratified", "two-stage", "poisson")
"""Simple random; simple random in the urban and rural part of each region; simple random blocks in these parts, then
simple random persons in each selected block; Poisson sampling in proportion to size. None draws a person twice."""

WHOLE = "all"
"""The stratum where a design has none."""

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Selection:
    """The target sample: positions in the frame, increasing, with design weights that are not rounded."""

    units: Integers
    weight: Floats
    psu: Integers
    """The primary sampling unit of each person, numbered from 0 in the order of the frame."""
    psu_stratum: Integers
    """The stratum of each primary sampling unit, as a row of ``strata``."""
    strata: pl.DataFrame
    """For each stratum: units of the frame, how many are selected, smallest and largest design weight."""


def select(
    generator: np.random.Generator, frame: pl.DataFrame, design: DesignName, sampled: int, take: int, decimals: int
) -> Selection:
    """Draw the target sample; ``decimals`` matter to Poisson sampling alone, whose weights have no more of them."""
    if design == "two-stage":
        return _two_stage(generator, frame, sampled, take)
    if design == "poisson":
        return _poisson(generator, frame, sampled, decimals)
    names = _no_strata() if design == "simple" else _part_names(frame)
    stratum_of_unit = np.zeros(frame.height, np.int64) if design == "simple" else parts_of_regions(frame)
    counts = np.bincount(stratum_of_unit, minlength=names.height)
    wanted = _allocated(sampled, counts, least=min(2, sampled))
    units = _simple_random(generator, counts, wanted)
    stratum = np.repeat(np.arange(len(counts)), wanted)
    weight = counts / wanted
    strata = names.with_columns(
        population_units=pl.Series(counts),
        population_psus=pl.Series(counts),
        selected_psus=pl.Series(wanted),
        sampled_units=pl.Series(wanted),
        smallest_weight=pl.Series(weight),
        largest_weight=pl.Series(weight),
    )
    return Selection(units, weight[stratum], np.arange(len(units)), stratum, strata)


def _two_stage(generator: np.random.Generator, frame: pl.DataFrame, sampled: int, take: int) -> Selection:
    """Blocks by simple random sampling in each part of a region, then ``take`` persons of each selected block."""
    names = _part_names(frame)
    size = np.bincount(codes(frame, "block"))
    start = np.cumsum(size) - size
    blocks = np.bincount(parts_of_regions(frame)[start], minlength=names.height)
    first = np.cumsum(blocks) - blocks  # of each part; its blocks stand together
    persons = np.add.reduceat(size, first)
    wanted = np.clip(_allocated(round(sampled / take), persons, least=0), 2, blocks)
    chosen = _simple_random(generator, blocks, wanted)
    stratum = np.repeat(np.arange(len(blocks)), wanted)

    # A random number below 1 is added to the number of the block, so that sorting shuffles each block by itself.
    member = np.repeat(np.arange(len(chosen)), size[chosen])
    place = np.arange(len(member)) - (np.cumsum(size[chosen]) - size[chosen])[member]
    order = np.argsort(member + generator.random(len(member)))
    taken = np.sort(order[place < take])
    units, psu = (start[chosen[member]] + place)[taken], member[taken]

    taken_of_block = np.minimum(take, size)
    first_stage, second_stage = blocks / wanted, size / taken_of_block
    number = np.where(wanted == blocks, np.add.reduceat(taken_of_block, first), wanted * take)
    left_to_chance = (wanted < blocks) & (np.minimum.reduceat(size, first) < take)
    strata = names.with_columns(
        population_units=pl.Series(persons),
        population_psus=pl.Series(blocks),
        selected_psus=pl.Series(wanted),
        sampled_units=pl.Series(number).set(pl.Series(left_to_chance), None),
        smallest_weight=pl.Series(first_stage * np.minimum.reduceat(second_stage, first)),
        largest_weight=pl.Series(first_stage * np.maximum.reduceat(second_stage, first)),
    )
    weight = first_stage[stratum[psu]] * second_stage[chosen[psu]]
    return Selection(units, weight, psu, stratum, strata)


def _poisson(generator: np.random.Generator, frame: pl.DataFrame, sampled: int, decimals: int) -> Selection:
    """Everybody independently, with a probability in proportion to size that is 1 over a weight with few decimals."""
    size = frame["size"].to_numpy()
    step = 10**decimals
    mean = size.sum(dtype=np.int64) / sampled
    weight_of_size = np.maximum(step, np.rint(step * mean / np.arange(1, SIZES[1] + 1))) / step
    units = np.flatnonzero(generator.random(len(size)) < (1 / weight_of_size)[size - 1])
    strata = _no_strata().with_columns(
        population_units=pl.Series([frame.height]),
        population_psus=pl.Series([frame.height]),
        selected_psus=pl.lit(None, dtype=pl.Int64),
        sampled_units=pl.lit(None, dtype=pl.Int64),
        smallest_weight=pl.Series(weight_of_size[[SIZES[1] - 1]]),
        largest_weight=pl.Series(weight_of_size[[SIZES[0] - 1]]),
    )
    weight = weight_of_size[size[units] - 1]
    return Selection(units, weight, np.arange(len(units)), np.zeros(len(units), np.int64), strata)


def _part_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Names of the urban and rural parts of regions, in the order of their codes and of the frame."""
    regions = categories(frame, "region")
    names = [(f"{region}-{kind}", region, kind) for region in regions for kind in KIND]
    return pl.DataFrame(names, schema=["stratum", "region", "kind"], orient="row")


def _no_strata() -> pl.DataFrame:
    return pl.DataFrame(
        {"stratum": [WHOLE], "region": [None], "kind": [None]},
        schema={"stratum": pl.String, "region": pl.String, "kind": pl.String},
    )


def _allocated(sampled: int, counts: Integers, least: int) -> Integers:
    """Sampled units of each stratum in proportion to its units, at least ``least`` and never more than there are."""
    return np.clip(shared_out(np.array([sampled]), counts.astype(np.float64), np.array([len(counts)])), least, counts)


def _simple_random(generator: np.random.Generator, counts: Integers, wanted: Integers) -> Integers:
    """Positions of simple random samples from consecutive groups of ``counts`` units, increasing."""
    starts = np.cumsum(counts) - counts
    drawn = [
        start + np.sort(generator.choice(count, size, replace=False, shuffle=False))
        for start, count, size in zip(starts.tolist(), counts.tolist(), wanted.tolist(), strict=True)
    ]
    return np.concatenate(drawn).astype(np.int64)
