"""The questions put to the runs of a swapping program, with safe p-values, and which faults they find how surely.

They rest on the law of Algorithm 3.2.1 and on nothing else: how many records of a stratum are selected, which ones,
where their values go, and that strata and runs are independent. Each question looks at the runs in all the ways in
which a program may go wrong there, and pays for their number; no p-value is too small.

A fault changes the law of what a question looks at. The power of an audit of a given size is the probability that the
p-value then falls below what is allotted to the question; sums of many independent terms are taken as normal, and
chi-square statistics as noncentral. :func:`smallest_rate` and :func:`smallest_bias` turn this round, and give the
smallest effects that are found with a given power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.lab.audit import p_values as tails
from stirred.lab.audit.laws import (
    all_derangements,
    chance_of_the_same,
    log_most_likely,
    mean_and_variance_selected,
    number_of_exchanges,
    number_selected,
)
from stirred.lab.audit.p_values import POWER, least_enough, smallest_of
from stirred.lab.audit.results import Answer
from stirred.lab.audit.swap_runs import (
    INTEGERS,
    Integers,
    MadeFile,
    Moved,
    OrderSeen,
    contrasts,
    exchanges,
    fingerprints,
    names_of_permutations,
    permutations_by,
    ranks,
    together,
)

stats = later("scipy.stats")

Floats = NDArray[np.float64]

ORDERS = ("order of the file", "held value", "swap value")
"""Orders of the records of a stratum that a program may work in."""
LISTED = (3, 4, 5)
"""Numbers of moved records whose derangements are all listed."""
EXCHANGES = 3
"""From so many cycles of two on they are counted together."""
EXCHANGING = 4
"""Fewer records than this have one way of exchanging."""
_BINS = 10
_FEWEST_IN_BINS = 50
"""The smallest strata whose records are divided into bins."""
_COMMON = 0.9
"""The least expected number of selected records, for numbers of strata to be compared with each other."""
_LEAST_VARIANCE = 25.0
"""Of the number moved in a run, for its spread to be looked at."""
_NOTHING_MOVED = "no record moved"
_FEW_MOVED = "too few records move in these runs"
_BY_THE_RATE = "If the rate itself is another one (see above), that alone can explain it."


@dataclass(frozen=True, eq=False, repr=False)
class SeenRun:
    """What is kept of one run of the program: who moved, and what the orders of rows and ids say."""

    moved: Moved
    order: OrderSeen
    id_order: OrderSeen | None
    """That of the new ids, where it is another one."""
    linked_order: tuple[float, ...]
    """By linked table, the p-value of its order."""


@dataclass(frozen=True, eq=False, repr=False)
class SeenRuns:
    """All runs of one audit, numbered in the orders that questions look at."""

    made: MadeFile
    runs: tuple[SeenRun, ...]

    @cached_property
    def moved(self) -> Moved:
        """The moved records of all runs, by run and stratum."""
        return together([one.moved for one in self.runs])

    @cached_property
    def selected(self) -> Integers:
        """How many moved: ``[run, stratum]``."""
        found = np.zeros((len(self.runs), len(self.made.sizes)), dtype=np.int64)
        for run, one in enumerate(self.runs):
            found[run, one.moved.stratum] = one.moved.counts
        return found

    @cached_property
    def labels(self) -> dict[str, Integers]:
        """The records of each stratum numbered from 0 in each of the :data:`ORDERS`."""
        made = self.made
        in_file = np.arange(made.records) - made.starts[:-1][made.stratum]
        return dict(zip(ORDERS, (in_file, made.held, made.swapped), strict=True))

    @cached_property
    def permutations(self) -> dict[str, Integers]:
        """The permutations of all groups, the records being numbered in each of these orders."""
        moved = self.moved
        return {name: permutations_by(moved, ranks(moved, label[moved.record])) for name, label in self.labels.items()}

    @cached_property
    def contrasts(self) -> dict[str, tuple[Floats, Floats]]:
        """By order of the records, what shuffles and patterns of their permutations add up to (:func:`contrasts`)."""
        return {name: contrasts(one, self.moved.starts) for name, one in self.permutations.items()}


def answers(seen: SeenRuns) -> list[Answer]:
    """The answers to all questions about the law of a swap."""
    return [*_selection(seen), *_permutations(seen), *_independence(seen), *_order(seen)]


# -- how many records are selected, and which ----------------------------------------------------------------


def _selection(seen: SeenRuns) -> Iterator[Answer]:
    made, runs = seen.made, len(seen.runs)
    sizes, strata = np.unique(made.sizes, return_counts=True)
    total = int(seen.selected.sum())
    mean, variance = mean_and_variance_selected(made.sizes, made.rate)
    expected = float(mean.sum()) * runs
    yield Answer(
        "rate",
        "Are as many records selected as the rate says?",
        tails.of_number_selected(total, sizes, strata * runs, made.rate),
        f"{total:,} moved in all; {expected:,.0f} were to be expected.",
        f"The rate is another one: {total:,} moved in all, and {expected:,.0f} were to be expected.",
        4.0,
        {"moved": total, "expected": expected},
    )
    by_run = seen.selected.sum(axis=1)
    yield Answer(
        "spread-over-runs",
        "Does the number of moved records vary from run to run as it should?",
        spread_over_runs(by_run, float(variance.sum())),
        f"From {by_run.min():,} to {by_run.max():,} moved in a run.",
        f"From {by_run.min():,} to {by_run.max():,} moved in a run, with a standard deviation that should be "
        f"{variance.sum() ** 0.5:,.1f} if records, strata and runs are decided independently. {_BY_THE_RATE}",
        unasked="so few records are to move in a run that nothing can be said"
        if variance.sum() < _LEAST_VARIANCE
        else "",
    )
    tables = []
    for size, number in zip(sizes[sizes > 1], strata[sizes > 1], strict=True):
        found = np.bincount(seen.selected[:, made.sizes == size].ravel(), minlength=size + 1)
        tables.append((found, number * runs * number_selected(int(size), made.rate)))
    p_value, degrees = tails.of_counts(tables)
    yield Answer(
        "selected-by-stratum",
        "Are the numbers selected in strata of each size binomial, afresh where it is one?",
        p_value,
        f"They agree ({degrees} degrees of freedom).",
        "They are not: a lone selected record is not treated as stated, the rate is another one, or records are not "
        "selected independently.",
        unasked="" if degrees else "the runs draw too few strata of each size",
    )
    yield Answer(
        "which-are-selected",
        "Is every record of a stratum as likely to be selected as any other?",
        smallest_of(list(_positions(seen))),
        "Place in the file, held value and swap value make no difference.",
        "Some are likelier: the place in the file, the held value or the swap value decides with chance.",
        unasked="" if total else _NOTHING_MOVED,
    )


def spread_over_runs(by_run: Integers, variance: float) -> float:
    """P-value of the spread of numbers of moved records about their mean. They are whole, which half a record makes up
    for; what they are on average is the question of the rate."""
    if variance < _LEAST_VARIANCE:
        return 1.0
    away = np.abs(by_run - by_run.mean())
    most, least = np.sum((away + 0.5) ** 2) / variance, np.sum(np.maximum(away - 0.5, 0) ** 2) / variance
    small = float(stats.chi2.cdf(most, len(by_run) - 1))
    large = tails.skewed(float(stats.chi2.sf(least, len(by_run) - 1)), variance)
    return min(1.0, 2 * min(small, large))


def _positions(seen: SeenRuns) -> Iterator[float]:
    """P-values of where selected records stand in their strata, and in the file.

    Given their number they are drawn without replacement, whose sums are no more spread out than with it (Hoeffding).
    """
    made, record = seen.made, seen.moved.record
    size = made.sizes[made.stratum[record]]
    binned = size >= _FEWEST_IN_BINS
    in_sizes = np.bincount(size[binned], minlength=1)
    expected = np.zeros(_BINS)
    for one in np.flatnonzero(in_sizes):
        expected += in_sizes[one] * np.bincount(_BINS * np.arange(one) // one, minlength=_BINS) / one
    for label in seen.labels.values():
        rank = (2 * label[record] - size + 1) / (size - 1)
        yield tails.of_bounded_sum(float(np.sum(rank)), float(np.sum((size + 1) / (3 * (size - 1)))))
        bins = _BINS * label[record][binned] // size[binned]
        yield tails.of_counts([(np.bincount(bins, minlength=_BINS), expected)])[0]
    place = made.row / made.records
    mean = np.bincount(made.stratum, weights=place) / made.sizes
    square = np.bincount(made.stratum, weights=place**2) / made.sizes
    inside = made.stratum[record]
    away = float(np.sum(place[record] - mean[inside]))
    yield tails.of_bounded_sum(away, float(np.sum((square - mean**2)[inside])))


# -- where values go -----------------------------------------------------------------------------------------


def _permutations(seen: SeenRuns) -> Iterator[Answer]:
    p_values, degrees = [], 0
    for permutation in seen.permutations.values():
        p_value, degrees = tails.of_counts(_listed(permutation, seen.moved.starts))
        p_values.append(p_value)
    yield Answer(
        "derangements",
        f"Is every derangement of {LISTED[0]} to {LISTED[-1]} records as likely as any other?",
        smallest_of(p_values),
        f"They agree ({degrees} degrees of freedom).",
        "Some are likelier than others, or do not occur at all.",
        unasked="" if degrees else _FEW_MOVED,
    )
    exchanging = seen.moved.counts >= EXCHANGING
    found = np.bincount(
        np.minimum(exchanges(seen.permutations[ORDERS[0]], seen.moved.starts)[exchanging], EXCHANGES),
        minlength=EXCHANGES + 1,
    )
    of_size = np.bincount(seen.moved.counts[exchanging], minlength=1)
    law = np.zeros(EXCHANGES + 1)
    for k in np.flatnonzero(of_size):
        law += of_size[k] * np.array(number_of_exchanges(int(k), EXCHANGES))
    p_value, degrees = tails.of_counts([(found, law)])
    yield Answer(
        "exchanges",
        f"Do {EXCHANGING} or more records exchange in pairs as often as in a random derangement?",
        p_value,
        "They agree.",
        "They do not: values go round in other cycles than those of a random derangement.",
        unasked="" if degrees else _FEW_MOVED,
    )
    chances = {
        f"{way}, by {name}": tails.of_independent_sums(sums)
        for name, (integers, _) in seen.contrasts.items()
        for way, sums in zip(INTEGERS, integers, strict=True)
    }
    least = min(chances, key=lambda way: chances[way])
    few = _too_few_sums([sums for integers, _ in seen.contrasts.values() for sums in integers])
    yield Answer(
        "integers",
        "Are the integers of which a shuffle would be made as often in the lower half as in the upper?",
        smallest_of(list(chances.values())),
        "No shuffle shows a bias.",
        f"They are biased, if positions are filled {least}.",
        4.0,
        {} if few else {"ways": len(chances), "smallest": least},
        few,
    )
    patterns = [sums for _, several in seen.contrasts.values() for sums in several]
    yield Answer(
        "givers",
        "Is every other moved record of the stratum as likely to be the giver?",
        smallest_of([tails.of_independent_sums(sums) for sums in patterns]),
        "Places in the file, held values and swap values make no difference.",
        "Givers are nearer or farther, or earlier or later, than chance would have them.",
        unasked=_too_few_sums(patterns),
    )


def _too_few_sums(several: Sequence[Floats]) -> str:
    """Why nothing can be said of any of these sums, where it cannot."""
    most = max(tails.sums_that_count(sums) for sums in several)
    return "" if most >= tails.FEWEST_GROUPS else _FEW_MOVED


def _listed(permutation: Integers, starts: Integers) -> list[tuple[Integers, Floats]]:
    """How often each derangement was drawn, and the expected number."""
    tables = []
    for k in LISTED:
        names = names_of_permutations(permutation, starts, k)
        known = np.array(all_derangements(k)) @ (k ** np.arange(k - 1, -1, -1))
        found = np.bincount(np.searchsorted(known, names), minlength=len(known))
        tables.append((found, np.full(len(known), len(names) / len(known))))
    return tables


# -- strata and runs are independent -------------------------------------------------------------------------


def _independence(seen: SeenRuns) -> Iterator[Answer]:
    made, selected = seen.made, seen.selected
    mean, variance = mean_and_variance_selected(made.sizes, made.rate)
    common = np.flatnonzero((made.sizes > 1) & (made.sizes * made.rate >= _COMMON))
    standardised = (selected[:, common] - mean[common]) / np.sqrt(variance[common])
    first = np.full(len(made.sizes), made.records)
    np.minimum.at(first, made.stratum, made.row)
    in_file = standardised[:, np.argsort(first[common])]
    numbers = [tails.of_independent_sums((one[:, 1:] * one[:, :-1]).ravel()) for one in (standardised, in_file)]
    marks = [fingerprints(seen.moved, label) for label in seen.labels.values()]
    pairs = _pairs_of_strata(made.sizes)
    same = [_coincidences(seen, mark, pairs) for mark in marks]
    chances = [tails.of_rare_coincidences(*one) for one in same]
    most_alike, expected = same[int(np.argmin(chances))]
    moved = bool(selected.any())
    if min(chances) <= min(numbers):
        told = (
            f"{most_alike:,} pairs of strata of equal size moved alike, where up to {expected:,.1f} were to be expected"
        )
    else:
        told = "neighbouring strata have numbers of moved records that are related"
    yield Answer(
        "between-strata",
        "Are strata permuted independently of each other?",
        smallest_of([*numbers, *chances]),
        f"Nothing shows that they are not. Of {len(same)} ways of comparing them, the most telling one finds "
        f"{most_alike:,} pairs of strata of equal size that moved alike; up to {expected:,.1f} were to be expected.",
        f"They are not as independent strata at the stated rate would be: {told}. {_BY_THE_RATE}",
        unasked=_NOTHING_MOVED if not moved else "" if pairs.size or len(common) > 1 else "there is one stratum only",
    )
    drawn = {(one.moved.record.tobytes(), one.moved.giver.tobytes()) for one in seen.runs}
    yield Answer(
        "repeated-run",
        "Is every run drawn afresh?",
        1.0 if len(drawn) == len(seen.runs) else repeated_run(made.sizes, made.rate, len(seen.runs)),
        "No two runs are alike.",
        "Two runs moved the same records in the same way: the randomness is repeated, or so few records move, if any, "
        "that runs are alike (see above).",
    )
    whole = np.arange(len(made.sizes))
    alike = _coincidences(seen, marks[0], np.stack([whole, whole]), in_next_run=True)
    yield Answer(
        "between-runs",
        "Are runs independent of each other?",
        smallest_of(
            [
                tails.of_independent_sums((standardised[1:] * standardised[:-1]).ravel()),
                tails.of_rare_coincidences(*alike),
                _overlap(seen),
            ]
        ),
        "One run does not tell which records the next one moves.",
        "They are not as independent runs at the stated rate would be: records that moved in one run move more or less "
        f"often in the next, or strata move alike or in related numbers. {_BY_THE_RATE}",
        unasked="" if moved else _NOTHING_MOVED,
    )


def _pairs_of_strata(sizes: Integers) -> Integers:
    """Strata of equal size two by two, each in one pair."""
    order = np.argsort(sizes, kind="stable")
    size = sizes[order]
    begin = np.concatenate([[True], np.diff(size) != 0])
    within = np.arange(len(order)) - np.maximum.accumulate(np.where(begin, np.arange(len(order)), 0))
    first = np.flatnonzero((within[:-1] % 2 == 0) & (size[:-1] == size[1:]) & (size[:-1] > 1))
    return np.stack([order[first], order[first + 1]])


def _coincidences(
    seen: SeenRuns, marks: NDArray[np.uint64], pairs: Integers, in_next_run: bool = False
) -> tuple[int, float]:
    """How many pairs of strata moved alike, and how many are to be expected at most.

    The second of a pair is of the same run, or of the next one; then each run is in one pair of runs only.
    """
    table = np.zeros(seen.selected.shape, dtype=np.uint64)
    ends = np.cumsum([0, *(len(one.moved.stratum) for one in seen.runs)])
    for run, one in enumerate(seen.runs):
        table[run, one.moved.stratum] = marks[ends[run] : ends[run + 1]]
    here, there = (table[:-1:2], table[1::2]) if in_next_run else (table, table)
    left, right = here[:, pairs[0]], there[:, pairs[1]]
    alike = int(np.count_nonzero((left == right) & (left != 0)))
    sizes, number = np.unique(seen.made.sizes[pairs[0]], return_counts=True)
    chance = sum(
        many * chance_of_the_same(int(size), seen.made.rate)
        for size, many in zip(sizes, number, strict=True)
        if size > 1
    )
    return alike, float(chance) * len(left)


def repeated_run(sizes: Integers, rate: float, runs: int) -> float:
    """P-value of two equal runs: the probability of the likeliest outcome, for each pair of runs."""
    every, strata = np.unique(sizes, return_counts=True)
    log_chance = sum(many * log_most_likely(int(size), rate) for size, many in zip(every, strata, strict=True))
    return float(min(1.0, runs * (runs - 1) / 2 * np.exp(log_chance)))


def _overlap(seen: SeenRuns) -> float:
    """P-value of how many records move in two runs one after the other: given the numbers, hypergeometric."""
    in_both = sum(
        len(np.intersect1d(before.moved.record, after.moved.record, assume_unique=True))
        for before, after in pairwise(seen.runs)
    )
    expected = float(np.sum(seen.selected[1:] * seen.selected[:-1] / seen.made.sizes))
    return tails.of_bounded_sum(in_both - expected, expected)


# -- the order of released rows ------------------------------------------------------------------------------


def _order(seen: SeenRuns) -> Iterator[Answer]:
    yield from _of_order("row", "released rows", [one.order for one in seen.runs])
    if seen.made.plan.id:
        yield from _of_order("id", "new ids", [one.id_order or one.order for one in seen.runs])
    for place, entry in enumerate(seen.made.linked):
        yield Answer(
            f"row-order-of-{entry.plan.name}",
            f"Is the order of the rows of '{entry.plan.name}' free of that of the input?",
            smallest_of([one.linked_order[place] for one in seen.runs]),
            "It is unrelated.",
            "It is not: the order betrays where rows stood in the input.",
        )


def _of_order(what: str, words: str, orders: Sequence[OrderSeen]) -> Iterator[Answer]:
    yield Answer(
        f"{what}-order",
        f"Is the order of {words} free of that of the input?",
        smallest_of([one.input_order for one in orders]),
        "It is unrelated.",
        "It is not: the order betrays where records stood in the input.",
    )
    by_stratum = np.bincount(
        np.concatenate([one.groups for one in orders]), weights=np.concatenate([one.earlier_values for one in orders])
    )
    moved = tails.of_bounded_sum(sum(one.moved_ranks for one in orders), sum(one.moved_variance for one in orders))
    yield Answer(
        f"moved-in-{what}-order",
        f"Does the order of {words} keep secret which records moved, and whose values they had?",
        smallest_of([moved, tails.of_independent_sums(by_stratum.astype(np.float64))]),
        "It does.",
        "It does not: moved records stand apart, or in the order of the values that they had before.",
        unasked="" if any(one.moved_variance for one in orders) else _NOTHING_MOVED,
    )


_LISTED_UP_TO = 7
_UNLIKELY = 1e-12
"""A relative probability that makes no difference."""


@dataclass(frozen=True, eq=False)
class Effort:
    """How much an audit looks at: the sizes of the strata, the rate, the number of runs."""

    sizes: Integers
    rate: float
    runs: int

    @cached_property
    def by_size(self) -> list[tuple[int, int]]:
        """Sizes of two or more, and how often a stratum of that size is drawn."""
        sizes, number = np.unique(self.sizes[self.sizes > 1], return_counts=True)
        return [(int(size), int(many) * self.runs) for size, many in zip(sizes, number, strict=True)]

    @cached_property
    def integers_seen(self) -> tuple[float, float]:
        """Of the sums :data:`INTEGERS` of all groups: the sum of their variances, and that of the squared variances."""
        total = squares = 0.0
        for size, times in self.by_size:
            law = number_selected(size, self.rate)
            k = np.flatnonzero(law > _UNLIKELY * law.max())
            variances = np.array([variance_of_integers(int(one)) for one in k])
            total += times * float(np.sum(law[k] * variances))
            squares += times * float(np.sum(law[k] * variances**2))
        return total, squares

    def moved(self, rate: float) -> tuple[float, float]:
        """Mean and variance of the number of records that move in all runs at some rate."""
        sizes, times = np.array(self.by_size).T
        mean, variance = mean_and_variance_selected(sizes, rate)
        return float(np.sum(times * mean)), float(np.sum(times * variance))


def power_of_rate(effort: Effort, rate: float, allotted: float) -> float:
    """The power of the question ``rate`` if records are selected with another rate.

    Its p-value is below the allotted one from a deviation of sqrt(2 V ln(2 / allotted)) on, where V is the variance.
    """
    mean, variance = effort.moved(effort.rate)
    other_mean, other_variance = effort.moved(rate)
    needed = math.sqrt(2 * variance * math.log(2 / allotted))
    return float(stats.norm.sf((needed - abs(other_mean - mean)) / math.sqrt(other_variance)))


def power_of_bias(effort: Effort, bias: float, allotted: float) -> float:
    """The power of the question ``integers`` if integers of a shuffle fall this much too often into the lower half.

    A bias of .01 makes each integer of the lower half 1% likelier than it should be, and of the upper half less likely.
    The sum S of a group then has the mean ``bias`` times its variance v, in first order. With S^2 in the mean
    v + bias^2 v^2, and S^4 that of a normal number, so many sums count as :func:`tails.of_independent_sums` finds.
    """
    total, squares = effort.integers_seen
    if total**2 < tails.FEWEST_GROUPS * 3 * squares:
        return 0.0
    needed = float(stats.t.isf(allotted / (2 * len(INTEGERS) * len(ORDERS)), total**2 / (3 * squares) - 1))
    larger = math.sqrt(1 + bias**2 * squares / total)
    return float(stats.norm.sf(needed * larger - bias * math.sqrt(total)))


def smallest_rate(effort: Effort, allotted: float) -> float:
    """By how much a rate must be off, at least, to be found with the power that is wanted."""
    return _smallest(lambda off: power_of_rate(effort, effort.rate + off, allotted), (1 - effort.rate) * 0.999)


def smallest_bias(effort: Effort, allotted: float) -> float:
    """The smallest bias of integers that is found with the power that is wanted; 1 if none is."""
    return _smallest(lambda bias: power_of_bias(effort, bias, allotted), 1.0)


@lru_cache(maxsize=65536)
def variance_of_integers(k: int) -> float:
    """The variance of one of the sums :data:`INTEGERS` in a uniform derangement of k records.

    Up to seven records by going through all of them. For more, each integer adds nearly 1: j(i) = i adds nothing, nor
    does the middle of an odd number, which is k - 3/2 ln k - 0.4 in all (compared with draws in the tests).
    """
    if k < 3:
        return 0.0
    if k > _LISTED_UP_TO:
        return k - 1.5 * math.log(k) - 0.4
    every = np.array(all_derangements(k), dtype=np.int64)
    integers, _ = contrasts(every.ravel(), np.arange(len(every) + 1) * k)
    return float(np.mean(integers[0] ** 2))


def _smallest(power_at: Callable[[float], float], most: float) -> float:
    """The smallest effect that is found with the power that is wanted; ``most`` if that is not."""
    return most if power_at(most) < POWER else least_enough(lambda effect: power_at(effect) >= POWER, most)
