"""Ask R's survey package and svy for the estimates and variances of generated surveys.

    python tests/golden/record_surveys.py --rscript Rscript --svy PYTHON

Rscript is that of an R with the packages survey and jsonlite; PYTHON is the interpreter of an environment in which svy
is installed. The surveys are drawn with a fixed seed and written to tests/fixtures/surveys; answers and versions go to
survey_reference.json, so that the tests need neither. What runs as svy is at the end of this file and imports nothing
else of the project; what runs in R is record_surveys.R.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SURVEYS = HERE.parent / "fixtures" / "surveys"
DOMAINS = 4
REPLICATES = {"brr": 8, "fay": 8, "jk1": 16, "jkn": 16, "bootstrap": 20, "sdr": 8}

# -- surveys -----------------------------------------------------------------------------------------------------


def make_surveys() -> None:
    import numpy as np

    draw = np.random.default_rng(18)
    SURVEYS.mkdir(parents=True, exist_ok=True)
    write("elements.csv", elements(draw))
    write("clusters.csv", clusters(draw, [2, 3, 5, 4, 6, 2], absent=3))
    write("lonely.csv", clusters(draw, [3, 1, 4, 2, 1], absent=0))
    paired = clusters(draw, [2] * 8, absent=0)
    write("paired.csv", paired)
    write("paired_replicates.csv", replicate_weights(draw, paired))


def elements(draw: Any) -> dict[str, Any]:
    """A stratified sample of records without clusters."""
    import numpy as np

    selected, population = [30, 12, 25, 9], [200, 15, 900, 9]
    stratum = np.repeat(np.arange(4), selected)
    columns = {"stratum": stratum, "cluster": np.arange(len(stratum)), "selected": np.take(selected, stratum)}
    columns["population"] = np.take(population, stratum)
    return columns | variables(draw, np.take(np.divide(population, selected), stratum), stratum)


def clusters(draw: Any, selected: list[int], absent: int) -> dict[str, Any]:
    """Clusters of 3 to 9 records in strata; in as many clusters as ``absent`` nobody responded."""
    import numpy as np

    stratum_of = np.repeat(np.arange(len(selected)), selected)
    sizes = draw.integers(3, 10, len(stratum_of))
    cluster = np.repeat(np.arange(len(stratum_of)), sizes)
    stratum = stratum_of[cluster]
    population = np.array(selected) * 3 + draw.integers(0, 20, len(selected))
    columns = {"stratum": stratum, "cluster": cluster, "selected": np.take(selected, stratum)}
    columns["population"] = np.take(population, stratum)
    weights = np.take(population / np.array(selected), stratum) * draw.integers(2, 7, len(cluster))
    columns |= variables(draw, weights, cluster)
    out = draw.choice(np.flatnonzero(np.take(selected, stratum_of) > 2), absent, replace=False)
    columns["responded"] = (~np.isin(cluster, out) & (draw.random(len(cluster)) < 0.85)).astype(int)
    return columns


def variables(draw: Any, weights: Any, groups: Any) -> dict[str, Any]:
    import numpy as np

    number = len(groups)
    level = draw.normal(0, 6, groups.max() + 1)[groups]
    x = np.round(draw.gamma(4, 5, number) + level + 20, 3)
    return {
        "weight": np.round(weights, 6),
        "y": np.round(2.5 * x + level + draw.normal(0, 8, number), 3),
        "x": x,
        "domain": (draw.integers(0, DOMAINS, number) + groups // 2 * draw.integers(0, 2, number)) % DOMAINS,
        "category": draw.integers(0, 3, number),
        "a": draw.integers(0, 3, number),
        "b": draw.integers(0, 4, number),
        "step": np.clip(np.round(x / 4), 1, 30).astype(int),
    }


def replicate_weights(draw: Any, survey: dict[str, Any]) -> dict[str, Any]:
    """Replicate weights of a survey with two clusters in each of eight strata."""
    import numpy as np
    import scipy.linalg

    stratum, cluster, weight = survey["stratum"], survey["cluster"], survey["weight"]
    signs = scipy.linalg.hadamard(8)[:, stratum].T * np.where(cluster % 2 == 0, 1, -1)[:, None]
    out = cluster[:, None] == np.arange(16)
    same = stratum[:, None] == stratum[np.searchsorted(cluster, np.arange(16))]
    times = np.stack([np.where(draw.integers(0, 2, 8)[stratum] == cluster % 2, 2, 0) for _ in range(20)], axis=1)
    factors = {
        "brr": 1.0 + signs,
        "fay": 1.0 + 0.7 * signs,
        "jk1": np.where(out, 0.0, 16 / 15),
        "jkn": np.where(out, 0.0, np.where(same, 2.0, 1.0)),
        "bootstrap": times.astype(float),
        "sdr": np.round(1 + draw.normal(0, 0.5, (len(weight), 8)), 4),
    }
    return {
        f"{method}_{column + 1}": np.round(weight * matrix[:, column], 6)
        for method, matrix in factors.items()
        for column in range(matrix.shape[1])
    }


def write(name: str, columns: dict[str, Any]) -> None:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    (SURVEYS / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- recording ---------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rscript")
    parser.add_argument("--svy")
    parser.add_argument("--as-svy", action="store_true")
    given = parser.parse_args()
    if given.as_svy:
        print(json.dumps(as_svy()))
        return
    make_surveys()
    record = {
        "r": answer([given.rscript, str(HERE / "record_surveys.R"), str(SURVEYS)]),
        "svy": answer([given.svy, __file__, "--as-svy"]),
    }
    (HERE / "survey_reference.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def answer(command: list[str]) -> Any:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(ended.stderr)
    return json.loads(ended.stdout)


# -- what runs as svy --------------------------------------------------------------------------------------------


def as_svy() -> dict[str, Any]:
    import polars
    import svy

    def design(**more: Any) -> Any:
        return svy.Design(stratum="stratum", psu="cluster", wgt="weight", **more)

    elements = polars.read_csv(SURVEYS / "elements.csv")
    clustered = polars.read_csv(SURVEYS / "clusters.csv")
    lonely = polars.read_csv(SURVEYS / "lonely.csv")
    paired = polars.concat(
        [polars.read_csv(SURVEYS / name) for name in ("paired.csv", "paired_replicates.csv")], how="horizontal"
    )
    answers = {
        "versions": {name: version(name) for name in ("svy", "svy-rs", "polars")},
        "elements": estimates(svy.Sample(elements, svy.Design(stratum="stratum", wgt="weight", pop_size="population"))),
        "clusters": estimates(svy.Sample(clustered, design(pop_size="population"))),
        "lonely centred": estimates(svy.Sample(lonely, design(singleton="center"))),
        "lonely certainty": estimates(svy.Sample(lonely, design(singleton="skip"))),
    }
    made = {
        "brr": svy.BrrWgts(prefix="brr_", n_reps=8),
        "bootstrap": svy.BootstrapWgts(prefix="bootstrap_", n_reps=20),
        "sdr": svy.SdrWgts(prefix="sdr_", n_reps=8),
    }
    for method, weights in made.items():
        sample = svy.Sample(paired, svy.Design(wgt="weight", rep_wgts=weights))
        answers[method] = estimates(sample, method="replication", variance_center="estimate")
    return answers


def estimates(sample: Any, **options: Any) -> dict[str, dict[str, list[float]]]:
    asked = sample.estimation
    found = {
        "total": asked.total("y", by="domain", **options),
        "mean": asked.mean("y", by="domain", **options),
        "ratio": asked.ratio("y", "x", by="domain", **options),
    }
    return {name: by_domain(one.to_polars()) for name, one in found.items()}


def by_domain(table: Any) -> dict[str, list[float]]:
    table = table.with_columns(table["domain"].cast(int)).sort("domain")
    assert table["domain"].to_list() == list(range(DOMAINS))
    return {"values": table["est"].to_list(), "variances": [error * error for error in table["se"].to_list()]}


if __name__ == "__main__":
    main()
