"""Shows the progress of anything that takes more than two seconds, on a terminal only.

Stages are named by the code that does the work; nothing about them is kept or written to a release.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Protocol

_TELLING = 0.05
"""The least share of the work from which the remaining time is estimated."""


COMPILING = "compiling (first run on this machine, up to half a minute in all) ..."


class Progress(Protocol):
    """Receives the name of each stage when it begins and, where known, the share of the work that is done."""

    def stage(self, words: str, done: float | None = None) -> None:
        """A stage begins; ``done`` is the share of the work that is done, where it is known."""
        ...


class Silent:
    """Shows nothing; the default in the library."""

    def stage(self, words: str, done: float | None = None) -> None:
        """Do nothing."""


class OnTerminal:
    """A spinner with the current stage on standard error, shown only once two seconds have passed."""

    def __init__(self, delay: float = 2.0) -> None:
        from rich.console import Console
        from rich.text import Text

        self._plain = Text  # as it is: names of levels may look like markup
        self._console = Console(stderr=True)
        self._status = self._console.status("starting")
        self._shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._began: float | None = None
        self._line = "starting"
        self._told = ExitStack()

    def _show(self) -> None:
        with self._lock:
            self._status.start()
            self._shown = True

    def stage(self, words: str, done: float | None = None) -> None:
        """Show a stage; ``done`` is the share of the work that is done, 0 at its start."""
        now = time.monotonic()
        if done is None or done <= 0 or self._began is None:
            self._began = now if done is not None else None
        left = f" {time_left(now - self._began, done)}" if done and self._began and done >= _TELLING else ""
        self._line = f"{words} ...{left}"
        self._status.update(self._plain(self._line))

    def _compiling(self, begins: bool) -> None:
        self._status.update(self._plain(COMPILING if begins else self._line))

    def __enter__(self) -> OnTerminal:
        if self._console.is_terminal:
            from stirred._compiled import told_of_compiling

            self._timer.start()
            self._told.enter_context(told_of_compiling(self._compiling))
        return self

    def __exit__(self, *_: object) -> None:
        self._told.close()
        self._timer.cancel()
        with self._lock:
            if self._shown:
                self._status.stop()


def time_left(seconds: float, done: float) -> str:
    """The remaining time in words.

    >>> time_left(10, 0.25), time_left(600, 0.5)
    ('about 30 s left', 'about 10 min left')
    """
    left = seconds * (1 - done) / done
    return f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left"
