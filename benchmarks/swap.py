"""The swap beside Polars plainly reading and writing the same file.

Every job runs in a process of its own, so that its peak memory is its own, after a small warm-up that leaves compiled
kernels and imports out of the time. Peers and ours run in one script on the same files; ratios are what to read.

    python benchmarks/swap.py                     all of it, about ten minutes; rewrites its section of RESULTS.md
    python benchmarks/swap.py --rows 1,10         millions of rows
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from results import machine, write_section

COLUMNS = ["area", "size", "county", "tenure", "race", "age_group"]


# -- jobs, each run in its own process ---------------------------------------------------------------------------


def polars_read_write(source: Path, target: Path) -> None:
    import polars as pl

    pl.read_parquet(source).write_parquet(target, compression="zstd", compression_level=1)


def polars_lazy_read_write(source: Path, target: Path) -> None:
    import polars as pl

    pl.scan_parquet(source).sink_parquet(target, compression="zstd", compression_level=1)


def polars_sort_all(source: Path, target: Path) -> None:
    import polars as pl

    pl.scan_parquet(source).sort(COLUMNS).sink_parquet(target, compression="zstd", compression_level=1)


def swap_release(source: Path, target: Path) -> None:
    from stirred.swap.drawing import release
    from stirred.swap.plan.fields import SwapPlan

    plan = SwapPlan(
        match=["area", "size"],
        swap=["county"],
        hold="rest",
        id="id",
        rate="1/20",
        chosen_from="public",
        unit="household",
    )
    release(plan, source, out=target)


def rules_release(source: Path, target: Path) -> None:
    """Records that are unique on what is published exactly at one half, the others at 2%."""
    from stirred.swap.drawing import release
    from stirred.swap.plan.fields import SwapPlan

    plan = SwapPlan(
        match=["area", "size"],
        swap=["county"],
        hold="rest",
        id="id",
        rates=[{"unique_on": "held", "rate": "1/2"}, {"otherwise": True, "rate": "1/50"}],
        chosen_from="public",
        unit="household",
    )
    release(plan, source, out=target)


def polars_linked(source: Path, target: Path) -> None:
    import polars as pl

    target.mkdir()
    for name in ("households", "persons"):
        frame = pl.read_parquet(source / f"{name}.parquet")
        frame.write_parquet(target / f"{name}.parquet", compression="zstd", compression_level=1)


def linked_release(source: Path, target: Path) -> None:
    from stirred.swap.drawing import release
    from stirred.swap.plan.fields import SwapPlan

    plan = SwapPlan(
        unit="household",
        id="household_id",
        match=["region", "size"],
        swap=["county", "tract"],
        hold="rest",
        rate="1/20",
        chosen_from="public",
        linked=[{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}],
    )
    release(plan, {"microdata": source / "households.parquet", "persons": source / "persons.parquet"}, out=target)


def kernel_only(source: Path, target: Path) -> float:
    """Seconds of the kernel alone, the strata being in memory."""
    import polars as pl

    from stirred.noise import SystemSource
    from stirred.swap.law.permutation import draw
    from stirred.tables.groups import Groups

    frame = pl.scan_parquet(source).select(pl.col("area").cast(pl.UInt32) * 7 + pl.col("size") - 1).collect()
    codes = frame.to_series().to_numpy()
    strata = Groups(codes, int(codes.max()) + 1)
    sizes = strata.sizes()
    draw(strata, sizes, Fraction(1, 20), SystemSource())
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        draw(strata, sizes, Fraction(1, 20), SystemSource())
        best = min(best, time.perf_counter() - began)
    return best


JOBS: dict[str, Callable[[Path, Path], float | None]] = {
    "polars read and write": polars_read_write,
    "polars lazy read and write": polars_lazy_read_write,
    "polars sort by all columns": polars_sort_all,
    "stirred kernel": kernel_only,
    "stirred release": swap_release,
    "stirred release, rates by rule": rules_release,
    "polars read and write, linked": polars_linked,
    "stirred release, linked": linked_release,
}


def child(job: str, warm: Path, source: Path, target: Path) -> None:
    """Run one job after a warm-up and print its seconds and peak memory."""
    JOBS[job](warm, target.with_name(target.name + "-warm"))
    began = time.perf_counter()
    own = JOBS[job](source, target)
    seconds = own if own is not None else time.perf_counter() - began
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))


def run(job: str, warm: Path, source: Path, repeats: int) -> tuple[float, int]:
    """Best seconds and peak memory of some runs."""
    results = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
            command = [sys.executable, __file__, "--child", job, str(warm), str(source), f"{scratch}/out"]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results.append(json.loads(printed.splitlines()[-1]))
    return min(entry[0] for entry in results), max(entry[1] for entry in results)


# -- files -----------------------------------------------------------------------------------------------------------


def make_records(folder: Path, rows: int, strata: int) -> Path:
    import pyarrow.parquet as pq

    from stirred.tables.synthetic import records

    path = folder / f"records-{rows}-{strata}.parquet"
    writer = None
    for frame in records(rows, strata, rows_per_chunk=min(rows, 1_000_000)):
        table = frame.to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


def make_households(folder: Path, households: int) -> Path:
    from stirred.tables.synthetic import households_and_persons

    place = folder / f"households-{households}"
    place.mkdir()
    main, persons = households_and_persons(households)
    main.write_parquet(place / "households.parquet")
    persons.write_parquet(place / "persons.parquet")
    return place


# -- the report ------------------------------------------------------------------------------------------------------


def bench(millions: list[float], folder: Path) -> list[str]:
    lines = [
        "| rows | strata | job | seconds | of Polars read+write | ns a row | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    warm = make_records(folder, 20_000, 350)
    for million in millions:
        rows = int(million * 1e6)
        for strata in (350, 1_000_000):
            if strata * 5 > rows:
                continue
            source = make_records(folder, rows, strata)
            repeats = 3 if rows <= 10_000_000 else 1
            floor = float("nan")
            for job in JOBS:
                if job.endswith("linked"):
                    continue
                seconds, peak = run(job, warm, source, repeats)
                floor = seconds if job == "polars read and write" else floor
                line = (
                    f"| {rows:,} | {strata:,} | {job} | {seconds:.3f} | {seconds / floor:.2f} | "
                    f"{seconds / rows * 1e9:.1f} | {peak / 1e9:.2f} GB |"
                )
                print(line, flush=True)
                lines.append(line)
            source.unlink()
    return lines


def bench_linked(folder: Path) -> list[str]:
    warm, source = make_households(folder, 2_000), make_households(folder, 1_000_000)
    floor, _ = run("polars read and write, linked", warm, source, 5)
    seconds, peak = run("stirred release, linked", warm, source, 5)
    line = (
        f"One million households with 3.5 million linked persons, end to end: **{seconds / floor:.2f} times** Polars "
        f"plainly reading and writing both files ({seconds:.2f} s against {floor:.2f} s; aim 2), {peak / 1e9:.2f} GB. "
        "The C++ core of sdcMicro, without files and without a guarantee, was measured at 29.2 s on a machine of this "
        "size."
    )
    print(line, flush=True)
    return [line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1,10,100", help="millions of rows, separated by commas")
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], *(Path(part) for part in options.child[1:]))
        return
    folder = Path(tempfile.mkdtemp(prefix="stirred-bench-"))
    try:
        lines = bench([float(part) for part in options.rows.split(",")], folder)
        linked = bench_linked(folder)
    finally:
        shutil.rmtree(folder)
    if not options.keep:
        write_section(
            __file__,
            f"{machine(['numpy', 'numba', 'polars', 'pyarrow'])}\n\n"
            "Six small integer columns and an int64 id, Parquet with zstd, swap rate 1/20. The "
            "kernel's time is for strata in "
            "memory; a release reads, checks, counts, swaps, recounts, orders and writes.\n\n"
            + "\n".join(lines)
            + "\n\n"
            + "\n".join(linked),
        )


if __name__ == "__main__":
    main()
