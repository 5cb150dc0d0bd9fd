"""Limits of learning that no report tells: sets of measures, attackers, and posteriors under a model of one's own."""
