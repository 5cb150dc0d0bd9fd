"""Explain a guarantee: sentences, tables and pictures from one specification.

>>> from stirred.spec import flavors
>>> explained = explain(flavors.zcdp("person").at("2.63"))
>>> print(explained.statement("tests.bound").words)
At false-alarm probabilities of 0.01, 0.05 and 0.1, no test on the release that tells the two datasets apart detects \
the change with probabilities above 0.699, 0.947 and 0.963. A blind guess detects it with 0.01, 0.05 and 0.1.

Of concerns there are bars: what tests can find out about each attribute and place, with Gaussian noise and with any
noise. Each bar has the rho from which its power follows (Kifer et al. 2022, section 8); names are the plain words of
the allocation's labels, and the concern that is told best stands first. Keep in mind: where every power is next to 1,
or next to a blind guess, bars of powers would all look alike; then the bars are the rhos themselves.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief, html_table
from stirred.loss import GaussianCurve, PowerCurve, TradeOff, ZcdpCurve, tradeoff_to_pbdp_delta
from stirred.loss.argument_checks import Number, probability
from stirred.semantics.belief_bounds import AnyPriorBelief, PureBelief, TrueRecordBelief
from stirred.semantics.concerns import EVERYTHING, Concern, Exposure, published_exposures
from stirred.semantics.explained_numbers import (
    ANY,
    DELTAS,
    EXACT,
    GAUSSIAN,
    GROUPS,
    LEVELS,
    Concerned,
    Setting,
    setting,
)
from stirred.semantics.pictures.curves import (
    DETECTION,
    belief_picture,
    epsilon_delta_picture,
    gaussian_deltas,
    likely_belief_picture,
    rounded_up,
    true_record_picture,
)
from stirred.semantics.pictures.readable import NotDrawn, readable_beliefs, readable_deltas, readable_powers
from stirred.semantics.pictures.shapes import Bar, Bars, Picture
from stirred.semantics.sentences.formatting import WIDTH, bullet, columns, guarantee_line, shown_down, shown_up, up
from stirred.semantics.sentences.sections import IN_ORDER
from stirred.semantics.sentences.summary import in_classes, summary
from stirred.semantics.sentences.templates import SECTIONS, Sources, Statement, of_distributions
from stirred.semantics.swap_exposure import SwapExposure, SwapPair
from stirred.semantics.testing import gaussian_curve
from stirred.spec.exact import display, finite_or_none, near, written
from stirred.spec.invariant import plural
from stirred.spec.known_deployments.allocations import Allocation
from stirred.spec.specification import Specification

FORMAT_VERSION = 1
"""Version of the JSON format of an explanation."""

SHORT = {
    "beliefs.outside", "delta.reading", "tests.none", "careful.finding", "careful.checklist",
}  # fmt: skip
"""What a short explanation keeps besides sentences with numbers and the first sections."""

Drawn = Picture | Bars | NotDrawn
"""A picture, or a sentence in its place."""

SMALLEST = 1e-10
"""The smallest delta that is drawn, unless the guarantee itself names a smaller one."""

DRAWN_DELTAS = (0.5, 0.1, 0.05, 0.01)
"""For beliefs: at smaller probabilities of exceptions the curves of a census fill the whole square."""

IN_USE, ANY_NOISE = "Gaussian noise", "any noise with this guarantee"
"""The groups of bars."""

SURE, BLIND = 0.99, 0.01
"""Powers beyond the first, or less than the second above a blind guess, look all alike."""

_NAME = "concerns"


@brief
@dataclass(frozen=True)
class Explanation:
    """What a guarantee means, in sentences that name their formulas, and the numbers behind them."""

    setting: Setting
    statements: tuple[Statement, ...]

    @property
    def specification(self) -> Specification:
        """The specification that is explained."""
        return self.setting.specification

    def statement(self, id: str) -> Statement:
        """The first sentence of this id."""
        for one in self.statements:
            if one.id == id:
                return one
        raise errors.unknown_choice("sentence in this explanation", id, [one.id for one in self.statements])

    def section(self, name: str) -> tuple[Statement, ...]:
        """The sentences of a section, by its name in :data:`SECTIONS`."""
        if name not in SECTIONS:
            raise errors.unknown_choice("section", name, list(SECTIONS))
        return tuple(one for one in self.statements if one.section == name)

    # -- tables ----------------------------------------------------------------------------------------------

    @cached_property
    def powers(self) -> list[dict[str, Any]]:
        """Lower and upper bounds on the power of tests, one row for each noise and false-alarm probability, rounded as
        in the sentences."""
        return [
            {
                "noise": what,
                "level": level,
                "lower": float(shown_down(float(low), level)),
                "upper": float(shown_up(float(high), level)),
            }
            for what, lower, upper in self.setting.powers()
            for level, low, high in zip(self.setting.levels, lower, upper, strict=True)
        ]

    @cached_property
    def losses(self) -> list[dict[str, Any]]:
        """Epsilon at each delta: the one that bounds the odds but for that probability (pbdp), and that of (epsilon,
        delta)-DP. Infinite ones are None."""
        return [
            {
                "noise": what,
                "delta": delta,
                "bounded": finite_or_none(bounded),
                "approximate": finite_or_none(approximate),
            }
            for what, delta, bounded, approximate in self.setting.losses()
        ]

    @cached_property
    def exposures(self) -> list[dict[str, Any]]:
        """One row for each concern: the powers with Gaussian noise follow from ``rho``, those of any noise from
        ``rho_any_noise``, both between the two datasets that ``change`` tells; ``rho_of_queries`` is the share of the
        queries, and the same as ``rho`` where one record changes."""
        return [
            {
                "concern": str(one.exposure.concern),
                "change": one.worst.change.words,
                "distance": float(one.worst.change.distance),
                "rho": float(one.worst.rho),
                "rho_exact": written(one.worst.rho),
                "rho_any_noise": float(one.worst.any_rho),
                "rho_of_queries": float(one.exposure.rho),
                "levels": list(self.setting.levels),
                "gaussian": [float(power) for power in one.gaussian.power(self.setting.levels)],
                "bound": [float(power) for power in one.bound.power(self.setting.levels)],
                "queries": [list(cell) for cell in one.exposure.cells],
            }
            for one in self.setting.concerned
        ]

    @cached_property
    def published(self) -> list[dict[str, Any]]:
        """Concerns that the source of the allocation prints, beside what follows from its own tables."""
        allocation = self.setting.allocation
        return [
            {
                "id": one.published.id,
                "concern": one.published.what,
                "rho_printed": one.published.rho,
                "powers_printed": list(one.published.powers),
                "rho": float(one.exposure.rho),
                "rho_exact": written(one.exposure.rho),
                "powers": [float(power) for power in one.exposure.gaussian.power(self.setting.levels)],
                "agrees": one.agrees,
            }
            for one in (published_exposures(allocation) if allocation is not None else ())
        ]

    # -- pictures --------------------------------------------------------------------------------------------

    def pictures(self) -> tuple[Picture | Bars, ...]:
        """Curves and bars of powers, epsilon and delta, beliefs and concerns, to be drawn by :mod:`stirred.reports`.

        Those that would be an empty frame are not among them: :meth:`not_drawn` has a sentence for each.
        """
        return tuple(one for one in self.drawn if not isinstance(one, NotDrawn))

    def not_drawn(self) -> tuple[NotDrawn, ...]:
        """The pictures that would show nothing, each with what is to be said in its place."""
        return tuple(one for one in self.drawn if isinstance(one, NotDrawn))

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """All pictures in their order, and sentences in place of those that would show nothing."""
        line = guarantee_line(self.specification)
        return tuple(
            one if isinstance(one, NotDrawn) else replace(one, guarantee=line) for one in _pictures(self.setting)
        )

    # -- JSON, text and HTML ---------------------------------------------------------------------------------

    def to_fields(self) -> dict[str, Any]:
        """The explanation as a dictionary that JSON can hold."""
        change = self.setting.change
        return {
            "stirred_explanation": FORMAT_VERSION,
            "specification": json.loads(self.specification.to_json()),
            "counterfactual": {
                "change": change.words,
                "distance": written(change.distance),
                "status": change.status,
            },
            "classes": in_classes(self.setting),
            "statements": [one.to_fields() for one in self.statements],
            "powers": self.powers,
            "losses": self.losses,
            "concerns": self.exposures,
            "published": self.published,
            "swap": None if self.setting.own is None else self.setting.own.to_fields(self.setting.levels),
        }

    def to_json(self) -> str:
        """The explanation as JSON text: every sentence with its id, formula, source and numbers, and all tables."""
        return json.dumps(self.to_fields(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return self.text()

    def text(self, full: bool = False) -> str:
        """The explanation as text: the summary, the five blocks and the sentences about this guarantee.

        ``full`` adds sentences that hold for every guarantee of the kind, and the numbered sources of all.
        """
        titled = textwrap.fill(f"What {self.specification.name or 'this guarantee'} means", WIDTH)
        lines = [f"{name + ':':18}{words}" for name, words in self.specification.blocks()]
        blocks = "\n".join(textwrap.fill(line, WIDTH, subsequent_indent=" " * 18) for line in lines)
        parts, sources = [titled], Sources()
        for name, heading in SECTIONS.items():
            said = [one for one in self.section(name) if full or about_this(one)]
            if said:
                items = (one.words + (f" [{sources.number(one.source)}]" if full else "") for one in said)
                parts.append("\n".join([heading.upper(), *map(bullet, items)]))
            parts += [columns(rows) for rows in self.tables(name)]
            if name == "summary":
                parts.append(blocks)
        if full:
            parts.append("\n".join(["SOURCES", *(bullet(f"[{n}] {words}") for n, words in sources.listed())]))
        return "\n\n".join(parts) + "\n"

    def _repr_html_(self) -> str:
        parts, sources = [], Sources()
        for name, heading in SECTIONS.items():
            if said := self.section(name):
                items = "".join(
                    f"<li>{escape(one.words)} <sup>[{sources.number(one.source)}]</sup></li>" for one in said
                )
                parts.append(f"<h3>{heading}</h3><ul>{items}</ul>")
            parts += [html_table(rows[0], [(row, False) for row in rows[1:]]) for rows in self.tables(name)]
            if name == "summary":
                parts.append(self.specification._repr_html_())
        listed = "".join(f'<li value="{number}">{escape(words)}</li>' for number, words in sources.listed())
        return "".join([*parts, f"<h3>Sources</h3><ol>{listed}</ol>"])

    def tables(self, section: str) -> Iterator[list[list[str]]]:
        """The tables of a section as rows of texts, the first one the heading."""
        levels = [f"false alarm {level:g}" for level in self.setting.levels]
        if section == "tests" and self.powers:
            head = ["power of a test: at most (at least)", *levels]
            yield [
                head,
                *([what, *_bounds(low, high, self.setting.levels)] for what, low, high in self.setting.powers()),
            ]
        if section == "delta" and self.losses:
            yield [
                ["epsilon at a delta", "delta", "bounds the odds", "(epsilon, delta)-DP"],
                *([r["noise"], f"{r['delta']:g}", _shown(r["bounded"]), _shown(r["approximate"])] for r in self.losses),
            ]
        if section == "concerns" and self.exposures:
            head = ["power with Gaussian noise (any noise)", "rho (any noise)", "distance", *levels]
            yield [
                head,
                *(
                    [
                        row["concern"],
                        f"{display(row['rho'], 4)} ({display(row['rho_any_noise'], 4)})",
                        f"{row['distance']:g}",
                        *_both(row),
                    ]
                    for row in self.exposures
                ),
            ]
        if section == "concerns" and self.published:
            head = ["as published", "concern", "rho printed", "rho from the source's tables", *levels]
            yield [
                head,
                *(
                    [row["id"], row["concern"], row["rho_printed"], display(row["rho"], 4)]
                    + [shown_up(power) for power in row["powers"]]
                    for row in self.published
                ),
            ]


@refuses_wrong_arguments
def explain(
    specification: Specification,
    *,
    allocation: Allocation | None = None,
    concerns: Iterable[Concern | str] = (),
    levels: Iterable[float] = LEVELS,
    deltas: Iterable[float] = DELTAS,
    groups: Iterable[int] = GROUPS,
    own: SwapExposure | None = None,
) -> Explanation:
    """Explain a specification in sentences, tables and pictures.

    ``allocation`` says how a budget of zCDP is divided among geographic levels and queries; that of a known deployment
    is found by its name. ``concerns`` are looked up in it: ``"cenrace"``, ``"block within tract"``, ``"cenrace + within
    tract"``. ``levels`` are false-alarm probabilities of tests, ``deltas`` probabilities of exceptions, ``groups``
    numbers of units that change together. ``own`` are the numbers of a swap itself, as its release tells them; by
    default those that follow from the facts of the specification.
    """
    given = setting(specification, allocation, tuple(concerns), tuple(levels), tuple(deltas), tuple(groups), own)
    said = [statement for section in (summary, *IN_ORDER) for statement in section(given)]
    if not given.of_datasets:
        said = [other for statement in said if (other := of_distributions(statement)) is not None]
    return Explanation(given, tuple(said))


# -- bars of concerns ----------------------------------------------------------------------------------------


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
        if one.worst.joint:
            name = f"{row.name} ({one.worst.records}\u00a0{units})"
            together.append(f"{row.name}: {one.worst.change.words}.")
            row = ConcernRow(name, one.worst.rho, one.worst.any_rho, row.about)
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


# -- helpers -------------------------------------------------------------------------------------------------


def _pictures(given: Setting) -> Iterator[Drawn]:
    """Pictures, and sentences in place of those that would show nothing."""
    curve = given.readable
    if curve is None:
        yield NotDrawn("level-and-power", _why_nothing(given))
        return
    worlds = f"the data as they are, and data in which {given.change.words}"
    if not given.of_datasets:
        worlds = f"two distributions of the data: {given.change.words}"
    powers: dict[str, TradeOff | tuple[PowerCurve, PowerCurve]] = {ANY: curve}
    if given.gaussian is not None:
        powers[GAUSSIAN] = given.gaussian
    if given.exact is not None:
        powers[EXACT] = given.exact.power_curve()
    for what, own in given.own.rows() if given.own is not None else ():
        powers[what] = own.curve if isinstance(own, SwapPair) else own
    yield readable_powers(powers, worlds=worlds, dashed=[EXACT] if EXACT in powers else ())
    if not given.specification.output_premetric.kind.pure and curve.power(0.5) > 0.5:
        said = "All but the last are of Gaussian noise with this budget." if isinstance(curve, ZcdpCurve) else ""
        least = min(SMALLEST, (given.stated_delta or 1.0) / 2)
        usual = epsilon_delta_picture(_deltas(curve), smallest=least, worlds=worlds, caption=said)
        yield readable_deltas(usual)
    yield from _beliefs(given)
    yield from _true_record(given)
    if given.concerned:
        yield concern_picture(given)


def _why_nothing(given: Setting) -> str:
    if not given.change.exists:
        return "No picture: what is held fixed determines the data, so there is nothing to tell apart."
    if given.unbounded:
        return "No picture: the budget is infinite or as good as, so nothing that can be drawn is ruled out."
    return "No picture: for this definition, or between these datasets, no bound on the power of tests is known here."


def _deltas(curve: TradeOff) -> dict[str, Callable[[float], float]]:
    """Delta as a function of epsilon, as far as it is known from a curve."""
    if isinstance(curve, ZcdpCurve):
        return gaussian_deltas(rho=curve.rho)
    if isinstance(curve, GaussianCurve):
        return gaussian_deltas(mu=curve.mu)
    return {"pbdp": lambda epsilon: tradeoff_to_pbdp_delta(curve, epsilon)}


def _beliefs(given: Setting) -> Iterator[Drawn]:
    """How far a belief about the redrawn record can move, by the first theorem that applies."""
    for bound in given.beliefs[:1]:
        if isinstance(bound, PureBelief):
            yield readable_beliefs(belief_picture([bound.limit]), [bound.limit])
        elif isinstance(bound, TrueRecordBelief):
            deltas = [delta for delta in DRAWN_DELTAS if bound.epsilon(delta) < math.inf]
            if deltas:
                said = "For Gaussian noise with this budget." if given.gaussian is not None else ""
                usual = likely_belief_picture(bound.curve, deltas, caption=said)
                yield readable_beliefs(usual, [bound.epsilon(delta) for delta in deltas])


def _true_record(given: Setting) -> Iterator[Drawn]:
    """Theorem 7.4 for the noise of the mechanism itself, beside Gaussian noise and what holds for any noise."""
    if given.exact_beliefs is None:
        return
    others: dict[str, Callable[[float], float]] = {}
    for bound in given.beliefs:
        if isinstance(bound, TrueRecordBelief) and isinstance(bound.curve, GaussianCurve):
            others[f"{GAUSSIAN} (Theorem 7.4)"] = bound.delta
        elif isinstance(bound, AnyPriorBelief):
            others["any noise with this budget (Theorem 7.5)"] = bound.delta
    below, above = (bound.curve for bound in given.exact_beliefs)
    assert isinstance(below, PowerCurve) and isinstance(above, PowerCurve)
    yield readable_deltas(true_record_picture((below, above), others, name=EXACT))


def about_this(one: Statement) -> bool:
    """Whether a sentence is about this guarantee, and not about every one of its kind."""
    first = ("summary", "noticed", "compares", "protects", "exposed")
    return bool(one.formula) or one.section in first or one.id in SHORT


def _bounds(lower: Iterable[float], upper: Iterable[float], levels: Iterable[float]) -> list[str]:
    rows = zip(map(float, lower), map(float, upper), levels, strict=True)
    return [f"{shown_up(high, level)} ({shown_down(low, level)})" for low, high, level in rows]


def _both(row: dict[str, Any]) -> list[str]:
    pairs = zip(row["gaussian"], row["bound"], strict=True)
    return [f"{shown_up(gaussian)} ({shown_up(bound)})" for gaussian, bound in pairs]


def _shown(value: float | None) -> str:
    return "none" if value is None else up(value).shown
