"""Margins: counts of records by some columns, kept exactly by a mechanism.

A margin that is an invariant is public under the guarantee (Proposition 2.4.11), so its fingerprint may be printed: it
lets a recipient recount the margin from the released file and see that it is the one of the confidential file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from stirred.tables import Table
from stirred.tables.columns import chunks
from stirred.tables.groups import Cells, cells


@dataclass(frozen=True)
class Margin:
    """The counts of rows of one table by ``columns``; no columns means the number of rows.

    >>> Margin("microdata", ("state", "size", "county")).words()
    'the number of rows of microdata by state, size and county'
    """

    table: str
    columns: tuple[str, ...]

    def words(self) -> str:
        if not self.columns:
            return f"the number of rows of {self.table}"
        listed = ", ".join(self.columns[:-1])
        return f"the number of rows of {self.table} by " + (
            f"{listed} and {self.columns[-1]}" if listed else self.columns[-1]
        )

    def count(self, table: Table) -> Cells:
        return cells(table.pick(self.columns), table.rows)


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
