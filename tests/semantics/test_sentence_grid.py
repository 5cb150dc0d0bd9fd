"""Every sentence with a number, over a grid of guarantees: each number recomputed from the sentence's own formula.

A sentence that holds a number nobody recomputes fails, and so does one that no guarantee of the grid brings about.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from sentence_formulas import RECOMPUTED, held_up, limit_held_up
from sentence_grid import ABSURD, FEW, GROUPS, OWN, TINY, USUAL, Case, Given, cases

from repeats import ALL_CASES
from stirred.reports.limits_section import of_explanation
from stirred.semantics import explain
from stirred.semantics.sentences.templates import templates
from stirred.semantics.side_by_side import side_by_side
from stirred.spec.invariant import determined, plural
from stirred.spec.kinds import KINDS, register
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names, tables
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


@pytest.mark.repeats
def test_every_number_of_every_sentence_is_what_its_formula_gives():
    seen, failures = run(cases(FEW if ALL_CASES else FEW[::2]))
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


# -- known guarantees against their own blocks -------------------------------------------------------------------


def classes_of(fields):
    """What the blocks of a data file publish exactly, and what they only hold fixed, as fields and not as words."""
    blocks, premetric = fields["specification"], fields["specification"]["input_premetric"]
    stated = blocks.get("multiverse", {}).get("invariants", [])
    taken = blocks.get("facts", {}).get("held_not_released", False)
    published, assumed = ([], stated) if taken else (stated, [])
    if premetric.get("kind", "records") == "records" and premetric.get("bounded", True):
        unit, stays = premetric.get("unit", "record"), premetric.get("stays_in", [])
        assumed = [*assumed, *({"counts": unit, "by": [coarse]} for coarse in stays)]
        told = any(one.get("counts") == unit and not one.get("at_least") for one in (*published, *assumed))
        assumed = assumed if told else [*assumed, {"counts": unit}]
    return published, assumed


def names_it(words, one, nested):
    """Whether words are about an invariant: they hold its own words or name, or else what it counts and by what, but
    for places that finer ones tell."""
    if own := one.get("words") or one.get("name"):
        return own in words
    told = determined(one.get("by", []), nested) - set(one.get("by", []))
    coarse = {above for fine, above in nested if fine in one.get("by", []) or fine in told}
    return plural(one["counts"]) in words and all(column in words for column in {*one.get("by", [])} - coarse)


def told_of(name):
    """Which words of `explain` and `compare` are about what is published, and which about what is only held fixed."""
    explained = explain(load(name))
    said = {one.id: one for one in explained.statements}
    published, assumed = explained.to_fields()["classes"]["published"], explained.to_fields()["classes"]["assumed"]
    both = side_by_side(load(name), load("rho=1,unit=person")).to_fields()
    assert both["classes"][0] == explained.to_fields()["classes"]
    row = both["questions"][1]["answers"][0]
    head, _, tail = row.replace(". Assumed", ". assumed").partition("assumed known, or held fixed in the comparison: ")
    assert head.removeprefix("published exactly: ").removesuffix(". ") == "; ".join(published) or row == "nothing"
    assert tail == "; ".join(assumed)
    section = " ".join(one.words for one in explained.section("exposed"))
    first = {"summary.both": "fixed", "summary.fixed": "fixed"}
    summary = [str(said[id].facts[fact]) for id, fact in first.items() if id in said]
    return explained, published, assumed, section, summary


@pytest.mark.parametrize("name", names())
def test_what_is_said_of_a_known_guarantee_is_in_its_own_blocks(name):
    fields, known = tables().deployments[name], deployment(name)
    published, assumed = classes_of(fields)
    explained, told, taken, section, summary = told_of(name)
    nested = [tuple(pair) for pair in tables().domains[fields["domain"]].get("nested", [])]

    def named(words, stated):
        return len(words) == len(stated) and all(names_it(a, b, nested) for a, b in zip(words, stated, strict=True))

    # Published exactly is what the source declares, and not what only limits the comparison.
    assert named(told, published), (told, published)
    assert named(taken, assumed), (taken, assumed)
    assert ("Published exactly" in section) == bool(published)
    assert all(not any(words in one for one in summary) for words in taken)
    # The protected unit is that of the account, where there is one, and what is fixed has a source there.
    unit = fields["specification"]["input_premetric"].get("unit", "record")
    (protected,) = explained.to_fields()["classes"]["protected"]
    assert unit in protected or explained.specification.input_premetric.kind != "records"
    if "account" in fields:
        assert fields["account"]["unit"] == unit and fields["account"]["fixed"]
        staying = fields["specification"]["input_premetric"].get("stays_in", [])
        assert all(f"every {coarse} keeps its number" in fields["account"]["neighbours"] for coarse in staying)
    # What it covers and what it does not, product by product.
    assert all(product in " ".join(one.words for one in explained.section("protects")) for product in known.products)
    assert all(product in section for product in known.not_covered)
    # A share that protects a coarser unit is one of this unit only where none of it changes the coarser one.
    parts = {part["unit"] for part in fields.get("parts", [])} - {unit}
    assert parts <= set(explained.specification.input_premetric.stays_in)
    if whole := fields.get("part_of"):
        together = tables().deployments[whole]
        others = [one for one in together["specification"]["covers"] if "both" not in one and "retab" not in one]
        assert {*others} == {*known.products, *known.not_covered} & {*others}
        assert not {*known.products} & {*known.not_covered}
        rho = sum(Fraction(part["budget"]) for part in together["parts"])
        assert f"rho = {float(rho):g} for all that '{whole}' covers" in section
