"""Surveys: where the guarantee starts, what sampling buys, and what weights cost in noise."""
