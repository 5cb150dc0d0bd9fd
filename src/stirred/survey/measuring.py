"""Adds up the weighted sums of every query, exactly, and adds exact noise on their lattice.

The invariant a reader must know: every cell of every query is measured, also those that no record is in, so that which
ones are there says nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.noise import RandomSource
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import QuerySection
from stirred.survey.query_noise import query_noise
from stirred.survey.records import Records, Whole
from stirred.tables.exact_numbers import ExactNumbers

Measured = Mapping[str, Whole]
"""By query the noisy sum of every cell, in multiples of the query's step."""


def number_of_cells(plan: SurveyPlan, query: QuerySection) -> int:
    """How many cells a query has."""
    return plan.schema_of(query.by).number_of_groups(query.by)


def contributions(records: Records, of: str | None) -> Whole:
    """What each record adds to its cell: its weight, times its value of a variable."""
    return records.weights if of is None else records.weights * records.values[of]


def true_sums(records: Records, query: QuerySection) -> Whole:
    """The sums of a query without noise, in multiples of its step. Confidential."""
    return added_up(records.cells(query.by), contributions(records, query.of), number_of_cells(records.plan, query))


def measure(records: Records, source: RandomSource) -> dict[str, Whole]:
    """All queries, each with its noise."""
    return {
        query.name: true_sums(records, query) + query_noise(records.plan, query).draw(source)
        for query in records.plan.queries
    }


def added_up(cells: NDArray[np.int64], numbers: NDArray[Any], count: int) -> NDArray[Any]:
    """Exact sums of whole numbers by cell."""
    return ExactNumbers(numbers, 0).added_up(cells, count).whole
