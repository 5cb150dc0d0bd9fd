"""What an attacker believes who knows two published margins and nothing else: in one stratum, and in a file.

Beliefs need a law over the tables that have these margins, and the answer depends on it, so both usual ones are named:

* *hypergeometric*: every assignment of the swapped values to the records is equally likely. It is what is left when a
  swap at a high rate has run its course, and has closed forms;
* *uniform*: every table is equally likely, which makes uneven tables far more likely than chance does.

Uniform answers are exact where the tables are few enough to list. Else two Markov chains walk over the tables (moves of
Diaconis and Sturmfels: two rows, two columns, all four sums kept), one from a table in which half of the records are
sorted and one from a table of chance, and their agreement is stated (split R-hat).

The chains have a generator of their own, seeded by the hash of a plan. It knows nothing of the generator that releases
are drawn from, and is repeatable: nothing drawn here may ever reach a release.

:func:`posterior` is about one stratum, :func:`believe` about a sample of the strata of a file. Which strata are looked
at follows from the hash of a plan and the margins, so whoever holds a release finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._compiled import helper, kernel
from stirred._display import withheld
from stirred._lazy import later
from stirred._threads import thread_pool
from stirred.invariants.revealing import TwoMargins, require_margins
from stirred.tables.groups import mixed

special = later("scipy.special")

Law = Literal["hypergeometric", "uniform"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LISTED = 1 << 22
"""Cells of listed tables, all together, up to which tables are listed."""
SWEEPS = 1_000
"""Draws of each chain, one for as many moves as the table has cells."""
FEWEST_SWEEPS = 50
CONVERGED = 1.1
"""Split R-hat up to which chains are taken to agree."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Beliefs about the table of one stratum, given its margins and a law.

    ``mean`` is the expected count of each cell; ``row_whole`` the probability that all records of a held value have
    this swapped value, ``column_whole`` that all records of a swapped value have this held value, ``empty`` that none
    has both.
    """

    law: Law
    method: Literal["closed form", "listed", "chain"]
    held: Integers
    swapped: Integers
    mean: Floats
    empty: Floats
    row_whole: Floats
    column_whole: Floats
    tables: int | None = None
    """How many tables have these margins, where they were listed."""
    means: Floats | None = None
    """The expected counts as each chain sees them."""
    agreement: float = 1.0
    """Split R-hat of the chains, the worst of four statistics; 1 where nothing was drawn."""

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.agreement <= CONVERGED

    @property
    def guessed(self) -> float:
        """Expected share of records whose swapped value is guessed rightly, by the likeliest for what is held.

        The guesses of one chain are judged by the other: each would find its own too good.
        """
        if self.means is None:
            return float(self.mean.max(axis=1).sum() / self.held.sum())
        rows = np.arange(len(self.held))
        first, second = self.means
        right = second[rows, first.argmax(axis=1)].sum() + first[rows, second.argmax(axis=1)].sum()
        return float(right / 2 / self.held.sum())

    @property
    def whole_rows(self) -> float:
        """Expected share of records that share what is held with others, all of which have one swapped value."""
        several = self.held > 1
        return float((self.held * self.row_whole.sum(axis=1))[several].sum() / self.held.sum())

    @property
    def whole_columns(self) -> float:
        """Expected share of records that share the swapped value with others, all of which have one held value."""
        several = self.swapped > 1
        return float((self.swapped * self.column_whole.sum(axis=0))[several].sum() / self.held.sum())


def posterior(
    held: ArrayLike, swapped: ArrayLike, law: Law, plan_hash: str = "", sweeps: int = SWEEPS, listing: bool = True
) -> Posterior:
    """Beliefs about the table of one stratum with these margins.

    Exact for the hypergeometric law, and for the uniform one where all tables with these margins can be listed (unless
    ``listing`` is off); else two chains of so many ``sweeps`` are run, seeded by the hash of a plan.

    >>> small = posterior([10, 10], [10, 10], "uniform")
    >>> small.tables, round(float(small.empty[0, 0]), 7)
    (11, 0.0909091)
    >>> float(posterior([10, 10], [10, 10], "hypergeometric").empty[0, 0])
    5.4125...e-06
    """
    rows, columns = require_margins(held, swapped)
    listing = listing or min(len(rows), len(columns)) == 1  # one table only, and no move
    if law == "hypergeometric" and listing:
        return _closed(rows, columns)
    if listing and (found := _listed(rows, columns)) is not None:
        return found
    return _walked(rows, columns, law, plan_hash, sweeps)


# -- exact ---------------------------------------------------------------------------------------------------


def _closed(held: Integers, swapped: Integers) -> Posterior:
    """The hypergeometric law: a cell is the number of a held value's records among so many drawn for a swapped one."""
    n = int(held.sum())
    a, b = held[:, None], swapped[None, :]
    logs = _log_factorials(n)

    def chance(kept: Integers, wanted: Integers) -> Floats:
        """That ``wanted`` records drawn from n all lie among ``kept``."""
        possible = kept >= wanted
        left = np.where(possible, kept - wanted, 0)
        value = np.exp(logs[kept] - logs[left] - logs[n] + logs[n - wanted])
        return np.asarray(np.where(possible, value, 0.0))

    return Posterior(
        "hypergeometric", "closed form", held, swapped, a * b / n, chance(n - b, a), chance(b, a), chance(a, b)
    )


def _log_factorials(n: int) -> Floats:
    logs: Floats = special.gammaln(np.arange(1.0, n + 2))
    return logs


def _listed(held: Integers, swapped: Integers) -> Posterior | None:
    """The uniform law by listing every table; None if they are too many."""
    shape = (len(held), len(swapped))
    sums = np.zeros((4, *shape))
    most = max(MOST_LISTED // (shape[0] * shape[1]), 1)
    count = int(_list_tables(held, swapped, np.zeros(shape, dtype=np.int64), sums, most))
    if count < 0:
        return None
    mean, empty, row, column = sums / count
    return Posterior("uniform", "listed", held, swapped, mean, empty, row, column, tables=count)


@helper
def _tally(table, held, swapped, sums):  # type: ignore[no-untyped-def]
    for i in range(len(held)):
        for j in range(len(swapped)):
            x = table[i, j]
            sums[0, i, j] += x
            sums[1, i, j] += x == 0
            sums[2, i, j] += x == held[i]
            sums[3, i, j] += x == swapped[j]


@kernel
def _list_tables(held, swapped, table, sums, most):  # type: ignore[no-untyped-def]
    """Go through all tables, cell by cell, row by row; how many there are, or -1 once they exceed ``most``.

    The last cell of a row, and all cells of the last row, follow from the others. A cell gets no less than what the
    columns after it cannot take, so that every choice leads to a table.
    """
    rows, columns = len(held), len(swapped)
    row_left, column_left = held.copy(), swapped.copy()
    count = 0
    at, entering = 0, True
    last = rows * columns
    while at >= 0:
        if at == last:
            count += 1
            if count > most:
                return -1
            _tally(table, held, swapped, sums)
            at -= 1
            entering = False
            continue
        i, j = at // columns, at % columns
        after = 0  # what the columns after this one can still take
        for k in range(j + 1, columns):
            after += column_left[k]
        if entering:
            value = max(0, row_left[i] - after)
            if i == rows - 1:
                value = column_left[j]
        else:
            row_left[i] += table[i, j]
            column_left[j] += table[i, j]
            value = table[i, j] + 1
            if i == rows - 1:
                value = column_left[j] + 1  # it had one choice only
        if value <= min(row_left[i], column_left[j]):
            table[i, j] = value
            row_left[i] -= value
            column_left[j] -= value
            at += 1
            entering = True
        else:
            at -= 1
            entering = False
    return count


# -- by chains -----------------------------------------------------------------------------------------------


def _walked(held: Integers, swapped: Integers, law: Law, plan_hash: str, sweeps: int) -> Posterior:
    shape = (len(held), len(swapped))
    state = np.array([int(plan_hash[:16] or "0", 16)], dtype=np.uint64)
    starts = []
    for shuffled in (slice(0, None, 2), slice(0, None)):  # half of the records, and all
        values = np.repeat(np.arange(shape[1]), swapped)
        part = values[shuffled].copy()
        _shuffle(part, state)
        values[shuffled] = part
        starts.append(np.zeros(shape, dtype=np.int64))
        _fill(held, values, starts[-1])
    sums = np.zeros((2, 4, *shape))
    traces = np.zeros((2, 4, sweeps))
    logs = _log_factorials(int(held.sum())) if law == "hypergeometric" else np.zeros(1)
    for table, counted, trace in zip(starts, sums, traces, strict=True):
        _walk(table, held, swapped, logs, max(shape[0], 64), sweeps, state, counted, trace)
    found = _shared(sums / (sweeps - sweeps // 2), held, swapped)
    mean, empty, row, column = found.mean(axis=0)
    worst = max(split_agreement(traces[:, one, sweeps // 2 :]) for one in range(4))
    return Posterior(law, "chain", held, swapped, mean, empty, row, column, means=found[:, 0], agreement=worst)


def _shared(found: Floats, held: Integers, swapped: Integers) -> Floats:
    """Averages over cells that have the same sums, since a law that knows sums alone treats them alike."""
    rows, row = np.unique(held, return_inverse=True)
    columns, column = np.unique(swapped, return_inverse=True)
    cell = row[:, None] * len(columns) + column[None, :]
    kinds = len(rows) * len(columns)
    number = np.bincount(cell.ravel(), minlength=kinds)
    flat = found.reshape(-1, found.shape[-2] * found.shape[-1])
    averages = [np.bincount(cell.ravel(), one, kinds) / number for one in flat]
    return np.asarray(np.array(averages)[:, cell]).reshape(found.shape)


def split_agreement(traces: Floats) -> float:
    """Split R-hat of several chains: how much wider all their halves together are than each half by itself.

    1 where they agree; infinite where each half stands still at a value of its own.

    >>> split_agreement(np.array([[0.0, 1.0] * 50, [0.0, 1.0] * 50])) < 1.01
    True
    >>> split_agreement(np.array([[0.0] * 9, [1.0] * 9]))
    inf
    """
    half = traces.shape[1] // 2
    if half < 2:
        return float("inf")  # nothing can be said
    parts = np.concatenate([traces[:, :half], traces[:, half : 2 * half]])
    within = float(parts.var(axis=1, ddof=1).mean())
    between = float(parts.mean(axis=1).var(ddof=1))
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((half - 1) / half + between / within))


@helper
def _next(state):  # type: ignore[no-untyped-def]
    """The next 64 bits of splitmix64, a generator that nothing but these chains uses."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return mixed(state[0])


@helper
def _below(bound, state):  # type: ignore[no-untyped-def]
    """An integer below ``bound``, uneven by less than 2^-32, which no report shows."""
    return np.int64(((_next(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def _shuffle(values, state):  # type: ignore[no-untyped-def]
    for i in range(len(values) - 1, 0, -1):
        j = _below(i + 1, state)
        values[i], values[j] = values[j], values[i]


@kernel
def _fill(held, values, table):  # type: ignore[no-untyped-def]
    """The table in which the records, in the order of what is held, have these swapped values."""
    at = 0
    for i in range(len(held)):
        for _ in range(held[i]):
            table[i, values[at]] += 1
            at += 1


@kernel
def _walk(table, held, swapped, logs, pairs, sweeps, state, sums, trace):  # type: ignore[no-untyped-def]
    """A chain over the tables with these margins. The first half of the sweeps is not counted.

    A sweep goes through so many ``pairs`` of rows chosen at random, and with each through all pairs of columns that are
    as far apart as was chosen at random. Each move draws four cells anew, with the same sums, evenly among all
    possibilities. The uniform law accepts every move. The hypergeometric one, for which ``logs`` are log factorials,
    accepts it with the ratio of the two tables' weights, and tries one step up or down half of the time.
    """
    rows, columns = len(held), len(swapped)
    weighted = len(logs) > 1
    for sweep in range(sweeps):
        for _ in range(pairs):
            i, k, apart = _below(rows, state), _below(rows - 1, state), 1 + _below(columns - 1, state)
            k += k >= i
            for j in range(columns):
                m = j + apart if j + apart < columns else j + apart - columns
                a, b, c, d = table[i, j], table[i, m], table[k, j], table[k, m]
                low, high = -min(a, d), min(b, c)
                if low == high:
                    continue
                if weighted and _next(state) & np.uint64(1):
                    step = np.int64(1) if _next(state) & np.uint64(1) else np.int64(-1)
                    if step < low or step > high:
                        continue
                else:
                    step = low + _below(high - low + 1, state)
                if weighted and step != 0:
                    ratio = logs[a] + logs[b] + logs[c] + logs[d]
                    ratio -= logs[a + step] + logs[b - step] + logs[c - step] + logs[d + step]
                    if ratio < 0 and np.float64(_next(state) >> np.uint64(11)) * 2.0**-53 >= np.exp(ratio):
                        continue
                table[i, j] = a + step
                table[i, m] = b - step
                table[k, j] = c - step
                table[k, m] = d + step
        squares = largest = empty = order = 0.0
        for i in range(rows):
            most = 0
            for j in range(columns):
                x = table[i, j]
                squares += np.float64(x) * x
                empty += x == 0
                most = max(most, x)
                order += np.float64(x) * (2 * i - rows) * (2 * j - columns)  # far from 0 where records are sorted
            largest += most
        trace[0, sweep], trace[1, sweep], trace[2, sweep], trace[3, sweep] = squares, largest, empty, order
        if sweep >= sweeps // 2:
            _tally(table, held, swapped, sums)


POINTS = 12
"""Records at equal distances whose strata an attacker's beliefs are worked out for."""
_MOVES = 1 << 24
"""Moves that each chain may make in one stratum."""
_MOST_RECORDS = 1 << 22
"""Larger strata are left out: a chain starts by shuffling their records."""
_MOST_THREADS = 4
"""Strata looked at side by side: dense tables of large ones take memory."""
LAWS: tuple[Law, ...] = ("hypergeometric", "uniform")


@dataclass(frozen=True)
class Belief:
    """What an attacker believes who knows the published counts alone, under one law over the tables they allow.

    Shares are of records, estimated from the strata of records at equal distances.
    """

    law: str
    guessed_share: float
    """Expected to be guessed rightly, by the likeliest swapped value for what is held."""
    whole_share: float
    """Expected to share what is held with others, all of whom have the same swapped value."""


@dataclass(frozen=True)
class Beliefs:
    """An attacker's beliefs under both laws, in a sample of the strata."""

    strata: int
    """Strata that were looked at,"""
    listed: int
    """of these with all tables listed (uniform law),"""
    drawn: int
    """with tables drawn by Markov chains,"""
    disagreeing: int
    """of which the chains do not agree, so that their numbers are rough,"""
    too_large: int
    """and strata that are too large for this, and left out."""
    laws: tuple[Belief, ...]


def believe(margins: TwoMargins, plan_hash: str) -> Beliefs:
    """An attacker's beliefs in the strata of some records, chosen at equal distances with a start from the plan's hash.

    The strata are a function of the plan and the published counts, and so are the beliefs.
    """
    ends = np.cumsum(margins.sizes)
    start = int(plan_hash[:8], 16) / 2**32
    at = np.minimum(((np.arange(POINTS) + start) / POINTS * ends[-1]).astype(np.int64), ends[-1] - 1)
    chosen, times = np.unique(np.searchsorted(ends, at, side="right"), return_counts=True)

    def of(number: int) -> dict[Law, Posterior] | None:
        held, swapped = margins.stratum(number)
        sweeps = min(SWEEPS, _MOVES // (len(held) * len(swapped)))
        if sweeps < FEWEST_SWEEPS or int(held.sum()) > _MOST_RECORDS:
            return None
        return {law: posterior(held, swapped, law, plan_hash, sweeps) for law in LAWS}

    with thread_pool(_MOST_THREADS) as pool:  # kernels do without the interpreter lock
        believed = list(pool.map(of, chosen.tolist()))
    found = [(many, by_law) for many, by_law in zip(times.tolist(), believed, strict=True) if by_law is not None]
    uniform = [by_law["uniform"] for _, by_law in found]
    return Beliefs(
        len(chosen),
        sum(one.method == "listed" for one in uniform),
        sum(one.method == "chain" for one in uniform),
        sum(not one.converged for one in uniform),
        len(chosen) - len(found),
        tuple(_belief(law, [(many, by_law[law]) for many, by_law in found]) for law in LAWS if found),
    )


def _belief(law: Law, found: Sequence[tuple[int, Posterior]]) -> Belief:
    weight = sum(many for many, _ in found)
    guessed = sum(many * one.guessed for many, one in found)
    whole = sum(many * one.whole_rows for many, one in found)
    return Belief(law, guessed / weight, whole / weight)
