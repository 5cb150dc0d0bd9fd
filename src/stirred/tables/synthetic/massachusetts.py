"""A file of 1940 Massachusetts dwellings with the published margins, for examples and tests.

The census file itself is licensed and not ours to ship. Published, and reproduced exactly here, are the
county by tenure counts of Table 3.1 and b = 264,331, the number of two-person households, which is the
largest stratum of state by household size (Table 3.2). **Ours**, and no evidence about 1940, is every other
count by household size: a plausible distribution, tilted mildly by county and tenure.

All counts are apportioned in exact arithmetic, so every run on every machine gives the same multiset of
dwellings; a seeded generator only puts the rows in an order that means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import polars as pl


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

_TENURES = ("owned", "rented")

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
