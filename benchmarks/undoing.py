"""How many changed records could be put back: the search, the forecast and the whole check of a large file.

Beside them stands reading the file and drawing the swap, which a release does anyway, in the same process.

    python benchmarks/undoing.py            about two minutes; rewrites its section of RESULTS.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from results import machine, write_section
from stirred.noise import SeededSource
from stirred.swap import SwapPlan, check
from stirred.swap.checking.putting_back import put_back
from stirred.swap.checking.undoing import swapped_data, undoing_of
from stirred.swap.data.dataset import load
from stirred.swap.law import permutation


def persons(households: int, held: int, of_household: int) -> pl.DataFrame:
    """Persons with some columns of a hundred values that their household repeats, and others of their own."""
    rng = np.random.default_rng(3)
    of = np.repeat(np.arange(households), 1 + rng.poisson(1.5, households))
    columns = {"region": rng.integers(0, 12, households)[of], "sex": rng.integers(0, 2, len(of))}
    columns |= {f"h{i}": rng.integers(0, 100, households)[of].astype(np.int16) for i in range(of_household)}
    tops = [2, 5, 20, 90, 300]
    columns |= {f"p{i}": rng.integers(0, tops[i % 5], len(of)).astype(np.int16) for i in range(held - of_household)}
    return pl.DataFrame(columns)


def spent(action: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    action()
    return time.process_time() - began


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    arguments = options.parse_args()
    rows = []
    for households in (300_000, 4_000_000):
        for of_household in (0, 4):
            frame = persons(households, 20, of_household)
            plan = SwapPlan(match=["sex"], swap=["region"], hold="rest", rate=0.05)
            reading = spent(lambda frame=frame, plan=plan: load(plan, frame))
            dataset = load(plan, frame)
            given = swapped_data(dataset, plan.rate)
            undoing_of(given), put_back(given)  # what is compiled on the first call
            drawing = spent(lambda dataset=dataset, plan=plan: permutation.draw(
                dataset.strata, dataset.strata.sizes(), plan.rate, SeededSource(1)))  # fmt: skip
            worst = undoing_of(given).worst
            rows.append(
                f"| {dataset.records:,} | {of_household} | {spent(lambda given=given: undoing_of(given)):.2f} | "
                f"{spent(lambda given=given: put_back(given)):.2f} | "
                f"{spent(lambda frame=frame, plan=plan: check(plan, frame)):.1f} | {reading + drawing:.2f} | "
                f"{'none found' if worst is None else f'{100 * worst.recovered:.0f}%'} |"
            )
    lines = "\n".join(rows)
    text = f"""{machine(["numpy", "numba"])}

20 held columns, one swap variable, rate 1/20; processor seconds.

| rows | columns of the household | forecast | from released rows | whole check | reading and drawing | put back |
|---|---|---|---|---|---|---|
{lines}

A release does the third and the fourth besides. A prototype that tried 246 sets of columns one by one took 174 s.
"""
    print(text)
    if not arguments.keep:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
