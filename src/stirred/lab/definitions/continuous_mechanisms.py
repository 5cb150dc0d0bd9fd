"""Mechanisms whose output is a number on the line, over listed datasets: their loss, enclosed (Appendix A.1).

A mechanism is here the law of its output for each dataset (Definition A.1.3), with all intervals as events, which is
the recommended choice (Definition A.1.4). Fewer events make a smaller loss: :meth:`ContinuousMechanism.coarsen` keeps
those between some cuts, one list for each class of comparable datasets if wanted (Definition A.1.2), and with no cut at
all every mechanism has loss 0, whatever it publishes.

How a loss is enclosed. The line is cut into cells. Seen through the cells alone two laws are two finite ones, which are
no further apart: a lower bound. Inside a cell the ratio of the densities lies between two numbers. The finite law that
puts the mass of every cell on these two numbers, with the same total masses, tells more than the densities do (a spread
that keeps the mean, in every cell), so that any divergence between its laws is an upper bound. Cells are halved until
both agree. Laws of one family have closed forms for the ratio, and Gaussian laws of one deviation for some divergences.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._lazy import later
from stirred.loss.argument_checks import SUM_TOLERANCE
from stirred.spec.blocks import Budget, OutputPremetric, lipschitz
from stirred.spec.kinds.kind import Noise
from stirred.spec.order.finite_flavors import Datasets, FiniteFlavor, explicit
from stirred.spec.order.finite_mechanisms import FiniteMechanism, Pair, answer
from stirred.spec.specification import Answer, Flavor, Specification

special = later("scipy.special")

Array = NDArray[np.float64]
Cuts = Sequence[float] | Mapping[str, Sequence[float]]

PRECISE = 1e-7
"""Cells are halved until the bounds are this near to each other, relative to numbers above 1."""
FEWEST, MOST = 32, 8192
"""Cells on each side of a break."""
TAIL = 45.0
"""Half-lives of a tail that are cut into cells; beyond is one more."""
ROUNDED = 1e-12
"""Ratios of densities and totals of masses are rounded by a smaller part."""
FAINT, BLURRED = 1e-290, 1e-12
"""Smaller masses have lost their digits: those of known families, and those of laws of one's own."""


class ContinuousLaw(Protocol):
    """A probability law on the line with a density that is monotone between its breaks, as
    :class:`stirred.limits.Density` is."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """The ends of the line that it lives on, infinite or not, and all points where the density turns or jumps."""

    @property
    def family(self) -> tuple[str, float, float] | None:
        """The name of a known family with its two parameters."""

    def on(self, left: Array, right: Array) -> tuple[Array, Array]:
        """The density at both ends of cells that hold no break inside."""


@dataclass(frozen=True)
class NoiseLaw:
    """Laplace or normal noise about a location; ``scale`` is that of Laplace noise, or the standard deviation."""

    name: Noise
    location: float
    scale: float

    def __post_init__(self) -> None:
        if self.name not in ("laplace", "normal"):
            raise errors.unknown_choice("noise", self.name, ["laplace", "normal"])
        if not (math.isfinite(self.location) and 0 < self.scale < math.inf):
            raise errors.parameter_out_of_range("scale", self.scale, "positive and finite, about a finite location")

    @property
    def breaks(self) -> tuple[float, ...]:
        """The line, and the peak."""
        return -math.inf, float(self.location), math.inf

    @property
    def family(self) -> tuple[str, float, float]:
        """The name and the two parameters."""
        return self.name, float(self.location), float(self.scale)

    def on(self, left: Array, right: Array) -> tuple[Array, Array]:
        """The density at both ends of cells."""
        return self._density(left), self._density(right)

    def between(self, left: Array, right: Array) -> Array:
        """The mass between two points, precise in both tails."""
        x, y = (np.asarray(left) - self.location) / self.scale, (np.asarray(right) - self.location) / self.scale
        flipped = x > 0
        x, y = np.where(flipped, -y, x), np.where(flipped, -x, y)  # now most of a cell lies to the left of the peak
        if self.name == "normal":
            return np.asarray(special.ndtr(y) - special.ndtr(x))
        low = np.exp(np.minimum(y, 0.0)) / 2
        below = low * -np.expm1(np.minimum(x - y, 0.0))
        return np.asarray(np.where(y <= 0, below, 1 - np.exp(-np.maximum(y, 0.0)) / 2 - np.exp(np.minimum(x, 0.0)) / 2))

    def _density(self, t: Array) -> Array:
        z = np.abs(np.asarray(t, dtype=np.float64) - self.location) / self.scale
        if self.name == "laplace":
            return np.exp(-z) / (2 * self.scale)
        return np.exp(-(z**2) / 2) / (self.scale * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class LossBounds:
    """The smallest budget that a mechanism satisfies, between two bounds; the upper one is safe to state.

    ``upper`` is infinite where no finite number is known to be enough: for laws of one's own with endless tails, most
    of all.
    """

    output: OutputPremetric
    lower: float
    upper: float
    by_universe: tuple[tuple[float, float], ...]
    worst: Pair | None
    """A pair with the largest upper bound; its divergence is that bound."""

    @property
    def error(self) -> float:
        """How far the bounds are apart."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __str__(self) -> str:
        said = f"{self.output.kind.budget} between {self.lower:.6g} and {self.upper:.6g}"
        if self.lower == self.upper or self.error <= PRECISE * max(1.0, abs(self.upper)):
            said = f"{self.output.kind.budget} = {self.upper:.6g} (to within {self.error:.1g})"
        return f"{said}: {self.worst}" if self.worst else said


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class ContinuousMechanism:
    """A mechanism with a number on the line as its output: one law for each dataset (Definitions A.1.2 and A.1.3).

    >>> noisy = ContinuousMechanism.laplace({"none": 0, "one": 1, "two": 2}, scale=2)
    >>> noisy.coarsen([0.5]).outputs
    ('(-inf, 0.5]', '(0.5, inf)')
    """

    datasets: tuple[str, ...]
    laws: tuple[ContinuousLaw, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", tuple(self.datasets))
        object.__setattr__(self, "laws", tuple(self.laws))
        if not self.datasets or len(self.laws) != len(self.datasets):
            raise errors.not_a_mechanism("it does not have one law for each dataset")
        if len(set(self.datasets)) < len(self.datasets):
            raise errors.not_a_mechanism("it names the same dataset twice")
        for name, law in zip(self.datasets, self.laws, strict=True):
            if getattr(law, "between", None) is None:
                raise errors.not_a_mechanism(f"the law of '{name}' does not tell its mass between two points")
            mass = float(_masses(law, np.array([-math.inf]), np.array([math.inf]))[0])
            if not abs(mass - 1) <= SUM_TOLERANCE:
                raise errors.not_a_mechanism(f"the law of '{name}' has a mass of {mass:.6g} and not 1")

    @classmethod
    def of(cls, laws: Mapping[str, ContinuousLaw]) -> ContinuousMechanism:
        """From the law of each dataset's output: a :class:`NoiseLaw`, or a density of one's own."""
        return cls(tuple(laws), tuple(laws.values()))

    @classmethod
    def laplace(cls, values: Mapping[str, float], scale: float | Mapping[str, float]) -> ContinuousMechanism:
        """A query with Laplace noise; the scale may differ between datasets."""
        return cls.of({name: NoiseLaw("laplace", at, _own(scale, name)) for name, at in values.items()})

    @classmethod
    def gaussian(cls, values: Mapping[str, float], deviation: float | Mapping[str, float]) -> ContinuousMechanism:
        """A query with normal noise of this standard deviation."""
        return cls.of({name: NoiseLaw("normal", at, _own(deviation, name)) for name, at in values.items()})

    def law(self, dataset: str) -> ContinuousLaw:
        """P_x, the law of a dataset's output."""
        return self.laws[self.datasets.index(dataset)]

    def coarsen(self, cuts: Cuts) -> FiniteMechanism:
        """The mechanism as seen by fewer events: which interval between the cuts the output lies in.

        The cuts may be given for each dataset. Comparable datasets must have the same: laws that are known on
        different events have no common ones, and are infinitely far apart by most standards.
        """
        given = {name: cuts[name] if isinstance(cuts, Mapping) else cuts for name in self.datasets}
        laws = {}
        for name, law in zip(self.datasets, self.laws, strict=True):
            ends = [-math.inf, *sorted({float(at) for at in given[name]}), math.inf]
            masses = _masses(law, np.array(ends[:-1]), np.array(ends[1:]))
            cells = [_cell(a, b) for a, b in itertools.pairwise(ends)]
            laws[name] = dict(zip(cells, (masses / masses.sum()).tolist(), strict=True))
        return FiniteMechanism.of(laws)

    def loss(self, flavor: Flavor | Specification | FiniteFlavor, datasets: Datasets | None = None) -> LossBounds:
        """The privacy loss under a flavor that lists its datasets, or on ``datasets``, between two bounds.

        >>> from stirred.spec import flavors
        >>> noisy = ContinuousMechanism.laplace({"0": 0, "1": 1}, scale=2)
        >>> print(noisy.loss(flavors.local(), {"0": "0", "1": "1"}))
        epsilon = 0.5 (to within 0): '0' and '1', 1 apart, have laws 0.5 apart
        """
        finite = self._seen(flavor, datasets)
        power, pairs = finite.output.kind.power, []
        found = [(0.0, 0.0)] * len(finite.universes)
        for number, one, other, (lower, upper) in self._pairs(finite):
            distance = float(finite.distances[one, other])
            ratio = _ratio(upper, distance) ** power
            names = finite.names[one], finite.names[other]
            pairs.append((ratio, Pair(*names, distance, upper, finite.members(number))))
            low, high = found[number]
            found[number] = max(low, _ratio(lower, distance) ** power), max(high, ratio)
        _, worst = max(pairs, key=lambda pair: pair[0], default=(0.0, None))
        lower, upper = (max((ends[side] for ends in found), default=0.0) for side in (0, 1))
        return LossBounds(finite.output, lower, upper, tuple(found), worst)

    def satisfies(self, specification: Specification, datasets: Datasets | None = None) -> Answer:
        """Whether D_Pr(P_x, P_x') <= eps_D d_X(x, x') for all pairs of all universes; unknown where the bounds of a
        divergence enclose what is allowed."""
        finite = self._seen(specification, datasets)
        budgets = specification.budget.by_universe or (specification.budget.number,) * len(finite.universes)
        unsure = ""
        for number, one, other, (lower, upper) in self._pairs(finite):
            constant = math.inf if budgets[number] == math.inf else lipschitz(finite.output, budgets[number])
            allowed = math.inf if constant == math.inf else float(finite.distances[one, other]) * constant
            said = (
                f"'{finite.names[one]}' and '{finite.names[other]}' have laws between {lower:.6g} and {upper:.6g} "
                f"apart in {finite.output.symbol}, where {allowed:.6g} is allowed"
            )
            if lower > allowed * (1 + ROUNDED):
                return answer("no", said)
            if upper > allowed * (1 + 2 * ROUNDED):
                unsure = said
        return answer("unknown", unsure) if unsure else answer("yes", "no two laws are further apart than is allowed")

    def specified(
        self, flavor: Flavor, datasets: Datasets | None = None, *, cuts: Sequence[float] | None = None, name: str = ""
    ) -> Specification:
        """The specification that the mechanism satisfies under a flavor: its budget is the upper bound of the loss.

        With ``cuts`` only the intervals between them are events, and the output premetric says so.
        """
        listed = flavor if datasets is None else explicit(flavor, datasets)
        if cuts is None:
            return listed.at(Budget(_up(self.loss(listed).upper)), name=name)
        seen = self.coarsen(cuts)
        output = replace(listed.output_premetric, partition=tuple((one,) for one in seen.outputs))
        fewer = replace(listed, output_premetric=output)
        return fewer.at(Budget(_up(seen.loss(fewer).number)), name=name)

    def _seen(self, flavor: Flavor | Specification | FiniteFlavor, datasets: Datasets | None) -> FiniteFlavor:
        finite = flavor if isinstance(flavor, FiniteFlavor) else FiniteFlavor.of(flavor, datasets)
        if finite.output.events or finite.output.partition:
            raise errors.cannot_evaluate("fewer events than all of a continuous output (coarsen the mechanism first)")
        if finite.output.kind.curve:
            raise errors.cannot_evaluate(f"the output premetric '{finite.output.name}' of continuous outputs")
        if set(self.datasets) != set(finite.names):
            raise errors.different_datasets(sorted(set(self.datasets) ^ set(finite.names)))
        return finite

    def _pairs(self, finite: FiniteFlavor) -> Iterator[tuple[int, int, int, tuple[float, float]]]:
        """By the number of their universe, pairs that are compared, with the bounds of the divergence of their laws."""
        known: dict[tuple[int, int], tuple[float, float]] = {}
        for number, mask in enumerate(finite.universes):
            for one, other in np.argwhere(finite.compared & np.outer(mask, mask)).tolist():
                if (one, other) not in known:
                    laws = (self.law(finite.names[place]) for place in (one, other))
                    known[one, other] = divergence_bounds(finite.output, *laws)
                yield number, one, other, known[one, other]


def divergence_bounds(output: OutputPremetric, f: ContinuousLaw, g: ContinuousLaw) -> tuple[float, float]:
    """Two bounds of D_Pr(P, Q) between laws on the line."""
    if f is g or (f.family is not None and f.family == g.family):
        return 0.0, 0.0
    if (closed := _closed(output, f, g)) is not None:
        return closed, closed
    number, lower, upper = FEWEST, 0.0, math.inf
    while True:
        low, high = _enclosed(output, f, g, number)
        lower, upper = max(lower, low), min(upper, high)
        if number >= MOST or upper - lower <= PRECISE * max(1.0, lower) or (math.isinf(high) and number >= 8 * FEWEST):
            return lower, max(lower, upper)
        number *= 2


def _closed(output: OutputPremetric, f: ContinuousLaw, g: ContinuousLaw) -> float | None:
    if not _alike(f, g):
        return None
    assert f.family is not None and g.family is not None
    if output.kind.pure:  # the largest log ratio itself
        ends = np.array(sorted({*f.breaks, *g.breaks}))
        least, most = _log_ratios_in_family(f.family, g.family, ends[:-1], ends[1:])
        return float(max(-least.min(), most.max(), 0.0))
    if f.family[2] != g.family[2]:
        return None
    noise: Noise = "normal" if f.family[0] == "normal" else "laplace"
    return output.kind.between_noise(noise, abs(f.family[1] - g.family[1]) / f.family[2], output.parameter)


def _enclosed(output: OutputPremetric, f: ContinuousLaw, g: ContinuousLaw, number: int) -> tuple[float, float]:
    points = np.unique(np.concatenate([_points(f, number), _points(g, number)]))
    left, right = points[:-1], points[1:]
    first, second = _masses(f, left, right), _masses(g, left, right)
    kept = (first > 0) | (second > 0)
    left, right, first, second = left[kept], right[kept], first[kept], second[kept]
    least, most = _ratios(f, g, left, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(second > 0, first / second, math.inf)
        least, most = np.minimum(least * (1 - ROUNDED), mean), np.maximum(most * (1 + ROUNDED), mean)
        up = np.where(np.isinf(most), 0.0, (first - least * second) / (most - least))
    up = np.clip(np.where(most > least, up, 0.0), 0.0, second)
    down = second - up
    with np.errstate(invalid="ignore"):
        over = first - np.where(down > 0, least * down, 0.0)
    over = np.clip(np.where(most > least, over, 0.0), 0.0, first)
    split = np.concatenate([first - over, over]), np.concatenate([down, up])
    some = (split[0] > 0) | (split[1] > 0)
    low = _between(output, *_merged(f, g, first, second))
    if output.kind.pure:  # what the densities are at the ends of cells they are nearby
        low = max(low, _largest_at_ends(f, g, left, right))
    return low, max(low, _between(output, split[0][some], split[1][some]))


def _merged(f: ContinuousLaw, g: ContinuousLaw, first: Array, second: Array) -> tuple[Array, Array]:
    """Cells with a mass that has lost its digits are put together with the largest: fewer events, and safe."""
    least = FAINT if f.family is not None and g.family is not None else BLURRED
    faint = ((first < least) & (first > 0)) | ((second < least) & (second > 0))
    faint |= ((first == 0) & (second < 1e3 * least)) | ((second == 0) & (first < 1e3 * least))
    faint[np.argmax(first + second)] = True
    return np.append(first[~faint], first[faint].sum()), np.append(second[~faint], second[faint].sum())


def _largest_at_ends(f: ContinuousLaw, g: ContinuousLaw, left: Array, right: Array) -> float:
    inside = (left >= max(f.breaks[0], g.breaks[0])) & (right <= min(f.breaks[-1], g.breaks[-1]))
    inside &= np.isfinite(left) & np.isfinite(right)
    ends = zip(f.on(left[inside], right[inside]), g.on(left[inside], right[inside]), strict=True)
    logs = [np.abs(np.log(a[(a > 0) & (b > 0)] / b[(a > 0) & (b > 0)])) for a, b in ends]
    return float(np.max(np.concatenate(logs), initial=0.0))


def _between(output: OutputPremetric, first: Array, second: Array) -> float:
    return output.kind.between(first / first.sum(), second / second.sum(), output.parameter)


def _points(law: ContinuousLaw, number: int) -> Array:
    """The breaks of a law, points between them, and points in a tail by its half-life."""
    found = [np.array([-math.inf, math.inf])]
    for a, b in itertools.pairwise(law.breaks):
        if math.isfinite(a) and math.isfinite(b):
            found.append(np.linspace(a, b, number + 1))
        elif math.isfinite(a) or math.isfinite(b):
            start, sign = (a, 1.0) if math.isfinite(a) else (b, -1.0)
            found.append(start + sign * _half_life(law, start, sign) * np.linspace(0.0, TAIL, number + 1))
    return np.unique(np.concatenate(found))


def _half_life(law: ContinuousLaw, start: float, sign: float) -> float:
    """How far from a break half of the tail's mass lies; to within a factor of two, which is near enough."""

    def mass(length: float) -> float:
        ends = sorted((start, start + sign * length))
        return float(_masses(law, np.array(ends[:1]), np.array(ends[1:]))[0])

    whole, length = mass(math.inf), 1.0
    if whole <= 0:
        return 1.0
    while mass(length) > whole / 2 and length > 1e-300:
        length /= 2
    while mass(length) < whole / 2 and length < 1e300:
        length *= 2
    return length


def _masses(law: ContinuousLaw, left: Array, right: Array) -> Array:
    ends = law.breaks[0], law.breaks[-1]
    a, b = np.clip(left, *ends), np.clip(right, *ends)
    return np.where(b > a, np.maximum(np.asarray(law.between(a, b), dtype=np.float64), 0.0), 0.0)  # type: ignore[attr-defined]


def _ratios(f: ContinuousLaw, g: ContinuousLaw, left: Array, right: Array) -> tuple[Array, Array]:
    """The smallest and largest ratio of the densities on cells without a break of either."""
    if _alike(f, g):
        assert f.family is not None and g.family is not None
        logs = _log_ratios_in_family(f.family, g.family, left, right)
        with np.errstate(over="ignore"):
            return np.exp(logs[0]), np.exp(logs[1])
    low_f, high_f = _range(f, left, right)
    low_g, high_g = _range(g, left, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(high_g > 0, low_f / high_g, np.where(high_f > 0, math.inf, 1.0))
        most = np.where(low_g > 0, high_f / low_g, np.where(high_f > 0, math.inf, 1.0))
    return np.where(np.isnan(least), 0.0, least), np.where(np.isnan(most), math.inf, most)


def _range(law: ContinuousLaw, left: Array, right: Array) -> tuple[Array, Array]:
    inside = (right > law.breaks[0]) & (left < law.breaks[-1])
    low, high = np.zeros(len(left)), np.zeros(len(left))
    if bool(np.any(inside)):
        ends = law.on(left[inside], right[inside])
        low[inside], high[inside] = np.minimum(*ends), np.maximum(*ends)
    return low, high


def _alike(f: ContinuousLaw, g: ContinuousLaw) -> bool:
    """Whether both laws are of one family whose ratios have closed forms."""
    return f.family is not None and g.family is not None and f.family[0] == g.family[0] in ("laplace", "normal")


def _log_ratios_in_family(
    f: tuple[str, float, float], g: tuple[str, float, float], left: Array, right: Array
) -> tuple[Array, Array]:
    """ln f/g is linear between the breaks of Laplace laws, and a parabola for normal ones."""
    (name, a, b), (_, c, d) = f, g

    def log_ratio(t: Array) -> Array:
        if name == "laplace":
            return np.abs(t - c) / d - np.abs(t - a) / b + math.log(d / b)
        return ((t - c) / d) ** 2 / 2 - ((t - a) / b) ** 2 / 2 + math.log(d / b)

    def at_end(t: Array, sign: float) -> Array:
        finite = np.isfinite(t)
        if b != d:
            limit = math.inf if b > d else -math.inf
        elif name == "laplace":
            limit = sign * (a - c) / b
        else:
            limit = 0.0 if a == c else math.copysign(math.inf, sign * (a - c))
        return np.where(finite, log_ratio(np.where(finite, t, 0.0)), limit)

    values = [at_end(left, -1.0), at_end(right, 1.0)]
    if name == "normal" and b != d:
        turn = (c / d**2 - a / b**2) / (1 / d**2 - 1 / b**2)
        values.append(np.where((left < turn) & (turn < right), log_ratio(np.full(len(left), turn)), values[0]))
    return np.min(values, axis=0), np.max(values, axis=0)


def _ratio(divergence: float, distance: float) -> float:
    return 0.0 if divergence == 0 else math.inf if distance == 0 else divergence / distance


def _own(scale: float | Mapping[str, float], name: str) -> float:
    return scale[name] if isinstance(scale, Mapping) else scale


def _cell(a: float, b: float) -> str:
    return f"({a!r}, {b!r}{')' if math.isinf(b) else ']'}"


def _up(number: float) -> Fraction | float:
    return number if math.isinf(number) else Fraction(number)
