"""Errors about ledgers: their files, and releases that they do not record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import StirredError


class LedgerError(StirredError):
    """A ledger cannot be read or written, or does not record a release."""


def ledger_missing(path: Path) -> LedgerError:
    return LedgerError(
        "ledger-missing",
        f"There is no ledger at {path}.",
        f"Correct the path, or start one: stirred ledger init {path} --dataset NAME.",
    )


def ledger_exists(path: Path) -> LedgerError:
    return LedgerError(
        "ledger-exists",
        f"{path} exists already.",
        "A dataset has one ledger: use this one, or name a file that does not exist.",
    )


def not_a_ledger(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        "not-a-ledger", f"{path} is not a ledger: {reason}.", "Check the path; the file was left as it is."
    )


def ledger_damaged(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-damaged",
        f"The ledger {path} is damaged: {reason}.",
        "The file was not changed, and nothing can be recorded in it. Restore the last backup, and record what was "
        "released since with stirred ledger add --past.",
    )


def ledger_version(path: Path, found: int, known: int) -> LedgerError:
    return LedgerError(
        "ledger-version",
        f"The ledger {path} has format version {found}; this version of stirred reads format version {known}.",
        "The file was not changed. Use the version of stirred that wrote it, or a newer one.",
    )


def ledger_locked(path: Path, seconds: float) -> LedgerError:
    return LedgerError(
        "ledger-locked",
        f"Another process has kept the ledger {path} locked for {seconds:g} seconds.",
        "Nothing was spent. Wait for it to end, then run again.",
    )


def ledger_unusable(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        "ledger-unusable",
        f"The ledger {path} cannot be used ({reason}).",
        "No release was made. Check the permissions and free space of the file and its folder, then run again.",
    )


def ledger_other_dataset(path: Path, dataset: str, found: str) -> LedgerError:
    return LedgerError(
        "ledger-other-dataset",
        f"The ledger {path} records releases of '{dataset}'; this specification is about '{found}'.",
        f'If that is the same dataset, give it that name: dataset = "{dataset}" in the plan, or "name" of the domain '
        "in the specification. If not, name the ledger of that dataset.",
    )


def ledger_limit_dataset(dataset: str, found: str) -> LedgerError:
    return LedgerError(
        "ledger-limit-dataset",
        f"The limit is about '{found}' and the ledger about '{dataset}'.",
        f'Give both the same name, as dataset = "{dataset}" in a plan or as "name" of the domain in a specification: a '
        "limit on one dataset bounds nothing about another.",
    )


def ledger_over_limit(path: Path, dataset: str, verdict: str, steps: Sequence[str]) -> LedgerError:
    argument = "".join(f"\n  {number}. {step}" for number, step in enumerate(steps, 1))
    return LedgerError(
        "ledger-over-limit",
        f"With this release the total for '{dataset}' is not known to stay within the limit of the ledger {path}.",
        "Nothing was released and nothing was spent. Plan a release that costs less; stirred ledger total says what "
        f"is left. Does the total imply the limit? {verdict.capitalize()}:{argument}",
    )


def ledger_no_total(path: Path, problem: str) -> LedgerError:
    return LedgerError(
        "ledger-no-total",
        f"The releases in the ledger {path} do not compose to one guarantee. {problem}",
        "Nothing was spent, since an unknown total cannot be compared with the limit. Bring the specifications to a "
        "common domain and standard.",
    )


def ledger_marked(mark: str) -> LedgerError:
    return LedgerError(
        "ledger-marked",
        f"The specification is marked '{mark}'.",
        "It cannot be recorded: a ledger records releases, and this must not be released.",
    )


def ledger_unknown_entry(path: Path, entry: int, known: int) -> LedgerError:
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


def ledger_entry_unreadable(path: Path, entry: int, problem: str) -> LedgerError:
    return LedgerError(
        "ledger-entry-unreadable",
        f"The specification of entry {entry} of the ledger {path} cannot be read. {problem}",
        "Nothing can be spent, since the total is unknown. Use the version of stirred that wrote the entry.",
    )


def ledger_counted_already(path: Path, folder: Path, entry: int) -> LedgerError:
    return LedgerError(
        "ledger-counted-already",
        f"{folder} is already recorded as entry {entry} of the ledger {path}.",
        "Record a release once only; add what was made from it with --derived-from.",
    )


def ledger_other_release(folder: Path, entry: int) -> LedgerError:
    return LedgerError(
        "ledger-other-release",
        f"{folder} is not the release that entry {entry} was spent for.",
        "Record it as an entry of its own.",
    )
