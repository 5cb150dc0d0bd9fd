"""Divergences, privacy-loss distributions, trade-off curves and conversions, without any use of specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.loss.composition import Bounds, ComposedLoss, compose
    from stirred.loss.conversion_table import CONVERSIONS, Conversion
    from stirred.loss.conversions import (
        approximate_to_total_variation,
        approximate_to_zcdp,
        gaussian_epsilon,
        gaussian_to_approximate,
        gaussian_to_zcdp,
        group_approximate,
        power_to_approximate,
        pure_to_renyi,
        pure_to_total_variation,
        pure_to_zcdp,
        renyi_to_approximate,
        zcdp_to_approximate,
        zcdp_to_renyi,
        zcdp_to_total_variation,
    )
    from stirred.loss.curves import (
        Curve,
        EpsilonProfile,
        GaussianCurve,
        PowerCurve,
        approximate_power,
        at_most,
        pure_power,
    )
    from stirred.loss.distributions import (
        LossDistribution,
        approximate_loss,
        discrete_gaussian,
        finite_loss,
        gaussian,
        geometric,
        laplace,
        randomised_response,
        sampling_loss,
    )
    from stirred.loss.divergences import (
        approximate,
        hockey_stick,
        multiplicative,
        normalised_renyi,
        power_curve,
        renyi,
        total_variation,
    )
    from stirred.loss.filters import (
        Filter,
        PureFilter,
        ZcdpFilter,
        composed_approximate,
        composed_pure,
        composed_renyi,
        composed_zcdp,
    )
    from stirred.loss.pairs import WorstPair, WorstPowers, worst_pair, worst_power_curve
    from stirred.loss.swap_curves import (
        pair_beliefs,
        pair_outcomes,
        pair_power_curve,
        swap_group_power_curve,
        swap_power_curve,
        swap_power_curve_of_rates,
        swap_power_curve_up_to,
        swap_rates_power_curve,
    )
    from stirred.loss.tails import (
        approximate_to_pbdp_delta,
        approximate_to_pbdp_epsilon,
        gaussian_to_pbdp_delta,
        gaussian_to_pbdp_epsilon,
        gaussian_to_tail,
        pbdp_curve_to_type_two_error,
        pbdp_to_power,
        pbdp_to_pure,
        pure_to_pbdp_delta,
        pure_to_pbdp_epsilon,
        renyi_orders_to_pbdp_delta,
        renyi_orders_to_pbdp_epsilon,
        renyi_to_pbdp_delta,
        renyi_to_pbdp_epsilon,
        tradeoff_to_pbdp_delta,
        tradeoff_to_pbdp_epsilon,
        zcdp_to_pbdp_delta,
        zcdp_to_pbdp_epsilon,
    )
    from stirred.loss.tradeoff_rules import (
        attaining_pair,
        composed_power_curve,
        inverted_power_curve,
        symmetric_power_curve,
    )
    from stirred.loss.tradeoffs import RenyiCurve, TradeOff, ZcdpCurve, level_at_power, profile_power_curve

__all__ = [
    "CONVERSIONS",
    "Bounds",
    "ComposedLoss",
    "Conversion",
    "Curve",
    "EpsilonProfile",
    "Filter",
    "GaussianCurve",
    "LossDistribution",
    "PowerCurve",
    "PureFilter",
    "RenyiCurve",
    "TradeOff",
    "WorstPair",
    "WorstPowers",
    "ZcdpCurve",
    "ZcdpFilter",
    "approximate",
    "approximate_loss",
    "approximate_power",
    "approximate_to_pbdp_delta",
    "approximate_to_pbdp_epsilon",
    "approximate_to_total_variation",
    "approximate_to_zcdp",
    "at_most",
    "attaining_pair",
    "compose",
    "composed_approximate",
    "composed_power_curve",
    "composed_pure",
    "composed_renyi",
    "composed_zcdp",
    "discrete_gaussian",
    "finite_loss",
    "gaussian",
    "gaussian_epsilon",
    "gaussian_to_approximate",
    "gaussian_to_pbdp_delta",
    "gaussian_to_pbdp_epsilon",
    "gaussian_to_tail",
    "gaussian_to_zcdp",
    "geometric",
    "group_approximate",
    "hockey_stick",
    "inverted_power_curve",
    "laplace",
    "level_at_power",
    "multiplicative",
    "normalised_renyi",
    "pair_beliefs",
    "pair_outcomes",
    "pair_power_curve",
    "pbdp_curve_to_type_two_error",
    "pbdp_to_power",
    "pbdp_to_pure",
    "power_curve",
    "power_to_approximate",
    "profile_power_curve",
    "pure_power",
    "pure_to_pbdp_delta",
    "pure_to_pbdp_epsilon",
    "pure_to_renyi",
    "pure_to_total_variation",
    "pure_to_zcdp",
    "randomised_response",
    "renyi",
    "renyi_orders_to_pbdp_delta",
    "renyi_orders_to_pbdp_epsilon",
    "renyi_to_approximate",
    "renyi_to_pbdp_delta",
    "renyi_to_pbdp_epsilon",
    "sampling_loss",
    "swap_group_power_curve",
    "swap_power_curve",
    "swap_power_curve_of_rates",
    "swap_power_curve_up_to",
    "swap_rates_power_curve",
    "symmetric_power_curve",
    "total_variation",
    "tradeoff_to_pbdp_delta",
    "tradeoff_to_pbdp_epsilon",
    "worst_pair",
    "worst_power_curve",
    "zcdp_to_approximate",
    "zcdp_to_pbdp_delta",
    "zcdp_to_pbdp_epsilon",
    "zcdp_to_renyi",
    "zcdp_to_total_variation",
]

__getattr__, __dir__ = lazy(
    __name__,
    by_module(
        {
            "stirred.loss.composition": "Bounds ComposedLoss compose",
            "stirred.loss.conversion_table": "CONVERSIONS Conversion",
            "stirred.loss.conversions": (
                "approximate_to_total_variation approximate_to_zcdp gaussian_epsilon gaussian_to_approximate "
                "gaussian_to_zcdp group_approximate power_to_approximate pure_to_renyi pure_to_total_variation "
                "pure_to_zcdp renyi_to_approximate zcdp_to_approximate zcdp_to_renyi zcdp_to_total_variation"
            ),
            "stirred.loss.curves": "Curve EpsilonProfile GaussianCurve PowerCurve approximate_power at_most pure_power",
            "stirred.loss.distributions": (
                "LossDistribution approximate_loss discrete_gaussian finite_loss gaussian geometric laplace "
                "randomised_response sampling_loss"
            ),
            "stirred.loss.divergences": (
                "approximate hockey_stick multiplicative normalised_renyi power_curve renyi total_variation"
            ),
            "stirred.loss.filters": (
                "Filter PureFilter ZcdpFilter composed_approximate composed_pure composed_renyi composed_zcdp"
            ),
            "stirred.loss.pairs": "WorstPair WorstPowers worst_pair worst_power_curve",
            "stirred.loss.swap_curves": (
                "pair_beliefs pair_outcomes pair_power_curve swap_group_power_curve swap_power_curve "
                "swap_power_curve_of_rates swap_power_curve_up_to swap_rates_power_curve"
            ),
            "stirred.loss.tails": (
                "approximate_to_pbdp_delta approximate_to_pbdp_epsilon gaussian_to_pbdp_delta "
                "gaussian_to_pbdp_epsilon gaussian_to_tail pbdp_curve_to_type_two_error pbdp_to_power "
                "pbdp_to_pure pure_to_pbdp_delta pure_to_pbdp_epsilon renyi_orders_to_pbdp_delta "
                "renyi_orders_to_pbdp_epsilon renyi_to_pbdp_delta renyi_to_pbdp_epsilon tradeoff_to_pbdp_delta "
                "tradeoff_to_pbdp_epsilon zcdp_to_pbdp_delta zcdp_to_pbdp_epsilon"
            ),
            "stirred.loss.tradeoff_rules": (
                "attaining_pair composed_power_curve inverted_power_curve symmetric_power_curve"
            ),
            "stirred.loss.tradeoffs": "RenyiCurve TradeOff ZcdpCurve level_at_power profile_power_curve",
        }
    ),
)
