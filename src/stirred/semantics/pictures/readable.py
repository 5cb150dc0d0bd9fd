"""Pictures that can be read: another axis where curves lie along the frame or the diagonal, or a sentence instead.

A power curve or a belief is *clear* by the largest distance that any of its points keeps from the frame and from the
diagonal, the side of the square being 1. Below :data:`CLEAR` nothing can be read off it. Then the gain over a blind
guess is drawn, or a logarithmic axis near 0; where that shows nothing either, :class:`NotDrawn` says so in words.

Keep in mind: the numbers are the same in every form. Only axes change, and their titles say which.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stirred.loss import PowerCurve
from stirred.semantics.belief_bounds import highest_posterior
from stirred.semantics.pictures.curves import WORLDS, Powers, level_power_picture, rounded_up
from stirred.semantics.pictures.shapes import Line, Picture, Point

CLEAR = 0.02
"""The least distance from frame and diagonal, as a share of the side, at which a curve can be read."""

LEAST = 1e-12
"""The smallest probability that a logarithmic axis shows; nobody tests or believes at smaller ones."""

_SAME = 0.004
"""Lines this near each other look like one."""

_NEAR = 0.01
"""A point this near a line is on it."""

_STEPS = 20
"""Points between two of a line at which its distance from the frame is looked at."""


Curves = Mapping[str, Powers | tuple[PowerCurve, PowerCurve]]
"""Power curves by name; a pair is a lower and an upper bound."""


@dataclass(frozen=True)
class NotDrawn:
    """The name of a picture that would show nothing, and the sentence that stands in its place."""

    name: str
    words: str


def clearance(lines: Iterable[Line]) -> float:
    """How far the lines get from the frame and the diagonal of the unit square, at the point where it is farthest.

    >>> round(clearance([Line("half way", (0, 0.25, 1), (0, 0.75, 1))]), 3)
    0.25
    >>> clearance([Line("the frame", (0, 0, 1), (0, 1, 1)), Line("the diagonal", (0, 1), (0, 1))])
    0.0
    """
    farthest = 0.0
    for line in lines:
        places = np.linspace(0, len(line.x) - 1, (len(line.x) - 1) * _STEPS + 1)
        x, y = (np.interp(places, range(len(line.x)), numbers) for numbers in (line.x, line.y))
        inside = np.minimum.reduce([x, 1 - x, y, 1 - y, np.abs(y - x) / math.sqrt(2)])
        farthest = max(farthest, float(np.max(inside)))
    return farthest


def above_diagonal(lines: Iterable[Line]) -> float:
    """The largest difference between y and x."""
    return max(float(np.max(np.abs(np.subtract(line.y, line.x)))) for line in lines)


# -- tests ---------------------------------------------------------------------------------------------------


def readable_powers(
    curves: Curves,
    *,
    worlds: str = WORLDS,
    caption: str = "",
    dashed: Collection[str] = (),
    guarantee: str = "",
    points: Sequence[Point] = (),
) -> Picture | NotDrawn:
    """Power against false-alarm probability on axes that show it, or a sentence; ``points`` are to be marked.

    >>> from stirred.loss import pure_power
    >>> readable_powers({"epsilon = 1": pure_power(1)}).y_title
    'probability of detection (power)'
    >>> readable_powers({"epsilon = 0.001": pure_power(0.001)}).y_title
    'probability of detection above that of a blind guess'
    >>> readable_powers({"epsilon = 15": pure_power(15)}).x_log
    True
    >>> print(readable_powers({"epsilon = 500": pure_power(500)}).words)
    No picture of tests: at one false alarm in a million million already, a test may detect the change with a \
probability above 0.5, so nothing practical is ruled out.
    """
    usual = level_power_picture(curves, worlds=worlds, caption=caption, dashed=dashed)
    usual = replace(usual, guarantee=guarantee, points=tuple(points))
    if clearance(usual.lines) >= CLEAR:
        return _worded(usual, "along the diagonal, where a test is a blind guess", _AT_FRAME)
    gain = above_diagonal(usual.lines)
    if gain <= LEAST:
        return NotDrawn(usual.name, "No picture of tests: no test is better than a blind guess.")
    if gain < 0.5:
        return _less_diagonal(
            usual,
            "Largest probability of detection less that of a false alarm: hardly better than a blind guess",
            "probability of detection above that of a blind guess",
            usual.caption.replace(_DIAGONAL, "A blind guess is at 0."),
        )
    return _at_small_levels(usual, curves)


def _less_diagonal(usual: Picture, subtitle: str, y_title: str, caption: str) -> Picture:
    """Each y less its x, on an axis of their own."""
    lines = tuple(
        replace(line, y=tuple(max(above - level, -1.0) for above, level in zip(line.y, line.x, strict=True)))
        for line in usual.lines
    )
    points = tuple(replace(point, y=point.y - point.x) for point in usual.points)
    return replace(
        usual, subtitle=subtitle, y_title=y_title, lines=lines, points=points, diagonal=False, caption=caption
    )


def _near_zero(usual: Picture, lines: tuple[Line, ...], left: Sequence[str], subtitle: str, caption: str) -> Picture:
    """These lines on a logarithmic axis; those that are ``left`` out are named below."""
    said = f" Not drawn, since it lies along the upper edge: {'; '.join(left)}." if left else ""
    return replace(
        usual,
        subtitle=subtitle,
        x_title=f"{usual.x_title}, logarithmic",
        lines=lines,
        points=_on(lines, usual.points),
        x_log=True,
        diagonal=False,
        caption=caption + said,
    )


def _at_small_levels(usual: Picture, curves: Curves) -> Picture | NotDrawn:
    """Powers at levels down to where the curves that can be shown have half of it, on a logarithmic axis."""
    upper = {name: curve[1] if isinstance(curve, tuple) else curve for name, curve in curves.items()}
    levels = np.logspace(math.log10(LEAST), 0, 12 * 20 + 1)
    shown = {name: curve for name, curve in upper.items() if float(curve.power(LEAST)) < 0.5}
    if not shown:
        return NotDrawn(
            usual.name,
            "No picture of tests: at one false alarm in a million million already, a test may detect the change with "
            "a probability above 0.5, so nothing practical is ruled out.",
        )
    powers = {name: curve.power(levels) for name, curve in shown.items()}
    half = min(float(levels[int(np.argmax(power >= 0.5))]) for power in powers.values())
    first = max(LEAST, 10.0 ** (math.floor(math.log10(half)) - 1))
    kept = levels >= first * (1 - 1e-9)
    dashes = {line.name: line for line in usual.lines}
    lines = tuple(
        replace(dashes[name], x=tuple(levels[kept].tolist()), y=tuple(power[kept].tolist()))
        for name, power in powers.items()
    )
    return _near_zero(
        usual,
        lines,
        [name for name in upper if name not in shown],
        "Largest probability of detection, for very small probabilities of a false alarm",
        usual.caption.replace(_DIAGONAL, "The power of a blind guess is the false-alarm probability itself."),
    )


_DIAGONAL = "On the diagonal a test is a blind guess."
_BELIEFS_DIAGONAL = "Above the diagonal is the highest belief, below it the lowest; on it nothing changes."
_AT_FRAME = "along the frame: at almost every false-alarm probability nothing is ruled out"
_BELIEFS_AT_FRAME = "along the frame: almost every belief may become almost certain"


def _worded(usual: Picture, at_diagonal: str, at_frame: str) -> Picture:
    """The picture, with words for lines along the frame or the diagonal beside others that are not, and without the
    points on them."""
    clear = tuple(line for line in usual.lines if clearance([line]) >= CLEAR)
    lines = tuple(
        line
        if line in clear or line.words
        else replace(line, words=at_diagonal if above_diagonal([line]) < 0.5 else at_frame)
        for line in usual.lines
    )
    told = tuple(_beside(line, lines[:at]) for at, line in enumerate(lines))
    return replace(usual, lines=told, points=_on(clear, usual.points))


def _beside(line: Line, others: Sequence[Line]) -> Line:
    """The line, with words where it can hardly be told from another one."""
    for other in others:
        if other.name != line.name and line.words not in (_AT_FRAME, _BELIEFS_AT_FRAME):
            apart = float(np.max(np.abs(np.subtract(line.y, np.interp(line.x, other.x, other.y)))))
            if apart < _SAME:
                said = f"hardly to be told from '{other.name}', at most {rounded_up(apart, 1)} apart"
                return replace(line, words=f"{line.words}; {said}" if line.words else said)
    return line


# -- beliefs -------------------------------------------------------------------------------------------------


def readable_beliefs(usual: Picture, epsilons: Sequence[float]) -> Picture | NotDrawn:
    """A picture of beliefs on axes that show it, or a sentence; ``epsilons`` are those of its names, in their order.

    >>> from stirred.semantics.pictures.curves import belief_picture
    >>> [readable_beliefs(belief_picture([epsilon]), [epsilon]).x_log for epsilon in (1, 12)]
    [False, True]
    >>> readable_beliefs(belief_picture([0.001]), [0.001]).y_title
    'belief after the release less the belief before it'
    >>> print(readable_beliefs(belief_picture([100]), [100]).words)
    No picture of beliefs: a belief of one in a million million may become more likely than not, so nothing practical \
is ruled out.
    """
    if clearance(usual.lines) >= CLEAR:
        return _worded(usual, "along the diagonal: hardly any belief moves", _BELIEFS_AT_FRAME)
    moved = above_diagonal(usual.lines)
    if moved <= LEAST:
        return NotDrawn(usual.name, "No picture of beliefs: the release does not move any belief.")
    if moved < 0.5:
        return _less_diagonal(
            usual,
            "Largest rise and fall of a belief, for each belief before the release",
            "belief after the release less the belief before it",
            usual.caption.replace(_BELIEFS_DIAGONAL, "Above 0 is the largest rise, below it the largest fall."),
        )
    return _small_priors(usual, epsilons)


def _small_priors(usual: Picture, epsilons: Sequence[float]) -> Picture | NotDrawn:
    """The highest beliefs alone, from priors that are small, on a logarithmic axis."""
    first_of = {line.name: line for line in reversed(usual.lines)}
    named = {name: (first_of[name], e) for name, e in zip(reversed(first_of), epsilons, strict=True)}
    shown = {name: (line, e) for name, (line, e) in named.items() if e < -math.log(LEAST)}
    if not shown:
        return NotDrawn(
            usual.name,
            "No picture of beliefs: a belief of one in a million million may become more likely than not, so nothing "
            "practical is ruled out.",
        )
    first = max(LEAST, 10.0 ** (math.floor(-max(e for _, e in shown.values()) / math.log(10)) - 1))
    priors = np.logspace(math.log10(first), 0, 241)
    lines = tuple(
        replace(line, x=tuple(priors.tolist()), y=tuple(highest_posterior(priors, e).tolist()))
        for line, e in shown.values()
    )
    return _near_zero(
        usual,
        lines,
        [name for name in named if name not in shown],
        "Highest probability after the release, from small probabilities before it",
        usual.caption.replace(_BELIEFS_DIAGONAL, "The highest belief is drawn."),
    )


# -- delta ---------------------------------------------------------------------------------------------------


def readable_deltas(usual: Picture) -> Picture | NotDrawn:
    """A picture of delta against epsilon, or a sentence where delta does not change over the whole axis."""
    if any(max(line.y) > 1.05 * min(line.y) for line in usual.lines):
        return usual
    one = usual.lines[0]
    return NotDrawn(
        usual.name,
        f"No picture of delta: up to epsilon = {max(one.x):g} the probability of a larger loss may be "
        f"{max(one.y):.3g}.",
    )


def _on(lines: Sequence[Line], points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that lie on one of the lines."""
    return tuple(
        point
        for point in points
        if any(
            line.x[0] <= point.x <= line.x[-1] and abs(float(np.interp(point.x, line.x, line.y)) - point.y) < _NEAR
            for line in lines
        )
    )
