"""Twenty thousand damaged inputs of every kind, from a fixed seed; some hundreds of them outside the slow suite.

Whatever a file holds, a command ends with one of its documented exit codes within twenty seconds, prints no traceback,
no cell and no control character, and leaves nothing behind.
"""

from __future__ import annotations

import pytest
from harness import KINDS, Cases, prepared

FEW, MANY = 350, 20_000
SHARES = {"work folders": 0.5, "work folders that agree": 0.25, "topdown plans": 1.0}
"""How often a kind is tried, beside the others: those whose commands take long are tried less often."""
_WEIGHTS = {kind.name: SHARES.get(kind.name, 1.0) for kind in KINDS}


def number_of(name: str, every: int) -> int:
    return round(every * _WEIGHTS[name] / sum(_WEIGHTS.values())) + 1


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    prepared(folder)
    return folder


def test_the_numbers_of_cases_are_those_promised():
    assert sum(number_of(kind.name, FEW) for kind in KINDS) >= FEW
    assert sum(number_of(kind.name, MANY) for kind in KINDS) >= MANY


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_damaged_inputs_are_refused_or_read(kind, inputs, tmp_path):
    found = list(Cases(inputs, tmp_path).problems(kind, range(number_of(kind.name, FEW))))
    assert not found, "\n".join(f"{one.case}: {one.words}" for one in found[:10])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_many_damaged_inputs_are_refused_or_read(kind, part, inputs, tmp_path):
    first, last = number_of(kind.name, FEW), number_of(kind.name, MANY)
    bounds = [first + (last - first) * at // 4 for at in range(5)]
    found = list(Cases(inputs, tmp_path).problems(kind, range(bounds[part], bounds[part + 1])))
    assert not found, "\n".join(f"{one.case}: {one.words}" for one in found[:10])
