"""Computes how exposed pairs of a released file are, and the exact loss of its universe, from its public files alone.

Sizes of strata, and how many records share held or swap values, are invariants: the release has them as the true file
had. Only for a pair *as it stands*, which shares its held values with others, released counts stand in for true ones.

The exact loss is computed where it can be: small strata, two categories. It depends on the margins of each stratum
alone, which are published, so it may be told. It is the loss of this universe: another file of the domain, with other
margins, may lose as much as the theorem says. Strata are independent, and the loss of the file is the largest of
theirs; where one of them cannot be computed, nothing is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred._display import confidential
from stirred.loss import (
    GaussianCurve,
    PowerCurve,
    pair_outcomes,
    pair_power_curve,
    swap_power_curve,
    swap_rates_power_curve,
)
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.semantics.swap_exposure import NORMAL, TWO_RECORDS, ExactLoss, SwapExposure, SwapPair
from stirred.swap.data.counting import RatesByStratum, one_rate, rates_of_dataset
from stirred.swap.data.dataset import stratum_columns
from stirred.swap.data.records import classes_of
from stirred.swap.data.released_files import read_files
from stirred.swap.law.moments import constants_of
from stirred.swap.law.stratum_laws import affordable, stratum_law
from stirred.swap.plan.fields import SwapPlan
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, anonymous, group

_RECORDS, _TABLES, _TERMS = 100, 150, 10_000_000
"""Records of two by two categories, else tables and terms to add: each stratum takes a quarter of a second at most."""
_MOST_KINDS = 30
"""Different margins that are computed."""

Totals = tuple[int, ...]


def exact_loss_of(cells: Cells, rate: Fraction) -> ExactLoss | None:
    """The exact loss of the universe of these strata; None where one of them is too large to be computed."""
    kinds: set[tuple[Totals, Totals]] = set()
    strata = 0
    for part in cells.strata():
        held = np.sort(cells.sharing_held[np.unique(cells.held[part])]).tolist()
        swapped = np.sort(cells.sharing_swapped[np.unique(cells.swapped[part])]).tolist()
        if not computable(tuple(held), tuple(swapped)):
            return None
        kinds.add((tuple(held), tuple(swapped)))
        strata += 1
        if len(kinds) > _MOST_KINDS:
            return None
    return ExactLoss(max(stratum_loss(held, swapped, rate) for held, swapped in kinds), strata) if kinds else None


def computable(held: Totals, swapped: Totals) -> bool:
    """Whether the loss of a stratum with these margins, both sorted, is computed without being asked for."""
    return _one_apart(held, swapped) or affordable(held, swapped, records=_RECORDS, tables=_TABLES, terms=_TERMS)


@lru_cache(maxsize=1024)
def stratum_loss(held: Totals, swapped: Totals, rate: Fraction) -> float:
    """The largest absolute log ratio per record in which two files of the universe differ.

    >>> round(stratum_loss((10, 10), (10, 10), Fraction("0.05")), 6)
    3.63655
    """
    if _one_apart(held, swapped):
        return _of_one_apart(sum(held), min(swapped if held[0] == 1 and len(held) == 2 else held), rate)
    worst = stratum_law(held, swapped, rate).worst
    return worst.loss if worst else 0.0


# -- helpers -------------------------------------------------------------------------------------------------


def _one_apart(held: Totals, swapped: Totals) -> bool:
    """Whether one record alone has one of the two held values, or one of the two swap values, and can change."""
    return min(len(held), len(swapped)) > 1 and any(len(side) == 2 and side[0] == 1 for side in (held, swapped))


def _of_one_apart(size: int, rarest: int, rate: Fraction) -> float:
    """One record against all others: the file says only which value it has, its own with 1 - q.

    It shows a value s with probability q n_s/(n-1) where it has another, and 1 - q + q (n_s-1)/(n-1) where it has s.
    """
    constants = constants_of(size, rate)
    return abs(math.log1p(float(constants.shrinkage * (size - 1) / (constants.moved * rarest)))) / 2


Integers = NDArray[np.int64]

LOOKED_AT = 201
"""Pairs of which the median is the typical one."""

_MOST_PAIR_KINDS = 2000
"""Kinds of strata, by the rates of their records, up to which each is looked at."""
_MOST_CANDIDATES = 1000
_MOST_STRATA = 20_000
"""Strata in which the most and the least exposed pairs are looked for; of more, every second or third and so on."""


@confidential
class Cells:
    """The records of strata that a swap can change: one entry for each stratum, held value and swap value.

    Held values include linked rows, and are numbered over all strata, as are swap values.
    """

    stratum: Integers
    held: Integers
    swapped: Integers
    count: Integers
    row: Integers
    """A row of the file that is in the cell, which has its values."""

    @cached_property
    def sizes(self) -> Integers:
        """Records by stratum."""
        return np.bincount(self.stratum, self.count).astype(np.int64)

    @cached_property
    def sharing_held(self) -> Integers:
        """Records by held value."""
        return np.bincount(self.held, self.count).astype(np.int64)

    @cached_property
    def sharing_swapped(self) -> Integers:
        """Records by swap value."""
        return np.bincount(self.swapped, self.count).astype(np.int64)

    @cached_property
    def _order(self) -> tuple[Integers, NDArray[np.intp]]:
        keys = self.held * (int(self.swapped.max()) + 1) + self.swapped
        order = np.argsort(keys)
        return keys[order], order

    def at(self, held: int, swapped: int) -> int:
        """The number of records with these values."""
        keys, order = self._order
        wanted = held * (int(self.swapped.max()) + 1) + swapped
        found = int(np.searchsorted(keys, wanted))
        return int(self.count[order[found]]) if found < len(keys) and keys[found] == wanted else 0

    def strata(self) -> Iterator[slice]:
        """The entries of each stratum; they stand together."""
        starts = np.flatnonzero(np.append(True, np.diff(self.stratum) > 0))
        for start, end in itertools.pairwise([*starts.tolist(), len(self.stratum)]):
            yield slice(start, end)


class ReleasedPairs:
    """The pairs of records of a swap's release, read from its folder."""

    def __init__(self, release: ReleaseFolder) -> None:
        self.plan = SwapPlan.from_published(release.certificate["plan"])
        self._data = read_files(release, self.plan).data
        self.hold, self.main, self.table = self._data.held, self._data.table, self._data.counted
        self._strata = self._data.strata
        self._swapped = group(self.table.pick([*stratum_columns(self.plan), *self.plan.swap]), self.main.rows)

    def __repr__(self) -> str:
        return f"<ReleasedPairs: {self.main.rows:,} released records>"

    @cached_property
    def cells(self) -> Cells:
        """The cells of the strata that a swap can change."""
        parts = [*self.main.pick([*self.plan.match, *self.hold]), *classes_of(self._data)]
        return self._cells(group(parts, self.main.rows))

    def _cells(self, held: Groups) -> Cells:
        both = group([_numbers(self._strata), _numbers(held), _numbers(self._swapped)], self.main.rows)
        row = both.members()
        stratum, kind, place = (one.ids[row].astype(np.int64) for one in (self._strata, held, self._swapped))
        varies = np.ones(self._strata.count, dtype=np.bool_)
        for values in (kind, place):
            first = np.unique(values, return_index=True)[1]  # each value belongs to one stratum
            varies &= np.bincount(stratum[first], minlength=self._strata.count) > 1
        kept = varies[stratum]
        return Cells(stratum[kept], kind[kept], place[kept], both.sizes()[kept], row[kept])

    @cached_property
    def sizes(self) -> Integers:
        """The sizes of the strata that a swap can change."""
        sizes = self.cells.sizes
        return sizes[sizes > 0]

    @cached_property
    def rates(self) -> RatesByStratum | None:
        """How many records of each stratum have which rate; None where all have one."""
        by_record = rates_of_dataset(self._data)
        return by_record.by_stratum(self._strata) if by_record else None

    @cached_property
    def worst(self) -> PowerCurve | None:
        """The greatest power in the worst file with these strata; None where nobody knows."""
        if self.rates is None:
            return swap_power_curve(np.unique(self.sizes).tolist(), one_rate(self.plan))
        changeable = np.unique(self.cells.stratum)
        kinds = np.unique(self.rates.counts[changeable], axis=0)
        if len(kinds) <= _MOST_PAIR_KINDS:
            return swap_rates_power_curve(_by_rate(self.rates.rates, counts) for counts in kinds.tolist())
        used = [rate for rate, many in zip(self.rates.rates, kinds.sum(axis=0).tolist(), strict=True) if many]
        if 2 * max(used) > 1:
            return None
        # Where both records move, the other file moves no more: the two laws overlap by that much at least.
        overlap = float(min(used)) ** 2
        return PowerCurve(((0, 1 - overlap), (overlap, 1), (1, 1)))

    def exposure(self, named: Sequence[str] = (), level: float = 0.05) -> SwapExposure | None:
        """How well exchanged pairs can be noticed, with the pairs that are ``named``."""
        if len(self.cells.count) == 0 or self.plan.rate in (0, 1) or self.worst is None:
            if named:
                raise errors.bad_pair(named[0], "nothing is known about pairs of this release")
            return None
        unique = self.cells.sharing_held[self.cells.held] == 1
        # Later rounds are computed from the output of the first, so that its bound holds; the law of a pair is another.
        plain_rate = None if self.plan.rounds else self.plan.rate
        if plain_rate is None and named:
            raise errors.bad_pair(named[0], "pairs are computed where all records have one rate, in one round")
        found = SwapExposure(
            self.worst,
            plain_rate,
            int(self.sizes.max()),
            strata=len(self.sizes),
            smallest=int(self.sizes.min()),
            records=self.main.rows,
            uniques=int(self.cells.count[unique].sum()),
        )
        if plain_rate is None:
            return found
        most, least, real = self._unique_pairs(plain_rate, level)
        return replace(
            found,
            most=most,
            least=least,
            real=real,
            typical=self._typical(plain_rate, level),
            named=tuple(self._named(text, plain_rate) for text in named),
            loss=exact_loss_of(self.cells, plain_rate),
        )

    # -- two records that nobody equals ----------------------------------------------------------------------

    def _unique_pairs(self, rate: Fraction, level: float) -> tuple[SwapPair, SwapPair, bool]:
        """Of two records that nobody equals in what is held, the most and the least exposed; and whether a stratum has
        two such records."""
        rarest: dict[tuple[int, int, int], tuple[int, int]] = {}
        commonest: dict[tuple[int, int, int], tuple[int, int]] = {}
        strata = list(self.cells.strata())
        alone = np.bincount(self.cells.stratum, self.cells.sharing_held[self.cells.held] == 1)
        real = [part for part in strata if alone[self.cells.stratum[part.start]] >= 2]
        looked = real or strata
        for part in looked[:: -(-len(looked) // _MOST_STRATA)]:
            size = int(self.cells.count[part].sum())
            places, first = np.unique(self.cells.swapped[part], return_index=True)
            counts = self.cells.sharing_swapped[places]
            order = np.argsort(counts, kind="stable")
            for (one, two), kept in (((order[0], order[1]), rarest), ((order[-2], order[-1]), commonest)):
                rows = (int(self.cells.row[part][first[one]]), int(self.cells.row[part][first[two]]))
                kept.setdefault((size, int(counts[one]), int(counts[two])), rows)
        most = self._extreme(rarest, rate, level, largest=True)
        return most, self._extreme(commonest, rate, level, largest=False), bool(real)

    def _extreme(
        self, kinds: Mapping[tuple[int, int, int], tuple[int, int]], rate: Fraction, level: float, largest: bool
    ) -> SwapPair:
        # Where there are very many kinds, those of rare values are noticed most and those of common values least.
        sign = 1 if largest else -1
        chosen = sorted(kinds, key=lambda one: (sign * (one[1] + one[2]) / one[0], one))[:_MOST_CANDIDATES]
        powers = [sign * float(pair_power_curve(n, rate, own, other).power(level)) for n, own, other in chosen]
        at = chosen[int(np.argmax(powers))]
        rows = kinds[at]
        return self._unique_pair(at[0], rate, at[1:], self._who(rows, self.plan.swap))

    def _unique_pair(self, size: int, rate: Fraction, swapped: tuple[int, int], words: str) -> SwapPair:
        assert self.worst is not None
        first, second = pair_outcomes(size, rate, *swapped)
        odds = float(first[0, 1] / second[0, 1]) if second[0, 1] > 0 else math.inf
        curve = pair_power_curve(size, rate, *swapped)
        return SwapPair(words, curve, TWO_RECORDS, self.worst, size, (1, 1), swapped, odds)

    # -- pairs as they stand ---------------------------------------------------------------------------------

    def _typical(self, rate: Fraction, level: float) -> SwapPair | None:
        """The median, by power, of pairs at equal steps through the file."""
        cells, ends = self.cells, np.cumsum(self.cells.count)
        total = int(ends[-1])
        begins = {int(cells.stratum[part.start]): part for part in cells.strata()}
        looked = []
        for step in range(LOOKED_AT):
            at = int(np.searchsorted(ends, (2 * step + 1) * total // (2 * LOOKED_AT), side="right"))
            other = self._partner(at, begins[int(cells.stratum[at])], step)
            if other is not None:
                looked.append(self._standing(cells, at, other, rate, self.plan.swap))
        looked.sort(key=lambda pair: pair.power(level))
        return looked[len(looked) // 2] if looked else None

    def _partner(self, at: int, part: slice, step: int) -> int | None:
        """A cell of the stratum that differs from another in held and swap value, by a record at some distance."""
        cells = self.cells
        differs = (cells.held[part] != cells.held[at]) & (cells.swapped[part] != cells.swapped[at])
        counts = np.where(differs, cells.count[part], 0)
        if not counts.any():
            return None
        ends = np.cumsum(counts)
        wanted = (step * 79 % LOOKED_AT * 2 + 1) * int(ends[-1]) // (2 * LOOKED_AT)
        return int(part.start) + int(np.searchsorted(ends, wanted, side="right"))

    def _standing(self, cells: Cells, one: int, two: int, rate: Fraction, columns: Sequence[str]) -> SwapPair:
        assert self.worst is not None
        h, g = int(cells.held[one]), int(cells.held[two])
        s, t = int(cells.swapped[one]), int(cells.swapped[two])
        size = int(cells.sizes[cells.stratum[one]])
        held = int(cells.sharing_held[h]), int(cells.sharing_held[g])
        swapped = int(cells.sharing_swapped[s]), int(cells.sharing_swapped[t])
        words = self._who((int(cells.row[one]), int(cells.row[two])), columns)
        if held == (1, 1):
            return self._unique_pair(size, rate, swapped, words)
        four = np.array([[cells.at(h, s), cells.at(h, t)], [cells.at(g, s), cells.at(g, t)]], dtype=np.float64)
        mu = separation(size, rate, held, swapped, four)
        return SwapPair(words, GaussianCurve(mu), NORMAL, self.worst, size, held, swapped)

    def _who(self, rows: tuple[int, int], columns: Sequence[str]) -> str:
        """The two records by some of their values, and their stratum."""
        one, two = ([_value(self.main, name, row) for name in columns] for row in rows)
        shared = [f"{name} {_value(self.table, name, rows[0])}" for name in stratum_columns(self.plan)]
        within = f" among records of {', '.join(shared)}" if shared else ""
        return plain(f"{', '.join(columns)} {', '.join(one)} and {', '.join(two)}{within}", 200)

    # -- pairs that are named --------------------------------------------------------------------------------

    def _named(self, text: str, rate: Fraction) -> SwapPair:
        first, second = _read_pair(text)
        match, swap = list(self.plan.match), list(self.plan.swap)
        known = {*match, *swap, *self.hold}
        for column in (name for one in (first, second) for name in one):
            if column not in known:
                raise errors.bad_pair(text, f"the release has no column {plain(column, 60)!r} that a pair can name")
        second = {**{name: first[name] for name in match if name in first}, **second}
        first = {**{name: second[name] for name in match if name in second}, **first}
        for name in (*match, *swap):
            if name not in first or name not in second:
                raise errors.bad_pair(text, f"it does not say the value of {name!r} for both records")
        held = [name for name in self.hold if name in first or name in second]
        if any(name not in one for name in held for one in (first, second)):
            raise errors.bad_pair(text, "the two records name different held columns")
        fine = [name for name in match if name not in stratum_columns(self.plan)]
        rows = self._row(text, first, [*match, *swap, *held]), self._row(text, second, [*match, *swap, *held])
        if self._strata.ids[rows[0]] != self._strata.ids[rows[1]]:
            raise errors.bad_pair(text, "the two records are not in one stratum, so their values are never exchanged")
        cells = self._cells(group(self.table.pick([*stratum_columns(self.plan), *fine, *held]), self.main.rows))
        whole = self.cells if not held else cells
        where = [self._entry(whole, row, [*fine, *held]) for row in rows]
        if None in where or self._swapped.ids[rows[0]] == self._swapped.ids[rows[1]]:
            raise errors.bad_pair(text, "the two records must differ in the swapped columns, and in what is held")
        one, two = (int(at) for at in where if at is not None)
        if held:
            if whole.held[one] == whole.held[two]:
                raise errors.bad_pair(text, "the two records have the same held values, so an exchange changes nothing")
            return self._standing(whole, one, two, rate, [*swap, *held])
        swapped = (int(whole.sharing_swapped[whole.swapped[one]]), int(whole.sharing_swapped[whole.swapped[two]]))
        return self._unique_pair(int(whole.sizes[whole.stratum[one]]), rate, swapped, self._who(rows, swap))

    def _row(self, text: str, wanted: Mapping[str, str], columns: Sequence[str]) -> int:
        """A row that has these values."""
        fits = np.ones(self.main.rows, dtype=np.bool_)
        for name in columns:
            has = np.array([value == wanted[name] for value in self.main[name].texts()], dtype=np.bool_)
            fits &= has[self.main[name].codes]
        rows = np.flatnonzero(fits)
        if len(rows) == 0:
            said = ", ".join(f"{name}={wanted[name]}" for name in columns)
            raise errors.bad_pair(text, f"the release has no record with {plain(said, 120)}")
        return int(rows[0])

    def _entry(self, cells: Cells, row: int, columns: Sequence[str]) -> int | None:
        """The cell of a row, or one with its swap values and these columns."""
        same = (cells.stratum == int(self._strata.ids[row])) & (cells.swapped == int(self._swapped.ids[row]))
        found = (at for at in np.flatnonzero(same).tolist() if self._alike(columns, int(cells.row[at]), row))
        return next(found, None)

    def _alike(self, columns: Sequence[str], one: int, two: int) -> bool:
        return all(self.main[name].codes[one] == self.main[name].codes[two] for name in columns)


def separation(
    size: int, rate: Fraction, held: tuple[int, int], swapped: tuple[int, int], four: NDArray[np.float64]
) -> float:
    """How far apart the two files are by the four cells that an exchange changes, in standard deviations.

    The cells are [held value of the first, of the second] by [swap value of the first, of the second]. Their means
    differ by the shrinkage, up and down, and their exact covariances are those of the swap; the best linear test has
    the power of two normal laws at this distance.
    """
    law = constants_of(size, rate)
    whole = np.zeros((3, 3))  # held and swap values of the first record, of the second, and all others
    whole[:2, :2] = four
    whole[:2, 2] = np.array(held) - four.sum(axis=1)
    whole[2, :2] = np.array(swapped) - four.sum(axis=0)
    whole[2, 2] = size - whole.sum()
    u = np.repeat(np.eye(3)[:2] - np.array(held)[:, None] / size, 2, axis=0)  # centred scores of the four cells
    v = np.tile(np.eye(3)[:2] - np.array(swapped)[:, None] / size, (2, 1))
    cross = u @ whole @ v.T
    own = np.diag(cross)
    covariance = (
        law.a4 * np.einsum("ix,jx,xy,iy,jy->ij", u, u, whole, v, v)
        + law.a1 * np.outer(own, own)
        + law.a2 * cross * cross.T
        + law.a3 * ((u * whole.sum(axis=1)) @ u.T) * ((v * whole.sum(axis=0)) @ v.T)
    )
    shift = law.shrinkage * np.array([1.0, -1.0, -1.0, 1.0])
    squared = float(shift @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ shift)
    return math.sqrt(max(0.0, squared))


# -- helpers -------------------------------------------------------------------------------------------------


def _numbers(groups: Groups) -> Column:
    return anonymous(groups.ids, groups.count)


def _by_rate(rates: Sequence[Fraction], counts: Sequence[int]) -> dict[Fraction, int]:
    found: dict[Fraction, int] = {}
    for rate, many in zip(rates, counts, strict=True):
        found[rate] = found.get(rate, 0) + many
    return found


def _value(table: Table, name: str, row: int) -> str:
    column = table[name]
    text = column.decode(column.codes[row : row + 1]).to_pylist()[0]
    return "(empty)" if text is None else str(text)


def _read_pair(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """``county=A,tenure=own,size=2;county=B,tenure=rent`` as the values of two records."""
    sides = [side for side in text.split(";") if side.strip()]
    read = []
    for side in sides:
        parts = [part.partition("=") for part in side.split(",")]
        if any(not sign or not name.strip() for name, sign, _ in parts):
            raise errors.bad_pair(text, "it cannot be read")
        read.append({name.strip(): value.strip() for name, _, value in parts})
    if len(read) != 2:
        raise errors.bad_pair(text, "it must name two records")
    return read[0], read[1]
