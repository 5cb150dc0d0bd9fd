"""What the report in a release folder costs: a swap with it beside the same swap without, and what verifying adds.

Every job runs in a process of its own, so that loading what draws is part of the time, as it is for a command. Ratios
are what to read; the aim is less than ten seconds more for ten million records.

    python benchmarks/reports.py                  about three minutes; rewrites its section of RESULTS.md
    python benchmarks/reports.py --rows 1         millions of rows
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import machine, write_section
from swap import make_records

STRATA = (350, 1_000_000)
REPEATS = 3


def child(source: Path, target: Path, report: bool) -> None:
    """Release and verify, and print the processor seconds of both, which do not depend on what else runs."""
    import stirred

    plan = stirred.SwapPlan(match=["area", "size"], swap=["county"], hold="rest", id="id", rate="1/20",
                            chosen_from="public", unit="household")  # fmt: skip
    began = time.process_time()
    stirred.release(plan, source, out=target, report=report)
    released = time.process_time()
    assert all(verdict.holds for verdict in stirred.verify(target))
    print(json.dumps([released - began, time.process_time() - released]))


def run(source: Path, report: bool, repeats: int = REPEATS) -> tuple[float, float]:
    """Best processor seconds of a release and of its verification."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
            command = [sys.executable, __file__, "--child", str(source), f"{scratch}/out", str(int(report))]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.append(json.loads(printed.splitlines()[-1]))
    return min(one[0] for one in found), min(one[1] for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="0.02,10", help="millions of rows, separated by commas")
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Path(options.child[0]), Path(options.child[1]), options.child[2] == "1")
        return
    lines = [
        "| rows | strata | release without | with report | ratio | seconds more | verify without | with report |",
        "|---|---|---|---|---|---|---|---|",
    ]
    folder = Path(tempfile.mkdtemp(prefix="stirred-bench-"))
    try:
        for rows in (int(float(part) * 1e6) for part in options.rows.split(",")):
            for strata in (one for one in STRATA if one * 5 <= rows):
                source = make_records(folder, rows, strata)
                run(source, True, 1)  # compiled kernels and files in memory
                without, plain = run(source, False)
                reported, compared = run(source, True)
                lines.append(
                    f"| {rows:,} | {strata:,} | {without:.2f} s | {reported:.2f} s | {reported / without:.2f} | "
                    f"{reported - without:.2f} | {plain:.2f} s | {compared:.2f} s |"
                )
                print(lines[-1], flush=True)
                source.unlink()
    finally:
        shutil.rmtree(folder)
    if not options.keep:
        text = "A release with `report.html` beside the same release without it, each in a process. Seconds are "
        text += "those of all processors together, so that other work on the machine does not count.\n\n"
        write_section(__file__, f"{machine(['altair', 'vl-convert-python'])}\n\n{text}" + "\n".join(lines))


if __name__ == "__main__":
    main()
