"""Designs that treat all units alike (census, simple random, Bernoulli), and equal steps through a fixed order.

Simple random sampling without replacement gives every set of n units the same probability: pi_i = n/N and
pi_ij = n(n-1) / (N(N-1)). With replacement n units are drawn independently, so a unit can be drawn repeatedly. Under
Bernoulli sampling each unit tosses the same coin, and the number of sampled units varies.

Systematic sampling has one random start. Lay the sizes x_i end to end, X in all, and mark them at a start that is
uniform below X/n and from there in steps of X/n. Times n everything is whole: unit i holds n x_i points, marks are X
apart, and a whole start uniform on 0, ..., X - 1 gives the same law. Seen from the start, a unit is an arc of n x_i
points on a circle of X points, and two units are sampled together if their arcs share the start. Keep in mind: only the
start is random. In an order that an attacker knows this is a sample of one cluster, and sampling amplifies nothing
(section 6.4.1 of the thesis).
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
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
    exact,
    listable,
    pairs_of_equals,
    subsets,
    whole,
)
from stirred.noise import RandomSource, select, shuffle_groups, uniform_integers


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
        """Of a unit, and of a pair."""


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
