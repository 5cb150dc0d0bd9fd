"""The trade-off functions of the Permutation Swapping Algorithm itself, far below what its epsilon allows.

The two files that a test tells apart differ in two records of one stratum that have exchanged their swap values. Where
all records of the stratum differ, both in what is held and in what is swapped, the release is the permutation itself,
and :func:`swap_power_curve` is the power of the best test. Any other file of that stratum is such a file with
categories merged, which commutes with swapping; so this curve bounds the power in *every* universe with strata of these
sizes. It is not monotone in the size: every size that occurs counts.

:func:`pair_power_curve` is the power of a test that looks at two records only: smaller, no guarantee, and about a pair
that somebody names.

Keep in mind: these curves are for two records that exchange their values (distance 2).
:func:`swap_group_power_curve` bounds larger distances. Curves of large strata are rounded up, by at most 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._calls import refuses_wrong_arguments
from stirred.errors import parameter_out_of_range
from stirred.loss.curves.power_curves import PowerCurve, concave_hull, crossings, curve_between
from stirred.loss.curves.swap_laws import (
    REMAINDER,
    PairLaw,
    Rates,
    checked_rate,
    checked_size,
    derangements,
    equal_rates,
    pair_law,
)

Array = NDArray[np.float64]

MOST_ITERATES = 64
"""Curves after themselves more often than this are not computed."""

_BLOCKS = 256
"""Outcomes of a family beyond so many are put together."""
_LISTED = 512
"""The largest stratum up to which all sizes are listed where those that occur are not known."""
_MOST_LISTED = 4096
_MOST_VERTICES = 100_000
_SMALLEST = 1e-290


@refuses_wrong_arguments
def swap_power_curve(sizes: int | Iterable[int], rate: Fraction | float | str) -> PowerCurve:
    """The greatest power of any test between two files whose two records exchanged their values, at one swap rate.

    ``sizes`` are those of the strata that a swap can change, with two different held and two different swap values.

    >>> swap_power_curve(20, 0.5).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.3521, 0.75, 0.8]
    >>> swap_power_curve([2, 10, 100], 0.9).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.8103, 0.9883, 0.9889]
    """
    chance = checked_rate(rate)
    given = tuple(sizes) if isinstance(sizes, Iterable) else (sizes,)
    if not given:
        raise parameter_out_of_range("sizes", "empty", "the size of at least one stratum")
    return _of_sizes(tuple(sorted({checked_size(size) for size in given})), chance)


@refuses_wrong_arguments
def swap_power_curve_up_to(largest: int, rate: Fraction | float | str) -> PowerCurve:
    """A bound on the curves of all strata of 2 to ``largest`` records, where the sizes that occur are not known.

    Small sizes are listed. Of a larger one, the two laws overlap by at least the probability that both records move and
    enough others do: from k = o + 2 moved records on a permutation that moves fewer is likelier, o = p/(1-p).

    >>> swap_power_curve_up_to(13_475_623, 0.5).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.76, 0.8, 0.85]
    """
    chance, most = checked_rate(rate), checked_size(largest)
    return _up_to(most, chance)


@refuses_wrong_arguments
def swap_power_curve_of_rates(
    first: Fraction | float | str, second: Fraction | float | str, others: Mapping[Fraction, int]
) -> PowerCurve:
    """The power for two records with rates of their own, in a stratum whose ``others`` have these rates.

    >>> swap_power_curve_of_rates("0.5", "0.5", {Fraction("0.02"): 98}).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.1491, 0.371, 0.5481]
    """
    counted = {checked_rate(rate): int(many) for rate, many in others.items() if many}
    if any(many < 0 for many in counted.values()):
        raise parameter_out_of_range("others", "negative", "numbers of records")
    law = pair_law(checked_rate(first), checked_rate(second), tuple(sorted(counted.items())))
    return _above([_half(law)])


@refuses_wrong_arguments
def swap_rates_power_curve(strata: Iterable[Mapping[Fraction, int]]) -> PowerCurve:
    """The greatest power over all pairs of records of these strata, each given by how many records have which rate.

    >>> swap_rates_power_curve([{Fraction(1, 2): 20}]).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.3521, 0.75, 0.8]
    """
    kinds = {tuple(sorted((checked_rate(p), int(many)) for p, many in one.items() if many)) for one in strata}
    halves = [_half(law) for one in sorted(kinds) for law in _pairs(one)]
    if not halves:
        raise parameter_out_of_range("strata", "empty", "a stratum of two records or more")
    return _above(halves)


@refuses_wrong_arguments
def swap_group_power_curve(curve: PowerCurve, distance: int, rate: Fraction | float | str | None = None) -> PowerCurve:
    """A bound on the power between files at a larger ``distance``, from the curve of two records.

    A test has in each next file at most the power that the curve gives its power in this one; files at distance d are
    at most d - 1 exchanges apart. At one rate p of at most 1/2 the power is also at most level + 1 - p^d, since the two
    laws overlap where all d records move.

    >>> nearest = swap_power_curve(100, 0.5)
    >>> swap_group_power_curve(nearest, 4, 0.5).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.9475, 0.9875, 1.0]
    """
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 2:
        raise parameter_out_of_range("distance", distance, "a whole number from 2 on")
    found = curve
    for step in range(distance - 2):
        further = _after(found, curve)
        if further.points == found.points:
            break
        if step == MOST_ITERATES or len(further.points) > _MOST_VERTICES:
            found = PowerCurve(((0, 1), (1, 1)))  # nothing but the overlap is left of the bound
            break
        found = further
    return _below_overlap(found, distance, rate)


@refuses_wrong_arguments
def pair_power_curve(size: int, rate: Fraction | float | str, own: int, other: int) -> PowerCurve:
    """The power of the best test that looks at two records of a stratum, which nobody else equals in what is held.

    ``own`` and ``other`` are the numbers of records of the stratum that have the swap value of the first record, and
    that of the second. The two values differ. Where all other records share one held value, these two records tell all
    there is, and no test has more power; elsewhere :func:`swap_power_curve` is an upper bound.

    >>> pair_power_curve(100, 0.5, 50, 30).power([0.01, 0.05, 0.1]).round(4).tolist()
    [0.1215, 0.5272, 0.645]
    """
    first, second = pair_outcomes(size, rate, own, other)
    return curve_between(first.ravel(), second.ravel())


@refuses_wrong_arguments
def pair_outcomes(size: int, rate: Fraction | float | str, own: int, other: int) -> tuple[Array, Array]:
    """What two records of a stratum show after the swap, where the first had s and the second t, and where exchanged.

    Two arrays of probabilities [what the first shows, what the second shows], each s, t or another value. Values other
    than s and t are equally likely in both files, however many there are.

    >>> as_they_are, exchanged = pair_outcomes(100, 0.5, 50, 30)
    >>> round(float(as_they_are[0, 1] / exchanged[0, 1]), 3)  # the odds that they are as they are shown
    12.147
    """
    n, chance = checked_size(size), checked_rate(rate)
    if own < 1 or other < 1 or own + other > n:
        raise parameter_out_of_range("own, other", f"{own}, {other}", "at least 1, and together at most the size")
    law = equal_rates(n, chance)
    rest = np.array([own - 1, other - 1, n - own - other], dtype=np.float64)
    further = 1 / (n - 2) if n > 2 else 0.0
    apart = (law.both_move - law.exchanged - 2 * law.chained) * further / (n - 3) if n > 3 else 0.0
    first = apart * np.outer(rest, rest)
    # Two different records give the two values: of one value there is one fewer left. Of the other values together all
    # but what is left of the sum.
    first[0, 0] -= apart * rest[0]
    first[1, 1] -= apart * rest[1]
    first[0, 1] += law.both_stay
    first[1, 0] += law.exchanged
    first[0, :] += law.one_stays * further * rest
    first[:, 1] += law.one_stays * further * rest
    first[1, :] += law.chained * further * rest
    first[:, 0] += law.chained * further * rest
    first[2, 2] = 0.0
    first[2, 2] = max(0.0, 1 - math.fsum(first.ravel()))
    return first, first.T.copy()  # in the other file each of the two has the part of the other


@refuses_wrong_arguments
def pair_beliefs(size: int, rate: Fraction | float | str, own: int, other: int, odds: float = 1.0) -> Array:
    """The probability that the two records are as they were before the swap, after each outcome.

    ``odds`` are those before the release, of "the first has s and the second t" against "exchanged". Entries are as in
    :func:`pair_outcomes`; one that cannot happen is not a number.

    >>> pair_beliefs(100, 0.5, 50, 30).round(3)[0].tolist()  # the first shows s; the second s, t, another
    [0.5, 0.924, 0.746]
    """
    if not 0 < odds < math.inf:
        raise parameter_out_of_range("odds", odds, "above 0 and finite")
    first, second = pair_outcomes(size, rate, own, other)
    with np.errstate(invalid="ignore"):
        return np.asarray(odds * first / (odds * first + second))


# -- curves from laws ----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _of_sizes(sizes: tuple[int, ...], rate: Fraction) -> PowerCurve:
    return _above(_half_of(size, rate) for size in sizes)


@lru_cache(maxsize=4096)
def _half_of(size: int, rate: Fraction) -> tuple[Array, Array]:
    return _half(equal_rates(size, rate))


def _pairs(kinds: Rates) -> list[PairLaw]:
    """The laws of all pairs of rates of a stratum."""
    found = []
    for at, (first, _) in enumerate(kinds):
        for second, _ in kinds[at:]:
            left = {rate: many - (rate == first) - (rate == second) for rate, many in kinds}
            if min(left.values()) >= 0:
                found.append(pair_law(first, second, tuple((rate, many) for rate, many in left.items() if many)))
    return found


def _half(law: PairLaw) -> tuple[Array, Array]:
    """Vertices of the curve up to where level and power sum to one; it is symmetric, so they are half of it.

    Of each outcome and its mirror image the one with the larger power comes first, by likelihood ratio. Outcomes of
    large strata are put together in blocks; each block becomes two outcomes with the largest and the smallest ratio of
    its members and the same probabilities, which can only tell more.
    """
    families = [_blocks(np.minimum(p, q), np.maximum(p, q)) for p, q in law.families()]
    levels = np.concatenate([one for one, _, _ in families])
    powers = np.concatenate([two for _, two, _ in families])
    more = REMAINDER if any(merged for _, _, merged in families) else law.selected.remainder
    if more:  # at the steepest slope there is
        steep = law.largest_log_ratio
        levels = np.append(levels, more * math.exp(-min(steep, 700.0)) if steep < math.inf else 0.0)
        powers = np.append(powers, more)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(powers > 0, powers / levels, 1.0)
    order = np.argsort(-ratios, kind="stable")
    order = order[ratios[order] > 1]
    return _up_to_diagonal(np.cumsum(levels[order]), np.cumsum(powers[order]))


def _blocks(levels: Array, powers: Array) -> tuple[Array, Array, bool]:
    if len(levels) <= _BLOCKS:
        return levels, powers, False
    starts = np.linspace(0, len(levels), _BLOCKS + 1)[:-1].astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(levels > 0, powers / levels, 1.0)
    high, low = np.maximum.reduceat(ratios, starts), np.minimum.reduceat(ratios, starts)
    level, power = np.add.reduceat(levels, starts), np.add.reduceat(powers, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(high > low, np.clip((power - low * level) / (high - low), 0.0, level), level)
    steep = np.minimum(share * high, power)
    return np.append(share, level - share), np.append(steep, power - steep), True


def _up_to_diagonal(levels: Array, powers: Array) -> tuple[Array, Array]:
    """The part of a curve, and of the line from the origin, where level and power sum to at most one."""
    levels, powers = np.append(0.0, levels), np.append(0.0, powers)
    beyond = np.flatnonzero(levels + powers > 1)
    if len(beyond) == 0:
        return levels, powers
    at = int(beyond[0])
    before, after = levels[at - 1] + powers[at - 1], levels[at] + powers[at]
    share = (1 - before) / (after - before)
    level = levels[at - 1] + share * (levels[at] - levels[at - 1])
    return np.append(levels[:at], level), np.append(powers[:at], 1 - level)


def _above(halves: Iterable[tuple[Array, Array]]) -> PowerCurve:
    """The smallest curve above several, each given by one half; the other is its mirror image."""
    given = list(halves)
    levels = np.concatenate([part for x, y in given for part in (x, 1 - y)])
    powers = np.concatenate([part for x, y in given for part in (y, 1 - x)])
    return concave_hull(levels, powers)


# -- bounds --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _up_to(largest: int, rate: Fraction) -> PowerCurve:
    if largest <= _LISTED:
        return _of_sizes(tuple(range(2, largest + 1)), rate)
    if rate in (0, 1):
        return PowerCurve(((0, 1), (1, 1)))
    listed = 1 if 2 * rate <= 1 else min(largest, max(_LISTED, 4 * math.ceil(rate / (1 - rate))))
    if listed > _MOST_LISTED:
        return _bounded(0.0, equal_rates(largest, rate).largest_log_ratio)
    halves = [_half_of(size, rate) for size in range(2, listed + 1)]
    if listed < largest:
        steepest = max(equal_rates(size, rate).largest_log_ratio for size in (2, 3, listed + 1, largest) if size > 1)
        rest = np.array(_bounded(least_overlap(max(listed + 1, 2), rate), steepest).points)
        halves.append((rest[:, 0], rest[:, 1]))
    return _above(halves)


def least_overlap(least: int, rate: Fraction) -> float:
    """A probability by which the two laws overlap in every stratum of at least so many records.

    Where both records move, and k records move in all, the other file moves k, k - 1 or k - 2 of them. Such a
    permutation is at least as likely if d(k)/d(k-1) and d(k)/d(k-2) are at least o and o^2: always for p <= 1/2, else
    from some k on.
    """
    both = float(rate) ** 2  # over D, which is at most 1
    if 2 * rate <= 1:
        return both
    odds = rate / (1 - rate)
    enough = next((k for k in range(4, _MOST_LISTED) if _likelier(k, odds)), None)
    if enough is None:
        return 0.0
    law = equal_rates(least, rate)
    numbers = law.selected.numbers
    return both * max(0.0, float(law.selected.chances[numbers >= enough - 2].sum()) - REMAINDER)


def _likelier(k: int, odds: Fraction) -> bool:
    """Whether moving one or two fewer than k records is at least as likely for one permutation; then so for more."""
    if k > 30:
        return k - 1 >= odds
    return derangements(k) >= odds * derangements(k - 1) and derangements(k) >= odds**2 * derangements(k - 2)


def _bounded(overlap: float, steepest: float) -> PowerCurve:
    """The curve below level + 1 - overlap and below the lines of the largest likelihood ratio."""
    slope = math.exp(-min(steepest, 690.0))
    level = min(slope * (1 - overlap) / (1 - slope), slope / (1 + slope)) if slope < 1 else 0.5
    power = min(level + 1 - overlap, 1 - level)
    return _above([(np.array([0.0, level]), np.array([0.0, power]))])


def _after(inner: PowerCurve, outer: PowerCurve) -> PowerCurve:
    """The curve outer(inner(level)): straight between the vertices of one and where the other reaches its own."""
    x, y = np.array(inner.points).T
    steps = np.array(outer.points)[:, 0]
    rising = np.append(True, np.diff(y) > 0)
    reached = np.interp(steps[(steps > y[0])], y[rising], x[rising])
    levels = np.unique(np.concatenate([x, reached]))
    powers = np.asarray(outer.power(np.minimum(1.0, np.asarray(inner.power(levels)))))
    # Slopes between smaller levels are beyond the range of floats; such powers are allowed without a false alarm.
    return concave_hull(np.where(levels < _SMALLEST, 0.0, levels), powers)


def _below_overlap(curve: PowerCurve, distance: int, rate: Fraction | float | str | None) -> PowerCurve:
    """The lower of a curve and level + 1 - p^d, where that is a bound."""
    if rate is None or 2 * checked_rate(rate) > 1:
        return curve
    height = 1 - float(checked_rate(rate)) ** distance
    levels = np.array(curve.points)[:, 0]
    powers = np.asarray(curve.power(levels))
    crossed, share = crossings(powers - (levels + height))
    between = levels[crossed] + share * (levels[crossed + 1] - levels[crossed])
    at = np.concatenate([levels, between, [1 - height]])
    return concave_hull(at, np.minimum(np.minimum(1.0, at + height), np.asarray(curve.power(at))))
