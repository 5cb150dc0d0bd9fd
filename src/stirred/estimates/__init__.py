"""Unbiased estimates with intervals, from the noisy measurements of a TopDown release."""

from stirred.estimates.estimates import Estimates, Source, estimate_rows, source_rows
from stirred.estimates.measured import MeasuredRelease

__all__ = ["Estimates", "MeasuredRelease", "Source", "estimate_rows", "source_rows"]
