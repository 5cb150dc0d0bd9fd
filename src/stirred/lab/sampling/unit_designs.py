"""Designs that sample single units: all alike, by equal steps through a fixed order, or in proportion to their sizes.

Simple random sampling without replacement gives every set of n units the same probability: pi_i = n/N and
pi_ij = n(n-1) / (N(N-1)). With replacement n units are drawn independently, so a unit can be drawn repeatedly. Under
Bernoulli sampling each unit tosses the same coin, and the number of sampled units varies.

Systematic sampling has one random start. Lay the sizes x_i end to end, X in all, and mark them at a start that is
uniform below X/n and from there in steps of X/n. Times n everything is whole: unit i holds n x_i points, marks are X
apart, and a whole start uniform on 0, ..., X - 1 gives the same law. Seen from the start, a unit is an arc of n x_i
points on a circle of X points, and two units are sampled together if their arcs share the start. Keep in mind: only the
start is random. In an order that an attacker knows this is a sample of one cluster, and sampling amplifies nothing
(section 6.4.1 of the thesis).

With sizes x_1, ..., x_N of sum X and n units expected, pi_i = n x_i / X (section 7.4 of the thesis, whose formula lacks
brackets: n x_i / (N x-bar)). No design can have this with a unit above X/n, nor with a size of 0, so both are refused.
Keep in mind: changing one unit's size changes the probability, and the weight, of every unit.

Poisson sampling is n coins, and its sample size varies. Systematic sampling has a fixed size, and pairs that are never
sampled together. Sampford (1967) has a fixed size n and all pairs; a set s of n units has the probability

    P(s)  proportional to  (sum over k in s of 1 - pi_k)  times  (product over k in s of pi_k / (1 - pi_k)).
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.lab.sampling.frames import (
    MOST_EXACT,
    Design,
    Frame,
    Listed,
    OfFixedSize,
    Pairs,
    UnitFractions,
    Units,
    enough,
    exact,
    independent_pairs,
    listable,
    pairs_of_equals,
    subsets,
    whole,
)
from stirred.noise import RandomSource, select, shuffle_groups, uniform_integers
from stirred.noise.coins import bernoulli


class _AllAlike(Design):
    """Any two units, and any two pairs, have the same probability."""

    depends_on = ()

    def _check(self, frame: Frame) -> None:
        pass

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(self._chances(frame.units)[0], len(units))

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        return pairs_of_equals(*self._chances(frame.units), len(units))

    def _separates(self, frame: Frame) -> bool:
        return frame.units > 1 and self._chances(frame.units)[1] == 0

    @abstractmethod
    def _chances(self, population: int) -> tuple[Fraction, Fraction]:
        """The probability that a unit is sampled, and that a pair is."""


@dataclass(frozen=True)
class Census(_AllAlike):
    """Every unit is taken. As a second stage it makes a cluster sample."""

    def sample_size(self, frame: Frame) -> int:
        return frame.units

    def _chances(self, population: int) -> tuple[Fraction, Fraction]:
        return Fraction(1), Fraction(1)

    def _listed(self, frame: Frame, most: int) -> Listed:
        return [(tuple(range(frame.units)), Fraction(1))]

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return np.arange(frame.units)


@dataclass(frozen=True)
class SimpleRandom(OfFixedSize, _AllAlike):
    """Simple random sampling without replacement: every set of ``sample`` units is equally likely.

    >>> from stirred.noise import SeededSource
    >>> drawn = SimpleRandom(2).draw(Frame.of(5), SeededSource(1))
    >>> drawn.units.tolist(), drawn.weights[0]
    ([1, 2], Fraction(5, 2))
    """

    def _chances(self, population: int) -> tuple[Fraction, Fraction]:
        n, N = self.sample, population
        return Fraction(n, N), Fraction(n * (n - 1), max(N * (N - 1), 1))

    def _listed(self, frame: Frame, most: int) -> Listed:
        number = subsets(frame.units, self.sample)
        listable(number, most)
        return ((sample, Fraction(1, number)) for sample in itertools.combinations(range(frame.units), self.sample))

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return shuffle_groups(np.array([0, frame.units], dtype=np.int64), source)[: self.sample]


@dataclass(frozen=True)
class WithReplacement(_AllAlike, OfFixedSize):
    """Simple random sampling with replacement: ``sample`` independent draws, each uniform among all units.

    The weight of a draw is N/n (Hansen and Hurwitz 1943), and a unit that is drawn twice counts twice.

    >>> design = WithReplacement(2)
    >>> design.inclusion(Frame.of(3))[0], design.weights(Frame.of(3))[0]
    (Fraction(5, 9), Fraction(3, 2))
    """

    with_replacement: ClassVar[bool] = True

    def sample_size(self, frame: Frame) -> int | None:
        """None: the number of draws is fixed, that of different units is not."""
        return None if self.sample > 1 and frame.units > 1 else 1

    def _expected_times(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(Fraction(self.sample, frame.units), len(units))

    def _chances(self, population: int) -> tuple[Fraction, Fraction]:
        n, N = self.sample, population
        without_one, without_two = Fraction(N - 1, N) ** n, Fraction(max(N - 2, 0), N) ** n
        return 1 - without_one, 1 - 2 * without_one + without_two

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(subsets(frame.units + self.sample - 1, self.sample), most)
        orders, sequences = math.factorial(self.sample), frame.units**self.sample
        for sample in itertools.combinations_with_replacement(range(frame.units), self.sample):
            repeats = math.prod(math.factorial(times) for times in Counter(sample).values())
            yield sample, Fraction(orders // repeats, sequences)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return uniform_integers(frame.units, self.sample, source)


@dataclass(frozen=True)
class Bernoulli(_AllAlike):
    """Each unit is sampled independently with the same probability ``rate``; the sample can be empty.

    >>> Bernoulli("1/20").joint(Frame.of(2))[0, 1]
    Fraction(1, 400)
    """

    rate: Any

    def __post_init__(self) -> None:
        wanted = "a number above 0 and at most 1"
        rate = exact("The sampling rate", self.rate, wanted)
        if not 0 < rate <= 1:
            raise errors.design_number("The sampling rate", rate, wanted)
        object.__setattr__(self, "rate", rate)

    def sample_size(self, frame: Frame) -> int | None:
        return frame.units if self.rate == 1 else None

    def _chances(self, population: int) -> tuple[Fraction, Fraction]:
        return self.rate, self.rate**2

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(1 << min(frame.units, 64), most)
        for size in range(frame.units + 1):
            chance = self.rate**size * (1 - self.rate) ** (frame.units - size)
            yield from ((sample, chance) for sample in itertools.combinations(range(frame.units), size))

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return select(frame.units, self.rate, source)


@withheld
@dataclass(frozen=True, eq=False)
class Arcs:
    """Of each unit: where its points end on the line of n X points; and the length X of the circle."""

    ends: NDArray[np.int64]
    lengths: NDArray[np.int64]
    circle: int
    sample: int

    @classmethod
    def of(cls, sizes: NDArray[np.int64], sample: int) -> Arcs:
        """Of units with these sizes; their sum times the sample size was checked to be below 2^62."""
        lengths = sample * sizes
        return cls(np.cumsum(lengths), lengths, int(sizes.sum()), sample)

    def sampled(self, start: int) -> NDArray[np.int64]:
        """The units at the marks that begin at ``start``."""
        marks = start + self.circle * np.arange(self.sample, dtype=np.int64)
        return np.searchsorted(self.ends, marks, side="right")

    def drawn(self, source: RandomSource) -> NDArray[np.int64]:
        return self.sampled(int(uniform_integers(self.circle, 1, source)[0]))

    def joint(self, units: Units) -> Pairs:
        first, last = self._on_circle(units)
        together = np.zeros((len(units), len(units)), dtype=np.int64)
        for turn in (-self.circle, 0, self.circle):
            shared = np.minimum.outer(last, last + turn) - np.maximum.outer(first, first + turn)
            together += np.maximum(shared, 0)
        shares = {count: Fraction(count, self.circle) for count in np.unique(together).tolist()}
        pairs = np.empty(together.shape, dtype=object)
        pairs.ravel()[:] = [shares[count] for count in together.ravel().tolist()]
        return pairs

    def some_do_not_meet(self) -> bool:
        """Whether the arcs of some two units have no point in common, so that they are never sampled together."""
        first, last = self._on_circle(np.arange(len(self.ends)))
        order = np.argsort(first, kind="stable")
        starts = np.concatenate([first[order], first[order] + self.circle])
        ends = np.concatenate([last[order], last[order] + self.circle])
        earliest = np.minimum.accumulate(ends[::-1])[::-1]  # of the arcs that start here or later
        return bool(np.any(earliest[np.searchsorted(starts, last)] <= first + self.circle))

    def listed(self, most: int) -> Listed:
        """Samples change only where an arc begins."""
        starts = np.unique((self.ends - self.lengths) % self.circle)
        listable(len(starts), most)
        widths = np.diff(np.append(starts, self.circle))
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            yield tuple(self.sampled(start).tolist()), Fraction(width, self.circle)

    def _on_circle(self, units: Units) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = (self.ends - self.lengths)[units] % self.circle
        return first, first + self.lengths[units]


class OnCircle(Design):
    """A design whose samples are the units whose arcs hold one random start."""

    @abstractmethod
    def _arcs(self, frame: Frame) -> Arcs: ...

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        return self._arcs(frame).joint(units)

    def _separates(self, frame: Frame) -> bool:
        return self._arcs(frame).some_do_not_meet()

    def _listed(self, frame: Frame, most: int) -> Listed:
        return self._arcs(frame).listed(most)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return self._arcs(frame).drawn(source)


@dataclass(frozen=True)
class Systematic(OfFixedSize, OnCircle):
    """Systematic sampling of ``sample`` units with equal probabilities, in the order of the frame.

    The step N/n need not be whole: marks at a random start and steps of exactly N/n always hit ``sample`` units.

    >>> {sample: str(chance) for sample, chance in Systematic(2).samples(Frame.of(5)).items()}
    {(0, 2): '1/5', (0, 3): '1/5', (1, 3): '1/5', (1, 4): '1/5', (2, 4): '1/5'}
    """

    depends_on = ("order",)

    def _check(self, frame: Frame) -> None:
        super()._check(frame)
        if self.sample * frame.units >= MOST_EXACT:
            raise errors.sizes_too_fine("The number of units times the sample size", "2^62")

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(Fraction(self.sample, frame.units), len(units))

    def _arcs(self, frame: Frame) -> Arcs:
        return Arcs.of(np.ones(frame.units, dtype=np.int64), self.sample)


@dataclass(frozen=True)
class EveryKth(Design):
    """One of the first ``interval`` units at random, and every ``interval``-th after it.

    Every unit has the probability 1/interval; sample sizes differ by one where the interval does not divide N.

    >>> EveryKth(2).samples(Frame.of(5))
    {(0, 2, 4): Fraction(1, 2), (1, 3): Fraction(1, 2)}
    """

    interval: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", whole("The interval", self.interval))

    depends_on = ("order",)

    def sample_size(self, frame: Frame) -> int | None:
        size, over = divmod(frame.units, self.interval)
        return None if over else size

    def _check(self, frame: Frame) -> None:
        # A longer interval would leave the sample empty for some starts.
        if self.interval > frame.units:
            raise errors.design_number(
                "The interval", f"{self.interval:,} in a frame of {frame.units:,} units", "an interval within the frame"
            )

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        return UnitFractions.same(Fraction(1, self.interval), len(units))

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        remainders = units % self.interval
        choices = np.array([Fraction(0), Fraction(1, self.interval)], dtype=object)
        return np.asarray(choices[np.equal.outer(remainders, remainders).astype(np.int64)])

    def _separates(self, frame: Frame) -> bool:
        return self.interval > 1

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(self.interval, most)
        for start in range(self.interval):
            yield tuple(range(start, frame.units, self.interval)), Fraction(1, self.interval)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return np.arange(int(uniform_integers(self.interval, 1, source)[0]), frame.units, self.interval)


# -- in proportion to size ---------------------------------------------------------------------------------------

MOST_FOR_SAMPFORD = 200
"""Units in a frame up to which Sampford's probabilities of pairs are computed, in whole numbers of many digits."""


class _BySize(Design):
    """Probabilities are proportional to the sizes of the frame, and add up to the expected sample size."""

    depends_on: ClassVar[tuple[str, ...]] = ("sizes",)

    @property
    @abstractmethod
    def _expected(self) -> Fraction: ...

    def _check(self, frame: Frame) -> None:
        enough(math.ceil(self._expected), frame.units)
        n, sizes, total = self._expected, _sizes(frame), _total(frame)
        if max(n.numerator * int(sizes.max()), max(n.numerator, n.denominator) * total) >= MOST_EXACT:
            raise errors.sizes_too_fine("The sum of the sizes (whole numbers) times the sample size", "2^62")
        above = int(np.count_nonzero(n.numerator * sizes > n.denominator * total))
        if above:
            raise errors.size_too_large(above, n)

    def _inclusion(self, frame: Frame, units: Units) -> UnitFractions:
        different, codes = np.unique(_sizes(frame)[units], return_inverse=True)
        share = self._expected / _total(frame)
        return UnitFractions(tuple(share * size for size in different.tolist()), codes.astype(np.int64))


@dataclass(frozen=True)
class Poisson(_BySize):
    """Each unit is sampled independently, with a probability proportional to its size; ``expected`` units on average.

    For given probabilities let them be the sizes, and ``expected`` their sum.

    >>> design = Poisson(2)
    >>> [str(chance) for chance in design.inclusion(Frame.of(sizes=[10, 20, 30, 40]))]
    ['1/5', '2/5', '3/5', '4/5']
    """

    expected: Any

    def __post_init__(self) -> None:
        wanted = "a number above 0"
        expected = exact("The expected sample size", self.expected, wanted)
        if expected <= 0:
            raise errors.design_number("The expected sample size", expected, wanted)
        object.__setattr__(self, "expected", expected)

    @property
    def _expected(self) -> Fraction:
        return Fraction(self.expected)

    def sample_size(self, frame: Frame) -> int | None:
        return frame.units if self.expected == frame.units else None

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        return independent_pairs(self._inclusion(frame, units))

    def _separates(self, frame: Frame) -> bool:
        return False

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(1 << min(frame.units, 64), most)
        chances = list(self._inclusion(frame, frame.chosen(None)))
        for taken in itertools.product((False, True), repeat=frame.units):
            chance = math.prod(p if yes else 1 - p for p, yes in zip(chances, taken, strict=True))
            yield tuple(unit for unit, yes in enumerate(taken) if yes), Fraction(chance)

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        return _Coins.of(frame, self._expected).toss(source)


class _BySizeAndNumber(_BySize, OfFixedSize):
    """Probabilities proportional to size, for a number of units that is fixed."""

    @property
    def _expected(self) -> Fraction:
        return Fraction(self.sample)


@dataclass(frozen=True)
class SystematicBySize(OnCircle, _BySizeAndNumber):
    """Systematic sampling proportional to size: steps of equal length through the sizes laid end to end.

    The start is uniform within the first step. Units keep the order of the frame.

    >>> design, frame = SystematicBySize(2), Frame.of(sizes=[10, 20, 30, 40])
    >>> {sample: str(chance) for sample, chance in design.samples(frame).items()}
    {(0, 2): '1/5', (1, 3): '2/5', (2, 3): '2/5'}
    """

    depends_on = ("order", "sizes")

    def _arcs(self, frame: Frame) -> Arcs:
        return Arcs.of(_sizes(frame), self.sample)


@dataclass(frozen=True)
class Sampford(_BySizeAndNumber):
    """A fixed number of units with probabilities exactly proportional to size, any two of them possible.

    Only if a single unit is sampled, beside those that are certain, are there pairs that are never together.

    >>> design, frame = Sampford(2), Frame.of(sizes=[1, 1, 2, 2])
    >>> str(design.inclusion(frame)[3]), str(design.joint(frame)[2, 3])
    ('2/3', '8/21')
    """

    def _joint(self, frame: Frame, units: Units) -> Pairs:
        if frame.units > MOST_FOR_SAMPFORD:
            raise errors.too_many_pairs(frame.units, MOST_FOR_SAMPFORD, "Sampford in a frame")
        pairs = _sampford_pairs(self.sample, tuple(_sizes(frame).tolist()))
        return pairs[np.ix_(units, units)]

    def _separates(self, frame: Frame) -> bool:
        # Units that are certain aside, a sample of one never has two.
        certain = int(np.count_nonzero(self.sample * _sizes(frame) == _total(frame)))
        return self.sample - certain == 1 and frame.units > self.sample

    def _listed(self, frame: Frame, most: int) -> Listed:
        listable(subsets(frame.units, self.sample), most)
        taken, left = _odds(self.sample, _sizes(frame).tolist())
        sets = list(itertools.combinations(range(frame.units), self.sample))
        if frame.units == self.sample:
            return [(sets[0], Fraction(1))]
        masses = [
            sum(left[k] for k in s) * math.prod(taken[k] if k in s else left[k] for k in range(frame.units))
            for s in sets
        ]
        return [(s, Fraction(mass, sum(masses))) for s, mass in zip(sets, masses, strict=True)]

    def _drawn(self, frame: Frame, source: RandomSource) -> NDArray[np.integer]:
        """Draw one unit k in proportion to pi_k (1 - pi_k) and toss the coins of all others, until n - 1 come up.

        A set s then comes from each of its k with a probability in proportion to 1 - pi_k times those of all coins as s
        has them, k's included: in all Sampford's law. About 2.5 times the square root of the sum of pi_i (1 - pi_i)
        attempts are needed.
        """
        if frame.units == self.sample:
            return np.arange(frame.units)
        sizes, total, coins = _sizes(frame), _total(frame), _Coins.of(frame, self._expected)
        taken, left = self.sample * sizes, total - self.sample * sizes
        ends = np.cumsum(np.minimum(taken, left))
        while True:
            # In proportion to the smaller of pi_k and 1 - pi_k, kept with the probability of the larger.
            first = int(np.searchsorted(ends, uniform_integers(int(ends[-1]), 1, source)[0], side="right"))
            if uniform_integers(total, 1, source)[0] >= max(taken[first], left[first]):
                continue
            others = coins.toss(source)
            others = others[others != first]
            if len(others) == self.sample - 1:
                return np.append(others, first)


# -- helpers -----------------------------------------------------------------------------------------------------


def _sizes(frame: Frame) -> NDArray[np.int64]:
    assert frame.sizes is not None  # the check looked
    return frame.sizes


def _total(frame: Frame) -> int:
    return int(_sizes(frame).sum())


@dataclass(frozen=True, eq=False)
class _Coins:
    """Independent coins with the inclusion probabilities, tossed in two steps so that few units are looked at.

    Units of class c have a probability p above 2^-c / 2 and at most 2^-c. They are first selected with probability
    2^-c, then kept with probability 2^c p; the product is p, exactly.
    """

    units: Units
    """Class by class."""
    kept: NDArray[np.int64]
    """2^c p of these units, times ``whole``."""
    whole: int
    numbers: tuple[int, ...]
    """How many units class 0, 1, ... has."""

    @classmethod
    def of(cls, frame: Frame, expected: Fraction) -> _Coins:
        kept, whole = expected.numerator * _sizes(frame), expected.denominator * _total(frame)
        classes = np.zeros(frame.units, dtype=np.int64)
        while np.any(small := 2 * kept <= whole):
            kept[small] *= 2
            classes[small] += 1
        order = np.argsort(classes, kind="stable")
        return cls(order, kept[order], whole, tuple(np.bincount(classes).tolist()))

    def toss(self, source: RandomSource) -> Units:
        """The units whose coins came up."""
        starts = itertools.accumulate(self.numbers, initial=0)
        chosen = np.concatenate(
            [
                start + select(number, Fraction(1, 1 << power), source).astype(np.int64)
                for power, (start, number) in enumerate(zip(starts, self.numbers, strict=False))
            ]
        )
        wholes = np.full(len(chosen), self.whole)
        kept = bernoulli((self.kept[chosen], wholes), len(chosen), source)
        return np.asarray(self.units[chosen[kept]])


def _odds(sample: int, sizes: list[int]) -> tuple[list[int], list[int]]:
    """pi_k and 1 - pi_k, both times the sum of the sizes."""
    total = sum(sizes)
    return [sample * size for size in sizes], [total - sample * size for size in sizes]


@lru_cache(maxsize=8)
def _sampford_pairs(sample: int, sizes: tuple[int, ...]) -> Pairs:
    """pi_ij in whole numbers: sums over all sets are coefficients of products of (left_k + taken_k z).

    With a second variable e, e^2 = 0, the coefficient of z^n e in the product of left_k + taken_k z (1 + left_k e) is
    the sum of the masses of all sets of n units. Sets that hold i and j are those of the product without i and j.
    """
    units, n = len(sizes), sample
    pairs = np.full((units, units), Fraction(1), dtype=object)
    if n == units:
        return pairs
    taken, left = _odds(n, list(sizes))
    plain, marked = [1] + [0] * n, [0] * (n + 1)  # coefficients of z^0, ..., z^n, without and with e
    for a, b in zip(taken, left, strict=True):
        for m in range(n, -1, -1):
            below, below_marked = (plain[m - 1], marked[m - 1]) if m else (0, 0)
            marked[m] = b * marked[m] + a * below_marked + a * b * below
            plain[m] = b * plain[m] + a * below
    everything = marked[n]
    for i in range(units):
        plain_i, marked_i = _without(plain, marked, taken[i], left[i])
        pairs[i, i] = Fraction(taken[i] * (left[i] * plain_i[n - 1] + marked_i[n - 1]), everything)
        for j in range(i):
            if n == 1:
                pairs[i, j] = pairs[j, i] = Fraction(0)
                continue
            plain_ij, marked_ij = _without(plain_i, marked_i, taken[j], left[j])
            both = taken[i] * taken[j] * ((left[i] + left[j]) * plain_ij[n - 2] + marked_ij[n - 2])
            pairs[i, j] = pairs[j, i] = Fraction(both, everything)
    return pairs


def _without(plain: list[int], marked: list[int], a: int, b: int) -> tuple[list[int], list[int]]:
    """Coefficients after division by b + a z (1 + b e): as many as are known, one fewer if b is 0."""
    if b == 0:
        return [c // a for c in plain[1:]], [c // a for c in marked[1:]]
    new_plain: list[int] = []
    new_marked: list[int] = []
    before = before_marked = 0
    for one, other in zip(plain, marked, strict=True):
        before_marked = (other - a * before_marked - a * b * before) // b
        before = (one - a * before) // b
        new_plain.append(before)
        new_marked.append(before_marked)
    return new_plain, new_marked
