"""Designs that treat all units alike: everyone, simple random with and without replacement, Bernoulli.

Simple random sampling without replacement gives every set of n units the same probability: pi_i = n/N and
pi_ij = n(n-1) / (N(N-1)). With replacement n units are drawn independently, so a unit can be drawn repeatedly. Under
Bernoulli sampling each unit tosses the same coin, and the number of sampled units varies.
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
from stirred.noise import RandomSource, select, shuffle_groups, uniform_integers
from stirred.survey.designs import (
    Design,
    Listed,
    Pairs,
    UnitFractions,
    enough,
    exact,
    listable,
    pairs_of_equals,
    subsets,
    whole,
)
from stirred.survey.frames import Frame, Units


class _AllAlike(Design):
    """Any two units, and any two pairs, have the same probability."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ()

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
class SimpleRandom(_AllAlike):
    """Simple random sampling without replacement: every set of ``sample`` units is equally likely.

    >>> from stirred.noise import SeededSource
    >>> drawn = SimpleRandom(2).draw(Frame.of(5), SeededSource(1))
    >>> drawn.units.tolist(), drawn.weights[0]
    ([1, 2], Fraction(5, 2))
    """

    sample: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", whole("The sample size", self.sample))

    def sample_size(self, frame: Frame) -> int:
        return self.sample

    def _check(self, frame: Frame) -> None:
        enough(self.sample, frame.units)

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
class WithReplacement(_AllAlike):
    """Simple random sampling with replacement: ``sample`` independent draws, each uniform among all units.

    The weight of a draw is N/n (Hansen and Hurwitz 1943), and a unit that is drawn twice counts twice.

    >>> design = WithReplacement(2)
    >>> design.inclusion(Frame.of(3))[0], design.weights(Frame.of(3))[0]
    (Fraction(5, 9), Fraction(3, 2))
    """

    sample: int
    with_replacement: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", whole("The sample size", self.sample))

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
