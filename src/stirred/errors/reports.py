"""Errors about reports."""

from __future__ import annotations

from stirred.errors.kinds import PlanError

_PAGE = "docs/reports.md (stirred docs reports) has examples."


def report_needs_data(title: str) -> PlanError:
    return PlanError(
        "report-needs-data",
        f"The guarantee of this plan ({title}) depends on the data, and a report reads no data.",
        "Type the size of the largest stratum, if it is known publicly (--largest-stratum 5000); or run stirred check "
        "PLAN --specification guarantee.json, and report that file. " + _PAGE,
    )


def report_option(option: str, must: str) -> PlanError:
    return PlanError("report-option", f"The option {option} {must}.", _PAGE)


def report_of_nothing() -> PlanError:
    return PlanError(
        "report-of-nothing",
        "A report needs something to report.",
        "Name a release folder, a plan, a specification, a deployment, or a budget such as 'rho=2.63'. " + _PAGE,
    )
