"""One decorator for every compiled kernel: numba, cached on disk, without the interpreter lock.

A kernel is a short function over arrays. Types are fixed at the boundary by its caller, since each new
combination of types compiles anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on first use."""
    compiled: Kernel = numba.njit(cache=True, nogil=True, boundscheck=False)(function)
    return compiled
