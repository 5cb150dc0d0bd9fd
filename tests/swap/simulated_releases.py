"""Many releases of one file at once: each is an area of its own in one tally, so all are estimated together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from stirred.noise import SeededSource
from stirred.swap.estimating.cell_estimates import Shape, Tally
from stirred.swap.estimating.question_counts import Counted, CountParts, Side
from stirred.swap.estimating.questions import Question
from stirred.swap.law.moments import LawConstants
from stirred.swap.law.permutation import draw
from stirred.tables.groups import Groups


def tally_of(stratum, scores, released, rate):
    """Given releases: ``released[release, record]`` are swap values, ``scores[record, group]`` what is held."""
    stratum, released = np.asarray(stratum), np.atleast_2d(released)
    scores = np.asarray(scores).reshape(len(stratum), -1)
    times, strata, many = len(released), int(stratum.max()) + 1, int(released.max()) + 1
    kinds, kind = np.unique(scores, axis=0, return_inverse=True)
    ids = stratum + strata * np.arange(times)[:, None]
    keys, count = np.unique((ids * len(kinds) + kind.reshape(-1)) * many + released, return_counts=True)
    at, group = np.nonzero(kinds)
    return Tally(
        shape=Shape(times, scores.shape[1], many),
        law=LawConstants.of(np.tile(np.bincount(stratum), times), Fraction(rate)),
        area=np.repeat(np.arange(times), strata),
        stratum=keys // (many * len(kinds)),
        held=keys // many % len(kinds),
        swapped=keys % many,
        count=count,
        class_of=at,
        group_of=group,
        score=kinds[at, group],
        swap_group=np.arange(many),
    )


def simulated(stratum, scores, swapped, rate, seed, times):
    """A tally of ``times`` releases drawn by the kernel."""
    stratum, swapped = np.asarray(stratum), np.asarray(swapped)
    strata = int(stratum.max()) + 1
    ids = (stratum + strata * np.arange(times)[:, None]).ravel().astype(np.uint32)
    sizes = np.tile(np.bincount(stratum), times)
    moves = draw(Groups(ids, strata * times), sizes, Fraction(rate), SeededSource(seed))
    released = moves.apply(np.tile(swapped.astype(np.uint32), times)).astype(np.int64)
    return tally_of(stratum, scores, released.reshape(times, -1), rate)


def question(tally, rate, held=("h",)):
    """A question by release, held groups and swap value; several held columns are binary, the first counts most."""
    areas, groups, values = tally.shape
    if len(held) == 1:
        codes, texts = np.arange(groups)[:, None], (tuple(map(str, range(groups))),)
    else:
        codes = np.array([[group >> bit & 1 for bit in reversed(range(len(held)))] for group in range(groups)])
        texts = (("0", "1"),) * len(held)
    counted = Counted(
        tally,
        (
            Side(("run",), np.arange(areas)[:, None], (tuple(map(str, range(areas))),)),
            Side(tuple(held), codes, texts),
            Side(("s",), np.arange(values)[:, None], (tuple(map(str, range(values))),)),
        ),
    )
    return Question("t", ("run", *held, "s"), {}, counted, CountParts(tally, Fraction(rate)), ())


def true_counts(scores, swapped):
    """The true table: held groups by swap values."""
    scores = np.asarray(scores).reshape(len(swapped), -1)
    return np.stack([scores[np.asarray(swapped) == s].sum(axis=0) for s in range(int(np.max(swapped)) + 1)], axis=1)
