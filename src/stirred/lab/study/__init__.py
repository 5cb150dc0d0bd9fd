"""Several ways of protecting one dataset side by side, and simulators of swappers that have no guarantee.

Nothing here writes a release: a simulator gives a frame, and a study tables and pictures.
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.lab.study.side_by_side import Asked, Study, study
    from stirred.lab.study.study_data import StudyData, from_files, from_flat, generated
    from stirred.lab.study.study_file import StudyPlan, read_study, run_study

__all__ = [
    "Asked",
    "Study",
    "StudyData",
    "StudyPlan",
    "from_files",
    "from_flat",
    "generated",
    "read_study",
    "run_study",
    "study",
]

__getattr__, __dir__ = lazy(__name__)
