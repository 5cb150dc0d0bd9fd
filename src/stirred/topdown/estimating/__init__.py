"""Answers to an analyst's questions from the noisy measurements, with standard errors and intervals."""
