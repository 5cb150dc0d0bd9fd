"""The kinds of output premetric, in a module for each family; users register their own in the same way."""

from stirred.spec.kinds.approximate import APPROXIMATE, APPROXIMATE_PROFILE
from stirred.spec.kinds.kind import KINDS, Composed, Grouped, Kind, Rule, register
from stirred.spec.kinds.multiplicative import MULTIPLICATIVE
from stirred.spec.kinds.renyi import NORMALISED_RENYI, RENYI
from stirred.spec.kinds.total_variation import TOTAL_VARIATION
from stirred.spec.kinds.trade_off import TRADE_OFF

__all__ = ["KINDS", "Composed", "Grouped", "Kind", "Rule", "register"]

for _kind in (
    MULTIPLICATIVE,
    APPROXIMATE,
    APPROXIMATE_PROFILE,
    RENYI,
    NORMALISED_RENYI,
    TOTAL_VARIATION,
    TRADE_OFF,
):
    register(_kind)
