"""Answers from a swapped release: counts, ratios and regressions, corrected for the swap, with intervals."""
