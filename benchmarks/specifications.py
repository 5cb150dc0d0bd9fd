"""The worst pair of a mechanism given as a matrix, beside the plain loop over all pairs.

The smallest budget for which a specification holds is the largest ratio of divergence to distance over all pairs of
datasets. Two mechanisms of 1000 datasets and 1000 outputs: one without any structure, where every pair is a neighbour,
and discrete Gaussian noise on a count, where all neighbours are equally bad, which is the hard case for a search that
lives on pairs not being the worst. The plain loop is timed on 60 datasets of the same outputs and scaled up.

    python benchmarks/specifications.py             about a minute; rewrites its section of RESULTS.md
    python benchmarks/specifications.py --keep      print only
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from results import machine, seconds, write_section
from stirred.loss import approximate, multiplicative, normalised_renyi, renyi, total_variation, worst_pair

Array = NDArray[np.float64]
SIZE, SMALL = 1000, 60
MEASURES: list[tuple[str, float | None, Callable[[Array, Array], float]]] = [
    ("multiplicative", None, multiplicative),
    ("total-variation", None, total_variation),
    ("approximate", 1e-3, lambda p, q: approximate(p, q, 1e-3)),
    ("renyi", 2, lambda p, q: renyi(p, q, 2)),
    ("renyi", math.inf, lambda p, q: renyi(p, q, math.inf)),
    ("normalised-renyi", None, normalised_renyi),
]


def unstructured() -> tuple[Array, Array]:
    rows = np.random.default_rng(1).dirichlet(np.ones(SIZE), SIZE) + 1e-7
    return rows / rows.sum(axis=1, keepdims=True), 1 - np.eye(SIZE)


def gaussian_counts() -> tuple[Array, Array]:
    counts = np.arange(SIZE)
    apart = np.abs(counts[:, None] - counts).astype(np.float64)
    rows = np.exp(np.maximum(-690, -(apart**2) / (2 * 30**2)))
    return rows / rows.sum(axis=1, keepdims=True), apart


def naive(rows: Array, distances: Array, measure: str, divergence: Callable[[Array, Array], float]) -> float:
    """The plain loop; symmetric measures look at each pair once."""
    worst = 0.0
    for i in range(len(rows)):
        for j in range(len(rows) if measure == "renyi" else i):
            if i != j:
                worst = max(worst, divergence(rows[i], rows[j]) / distances[i, j])
    return worst


def bench() -> list[str]:
    lines = ["| mechanism | measure | seconds | plain loop, scaled | times faster |", "|---|---|---|---|---|"]
    for name, (rows, distances) in {"unstructured": unstructured(), "counts": gaussian_counts()}.items():
        few, near = rows[:SMALL], distances[:SMALL, :SMALL]
        for measure, parameter, divergence in MEASURES:
            found = worst_pair(few, near, measure, parameter).ratio  # type: ignore[arg-type]
            assert math.isclose(found, naive(few, near, measure, divergence), rel_tol=1e-9)
            ours = seconds(lambda: worst_pair(rows, distances, measure, parameter), 3)  # type: ignore[arg-type]  # noqa: B023
            plain = seconds(lambda: naive(few, near, measure, divergence), 1)  # noqa: B023
            plain *= SIZE * (SIZE - 1) / (SMALL * (SMALL - 1))
            said = measure if parameter is None else f"{measure}, {parameter:g}"
            lines.append(f"| {name} | {said} | {ours:.2f} | {plain:.0f} | {plain / ours:.0f} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    options = parser.parse_args()
    lines = bench()
    if not options.keep:
        write_section(
            __file__,
            f"{machine(['numpy', 'scipy', 'numba'])}\n\n"
            f"The worst pair among {SIZE:,} datasets with {SIZE:,} outputs: every pair a neighbour (*unstructured*), "
            "or discrete Gaussian noise on a count (*counts*). The plain loop calls one divergence after the other.\n\n"
            + "\n".join(lines),
        )


if __name__ == "__main__":
    main()
