"""Pictures as data: lines over an axis, or bars, with titles, labels and captions.

Nothing is drawn here; :mod:`stirred.reports.figures` does that. The builders turn guarantees into pictures: the
power of tests, how delta falls with epsilon, how far a belief can move. They choose names and titles, which
``dataclasses.replace`` changes. :mod:`stirred.semantics.explaining` has the bars of concerns, and
:mod:`stirred.semantics.pictures.readable` another axis where nothing could be read off these.

Keep in mind: a picture is checked when made and never changes. Its numbers are finite, each line
runs from left to right, and its caption names the counterfactual: which two datasets somebody tries to tell apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from decimal import ROUND_UP, Context
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._display import brief
from stirred.loss import (
    PowerCurve,
    TradeOff,
    gaussian_to_approximate,
    gaussian_to_pbdp_delta,
    gaussian_to_tail,
    gaussian_to_zcdp,
    tradeoff_to_pbdp_epsilon,
    zcdp_to_pbdp_delta,
)
from stirred.loss.argument_checks import Number, finite, probability
from stirred.semantics.belief_bounds import highest_posterior, lowest_posterior
from stirred.semantics.pictures.panels import Panels

WORLDS = "one person's record as it was collected, or any other record in its place, all other records being known"
"""The counterfactual of the captions unless another is told: one record is replaced (bounded neighbours)."""

FALSE_ALARM = "probability of a false alarm"
DETECTION = "probability of detection (power)"

_TINY = (float(f"{m}e-{k}") for k in (6, 5, 4, 3) for m in range(1, 10))
LEVELS = (0.0, *_TINY, *(k / 400 for k in range(4, 80)), *(k / 100 for k in range(20, 101)))
"""False-alarm probabilities from 0 to 1, dense near 0, where curves are steep and those of interest lie."""

PRIORS = tuple(sorted({*(k / 50 for k in range(51)), *(1 / (1 + np.exp(np.linspace(-14, 14, 113)))).tolist()}))
"""From 0 to 1, dense near both."""

_FEW = 100  # a curve of at most so many vertices is drawn with all of them
_BEYOND = 2.0  # where a curve ends at some delta, the axis goes so many times as far as to its middle
_NEAREST = 1e-9  # the smallest epsilon at which a curve may end
_FAR, _FARTHEST = 20.0, 2000.0  # where epsilons end if no curve ends before, and the farthest at which one may

# -- what a picture is ---------------------------------------------------------------------------------------


@brief
@dataclass(frozen=True)
class Line:
    """Points from left to right. ``words`` say what the line is, where its name is not enough."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    words: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(map(float, self.x)))
        object.__setattr__(self, "y", tuple(map(float, self.y)))
        _not_empty("the name of a line", self.name)
        if len(self.x) != len(self.y) or len(self.x) < 2:
            raise errors.not_a_curve("line", "give as many y as x, and at least two")
        if not all(map(math.isfinite, (*self.x, *self.y))):
            raise errors.not_a_curve("line", "every number must be finite")
        if any(left > right for left, right in zip(self.x, self.x[1:], strict=False)):
            raise errors.not_a_curve("line", "x must not decrease")


@dataclass(frozen=True)
class Point:
    """One point of a picture that is marked, and the words beside it."""

    x: float
    y: float
    words: str

    def __post_init__(self) -> None:
        for one in ("x", "y"):
            object.__setattr__(self, one, finite(f"{one} of a point", getattr(self, one)))
        _not_empty("the words of a point", self.words)


@brief
@dataclass(frozen=True)
class Picture:
    """Lines over two axes. Lines of one name belong together: they are drawn alike, with one entry in the legend.

    ``name`` is that of the files it is saved to. With ``diagonal`` y = x is shown, and both axes go from 0 to 1.
    ``guarantee`` says which guarantee the numbers are of (:mod:`stirred.semantics.sentences.formatting`); it is drawn
    below the subtitle. ``points`` are answers that somebody asked for, drawn on the lines with their numbers.

    >>> Picture("a-guess", "A guess", "", "level", "power", (Line("blind", (0, 1), (0, 1)),)).to_fields()["lines"]
    [{'name': 'blind', 'x': [0.0, 1.0], 'y': [0.0, 1.0], 'dashed': False, 'words': ''}]
    """

    name: str
    title: str
    subtitle: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_log: bool = False
    y_log: bool = False
    diagonal: bool = False
    caption: str = ""
    guarantee: str = ""
    points: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "points", tuple(self.points))
        _named(self.name, self.title)
        _not_empty("lines", self.lines)
        if self.diagonal and (self.x_log or self.y_log):
            raise errors.parameter_out_of_range("diagonal", True, "left out on a logarithmic axis")
        for line in self.lines:
            if (self.x_log and min(line.x) <= 0) or (self.y_log and min(line.y) <= 0):
                raise errors.not_a_curve(f"line '{line.name}'", "numbers on a logarithmic axis must be above 0")
            if self.diagonal and not all(0 <= number <= 1 for number in (*line.x, *line.y)):
                raise errors.not_a_curve(f"line '{line.name}'", "beside the diagonal numbers are between 0 and 1")
        for point in self.points:
            if (self.x_log and point.x <= 0) or (self.y_log and point.y <= 0):
                raise errors.not_a_curve(f"point '{point.words}'", "numbers on a logarithmic axis must be above 0")

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        lines = [{**asdict(line), "x": list(line.x), "y": list(line.y)} for line in self.lines]
        return {"kind": "lines", **asdict(self), "lines": lines}


@dataclass(frozen=True)
class Bar:
    """One bar; bars of one group share a colour. ``words`` are shown beside it; ``about`` is in the JSON only."""

    name: str
    value: float
    group: str = ""
    words: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        _not_empty("the name of a bar", self.name)
        object.__setattr__(self, "value", finite(f"the bar '{self.name}'", self.value))


@brief
@dataclass(frozen=True)
class Bars:
    """Bars one below the other, in the order given; ``mark`` is a value to compare them with, and its name."""

    name: str
    title: str
    subtitle: str
    x_title: str
    bars: tuple[Bar, ...]
    caption: str = ""
    mark: float | None = None
    mark_words: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bars", tuple(self.bars))
        _named(self.name, self.title)
        _not_empty("bars", self.bars)
        if len({(bar.name, bar.group) for bar in self.bars}) < len(self.bars):
            raise errors.parameter_out_of_range("the name of a bar", "used twice", "of one bar only")
        if self.mark is not None:
            object.__setattr__(self, "mark", finite("mark", self.mark))

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"kind": "bars", **asdict(self), "bars": [asdict(bar) for bar in self.bars]}


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its interval, and the value that is shown beside it."""

    name: str
    lower: float
    value: float
    upper: float
    beside: float

    def __post_init__(self) -> None:
        _not_empty("the name of an interval", self.name)
        for one in ("lower", "value", "upper", "beside"):
            object.__setattr__(self, one, float(getattr(self, one)))
        if not all(map(math.isfinite, (self.lower, self.value, self.upper, self.beside))):
            raise errors.not_a_curve(f"interval '{self.name}'", "every number must be finite")


@brief
@dataclass(frozen=True)
class Intervals:
    """Estimates with intervals, one below the other, each beside another value for the same number."""

    name: str
    title: str
    subtitle: str
    x_title: str
    intervals: tuple[Interval, ...]
    value_words: str = "estimate"
    beside_words: str = "naive"
    caption: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "intervals", tuple(self.intervals))
        _named(self.name, self.title)
        _not_empty("intervals", self.intervals)
        if len({one.name for one in self.intervals}) < len(self.intervals):
            raise errors.parameter_out_of_range("the name of an interval", "used twice", "of one interval only")

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"kind": "intervals", **asdict(self), "intervals": [asdict(one) for one in self.intervals]}


@dataclass(frozen=True)
class GroupedInterval:
    """An estimate with its interval, and within it the part that one source of error alone would give.

    Without an estimate (None) the interval alone is drawn.
    """

    name: str
    group: str
    lower: float
    value: float | None
    upper: float
    inner_lower: float
    inner_upper: float

    def __post_init__(self) -> None:
        _not_empty("the name of an interval", self.name)
        _not_empty("the group of an interval", self.group)
        for one in ("lower", "value", "upper", "inner_lower", "inner_upper"):
            number = getattr(self, one)
            if number is None and one == "value":
                continue
            object.__setattr__(self, one, float(number))
            if not math.isfinite(number):
                raise errors.not_a_curve(f"interval '{self.name}'", "every number must be finite")


@brief
@dataclass(frozen=True)
class GroupedIntervals:
    """Estimates of several groups side by side, a row for each name; each interval thin, its inner part thick.

    ``x_from`` and ``x_to`` are the ends of the axis: what lies beyond is cut off, and drawn up to the edge.
    """

    name: str
    title: str
    subtitle: str
    x_title: str
    intervals: tuple[GroupedInterval, ...]
    x_from: float
    x_to: float
    caption: str = ""
    guarantee: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "intervals", tuple(self.intervals))
        _named(self.name, self.title)
        _not_empty("intervals", self.intervals)
        if len({(one.name, one.group) for one in self.intervals}) < len(self.intervals):
            raise errors.parameter_out_of_range("the name of an interval", "used twice", "of one interval of a group")
        if not self.x_from < self.x_to:
            raise errors.parameter_out_of_range("x_from", self.x_from, "below x_to")

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"kind": "grouped intervals", **asdict(self), "intervals": [asdict(one) for one in self.intervals]}


AnyPicture = Picture | Bars | Intervals | GroupedIntervals | Panels
"""What :mod:`stirred.reports` draws."""


def _named(name: str, title: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise errors.parameter_out_of_range("the name of a picture", repr(name), "lower-case words joined by hyphens")
    _not_empty("the title of a picture", title)


def rounded_up(number: float, digits: int) -> str:
    """A bound as it is shown, rounded up to some digits.

    >>> rounded_up(0.12341, 4), rounded_up(2.0, 4), rounded_up(1.1e-5, 1)
    ('0.1235', '2', '0.00002')
    """
    return f"{Context(prec=digits, rounding=ROUND_UP).create_decimal(repr(number)).normalize():f}"


# -- tests ---------------------------------------------------------------------------------------------------


class Powers(Protocol):
    """Any power curve: those of :mod:`stirred.loss`, and what is made of them."""

    def power(self, level: ArrayLike) -> NDArray[np.float64]:
        """The greatest power of a test with this false-alarm probability."""


def level_power_picture(
    curves: Mapping[str, Powers | tuple[PowerCurve, PowerCurve]],
    *,
    worlds: str = WORLDS,
    caption: str = "",
    dashed: Collection[str] = (),
) -> Picture:
    """Power against false-alarm probability, for each definition or mechanism; the diagonal is a blind guess.

    A pair of curves, as :meth:`stirred.loss.ComposedLoss.power_curve` gives it, is a lower and an upper bound: the
    upper one is drawn, and how far they are apart is said. Lines named in ``dashed`` are drawn with short dashes.
    ``caption`` follows what is said of the ``worlds`` that are told apart.

    >>> from stirred.loss import pure_power
    >>> line = level_power_picture({"pure DP": pure_power(math.log(3))}).lines[0]
    >>> [y for x, y in zip(line.x, line.y) if x in (0.1, 0.25)]
    [0.3..., 0.75]
    """
    _require_known(dashed, curves)
    lines = []
    for name, curve in curves.items():
        words = ""
        if isinstance(curve, tuple):
            lower, curve = curve
            gap = float(np.max(curve.power(LEVELS) - lower.power(LEVELS)))
            words = f"upper bound; at the points drawn the lower one is at most {rounded_up(gap, 1)} below"
        own = curve.points if isinstance(curve, PowerCurve) and len(curve.points) <= _FEW else ()
        levels = tuple(sorted({*LEVELS, *(level for level, _ in own)}))
        lines.append(Line(name, levels, tuple(curve.power(levels).tolist()), name in dashed, words))
    title = "How well can the best test tell two worlds apart?"
    subtitle = "Largest probability of detection, for each probability of a false alarm"
    said = _joined(f"Told apart are {worlds}. On the diagonal a test is a blind guess.", caption)
    shown = tuple(lines)
    return Picture("level-and-power", title, subtitle, FALSE_ALARM, DETECTION, shown, diagonal=True, caption=said)


# -- epsilon and delta ---------------------------------------------------------------------------------------

_DELTAS = {
    "approximate DP": "not the probability of a loss above epsilon, but less",
    "tail of the loss": "the probability of a loss above epsilon, which processing the output can raise",
    "pbdp": "probabilistically bounded DP, at least that probability after any processing of the output",
    "bound from zCDP": "what rho alone promises, whatever the noise",
}


def gaussian_deltas(*, rho: Number | None = None, mu: Number | None = None) -> dict[str, Callable[[float], float]]:
    """Delta as a function of epsilon of Gaussian noise with one of rho and mu = sqrt(2 rho), under each definition.

    From the smallest to the largest (Kifer et al. 2022, sections 5.2 and 5.3, Figure 1).

    >>> {name: round(delta(5), 4) for name, delta in gaussian_deltas(rho=2.63).items()}
    {'approximate DP': 0.0855, 'tail of the loss': 0.1507, 'pbdp': 0.2691, 'bound from zCDP': 0.5863}
    """
    if (rho is None) == (mu is None):
        raise errors.parameter_out_of_range("the number of rho and mu", 2 if mu is not None else 0, "1")
    r = finite("rho", gaussian_to_zcdp(mu or 0) if rho is None else rho)
    m = math.sqrt(2 * r)
    deltas: list[Callable[[float], float]] = [
        lambda epsilon: gaussian_to_approximate(m, epsilon),
        lambda epsilon: gaussian_to_tail(m, epsilon),
        lambda epsilon: gaussian_to_pbdp_delta(m, epsilon),
        lambda epsilon: zcdp_to_pbdp_delta(r, epsilon),
    ]
    return dict(zip(_DELTAS, deltas, strict=True))


def epsilon_delta_picture(
    curves: Mapping[str, Callable[[float], float]],
    *,
    smallest: Number = 1e-10,
    kinks: Collection[float] = (),
    worlds: str = WORLDS,
    caption: str = "",
    dashed: Collection[str] = (),
) -> Picture:
    """Delta against epsilon on a logarithmic axis, down to ``smallest``; each curve is a function of epsilon.

    Epsilons go in round steps from 0 to where the last curve has fallen to ``smallest``, with the ``kinks`` among them.
    """
    least = probability("smallest", smallest)
    if least == 0:
        raise errors.parameter_out_of_range("smallest", smallest, "above 0")
    _require_known(dashed, curves)
    lines = _delta_lines(curves, least, kinks, dashed)
    title, said = "How unlikely is a large privacy loss?", _joined(f"The loss is between {worlds}.", caption)
    x_title, y_title = "epsilon (privacy loss: the natural logarithm of a likelihood ratio)", "delta (probability)"
    subtitle, shown = "Delta for each epsilon", tuple(lines)
    return Picture("epsilon-and-delta", title, subtitle, x_title, y_title, shown, y_log=True, caption=said)


def _delta_lines(
    curves: Mapping[str, Callable[[float], float]],
    least: float,
    kinks: Collection[float] = (),
    dashed: Collection[str] = (),
    may_miss: Collection[str] = (),
) -> list[Line]:
    """Delta at epsilons in round steps, for each curve down to ``least``; some may be below it everywhere."""
    ends = [end for end in (_reaches(curve, least) for curve in curves.values()) if end < _FARTHEST]
    ends = ends or [_BEYOND * end for end in map(_half_way, curves.values()) if end < _FARTHEST]
    epsilons = {*_round_steps(max(ends, default=_FAR)), *kinks}
    lines = []
    for name, curve in curves.items():
        points = [(epsilon, float(curve(epsilon))) for epsilon in sorted(epsilons)]
        points = [(epsilon, delta) for epsilon, delta in points if delta >= least]
        if len(points) < 2 and name in may_miss:
            continue
        if len(points) < 2:
            raise errors.parameter_out_of_range(f"delta of '{name}'", "too small to show", f"above {least:g} somewhere")
        x, y = zip(*points, strict=True)
        lines.append(Line(name, x, y, name in dashed, _DELTAS.get(name, "")))
    return lines


def _reaches(curve: Callable[[float], float], least: float) -> float:
    """About where a curve that falls with epsilon is down to ``least``."""
    end = _NEAREST
    while curve(end) > least and end < _FARTHEST:
        end = min(2 * end, _FARTHEST)
    if end == _NEAREST or curve(end) > least:
        return end
    low = end / 2
    for _ in range(7):
        middle = math.sqrt(low * end)
        low, end = (middle, end) if curve(middle) > least else (low, middle)
    return end


def _half_way(curve: Callable[[float], float]) -> float:
    """About where a curve that never falls below some delta is half way down to it, on a logarithmic axis; the
    farthest epsilon where it starts lower."""
    middle = math.sqrt(curve(_FARTHEST))
    return _reaches(curve, middle) if curve(0.0) > middle else _FARTHEST


def _round_steps(end: float) -> list[float]:
    """From 0 to a little beyond ``end`` in 150 to 375 steps of 1, 2.5 or 5 times a power of ten, as decimals."""
    power = math.floor(math.log10(end / 150))
    factor = max(m for m in (1, 2.5, 5) if m * 10.0**power <= end / 150)
    return [float(f"{factor * k}e{power}") for k in range(math.ceil(end / (factor * 10.0**power)) + 1)]


# -- beliefs -------------------------------------------------------------------------------------------------

_BELIEFS = (
    "Above the diagonal is the highest belief, below it the lowest; on it nothing changes. Beliefs are compared with "
    "the person's own record in the data and with one drawn in its place from what was believed before, all other "
    "records being known."
)
_TRUE = "If the record is the true one, each line is crossed with at most the probability named."


def belief_picture(epsilons: Sequence[Number], *, caption: str = "") -> Picture:
    """The highest and lowest posterior against the prior under pure epsilon-DP, everybody else's record being known.

    The odds move by at most a factor e^epsilon either way (Kifer et al. 2022, Theorem 7.1), so that from a prior q the
    posterior is at most q e^epsilon / (1 - q + q e^epsilon).

    >>> line = belief_picture([math.log(3)]).lines[0]
    >>> line.name, round(line.y[line.x.index(0.5)], 12)
    ('epsilon = 1.099', 0.75)
    """
    return _beliefs([(finite("epsilon", epsilon), "") for epsilon in epsilons], caption)


def likely_belief_picture(
    curve: TradeOff, deltas: Sequence[Number] = (0.05, 0.01, 0.001), *, caption: str = ""
) -> Picture:
    """The highest posterior against the prior for a trade-off function; for each delta it is passed with at most delta.

    The epsilons are those of pbdp. With the rest known, the law of the output given a record and its mixture over all
    other records are a pair within the same trade-off function, so the odds of the true record rise by more than
    e^epsilon with probability at most delta; Theorem 7.4 of Kifer et al. (2022) says it of the probability. They fall
    by more with a probability of at most e^-epsilon delta.

    >>> from stirred.loss import GaussianCurve
    >>> likely_belief_picture(GaussianCurve(math.sqrt(5.26)), [0.05]).lines[0].name
    'epsilon = 7.106, but for a probability of 0.05'
    """
    named = [(finite("epsilon", tradeoff_to_pbdp_epsilon(curve, delta)), float(delta)) for delta in deltas]
    return _beliefs([(e, f", but for a probability of {delta:g}") for e, delta in named], _joined(_TRUE, caption))


def true_record_picture(
    noise: tuple[PowerCurve, PowerCurve],
    others: Mapping[str, Callable[[float], float]],
    *,
    name: str = "the noise of this mechanism",
    smallest: Number = 1e-10,
    caption: str = "",
) -> Picture:
    """The probability that the belief in the true record rises by a factor above e^epsilon, against epsilon.

    ``noise`` holds curves below and above the power curve of a mechanism, as
    :meth:`stirred.loss.ComposedLoss.power_curve` gives them; the two lines enclose the curve of Theorem 7.4 of Kifer et
    al. (2022) for its own noise. ``others`` are drawn beside them.

    >>> from stirred.loss import pure_power
    >>> picture = true_record_picture((pure_power(1), pure_power(1.5)), {"rho = 1": lambda e: zcdp_to_pbdp_delta(1, e)})
    >>> [line.name for line in picture.lines]
    ['rho = 1', 'the noise of this mechanism, upper bound', 'the noise of this mechanism, lower bound']
    """
    least = probability("smallest", smallest)
    if least == 0:
        raise errors.parameter_out_of_range("smallest", smallest, "above 0")
    below, above = noise
    own = {f"{name}, upper bound": _ray_power(above), f"{name}, lower bound": _ray_power(below)}
    lines = _delta_lines({**others, **own}, least, dashed=own, may_miss=own)
    title = "How unlikely is a large change of the belief in the true record?"
    subtitle = "The probability of a larger factor than e^epsilon, at most"
    x_title = "epsilon (natural logarithm of the factor between beliefs with the record and with one redrawn)"
    said = _joined("The belief is that of somebody whose prior about everyone else is correct (Theorem 7.4).", caption)
    y_title, shown = "delta (probability)", tuple(lines)
    return Picture("belief-in-the-true-record", title, subtitle, x_title, y_title, shown, y_log=True, caption=said)


def _ray_power(curve: PowerCurve) -> Callable[[float], float]:
    """Delta of pbdp as a function of epsilon, for a curve of many vertices: where it crosses power = e^epsilon level.

    The same as :func:`stirred.loss.tradeoff_to_pbdp_delta`, with the vertices looked up and not gone through.
    """
    levels, powers = np.array(curve.points).T
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilons = np.where(levels > 0, np.log(powers) - np.log(levels), math.inf)

    def delta(epsilon: float) -> float:
        if epsilon == 0:
            return 1.0
        last = int(np.searchsorted(-epsilons, -epsilon, side="right")) - 1
        if last == len(levels) - 1:
            return 1.0
        slope = math.exp(-epsilon)
        here, there = levels[last] - slope * powers[last], levels[last + 1] - slope * powers[last + 1]
        part = here / (here - there) if here < 0 else 0.0
        return float(powers[last] + (powers[last + 1] - powers[last]) * part)

    return delta


def _beliefs(epsilons: list[tuple[float, str]], caption: str) -> Picture:
    lines = []
    for e, words in epsilons:
        name = f"epsilon = {rounded_up(e, 4)}{words}"
        lines += [Line(name, PRIORS, tuple(to(PRIORS, e).tolist())) for to in (highest_posterior, lowest_posterior)]
    title = "How far can the release move a belief about one person?"
    subtitle = "Highest and lowest probability after the release, for each probability before it"
    before = "belief in a record before the release (prior probability)"
    after, said = "belief after the release (posterior probability)", _joined(_BELIEFS, caption)
    return Picture("beliefs", title, subtitle, before, after, tuple(lines), diagonal=True, caption=said)


# -- helpers -------------------------------------------------------------------------------------------------


def _joined(first: str, second: str) -> str:
    return f"{first} {second}" if second else first


def _not_empty(what: str, value: Sized) -> None:
    if not len(value):
        raise errors.parameter_out_of_range(what, "empty", "something to show")


def _require_known(names: Collection[str], curves: Mapping[str, object]) -> None:
    _not_empty("curves", curves)
    for name in names:
        if name not in curves:
            raise errors.unknown_choice("line", name, list(curves))
