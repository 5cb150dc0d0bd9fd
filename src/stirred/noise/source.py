"""Sources of random bits: the operating system's generator, and a repeatable one for tests.

Kernels never call back for a word. They are handed a block, consume it, and return to be handed the next, so the
cost of a system call is spread over some hundred thousand draws. What is left of a block is thrown away, never
reused. Each caller (each worker) takes its own blocks, so there are no seeds, no streams to split and nothing to
store: the bits that made a release cannot be found again.

:class:`SeededSource` exists for tests. It is reachable from Python only and everything drawn from it is marked
*not for release*.
"""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 18
"""Large enough that the system call is negligible, small enough to stay in a core's cache."""


class RandomSource(Protocol):
    """Uniform, independent random bytes."""

    @property
    def for_release(self) -> bool:
        """Whether draws may be released; false for a source whose bits can be repeated."""
        ...

    def take(self, count: int) -> bytes:
        """``count`` fresh bytes."""
        ...


class SystemSource:
    """The operating system's cryptographic generator (``os.urandom``)."""

    for_release = True

    def take(self, count: int) -> bytes:
        """``count`` fresh bytes from the operating system."""
        return os.urandom(count)


class SeededSource:
    """A repeatable stream for tests: SHAKE-128 of a key and a block number.

    >>> SeededSource(7).take(4) == SeededSource(7).take(4)
    True
    >>> SeededSource(7).for_release
    False
    """

    for_release = False

    def __init__(self, key: int) -> None:
        self._key = key.to_bytes(16, "big", signed=True)
        self._block = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes of the repeatable stream."""
        name = self._key + self._block.to_bytes(8, "big")
        self._block += 1
        return hashlib.shake_128(name).digest(count)


def words16(source: RandomSource, most: int) -> NDArray[np.uint16]:
    """A block of 16-bit words: ``most`` of them, or as many as a block holds."""
    count = min(max(most, 64), BLOCK_BYTES // 2)
    return np.frombuffer(source.take(2 * count), dtype="<u2")


def words32(source: RandomSource, most: int) -> NDArray[np.uint32]:
    """A block of 32-bit words: ``most`` of them, or as many as a block holds."""
    count = min(max(most, 64), BLOCK_BYTES // 4)
    return np.frombuffer(source.take(4 * count), dtype="<u4")
