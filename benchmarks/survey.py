"""A survey release beside plain weighted sums, design-based estimates beside svy and samplics, noise beside OpenDP.

Generated surveys of 100,000 and 1,000,000 records with 50 and 5,000 areas: weighted counts and incomes by area and sex,
and mean incomes by area and sex and by area with measured standard errors. Every job runs in a process of its own, so
that its peak memory is its own, after a run on a small survey that leaves compiled kernels and imports out of the time.
svy and samplics run in an environment of their own (STIRRED_BENCH_SVY names its interpreter; else one is made in the
user's cache folder), OpenDP in that of benchmarks/noise.py. Ratios are what to read.

    python benchmarks/survey.py                  all of it, about ten minutes; rewrites its section of RESULTS.md
    python benchmarks/survey.py --keep           print only
    python benchmarks/survey.py --records 100000 fewer records
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
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from noise import opendp_python
from results import machine, peer_python, write_section

RECORDS, AREAS = (100_000, 1_000_000), (50, 5_000)
ANSWERING = 0.706
"""The share of the sample that answers, so that files have about as many records as asked for."""
MOST_SECONDS = 200
"""A peer that takes longer is stopped."""
PEERS = ("svy==0.35.0", "samplics==0.6.1")
WEIGHTED = ("area", "sex")


# -- surveys and their plan --------------------------------------------------------------------------------------


def make(folder: str, records: int, areas: int, seed: int = 1) -> None:
    """Write a survey as Parquet and CSV."""
    from stirred.tables.synthetic.survey_frame import make_frame
    from stirred.tables.synthetic.surveys import draw_survey

    sampled = int(records / ANSWERING)
    frame = make_frame(7 * sampled, seed=seed, areas=areas)
    survey = draw_survey(frame, seed=seed, design="stratified", sampled=sampled, replicates=0)
    survey.write(folder)
    survey.records.write_parquet(Path(folder) / "survey.parquet")


def plan_of(folder: Path, file: str) -> Any:
    """Sums and means by area and sex with measured standard errors, from weights on, at rho = 1."""
    import polars as pl

    from stirred.survey.plan.fields import SurveyPlan

    texts = {"stratum": pl.String, "region": pl.String}
    strata = pl.read_csv(folder / "strata.csv", schema_overrides=texts)
    areas = pl.read_csv(folder / "truth.csv", infer_schema=False).filter(pl.col("by") == "area")["value"]
    rows = strata.select("stratum", "selected_psus", "population_psus").rows()
    lower, upper = strata["smallest_final_weight"].min(), strata["largest_final_weight"].max()
    types = {"income": "integer", "final_weight": "number"} if file.endswith(".csv") else {}
    return SurveyPlan(
        row="person",
        unit="person",
        rho=1,
        chosen_from="public",
        starts="weights",
        holds_fixed="",
        input={"path": str(folder / file), "types": types},
        weights={"column": "final_weight", "kind": "final", "lower": lower, "upper": upper, "step": "0.01"},
        design={"strata": "stratum", "sizes": {name: {"selected": n, "population": N} for name, n, N in rows}},
        attributes=[
            {"name": "stratum", "values": strata["stratum"].to_list()},
            {"name": "area", "values": areas.to_list()},
            {"name": "sex", "values": ["female", "male"]},
        ],
        variables=[{"name": "income", "lower": 0, "upper": 200_000, "missing": 0}],
        queries=[{"by": WEIGHTED}, {"of": "income", "by": WEIGHTED}],
        publish=[
            {"kind": "mean", "of": "income", "by": WEIGHTED, "errors": "1/10"},
            {"kind": "mean", "of": "income", "by": ["area"], "errors": "1/10"},
        ],
    )


# -- jobs, each run in its own process ---------------------------------------------------------------------------

Stages = dict[str, Callable[[], object]]


def polars_sums(folder: Path, file: str, target: Path) -> Stages:
    """The floor: no privacy, no standard errors, floating-point sums."""
    import polars as pl

    weight, income = pl.col("final_weight"), pl.col("income").fill_null(0)
    scan = pl.scan_parquet if file.endswith(".parquet") else pl.scan_csv

    def add_up() -> None:
        sums = scan(folder / file).group_by(WEIGHTED).agg(weight.sum().alias("count"), (weight * income).sum())
        sums.sort(WEIGHTED).collect().write_csv(target)

    return {"read, add up, write": add_up}


def pandas_sums(folder: Path, file: str, target: Path) -> Stages:
    import pandas as pd

    columns = [*WEIGHTED, "income", "final_weight"]

    def add_up() -> None:
        if file.endswith(".parquet"):
            frame = pd.read_parquet(folder / file, columns=columns)
        else:
            frame = pd.read_csv(folder / file, usecols=columns)
        frame["total"] = frame["final_weight"] * frame["income"].fillna(0)
        frame.groupby(list(WEIGHTED), observed=True)[["final_weight", "total"]].sum().to_csv(target)

    return {"read, add up, write": add_up}


def ours(folder: Path, file: str, target: Path) -> Stages:
    import stirred
    from stirred.survey.data import read_records

    plan = plan_of(folder, file)
    return {
        "read": lambda: read_records(plan),
        "check": lambda: str(stirred.check(plan)),
        "release": lambda: stirred.release(plan, out=target),
        "verify": lambda: stirred.verify(target),
        "estimate": lambda: stirred.estimate(target, WEIGHTED, of="income").to_frame(),
    }


def linearised_means(folder: Path, file: str, target: Path) -> Stages:
    """Means by area with linearised variances, of the file itself: what svy and samplics do."""
    import numpy as np
    import polars as pl

    from stirred.survey.data import read_records
    from stirred.survey.design.standard_errors import FirstStage, WeightedSample

    plan = plan_of(folder, file)
    records = read_records(plan)
    strata = pl.read_csv(folder / "strata.csv", schema_overrides={"stratum": pl.String})
    weights, income = records.weights / 100, records.values["income"].astype(np.float64)

    def estimate() -> None:
        # The peers take the number selected in a stratum from the file, and so it is here.
        stage = FirstStage.of(strata=records.codes["stratum"], population=strata["population_psus"].to_numpy())
        domains = records.cells(["area"])
        sample = WeightedSample.of(
            weights, stage, domains=domains, number_of_domains=len(plan.attribute("area").values)
        )
        found = sample.ratios(income)
        np.save(target.with_suffix(".npy"), np.array([found.values.ravel(), np.sqrt(found.variances).ravel()]))

    return {"means and variances": estimate}


JOBS: dict[str, Callable[[Path, str, Path], Stages]] = {
    "polars": polars_sums,
    "pandas": pandas_sums,
    "stirred": ours,
    "stirred, linearised": linearised_means,
}


def in_own_process(job: str, folder: Path, small: Path, file: str, rounds: int) -> dict[str, Any]:
    given = [sys.executable, __file__, "--job", json.dumps([job, str(folder), str(small), file, rounds])]
    done = subprocess.run(given, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run_job(job: str, folder: str, small: str, file: str, rounds: int) -> None:
    """Seconds and processor seconds of every stage, the best of some rounds, and peak memory in GB."""
    best: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as private:
        for stage in JOBS[job](Path(small), file, Path(private) / "small").values():
            stage()
        for number in range(rounds):
            for name, stage in JOBS[job](Path(folder), file, Path(private) / f"out-{number}").items():
                began, used = time.perf_counter(), time.process_time()
                stage()
                times = [time.perf_counter() - began, time.process_time() - used]
                best[name] = [min(pair) for pair in zip(times, best.get(name, times), strict=True)]
        for made in Path(private).glob("out-*.npy"):
            shutil.copy(made, Path(folder) / "linearised.npy")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"stages": best, "memory": memory}))


# -- peers that estimate by design -------------------------------------------------------------------------------

PEER_JOB = """
import json, sys, time
from importlib.metadata import version
import polars

job, folder, records = json.loads(sys.argv[1])
frame = polars.read_parquet(folder + "/survey.parquet", columns=["area", "stratum", "income", "final_weight"])
frame = frame.with_columns(polars.col("area", "stratum").cast(polars.String), polars.col("income").fill_null(0))
strata = polars.read_csv(folder + "/strata.csv", schema_overrides={"stratum": polars.String})
sizes = dict(strata.select("stratum", "population_psus").rows())

def svy_means(data):
    import svy
    population = polars.col("stratum").replace_strict(sizes, return_dtype=polars.Float64).alias("population")
    design = svy.Design(stratum="stratum", wgt="final_weight", pop_size="population")
    found = svy.Sample(data.with_columns(population), design).estimation.mean("income", by="area").to_polars()
    found = found.with_columns(polars.col("area").cast(polars.String)).sort("area")
    return found["est"].to_list(), found["se"].to_list()

def samplics_means(data):
    from samplics.estimation import TaylorEstimator
    from samplics.utils.types import PopParam
    asked = TaylorEstimator(PopParam.mean)
    found = dict(data.group_by("stratum").len().rows())
    share = {name: 1 - found[name] / sizes[name] for name in sorted(found)}
    columns = {name: data[name].to_numpy() for name in data.columns}
    asked.estimate(y=columns["income"].astype(float), samp_weight=columns["final_weight"], stratum=columns["stratum"],
                   domain=columns["area"], fpc=share)
    names = sorted(asked.point_est)
    return [float(asked.point_est[one]) for one in names], [float(asked.stderror[one]) for one in names]

means = {"svy": svy_means, "samplics": samplics_means}[job]
means(frame.filter(polars.col("area").is_in(frame["area"].unique().sort()[:3].implode())))
began, used = time.perf_counter(), time.process_time()
values, errors = means(frame)
print(json.dumps({"seconds": time.perf_counter() - began, "processor": time.process_time() - used, "values": values,
                  "errors": errors, "version": version(job)}))
"""


def peer(python: str, job: str, folder: Path, records: int) -> dict[str, Any] | str:
    """What a peer gives; in words where it gives nothing."""
    given = [python, "-c", PEER_JOB, json.dumps([job, str(folder), records])]
    try:
        done = subprocess.run(given, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"over {MOST_SECONDS} s"
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return "failed"
    return dict(json.loads(done.stdout.splitlines()[-1]))


OPENDP_JOB = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
cells, scale = json.loads(sys.argv[1])
measurement = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), float(scale))
measurement([0] * 100)
began = time.perf_counter()
measurement([0] * cells)
print(time.perf_counter() - began)
"""


# -- tables ------------------------------------------------------------------------------------------------------


def pipeline(folders: dict[tuple[int, int], Path], rounds: int) -> list[str]:
    lines = [
        "| records | areas | file | job | seconds | processor seconds | of Polars | peak memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (records, areas), folder in folders.items():
        small = folders[min(one for one in folders if one[1] == areas)]
        for file in ("survey.parquet", "survey.csv"):
            floor = 0.0
            for job in ("polars", "pandas", "stirred"):
                found = in_own_process(job, folder, small, file, rounds)
                stages = found["stages"]
                if job == "polars":
                    floor = stages["read, add up, write"][0]
                if job == "stirred":
                    stages["all but reading by itself"] = [
                        sum(one[at] for name, one in stages.items() if name != "read") for at in (0, 1)
                    ]
                for name, (wall, used) in stages.items():
                    words = f"{job}: {name}"
                    lines.append(
                        f"| {records:,} | {areas:,} | {file.rpartition('.')[2]} | {words} | {wall:.2f} | {used:.2f} | "
                        f"{wall / floor:.1f} | {found['memory']:.2f} GB |"
                    )
                print(lines[-1], flush=True)
    return lines


def by_design(folders: dict[tuple[int, int], Path], rounds: int) -> list[str]:
    import numpy as np

    python = peer_python("STIRRED_BENCH_SVY", *PEERS, "pyarrow")
    lines = [
        "| records | areas | by | seconds | processor seconds | times ours | largest difference of a standard error |",
        "|---|---|---|---|---|---|---|",
    ]
    for (records, areas), folder in folders.items():
        small = folders[min(one for one in folders if one[1] == areas)]
        found = in_own_process("stirred, linearised", folder, small, "survey.parquet", rounds)
        wall, used = found["stages"]["means and variances"]
        values, errors = np.load(folder / "linearised.npy")
        lines.append(f"| {records:,} | {areas:,} | stirred | {wall:.3f} | {used:.3f} | 1 | |")
        for job in ("svy", "samplics"):
            given = peer(python, job, folder, records)
            if isinstance(given, str):
                lines.append(f"| | | {job} | {given} | | | |")
            else:
                known = np.isfinite(values)
                theirs = np.array(given["errors"])
                gap = np.abs(theirs / errors[known] - 1).max() if len(theirs) == known.sum() else np.nan
                lines.append(
                    f"| | | {job} {given['version']} | {given['seconds']:.3f} | {given['processor']:.3f} | "
                    f"{given['seconds'] / wall:,.0f} | {gap:.0e} of it |"
                )
            print(lines[-1], flush=True)
    return lines


def noise_speed(folder: Path) -> str:
    """Noise for all cells of the plan, ours and OpenDP's, at one scale."""
    from stirred.noise import SystemSource
    from stirred.survey.measuring import query_noise

    plan = plan_of(folder, "survey.parquet")
    noise, source = query_noise(plan, plan.queries[1]), SystemSource()
    noise.draw(source)
    began = time.perf_counter()
    for _ in range(10):
        noise.draw(source)
    own = (time.perf_counter() - began) / 10
    scale = float(noise.parameters[0]) ** 0.5
    given = [opendp_python(), "-c", OPENDP_JOB, json.dumps([len(noise.class_of), scale])]
    theirs = float(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
    return (
        f"Noise for the {len(noise.class_of):,} sums of income by area and sex (discrete Gaussian, sigma {scale:,.0f} "
        f"steps): {1e3 * own:.1f} ms, and {1e3 * theirs:.1f} ms by OpenDP, {theirs / own:,.0f} times as long."
    )


def amount_of_noise() -> list[str]:
    """Standard errors of noise at one budget, by how it is divided and whether all measured sums are combined."""
    from stirred.margins.one_table import FlatTable
    from stirred.margins.schema import Attribute, Schema
    from stirred.margins.table_shares import AskedMargin, ShareProblem

    asked: Sequence[tuple[str, ...]] = ((), ("sex",), ("area",), ("area", "sex"), ("area", "sex", "age"))
    lines = [
        "| areas | noise | table | cells only | each table by itself | all combined, equal shares | all combined, best "
        "shares | cells only, of best |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for areas in AREAS:
        names = ("area", "sex", "age")
        sizes = (areas, 2, 6)
        schema = Schema(tuple(Attribute(n, tuple(map(str, range(size)))) for n, size in zip(names, sizes, strict=True)))
        for law in ("gaussian", "laplace"):
            # One record moves two cells by at most 1: the variance is 1 / rho, or 2 (2 / epsilon)^2.
            whole = 1.0 if law == "gaussian" else 8.0
            importance = [1 / schema.number_of_groups(by) for by in asked]  # every table counts alike
            wanted = [AskedMargin(by, one) for by, one in zip(asked, importance, strict=True)]
            problem = ShareProblem.of(schema, [(by, whole) for by in asked], wanted, noise=law)  # type: ignore[arg-type]
            best = problem.best()
            divided = {"equal": problem.equal, "best": best.shares}
            tables = {}
            for name, shares in divided.items():
                measured = [(by, share) for by, share in zip(asked, shares, strict=True) if share]
                tables[name] = FlatTable.of(schema, [(by, _variance(law, whole, share)) for by, share in measured])
            cells = FlatTable.of(schema, [(asked[-1], whole)])
            for number, by in enumerate(asked):
                errors = [
                    float(cells.variances(by).mean()) ** 0.5,
                    _variance(law, whole, Fraction(1, len(asked))) ** 0.5,
                    float(tables["equal"].variances(by).mean()) ** 0.5,
                    float(tables["best"].variances(by).mean()) ** 0.5,
                ]
                shown = " | ".join(f"{one:,.2f}" for one in errors)
                words = " by ".join(["the total", " and ".join(by)]) if by else "the total"
                share = f" (share {float(best.shares[number]):.2f})"
                lines.append(
                    f"| {areas:,} | {law} | {words.removeprefix('the total by ') + share} | {shown} | "
                    f"{errors[0] / errors[3]:.1f} |"
                )
    return lines


def _variance(law: str, whole: float, share: Fraction) -> float:
    return whole / float(share) ** (1 if law == "gaussian" else 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    parser.add_argument("--records", type=int, nargs="*", default=list(RECORDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(*json.loads(options.make))
        return
    if options.job:
        run_job(*json.loads(options.job))
        return
    with tempfile.TemporaryDirectory() as private:
        folders: dict[tuple[int, int], Path] = {}
        for areas in AREAS:
            for records in options.records:
                folders[records, areas] = Path(private) / f"{records}-{areas}"
                given = json.dumps([str(folders[records, areas]), records, areas])
                # In a process of its own: others would inherit its peak memory.
                subprocess.run([sys.executable, __file__, "--make", given], check=True)
                print(f"made {records:,} records, {areas:,} areas", flush=True)
        parts = [
            "From file to estimates. A release measures counts and incomes by area and sex, means and their standard "
            "errors; the floor reads and adds up the same sums without privacy. *Of Polars* is the ratio of seconds.",
            "\n".join(pipeline(folders, options.rounds)),
            "Means of income by area with linearised variances, records in memory, no privacy.",
            "\n".join(by_design(folders, options.rounds)),
            noise_speed(folders[options.records[-1], AREAS[-1]]),
        ]
    parts += [
        "How much noise a table has at one budget (rho = 1, or epsilon = 1): standard errors of noise in counts of "
        "records by area, sex and six ages, if only the finest cells are measured and added up; if each of the five "
        "tables gets a fifth of the budget and is used by itself; if all are combined by least squares, at equal "
        "shares and at the shares that make the sum of the tables' mean variances smallest "
        "(`margins/table_shares.py`).",
        "\n".join(amount_of_noise()),
    ]
    text = "\n\n".join(parts)
    print(text)
    if not options.keep:
        write_section(__file__, f"{machine(['numpy', 'numba', 'polars', 'pandas', 'pyarrow'])}\n\n{text}")


if __name__ == "__main__":
    main()
