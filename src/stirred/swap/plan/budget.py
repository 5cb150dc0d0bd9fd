"""Which swap rate keeps stated limits: on epsilon, on the power of tests, on a belief, on the error of a table.

Epsilon depends on the rate and on b, the size of the largest stratum (Theorem 3.2.4); power and beliefs are those of
the swap itself, for two records that exchange their values (:mod:`stirred.loss.curves.swap_curves`); the error of a
table is its expected mean absolute percentage error. Low and high rates both cost privacy, so the rates that keep a
limit on the guarantee lie between two numbers; errors grow with the rate.

The invariant a reader must know: with a typed largest stratum nothing is read and the answer is public. Without one the
strata are counted in the data, the answer is confidential, and the plan that is made says that its rate was chosen from
this data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred._display import confidential
from stirred._progress import stage
from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.curves.swap_curves import swap_power_curve, swap_power_curve_up_to
from stirred.releases.mechanism import Data
from stirred.semantics.budgets_for_targets import rounded_down, rounded_up, value_on
from stirred.semantics.targets import (
    BeforeAfter,
    BeliefTarget,
    Calibration,
    EpsilonTarget,
    ErrorTarget,
    PowerTarget,
    RhoTarget,
    Target,
    TargetAnswer,
)
from stirred.spec.exact import display
from stirred.swap.checking.plan_check import at_rate, expected_forecast, has_formulas
from stirred.swap.data.counting import count_margins, strata_of_dataset
from stirred.swap.data.dataset import Dataset, load
from stirred.swap.law import theorem
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import PublishedTable

MOST_SIZES = 200
"""Different sizes of strata that are looked at one by one; beyond, all sizes up to the largest may occur."""

_GRID = 80
"""Rates that are tried, equally far apart on the scale of log-odds, before the ends are found by halving."""
_ODDS = 12.0
_STEPS = 40
_COARSE = 14
INSTEAD = (
    "Ask for 'epsilon <= 5', 'power at 5% <= 20%', 'belief from 1% <= 5%', or, with the data, 'error of county,tenure "
    "<= 3%'."
)


@confidential
class _Known:
    """What is known of the strata, and the data where they were read."""

    largest: int
    """b of the theorem."""
    sizes: tuple[int, ...] | None
    """The sizes of all strata that a swap can change; None where any size up to ``changeable`` may occur."""
    changeable: int
    dataset: Dataset | None

    def curve(self, rate: Fraction) -> PowerCurve:
        if self.sizes is not None:
            return swap_power_curve(self.sizes, rate)
        return swap_power_curve_up_to(self.changeable, rate)

    def quick(self, rate: Fraction) -> PowerCurve:
        """A curve below the whole one, and sooner found."""
        return swap_power_curve(min(self.sizes) if self.sizes else 2, rate)


def calibrate(
    plan: SwapPlan,
    targets: Sequence[Target],
    data: Data | None = None,
    *,
    largest_stratum: int | None = None,
) -> Calibration:
    """The range of swap rates that keep all targets, and the rate in it that changes least, or for limits on errors
    alone the one that protects most.

    With ``largest_stratum``, typed, no data are read.
    """
    _require(plan, targets, largest_stratum)
    known = _counted(plan, data) if largest_stratum is None else _Known(largest_stratum, None, largest_stratum, None)
    stage("trying rates")
    limits = [one for one in targets if isinstance(one, EpsilonTarget | PowerTarget | BeliefTarget)]
    asked = [one for one in targets if isinstance(one, ErrorTarget)]
    low, high = _between(known, limits)
    rate, top = low, high
    if asked:
        top = _highest(known, asked, low, high)
        rate = top if not limits else low
    return _told(plan, targets, known, low, top, rate, bool(limits))


def _require(plan: SwapPlan, targets: Sequence[Target], largest: int | None) -> None:
    for one in targets:
        if isinstance(one, RhoTarget):
            raise errors.target_not_for(one.text, "a swap, which has an epsilon and no rho", INSTEAD)
        if isinstance(one, EpsilonTarget) and one.delta is not None:
            raise errors.bad_target(one.text, "a swap has an epsilon without delta; leave 'at delta' out")
        if isinstance(one, ErrorTarget):
            if one.level is not None or one.size is not None or one.typical:
                raise errors.bad_target(
                    one.text, "for a swap write the columns of a table and a share, as 'error of county,tenure <= 3%'"
                )
            if largest is not None:
                raise errors.calibration_option(
                    "--largest-stratum", "leaves the data unread, and the error of a table is computed from them"
                )
    if plan.rates and any(not isinstance(one, EpsilonTarget) for one in targets):
        raise errors.target_not_for(
            next(one.text for one in targets if not isinstance(one, EpsilonTarget)),
            "a plan with rates by rule",
            "For such a plan ask for 'epsilon <= 5', which tells the range that all its rates must lie in.",
        )
    if largest is not None and (isinstance(largest, bool) or largest < 2):
        raise errors.calibration_option("--largest-stratum", "must be a whole number from 2 on")


def _counted(plan: SwapPlan, data: Data | None) -> _Known:
    stage("reading")
    dataset = load(plan, data)
    stage("counting strata")
    strata = strata_of_dataset(dataset, count_margins(dataset, prints=False))
    if not strata.changeable.any():
        raise errors.out_of_reach(
            "a swap rate",
            "no stratum of this file has two records that a swap could change",
            "Match on fewer variables.",
        )
    sizes = tuple(int(one) for one in np.unique(strata.sizes[strata.changeable]))
    largest = strata.largest_changeable if plan.rates else strata.largest
    return _Known(largest, sizes if len(sizes) <= MOST_SIZES else None, sizes[-1], dataset)


# -- rates -------------------------------------------------------------------------------------------------------


def _between(known: _Known, limits: Sequence[EpsilonTarget | PowerTarget | BeliefTarget]) -> tuple[Fraction, Fraction]:
    """The lowest rate that keeps the limits, and the end of the range above it."""

    def kept(rate: Fraction, some: Sequence[Target]) -> bool:
        return all(_value(known, one, rate) <= float(one.most) for one in some if not isinstance(one, ErrorTarget))

    def sooner(rate: Fraction, some: Sequence[Target]) -> bool:
        """Whether cheap looks do not rule the rate out already."""
        return all(
            theorem.epsilon(known.largest, rate) <= float(one.most)
            if isinstance(one, EpsilonTarget)
            else not isinstance(one, PowerTarget | BeliefTarget) or value_on(one, known.quick(rate)) <= float(one.most)
            for one in some
        )

    if not limits:
        return Fraction(1, 10**6), rounded_down(Fraction(theorem.best_rate(known.largest)), 6)

    def both(rate: Fraction) -> bool:
        return sooner(rate, limits) and kept(rate, limits)

    grid = [_rate(-_ODDS + 2 * _ODDS * step / _GRID) for step in range(_GRID + 1)]
    grid = sorted({*grid, *(rate for one in limits for rate in _ends(known, one))})
    fine = [rate for rate in grid if both(rate)]
    if not fine:
        for one in limits:
            if not any(sooner(rate, [one]) and kept(rate, [one]) for rate in grid):
                raise errors.out_of_reach(one.text, _why(known, one), _RAISE)
        raise errors.targets_disagree("no rate keeps all of them", "Raise some limits, or drop a target.")
    first = grid.index(fine[0])
    last = first
    while last + 1 < len(grid) and grid[last + 1] in fine:
        last += 1
    low = grid[first] if first == 0 else _edge(both, grid[first], grid[first - 1])
    high = grid[last] if last + 1 == len(grid) else _edge(both, grid[last], grid[last + 1])
    up, down = rounded_up(low), _inside(high)
    return (up if both(up) else low), (down if both(down) and down >= up else high)


_RAISE = (
    "Raise the limit. Finer match variables make strata smaller and so lower epsilon, but by keeping more exactly: "
    "that is not better privacy."
)


def _rate(odds: float) -> Fraction:
    return Fraction(1 / (1 + math.exp(-odds))).limit_denominator(10**7)


def _ends(known: _Known, limit: Target) -> list[Fraction]:
    """Rates just inside the range that the theorem gives for an epsilon."""
    if not isinstance(limit, EpsilonTarget):
        return [Fraction(1, 2), Fraction(theorem.best_rate(known.largest)).limit_denominator(10**9)]
    found = theorem.rates_for(float(limit.most), known.largest)
    if found is None:
        return []
    return [Fraction(found[0] * (1 + 1e-12)), Fraction(1) - Fraction((1 - found[1]) * (1 + 1e-9)),
            Fraction(theorem.best_rate(known.largest)).limit_denominator(10**9)]  # fmt: skip


def _inside(rate: Fraction) -> Fraction:
    """A rate rounded down so that four digits of its distance from one count."""
    return 1 - rounded_up(1 - rate)


def _edge(kept: Callable[[Fraction], bool], inside: Fraction, outside: Fraction) -> Fraction:
    """The end of the range between a rate that keeps the limits and one that does not."""
    for _ in range(_STEPS):
        middle = ((inside + outside) / 2).limit_denominator(10**12)
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if kept(middle) else (inside, middle)
    return inside


def _highest(known: _Known, asked: Sequence[ErrorTarget], low: Fraction, high: Fraction) -> Fraction:
    """The highest rate of a range at which no error exceeds its limit."""

    def kept(rate: Fraction) -> bool:
        return all(_value(known, one, rate) <= float(one.limit) for one in asked)

    if not kept(low):
        worst = next(one for one in asked if _value(known, one, low) > float(one.limit))
        raise errors.targets_disagree(
            f"at a rate of {float(low):.4g}, the lowest that the other targets allow, {worst.text!r} does not hold",
            "Raise some limits, or drop a target.",
        )
    if kept(high):
        return high
    inside, outside = low, high
    for _ in range(_COARSE):
        middle = ((inside + outside) / 2).limit_denominator(10**6)
        inside, outside = (middle, outside) if kept(middle) else (inside, middle)
    found = rounded_down(inside)
    return found if found >= low and kept(found) else inside


def _value(known: _Known, target: Target, rate: Fraction) -> float:
    """The number that a target limits (epsilon, a power, a belief, an error), at a swap rate."""
    if isinstance(target, EpsilonTarget):
        return theorem.epsilon(known.largest, rate)
    if isinstance(target, PowerTarget | BeliefTarget):
        return value_on(target, known.curve(rate))
    assert isinstance(target, ErrorTarget) and known.dataset is not None
    asked = PublishedTable.of({"by": target.by, **({} if target.table is None else {"table": target.table})})
    known.dataset.require(asked)
    other = at_rate(known.dataset, rate)
    found = expected_forecast(other, asked) if has_formulas(other, asked) else None
    if found is None:
        raise errors.out_of_reach(target.text, "this table cannot be forecast", "Ask for a smaller table.")
    return found.expected_mape


def _why(known: _Known, target: Target) -> str:
    if isinstance(target, EpsilonTarget):
        least = display(theorem.smallest_epsilon(known.largest))
        return f"no rate has an epsilon below {least} with strata of up to this size"
    if known.sizes is None:
        return "strata may have any size up to the largest, and no rate serves small and large ones at once"
    return "no rate serves all strata of this file at once"


# -- what is told ------------------------------------------------------------------------------------------------


def _told(
    plan: SwapPlan,
    targets: Sequence[Target],
    known: _Known,
    low: Fraction,
    high: Fraction,
    rate: Fraction,
    limited: bool,
) -> Calibration:
    now, read = plan.rate, known.dataset is not None
    answers = tuple(
        TargetAnswer(
            one.text,
            _value(known, one, rate) <= float(_limit(one)),
            None if now is None else _value(known, one, now),
            _value(known, one, rate),
            float(_limit(one)),
        )
        for one in targets
    )
    if plan.rates:
        answer = [f"Every rate of the plan from {_shown(low)} to {_shown(high)} keeps the target."]
    elif limited:
        answer = [f"A swap rate of {_shown(rate)} keeps all targets; it is the lowest that does, and changes least."]
        proved = all(isinstance(one, EpsilonTarget | ErrorTarget) for one in targets)
        which = "does every rate" if proved else "do all rates that were tried"
        answer.append(f"So {which} up to {_shown(high)}: the higher, the more of the tables changes.")
    else:
        answer = [f"Swap rates up to {_shown(rate)} keep the errors that are asked for; the highest protects most."]
    if now is not None:
        answer.append(
            f"The plan's rate, {_shown(now)}, keeps all targets already."
            if all(one.before is not None and one.before <= one.limit for one in answers)
            else f"The plan's rate, {_shown(now)}, does not keep all targets."
        )
    chosen = {"rate": rate, **({"chosen_from": "this data"} if read else {})}
    lines = [f'rate = "{rate}"', *(['chosen_from = "this data"'] if read else [])]
    notes = [
        "Power and beliefs are those of the best test between two files in which two records exchanged their values."
    ]
    if known.sizes is None:
        notes.append(f"They hold for any file whose strata have up to {known.changeable:,} records.")
    if read:
        notes.append(
            "The strata were counted in the data. A rate chosen by this data voids the guarantee, and the lines for "
            "the plan say so; with --largest-stratum, typed from public knowledge, nothing is read."
        )
    return Calibration(
        plan.mechanism,
        tuple(answer),
        answers,
        () if plan.rates else _changes(known, now, rate),
        "" if plan.rates else "\n".join(lines),
        tuple(notes),
        None if plan.rates else plan.model_copy(update=chosen),
        read,
        {
            "rate": str(rate),
            "lowest_rate": str(low),
            "highest_rate": str(high),
            "rate_before": None if now is None else str(now),
            "largest_stratum": known.largest,
        },
    )


def _limit(target: Target) -> Fraction:
    return target.limit if isinstance(target, ErrorTarget) else target.most


def _changes(known: _Known, before: Fraction | None, after: Fraction) -> tuple[BeforeAfter, ...]:
    def both(what: str, value: Callable[[Fraction], float]) -> BeforeAfter:
        return BeforeAfter(what, None if before is None else value(before), value(after))

    alarms = PowerTarget("", Fraction(1, 20), Fraction(1))
    believed = BeliefTarget("", Fraction(1, 100), Fraction(1))
    return (
        both("swap rate", float),
        both("epsilon", lambda rate: theorem.epsilon(known.largest, rate)),
        both("power of the best test at 5% false alarms", lambda rate: value_on(alarms, known.curve(rate))),
        both("belief from 1% is at most (but for 1% of outputs)", lambda rate: value_on(believed, known.curve(rate))),
        both(
            "share of records moved in the largest stratum",
            lambda rate: theorem.moved_probability(known.largest, rate),
        ),
    )


def _shown(rate: Fraction) -> str:
    return f"{float(rate):.6g}"
