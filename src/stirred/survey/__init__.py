"""Surveys: where the guarantee starts, whether sampling lowers the privacy loss, and what weights cost in noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.survey import selections
    from stirred.survey.advice import Advice, advise
    from stirred.survey.allocations import Allocation, Equal, Given, Neyman, Proportional
    from stirred.survey.amplification import (
        Amplified,
        OneSample,
        SharedSampleCurves,
        amplify,
        before_sampling,
        on_one_sample,
        on_several_samples,
        shared_sample_curves,
    )
    from stirred.survey.attackers import (
        Vanishing,
        frame_record,
        journalist,
        knows_the_sample,
        nosy_neighbour,
        vanishing,
    )
    from stirred.survey.claims import Claim, SamplingFacts, may_claim
    from stirred.survey.composed_designs import Stratified, TwoStage, cluster_sample
    from stirred.survey.designs import Design, Sample, UnitFractions
    from stirred.survey.effective_size import design_effect, effective_sample_size
    from stirred.survey.facts import Bounds, SurveyFacts, Units
    from stirred.survey.frames import Frame, Groups
    from stirred.survey.pipeline import Pipeline
    from stirred.survey.public_weights import PublicWeights
    from stirred.survey.renyi_amplification import amplify_renyi, amplify_zcdp, sampled_gaussian
    from stirred.survey.sampled_mechanisms import SampledMechanism
    from stirred.survey.selections import Selection, UnitClass
    from stirred.survey.sensitivity import Estimator, Sensitivity
    from stirred.survey.settings import SETTINGS, Setting, setting
    from stirred.survey.simple_designs import Bernoulli, Census, SimpleRandom, WithReplacement
    from stirred.survey.size_designs import Poisson, Sampford, SystematicBySize
    from stirred.survey.systematic import EveryKth, Systematic
    from stirred.survey.weight_rules import WeightEffects, WeightRule
    from stirred.survey.weight_trade import TradePoint, WeightTrade

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
