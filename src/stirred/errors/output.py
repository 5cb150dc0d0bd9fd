"""Errors about writing, reading and signing release folders, and about reports with their confidential appendix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, PlanError, listed, place_of

_PAGE = "docs/reports.md (stirred docs reports) has examples."


def output_exists(path: Path) -> OutputError:
    return OutputError(
        "output-exists",
        f"{path} exists already.",
        "Existing files are never overwritten: name a path that does not exist.",
    )


def output_parent_missing(path: Path) -> OutputError:
    return OutputError(
        "output-parent-missing",
        f"The folder {path.parent} does not exist.",
        "Create it first, or choose another.",
    )


def cannot_write(path: Path, reason: str) -> OutputError:
    return OutputError(
        "cannot-write",
        f"{path} could not be written ({reason}).",
        "Nothing was released, and partial files were removed. Free space or correct permissions, or write elsewhere.",
    )


def needs_posix() -> OutputError:
    return OutputError(
        "needs-posix",
        "Releases cannot be written on this system: it has no file locks of the POSIX kind (Python's fcntl).",
        "Use Linux or macOS; on Windows, the Windows Subsystem for Linux.",
    )


def unknown_page(name: str, close: Sequence[str]) -> OutputError:
    remedy = f"Did you mean {listed(close)}? " if close else ""
    return OutputError(
        "unknown-page", f"There is no page '{name}' in the documentation.", remedy + "stirred docs lists all pages."
    )


def work_folder(folder: object, problem: str) -> OutputError:
    return OutputError(
        "work-folder",
        f"The work folder {folder} cannot be used: {problem}.",
        "Correct the plan, or name another folder with --work to draw again, which spends again.",
    )


def not_a_release(path: Path, reason: str, remedy: str = "Ask its publisher for a complete copy.") -> OutputError:
    return OutputError("not-a-release", f"{path} is not a complete release: {reason}.", remedy)


def not_read(path: Path, problem: Exception) -> OutputError:
    return OutputError(
        "not-read",
        f"{path} could not be read: {why_unread(problem)}.",
        "This says nothing about the release itself.",
    )


def why_unread(problem: Exception) -> str:
    """Why reading failed, where the reason is the machine, or may be a fault of this program; its text is not shown."""
    if isinstance(problem, MemoryError):
        return "the memory of this machine is not enough"
    if isinstance(problem, OSError):
        return f"the operating system refused: {problem.strerror}: {problem.filename or 'no file named'}"
    place, line = place_of(problem)
    return (
        f"there was an unexpected {type(problem).__name__} in {place}, line {line}; either a document has a form that "
        "no release has, or this is a fault in stirred: please report it"
    )


def unreadable_release(reason: str) -> OutputError:
    return OutputError(
        "unreadable-release",
        f"The release would be too large in a way that recipients could not read: {reason}",
        "Nothing was released and nothing spent. Release fewer columns, or columns with shorter names; "
        "docs/bounds.md has all bounds (stirred docs bounds).",
    )


def not_as_checked(what: str) -> OutputError:
    return OutputError(
        "not-as-checked",
        f"{what} that the check with this code has seen.",
        "Nothing was drawn, released or spent. Run stirred check again, read what it says now, and use its code.",
    )


def invariants_broken(what: str) -> OutputError:
    return OutputError(
        "invariants-broken",
        f"The recount before publishing found that {what} changed.",
        "Nothing was released. This is a fault in stirred: please report it.",
    )


def unknown_table(name: str, known: Sequence[str]) -> OutputError:
    return OutputError("unknown-table", f"The release has no table '{name}'.", f"Its tables are {listed(known)}.")


def unknown_table_column(names: Sequence[str], known: Sequence[str]) -> OutputError:
    return OutputError(
        "unknown-table-column",
        f"The release has no column {listed(names)}.",
        f"Its columns are {listed(known)}.",
    )


def cannot_sign(path: Path, reason: str) -> OutputError:
    return OutputError(
        "cannot-sign",
        f"{path} was not signed: {reason}.",
        "Nothing was written. A key is made with: ssh-keygen -t ed25519 -f KEYFILE",
    )


def not_all_compared(path: Path, answer: str, may_be_told: bool) -> OutputError:
    told = " Or sign it all the same with --although-not-compared, which the signature then states."
    return OutputError(
        "not-all-compared",
        f"{path} was not signed. {answer}",
        "Nothing was written. Verify and sign it with the versions that its certificate names."
        + (told if may_be_told else ""),
    )


def report_needs_data(title: str) -> PlanError:
    return PlanError(
        "report-needs-data",
        f"The guarantee of this plan ({title}) depends on the data, and a report reads no data.",
        "Type the size of the largest stratum, if it is known publicly (--largest-stratum 5000); or run stirred check "
        "PLAN --specification guarantee.json, and report that file. " + _PAGE,
    )


def report_option(option: str, must: str) -> PlanError:
    return PlanError("report-option", f"The option {option} {must}.", _PAGE)


def appendix_of_nothing() -> PlanError:
    return PlanError(
        "appendix-of-nothing",
        "A confidential appendix needs something confidential.",
        "Give the plan of the release, whose data are then read (--plan PLAN), or its ledger (--ledger FILE), or both. "
        + _PAGE,
    )


def appendix_other_data(what: str) -> DataError:
    return DataError(
        "appendix-other-data",
        f"These are not the data that the release was made from: {what} is not that of the certificate.",
        "Give the data as they were at the time of the release.",
    )
