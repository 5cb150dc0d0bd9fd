"""Keeps the last finished level of each table of a fit, so that an interrupted fit goes on from it.

A fit is deterministic post-processing: a level that was kept is the level that would be fitted again. Of each table the
level that was finished last is on disk, in a file of its own in the work folder: one line of JSON (what it belongs to,
and how the levels so far went), the three arrays of the histograms, and the SHA-256 of all that.

The invariant a reader must know: a file is used only if its checksum is right and it belongs to this draw, this plan,
these earlier releases and this version of the program. Any other is ignored, and replaced once the next level is done.
Where the folder cannot be written to, nothing is kept, and the fit is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stirred.topdown.problems import Histograms

FORM = 1
_MOST_HEADER = 1 << 28
"""Bytes of the first line; one with a fallback for every parent of a nation has less."""

Reports = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class FinishedLevels:
    """The finished levels of one fit, in a private folder that is made when the first of them is kept."""

    folder: Path
    belongs_to: str
    """What the fit is of: a checksum of draw, plan, earlier releases and version."""

    def keep(self, table: str, histograms: Histograms, reports: Reports) -> None:
        """Replace the kept level of a table by the one below, whose units have these histograms; ``reports`` says how
        each level so far went."""
        arrays = [histograms.starts.astype("<i8"), histograms.cells.astype("<i4"), histograms.counts.astype("<i8")]
        header = {
            "stirred_finished_level": FORM,
            "belongs_to": self.belongs_to,
            "table": table,
            "lengths": [len(array) for array in arrays],
            "reports": list(reports),
        }
        parts: list[bytes | memoryview] = [
            json.dumps(header).encode() + b"\n",
            *(array.view(np.uint8).data for array in arrays),
        ]
        digest = hashlib.sha256()
        new = self.folder / f".{self._name(table)}-{os.urandom(8).hex()}"
        with contextlib.suppress(OSError):
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    for part in parts:
                        digest.update(part)
                        file.write(part)
                    file.write(digest.digest())
                new.rename(self.folder / self._name(table))
            finally:
                new.unlink(missing_ok=True)

    def last(self, table: str) -> tuple[Histograms, list[dict[str, Any]]] | None:
        """The kept level of a table and the reports of all levels so far; None if there is none that can be used."""
        path = self.folder / self._name(table)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            with path.open("rb") as file:
                line = file.readline(_MOST_HEADER)
                header = json.loads(line)
                known = (header["stirred_finished_level"], header["belongs_to"], header["table"])
                sizes = [8 * header["lengths"][0], 4 * header["lengths"][1], 8 * header["lengths"][2]]
                length = len(line) + sum(sizes) + hashlib.sha256().digest_size
                if known != (FORM, self.belongs_to, table) or path.stat().st_size != length:
                    return None
                parts = [bytearray(size) for size in sizes]
                digest = hashlib.sha256(line)
                for part in parts:
                    file.readinto(part)
                    digest.update(part)
                if file.read() != digest.digest():
                    return None
            starts, cells, counts = (np.frombuffer(*one) for one in zip(parts, ("<i8", "<i4", "<i8"), strict=True))
            found = Histograms(starts.astype(np.int64), cells.astype(np.int32), counts.astype(np.int64))
            return found, list(header["reports"])
        return None

    @staticmethod
    def _name(table: str) -> str:
        return hashlib.sha256(table.encode()).hexdigest()[:16]
