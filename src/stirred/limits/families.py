"""The range of log density ratios within one family, in closed form: Laplace, normal and gamma.

Only members with the same tails have a finite range, which is why Laplace noise of one scale gives differential privacy
and normal noise does not.
"""

from __future__ import annotations

import math

Member = tuple[str, float, float]
"""The name of the family and the two parameters: location and scale, or shape and rate."""


def log_ratios_in_family(f: Member, g: Member) -> tuple[float, float]:
    """inf and sup of ln f/g over the line, for two members of one family.

    >>> log_ratios_in_family(("laplace", 0, 2), ("laplace", 1, 2))
    (-0.5, 0.5)
    """
    assert f[0] == g[0]
    if f == g:
        return 0.0, 0.0
    highest = {"laplace": _laplace, "normal": _normal, "gamma": _gamma}[f[0]]
    return -highest(g[1], g[2], f[1], f[2]), highest(f[1], f[2], g[1], g[2])


def _laplace(a: float, b: float, a_other: float, b_other: float) -> float:
    """Infinite where the first has the wider tail; else the ratio is largest at the first one's own peak."""
    if b > b_other:
        return math.inf
    return abs(a - a_other) / b_other + math.log(b_other / b)


def _normal(a: float, b: float, a_other: float, b_other: float) -> float:
    """A quadratic in t: bounded above where it opens downwards."""
    if b >= b_other:
        return math.inf
    return math.log(b_other / b) + (a - a_other) ** 2 / (2 * (b_other**2 - b**2))


def _gamma(k: float, r: float, k_other: float, r_other: float) -> float:
    """(k - k') ln t - (r - r') t and a constant."""
    constant = k * math.log(r) - k_other * math.log(r_other) - math.lgamma(k) + math.lgamma(k_other)
    more, faster = k - k_other, r - r_other
    if more < 0 or faster < 0 or (faster == 0 and more > 0):
        return math.inf
    if more == 0:
        return constant
    return constant + more * math.log(more / faster) - more
