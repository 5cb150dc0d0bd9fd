"""Attackers for whom sampling hides nothing: the nosy neighbour, the journalist, and whoever knows the sample.

Equation 6.2 compares what an attacker believes about a record after the release with what she would believe had the
record been drawn anew from her own prior. For a record of the frame the ratio lies within e^+-epsilon', the amplified
loss. For a unit that she *knows* to be in the sample (the nosy neighbour, who saw the interviewer), and for a record of
the sample as such, whoever it is (the journalist), it lies within e^+-epsilon only, the loss on the sample (section
6.5.1). The bounds are approached as the prior probability of the value vanishes, not attained as printed.

All are :class:`stirred.semantics.Beliefs` on a small frame, by enumeration; ``ratio`` is equation 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.lab.definitions.beliefs import Beliefs, checked_prior, checked_target
from stirred.survey.pairings import Sample
from stirred.survey.sampled_mechanisms import Frame, SampledMechanism, frame_name, sample_name

Prior = Mapping[Any, Any]
"""Frames, as tuples of records, with the probabilities that the attacker gives them."""


@says_what_it_takes
def frame_record(sampled: SampledMechanism, prior: Prior, unit: int) -> Beliefs:
    """Beliefs about the record of a unit of the frame, of someone who does not know who is in the sample."""
    return Beliefs(prior, sampled.on_frame, unit, frame_name)


@says_what_it_takes
def nosy_neighbour(sampled: SampledMechanism, prior: Prior, unit: int) -> Beliefs:
    """Beliefs of someone who knows that the unit is in the sample, and nothing else about the sample.

    Where the design looks at the data, being sampled tells something by itself: the prior is the one given that.
    """
    at = checked_target(unit, sampled.units)
    return _knowing(sampled, prior, at, lambda sample: at in sample)


@says_what_it_takes
def knows_the_sample(sampled: SampledMechanism, prior: Prior, unit: int, sample: Sample) -> Beliefs:
    """Beliefs about a unit of someone who knows exactly which units are in the sample."""
    return _knowing(sampled, prior, checked_target(unit, sampled.units), lambda one: one == tuple(sample))


@says_what_it_takes
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


@says_what_it_takes
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
