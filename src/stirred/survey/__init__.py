"""Surveys: what sampling buys in privacy, and when it buys nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.survey import selections
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
    from stirred.survey.claims import Claim, SurveyFacts, may_claim
    from stirred.survey.renyi_amplification import amplify_renyi, amplify_zcdp, sampled_gaussian
    from stirred.survey.sampled_mechanisms import SampledMechanism
    from stirred.survey.selections import Selection, UnitClass

__all__ = [
    "Amplified",
    "Claim",
    "OneSample",
    "SampledMechanism",
    "Selection",
    "SharedSampleCurves",
    "SurveyFacts",
    "UnitClass",
    "Vanishing",
    "amplify",
    "amplify_renyi",
    "amplify_zcdp",
    "before_sampling",
    "frame_record",
    "journalist",
    "knows_the_sample",
    "may_claim",
    "nosy_neighbour",
    "on_one_sample",
    "on_several_samples",
    "sampled_gaussian",
    "selections",
    "shared_sample_curves",
    "vanishing",
]

__getattr__, __dir__ = lazy(
    __name__,
    by_module(
        {
            "stirred.survey.selections": "Selection UnitClass selections",
            "stirred.survey.amplification": (
                "Amplified OneSample SharedSampleCurves amplify before_sampling on_one_sample on_several_samples "
                "shared_sample_curves"
            ),
            "stirred.survey.attackers": "Vanishing frame_record journalist knows_the_sample nosy_neighbour vanishing",
            "stirred.survey.claims": "Claim SurveyFacts may_claim",
            "stirred.survey.renyi_amplification": "amplify_renyi amplify_zcdp sampled_gaussian",
            "stirred.survey.sampled_mechanisms": "SampledMechanism",
        }
    ),
)
