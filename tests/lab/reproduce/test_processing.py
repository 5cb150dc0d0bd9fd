"""What is enumerated for pbdp, f-DP by sets and randomised processing: against other routes, and where it must fail."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from stirred.lab.definitions.two_laws import Definition
from stirred.lab.reproduce import processing

SOME = list(itertools.islice(processing.pairs(), 0, None, 29))


@pytest.mark.parametrize("factor", processing.FACTORS)
def test_the_delta_of_tests_is_that_of_a_linear_program(factor):
    for first, second in SOME:
        excess = [float(factor * q - p) for p, q in zip(first, second, strict=True)]
        found = linprog([-float(p) for p in first], A_ub=[excess], b_ub=[0.0], bounds=(0, 1))
        expected = -found.fun if processing.tail(first, second, factor) else 0
        assert float(processing.delta_of_tests(first, second, factor)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("factor", processing.FACTORS)
def test_the_third_definition_is_that_of_the_package(factor):
    for first, second in SOME:
        both = [processing.delta_of_tests(*order, factor) for order in ((first, second), (second, first))]
        for delta in (Fraction(1, 7), Fraction(2, 5), Fraction(5, 7), Fraction(9, 10)):
            if abs(max(both) - delta) > 1e-9:
                ours = Definition.pbdp(math.log(factor), float(delta)).satisfied(np.array(first), np.array(second))
                assert bool(ours) == processing.satisfies_5_5(first, second, factor, delta)


def test_without_coins_the_second_definition_is_weaker_than_the_third():
    """The proof of Theorem 5.7 answers 1 with a probability: sets alone do not do."""
    first, second = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 6), Fraction(5, 6))
    assert processing._by_sets(first, second) == Fraction(1, 2)
    assert processing.delta_of_tests(first, second, Fraction(2)) == Fraction(1, 2) + Fraction(1, 2) * Fraction(1, 7)
    assert not processing.satisfies_5_5(first, second, Fraction(2), Fraction(1, 2))


def test_the_privacy_loss_of_a_processed_output_may_exceed_epsilon_more_often():
    """Definition 5.2 asks for all processings for that reason (Example 4.9)."""
    first, second = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 6), Fraction(5, 6))
    near = processing.a_processing_near(first, second, Fraction(2))
    assert processing.tail(first, second, Fraction(2)) < processing.tail(*near, Fraction(2))


def test_each_condition_of_the_corollary_is_needed():
    told = {
        name: (processing.ignores_noise(of), processing.immune(of), processing.immune_with_noise(of))
        for name, of in processing.DIVERGENCES.items()
    }
    assert told["the tail of the privacy loss"] == (True, False, False)
    assert told["pbdp by sets"] == (False, True, False)
    assert {told[name] for name in ("D_TV", "D_Mult", "pbdp")} == {(True, True, True)}
