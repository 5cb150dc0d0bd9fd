"""Draw: count the data once, measure with exact noise, and commit it all to a private work folder.

The folder appears whole or not at all, and the ledger counts it before it appears. From then on the data are not needed
any more: a fit reads measurements, the public geography and the values of the invariants, as often as wanted.

The invariant a reader must know: a work folder that is there has been paid for. Drawing anew pays again; finishing
from it does not.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred import errors
from stirred.noise import RandomSource, SystemSource
from stirred.releases.folder import appearing, check_target, is_unfinished
from stirred.releases.ledger import Ledger
from stirred.releases.manifest import differences, read_manifest, write_manifest
from stirred.releases.plans import InputSection
from stirred.releases.progress import Progress, Silent
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.tables.groups import free_label
from stirred.topdown.agreement import Agreement, read_agreements, require_counted
from stirred.topdown.constraints import (
    Counts,
    invariant_values,
    require_agreement,
    require_kept,
    require_nested,
)
from stirred.topdown.counting import Counted, count_tables, read_spine
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import InvariantSection, slug
from stirred.topdown.specify import specify
from stirred.topdown.spine import Spine

DRAWN = "draw.json"
MEASUREMENTS = "measurements"
INVARIANTS = "invariants"
GEOGRAPHY = "geography.parquet"
FORM = 1


@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """A work folder: what a fit needs, and what was paid for it."""

    folder: Path
    plan: TopDownPlan
    spine: Spine
    exact: tuple[Counts, ...]
    """The value of each invariant, a row for each unit of its level."""
    agreements: tuple[Agreement, ...]
    specification: Specification
    for_release: bool
    entry: tuple[int, str] | None
    """The ledger's entry that paid for it: its number and its seal."""

    def __repr__(self) -> str:
        return f"<Drawn in {self.folder}; .specification, .measurements, finish(drawn, out)>"

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.folder / MEASUREMENTS)

    @property
    def randomness(self) -> str:
        return "the operating system's generator" if self.for_release else "a seeded source: not for release"


def prepare(
    plan: TopDownPlan, data: Mapping[str, Any] | None, progress: Progress, ledger: Ledger | None = None
) -> tuple[Counted, tuple[Counts, ...], tuple[Agreement, ...]]:
    """Count the data and refuse what no release could keep, before any noise is drawn."""
    progress.stage("reading and counting")
    require_nested(plan)
    counted = count_tables(plan, data)
    progress.stage("looking for contradictions")
    exact = invariant_values(counted)
    require_kept(counted, exact)
    agreements = read_agreements(plan, counted.spine)
    if ledger is not None:
        require_counted(agreements, ledger)
    require_nested(plan, agreements)
    require_agreement(plan, counted.spine, exact, agreements)
    return counted, exact, agreements


def draw(
    plan: TopDownPlan,
    data: Mapping[str, Any] | None = None,
    *,
    work: str | Path,
    source: RandomSource | None = None,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> Drawn:
    """Measure, once. ``source`` other than the operating system's is for tests and marks what it touches.

    ``data`` gives frames or paths by table in place of the plan's own, and the geography under its name.
    """
    source, progress, work = source or SystemSource(), progress or Silent(), Path(work)
    specification = specify(plan, source.for_release)
    if ledger is not None:
        ledger.check_dataset(plan.dataset)
        ledger.check(specification)
    with contextlib.ExitStack() as held, appearing(work, private=True) as folder:
        counted, exact, agreements = prepare(plan, data, progress, ledger)
        (folder / MEASUREMENTS).mkdir()
        measure(counted, folder / MEASUREMENTS, source, progress)
        progress.stage("writing what a fit needs")
        write_geography(folder / MEASUREMENTS / GEOGRAPHY, plan, counted.spine)
        (folder / INVARIANTS).mkdir()
        for number, (invariant, values) in enumerate(zip(plan.invariants, exact, strict=True)):
            _write_invariant(
                folder / INVARIANTS / invariant_file(number, invariant), plan, counted.spine, number, values
            )
        entry = None
        held.enter_context(_alone(work))  # until the folder is there: of two runs at once only one pays
        check_target(work)
        if ledger is not None:
            progress.stage("counting the draw in the ledger")
            entry = ledger.spend(specification, f"TopDown with rho {display(plan.rho)}, plan {plan.hash()[:12]}")
        paid = None if entry is None else (entry.id, entry.seal)
        fields = {
            "stirred_draw": FORM,
            "plan": plan.published(),
            "drawn_sha256": plan.drawn_hash(),
            "for_release": source.for_release,
            "ledger_entry": paid,
        }
        (folder / DRAWN).write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
        write_manifest(folder)
    return Drawn(work, plan, counted.spine, exact, agreements, specification, source.for_release, paid)


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """One run at a time for a target that is about to appear."""
    lock = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def reopen(plan: TopDownPlan, work: str | Path) -> Drawn:
    """A draw that was made before, for a plan that may differ in what the fit alone uses."""
    work = Path(work)
    try:
        fields = json.loads((work / DRAWN).read_text(encoding="utf-8"))
        known = fields["stirred_draw"] == FORM and not is_unfinished(work)
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise errors.topdown_work(work, "it is not a work folder of this version")
    if fields["drawn_sha256"] != plan.drawn_hash():
        raise errors.topdown_work(work, "its measurements were drawn for another plan")
    if found := differences(work, read_manifest(work)):
        raise errors.topdown_work(work, found[0])
    spine = read_geography(work / MEASUREMENTS / GEOGRAPHY, plan)
    exact = read_invariants(work / INVARIANTS, plan, spine)
    agreements = read_agreements(plan, spine)
    require_nested(plan, agreements)
    require_agreement(plan, spine, exact, agreements)
    return Drawn(
        folder=work,
        plan=plan,
        spine=spine,
        exact=exact,
        agreements=agreements,
        specification=specify(plan, fields["for_release"]),
        for_release=fields["for_release"],
        entry=None if fields["ledger_entry"] is None else (fields["ledger_entry"][0], fields["ledger_entry"][1]),
    )


# -- geography and invariants, as files ----------------------------------------------------------------------------


def write_geography(path: Path, plan: TopDownPlan, spine: Spine) -> None:
    """The public list of leaves, in the order of the spine."""
    leaf = len(spine.levels) - 1
    columns = [spine.names[leaf]]
    units = np.arange(spine.leaves)
    for level in range(leaf, len(spine.levels) - len(plan.spine.levels), -1):
        units = spine.parents(level)[units]
        columns.append(spine.names[level - 1].take(pa.array(units)))
    pq.write_table(pa.table(columns[::-1], names=list(plan.spine.levels)), path, compression="zstd")


def read_geography(path: Path, plan: TopDownPlan) -> Spine:
    """The spine that was written."""
    section = plan.spine.model_copy(update={"input": InputSection(format="parquet")})
    return read_spine(plan.model_copy(update={"spine": section}), path)


def invariant_file(number: int, invariant: InvariantSection) -> str:
    return (
        "-".join([str(number + 1), slug(invariant.table), slug(invariant.level), *map(slug, invariant.by)]) + ".parquet"
    )


def _write_invariant(path: Path, plan: TopDownPlan, spine: Spine, number: int, values: Counts) -> None:
    invariant = plan.invariants[number]
    pq.write_table(counts_table(plan, spine, invariant.table, invariant.level, invariant.by, values), path)


def counts_table(
    plan: TopDownPlan, spine: Spine, table: str, level: str, by: tuple[str, ...], values: Counts
) -> pa.Table:
    """Counts of every unit and group as rows: the unit, the values it is by, the count."""
    units, groups = values.shape
    names = spine.names[spine.levels.index(level)]
    labels = plan.table(table).schema_of.labels(by)
    columns = [names.take(pa.array(np.repeat(np.arange(units), groups)))]
    for at in range(len(by)):
        texts = pa.array([label[at] for label in labels], type=pa.string())
        columns.append(texts.take(pa.array(np.tile(np.arange(groups), units))))
    return pa.table([*columns, pa.array(values.ravel())], names=[level, *by, free_label("count", [level, *by])])


def read_invariants(folder: Path, plan: TopDownPlan, spine: Spine) -> tuple[Counts, ...]:
    """The values that were written, refused if they are not those of the plan's invariants."""
    found = []
    for number, invariant in enumerate(plan.invariants):
        groups = plan.table(invariant.table).schema_of.number_of_groups(invariant.by)
        read = pq.read_table(folder / invariant_file(number, invariant))
        values = read.columns[-1].to_numpy().astype(np.int64)
        if len(values) == spine.units(spine.levels.index(invariant.level)) * groups:
            found.append(values.reshape(-1, groups))
            stated = counts_table(plan, spine, invariant.table, invariant.level, invariant.by, found[-1])
            if stated.equals(read):
                continue
        raise errors.not_a_release(folder.parent, f"{invariant_file(number, invariant)} is not about the plan's places")
    return tuple(found)


def fingerprint(values: Counts) -> str:
    """SHA-256 of counts in the order of units and groups."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()
