"""What a calibration found: parameters that keep targets, what each target costs, and what else changes.

Every mechanism gives its answer in this form; ``print`` shows it with the consequence first.

The invariant a reader must know: an answer is only given where the targets were looked at again with the parameters as
they are written, after rounding.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stirred.semantics.formatting import columns
from stirred.spec.exact import significant, without_infinities

WIDTH = 110
FORM = 1
"""The format version of the JSON of a calibration."""

_BOUNDS = ("epsilon", "rho", "power", "the same at", "belief")
"""How the names of upper bounds begin."""
_MOST_NAMED = 5
"""Errors that a warning names."""

CONFIDENTIAL = "CONFIDENTIAL: computed from the data. Do not publish it."


@dataclass(frozen=True)
class TargetAnswer:
    """What became of one target."""

    target: str
    met: bool
    before: float | None
    """The value with the plan's own parameters; None where there is none, infinite where nothing limits it."""
    after: float | None
    limit: float
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """What the target costs, by name."""


@dataclass(frozen=True)
class Change:
    """A number before and after, as it is shown and as it is."""

    what: str
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Parameters that keep targets. ``print`` shows it as a page of text; ``plan`` is the plan with them."""

    of: str
    """What was calibrated: a mechanism, or the name of a number."""
    answer: tuple[str, ...]
    """The consequence, in sentences."""
    targets: tuple[TargetAnswer, ...]
    changes: tuple[Change, ...] = ()
    """What else changes."""
    paste: str = ""
    """Lines for the plan."""
    notes: tuple[str, ...] = ()
    plan: Any = None
    confidential: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The mechanism's own numbers, for JSON."""

    def __repr__(self) -> str:
        met = sum(one.met for one in self.targets)
        said = ", confidential" if self.confidential else ""
        return f"<Calibration of {self.of}{said}: {met} of {len(self.targets)} targets met; print it to read it all>"

    def __str__(self) -> str:
        parts = [CONFIDENTIAL] if self.confidential else []
        parts.append("\n".join(_fill(one) for one in self.answer))
        parts.append("Targets\n" + columns(self._target_rows(), numbers_right=True))
        if self.changes:
            rows = [("what else changes", "before", "after")]
            for one in self.changes:
                rows.append((one.what, _as_what(one.what, one.before), _as_what(one.what, one.after)))
            parts.append(columns(rows, numbers_right=True))
        if self.paste:
            parts.append("For the plan:\n\n" + self.paste.rstrip())
        parts.extend(_fill(one) for one in self.notes)
        return "\n\n".join(parts) + "\n"

    def _target_rows(self) -> list[Sequence[str]]:
        names = list(dict.fromkeys(name for one in self.targets for name in one.costs))
        rows: list[Sequence[str]] = [("target", "limit", "before", "after", "", *names)]
        for one in self.targets:
            costs = [shown(one.costs.get(name)) for name in names]
            met = "met" if one.met else "NOT MET"
            values = (_as_what(one.target, value) for value in (one.before, one.after))
            rows.append((one.target, shown(one.limit), *values, met, *costs))
        return rows

    def to_json(self) -> str:
        """The calibration as JSON; infinity is written as the text "infinity"."""
        fields = {
            "stirred_calibration": FORM,
            "confidential": self.confidential,
            "of": self.of,
            "answer": list(self.answer),
            "all_met": all(one.met for one in self.targets),
            "targets": [
                {
                    "target": one.target,
                    "met": one.met,
                    "limit": one.limit,
                    "before": one.before,
                    "after": one.after,
                    "costs": dict(one.costs),
                }
                for one in self.targets
            ],
            "changes": [{"what": one.what, "before": one.before, "after": one.after} for one in self.changes],
            **self.fields,
            "notes": list(self.notes),
        }
        return json.dumps(without_infinities(fields), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def worse(errors: Sequence[Change]) -> tuple[str, ...]:
    """A warning that names the errors that grow by more than a factor of two; none where there are none.

    >>> worse([Change("error of age", 2.0, 9.0), Change("error of sex", 2.0, 4.0)])
    ('WARNING: more than twice as large as before: error of age (2 before, 9 after).',)
    """
    grown = [one for one in errors if one.before and one.after is not None and one.after > 2 * one.before]
    if not grown:
        return ()
    grown.sort(key=lambda one: one.after / one.before if one.after and one.before else 0, reverse=True)
    named = [f"{one.what} ({shown(one.before)} before, {shown(one.after)} after)" for one in grown[:_MOST_NAMED]]
    more = f"; and {len(grown) - _MOST_NAMED:,} more" if len(grown) > _MOST_NAMED else ""
    return (f"WARNING: more than twice as large as before: {'; '.join(named)}{more}.",)


def shown(value: float | None) -> str:
    """A number with four digits that count.

    >>> shown(0.123456), shown(12345.6), shown(None), shown(float("inf")), shown(0.0)
    ('0.1235', '12,346', '-', 'unknown', '0')
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _as_what(what: str, value: float | None) -> str:
    """A number as it is shown beside its name: bounds of a guarantee are rounded up, as everywhere.

    >>> _as_what("epsilon", 10.7141), _as_what("error of age", 10.7141), _as_what("epsilon", 0.1 + 0.2)
    ('10.72', '10.71', '0.3')
    """
    if value is None or not 0 < value < 10_000 or not what.startswith(_BOUNDS):
        return shown(value)
    return significant(value * (1 - 1e-12), 4)


def _fill(text: str) -> str:
    return textwrap.fill(text, WIDTH)
