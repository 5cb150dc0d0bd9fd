"""Answers to an analyst's questions from the noisy sums of a release, with intervals."""
