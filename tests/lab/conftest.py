"""One generator for each test, so that none depends on which others ran."""

from limit_cases import rng  # noqa: F401
