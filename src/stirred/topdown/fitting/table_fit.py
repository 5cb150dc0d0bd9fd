"""Fits integer tables from the root down: near the measurements, with all invariants and constraints kept exactly.

For each parent its children are fitted together, all queries weighted by their precision, nonnegative and adding up to
the parent, then rounded to integers with every constraint in place. Where the total is measured well by itself it comes
first, in a *pass* of its own on the few cells that constraints speak of; the second pass then keeps these totals. That
removes a bias of totals that depends on the size of a unit, at the price of a few percent of error (docs/topdown.md).

The invariant a reader must know: a fit reads measurements and the values of invariants, so it can be repeated. A step
that has no solution with the totals of the first pass is done again without them, and reported; nothing that was
declared is ever given up.

A fit is deterministic post-processing: a level that was kept is the level that would be fitted again. So an interrupted
fit goes on from the last finished level of each table, which is on disk in a file of its own in the work folder: one
line of JSON (what it belongs to, and how the levels so far went), the three arrays of the histograms, and the SHA-256
of all that. A file is used only if its checksum is right and it belongs to this draw, this plan, these earlier releases
and this version of the program. Any other is ignored, and replaced once the next level is done. Where the folder cannot
be written to, nothing is kept, and the fit is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._progress import stage
from stirred._threads import ahead
from stirred.margins.schema import Family, Groups, refines
from stirred.margins.spine import Spine
from stirred.topdown.data.constraints import Kept, Known, constrained_names
from stirred.topdown.data.histograms import Counts, Histograms, marginal
from stirred.topdown.estimating.precision import Design
from stirred.topdown.fitting.level_problem import Allowed, Bounds, LevelProblem, Measured
from stirred.topdown.fitting.one_level import REASONS, fit_level, round_level
from stirred.topdown.fitting.relations import RelatedSteps
from stirred.topdown.fitting.subtrees import Subtrees, Told, measured_families, ranges, whole_design
from stirred.topdown.measuring import Entry, Measurements
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TOTAL, TableSection

FORM = 1
_ARRAYS = (("starts", "<i8"), ("cells", "<i4"), ("counts", "<i8"))
"""The arrays of histograms, as they are stored."""

Reports = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class FinishedLevels:
    """The finished levels of one fit, in a private folder that is made when the first of them is kept."""

    folder: Path
    belongs_to: str
    """What the fit is of: a checksum of draw, plan, earlier releases and version."""

    def keep(self, table: str, histograms: Histograms, reports: Reports) -> None:
        """Replace the kept level of a table by the one below, whose units have these histograms; ``reports`` says how
        each level so far went."""
        arrays = [getattr(histograms, name).astype(kind) for name, kind in _ARRAYS]
        header = {
            "stirred_finished_level": FORM,
            "belongs_to": self.belongs_to,
            "table": table,
            "lengths": [len(array) for array in arrays],
            "reports": list(reports),
        }
        parts = [json.dumps(header).encode() + b"\n", *(array.view(np.uint8).data for array in arrays)]
        digest = hashlib.sha256()
        new = self.folder / f".{self._name(table)}-{os.urandom(8).hex()}"
        with contextlib.suppress(OSError):
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    for part in parts:
                        digest.update(part)
                        file.write(part)
                    file.write(digest.digest())
                new.rename(self.folder / self._name(table))
            finally:
                new.unlink(missing_ok=True)

    def last(self, table: str) -> tuple[Histograms, list[dict[str, Any]]] | None:
        """The kept level of a table and the reports of all levels so far; None if there is none that can be used."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            content = (self.folder / self._name(table)).read_bytes()
            end = len(content) - hashlib.sha256().digest_size
            if hashlib.sha256(memoryview(content)[:end]).digest() != content[end:]:
                return None
            at = content.index(b"\n") + 1
            header = json.loads(content[:at])
            known = (header["stirred_finished_level"], header["belongs_to"], header["table"])
            if known != (FORM, self.belongs_to, table):
                return None
            arrays = []
            for (_, kind), length in zip(_ARRAYS, header["lengths"], strict=True):
                arrays.append(np.frombuffer(content, kind, length, at))
                at += arrays[-1].nbytes
            starts, cells, counts = arrays
            found = Histograms(starts.astype(np.int64), cells.astype(np.int32), counts.astype(np.int64))
            return found, list(header["reports"])
        return None

    @staticmethod
    def _name(table: str) -> str:
        return hashlib.sha256(table.encode()).hexdigest()[:16]


LEAST_SQUARES, BY_LEVEL = "least squares first", "level by level"
TOO_WIDE = "level by level, since an attribute, or recodes together, have too many values for least squares"
"""How a table can be fitted: to the best unbiased values of each subtree, or to each level's own measurements."""
_AGAIN = "no table keeps the totals of the first pass; fitted in one pass"
FALLBACKS = frozenset({_AGAIN, *REASONS.values(), *(f"totals: {words}" for words in REASONS.values())})
"""Why parents may have been done otherwise than usual."""


@dataclass(frozen=True)
class LevelReport:
    """How a level of a table was fitted."""

    table: str
    level: str
    units: int
    passes: int
    most_sweeps: int
    worst_gap: float
    kappa: float
    way: str
    """:data:`LEAST_SQUARES`, :data:`BY_LEVEL` or :data:`TOO_WIDE`."""
    fallbacks: tuple[tuple[str, str], ...]
    """Parents that were not done in the usual way, by name, and why."""

    def published(self) -> dict[str, Any]:
        """The report as a certificate states it; an infinite kappa is null."""
        return {**asdict(self), "kappa": self.kappa if math.isfinite(self.kappa) else None}


def fit_table(
    known: Known,
    measurements: Measurements,
    table: TableSection,
    finished: FinishedLevels | None = None,
    related: RelatedSteps | None = None,
) -> tuple[Histograms, list[LevelReport]]:
    """The fitted histograms of the leaves of a table, and how each level went; ``finished`` has levels of an earlier
    run, and gets those of this one. ``related`` is what a table with relations to others keeps."""
    parents, reports = _gone_on(finished, table.name)
    plan, spine = known.plan, known.spine
    design, way = _designed(plan, spine, table)
    subtrees = None
    if design is not None and len(reports) < len(spine.levels):
        subtrees = Subtrees.of(table, design, known.exact, measurements)
    every, done = sum(entry.units * entry.cells for entry in measurements.entries if entry.table == table.name), 0
    for level, name in enumerate(spine.levels):
        entries = measurements.of(table.name, name)
        if level < len(reports):
            done += sum(entry.units * entry.cells for entry in entries)
            continue
        here = known.kept(table, level) if related is None else related.kept(level)
        step = _Step(plan, spine, table, level, entries, here, subtrees, way)
        pieces, details = [], []
        chunks = list(step.chunks())
        for number, (first, last, values) in enumerate(ahead(step.read(chunks, measurements))):
            stage(f"fitting {table.name} at level '{name}', part {number + 1} of {len(chunks)}", done / every)
            units = step.units_below(first, last)
            done += (units.stop - units.start) * sum(entry.cells for entry in entries)
            above = None if parents is None else parents.of_units(np.arange(first, last))
            fitted, detail = step.fit(above, first, last, values)
            pieces.append(fitted)
            details.append(detail)
        parents = Histograms.joined(pieces)
        reports.append(step.report(details))
        if finished is not None:
            finished.keep(table.name, parents, [asdict(report) for report in reports])
    assert parents is not None
    return parents, reports


def _gone_on(finished: FinishedLevels | None, table: str) -> tuple[Histograms | None, list[LevelReport]]:
    """The level that an earlier run has finished last, and how the levels so far went."""
    kept_level = None if finished is None else finished.last(table)
    if kept_level is None:
        return None, []
    histograms, reports = kept_level
    return histograms, [
        LevelReport(**{**one, "fallbacks": tuple((unit, words) for unit, words in one["fallbacks"])}) for one in reports
    ]


def way_of_fit(plan: TopDownPlan, spine: Spine, table: TableSection) -> str:
    """How a table will be fitted: :data:`LEAST_SQUARES`, :data:`BY_LEVEL` or :data:`TOO_WIDE`."""
    return _designed(plan, spine, table)[1]


def _designed(plan: TopDownPlan, spine: Spine, table: TableSection) -> tuple[Design | None, str]:
    """The design of least squares, where the plan asks for them and they can be had; and the way of the fit."""
    if plan.fit == BY_LEVEL:
        return None, BY_LEVEL
    try:
        return whole_design(plan, spine, table), LEAST_SQUARES
    except errors.StirredError as refusal:
        if refusal.kind != "estimate-too-wide":
            raise
        return None, TOO_WIDE


def two_passes(plan: TopDownPlan, table: TableSection, level: str) -> bool:
    """Whether the total of a level is fitted first: if its own variance is below that of the other queries together,
    unless the plan says otherwise."""
    known = {query.name: table.rho_of(level, query) for query in table.queries}
    if plan.passes == "one" or not known.get(TOTAL) or len([rho for rho in known.values() if rho]) < 2:
        return False
    if plan.passes == "two":
        return True
    others = sum(
        table.rho_of(level, query) / table.schema_of.number_of_groups(query.by)
        for query in table.queries
        if query.name != TOTAL and not table.schema_of.overlapping(query.by)  # such groups have no total
    )
    return known[TOTAL] > others


@dataclass(frozen=True, eq=False)
class _Detail:
    sweeps: int
    gap: float
    kappa: float
    fallbacks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class _Step:
    """The fit of one level of one table: what its units are to be near to and must keep, and how that is solved."""

    plan: TopDownPlan
    spine: Spine
    table: TableSection
    level: int
    entries: list[Entry]
    kept: Kept
    subtrees: Subtrees | None
    way: str

    @property
    def name(self) -> str:
        return self.spine.levels[self.level]

    @cached_property
    def twice(self) -> bool:
        # An earlier release has the totals already.
        return not self.kept.agreed and two_passes(self.plan, self.table, self.name)

    @cached_property
    def constrained(self) -> tuple[str, ...]:
        return constrained_names(self.plan, self.table)

    @cached_property
    def queries(self) -> list[tuple[Family, ...]]:
        """The groups of each entry's query."""
        return [self.table.schema_of.families(entry.by) for entry in self.entries]

    @cached_property
    def chain(self) -> tuple[Groups, ...]:
        """What rounding keeps within one: totals, and the groups that constraints speak of."""
        schema = self.table.schema_of
        return (schema.groups(()), *([schema.groups(self.constrained)] if self.constrained else []))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of parents (of units at the root) whose children have a bounded number of measured values."""
        ones = np.ones(self.spine.units(0), dtype=np.int64)
        sizes = np.diff(self.spine.first_child[self.level - 1]) if self.level else ones
        return ranges(sizes, sum(entry.cells for entry in self.entries))

    @property
    def least_squares(self) -> bool:
        """Whether units are fitted to what their subtrees tell; a leaf has its own measurements only."""
        return self.subtrees is not None and self.level + 1 < len(self.spine.levels)

    def read(
        self, chunks: list[tuple[int, int]], measurements: Measurements
    ) -> Iterator[tuple[int, int, list[Counts]]]:
        """Each range of parents with the measured values of their children, where these are needed."""
        for first, last in chunks:
            units = self.units_below(first, last)
            entries = [] if self.least_squares else self.entries
            yield first, last, [measurements.values(entry, units) for entry in entries]

    def units_below(self, first: int, last: int) -> slice:
        if self.level == 0:
            return slice(first, last)
        edges = self.spine.first_child[self.level - 1]
        return slice(int(edges[first]), int(edges[last]))

    def fit(self, above: Histograms | None, first: int, last: int, values: list[Counts]) -> tuple[Histograms, _Detail]:
        """The children of some parents."""
        units = self.units_below(first, last)
        if above is None:
            edges = np.arange(last - first + 1, dtype=np.int64)
        else:
            edges = self.spine.first_child[self.level - 1][first : last + 1] - units.start
        schema = self.table.schema_of
        told, few = self._told(units, values)
        here = self.kept.of_units(units)
        whole = LevelProblem(above, edges, schema.cells, tuple(told.values()), here.allowed, here.bounds)
        if not self.twice:
            return self._solve(whole, first, ())
        totals, early = self._totals(whole, few, first)
        fixed = Bounds(schema.groups(()), totals[:, None], totals[:, None])
        rest = tuple(one for names, one in told.items() if names)
        return self._solve(replace(whole, measured=rest, bounds=(fixed, *whole.bounds)), first, early, whole)

    def _told(self, units: slice, values: list[Counts]) -> tuple[Told, Told]:
        """What the tables of some units are to be near to, and what the first pass reads of it: queries about
        attributes that constraints speak of."""
        if self.subtrees is not None and self.least_squares:
            return self.subtrees.measured(self.level, units, self.constrained)
        schema, known = self.table.schema_of, set(self.constrained)
        told: Told = {}
        few: Told = {}
        for families, entry, given in zip(self.queries, self.entries, values, strict=True):
            here = measured_families(entry.by, families, 1 / float(Fraction(entry.variance)), given)
            told |= here
            if {base for name in entry.by for base in schema.bases(name)} <= known:
                few |= here
        return told, few

    def _solve(
        self,
        problem: LevelProblem,
        first: int,
        early: tuple[tuple[str, str], ...],
        without_totals: LevelProblem | None = None,
    ) -> tuple[Histograms, _Detail]:
        """Fit and round; parents without a solution are done again without the totals of the first pass."""
        fitted = fit_level(problem)
        children, report = round_level(problem, fitted, self.chain)
        fallbacks = [*early, *((self._named(first + parent), reason) for parent, reason in report.fallbacks)]
        stuck = report.infeasible
        if len(stuck):
            again = without_totals.of_parents(stuck) if without_totals is not None else None
            if again is None:
                raise errors.topdown_infeasible(
                    self.name, len(stuck), self._few(first, stuck), sorted({reason for _, reason in report.fallbacks})
                )
            mended, second = round_level(again, fit_level(again), self.chain)
            if len(second.infeasible):
                raise errors.topdown_infeasible(
                    self.name,
                    len(second.infeasible),
                    self._few(first, stuck[second.infeasible]),
                    ["no integers keep the constraints"],
                )
            children = children.with_units(problem.children_of(stuck), mended)
            fallbacks += [(self._named(first + int(parent)), _AGAIN) for parent in stuck]
        gaps = fitted.gap[np.isfinite(fitted.gap)]
        worst = float(gaps.max(initial=0.0))
        return children, _Detail(int(fitted.sweeps.max(initial=0)), worst, fitted.kappa, tuple(fallbacks))

    def _totals(self, whole: LevelProblem, told: Told, first: int) -> tuple[Counts, tuple[tuple[str, str], ...]]:
        """The first pass: totals of the children, from the cells that constraints speak of alone."""
        schema, names = self.table.schema_of, self.constrained
        groups, number = schema.groups(names), schema.number_of_groups(names)
        sample = np.unique(groups, return_index=True)[1]  # one cell of each group

        def few(one: Groups) -> Groups:
            return one[sample]

        measured = tuple(Measured(few(one.groups), one.weight, one.values) for one in told.values())
        bounds = tuple(Bounds(few(one.groups), one.lower, one.upper) for one in whole.bounds)
        allowed = tuple(Allowed(few(one.groups), one.allowed) for one in whole.allowed if refines(groups, one.groups))
        parents = None if whole.parents is None else Histograms.from_dense(marginal(whole.parents, groups, number))
        problem = LevelProblem(parents, whole.first_child, number, measured, allowed, bounds)
        chain = (np.zeros(number, dtype=np.int32),)
        children, report = round_level(problem, fit_level(problem), chain)
        if len(report.infeasible):
            reasons = sorted({reason for _, reason in report.fallbacks})
            raise errors.topdown_infeasible(
                self.name, len(report.infeasible), self._few(first, report.infeasible), reasons
            )
        fallbacks = tuple((self._named(first + parent), f"totals: {reason}") for parent, reason in report.fallbacks)
        return children.totals(), fallbacks

    def _named(self, parent: int) -> str:
        return str(self.spine.names[max(0, self.level - 1)][parent].as_py())

    def _few(self, first: int, parents: NDArray[np.int64]) -> list[str]:
        return [self._named(first + int(parent)) for parent in parents[: errors.FEW]]

    def report(self, details: list[_Detail]) -> LevelReport:
        return LevelReport(
            self.table.name,
            self.name,
            self.spine.units(self.level),
            2 if self.twice else 1,
            max(detail.sweeps for detail in details),
            max(detail.gap for detail in details),
            details[0].kappa,
            self.way,
            tuple(fallback for detail in details for fallback in detail.fallbacks),
        )


def children_of(
    plan: TopDownPlan,
    spine: Spine,
    table: TableSection,
    entries: list[Entry],
    here: Kept,
    above: Histograms | None,
    values: list[Counts],
) -> Histograms:
    """Fit all units of the last level of a spine to their measured values, given the tables above them, or None if
    there are none; for forecasts of what a fit does."""
    level = len(spine.levels) - 1
    step = _Step(plan, spine, table, level, entries, here, None, BY_LEVEL)
    last = spine.units(max(0, level - 1))
    return step.fit(above, 0, last, values)[0]
