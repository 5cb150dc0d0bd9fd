"""Limits of learning: bounds on what anyone can conclude from the guarantee alone, whatever their model of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
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
    "FORMS",
    "LEVELS",
    "PRIORS",
    "Band",
    "Beliefs",
    "ClampedCount",
    "DatabaseGraph",
    "Density",
    "Form",
    "Limit",
    "LogRatios",
    "Membership",
    "approximate_distance",
    "data_bounds",
    "density_bounds",
    "density_ratio_distance",
    "depends_on_component_only",
    "in_intervals",
    "laplace_count_beliefs",
    "laplace_count_bounds",
    "laplace_count_densities",
    "laplace_count_mixture",
    "laplace_power",
    "laplace_threshold",
    "limit_at",
    "linear_vacuous_distance",
    "log_ratio_range",
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

__getattr__, __dir__ = lazy(
    __name__,
    moved={
        "stirred.lab.limits.chapter_figures": "FIGURES Curve LimitFigure chapter_figure figures_at",
        "stirred.lab.limits.distances_of_densities": (
            "DensityDistances MixedMeasure density_distances hockey_stick_of_densities mixed_distances"
        ),
        "stirred.lab.limits.distortions": (
            "DISTORTING DistortingFunction DistortionModel Mixture approximate_function continuity_radius "
            "convexity_counterexample distorting_function mixture"
        ),
        "stirred.lab.limits.finite_analysis": "FiniteAnalysis",
        "stirred.lab.limits.measure_intervals": "DensityRatioNeighbourhood MeasureInterval ProbabilityInterval",
        "stirred.lab.limits.models": "DataModel NoiseLaw Prior clamp_to",
        "stirred.lab.limits.posteriors": "Posterior PosteriorDraws WithError",
        "stirred.lab.limits.pufferfish": (
            "Pufferfish PufferfishLoss all_but_one_known equal_records independent_records"
        ),
    },
)
