"""Noisy measurement files: time and memory of estimates from them, for a state and for all counties of a nation.

The published files are hundreds of gigabytes and are not here; these are made in the same form. The state is generated
and released with the 2020 plan, its measurements written as files (`stirred noisy-measurements`). The nation has the
published numbers of states, counties and tracts, and noise alone as values, since time does not depend on them. Every
run is a process of its own; processor seconds are those of all its threads, and reading the column of values alone,
with pyarrow and nothing else, stands beside them. A forecast for block groups and blocks counts their values.

    python benchmarks/noisy_measurements.py                  ten minutes; rewrites its section of RESULTS.md
    python benchmarks/noisy_measurements.py --keep           print only
    python benchmarks/noisy_measurements.py --persons 50000  a smaller state; print only
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from results import machine, write_section
from topdown import peak_bytes

HERE = Path(__file__)
STATES, COUNTIES, TRACTS, GROUPS, BLOCKS = 51, 3_143, 84_414, 239_780, 5_892_698
"""Units of the published 2020 files; blocks are those with possible population."""
SAID = (
    "Estimates by county from noisy measurement files that were made here, in the form of the published ones. Seconds "
    "are those of a machine that did other work as well; processor seconds are of all threads, and the ratio is to "
    "reading the column of values alone."
)
QUESTIONS = {
    "total": {"by": [], "level": "county"},
    "race": {"by": ["cenrace"], "level": "county"},
    "race, tabulated": {"by": ["cenrace"], "tabulated": "county"},
}


def child(folder: str, question: str, options: dict[str, Any]) -> None:
    """One estimate from files, or the values read and forgotten; prints seconds and bytes."""
    import stirred

    began = time.perf_counter(), time.process_time()
    if question == "values alone":
        for path in sorted(Path(folder).rglob("DPQuery/**/*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(batch_size=1024, columns=["value"]):
                len(batch)
    else:
        asked = dict(QUESTIONS[question])
        found = stirred.estimate(folder, asked.pop("by"), **asked, **options)
        assert np.isfinite(found.values).all()
    spent = time.perf_counter() - began[0], time.process_time() - began[1]
    print(json.dumps({"seconds": spent[0], "work": spent[1], "peak": peak_bytes()}))


def run(folder: Path, question: str, **options: Any) -> dict[str, float]:
    words = [sys.executable, str(HERE), "--child", str(folder), question, json.dumps(options)]
    made = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(made.stdout.splitlines()[-1])


def made_state(folder: Path, persons: int) -> Path:
    """A generated state, released, and its measurements as files."""
    import stirred
    from stirred.tables.synthetic.population import DOMAINS, Population
    from stirred.topdown.noisy_files.writing import write_noisy_measurements

    made = Population(persons=persons, seed=4).tables()
    data = {"geography": made.blocks, "persons": made.persons, "units": made.units, "facilities": made.facilities}
    stirred.release(stirred.topdown.preset("pl94-2020", DOMAINS), data, out=folder / "release")
    write_noisy_measurements(folder / "release", folder / "state")
    return folder / "state"


def made_nation(folder: Path, tracts: int) -> Path:
    """Files of the nation down to tracts, with noise alone as values and the variances of the 2020 plan."""
    import stirred
    from stirred.tables.synthetic.population import DOMAINS
    from stirred.topdown.noisy_files.form import PERSONS

    table = stirred.topdown.preset("pl94-2020", DOMAINS, nation=True).table("persons")
    rng = np.random.default_rng(1)
    counties = np.sort(rng.integers(0, STATES, COUNTIES))
    of_tract = np.sort(np.concatenate([np.arange(COUNTIES), rng.integers(0, COUNTIES, tracts - COUNTIES)]))
    county_codes = [f"0{state + 1:02}1{at:04}" for at, state in enumerate(counties)]
    tract_codes = [f"{county_codes[county]}{at:06}" for at, county in enumerate(of_tract)]
    named = {"us": ["1"], "state": sorted({code[:3] for code in county_codes}), "county": county_codes,
             "tract": tract_codes}  # fmt: skip
    out = folder / "nation"
    for ours, theirs in (("us", "US"), ("state", "State"), ("county", "County"), ("tract", "Tract")):
        parts = {"": named[ours]} if ours == "us" else {
            state: [code for code in named[ours] if code.startswith(state)] for state in named["state"]
        }  # fmt: skip
        for state, codes in parts.items():
            place = out / f"{theirs}.parquet" / "DPQuery" / (f"State={state}" if state else "")
            place.mkdir(parents=True)
            columns = [("geocode", pa.string()), ("query_name", pa.string()), ("query_shape", pa.list_(pa.int32())),
                       ("value", pa.list_(pa.int32())), ("variance", pa.float64())]  # fmt: skip
            with pq.ParquetWriter(place / "part.parquet", pa.schema(columns), compression="zstd") as file:
                for query in (one for one in table.queries if table.rho_of(ours, one)):
                    variance = float(1 / table.rho_of(ours, query))
                    cells = PERSONS.schema.number_of_groups(query.by)
                    for start in range(0, len(codes), 1024):
                        some = codes[start : start + 1024]
                        noise = np.rint(rng.normal(0, variance**0.5, len(some) * cells)).astype(np.int32)
                        offsets = np.arange(len(some) + 1, dtype=np.int32) * cells
                        values = pa.ListArray.from_arrays(offsets, noise)
                        shape = pa.array([list(PERSONS.shape(query.by))] * len(some), pa.list_(pa.int32()))
                        rows = [pa.array(some), pa.repeat(PERSONS.query(query.by), len(some)), shape, values,
                                pa.repeat(variance, len(some))]  # fmt: skip
                        file.write_table(pa.Table.from_arrays(rows, schema=pa.schema(columns)))
    return out


def size(folder: Path) -> tuple[int, int]:
    """How many values and bytes the files of persons have."""
    values = total = 0
    for path in folder.rglob("DPQuery/**/*.parquet"):
        data = pq.read_metadata(path)
        for group in range(data.num_row_groups):
            columns = [data.row_group(group).column(at) for at in range(data.num_columns)]
            values += sum(one.num_values for one in columns if one.path_in_schema.startswith("value."))
        total += path.stat().st_size
    return values, total


def line(what: str, question: str, told: dict[str, float], plain: dict[str, float]) -> str:
    return (
        f"| {what} | {question} | {told['seconds']:.1f} | {told['work']:.1f} | {told['work'] / plain['work']:.1f} | "
        f"{told['peak'] / 2**30:.2f} GB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--tracts", type=int, default=TRACTS)
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], json.loads(given.child[2]))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        state = made_state(Path(folder), given.persons)
        persons = state / "US_Person_PL_PROD"
        values, bytes_ = size(persons)
        plain = run(persons, "values alone")
        what = f"a state of {given.persons:,} persons, {values / 1e6:.0f} million values, {bytes_ / 1e6:.0f} MB"
        rows.append(line(what, "values alone, pyarrow", plain, plain))
        rows += [line("", f"county, {one}", run(persons, one), plain) for one in QUESTIONS]
        nation = made_nation(Path(folder), given.tracts)
        values, bytes_ = size(nation)
        plain = run(nation, "values alone")
        what = f"a nation down to {given.tracts:,} tracts, {values / 1e6:.0f} million values, {bytes_ / 1e6:.0f} MB"
        rows.append(line(what, "values alone, pyarrow", plain, plain))
        race = {}
        for one in ("total", "race"):
            race[one] = run(nation, one, nation=True)
            rows.append(line("", f"county, {one}", race[one], plain))
    each = values / (given.tracts + COUNTIES + STATES + 1)
    per_value = race["race"]["work"] / values
    more = {"block groups": GROUPS, "blocks": BLOCKS}
    told = "; ".join(
        f"with {name} {number * each / 1e6:,.0f} million values more and {number * each * per_value / 60:.1f} "
        "processor minutes"
        for name, number in more.items()
    )
    text = f"""{machine(["pyarrow", "numpy"])}

{SAID}

| files | question | seconds | processor seconds | times values alone | peak |
|---|---|---|---|---|---|
{chr(10).join(rows)}

Forecast for the nation's counties by race, from processor seconds for each value down to tracts: {told}."""
    print(text)
    if not given.keep and given.persons == 1_000_000 and given.tracts == TRACTS:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
