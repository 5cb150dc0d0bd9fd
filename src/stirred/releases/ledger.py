"""The ledger of a confidential dataset: records every release of it, and their total cost.

A dataset is known by its name, the ``domain.name`` of the specifications, and not by a file's hash: a later file of
the same people is the same dataset if the custodian says so. The total is the composition of all entries that touched
the data. The limit is a specification, and a release is refused unless the total with it is *known* to imply the limit.

The invariant: **a release is never visible before its spend is on disk**. A mechanism calls :meth:`Ledger.check` once
it knows what it would cost, :meth:`Ledger.spend` when the unfinished folder is written and before anyone can see
any of it, and :meth:`Ledger.finished` when the release is there, for each folder that is finished from the draw. A run
killed in between leaves its spend, which :meth:`Ledger.verify` lists. Nothing takes a spend back.

A ledger is kept in a file or on a PostgreSQL server; this module does not know which. It is the custodian's own and
confidential: it names folders and people, and what was drawn and never published.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from stirred import errors
from stirred.releases import ledger_rows, ledger_store, manifest
from stirred.releases.folder import leftovers
from stirred.releases.ledger_address import ServerAddress
from stirred.releases.ledger_rows import LONGEST_WHO, LONGEST_WHY, Contents, Draft, Entry, Finish, Row
from stirred.releases.same_draw import difference, nonce_of
from stirred.spec import Answer, Budget, Composition, Specification, compose, post_process
from stirred.spec.exact import display_down
from stirred.spec.order import texts_in_order

__all__ = ["Entry", "Finish", "Ledger", "Standing", "Verdict", "manifest_of", "together"]
_SEAL = re.compile("[0-9a-f]{64}")


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
    stirred.errors.ledgers.LedgerError: With this release the total for 'health survey' is rho = 1.25, above 1.00, ...
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
            raise errors.ledger_limit_dataset(dataset, limit.domain.name)
        text = None if limit is None else limit.to_json()
        ledger_store.store_of(place, seconds).create(ledger_rows.begun(dataset, text))
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
            if not known and difference(spent, place, found) is not None:
                raise errors.ledger_other_release(place, entry)
            return [ledger_rows.finished(entry, place, found, what)]

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
        text = _readable(specification)
        ledger_rows.checked_nonce(nonce)
        by = ledger_rows.plain(self.who if who is None else who, "who", LONGEST_WHO)
        reason = ledger_rows.plain(self.why if why is None else why, "why", LONGEST_WHY)

        def decide(contents: Contents) -> Sequence[Draft]:
            for entry in contents.entries:
                if finished and place is not None and manifest in entry.manifests:
                    raise errors.ledger_counted_already(self.path, place, entry.id)
                if nonce is not None and entry.nonce == nonce:
                    raise errors.ledger_same_draw(self.path, entry.id)
            self._admit(contents, specification, past)
            number = len(contents.entries) + 1
            drafts = [
                ledger_rows.spent(
                    number, what, text,
                    past=past, folder=place, manifest=manifest, nonce=nonce, who=by, why=reason,
                )
            ]  # fmt: skip
            if finished:
                drafts.append(ledger_rows.finished(number, place, manifest))
            return drafts

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
            if (reason := difference(entry, place, found)) is not None:
                raise errors.ledger_not_derived(parent, reason)
            self._require_covered(entry, specification)
            return [ledger_rows.finished(parent, place, found, what)]

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
        if limit is not None and not (answer := _held_against(limit, counted, total)[0]):
            above = _above(total.specification, limit)
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
            within, left = _held_against(self.limit, counted, total)
        elif self.limit is not None and not self.limit.budget.is_curve:
            left = self.limit.budget.number
        return Standing(len(entries), len(counted), total, self.limit, within, left)

    def _counted(self, entries: Iterable[Entry]) -> list[Specification]:
        return [self._specification(entry) for entry in entries if entry.counted]

    def _composed(self, specifications: list[Specification]) -> Composition:
        try:
            return compose(*_on_one_domain(specifications), name=f"all releases of {self.dataset}")
        except errors.SpecificationError as refusal:
            raise errors.ledger_no_total(self.path, _unlike_domains(specifications) or str(refusal)) from None

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

    def verify(self, seal: str | None = None) -> list[Verdict]:
        """Check the entries against their seals, the limit and the folders they name. A damaged ledger raises.

        ``seal`` is a last seal that was kept from before: whether the ledger still has it, and what came after it.
        """
        wanted = None if seal is None else _seal(seal)
        store = self._store
        contents = store.read(thorough=True)
        entries = contents.entries
        found = [Verdict(True, "file", f"the ledger is complete, and its {len(entries)} entries are unchanged")]
        if wanted is not None:
            found.append(_verify_seal(contents, wanted))
        found += [Verdict(*caution) for caution in store.cautions()]
        found.append(self._verify_total(entries))
        problems = [verdict for entry in entries for verdict in _verify_releases(entry)]
        found += problems or [Verdict(True, "releases", "every entry has its release, unchanged in its folder")]
        places = [place for entry in entries for place in (entry.folder, *(one.folder for one in entry.finishes))]
        left = [folder for parent in sorted({one.parent for one in places if one}) for folder in leftovers(parent)]
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


def _verify_seal(contents: Contents, wanted: str) -> Verdict:
    """Whether a seal that was kept is in the ledger, and what was recorded after it."""
    number = contents.row_of_seal(wanted)
    if number is None:
        words = (
            f"the seal {wanted} is not in this ledger: this is an older copy, or another ledger, or a row was removed "
            "or replaced after the seal was printed"
        )
        return Verdict(False, "seal", words)
    later = contents.rows[number:]
    after = "nothing was recorded after it" if not later else f"recorded after it: {', '.join(map(_named, later))}"
    return Verdict(True, "seal", f"the seal {wanted} is in this ledger, and so is everything before it; {after}")


def _named(row: Row) -> str:
    entry = ledger_rows.entry_of_row(row)
    return f"entry {entry} was spent" if row.kind == ledger_rows.SPENT else f"entry {entry} was finished"


def _verify_releases(entry: Entry) -> list[Verdict]:
    """What does not agree between an entry and its folders, if anything."""
    said = f"entry {entry.id} ({entry.what})"
    if entry.finishes:
        return [verdict for one in entry.finishes for verdict in _verify_folder(said, one.folder, one.manifest)]
    there = entry.folder is not None and os.path.lexists(entry.folder)
    if there and entry.manifest is not None:
        return _verify_folder(said, entry.folder, entry.manifest)
    if there and entry.folder is not None and not (entry.folder / manifest.NAME).is_file():
        return [Verdict(False, "changed", f"{said}: {entry.folder} is not a release")]
    place = f"nothing is at {entry.folder}" if entry.folder and not there else "no release is noted"
    words = f"{said} spent budget, but {place}: its run was stopped or is still working; the entry stays"
    return [Verdict(False, "spent-without-release", words)]


def _verify_folder(said: str, folder: Path | None, digest: str | None) -> list[Verdict]:
    if folder is None:
        return []
    if not os.path.lexists(folder):
        words = f"{said} was released, but nothing is at {folder} any more; the entry stays"
        return [Verdict(False, "release-missing", words)]
    try:
        there = manifest_of(folder)
    except errors.OutputError:
        return [Verdict(False, "changed", f"{said}: {folder} is not a release")]
    if there != digest:
        return [Verdict(False, "changed", f"{said}: {folder} is not the release that was recorded")]
    return []


def _limit(path: object, contents: Contents) -> Specification | None:
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
            reached = compose(*_on_one_domain([nothing, *counted])).specification
        except errors.SpecificationError:
            return answer, None
        answer = reached.implies(limit) or answer
    same = (reached.input_premetric, reached.output_premetric) == (limit.input_premetric, limit.output_premetric)
    if not answer or not same or limit.budget.is_curve:
        return answer, None
    return answer, limit.budget.number - reached.budget.number if limit.budget.number < math.inf else math.inf


def _above(total: Specification, limit: Specification) -> tuple[str, str] | None:
    """Both budgets as text where the total is above the limit and they differ in nothing else but the variables read.

    A limit is about the whole dataset, so that fewer variables alone do not make a budget count for less.
    """

    def others(one: Specification) -> tuple[object, ...]:
        return one.domain.name, one.multiverse, one.input_premetric, one.output_premetric

    if others(total) != others(limit) or total.budget.is_curve or limit.budget.is_curve:
        return None
    if total.budget.number <= limit.budget.number:
        return None
    shown, most = texts_in_order(total.budget, limit.budget)
    return f"{total.output_premetric.kind.budget} = {shown}", most


def together(*specifications: Specification) -> Specification:
    """The guarantee that releases with these guarantees have together, as a ledger composes them.

    >>> from stirred.spec import flavors
    >>> together(flavors.pure("person").at(1), flavors.zcdp("person").at("0.25")).budget.shown()
    '0.72'
    """
    return compose(*_on_one_domain(list(specifications))).specification


def _on_one_domain(specifications: list[Specification]) -> list[Specification]:
    """The same guarantees, without saying where each starts if mechanisms say it differently.

    A swap starts at the file that it swapped, TopDown at the tables that it measured. In one ledger these are one
    dataset, since it has one name, and a guarantee on a domain is one on the domain that does not say where it starts.
    """
    if len({one.domain.starts for one in specifications}) == 1:
        return specifications
    return [replace(one, domain=replace(one.domain, starts="", words="")) for one in specifications]


def _unlike_domains(specifications: list[Specification]) -> str:
    """In what the domains differ, if that is why releases do not compose; else empty."""
    first = specifications[0].domain
    for one in specifications[1:]:
        if one.domain.objects != first.objects or one.domain.datasets != first.datasets:
            return "They are about different sets of datasets."
        if set(one.domain.restricted_by) != set(first.restricted_by):
            said = ["; ".join(sorted(each.restricted_by)) or "nothing" for each in (first, one.domain)]
            return (
                "Their guarantees are about different sets of datasets. What was ruled out beforehand is in one: "
                f"{said[0]}. In another: {said[1]}."
            )
    return ""


def _readable(specification: Specification) -> str:
    """A specification as JSON; raises if it could not be read again, since then no total would be known any more."""
    text = specification.to_json()
    Specification.from_json(text)
    return text


def _patience(seconds: float | None) -> float:
    return ledger_store.PATIENCE if seconds is None else seconds


def _seal(text: str) -> str:
    """A seal as it was typed, brought to the form in which it is kept."""
    seal = text.strip().lower()
    if not _SEAL.fullmatch(seal):
        raise errors.ledger_bad_seal()
    return seal


def _absolute(folder: str | Path) -> Path:
    return Path(os.path.abspath(folder))  # noqa: PTH100 - a link named as the target stays a link
