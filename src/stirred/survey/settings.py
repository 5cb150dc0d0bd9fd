"""The ten settings of differential privacy for a survey, what each means for weights and sampling, and which to take.

A setting says at which stage the mechanism starts and which stages before it are held fixed (Table 6.1); each gives a
specification whose multiverse compares only datasets that agree on what is held fixed (Definitions 6.3.1 to 6.3.3).
Holding more fixed compares less, and is the weaker guarantee (Lemma 6.2.7). Guarantees that start at different stages
protect different records, and none of them implies another (section 6.5.1).

A sample could have been drawn from several frames, so that the universes of Definition 6.3.2 overlap. Here the
mechanism reads, beside the data, the stages that are held fixed: every dataset then lies in one universe, and one
scale of noise belongs to it, as Theorem 6.4.3 needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from stirred import errors
from stirred.spec import Domain, Invariant, Specification, flavors
from stirred.survey.pipeline import LEVELS, Pipeline

Change = Literal["value", "unit"]
"""How a unit's record changes: ``value``, the same unit gives other answers and keeps its place in the design;
``unit``, another unit stands in its place, with a weight of its own."""

CHANGES: tuple[Change, ...] = ("value", "unit")

FIXED, CONSIDERED = "Can be treated as fixed", "Sensitivity needs to be considered"

TABLE_6_2: Mapping[str, str] = MappingProxyType(
    {"target sample": FIXED, "frame": FIXED, "population": CONSIDERED, "": CONSIDERED}
)
"""Design weights, by the last stage that is held fixed (empty: none). Final weights, which account for nonresponse or
are calibrated, can never be treated as fixed."""

TABLE_6_3: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "responding sample": (),
        "target sample": ("NR",),
        "frame": ("NR", "S"),
        "population": ("FR", "S", "NR"),
    }
)
"""Where amplification could come from, by the stage at which the mechanism starts: nonresponse (NR), sampling (S),
building the frame (FR)."""

DATASETS = {
    "population": "populations of {survey}, with the answers that every unit would give",
    "frame": "frames of {survey}, with the answers that every unit would give",
    "target sample": "target samples of {survey}",
    "responding sample": "responding samples of {survey}",
    "edited and imputed data": "responding samples of {survey}, after editing and imputation",
    "weights": "files of {survey} after editing, imputation and weighting",
}
"""What the datasets are called, by the stage at which a guarantee starts."""
HELD = {
    "population": Invariant(name="the population that the frame is built from"),
    "frame": Invariant(name="the frame that the sample is drawn from"),
    "target sample": Invariant(name="the target sample, selected units with their answers"),
}
"""What all compared datasets agree on, by the stage that is held fixed."""
SAME_UNITS = Invariant(name="which units the dataset holds")
"""What they agree on as well if units only give other answers."""


@dataclass(frozen=True)
class Recommendation:
    """What the authors say about a setting."""

    verdict: Literal["recommended", "second choice", "not preferred", "advised against"]
    reason: str
    source: str = "section 6.6"


@dataclass(frozen=True)
class Setting:
    """One of the ten settings: where the mechanism starts, and the last stage that is held fixed.

    >>> setting("target sample", "frame")
    <Setting 6: target sample, frame held fixed>
    >>> setting("target sample", "frame").invariance
    'population-invariant, frame-invariant'
    """

    number: int
    level: str
    fixed_through: str = ""

    def __repr__(self) -> str:
        return f"<Setting {self.number}: {self.name}>"

    @property
    def name(self) -> str:
        """The setting in a few words."""
        return f"{self.level}, {self.fixed_through or 'nothing'} held fixed"

    @property
    def pipeline(self) -> Pipeline:
        """The survey with this start and these stages held fixed."""
        return Pipeline(self.level, self.fixed_through)

    @property
    def invariance(self) -> str:
        """The setting in the words of Definition 6.3.3: for each stage before the start, invariant or agnostic."""
        fixed = {stage.name for stage in self.pipeline.held_fixed}
        before = LEVELS[: LEVELS.index(self.level)] or ("population",)
        short = {"target sample": "sample"}
        return ", ".join(f"{short.get(one, one)}-{'invariant' if one in fixed else 'agnostic'}" for one in before)

    @property
    def frame_invariant(self) -> bool:
        """Whether compared datasets come from one frame, which also fixes the design weights (Table 6.2)."""
        return TABLE_6_2[self.fixed_through] == FIXED

    @property
    def protects(self) -> str:
        """The record that the guarantee speaks of, and of which dataset."""
        return self.pipeline.protects

    def specification(
        self, epsilon: Any, unit: str = "person", *, change: Change = "unit", survey: str = "the survey"
    ) -> Specification:
        """The guarantee of a pure mechanism in this setting, as its five blocks.

        With the change ``value`` the units of the dataset are held fixed as well, which is the weaker guarantee.

        >>> print(setting("target sample", "frame").specification(1).multiverse)
        Datasets are compared only if they agree on (1) the population that the frame is built from; (2) the frame \
that the sample is drawn from.
        """
        _require_change(change)
        domain = Domain(
            DATASETS[self.level].format(survey=survey), starts=f"the {self.level}", record=f"{unit}: {self.protects}"
        )
        kept = [HELD[stage.name] for stage in self.pipeline.held_fixed]
        if change == "value":
            kept.append(SAME_UNITS)
        return flavors.pure(unit, domain=domain, invariants=kept).at(epsilon, name=f"setting {self.number}")

    @property
    def recommendation(self) -> Recommendation:
        """What the authors say about this setting."""
        return _RECOMMENDATIONS[self.number]


SETTINGS = tuple(
    Setting(number, level, fixed)
    for number, (level, fixed) in enumerate(
        [(level, fixed) for at, level in enumerate(LEVELS) for fixed in ("", *LEVELS[:at])], start=1
    )
)
"""The ten settings of Table 6.1, row by row."""


def setting(level: str, fixed_through: str = "") -> Setting:
    """The setting that starts at a stage and holds all stages up to another one fixed.

    >>> setting("frame").number, setting("responding sample", "target sample").number
    (2, 10)
    """
    for one in SETTINGS:
        if (one.level, one.fixed_through) == (level, fixed_through):
            return one
    raise errors.no_such_setting(str(level), str(fixed_through) or "nothing")


def printed_amplification(setting: Setting) -> str:
    """The sources of amplification as Table 6.3 prints them.

    >>> [printed_amplification(setting(level)) for level in LEVELS]
    ['FR&S&NR', 'NR&S', 'NR', '–']
    """
    return "&".join(TABLE_6_3[setting.level]) or "–"


def _require_change(change: str) -> None:
    if change not in CHANGES:
        raise errors.survey_fact("The change of a unit", f"is one of {', '.join(CHANGES)}")


_POPULATION = Recommendation(
    "advised against",
    "Over the frame it gains only what building the frame would amplify, which can hardly be computed and is small "
    "for good frames; design weights cannot be treated as fixed.",
)
_FRAME = Recommendation(
    "advised against",
    "Design weights cannot be treated as fixed, sampling amplifies little in most complex designs, and the gain is "
    "lost if somebody may know who was sampled.",
)
_SAMPLE_FREE = Recommendation(
    "not preferred",
    "Design weights cannot be treated as fixed, and sampling gains nothing; holding the frame fixed is preferred.",
)
_RESPONDING_FREE = Recommendation(
    "not preferred",
    "No benefit is seen in starting only at the responding sample; who does should hold the frame fixed.",
)
_RECOMMENDATIONS = {
    1: _POPULATION,
    2: _FRAME,
    3: _FRAME,
    4: _SAMPLE_FREE,
    5: _SAMPLE_FREE,
    6: Recommendation(
        "recommended",
        "Design weights can be treated as fixed, which should outweigh that fewer datasets are compared. How much that "
        "weakens the guarantee is an open question.",
    ),
    7: _RESPONDING_FREE,
    8: _RESPONDING_FREE,
    9: Recommendation(
        "second choice",
        "No benefit is seen in starting only at the responding sample; if it must start there, hold the frame fixed "
        "and not the target sample.",
    ),
    10: Recommendation(
        "advised against",
        "Holding the target sample fixed may leave few values that a respondent's record could have had.",
    ),
}
