"""Decorators of compiled kernels: numba, cached on disk, without the interpreter lock.

A kernel is a short function over arrays. Types are fixed at the boundary by its caller, since each new combination of
types compiles anew. What only kernels call is a helper, which is compiled into them.

The compiler itself takes a second to import and to get ready, so it is imported when a kernel is first called, and
:func:`small` does little work without it. Compiling takes seconds, on the first run on a machine only; code that
shows progress can be told of it (:func:`told_of_compiling`).
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

SMALL = 64
"""Numbers up to which :func:`small` runs a kernel as plain Python where the compiler is not there yet."""

_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
_INNER = _OPTIONS | {"no_cpython_wrapper": True}

_preparing = threading.RLock()
_plainly = threading.local()


class _Kernel:
    """A function that is handed to the compiler when it is first called, or first met in another kernel."""

    def __init__(self, function: Callable[..., Any], cached: bool, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._cached = cached
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if getattr(_plainly, "on", False):
            return self.py_func(*arguments)
        return (self._dispatcher or self._prepared())(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """By which the compiler knows this object inside of another kernel."""
        return self._prepared()._numba_type_

    @property
    def targetoptions(self) -> Any:
        """By which the compiler sees that this object is to be put into its caller."""
        return self._prepared().targetoptions

    @property
    def signatures(self) -> Any:
        """The combinations of types that have been compiled or loaded."""
        return self._prepared().signatures

    def _prepared(self) -> Any:
        with _preparing:
            if self._dispatcher is None:
                import numba

                _listen()
                try:
                    self._dispatcher = numba.njit(cache=self._cached, **self._options)(self.py_func)
                except RuntimeError:  # no folder for the cache can be written
                    self._dispatcher = numba.njit(**self._options)(self.py_func)
        return self._dispatcher


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; where no folder for the cache can be written, in every process anew."""
    return _Kernel(function, True, _OPTIONS)


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` for calls from kernels alone: without what makes it callable from Python, and no cache.

    The cache of a kernel holds its helpers too, but is found outdated only if the kernel's own file changes.
    """
    return _Kernel(function, False, _INNER)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A helper with one caller, put into its text: large helpers would be optimised twice, alone and in the caller."""
    return _Kernel(function, False, _INNER | {"inline": "always"})


def small(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel on numbers and flat arrays of floats, without the compiler where the work is small.

    Plain Python does the same arithmetic on the same doubles. Where it refuses what compiled code answers with an
    infinity (the logarithm of 0, an exponential beyond the range of floats), the compiled kernel is called.
    """
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    if "numba" in sys.modules or sum(map(len, arrays)) > SMALL * max(1, len(arrays)):
        return function(*arguments)
    # The data as a memoryview gives Python's floats; numpy's own would warn where Python and compiled code raise.
    plain = [one.data if isinstance(one, np.ndarray) else one for one in arguments]
    _plainly.on = True
    try:
        return function(*plain)
    except (ArithmeticError, ValueError):
        pass
    finally:
        _plainly.on = False
    return function(*arguments)


# -- being told of compiling -------------------------------------------------------------------------------------

_told: list[Callable[[bool], None]] = []


@contextmanager
def told_of_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` whenever compiling begins and ``tell(False)`` when it ends; not for what the cache has."""
    _told.append(tell)
    try:
        yield
    finally:
        _told.remove(tell)


@contextmanager
def said_to_compile() -> Iterator[None]:
    """Tell whoever asked to be told that kernels are compiled while the block runs, in another process."""
    _tell(True)
    try:
        yield
    finally:
        _tell(False)


@functools.cache
def _listen() -> None:
    """Hear from numba when it compiles. Kernels compile what they call meanwhile: only the outermost counts."""
    from numba.core import event

    class Compiling(event.Listener):
        depth = 0
        collecting = False

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                # A compiler makes many small objects and few cycles: looking for these takes a tenth of its time.
                self.collecting = gc.isenabled()
                gc.disable()
                _tell(True)

        def on_end(self, event: Any) -> None:
            if self.depth == 0:  # it began before anybody listened
                return
            self.depth -= 1
            if self.depth == 0:
                if self.collecting:
                    gc.enable()
                _tell(False)

    event.register("numba:compile", Compiling())  # type: ignore[no-untyped-call]


def _tell(begins: bool) -> None:
    for tell in tuple(_told):
        tell(begins)
