"""The conversions between definitions, as data: what each starts from, what it gives, and whether that is the best.

*exact*: the number is the smallest that the first definition implies, since some mechanism attains it. *bound*: it
holds, but a smaller one may. *inverse*: a formula solved backwards, which is no implication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Exactness = Literal["exact", "bound", "inverse"]


@dataclass(frozen=True)
class Conversion:
    """One function of :mod:`stirred.loss`, by name; ``method`` where it has several."""

    name: str
    start: str
    end: str
    exactness: Exactness
    source: str
    method: str = ""


_BUN = "Bun and Steinke (2016)"
_CKS = "Canonne, Kamath and Steinke (2020), Proposition 12"
_KIFER = "Kifer et al. (2022)"
_KOV = "Kairouz, Oh and Viswanath (2015)"
_DONG = "Dong, Roth and Su (2022)"

CONVERSIONS = (
    Conversion("zcdp_to_approximate", "zCDP", "approximate DP", "bound", f"{_BUN}, Proposition 1.3", "classical"),
    Conversion("zcdp_to_approximate", "zCDP", "approximate DP", "bound", _CKS, "tight"),
    Conversion("zcdp_to_renyi", "zCDP", "Rényi DP", "exact", "definition"),
    Conversion("zcdp_to_total_variation", "zCDP", "total variation", "exact", "randomised response"),
    Conversion("zcdp_to_pbdp_delta", "zCDP", "pbdp", "bound", f"{_BUN}, Lemma 3.5", "classical"),
    Conversion("zcdp_to_pbdp_delta", "zCDP", "pbdp", "exact", "from the trade-off function", "exact"),
    Conversion("zcdp_to_pbdp_epsilon", "zCDP", "pbdp", "bound", f"{_BUN}, Lemma 3.5", "classical"),
    Conversion("zcdp_to_pbdp_epsilon", "zCDP", "pbdp", "exact", "from the trade-off function", "exact"),
    Conversion("ZcdpCurve", "zCDP", "f-DP", "exact", f"{_KIFER}, Theorem 6.3; attained by two coins"),
    Conversion("renyi_to_approximate", "Rényi DP", "approximate DP", "bound", _CKS),
    Conversion("renyi_to_pbdp_delta", "Rényi DP", "pbdp", "bound", f"{_KIFER}, section 5.3"),
    Conversion("renyi_to_pbdp_epsilon", "Rényi DP", "pbdp", "bound", f"{_KIFER}, section 5.3"),
    Conversion("renyi_orders_to_pbdp_delta", "Rényi DP", "pbdp", "bound", f"{_KIFER}, section 5.3"),
    Conversion("renyi_orders_to_pbdp_epsilon", "Rényi DP", "pbdp", "bound", f"{_KIFER}, section 5.3"),
    Conversion("RenyiCurve", "Rényi DP", "f-DP", "exact", f"{_KIFER}, Theorem 6.3; attained by two coins"),
    Conversion("gaussian_to_approximate", "Gaussian DP", "approximate DP", "exact", "Balle and Wang (2018)"),
    Conversion("gaussian_epsilon", "Gaussian DP", "approximate DP", "exact", "Balle and Wang (2018)"),
    Conversion("gaussian_to_zcdp", "Gaussian DP", "zCDP", "exact", f"{_BUN}, Proposition 1.6"),
    Conversion("gaussian_to_tail", "Gaussian DP", "tail of the loss", "exact", f"{_KIFER}, Example 5.12"),
    Conversion("gaussian_to_pbdp_delta", "Gaussian DP", "pbdp", "exact", f"{_KIFER}, Example 5.12"),
    Conversion("gaussian_to_pbdp_epsilon", "Gaussian DP", "pbdp", "exact", f"{_KIFER}, Example 5.12"),
    Conversion("GaussianCurve", "Gaussian DP", "f-DP", "exact", _DONG),
    Conversion("pure_to_zcdp", "pure DP", "zCDP", "exact", f"{_KOV}; randomised response"),
    Conversion("pure_to_renyi", "pure DP", "Rényi DP", "exact", f"{_KOV}; randomised response"),
    Conversion("pure_to_total_variation", "pure DP", "total variation", "exact", "randomised response"),
    Conversion("pure_to_pbdp_delta", "pure DP", "pbdp", "exact", "from the trade-off function"),
    Conversion("pure_to_pbdp_epsilon", "pure DP", "pbdp", "exact", "from the trade-off function"),
    Conversion("pure_power", "pure DP", "f-DP", "exact", "Wasserman and Zhou (2010)"),
    Conversion("approximate_to_zcdp", "approximate DP", "zCDP", "inverse", f"{_BUN}, Proposition 1.3"),
    Conversion("approximate_to_total_variation", "approximate DP", "total variation", "exact", _KOV),
    Conversion("approximate_to_pbdp_delta", "approximate DP", "pbdp", "exact", "from the trade-off function"),
    Conversion("approximate_to_pbdp_epsilon", "approximate DP", "pbdp", "exact", "from the trade-off function"),
    Conversion("approximate_power", "approximate DP", "f-DP", "exact", _KOV),
    Conversion("profile_power_curve", "approximate DP", "f-DP", "exact", f"{_KIFER}, section 6.2"),
    Conversion("group_approximate", "approximate DP", "approximate DP of groups", "bound", "Vadhan (2017), Lemma 2.2"),
    Conversion("power_to_approximate", "f-DP", "approximate DP", "exact", f"{_DONG}, Proposition 2.12"),
    Conversion("tradeoff_to_pbdp_delta", "f-DP", "pbdp", "exact", f"{_KIFER}, section 5.2"),
    Conversion("tradeoff_to_pbdp_epsilon", "f-DP", "pbdp", "exact", f"{_KIFER}, section 5.2"),
    Conversion("pbdp_to_power", "pbdp", "f-DP", "bound", f"{_KIFER}, Definition 5.5"),
    Conversion("pbdp_curve_to_type_two_error", "pbdp", "f-DP", "exact", f"{_KIFER}, Definition 5.5"),
    Conversion("pbdp_to_pure", "pbdp", "pure DP", "exact", f"{_KIFER}, Theorem A.1"),
)
"""Every conversion of :mod:`stirred.loss`."""
