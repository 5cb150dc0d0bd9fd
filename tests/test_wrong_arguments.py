"""Arguments of the wrong kind are answered in our words, never by a bare error of Python."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from stirred import limits, loss, semantics, spec, swap
from stirred._calls import refuses_wrong_arguments
from stirred.errors import ArgumentError, StirredError
from stirred.spec import flavors
from test_front_door import moved_names

WRONG = ["x", None, [1, 2], -1, {}]
GOOD = {"epsilon": 1, "delta": 1e-6, "rho": 1, "mu": 1, "order": 2, "level": 0.05, "power": 0.5, "prior": 0.1}
GOOD |= {"p": [0.5, 0.5], "q": [0.2, 0.8], "records": 10, "distance": 1}
LATER = {loss.worst_pair, loss.worst_power_curve, spec.as_approximate, spec.register}
"""Functions of modules that decide by themselves what they are given."""


def functions():
    """Those of the public rooms, those that moved from there to the laboratory, and the flavors."""
    for room in (spec, loss, semantics, limits):
        yield from (getattr(room, name) for name in room.__all__)
    for room, module, names in moved_names():
        if room in ("spec", "loss", "semantics", "limits"):
            yield from (getattr(importlib.import_module(module), name) for name in names.split())
    yield from (one for one in vars(flavors).values() if getattr(one, "__module__", "") == flavors.__name__)


ALL = sorted(
    {one for one in functions() if inspect.isfunction(one)} - LATER, key=lambda one: (one.__module__, one.__name__)
)


@pytest.mark.parametrize("function", ALL, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_a_public_function_refuses_what_it_cannot_use(function):
    needed = [one.name for one in inspect.signature(function).parameters.values()
              if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]  # fmt: skip
    for name, wrong in itertools.product(needed, WRONG):
        given = {other: GOOD.get(other, wrong) for other in needed} | {name: wrong}
        with contextlib.suppress(StirredError):  # anything else is a bare error of Python, and fails
            function(**given)


def test_a_budget_of_another_kind_is_answered_with_what_is_wanted():
    with pytest.raises(ArgumentError) as refusal:
        limits.posterior_bounds(0.1, rho=1)
    assert "has no parameter 'rho'; 'epsilon' is missing" in str(refusal.value)
    assert "posterior_bounds(prior, epsilon, distance=1, form='odds')" in str(refusal.value)


def test_a_flavor_without_its_delta_is_answered_with_it():
    with pytest.raises(ArgumentError, match="'delta' is missing"):
        flavors.approximate().at(1)


def test_a_fault_inside_is_not_taken_for_a_wrong_argument():
    @refuses_wrong_arguments
    def broken(number: float) -> float:
        return number + None  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        broken(1.0)


# -- data ----------------------------------------------------------------------------------------------------

PLAN = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
DATA = pl.DataFrame(
    {"size": ["1", "2"] * 20, "county": list("abcd") * 10, "tenure": ["own", "rent", "rent", "own"] * 10}
)


@pytest.mark.parametrize("rates", [0.1, "1/10", [0.1], ["1/10"], (Fraction(1, 10),)], ids=repr)
def test_a_rate_is_a_number_or_its_text_one_or_several(rates):
    (tried,) = swap.check(PLAN, DATA, rates=rates).what_if
    assert [rate for rate, _ in tried.epsilons] == ["1/10"]


@pytest.mark.parametrize("rates", ["x", [None], 2, {"rate": 1}], ids=repr)
def test_a_rate_that_is_none_is_refused(rates):
    with pytest.raises(StirredError, match="swap rate"):
        swap.check(PLAN, DATA, rates=rates)


def test_a_record_batch_is_taken_as_a_table():
    (batch,) = DATA.to_arrow().to_batches()
    assert isinstance(batch, pa.RecordBatch)
    assert swap.check(PLAN, batch).records == swap.check(PLAN, DATA).records == 40


def test_a_column_in_the_index_of_a_frame_is_spoken_of_as_such():
    frame = pd.DataFrame(DATA.to_dict(as_series=False)).set_index("county")
    with pytest.raises(StirredError, match=r"'county' is in the index.*reset_index\(\)"):
        swap.check(PLAN, frame)
