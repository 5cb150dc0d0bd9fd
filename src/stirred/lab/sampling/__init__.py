"""Sampling designs that draw from a frame, and small surveys listed in full, to try claims about sampling on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.sampling.composed_designs import (
        Allocation,
        Equal,
        Given,
        Neyman,
        Proportional,
        Stratified,
        TwoStage,
        cluster_sample,
    )
    from stirred.lab.sampling.enumerated import (
        SampledMechanism,
        Vanishing,
        frame_record,
        journalist,
        knows_the_sample,
        nosy_neighbour,
        vanishing,
    )
    from stirred.lab.sampling.frames import Design, Frame, Groups, Sample, UnitFractions
    from stirred.lab.sampling.unit_designs import (
        Bernoulli,
        Census,
        EveryKth,
        Poisson,
        Sampford,
        SimpleRandom,
        Systematic,
        SystematicBySize,
        WithReplacement,
    )

__all__ = [
    "Allocation",
    "Bernoulli",
    "Census",
    "Design",
    "Equal",
    "EveryKth",
    "Frame",
    "Given",
    "Groups",
    "Neyman",
    "Poisson",
    "Proportional",
    "Sampford",
    "Sample",
    "SampledMechanism",
    "SimpleRandom",
    "Stratified",
    "Systematic",
    "SystematicBySize",
    "TwoStage",
    "UnitFractions",
    "Vanishing",
    "WithReplacement",
    "cluster_sample",
    "frame_record",
    "journalist",
    "knows_the_sample",
    "nosy_neighbour",
    "vanishing",
]

__getattr__, __dir__ = lazy(__name__)
