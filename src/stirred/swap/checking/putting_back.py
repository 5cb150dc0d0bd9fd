"""How many changed records anyone can put back from the released rows alone, at least.

A group of rows that agree on some columns has unknown shares of swap values before the swap. They are taken as drawn
from a Dirichlet law around the stratum's shares q, with a concentration alpha that is itself drawn: small where groups
are pure (a household lives in one place), large where they are mixed. How often which alpha occurs is estimated from
all groups of like size by maximum likelihood. A row i keeps its value with probability 1 - p_i and else shows one drawn
from q (the law of a swap in a large stratum), so for a group with released values y, with c_v rows of value v and
rising factorials x^(m) = x (x+1) ... (x+m-1),

    P(y)          = sum_m (f_1 * ... * f_r)(m) / alpha^(m),            f_v(m) = [z^m] prod_i ((1-p_i) z + p_i q_v)
    P(s_i = a, y) = p_i q_b sum_m (f_1 * ... * f_r)(m) / alpha^(m+1),           times (alpha q_v)^(m),

the second without row i and with f_a(m) times (alpha q_a + m); * is convolution. *Proof.* Condition on which rows kept
their value: these are a sample of a Dirichlet-multinomial law, which is consistent when rows are left out. A row is put
back to the commonest other value of its group where the second is at least 9/10 of the first.

Keep in mind: what is found is a lower bound on what can be done, by these columns and this reasoning. Finding nothing
does not say that nothing can be found. It is computed from what is published, so stating it reveals nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._sentences import sentences_of
from stirred.errors import listed
from stirred.swap.checking.agreeing_columns import Agreeing, Rows, search
from stirred.swap.checking.undoing import LEAST_EXCESS, SURE, Swapped, Undone, gathered
from stirred.swap.data.counting import RecordRates
from stirred.swap.law.moments import moved_by_size, moved_probabilities
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN

_say = sentences_of("swap")
_CONCENTRATIONS = np.array([1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0])
_GATHERED = 1 << 17
"""About how many rows are looked at for one set of columns."""
_LARGEST = 32
"""Larger groups are divided at random."""
_SIZES = np.array([3, 4, 5, 7, 11, 21])
"""Sizes at which another class of groups begins."""
_ROUNDS = 600
"""Steps of the estimation of how often which concentration occurs."""
_ESTIMATED = 1 << 12
"""Groups of a class of sizes from which that is estimated."""
_LOOKED_AT = 3
"""Sets of columns for which the share is computed, of those that agree most."""
FEW_RECORDS = 3
"""Nor do so many records more, in a small file, say that what is stated is wrong."""
PUT_BACK = "put_back"
"""The field of the certificate."""
LEAST = 0.001
"""Shares below this are not stated."""
TOLERANCE = 0.02
"""By so much a recomputed share may differ: sums are added up in another order, and in large files other members of
large groups are looked at."""


@dataclass(frozen=True)
class PutBack:
    """What anyone can put back from released rows, as a release states it."""

    at_least: str
    """The share of changed records, rounded down; "0" where nothing was found."""
    columns: tuple[str, ...] = ()
    table: str = ""
    variables: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Undone | None) -> PutBack:
        """As stated: two digits, rounded down."""
        if found is None or found.recovered < LEAST:
            return cls("0")
        digits = Decimal(repr(float(found.recovered)))
        shown = digits.quantize(Decimal("0.01") if digits >= Decimal("0.1") else Decimal("0.001"), ROUND_FLOOR)
        return cls(str(shown), found.columns, found.table, found.variables)

    @property
    def share(self) -> float:
        """The share as a number."""
        return float(self.at_least)

    def words(self, plan: SwapPlan) -> str:
        """What a reader must know, beside the limit of the plan."""
        if not self.columns:
            return _say("none_put_back")
        allowed = any(name.startswith("undone:") for name in plan.allow)
        return _say(
            "put_back",
            share=100 * self.share,
            where="" if self.table == MAIN else _say("put_back_where", table=self.table),
            columns=listed(self.columns),
            variables=listed(self.variables),
            limit=100 * float(plan.most_recovered),
            allowed=_say("put_back_allowed") if allowed else "",
        )

    def to_fields(self) -> dict[str, Any]:
        """The fields of the certificate."""
        return {
            "at_least": self.at_least,
            "table": self.table,
            "columns": list(self.columns),
            "variables": list(self.variables),
        }

    @classmethod
    def from_fields(cls, fields: object) -> PutBack | None:
        """What a certificate states; None where it does not state it in this form."""
        if not isinstance(fields, Mapping) or set(fields) != {"at_least", "table", "columns", "variables"}:
            return None
        share, table, columns, variables = (fields[name] for name in ("at_least", "table", "columns", "variables"))
        lists = all(
            isinstance(one, list) and all(isinstance(name, str) for name in one) for one in (columns, variables)
        )
        if not lists or not isinstance(share, str) or not isinstance(table, str):
            return None
        try:
            known = 0 <= Decimal(share) <= 1 and str(Decimal(share)) == share
        except ArithmeticError:
            return None
        return cls(share, tuple(columns), table, tuple(variables)) if known else None


def put_back(given: Swapped) -> Undone | None:
    """The most that was found, from released rows; None if no columns were worth a look."""
    found = []
    for rows in given.tables:
        sets = [one for one in search(rows, given.places) if one.excess >= LEAST_EXCESS]
        found += [_recovered(given, rows, one) for one in sets[:_LOOKED_AT]]
    return max(found, key=lambda one: one.recovered, default=None)


def put_back_by(given: Swapped, stated: PutBack) -> Undone | None:
    """What the stated columns let anyone put back; None where the release has no such columns."""
    for rows in given.tables:
        known = rows.table == stated.table and set(stated.columns) <= set(rows.columns)
        if known and stated.columns and stated.variables in given.places.words:
            target = given.places.words.index(stated.variables)
            return _recovered(given, rows, Agreeing(rows.table, stated.columns, target, 0.0))
    return None


def _recovered(given: Swapped, rows: Rows, agreeing: Agreeing) -> Undone:
    target = given.places.targets[agreeing.target]
    moves, shares = _laws(given, target)
    changed = float(np.sum(moves * (1 - shares)))
    members = gathered(rows, agreeing.columns, _GATHERED)
    starts, record = _dealt(members.starts, members.record, target, moves, shares)
    likely = np.zeros((len(starts) - 1, len(_CONCENTRATIONS)))
    _likelihoods(starts, record, target, moves, shares, _CONCENTRATIONS, likely)
    weights = _mixtures(np.diff(starts), likely)
    back = np.zeros(len(target))
    put = _posteriors(starts, record, target, moves, shares, _CONCENTRATIONS, likely, weights, SURE, back)
    right = float(back.sum())
    if rows.record is not None and members.weight > 1:  # records with several rows may stand in several groups
        right = float(np.sum(back / np.maximum(np.bincount(rows.record, minlength=len(target)), 1)))
    return Undone(
        rows.table,
        agreeing.columns,
        given.places.words[agreeing.target],
        min(1.0, right * members.weight / changed) if changed > 0 else 0.0,
        float(back.sum()) / put if put else 0.0,
        changed,
    )


def _laws(given: Swapped, target: NDArray[np.uint32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each record the probability that it moves, and the share of its released value among those it could get."""
    strata = given.strata
    if isinstance(given.rates, RecordRates):
        by_stratum = given.rates.by_stratum(strata)
        moves = moved_probabilities(by_stratum)[strata.ids, given.rates.rule]
        weight = np.array([float(one) for one in given.rates.rates])[given.rates.rule]
    else:
        moves, weight = moved_by_size(strata.sizes(), given.rates)[strata.ids], np.ones(len(target))
    for later in given.plan.rounds:
        moves = 1 - (1 - moves) * (1 - float(later.rate))
    keys = strata.ids.astype(np.uint64) << np.uint64(32) | target
    _, cell = np.unique(keys, return_inverse=True)
    cell = cell.reshape(-1)
    own = np.bincount(cell, weights=weight)[cell]
    every = np.bincount(strata.ids, weights=weight, minlength=strata.count)[strata.ids]
    return moves, np.minimum(1.0, own / every)


def _dealt(
    starts: NDArray[np.int64],
    record: NDArray[np.integer],
    target: NDArray[np.uint32],
    moves: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """Groups with at most so many members: larger ones are dealt like cards, sorted by swap value.

    So each part is made up like its group, whatever the order of rows: parts of sorted rows would agree by that alone.
    """
    sizes = np.diff(starts)
    parts = -(-sizes // _LARGEST)
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((moves[record], shares[record], target[record], group))
    part = (np.arange(len(record)) - starts[group]) % parts[group]
    ends = np.cumsum(np.bincount((np.cumsum(parts) - parts)[group] + part, minlength=int(parts.sum())))
    return np.append(0, ends), record[order[np.lexsort((part, group))]]


def _mixtures(sizes: NDArray[np.int64], likely: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each group the weights of the concentrations in its class of sizes, by maximum likelihood."""
    classes = np.searchsorted(_SIZES, sizes, side="right")
    weights = np.full(likely.shape, 1 / likely.shape[1])
    for one in np.unique(classes):
        rows = likely[classes == one]
        rows = rows[rows.sum(axis=1) > 0]
        rows = rows[:: -(-len(rows) // _ESTIMATED) or 1]
        rows = rows / rows.max(axis=1, keepdims=True) if len(rows) else rows
        mixture = np.full(likely.shape[1], 1 / likely.shape[1])
        for _ in range(_ROUNDS if len(rows) else 0):
            mixture = mixture * (rows.T @ (1 / (rows @ mixture))) / len(rows)
        weights[classes == one] = mixture
    return weights


@kernel
def _times(polynomial, degree, kept, drawn):  # type: ignore[no-untyped-def]
    """Multiply a polynomial in place by (kept z + drawn)."""
    polynomial[degree + 1] = polynomial[degree] * kept
    for power in range(degree, 0, -1):
        polynomial[power] = polynomial[power] * drawn + polynomial[power - 1] * kept
    polynomial[0] *= drawn


@kernel
def _summed(record, start, end, target, moves, shares, alpha, left_out, put_to, work, product, joined):  # type: ignore[no-untyped-def]
    """P(y), or with ``left_out`` the probability that this row had ``put_to`` and the group is as released."""
    product[0] = 1.0
    degree = 0
    for first in range(start, end):
        value = target[record[first]]
        seen = False
        for before in range(start, first):
            if target[record[before]] == value:
                seen = True
                break
        if seen:
            continue
        work[0] = 1.0
        count = 0
        members = 0
        share = 0.0
        for at in range(first, end):
            if target[record[at]] == value:
                share += shares[record[at]]
                members += 1
                if at != left_out:
                    _times(work, count, 1 - moves[record[at]], moves[record[at]] * shares[record[at]])
                    count += 1
        concentration = alpha * max(share / members, 1e-12)
        factor = 1.0
        for power in range(count + 1):
            if power > 0:
                factor *= concentration + power - 1
            work[power] *= factor * ((concentration + power) if left_out >= 0 and value == put_to else 1.0)
        for power in range(degree + count + 1):
            joined[power] = 0.0
        for one in range(degree + 1):
            for other in range(count + 1):
                joined[one + other] += product[one] * work[other]
        degree += count
        for power in range(degree + 1):
            product[power] = joined[power]
    total = 0.0
    rising = alpha if left_out >= 0 else 1.0
    shift = 1 if left_out >= 0 else 0
    for power in range(degree + 1):
        if power > 0:
            rising *= alpha + shift + power - 1
        total += product[power] / rising
    if left_out >= 0:
        total *= moves[record[left_out]] * shares[record[left_out]]
    return total


@kernel
def _likelihoods(starts, record, target, moves, shares, alphas, likely):  # type: ignore[no-untyped-def]
    work, product, joined = np.zeros(_LARGEST + 2), np.zeros(_LARGEST + 2), np.zeros(_LARGEST + 2)
    for number in range(len(starts) - 1):
        start, end = starts[number], starts[number + 1]
        for at in range(len(alphas)):
            likely[number, at] = _summed(
                record, start, end, target, moves, shares, alphas[at], -1, 0, work, product, joined
            )


@kernel
def _posteriors(starts, record, target, moves, shares, alphas, likely, weights, sure, back):  # type: ignore[no-untyped-def]
    """For each record the posterior of what it is put back to, where that is sure; how many are put back."""
    work, product, joined = np.zeros(_LARGEST + 2), np.zeros(_LARGEST + 2), np.zeros(_LARGEST + 2)
    put = 0
    for number in range(len(starts) - 1):
        start, end = starts[number], starts[number + 1]
        whole = 0.0
        for at in range(len(alphas)):
            whole += weights[number, at] * likely[number, at]
        if whole <= 0:
            continue
        for row in range(start, end):
            own = target[record[row]]
            mine = most = 0
            other = own
            for at in range(start, end):
                value = target[record[at]]
                if value == own:
                    mine += 1
                    continue
                count = 0
                for further in range(start, end):
                    if target[record[further]] == value:
                        count += 1
                if count > most:
                    most, other = count, value
            if most < mine or most < 2:
                continue
            moved = 0.0
            for at in range(len(alphas)):
                if weights[number, at] > 1e-6:
                    moved += weights[number, at] * _summed(
                        record, start, end, target, moves, shares, alphas[at], row, other, work, product, joined
                    )
            posterior = moved / whole
            if posterior >= sure:
                put += 1
                back[record[row]] = max(back[record[row]], min(posterior, 1.0))
    return put
