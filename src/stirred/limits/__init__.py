"""Limits of learning: bounds on what anyone can conclude from the guarantee alone, whatever their model of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.limits.bounds import (
        FORMS as FORMS,
        LEVELS as LEVELS,
        PRIORS as PRIORS,
        Band as Band,
        Form as Form,
        Limit as Limit,
        data_bounds as data_bounds,
        density_bounds as density_bounds,
        limit_at as limit_at,
        mixture_bounds as mixture_bounds,
        posterior_bounds as posterior_bounds,
        power_bounds as power_bounds,
        radius as radius,
        standard_limits as standard_limits,
    )
    from stirred.limits.densities import Density as Density
    from stirred.limits.distances import (
        LogRatios as LogRatios,
        approximate_distance as approximate_distance,
        density_ratio_distance as density_ratio_distance,
        linear_vacuous_distance as linear_vacuous_distance,
        log_ratio_range as log_ratio_range,
        multiplicative_distance as multiplicative_distance,
        odds_ratio_distance as odds_ratio_distance,
        total_variation_distance as total_variation_distance,
    )
    from stirred.limits.graphs import (
        DatabaseGraph as DatabaseGraph,
        Membership as Membership,
        depends_on_component_only as depends_on_component_only,
        in_intervals as in_intervals,
        privacy_loss as privacy_loss,
        with_component as with_component,
    )
    from stirred.limits.worked_examples import (
        Beliefs as Beliefs,
        ClampedCount as ClampedCount,
        laplace_count_beliefs as laplace_count_beliefs,
        laplace_count_bounds as laplace_count_bounds,
        laplace_count_densities as laplace_count_densities,
        laplace_count_mixture as laplace_count_mixture,
        laplace_power as laplace_power,
        laplace_threshold as laplace_threshold,
        response_bounds as response_bounds,
        response_likelihood as response_likelihood,
        response_power as response_power,
    )

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
