"""Samples, designs, replicates and totals that cannot be used are refused by name, without an entry of the data."""

from __future__ import annotations

import numpy as np
import pytest

from stirred.errors import SurveyError
from stirred.survey.design import linearised
from stirred.survey.design.linearised import FirstStage, WeightedSample
from stirred.survey.design.replicates import ReplicatedSample
from stirred.survey.estimating import intervals
from stirred.survey.weights import adjustment

NAN = float("nan")
SAMPLE = WeightedSample.of([1, 2, 3])
PAIR = [[1, 2], [3, 4]]

REFUSED = {
    "design: one cluster in a stratum": (
        lambda: FirstStage.of(strata=[0, 0, 1], clusters=[0, 1, 2]),
        "strata-with-one-cluster",
        "In 1 strata one cluster was selected",
    ),
    "design: one selected cluster of several, none of which responded": (
        lambda: FirstStage.of(strata=[0, 0], selected=[2, 1], population=[5, 5]),
        "strata-with-one-cluster",
        "In 1 strata",
    ),
    "design: more clusters found than selected": (
        lambda: FirstStage.of(strata=[0, 0, 0, 1, 1], selected=[2, 2]),
        "clusters-not-selected",
        "In 1 strata the records come from more clusters than the design says",
    ),
    "design: more clusters selected than there are": (
        lambda: FirstStage.of(strata=[0, 0], selected=[4], population=[3]),
        "more-clusters-than-exist",
        "In 1 strata more clusters are selected",
    ),
    "design: a stratum that is not listed": (
        lambda: FirstStage.of(strata=[0, 0, 1, 2, 2], selected=[2, 2]),
        "stratum-not-listed",
        "2 records are in a stratum that the design does not list; it lists 2",
    ),
    "design: clusters in two strata": (
        lambda: FirstStage.of(strata=[0, 0, 1, 1], clusters=[0, 1, 1, 2]),
        "clusters-cross-strata",
        "1 clusters have units in more than one stratum",
    ),
    "design: population of other strata": (
        lambda: FirstStage.of(strata=[0, 0], selected=[2], population=[5, 6]),
        "survey-column",
        "are given for 2 strata, and there are 1",
    ),
    "design: nobody selected": (
        lambda: FirstStage.of(strata=[1, 1], selected=[0, 2]),
        "survey-column",
        "whole numbers from 1 on",
    ),
    "design: strata by name": (
        lambda: FirstStage.of(strata=["zqx", "zqx"]),
        "survey-column",
        "The strata are not codes",
    ),
    "design: nothing": (lambda: FirstStage.of(), "survey-column", "no strata, clusters or number of records"),
    "design: lonely": (lambda: FirstStage.of(3, lonely="average"), "design-choice", "lonely is not known"),
    "design: of other records": (
        lambda: WeightedSample.of([1, 2], FirstStage.of(3)),
        "survey-column",
        "have 2 entries, the design 3 records",
    ),
    "weights: negative": (
        lambda: WeightedSample.of([1, -77310.0]),
        "survey-column",
        "The weights are negative in 1 records",
    ),
    "weights: missing": (
        lambda: WeightedSample.of([1, NAN, NAN]),
        "survey-column",
        "The weights are missing or infinite in 2 records",
    ),
    "weights: text": (lambda: WeightedSample.of(["zqx", "1"]), "survey-column", "The weights are not numbers"),
    "weights: a matrix": (lambda: WeightedSample.of(PAIR), "survey-column", "not a flat array"),
    "weights: not those of the calibration": (
        lambda: WeightedSample.of([1, 2], calibration=adjustment.post_stratify([1, 2], [0, 0], [6])),
        "weights-do-not-fit",
        "not those that the calibration gave",
    ),
    "domains: too high": (
        lambda: WeightedSample.of([1, 2], domains=[0, 5], number_of_domains=5),
        "survey-column",
        "a code of 5 or more in 1 records",
    ),
    "domains: below -1": (lambda: WeightedSample.of([1, 2], domains=[0, -2]), "survey-column", "that is negative"),
    "values: missing": (
        lambda: linearised.totals(SAMPLE, [1, NAN, 2]),
        "survey-column",
        "The values are missing or infinite in 1 records",
    ),
    "values: too few": (
        lambda: linearised.means(SAMPLE, [1, 2]),
        "survey-column",
        "The values have 2 entries, and there are 3 records",
    ),
    "replicates: missing": (
        lambda: ReplicatedSample.of([1, 2], [[1.0, NAN], [NAN, NAN]], "brr"),
        "survey-column",
        "missing or infinite in 2 records",
    ),
    "replicates: of other records": (
        lambda: ReplicatedSample.of([1, 2, 3], PAIR, "brr"),
        "survey-column",
        "a matrix with 3 rows",
    ),
    "replicates: one": (lambda: ReplicatedSample.of([1, 2], [[1], [2]], "brr"), "survey-column", "at least 2"),
    "replicates: method": (
        lambda: ReplicatedSample.of([1, 2], PAIR, "jk2"),
        "design-choice",
        "method of the replicates",
    ),
    "replicates: fay without k": (lambda: ReplicatedSample.of([1, 2], PAIR, "fay"), "design-choice", "Fay's k"),
    "replicates: k of 1": (
        lambda: ReplicatedSample.of([1, 2], PAIR, "fay", fay=1),
        "design-choice",
        "from 0 to below 1",
    ),
    "replicates: k elsewhere": (lambda: ReplicatedSample.of([1, 2], PAIR, "sdr", fay=0.5), "design-choice", "Fay's k"),
    "replicates: jkn without coefficients": (
        lambda: ReplicatedSample.of([1, 2], PAIR, "jkn"),
        "design-choice",
        "go with the methods 'jkn'",
    ),
    "replicates: too few coefficients": (
        lambda: ReplicatedSample.of([1, 2], PAIR, "jkn", coefficients=[0.5]),
        "design-choice",
        "Give 2 numbers from 0 on",
    ),
    "replicates: centre": (lambda: ReplicatedSample.of([1, 2], PAIR, "brr", centre="zero"), "design-choice", "centre"),
    "totals: of an empty category": (
        lambda: adjustment.post_stratify([1, 2], [0, 0], [5, 5]),
        "calibration-totals",
        "1 categories with a public total above 0 have no weight",
    ),
    "totals: negative": (lambda: adjustment.post_stratify([1, 2], [0, 1], [5, -5]), "calibration-totals", "negative"),
    "totals: missing": (lambda: adjustment.calibrate([1, 2], PAIR, [5, NAN]), "calibration-totals", "missing"),
    "totals: that differ": (
        lambda: adjustment.rake([1, 2], [([0, 1], [5, 5]), ([0, 1], [5, 6])]),
        "calibration-totals",
        "add up to different totals",
    ),
    "totals: too few": (lambda: adjustment.calibrate([1, 2], PAIR, [5]), "calibration-totals", "not one public total"),
    "totals: of other categories": (
        lambda: adjustment.post_stratify([1, 2], [0, 2], [5, 5]),
        "survey-column",
        "a code of 2 or more in 1 records",
    ),
    "totals: none": (lambda: adjustment.rake([1, 2], []), "calibration-totals", "no margins"),
    "bounds: not around 1": (
        lambda: adjustment.calibrate([1, 2], PAIR, [5, 5], bounds=(1.1, 2)),
        "design-choice",
        "around 1",
    ),
    "bounds: one": (lambda: adjustment.calibrate([1, 2], PAIR, [5, 5], bounds=3), "design-choice", "two numbers"),
    "auxiliary: missing": (
        lambda: adjustment.calibrate([1, 2], [[1, NAN], [1, 2]], [5, 5]),
        "survey-column",
        "auxiliary variables",
    ),
    "table: axes": (lambda: adjustment.post_stratify_table(PAIR, [2], [1, 2]), "calibration-totals", "an axis"),
    "table: missing": (lambda: adjustment.post_stratify_table([NAN], [0], [1]), "calibration-totals", "not a number"),
    "table: negative": (
        lambda: adjustment.post_stratify_table(PAIR, [0], [1, 2], negative="drop"),
        "design-choice",
        "negative is not known",
    ),
    "table: auxiliary": (
        lambda: adjustment.calibrate_table(PAIR, [[1, 2, 3]], [1]),
        "calibration-totals",
        "shape of the table",
    ),
    "quantiles: edges": (lambda: intervals.grid_quantiles([0, 1], [1, 2], [0.5]), "survey-column", "Give 3 numbers"),
    "quantiles: edges that fall": (
        lambda: intervals.grid_quantiles([0, 2, 1], [1, 2], [0.5]),
        "survey-column",
        "do not grow",
    ),
    "quantiles: open end": (
        lambda: intervals.grid_quantiles([0, 1, np.inf], [1, 2], [0.5]),
        "survey-column",
        "finite numbers",
    ),
    "quantiles: nobody": (lambda: intervals.grid_quantiles([0, 1, 2], [0, 0], [0.5]), "survey-column", "0 or less"),
    "quantiles: probability": (lambda: intervals.grid_quantiles([0, 1], [1], [1.5]), "survey-column", "from 0 to 1"),
    "quantiles: rule": (lambda: intervals.grid_quantiles([0, 1], [1], [1], rule="r7"), "design-choice", "rule"),
    "quantiles: error": (
        lambda: intervals.woodruff_intervals([0, 1], [1], [0.5], lambda value: NAN),
        "survey-column",
        "negative or missing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    ask, kind, words = REFUSED[case]
    with pytest.raises(SurveyError) as refused:
        ask()
    assert refused.value.kind == kind
    assert words in str(refused.value)
    assert "77310" not in str(refused.value) and "zqx" not in str(refused.value)
