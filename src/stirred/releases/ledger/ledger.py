"""The ledger of a confidential dataset: records every release of it, and their total cost.

A dataset is known by its name, the ``domain.name`` of the specifications, and not by a file's hash: a later file of
the same people is the same dataset if the custodian says so. The total is the composition of all entries that touched
the data. The limit is a specification, and a release is refused unless the total with it is *known* to imply the limit.

The invariant: **a release is never visible before its spend is on disk**. A mechanism calls :meth:`Ledger.check` once
it knows what it would cost, :meth:`Ledger.spend` when the unfinished folder is written and before anyone can see
any of it, and :meth:`Ledger.finished` when the release is there, for each folder that is finished from the draw. A run
killed in between leaves its spend, which :meth:`Ledger.verify` lists. Nothing takes a spend back, also not
:meth:`Ledger.withdraw`, which records that a release should no longer be used.

A ledger is kept in a file or on a PostgreSQL server; this module does not know which. It is the custodian's own and
confidential: it names folders and people, and what was drawn and never published.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred import errors
from stirred.releases.folder import manifest
from stirred.releases.folder.atomic import leftovers
from stirred.releases.folder.manifest import manifest_of
from stirred.releases.ledger import rows as ledger_rows
from stirred.releases.ledger import store as ledger_store
from stirred.releases.ledger.released_folders import (
    LedgerFinding,
    compare_folders,
    nonce_of,
    why_not_of_draw,
)
from stirred.releases.ledger.rows import (
    BEGUN,
    FINISHED,
    LONGEST_WHO,
    LONGEST_WHY,
    SPENT,
    WITHDRAWN,
    Contents,
    Draft,
    Entry,
    Withdrawal,
)
from stirred.releases.ledger.store import ServerAddress
from stirred.releases.ledger.totals import Standing, above_limit, held_against, on_one_domain, unlike_domains
from stirred.releases.ledger.withdrawals import Notice, list_text, place_notices
from stirred.spec import Composition, Specification, compose, post_process

_SEAL = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Withdrawn:
    """What :meth:`Ledger.withdraw` did."""

    entry: Entry
    withdrawals: tuple[Withdrawal, ...]
    """One for each release that was meant, recorded now or before."""
    added: bool
    """False if all of it was recorded before, so that nothing was added."""
    placed: tuple[tuple[Path, str | None], ...]
    """Every folder that the ledger knows of them; None where it has its notice, else why there is nothing to state."""


@dataclass(frozen=True)
class Ledger:
    """All releases of one confidential dataset, and their total, which is compared with a limit.

    Parameters
    ----------
    path
        The file, or the address of a server; :meth:`create` starts a ledger, :meth:`open` opens it. Nothing stays open
        between calls.
    dataset
        The dataset's name, as in plans.
    limit
        A specification that all releases together must imply, or None.
    patience
        Seconds to wait while another process uses the ledger, or for its server.
    who, why
        Who makes the releases that are recorded through this handle, and why. Kept in the ledger, never published.

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
    stirred.errors.kinds.LedgerError: With this release the total for 'health survey' is rho = 1.25, above 1.00, ...
    """

    path: Path | ServerAddress
    dataset: str
    limit: Specification | None
    patience: float
    who: str | None = None
    why: str | None = None

    @classmethod
    def create(
        cls,
        path: str | Path | ServerAddress,
        dataset: str,
        limit: Specification | None = None,
        *,
        patience: float | None = None,
    ) -> Ledger:
        """Start a ledger in a new file, or on a server (``postgresql://...``)."""
        place, seconds = ledger_store.address_of(path), _patience(patience)
        if not dataset.strip():
            raise errors.bad_block("A dataset", "has a name")
        if limit is not None and limit.domain.name != dataset:
            raise errors.LedgerError(
                "ledger-limit-dataset",
                f"The limit is about '{limit.domain.name}' and the ledger about '{dataset}'.",
                f'Give both the same name, as dataset = "{dataset}" in a plan or as "name" of the domain in a '
                "specification: a limit on one dataset bounds nothing about another.",
            )
        text = None if limit is None else limit.to_json()
        ledger_store.store_of(place, seconds).create(ledger_rows.draft(BEGUN, dataset=dataset, limit=text))
        return cls.open(path, patience=patience)

    @classmethod
    def open(
        cls,
        path: str | Path | ServerAddress,
        *,
        patience: float | None = None,
        who: str | None = None,
        why: str | None = None,
    ) -> Ledger:
        """Open a ledger; raises if it is damaged. ``patience``: seconds to wait for another process or a server."""
        place, seconds = ledger_store.address_of(path), _patience(patience)
        who, why = ledger_rows.plain(who, "who", LONGEST_WHO), ledger_rows.plain(why, "why", LONGEST_WHY)
        contents = ledger_store.store_of(place, seconds).read()
        return cls(place, contents.dataset, _limit(place, contents), seconds, who, why)

    @property
    def _store(self) -> ledger_store.Store:
        return ledger_store.store_of(self.path, self.patience)

    # -- counting ----------------------------------------------------------------------------------------------

    def check(self, specification: Specification) -> None:
        """Raise what :meth:`spend` would raise now; spends nothing."""
        self._admit(self._store.read(), specification)
        self._store.require_recording()

    def check_dataset(self, name: str | None) -> None:
        """Raise if a plan's dataset is not the ledger's; called before any data are read."""
        if name != self.dataset:
            raise errors.ledger_other_dataset(self.path, self.dataset, name or "a dataset without a name")

    def spend(
        self,
        specification: Specification,
        what: str,
        folder: str | Path | None = None,
        *,
        manifest: str | None = None,
        nonce: str | None = None,
        who: str | None = None,
        why: str | None = None,
    ) -> Entry:
        """Record a release that is about to appear in ``folder``; the entry is on disk when this returns.

        ``manifest`` is the SHA-256 of the release's manifest if it is known already: a run that is killed after its
        folder appeared and before :meth:`finished` can then be told from one that released nothing. ``nonce`` is the
        identity of the draw: 32 hexadecimal digits, which every certificate of it states. ``who`` and ``why`` are kept
        in the ledger only.

        If this raises, nothing may be published. The error ``ledger-unknown`` means that the spend may be recorded all
        the same; after any other it is not.
        """
        return self._add(specification, what, folder, manifest, nonce, who, why)

    def finished(self, entry: int, folder: str | Path, *, what: str = "", seal: str | None = None) -> Entry:
        """Note that a release of an entry is complete in ``folder``; a further one from the same draw is listed too.

        Raises if the release is not known to be of the entry's draw. ``seal`` is the entry's seal if the caller knows
        it from the draw itself, as a work folder does: it stands in for the nonce that draws of stirred 0.1 lack.
        """
        place = _absolute(folder)
        found = manifest_of(place)

        def decide(contents: Contents) -> Sequence[Draft]:
            spent = self._entry(contents, entry)
            if any((one.folder, one.manifest) == (place, found) for one in spent.finishes):
                return []
            known = spent.nonce is None and (seal == spent.seal or spent.manifest is None)
            if not known and why_not_of_draw(spent, place, found) is not None:
                raise errors.LedgerError(
                    "ledger-other-release",
                    f"{place} is not the release that entry {entry} was spent for.",
                    "Record it as an entry of its own.",
                )
            return [ledger_rows.draft(FINISHED, entry=entry, folder=place, manifest=found, what=what)]

        return self._entry(self._store.append(decide)[0], entry)

    def record(
        self,
        specification: Specification | None,
        what: str,
        folder: str | Path | None = None,
        derived_from: int | None = None,
        *,
        past: bool = False,
        who: str | None = None,
        why: str | None = None,
    ) -> Entry:
        """Record a release that was made without this ledger, or one more folder of a draw that is counted already.

        ``past`` records a release that is already published, even beyond the limit. ``derived_from`` is the entry from
        whose draw the release in ``folder`` was finished, as its certificate and manifest must show: it is listed with
        that entry and costs nothing.
        """
        if derived_from is not None:
            return self._list_with(derived_from, specification, what, folder)
        if specification is None:
            raise errors.not_a_specification("there is none, and the release is derived from no other")
        found = None if folder is None else manifest_of(Path(folder))
        nonce = None if folder is None else nonce_of(Path(folder))
        return self._add(specification, what, folder, found, nonce, who, why, past=past, finished=True)

    def withdraw(
        self, release: str | Path | int, reason: str | None = None, *, superseded_by: str | Path | None = None
    ) -> Withdrawn:
        """Record that a release should no longer be used, then write ``WITHDRAWN.txt`` into its folders.

        Nothing is given back: what was spent stays spent.

        Parameters
        ----------
        release
            The folder of the release, or the number of an entry, of which all releases are withdrawn.
        reason
            A sentence, **which is public**: it stands in the folder and in the list of :meth:`withdrawn`. It is needed
            once; repeated with the same reason, or with none, this adds no row and writes what notice is missing.
        superseded_by
            The folder of the recorded release that takes its place. It can be named later, once.
        """
        words = ledger_rows.plain(reason, "reason", LONGEST_WHY)
        folder = None if isinstance(release, int) else _absolute(release)
        successor = None if superseded_by is None else _absolute(superseded_by)

        def meant(contents: Contents) -> tuple[Entry, list[str]]:
            if isinstance(release, int):
                entry = self._entry(contents, release)
                return entry, sorted(entry.manifests)
            entry, digest = self._release(contents, _absolute(release))
            return entry, [digest]

        def decide(contents: Contents) -> Sequence[Draft]:
            entry, digests = meant(contents)
            if not digests:
                raise errors.LedgerError(
                    "ledger-nothing-to-withdraw",
                    f"Entry {entry.id} of the ledger {self.path} has no release that could be withdrawn: no folder of "
                    "it was recorded.",
                    f"Nothing was recorded. If there is one, list it first: stirred ledger add {self.path} FOLDER "
                    f"--derived-from {entry.id} --what WHAT",
                )
            after = None if successor is None else self._successor(contents, successor, digests)
            drafts = (self._withdrawn(entry, digest, words, after) for digest in digests)
            return [draft for draft in drafts if draft is not None]

        try:
            contents, rows = self._store.append(decide)
        except errors.LedgerError as refusal:
            if refusal.kind == "ledger-unknown":
                raise errors.ledger_unknown_withdrawal(refusal.problem) from None
            raise
        entry, digests = meant(contents)
        recorded = tuple(one for one in entry.withdrawals if one.manifest in digests)
        placed = tuple(pair for one in recorded for pair in place_notices(entry, one, folder))
        return Withdrawn(entry, recorded, bool(rows), placed)

    def _withdrawn(self, entry: Entry, digest: str, reason: str | None, after: str | None) -> Draft | None:
        """The row that withdraws a release, or names its successor; None if it is there already."""
        before, about = entry.withdrawal(digest), {"entry": entry.id, "manifest": digest}
        if before is None:
            if reason is None:
                raise errors.LedgerError(
                    "ledger-no-reason",
                    f"A release of entry {entry.id} is to be withdrawn, and no reason was given.",
                    "Nothing was recorded. Give it in a sentence that everybody may read: --reason WORDS",
                )
            return ledger_rows.draft(WITHDRAWN, **about, reason=reason, superseded_by=after)
        day = Notice.of(before).day
        if reason not in (None, before.reason):
            raise errors.ledger_withdrawn_already(self.path, entry.id, day, "reason")
        if after in (None, before.superseded_by):
            return None
        if before.superseded_by is not None:
            raise errors.ledger_withdrawn_already(self.path, entry.id, day, "successor")
        return ledger_rows.draft(WITHDRAWN, **about, reason=before.reason, superseded_by=after)

    def _successor(self, contents: Contents, folder: Path, withdrawn: Sequence[str]) -> str:
        """The manifest of a release that may take the place of others."""
        entry, digest = self._release(contents, folder)
        if digest in withdrawn:
            raise errors.ledger_bad_successor(folder, "it is itself to be withdrawn")
        if entry.withdrawal(digest) is not None:
            raise errors.ledger_bad_successor(folder, "it was withdrawn itself")
        return digest

    def _release(self, contents: Contents, folder: Path) -> tuple[Entry, str]:
        """The entry and the manifest of the release in a folder, or of the one that was there if it is gone."""
        if os.path.lexists(folder / manifest.NAME):
            digest = manifest_of(folder)
            found = [(entry, digest) for entry in contents.entries if digest in entry.manifests]
            reason = "it was recorded in another ledger or in none, or was changed since"
        else:
            known = {
                (entry.id, one) for entry in contents.entries for place, one in entry.places if place == folder and one
            }
            found = [(contents.entries[number - 1], one) for number, one in known]
            reason = "nothing is there any more, and several were recorded there" if found else "nothing is there"
            found = found if len(found) == 1 else []
        if not found:
            raise errors.LedgerError(
                "ledger-not-recorded",
                f"The ledger {self.path} records no release of which it is known that it is in {folder}: {reason}.",
                "Nothing was recorded. If it is a release of another dataset, name that dataset's ledger. If it was "
                f"never recorded, record it first: stirred ledger add {self.path} FOLDER --what WHAT. If the folder "
                "is gone or was changed, name the number of its entry in place of the folder: stirred ledger list "
                f"{self.path}",
            )
        return found[0]

    def withdrawn(self) -> str:
        """The list of withdrawn releases, as JSON for the public: manifests, days, reasons, successors."""
        contents = self._store.read()
        return list_text(contents.dataset, contents.entries)

    def _add(
        self,
        specification: Specification,
        what: str,
        folder: str | Path | None,
        manifest: str | None,
        nonce: str | None,
        who: str | None,
        why: str | None,
        past: bool = False,
        finished: bool = False,
    ) -> Entry:
        place = None if folder is None else _absolute(folder)
        text = specification.to_json()
        Specification.from_json(text)  # raises if it could not be read again, since then no total would be known
        ledger_rows.checked_nonce(nonce)
        by = ledger_rows.plain(self.who if who is None else who, "who", LONGEST_WHO)
        reason = ledger_rows.plain(self.why if why is None else why, "why", LONGEST_WHY)

        def decide(contents: Contents) -> Sequence[Draft]:
            for entry in contents.entries:
                if finished and place is not None and manifest in entry.manifests:
                    raise errors.ledger_counted_already(self.path, place, entry.id)
                if nonce is not None and entry.nonce == nonce:
                    raise errors.LedgerError(
                        "ledger-same-draw",
                        f"This draw is already counted: it has the nonce of entry {entry.id} of the ledger "
                        f"{self.path}.",
                        "Nothing was spent again. To list another folder that was finished from that draw, at no "
                        f"cost: stirred ledger add {self.path} FOLDER --derived-from {entry.id} --what WHAT",
                    )
            self._admit(contents, specification, past)
            number = len(contents.entries) + 1
            about = {"entry": number, "folder": place, "manifest": manifest}
            noted = {"specification": text, "derived_from": None, "past": past, "nonce": nonce, "who": by}
            drafts = [ledger_rows.draft(SPENT, **about, **noted, what=what, why=reason)]
            return [*drafts, ledger_rows.draft(FINISHED, **about, what="")] if finished else drafts

        contents, rows = self._store.append(decide)
        return next(entry for entry in contents.entries if entry.token == rows[0].token)

    def _list_with(
        self, parent: int, specification: Specification | None, what: str, folder: str | Path | None
    ) -> Entry:
        """List a further folder of an entry's draw with that entry."""
        if folder is None:
            raise errors.ledger_not_derived(parent, "no release folder was given whose certificate could tell")
        place = _absolute(folder)
        found = manifest_of(place)

        def decide(contents: Contents) -> Sequence[Draft]:
            entry = self._entry(contents, parent)
            if any((one.folder, one.manifest) == (place, found) for one in entry.finishes):
                raise errors.ledger_counted_already(self.path, place, entry.id)
            if (reason := why_not_of_draw(entry, place, found)) is not None:
                raise errors.ledger_not_derived(parent, reason)
            self._require_covered(entry, specification)
            return [ledger_rows.draft(FINISHED, entry=parent, folder=place, manifest=found, what=what)]

        return self._entry(self._store.append(decide)[0], parent)

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
        if limit is not None and not (answer := held_against(limit, counted, total)[0]):
            above = above_limit(total.specification, limit)
            steps = [str(step) for step in answer.steps]
            raise errors.ledger_over_limit(self.path, contents.dataset, answer.verdict, steps, above)

    def _require_covered(self, entry: Entry, specification: Specification | None) -> None:
        """Raise unless the guarantee of an entry implies what a release of its draw states."""
        covering = self._specification(entry)
        post_process(covering)  # refuses where processing the output is not free
        if specification is None:
            return
        if specification.marks:
            raise errors.ledger_marked(specification.marks[0])
        if not (answer := covering.implies(specification)):
            raise errors.ledger_not_covered(entry.id, answer.verdict, [str(step) for step in answer.steps])

    # -- reading -----------------------------------------------------------------------------------------------

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return self._store.read().entries

    @property
    def seal(self) -> str:
        """The last seal now. Who keeps it elsewhere can tell later whether anything was removed or replaced."""
        return self._store.read().seal

    def entry_of(self, folder: Path) -> Entry | None:
        """The entry of the release in ``folder``, found by its manifest or its nonce; None if there is none."""
        if not (folder / manifest.NAME).is_file():
            return None
        found, nonce = manifest_of(folder), nonce_of(folder)
        return next(
            (
                entry
                for entry in self.entries()
                if found in entry.manifests or (nonce is not None and entry.nonce == nonce)
            ),
            None,
        )

    def entry_of_draw(self, nonce: str) -> Entry | None:
        """The entry that counts the draw with this nonce; None if there is none."""
        return next((entry for entry in self.entries() if entry.nonce == nonce), None)

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
            within, left = held_against(self.limit, counted, total)
        elif self.limit is not None and not self.limit.budget.is_curve:
            left = self.limit.budget.number
        withdrawn = sum(entry.state == "withdrawn" for entry in entries)
        return Standing(len(entries), len(counted), withdrawn, total, self.limit, within, left)

    def _counted(self, entries: Iterable[Entry]) -> list[Specification]:
        return [self._specification(entry) for entry in entries if entry.counted]

    def _composed(self, specifications: list[Specification]) -> Composition:
        try:
            return compose(*on_one_domain(specifications), name=f"all releases of {self.dataset}")
        except errors.SpecificationError as refusal:
            raise errors.ledger_no_total(self.path, unlike_domains(specifications) or str(refusal)) from None

    def _specification(self, entry: Entry) -> Specification:
        try:
            return entry.specification
        except errors.StirredError as refusal:
            raise errors.LedgerError(
                "ledger-entry-unreadable",
                f"The specification of entry {entry.id} of the ledger {self.path} cannot be read. {refusal}",
                "Nothing can be spent, since the total is unknown. Use the version of stirred that wrote the entry.",
            ) from None

    def _entry(self, contents: Contents, number: int) -> Entry:
        if not 1 <= number <= len(contents.entries):
            raise errors.ledger_unknown_entry(self.path, number, len(contents.entries))
        return contents.entries[number - 1]

    # -- verifying ---------------------------------------------------------------------------------------------

    def verify(self, seal: str | None = None) -> list[LedgerFinding]:
        """Check the entries against their seals, the limit and the folders they name. A damaged ledger raises.

        ``seal`` is a last seal that was kept from before: whether the ledger still has it, and what came after it.
        """
        wanted = None if seal is None else _seal(seal)
        store = self._store
        contents = store.read(thorough=True)
        entries = contents.entries
        found = [LedgerFinding(True, "file", f"the ledger is complete, and its {len(entries)} entries are unchanged")]
        if wanted is not None:
            found.append(_verify_seal(contents, wanted))
        found += [LedgerFinding(*caution) for caution in store.cautions()]
        found.append(self._verify_total(entries))
        known = frozenset(digest for entry in entries for digest in entry.manifests)
        problems = [one for entry in entries for one in compare_folders(entry, known)]
        withdrawn = ", or it was withdrawn, and its folder states it or is gone"
        words = "every entry has its release, unchanged in its folder"
        words += withdrawn if any(entry.withdrawals for entry in entries) else ""
        found += problems or [LedgerFinding(True, "releases", words)]
        parents = sorted({place.parent for entry in entries for place, _ in entry.places if place})
        left = [folder for parent in parents for folder in leftovers(parent)]
        words = "was left by a run that was killed; it may hold confidential rows: delete it"
        found += [LedgerFinding(False, "leftover", f"{folder} {words}") for folder in left]
        if not left:
            found.append(LedgerFinding(True, "leftover", "no unfinished folder is left beside a release"))
        return found

    def _verify_total(self, entries: tuple[Entry, ...]) -> LedgerFinding:
        try:
            standing = self._standing(entries)
        except errors.StirredError as refusal:
            return LedgerFinding(False, "total", str(refusal))
        if standing.limit is None:
            return LedgerFinding(
                True, "total", f"the {standing.counted} releases compose to a total; there is no limit to keep"
            )
        if standing.total is None or standing.within:
            return LedgerFinding(True, "total", f"the total of the {standing.counted} releases keeps the limit")
        return LedgerFinding(False, "total", f"the total is not known to keep the limit: {standing.within}")


def _verify_seal(contents: Contents, wanted: str) -> LedgerFinding:
    """Whether a seal that was kept is in the ledger, and what was recorded after it."""
    number = contents.row_of_seal(wanted)
    if number is None:
        words = (
            f"the seal {wanted} is not in this ledger: this is an older copy, or another ledger, or a row was removed "
            "or replaced after the seal was printed"
        )
        return LedgerFinding(False, "seal", words)
    later = contents.rows[number:]
    named = ", ".join(f"entry {json.loads(row.body).get('entry')} was {row.kind}" for row in later)
    after = f"recorded after it: {named}" if later else "nothing was recorded after it"
    return LedgerFinding(True, "seal", f"the seal {wanted} is in this ledger, and so is everything before it; {after}")


def _limit(path: object, contents: Contents) -> Specification | None:
    try:
        return None if contents.limit is None else Specification.from_json(contents.limit)
    except errors.StirredError as refusal:
        raise errors.ledger_damaged(path, f"its limit cannot be read. {refusal}") from None


def _patience(seconds: float | None) -> float:
    return ledger_store.PATIENCE if seconds is None else seconds


def _seal(text: str) -> str:
    """A seal as it was typed, brought to the form in which it is kept."""
    seal = text.strip().lower()
    if not _SEAL.fullmatch(seal):
        raise errors.LedgerError(
            "ledger-bad-seal",
            "A seal is 64 hexadecimal digits, and this is something else.",
            "Copy the whole seal, as it was printed after a release.",
        )
    return seal


def _absolute(folder: str | Path) -> Path:
    return Path(os.path.abspath(folder))  # noqa: PTH100 - a link named as the target stays a link
