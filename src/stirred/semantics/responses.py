"""Randomised response (Warner 1965): how a share is estimated from answers of which each may have been flipped.

Each respondent holds a bit and tells it truly with probability p, else its opposite (U = 1 with probability p, reported
is whether X = U). A mean answer T then stands for a share of (T + p - 1) / (2 p - 1) of ones.

Keep in mind: all formulas are the same for p and 1 - p, with 0 and 1 exchanged in the answers; so p
below 1/2 is as good as above, and only p = 1/2, where answers say nothing, is refused. Estimates are not cut off at 0
and 1: that would make them biased.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction


def epsilon(keep: Any) -> float:
    """The pure-DP loss of one answer told truly with probability ``keep``: |ln p/(1 - p)|.

    The likelihood ratio of an answer is e^epsilon for one value of the bit against the other, and e^-epsilon the other
    way round. Infinite if answers are always true, or never.

    >>> epsilon(0.6), epsilon("1/2")
    (0.405465..., 0.0)
    """
    p = _share("keep", keep)
    return abs(math.log(p / (1 - p))) if 0 < p < 1 else math.inf


def expected_mean(share: Any, keep: Any) -> float:
    """The share of ones among the answers if ``share`` hold a one: p share + (1 - p)(1 - share).

    >>> expected_mean(0.25, 0.6)
    0.45
    """
    return float(_mean(_share("share", share), _share("keep", keep)))


def estimated_share(mean: Any, keep: Any) -> float:
    """The share of ones among the respondents, from the mean of their answers: (mean + p - 1) / (2 p - 1). Unbiased.

    >>> estimated_share(0.45, 0.6), estimated_share(0.3, 0.6)
    (0.25, -0.5)
    """
    p = _telling(keep)
    return float((_share("mean", mean) + p - 1) / (2 * p - 1))


def variance(share: Any, keep: Any, respondents: int) -> float:
    """The variance of the estimate if respondents are drawn from a population of which ``share`` hold a one.

    With m the expected mean it is m (1 - m) / (n (2 p - 1)^2): what sampling alone would give, share (1 - share) / n,
    and :func:`variance_of_coins`.

    >>> variance(0.25, 0.6, 100)
    0.061875
    """
    p, n = _telling(keep), _count(respondents)
    mean = _mean(_share("share", share), p)
    return float(mean * (1 - mean) / (n * (2 * p - 1) ** 2))


def variance_of_coins(keep: Any, respondents: int) -> float:
    """The variance of the estimate of the share among these very respondents: p (1 - p) / (n (2 p - 1)^2).

    >>> variance_of_coins(0.6, 100)
    0.06
    """
    p, n = _telling(keep), _count(respondents)
    return float(p * (1 - p) / (n * (2 * p - 1) ** 2))


def variance_bound(keep: Any, respondents: int) -> float:
    """The largest variance over all shares, attained at 1/2: 1 / (16 n (p - 1/2)^2).

    >>> variance_bound(0.6, 100)
    0.0625
    """
    return variance(Fraction(1, 2), keep, respondents)


def estimated_variance(mean: Any, keep: Any, respondents: int) -> float:
    """An unbiased estimate of :func:`variance` from the answers: mean (1 - mean) / ((n - 1)(2 p - 1)^2).

    >>> estimated_variance(0.45, 0.6, 100)
    0.0625
    """
    p, n = _telling(keep), _count(respondents)
    if n < 2:
        raise errors.parameter_out_of_range("The number of respondents", n, "at least 2, to estimate a variance")
    share = _share("mean", mean)
    return float(share * (1 - share) / ((n - 1) * (2 * p - 1) ** 2))


# -- helpers -------------------------------------------------------------------------------------------------


def _mean(share: Fraction, p: Fraction) -> Fraction:
    return p * share + (1 - p) * (1 - share)


def _share(name: str, value: Any) -> Fraction:
    try:
        share = as_fraction(value)
    except NOT_A_NUMBER:
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise errors.parameter_out_of_range(name, value, "between 0 and 1")
    return share


def _telling(keep: Any) -> Fraction:
    p = _share("keep", keep)
    if p == Fraction(1, 2):
        raise errors.parameter_out_of_range("keep", keep, "another number than 1/2, at which answers tell nothing")
    return p


def _count(respondents: int) -> int:
    if isinstance(respondents, bool) or not isinstance(respondents, int) or respondents < 1:
        raise errors.parameter_out_of_range("The number of respondents", respondents, "a whole number from 1 on")
    return respondents
