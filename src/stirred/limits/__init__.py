"""Limits of learning: bounds on what anyone can conclude from the guarantee alone, whatever their model of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.limits.bounds import FORMS as FORMS
    from stirred.limits.bounds import LEVELS as LEVELS
    from stirred.limits.bounds import PRIORS as PRIORS
    from stirred.limits.bounds import Band as Band
    from stirred.limits.bounds import Form as Form
    from stirred.limits.bounds import Limit as Limit
    from stirred.limits.bounds import data_bounds as data_bounds
    from stirred.limits.bounds import density_bounds as density_bounds
    from stirred.limits.bounds import limit_at as limit_at
    from stirred.limits.bounds import mixture_bounds as mixture_bounds
    from stirred.limits.bounds import posterior_bounds as posterior_bounds
    from stirred.limits.bounds import power_bounds as power_bounds
    from stirred.limits.bounds import radius as radius
    from stirred.limits.bounds import standard_limits as standard_limits
    from stirred.limits.densities import Density as Density
    from stirred.limits.distances import LogRatios as LogRatios
    from stirred.limits.distances import approximate_distance as approximate_distance
    from stirred.limits.distances import density_ratio_distance as density_ratio_distance
    from stirred.limits.distances import linear_vacuous_distance as linear_vacuous_distance
    from stirred.limits.distances import log_ratio_range as log_ratio_range
    from stirred.limits.distances import multiplicative_distance as multiplicative_distance
    from stirred.limits.distances import odds_ratio_distance as odds_ratio_distance
    from stirred.limits.distances import total_variation_distance as total_variation_distance
    from stirred.limits.graphs import DatabaseGraph as DatabaseGraph
    from stirred.limits.graphs import Membership as Membership
    from stirred.limits.graphs import depends_on_component_only as depends_on_component_only
    from stirred.limits.graphs import in_intervals as in_intervals
    from stirred.limits.graphs import privacy_loss as privacy_loss
    from stirred.limits.graphs import with_component as with_component
    from stirred.limits.worked_examples import Beliefs as Beliefs
    from stirred.limits.worked_examples import ClampedCount as ClampedCount
    from stirred.limits.worked_examples import laplace_count_beliefs as laplace_count_beliefs
    from stirred.limits.worked_examples import laplace_count_bounds as laplace_count_bounds
    from stirred.limits.worked_examples import laplace_count_densities as laplace_count_densities
    from stirred.limits.worked_examples import laplace_count_mixture as laplace_count_mixture
    from stirred.limits.worked_examples import laplace_power as laplace_power
    from stirred.limits.worked_examples import laplace_threshold as laplace_threshold
    from stirred.limits.worked_examples import response_bounds as response_bounds
    from stirred.limits.worked_examples import response_likelihood as response_likelihood
    from stirred.limits.worked_examples import response_power as response_power

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
