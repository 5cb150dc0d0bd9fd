"""Limits of learning: bounds on what anyone can conclude from the guarantee alone, whatever their model of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.limits.distances_of_densities import (
        DensityDistances,
        MixedMeasure,
        density_distances,
        hockey_stick_of_densities,
        mixed_distances,
    )
    from stirred.lab.limits.distortions import (
        DISTORTING,
        DistortingFunction,
        DistortionModel,
        Mixture,
        approximate_function,
        continuity_radius,
        convexity_counterexample,
        distorting_function,
        mixture,
    )
    from stirred.lab.limits.finite_analysis import FiniteAnalysis
    from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval, ProbabilityInterval
    from stirred.lab.limits.models import DataModel, NoiseLaw, Prior, clamp_to
    from stirred.lab.limits.posteriors import Posterior, PosteriorDraws, WithError
    from stirred.lab.limits.pufferfish import (
        Pufferfish,
        PufferfishLoss,
        all_but_one_known,
        equal_records,
        independent_records,
    )
    from stirred.limits.bounds import (
        FORMS,
        LEVELS,
        PRIORS,
        Band,
        Form,
        Limit,
        data_bounds,
        density_bounds,
        limit_at,
        mixture_bounds,
        posterior_bounds,
        power_bounds,
        radius,
        standard_limits,
    )
    from stirred.limits.densities import Density
    from stirred.limits.distances import (
        LogRatios,
        approximate_distance,
        density_ratio_distance,
        linear_vacuous_distance,
        log_ratio_range,
        multiplicative_distance,
        odds_ratio_distance,
        total_variation_distance,
    )
    from stirred.limits.figures import FIGURES, Curve, LimitFigure, chapter_figure, figures_at
    from stirred.limits.graphs import (
        DatabaseGraph,
        Membership,
        depends_on_component_only,
        in_intervals,
        privacy_loss,
        with_component,
    )
    from stirred.limits.worked_examples import (
        Beliefs,
        ClampedCount,
        laplace_count_beliefs,
        laplace_count_bounds,
        laplace_count_densities,
        laplace_count_mixture,
        laplace_power,
        laplace_threshold,
        response_bounds,
        response_likelihood,
        response_power,
    )

__all__ = [
    "DISTORTING",
    "FIGURES",
    "FORMS",
    "LEVELS",
    "PRIORS",
    "Band",
    "Beliefs",
    "ClampedCount",
    "Curve",
    "DataModel",
    "DatabaseGraph",
    "Density",
    "DensityDistances",
    "DensityRatioNeighbourhood",
    "DistortingFunction",
    "DistortionModel",
    "FiniteAnalysis",
    "Form",
    "Limit",
    "LimitFigure",
    "LogRatios",
    "MeasureInterval",
    "Membership",
    "MixedMeasure",
    "Mixture",
    "NoiseLaw",
    "Posterior",
    "PosteriorDraws",
    "Prior",
    "ProbabilityInterval",
    "Pufferfish",
    "PufferfishLoss",
    "WithError",
    "all_but_one_known",
    "approximate_distance",
    "approximate_function",
    "chapter_figure",
    "clamp_to",
    "continuity_radius",
    "convexity_counterexample",
    "data_bounds",
    "density_bounds",
    "density_distances",
    "density_ratio_distance",
    "depends_on_component_only",
    "distorting_function",
    "equal_records",
    "figures_at",
    "hockey_stick_of_densities",
    "in_intervals",
    "independent_records",
    "laplace_count_beliefs",
    "laplace_count_bounds",
    "laplace_count_densities",
    "laplace_count_mixture",
    "laplace_power",
    "laplace_threshold",
    "limit_at",
    "linear_vacuous_distance",
    "log_ratio_range",
    "mixed_distances",
    "mixture",
    "mixture_bounds",
    "multiplicative_distance",
    "odds_ratio_distance",
    "posterior_bounds",
    "power_bounds",
    "privacy_loss",
    "radius",
    "response_bounds",
    "response_likelihood",
    "response_power",
    "standard_limits",
    "total_variation_distance",
    "with_component",
]

__getattr__, __dir__ = lazy(__name__)
