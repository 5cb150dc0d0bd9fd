"""The survey as a pipeline of stages, where the mechanism starts in it, and which stages it holds fixed.

Each stage is made from the ones before it (Figure 7.1). A guarantee is about the records of the stage at which the
mechanism starts and about no other stage (section 7.2.2): what is done before is not covered, what is done after is
part of the mechanism and must be written down as a program. The order of ``STAGES`` is the order of the survey.
"""

from __future__ import annotations

from dataclasses import dataclass

from stirred import errors
from stirred._shown import brief


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


STAGES = (
    Stage(
        "population",
        "all data that the frame is built from",
        "",
        True,
        "everything that is or could be asked of one unit of the population, sampled or not",
    ),
    Stage(
        "frame",
        "the list that the sample is drawn from",
        "building the frame",
        True,
        "one unit's record in the frame, together with the answers that it would give, sampled or not",
    ),
    Stage(
        "target sample",
        "the units that were selected",
        "drawing the sample",
        True,
        "one selected unit's record, whether it answers or not",
    ),
    Stage(
        "responding sample",
        "the answers of the selected units that answered",
        "nonresponse",
        True,
        "one respondent's record",
    ),
    Stage(
        "edited and imputed data",
        "the answers after coding, editing and imputation",
        "coding, editing and imputing",
        False,
        "one record after editing and imputation, which may hold copies of other respondents' answers",
    ),
    Stage("weights", "the data with a weight for each record", "weighting", False, "one record with its weight"),
    Stage("estimate", "the estimate without noise", "estimating", False, "nothing: one number is left"),
    Stage("noise", "the estimate with noise, which is published", "adding noise", False, "nothing"),
)
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
