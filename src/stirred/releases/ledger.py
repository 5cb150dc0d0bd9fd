"""The ledger of a confidential dataset: records every release of it, and their total cost.

A dataset is known by its name, the ``domain.name`` of the specifications, and not by a file's hash: a later file of
the same people is the same dataset if the custodian says so. The total is the composition of all entries that touched
the data; products derived from an earlier release are listed and cost nothing. The limit is a specification, and a
release is refused unless the total with it is *known* to imply the limit.

The invariant: **a release is never visible before its spend is on disk**. A mechanism calls :meth:`Ledger.check` once
it knows what it would cost, :meth:`Ledger.spend` when the unfinished folder is written and before anyone can see
any of it, and :meth:`Ledger.finished` when the release is there. A run killed in between leaves its spend, which
:meth:`Ledger.verify` lists. Nothing takes a spend back. The file is the custodian's own and confidential: it names
folders, and what was drawn and never published.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from stirred import errors
from stirred.releases import ledger_file, manifest
from stirred.releases.folder import leftovers
from stirred.releases.ledger_file import Contents, Entry
from stirred.spec import Answer, Budget, Composition, Specification, compose, post_process
from stirred.spec.exact import display_down

__all__ = ["Entry", "Ledger", "Standing", "Verdict", "manifest_of"]


@dataclass(frozen=True)
class Standing:
    """The total of all recorded releases, and how it compares with the limit."""

    entries: int
    counted: int
    total: Composition | None
    """None as long as no release has spent budget."""
    limit: Specification | None
    within: Answer | None
    """Whether the total implies the limit; None where one of them is missing."""
    left: Fraction | float | None
    """What a further release of the limit's own flavor may cost; None where subtracting budgets does not tell."""

    def __str__(self) -> str:
        """What is left, in a sentence."""
        if self.limit is None:
            return "There is no limit: releases of any cost are recorded."
        symbol = self.limit.output_premetric.kind.budget
        if self.within is not None and not self.within:
            return "The total is not known to keep the limit, so no further release can be recorded."
        if self.left is None:
            return (
                "The total keeps the limit. It has other units or another standard than the limit, so how much is left "
                "depends on the next release."
            )
        return f"Left for releases of the limit's own flavor: {symbol} = {display_down(self.left)}."


@dataclass(frozen=True)
class Verdict:
    """One thing that was verified, and whether it holds; ``kind`` is a stable name for it."""

    holds: bool
    kind: str
    words: str


@dataclass(frozen=True)
class Ledger:
    """All releases ever made from one confidential dataset, in one file, held against a limit.

    Parameters
    ----------
    path
        The file; :meth:`create` starts one, :meth:`open` opens it. Nothing stays open between calls.
    dataset
        The dataset's name, as in plans.
    limit
        A specification that all releases together must imply, or None.
    patience
        Seconds to wait while another process uses the file.

    Examples
    --------
    >>> import tempfile
    >>> from stirred.spec import Domain, flavors
    >>> survey = flavors.zcdp("person", domain=Domain("health survey", record="person", free=True))
    >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "survey.ledger", "health survey", survey.at(1))
    >>> ledger.spend(survey.at("0.75"), "county tables").id
    1
    >>> print(ledger.standing())
    Left for releases of the limit's own flavor: rho = 0.25.
    >>> ledger.spend(survey.at("0.5"), "tract tables")
    Traceback (most recent call last):
    ...
    stirred.errors.ledgers.LedgerError: With this release the total for 'health survey' is not known to stay within ...
    """

    path: Path
    dataset: str
    limit: Specification | None
    patience: float
    """Seconds to wait while another process uses the file."""

    @classmethod
    def create(
        cls, path: str | Path, dataset: str, limit: Specification | None = None, *, patience: float | None = None
    ) -> Ledger:
        """Start a ledger in a new file."""
        path = Path(path)
        if not dataset.strip():
            raise errors.bad_block("A dataset", "has a name")
        if limit is not None and limit.domain.name != dataset:
            raise errors.ledger_limit_dataset(dataset, limit.domain.name)
        text = None if limit is None else limit.to_json()
        ledger_file.create(path, dataset, text, _patience(patience))
        return cls.open(path, patience=patience)

    @classmethod
    def open(cls, path: str | Path, *, patience: float | None = None) -> Ledger:
        """Open a ledger; raises if the file is damaged. ``patience``: seconds to wait for another process."""
        path, patience = Path(path), _patience(patience)
        with ledger_file.transaction(path, patience) as contents:
            return cls(path, contents.dataset, _limit(path, contents), patience)

    # -- counting ----------------------------------------------------------------------------------------------

    def check(self, specification: Specification) -> None:
        """Raise what :meth:`spend` would raise now; spends nothing."""
        with ledger_file.transaction(self.path, self.patience) as contents:
            self._admit(contents, specification)

    def check_dataset(self, name: str | None) -> None:
        """Raise if a plan's dataset is not the ledger's; called before any data are read."""
        if name != self.dataset:
            raise errors.ledger_other_dataset(self.path, self.dataset, name or "a dataset without a name")

    def spend(
        self,
        specification: Specification,
        what: str,
        folder: str | Path | None = None,
        derived_from: int | None = None,
        *,
        manifest: str | None = None,
    ) -> Entry:
        """Record a release that is about to appear in ``folder``; the entry is on disk when this returns.

        ``manifest`` is the SHA-256 of the release's manifest if it is known already: a run that is killed after its
        folder appeared and before :meth:`finished` can then be told from one that released nothing.
        """
        return self._add(specification, what, folder, derived_from, manifest, past=False, finished=False)

    def finished(self, entry: int, folder: str | Path) -> None:
        """Note that the release of an entry is complete in ``folder``."""
        found = manifest_of(Path(folder))
        with ledger_file.transaction(self.path, self.patience, writing=True) as contents:
            spent = self._entry(contents, entry)
            if spent.manifest not in (None, found):
                raise errors.ledger_other_release(Path(folder), entry)
            if spent.finished_at is None:
                contents.finish(spent, _absolute(folder), found)

    def record(
        self,
        specification: Specification | None,
        what: str,
        folder: str | Path | None = None,
        derived_from: int | None = None,
        *,
        past: bool = False,
    ) -> Entry:
        """Record a release that was made without this ledger, or a product derived from an entry.

        ``past`` records a release that is already published, even beyond the limit.
        """
        found = None if folder is None else manifest_of(Path(folder))
        return self._add(specification, what, folder, derived_from, found, past=past, finished=True)

    def _add(
        self,
        specification: Specification | None,
        what: str,
        folder: str | Path | None,
        derived_from: int | None,
        manifest: str | None,
        past: bool,
        finished: bool,
    ) -> Entry:
        place = None if folder is None else _absolute(folder)
        with ledger_file.transaction(self.path, self.patience, writing=True) as contents:
            for entry in contents.entries:
                if finished and place is not None and entry.manifest == manifest:
                    raise errors.ledger_counted_already(self.path, place, entry.id)
            if derived_from is not None:
                text = self._derived(contents, derived_from, specification)
            elif specification is None:
                raise errors.not_a_specification("there is none, and the release is derived from no other")
            else:
                self._admit(contents, specification, past)
                text = specification.to_json()
            return contents.append(what, text, derived_from, past, place, manifest, finished)

    def _admit(self, contents: Contents, specification: Specification, past: bool = False) -> None:
        """Raise if a specification is about another dataset, not for release or, unless past, beyond the limit."""
        if specification.marks:
            raise errors.ledger_marked(specification.marks[0])
        if specification.domain.name != contents.dataset:
            raise errors.ledger_other_dataset(self.path, contents.dataset, specification.domain.name)
        if past:
            return
        counted = [*self._counted(contents.entries), specification]
        total = self._composed(counted)
        limit = _limit(self.path, contents)
        if limit is not None and not (answer := _held_against(limit, counted, total)[0]):
            raise errors.ledger_over_limit(self.path, contents.dataset, answer.verdict, [str(s) for s in answer.steps])

    def _derived(self, contents: Contents, parent: int, specification: Specification | None) -> str:
        """The specification of what is derived from an entry: that entry's, or one that it implies."""
        covering = self._specification(self._entry(contents, parent))
        post_process(covering)  # refuses where processing the output is not free
        if specification is None:
            return covering.to_json()
        if specification.marks:
            raise errors.ledger_marked(specification.marks[0])
        if not (answer := covering.implies(specification)):
            raise errors.ledger_not_covered(parent, answer.verdict, [str(step) for step in answer.steps])
        return specification.to_json()

    # -- reading -----------------------------------------------------------------------------------------------

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        with ledger_file.transaction(self.path, self.patience) as contents:
            return contents.entries

    def entry_of(self, folder: Path) -> Entry | None:
        """The entry of the release in ``folder``, found by its manifest; None if there is none."""
        if not (folder / manifest.NAME).is_file():
            return None
        found = manifest_of(folder)
        return next((entry for entry in self.entries() if entry.manifest == found), None)

    def total(self) -> Composition | None:
        """The composition of all releases that spent budget; None if none did."""
        return self.standing().total

    def standing(self) -> Standing:
        """The total of all releases, and what is left of the limit."""
        return self._standing(self.entries())

    def _standing(self, entries: tuple[Entry, ...]) -> Standing:
        counted = self._counted(entries)
        total = self._composed(counted) if counted else None
        within = left = None
        if self.limit is not None and total is not None:
            within, left = _held_against(self.limit, counted, total)
        elif self.limit is not None and not self.limit.budget.is_curve:
            left = self.limit.budget.number
        return Standing(len(entries), len(counted), total, self.limit, within, left)

    def _counted(self, entries: Iterable[Entry]) -> list[Specification]:
        return [self._specification(entry) for entry in entries if entry.counted]

    def _composed(self, specifications: list[Specification]) -> Composition:
        try:
            return compose(*specifications, name=f"all releases of {self.dataset}")
        except errors.SpecificationError as refusal:
            raise errors.ledger_no_total(self.path, str(refusal)) from None

    def _specification(self, entry: Entry) -> Specification:
        try:
            return entry.specification
        except errors.StirredError as refusal:
            raise errors.ledger_entry_unreadable(self.path, entry.id, str(refusal)) from None

    def _entry(self, contents: Contents, number: int) -> Entry:
        if not 1 <= number <= len(contents.entries):
            raise errors.ledger_unknown_entry(self.path, number, len(contents.entries))
        return contents.entries[number - 1]

    # -- verifying ---------------------------------------------------------------------------------------------

    def verify(self) -> list[Verdict]:
        """Check the entries against their seals, the limit and the folders they name. A damaged file raises."""
        with ledger_file.transaction(self.path, self.patience, thorough=True) as contents:
            entries = contents.entries
        found = [Verdict(True, "file", f"the file is complete, and its {len(entries)} entries are unchanged")]
        found.append(self._verify_total(entries))
        problems = [verdict for entry in entries for verdict in _verify_release(entry)]
        found += problems or [Verdict(True, "releases", "every entry has its release, unchanged in its folder")]
        parents = sorted({entry.folder.parent for entry in entries if entry.folder is not None})
        left = [folder for parent in parents for folder in leftovers(parent)]
        words = "was left by a run that was killed; it may hold confidential rows: delete it"
        found += [Verdict(False, "leftover", f"{folder} {words}") for folder in left]
        if not left:
            found.append(Verdict(True, "leftover", "no unfinished folder is left beside a release"))
        return found

    def _verify_total(self, entries: tuple[Entry, ...]) -> Verdict:
        try:
            standing = self._standing(entries)
        except errors.StirredError as refusal:
            return Verdict(False, "total", str(refusal))
        if standing.limit is None:
            return Verdict(
                True, "total", f"the {standing.counted} releases compose to a total; there is no limit to keep"
            )
        if standing.total is None or standing.within:
            return Verdict(True, "total", f"the total of the {standing.counted} releases keeps the limit")
        return Verdict(False, "total", f"the total is not known to keep the limit: {standing.within}")


def manifest_of(folder: Path) -> str:
    """SHA-256 of a release's manifest, which itself lists the SHA-256 of every file."""
    try:
        return hashlib.sha256((folder / manifest.NAME).read_bytes()).hexdigest()
    except OSError:
        raise errors.not_a_release(folder, "it has no readable manifest.json") from None


def _verify_release(entry: Entry) -> list[Verdict]:
    """What does not agree between an entry and its folder, if anything."""
    said = f"entry {entry.id} ({entry.what})"
    there = None
    if entry.folder is not None and os.path.lexists(entry.folder):
        try:
            there = manifest_of(entry.folder)
        except errors.OutputError:
            return [Verdict(False, "changed", f"{said}: {entry.folder} is not a release")]
    if entry.finished_at is None and (there is None or entry.manifest is None):
        place = f"nothing is at {entry.folder}" if entry.folder and there is None else "no release is noted"
        words = f"{said} spent budget, but {place}: its run was stopped or is still working; the entry stays"
        return [Verdict(False, "spent-without-release", words)]
    if entry.folder is None:
        return []
    if there is None:
        words = f"{said} was released, but nothing is at {entry.folder} any more; the entry stays"
        return [Verdict(False, "release-missing", words)]
    if there != entry.manifest:
        return [Verdict(False, "changed", f"{said}: {entry.folder} is not the release that was recorded")]
    return []


def _limit(path: Path, contents: Contents) -> Specification | None:
    try:
        return None if contents.limit is None else Specification.from_json(contents.limit)
    except errors.StirredError as refusal:
        raise errors.ledger_damaged(path, f"its limit cannot be read. {refusal}") from None


def _held_against(
    limit: Specification, counted: list[Specification], total: Composition
) -> tuple[Answer, Fraction | float | None]:
    """Whether the releases together imply the limit, and how much is left, where subtracting budgets tells it.

    Two ways are tried, since neither is always better: compose and then convert to the limit's standard, or convert
    each release and then compose. The second adds a release of nothing under the limit to the others, which brings all
    of them to its standard.
    """
    answer = total.specification.implies(limit)
    reached = total.specification
    if not answer and limit.output_premetric.kind.composition == "sum":
        nothing = replace(limit, budget=Budget(0), marks=())
        try:
            reached = compose(nothing, *counted).specification
        except errors.SpecificationError:
            return answer, None
        answer = reached.implies(limit) or answer
    same = (reached.input_premetric, reached.output_premetric) == (limit.input_premetric, limit.output_premetric)
    if not answer or not same or limit.budget.is_curve:
        return answer, None
    return answer, limit.budget.number - reached.budget.number if limit.budget.number < math.inf else math.inf


def _patience(seconds: float | None) -> float:
    return ledger_file.PATIENCE if seconds is None else seconds


def _absolute(folder: str | Path) -> Path:
    return Path(os.path.abspath(folder))  # noqa: PTH100 - a link named as the target stays a link
