"""Choose the grid that losses are rounded to, where none is given and the losses share no lattice.

Splitting adds about a sixth of the step's square to the variance of each part, in the bounds from above, and so it is
below where atoms are dense. Atoms that stand alone and off the grid make lower bounds loose in proportion to the step.
So the grid of each part begins at an atom of it, and the step is chosen so that the gaps between atoms of all parts
that are lattices themselves come as near as can be to multiples of it; that of the part with the largest variance is
one.
"""

from __future__ import annotations

import math

import numpy as np

from stirred.loss.laws import Atoms, LaplaceLaw, Law

Parts = list[tuple[Law, int]]

ACCURACY = 1e-7
"""The part of its variance by which rounding to a grid may change the loss."""

FINEST = 1 << 19
WORK = 1 << 23
"""A grid has at most about so many points, and times the number of parts so many."""

ALONE = 1 << 18
"""Where atoms stand alone, the grid has at least about so many, divided by the number of parts."""

REACH = 18
"""How many standard deviations such points are meant to cover."""

MOST_TRIED = 20_000


def chosen_step(parts: Parts) -> float:
    """A step for which rounding changes epsilon in about the seventh digit, a little more where atoms stand alone."""
    spread = deviation(parts) or 1.0
    step = spread * math.sqrt(6 * ACCURACY / sum(n for _, n in parts))
    if any(_gap(law) > step for law, _ in parts):
        step = min(step, REACH * spread * len(parts) / ALONE)
    step = max(step, REACH * spread / FINEST, REACH * spread * len(parts) / WORK)
    step = max(step, max(span(law) for law, _ in parts) / (2 * FINEST))  # the longest part must fit
    gaps = sorted(((n * law.variance, _gap(law)) for law, n in parts if 2 * step < _gap(law) < math.inf), reverse=True)
    if not gaps:
        return step
    first = math.ceil(gaps[0][1] / step)
    pieces = np.arange(first, min(2 * first, first + MOST_TRIED) + 1, dtype=np.float64)
    off = np.zeros(len(pieces))
    for variance, gap in gaps[1:]:
        places = gap / gaps[0][1] * pieces
        # Atoms some gaps away are off as many times as much, until it does not matter.
        gaps_across = 1 + 2 * math.sqrt(variance) / gap
        off += variance / gap * np.minimum(0.5, gaps_across * np.abs(places - np.round(places)))
    return float(gaps[0][1] / pieces[np.argmin(off / pieces)])


def offset(law: Law) -> float:
    """Where the grid of a part begins: at its last atom if it is a lattice, else at the heaviest one.

    The largest loss of the sum is then on the grid, and delta just below it is not lost in the lower bounds.
    """
    if isinstance(law, LaplaceLaw):
        return law.epsilon
    if not isinstance(law, Atoms):
        return 0.0
    return float(law.losses[-1 if law.step is not None else int(np.argmax(law.masses))])


def points(parts: Parts, step: float) -> float:
    """About how many points of a grid are needed around the mean, and for the longest part."""
    return max(16 * deviation(parts), *(span(law) for law, _ in parts)) / step


def deviation(parts: Parts) -> float:
    """The standard deviation of the sum of independent losses."""
    return math.sqrt(math.fsum(n * law.variance for law, n in parts))


def ends(law: Law) -> tuple[float, float]:
    """The smallest and largest loss that are not cut."""
    return (float(law.losses[0]), float(law.losses[-1])) if isinstance(law, Atoms) else law.interval()


def span(law: Law) -> float:
    """The length of the interval of losses that are not cut."""
    low, high = ends(law)
    return high - low


def _gap(law: Law) -> float:
    """The distance of atoms that stand alone: infinite where it is not one distance, 0 where there are none."""
    if isinstance(law, LaplaceLaw):
        return 2 * law.epsilon
    if not isinstance(law, Atoms) or len(law.losses) == 1:
        return 0.0
    if law.step is not None:
        return float(law.step)
    crowded = len(law.losses) * math.sqrt(law.variance) > 1e3 * span(law)
    return 0.0 if crowded else math.inf
