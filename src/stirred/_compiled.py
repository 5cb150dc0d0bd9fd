"""One decorator for every compiled kernel: numba, cached on disk, without the interpreter lock.

A kernel is a short function over arrays. Types are fixed at the boundary by its caller, since each new
combination of types compiles anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; where no folder for the cache can be written, in every process anew."""
    compiled: Callable[..., Any]
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True)(function)
    return compiled
