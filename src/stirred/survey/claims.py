"""Whether amplification may be claimed at all: facts about a survey in, yes or no and the reasons out.

The formulas assume that a random draw with known probabilities is part of the mechanism and stays secret. Sections
6.4.2 and 6.5.1 say where that fails: mechanisms that start at the sample, response that nobody controls, frames of
unknown coverage, attackers who know who was interviewed, and guarantees about records of the sample. One such reason is
enough for no. The invariant: **what is not stated is not taken for granted**; a fact left unknown counts against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred.survey.selections import Selection

Step = Literal["frame construction", "sampling", "response"]
STEPS = ("frame construction", "sampling", "response")

Start = Literal["population", "frame", "target sample", "responding sample"]
STARTS = ("population", "frame", "target sample", "responding sample")

Response = Literal["complete", "drawn by the custodian", "uncontrolled"]
RESPONSES = ("complete", "drawn by the custodian", "uncontrolled")

_INSIDE = {
    "population": ("frame construction", "sampling", "response"),
    "frame": ("sampling", "response"),
    "target sample": ("response",),
    "responding sample": (),
}
"""Table 6.3: the steps that are part of a mechanism by where it starts."""


@dataclass(frozen=True)
class SamplingFacts:
    """What decides whether amplification may be claimed.

    ``starts`` is the dataset that the mechanism takes as its input. ``selection`` is the design of the step that is
    asked about, None if it has not been stated. ``membership_secret`` says that nobody outside can learn who is in the
    sample: not from neighbours, from the respondents themselves, nor from a published file. ``protects`` says whose
    record the claim is about. ``every_output_counted``: all that is published from the sample is in the loss.
    """

    starts: Start
    selection: Selection | None = None
    response: Response = "uncontrolled"
    membership_secret: bool = False
    protects: Literal["frame record", "sample record"] = "frame record"
    every_output_counted: bool = False

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


def _against(facts: SamplingFacts, step: Step) -> list[str]:
    found = []
    if step not in _INSIDE[facts.starts]:
        found.append(f"the mechanism starts at the {facts.starts}, so that {step} is not part of it (Table 6.3)")
    if step == "frame construction":
        found.append(
            "the probabilities of being in the frame are unknown, and with coverage well above 90% there would be "
            "little to gain (section 6.4.2)"
        )
    elif facts.starts == "population":
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
