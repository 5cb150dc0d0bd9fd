"""The kinds of refusal, and how a list of names is said."""

from __future__ import annotations

from collections.abc import Iterable


class StirredError(Exception):
    """A refusal: what is wrong, and what to do about it. The command line exits with code 2.

    ``kind`` is a stable slug (``"missing-column"``) by which tests and callers tell refusals apart.

    >>> print(StirredError("some-kind", "The plan is blue.", "Paint it."))
    The plan is blue. Paint it.
    """

    def __init__(self, kind: str, problem: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.kind = kind
        self.problem = problem
        self.remedy = remedy

    # What was being handled may quote cells; "from None" hides it from tracebacks only, this from everyone.
    __context__ = property(lambda self: None, lambda self, value: None)

    def __reduce__(self) -> tuple[type[StirredError], tuple[str, str, str]]:
        return type(self), (self.kind, self.problem, self.remedy)


class PlanError(StirredError):
    """The plan itself cannot be carried out, whatever the data."""


class DataError(StirredError):
    """The data do not fit the plan, or cannot be read."""


class OutputError(StirredError):
    """The release cannot be written where it was asked for, or a release folder is not what it claims."""


class StoppedByCheck(StirredError):
    """Something in the data makes the planned release unwise; it goes ahead only when allowed by name."""


def listed(names: Iterable[str], last: str = "and") -> str:
    """Names in quotes, for a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ("'a', 'b' and 'c'", "'a' or 'b'")
    """
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
