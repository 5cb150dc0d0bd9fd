"""Swappers that are not for release, simulated: targeted swaps of statistical offices, and variants of our own swap."""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.study.swappers.permutation_variants import (
        AcrossStrata,
        FrozenImputed,
        NoVacuousSwaps,
        PerturbedSwap,
        RatesByRisk,
    )
    from stirred.lab.study.swappers.simulated import Simulated, Swapper
    from stirred.lab.study.swappers.targeted import RecordSwap, Targeted2010

__all__ = [
    "AcrossStrata",
    "FrozenImputed",
    "NoVacuousSwaps",
    "PerturbedSwap",
    "RatesByRisk",
    "RecordSwap",
    "Simulated",
    "Swapper",
    "Targeted2010",
]

__getattr__, __dir__ = lazy(__name__)
