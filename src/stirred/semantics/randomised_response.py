"""Randomised response (Warner 1965): the share behind answers of which each may have been flipped.

Each respondent holds a bit and tells it truly with probability p, else its opposite (U = 1 with probability p, reported
is whether X = U). A mean answer T then stands for a share of (T + p - 1) / (2 p - 1) of ones.

Keep in mind: all formulas are the same for p and 1 - p, with 0 and 1 exchanged in the answers; so p
below 1/2 is as good as above, and only p = 1/2, where answers say nothing, is refused. Estimates are not cut off at 0
and 1: that would make them biased.

:class:`ResponseSummary` is the answer to ``stirred responses``: the share, and what one answer tells about who gave it
(slides of Bailie, Gong, Meng and Drechsler 2024).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.semantics.sentences.formatting import bullet, columns, up
from stirred.spec.exact import finite_or_none


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


PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))


@brief
@dataclass(frozen=True)
class ResponseSummary:
    """So many of the answers are yes, each told truly with probability ``keep``.

    Make one with :func:`summarise_responses`.
    """

    yes: int
    answers: int
    keep: Fraction
    priors: tuple[Fraction, ...]

    @property
    def share(self) -> float:
        """The estimated share of people whose true answer is yes; unbiased, so it may be below 0 or above 1."""
        return estimated_share(Fraction(self.yes, self.answers), self.keep)

    @property
    def standard_error(self) -> float | None:
        """That of the share in the population the respondents were drawn from, estimated; None for one answer.

        The true one lies between that of the coins alone and the largest over all shares, and so does the estimate.
        """
        if self.answers < 2:
            return None
        estimated = math.sqrt(estimated_variance(Fraction(self.yes, self.answers), self.keep, self.answers))
        return min(max(estimated, self.standard_error_of_coins), self.largest_standard_error)

    @property
    def standard_error_of_coins(self) -> float:
        """That of the share among these very respondents, exactly."""
        return math.sqrt(variance_of_coins(self.keep, self.answers))

    @property
    def largest_standard_error(self) -> float:
        """The largest standard error over all shares: 1 / (4 sqrt(n) |p - 1/2|)."""
        return math.sqrt(variance_bound(self.keep, self.answers))

    @property
    def epsilon(self) -> float:
        """The epsilon of one answer."""
        return epsilon(self.keep)

    @property
    def likelihood_ratio(self) -> float:
        """P(answer yes | truly yes) / P(answer yes | truly no) = p / (1 - p); of the answer no its inverse."""
        return float(self.keep / (1 - self.keep)) if self.keep < 1 else math.inf

    def posterior(self, prior: Fraction, told_yes: bool) -> float | None:
        """The probability that somebody's true answer is yes, after her answer, to somebody who sees no other that
        depends on it; None where that answer cannot occur."""
        p = self.keep if told_yes else 1 - self.keep
        total = p * prior + (1 - p) * (1 - prior)
        return float(p * prior / total) if total else None

    def text(self) -> str:
        """The summary as text for a terminal."""
        sampled = self.standard_error
        drawn = "" if sampled is None else f"estimated as {sampled:.4g}, and "
        told = (
            f"An answer of yes is {self.likelihood_ratio:.4g} times as probable from somebody whose true answer is yes "
            "as from somebody whose true answer is no."
            if 0 < self.keep < 1
            else "An answer shows the truth."
        )
        protected = f"epsilon = {up(self.epsilon, 3).shown}" if math.isfinite(self.epsilon) else "no finite epsilon"
        said = [
            f"Estimated share of yes: {self.share:.4g}. It is (mean + p - 1)/(2p - 1), which is unbiased and may lie "
            "outside of 0 to 1.",
            f"Its standard error is {self.standard_error_of_coins:.4g} for these respondents. If they were drawn at "
            f"random from a population it is {drawn}at most {self.largest_standard_error:.4g} whatever the share, "
            "1/(4 sqrt(n) |p - 1/2|).",
            f"One answer is protected with {protected}: |ln p/(1 - p)|. {told}",
            "What one answer tells about who gave it is below, for somebody to whom the answers of others say nothing "
            "about hers. Where they do, because people resemble each other, more can be learnt: up to a factor of "
            "e^(c epsilon) for c people who depend on each other. See: stirred docs semantics",
        ]
        rows = [("believed before", "after yes", "after no")]
        for prior in self.priors:
            yes, no = (
                "-" if one is None else f"{one:.4g}" for one in map(self.posterior, (prior, prior), (True, False))
            )
            rows.append((f"{float(prior):g}", yes, no))
        heading = f"{self.yes:,} of {self.answers:,} answers are yes, each told truly with probability {self.keep}"
        return "\n".join([heading, *map(bullet, said)]) + f"\n\n{columns(rows, numbers_right=True)}\n"

    def to_json(self) -> str:
        """All numbers as JSON; what is infinite is null."""
        fields: dict[str, Any] = {
            "stirred_responses": 1,
            "yes": self.yes,
            "answers": self.answers,
            "keep": str(self.keep),
            "share": self.share,
            "standard_error": self.standard_error,
            "standard_error_of_coins": self.standard_error_of_coins,
            "largest_standard_error": self.largest_standard_error,
            "epsilon": finite_or_none(self.epsilon),
            "likelihood_ratio": finite_or_none(self.likelihood_ratio),
            "posteriors": [
                {
                    "prior": str(prior),
                    "after_yes": self.posterior(prior, True),
                    "after_no": self.posterior(prior, False),
                }
                for prior in self.priors
            ],
        }
        return json.dumps(fields, indent=2) + "\n"


@refuses_wrong_arguments
def summarise_responses(yes: int, answers: int, keep: Any, priors: Iterable[Any] = PRIORS) -> ResponseSummary:
    """Summarise randomised responses: ``yes`` of the ``answers``, each told truly with probability ``keep``.

    >>> found = summarise_responses(45, 100, "0.6")
    >>> found.share, found.standard_error, found.epsilon
    (0.25, 0.25, 0.405465...)
    """
    for name, value in (("yes", yes), ("answers", answers)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.parameter_out_of_range(name, value, "a whole number")
    if answers < 1 or not 0 <= yes <= answers:
        raise errors.parameter_out_of_range("yes", yes, "from 0 to the number of answers, which is at least 1")
    estimated_share(Fraction(yes, answers), keep)  # says what is wrong with the probability
    return ResponseSummary(yes, answers, as_fraction(keep), tuple(_share("prior", one) for one in priors))


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
