"""Numbers about swapping: chapters 3 and 4 and appendix B of the thesis, the working paper, the slides."""

from __future__ import annotations

from fractions import Fraction

from stirred.reproduce.computations import computation
from stirred.swap import guarantee


@computation
def swap_epsilon(largest_stratum: int, rate: str) -> float:
    """Epsilon of Theorem 3.2.4."""
    return guarantee.epsilon(largest_stratum, Fraction(rate))
