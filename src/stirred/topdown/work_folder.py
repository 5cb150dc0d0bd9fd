"""Writes and reads the files that a fit needs: geography, values of invariants, draw.json.

A work folder has ``draw.json`` (the plan, and the ledger's entry), ``measurements/`` with the public list of
leaves, ``invariants/`` and a manifest. A release has copies of the two folders. Until a release is written, the work
folder also has levels that are fitted (:mod:`stirred.topdown.finished_levels`), which are no part of the draw.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred import errors
from stirred._received import inside, read_json
from stirred.margins.spine import Spine
from stirred.releases.folder.atomic import KEPT, PARTS, is_unfinished
from stirred.releases.folder.manifest import NAME, differences, digest_of, read_manifest, write_manifest
from stirred.tables.groups import free_label
from stirred.topdown.constraints import Counts
from stirred.topdown.counting import read_spine
from stirred.topdown.measuring import INDEX, entries
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import InvariantSection, PlacesInput, slug

DRAWN = "draw.json"
MEASUREMENTS = "measurements"
INVARIANTS = "invariants"
GEOGRAPHY = "geography.parquet"
FORM = 1


@dataclass(frozen=True)
class DrawRecord:
    """What ``draw.json`` says about a draw, beside its plan."""

    for_release: bool
    entry: tuple[int, str] | None
    """The ledger's entry that paid for it: its number and its seal."""
    nonce: str
    """The identity of the draw. For draws of earlier versions, which had none, it is made from the manifest."""


def is_work(folder: Path) -> bool:
    """Whether a folder is a work folder of TopDown."""
    return (folder / DRAWN).is_file()


def write_record(folder: Path, plan: TopDownPlan, record: DrawRecord) -> None:
    """Write ``draw.json`` and then the manifest, which completes the folder."""
    fields = {
        "stirred_draw": FORM,
        "plan": plan.published(),
        "drawn_sha256": plan.drawn_hash(),
        "for_release": record.for_release,
        "nonce": record.nonce,
        "ledger_entry": record.entry,
    }
    (folder / DRAWN).write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
    write_manifest(folder)


def read_record(work: Path, plan: TopDownPlan) -> DrawRecord:
    """Read ``draw.json``; raises if the folder is damaged, or was drawn for another plan."""
    try:
        fields = read_json(inside(work, DRAWN))
        known = fields["stirred_draw"] == FORM and not is_unfinished(work)
        entry, nonce = fields["ledger_entry"], fields.get("nonce")
        paid = None if entry is None else (int(entry[0]), str(entry[1]))
        identity = digest_of(work / NAME)[:32] if nonce is None else str(nonce)
        record = DrawRecord(bool(fields["for_release"]), paid, identity)
        drawn = fields["drawn_sha256"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        known = False
    if not known:
        raise errors.work_folder(work, "it is not a work folder of this version")
    if drawn != plan.drawn_hash():
        raise errors.work_folder(work, "its measurements were drawn for another plan")
    if found := differences(work, read_manifest(work), frozenset({KEPT, PARTS})):
        raise errors.work_folder(work, found[0])
    return record


def paid_entry(folder: Path) -> int | None:
    """The ledger's entry that ``draw.json`` names, also in a folder that a killed run left unfinished."""
    try:
        entry = read_json(inside(folder, DRAWN))["ledger_entry"]
        return None if entry is None else int(entry[0])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def write_invariants(folder: Path, plan: TopDownPlan, spine: Spine, values: tuple[Counts, ...]) -> None:
    """Write the values of all invariants, a file for each."""
    if plan.invariants:
        folder.mkdir()
    for number, (invariant, counts) in enumerate(zip(plan.invariants, values, strict=True)):
        table = counts_table(plan, spine, invariant.table, invariant.level, invariant.by, counts)
        pq.write_table(table, folder / invariant_file(number, invariant))


def write_geography(path: Path, plan: TopDownPlan, spine: Spine) -> None:
    """Write the public list of leaves, in the order of the spine."""
    pq.write_table(geography_table(plan, spine), path, compression="zstd")


def geography_table(plan: TopDownPlan, spine: Spine) -> pa.Table:
    """The public list of leaves, in the order of the spine."""
    leaf = len(spine.levels) - 1
    columns = [spine.names[leaf]]
    units = np.arange(spine.leaves)
    for level in range(leaf, len(spine.levels) - len(plan.spine.levels), -1):
        units = spine.parents(level)[units]
        columns.append(spine.names[level - 1].take(pa.array(units)))
    return pa.table(columns[::-1], names=list(plan.spine.levels))


def read_geography(path: Path, plan: TopDownPlan) -> Spine:
    """Read the spine that :func:`write_geography` wrote."""
    section = plan.spine.model_copy(update={"input": PlacesInput(format="parquet")})
    return read_spine(plan.model_copy(update={"spine": section}), path)


def measurement_files(plan: TopDownPlan, spine: Spine) -> list[str]:
    """The files with the measurements that a draw writes and a release repeats, relative to the folder."""
    return [f"{MEASUREMENTS}/{name}" for name in (INDEX, GEOGRAPHY, *(entry.file for entry in entries(plan, spine)))]


def invariant_files(plan: TopDownPlan) -> list[str]:
    """The files with the values of invariants, relative to the folder."""
    return [f"{INVARIANTS}/{invariant_file(number, one)}" for number, one in enumerate(plan.invariants)]


def invariant_file(number: int, invariant: InvariantSection) -> str:
    """The name of the file with the values of an invariant."""
    return (
        "-".join([str(number + 1), slug(invariant.table), slug(invariant.level), *map(slug, invariant.by)]) + ".parquet"
    )


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
    """Read the values of all invariants; raises if they do not fit the plan."""
    found = []
    for number, invariant in enumerate(plan.invariants):
        groups = plan.table(invariant.table).schema_of.number_of_groups(invariant.by)
        path = inside(folder, invariant_file(number, invariant))
        length = spine.units(spine.levels.index(invariant.level)) * groups
        if pq.read_metadata(path).num_rows == length:  # seen before the rows are read
            read = pq.read_table(path)
            values = read.columns[-1].to_numpy().astype(np.int64)
            found.append(values.reshape(-1, groups))
            stated = counts_table(plan, spine, invariant.table, invariant.level, invariant.by, found[-1])
            if stated.equals(read, check_metadata=True):
                continue
        raise errors.not_a_release(folder.parent, f"{invariant_file(number, invariant)} is not about the plan's places")
    return tuple(found)


def fingerprint(values: Counts) -> str:
    """SHA-256 of counts in the order of units and groups."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()
