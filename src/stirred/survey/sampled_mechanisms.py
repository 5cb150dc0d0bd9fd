"""Small frames by enumeration: the exact loss of "draw a sample, then run a mechanism on it", the oracle of all bounds.

The law of the output for a frame is the mixture of the laws for its samples, by the probabilities of the design (the
mechanism T' = T o S of section 6.5.1). Nothing is bounded or estimated. The one invariant: a sample is a *set of
records*: it is known to the mechanism by its records in sorted order, and so a mechanism cannot see who they are.

A design may look at the frame here. Such a design has no theorem, but its loss can be counted, and it can be larger
than the mechanism's own.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.loss.argument_checks import Number
from stirred.loss.worst_pairs import worst_pair
from stirred.spec.order.finite_mechanisms import FiniteMechanism
from stirred.survey.pairings import Sample
from stirred.survey.selections import Neighbours, Samples, checked_samples

Array = NDArray[np.float64]
Frame = tuple[str | None, ...]
"""The record of each unit, None for a unit that is not in the frame."""

MOST_STEPS = 2_000_000
ABSENT = "-"
"""How a unit that is not in the frame is shown in the name of a frame."""


@brief
@dataclass(frozen=True, eq=False)
class SampledMechanism:
    """A mechanism on samples of a small frame, and all that can be counted about it.

    ``values`` are the records that a unit can have, ``units`` the number of units. ``design`` lists the samples with
    their probabilities, or is a function that does so for a frame (a tuple of records). ``mechanism`` has a law for
    each sample, named by its records in sorted order: ``"011"``; the empty sample is ``""``. With the neighbours "add
    or remove" the frames include those that lack units, and the design must be a function.

    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> one_of_two = SampledMechanism(("0", "1"), 2, {(0,): "1/2", (1,): "1/2"}, randomised_response("0.2689414214"))
    >>> round(one_of_two.loss(), 5), round(one_of_two.sample_loss(), 5), round(one_of_two.loss_if_sampled(0), 5)
    (0.62011, 1.0, 1.0)
    """

    values: tuple[str, ...]
    units: int
    design: Samples | Callable[[Frame], Samples] = field(repr=False)
    mechanism: FiniteMechanism = field(repr=False)
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(str, self.values)))
        if len(set(self.values)) < len(self.values) or any(len(value) != 1 or value == ABSENT for value in self.values):
            raise errors.parameter_out_of_range(
                "A value", "not one character, or there twice", f"one character, other than '{ABSENT}'"
            )
        frames = (len(self.values) + (self.neighbours == "add or remove")) ** self.units
        if frames**2 > MOST_STEPS:
            raise errors.too_many_samples(frames**2, MOST_STEPS)
        steps = sum(map(len, self.designs.values()))
        if steps > MOST_STEPS:
            raise errors.too_many_samples(steps, MOST_STEPS)

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Every frame that is compared."""
        records: Sequence[str | None] = (*self.values, None) if self.neighbours == "add or remove" else self.values
        return tuple(itertools.product(records, repeat=self.units))

    @cached_property
    def designs(self) -> dict[Frame, dict[Sample, float]]:
        """By frame, its samples with their probabilities; refused if one holds a unit that the frame does not."""
        if not callable(self.design):
            same = checked_samples(self.design)
            return {frame: self._inside(frame, same) for frame in self.frames}
        return {frame: self._inside(frame, checked_samples(self.design(frame))) for frame in self.frames}

    def _inside(self, frame: Frame, design: dict[Sample, Fraction]) -> dict[Sample, float]:
        present = {unit for unit, record in enumerate(frame) if record is not None}
        if any(not present.issuperset(sample) for sample in design):
            raise errors.not_a_listed_design("a sample holds a unit that is not in the frame")
        return {sample: float(chance) for sample, chance in design.items()}

    # -- laws ------------------------------------------------------------------------------------------------

    @cached_property
    def on_frame(self) -> FiniteMechanism:
        """The mechanism that draws the sample itself, with the frame as its input."""
        return self.given(lambda sample: True)

    def given(self, known: Callable[[Sample], bool], frames: Iterable[Frame] | None = None) -> FiniteMechanism:
        """The law of the output given what is known about the sample, for all frames or some of them."""
        some = self.frames if frames is None else tuple(frames)
        rows = np.stack([self._law(frame, known) for frame in some])
        return FiniteMechanism(tuple(map(frame_name, some)), self.mechanism.outputs, rows)

    def _law(self, frame: Frame, known: Callable[[Sample], bool]) -> Array:
        chances = {sample: p for sample, p in self.designs[frame].items() if known(sample)}
        total = math.fsum(chances.values())
        if total == 0:
            raise errors.not_a_listed_design("for some frame no sample is as it is known to be")
        rows = [self._place(frame, sample) for sample in chances]
        return np.asarray(np.array(list(chances.values())) / total @ self.mechanism.rows[rows])

    def _place(self, frame: Frame, sample: Sample) -> int:
        name = sample_name(frame[unit] for unit in sample)
        try:
            return self._places[name]
        except KeyError:
            raise errors.not_a_mechanism("it has no law for some samples") from None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.mechanism.datasets)}

    # -- losses ----------------------------------------------------------------------------------------------

    def loss(self, measure: str = "multiplicative", parameter: Number | None = None) -> float:
        """The loss for the records of the frame: the largest divergence between neighbouring frames.

        ``measure`` is one of :func:`stirred.loss.worst_pair`: "multiplicative" is epsilon, "approximate" the epsilon at
        the delta that is its ``parameter``, "renyi" the divergence of that order.
        """
        return self._worst(self.on_frame.rows, self._apart(None), measure, parameter)

    def loss_if_sampled(self, unit: int, measure: str = "multiplicative", parameter: Number | None = None) -> float:
        """The loss for the record of one unit that is known to be in the sample, where another value replaces it."""
        if self.neighbours != "replace":
            raise errors.parameter_out_of_range("The relation of neighbours", self.neighbours, "'replace'")
        return self._worst(self.given(lambda sample: unit in sample).rows, self._apart(unit), measure, parameter)

    def sample_loss(self, measure: str = "multiplicative", parameter: Number | None = None) -> float:
        """The loss of the mechanism on the sample, over all samples of the sizes that the design has."""
        sizes = sorted({len(sample) for design in self.designs.values() for sample in design})
        found = [s for size in sizes for s in itertools.combinations_with_replacement(sorted(self.values), size)]
        names = [sample_name(sample) for sample in found]
        if set(names) - set(self._places):
            raise errors.not_a_mechanism("it has no law for some samples")
        counts = [Counter(sample) for sample in found]
        distances = np.full((len(found), len(found)), math.inf)
        for i, j in itertools.permutations(range(len(found)), 2):
            gone, come = (counts[i] - counts[j]).total(), (counts[j] - counts[i]).total()
            if (gone, come) == (1, 1) if self.neighbours == "replace" else gone + come == 1:
                distances[i, j] = 1
        return self._worst(self.mechanism.rows[[self._places[name] for name in names]], distances, measure, parameter)

    def _apart(self, only: int | None) -> Array:
        """1 between neighbouring frames, that differ in the unit ``only`` if one is given; else infinity."""
        codes = np.array([[-1 if r is None else self.values.index(r) for r in frame] for frame in self.frames])
        differ = codes[:, None, :] != codes[None, :, :]
        near = differ.sum(axis=2) == 1
        if self.neighbours == "add or remove":
            missing = codes == -1
            near &= (missing[:, None, :] != missing[None, :, :]).sum(axis=2) == 1
        if only is not None:
            near &= differ[:, :, only]
        return np.where(near, 1.0, math.inf)

    @staticmethod
    def _worst(rows: Array, distances: Array, measure: str, parameter: Number | None) -> float:
        return max(0.0, worst_pair(rows, distances, measure, parameter).ratio)


def sample_name(records: Iterable[Hashable]) -> str:
    """The name of a sample: its records, sorted.

    >>> sample_name(("1", "0", "1"))
    '011'
    """
    return "".join(sorted(map(str, records)))


def frame_name(frame: Sequence[Hashable]) -> str:
    """The name of a frame: the records of its units in their order, '-' for a unit that is not there."""
    return "".join(ABSENT if record is None else str(record) for record in frame)
