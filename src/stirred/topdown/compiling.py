"""Compile the rounding kernel in a process of its own, while the data are read and the fit's kernel is compiled.

The two kernels take most of the time that compiling takes on the first run on a machine, and one process compiles one
at a time. The command line starts this; in a Python program kernels are compiled when they are needed.
"""

from __future__ import annotations

import os
import subprocess  # nosec B404 # runs this Python on a fixed program, see below
import sys
from pathlib import Path

from stirred._compiled import said_to_compile

_FOLDER = Path(__file__).parent
_PROGRAM = "from stirred.topdown.rounding import compile_kernel; compile_kernel()"
_process: subprocess.Popen[bytes] | None = None


def start() -> None:
    """Begin to compile, unless the compiled kernel is in numba's cache beside the source, or cannot be put there."""
    global _process
    cache = _FOLDER / "__pycache__"
    elsewhere = "NUMBA_CACHE_DIR" in os.environ or not os.access(_FOLDER, os.W_OK)
    if _process is not None or elsewhere or any(cache.glob("rounding_kernel.round_parents-*.nbi")):
        return
    try:
        _process = subprocess.Popen(  # nosec B603 # no shell, and no argument from outside
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # the kernel is then compiled when it is needed
        return


def wait() -> None:
    """Wait until the kernel is in the cache, if it is being compiled. Where that failed, it is compiled here."""
    if _process is not None and _process.poll() is None:
        with said_to_compile():
            _process.wait()
