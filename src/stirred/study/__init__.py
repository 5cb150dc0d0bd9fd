"""Several ways of protecting one dataset side by side, and simulators of swappers that have no guarantee.

Nothing here writes a release: a simulator gives a frame, and a study tables and pictures.
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.study.data import StudyData, from_files, from_flat, generated
    from stirred.study.study_file import StudyPlan, read_study, run_study
    from stirred.study.studying import Asked, Study, study

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
