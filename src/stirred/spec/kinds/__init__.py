"""The kinds of output premetric; users register their own in the same way."""

from stirred.spec.kinds.kind import KINDS, Composed, Grouped, Kind, Rule, register
from stirred.spec.kinds.of_events import APPROXIMATE, APPROXIMATE_PROFILE, MULTIPLICATIVE, TOTAL_VARIATION
from stirred.spec.kinds.of_laws import NORMALISED_RENYI, RENYI, TRADE_OFF

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
