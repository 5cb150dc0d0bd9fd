"""Estimates by place and group, with standard errors and intervals, what they are made of, and how they join a map.

A map is a GeoJSON file whose features get the numbers of their place as properties. A feature has a property, such as a
district's code, that is also in the first column of the estimates. Numbers of groups are told apart by their values, as
in ``estimate:race=white,adult=yes``. Nothing of the map is changed but for properties that it did not have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief
from stirred.errors.kinds import few
from stirred.estimates.answers import SHOWN, Answers, first_rows, json_rows
from stirred.estimates.error_laws import (
    Array,
    ErrorLaw,
    Term,
    exact_half_width,
    normal_coverage,
    normal_half_widths,
    plain_law,
)

_ROUNDING = 1e-6
"""More than what floating-point numbers can have added to an end that is a whole number."""

KINDS = {
    "exact": "from the law of the noise itself, so that it is no longer than it must be",
    "normal": "from the normal law, widened by half a unit: longer than necessary where the standard error is small",
    "known": "an invariant of the release tells the count, or its plan and published counts rule it out",
    "none": "no measurement tells the count",
}
"""What the kinds of intervals mean."""


@brief
@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates with a row for each place and a column for each group. They are unbiased, and may be negative.

    A count that no measurement determines is ``nan``, with an infinite standard error.
    """

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    level: str | None
    """None for places that are not units of one level."""
    places: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    """For each group its value of every name in ``by``."""
    values: Array
    variances: Array
    parameter: Array = field(repr=False)
    """Where ``terms`` is positive, the estimate is a plain sum of so many values with noise of this parameter."""
    terms: Array = field(repr=False)
    sums: tuple[tuple[Term, ...], ...] = field(default=(), repr=False)
    """Weighted sums of few noise terms, each the error of some estimates."""
    sum_of: NDArray[np.int64] | None = field(default=None, repr=False)
    """For each estimate its place among ``sums``, or -1."""
    exact: tuple[str, ...] = ()
    """The invariants that were taken into account, in words."""
    unused: tuple[str, ...] = ()
    """What is also known of the table, and was not used."""
    sources: tuple[Source, ...] = ()
    """The measurements that a single estimate rests on, where they were asked for."""
    place_remarks: tuple[str, ...] = ()
    """What a reader must know of a list of places, such as units that lie in none of them."""
    nonnegative: bool = False
    """Whether ends of intervals that lie below 0 are moved to 0. A true count is never below 0, so an interval contains
    it as often as before, or more often."""

    made_of: tuple[MadeOf, ...] = ()
    """For places that are not units of one level: the fewest units that each is put together from."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of the places, for a reader."""
        return (*self.place_remarks, *made_of_lines(self.places, self.made_of))

    def _repr_html_(self) -> str:
        """The first rows as an HTML table, with intervals at 95%."""
        return first_rows(self.rows(most=SHOWN), len(self))

    def __len__(self) -> int:
        return len(self.places) * len(self.labels)

    def rows(self, confidence: float = 0.95, most: int | None = None) -> list[tuple[str, ...]]:
        """A table to print: the head, then a line for each place and group, at most ``most``."""
        lower, upper = self.interval(confidence)
        coverage, kinds = self.coverage(confidence), self._kinds(confidence)
        percent = f"{100 * confidence:g}%"
        rows = [(self.level or "place", *self.by, "estimate", "std. error", f"{percent} interval", "covers")]
        for (at, place), (group, label) in islice(product(enumerate(self.places), enumerate(self.labels)), most):
            value, error = self.values[at, group], self.standard_errors[at, group]
            if np.isinf(error):
                rows.append((place, *label, "-", "-", "not measured", "-"))
            else:
                ends = f"{lower[at, group] + 0:,.0f} to {upper[at, group] + 0:,.0f}"
                covers = _covers(str(kinds[at, group]), float(coverage[at, group]))
                rows.append((place, *label, f"{round(value, 1) + 0:,.1f}", f"{error:,.2f}", ends, covers))
        return rows

    def kind_lines(self, confidence: float = 0.95) -> list[str]:
        """For each kind of interval among the estimates, what it means."""
        kinds = self._kinds(confidence)
        moved = ["ends below 0 are moved to 0, which loses no coverage"] if self.nonnegative else []
        return [f"{kind}: {words}" for kind, words in KINDS.items() if (kinds == kind).any()] + moved

    @property
    def standard_errors(self) -> Array:
        """The standard error of each estimate; infinite where nothing is known."""
        return np.sqrt(self.variances)

    def interval(self, confidence: float = 0.95, *, normal: bool = False) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, as whole numbers, ends included. Each interval by itself contains the
        true count with at least this probability. With ``normal`` all are found from the normal law."""
        half = self.half_widths(confidence, normal=normal)
        middle = np.where(np.isnan(self.values), 0.0, self.values)
        lower, upper = np.ceil(middle - half - _ROUNDING), np.floor(middle + half + _ROUNDING)
        return (np.maximum(lower, 0.0), np.maximum(upper, 0.0)) if self.nonnegative else (lower, upper)

    def half_widths(self, confidence: float = 0.95, *, normal: bool = False) -> Array:
        """How far the intervals reach to either side of the estimates, before their ends become whole numbers."""
        half = normal_half_widths(self.standard_errors, confidence)
        for law, some in self._certified(confidence, normal):
            half[some] = exact_half_width(law, confidence)
        return half

    def coverage(self, confidence: float = 0.95, *, normal: bool = False) -> Array:
        """How often each interval contains the true count, at least the asked probability: certified for *exact*
        intervals, about for *normal* ones, which are conservative where noise is small."""
        half = normal_half_widths(self.standard_errors, confidence)
        found = normal_coverage(self.standard_errors, half)
        for law, some in self._certified(confidence, normal):
            found[some] = law.within(exact_half_width(law, confidence) or 0.0)
        found[(self.variances == 0) | np.isinf(self.variances)] = 1.0
        return found

    @property
    def interval_kinds(self) -> NDArray[np.str_]:
        """How each interval is found: *exact* from the law of the noise itself, *normal* from the normal law widened by
        half a unit; *known* where an invariant tells the count, *none* where nothing does."""
        return self._kinds(0.95)

    def _kinds(self, confidence: float) -> NDArray[np.str_]:
        kinds = np.full(self.variances.shape, "normal")
        for _, some in self._certified(confidence, False):
            kinds[some] = "exact"
        return np.where(self.variances == 0, "known", np.where(np.isinf(self.variances), "none", kinds))

    def _certified(self, confidence: float, normal: bool) -> Iterator[tuple[ErrorLaw, NDArray[np.bool_]]]:
        """The laws that give intervals at this confidence, and the estimates that have them."""
        if not 0 < confidence < 1:
            raise errors.parameter_out_of_range("The confidence", confidence, "between 0 and 1")
        for law, some in () if normal else self._laws():
            if law.reach(confidence) is not None:
                yield law, some

    def _laws(self) -> Iterator[tuple[ErrorLaw, NDArray[np.bool_]]]:
        """The laws of errors that are listed, and the estimates that have them."""
        plain = self.terms > 0
        for single, number in {
            (float(a), int(b)) for a, b in zip(self.parameter[plain], self.terms[plain], strict=True)
        }:
            if (law := plain_law(single, number)) is not None:
                yield law, plain & (self.terms == number) & (self.parameter == single)
        for at, terms in enumerate(self.sums):
            yield _listed(terms), self.sum_of == at  # type: ignore[misc]

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row for each place and group; what is not known is null, which a file leaves empty."""
        lower, upper = self.interval(confidence)
        coverage, kinds = self.coverage(confidence), self._kinds(confidence)
        groups = len(self.labels)
        texts = {self.level or "place": [place for place in self.places for _ in range(groups)]}
        texts |= {name: [label[at] for label in self.labels] * len(self.places) for at, name in enumerate(self.by)}
        frame = pl.DataFrame(
            [
                *(pl.Series(name, values, dtype=pl.String) for name, values in texts.items()),
                pl.Series("estimate", self.values.ravel()),
                pl.Series("standard_error", self.standard_errors.ravel()),
                pl.Series("lower", lower.ravel()),
                pl.Series("upper", upper.ravel()),
                pl.Series("interval", kinds.ravel().tolist(), dtype=pl.String),
                pl.Series("covers", coverage.ravel()),
            ]
        )
        told = pl.col("estimate").is_not_nan()
        return frame.with_columns(pl.when(told).then(name).alias(name) for name in ("estimate", "standard_error"))

    def to_json(self, confidence: float = 0.95) -> str:
        """The estimates as JSON: what was asked, then an entry for each place and group with its interval, the kind of
        the interval and how often it contains the true count."""
        rows = json_rows(self.to_frame(confidence))
        body = {
            "stirred_estimates": 1,
            "table": self.table,
            "by": self.by,
            "where": {name: list(values) for name, values in self.where.items()},
            "confidence": confidence,
            "interval_kinds": {kind: KINDS[kind] for kind in KINDS if any(row["interval"] == kind for row in rows)},
            **({"intervals_moved_to_0": True} if self.nonnegative else {}),
            "known_exactly_and_used": self.exact,
            "not_used": self.unused,
            "remarks": self.remarks,
            "estimates": rows,
            "sources": [asdict(one) for one in self.sources],
            **({"places_made_of": [asdict(one) for one in self.made_of]} if self.made_of else {}),
        }
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


@lru_cache(maxsize=256)
def _listed(terms: tuple[Term, ...]) -> ErrorLaw:
    return ErrorLaw.of(terms)


@dataclass(frozen=True)
class MadeOf:
    """The fewest units of a geography whose sum, each added or subtracted, is a place."""

    units: int
    words: str
    """How many of each level, as in *2 tract, less 1 block*."""


def made_of_lines(places: Sequence[str], made_of: Sequence[MadeOf], most: int = 3) -> list[str]:
    """Lines that say how many units places take, each by itself if there are few of them."""
    if len(made_of) > most:
        units = sorted(one.units for one in made_of)
        return [
            f"The {len(units):,} places take {units[0]:,} to {units[-1]:,} units of the geography, added or "
            f"subtracted (median {units[len(units) // 2]:,}); errors grow with their number."
        ]
    if not made_of:
        return []
    return [
        f"{place} takes {one.units:,} unit{'s' if one.units > 1 else ''} of the geography, added or subtracted and as "
        f"few as possible: {one.words}."
        for place, one in zip(places, made_of, strict=True)
    ]


@dataclass(frozen=True)
class Source:
    """Measurements of one query at one level that an estimate rests on.

    ``relation`` is *inside* for units that lie in the place, *around* for units that contain some of it and more, and
    *beside* for the others.
    """

    level: str
    relation: Literal["inside", "around", "beside"]
    query: str
    units: int
    weight: float
    """The largest weight, in absolute value, that a single value has."""
    share: float
    """Their share of the estimate's variance; all shares add up to one."""


estimate_rows, kind_lines = Estimates.rows, Estimates.kind_lines


def _covers(kind: str, coverage: float) -> str:
    """The kind of an interval and how often it contains the truth; never rounded up."""
    if kind == "known":
        return kind
    shown = "over 99.9%" if coverage > 0.999 else f"{math.floor(1000 * coverage + 1e-9) / 10:.1f}%"
    return f"{kind}, {shown}" if kind == "exact" else f"{kind}, about {shown}"


def source_rows(sources: Sequence[Source], most: int = 10) -> list[tuple[str, ...]]:
    """A table to print: the head, then the measurements that an estimate rests on, the largest shares first."""
    head: tuple[str, ...] = ("level", "units", "query", "largest weight", "share of variance")
    return [head] + [
        (one.level, f"{one.units:,} {one.relation}", one.query, f"{one.weight:.3f}", f"{100 * one.share:.1f}%")
        for one in sources[:most]
    ]


LARGEST_MAP = 1 << 30
"""The size that a map may have."""

_OTHER_MAP = (
    "Give a GeoJSON file with a FeatureCollection, and a property of every feature that holds the place's code."
)


def join_map(
    found: Estimates | Answers, path: str | Path, key: str | None = None, confidence: float = 0.95
) -> tuple[str, tuple[str, ...]]:
    """The text of a GeoJSON file with the estimates as properties, and remarks on places and features without a match.

    ``key`` is the property that holds the place's name as in the estimates; by default it is called like their column
    of places.
    """
    column, numbers = _properties(found, confidence)
    key = key or column
    made = _read_map(Path(path))
    used: set[str] = set()
    alone: list[str] = []
    without = 0
    for feature in made["features"]:
        own = feature.get("properties")
        code = own.get(key) if isinstance(own, dict) else None
        if not isinstance(code, str | int) or isinstance(code, bool):
            without += 1
            continue
        name = str(code)
        if name not in numbers:
            alone.append(name)
            continue
        taken = next((one for one in numbers[name] if one in own), None)
        if taken is not None:
            raise errors.map_join(
                f"The map {path}", f"has features with a property '{taken}' of their own", "Remove or rename it."
            )
        own.update(numbers[name])
        used.add(name)
    if without:
        raise errors.map_join(
            f"In the map {path}", f"{without:,} of {len(made['features']):,} features have no property '{key}' that "
            "is a text or a whole number", "Name the property with the places' codes: --key NAME."
        )  # fmt: skip
    if not used:
        raise errors.map_join(
            f"In the map {path}", f"no feature has the name of a place of '{column}' in its property '{key}'",
            "Name the property with the same codes as the estimates, leading zeros included: --key NAME.",
        )  # fmt: skip
    left = [name for name in numbers if name not in used]
    said = []
    if left:
        said.append(f"{len(left):,} places have no feature in the map: {few(left, len(left))}.")
    if alone:
        said.append(f"{len(alone):,} features have no estimate: {few(alone, len(alone))}.")
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", tuple(said)


def _properties(found: Estimates | Answers, confidence: float = 0.95) -> tuple[str, dict[str, dict[str, Any]]]:
    """The column of places, and for each place its numbers by the name of a property."""
    labels = (found.level or "place", *found.by) if isinstance(found, Estimates) else found.by
    if not labels:
        raise errors.map_join("These estimates", "are of one place alone", "Ask for every place: --level or --places.")
    column, *others = labels
    numbers: dict[str, dict[str, Any]] = {}
    for row in json_rows(found.to_frame(confidence)):
        group = ",".join(f"{name}={row[name]}" for name in others)
        mine = numbers.setdefault(row[column], {})
        for name, value in row.items():
            if name not in labels:
                mine[f"{name}:{group}" if group else name] = value
    return column, numbers


def _read_map(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_MAP:
            raise errors.map_join(f"The map {path}", f"has more than {LARGEST_MAP:,} bytes", "Simplify or divide it.")
        made = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise errors.map_join(f"The map {path}", "cannot be read as JSON", _OTHER_MAP) from None
    features = made.get("features") if isinstance(made, Mapping) else None
    if not isinstance(features, list) or not features or not all(isinstance(one, dict) for one in features):
        raise errors.map_join(f"The map {path}", "has no list of features", _OTHER_MAP)
    return dict(made)
