"""Areas off the spine: their errors on the administrative spine and on spines made for them, from the same budget.

Rhode Island's file has no areas that could be used (its precincts are all missing), and a generated state has none. So
both get made ones on a made map, on which tracts, block groups and blocks lie side by side: precincts of 55 blocks,
places of 400 that cover six blocks in ten, districts of 6,000, each the blocks nearest to one of some points. The plan
is `topdown-ri.toml`, race by adult with the shares of the 2020 redistricting data. A spine for targets divides the
shares of counties and tracts among the counties and its new levels; all else is as it was.

    python benchmarks/topdown_spines.py           five minutes; rewrites its section of RESULTS.md
    python benchmarks/topdown_spines.py --keep    print only
"""

from __future__ import annotations

import argparse
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.spatial import cKDTree

from results import machine, write_section
from stirred.noise import SeededSource
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.spine_file import make_spine
from stirred.topdown.estimating.precision import Answer, Design, Target, area_variances
from stirred.topdown.fitting.table_fit import fit_table
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.plan.fields import TopDownPlan
from topdown import BLOCKS, RI, rhode_island

ADMINISTRATIVE = ("state", "county", "tract", "block_group", "block")
TARGETS = ("precinct", "place", "district")
SHOWN = (*TARGETS, "county", "tract", "block_group", "block")
DRAWS = 12
SPINES: dict[str, tuple[list[list[str]], dict[str, Any], dict[str, int]]] = {
    "administrative": ([], {}, {}),
    "precincts in counties": (
        [["precinct"]],
        {"levels": ("state", "county", "block_group", "block")},
        {"county": 1, "area": 1},
    ),
    "precincts in tracts, groups of the 2020 Census": ([["precinct"]], {"inside": "tract", "groups": "even"}, {}),
    "districts, places, precincts": (
        [["district"], ["place"], ["precinct"]],
        {"levels": ("state", "county", "block_group", "block")},
        {"county": 2, "area_1": 4, "area_2": 3, "area_3": 3},
    ),
}
"""Target areas, choices, and in which proportion levels divide the shares of counties and tracts among them."""


def on_a_map(blocks: pl.DataFrame) -> Any:
    """A point for each block: the units in each unit lie in a square, row by row."""
    rows = len(blocks)
    x, y, width = np.zeros(rows), np.zeros(rows), np.ones(rows)
    above = pl.Series([""] * rows)
    for level in ADMINISTRATIVE[1:]:
        ranked = pl.DataFrame({"above": above, "unit": blocks[level]}).select(
            place=pl.col("unit").rank("dense").over("above") - 1, units=pl.col("unit").n_unique().over("above")
        )
        place, side = ranked["place"].to_numpy(), np.ceil(np.sqrt(ranked["units"].to_numpy()))
        width = width / side
        line = place // side
        x += width * np.where(line % 2 == 0, place % side, side - 1 - place % side)
        y += width * line
        above = blocks[level]
    return np.stack([x + width / 2, y + width / 2], axis=1)


def with_areas(blocks: pl.DataFrame, seed: int = 1) -> pl.DataFrame:
    """The list of blocks with made areas; blocks far from the middle of every place lie in none."""
    points, rng = on_a_map(blocks), np.random.default_rng(seed)

    def nearest(areas: int) -> Any:
        return cKDTree(points[rng.choice(len(points), areas, replace=False)]).query(points)

    _, precinct = nearest(len(blocks) // 55)
    far, place = nearest(len(blocks) * 6 // 10 // 400)
    _, district = nearest(max(3, len(blocks) // 6_000))
    outside = far > np.quantile(far, 0.6)
    return blocks.with_columns(
        precinct=pl.Series([f"{number:04}" for number in precinct]),
        place=pl.Series([None if none else f"{number:03}" for number, none in zip(place, outside, strict=True)]),
        district=pl.Series([f"{number:02}" for number in district]),
    )


def plan_on(levels: tuple[str, ...], weights: dict[str, int]) -> TopDownPlan:
    """The plan with the levels of another spine; those with weights divide what counties and tracts had."""
    fields = TopDownPlan.from_toml(RI).model_dump(mode="json", exclude_defaults=True)
    table = fields["tables"][0]
    old = {level: Fraction(share) for level, share in table["level_shares"].items()}
    like = {level: level if level in old else "tract" if level in weights else "block_group" for level in levels}
    pooled = old["county"] + old["tract"]
    table["level_shares"] = {"us": str(old["us"])} | {
        level: str(pooled * weights[level] / sum(weights.values()) if level in weights else old[like[level]])
        for level in levels
    }
    for query in table["queries"]:
        query["shares"] = {"us": query["shares"]["us"]} | {level: query["shares"][like[level]] for level in levels}
    fields["spine"]["levels"] = list(levels)
    return TopDownPlan(**fields, targets=[{"column": name} for name in SHOWN])


def measured(name: str, blocks: pl.DataFrame, persons: pl.DataFrame, folder: Path) -> list[str]:
    """Rows of a table: expected errors, and errors of draws, of every sort of area on every spine."""
    blocks.write_parquet(folder / "areas.parquet")
    expected, estimated, fitted, distances = [], [], [], []
    for spine, (targets, choices, weights) in SPINES.items():
        plan, geography = plan_on(ADMINISTRATIVE, {}), blocks
        if targets:
            out = folder / f"{name}-{len(expected)}.parquet"
            report = make_spine(folder / "areas.parquet", targets, out, **choices)
            levels = tuple(one.level for one in report.levels_after)
            plan = plan_on(levels, weights)
            others = [column for column in SHOWN if column not in pl.read_parquet_schema(out)]
            geography = pl.read_parquet(out).join(blocks.select("block", *others), on="block", how="left")
        data = {"geography": geography, "persons": persons}
        counted = count_tables(plan, data, with_areas=True)
        sorts = [Target.of(counted.spine, areas) for areas in counted.areas]
        design = Design.of(plan, counted.spine, "persons", (), None, [0])
        spread = [np.sqrt(area_variances(design, one.overlap)) for one in sorts]
        expected.append((spine, [float(np.sqrt((one**2).mean())) for one in spread]))
        distances.append((spine, [float(one.distances.mean()) for one in sorts]))
        truth = counted.histograms("persons", len(counted.spine.levels) - 1).totals()
        both: list[list[list[float]]] = []
        for draw in range(DRAWS):
            with tempfile.TemporaryDirectory() as work:
                measure(counted, Path(work), SeededSource(draw))
                known, found = Known.of(counted), Measurements(Path(work))
                last = len(counted.spine.levels) - 1
                best = Answer.of(design, found, known.exact, last).values(last)[:, 0]
                leaves = fit_table(known, found, plan.table("persons"))[0]
            both.append([[error(one, values - truth) for one in sorts] for values in (best, leaves.totals())])
        estimates, fits = np.mean(both, axis=0)
        estimated.append((spine, estimates.tolist()))
        fitted.append((spine, fits.tolist()))
    head = [f"| {name}, {{}} | {' | '.join(one.replace('_', ' ') for one in SHOWN)} |", "|---" * (1 + len(SHOWN)) + "|"]
    lines = []
    for title, rows in (
        ("units that an area takes, mean", distances),
        ("expected standard error of the estimate of the total, root mean square", expected),
        (f"`estimate`, mean absolute error of {DRAWS} draws", estimated),
        (f"released counts, mean absolute error of {DRAWS} draws", fitted),
    ):
        lines += [head[0].format(title), head[1]]
        lines += [f"| {spine} | {' | '.join(f'{one:.2f}' for one in values)} |" for spine, values in rows]
        lines += [""]
    return [*lines, *ratios(expected, fitted)]


def error(target: Any, errors: Any) -> float:
    """The mean absolute error over the areas of one sort."""
    inside = target.areas.of_leaf >= 0
    sums = np.bincount(target.areas.of_leaf[inside], weights=errors[inside], minlength=len(target.areas))
    return float(np.abs(sums).mean())


def ratios(expected: Any, fitted: Any) -> list[str]:
    """What was aimed at: areas that a spine serves beside units of like size on the administrative one."""
    like = {"precinct": "block_group", "place": "tract", "district": "county"}
    lines = []
    for words, rows in (("Expected errors", expected), ("Errors of released counts", fitted)):
        before, after = dict(zip(SHOWN, rows[0][1], strict=True)), dict(zip(SHOWN, rows[-1][1], strict=True))
        each = [
            f"{area} {before[area] / before[unit]:.1f} before and {after[area] / before[unit]:.2f} after (beside a "
            f"{unit.replace('_', ' ')})"
            for area, unit in like.items()
        ]
        lines += [f"{words} with a spine for all three, divided by those of units of like size: {'; '.join(each)}.", ""]
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keep", action="store_true", help="print only")
    given = options.parse_args()
    lines = [machine(("numpy", "numba", "pyarrow")), ""]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if BLOCKS.exists():
            rhode_island(folder)
            blocks, persons = (pl.read_parquet(folder / f"{name}.parquet") for name in ("blocks", "persons"))
            lines += measured("Rhode Island 2010, made areas", with_areas(blocks), persons, folder)
        made = Population(persons=1_052_567, seed=1).tables()
        races = TopDownPlan.from_toml(RI).table("persons").attributes[0].values
        named = dict(zip(DOMAINS["race"], races, strict=True))
        persons = made.persons.with_columns(race=pl.col("race").replace_strict(named))
        lines += measured("generated state", with_areas(made.blocks), persons.select("block", "race", "adult"), folder)
    took = f"{time.perf_counter() - began:.0f} s in all."
    lines += [f"Aim: areas off the spine within twice the error of units of like size. {took}"]
    text = "\n".join(lines)
    print(text)
    if not given.keep:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
