"""One order of steps in which every mechanism's release is made.

1. Every target is looked at, and the plan's dataset is compared with the ledger's, before any data are read.
2. The unfinished folders of the release and of the confidential comparison are created, so that a place that cannot be
   written to is found before anything is spent.
3. *Draw*: the data are read, once, and all randomness is drawn.
4. *Spend*: the ledger's entry is on disk before what was drawn can be seen outside an unfinished folder, and before
   it could be used as a release: certificate and manifest, or for a kept draw its record and manifest, are written
   after the entry. All the rest is on disk by then, and the space for the last files is reserved, so that a full
   disk costs no budget.
5. *Finish*: from here on nothing is spent, and a kept draw can be finished again.
6. The folders *appear*: the work folder when it is paid for, the confidential one, and last the release.

If anything fails after step 4, the error carries a note that says so and what can be gone on with.

:func:`releasing`, :func:`publishing` and :func:`releasing_measurements` are context managers. In their block the folder
holds all that a recipient gets but certificate and manifest, and more can be added to it, such as a report, from what
it publishes; what was drawn is not paid for then, unless it is kept, so a report that fails costs no budget.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from stirred import _bounded_reading as received
from stirred import errors
from stirred._progress import Progress, shown_by, stage
from stirred.noise import RandomSource
from stirred.releases.check_code import Watched
from stirred.releases.folder import manifest
from stirred.releases.folder.atomic import (
    CONFIDENTIAL,
    KEPT,
    PARTS,
    alone,
    appearing,
    check_target,
    flush,
    has_unfinished_name,
    unfinished,
    writing,
)
from stirred.releases.folder.documents import CERTIFICATE, README, REPORT, require_readable, with_report
from stirred.releases.folder.release_folder import ReleaseFolder, described_tables
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data, Draw, KeptDraw, Mechanism, Release
from stirred.releases.plans import Plan


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a release beside its plan and its data: where it goes, what counts it, and who is told."""

    out: Path
    """The release folder."""
    work: Path | None = None
    """Where the draw is kept, for mechanisms that keep draws; without it beside ``out``, and only while it is needed:
    for another try if the run is interrupted."""
    confidential: Path | None = None
    """The folder of the comparison with the true values."""
    ledger: Ledger | str | Path | None = None
    """Records the release before it appears, or raises."""
    as_checked: str | None = None
    """The code of a check: another plan or other data are refused before anything is drawn."""
    for_tests: bool = False
    """Whether a draw from a seed may be written."""
    progress: Progress | None = None
    """Who is told instead of those who are now."""

    @classmethod
    def of(
        cls, out: str | Path, *, work: str | Path | None = None, confidential: str | Path | None = None, **more: Any
    ) -> Request:
        """A request as the arguments of a public function state it."""
        private, kept = (None if one is None else Path(one) for one in (confidential, work))
        return cls(out=Path(out), work=kept, confidential=private, **more)


@dataclass(frozen=True)
class Unfinished:
    """A release folder that nobody can see yet: everything is in it but certificate and manifest."""

    mechanism: Mechanism
    release: Release
    folder: Path
    certificate: str
    """The text of the certificate that the folder will have."""

    def opened(self) -> ReleaseFolder:
        """The folder as a recipient will read it."""
        return ReleaseFolder(self.folder, json.loads(self.certificate), described_tables(self.folder))

    def add_report(self, text: str) -> None:
        """Write ``report.html``, and name it in README.txt."""
        (self.folder / REPORT).write_text(text, encoding="utf-8", newline="\n")
        readme = self.folder / README
        readme.write_text(with_report(readme.read_text(encoding="utf-8")), encoding="utf-8")


def default_work(out: str | Path) -> Path:
    """The work folder that is used where none is named: beside the release."""
    return Path(out).with_name(f"{Path(out).name}-work")


def draw(
    mechanism: Mechanism,
    plan: Plan,
    data: Data | None = None,
    *,
    work: str | Path | None = None,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> Draw:
    """Draw once. A mechanism that keeps draws writes into the new folder ``work``, and ``ledger`` records it."""
    with shown_by(progress):
        if work is None:
            return mechanism.draw(plan, data, keep_truth=keep_truth, source=source)
        work = Path(work)
        run = _Run(mechanism, Request(out=work), _admitted(mechanism, plan, ledger), work)
        drawn = run.draw_into(work, plan, data, keep_truth=keep_truth, source=source)
        _keep(work)
        return drawn


@contextlib.contextmanager
def releasing(mechanism: Mechanism, plan: Plan, data: Data | None, asked: Request) -> Iterator[Unfinished]:
    """Make a release: draw, or continue from an existing work folder, then finish and write."""
    if asked.work is not None and not mechanism.keeps_draws:
        raise errors.option_not_for("--work", mechanism.name)
    place = (asked.work or default_work(asked.out)) if mechanism.keeps_draws else None
    _check_targets(asked, place)
    resumed = place is not None and os.path.lexists(place)
    if resumed and place is not None and asked.as_checked is not None:
        raise errors.OutputError(
            "drawn-before",
            f"The draw in {place} was made by an earlier run, and nobody can tell from it which data were read.",
            "A code is compared before a draw. To go on from this draw, leave out --as-checked (as_checked in "
            "Python); to draw anew, name another --work.",
        )
    run = _Run(mechanism, asked, _admitted(mechanism, plan, asked.ledger, resumed), place)
    keep_truth = asked.confidential is not None
    with run.told():
        with run.targets() as targets:
            watched = None
            if asked.as_checked is not None:
                watched = Watched.of(mechanism, plan, data)
                data = watched.data
                watched.require(asked.as_checked)
            if place is None:
                drawn = mechanism.draw(plan, data, keep_truth=keep_truth)
                if watched is not None:
                    watched.require_unchanged()
                if run.ledger is not None:
                    run.ledger.check(drawn.specification)
            elif resumed:
                drawn = mechanism.reopen(plan, place)
                run.require_entry(drawn)
            else:
                drawn = run.draw_into(place, plan, data, keep_truth=keep_truth, watched=watched)
            passing = place is not None and asked.work is None and not (place / KEPT).exists()
            finished = _finish(drawn, passing, asked)
            with run.written(finished, data, targets) as made:
                yield made
        run.note(finished)
        if place is not None:
            _clear(place, passing)


@contextlib.contextmanager
def releasing_measurements(
    mechanism: Mechanism, measurements: str | Path, asked: Request, **options: Any
) -> Iterator[Unfinished]:
    """Make a release from measurements that others published: take them in, finish and write. Nothing is drawn, and
    nothing is spent.

    The work folder keeps them in the order in which a fit reads them; an interrupted run is gone on with from there.
    ``options`` are those of the mechanism for reading the measurements.
    """
    place = asked.work or default_work(asked.out)
    _check_targets(asked, place)
    run = _Run(mechanism, asked, None, place)
    with run.told():
        with run.targets() as targets:
            if os.path.lexists(place):
                drawn = mechanism.readopt(Path(measurements), place, **options)
            else:
                with appearing(place, private=True) as folder:
                    drawn = mechanism.adopt(Path(measurements), folder, **options).seal(place, None)
            passing = asked.work is None and not (place / KEPT).exists()
            with run.written(_finish(drawn, passing, asked), None, targets) as made:
                yield made
        _clear(place, passing)


def _finish(drawn: Draw, passing: bool, asked: Request) -> Release:
    """Finish a draw; ``passing`` says that its work folder is removed once the release is written."""
    if not drawn.for_release:  # a work folder that a test drew
        raise errors.seeded_release()
    if asked.work is not None:
        _keep(asked.work)
    return (cast(KeptDraw, drawn).to_be_removed() if passing else drawn).finish()


def _clear(place: Path, passing: bool) -> None:
    """Remove a work folder that was not asked for, or the finished parts in one that was."""
    if passing and not (place / KEPT).exists():
        shutil.rmtree(place)
    else:
        shutil.rmtree(place / PARTS, ignore_errors=True)


@contextlib.contextmanager
def publishing(mechanism: Mechanism, finished: Release, data: Data | None, asked: Request) -> Iterator[Unfinished]:
    """Write a release that was finished in memory. With a ledger, each draw is spent once, however often written."""
    if not finished.draw.for_release and not asked.for_tests:
        raise errors.seeded_release()
    _check_targets(asked, None)
    opened = Ledger.open(asked.ledger) if isinstance(asked.ledger, str | Path) else asked.ledger
    run = _Run(mechanism, asked, opened, None)
    if mechanism.keeps_draws:
        run.require_entry(finished.draw)
    with run.told():
        with run.targets() as targets, run.written(finished, data, targets) as made:
            yield made
        run.note(finished)
    if mechanism.keeps_draws:
        shutil.rmtree(cast(KeptDraw, finished.draw).folder / PARTS, ignore_errors=True)


class Writable:
    """How the release of every mechanism is written, if it is in memory."""

    mechanism: ClassVar[Mechanism]

    def write(
        self,
        out: str | Path,
        *,
        confidential: str | Path | None = None,
        data: Data | None = None,
        ledger: Ledger | str | Path | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder. ``confidential`` is a folder for the comparison with the true values, for which
        ``data`` are read (or the plan's own files) where the draw did not keep them.

        ``ledger`` records the release before the folder appears, or raises. A draw that is written again is listed with
        its entry, and costs nothing more. :func:`stirred.verbs.write` writes a report too.
        """
        asked = Request.of(out, confidential=confidential, ledger=ledger, for_tests=for_tests, progress=progress)
        with publishing(self.mechanism, cast(Release, self), data, asked):
            return asked.out


class DrawnAtOnce(Writable):
    """A release that is its own draw: finishing has nothing to do."""

    @property
    def draw(self) -> Self:
        """The release itself."""
        return self

    def finish(self) -> Self:
        """The release itself."""
        return self


@dataclass
class _Run:
    """One run that makes a release: what it is asked for, what it has spent, and what an error must say about it."""

    mechanism: Mechanism
    asked: Request
    ledger: Ledger | None
    work: Path | None
    entry: int | None = None
    """The number of the ledger's entry that recorded what was drawn; None until then."""

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Show progress as it is asked for, and add a note to any error: what was spent before it, and what can be
        continued."""
        resumed = self.work is not None and os.path.lexists(self.work)
        try:
            with shown_by(self.asked.progress):
                yield
        except BaseException as failure:
            if words := self._words(resumed):
                failure.add_note(words)
            raise

    def _words(self, resumed: bool) -> str:
        said, out = [], self.asked.out
        if self.entry is not None and self.ledger is not None:
            said.append(f"The budget was spent before this happened: entry {self.entry} of {self.ledger.path}.")
        if os.path.lexists(out) and (self.entry is not None or resumed):
            said.append(f"The release in {out} is complete.")
            said += [f"{self.work} is no longer needed."] if self.work is not None else []
        elif resumed:
            said.append(f"Nothing was spent: the earlier draw is still in {self.work}.")
        elif self.work is not None and os.path.lexists(self.work):
            without = ", without --as-checked," if self.asked.as_checked is not None else ""
            words = f"the same command{without} continues from it and spends nothing."
            said.append(f"The draw is kept in {self.work}: {words}")
        elif said:
            said.append("Nothing was published and the draw is lost: another release spends again.")
        return " ".join(said)

    @contextlib.contextmanager
    def targets(self) -> Iterator[tuple[Path, Path | None]]:
        """The unfinished folders of the release and of its confidential comparison, created together.

        They appear when the block ends without an error: the comparison first, the release last.
        """
        private = self.asked.confidential
        comparison = contextlib.nullcontext() if private is None else unfinished(private, True)
        with unfinished(self.asked.out) as folder, comparison as beside:
            yield folder, beside

    def draw_into(
        self,
        work: Path,
        plan: Plan,
        data: Data | None,
        *,
        keep_truth: bool,
        source: RandomSource | None = None,
        watched: Watched | None = None,
    ) -> KeptDraw:
        """Draw into a new work folder, which appears only once the ledger has recorded the draw."""
        with contextlib.ExitStack() as held, appearing(work, private=True) as folder:
            drawn = self.mechanism.draw(plan, data, folder=folder, keep_truth=keep_truth, source=source)
            if watched is not None:
                watched.require_unchanged()
            held.enter_context(alone(work))  # until the folder is there: of two runs at once only one pays
            check_target(work)
            entry = None
            if self.ledger is not None:
                stage("recording the draw in the ledger")
                paid = self.ledger.spend(drawn.specification, self.mechanism.spend_words(plan), nonce=drawn.nonce)
                entry, self.entry = (paid.id, paid.seal), paid.id
            return cast(KeptDraw, drawn).seal(work, entry)

    def require_entry(self, drawn: Any) -> None:
        """Raise if the ledger does not have the entry of a kept draw."""
        if self.ledger is None:
            return
        if drawn.entry is None or drawn.entry not in [(entry.id, entry.seal) for entry in self.ledger.entries()]:
            raise errors.work_folder(drawn.folder, f"the ledger {self.ledger.path} has no entry for the draw in it")

    @contextlib.contextmanager
    def written(self, finished: Release, data: Data | None, targets: tuple[Path, Path | None]) -> Iterator[Unfinished]:
        """Write the files of a release; certificate and manifest follow once a draw that is not kept is recorded."""
        out, (folder, beside) = self.asked.out, targets
        with writing(out):
            certificate = finished.write_files(folder).text()
            require_readable(folder, certificate)
            yield Unfinished(self.mechanism, finished, folder, certificate)
            last = manifest.HeldBack.of(folder, {CERTIFICATE: certificate.encode()})
            flush(folder)
        if self.ledger is not None and not self.mechanism.keeps_draws:
            stage("recording the release in the ledger")
            words, nonce = self.mechanism.spend_words(finished.draw.plan), finished.draw.nonce
            paid = self.ledger.entry_of_draw(nonce)  # a draw that is published a second time is paid for already
            if paid is None:
                paid = self.ledger.spend(finished.specification, words, out, manifest=last.digest, nonce=nonce)
            self.entry = paid.id
        with writing(out):
            last.write()
        if beside is not None and self.asked.confidential is not None:
            stage("comparing with the true values")
            with writing(self.asked.confidential):
                finished.write_confidential(beside, data)

    def note(self, finished: Release) -> None:
        """Note in the ledger that the release is complete. Only a note: the entry is on disk already."""
        if self.ledger is None:
            return
        with contextlib.suppress(errors.LedgerError):
            if not self.mechanism.keeps_draws:
                if self.entry is not None:
                    self.ledger.finished(self.entry, self.asked.out)
                return
            number, seal = finished.draw.entry  # type: ignore[attr-defined]
            self.ledger.finished(number, self.asked.out, seal=seal)  # also for a further release of the same draw


def _admitted(
    mechanism: Mechanism, plan: Plan, ledger: Ledger | str | Path | None, resumed: bool = False
) -> Ledger | None:
    """The opened ledger, after it has refused what it can refuse before any data are read."""
    opened = Ledger.open(ledger) if isinstance(ledger, str | Path) else ledger
    if opened is not None:
        opened.check_dataset(plan.dataset)
        mechanism.check_ledger(plan, opened)
        if not resumed and (stated := mechanism.specify(plan)) is not None:
            opened.check(stated)
    return opened


def _check_targets(asked: Request, work: Path | None) -> None:
    """Raise if a target exists, or lies where it does not belong: private things apart from what is given away."""
    private = [] if asked.confidential is None else [asked.confidential]
    for target in (asked.out, *private):
        check_target(target.absolute())
    targets = [Path(os.path.realpath(one)) for one in (asked.out, *private, *([work] if work is not None else []))]
    if len(set(targets)) < len(targets):
        raise errors.OutputError(
            "one-folder-for-both",
            f"{asked.out} is named for the release and for what must stay confidential.",
            "Name two different folders.",
        )
    for target in targets:
        for above in target.parents:
            if above in targets or _is_ours(above):
                raise errors.OutputError(
                    "folder-inside-another",
                    f"{target} would lie inside {above}, and one of the two is given away while the other stays "
                    "private, or both must stay unchanged.",
                    "Name folders that lie beside one another.",
                )


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a release, a work folder, a confidential comparison, or one of these unfinished."""
    with contextlib.suppress(OSError, ValueError):
        if received.read_text(folder / CONFIDENTIAL, most=10_000).startswith("CONFIDENTIAL. These "):
            return True
    with contextlib.suppress(errors.OutputError):
        manifest.read_manifest(folder)
        return True
    return has_unfinished_name(folder)


def _keep(work: Path) -> None:
    """Mark a work folder as one that was asked to be kept."""
    with writing(work), contextlib.suppress(FileExistsError), (work / KEPT).open("x", encoding="utf-8") as file:
        file.write("This folder was asked to be kept (--work): no later run removes it.\n")
