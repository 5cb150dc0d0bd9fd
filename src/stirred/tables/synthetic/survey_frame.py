"""The invented adults that generated surveys are drawn from, what each would answer, and who of them is selected.

Regions are divided into an urban and a rural part, these into areas, and areas into blocks of about 150 adults. Answers
are correlated within blocks and areas, as in real surveys: a normal effect of the block and one of the area move
income and unemployment. No number here is an estimate of anything. The invariant a reader must know: the same arguments
give the same rows in the same order (for one version of numpy), **exactly as many persons as asked for**, and no block
has fewer than :data:`FEWEST_IN_BLOCK` of them.

Every design gives each person a known inclusion probability; the design weight is 1 over it (Horvitz and Thompson
1952). A second invariant: the table of strata follows from the frame and the design alone, so that it
would be the same whoever was selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from stirred import errors
from stirred.tables.synthetic.inhabitants import draw_codes_by_row, shared_out

VERSION = 1
"""Part of every seed: raised whenever a law changes, so that two versions never pass for one."""

KIND = ("urban", "rural")
AGE_GROUP = ("16-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75 and over")
SEX = ("female", "male")
EMPLOYMENT = ("employed", "unemployed", "inactive")

BOUNDS: dict[str, tuple[int, int]] = {"income": (0, 200_000), "hours": (0, 80)}
"""Smallest and largest possible values of the numeric answers, all of them whole numbers."""

SIZES = (5, 60)
"""Smallest and largest size measure, by which Poisson sampling selects."""

FEWEST_IN_BLOCK = 20
MOST_PERSONS = 100_000_000
MOST_REGIONS = 90
MOST_AREAS = 9_999

_EMPLOYED, _UNEMPLOYED, _INACTIVE = range(len(EMPLOYMENT))
_PERSONS_IN_BLOCK = 150
_PERSONS_IN_AREA = 100  # at least
_CHUNK = 1 << 17  # persons drawn at a time, so that columns stay in the processor's cache

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# -- shares, by kind, age group and sex -------------------------------------------------------------------------------

_URBAN = 0.62
_AGE_SHARES = np.array(
    [[0.14, 0.20, 0.18, 0.16, 0.14, 0.10, 0.08], [0.11, 0.13, 0.15, 0.17, 0.18, 0.15, 0.11]]  # urban, rural
)
_FEMALE = np.array([0.49, 0.49, 0.50, 0.50, 0.51, 0.53, 0.60])
_INACTIVE_SHARE = np.array(
    [[0.46, 0.22, 0.19, 0.17, 0.36, 0.86, 0.98], [0.43, 0.11, 0.09, 0.11, 0.28, 0.80, 0.96]]  # female, male
)
_UNEMPLOYED_SHARE = np.array([0.13, 0.07, 0.05, 0.045, 0.05, 0.02, 0.01])  # of those who are active
_PART_TIME = np.array([0.38, 0.14])  # female, male

# -- logarithms of income ---------------------------------------------------------------------------------------------

_LOG_INCOME = np.log(np.array([34_000.0, 11_000.0, 15_000.0]))  # employed, unemployed, inactive
_AGE_EFFECT = np.array([-0.50, -0.05, 0.12, 0.18, 0.12, 0.0, -0.08])
_SEX_EFFECT = np.array([-0.10, 0.10])
_NO_INCOME = np.array([0.0, 0.15, 0.12])  # chance by employment
_SPREAD = 0.50
_BLOCK_SPREAD, _AREA_SPREAD = 0.22, 0.15
_UNEMPLOYMENT_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class Places:
    """Blocks in order: number of persons, and the region, kind (0 urban, 1 rural) and area of each, as codes."""

    persons: Codes
    region: Codes
    kind: Codes
    area: Codes
    area_labels: list[str]
    block_labels: list[str]


def make_frame(persons: int = 100_000, *, seed: int = 0, regions: int = 8, areas: int = 40) -> pl.DataFrame:
    """All adults of an invented country with their answers: the frame that surveys are drawn from.

    Public are ``region``, ``kind`` (urban or rural), ``area``, ``block`` and ``size``, a measure of last year's
    registered income from 5 to 60. Answers are ``age_group``, ``sex``, ``employment``, ``income`` (a year's, whole,
    0 to 200,000) and ``hours`` (a week's, 0 unless employed). Blocks nest in areas, areas in the urban or rural part of
    a region; persons of a block stand together, and there are at least 100 persons for each area.

    >>> frame = make_frame(5_000, seed=1)
    >>> frame.height, frame["area"].n_unique(), frame["region"].n_unique()
    (5000, 40, 8)
    >>> frame.columns
    ['person', 'region', 'kind', 'area', 'block', 'size', 'age_group', 'sex', 'employment', 'income', 'hours']
    """
    _check("The number of regions", regions, 1, MOST_REGIONS)
    _check("The number of areas", areas, 2 * regions, MOST_AREAS)
    _check("The number of persons", persons, _PERSONS_IN_AREA * areas, MOST_PERSONS)
    if seed < 0:
        raise errors.parameter_out_of_range("The seed", seed, "zero or a positive whole number")
    generator = np.random.default_rng([VERSION, seed, 0])
    places = _places(generator, persons, regions, areas)
    home = np.repeat(np.arange(len(places.persons), dtype=np.uint32), places.persons)
    answers = _answers(generator, places, home)
    return pl.DataFrame(
        {
            "person": np.arange(1, persons + 1),
            "region": labelled([f"{region + 1:02}" for region in range(regions)], places.region[home]),
            "kind": labelled(KIND, places.kind[home]),
            "area": labelled(places.area_labels, places.area[home]),
            "block": labelled(places.block_labels, home),
            "size": answers["size"],
            "age_group": labelled(AGE_GROUP, answers["age_group"]),
            "sex": labelled(SEX, answers["sex"]),
            "employment": labelled(EMPLOYMENT, answers["employment"]),
            "income": answers["income"],
            "hours": answers["hours"],
        }
    )


def labelled(labels: tuple[str, ...] | list[str], codes: npt.NDArray[Any]) -> pl.Series:
    """Codes as a column of texts whose values, also those that do not occur, are known."""
    return pl.Series(labels, dtype=pl.Enum(labels)).gather(codes.astype(np.uint32, copy=False))


def categories(table: pl.DataFrame, name: str) -> list[str]:
    """All values that a column of the frame can have."""
    kind = table.schema[name]
    if not isinstance(kind, pl.Enum):
        raise TypeError(f"the column {name!r} is not a column of make_frame")
    return kind.categories.to_list()


def codes(table: pl.DataFrame, name: str) -> Codes:
    """The values of a categorical column as their places among all values."""
    return np.asarray(table[name].to_physical().to_numpy(), dtype=np.int64)


def parts_of_regions(table: pl.DataFrame) -> Codes:
    """The urban or rural part of a region, as a code."""
    return codes(table, "region") * len(KIND) + codes(table, "kind")


def age_and_sex(table: pl.DataFrame) -> Codes:
    """The pair of age group and sex, as a code."""
    return codes(table, "age_group") * len(SEX) + codes(table, "sex")


def population_totals(frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers of persons by age group and sex (``margin`` age_group*sex) and by region, for calibration.

    Every category is listed, also with nobody in it; columns that a margin does not use are empty.
    """
    regions = categories(frame, "region")
    by_region = np.bincount(codes(frame, "region"), minlength=len(regions))
    by_age_and_sex = np.bincount(age_and_sex(frame), minlength=len(AGE_GROUP) * len(SEX))
    pairs = [(age, sex) for age in AGE_GROUP for sex in SEX]
    return pl.DataFrame(
        {
            "margin": ["age_group*sex"] * len(pairs) + ["region"] * len(regions),
            "region": [None] * len(pairs) + regions,
            "age_group": [age for age, _ in pairs] + [None] * len(regions),
            "sex": [sex for _, sex in pairs] + [None] * len(regions),
            "persons": np.concatenate([by_age_and_sex, by_region]),
        }
    )


def _check(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise errors.parameter_out_of_range(what, value, f"a whole number from {least:,} to {most:,}")


# -- places ----------------------------------------------------------------------------------------------------------


def _places(generator: np.random.Generator, persons: int, regions: int, areas: int) -> Places:
    """Parts of regions get areas, areas get persons, and blocks share the persons of their area exactly."""
    share = np.outer(1 / np.arange(3.0, 3.0 + regions), [_URBAN, 1 - _URBAN]).ravel()
    areas_of_part = 1 + shared_out(np.array([areas - len(share)]), share, np.array([len(share)]))
    part = np.repeat(np.arange(len(share)), areas_of_part)

    weight = (share / areas_of_part)[part] * np.exp(0.4 * generator.normal(size=areas))
    in_area = _PERSONS_IN_AREA + shared_out(np.array([persons - _PERSONS_IN_AREA * areas]), weight, np.array([areas]))
    blocks = np.maximum(2, np.rint(in_area / _PERSONS_IN_BLOCK)).astype(np.int64)
    wish = 0.4 + generator.gamma(2.0, size=int(blocks.sum()))
    in_block = FEWEST_IN_BLOCK + shared_out(in_area - FEWEST_IN_BLOCK * blocks, wish, blocks)

    area_of_block = np.repeat(np.arange(areas), blocks)
    number = np.arange(len(area_of_block)) - (np.cumsum(blocks) - blocks)[area_of_block] + 1
    area_labels = [f"{region + 1:02}-{place:04}" for place, region in enumerate((part // 2).tolist(), start=1)]
    return Places(
        persons=in_block,
        region=(part // 2)[area_of_block],
        kind=(part % 2)[area_of_block],
        area=area_of_block,
        area_labels=area_labels,
        block_labels=[
            f"{area_labels[area]}-{own:03}" for area, own in zip(area_of_block.tolist(), number.tolist(), strict=True)
        ],
    )


# -- answers ---------------------------------------------------------------------------------------------------------


def _answers(
    generator: np.random.Generator, places: Places, home: npt.NDArray[np.uint32]
) -> dict[str, npt.NDArray[Any]]:
    areas, blocks = len(places.area_labels), len(places.persons)
    by_block = {
        "kind": places.kind,
        "income": _effect(generator, places, areas, _AREA_SPREAD, _BLOCK_SPREAD),
        "unemployment": np.exp(_effect(generator, places, areas, 0.25, _UNEMPLOYMENT_SPREAD)),
        "inactivity": np.exp(0.12 * generator.normal(size=blocks)),
    }
    types = {"age_group": np.uint8, "sex": np.uint8, "employment": np.uint8, "income": np.int32, "hours": np.int32}
    answers: dict[str, npt.NDArray[Any]] = {name: np.empty(len(home), kind) for name, kind in types.items()}
    answers["size"] = np.empty(len(home), np.int32)
    for start in range(0, len(home), _CHUNK):
        some = slice(start, start + _CHUNK)
        for name, values in _answers_of_some(generator, {key: of[home[some]] for key, of in by_block.items()}).items():
            answers[name][some] = values
    return answers


def _effect(generator: np.random.Generator, places: Places, areas: int, area: float, block: float) -> Floats:
    """The effect of the area plus that of the block; raised to a power of e its mean is 1."""
    of_area = area * generator.normal(size=areas) - area**2 / 2
    of_block = block * generator.normal(size=len(places.persons)) - block**2 / 2
    effect: Floats = of_area[places.area] + of_block
    return effect


def _answers_of_some(
    generator: np.random.Generator, effects: dict[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Answers of some persons, from the effects of their blocks."""
    persons = len(effects["kind"])
    age = draw_codes_by_row(generator, _AGE_SHARES, effects["kind"])
    sex = (generator.random(persons) >= _FEMALE[age]).astype(np.int64)

    inactive = np.minimum(0.99, _INACTIVE_SHARE[sex, age] * effects["inactivity"])
    unemployed = np.minimum(0.5, _UNEMPLOYED_SHARE[age] * effects["unemployment"])
    at = generator.random(persons)
    employment = np.where(at < inactive, _INACTIVE, np.where(at < inactive + (1 - inactive) * unemployed, 1, 0))

    part_time = generator.random(persons) < _PART_TIME[sex]
    hours = np.where(part_time, 21.0, 39.0) + 6 * generator.normal(size=persons)
    hours = np.where(employment == _EMPLOYED, np.clip(np.rint(hours), 1, BOUNDS["hours"][1]), 0)

    logarithm = _LOG_INCOME[employment] + _AGE_EFFECT[age] + _SEX_EFFECT[sex] + effects["income"]
    logarithm -= np.where(part_time & (employment == _EMPLOYED), 0.6, 0.0)
    income = np.exp(logarithm + _SPREAD * generator.normal(size=persons))
    income[generator.random(persons) < _NO_INCOME[employment]] = 0
    income = np.minimum(np.rint(income), BOUNDS["income"][1])
    size = np.clip(np.rint(income / 1_500 * np.exp(0.3 * generator.normal(size=persons))), *SIZES)
    return {"age_group": age, "sex": sex, "employment": employment, "income": income, "hours": hours, "size": size}


DesignName = Literal["simple", "stratified", "two-stage", "poisson"]

DESIGNS: tuple[DesignName, ...] = ("simple", "stratified", "two-stage", "poisson")
"""Simple random; simple random in the urban and rural part of each region; simple random blocks in these parts, then
simple random persons in each selected block; Poisson sampling in proportion to size. None draws a person twice."""

WHOLE = "all"
"""The stratum where a design has none."""

Integers = npt.NDArray[np.int64]


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
