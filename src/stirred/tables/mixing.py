"""Scatters 64-bit numbers: for fingerprints, samples and keys, never for the law of a release."""

from __future__ import annotations

import numpy as np

from stirred._compiled import helper


@helper
def mixed(number):  # type: ignore[no-untyped-def]
    """A number far from those of its neighbours (the last step of splitmix64); different numbers stay different."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
