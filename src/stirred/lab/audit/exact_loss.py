"""The exact loss of a mechanism whose datasets can be listed: of a swap of one stratum, or of any finite mechanism.

The loss is the smallest epsilon that holds: the largest |ln P(z | x) / P(z | x')| per unit of the distance of x and x',
over all pairs of one universe and all outputs z (Definition 2.4.9). For a swap, x and x' are the tables of a stratum
with the same margins, and their distance is the number of records in which they differ.

Keep in mind: the exact loss of a stratum holds for its margins only. The theorem's epsilon holds for every file of the
domain and stays the guarantee.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.errors import listed_plainly
from stirred.lab.audit.results import Result
from stirred.loss.curves.power_curves import PowerCurve, pure_power
from stirred.loss.divergences import log_ratios, power_curve
from stirred.semantics.sentences.formatting import WIDTH, shown_up
from stirred.spec import FiniteMechanism, Flavor, Specification
from stirred.spec.exact import display, quoted, significant
from stirred.spec.kinds.of_laws import TRADE_OFF
from stirred.spec.order.finite_flavors import Datasets, FiniteFlavor
from stirred.spec.order.finite_mechanisms import TOLERANCE
from stirred.swap.law.stratum_laws import StratumLaw, Table, stratum_law
from stirred.swap.law.theorem import epsilon

Floats = NDArray[np.float64]

LEVELS = (0.01, 0.05, 0.1)
"""False-alarm probabilities at which the power of the best test is told."""

_TEACHES = (
    "Where few categories are active, the true loss is often far below the theorem's epsilon: with two by two, evenly "
    "filled, it hardly grows with the number of records. With four or more on both sides and a low rate it is nearly "
    "as large. Here the side with fewer has {active}, and the true loss is {share:.0%} of the theorem's epsilon.",
    "The theorem's epsilon stays the guarantee: the exact loss holds for strata with these margins only, and says "
    "nothing about the other strata of a file.",
)


@brief
@dataclass(frozen=True)
class WorstCase:
    """Two datasets, and the output that tells them apart most for their distance; it is likelier from ``first``.

    ``curve`` is the greatest power of any test between the two, whichever of them is the hypothesis.
    """

    first: str
    second: str
    distance: float
    output: str
    chances: tuple[Fraction | float, Fraction | float]
    curve: PowerCurve


@brief
@dataclass(frozen=True, eq=False)
class ExactAudit:
    """The exact loss of a mechanism, beside what was promised; ``print`` shows it as text."""

    title: str
    about: str
    loss: float
    promised: float | None
    """The theorem's epsilon, or the one that was claimed; None where nothing was."""
    worst: WorstCase | None
    """None where no two datasets are compared."""
    laws: StratumLaw | FiniteMechanism = field(repr=False)
    promised_by: str = ""
    teaches: tuple[str, ...] = ()
    """What the numbers teach, in sentences."""

    @property
    def slack(self) -> float | None:
        """How far the promised epsilon lies above the true loss; below 0 where the promise is broken."""
        if self.promised is None or self.promised == self.loss:  # both may be infinite
            return None if self.promised is None else 0.0
        return self.promised - self.loss

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept: no estimate, since everything was enumerated. None where there is none."""
        return None if self.promised is None else self.loss <= self.promised * (1 + TOLERANCE)

    @property
    def result(self) -> Result:
        """The audit as one result among others."""
        return Result.seen(
            "exact-loss",
            "Is the largest loss, over all datasets and outputs, within what was promised?",
            self.kept is False,
            right=f"The true loss is {display(self.loss)}{_against(self.promised)}.",
            wrong=f"The promise is broken: the true loss is {display(self.loss)}{_against(self.promised)}.",
            loss=self.loss,
            promised=self.promised,
        )

    def as_mechanism(self) -> FiniteMechanism:
        """The mechanism as the laws of its output; refused where a probability is too small for a float."""
        return self.laws if isinstance(self.laws, FiniteMechanism) else _as_mechanism(self.laws)

    def __str__(self) -> str:
        rows = [("True loss", display(self.loss)), *self._promise(), *self._worst()]
        labelled = [
            textwrap.fill(text, WIDTH, initial_indent=f"{label + ':':<14}", subsequent_indent=" " * 14)
            for label, text in rows
        ]
        about, *teaches = (textwrap.fill(line, WIDTH) for line in (self.about, *self.teaches))
        return "\n".join([self.title, about, "", *labelled, *([""] if teaches else []), *teaches])

    def _promise(self) -> list[tuple[str, str]]:
        if self.promised is None:
            return []
        said = display(self.promised) + (f" by {self.promised_by}" if self.promised_by else "")
        if not self.kept:
            return [("Promised", said), ("BROKEN", "the true loss is above what was promised")]
        apart = f", {self.slack:.2f} above the true loss" if self.promised < math.inf else ""
        return [("Promised", said + apart)]

    def _worst(self) -> list[tuple[str, str]]:
        if self.worst is None:
            return [("Worst pair", "none: no two datasets are compared, so nothing is lost")]
        first, second = (significant(chance, 3) for chance in self.worst.chances)
        power = f"power {_powers(self.worst.curve)} between these two, at false-alarm probabilities "
        power += listed_plainly(map(str, LEVELS))
        if self.promised is not None:
            product = self.promised * self.worst.distance if self.promised else 0.0
            power += f"; what was promised allows {_powers(pure_power(product))}"
        return [
            ("Worst pair", f"{self.worst.first} and {self.worst.second}, {self.worst.distance:g} apart"),
            ("Worst output", f"{self.worst.output}, with probability {first} from the first, {second} from the second"),
            ("Best test", power),
        ]

    def to_json(self) -> str:
        """The audit as JSON; what is infinite is the text "infinity"."""
        worst: dict[str, Any] | None = None
        if self.worst is not None:
            worst = {
                "first": self.worst.first,
                "second": self.worst.second,
                "distance": _number(self.worst.distance),
                "output": self.worst.output,
                "probabilities": [significant(chance, 12) for chance in self.worst.chances],
                "false_alarms": list(LEVELS),
                "power": [float(power) for power in self.worst.curve.power(LEVELS)],
                "curve": [list(point) for point in self.worst.curve.points],
            }
        found = {
            "stirred_exact_audit": 1,
            "title": self.title,
            "about": self.about,
            "loss": _number(self.loss),
            "promised": None if self.promised is None else _number(self.promised),
            "slack": None if self.slack is None else _number(self.slack),
            "kept": self.kept,
            "worst": worst,
            "teaches": list(self.teaches),
        }
        return json.dumps(found, indent=2) + "\n"


def exact_audit(held: Sequence[int], swapped: Sequence[int], rate: Fraction | float | str) -> ExactAudit:
    """The exact loss of a swap of one stratum with these numbers of records by held value and by swap value.

    >>> audit = exact_audit((50, 50), (50, 50), "0.05")
    >>> round(audit.loss, 4), round(audit.promised, 4), audit.worst.first
    (3.6583, 7.5596, '1 49 / 49 1')
    """
    law = stratum_law(held, swapped, _rate(rate))
    size, worst = sum(law.held), law.worst
    case = None
    if worst is not None:
        first, second, output = (written(law.tables[at]) for at in (worst.first, worst.second, worst.released))
        chances = law.chance(worst.first, worst.released), law.chance(worst.second, worst.released)
        curve = _curve(*(_floats(law, at) for at in (worst.first, worst.second)))
        case = WorstCase(first, second, worst.distance, output, chances, curve)
    margins = " and ".join(
        f"{', '.join(map(str, side))} by {name} value" for side, name in ((law.held, "held"), (law.swapped, "swap"))
    )
    many = f"{len(law.tables):,} tables have" if case else "Only one table has"
    loss, promised = worst.loss if worst else 0.0, epsilon(size if worst else 0, law.rate)
    teaches: tuple[str, ...] = ()
    if 0 < promised < math.inf:
        active = min(len(law.held), len(law.swapped))
        teaches = tuple(sentence.format(active=active, share=loss / promised) for sentence in _TEACHES)
    return ExactAudit(
        title="Exact loss of a swap of one stratum, for each record in which two tables differ",
        about=(
            f"{size:,} records: {margins}; swap rate {quoted(law.rate)}. {many} these margins. A table is written row "
            "by row, one row for each held value."
        ),
        loss=loss,
        promised=promised,
        worst=case,
        laws=law,
        promised_by="the theorem",
        teaches=teaches,
    )


def exact_audit_of(
    mechanism: FiniteMechanism,
    flavor: Flavor | Specification | FiniteFlavor,
    datasets: Datasets | None = None,
    *,
    promised: float | None = None,
) -> ExactAudit:
    """The exact loss of any finite mechanism under a flavor of pure differential privacy, beside a promised epsilon.

    ``flavor`` lists its datasets, or is evaluated on ``datasets``; where it is a specification, its own budget is what
    was promised.

    >>> from stirred.spec import flavors
    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> audit = exact_audit_of(randomised_response("1/4"), flavors.local(), {"0": "0", "1": "1"}, promised=1)
    >>> round(audit.loss, 4), audit.kept, audit.worst.output
    (1.0986, False, '0')
    """
    finite = flavor if isinstance(flavor, FiniteFlavor) else FiniteFlavor.of(flavor, datasets)
    if not finite.output.kind.pure:
        raise errors.audit_question("The flavor of an exact audit", "must be one of pure differential privacy")
    if promised is None and isinstance(flavor, Specification):
        promised = float(flavor.budget.number)
    seen = mechanism.coarsen(finite.output.partition) if finite.output.partition else mechanism
    loss, case = mechanism.loss(finite), None
    if loss.worst is not None:
        case = _worst_case(seen, loss.worst.first, loss.worst.second, loss.worst.distance)
    return ExactAudit(
        title="Exact loss of a finite mechanism",
        about=f"{len(mechanism.datasets):,} datasets, {len(seen.outputs):,} outputs.",
        loss=loss.number,
        promised=promised,
        worst=case,
        laws=mechanism,
    )


def written(table: Table) -> str:
    """A table on one line, row by row.

    >>> written(((9, 1), (1, 9)))
    '9 1 / 1 9'
    """
    return " / ".join(" ".join(map(str, row)) for row in table)


# -- helpers -------------------------------------------------------------------------------------------------


def _rate(rate: Fraction | float | str) -> Fraction:
    try:
        return as_fraction(rate)
    except NOT_A_NUMBER:
        raise errors.parameter_out_of_range("rate", "not a number", "between 0 and 1") from None


def _worst_case(mechanism: FiniteMechanism, first: str, second: str, distance: float) -> WorstCase:
    p, q = (mechanism.rows[mechanism.datasets.index(name)] for name in (first, second))
    possible = np.flatnonzero((p > 0) | (q > 0))
    with np.errstate(divide="ignore"):
        ratios = np.where(q[possible] > 0, log_ratios(p[possible], np.where(q[possible] > 0, q[possible], 1.0)), np.inf)
    at = int(possible[np.argmax(np.abs(ratios))])
    if p[at] < q[at]:
        first, second, p, q = second, first, q, p
    return WorstCase(first, second, distance, mechanism.outputs[at], (float(p[at]), float(q[at])), _curve(p, q))


def _curve(p: Floats, q: Floats) -> PowerCurve:
    """The greatest power of a test between two laws, whichever is the hypothesis."""
    vertices = [power_curve(one, other).tolist() for one, other in ((p, q), (q, p))]
    # Probabilities that vanish beside others make no step.
    return TRADE_OFF.largest_curve([PowerCurve(tuple(dict(map(tuple, some)).items())) for some in vertices], ())


def _floats(law: StratumLaw, at: int) -> Floats:
    return np.array([share / law.total for share in law.row(at)])


def _as_mechanism(law: StratumLaw) -> FiniteMechanism:
    names = tuple(map(written, law.tables))
    logs = np.array([law.logs(at) for at in range(len(names))])
    if np.any(logs[logs > -math.inf] < math.log(np.finfo(np.float64).tiny)):
        raise errors.audit_question("A finite mechanism", "must have no probability below 1e-308: take fewer records")
    return FiniteMechanism(names, names, np.array([_floats(law, at) for at in range(len(names))]))


def _powers(curve: PowerCurve) -> str:
    return listed_plainly(map(shown_up, map(float, curve.power(LEVELS)), LEVELS))


def _against(promised: float | None) -> str:
    return "" if promised is None else f" against {display(promised)}"


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else f"{'-' * (value < 0)}infinity"
