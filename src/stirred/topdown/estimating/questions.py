"""Unbiased estimates from the noisy measurements of a TopDown release, and their regression on columns of one's own.

The fitted tables of a release are integer, nonnegative and consistent, and therefore biased. Its measurements are not:
each is a true count plus noise of known law. From them alone, with the public plan and list of geounits, this module
gives the best linear unbiased estimate of any count in any place, its variance and an interval; for noise
parameters below 1 see :mod:`stirred.estimates.error_laws`. Estimates are consistent as well: those of children add up
to their parent's, those of a margin to its total.

Invariants are used where their values are given. A count of cells that cannot occur in a place, by the zeros of the
plan or by what invariants and constraints say of the place, is 0, with an interval from 0 to 0; such counts do not add
up to their parent's estimate. Not used otherwise, since they are not linear equations of margins: that counts are not
negative, structural zeros, and constraints by other tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred import errors
from stirred._bounded_reading import inside, read_json
from stirred.estimates import Answers, Estimates, MadeOf, Source, Term
from stirred.estimates.error_laws import WORTHWHILE
from stirred.estimates.table_fits import TableFit, fit_table
from stirred.margins.areas import fewest_units
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Shapes, Spine
from stirred.releases.folder.documents import CERTIFICATE
from stirred.spec.exact import quoted
from stirred.tables.reading.frames import as_polars
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.histograms import Counts
from stirred.topdown.estimating.places import (
    Chosen,
    PlaceList,
    Union,
    estimate_listed,
    listed_areas,
    place_list,
    tabulated_areas,
)
from stirred.topdown.estimating.precision import Answer, Design
from stirred.topdown.estimating.ratios import CHEAP, MOST_TERMS, Comparison, Contrast, ask, noise_terms
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    INDEX,
    INVARIANTS,
    MEASUREMENTS,
    BatchedMeasurements,
    Measurements,
    entries,
    read_geography,
    read_invariants,
)
from stirred.topdown.plan.fields import TopDownPlan

MOST_PLACES = 4000
"""Units whose covariance matrix is worked out for one fit."""


def regress(asked: Comparison, formula: str, predictors: Any, *, scatter: bool = True) -> TableFit:
    """Fit one row of every place to columns of ``predictors``, as ``sex=f ~ income + rural`` says."""
    level = asked.sites.level
    if level is None or asked.sites.unions:
        raise errors.estimate_question("A regression", "is of the units of a level: give --level, and no other places")
    outcome, names = _formula(formula)
    row = _row(asked, outcome)
    column = str(asked.sites.column)
    frame = _read(predictors, column, names)
    place = {name: at for at, name in enumerate(asked.sites.names)}
    strange = [name for name in frame[column] if name not in place]
    if strange:
        raise errors.unknown_geounit(column, str(strange[0]))
    units = np.array([place[name] for name in frame[column]], dtype=np.int64)
    if len(np.unique(units)) < len(units):
        raise errors.estimate_question("The file of predictors", f"must have one row for each '{column}'")
    answers = asked.answer()
    told = ~np.isnan(answers.values[units * len(asked.rows) + row])
    used = units[told]
    if len(used) > MOST_PLACES:
        raise errors.estimate_question("A regression", f"takes at most {MOST_PLACES:,} places, not {len(used):,}")
    columns = {name: frame[name].to_numpy()[told] for name in names}
    values = answers.values[used * len(asked.rows) + row]
    fitted = fit_table(
        values, covariance_of(asked, row, used), columns, scatter=scatter,
        outcome=f"{outcome}, {asked.measure.words}" if asked.rows[0] else asked.measure.words,
        table=asked.sites.table,
    )  # fmt: skip
    left = len(place) - len(units), int((~told).sum())
    said = [
        f"{number:,} units of '{column}' are left out: {why}."
        for number, why in zip(left, ("the file does not have them", "they have no estimate"), strict=True)
        if number
    ]
    return replace(
        fitted, where=asked.sites.where, remarks=(*fitted.remarks, *said), exact=answers.exact, unused=answers.unused
    )


def covariance_of(asked: Comparison, row: int, units: Index) -> Array:
    """The covariance matrix of one row's measure in some units of a level; the delta method, exact for counts and their
    differences."""
    assert asked.sites.level is not None
    every = units * len(asked.rows) + row
    slopes = np.array(asked.measure.slopes(asked.values[every]))
    for at, same in asked.totals_of_one.items():  # such a total is the count before it
        slopes[same[every], at - 1] += slopes[same[every], at]
        slopes[same[every], at] = 0.0
    varies = asked.variances[every] > 0
    groups = [(margin, some[[row]]) for margin, some in map(asked.groups, asked.measure.counts)]
    total = np.zeros((len(units), len(units)))
    for i, one in enumerate(groups):
        for j, other in enumerate(groups[: i + 1]):
            found = asked.design.covariances_among(asked.sites.level, units, one, other)
            found = found * np.outer(slopes[:, i] * varies[:, i], slopes[:, j] * varies[:, j])
            total += found if i == j else found + found.T
    return total


def _formula(text: str) -> tuple[str, tuple[str, ...]]:
    left, sign, right = text.partition("~")
    names = tuple(part.strip() for part in right.split("+"))
    if not (sign and left.strip() and all(names)) or len(set(names)) < len(names):
        raise errors.estimate_question(
            f"The regression {text!r}",
            "must be written as OUTCOME ~ COLUMN + COLUMN, each column once: the outcome as column=value, or the word "
            "estimate where a place has one number",
        )
    return left.strip(), names


def _row(asked: Comparison, outcome: str) -> int:
    """The number of the row of a place that the outcome of a regression names."""
    rows = asked.rows
    if len(rows) == 1 and outcome == "estimate":
        return 0
    pairs = (one.partition("=") for one in outcome.split(","))
    wanted = {name.strip(): value.strip() for name, _, value in pairs}
    for at, row in enumerate(rows):
        if row == wanted and row:
            return at
    example = ",".join(f"{name}={value}" for name, value in rows[0].items()) or "estimate"
    raise errors.estimate_question(
        f"The outcome '{outcome}'", f"must name one number of a place, for example {example}"
    )


def _read(given: Any, column: str, names: tuple[str, ...]) -> pl.DataFrame:
    """The predictors, with places as text and numbers as numbers."""
    if isinstance(given, str | Path):
        path = Path(given)
        try:
            frame = (
                pl.read_parquet(path)
                if path.suffix == ".parquet"
                else pl.read_csv(path, schema_overrides={column: pl.String}, infer_schema_length=None)
            )
        except (OSError, pl.exceptions.PolarsError):
            raise errors.estimate_question(
                f"The file of predictors {path}", "must be a readable CSV or Parquet file"
            ) from None
    else:
        frame = pl.DataFrame(given) if isinstance(given, Mapping | pl.DataFrame) else as_polars("predictors", given)
    missing = [name for name in (column, *names) if name not in frame.columns]
    if missing:
        raise errors.unknown_choice("column of the predictors", missing[0], frame.columns)
    text = [name for name in names if not (frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean)]
    if text:
        raise errors.estimate_question(f"The predictor '{text[0]}'", "must hold numbers")
    chosen = frame.select(pl.col(column).cast(pl.String), *(pl.col(name).cast(pl.Float64) for name in names))
    if chosen.null_count().sum_horizontal().item() or not all(chosen[name].is_finite().all() for name in names):
        raise errors.estimate_question("The predictors", "must be finite numbers, and none missing")
    return chosen


KEPT = 1 << 24
"""Numbers of a level that are kept although nobody has asked for the level yet."""

Where = Mapping[str, Sequence[str]]
Place = tuple[str, str]
"""A level, and the name of one of its units."""


@dataclass(eq=False, repr=False)
class MeasuredRelease:
    """The measurements of a release, opened for many questions."""

    plan: TopDownPlan
    spine: Spine
    measurements: BatchedMeasurements
    exact: tuple[Counts | None, ...]
    """The values of the plan's invariants, in their order; None where they are not known."""
    not_known: tuple[str, ...] = ()
    """What else could be known of the tables and is not, in words."""
    _last: tuple[Any, Answer] | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<MeasuredRelease: rho {quoted(self.plan.rho)}, levels {', '.join(self.spine.levels)}>"

    @classmethod
    def open(
        cls,
        folder: str | Path,
        plan: TopDownPlan | None = None,
        spine: Spine | None = None,
        exact: Sequence[Counts | None] | None = None,
    ) -> MeasuredRelease:
        """Open a release folder, or the folder of its measurements.

        Plan, spine and the values of invariants are read there (``certificate.json``, ``geography.parquet``,
        ``invariants/``) unless they are given. ``exact`` has for each invariant of the plan its published values, a row
        for each unit and a column for each group, or None; with an empty one none is used.
        """
        path = Path(folder)
        path = path / MEASUREMENTS if (path / MEASUREMENTS / INDEX).is_file() else path
        try:
            measurements = Measurements(path)
        except (OSError, ValueError, TypeError, KeyError):
            raise errors.not_measurements(path, f"there is no readable {INDEX}") from None
        plan = plan or _plan_of(path)
        if spine is None:
            if not (path / GEOGRAPHY_FILE).is_file():
                raise errors.not_measurements(path, f"there is no {GEOGRAPHY_FILE}, and no spine is given")
            spine = read_geography(inside(path, GEOGRAPHY_FILE), plan)
        _require_fit(plan, spine, measurements)
        given = tuple(exact or (None,) * len(plan.invariants))
        if exact is None and (path.parent / INVARIANTS).is_dir():
            try:
                given = read_invariants(path.parent / INVARIANTS, plan, spine)
            except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException):
                raise errors.not_measurements(path, f"the values in {INVARIANTS}/ cannot be read") from None
        _require_values(plan, spine, given)
        return cls(plan, spine, measurements, given)

    @cached_property
    def shapes(self) -> Shapes:
        """Which units of the geography have the same shape, and so the same variances."""
        return Shapes.of(self.spine)

    @cached_property
    def _known(self) -> Known:
        return Known.as_far_as_told(self.plan, self.spine, self.exact)

    # -- questions -------------------------------------------------------------------------------------------

    def estimate(
        self, table: str, by: Sequence[str] = (), where: Where | None = None, *, level: str,
        units: Sequence[str] | None = None,
    ) -> Estimates:  # fmt: skip
        """Estimate counts by some attributes or recodes, of the records with the values of ``where``, in all or some
        units of a level."""
        by, where, at = _names(by), _conditions(where), self._level(level)
        answer = self._answer(table, by, where, at)
        chosen = np.arange(self.spine.units(at)) if units is None else self._units(at, units)
        variances = answer.design.variances(at)[chosen]
        names = self.spine.names[at].take(chosen).to_pylist()
        empty = self._impossible(table, by, where, at)[chosen]
        kinds = 2 * self.shapes.everywhere[at].of_unit[chosen] + empty.any(axis=1)
        return self._estimates(
            table, by, where, level, names, answer.values(at)[chosen], variances,
            answer.design.plain_sums(at, variances), empty, lambda place: {at: chosen[[place]]}, kinds,
        )  # fmt: skip

    def union(
        self, table: str, by: Sequence[str] = (), where: Where | None = None, *, places: Sequence[Place],
        name: str = "union",
    ) -> Estimates:  # fmt: skip
        """Estimate counts in the union of some units of any levels; a leaf that is named twice counts once."""
        units = self._whole_units(places)
        found = self._in_union(table, _names(by), _conditions(where), units, name)
        return replace(found, made_of=self._made_of(units))

    def listed(self, places: Any, column: str | None = None) -> PlaceList:
        """The places of a file or frame, for :meth:`in_places` and :meth:`compare`; see
        :func:`stirred.topdown.estimating.places.place_list`."""
        named = [name for one in self.plan.tables for name in one.schema_of.names]
        return place_list(self.spine, places, column, taken=named)

    def in_places(
        self, table: str, by: Sequence[str] = (), where: Where | None = None, *, listed: PlaceList
    ) -> Estimates:
        """Estimate counts by some attributes or recodes in every place of a list."""
        return estimate_listed(self, table, _names(by), _conditions(where), listed)

    def _in_union(self, table: str, by: tuple[str, ...], where: Chosen, units: Union, name: str) -> Estimates:
        answer = self._answer(table, by, where, max(units))
        variances = answer.design.variances_of_sum(units)
        values = sum(answer.values(level)[some].sum(axis=0, keepdims=True) for level, some in units.items())
        plain = np.zeros_like(variances), np.zeros_like(variances)
        if len(units) == 1:
            ((level, some),) = units.items()
            plain = answer.design.plain_sums(level, variances, len(some))
        empty = np.logical_and.reduce(
            [
                self._impossible(table, by, where, level)[some].all(axis=0, keepdims=True)
                for level, some in units.items()
            ]
        )
        return self._estimates(table, by, where, None, [name], values, variances, plain, empty, lambda place: units)

    def _made_of(self, units: Union) -> tuple[MadeOf, ...]:
        """Of how few units a union can be made."""
        fewest = fewest_units(self.spine, self._covered(units))
        return (MadeOf(len(fewest), fewest.words(self.spine.levels)),)

    def compare(
        self, table: str, by: Sequence[str] = (), where: Where | None = None, *, level: str | None = None,
        places: Sequence[Place] = (), against: Sequence[Place] = (), share: str | None = None,
        difference: Contrast | None = None, ratio: Contrast | None = None,
        odds_ratio: tuple[Contrast, Contrast] | None = None, listed: PlaceList | None = None,
    ) -> Answers:  # fmt: skip
        """Estimate shares, differences, ratios or odds ratios of counts, in all units of a level, in every place of a
        list, in the union of some places, or of one union against another.

        ``share`` is an attribute or recode, or the level itself: the share of each unit in all of them. A comparison is
        a triple of an attribute, recode or level and two of its values, or the word ``"places"``: the union of
        ``places`` against that of ``against``. With a list and no ``places`` it is each of its places against them. The
        places of a list may be named like units of a level: by the name of their column.
        """
        question = ask(
            self, table, _names(by), _conditions(where), level=level, places=places, against=against, share=share,
            difference=difference, ratio=ratio, odds_ratio=odds_ratio, listed=listed,
        )  # fmt: skip
        return question.answer()

    def regress(
        self, table: str, formula: str, predictors: Any, *, level: str, by: Sequence[str] = (),
        where: Where | None = None, scatter: bool = True, **measure: Any,
    ) -> TableFit:  # fmt: skip
        """Fit a number of every unit of a level to columns that the reader brings, by weighted least squares with the
        covariances of the noise.

        ``formula`` is like ``"sex=f ~ income + rural"``; ``predictors`` a frame, or a CSV or Parquet file, with a
        column named like the level. ``measure`` asks for shares or comparisons of groups; see :meth:`compare`. Without
        ``scatter``, noise alone is taken to explain the residuals.
        """
        question = ask(self, table, _names(by), _conditions(where), level=level, **measure)
        return regress(question, formula, predictors, scatter=scatter)

    def explain(self, table: str, where: Where | None = None, *, places: Sequence[Place]) -> list[Source]:
        """The measurements that the estimate of one count rests on, the largest shares of its variance first."""
        return self._sources(table, _conditions(where), self._whole_units(places))

    def _sources(self, table: str, where: Chosen, units: Union) -> list[Source]:
        design = self._design(table, (), where)
        variance = float(design.variances_of_sum(units)[0, 0])
        if np.isinf(variance):
            raise errors.not_estimable(table, "this count in this place")
        inside, touched = self._relations(self._covered(units))
        found: dict[tuple[str, Any, str], list[tuple[int, float, float]]] = {}
        for one, some, weights in design.weights(units):
            at = self.spine.levels.index(one.entry.level)
            whole, part = inside[at][some], touched[at][some]
            relations = (("inside", whole), ("around", part & ~whole), ("beside", ~part))
            for relation, mask in relations:
                rows = weights[mask]
                key = (one.entry.level, relation, one.entry.query)
                found.setdefault(key, []).append(
                    (len(rows), float(np.abs(rows).max(initial=0)), float((rows**2).sum()) * one.variance)
                )
        sources = [
            Source(level, relation, query, sum(n for n, _, _ in seen), max(w for _, w, _ in seen),
                   sum(v for _, _, v in seen) / variance if variance else 0.0)
            for (level, relation, query), seen in found.items()
        ]  # fmt: skip
        return sorted((one for one in sources if one.weight > 0), key=lambda one: -one.share)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _design(self, table: str, by: tuple[str, ...], where: Chosen) -> Design:
        if self.plan.table(table).rho is None:
            known = [one.name for one in self.plan.released]
            raise errors.unknown_choice("measured table", table, known)
        used = [n for n, one in enumerate(self.plan.invariants) if one.table == table and self.exact[n] is not None]
        return Design.of(self.plan, self.spine, table, by, where, used, self.shapes)

    def _impossible(self, table: str, by: tuple[str, ...], where: Chosen, level: int) -> Any:
        """Which asked counts are zero in which units of a level, whatever was measured."""
        section = self.plan.table(table)
        schema = section.schema_of
        found = np.ones((self.spine.units(level), schema.number_of_groups(by)), dtype=np.bool_)
        for family in schema.families(by):
            asked = np.where(schema.where(where), family.groups, -1).astype(np.int32)
            number, known = len(family.columns), None
            for at in range(level + 1):  # a count that is zero in a unit is zero in all its parts
                here = self._known.impossible_groups(section, at, asked, number)
                known = here if known is None else here | known[self.spine.parents(at)]
            found[:, family.columns] = known
        return found

    def _weighted_sums(
        self, table: str, by: tuple[str, ...], where: Chosen, variances: Any, plain: Any,
        units: Callable[[int], Union], places: Index,
    ) -> tuple[tuple[tuple[Term, ...], ...], Any]:  # fmt: skip
        """The noise of estimates that combine different measurements, where that takes little work and intervals gain
        by it: the sums, and for each of some places and each group the number of its own or -1."""
        found: dict[tuple[Term, ...], int] = {}
        numbers = np.full(variances.shape, -1, dtype=np.int64)
        wanted = (variances > 0) & (variances <= WORTHWHILE**2) & (plain == 0)
        values = sum(one.units * one.cells for one in self.measurements.entries if one.table == table)
        if wanted.sum() * values > CHEAP or self.measurements.repeated:
            return (), numbers
        for group, label in enumerate(self.plan.table(table).schema_of.labels(by)):
            if wanted[:, group].any():
                design = self._design(
                    table, (), {**where, **{name: (value,) for name, value in zip(by, label, strict=True)}}
                )
                for place in np.flatnonzero(wanted[:, group]).tolist():
                    weights = design.weights(units(int(places[place])))
                    terms = noise_terms((one.parameter, found) for one, _, found in weights)
                    if len(terms) <= MOST_TERMS:
                        numbers[place, group] = found.setdefault(terms, len(found))
        return tuple(found), numbers

    def _answer(self, table: str, by: tuple[str, ...], where: Chosen, level: int) -> Answer:
        """The last answer is kept: other levels and places of the same question need no reading, unless the finest
        levels have too many numbers to be kept for them."""
        key = (table, by, tuple(where.items()))
        if self._last is None or self._last[0] != key or self._last[1].deepest < level:
            design = self._design(table, by, where)
            deepest = max(at for at in range(len(self.spine.levels)) if at <= level or design.numbers(at) <= KEPT)
            self._last = None  # two answers at a time may be too many
            self._last = key, Answer.of(design, self.measurements, self.exact, deepest)
        return self._last[1]

    def _estimates(
        self, table: str, by: tuple[str, ...], where: Chosen, level: str | None, places: Sequence[str],
        values: Any, variances: Any, plain: Any, empty: Any, units: Callable[[int], Union], kinds: Index | None = None,
    ) -> Estimates:  # fmt: skip
        """From what measurements tell of each place and group. What is ``empty`` is 0 for certain; ``units`` says what
        a place consists of, and places of one of the ``kinds`` have noise of the same law."""
        values = np.where(empty, 0.0, np.where(np.isinf(variances), np.nan, values))
        variances, terms, zeros = np.where(empty, 0.0, variances), np.where(empty, 0.0, plain[1]), bool(empty.any())
        every = np.arange(len(places)) if kinds is None else kinds
        _, first, alike = np.unique(every, return_index=True, return_inverse=True)
        sums, numbers = self._weighted_sums(table, by, where, variances[first], terms[first], units, first)
        if np.isinf(variances).all():
            raise errors.not_estimable(table, "this margin in these places")
        section = self.plan.table(table)
        own = [(one, known) for one, known in zip(self.plan.invariants, self.exact, strict=True) if one.table == table]
        unused = [str(one.margin) for one, known in own if known is None]
        others = ", but for counts of nothing else" if zeros else ""
        unused += [f"combinations of values that cannot occur{others}"] if section.zeros else []
        bound = any(one.table == table for one in self.plan.constraints)
        unused += [f"constraints by other tables{', but for counts that they rule out' if zeros else ''}"] * bound
        related = any(table in (one.table, one.counted) for one in self.plan.relations)
        unused += ["relations to other tables"] * related
        unused += self.not_known
        return Estimates(
            table=table,
            by=by,
            where=where,
            level=level,
            places=tuple(places),
            labels=tuple(section.schema_of.labels(by)),
            values=values,
            variances=variances,
            parameter=plain[0],
            terms=terms,
            sums=sums,
            sum_of=np.where(empty, -1, numbers[alike.ravel()]) if sums else None,
            exact=(
                *(str(one.margin) for one, known in own if known is not None),
                *(["counts that the plan and the published counts rule out are 0"] if zeros else []),
            ),
            unused=tuple(unused),
        )

    def _level(self, name: str) -> int:
        if name not in self.spine.levels:
            raise errors.unknown_choice("level", name, self.spine.levels)
        return self.spine.levels.index(name)

    def _units(self, level: int, wanted: Sequence[str]) -> Index:
        if not len(wanted):
            raise errors.estimate_question("A question", "must name at least one geounit")
        place = {name: number for number, name in enumerate(self.spine.names[level].to_pylist())}
        strange = [name for name in wanted if name not in place]
        if strange:
            raise errors.unknown_geounit(self.spine.levels[level], strange[0])
        return np.array([place[name] for name in wanted], dtype=np.int64)

    def _leaves(self, places: Sequence[Place], listed: PlaceList | None = None) -> Any:
        """Which leaves lie in the union; places of a list may be among them."""
        if not len(places):
            raise errors.estimate_question("A union", "must name at least one geounit")
        covered = np.zeros(self.spine.leaves, dtype=np.bool_)
        for level in dict.fromkeys(level for level, _ in places):
            if listed is not None and level == listed.column:
                for name in (name for of, name in places if of == level):
                    covered[listed.leaves_of(name)] = True
                continue
            at = self._level(level)
            covered |= self._covered({at: self._units(at, [name for of, name in places if of == level])})
        return covered

    def _covered(self, units: Union) -> Any:
        """Which leaves lie in a union of units."""
        change = np.zeros(self.spine.leaves + 1, dtype=np.int64)
        for level, some in units.items():
            bounds = self.spine.first_leaf(level)
            np.add.at(change, bounds[some], 1)
            np.add.at(change, bounds[some + 1], -1)
        return np.cumsum(change[:-1]) > 0

    def _relations(self, covered: Any) -> tuple[list[Any], list[Any]]:
        """By level the units that lie in the union, and those that have something in common with it."""
        starts = [self.spine.first_leaf(level)[:-1] for level in range(len(self.spine.levels))]
        inside = [np.logical_and.reduceat(covered, start) for start in starts]
        return inside, [np.logical_or.reduceat(covered, start) for start in starts]

    def _whole_units(self, places: Sequence[Place], listed: PlaceList | None = None) -> dict[int, Index]:
        """A union as whole units that are added, by level: where all children are in it, their parent takes their
        place."""
        inside, _ = self._relations(self._leaves(places, listed))
        found = {}
        for level, here in enumerate(inside):
            if level:
                here = here & ~inside[level - 1][self.spine.parents(level)]
            if here.any():
                found[level] = np.flatnonzero(here)
        return found


def estimate(
    release: str | Path | MeasuredRelease,
    by: Sequence[str] = (),
    *,
    where: Where | None = None,
    table: str | None = None,
    level: str | None = None,
    places: Sequence[Place] = (),
    tabulated: str | None = None,
    blocks: str | Path | None = None,
    sources: bool = False,
    regress: str | None = None,
    predictors: Any = None,
    no_scatter: bool = False,
    nonnegative: bool = False,
    place_file: Any = None,
    place_column: str | None = None,
    **measure: Any,
) -> Estimates | Answers:
    """Estimate counts from the measurements of a release, in every unit of a level, in every place of a file or in the
    union of some places.

    ``tabulated`` asks for all areas of a kind as published, such as ``"county"``, and ``blocks`` for areas in a file
    that lists blocks; both by the published codes of blocks (:mod:`stirred.topdown.estimating.places`).

    ``measure`` asks for shares or comparisons in their place; see :meth:`MeasuredRelease.compare`. ``regress`` fits
    them to columns of ``predictors``; see :meth:`MeasuredRelease.regress`. ``sources`` also gives, for a union, the
    measurements that the total of the chosen records rests on. With ``nonnegative`` no interval of a count reaches
    below 0, which loses no coverage. ``place_file`` is a CSV or Parquet file, or a frame, with the codes of units and
    the names of places in its column ``place_column``; see :meth:`MeasuredRelease.listed`. Its places may also be named
    in ``places``, by that column.
    """
    if place_file is None and place_column is not None:
        raise errors.estimate_question("The column of places (--place-column)", "is one of a file: give --places too")
    if place_file is not None and level is not None:
        raise errors.estimate_question("A question", "must have either a level or a file of places (--level, --places)")
    if nonnegative and (measure or regress):
        raise errors.estimate_question("Nonnegative intervals (--nonnegative)", "are of counts only")
    if regress is not None and predictors is None:
        raise errors.estimate_question("--regress", "needs --predictors FILE, the columns to fit to, by unit")
    if regress is None and (predictors is not None or no_scatter):
        raise errors.estimate_question("--predictors and --no-scatter", "need --regress, what is fitted to them")
    if regress is not None and level is None:
        raise errors.estimate_question("A regression", "is of the units of a level: give --level, and no other places")
    lists = sum(1 for one in (place_file, tabulated, blocks) if one is not None)
    if lists > 1 or (lists and level is not None) or (not measure and not lists and (level is None) == (not places)):
        raise errors.estimate_question(
            "A question",
            "must have either a level or places (--level or --place; or --places, --tabulated or --blocks)",
        )
    if sources and (measure or regress or not places):
        raise errors.estimate_question(
            "The sources of an estimate (--sources)", "can be shown for counts in places only (--place)"
        )
    opened = release if isinstance(release, MeasuredRelease) else MeasuredRelease.open(release)
    name = table or opened.plan.released[0].name
    listed = None if place_file is None else opened.listed(place_file, place_column)
    if tabulated is not None or blocks is not None:
        spine = opened.spine
        listed = tabulated_areas(spine, tabulated) if tabulated else listed_areas(spine, Path(str(blocks)))
    if regress is not None:
        return opened.regress(
            name,
            regress,
            predictors,
            level=str(level),
            by=by,
            where=where,
            scatter=not no_scatter,
            places=places,
            **measure,
        )
    if measure:
        return opened.compare(name, by, where, level=level, places=places, listed=listed, **measure)
    if level is not None:
        return replace(opened.estimate(name, by, where, level=level), nonnegative=nonnegative)
    if listed is not None and not places:
        return replace(opened.in_places(name, by, where, listed=listed), nonnegative=nonnegative)
    units, words = opened._whole_units(places, listed), " + ".join(unit for _, unit in places)
    found = opened._in_union(name, _names(by), _conditions(where), units, words)
    found = replace(found, nonnegative=nonnegative, made_of=opened._made_of(units))
    return replace(found, sources=tuple(opened._sources(name, _conditions(where), units))) if sources else found


def _names(by: Sequence[str]) -> tuple[str, ...]:
    """A single name may be written as it is."""
    return (by,) if isinstance(by, str) else tuple(by)


def _conditions(where: Where | None) -> Chosen:
    return {name: _names(wanted) for name, wanted in (where or {}).items()}


# -- opening -------------------------------------------------------------------------------------------------


def _plan_of(path: Path) -> TopDownPlan:
    for folder in (path, path.parent):
        if (folder / CERTIFICATE).is_file():
            try:
                fields = read_json(inside(folder, CERTIFICATE))["plan"]
            except (OSError, ValueError, KeyError, TypeError):
                break
            if not isinstance(fields, dict) or fields.get("mechanism") != "topdown":
                break
            return TopDownPlan.from_published(fields)
    raise errors.not_measurements(path, f"no {CERTIFICATE} with a TopDown plan is beside it, and no plan is given")


def _require_fit(plan: TopDownPlan, spine: Spine, measurements: Measurements) -> None:
    """Everything the plan measures is there, for the units of the spine in their order."""
    if spine.levels != plan.spine.all_levels:
        raise errors.measurements_do_not_fit("the spine", "it has other levels than the plan")
    if measurements.entries != entries(plan, spine):
        raise errors.measurements_do_not_fit("the plan and the list of geounits", "other queries or units are listed")
    for level, names in zip(spine.levels, spine.names, strict=True):
        shortest = min((one for one in measurements.entries if one.level == level), key=lambda one: one.cells)
        try:
            read = pq.read_table(measurements.path(shortest), columns=["geounit"])["geounit"]
        except (OSError, ValueError, KeyError):
            raise errors.not_measurements(measurements.folder, f"{shortest.file} cannot be read") from None
        found = read.to_numpy()[:: shortest.cells]
        if len(read) != len(names) * shortest.cells or not np.array_equal(found, names.to_numpy(zero_copy_only=False)):
            raise errors.measurements_do_not_fit("the list of geounits", f"level '{level}' has other units")


def _require_values(plan: TopDownPlan, spine: Spine, exact: Sequence[Counts | None]) -> None:
    if len(exact) != len(plan.invariants):
        raise errors.measurements_do_not_fit("the values of invariants", "there must be one, or None, for each")
    for invariant, values in zip(plan.invariants, exact, strict=True):
        groups = plan.table(invariant.table).schema_of.number_of_groups(invariant.by)
        units = spine.units(spine.levels.index(invariant.level))
        if values is not None and values.shape != (units, groups):
            raise errors.measurements_do_not_fit(str(invariant.margin), f"{units:,} by {groups:,} are expected")
