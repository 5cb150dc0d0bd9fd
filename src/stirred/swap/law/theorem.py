"""What the Permutation Swapping Algorithm promises, in numbers (Theorem 3.2.4 and Appendix B.4).

The guarantee of swapping depends on two numbers only: the swap rate p, and b, the size of the largest stratum
that holds two different records (``largest_stratum`` here). With the odds o = p/(1-p),

    epsilon = max( ln(b+1) - ln o,  ln o )      for b > 0 and 0 < p < 1.

With rates by rule (:func:`epsilon_of_rates`) the same holds stratum by stratum, with the lowest odds in the first
branch and the highest in the second; docs/guarantee.md has the proof.

The invariant a reader must know: this epsilon is a bound per unit of d_HamS *inside* a universe, and no two
datasets of a swapping universe are at distance one (Lemma B.3.4). The nearest are two records apart, so the
likelihood ratio between neighbours is bounded by exp(2 epsilon), not by exp(epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from stirred.errors import rate_out_of_range
from stirred.loss.curves.swap_laws import derangements

# -- the guarantee -------------------------------------------------------------------------------------------


def epsilon(largest_stratum: int, rate: Fraction) -> float:
    """The privacy loss budget of Theorem 3.2.4.

    Rounded up, by less than two units in a float's last place: the decimal that it prints as, which is how a budget is
    read, is never below the true value. Without two different records in any stratum (b = 0) nothing is lost; rates 0
    and 1 have no finite epsilon.

    >>> epsilon(264_331, Fraction("0.05"))  # Table 3.2: two-person households of Massachusetts, 1940
    15.4294...
    >>> epsilon(2, Fraction(1)), epsilon(0, Fraction(1))
    (inf, 0.0)
    """
    _require_stratum(largest_stratum)
    require_rate(rate)
    if largest_stratum == 0:
        return 0.0
    if rate in (0, 1):
        return math.inf
    return _log_up(_worst_ratio(largest_stratum, rate))


def epsilon_of_rates(rates: Iterable[tuple[Fraction, int]]) -> float:
    """The privacy loss budget where records have different rates, by what is kept exactly.

    ``rates`` are the rates that occur, each with the size b of the largest stratum where a record has it, among strata
    with two different held and two different swap values: 0 if there is none. Epsilon is the largest that one of them
    gives by itself. Rounded up as :func:`epsilon` is.

    >>> epsilon_of_rates([(Fraction("0.02"), 1000), (Fraction("0.5"), 1000)])
    10.8005...
    >>> epsilon_of_rates([(Fraction("0.02"), 0)]), epsilon(1000, Fraction("0.02"))
    (0.0, 10.8005...)
    """
    return max((epsilon(largest, rate) for rate, largest in rates), default=0.0)


def epsilon_before_0_3(largest_stratum: int, rate: Fraction) -> float:
    """The same as versions before 0.3 stated it: rounded to the nearest float, so at times too small by 1e-15.

    Here so that their releases can be verified; nothing else may use it.
    """
    if largest_stratum == 0 or rate in (0, 1):
        return epsilon(largest_stratum, rate)
    return _log(_worst_ratio(largest_stratum, rate))


def _worst_ratio(largest_stratum: int, rate: Fraction) -> Fraction:
    odds = _odds(rate)
    return max((largest_stratum + 1) / odds, odds)


# -- choosing a rate -----------------------------------------------------------------------------------------


def best_rate(largest_stratum: int) -> float:
    """The swap rate with the smallest epsilon, where the two branches of Theorem 3.2.4 meet (section 3.5.1).

    Higher rates cost more again: a derangement leaves nobody in place, and says so.

    >>> best_rate(10), best_rate(1_000_000)
    (0.768337..., 0.999000...)
    """
    _require_stratum(largest_stratum)
    root = math.sqrt(largest_stratum + 1)
    return root / (root + 1)


def smallest_epsilon(largest_stratum: int) -> float:
    """The smallest epsilon that any swap rate attains, ln(b+1)/2 (section 3.5.1).

    >>> smallest_epsilon(10), smallest_epsilon(1_000_000)
    (1.198947..., 6.907755...)
    """
    _require_stratum(largest_stratum)
    return math.log(largest_stratum + 1) / 2


def rates_for(wanted: float, largest_stratum: int) -> tuple[float, float] | None:
    """The two swap rates whose epsilon is ``wanted``; None if no rate reaches so low (section 3.5.1).

    Every rate between the two has an epsilon of at most ``wanted``, every rate outside a larger one. When b
    = 0 all rates cost nothing, hence (0.0, 1.0).

    >>> rates_for(3.0, 10)
    (0.353862..., 0.952574...)
    >>> rates_for(1.0, 10) is None
    True
    """
    if not wanted >= smallest_epsilon(largest_stratum):
        return None
    if largest_stratum == 0:
        return 0.0, 1.0
    return _rate_with_log_odds(math.log(largest_stratum + 1) - wanted), _rate_with_log_odds(wanted)


# -- rates that differ ---------------------------------------------------------------------------------------


def kept_share(low: Fraction, high: Fraction) -> Fraction:
    """A lower bound on the chance that not exactly one record of a stratum is selected, at rates from low to high.

    The chance of exactly one is affine in every rate, so it is largest where each is ``low`` or ``high``. Two records
    of one rate p >= 1/2 leave at most 1/2 of it, and a further record lowers it where it is above 1/2. So, beyond 1/2,
    the worst stratum has one record of each.

    >>> kept_share(Fraction(1, 50), Fraction(1, 2)), kept_share(Fraction(1, 100), Fraction(99, 100))
    (Fraction(1, 2), Fraction(99, 5000))
    """
    return min(Fraction(1, 2), high * low + (1 - high) * (1 - low))


# -- how many records move -----------------------------------------------------------------------------------


def moved_probability(stratum_size: int, rate: Fraction) -> float:
    """The probability q that a given record of a stratum of n records is moved.

        q = p [1 - (1-p)^(n-1)] / [1 - n p (1-p)^(n-1)]

    The denominator is the probability that a selection is kept: one record alone cannot be deranged, so the
    stratum is selected anew (Algorithm 3.2.1, line 11). In small strata q is far from p; at np = 1 they
    agree.

    >>> moved_probability(2, Fraction("0.05")), moved_probability(20, Fraction("0.05"))
    (0.002762..., 0.05...)
    """
    require_rate(rate)
    if stratum_size <= 1 or rate == 0:
        return 0.0
    if rate == 1:
        return 1.0
    p, log_unselected = float(rate), log_complement(rate)
    alone = stratum_size * p * math.exp((stratum_size - 1) * log_unselected)
    # The chance of exactly one selection is at most 1/2 (n = 2), so its complement does not cancel.
    return -p * math.expm1((stratum_size - 1) * log_unselected) / (1 - alone)


# -- how far the theorem could be improved -------------------------------------------------------------------


def lower_bound(largest_stratum: int, rate: Fraction) -> float:
    """An epsilon below which no proof can go, for the *worst* universe with this b (Theorem B.4.1).

    The larger of (B) ln o and (C) (1/2) ln[d(b)/d(b-2)] - ln o, d(k) being the derangement numbers; never
    below 0, and infinite for rates 0 and 1 by (A). It speaks of some universe, not of a particular file's:
    one with few categories may lose far less. The universe of (C) needs as many categories on each side as
    ``gap`` says.

    For b = 3 the printed (C) divides by d(1) = 0. Three records that share no value give (1/3) ln d(3) - ln o
    instead: compare two datasets that a cyclic shift of all three turns into each other.

    >>> lower_bound(10, Fraction("0.05")), epsilon(10, Fraction("0.05"))
    (5.1943..., 5.3423...)
    """
    _require_stratum(largest_stratum)
    require_rate(rate)
    if largest_stratum == 0:
        return 0.0
    if rate in (0, 1):
        return math.inf
    odds = _odds(rate)
    if largest_stratum == 3:
        from_derangements = _log(derangements(3) / odds**3) / 3
    else:
        from_derangements = _log(_derangement_ratio(largest_stratum) / odds**2) / 2
    return max(0.0, _log(odds), from_derangements)


def gap(largest_stratum: int, rate: Fraction) -> float:
    """How far Theorem 3.2.4 can exceed the true loss of the *worst* universe with this b (Theorem B.4.2).

    Zero where ln o rules, and below the best rate

        f(b) = (1/2) ln[ (b+1)^2 / (b(b-1)) * (1 + e/(2(b-2)!)) / (1 - e/(2 b!)) ].

    It says nothing of a particular file. The theorem asks for at least four categories on each side. Its
    proof needs five when b is odd, since with four (B.9) and (B.10) leave room for b-1 records only: at b = 5
    the worst universe of four categories falls short by more than f(5). At b = 3 all universes do when the
    rate is low; ln 4 - (1/3) ln 2 is returned, which does hold.

    >>> gap(10, Fraction("0.05")), gap(10, Fraction("0.8"))
    (0.148007..., 0.0)
    """
    _require_stratum(largest_stratum)
    require_rate(rate)
    if largest_stratum == 0 or rate in (0, 1) or _odds(rate) ** 2 >= largest_stratum + 1:
        return 0.0
    if largest_stratum == 3:
        return math.log(4) - math.log(2) / 3
    b = largest_stratum
    # (b+1)^2/(b(b-1)) is 1 + (3b+1)/(b(b-1)): log1p keeps the digits when b is in the millions.
    return (
        math.log1p((3 * b + 1) / (b * (b - 1)))
        + math.log1p(math.exp(1 - math.lgamma(b - 1)) / 2)
        - math.log1p(-math.exp(1 - math.lgamma(b + 1)) / 2)
    ) / 2


# -- helpers -------------------------------------------------------------------------------------------------


def require_rate(rate: Fraction) -> None:
    """Refuse a rate that is not a probability."""
    if not 0 <= rate <= 1:
        raise rate_out_of_range(rate)


def log_complement(rate: Fraction) -> float:
    """ln(1-p) for an exact p < 1, without loss when p is tiny and without loss when p is close to 1.

    >>> log_complement(Fraction(1, 10**20)), log_complement(1 - Fraction(1, 10**20))
    (-1e-20, -46.0517...)
    """
    return math.log1p(-float(rate)) if 2 * rate < 1 else _log(1 - rate)


def _require_stratum(largest_stratum: int) -> None:
    # One record cannot differ from itself, so b = 1 never arises (section 3.2.3).
    if largest_stratum < 0 or largest_stratum == 1:
        raise ValueError(f"a largest stratum of two different records has 0 or >= 2, not {largest_stratum}")


def _odds(rate: Fraction) -> Fraction:
    return Fraction(rate) / (1 - rate)


def _log(ratio: Fraction) -> float:
    """The logarithm of an exact ratio; close to 1 through log1p of the exact difference."""
    if 1 < 2 * ratio < 4:
        return math.log1p(float(ratio - 1))
    try:
        return math.log(float(ratio))
    except (OverflowError, ValueError):  # beyond the range of floats; integers have logarithms at any size
        return math.log(ratio.numerator) - math.log(ratio.denominator)


def _log_up(ratio: Fraction) -> float:
    """A float whose shortest decimal is at least the logarithm of an exact ratio, and hardly above it.

    A budget is read as the shortest decimal of a float, so it is that decimal which must not be too small.
    """
    with localcontext(prec=60, rounding=ROUND_CEILING) as context:
        above = Decimal(ratio.numerator) / Decimal(ratio.denominator)
        bound = Fraction(context.next_plus(above.ln()))  # ln is rounded to nearest, whatever the context says
    value = float(bound)
    while Fraction(repr(value)) < bound:
        value = math.nextafter(value, math.inf)
    return value


def _rate_with_log_odds(log_odds: float) -> float:
    if log_odds > 0:
        return 1 / (1 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1 + odds)


def _derangement_ratio(k: int) -> Fraction:
    # d(k) = k!/e to within 1/2, so that from k = 30 on the ratio is k(k-1) to 28 digits.
    return Fraction(derangements(k), derangements(k - 2)) if k < 30 else Fraction(k * (k - 1))
