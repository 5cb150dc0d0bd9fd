"""What cutting or shrinking weights costs in bias, and what it saves in noise, from public facts only.

Known are either the weights themselves, with the number of records that have each (a published design), or bounds of a
weight, of the number of records, and of the sum of all weights, which is the size of the population up to rounding.

With n weights in [lower, upper] and the sum N, a sum of one convex function of each weight is largest where all but one
stand at the ends: k = floor((N - n lower) / (upper - lower)) at the upper one, one in between, the others at the lower
one. These weights majorise all others, so that they are the worst for all such functions at once.

A weight w that is cut at u and then shrunk by s towards c is moved down by h(w) = (w - u)^+ + s (min(w, u) - c), or up
where that is negative. The bias of the sum of weight times value is the sum of -h(w) x; its largest absolute value over
all weights and values that the public facts allow is found at :attr:`PublicWeights.worst`, in whole numbers. Rounding
to the step adds at most half a step for each record.

Bias is the largest that the public facts allow; noise is in proportion to the
largest weight after the rule. Both are exact fractions, and the recommended rule has the smallest sum of the squared
bias and the variance of the noise.

Keep in mind: nothing here looks at the data, and nothing may. A cut chosen by looking at the weights of the sample
would be a statistic without protection. Sampling error, which trimming lowers as well, is not part of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from stirred import errors
from stirred._display import brief
from stirred.semantics.pictures.shapes import Line, Picture
from stirred.spec.exact import near, significant, written
from stirred.survey.plan.sensitivity import Bounds, number, positive, require_number, require_sizes
from stirred.survey.plan.settings import Change, require_change
from stirred.survey.weights.rules import WeightRule

Classes = tuple[tuple[Fraction, int], ...]
"""Weights, and the number of records that have each, from the largest weight to the smallest."""


@dataclass(frozen=True)
class PublicWeights:
    """Bounds of the weights of a sample and of their sum, all of them public.

    ``fewest`` and ``most`` are the numbers of records that the sample may have. The sum of the weights differs from
    ``population`` by at most ``slack``.

    >>> PublicWeights(1, 10, population=100, fewest=40, most=40).worst
    (((Fraction(10, 1), 6), (Fraction(7, 1), 1), (Fraction(1, 1), 33)),)
    """

    lower: Fraction
    upper: Fraction
    population: Fraction
    fewest: int
    most: int
    slack: Fraction = Fraction(0)
    classes: Classes = ()
    """Where the weights themselves are public; see :meth:`listed`."""

    def __post_init__(self) -> None:
        for name, what in (
            ("lower", "The lower bound of weights"),
            ("upper", "The upper bound of weights"),
            ("population", "The size of the population"),
            ("slack", "The slack of the sum of weights"),
        ):
            require_number(self, name, what)
        require_sizes(self)
        if not 0 < self.lower <= self.upper:
            raise errors.weight_facts("bounds of weights are positive, the lower one first")
        if self.population <= 0 or self.slack < 0:
            raise errors.weight_facts("the population is positive, and the slack is not negative")
        if self.fewest > self.most:
            raise errors.weight_facts("the fewest records are more than the most")
        low, high = self.records
        if low > high:
            raise errors.weight_facts(
                f"{self.fewest:,} to {self.most:,} weights from {written(self.lower)} to {written(self.upper)} do not "
                f"add up to {written(self.population)}"
            )

    @classmethod
    def listed(cls, weights: Iterable[tuple[Any, int]]) -> PublicWeights:
        """Public weights themselves: pairs of a weight and the number of records that have it.

        In a stratified sample they are N/n and n of each stratum. Published classes of weights may be given by their
        upper ends: what is said of cuts is then an upper bound.

        >>> known = PublicWeights.listed([(12, 4000), (60, 800), ("900.5", 3)])
        >>> known.most, known.population, known.upper
        (4803, Fraction(197403, 2), Fraction(1801, 2))
        """
        found: dict[Fraction, int] = {}
        for weight, records in weights:
            if type(records) is not int or records < 0:
                raise errors.survey_fact("The number of records with a weight", "is a whole number, at least 0")
            given = number(weight, "A weight")
            if records:
                found[given] = found.get(given, 0) + records
        if not found:
            raise errors.weight_facts("no weight is listed")
        classes = tuple(sorted(found.items(), reverse=True))
        records, total = sum(found.values()), sum((weight * count for weight, count in classes), Fraction(0))
        return cls(min(found), max(found), total, records, records, classes=classes)

    @property
    def records(self) -> tuple[int, int]:
        """The fewest and the most records whose weights can add up to the population within their bounds."""
        return (
            max(self.fewest, math.ceil((self.population - self.slack) / self.upper)),
            min(self.most, math.floor((self.population + self.slack) / self.lower)),
        )

    @cached_property
    def worst(self) -> tuple[Classes, ...]:
        """The weights that are the worst for any cut or shrinking: the listed ones, or those at the ends.

        Where the number of records or the sum of the weights is not exactly known, there are several. More weight in
        fewer records is the worst for what is above a level; less weight in more records for what is below it.
        """
        if self.classes:
            return (self.classes,)
        low, high = self.records
        smallest, largest = self.population - self.slack, self.population + self.slack
        full = min(max(math.ceil(largest / self.upper), low), high)
        found = [
            _at_ends(full, min(largest, full * self.upper), self.lower, self.upper),
            _at_ends(high, max(smallest, high * self.lower), self.lower, self.upper),
        ]
        if full > low:  # one record less, all at the upper bound
            found.append(_at_ends(full - 1, (full - 1) * self.upper, self.lower, self.upper))
        return tuple(dict.fromkeys(found))

    @cached_property
    def unit(self) -> int:
        """How many parts of 1 all worst weights are whole multiples of."""
        return math.lcm(*{weight.denominator for classes in self.worst for weight, _ in classes})

    def largest_sum(self, change: Callable[[int], int], unit: int, records: int | None = None) -> int:
        """The largest sum of a function of the weights, over all records or the at most so many where it is largest.

        The function gets weights times ``unit``, a multiple of :attr:`unit`. It is convex, and either never falls, is
        not above 0 at 0 and not below 0 at the upper bound, or never rises and is not below 0 at the lower bound. With
        listed weights it may be any function.
        """
        return max(_largest(classes, change, unit, records) for classes in self.worst)


def _at_ends(records: int, total: Fraction, lower: Fraction, upper: Fraction) -> Classes:
    """Weights with this sum of which all but one stand at the ends."""
    if lower == upper:
        return ((upper, records),)
    at_upper, rest = divmod(total - records * lower, upper - lower)
    between = 1 if rest else 0
    found = ((upper, int(at_upper)), (lower + rest, between), (lower, records - int(at_upper) - between))
    return tuple((weight, count) for weight, count in found if count)


def _largest(classes: Classes, change: Callable[[int], int], unit: int, records: int | None) -> int:
    changes = [(change(weight.numerator * (unit // weight.denominator)), count) for weight, count in classes]
    if records is None:
        return sum(by * count for by, count in changes)
    total, left = 0, records
    for by, count in sorted(changes, reverse=True):
        if by <= 0 or not left:
            break
        total, left = total + by * min(count, left), left - min(count, left)
    return total


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


Target = Literal["cell", "total"]
TARGETS: tuple[Target, ...] = ("cell", "total")

_SHOWN = 9
"""Cuts and shrinkings in a table, beside the recommended one."""
_DRAWN, _FAR = 100, 9
"""Cuts in a picture, and how many times the squared error without a cut they may have."""


@dataclass(frozen=True)
class TradePoint:
    """One rule: its bias at worst, and the variance of its noise."""

    rule: WeightRule
    cells: int
    cell_bias: Fraction
    """The largest bias of one cell, in absolute terms."""
    total_bias: Fraction
    """The largest bias of the sum over all cells."""
    variance: Fraction
    """Of the noise of one cell; that of the discrete noise is at most this."""

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise of one cell."""
        return _root(self.variance)

    @property
    def cell_error(self) -> float:
        """The root of the largest mean squared error of one cell, sampling apart."""
        return _root(self.squared("cell"))

    def bias(self, target: Target) -> Fraction:
        """The largest bias, of a cell or of the total."""
        return self.cell_bias if target == "cell" else self.total_bias

    def noise(self, target: Target) -> Fraction:
        """The variance of the noise, of a cell or of the total."""
        return self.variance * (1 if target == "cell" else self.cells)

    def squared(self, target: Target) -> Fraction:
        """The mean squared error at worst, of a cell or of the total, sampling apart."""
        return self.bias(target) ** 2 + self.noise(target)


@brief
@dataclass(frozen=True)
class WeightTrade:
    """Bias against noise for weighted counts or sums by cells: the sum of weight times value over each cell's records.

    >>> weights = PublicWeights.listed([(12, 4000), (60, 800), (900, 3)])
    >>> trade = WeightTrade(weights, step=1, epsilon=1)
    >>> best = trade.recommended_cut()
    >>> best.rule.upper, best.cell_bias, round(best.noise_sd), round(best.cell_error), round(trade.at().cell_error)
    (Fraction(476, 1), Fraction(1272, 1), 1346, 1852, 2546)
    """

    weights: PublicWeights
    step: Fraction
    """The lattice of the weights after the rule."""
    epsilon: Fraction | None = None
    """The budget with Laplace noise; or ``rho``, with Gaussian noise."""
    rho: Fraction | None = None
    share: Fraction = Fraction(1)
    """The part of the budget that these cells get."""
    value: Bounds = field(default_factory=lambda: Bounds(Fraction(1), Fraction(1)))
    """Bounds of the value; from 1 to 1 for counts."""
    cells: int = 1
    cell_records: int | None = None
    """The most records of the sample that one cell may have, if that is public."""
    moves: bool = True
    """A changed record may go from one cell to another."""
    change: Change = "unit"
    """Another unit stands in its place, with another weight, or it gives other answers only."""
    rounded: bool = False
    """Weights before the rule are not on the lattice, and are rounded to it."""
    centre: Fraction | None = None
    """Where shrinking draws weights to; the mean weight, if the number of records is known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", number(self.step, "The step of weights"))
        for name in ("epsilon", "rho", "share"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, positive(given, f"The {name}"))
        if (self.epsilon is None) == (self.rho is None):
            raise errors.survey_fact("The budget of a weighted sum", "is epsilon or rho, one of them")
        if self.share > 1:
            raise errors.survey_fact("The share of a budget", "is at most 1")
        for name in ("cells", "cell_records"):
            given = getattr(self, name)
            if (given is not None or name == "cells") and (type(given) is not int or given < 1):
                raise errors.survey_fact(f"The number of {name.replace('_', ' ')}", "is a whole number, at least 1")
        require_change(self.change)
        known = self.weights.fewest == self.weights.most
        if self.centre is None and known:
            mean = self.weights.population / self.weights.most
            object.__setattr__(self, "centre", min(max(mean, self.weights.lower), self.weights.upper))
        elif self.centre is not None:
            object.__setattr__(self, "centre", number(self.centre, "The centre of weights"))
        if self.step <= 0:
            raise errors.weight_rule("its step is not positive", "Give a step such as 1 or '0.01'")
        self.rule()

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The smallest multiples of the step that hold all weights between them: from and to where a cut may be."""
        lower, upper = self.weights.lower, self.weights.upper
        if self.step > lower:
            raise errors.weight_rule("its step is larger than the smallest weight", "State a finer step")
        return lower // self.step * self.step, -(-upper // self.step) * self.step

    def rule(self, cut: Any = None, shrink: Any = 0) -> WeightRule:
        """The rule that cuts at ``cut``, or at the upper bound of the weights, and shrinks."""
        lower, upper = self.range
        at, by = upper if cut is None else number(cut, "A cut"), number(shrink, "The shrinking of weights")
        if at > upper:
            raise errors.weight_rule("it cuts above the largest weight", "Cut within the bounds of the weights")
        off = any((weight / self.step).denominator != 1 for weight, _ in self.weights.classes)
        rounding: Literal["refuse", "nearest"] = "nearest" if self.rounded or off or by else "refuse"
        return WeightRule(lower, at, self.step, "cut", rounding, by, self.centre if by else None)

    def at(self, cut: Any = None, shrink: Any = 0) -> TradePoint:
        """Bias and noise of one rule; without arguments, of the weights as they are."""
        rule = self.rule(cut, shrink)
        return TradePoint(
            rule, self.cells, self._bias(rule, "cell"), self._bias(rule, "total"), self._variance(rule.after)
        )

    def recommended_cut(self, target: Target = "cell", within: tuple[Any, Any] | None = None) -> TradePoint:
        """The cut with the smallest error at worst, among all multiples of the step within a range.

        The squared error is convex in the cut: bias and sensitivity are convex in it and not negative, and so are their
        squares. Hence a search by halving finds the smallest, exactly; of equal ones it takes the smallest cut.
        """
        asked = _target(target)
        lower, upper = self.range
        least, most = (number(one, "An end of the range of cuts") for one in within or (lower, upper))
        if not lower <= least <= most <= upper:
            raise errors.weight_rule("the range of cuts is not within the bounds of the weights", "Give two cuts")
        first, last = math.ceil(least / self.step), math.floor(most / self.step)
        if first > last:
            raise errors.weight_rule("no multiple of the step is in the range of cuts", "Give a wider range")

        def squared(steps: int) -> Fraction:
            return self._squared(self.rule(steps * self.step), asked)

        while first < last:
            middle = (first + last) // 2
            if squared(middle) <= squared(middle + 1):
                last = middle
            else:
                first = middle + 1
        return self.at(first * self.step)

    def recommended_shrink(self, target: Target = "cell", cut: Any = None, grid: int = 100) -> TradePoint:
        """The shrinking with the smallest error at worst, among 0, 1/grid, 2/grid, ..., 1, after a cut."""
        if type(grid) is not int or grid < 1:
            raise errors.survey_fact("The number of shrinkings that are tried", "is a whole number, at least 1")
        rules = (self.rule(cut, Fraction(k, grid)) for k in range(grid + 1))
        best = min(rules, key=lambda rule: self._squared(rule, _target(target)))
        return self.at(cut, best.shrink)

    def recommended(self, target: Target = "cell") -> TradePoint:
        """The better of the recommended cut and, where there is a centre, the recommended shrinking."""
        found = [self.recommended_cut(target)]
        if self.centre is not None:
            found.append(self.recommended_shrink(target))
        return min(found, key=lambda point: point.squared(target))

    def recommended_cuts(self, budgets: Iterable[Any], target: Target = "cell") -> tuple[TradePoint, ...]:
        """The recommended cut for each of several budgets, epsilon or rho as here."""
        name = "epsilon" if self.epsilon is not None else "rho"
        return tuple(replace(self, **{name: one}).recommended_cut(target) for one in budgets)

    def table(self, target: Target = "cell") -> str:
        """Bias, noise and error at worst for some cuts and shrinkings, as text; ``*`` marks the recommended ones."""
        lines = [
            self._headline(target),
            f"{'':2}{'weights up to':>16}  {'bias at worst':>16}  {'noise, sd':>16}  {'error at worst':>16}",
        ]
        best = self.recommended_cut(target)
        shown = sorted({*self._cuts(_SHOWN), best.rule.upper})
        lines += [self._row(self.at(cut), written(cut), target, cut == best.rule.upper) for cut in shown]
        if self.centre is not None:
            least = self.recommended_shrink(target)
            shrinks = sorted({*(Fraction(k, 4) for k in range(5)), least.rule.shrink})
            lines.append(f"{'':2}{'shrunk by':>16}")
            lines += [self._row(self.at(shrink=s), written(s), target, s == least.rule.shrink) for s in shrinks]
        return "\n".join(lines) + "\n"

    def pictures(self, target: Target = "cell") -> tuple[Picture, ...]:
        """Bias, noise and error against the cut and against the shrinking, for :mod:`stirred.reports` to draw."""
        found = []
        best = self.recommended_cut(target)
        points = [self.at(cut) for cut in sorted({*self._cuts(_DRAWN), best.rule.upper})]
        if len(points) > 1:
            near_by = [point for point in points if point.squared(target) <= _FAR * points[-1].squared(target)]
            cuts = {point.rule.upper: point for point in (near_by if len(near_by) > 1 else points)}
            axis = "weights are cut to at most"
            found.append(self._picture("cut", "cutting", axis, best.rule.upper, cuts, best, target))
        if self.centre is not None:
            least = self.recommended_shrink(target)
            shrinks = {s: self.at(shrink=s) for s in sorted({*(Fraction(k, 40) for k in range(41)), least.rule.shrink})}
            axis = f"share of the way to the centre, {near(self.centre):.4g}; at 1 all weights are equal"
            found.append(self._picture("shrink", "shrinking", axis, least.rule.shrink, shrinks, least, target))
        return tuple(found)

    # -- error -----------------------------------------------------------------------------------------------------

    def _squared(self, rule: WeightRule, target: Target) -> Fraction:
        return self._bias(rule, target) ** 2 + self._variance(rule.after) * (1 if target == "cell" else self.cells)

    def _bias(self, rule: WeightRule, target: Target) -> Fraction:
        if target == "total":
            return total_bias(self.weights, rule, self.value)
        return cell_bias(self.weights, rule, self.value, self.cell_records)

    def _variance(self, after: Bounds) -> Fraction:
        """The variance of the noise of one cell, for weights within these bounds.

        A record that leaves a cell for another changes both, each by at most m, the largest |weight times value|: by 2m
        in all for Laplace noise, and by 2m^2 in squares for Gaussian noise. One that stays changes its cell by the
        width of weight times value, which for values of both signs may be as much as 2m.
        """
        products = [weight * value for weight, value in itertools.product(after.ends, self.value.ends)]
        width = max(products) - min(products) if self.change == "unit" else after.high * self.value.width
        largest = max(map(abs, products))
        if self.epsilon is not None:
            scale = (2 * largest if self.moves else width) / (self.epsilon * self.share)
            return 2 * scale**2
        assert self.rho is not None
        squares = max(2 * largest**2, width**2) if self.moves else width**2
        return squares / (2 * self.rho * self.share)

    # -- shown -----------------------------------------------------------------------------------------------------

    def _cuts(self, count: int) -> list[Fraction]:
        """Cuts on the lattice from the lower bound to the upper one, in about equal ratios."""
        low, high = (int(end / self.step) for end in self.range)
        ratio = (high / low) ** (1 / (count - 1))
        middle = (min(max(round(low * ratio**k), low), high) for k in range(count))
        return sorted({steps * self.step for steps in (low, *middle, high)})

    @property
    def _budget(self) -> tuple[str, str]:
        return ("rho", written(self.rho or 0)) if self.epsilon is None else ("epsilon", written(self.epsilon))

    def _headline(self, target: Target) -> str:
        of, law = _OF[_target(target)], "Laplace" if self.epsilon is not None else "Gaussian"
        share = "" if self.share == 1 else f"{written(self.share)} of "
        return f"{of}, {law} noise, {share}{' '.join(self._budget)}"

    def _row(self, point: TradePoint, name: str, target: Target, best: bool) -> str:
        numbers = (point.bias(target) ** 2, point.noise(target), point.squared(target))
        return f"{'*' if best else ' '} {'  '.join(f'{shown:>16}' for shown in (name, *map(_up, numbers)))}"

    def _picture(
        self,
        name: str,
        doing: str,
        axis: str,
        at: Fraction,
        points: Mapping[Fraction, TradePoint],
        best: TradePoint,
        target: Target,
    ) -> Picture:
        """Bias, noise and error of some rules by a number of theirs; the smallest error is at ``at``."""
        title = f"What does {doing} weights cost, and what does it save?"
        said = f"The smallest error is at {written(at)}: {_up(best.squared(target))}"
        x, every = tuple(map(near, points)), points.values()
        lines = (
            Line("bias at worst", x, tuple(near(p.bias(target)) for p in every)),
            Line("noise (standard deviation)", x, tuple(_root(p.noise(target)) for p in every), dashed=True),
            Line("error at worst (root of the sum of squares)", x, tuple(_root(p.squared(target)) for p in every)),
        )
        caption = (
            f"{self._headline(target)}. Noise hides which of two records was there: "
            f"{'one unit, or another in its place' if self.change == 'unit' else 'one answer of a unit, or another'}, "
            "all other records being known. Computed from public facts only; sampling error is not part of it."
        )
        y_title = f"error of {'one cell' if target == 'cell' else 'the sum over all cells'}"
        whose = "unit" if self.change == "unit" else "answer of a unit"
        standard = "pure" if self.epsilon is not None else "zero-concentrated"
        guarantee = f"Guarantee: {' = '.join(self._budget)} per {whose} replaced, {standard} differential privacy"
        if self.share != 1:
            guarantee += f"; {written(self.share)} of it is spent here"
        return Picture(f"weight-{name}", title, said, axis, y_title, lines, caption=caption, guarantee=guarantee)


_OF = {"cell": "One cell", "total": "The sum over all cells"}


def _target(target: Target) -> Target:
    if target not in TARGETS:
        raise errors.survey_fact("The target of a trade", f"is one of {', '.join(TARGETS)}")
    return target


def _root(squared: Fraction) -> float:
    return math.sqrt(near(squared))


def _up(squared: Fraction) -> str:
    """The root of a number, rounded up to four digits."""
    return f"{Decimal(significant(_root(squared), 4)):,f}"
