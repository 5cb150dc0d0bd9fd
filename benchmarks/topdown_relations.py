"""Relations between persons and housing units: how many blocks break them without and with, at what error and time.

`topdown-pl94.toml` on a generated state of 1,052,567 persons, measured once; from the same measurements, tables are
fitted without relations and with the relation "persons in households are at least as many as occupied units, and at
most twenty times as many". Errors are mean absolute errors over the units of a level.

    python benchmarks/topdown_relations.py             a few minutes; rewrites its section of RESULTS.md
    python benchmarks/topdown_relations.py --keep      print only
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from results import machine, write_section
from topdown import PL94, generated, inputs

RELATION = {
    "table": "persons",
    "counted": "units",
    "where": {"hhgq": ["household"]},
    "counted_where": {"occupancy": ["occupied"]},
    "at_least": 1,
    "at_most": 20,
}
ASKED = (
    ("persons", "all persons", {}),
    ("persons", "in households", {"hhgq": ["household"]}),
    ("units", "occupied units", {"occupancy": ["occupied"]}),
)
DETAIL = ("persons", ("hhgq", "votingage", "hispanic", "cenrace"))


def main() -> str:
    from stirred.noise import SeededSource
    from stirred.topdown.data.constraints import Known
    from stirred.topdown.data.counting import Counted, count_tables
    from stirred.topdown.drawing import fit_tables
    from stirred.topdown.fitting.relations import require_related
    from stirred.topdown.measuring import Measurements, measure
    from stirred.topdown.plan.fields import TopDownPlan

    plain = TopDownPlan.from_toml(PL94)
    fields = plain.model_dump(mode="json", exclude_defaults=True)
    related = TopDownPlan(**fields | {"relations": [RELATION]})
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as work:
        generated(Path(folder))
        truth = count_tables(related, inputs(related, Path(folder)))
        require_related(truth)
        known = Known.of(truth)
        measure(truth, Path(work), SeededSource(1))
        clocks: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
        for name, plan in (("without", plain), ("with", related)) * 4:
            start = time.perf_counter(), time.process_time()
            fitted = fit_tables(replace(known, plan=plan), Measurements(Path(work)))
            clocks[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
            seconds = tuple(map(min, zip(*clocks[name], strict=True)))
            leaves = {table: one[0] for table, one in fitted.items()}
            fallbacks = sum(len(report.fallbacks) for one in fitted.values() for report in one[1])
            found[name] = (Counted(plan, truth.spine, leaves), seconds, fallbacks)
    return told(truth, found)


def told(truth: Any, found: dict[str, Any]) -> str:
    lines = ["| | without | with |", "|---|---|---|"]
    both = ("without", "with")

    def row(words: str, values: list[str]) -> None:
        lines.append(f"| {words} | {' | '.join(values)} |")

    broken = [blocks(found[name][0]) for name in both]
    for words in broken[0]:
        row(words, [f"{one[words]:,}" for one in broken])
    for level in truth.spine.levels[1:]:
        for table, words, where in ASKED:
            errors = [
                float(np.abs(counts(found[name][0], table, level, where) - counts(truth, table, level, where)).mean())
                for name in both
            ]
            row(f"mean error, {words}, {level}", [f"{one:.3f}" for one in errors])
        table, by = DETAIL
        errors = [
            float(np.abs(found[name][0].counts(table, level, by) - truth.counts(table, level, by)).sum(axis=1).mean())
            for name in both
            if level != "block"
        ]
        if errors:
            row(f"sum of errors of all cells, mean over units, {level}", [f"{one:.2f}" for one in errors])
    row("seconds to fit and round, the least of four", [f"{found[name][1][0]:.1f}" for name in both])
    row("processor seconds of all threads, the least of four", [f"{found[name][1][1]:.1f}" for name in both])
    row("parents not rounded between floor and ceiling", [f"{found[name][2]:,}" for name in both])
    return (
        f"{truth.spine.leaves:,} blocks of a generated state, fitted twice from the same measurements (seed 1).\n\n"
        + "\n".join(lines)
    )


def counts(counted: Any, table: str, level: str, where: dict[str, list[str]]) -> Any:
    by = tuple(where)
    found = counted.counts(table, level, by)
    if not where:
        return found[:, 0]
    labels = counted.plan.table(table).schema_of.labels(by)
    chosen = [all(value in where[name] for name, value in zip(by, label, strict=True)) for label in labels]
    return found[:, chosen].sum(axis=1)


def blocks(counted: Any) -> dict[str, int]:
    """How many blocks break the relation, in each way."""
    persons, units = (counts(counted, table, "block", where) for table, _, where in ASKED[1:])
    return {
        "blocks with persons in households and no occupied unit": int(((persons > 0) & (units == 0)).sum()),
        "blocks with fewer persons in households than occupied units": int((persons < units).sum()),
        "blocks with more than twenty persons in households for each occupied unit": int(
            ((units > 0) & (persons > 20 * units)).sum()
        ),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="print only")
    keep = parser.parse_args().keep
    text = main()
    print(text)
    if not keep:
        write_section(__file__, f"{text}\n\n{machine(('numpy',))}")
