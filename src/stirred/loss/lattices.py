"""Laws of a loss on the lattice of multiples of one step: a smaller and a larger one in the convex order of e^-L.

*Above*, each atom is split over the two points of the lattice around it so that its mass and its mean of X = e^-L stay
(Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "connect the dots"): a spread, which raises the expectation of
every convex function of X. Each split adds a variance of at most a quarter of the step squared, so that the error
falls with the square of the step.

*Below*, the largest convex function with kinks on the lattice that is nowhere above C(k) = E (k - X)_+ is followed from
k = 0: from each point of the lattice the line to the tangent at C, until the tangent point is passed. Mass moves to the
next larger X on the lattice, and what the mean of X gained is taken back from the next atoms. The error is of the order
of the step times the gap between atoms, and falls with the square of the step where atoms are dense.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stirred._compiled import kernel
from stirred.loss.laws import UNIT, Array, Atoms

CONTRACTION = 1e-13
"""Relative error allowed for the masses that the lower law is made of; they are differences of nearby slopes."""


@dataclass(frozen=True)
class Masses:
    """Masses at the lattice points first, first + 1, ..., of a loss that is added ``count`` times."""

    first: int
    masses: Array
    count: int


def split(part: Atoms, count: int, step: float, offset: float = 0.0) -> Masses:
    """A law above ``part`` on the lattice that begins at ``offset``."""
    losses = _relative(part, step, offset)
    below = np.floor(losses / step)
    share = np.clip(np.expm1(below * step - losses) / math.expm1(-step), 0, 1)
    at = below.astype(np.int64)
    first, size = int(at[0]), int(at[-1] - at[0]) + 2
    masses: Array = np.bincount(at - first, weights=part.masses * (1 - share), minlength=size).astype(np.float64)
    masses += np.bincount(at - first + 1, weights=part.masses * share, minlength=size)
    return _trimmed(first, masses * (1 + part.error + 1e-14), count)


def contracted(part: Atoms, count: int, step: float, offset: float = 0.0) -> Masses:
    """A law below ``part`` on the lattice that begins at ``offset``."""
    room = 2 * len(part.losses) + 2
    at, mass = np.empty(room, dtype=np.int64), np.empty(room)
    number = _contract(_relative(part, step, offset)[::-1].copy(), part.masses[::-1].copy(), step, at, mass)
    at, mass = at[:number], mass[:number]
    first = int(np.min(at))
    masses: Array = np.bincount(at - first, weights=mass).astype(np.float64)
    return _trimmed(first, masses * (1 - part.error - CONTRACTION), count)


def placed(part: Atoms, count: int, step: Fraction) -> tuple[Masses, Masses]:
    """Below and above a law that is on the lattice already, its first atom at 0; no mass moves."""
    stride = 1 if part.step is None else int(part.step / step)
    masses = np.zeros((len(part.masses) - 1) * stride + 1)
    masses[::stride] = part.masses
    return Masses(0, masses * (1 - part.error), count), Masses(0, masses * (1 + part.error), count)


def common_step(parts: list[tuple[Atoms, int]]) -> Fraction | None:
    """The coarsest lattice that all parts are on, up to where each begins; none where a part is on no lattice."""
    step: Fraction | None = None
    for part, _ in parts:
        if len(part.masses) == 1:
            continue
        if part.step is None:
            return None
        if step is None:
            step = part.step
        else:
            a, b = step, part.step
            over = a.denominator * b.denominator
            step = Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), over)
    return Fraction(1) if step is None else step


def _relative(part: Atoms, step: float, offset: float) -> Array:
    """Losses from where the lattice begins. Those on it but for rounding are put on it; slack is left for that."""
    losses = part.losses - offset
    nearest = np.round(losses / step) * step
    rounding = 16 * UNIT * max(abs(float(part.losses[0])), abs(float(part.losses[-1])))
    return np.where(np.abs(losses - nearest) <= rounding, nearest, losses)


def _trimmed(first: int, masses: Array, count: int) -> Masses:
    some = np.flatnonzero(masses)
    return Masses(first + int(some[0]), masses[some[0] : some[-1] + 1], count)


@kernel
def _contract(losses, masses, step, at, mass):  # type: ignore[no-untyped-def]
    """Fill ``at`` and ``mass`` with the lower law, for losses that descend; return how many points it has.

    At a point a of the lattice: ``gap`` is C minus the line drawn so far, in units of e^-a; ``excess`` is the line's
    slope minus that of C beyond a. Both start anew from a tangent point, so that rounding does not add up.
    """
    size = len(losses)
    number = 0
    k = 0
    anchor = math.floor(losses[0] / step)
    gap = 0.0
    excess = 0.0
    while True:
        a = anchor * step
        while k < size and losses[k] >= a:
            gap -= masses[k] * math.expm1(a - losses[k])
            excess -= masses[k]
            k += 1
        gap = max(gap, 0.0)
        # The tangent to C from the end of the line, over the atoms ahead; or the line that C approaches.
        slope = 0.0
        reached = 0.0
        height = gap
        tangent = -1
        for i in range(k, size):
            if a - losses[i] > 600:  # beyond floats, and no tangent before: what is left is not worth following
                break
            u = math.expm1(a - losses[i])
            height += slope * (u - reached)
            reached = u
            if slope + masses[i] >= height / u:
                tangent = i
                break
            slope += masses[i]
        new = slope if tangent < 0 else height / reached
        at[number] = anchor
        mass[number] = max(new - excess, 0.0)
        number += 1
        if tangent < 0:
            return number
        excess = new - slope
        k = tangent
        anchor = min(anchor - 1, math.floor(losses[k] / step))
        gap = excess * math.expm1(anchor * step - losses[k])
