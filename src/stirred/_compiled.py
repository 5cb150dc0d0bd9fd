"""One decorator for every compiled kernel: numba, cached on disk, without the interpreter lock.

A kernel is a short function over arrays. Types are fixed at the boundary by its caller, since each new
combination of types compiles anew. What only kernels call is a helper, which is compiled into them.

Compiling takes seconds, on the first run on a machine only. Whoever shows progress asks to be told of it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event

_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
_INNER = _OPTIONS | {"no_cpython_wrapper": True}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; where no folder for the cache can be written, in every process anew."""
    compiled: Callable[..., Any]
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        compiled = numba.njit(**_OPTIONS)(function)
    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` for calls from kernels alone: without what makes it callable from Python, and no cache.

    The cache of a kernel holds its helpers too, but is found outdated only if the kernel's own file changes.
    """
    compiled: Callable[..., Any] = numba.njit(**_INNER)(function)
    return compiled


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A helper with one caller, put into its text: large helpers would be optimised twice, alone and in the caller."""
    compiled: Callable[..., Any] = numba.njit(inline="always", **_INNER)(function)
    return compiled


@contextmanager
def told_of_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` whenever compiling begins and ``tell(False)`` when it ends; not for what the cache has."""
    _compiling.listeners.append(tell)
    try:
        yield
    finally:
        _compiling.listeners.remove(tell)


class _Compiling(event.Listener):
    """Hears from numba when it compiles. Kernels compile what they call meanwhile: only the outermost counts."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], None]] = []
        self._depth = 0
        self._collecting = False

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            # A compiler makes many small objects and few cycles: looking for these takes a tenth of its time.
            self._collecting = gc.isenabled()
            gc.disable()
            self._tell(True)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            if self._collecting:
                gc.enable()
            self._tell(False)

    def _tell(self, begins: bool) -> None:
        for tell in tuple(self.listeners):
            tell(begins)


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]
