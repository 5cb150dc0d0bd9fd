"""Prints the table of docs/survey-coverage.md: how often 95% intervals hold the truth, by design, noise and table.

PYTHONPATH=src:tests/survey python tests/survey/coverage_table.py 2000 ["simple random" epsilon=300]
"""

from __future__ import annotations

import sys

import numpy as np
from simulated_survey_releases import Frame, Study, tallies
from test_survey_coverage import STUDIES

COLUMNS = (
    "count-group",
    "total-income-group",
    "total-balance-group",
    "mean-income-group",
    "proportion-sex-group",
    "ratio-balance-over-income-group",
    "mean-income-group apart",
    "count-group apart",
    "count-group-post",
    "total-income-group-raked",
    "mean-income-group-linear",
    "quantiles-band-sex",
)


def main() -> None:
    surveys = int(sys.argv[1])
    chosen = {sys.argv[2]: dict([sys.argv[3].split("=")])} if len(sys.argv) > 3 else STUDIES
    for design, budget in chosen.items():
        found = tallies(Study.of(Frame.of(), design, surveys, 11, **budget), 5)
        noise = ", ".join(f"{name} {number}" for name, number in budget.items())
        for source in ("measured", "bounded"):
            cells = []
            for column in COLUMNS:
                tally = found.get((column, source))
                shares = [] if tally is None else tally.coverage[1][~np.isnan(tally.truth)]
                least = [] if tally is None else tally.coverage[0][~np.isnan(tally.truth)]
                cells.append("" if tally is None else f"{shares[0]:.3f} {shares.min():.3f} ({least.min():.3f})")
            print("|", " | ".join([design, noise, source, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
