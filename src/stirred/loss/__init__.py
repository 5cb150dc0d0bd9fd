"""Divergences, privacy-loss distributions, trade-off curves and conversions, without any use of specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.loss.conversions import (
        approximate_to_total_variation as approximate_to_total_variation,
        approximate_to_zcdp as approximate_to_zcdp,
        gaussian_epsilon as gaussian_epsilon,
        gaussian_to_approximate as gaussian_to_approximate,
        gaussian_to_zcdp as gaussian_to_zcdp,
        group_approximate as group_approximate,
        power_to_approximate as power_to_approximate,
        pure_to_renyi as pure_to_renyi,
        pure_to_total_variation as pure_to_total_variation,
        pure_to_zcdp as pure_to_zcdp,
        renyi_to_approximate as renyi_to_approximate,
        zcdp_to_approximate as zcdp_to_approximate,
        zcdp_to_renyi as zcdp_to_renyi,
        zcdp_to_total_variation as zcdp_to_total_variation,
    )
    from stirred.loss.curves.power_curves import (
        Curve as Curve,
        EpsilonProfile as EpsilonProfile,
        GaussianCurve as GaussianCurve,
        PowerCurve as PowerCurve,
        approximate_power as approximate_power,
        at_most as at_most,
        pure_power as pure_power,
    )
    from stirred.loss.curves.swap_curves import (
        pair_beliefs as pair_beliefs,
        pair_outcomes as pair_outcomes,
        pair_power_curve as pair_power_curve,
        swap_group_power_curve as swap_group_power_curve,
        swap_power_curve as swap_power_curve,
        swap_power_curve_of_rates as swap_power_curve_of_rates,
        swap_power_curve_up_to as swap_power_curve_up_to,
        swap_rates_power_curve as swap_rates_power_curve,
    )
    from stirred.loss.curves.tradeoffs import (
        RenyiCurve as RenyiCurve,
        TradeOff as TradeOff,
        ZcdpCurve as ZcdpCurve,
        attaining_pair as attaining_pair,
        composed_power_curve as composed_power_curve,
        inverted_power_curve as inverted_power_curve,
        level_at_power as level_at_power,
        profile_power_curve as profile_power_curve,
        symmetric_power_curve as symmetric_power_curve,
    )
    from stirred.loss.distributions.composition import (
        Bounds as Bounds,
        ComposedLoss as ComposedLoss,
        compose as compose,
    )
    from stirred.loss.distributions.loss_distribution import (
        LossDistribution as LossDistribution,
        approximate_loss as approximate_loss,
        discrete_gaussian as discrete_gaussian,
        finite_loss as finite_loss,
        gaussian as gaussian,
        geometric as geometric,
        laplace as laplace,
        randomised_response as randomised_response,
        sampling_loss as sampling_loss,
    )
    from stirred.loss.divergences import (
        approximate as approximate,
        hockey_stick as hockey_stick,
        multiplicative as multiplicative,
        normalised_renyi as normalised_renyi,
        power_curve as power_curve,
        renyi as renyi,
        total_variation as total_variation,
    )
    from stirred.loss.tails import (
        approximate_to_pbdp_delta as approximate_to_pbdp_delta,
        approximate_to_pbdp_epsilon as approximate_to_pbdp_epsilon,
        gaussian_to_pbdp_delta as gaussian_to_pbdp_delta,
        gaussian_to_pbdp_epsilon as gaussian_to_pbdp_epsilon,
        gaussian_to_tail as gaussian_to_tail,
        pbdp_curve_to_type_two_error as pbdp_curve_to_type_two_error,
        pbdp_to_power as pbdp_to_power,
        pbdp_to_pure as pbdp_to_pure,
        pure_to_pbdp_delta as pure_to_pbdp_delta,
        pure_to_pbdp_epsilon as pure_to_pbdp_epsilon,
        renyi_orders_to_pbdp_delta as renyi_orders_to_pbdp_delta,
        renyi_orders_to_pbdp_epsilon as renyi_orders_to_pbdp_epsilon,
        renyi_to_pbdp_delta as renyi_to_pbdp_delta,
        renyi_to_pbdp_epsilon as renyi_to_pbdp_epsilon,
        tradeoff_to_pbdp_delta as tradeoff_to_pbdp_delta,
        tradeoff_to_pbdp_epsilon as tradeoff_to_pbdp_epsilon,
        zcdp_to_pbdp_delta as zcdp_to_pbdp_delta,
        zcdp_to_pbdp_epsilon as zcdp_to_pbdp_epsilon,
    )
    from stirred.loss.worst_pairs import (
        WorstPair as WorstPair,
        WorstPowers as WorstPowers,
        worst_pair as worst_pair,
        worst_power_curve as worst_power_curve,
    )

__getattr__, __dir__ = lazy(
    __name__,
    moved={
        "stirred.lab.definitions.composition_filters": (
            "Filter PureFilter ZcdpFilter composed_approximate composed_pure composed_renyi composed_zcdp"
        ),
        "stirred.lab.definitions.conversion_table": "CONVERSIONS Conversion",
    },
)
