"""Small surveys by enumeration: their settings, the exact loss of sampling, and attackers for whom it hides nothing.

:class:`ListedSurvey` lists populations, frames, samples and responding samples. It holds the primitive multiverses of
Definition 6.3.2 and decides by enumeration whether a flavor is population-,
frame- or sample-invariant (Definition 6.3.3). Datasets are named; distances between them are given.

A :class:`SampledMechanism` draws a sample of a small frame and runs a mechanism on it: the oracle of all bounds. The
law of the output for a frame is the mixture of the laws for its samples, by the probabilities of the design (the
mechanism T' = T o S of section 6.5.1). Nothing is bounded or estimated. The one invariant: a sample is a *set of
records*: it is known to the mechanism by its records in sorted order, and so a mechanism cannot see who they are.

A design may look at the frame here. Such a design has no theorem, but its loss can be counted, and it can be larger
than the mechanism's own.

The attackers are the nosy neighbour, the journalist, and whoever knows the sample. Equation 6.2 compares what an
attacker believes about a record after the release with what she would believe had the record been drawn anew from her
own prior. For a record of the frame the ratio lies within e^+-epsilon', the amplified loss. For a unit that she *knows*
to be in the sample (the nosy neighbour, who saw the interviewer), and for a record of the sample as such, whoever it is
(the journalist), it lies within e^+-epsilon only, the loss on the sample (section 6.5.1). The bounds are approached as
the prior probability of the value vanishes, not attained as printed.

All are :class:`stirred.lab.definitions.beliefs.Beliefs` on a small frame, by enumeration; ``ratio`` is equation 6.2.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.lab.definitions.beliefs import Beliefs, checked_prior, checked_target
from stirred.lab.definitions.multiverses import coarsens, completed
from stirred.loss.argument_checks import Number
from stirred.loss.worst_pairs import worst_pair
from stirred.spec import Answer, Domain, Flavor, InputPremetric, Multiverse, OutputPremetric, Specification
from stirred.spec.order.finite_mechanisms import FiniteMechanism
from stirred.survey.design.selections import Neighbours, Sample, Samples, checked_samples
from stirred.survey.plan.settings import LEVELS, Setting


@dataclass(frozen=True)
class ListedSurvey:
    """Which frames each population could give, which samples each frame, and which responding samples each sample.

    >>> survey = ListedSurvey({"p": ("f",)}, {"f": ("ab", "ac")}, {"ab": ("a", "ab"), "ac": ("a", "ac")})
    >>> survey.universes("responding sample", "target sample")
    (('a', 'ab'), ('a', 'ac'))
    """

    frames: Mapping[str, tuple[str, ...]]
    samples: Mapping[str, tuple[str, ...]]
    responding: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        steps = (self.frames, self.samples, self.responding)
        for before, after in itertools.pairwise(steps):
            made = {name for names in before.values() for name in names}
            if made != set(after):
                raise errors.survey_fact("A listed survey", "says for each dataset what is made of it")

    def datasets(self, level: str) -> tuple[str, ...]:
        """All datasets that are possible at a level (Definition 6.3.1)."""
        return self._reached(tuple(self.frames), LEVELS[0], level)

    def universes(self, level: str, given: str = "") -> tuple[tuple[str, ...], ...]:
        """For each dataset of an earlier stage, those of the level that can come from it (Definition 6.3.2)."""
        if not given:
            return (self.datasets(level),)
        return tuple(self._reached((start,), given, level) for start in self.datasets(given))

    def _reached(self, names: tuple[str, ...], given: str, level: str) -> tuple[str, ...]:
        for step in (self.frames, self.samples, self.responding)[LEVELS.index(given) : LEVELS.index(level)]:
            names = tuple(dict.fromkeys(name for one in names for name in step[one]))
        return names

    def specification(
        self, setting: Setting, distances: Mapping[tuple[str, str], Any], epsilon: Any = 1
    ) -> Specification:
        """The guarantee of a setting in which as many datasets are compared as the setting allows."""
        flavor = Flavor(
            Domain(f"listed datasets: {setting.level}", datasets=self.datasets(setting.level)),
            Multiverse(universes=self.universes(setting.level, setting.fixed_through)),
            InputPremetric.table(distances),
            OutputPremetric("multiplicative"),
        )
        return flavor.at(epsilon)

    def is_invariant(self, specification: Specification, setting: Setting) -> Answer:
        """Whether compared datasets always come from one dataset of the stage that a setting holds fixed."""
        primitive = Multiverse(universes=self.universes(setting.level, setting.fixed_through))
        coarser = replace(specification, multiverse=primitive, budget=replace(specification.budget, by_universe=()))
        return coarsens(coarser, completed(specification))


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


Prior = Mapping[Any, Any]
"""Frames, as tuples of records, with the probabilities that the attacker gives them."""


@refuses_wrong_arguments
def frame_record(sampled: SampledMechanism, prior: Prior, unit: int) -> Beliefs:
    """Beliefs about the record of a unit of the frame, of someone who does not know who is in the sample."""
    return Beliefs(prior, sampled.on_frame, unit, frame_name)


@refuses_wrong_arguments
def nosy_neighbour(sampled: SampledMechanism, prior: Prior, unit: int) -> Beliefs:
    """Beliefs of someone who knows that the unit is in the sample, and nothing else about the sample.

    Where the design looks at the data, being sampled tells something by itself: the prior is the one given that.
    """
    at = checked_target(unit, sampled.units)
    return _knowing(sampled, prior, at, lambda sample: at in sample)


@refuses_wrong_arguments
def knows_the_sample(sampled: SampledMechanism, prior: Prior, unit: int, sample: Sample) -> Beliefs:
    """Beliefs about a unit of someone who knows exactly which units are in the sample."""
    return _knowing(sampled, prior, checked_target(unit, sampled.units), lambda one: one == tuple(sample))


@refuses_wrong_arguments
def journalist(sampled: SampledMechanism, prior: Prior, place: int = 0) -> Beliefs:
    """Beliefs about one record of the sample, whoever it is of: samples of one size, with their units in order.

    This is the corrected display of section 6.5.1: the sum over r' stands in the denominator only.
    """
    samples: dict[tuple[str, ...], float] = {}
    for frame, chance in _frames(sampled, prior).items():
        for sample, p in sampled.designs[frame].items():
            records = tuple(str(frame[unit]) for unit in sample)
            samples[records] = samples.get(records, 0.0) + chance * p
    if len({len(sample) for sample in samples}) > 1:
        raise errors.not_a_listed_design("samples differ in size, so that the sample has no records in fixed places")
    return Beliefs(samples, sampled.mechanism, place, sample_name)


@brief
@dataclass(frozen=True, eq=False)
class Vanishing:
    """What amplification is worth against four attackers with one prior.

    ``sample_loss`` and ``frame_loss`` bound the logarithm of the ratios of equation 6.2: for the first attacker
    ``frame_loss``, for the others ``sample_loss`` only. ``largest`` is the largest found, by attacker.
    """

    sample_loss: float
    frame_loss: float
    largest: Mapping[str, float]

    def __str__(self) -> str:
        lines = [
            f"loss on the sample {self.sample_loss:.4g}, on the frame {self.frame_loss:.4g}",
            *(f"{who}: beliefs move by a factor of up to e^{one:.4g}" for who, one in self.largest.items()),
        ]
        return "\n".join(lines)


@refuses_wrong_arguments
def vanishing(sampled: SampledMechanism, prior: Prior, unit: int) -> Vanishing:
    """How far beliefs move for attackers who know nothing or something about the sample, side by side.

    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> one_of_two = SampledMechanism(("0", "1"), 2, {(0,): "1/2", (1,): "1/2"}, randomised_response("0.2689414214"))
    >>> print(vanishing(one_of_two, {("0", "0"): 0.99, ("1", "0"): 0.01}, 0))
    loss on the sample 1, on the frame 0.6201
    frame record: beliefs move by a factor of up to e^0.6116
    nosy neighbour: beliefs move by a factor of up to e^0.9937
    journalist: beliefs move by a factor of up to e^0.9968
    who knows the sample: beliefs move by a factor of up to e^0.9937
    """
    seen = {
        "frame record": frame_record(sampled, prior, unit),
        "nosy neighbour": nosy_neighbour(sampled, prior, unit),
        "journalist": journalist(sampled, prior),
    }
    moved = {who: _moved(beliefs) for who, beliefs in seen.items()}
    possible = {s for frame in _frames(sampled, prior) for s in sampled.designs[frame] if unit in s}
    moved["who knows the sample"] = max(_moved(knows_the_sample(sampled, prior, unit, one)) for one in possible)
    return Vanishing(sampled.sample_loss(), sampled.loss(), moved)


def _moved(beliefs: Beliefs) -> float:
    """The largest logarithm of a ratio, up or down; outputs that cannot occur do not count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(np.abs(np.log(beliefs.ratio))))


def _knowing(sampled: SampledMechanism, prior: Prior, unit: int, known: Callable[[Sample], bool]) -> Beliefs:
    """Beliefs with the prior and the law of the output given what is known about the sample."""
    left = {}
    for frame, chance in _frames(sampled, prior).items():
        if (kept := math.fsum(p for sample, p in sampled.designs[frame].items() if known(sample))) > 0:
            left[frame] = chance * kept
    if not left:
        raise errors.not_a_listed_design("what is known about the sample has probability 0 under the prior")
    total = math.fsum(left.values())
    mechanism = sampled.given(known, left)
    return Beliefs({frame: chance / total for frame, chance in left.items()}, mechanism, unit, frame_name)


def _frames(sampled: SampledMechanism, prior: Prior) -> dict[Frame, float]:
    frames = cast("dict[Frame, float]", checked_prior(prior))
    if any(len(frame) != sampled.units or set(frame) - {*sampled.values} for frame in frames):
        raise errors.not_a_distribution("The prior", "it holds what is not a frame of these units and values")
    return frames
