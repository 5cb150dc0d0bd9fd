"""Margins: counts of records by some columns that a mechanism keeps exactly.

A margin that is an invariant is public under the guarantee (Proposition 2.4.11), so its fingerprint may be printed: it
lets a recipient recount the margin from the released file and see that it is the one of the confidential file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from stirred.errors import listed_plainly
from stirred.tables import Table
from stirred.tables.columns import chunks
from stirred.tables.groups import Cells, cells


@dataclass(frozen=True)
class Margin:
    """Counts of one table's rows by ``columns`` that a mechanism keeps exactly; without columns the number of rows.

    The same object goes from the plan, where it is declared, to the certificate, which states its fingerprint, and to
    the recipient, who counts it again and compares. ``cells`` and ``sha256`` are known once it is counted. ``linked``
    names tables whose rows count as part of each record; such a margin has no cells of its own.

    >>> print(Margin("microdata", ("state", "size", "county")))
    the number of rows of microdata by state, size and county
    """

    table: str
    columns: tuple[str, ...]
    words: str = field(default="", compare=False)
    cells: int | None = None
    sha256: str | None = None
    linked: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.words:
            return self.words
        said = f"the number of rows of {self.table}"
        return f"{said} by {listed_plainly(self.columns)}" if self.columns else said

    def count(self, table: Table) -> Cells:
        """The counts of a table's rows by the columns of this margin."""
        return cells(table.pick(self.columns), table.rows)

    def counted_as(self, cells: int, sha256: str) -> Margin:
        """This margin with what was found when it was counted."""
        return replace(self, cells=cells, sha256=sha256)

    def to_fields(self) -> dict[str, Any]:
        """The margin as the certificate states it."""
        if self.linked:
            return {"linked": list(self.linked), "words": str(self), "fingerprint": self.sha256}
        return {
            "table": self.table,
            "columns": list(self.columns),
            "words": str(self),
            "cells": self.cells,
            "sha256": self.sha256,
        }


def fingerprint(table: Table, counted: Cells) -> str:
    """SHA-256 of a margin: column names, their distinct values as text, the non-empty cells and their counts.

    It depends on the counts alone: encoded columns list their values sorted, cells come in the order of their codes,
    and whether codes are packed into keys follows from the numbers of values.
    """
    digest = hashlib.sha256()
    for name in counted.names:
        digest.update(json.dumps([name, table[name].texts()]).encode())
    for part in chunks(len(counted)):
        if counted.keys is not None:
            digest.update(counted.keys[part].astype("<u8").tobytes())
        else:
            for codes in counted.part(part):
                digest.update(codes.astype("<u4").tobytes())
        digest.update(counted.counts[part].astype("<i8").tobytes())
    return digest.hexdigest()
