"""Forecasts time, memory and disk of a release: a rough model, calibrated on benchmarks/topdown.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.topdown.counting import Counted
from stirred.topdown.measuring import Entry
from stirred.topdown.subtrees import CHUNK

_VALUES_PER_SECOND = 1.2e7
"""Measured values that are counted, drawn and written in a second, on two cores."""
_FITTED_PER_SECOND = 2.0e7
"""Measured values that are read and fitted in a second."""
_RECORDS_PER_SECOND = 5.0e5
"""Records that are read, counted, and written again in a second."""
_BYTES_PER_VALUE = 0.9
_BYTES_PER_RECORD = 2.0
_BASE = 400_000_000
_BYTES_PER_POSITIVE_CELL = 16 * 6
"""Histograms of data and fit, at two levels each, with what is built beside them."""
_BYTES_PER_HELD_VALUE = 8 * 4
"""As they are read, the next part of them, and what the fit makes of them."""


@dataclass(frozen=True)
class Forecast:
    """Rough cost of the release on a machine of two cores."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


def forecast(counted: Counted, planned: Sequence[Entry]) -> Forecast:
    """The forecast from the numbers of measured values, positive cells and records."""
    values = sum(entry.units * entry.cells for entry in planned)
    positive = sum(len(leaves.cells) for leaves in counted.leaves.values())
    records = sum(int(leaves.counts.sum()) for leaves in counted.leaves.values())
    widest = max(entry.cells for entry in planned)
    held = min(values, max(CHUNK, 64 * widest))
    # Least squares keeps a number for each cell of each unit above the leaves, in a file where a level has many.
    above = [counted.spine.units(level) for level in range(len(counted.spine.levels) - 1)]
    cells = max(table.schema_of.cells for table in counted.plan.released)
    kept = sum(min(units * cells, CHUNK) for units in above) if counted.plan.fit != "level by level" else 0
    return Forecast(
        seconds=3 + records / _RECORDS_PER_SECOND + values / _VALUES_PER_SECOND + values / _FITTED_PER_SECOND,
        memory_bytes=int(_BASE + positive * _BYTES_PER_POSITIVE_CELL + held * _BYTES_PER_HELD_VALUE + 8 * kept),
        disk_bytes=int(values * _BYTES_PER_VALUE + records * _BYTES_PER_RECORD),
    )


def available_memory() -> int | None:
    """Free memory in bytes; None where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None
