"""Answers from a swapped release: counts, shares, differences, ratios and odds ratios, from its folder alone.

A swap weakens every association of held with swap variables, and by how much is public: it follows from the sizes of
strata and the rate. So it can be undone on average (:mod:`stirred.swap.estimating.cell_estimates`), but for records in
groups so small for their rates that nothing is left: an answer with such records has an interval alone. This module
takes a question apart into counts, and puts their estimates together (:mod:`stirred.estimates.answers`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.estimates.answers import Answers, Coefficients, Parts, asked_contrasts, difference, odds_ratio, ratio
from stirred.releases.folder.documents import SPECIFICATION
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.data.counting import key_of, look_up
from stirred.swap.estimating.cell_estimates import Block, Covariances
from stirred.swap.estimating.question_counts import (
    KIND_WORDS,
    Counted,
    CountParts,
    Side,
    Where,
    count_cells,
    rates_of_release,
)
from stirred.swap.estimating.regression_questions import Choices, regress
from stirred.swap.estimating.simulated_estimates import SimulatedParts
from stirred.swap.plan.fields import SwapPlan

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Contrast = tuple[str, str, str]
"""A column and two of its values: the first against the second."""


@dataclass(frozen=True, eq=False, repr=False)
class SwappedRelease:
    """A swapped release, opened for many questions."""

    release: ReleaseFolder
    plan: SwapPlan

    def __repr__(self) -> str:
        return f"<SwappedRelease {self.release.path}>"

    @classmethod
    def open(cls, path: str | Path) -> SwappedRelease:
        """Open a release folder."""
        release = ReleaseFolder.open(path)
        if release.mechanism != SwapPlan.mechanism:
            raise errors.not_a_release(release.path, "it was not made by a swap")
        if not (release.path / SPECIFICATION).is_file():
            raise errors.not_a_release(
                release.path, f"it has no {SPECIFICATION}. 'stirred verify {release.path}' says what else is not right"
            )
        plan = SwapPlan.from_published(release.certificate["plan"])
        return cls(release, plan)

    def estimate(
        self,
        by: Sequence[str] = (),
        where: Where | None = None,
        *,
        table: str | None = None,
        share: str | None = None,
        difference: Contrast | None = None,
        ratio: Contrast | None = None,
        odds_ratio: tuple[Contrast, Contrast] | None = None,
    ) -> Answers:
        """Estimate counts by some columns, or shares, differences, ratios or odds ratios of them."""
        name = self.release.require_table(table)
        conditions = {key: _several(values) for key, values in (where or {}).items()}
        contrasts = asked_contrasts(difference, ratio, odds_ratio, share, conditions.get(share or "", ()))
        by = tuple(dict.fromkeys([*by, *(one[0] for one in contrasts), *([share] if share else [])]))
        counted = count_cells(self.release, self.plan, name, by, conditions, rates_of_release(self.release, self.plan))
        asked = self._question(name, by, conditions, counted)
        if odds_ratio is not None:
            return asked.odds_ratio(*odds_ratio)
        if contrasts:
            return asked.compared(contrasts[0], share, apart=difference is not None)
        if share is not None:
            return asked.shares(share)
        return asked.counts()

    def regress(
        self,
        formula: str,
        where: Where | None = None,
        *,
        table: str | None = None,
        target: str = "population",
        robust: bool = False,
        reference: Mapping[str, str] | None = None,
        categories: Sequence[str] = (),
    ) -> Coefficients:
        """Regress a column on others, all of the main table, as ``income ~ county + size``."""
        conditions = {key: _several(values) for key, values in (where or {}).items()}
        choices = Choices(target, robust, reference, _several(categories))
        return regress(self.release, self.plan, formula, conditions, self.release.require_table(table), choices)

    def _question(
        self, table: str, by: tuple[str, ...], where: Mapping[str, tuple[str, ...]], counted: Counted
    ) -> Question:
        """Formulas where there are some; draws of the swap's law after several rounds, and for linked rows of records
        with different rates."""
        exact, tally = self._exact(), counted.tally
        by_formulas = CountParts(tally, self.plan.rate)
        if counted.records is None:
            return Question(table, by, where, counted, by_formulas, exact)
        simulated = SimulatedParts(tally, counted.records, self._key())
        drawn = counted.in_rounds or (tally.mixed.any() and tally.rule is None)
        return Question(table, by, where, counted, simulated if drawn else by_formulas, exact, simulated)

    def _key(self) -> int:
        """Repeats the draws of one release, so that the same question has the same answer."""
        return int(hashlib.sha256(str(self.release.certificate.get("nonce")).encode()).hexdigest()[:24], 16)

    def _exact(self) -> tuple[str, ...]:
        stated = self.release.certificate.get("invariants", [])
        return tuple(str(one.get("words", "")) for one in stated if isinstance(one, dict) and one.get("words"))


@dataclass(frozen=True, eq=False)
class _Terms:
    """A count for each row of an answer: its place among some counts, or -1 for one that the margins make 0."""

    of: CountParts | SimulatedParts
    at: Integers
    groups: Sequence[Integers]
    """Of each row its area, held and swap group, also where they do not occur together; -1 for one that never does."""
    merged: tuple[Integers, Integers, Integers] | None = None
    """For each area, held and swap group of the question its group among these counts; None where they are the same."""

    def take(self, confidence: float | None, *, whole: bool = False) -> Parts:
        """The counts with their intervals, ``nan`` where there is only an interval; None for the counts alone, which
        take less time."""
        values = np.where(self.only_interval, np.nan, self._each(self.of.values))
        if confidence is None:
            return Parts(values, self.variances, values, values)
        found = self.of.parts(confidence, whole=whole)
        return Parts(values, *(self._each(part) for part in (found.variances, found.lower, found.upper)))

    def _each(self, part: Floats) -> Floats:
        return np.where(self.at >= 0, part[self.at], 0.0)

    @property
    def naive(self) -> Floats:
        return self._each(self.of.naive)

    def has(self, kind: str) -> NDArray[np.bool_]:
        """Where the interval of the count is of this kind."""
        return np.asarray((self.at >= 0) & (self.of.kinds[self.at] == kind))

    @property
    def only_interval(self) -> NDArray[np.bool_]:
        """Where the count, or a part of it, is not estimated but bounded."""
        return self.has("margins") | self.has("bounded")

    @cached_property
    def variances(self) -> Floats:
        return self._each(self.of.variances)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Where the count is not known."""
        return (self.at >= 0) & ~self.has("known")

    def block(self, row: int, sizes: Sequence[int]) -> Block:
        """The groups of the question that a count is made of."""
        own = [int(part[self.at[row]]) for part in self.of.groups]
        maps = self.merged or tuple(np.arange(size) for size in sizes)
        return Block(*(part == one for part, one in zip(maps, own, strict=True)))


@dataclass(frozen=True, eq=False)
class Question:
    """One question, with the released cells that answer it."""

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    counted: Counted
    parts: CountParts | SimulatedParts
    exact: tuple[str, ...]
    simulated: SimulatedParts | None = None
    """Draws of the swap's law, where there are several rates or rounds."""

    @property
    def sides(self) -> tuple[Side, Side, Side]:
        return self.counted.sides

    @property
    def sizes(self) -> list[int]:
        return [len(side) for side in self.sides]

    # -- measures --------------------------------------------------------------------------------------------

    def counts(self) -> Answers:
        """The counts themselves."""
        order = self._order(self.parts)
        refused = self.parts.refused[order]
        if len(order) and refused.all():
            raise errors.swap_mixes_too_much()

        def ends(confidence: float) -> Parts:
            at = self.parts.parts(confidence, whole=True)
            return Parts(*(part[order] for part in (at.values, at.variances, at.lower, at.upper)))

        only_interval = self._terms(order).only_interval
        return self._answers(
            "count",
            self.by,
            self._labels(self.parts, order, self.by),
            np.where(only_interval, np.nan, self.parts.values[order]),
            np.where(only_interval, np.inf, self.parts.variances[order]),
            self.parts.naive[order],
            self.parts.kinds[order],
            ends,
            whole=True,
        )

    def shares(self, column: str) -> Answers:
        """Counts as shares of all values of a column."""
        own = self._terms(self._order(self.parts))
        total = self._total(own, column)

        def combine(parts: Sequence[Parts], covariance: Floats) -> Parts:
            return ratio(parts[0], parts[1], covariance[:, 0, 1]).within(0.0, 1.0)

        labels, naive = self._labels(self.parts, own.at, self.by), _divided(own.naive, total.naive)
        return self._combined(f"share of {column}", self.by, labels, [own, total], combine, naive, whole=False)

    def compared(self, contrast: Contrast, share: str | None, *, apart: bool) -> Answers:
        """Counts, or shares, among records with one value of a column against those with another: as a difference,
        ``apart``, or as a ratio."""
        if contrast[0] == share:
            raise errors.estimate_question(
                "A comparison of shares", f"needs another column than '{share}', whose shares they are"
            )
        first, second, labels = self._contrast(contrast)
        terms, naive = [first, second], [first.naive, second.naive]
        words = f"{contrast[1]} {'minus' if apart else 'divided by'} {contrast[2]}"
        if share is not None:
            terms = [first, self._total(first, share), second, self._total(second, share)]
            naive = [_divided(terms[at].naive, terms[at + 1].naive) for at in (0, 2)]
            words += f" in the share of {share}"

        def combine(parts: Sequence[Parts], covariance: Floats) -> Parts:
            one, other, cross = _operands(parts, covariance)
            if not apart:
                return ratio(one, other, cross).within(0.0, np.inf)
            found = difference(one, other, cross)
            return found if share is None else found.within(-1.0, 1.0)

        measured = naive[0] - naive[1] if apart else _divided(naive[0], naive[1])
        whole = apart and share is None
        return self._combined(words, self._without(contrast[0]), labels, terms, combine, measured, whole=whole)

    def odds_ratio(self, one: Contrast, other: Contrast) -> Answers:
        """The odds of one column's values among records with one value of another, against those with a second."""
        if one[0] == other[0]:
            raise errors.estimate_question("An odds ratio", "needs two different columns")
        first, second, labels = self._contrast(one, (other[0], other[1]))
        third = self._moved(first, other[0], other[2])
        fourth = self._moved(second, other[0], other[2])
        left = tuple(name for name in self.by if name not in (one[0], other[0]))
        labels = [tuple(text for name, text in zip(self._without(one[0]), label, strict=True) if name != other[0])
                  for label in labels]  # fmt: skip
        terms = [first, third, second, fourth]
        naive = _divided(first.naive * fourth.naive, third.naive * second.naive)
        words = f"odds ratio {other[1]}:{other[2]}, {one[1]} to {one[2]}"
        return self._combined(words, left, labels, terms, odds_ratio, naive, whole=False)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _combined(
        self, measure: str, by: tuple[str, ...], labels: Any, terms: Sequence[_Terms], combine: Any, naive: Floats, *,
        whole: bool,
    ) -> Answers:  # fmt: skip
        if not len(labels):
            raise errors.estimate_question("The asked combination of values", "must occur in the release")
        covariance = self._covariances(terms)
        found = combine([term.take(None) for term in terms], covariance)
        refused = np.logical_or.reduce([term.has("margins") for term in terms])
        if refused.all():
            raise errors.swap_mixes_too_much()
        bounded = np.logical_or.reduce([term.has("bounded") for term in terms])
        unknown = np.sum([term.varies for term in terms], axis=0)
        several = bool((unknown > 1).any())
        kinds = np.where(unknown > 1, "combined", np.where(unknown == 1, "score", "known"))
        kinds = np.where(np.logical_or.reduce([term.has("normal") for term in terms]), "normal", kinds)
        drawn = np.logical_or.reduce([term.has("simulated") for term in terms])
        if self._correlated_by_draws:
            drawn |= unknown > 1
        kinds = np.where(drawn, "simulated", kinds)
        kinds = np.where(refused, "margins", np.where(bounded, "bounded", kinds))

        def ends(confidence: float) -> Parts:
            # A single count over known ones keeps its own interval.
            parts = combine([term.take(confidence, whole=not several) for term in terms], covariance)
            return _whole(parts) if whole else parts

        only = refused | bounded
        values, variances = np.where(only, np.nan, found.values), np.where(only, np.inf, found.variances)
        return self._answers(measure, by, labels, values, variances, naive, kinds, ends, whole=whole)

    def _covariances(self, terms: Sequence[_Terms]) -> Floats:
        """The covariance matrix of the terms of each row."""
        rows = len(terms[0].at)
        found = np.zeros((rows, len(terms), len(terms)))
        for at, term in enumerate(terms):
            found[:, at, at] = term.variances
        by_blocks = Covariances(self.counted.tally)
        varies = np.stack([term.varies for term in terms], axis=1)
        for row in np.flatnonzero(varies.sum(axis=1) > 1).tolist():
            used = np.flatnonzero(varies[row]).tolist()
            blocks = {at: terms[at].block(row, self.sizes) for at in used}
            for i, j in combinations(used, 2):
                if self._correlated_by_draws:
                    assert self.simulated is not None
                    spread = np.sqrt(found[row, i, i] * found[row, j, j])
                    both = self.simulated.correlation(blocks[i], blocks[j]) * spread
                else:
                    both = by_blocks.between(blocks[i], blocks[j])
                found[row, i, j] = found[row, j, i] = both
        return found

    @property
    def _correlated_by_draws(self) -> bool:
        """Whether no formula gives the covariances of counts."""
        return isinstance(self.parts, SimulatedParts) or bool(self.counted.tally.mixed.any())

    def _answers(
        self, measure: str, by: tuple[str, ...], labels: Any, values: Floats, variances: Floats, naive: Floats,
        kinds: NDArray[np.str_], ends: Any, *, whole: bool,
    ) -> Answers:  # fmt: skip
        return Answers(
            table=self.table,
            by=by,
            where=self.where,
            measure=measure,
            labels=tuple(tuple(label) for label in labels),
            values=values,
            variances=variances,
            naive=naive,
            kinds=tuple(str(kind) for kind in kinds),
            kind_words=KIND_WORDS,
            ends=ends,
            whole=whole,
            exact=self.exact,
        )

    def _side_of(self, column: str) -> int:
        return next(number for number, side in enumerate(self.sides) if column in side.names)

    def _codes(self, parts: CountParts | SimulatedParts, rows: Integers, column: str) -> Integers:
        number = self._side_of(column)
        side = self.sides[number]
        return np.asarray(side.codes[parts.groups[number][rows], side.names.index(column)])

    def _order(self, parts: CountParts | SimulatedParts) -> Integers:
        every = np.arange(len(parts.keys))
        if not self.by:
            return every
        return np.lexsort([self._codes(parts, every, name) for name in reversed(self.by)])

    def _labels(self, parts: CountParts | SimulatedParts, rows: Integers, by: Sequence[str]) -> list[tuple[str, ...]]:
        columns = []
        for name in by:
            side = self.sides[self._side_of(name)]
            texts = side.texts[side.names.index(name)]
            columns.append([texts[code] for code in self._codes(parts, rows, name)])
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)

    def _without(self, column: str) -> tuple[str, ...]:
        return tuple(name for name in self.by if name != column)

    def _terms(self, rows: Integers) -> _Terms:
        return _Terms(self.parts, rows, [part[rows] for part in self.parts.groups])

    def _total(self, own: _Terms, column: str) -> _Terms:
        """For each row the count over all values of a column, also where its own count cannot occur."""
        number = self._side_of(column)
        side = self.sides[number]
        others = [at for at, name in enumerate(side.names) if name != column]
        _, merged = np.unique(side.codes[:, others], axis=0, return_inverse=True)
        maps = [np.arange(size) for size in self.sizes]
        maps[number] = merged.reshape(-1)
        total = self.parts.merged(*maps)
        groups = [np.append(maps[at], -1)[part] for at, part in enumerate(own.groups)]
        return _Terms(total, _look_up(total, groups), groups, (maps[0], maps[1], maps[2]))

    def _contrast(
        self, contrast: Contrast, fixed: tuple[str, str] | None = None
    ) -> tuple[_Terms, _Terms, list[tuple[str, ...]]]:
        """Counts with the first and with the second value of a column, row by row, and what the rows are called."""
        column, first, second = contrast
        rows = self._order(self.parts)
        for name, value in ((column, first), *(() if fixed is None else (fixed,))):
            rows = rows[self._codes(self.parts, rows, name) == self._code(name, value)]
        one = self._terms(rows)
        return one, self._moved(one, column, second), self._labels(self.parts, rows, self._without(column))

    def _code(self, column: str, value: str) -> int:
        side = self.sides[self._side_of(column)]
        texts = side.texts[side.names.index(column)]
        if value not in texts:
            raise errors.unknown_choice(f"value of '{column}'", value, texts, most=12)
        return texts.index(value)

    def _moved(self, terms: _Terms, column: str, value: str) -> _Terms:
        """The counts with another value of a column in place of their own."""
        number = self._side_of(column)
        side = self.sides[number]
        other = side.codes.copy()
        other[:, side.names.index(column)] = self._code(column, value)
        place = {tuple(code): at for at, code in enumerate(side.codes.tolist())}
        partner = np.array([place.get(tuple(code), -1) for code in other.tolist()], dtype=np.int64)
        groups = list(terms.groups)
        groups[number] = np.append(partner, -1)[groups[number]]
        return replace(terms, at=_look_up(terms.of, groups), groups=groups)


def _look_up(parts: CountParts | SimulatedParts, groups: Sequence[Integers]) -> Integers:
    shape = parts.tally.shape
    place, found = look_up(parts.keys, key_of(groups[0], groups[1], groups[2], shape.held, shape.swapped))
    return np.where(found & np.logical_and.reduce([part >= 0 for part in groups]), place, -1)


def _divided(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.divide(one, other, out=np.full(len(one), np.nan), where=other != 0))


def _slope(one: Parts, other: Parts) -> Floats:
    """By how much a ratio moves with its numerator and with its denominator."""
    y = np.where(other.values > 0, other.values, np.inf)
    return np.stack([1 / y, -one.values / y**2], axis=1)


def _whole(parts: Parts) -> Parts:
    return Parts(parts.values, parts.variances, np.ceil(parts.lower - 1e-6), np.floor(parts.upper + 1e-6))


def _operands(parts: Sequence[Parts], covariance: Floats) -> tuple[Parts, Parts, Floats]:
    """Two counts, or two shares from four counts, and their covariance."""
    if len(parts) == 2:
        return parts[0], parts[1], covariance[:, 0, 1]
    one = ratio(parts[0], parts[1], covariance[:, 0, 1]).within(0.0, 1.0)
    other = ratio(parts[2], parts[3], covariance[:, 2, 3]).within(0.0, 1.0)
    slope = np.stack([_slope(parts[0], parts[1]), _slope(parts[2], parts[3])], axis=1)
    return one, other, np.einsum("ri,rij,rj->r", slope[:, 0], covariance[:, :2, 2:], slope[:, 1])


def _several(given: Sequence[str]) -> tuple[str, ...]:
    """A single name may be written as it is."""
    return (given,) if isinstance(given, str) else tuple(given)


def estimate(
    release: str | Path,
    by: Sequence[str] = (),
    *,
    where: Where | None = None,
    table: str | None = None,
    level: str | None = None,
    places: Sequence[tuple[str, str]] = (),
    regress: str | None = None,
    **measure: Any,
) -> Answers:
    """Estimate from a release folder. ``level`` is a swapped or matched geography to count by, ``places`` are values of
    one, taken together; ``regress`` is a formula."""
    opened = SwappedRelease.open(release)
    conditions = {key: list(_several(values)) for key, values in (where or {}).items()}
    for column, value in places:
        conditions.setdefault(column, []).append(value)
    asked = [*([level] if level else []), *_several(by)]
    if regress is None:
        if only := [name for name in _OF_REGRESSION if name in measure]:
            raise errors.estimate_question(f"--{_OF_REGRESSION[only[0]]}", "goes with --regress")
        return opened.estimate(asked, conditions, table=table, **measure)
    if asked or set(measure) - set(_OF_REGRESSION):
        raise errors.estimate_question(
            "A regression", "takes no --by, --level, --share, --difference, --ratio or --odds-ratio: its columns stand "
            "in the formula"
        )  # fmt: skip
    return opened.regress(regress, conditions, table=table, **measure)


_OF_REGRESSION = {"target": "target", "robust": "robust", "reference": "reference", "categories": "category"}
"""Arguments that only a regression has, and their options."""
