"""Shows the progress of what takes long: a spinner on a terminal, and plain lines now and then in a log.

Where the code that works knows which share of the work is done, the time left is estimated from the time that this
share took, and shown in both; it is the time left of the work that the shares are of. Stages are named by the code
that does the work; nothing about them is kept or written to a release.

A command shows its progress with :class:`OnTerminal`; whatever it calls then says with :func:`stage` where it is, and
need not be handed anything. In Python nothing is shown, unless a caller passes a :class:`Progress` of its own to a
public function, which is then the current one (:func:`shown_by`) for all that it calls.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Protocol

_TELLING = 0.05
"""The least share of the work from which the remaining time is estimated."""


EVERY = 20.0
"""Seconds between two lines of a log."""

COMPILING = "compiling (first run on this machine, up to half a minute in all) ..."


class Progress(Protocol):
    """Receives the name of each stage when it begins and, where known, the share of the work that is done."""

    def stage(self, words: str, done: float | None = None) -> None:
        """A stage begins; ``done`` is the share of the work that is done, where it is known."""


class Silent:
    """Shows nothing; the default in the library."""

    def stage(self, words: str, done: float | None = None) -> None:
        """Do nothing."""


_current: ContextVar[Progress] = ContextVar("progress", default=Silent())  # noqa: B039 # it has no state


def current() -> Progress:
    """What shows the progress of the command that this thread runs; outside of one, and in other threads, nothing."""
    return _current.get()


@contextmanager
def shown_by(progress: Progress | None) -> Iterator[None]:
    """Inside the block, stages of this thread's work are shown by ``progress``; by None where they were before."""
    token = _current.set(progress or current())
    try:
        yield
    finally:
        _current.reset(token)


def stage(words: str, done: float | None = None) -> None:
    """Tell the command that runs, if one does, which stage begins, and the share of its work that is done."""
    current().stage(words, done)


def telling(words: str) -> Callable[[float], None]:
    """Tells the share of a stage that is done; also from other threads, which have nothing that shows it."""
    shown = current()
    return lambda done: shown.stage(words, done)


class OnTerminal:
    """The current stage on standard error.

    On a terminal it is a spinner, shown once ``delay`` seconds have passed. Elsewhere, as in a log, it is one plain
    line every ``every`` seconds, with the time since the start; a run that ends before that writes none.
    """

    def __init__(self, delay: float = 2.0, every: float = EVERY) -> None:
        from rich.console import Console
        from rich.text import Text

        self._plain = Text  # as it is: names of levels may look like markup
        self._console = Console(stderr=True)
        self._status = self._console.status("starting")
        self._shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._every, self._ended = every, threading.Event()
        self._started = time.monotonic()
        self._began: tuple[float, float] | None = None
        self._ends: float | None = None
        self._done: float | None = None
        self._line = self._words = "starting"
        self._told = ExitStack()

    def _show(self) -> None:
        with self._lock:
            self._status.start()
            self._shown = True

    def stage(self, words: str, done: float | None = None) -> None:
        """Show a stage; ``done`` is the share of the work that is done, 0 at its start."""
        now = time.monotonic()
        if done is None:
            self._began = None
        elif self._began is None or done <= 0 or done < self._began[1]:
            self._began = now, done  # the time before the first share that is told says nothing about the work
        self._words, self._done, self._ends = words, done, None
        self._line = f"{words} ..."
        if done is not None and self._began is not None and done - self._began[1] >= _TELLING:
            left = (now - self._began[0]) * (1 - done) / (done - self._began[1])
            self._ends = now + left
            self._line += f" {time_left(left)}"
        self._status.update(self._plain(self._line))

    def _compiling(self, begins: bool) -> None:
        self._status.update(self._plain(COMPILING if begins else self._line))

    def line(self) -> str:
        """The line of a log: the time since the start, the stage, the share of its work that is done, the time left.

        >>> shown = OnTerminal()
        >>> shown.stage("measuring persons", 0.251)
        >>> shown.line()
        '0:00:00 measuring persons, 25% done'
        """
        done = "" if self._done is None else f", {self._done:.0%} done"
        now = time.monotonic()
        left = "" if self._ends is None or self._ends <= now else f", {time_left(self._ends - now)}"
        return f"{timedelta(seconds=int(now - self._started))} {self._words}{done}{left}"

    def _log(self) -> None:
        while not self._ended.wait(self._every):
            with suppress(OSError, ValueError):  # standard error may be closed by now
                print(self.line(), file=sys.stderr, flush=True)

    def __enter__(self) -> OnTerminal:
        self._started = time.monotonic()
        self._told.enter_context(shown_by(self))
        if self._console.is_terminal:
            from stirred._compiled import told_of_compiling

            self._timer.start()
            self._told.enter_context(told_of_compiling(self._compiling))
        else:
            threading.Thread(target=self._log, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._told.close()
        self._timer.cancel()
        self._ended.set()
        with self._lock:
            if self._shown:
                self._status.stop()


def time_left(seconds: float) -> str:
    """The remaining time in words.

    >>> time_left(30), time_left(600), time_left(10_000)
    ('about 30 s left', 'about 10 min left', 'about 2.8 h left')
    """
    if seconds < 100:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 6_000 else f"about {seconds / 3600:.1f} h left"
