"""Invented records for tests, examples and benchmarks: a small country, a stream of any length, a file of dwellings.

Nothing here is estimated from anything. The one invariant: a call with the same arguments gives the same
records (for one version of numpy), and ids are unique without being kept in memory, since they are a
one-to-one scrambling of row numbers.

The dwellings have the published margins of Massachusetts in 1940. The census file itself is licensed and not ours to
ship. Published, and reproduced exactly here, are the county by tenure counts of Table 3.1 and b = 264,331, the number
of two-person households, which is the largest stratum of state by household size (Table 3.2). **Ours**, and no evidence
about 1940, is every other count by household size: a plausible distribution, tilted mildly by county and tenure.

All counts are apportioned in exact arithmetic, so every run on every machine gives the same multiset of
dwellings; a seeded generator only puts the rows in an order that means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stirred.tables.synthetic.inhabitants import draw_codes, draw_codes_by_row

_COUNTIES = 40
_COUNTIES_IN_REGION = 5
_TRACTS_IN_COUNTY = 12

_SIZE_SHARES = (0.10, 0.22, 0.22, 0.21, 0.12, 0.07, 0.04, 0.02)  # 1 to 8 persons; the mean is 3.5
_TENURES = ("owned", "rented")
_SEXES = ("female", "male")

_TYPES = ("one person", "couple", "couple with children", "one parent", "other")
_COUPLE, _COUPLE_WITH_CHILDREN, _ONE_PARENT = 1, 2, 3
_TYPE_SHARES = np.array(
    [
        [1.00, 0.00, 0.00, 0.00, 0.00],  # households of one
        [0.00, 0.62, 0.00, 0.20, 0.18],  # of two
        [0.00, 0.00, 0.70, 0.18, 0.12],  # of three or more
    ]
)

_RELATIONS = ("head", "spouse", "child", "other relative", "lodger")
_HEAD, _SPOUSE, _CHILD, _RELATIVE, _LODGER = range(len(_RELATIONS))

_EDUCATION = ("none yet", "primary", "secondary", "tertiary")

_SIZES_OF_RECORDS = 7
_COUNTIES_OF_RECORDS = 100

_ID_BITS = 48  # ids stay below 2**53, so that they survive formats whose only number is a double

Codes = npt.NDArray[np.int64]


def households_and_persons(households: int, *, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A country's households and the persons in them, about 3.5 to a household.

    Places are text with leading zeros and nest: ``tract`` in ``county`` in ``region``. Each person carries a
    copy of the household's ``county``. Persons of one household stand together, but the households stand in
    another order than in their own file, so that nothing can be paired by position.

    >>> households, persons = households_and_persons(100)
    >>> persons.height == households["size"].sum()
    True
    >>> households.columns
    ['household_id', 'region', 'county', 'tract', 'size', 'tenure', 'type']
    >>> persons.columns
    ['person_id', 'household_id', 'county', 'age', 'sex', 'relation', 'education']
    """
    if households < 1:
        raise ValueError(f"households must be at least 1, not {households}")
    generator = np.random.default_rng(seed)
    county = draw_codes(generator, households, 1 / np.arange(3.0, 3.0 + _COUNTIES))
    tract = county * _TRACTS_IN_COUNTY + generator.integers(_TRACTS_IN_COUNTY, size=households)
    size = 1 + draw_codes(generator, households, _SIZE_SHARES)
    kind = draw_codes_by_row(generator, _TYPE_SHARES, np.minimum(size, 3) - 1)
    rented = draw_codes_by_row(generator, np.array([[0.35, 0.65], [0.60, 0.40], [0.70, 0.30]]), county % 3)
    household_id = _scrambled(0, households, seed)
    county_text = _labelled(county, [f"{number:03}" for number in range(1, _COUNTIES + 1)])

    household_table = pl.DataFrame(
        {
            "household_id": household_id,
            "region": _labelled(
                county // _COUNTIES_IN_REGION,
                [f"{number:02}" for number in range(1, _COUNTIES // _COUNTIES_IN_REGION + 1)],
            ),
            "county": county_text,
            "tract": _labelled(
                tract,
                [f"{c:03}{t:02}" for c in range(1, _COUNTIES + 1) for t in range(1, _TRACTS_IN_COUNTY + 1)],
            ),
            "size": size,
            "tenure": _labelled(rented, _TENURES),
            "type": _labelled(kind, _TYPES),
        }
    )

    order = generator.permutation(households)
    home = np.repeat(order, size[order])
    person_table = pl.DataFrame(
        {
            "person_id": _scrambled(0, len(home), seed + 1),
            "household_id": household_id[home],
            "county": county_text.gather(home),
            **_characteristics(generator, size[order], kind[order]),
        }
    )
    return household_table, person_table


def records(rows: int, strata: int, *, seed: int = 0, rows_per_chunk: int = 1_000_000) -> Iterator[pl.DataFrame]:
    """Independent random records in chunks, for files larger than memory; about 15 bytes a row.

    ``area`` and ``size`` are meant for matching and have ``strata`` combinations in all, equally likely, so
    that all of them occur once ``rows`` is a good many times ``strata``. ``county`` (100 values) is meant for
    swapping; ``tenure``, ``race`` and ``age_group`` for holding. ``area`` takes two bytes, or four when
    there are more than 65,536 areas.

    >>> [chunk.height for chunk in records(2_500, strata=350, rows_per_chunk=1_000)]
    [1000, 1000, 500]
    >>> next(records(1, strata=350)).columns
    ['id', 'area', 'size', 'county', 'tenure', 'race', 'age_group']
    """
    if rows < 0 or rows > 2**_ID_BITS:
        raise ValueError(f"rows must lie between 0 and 2**{_ID_BITS}, not {rows}")
    if strata < 1 or strata > 2**32:
        raise ValueError(f"strata must lie between 1 and 2**32, not {strata}")
    if rows_per_chunk < 1:
        raise ValueError(f"rows_per_chunk must be at least 1, not {rows_per_chunk}")
    return _record_chunks(rows, strata, seed, rows_per_chunk)


def _record_chunks(rows: int, strata: int, seed: int, rows_per_chunk: int) -> Iterator[pl.DataFrame]:
    generator = np.random.default_rng(seed)
    area_type = np.uint16 if (strata - 1) // _SIZES_OF_RECORDS < 2**16 else np.uint32
    for start in range(0, rows, rows_per_chunk):
        height = min(rows_per_chunk, rows - start)
        stratum = generator.integers(strata, size=height, dtype=np.uint32)
        area = stratum // np.uint32(_SIZES_OF_RECORDS)
        yield pl.DataFrame(
            {
                "id": _scrambled(start, start + height, seed),
                "area": area.astype(area_type),
                "size": (stratum - area * np.uint32(_SIZES_OF_RECORDS) + np.uint32(1)).astype(np.uint8),
                "county": generator.integers(_COUNTIES_OF_RECORDS, size=height, dtype=np.uint8),
                "tenure": generator.integers(2, size=height, dtype=np.uint8),
                "race": generator.integers(7, size=height, dtype=np.uint8),
                "age_group": generator.integers(18, size=height, dtype=np.uint8),
            }
        )


def _characteristics(
    generator: np.random.Generator, size: Codes, kind: Codes
) -> dict[str, pl.Series | npt.NDArray[np.int16]]:
    """Age, sex, relation and education of the persons of households given by size and type.

    Narrow types throughout: at millions of rows the time goes into touching fresh memory.
    """
    persons = int(size.sum())
    first = np.cumsum(size) - size
    household = np.repeat(np.arange(len(size), dtype=np.uint32), size)
    place = (np.arange(persons, dtype=np.uint32) - first.astype(np.uint32)[household]).astype(np.uint8)
    relation = _relations(generator, place, kind.astype(np.uint8)[household])

    head_age = generator.integers(20, 86, size=len(size), dtype=np.int16)
    age = generator.integers(90, size=persons, dtype=np.int16)
    lodger, child, spouse = (np.flatnonzero(relation == code) for code in (_LODGER, _CHILD, _SPOUSE))
    age[lodger] = 18 + age[lodger] % 60
    age[child] %= np.minimum(head_age - 16, 28)[household[child]]
    age[spouse] = np.maximum(18, head_age[household[spouse]] + age[spouse] % 9 - 4)
    age[first] = head_age

    sex = generator.integers(2, size=persons, dtype=np.uint8)
    sex[spouse] = 1 - sex[spouse - 1]

    attained = draw_codes(generator, persons, (0.25, 0.50, 0.25)) + 1
    attainable = np.searchsorted(np.array([6, 15, 21]), np.arange(128), side="right")
    return {
        "age": age,
        "sex": _labelled(sex, _SEXES),
        "relation": _labelled(relation, _RELATIONS),
        "education": _labelled(np.minimum(attained, attainable[age]), _EDUCATION),
    }


def _relations(
    generator: np.random.Generator, place: npt.NDArray[np.uint8], kind: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Relation to the head: the first person is the head, the second of a couple the spouse."""
    relation = generator.integers(_RELATIVE, _LODGER + 1, size=len(place), dtype=np.uint8)
    relation[(kind == _COUPLE_WITH_CHILDREN) | (kind == _ONE_PARENT)] = _CHILD
    relation[((kind == _COUPLE) | (kind == _COUPLE_WITH_CHILDREN)) & (place == 1)] = _SPOUSE
    relation[place == 0] = _HEAD
    return relation


def _labelled(codes: Codes | npt.NDArray[np.uint8], labels: Sequence[str]) -> pl.Series:
    return pl.Series(labels).gather(codes.astype(np.uint32))


def _scrambled(start: int, stop: int, seed: int) -> Codes:
    """A one-to-one scrambling of start, ..., stop - 1 within 0, ..., 2**48 - 1.

    Each step can be undone (adding, multiplying by an odd number modulo 2**48, and xor with one's own higher
    bits), so distinct rows get distinct ids. Not a cipher: it only makes ids look like ids.
    """
    mask = np.uint64(2**_ID_BITS - 1)
    offset = np.uint64((seed + 1) * 0x9E3779B97F4B % 2**_ID_BITS)
    value = (np.arange(start, stop, dtype=np.uint64) + offset) & mask
    for factor in (0xBF58476D1CE5, 0x94D049BB1331):
        value ^= value >> np.uint64(23)
        value *= np.uint64(factor)
        value &= mask
    value ^= value >> np.uint64(25)
    return value.astype(np.int64)


class CountyRow(NamedTuple):
    """One line of Table 3.1: dwellings by tenure as counted, and after one run of swapping at 50%."""

    county: str
    owned: int
    rented: int
    owned_swapped: int
    rented_swapped: int


TABLE_3_1: tuple[CountyRow, ...] = (
    CountyRow("Barnstable", 7_461, 3_825, 5_907, 5_379),
    CountyRow("Berkshire", 14_736, 18_417, 13_770, 19_383),
    CountyRow("Bristol", 33_747, 63_931, 35_537, 62_141),
    CountyRow("Dukes", 1_207, 534, 946, 795),
    CountyRow("Essex", 53_936, 81_300, 52_631, 82_605),
    CountyRow("Franklin", 7_433, 6_442, 6_337, 7_538),
    CountyRow("Hampden", 30_597, 58_166, 32_267, 56_496),
    CountyRow("Hampshire", 9_427, 8_630, 8_145, 9_912),
    CountyRow("Middlesex", 104_144, 147_687, 100_372, 151_459),
    CountyRow("Nantucket", 593, 432, 471, 554),
    CountyRow("Norfolk", 44_885, 40_285, 38_566, 46_604),
    CountyRow("Plymouth", 24_857, 23_882, 21_549, 27_190),
    CountyRow("Suffolk", 49_656, 176_553, 67_357, 158_852),
    CountyRow("Worcester", 53_126, 78_535, 51_950, 79_711),
)
"""Table 3.1 as printed."""

DWELLINGS = 1_144_424
"""The grand total of Table 3.1."""

TWO_PERSON_HOUSEHOLDS = 264_331
"""b of Table 3.2: the size of the largest stratum when matching on state and household size."""

PUBLISHED_MAPE = 0.137759
"""Mean absolute percentage error of the swapped half of Table 3.1 over its 28 cells, as a fraction.

Not printed: worked out from the printed counts."""


# Ours: dwellings per 10,000 with 1, 2, ..., 15 persons.
_SIZE_SHARES_1940 = (800, 2310, 2000, 1850, 1200, 760, 450, 270, 160, 95, 50, 30, 15, 7, 3)

# Ours: a cell's share of a size is multiplied by 1 + tilt (size - 4) / 1000, so a positive tilt means larger
# households. Small, because size must stay nearly independent of county and tenure for swapping within sizes
# to disturb county by tenure about as much as it did in the published run.
_TENURE_TILT = {"owned": 12, "rented": -8}
_COUNTY_TILT = {
    "Barnstable": -20,
    "Berkshire": 0,
    "Bristol": 12,
    "Dukes": -25,
    "Essex": -4,
    "Franklin": -6,
    "Hampden": 6,
    "Hampshire": 8,
    "Middlesex": 4,
    "Nantucket": -25,
    "Norfolk": 2,
    "Plymouth": -8,
    "Suffolk": -2,
    "Worcester": 8,
}

_ORDER_SEED = 1940


def massachusetts_1940(scale: float | None = None) -> pl.DataFrame:
    """The dwellings of Massachusetts in 1940, one row each, generated.

    Published (Tables 3.1 and 3.2) and exact here: the 14 counties by owned and rented, hence 1,144,424
    dwellings, and 264,331 households of two. Ours: the other household sizes, and everything about size
    within county and tenure. ``serial`` numbers the dwellings from 1, in an order unrelated to anything, the
    order of the rows included.

    ``scale`` gives a file of about that multiple of the dwellings (0.01 for a quick look), apportioned from
    the same counts; its margins are then the published ones times ``scale``, up to rounding.

    >>> dwellings = massachusetts_1940(scale=0.01)
    >>> dwellings.height, (dwellings["household_size"] == 2).sum()
    (11444, 2643)
    >>> dwellings.columns
    ['serial', 'state', 'county', 'household_size', 'tenure']
    """
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be a positive number, not {scale}")
    counts = np.array(_counts(Fraction(1) if scale is None else Fraction(scale)), dtype=np.int64)
    cells = np.repeat(np.arange(counts.size, dtype=np.uint32), counts.ravel())
    generator = np.random.default_rng(_ORDER_SEED)
    generator.shuffle(cells)
    county_and_tenure, size = np.divmod(cells, np.uint32(len(_SIZE_SHARES_1940)))
    county, tenure = np.divmod(county_and_tenure, np.uint32(len(_TENURES)))
    return pl.DataFrame(
        {
            "serial": generator.permutation(len(cells)) + 1,
            "state": pl.repeat("Massachusetts", len(cells), eager=True),
            "county": pl.Series([row.county for row in TABLE_3_1]).gather(county),
            "household_size": size.astype(np.int64) + 1,
            "tenure": pl.Series(_TENURES).gather(tenure),
        }
    )


def _counts(scale: Fraction) -> list[list[int]]:
    """Dwellings in each county-and-tenure cell (outer) of each household size (inner).

    The two-person households of the state are shared out among the cells first, so that their number comes
    out exactly; then what is left of each cell is shared out among the other sizes.
    """
    names = [(row.county, tenure) for row in TABLE_3_1 for tenure in _TENURES]
    published = [dwellings for row in TABLE_3_1 for dwellings in (row.owned, row.rented)]
    totals = _apportion(round(DWELLINGS * scale), published)
    weights = [_size_weights(county, tenure) for county, tenure in names]
    two_person = _apportion(
        round(TWO_PERSON_HOUSEHOLDS * scale),
        [Fraction(total * weight[1], sum(weight)) for total, weight in zip(totals, weights, strict=True)],
    )
    counts = []
    for total, pairs, weight in zip(totals, two_person, weights, strict=True):
        others = _apportion(total - pairs, weight[:1] + weight[2:])
        counts.append([others[0], pairs, *others[1:]])
    return counts


def _size_weights(county: str, tenure: str) -> list[int]:
    tilt = _COUNTY_TILT[county] + _TENURE_TILT[tenure]
    return [share * (1000 + tilt * (size - 4)) for size, share in enumerate(_SIZE_SHARES_1940, start=1)]


def _apportion(total: int, weights: Sequence[Fraction] | Sequence[int]) -> list[int]:
    """Share out ``total`` in proportion to ``weights`` by largest remainders; ties go to the earlier place.

    >>> _apportion(10, [1, 1, 1])
    [4, 3, 3]
    """
    whole = sum(weights, start=Fraction(0))
    quotas = [total * weight / whole for weight in weights]
    shares = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda place: shares[place] - quotas[place])
    for place in by_remainder[: total - sum(shares)]:
        shares[place] += 1
    return shares
