"""Sampling designs that draw from a frame, and small surveys listed in full, to try claims about sampling on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.sampling.composed_designs import (
        Allocation as Allocation,
        Equal as Equal,
        Given as Given,
        Neyman as Neyman,
        Proportional as Proportional,
        Stratified as Stratified,
        TwoStage as TwoStage,
        cluster_sample as cluster_sample,
    )
    from stirred.lab.sampling.enumerated import (
        SampledMechanism as SampledMechanism,
        Vanishing as Vanishing,
        frame_record as frame_record,
        journalist as journalist,
        knows_the_sample as knows_the_sample,
        nosy_neighbour as nosy_neighbour,
        vanishing as vanishing,
    )
    from stirred.lab.sampling.frames import (
        Design as Design,
        Frame as Frame,
        Groups as Groups,
        Sample as Sample,
        UnitFractions as UnitFractions,
    )
    from stirred.lab.sampling.unit_designs import (
        Bernoulli as Bernoulli,
        Census as Census,
        EveryKth as EveryKth,
        Poisson as Poisson,
        Sampford as Sampford,
        SimpleRandom as SimpleRandom,
        Systematic as Systematic,
        SystematicBySize as SystematicBySize,
        WithReplacement as WithReplacement,
    )

__getattr__, __dir__ = lazy(__name__)
