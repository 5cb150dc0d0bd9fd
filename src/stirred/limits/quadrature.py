"""Integrals of several functions at once over the line, each with an estimate of its error.

Panels shrink towards every break by halves, so that a function may live on any scale around a break and may have an
integrable pole there. Each panel is integrated by the rules of Gauss (7 points) and Kronrod (15); those on which the
two differ too much are halved. The differences, added up, are the stated error. The 15-point value is usually far
better than that; a peak between the points of a panel goes unnoticed by both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = Callable[[Array], Array]
"""From points to one row of values for each function."""

HALVINGS = 50
"""Panels next to a break are 2^-50 of their interval wide, or of 1 where it has no end; as many double outwards."""

FARTHER = 2.0**16
FARTHEST = 1e100
"""A panel without end is divided at 2^16 times its beginning, up to here. What still does not settle has no error that
could be stated: it is infinite."""

MOST_PANELS = 40_000
ROUNDING = 2.0**-48
"""Sums and functions are rounded: no error is stated below this part of the integral of the absolute value."""

# Kronrod's points on [0, 1) with their weights; every second one, from the second on, is Gauss's.
_POINTS = (
    0.9914553711208126,
    0.9491079123427585,
    0.8648644233597691,
    0.7415311855993945,
    0.5860872354676911,
    0.4058451513773972,
    0.20778495500789848,
    0.0,
)
_KRONROD = (
    0.022935322010529224,
    0.06309209262997856,
    0.10479001032225019,
    0.14065325971552592,
    0.1690047266392679,
    0.19035057806478542,
    0.20443294007529889,
    0.20948214108472782,
)
_GAUSS = (
    0.1294849661688697,
    0.27970539148927664,
    0.3818300505051189,
    0.4179591836734694,
)

NODES = np.array([*(-x for x in _POINTS), *_POINTS[-2::-1]])
KRONROD = np.array([*_KRONROD, *_KRONROD[-2::-1]])
GAUSS = np.zeros(15)
GAUSS[1::2] = [*_GAUSS, *_GAUSS[-2::-1]]


@dataclass(frozen=True, eq=False)
class Integrals:
    """The integral of each function, its error, and both by panel: panels in the first axis of ``edges``, ascending."""

    values: Array
    errors: Array
    edges: Array
    parts: Array


def integrals(
    functions: Rows, breaks: Sequence[float], tolerance: float = 1e-10, beside: Sequence[int] | None = None
) -> Integrals:
    """The integrals over all between the first and the last break, which may be infinite.

    The tolerance is a part of each integral of the absolute value or, if that is larger, of that of the function
    ``beside`` it: what adds little to another one need not be known well.

    >>> found = integrals(lambda x: np.stack([np.exp(-x), x * np.exp(-x)]), (0, math.inf))
    >>> found.values.round(10).tolist(), bool(np.all(found.errors < 1e-9))
    ([1.0, 1.0], True)
    """
    edges = _panels(breaks)
    kept: list[tuple[Array, Array, Array]] = []
    size = np.zeros(1)
    while True:
        parts, differences, sizes, moved = _measured(functions, edges)
        size = size + sizes.sum(axis=0)
        known = sum(len(one[0]) for one in kept)
        against = size if beside is None else np.maximum(size, size[list(beside)])
        allowed = tolerance * against / max(64, known + len(edges))
        middles = _middles(edges)
        # Where the rounding of points matters more, halving makes it worse.
        rough = (
            np.any((differences > allowed) & (differences > moved), axis=1)
            & (middles > edges[:, 0])
            & (middles < edges[:, 1])
        )
        endless = np.isinf(edges).any(axis=1) & ~rough
        differences[endless] = np.where(differences[endless] > tolerance * against, math.inf, differences[endless])
        if known + len(edges) + int(rough.sum()) > MOST_PANELS:
            rough[:] = False
        kept.append((edges[~rough], parts[~rough], (differences + moved)[~rough]))
        if not rough.any():
            break
        size = size - sizes[rough].sum(axis=0)
        left = np.stack([edges[rough, 0], middles[rough]], axis=1)
        edges = np.concatenate([left, np.stack([middles[rough], edges[rough, 1]], axis=1)])
    every, parts, differences = (np.concatenate([one[at] for one in kept]) for at in range(3))
    order = np.argsort(every[:, 0], kind="stable")
    parts, differences = parts[order], differences[order]
    sums = np.array([math.fsum(column) for column in parts.T])
    return Integrals(sums, differences.sum(axis=0) + ROUNDING * np.asarray(size), every[order], parts)


def part_of_panel(functions: Rows, left: float, right: float) -> Array:
    """The integrals over a part of one panel, by the 15 points."""
    parts, *_ = _measured(functions, np.array([[left, right]]))
    return np.asarray(parts[0])


def _panels(breaks: Sequence[float]) -> Array:
    """Panels between breaks, narrower towards each of them; the last one of an end at infinity is infinite."""
    edges: set[float] = set()
    ends = [float(at) for at in breaks]
    if len(ends) == 2 and math.isinf(ends[0]) and math.isinf(ends[1]):
        ends = [ends[0], 0.0, ends[1]]
    halves = 0.5 ** np.arange(1, HALVINGS + 1)
    for a, b in itertools.pairwise(ends):
        edges |= {a, b}
        if math.isinf(b):
            edges |= set((a + 1 / halves).tolist()) | set((a + halves).tolist()) | {a + 1.0}
        elif math.isinf(a):
            edges |= set((b - 1 / halves).tolist()) | set((b - halves).tolist()) | {b - 1.0}
        else:
            edges |= set((a + (b - a) * halves).tolist()) | set((b - (b - a) * halves).tolist())
    listed = np.array(sorted(edges))
    return np.stack([listed[:-1], listed[1:]], axis=1)


def _middles(edges: Array) -> Array:
    """Where panels are divided: in their middle; one without end farther and farther out."""
    left, right = edges[:, 0], edges[:, 1]
    below, above = np.isinf(left), np.isinf(right)
    inside = (np.where(below, 0.0, left) + np.where(above, 0.0, right)) / 2
    near = np.where(above, left, np.where(below, right, 0.0))
    out = FARTHER * np.maximum(1.0, np.abs(near))
    farther = near + np.where(below, -out, out)
    return np.where(below | above, np.where(np.abs(farther) < FARTHEST, farther, near), inside)


def _measured(functions: Rows, edges: Array) -> tuple[Array, Array, Array, Array]:
    """For each panel and function: the integral, the difference of the two rules, the integral of the absolute value,
    and what the rounding of points may change."""
    left, right = edges[:, 0], edges[:, 1]
    below, above = np.isinf(left), np.isinf(right)
    # The last panel of an infinite end, from c on: x = c + s (u + 1)/(1 - u) with s = max(1, |c|), u from -1 to 1.
    near = np.where(above, left, np.where(below, right, 0.0))
    scale = np.maximum(1.0, np.abs(near))
    open_ended = below | above
    half = np.where(open_ended, 1.0, (np.where(open_ended, 1.0, right) - np.where(open_ended, 0.0, left)) / 2)
    points = np.where(open_ended, 0.0, left + half)[:, None] + half[:, None] * NODES[None, :]
    far = near[:, None] + np.where(below, -scale, scale)[:, None] * ((1 + NODES) / (1 - NODES))[None, :]
    # A point that is rounded to the end of its panel is taken next to it: there may be a pole.
    inner = np.clip(points, np.nextafter(left, math.inf)[:, None], np.nextafter(right, -math.inf)[:, None])
    at = np.where(open_ended[:, None], far, inner)
    lengths = np.where(open_ended[:, None], scale[:, None] * (2 / (1 - NODES) ** 2)[None, :], half[:, None])
    with np.errstate(under="ignore"):
        values = np.asarray(functions(at.ravel()), dtype=np.float64).reshape(-1, *at.shape) * lengths
    kronrod, gauss = values @ KRONROD, values @ GAUSS
    sizes = np.abs(values) @ KRONROD
    # Points are rounded too: by a part of the panel that counts next to a pole.
    moved = np.where(open_ended, 0.0, np.spacing(np.abs(points).max(axis=1)) / (2 * half))
    return kronrod.T, np.abs(kronrod - gauss).T, sizes.T, (moved * sizes).T
