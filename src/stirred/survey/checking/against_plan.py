"""Whether a file shows something against what its plan states: rows that are whole units, sizes of the design, weights.

The noise is for one record of a unit, and some of it relies on facts that the plan states. What the file refutes is a
stop. What it cannot show stays a statement of the plan: a column is known to be an id of the unit by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.spec.exact import near
from stirred.spec.order.conversions import KNOWN_UNITS
from stirred.survey.plan.fields import SurveyPlan
from stirred.tables import Table

if TYPE_CHECKING:
    from stirred.survey.data import Records

_ALIKE = {
    "person": "individual respondent adult resident pers per indiv ind resp p",
    "household": "hhold hogar menage haushalt hh h",
    "family": "fam f",
    "business": "enterprise company firm ent bus",
    "establishment": "estab est",
}
"""Words for one unit, and beginnings of the names of its id."""
_NUMBERS = "id ident identifier key number num no nr code serial"
_OF_PERSONS = "id ident identifier key"
"""What the name of an id says beside the unit; numbers of persons often count within a household."""
_NAMES = {
    "household": {"serial", "serialno", "db030", "hb030", "rb040", "px030", "rx030"},
    "person": {"pb030", "rb030"},
}
"""Names of ids in files that many people have (ACS, EU-SILC)."""
_ROWS_PER_ID = 50
"""A column that has only the name of the unit may hold its kind: with more rows per value than this it does."""
_READABLE = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary,
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
)  # fmt: skip

LEAST_WITH_NONRESPONSE = Fraction(1, 20)
"""Design weights of those who answered add up to the population times the response rate, which is rarely below 5%."""
LEAST_OF_ALL, MOST_OF_ALL = Fraction(1, 2), 2
"""Weights of everybody who was selected, or adjusted ones, estimate the population; half and double are far beyond any
error of sampling."""


class Repeats(NamedTuple):
    """How an id of the unit repeats: how many rows share theirs with another row, and at most how many have one."""

    rows: int
    largest: int


# -- ids of the unit -------------------------------------------------------------------------------------------------


def looks_like_id(name: str, unit: str) -> bool:
    """Whether the name of a column is that of an id of a unit.

    >>> [looks_like_id(name, "household") for name in ("household_id", "HHID", "DB030", "hh_size", "pid")]
    [True, True, True, False, False]
    """
    family, plain = _family(unit), _plain(name)
    said = (_OF_PERSONS if family == "person" else _NUMBERS).split()
    pairs = [(word, one) for word in _words(unit) for one in (said if len(word) > 1 else ["id"])]
    named = {f"{word}{one}" for word, one in pairs} | {f"{one}{word}" for word, one in pairs if len(word) > 1}
    return plain.rstrip("0123456789") in named or plain in _NAMES.get(family, ())


def id_columns(plan: SurveyPlan, kinds: Mapping[str, pa.DataType]) -> dict[str, list[str]]:
    """The columns that look like ids of the plan's unit, and for each those within whose values its ids may repeat."""
    family = _family(plan.unit)
    readable = [name for name, kind in kinds.items() if any(is_kind(kind) for is_kind in _READABLE)]
    coarser = [coarse for fine, coarse in KNOWN_UNITS if fine == family]
    within = [name for name in readable if any(looks_like_id(name, unit) for unit in coarser)]
    found = [name for name in readable if looks_like_id(name, plan.unit) or _has_its_name(plan, name)]
    return dict.fromkeys(found, within)


def repeated_ids(
    plan: SurveyPlan, table: Table, ids: Mapping[str, Sequence[str]], clusters: NDArray[np.int64] | None
) -> dict[str, Repeats]:
    """By column that looks like an id of the unit, how its values repeat. Numbers that begin anew in each cluster, or
    in each coarser unit (persons in households), do not repeat."""
    found = {}
    for name, within in ids.items():
        column = table[name]
        numbers = column.codes.astype(np.int64)
        known = ~np.asarray(column.values.is_null().to_numpy(zero_copy_only=False))[numbers]
        others = [table[one].codes.astype(np.int64) for one in within]
        others += [clusters] if clusters is not None and name != plan.design.clusters else []
        for other in others:
            numbers = np.unique(numbers * (int(other.max(initial=0)) + 1) + other, return_inverse=True)[1]
        counts = np.bincount(numbers[known])
        counts = counts[counts > 0]
        if name == plan.design.clusters or looks_like_id(name, plan.unit) or len(counts) * _ROWS_PER_ID >= table.rows:
            found[name] = Repeats(int(counts[counts > 1].sum()), int(counts.max(initial=0)))
    return found


def _has_its_name(plan: SurveyPlan, name: str) -> bool:
    """Whether a column has the name of the unit: as a cluster, or where the plan does not read it as something else."""
    if name == plan.design.clusters:
        return _plain(name) in _words(plan.unit)
    read = [one.column or one.name for part in (plan.attributes, plan.variables) for one in part]
    return name not in read and _plain(name) in (_plain(plan.unit), _family(plan.unit))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _family(unit: str) -> str:
    word = _plain(unit)
    return next((one for one, alike in _ALIKE.items() if word == one or word in alike.split()), word)


def _words(unit: str) -> set[str]:
    family = _family(unit)
    return {family, *_ALIKE.get(family, "").split()} - {""}


# -- stops -----------------------------------------------------------------------------------------------------------


def require_design(records: Records) -> None:
    """Raise if the file has more primary units in a stratum than the plan says are selected."""
    sizes = records.plan.selected_units
    if sizes is not None and np.any(records.primary_units > np.array([selected for selected, _ in sizes])):
        kind = "records" if records.clusters is None else "clusters"
        raise errors.DataError(
            "survey-design",
            f"The design in the plan does not fit the file: it has more {kind} in a stratum than the plan says are "
            "selected.",
            "Correct [design] of the plan from the description of the survey, or give the right file.",
        )


def stops_of(records: Records) -> list[errors.StoppedByCheck]:
    """What in the file speaks against the plan."""
    return [*_several_rows(records), *_design(records), *_weights(records), *_all_empty(records)]


def open_stops(plan: SurveyPlan, stops: Iterable[errors.StoppedByCheck]) -> list[errors.StoppedByCheck]:
    """The stops that a plan does not allow."""
    return [stop for stop in stops if stop.kind not in plan.allow]


def _several_rows(records: Records) -> Iterator[errors.StoppedByCheck]:
    plan, pure = records.plan, records.plan.noise == "laplace"
    for name, (rows, largest) in records.ids.items():
        if rows:
            times = f"{largest:,} times the stated epsilon" if pure else f"{largest**2:,} times the stated rho"
            yield errors.several_rows(name, plan.unit, rows, largest, times)


def _design(records: Records) -> Iterator[errors.StoppedByCheck]:
    plan = records.plan
    design, what = plan.design, "records" if records.clusters is None else "clusters"
    if plan.selected_units is not None:
        found, selected = records.primary_units, np.array([one for one, _ in plan.selected_units])
        fewer, there, all_selected = int((found < selected).sum()), int(found.sum()), int(selected.sum())
        where = f", fewer than were selected in {fewer:,} of {len(selected):,} strata" if len(selected) > 1 else ""
        if fewer and plan.sample.everybody_responds:
            yield errors.not_everybody_responds(what, there, all_selected, where)
        elif fewer and records.clusters is not None:  # of records, that not everybody answers is reason enough
            yield errors.fewer_selected(there, all_selected, where)
    if records.clusters is not None and design.largest_cluster is not None:
        largest = int(np.bincount(records.clusters).max(initial=0))
        if largest > design.largest_cluster:
            yield errors.cluster_too_large(str(design.clusters), largest, design.largest_cluster)


def _weights(records: Records) -> Iterator[errors.StoppedByCheck]:
    plan, total = records.plan, records.weights_in_file
    population = plan.sample.population
    if plan.weights is None or total is None or population is None:
        return
    complete = plan.sample.everybody_responds or plan.weights.kind == "final"
    least, accepted = (LEAST_OF_ALL, "half of it") if complete else (LEAST_WITH_NONRESPONSE, "5% of it")
    if not least * population <= Fraction(total) <= MOST_OF_ALL * population:
        accepted = f"at least {accepted}, and at most twice as many"
        yield errors.weights_of_another_population(plan.weights.column, total, near(population), plan.unit, accepted)


def _all_empty(records: Records) -> Iterator[errors.StoppedByCheck]:
    for column in records.without_values:
        yield errors.column_all_empty(column)
