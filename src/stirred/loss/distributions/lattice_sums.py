"""Laws of a loss on the lattice of multiples of one step, below and above the law itself, and sums of them.

One law is smaller and one larger in the convex order of e^-L. *Above*, each atom is split over the two points of the
lattice around it so that its mass and its mean of X = e^-L stay (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi
2022, "connect the dots"): a spread, which raises the expectation of every convex function of X. Each split adds a
variance of at most a quarter of the step squared, so that the error falls with the square of the step.

*Below*, the largest convex function with kinks on the lattice that is nowhere above C(k) = E (k - X)_+ is followed
from k = 0: from each point of the lattice the line to the tangent at C, until the tangent point is passed. Mass moves
to the next larger X on the lattice, and what the mean of X gained is taken back from the next atoms. The error is of
the order of the step times the gap between atoms, and falls with the square of the step where atoms are dense.

Sums of independent losses are computed by Fourier transforms, with a bound on every error. The law of a loss is
tilted: its masses are multiplied by e^(theta L) and divided by their sum. The law of a sum of tilted losses is the
tilted law of the sum, and theta is chosen so that the tilted sum has its mass where delta is asked for. A transform's
error is relative to the whole; tilted back it is relative to delta, however small delta is.

Errors, and what bounds them:

* *Transforms.* The Euclidean norm of the error is at most :func:`transform_error` times that of the result (Higham
  2002, Theorem 24.2, with room for other radices than 2). Spectra of laws are at most 1 in absolute value, so those of
  a product of n factors add up, and powers add n roundings. By Cauchy and Schwarz a weighted sum of the result is
  wrong by at most the norm of the weights times that of the error.
* *Wrapping.* The transform is periodic. What the tilted sum has outside the window is bounded by Chernoff's bound.
* *Rounding.* All other sums have terms of one sign and are good to a relative number of roundings, which is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._lazy import later
from stirred.loss.distributions.loss_distribution import UNIT, Array, Atoms

CONTRACTION = 1e-13
"""Relative error allowed for the masses that the lower law is made of; they are differences of nearby slopes."""


@dataclass(frozen=True)
class Masses:
    """Masses at the lattice points first, first + 1, ..., of a loss that is added ``count`` times."""

    first: int
    masses: Array
    count: int


def split(part: Atoms, count: int, step: float, offset: float = 0.0) -> Masses:
    """A law above ``part`` on the lattice that begins at ``offset``."""
    losses = _relative(part, step, offset)
    below = np.floor(losses / step)
    share = np.clip(np.expm1(below * step - losses) / math.expm1(-step), 0, 1)
    at = below.astype(np.int64)
    first, size = int(at[0]), int(at[-1] - at[0]) + 2
    masses: Array = np.bincount(at - first, weights=part.masses * (1 - share), minlength=size).astype(np.float64)
    masses += np.bincount(at - first + 1, weights=part.masses * share, minlength=size)
    return _trimmed(first, masses * (1 + part.error + 1e-14), count)


def contracted(part: Atoms, count: int, step: float, offset: float = 0.0) -> Masses:
    """A law below ``part`` on the lattice that begins at ``offset``."""
    room = 2 * len(part.losses) + 2
    at, mass = np.empty(room, dtype=np.int64), np.empty(room)
    number = _contract(_relative(part, step, offset)[::-1].copy(), part.masses[::-1].copy(), step, at, mass)
    at, mass = at[:number], mass[:number]
    first = int(np.min(at))
    masses: Array = np.bincount(at - first, weights=mass).astype(np.float64)
    return _trimmed(first, masses * (1 - part.error - CONTRACTION), count)


def placed(part: Atoms, count: int, step: Fraction) -> tuple[Masses, Masses]:
    """Below and above a law that is on the lattice already, its first atom at 0; no mass moves."""
    stride = 1 if part.step is None else int(part.step / step)
    masses = np.zeros((len(part.masses) - 1) * stride + 1)
    masses[::stride] = part.masses
    return Masses(0, masses * (1 - part.error), count), Masses(0, masses * (1 + part.error), count)


def common_step(parts: list[tuple[Atoms, int]]) -> Fraction | None:
    """The coarsest lattice that all parts are on, up to where each begins; none where a part is on no lattice."""
    step: Fraction | None = None
    for part, _ in parts:
        if len(part.masses) == 1:
            continue
        if part.step is None:
            return None
        if step is None:
            step = part.step
        else:
            a, b = step, part.step
            over = a.denominator * b.denominator
            step = Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), over)
    return Fraction(1) if step is None else step


def _relative(part: Atoms, step: float, offset: float) -> Array:
    """Losses from where the lattice begins. Those on it but for rounding are put on it; slack is left for that."""
    losses = part.losses - offset
    nearest = np.round(losses / step) * step
    rounding = 16 * UNIT * max(abs(float(part.losses[0])), abs(float(part.losses[-1])))
    return np.where(np.abs(losses - nearest) <= rounding, nearest, losses)


def _trimmed(first: int, masses: Array, count: int) -> Masses:
    some = np.flatnonzero(masses)
    return Masses(first + int(some[0]), masses[some[0] : some[-1] + 1], count)


@kernel
def _contract(losses, masses, step, at, mass):  # type: ignore[no-untyped-def]
    """Fill ``at`` and ``mass`` with the lower law, for losses that descend; return how many points it has.

    At a point a of the lattice: ``gap`` is C minus the line drawn so far, in units of e^-a; ``excess`` is the line's
    slope minus that of C beyond a. Both start anew from a tangent point, so that rounding does not add up.
    """
    size = len(losses)
    number = 0
    k = 0
    anchor = math.floor(losses[0] / step)
    gap = 0.0
    excess = 0.0
    while True:
        a = anchor * step
        while k < size and losses[k] >= a:
            gap -= masses[k] * math.expm1(a - losses[k])
            excess -= masses[k]
            k += 1
        gap = max(gap, 0.0)
        # The tangent to C from the end of the line, over the atoms ahead; or the line that C approaches.
        slope = 0.0
        reached = 0.0
        height = gap
        tangent = -1
        for i in range(k, size):
            if a - losses[i] > 600:  # beyond floats, and no tangent before: what is left is not worth following
                break
            u = math.expm1(a - losses[i])
            height += slope * (u - reached)
            reached = u
            if slope + masses[i] >= height / u:
                tangent = i
                break
            slope += masses[i]
        new = slope if tangent < 0 else height / reached
        at[number] = anchor
        mass[number] = max(new - excess, 0.0)
        number += 1
        if tangent < 0:
            return number
        excess = new - slope
        k = tangent
        anchor = min(anchor - 1, math.floor(losses[k] / step))
        gap = excess * math.expm1(anchor * step - losses[k])


fft = later("scipy.fft")

Complex = NDArray[np.complex128]

OUTSIDE = 1e-14
"""How much of the tilted law the window may leave out, where it can grow."""

ROUGH = 1e-7
NOTHING = 1e-290
MOST_REFINED = 64
MOST_WORK = 1 << 20
"""The part of a result by which a transform may be wrong before another tilt is tried; errors that never matter; how
many further tilts are tried in one stretch, and of how many points together."""

MOST_POINTS = 1 << 22
COARSE = 1024
STEEPEST = 60.0
"""The longest transform; into how many bins a law is gathered for bounds on its tails; and theta times the step at
most, beyond which only the largest loss is left."""

_REACHES = (7.5, 8, 8.5, 9, 10, 11, 12, 14, 17, 21, 27, 35, 50, 70, 100, 150, 200, 300, 500, 1000)
_RATES = np.concatenate([np.geomspace(0.002, 0.2, 7), np.geomspace(0.25, 32, 15)])


def transform_error(points: int) -> float:
    """A bound on the relative error of a transform, in the Euclidean norm."""
    return (10 * math.log2(points) + 20) * UNIT


@dataclass(frozen=True)
class Sum:
    """A sum of independent losses, each with a law on the lattice of multiples of ``step``."""

    parts: tuple[Masses, ...]
    step: float

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The first and last lattice points that the sum can reach."""
        low = sum(part.count * part.first for part in self.parts)
        return low, low + sum(part.count * (len(part.masses) - 1) for part in self.parts)

    @cached_property
    def mass(self) -> float:
        """The mass of the sum: the product of those of its parts."""
        return math.prod(float(np.sum(part.masses)) ** part.count for part in self.parts)

    @cached_property
    def _bins(self) -> list[tuple[Array, Array, Array, int]]:
        """Each part in bins: the lowest and highest loss of a bin, and its mass."""
        found = []
        for part in self.parts:
            width = -(-len(part.masses) // COARSE)
            masses = np.add.reduceat(part.masses, np.arange(0, len(part.masses), width))
            low = (part.first + width * np.arange(len(masses), dtype=np.float64)) * self.step
            found.append((low, low + (width - 1) * self.step, masses, part.count))
        return found

    def moments(self, theta: float) -> tuple[float, float]:
        """Mean and standard deviation of the tilted sum, as well as the bins tell."""
        mean = variance = 0.0
        for low, high, masses, count in self._bins:
            middle = (low + high) / 2
            weights = masses * np.exp(theta * (middle - middle[-1 if theta > 0 else 0]))
            weights /= weights.sum()
            average = float(np.sum(weights * middle))
            mean += count * average
            variance += count * float(np.sum(weights * (middle - average) ** 2))
        return mean, math.sqrt(variance)

    def log_generating(self, thetas: Array, upwards: bool) -> Array:
        """A bound from above on ln E e^(theta L), for positive thetas (upwards) or negative ones."""
        total = np.zeros(len(thetas))
        for low, high, masses, count in self._bins:
            exponents = np.multiply.outer(thetas, high if upwards else low)
            largest = exponents.max(axis=1)
            total += count * (largest + np.log(np.sum(np.exp(exponents - largest[:, None]) * masses, axis=1)))
        return total

    def tilt_for(self, mean: float, start: float) -> float:
        """A theta >= start whose tilted sum has about this mean, if there is one, by Newton's rule between bounds."""
        low, high = start, math.inf
        theta = start
        for _ in range(60):
            found, deviation = self.moments(theta)
            if abs(found - mean) <= 0.01 * max(deviation, self.step):
                break
            low, high = (theta, high) if found < mean else (low, theta)
            newton = theta + (mean - found) / max(deviation, 1e-9 * self.step) ** 2
            if math.isinf(high):
                theta = min(newton, 2 * theta + 4 / max(deviation, self.step))
            else:
                theta = newton if low < newton < high else (low + high) / 2
        return min(theta, STEEPEST / self.step)


@dataclass(frozen=True)
class Window:
    """Bounds on the sum of p (1 - e^(epsilon - l))_+ over the atoms l of a sum, at epsilons from ``first`` on."""

    first: int
    lower: Array
    upper: Array
    rough: NDArray[np.bool_]
    """Where the error of the transform is a part of the result that shows: the mean of the tilt is too far away."""
    points: int
    """The length of the transform."""


def refined(total: Sum, found: Window) -> Window:
    """Bounds that fall, with those of further tilts wherever the first was rough."""
    lower, upper, rough = found.lower.copy(), found.upper.copy(), found.rough.copy()
    work = 0
    for _ in range(MOST_REFINED):
        some = np.flatnonzero(rough)
        if len(some) == 0 or work > MOST_WORK:
            break
        breaks = np.flatnonzero(np.diff(some) > 1)
        run = some[: breaks[0] + 1] if len(breaks) else some
        low, middle, high = ((found.first + int(at)) * total.step for at in (run[0], run[len(run) // 2], run[-1]))
        more = window(total, total.tilt_for(middle, 0.0), low, high)
        work += more.points
        here = slice(max(0, more.first - found.first), more.first - found.first + len(more.lower))
        there = slice(max(0, found.first - more.first), max(0, found.first - more.first) + len(lower[here]))
        lower[here] = np.maximum(lower[here], more.lower[there])
        upper[here] = np.minimum(upper[here], more.upper[there])
        rough[here] &= more.rough[there]
        rough[run[len(run) // 2]] = False  # no tilt is better than its own
    return Window(found.first, np.maximum.accumulate(lower[::-1])[::-1], np.minimum.accumulate(upper), rough, work)


def window(total: Sum, theta: float, low: float, high: float) -> Window:
    """Bounds at the lattice points between losses ``low`` and ``high``, from one tilt, whose mean should be there."""
    from scipy.signal import lfilter  # takes a second to import, and few need it

    step = total.step
    tilted, log_sums, rounding = _tilted(total, theta)
    log_scale = float(sum(part.count * log_sum for part, log_sum in zip(total.parts, log_sums, strict=True)))
    begin, points, outside = _extent(total, theta, log_scale, low, high)
    law, error = _transformed(total, tilted, begin, points)
    # d_j, the sum over i > j of law_i r^(i-j) (1 - s^(i-j)) with r = e^(-theta step), s = e^-step, from the end, by
    # d_j = r d_(j+1) + r (1 - s) (law_(j+1) + b_(j+1)), where b_j is the sum of law_i (r s)^(i-j): no differences.
    r, s = math.exp(-theta * step), math.exp(-step)
    backwards = law[::-1]
    b = lfilter([0, r * s], [1, -r * s], backwards)
    d = lfilter([0, -r * math.expm1(-step)], [1, -r], backwards + b)[::-1]
    away = step * np.arange(1, points + 1)
    weights = _norm(np.exp(-theta * away) * np.expm1(-away))
    at = np.arange(max(begin, math.floor(low / step)), math.ceil(high / step) + 2)
    inside = at[at < min(begin + points, total.ends[1])]  # from the last point on there is nothing above
    d = d[inside - begin]
    relative = rounding + (8 * points + 64 + 4 * abs(log_scale)) * UNIT + 8 * UNIT * theta * np.abs(inside * step)
    # Where this is cut off the bounds are 0 and 1 all the same.
    spread = np.exp(np.minimum(700, log_scale - theta * step * inside))
    absolute = error * weights + outside
    lower, upper, rough = np.zeros(len(at)), np.zeros(len(at)), np.zeros(len(at), dtype=np.bool_)
    lower[: len(inside)] = spread * np.maximum(0, d * (1 - relative) - absolute)
    upper[: len(inside)] = spread * (d * (1 + relative) + absolute) * (1 + 8 * UNIT)
    rough[: len(inside)] = (absolute > ROUGH * d) & (spread * absolute > NOTHING)
    return Window(int(at[0]), lower, upper, rough, points)


def _tilted(total: Sum, theta: float) -> tuple[list[Array], list[float], float]:
    """The tilted masses of each part, the logarithms of the sums divided by, and the relative error of it all."""
    masses, log_sums, rounding = [], [], 0.0
    for part in total.parts:
        exponents = theta * total.step * (part.first + np.arange(len(part.masses)))
        with np.errstate(divide="ignore"):
            largest = float(np.max(exponents + np.log(part.masses)))
        tilted = part.masses * np.exp(exponents - largest)
        one = float(tilted.sum())
        masses.append(tilted / one)
        log_sums.append(largest + math.log(one))
        rounding += part.count * (8 + 4 * max(abs(exponents[0]), abs(exponents[-1])) + 2 * abs(largest)) * UNIT
    return masses, log_sums, rounding


def _extent(total: Sum, theta: float, log_scale: float, low: float, high: float) -> tuple[int, int, float]:
    """Where the window begins, how many points it has, and what of the tilted law is outside at most."""
    step, (bottom, top) = total.step, total.ends
    mean, deviation = total.moments(theta)
    deviation = max(deviation, step)
    rates = _RATES / deviation
    up = total.log_generating(theta + rates, True) - log_scale
    below = theta - rates
    down = np.where(
        below < 0,
        total.log_generating(np.minimum(below, 0), False),
        total.log_generating(np.maximum(below, 0), True),
    )
    down -= log_scale
    chosen: tuple[int, int, float] | None = None
    for reach in _REACHES:
        begin = max(bottom, min(math.floor((mean - reach * deviation) / step), math.floor(low / step) - 1))
        end = min(top, max(math.ceil((mean + reach * deviation) / step), math.ceil(high / step) + 2))
        if end - begin >= MOST_POINTS:
            if chosen is not None:
                break
            begin = max(bottom, min(math.floor(mean / step) - MOST_POINTS // 2, top - MOST_POINTS + 1))
            end = begin + MOST_POINTS - 1
        above = math.exp(min(0.0, float(np.min(up - rates * (end + 1) * step)))) if end < top else 0.0
        under = math.exp(min(0.0, float(np.min(down + rates * (begin - 1) * step)))) if begin > bottom else 0.0
        chosen = begin, fft.next_fast_len(max(2, end - begin + 1), real=True), above + under
        if above + under <= OUTSIDE:
            break
    assert chosen is not None
    return chosen


def _transformed(total: Sum, tilted: list[Array], begin: int, points: int) -> tuple[Array, float]:
    """The tilted law of the sum at ``points`` lattice points, and a bound on the Euclidean norm of its error."""
    spectrum: Complex | None = None
    one = transform_error(points)
    error, factors = 0.0, 0
    for part, masses in zip(total.parts, tilted, strict=True):
        folded = masses
        if len(masses) > points:
            folded = np.bincount(np.arange(len(masses)) % points, weights=masses, minlength=points).astype(np.float64)
        power = _power(fft.rfft(folded, points), part.count)
        spectrum = power if spectrum is None else spectrum * power
        error += part.count * one * _norm(folded)
        factors += part.count
    assert spectrum is not None
    law = fft.irfft(spectrum, points)
    norm = _norm(law) + error
    # The largest error of a spectrum is at most its norm, which is that of the law times the root of their number.
    growth = math.exp(min(700.0, error * math.sqrt(points)))
    error = (error + (one + 4 * factors * UNIT) * norm) * growth + 1e-290
    # Parts stood at the beginning of the transform, so the law of the sum stands from where all begin.
    low = total.ends[0]
    law = np.roll(law, low - begin)
    return np.maximum(law, 0), error


def _power(spectrum: Complex, count: int) -> Complex:
    """The spectrum to the power ``count``, by squaring."""
    result: Complex | None = None
    while True:
        if count & 1:
            result = spectrum if result is None else result * spectrum
        count >>= 1
        if not count:
            assert result is not None
            return result
        spectrum = spectrum * spectrum


def _norm(values: Array) -> float:
    return math.sqrt(float(np.sum(values * values)))
