"""Errors of tables over draws: against sums that are written out, and what more draws would average out."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from stirred import errors
from stirred.lab.study import side_by_side
from stirred.lab.study.side_by_side import BY_SIZE, Cells, Estimate, counted, errors_of, over_draws, parts_of


def test_measures_are_the_sums_that_their_names_say():
    truth = np.array([10.0, 0.0, 4.0])
    error = np.array([[2.0, 1.0, -3.0], [0.0, 1.0, -1.0]])
    found = errors_of(error, truth)
    assert found.cells == 3
    assert found.mean_absolute.value == pytest.approx((6 / 3 + 2 / 3) / 2)
    assert found.mean_absolute.error == pytest.approx(np.std([6 / 3, 2 / 3], ddof=1) / math.sqrt(2))
    assert found.root_mean_square.value == pytest.approx(math.sqrt((14 / 3 + 2 / 3) / 2))
    assert found.relative.value == pytest.approx(((0.2 + 0.75) / 2 + 0.25 / 2) / 2)
    assert found.mean.value == pytest.approx(0.0)
    # (sum)^2 - sum of squares, by cell: 4 - 4, 4 - 2, 16 - 10; over D (D - 1) = 2.
    assert found.systematic.value == pytest.approx(math.sqrt((0 + 2 + 6) / 3 / 2))


def test_the_monte_carlo_error_of_the_systematic_error_is_the_jackknife():
    error = np.random.default_rng(1).normal(2, 3, (6, 5))
    found = errors_of(error, np.ones(5)).systematic

    def square(some: np.ndarray) -> float:
        pairs = [some[i] * some[j] for i in range(len(some)) for j in range(len(some)) if i != j]
        return float(np.mean(pairs))

    assert found.value == pytest.approx(math.sqrt(square(error)))
    left = np.array([square(np.delete(error, draw, axis=0)) for draw in range(6)])
    spread = math.sqrt(5 / 6 * np.sum((left - left.mean()) ** 2))
    assert found.error == pytest.approx(spread / (2 * found.value))


def test_the_systematic_error_does_not_grow_with_noise():
    draw = np.random.default_rng(2)
    bias = np.array([3.0, -4.0, 0.0, 5.0])
    squares = [errors_of(bias + draw.normal(0, 10, (10, 4)), np.ones(4)).systematic.value ** 2 for _ in range(3_000)]
    # Truncated at 0, so the mean is a little above the truth, 12.5, and far below that of e^2, 112.5.
    assert 12.0 < np.mean(squares) < 14.5
    exact = errors_of(np.tile(bias, (10, 1)), np.ones(4))
    assert exact.systematic.value == pytest.approx(math.sqrt(12.5)) == pytest.approx(exact.root_mean_square.value)


def test_one_draw_has_no_monte_carlo_error_and_no_systematic_error():
    found = errors_of(np.array([[1.0, -1.0]]), np.array([2.0, 2.0]))
    assert found.mean_absolute.value == 1 and math.isnan(found.mean_absolute.error)
    assert math.isnan(found.systematic.value) and str(found.systematic) == "-"


def test_estimates_show_their_error_where_there_is_one():
    assert str(Estimate(1.23456, 0.0123)) == "1.235 ± 0.01" and str(Estimate(2.0, 0.0)) == "2"
    assert over_draws(np.array([0.1, 0.1, 0.1])) == Estimate(0.1, 0.0)


def test_parts_divide_the_cells_by_size_and_by_place():
    truth = np.array([0.0, 5.0, 50.0, 5_000.0])
    error = np.array([[1.0, 2.0, 3.0, 4.0]])
    found = {part.name: part.errors for part in parts_of(error, truth, np.array([0, 0, 1, 1]), ["A", "B"])}
    assert list(found) == [
        "all cells", f"{BY_SIZE} 0", f"{BY_SIZE} 1 to 9", f"{BY_SIZE} 10 to 99", f"{BY_SIZE} 1,000 and more", "A", "B",
    ]  # fmt: skip
    assert [one.mean.value for one in found.values()] == [2.5, 1, 2, 3, 4, 1.5, 3.5]
    assert math.isnan(found[f"{BY_SIZE} 0"].relative.value)


def test_cells_are_all_places_with_all_kinds_that_occur_anywhere():
    truth = counted(pl.DataFrame({"county": ["A", "A", "B"], "race": ["x", "y", "x"]}), ["county", "race"])
    released = counted(pl.DataFrame({"county": ["A", "B", "B"], "race": ["z", "x", "x"]}), ["county", "race"])
    places = pl.DataFrame({"county": ["A", "B", "C"]})
    cells = Cells.of(truth, [released], ["county", "race"], ["county"], places)
    assert len(cells.index) == 9 and cells.places == ("A", "B", "C")
    assert cells.error(released).tolist() == [-1, -1, 1, 1, 0, 0, 0, 0, 0]
    assert len(Cells.of(truth, [released], ["county", "race"], ["county"], None).index) == 6
    assert Cells.of(truth, [], ["race"], ["county"], None).places == ()


def test_a_table_of_too_many_cells_is_refused(monkeypatch):
    monkeypatch.setattr(side_by_side, "MOST_NUMBERS", 3)
    truth = counted(pl.DataFrame({"county": ["A", "B"], "race": ["x", "y"]}), ["county", "race"])
    with pytest.raises(errors.StudyError) as refusal:
        Cells.of(truth, [truth], ["county", "race"], ["county"], None)
    assert refusal.value.kind == "study-too-large"
