"""Several ways of protecting one dataset side by side, and simulators of swappers that have no guarantee.

Nothing here writes a release: a simulator gives a frame, and a study tables and pictures.
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.study.side_by_side import Asked as Asked, Study as Study, study as study
    from stirred.lab.study.study_data import (
        StudyData as StudyData,
        from_files as from_files,
        from_flat as from_flat,
        generated as generated,
    )
    from stirred.lab.study.study_file import StudyPlan as StudyPlan, read_study as read_study, run_study as run_study

__getattr__, __dir__ = lazy(__name__)
