"""Swappers that are not for release, simulated: targeted swaps of statistical offices, and variants of our own swap."""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.study.swappers.permutation_variants import (
        AcrossStrata as AcrossStrata,
        FrozenImputed as FrozenImputed,
        NoVacuousSwaps as NoVacuousSwaps,
        PerturbedSwap as PerturbedSwap,
        RatesByRisk as RatesByRisk,
    )
    from stirred.lab.study.swappers.simulated import Simulated as Simulated, Swapper as Swapper
    from stirred.lab.study.swappers.targeted import RecordSwap as RecordSwap, Targeted2010 as Targeted2010

__getattr__, __dir__ = lazy(__name__)
