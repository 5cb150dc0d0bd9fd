"""Release and verify with the report of a release: ``report.html`` in its folder.

The release runner does not know the room ``reports``; here it is handed the writer of reports. Keep in mind: the page
in a folder is made from what the release publishes, and is the one that ``stirred report`` writes about that folder,
wherever it lies.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stirred.releases.mechanism import Data, Mechanism, Release
from stirred.verbs import of_plan, of_release

if TYPE_CHECKING:
    from stirred._progress import Progress
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.plans import Plan
    from stirred.releases.verdicts import Verdict, Verdicts


class FolderReport:
    """Writes the report of a release, for the release runner and for ``verify``."""

    def text(self, mechanism: Mechanism, release: ReleaseFolder) -> str:
        """The page about a release, from its public files."""
        from stirred.reports.page import report_text
        from stirred.reports.subjects import of_folder

        return report_text([of_folder(mechanism, release)])

    def agrees(self, mechanism: Mechanism, release: ReleaseFolder, found: str) -> list[Verdict]:
        """Whether a page is, letter for letter, the one about this release, but for the versions of the programs."""
        from stirred.reports.page_comparison import compared

        return compared(mechanism, release, found)

    def __repr__(self) -> str:
        return "<writer of report.html>"


REPORT = FolderReport()
"""What the release runner is handed."""


def release(
    plan: Plan | str | Path,
    data: Data | None = None,
    *,
    out: str | Path,
    work: str | Path | None = None,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    as_checked: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
) -> Release:
    """Protect the data as a plan says and write a release folder, which appears complete or not at all.

    Parameters
    ----------
    plan
        A ``SwapPlan``, a ``TopDownPlan``, a ``SurveyPlan``, or the path of a plan file.
    data
        Data to read in place of the plan's own paths: a path or a frame, or several in a mapping from table names.
    out
        The folder to write; it must not exist.
    work
        For TopDown, the private folder that keeps the draw. If it exists, the release is made from it and nothing is
        spent.
    confidential
        A new folder for the comparison of released with true values. It is confidential.
    ledger
        The dataset's ledger, its path, or its address on a server (``postgresql://...``). The release is recorded in it
        before it appears; if it would exceed the ledger's limit, an error is raised and nothing is released.
    as_checked
        The ``code`` of a check: if the plan or the data are not those that it has seen, nothing is drawn.
    progress
        Receives the name of each stage when it begins; by default nothing is shown.
    report
        Whether ``report.html``, the page about the guarantee for people, is written into the folder.

    Returns
    -------
    Release
        What was released, for use in memory: a ``SwapRelease``, a ``TopDownRelease`` or a ``SurveyRelease``.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> made = stirred.release(plan, rows, out=tempfile.mkdtemp() + "/release")
    >>> made.frame().shape
    (20, 3)
    """
    from stirred.releases.steps import release as run

    mechanism, read = of_plan(plan)
    return run(
        mechanism, read, data, out=out, work=work, confidential=confidential, ledger=ledger, as_checked=as_checked,
        documents=REPORT if report else None, progress=progress,
    )  # fmt: skip


def verify(
    path: str | Path,
    *,
    signers: str | Path | None = None,
    withdrawn: str | Path | None = None,
    most_rows: int | None = None,
) -> Verdicts:
    """Check a release from its own files: manifest, plan, guarantee, columns, invariants, report, signature.

    The folder may come from anybody: nothing outside it is opened, and what it must contain is derived from its plan.

    Parameters
    ----------
    path
        A release folder, of any mechanism.
    signers
        A file of keys that you trust, in the format of OpenSSH's ``allowed_signers``: the release must then be signed
        by one of them.
    withdrawn
        The list of withdrawn releases that the publisher gives out (``stirred ledger withdrawn``). Without it only a
        notice in the folder can tell that a release was withdrawn.
    most_rows
        How many rows a table may have; by default as many as the size of its file makes likely.

    Returns
    -------
    Verdicts
        A list of everything that was checked, each with ``holds``, ``words`` and ``state``: ``"holds"``,
        ``"contradicted"``, ``"not compared"`` (another version wrote it), ``"could not be checked"`` (the machine did
        not allow it), ``"withdrawn"`` (by its publisher) or ``"note"`` (a remark). ``holds`` is true only of what was
        compared and is so, and of remarks. The list's own ``state`` is the answer for all, and ``answer`` says it in
        one line; printed, a line for each follows.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> folder = tempfile.mkdtemp() + "/release"
    >>> _ = stirred.release(plan, rows, out=folder)
    >>> found = stirred.verify(folder)
    >>> all(verdict.holds for verdict in found)
    True
    >>> print(found.answer)
    Everything was compared, and nothing contradicts. That data are right or a draw random, no folder shows.
    """
    from stirred.releases.folder.manifest import signature_verdicts
    from stirred.releases.folder.release_folder import failed, says_nothing, verify_with
    from stirred.releases.ledger.released_folders import withdrawal_verdicts
    from stirred.releases.steps import report_verdicts
    from stirred.releases.verdicts import Verdicts

    try:
        mechanism, opened = of_release(path, most_rows)
        listed = None if withdrawn is None else Path(withdrawn)
        status = withdrawal_verdicts(opened.path, _dataset(opened), listed)
        signed = signature_verdicts(opened.path, None if signers is None else Path(signers))
    except Exception as problem:
        if not says_nothing(problem):
            raise
        return Verdicts([failed("the release", problem)])
    found = verify_with(opened, mechanism.verify, lambda one: report_verdicts(REPORT, mechanism, one))
    return Verdicts([*status, *found, *signed])


def _dataset(opened: ReleaseFolder) -> str:
    """The name of the dataset that a release's certificate states; empty if it states none that can be read."""
    domain = opened.certificate["specification"].get("domain")
    return str(domain.get("name", "")) if isinstance(domain, dict) else ""
