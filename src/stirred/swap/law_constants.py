"""The constants of the swap's law, stratum by stratum, also where strata have different rates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.swap.moments import stratum_constants

Floats = NDArray[np.float64]

WEAKEST = 0.1
"""An association that shrinks to less than this part of itself is not undone: its error would be ten times as large."""


@dataclass(frozen=True, eq=False, repr=False)
class LawConstants:
    """For each stratum its size and the constants of :class:`stirred.swap.moments.StratumConstants`."""

    size: NDArray[np.int64]
    shrinkage: Floats
    a1: Floats
    a2: Floats
    a3: Floats
    a4: Floats

    def __repr__(self) -> str:
        return f"<LawConstants: {len(self.size):,} strata>"

    @classmethod
    def of(cls, size: NDArray[np.int64], rate: Fraction) -> LawConstants:
        """Where all records have one rate."""
        constants = stratum_constants(size, rate)
        rows = constants.rows(size)
        return cls(size, *(getattr(constants, one.name)[rows] for one in fields(cls)[1:]))

    @classmethod
    def by_rate(cls, size: NDArray[np.int64], among: dict[Fraction, NDArray[np.bool_]]) -> LawConstants:
        """Where all records of a stratum have one rate; ``among`` tells which strata have which."""
        found = np.zeros((len(fields(cls)) - 1, len(size)))
        for rate, here in among.items():
            if here.any():
                own = cls.of(size[here], rate)
                found[:, here] = [getattr(own, one.name) for one in fields(cls)[1:]]
        return cls(size, *found)

    @property
    def invertible(self) -> NDArray[np.bool_]:
        """Whether an association of held with swap values can be undone."""
        return np.abs(self.shrinkage) > WEAKEST + 1e-9
