"""The context of a release: answers about the five safes and about contextual integrity, and templates for them.

After chapter 8 of the thesis: Table 8.1 says which of the five safes each parameter of contextual integrity belongs to,
Claim 2 that differential privacy speaks about parts of *data* and *outputs* only. An answer is the word of whoever
releases the data. It is printed as it is; nothing here checks, scores or weighs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from stirred import errors
from stirred._bounded_reading import has_controls

LONGEST_ANSWER = 500
"""How many characters an answer may have."""
NOT_ANSWERED = "not answered"
"""What is printed for a question without an answer."""
FLOWS = {"data to researchers": "8.1", "outputs to the public": "8.2"}
"""The two flows of information that the five safes govern, with the number each has in the thesis."""


def _one_line(answer: str | None) -> str | None:
    if answer is not None and has_controls(answer):
        raise ValueError("has line breaks or control characters")
    return answer


def _as_flows(given: object) -> object:
    if isinstance(given, str):
        return (given,) if given.strip() else ()
    return given


def _each_once(flows: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(flows)) < len(flows):
        raise ValueError("names a flow twice")
    return flows


Answer = Annotated[
    Annotated[str, Field(max_length=LONGEST_ANSWER)] | None,
    BeforeValidator(lambda given: None if isinstance(given, str) and not given.strip() else given),
    AfterValidator(_one_line),
]
"""An answer in a few words; an empty text counts as none."""
Flows = Annotated[
    tuple[Literal["data to researchers", "outputs to the public"], ...],
    BeforeValidator(_as_flows),
    AfterValidator(_each_once),
]


class Context(BaseModel):
    """The section ``[context]`` of a plan: every answer is optional, and a text of at most 500 characters.

    >>> Context(flow="outputs to the public", people="anyone", settings=" ").answers()
    {'people': 'anyone'}
    """

    # Not a `Section` of plans.py, which has this as one of its fields.
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    flow: Flows = ()
    sender: Answer = None
    recipient: Answer = None
    subject: Answer = None
    information_type: Answer = None
    transmission_principles: Answer = None
    people: Answer = None
    projects: Answer = None
    settings: Answer = None
    data: Answer = None
    outputs: Answer = None

    def answers(self) -> dict[str, str]:
        """The questions that were answered, by their names, with the answers."""
        given = {one.name: getattr(self, one.name) for one in (*PARAMETERS, *SAFES)}
        return {name: answer for name, answer in given.items() if answer is not None}

    def shown(self, name: str) -> str:
        """The answer to a question in quotation marks, or that there is none."""
        answer = getattr(self, name)
        return NOT_ANSWERED if answer is None else f'"{answer}"'

    def flow_words(self) -> str:
        """The flows of information that the answers are about, with their numbers."""
        return " and ".join(f"{flow} ({FLOWS[flow]})" for flow in self.flow) or NOT_ANSWERED


@dataclass(frozen=True)
class Safe:
    """One of the five safes: what is asked, and what a guarantee of differential privacy says about it."""

    name: str
    question: str
    spoken_of: bool
    """Whether the guarantee speaks about a part of it; it never speaks about all of it."""
    why: str

    @property
    def verdict(self) -> str:
        """Whether the guarantee speaks about it, in words."""
        said = "speaks about a part of this" if self.spoken_of else "does not speak about this"
        return f"The guarantee {said}: {self.why}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of contextual integrity, and what it is among the five safes."""

    name: str
    question: str
    meaning: str
    """As Table 8.1 prints it."""
    safes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ")


SAFES = (
    Safe(
        "people",
        "Who gets access, and how are they vetted?",
        False,
        "it holds whoever receives the release, and assesses nobody.",
    ),
    Safe(
        "projects",
        "What may the data be used for, and who decides that this use is lawful and appropriate?",
        False,
        "it does not assess what the release is used for.",
    ),
    Safe(
        "settings",
        "Where and by which means is access given, and how is that place secured?",
        False,
        "it is a property of what is released, not of the place where the release is made or used.",
    ),
    Safe(
        "data",
        "Which data do recipients see, and how detailed are they?",
        True,
        "it bounds, as its five parts say, how far what is released depends on the confidential records. Data that are "
        "seen in other ways, such as inside an enclave, are not covered.",
    ),
    Safe(
        "outputs",
        "What is made public, and how is it checked before?",
        True,
        "it bounds, as its five parts say, what the release and all that is computed from it alone can tell about the "
        "confidential records. Outputs that are made from these records in other ways are not covered.",
    ),
)
PARAMETERS = (
    Parameter("sender", "Who sends the information?", "statistical agencies/NSOs/data custodians", ()),
    Parameter("recipient", "Who receives it?", "people: researchers (8.1) and general public (8.2)", ("people",)),
    Parameter("subject", "Whom is it about?", "is a component of data (8.1)", ("data",)),
    Parameter(
        "information_type", "What is it about?", "is a component of data (8.1) and outputs (8.2)", ("data", "outputs")
    ),
    Parameter(
        "transmission_principles",
        "On which conditions does it flow?",
        "encompass projects, settings, and more",
        ("projects", "settings"),
    ),
)
HEADING = "The context: five safes and contextual integrity"
INTRODUCTION = (
    "The answers in quotation marks are those of whoever releases the data, as the plan states them. They are printed "
    "as they were given, not checked and not scored, and they change nothing in the guarantee."
)
SILENCE = (
    "The guarantee is silent about how sensitive the content is. It treats two datasets of the same form alike, be "
    "they patients of a disease or orders in a coffee shop; so it is no complete measure of how safe data and outputs "
    "are (Remark 8.4.2)."
)
OUTSIDE = (
    "The guarantee does not assess people, projects or settings (Remark 8.4.3). Together with data and outputs they "
    "decide the risk of disclosure: a small budget does not answer these questions, and good answers do not make a "
    "budget smaller."
)


SOURCE = "Numbers are those of chapter 8 of J. Bailie, Topics in Privacy, Data Privacy and Differential Privacy (2025)."


@dataclass(frozen=True)
class Mode:
    """A way of giving access to data, with answers that are typical of it."""

    title: str
    example: str
    context: Context


MODES: Mapping[str, Mode] = {
    "open-data": Mode(
        "files that anyone may have (open data, public use files)",
        "Example 8.2.1",
        Context(
            flow=("outputs to the public",),
            recipient="the general public, researchers among them",
            transmission_principles="published for everybody; what is done with the files is not supervised",
            people="not vetted: anyone may have the files",
            projects="not reviewed: use cannot be supervised once the files are public",
            settings="not controlled: files are used wherever their recipients wish",
            data="recipients see the published files only, which are protected before publication",
            outputs="the published files are the outputs, and all scrutiny is placed on them",
        ),
    ),
    "data-enclave": Mode(
        "authorised researchers in a secure environment (data enclave)",
        "Example 8.2.2",
        Context(
            flow=("data to researchers", "outputs to the public"),
            recipient="authorised researchers inside the enclave; the public, of what leaves it",
            transmission_principles="access for approved research only, under an agreement, inside the enclave",
            people="vetted: researchers with a scientific record who commit themselves to confidentiality",
            projects="reviewed: scientific purpose, ethics and legal basis of each project",
            settings="a research data centre or a secure remote server",
            data="detailed confidential records, seen inside the enclave only",
            outputs="checked before they leave the enclave",
        ),
    ),
    "synthetic-data": Mode(
        "synthetic data for researchers, whose results are validated on the confidential data",
        "Example 8.2.3",
        Context(
            flow=("data to researchers", "outputs to the public"),
            recipient="researchers with permission, of the synthetic data; the public, of validated results",
            transmission_principles="researchers send programs; the custodian runs them on the confidential data",
            people="vetted to a moderate degree: researchers whose proposed analysis was accepted",
            projects="reviewed: whether the analysis is appropriate and feasible",
            settings="a server for the synthetic data; confidential data stay with the custodian",
            data="two parts: synthetic data, which researchers see, and confidential data, which they do not",
            outputs="validated results pass a strict disclosure review before they are given out",
        ),
    ),
}
"""The three examples of section 8.2."""


def template(mode: str) -> str:
    """A section ``[context]`` to be pasted into a plan, with answers that are typical of a mode of access.

    >>> print(template("open-data").splitlines()[0])
    # files that anyone may have (open data, public use files); Example 8.2.1
    """
    if mode not in MODES:
        raise errors.unknown_choice("mode of access", mode, list(MODES))
    chosen = MODES[mode]
    answers = chosen.context.answers()
    flows = ", ".join(_quoted(flow) for flow in chosen.context.flow)
    lines = [
        f"# {chosen.title}; {chosen.example}",
        '# Replace every answer by what is true of this release; "" means: not answered. Answers are part of the plan,',
        "# so they are published, in certificate.json and README.txt. They are printed, never scored.",
        "[context]",
        f"# Which way does information flow? {' or '.join(_quoted(flow) for flow in FLOWS)}, or a list of both.",
        f"flow = [{flows}]",
        "",
        "# Contextual integrity",
        *(f"# {one.question} ({one.meaning})\n{one.name} = {_quoted(answers.get(one.name, ''))}" for one in PARAMETERS),
        "",
        "# The five safes",
        *(f"# {safe.question}\n{safe.name} = {_quoted(answers.get(safe.name, ''))}" for safe in SAFES),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """One of our own texts as a TOML string; none has a quotation mark or a backslash."""
    return f'"{text}"'
