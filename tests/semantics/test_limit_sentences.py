"""Every number in the sentences about limits, recomputed from epsilon times the distance."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
import sentence_oracle as oracle
from sentence_formulas import limit_held_up
from sentence_grid import ABSURD, TINY, USUAL, is_factor, is_power, parsed, split

from stirred.reports.limits_section import of_epsilon


@pytest.mark.parametrize("epsilon", [*TINY, *USUAL, *ABSURD, "2.8903717578961645", "0"])
@pytest.mark.parametrize("distance", [1, 2, 10, 99_999, None])
def test_limits_follow_from_epsilon_times_the_distance(epsilon, distance):
    found = of_epsilon(epsilon, 200_000, distance=distance, levels=(0.01, 0.05, 0.5), priors=(0.001, 0.1, 0.5))
    for one in found.statements:
        limit_held_up(one)
        match = re.search(r"distance ([\d,]+)", one.facts.get("question", ""))
        if match is None:
            continue
        r = float(Fraction(epsilon) * int(match[1].replace(",", "")))
        law, facts = oracle.Pairs((r, 0)), one.facts
        if "factor" in facts:
            is_factor(facts["factor"].shown, r)
            is_factor(facts["lowest"].shown, r, -1)
        if "powers" in facts and one.id == "limits.power":
            for text, level in zip(split(facts["powers"].shown), (0.01, 0.05, 0.5), strict=True):
                is_power(text, law.power(level), level)
        if one.id == "limits.attained":
            for text, level in zip(split(facts["powers"].shown), (0.01, 0.05, 0.5), strict=True):
                assert parsed(text) <= laplace(level, r) + 1e-9 and parsed(text) >= laplace(level, r) * 0.98 - 1e-9
        if "priors" in facts:
            for low, high, prior in zip(
                split(facts["lower"].shown), split(facts["upper"].shown), (0.001, 0.1, 0.5), strict=True
            ):
                most = prior / (prior + (1 - prior) * math.exp(-r))
                least = prior * math.exp(-r) / (prior * math.exp(-r) + 1 - prior)
                is_power(high, most, prior)
                assert least * 0.98 - 1.1e-9 <= parsed(low) <= least * (1 + 1e-9) + 1e-12, (low, least)
        if one.id == "limits.vacuous":
            miss = facts["miss"].shown
            smallest = math.log(float(miss)) if not miss.startswith("e^-") else -float(miss[3:])
            assert -r <= smallest <= -r + 0.1  # and e^-r (1 - a) is smaller at every a
            assert parsed(facts["radius"].shown) >= r * (1 - 1e-9)
        if one.id == "limits.zero":
            assert r == 0


def laplace(a, r):
    """The best test of a count with Laplace noise (Bailie 2025, section 5.9)."""
    if a <= math.exp(-r) / 2:
        return a * math.exp(r)
    return 1 - math.exp(-r) / (4 * a) if a <= 0.5 else 1 - (1 - a) * math.exp(-r)
