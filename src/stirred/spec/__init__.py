"""The five building blocks of a guarantee."""

from stirred.spec.specification import (
    Budget,
    Domain,
    Finding,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    Specification,
)

__all__ = ["Budget", "Domain", "Finding", "InputPremetric", "Multiverse", "OutputPremetric", "Specification"]
