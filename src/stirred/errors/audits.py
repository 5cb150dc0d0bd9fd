"""Errors about audits: programs that do not run, and questions that an audit cannot ask."""

from __future__ import annotations

from stirred.errors.kinds import StirredError


def audit_question(what: str, must: str) -> StirredError:
    return StirredError("audit-question", f"{what} {must}.", "Correct the question.")


def audit_runs(which: str, problem: str) -> StirredError:
    return StirredError(
        "audit-runs",
        f"The runs on the {which} input {problem}.",
        "Give one output for each run, as a list of numbers, texts or tuples, and at least two runs.",
    )


def stratum_too_large(needs: str, most: str) -> StirredError:
    return StirredError(
        "stratum-too-large",
        f"The exact loss of this stratum takes too long to compute: it has {needs}, and {most} can be done.",
        "Take a smaller stratum or merge categories; the theorem's epsilon holds for strata of every size.",
    )
