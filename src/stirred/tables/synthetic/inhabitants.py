"""The laws behind a generated census: where blocks are, who lives in which dwelling, and what they are like.

Shapes are set by hand to look like a state of the United States (block sizes like those of Rhode Island in 2010); no
number here is an estimate of anything. The invariant a reader must know: a part of a county is drawn from a
generator of its own, seeded by its name, and **counts are shared out exactly** from county to tract to block group to
block to dwelling, so parts can be drawn one at a time, in any order, and still add up to the number asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

VERSION = 1
"""Part of every seed: raised whenever a law changes, so that two versions never pass for one."""

HHGQ = (
    "household",
    "correctional",
    "juvenile",
    "nursing",
    "other institutional",
    "college",
    "military",
    "other non-institutional",
)
"""Household, or the type of the group quarters."""

VOTINGAGE = ("under 18", "18 and over")
HISPANIC = ("not hispanic", "hispanic")

_SINGLE = ("white", "black", "aian", "asian", "nhopi", "other")
_COMBINATIONS = tuple(some for size in range(1, 7) for some in combinations(range(6), size))

CENRACE = tuple("-".join(_SINGLE[one] for one in some) for some in _COMBINATIONS)
"""The 63 combinations of six races: singles first, then pairs, and so on."""

RACE = ("white", "black", "hispanic", "american indian", "asian", "pacific islander", "other", "two or more")
"""Hispanics of any race in one group, everybody else by race."""

ADULT = ("no", "yes")
SEX = ("female", "male")
OLDEST = 109
"""Ages are whole years from 0 to this."""

_HISPANIC_GROUP, _SEVERAL = RACE.index("hispanic"), RACE.index("two or more")
_SINGLE_GROUPS = (0, 1, 3, 4, 5, 6)  # of RACE, in the order of _SINGLE

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# -- places ----------------------------------------------------------------------------------------------------------

_PERSONS_IN_TRACT = 4_300.0
_PERSONS_IN_BLOCK_GROUP = 1_290.0
_MOST_BLOCKS = 999  # three digits name a block within its block group
_PART = 200_000  # about so many persons are drawn at a time

# -- group quarters, by type in the order of HHGQ without households -------------------------------------------------

_HOSTS = 0.028  # group quarters per block with inhabitants
_TYPE_SHARES = np.array([0.05, 0.05, 0.19, 0.04, 0.12, 0.02, 0.53])
_TYPE_MEDIAN = np.array([400.0, 12.0, 80.0, 20.0, 250.0, 150.0, 7.0])  # persons of a type in one block
_TYPE_SPREAD = np.array([1.4, 0.8, 0.6, 1.0, 1.4, 1.2, 0.9])  # standard deviation of their logarithm
_TYPE_ALONE = np.array([0.9, 0.4, 0.3, 0.4, 0.5, 0.8, 0.1])  # chance that nobody else lives in the block
_FACILITY = np.array([600.0, 30.0, 150.0, 60.0, 120.0, 200.0, 12.0])  # persons for which a further facility opens
_TYPE_MALE = np.array([0.91, 0.85, 0.33, 0.60, 0.45, 0.85, 0.60])
# Ages run from the first to the second number with a beta law. Nursing homes begin at 18: it is the structural zero
# of the 2020 persons file.
_TYPE_AGES = np.array([[17, 80], [10, 20], [18, OLDEST], [5, 100], [17, 30], [17, 45], [0, 95]], dtype=np.float64)
_TYPE_BETA = np.array([[1.5, 3.0], [3.0, 3.0], [6.0, 1.8], [2.0, 2.0], [2.2, 5.0], [1.8, 4.0], [3.0, 3.5]])

# -- households ------------------------------------------------------------------------------------------------------

_SIZE_SHARES = np.array([0.255, 0.325, 0.170, 0.142, 0.066, 0.024, 0.010, 0.005, 0.002, 0.001])  # of 1, 2, ..., 10
_VACANT = 0.11  # vacant units per occupied one
_VACANT_IN_EMPTY = 0.15  # chance that a block without inhabitants has vacant units

# -- races -----------------------------------------------------------------------------------------------------------

_GROUP_SHARES = np.array([0.68, 0.09, 0.14, 0.007, 0.045, 0.0015, 0.006, 0.03])
_COUNTY_SPREAD = np.array([0.2, 0.5, 0.5, 0.4, 0.4, 0.4, 0.2, 0.1])
_TRACT_SPREAD = np.array([0.6, 1.6, 1.6, 0.7, 0.9, 0.9, 1.0, 0.4])
_BLOCK_SPREAD = np.array([0.2, 0.7, 0.6, 0.8, 0.7, 0.8, 0.6, 0.4])
_ALIKE = 0.94  # chance that a person is of the householder's race and origin

# Several races: a product over the races, times 0.12 for each beyond the second; from 1 in 4 to less than 1 in 10^6.
_ODDS = np.array([1.0, 0.5, 0.35, 0.4, 0.06, 0.4])
_SEVERAL_SHARES = np.array(
    [0.0 if len(some) == 1 else float(np.prod(_ODDS[list(some)])) * 0.12 ** (len(some) - 2) for some in _COMBINATIONS]
)
_HISPANIC_SHARES = 0.06 * _SEVERAL_SHARES / _SEVERAL_SHARES.sum()
_HISPANIC_SHARES[:6] = (0.53, 0.025, 0.014, 0.004, 0.001, 0.366)

TEACHING_RACE = np.array(
    [[_SINGLE_GROUPS[code] if code < 6 else _SEVERAL for code in range(63)], [_HISPANIC_GROUP] * 63], dtype=np.uint8
)
"""Code in RACE by the codes of ``hispanic`` and ``cenrace``."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive tracts of one county, to be drawn together."""

    seed: int
    state: int
    county: int
    first_tract: int
    tract_persons: Integers
    races: Floats  # logarithms of the county's shares by RACE


@dataclass(frozen=True, eq=False)
class Drawn:
    """A part as codes. Blocks stand in the order of their ids, residences by block, persons by residence.

    A residence is a housing unit (``hhgq`` 0, vacant if nobody lives there) or a facility.
    """

    tract: Integers  # by block, counted from 1 in the county
    block_group: Integers  # by block, counted from 1 in the tract
    block: Integers  # by block, counted from 0 in the block group
    residence_block: Integers
    residence_hhgq: npt.NDArray[np.uint8]
    residence_persons: Integers
    residence: Integers  # by person
    age: npt.NDArray[np.uint8]
    sex: npt.NDArray[np.uint8]
    hispanic: npt.NDArray[np.uint8]
    cenrace: npt.NDArray[np.uint8]


def parts_of_county(seed: int, state: int, county: int, persons: int) -> list[Part]:
    """The tracts of a county and their populations, in parts of bounded size."""
    generator = np.random.default_rng([VERSION, seed, state, county])
    tracts = max(1, round(persons / _PERSONS_IN_TRACT))
    weights = generator.gamma(7.0, size=tracts)
    weights[1:][generator.random(tracts - 1) < 0.012] *= 1e-3  # water, airports, parks
    sizes = shared_out(np.array([persons]), weights, np.array([tracts]))
    races = np.log(_GROUP_SHARES) + generator.normal(size=len(RACE)) * _COUNTY_SPREAD
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // _PART)) + 1
    starts = [0, *cuts.tolist()]
    return [
        Part(seed, state, county, start + 1, some, races)
        for start, some in zip(starts, np.split(sizes, cuts), strict=True)
    ]


def draw(part: Part) -> Drawn:
    """Everything about a part; a function of the part alone."""
    generator = np.random.default_rng([VERSION, part.seed, part.state, part.county, part.first_tract])
    tract, block_group, group_persons = _block_groups(generator, part.tract_persons)
    group, lived_in, wanted = _blocks(generator, group_persons)
    host, kind, guests = _group_quarters(generator, np.flatnonzero(lived_in))
    alone = np.zeros(len(group), dtype=bool)
    alone[host[generator.random(len(host)) < _TYPE_ALONE[kind - 1]]] = True
    wanted[alone] = 0.0
    all_guests = np.bincount(host, weights=guests, minlength=len(group))
    blocks_in_group = np.bincount(group, minlength=len(group_persons))
    persons = lived_in + shared_out(
        group_persons - np.bincount(group, weights=lived_in, minlength=len(group_persons)).astype(np.int64),
        wanted + all_guests,
        blocks_in_group,
    )
    share = np.divide(all_guests, wanted + all_guests, out=np.zeros(len(group)), where=all_guests > 0)
    in_quarters = np.where(alone, persons, np.rint(persons * share).astype(np.int64))

    vacant = _vacant(generator, persons, in_quarters, group)
    homes_block, homes = _households(generator, persons - in_quarters)
    facility_block, facility_kind, facility_persons = _facilities(generator, host, kind, guests, in_quarters)
    empty_block = np.repeat(np.arange(len(group)), vacant)
    residence_block = np.concatenate([homes_block, empty_block, facility_block])
    order = np.argsort(residence_block, kind="stable")
    hhgq = np.zeros(len(order), dtype=np.uint8)
    hhgq[len(homes) + len(empty_block) :] = facility_kind
    residence_block, hhgq = residence_block[order], hhgq[order]
    size = np.concatenate([homes, np.zeros(len(empty_block), dtype=np.int64), facility_persons])[order]

    residence = np.repeat(np.arange(len(size)), size)
    age, sex = _ages_and_sexes(generator, hhgq, size, residence)
    hispanic, cenrace = _races(generator, part.races, tract[group], residence_block, hhgq, size, residence)
    within = np.arange(len(group)) - (np.cumsum(blocks_in_group) - blocks_in_group)[group]
    return Drawn(
        tract=part.first_tract + tract[group],
        block_group=block_group[group],
        block=within,
        residence_block=residence_block,
        residence_hhgq=hhgq,
        residence_persons=size,
        residence=residence,
        age=age,
        sex=sex,
        hispanic=hispanic,
        cenrace=cenrace,
    )


def shared_out(totals: Integers, weights: Floats, members: Integers) -> Integers:
    """Share each total out among its ``members`` consecutive weights, exactly, by rounding running totals.

    A weight of zero gets nothing, and so does a group whose weights are all zero.

    >>> shared_out(np.array([10, 3]), np.array([1.0, 1.0, 1.0, 0.0, 2.0]), np.array([3, 2]))
    array([3, 4, 3, 0, 3])
    """
    ends = np.cumsum(members)
    running = np.concatenate([[0.0], np.cumsum(weights)])
    before, whole = running[ends - members], running[ends] - running[ends - members]
    group = np.repeat(np.arange(len(members)), members)
    share = np.divide(running[1:] - before[group], whole[group], out=np.zeros(len(group)), where=whole[group] > 0)
    edges = np.floor(share * totals[group] + 0.5).astype(np.int64)
    counts: Integers = np.diff(edges, prepend=0)
    first = (ends - members)[members > 0]
    counts[first] = edges[first]
    return counts


# -- from tracts to blocks -------------------------------------------------------------------------------------------


def _block_groups(generator: np.random.Generator, tract_persons: Integers) -> tuple[Integers, Integers, Integers]:
    """Tract (from 0), number in the tract (from 1) and persons of each block group."""
    noise = np.exp(0.22 * generator.normal(size=len(tract_persons)))
    groups = np.clip(np.rint(tract_persons / _PERSONS_IN_BLOCK_GROUP * noise), 1, 9).astype(np.int64)
    tract = np.repeat(np.arange(len(groups)), groups)
    number = np.arange(len(tract)) - (np.cumsum(groups) - groups)[tract] + 1
    weight = np.exp(0.4 * generator.normal(size=len(tract)))
    weight[generator.random(len(tract)) < 0.025] *= 4  # new quarters, campuses
    return tract, number, shared_out(tract_persons, weight, groups)


def _blocks(generator: np.random.Generator, group_persons: Integers) -> tuple[Integers, npt.NDArray[np.bool_], Floats]:
    """Block group of each block, whether anyone lives there, and how many persons in households it would like.

    Thinly settled block groups have many blocks, and many of them empty: one normal variable moves both.
    """
    groups = len(group_persons)
    rural = generator.normal(size=groups)
    typical = 26.0 * np.maximum(group_persons / 1_176.0, 0.02) ** 0.35
    number = np.clip(np.rint(typical * np.exp(0.55 * rural)), 1, _MOST_BLOCKS).astype(np.int64)
    empty = 1 / (1 + np.exp(1.45 - 0.85 * rural - 0.8 * generator.normal(size=groups)))
    inhabited = np.minimum(np.maximum(number - generator.binomial(number, empty), 1), group_persons)
    group = np.repeat(np.arange(groups), number)
    order = np.lexsort((generator.random(len(group)), group))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - (np.cumsum(number) - number)[group]
    lived_in = rank < inhabited[group]
    weight = generator.gamma(2.0, size=len(group)) * np.exp(0.4 * generator.normal(size=len(group))) / 2.2
    weight[generator.random(len(group)) < 0.025] *= 4  # towers, large estates
    weight[generator.random(len(group)) < 0.05] *= 0.05  # a house by itself
    typical_persons = group_persons / np.maximum(inhabited, 1)
    return group, lived_in, np.where(lived_in, weight * typical_persons[group], 0.0)


# -- dwellings -------------------------------------------------------------------------------------------------------


def _group_quarters(generator: np.random.Generator, lived_in: Integers) -> tuple[Integers, Integers, Floats]:
    """Block, type and wished-for population of group quarters; one in seven stands where the one before stands."""
    number = int(generator.poisson(_HOSTS * len(lived_in)))
    host = lived_in[generator.integers(max(1, len(lived_in)), size=number)]
    again = np.flatnonzero(generator.random(max(0, number - 1)) < 1 / 7) + 1
    host[again] = host[again - 1]
    kind = 1 + draw_codes(generator, number, _TYPE_SHARES)
    guests = _TYPE_MEDIAN[kind - 1] * np.exp(_TYPE_SPREAD[kind - 1] * generator.normal(size=number))
    return host, kind, guests


def _facilities(
    generator: np.random.Generator, host: Integers, kind: Integers, guests: Floats, in_quarters: Integers
) -> tuple[Integers, Integers, Integers]:
    """Block, type and persons of each facility; nobody opens one for nobody."""
    order = np.argsort(host, kind="stable")
    host, kind, guests = host[order], kind[order], guests[order]
    persons = shared_out(in_quarters, guests, np.bincount(host, minlength=len(in_quarters)))
    number = np.minimum(1 + generator.poisson(persons / _FACILITY[kind - 1]), persons)
    entry = np.repeat(np.arange(len(host)), number)
    size = 1 + shared_out(persons - number, generator.gamma(2.0, size=len(entry)), number)
    return host[entry], kind[entry], size


def _households(generator: np.random.Generator, persons: Integers) -> tuple[Integers, Integers]:
    """Block and size of each household.

    Sizes are drawn for the whole part, laid end to end, and cut where a block ends: the last household of a block
    is smaller than drawn, and every block has its persons exactly.
    """
    ends = np.cumsum(persons)
    total = int(ends[-1])
    mean = float(_SIZE_SHARES @ np.arange(1, len(_SIZE_SHARES) + 1))
    number = int(total / mean * 1.1) + 100
    cuts = np.cumsum(1 + draw_codes(generator, number, _SIZE_SHARES))
    while cuts[-1] < total:
        cuts = np.concatenate([cuts, cuts[-1] + np.cumsum(1 + draw_codes(generator, number, _SIZE_SHARES))])
    edges = np.union1d(cuts[cuts < total], ends[persons > 0])
    return np.searchsorted(ends, edges, side="left"), np.diff(edges, prepend=0)


def _vacant(generator: np.random.Generator, persons: Integers, in_quarters: Integers, group: Integers) -> Integers:
    """Vacant units of each block; some block groups are holiday places."""
    holiday = generator.gamma(0.8, size=int(group[-1]) + 1) / 0.8
    vacant: Integers = generator.poisson(_VACANT * holiday[group] * (persons - in_quarters) / 2.5)
    seasonal = (persons == 0) & (generator.random(len(persons)) < _VACANT_IN_EMPTY)
    vacant[seasonal] = 1 + generator.poisson(2.0, size=int(seasonal.sum()))
    return vacant


# -- persons ---------------------------------------------------------------------------------------------------------


def _ages_and_sexes(
    generator: np.random.Generator, hhgq: npt.NDArray[np.uint8], size: Integers, residence: Integers
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The first person of a household is its adult head; then perhaps a spouse, children, other adults."""
    place = np.arange(len(residence)) - (np.cumsum(size) - size)[residence]
    lone = size == 1
    head_age = 20 + np.floor(75 * generator.beta(np.where(lone, 1.9, 1.8), np.where(lone, 1.6, 2.4))).astype(np.int64)
    at = generator.random(len(residence))
    chance = generator.random(len(residence))
    home = hhgq[residence] == 0

    head = head_age[residence]
    age = 18 + np.floor(70 * at**1.3).astype(np.int64)  # other adults
    child = home & (place > 0) & (chance < np.where(place == 1, 0.14, 0.80))
    age[child] = np.floor(np.minimum(head[child] - 17, 26) * at[child]).astype(np.int64)
    spouse = home & (place == 1) & (chance >= 0.25)
    age[spouse] = np.clip(head[spouse] + np.floor(11 * at[spouse]).astype(np.int64) - 6, 18, OLDEST)
    leading = home & (place == 0)
    age[leading] = head[leading]

    male = generator.random(len(residence)) < 0.485
    married = np.flatnonzero(spouse)
    male[married] = male[married - 1] ^ (at[married] < 0.985)

    guest = np.flatnonzero(~home)
    kind = hhgq[residence[guest]].astype(np.int64) - 1
    low, high = _TYPE_AGES[kind].T
    first, second = _TYPE_BETA[kind].T
    age[guest] = np.floor(low + (high - low + 1) * generator.beta(first, second)).astype(np.int64)
    age[guest] = np.minimum(age[guest], high.astype(np.int64))
    male[guest] = generator.random(len(guest)) < _TYPE_MALE[kind]
    return age.astype(np.uint8), male.astype(np.uint8)


def _races(
    generator: np.random.Generator,
    county: Floats,
    tract: Integers,
    residence_block: Integers,
    hhgq: npt.NDArray[np.uint8],
    size: Integers,
    residence: Integers,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Origin and race: shares differ by county, tract and block; households are mostly of one group.

    Persons in group quarters come half from the block's neighbourhood, half from the whole county.
    """
    by_tract = county + _tilt(generator, int(tract[-1]) + 1, _TRACT_SPREAD)
    by_block = np.vstack([by_tract[tract] + _tilt(generator, len(tract), _BLOCK_SPREAD), county])
    bounds = np.cumsum(np.exp(by_block), axis=1)
    bounds /= bounds[:, -1:]

    head = (np.cumsum(size) - size)[residence]
    alone = (hhgq[residence] > 0) | (generator.random(len(residence)) >= _ALIKE)
    alone[head] = True
    drawn = np.flatnonzero(alone)
    block = residence_block[residence[drawn]]
    block[(hhgq[residence[drawn]] > 0) & (generator.random(len(drawn)) < 0.5)] = len(tract)
    at = generator.random(len(drawn))
    group = np.zeros(len(drawn), dtype=np.int64)
    for column in range(len(RACE) - 1):
        group += at >= bounds[block, column]

    cenrace = np.full(len(RACE), -1)
    cenrace[list(_SINGLE_GROUPS)] = np.arange(6)
    race = cenrace[group]
    for code, shares in ((_HISPANIC_GROUP, _HISPANIC_SHARES), (_SEVERAL, _SEVERAL_SHARES)):
        some = np.flatnonzero(group == code)
        race[some] = draw_codes(generator, len(some), shares)

    # Whoever was not drawn is like the head of the household, who was.
    like = np.where(alone, np.arange(len(residence)), head)
    position = np.cumsum(alone) - 1
    return (group == _HISPANIC_GROUP).astype(np.uint8)[position[like]], race.astype(np.uint8)[position[like]]


def _tilt(generator: np.random.Generator, rows: int, spread: Floats) -> Floats:
    """Normal changes of logarithms of shares that leave the expected shares about where they were."""
    return generator.normal(size=(rows, len(spread))) * spread - spread**2 / 2


def draw_codes(generator: np.random.Generator, rows: int, shares: Sequence[float] | Floats) -> Integers:
    """Codes 0, 1, ... with probabilities in proportion to ``shares``."""
    bounds = np.cumsum(shares)
    return np.searchsorted(bounds[:-1] / bounds[-1], generator.random(rows), side="right")


def draw_codes_by_row(generator: np.random.Generator, shares: Floats, which: Integers) -> Integers:
    """As :func:`draw_codes`, each record by the row of ``shares`` that ``which`` names."""
    bounds = np.cumsum(shares, axis=1)[:, :-1]
    at = generator.random(len(which))
    codes = np.zeros(len(which), dtype=np.int64)
    for column in bounds.T:
        codes += at >= column[which]
    return codes
