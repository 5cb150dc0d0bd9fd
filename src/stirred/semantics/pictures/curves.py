"""Pictures of guarantees: the power of tests, how delta falls with epsilon, how far a belief can move.

Each is a :class:`~stirred.semantics.pictures.shapes.Picture` whose caption names the counterfactual: which two datasets
somebody tries to tell apart. :mod:`stirred.semantics.explaining` has the bars of concerns, and
:mod:`stirred.semantics.pictures.readable` another axis where nothing could be read off these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import ROUND_UP, Context
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
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
from stirred.semantics.pictures.shapes import Line, Picture

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


def _require_known(names: Collection[str], curves: Mapping[str, object]) -> None:
    if not curves:
        raise errors.parameter_out_of_range("curves", "empty", "something to show")
    for name in names:
        if name not in curves:
            raise errors.unknown_choice("line", name, list(curves))
