"""Every sentence with a number, over a grid of guarantees: each number recomputed from the sentence's own formula.

A sentence that holds a number nobody recomputes fails, and so does one that no guarantee of the grid brings about.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from sentence_formulas import RECOMPUTED, held_up, limit_held_up
from sentence_grid import ABSURD, FEW, GROUPS, OWN, TINY, USUAL, Case, Given, cases

from stirred.reports.limits_section import of_explanation
from stirred.semantics import explain
from stirred.semantics.templates import templates
from stirred.spec.deployments import names
from stirred.spec.kinds import KINDS, register
from stirred.spec.loading import load


def run(chosen):
    seen, failures = set(), []
    for case in chosen:
        given = Given(case)
        # Where nothing but the curve after itself is known, 99,999 small steps take minutes.
        slow = given.output.kind.name == "renyi" and given.budget.value < Fraction(1, 1000)
        groups = GROUPS[:-1] if slow else GROUPS
        explained = explain(
            case.specification,
            levels=case.levels,
            deltas=case.deltas,
            concerns=case.concerns,
            groups=groups,
            own=case.own,
        )
        for one in explained.statements:
            seen.add(one.id)
            try:
                held_up(given, one)
            except Exception as error:
                failures.append(f"{case.name}: {one.id}: {error!r}: {one.words}")
        for one in of_explanation(explained).statements:
            seen.add(one.id)
            try:
                limit_held_up(one)
            except Exception as error:
                failures.append(f"{case.name}: {one.id}: {error!r}: {one.words}")
    return seen, failures


@pytest.fixture(scope="module", autouse=True)
def own_definition():
    register(OWN)
    yield
    KINDS.pop(OWN.name)


def test_every_number_of_every_sentence_is_what_its_formula_gives():
    seen, failures = run(cases(FEW))
    assert not failures, "\n".join(failures[:20])
    assert set(templates()) <= seen, set(templates()) - seen
    assert {one.id for one in templates().values() if one.formula} == set(RECOMPUTED)


@pytest.mark.slow
def test_the_same_at_tiny_usual_and_absurd_budgets():
    _, failures = run(cases((*TINY, *USUAL, *ABSURD)))
    assert not failures, "\n".join(failures[:20])
    rest = [Case(name, load(name)) for name in names()]
    _, failures = run(rest)
    assert not failures, "\n".join(failures[:20])
