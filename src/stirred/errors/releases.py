"""Errors about release folders: writing, reading and signing them, reports with their appendix, and ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import DataError, LedgerError, OutputError, PlanError, listed, place_of

_REPORTS_PAGE = "docs/reports.md (stirred docs reports) has examples."


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
        "PLAN --specification guarantee.json, and report that file. " + _REPORTS_PAGE,
    )


def report_option(option: str, must: str) -> PlanError:
    return PlanError("report-option", f"The option {option} {must}.", _REPORTS_PAGE)


def appendix_of_nothing() -> PlanError:
    return PlanError(
        "appendix-of-nothing",
        "A confidential appendix needs something confidential.",
        "Give the plan of the release, whose data are then read (--plan PLAN), or its ledger (--ledger FILE), or both. "
        + _REPORTS_PAGE,
    )


def appendix_other_data(what: str) -> DataError:
    return DataError(
        "appendix-other-data",
        f"These are not the data that the release was made from: {what} is not that of the certificate.",
        "Give the data as they were at the time of the release.",
    )


def ledger_missing(path: object) -> LedgerError:
    return LedgerError(
        "ledger-missing",
        f"There is no ledger at {path}.",
        f"Correct the path, or start one: stirred ledger init {path} --dataset NAME.",
    )


def ledger_exists(path: object) -> LedgerError:
    return LedgerError(
        "ledger-exists",
        f"{path} exists already.",
        "A dataset has one ledger: use this one, or name a file that does not exist.",
    )


def not_a_ledger(path: object, reason: str) -> LedgerError:
    return LedgerError(
        "not-a-ledger", f"{path} is not a ledger: {reason}.", "Check the path; the file was left as it is."
    )


def ledger_damaged(path: object, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-damaged",
        f"The ledger {path} is damaged: {reason}.",
        "The file was not changed, and nothing can be recorded in it. Restore the last backup, and record what was "
        "released since with stirred ledger add --past.",
    )


def ledger_version(path: object, found: int, known: int) -> LedgerError:
    return LedgerError(
        "ledger-version",
        f"The ledger {path} has format version {found}; this version of stirred reads format versions up to {known}.",
        "The file was not changed. Use the version of stirred that wrote it, or a newer one.",
    )


def ledger_locked(path: object, seconds: float) -> LedgerError:
    return LedgerError(
        "ledger-locked",
        f"Another process has kept the ledger {path} locked for {seconds:g} seconds.",
        "Nothing was spent. Wait for it to end, then run again.",
    )


def ledger_unusable(path: object, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-unusable",
        f"The ledger {path} cannot be used ({reason}).",
        "No release was made. Check the permissions and free space of the file and its folder, then run again.",
    )


def ledger_other_dataset(path: object, dataset: str, found: str) -> LedgerError:
    return LedgerError(
        "ledger-other-dataset",
        f"The ledger {path} records releases of '{dataset}'; this specification is about '{found}'.",
        f'If that is the same dataset, give it that name: dataset = "{dataset}" in the plan, or "name" of the domain '
        "in the specification. If not, name the ledger of that dataset.",
    )


def ledger_over_limit(
    path: object, dataset: str, verdict: str, steps: Sequence[str], above: tuple[str, str] | None = None
) -> LedgerError:
    """``above``: the total and the limit as text where they differ in the budget only."""
    argument = "; ".join(f"({number}) {step}" for number, step in enumerate(steps, 1))
    if above or any("is above" in step for step in steps):
        remedy = "Plan a release that costs less; stirred ledger total says what is left."
    else:
        remedy = (
            "Whatever it costs, no rule tells how it counts against this limit: they differ in what they hold fixed, "
            "in their unit or in their standard. Plan a release of the limit's kind. To release in several kinds, "
            "start a ledger with a --limit for each, as docs/ledger.md says (stirred docs ledger)."
        )
    if above:
        said = f"is {above[0]}, above {above[1]}, the limit of the ledger {path}."
    else:
        kept = "does not stay" if verdict == "no" else "is not known to stay"
        said = (
            f"{kept} within the limit of the ledger {path}. Does the total (the first) imply the limit (the second)? "
            f"{verdict.capitalize()}: {argument}."
        )
    return LedgerError(
        "ledger-over-limit",
        f"With this release the total for '{dataset}' {said}",
        f"Nothing was released and nothing was spent. {remedy}",
    )


def ledger_no_total(path: object, problem: str) -> LedgerError:
    return LedgerError(
        "ledger-no-total",
        f"The releases in the ledger {path} do not compose to one guarantee. {problem}",
        "Nothing was spent, since an unknown total cannot be compared with a limit. Plan the release so that it "
        "composes with the earlier ones: the same unit or one whose size is declared, the same restrictions, a "
        "standard that converts. docs/ledger.md has the rules (stirred docs ledger).",
    )


def ledger_marked(mark: str) -> LedgerError:
    return LedgerError(
        "ledger-marked",
        f"The specification is marked '{mark}'.",
        "It cannot be recorded: a ledger records releases, and this must not be released.",
    )


def ledger_unknown_entry(path: object, entry: int, known: int) -> LedgerError:
    there = f"Its entries are 1 to {known}" if known else "It has no entries"
    return LedgerError(
        "ledger-unknown-entry", f"The ledger {path} has no entry {entry}.", f"{there}: stirred ledger list {path}."
    )


def ledger_not_covered(entry: int, verdict: str, steps: Sequence[str]) -> LedgerError:
    return LedgerError(
        "ledger-not-covered",
        f"What is derived from entry {entry} has the guarantee of entry {entry}, which is not known to imply this "
        f"specification ({verdict}: {'; '.join(steps)}).",
        "Leave the specification out. If the data were read again, record it as a release of its own.",
    )


def ledger_counted_already(path: object, folder: Path, entry: int) -> LedgerError:
    return LedgerError(
        "ledger-counted-already",
        f"{folder} is already recorded as entry {entry} of the ledger {path}.",
        "Record a release once only; add what was made from it with --derived-from.",
    )


def ledger_not_derived(entry: int, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-not-derived",
        f"This is not known to be made from the release of entry {entry} alone: {reason}.",
        "Nothing was recorded. If the data were read again for it, it costs budget: record it as a release of its own, "
        "without --derived-from. A table or an estimate computed from a release costs nothing and needs no entry.",
    )


def ledger_unknown(place: object, token: str, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-unknown",
        f"It is not known whether the ledger {place} recorded this: {reason}",
        "Nothing is published, and the budget may have been spent. To find out when the ledger can be read again: "
        f'stirred ledger list {place} --json, and look for "token": "{token}". If it is there, the budget was spent '
        "and the entry stays; if not, nothing was spent.",
    )


def ledger_withdrawn_already(place: object, entry: int, day: str, what: str) -> LedgerError:
    return LedgerError(
        "ledger-withdrawn-already",
        f"This release of entry {entry} of the ledger {place} was withdrawn on {day}, with another {what}.",
        "Nothing was recorded: what a ledger has recorded is never changed. Only a release that takes its place can be "
        "named later, once. To see what was recorded: stirred ledger withdrawn LEDGER",
    )


def ledger_unknown_withdrawal(problem: str) -> LedgerError:
    return LedgerError(
        "ledger-unknown-withdrawal",
        problem,
        "No notice was written yet, and no budget is concerned. Repeat the command when the ledger can be read again: "
        "what is recorded already is not recorded twice.",
    )


def ledger_bad_successor(folder: Path, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-bad-successor",
        f"{folder} cannot take the place of a release that is withdrawn: {reason}.",
        "Nothing was recorded. Name another release with --superseded-by, or leave it out and name one later.",
    )


def no_withdrawn_list(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        "no-withdrawn-list",
        f"The list of withdrawn releases {path} cannot be read: {reason}.",
        "Ask the publisher for the file that stirred ledger withdrawn LEDGER --out FILE writes.",
    )


def ledger_address(reason: str) -> LedgerError:
    return LedgerError(
        "ledger-address",
        f"The address of the ledger's server cannot be used: {reason}.",
        "The address is not repeated here, since it may hold a password. Characters such as @ / ? # : in a "
        "password are written as %-codes. Better is an address without one and a file ~/.pgpass: see docs/ledger.md "
        "(stirred docs ledger).",
    )


def ledger_unreachable(place: object, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-unreachable",
        f"The ledger {place} cannot be reached or used ({reason}).",
        "Nothing was spent. Check the address, the role and the server, then run again.",
    )


def ledger_role(place: object, schema: str) -> LedgerError:
    return LedgerError(
        "ledger-role",
        f"The role that the address {place} names lacks a right that this needs.",
        "Nothing was spent. To release, a role needs what the ledger's owner gives it by: "
        f"GRANT USAGE ON SCHEMA {schema} TO ROLE; GRANT SELECT, INSERT ON {schema}.rows TO ROLE; To start a ledger "
        "it needs the right to create schemas in the database.",
    )
