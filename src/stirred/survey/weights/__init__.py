"""Weights of records: published rules that bound them, what these rules cost, adjustment to public totals."""
