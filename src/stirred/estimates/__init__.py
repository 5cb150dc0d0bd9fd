"""Unbiased estimates with standard errors and intervals, as every mechanism gives them."""

from stirred.estimates.estimates import Estimates, Source, estimate_rows, source_rows

__all__ = ["Estimates", "Source", "estimate_rows", "source_rows"]
