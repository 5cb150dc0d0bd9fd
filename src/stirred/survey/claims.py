"""Whether amplification may be claimed at all: facts about a survey in, yes or no and the reasons out.

The formulas assume that a random draw with known probabilities is part of the mechanism and stays secret. Sections
6.4.2 and 6.5.1 say where that fails: mechanisms that start at the sample, response that nobody controls, frames of
unknown coverage, attackers who know who was interviewed, and guarantees about records of the sample. One such reason is
enough for no. The invariant: **what is not stated is not taken for granted**; a fact left unknown counts against.

:func:`may_claim` is where this is decided. :func:`claimable` asks it for a setting whose survey has every fact in its
favour: what is not claimable then is claimable for no survey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred.survey.selections import Selection, simple_random
from stirred.survey.settings import TABLE_6_3, Setting

Step = Literal["frame construction", "sampling", "response"]
STEPS = ("frame construction", "sampling", "response")

Start = Literal["population", "frame", "target sample", "responding sample"]
STARTS = ("population", "frame", "target sample", "responding sample")

Response = Literal["complete", "drawn by the custodian", "uncontrolled"]
RESPONSES = ("complete", "drawn by the custodian", "uncontrolled")

_PRINTED: dict[str, Step] = {"FR": "frame construction", "S": "sampling", "NR": "response"}
_INSIDE = {start: frozenset(_PRINTED[source] for source in sources) for start, sources in TABLE_6_3.items()}
"""Table 6.3: the steps that are part of a mechanism by where it starts."""


@dataclass(frozen=True)
class SamplingFacts:
    """What decides whether amplification may be claimed.

    ``starts`` is the dataset that the mechanism takes as its input. ``selection`` is the design of the step that is
    asked about, None if it has not been stated. ``membership_secret`` says that nobody outside can learn who is in the
    sample: not from neighbours, from the respondents themselves, nor from a published file. ``protects`` says whose
    record the claim is about. ``every_output_counted``: all that is published from the sample is in the loss.
    ``population_changes_one``, for mechanisms that start at the population: whatever happens while the frame is built,
    changing one record of the population changes at most one record of the frame.
    """

    starts: Start
    selection: Selection | None = None
    response: Response = "uncontrolled"
    membership_secret: bool = False
    protects: Literal["frame record", "sample record"] = "frame record"
    every_output_counted: bool = False
    population_changes_one: bool = False

    def __post_init__(self) -> None:
        for what, found, known in (
            ("start", self.starts, STARTS),
            ("kind of response", self.response, RESPONSES),
            ("record", self.protects, ("frame record", "sample record")),
        ):
            if found not in known:
                raise errors.unknown_choice(what, found, known)


@dataclass(frozen=True)
class Claim:
    """Whether amplification by a step may be claimed; ``reasons`` against it, or what it rests on."""

    step: Step
    claimable: bool
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.claimable

    def __str__(self) -> str:
        said = "may be claimed" if self.claimable else "may not be claimed"
        joined = "; ".join(self.reasons)
        return f"Amplification by {self.step} {said}: {joined}."


@says_what_it_takes
def may_claim(facts: SamplingFacts, step: Step = "sampling") -> Claim:
    """Whether amplification by a step of the survey may be claimed, with every reason against it.

    >>> facts = SamplingFacts("responding sample", membership_secret=True, every_output_counted=True)
    >>> print(may_claim(facts, "response"))
    Amplification by response may not be claimed: the mechanism starts at the responding sample, so that response is \
not part of it (Table 6.3); response probabilities are unknown and not under control, and an error in modelling them \
makes the claim false (section 6.4.2).
    """
    if step not in STEPS:
        raise errors.unknown_choice("step", step, STEPS)
    against = tuple(_against(facts, step))
    if against:
        return Claim(step, False, against)
    assert facts.selection is not None
    return Claim(step, True, (str(facts.selection), *facts.selection.conditions))


def claimable(setting: Setting) -> tuple[bool, str]:
    """Whether a gain from chance inside the mechanism may be claimed in this setting at all, and why (Table 6.3).

    Only sampling is a step whose chances are known, so only it is asked about, with every fact in its favour. Whether
    a given survey and its design gain anything is for :func:`may_claim` to say.
    """
    inside = _INSIDE[setting.level]
    if may_claim(_favourable(setting.level)):
        others = "nonresponse" + (" and building the frame" if "frame construction" in inside else "")
        return True, (
            f"From sampling, if the design amplifies; never from {others}, whose chances are not known. Lost against "
            "anyone who knows that a unit is in the sample, or who asks about any sampled record (section 6.5.1)."
        )
    if inside:
        return False, (
            "Sampling is over before the mechanism starts. Nonresponse could amplify in theory, but its chances are "
            "not known, and an error in their model would make the claim false (section 6.4.2)."
        )
    return False, "No step of the mechanism selects records: sampling and nonresponse are over before it starts."


def _favourable(start: str) -> SamplingFacts:
    """A survey with everything in favour of a claim but where its mechanism starts."""
    return SamplingFacts(
        start,  # type: ignore[arg-type]
        simple_random(1, 2),
        response="complete",
        membership_secret=True,
        every_output_counted=True,
        population_changes_one=True,
    )


def _against(facts: SamplingFacts, step: Step) -> list[str]:
    found = []
    if step not in _INSIDE[facts.starts]:
        found.append(f"the mechanism starts at the {facts.starts}, so that {step} is not part of it (Table 6.3)")
    if step == "frame construction":
        found.append(
            "the probabilities of being in the frame are unknown, and with coverage well above 90% there would be "
            "little to gain (section 6.4.2)"
        )
    elif facts.starts == "population" and not facts.population_changes_one:
        found.append(
            "the mechanism starts at the population, so that making the frame is part of it, and nobody knows how many "
            "records of the frame change with one of the population (section 6.6 advises against this level)"
        )
    if facts.response == "uncontrolled" and step != "frame construction":
        found.append(
            "response probabilities are unknown and not under control, and an error in modelling them makes the claim "
            "false (section 6.4.2)"
            if step == "response"
            else "who responds is not under control: response is then part of the mechanism after sampling, and nobody "
            "knows its loss on the sample (section 6.4.2)"
        )
    if step == "response" and facts.response == "complete":
        found.append("everyone responds, so that there is nothing to amplify by")
    if step != "frame construction" and step in _INSIDE[facts.starts]:
        if facts.selection is None:
            found.append("the design, with its probabilities, has not been stated")
        elif facts.selection.reason:
            found.append(facts.selection.reason)
    if not facts.membership_secret:
        found.append(
            "an attacker may know that someone is in the sample (the nosy neighbour), and for her the loss is that on "
            "the sample (section 6.5.1)"
        )
    if facts.protects == "sample record":
        found.append(
            "the claim is about a record of the sample (the journalist), and for it the loss is that on the sample "
            "(section 6.5.1)"
        )
    if not facts.every_output_counted:
        found.append(
            "not everything that is published from this sample is counted: outputs of one sample have to be composed "
            "before they are amplified (section 6.5.2)"
        )
    return found
