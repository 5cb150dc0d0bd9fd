"""Errors about audits: programs that do not run, and questions that an audit cannot ask."""

from __future__ import annotations

from collections.abc import Iterable

from stirred.errors.kinds import StirredError, listed


def audit_question(what: str, must: str) -> StirredError:
    return StirredError(
        "audit-question",
        f"{what} {must}.",
        "Change that and run the audit again; docs/audits.md has examples (stirred docs audits).",
    )


def audit_runs(which: str, problem: str) -> StirredError:
    return StirredError(
        "audit-runs",
        f"The runs on the {which} input {problem}.",
        "Give one output for each run, as a list of numbers, texts or tuples, and at least two runs.",
    )


def stratum_too_large(needs: str, most: str) -> StirredError:
    return StirredError(
        "stratum-too-large",
        f"The exact loss of this stratum takes too long to compute: it has {needs}; at most {most} can be done.",
        "Take a smaller stratum or merge categories; the theorem's epsilon holds for strata of every size.",
    )


def audit_of_plan(what: str) -> StirredError:
    return StirredError(
        "audit-of-plan",
        f"This audit does not know the probabilities of a swap with {what}.",
        "Audit a plan with rates between 0 and 1, a held column and a match column, and files that are not flat.",
    )


def audit_no_table(name: str, given: Iterable[str]) -> StirredError:
    names = sorted(given)
    return StirredError(
        "audit-no-table",
        f"The program gave no table called '{name}', but {listed(names) if names else 'none at all'}.",
        "Let it give back every table that it is given, under the same name.",
    )
