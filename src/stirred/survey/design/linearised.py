"""Estimates of a sample by domain with their design variances, by Taylor linearisation; confidential, without noise.

Every estimate has the variance of the total of its scores: values for a total, (y - R) / N for a mean, (y - R x) / X
for a ratio. A total of scores z has the variance sum over strata of (1 - f) n / (n - 1) times the sum over clusters of
(z of the cluster - mean of the stratum)^2: clusters of the first stage are taken as drawn with replacement, and f is
the share of them that was selected where the population is known (Särndal, Swensson, Wretman 1992, sections 4.6 and
5.5; Binder 1983). Keep in mind: n is the number of selected clusters that the design states, so that a cluster without
a record in a domain, or without any respondent, counts with the total 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.survey.weights import adjustment
from stirred.survey.weights.adjustment import AdjustedWeights, Codes, Numbers, added

Lonely = Literal["refuse", "certainty", "centred"]
"""What a stratum with one selected cluster does: it is refused, adds nothing, or is centred at the mean of all."""

_NOTHING_LEFT = 1e-12
"""A variance below this part of the one without calibration is the rounding error of 0."""


@withheld
@dataclass(frozen=True, eq=False)
class FirstStage:
    """Strata and clusters (primary sampling units) of the first stage of selection; made by :meth:`of`."""

    clusters: Codes
    """Of each record, numbered through all strata in their order."""
    cluster_strata: Codes
    """Of each cluster that has a record."""
    selected: NDArray[np.int64]
    """Clusters that were selected, by stratum."""
    population: Numbers | None
    """Clusters that there are, by stratum; infinite where nothing is known."""
    lonely: Lonely

    @classmethod
    def of(
        cls,
        records: int | None = None,
        *,
        strata: Any = None,
        clusters: Any = None,
        selected: Any = None,
        population: Any = None,
        nested: bool = False,
        lonely: Lonely = "refuse",
    ) -> FirstStage:
        """A first stage from codes of records and numbers of strata.

        ``strata`` and ``clusters`` are codes from 0 on, one for each record; without strata there is one, without
        clusters each record is one. ``selected`` and ``population`` count the clusters of each stratum. Without
        ``selected``, clusters that have a record are counted: right only if every selected cluster has one. Without
        ``population``, or where it is infinite, selection is taken as being with replacement. With ``nested``, codes
        of clusters start anew in every stratum; else a cluster in two strata is refused. ``lonely`` is about strata
        with one selected cluster of several; a stratum whose only cluster is selected adds nothing in any case. A
        centred stratum without a record in a domain counts there with the total 0, so that a standard error stays a
        norm of the clusters' totals; svy and R's survey leave such a stratum out.

        >>> stage = FirstStage.of(strata=[0, 0, 1, 1], selected=[2, 3], population=[10, 20])
        >>> stage.degrees_of_freedom
        3
        """
        if strata is None and clusters is None and records is None:
            raise errors.survey_column("design", "has no strata, clusters or number of records", "Give one of them")
        given = None if clusters is None else adjustment.checked_codes("clusters", clusters, None, records)
        records = records if given is None else len(given)
        stratum = None if strata is None else adjustment.checked_codes("strata", strata, None, records)
        if stratum is None:
            assert records is not None
            stratum = np.zeros(records, dtype=np.int64)
        numbers = _selected(selected)
        number = len(numbers) if numbers is not None else int(stratum.max(initial=0)) + 1
        if unlisted := int(np.count_nonzero(stratum >= number)):
            raise errors.stratum_not_listed(unlisted, number)
        among, cluster_strata = _clusters(stratum, given, nested) if given is not None else _each_one(stratum)
        found = np.bincount(cluster_strata, minlength=number).astype(np.int64)
        if numbers is None:
            numbers = found
        if more := int(np.count_nonzero(found > numbers)):
            raise errors.clusters_not_selected(more)
        sizes = None if population is None else _population(population, numbers)
        if lonely not in get_args(Lonely):
            raise errors.design_choice("lonely", "is not known", f"Choose {errors.listed(get_args(Lonely), 'or')}")
        stage = cls(among, cluster_strata, numbers, sizes, lonely)
        if lonely == "refuse" and stage.lonely_strata.any():
            raise errors.strata_with_one_cluster(int(stage.lonely_strata.sum()))
        return stage

    @property
    def records(self) -> int:
        return len(self.clusters)

    @property
    def degrees_of_freedom(self) -> int:
        """Selected clusters less strata, as for intervals by Student's t."""
        return int(self.selected.sum()) - int(np.count_nonzero(self.selected))

    @cached_property
    def not_selected(self) -> Numbers:
        """1 - f: the share of clusters that was not selected, by stratum; 1 where the population is not known."""
        if self.population is None:
            return np.ones(len(self.selected))
        return 1 - self.selected / np.maximum(self.population, 1)

    @cached_property
    def lonely_strata(self) -> NDArray[np.bool_]:
        """Strata with one selected cluster that is not the only one there is."""
        return np.asarray((self.selected == 1) & (self.not_selected > 0))

    @cached_property
    def scales(self) -> Numbers:
        """(1 - f) n / (n - 1) by stratum; 0 where one cluster was selected."""
        several = self.selected > 1
        return np.where(several, self.not_selected * self.selected / np.where(several, self.selected - 1, 1), 0.0)

    @cached_property
    def centred(self) -> Numbers:
        """1 - f of the strata that are centred at the mean of all clusters; 0 for the others."""
        centred = self.lonely_strata & (self.lonely == "centred")
        return np.where(centred, self.not_selected, 0.0)


@withheld
@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Records with weights, a design and domains; made by :meth:`of`."""

    weights: Numbers
    first_stage: FirstStage
    domains: Codes
    number_of_domains: int
    calibration: AdjustedWeights | None

    @classmethod
    def of(
        cls,
        weights: Any,
        first_stage: FirstStage | None = None,
        *,
        domains: Any = None,
        number_of_domains: int | None = None,
        calibration: AdjustedWeights | None = None,
        negative_weights: bool = False,
    ) -> WeightedSample:
        """A sample whose estimates are asked for, by domain (codes from 0 on; -1 in none; without them one domain).

        Without a first stage, records are a simple random sample with replacement. ``calibration`` says how the
        weights came about, if they were adjusted to public totals: they must be its weights, and variances are then
        those of residuals. Records outside of a domain must stay in the sample: they tell which clusters there are.
        """
        column = adjustment.checked_weights(weights, negative=negative_weights)
        stage = FirstStage.of(len(column)) if first_stage is None else first_stage
        if stage.records != len(column):
            raise errors.survey_column(
                "weights",
                f"have {len(column):,} entries, the design {stage.records:,} records",
                "Give both for all records",
            )
        if domains is None:
            domains, number_of_domains = np.zeros(len(column), dtype=np.int64), 1
        within = adjustment.checked_codes("domains", domains, number_of_domains, len(column), outside=True)
        if calibration is not None and not np.array_equal(calibration.weights, column):
            raise errors.weights_do_not_fit(
                "The weights are not those that the calibration gave", "Give the weights of the calibration"
            )
        number = adjustment.number_of("domains", within, number_of_domains)
        return cls(column, stage, within, number, calibration)

    @property
    def records(self) -> int:
        return len(self.weights)

    @cached_property
    def layout(self) -> _Layout:
        return _layout(self)

    def inside(self, column: str, values: Any) -> Numbers:
        """A column of values, of the records that are in a domain."""
        return adjustment.checked_numbers(column, values, self.records)[self.layout.records]

    @cached_property
    def weights_inside(self) -> Numbers:
        return self.weights[self.layout.records]

    def added(self, values: Numbers) -> Numbers:
        """Weighted sums over domains of values of the records inside."""
        return added(self.layout.domains, self.weights_inside * values, self.number_of_domains)

    @cached_property
    def sizes(self) -> Numbers:
        """Sums of weights by domain."""
        return self.added(np.ones(len(self.layout.records)))


@withheld
@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates and their variances, by domain; not a number where a domain has no weight to divide by."""

    values: Numbers
    variances: Numbers

    @property
    def standard_errors(self) -> Numbers:
        return np.sqrt(self.variances)


# -- estimates ---------------------------------------------------------------------------------------------------


def totals(sample: WeightedSample, values: Any = None) -> Estimates:
    """Horvitz-Thompson totals by domain: sums of weights times values; without values, counts (sums of weights).

    >>> sample = WeightedSample.of([10, 10, 20], domains=[0, 0, 1])
    >>> totals(sample).values.tolist(), totals(sample, [1, 3, 2]).variances.round(9).tolist()
    ([20.0, 20.0], [700.0, 1600.0])
    """
    scores = np.ones(len(sample.layout.records)) if values is None else sample.inside("values", values)
    return Estimates(sample.added(scores), _variances(sample, scores))


def means(sample: WeightedSample, values: Any) -> Estimates:
    """Hájek means by domain: weighted totals of values over sums of weights.

    >>> means(WeightedSample.of([10, 10, 20]), [1, 3, 2]).values.tolist()
    [2.0]
    """
    within = sample.inside("values", values)
    return _ratios(sample, within, np.ones(len(within)))


def ratios(sample: WeightedSample, numerators: Any, denominators: Any) -> Estimates:
    """Ratios of two totals by domain."""
    return _ratios(sample, sample.inside("numerators", numerators), sample.inside("denominators", denominators))


def proportions(sample: WeightedSample, categories: Any, number_of_categories: int | None = None) -> Estimates:
    """Shares of categories (codes from 0 on) in the weight of each domain: arrays of domains by categories."""
    given = adjustment.checked_codes("categories", categories, number_of_categories, sample.records)
    number = adjustment.number_of("categories", given, number_of_categories)
    columns = [means(sample, given == category) for category in range(number)]
    shape = (sample.number_of_domains, number)
    return Estimates(
        np.stack([one.values for one in columns], axis=1) if columns else np.zeros(shape),
        np.stack([one.variances for one in columns], axis=1) if columns else np.zeros(shape),
    )


def covariances(sample: WeightedSample, first: Any, second: Any) -> Numbers:
    """Covariances of two totals of the same domain, by domain; ``None`` stands for the count."""
    ones = np.ones(len(sample.layout.records))
    left, right = (ones if one is None else sample.inside("values", one) for one in (first, second))
    return _covariances(sample, left, right)


def cluster_totals(sample: WeightedSample, values: Any = None) -> scipy.sparse.csr_array:
    """Weighted totals of the clusters that have a record, by domain (rows) and cluster (columns)."""
    scores = np.ones(len(sample.layout.records)) if values is None else sample.inside("values", values)
    return sample.layout.matrix(sample.weights_inside * scores)


def _ratios(sample: WeightedSample, above: Numbers, below: Numbers) -> Estimates:
    divisors = sample.added(below)
    divisors[divisors == 0] = np.nan
    quotients = sample.added(above) / divisors
    # Empty domains have no record, so that no score is divided by nothing, except where denominators cancel.
    own = sample.layout.domains
    with np.errstate(invalid="ignore"):
        scores = (above - quotients[own] * below) / divisors[own]
    undefined = np.isnan(quotients)
    variances = _variances(sample, np.where(undefined[own], 0.0, scores))
    variances[undefined] = np.nan
    return Estimates(quotients, variances)


# -- variances ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which totals there are: pairs of a domain and a cluster that has a record in it, in this order."""

    records: NDArray[np.intp]
    """Positions of the records in a domain."""
    domains: Codes
    """Of these records."""
    pairs: NDArray[np.intp]
    """Of these records."""
    pair_domains: Codes
    pair_clusters: Codes
    pair_groups: NDArray[np.intp]
    """A group is a domain in a stratum."""
    group_domains: Codes
    group_strata: Codes
    group_sizes: NDArray[np.int64]
    """Pairs of each group."""
    shape: tuple[int, int]
    """Domains and clusters."""

    def pair_totals(self, weighted: Numbers) -> Numbers:
        return added(self.pairs, weighted, len(self.pair_domains))

    def matrix(self, weighted: Numbers) -> scipy.sparse.csr_array:
        totals = self.pair_totals(weighted)
        return scipy.sparse.csr_array((totals, (self.pair_domains, self.pair_clusters)), shape=self.shape)


def _layout(sample: WeightedSample) -> _Layout:
    stage = sample.first_stage
    records = np.flatnonzero(sample.domains >= 0)
    domains = sample.domains[records]
    clusters = len(stage.cluster_strata)
    keys, pairs = np.unique(domains * clusters + stage.clusters[records], return_inverse=True)
    pair_domains, pair_clusters = np.divmod(keys, max(1, clusters))
    strata = stage.cluster_strata[pair_clusters]
    begins = np.ones(len(keys), dtype=bool)
    begins[1:] = (pair_domains[1:] != pair_domains[:-1]) | (strata[1:] != strata[:-1])
    groups = np.cumsum(begins) - 1
    sizes = np.bincount(groups, minlength=int(begins.sum())).astype(np.int64)
    shape = (sample.number_of_domains, clusters)
    return _Layout(
        records, domains, pairs, pair_domains, pair_clusters, groups, pair_domains[begins], strata[begins], sizes, shape
    )


def _variances(sample: WeightedSample, scores: Numbers) -> Numbers:
    """Variances of weighted totals of the scores of the records that are in a domain."""
    return _covariances(sample, scores, scores)


def _covariances(sample: WeightedSample, left: Numbers, right: Numbers) -> Numbers:
    same = left is right
    one = sample.weights_inside * left
    other = one if same else sample.weights_inside * right
    found = _total_covariances(sample, one, other)
    if sample.calibration is None:
        return found
    return _calibrated(sample, found, left, one, right, other)


def _total_covariances(sample: WeightedSample, left: Numbers, right: Numbers) -> Numbers:
    """Covariances of totals of two columns that hold the weights already."""
    layout, stage, number = sample.layout, sample.first_stage, sample.number_of_domains
    selected = stage.selected[layout.group_strata]
    first = layout.pair_totals(left)
    second = first if left is right else layout.pair_totals(right)

    def stratum_means(totals: Numbers) -> Numbers:
        return added(layout.pair_groups, totals, len(selected)) / selected

    first_means = stratum_means(first)
    second_means = first_means if left is right else stratum_means(second)
    products = (first - first_means[layout.pair_groups]) * (second - second_means[layout.pair_groups])
    within = added(layout.pair_groups, products, len(selected))
    within = within + (selected - layout.group_sizes) * first_means * second_means  # clusters with the total 0
    found = added(layout.group_domains, stage.scales[layout.group_strata] * within, number)
    if stage.centred.any():
        found = found + _centred(sample, first, second)
    return found


def _centred(sample: WeightedSample, first: Numbers, second: Numbers) -> Numbers:
    """What strata with one cluster add: products of distances from the means of all selected clusters."""
    layout, stage, number = sample.layout, sample.first_stage, sample.number_of_domains
    left, right = (added(layout.pair_domains, one, number) / stage.selected.sum() for one in (first, second))
    shares = stage.centred[stage.cluster_strata[layout.pair_clusters]]
    own = layout.pair_domains
    here = shares * ((first - left[own]) * (second - right[own]) - left[own] * right[own])
    return np.asarray(added(own, here, number) + stage.centred.sum() * left * right)


def _calibrated(
    sample: WeightedSample, found: Numbers, left: Numbers, one: Numbers, right: Numbers, other: Numbers
) -> Numbers:
    """Covariances of totals of residuals e = s - x'B, from those of s, of x, and of both.

    B is the regression of the scores on the auxiliary variables with the weights before calibration; the weights of the
    residuals are those after it (Deville and Särndal 1992, section 3).
    """
    calibration = sample.calibration
    assert calibration is not None
    layout, stage, same = sample.layout, sample.first_stage, left is right
    auxiliary = calibration.auxiliary
    clusters = scipy.sparse.csr_array(
        (sample.weights, (stage.clusters, np.arange(sample.records))), shape=(layout.shape[1], sample.records)
    )
    cluster_auxiliary = (clusters @ auxiliary).tocsr()
    inverse = calibration.inverse

    def regressed(scores: Numbers) -> Numbers:
        entries = calibration.base_weights[layout.records] * scores
        rows = scipy.sparse.csr_array(
            (entries, (layout.domains, layout.records)), shape=(sample.number_of_domains, sample.records)
        )
        return np.asarray((rows @ auxiliary).toarray() @ inverse)

    def crossed(weighted: Numbers) -> Numbers:
        return _cross(stage, layout.matrix(weighted), cluster_auxiliary)

    first, cross = regressed(left), crossed(one)
    second, other_cross = (first, cross) if same else (regressed(right), crossed(other))
    between = _cross(stage, cluster_auxiliary.T.tocsr(), cluster_auxiliary)
    removed = (first * other_cross).sum(axis=1) + (second * cross).sum(axis=1)
    residual = found - removed + ((first @ between) * second).sum(axis=1)
    if not same:
        return np.asarray(residual)
    return np.where(residual < _NOTHING_LEFT * found, 0.0, residual)


def _cross(stage: FirstStage, rows: scipy.sparse.csr_array, columns: scipy.sparse.csr_array) -> Numbers:
    """Covariances of every row (totals by cluster) with every column (the same), with the clusters that have none."""
    strata = stage.cluster_strata
    number = len(stage.selected)
    belongs = scipy.sparse.csr_array(
        (np.ones(len(strata)), (np.arange(len(strata)), strata)), shape=(len(strata), number)
    )
    scales, centred = stage.scales[strata], stage.centred[strata]
    left = rows @ belongs
    right = belongs.T @ columns
    products = (rows @ scipy.sparse.diags_array(scales) @ columns).toarray()
    found = products - (left @ scipy.sparse.diags_array(stage.scales / np.maximum(stage.selected, 1)) @ right).toarray()
    if stage.centred.any():
        everything = stage.selected.sum()
        first = rows.sum(axis=1) / everything
        second = columns.sum(axis=0) / everything
        found += (rows @ scipy.sparse.diags_array(centred) @ columns).toarray()
        found -= np.outer(first, centred @ columns) + np.outer(rows @ centred, second)
        found += stage.centred.sum() * np.outer(first, second)
    return np.asarray(found)


# -- the design --------------------------------------------------------------------------------------------------


def _clusters(strata: Codes, given: Codes, nested: bool) -> tuple[Codes, Codes]:
    """Clusters of records, numbered through the strata, and the strata of the clusters."""
    width = int(given.max(initial=0)) + 1
    if (int(strata.max(initial=0)) + 1) * width >= 1 << 62:
        given = np.unique(given, return_inverse=True)[1].astype(np.int64)
        width = int(given.max(initial=0)) + 1
    keys, among = np.unique(strata * width + given, return_inverse=True)
    cluster_strata, labels = np.divmod(keys, width)
    if not nested:
        several = int(np.count_nonzero(np.diff(np.sort(labels)) == 0))
        if several:
            raise errors.clusters_cross_strata(several)
    return among.astype(np.int64), cluster_strata


def _each_one(strata: Codes) -> tuple[Codes, Codes]:
    """Records that are clusters of their own, numbered through the strata, and their strata in that order."""
    order = np.argsort(strata, kind="stable")
    among = np.empty(len(strata), dtype=np.int64)
    among[order] = np.arange(len(strata))
    return among, strata[order]


def _selected(given: Any) -> NDArray[np.int64] | None:
    if given is None:
        return None
    numbers = np.asarray(given)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers) or int(numbers.min()) < 1:
        raise errors.survey_column(
            "numbers of selected clusters", "are not whole numbers from 1 on", "Give one for each stratum"
        )
    return numbers.astype(np.int64)


def _population(given: Any, selected: NDArray[np.int64]) -> Numbers:
    sizes = np.asarray(given)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf" or np.isnan(sizes).any():
        raise errors.survey_column(
            "numbers of clusters in the population",
            "are not numbers",
            "Give one for each stratum; infinity for not known",
        )
    if len(sizes) != len(selected):
        raise errors.survey_column(
            "numbers of clusters in the population",
            f"are given for {len(sizes):,} strata, and there are {len(selected):,}",
            "Give one for each stratum",
        )
    if more := int(np.count_nonzero(sizes < selected)):
        raise errors.more_clusters_than_exist(more)
    return sizes.astype(np.float64)
