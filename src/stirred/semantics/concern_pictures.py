"""Bars of concerns: what tests can find out about each attribute and place, with Gaussian noise and with any noise.

Each concern has two bars, and each bar the rho from which its power follows (Kifer et al. 2022, section 8). Names are
the plain words of the allocation's labels, the concern that is told best stands first.

Keep in mind: where every power is next to 1, or next to a blind guess, bars of powers would all look alike; then the
bars are the rhos themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred._shown import brief
from stirred.loss import ZcdpCurve
from stirred.loss.argument_checks import Number, probability
from stirred.semantics.concerns import EVERYTHING, Concern, Exposure
from stirred.semantics.explained_numbers import Concerned, Setting
from stirred.semantics.pictures import DETECTION, Bar, Bars, rounded_up
from stirred.semantics.testing import gaussian_curve
from stirred.spec.exact import near
from stirred.spec.invariant import plural
from stirred.spec.known_deployments.allocations import Allocation

IN_USE, ANY_NOISE = "Gaussian noise", "any noise with this guarantee"
"""The groups of bars."""

SURE, BLIND = 0.99, 0.01
"""Powers beyond the first, or less than the second above a blind guess, look all alike."""

_NAME = "concerns"


@brief
@dataclass(frozen=True)
class ConcernRow:
    """One concern: its plain name, the rho of Gaussian noise and of any noise, and which queries tell about it."""

    name: str
    rho: Fraction
    any_rho: Fraction
    about: str = ""

    def powers(self, level: float) -> tuple[float, float]:
        """The greatest power of a test with Gaussian noise, and with any noise of these shares."""
        return float(gaussian_curve(self.rho).power(level)), float(ZcdpCurve(near(self.any_rho)).power(level))


def concern_label(concern: Concern, allocation: Allocation) -> str:
    """A concern in plain words.

    >>> from stirred.spec.known_deployments.allocations import allocation
    >>> pl94 = allocation("pl94-2020")
    >>> concern_label(Concern(("cenrace",), within="tract"), pl94), concern_label(Concern(within="us"), pl94)
    ('race and location within the tract', 'location within the nation')
    """
    if concern.name or concern.cells is not None:
        return str(concern)
    said = [allocation.label(one) for one in concern.attributes]
    said += [f"location within the {allocation.label(concern.within)}"] if concern.within is not None else []
    but = f" without {len(concern.without)} of its queries" if concern.without else ""
    return (" and ".join(said) or EVERYTHING) + but


def concern_row(exposed: Exposure) -> ConcernRow:
    """The row of a concern in which one record changes alone."""
    told = "all queries" if exposed.concern.whole else exposed.queries()
    return ConcernRow(concern_label(exposed.concern, exposed.allocation), exposed.rho, exposed.rho, told)


def concern_picture(given: Setting) -> Bars:
    """The bars of an explanation: the concerns asked about and those of the overview."""
    units = plural(given.specification.input_premetric.unit)
    rows, together = [], []
    for one in given.concerned:
        row = concern_row(one.exposure)
        if one.joint:
            name = f"{row.name} ({one.worst.records}\u00a0{units})"
            together.append(f"{row.name}: {one.change.words}.")
            row = ConcernRow(name, one.rho, one.worst.any_rho, row.about)
        rows.append(row)
    said = f"Where one record cannot change alone, several do. {' '.join(together)}" if together else ""
    if hidden := _names(given.unprotected):
        said += f"{' ' if said else ''}Not protected, since what is held fixed tells it: {hidden}."
    return concern_bars(rows, level=given.level, caption=said)


def concern_bars(
    rows: Iterable[ConcernRow], *, level: Number | None = None, caption: str = "", guarantee: str = ""
) -> Bars:
    """Two bars for each concern, the largest first: powers at the false-alarm probability ``level``, or without it rho.

    >>> from stirred.semantics.concerns import exposure
    >>> from stirred.spec.known_deployments.allocations import allocation
    >>> block = exposure(allocation("pl94-2020"), "block within tract", rounded=True)
    >>> bars = concern_bars([concern_row(block)], level=0.05)
    >>> for bar in bars.bars:
    ...     print(f"{bar.name}, {bar.group}: {bar.value:.4f}, {bar.words}")
    location within the tract, Gaussian noise: 0.3882, rho = 0.926
    location within the tract, any noise with this guarantee: 0.5150, rho = 0.926
    """
    ordered = sorted(rows, key=lambda row: (-row.rho, -row.any_rho, row.name))
    title = "What can the release tell, concern by concern?"
    said = "Told apart are two records that differ only in what a bar names, all other records being known."
    said = f"{said} {caption}" if caption else said
    at = None if level is None else probability("level", level)
    if at is not None and ordered:
        powers = [row.powers(at) for row in ordered]
        same = _alike(powers, at)
        if not same:
            bars = [
                Bar(row.name, power, group, f"rho = {rounded_up(float(rho), 4)}", row.about)
                for row, both in zip(ordered, powers, strict=True)
                for power, group, rho in zip(both, (IN_USE, ANY_NOISE), (row.rho, row.any_rho), strict=True)
            ]
            subtitle = f"Largest probability of detection where that of a false alarm is {at:g}"
            return Bars(_NAME, title, subtitle, DETECTION, tuple(bars), said, at, "blind guess", guarantee)
        said += f" {same}"
    return Bars(
        _NAME, title, "The part of the budget spent on queries that tell about it", "rho", _rhos(ordered), said,
        guarantee=guarantee,
    )  # fmt: skip


def _rhos(rows: Sequence[ConcernRow]) -> tuple[Bar, ...]:
    """One bar for each concern where both rhos are the same, else two."""
    if all(row.rho == row.any_rho for row in rows):
        return tuple(Bar(row.name, float(row.rho), about=row.about) for row in rows)
    pairs = [(row, ((row.rho, IN_USE), (row.any_rho, ANY_NOISE))) for row in rows]
    return tuple(Bar(row.name, float(rho), group, about=row.about) for row, both in pairs for rho, group in both)


def _alike(powers: Sequence[tuple[float, float]], level: float) -> str:
    """What to say where bars of powers would all be the same; empty where they would not."""
    if min(power for power, _ in powers) > SURE:
        return f"At a false-alarm probability of {level:g} every one of these may be detected almost surely."
    if max(power for _, power in powers) < level + BLIND:
        return f"At a false-alarm probability of {level:g} no test on any of these is much better than a blind guess."
    return ""


def _names(concerned: Iterable[Concerned]) -> str:
    return ", ".join(concern_label(one.exposure.concern, one.exposure.allocation) for one in concerned)
