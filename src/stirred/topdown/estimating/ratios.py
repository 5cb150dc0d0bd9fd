"""Shares, differences, ratios and odds ratios of counts of a TopDown release, of groups or of places.

A question is taken apart into counts, each a group in a place. Their estimates are those of least squares, and so is
the covariance of any two of them, exactly: it follows from the plan and the list of places alone. What is made of them
is put together in :mod:`stirred.estimates.answers`.

A difference is a weighted sum of the noise too, so its interval is found as that of a count is. The interval of a ratio
comes from those of its two counts: Fieller's, where both are normal. With a denominator that is known exactly it is the
interval of the numerator, divided by it.

Counts that the plan and the published counts rule out are 0 without error, as in :mod:`.questions`: their share is 0,
the share of the only group that is left is 1, and a difference from them is the other count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.estimates import Term
from stirred.estimates.answers import Answers, Parts, asked_contrasts, difference, odds_ratio, ratio
from stirred.estimates.error_laws import WORTHWHILE, Noise
from stirred.estimates.place_estimates import KINDS, Estimates
from stirred.margins.margin_blocks import Array, Margin
from stirred.margins.spine import Index
from stirred.topdown.estimating.places import Chosen, PlaceList, Sites, Union
from stirred.topdown.estimating.precision import Design

if TYPE_CHECKING:
    from stirred.topdown.estimating.questions import MeasuredRelease

MOST_TERMS = 400
"""Different weights that the noise of an estimate may have for its law to be listed."""

CHEAP = 1 << 22
"""Measured values whose weights are worked out for one question, so that laws of errors can be listed."""


def noise_terms(weights: Iterable[tuple[float, Array]], noise: Noise = "gaussian") -> tuple[Term, ...]:
    """Noise with the same weight and parameter together, from parameters and the weights of values that have them."""
    counts: dict[tuple[float, float], int] = {}
    for parameter, some in weights:
        sizes = np.round(np.abs(some), 12)
        for size, times in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True):
            key = float(size), parameter
            counts[key] = counts.get(key, 0) + int(times)
    return tuple(Term(size, parameter, times, noise) for (size, parameter), times in sorted(counts.items()))


PLACES: Literal["places"] = "places"
"""In place of an attribute and two of its values: the places of a question against those they are compared with."""
Names = tuple[str, str]
"""What is compared: the first against the second."""
Contrast = tuple[str, str, str] | Literal["places"]
"""An attribute, recode or level and two of its values, the first against the second."""


@dataclass(frozen=True)
class Count:
    """A count of a measure: the place, the values that are the same in all rows, and what it is a total over."""

    place: int
    fixed: tuple[tuple[str, str], ...] = ()
    over: str | None = None


@dataclass(frozen=True, eq=False)
class Measure:
    """A number made of some counts, such as a share or a difference of them."""

    words: str
    left: tuple[str, ...]
    """Names that rows of the answer differ in."""
    counts: tuple[Count, ...]
    combine: Callable[[Sequence[Parts], Array], Parts]
    slopes: Callable[[Array], Array]
    """From values, a column for each count, by how much the measure moves with each."""
    below: tuple[int, ...] = ()
    """Counts that are divided by."""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    whole: bool = False
    of_shares: bool = False


def measure_of(
    by: tuple[str, ...], share: str | None, apart: Contrast | None, divided: Contrast | None,
    odds: tuple[Contrast, Contrast] | None, level: str | None,
    places: Names = ("", ""),
) -> Measure:  # fmt: skip
    """The measure that a question asks for; ``places`` are the words for two that are compared."""
    if odds is not None:
        return _odds(by, *odds, places)
    contrast = apart or divided
    if contrast is None:
        if share is None:
            return Measure("count", by, (Count(0),), lambda parts, _: parts[0], lambda at: np.ones_like(at), whole=True)
        total = Count(1) if share == level else Count(0, over=share)
        return Measure(
            f"share of {share}", by, (Count(0), total), lambda parts, c: ratio(parts[0], parts[1], c[:, 0, 1]),
            _quotient, (1,), (0.0, 1.0), of_shares=True,
        )  # fmt: skip
    left, pair, names = _pair(by, contrast, places)
    words = (" minus " if apart else " divided by ").join(names)
    if share is None:
        if apart:
            return Measure(
                words, left, pair, lambda parts, c: difference(parts[0], parts[1], c[:, 0, 1]),
                lambda at: np.broadcast_to([1.0, -1.0], at.shape), whole=True,
            )  # fmt: skip
        return Measure(
            words, left, pair, lambda parts, c: ratio(parts[0], parts[1], c[:, 0, 1]), _quotient, (1,),
            (0.0, np.inf),
        )  # fmt: skip
    if share in (_name(contrast), level):
        raise errors.estimate_question(
            "A comparison of shares", f"needs another column than '{share}', whose shares they are"
        )
    one, other = pair
    counts = (one, Count(one.place, one.fixed, share), other, Count(other.place, other.fixed, share))
    return Measure(
        f"{words} in the share of {share}", left, counts, _of_shares(difference if apart else ratio),
        _share_difference if apart else _share_ratio, (1, 3) if apart else (1, 2, 3),
        (-1.0, 1.0) if apart else (0.0, np.inf), of_shares=bool(apart),
    )  # fmt: skip


def _odds(by: tuple[str, ...], one: Contrast, other: Contrast, places: Names) -> Measure:
    if _name(one) == _name(other):
        raise errors.estimate_question("An odds ratio", "needs two different columns")
    left, rows, words = _pair(by, one, places)
    left, columns, against = _pair(left, other, places)
    counts = tuple(
        Count(max(row.place, column.place), (*row.fixed, *column.fixed)) for row in rows for column in columns
    )
    return Measure(
        f"odds ratio {':'.join(against)}, {' to '.join(words)}", left, counts, odds_ratio, _odds_slopes, (0, 1, 2, 3),
        (0.0, np.inf),
    )  # fmt: skip


def _name(contrast: Contrast) -> str | None:
    return None if contrast == PLACES else contrast[0]


def _pair(by: tuple[str, ...], contrast: Contrast, places: Names) -> tuple[tuple[str, ...], tuple[Count, Count], Names]:
    if contrast == PLACES:
        return by, (Count(0), Count(1)), places
    name, first, second = contrast
    left = tuple(one for one in by if one != name)
    return left, (Count(0, ((name, first),)), Count(0, ((name, second),))), (first, second)


def _quotient(at: Array) -> Array:
    y = np.where(at[:, 1] > 0, at[:, 1], np.inf)
    return np.stack([1 / y, -at[:, 0] / y**2], axis=1)


def _share_difference(at: Array) -> Array:
    return np.hstack([_quotient(at[:, :2]), -_quotient(at[:, 2:])])


def _share_ratio(at: Array) -> Array:
    safe = np.where(at > 0, at, np.inf)
    value = (at[:, 0] / safe[:, 1]) * at[:, 3] / safe[:, 2]
    first = at[:, 3] / (safe[:, 1] * safe[:, 2])
    return np.stack([first, -value / safe[:, 1], -value / safe[:, 2], value / safe[:, 3]], axis=1)


def _odds_slopes(at: Array) -> Array:
    safe = np.where(at > 0, at, np.inf)
    value = at[:, 0] * at[:, 3] / (safe[:, 1] * safe[:, 2])
    return np.asarray(value[:, None] * np.array([1.0, -1.0, -1.0, 1.0]) / safe)


def _of_shares(use: Callable[[Parts, Parts, Array], Parts]) -> Callable[[Sequence[Parts], Array], Parts]:
    def combine(parts: Sequence[Parts], covariance: Array) -> Parts:
        shares = [_finite(ratio(parts[at], parts[at + 1], covariance[:, at, at + 1])) for at in (0, 2)]
        slopes = [_quotient(np.stack([parts[at].values, parts[at + 1].values], axis=1)) for at in (0, 2)]
        cross = np.einsum("ri,rij,rj->r", slopes[0], covariance[:, :2, 2:], slopes[1])
        return use(shares[0], shares[1], cross)

    return combine


def _finite(shares: Parts) -> Parts:
    """Shares are between 0 and 1, where nothing else is known."""
    lower = np.where(np.isfinite(shares.lower), shares.lower, np.fmin(shares.values, 0.0))
    upper = np.where(np.isfinite(shares.upper), shares.upper, np.fmax(shares.values, 1.0))
    return Parts(shares.values, shares.variances, lower, upper)


CLEAR = 3.0
"""Standard errors that a number must be above zero to be divided by."""

VAGUE = 0.25
"""Shares with a larger standard error are marked: two of them to either side are all that a share can be."""

_NOTHING = 1e-12
"""Variances that are smaller than this part of those of the counts are rounding errors of zero."""

KIND_WORDS = {
    "known": "invariants of the release tell it, or its plan and published counts leave one possibility",
    "exact": KINDS["exact"],
    "normal": "from the normal law, widened by half a unit for a count and by one for a difference: longer than "
    "necessary where the standard error is small",
    "combined": "put together from the intervals of the counts, with their correlations (for a ratio of normal ones it "
    "is Fieller's)",
    "vague": "as combined; the standard error is above 0.25, so that the interval says little more than that a share "
    "is between 0 and 1",
    "denominator": "no estimate: a count to divide by is not clearly above zero (by 3 standard errors). Ask for "
    "larger places or coarser groups",
    "empty": "no number: a count to divide by is 0 for certain, by the plan and the published counts",
    "none": "no estimate: no measurement tells a count that is needed",
}
"""What the kinds of intervals mean."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """One measure of the counts by some attributes, in some places: a count, a share, or a comparison."""

    sites: Sites
    by: tuple[str, ...]
    measure: Measure

    @cached_property
    def design(self) -> Design:
        """Covariances of all counts of the question, from the plan and the list of places."""
        return self.sites.release._design(self.sites.table, self.by, self.sites.where)

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """For each row that a place has, its values."""
        labels = self._schema.labels(self.measure.left)
        return [dict(zip(self.measure.left, label, strict=True)) for label in labels]

    @property
    def _schema(self) -> Any:
        return self.sites.release.plan.table(self.sites.table).schema_of

    def _by(self, count: Count) -> tuple[str, ...]:
        return tuple(name for name in self.by if name != count.over)

    def columns(self, count: Count) -> Index:
        """For each row, which of the groups of its margin the count is."""
        by = self._by(count)
        fixed = dict(count.fixed)
        for name, value in fixed.items():
            if value not in self._schema.values(name):
                raise errors.unknown_choice(f"value of '{name}'", value, self._schema.values(name))
        place = {label: at for at, label in enumerate(self._schema.labels(by))}
        return np.array([place[tuple({**row, **fixed}[name] for name in by)] for row in self.rows], dtype=np.int64)

    def groups(self, count: Count) -> tuple[Margin, Index]:
        """The margin of a count, and for each row its group in the order of a tensor."""
        margin = Margin.of(self._schema, self._by(count), self.sites.where)
        return margin, margin.in_tensor[self.columns(count)]

    def each(self, count: Count, take: Callable[[Estimates], NDArray[Any]]) -> NDArray[Any]:
        """Something about a count in every place and row, one after the other."""
        found = take(self.sites.counts(count.place, self._by(count)))[:, self.columns(count)]
        return np.broadcast_to(found, (len(self.sites.names), found.shape[1])).ravel()

    @cached_property
    def values(self) -> Array:
        """The estimates of the counts, a column for each."""
        return self._of_all(lambda at: np.where(np.isnan(at.values), 0.0, at.values))

    @cached_property
    def variances(self) -> Array:
        """Their variances."""
        return self._of_all(lambda at: at.variances)

    def _of_all(self, take: Callable[[Estimates], Array]) -> Array:
        stacked = np.stack([self.each(one, take) for one in self.measure.counts], axis=1)
        for at, same in self.totals_of_one.items():
            stacked[same, at] = stacked[same, at - 1]
        return stacked

    @cached_property
    def totals_of_one(self) -> dict[int, NDArray[np.bool_]]:
        """For each total of a share, by its number, the rows in which all groups but the share's own are zero for
        certain: the total is then the count before it, by another name."""
        found = {}
        for at, total in enumerate(self.measure.counts):
            if total.over is not None:
                own = self.measure.counts[at - 1]
                counts, name = self.sites.counts(own.place, self.by), self.by.index(total.over)
                left = (counts.variances > 0) | (counts.values != 0)
                rest = [label[:name] + label[name + 1 :] for label in counts.labels]
                number = {label: place for place, label in enumerate(dict.fromkeys(rest))}
                together = np.array([number[label] for label in rest], dtype=np.int64)
                many = np.stack([left[:, together == one].sum(axis=1) for one in range(len(number))], axis=1)
                group = self.columns(own)
                only = left[:, group] & (many[:, together[group]] == 1)
                found[at] = np.broadcast_to(only, (len(self.sites.names), only.shape[1])).ravel()
        return found

    @cached_property
    def covariance(self) -> Array:
        """Their covariance matrix, for every place and row; zero for a count that nothing tells."""
        counts = self.measure.counts
        places, number = len(self.sites.names), len(counts)
        between = self.sites.between(self.design) if number > 1 else []
        used = np.where(np.isinf(self.variances), 0.0, self.variances)
        found = np.zeros((places * len(self.rows), number, number))
        for i, one in enumerate(counts):
            found[:, i, i] = used[:, i]
            for j, other in enumerate(counts[:i]):
                matrices = between[one.place][other.place]
                pairs = self.design.split.covariances(matrices, self.groups(one), self.groups(other))[self.sites.kinds]
                found[:, i, j] = found[:, j, i] = np.where((used[:, i] > 0) & (used[:, j] > 0), pairs.ravel(), 0.0)
        for at, same in self.totals_of_one.items():
            found[same, at] = found[same, at - 1]
            found[same, :, at] = found[same, :, at - 1]
        return found

    def parts(self, confidence: float) -> list[Parts]:
        """The counts with their intervals."""
        alone = (self.variances > 0).sum(axis=1) == 1
        found = []
        for at, one in enumerate(self.measure.counts):
            values, half = self.values[:, at], self.each(one, lambda some: some.half_widths(confidence))
            if at in self.totals_of_one:
                before = self.each(self.measure.counts[at - 1], lambda some: some.half_widths(confidence))
                half = np.where(self.totals_of_one[at], before, half)
            half = np.where((self.variances[:, at] > 0) & np.isfinite(half), half, 0.0)
            lower, upper = values - half, values + half
            if not self.measure.whole:  # a count is a whole number; where no other varies, that shortens the interval
                lower = np.where(alone & (half > 0), np.ceil(lower - 1e-6), lower)
                upper = np.where(alone & (half > 0), np.floor(upper + 1e-6), upper)
            found.append(
                Parts(values, self.covariance[:, at, at], np.minimum(lower, values), np.maximum(upper, values))
            )
        return found

    @cached_property
    def unknown(self) -> NDArray[np.bool_]:
        """Rows that need a count which no measurement tells."""
        return np.asarray(np.isinf(self.variances).any(axis=1))

    @cached_property
    def unclear(self) -> NDArray[np.bool_]:
        """Rows that would be divided by a count which is not clearly above zero."""
        below = list(self.measure.below)
        values, spread = self.values[:, below], np.sqrt(self.covariance[:, below, below])
        return np.asarray((values <= np.maximum(CLEAR * spread, 1e-9)).any(axis=1)) & ~self.unknown

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """Rows that would be divided by a count which is zero for certain."""
        below = list(self.measure.below)
        nothing = (self.values[:, below] == 0) & (self.variances[:, below] == 0)
        return np.asarray(nothing.any(axis=1)) & ~self.unknown

    def answer(self) -> Answers:
        """The measure in every place and row, with standard errors and intervals."""
        refused = self.unknown | self.unclear
        if refused.all():
            raise (
                errors.denominators_near_zero(CLEAR)
                if self.unclear.any()
                else errors.not_estimable(self.sites.table, "these numbers in these places")
            )
        slopes = self.measure.slopes(self.values)
        variances = np.einsum("ri,rij,rj->r", slopes, self.covariance, slopes)
        scale = np.einsum("ri,rii,ri->r", slopes, self.covariance, slopes)
        variances = np.where(variances <= _NOTHING * scale, 0.0, variances)
        if self.measure.whole:
            return self._whole(refused, variances)
        values = self.measure.combine(self.parts(0.9), self.covariance).values
        varies = (self.variances > 0).sum(axis=1)
        own = np.stack([self.each(one, lambda at: at.interval_kinds) for one in self.measure.counts], axis=1)
        single = own[np.arange(len(own)), np.argmax(self.variances > 0, axis=1)]
        kinds = np.where(varies > 1, "combined", np.where(varies == 1, single, "known"))
        kinds = np.where(variances == 0, "known", kinds)
        if self.measure.of_shares:
            kinds = np.where(np.sqrt(variances) > VAGUE, "vague", kinds)
        low, high = self.measure.bounds

        def ends(confidence: float) -> Parts:
            found = self.measure.combine(self.parts(confidence), self.covariance)
            # Where noise has carried an estimate out of what is possible, its interval is also that of the nearest
            # possible number: one that is cut to a point would look certain.
            moved = np.clip(values, low, high) - values
            found = Parts(values, variances, found.lower + np.minimum(moved, 0), found.upper + np.maximum(moved, 0))
            found = found.within(low, high)
            sure = (variances == 0) & ~refused
            lower = np.where(refused, low, np.where(sure, values, found.lower))
            upper = np.where(refused, high, np.where(sure, values, found.upper))
            return Parts(values, variances, lower, upper)

        return self._answers(refused, values, variances, kinds, ends)

    def _whole(self, refused: NDArray[np.bool_], variances: Array) -> Answers:
        """Counts and differences of counts: weighted sums of noise themselves."""
        alone = len(self.measure.counts) == 1
        values = self.values[:, 0] if alone else self.values[:, 0] - self.values[:, 1]
        shape = len(self.sites.names), len(self.rows)
        variances = np.where(refused, np.inf, variances)
        first = self.sites.counts(0, self.by)
        if alone:
            noise = first
        else:
            parameter, terms = self._plain(variances)
            sums, sum_of = self._sums(variances.reshape(shape), terms.reshape(shape))
            noise = Estimates(
                table=first.table, by=self.measure.left, where=self.sites.where, level=None, places=self.sites.names,
                labels=tuple(self._schema.labels(self.measure.left)), values=values.reshape(shape),
                variances=variances.reshape(shape), parameter=parameter.reshape(shape), terms=terms.reshape(shape),
                sums=sums, sum_of=sum_of,
            )  # fmt: skip

        def ends(confidence: float) -> Parts:
            half = noise.half_widths(confidence).ravel()
            normal = noise._kinds(confidence).ravel() == "normal"
            half = half + np.where(normal & (not alone), 0.5, 0.0)
            lower, upper = np.ceil(values - half - 1e-6), np.floor(values + half + 1e-6)
            return Parts(values, variances, lower, upper)

        return self._answers(refused, values, variances, noise.interval_kinds.ravel(), ends)

    def _plain(self, variances: Array) -> tuple[Array, Array]:
        """Where a difference is a plain sum of values with the same noise: the noise's parameter, and how many.

        Two plain sums that are uncorrelated have no measured value in common. A count that is known has no noise.
        """
        one, other = (
            [self.each(count, take) for take in (lambda at: at.parameter, lambda at: at.terms)]
            for count in self.measure.counts
        )
        varies = self.variances > 0
        apart = np.isclose(variances, self.covariance[:, 0, 0] + self.covariance[:, 1, 1], rtol=1e-9, atol=0)
        plain = (one[1] > 0) & (other[1] > 0) & (one[0] == other[0]) & apart & varies.all(axis=1)
        parameter, terms = np.where(plain, one[0], 0.0), np.where(plain, one[1] + other[1], 0.0)
        for mine, only in ((one, varies[:, 0] & ~varies[:, 1]), (other, varies[:, 1] & ~varies[:, 0])):
            parameter, terms = np.where(only, mine[0], parameter), np.where(only, mine[1], terms)
        return parameter, terms

    def _sums(self, variances: Array, plain: Array) -> tuple[tuple[tuple[Term, ...], ...], Index]:
        """The noise of other differences, where listing it takes little work and intervals gain by it."""
        release, sites = self.sites.release, self.sites
        numbers = np.full(variances.shape, -1, dtype=np.int64)
        wanted = (variances > 0) & (variances <= WORTHWHILE**2) & (plain == 0)
        values = sum(one.units * one.cells for one in release.measurements.entries if one.table == sites.table)
        varies = (self.variances > 0).reshape(*variances.shape, len(self.measure.counts))
        alike = 4 * sites.kinds[:, None] + varies @ np.array([2, 1])  # places of one kind, and what varies in them
        tasks = [(row, int(kind)) for row in range(wanted.shape[1]) for kind in np.unique(alike[wanted[:, row], row])]
        if 2 * len(tasks) * values > CHEAP:
            return (), numbers
        found: dict[tuple[Term, ...], int] = {}
        designs: dict[int, list[Design]] = {}
        for row, kind in tasks:
            if row not in designs:
                designs[row] = [self._single(count, row) for count in self.measure.counts]
            place = int(np.flatnonzero(wanted[:, row] & (alike[:, row] == kind))[0])
            both = [
                design.weights(sites.units(count.place, place))
                for design, count, used in zip(designs[row], self.measure.counts, varies[place, row], strict=True)
                if used
            ]
            terms = noise_terms(_subtracted(*both))
            if len(terms) <= MOST_TERMS:
                numbers[wanted[:, row] & (alike[:, row] == kind), row] = found.setdefault(terms, len(found))
        return tuple(found), numbers

    def _single(self, count: Count, row: int) -> Design:
        chosen = {**self.rows[row], **dict(count.fixed)}
        where = {**self.sites.where, **{name: (value,) for name, value in chosen.items()}}
        return self.sites.release._design(self.sites.table, (), where)

    def _answers(
        self, refused: NDArray[np.bool_], values: Array, variances: Array, kinds: NDArray[Any], ends: Any
    ) -> Answers:
        first = self.sites.counts(0, self.by)
        kinds = np.where(self.unknown, "none", np.where(self.unclear, "denominator", kinds))
        kinds = np.where(self.empty, "empty", kinds)
        named = [] if self.sites.column is None else [self.sites.column]
        return Answers(
            table=self.sites.table,
            by=(*named, *self.measure.left),
            where=self.sites.where,
            measure=self.measure.words,
            labels=tuple((*([name] if named else []), *row.values()) for name in self.sites.names for row in self.rows),
            values=np.where(refused, np.nan, values),
            variances=np.where(refused, np.inf, variances),
            naive=None,
            kinds=tuple(str(kind) for kind in kinds),
            kind_words=KIND_WORDS,
            ends=ends,
            whole=self.measure.whole,
            exact=self._exact,
            unused=first.unused,
            remarks=self.sites.remarks,
        )

    @property
    def _exact(self) -> tuple[str, ...]:
        """What is known exactly of any count of the question."""
        found = [self.sites.counts(one.place, self._by(one)).exact for one in self.measure.counts]
        return tuple(dict.fromkeys(words for one in found for words in one))


def _subtracted(one: Iterator[Any], other: Iterator[Any] | None = None) -> Iterator[tuple[float, Array]]:
    """The weights of measured values in a difference, or in the one count of it that is not known."""
    if other is None:
        yield from ((measured.parameter, weights) for measured, _, weights in one)
        return
    for (measured, _, first), (_, _, second) in zip(one, other, strict=True):
        yield measured.parameter, first - second


# -- questions -----------------------------------------------------------------------------------------------


def ask(
    release: MeasuredRelease, table: str, by: tuple[str, ...] = (), where: Chosen | None = None,
    *, level: str | None = None, places: Sequence[tuple[str, str]] = (), against: Sequence[tuple[str, str]] = (),
    share: str | None = None, difference: Contrast | None = None, ratio: Contrast | None = None,
    odds_ratio: tuple[Contrast, Contrast] | None = None, listed: PlaceList | None = None,
) -> Comparison:  # fmt: skip
    """A question about shares or comparisons; :meth:`Comparison.answer` answers it."""
    asked = asked_contrasts(difference, ratio, odds_ratio, share, (where or {}).get(share or "", ()))
    levels = (*release.spine.levels, *([] if listed is None else [listed.column]))
    if listed is not None and level is not None:
        raise errors.estimate_question("A question", "must have either a level or a file of places (--level, --places)")
    for one in asked:
        if one != PLACES and (isinstance(one, str) or len(one) != 3):
            raise errors.estimate_question(
                f"The comparison {one!r}", "must be a column and two of its values, or the word 'places'"
            )
    units = [one for one in asked if not isinstance(one, str) and one[0] in levels]
    if units:
        places, against = _two_units(units, asked, level, places, against)
        level = None
    every = listed is not None and not places  # each place of a list
    if (PLACES in asked or bool(units)) != ((bool(places) or every) and bool(against)):
        raise errors.estimate_question(
            "A comparison of places", "has --place, --against and one of --difference, --ratio and --odds-ratio with "
            "'places', or names two units of a level, as in --difference county=A,B"
        )  # fmt: skip
    if not every and (level is None) == (not places):
        raise errors.estimate_question("A question", "must have either a level or places (--level or --place)")
    column = listed.column if listed is not None and every else level
    if share in levels and (share != column or asked):
        how = "--places FILE alone" if listed is not None and share == listed.column else f"--level {share}"
        raise errors.estimate_question(
            f"The share of '{share}'", f"is that of each unit in all of them: ask for it with {how}"
        )
    contrasts = [PLACES if one in units else one for one in asked]
    apart, divided = (PLACES if one in units else one for one in (difference, ratio))
    named = [one[0] for one in contrasts if one != PLACES] + ([share] if share and share not in levels else [])
    by = tuple(dict.fromkeys([*by, *named]))
    release.plan.table(table).schema_of.labels(by)  # names that are not known are refused before anything is read
    words = str(column) if every else _joined(places), _joined(against)
    measure = measure_of(by, share, apart, divided, (contrasts[0], contrasts[1]) if odds_ratio else None, column, words)
    compared: tuple[Union, ...] = ({0: np.arange(release.spine.units(0))},) if share in levels else ()
    if level is not None:
        at = release._level(level)
        names = tuple(release.spine.names[at].to_pylist())
        sites = Sites(release, table, where or {}, level, names, compared, level=at)
    elif listed is not None and every:
        compared = compared or ((release._whole_units(against, listed),) if against else ())
        sites = Sites(release, table, where or {}, listed.column, listed.names, compared, listed=listed)
    else:
        compared = tuple(release._whole_units(one, listed) for one in (places, against) if one)
        sites = Sites(release, table, where or {}, None if against else "place", (_joined(places),), compared)
    return Comparison(sites, by, measure)


def _two_units(
    units: Sequence[tuple[str, str, str]], asked: Sequence[Contrast], level: str | None, places: Sequence[Any],
    against: Sequence[Any],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # fmt: skip
    name, first, second = units[0]
    if len(units) > 1 or PLACES in asked or places or against or level not in (None, name):
        raise errors.estimate_question(
            f"A comparison of two units of '{name}'",
            "has no other places: leave other levels, --place and --against out",
        )
    return [(name, first)], [(name, second)]


def _joined(places: Sequence[tuple[str, str]]) -> str:
    return " + ".join(name for _, name in places)
