"""A whole explanation, and its parts beside the plain ways.

The explanation is that of the 2020 redistricting data with its allocation and one concern: sentences, tables and JSON,
in one process. The power of discrete Gaussian noise is computed between two bounds; beside it the paper's way, a
million draws of the log likelihood ratio, with our own sampler (the two hypotheses are mirror images).
Beliefs are those of a prior over all answers of ten people; beside them the sums as they are written down.

    python benchmarks/semantics.py             half a minute; rewrites its section of RESULTS.md
    python benchmarks/semantics.py --keep      print only
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np

from results import machine, seconds, write_section
from stirred.lab.definitions.beliefs import Beliefs
from stirred.noise import SystemSource, discrete_gaussian
from stirred.reports.figures import save
from stirred.semantics import explain, exposure
from stirred.semantics.explained_numbers import GRID
from stirred.spec.known_deployments.allocations import allocation
from stirred.spec.loading import load
from stirred.spec.order.finite_mechanisms import FiniteMechanism, randomised_response

PEOPLE, DRAWS, LEVEL = 10, 1_000_000, 0.05


def explanation() -> object:
    return explain(load("topdown-2020-pl"), concerns=["cenrace + block within tract"]).to_json()


def figures() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for picture in explain(load("topdown-2020-pl")).pictures():
            save(picture, Path(folder))


def by_draws() -> float:
    """The power at one level from draws of the log likelihood ratio under both hypotheses."""
    pl94, source = allocation("pl94-2020"), SystemSource()
    null = np.zeros(DRAWS)
    for cell in pl94.cells():
        variance = pl94.variance(*cell, rounded=True)
        for _ in range(2):
            null += (1 - 2 * discrete_gaussian(variance, DRAWS, source)) / (2 * float(variance))
    return float(np.mean(-null < np.quantile(null, LEVEL)))


def by_bounds() -> float:
    return exposure(allocation("pl94-2020"), "everything", rounded=True).loss(GRID).power(LEVEL).upper


def a_prior() -> dict[tuple[str, ...], float]:
    weights = np.random.default_rng(2).dirichlet(np.ones(2**PEOPLE))
    return dict(zip(itertools.product("01", repeat=PEOPLE), weights.tolist(), strict=True))


def plain_beliefs(prior: dict[tuple[str, ...], float], mechanism: FiniteMechanism) -> list[float]:
    """The ratio of posteriors for the first person's record 1, one output after the other."""
    place = {name: row for row, name in enumerate(mechanism.datasets)}
    ratios = []
    for output in range(len(mechanism.outputs)):
        actual = counterfactual = 0.0
        for rest in itertools.product("01", repeat=PEOPLE - 1):
            both = [prior[record, *rest] for record in "01"]
            laws = [float(mechanism.rows[place["".join((record, *rest))], output]) for record in "01"]
            actual += both[1] * laws[1]
            counterfactual += both[1] * (both[0] * laws[0] + both[1] * laws[1]) / sum(both)
        ratios.append(actual / counterfactual)
    return ratios


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true")
    arguments = options.parse_args()
    explanation()  # compiled kernels come from their cache
    whole, drawn = seconds(explanation), seconds(figures, 1)
    bounds, draws = seconds(by_bounds), seconds(by_draws, 1)
    prior, mechanism = a_prior(), randomised_response("1/4", respondents=PEOPLE)
    engine = seconds(lambda: Beliefs(prior, mechanism, target=0).ratio)
    plain = seconds(lambda: plain_beliefs(prior, mechanism), 1)
    text = f"""{machine(["numpy", "scipy", "altair", "vl-convert-python"])}

| | seconds | the plain way | ratio |
|---|---|---|---|
| explanation of the 2020 redistricting data, with a concern, as JSON | {whole:.2f} | | |
| its four figures as PNG and SVG | {drawn:.2f} | | |
| power of 142 cells of discrete Gaussian noise | {bounds:.2f} | {draws:.2f} (draws) | {draws / bounds:.1f} |
| beliefs, {PEOPLE} people, {2**PEOPLE:,} datasets | {engine:.3f} | {plain:.2f} (loops) | {plain / engine:.0f} |

Power at level {LEVEL}: at most {by_bounds():.6f}; from draws {by_draws():.4f}, with a standard error of about 0.0006.
"""
    print(text)
    if not arguments.keep:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
