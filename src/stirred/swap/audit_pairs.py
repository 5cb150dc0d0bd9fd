"""Worst pairs for a swap: files of equal strata, in each of which two records have exchanged their swap values.

Two files that differ by one exchange share all invariants and are two records apart, the least distance there is in a
universe of a swap (Lemma B.3.4), so Theorem 3.2.4 bounds their likelihood ratio by exp(2 epsilon). Strata are
independent of each other, hence each is a part of its own (:mod:`stirred.releases.mechanism`).

All values are whole numbers without a meaning: the number of the stratum, of the kind of held values, and of the swap
value. Records 0 and 1 of a stratum exchange.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.mechanism import AuditPair
from stirred.spec import Specification
from stirred.swap.data.counting import count_margins, rates_of_dataset, strata_of_dataset
from stirred.swap.data.dataset import load
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import specify
from stirred.swap.plan.sections import MAIN

RECORDS = "records"
"""What the main table is called among the tables of a program."""
ROWS = 20_000
"""Records of one input, about."""
_LARGEST = 1_000
_FIRST_STRATUM = 1_000_001
"""Numbers of strata are far from the values that rules of a plan may name."""

Integers = NDArray[np.int64]
Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Stratum:
    """The records of one stratum in its first form: kinds of held values, and swap values.

    In the second form, the first two records have each other's swap values.
    """

    name: str
    words: str
    held: tuple[int, ...]
    swapped: tuple[int, ...]
    told_by_linked: bool = False
    """Whether linked rows, and not the held columns of the record itself, tell what kind a record is."""

    @property
    def exchanged(self) -> tuple[int, ...]:
        """The swap values of the second form."""
        first, second, *others = self.swapped
        return (second, first, *others)


def strata_for(plan: SwapPlan) -> list[Stratum]:
    """The strata on which a plan is tried, the smallest first."""
    rate = min(plan.every_rate)
    typical = int(min(_LARGEST, max(3, round(1 / rate)))) if rate else 3
    large = int(min(_LARGEST, max(50, 10 * typical)))
    found = [
        Stratum("smallest-stratum", "two records alone in their stratum exchange their swap values", (0, 1), (0, 1)),
        _among_others("typical-stratum", typical, "of which about one is selected"),
        _among_others("large-stratum", large, "of which several are selected"),
        Stratum(
            "unique-records",
            f"two records whose held and swap values nobody else among {typical + 4} has exchange their swap values",
            (0, 1, *[2] * (typical + 2)),
            (0, 1, *(2 + number % 2 for number in range(typical + 2))),
        ),
        Stratum(
            "shared-held-values",
            "two of six records exchange their swap values, and each has the held values of two others",
            (0, 1, 0, 0, 1, 1),
            (0, 1, 0, 1, 1, 0),
        ),
    ]
    if not plan.hold:
        found = [replace(one, told_by_linked=True) for one in found]
    elif plan.linked:
        words = "two of three records that differ in their linked rows alone exchange their swap values"
        found.append(Stratum("linked-rows", words, (0, 1, 2), (0, 1, 0), told_by_linked=True))
    return found


def _among_others(name: str, size: int, remark: str) -> Stratum:
    """Two records among others, no two of which have both the same held and the same swap values."""
    rows = max(1, math.isqrt(size - 2))
    others = range(size - 2)
    return Stratum(
        name,
        f"two of {size:,} different records of a stratum, {remark}, exchange their swap values",
        (0, 1, *(2 + one % rows for one in others)),
        (0, 1, *(2 + one // rows for one in others)),
    )


def audit_pairs(plan: SwapPlan) -> list[AuditPair]:
    """Pairs of files for a plan, each with the guarantee that the plan has on them."""
    if plan.flat is not None:
        raise errors.not_audited("A plan with a flat file", "records and their rows would have to be told apart again")
    return [_pair(plan, one) for one in strata_for(plan)]


def _pair(plan: SwapPlan, stratum: Stratum) -> AuditPair:
    parts = max(1, ROWS // len(stratum.held)) if plan.match else 1
    made = Made(plan, stratum, parts)
    return AuditPair(
        stratum.name,
        stratum.words,
        "the swap values of the records that have the held values of the two",
        2,
        parts,
        _specification(plan, made.tables([False] * parts)),
        made.tables,
        made.outcomes,
    )


def _specification(plan: SwapPlan, tables: Tables) -> Specification:
    """The guarantee of a plan on a file. It is a function of the invariants, so the same for every exchange."""
    dataset = load(plan, {MAIN if name == RECORDS else name: frame for name, frame in tables.items()})
    strata = strata_of_dataset(dataset, count_margins(dataset))
    rates = rates_of_dataset(dataset)
    by_stratum = rates.by_stratum(dataset.strata) if rates else None
    return specify(plan, dataset.held, dataset.linked_columns, strata, None, rates=by_stratum)


def _held(hold: str | tuple[str, ...], taken: Sequence[str | None]) -> tuple[str, ...]:
    """Held columns as a plan names them, or one with a free name."""
    if not isinstance(hold, str):
        return hold
    return (next(name for name in ("held", "held_value", "held_value_2") if name not in taken),)


@dataclass(frozen=True, eq=False)
class Made:
    """Files of equal strata for a plan, and how outputs of a program are read."""

    plan: SwapPlan
    stratum: Stratum
    parts: int

    @property
    def held(self) -> tuple[str, ...]:
        """The held columns of the main table."""
        plan = self.plan
        return _held(plan.hold, (*plan.match, *plan.swap, *plan.drop, plan.id))

    def linked_held(self, number: int) -> tuple[str, ...]:
        """The held columns of a linked table."""
        entry = self.plan.linked[number]
        return _held(entry.hold, (entry.link, entry.id, *entry.drop, *entry.copies, *self.plan.swap))

    def tables(self, coins: Sequence[bool]) -> dict[str, pl.DataFrame]:
        """The file in which these strata are in their second form, and its linked tables."""
        plan, stratum = self.plan, self.stratum
        size = len(stratum.held)
        records = size * self.parts
        kind = np.tile(np.array(stratum.held, dtype=np.int64), self.parts)
        both = [np.tile(np.array(one, dtype=np.int64), self.parts) for one in (stratum.swapped, stratum.exchanged)]
        swapped = np.where(np.repeat(np.array(coins, dtype=np.bool_), size), both[1], both[0])
        number = _FIRST_STRATUM + np.repeat(np.arange(self.parts, dtype=np.int64), size)
        same = np.zeros(records, dtype=np.int64)
        shown = same if stratum.told_by_linked else kind
        columns: dict[str, Integers] = {plan.id: np.arange(1, records + 1)} if plan.id else {}
        columns |= {name: number if place == 0 else same for place, name in enumerate(plan.match)}
        columns |= dict.fromkeys(plan.swap, swapped) | dict.fromkeys(self.held, shown) | dict.fromkeys(plan.drop, same)
        return {RECORDS: pl.DataFrame(columns)} | {
            entry.name: self._linked(at, kind, swapped) for at, entry in enumerate(plan.linked)
        }

    def _linked(self, number: int, kind: Integers, swapped: Integers) -> pl.DataFrame:
        """A row for each record."""
        entry, same = self.plan.linked[number], np.zeros(len(kind), dtype=np.int64)
        columns: dict[str, Integers] = {entry.link: np.arange(1, len(kind) + 1)}
        columns |= {entry.id: np.arange(1, len(kind) + 1)} if entry.id else {}
        columns |= dict.fromkeys(self.linked_held(number), kind) | dict.fromkeys(entry.drop, same)
        columns |= dict.fromkeys(entry.copies, swapped)
        return pl.DataFrame(columns)

    def outcomes(self, made: Tables) -> Sequence[Hashable]:
        """For each stratum, how many records of the first and of the second kind have the first, the second and
        another swap value."""
        frame = self._with_kind(made)
        value = pl.col(self.plan.swap[0]).cast(pl.Int64, strict=False).fill_null(2).clip(0, 2)
        counted = (
            frame.with_columns(value.alias("_value"), self._part().alias("_part"))
            .filter(pl.col("_kind").is_in([0, 1]), pl.col("_part").is_between(0, self.parts - 1))
            .group_by("_part", (3 * pl.col("_kind") + pl.col("_value")).alias("_cell"))
            .len()
        )
        counts = np.zeros((self.parts, 6), dtype=np.int64)
        counts[counted["_part"].to_numpy(), counted["_cell"].to_numpy()] = counted["len"].to_numpy()
        return [tuple(row) for row in counts.tolist()]

    def _part(self) -> pl.Expr:
        if not self.plan.match:
            return pl.lit(0, pl.Int64)
        return pl.col(self.plan.match[0]).cast(pl.Int64, strict=False) - _FIRST_STRATUM

    def _with_kind(self, made: Tables) -> pl.DataFrame:
        """The released records with the kind of each, told by its held values or by those of its linked rows."""
        records = made[RECORDS]
        if not self.stratum.told_by_linked:
            return records.with_columns(pl.col(self.held[0]).cast(pl.Int64, strict=False).alias("_kind"))
        number = next(at for at in range(len(self.plan.linked)) if self.linked_held(at))
        entry, own = self.plan.linked[number], self.plan.id
        assert own is not None  # of every plan with linked tables
        told = made[entry.name].select(
            pl.col(entry.link).cast(pl.String).alias("_record"),
            pl.col(self.linked_held(number)[0]).cast(pl.Int64, strict=False).alias("_kind"),
        )
        return records.with_columns(pl.col(own).cast(pl.String).alias("_record")).join(
            told.unique("_record"), on="_record", how="left"
        )
