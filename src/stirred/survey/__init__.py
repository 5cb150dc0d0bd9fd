"""Surveys: where the guarantee starts, whether sampling lowers the privacy loss, and what weights cost in noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.survey.advice import Advice as Advice, advise as advise
    from stirred.survey.design import selections as selections
    from stirred.survey.design.amplification import (
        Amplified as Amplified,
        Claim as Claim,
        OneSample as OneSample,
        SamplingFacts as SamplingFacts,
        SharedSampleCurves as SharedSampleCurves,
        amplify as amplify,
        amplify_renyi as amplify_renyi,
        amplify_zcdp as amplify_zcdp,
        before_sampling as before_sampling,
        may_claim as may_claim,
        on_one_sample as on_one_sample,
        on_several_samples as on_several_samples,
        sampled_gaussian as sampled_gaussian,
        shared_sample_curves as shared_sample_curves,
    )
    from stirred.survey.design.selections import Selection as Selection, UnitClass as UnitClass
    from stirred.survey.plan.sensitivity import (
        Bounds as Bounds,
        Estimator as Estimator,
        Sensitivity as Sensitivity,
        SurveyFacts as SurveyFacts,
        Units as Units,
    )
    from stirred.survey.plan.settings import (
        SETTINGS as SETTINGS,
        Pipeline as Pipeline,
        Setting as Setting,
        setting as setting,
    )
    from stirred.survey.weights.rules import (
        WeightEffects as WeightEffects,
        WeightRule as WeightRule,
        design_effect as design_effect,
        effective_sample_size as effective_sample_size,
    )
    from stirred.survey.weights.trade import (
        PublicWeights as PublicWeights,
        TradePoint as TradePoint,
        WeightTrade as WeightTrade,
    )

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
