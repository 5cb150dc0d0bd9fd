"""The largest bias of a weighted sum that a rule for weights can cause, given what is public about the weights.

A weight w that is cut at u and then shrunk by s towards c is moved down by h(w) = (w - u)^+ + s (min(w, u) - c), or up
where that is negative. The bias of the sum of weight times value is the sum of -h(w) x; its largest absolute value over
all weights and values that the public facts allow is found at :attr:`PublicWeights.worst`, in whole numbers. Rounding
to the step adds at most half a step for each record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from stirred.survey.facts import Bounds
from stirred.survey.public_weights import PublicWeights
from stirred.survey.weight_rules import WeightRule


def cell_bias(public: PublicWeights, rule: WeightRule, value: Bounds, records: int | None = None) -> Fraction:
    """The largest bias of the sum over one cell, of at most so many records, in absolute terms.

    Any records may be those of the cell: at worst those whose weights move one way, with values of one sign, and those
    whose weights move the other way with values of the other sign.
    """
    moves = _Moves.of(rule, public.unit, value)
    negative, positive = max(-moves.low, 0), moves.high

    def down(weight: int) -> int:
        return max(moves.down(weight), 0)

    def up(weight: int) -> int:
        return max(-moves.down(weight), 0)

    if negative and len(public.worst) == 1:  # values of both signs, and the same weights are the worst for both
        found = [
            public.largest_sum(lambda weight: positive * up(weight) + negative * down(weight), moves.unit, records),
            public.largest_sum(lambda weight: positive * down(weight) + negative * up(weight), moves.unit, records),
        ]
    else:
        ups = public.largest_sum(up, moves.unit, records) if rule.shrink else 0
        downs = public.largest_sum(down, moves.unit, records)
        found = [positive * ups + negative * downs, positive * downs + negative * ups]
    return Fraction(max(found), moves.scale) + _rounding(public, rule, value, records)


def total_bias(public: PublicWeights, rule: WeightRule, value: Bounds) -> Fraction:
    """The largest bias of the sum over all records, in absolute terms.

    With values x = low + y for y in [0, high - low], the sum of h x is at most that of (high - low) h^+ + low h, and
    the sum of -h x at most that of (high - low) (-h)^+ - low h. The first function of a weight is convex and never
    falls. The second is convex and never rises with s (w - c) in the place of its last h, which is not smaller than
    that: an upper bound, attained where nothing is cut.
    """
    moves, listed = _Moves.of(rule, public.unit, value), bool(public.classes)
    if moves.low < 0:  # a record with the value 0 is as good as one of no cell
        return cell_bias(public, rule, value)
    width = moves.high - moves.low

    def down(weight: int) -> int:
        moved = moves.down(weight)
        return width * max(moved, 0) + moves.low * moved

    def up(weight: int) -> int:
        moved = moves.down(weight)
        return width * max(-moved, 0) - moves.low * (moved if listed else moves.shrunk(weight))

    found = [0, public.largest_sum(down, moves.unit)]
    if rule.shrink:
        found.append(public.largest_sum(up, moves.unit))
    return Fraction(max(found), moves.scale) + _rounding(public, rule, value, None)


def _rounding(public: PublicWeights, rule: WeightRule, value: Bounds, records: int | None) -> Fraction:
    if rule.rounding == "refuse":
        return Fraction(0)
    counted = public.records[1] if records is None else min(records, public.records[1])
    return counted * rule.step / 2 * max(map(abs, value.ends))


@dataclass(frozen=True)
class _Moves:
    """By how much a rule lowers weights that are not below its bounds, rounding apart, in whole numbers.

    Weights, the cut and the centre are given times ``unit``, the ends of the value times a unit of their own. A move
    times a value is to be divided by ``scale``.
    """

    unit: int
    cut: int
    centre: int
    shrink: int
    shrink_of: int
    low: int
    high: int
    scale: int

    @classmethod
    def of(cls, rule: WeightRule, unit: int, value: Bounds) -> _Moves:
        """With values of which the larger end is positive: the bias of -x is that of x with the other sign."""
        low, high = value.ends if value.high > 0 else (-value.high, -value.low)
        centre = rule.centre or Fraction(0)
        common = math.lcm(unit, rule.upper.denominator, centre.denominator)
        values, shrink = math.lcm(low.denominator, high.denominator), rule.shrink
        return cls(
            common,
            int(rule.upper * common),
            int(centre * common),
            shrink.numerator,
            shrink.denominator,
            int(low * values),
            int(high * values),
            common * shrink.denominator * values,
        )

    def down(self, weight: int) -> int:
        """h in the formulas above."""
        cut = min(weight, self.cut)
        return self.shrink_of * (weight - cut) + self.shrink * (cut - self.centre)

    def shrunk(self, weight: int) -> int:
        """s (w - c), which is at most h."""
        return self.shrink * (weight - self.centre)
