"""Weights of records: published rules that bound them, and what these rules cost."""
