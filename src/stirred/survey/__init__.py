"""Surveys: where the guarantee starts, whether sampling lowers the privacy loss, and what weights cost in noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.sampling.chances_by_size import Poisson, Sampford, SystematicBySize
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
    from stirred.lab.sampling.equal_chances import (
        Bernoulli,
        Census,
        EveryKth,
        SimpleRandom,
        Systematic,
        WithReplacement,
    )
    from stirred.lab.sampling.frames import Design, Frame, Groups, Sample, UnitFractions
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
    "Allocation",
    "Amplified",
    "Bernoulli",
    "Bounds",
    "Census",
    "Claim",
    "Design",
    "Equal",
    "Estimator",
    "EveryKth",
    "Frame",
    "Given",
    "Groups",
    "Neyman",
    "OneSample",
    "Pipeline",
    "Poisson",
    "Proportional",
    "PublicWeights",
    "Sampford",
    "Sample",
    "SampledMechanism",
    "SamplingFacts",
    "Selection",
    "Sensitivity",
    "Setting",
    "SharedSampleCurves",
    "SimpleRandom",
    "Stratified",
    "SurveyFacts",
    "Systematic",
    "SystematicBySize",
    "TradePoint",
    "TwoStage",
    "UnitClass",
    "UnitFractions",
    "Units",
    "Vanishing",
    "WeightEffects",
    "WeightRule",
    "WeightTrade",
    "WithReplacement",
    "advise",
    "amplify",
    "amplify_renyi",
    "amplify_zcdp",
    "before_sampling",
    "cluster_sample",
    "design_effect",
    "effective_sample_size",
    "frame_record",
    "journalist",
    "knows_the_sample",
    "may_claim",
    "nosy_neighbour",
    "on_one_sample",
    "on_several_samples",
    "sampled_gaussian",
    "selections",
    "setting",
    "shared_sample_curves",
    "vanishing",
]

__getattr__, __dir__ = lazy(__name__)
