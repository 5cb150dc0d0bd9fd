"""Surveys: where the guarantee starts, whether sampling lowers the privacy loss, and what weights cost in noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.survey.advice import Advice, advise
    from stirred.survey.design import selections
    from stirred.survey.design.amplification import (
        Amplified,
        Claim,
        OneSample,
        SamplingFacts,
        SharedSampleCurves,
        amplify,
        amplify_renyi,
        amplify_zcdp,
        before_sampling,
        may_claim,
        on_one_sample,
        on_several_samples,
        sampled_gaussian,
        shared_sample_curves,
    )
    from stirred.survey.design.selections import Selection, UnitClass
    from stirred.survey.plan.sensitivity import Bounds, Estimator, Sensitivity, SurveyFacts, Units
    from stirred.survey.plan.settings import SETTINGS, Pipeline, Setting, setting
    from stirred.survey.weights.rules import WeightEffects, WeightRule, design_effect, effective_sample_size
    from stirred.survey.weights.trade import PublicWeights, TradePoint, WeightTrade

__all__ = [
    "SETTINGS",
    "Advice",
    "Amplified",
    "Bounds",
    "Claim",
    "Estimator",
    "OneSample",
    "Pipeline",
    "PublicWeights",
    "SamplingFacts",
    "Selection",
    "Sensitivity",
    "Setting",
    "SharedSampleCurves",
    "SurveyFacts",
    "TradePoint",
    "UnitClass",
    "Units",
    "WeightEffects",
    "WeightRule",
    "WeightTrade",
    "advise",
    "amplify",
    "amplify_renyi",
    "amplify_zcdp",
    "before_sampling",
    "design_effect",
    "effective_sample_size",
    "may_claim",
    "on_one_sample",
    "on_several_samples",
    "sampled_gaussian",
    "selections",
    "setting",
    "shared_sample_curves",
]

__getattr__, __dir__ = lazy(
    __name__,
    moved={
        "stirred.lab.sampling": (
            "Allocation Bernoulli Census Design Equal EveryKth Frame Given Groups Neyman Poisson Proportional "
            "Sampford Sample SampledMechanism SimpleRandom Stratified Systematic SystematicBySize TwoStage "
            "UnitFractions Vanishing WithReplacement cluster_sample frame_record journalist knows_the_sample "
            "nosy_neighbour vanishing"
        )
    },
)
