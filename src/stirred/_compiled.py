"""One decorator for every compiled kernel: numba, cached on disk, without the interpreter lock.

A kernel is a short function over arrays. Types are fixed at the boundary by its caller, since each new
combination of types compiles anew. The compiler itself takes a second to import and to get ready, so it is imported
when a kernel is first called, and :func:`small` does little work without it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

SMALL = 64
"""Numbers up to which :func:`small` runs a kernel as plain Python where the compiler is not there yet."""

_preparing = threading.Lock()
_plainly = threading.local()


class _Kernel:
    """A function that is handed to the compiler when it is first called, or first met in another kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if getattr(_plainly, "on", False):
            return self.function(*arguments)
        return (self._dispatcher or self._prepared())(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """By which the compiler knows this object inside of another kernel."""
        return self._prepared()._numba_type_

    def _prepared(self) -> Any:
        with _preparing:
            if self._dispatcher is None:
                import numba

                try:
                    self._dispatcher = numba.njit(cache=True, nogil=True)(self.function)
                except RuntimeError:  # no folder for the cache can be written
                    self._dispatcher = numba.njit(nogil=True)(self.function)
        return self._dispatcher


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; where no folder for the cache can be written, in every process anew."""
    return _Kernel(function)


def small(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel on numbers and flat arrays of floats, without the compiler where the work is small.

    Plain Python does the same arithmetic on the same doubles. Where it refuses what compiled code answers with an
    infinity (the logarithm of 0, an exponential beyond the range of floats), the compiled kernel has the word.
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
