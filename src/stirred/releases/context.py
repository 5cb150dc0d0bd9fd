"""The context of a release: answers about the five safes and about contextual integrity, and templates for them.

After chapter 8 of the thesis: Table 8.1 says which of the five safes each parameter of contextual integrity belongs to,
Claim 2 that differential privacy speaks about parts of *data* and *outputs* only. An answer is the word of whoever
releases the data. It is printed as it is; nothing here checks, scores or weighs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from stirred import errors
from stirred._bounded_reading import has_controls
from stirred._sentences import read_sentences

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
        asked = [*(one.name for one in parameters()), *(one.name for one in safes())]
        return {name: answer for name in asked if (answer := getattr(self, name)) is not None}

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


def words(name: str) -> str:
    """One of the texts about the context: heading, introduction, silence, outside or source."""
    text: str = read_sentences("context")[name]
    return text


@cache
def safes() -> tuple[Safe, ...]:
    """The five safes."""
    return tuple(Safe(**fields) for fields in read_sentences("context")["safe"])


@cache
def parameters() -> tuple[Parameter, ...]:
    """The parameters of contextual integrity."""
    read = read_sentences("context")["parameter"]
    return tuple(Parameter(**{**fields, "safes": tuple(fields["safes"])}) for fields in read)


@dataclass(frozen=True)
class Mode:
    """A way of giving access to data, with answers that are typical of it."""

    title: str
    example: str
    context: Context


@cache
def modes() -> Mapping[str, Mode]:
    """The three examples of section 8.2."""
    read = read_sentences("context")["mode"]
    return {name: Mode(one["title"], one["example"], Context(**one["context"])) for name, one in read.items()}


def template(mode: str) -> str:
    """A section ``[context]`` to be pasted into a plan, with answers that are typical of a mode of access.

    >>> print(template("open-data").splitlines()[0])
    # files that anyone may have (open data, public use files); Example 8.2.1
    """
    if mode not in modes():
        raise errors.unknown_choice("mode of access", mode, list(modes()))
    chosen = modes()[mode]
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
        *(
            f"# {one.question} ({one.meaning})\n{one.name} = {_quoted(answers.get(one.name, ''))}"
            for one in parameters()
        ),
        "",
        "# The five safes",
        *(f"# {safe.question}\n{safe.name} = {_quoted(answers.get(safe.name, ''))}" for safe in safes()),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """One of our own texts as a TOML string; none has a quotation mark or a backslash."""
    return f'"{text}"'
