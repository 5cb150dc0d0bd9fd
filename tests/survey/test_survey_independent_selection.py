"""Designs that select each unit by a chance of its own: what the plan says, and their standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.errors import StirredError
from stirred.survey.checking.comparison import design_estimates
from stirred.survey.data import read_records
from stirred.survey.estimating.intervals import DesignBound, degrees_of_freedom
from stirred.survey.measuring import true_errors, units
from stirred.survey.plan.fields import SurveyPlan


def plan(**design: Any) -> SurveyPlan:
    return SurveyPlan(
        epsilon=1,
        weights={"column": "w", "lower": 1, "upper": 8},
        design={"selection": "independent", **design},
        attributes=[{"name": "sex", "values": ["f", "m"]}],
        variables=[{"name": "y", "lower": -4, "upper": 4}],
        queries=[{"by": "sex"}, {"of": "y", "by": "sex"}],
        publish=[{"kind": "count", "by": "sex", "errors": "1/4"}, {"kind": "total", "of": "y", "errors": "1/4"}],
    )


FILE = pl.DataFrame(
    {"w": [1, 2, 8, 4, 4], "sex": ["f", "f", "m", "m", "m"], "y": [4, -3, 1, 0, 2], "school": ["a", "a", "b", "c", "c"]}
)


def test_the_variance_is_the_sum_of_squares_and_no_mean_is_taken_off() -> None:
    chosen = plan()
    records = read_records(chosen, FILE)
    for wanted, squares in ((chosen.publish[0], [1 + 4, 64 + 16 + 16]), (chosen.publish[1], [16 + 36 + 64 + 0 + 64])):
        centres = np.zeros(len(squares), dtype=np.int64)
        unit = np.array([float(one) for one in units(chosen, wanted, centres)])
        found = np.array(true_errors(records, wanted, centres)) * unit
        np.testing.assert_allclose(found, np.sqrt(squares), atol=2 * unit.max())
        np.testing.assert_allclose(design_estimates(records, wanted)[1], np.sqrt(squares), rtol=1e-6)


def test_clusters_that_are_selected_independently_add_squares_of_their_totals() -> None:
    chosen = plan(clusters="school", largest_cluster=2)
    records = read_records(chosen, FILE)
    wanted = chosen.publish[1]
    zero = np.zeros(1, dtype=np.int64)
    found = true_errors(records, wanted, zero)[0] * float(units(chosen, wanted, zero)[0])
    assert found == pytest.approx(np.sqrt((4 - 6) ** 2 + 8**2 + 8**2), abs=0.1)


def test_bounds_hold_without_a_number_of_selected_units() -> None:
    assert DesignBound.of(plan()) == DesignBound(8.0, 0.0)
    assert degrees_of_freedom(plan()) is None


@pytest.mark.parametrize(
    "design",
    [{"selected": 5}, {"selected": 5, "population": 20}, {"strata": "sex", "sizes": {"f": {"selected": 2}}}],
)
def test_fixed_numbers_do_not_go_with_independent_selection(design: dict[str, Any]) -> None:
    with pytest.raises(StirredError, match="has no fixed numbers"):
        plan(**design)
