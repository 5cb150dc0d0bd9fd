"""What the documents say about noise of small parameters, computed anew: numbers, and the conditions beside them."""

from decimal import Decimal, localcontext
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def text(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def divergence(order, variance):
    """The Renyi divergence between discrete Gaussians one apart, summed directly."""
    numbers = range(-60, 61)
    law = [(-(Decimal(k) ** 2) / (2 * variance)).exp() for k in numbers]
    moved = [(-(Decimal(k - 1) ** 2) / (2 * variance)).exp() for k in numbers]
    total = sum(p**order * q ** (1 - order) for p, q in zip(moved, law, strict=True)) / sum(law)
    return total.ln() / (order - 1)


def drawn_variance(s):
    numbers = range(-60, 61)
    weights = [(-(Decimal(k) ** 2) / (2 * s)).exp() for k in numbers]
    return sum(k * k * w for k, w in zip(numbers, weights, strict=True)) / sum(weights)


@pytest.mark.parametrize("variance", ["0.05", "0.25", "1"])
def test_the_divergence_of_discrete_gaussians_is_exact_at_whole_orders_and_at_most_that_elsewhere(variance):
    variance = Decimal(variance)
    said = text("topdown.md")
    assert "is a/(2 variance) where a is a whole number, and at most that elsewhere" in said
    with localcontext(prec=40):
        for order in map(Decimal, (2, 3, 7)):
            assert abs(divergence(order, variance) - order / (2 * variance)) < Decimal(10) ** -25
        for order in map(Decimal, ("1.5", "2.5", "3.3")):
            assert divergence(order, variance) < order / (2 * variance)
        if variance < 1:
            assert divergence(Decimal("1.5"), variance) < Decimal("0.99") * 3 / (4 * variance)  # "is" would be false


def test_standard_errors_of_estimates_are_told_with_their_condition():
    said = text("estimates.md")
    assert "exact standard error" not in said
    assert "to one part in four million where s is 1 or more" in said and "(0.215 at s = 1/4)" in said
    with localcontext(prec=40):
        assert 1 - drawn_variance(Decimal(1)) < Decimal(1) / 4_000_000
        assert abs(drawn_variance(Decimal("0.25")) - Decimal("0.215")) < Decimal("0.0005")
        # Below 1 noise parameters are not in proportion to variances, so that weights by s are not the best ones.
        assert drawn_variance(Decimal("0.05")) / drawn_variance(Decimal("0.25")) < Decimal("0.1")
