"""Makes a TopDown release: draws into a work folder, finishes, writes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from stirred.noise import RandomSource
from stirred.releases import steps
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.progress import Progress
from stirred.releases.steps import DocumentWriter
from stirred.topdown.drawing import TopDownDraw
from stirred.topdown.finishing import TopDownRelease
from stirred.topdown.mechanism import MECHANISM
from stirred.topdown.plan import TopDownPlan


def draw(
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    work: str | Path,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> TopDownDraw:
    """Measure once into the new folder ``work``. ``source`` other than the operating system's is for tests.

    ``data`` gives frames or paths by table in place of the plan's own, and the list of places as ``"geography"``.
    ``keep_truth`` keeps the true counts in memory, for the confidential comparison.
    """
    made = steps.draw(
        MECHANISM, plan, data, work=work, keep_truth=keep_truth, source=source, ledger=ledger, progress=progress
    )
    return cast(TopDownDraw, made)


def release(
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    out: str | Path,
    work: str | Path | None = None,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    documents: DocumentWriter | None = None,
    progress: Progress | None = None,
) -> TopDownRelease:
    """Make a release: draw, or continue from an existing work folder, then fit and write.

    Without ``work`` a folder beside ``out`` is used; it is removed once the release is written, and kept for another
    try if the fit is interrupted. ``documents`` writes the report of the release, as :func:`stirred.release` does;
    without it there is none.
    """
    made = steps.release(
        MECHANISM, plan, data, out=out, work=work, confidential=confidential, ledger=ledger, documents=documents,
        progress=progress,
    )  # fmt: skip
    return cast(TopDownRelease, made)
