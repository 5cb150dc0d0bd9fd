"""The trade-off function of a swap, from the facts that its specification states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.loss import PowerCurve, swap_power_curve_up_to
from stirred.spec.blocks import Budget, InputPremetric, OutputPremetric
from stirred.spec.facts import (
    CAP_ON_SWAPS,
    LARGEST_STRATUM,
    MECHANISM,
    PAIRWISE,
    PERMUTATION_SWAPPING,
    RATE,
)
from stirred.spec.specification import Specification

EXCHANGE = "exchange of the swap values of two records of a stratum"
"""The relation of two files at distance 2 of a swapping universe, by name."""

_LARGEST = 10**12
_ROUNDED = 0.01
"""How far a stated epsilon may be from that of the theorem: some are printed in two decimals."""


def swap_curve(stated: Mapping[str, str | int | bool], epsilon: float) -> PowerCurve | None:
    """A bound on the power of tests between the nearest two files of the swap that facts tell of, far below that of
    its epsilon; None where they tell of no swap, or of none with this epsilon.

    Known for one rate and the size of the largest stratum, whichever smaller ones there are. Limits on the number of
    swaps, or swaps in pairs, are another mechanism; a budget that was composed or converted is not that of one swap.

    >>> told = {"mechanism": "permutation-swapping", "rate": "1/2", "largest_stratum": 1000}
    >>> round(float(swap_curve(told, math.log(1001)).power(0.05)), 4), swap_curve(told, 1.0)
    (0.8, None)
    """
    if stated.get(MECHANISM) != PERMUTATION_SWAPPING or stated.get(PAIRWISE) or stated.get(CAP_ON_SWAPS):
        return None
    try:
        rate, largest = as_fraction(str(stated[RATE])), int(stated[LARGEST_STRATUM])
    except (KeyError, ValueError, *NOT_A_NUMBER):
        return None
    if not 0 < rate < 1 or not 2 <= largest <= _LARGEST or abs(_theorem(largest, rate) - epsilon) > _ROUNDED:
        return None
    return swap_power_curve_up_to(largest, rate)


def as_trade_off(specification: Specification) -> Specification | None:
    """The guarantee of a swap as f-DP, between two files of which one has the swap values of two records exchanged.

    None where the specification is not that of one swap. ``implies`` compares its curve with others, and converts it.

    >>> from stirred.spec.loading import load
    >>> exchanged = as_trade_off(load("psa-2020-state-county-p50"))
    >>> round(float(exchanged.budget.value.power(0.05)), 4)
    0.8
    """
    budget = specification.budget
    if budget.is_curve or specification.nearest != 2 or not specification.output_premetric.kind.pure:
        return None
    curve = swap_curve(specification.fact, float(budget.number))
    if curve is None:
        return None
    return replace(
        specification,
        input_premetric=InputPremetric.relation(EXCHANGE, specification.input_premetric.unit),
        output_premetric=OutputPremetric("trade-off"),
        budget=Budget(curve),
        nearest=1,
        facts=tuple((name, fact) for name, fact in specification.facts if name != MECHANISM),
    )


def _theorem(largest: int, rate: Fraction) -> float:
    odds = math.log(rate / (1 - rate))
    return max(math.log(largest + 1) - odds, odds)
