"""Progress on anything that takes more than two seconds, on a terminal only.

Stages are named by the code that does the work; nothing about them is kept or written to a release.
"""

from __future__ import annotations

import threading
from typing import Protocol


class Progress(Protocol):
    """Told which stage begins."""

    def stage(self, words: str) -> None: ...


class Silent:
    """For library use."""

    def stage(self, words: str) -> None:
        return None


class OnTerminal:
    """A spinner with the current stage on standard error, shown only once two seconds have passed."""

    def __init__(self, delay: float = 2.0) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status = self._console.status("starting")
        self._shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True

    def _show(self) -> None:
        with self._lock:
            self._status.start()
            self._shown = True

    def stage(self, words: str) -> None:
        self._status.update(f"{words} ...")

    def __enter__(self) -> OnTerminal:
        if self._console.is_terminal:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._shown:
                self._status.stop()
