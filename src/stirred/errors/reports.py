"""Errors about reports and the custodian's confidential appendix to one."""

from __future__ import annotations

from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, PlanError

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


def appendix_of_one_release() -> PlanError:
    return PlanError(
        "appendix-of-one-release",
        "A confidential appendix is about one release.",
        "Name one release folder, and nothing beside it. " + _PAGE,
    )


def appendix_of_nothing() -> PlanError:
    return PlanError(
        "appendix-of-nothing",
        "A confidential appendix needs something confidential.",
        "Give the plan of the release, whose data are then read (--plan PLAN), or its ledger (--ledger FILE), or both. "
        + _PAGE,
    )


def appendix_without_file(option: str) -> PlanError:
    return PlanError(
        "appendix-without-file",
        f"The option {option} is for the confidential appendix, and nothing of it goes into the report.",
        f"Name the file of the appendix (--confidential-appendix FILE), or leave {option} out. " + _PAGE,
    )


def appendix_is_the_report(target: Path) -> OutputError:
    return OutputError(
        "appendix-is-the-report",
        f"The confidential appendix is another file than the report: both would be {target}.",
        "Name two files.",
    )


def appendix_in_a_release(target: Path, folder: Path) -> OutputError:
    return OutputError(
        "appendix-in-a-release",
        f"{target} would lie inside {folder}, which is a release and is given away.",
        "Choose a place where confidential files are kept.",
    )


def appendix_other_plan(folder: Path) -> PlanError:
    return PlanError(
        "appendix-other-plan",
        f"This is not the plan that the release {folder} was made from: its hash is not that of the certificate.",
        "Give the plan of this release, unchanged.",
    )


def appendix_other_data(what: str) -> DataError:
    return DataError(
        "appendix-other-data",
        f"These are not the data that the release was made from: {what} is not that of the certificate.",
        "Give the data as they were at the time of the release.",
    )
