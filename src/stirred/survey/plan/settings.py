"""The survey as a pipeline of stages, and the ten settings: where a mechanism starts, and what it holds fixed.

Each stage is made from the ones before it (Figure 7.1). A guarantee is about the records of the stage at which the
mechanism starts and about no other stage (section 7.2.2): what is done before is not covered, what is done after is
part of the mechanism and must be written down as a program. The order of ``STAGES`` is the order of the survey.

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
from stirred._display import brief
from stirred._sentences import read_sentences
from stirred.spec import Domain, Invariant, Specification, flavors


@brief
@dataclass(frozen=True)
class Stage:
    """One stage of a survey: the data there, and the step that makes them from the stage before."""

    name: str
    data: str
    """What the data of this stage are."""
    step: str
    """The step that makes them; empty for the first stage."""
    level: bool
    """Whether one of the ten settings starts here (Definition 6.3.1)."""
    protects: str
    """The record that a guarantee speaks of if the mechanism starts here."""


_TEXTS = read_sentences("survey_settings")

STAGES = tuple(Stage(**fields) for fields in _TEXTS["stage"])
"""The stages of a survey, first to last (section 6.3 and Figure 7.1)."""

BY_NAME = {stage.name: stage for stage in STAGES}
LEVELS = tuple(stage.name for stage in STAGES if stage.level)
"""The four stages at which a setting of Table 6.1 starts."""


@dataclass(frozen=True)
class Pipeline:
    """A survey with the stage at which the mechanism starts and the last stage that is held fixed.

    A stage that is held fixed fixes all stages before it. The stage where the mechanism starts cannot be held fixed:
    nothing would be protected.

    >>> print(Pipeline("target sample", "frame"))
    held fixed:  population, frame
    protected:   target sample
    mechanism:   nonresponse, then coding, editing and imputing, then weighting, then estimating, then adding noise
    """

    starts: str
    fixed_through: str = ""
    """The last stage that is held fixed; empty if none is."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in STAGES]
        for name in filter(None, (self.starts, self.fixed_through)):
            if name not in names:
                raise errors.survey_fact("A stage of a survey", f"is one of {', '.join(names)}")
        if self.starts in ("estimate", "noise"):
            raise errors.survey_fact("A mechanism", "starts at data of units, not at the estimate")
        if self.fixed_through and names.index(self.fixed_through) >= names.index(self.starts):
            raise errors.survey_fact("A stage that is held fixed", "lies before the one where the mechanism starts")

    @property
    def held_fixed(self) -> tuple[Stage, ...]:
        """The stages on which all compared datasets agree."""
        return _until(self.fixed_through, included=True) if self.fixed_through else ()

    @property
    def free(self) -> tuple[Stage, ...]:
        """The stages before the start that may differ between compared datasets, and are not protected either."""
        return _until(self.starts, included=False)[len(self.held_fixed) :]

    @property
    def steps(self) -> tuple[Stage, ...]:
        """The stages that the mechanism makes; each step must be a program that one can write down."""
        return STAGES[len(_until(self.starts, included=True)) :]

    @property
    def protects(self) -> str:
        """The record that the guarantee speaks of."""
        return BY_NAME[self.starts].protects

    @property
    def cautions(self) -> tuple[str, ...]:
        """What follows from starting here (the five complexities of section 7.2.2)."""
        made = {stage.name for stage in self.steps}
        said = [f"The guarantee is about the {self.starts} and about no other stage."]
        if "target sample" in made:
            said += [
                "Losses of several releases do not simply add up: releases of one sample, of rotating samples or of "
                "samples with controlled overlap share randomness.",
                "What sampling gains is lost against anyone who knows that a unit is in the sample, or who asks about "
                "any record of it; and a design chosen from the frame may not be published as it is.",
            ]
        by_hand = [stage.step for stage in self.steps if stage.name in ("frame", "edited and imputed data")]
        if by_hand:
            said.append(f"Steps that people do by judgement must become programs: {', '.join(by_hand)}.")
        if self.starts in ("edited and imputed data", "weights"):
            said.append(
                "A respondent whose answers were copied into other records (hot deck) has less protection than one "
                "record has."
            )
        return tuple(said)

    def __str__(self) -> str:
        fixed = ", ".join(stage.name for stage in self.held_fixed) or "nothing"
        steps = ", then ".join(stage.step for stage in self.steps)
        free = "".join(f"\nnot covered: {stage.name} (may differ)" for stage in self.free)
        return f"held fixed:  {fixed}{free}\nprotected:   {self.starts}\nmechanism:   {steps}"


def _until(name: str, included: bool) -> tuple[Stage, ...]:
    at = [stage.name for stage in STAGES].index(name)
    return STAGES[: at + included]


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
    """Whether the authors of chapter 6 recommend a setting, and why."""

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
        require_change(change)
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
    held = fixed_through or "nothing"
    raise errors.SurveyError(
        "survey-setting",
        f"None of the ten settings starts at the {level} and holds the {held} fixed.",
        "A mechanism starts at the population, frame, target sample or responding sample, and holds fixed a stage "
        "before that one, or nothing.",
    )


def printed_amplification(setting: Setting) -> str:
    """The sources of amplification as Table 6.3 prints them.

    >>> [printed_amplification(setting(level)) for level in LEVELS]
    ['FR&S&NR', 'NR&S', 'NR', '–']
    """
    return "&".join(TABLE_6_3[setting.level]) or "–"


def require_change(change: str) -> None:
    """Raise unless a change of a unit is one of the two readings."""
    if change not in CHANGES:
        raise errors.survey_fact("The change of a unit", f"is one of {', '.join(CHANGES)}")


_RECOMMENDATIONS = {
    number: Recommendation(said["verdict"], said["reason"])
    for said in _TEXTS["recommendation"]
    for number in said["settings"]
}
