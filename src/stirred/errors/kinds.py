"""All kinds of error as classes, and how a message lists names."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

_MOST_PROBLEM, _MOST_REMEDY = 3_000, 1_000
_MOST_LINES, _MOST_LINE = 300, 300


def one_line(text: str, most: int) -> str:
    r"""A message on one line, cut: names in it may come from a file, and must not draw on a terminal.

    >>> one_line("no column 'a\nholds'", 300), one_line("x" * 10, 5)
    ("no column 'a\\nholds'", 'xxxx…')
    """
    shown = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "backslashreplace").decode("ascii")
        for sign in text[: most + 1]
    )
    return shown if len(shown) <= most else shown[: most - 1] + "…"


class StirredError(Exception):
    """An error meant for users: what is wrong (``problem``), then what to do (``remedy``).

    Both are one line each, without control characters, and cut where they are very long. ``lines`` are lines to be
    pasted into a plan, below the message.

    ``kind`` is a stable name, such as ``"missing-column"``, by which tests and callers tell errors apart. The command
    line prints the message and exits with code 2.

    >>> print(StirredError("rate-missing", "The plan has no rate.", "Add one."))
    The plan has no rate. Add one.
    """

    def __init__(self, kind: str, problem: str, remedy: str, lines: Iterable[str] = ()) -> None:
        problem, remedy = one_line(problem, _MOST_PROBLEM), one_line(remedy, _MOST_REMEDY)
        self.lines = tuple(one_line(line, _MOST_LINE) for line in list(lines)[:_MOST_LINES])
        super().__init__("\n  ".join([f"{problem} {remedy}", *self.lines]))
        self.kind = kind
        self.problem = problem
        self.remedy = remedy

    # What was being handled may quote cells; "from None" hides it from tracebacks only, this from everyone.
    __context__ = property(lambda self: None, lambda self, value: None)

    def __reduce__(self) -> tuple[type[StirredError], tuple[str, str, str, tuple[str, ...]]]:
        return type(self), (self.kind, self.problem, self.remedy, self.lines)


class PlanError(StirredError):
    """The plan cannot be carried out, whatever the data."""


class DataError(StirredError):
    """The data do not fit the plan, or cannot be read."""


class OutputError(StirredError):
    """A release cannot be written to the given path, or a folder is not a complete release."""


class StoppedByCheck(StirredError):
    """A stop: something in the data makes the release unwise, and the plan does not allow it by name."""


class ArgumentError(StirredError):
    """An argument has a type that the function does not take."""


class LedgerError(StirredError):
    """A ledger cannot be read or written, or does not record a release."""


class LimitsError(StirredError):
    """A bound on what can be learnt was asked of measures or datasets that it is not defined for."""


class LossError(StirredError):
    """A divergence, curve or conversion was asked of numbers that it is not defined for."""


class NoiseError(StirredError):
    """The parameters of the noise define no distribution, or one that the samplers cannot draw exactly."""


class SpecificationError(StirredError):
    """Something is not a valid specification, or a question about one has no known answer."""


class StudyError(StirredError):
    """A study, or a simulated swapper in it, cannot be run as it is written."""


class SurveyError(StirredError):
    """A question about a survey that has no answer, or whose answer is not known."""


FEW = 3
"""Names of units that a message lists."""


def few(names: Iterable[str], many: int) -> str:
    """The first names of many, for a sentence; names of places are public.

    >>> few(["15001", "15003"], 2), few(["15001", "15003", "15005", "15007"], 9)
    ('15001, 15003', '15001, 15003, 15005 and 6 more')
    """
    shown = [one_line(name, 60) for name in islice(names, FEW)]
    return ", ".join(shown) + (f" and {many - len(shown):,} more" if many > len(shown) else "")


def listed(names: Iterable[str], last: str = "and") -> str:
    """Names in quotes, for a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ("'a', 'b' and 'c'", "'a' or 'b'")
    """
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def listed_plainly(items: Iterable[str]) -> str:
    """Texts joined by commas and "and".

    >>> listed_plainly(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = list(items)
    return f"{', '.join(first)} and {last}" if first else last


def capital(words: str) -> str:
    """The words with a capital letter at their beginning.

    >>> capital("two rows are missing")
    'Two rows are missing'
    """
    return words[:1].upper() + words[1:]


def place_of(fault: BaseException) -> tuple[str, int | None]:
    """The innermost line of this package that ``fault`` came through: its path inside the package, and its number."""
    package = Path(__file__).parents[1]
    frames = traceback.extract_tb(fault.__traceback__)
    where = [frame for frame in frames if Path(frame.filename).is_relative_to(package)][-1]
    return Path(where.filename).relative_to(package).as_posix(), where.lineno
