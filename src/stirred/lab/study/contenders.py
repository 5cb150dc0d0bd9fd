"""What stands side by side in a study: a swapping plan, a TopDown plan, or a simulated swapper.

Each says what is known of it without drawing (guarantee, loss, power of the best test, what its published counts
reveal) and can be drawn from as often as wanted. Plans are drawn by the mechanisms themselves, so what is measured is
what would be released. Everything but the specification is confidential.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.invariants import TwoMargins, reveal
from stirred.lab.study.study_data import StudyData
from stirred.lab.study.swappers.permutation_variants import rates_curve
from stirred.lab.study.swappers.simulated import GUARANTEE, NONE, OPEN, PROVED, Swapper
from stirred.loss import swap_power_curve
from stirred.noise import RandomSource
from stirred.releases.plans import Plan
from stirred.semantics.testing import Curve, allowed_power
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.swap.checking.movement import movement_of
from stirred.swap.checking.revealing import alone_in_a_margin, two_margins
from stirred.swap.data.counting import count_margins, one_rate, rates_of_dataset, strata_of_dataset
from stirred.swap.data.dataset import FLAT, Dataset, load
from stirred.swap.drawing import draw as draw_swap
from stirred.swap.law.exposed_pairs import computable, stratum_loss
from stirred.swap.law.permutation import later_rounds
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import specify as specify_swap
from stirred.swap.plan.sections import LinkedTable
from stirred.tables.writing import as_arrow
from stirred.topdown.checking.revealing import alone_in_an_invariant, reveal_topdown
from stirred.topdown.drawing import draw_into, prepare, rows
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify as specify_topdown

FALSE_ALARM = 0.05
"""The false-alarm probability at which the power of tests is told."""
THEOREM, EXACT, UNPROVED, NO_BOUND = "theorem", "exact", "open", "no bound"
"""Where a loss comes from: a theorem bounds it for every file; it was computed for the universe of this file; nobody
has proved a bound; there is none."""
_KINDS = {PROVED: THEOREM, OPEN: UNPROVED, NONE: NO_BOUND}
_MOST_STRATA = 2_000
"""Strata whose exact loss is looked at."""


@dataclass(frozen=True)
class Loss:
    """A privacy loss, and where the number comes from."""

    kind: str
    budget: str
    """What the number is: epsilon or rho."""
    value: float

    @property
    def shown(self) -> str:
        """The number with its name, rounded up."""
        return f"{self.budget} {display(self.value)}"


@dataclass(frozen=True)
class Leakage:
    """What the published counts reveal by themselves, as shares of the records. None where it is not counted."""

    determined: float
    """Records whose place follows from the counts."""
    unique: float
    """Records that stand alone in any count that is published exactly; of several tables, the largest share."""
    guessed: float | None
    """Records whose place is guessed rightly by who guesses the commonest one of those alike."""


@withheld
@dataclass(frozen=True, repr=False)
class Known:
    """What is known of a contender before anything is drawn. Confidential but for the specification."""

    specification: Specification
    losses: tuple[Loss, ...]
    power: float
    """The greatest power of a test between the nearest two files, at a false-alarm probability of .05; 1 if none is
    excluded."""
    leakage: Leakage | None


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """One draw: the released tables by name and, for each column that moves, which records have another value."""

    tables: Mapping[str, pl.DataFrame]
    changed: Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class Contender:
    """What a study asks of everything that it compares; what it answers about data is confidential."""

    name: str
    moves: tuple[str, ...]
    """The columns that records exchange; none where nothing is swapped."""
    known: Callable[[StudyData], Known]
    """What is known without drawing."""
    draws: Callable[[StudyData, int, RandomSource], Iterator[Drawn]]
    """So many independent draws."""


def contender(name: str, one: Plan | Swapper) -> Contender:
    """A plan or a simulated swapper, as a study takes it."""
    if isinstance(one, SwapPlan):
        return Contender(name, one.swap, partial(_known_of_swap, one), partial(_draws_of_swap, one))
    if isinstance(one, TopDownPlan):
        return Contender(name, (), partial(_known_of_topdown, one), partial(_draws_of_topdown, one))
    if isinstance(one, Plan):
        what = errors.study_parameter("mechanism", f"is '{one.mechanism}'", "study plans of swap and topdown")
        raise errors.study_part(name, what)
    return Contender(name, one.places, partial(_known_of_simulator, one), partial(_simulations, one))


# -- a swapping plan -----------------------------------------------------------------------------------------


def _known_of_swap(plan: SwapPlan, data: StudyData) -> Known:
    dataset = load(plan, _tables_of_swap(plan, data))
    margins = count_margins(dataset, prints=False)
    strata = strata_of_dataset(dataset, margins)
    by_record = rates_of_dataset(dataset)
    rates = by_record.by_stratum(dataset.strata) if by_record else None
    movement = movement_of(strata, margins.swapped, rates or one_rate(plan), later_rounds(plan, dataset.counted))
    stated = specify_swap(plan, dataset.held, dataset.linked_columns, strata, movement, rates=rates)
    published = two_margins(dataset)
    losses = [Loss(THEOREM, "epsilon", float(stated.budget.number))]
    if rates is None and not plan.rounds and (exact := exact_loss(published, one_rate(plan))) is not None:
        losses.append(Loss(EXACT, "epsilon", exact))
    changeable = strata.changeable
    if not changeable.any():
        power = FALSE_ALARM
    elif rates is None:
        power = _power(swap_power_curve(np.unique(strata.sizes[changeable]).tolist(), one_rate(plan)))
    else:
        power = _power(rates_curve(rates, changeable))
    return Known(stated, tuple(losses), power, leakage_of(dataset))


def _draws_of_swap(plan: SwapPlan, data: StudyData, number: int, source: RandomSource) -> Iterator[Drawn]:
    tables = _tables_of_swap(plan, data)
    names = {one.name: one.name for one in plan.linked}
    if data.flat is not None and plan.flat is not None:
        names = {data.flat: FLAT}
    for _ in range(number):
        made = draw_swap(plan, tables, source=source)
        changed = {name: made.table[name].codes != made.dataset.table[name].codes for name in plan.swap}
        yield Drawn({data.main: made.frame(), **{name: made.frame(own) for name, own in names.items()}}, changed)


def _tables_of_swap(plan: SwapPlan, data: StudyData) -> dict[str, pl.DataFrame]:
    return data.for_swap([one.name for one in plan.linked]) if plan.flat is None else data.for_flat_swap()


# -- a TopDown plan ------------------------------------------------------------------------------------------


def _known_of_topdown(plan: TopDownPlan, data: StudyData) -> Known:
    counted, known = prepare(plan, data.for_topdown([table.name for table in plan.tables]))
    stated = specify_topdown(plan)
    revealed = reveal_topdown(known)
    records = max((one.records for one in revealed.margins), default=0) or 1
    determined = [one.determined_records for one in revealed.margins]
    determined += [one.revealed.determined_records for one in revealed.pairs]
    alone = [
        alone_in_an_invariant(counted, known.exact, table) / (int(leaves.counts.sum()) or 1)
        for table, leaves in counted.leaves.items()
    ]
    leakage = Leakage(max(determined, default=0) / records, max(alone), None)
    loss = Loss(THEOREM, "rho", float(stated.budget.number))
    return Known(stated, (loss,), _power(allowed_power(stated)), leakage)


def _draws_of_topdown(plan: TopDownPlan, data: StudyData, number: int, source: RandomSource) -> Iterator[Drawn]:
    tables = data.for_topdown([table.name for table in plan.tables])
    for _ in range(number):
        with tempfile.TemporaryDirectory() as folder:
            made = draw_into(Path(folder), plan, tables, source=source).finish()
            released = {
                table.name: pl.DataFrame(as_arrow(rows(plan, made.draw.spine, table, made.leaves[table.name])))
                for table in plan.released
            }
            yield Drawn(released, {})


# -- a simulator ---------------------------------------------------------------------------------------------


def _known_of_simulator(swapper: Swapper, data: StudyData) -> Known:
    stated = _with_linked(swapper.specification(data.records), tuple(data.links))
    epsilon = float(stated.budget.number)
    kind = _KINDS[str(stated.fact[GUARANTEE])]
    curve = swapper.power_curve(data.records)
    power = _power(curve or allowed_power(stated)) if math.isfinite(epsilon) else 1.0
    leakage = leakage_of(_published(swapper, data)) if swapper.publishes_counts else None
    return Known(stated, (Loss(kind, "epsilon", epsilon),), power, leakage)


def _simulations(swapper: Swapper, data: StudyData, number: int, source: RandomSource) -> Iterator[Drawn]:
    before = data.records
    for _ in range(number):
        made = swapper.simulate(before, source)
        changed = {name: made.frame[name].ne_missing(before[name]).to_numpy() for name in swapper.places}
        frame = made.frame if data.id is None else made.frame.with_columns(data.tables[data.main][data.id])
        yield Drawn(data.following(frame, swapper.places), changed)


def _published(swapper: Swapper, data: StudyData) -> Dataset:
    """The data as a swap would take them that keeps the same counts; nothing is drawn."""
    linked = tuple(
        LinkedTable(name=name, link=link, hold="rest", drop=data.ids.get(name, ())) for name, link in data.links.items()
    )
    plan = SwapPlan(
        unit="record",
        match=swapper.agreed,
        swap=swapper.places,
        hold="rest",
        id=data.id,
        rate=Fraction(1, 2),
        linked=linked,
    )
    return load(plan, data.for_swap([one.name for one in linked]))


# -- helpers -------------------------------------------------------------------------------------------------


def leakage_of(dataset: Dataset) -> Leakage:
    """What the two margins of a swap reveal."""
    found = reveal(two_margins(dataset))
    return Leakage(found.determined_share, alone_in_a_margin(dataset) / found.records, found.guessed_share)


def exact_loss(margins: TwoMargins, rate: Fraction) -> float | None:
    """The exact loss of the universe with these margins; None where a stratum is too large to be computed."""
    found = 0.0
    changeable = np.flatnonzero(~margins.determined)
    if len(changeable) > _MOST_STRATA:
        return None
    for number in changeable.tolist():
        held, swapped = (tuple(np.sort(side).tolist()) for side in margins.stratum(number))
        if not computable(held, swapped):
            return None
        found = max(found, stratum_loss(held, swapped, rate))
    return found


def _with_linked(stated: Specification, linked: Sequence[str]) -> Specification:
    """A simulator's specification for records with linked rows, which stay together with what the record holds."""
    if not linked:
        return stated
    held, *others = stated.multiverse.invariants
    whole = replace(held, by=(*held.by, *linked), words=f"{held}, each with all of its rows in {errors.listed(linked)}")
    return replace(stated, multiverse=replace(stated.multiverse, invariants=(whole, *others)))


def _power(curve: Curve) -> float:
    return float(np.asarray(curve.power(FALSE_ALARM)))
