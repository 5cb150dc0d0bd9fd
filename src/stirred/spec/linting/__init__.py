"""Findings about a guarantee: rules that a specification is held against, block by block."""
