"""The base classes of all errors, and how a message lists names."""

from __future__ import annotations

from collections.abc import Iterable


class StirredError(Exception):
    """An error meant for users: what is wrong (``problem``), then what to do (``remedy``).

    ``kind`` is a stable name, such as ``"missing-column"``, by which tests and callers tell errors apart. The command
    line prints the message and exits with code 2.

    >>> print(StirredError("rate-missing", "The plan has no rate.", "Add one."))
    The plan has no rate. Add one.
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
    """The plan cannot be carried out, whatever the data."""


class DataError(StirredError):
    """The data do not fit the plan, or cannot be read."""


class OutputError(StirredError):
    """A release cannot be written to the given path, or a folder is not a complete release."""


class StoppedByCheck(StirredError):
    """A stop: something in the data makes the release unwise, and the plan does not allow it by name."""


def listed(names: Iterable[str], last: str = "and") -> str:
    """Names in quotes, for a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ("'a', 'b' and 'c'", "'a' or 'b'")
    """
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
