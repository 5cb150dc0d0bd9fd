"""What every simulated swapper shares: columns as codes, who got whose place, and a guarantee that is told honestly.

A simulator takes a frame with one row for each household and gives back a frame in which some households have the
place of another. It stands apart from the mechanism that releases: it writes nothing, its frame carries no
certificate, and its specification is marked as not for release. Its random numbers are bits of a ``RandomSource``;
coins and orders are decided by floats of 53 bits, which is good enough to study a law and not to promise one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.loss import PowerCurve
from stirred.noise import RandomSource, uniform_integers
from stirred.spec import (
    Budget,
    Domain,
    InputPremetric,
    Invariant,
    Multiverse,
    OutputPremetric,
    Specification,
    lint,
)
from stirred.spec.specification import Fact
from stirred.tables import Table, open_input
from stirred.tables.groups import Groups, anonymous, group
from stirred.tables.reading.table_reader import read_table

SIMULATION = "not for release: made by a simulator, which promises nothing about its randomness and writes no release"
"""The mark of every simulator's specification."""
GUARANTEE = "guarantee"
"""The fact that says what is known of a simulator's guarantee:"""
PROVED, OPEN, NONE = "proved", "open", "none"
"""a theorem gives its epsilon, nobody has proved a bound, or it is known that there is none."""
_BITS = 53
"""Bits of a uniform float."""

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Simulated:
    """A simulated swap. Confidential, as the file that it was made from is."""

    frame: pl.DataFrame
    """The swapped file; its rows are in the order of the input."""
    giver: Rows
    """The log: row i has the place of row ``giver[i]``, its own where it did not move."""
    changed: int
    """Records whose place differs from what it was."""
    unmatched: int = 0
    """Records that were selected and not swapped: without a partner, or beyond a limit."""


class Swapper(ABC):
    """A simulator, as a study asks it."""

    publishes_counts = True
    """Whether the counts that it keeps come out as they are, and are not replaced afterwards."""

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """The columns that move."""

    @property
    @abstractmethod
    def agreed(self) -> tuple[str, ...]:
        """The columns on which records that exchange their places always agree."""

    @abstractmethod
    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""

    @abstractmethod
    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee: finite only where a theorem covers it."""

    def power_curve(self, frame: pl.DataFrame) -> PowerCurve | None:
        """The greatest power of a test between the nearest two files; None where no more is known than epsilon says."""
        return None


PAIRS = (
    "swaps are in pairs and their number is limited, so some files of the universe can never come out, and seeing one "
    "that can excludes others"
)
BY_PLACES = "who is swapped, and with whom, depends on the places themselves, and no theorem about swapping covers that"
"""Reasons why targeted swappers have no epsilon."""


# -- the frame as codes --------------------------------------------------------------------------------------


def encoded(frame: pl.DataFrame, columns: Sequence[str]) -> Table:
    """Some columns of a frame as codes; an error if one is not there."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise errors.missing_columns("the simulated file", missing)
    wanted = list(dict.fromkeys(columns))
    return read_table(open_input("the simulated file", frame.select(wanted)), wanted).table


def grouped(table: Table, columns: Sequence[str]) -> Groups:
    """Which records agree on some columns."""
    return group(table.pick(columns), table.rows)


def sharing(table: Table, columns: Sequence[str]) -> Rows:
    """For each record, how many agree with it on some columns, itself included."""
    groups = grouped(table, columns)
    return groups.sizes()[groups.ids]


def flags_of(table: Table, name: str) -> Flags:
    """Which records have a column of yes and no as yes, 1 or true."""
    yes = [(text or "").lower() in ("true", "1", "yes") for text in table[name].texts()]
    return np.array(yes, dtype=np.bool_)[table[name].codes]


def within(fine: Groups, coarse: Groups) -> Groups:
    """Records that are together in both groupings."""
    return group([anonymous(one.ids, one.count) for one in (fine, coarse)], len(fine.ids))


# -- random numbers ------------------------------------------------------------------------------------------


def uniform(count: int, source: RandomSource) -> Floats:
    """Uniform floats in [0, 1), multiples of 2^-53."""
    return uniform_integers(1 << _BITS, count, source) / float(1 << _BITS)


def weighted_order(weights: Floats, source: RandomSource) -> Rows:
    """Records in an order in which each next one is drawn with probability proportional to its weight.

    An exponential race: the record with the smallest E/w comes first. Records of weight 0 are left out.
    """
    running = np.flatnonzero(weights > 0)
    arrival = -np.log1p(-uniform(len(running), source)) / weights[running]
    return running[np.argsort(arrival, kind="stable")].astype(np.int64)


def rank_within(ids: NDArray[np.integer], count: int) -> Rows:
    """For records in some order, how many of the same group stand before each.

    >>> rank_within(np.array([2, 0, 2, 2, 0]), 3).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(ids, kind="stable")
    sizes = np.bincount(ids, minlength=count)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


# -- what comes out ------------------------------------------------------------------------------------------


def moved(frame: pl.DataFrame, places: Sequence[str], giver: Rows, unmatched: int = 0) -> Simulated:
    """The frame in which each record has the places of its giver."""
    at = pl.Series(giver.astype(np.uint32))
    exchanged = {name: frame[name].gather(at) for name in places}
    differs = np.zeros(frame.height, dtype=np.bool_)
    for name in places:
        differs |= (exchanged[name].ne_missing(frame[name])).to_numpy()
    return Simulated(frame.with_columns(**exchanged), giver, int(np.count_nonzero(differs)), unmatched)


def kept(frame: pl.DataFrame, unit: str, agreed: Sequence[str], places: Sequence[str]) -> tuple[Invariant, ...]:
    """What an exchange of places among records that agree on some columns never changes."""
    stays = [name for name in frame.columns if name not in places]
    return Invariant(unit, by=tuple(stays)), Invariant(unit, by=(*agreed, *places))


def specified(
    frame: pl.DataFrame,
    unit: str,
    invariants: Sequence[Invariant],
    epsilon: float,
    reasons: str,
    facts: Sequence[tuple[str, Fact]],
    nearest: int = 2,
) -> Specification:
    """The five blocks of a swapper, marked as those of a simulator; ``reasons`` say where epsilon comes from."""
    stated = Specification(
        domain=Domain(
            f"files of {unit} records, of no named dataset",
            variables=tuple(frame.columns),
            starts="the file that is swapped, after collection, editing and imputation",
            record=unit,
            free=True,
        ),
        multiverse=Multiverse(tuple(invariants)),
        input_premetric=InputPremetric(unit=unit),
        output_premetric=OutputPremetric("multiplicative"),
        budget=Budget(epsilon, conversion=reasons),
        nearest=nearest,
        covers=("the swapped file, and every table of it",),
        facts=tuple(facts),
        marks=(SIMULATION,),
    )
    return stated.with_findings(*lint(stated))
