"""The sensitivity of an estimate by trying all small datasets, for many random surveys at once.

A sample has a few slots. A slot holds a record: a class of units, a weight, a value, a size, or nothing if the unit
does not answer. Two datasets are neighbours if they differ in one slot, so that the largest change is the largest range
along one axis of the array of all estimates. Where weights are not fixed, every other slot may have any weight before
and after, and the changed record any of its class. Nothing of stirred is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Surveys:
    """Bounds of several random surveys: arrays of (survey, class, low or high)."""

    weight: np.ndarray
    value: np.ndarray
    size: np.ndarray

    @classmethod
    def random(cls, rng: np.random.Generator, surveys: int, classes: int) -> Surveys:
        def bounds(low: int, high: int) -> np.ndarray:
            return np.sort(rng.integers(low, high, size=(surveys, classes, 2)), axis=-1)

        return cls(bounds(1, 12), bounds(-6, 7), bounds(1, 8))


def _slot_states(classes: list[int], sizes: bool, vanish: bool, free: bool) -> list[tuple[int, int, int, int, int]]:
    """What a slot may hold: (class, weight, value, size, answers), the middle three as 0 low, 1 high, 2 halfway."""
    weights = (0,) if free else (0, 1)
    found = [(k, w, v, z, 1) for k in classes for w in weights for v in (0, 1, 2) for z in ((0, 1) if sizes else (0,))]
    return found + [(k, w, 0, 0, 0) for k in classes for w in weights] * vanish


def largest_change(
    surveys: Surveys,
    kind: str,
    change: str,
    *,
    slots: int,
    fewest: int,
    vanish: bool = False,
    free_weights: bool = False,
    slot_classes: list[list[int]] | None = None,
) -> np.ndarray:
    """The largest change of one record, for each survey. ``slot_classes`` ties slots to strata."""
    count, classes = surveys.weight.shape[:2]
    ties = slot_classes or [list(range(classes))] * slots
    states = [_slot_states(one, kind == "ratio", vanish, free_weights) for one in ties]
    shape = tuple(map(len, states))

    def looked_up(table: np.ndarray, at: int) -> np.ndarray:
        ends = np.concatenate([table, table.mean(axis=-1, keepdims=True)], axis=-1)
        return np.stack([np.stack([ends[:, s[0], s[at]] for s in one], axis=-1) for one in _padded(states)], axis=1)

    weight, value, size = (looked_up(t, at) for t, at in ((surveys.weight, 1), (surveys.value, 2), (surveys.size, 3)))
    answers = np.array([[s[4] for s in one] for one in _padded(states)], dtype=float)
    if kind != "ratio":
        size = np.ones_like(size)
    one_way = None if free_weights else _estimates(kind, weight * answers, value, size, answers, shape, fewest)
    largest = np.zeros(count)
    for axis, one in enumerate(states):
        upper = lower = one_way
        if free_weights:
            made = [
                _estimates(kind, w * answers, value, size, answers, shape, fewest)
                for w in _free_weights(surveys, _padded(states), axis)
            ]
            upper, lower = np.fmax.reduce(made), np.fmin.reduce(made)
        groups = [list(range(len(one)))]
        if change == "value" and not free_weights:
            groups = [[at for at, s in enumerate(one) if s[:2] == unit] for unit in {s[:2] for s in one}]
        for group in groups:
            ends = (np.take(part, group, axis=axis + 1) for part in (upper, lower))
            top, bottom = (np.fmax.reduce(next(ends), axis=axis + 1), np.fmin.reduce(next(ends), axis=axis + 1))
            apart = (top - bottom).reshape(count, -1)
            largest = np.fmax(largest, np.fmax.reduce(apart, axis=1))
    return largest


def _free_weights(surveys: Surveys, states: list[list[tuple[int, ...]]], changed: int) -> Iterator[np.ndarray]:
    """Weights of all slots: any of the changed record's class there, any at all elsewhere."""
    ends = np.concatenate([surveys.weight, surveys.weight.mean(axis=-1, keepdims=True)], axis=-1)
    low, high = surveys.weight[..., 0].min(axis=1), surveys.weight[..., 1].max(axis=1)
    anywhere = np.stack([low, high, (low + high) / 2], axis=-1)
    length = len(states[0])
    for choice in itertools.product(range(3), repeat=len(states)):
        yield np.stack(
            [
                np.stack([ends[:, s[0], at] for s in one], axis=-1)
                if slot == changed
                else np.repeat(anywhere[:, at, None], length, axis=1)
                for slot, (at, one) in enumerate(zip(choice, states, strict=True))
            ],
            axis=1,
        )


def _padded(states: list[list[tuple[int, ...]]]) -> list[list[tuple[int, ...]]]:
    most = max(map(len, states))
    return [one + [one[0]] * (most - len(one)) for one in states]


def _estimates(
    kind: str,
    weight: np.ndarray,
    value: np.ndarray,
    size: np.ndarray,
    answers: np.ndarray,
    shape: tuple[int, ...],
    fewest: int,
) -> np.ndarray:
    """The estimate of every dataset: an array with one axis for each slot; none where too few answer."""
    above, below, responding = 0.0, 0.0, 0.0
    for slot, length in enumerate(shape):
        along = [1] * (len(shape) + 1)
        along[0], along[slot + 1] = -1, length
        above = above + (weight * value)[:, slot, :length].reshape(along)
        below = below + (weight * size)[:, slot, :length].reshape(along)
        responding = responding + answers[slot, :length].reshape(along[1:])[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = above if kind == "horvitz-thompson" else above / below
    return np.where(responding >= fewest, found, np.nan)
