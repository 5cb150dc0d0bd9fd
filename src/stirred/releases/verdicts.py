"""What ``verify`` says: one verdict for each thing that was verified, and one answer for all of them.

A verdict says what was checked, and no more. What was not compared (another version wrote it), or could not be checked
(the machine did not allow it), is neither held nor contradicted: ``holds`` is false for it, so that
``all(verdict.holds for verdict in verdicts)`` is true only of a folder that was compared as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from stirred._bounded_reading import plain

_SAID = 2_000
"""Characters of a verdict that are printed: some are words of the folder."""


class State(StrEnum):
    """What is known about one thing, and about all of them together."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    NOT_CHECKED = "could not be checked"
    NOT_COMPARED = "not compared"
    WITHDRAWN = "withdrawn"
    """By its publisher, after it was released: whatever else holds, it should no longer be used."""
    NOTE = "note"
    """A remark, about which there is nothing to check."""


_MARKS = {
    State.HOLDS: "holds",
    State.CONTRADICTED: "FAILS",
    State.NOT_CHECKED: "open ",
    State.NOT_COMPARED: "open ",
    State.WITHDRAWN: "WITHDRAWN",
    State.NOTE: "note ",
}


@dataclass(frozen=True)
class Verdict:
    """One thing that was verified, whether it holds, and if not, whether it is contradicted or only not known.

    >>> print(Verdict(False, "microdata has 60 rows"))
    FAILS  not so: microdata has 60 rows
    """

    holds: bool
    words: str
    state: State = State.HOLDS

    def __post_init__(self) -> None:
        if not self.holds and self.state is State.HOLDS:
            object.__setattr__(self, "state", State.CONTRADICTED)

    def __str__(self) -> str:
        return f"{_MARKS[self.state]}  {self._denied()}{plain(self.words, _SAID)}"

    def _denied(self) -> str:
        """Words that turn what should hold into a fault, where it does not and the words do not say so already."""
        return "not so: " if self.state is State.CONTRADICTED and "(not so: " not in self.words else ""


class Fault(Verdict):
    """A verdict that fails and whose words are the fault itself, not what should hold."""

    def _denied(self) -> str:
        return ""


def noted(words: str) -> Verdict:
    """A remark for the reader; there is nothing to check about it."""
    return Verdict(True, words, State.NOTE)


def not_compared(what: str, why: str) -> Verdict:
    """Something in the folder that nothing was compared with; everything else may still be contradicted.

    >>> print(not_compared("README.txt", "version 0.5.0 wrote it"))
    open   README.txt: not compared, since version 0.5.0 wrote it
    """
    return Verdict(False, f"{what}: {State.NOT_COMPARED}, since {why}", State.NOT_COMPARED)


LAST_DIGITS = "some differ from those that are computed here, as the arithmetic of another machine may"
"""Why numbers that were computed again, and differ in their last digits only, are neither held nor contradicted."""


def not_checked(what: str, why: str) -> Verdict:
    """Something that could not be checked here, for a reason that is not the folder's."""
    return Verdict(False, f"{what}: {State.NOT_CHECKED}, since {why}", State.NOT_CHECKED)


def contradicted(verdicts: Iterable[Verdict]) -> bool:
    """Whether anything that was verified is contradicted."""
    return any(verdict.state is State.CONTRADICTED for verdict in verdicts)


class Verdicts(list[Verdict]):
    """All that was verified; printing it gives the answer, then a line for each.

    >>> print(Verdicts([Verdict(True, "the files are those of the manifest")]))
    Everything was compared, and nothing contradicts. That data are right or a draw random, no folder shows.
    holds  the files are those of the manifest
    """

    @property
    def state(self) -> State:
        """The answer: contradicted if anything is, else withdrawn if it is, else what is least known."""
        found = {verdict.state for verdict in self}
        order = (State.CONTRADICTED, State.WITHDRAWN, State.NOT_CHECKED, State.NOT_COMPARED)
        return next((state for state in order if state in found), State.HOLDS)

    @property
    def answer(self) -> str:
        """The answer in one line, with what is contradicted, could not be checked or was not compared."""
        if self.state is State.CONTRADICTED:
            failing = self._in(State.CONTRADICTED)
            return f"Contradicted: {len(failing)} of the lines below, those with FAILS."
        if self.state is State.WITHDRAWN:
            rest = Verdicts(verdict for verdict in self if verdict.state is not State.WITHDRAWN)
            return f"Withdrawn, as the line with {_MARKS[State.WITHDRAWN]} says. Apart from that: {rest.answer}"
        if self.state is State.NOT_CHECKED:
            return f"Could not be checked, and nothing is known to contradict: {self._listed(State.NOT_CHECKED)}."
        if self.state is State.NOT_COMPARED:
            return f"Nothing contradicts, but not everything was compared. Not compared: {self._listed()}."
        return (
            "Everything was compared, and nothing contradicts. That data are right or a draw random, no folder shows."
        )

    def __str__(self) -> str:
        return "\n".join([self.answer, *map(str, self)])

    def _in(self, state: State) -> list[Verdict]:
        return [verdict for verdict in self if verdict.state is state]

    def _listed(self, state: State = State.NOT_COMPARED) -> str:
        """What is in a state: the words of each verdict before its state."""
        names = [verdict.words.split(f": {state}, since ")[0] for verdict in self._in(state)]
        return plain("; ".join(names), _SAID)
