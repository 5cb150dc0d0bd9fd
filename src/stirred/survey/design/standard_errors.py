"""Estimates of a file by domain with their design variances, linearised or from replicate weights; confidential.

Linearised: every estimate has the variance of the total of its scores: values for a total, (y - R x) / X for a ratio
(of a mean x is 1 and X the sum of weights). A total of scores z has the variance sum over strata of (1 - f) n / (n - 1)
times the sum over clusters of (z of the cluster - mean of the stratum)^2: clusters of the first stage are taken as
drawn with replacement, and f is the share of them that was selected where the population is known (Särndal, Swensson,
Wretman 1992, sections 4.6 and 5.5; Binder 1983). Keep in mind: n is the number of selected clusters that the design
states, so that a cluster without a record in a domain, or without any respondent, counts with the total 0.

Replicated: an estimate is computed again with each of R columns of replicate weights, and its variance is the sum over
replicates of a coefficient times the squared distance from the estimate: 1 / R (BRR, bootstrap), 1 / (R (1 - k)^2)
(Fay), (R - 1) / R (JK1), (n - 1) / n of the replicate's stratum (JKn), 4 / R (successive differences, as in the
American Community Survey with R = 80). Keep in mind: replicate weights hold the base weight already, and may be 0 or
negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
Method = Literal["brr", "fay", "jk1", "jkn", "bootstrap", "sdr"]

_BLOCK = 1 << 15
"""Records that are added up at a time: their replicate weights stay in the cache of a processor."""


@withheld
@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates and their variances, by domain; not a number where a domain has no weight to divide by."""

    values: Numbers
    variances: Numbers

    @property
    def standard_errors(self) -> Numbers:
        return np.sqrt(self.variances)


# -- linearised --------------------------------------------------------------------------------------------------


@withheld
@dataclass(frozen=True, eq=False)
class FirstStage:
    """Strata and clusters (primary sampling units) of the first stage of selection; made by :meth:`of`."""

    clusters: Codes
    """Of each record, numbered through all strata in their order."""
    cluster_strata: Codes
    """Of each cluster that has a record."""
    selected: Codes
    """Clusters that were selected, by stratum."""
    population: Numbers
    """Clusters that there are, by stratum; infinite where nothing is known."""

    @classmethod
    def of(
        cls, strata: Codes, clusters: Codes | None, selected: Sequence[int], population: Sequence[float]
    ) -> FirstStage:
        """A first stage from codes of records (without clusters each is one) and numbers of clusters by stratum."""
        if clusters is None:
            order = np.argsort(strata, kind="stable")
            among, cluster_strata = np.empty(len(strata), dtype=np.int64), strata[order]
            among[order] = np.arange(len(strata))
        else:
            width = int(clusters.max(initial=0)) + 1
            keys, among = np.unique(strata * width + clusters, return_inverse=True)
            cluster_strata = keys // width
        return cls(among, cluster_strata, np.array(selected), np.array(population, dtype=np.float64))

    @cached_property
    def scales(self) -> Numbers:
        """(1 - f) n / (n - 1) by stratum; 0 where one cluster was selected."""
        several = self.selected > 1
        not_selected = 1 - self.selected / self.population
        return np.where(several, not_selected * self.selected / np.where(several, self.selected - 1, 1), 0.0)


@withheld
@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Records with weights and domains; without a first stage nothing tells variances."""

    weights: Numbers
    domains: Codes
    """Codes from 0 on."""
    number_of_domains: int
    stage: FirstStage | None = None

    def totals(self, values: Numbers | None = None) -> Estimates:
        """Horvitz-Thompson totals by domain: sums of weights times values; without values, counts (sums of weights).

        >>> sample = WeightedSample(np.array([10.0, 10, 20]), np.array([0, 0, 1]), 2)
        >>> sample.totals().values.tolist(), sample.totals(np.array([1, 3, 2])).values.tolist()
        ([20.0, 20.0], [40.0, 40.0])
        """
        scores = np.ones(len(self.weights)) if values is None else values
        return Estimates(self._added(scores), self._variances(scores))

    def ratios(self, above: Numbers, below: Numbers | None = None) -> Estimates:
        """Ratios of two totals by domain; without a denominator Hájek means, totals over sums of weights.

        >>> WeightedSample(np.array([10.0, 10, 20]), np.array([0, 0, 0]), 1).ratios(np.array([1, 3, 2])).values.tolist()
        [2.0]
        """
        below = np.ones(len(self.weights)) if below is None else below
        divisors = self._added(below)
        divisors[divisors == 0] = np.nan
        quotients = self._added(above) / divisors
        # Empty domains have no record, so that no score is divided by nothing, except where denominators cancel.
        own = self.domains
        with np.errstate(invalid="ignore"):
            scores = (above - quotients[own] * below) / divisors[own]
        undefined = np.isnan(quotients)
        variances = self._variances(np.where(undefined[own], 0.0, scores))
        variances[undefined] = np.nan
        return Estimates(quotients, variances)

    def _added(self, values: Numbers) -> Numbers:
        """Weighted sums of values over domains."""
        return _sums(self.domains, self.weights * values, self.number_of_domains)

    def _variances(self, scores: Numbers) -> Numbers:
        """Variances of weighted totals of scores."""
        if self.stage is None:
            return np.full(self.number_of_domains, np.nan)
        at = self._places
        selected = self.stage.selected[at.group_strata]
        totals = _sums(at.pairs, self.weights * scores, len(at.pair_groups))
        means = _sums(at.pair_groups, totals, len(selected)) / selected
        within = _sums(at.pair_groups, (totals - means[at.pair_groups]) ** 2, len(selected))
        within = within + (selected - at.group_sizes) * means * means  # clusters with the total 0
        return _sums(at.group_domains, self.stage.scales[at.group_strata] * within, self.number_of_domains)

    @cached_property
    def _places(self) -> _Places:
        assert self.stage is not None
        clusters = len(self.stage.cluster_strata)
        keys, pairs = np.unique(self.domains * clusters + self.stage.clusters, return_inverse=True)
        domains, pair_clusters = np.divmod(keys, max(1, clusters))
        strata = self.stage.cluster_strata[pair_clusters]
        begins = np.ones(len(keys), dtype=bool)
        begins[1:] = (domains[1:] != domains[:-1]) | (strata[1:] != strata[:-1])
        groups = np.cumsum(begins) - 1
        return _Places(pairs, groups, domains[begins], strata[begins], np.bincount(groups, minlength=int(begins.sum())))


@dataclass(frozen=True, eq=False)
class _Places:
    """Which totals there are: pairs of a domain and a cluster that has a record in it, in this order."""

    pairs: NDArray[np.intp]
    """Of the records."""
    pair_groups: NDArray[np.intp]
    """A group is a domain in a stratum."""
    group_domains: Codes
    group_strata: Codes
    group_sizes: Codes
    """Pairs of each group."""


def _sums(groups: NDArray[np.intp], values: Numbers, number: int) -> Numbers:
    return np.bincount(groups, values, minlength=number).astype(np.float64, copy=False)


# -- replicated --------------------------------------------------------------------------------------------------


@withheld
@dataclass(frozen=True, eq=False)
class ReplicatedSample:
    """Records with weights, replicate weights (records by replicates) and domains."""

    weights: Numbers
    replicates: Numbers
    coefficients: Numbers
    """Of the squared distances: see :func:`replicate_coefficients`."""
    domains: Codes
    """Codes from 0 on."""
    number_of_domains: int

    def totals(self, values: Numbers | None = None) -> Estimates:
        """Totals by domain; without values, counts (sums of weights).

        >>> sample = ReplicatedSample(np.ones(2), np.diag([2.0, 2.0]), np.array([0.5, 0.5]), np.zeros(2, dtype=int), 1)
        >>> sample.totals(np.array([3, 5])).values.tolist(), sample.totals(np.array([3, 5])).variances.tolist()
        ([8.0], [4.0])
        """
        return self._estimates(*(self._counts if values is None else self._sums(values)))

    def ratios(self, above: Numbers, below: Numbers | None = None) -> Estimates:
        """Ratios of two totals by domain, or means; no variance where a replicate has the denominator 0."""
        over, under = self._sums(above), self._counts if below is None else self._sums(below)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole, each = (one / other for one, other in zip(over, under, strict=True))
        return self._estimates(*(np.where(np.isfinite(one), one, np.nan) for one in (whole, each)))

    def _estimates(self, whole: Numbers, each: Numbers) -> Estimates:
        away = each - whole[:, None]
        return Estimates(whole, np.asarray((away * away) @ self.coefficients))

    @cached_property
    def _counts(self) -> tuple[Numbers, Numbers]:
        return self._sums(np.ones(len(self.weights)))

    def _sums(self, values: Numbers) -> tuple[Numbers, Numbers]:
        """Weighted sums by domain, with the full weights, and with each column of replicate weights."""
        replicates, number = self.replicates.shape[1], self.number_of_domains
        whole, each = np.zeros(number), np.zeros((replicates, number))
        for start in range(0, len(self.weights), _BLOCK):
            block = slice(start, start + _BLOCK)
            own, here = self.domains[block], values[block]
            whole += np.bincount(own, self.weights[block] * here, minlength=number)
            weighted = np.ascontiguousarray(self.replicates[block].T) * here
            for replicate in range(replicates):
                each[replicate] += np.bincount(own, weighted[replicate], minlength=number)
        return whole, each.T


def replicate_coefficients(method: Method, replicates: int, fay: float = 0.0, scales: Sequence[float] = ()) -> Numbers:
    """Coefficients of the squared distances of so many replicates. ``fay`` is Fay's k, ``scales`` are those of ``jkn``:
    (n - 1) / n, where n is the number of clusters of the stratum from which the replicate leaves one out.

    >>> replicate_coefficients("sdr", 80)[0], replicate_coefficients("fay", 16, fay=0.5)[0]
    (np.float64(0.05), np.float64(0.25))
    """
    if bool(scales) != (method == "jkn"):
        raise errors.design_choice(
            "The coefficients of the replicates",
            "go with the methods 'jkn' and 'given' and only with them",
            "Give them there",
        )
    if scales:
        if len(scales) != replicates or min(scales) < 0:
            raise errors.design_choice(
                "The coefficients of the replicates", "do not fit", f"Give {replicates:,} numbers from 0 on"
            )
        return np.array(scales, dtype=np.float64)
    if method == "fay" and not 0 <= fay < 1:
        raise errors.design_choice("Fay's k", "is not a number from 0 to below 1", "Give the k of the file")
    one = {
        "brr": 1 / replicates,
        "fay": 1 / (replicates * (1 - fay) ** 2) if method == "fay" else 0.0,
        "jk1": (replicates - 1) / replicates,
        "bootstrap": 1 / replicates,
        "sdr": 4 / replicates,
    }[method]
    return np.full(replicates, one)
