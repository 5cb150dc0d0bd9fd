"""Puts the measured sums of a release together: the best linear unbiased estimates of any table that they determine.

All queries of one variable (or of counts) are one family. Their measured sums overlap, so least squares combines them,
with the variances of their noise that the plan fixes (:mod:`stirred.margins.one_table`). What is estimated is the
weighted sum without noise; the error of sampling comes on top (:mod:`stirred.survey.sampling_errors`).

The invariant a reader must know: variances and weights follow from the plan; only estimates look at measured values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.one_table import FlatTable
from stirred.margins.schema import Schema
from stirred.spec.exact import near
from stirred.survey.design_errors import ErrorTable
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import QuerySection
from stirred.survey.query_noise import query_noise, query_step
from stirred.survey.records import Whole

Array = NDArray[np.float64]
Where = Mapping[str, Sequence[str]]
Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """The measured sums of one variable, or the weighted counts."""

    plan: SurveyPlan
    of: str | None
    queries: tuple[QuerySection, ...]
    values: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"<Family of {self.of or 'weighted counts'}: {', '.join(one.name for one in self.queries)}>"

    @cached_property
    def schema(self) -> Schema:
        """All attributes that the family's queries are by."""
        return self.plan.schema_of(self.plan.names_of(self.of))

    @cached_property
    def variances(self) -> tuple[Array, ...]:
        """For each query the variance of the noise of every cell."""
        return tuple(query_noise(self.plan, query).variances for query in self.queries)

    @cached_property
    def table(self) -> FlatTable:
        """The least squares of the family."""
        name = self.of or "counts"
        largest = [float(one.max()) for one in self.variances]
        measured = [(query.by, one) for query, one in zip(self.queries, largest, strict=True)]
        factors = self._factors(largest)
        if factors is None:
            return FlatTable.of(self.schema, measured, name=name)
        return FlatTable.of(self.schema, measured, stratum=self.plan.design.strata, factors=factors, name=name)

    def _factors(self, largest: Sequence[float]) -> dict[str, float] | None:
        """By stratum how much smaller the noise of cells in it is than that of the noisiest; None if all are alike.

        Where queries disagree, the largest factor is taken for all: variances are then a little too large.
        """
        strata = self.plan.design.strata
        found: dict[str, float] = {}
        for query, each, most in zip(self.queries, self.variances, largest, strict=True):
            if strata is None or strata not in query.by or float(each.min()) == most:
                continue
            values = self.plan.attribute(strata).values
            sizes = [len(self.schema.values(name)) for name in query.by]
            by_stratum = each.reshape(sizes).swapaxes(0, query.by.index(strata)).reshape(len(values), -1)[:, 0]
            for value, variance in zip(values, by_stratum, strict=True):
                found[value] = max(found.get(value, 0.0), float(np.sqrt(variance / most)))
        return found or None

    def estimates(self, by: Sequence[str], where: Where) -> Array:
        """The estimate of every group; NaN where nothing tells."""
        return np.asarray(self.table.estimates(self.values, by, where))

    def noise_variances(self, by: Sequence[str], where: Where) -> Array:
        """The variance of the noise in every estimate."""
        return np.asarray(self.table.variances(by, where))

    def noise_covariances(
        self, by: Sequence[str], where: Where, pairs: Pairs, other_by: Sequence[str] | None = None
    ) -> Array:
        """The covariance of the noise of pairs of groups, of one table or of two."""
        other = where if other_by is not None else None
        return np.asarray(self.table.covariances(by, where, other_by, other, pairs=pairs))

    def weights_of_form(self, by: Sequence[str], coefficients: Array) -> Array:
        """The weight of every measured value, query after query, in a weighted sum of all groups of a table; or in
        several, a row for each."""
        return np.concatenate(self.table.weights(by, None, coefficients), axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSurvey:
    """The measured sums and standard errors of a release, opened for many questions."""

    plan: SurveyPlan
    sums: Mapping[str, Whole]
    """By query the noisy sum of every cell, in multiples of the query's step."""
    errors: Mapping[str, ErrorTable] = field(default_factory=dict)
    """By table to publish its measured standard errors."""
    _families: dict[str | None, Family] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<MeasuredSurvey: {len(self.sums)} queries of {self.plan.dataset or 'a survey'}; .estimate(...)>"

    def family(self, of: str | None) -> Family:
        """The measured sums of a variable, or the weighted counts."""
        if of not in self._families:
            queries = self.plan.family(of)
            if not queries:
                known = [one or "weighted counts" for one in dict.fromkeys(query.of for query in self.plan.queries)]
                raise errors.unknown_choice("measured variable", of or "weighted counts", known)
            values = tuple(self.sums[one.name].astype(np.float64) * near(query_step(self.plan, one)) for one in queries)
            self._families[of] = Family(self.plan, of, queries, values)
        return self._families[of]
