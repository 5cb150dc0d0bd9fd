"""Generated surveys, and what R's survey and svy say of them; tests/golden/record_surveys.py makes both."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np

from stirred.survey.design.standard_errors import FirstStage

TESTS = Path(__file__).parents[1]
DOMAINS = 4


@functools.cache
def recorded():
    return json.loads((TESTS / "golden" / "survey_reference.json").read_text(encoding="utf-8"))


@functools.cache
def survey(name):
    path = TESTS / "fixtures" / "surveys" / f"{name}.csv"
    names = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    numbers = ("weight", "y", "x")
    return {
        column: table[:, place] if column in numbers or "_" in column else table[:, place].astype(np.int64)
        for place, column in enumerate(names)
    }


def by_stratum(file, column):
    """A number of the design by stratum, which the file repeats in each record."""
    return file[column][np.unique(file["stratum"], return_index=True)[1]]


def stage(file, *, fpc=False, clusters=True, keep=slice(None)):
    """The first stage of a file, or of some of its records, with the numbers of the design."""
    selected = by_stratum(file, "selected")
    return FirstStage.of(
        file["stratum"][keep],
        file["cluster"][keep] if clusters else None,
        selected,
        by_stratum(file, "population") if fpc else np.full(len(selected), np.inf),
    )


def same(ours, theirs):
    """Equal to one part in 10^9: what both packages are matched to."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=0)
