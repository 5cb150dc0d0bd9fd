"""The real blocks of a state in 2010, as counts by race and age; the same path is covered by a few blocks of our own.

The folder is named by STIRRED_DATA and defaults to ../shared/data beside the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.topdown import TopDownPlan, release, verify
from stirred.topdown.data.counting import count_tables
from stirred.topdown.estimating.questions import MeasuredRelease

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("STIRRED_DATA", ROOT.parent / "shared" / "data"))
REAL = DATA / "ri_2010_block.csv"
RACES = ("white", "black", "hisp", "aian", "asian", "nhpi", "other", "two")
ENDS = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}


def few_blocks() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    ids = [f"44{county:03}{tract:06}{group}{block:03}" for county in (1, 3) for tract in (1, 2) for group in (1, 2)
           for block in range(5)]  # fmt: skip
    population = {f"pop_{race}": rng.poisson(20 / (1 + at**2), len(ids)) for at, race in enumerate(RACES)}
    adults = {name.replace("pop", "vap"): rng.binomial(counts, 0.75) for name, counts in population.items()}
    return pl.DataFrame({"GEOID": ids, **population, **adults})


@pytest.fixture(params=["real", "own"])
def blocks(request) -> pl.DataFrame:
    if request.param == "own":
        return few_blocks()
    if not REAL.exists():
        pytest.skip("the blocks of Rhode Island are not here; set STIRRED_DATA to their folder")
    return pl.read_csv(REAL, schema_overrides={"GEOID": pl.String}, null_values="NA")


def test_a_state_is_released_from_counts_of_its_blocks(blocks, tmp_path):
    plan = TopDownPlan.from_toml(ROOT / "benchmarks" / "topdown-ri.toml")
    persons = plan.tables[0].model_copy(update={"count": "number"})
    plan = plan.model_copy(update={"tables": (persons,)})
    counts = pl.concat(
        blocks.select(
            block=pl.col("GEOID"),
            race=pl.lit(race),
            adult=pl.lit(adult),
            number=pl.col(f"vap_{race}") if adult == "yes" else pl.col(f"pop_{race}") - pl.col(f"vap_{race}"),
        )
        for race in RACES
        for adult in ("no", "yes")
    ).filter(pl.col("number") > 0)
    places = blocks.select(**{name: pl.col("GEOID").str.head(end) for name, end in ENDS.items()})
    data = {"geography": places, "persons": counts}
    made = release(plan, data, out=tmp_path / "out")
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))
    assert not any(report.fallbacks for report in made.reports)
    total = int(sum(blocks[f"pop_{race}"].sum() for race in RACES))
    assert pl.scan_parquet(tmp_path / "out" / "persons.parquet").select(pl.len()).collect().item() == total
    truth = count_tables(plan, data)
    opened = MeasuredRelease.open(tmp_path / "out")
    for number, level in enumerate(plan.spine.all_levels):
        true = truth.histograms("persons", number).totals()
        # The noise is drawn anew: 26,000 estimates beyond 7 standard errors, a false alarm in 10 million runs.
        found = opened.estimate("persons", level=level)
        assert np.all(np.abs(found.values[:, 0] - true) <= 7 * found.standard_errors[:, 0] + 1e-6)
