"""Takes published noisy measurements into a work folder, from which a release is fitted as from a draw of one's own.

Nothing is drawn and nothing is spent: the measurements are public, and the guarantee is that of those who drew them.
Values are put into the order of the geography, through files of plain numbers, and written as draws are written.

The invariant a reader must know: a work folder remembers the files and options that it was made from, and is gone on
with for these only.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._received import inside, read_json
from stirred.margins.spine import Index
from stirred.noise import SystemSource
from stirred.releases.folder.documents import draw_nonce
from stirred.releases.progress import Progress, Silent
from stirred.topdown.constraints import require_nested
from stirred.topdown.drawing import TopDownDraw, reopen
from stirred.topdown.measuring import Entry, write_again
from stirred.topdown.nmf_form import product_folders
from stirred.topdown.nmf_reading import NoisyFiles, open_noisy_measurements
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.specifying import specify
from stirred.topdown.work_folder import (
    DRAWN,
    GEOGRAPHY,
    INVARIANTS,
    MEASUREMENTS,
    write_geography,
    write_invariants,
)

ADOPTED = "adopted.json"
_SCATTERED = "scattered"


def adopt(measurements: str | Path, folder: Path, *, progress: Progress | None = None, **options: Any) -> TopDownDraw:
    """Write published measurements into a folder as a draw that has no manifest yet."""
    progress = progress or Silent()
    progress.stage("reading what was measured")
    opened = open_noisy_measurements(measurements, **options)
    plan, spine = opened.plan, opened.spine
    exact = tuple(values for values in opened.exact if values is not None)
    require_nested(plan)
    assert isinstance(opened.measurements, NoisyFiles)
    (folder / MEASUREMENTS).mkdir()
    with _Scattered(folder / _SCATTERED, opened.measurements, progress) as scattered:
        progress.stage("writing measurements in the order of the geography")
        write_again(scattered, folder / MEASUREMENTS, plan, spine)
    write_geography(folder / MEASUREMENTS / GEOGRAPHY, plan, spine)
    write_invariants(folder / INVARIANTS, plan, spine, exact)
    made_from = {"files_sha256": _identity(Path(measurements), options)}
    (folder / ADOPTED).write_text(json.dumps(made_from) + "\n", encoding="utf-8")
    return TopDownDraw(
        folder=folder,
        plan=plan,
        spine=spine,
        exact=exact,
        agreements=(),
        specification=specify(plan),
        for_release=True,
        nonce=draw_nonce(SystemSource()),
    )


def readopt(measurements: str | Path, work: Path, **options: Any) -> TopDownDraw:
    """The draw in a work folder that was made from these files with these options."""
    try:
        fields = read_json(inside(work, DRAWN))["plan"]
        same = read_json(inside(work, ADOPTED))["files_sha256"] == _identity(Path(measurements), options)
    except (OSError, ValueError, KeyError, TypeError):
        raise errors.work_folder(work, "it was not made from noisy measurement files") from None
    if not same:
        raise errors.work_folder(work, "it was made from other noisy measurement files, or with other options")
    return reopen(TopDownPlan.from_published(fields), work)


def _identity(folder: Path, options: dict[str, Any]) -> str:
    """The names and sizes of all files, and what was asked for. Files are too large for checksums of their contents."""
    listed = [
        (str(path.relative_to(folder)), path.stat().st_size)
        for one in product_folders(folder)
        for path in sorted(one.rglob("*"))
        if path.is_file()
    ]
    asked = {name: str(value) for name, value in sorted(options.items()) if value}
    if totals := options.get("totals"):
        asked["totals"] = hashlib.sha256(Path(totals).read_bytes()).hexdigest() if Path(totals).is_file() else ""
    return hashlib.sha256(json.dumps([listed, asked]).encode()).hexdigest()


class _Scattered:
    """Values in the order of the geography, in files of plain numbers that go away with it."""

    def __init__(self, folder: Path, files: NoisyFiles, progress: Progress) -> None:
        self.folder, self.entries = folder, files.entries
        self._files, self._progress = files, progress
        self._arrays: dict[Entry, NDArray[np.int32]] = {}

    def __repr__(self) -> str:
        return f"<_Scattered: {len(self.entries)} queries>"

    def __enter__(self) -> _Scattered:
        self.folder.mkdir()
        every, done = sum(one.units * one.cells for one in self.entries), 0
        for number, entry in enumerate(self.entries):
            shape = entry.units, entry.cells
            self._arrays[entry] = np.memmap(self.folder / f"{number}", dtype=np.int32, mode="w+", shape=shape)
        for entry, units, values in self._files.batches(self.entries):
            self._put(entry, units, values)
            done += values.size
            self._progress.stage(f"reading {entry.table} at level '{entry.level}'", min(1.0, done / every))
        return self

    def _put(self, entry: Entry, units: slice | Index, values: NDArray[np.integer]) -> None:
        small = values.astype(np.int32)
        if not np.array_equal(small, values):
            raise errors.noisy_folder(self._files.folder, "a value does not fit into 32 bits")
        self._arrays[entry][units] = small

    def __exit__(self, *_: object) -> None:
        self._arrays.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def values(self, entry: Entry, units: slice) -> NDArray[np.int64]:
        """The values of some units, a row for each."""
        return self._arrays[entry][units].astype(np.int64)
