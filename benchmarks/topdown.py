"""TopDown from files to fitted tables: time, memory, accuracy, and its fit beside OSQP.

Two plans, each a file here. `topdown-ri.toml` is race by adult on the real blocks of Rhode Island in 2010, one row for
each of its 1,052,567 persons; the counts are read from the folder STIRRED_DATA, by default ../shared/data beside the
repository. `topdown-pl94.toml` is the 2020 redistricting data with all its constraints on a generated state of the same
size. Kernels come from their cache. Time and memory of a run are those of a process of its own, which imports, reads,
counts, draws exact noise for the full domain, writes it, and fits; the peak is that of the whole process.

    python benchmarks/topdown.py                 a quarter of an hour; rewrites its section of RESULTS.md
    python benchmarks/topdown.py --keep          print only
    python benchmarks/topdown.py pl94 osqp       some parts, print only
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from results import machine, write_section

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STIRRED_DATA", HERE.parent.parent / "shared" / "data"))
BLOCKS = DATA / "ri_2010_block.csv"
RI, PL94 = HERE / "topdown-ri.toml", HERE / "topdown-pl94.toml"
One = TypeVar("One")

PERSONS = 1_052_567
STAGES = ("import", "count", "measure", "fit")
NATION = 8_000_000
"""Blocks."""


# -- one run, in a process of its own --------------------------------------------------------------------------------


def child(plan_path: Path, folder: Path) -> None:
    """Everything from files to fitted leaves; prints seconds, bytes and how the fit went."""
    told: dict[str, Any] = {}
    clock = [(time.perf_counter(), time.process_time())]

    def lap(stage: str) -> None:
        """Note a stage that ends here: seconds, processor seconds of all threads, and the peak of its memory."""
        clock.append((time.perf_counter(), time.process_time()))
        told[stage] = clock[-1][0] - clock[-2][0]
        told[f"work to {stage}"] = clock[-1][1] - clock[-2][1]
        told[f"peak of {stage}"] = peak_bytes()
        forget_peak()

    from stirred.noise import SystemSource
    from stirred.topdown.data.constraints import Known, require_kept
    from stirred.topdown.data.counting import count_tables
    from stirred.topdown.fitting.table_fit import fit_table
    from stirred.topdown.measuring import Measurements, measure
    from stirred.topdown.plan.fields import TopDownPlan

    lap("import")
    plan = TopDownPlan.from_toml(plan_path)
    counted = count_tables(plan, inputs(plan, folder))
    known = Known.of(counted)
    require_kept(counted, known)
    lap("count")
    with tempfile.TemporaryDirectory(dir=folder) as work:
        found = measure(counted, Path(work), SystemSource())
        lap("measure")
        measurements = Measurements(Path(work))
        fitted = [fit_table(known, measurements, table)[1] for table in plan.released]
        lap("fit")
        told["disk"] = sum(path.stat().st_size for path in Path(work).iterdir())
    reports = [report for table in fitted for report in table]
    told |= {
        "peak": max(told[f"peak of {stage}"] for stage in STAGES),
        "values": sum(entry.units * entry.cells for entry in found),
        "leaves": counted.spine.leaves,
        "geounits": sum(map(len, counted.spine.names)),
        "parents": len(plan.released) * sum(counted.spine.units(k) for k in range(len(counted.spine.levels) - 1)),
        "fallbacks": sum(len(report.fallbacks) for report in reports),
        "gap": max(report.worst_gap for report in reports),
    }
    print(json.dumps(told))


def inputs(plan: Any, folder: Path) -> dict[str, Path]:
    """The files of a folder that a plan reads, by the names it gives them."""
    return {"geography": folder / "blocks.parquet"} | {
        table.name: folder / f"{table.name}.parquet" for table in plan.tables
    }


def peak_bytes() -> int:
    """The most memory this process had. What getrusage tells may still be that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Begin a new peak, where the system can; elsewhere a stage's peak is that of all stages so far."""
    references = Path("/proc/self/clear_refs")
    if references.exists():
        references.write_text("5")


def run(plan_path: Path, folder: Path, repeats: int = 3) -> dict[str, Any]:
    """The quickest of some runs by measuring and fitting, after one that fills caches, with the largest peak of all."""
    found = []
    for _ in range(repeats + 1):
        command = [sys.executable, __file__, "--child", str(plan_path), str(folder)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.append(json.loads(printed.splitlines()[-1]))
    best: dict[str, Any] = min(found[1:], key=lambda one: one["measure"] + one["fit"])
    return best | {"peak": max(one["peak"] for one in found[1:])}


# -- files -----------------------------------------------------------------------------------------------------------


def rhode_island(folder: Path) -> Path:
    """The list of blocks, and a row for each person."""
    import polars as pl

    races = ["white", "black", "hisp", "aian", "asian", "nhpi", "other", "two"]
    counts = pl.read_csv(BLOCKS, schema_overrides={"GEOID": pl.String}, null_values="NA")
    ends = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
    counts.select(**{name: pl.col("GEOID").str.head(end) for name, end in ends.items()}).write_parquet(
        folder / "blocks.parquet"
    )
    persons = pl.concat(
        counts.select(
            block=pl.col("GEOID"),
            race=pl.lit(race),
            adult=pl.lit(adult),
            number=pl.col(f"vap_{race}") if adult == "yes" else pl.col(f"pop_{race}") - pl.col(f"vap_{race}"),
        )
        for race in races
        for adult in ("no", "yes")
    )
    rows = persons.select(pl.exclude("number").repeat_by("number").explode())
    rows = rows.filter(pl.col("block").is_not_null())
    assert rows.height == PERSONS, rows.height
    rows.write_parquet(folder / "persons.parquet")
    return folder


def detailed_rhode_island(folder: Path) -> Path:
    """The same persons with all attributes of the redistricting data. Block, race and adult are real; the rest is drawn
    at random: who is of which races together, who of Hispanic origin is of which race, housing units for every 2.4
    persons, and in one of 50 blocks with 50 persons or more a facility in which half of its adults live."""
    import numpy as np
    import polars as pl

    from stirred.topdown.plan.fields import TopDownPlan

    rhode_island(folder)
    values = {one.name: one.values for one in TopDownPlan.from_toml(PL94).table("persons").attributes}
    rng = np.random.default_rng(1)
    persons = pl.read_parquet(folder / "persons.parquet")
    race, block = persons["race"].to_numpy(), persons["block"].to_numpy()
    single = dict(zip(["white", "black", "aian", "asian", "nhpi", "other"], values["cenrace"][:6], strict=True))
    races = np.array([single.get(one, "") for one in race], dtype=object)
    several = np.array(values["cenrace"][6:], dtype=object)
    falling = 1.0 / np.arange(1, len(several) + 1) ** 2  # most are of the first few combinations
    races[race == "two"] = rng.choice(several, int((race == "two").sum()), p=falling / falling.sum())
    shares = [0.5, 0.08, 0.02, 0.01, 0.01, 0.28]
    hispanic = race == "hisp"
    of_hispanics = [*values["cenrace"][:6], several[0]]
    races[hispanic] = rng.choice(
        np.array(of_hispanics, dtype=object), int(hispanic.sum()), p=[*shares, 1 - sum(shares)]
    )
    names, number, sizes = np.unique(block, return_inverse=True, return_counts=True)
    housed = (sizes >= 50) & (rng.random(len(names)) < 0.02)
    kinds = rng.choice(np.array(values["hhgq"][1:], dtype=object), len(names))
    adult = persons["adult"].to_numpy() == "yes"
    inside = housed[number] & adult & (rng.random(len(block)) < 0.5)
    pl.DataFrame(
        {
            "block": block,
            "hhgq": np.where(inside, kinds[number], values["hhgq"][0]),
            "votingage": np.where(adult, *reversed(values["votingage"])),
            "hispanic": np.where(hispanic, *reversed(values["hispanic"])),
            "cenrace": races,
        }
    ).write_parquet(folder / "persons.parquet")
    living = np.bincount(number, weights=~inside, minlength=len(names))
    units = np.ceil(living / 2.4).astype(int)
    pl.DataFrame(
        {"block": np.repeat(names, units), "occupancy": np.where(rng.random(units.sum()) < 0.9, "occupied", "vacant")}
    ).write_parquet(folder / "units.parquet")
    full = np.bincount(number, weights=inside, minlength=len(names)) > 0
    pl.DataFrame({"block": names[full], "type": kinds[full]}).write_parquet(folder / "facilities.parquet")
    return folder


def generated(folder: Path, states: int = 1) -> Path:
    """A generated census, as many Rhode Islands large as it has states."""
    from stirred.tables.synthetic.population import Population

    Population(persons=states * PERSONS, seed=1, states=states).write(folder)
    return folder


def in_folder(job: Callable[[Path], One]) -> One:
    """What a job gives that needs a folder for its files."""
    with tempfile.TemporaryDirectory() as folder:
        return job(Path(folder))


# -- parts -----------------------------------------------------------------------------------------------------------


COLUMNS = (
    "", "geounits", "values measured", "import", "read and count", "measure", "fit and round", "measure, fit and round",
    "peak memory", "on disk",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def row(name: str, one: Mapping[str, Any]) -> str:
    return (
        f"| {name} | {one['geounits']:,} | {one['values']:,} | {one['import']:.1f} s | {one['count']:.1f} s "
        f"| {one['measure']:.1f} s | {one['fit']:.1f} s | {one['measure'] + one['fit']:.1f} s "
        f"| {one['peak'] / 1e9:.2f} GB | {one['disk'] / 1e6:.0f} MB |"
    )


def sound(one: Mapping[str, Any]) -> str:
    return (
        f"{one['parents']:,} parents: {one['fallbacks']} infeasible or rounded in another way than between floor and "
        f"ceiling; largest certified gap {one['gap']:.1e}."
    )


def part_rhode_island() -> str:
    if not BLOCKS.exists():
        return f"Rhode Island: left out, since {BLOCKS.name} is not in the folder STIRRED_DATA."
    told = in_folder(lambda folder: run(RI, rhode_island(folder)))
    aim = "Aims: measure, fit and round 5 s, 0.5 GB."
    return f"{HEAD}\n{row('Rhode Island 2010, race by adult', told)}\n\n{sound(told)} {aim}"


def part_pl94() -> str:
    told = in_folder(lambda folder: run(PL94, generated(folder)))
    aim = "Aims: fit and round 15 s, 2 GB; with measuring 60 s, 3 GB."
    return f"{HEAD}\n{row('generated state, redistricting data', told)}\n\n{sound(told)} {aim}"


def part_ten() -> str:
    told = [in_folder(lambda folder, n=states: run(PL94, generated(folder, n), 1)) for states in (1, 10)]
    small, large = told
    names = ("one state", "ten states, one spine")
    rows = "\n".join(row(name, one) for name, one in zip(names, told, strict=True))
    more = large["leaves"] - small["leaves"]

    def at(key: str) -> float:
        """A straight line through both runs, at the nation."""
        return large[key] + (large[key] - small[key]) / more * (NATION - large["leaves"])

    def peaks(stage: str) -> str:
        key = f"peak of {stage}"
        return f"{small[key] / 1e9:.2f}, {large[key] / 1e9:.2f} and {at(key) / 1e9:.0f} GB"

    def times(stage: str) -> str:
        work = f"work to {stage}"
        return f"{large[stage] / small[stage]:.1f} times as long ({large[work] / small[work]:.1f} in processor time)"

    return f"""{HEAD}
{rows}

With {large["leaves"] / small["leaves"]:.1f} times the blocks, counting takes {times("count")}, measuring
{times("measure")}, fitting {times("fit")}. {sound(large)}

On the line through both, a nation of {NATION:,} blocks takes {at("count") / 60:.0f} min to read and count,
{at("measure") / 60:.0f} min to measure, {at("fit") / 60:.0f} min to fit, and {at("disk") / 1e9:.0f} GB on disk. Peaks
of memory for one state, ten, and the nation on that line: {peaks("count")} to read and count, {peaks("measure")} to
measure, {peaks("fit")} to fit. The nation is extrapolated, not measured."""


def part_accuracy(draws: int = 20) -> str:
    lines = [
        f"Mean absolute error of totals by level, mean of {draws} draws and its standard error:\n",
        "| | county | tract | block group | block |",
        "|---|---|---|---|---|",
    ]
    cases: list[tuple[str, Path, Callable[[Path], Path], str]] = [
        ("generated state, redistricting data", PL94, generated, "auto")
    ]
    if BLOCKS.exists():
        for words, passes in (("one pass", "one"), ("totals first", "auto")):
            cases.insert(0, (f"Rhode Island 2010, race by adult, {words}", RI, rhode_island, passes))
    for name, path, make, passes in cases:
        with tempfile.TemporaryDirectory() as folder:
            errors = total_errors(path, make(Path(folder)), passes, draws)
        cells = [
            f"{values.mean():.3f} ± {values.std(ddof=1) / math.sqrt(draws):.3f}" for values in errors.transpose()[1:]
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(
        "\nRows of one dataset share their measurements. Single draws of an earlier implementation on Rhode Island, in "
        "one pass and with shares that are like these but not known exactly, gave 1.2, 1.9, 1.3 and 4.7."
    )
    return "\n".join(lines)


def total_errors(plan_path: Path, folder: Path, passes: str, draws: int) -> Any:
    """For each draw and level the mean absolute error of the persons in a unit."""
    import numpy as np

    from stirred.noise import SeededSource
    from stirred.topdown.data.constraints import Known
    from stirred.topdown.data.counting import count_tables
    from stirred.topdown.data.histograms import added_up
    from stirred.topdown.fitting.table_fit import fit_table
    from stirred.topdown.measuring import Measurements, measure
    from stirred.topdown.plan.fields import TopDownPlan

    plan = TopDownPlan.from_toml(plan_path).model_copy(update={"passes": passes})
    counted = count_tables(plan, inputs(plan, folder))
    known, spine, persons = Known.of(counted), counted.spine, plan.table("persons")
    errors = np.empty((draws, len(spine.levels)))
    for draw in range(draws):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            measure(counted, Path(work), SeededSource(draw))
            leaves = fit_table(known, Measurements(Path(work)), persons)[0]
        for level in range(len(spine.levels)):
            truth = counted.histograms("persons", level).totals()
            errors[draw, level] = np.abs(added_up(leaves, spine.first_leaf(level)).totals() - truth).mean()
    return errors


def part_least_squares(draws: int = 8) -> str:
    """Both ways of the fit on the same draws."""
    cases: list[tuple[str, Path, Callable[[Path], Path]]] = [("generated state, 2,016 cells", PL94, generated)]
    if BLOCKS.exists():
        cases.insert(0, ("Rhode Island 2010, detail imputed, 2,016 cells", PL94, detailed_rhode_island))
        cases.insert(0, ("Rhode Island 2010, 16 cells", RI, rhode_island))
    columns = [
        "county total", "tract total", "tract detail", "block group total", "block group detail", "block total",
        "processor time of fit",
    ]  # fmt: skip
    lines = [f"| | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    biases = [
        "| | under 10 persons | 10 to 99 | 100 and more | blocks of nobody |",
        "|---|---|---|---|---|",
    ]
    for name, path, make in cases:
        with tempfile.TemporaryDirectory() as folder:
            found = both_ways(path, make(Path(folder)), draws)
        for way, (errors, bias) in found.items():
            cells = [f"{one:.3f} ± {spread:.3f}" for one, spread in zip(errors.mean(0), standard(errors), strict=True)]
            lines.append(f"| {name}, {way} | {' | '.join(cells)} s |")
            biases.append(f"| {name}, {way} | {' | '.join(f'{one:+.2f}' for one in bias.mean(0))} |")
        before, after = (errors.mean(0) for errors, _ in found.values())
        lines.append(f"| change | {' | '.join(f'{100 * one:+.0f}%' for one in after / before - 1)} |")
    table = "\n".join(lines)
    return f"""Least squares first beside level by level, on the same {draws} draws, with standard errors. Mean absolute
error of totals; detail is the sum of absolute errors over all cells of a unit, in the mean.

{table}

Mean error (bias) of totals of blocks by their true size, which nonnegativity makes:

{chr(10).join(biases)}"""


OFFICIAL = (
    "| official, New Jersey, demonstration data of 2022-08-25 less Summary File 1 | 1.71 | 1.95 | 16.90 | 4.27 | |",
    "| official, California, demonstration data of 2022-03-16 | 2.21 | | | | 3.81 |",
    "| official, California, demonstration data of 2020-05-27 | 18.0 | | | | 59.7 |",
)
"""Mean absolute errors of total population that public reviews of the Census Bureau's 2010 demonstration data state
(New Jersey: Census_Uncertainty_Analysis; California: edyhsgr/DP2010DemoDataReview; both on GitHub)."""


def part_official(draws: int = 8) -> str:
    """Errors of the official system as others published them, beside ours."""
    lines = ["| | county | tract | block group | block | places |", "|---|---|---|---|---|---|", *OFFICIAL]
    if BLOCKS.exists():
        with tempfile.TemporaryDirectory() as folder:
            errors = total_errors(PL94, detailed_rhode_island(Path(folder)), "auto", draws)
        cells = [f"{one:.2f} ± {spread:.2f}" for one, spread in zip(errors.mean(0), standard(errors), strict=True)][1:]
        lines.append(f"| ours, Rhode Island, redistricting shares of 2020, {draws} draws | {' | '.join(cells)} | |")
    table = "\n".join(lines)
    return f"""The official system's published errors beside ours: mean absolute error of total population.

{table}

Compare with care. The states differ; the reviews do not state rho, and their base, Summary File 1, was itself swapped;
the detail of Rhode Island's blocks is imputed here, their totals are real. Block groups as tabulated are off the
official spine, which has optimised ones, and on ours; errors of places on a spine of ours are in the section of
topdown_spines.py."""


def standard(errors: Any) -> Any:
    return errors.std(axis=0, ddof=1) / math.sqrt(len(errors))


def both_ways(plan_path: Path, folder: Path, draws: int) -> dict[str, tuple[Any, Any]]:
    """For each way of the fit, errors and biases of each draw."""
    import numpy as np

    from stirred.noise import SeededSource
    from stirred.topdown.data.constraints import Known
    from stirred.topdown.data.counting import count_tables
    from stirred.topdown.data.histograms import added_up
    from stirred.topdown.fitting.table_fit import fit_table
    from stirred.topdown.measuring import Measurements, measure
    from stirred.topdown.plan.fields import TopDownPlan

    plan = TopDownPlan.from_toml(plan_path)
    counted = count_tables(plan, inputs(plan, folder))
    known, spine, persons = Known.of(counted), counted.spine, plan.table("persons")
    cells, leaf = persons.schema_of.cells, len(spine.levels) - 1
    truth = [counted.histograms("persons", level) for level in range(leaf + 1)]
    sizes = truth[leaf].totals()
    classes = [(sizes > 0) & (sizes < 10), (sizes >= 10) & (sizes < 100), sizes >= 100, sizes == 0]
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    for draw in range(draws):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            measure(counted, Path(work), SeededSource(draw))
            for way in ("level by level", "least squares first"):
                chosen = plan.model_copy(update={"fit": way})
                begun = time.process_time()
                leaves = fit_table(replace(known, plan=chosen), Measurements(Path(work)), persons)[0]
                taken = time.process_time() - begun
                fitted = [added_up(leaves, spine.first_leaf(level)) for level in range(leaf + 1)]
                total = [np.abs(one.totals() - true.totals()).mean() for one, true in zip(fitted, truth, strict=True)]
                detail = [np.abs(fitted[at].dense(cells) - truth[at].dense(cells)).sum(1).mean() for at in (2, 3)]
                errors, biases = found.setdefault(way, ([], []))
                errors.append([total[1], total[2], detail[0], total[3], detail[1], total[4], taken])
                biases.append([(fitted[leaf].totals() - sizes)[one].mean() for one in classes])
    return {way: (np.array(errors), np.array(biases)) for way, (errors, biases) in found.items()}


def part_bias(draws: int = 4) -> str:
    """What remedies do about the bias of small units."""
    from stirred.topdown.plan.fields import TopDownPlan
    from topdown_bias import remedies

    def rows(name: str, path: Path, make: Callable[[Path], Path]) -> list[str]:
        plan = TopDownPlan.from_toml(path)
        return in_folder(lambda folder: remedies(name, plan, inputs(plan, make(folder)), draws))

    lines = [
        "| | mean absolute error of block totals | bias: blocks of nobody | 1 to 9 persons | 10 to 99 | 100 and more |",
        "|---|---|---|---|---|---|",
    ]
    if BLOCKS.exists():
        lines += rows("Rhode Island 2010, 16 cells", RI, rhode_island)
    lines += rows("generated state, 2,016 cells", PL94, generated)
    return (
        f"Bias of block totals by true size and what remedies do about it, mean of the same {draws} draws:\n\n"
        + "\n".join(lines)
        + "\n\nThe rows before rounding show the most that another way of rounding could change. Housing units are an "
        "invariant of the plan of the generated state, whose households are alike everywhere: real data would gain "
        "less by drawing to them."
    )


def part_osqp() -> str:
    if importlib.util.find_spec("osqp") is None:
        return "OSQP: left out, since it is not installed (pip install osqp==1.1.3)."
    from topdown_osqp import beside_osqp

    found = []
    if BLOCKS.exists():
        found.append(
            in_folder(lambda folder: beside_osqp("Rhode Island 2010, race by adult", RI, rhode_island(folder)))
        )
    found.append(in_folder(lambda folder: beside_osqp("generated state, redistricting data", PL94, generated(folder))))
    return "\n\n".join(found)


PARTS: dict[str, Callable[[], str]] = {
    "rhode-island": part_rhode_island,
    "pl94": part_pl94,
    "ten": part_ten,
    "osqp": part_osqp,
    "accuracy": part_accuracy,
    "least-squares": part_least_squares,
    "official": part_official,
    "bias": part_bias,
}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)}; all by default")
    options.add_argument("--keep", action="store_true", help="leave RESULTS.md as it is")
    options.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child:
        return child(*arguments.child)
    strange = [name for name in arguments.parts if name not in PARTS]
    if strange:
        options.error(f"no part is called '{strange[0]}'; there are {', '.join(PARTS)}")
    packages = ["numpy", "numba", "pyarrow", *(["osqp"] if importlib.util.find_spec("osqp") else [])]
    texts = [f"{machine(packages)}; load when it began: {os.getloadavg()[0]:.1f}"]
    print(texts[0], flush=True)
    for name in arguments.parts or PARTS:
        texts.append(PARTS[name]())
        print(f"\n{texts[-1]}", flush=True)
    if arguments.parts:
        print("\nOnly some parts were run: RESULTS.md stays as it is.")
    elif not arguments.keep:
        write_section(__file__, "\n\n".join(texts))
    return None


if __name__ == "__main__":
    main()
