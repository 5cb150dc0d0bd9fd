"""Errors about ledgers: their files, and releases that they do not record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import StirredError


class LedgerError(StirredError):
    """A ledger cannot be read or written, or does not record a release."""


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
